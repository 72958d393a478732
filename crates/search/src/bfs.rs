//! Breadth-first search, level by level, in waves of many blocks, by one worker or by several. Three phases:
//! 1. **expand** a block: its successors, their keys sorted by shard, deadlocks ([`expansion`]);
//! 2. **enter** a shard: the keys of all blocks that belong to it, in the order of the blocks;
//! 3. **number** a block: what is fresh goes to the queue and to the step log, properties are checked.
//!
//! Each is done by whoever is free, item by item ([`team`]); in between the leader adds up, and enters blocks into the
//! ledger ([`ledger`]) in order. Equal states meet in one shard in the order in which they were found, so **states,
//! numbers, log, counts and traces are the same whatever the number of workers and of shards**. Where a wave is small, or
//! there is one worker, each block goes through all phases before the next: it stays in the processor's caches then.
//!
//! With a store that forgets, a state may be found and numbered again: nothing is missed, but only `cover` (see
//! [`plimsoll_store::cache`]) ends by itself; anything else needs a limit on redundancy. Traces remain paths of
//! the model, and remain shortest: a state is still found on its own level first.

mod expansion;
mod ledger;
mod team;

use crate::control::Control;
use crate::observe::Observer;
use crate::verdict::{Outcome, Why};
use expansion::{Done, Expansion};
use ledger::{End, Ledger};
use plimsoll_model::{Conventions, GaveUp, Model};
use plimsoll_store::{Chain, Keys, Needs, Queue, Recent, SharedCoder, StepLog, Tiers};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, Scope};
use std::time::Instant;
use team::Team;

/// As much as the first thread usually has: models may recurse along their expressions.
const STACK_BYTES: usize = 8 << 20;
/// A block never has fewer states than this but at the end of a wave (and where tests want tiny ones).
const LEAST_STATES: usize = 16;
/// Blocks have no fewer successors than this, unless states are very wide.
const LEAST_SUCCESSORS: usize = 512;
/// Words of a block that stays in the processor's caches.
const NEAR_WORDS: usize = 32 << 10;
/// Blocks for each worker of a part of a wave.
const BLOCKS_PER_WORKER: usize = 4;

/// Successors of a wave while the store learns.
const LEARNING_SUCCESSORS: usize = 1024;
/// Parts of the initial states, and states, between two calls of `watch`; those come where waves end.
const PARTS_PER_LOOK: u32 = 32;
const STATES_PER_LOOK: usize = 1024;

/// The phases of a wave.
const EXPAND: u8 = 0;
const ENTER: u8 = 1;
const NUMBER: u8 = 2;

/// Who searches, and in how large pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    pub workers: usize,
    /// Successors aimed at per wave, at most.
    pub wave_successors: usize,
    /// Successors aimed at per block by one worker, and by several, at least and at most: all of a part of a wave are
    /// held at once then.
    pub block_successors: usize,
    pub shared_block_successors: [usize; 2],
    /// Smaller waves are not worth calling others.
    pub shared_successors: usize,
    /// Into how many shards a store of one shard is divided, as a power of two, before others are called for the first
    /// time: until then shards would only cost time, and where levels are narrow nobody is ever called.
    pub shard_bits: u32,
}

impl Crew {
    /// Enough successors for long runs of keys in every shard, few enough to stay in the processor's caches.
    pub const BLOCK_SUCCESSORS: usize = 8192;
    /// Enough for many workers.
    pub const WAVE_SUCCESSORS: usize = 1 << 18;
    /// Blocks of wide states have fewer of them: so many words of successors are enough.
    const BLOCK_WORDS: usize = 1 << 19;

    /// For states of so many words.
    pub fn for_width(workers: usize, width: usize) -> Crew {
        let width = width.max(1);
        let (usual, most) = (Crew::of(workers).with_blocks_of(NEAR_WORDS / width), (Crew::BLOCK_WORDS / width).max(1));
        Crew {
            block_successors: usual.block_successors.min(most),
            shared_block_successors: usual.shared_block_successors.map(|successors| successors.min(most)),
            ..usual
        }
    }

    pub fn of(workers: usize) -> Crew {
        Crew {
            workers,
            wave_successors: Crew::WAVE_SUCCESSORS,
            block_successors: Crew::BLOCK_SUCCESSORS,
            shared_block_successors: [512, 4096],
            shared_successors: 4096,
            shard_bits: shard_bits(workers),
        }
    }

    /// The same with blocks of at most so many successors, but not of very few.
    pub fn with_blocks_of(self, successors: usize) -> Crew {
        let most = successors.max(LEAST_SUCCESSORS);
        let shared_block_successors = self.shared_block_successors.map(|successors| successors.min(most));
        Crew { block_successors: self.block_successors.min(most), shared_block_successors, ..self }
    }

    /// How many blocks are held at once, at most.
    pub fn blocks(&self) -> usize {
        if self.workers == 1 { 1 } else { self.workers * BLOCKS_PER_WORKER }
    }
}

/// Enough shards for a fair share of each worker, and few enough for long runs of keys.
fn shard_bits(workers: usize) -> u32 {
    if workers == 1 { 0 } else { (workers.next_power_of_two().ilog2() + 2).min(8) }
}

/// Searches `model` breadth first.
pub fn bfs<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    queue: &mut Queue,
    log: &mut StepLog,
    crew: Crew,
    control: &mut Control,
) -> Outcome {
    observed_bfs(model, store, queue, log, crew, control, None)
}

/// The same while somebody may look on.
pub fn observed_bfs<M: Model + ?Sized>(
    model: &M,
    store: &mut Chain,
    queue: &mut Queue,
    log: &mut StepLog,
    crew: Crew,
    control: &mut Control,
    observer: Option<&mut dyn Observer>,
) -> Outcome {
    let Chain { coder, tiers } = store;
    let search = Search {
        model,
        conventions: model.conventions(),
        needs: Needs { fresh_only: tiers.needs().fresh_only && observer.is_none(), ..tiers.needs() },
        crew,
        stop: control.stop,
        deadline: control.limits.deadline,
        coder: SharedCoder::new(coder),
        tiers: RwLock::new(tiers),
        queue: RwLock::new(queue),
        wave: RwLock::new(Wave::default()),
        blocks: (0..crew.blocks()).map(|_| RwLock::new(Expansion::new(model.width()))).collect(),
        full: AtomicUsize::new(usize::MAX),
        team: Team::new(),
    };
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let mut ledger = Ledger::new(model, log, control, observer);
    let end = thread::scope(|scope| {
        let _dismissal = Dismissal(&search.team);
        search.lead(&mut ledger, scope)
    });
    // Whoever was told to stop may have been told nothing wrong about the last states.
    let end = match (end, ledger.control.stopped()) {
        (End::Done, Some(why)) => End::Out(why),
        (end, _) => end,
    };
    let complete = matches!(end, End::Done);
    let verdict = ledger.verdict(end);
    let mut stats = ledger.tally.stats;
    stats.frontier = read(&search.queue).len() as u64;
    stats.look_at(&read(&search.tiers));
    (ledger.control.watch)(&stats);
    Outcome { verdict, stats, complete }
}

/// Some states of a level, the first ones in the queue; or a part of them.
#[derive(Clone, Copy, Default)]
struct Wave {
    level: u32,
    /// The number of its first state.
    first: u64,
    states: usize,
    /// States of a block, and how many blocks there are.
    block: usize,
    blocks: usize,
}

impl Wave {
    /// The same without the first `states`.
    fn after(self, states: usize) -> Wave {
        let left = self.states - states;
        Wave { first: self.first + states as u64, states: left, blocks: left.div_ceil(self.block), ..self }
    }

    /// The first blocks of it.
    fn first_blocks(self, blocks: usize) -> Wave {
        let blocks = blocks.min(self.blocks);
        Wave { states: self.states.min(blocks * self.block), blocks, ..self }
    }
}

/// What all workers see.
struct Search<'a, M: ?Sized> {
    model: &'a M,
    conventions: Conventions,
    needs: Needs,
    crew: Crew,
    stop: &'a AtomicBool,
    deadline: Option<Instant>,
    coder: SharedCoder<'a>,
    tiers: RwLock<&'a mut Tiers>,
    queue: RwLock<&'a mut Queue>,
    wave: RwLock<Wave>,
    blocks: Vec<RwLock<Expansion>>,
    /// The first block of the wave with a state for which there was no room.
    full: AtomicUsize,
    team: Team,
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// What a worker keeps for itself.
struct Worker {
    keys: Keys,
    lately: Recent,
}

impl Worker {
    fn new(coder: &SharedCoder) -> Worker {
        Worker { keys: Keys::default(), lately: coder.recent() }
    }
}

impl<'a, M: Model + ?Sized> Search<'a, M> {
    /// The leader's way through all levels.
    fn lead<'s>(&'s self, ledger: &mut Ledger<'a, '_, M>, scope: &'s Scope<'s, '_>) -> End {
        let mut leader =
            Leader { search: self, worker: Worker::new(&self.coder), followers: 0, unseen: 0, divides: true };
        if let Err(why) = leader.start(ledger) {
            return End::Out(why);
        }
        for level in 0.. {
            let mut left = read(&self.queue).len();
            if left == 0 {
                return End::Done;
            }
            if let Err(end) = ledger.begin(level) {
                return end;
            }
            while left > 0 {
                match leader.work_off(level, left, ledger, scope) {
                    Ok(states) => left -= states,
                    Err(why) => return End::Out(why),
                }
                if ledger.ends_within(level) {
                    return End::Found;
                }
            }
        }
        unreachable!("there are fewer levels than numbers")
    }

    /// One item of a phase, on behalf of whoever is free.
    fn perform(&self, phase: u8, item: usize, worker: &mut Worker) {
        match phase {
            EXPAND => self.expand(item, worker),
            ENTER => self.enter_shard(item),
            _ => self.number(item),
        }
    }

    /// Phase 1, for one block of the wave or of its part.
    fn expand(&self, number: usize, worker: &mut Worker) {
        let wave = *read(&self.wave);
        let mut block = write(&self.blocks[number]);
        if self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            block.done = Done::Cut;
            return;
        }
        let place = number * wave.block;
        read(&self.queue).read(place, wave.block.min(wave.states - place), &mut block.parents);
        (block.level, block.first) = (wave.level, wave.first + place as u64);
        block.expand(self.model, &self.conventions, self.needs);
        let needs = Needs { sorted: wave.blocks > 1, ..self.needs() };
        block.encode(&self.coder, needs, &mut worker.keys, &mut worker.lately);
    }

    /// What the store wants to know by now: it may have been divided. Observers want to see every key.
    fn needs(&self) -> Needs {
        Needs { fresh_only: self.needs.fresh_only, ..read(&self.tiers).needs() }
    }

    /// Phase 2, for one shard.
    fn enter_shard(&self, shard: usize) {
        let blocks = read(&self.wave).blocks;
        let tiers = read(&self.tiers);
        for (number, block) in self.blocks[..blocks].iter().enumerate() {
            let block = read(block);
            if tiers.enter(shard, block.block(), &block.entry).is_err() {
                self.full.fetch_min(number, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Phase 3, for one block.
    fn number(&self, number: usize) {
        let mut block = write(&self.blocks[number]);
        block.find_fresh();
        block.number(self.model, &read(&self.queue), None);
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

    /// Did everything find room?
    fn room(&self) -> Result<(), Why> {
        if self.full.load(Ordering::Relaxed) < usize::MAX { Err(Why::Memory) } else { Ok(()) }
    }
}

struct Leader<'s, 'a, M: ?Sized> {
    search: &'s Search<'a, M>,
    worker: Worker,
    /// Workers that were started.
    followers: usize,
    /// States since the last call of `watch`.
    unseen: usize,
    /// The store may still be divided into shards.
    divides: bool,
}

impl<'s, 'a, M: Model + ?Sized> Leader<'s, 'a, M> {
    /// Enters the initial states.
    fn start(&mut self, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        let mut block = write(&search.blocks[0]);
        let (mut part, mut next) = (0u32, Some(0));
        while let Some(first) = next {
            if part > 0 {
                let look = part.is_multiple_of(PARTS_PER_LOOK);
                if let Some(why) = ledger.control.must_end(look, &mut ledger.tally.stats, &read(&search.tiers)) {
                    return Err(why);
                }
                self.learn(ledger);
            }
            let starts = block.start(search.model, search.needs, part, first);
            block.encode(&search.coder, search.needs, &mut self.worker.keys, &mut self.worker.lately);
            self.enter_alone(&mut block, Some(&starts.positions))?;
            ledger.enter_starts(&block, &starts.wrong)?;
            search.room()?;
            ledger.show(&block, true, || !read(&search.tiers).samples())?;
            (part, next) = (part + 1, starts.next);
        }
        Ok(())
    }

    /// Lets the store learn, if it is time for that.
    fn learn(&self, ledger: &mut Ledger<'a, '_, M>) {
        let mut are_first = true;
        let mut told = ledger
            .observer
            .as_mut()
            .map(|observer| move |keys: &Keys| observer.rekey(keys, std::mem::take(&mut are_first)));
        let told = told.as_mut().map(|told| told as &mut dyn FnMut(&Keys));
        self.search.coder.learn_from(&mut write(&self.search.tiers), told);
    }

    /// Works off a part of the states that are left of a level, and says how many.
    fn work_off(
        &mut self,
        level: u32,
        left: usize,
        ledger: &mut Ledger<'a, '_, M>,
        scope: &'s Scope<'s, '_>,
    ) -> Result<usize, Why> {
        let search = self.search;
        let look = self.unseen >= STATES_PER_LOOK;
        self.unseen = if look { 0 } else { self.unseen };
        if let Some(why) = ledger.control.must_end(look, &mut ledger.tally.stats, &read(&search.tiers)) {
            return Err(why);
        }
        self.learn(ledger);
        let (wave, shared) = self.plan(level, left, ledger)?;
        self.unseen += wave.states;
        if shared {
            self.call(wave.blocks.max(read(&search.tiers).shards()), scope);
        }
        let done = self.work_off_parts(wave, shared, ledger);
        // Looked at where waves end, for parts are cut for the workers at hand.
        let stats = &mut ledger.tally.stats;
        stats.frontier = read(&search.queue).len() as u64;
        stats.widest_frontier = stats.widest_frontier.max(stats.frontier);
        done.map(|()| wave.states)
    }

    /// Works off a wave, as much at a time as there are buffers for.
    fn work_off_parts(&mut self, wave: Wave, shared: bool, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        let mut left = wave;
        while left.states > 0 {
            let part = left.first_blocks(if shared { search.blocks.len() } else { 1 });
            *write(&search.wave) = part;
            let done = if part.blocks > 1 { self.together(part, ledger) } else { self.alone(ledger) };
            write(&search.queue).advance((ledger.expanded - part.first) as usize);
            done?;
            left = left.after(part.states);
        }
        Ok(())
    }

    /// The next wave, and whether it is worth sharing. How many states it has depends on what was found, and on nothing
    /// else: a search that ends early ends with a wave.
    fn plan(&mut self, level: u32, left: usize, ledger: &Ledger<'a, '_, M>) -> Result<(Wave, bool), Why> {
        let search = self.search;
        let Crew { workers, wave_successors, shared_successors, .. } = search.crew;
        let degree = ledger.degree().saturating_add(1);
        let samples = read(&search.tiers).samples();
        // While the store wants to learn it is given little at a time, and where states are limited no more than needed.
        let mut successors = if samples { LEARNING_SUCCESSORS } else { wave_successors };
        if let Some(limit) = ledger.control.limits.states {
            let missing = limit.saturating_sub(ledger.tally.stats.states);
            successors = successors.min(usize::try_from(missing).unwrap_or(usize::MAX));
        }
        let states = (successors / degree).max(LEAST_STATES.min(wave_successors)).min(left);
        let states = write(&search.queue).ready(states)?;
        let worth_it = workers > 1 && !samples && states.saturating_mul(degree) >= shared_successors;
        let shared = worth_it && self.has_shards();
        let block_successors = if shared {
            let [least, most] = search.crew.shared_block_successors;
            (states.saturating_mul(degree) / search.blocks.len()).clamp(least, most)
        } else {
            search.crew.block_successors
        };
        let block = (block_successors / degree).max(LEAST_STATES.min(block_successors));
        let blocks = states.div_ceil(block);
        let wave = Wave { level, first: ledger.expanded, states, block, blocks };
        Ok((wave, shared && wave.blocks > 1))
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
        ledger.show(&block, false, || !read(&search.tiers).samples())
    }

    /// Takes a block that was expanded through the other phases.
    fn enter_alone(&mut self, block: &mut Expansion, starts: Option<&[u32]>) -> Result<(), Why> {
        let search = self.search;
        if block.done == Done::Full && write(&search.tiers).forget_sample() {
            let needs = search.needs();
            block.encode(&search.coder, needs, &mut self.worker.keys, &mut self.worker.lately);
        }
        if block.done != Done::Encoded {
            return Err(search.why(block.done));
        }
        let mut tiers = write(&search.tiers);
        search.coder.show(&tiers);
        if tiers.enter_all(block.block(), &block.entry).is_err() {
            search.full.store(0, Ordering::Relaxed);
        }
        block.find_fresh();
        let mut queue = write(&search.queue);
        block.place = queue.extend(block.fresh.len())?;
        block.number(search.model, &queue, starts);
        tiers.sample(block.block(), &block.fresh);
        Ok(())
    }

    /// All workers take part, phase by phase.
    fn together(&mut self, part: Wave, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        self.perform_all(EXPAND, part.blocks)?;
        let encoded = |number: &usize| read(&search.blocks[*number]).done == Done::Encoded;
        let blocks = (0..part.blocks).take_while(encoded).count();
        write(&search.wave).blocks = blocks;
        let shards = {
            let tiers = read(&search.tiers);
            search.coder.show(&tiers);
            tiers.shards()
        };
        self.perform_all(ENTER, shards)?;
        // What comes behind a block that found no room does not count.
        let blocks = blocks.min(search.full.load(Ordering::Relaxed).saturating_add(1));
        let fresh = search.blocks[..blocks].iter().map(|block| read(block).entry.fresh_count() as usize).sum();
        let mut place = write(&search.queue).extend(fresh)?;
        for block in &search.blocks[..blocks] {
            let mut block = write(block);
            block.place = place;
            place += block.entry.fresh_count() as usize;
        }
        self.perform_all(NUMBER, blocks)?;
        let full = search.full.load(Ordering::Relaxed);
        for (number, block) in search.blocks[..blocks].iter().enumerate() {
            let block = read(block);
            ledger.enter(&block)?;
            if number < full {
                ledger.show(&block, false, || true)?;
            }
        }
        search.room()?;
        if blocks < part.blocks { Err(search.why(read(&search.blocks[blocks]).done)) } else { Ok(()) }
    }

    /// Makes sure that there are workers for so many items.
    fn call(&mut self, items: usize, scope: &'s Scope<'s, '_>) {
        let search = self.search;
        while self.followers + 1 < search.crew.workers.min(items) {
            let follow = move || {
                let mut worker = Worker::new(&search.coder);
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
        if done { Ok(()) } else { Err(Why::Interrupted) }
    }
}

/// Sends the workers home, also if the leader panics.
struct Dismissal<'s>(&'s Team);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.dismiss();
    }
}
