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

/// Follows the trace of `violation` in `model` and checks that its end is wrong as claimed.
pub fn replay<M: Model + ?Sized>(model: &M, violation: &Violation) -> Result<Vec<Replayed>, ReplayError> {
    let path = follow(model, &violation.trace.positions)?;
    let last = path.last().ok_or(ReplayError::NoSuchStep { at: 0 })?;
    let wrong = match violation.what {
        What::Fault => last.step.is_fault(),
        What::Assertion => last.step.is_violation(),
        What::Property(property) => !last.step.is_fault() && model.violated(&last.state) == Some(property),
        What::Deadlock => {
            let mut out = Successors::new(model.width());
            model.successors(&last.state, &mut out);
            !last.step.is_fault() && is_deadlock(model, &last.state, &out, 0..out.len())
        }
    };
    if wrong { Ok(path) } else { Err(ReplayError::NotWrong) }
}

/// The states at the given positions, one after the other.
pub fn follow<M: Model + ?Sized>(model: &M, positions: &[u32]) -> Result<Vec<Replayed>, ReplayError> {
    let mut path: Vec<Replayed> = Vec::with_capacity(positions.len());
    let mut out = Successors::new(model.width());
    for (at, &position) in positions.iter().enumerate() {
        out.clear();
        match path.last() {
            None => {
                let (step, state) = nth_initial(model, position as usize).ok_or(ReplayError::NoSuchStep { at })?;
                path.push(Replayed { step, state });
                continue;
            }
            Some(last) if last.step.is_fault() => return Err(ReplayError::NoSuchStep { at }),
            Some(last) => model.successors(&last.state, &mut out),
        }
        let position = position as usize;
        if position >= out.len() {
            return Err(ReplayError::NoSuchStep { at });
        }
        let step = out.step(position);
        let state = match path.last() {
            Some(last) if step.is_fault() => last.state.clone(),
            _ => out.state(position).to_vec(),
        };
        path.push(Replayed { step, state });
    }
    Ok(path)
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
pub(crate) fn is_deadlock<M: Model + ?Sized>(
    model: &M,
    state: &[u32],
    out: &Successors,
    mut own: Range<usize>,
) -> bool {
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
