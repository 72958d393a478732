//! The keys of a block of states, sorted by the shard they belong to.
//!
//! The leading bits of a key choose its shard. Within a shard keys keep their order, so whoever enters a shard meets
//! equal states in the order in which they were found, and says of each whether it is fresh in a place of its own:
//! several workers may enter different shards of one batch at once.

use crate::codec::Keys;
use crate::packed::Run;
use crate::region::prefetch;
use crate::tiers::Block;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

const MARKS: usize = u64::BITS as usize;
/// Halves of keys in a line of the processor's caches.
const LINE_KEYS: usize = 8;
/// In place of what a state is in that was not entered.
const UNTOLD: u64 = u64::MAX;

/// Keys with the positions they had in their block.
#[derive(Debug, Default)]
pub struct Batch {
    /// Where each shard begins, and one more for the end.
    starts: Vec<u32>,
    positions: Vec<u32>,
    high: Vec<u64>,
    low: Vec<u64>,
    /// 1 for states that were not held before.
    fresh: Vec<AtomicU8>,
    fresh_count: u32,
    /// A bit for each position of the block.
    marks: Vec<u64>,
    /// What states that were held are in, where somebody asks for it; see [`crate::snapshots`].
    lanes: Vec<AtomicU64>,
    /// The same by position.
    placed: Vec<u64>,
}

/// The shard of a key, of 2^`shard_bits`.
#[inline(always)]
pub(crate) fn shard_of(high: u64, shard_bits: u32) -> usize {
    (high as u128 >> (u64::BITS - shard_bits)) as usize
}

impl Batch {
    /// Takes keys of a block of `len` states as they are; what was here before is left in their place.
    pub fn take(&mut self, keys: &mut Keys, len: usize) {
        self.starts.clear();
        std::mem::swap(&mut self.positions, &mut keys.positions);
        std::mem::swap(&mut self.high, &mut keys.high);
        std::mem::swap(&mut self.low, &mut keys.low);
        self.ask(len);
    }

    /// Makes room for what states are in, which is nothing at first.
    pub(crate) fn make_lanes(&mut self, wanted: bool) {
        self.lanes.clear();
        if wanted {
            self.lanes.resize_with(self.positions.len(), AtomicU64::default);
        }
    }

    /// Adds those of the expanded states of `block` that have two different successors, all of which are in one thing. What states
    /// are in that were not entered is told by `lanes_of`, and asked for only where it matters.
    pub(crate) fn recognised(&mut self, block: Block, parents: &mut Vec<u32>, mut lanes_of: impl FnMut(&[u32]) -> u64) {
        self.placed.clear();
        self.placed.resize(block.len(), UNTOLD);
        block.skip.iter().for_each(|&position| self.placed[position as usize] = 0);
        for (&position, lanes) in self.positions.iter().zip(&mut self.lanes) {
            self.placed[position as usize] = *lanes.get_mut();
        }
        for (parent, bounds) in (0..).zip(block.firsts.windows(2)) {
            let successors = bounds[0] as usize..bounds[1] as usize;
            let common = self.placed[successors.clone()].iter().fold(u64::MAX, |common, lanes| common & lanes);
            if successors.len() < 2 || common == 0 {
                continue;
            }
            let mut others = successors.clone().skip(1);
            if others.all(|other| block.state(other) == block.state(successors.start)) {
                continue;
            }
            let mut untold = successors.filter(|&position| self.placed[position] == UNTOLD);
            let common = untold.try_fold(common, |common, position| match common & lanes_of(block.state(position)) {
                0 => None,
                common => Some(common),
            });
            parents.extend(common.map(|_| parent));
        }
    }

    /// Are the keys sorted by shard?
    pub fn is_sorted(&self) -> bool {
        !self.starts.is_empty()
    }

    /// Makes room for the answers, for keys of a block of `len` states.
    fn ask(&mut self, len: usize) {
        self.fresh.clear();
        self.fresh.resize_with(self.positions.len(), AtomicU8::default);
        self.marks.clear();
        self.marks.resize(len.div_ceil(MARKS), 0);
        self.fresh_count = 0;
    }

    /// Takes keys of a block of `len` states, for a store of 2^`shard_bits` shards.
    pub fn sort(&mut self, keys: &mut Keys, len: usize, shard_bits: u32) {
        if shard_bits == 0 {
            self.take(keys, len);
            self.starts.extend([0, self.positions.len() as u32]);
            return;
        }
        let Batch { starts, positions, high, low, .. } = self;
        positions.resize(keys.high.len(), 0);
        high.resize(keys.high.len(), 0);
        low.resize(keys.low.len(), 0);
        let shards = 1 << shard_bits;
        let shard = |high: u64| shard_of(high, shard_bits);
        starts.clear();
        starts.resize(shards + 2, 0);
        // Each count is two places further, so that while keys are placed every start becomes that of the next shard.
        keys.high.iter().for_each(|&high| starts[shard(high) + 2] += 1);
        (2..shards + 2).for_each(|shard| starts[shard] += starts[shard - 1]);
        for (from, (&key, &position)) in keys.high.iter().zip(&keys.positions).enumerate() {
            let place = &mut starts[shard(key) + 1];
            let at = *place as usize;
            *place += 1;
            positions[at] = position;
            high[at] = key;
            if let Some(low) = low.get_mut(at) {
                *low = keys.low[from];
            }
        }
        starts.pop();
        self.ask(len);
    }

    /// Takes some keys of another batch but for those that are `known`.
    pub(crate) fn take_unknown(&mut self, other: &Batch, range: Range<usize>, known: impl Fn(u128) -> bool) {
        let run = other.run(range.clone());
        let unknown = || (0..range.len()).filter(|&index| !known(run.key(index)));
        self.positions.clear();
        self.positions.extend(unknown().map(|index| (range.start + index) as u32));
        let places = || self.positions.iter().map(|&place| place as usize);
        self.high.clear();
        self.high.extend(places().map(|place| other.high[place]));
        self.low.clear();
        self.low.extend(places().filter_map(|place| other.low.get(place)));
        self.fresh.clear();
        self.fresh.resize_with(self.positions.len(), AtomicU8::default);
        self.starts.clear();
        // From here on they are known by the positions they have in their block.
        self.marks.clear();
        self.marks.extend(self.positions.iter().map(|&place| place as u64));
        self.positions.iter_mut().for_each(|place| *place = other.positions[*place as usize]);
    }

    /// The answer for one key.
    pub(crate) fn answer(&self, at: usize, fresh: bool) {
        self.fresh[at].store(fresh as u8, Ordering::Relaxed);
    }

    /// Passes the answers on to the batch that the keys were taken from.
    pub(crate) fn pass_answers(&self, other: &Batch) {
        for (&place, fresh) in self.marks.iter().zip(&self.fresh) {
            other.fresh[place as usize].store(fresh.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// How many states are fresh, once that was asked for.
    pub fn fresh_count(&self) -> u32 {
        self.fresh_count
    }

    /// Puts the positions of all fresh states into `positions`, in order. Once for each time keys are taken.
    pub fn fresh(&mut self, positions: &mut Vec<u32>) {
        positions.clear();
        if self.starts.len() <= 2 {
            // Nobody can guess which are fresh, so all are written, and those that are not are written over.
            positions.resize(self.positions.len(), 0);
            let mut count = 0;
            for (&position, fresh) in self.positions.iter().zip(&mut self.fresh) {
                positions[count] = position;
                count += (*fresh.get_mut() == 1) as usize;
            }
            positions.truncate(count);
            self.fresh_count = count as u32;
            return;
        }
        for (&position, fresh) in self.positions.iter().zip(&mut self.fresh) {
            self.marks[position as usize / MARKS] |= (*fresh.get_mut() as u64) << (position as usize % MARKS);
        }
        for (word, &marks) in self.marks.iter().enumerate() {
            let mut marks = marks;
            while marks != 0 {
                positions.push((word * MARKS) as u32 + marks.trailing_zeros());
                marks &= marks - 1;
            }
        }
        self.fresh_count = positions.len() as u32;
    }

    /// Visits the keys of the fresh states, each with its number among them in the order of positions. Once those were
    /// asked for.
    pub(crate) fn fresh_keys(&self, mut visit: impl FnMut(usize, u64, u64)) {
        let mut ranks = Vec::with_capacity(self.marks.len());
        let mut rank = 0;
        for marks in &self.marks {
            ranks.push(rank);
            rank += marks.count_ones() as usize;
        }
        let in_order = self.starts.len() <= 2;
        let fresh = (0..self.len()).filter(|&at| self.fresh[at].load(Ordering::Relaxed) == 1);
        for (count, at) in fresh.enumerate() {
            let (word, bit) = (self.positions[at] as usize / MARKS, self.positions[at] as usize % MARKS);
            let index = if in_order {
                count
            } else {
                ranks[word] + (self.marks[word] & ((1 << bit) - 1)).count_ones() as usize
            };
            visit(index, self.high[at], self.low.get(at).copied().unwrap_or(0));
        }
    }

    /// How many keys belong to a shard; all may, where they are not sorted.
    pub(crate) fn count_in(&self, shard: usize) -> usize {
        if self.is_sorted() { self.range(shard).len() } else { self.len() }
    }

    /// Asks for the keys of a shard.
    pub(crate) fn ask_for(&self, shard: usize) {
        self.high[self.range(shard)].chunks(LINE_KEYS).for_each(|keys| prefetch(&keys[0]));
    }

    pub(crate) fn range(&self, shard: usize) -> Range<usize> {
        self.starts[shard] as usize..self.starts[shard + 1] as usize
    }

    /// The shards that have keys, and where.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let bounds = self.starts.windows(2).enumerate().filter(|(_, bounds)| bounds[0] < bounds[1]);
        bounds.map(|(shard, bounds)| (shard, bounds[0] as usize..bounds[1] as usize))
    }

    pub(crate) fn run(&self, range: Range<usize>) -> Run<'_> {
        Run { high: &self.high[range.clone()], low: if self.low.is_empty() { &[] } else { &self.low[range] } }
    }

    pub(crate) fn positions(&self, range: Range<usize>) -> &[u32] {
        &self.positions[range]
    }

    /// The places for the answers of a shard.
    pub(crate) fn answers(&self, range: Range<usize>) -> &[AtomicU8] {
        &self.fresh[range]
    }

    /// The places for what the states of a shard are in; none unless somebody asks for it.
    pub(crate) fn lanes(&self, range: Range<usize>) -> &[AtomicU64] {
        self.lanes.get(range).unwrap_or(&[])
    }

    /// How many of the states were said to be fresh.
    pub(crate) fn fresh_of(&self, range: Range<usize>) -> usize {
        self.answers(range).iter().filter(|fresh| fresh.load(Ordering::Relaxed) == 1).count()
    }
}
