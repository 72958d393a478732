//! Packed, or in a tree, and with which root? What the first states show decides.
//!
//! A packed state takes the bits that its place does not tell, which can be computed. What a tree takes depends on how often parts of
//! states come again: so the states of the sample are put into one, and its nodes are counted three times, for eight times as many
//! states each. Parts that got more in between are expected to go on like that; where growth slowed down, to slow down likewise. Bytes
//! are foretold for some millions of states: with fewer nobody has to care.
//!
//! A root of three numbers is what is called collapse elsewhere: components are numbered and their numbers put side by side. Its keys are
//! longer, but where most pairs of two components are met once only, it spares their nodes.

use crate::budget::{Full, Grant};
use crate::packed::{self, Density};
use crate::tree::{Scratch, Shape, Tree};

/// Bytes are foretold for so many states.
const FORETOLD: f64 = (4 << 20) as f64;
/// Nodes are counted each time there are so many times as many states.
const STEP: usize = 8;
/// Growth does not slow down by more than this from one step to the next.
const LEAST_DAMPING: f64 = 0.2;
/// States that are encoded at a time.
const BLOCK: usize = 1024;
/// A root of three must take less than this part of the bytes of the other.
const WIDE_PERCENT: f64 = 90.0;

/// What was chosen, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    pub form: Form,
    /// States that were looked at.
    pub sampled: usize,
    /// Bytes that each of some millions of states is expected to take in tables: packed, where that was a question, and in a tree with a
    /// root of two and of three numbers.
    pub packed_bytes: Option<f64>,
    pub tree_bytes: f64,
    pub wide_bytes: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Packed,
    /// A root of two numbers.
    Tree,
    /// A root of three.
    Wide,
}

impl Choice {
    /// Between packed keys of `key_bits` bits, if they are given, and trees of these shapes, for states like these (end to end).
    pub(crate) fn of(
        key_bits: Option<u32>,
        (tree, wide): (&Shape, Option<&Shape>),
        states: &[u32],
        density: Density,
        grant: &Grant,
    ) -> Result<Choice, Full> {
        let tree_bytes = in_tree(tree, states, density, grant)?;
        let wide_bytes = wide.map(|wide| in_tree(wide, states, density, grant)).transpose()?;
        let packed_bytes = key_bits.map(|bits| packed::bytes_per_key(bits, FORETOLD, density));
        let wide = wide_bytes.filter(|wide| wide * 100.0 < tree_bytes * WIDE_PERCENT);
        let least = wide.unwrap_or(tree_bytes);
        let form = match packed_bytes {
            Some(packed) if least * 100.0 >= packed * density.tree_percent as f64 => Form::Packed,
            _ if wide.is_some() => Form::Wide,
            _ => Form::Tree,
        };
        Ok(Choice { form, sampled: states.len() / tree.width, packed_bytes, tree_bytes, wide_bytes })
    }
}

/// The shape of a tree whose nodes take the fewest bytes for states like these (end to end), for a store that cannot encode again what it
/// holds; none where there is nothing to choose, or no memory to try.
pub fn leanest_shape(width: usize, states: &[u32], grant: &Grant) -> Option<Shape> {
    if !Shape::can_be_learned(width) || states.is_empty() {
        return None;
    }
    let (two, three) = Shape::learned(width, states);
    let bytes = |shape: &Shape| {
        let (mut tree, mut scratch) = (Tree::new(shape.clone(), grant)?, Scratch::default());
        for block in states.chunks(BLOCK * width) {
            tree.reserve(block.len() / width)?;
            tree.encode(block, &mut scratch)?;
        }
        Ok(tree.bytes_for(&tree.counts().iter().map(|&count| count as f64).collect::<Vec<_>>()))
    };
    let tried = [Some(two), three].into_iter().flatten().map(|shape| Ok((bytes(&shape)?, shape)));
    let tried: Vec<(f64, Shape)> = tried.collect::<Result<_, Full>>().ok()?;
    tried.into_iter().min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, shape)| shape)
}

/// Bytes that each of many states like these is expected to take in a tree of this shape, roots and nodes.
fn in_tree(shape: &Shape, states: &[u32], density: Density, grant: &Grant) -> Result<f64, Full> {
    let mut tree = Tree::new(shape.clone(), grant)?;
    tree.set_density(density);
    let (sampled, mut scratch) = (states.len() / shape.width, Scratch::default());
    let ends = [sampled / (STEP * STEP), sampled / STEP, sampled];
    let mut counts = Vec::new();
    for (from, to) in [(0, ends[0]), (ends[0], ends[1]), (ends[1], ends[2])] {
        for block in states[from * shape.width..to * shape.width].chunks(BLOCK * shape.width) {
            tree.reserve(block.len() / shape.width)?;
            tree.encode(block, &mut scratch)?;
        }
        counts.push(tree.counts());
    }
    let steps = (FORETOLD / sampled as f64).ln() / (STEP as f64).ln();
    let vectors: Vec<f64> = (0..counts[0].len())
        .map(|node| foretell([counts[0][node], counts[1][node], counts[2][node]], steps).min(FORETOLD))
        .collect();
    let roots = packed::bytes_per_key(tree.key_bits_for(|node| vectors[node]), FORETOLD, density);
    Ok(roots + tree.bytes_for(&vectors) / FORETOLD)
}

/// How many there will be after so many steps more, if there were so many after each of three steps.
fn foretell(counts: [usize; 3], mut steps: f64) -> f64 {
    let [first, second, third] = counts.map(|count| (count.max(1) as f64).ln());
    let (before, mut growth) = (second - first, third - second);
    let damping = if before > growth { (growth / before).max(LEAST_DAMPING) } else { 1.0 };
    let mut foretold = third;
    while steps > 0.0 {
        growth *= damping;
        foretold += growth * steps.min(1.0);
        steps -= 1.0;
    }
    foretold.exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    /// Two independent halves of few values each are a tree's best case, and random bits are its worst.
    #[test]
    fn states_of_parts_that_come_again_go_into_a_tree_and_others_do_not() {
        let mut draw = Draw::new(0);
        for density in [Density::USUAL, Density::COMPACT] {
            let mut chosen = |values: u64| {
                let states: Vec<u32> = (0..2 * 32_768).map(|_| draw.below(values) as u32).collect();
                Choice::of(Some(48), (&Shape::even(2), None), &states, density, &Grant::unlimited()).unwrap()
            };
            let (few, many) = (chosen(2_000), chosen(1 << 24));
            let packed = few.packed_bytes.unwrap();
            assert!(few.form == Form::Tree && few.tree_bytes < packed / 1.6, "{few:?}");
            assert!(many.form == Form::Packed && many.tree_bytes > 2.0 * packed, "{many:?}");
            assert_eq!((few.sampled, many.packed_bytes), (32_768, Some(packed)));
        }
    }

    /// Three parts of some hundreds of values each: most pairs of parts are met once only.
    #[test]
    fn parts_whose_pairs_do_not_come_again_have_a_root_of_three() {
        let mut draw = Draw::new(0);
        let mut chosen = |values: u64| {
            let states: Vec<u32> = (0..6 * 32_768).map(|_| draw.below(values) as u32).collect();
            let states: Vec<u32> = states.chunks(3).flat_map(|part| [part[0], part[1], part[2]]).collect();
            let (tree, wide) = Shape::learned(3, &states);
            Choice::of(None, (&tree, wide.as_ref()), &states, Density::USUAL, &Grant::unlimited()).unwrap()
        };
        let (few, many) = (chosen(20), chosen(2_000));
        assert!(few.form == Form::Tree && many.form == Form::Wide, "{few:?} {many:?}");
        assert!(many.wide_bytes.unwrap() < many.tree_bytes / 2.0);
    }

    #[test]
    fn growth_goes_on_as_it_was() {
        let near = |counts: [usize; 3], steps: f64, expected: f64| {
            let foretold = foretell(counts, steps);
            assert!((foretold / expected - 1.0).abs() < 0.01, "{counts:?}: {foretold}");
        };
        near([9, 9, 9], 2.5, 9.0);
        near([10, 100, 1000], 1.5, 10f64.powf(4.5));
        near([10, 1000, 10_000], 2.0, 10f64.powf(4.75));
        near([0, 1, 8], 1.0, 64.0);
    }

    #[test]
    fn what_is_foretold_for_packed_keys_is_what_they_take() {
        use crate::arena::Arena;
        use crate::packed::Packed;
        for (key_bits, density) in [(44, Density::USUAL), (44, Density::COMPACT), (58, Density::USUAL)] {
            let density = density.of_large();
            let arena = Arena::new(Grant::unlimited());
            let mut table = Packed::one_of(key_bits, 0, 0, density, &arena).unwrap();
            let (mut draw, keys) = (Draw::new(1), 700_000);
            for _ in 0..keys {
                table.reserve(1, key_bits).unwrap();
                table.insert_one((draw.bits() as u128) << 64 & u128::MAX << (128 - key_bits));
            }
            let taken = arena.bytes() as f64 / table.len() as f64;
            let foretold = packed::bytes_per_key(key_bits, keys as f64, density);
            assert!((taken / foretold - 1.0).abs() < 0.1, "{taken} bytes, foretold {foretold}");
        }
    }
}
