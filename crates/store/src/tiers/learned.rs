//! The first states of a search are kept, and the coder learns from them.

use super::{BLOCK, Block, Entry, Needs, Shard, Tiers, exact_shards, lock};
use crate::budget::Full;
use crate::codec::{Coder, Keys};
use crate::tree::Tree;
use std::sync::Mutex;

impl Tiers {
    /// Takes note of fresh states of a block, from which the coder may learn.
    pub fn sample(&mut self, block: Block, fresh: &[u32]) {
        if let Some(sample) = &mut self.sample {
            let all_kept = fresh.iter().all(|&position| sample.add(block.state(position as usize)));
            self.sample = self.sample.take().filter(|_| all_kept);
        }
    }

    /// Are states kept to learn from them?
    pub fn samples(&self) -> bool {
        self.sample.is_some()
    }

    /// Was something learned from them already?
    #[cfg(test)]
    pub(crate) fn has_learned(&self) -> bool {
        self.sample.as_ref().is_none_or(|sample| !sample.is_first())
    }

    /// Gives back the memory of the sample, if there is one; then nothing will be learned.
    pub fn forget_sample(&mut self) -> bool {
        self.sample.take().is_some()
    }

    /// Lets the coder learn from the states so far, once they are enough: a tree of the shape that suits them takes its
    /// place. Every block that was encoded by then must have been entered. Who knows states by their keys is `told` the new ones,
    /// in the order in which states were found, some at a time, and only once: such keys cannot leave memory before they are settled.
    pub fn learn(&mut self, coder: &mut Coder, told: Option<&mut dyn FnMut(&Keys)>) {
        let Some(mut sample) = self.sample.take_if(|sample| sample.is_enough()) else { return };
        let (shape, twice) = (sample.shape(), told.is_none());
        if matches!(coder, Coder::Tree(tree) if *tree.shape() == shape) {
            self.sample = sample.again().filter(|_| twice);
            return;
        }
        let learned = Tree::new(shape, &self.grant).map(Coder::Tree);
        let learned = learned.and_then(|learned| match &self.snapshots {
            None => self.encode_again(learned, sample.states()),
            Some(_) => self.levels_again(coder, learned, sample.states()),
        });
        let Ok((learned, shards)) = learned else { return };
        (*coder, self.shards) = (learned, shards);
        if let Some(told) = told {
            let mut keys = Keys::default();
            for states in sample.states().chunks(BLOCK * coder.width()) {
                keys.clear();
                coder.encode(states, &mut keys).expect("they were encoded before");
                told(&keys);
            }
        }
        self.sample = sample.again().filter(|_| twice);
    }

    /// Shards that hold `states` as another coder encodes them.
    fn encode_again(&self, mut coder: Coder, states: &[u32]) -> Result<(Coder, Vec<Mutex<Shard>>), Full> {
        let shards = exact_shards(&coder, self.shard_bits, self.density, &self.arena, &self.grant)?;
        let (mut entry, mut keys) = (Entry::default(), Keys::default());
        let needs = Needs { sorted: true, ..self.needs() };
        for states in states.chunks(BLOCK * coder.width()) {
            let bounds = [0, (states.len() / coder.width()) as u32];
            let block = Block::of(states, &bounds);
            coder.reserve(block.len())?;
            entry.encode(&coder, block, needs, &mut keys)?;
            for (number, shard) in shards.iter().enumerate() {
                lock(shard).enter(number, entry.states.range(number), block, &entry, coder.key_bits())?;
            }
        }
        Ok((coder, shards))
    }
}
