//! Tiers that may take a state for another: what they say about it, and the shards of filters.

use super::{Shard, Table, Tiers, lock};
use crate::arena::Arena;
use crate::budget::Full;
use crate::codec::Coder;
use crate::digest::Held;
use crate::filter::Filter;
use crate::odds::{Odds, Sum};
use std::sync::Mutex;

impl Tiers {
    /// How many states were missed, it is expected, because they were taken for others; none if that cannot be.
    pub fn odds(&self) -> Option<Odds> {
        let bits = self.digest_bits?;
        let (mut sum, mut whole) = (Sum::default(), 0);
        for shard in self.shards.iter().map(lock) {
            match &shard.last {
                Table::Filter(filter) => sum += filter.odds(),
                table => whole += table.len() as u64,
            }
        }
        Some(if whole > 0 { Odds::of_digests(whole, bits) } else { sum.into() })
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
