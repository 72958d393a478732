//! Candidates on their way through the runs: the keys of as many as there is memory for, by shard and in order of key.
//!
//! Sorted keys touch every block of a run once, however many of them are in it. One bit for each candidate says whether a
//! run knew it; those bits are in the order of discovery, in which the survivors are numbered.

use crate::batch::shard_of;
use crate::budget::{Full, Grant};
use crate::queue::Queue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Keys taken from the queue at a time.
const PIECE: usize = 4096;
/// Shards are not filled evenly.
const SLACK_PERCENT: usize = 25;
const LEAST_KEYS: usize = 64;

/// A candidate: the leading 64 bits of its key, in two halves, and its place among those in the sieve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item([u32; 3]);

impl Item {
    fn new(high: u64, at: usize) -> Item {
        Item([(high >> 32) as u32, high as u32, at as u32])
    }

    fn high(&self) -> u64 {
        (self.0[0] as u64) << 32 | self.0[1] as u64
    }

    fn at(&self) -> usize {
        self.0[2] as usize
    }
}

#[derive(Debug)]
pub(crate) struct Sieve {
    /// The number of the first candidate in it.
    first: u64,
    len: usize,
    room: usize,
    shard_room: usize,
    shards: Vec<Mutex<Vec<Item>>>,
    /// The other bits of long keys, by place.
    low: Vec<u64>,
    /// A bit for each candidate that a run knew.
    known: Vec<AtomicU64>,
    wide: bool,
    grant: Grant,
    bytes: u64,
}

impl Sieve {
    /// A sieve in about so many bytes; keys are longer than 64 bits if `wide`.
    pub fn new(shards: usize, wide: bool, bytes: u64, grant: &Grant) -> Result<Sieve, Full> {
        let per_key = size_of::<Item>() * (100 + SLACK_PERCENT) / 100 + if wide { 8 } else { 0 } + 1;
        let room = (bytes as usize / per_key).clamp(LEAST_KEYS, 1 << 31);
        let shard_room = room / shards * (100 + SLACK_PERCENT) / 100 + LEAST_KEYS;
        let bytes = shards * shard_room * size_of::<Item>() + if wide { room * 8 } else { 0 } + room / 8;
        if !grant.take(bytes as u64) {
            return Err(Full);
        }
        Ok(Sieve {
            first: 0,
            len: 0,
            room,
            shard_room,
            shards: (0..shards).map(|_| Mutex::new(Vec::with_capacity(shard_room))).collect(),
            low: Vec::with_capacity(if wide { room } else { 0 }),
            known: (0..room.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            wide,
            grant: grant.clone(),
            bytes: bytes as u64,
        })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes as many keys as it can from those that wait, of which the first is candidate number `first`. They are
    /// dropped from the queue. Returns how many it took.
    pub fn fill(&mut self, keys: &mut Queue, first: u64) -> Result<usize, crate::disk::Shortage> {
        (self.first, self.len) = (first, 0);
        self.low.clear();
        for shard in &mut self.shards {
            shard.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        }
        let (bits, words) = (self.shards.len().ilog2(), if self.wide { 4 } else { 2 });
        let mut piece = Vec::new();
        loop {
            let wanted = PIECE.min(self.room - self.len).min(self.least_room());
            let ready = if wanted == 0 { 0 } else { keys.ready(wanted)? };
            if ready == 0 {
                break;
            }
            keys.read(0, ready, &mut piece);
            for key in piece.chunks_exact(words) {
                let high = (key[0] as u64) << 32 | key[1] as u64;
                let shard = &mut self.shards[shard_of(high, bits)];
                shard.get_mut().unwrap_or_else(PoisonError::into_inner).push(Item::new(high, self.len));
                if self.wide {
                    self.low.push((key[2] as u64) << 32 | key[3] as u64);
                }
                self.len += 1;
            }
            keys.advance(ready);
        }
        self.known[..self.len.div_ceil(64)].iter_mut().for_each(|bits| *bits.get_mut() = 0);
        Ok(self.len)
    }

    /// So many keys fit into every shard.
    fn least_room(&mut self) -> usize {
        let fullest =
            self.shards.iter_mut().map(|shard| shard.get_mut().unwrap_or_else(PoisonError::into_inner).len()).max();
        self.shard_room - fullest.unwrap_or(0)
    }

    /// The candidates of one shard, sorted.
    pub fn with_shard<T>(&self, shard: usize, ask: impl FnOnce(&Asked) -> T) -> T {
        let mut items = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        let low = |item: &Item| self.low.get(item.at());
        items.sort_unstable_by(|one, other| one.high().cmp(&other.high()).then_with(|| low(one).cmp(&low(other))));
        ask(&Asked { sieve: self, items: &items })
    }

    /// Did a run know the candidate at this place?
    pub fn is_known(&self, at: usize) -> bool {
        self.known[at / 64].load(Ordering::Relaxed) >> (at % 64) & 1 == 1
    }
}

impl Drop for Sieve {
    fn drop(&mut self) {
        self.grant.give_back(self.bytes);
    }
}

/// The candidates of one shard, in order of their keys.
pub(crate) struct Asked<'a> {
    sieve: &'a Sieve,
    items: &'a [Item],
}

impl Asked<'_> {
    pub fn items(&self) -> &[Item] {
        self.items
    }

    pub fn key(&self, item: &Item) -> u128 {
        (item.high() as u128) << 64 | self.sieve.low.get(item.at()).copied().unwrap_or(0) as u128
    }

    /// How many candidates came before it.
    pub fn number(&self, item: &Item) -> u64 {
        self.sieve.first + item.at() as u64
    }

    pub fn is_known(&self, item: &Item) -> bool {
        self.sieve.is_known(item.at())
    }

    pub fn mark(&self, item: &Item) {
        self.sieve.known[item.at() / 64].fetch_or(1 << (item.at() % 64), Ordering::Relaxed);
    }
}
