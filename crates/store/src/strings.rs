//! A set of byte strings of different lengths, and of nothing but their bytes: an index of four bytes for each, and the strings
//! end to end, each after its length.

use crate::budget::{Full, Grant};
use crate::hash;
use crate::region::{Region, prefetch};

/// Strings are so long at most: two bytes tell how long one is.
pub const MOST_BYTES: usize = u16::MAX as usize;
const FIRST_SLOTS: usize = 256;
const LOAD_PERCENT: usize = 75;
const GROWTH_PERCENT: usize = 150;
/// By how much the strings grow at a time, and at least.
const BYTES_GROWTH_PERCENT: usize = 112;
const FIRST_BYTES: usize = 4096;

/// A growing set of strings, which belong to one of 2^`told_bits` sets by the leading bits of their hashes.
#[derive(Debug)]
pub struct Strings {
    told_bits: u32,
    /// Bytes that tell a length.
    head: usize,
    /// Where strings begin, plus one; by hash. Zero is an empty place.
    index: Region,
    slots: usize,
    strings: Region,
    /// Bytes of all strings so far.
    end: usize,
    len: usize,
    grant: Grant,
}

impl Strings {
    /// A set of strings of at most so many bytes.
    pub fn new(most_bytes: usize, told_bits: u32, grant: &Grant) -> Result<Strings, Full> {
        assert!(most_bytes <= MOST_BYTES);
        let head = if most_bytes <= u8::MAX as usize { 1 } else { 2 };
        let (index, strings) = (region(told_bits, grant), region(told_bits, grant));
        let mut set = Strings { told_bits, head, index, slots: 0, strings, end: 0, len: 0, grant: grant.clone() };
        set.grow(FIRST_SLOTS)?;
        Ok(set)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.strings.bytes()
    }

    /// Bytes of the strings alone.
    pub fn own_bytes(&self) -> usize {
        self.end - self.len * self.head
    }

    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.index.words()[self.home(hash)]);
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash::scale(hash << self.told_bits, self.slots)
    }

    /// The string that begins there.
    fn string(&mut self, start: usize) -> &[u8] {
        let head = self.head;
        let bytes = &all_bytes(&mut self.strings)[start..];
        let len = bytes[..head].iter().fold(0, |len, &byte| len << 8 | byte as usize);
        &bytes[head..][..len]
    }

    /// The place of a string with this hash, and whether it is there.
    fn find(&mut self, string: &[u8], hash: u64) -> (usize, bool) {
        let mut place = self.home(hash);
        loop {
            let start = self.index.words_mut()[place] as usize;
            if start == 0 || self.string(start - 1) == string {
                return (place, start != 0);
            }
            place = if place + 1 == self.slots { 0 } else { place + 1 };
        }
    }

    /// Is a string with this hash there?
    pub fn contains(&mut self, string: &[u8], hash: u64) -> bool {
        self.find(string, hash).1
    }

    /// Gives up all strings, and keeps the memory.
    pub fn clear(&mut self) {
        self.index.words_mut()[..self.slots].fill(0);
        (self.end, self.len) = (0, 0);
    }

    /// Inserts a string with this hash; true if it was not there. What is there is known also when nothing more fits.
    pub fn insert(&mut self, string: &[u8], hash: u64) -> Result<bool, Full> {
        let (mut place, known) = self.find(string, hash);
        if known {
            return Ok(false);
        }
        if (self.len + 1) * 100 > self.slots * LOAD_PERCENT {
            let comfortable = self.slots * GROWTH_PERCENT / 100;
            self.grow(comfortable).or_else(|Full| self.grow(self.slots + self.slots / 16))?;
            place = self.find(string, hash).0;
        }
        let (start, end) = (self.end, self.end + self.head + string.len());
        if end > self.strings.bytes() {
            let comfortable = (self.strings.bytes() * BYTES_GROWTH_PERCENT / 100).max(FIRST_BYTES).max(end);
            if !self.strings.grow(comfortable) && !self.strings.grow(end) {
                return Err(Full);
            }
        }
        let number = u32::try_from(start + 1).map_err(|_| Full)?;
        let head = self.head;
        let bytes = &mut all_bytes(&mut self.strings)[start..end];
        bytes[..head].copy_from_slice(&(string.len() as u16).to_be_bytes()[2 - head..]);
        bytes[head..].copy_from_slice(string);
        self.index.words_mut()[place] = number;
        (self.end, self.len) = (end, self.len + 1);
        Ok(true)
    }

    /// Visits all strings in the order in which they came.
    pub fn visit(&mut self, mut visit: impl FnMut(&[u8])) {
        let mut start = 0;
        while start < self.end {
            let string = self.string(start);
            let len = string.len();
            visit(string);
            start += self.head + len;
        }
    }

    /// A larger index, which takes the place of the one there is.
    fn grow(&mut self, slots: usize) -> Result<(), Full> {
        let mut larger = region(self.told_bits, &self.grant);
        if !larger.grow(slots * 4) {
            return Err(Full);
        }
        self.slots = slots;
        let mut start = 0;
        while start < self.end {
            let string = self.string(start);
            let (hash, len) = (hash::bytes(string), string.len());
            let mut place = self.home(hash);
            let places = larger.words_mut();
            while places[place] != 0 {
                place = if place + 1 == slots { 0 } else { place + 1 };
            }
            places[place] = start as u32 + 1;
            start += self.head + len;
        }
        self.index = larger;
        Ok(())
    }
}

/// One of two for each set.
fn region(told_bits: u32, grant: &Grant) -> Region {
    Region::one_of(2 << told_bits, usize::MAX, grant.clone())
}

fn all_bytes(region: &mut Region) -> &mut [u8] {
    bytemuck::cast_slice_mut(region.words_mut())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use plimsoll_ir::random::Draw;
    use std::collections::HashSet;

    #[test]
    fn agrees_with_a_hash_set() {
        for most in [3, 40, 700] {
            let (mut draw, mut twin) = (Draw::new(most as u64), HashSet::new());
            let mut set = Strings::new(most, 0, &Grant::unlimited()).unwrap();
            for _ in 0..30_000 {
                let len = draw.below(most as u64 + 1) as usize;
                let string: Vec<u8> = (0..len).map(|_| draw.below(if most == 3 { 256 } else { 2 }) as u8).collect();
                assert_eq!(set.insert(&string, hash::bytes(&string)).unwrap(), twin.insert(string));
            }
            assert_eq!(set.len(), twin.len());
            set.visit(|string| assert!(twin.remove(string)));
            assert!(twin.is_empty());
        }
    }

    #[test]
    fn a_full_set_says_so_and_stays_within_its_grant() {
        let budget = Budget::new(300 << 10);
        let mut set = Strings::new(20, 0, &budget.grant("strings", 300 << 10)).unwrap();
        let string = |number: u32| [&number.to_be_bytes()[..], &[7; 9]].concat();
        let held =
            (0..).take_while(|&number| set.insert(&string(number), hash::bytes(&string(number))).is_ok()).count();
        assert!(held > 10_000 && budget.used_bytes() <= 300 << 10, "{held}");
        assert!((0..held as u32).all(|number| set.insert(&string(number), hash::bytes(&string(number))) == Ok(false)));
    }
}
