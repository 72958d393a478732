//! Tables that leave memory for the disk, a generation at a time.
//!
//! At first there is one table in each shard, as without a disk. When it has no more room all its keys become a run
//! ([`crate::runs`]), and from then on there are two generations of tables: the younger one grows until it has its share of
//! the memory, then the older one goes and it becomes the older one itself. So memory always holds the newest keys, which
//! are those that are met again most often. Whether there is room is asked before keys are entered, never in between.

use super::{Arena, Entry, Shard, Table, Tiers, lock, own};
use crate::arena::PAGE_BYTES;
use crate::batch::Batch;
use crate::budget::Full;
use crate::codec::Coder;
use crate::disk::Shortage;
use crate::intern::Intern;
use crate::packed::Packed;
use crate::runs::Layers;
use std::ops::Range;
use std::sync::PoisonError;

/// Whoever leaves looks for what is not at home at most so many times, and has memory for a few keys whatever there is.
const MOST_PASSES: usize = 16;
const FEW_KEYS: usize = 4096;

/// What exact tiers need to go on when memory is full.
#[derive(Debug)]
pub(super) struct Below {
    layers: Layers,
    /// Where the older generation has its memory, and the levels on which the generations began, older first.
    arena: Option<Arena>,
    since: [u32; 2],
    /// All tables leave, not only the older generation.
    everything: bool,
    /// What the younger table of a shard may take where states are held as they are.
    most_bytes: usize,
}

impl Below {
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    pub fn layers_mut(&mut self) -> &mut Layers {
        &mut self.layers
    }

    /// The older generation has left.
    pub fn drop_older(&mut self) {
        self.arena = None;
    }

    pub fn bytes(&self) -> usize {
        self.arena.as_ref().map_or(0, Arena::bytes) + self.layers.bytes() as usize
    }
}

impl Tiers {
    /// The same with room below; only for exact tiers of keys, and of states as they are.
    pub fn above(mut self, mut layers: Layers) -> Tiers {
        match &own(&mut self.shards[0]).last {
            Table::Packed(_) => {}
            Table::Vectors(table) => layers.hash(table.stride()),
            _ => unreachable!("what is not exact is not written to disk"),
        }
        let most_bytes = usize::MAX;
        self.below = Some(Below { layers, arena: None, since: [0; 2], everything: true, most_bytes });
        self
    }

    pub fn layers(&self) -> Option<&Layers> {
        self.below.as_ref().map(Below::layers)
    }

    pub fn layers_mut(&mut self) -> Option<&mut Layers> {
        self.below.as_mut().map(|below| &mut below.layers)
    }

    /// Is what memory does not know a candidate, for it may be on disk?
    pub fn defers(&self) -> bool {
        self.layers().is_some_and(Layers::defers)
    }

    /// Has every shard its table? Where memory ended while tables were replaced some have none, and the others are not where they were.
    pub fn is_whole(&self) -> bool {
        self.shards.len() == 1 << self.shard_bits
    }

    /// Is there room for the keys of all these blocks, whatever of them is fresh? Where there is no disk nobody knows.
    pub fn has_room(&mut self, entries: &[&Entry]) -> bool {
        let Some(most_bytes) = self.below.as_ref().map(|below| below.most_bytes) else { return true };
        let key_bits = *self.key_bits.get_mut();
        self.shards.iter_mut().enumerate().all(|(number, shard)| {
            let count = entries.iter().map(|entry| entry.states.count_in(number)).sum();
            match &mut own(shard).last {
                Table::Packed(packed) => packed.reserve_well(count, key_bits).is_ok(),
                Table::Vectors(table) => table.reserve_within(count, most_bytes).is_ok(),
                _ => true,
            }
        })
    }

    /// Decides what leaves memory: the older generation, or `everything`. States of `level` are being found.
    pub fn begin_flush(&mut self, coder: &Coder, level: u32, everything: bool) {
        self.sample = None;
        let Some(below) = &mut self.below else { return };
        // Where there is one generation it becomes the older one and nothing leaves, if there is room for another.
        let another = below.layers.generation_bytes(coder.bytes() as u64) / 2;
        let another = another.max((self.shards.len() * PAGE_BYTES) as u64);
        let has_older = own(&mut self.shards[0]).generations() > 1;
        let leaves_some = below.layers.defers() && (has_older || self.grant.left_bytes() >= another);
        below.everything = everything || !leaves_some;
        let leaving = |shard: &Shard| {
            let vectors = shard.leaving_vectors(below.everything).map(Intern::len).sum::<usize>();
            (shard.leaving(below.everything).map(Packed::len).sum::<usize>() + vectors) as u64
        };
        let keys = self.shards.iter().map(|shard| leaving(&lock(shard))).sum();
        below.layers.level = level;
        if let Coder::Packed(packing) = coder
            && !below.layers.defers()
        {
            below.layers.candidates.pack(packing);
        }
        below.layers.begin_flush(self.shard_bits, keys, coder.bytes() as u64);
    }

    /// Writes what leaves one shard.
    pub fn flush(&self, shard: usize) -> Result<(), Shortage> {
        let Some(below) = &self.below else { return Ok(()) };
        let tables = lock(&self.shards[shard]);
        let spare = self.grant.left_bytes() as usize / 4 / self.shards.len() / size_of::<u128>();
        let [older, younger] = below.since;
        let levels = [[older, younger], [younger, below.layers.level]];
        let levels = &levels[2 - tables.generations()..];
        if matches!(tables.last, Table::Vectors(_)) {
            drop(tables);
            return self.flush_vectors(shard, below.everything, levels);
        }
        for (table, levels) in tables.leaving(below.everything).zip(levels) {
            let most = (table.outside() / MOST_PASSES).max(FEW_KEYS).max(spare);
            below.layers.write(shard, table, *levels, most)?;
        }
        Ok(())
    }

    /// Asks the runs of one shard for the candidates in the sieve. What they know need not be written again when tables leave.
    pub fn sift(&self, shard: usize) -> Result<(), Shortage> {
        let Some(below) = &self.below else { return Ok(()) };
        let mut tables = self.shards.get(shard).filter(|_| self.is_whole() && below.layers.keeps_all()).map(lock);
        let on_disk = |key| tables.iter_mut().for_each(|tables| tables.mark(key));
        below.layers.sift(shard, on_disk).map_err(Shortage::Disk)
    }

    /// Drops what was written and makes room for what comes.
    pub fn end_flush(&mut self, coder: &Coder) -> Result<(), Shortage> {
        if self.holds_vectors() {
            let everything = self.below.as_ref().is_some_and(|below| below.everything);
            self.replace_vectors(everything).map_err(|Full| Shortage::Memory)?;
            let Some(below) = &mut self.below else { return Ok(()) };
            below.most_bytes = below.layers.generation_bytes(0) as usize / self.shards.len();
            below.since = [below.since[1], below.layers.level];
            return below.layers.end_flush(0);
        }
        let Some(below) = &mut self.below else { return Ok(()) };
        let (key_bits, others, level) = (*self.key_bits.get_mut(), coder.bytes() as u64, below.layers.level);
        let most_key_bits = coder.most_key_bits();
        // First everything that leaves, in all shards: the memory of tables is given back as a whole.
        let older: Vec<Option<Packed>> = std::mem::take(&mut self.shards)
            .into_iter()
            .map(|shard| shard.into_inner().unwrap_or_else(PoisonError::into_inner).last.into_packed())
            .map(|last| last.filter(|_| !below.everything))
            .collect();
        let young = std::mem::replace(&mut self.arena, Arena::new(self.grant.clone()));
        below.arena = (!below.everything).then_some(young);
        below.since = [below.since[1], level];
        // The generation that stays may have been made when a tree was smaller, so the new one could take all memory.
        below.layers.keep_reserve();
        let most = below.layers.generation_bytes(others) as usize / older.len();
        let mut done = Ok(());
        for older in older {
            let shard = match (Packed::new(key_bits, self.shard_bits, &self.arena), older) {
                (Ok(mut table), older) => {
                    table = table.for_keys_of(most_key_bits);
                    // Where levels are given up a run may go before the tables that came after it.
                    table = if below.layers.keeps_all() { table.with_marks() } else { table };
                    table.limit(most);
                    let mut shard = Shard::new(Table::Packed(table));
                    own(&mut shard).frozen.extend(older);
                    Some(shard)
                }
                // The search may go on in another way, so nothing that was not written is lost.
                (Err(Full), older) => {
                    done = Err(Shortage::Memory);
                    older.map(|older| Shard::new(Table::Packed(older)))
                }
            };
            self.shards.extend(shard);
        }
        done.and_then(|()| below.layers.end_flush(others))
    }
}

/// Enters keys into the younger table, which has room, and says of those that were not there what the older ones know. Most are
/// in the younger one; what only an older one knew is in both from then on, and so stays when that leaves, which need not write it. Returns
/// how many are fresh.
pub(super) fn enter_younger_first(
    younger: &mut Packed,
    older: &mut [Packed],
    states: &Batch,
    range: Range<usize>,
) -> usize {
    let (keys, answers) = (states.run(range.clone()), states.answers(range));
    let fresh = younger.insert_all(keys, answers);
    let mut places = Vec::new();
    let known: usize = older.iter_mut().map(|table| table.recognise(keys, answers, &mut places)).sum();
    fresh - known
}

impl Shard {
    /// How many tables there are.
    fn generations(&self) -> usize {
        self.frozen.len() + self.older.is_some() as usize + 1
    }

    /// Takes note that a key is on disk.
    fn mark(&mut self, key: u128) {
        let last = match &mut self.last {
            Table::Packed(packed) => Some(packed),
            _ => None,
        };
        self.frozen.iter_mut().chain(last).for_each(|table| table.mark(key));
    }

    /// The tables that leave, oldest first.
    fn leaving(&self, everything: bool) -> impl Iterator<Item = &Packed> {
        let last = match &self.last {
            Table::Packed(packed) if everything => Some(packed),
            _ => None,
        };
        self.frozen.iter().chain(last)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Block, Needs};
    use super::*;
    use crate::budget::{Budget, Grant};
    use crate::codec::{Codec, Keys};
    use crate::disk::{SLOT, Spill, faulty::Faulty};
    use crate::runs::{BLOCK_BYTES, Candidates, Keep};

    /// Packed keys of one word in 256 KiB.
    fn above_a_disk() -> (Coder, Tiers) {
        let grant = Budget::new(256 << 10).grant("store", u64::MAX);
        let spill = |bytes| Spill::over(vec![Box::new(Faulty::sound())], bytes, Grant::unlimited());
        let candidates = Candidates::new(1, &Grant::unlimited(), spill(SLOT));
        let coder = Coder::new(Codec::Packed, &[u32::MAX], &grant).unwrap();
        let layers = Layers::new(Keep::All, candidates, spill(BLOCK_BYTES), &grant);
        let tiers = Tiers::exact(&coder, 0, &grant).unwrap().above(layers);
        (coder, tiers)
    }

    #[test]
    fn memory_keeps_what_was_found_since_the_flush_before() {
        let (coder, mut tiers) = above_a_disk();
        let (mut entry, mut keys, mut flushed, mut fresh) = (Entry::default(), Keys::default(), Vec::new(), Vec::new());
        let mut encode = |states: &[u32], tiers: &Tiers, entry: &mut Entry| {
            let needs = Needs { sorted: true, ..tiers.needs() };
            entry.encode(&coder, Block::of(states, &[0, states.len() as u32]), needs, &mut keys).unwrap();
        };
        for number in 0..400u32 {
            let states: Vec<u32> = (number * 1000..(number + 1) * 1000).collect();
            encode(&states, &tiers, &mut entry);
            while !tiers.has_room(&[&entry]) {
                tiers.begin_flush(&coder, number, false);
                tiers.flush(0).unwrap();
                tiers.end_flush(&coder).unwrap();
                flushed.push(number);
            }
            tiers.enter_all(Block::of(&states, &[0, 1000]), &entry).unwrap();
            entry.fresh(&mut fresh);
            assert_eq!(fresh.len(), 1000);
        }
        assert!(flushed.len() > 8, "{flushed:?}");
        let since = flushed[flushed.len() - 2];
        let states: Vec<u32> = (since * 1000..400_000).collect();
        // What only the older table knew comes into the younger one, while that has room.
        let mut asked = 0;
        for states in states.chunks(100) {
            encode(states, &tiers, &mut entry);
            if !tiers.has_room(&[&entry]) {
                break;
            }
            tiers.enter_all(Block::of(states, &[0, states.len() as u32]), &entry).unwrap();
            entry.fresh(&mut fresh);
            assert!(fresh.is_empty(), "{} are forgotten", fresh.len());
            asked += states.len();
        }
        assert!(asked >= 1000, "{asked}");
    }

    /// What a run knows already, or a younger table, is not written when a table leaves.
    #[test]
    fn keys_are_written_once_however_often_they_are_met() {
        let (coder, mut tiers) = above_a_disk();
        let (mut entry, mut keys, mut fresh, mut fresh_keys) = (Entry::default(), Keys::default(), vec![], vec![]);
        let (mut found, mut waited, mut record) = (0, 0, Vec::new());
        for number in 0..400u32 {
            // New ones, some of a while ago and some of long ago.
            let ago = |by: u32| number.saturating_sub(by) * 1000..number.saturating_sub(by) * 1000 + 500;
            let states: Vec<u32> = (number * 1000..(number + 1) * 1000).chain(ago(15)).chain(ago(200)).collect();
            let count = states.len() as u32;
            let firsts = [0, count];
            let block = Block::of(&states, &firsts);
            entry.encode(&coder, block, Needs { sorted: true, ..tiers.needs() }, &mut keys).unwrap();
            while !tiers.has_room(&[&entry]) {
                tiers.begin_flush(&coder, number, false);
                tiers.flush(0).unwrap();
                tiers.end_flush(&coder).unwrap();
            }
            tiers.enter_all(block, &entry).unwrap();
            entry.fresh(&mut fresh);
            if !tiers.defers() {
                found += fresh.len();
                continue;
            }
            entry.fresh_keys(&mut fresh_keys);
            let place = tiers.layers_mut().unwrap().candidates.extend(fresh.len()).unwrap();
            for (place, (&position, &key)) in (place..).zip(fresh.iter().zip(&fresh_keys)) {
                let state = &states[position as usize..][..1];
                tiers.layers().unwrap().candidates.write(place, state, key, (0, 0), &mut record);
            }
            waited += fresh.len();
            while tiers.layers_mut().unwrap().begin_fill(number, true) {
                while let pieces @ 1.. = tiers.layers_mut().unwrap().next_pieces() {
                    let layers = tiers.layers().unwrap();
                    (0..pieces).for_each(|piece| layers.fill(piece, &mut record).unwrap());
                }
                tiers.sift(0).unwrap();
                let layers = tiers.layers_mut().unwrap();
                while let counts @ [_, ..] = &layers.next_survivors(3).unwrap()[..] {
                    found += counts.iter().sum::<usize>();
                    layers.advance();
                }
            }
            tiers.layers_mut().unwrap().end_seal(number);
        }
        assert_eq!(found, 400_000);
        assert!(waited > 440_000, "{waited} were not known in memory");
        tiers.begin_flush(&coder, 400, true);
        tiers.flush(0).unwrap();
        let written = tiers.layers().unwrap().keys();
        assert!((400_000..404_000).contains(&written), "{written} keys were written");
    }

    /// Where there is no memory for new tables what is in the old ones stays, for the search may go on in another way.
    #[test]
    fn nothing_is_lost_when_memory_ends_while_tables_are_replaced() {
        let budget = Budget::new(256 << 10);
        let grant = budget.grant("store", u64::MAX);
        let spill = |bytes| Spill::over(vec![Box::new(Faulty::sound())], bytes, Grant::unlimited());
        let candidates = Candidates::new(1, &Grant::unlimited(), spill(SLOT));
        let coder = Coder::new(Codec::Packed, &[u32::MAX], &grant).unwrap();
        let layers = Layers::new(Keep::All, candidates, spill(BLOCK_BYTES), &grant);
        let mut tiers = Tiers::exact(&coder, 2, &grant).unwrap().above(layers);
        let (mut entry, mut keys) = (Entry::default(), Keys::default());
        let (mut flushes, mut number, others) = (0, 0, budget.grant("others", u64::MAX));
        let (mut found, mut taken) = (Vec::new(), 0);
        while flushes < 6 {
            let states: Vec<u32> = (number * 1000..(number + 1) * 1000).collect();
            let needs = Needs { sorted: true, ..tiers.needs() };
            entry.encode(&coder, Block::of(&states, &[0, 1000]), needs, &mut keys).unwrap();
            while !tiers.has_room(&[&entry]) && flushes < 6 {
                flushes += 1;
                tiers.begin_flush(&coder, number, false);
                (0..4).for_each(|shard| tiers.flush(shard).unwrap());
                // What the tables that leave give back is taken by others.
                let (held, on_disk) = (tiers.held().0 as u64, tiers.layers().unwrap().keys());
                let leaves = tiers.below.as_ref().is_some_and(|below| !below.everything);
                let ended = if flushes == 6 {
                    tiers.below.as_mut().unwrap().arena = None;
                    tiers.shards.iter_mut().for_each(|shard| own(shard).frozen.clear());
                    taken = grant.left_bytes();
                    assert!(others.take(taken));
                    tiers.end_flush(&coder)
                } else {
                    tiers.end_flush(&coder)
                };
                found.push((ended.is_ok(), leaves, held, on_disk, tiers.held().0 as u64));
            }
            if flushes < 6 {
                tiers.enter_all(Block::of(&states, &[0, 1000]), &entry).unwrap();
            }
            number += 1;
        }
        let (ended, leaves, ..) = found[5];
        assert!(!ended && leaves && tiers.shards.len() == 4, "{found:?}");
        // Every key is on disk or held.
        others.give_back(taken);
        tiers.begin_flush(&coder, number, true);
        (0..4).for_each(|shard| tiers.flush(shard).unwrap());
        assert!(tiers.layers().unwrap().keys() >= (number as u64 - 1) * 1000, "{found:?}");
    }

    /// Others may take memory after a generation has got its share, and then the rest. There must be some for the index of what leaves.
    #[test]
    fn whatever_others_take_tables_can_leave() {
        for taken in (0..12).map(|number| number * (128 << 10)) {
            let budget = Budget::new(6 << 20);
            let (grant, others) = (budget.grant("store", u64::MAX), budget.grant("others", u64::MAX));
            let spill = |bytes| Spill::over(vec![Box::new(Faulty::sound())], bytes, Grant::unlimited());
            let candidates = Candidates::new(1, &Grant::unlimited(), spill(SLOT));
            let coder = Coder::new(Codec::Packed, &[u32::MAX], &grant).unwrap();
            let layers = Layers::new(Keep::All, candidates, spill(BLOCK_BYTES), &grant);
            let mut tiers = Tiers::exact(&coder, 0, &grant).unwrap().above(layers);
            let (mut entry, mut keys, mut flushes) = (Entry::default(), Keys::default(), 0);
            for number in 0.. {
                let states: Vec<u32> = (number * 1000..(number + 1) * 1000).collect();
                let needs = Needs { sorted: true, ..tiers.needs() };
                entry.encode(&coder, Block::of(&states, &[0, 1000]), needs, &mut keys).unwrap();
                if !tiers.has_room(&[&entry]) {
                    flushes += 1;
                    let wanted = [0, 0, taken, grant.left_bytes()][flushes];
                    assert!(others.take(wanted));
                    tiers.begin_flush(&coder, 1, false);
                    tiers.flush(0).unwrap();
                    if flushes == 3 {
                        break;
                    }
                    tiers.end_flush(&coder).unwrap();
                }
                tiers.enter_all(Block::of(&states, &[0, 1000]), &entry).unwrap();
            }
        }
    }
}
