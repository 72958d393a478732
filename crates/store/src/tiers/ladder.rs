//! What exact tiers do when memory is almost full and there is no disk: they climb, without beginning again.
//!
//! 1. **Fill up.** Tables get denser, which takes longer.
//! 2. **Freeze.** The tables admit nothing any more and still answer. New states go to a [`LevelTable`] behind them, which holds
//!    whole levels: all of them as long as there is memory, then fewer and fewer of the older ones ([`crate::snapshots`]).
//! 3. **Give up what is frozen**, when even few levels find no room beside it. Then only levels are held. Where states may be missed, a filter
//!    takes the place of the levels instead ([`super::lossy`]).
//!
//! **Nothing is missed, and it ends**: what is held was fresh once, so it is or will be expanded, whoever leaves and when; and
//! anchors make every search with levels end ([`crate::snapshots`] has both proofs). While nothing is given up, every state is
//! visited once, so freezing alone changes no count.
//!
//! Tables grow by large steps and never shrink, so they freeze while enough is left: for the levels, and for what waits, which
//! may still get more. How much that is, is told by how much waits now and by whether levels are still growing.

use super::{Shard, Table, Tiers, own};
use crate::arena::Arena;
use crate::budget::Full;
use crate::cache::Health;
use crate::codec::Coder;
use crate::packed::Density;
use crate::row::Row;
use crate::snapshots::Snapshots;
use crate::snapshots::table::LevelTable;
use crate::tiers::Entry;

/// Of the memory, this part at least and this part at most is free when tables freeze.
const LEAST_FREE: u64 = 8;
const MOST_FREE: u64 = 2;
/// Levels for which there should be room behind what is frozen: the one that is built and the one before it.
const LEVELS: u64 = 2;
/// What waits grows for so many levels more as the last one did; but by so many per cent at least, and at most.
const GROWING_LEVELS: i32 = 3;
const LEAST_GROWTH: f64 = 50.0;
const MOST_GROWTH: f64 = 200.0;
/// Tables do not become more than twice as large for the keys at hand, and for so many bytes each.
const PLENTY_PER_KEY: u64 = 64;
/// And this part of the memory is left to everything else: the log, nodes of trees.
const OTHERS_SHARE: u64 = 32;

/// How far a search is, for whoever decides whether to climb.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlook {
    /// States of this level are being found.
    pub level: u32,
    /// States that were found, and successors that were known.
    pub states: u64,
    pub matched: u64,
    /// States that wait, and the bytes that they take.
    pub waiting: u64,
    pub waiting_bytes: u64,
    /// What waits and the log may take so many bytes more for the states at hand.
    pub next_bytes: u64,
    /// States of the last two levels that are complete, older first.
    pub widths: [u64; 2],
    /// What all structures together had when those began to be expanded.
    pub used_bytes: [u64; 2],
}

impl Outlook {
    /// By how much the last level is larger than the one before.
    pub fn growth(&self) -> f64 {
        self.widths[1] as f64 / self.widths[0].max(1) as f64
    }

    /// What should be left to what waits and to the log.
    pub(super) fn waiting_room(&self, memory: u64) -> u64 {
        let growth = (self.growth().powi(GROWING_LEVELS) - 1.0) * 100.0;
        let percent = growth.clamp(LEAST_GROWTH, MOST_GROWTH) as u64;
        self.next_bytes.max(self.waiting_bytes / 100 * percent + memory / OTHERS_SHARE)
    }
}

/// What a search that cannot go on as it did goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Tables leave for the disk.
    Layers,
    /// Tables get denser.
    Compact,
    /// Tables are frozen, and levels are held behind them.
    Frozen,
    /// What was frozen is given up.
    Levels,
    /// A filter holds what comes behind what is frozen, and may take states for others.
    Filter,
}

/// One step up the ladder, and what led to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Climb {
    pub to: Rung,
    pub outlook: Outlook,
    /// States that were held, and the bytes that the store took.
    pub held: u64,
    pub store_bytes: u64,
    /// What all structures together could still take, of so much.
    pub left_bytes: u64,
    pub memory_bytes: u64,
    /// How many levels back the farthest state was that was known, of those that are held by level.
    pub longest_way_back: u32,
}

/// How tiers climb.
#[derive(Debug)]
pub(super) struct Ladder {
    /// The levels that come behind what is frozen.
    levels: Row,
    bytes_per_state: u64,
    /// Where frozen tables have their memory.
    frozen: Option<Arena>,
    /// May a filter come last?
    may_miss: bool,
    /// What was known when it came.
    before_filter: Option<Health>,
}

impl Ladder {
    pub fn bytes(&self) -> usize {
        self.frozen.as_ref().map_or(0, Arena::bytes)
    }

    /// May a filter come next?
    pub fn may_filter(&self) -> bool {
        self.may_miss && self.before_filter.is_none()
    }

    /// What was known when a filter came, if one did.
    pub fn before_filter(&self) -> Option<Health> {
        self.before_filter
    }

    /// A filter comes, and so much is known by now.
    pub fn filters_from(&mut self, health: Health) {
        self.before_filter = Some(health);
    }
}

impl Tiers {
    /// The same with a way on when memory is almost full: see [`Row::climbs`]. In the end states may be missed if `may_miss`. Only
    /// for exact tiers of keys.
    pub fn climbing(mut self, coder: &Coder, row: &Row, may_miss: bool) -> Tiers {
        assert!(matches!(own(&mut self.shards[0]).last, Table::Packed(_)), "only keys are held by level");
        let (levels, bytes_per_state) = (row.levels(), Tiers::bytes_per_state_of_levels(coder) as u64);
        self.ladder = Some(Ladder { levels, bytes_per_state, frozen: None, may_miss, before_filter: None });
        self
    }

    /// What all structures together have.
    pub fn used_bytes(&self) -> u64 {
        self.grant.cap_bytes() - self.grant.left_bytes()
    }

    /// Takes note that states have other keys from now on.
    pub(super) fn suit_ladder(&mut self, coder: &Coder) {
        if let Some(ladder) = &mut self.ladder {
            ladder.bytes_per_state = Tiers::bytes_per_state_of_levels(coder) as u64;
        }
    }

    /// The steps up the ladder so far.
    pub fn climbs(&self) -> &[Climb] {
        &self.climbs
    }

    /// Takes note of a step that is about to be taken.
    pub fn note_climb(&mut self, to: Rung, outlook: Outlook) {
        let ((held, bytes), left_bytes) = (self.held(), self.grant.left_bytes());
        let (held, store_bytes, memory_bytes) = (held as u64, bytes as u64, self.grant.cap_bytes());
        let longest_way_back = self.snapshots.as_ref().map_or(0, Snapshots::longest_way_back);
        self.climbs.push(Climb { to, outlook, held, store_bytes, left_bytes, memory_bytes, longest_way_back });
    }

    /// Makes sure that all keys of some blocks find room, climbing if need be; if there is no way to climb, nobody knows.
    pub fn make_way(&mut self, entries: &[&Entry], keys: usize, outlook: Outlook) -> Result<(), Full> {
        let Some(ladder) = &self.ladder else { return Ok(()) };
        if self.has_filter() {
            // It is never full.
            return Ok(());
        }
        let memory = self.grant.cap_bytes();
        let room = outlook.waiting_room(memory);
        if self.snapshots.is_none() {
            // While there is plenty, whoever enters a shard lets it grow, several at once.
            let at_most = self.arena.bytes() as u64 + keys as u64 * PLENTY_PER_KEY;
            if self.grant.left_bytes() >= memory / MOST_FREE + at_most {
                return Ok(());
            }
            let levels = LEVELS * outlook.waiting * ladder.bytes_per_state;
            let free = (room + levels).clamp(memory / LEAST_FREE, memory / MOST_FREE);
            // Tables grow no more then, but they are filled.
            if self.finds_room(entries, free, room) || self.fill_up(outlook) && self.finds_room(entries, free, room) {
                return Ok(());
            }
            self.note_climb(Rung::Frozen, outlook);
            self.freeze()?;
        }
        loop {
            let next = outlook.next_bytes;
            if self.finds_room(entries, room, room) || self.finds_room(entries, next, next) {
                return Ok(());
            }
            if self.give_up_level() {
                continue;
            }
            if self.go_on_with_filter(outlook)? {
                return Ok(());
            }
            if !self.give_up_frozen(outlook) {
                // What waits may need less than it could.
                return if self.finds_room(entries, 0, 0) { Ok(()) } else { Err(Full) };
            }
        }
    }

    /// Do all keys fit, with so many bytes left, and with more left where tables have to grow for it?
    fn finds_room(&mut self, entries: &[&Entry], left_by_growth: u64, left: u64) -> bool {
        self.arena.keep_free(left_by_growth);
        let key_bits = *self.key_bits.get_mut();
        let found = self.grant.left_bytes() >= left
            && self.shards.iter_mut().enumerate().all(|(number, shard)| {
                let count = entries.iter().map(|entry| entry.states.count_in(number)).sum();
                match &mut own(shard).last {
                    Table::Packed(packed) => packed.reserve_well(count, key_bits),
                    Table::Levels(levels) => levels.reserve_well(count, key_bits),
                    other => other.reserve(count, key_bits),
                }
                .is_ok()
            });
        self.arena.keep_free(0);
        found
    }

    /// Lets tables get as dense as they can be; false if they are.
    fn fill_up(&mut self, outlook: Outlook) -> bool {
        let is_denser = self.density != Density::COMPACT;
        if is_denser {
            self.note_climb(Rung::Compact, outlook);
            self.set_density(Density::COMPACT);
        }
        is_denser
    }

    /// Tables admit nothing any more; levels come behind them.
    fn freeze(&mut self) -> Result<(), Full> {
        // What is frozen cannot be encoded again.
        self.sample = None;
        let (key_bits, shard_bits) = (*self.key_bits.get_mut(), self.shard_bits);
        let Tiers { shards, ladder: Some(ladder), arena, grant, .. } = self else { return Err(Full) };
        let young = Arena::new(grant.clone());
        let snapshots = Snapshots::new(&ladder.levels, usize::MAX, grant);
        let mut tables = Vec::new();
        for _ in 0..shards.len() {
            // States are told apart by their keys, which stay as they are from here on, also those of trees.
            let mut table = LevelTable::new(key_bits, shard_bits, &young, grant)?;
            snapshots.introduce(&mut table);
            tables.push(table);
        }
        for (shard, table) in shards.iter_mut().zip(tables) {
            let shard = own(shard);
            let full = std::mem::replace(&mut shard.last, Table::Levels(Box::new(table)));
            shard.frozen.extend(full.into_packed());
        }
        ladder.frozen = Some(std::mem::replace(arena, young));
        self.snapshots = Some(snapshots);
        Ok(())
    }

    /// Gives up one of the levels, unless there are too few.
    pub(super) fn give_up_level(&mut self) -> bool {
        let Tiers { shards, snapshots: Some(snapshots), .. } = self else { return false };
        snapshots.give_up(&mut super::levels::tables(shards))
    }

    /// Could memory be freed for whoever needs it?
    pub fn can_make_room(&self) -> bool {
        self.below.is_some() || self.has_frozen() && !self.has_filter()
    }

    fn has_frozen(&self) -> bool {
        self.ladder.as_ref().is_some_and(|ladder| ladder.frozen.is_some())
    }

    /// Gives up what is frozen, and with it its memory; false if nothing is.
    pub fn give_up_frozen(&mut self, outlook: Outlook) -> bool {
        if !self.has_frozen() || self.has_filter() {
            return false;
        }
        self.note_climb(Rung::Levels, outlook);
        let Tiers { shards, ladder: Some(ladder), shard_bits, .. } = self else { return false };
        for (number, shard) in shards.iter_mut().enumerate() {
            let Shard { frozen, last: Table::Levels(table), .. } = own(shard) else { continue };
            for full in frozen.drain(..) {
                table.forgotten += full.len() as u64;
                let common = (number as u64).checked_shl(u64::BITS - *shard_bits).unwrap_or(0);
                full.visit(|key| table.distinct.add((key >> 64) as u64 | common));
            }
        }
        ladder.frozen = None;
        true
    }
}
