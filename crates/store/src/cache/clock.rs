//! What a cache knows of time and chance, eight bits of each. Same insertions, same answers.
//!
//! Time passes with insertions only: a state that nobody meets leaves after about one turnover of the cache, however
//! many others are met meanwhile, so times may wrap round after two.

/// Times are counted in so many steps per turnover of the cache.
const TIMES_PER_TURNOVER: usize = 128;

/// Time and chance of one cache.
#[derive(Debug)]
pub(super) struct Clock {
    now: Moment,
    /// Insertions until time goes on.
    left: usize,
    random: u64,
}

/// A time, which wraps round, and a random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub time: u8,
    pub chance: u8,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { now: Moment { time: 0, chance: 0 }, left: 1, random: 0x853C_49E6_748F_EA9B }
    }

    pub fn now(&self) -> Moment {
        self.now
    }

    /// Something is inserted into a cache with room for `entries`.
    #[inline]
    pub fn tick(&mut self, entries: usize) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.now.chance = (self.random >> 24) as u8;
        self.left -= 1;
        if self.left == 0 {
            self.now.time = self.now.time.wrapping_add(1);
            self.left = entries.div_ceil(TIMES_PER_TURNOVER).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turnover_has_its_number_of_times() {
        for entries in [1, 127, 128, 12_800] {
            let mut clock = Clock::new();
            (0..entries).for_each(|_| clock.tick(entries));
            assert_eq!(clock.now().time as usize, entries.min(128), "{entries} entries");
        }
    }
}
