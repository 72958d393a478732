//! A filter in memory before a run on disk: a key that it does not know is certainly not in the run.
//!
//! It is a Bloom filter in lines of 512 bits. The leading bits of a key choose the line, so keys that are asked for in
//! order pass over the filter in order; a hash of the whole key chooses bits of the line. How many bits a key may have
//! depends on the memory that there is: with three of them a quarter of all unknown keys is taken for known, with ten
//! one in a hundred.

use crate::budget::Grant;
use crate::region::Region;

/// Words of a line.
const LINE: usize = 8;
const LINE_BITS: usize = LINE * 64;
/// Fewer bits for a key are not worth asking, and more are not worth having.
const BITS: [u64; 2] = [2, 14];
/// Memory comes in pages.
const LEAST_BYTES: u64 = 4096;
/// Bits that are set for a key, at most.
const MOST_PROBES: u32 = 8;

#[derive(Debug)]
pub struct Filter {
    region: Region,
    lines: u64,
    probes: u32,
    /// Leading bits that are the same in all keys.
    common_bits: u32,
}

impl Filter {
    /// A filter for `keys` in about so many bytes, or in fewer if they need no more; none if that is too little.
    pub fn new(keys: u64, bytes: u64, common_bits: u32, grant: &Grant) -> Option<Filter> {
        let bits = (bytes * 8 / keys.max(1)).min(BITS[1]);
        if bits < BITS[0] || bytes < LEAST_BYTES {
            return None;
        }
        let lines = (keys * bits / LINE_BITS as u64).max(1);
        let mut region = Region::sized(lines as usize * LINE * 8, grant.clone());
        // About 0.7 of them, as is best if keys fell on single bits.
        let probes = (bits as u32 * 7 / 10).clamp(1, MOST_PROBES);
        region.grow(lines as usize * LINE * 8).then_some(Filter { region, lines, probes, common_bits })
    }

    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// The line of a key and a hash.
    #[inline(always)]
    fn place(&self, key: u128) -> (usize, u64) {
        let leading = ((key << self.common_bits) >> 64) as u64;
        let line = (leading as u128 * self.lines as u128) >> 64;
        let hash = ((key >> 64) as u64 ^ (key as u64).rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (line as usize * LINE, hash ^ hash >> 32)
    }

    pub fn add(&mut self, key: u128) {
        let (line, mut hash) = self.place(key);
        let line = &mut self.region.pairs_mut()[line..line + LINE];
        for _ in 0..self.probes {
            let bit = hash as usize % LINE_BITS;
            line[bit / 64] |= 1 << (bit % 64);
            hash = next(hash);
        }
    }

    /// May the key have been added?
    pub fn may_know(&self, key: u128) -> bool {
        let (line, mut hash) = self.place(key);
        let line = &self.region.pairs()[line..line + LINE];
        (0..self.probes).all(|_| {
            let bit = hash as usize % LINE_BITS;
            hash = next(hash);
            line[bit / 64] >> (bit % 64) & 1 == 1
        })
    }
}

/// The hash that chooses the next bit: nine others, then a few at a time come round.
#[inline(always)]
fn next(hash: u64) -> u64 {
    hash.rotate_right(9).wrapping_add(0x2545)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use plimsoll_ir::random::Draw;

    #[test]
    fn what_was_added_is_known_and_most_other_keys_are_not() {
        let mut draw = Draw::new(0);
        // Bits for each key, and how many unknown keys of a thousand may be taken for known.
        for (bits, common, most_wrong) in [(2, 0, 420), (3, 3, 290), (4, 0, 180), (6, 8, 80), (10, 0, 18), (14, 2, 8)] {
            let mut key = || ((draw.bits() as u128) << 64 | draw.bits() as u128 >> 20 << 20) << common >> common;
            let keys: Vec<u128> = (0..50_000).map(|_| key()).collect();
            let grant = Budget::new(1 << 20).grant("filter", u64::MAX);
            let mut filter = Filter::new(50_000, 50_000 * bits / 8, common, &grant).unwrap();
            assert!(filter.bytes() as u64 <= 50_000 * bits / 8 + 4096);
            keys.iter().for_each(|&key| filter.add(key));
            assert!(keys.iter().all(|&key| filter.may_know(key)));
            let wrong = (0..50_000).filter(|_| filter.may_know(key())).count();
            assert!(wrong < 50 * most_wrong, "{bits} bits: {wrong} of 50000");
        }
        assert!(Filter::new(1000, 200, 0, &Grant::unlimited()).is_none());
        assert!(Filter::new(1000, 2000, 0, &Budget::new(100).grant("none", 100)).is_none());
    }
}
