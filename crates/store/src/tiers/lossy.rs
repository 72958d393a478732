//! Tiers that may take a state for another: what they say about it, the shards of filters, and how a filter comes behind tables that are
//! frozen, where a search has climbed as far as it can and may miss states.

use super::ladder::{Ladder, Outlook, Rung};
use super::{Shard, Table, Tiers, lock};
use crate::arena::{Arena, PAGE_BYTES};
use crate::budget::Full;
use crate::cache::Health;
use crate::codec::Coder;
use crate::digest::Held;
use crate::filter::Filter;
use crate::odds::{Odds, Sum};
use std::sync::{Mutex, PoisonError};

/// A filter that is smaller than this is none.
const LEAST_FILTER_BYTES: u64 = 64 << 10;
/// It gets this part of what is left: the log, what waits and nodes of trees need the rest, and it cannot shrink.
const FILTER_SHARE: u64 = 2;

impl Tiers {
    /// How many states were missed, it is expected, because they were taken for others; none if that cannot be.
    pub fn odds(&self) -> Option<Odds> {
        if self.digest_bits.is_none() && !self.has_filter() {
            return None;
        }
        let (mut sum, mut whole) = (Sum::default(), 0);
        for shard in self.shards.iter().map(lock) {
            match &shard.last {
                Table::Filter(filter) => sum += filter.odds(),
                table => whole += table.len() as u64,
            }
        }
        Some(match self.digest_bits {
            Some(bits) if whole > 0 => Odds::of_digests(whole, bits),
            _ => sum.into(),
        })
    }

    /// Did a filter come behind exact tables?
    pub(super) fn has_filter(&self) -> bool {
        self.ladder.as_ref().is_some_and(|ladder| ladder.before_filter().is_some())
    }

    /// Gives up the levels and goes on with a filter behind what is frozen, if that is allowed, and if there is room for one. What was in those
    /// levels may be visited once more: none of it is in the filter, so it is not taken for known. From here on states may be
    /// missed, so [`Tiers::odds`] has an answer. On `Full` the tiers are of no use any more.
    pub fn go_on_with_filter(&mut self, outlook: Outlook) -> Result<bool, Full> {
        if self.snapshots.is_none() || !self.ladder.as_ref().is_some_and(Ladder::may_filter) {
            return Ok(false);
        }
        let free = self.grant.left_bytes() + self.arena.bytes() as u64;
        let room = outlook.waiting_room(self.grant.cap_bytes());
        let bytes = free.saturating_sub(room).min(free / FILTER_SHARE);
        let least = LEAST_FILTER_BYTES.max((self.shards.len() * PAGE_BYTES) as u64);
        let Some(mut health) = self.health().filter(|_| bytes >= least) else { return Ok(false) };
        self.note_climb(Rung::Filter, outlook);
        let mut frozen = Vec::new();
        for shard in std::mem::take(&mut self.shards) {
            let shard = shard.into_inner().unwrap_or_else(PoisonError::into_inner);
            health.forgotten += shard.last.len() as u64;
            frozen.push(shard.frozen);
        }
        self.snapshots = None;
        // Memory is given back as a whole, and before any is asked for.
        self.arena = Arena::new(self.grant.clone());
        if let Some(ladder) = &mut self.ladder {
            ladder.filters_from(health);
        }
        let filter = Filter::of_keys(Held::Adaptive, usize::try_from(bytes).unwrap_or(usize::MAX), &self.arena);
        self.shards = filter.and_then(|mut filter| parts(&mut filter, self.shard_bits))?;
        for (shard, frozen) in self.shards.iter_mut().zip(frozen) {
            super::own(shard).frozen = frozen;
        }
        Ok(true)
    }

    /// How a search is doing that has a filter. What was given up when it came may be counted twice.
    pub(super) fn health_of_filter(&self, before: Health) -> Health {
        let filtered: usize = self.shards.iter().map(|shard| lock(shard).last.len()).sum();
        Health { held: self.held().0 as u64, distinct: before.distinct + filtered as u64, ..before }
    }
}

/// The shards of a filter, if that is how the coder wants its digests to be held.
pub(super) fn shards(coder: &Coder, shard_bits: u32, arena: &Arena) -> Option<Result<Vec<Mutex<Shard>>, Full>> {
    match coder {
        Coder::Digest(digest) if digest.held != Held::Whole => {
            Some(Filter::new(digest.held, arena).and_then(|mut filter| parts(&mut filter, shard_bits)))
        }
        _ => None,
    }
}

/// A filter in 2^`shard_bits` shards, which leaves it empty; or unchanged if it cannot be divided into so many.
pub(super) fn parts(filter: &mut Filter, shard_bits: u32) -> Result<Vec<Mutex<Shard>>, Full> {
    let parts = filter.split(shard_bits).ok_or(Full)?;
    Ok(parts.into_iter().map(|part| Shard::new(Table::Filter(Box::new(part)))).collect())
}
