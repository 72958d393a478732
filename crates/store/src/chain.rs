//! The store: a codec and a chain of tiers.
//!
//! A state is encoded, then offered to tier 0, which admits everything and keeps it in RAM. What a tier
//! gives up is offered to the next; what the last gives up is forgotten. A chain is either one exact tier,
//! which gives up nothing and answers "fresh" once for each state, or a chain of caches (see
//! [`crate::cache`]), which may answer "fresh" again for a state it has forgotten. Which of them is decided once
//! per block. With the tree codec a cache holds roots; nodes of forgotten states stay, so the tree's tables
//! are bounded by the grant and not by the capacity.

use crate::budget::Grant;
use crate::cache::{Answer, Cache, Hashed, Held, KeyForm, Note, Place, Spec, Ways};
use crate::codec::{Codec, Coder};
use crate::intern::Intern;
use crate::packed::Packed;
use crate::rooted::Rooted;
use crate::roots::Full;
use crate::tiers::{Block, Scratch, Tiers};

/// A set of states, filled block by block. Its halves can be used apart: several workers may encode blocks at once,
/// which are inserted one after the other.
#[derive(Debug)]
pub struct Chain {
    pub coder: Coder,
    pub tiers: Tiers,
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
    /// A chain of one exact tier, for states whose words use these bits.
    pub fn new(codec: Codec, used: &[u32], grant: &Grant) -> Result<Chain, Full> {
        let coder = Coder::new(codec, used, grant)?;
        let tiers = match &coder {
            Coder::Plain { width } => Tiers::Vectors(Intern::new(*width, grant.clone())?),
            Coder::Packed(packing) => Tiers::Packed(Packed::new(packing.key_bits(), grant.clone())?),
            Coder::Tree(tree) => Tiers::Roots(Rooted::new(tree, grant)?),
        };
        Ok(Chain { coder, tiers })
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
        assert!(codec != Codec::Packed, "caches hold words");
        let coder = Coder::new(codec, &vec![u32::MAX; width], grant)?;
        let form = key_form(codec, width);
        let tiers = match spec.alone().filter(|_| !pins) {
            Some(rule) => Tiers::Ways(Box::new(Ways::new(rule, form, capacity, grant)?)),
            None => Tiers::Cache(Box::new(Cache::new(spec, form, capacity, grant)?)),
        };
        Ok(Chain { coder, tiers })
    }

    /// Bytes that a cached state takes in tables that do not depend on what is shared.
    pub fn bytes_per_cached(codec: Codec, width: usize, spec: &Spec, pins: bool) -> usize {
        let form = key_form(codec, width);
        match spec.alone().filter(|_| !pins) {
            Some(_) => Ways::bytes_per_entry(form),
            None => Cache::bytes_per_entry(spec, form),
        }
    }

    /// Makes sure that `count` more states find room.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        self.reserve_keys(count)?;
        self.tiers.reserve(count, self.coder.bound(count))
    }

    /// Makes sure that `count` more states can be encoded, also at the cost of never learning how to do it better.
    fn reserve_keys(&mut self, count: usize) -> Result<(), Full> {
        let reserved = self.coder.reserve(count);
        if reserved.is_err() && self.tiers.forget_sample() { self.coder.reserve(count) } else { reserved }
    }

    /// Inserts a block and puts into `fresh` the positions of states not held before; of equal states in one block
    /// the first is fresh. On `Full` nothing is lost, but `fresh` covers only a part of the block.
    pub fn insert(&mut self, block: Block, scratch: &mut Scratch, fresh: &mut Vec<u32>) -> Result<(), Full> {
        fresh.clear();
        self.tiers.teach(&mut self.coder);
        self.reserve_keys(block.len())?;
        scratch.encode(&self.coder, block, self.tiers.wants_parents())?;
        self.tiers.insert(block, scratch, fresh)
    }

    /// Inserts one state. In a cache a new state is pinned until [`Chain::unpin`] is called for its place.
    pub fn enter(&mut self, state: &[u32], note: Note, scratch: &mut Scratch, fresh: &mut Vec<u32>) -> Answer {
        let Tiers::Cache(cache) = &mut self.tiers else {
            return match self.insert(Block::of(state, &[0, 1]), scratch, fresh) {
                Err(Full) => Answer::Full,
                Ok(()) if fresh.is_empty() => Answer::Known,
                Ok(()) => Answer::New(Place::NOWHERE),
            };
        };
        let encoded = self.coder.reserve(1).and_then(|()| self.coder.encode(state, &mut scratch.keys));
        if encoded.is_err() {
            return Answer::Full;
        }
        let key = bytemuck::cast_slice(scratch.keys.words(state));
        let hash = cache.form().hash(key);
        cache.insert(key, hash, note, true, Place::NOWHERE)
    }

    /// Takes back one pin.
    pub fn unpin(&mut self, place: Place) {
        if let Tiers::Cache(cache) = &mut self.tiers {
            cache.unpin(place);
        }
    }

    /// Tells a cache how many successors a pinned state has.
    pub fn count_successors(&mut self, place: Place, successors: usize) {
        if let Tiers::Cache(cache) = &mut self.tiers {
            cache.count_successors(place, successors);
        }
    }

    /// Does the store keep notes, and may it forget?
    pub fn is_cache(&self) -> bool {
        self.tiers.health().is_some()
    }

    pub fn wants_kinds(&self) -> bool {
        self.tiers.wants_kinds()
    }

    pub fn usage(&self) -> Usage {
        let (states, bytes) = self.tiers.held();
        Usage { states: states as u64, bytes: (bytes + self.coder.bytes()) as u64, parts: self.coder.parts() as u64 }
    }
}

/// Keys of a cache as bytes.
fn key_form(codec: Codec, width: usize) -> KeyForm {
    KeyForm { bytes: codec.key_words(width) * 4, hashed: Hashed::Whole, told_bits: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use std::collections::HashSet;

    #[test]
    fn every_codec_agrees_with_a_hash_set() {
        for (codec, width) in [Codec::Plain, Codec::Packed, Codec::Tree]
            .into_iter()
            .flat_map(|codec| [1, 2, 3, 6, 11, 26].map(|width| (codec, width)))
        {
            {
                let mut chain = Chain::new(codec, &vec![3; width], &Grant::unlimited()).unwrap();
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
                    chain.insert(Block::of(&states, &[0, 40]), &mut scratch, &mut fresh).unwrap();
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
        for codec in [Codec::Plain, Codec::Packed, Codec::Tree] {
            let budget = Budget::new(1 << 20);
            let mut chain =
                Chain::new(codec, &[0xFF_FFFF, 0, 7, 0, 0xFF_FFFF, 1], &budget.grant("store", 1 << 20)).unwrap();
            let (mut scratch, mut fresh) = (Scratch::default(), Vec::new());
            let mut count = 0u32;
            while chain.reserve(1).is_ok() {
                let state = [count, 0, count % 7, 0, count / 100, 1];
                chain.insert(Block::of(&state, &[0, 1]), &mut scratch, &mut fresh).unwrap();
                assert_eq!(fresh, [0]);
                count += 1;
            }
            assert!(count > 10_000 && budget.used_bytes() <= 1 << 20);
            assert_eq!(chain.usage().states, count as u64);
        }
    }
}
