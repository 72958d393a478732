//! From positions back to states: a violation is believed only after it was replayed.

use crate::verdict::{Violation, What};
use plimsoll_model::{Model, Step, Successors, nth_initial};
use std::ops::Range;

/// A state on a replayed path and the step that led to it. For a step that goes wrong the state is the
/// one it was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    pub step: Step,
    pub state: Vec<u32>,
}

/// The model does not do what the trace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// There is no successor at this position of the trace.
    NoSuchStep { at: usize },
    /// The path exists, but its end is not wrong in the way claimed.
    NotWrong,
}

/// A path under way: one state at a time, so that a path of any length takes no memory.
pub struct Walk<'a, M: ?Sized> {
    model: &'a M,
    out: Successors,
    state: Vec<u32>,
    last: Option<Step>,
    taken: usize,
}

impl<'a, M: Model + ?Sized> Walk<'a, M> {
    /// Stands before the initial states.
    pub fn new(model: &'a M) -> Walk<'a, M> {
        let out = Successors::new(model.width());
        Walk { model, out, state: vec![0; model.width()], last: None, taken: 0 }
    }

    /// The current state. After a step that goes wrong it is the one that the step was taken in.
    pub fn state(&self) -> &[u32] {
        &self.state
    }

    /// The step taken last; none before the initial state.
    pub fn last(&self) -> Option<Step> {
        self.last
    }

    /// Goes to an initial state, or then to the successor, at `position`.
    pub fn take(&mut self, position: u32) -> Result<Step, ReplayError> {
        self.out.clear();
        match self.last {
            None => {
                let (step, state) =
                    nth_initial(self.model, position as usize).ok_or(ReplayError::NoSuchStep { at: 0 })?;
                (self.state, self.last, self.taken) = (state, Some(step), 1);
                return Ok(step);
            }
            Some(last) if last.is_fault() => {}
            Some(_) => self.model.successors(&self.state, &mut self.out),
        }
        let position = position as usize;
        if position >= self.out.len() {
            return Err(ReplayError::NoSuchStep { at: self.taken });
        }
        let step = self.out.step(position);
        if !step.is_fault() {
            self.state.copy_from_slice(self.out.state(position));
        }
        (self.last, self.taken) = (Some(step), self.taken + 1);
        Ok(step)
    }

    /// Is what was reached wrong in this way?
    pub fn is_wrong(&mut self, what: What) -> bool {
        let Some(last) = self.last else { return false };
        match what {
            What::Fault => last.is_fault(),
            What::Assertion => last.is_violation(),
            What::Property(property) => !last.is_fault() && self.model.violates(&self.state, property),
            What::Deadlock => {
                self.out.clear();
                self.model.successors(&self.state, &mut self.out);
                !last.is_fault() && is_deadlock(self.model, &self.state, &self.out, 0..self.out.len())
            }
        }
    }
}

/// Follows the trace of `violation` in `model` and checks that its end is wrong as claimed.
pub fn verify<M: Model + ?Sized>(model: &M, violation: &Violation) -> Result<(), ReplayError> {
    let mut walk = Walk::new(model);
    for &position in &violation.trace.positions {
        walk.take(position)?;
    }
    match walk.last() {
        None => Err(ReplayError::NoSuchStep { at: 0 }),
        Some(_) if walk.is_wrong(violation.what) => Ok(()),
        Some(_) => Err(ReplayError::NotWrong),
    }
}

/// The states on the path to `violation`, once it is verified. They are all held at once: for long paths see [`Walk`].
pub fn replay<M: Model + ?Sized>(model: &M, violation: &Violation) -> Result<Vec<Replayed>, ReplayError> {
    verify(model, violation)?;
    let mut walk = Walk::new(model);
    let step = |&position: &u32| Ok(Replayed { step: walk.take(position)?, state: walk.state().to_vec() });
    violation.trace.positions.iter().map(step).collect()
}

/// Removes starts that went wrong from `out`, which holds initial states from number `first` on, and returns the positions
/// that the others had. (Other steps that go wrong keep their place; a start has no state to fall back to.)
pub(crate) fn keep_sound_starts(out: &mut Successors, first: u32) -> Vec<u32> {
    let all = out.clone();
    out.truncate(0);
    let mut positions = Vec::new();
    for (position, (state, step)) in all.iter().enumerate().filter(|(_, (_, step))| !step.is_fault()) {
        out.push(state, step);
        positions.push(first + position as u32);
    }
    positions
}

/// Is `state`, whose successors are `own` among those in `out`, a deadlock under the model's conventions?
pub fn is_deadlock<M: Model + ?Sized>(model: &M, state: &[u32], out: &Successors, mut own: Range<usize>) -> bool {
    let conventions = model.conventions();
    if conventions.deadlock_is_fine {
        return false;
    }
    if own.is_empty() {
        return !model.accepts_end(state);
    }
    conventions.stuttering_is_deadlock
        && own.all(|position| !out.step(position).is_fault() && out.state(position) == state)
}
