//! What a search has seen of its model, counted the same way whatever the order.

use crate::control::{Ask, Stats};
use crate::verdict::What;
use plimsoll_model::{Conventions, Step};

pub(crate) struct Tally {
    pub stats: Stats,
    ask: Ask,
    conventions: Conventions,
    /// How far the common error state is away, once it is reached.
    pub error_state: Option<u32>,
}

impl Tally {
    pub fn new(ask: Ask, conventions: Conventions) -> Tally {
        Tally { stats: Stats::default(), ask, conventions, error_state: None }
    }

    /// Some states have no way on: is that what is looked for?
    pub fn deadlocks(&mut self, count: u64) -> Option<What> {
        self.stats.deadlocks += count;
        (count > 0 && self.ask.deadlocks).then_some(What::Deadlock)
    }

    /// A step, or a start, went wrong and led so many steps away from an initial state. It was counted as a transition if
    /// it is a step; it is none unless all that goes wrong leads to one error state.
    pub fn wrong(&mut self, step: Step, depth: u32, is_start: bool) -> Option<What> {
        let what = if step.is_fault() { What::Fault } else { What::Assertion };
        if !step.is_fault() {
            self.stats.failed_assertions += 1;
        } else {
            self.stats.faults += 1;
            if self.conventions.faults_absorb {
                self.error_state.get_or_insert(depth);
            } else if !is_start {
                self.stats.transitions -= 1;
            }
        }
        self.ask.errors.then_some(what)
    }

    /// A state violates or reaches something.
    pub fn hit(&mut self, property: u32) -> Option<What> {
        self.stats.property_hits += 1;
        self.ask.properties.then_some(What::Property(property))
    }

    /// At the end: the common error state is a state without successors. Returns how far away it is.
    pub fn count_error_state(&mut self) -> Option<u32> {
        if self.error_state.is_some() {
            self.stats.states += 1;
            self.stats.deadlocks += 1;
        }
        self.error_state
    }
}
