//! Tree compression: a state becomes two 32-bit numbers.
//!
//! The words of a state are cut into groups; a group's distinct values are numbered. The numbers are paired, and
//! distinct pairs are numbered, level by level, until two numbers are left, or three: the root, which stands for the state.
//! Parts of states repeat, so the node tables stay small beside the set of roots. Injective: equal roots mean equal
//! states. After Laarman, van de Pol and Weber (SPIN 2011); [`shape`] tells how groups and pairs are chosen. One
//! table per position keeps the small ones in the processor's caches. Blocks of states pass through one position
//! after the other, prefetching, and only where a state differs from the one before it is anything looked up.

use crate::budget::{Full, Grant};
use crate::hash;
use crate::intern::{Growth, Intern};
use crate::packed::Density;
use crate::stream::Unloaded;
use shape::{Source, WIDEST};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

mod decode;
mod living;
pub mod root;
mod shape;

pub use decode::Decoder;
pub use shape::Shape;

/// A table this small stays in the processor's caches by itself.
const NEAR_BYTES: usize = 512 << 10;
/// States whose changes are told by the bits of one word.
const TILE: usize = 64;

/// The node tables of a tree over states of fixed width.
#[derive(Debug)]
pub struct Tree {
    id: u64,
    shape: Shape,
    /// One table per node.
    tables: Vec<Intern>,
    /// The last two of a root's three numbers, where one of these is too large for a key.
    beyond: Option<Intern>,
    /// The table that several workers let grow, and how far they are; vectors in each when they last looked.
    growing: Option<(usize, Growth)>,
    seen: Vec<usize>,
}

/// Buffers for encoding one block; one per worker.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The tree that encoded the last block, and that block's last state with the numbers of its nodes.
    tree: u64,
    last: Vec<u32>,
    last_numbers: Vec<u32>,
    /// For each node a bit for each state: does its vector differ from that of the state before?
    changed: Vec<u64>,
    /// For each node the number it had last in the block before, then its number after each change.
    numbers: Vec<u32>,
    hashes: Vec<u64>,
    /// The keys of the roots: see [`root`].
    pub keys: Vec<u64>,
}

impl Tree {
    pub fn new(shape: Shape, grant: &Grant) -> Result<Tree, Full> {
        let table = |source: &Source| Intern::new(source.words(), grant.clone());
        let tables = shape.sources.iter().map(table).collect::<Result<_, Full>>()?;
        let beyond = (shape.root.len() == 3).then(|| Intern::new(2, grant.clone())).transpose()?;
        Ok(Tree::of(shape, tables, beyond))
    }

    fn of(shape: Shape, tables: Vec<Intern>, beyond: Option<Intern>) -> Tree {
        let (growing, seen) = (None, vec![0; tables.len()]);
        Tree { id: next_id(), shape, tables, beyond, growing, seen }
    }

    fn all_tables(&self) -> impl Iterator<Item = &Intern> {
        self.tables.iter().chain(&self.beyond)
    }

    fn all_tables_mut(&mut self) -> impl Iterator<Item = &mut Intern> {
        self.tables.iter_mut().chain(&mut self.beyond)
    }

    /// How full its tables are from here on.
    pub fn set_density(&mut self, density: Density) {
        self.all_tables_mut().for_each(|table| table.set_fill(density.nodes));
    }

    /// Writes the shape and all nodes with their numbers.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.shape.save(out)?;
        self.all_tables().try_for_each(|table| table.save(out))
    }

    /// A tree over states of this width that was written.
    pub fn load(width: usize, from: &mut dyn Read, grant: &Grant) -> Result<Tree, Unloaded> {
        let shape = Shape::load(width, from)?;
        let table = |source: &Source| Intern::load(source.words(), from, grant.clone());
        let tables = shape.sources.iter().map(table).collect::<Result<_, Unloaded>>()?;
        let beyond = (shape.root.len() == 3).then(|| Intern::load(2, from, grant.clone())).transpose()?;
        Ok(Tree::of(shape, tables, beyond))
    }

    /// Words per state.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Makes sure that `count` more states can be encoded.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        self.all_tables_mut().try_for_each(|table| table.reserve(count))
    }

    /// Can `count` more states be encoded as it is?
    pub fn has_room(&self, count: usize) -> bool {
        self.all_tables().all(|table| table.has_room(count))
    }

    /// Lets large tables grow that would have to before as many vectors have come as since the last time, and `spare` more: says how
    /// many pieces of one are to be moved by whoever is free, before it is asked again. None when all have grown.
    pub fn next_pieces(&mut self, spare: usize) -> usize {
        loop {
            if let Some((table, growth)) = &mut self.growing {
                let pieces = self.tables[*table].next_round(growth);
                if pieces > 0 {
                    return pieces;
                }
                self.growing = None;
            }
            let counted = self.tables.iter_mut().zip(&self.seen).enumerate();
            let mut grows = counted.filter_map(|(index, (table, &seen))| {
                let more = table.len().saturating_sub(seen) + spare;
                table.begin_growth(more).map(|growth| (index, growth))
            });
            self.growing = grows.next();
            if self.growing.is_none() {
                self.seen = self.counts();
                return 0;
            }
        }
    }

    /// Moves one of the pieces.
    pub fn move_piece(&self, piece: usize) {
        if let Some((table, growth)) = &self.growing {
            self.tables[*table].move_piece(growth, piece);
        }
    }

    /// Bits of the longest key so far.
    pub fn key_bits(&self) -> u32 {
        self.key_bits_for(|node| self.tables[node].bound() as f64)
    }

    /// Bits of keys where nodes have so many vectors.
    pub fn key_bits_for(&self, vectors: impl Fn(usize) -> f64) -> u32 {
        let most = self.shape.root.iter().map(|&node| vectors(node)).fold(0.0, f64::max);
        let bound = if self.shape.root.is_empty() { u32::MAX } else { most as u32 };
        if self.beyond.is_some() { root::key_bits_of_three(bound) } else { root::key_bits(bound) }
    }

    pub fn bytes(&self) -> usize {
        self.all_tables().map(Intern::bytes).sum()
    }

    /// Inner nodes stored.
    pub fn nodes(&self) -> usize {
        self.all_tables().map(Intern::len).sum()
    }

    /// Vectors in each table.
    pub fn counts(&self) -> Vec<usize> {
        self.tables.iter().map(Intern::len).collect()
    }

    /// Bytes of tables with so many vectors each.
    pub fn bytes_for(&self, vectors: &[f64]) -> f64 {
        self.tables.iter().zip(vectors).map(|(table, &vectors)| table.bytes_for(vectors)).sum()
    }

    /// Computes the keys of the roots of all `states` (end to end) into `scratch.keys`.
    pub fn encode(&self, states: &[u32], scratch: &mut Scratch) -> Result<(), Full> {
        let width = self.shape.width;
        scratch.keys.clear();
        if self.shape.root.is_empty() {
            scratch.keys.extend(states.iter().map(|&word| root::key(word as u64)));
            scratch.tree = self.id;
            return Ok(());
        }
        let count = states.len() / width;
        if count == 0 {
            return Ok(());
        }
        self.prepare(states, scratch);
        self.find_changes(states, scratch);
        for node in 0..self.tables.len() {
            self.number(node, states, count, scratch)?;
        }
        let Scratch { changed, numbers, keys, .. } = scratch;
        let cursor = |node: usize| Cursor::new(node, count, changed, numbers);
        match (&self.shape.root[..], &self.beyond) {
            (&[left, middle, right], Some(beyond)) => {
                let mut cursors = [left, middle, right].map(cursor);
                for state in 0..count {
                    let numbers = cursors.each_mut().map(|cursor| cursor.number(state));
                    let key = root::key_of_three(numbers).map_or_else(|| key_beyond(numbers, beyond), Ok);
                    keys.push(key?);
                }
            }
            (root, _) => {
                let (mut left, mut right) = (cursor(root[0]), cursor(root[1]));
                keys.extend((0..count).map(|state| root::key(pair(left.number(state), right.number(state)))));
            }
        }
        scratch.last.copy_from_slice(&states[(count - 1) * width..]);
        scratch.tree = self.id;
        Ok(())
    }

    /// Makes room for a block. What is known of the block before is taken back, lest it survive a failure.
    fn prepare(&self, states: &[u32], scratch: &mut Scratch) {
        let (width, nodes) = (self.shape.width, self.tables.len());
        let count = states.len() / width;
        if std::mem::take(&mut scratch.tree) != self.id {
            // Nothing is known: every word differs.
            scratch.last.clear();
            scratch.last.extend(states[..width].iter().map(|word| !word));
            scratch.last_numbers.clear();
            scratch.last_numbers.resize(nodes, 0);
        }
        scratch.changed.resize(nodes * count.div_ceil(TILE), 0);
        scratch.numbers.resize(nodes * (count + 1), 0);
        scratch.hashes.resize(count, 0);
    }

    /// Finds where nodes change, as many states at a time as stay in the fastest cache.
    fn find_changes(&self, states: &[u32], scratch: &mut Scratch) {
        let width = self.shape.width;
        let tiles = (states.len() / width).div_ceil(TILE);
        let mut before = &scratch.last[..];
        for (tile, here) in states.chunks(TILE * width).enumerate() {
            for (node, source) in self.shape.sources.iter().enumerate() {
                scratch.changed[node * tiles + tile] = match *source {
                    Source::Words { first, count } => CHANGES[count - 1](&before[first..], &here[first..], width),
                    Source::Nodes { left, right } => {
                        scratch.changed[left * tiles + tile] | scratch.changed[right * tiles + tile]
                    }
                };
            }
            before = &here[here.len() - width..];
        }
    }

    /// Numbers the vectors of one node where they change, in a block of `count` states.
    fn number(&self, node: usize, states: &[u32], count: usize, scratch: &mut Scratch) -> Result<(), Full> {
        let table = &self.tables[node];
        let tiles = count.div_ceil(TILE);
        let Scratch { changed, numbers, hashes, last_numbers, .. } = scratch;
        let (numbers_before, numbers) = numbers.split_at_mut(node * (count + 1));
        numbers[0] = last_numbers[node];
        let changed_here = &changed[node * tiles..][..tiles];
        if changed_here.iter().all(|&bits| bits == 0) {
            return Ok(());
        }
        let done = match self.shape.sources[node] {
            Source::Words { first, count } => {
                let number_words = NUMBER_WORDS[count - 1];
                number_words(table, &states[first..], self.shape.width, changed_here, hashes, &mut numbers[1..])?
            }
            Source::Nodes { left, right } => {
                let cursor = |node: usize| Cursor::new(node, count, changed, numbers_before);
                let (mut left, mut right) = (cursor(left), cursor(right));
                let vector = move |state: usize| [left.number(state), right.number(state)];
                number_all(table, changed_here, vector, hashes, &mut numbers[1..])?
            }
        };
        last_numbers[node] = numbers[done];
        Ok(())
    }
}

/// A number for a tree, or for what becomes of it when numbers of its nodes stand for others.
fn next_id() -> u64 {
    static TREES: AtomicU64 = AtomicU64::new(1);
    TREES.fetch_add(1, Ordering::Relaxed)
}

/// The key of a root of three numbers one of which is too large for that.
#[cold]
fn key_beyond([left, middle, right]: [u32; 3], beyond: &Intern) -> Result<u64, Full> {
    let vector = [middle, right];
    let (pair, _) = beyond.intern(&vector, hash::words(&vector))?;
    if pair < root::MOST_PAIRS { Ok(root::key_with_pair(left, pair)) } else { Err(Full) }
}

#[inline(always)]
fn pair(left: u32, right: u32) -> u64 {
    (left as u64) << 32 | right as u64
}

/// Reads the numbers of a node, state by state; states at which it does not change may be left out.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    changed: &'a [u64],
    numbers: &'a [u32],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(node: usize, count: usize, changed: &'a [u64], numbers: &'a [u32]) -> Cursor<'a> {
        let tiles = count.div_ceil(TILE);
        let numbers = &numbers[node * (count + 1)..][..count + 1];
        Cursor { changed: &changed[node * tiles..][..tiles], numbers, at: 0 }
    }

    #[inline(always)]
    fn number(&mut self, state: usize) -> u32 {
        self.at += (self.changed[state / TILE] >> (state % TILE) & 1) as usize;
        self.numbers[self.at]
    }
}

/// For each state a bit: do its first words differ from those of the state before?
type Changes = fn(before: &[u32], here: &[u32], width: usize) -> u64;
const CHANGES: [Changes; WIDEST] =
    [changes::<1>, changes::<2>, changes::<3>, changes::<4>, changes::<5>, changes::<6>, changes::<7>, changes::<8>];

fn changes<const N: usize>(before: &[u32], here: &[u32], width: usize) -> u64 {
    let mut bits = 0;
    let mut last = before;
    for (index, now) in here.chunks(width).enumerate() {
        bits |= ((words::<N>(now) != words::<N>(last)) as u64) << index;
        last = now;
    }
    bits
}

#[inline(always)]
fn words<const N: usize>(state: &[u32]) -> [u32; N] {
    *state.first_chunk().expect("no leaf reaches beyond the state")
}

/// Numbers the first words of states.
type NumberWords = fn(&Intern, &[u32], usize, &[u64], &mut [u64], &mut [u32]) -> Result<usize, Full>;
const NUMBER_WORDS: [NumberWords; WIDEST] = [
    number_words::<1>,
    number_words::<2>,
    number_words::<3>,
    number_words::<4>,
    number_words::<5>,
    number_words::<6>,
    number_words::<7>,
    number_words::<8>,
];

fn number_words<const N: usize>(
    table: &Intern,
    states: &[u32],
    width: usize,
    changed: &[u64],
    hashes: &mut [u64],
    out: &mut [u32],
) -> Result<usize, Full> {
    number_all(table, changed, |state| words::<N>(&states[state * width..]), hashes, out)
}

/// Numbers the vectors of the states that are `changed`, and says how many those are. With a large table first all
/// are hashed, asking for the lines they need.
#[inline(always)]
fn number_all<const N: usize>(
    table: &Intern,
    changed: &[u64],
    mut vector: impl FnMut(usize) -> [u32; N] + Clone,
    hashes: &mut [u64],
    out: &mut [u32],
) -> Result<usize, Full> {
    let mut done = 0;
    if table.bytes() <= NEAR_BYTES {
        for_each(changed, |state| {
            let vector = vector(state);
            out[done] = table.intern(&vector, hash::words(&vector))?.0;
            done += 1;
            Ok(())
        })?;
        return Ok(done);
    }
    let mut vector_ahead = vector.clone();
    for_each(changed, |state| {
        hashes[done] = hash::words(&vector_ahead(state));
        table.prefetch(hashes[done]);
        done += 1;
        Ok(())
    })?;
    done = 0;
    for_each(changed, |state| {
        out[done] = table.intern(&vector(state), hashes[done])?.0;
        done += 1;
        Ok(())
    })?;
    Ok(done)
}

/// Visits the states whose bits are set.
#[inline(always)]
fn for_each(changed: &[u64], mut visit: impl FnMut(usize) -> Result<(), Full>) -> Result<(), Full> {
    for (tile, &bits) in changed.iter().enumerate() {
        let mut bits = bits;
        while bits != 0 {
            visit(tile * TILE + bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use plimsoll_ir::random::Draw;
    use std::collections::HashMap;

    /// Encodes random blocks, most of whose states differ little from the one before; roots must tell them apart.
    fn check(shape: Shape, draw: &mut Draw) {
        let mut next = |below: usize| draw.below(below as u64) as usize;
        let width = shape.width;
        let mut tree = Tree::new(shape, &Budget::new(1 << 30).grant("tree", 1 << 30)).unwrap();
        let (mut scratch, mut roots, mut twin) = (Scratch::default(), HashMap::new(), HashMap::new());
        let mut state = vec![0; width];
        for count in [1, 0, 63, 64, 65, 2, 150, 1, 1] {
            let mut states = Vec::new();
            for _ in 0..count {
                for _ in 0..next(3) {
                    state[next(width)] = next(3) as u32;
                }
                if next(40) == 0 {
                    state.fill_with(|| next(3) as u32);
                }
                states.extend_from_slice(&state);
            }
            tree.reserve(count).unwrap();
            tree.encode(&states, &mut scratch).unwrap();
            assert_eq!(scratch.keys.len(), count);
            for (state, &root) in states.chunks(width).zip(&scratch.keys) {
                assert_eq!(roots.entry(root).or_insert_with(|| state.to_vec()), state, "width {width}");
                assert_eq!(*twin.entry(state.to_vec()).or_insert(root), root, "width {width}");
            }
        }
        let (mut decoder, mut decoded) = (tree.into_decoder(), Vec::new());
        for (root, state) in roots {
            decoded.clear();
            decoder.decode(root, &mut decoded);
            assert_eq!(decoded, state, "width {width}");
        }
    }

    #[test]
    fn roots_are_equal_exactly_when_states_are() {
        let mut draw = Draw::new(0);
        for width in 1..=130 {
            Shape::of_every_kind(width).into_iter().for_each(|shape| check(shape, &mut draw));
        }
    }

    /// Numbers that are too large for a key of three come back all the same.
    #[test]
    fn large_numbers_of_a_root_of_three_are_paired() {
        let mut beyond = Intern::new(2, Grant::unlimited()).unwrap();
        beyond.reserve(10).unwrap();
        let roots = [[1, 1 << 21, 2], [u32::MAX - 2, 0, 7], [1, 2, 1 << 30]];
        let keys = roots.map(|root| key_beyond(root, &beyond).unwrap());
        assert_eq!(roots.map(root::key_of_three), [None; 3]);
        assert_eq!(roots.map(|root| key_beyond(root, &beyond).unwrap()), keys);
        assert!(keys.iter().all(|key| key & 1 == 1) && beyond.len() == 3);
        for (root, key) in roots.into_iter().zip(keys) {
            let [left, pair] = root::three_numbers(key).unwrap_err();
            let vector = beyond.iter().find(|(number, _)| *number == pair).unwrap().1;
            assert_eq!([left, vector[0].load(Ordering::Relaxed), vector[1].load(Ordering::Relaxed)], root);
        }
    }

    #[test]
    fn buffers_may_pass_from_one_tree_to_another() {
        let grant = Grant::unlimited();
        let mut trees = [6, 6, 7].map(|width| Tree::new(Shape::even(width), &grant).unwrap());
        let mut scratch = Scratch::default();
        trees.iter_mut().for_each(|tree| tree.reserve(10).unwrap());
        trees[0].encode(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2], &mut scratch).unwrap();
        trees[2].encode(&[2; 7], &mut scratch).unwrap();
        trees[1].encode(&[2; 6], &mut scratch).unwrap();
        assert_eq!((&scratch.keys[..], trees[1].nodes()), (&[root::key(0)][..], 2));
        trees[0].encode(&[2; 6], &mut scratch).unwrap();
        assert_eq!(scratch.keys, [root::key(pair(1, 1))]);
    }
}
