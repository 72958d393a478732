//! Breadth-first search, level by level, in blocks.
//!
//! A block of states is expanded into one buffer, the buffer is inserted into the store at once (which
//! hashes all, prefetches all, then probes all), and what is fresh goes to the queue and to the step log.
//! States are numbered in the order they are found, which is also the order they are expanded in.
//!
//! With a store that forgets, a state may be found and numbered again: nothing is missed, but only `cover` (see
//! [`plimsoll_store::cache`]) ends by itself; anything else needs a limit on redundancy. Traces remain paths of
//! the model, and remain shortest: a state is still found on its own level first.

use crate::control::{Control, Stats};
use crate::trace::{is_deadlock, keep_sound_starts};
use crate::verdict::{Outcome, Trace, Verdict, Violation, What, Why};
use plimsoll_model::{Conventions, Model, Step, Successors};
use plimsoll_store::{Block, Chain, Full, Queue, Scratch, SpillError, StepLog};

/// Successors aimed at per block: enough to hide memory latency, few enough to stay in the caches.
const BLOCK_SUCCESSORS: usize = 1024;

/// Searches `model` breadth first.
pub fn bfs<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    queue: &mut Queue,
    log: &mut StepLog,
    control: &mut Control,
) -> Outcome {
    let width = model.width();
    let mut search = Bfs {
        model,
        store,
        queue,
        log,
        control,
        conventions: model.conventions(),
        stats: Stats::default(),
        out: Successors::new(width),
        firsts: Vec::new(),
        skip: Vec::new(),
        kinds: Vec::new(),
        fresh: Vec::new(),
        scratch: Scratch::default(),
        initial_states: 0,
        expanded: 0,
        found: None,
        error_state: None,
    };
    let end = search.run();
    let complete = matches!(end, End::Done);
    let verdict = search.verdict(end);
    search.stats.frontier = search.queue.len();
    search.stats.look_at(search.store);
    (search.control.watch)(&search.stats);
    Outcome { verdict, stats: search.stats, complete }
}

/// Why the loop ended.
enum End {
    /// Every level was expanded.
    Done,
    /// A violation was found and nothing shorter can be.
    Found,
    DepthLimit,
    Out(Why),
}

struct Bfs<'a, 'c, M: ?Sized> {
    model: &'a M,
    store: &'a mut Chain,
    queue: &'a mut Queue,
    log: &'a mut StepLog,
    control: &'a mut Control<'c>,
    conventions: Conventions,
    stats: Stats,
    out: Successors,
    /// For each state of the block, its first successor in `out`; one more at the end.
    firsts: Vec<u32>,
    /// Positions in `out` of steps that lead nowhere.
    skip: Vec<u32>,
    /// What kind of step led to each successor, if the store wants to know.
    kinds: Vec<u8>,
    fresh: Vec<u32>,
    scratch: Scratch,
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

impl<M: Model + ?Sized> Bfs<'_, '_, M> {
    fn run(&mut self) -> End {
        if let Err(why) = self.start() {
            return End::Out(why);
        }
        let mut parents = Vec::new();
        let mut block = 0;
        let mut level = 0;
        while !self.queue.is_empty() {
            self.stats.levels = self.stats.levels.max(level + 1);
            self.stats.depth = self.stats.depth.max(level);
            if self.ends_before(level) {
                return End::Found;
            }
            if self.control.limits.depth.is_some_and(|limit| level >= limit) {
                return End::DepthLimit;
            }
            let mut left = self.queue.len();
            while left > 0 {
                if let Some(why) = self.control.must_end(block, &mut self.stats, self.store) {
                    return End::Out(why);
                }
                block = block.wrapping_add(1);
                let wanted = self.states_per_block().min(usize::try_from(left).unwrap_or(usize::MAX));
                match self.queue.take(wanted, &mut parents) {
                    Ok(count) => left -= count as u64,
                    Err(error) => return End::Out(error.into()),
                }
                if let Err(why) = self.expand(&parents, level) {
                    return End::Out(why);
                }
                if self.ends_before(level + 1) && !self.control.ask.deadlocks {
                    return End::Found;
                }
            }
            level += 1;
        }
        End::Done
    }

    fn start(&mut self) -> Result<(), Why> {
        self.model.initial(&mut self.out);
        self.firsts.clear();
        self.firsts.extend([0, self.out.len() as u32]);
        self.note_flags(0, None);
        let positions = keep_sound_starts(&mut self.out);
        self.firsts[1] = self.out.len() as u32;
        let done = self.insert(&[], 0, Some(&positions));
        // Paths end at the initial states, also if not all of them found room.
        self.initial_states = self.log.len();
        done
    }

    /// A violation on a shorter path than any found from `level` on?
    fn ends_before(&self, level: u32) -> bool {
        !self.control.ask.keep_going && self.found.as_ref().is_some_and(|found| found.depth <= level)
    }

    fn states_per_block(&self) -> usize {
        let degree = self.stats.transitions / self.expanded.max(1);
        (BLOCK_SUCCESSORS / (degree as usize + 1)).max(16)
    }

    /// Expands a block of states of `level`.
    fn expand(&mut self, parents: &[u32], level: u32) -> Result<(), Why> {
        let width = self.model.width();
        self.out.clear();
        self.firsts.clear();
        for (index, state) in parents.chunks_exact(width).enumerate() {
            let first = self.out.len();
            self.firsts.push(first as u32);
            self.model.successors(state, &mut self.out);
            if first == self.out.len() || self.conventions.stuttering_is_deadlock {
                self.note_deadlock(state, self.expanded + index as u64, first, level);
            }
        }
        self.firsts.push(self.out.len() as u32);
        self.stats.transitions += self.out.len() as u64;
        self.note_flags(level + 1, Some(parents));
        self.insert(parents, level + 1, None)?;
        self.expanded += (parents.len() / width) as u64;
        Ok(())
    }

    fn note_deadlock(&mut self, state: &[u32], number: u64, first: usize, level: u32) {
        if is_deadlock(self.model, state, &self.out, first) {
            self.stats.deadlocks += 1;
            if self.control.ask.deadlocks {
                self.find(Found { what: What::Deadlock, number, step: None, depth: level });
            }
        }
    }

    /// Looks for steps that went wrong. Their places in the block are given the state they were taken in,
    /// which is known, so that the block can be inserted as it is.
    fn note_flags(&mut self, depth: u32, parents: Option<&[u32]>) {
        self.skip.clear();
        if self.out.steps().iter().fold(0, |all, &step| all | step) < Step::LIMIT {
            return;
        }
        let width = self.model.width();
        for parent in 0..self.firsts.len() - 1 {
            let first = self.firsts[parent];
            for position in first..self.firsts[parent + 1] {
                let step = self.out.step(position as usize);
                if step.is_plain() {
                    continue;
                }
                let what = if step.is_fault() { What::Fault } else { What::Assertion };
                if step.is_fault() {
                    self.stats.faults += 1;
                    if self.conventions.faults_absorb {
                        self.error_state.get_or_insert(depth);
                    } else if parents.is_some() {
                        self.stats.transitions -= 1;
                    }
                } else {
                    self.stats.failed_assertions += 1;
                }
                if let (true, Some(parents)) = (step.is_fault(), parents) {
                    self.out.state_mut(position as usize).copy_from_slice(&parents[parent * width..][..width]);
                    self.skip.push(position);
                }
                if self.control.ask.errors {
                    let number = self.expanded + parent as u64;
                    self.find(Found { what, number, step: Some(position - first), depth });
                }
            }
        }
    }

    /// Inserts the block, the successors of `parents`; what is fresh is logged, queued and checked. For initial states
    /// `starts` gives their positions.
    fn insert(&mut self, parents: &[u32], depth: u32, starts: Option<&[u32]>) -> Result<(), Why> {
        if self.store.wants_kinds() {
            self.kinds.clear();
            self.kinds.extend(self.out.iter().map(|(_, step)| self.model.kind(step)));
        }
        let (firsts, states, skip, kinds) = (&self.firsts, self.out.states(), &self.skip, &self.kinds);
        let block = Block { parents, firsts, states, skip, kinds, depth };
        let done = self.store.insert(block, &mut self.scratch, &mut self.fresh);
        self.stats.matched += (self.out.len() - self.fresh.len() - self.skip.len()) as u64;
        let mut parent = 0;
        for &position in &self.fresh {
            while self.firsts[parent + 1] <= position {
                parent += 1;
            }
            let state = self.out.state(position as usize);
            let number = self.log.len();
            let (from, position) = match starts {
                Some(positions) => (0, positions[position as usize]),
                None => (self.expanded + parent as u64, position - self.firsts[parent]),
            };
            self.log.push(from, position).map_err(log_failure)?;
            self.queue.push(state)?;
            self.stats.states += 1;
            if let Some(property) = self.model.violated(state) {
                self.stats.property_hits += 1;
                if self.control.ask.properties && self.found.as_ref().is_none_or(|found| found.depth > depth) {
                    self.found = Some(Found { what: What::Property(property), number, step: None, depth });
                }
            }
        }
        self.stats.frontier = self.queue.len();
        self.stats.widest_frontier = self.stats.widest_frontier.max(self.stats.frontier);
        done.map_err(|Full| Why::Memory)
    }

    fn find(&mut self, found: Found) {
        if self.found.as_ref().is_none_or(|best| found.depth < best.depth) {
            self.found = Some(found);
        }
    }

    fn verdict(&mut self, end: End) -> Verdict {
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
