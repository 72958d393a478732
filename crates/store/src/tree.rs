//! Tree compression: a state becomes two 32-bit numbers.
//!
//! The words of a state are cut into groups of up to four; a group's distinct values are numbered. The
//! numbers are paired, and distinct pairs are numbered, level by level, until two numbers are left: the
//! root, which stands for the state. Parts of states repeat, so the node tables stay small beside the set
//! of roots. Injective: equal roots mean equal states. After Laarman, van de Pol and Weber (SPIN 2011);
//! groups wider than a pair cut the lookups per state, and one table per position keeps the small ones in
//! the processor's caches. Blocks of states pass through one position after the other, prefetching.

use crate::budget::Grant;
use crate::hash;
use crate::intern::Intern;
use crate::roots::Full;

const GROUP: usize = 4;
/// With this many nodes or more, most of them are the same in one state and the next.
const REPEATING_NODES: usize = 5;
/// A table this small stays in the processor's caches by itself.
const NEAR_BYTES: usize = 512 << 10;

/// Where a node finds its words: in the state, or among the numbers of two earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Words { first: usize, count: usize },
    Nodes { left: usize, right: usize },
}

/// The node tables of a tree over states of fixed width.
#[derive(Debug)]
pub struct Tree {
    width: usize,
    sources: Vec<Source>,
    /// One table per node.
    tables: Vec<Intern>,
    /// The two nodes under the root; none if the state is a single word and its own root.
    root: Option<(usize, usize)>,
}

/// Buffers for encoding one block; one per worker.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Numbers of each node for each state of the block: node-major.
    numbers: Vec<u32>,
    hashes: Vec<u64>,
    pub roots: Vec<u64>,
}

impl Tree {
    pub fn new(width: usize, grant: &Grant) -> Result<Tree, Full> {
        assert!(width > 0);
        let (sources, root) = shape(width);
        let tables = sources
            .iter()
            .map(|source| match *source {
                Source::Words { count, .. } => Intern::new(count, grant.clone()),
                Source::Nodes { .. } => Intern::new(2, grant.clone()),
            })
            .collect::<Result<_, Full>>()?;
        Ok(Tree { width, sources, tables, root })
    }

    /// Words per state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Makes sure that `count` more states can be encoded.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        self.tables.iter_mut().try_for_each(|table| table.reserve(count))
    }

    /// Can `count` more states be encoded as it is?
    pub fn has_room(&self, count: usize) -> bool {
        self.tables.iter().all(|table| table.has_room(count))
    }

    /// After another `count` states, both numbers of every root are below this.
    pub fn bound(&self, count: usize) -> u32 {
        let Some((left, right)) = self.root else { return u32::MAX };
        let most = self.tables[left].len().max(self.tables[right].len()) + count;
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    pub fn bytes(&self) -> usize {
        self.tables.iter().map(Intern::bytes).sum()
    }

    /// Inner nodes stored.
    pub fn nodes(&self) -> usize {
        self.tables.iter().map(Intern::len).sum()
    }

    /// Computes the roots of all `states` (end to end) into `scratch.roots`.
    pub fn encode(&self, states: &[u32], scratch: &mut Scratch) -> Result<(), Full> {
        let Scratch { numbers, hashes, roots } = scratch;
        let count = states.len() / self.width;
        roots.clear();
        let Some((left, right)) = self.root else {
            roots.extend(states.iter().map(|&word| word as u64));
            return Ok(());
        };
        numbers.resize(self.sources.len() * count, 0);
        hashes.resize(count, 0);
        for (node, source) in self.sources.iter().enumerate() {
            let (done, rest) = numbers.split_at_mut(node * count);
            let out = &mut rest[..count];
            let table = &self.tables[node];
            let repeating = self.sources.len() >= REPEATING_NODES;
            match *source {
                Source::Words { first, count: group } => {
                    let word = |state: usize, index: usize| states[state * self.width + first + index];
                    match group {
                        1 => number_all(table, repeating, |i| [word(i, 0)], hashes, out)?,
                        2 => number_all(table, repeating, |i| [0, 1].map(|index| word(i, index)), hashes, out)?,
                        3 => number_all(table, repeating, |i| [0, 1, 2].map(|index| word(i, index)), hashes, out)?,
                        _ => number_all(table, repeating, |i| [0, 1, 2, 3].map(|index| word(i, index)), hashes, out)?,
                    }
                }
                Source::Nodes { left, right } => {
                    let (lefts, rights) = (&done[left * count..][..count], &done[right * count..][..count]);
                    number_all(table, repeating, |i| [lefts[i], rights[i]], hashes, out)?;
                }
            }
        }
        let lefts = numbers[left * count..][..count].iter();
        roots.extend(lefts.zip(&numbers[right * count..][..count]).map(|(&left, &right)| pair(left, right)));
        Ok(())
    }
}

#[inline(always)]
fn pair(left: u32, right: u32) -> u64 {
    (left as u64) << 32 | right as u64
}

/// Numbers a block of vectors. In a large table first all are hashed, asking for the lines they need. Where
/// vectors are `repeating`, one equal to the one before is not looked up again.
#[inline(always)]
fn number_all<const N: usize>(
    table: &Intern,
    repeating: bool,
    vector: impl Fn(usize) -> [u32; N],
    hashes: &mut [u64],
    out: &mut [u32],
) -> Result<(), Full> {
    let near = table.bytes() <= NEAR_BYTES;
    if !near {
        for (index, hash) in hashes.iter_mut().enumerate() {
            let vector_here = vector(index);
            *hash = hash::words(&vector_here);
            table.prefetch(*hash);
        }
    }
    let (mut last, mut last_number) = ([0; N], u32::MAX);
    for index in 0..out.len() {
        let here = vector(index);
        if !(repeating && last_number != u32::MAX && here == last) {
            let hash = if near { hash::words(&here) } else { hashes[index] };
            last_number = table.intern(&here, hash)?.0;
            last = here;
        }
        out[index] = last_number;
    }
    Ok(())
}

/// Cuts `width` words into groups and pairs them up to two nodes, children before parents.
fn shape(width: usize) -> (Vec<Source>, Option<(usize, usize)>) {
    if width == 1 {
        return (Vec::new(), None);
    }
    let groups = width.div_ceil(GROUP).max(2);
    let bound = |group: usize| group * width / groups;
    let mut sources: Vec<Source> = (0..groups)
        .map(|group| Source::Words { first: bound(group), count: bound(group + 1) - bound(group) })
        .collect();
    let mut level: Vec<usize> = (0..groups).collect();
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
    (sources, Some((level[0], level[1])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn roots_are_equal_exactly_when_states_are() {
        let mut random = 88172645463325252u64;
        for width in 1..=30 {
            let mut tree = Tree::new(width, &Grant::unlimited()).unwrap();
            let mut scratch = Scratch::default();
            let mut seen: HashMap<u64, Vec<u32>> = HashMap::new();
            for _ in 0..40 {
                let mut states = Vec::new();
                for _ in 0..25 * width {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    states.push((random >> 20) as u32 % 3);
                }
                tree.reserve(25).unwrap();
                tree.encode(&states, &mut scratch).unwrap();
                for (state, &root) in states.chunks(width).zip(&scratch.roots) {
                    let known = seen.entry(root).or_insert_with(|| state.to_vec());
                    assert_eq!(known, state);
                }
            }
            let distinct: std::collections::HashSet<_> = seen.values().collect();
            assert_eq!(distinct.len(), seen.len(), "width {width}: one state with two roots");
        }
    }
}
