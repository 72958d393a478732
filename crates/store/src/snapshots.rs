//! Breadth-first search that holds some of its levels, as wholes: *snapshots* (after Mateescu and Wijs, TACAS 2009).
//!
//! A state is fresh unless it is in a snapshot, in the level that is built, or held for good. A complete level becomes a snapshot,
//! with all its states, also those that were known; or it is forgotten, as the [`stream`] of caches decides.
//!
//! **Nothing is missed.** Whatever is held was fresh once: a level has states that are fresh there and states that were held.
//! What is fresh is expanded. So what is not fresh is or will be expanded, whoever leaves and when.
//!
//! **It ends.** Now and then one fresh state of a level is held for good, an *anchor*; the gaps between such levels grow by one. A
//! search without end has infinitely many anchors, each of which was fresh, so all are different; but there are finitely many
//! states. The paper's argument is that with a growing period a snapshot stays for longer than any cycle is long, which is right
//! for one cycle. Two can take turns: with one snapshot and a period that grows by ten, cycles of five and eight states with a way
//! from each to the other go on for ever, for the snapshot is always of the one while the other is gone round
//! (`crates/search/tests/snapshots.rs`). Growing periods are what makes searches end early, so rows must have them ([`crate::row`]).

pub(crate) mod masks;
pub(crate) mod stream;
pub(crate) mod table;

use crate::budget::{Full, Grant};
use crate::row::Row;
use masks::{ANCHORED, BACKTRACKED};
use stream::{Snapshot, Stream};
use table::LevelTable;

/// The lane of the backtracking set; the others are for old snapshots. If there are more, rule 1 overlooks some.
const SET_LANE: u64 = 1 << 63;
const LANES: usize = 63;
/// Keys that wait for the end of a wave are charged so many at a time.
const KEYS_PER_CHARGE: usize = 4096;
/// Levels are given up when less than this part of the room is left, or less than a wave may need.
const ROOM_SHARE: usize = 4;

/// What all shards have in common.
///
/// **The backtracking set.** A state of which all successors, more than one, are known from one old snapshot (one that has left the
/// first cache) has probably been expanded before, and so has a state of which all successors are in the set: it is held for
/// good from the end of the wave on. Bits of a word, *lanes*, stand for the old snapshots and for the set; what all successors
/// have in common tells both rules at once.
///
/// **Memory.** A state is held once, however many snapshots it is in ([`masks`], [`table`]). Snapshots are whole or not at all. Between
/// waves, when so many states are held that another wave might find no room, caches give up levels early and growing
/// periods grow further. What must stay (the level that is built, one level of each cache, states held for good) may still be
/// too much, and then the search ends for lack of memory. What is given up depends on how many states are held, so it does
/// not depend on workers.
#[derive(Debug)]
pub(crate) struct Snapshots {
    stream: Stream,
    backtracks: bool,
    /// How many states may be held.
    capacity: usize,
    level: u32,
    /// How often states were forgotten, or may have been.
    forgot: u64,
    longest_way_back: u32,
    /// The level that gets an anchor next, and how far it is from there to the one after it.
    anchor: u32,
    gap: u32,
    /// Keys for the backtracking set, and how many of them are paid for.
    pending: Vec<u128>,
    charged: usize,
    grant: Grant,
}

impl Snapshots {
    pub fn new(row: &Row, capacity: usize, grant: &Grant) -> Snapshots {
        Snapshots {
            stream: Stream::new(row.tiers()),
            backtracks: row.backtracks(),
            capacity,
            level: 0,
            forgot: 0,
            longest_way_back: 0,
            anchor: 1,
            gap: 1,
            pending: Vec::new(),
            charged: 0,
            grant: grant.clone(),
        }
    }

    /// Are lanes wanted?
    pub fn backtracks(&self) -> bool {
        self.backtracks
    }

    /// A number that changes whenever a state that was held may be held no more.
    pub fn forgot(&self) -> u64 {
        self.forgot
    }

    /// How many levels back the farthest snapshot was of which a state was met.
    pub fn longest_way_back(&self) -> u32 {
        self.longest_way_back
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Lets a table know which level is built.
    pub fn introduce(&self, table: &mut LevelTable) {
        let old = (0..).zip(self.stream.old().take(LANES)).map(|(lane, level)| (level, 1 << lane));
        let lanes = old.chain([(BACKTRACKED, SET_LANE)]).filter(|_| self.backtracks).collect();
        table.masks.begin(self.level, self.stream.takes_next(), lanes);
    }

    /// The level that was built is complete. Returns whether an anchor is wanted among the states that are fresh in it.
    pub fn seal(&mut self, tables: &mut [&mut LevelTable]) -> bool {
        let Snapshots { stream, level, longest_way_back, .. } = self;
        if stream.takes_next() {
            let mut common = |of: u32, states: u64| {
                stream.hit(of, states, *level);
                *longest_way_back = (*longest_way_back).max(level.saturating_sub(of));
            };
            tables.iter().for_each(|table| table.masks.tell_common(&mut common));
        }
        let states = tables.iter().map(|table| table.masks.states_of_level()).sum();
        let level = self.level;
        let left = self.stream.offer(Snapshot { level, states, hits: 0, last_hit: level });
        tables.iter_mut().for_each(|table| table.forget(&left));
        self.level += 1;
        self.forgot += 1;
        tables.iter_mut().for_each(|table| self.introduce(table));
        let wanted = level == self.anchor;
        if wanted {
            self.anchor += self.gap;
            self.gap += 1;
        }
        wanted
    }

    /// Holds a state for good; `table` is that of its shard.
    pub fn anchor(&self, key: u128, table: &mut LevelTable, key_bits: u32) -> Result<(), Full> {
        table.reserve(1, key_bits)?;
        table.keep(key, ANCHORED);
        Ok(())
    }

    /// These states belong into the backtracking set, from the end of the wave on.
    pub fn recognise(&mut self, keys: &[u128]) -> Result<(), Full> {
        while self.charged < self.pending.len() + keys.len() {
            if !self.grant.take((KEYS_PER_CHARGE * size_of::<u128>()) as u64) {
                return Err(Full);
            }
            self.charged += KEYS_PER_CHARGE;
            self.pending.reserve_exact(self.charged - self.pending.len());
        }
        self.pending.extend_from_slice(keys);
        Ok(())
    }

    /// Keys that will be in the backtracking set.
    pub fn pending(&self) -> impl Iterator<Item = u128> {
        self.pending.iter().copied()
    }

    /// A wave is over, and the next may find so many states. `shard_of` tells whose a key is.
    pub fn settle(
        &mut self,
        successors: usize,
        tables: &mut [&mut LevelTable],
        key_bits: u32,
        shard_of: impl Fn(u128) -> usize,
    ) -> Result<(), Full> {
        for key in self.pending.drain(..) {
            let table = &mut tables[shard_of(key)];
            table.reserve(1, key_bits)?;
            table.keep(key, BACKTRACKED);
        }
        let most = self.capacity - successors.min(self.capacity / ROOM_SHARE);
        let held = |tables: &[&mut LevelTable]| tables.iter().map(|table| table.masks.live()).sum::<usize>();
        if held(tables) > most {
            while held(tables) > most && self.give_up(tables) {}
        }
        Ok(())
    }

    /// Gives up one level, for there is no memory for it, unless there are too few.
    pub fn give_up(&mut self, tables: &mut [&mut LevelTable]) -> bool {
        let Some(level) = self.stream.give_up() else { return false };
        self.forgot += 1;
        tables.iter_mut().for_each(|table| table.forget(&[level]));
        true
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        self.grant.give_back((self.charged * size_of::<u128>()) as u64);
    }
}

#[cfg(test)]
mod tests;
