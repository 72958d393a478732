//! The first states of a search are kept, and the coder learns from them.

use super::{BLOCK, Block, Entry, Needs, Shard, Tiers, exact_shards, lock};
use crate::budget::Full;
use crate::choice::{Choice, Form};
use crate::codec::{Coder, Keys};
use crate::sample::Sample;
use crate::tree::{Shape, Tree};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

impl Tiers {
    /// The same for states that are packed, and will have a tree instead if the first of them say so. Only for exact tiers.
    pub fn choosing(mut self, coder: &Coder) -> Tiers {
        assert!(matches!(coder, Coder::Packed(_)), "a tree is there already");
        self.sample = Sample::to_choose(coder.width(), &self.grant);
        self.may_plant = true;
        self
    }

    /// The same for states that stay packed, with keys that tell no more than the first of them show, at most so many. Only for exact tiers.
    pub fn narrowing(mut self, coder: &Coder, states: usize) -> Tiers {
        assert!(matches!(coder, Coder::Packed(_)), "a tree tells all");
        self.sample = Some(Sample::to_narrow(coder.width(), states, &self.grant));
        self
    }

    /// What was chosen, once it was.
    pub fn choice(&self) -> Option<Choice> {
        self.choice
    }

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

    /// Keys stay as they are, also those of states that are given up: who looks on puts them aside. So nothing is learned where states are
    /// given up, and nodes stay.
    pub fn keep_keys(&mut self) {
        self.forbid_collections();
        if self.forgets() || self.layers().is_some_and(|layers| !layers.keeps_all()) {
            self.forget_sample();
        }
    }

    /// Gives back the memory of the sample, if there is one; then nothing will be learned.
    pub fn forget_sample(&mut self) -> bool {
        self.sample.take().is_some()
    }

    /// Lets the coder learn from the states so far, once they are enough: a tree of the shape that suits them takes its
    /// place. Every block that was encoded by then must have been entered. Who knows states by their keys is `told` the new ones,
    /// in the order in which states were found, some at a time, and only once: such keys cannot leave memory before they are settled. Says
    /// whether keys are others than before.
    pub fn learn(&mut self, coder: &mut Coder, told: Option<&mut dyn FnMut(&Keys)>) -> bool {
        let Some(mut sample) = self.sample.take_if(|sample| sample.is_enough()) else { return false };
        if let Coder::Packed(packing) = coder {
            // Who knows states by their keys would have to be told all of them.
            let narrowed = packing.narrowed(sample.states()).filter(|_| told.is_none());
            let chosen = if self.may_plant && told.is_none() {
                // Others will differ in more, and what is foretold of trees is too much rather than too little.
                self.tree_instead(packing.key_bits(), &mut sample)
            } else {
                None
            };
            let Some(instead) = chosen.or(narrowed.map(Coder::Packed)) else { return false };
            return self.replace(coder, instead, &mut sample);
        }
        let (shapes, twice) = (sample.shapes(), told.is_none());
        let shape = match sample.is_last() {
            true => self.choose(None, shapes, sample.states()).unwrap_or_else(|shape| shape),
            false => shapes.0,
        };
        if matches!(coder, Coder::Tree(tree) if *tree.shape() == shape) {
            self.sample = sample.again().filter(|_| twice);
            return false;
        }
        let learned = self.tree_of(shape);
        let learned = learned.and_then(|learned| match &self.snapshots {
            None => self.encode_again(learned, sample.states()),
            Some(_) => self.levels_again(coder, learned, sample.states()),
        });
        let Ok((learned, shards)) = learned else { return false };
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
        true
    }

    /// A tree without nodes.
    fn tree_of(&self, shape: Shape) -> Result<Coder, Full> {
        let mut tree = Tree::new(shape, &self.grant)?;
        tree.set_density(self.density);
        Ok(Coder::Tree(Box::new(tree)))
    }

    /// The shape that was chosen, or the usual one where there is no memory for more or states stay as they are, packed into so
    /// many bits.
    fn choose(
        &mut self,
        packed_bits: Option<u32>,
        (tree, wide): (Shape, Option<Shape>),
        states: &[u32],
    ) -> Result<Shape, Shape> {
        self.choice = Choice::of(packed_bits, (&tree, wide.as_ref()), states, self.density, &self.grant).ok();
        match (self.choice.map(|choice| choice.form), wide) {
            (Some(Form::Wide), Some(wide)) => Ok(wide),
            (Some(Form::Tree), _) => Ok(tree),
            _ => Err(tree),
        }
    }

    /// The tree that should take the place of packed keys of so many bits, if that is chosen.
    fn tree_instead(&mut self, key_bits: u32, sample: &mut Sample) -> Option<Coder> {
        let shapes = sample.shapes();
        let shape = self.choose(Some(key_bits), shapes, sample.states()).ok()?;
        self.tree_of(shape).ok()
    }

    /// Encodes all states so far in another way, if there is memory for that.
    fn replace(&mut self, coder: &mut Coder, instead: Coder, sample: &mut Sample) -> bool {
        let Ok((instead, shards)) = self.encode_again(instead, sample.states()) else {
            self.choice = None;
            return false;
        };
        (*coder, self.shards) = (instead, shards);
        self.key_bits = AtomicU32::new(coder.key_bits());
        self.suit_ladder(coder);
        true
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
