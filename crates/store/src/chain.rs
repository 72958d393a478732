//! The store: a codec and a chain of tiers.
//!
//! A state is encoded, then offered to tier 0, which admits everything and keeps it in RAM. What a tier
//! gives up is offered to the next; what the last gives up is forgotten. A chain is either one exact tier,
//! which gives up nothing and answers "fresh" once for each state, or a chain of caches (see
//! [`crate::cache`]), which may answer "fresh" again for a state it has forgotten. Which of them is decided once
//! per block. With the tree codec a cache holds roots; nodes of forgotten states stay, so the tree's tables
//! are bounded by the grant and not by the capacity.

use crate::budget::Grant;
use crate::cache::{Answer, Cache, Health, Held, Note, Place, Rule, Spec, Ways};
use crate::hash;
use crate::intern::Intern;
use crate::roots::{Full, Roots};
use crate::tree::{self, Tree};

/// Words of a root.
const ROOT_WORDS: usize = 2;

/// How states are represented in the store. Both are injective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// The words as they are.
    Plain,
    /// Tree compression.
    Tree,
}

/// A set of states, filled block by block.
#[derive(Debug)]
pub struct Chain {
    width: usize,
    tier: Tier,
}

/// The exact tier in RAM, by codec.
#[derive(Debug)]
enum Tier {
    Plain(Intern),
    Tree {
        tree: Tree,
        roots: Roots,
    },
    /// Caches of states, or of roots where there is a tree.
    Cache {
        tree: Option<Tree>,
        cache: Box<Cache>,
    },
    /// The same where nothing has to be pinned.
    Ways {
        tree: Option<Tree>,
        ways: Box<Ways>,
    },
}

/// The successors of a block of states.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The states that were expanded, end to end; none for initial states.
    pub parents: &'a [u32],
    /// For each of them its first successor; one more at the end.
    pub firsts: &'a [u32],
    /// All successors, end to end.
    pub states: &'a [u32],
    /// Positions in `states`, in order, that hold no successor but a state that is known.
    pub skip: &'a [u32],
    /// What kind of step led to each successor; empty unless the store wants to know.
    pub kinds: &'a [u8],
    /// Steps from an initial state to the successors.
    pub depth: u32,
}

/// Buffers for inserting; one per worker.
#[derive(Debug, Default)]
pub struct Scratch {
    tree: tree::Scratch,
    hashes: Vec<u64>,
    keys: Vec<u32>,
    parent_keys: Vec<u32>,
}

/// What the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub states: u64,
    pub bytes: u64,
    /// Shared parts of states (nodes of the tree).
    pub parts: u64,
}

impl Chain {
    pub fn new(codec: Codec, width: usize, grant: &Grant) -> Result<Chain, Full> {
        let tier = match codec {
            Codec::Plain => Tier::Plain(Intern::new(width, grant.clone())?),
            Codec::Tree => Tier::Tree { tree: Tree::new(width, grant)?, roots: Roots::new(grant.clone())? },
        };
        Ok(Chain { width, tier })
    }

    /// A chain of caches for at most `capacity` states, which can pin states if `pins`.
    pub fn with_cache(
        codec: Codec,
        width: usize,
        spec: &Spec,
        pins: bool,
        capacity: usize,
        grant: &Grant,
    ) -> Result<Chain, Full> {
        let tree = match codec {
            Codec::Plain => None,
            Codec::Tree => Some(Tree::new(width, grant)?),
        };
        let key_words = if tree.is_some() { ROOT_WORDS } else { width };
        let tier = match spec.alone().filter(|_| !pins) {
            Some(rule) => Tier::Ways { tree, ways: Box::new(Ways::new(rule, key_words, capacity, grant)?) },
            None => Tier::Cache { tree, cache: Box::new(Cache::new(spec, key_words, capacity, grant)?) },
        };
        Ok(Chain { width, tier })
    }

    /// Bytes that a cached state takes in tables that do not depend on what is shared.
    pub fn bytes_per_cached(codec: Codec, width: usize, spec: &Spec, pins: bool) -> usize {
        let key_words = if codec == Codec::Tree { ROOT_WORDS } else { width };
        match spec.alone().filter(|_| !pins) {
            Some(_) => Ways::bytes_per_entry(key_words),
            None => Cache::bytes_per_entry(key_words),
        }
    }

    /// Makes sure that a block of `count` states can be inserted. Call it before every block, with no
    /// insertion under way: tables grow here and nowhere else.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        match &mut self.tier {
            Tier::Plain(table) => table.reserve(count),
            Tier::Tree { tree, roots } => {
                tree.reserve(count)?;
                roots.reserve(count, tree.bound(count))
            }
            Tier::Cache { tree, .. } | Tier::Ways { tree, .. } => {
                tree.as_mut().map_or(Ok(()), |tree| tree.reserve(count))
            }
        }
    }

    /// Inserts a block of states (end to end) and puts into `fresh` the positions of those not held
    /// before; of equal states in one block the first is fresh. On `Full` nothing is lost, but `fresh`
    /// covers only a part of the block.
    pub fn insert(&self, states: &[u32], scratch: &mut Scratch, fresh: &mut Vec<u32>) -> Result<(), Full> {
        debug_assert_eq!(states.len() % self.width, 0);
        fresh.clear();
        let Scratch { tree: nodes, hashes, .. } = scratch;
        hashes.clear();
        match &self.tier {
            Tier::Cache { .. } | Tier::Ways { .. } => unreachable!("caches are filled by `insert_block` and `enter`"),
            Tier::Plain(table) => {
                for state in states.chunks_exact(self.width) {
                    let hash = hash::words(state);
                    table.prefetch(hash);
                    hashes.push(hash);
                }
                for (position, (state, &hash)) in states.chunks_exact(self.width).zip(hashes.iter()).enumerate() {
                    if table.intern(state, hash)?.1 {
                        fresh.push(position as u32);
                    }
                }
                Ok(())
            }
            Tier::Tree { tree, roots } => {
                tree.encode(states, nodes)?;
                for &root in &nodes.roots {
                    let mixed = Roots::mix(root);
                    roots.prefetch(mixed);
                    hashes.push(mixed);
                }
                roots.insert_all(&nodes.roots, hashes, fresh)
            }
        }
    }

    /// Like [`Chain::insert`], for any kind of tier. Call [`Chain::reserve`] before.
    pub fn insert_block(&mut self, block: Block, scratch: &mut Scratch, fresh: &mut Vec<u32>) -> Result<(), Full> {
        let width = self.width;
        match &mut self.tier {
            Tier::Cache { tree, cache } => {
                fresh.clear();
                insert_cached(&mut **cache, tree.as_mut(), width, block, scratch, fresh)
            }
            Tier::Ways { tree, ways } => {
                fresh.clear();
                insert_cached(&mut **ways, tree.as_mut(), width, block, scratch, fresh)
            }
            _ => self.insert(block.states, scratch, fresh),
        }
    }

    /// Inserts one state. In a cache a new state is pinned until [`Chain::unpin`] is called for its place.
    pub fn enter(&mut self, state: &[u32], note: Note, scratch: &mut Scratch, fresh: &mut Vec<u32>) -> Answer {
        if self.reserve(1).is_err() {
            return Answer::Full;
        }
        let Tier::Cache { tree, cache } = &mut self.tier else {
            return match self.insert(state, scratch, fresh) {
                Err(Full) => Answer::Full,
                Ok(()) if fresh.is_empty() => Answer::Known,
                Ok(()) => Answer::New(Place::NOWHERE),
            };
        };
        let Ok(keys) = keys(tree.as_mut(), state, &mut scratch.tree, &mut scratch.keys) else { return Answer::Full };
        cache.insert(keys, hash::words(keys), note, true, Place::NOWHERE)
    }

    /// Takes back one pin.
    pub fn unpin(&mut self, place: Place) {
        if let Tier::Cache { cache, .. } = &mut self.tier {
            cache.unpin(place);
        }
    }

    /// Tells a cache how many successors a pinned state has.
    pub fn count_successors(&mut self, place: Place, successors: usize) {
        if let Tier::Cache { cache, .. } = &mut self.tier {
            cache.count_successors(place, successors);
        }
    }

    /// Does the store keep notes, and may it forget?
    pub fn is_cache(&self) -> bool {
        matches!(self.tier, Tier::Cache { .. } | Tier::Ways { .. })
    }

    /// Does some rule depend on the kinds of steps?
    pub fn wants_kinds(&self) -> bool {
        match &self.tier {
            Tier::Cache { cache, .. } => cache.spec().tiers().iter().any(|tier| tier.0 == Rule::Kind),
            Tier::Ways { ways, .. } => ways.rule() == Rule::Kind,
            _ => false,
        }
    }

    /// What a cache knows about its work; none for an exact tier.
    pub fn health(&self) -> Option<Health> {
        match &self.tier {
            Tier::Cache { cache, .. } => Some(cache.health()),
            Tier::Ways { ways, .. } => Some(ways.health()),
            _ => None,
        }
    }

    pub fn usage(&self) -> Usage {
        let cached = |states: usize, bytes: usize, tree: &Option<Tree>| Usage {
            states: states as u64,
            bytes: (bytes + tree.as_ref().map_or(0, Tree::bytes)) as u64,
            parts: tree.as_ref().map_or(0, Tree::nodes) as u64,
        };
        match &self.tier {
            Tier::Cache { tree, cache } => cached(cache.len(), cache.bytes(), tree),
            Tier::Ways { tree, ways } => cached(ways.len(), ways.bytes(), tree),
            Tier::Plain(table) => Usage { states: table.len() as u64, bytes: table.bytes() as u64, parts: 0 },
            Tier::Tree { tree, roots } => Usage {
                states: roots.len() as u64,
                bytes: (tree.bytes() + roots.bytes()) as u64,
                parts: tree.nodes() as u64,
            },
        }
    }
}

/// The keys of states: the states themselves, or their roots.
fn keys<'a>(
    tree: Option<&mut Tree>,
    states: &'a [u32],
    nodes: &mut tree::Scratch,
    keys: &'a mut Vec<u32>,
) -> Result<&'a [u32], Full> {
    let Some(tree) = tree else { return Ok(states) };
    tree.encode(states, nodes)?;
    keys.clear();
    keys.extend(nodes.roots.iter().flat_map(|root| [*root as u32, (root >> 32) as u32]));
    Ok(keys)
}

/// Inserts a block into a cache: first all keys and hashes, asking for their lines, then one state after the
/// other, parent by parent.
fn insert_cached<C: Held>(
    cache: &mut C,
    mut tree: Option<&mut Tree>,
    width: usize,
    block: Block,
    scratch: &mut Scratch,
    fresh: &mut Vec<u32>,
) -> Result<(), Full> {
    let Scratch { tree: nodes, hashes, keys: state_keys, parent_keys } = scratch;
    let key_words = if tree.is_some() { ROOT_WORDS } else { width };
    let wants_parents = cache.wants_parents() && !block.parents.is_empty();
    let parents = match wants_parents {
        true => keys(tree.as_deref_mut(), block.parents, nodes, parent_keys)?,
        false => &[],
    };
    let states = keys(tree, block.states, nodes, state_keys)?;
    hashes.clear();
    for key in states.chunks_exact(key_words) {
        let hash = hash::words(key);
        cache.prefetch(hash);
        hashes.push(hash);
    }
    let mut skip = block.skip.iter().peekable();
    for (index, bounds) in block.firsts.windows(2).enumerate() {
        let successors = (bounds[1] - bounds[0]) as usize;
        let mut parent = match parents.get(index * key_words..(index + 1) * key_words) {
            Some(key) => cache.find(key, hash::words(key)),
            None => None,
        };
        if let (Some(place), false) = (parent, cache.covers()) {
            // Only with `cover` does it stay where it is while its successors are inserted.
            cache.count_successors(place, successors);
            parent = None;
        }
        for position in bounds[0]..bounds[1] {
            if skip.next_if_eq(&&position).is_some() {
                continue;
            }
            let key = &states[position as usize * key_words..][..key_words];
            let kind = block.kinds.get(position as usize).copied().unwrap_or(0);
            let note = Note { depth: block.depth, kind };
            let hash = hashes[position as usize];
            match cache.insert(key, hash, note, false, parent.unwrap_or(Place::NOWHERE)) {
                Answer::New(_) => fresh.push(position),
                Answer::Known => {}
                Answer::Full => return Err(Full),
            }
        }
        if let Some(parent) = parent {
            cache.expanded(parent, successors);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use std::collections::HashSet;

    #[test]
    fn every_codec_agrees_with_a_hash_set() {
        for codec in [Codec::Plain, Codec::Tree] {
            for width in [1, 2, 3, 6, 11, 26] {
                let mut chain = Chain::new(codec, width, &Grant::unlimited()).unwrap();
                let (mut scratch, mut fresh, mut twin) = (Scratch::default(), Vec::new(), HashSet::new());
                let mut random = 88172645463325252u64;
                for _ in 0..300 {
                    let states: Vec<u32> = (0..40 * width)
                        .map(|_| {
                            random ^= random << 13;
                            random ^= random >> 7;
                            random ^= random << 17;
                            (random >> 20) as u32 % 3
                        })
                        .collect();
                    chain.reserve(40).unwrap();
                    chain.insert(&states, &mut scratch, &mut fresh).unwrap();
                    let states = states.chunks(width).enumerate();
                    let expected: Vec<u32> = states
                        .filter(|(_, state)| twin.insert(state.to_vec()))
                        .map(|(position, _)| position as u32)
                        .collect();
                    assert_eq!(fresh, expected, "{codec:?}, width {width}");
                }
                assert_eq!(chain.usage().states, twin.len() as u64);
            }
        }
    }

    #[test]
    fn a_full_store_says_so_and_stays_within_its_grant() {
        for codec in [Codec::Plain, Codec::Tree] {
            let budget = Budget::new(1 << 20);
            let mut chain = Chain::new(codec, 6, &budget.grant("store", 1 << 20)).unwrap();
            let (mut scratch, mut fresh) = (Scratch::default(), Vec::new());
            let mut count = 0u32;
            while chain.reserve(1).is_ok() {
                chain.insert(&[count, 0, count % 7, 0, count / 100, 1], &mut scratch, &mut fresh).unwrap();
                assert_eq!(fresh, [0]);
                count += 1;
            }
            assert!(count > 10_000 && budget.used_bytes() <= 1 << 20);
            assert_eq!(chain.usage().states, count as u64);
        }
    }
}
