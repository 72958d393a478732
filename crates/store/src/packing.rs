//! States of few bits, without a tree: the bits that differ from state to state, put together and mixed, are the key.
//!
//! Words are taken in pairs; the bits that a pair uses are moved together ([`moves`]). The joined number is mixed by a bijection, so
//! that its leading bits look random: that is what [`crate::packed`] asks for. Keys are left-aligned: what they do not use are low bits.
//!
//! A model says which bits its states may use, and that is often twice as many as they do: counters of eight bits that go to five. So a
//! packing may be [narrowed](Packing::narrowed) to the bits in which the first states differ, and [widened](Packing::widen) when others
//! come: [`narrow`]. So also states that may use more bits than a key has can be packed, until they differ in too many.

mod moves;
mod narrow;

use moves::Move;
pub use narrow::Differing;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// States with more bits need another codec.
pub const MOST_BITS: u32 = 128;
/// States of so many bits begin packed: a search of few states needs no more. What many of them take is known then.
pub const FEW_BITS: u32 = 60;
/// States of so many bits take fewer bytes than in any tree.
pub const FEWEST_BITS: u32 = 36;
/// Homes need some bits.
const LEAST_BITS: u32 = 24;
/// States that are encoded at a time, where each is looked at several times.
const AT_ONCE: usize = 512;
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
    /// Bits that were added later, each lot with the number of its pair.
    added: Vec<(usize, Move)>,
    bits: u32,
    /// So many leading bits are mixed with each other.
    mixed_bits: u32,
    /// For each pair the bits in which states differed that keys do not tell.
    untold: Arc<[AtomicU64]>,
    /// Some state differs in more bits than a key has.
    is_outgrown: bool,
}

/// Two words of a state, or the last one.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// Bits that states may use.
    used: u64,
    /// Those that keys tell; in the others all states so far are like `base`.
    told: u64,
    base: u64,
    /// What keys tell from the beginning.
    first: Move,
}

/// Keys would not tell some state from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untold;

impl Packing {
    /// The packing of states whose words use these bits, if there are not too many.
    pub fn new(used: &[u32]) -> Option<Packing> {
        let bits: u32 = used.iter().map(|word| word.count_ones()).sum();
        let pairs = used.chunks(2).map(pair_of).map(|used| [used, used, 0]);
        (bits <= MOST_BITS).then(|| Packing::of_pairs(used.len(), pairs))
    }

    /// The same however many bits there are. Where they are too many keys tell nothing until they are to [tell](Packing::telling) something.
    pub fn of_any(used: &[u32]) -> Packing {
        let pairs = used.chunks(2).map(pair_of).map(|used| [used, 0, 0]);
        Packing::new(used).unwrap_or_else(|| Packing::of_pairs(used.len(), pairs))
    }

    /// Of pairs of words, given for each which bits states may use, which of those keys tell, and what the others are.
    fn of_pairs(width: usize, pairs: impl Iterator<Item = [u64; 3]> + Clone) -> Packing {
        let bits: u32 = pairs.clone().map(|[_, told, _]| told.count_ones()).sum();
        // Where there are fewer bits than a key has, leading ones are zero.
        let mut left = MOST_BITS - LEAST_BITS.saturating_sub(bits);
        let pairs = pairs.map(|[used, told, base]| {
            left -= told.count_ones();
            Pair { used, told, base, first: Move::new(told, left) }
        });
        let (pairs, bits): (Vec<Pair>, u32) = (pairs.collect(), bits.max(LEAST_BITS));
        let untold = pairs.iter().map(|_| AtomicU64::new(0)).collect();
        Packing { width, pairs, added: Vec::new(), bits, mixed_bits: bits.min(u64::BITS), untold, is_outgrown: false }
    }

    /// Words per state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bits of a key.
    pub fn key_bits(&self) -> u32 {
        self.bits
    }

    /// Appends the keys of `states`, which are end to end, to `high` and, if they have more than 64 bits, `low`. Where keys do not tell
    /// all of them what is appended means nothing, and the packing can be [widened](Packing::widen).
    pub fn encode(&self, states: &[u32], high: &mut Vec<u64>, low: &mut Vec<u64>) -> Result<(), Untold> {
        if self.encode_fast(states, high, low) == 0 {
            return Ok(());
        }
        self.note_untold(states);
        Err(Untold)
    }

    /// Returns bits in which states differ that keys do not tell.
    fn encode_fast(&self, states: &[u32], high: &mut Vec<u64>, low: &mut Vec<u64>) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has what the function asks for.
            return unsafe { self.encode_with_pext(states, high, low) };
        }
        self.encode_with(states, high, low, Move::join)
    }

    /// The processor moves bits together in one instruction.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi2")]
    fn encode_with_pext(&self, states: &[u32], high: &mut Vec<u64>, low: &mut Vec<u64>) -> u64 {
        self.encode_with(states, high, low, |moved, words| core::arch::x86_64::_pext_u64(words, moved.used))
    }

    #[inline(always)]
    fn encode_with(
        &self,
        states: &[u32],
        high: &mut Vec<u64>,
        low: &mut Vec<u64>,
        join: impl Fn(&Move, u64) -> u64,
    ) -> u64 {
        if self.bits > u64::BITS {
            return self.encode_long(states, high, low, join);
        }
        if !self.added.is_empty() {
            return self.encode_in_lots(states, high, join);
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
        join: impl Fn(&Move, u64) -> u64,
    ) -> u64 {
        let mut untold = 0;
        high.extend(states.into_iter().map(|state| {
            let mut joined = 0;
            for (words, pair) in state.as_ref().chunks(2).zip(&self.pairs) {
                let words = pair_of(words) ^ pair.base;
                untold |= words & !pair.told;
                // The last pairs may use no bits at all.
                joined |= join(&pair.first, words) << pair.first.left.saturating_sub(64);
            }
            self.scrambled(joined)
        }));
        untold
    }

    /// The same where bits were added: one lot of bits of all states after the other.
    #[inline(always)]
    fn encode_in_lots(&self, states: &[u32], high: &mut Vec<u64>, join: impl Fn(&Move, u64) -> u64) -> u64 {
        let mut untold = 0;
        for states in states.chunks(AT_ONCE * self.width) {
            let start = high.len();
            high.resize(start + states.len() / self.width, 0);
            let joined = &mut high[start..];
            for (number, pair) in self.pairs.iter().enumerate() {
                let left = pair.first.left.saturating_sub(64);
                self.each_pair(states, number, joined, |joined, words| {
                    untold |= words & !pair.told;
                    *joined |= join(&pair.first, words) << left;
                });
            }
            for (number, moved) in &self.added {
                let left = moved.left - 64;
                self.each_pair(states, *number, joined, |joined, words| *joined |= join(moved, words) << left);
            }
            joined.iter_mut().for_each(|joined| *joined = (self.mixed((*joined as u128) << 64) >> 64) as u64);
        }
        untold
    }

    /// Visits the words of a pair in all states, each with what there is for the state.
    #[inline(always)]
    fn each_pair<T>(&self, states: &[u32], number: usize, of: &mut [T], mut visit: impl FnMut(&mut T, u64)) {
        let (low, base) = (2 * number, self.pairs[number].base);
        let states = states.chunks_exact(self.width).zip(of);
        if low + 1 < self.width {
            states.for_each(|(state, of)| visit(of, pair_of(&state[low..low + 2]) ^ base));
        } else {
            states.for_each(|(state, of)| visit(of, pair_of(&state[low..=low]) ^ base));
        }
    }

    /// Keys of more than 64 bits.
    #[inline(always)]
    fn encode_long(
        &self,
        states: &[u32],
        high: &mut Vec<u64>,
        low: &mut Vec<u64>,
        join: impl Fn(&Move, u64) -> u64,
    ) -> u64 {
        let mut untold = 0;
        for state in states.chunks_exact(self.width) {
            let mut joined = 0;
            for (words, pair) in state.chunks(2).zip(&self.pairs) {
                let words = pair_of(words) ^ pair.base;
                untold |= words & !pair.told;
                joined |= (join(&pair.first, words) as u128) << pair.first.left;
            }
            for (number, moved) in &self.added {
                let words = pair_of(&state[2 * number..]) ^ self.pairs[*number].base;
                joined |= (join(moved, words) as u128) << moved.left;
            }
            let mixed = self.mixed(joined);
            high.push((mixed >> 64) as u64);
            low.push(mixed as u64);
        }
        untold
    }

    /// One pair, hence at most 64 bits.
    #[inline(always)]
    fn encode_narrow<const WIDTH: usize>(
        &self,
        states: &[u32],
        high: &mut Vec<u64>,
        join: impl Fn(&Move, u64) -> u64,
    ) -> u64 {
        let pair = self.pairs[0];
        let (mut untold, left) = (0, pair.first.left - u64::BITS);
        high.extend(states.as_chunks::<WIDTH>().0.iter().map(|state| {
            let words = pair_of(state) ^ pair.base;
            untold |= words & !pair.told;
            self.scrambled(join(&pair.first, words) << left)
        }));
        untold
    }

    /// Appends the state whose key has these words, leading ones first, to `state`; what they leave out is zero.
    pub fn decode(&self, key: &[u32], state: &mut Vec<u32>) {
        let half = |words: &[u32]| (words[0] as u64) << 32 | words[1] as u64;
        let low = if key.len() > 2 { half(&key[2..]) } else { 0 };
        let joined = self.unmixed(half(key), low);
        let (start, end) = (state.len(), state.len() + self.width);
        let part = |moved: &Move| moved.part((joined >> moved.left) as u64);
        for pair in &self.pairs {
            let words = part(&pair.first) ^ pair.base;
            state.extend([words as u32, (words >> 32) as u32]);
        }
        for (number, moved) in &self.added {
            let (words, at) = (part(moved), start + 2 * number);
            state[at] ^= words as u32;
            state[at + 1] ^= (words >> 32) as u32;
        }
        state.truncate(end);
    }

    /// The same for a key of any length, left-aligned.
    pub fn decode_whole(&self, key: u128, state: &mut Vec<u32>) {
        self.decode(&[96, 64, 32, 0].map(|shift| (key >> shift) as u32), state);
    }

    /// The leading bits take in the others, which stay as they are, and are scrambled.
    #[inline(always)]
    fn mixed(&self, joined: u128) -> u128 {
        let (high, low, mask) = ((joined >> 64) as u64, joined as u64, self.mixed_mask());
        let behind = high & !mask;
        let scrambled = self.scrambled((high ^ taken_in(behind, low)) & mask);
        ((scrambled | behind) as u128) << 64 | low as u128
    }

    /// What was mixed to this.
    fn unmixed(&self, high: u64, low: u64) -> u128 {
        let mask = self.mixed_mask();
        let behind = high & !mask;
        let leading = (self.unscrambled(high & mask) ^ taken_in(behind, low)) & mask;
        ((leading | behind) as u128) << 64 | low as u128
    }

    #[inline(always)]
    fn mixed_mask(&self) -> u64 {
        u64::MAX << (u64::BITS - self.mixed_bits)
    }

    /// A bijection on the upper `mixed_bits` bits. Multiplying by an odd number carries every bit upwards; in between the
    /// upper half of the bits reaches the lower one.
    #[inline(always)]
    fn scrambled(&self, high: u64) -> u64 {
        let product = high.wrapping_mul(ODD[0]);
        let unused = u64::BITS - self.mixed_bits;
        (product ^ product >> ((u64::BITS - unused) / 2) >> unused << unused).wrapping_mul(ODD[1])
    }

    /// What was scrambled to this.
    fn unscrambled(&self, scrambled: u64) -> u64 {
        let unused = u64::BITS - self.mixed_bits;
        let half = (u64::BITS - unused) / 2;
        let mixed = scrambled.wrapping_mul(INVERSE[1]);
        // The lower half is the upper one away from what it was, and the last bit of an odd number of bits a bit of that.
        let product = mixed ^ mixed >> half >> unused << unused;
        let product = mixed ^ product >> half >> unused << unused;
        product.wrapping_mul(INVERSE[0])
    }
}

/// What leading bits take in from those behind them; nothing if those are zero.
#[inline(always)]
fn taken_in(behind: u64, low: u64) -> u64 {
    let all = behind.wrapping_mul(ODD[0]) ^ low;
    (all ^ all >> 32).wrapping_mul(ODD[2])
}

#[inline(always)]
fn pair_of(words: &[u32]) -> u64 {
    words[0] as u64 | words.get(1).map_or(0, |&high| (high as u64) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

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
            packing.encode_with(&states.concat(), &mut high, &mut low, Move::join);
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
        let packing = Packing::new(&[0xFF, 0x0F, 1]).unwrap();
        _ = packing.encode(&[0xFF, 0x0F, 1, 3, 0x10, 0], &mut Vec::new(), &mut Vec::new());
    }

    fn keys(packing: &Packing, states: &[u32]) -> Vec<u128> {
        let (mut high, mut low) = (Vec::new(), Vec::new());
        packing.encode(states, &mut high, &mut low).unwrap();
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
