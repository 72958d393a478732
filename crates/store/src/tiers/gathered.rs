//! Keys that several blocks have of one shard, put end to end, so that they are looked for together.
//!
//! With many workers there are many shards, and a block has few keys for each: if they were looked for block by block, whoever does it would wait
//! for memory once a block, for what it asks for first is needed at once. And what is written to the memory of a block takes long when others have just
//! written nearby, so answers are written in one go, and nobody counts in one place.

use crate::batch::Batch;
use crate::budget::Full;
use crate::packed::{Homes, Packed, Run};
use std::sync::atomic::{AtomicU8, Ordering};

/// So many keys, or those of one block, are looked for at once: their lines stay in the processor's second cache.
const AT_ONCE: usize = 2048;

/// Keys of some blocks, one block after the other, and what was found out about them. One for each worker.
#[derive(Debug, Default)]
pub struct Gathered {
    high: Vec<u64>,
    low: Vec<u64>,
    fresh: Vec<AtomicU8>,
    homes: Homes,
}

impl Gathered {
    /// About so many bytes it takes, where blocks have so many successors at most.
    pub const fn most_bytes(block_successors: usize) -> usize {
        (AT_ONCE + block_successors) * (size_of::<[u64; 4]>() + 1)
    }

    /// Enters what the blocks have of a shard; see [`super::Tiers::enter`].
    pub(super) fn enter<'b>(
        &mut self,
        table: &mut Packed,
        shard: usize,
        blocks: impl Iterator<Item = &'b Batch>,
        key_bits: u32,
        mut tell: impl FnMut(usize),
    ) -> Result<(), Full> {
        let mut pending = Vec::new();
        let mut blocks = blocks.peekable();
        while let Some(block) = blocks.next() {
            self.take(block.run(block.range(shard)));
            pending.push(block);
            if self.high.len() >= AT_ONCE || blocks.peek().is_none() {
                let entered = self.enter_pending(table, shard, &pending, key_bits, &mut tell);
                pending.clear();
                self.clear();
                entered?;
            }
        }
        Ok(())
    }

    fn take(&mut self, keys: Run) {
        // Keys of earlier blocks may be shorter.
        if !keys.low.is_empty() {
            self.low.resize(self.high.len(), 0);
            self.low.extend_from_slice(keys.low);
        }
        self.high.extend_from_slice(keys.high);
    }

    fn clear(&mut self) {
        self.high.clear();
        self.low.clear();
    }

    /// Enters what was gathered from the blocks, together if there is room for all of it.
    fn enter_pending(
        &mut self,
        table: &mut Packed,
        shard: usize,
        blocks: &[&Batch],
        key_bits: u32,
        tell: &mut impl FnMut(usize),
    ) -> Result<(), Full> {
        if table.reserve(self.high.len(), key_bits).is_err() {
            return blocks.iter().try_for_each(|block| {
                let range = block.range(shard);
                let entered = table.reserve(range.len(), key_bits);
                tell(entered.map_or(0, |()| table.insert_all(block.run(range.clone()), block.answers(range))));
                entered
            });
        }
        if !self.low.is_empty() {
            self.low.resize(self.high.len(), 0);
        }
        self.fresh.resize_with(self.high.len(), AtomicU8::default);
        let keys = Run { high: &self.high, low: &self.low };
        table.insert_with_room(keys, &mut self.homes, &self.fresh);
        let mut answers = self.fresh.iter_mut().map(|answer| *answer.get_mut());
        for block in blocks {
            let places = block.answers(block.range(shard)).iter();
            tell(places.zip(&mut answers).fold(0, |count, (place, answer)| {
                place.store(answer, Ordering::Relaxed);
                count + answer as usize
            }));
        }
        Ok(())
    }
}
