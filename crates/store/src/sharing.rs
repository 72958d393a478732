//! One codec for several workers at once.
//!
//! Workers encode under a read lock, as long as there is room for every part that is being encoded; the tables of the
//! codec grow under the write lock, if they were not let grow by all together before ([`SharedCoder::next_pieces`]). Nothing is lost when memory runs out: then one part at a time asks for the little
//! it needs.

use crate::budget::Full;
use crate::codec::{Coder, Keys};
use crate::disk::Shortage;
use crate::recent::{self, Recent};
use crate::tiers::{Block, Entry, Needs, Tiers};
use std::io::{self, Write};
use std::sync::PoisonError;
use sync::atomic::{AtomicUsize, Ordering};
use sync::{RwLock, RwLockReadGuard};

#[cfg(test)]
use shuttle::sync;
#[cfg(not(test))]
use std::sync;

/// States that are encoded at a time; and where states are forgotten, for tables have room for as many as come at once.
const PART_STATES: usize = if cfg!(test) { 16 } else { 1024 };
const FEW_STATES: usize = 128;

/// A codec that several workers use.
#[derive(Debug)]
pub struct SharedCoder<'a> {
    coder: RwLock<&'a mut Coder>,
    /// Words per state.
    width: usize,
    /// States of a part.
    part_states: usize,
    /// Bytes for what a worker has met lately.
    recent_bytes: usize,
    /// States of all parts that are being encoded, or wait for it.
    wanted: AtomicUsize,
}

impl<'a> SharedCoder<'a> {
    pub fn new(coder: &'a mut Coder) -> SharedCoder<'a> {
        let (width, part_states, recent_bytes) = (coder.width(), PART_STATES, recent::BYTES);
        SharedCoder { width, part_states, recent_bytes, coder: RwLock::new(coder), wanted: AtomicUsize::new(0) }
    }

    /// The same where each worker remembers what it has met lately in about so many bytes.
    pub fn remembering(self, recent_bytes: usize) -> SharedCoder<'a> {
        SharedCoder { recent_bytes, ..self }
    }

    /// The same for a store that forgets states, if it does: tables are small then.
    pub fn for_store(mut self, tiers: &Tiers) -> SharedCoder<'a> {
        if tiers.forgets() {
            self.part_states = self.part_states.min(FEW_STATES);
        }
        self
    }

    /// Computes the keys of a block, growing tables where necessary, and sorts them by shard. States that a worker has met
    /// `lately` are left out: they are held, or will be before the block is entered.
    pub fn encode(
        &self,
        block: Block,
        entry: &mut Entry,
        needs: Needs,
        keys: &mut Keys,
        mut lately: Option<&mut Recent>,
    ) -> Result<(), Full> {
        // Once a tree was chosen, states are compared and not keys; and keys may get longer.
        if let Some(recent) = &mut lately
            && !self.with(|coder| recent.suits(coder))
        {
            **recent = self.recent();
        }
        if let Some(recent) = &mut lately {
            recent.forget_with(needs.forgot);
        }
        entry.encode_with(|states, keys| self.encode_states(states, keys), block, needs, keys, lately)
    }

    /// For what a worker meets.
    pub fn recent(&self) -> Recent {
        self.coder.read().unwrap_or_else(PoisonError::into_inner).recent(self.recent_bytes)
    }

    /// A part at a time: room is made for all that might be new, and numbers of nodes stay in the processor's caches.
    fn encode_states(&self, states: &[u32], keys: &mut Keys) -> Result<(), Full> {
        let coder = self.coder.read().unwrap_or_else(PoisonError::into_inner);
        if !coder.numbers_states() {
            return coder.encode(states, keys);
        }
        let count = self.part_states.min(states.len() / self.width);
        self.wanted.fetch_add(count, Ordering::AcqRel);
        let encoded = self.encode_announced(coder, states, keys);
        self.wanted.fetch_sub(count, Ordering::AcqRel);
        encoded
    }

    /// The keys of some states, which were encoded before.
    pub fn keys_of(&self, states: &[u32], keys: &mut Keys, found: &mut Vec<u128>) -> Result<(), Full> {
        keys.clear();
        self.encode_states(states, keys)?;
        found.extend(keys.whole());
        Ok(())
    }

    /// Tells `tiers` how long keys are by now; see [`Tiers::look_at`].
    pub fn show(&self, tiers: &Tiers) {
        tiers.look_at(&self.coder.read().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes what keys depend on; see [`Coder::save`].
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.coder.read().unwrap_or_else(PoisonError::into_inner).save(out)
    }

    /// Shows the codec.
    pub fn with<T>(&self, look: impl FnOnce(&Coder) -> T) -> T {
        look(&self.coder.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Divides the shards of `tiers`; see [`Tiers::divide`].
    pub fn divide(&self, tiers: &mut Tiers, shard_bits: u32) -> bool {
        tiers.divide(&self.coder.read().unwrap_or_else(PoisonError::into_inner), shard_bits)
    }

    /// Gives up a tree that takes too much memory beside what is on disk, or keys that are outgrown; see [`Tiers::give_up_keys`].
    pub fn give_up_keys(&self, tiers: &mut Tiers, level: u32) -> Result<(), Shortage> {
        tiers.give_up_keys(&mut self.coder.write().unwrap_or_else(PoisonError::into_inner), level)
    }

    /// Gives up nodes of forgotten states, if it is worth it, or makes sure that this can be done. No key may be under way.
    pub fn tidy(&self, tiers: &mut Tiers) {
        if !self.with(Coder::numbers_states) {
            return;
        }
        let mut coder = self.coder.write().unwrap_or_else(PoisonError::into_inner);
        if tiers.wants_collection(&coder) {
            tiers.collect(&mut coder);
        } else {
            tiers.prepare_collections(&mut coder);
        }
    }

    /// Makes it possible to encode what could not be encoded; see [`Tiers::make_room_for_keys`]. No key may be under way.
    pub fn make_room(&self, tiers: &mut Tiers) -> bool {
        tiers.make_room_for_keys(&mut self.coder.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets the codec learn from what is held, if it is time for that; see [`Tiers::learn`].
    pub fn learn_from(&self, tiers: &mut Tiers, told: Option<&mut dyn FnMut(&Keys)>) -> bool {
        tiers.samples() && tiers.learn(&mut self.coder.write().unwrap_or_else(PoisonError::into_inner), told)
    }

    /// Lets tables grow before workers need it, who would have to wait for each other then: says how many pieces are to be moved by
    /// whoever is free, before it is asked again; none when nothing is left to do.
    pub fn next_pieces(&self, workers: usize) -> usize {
        match &mut **self.coder.write().unwrap_or_else(PoisonError::into_inner) {
            Coder::Tree(tree) => tree.next_pieces(workers * PART_STATES),
            _ => 0,
        }
    }

    /// Moves one of the pieces.
    pub fn move_piece(&self, piece: usize) {
        if let Coder::Tree(tree) = &**self.coder.read().unwrap_or_else(PoisonError::into_inner) {
            tree.move_piece(piece);
        }
    }

    /// A lock and an announcement serve for all parts of a block, for all workers want them. Who announces a part after this counts ours too: as
    /// many states as a part has stay announced until the last part is in the tables, and those before it are there.
    fn encode_announced<'s>(
        &'s self,
        mut coder: RwLockReadGuard<'s, &'a mut Coder>,
        states: &[u32],
        keys: &mut Keys,
    ) -> Result<(), Full> {
        'parts: for part in states.chunks(self.part_states * self.width) {
            while !coder.has_room(self.wanted.load(Ordering::Acquire)) {
                drop(coder);
                let mut alone = self.coder.write().unwrap_or_else(PoisonError::into_inner);
                let is_tight = alone.reserve(self.wanted.load(Ordering::Acquire)).is_err();
                if is_tight {
                    alone.reserve(part.len() / self.width)?;
                    alone.encode(part, keys)?;
                }
                drop(alone);
                coder = self.coder.read().unwrap_or_else(PoisonError::into_inner);
                if is_tight {
                    continue 'parts;
                }
            }
            coder.encode(part, keys)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Grant};
    use crate::codec::Codec;

    const WIDTH: usize = 6;
    const STATES: usize = 50;

    /// Blocks of states that share many of their parts.
    fn blocks(worker: usize, count: usize) -> impl Iterator<Item = Vec<u32>> {
        let state = |number: usize| [number % 7, number / 7 % 11, 3, number / 77, number % 1000, 1].map(|v| v as u32);
        (0..count).map(move |block| (0..STATES).flat_map(|index| state((block + worker) * STATES + index)).collect())
    }

    /// Encodes one block after the other for a store of one shard, where keys keep their order.
    fn encode_all(shared: &SharedCoder, needs: Needs, worker: usize, count: usize) -> Result<Vec<u64>, Full> {
        let (mut entry, mut scratch, mut all) = (Entry::default(), Keys::default(), Vec::new());
        for states in blocks(worker, count) {
            shared.encode(Block::of(&states, &[0, STATES as u32]), &mut entry, needs, &mut scratch, None)?;
            all.extend_from_slice(entry.keys().0.high);
        }
        Ok(all)
    }

    fn on_workers<T: Send>(firsts: &[usize], run: impl Fn(usize) -> T + Sync) -> Vec<T> {
        shuttle::thread::scope(|scope| {
            let run = &run;
            let workers: Vec<_> = firsts.iter().map(|&first| scope.spawn(move || run(first))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        })
    }

    fn keys_are_equal_exactly_when_states_are(blocks: usize) {
        let mut coder = Coder::new(Codec::Tree, &[u32::MAX; WIDTH], &Grant::unlimited()).unwrap();
        let needs = Tiers::exact(&coder, 0, &Grant::unlimited()).unwrap().needs();
        let shared = SharedCoder::new(&mut coder);
        let keys = on_workers(&[0, 1, 2, 3], |worker| encode_all(&shared, needs, worker, blocks).unwrap());
        // Each worker is a block ahead of the one before.
        assert!(keys.windows(2).all(|pair| pair[0][STATES..] == pair[1][..pair[1].len() - STATES]));
        let distinct: std::collections::HashSet<u64> = keys.iter().flatten().copied().collect();
        assert_eq!(distinct.len(), (blocks + 3) * STATES);
        assert_eq!(shared.wanted.load(Ordering::Acquire), 0);
    }

    #[test]
    fn under_any_schedule_keys_are_equal_exactly_when_states_are_while_tables_grow() {
        shuttle::check_random(|| keys_are_equal_exactly_when_states_are(12), 300);
        shuttle::check_pct(|| keys_are_equal_exactly_when_states_are(12), 200, 3);
        shuttle::check_random(|| keys_are_equal_exactly_when_states_are(400), 3);
    }

    #[test]
    fn memory_that_runs_out_is_an_answer_for_everybody() {
        let runs_out = || {
            let budget = Budget::new(200 << 10);
            let mut coder = Coder::new(Codec::Tree, &[u32::MAX; WIDTH], &budget.grant("tree", 200 << 10)).unwrap();
            let needs = Tiers::exact(&coder, 0, &Grant::unlimited()).unwrap().needs();
            let shared = SharedCoder::new(&mut coder);
            let results = on_workers(&[0, 400, 800], |worker| encode_all(&shared, needs, worker, 400).is_err());
            assert!(results.iter().all(|&failed| failed) && budget.used_bytes() <= 200 << 10);
        };
        shuttle::check_random(runs_out, 10);
    }
}
