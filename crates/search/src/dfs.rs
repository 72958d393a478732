//! Depth-first search: a state is inserted into the store when it is entered, and its successors wait on
//! the stack. The stack is the trace.

use crate::control::{Control, Stats};
use crate::trace::{is_deadlock, keep_sound_starts};
use crate::verdict::{Outcome, Trace, Verdict, Violation, What, Why};
use plimsoll_model::{Conventions, Model, Successors};
use plimsoll_store::{Chain, Full, Scratch, Stack};

/// States entered between two looks at limits.
const STATES_PER_LOOK: u64 = 256;

/// Searches `model` depth first.
pub fn dfs<M: Model + ?Sized>(model: &M, store: &mut Chain, stack: &mut Stack, control: &mut Control) -> Outcome {
    let mut search = Dfs {
        model,
        store,
        stack,
        control,
        conventions: model.conventions(),
        stats: Stats::default(),
        out: Successors::new(model.width()),
        fresh: Vec::new(),
        scratch: Scratch::default(),
        starts: Vec::new(),
        violation: None,
        error_state: false,
        cut: false,
    };
    let end = search.run();
    let complete = end.is_ok() && !search.cut && search.stack.depth() == 0;
    let verdict = search.verdict(end);
    search.stats.frontier = search.stack.depth() as u64;
    (search.control.watch)(&search.stats);
    Outcome { verdict, stats: search.stats, complete }
}

struct Dfs<'a, 'c, M: ?Sized> {
    model: &'a M,
    store: &'a mut Chain,
    stack: &'a mut Stack,
    control: &'a mut Control<'c>,
    conventions: Conventions,
    stats: Stats,
    out: Successors,
    fresh: Vec<u32>,
    scratch: Scratch,
    /// The positions of the initial states.
    starts: Vec<u32>,
    violation: Option<Violation>,
    error_state: bool,
    /// A state was not expanded because of the depth limit.
    cut: bool,
}

impl<M: Model + ?Sized> Dfs<'_, '_, M> {
    fn run(&mut self) -> Result<(), Why> {
        let mut state = vec![0; self.model.width()];
        self.model.initial(&mut self.out);
        self.note_flags(None);
        self.starts = keep_sound_starts(&mut self.out);
        self.push()?;
        while self.stack.depth() > 0 {
            if !self.stack.next(&mut state) {
                self.stack.pop();
                continue;
            }
            self.store.reserve(1).map_err(|Full| Why::Memory)?;
            self.store.insert(&state, &mut self.scratch, &mut self.fresh).map_err(|Full| Why::Memory)?;
            if self.fresh.is_empty() {
                continue;
            }
            self.stats.states += 1;
            if self.stats.states.is_multiple_of(STATES_PER_LOOK) || self.control.limits.states.is_some() {
                let block = (self.stats.states / STATES_PER_LOOK) as u32;
                if let Some(why) = self.control.must_end(block, &self.stats) {
                    return Err(why);
                }
            }
            self.enter(&state)?;
            if self.violation.is_some() && !self.control.ask.keep_going {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Checks a fresh state and puts its successors on the stack.
    fn enter(&mut self, state: &[u32]) -> Result<(), Why> {
        let depth = self.stack.depth() as u32 - 1;
        self.stats.depth = self.stats.depth.max(depth);
        if let Some(property) = self.model.violated(state) {
            self.stats.property_hits += 1;
            if self.control.ask.properties {
                self.find(What::Property(property), None);
            }
        }
        if self.control.limits.depth.is_some_and(|limit| depth >= limit) {
            self.cut = true;
            return Ok(());
        }
        self.out.clear();
        self.model.successors(state, &mut self.out);
        self.stats.transitions += self.out.len() as u64;
        if is_deadlock(self.model, state, &self.out, 0) {
            self.stats.deadlocks += 1;
            if self.control.ask.deadlocks {
                self.find(What::Deadlock, None);
            }
        }
        self.note_flags(Some(state));
        self.push()
    }

    /// Looks for steps that went wrong. They keep their position and are given the state they were taken in,
    /// which is known.
    fn note_flags(&mut self, state: Option<&[u32]>) {
        for position in 0..self.out.len() {
            let step = self.out.step(position);
            if step.is_plain() {
                continue;
            }
            if step.is_fault() {
                self.stats.faults += 1;
                if self.conventions.faults_absorb {
                    self.error_state = true;
                } else if state.is_some() {
                    self.stats.transitions -= 1;
                }
            } else {
                self.stats.failed_assertions += 1;
            }
            if let (true, Some(state)) = (step.is_fault(), state) {
                self.out.state_mut(position).copy_from_slice(state);
            }
            if self.control.ask.errors {
                let what = if step.is_fault() { What::Fault } else { What::Assertion };
                self.find(what, Some(position as u32));
            }
        }
    }

    fn push(&mut self) -> Result<(), Why> {
        self.stack.push(self.out.states()).map_err(|Full| Why::Memory)
    }

    fn find(&mut self, what: What, step: Option<u32>) {
        if self.violation.is_none() {
            let mut positions = self.stack.positions();
            if let Some(start) = positions.first_mut() {
                *start = self.starts[*start as usize];
            }
            positions.extend(step);
            self.violation = Some(Violation { what, trace: Trace { positions } });
        }
    }

    fn verdict(&mut self, end: Result<(), Why>) -> Verdict {
        if self.error_state {
            self.stats.states += 1;
            self.stats.deadlocks += 1;
        }
        match (self.violation.take(), end) {
            (Some(violation), _) => Verdict::Violated(violation),
            (None, Err(why)) => Verdict::Unknown(why),
            (None, Ok(())) if self.cut => Verdict::Unknown(Why::Depth),
            (None, Ok(())) => Verdict::Holds,
        }
    }
}
