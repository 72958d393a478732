//! Nodes that no root needs any more are given up: where states are forgotten, so are the parts that only they had.
//!
//! Roots that are held mark the nodes that they are made of. A node comes behind those that it is made of, so going through the tables
//! once, from the last to the first, marks whatever is needed, and nothing is looked up. Numbers of nodes that stay do not change, and
//! so roots do not either. Every key that is not among the roots is worth nothing afterwards.

use super::{Source, Tree, next_id, root};
use crate::budget::Full;
use crate::intern::Intern;
use std::sync::atomic::{AtomicU32, Ordering};

impl Tree {
    /// Makes room for telling which nodes are needed.
    pub fn keep_marks(&mut self) -> Result<(), Full> {
        self.all_tables_mut().try_for_each(Intern::keep_marks)
    }

    /// Gives up all nodes but those of the roots with keys that `each_root` tells, and says how many.
    pub fn keep_roots(&mut self, each_root: impl FnOnce(&mut dyn FnMut(u64))) -> Result<usize, Full> {
        self.keep_marks()?;
        if self.tables.is_empty() {
            return Ok(0);
        }
        self.all_tables_mut().for_each(Intern::unmark_all);
        each_root(&mut |key| self.mark_root(key));
        if let (Some(beyond), &[_, middle, right]) = (&self.beyond, &self.shape.root[..]) {
            let tables = &mut self.tables;
            beyond.visit_marked(|vector| {
                tables[middle].mark(word(&vector[0]));
                tables[right].mark(word(&vector[1]));
            });
        }
        for (node, source) in self.shape.sources.iter().enumerate().rev() {
            if let Source::Nodes { left, right } = *source {
                let (before, from) = self.tables.split_at_mut(node);
                from[0].visit_marked(|vector| {
                    before[left].mark(word(&vector[0]));
                    before[right].mark(word(&vector[1]));
                });
            }
        }
        // What buffers know of numbers holds no more.
        self.id = next_id();
        Ok(self.all_tables_mut().map(Intern::keep_marked).sum())
    }

    fn mark_root(&mut self, key: u64) {
        match (&self.shape.root[..], &mut self.beyond) {
            (&[left, middle, right], Some(beyond)) => match root::three_numbers(key) {
                Ok(numbers) => {
                    [left, middle, right]
                        .into_iter()
                        .zip(numbers)
                        .for_each(|(at, number)| self.tables[at].mark(number));
                }
                Err([first, pair]) => {
                    self.tables[left].mark(first);
                    beyond.mark(pair);
                }
            },
            (nodes, _) => {
                nodes.iter().zip(root::numbers(key)).for_each(|(&at, number)| self.tables[at].mark(number));
            }
        }
    }
}

fn word(word: &AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::super::{Scratch, Shape};
    use super::*;
    use crate::budget::{Budget, Grant};
    use plimsoll_ir::random::Draw;
    use std::collections::BTreeMap;

    /// Random states come and go: those that stay keep their roots, no two have the same, and they can be made again from them.
    fn check(shape: Shape, draw: &mut Draw) {
        let width = shape.width;
        let grant = Budget::new(1 << 30).grant("trees", 1 << 30);
        let mut tree = Tree::new(shape, &grant).unwrap();
        let (mut scratch, mut held): (_, BTreeMap<Vec<u32>, u64>) = (Scratch::default(), BTreeMap::new());
        let mut state = vec![0; width];
        for round in 0..6 {
            for _ in 0..10 {
                let mut states = Vec::new();
                for _ in 0..30 {
                    state[draw.below(width as u64) as usize] = draw.below(9) as u32;
                    states.extend_from_slice(&state);
                }
                tree.reserve(30).unwrap();
                tree.encode(&states, &mut scratch).unwrap();
                for (state, &key) in states.chunks(width).zip(&scratch.keys) {
                    assert_eq!(*held.entry(state.to_vec()).or_insert(key), key, "width {width}");
                }
            }
            let mut keys: Vec<u64> = held.values().copied().collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), held.len(), "width {width}");
            let (share, before) = (draw.below(5), tree.nodes());
            held.retain(|_, _| draw.below(4) < share);
            let gone = tree.keep_roots(|mark| held.values().for_each(|&key| mark(key))).unwrap();
            assert_eq!(tree.nodes(), before - gone);
            assert!(share > 0 || tree.nodes() == 0, "width {width}, round {round}");
            // Nothing that is needed went, and nothing else stayed.
            let all: Vec<u32> = held.keys().flatten().copied().collect();
            let left = tree.nodes();
            tree.reserve(held.len()).unwrap();
            tree.encode(&all, &mut scratch).unwrap();
            assert!(scratch.keys.iter().eq(held.values()) && tree.nodes() == left, "width {width}");
            let mut fresh = Tree::new(tree.shape().clone(), &grant).unwrap();
            fresh.reserve(held.len()).unwrap();
            fresh.encode(&all, &mut Scratch::default()).unwrap();
            assert_eq!(fresh.nodes(), left, "width {width}");
        }
        let (mut decoder, mut decoded) = (tree.into_decoder(), Vec::new());
        for (state, key) in held {
            decoded.clear();
            decoder.decode(key, &mut decoded);
            assert_eq!(decoded, state);
        }
    }

    #[test]
    fn what_stays_keeps_its_roots_and_what_goes_leaves_nothing() {
        let mut draw = Draw::new(3);
        for width in (1..=20).chain([33, 64, 130]) {
            Shape::of_every_kind(width).into_iter().for_each(|shape| check(shape, &mut draw));
        }
    }

    /// A root of three numbers one of which is too large for a key needs its pair, and what that is made of.
    #[test]
    fn pairs_of_roots_of_three_stay_with_them() {
        let sample: Vec<u32> = (0..50 * 12).map(|index| index * index % 11 % 4).collect();
        let three = Shape::learned(12, &sample).1.expect("it is wide enough");
        let mut tree = Tree::new(three, &Grant::unlimited()).unwrap();
        let mut scratch = Scratch::default();
        let states: Vec<u32> = (0..40 * 12).map(|index| index / 12 * 7 + index % 12).collect();
        tree.reserve(100).unwrap();
        tree.encode(&states, &mut scratch).unwrap();
        let keys: Vec<u64> = scratch.keys.iter().step_by(2).copied().collect();
        let as_pair = |tree: &Tree, key: u64| {
            let [left, middle, right] = root::three_numbers(key).unwrap();
            super::super::key_beyond([left, middle, right], tree.beyond.as_ref().unwrap()).unwrap()
        };
        let pairs: Vec<u64> = keys.iter().map(|&key| as_pair(&tree, key)).collect();
        // The pairs of all others go.
        scratch.keys.iter().skip(1).step_by(2).for_each(|&key| _ = as_pair(&tree, key));
        assert_eq!(tree.beyond.as_ref().unwrap().len(), 40);
        assert!(tree.keep_roots(|mark| pairs.iter().for_each(|&pair| mark(pair))).unwrap() > 20);
        assert_eq!(tree.beyond.as_ref().unwrap().len(), 20);
        let kept: Vec<u32> = states.chunks(12).step_by(2).flatten().copied().collect();
        let nodes = tree.nodes();
        tree.encode(&kept, &mut scratch).unwrap();
        assert_eq!((&scratch.keys, tree.nodes()), (&keys, nodes));
        assert!(keys.iter().zip(&pairs).all(|(&key, &pair)| as_pair(&tree, key) == pair));
        let mut decoder = tree.into_decoder();
        for (&pair, state) in pairs.iter().zip(kept.chunks(12)) {
            let mut decoded = Vec::new();
            decoder.decode(pair, &mut decoded);
            assert_eq!(decoded, state);
        }
    }
}
