//! How keys of blocks come into the tables of shards.

use super::cached::{Parents, insert_cached};
use super::coded::Long;
use super::{Block, Entry, Gathered, Shard, Table, Tiers, layered, levels, lock, own, vectors};
use crate::batch::{Batch, shard_of};
use crate::budget::Full;
use crate::packed::Packed;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Fewer keys at a time do not hide how long memory takes.
const SHORT_RUN: usize = 16;

impl Tiers {
    /// Enters the keys that some blocks have of one shard, in order, and says of one after the other how many of these were fresh. On `Full`
    /// nothing is lost, but not all of them were entered: the last block of which something was said is the first that has some left.
    pub fn enter<'b>(
        &self,
        shard: usize,
        blocks: usize,
        entry_of: impl Fn(usize) -> &'b Entry,
        block_of: impl Fn(usize) -> Block<'b>,
        gathered: &mut Gathered,
        mut tell: impl FnMut(usize),
    ) -> Result<(), Full> {
        let (mut held, key_bits) = (lock(&self.shards[shard]), self.key_bits.load(Ordering::Relaxed));
        if let Some(packed) = held.alone() {
            return gathered.enter(packed, shard, blocks, |block| &entry_of(block).states, key_bits, tell);
        }
        for number in 0..blocks {
            let (block, entry) = (block_of(number), entry_of(number));
            let range = entry.states.range(shard);
            if range.is_empty() && entry.parents.is_empty() {
                tell(0);
                continue;
            }
            let entered = held.enter(shard, range.clone(), block, entry, key_bits);
            // Where some found no room, those before them are held all the same.
            tell(entered.unwrap_or_else(|Full| entry.states.fresh_of(range)));
            entered?;
        }
        Ok(())
    }

    /// Enters the keys of all shards, one after the other.
    pub fn enter_all(&mut self, block: Block, entry: &Entry) -> Result<(), Full> {
        let (key_bits, shard_bits, states) = (*self.key_bits.get_mut(), self.shard_bits, &entry.states);
        if !states.is_sorted() {
            let shards = || states.run(0..states.len()).high.iter().map(|&key| shard_of(key, shard_bits)).enumerate();
            for (at, shard) in shards() {
                own(&mut self.shards[shard]).last.prefetch(states.run(at..at + 1));
            }
            let mut enter = |at: usize, shard: usize| {
                let held = own(&mut self.shards[shard]);
                match held.alone() {
                    Some(packed) => {
                        packed.reserve(1, key_bits)?;
                        states.answer(at, packed.insert_one(states.run(at..at + 1).key(0)));
                        Ok(())
                    }
                    None => held.enter(shard, at..at + 1, block, entry, key_bits).map(|_| ()),
                }
            };
            return shards().try_for_each(|(at, shard)| enter(at, shard));
        }
        // Where a shard has a few keys only, those of all must be asked for before the first is looked at.
        if states.len() < SHORT_RUN * self.shards.len() {
            for (shard, range) in states.ranges() {
                own(&mut self.shards[shard]).last.prefetch(states.run(range));
            }
        }
        let tells_parents = !entry.parents.is_empty();
        for (number, shard) in self.shards.iter_mut().enumerate() {
            let range = states.range(number);
            if tells_parents || !range.is_empty() {
                own(shard).enter(number, range, block, entry, key_bits)?;
            }
        }
        Ok(())
    }
}

impl Shard {
    /// Its only table, if that is one of keys.
    fn alone(&mut self) -> Option<&mut Packed> {
        match self {
            Shard { last: Table::Packed(packed), frozen, next: None, .. } if frozen.is_empty() => Some(packed),
            _ => None,
        }
    }

    /// Enters keys of a block that belong to this shard, number `shard`, and returns how many are fresh.
    pub(super) fn enter(
        &mut self,
        shard: usize,
        range: Range<usize>,
        block: Block,
        entry: &Entry,
        key_bits: u32,
    ) -> Result<usize, Full> {
        let states = &entry.states;
        let parents = Parents::new(&entry.parents, shard, block);
        if let Some((room, next)) = self.next.take() {
            let Table::Packed(packed) = &mut self.last else { unreachable!("only packed keys are followed by others") };
            if fill(packed, room, states, range.clone(), key_bits) {
                self.next = Some((room, next));
                return Ok(states.fresh_of(range));
            }
            // Those that were entered are known from here on, and their answers stay.
            let Table::Packed(full) = std::mem::replace(&mut self.last, next) else { unreachable!("it was packed") };
            self.frozen.push(full);
        }
        if let (Some(older), Table::Vectors(younger)) = (&self.older, &mut self.last) {
            younger.reserve(range.len())?;
            return vectors::enter_younger_first(younger, older, block, states, range);
        }
        if self.frozen.is_empty() {
            return self.last.enter(block, states, range, parents, key_bits, self.long.as_mut());
        }
        if let Table::Packed(younger) = &mut self.last {
            younger.reserve(range.len(), key_bits)?;
            return Ok(layered::enter_younger_first(younger, &mut self.frozen, states, range));
        }
        let frozen = &self.frozen;
        frozen.iter().for_each(|table| table.prefetch(states.run(range.clone())));
        self.unknown.take_unknown(states, range.clone(), |key| frozen.iter().any(|table| table.contains(key)));
        let unknown = &self.unknown;
        let entered = self.last.enter(block, unknown, 0..unknown.len(), parents, key_bits, None);
        unknown.pass_answers(states);
        entered.map(|_| states.fresh_of(range))
    }
}

impl Table {
    /// Enters keys, all of which belong to the shard of this table, and returns how many are fresh.
    fn enter(
        &mut self,
        block: Block,
        states: &Batch,
        range: Range<usize>,
        parents: Parents,
        key_bits: u32,
        long: Option<&mut Long>,
    ) -> Result<usize, Full> {
        self.reserve(range.len(), key_bits)?;
        match self {
            Table::Packed(packed) => Ok(packed.insert_all(states.run(range.clone()), states.answers(range))),
            Table::Vectors(table) => vectors::insert(table, block, states, range),
            Table::Filter(filter) => Ok(filter.insert_all(states.run(range.clone()), states.answers(range))),
            Table::Coded(coded) => coded.insert_all(block, states, range),
            Table::Ways(ways) => insert_cached(&mut **ways, block, states, range, parents, long),
            Table::Cache(cache) => insert_cached(&mut **cache, block, states, range, parents, long),
            Table::Levels(levels) => Ok(levels::insert_levels(levels, block, states, range)),
        }
    }
}

/// Inserts keys in order until there are `room` or there is no memory; true if all of them were entered.
fn fill(table: &mut Packed, room: usize, batch: &Batch, mut left: Range<usize>, key_bits: u32) -> bool {
    while !left.is_empty() {
        // So many fit, however many of them are new.
        let count = left.len().min(room.saturating_sub(table.len()));
        if count == 0 || table.reserve(count, key_bits).is_err() {
            return false;
        }
        let range = left.start..left.start + count;
        table.insert_all(batch.run(range.clone()), batch.answers(range));
        left.start += count;
    }
    true
}
