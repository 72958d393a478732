//! The store: a codec and a chain of tiers.
//!
//! A state is encoded, then offered to tier 0, which admits everything and keeps it in RAM. What a tier
//! gives up is offered to the next; what the last gives up is forgotten. Today there is one tier that
//! gives up nothing, so the store is exact: [`Chain::insert`] answers "fresh" once for each state.

use crate::budget::Grant;
use crate::hash;
use crate::intern::Intern;
use crate::roots::{Full, Roots};
use crate::tree::{self, Tree};

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
    Tree { tree: Tree, roots: Roots },
}

/// Buffers for inserting; one per worker.
#[derive(Debug, Default)]
pub struct Scratch {
    tree: tree::Scratch,
    hashes: Vec<u64>,
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

    /// Makes sure that a block of `count` states can be inserted. Call it before every block, with no
    /// insertion under way: tables grow here and nowhere else.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        match &mut self.tier {
            Tier::Plain(table) => table.reserve(count),
            Tier::Tree { tree, roots } => {
                tree.reserve(count)?;
                roots.reserve(count, tree.bound(count))
            }
        }
    }

    /// Inserts a block of states (end to end) and puts into `fresh` the positions of those not held
    /// before; of equal states in one block the first is fresh. On `Full` nothing is lost, but `fresh`
    /// covers only a part of the block.
    pub fn insert(&self, states: &[u32], scratch: &mut Scratch, fresh: &mut Vec<u32>) -> Result<(), Full> {
        debug_assert_eq!(states.len() % self.width, 0);
        fresh.clear();
        let Scratch { tree: nodes, hashes } = scratch;
        hashes.clear();
        match &self.tier {
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

    pub fn usage(&self) -> Usage {
        match &self.tier {
            Tier::Plain(table) => Usage { states: table.len() as u64, bytes: table.bytes() as u64, parts: 0 },
            Tier::Tree { tree, roots } => Usage {
                states: roots.len() as u64,
                bytes: (tree.bytes() + roots.bytes()) as u64,
                parts: tree.nodes() as u64,
            },
        }
    }
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
