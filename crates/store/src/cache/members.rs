//! Which slots are in a tier: one bit for each, and one for every 64 of those that says whether any of them is set.
//!
//! A tier may be a small part of the slots, or almost all of them may be pinned; the next member is found quickly all
//! the same.

use crate::budget::Grant;
use crate::region::Region;

#[derive(Debug)]
pub(super) struct Members {
    bits: Region,
    /// Which words of `bits` are not zero.
    summary: Region,
    /// Words of `summary` in use.
    used: usize,
}

impl Members {
    pub fn new(grant: &Grant) -> Members {
        Members { bits: Region::new(grant.clone()), summary: Region::new(grant.clone()), used: 0 }
    }

    /// Makes sure that slots below `count` can be members.
    #[must_use]
    pub fn grow(&mut self, count: usize) -> bool {
        let (words, used) = (count.div_ceil(64), count.div_ceil(64 * 64));
        let grown = self.bits.grow(words * 8) && self.summary.grow(used * 8);
        if grown {
            self.used = used;
        }
        grown
    }

    pub fn bytes(&self) -> usize {
        self.bits.bytes() + self.summary.bytes()
    }

    /// Bytes per slot, rounded up, of so many tiers.
    pub const fn bytes_per_entry(tiers: usize) -> usize {
        (tiers * (64 + 1)).div_ceil(8 * 64)
    }

    pub fn contains(&mut self, slot: u32) -> bool {
        self.bits.pairs_mut()[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    pub fn insert(&mut self, slot: u32) {
        let word = slot as usize / 64;
        self.bits.pairs_mut()[word] |= 1 << (slot % 64);
        self.summary.pairs_mut()[word / 64] |= 1 << (word % 64);
    }

    pub fn remove(&mut self, slot: u32) {
        let word = slot as usize / 64;
        let bits = &mut self.bits.pairs_mut()[word];
        *bits &= !(1 << (slot % 64));
        if *bits == 0 {
            self.summary.pairs_mut()[word / 64] &= !(1 << (word % 64));
        }
    }

    /// The first member from `slot` on; after the last slot comes the first.
    #[inline]
    pub fn next(&mut self, slot: u32) -> Option<u32> {
        let (bits, summary) = (self.bits.pairs_mut(), &self.summary.pairs_mut()[..self.used]);
        let word = slot as usize / 64;
        let here = bits.get(word).map_or(0, |bits| bits & u64::MAX << (slot % 64));
        let (word, found) = if here != 0 {
            (word, here)
        } else {
            let word = first_from(summary, word + 1).or_else(|| first_from(summary, 0))?;
            (word, bits[word])
        };
        Some((word * 64) as u32 + found.trailing_zeros())
    }
}

/// The first bit that is set from `bit` on.
fn first_from(words: &[u64], bit: usize) -> Option<usize> {
    let mut number = bit / 64;
    let mut word = words.get(number)? & u64::MAX << (bit % 64);
    while word == 0 {
        number += 1;
        word = *words.get(number)?;
    }
    Some(number * 64 + word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;
    use std::collections::BTreeSet;

    #[test]
    fn the_next_member_is_that_of_a_sorted_set() {
        let mut draw = Draw::new(0);
        for (count, often) in [(1, 2), (64, 3), (65, 40), (4096, 2), (20_000, 3), (300_000, 3)] {
            let (mut members, mut twin) = (Members::new(&Grant::unlimited()), BTreeSet::new());
            assert!(members.grow(count / 2 + 1) && members.grow(count));
            for _ in 0..4_000 {
                let random = draw.bits();
                let (slot, from) = ((random >> 20) as u32 % count as u32, (random >> 40) as u32 % count as u32);
                // About as many are taken out as put in, so that the set stays sparse where it is large.
                if random.is_multiple_of(often) && !twin.contains(&slot) {
                    members.insert(slot);
                    twin.insert(slot);
                } else if let Some(old) = twin.range(slot..).next().copied() {
                    assert!(members.contains(old));
                    members.remove(old);
                    twin.remove(&old);
                }
                assert_eq!(members.contains(slot), twin.contains(&slot));
                let expected = twin.range(from..).next().or_else(|| twin.first()).copied();
                assert_eq!(members.next(from), expected, "of {count} from {from}");
            }
        }
    }
}
