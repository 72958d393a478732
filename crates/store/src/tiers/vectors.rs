//! What becomes of a tree whose nodes fill memory: states are packed from then on, or else, for want of short keys, held and written as they are:
//! tables of vectors leave memory, a generation at a time, as those of keys do ([`super::layered`]).
//!
//! States that may use more bits than a key has are packed too, if those so far differ in few enough. Should one come that differs in
//! more, packed keys are given up in the same way, for states as they are. Not where levels are given up: keys of which some are gone cannot
//! be taken apart any more, so there would be no way on.

use super::{Arena, Batch, Block, Coder, Full, Shard, Table, Tiers, exact_shards, lock, own};
use crate::disk::Shortage;
use crate::intern::Intern;
use crate::packing::Packing;
use crate::runs::{Layers, MOST_WORDS};
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

/// A tree may take so many per cent of the memory of the store beside runs on disk: where it takes more, tables leave so often that
/// keys are written again and again.
const TREE_PERCENT: u64 = 50;
/// Memory is short when less than this part of it is left.
const SHORT_SHARE: u64 = 4;

impl Tiers {
    /// Are states held as they are?
    pub(super) fn holds_vectors(&self) -> bool {
        matches!(lock(&self.shards[0]).last, Table::Vectors(_))
    }

    /// The same with a way to pack states, whose words use these bits, should a tree be given up; if they differ in few enough.
    pub fn with_packing(mut self, used: &[u32]) -> Tiers {
        self.packing = Some(Packing::of_any(used));
        self
    }

    /// How states can be packed, should a tree be given up.
    pub fn packing(&self) -> Option<&Packing> {
        self.packing.as_ref()
    }

    /// Could states be written packed, or as they are, instead of the roots of a tree, or of keys that are outgrown? Not without a table
    /// for every shard.
    pub fn can_give_up(&self, coder: &Coder) -> bool {
        let words = match coder {
            Coder::Tree(tree) => self.words_written(tree.width()),
            coder if coder.is_outgrown() => coder.width(),
            _ => return false,
        };
        self.is_whole() && words <= MOST_WORDS && self.layers().is_some_and(Layers::can_be_written_anew)
    }

    /// Words of states that are written as they are if a tree is given up, at most.
    fn words_written(&self, width: usize) -> usize {
        if self.packing.as_ref().is_some_and(|packing| !packing.is_wide()) { 0 } else { width }
    }

    /// Should they be, for the tree takes too much memory beside what is on disk? At the latest while there is enough to take every key
    /// apart.
    pub fn is_outgrown_by(&self, coder: &Coder) -> bool {
        let (Coder::Tree(tree), Some(below)) = (coder, &self.below) else { return false };
        let (cap, left) = (self.grant.cap_bytes(), self.grant.left_bytes());
        if !(below.layers().defers() || left < cap / SHORT_SHARE) {
            return false;
        }
        let is_large = tree.bytes() as u64 > cap / 100 * TREE_PERCENT;
        let is_late = || {
            let ((held, bytes), layers) = (self.held(), below.layers());
            let width = self.words_written(tree.width());
            left + (bytes as u64) < layers.anew_bytes(held as u64 + layers.keys(), width)
        };
        (is_large || is_late()) && self.can_give_up(coder)
    }

    /// Gives up the tree, or keys that are outgrown: all leave for the disk and are taken apart there. When no candidate waits, and nothing that
    /// was encoded is still to be entered; states of `level` are being found. Whatever can be made again goes first, for taking keys apart
    /// needs memory beside the tree.
    pub fn give_up_keys(&mut self, coder: &mut Coder, level: u32) -> Result<(), Shortage> {
        let width = coder.width();
        self.begin_flush(coder, level, true);
        (0..self.shards.len()).try_for_each(|shard| self.flush(shard))?;
        self.shards.clear();
        self.arena = Arena::new(self.grant.clone());
        let below = self.below.as_mut().expect("there is a disk");
        below.drop_older();
        let layers = below.layers_mut();
        let written = match std::mem::replace(coder, Coder::Plain { width }) {
            Coder::Tree(tree) => {
                let mut decoder = tree.into_decoder();
                let mut state_of = |key: u128, states: &mut Vec<u32>| decoder.decode((key >> 64) as u64, states);
                let packing = match self.packing.take() {
                    Some(wide) if wide.is_wide() && !layers.keeps_all() => None,
                    // There is no way back in the middle of it, so all states are looked at first.
                    Some(wide) if wide.is_wide() => wide.telling(&layers.differing(width, &mut state_of)?),
                    packing => packing,
                };
                *coder = packing.map_or(Coder::Plain { width }, Coder::Packed);
                layers.write_anew(coder, state_of)
            }
            Coder::Packed(packing) => {
                layers.outgrow_keys();
                layers.write_anew(coder, |key, states| packing.decode_whole(key, states))
            }
            _ => unreachable!("others are not given up"),
        };
        self.key_bits = AtomicU32::new(coder.key_bits());
        written?;
        let made = exact_shards(coder, self.shard_bits, self.density, &self.arena, &self.grant);
        self.shards = made.map_err(|Full| Shortage::Memory)?;
        self.end_flush(coder)
    }

    /// Writes the vectors that leave one shard, of these levels each.
    pub(super) fn flush_vectors(&self, number: usize, everything: bool, levels: &[[u32; 2]]) -> Result<(), Shortage> {
        let (shard, Some(layers)) = (lock(&self.shards[number]), self.layers()) else { return Ok(()) };
        let mut leaving = shard.leaving_vectors(everything).zip(levels);
        leaving.try_for_each(|(table, levels)| layers.write_vectors(number, table, *levels))
    }

    /// Drops the vectors that were written and makes room for what comes.
    pub(super) fn replace_vectors(&mut self, everything: bool) -> Result<(), Full> {
        let stride = match &own(&mut self.shards[0]).last {
            Table::Vectors(table) => table.stride(),
            _ => unreachable!("states are held as they are"),
        };
        // First everything that leaves, in all shards.
        let older: Vec<Option<Intern>> = std::mem::take(&mut self.shards)
            .into_iter()
            .map(|shard| match shard.into_inner().unwrap_or_else(PoisonError::into_inner).last {
                Table::Vectors(table) if !everything => Some(table),
                _ => None,
            })
            .collect();
        let mut done = Ok(());
        for older in older {
            let shard = match (Intern::one_of(self.shard_bits, stride, self.grant.clone()), older) {
                (Ok(young), older) => {
                    let mut shard = Shard::new(Table::Vectors(young));
                    own(&mut shard).older = older;
                    Some(shard)
                }
                // As with keys, nothing that was not written is lost.
                (Err(full), older) => {
                    done = Err(full);
                    older.map(|older| Shard::new(Table::Vectors(older)))
                }
            };
            self.shards.extend(shard);
        }
        done
    }
}

impl Shard {
    /// The vectors that leave, oldest first.
    pub(super) fn leaving_vectors(&self, everything: bool) -> impl Iterator<Item = &Intern> {
        let last = match &self.last {
            Table::Vectors(table) if everything => Some(table),
            _ => None,
        };
        self.older.iter().chain(last)
    }
}

/// Inserts states as they are; their keys are hashes.
pub(super) fn insert(table: &Intern, block: Block, batch: &Batch, range: Range<usize>) -> Result<usize, Full> {
    let hashes = batch.run(range.clone()).high;
    hashes.iter().for_each(|&hash| table.prefetch(hash));
    let answers = batch.answers(range.clone());
    let mut count = 0;
    for ((&position, &hash), answer) in batch.positions(range).iter().zip(hashes).zip(answers) {
        let state = &block.states[position as usize * table.stride()..][..table.stride()];
        let (_, new) = table.intern(state, hash)?;
        answer.store(new as u8, Ordering::Relaxed);
        count += new as usize;
    }
    Ok(count)
}

/// Enters states into the younger table, which has room, and says of those that were not there what the older one knows. Returns how
/// many are fresh.
pub(super) fn enter_younger_first(
    younger: &Intern,
    older: &Intern,
    block: Block,
    states: &Batch,
    range: Range<usize>,
) -> Result<usize, Full> {
    let mut fresh = insert(younger, block, states, range.clone())?;
    let (hashes, answers) = (states.run(range.clone()).high, states.answers(range.clone()));
    for ((&position, &hash), answer) in states.positions(range).iter().zip(hashes).zip(answers) {
        if answer.load(Ordering::Relaxed) == 1 && older.find(block.state(position as usize), hash).is_some() {
            answer.store(0, Ordering::Relaxed);
            fresh -= 1;
        }
    }
    Ok(fresh)
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, Needs};
    use super::*;
    use crate::arena::PAGE_BYTES;
    use crate::budget::{Budget, Grant};
    use crate::codec::{Codec, Keys};
    use crate::disk::{SLOT, Spill, faulty::Faulty};
    use crate::packed::Packed;
    use crate::runs::{BLOCK_BYTES, Candidates, Keep};

    /// Where memory ends while tables that have left are replaced some shards have none, and the others are not where they were: what
    /// is in them would be written to the runs of other shards.
    #[test]
    fn a_tree_is_given_up_only_where_every_shard_has_its_table() {
        let (width, budget) = (6, Budget::new(4 << 20));
        let (grant, others) = (budget.grant("store", u64::MAX), budget.grant("others", u64::MAX));
        let spill = |bytes| Spill::over(vec![Box::new(Faulty::sound())], bytes, Grant::unlimited());
        let candidates = Candidates::new(width, &Grant::unlimited(), spill(SLOT));
        let mut coder = Coder::new(Codec::Tree, &vec![u32::MAX; width], &grant).unwrap();
        coder.reserve(1000).unwrap();
        let layers = Layers::new(Keep::All, candidates, spill(BLOCK_BYTES), &grant);
        let mut tiers = Tiers::exact(&coder, 2, &grant).unwrap().above(layers);
        let states: Vec<u32> = (0..1000u32).flat_map(|number| [number, 1, number % 7, 2, number / 9, 3]).collect();
        let block = Block::of(&states, &[0, 1000]);
        let (mut entry, needs) = (Entry::default(), Needs { sorted: true, ..tiers.needs() });
        entry.encode(&coder, block, needs, &mut Keys::default()).unwrap();
        assert!(tiers.has_room(&[&entry]));
        tiers.enter_all(block, &entry).unwrap();
        assert!(tiers.can_give_up(&coder));
        tiers.begin_flush(&coder, 1, true);
        (0..4).for_each(|shard| tiers.flush(shard).unwrap());
        // The tables have left, and others take what they gave back but for two or three new ones.
        let elsewhere = Arena::new(Grant::unlimited());
        for shard in &mut tiers.shards {
            own(shard).last = Table::Packed(Packed::new(coder.key_bits(), 2, &elsewhere).unwrap());
        }
        tiers.arena = Arena::new(grant.clone());
        assert!(others.take(grant.left_bytes() - 3 * PAGE_BYTES as u64));
        assert!(matches!(tiers.end_flush(&coder), Err(Shortage::Memory)));
        assert!((1..4).contains(&tiers.shards.len()), "{} tables", tiers.shards.len());
        assert!(!tiers.can_give_up(&coder) && !tiers.is_outgrown_by(&coder));
    }
}
