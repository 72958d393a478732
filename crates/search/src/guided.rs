//! Guided search: states wait with a cost, and the cheapest is taken first. One loop for three orderings.
//!
//! - **Best first**: the cost is a guess of how far what is looked for is away. A state is entered into the store, and checked, when it is
//!   found. Only the nearest successor of a state is taken up; the state itself waits for its turn as if it were the next nearest (partial
//!   expansion, Yoshizumi, Miura and Ishida 2000), so that on a good way only the way is held. A state is expanded once more for each successor that is
//!   new, so there are at most two expansions for each state. Complete when nothing waits any more.
//! - **A\*** (Hart, Nilsson and Raphael 1968): the cost is the guess and the steps taken so far. A state is entered when it is taken, so it
//!   may wait several times, and the first time that it is taken it was reached by a shortest way, **provided that the guess is consistent**:
//!   it falls by at most one with each step. Then traces are shortest.
//! - **Beam**: level by level, and of each level only so many of the cheapest. What is dropped may be missed.

use crate::control::Control;
use crate::tally::Tally;
use crate::trace::is_deadlock;
use crate::verdict::{Outcome, Trace, Verdict, Violation, What, Why};
use crate::walk::Guess;
use plimsoll_model::{Model, Successors};
use plimsoll_store::heap::{Heap, make_room};
use plimsoll_store::region::Region;
use plimsoll_store::{Answer, Buffers, Chain, Full, Grant, Note};

/// States taken between two looks at the clock.
const STATES_PER_LOOK: u64 = 1024;
/// Words of an item before its state. Best first and in a beam it has been entered: its number, the guess of the next successor that is to be
/// taken up, its depth, the place of that successor. Else the number of its parent, its position among the successors, its depth.
const HEAD: usize = 4;
/// The parent of an initial state.
const NOBODY: u32 = u32::MAX;

/// Which state comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    Best,
    AStar,
    /// So many states of each level.
    Beam(u64),
}

/// What leads the search.
#[derive(Clone, Copy)]
pub enum Lead<'a> {
    Guess(Guess<'a>),
    /// Where nothing is known about what is looked for: states with few successors first, for deadlocks have none.
    FewSuccessors,
}

impl Lead<'_> {
    /// What a state seems to be away; `ahead` is for its successors.
    pub(crate) fn guess<M: Model + ?Sized>(&self, model: &M, state: &[u32], ahead: &mut Successors) -> u32 {
        match self {
            Lead::Guess(guess) => guess(state),
            Lead::FewSuccessors => {
                ahead.clear();
                model.successors(state, ahead);
                ahead.len() as u32
            }
        }
    }
}

/// Memory for a guided search, beside its store.
#[derive(Clone, Debug)]
pub struct GuidedRoom {
    pub waiting: Grant,
    /// For the way back from each state.
    pub log: Grant,
}

/// Searches `model` in this order.
pub fn guided<M: Model + ?Sized>(
    model: &M,
    ordering: Ordering,
    lead: Lead,
    store: &mut Chain,
    room: &GuidedRoom,
    control: &mut Control,
) -> Outcome {
    let width = model.width();
    let mut search = Guided {
        model,
        ordering,
        lead,
        store,
        tally: Tally::new(control.ask, model.conventions()),
        control,
        now: Heap::new(HEAD + width, room.waiting.clone()),
        next: Heap::new(HEAD + width, room.waiting.clone()),
        log: Region::new(room.log.clone()),
        logged: 0,
        out: Successors::new(width),
        ahead: Successors::new(width),
        buffers: Buffers::default(),
        fresh: Vec::new(),
        item: vec![0; HEAD + width],
        scratch: Vec::new(),
        guesses: Vec::new(),
        violation: None,
        cut: None,
    };
    let end = search.run().and_then(|()| search.control.stopped().map_or(Ok(()), Err));
    let stopped = search.violation.is_some() && !search.control.ask.keep_going;
    let complete = end.is_ok() && search.cut.is_none() && !stopped;
    search.outcome(end, complete)
}

struct Guided<'a, 'c, M: ?Sized> {
    model: &'a M,
    ordering: Ordering,
    lead: Lead<'a>,
    store: &'a mut Chain,
    control: &'a mut Control<'c>,
    tally: Tally,
    now: Heap,
    /// The next level of a beam.
    next: Heap,
    /// For each state entered, its parent and its position.
    log: Region,
    logged: u32,
    out: Successors,
    /// For looking at the successors of successors.
    ahead: Successors,
    buffers: Buffers,
    fresh: Vec<u32>,
    /// The state at hand, behind its head, and one that is put aside.
    item: Vec<u32>,
    scratch: Vec<u32>,
    /// Those of the successors at hand.
    guesses: Vec<u32>,
    violation: Option<Violation>,
    /// States may have been missed.
    cut: Option<Why>,
}

impl<M: Model + ?Sized> Guided<'_, '_, M> {
    fn run(&mut self) -> Result<(), Why> {
        let (mut part, mut first, mut more) = (0, 0, true);
        while more {
            self.out.clear();
            more = self.model.initial_part(part, &mut self.out);
            self.check_patience()?;
            self.offer_all(NOBODY, first, 0)?;
            (part, first) = (part + 1, first + self.out.len() as u32);
        }
        while !self.is_over() {
            if let Ordering::Beam(most) = self.ordering {
                self.take_level(most)?;
            }
            if self.now.is_empty() {
                return Ok(());
            }
            while let Some(_cost) = self.now.pop(&mut self.item) {
                self.take()?;
                if self.is_over() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The best of the next level become this one.
    fn take_level(&mut self, most: u64) -> Result<(), Why> {
        while self.now.len() < usize::try_from(most).unwrap_or(usize::MAX) {
            let Some(cost) = self.next.pop(&mut self.item) else { break };
            self.now.push(cost, &self.item).map_err(|Full| Why::Memory)?;
        }
        if !self.next.is_empty() {
            self.cut = Some(Why::Lossy);
            self.next.clear();
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

    /// Expands the state at hand.
    fn take(&mut self) -> Result<(), Why> {
        let [parent, position, depth, next] = [0, 1, 2, 3].map(|word| self.item[word]);
        let state = std::mem::take(&mut self.item);
        let expanded = self.expand(&state[HEAD..], parent, position, depth, next);
        self.item = state;
        expanded
    }

    fn expand(&mut self, state: &[u32], parent: u32, position: u32, depth: u32, next: u32) -> Result<(), Why> {
        let (number, since) = match self.enters_late() {
            false => (parent, position),
            true => match self.enter(state, parent, position, depth)? {
                Some(number) => (number, 0),
                None => return Ok(()),
            },
        };
        if self.control.limits.depth.is_some_and(|limit| depth >= limit) {
            self.cut = Some(Why::Depth);
            return Ok(());
        }
        self.out.clear();
        self.model.successors(state, &mut self.out);
        self.check_patience()?;
        if since == 0 {
            self.tally.stats.transitions += self.out.len() as u64;
            if is_deadlock(self.model, state, &self.out, 0..self.out.len()) {
                let what = self.tally.deadlocks(1);
                self.find(what, number, None);
            }
            for index in (0..self.out.len()).filter(|&index| self.out.step(index).is_fault()) {
                self.control.watch.fault(state, self.out.step(index));
            }
        }
        match self.ordering {
            Ordering::Best => self.offer_nearest(state, number, (since, next), depth),
            Ordering::AStar | Ordering::Beam(_) => self.offer_all(number, 0, depth + 1),
        }
    }

    /// Puts aside the nearest successor of a state from a guess and a place on that is new, and the state itself for the others.
    fn offer_nearest(&mut self, state: &[u32], number: u32, since: (u32, u32), depth: u32) -> Result<(), Why> {
        if since.0 == 0 {
            self.note_wrong(number, 0, depth + 1);
        }
        self.guesses.clear();
        for index in 0..self.out.len() {
            let successor = self.out.state(index);
            let guess = match self.out.step(index).is_fault() {
                true => u32::MAX,
                // Zero says that none was taken up yet.
                false => self.lead.guess(self.model, successor, &mut self.ahead).saturating_add(1).min(u32::MAX - 1),
            };
            self.guesses.push(guess);
        }
        let mut since = since;
        while let Some((guess, rank)) = self.next_nearest(since) {
            let index = self.out.len() as u32 - 1 - rank;
            let successor = self.out.state(index as usize).to_vec();
            let entered = self.enter(&successor, number, index, depth + 1)?;
            let after = self.next_nearest((guess, rank + 1));
            if let Some(entered) = entered {
                self.put_aside(guess, self.logged, [entered, 0, depth + 1, 0], &successor)?;
            }
            match after {
                // What was known is no reason to wait for what is as near.
                Some(other) if entered.is_none() && other.0 == guess => since = other,
                Some((other, rank)) if !self.is_over() => {
                    return self.put_aside(other, number, [number, other, depth, rank], state);
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// The nearest of the successors at hand from there on, by guess and place; places count from the last one.
    fn next_nearest(&self, since: (u32, u32)) -> Option<(u32, u32)> {
        let all = self.guesses.iter().rev().copied().zip(0u32..);
        all.filter(|&next| next.0 < u32::MAX && next >= since).min()
    }

    fn is_over(&self) -> bool {
        self.violation.is_some() && !self.control.ask.keep_going
    }

    fn enters_late(&self) -> bool {
        self.ordering == Ordering::AStar
    }

    /// Notes which successors of a state, or initial states from number `first` on, went wrong.
    fn note_wrong(&mut self, parent: u32, first: u32, depth: u32) {
        for index in 0..self.out.len() {
            let step = self.out.step(index);
            if !step.is_plain() {
                let what = self.tally.wrong(step, depth, parent == NOBODY);
                self.find(what, parent, Some(first + index as u32));
            }
        }
    }

    /// Puts aside all successors of a state, or initial states from number `first` on; those that went wrong are noted.
    fn offer_all(&mut self, parent: u32, first: u32, depth: u32) -> Result<(), Why> {
        self.note_wrong(parent, first, depth);
        for index in 0..self.out.len() {
            if !self.out.step(index).is_fault() && !self.is_over() {
                let state = self.out.state(index).to_vec();
                self.offer(&state, parent, first + index as u32, depth)?;
            }
        }
        Ok(())
    }

    fn offer(&mut self, state: &[u32], parent: u32, position: u32, depth: u32) -> Result<(), Why> {
        let head = match self.enters_late() {
            true => [parent, position, depth, 0],
            false => match self.enter(state, parent, position, depth)? {
                Some(number) => [number, 0, depth, 0],
                None => return Ok(()),
            },
        };
        let guess = self.lead.guess(self.model, state, &mut self.ahead);
        let cost = if self.enters_late() { guess.saturating_add(depth) } else { guess };
        self.put_aside(cost, depth, head, state)
    }

    /// Among equals the last comes first: what was found last, so that a way is followed to its end, or what is further away.
    fn put_aside(&mut self, cost: u32, last: u32, head: [u32; HEAD], state: &[u32]) -> Result<(), Why> {
        let cost = u64::from(cost) << 32 | u64::from(u32::MAX - last);
        self.scratch.clear();
        self.scratch.extend_from_slice(&head);
        self.scratch.extend_from_slice(state);
        let pile = if matches!(self.ordering, Ordering::Beam(_)) { &mut self.next } else { &mut self.now };
        pile.push(cost, &self.scratch).map_err(|Full| Why::Memory)?;
        let stats = &mut self.tally.stats;
        stats.frontier = (self.now.len() + self.next.len()) as u64;
        stats.widest_frontier = stats.widest_frontier.max(stats.frontier);
        Ok(())
    }

    /// Enters a state into the store and checks it; its number, if it is new.
    fn enter(&mut self, state: &[u32], parent: u32, position: u32, depth: u32) -> Result<Option<u32>, Why> {
        match self.store.enter(state, Note::default(), &mut self.buffers, &mut self.fresh) {
            Answer::Full => return Err(Why::Memory),
            Answer::Known => {
                self.tally.stats.matched += 1;
                return Ok(None);
            }
            Answer::New(_) => {}
        }
        let number = self.logged;
        make_room(&mut self.log, (number as usize + 1) * 8).map_err(|Full| Why::Memory)?;
        self.log.words_mut()[number as usize * 2..][..2].copy_from_slice(&[parent, position]);
        self.logged = number.checked_add(1).filter(|&next| next != NOBODY).ok_or(Why::Memory)?;
        let stats = &mut self.tally.stats;
        stats.states += 1;
        stats.depth = stats.depth.max(depth);
        self.control.room.keep(depth + 1)?;
        if stats.states.is_multiple_of(STATES_PER_LOOK) || self.control.limits.states.is_some() {
            let look = stats.states.is_multiple_of(STATES_PER_LOOK);
            if let Some(why) = self.control.must_end(look, stats, &self.store.tiers) {
                return Err(why);
            }
        }
        if let Some(property) = self.model.violated(state) {
            let what = self.tally.hit(property);
            self.find(what, number, None);
        }
        Ok(Some(number))
    }

    fn find(&mut self, what: Option<What>, number: u32, step: Option<u32>) {
        if let (Some(what), None) = (what, &self.violation) {
            let mut positions: Vec<u32> = step.into_iter().collect();
            let (mut at, log) = (number, self.log.words_mut());
            while at != NOBODY {
                positions.push(log[at as usize * 2 + 1]);
                at = log[at as usize * 2];
            }
            positions.reverse();
            self.violation = Some(Violation { what, trace: Trace { positions } });
        }
    }

    fn outcome(mut self, end: Result<(), Why>, complete: bool) -> Outcome {
        self.tally.count_error_state();
        let verdict = Verdict::of(self.violation.take(), end, self.cut);
        let mut stats = self.tally.stats;
        stats.frontier = (self.now.len() + self.next.len()) as u64;
        stats.look_at(&self.store.tiers);
        self.control.watch.counts(&stats);
        Outcome { verdict, stats, complete }
    }
}
