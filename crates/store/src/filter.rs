//! Filters: a fixed block of memory that says of a key that it was never seen, or that it may have been.
//!
//! The leading bits of a key choose one cache line, in which all that is ever noted about it lies; so an answer costs one access
//! to memory. A key that is found to be new is noted. What a line does with its keys is up to the kind: [`bits`] sets a few
//! bits for each, [`adaptive`] keeps digests as long as there is room. Into how many filters a block is divided does not
//! matter: a line keeps its keys and their order.

mod adaptive;
mod bits;

use crate::arena::{Arena, Pages};
use crate::budget::Full;
use crate::digest::Held;
use crate::hash;
use crate::odds::Sum;
use crate::packed::Run;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

pub use bits::MOST_BITS_PER_STATE;

/// To clear so many bytes takes no time. A larger filter lies in small pages, of which a small model touches few, ...
const CLEARED_AT_ONCE: usize = 256 << 20;
/// ... until there is a key for so many lines, which are four small pages. To clear a small page takes as long as an equal part of a
/// huge one, so that up to here little was lost, and from here on huge ones pay.
const SPARSE: usize = 256;

/// One shard of a filter.
#[derive(Debug)]
pub struct Filter {
    lines: Pages,
    /// Leading bits that are the same in all keys.
    common_bits: u32,
    kind: Kind,
    /// Keys are no digests, so those are made of them.
    digests_keys: bool,
    /// Its pages are small.
    scattered: bool,
    /// Keys that were found to be new.
    len: usize,
    odds: Sum,
}

/// What is kept in a line.
#[derive(Clone, Debug)]
enum Kind {
    Bits(Arc<bits::Bits>),
    Adaptive(Arc<adaptive::Adaptive>),
}

/// Was a key new, and if so, how probable was it that another would have been told apart?
type New = Option<Sum>;

impl Filter {
    /// A filter that fills what is left of the grant.
    pub fn new(held: Held, arena: &Arena) -> Result<Filter, Full> {
        Filter::sized(held, usize::MAX, arena)
    }

    /// One of at most so many bytes for keys that are no digests, the leading bits of which look random all the same.
    pub fn of_keys(held: Held, most_bytes: usize, arena: &Arena) -> Result<Filter, Full> {
        Ok(Filter { digests_keys: true, ..Filter::sized(held, most_bytes, arena)? })
    }

    fn sized(held: Held, most_bytes: usize, arena: &Arena) -> Result<Filter, Full> {
        let mut lines = arena.pages();
        lines.fill(most_bytes);
        if lines.lines() == 0 {
            return Err(Full);
        }
        let kind = match held {
            Held::Bits(bits) => Kind::Bits(Arc::new(bits::Bits::new(bits))),
            Held::Adaptive => Kind::Adaptive(Arc::new(adaptive::Adaptive::new())),
            Held::Whole => unreachable!("whole digests are held in tables"),
        };
        let scattered = lines.bytes() > CLEARED_AT_ONCE;
        if scattered {
            lines.refuse_huge_pages();
        }
        Ok(Filter { lines, common_bits: 0, kind, digests_keys: false, scattered, len: 0, odds: Sum::default() })
    }

    /// The same filter in 2^`shard_bits` parts, if it can be divided into so many.
    pub fn split(&mut self, shard_bits: u32) -> Option<Vec<Filter>> {
        let parts = self.lines.split(1 << shard_bits)?;
        let (mut len, mut odds) = (std::mem::take(&mut self.len), std::mem::take(&mut self.odds));
        let part = |lines| Filter {
            lines,
            common_bits: self.common_bits + shard_bits,
            kind: self.kind.clone(),
            digests_keys: self.digests_keys,
            scattered: self.scattered,
            // What was counted so far, the first goes on counting.
            len: std::mem::take(&mut len),
            odds: std::mem::take(&mut odds),
        };
        Some(parts.into_iter().map(part).collect())
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it missed, it is expected.
    pub(crate) fn odds(&self) -> Sum {
        self.odds
    }

    #[inline(always)]
    fn home(&self, high: u64) -> usize {
        hash::scale(high << self.common_bits, self.lines.lines())
    }

    /// Asks for the lines of keys.
    pub fn prefetch(&self, keys: Run) {
        keys.high.iter().for_each(|&high| self.lines.prefetch(self.home(high)));
    }

    /// Inserts keys, says of each whether it was new, and returns how many were.
    pub fn insert_all(&mut self, keys: Run, fresh: &[AtomicU8]) -> usize {
        self.prefetch(keys);
        let before = self.len;
        for (at, (&high, fresh)) in keys.high.iter().zip(fresh).enumerate() {
            let low = if self.digests_keys { digest_of(high, keys.low.get(at)) } else { keys.low[at] };
            fresh.store(self.insert(high, low) as u8, Ordering::Relaxed);
        }
        self.len - before
    }

    /// Inserts a digest, and says whether it was new.
    #[inline(always)]
    pub(crate) fn insert(&mut self, high: u64, low: u64) -> bool {
        let line = self.lines.line_mut(hash::scale(high << self.common_bits, self.lines.lines()));
        let new = match &self.kind {
            Kind::Bits(bits) => bits.insert(line, low),
            Kind::Adaptive(adaptive) => adaptive.insert(line, low),
        };
        let Some(odds) = new else { return false };
        self.odds += odds;
        self.len += 1;
        if self.scattered && self.len > self.lines.lines() / SPARSE {
            self.scattered = false;
            self.lines.join_pages();
        }
        true
    }
}

/// A digest of a key; equal keys have equal ones.
fn digest_of(high: u64, low: Option<&u64>) -> u64 {
    let low = low.copied().unwrap_or(0);
    hash::digest(&[high as u32, (high >> 32) as u32, low as u32, (low >> 32) as u32]).1
}

#[cfg(test)]
mod tests;
