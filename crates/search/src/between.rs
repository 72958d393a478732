//! The way to a state that is known, from a level that was kept: where a log kept levels instead of steps
//! ([`plimsoll_store::Milestones`]), the way between two of them is found by searching again.
//!
//! The search begins with all states of one level and ends at the one state of the next level that is on the way. That lies as many steps away
//! as there are levels between, for it was found on its level first: so the way that is found is as short as the one that was forgotten.

use crate::control::{Ask, Limits};
use crate::verdict::{Outcome, Trace, Verdict, Violation, Why};
use plimsoll_model::{Conventions, Model, Step, Successors};
use plimsoll_store::{Milestones, SpillError};
use std::sync::{Mutex, PoisonError};

/// A model that begins with the states of a level, or as it does, and is wrong in one state.
struct Between<'a, M: ?Sized> {
    model: &'a M,
    /// Those of its last level.
    starts: &'a Milestones,
    target: &'a [u32],
    failure: Mutex<Option<SpillError>>,
}

impl<M: Model + ?Sized> Model for Between<'_, M> {
    fn width(&self) -> usize {
        self.model.width()
    }

    fn used_bits(&self) -> Vec<u32> {
        self.model.used_bits()
    }

    fn most_successors(&self) -> usize {
        self.model.most_successors()
    }

    fn scratch_bytes(&self) -> usize {
        self.model.scratch_bytes()
    }

    fn initial(&self, out: &mut Successors) {
        let mut part = 0;
        while self.initial_part(part, out) {
            part += 1;
        }
    }

    fn initial_part(&self, part: u32, out: &mut Successors) -> bool {
        let Some(level) = self.starts.last() else { return self.model.initial_part(part, out) };
        let mut states = Vec::new();
        let read = self.starts.read_part(level, part, &mut states);
        states.chunks_exact(self.width()).for_each(|state| out.push(state, Step(0)));
        match read {
            Ok(more) => more,
            Err(error) => {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                false
            }
        }
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        self.model.successors(state, out);
    }

    fn successors_of_all(&self, states: &[u32], out: &mut Successors, firsts: &mut Vec<u32>) {
        self.model.successors_of_all(states, out, firsts);
    }

    fn violated(&self, state: &[u32]) -> Option<u32> {
        (state == self.target).then_some(0)
    }

    fn conventions(&self) -> Conventions {
        self.model.conventions()
    }

    fn kind(&self, step: Step) -> u8 {
        self.model.kind(step)
    }
}

/// The whole way to what is wrong, where only the part behind the last of the `milestones` is known: it begins with the number of a
/// state of that. `search` searches breadth first within the limits that it is told, in memory that nothing else has.
pub fn whole_way<M: Model + ?Sized>(
    model: &M,
    mut milestones: Milestones,
    violation: Violation,
    mut search: impl FnMut(&dyn Model, Ask, Limits) -> Outcome,
) -> Verdict {
    let mut positions = violation.trace.positions;
    while let Some(level) = milestones.last() {
        let (mut target, end) = (Vec::new(), level.level);
        if let Err(error) = milestones.read(level, positions[0].into(), 1, &mut target) {
            return Verdict::Unknown(error.into());
        }
        milestones.pop();
        let first = milestones.last().map_or(0, |level| level.level);
        let between = Between { model, starts: &milestones, target: &target, failure: Mutex::new(None) };
        let ask = Ask { deadlocks: false, errors: false, properties: true, keep_going: false };
        let limits = Limits { depth: Some(end - first), ..Limits::default() };
        let outcome = search(&between, ask, limits);
        if let Some(error) = between.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Verdict::Unknown(error.into());
        }
        match outcome.verdict {
            Verdict::Violated(found) => {
                let steps = found.trace.positions;
                positions.splice(..1, steps);
            }
            Verdict::Unknown(why) => return Verdict::Unknown(why),
            _ => return Verdict::Unknown(Why::Disk("a state that was kept was not found again".into())),
        }
    }
    Verdict::Violated(Violation { trace: Trace { positions }, ..violation })
}
