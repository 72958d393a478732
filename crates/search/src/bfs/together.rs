//! How several workers take a part of a wave through its phases.
//!
//! What one processor wrote takes another much longer to read than its own, and a lock that many take longer still. So each block is
//! locked once a phase by whoever works on it; while shards are entered and everybody reads all blocks, they lie where one lock serves for all of
//! them ([`Gathering`]); how many states of a block are fresh in a shard is noted by whoever entered that shard, in a row of its own; and what the
//! leader must know of every block lies side by side ([`Told`]).

use super::expansion::{Done, Expansion};
use super::ledger::Ledger;
use super::wave::Wave;
use super::{ENTER, EXPAND, GROW, Leader, NUMBER, Search, Worker, read, write};
use crate::verdict::Why;
use plimsoll_model::Model;
use plimsoll_store::{Entry, Full};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counts that share a line of the processor's caches.
const LINE_COUNTS: usize = 16;

/// What is told about a block: how many keys it has, if it has keys, to the leader; and then where in the queue its fresh states begin, to whoever
/// numbers them.
#[derive(Default)]
pub(super) struct Told(AtomicU64);

impl Told {
    const NO_KEYS: u64 = u64::MAX;

    pub fn tell_keys(&self, block: &Expansion) {
        let keys = if block.done == Done::Encoded { block.entry.len() as u64 } else { Told::NO_KEYS };
        self.0.store(keys, Ordering::Relaxed);
    }

    fn keys(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&keys| keys != Told::NO_KEYS).map(|keys| keys as usize)
    }

    fn tell_place(&self, place: usize) {
        self.0.store(place as u64, Ordering::Relaxed);
    }

    fn place(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }
}

/// The blocks of a part of a wave while shards are entered.
#[derive(Default)]
pub(super) struct Gathering {
    /// In order, in boxes so that they are exchanged quickly. Between two parts others lie here, of which nobody wants to know anything.
    #[allow(clippy::vec_box)]
    blocks: Vec<Box<Expansion>>,
    /// How many of them are entered.
    count: usize,
    /// How many states of each of them are fresh, in one row for each shard.
    fresh: Vec<AtomicU32>,
    row_len: usize,
}

impl Gathering {
    /// Prepares to enter the first blocks into so many shards.
    fn prepare(&mut self, count: usize, shards: usize) {
        self.count = count;
        // There is a row also where no block has keys.
        self.row_len = count.max(1).next_multiple_of(LINE_COUNTS);
        self.fresh.resize_with(self.row_len * shards, AtomicU32::default);
    }

    fn row(&self, shard: usize) -> &[AtomicU32] {
        &self.fresh[shard * self.row_len..][..self.count]
    }

    /// How many states of each of the first blocks are fresh.
    fn fresh_of(&mut self, blocks: usize) -> Vec<usize> {
        let mut sums = vec![0; blocks];
        for row in self.fresh.chunks_exact_mut(self.row_len) {
            sums.iter_mut().zip(row).for_each(|(sum, fresh)| *sum += *fresh.get_mut() as usize);
        }
        sums
    }
}

impl<M: Model + ?Sized> Search<'_, M> {
    /// Phase 2, for one shard.
    pub(super) fn enter_shard(&self, shard: usize, worker: &mut Worker) {
        let gathering = read(&self.gathering);
        let mut row = gathering.row(shard).iter();
        let blocks = &gathering.blocks[..gathering.count];
        let (entry_of, block_of) = (|number: usize| &blocks[number].entry, |number: usize| blocks[number].block());
        let tell = |fresh: usize| row.by_ref().take(1).for_each(|place| place.store(fresh as u32, Ordering::Relaxed));
        let gathered = &mut worker.gathered;
        if read(&self.tiers).enter(shard, blocks.len(), entry_of, block_of, gathered, tell).is_err() {
            let left = row.inspect(|place| place.store(0, Ordering::Relaxed)).count();
            self.full.fetch_min(gathering.count - left - 1, Ordering::Relaxed);
        }
    }

    /// Phase 3, for one block.
    pub(super) fn number(&self, number: usize, worker: &mut Worker) {
        let mut block = write(&self.blocks[number]);
        block.place = self.told[number].place();
        block.find_fresh();
        if self.needs.lanes {
            block.recognise(&self.coder, &read(&self.tiers), self.needs, &mut worker.keys);
        }
        if !self.is_deferring() {
            let queue = read(&self.queue);
            return block.number(self.model, None, |place, states| queue.write_all(place, states));
        }
        if let Some(layers) = read(&self.tiers).layers()
            && block.set_aside(self.model, &layers.candidates, None, self.looks_ahead)
        {
            self.urgent.store(true, Ordering::Relaxed);
        }
    }
}

impl<'a, M: Model + ?Sized> Leader<'_, 'a, '_, M> {
    /// All workers take part, phase by phase.
    pub(super) fn together(&mut self, part: Wave, ledger: &mut Ledger<'a, '_, M>) -> Result<(), Why> {
        let search = self.search;
        while let pieces @ 1.. = search.coder.next_pieces(search.crew.workers) {
            self.perform_all(GROW, pieces)?;
        }
        self.perform_all(EXPAND, part.blocks)?;
        self.exchange_blocks(part.blocks);
        let entered = self.enter_together(part);
        self.exchange_blocks(part.blocks);
        let blocks = entered?;
        self.perform_all(NUMBER, blocks)?;
        let full = search.full.load(Ordering::Relaxed);
        for (number, block) in search.blocks[..blocks].iter().enumerate() {
            let block = read(block);
            ledger.enter(&block)?;
            if !block.recognised.is_empty() {
                write(&search.tiers).recognise(&block.recognised).map_err(|Full| Why::Memory)?;
            }
            if number < full {
                ledger.show(&block, false, search.is_deferring(), || true)?;
            }
        }
        search.room()?;
        let left = (blocks < part.blocks).then(|| read(&search.blocks[blocks]).done);
        left.map_or(Ok(()), |done| Err(self.not_encoded(done)))
    }

    /// Puts blocks where all can read them at once, or back to where each has its own lock.
    fn exchange_blocks(&self, count: usize) {
        let mut gathering = write(&self.search.gathering);
        let width = self.search.model.width();
        let missing = count.saturating_sub(gathering.blocks.len());
        gathering.blocks.extend((0..missing).map(|_| Box::new(Expansion::new(width))));
        for (block, other) in self.search.blocks[..count].iter().zip(&mut gathering.blocks) {
            std::mem::swap(&mut *write(block), other);
        }
    }

    /// Phase 2, between preparing it and adding up, for blocks that were expanded: says of how many what was fresh is to be numbered.
    fn enter_together(&mut self, part: Wave) -> Result<usize, Why> {
        let search = self.search;
        let shards = {
            let mut gathering = write(&search.gathering);
            let told = search.told[..part.blocks].iter().map(Told::keys).sum::<Option<usize>>();
            let (blocks, keys) = match told {
                Some(keys) => (part.blocks, keys),
                None => self.encode_others(&mut gathering.blocks[..part.blocks], part.level + 1)?,
            };
            search.coder.show(&read(&search.tiers));
            let entries: Vec<&Entry> = gathering.blocks[..blocks].iter().map(|block| &block.entry).collect();
            self.make_room(&entries, keys, part.level + 1).map_err(|why| self.not_entered(why))?;
            let shards = read(&search.tiers).shards();
            gathering.prepare(blocks, shards);
            shards
        };
        self.perform_all(ENTER, shards)?;
        let mut gathering = write(&search.gathering);
        // What comes behind a block that found no room does not count.
        let blocks = gathering.count.min(search.full.load(Ordering::Relaxed).saturating_add(1));
        let fresh = gathering.fresh_of(blocks);
        let all = fresh.iter().sum();
        let mut place = match write(&search.tiers).layers_mut().filter(|layers| layers.defers()) {
            Some(layers) => layers.candidates.extend(all)?,
            None => write(&search.queue).extend(all)?,
        };
        for (told, fresh) in search.told.iter().zip(fresh) {
            told.tell_place(place);
            place += fresh;
        }
        Ok(blocks)
    }

    /// Computes keys that blocks lack, as far as possible; says how many of the first blocks have keys then, and how many these are.
    fn encode_others(&mut self, blocks: &mut [Box<Expansion>], level: u32) -> Result<(usize, usize), Why> {
        self.encode_after_forgetting(&mut blocks.iter_mut().map(|block| &mut **block).collect::<Vec<_>>());
        for block in blocks.iter_mut() {
            if block.done == Done::Full && read(&self.search.tiers).can_make_room() {
                self.encode_again(block, level).map_err(|why| self.not_entered(why))?;
            }
        }
        let encoded = blocks.iter().take_while(|block| block.done == Done::Encoded);
        Ok(encoded.fold((0, 0), |(count, keys), block| (count + 1, keys + block.entry.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fresh_is_added_up_over_shards_for_any_number_of_blocks() {
        let mut gathering = Gathering::default();
        // The last of these have fewer blocks or shards than were there before.
        for (blocks, shards) in [(5, 4), (40, 8), (0, 8), (17, 1), (3, 2)] {
            gathering.prepare(blocks, shards);
            for shard in 0..shards {
                for (block, place) in gathering.row(shard).iter().enumerate() {
                    place.store((shard * 100 + block) as u32, Ordering::Relaxed);
                }
            }
            let sums = (0..blocks).map(|block| (0..shards).map(|shard| shard * 100 + block).sum::<usize>());
            assert_eq!(gathering.fresh_of(blocks), sums.collect::<Vec<_>>());
        }
    }
}
