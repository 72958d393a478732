//! Keys that wait outside while the lines of a table are put in order.

use crate::arena::{Arena, Beside};

/// So few need no memory worth asking for; for more of them it grows by so many words.
const FEW: usize = 256;
const STEP: usize = 1024;

/// Keys in memory of their own, each with a tag where tables have those. Much of it goes back to the system at once: what an
/// allocator keeps nobody else can use.
#[derive(Debug)]
pub(crate) struct Waiting<const LONG: bool, const TAGGED: bool> {
    region: Beside,
    len: usize,
    /// Those for which there is no memory, and the first few that were not expected.
    others: Vec<(u128, u16)>,
}

impl<const LONG: bool, const TAGGED: bool> Waiting<LONG, TAGGED> {
    /// Words of a key, short ones of which end with zeros, and of its tag.
    const WORDS: usize = 1 + LONG as usize + TAGGED as usize;

    /// Room for about `count` keys, if there is memory for that, and for up to `most` if it turns out that there are more.
    pub fn new(count: usize, most: usize, arena: &Arena) -> Option<Self> {
        let bytes = |count: usize| count * Self::WORDS * 8;
        let region = arena.beside(if count > FEW { bytes(count) } else { 0 }, bytes(most.max(count)))?;
        Some(Waiting { region, len: 0, others: Vec::new() })
    }

    /// Memory that was taken.
    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    pub fn push(&mut self, key: u128, tag: u16) {
        let range = self.len * Self::WORDS..(self.len + 1) * Self::WORDS;
        if range.end * 8 > self.region.bytes() && (self.others.len() < FEW || !self.region.grow((range.end + STEP) * 8))
        {
            return self.others.push((key, tag));
        }
        let words = &mut self.region.pairs_mut()[range];
        words[0] = (key >> 64) as u64;
        if LONG {
            words[1] = key as u64;
        }
        if TAGGED {
            words[Self::WORDS - 1] = tag as u64;
        }
        self.len += 1;
    }

    pub fn keys(&self) -> impl Iterator<Item = (u128, u16)> + '_ {
        let key = |words: &[u64]| (words[0] as u128) << 64 | if LONG { words[1] as u128 } else { 0 };
        let tag = |words: &[u64]| if TAGGED { words[Self::WORDS - 1] as u16 } else { 0 };
        let all = self.region.pairs()[..self.len * Self::WORDS].chunks_exact(Self::WORDS);
        all.map(move |words| (key(words), tag(words))).chain(self.others.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn more_keys_than_expected_are_kept_too() {
        let budget = Budget::new(64 << 10);
        let arena = Arena::new(budget.grant("arena", u64::MAX));
        let keys: Vec<(u128, u16)> = (0..5_000).map(|key| (key << 64 | (key + 7), key as u16)).collect();
        let mut long = Waiting::<true, true>::new(300, 5_000, &arena).unwrap();
        keys.iter().for_each(|&(key, tag)| long.push(key, tag));
        assert!(long.len > 2_000 && long.others.len() > FEW && budget.used_bytes() <= 64 << 10);
        let mut found: Vec<(u128, u16)> = long.keys().collect();
        found.sort_unstable();
        assert_eq!(found, keys);
        drop(long);
        let mut short = Waiting::<false, false>::new(0, 5_000, &arena).unwrap();
        keys.iter().for_each(|&(key, tag)| short.push(key, tag));
        let mut found: Vec<u128> = short.keys().map(|(key, _)| key >> 64).collect();
        found.sort_unstable();
        assert!(short.others.len() == FEW && found.into_iter().eq(0..5_000));
        drop(short);
        assert!(Waiting::<false, false>::new(1 << 20, 1 << 20, &arena).is_none());
        assert_eq!(budget.used_bytes(), 0);
    }
}
