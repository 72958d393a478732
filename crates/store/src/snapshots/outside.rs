//! States that wait while their table is put in order. They have memory of their own, which goes back to the system at once:
//! what an allocator keeps would be taken twice.

use crate::budget::Grant;
use crate::region::Region;

/// Words of a key and a tag.
const WORDS: usize = 5;
/// States for which memory is taken at a time.
const STEP: usize = 1024;

#[derive(Debug)]
pub(super) struct Outside {
    region: Region,
    len: usize,
    /// Those for whom there was none.
    more: Vec<(u128, u16)>,
}

impl Outside {
    /// Bytes for so many states.
    pub fn bytes(states: usize) -> usize {
        states.next_multiple_of(STEP) * WORDS * 4
    }

    /// For at most so many states; `more` are there already.
    pub fn new(most: usize, more: Vec<(u128, u16)>, grant: Grant) -> Outside {
        Outside { region: Region::sized(Outside::bytes(most + 1), grant), len: 0, more }
    }

    pub fn push(&mut self, key: u128, tag: u16) {
        let at = self.len * WORDS;
        if at * 4 + WORDS * 4 > self.region.bytes() && !self.region.grow(Outside::bytes(self.len + 1)) {
            return self.more.push((key, tag));
        }
        let words = &mut self.region.words_mut()[at..at + WORDS];
        (0..4).for_each(|word| words[word] = (key >> (32 * word)) as u32);
        words[4] = tag as u32;
        self.len += 1;
    }

    pub fn for_each(mut self, mut act: impl FnMut(u128, u16)) {
        for words in self.region.words_mut().chunks_exact(WORDS).take(self.len) {
            let key = (0..4).fold(0, |key, word| key | (words[word] as u128) << (32 * word));
            act(key, words[4] as u16);
        }
        self.more.into_iter().for_each(|(key, tag)| act(key, tag));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn all_come_back_whatever_memory_there_is() {
        for bytes in [0, 30 << 10, 10 << 20] {
            let budget = Budget::new(bytes);
            let mut outside = Outside::new(5000, vec![(u128::MAX, 9)], budget.grant("outside", bytes));
            (0..5000u128).for_each(|number| outside.push(number << 100 | number, number as u16));
            assert!(budget.used_bytes() <= bytes);
            let mut sum = 0;
            outside.for_each(|key, tag| {
                sum += 1;
                assert!(key as u16 == tag || key == u128::MAX);
            });
            assert_eq!((sum, budget.used_bytes()), (5001, 0));
        }
    }
}
