//! What a breadth-first search has found, block by block in the order in which states were found.
//!
//! Everything that is counted or decided is counted and decided here, by one worker and in order. So nothing of it
//! depends on how many workers there are.

use super::expansion::{Expansion, Hit};
use super::seal::Settled;
use crate::control::{Control, Stats};
use crate::observe::{Observer, Seen};
use crate::tally::Tally;
use crate::verdict::{Trace, Verdict, Violation, What, Why};
use plimsoll_model::{Model, Step};
use plimsoll_store::{Odds, Piece, Queue, StepLog};
use serde::{Deserialize, Serialize};

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
    model: &'a M,
    pub log: &'a mut StepLog,
    pub control: &'a mut Control<'c>,
    pub tally: Tally,
    initial_states: u64,
    /// States that were expanded: the number of the next.
    pub expanded: u64,
    found: Option<Found>,
    pub observer: Option<&'a mut dyn Observer>,
}

/// What was counted and found so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Books {
    pub stats: Stats,
    error_state: Option<u32>,
    pub initial_states: u64,
    pub expanded: u64,
    found: Option<Found>,
}

/// A violation at state `number`, or on its successor `step`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    what: What,
    number: u64,
    step: Option<u32>,
    /// How far away it is, then which successor of which state led to it. Of several the first in this order is reported,
    /// so that it does not matter into which blocks states were cut.
    rank: (u32, u64, u32),
}

impl<'a, 'c, M: Model + ?Sized> Ledger<'a, 'c, M> {
    pub fn new(
        model: &'a M,
        log: &'a mut StepLog,
        control: &'a mut Control<'c>,
        observer: Option<&'a mut dyn Observer>,
    ) -> Self {
        let tally = Tally::new(control.ask, model.conventions());
        Ledger { model, log, control, tally, initial_states: 0, expanded: 0, found: None, observer }
    }

    /// What was counted and found so far.
    pub fn books(&self) -> Books {
        let Ledger { tally, initial_states, expanded, found, .. } = self;
        let (stats, error_state) = (tally.stats.clone(), tally.error_state);
        Books { stats, error_state, initial_states: *initial_states, expanded: *expanded, found: found.clone() }
    }

    /// Goes on with the books of an earlier search.
    pub fn take_over(&mut self, books: Books) {
        (self.tally.stats, self.tally.error_state) = (books.stats, books.error_state);
        (self.initial_states, self.expanded, self.found) = (books.initial_states, books.expanded, books.found);
    }

    /// Enters the initial states, which were numbered, and the starts that went wrong.
    pub fn enter_starts(&mut self, block: &Expansion, wrong: &[(u32, Step)]) -> Result<(), Why> {
        for &(position, step) in wrong {
            let what = self.tally.wrong(step, 0, true);
            self.find(what, 0, Some(position), (0, 0, position));
        }
        let entered = self.enter_fresh(block, 0);
        self.end_starts();
        entered
    }

    /// Takes note of how many initial states there are so far. Paths end at those, also if not all of them found room.
    pub fn end_starts(&mut self) {
        self.initial_states = self.log.len();
    }

    /// Enters a block of states that were expanded and whose successors were numbered.
    pub fn enter(&mut self, block: &Expansion) -> Result<(), Why> {
        let what = self.tally.deadlocks(block.deadlocks.len() as u64);
        if let Some(&index) = block.deadlocks.first() {
            let number = block.first + index as u64;
            self.find(what, number, None, (block.level, number, 0));
        }
        self.tally.stats.transitions += block.out.len() as u64;
        self.enter_wrong(block);
        self.enter_fresh(block, block.level + 1)?;
        self.expanded += block.len() as u64;
        Ok(())
    }

    /// Shows a block that was just entered, whole, to the observer, if there is one.
    pub fn show(
        &mut self,
        block: &Expansion,
        are_starts: bool,
        defers: bool,
        settled: impl Fn() -> bool,
    ) -> Result<(), Why> {
        let Some(observer) = &mut self.observer else { return Ok(()) };
        let fresh = (!defers).then_some(&block.fresh[..]);
        let seen = Seen {
            first: block.first,
            block: block.block(),
            successors: &block.out,
            fresh,
            first_fresh: self.log.len() - fresh.map_or(0, <[u32]>::len) as u64,
            entry: &block.entry,
            settled: settled(),
        };
        if are_starts { observer.starts(&seen) } else { observer.block(&seen) }
    }

    /// Begins a level that has states, or says why it is not searched.
    pub fn begin(&mut self, level: u32) -> Result<(), End> {
        let stats = &mut self.tally.stats;
        stats.levels = stats.levels.max(level + 1);
        stats.depth = stats.depth.max(level);
        if self.ends_before(level) {
            return Err(End::Found);
        }
        if self.control.limits.depth.is_some_and(|limit| level >= limit) {
            return Err(End::DepthLimit);
        }
        self.control.room.keep(level + 1).map_err(End::Out)
    }

    /// Successors of a state, on average; before any is expanded, the most that there can be.
    pub fn degree(&self) -> usize {
        let degree = self.tally.stats.transitions.checked_div(self.expanded);
        degree.map_or(self.model.most_successors(), |degree| degree as usize)
    }

    /// A level is complete: the log may forget how states were found that nothing waiting descends from. What was found is still
    /// to be told.
    pub fn prune(&mut self) {
        if self.found.is_none() && self.log.is_long() {
            self.log.prune(self.expanded, self.initial_states);
        }
    }

    /// The same for a log that is too long: the states that wait, which are all of `level`, may be kept instead.
    pub fn keep_level(&mut self, level: u32, queue: &mut Queue) -> Result<(), Why> {
        if level > 0 && self.found.is_none() && self.log.should_keep_level(queue.len(), queue.width()) {
            self.log.keep_level(level, self.expanded, queue)?;
        }
        Ok(())
    }

    /// Was a violation found that nothing in the rest of `level` can come before?
    pub fn ends_within(&self, level: u32) -> bool {
        self.ends_before(level + 1) && !self.control.ask.deadlocks
    }

    /// A violation on a shorter path than any found from `level` on?
    fn ends_before(&self, level: u32) -> bool {
        !self.control.ask.keep_going && self.found.as_ref().is_some_and(|found| found.rank.0 <= level)
    }

    fn enter_wrong(&mut self, block: &Expansion) {
        let mut parent = 0;
        let width = block.out.width();
        for &position in &block.wrong {
            while block.firsts[parent + 1] <= position {
                parent += 1;
            }
            let step = block.out.step(position as usize);
            if step.is_fault() {
                self.control.watch.fault(&block.parents[parent * width..][..width], step);
            }
            let depth = block.level + 1;
            let what = self.tally.wrong(step, depth, false);
            let (number, position) = (block.first + parent as u64, position - block.firsts[parent]);
            self.find(what, number, Some(position), (depth, number, position));
        }
    }

    /// Logs what is fresh, and what is wrong with it.
    fn enter_fresh(&mut self, block: &Expansion, depth: u32) -> Result<(), Why> {
        self.tally.stats.matched += (block.out.len() - block.fresh.len() - block.skip.len()) as u64;
        self.enter_found(&block.steps, &block.hits, depth)
    }

    /// Enters candidates of which the disk was asked.
    pub fn enter_survivors(&mut self, settled: &Settled, depth: u32) -> Result<(), Why> {
        self.enter_found(&settled.steps, &settled.hits, depth)
    }

    fn enter_found(&mut self, steps: &Piece, hits: &[Hit], depth: u32) -> Result<(), Why> {
        let number = self.log.len();
        let logged = self.log.append(steps);
        let end = self.log.len();
        self.tally.stats.states += end - number;
        self.tally.stats.level_sizes.add(depth, end - number);
        for hit in hits.iter().filter(|hit| number + (hit.index as u64) < end) {
            let what = self.tally.hit(hit.property);
            self.find(what, number + hit.index as u64, None, (depth, hit.parent, hit.position));
        }
        Ok(logged?)
    }

    /// Keeps a violation if it comes before what was found so far.
    fn find(&mut self, what: Option<What>, number: u64, step: Option<u32>, rank: (u32, u64, u32)) {
        if let Some(what) = what
            && self.found.as_ref().is_none_or(|best| rank < best.rank)
        {
            self.found = Some(Found { what, number, step, rank });
        }
    }

    /// Says what was found; `odds` are those of a store that may take states for others.
    pub fn verdict(&mut self, end: End, odds: Option<Odds>) -> Verdict {
        if let Some(level) = self.tally.count_error_state() {
            self.tally.stats.levels = self.tally.stats.levels.max(level + 1);
            self.tally.stats.level_sizes.add(level, 1);
        }
        if let Some(found) = self.found.take() {
            // A start command that goes wrong has no state before it.
            let wrong_start = found.rank.0 == 0 && found.step.is_some();
            let path = if wrong_start { Ok(Vec::new()) } else { self.log.path(found.number, self.initial_states) };
            return match path {
                Ok(mut positions) => {
                    positions.extend(found.step);
                    Verdict::Violated(Violation { what: found.what, trace: Trace { positions } })
                }
                Err(error) => Verdict::Unknown(error.into()),
            };
        }
        match (end, odds) {
            (End::Done | End::Found, None) => Verdict::Holds,
            (End::Done | End::Found, Some(odds)) => Verdict::HoldsUnless(odds),
            (End::DepthLimit, None) => Verdict::HoldsToDepth(self.tally.stats.depth),
            // Two doubts at once are none that anybody should have to weigh.
            (End::DepthLimit, Some(_)) => Verdict::Unknown(Why::Depth),
            (End::Out(why), _) => Verdict::Unknown(why),
        }
    }
}
