//! Where encoded states are held: shards, each a chain of tables of its own.
//!
//! The leading bits of a key choose its shard; into how many shards a store is divided shows in times only. A shard is entered
//! by one worker at a time, block after block in the order in which blocks were taken; so the first of equal states
//! is the one that a single worker would have met first, whoever enters which shard. The way of a block is the same for
//! everybody: [`Entry::encode`], then [`Tiers::enter`] for each shard, then [`Entry::fresh`], then [`Tiers::sample`].
//!
//! In a shard a state is asked for in the frozen tables, which admit nothing any more, and inserted into the last one.

mod cached;
mod coded;
mod divided;
mod enter;
mod entry;
mod gathered;
mod ladder;
mod layered;
mod learned;
mod levels;
mod living;
mod lossy;
mod saved;
mod single;
mod vectors;

pub use entry::{Block, Entry, Needs};
pub use gathered::Gathered;
pub use ladder::{Climb, Outlook, Rung};
pub use living::Collections;

use crate::arena::Arena;
use crate::batch::Batch;
use crate::budget::{Full, Grant};
use crate::cache::{Answer, AnyCache, Cache, Distinct, Health, Note, Place, Rule, Ways};
use crate::choice::Choice;
use crate::codec::{Coder, Keys};
use crate::filter::Filter;
use crate::intern::Intern;
use crate::packed::{Density, Packed, Run};
use crate::packing::Packing;
use crate::row::Row;
use crate::runs::Layers;
use crate::sample::Sample;
use crate::snapshots::Snapshots;
use crate::snapshots::table::LevelTable;
use cached::{hold_long, key_bytes, key_of};
use coded::{Coded, Long};
use ladder::Ladder;
use layered::Below;
use living::Collector;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// States that are encoded again at a time.
const BLOCK: usize = 1024;
/// A cache has as many shards as there are times so many states, up to a limit. So what it forgets depends on its size
/// and on nothing else.
const CACHE_SHARD_STATES: usize = 4096;
const MOST_CACHE_SHARD_BITS: u32 = 6;

/// All shards.
#[derive(Debug)]
pub struct Tiers {
    shards: Vec<Mutex<Shard>>,
    shard_bits: u32,
    /// Bits of the longest key.
    key_bits: AtomicU32,
    /// Where tables of packed keys have their memory.
    arena: Arena,
    /// How full those tables are.
    density: Density,
    /// All states so far, while the coder may learn from them.
    sample: Option<Sample>,
    /// May they have a tree, though they are packed so far?
    may_plant: bool,
    /// Whether they have one, where that was to be chosen.
    choice: Option<Choice>,
    /// Bits of a digest, if states are told apart by their digests only.
    digest_bits: Option<u32>,
    /// How states can be packed, should a tree be given up.
    packing: Option<Packing>,
    /// Where keys go when memory is full.
    below: Option<Below>,
    /// Which levels are held, where levels are.
    snapshots: Option<Snapshots>,
    /// How to go on when memory is almost full, and what was done so far.
    ladder: Option<Ladder>,
    climbs: Vec<Climb>,
    /// How nodes of a tree are given up.
    collector: Collector,
    grant: Grant,
}

/// The tables of one shard.
#[derive(Debug)]
struct Shard {
    /// Tables that admit nothing any more and still answer.
    frozen: Vec<Packed>,
    /// The same for states as they are.
    older: Option<Intern>,
    last: Table,
    /// Codes that are too long for a cache of them.
    long: Option<Long>,
    /// What takes the place of the last table when that holds so many states or has no more room.
    next: Option<(usize, Table)>,
    /// Keys that the frozen tables do not know.
    unknown: Batch,
}

/// A table that admits states.
#[derive(Debug)]
enum Table {
    /// Every key that it was given.
    Packed(Packed),
    /// Every state that it was given, as it is.
    Vectors(Intern),
    /// Every state that it was given, as its Huffman code.
    Coded(Box<Coded>),
    /// Whatever it needs to know most of them again; see [`crate::filter`].
    Filter(Box<Filter>),
    /// As many as fit, by one rule.
    Ways(Box<Ways>),
    /// As many as fit, by a chain of rules; states can be pinned.
    Cache(Box<Cache>),
    /// Those of some levels.
    Levels(Box<LevelTable>),
}

impl Tiers {
    /// Exact tiers for the states of `coder`, in 2^`shard_bits` shards.
    pub fn exact(coder: &Coder, shard_bits: u32, grant: &Grant) -> Result<Tiers, Full> {
        let arena = Arena::new(grant.clone());
        let sample = match coder {
            Coder::Tree(tree) => Sample::new(tree.width(), grant),
            _ => None,
        };
        let key_bits = coder.key_bits();
        let digest_bits = match coder {
            Coder::Digest(digest) => Some(digest.bits()),
            Coder::Plain { .. } | Coder::Packed(_) | Coder::Tree(_) | Coder::Huffman(_) => None,
        };
        let density = Density::USUAL;
        let shards = match lossy::shards(coder, shard_bits, &arena) {
            Some(shards) => shards?,
            None => exact_shards(coder, shard_bits, density, &arena, grant)?,
        };
        let key_bits = AtomicU32::new(key_bits);
        Ok(Tiers { sample, digest_bits, ..Tiers::of_shards(shards, shard_bits, key_bits, arena, grant) })
    }

    /// The same with tables that are as full as they say, from here on.
    pub fn with_density(mut self, density: Density) -> Tiers {
        self.set_density(density);
        self
    }

    fn set_density(&mut self, density: Density) {
        self.density = density;
        for shard in &mut self.shards {
            if let Table::Packed(packed) = &mut own(shard).last {
                packed.set_density(density);
            }
        }
    }

    pub(crate) fn density(&self) -> Density {
        self.density
    }

    /// The tiers of a row for at most `capacity` states of `coder`; they can pin states if `pins`. What nobody leaves before
    /// others come is a table of its own where keys are packed: it takes less than a cache does.
    pub fn of(coder: &Coder, row: &Row, pins: bool, capacity: usize, grant: &Grant) -> Result<Tiers, Full> {
        if row.has_levels() {
            return Tiers::of_levels(coder, row, capacity, grant);
        }
        match (coder, row.after_kept()) {
            (Coder::Packed(_), Some(rest)) if !pins => {
                let kept = row.rooms(capacity)[0];
                let caches = Tiers::cached(coder, &rest, pins, (capacity - kept).max(1), grant)?;
                Ok(Tiers::exact(coder, caches.shard_bits, grant)?.followed_by(caches, kept))
            }
            _ => Tiers::cached(coder, row, pins, capacity, grant),
        }
    }

    /// Caches for at most `capacity` states of `coder`, which can pin states if `pins`.
    fn cached(coder: &Coder, row: &Row, pins: bool, capacity: usize, grant: &Grant) -> Result<Tiers, Full> {
        // What is pinned, and who is whose child, is known to one table only.
        let shards = if pins || row.holds_ancestors() { 1 } else { capacity / CACHE_SHARD_STATES };
        let shard_bits = shards.max(1).ilog2().min(MOST_CACHE_SHARD_BITS);
        let (form, capacity) = (coder.form(shard_bits), capacity >> shard_bits);
        let by_states = coder.numbers_states();
        let table = |_| {
            Ok(match row.alone().filter(|_| !pins) {
                Some(rule) => Table::Ways(Box::new(Ways::new(rule, form, capacity, grant)?.counting_states(by_states))),
                None => Table::Cache(Box::new(Cache::new(row, form, capacity, grant)?.counting_states(by_states))),
            })
        };
        let long = || match coder {
            Coder::Huffman(code) => Long::beside(code, row, pins, capacity, shard_bits, grant).map(Some),
            _ => Ok(None),
        };
        let shard = |table: Result<Table, Full>| Ok(Shard::with_long(table?, long()?));
        let shards = (0..1 << shard_bits).map(table).map(shard).collect::<Result<_, Full>>()?;
        Ok(Tiers::of_shards(shards, shard_bits, AtomicU32::new(0), Arena::new(grant.clone()), grant))
    }

    /// Nothing but shards.
    fn of_shards(
        shards: Vec<Mutex<Shard>>,
        shard_bits: u32,
        key_bits: AtomicU32,
        arena: Arena,
        grant: &Grant,
    ) -> Tiers {
        Tiers {
            shards,
            shard_bits,
            key_bits,
            arena,
            density: Density::USUAL,
            sample: None,
            may_plant: false,
            choice: None,
            digest_bits: None,
            packing: None,
            below: None,
            snapshots: None,
            ladder: None,
            climbs: Vec::new(),
            collector: Collector::default(),
            grant: grant.clone(),
        }
    }

    /// Exact tiers that freeze when they hold `states`, or when memory runs out, followed by `caches`. Only for packed
    /// keys: those of roots get longer, and a frozen table would not know them again.
    fn followed_by(mut self, caches: Tiers, states: usize) -> Tiers {
        assert_eq!(self.shard_bits, caches.shard_bits);
        for (shard, next) in self.shards.iter_mut().zip(caches.shards) {
            let next = next.into_inner().unwrap_or_else(PoisonError::into_inner).last;
            own(shard).next = Some((states >> self.shard_bits, next));
        }
        // What is frozen cannot be encoded again.
        self.sample = None;
        self
    }

    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// What must be prepared for every block.
    pub fn needs(&self) -> Needs {
        let shard = lock(&self.shards[0]);
        let (kinds, parents, fresh_only) = match shard.next.as_ref().map_or(&shard.last, |(_, next)| next) {
            Table::Packed(_) | Table::Vectors(_) | Table::Coded(_) | Table::Filter(_) => (false, false, true),
            // Caches count meetings.
            Table::Ways(ways) => (ways.rule() == Rule::Kind, ways.wants_parents(), false),
            Table::Cache(cache) => (cache.row().rules().any(|rule| rule == Rule::Kind), cache.wants_parents(), false),
            // Who climbs gives up levels when keys have been computed.
            Table::Levels(_) => (false, false, self.ladder.is_none()),
        };
        let lanes = self.snapshots.as_ref().is_some_and(Snapshots::backtracks);
        let forgot = self.snapshots.as_ref().map_or(0, Snapshots::forgot);
        Needs { kinds, parents, lanes, fresh_only, forgot, sorted: false, shard_bits: self.shard_bits }
    }

    /// Inserts the one state whose key was computed, which is pinned until it is unpinned.
    /// Only for caches that can pin states.
    pub(crate) fn enter_pinned(&mut self, state: &[u32], keys: &Keys, note: Note) -> Option<Answer> {
        let Shard { last: Table::Cache(cache), long, .. } = own(&mut self.shards[0]) else { return None };
        let bytes = key_bytes(keys.high[0], keys.low.first().copied());
        let answer = match key_of(&bytes, state, cache.form(), long.as_mut()) {
            Some(key) => cache.insert(key, keys.high[0], note, true, Place::NOWHERE),
            None => hold_long(long.as_mut(), &mut **cache, keys.high[0]),
        };
        if matches!(answer, Answer::New(_)) && cache.counts_states() {
            cache.count_state(state);
        }
        Some(answer)
    }

    /// The table of caches that can pin states.
    pub(crate) fn pinning(&mut self) -> Option<&mut Cache> {
        match &mut own(&mut self.shards[0]).last {
            Table::Cache(cache) => Some(cache),
            _ => None,
        }
    }

    /// Are states given up that may be met again?
    pub fn forgets(&self) -> bool {
        let shard = lock(&self.shards[0]);
        let last = shard.next.as_ref().map_or(&shard.last, |(_, next)| next);
        matches!(last, Table::Ways(_) | Table::Cache(_) | Table::Levels(_))
    }

    /// What caches know about their work; none for exact tiers.
    pub fn health(&self) -> Option<Health> {
        if let Some((forgotten, distinct)) = self.layers().and_then(Layers::forgotten) {
            return Some(Health { held: self.held().0 as u64, forgotten, distinct, ..Health::default() });
        }
        if let Some(before) = self.ladder.as_ref().and_then(Ladder::before_filter) {
            return Some(self.health_of_filter(before));
        }
        // Where there is one cache, all are; else nobody needs to wait for whoever has a shard.
        if let Some(first) = self.shards.first() {
            lock(first).health()?;
        }
        let shards: Vec<_> = self.shards.iter().map(lock).collect();
        let parts: Option<Vec<_>> = shards.iter().map(|shard| shard.health()).collect();
        let mut whole = Health::of_parts(parts?);
        // What is kept exactly never comes to the caches, which estimate the rest.
        whole.distinct += shards.iter().map(|shard| shard.kept() as u64).sum::<u64>();
        // Who climbed makes use of whatever there is.
        whole.capacity = match (&self.ladder, &self.snapshots) {
            (Some(_), _) => 0,
            (None, snapshots) => whole.capacity + snapshots.as_ref().map_or(0, |held| held.capacity() as u64),
        };
        Some(whole)
    }

    /// Makes sure that `count` more states find room if they are spread evenly.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        let (part, key_bits) = (count.div_ceil(self.shards.len()), *self.key_bits.get_mut());
        self.shards.iter().map(lock).try_for_each(|mut shard| match shard.next {
            // It freezes when there is no room.
            Some(_) => Ok(()),
            None => shard.last.reserve(part, key_bits),
        })
    }

    /// Takes note of what keys look like by now: to be called between encoding and entering.
    pub fn look_at(&self, coder: &Coder) {
        self.key_bits.fetch_max(coder.key_bits(), Ordering::Relaxed);
    }

    /// How many states are held, in how many bytes.
    pub fn held(&self) -> (usize, usize) {
        let shards = self.shards.iter().map(|shard| lock(shard).held());
        let (states, bytes) = shards.fold((0, 0), |sum, held| (sum.0 + held.0, sum.1 + held.1));
        let others = self.sample.as_ref().map_or(0, Sample::bytes) + self.below.as_ref().map_or(0, Below::bytes);
        let frozen = self.ladder.as_ref().map_or(0, Ladder::bytes);
        (states, bytes + self.arena.bytes() + others + frozen)
    }
}

fn exact_shards(
    coder: &Coder,
    shard_bits: u32,
    density: Density,
    arena: &Arena,
    grant: &Grant,
) -> Result<Vec<Mutex<Shard>>, Full> {
    let key_bits = coder.key_bits();
    let table = |number| {
        Ok(match coder {
            Coder::Huffman(code) => Table::Coded(Box::new(Coded::new(code, shard_bits, grant)?)),
            Coder::Plain { width } => Table::Vectors(Intern::one_of(shard_bits, *width, grant.clone())?),
            Coder::Packed(_) | Coder::Tree(_) | Coder::Digest(_) => {
                let table = Packed::one_of(key_bits, shard_bits, number, density, arena)?;
                Table::Packed(table.for_keys_of(coder.most_key_bits()))
            }
        })
    };
    (0..1 << shard_bits).map(table).map(|table| table.map(Shard::new)).collect()
}

fn own(shard: &mut Mutex<Shard>) -> &mut Shard {
    shard.get_mut().unwrap_or_else(PoisonError::into_inner)
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    fn new(last: Table) -> Mutex<Shard> {
        Shard::with_long(last, None)
    }

    fn with_long(last: Table, long: Option<Long>) -> Mutex<Shard> {
        Mutex::new(Shard { frozen: Vec::new(), older: None, last, long, next: None, unknown: Batch::default() })
    }

    /// How many states are held, in how many bytes beside those of the arena.
    fn held(&self) -> (usize, usize) {
        let bytes = match &self.last {
            Table::Packed(_) | Table::Filter(_) | Table::Levels(_) => 0,
            Table::Vectors(table) => table.bytes(),
            Table::Coded(coded) => coded.bytes(),
            Table::Ways(ways) => ways.bytes(),
            Table::Cache(cache) => cache.bytes(),
        };
        let long = self.long.as_ref().map_or((0, 0), |long| (long.len(), long.bytes()));
        let older = self.older.as_ref().map_or((0, 0), |older| (older.len(), older.bytes()));
        let frozen = self.frozen.iter().map(Packed::len).sum::<usize>();
        (frozen + self.last.len() + long.0 + older.0, bytes + long.1 + older.1)
    }

    /// How many states are held before the caches.
    fn kept(&self) -> usize {
        let frozen = self.frozen.iter().map(Packed::len).sum::<usize>();
        frozen + self.next.as_ref().map_or(0, |_| self.last.len())
    }

    fn health(&self) -> Option<(Health, &Distinct)> {
        let table = self.next.as_ref().map_or(&self.last, |(_, next)| next);
        let (mut health, sketch) = match table {
            Table::Packed(_) | Table::Vectors(_) | Table::Coded(_) | Table::Filter(_) => return None,
            Table::Ways(ways) => (ways.health(), ways.distinct()),
            Table::Cache(cache) => (cache.health(), cache.distinct()),
            Table::Levels(levels) => (levels.health(), &levels.distinct),
        };
        let kept = self.kept() as u64;
        health.held += kept;
        health.capacity += self.next.as_ref().map_or(kept, |(room, _)| *room as u64);
        self.long.iter().for_each(|long| long.tell(&mut health));
        Some((health, sketch))
    }
}

impl Table {
    fn into_packed(self) -> Option<Packed> {
        match self {
            Table::Packed(packed) => Some(packed),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        match self {
            Table::Packed(packed) => packed.len(),
            Table::Vectors(table) => table.len(),
            Table::Coded(coded) => coded.len(),
            Table::Filter(filter) => filter.len(),
            Table::Ways(ways) => ways.len(),
            Table::Cache(cache) => cache.len(),
            Table::Levels(levels) => levels.masks.live(),
        }
    }

    /// Asks for the lines in which keys would be.
    fn prefetch(&self, keys: Run) {
        match self {
            Table::Packed(packed) => packed.prefetch(keys),
            Table::Vectors(table) => keys.high.iter().for_each(|&hash| table.prefetch(hash)),
            Table::Coded(coded) => keys.high.iter().for_each(|&hash| coded.prefetch(hash)),
            Table::Filter(filter) => filter.prefetch(keys),
            Table::Ways(ways) => keys.high.iter().for_each(|&hash| ways.prefetch(hash)),
            Table::Cache(cache) => keys.high.iter().for_each(|&hash| cache.prefetch(hash)),
            Table::Levels(levels) => levels.prefetch(keys),
        }
    }

    /// Makes sure that `count` more states fit; caches make room by forgetting, and filters are never full.
    fn reserve(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        match self {
            Table::Packed(packed) => packed.reserve(count, key_bits),
            Table::Vectors(table) => table.reserve(count),
            // It grows as it is filled.
            Table::Coded(_) | Table::Filter(_) | Table::Ways(_) | Table::Cache(_) => Ok(()),
            Table::Levels(levels) => levels.reserve(count, key_bits),
        }
    }
}
