//! States of few bits, without a tree: the used bits, put together and mixed, are the key.
//!
//! Words are taken in pairs; the bits that a pair uses are moved together in six steps (the k-th step moves by 2^k
//! those bits whose distance has that bit). The joined number is mixed by a bijection, so that its leading bits look
//! random: that is what [`crate::packed`] asks for. Keys are left-aligned: what they do not use are low bits.

/// States with more bits need another codec.
pub const MOST_BITS: u32 = 128;
/// States of so many bits begin packed: a search of few states needs no more. What many of them take is known then.
pub const FEW_BITS: u32 = 60;
/// States of so many bits take fewer bytes than in any tree.
pub const FEWEST_BITS: u32 = 36;
/// Homes need some bits.
const LEAST_BITS: u32 = 24;
const STEPS: usize = 6;
const ODD: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xC2B2_AE3D_27D4_EB4F];

/// Multiplied by those of the first two that gives one.
const INVERSE: [u64; 2] = [inverse(ODD[0]), inverse(ODD[1])];

/// An odd number is its own inverse to three bits; every step doubles them.
const fn inverse(odd: u64) -> u64 {
    let (mut inverse, mut step) = (odd, 0);
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

/// How the words of a state become a key.
#[derive(Clone, Debug)]
pub struct Packing {
    width: usize,
    pairs: Vec<Pair>,
    bits: u32,
}

/// Two words of a state, or the last one.
#[derive(Clone, Copy, Debug)]
struct Pair {
    used: u64,
    /// Bits that move in each step.
    moves: [u64; STEPS],
    /// Where the joined bits go in the key.
    left: u32,
}

impl Packing {
    /// The packing of states whose words use these bits, if there are not too many.
    pub fn new(used: &[u32]) -> Option<Packing> {
        let bits: u32 = used.iter().map(|word| word.count_ones()).sum();
        if bits > MOST_BITS {
            return None;
        }
        // Where there are fewer bits than a key has, leading ones are zero.
        let mut left = u128::BITS - LEAST_BITS.saturating_sub(bits);
        let pairs = used.chunks(2).map(pair_of).map(|used| {
            left -= used.count_ones();
            Pair::new(used, left.min(u128::BITS - 1))
        });
        Some(Packing { width: used.len(), pairs: pairs.collect(), bits: bits.max(LEAST_BITS) })
    }

    /// Words per state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bits of a key.
    pub fn key_bits(&self) -> u32 {
        self.bits
    }

    /// Appends the keys of `states`, which are end to end, to `high` and, if they have more than 64 bits, `low`.
    pub fn encode(&self, states: &[u32], high: &mut Vec<u64>, low: &mut Vec<u64>) {
        let unknown = self.encode_fast(states, high, low);
        // Two states that differ there would have one key.
        assert!(unknown == 0, "a state has bits that its model says are never used");
    }

    /// Returns the bits that should be zero.
    fn encode_fast(&self, states: &[u32], high: &mut Vec<u64>, low: &mut Vec<u64>) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has what the function asks for.
            return unsafe { self.encode_with_pext(states, high, low) };
        }
        self.encode_with(states, high, low, Pair::join)
    }

    /// The processor moves bits together in one instruction.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi2")]
    fn encode_with_pext(&self, states: &[u32], high: &mut Vec<u64>, low: &mut Vec<u64>) -> u64 {
        self.encode_with(states, high, low, |pair, words| core::arch::x86_64::_pext_u64(words, pair.used))
    }

    #[inline(always)]
    fn encode_with(
        &self,
        states: &[u32],
        high: &mut Vec<u64>,
        low: &mut Vec<u64>,
        join: impl Fn(&Pair, u64) -> u64,
    ) -> u64 {
        if self.bits > u64::BITS {
            return self.encode_long(states, high, low, join);
        }
        match self.width {
            1 => self.encode_narrow::<1>(states, high, join),
            2 => self.encode_narrow::<2>(states, high, join),
            3 => self.encode_short(states.as_chunks::<3>().0, high, join),
            4 => self.encode_short(states.as_chunks::<4>().0, high, join),
            5 => self.encode_short(states.as_chunks::<5>().0, high, join),
            6 => self.encode_short(states.as_chunks::<6>().0, high, join),
            width => self.encode_short(states.chunks_exact(width), high, join),
        }
    }

    /// Several pairs with at most 64 bits in all.
    #[inline(always)]
    fn encode_short<S: AsRef<[u32]>>(
        &self,
        states: impl IntoIterator<Item = S>,
        high: &mut Vec<u64>,
        join: impl Fn(&Pair, u64) -> u64,
    ) -> u64 {
        let mut unknown = 0;
        high.extend(states.into_iter().map(|state| {
            let mut joined = 0;
            for (words, pair) in state.as_ref().chunks(2).zip(&self.pairs) {
                let words = pair_of(words);
                unknown |= words & !pair.used;
                // The last pairs may use no bits at all.
                joined |= join(pair, words) << pair.left.saturating_sub(64);
            }
            self.scrambled(joined)
        }));
        unknown
    }

    #[inline(always)]
    fn encode_long(
        &self,
        states: &[u32],
        high: &mut Vec<u64>,
        low: &mut Vec<u64>,
        join: impl Fn(&Pair, u64) -> u64,
    ) -> u64 {
        let mut unknown = 0;
        for state in states.chunks_exact(self.width) {
            let mut joined = 0;
            for (words, pair) in state.chunks(2).zip(&self.pairs) {
                let words = pair_of(words);
                unknown |= words & !pair.used;
                joined |= (join(pair, words) as u128) << pair.left;
            }
            let mixed = self.mixed(joined);
            high.push((mixed >> 64) as u64);
            low.push(mixed as u64);
        }
        unknown
    }

    /// One pair, hence at most 64 bits.
    #[inline(always)]
    fn encode_narrow<const WIDTH: usize>(
        &self,
        states: &[u32],
        high: &mut Vec<u64>,
        join: impl Fn(&Pair, u64) -> u64,
    ) -> u64 {
        let (pair, left) = (self.pairs[0], self.pairs[0].left - u64::BITS);
        let mut unknown = 0;
        high.extend(states.as_chunks::<WIDTH>().0.iter().map(|state| {
            let words = pair_of(state);
            unknown |= words & !pair.used;
            self.scrambled(join(&pair, words) << left)
        }));
        unknown
    }

    /// Appends the state whose key has these words, leading ones first, to `state`.
    pub fn decode(&self, key: &[u32], state: &mut Vec<u32>) {
        let half = |words: &[u32]| (words[0] as u64) << 32 | words[1] as u64;
        let low = if key.len() > 2 { half(&key[2..]) } else { 0 };
        let high = self.unscrambled(half(key)) ^ taken_in(low);
        let joined = (high as u128) << 64 | low as u128;
        let end = state.len() + self.width;
        for pair in &self.pairs {
            let words = pair.part((joined >> pair.left) as u64);
            state.extend([words as u32, (words >> 32) as u32]);
        }
        state.truncate(end);
    }

    /// The upper half takes in the lower one, which stays as it is, and is scrambled.
    #[inline(always)]
    fn mixed(&self, joined: u128) -> u128 {
        let (high, low) = ((joined >> 64) as u64, joined as u64);
        (self.scrambled(high ^ taken_in(low)) as u128) << 64 | low as u128
    }

    /// A bijection on the upper `bits` bits. Multiplying by an odd number carries every bit upwards; in between the
    /// upper half of the bits reaches the lower one.
    #[inline(always)]
    fn scrambled(&self, high: u64) -> u64 {
        let product = high.wrapping_mul(ODD[0]);
        let unused = u64::BITS.saturating_sub(self.bits);
        (product ^ product >> ((u64::BITS - unused) / 2) >> unused << unused).wrapping_mul(ODD[1])
    }

    /// What was scrambled to this.
    fn unscrambled(&self, scrambled: u64) -> u64 {
        let unused = u64::BITS.saturating_sub(self.bits);
        let half = (u64::BITS - unused) / 2;
        let mixed = scrambled.wrapping_mul(INVERSE[1]);
        // The lower half is the upper one away from what it was, and the last bit of an odd number of bits a bit of that.
        let product = mixed ^ mixed >> half >> unused << unused;
        let product = mixed ^ product >> half >> unused << unused;
        product.wrapping_mul(INVERSE[0])
    }
}

/// What the upper half takes in from the lower one.
#[inline(always)]
fn taken_in(low: u64) -> u64 {
    (low ^ low >> 32).wrapping_mul(ODD[2])
}

#[inline(always)]
fn pair_of(words: &[u32]) -> u64 {
    words[0] as u64 | words.get(1).map_or(0, |&high| (high as u64) << 32)
}

impl Pair {
    fn new(used: u64, left: u32) -> Pair {
        let mut moves = [0; STEPS];
        for bit in (0..64).filter(|bit| used >> bit & 1 == 1) {
            // It has to go as many places as there are unused bits below it.
            let distance = (!used & ((1 << bit) - 1)).count_ones();
            let mut place = bit;
            for (step, moving) in moves.iter_mut().enumerate().filter(|(step, _)| distance >> step & 1 == 1) {
                *moving |= 1 << place;
                place -= 1 << step;
            }
        }
        Pair { used, moves, left }
    }

    /// Moves the used bits together.
    #[inline(always)]
    fn join(&self, words: u64) -> u64 {
        let mut joined = words & self.used;
        for (step, moving) in self.moves.iter().enumerate() {
            let moved = joined & moving;
            joined = (joined ^ moved) | moved >> (1 << step);
        }
        joined
    }

    /// Moves them back to their places; what else there is does not count.
    fn part(&self, joined: u64) -> u64 {
        let mut words = joined & 1u64.checked_shl(self.used.count_ones()).unwrap_or(0).wrapping_sub(1);
        for (step, moving) in self.moves.iter().enumerate().rev() {
            let moved = words & (moving >> (1 << step));
            words = (words ^ moved) | moved << (1 << step);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;
    use std::collections::HashSet;

    #[test]
    fn used_bits_move_together_in_order() {
        let mut draw = Draw::new(0);
        for _ in 0..2_000 {
            let (used, words) = (draw.bits() & draw.bits(), draw.bits());
            let bits = (0..64).filter(|bit| used >> bit & 1 == 1).map(|bit| words >> bit & 1);
            let expected = bits.enumerate().fold(0, |joined, (place, bit)| joined | bit << place);
            assert_eq!(Pair::new(used, 0).join(words), expected, "{used:#x}");
        }
        assert_eq!(Pair::new(u64::MAX, 0).join(77), 77);
        assert_eq!(Pair::new(0, 0).join(u64::MAX), 0);
    }

    #[test]
    fn different_states_have_different_keys_of_the_promised_size() {
        for used in
            [&[0xFF_u32][..], &[0b1011, 0xF0], &[7, 0, 0x8000_0001, 3, 0x0100_0000], &[1, 1, 1, 1, 1, 1, 1, 1, 1]]
        {
            let packing = Packing::new(used).unwrap();
            let states = used.iter().fold(vec![Vec::new()], |states: Vec<Vec<u32>>, &mask| {
                let values: Vec<u32> = (0..1 << mask.count_ones()).map(|value| spread(value, mask)).collect();
                states.iter().flat_map(|state| values.iter().map(|&value| [&state[..], &[value]].concat())).collect()
            });
            let keys = keys(&packing, &states.concat());
            let (mut high, mut low) = (Vec::new(), Vec::new());
            packing.encode_with(&states.concat(), &mut high, &mut low, Pair::join);
            assert_eq!(keys, joined(&high, &low), "with and without the instruction of the processor");
            assert!(keys.iter().all(|key| key.trailing_zeros() >= 128 - packing.key_bits()));
            assert_eq!(keys.iter().collect::<HashSet<_>>().len(), states.len());
            let mut decoded = Vec::new();
            for key in keys {
                let words = [96, 64, 32, 0].map(|shift| (key >> shift) as u32);
                packing.decode(&words[..if packing.key_bits() > u64::BITS { 4 } else { 2 }], &mut decoded);
            }
            assert_eq!(decoded, states.concat());
        }
        assert!(Packing::new(&[u32::MAX; 4]).is_some() && Packing::new(&[u32::MAX; 4]).unwrap().key_bits() == 128);
        assert!(Packing::new(&[u32::MAX, u32::MAX, u32::MAX, u32::MAX, 1]).is_none());
    }

    #[test]
    #[should_panic(expected = "never used")]
    fn a_state_with_other_bits_is_refused() {
        Packing::new(&[0xFF, 0x0F, 1]).unwrap().encode(&[0xFF, 0x0F, 1, 3, 0x10, 0], &mut Vec::new(), &mut Vec::new());
    }

    fn keys(packing: &Packing, states: &[u32]) -> Vec<u128> {
        let (mut high, mut low) = (Vec::new(), Vec::new());
        packing.encode(states, &mut high, &mut low);
        joined(&high, &low)
    }

    fn joined(high: &[u64], low: &[u64]) -> Vec<u128> {
        assert!(low.is_empty() || low.len() == high.len());
        let low = low.iter().copied().chain(std::iter::repeat(0));
        high.iter().zip(low).map(|(&high, low)| (high as u128) << 64 | low as u128).collect()
    }

    /// The bits of `value` in the places of `mask`.
    fn spread(value: u32, mask: u32) -> u32 {
        let places = (0..32).filter(|place| mask >> place & 1 == 1);
        places.enumerate().fold(0, |spread, (bit, place)| spread | (value >> bit & 1) << place)
    }

    /// Lines must fill like balls thrown at random: the variance of their fill is its mean.
    #[test]
    fn structured_states_spread_like_random_ones() {
        type Set = (&'static [u32], fn(u32) -> Vec<u32>);
        let sets: [Set; 5] = [
            (&[0x3_FFFF], |i| vec![i]),
            (&[0x3FF, 0x3FF], |i| vec![i % 1024, i / 1024]),
            (&[u32::MAX, u32::MAX], |i| vec![i % 1024, i / 1024 * 4]),
            (&[u32::MAX; 4], |i| vec![i % 32, (i / 32 % 32) << 20, i / 1024 % 32, (i / 32768) << 27]),
            (&[u32::MAX; 4], |i| vec![0, 0, 0, i]),
        ];
        for (number, (used, state)) in sets.iter().enumerate() {
            let packing = Packing::new(used).unwrap();
            let keys = keys(&packing, &(0..1 << 18).flat_map(state).collect::<Vec<_>>());
            let mut lines = vec![0u32; 1 << 14];
            keys.iter().for_each(|key| lines[(key >> (128 - 14)) as usize] += 1);
            let variance = lines.iter().map(|&fill| (fill as f64 - 16.0).powi(2)).sum::<f64>() / lines.len() as f64;
            assert!(variance < 20.0, "set {number}: variance {variance}, mean 16");
        }
    }
}
