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
/// Keys that another processor wrote are asked for so many blocks ahead.
const BLOCKS_AHEAD: usize = 4;

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
        AT_ONCE.saturating_add(block_successors).saturating_mul(size_of::<[u64; 4]>() + 1)
    }

    /// Enters what some blocks have of a shard; see [`super::Tiers::enter`].
    pub(super) fn enter<'b>(
        &mut self,
        table: &mut Packed,
        shard: usize,
        blocks: usize,
        batch_of: impl Fn(usize) -> &'b Batch,
        key_bits: u32,
        mut tell: impl FnMut(usize),
    ) -> Result<(), Full> {
        (0..blocks.min(BLOCKS_AHEAD)).for_each(|block| batch_of(block).ask_for(shard));
        let mut pending = 0..0;
        for block in 0..blocks {
            if block + BLOCKS_AHEAD < blocks {
                batch_of(block + BLOCKS_AHEAD).ask_for(shard);
            }
            let batch = batch_of(block);
            self.take(batch.run(batch.range(shard)));
            pending.end = block + 1;
            if self.high.len() >= AT_ONCE || pending.end == blocks {
                let entered = self.enter_pending(table, shard, pending.clone().map(&batch_of), key_bits, &mut tell);
                pending.start = pending.end;
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
    fn enter_pending<'b>(
        &mut self,
        table: &mut Packed,
        shard: usize,
        mut blocks: impl Iterator<Item = &'b Batch>,
        key_bits: u32,
        tell: &mut impl FnMut(usize),
    ) -> Result<(), Full> {
        if table.reserve(self.high.len(), key_bits).is_err() {
            return blocks.try_for_each(|block| {
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

#[cfg(test)]
mod tests {
    use super::super::Tiers;
    use super::*;
    use crate::budget::{Budget, Grant};
    use crate::codec::{Codec, Coder, Keys};
    use crate::tiers::{Block, Entry};
    use plimsoll_ir::random::Draw;

    const SHARD_BITS: u32 = 2;
    const PER_BLOCK: usize = 700;

    /// Blocks of states of so many words, many of which are in several.
    fn blocks(width: usize) -> Vec<Vec<u32>> {
        let mut draw = Draw::new(width as u64);
        let mut word = |at: usize| if at.is_multiple_of(width) { draw.below(9_000) as u32 } else { 7 };
        (0..30).map(|_| (0..PER_BLOCK * width).map(&mut word).collect()).collect()
    }

    fn coder(width: usize) -> Coder {
        Coder::new(Codec::Packed, &vec![u32::MAX; width], &Grant::unlimited()).unwrap()
    }

    /// Enters blocks together, shard by shard; says which states of each are fresh, and whether there was room.
    fn enter_together(tiers: &mut Tiers, entries: &mut [Entry]) -> (Vec<Vec<u32>>, bool) {
        let (mut gathered, mut sums, mut has_room) = (Gathered::default(), vec![0; entries.len()], true);
        for shard in 0..tiers.shards() {
            let (entries, mut number) = (&*entries, 0);
            let none = |_: usize| unreachable!("blocks are not looked at");
            let tell = |fresh| {
                sums[number] += fresh;
                number += 1;
            };
            has_room &= tiers.enter(shard, entries.len(), |at| &entries[at], none, &mut gathered, tell).is_ok();
        }
        let mut found = vec![Vec::new(); entries.len()];
        entries.iter_mut().zip(&mut found).for_each(|(entry, found)| entry.fresh(found));
        assert!(found.iter().map(Vec::len).eq(sums), "what was told is what was written");
        (found, has_room)
    }

    fn encode(coder: &Coder, tiers: &Tiers, blocks: &[Vec<u32>]) -> Vec<Entry> {
        let needs = tiers.needs();
        let encode = |states: &Vec<u32>| {
            let mut entry = Entry::default();
            let firsts = [0, PER_BLOCK as u32];
            entry.encode(coder, Block::of(states, &firsts), needs, &mut Keys::default()).map(|()| entry).unwrap()
        };
        blocks.iter().map(encode).collect()
    }

    #[test]
    fn what_is_entered_together_is_as_fresh_as_block_by_block() {
        for width in [1, 2, 3, 4] {
            let (blocks, coder) = (blocks(width), coder(width));
            let mut twin = std::collections::HashSet::new();
            let mut tiers = Tiers::exact(&coder, SHARD_BITS, &Grant::unlimited()).unwrap();
            let mut entries = encode(&coder, &tiers, &blocks);
            let (found, has_room) = enter_together(&mut tiers, &mut entries);
            assert!(has_room);
            for (states, found) in blocks.iter().zip(found) {
                let fresh = (0..).zip(states.chunks(width)).filter(|(_, state)| twin.insert(state.to_vec()));
                assert_eq!(found, fresh.map(|(position, _)| position).collect::<Vec<u32>>());
            }
            assert_eq!(tiers.held().0, twin.len());
        }
    }

    /// Keys of later blocks may be longer than those of earlier ones, which end with zeros then.
    #[test]
    fn short_keys_are_gathered_with_long_ones() {
        let mut gathered = Gathered::default();
        gathered.take(Run { high: &[1, 2], low: &[] });
        gathered.take(Run { high: &[3], low: &[4] });
        assert_eq!((&gathered.high[..], &gathered.low[..]), (&[1, 2, 3][..], &[0, 0, 4][..]));
    }

    #[test]
    fn what_found_no_room_is_left_and_the_rest_is_told() {
        let (blocks, coder) = (blocks(2), coder(2));
        let budget = Budget::new(64 << 10);
        let mut tiers = Tiers::exact(&coder, SHARD_BITS, &budget.grant("tables", 64 << 10)).unwrap();
        let mut entries = encode(&coder, &tiers, &blocks);
        let (found, has_room) = enter_together(&mut tiers, &mut entries);
        assert!(!has_room && tiers.held().0 == found.iter().map(Vec::len).sum::<usize>());
        assert!(tiers.held().0 > 1_000, "{} states", tiers.held().0);
    }
}
