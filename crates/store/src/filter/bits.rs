//! Bit-state hashing: a few bits for each key, all in one line (a blocked Bloom filter).

use super::New;
use crate::arena::Line;
use crate::odds::Sum;

/// Bits of a line, and of the number of one.
const LINE_BITS: usize = 512;
const PLACE_BITS: u32 = 9;
/// A word has the numbers of so many bits.
const PLACES_PER_WORD: u32 = u64::BITS / PLACE_BITS;
const ODD: u64 = 0xA24B_AED4_963E_E407;
/// More would fill a line with a few dozen keys.
pub const MOST_BITS_PER_STATE: u32 = 16;

#[derive(Debug)]
pub(super) struct Bits {
    /// How many bits are set for a key.
    count: u32,
    /// What a new key adds to the odds where so many bits of the line are set.
    odds: [Sum; LINE_BITS + 1],
}

impl Bits {
    pub fn new(count: u32) -> Bits {
        assert!((1..=MOST_BITS_PER_STATE).contains(&count));
        let odds = |set: usize| Sum::of_place((set as f64 / LINE_BITS as f64).powi(count as i32));
        Bits { count, odds: std::array::from_fn(odds) }
    }

    /// The bits of a key; the same one may be there twice.
    #[inline(always)]
    fn places(&self, key: u64) -> impl Iterator<Item = (usize, u32)> {
        let mut left = key;
        (0..self.count).map(move |number| {
            if number > 0 && number % PLACES_PER_WORD == 0 {
                left = (key ^ key >> 29 ^ number as u64).wrapping_mul(ODD);
                left ^= left >> 32;
            }
            let place = left as usize % LINE_BITS;
            left >>= PLACE_BITS;
            (place / 32, 1 << (place % 32))
        })
    }

    #[inline(always)]
    pub fn insert(&self, line: &mut Line, key: u64) -> New {
        if self.places(key).all(|(word, bit)| line[word] & bit != 0) {
            return None;
        }
        let set: u32 = line.iter().map(|word| word.count_ones()).sum();
        self.places(key).for_each(|(word, bit)| line[word] |= bit);
        Some(self.odds[set as usize])
    }
}
