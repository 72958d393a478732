//! Hash compaction: of a state its digest is kept, so two states may be taken for one.
//!
//! Digests are keys like any others: their leading bits look random. So the tables of packed keys hold them, and they are all
//! that a Bloom filter asks for. What is lost is known: see [`crate::odds`].
//! (Wolper and Leroy 1993; Stern and Dill 1995; Holzmann 1998 for filters; Dillinger and Manolios 2009 for what adapts.)

use crate::hash;

/// How many bits a digest has where a filter holds states.
pub const MOST_BITS: u32 = 128;

/// A codec that tells states apart by their digests only.
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    width: usize,
    bits: u32,
    pub(crate) held: Held,
}

/// How digests are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// As they are.
    Whole,
    /// As so many bits of a filter each.
    Bits(u32),
    /// As much of each as there is room for, and in the end as bits of a filter.
    Adaptive,
}

impl Digest {
    pub fn new(width: usize, bits: u32, held: Held) -> Digest {
        assert!((1..=MOST_BITS).contains(&bits));
        Digest { width, bits, held }
    }

    /// Words per state.
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Appends the digests of `states`, which are end to end, left-aligned.
    pub(crate) fn encode(&self, states: &[u32], high: &mut Vec<u64>, low: &mut Vec<u64>) {
        let states = states.chunks_exact(self.width);
        if self.bits <= u64::BITS {
            let mask = u64::MAX << (u64::BITS - self.bits);
            high.extend(states.map(|state| hash::digest(state).0 & mask));
            return;
        }
        for (first, second) in states.map(|state| self.of(state)) {
            high.push(first);
            low.push(second);
        }
    }

    /// The digest of one state, of more than 64 bits.
    #[inline(always)]
    pub(crate) fn of(&self, state: &[u32]) -> (u64, u64) {
        let (first, second) = hash::digest(state);
        (first, second & (u128::MAX << (u128::BITS - self.bits)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Pairs of equal keys among structured states, which must be as rare as if digests were drawn by chance.
    #[test]
    fn digests_of_structured_states_collide_like_random_ones() {
        type Set = (usize, fn(u32) -> Vec<u32>);
        let sets: [Set; 4] = [
            (1, |number| vec![number]),
            (3, |number| vec![number % 64, number / 64 % 64, number / 4096]),
            (9, |number| (0..9).map(|place| (number >> (2 * place)) & 3).collect()),
            (40, |number| (0..40).map(|place| if place == 17 { number << 12 } else { place }).collect()),
        ];
        const COUNT: u32 = 1 << 18;
        for (set, (width, state)) in sets.into_iter().enumerate() {
            let states: Vec<u32> = (0..COUNT).flat_map(state).collect();
            for bits in [24, 30, 34] {
                let (mut high, mut low) = (Vec::new(), Vec::new());
                Digest::new(width, bits, Held::Whole).encode(&states, &mut high, &mut low);
                Digest::new(width, 64 + bits, Held::Whole).encode(&states, &mut Vec::new(), &mut low);
                for keys in [&high, &low] {
                    assert!(keys.iter().all(|key| key.trailing_zeros() >= 64 - bits));
                    let distinct = keys.iter().collect::<HashSet<_>>().len() as f64;
                    let all = (bits as f64).exp2();
                    let expected = COUNT as f64 - all * -(-(COUNT as f64) / all).exp_m1();
                    let missed = COUNT as f64 - distinct;
                    let spread = 5.0 * expected.sqrt() + 2.0;
                    assert!((missed - expected).abs() < spread, "set {set}, {bits} bits: {missed} for {expected}");
                }
            }
        }
    }
}
