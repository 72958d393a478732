//! One codec for several workers at once.
//!
//! Workers encode under a read lock, as long as there is room for every block that is being encoded; the tables of the
//! codec grow under the write lock. Nothing is lost when memory runs out: then one block at a time asks for the little
//! it needs.

use crate::codec::Coder;
use crate::roots::Full;
use crate::tiers::{Block, Scratch, Tiers};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// A codec that several workers use.
#[derive(Debug)]
pub struct SharedCoder<'a> {
    coder: RwLock<&'a mut Coder>,
    /// States of all blocks that are being encoded, or wait for it.
    wanted: AtomicUsize,
}

impl<'a> SharedCoder<'a> {
    pub fn new(coder: &'a mut Coder) -> SharedCoder<'a> {
        SharedCoder { coder: RwLock::new(coder), wanted: AtomicUsize::new(0) }
    }

    /// Computes the keys of a block, growing tables where necessary.
    pub fn encode(&self, block: Block, scratch: &mut Scratch, wants_parents: bool) -> Result<(), Full> {
        self.wanted.fetch_add(block.len(), Ordering::AcqRel);
        let encoded = self.encode_announced(block, scratch, wants_parents);
        self.wanted.fetch_sub(block.len(), Ordering::AcqRel);
        encoded
    }

    /// Lets the codec learn from what is held, if it is time for that. Blocks that were encoded and not inserted by then
    /// must be encoded again: see [`Tiers::accept`].
    pub fn learn_from(&self, tiers: &mut Tiers) {
        if tiers.can_teach() {
            tiers.teach(&mut self.coder.write().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn encode_announced(&self, block: Block, scratch: &mut Scratch, wants_parents: bool) -> Result<(), Full> {
        loop {
            // Who announces a block after this counts ours too, for it stays announced until its keys are in the tables.
            let coder = self.coder.read().unwrap_or_else(PoisonError::into_inner);
            if coder.has_room(self.wanted.load(Ordering::Acquire)) {
                return scratch.encode(&coder, block, wants_parents);
            }
            drop(coder);
            let mut coder = self.coder.write().unwrap_or_else(PoisonError::into_inner);
            if coder.reserve(self.wanted.load(Ordering::Acquire)).is_err() {
                coder.reserve(block.len())?;
                return scratch.encode(&coder, block, wants_parents);
            }
        }
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
    fn blocks(worker: usize) -> impl Iterator<Item = Vec<u32>> {
        let state = |number: usize| [number % 7, number / 7 % 11, 3, number / 77, number % 1000, 1].map(|v| v as u32);
        (0..400).map(move |block| (0..STATES).flat_map(|index| state((block + worker) * STATES + index)).collect())
    }

    #[test]
    fn keys_are_equal_exactly_when_states_are_while_tables_grow() {
        let mut coder = Coder::new(Codec::Tree, &[u32::MAX; WIDTH], &Grant::unlimited()).unwrap();
        let shared = SharedCoder::new(&mut coder);
        let encode_all = |worker: usize| {
            let mut scratch = Scratch::default();
            let mut keys = Vec::new();
            for states in blocks(worker) {
                shared.encode(Block::of(&states, &[0, STATES as u32]), &mut scratch, false).unwrap();
                keys.extend_from_slice(scratch.keys.roots());
            }
            keys
        };
        let keys: Vec<Vec<u64>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || encode_all(worker))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        // Each worker is a block ahead of the one before.
        assert!(keys.windows(2).all(|pair| pair[0][STATES..] == pair[1][..pair[1].len() - STATES]));
        let distinct: std::collections::HashSet<u64> = keys.iter().flatten().copied().collect();
        assert_eq!(distinct.len(), 403 * STATES);
    }

    #[test]
    fn memory_that_runs_out_is_an_answer_for_everybody() {
        let budget = Budget::new(200 << 10);
        let mut coder = Coder::new(Codec::Tree, &[u32::MAX; WIDTH], &budget.grant("tree", 200 << 10)).unwrap();
        let shared = SharedCoder::new(&mut coder);
        let fails = |worker: usize| {
            let mut scratch = Scratch::default();
            blocks(worker)
                .any(|states| shared.encode(Block::of(&states, &[0, STATES as u32]), &mut scratch, false).is_err())
        };
        let fails = &fails;
        let all = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..3).map(|worker| scope.spawn(move || fails(worker * 400))).collect();
            workers.into_iter().all(|worker| worker.join().unwrap())
        });
        assert!(all && budget.used_bytes() <= 200 << 10);
    }
}
