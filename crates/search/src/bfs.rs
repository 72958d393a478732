//! Breadth-first search, level by level, in waves of many blocks, by one worker or by several. Three phases:
//! 1. **expand** a block: its successors, their keys sorted by shard, deadlocks ([`expansion`]);
//! 2. **enter** a shard: the keys of all blocks that belong to it, in the order of the blocks;
//! 3. **number** a block: what is fresh goes to the queue and to the step log, properties are checked.
//!
//! Each is done by whoever is free, item by item ([`team`]); in between the leader adds up, and enters blocks into the
//! ledger ([`ledger`]) in order. With a disk a level is sealed when it is done ([`seal`]). Equal states meet in one shard in the order in which they were found, so **states,
//! numbers, log, counts and traces are the same whatever the number of workers and of shards**. Where a wave is small, or
//! there is one worker, each block goes through all phases before the next: it stays in the processor's caches then.
//!
//! With a store that forgets, a state may be found and numbered again: nothing is missed, but only `cover` (see
//! [`plimsoll_store::cache`]) and whole levels ([`levels`]) end by themselves; the rest needs a limit on redundancy. Traces remain paths of
//! the model, and remain shortest: a state is still found on its own level first.

mod crew;
mod expansion;
mod ledger;
mod levels;
mod saved;
mod seal;
mod start;
mod team;
mod together;
mod wave;

use crate::control::Control;
use crate::observe::Observer;
use crate::verdict::{Outcome, Why};
pub use crew::Crew;
use expansion::{Done, Expansion};
use ledger::{End, Ledger};
use plimsoll_model::{Conventions, GaveUp, Model};
use plimsoll_store::{Chain, Full, Gathered, Keys, Needs, Outlook, Queue, Recent, SharedCoder, StepLog, Tiers};
pub use saved::{Company, Keeper, Saved};
use saved::{Mark, Place};
use seal::Settled;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, Scope};
use std::time::Instant;
use team::{Dismissal, Team};
use together::{Gathering, Told};
use wave::Wave;

/// As much as the first thread usually has: models may recurse along their expressions.
const STACK_BYTES: usize = 8 << 20;
/// States between two calls of `watch`; those come where waves end.
const STATES_PER_LOOK: usize = 1024;

/// The phases of a wave.
const EXPAND: u8 = 0;
const ENTER: u8 = 1;
const NUMBER: u8 = 2;
/// Before the first of them: the nodes of a tree get room.
const GROW: u8 = 6;
/// What is done for each shard where there is a disk: its tables leave memory, its runs are asked, or merged.
const FLUSH: u8 = 3;
const SIFT: u8 = 4;
const MERGE: u8 = 5;
/// And for each piece of the candidates: before the runs are asked, and after that.
const FILL: u8 = 7;
const SETTLE: u8 = 8;

/// Searches `model` breadth first.
pub fn bfs<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    queue: &mut Queue,
    log: &mut StepLog,
    crew: Crew,
    control: &mut Control,
) -> Outcome {
    bfs_with(model, store, queue, log, crew, control, Company::default())
}

/// The same for a search that goes on where another stood, of which checkpoints are kept, or on which somebody looks.
pub fn bfs_with<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    queue: &mut Queue,
    log: &mut StepLog,
    crew: Crew,
    control: &mut Control,
    keeping: Company,
) -> Outcome {
    let Chain { coder, tiers } = store;
    if keeping.observer.is_some() {
        tiers.keep_keys();
    }
    if tiers.forgets() {
        log.expect_pruning();
    }
    let needs = tiers.needs();
    let search = Search {
        model,
        conventions: model.conventions(),
        needs,
        defers: AtomicBool::new(tiers.defers()),
        crew,
        stop: control.stop,
        deadline: control.limits.deadline,
        observed: keeping.observer.is_some(),
        coder: SharedCoder::new(coder).for_store(tiers).remembering(crew.recent_bytes),
        tiers: RwLock::new(tiers),
        queue: RwLock::new(queue),
        briefing: RwLock::new(Briefing { wave: Wave::default(), needs }),
        briefings: AtomicUsize::new(0),
        blocks: (0..crew.blocks()).map(|_| RwLock::new(Box::new(Expansion::new(model.width())))).collect(),
        told: (0..crew.blocks()).map(|_| Told::default()).collect(),
        settled: (0..crew.workers).map(|_| RwLock::default()).collect(),
        gathering: RwLock::new(Gathering::default()),
        full: AtomicUsize::new(usize::MAX),
        again: AtomicUsize::new(0),
        looks_ahead: model.has_properties() && control.ask.properties && !control.ask.keep_going,
        urgent: AtomicBool::new(false),
        failure: Mutex::new(None),
        team: Team::new(crew.workers),
    };
    let Company { from, keeper, observer } = keeping;
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let mut ledger = Ledger::new(model, log, control, observer);
    let end = thread::scope(|scope| {
        let _dismissal = Dismissal(&search.team);
        search.lead(&mut ledger, from, keeper, scope)
    });
    // Whoever was told to stop may have been told nothing wrong about the last states.
    let end = match (end, ledger.control.stopped()) {
        (End::Done, Some(why)) => End::Out(why),
        (end, _) => end,
    };
    let odds = read(&search.tiers).odds();
    let complete = matches!(end, End::Done) && odds.is_none();
    let verdict = ledger.verdict(end, odds);
    let mut stats = ledger.tally.stats;
    stats.frontier = read(&search.queue).len() as u64;
    stats.look_at(&read(&search.tiers));
    ledger.control.watch.counts(&stats);
    Outcome { verdict, stats, complete }
}

/// What all workers see.
struct Search<'a, M: ?Sized> {
    model: &'a M,
    conventions: Conventions,
    needs: Needs,
    crew: Crew,
    stop: &'a AtomicBool,
    deadline: Option<Instant>,
    /// Is somebody told of every block?
    observed: bool,
    coder: SharedCoder<'a>,
    tiers: RwLock<&'a mut Tiers>,
    queue: RwLock<&'a mut Queue>,
    briefing: RwLock<Briefing>,
    /// How often it was another.
    briefings: AtomicUsize,
    blocks: Vec<RwLock<Box<Expansion>>>,
    /// What whoever expanded a block says of it.
    told: Vec<Told>,
    /// Candidates that no run knew, a piece at a time for each worker.
    settled: Vec<RwLock<Settled>>,
    /// The blocks themselves while shards are entered.
    gathering: RwLock<Gathering>,
    /// The first block of the wave with a state for which there was no room.
    full: AtomicUsize,
    /// How often what was expanded was not entered and is expanded again, or keys became others.
    again: AtomicUsize,
    /// What is fresh is a candidate.
    defers: AtomicBool,
    /// Candidates that violate a property end the search; one was found.
    looks_ahead: bool,
    urgent: AtomicBool,
    /// What went wrong on disk.
    failure: Mutex<Option<Why>>,
    team: Team,
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// What is to be expanded, and what the store wants to know of it.
#[derive(Clone, Copy)]
struct Briefing {
    wave: Wave,
    needs: Needs,
}

/// What a worker keeps for itself.
struct Worker {
    /// What it was told last, and how often anything had been told then.
    briefing: Option<(usize, Briefing)>,
    keys: Keys,
    gathered: Gathered,
    /// Candidates that come back.
    records: Vec<u32>,
    /// What was met lately need not be entered again; but whoever observes is told the keys of everything.
    lately: Option<Recent>,
    /// How often that was so when it was looked at last.
    again: usize,
    /// The first state of the last block of which any was met.
    furthest: u64,
}

impl Worker {
    fn new(coder: &SharedCoder, observed: bool) -> Worker {
        let lately = (!observed).then(|| coder.recent());
        let (keys, gathered, records) = (Keys::default(), Gathered::default(), Vec::new());
        Worker { briefing: None, keys, gathered, records, lately, again: 0, furthest: 0 }
    }
}

impl<'a, M: Model + ?Sized> Search<'a, M> {
    /// The leader's way through all levels.
    fn lead<'s>(
        &'s self,
        ledger: &mut Ledger<'a, '_, M>,
        from: Option<Saved>,
        keeper: Option<&mut dyn Keeper>,
        scope: &'s Scope<'s, '_>,
    ) -> End {
        let mut leader = Leader {
            search: self,
            worker: Worker::new(&self.coder, self.observed),
            unmerged: self.is_deferring(),
            followers: 0,
            unseen: 0,
            divides: true,
            unentered: false,
            outlook: Outlook::default(),
            keeper,
            mark: None,
            told: None,
        };
        let mut place = from.as_ref().map(Saved::place);
        match from {
            Some(saved) => ledger.take_over(saved.into_books()),
            None => {
                if let Err(why) = leader.start(ledger).and_then(|()| leader.end_level(0, ledger)) {
                    return End::Out(why);
                }
            }
        }
        for level in place.map_or(0, |place| place.level).. {
            let first = Place { level, level_left: read(&self.queue).len(), wave_left: 0 };
            let mut place = place.take().unwrap_or(first);
            if place.level_left == 0 {
                return End::Done;
            }
            leader.begin_level(place.level_left);
            leader.mark(place, ledger);
            if let Err(end) = leader.begin(level, ledger) {
                leader.keep(0, ledger);
                return end;
            }
            while place.level_left > 0 {
                match leader.work_off(place, ledger, scope) {
                    Ok(states) => place.level_left -= states,
                    Err(why) => return End::Out(why),
                }
                place.wave_left = 0;
                if leader.must_seal(ledger)
                    && let Err(why) = leader.seal(level + 1, ledger)
                {
                    return End::Out(why);
                }
                if ledger.ends_within(level) {
                    return End::Found;
                }
            }
            if let Err(why) = leader.seal(level + 1, ledger).and_then(|()| leader.end_level(level + 1, ledger)) {
                return End::Out(why);
            }
        }
        unreachable!("there are fewer levels than numbers")
    }

    /// One item of a phase, on behalf of whoever is free.
    fn perform(&self, phase: u8, item: usize, worker: &mut Worker) {
        match phase {
            EXPAND => self.expand(item, worker),
            ENTER => self.enter_shard(item, worker),
            NUMBER => self.number(item, worker),
            GROW => self.coder.move_piece(item),
            _ => self.perform_on_disk(phase, item, worker),
        }
    }

    /// The same for what is done on disk, for a shard or a piece of the candidates.
    fn perform_on_disk(&self, phase: u8, item: usize, worker: &mut Worker) {
        let tiers = read(&self.tiers);
        let done = match (phase, tiers.layers()) {
            (FLUSH, _) => tiers.flush(item),
            (SIFT, _) => tiers.sift(item),
            (FILL, Some(layers)) => layers.fill(item, &mut worker.records),
            (SETTLE, Some(layers)) => {
                self.settle(item, layers, &mut worker.records);
                Ok(())
            }
            (_, Some(layers)) => layers.merge(item),
            (_, None) => Ok(()),
        };
        if let Err(shortage) = done {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(shortage.into());
        }
    }

    /// Phase 1, for one block of the wave or of its part.
    fn expand(&self, number: usize, worker: &mut Worker) {
        let mut block = write(&self.blocks[number]);
        self.expand_block(number, &mut block, worker);
        self.told[number].tell_keys(&block);
    }

    fn expand_block(&self, number: usize, block: &mut Expansion, worker: &mut Worker) {
        let Briefing { wave, needs } = self.brief(worker);
        if self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            block.done = Done::Cut;
            return;
        }
        let place = number * wave.block;
        let count = wave.block.min(wave.states - place);
        match wave.blocks {
            1 => write(&self.queue).read_alone(place, count, &mut block.parents),
            _ => read(&self.queue).read(place, count, &mut block.parents),
        }
        (block.level, block.first) = (wave.level, wave.first + place as u64);
        block.expand(self.model, &self.conventions, self.needs);
        let again = self.again.load(Ordering::Relaxed);
        let is_earlier = block.first < std::mem::replace(&mut worker.furthest, block.first);
        if std::mem::replace(&mut worker.again, again) != again || is_earlier {
            worker.lately.iter_mut().for_each(Recent::forget);
        }
        // Where things are forgotten, what was met lately is of use within a level only.
        let lately = worker.lately.as_mut().filter(|_| needs.forgot == 0 || wave.wide);
        block.encode(&self.coder, needs, &mut worker.keys, lately);
    }

    /// What is to be done. All workers ask for every block, and what nobody changes is read without waiting for each other.
    fn brief(&self, worker: &mut Worker) -> Briefing {
        let briefings = self.briefings.load(Ordering::Acquire);
        match worker.briefing {
            Some((number, briefing)) if number == briefings => briefing,
            _ => worker.briefing.insert((briefings, *read(&self.briefing))).1,
        }
    }

    /// Why a block has no keys.
    fn why(&self, done: Done) -> Why {
        let late = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        match done {
            Done::Cut | Done::GaveUp(GaveUp::Stopped) if late() => Why::Time,
            Done::Cut | Done::GaveUp(GaveUp::Stopped) => Why::Interrupted,
            Done::Full | Done::Encoded | Done::GaveUp(GaveUp::Memory) => Why::Memory,
        }
    }

    /// Is what is fresh a candidate?
    fn is_deferring(&self) -> bool {
        self.defers.load(Ordering::Relaxed)
    }

    /// Did everything find room?
    fn room(&self) -> Result<(), Why> {
        if self.full.load(Ordering::Relaxed) < usize::MAX { Err(Why::Memory) } else { Ok(()) }
    }
}

struct Leader<'s, 'a, 'k, M: ?Sized> {
    search: &'s Search<'a, M>,
    worker: Worker,
    /// There are runs that were not merged.
    unmerged: bool,
    /// Workers that were started.
    followers: usize,
    /// States since the last call of `watch`.
    unseen: usize,
    /// The store may still be divided into shards.
    divides: bool,
    /// Nothing of what was expanded last and is left was entered, for want of memory: it could be expanded again.
    unentered: bool,
    /// How far the search is, for a store that may climb.
    outlook: Outlook,
    /// Who keeps checkpoints, and how things stood before what is under way.
    keeper: Option<&'k mut dyn Keeper>,
    mark: Option<Mark>,
    /// Why the search must end where the next wave would begin.
    told: Option<Why>,
}

impl<'s, 'a, M: Model + ?Sized> Leader<'s, 'a, '_, M> {
    /// Works off some of the states that are left of a level, and says how many.
    fn work_off(
        &mut self,
        place: Place,
        ledger: &mut Ledger<'a, '_, M>,
        scope: &'s Scope<'s, '_>,
    ) -> Result<usize, Why> {
        let search = self.search;
        self.look_out(place.level + 1, ledger);
        self.mark(place, ledger);
        self.keep_disk();
        self.keep_if_due(place, ledger)?;
        let next = self.next_wave(place, ledger);
        if next.is_err() {
            self.keep_last(place, ledger);
        }
        let (wave, shared) = next?;
        self.unseen += wave.states;
        if shared {
            self.call(wave.blocks.max(read(&search.tiers).shards()), scope);
        }
        let done = self.work_off_parts(wave, shared, place, ledger).and_then(|()| self.end_wave());
        // Looked at where waves end, for parts are cut for the workers at hand.
        let stats = &mut ledger.tally.stats;
        let waiting = read(&search.tiers).layers().map_or(0, |layers| layers.candidates.len());
        stats.frontier = (read(&search.queue).len() + waiting) as u64;
        stats.widest_frontier = stats.widest_frontier.max(stats.frontier);
        done.map(|()| wave.states)
    }

    /// The next wave, and whether it is worth sharing, unless the search must end.
    fn next_wave(&mut self, place: Place, ledger: &mut Ledger<'a, '_, M>) -> Result<(Wave, bool), Why> {
        let look = self.unseen >= STATES_PER_LOOK;
        self.unseen = if look { 0 } else { self.unseen };
        self.end_if_due(look, ledger)?;
        self.learn(ledger);
        self.plan(place, ledger)
    }

    /// Works off a wave, as much at a time as there are buffers for.
    fn work_off_parts(
        &mut self,
        wave: Wave,
        shared: bool,
        place: Place,
        ledger: &mut Ledger<'a, '_, M>,
    ) -> Result<(), Why> {
        let search = self.search;
        let mut left = wave;
        while left.states > 0 {
            let done_states = wave.states - left.states;
            let place = Place { level_left: place.level_left - done_states, wave_left: left.states, ..place };
            self.give_up_large_tree(place, ledger)?;
            search.coder.tidy(&mut write(&search.tiers));
            self.mark(place, ledger);
            let part = left.first_blocks(if shared { search.blocks.len() } else { 1 });
            // What waits on disk comes back for each part: between two of them, what was to stay in memory may have gone.
            let ready = write(&search.queue).ready(part.states);
            if ready.is_err() {
                self.keep_last(place, ledger);
            }
            let part = part.first_states(ready?);
            self.announce(part);
            let done = if part.blocks > 1 { self.together(part, ledger) } else { self.alone(ledger) };
            // Whoever was told to stop may have been told nothing wrong about these states.
            let done = done.and_then(|()| ledger.control.stopped().map_or(Ok(()), Err));
            let goes_on = done.is_ok() || self.can_go_on_with_other_keys();
            let settles = !goes_on && self.must_settle();
            if !goes_on && !settles {
                self.keep(part.blocks, ledger);
            }
            let states = (ledger.expanded - part.first) as usize;
            write(&search.queue).advance(states);
            left = left.after(states);
            let place = Place { level_left: place.level_left - states, wave_left: left.states, ..place };
            if settles {
                // What ran out before anything counted may have done so when all blocks were entered.
                let uncounted = if states > 0 { 0 } else { part.blocks };
                self.keep_settled(place, uncounted, ledger);
            }
            match done {
                Err(_) if goes_on => self.give_up_keys(place, ledger)?,
                done => done?,
            }
        }
        Ok(())
    }

    /// Says what is to be expanded next. Nobody is at work.
    fn announce(&mut self, wave: Wave) {
        let search = self.search;
        let needs = Needs { sorted: wave.blocks > 1, ..read(&search.tiers).needs() };
        *write(&search.briefing) = Briefing { wave, needs };
        search.briefings.fetch_add(1, Ordering::Release);
    }

    /// Can several workers enter the store at once, now that they are wanted?
    fn has_shards(&mut self) -> bool {
        let search = self.search;
        let mut tiers = write(&search.tiers);
        if tiers.shards() == 1 && std::mem::take(&mut self.divides) {
            search.coder.divide(&mut tiers, search.crew.shard_bits);
        }
        tiers.shards() > 1
    }

    /// Takes one block through all phases.
    fn alone(&mut self, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        search.expand(0, &mut self.worker);
        let mut block = write(&search.blocks[0]);
        self.enter_alone(&mut block, None)?;
        ledger.enter(&block)?;
        search.room()?;
        ledger.show(&block, false, search.is_deferring(), || !read(&search.tiers).samples())
    }

    /// Takes a block that was expanded through the other phases.
    fn enter_alone(&mut self, block: &mut Expansion, starts: Option<&[u32]>) -> Result<(), Why> {
        let search = self.search;
        let depth = block.block().depth;
        self.encode_after_forgetting(&mut [block]);
        if block.done == Done::Full {
            self.encode_again(block, depth).map_err(|why| self.not_entered(why))?;
            // There may be more to forget now.
            self.encode_after_forgetting(&mut [block]);
        }
        if block.done != Done::Encoded {
            return Err(self.not_encoded(block.done));
        }
        search.coder.show(&read(&search.tiers));
        self.make_room(&[&block.entry], block.entry.len(), depth).map_err(|why| self.not_entered(why))?;
        let mut tiers = write(&search.tiers);
        if tiers.enter_all(block.block(), &block.entry).is_err() {
            search.full.store(0, Ordering::Relaxed);
        }
        block.find_fresh();
        if let Some(layers) = tiers.layers_mut().filter(|layers| layers.defers()) {
            block.place = layers.candidates.extend(block.fresh.len())?;
            if block.set_aside(search.model, &layers.candidates, starts, search.looks_ahead) {
                search.urgent.store(true, Ordering::Relaxed);
            }
            return Ok(());
        }
        block.recognise(&search.coder, &tiers, search.needs, &mut self.worker.keys);
        tiers.recognise(&block.recognised).map_err(|Full| Why::Memory)?;
        let mut queue = write(&search.queue);
        block.place = queue.extend(block.fresh.len())?;
        block.number(search.model, starts, |place, states| queue.write_alone(place, states));
        tiers.sample(block.block(), &block.fresh);
        Ok(())
    }

    /// Makes sure that there are workers for so many items.
    fn call(&mut self, items: usize, scope: &'s Scope<'s, '_>) {
        let search = self.search;
        while self.followers + 1 < search.crew.workers.min(items) {
            let follow = move || {
                let mut worker = Worker::new(&search.coder, search.observed);
                search.team.follow(|phase, item| search.perform(phase, item, &mut worker));
            };
            // Where no thread can be had, those that there are must do.
            if thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, follow).is_err() {
                return;
            }
            self.followers += 1;
        }
    }

    fn perform_all(&mut self, phase: u8, items: usize) -> Result<(), Why> {
        let search = self.search;
        let worker = &mut self.worker;
        let done = search.team.lead(phase, items, |phase, item| search.perform(phase, item, worker));
        // Whoever panicked will be heard of when all have come home.
        if !done {
            self.keeper = None;
        }
        if done { Ok(()) } else { Err(Why::Interrupted) }
    }
}
