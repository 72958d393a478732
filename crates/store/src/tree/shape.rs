//! The shape of a tree: which words make a leaf, and which nodes are paired.
//!
//! Any shape is injective, but a good one cuts states where their parts vary independently: then the parts have
//! few distinct values, and the tables are small and fast. Before anything is known the words are cut evenly. From
//! a sample of states the best binary tree is found by dynamic programming over all intervals: a node costs its
//! distinct vectors in the sample times their size, and something for being there.

use crate::hash;
use crate::stream::{Unloaded, put_number, take_below};
use std::io::{self, Read, Write};

/// Words of the widest leaf.
pub const WIDEST: usize = 8;
/// Numbers in a root, at most.
const MOST_ROOTS: usize = 3;
/// Words of a leaf where nothing is known.
const EVEN: usize = 4;
/// No more places to cut than this are considered, unless leaves would be too wide.
const ATOMS: usize = 48;
/// What a node costs by itself, in vectors: a lookup takes time, however small the table.
const NODE: u64 = 384;
/// Wider states are cut evenly: there are too many ways to do better.
const WIDEST_LEARNED: usize = 1024;

/// Where a node finds its words: in the state, or among the numbers of two earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Words { first: usize, count: usize },
    Nodes { left: usize, right: usize },
}

impl Source {
    /// Words of a vector of the node.
    pub fn words(self) -> usize {
        match self {
            Source::Words { count, .. } => count,
            Source::Nodes { .. } => 2,
        }
    }
}

/// Nodes, children before parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub width: usize,
    pub sources: Vec<Source>,
    /// The two or three nodes under the root; none if the state is a single word and its own root.
    pub root: Vec<usize>,
}

impl Shape {
    /// Shapes of every kind for states of this width.
    #[cfg(test)]
    pub fn of_every_kind(width: usize) -> Vec<Shape> {
        let mut shapes = vec![Shape::even(width)];
        if Shape::can_be_learned(width) {
            let sample: Vec<u32> = (0..50 * width as u32).map(|index| index * index % 11 % 4).collect();
            let (two, three) = Shape::learned(width, &sample);
            shapes.extend(std::iter::once(two).chain(three));
        }
        shapes
    }

    /// Leaves of like width, paired level by level.
    pub fn even(width: usize) -> Shape {
        if width == 1 {
            return Shape { width, sources: Vec::new(), root: Vec::new() };
        }
        let bounds = even_bounds(width, width.div_ceil(EVEN).max(2));
        let leaf = |bounds: &[usize]| Source::Words { first: bounds[0], count: bounds[1] - bounds[0] };
        let mut sources: Vec<Source> = bounds.windows(2).map(leaf).collect();
        let mut level: Vec<usize> = (0..sources.len()).collect();
        while level.len() > 2 {
            level = level
                .chunks(2)
                .map(|nodes| match *nodes {
                    [left, right] => {
                        sources.push(Source::Nodes { left, right });
                        sources.len() - 1
                    }
                    _ => nodes[0],
                })
                .collect();
        }
        Shape { width, sources, root: level }
    }

    /// Writes how many nodes there are, what each is made of, and the root.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let numbers = self.sources.iter().flat_map(|source| match *source {
            Source::Words { first, count } => [0, first, count],
            Source::Nodes { left, right } => [1, left, right],
        });
        let root = std::iter::once(self.root.len()).chain(self.root.iter().copied());
        let mut numbers = std::iter::once(self.sources.len()).chain(numbers).chain(root);
        numbers.try_for_each(|number| put_number(out, number as u64))
    }

    /// The shape of a tree over states of this width, as it was written.
    pub fn load(width: usize, from: &mut dyn Read) -> Result<Shape, Unloaded> {
        let mut take = |most: usize| take_below(from, most, "as part of a tree");
        let mut shape = Shape { width, sources: Vec::new(), root: Vec::new() };
        for node in 0..take(2 * width)? {
            let source = match (take(1)?, node.checked_sub(1)) {
                (0, _) => {
                    let first = take(width - 1)?;
                    Source::Words { first, count: take(WIDEST.min(width - first))? }
                }
                (_, Some(before)) => Source::Nodes { left: take(before)?, right: take(before)? },
                (_, None) => return Err(Unloaded::damaged("a tree without leaves")),
            };
            if source.words() == 0 {
                return Err(Unloaded::damaged("a leaf without words"));
            }
            shape.sources.push(source);
        }
        let (roots, last) = (take(MOST_ROOTS)?, shape.sources.len().saturating_sub(1));
        shape.root = (0..roots).map(|_| take(last)).collect::<Result<_, _>>()?;
        let fits = if width > 1 { roots >= 2 && !shape.sources.is_empty() } else { roots == 0 };
        if fits { Ok(shape) } else { Err(Unloaded::damaged("a tree without leaves")) }
    }

    /// Can something be learned about states of this width?
    pub fn can_be_learned(width: usize) -> bool {
        (3..=WIDEST_LEARNED).contains(&width)
    }

    /// The shapes that are best for the states of `sample` (end to end): with a root of two numbers, and with one of three if that
    /// is possible. The wider root has longer keys, and spares the nodes of one more pair.
    pub fn learned(width: usize, sample: &[u32]) -> (Shape, Option<Shape>) {
        assert!(Shape::can_be_learned(width) && !sample.is_empty());
        let intervals = Intervals::of(atoms(width, sample), width, sample);
        let (costs, cuts) = intervals.cheapest_cuts();
        let all = intervals.atoms();
        let cost = |from: usize, to: usize| costs[intervals.index(from, to)];
        let shape = |bounds: &[usize]| {
            let mut shape = Shape { width, sources: Vec::new(), root: Vec::new() };
            shape.root = bounds.windows(2).map(|part| shape.add(&intervals, &cuts, part[0], part[1])).collect();
            shape
        };
        let three = (1..all).flat_map(|first| (first + 1..all).map(move |second| (first, second)));
        let three = three.min_by_key(|&(first, second)| cost(0, first) + cost(first, second) + cost(second, all));
        (shape(&[0, cuts[all], all]), three.map(|(first, second)| shape(&[0, first, second, all])))
    }

    fn add(&mut self, intervals: &Intervals, cuts: &[usize], from: usize, to: usize) -> usize {
        let cut = cuts[intervals.index(from, to)];
        let source = if cut == 0 {
            Source::Words { first: intervals.bounds[from], count: intervals.words(from, to) }
        } else {
            let left = self.add(intervals, cuts, from, cut);
            Source::Nodes { left, right: self.add(intervals, cuts, cut, to) }
        };
        self.sources.push(source);
        self.sources.len() - 1
    }
}

fn even_bounds(width: usize, parts: usize) -> Vec<usize> {
    (0..=parts).map(|part| part * width / parts).collect()
}

/// Where a state may be cut: before every word that varies in the sample, if those are not too many. No two
/// bounds are further apart than a leaf is wide.
fn atoms(width: usize, sample: &[u32]) -> Vec<usize> {
    let varies = |word: usize| sample.iter().skip(word).step_by(width).any(|&value| value != sample[word]);
    let mut bounds = vec![0];
    for word in 1..width {
        if word - bounds[bounds.len() - 1] == WIDEST || varies(word) {
            bounds.push(word);
        }
    }
    bounds.push(width);
    let parts = bounds.len() - 1;
    if (2..=ATOMS).contains(&parts) { bounds } else { even_bounds(width, width.min(ATOMS.max(width.div_ceil(WIDEST)))) }
}

/// The number of distinct vectors for every interval of atoms.
struct Intervals {
    bounds: Vec<usize>,
    distinct: Vec<u32>,
}

impl Intervals {
    /// Counts by setting a bit for every vector's hash: a few vectors in a hundred share theirs with another.
    fn of(bounds: Vec<usize>, width: usize, sample: &[u32]) -> Intervals {
        let states = sample.len() / width;
        let marks = (states * 16).next_power_of_two().max(64);
        let shift = 32 - marks.trailing_zeros();
        let mut seen = vec![0u64; marks / 64];
        let part = |atom: usize, state: &[u32]| (hash::words(&state[bounds[atom]..bounds[atom + 1]]) >> 32) as u32;
        let parts: Vec<Vec<u32>> = (0..bounds.len() - 1)
            .map(|atom| sample.chunks_exact(width).map(|state| part(atom, state)).collect())
            .collect();
        let mut intervals = Intervals { distinct: vec![0; bounds.len() * bounds.len()], bounds };
        let mut hashes = vec![0u32; states];
        for from in 0..intervals.atoms() {
            hashes.fill(0);
            let mut distinct = 0;
            for to in from + 1..=intervals.atoms() {
                // Where practically all states differ they do so in longer intervals, too.
                if distinct as usize * 16 < states * 15 {
                    seen.fill(0);
                    for (hash, part) in hashes.iter_mut().zip(&parts[to - 1]) {
                        *hash = (*hash ^ part).wrapping_mul(0x9E37_79B1);
                        *hash ^= *hash >> 15;
                        let mark = (*hash >> shift) as usize;
                        seen[mark / 64] |= 1 << (mark % 64);
                    }
                    distinct = seen.iter().map(|bits| bits.count_ones()).sum();
                }
                let index = intervals.index(from, to);
                intervals.distinct[index] = distinct;
            }
        }
        intervals
    }

    fn atoms(&self) -> usize {
        self.bounds.len() - 1
    }

    fn index(&self, from: usize, to: usize) -> usize {
        from * self.bounds.len() + to
    }

    fn words(&self, from: usize, to: usize) -> usize {
        self.bounds[to] - self.bounds[from]
    }

    /// For every interval what it costs and the cut that makes it cheapest, zero for none (a leaf). The interval of all atoms is cut.
    fn cheapest_cuts(&self) -> (Vec<u64>, Vec<usize>) {
        let mut costs = vec![0u64; self.distinct.len()];
        let mut cuts = vec![0; self.distinct.len()];
        for (length, from) in
            (1..=self.atoms()).flat_map(|length| (0..=self.atoms() - length).map(move |from| (length, from)))
        {
            let (to, index) = (from + length, self.index(from, from + length));
            let vectors = self.distinct[index] as u64 + NODE;
            let halves = |&cut: &usize| costs[self.index(from, cut)] + costs[self.index(cut, to)];
            let cut = (from + 1..to).min_by_key(halves);
            let cut_cost = cut.map_or(u64::MAX, |cut| halves(&cut) + vectors * 3);
            let words = self.words(from, to);
            let leaf_cost = vectors * (words as u64 + 1);
            let is_leaf = words <= WIDEST && leaf_cost <= cut_cost && length < self.atoms();
            costs[index] = if is_leaf { leaf_cost } else { cut_cost };
            cuts[index] = if is_leaf { 0 } else { cut.unwrap_or(0) };
        }
        (costs, cuts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    /// The words of a node, in order.
    fn words(shape: &Shape, node: usize) -> Vec<usize> {
        match shape.sources[node] {
            Source::Words { first, count } => {
                assert!((1..=WIDEST).contains(&count));
                (first..first + count).collect()
            }
            Source::Nodes { left, right } => {
                assert!(left < node && right < node);
                [words(shape, left), words(shape, right)].concat()
            }
        }
    }

    fn all_words(shape: &Shape) -> Vec<usize> {
        shape.root.iter().flat_map(|&node| words(shape, node)).collect()
    }

    #[test]
    fn every_shape_has_every_word_once_and_in_order() {
        let mut draw = Draw::new(0);
        for width in (2..=130).chain([300, 1024, 5000]) {
            let expected: Vec<usize> = (0..width).collect();
            assert_eq!(all_words(&Shape::even(width)), expected);
            for variety in [1, 2, 50] {
                let sample: Vec<u32> = (0..20 * width)
                    .map(|index| if (index % width).is_multiple_of(3) { 0 } else { draw.below(variety) as u32 })
                    .collect();
                if Shape::can_be_learned(width) {
                    let (two, three) = Shape::learned(width, &sample);
                    assert_eq!((all_words(&two), two.root.len()), (expected.clone(), 2), "variety {variety}");
                    assert!(three.is_none_or(|three| all_words(&three) == expected && three.root.len() == 3));
                }
            }
        }
    }

    #[test]
    fn cuts_where_parts_vary_independently() {
        // Words 0 to 2 and 3 to 9 hold two counters that have nothing to do with each other.
        let states = (0..60).flat_map(|a| (0..60).map(move |b| [a, a * 7, a ^ 3, b, b + 1, b, b, b * b, 5, b]));
        let sample: Vec<u32> = states.flatten().collect();
        let (shape, _) = Shape::learned(10, &sample);
        let roots: Vec<Vec<usize>> = shape.root.iter().map(|&node| words(&shape, node)).collect();
        assert_eq!(roots, [(0..3).collect::<Vec<_>>(), (3..10).collect()]);
        assert_eq!(shape.sources.len(), 2);
        // Three counters, and a third number in the root.
        let states = (0..4096).map(|i| [i % 16, i % 16 * 7, i / 16 % 16, i / 16 % 16 + 1, i / 256, i / 256 * 3]);
        let shape = Shape::learned(6, &states.flatten().collect::<Vec<u32>>()).1.unwrap();
        let roots: Vec<Vec<usize>> = shape.root.iter().map(|&node| words(&shape, node)).collect();
        assert_eq!(roots, [[0, 1], [2, 3], [4, 5]]);
    }
}
