//! Where states are forgotten, so are the nodes of the tree that only they had ([`crate::tree`]).
//!
//! Whatever is held tells its root, and with it the nodes that stay. That takes about as long as going through the tables once, so it
//! waits until a good part of the states was forgotten and there is a good part more nodes than were left the last time; or until there
//! is no memory for another. **No key may be under way meanwhile**, for one that is not held may soon be that of another state: so it is
//! done between two parts of a wave, or before a state is encoded. And who knows states by keys that are not held forbids it ([`Tiers::keep_keys`]).

use super::{Shard, Table, Tiers, lock, own};
use crate::cache::AnyCache;
use crate::codec::Coder;
use crate::snapshots::Snapshots;
use std::sync::Mutex;

/// This part of the states that are held must have been forgotten, and there must be this part more nodes than were left.
const FORGOTTEN_SHARE: u64 = 4;
const GROWTH_SHARE: usize = 4;
/// So few nodes are not worth it.
const FEW_NODES: usize = 64;
/// Memory that is full should not be so again at once: a smaller part of the nodes is too little.
const LEAST_SHARE: usize = 16;

/// How often nodes were given up, and how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collections {
    pub times: u64,
    pub nodes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    so_far: Collections,
    /// States that were forgotten, and nodes that were left, when it was done last.
    forgotten: u64,
    nodes: usize,
    /// Somebody knows states by keys that are not held.
    is_forbidden: bool,
}

impl Tiers {
    pub fn collections(&self) -> Collections {
        self.collector.so_far
    }

    /// Nodes stay, also those of forgotten states.
    pub(super) fn forbid_collections(&mut self) {
        self.collector.is_forbidden = true;
    }

    /// Can nodes be given up? Not while states may be encoded again, nor where it is estimated by keys how many states there are.
    fn may_collect(&self, coder: &Coder) -> bool {
        let by_states = || match &lock(&self.shards[0]).last {
            Table::Ways(ways) => ways.counts_states(),
            Table::Cache(cache) => cache.counts_states(),
            Table::Levels(levels) => levels.by_states,
            Table::Packed(_) | Table::Vectors(_) | Table::Coded(_) | Table::Filter(_) => false,
        };
        matches!(coder, Coder::Tree(_)) && !self.collector.is_forbidden && self.sample.is_none() && by_states()
    }

    /// Is it time to give up nodes?
    pub fn wants_collection(&self, coder: &Coder) -> bool {
        let nodes = coder.parts();
        let Collector { forgotten, nodes: left, .. } = self.collector;
        let has_grown = nodes > FEW_NODES && nodes >= left + left / GROWTH_SHARE;
        has_grown && self.may_collect(coder) && (self.forgotten() - forgotten) * FORGOTTEN_SHARE >= self.held().0 as u64
    }

    /// Gives up all nodes that nothing needs that is held, and says how many. No key may be under way.
    pub fn collect(&mut self, coder: &mut Coder) -> usize {
        let forgotten = self.forgotten();
        let (Coder::Tree(tree), Tiers { shards, snapshots, shard_bits, collector, .. }) = (coder, self) else {
            return 0;
        };
        let shard_bits = *shard_bits;
        // Without memory for the marks nothing is done.
        let gone = tree.keep_roots(|mark| visit_roots(shards, shard_bits, snapshots.as_ref(), mark)).unwrap_or(0);
        (collector.forgotten, collector.nodes) = (forgotten, tree.nodes());
        collector.so_far.times += 1;
        collector.so_far.nodes += gone as u64;
        gone
    }

    /// Some states have no keys: those that differ in what keys do not tell get longer ones, and where there is no memory for more nodes some are given
    /// up, if need be with states that would have stayed. False if nothing can be done.
    pub fn make_room_for_keys(&mut self, coder: &mut Coder) -> bool {
        if coder.widen() {
            if let (Coder::Packed(packing), Some(layers)) = (&*coder, self.layers_mut()) {
                layers.candidates.widen(packing);
            }
            return true;
        }
        if !self.may_collect(coder) {
            return false;
        }
        let mut gone = 0;
        loop {
            if self.forgotten() == self.collector.forgotten && !self.forget_some() {
                return gone > 0;
            }
            let before = coder.parts();
            gone += self.collect(coder);
            if gone * LEAST_SHARE > before {
                return true;
            }
        }
    }

    /// Makes sure that nodes can be given up from here on, as long as there is memory for what that takes.
    pub fn prepare_collections(&self, coder: &mut Coder) {
        if self.may_collect(coder)
            && let Coder::Tree(tree) = coder
        {
            // If there is none, it is tried again.
            _ = tree.keep_marks();
        }
    }

    /// States that were given up so far.
    fn forgotten(&self) -> u64 {
        let forgotten = |shard: &Mutex<Shard>| match &lock(shard).last {
            Table::Ways(ways) => ways.forgotten(),
            Table::Cache(cache) => cache.forgotten(),
            Table::Levels(levels) => levels.forgotten,
            Table::Packed(_) | Table::Vectors(_) | Table::Coded(_) | Table::Filter(_) => 0,
        };
        self.shards.iter().map(forgotten).sum()
    }

    /// Gives up a level, or a part of the states in caches; false if there is nothing to give up.
    fn forget_some(&mut self) -> bool {
        let before = self.forgotten();
        for shard in &mut self.shards {
            match &mut own(shard).last {
                Table::Ways(ways) => ways.give_up_some(),
                Table::Cache(cache) => cache.give_up_some(),
                _ => {}
            }
        }
        self.forgotten() > before || self.snapshots.is_some() && self.give_up_level()
    }
}

/// Tells the leading bits of every key that is held, or will be.
fn visit_roots(shards: &mut [Mutex<Shard>], shard_bits: u32, levels: Option<&Snapshots>, visit: &mut dyn FnMut(u64)) {
    for (number, shard) in shards.iter_mut().enumerate() {
        let common = (number as u64).checked_shl(u64::BITS - shard_bits).unwrap_or(0);
        let Shard { frozen, last, .. } = own(shard);
        frozen.iter().for_each(|table| table.visit(|key| visit((key >> 64) as u64 | common)));
        match last {
            Table::Ways(ways) => ways.visit(|key| visit(key | common)),
            Table::Cache(cache) => cache.visit(|key| visit(key | common)),
            Table::Levels(levels) => levels.visit(|key, _| visit((key >> 64) as u64 | common)),
            Table::Packed(packed) => packed.visit(|key| visit((key >> 64) as u64 | common)),
            Table::Vectors(_) | Table::Coded(_) | Table::Filter(_) => {}
        }
    }
    levels.into_iter().flat_map(Snapshots::pending).for_each(|key| visit((key >> 64) as u64));
}
