//! Keys that wait outside while the lines of a table are put in order.

use crate::arena::{Arena, Beside};

/// So few need no memory worth asking for.
const FEW: usize = 256;
/// By so many bytes it grows where more come than were expected.
const STEP: usize = 8 << 10;

/// Keys in memory of their own, each with a tag where tables have those. Much of it goes back to the system at once: what an
/// allocator keeps nobody else can use.
#[derive(Debug)]
pub(crate) struct Waiting<const LONG: bool, const TAGGED: bool> {
    region: Beside,
    len: usize,
    /// Those for which there is no memory: more than were expected.
    others: Vec<(u128, u16)>,
}

impl<const LONG: bool, const TAGGED: bool> Waiting<LONG, TAGGED> {
    /// Words of a key, short ones of which end with zeros, and of its tag.
    const WORDS: usize = 1 + LONG as usize + TAGGED as usize;

    /// Room for about `count` keys, if there is memory for that.
    pub fn new(count: usize, arena: &Arena) -> Option<Self> {
        let region = arena.beside(if count > FEW { count * Self::WORDS * 8 } else { 0 })?;
        Some(Waiting { region, len: 0, others: Vec::new() })
    }

    /// Memory that was taken.
    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    pub fn push(&mut self, key: u128, tag: u16) {
        let place = self.len * Self::WORDS..(self.len + 1) * Self::WORDS;
        if place.end * 8 > self.region.bytes() && !self.region.grow(place.end * 8 + STEP) {
            return self.others.push((key, tag));
        }
        let place = &mut self.region.pairs_mut()[place];
        place[0] = (key >> 64) as u64;
        if LONG {
            place[1] = key as u64;
        }
        if TAGGED {
            place[Self::WORDS - 1] = tag as u64;
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
        let budget = Budget::new(128 << 10);
        let arena = Arena::new(budget.grant("arena", u64::MAX));
        let mut long = Waiting::<true, true>::new(300, &arena).unwrap();
        let keys: Vec<(u128, u16)> = (0..10_000).map(|key| (key << 64 | (key + 7), key as u16)).collect();
        keys.iter().for_each(|&(key, tag)| long.push(key, tag));
        assert!(long.keys().eq(keys.iter().copied()) && !long.others.is_empty());
        assert!(Waiting::<false, false>::new(1 << 20, &arena).is_none());
        drop((long, arena));
        assert_eq!(budget.used_bytes(), 0);
    }
}
