//! What a breadth-first search has found, block by block in the order in which states were found.
//!
//! States are numbered here, and everything that is counted or decided is counted and decided here, by one worker at a
//! time. So nothing of it depends on how many workers there are.

use super::expansion::{Expansion, Starts};
use crate::control::{Control, Stats};
use crate::verdict::{Trace, Verdict, Violation, What, Why};
use plimsoll_model::{Conventions, Model, Step};
use plimsoll_store::{Full, SpillError, StepLog, Tiers};

/// Why a search ended.
pub(super) enum End {
    /// Every level was expanded.
    Done,
    /// A violation was found and nothing shorter can be.
    Found,
    DepthLimit,
    Out(Why),
}

pub(super) struct Ledger<'a, 'c, M: ?Sized> {
    pub model: &'a M,
    pub tiers: &'a mut Tiers,
    pub log: &'a mut StepLog,
    pub control: &'a mut Control<'c>,
    pub conventions: Conventions,
    has_properties: bool,
    pub stats: Stats,
    blocks: u32,
    initial_states: u64,
    /// States expanded before the current block: the number of its first state.
    expanded: u64,
    found: Option<Found>,
    /// The level of the common error state, once it is reached.
    error_state: Option<u32>,
}

/// A violation at state `number`, or on its successor `step`.
struct Found {
    what: What,
    number: u64,
    step: Option<u32>,
    depth: u32,
}

impl<'a, 'c, M: Model + ?Sized> Ledger<'a, 'c, M> {
    pub fn new(model: &'a M, tiers: &'a mut Tiers, log: &'a mut StepLog, control: &'a mut Control<'c>) -> Self {
        Ledger {
            model,
            tiers,
            log,
            control,
            conventions: model.conventions(),
            has_properties: model.has_properties(),
            stats: Stats::default(),
            blocks: 0,
            initial_states: 0,
            expanded: 0,
            found: None,
            error_state: None,
        }
    }

    /// Enters a part of the initial states.
    pub fn enter_starts(&mut self, block: &mut Expansion, starts: &Starts) -> Result<(), Why> {
        let ends =
            if starts.next.is_none() { None } else { self.control.must_end(self.blocks, &mut self.stats, self.tiers) };
        if let Some(why) = ends.or_else(|| self.control.stopped()).or(block.failure.take()) {
            block.fresh.clear();
            return Err(why);
        }
        self.blocks = self.blocks.wrapping_add(1);
        for &(position, step) in &starts.wrong {
            self.note_wrong(step, 0, position, 0);
        }
        let entered = self.insert(block, 0, Some(&starts.positions));
        // Paths end at the initial states, also if not all of them found room.
        self.initial_states = self.log.len();
        entered
    }

    /// Enters a block of states that were expanded and whose successors were encoded. What is fresh is left in it.
    pub fn enter(&mut self, block: &mut Expansion) -> Result<(), Why> {
        if let Some(why) = self.control.must_end(self.blocks, &mut self.stats, self.tiers) {
            block.fresh.clear();
            return Err(why);
        }
        self.blocks = self.blocks.wrapping_add(1);
        if let Some(why) = block.failure.take() {
            block.fresh.clear();
            return Err(why);
        }
        self.note_deadlocks(block);
        self.stats.transitions += block.out.len() as u64;
        self.note_flags(block);
        self.insert(block, block.level + 1, None)?;
        self.expanded += block.len() as u64;
        Ok(())
    }

    /// Begins a level that has states, or says why it is not searched.
    pub fn begin(&mut self, level: u32) -> Result<(), End> {
        self.stats.levels = self.stats.levels.max(level + 1);
        self.stats.depth = self.stats.depth.max(level);
        if self.ends_before(level) {
            return Err(End::Found);
        }
        if self.control.limits.depth.is_some_and(|limit| level >= limit) {
            return Err(End::DepthLimit);
        }
        Ok(())
    }

    /// Successors of a state, on average; before any is expanded, the most that there can be.
    pub fn degree(&self) -> usize {
        let degree = self.stats.transitions.checked_div(self.expanded);
        degree.map_or(self.model.most_successors(), |degree| degree as usize)
    }

    /// Was a violation found that nothing in the rest of `level` can come before?
    pub fn ends_within(&self, level: u32) -> bool {
        self.ends_before(level + 1) && !self.control.ask.deadlocks
    }

    /// A violation on a shorter path than any found from `level` on?
    fn ends_before(&self, level: u32) -> bool {
        !self.control.ask.keep_going && self.found.as_ref().is_some_and(|found| found.depth <= level)
    }

    fn note_deadlocks(&mut self, block: &Expansion) {
        self.stats.deadlocks += block.deadlocks.len() as u64;
        if let (Some(&index), true) = (block.deadlocks.first(), self.control.ask.deadlocks) {
            let number = self.expanded + index as u64;
            self.find(Found { what: What::Deadlock, number, step: None, depth: block.level });
        }
    }

    fn note_flags(&mut self, block: &Expansion) {
        let mut parent = 0;
        let width = block.out.width();
        for &position in &block.wrong {
            while block.firsts[parent + 1] <= position {
                parent += 1;
            }
            let step = block.out.step(position as usize);
            if step.is_fault() {
                if !self.conventions.faults_absorb {
                    self.stats.transitions -= 1;
                }
                self.model.note_fault(&block.parents[parent * width..][..width], step);
            }
            self.note_wrong(step, self.expanded + parent as u64, position - block.firsts[parent], block.level + 1);
        }
    }

    /// A step that went wrong: successor `position` of state `number`.
    fn note_wrong(&mut self, step: Step, number: u64, position: u32, depth: u32) {
        let what = if step.is_fault() { What::Fault } else { What::Assertion };
        if step.is_fault() {
            self.stats.faults += 1;
            if self.conventions.faults_absorb {
                self.error_state.get_or_insert(depth);
            }
        } else {
            self.stats.failed_assertions += 1;
        }
        if self.control.ask.errors {
            self.find(Found { what, number, step: Some(position), depth });
        }
    }

    /// Inserts the block; what is fresh is logged and checked. For initial states `starts` gives their positions.
    fn insert(&mut self, block: &mut Expansion, depth: u32, starts: Option<&[u32]>) -> Result<(), Why> {
        let inserted = block.insert(self.tiers);
        self.stats.matched += (block.out.len() - block.fresh.len() - block.skip.len()) as u64;
        let mut parent = 0;
        for index in 0..block.fresh.len() {
            let position = block.fresh[index];
            while block.firsts[parent + 1] <= position {
                parent += 1;
            }
            let number = self.log.len();
            let (from, step) = match starts {
                Some(positions) => (0, positions[position as usize]),
                None => (self.expanded + parent as u64, position - block.firsts[parent]),
            };
            if let Err(error) = self.log.push(from, step) {
                block.fresh.truncate(index);
                return Err(log_failure(error));
            }
            self.stats.states += 1;
            if self.has_properties
                && let Some(property) = self.model.violated(block.out.state(position as usize))
            {
                self.stats.property_hits += 1;
                if self.control.ask.properties {
                    self.find(Found { what: What::Property(property), number, step: None, depth });
                }
            }
        }
        inserted.map_err(|Full| Why::Memory)
    }

    fn find(&mut self, found: Found) {
        if self.found.as_ref().is_none_or(|best| found.depth < best.depth) {
            self.found = Some(found);
        }
    }

    pub fn verdict(&mut self, end: End) -> Verdict {
        if let Some(level) = self.error_state {
            // The common error state is a state without successors.
            self.stats.states += 1;
            self.stats.deadlocks += 1;
            self.stats.levels = self.stats.levels.max(level + 1);
        }
        if let Some(found) = self.found.take() {
            // A start command that goes wrong has no state before it.
            let wrong_start = found.depth == 0 && found.step.is_some();
            let path = if wrong_start { Ok(Vec::new()) } else { self.log.path(found.number, self.initial_states) };
            return match path {
                Ok(mut positions) => {
                    positions.extend(found.step);
                    Verdict::Violated(Violation { what: found.what, trace: Trace { positions } })
                }
                Err(error) => Verdict::Unknown(log_failure(error)),
            };
        }
        match end {
            End::Done | End::Found => Verdict::Holds,
            End::DepthLimit => Verdict::HoldsToDepth(self.stats.depth),
            End::Out(why) => Verdict::Unknown(why),
        }
    }
}

fn log_failure(error: SpillError) -> Why {
    match error {
        SpillError::Full => Why::Memory,
        error => error.into(),
    }
}
