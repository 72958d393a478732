//! Keys that wait outside while the lines of a part are spread.

use crate::arena::{Arena, Beside};

/// So few need no memory worth asking for.
const FEW: usize = 256;

/// Keys in memory of their own. Much of it goes back to the system at once: what an allocator keeps nobody else can use.
#[derive(Debug)]
pub struct Waiting {
    region: Beside,
    len: usize,
    /// Those for which there is no room: more than were expected.
    others: Vec<u128>,
}

impl Waiting {
    /// Room for about `count` keys, if there is memory for that.
    pub fn new<const LONG: bool>(count: usize, arena: &Arena) -> Option<Waiting> {
        let region = arena.beside(if count > FEW { count * words::<LONG>() * 8 } else { 0 })?;
        Some(Waiting { region, len: 0, others: Vec::new() })
    }

    pub fn push<const LONG: bool>(&mut self, key: u128) {
        let first = self.len * words::<LONG>();
        match self.region.pairs_mut().get_mut(first..first + words::<LONG>()) {
            Some(place) => {
                place[0] = (key >> 64) as u64;
                if LONG {
                    place[1] = key as u64;
                }
                self.len += 1;
            }
            None => self.others.push(key),
        }
    }

    pub fn keys<const LONG: bool>(&self) -> impl Iterator<Item = u128> + '_ {
        let key = |words: &[u64]| (words[0] as u128) << 64 | if LONG { words[1] as u128 } else { 0 };
        let all = self.region.pairs()[..self.len * words::<LONG>()].chunks_exact(words::<LONG>());
        all.map(key).chain(self.others.iter().copied())
    }
}

/// Words of a key: short ones end with zeros.
const fn words<const LONG: bool>() -> usize {
    1 + LONG as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn more_keys_than_expected_are_kept_too() {
        let budget = Budget::new(1 << 20);
        let arena = Arena::new(budget.grant("arena", u64::MAX));
        let mut long = Waiting::new::<true>(300, &arena).unwrap();
        let keys: Vec<u128> = (0..10_000).map(|key| key << 64 | (key + 7)).collect();
        keys.iter().for_each(|&key| long.push::<true>(key));
        assert!(long.keys::<true>().eq(keys.iter().copied()) && !long.others.is_empty());
        assert!(Waiting::new::<false>(1 << 20, &arena).is_none());
        drop((long, arena));
        assert_eq!(budget.used_bytes(), 0);
    }
}
