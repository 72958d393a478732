//! What is asked of a search, when it must end, and what it counts.

use crate::curve::LevelSizes;
use crate::verdict::Why;
use plimsoll_model::Step;
use plimsoll_store::{Grant, Odds, Tiers};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What counts as wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    pub deadlocks: bool,
    /// Faults and failed assertions.
    pub errors: bool,
    pub properties: bool,
    /// Visit everything even after a violation; the first one is reported all the same.
    pub keep_going: bool,
}

impl Ask {
    pub const EVERYTHING: Ask = Ask { deadlocks: true, errors: true, properties: true, keep_going: false };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Limits {
    pub deadline: Option<Instant>,
    pub states: Option<u64>,
    pub depth: Option<u32>,
    /// Give up when a store that forgets makes the search visit more states than this many per cent of those
    /// there are. How many there are is estimated.
    pub redundancy_percent: Option<u64>,
}

/// Counts, exact at any time.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stats {
    pub states: u64,
    pub transitions: u64,
    /// Breadth-first: levels with at least one state, the initial one included. Depth-first: 0.
    pub levels: u32,
    /// Longest way from an initial state that was followed.
    pub depth: u32,
    pub deadlocks: u64,
    /// Steps that went wrong.
    pub faults: u64,
    /// Steps on which an assertion failed.
    pub failed_assertions: u64,
    /// States that violate (or reach) some property.
    pub property_hits: u64,
    /// States waiting to be expanded, now and at most.
    pub frontier: u64,
    pub widest_frontier: u64,
    /// Breadth-first: the states that were found on each level.
    pub level_sizes: LevelSizes,
    /// Successors that the store knew.
    pub matched: u64,
    /// States that the store has forgotten. While there is none, every state was visited once.
    pub forgotten: u64,
    /// States held by a store that forgets, and how many it can hold; 0 for a store that does not.
    pub held: u64,
    pub capacity: u64,
    /// How many different states were visited: about, once some were forgotten.
    pub distinct: u64,
    /// If the store may take states for others: how many it is expected to have missed.
    #[serde(skip)]
    pub odds: Option<Odds>,
    /// Bytes of the codes of all states, if they are held as Huffman codes.
    pub code_bytes: Option<u64>,
}

impl Stats {
    /// Asks the store how it is doing.
    pub(crate) fn look_at(&mut self, store: &Tiers) {
        self.distinct = self.states;
        (self.odds, self.code_bytes) = (store.odds(), store.code_bytes());
        if let Some(health) = store.health() {
            (self.held, self.capacity, self.forgotten) = (health.held, health.capacity, health.forgotten);
            if health.forgotten > 0 {
                self.distinct = health.distinct.min(self.states);
            }
        }
    }

    /// Adds what another part of the search has counted.
    pub(crate) fn add(&mut self, other: &Stats) {
        self.states += other.states;
        self.transitions += other.transitions;
        self.depth = self.depth.max(other.depth);
        self.deadlocks += other.deadlocks;
        self.faults += other.faults;
        self.failed_assertions += other.failed_assertions;
        self.property_hits += other.property_hits;
        self.matched += other.matched;
    }

    /// Share of successors that the store knew.
    pub fn matched_share(&self) -> f64 {
        self.matched as f64 / (self.matched + self.states).max(1) as f64
    }

    /// Visits per state.
    pub fn redundancy(&self) -> f64 {
        self.states as f64 / self.distinct.max(1) as f64
    }
}

/// Memory for the path to a violation. It is kept aside as the search gets deeper, for when the path is wanted nothing else
/// is sure to be free.
#[derive(Debug)]
pub struct PathRoom {
    grant: Grant,
    kept_bytes: u64,
}

impl PathRoom {
    /// Shorter paths are not worth keeping books about.
    const FREE_BYTES: u64 = 64 << 10;
    /// Kept at a time.
    pub(crate) const PIECE_BYTES: u64 = 64 << 10;

    pub fn new(grant: Grant) -> PathRoom {
        PathRoom { grant, kept_bytes: 0 }
    }

    /// Makes sure that there is room for a path of so many steps.
    pub(crate) fn keep(&mut self, depth: u32) -> Result<(), Why> {
        while u64::from(depth) * 4 > self.kept_bytes + PathRoom::FREE_BYTES {
            if !self.grant.take(PathRoom::PIECE_BYTES) {
                return Err(Why::Memory);
            }
            self.kept_bytes += PathRoom::PIECE_BYTES;
        }
        Ok(())
    }
}

impl Drop for PathRoom {
    fn drop(&mut self) {
        self.grant.give_back(self.kept_bytes);
    }
}

/// Who looks on while a search goes. A closure that is given the counts will do.
pub trait Watch: Send {
    /// Told now and then of the counts so far.
    fn counts(&mut self, stats: &Stats);

    /// Told of every step that goes wrong in `state`, in the order of the search.
    fn fault(&mut self, state: &[u32], step: Step) {
        let _ = (state, step);
    }
}

impl<F: FnMut(&Stats) + Send> Watch for F {
    fn counts(&mut self, stats: &Stats) {
        self(stats);
    }
}

/// The strings by which a search is held.
pub struct Control<'a> {
    pub ask: Ask,
    pub limits: Limits,
    /// Set from outside to end the search at the next block of states.
    pub stop: &'a AtomicBool,
    pub room: PathRoom,
    pub watch: &'a mut dyn Watch,
}

impl Control<'_> {
    /// Was the search told to end? Then what the model said last may mean nothing.
    pub(crate) fn stopped(&self) -> Option<Why> {
        let late = || self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.stop.load(Ordering::Relaxed).then(|| if late() { Why::Time } else { Why::Interrupted })
    }

    /// Must the search end now? If it is time to `look`, those outside are told how far it is.
    pub(crate) fn must_end(&mut self, look: bool, stats: &mut Stats, store: &Tiers) -> Option<Why> {
        if self.limits.states.is_some_and(|limit| stats.states >= limit) {
            return Some(Why::States);
        }
        if let Some(why) = self.stopped() {
            return Some(why);
        }
        if let Some(percent) = self.limits.redundancy_percent {
            stats.look_at(store);
            // What may be missed is not visited for ever.
            let counts = stats.forgotten > 0 && stats.odds.is_none();
            if counts && stats.states.saturating_mul(100) > percent.saturating_mul(stats.distinct) {
                return Some(Why::Redundancy);
            }
        }
        if look {
            stats.look_at(store);
            return self.must_stop(stats);
        }
        None
    }

    /// Tells those outside how far it is; was it told to end, or is it time?
    pub(crate) fn must_stop(&mut self, stats: &Stats) -> Option<Why> {
        self.watch.counts(stats);
        let late = || self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Why::Time);
        self.stopped().or_else(late)
    }
}
