//! Walks: searches that remember their path and hardly anything else. They go in rounds, and a round has two parts: some
//! steps are drawn, one successor of each state and no way back; from there everything within some more steps is tried.
//!
//! A random walk draws all its steps. With local exhaustion it draws some and then tries everything nearby. Depth-first search
//! without visited states draws none; rounds that go deeper each time make it iterative deepening, and bounded by a guess of
//! what is still missing it is IDA* (Korf 1985). A swarm draws none either, but tries successors in another random order
//! each round (Holzmann, Joshi and Groce 2008). What is tried goes back where it meets its own path, or a state that a small table
//! of fingerprints remembers of this round. **Without such a table no state on a shorter path is ever left out**, so what was
//! not cut was complete, and what was cut at a depth was complete to that depth.
//!
//! Rounds that do not depend on each other are shared by workers. They count in their order, whoever is done first, so that
//! the report does not depend on who took which.

mod rounds;

pub use rounds::{Gait, Guess};

use crate::control::{Ask, Control, Limits, Stats};
use crate::draw::Draw;
use crate::tally::Tally;
use crate::trace::{is_deadlock, keep_sound_starts};
use crate::verdict::{Outcome, Trace, Verdict, Violation, What, Why};
use plimsoll_model::{Model, Successors};
use plimsoll_store::cache::Distinct;
use plimsoll_store::region::Region;
use plimsoll_store::{Grant, Stack, hash};
use rounds::Round;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Visits between two looks at limits.
const VISITS_PER_LOOK: u64 = 256;
/// Parts of the initial states that a drawn walk may begin in.
const MOST_PARTS: u32 = 64;
/// Bytes of stack for a worker.
const STACK_BYTES: usize = 1 << 20;
/// Depths between two requests for room for the path.
const DEPTHS_PER_REQUEST: u32 = 1024;

/// Memory for walks.
#[derive(Clone, Debug)]
pub struct WalkRoom {
    /// For the paths, and for the states that wait beside them.
    pub stack: Grant,
    /// For fingerprints, if the gait remembers any: so many bytes for each worker.
    pub table: Grant,
    pub table_bytes: u64,
}

/// Walks through `model`, with so many workers if rounds can be shared.
pub fn walk<M: Model + ?Sized>(
    model: &M,
    gait: &Gait,
    seed: u64,
    workers: usize,
    room: &WalkRoom,
    control: &mut Control,
) -> Outcome {
    let (ask, limits, stop) = (control.ask, control.limits, control.stop);
    let board = Board {
        control,
        stats: Stats::default(),
        seen: Distinct::new(0),
        next: 0,
        waiting: BTreeMap::new(),
        begun: 0,
        bound: gait.first_bound(limits.depth),
        violation: None,
        end: None,
    };
    let walks = Walks { model, gait, seed, ask, limits, stop, board: Mutex::new(board), over: AtomicBool::new(false) };
    let workers = if gait.is_shared() { workers.max(1) } else { 1 };
    thread::scope(|scope| {
        for _ in 1..workers {
            let work = || walks.work(room);
            // Where no thread can be had, those that there are must do.
            let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        }
        walks.work(room);
    });
    let board = walks.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    board.outcome(gait)
}

/// Why there are no more rounds.
#[derive(Clone, Debug)]
enum End {
    /// Everything was tried.
    Done,
    /// Everything within so many steps was tried.
    ToDepth(u32),
    Found,
    Out(Why),
}

struct Walks<'a, 'c, M: ?Sized> {
    model: &'a M,
    gait: &'a Gait<'a>,
    seed: u64,
    ask: Ask,
    limits: Limits,
    stop: &'c AtomicBool,
    board: Mutex<Board<'a, 'c>>,
    /// No round counts any more.
    over: AtomicBool,
}

/// Where rounds are handed out and counted.
struct Board<'a, 'c> {
    control: &'a mut Control<'c>,
    stats: Stats,
    seen: Distinct,
    /// The round that counts next.
    next: u64,
    waiting: BTreeMap<u64, Walked>,
    begun: u64,
    /// Of the next round, where rounds go deeper.
    bound: u32,
    violation: Option<Violation>,
    end: Option<End>,
}

/// What a round found.
struct Walked {
    stats: Stats,
    seen: Distinct,
    violation: Option<Violation>,
    /// How far the next round must go to see more; nothing if there is no more.
    beyond: Option<u32>,
    bound: u32,
    end: Result<(), Why>,
}

impl<'a, 'c, M: Model + ?Sized> Walks<'a, 'c, M> {
    fn board(&self) -> MutexGuard<'_, Board<'a, 'c>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_late(&self) -> bool {
        self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Was everybody told to end?
    fn stopped(&self) -> Option<Why> {
        let stopped = self.stop.load(Ordering::Relaxed);
        stopped.then(|| if self.is_late() { Why::Time } else { Why::Interrupted })
    }

    /// Takes rounds as long as they count.
    fn work(&self, room: &WalkRoom) {
        let mut walker = Walker::new(self, room);
        while !self.over.load(Ordering::Relaxed) {
            let (number, bound) = {
                let mut board = self.board();
                board.begun += 1;
                (board.begun - 1, board.bound)
            };
            let walked = walker.round(number, bound);
            let mut board = self.board();
            board.waiting.insert(number, walked);
            board.count(self);
            if board.end.is_some() {
                self.over.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Board<'_, '_> {
    /// Counts the rounds that are done, in their order.
    fn count<M: ?Sized>(&mut self, walks: &Walks<'_, '_, M>) {
        while let (None, Some(walked)) = (&self.end, self.waiting.remove(&self.next)) {
            self.next += 1;
            self.stats.add(&walked.stats);
            self.seen.merge(&walked.seen);
            self.violation = self.violation.take().or(walked.violation);
            self.end = match (walked.end, walked.beyond) {
                _ if self.violation.is_some() && !walks.ask.keep_going => Some(End::Found),
                (Err(why), _) => Some(End::Out(why)),
                (Ok(()), None) if walks.gait.is_complete() => Some(End::Done),
                // There is no initial state, or none where it was looked for.
                (Ok(()), _) if walked.stats.states == 0 => Some(End::Out(Why::Lossy)),
                (Ok(()), Some(_)) if walks.gait.ends_at(walked.bound, walks.limits.depth) => {
                    Some(End::ToDepth(walked.bound))
                }
                (Ok(()), beyond) => {
                    if !walks.gait.is_shared() {
                        self.bound = beyond.unwrap_or(walked.bound).max(walked.bound);
                    }
                    walks.limits.states.filter(|&limit| self.stats.states >= limit).map(|_| End::Out(Why::States))
                }
            };
            self.stats.distinct = self.seen.estimate().min(self.stats.states);
            self.stats.forgotten = self.stats.states;
            self.control.watch.counts(&self.stats);
        }
    }

    fn outcome(mut self, gait: &Gait) -> Outcome {
        let end = self.end.take().unwrap_or(End::Out(Why::Interrupted));
        let end = match self.control.stopped() {
            Some(why) if matches!(end, End::Done | End::ToDepth(_)) => End::Out(why),
            _ => end,
        };
        let complete = matches!(end, End::Done);
        let verdict = match (self.violation.take(), end) {
            (Some(violation), _) => Verdict::Violated(violation),
            (None, End::Done) => Verdict::Holds,
            // Where a guess bounds the search, nothing is known about depths.
            (None, End::ToDepth(_)) if gait.is_guided() => Verdict::Unknown(Why::Depth),
            (None, End::ToDepth(depth)) => Verdict::HoldsToDepth(depth),
            (None, End::Out(why)) => Verdict::Unknown(why),
            (None, End::Found) => unreachable!("there is a violation"),
        };
        Outcome { verdict, stats: self.stats, complete }
    }
}

/// The states on the path, where they are compared with: end to end, each behind its hash.
struct Path {
    width: usize,
    depth: usize,
    words: Region,
}

impl Path {
    fn has(&mut self, state: &[u32], hash: u64) -> bool {
        let halves = [hash as u32, (hash >> 32) as u32];
        let mut states = self.words.words_mut().chunks_exact(self.width + 2).take(self.depth);
        states.any(|other| other[..2] == halves && other[2..] == *state)
    }

    /// Puts a state on the path, behind so many others.
    fn enter(&mut self, state: &[u32], hash: u64, depth: usize) -> Result<(), Why> {
        let words = self.width + 2;
        let bytes = (depth + 1) * words * 4;
        if bytes > self.words.bytes() && !self.words.grow(bytes + bytes / 2) && !self.words.grow(bytes) {
            return Err(Why::Memory);
        }
        let place = &mut self.words.words_mut()[depth * words..][..words];
        (place[0], place[1]) = (hash as u32, (hash >> 32) as u32);
        place[2..].copy_from_slice(state);
        self.depth = depth + 1;
        Ok(())
    }
}

/// One worker on its way.
struct Walker<'w, 'a, 'c, M: ?Sized> {
    walks: &'w Walks<'a, 'c, M>,
    stack: Stack,
    table: Region,
    table_bytes: usize,
    path: Path,
    out: Successors,
    items: Vec<u32>,
    choices: Vec<u32>,
    tally: Tally,
    seen: Distinct,
    draw: Draw,
    round: Round,
    salt: u64,
    violation: Option<Violation>,
    beyond: Option<u32>,
    depth_kept: u32,
}

impl<'w, 'a, 'c, M: Model + ?Sized> Walker<'w, 'a, 'c, M> {
    fn new(walks: &'w Walks<'a, 'c, M>, room: &WalkRoom) -> Walker<'w, 'a, 'c, M> {
        let width = walks.model.width();
        Walker {
            walks,
            stack: Stack::new(width + 1, room.stack.clone()),
            table: Region::new(room.table.clone()),
            table_bytes: usize::try_from(room.table_bytes).unwrap_or(usize::MAX),
            path: Path { width, depth: 0, words: Region::new(room.stack.clone()) },
            out: Successors::new(width),
            items: Vec::new(),
            choices: Vec::new(),
            tally: Tally::new(walks.ask, walks.model.conventions()),
            seen: Distinct::new(0),
            draw: Draw::new(0),
            round: Round::default(),
            salt: 0,
            violation: None,
            beyond: None,
            depth_kept: 0,
        }
    }

    /// One round from an initial state.
    fn round(&mut self, number: u64, bound: u32) -> Walked {
        self.draw = Draw::of(self.walks.seed, number);
        self.salt = self.draw.bits();
        self.round = self.walks.gait.round(number, bound, &mut self.draw);
        if self.walks.gait.is_shared() {
            self.round.visits = self.round.visits.min(self.walks.limits.states.unwrap_or(u64::MAX));
        }
        self.path.depth = 0;
        self.tally = Tally::new(self.walks.ask, self.walks.model.conventions());
        self.seen = Distinct::new(0);
        (self.violation, self.beyond) = (None, None);
        while self.stack.depth() > 0 && self.stack.pop().is_ok() {}
        let end = if self.round.drawn > 0 { self.go_from_one_start() } else { self.go_from_all_starts() };
        Walked {
            stats: std::mem::take(&mut self.tally.stats),
            seen: std::mem::replace(&mut self.seen, Distinct::new(0)),
            violation: self.violation.take(),
            beyond: self.beyond,
            bound: self.round.bound,
            end,
        }
    }

    fn go_from_one_start(&mut self) -> Result<(), Why> {
        let model = self.walks.model;
        let (mut parts, mut chosen, mut first) = (0, (0, 0), 0);
        // The part is drawn while parts are counted, so that none must be held.
        loop {
            self.out.clear();
            let more = model.initial_part(parts, &mut self.out);
            self.check_patience()?;
            parts += 1;
            if self.draw.below(parts as usize) == 0 {
                chosen = (parts - 1, first);
            }
            first += self.out.len() as u32;
            if !more || parts >= MOST_PARTS {
                break;
            }
        }
        if parts > 1 {
            self.out.clear();
            model.initial_part(chosen.0, &mut self.out);
        }
        self.start(chosen.1)
    }

    fn go_from_all_starts(&mut self) -> Result<(), Why> {
        let (mut part, mut first, mut more) = (0, 0, true);
        while more && !self.is_over() {
            self.out.clear();
            more = self.walks.model.initial_part(part, &mut self.out);
            self.check_patience()?;
            let next = first + self.out.len() as u32;
            self.start(first)?;
            (part, first) = (part + 1, next);
        }
        Ok(())
    }

    /// Goes on from initial states, the first of which has this number.
    fn start(&mut self, first: u32) -> Result<(), Why> {
        self.note_flags(None, first)?;
        let positions = keep_sound_starts(&mut self.out, first);
        self.push(|position| positions[position])?;
        let mut item = vec![0; self.walks.model.width() + 1];
        while self.stack.depth() > 0 && !self.is_over() {
            if self.stack.next(&mut item) {
                self.visit(&item[..item.len() - 1])?;
            } else {
                self.stack.pop()?;
                self.path.depth = self.path.depth.min(self.stack.depth().saturating_sub(1));
            }
        }
        Ok(())
    }

    /// Has the round found what it looks for, or seen enough? Those that try everything have never seen enough.
    fn is_over(&self) -> bool {
        let found = self.violation.is_some() && !self.walks.ask.keep_going;
        found || self.tally.stats.states >= self.round.visits || self.walks.over.load(Ordering::Relaxed)
    }

    /// Checks the state just taken from the stack and goes on from it.
    fn visit(&mut self, state: &[u32]) -> Result<(), Why> {
        let hash = hash::words(state);
        let depth = self.stack.depth() as u32 - 1;
        let tries = depth >= self.round.drawn;
        if tries && (self.path.has(state, hash) || self.remembers(hash)) {
            self.tally.stats.matched += 1;
            return Ok(());
        }
        self.count(hash, depth)?;
        if let Some(property) = self.walks.model.violated(state) {
            let what = self.tally.hit(property);
            self.find(what, None)?;
        }
        let missing = self.walks.gait.missing(state);
        if depth.saturating_add(missing) > self.round.bound {
            self.cut(depth.saturating_add(missing));
            return Ok(());
        }
        self.out.clear();
        self.walks.model.successors(state, &mut self.out);
        self.check_patience()?;
        self.tally.stats.transitions += self.out.len() as u64;
        if is_deadlock(self.walks.model, state, &self.out, 0..self.out.len()) {
            let what = self.tally.deadlocks(1);
            self.find(what, None)?;
        }
        self.note_flags(Some(state), 0)?;
        if self.walks.gait.is_complete() {
            self.path.enter(state, hash, depth as usize)?;
        }
        if depth >= self.round.bound {
            return self.look_beyond(depth);
        }
        self.push(|position| position as u32)
    }

    fn count(&mut self, hash: u64, depth: u32) -> Result<(), Why> {
        self.seen.add(hash);
        let stats = &mut self.tally.stats;
        stats.states += 1;
        stats.depth = stats.depth.max(depth);
        if stats.states.is_multiple_of(VISITS_PER_LOOK) {
            if let Some(why) = self.walks.stopped().or_else(|| self.walks.is_late().then_some(Why::Time)) {
                return Err(why);
            }
            // Rounds that all count alone are limited within.
            let alone = !self.walks.gait.is_shared();
            if alone && self.walks.limits.states.is_some_and(|limit| self.counted() >= limit) {
                return Err(Why::States);
            }
        }
        if depth >= self.depth_kept {
            let kept = depth + DEPTHS_PER_REQUEST;
            self.walks.board().control.room.keep(kept)?;
            self.depth_kept = kept;
        }
        Ok(())
    }

    /// Visits of this round and of all before.
    fn counted(&self) -> u64 {
        self.walks.board().stats.states + self.tally.stats.states
    }

    /// The model may have given up, and then its answers mean nothing.
    fn check_patience(&self) -> Result<(), Why> {
        match self.walks.stopped().or(self.out.gave_up().map(Why::from)) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    fn cut(&mut self, beyond: u32) {
        self.beyond = Some(self.beyond.map_or(beyond, |least| least.min(beyond)));
    }

    /// At the bound nobody goes on, but is there more?
    fn look_beyond(&mut self, depth: u32) -> Result<(), Why> {
        for position in 0..self.out.len() {
            let successor = self.out.state(position);
            if !self.out.step(position).is_fault() && !self.path.has(successor, hash::words(successor)) {
                self.cut(depth + 1);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Was the state met in this round, as far as the table can tell? It is from now on.
    fn remembers(&mut self, hash: u64) -> bool {
        if !self.round.remembers || self.table.bytes() < self.table_bytes && !self.table.grow(self.table_bytes) {
            return false;
        }
        let slots = self.table.pairs_mut();
        let mark = (hash ^ self.salt) | 1;
        let slot = hash::scale(hash, slots.len());
        std::mem::replace(&mut slots[slot], mark) == mark
    }

    /// Puts successors on the stack: all that can be tried, or the one that is drawn.
    fn push(&mut self, position_of: impl Fn(usize) -> u32) -> Result<(), Why> {
        let sound = |&position: &u32| !self.out.step(position as usize).is_fault();
        self.choices.clear();
        self.choices.extend((0..self.out.len() as u32).filter(sound));
        let drawn = self.stack.depth() < self.round.drawn as usize;
        if drawn && !self.choices.is_empty() {
            let choice = self.choices[self.draw.below(self.choices.len())];
            self.choices.clear();
            self.choices.push(choice);
        } else if self.round.shuffled {
            self.draw.shuffle(&mut self.choices);
        }
        self.items.clear();
        for &position in &self.choices {
            self.items.extend_from_slice(self.out.state(position as usize));
            self.items.push(position_of(position as usize));
        }
        self.stack.push(&self.items, 0).map_err(Why::from)
    }

    /// Looks for steps, or starts, that went wrong.
    fn note_flags(&mut self, state: Option<&[u32]>, first: u32) -> Result<(), Why> {
        for position in 0..self.out.len() {
            let step = self.out.step(position);
            if step.is_plain() {
                continue;
            }
            if let (true, Some(state)) = (step.is_fault(), state) {
                self.walks.board().control.watch.fault(state, step);
            }
            let what = self.tally.wrong(step, self.stack.depth() as u32, state.is_none());
            self.find(what, Some(first + position as u32))?;
        }
        Ok(())
    }

    fn find(&mut self, what: Option<What>, step: Option<u32>) -> Result<(), Why> {
        if let (Some(what), None) = (what, &self.violation) {
            let width = self.walks.model.width();
            let mut positions = self.stack.path(|_, item| item[width])?;
            positions.extend(step);
            self.violation = Some(Violation { what, trace: Trace { positions } });
        }
        Ok(())
    }
}
