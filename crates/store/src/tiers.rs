//! Where encoded states are held: one exact tier in RAM, or a chain of caches.
//!
//! A block is inserted at once: first its lines in memory are asked for, then all states are looked up. One worker at
//! a time inserts, so which of equal states is the first does not depend on chance.

use crate::cache::{Answer, Cache, Health, Held, Note, Place, Rule, Ways};
use crate::codec::{Coder, Keys};
use crate::hash;
use crate::intern::Intern;
use crate::packed::Packed;
use crate::rooted::Rooted;
use crate::roots::Full;

#[derive(Debug)]
pub enum Tiers {
    /// One exact tier of whole states.
    Vectors(Intern),
    /// One exact tier of packed states.
    Packed(Packed),
    /// One exact tier of roots.
    Roots(Rooted),
    /// Caches of states or of roots.
    Cache(Box<Cache>),
    /// The same where nothing has to be pinned.
    Ways(Box<Ways>),
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

impl<'a> Block<'a> {
    /// States without parents and notes; `firsts` is zero and their number.
    pub fn of(states: &'a [u32], firsts: &'a [u32; 2]) -> Block<'a> {
        Block { parents: &[], firsts, states, skip: &[], kinds: &[], depth: 0 }
    }

    /// How many successors there are.
    pub fn len(&self) -> usize {
        self.firsts.last().map_or(0, |&end| end as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An encoded block, and buffers for inserting it; one per worker.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) keys: Keys,
    parent_keys: Keys,
    hashes: Vec<u64>,
}

impl Scratch {
    /// Computes the keys of a block, for which `coder` must have room.
    pub fn encode(&mut self, coder: &Coder, block: Block, wants_parents: bool) -> Result<(), Full> {
        if wants_parents {
            coder.encode(block.parents, &mut self.parent_keys)?;
        }
        coder.encode(block.states, &mut self.keys)
    }
}

impl Tiers {
    /// Makes sure that `count` more states fit; the numbers of roots are below `bound`.
    pub fn reserve(&mut self, count: usize, bound: u32) -> Result<(), Full> {
        match self {
            Tiers::Vectors(table) => table.reserve(count),
            Tiers::Packed(packed) => packed.reserve(count),
            Tiers::Roots(roots) => roots.reserve(count, bound),
            Tiers::Cache(_) | Tiers::Ways(_) => Ok(()),
        }
    }

    /// Inserts a block that was encoded into `scratch`: see [`crate::Chain::insert`].
    pub fn insert(&mut self, block: Block, scratch: &mut Scratch, fresh: &mut Vec<u32>) -> Result<(), Full> {
        fresh.clear();
        self.reserve(block.len(), scratch.keys.bound)?;
        let Scratch { keys, hashes, .. } = scratch;
        hashes.clear();
        match self {
            Tiers::Vectors(table) => {
                let states = || block.states.chunks_exact(table.stride());
                hashes.extend(states().map(hash::words).inspect(|&hash| table.prefetch(hash)));
                for (position, (state, &hash)) in states().zip(hashes.iter()).enumerate() {
                    if table.intern(state, hash)?.1 {
                        fresh.push(position as u32);
                    }
                }
                Ok(())
            }
            Tiers::Packed(packed) => {
                packed.insert_all(&keys.packed, fresh);
                Ok(())
            }
            Tiers::Roots(roots) => roots.insert(block.states, keys, hashes, fresh),
            Tiers::Cache(cache) => insert_cached(&mut **cache, block, scratch, fresh),
            Tiers::Ways(ways) => insert_cached(&mut **ways, block, scratch, fresh),
        }
    }

    /// Are the keys in `scratch` of the kind that is held? Those computed before the coder learned are not.
    pub fn accept(&self, scratch: &Scratch) -> bool {
        if let Tiers::Roots(roots) = self { roots.accept(&scratch.keys) } else { true }
    }

    /// Will [`Tiers::teach`] do something?
    pub fn can_teach(&self) -> bool {
        if let Tiers::Roots(roots) = self { roots.can_teach() } else { false }
    }

    /// Lets the coder learn from the states held so far, if they are enough: see [`Rooted::learn`].
    pub fn teach(&mut self, coder: &mut Coder) {
        if let (Tiers::Roots(roots), Coder::Tree(tree)) = (self, coder) {
            roots.learn(tree);
        }
    }

    /// Gives back memory that serves only to teach the coder, if there is any.
    pub fn forget_sample(&mut self) -> bool {
        if let Tiers::Roots(roots) = self { roots.forget_sample() } else { false }
    }

    /// Does some rule ask for expanded states too?
    pub fn wants_parents(&self) -> bool {
        match self {
            Tiers::Cache(cache) => cache.wants_parents(),
            Tiers::Ways(ways) => ways.wants_parents(),
            _ => false,
        }
    }

    /// Does some rule depend on the kinds of steps?
    pub fn wants_kinds(&self) -> bool {
        match self {
            Tiers::Cache(cache) => cache.spec().tiers().iter().any(|tier| tier.0 == Rule::Kind),
            Tiers::Ways(ways) => ways.rule() == Rule::Kind,
            _ => false,
        }
    }

    /// What a cache knows about its work; none for an exact tier.
    pub fn health(&self) -> Option<Health> {
        match self {
            Tiers::Cache(cache) => Some(cache.health()),
            Tiers::Ways(ways) => Some(ways.health()),
            _ => None,
        }
    }

    /// How many states are held, in how many bytes.
    pub fn held(&self) -> (usize, usize) {
        match self {
            Tiers::Vectors(table) => (table.len(), table.bytes()),
            Tiers::Packed(packed) => (packed.len(), packed.bytes()),
            Tiers::Roots(roots) => (roots.len(), roots.bytes()),
            Tiers::Cache(cache) => (cache.len(), cache.bytes()),
            Tiers::Ways(ways) => (ways.len(), ways.bytes()),
        }
    }
}

/// Inserts a block into a cache: first all keys and hashes, asking for their lines, then one state after the
/// other, parent by parent.
fn insert_cached<C: Held>(
    cache: &mut C,
    block: Block,
    scratch: &mut Scratch,
    fresh: &mut Vec<u32>,
) -> Result<(), Full> {
    let Scratch { keys, parent_keys, hashes } = scratch;
    let parents: &[u8] =
        bytemuck::cast_slice(if cache.wants_parents() { parent_keys.words(block.parents) } else { &[] });
    let states: &[u8] = bytemuck::cast_slice(keys.words(block.states));
    let form = cache.form();
    hashes.clear();
    for key in states.chunks_exact(form.bytes) {
        let hash = form.hash(key);
        cache.prefetch(hash);
        hashes.push(hash);
    }
    let mut skip = block.skip.iter().peekable();
    for (index, bounds) in block.firsts.windows(2).enumerate() {
        let successors = (bounds[1] - bounds[0]) as usize;
        let mut parent = match parents.get(index * form.bytes..(index + 1) * form.bytes) {
            Some(key) => cache.find(key, form.hash(key)),
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
            let key = &states[position as usize * form.bytes..][..form.bytes];
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
