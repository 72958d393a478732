//! Depth-first search: a state is inserted into the store when it is entered, and its successors wait on
//! the stack. The stack is the trace.
//!
//! A store that forgets is told to keep the states on the current path. **Then the search ends and is complete**
//! (Godefroid et al. 1992; Jard and Jéron 1991): no state occurs twice on a path, so paths are finite, and so
//! is the tree of all of them; and a state is skipped only if it is held, hence was entered, and all its
//! successors were or will be. A path that fills the store is `Unknown`.
//!
//! With a store that may take states for others the stack is bounded: what would make it longer than its memory allows is
//! not followed, and the search goes on elsewhere. That is `Unknown` in the end, but it sees as much as it can.

use crate::control::Control;
use crate::observe::{Observer, Teller};
use crate::sleep::{self, Rule, Sleep};
use crate::tally::Tally;
use crate::trace::{is_deadlock, keep_sound_starts};
use crate::verdict::{Outcome, Trace, Verdict, Violation, What, Why};
use plimsoll_model::{Model, Step, Successors};
use plimsoll_store::{Answer, Buffers, Chain, Note, Place, Stack};

/// States entered between two looks at limits, and at the clock.
const STATES_PER_CHECK: u64 = 256;
const STATES_PER_LOOK: u64 = 8192;

/// Searches `model` depth first. The stack must have items of [`item_words`].
pub fn dfs<M: Model + ?Sized>(model: &M, store: &mut Chain, stack: &mut Stack, control: &mut Control) -> Outcome {
    search(model, store, stack, None, None, control)
}

/// The same while somebody looks on.
pub fn observed_dfs<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    stack: &mut Stack,
    observer: &mut dyn Observer,
    control: &mut Control,
) -> Outcome {
    let teller = Teller::new(observer, store);
    search(model, store, stack, None, Some(teller), control)
}

/// Searches `model` depth first with sleep sets. The stack must have items of [`Sleep::item_words`].
pub fn sleeping_dfs<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    stack: &mut Stack,
    sleep: &mut Sleep,
    control: &mut Control,
) -> Outcome {
    search(model, store, stack, Some(sleep), None, control)
}

/// Words per successor on the stack: for a cache its step and position are kept too.
pub fn item_words(width: usize, store: &Chain) -> usize {
    if store.is_cache() { Sleep::item_words(width) } else { width }
}

fn search<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    stack: &mut Stack,
    sleep: Option<&mut Sleep>,
    teller: Option<Teller>,
    control: &mut Control,
) -> Outcome {
    let (marked, wants_kinds) = (store.is_cache() || sleep.is_some(), store.wants_kinds());
    let mut search = Dfs {
        model,
        store,
        stack,
        sleep,
        teller,
        marked,
        wants_kinds,
        tally: Tally::new(control.ask, model.conventions()),
        control,
        out: Successors::new(model.width()),
        fresh: Vec::new(),
        items: Vec::new(),
        buffers: Buffers::default(),
        starts: Vec::new(),
        first_start: 0,
        violation: None,
        lossy: false,
        cut: None,
    };
    search.lossy = search.store.tiers.odds().is_some();
    let end = search.run().and_then(|()| search.control.stopped().map_or(Ok(()), Err));
    if search.sleep.as_ref().is_some_and(|sleep| sleep.rule == Rule::Published) {
        search.cut.get_or_insert(Why::Lossy);
    }
    let complete = end.is_ok() && search.cut.is_none() && search.stack.depth() == 0 && !search.lossy;
    let verdict = search.verdict(end);
    let mut stats = search.tally.stats;
    stats.frontier = search.stack.depth() as u64;
    stats.look_at(&search.store.tiers);
    search.control.watch.counts(&stats);
    Outcome { verdict, stats, complete }
}

struct Dfs<'a, 'c, 't, M: ?Sized> {
    model: &'a M,
    store: &'a mut Chain,
    stack: &'a mut Stack,
    sleep: Option<&'a mut Sleep>,
    /// Who tells somebody that looks on.
    teller: Option<Teller<'t>>,
    /// Items on the stack have a step and a position.
    marked: bool,
    wants_kinds: bool,
    control: &'a mut Control<'c>,
    tally: Tally,
    out: Successors,
    fresh: Vec<u32>,
    /// The next frame, if items are marked.
    items: Vec<u32>,
    buffers: Buffers,
    /// The positions of the initial states of this part, and of the first one, were it sound.
    starts: Vec<u32>,
    first_start: u32,
    violation: Option<Violation>,
    /// The store may take states for others.
    lossy: bool,
    /// Why states may have been missed: one was not expanded because of the depth limit, the stack was full, or the rule
    /// loses some.
    cut: Option<Why>,
}

impl<M: Model + ?Sized> Dfs<'_, '_, '_, M> {
    fn run(&mut self) -> Result<(), Why> {
        let width = self.model.width();
        let mut item = vec![0; if self.marked { Sleep::item_words(width) } else { width }];
        let (mut part, mut first, mut more) = (0, 0, true);
        while more {
            self.out.clear();
            more = self.model.initial_part(part, &mut self.out);
            self.check_patience()?;
            let next = first + self.out.len() as u32;
            self.first_start = first;
            self.note_flags(None)?;
            self.starts = keep_sound_starts(&mut self.out, first);
            (part, first) = (part + 1, next);
            if let Some(teller) = &mut self.teller {
                teller.starts(&self.out)?;
            }
            self.push(Place::NOWHERE, true)?;
            while self.stack.depth() > 0 {
                if !self.stack.next(&mut item) {
                    self.leave()?;
                    continue;
                }
                self.visit(&item[..width], item.get(width).copied())?;
                if self.violation.is_some() && !self.control.ask.keep_going {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The model may have given up, and then its answers mean nothing.
    fn check_patience(&self) -> Result<(), Why> {
        match self.control.stopped().or(self.out.gave_up().map(Why::from)) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// The state just taken from the stack, to which `step` led.
    fn visit(&mut self, state: &[u32], step: Option<u32>) -> Result<(), Why> {
        let mut note = Note::default();
        if let Some(step) = step {
            note.depth = self.stack.depth() as u32 - 1;
            if self.wants_kinds && step != sleep::START {
                note.kind = self.model.kind(Step(step));
            }
        }
        match self.store.enter(state, note, &mut self.buffers, &mut self.fresh) {
            Answer::Full => Err(Why::Memory),
            Answer::New(place) => {
                let stats = &mut self.tally.stats;
                stats.states += 1;
                if stats.states.is_multiple_of(STATES_PER_CHECK) || self.control.limits.states.is_some() {
                    let look = stats.states.is_multiple_of(STATES_PER_LOOK);
                    if let Some(why) = self.control.must_end(look, stats, &self.store.tiers) {
                        return Err(why);
                    }
                }
                self.enter(state, place)
            }
            Answer::Known => {
                self.tally.stats.matched += 1;
                if let Some(sleep) = &mut self.sleep {
                    sleep.met(state, self.stack);
                }
                Ok(())
            }
        }
    }

    /// Checks a fresh state and puts its successors on the stack.
    fn enter(&mut self, state: &[u32], place: Place) -> Result<(), Why> {
        if let Some(teller) = &mut self.teller {
            teller.entered(self.store, state)?;
        }
        let depth = self.stack.depth() as u32 - 1;
        self.tally.stats.depth = self.tally.stats.depth.max(depth);
        let has_room = self.control.room.keep(depth + 1);
        if let Some(property) = self.model.violated(state) {
            let what = self.tally.hit(property);
            self.find(what, None)?;
        }
        if let Err(why) = has_room {
            return self.cut_short(why);
        }
        if self.control.limits.depth.is_some_and(|limit| depth >= limit) {
            self.cut = Some(Why::Depth);
            self.store.unpin(place);
            return Ok(());
        }
        self.out.clear();
        self.model.successors(state, &mut self.out);
        self.check_patience()?;
        self.tally.stats.transitions += self.out.len() as u64;
        if let Some(sleep) = &mut self.sleep {
            sleep.enter(self.model, state, self.stack)?;
            sleep.look_at(&self.out);
        }
        if is_deadlock(self.model, state, &self.out, 0..self.out.len()) {
            let what = self.tally.deadlocks(1);
            self.find(what, None)?;
        }
        self.note_flags(Some(state))?;
        if let Some(teller) = &mut self.teller {
            teller.leads_to(self.store, &self.out)?;
        }
        self.store.count_successors(place, self.out.len());
        self.push(place, false).or_else(|why| self.cut_short(why))
    }

    /// There is no memory for the successors of a state: the end, unless the stack is bounded. Sleep sets are on a stack of
    /// their own, which would be out of step.
    fn cut_short(&mut self, why: Why) -> Result<(), Why> {
        if why != Why::Memory || !self.lossy || self.sleep.is_some() {
            return Err(why);
        }
        self.cut = Some(why);
        Ok(())
    }

    /// Looks for steps that went wrong. They keep their position and are given the state they were taken in,
    /// which is known.
    fn note_flags(&mut self, state: Option<&[u32]>) -> Result<(), Why> {
        for position in 0..self.out.len() {
            let step = self.out.step(position);
            if step.is_plain() {
                continue;
            }
            if let (true, Some(state)) = (step.is_fault(), state) {
                self.out.state_mut(position).copy_from_slice(state);
                self.control.watch.fault(state, step);
            }
            let what = self.tally.wrong(step, self.stack.depth() as u32, state.is_none());
            let first = if state.is_some() { 0 } else { self.first_start };
            self.find(what, Some(first + position as u32))?;
        }
        Ok(())
    }

    /// Puts the successors of the state at `place` on the stack, except for those that sleep.
    fn push(&mut self, place: Place, initial: bool) -> Result<(), Why> {
        if self.out.len() > 1 {
            self.store.expect(self.out.states(), &mut self.buffers);
        }
        if !self.marked {
            return self.stack.push(self.out.states(), place.number()).map_err(Why::from);
        }
        self.items.clear();
        for (position, (successor, step)) in self.out.iter().enumerate() {
            if step.is_fault() {
                continue;
            }
            if !initial && self.sleep.as_ref().is_some_and(|sleep| sleep.sleeps(step)) {
                self.tally.stats.transitions -= 1;
                continue;
            }
            self.items.extend_from_slice(successor);
            self.items.extend([if initial { sleep::START } else { step.instance() }, position as u32]);
        }
        if let Some(sleep) = self.sleep.as_mut().filter(|_| !initial) {
            sleep.push()?;
        }
        self.stack.push(&self.items, place.number()).map_err(Why::from)
    }

    /// All successors of the state on top were tried.
    fn leave(&mut self) -> Result<(), Why> {
        let place = Place::from_number(self.stack.pop()?);
        if place != Place::NOWHERE {
            self.store.unpin(place);
        }
        if let Some(sleep) = self.sleep.as_mut().filter(|_| self.stack.depth() > 0) {
            sleep.pop()?;
        }
        Ok(())
    }

    fn find(&mut self, what: Option<What>, step: Option<u32>) -> Result<(), Why> {
        if let Some(what) = what
            && self.violation.is_none()
        {
            let word = self.model.width() + 1;
            let mut positions = match self.marked {
                true => self.stack.path(|_, item| item[word])?,
                false => self.stack.positions()?,
            };
            if let Some(start) = positions.first_mut() {
                *start = self.starts[*start as usize];
            }
            positions.extend(step);
            self.violation = Some(Violation { what, trace: Trace { positions } });
        }
        Ok(())
    }

    fn verdict(&mut self, end: Result<(), Why>) -> Verdict {
        self.tally.count_error_state();
        if !self.marked {
            // Steps that went wrong led back to the state they were taken in, which was known.
            self.tally.stats.matched = self.tally.stats.matched.saturating_sub(self.tally.stats.faults);
        }
        match (self.violation.take(), end) {
            (Some(violation), _) => Verdict::Violated(violation),
            (None, Err(why)) => Verdict::Unknown(why),
            (None, Ok(())) => match (self.cut.take(), self.store.tiers.odds()) {
                (Some(why), _) => Verdict::Unknown(why),
                (None, None) => Verdict::Holds,
                (None, Some(odds)) => Verdict::HoldsUnless(odds),
            },
        }
    }
}
