//! The exact tier of roots, which teaches the tree its shape.
//!
//! A tree begins with an even shape, and the first states are kept as they are beside their roots. When they are
//! enough ([`Rooted::learn`]), a tree of the shape that suits them takes its place and all states so far are
//! encoded again. Where there is no memory for that everything stays as it is: a shape decides about bytes and time,
//! not about answers. Roots of one tree mean nothing to another, so every block is asked which tree encoded it.

use crate::budget::Grant;
use crate::codec::Keys;
use crate::region::Region;
use crate::roots::{Full, Roots};
use crate::tree::{Scratch, Shape, Tree};

/// A shape is learned from this many states, or fewer if they are wide.
const SAMPLE_STATES: usize = 4096;
const SAMPLE_WORDS: usize = 256 << 10;
/// If this many times as much was kept and still nobody learns, it is given up.
const MOST_SAMPLES: usize = 8;
/// States that are encoded again at a time.
const BLOCK: usize = 1024;

/// A growing set of roots of one tree.
#[derive(Debug)]
pub struct Rooted {
    roots: Roots,
    /// Whose roots they are.
    tree: u64,
    /// All states so far; none once the shape is final.
    sample: Option<Sample>,
    grant: Grant,
}

#[derive(Debug)]
struct Sample {
    region: Region,
    width: usize,
    words: usize,
    /// Words of a whole number of states.
    enough: usize,
}

impl Rooted {
    /// An empty set of roots of `tree`.
    pub fn new(tree: &Tree, grant: &Grant) -> Result<Rooted, Full> {
        let width = tree.width();
        let roots = Roots::new(grant.clone())?;
        let enough = (SAMPLE_STATES * width).min(SAMPLE_WORDS).next_multiple_of(width);
        let sample = || Sample { region: Region::new(grant.clone()), width, words: 0, enough };
        let sample = Shape::can_be_learned(width).then(sample);
        Ok(Rooted { roots, tree: tree.id(), sample, grant: grant.clone() })
    }

    pub fn len(&self) -> usize {
        self.roots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        self.roots.bytes() + self.sample.as_ref().map_or(0, |sample| sample.region.bytes())
    }

    /// Makes sure that `count` more roots fit, all of whose numbers are below `bound`.
    pub fn reserve(&mut self, count: usize, bound: u32) -> Result<(), Full> {
        let reserved = self.roots.reserve(count, bound);
        if reserved.is_err() && self.forget_sample() { self.roots.reserve(count, bound) } else { reserved }
    }

    /// Inserts the roots in `keys`, which are those of `states` (end to end), and appends to `fresh` the positions of
    /// those not there before.
    pub fn insert(
        &mut self,
        states: &[u32],
        keys: &Keys,
        mixed: &mut Vec<u64>,
        fresh: &mut Vec<u32>,
    ) -> Result<(), Full> {
        assert!(self.accept(keys), "a block was encoded by another tree");
        mixed.extend(keys.roots().iter().map(|&root| {
            let mixed = Roots::mix(root);
            self.roots.prefetch(mixed);
            mixed
        }));
        let before = fresh.len();
        let inserted = self.roots.insert_all(keys.roots(), mixed, fresh);
        if let Some(sample) = &mut self.sample {
            let all_kept = fresh[before..].iter().all(|&position| sample.add(states, position as usize));
            self.sample = self.sample.take().filter(|_| all_kept);
        }
        inserted
    }

    /// Are these keys roots of the tree whose roots are held?
    pub fn accept(&self, keys: &Keys) -> bool {
        keys.are_of(self.tree)
    }

    /// Are there states enough to learn from?
    pub fn can_teach(&self) -> bool {
        self.sample.as_ref().is_some_and(Sample::is_enough)
    }

    /// Gives back the memory of the sample, if there is one; then nothing will be learned.
    pub fn forget_sample(&mut self) -> bool {
        self.sample.take().is_some()
    }

    /// Puts a tree of the shape that suits the states so far in the place of `tree`, once they are enough. Keys that
    /// were computed by then are of no use any more.
    pub fn learn(&mut self, tree: &mut Tree) {
        assert_eq!(self.tree, tree.id());
        let Some(mut sample) = self.sample.take_if(|sample| sample.is_enough()) else { return };
        let states = &sample.region.words_mut()[..sample.words];
        let shape = Shape::learned(sample.width, &states[..sample.enough]);
        if let Ok((learned, roots)) = encode_again(shape, states, &self.grant) {
            self.tree = learned.id();
            self.roots = roots;
            *tree = learned;
        }
    }
}

fn encode_again(shape: Shape, states: &[u32], grant: &Grant) -> Result<(Tree, Roots), Full> {
    let (mut tree, mut roots) = (Tree::new(shape, grant)?, Roots::new(grant.clone())?);
    let (mut nodes, mut mixed, mut fresh) = (Scratch::default(), Vec::new(), Vec::new());
    for block in states.chunks(BLOCK * tree.width()) {
        let count = block.len() / tree.width();
        tree.reserve(count)?;
        tree.encode(block, &mut nodes)?;
        roots.reserve(count, tree.bound(0))?;
        mixed.clear();
        mixed.extend(nodes.roots.iter().map(|&root| Roots::mix(root)));
        roots.insert_all(&nodes.roots, &mixed, &mut fresh)?;
    }
    Ok((tree, roots))
}

impl Sample {
    fn is_enough(&self) -> bool {
        self.words >= self.enough
    }

    /// Keeps a state; false if there is no room, or nobody wants to learn.
    fn add(&mut self, states: &[u32], position: usize) -> bool {
        let end = self.words + self.width;
        if self.words >= MOST_SAMPLES * self.enough || !self.region.grow(end * 4) {
            return false;
        }
        let state = &states[position * self.width..][..self.width];
        self.region.words_mut()[self.words..end].copy_from_slice(state);
        self.words = end;
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::budget::Budget;
    use crate::chain::Chain;
    use crate::codec::Codec;
    use crate::tiers::{Block, Scratch, Tiers};
    use crate::tree::Shape;
    use std::collections::HashSet;

    /// Inserts random walks and compares with a hash set.
    fn compare(width: usize, blocks: usize, budget: u64) -> Chain {
        let mut chain =
            Chain::new(Codec::Tree, &vec![u32::MAX; width], &Budget::new(budget).grant("store", budget)).unwrap();
        let (mut scratch, mut fresh, mut twin) = (Scratch::default(), Vec::new(), HashSet::new());
        let mut random = 88172645463325252u64;
        let mut state = vec![0; width];
        for _ in 0..blocks {
            let mut states = Vec::new();
            for _ in 0..100 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                state[(random >> 40) as usize % width] = (random >> 20) as u32 % 40;
                states.extend_from_slice(&state);
            }
            chain.insert(Block::of(&states, &[0, 100]), &mut scratch, &mut fresh).unwrap();
            let all = states.chunks(width).zip(0..);
            let expected: Vec<u32> = all.filter(|(state, _)| twin.insert(state.to_vec())).map(|(_, at)| at).collect();
            assert_eq!(fresh, expected, "width {width}");
        }
        assert_eq!(chain.usage().states, twin.len() as u64);
        chain
    }

    fn still_samples(chain: &Chain) -> bool {
        matches!(&chain.tiers, Tiers::Roots(roots) if roots.sample.is_some())
    }

    #[test]
    fn agrees_with_a_hash_set_before_and_after_learning() {
        for width in (1..=130).step_by(3) {
            assert!(!still_samples(&compare(width, 60, 1 << 30)) || !Shape::can_be_learned(width), "width {width}");
        }
        compare(2000, 10, 1 << 30);
    }

    #[test]
    fn without_memory_for_a_new_tree_it_stays_as_it_is() {
        let plenty = compare(40, 60, 1 << 30);
        let scarce = compare(40, 60, 1100 << 10);
        assert!(!still_samples(&plenty) && !still_samples(&scarce));
        assert!(scarce.coder.bytes() != plenty.coder.bytes());
    }

    #[test]
    #[should_panic(expected = "encoded by another tree")]
    fn keys_of_the_tree_before_are_refused() {
        let mut chain = compare(5, 20, 1 << 30);
        let (states, mut scratch) = (vec![7; 5 * 5000], Scratch::default());
        let block = Block::of(&states[..5], &[0, 1]);
        scratch.encode(&chain.coder, block, false).unwrap();
        let mut other = Scratch::default();
        for value in 0..5000 {
            let state = [value, 1, 2, 3, 100];
            chain.insert(Block::of(&state, &[0, 1]), &mut other, &mut Vec::new()).unwrap();
        }
        let _ = chain.tiers.insert(block, &mut scratch, &mut Vec::new());
    }
}
