//! A block of ascending keys, coded by Elias and Fano: of each key the low bits lie side by side, all of one length, and
//! what is above them, which grows slowly, is written in unary: as many zeros as it grew, then a one.
//!
//! Keys that look random take about two bits more than the logarithm of their distance, 3 to 4 bytes on the whole. A
//! lookup counts zeros, 64 at a time, up to the few keys with the same upper part; so asking for a few keys does not
//! decode the others, and asking for many in order passes over the block once.

/// Keys in a block, at most; how many fit depends on how far they are apart.
pub const MOST_KEYS: usize = 8192;
/// Number of keys, length of low bits, bits below all keys, words of upper bits; the first key.
const HEAD: usize = 24;
/// Reading bits may look at so many bytes behind them.
const BEHIND: usize = 24;

/// How many of ascending keys, from the first on, fit into so many bytes; `shift` low bits of all of them are zero.
pub struct Fit {
    shift: u32,
    bytes: usize,
    first: u128,
    count: usize,
}

/// The length of low bits that takes the fewest bytes for so many keys in a range, and those bytes.
fn best(range: u128, count: usize) -> (u32, usize) {
    let low_bits = range.checked_ilog2().unwrap_or(0).saturating_sub(count.ilog2());
    let bits = |low_bits: u32| (range >> low_bits).saturating_add(count as u128 * (low_bits as u128 + 1));
    let (low_bits, bits) = if low_bits > 0 && bits(low_bits - 1) < bits(low_bits) {
        (low_bits - 1, bits(low_bits - 1))
    } else if bits(low_bits + 1) < bits(low_bits) {
        (low_bits + 1, bits(low_bits + 1))
    } else {
        (low_bits, bits(low_bits))
    };
    // Both parts begin with whole words.
    (low_bits, HEAD + 16 + usize::try_from(bits / 8).unwrap_or(usize::MAX / 2))
}

impl Fit {
    pub fn new(shift: u32, bytes: usize) -> Fit {
        Fit { shift, bytes: bytes - BEHIND, first: 0, count: 0 }
    }

    /// Does one more key, the next one, fit into the block? If so it is counted.
    pub fn takes(&mut self, key: u128) -> bool {
        if self.count == 0 {
            (self.first, self.count) = (key, 1);
            return true;
        }
        let (_, bytes) = best((key - self.first) >> self.shift, self.count + 1);
        let fits = self.count < MOST_KEYS && bytes <= self.bytes;
        self.count += fits as usize;
        fits
    }

    pub fn clear(&mut self) {
        self.count = 0;
    }
}

/// Writes ascending keys that fit into `out`, which has the size of a block.
pub fn encode(keys: &[u128], shift: u32, out: &mut [u8]) {
    let (first, last) = (keys[0], keys[keys.len() - 1]);
    let (low_bits, bytes) = best((last - first) >> shift, keys.len());
    assert!(bytes + BEHIND <= out.len(), "the keys do not fit");
    out.fill(0);
    out[..4].copy_from_slice(&(keys.len() as u32).to_le_bytes());
    (out[4], out[5]) = (low_bits as u8, shift as u8);
    out[8..HEAD].copy_from_slice(&first.to_le_bytes());
    let words = (((last - first) >> shift >> low_bits) as usize + keys.len()).div_ceil(64);
    out[6..8].copy_from_slice(&(words as u16).to_le_bytes());
    let lows = HEAD + words * 8;
    for (index, &key) in keys.iter().enumerate() {
        let value = (key - first) >> shift;
        let one = (value >> low_bits) as usize + index;
        out[HEAD + one / 8] |= 1 << (one % 8);
        put_bits(out, lows * 8 + index * low_bits as usize, value & mask(low_bits), low_bits);
    }
}

fn mask(bits: u32) -> u128 {
    if bits == 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// Puts the low `bits` of a value at a place where there are zeros.
fn put_bits(out: &mut [u8], at: usize, value: u128, bits: u32) {
    let (byte, skip) = (at / 8, at % 8);
    let [low, high] = [value << skip, value.checked_shr(128 - skip as u32).unwrap_or(0)];
    let len = (bits as usize + skip).div_ceil(8);
    let bytes = low.to_le_bytes().into_iter().chain([high as u8]);
    out[byte..byte + len].iter_mut().zip(bytes).for_each(|(place, byte)| *place |= byte);
}

/// A block that is read.
pub struct Block<'a> {
    bytes: &'a [u8],
    first: u128,
    count: usize,
    shift: u32,
    low_bits: u32,
    /// Where low bits begin.
    lows: usize,
}

/// A place between two keys of a block: how many are before it, and which bit of the upper parts is next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    index: usize,
    bit: usize,
}

impl<'a> Block<'a> {
    /// The keys that `encode` wrote.
    pub fn new(bytes: &'a [u8]) -> Block<'a> {
        let count = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
        let first = u128::from_le_bytes(bytes[8..HEAD].try_into().expect("sixteen bytes"));
        let (low_bits, shift) = (bytes[4] as u32, bytes[5] as u32);
        let words = u16::from_le_bytes([bytes[6], bytes[7]]) as usize;
        Block { bytes, first, count, shift, low_bits, lows: HEAD + words * 8 }
    }

    #[inline(always)]
    fn word(&self, word: usize) -> u64 {
        u64::from_le_bytes(self.bytes[HEAD + word * 8..][..8].try_into().expect("eight bytes"))
    }

    /// The low bits of key number `index`.
    #[inline(always)]
    fn low(&self, index: usize) -> u128 {
        let at = self.lows * 8 + index * self.low_bits as usize;
        let (byte, skip) = (at / 8, at % 8);
        if self.low_bits <= 56 {
            let word = u64::from_le_bytes(self.bytes[byte..][..8].try_into().expect("eight bytes"));
            return (word >> skip & ((1 << self.low_bits) - 1)) as u128;
        }
        let word = u128::from_le_bytes(self.bytes[byte..][..16].try_into().expect("sixteen bytes"));
        let above = (self.bytes[byte + 16] as u128).checked_shl(128 - skip as u32).unwrap_or(0);
        (word >> skip | above) & mask(self.low_bits)
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = u128> + '_ {
        let (mut word, mut left) = (0, self.word(0));
        (0..self.count).map(move |index| {
            while left == 0 {
                word += 1;
                left = self.word(word);
            }
            let upper = word * 64 + left.trailing_zeros() as usize - index;
            left &= left - 1;
            self.first + (((upper as u128) << self.low_bits | self.low(index)) << self.shift)
        })
    }

    /// The key after a place, which moves behind it; none at the end.
    pub fn next(&self, place: &mut Place) -> Option<u128> {
        if place.index == self.count {
            return None;
        }
        let mut word = place.bit / 64;
        let mut left = self.word(word) >> (place.bit % 64) << (place.bit % 64);
        while left == 0 {
            word += 1;
            left = self.word(word);
        }
        let one = word * 64 + left.trailing_zeros() as usize;
        let (upper, low) = (one - place.index, self.low(place.index));
        *place = Place { index: place.index + 1, bit: one + 1 };
        Some(self.first + (((upper as u128) << self.low_bits | low) << self.shift))
    }

    /// Is the key there? Keys must be asked for in ascending order, with the place that the one before left.
    pub fn contains(&self, key: u128, place: &mut Place) -> bool {
        let Some(distance) = key.checked_sub(self.first).filter(|distance| distance & mask(self.shift) == 0) else {
            return false;
        };
        let value = distance >> self.shift;
        let (upper, low) = (value >> self.low_bits, value & mask(self.low_bits));
        // More zeros than the block has ones and bits means that all keys are smaller.
        let Some(upper) = usize::try_from(upper).ok().filter(|&upper| upper < self.lows * 8) else { return false };
        self.skip_to(upper, place);
        let mut at = *place;
        while at.index < self.count && self.word(at.bit / 64) >> (at.bit % 64) & 1 == 1 {
            match self.low(at.index).cmp(&low) {
                std::cmp::Ordering::Less => at = Place { index: at.index + 1, bit: at.bit + 1 },
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Greater => return false,
            }
        }
        false
    }

    /// Moves a place forward behind the zero with which upper parts reach `upper`.
    fn skip_to(&self, upper: usize, place: &mut Place) {
        let mut zeros = place.bit - place.index;
        let end = (self.lows - HEAD) * 8;
        while zeros < upper && place.bit < end {
            let word = !self.word(place.bit / 64) >> (place.bit % 64);
            let (bits, here) = (64 - place.bit % 64, word.count_ones() as usize);
            if zeros + here < upper {
                (zeros, place.bit) = (zeros + here, place.bit + bits);
            } else {
                place.bit += nth_one(word, upper - zeros) + 1;
                zeros = upper;
            }
        }
        // At the end of the words zeros may stand for nothing.
        place.index = (place.bit - zeros).min(self.count);
    }
}

/// The place of the `count`th one of a word, from one.
fn nth_one(mut word: u64, count: usize) -> usize {
    for _ in 1..count {
        word &= word - 1;
    }
    word.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;
    use std::collections::BTreeSet;
    use std::ops::Range;

    /// Splits ascending keys into blocks.
    fn blocks(keys: &[u128], shift: u32, bytes: usize) -> Vec<Range<usize>> {
        let (mut fit, mut all, mut start) = (Fit::new(shift, bytes), Vec::new(), 0);
        for (at, &key) in keys.iter().enumerate() {
            if !fit.takes(key) {
                all.push(start..at);
                start = at;
                fit.clear();
                assert!(fit.takes(key));
            }
        }
        all.push(start..keys.len());
        all
    }

    /// Keys of so many bits, left-aligned, behind `common` zeros.
    fn keys(draw: &mut Draw, bits: u32, common: u32, count: usize) -> Vec<u128> {
        let mut one = || {
            let random = (draw.bits() as u128) << 64 | draw.bits() as u128;
            random >> (128 - bits) << (128 - bits) << common >> common
        };
        let all: BTreeSet<u128> = (0..count).map(|_| one()).collect();
        all.into_iter().collect()
    }

    #[test]
    fn keys_come_back_and_are_found() {
        let mut draw = Draw::new(0);
        for (bits, common, count) in [
            (24, 0, 30_000),
            (24, 8, 9),
            (34, 0, 20_000),
            (60, 3, 20_000),
            (64, 0, 1),
            (64, 0, 2),
            (100, 0, 5_000),
            (128, 0, 5_000),
            (128, 0, 2),
            (128, 6, 3_000),
        ] {
            let all = keys(&mut draw, bits, common, count);
            let set: BTreeSet<u128> = all.iter().copied().collect();
            let mut bytes = vec![0; 4096];
            for range in blocks(&all, 128 - bits, 4096) {
                let keys = &all[range];
                encode(keys, 128 - bits, &mut bytes);
                let block = Block::new(&bytes);
                assert!(block.keys().eq(keys.iter().copied()), "{bits} {common} {count}");
                let (mut place, mut read) = (Place::default(), Vec::new());
                read.extend(std::iter::from_fn(|| block.next(&mut place)));
                assert_eq!(read, keys);
                // Some that are there, some beside them, some anywhere, in order; the block answers for its own keys only.
                let (first, last) = (keys[0], keys[keys.len() - 1]);
                let mut asked: Vec<u128> = keys.iter().copied().step_by(1 + draw.below(20) as usize).collect();
                let beside = |key: &u128| [key.wrapping_add(1 << (128 - bits)), key.wrapping_sub(1), key ^ 1 << 70];
                asked.extend(keys.iter().step_by(7).flat_map(beside));
                asked.extend((0..200).map(|_| (draw.bits() as u128) << 64 | draw.bits() as u128));
                asked.sort();
                let mut place = Place::default();
                for key in asked {
                    let expected = (first..=last).contains(&key) && set.contains(&key);
                    assert_eq!(block.contains(key, &mut place), expected, "{bits} {common} {count}: {key:x}");
                }
            }
        }
    }

    #[test]
    fn keys_take_little_more_than_their_distance() {
        let all = keys(&mut Draw::new(0), 50, 0, 1 << 20);
        let ranges = blocks(&all, 78, 16 << 10);
        let bits = ranges.len() as f64 * f64::from(16 << 13) / all.len() as f64;
        // 2^50 values for 2^20 keys: 30 bits, and about two.
        assert!((31.5..32.6).contains(&bits), "{bits} bits for a key");
    }
}
