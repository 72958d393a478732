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
/// Low bits of at most so many are read as one word.
const SHORT_LOW_BITS: u32 = 56;
/// Hardly ever have more keys the same upper part.
const AT_ONCE: usize = 4;
/// Reading bits may look at so many bytes behind them.
const BEHIND: usize = 24;

/// Bytes of so many keys in a range with low bits of a length.
fn bytes_with(low_bits: u32, range: u128, count: usize) -> usize {
    let bits = (range >> low_bits).saturating_add(count as u128 * (low_bits as u128 + 1));
    // Both parts begin with whole words.
    HEAD + 16 + usize::try_from(bits / 8).unwrap_or(usize::MAX / 2)
}

/// The length of low bits that takes the fewest bytes for so many keys in a range, and those bytes.
fn best(range: u128, count: usize) -> (u32, usize) {
    let low_bits = range.checked_ilog2().unwrap_or(0).saturating_sub(count.ilog2());
    let near = low_bits.saturating_sub(1)..=low_bits + 1;
    let sizes = near.map(|low_bits| (bytes_with(low_bits, range, count), low_bits));
    let (bytes, low_bits) = sizes.min().expect("there are some");
    (low_bits, bytes)
}

/// How many of ascending keys, from the first on, fit into a block of so many bytes in which each has `beside` for something
/// else; `shift` low bits of all are zero.
pub fn fitting(keys: &[u128], shift: u32, bytes: usize, beside: usize) -> usize {
    let of_keys = |count: usize| best((keys[count - 1] - keys[0]) >> shift, count).1;
    let fits = |count: usize| of_keys(count) + BEHIND + count * beside <= bytes;
    let most = keys.len().min(MOST_KEYS);
    if most == 0 || fits(most) {
        return most;
    }
    // One always fits.
    let (mut fit, mut too_many) = (1, most);
    while fit + 1 < too_many {
        let middle = (fit + too_many) / 2;
        (fit, too_many) = if fits(middle) { (middle, too_many) } else { (fit, middle) };
    }
    fit
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
    let (uppers, lows) = out[HEAD..].split_at_mut(words * 8);
    let mut lows = BitWriter { out: lows, at: 0, bits: 0, count: 0 };
    for (index, &key) in keys.iter().enumerate() {
        let value = (key - first) >> shift;
        let one = (value >> low_bits) as usize + index;
        uppers[one / 8] |= 1 << (one % 8);
        lows.put(value as u64, low_bits.min(64));
        if low_bits > 64 {
            lows.put((value >> 64) as u64, low_bits - 64);
        }
    }
    lows.finish();
}

fn mask(bits: u32) -> u128 {
    if bits == 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// Writes bits one after the other, lowest first.
struct BitWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    /// The last ones, fewer than 64.
    bits: u64,
    count: u32,
}

impl BitWriter<'_> {
    /// Adds the low `bits` of a value, at most 64.
    #[inline(always)]
    fn put(&mut self, value: u64, bits: u32) {
        let value = value & mask(bits) as u64;
        self.bits |= value << self.count;
        let count = self.count + bits;
        if count >= 64 {
            self.out[self.at..self.at + 8].copy_from_slice(&self.bits.to_le_bytes());
            self.at += 8;
            self.bits = value.checked_shr(64 - self.count).unwrap_or(0);
        }
        self.count = count % 64;
    }

    fn finish(self) {
        let bytes = self.count.div_ceil(8) as usize;
        self.out[self.at..][..bytes].copy_from_slice(&self.bits.to_le_bytes()[..bytes]);
    }
}

/// A block that is read.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    bytes: &'a [u8],
    head: Head,
}

/// What a block says of itself.
#[derive(Clone, Copy, Default)]
pub struct Head {
    first: u128,
    count: usize,
    shift: u32,
    low_bits: u32,
    /// Those of the low bits that are compared first.
    some_bits: u64,
    /// Have keys no more than 64 bits?
    is_short: bool,
    /// Where low bits begin.
    lows: usize,
}

impl Head {
    /// Reads what `encode` wrote.
    pub fn of(bytes: &[u8]) -> Head {
        let count = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
        let first = u128::from_le_bytes(bytes[8..HEAD].try_into().expect("sixteen bytes"));
        let (low_bits, shift) = (bytes[4] as u32, bytes[5] as u32);
        let words = u16::from_le_bytes([bytes[6], bytes[7]]) as usize;
        let is_short = shift >= u64::BITS && low_bits <= SHORT_LOW_BITS;
        let some_bits = mask(low_bits.min(SHORT_LOW_BITS)) as u64;
        Head { first, count, shift, low_bits, some_bits, is_short, lows: HEAD + words * 8 }
    }

    /// How many bytes whoever looks for keys may look at.
    pub fn end(&self) -> usize {
        self.lows + (self.count * self.low_bits as usize).div_ceil(8) + BEHIND
    }

    /// The block in `bytes`, of which this is the head.
    #[inline(always)]
    pub fn block(self, bytes: &[u8]) -> Block<'_> {
        Block { bytes, head: self }
    }
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
        Head::of(bytes).block(bytes)
    }

    #[inline(always)]
    fn word(&self, word: usize) -> u64 {
        u64::from_le_bytes(self.bytes[HEAD + word * 8..][..8].try_into().expect("eight bytes"))
    }

    /// The low bits of key number `index`.
    #[inline(always)]
    fn low(&self, index: usize) -> u128 {
        let at = self.head.lows * 8 + index * self.head.low_bits as usize;
        let (byte, skip) = (at / 8, at % 8);
        if self.head.low_bits <= SHORT_LOW_BITS {
            let word = u64::from_le_bytes(self.bytes[byte..][..8].try_into().expect("eight bytes"));
            return (word >> skip & ((1 << self.head.low_bits) - 1)) as u128;
        }
        let word = u128::from_le_bytes(self.bytes[byte..][..16].try_into().expect("sixteen bytes"));
        let above = (self.bytes[byte + 16] as u128).checked_shl(128 - skip as u32).unwrap_or(0);
        (word >> skip | above) & mask(self.head.low_bits)
    }

    /// As many of the low bits of key number `index` as one word has for certain.
    #[inline(always)]
    fn some_low(&self, index: usize) -> u64 {
        let at = self.head.lows * 8 + index * self.head.low_bits as usize;
        let word = u64::from_le_bytes(self.bytes[at / 8..][..8].try_into().expect("eight bytes"));
        word >> (at % 8) & self.head.some_bits
    }

    /// How many ones follow one another, or more than a few where they may reach into the next word.
    #[inline(always)]
    fn ones_at(&self, bit: usize) -> usize {
        let ones = (self.word(bit / 64) >> (bit % 64)).trailing_ones() as usize;
        if bit % 64 + ones == 64 { usize::MAX } else { ones }
    }

    /// How many keys there are.
    pub fn count(&self) -> usize {
        self.head.count
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = u128> + '_ {
        let (mut word, mut left) = (0, self.word(0));
        (0..self.head.count).map(move |index| {
            while left == 0 {
                word += 1;
                left = self.word(word);
            }
            let upper = word * 64 + left.trailing_zeros() as usize - index;
            left &= left - 1;
            self.join(upper, index)
        })
    }

    /// Puts up to `count` keys after a place, which moves behind them, into `out`; none at the end.
    pub fn read(&self, place: &mut Place, count: usize, out: &mut Vec<u128>) {
        out.clear();
        let end = self.head.count.min(place.index + count);
        if place.index == end {
            return;
        }
        let mut word = place.bit / 64;
        let mut left = self.word(word) >> (place.bit % 64) << (place.bit % 64);
        out.extend((place.index..end).map(|index| {
            while left == 0 {
                word += 1;
                left = self.word(word);
            }
            let one = word * 64 + left.trailing_zeros() as usize;
            left &= left - 1;
            place.bit = one + 1;
            self.join(one - index, index)
        }));
        place.index = end;
    }

    /// Is the key there? Keys must be asked for in ascending order, with the place that the one before left. Nobody can foresee how
    /// many keys have the same upper part, so some low bits of a few are compared at once, whether there are so many or not.
    pub fn contains(&self, key: u128, place: &mut Place) -> bool {
        let Some((upper, low)) = self.split(key) else { return false };
        self.skip_to(upper, place);
        let ones = self.ones_at(place.bit);
        if ones > AT_ONCE {
            return self.is_among(low, *place, |_| true);
        }
        let same = ones.min(self.head.count - place.index);
        let (some, mut may_be) = (low as u64 & self.head.some_bits, false);
        for next in 0..AT_ONCE {
            let index = (place.index + next).min(self.head.count - 1);
            may_be |= (next < same) & (self.some_low(index) == some);
        }
        may_be && (0..same).any(|next| self.low(place.index + next) == low)
    }

    /// The same where one key may be there several times, and `is_it` says which of them is meant, by its number.
    #[inline(always)]
    pub fn matches(&self, key: u128, place: &mut Place, is_it: impl FnMut(usize) -> bool) -> bool {
        let Some((upper, low)) = self.split(key) else { return false };
        self.skip_to(upper, place);
        self.is_among(low, *place, is_it)
    }

    /// Is one of the keys from this place on, which have the same upper part, the one with these low bits?
    #[inline(always)]
    fn is_among(&self, low: u128, mut at: Place, mut is_it: impl FnMut(usize) -> bool) -> bool {
        while at.index < self.head.count && self.word(at.bit / 64) >> (at.bit % 64) & 1 == 1 {
            match self.low(at.index).cmp(&low) {
                std::cmp::Ordering::Equal if is_it(at.index) => return true,
                std::cmp::Ordering::Less | std::cmp::Ordering::Equal => {
                    at = Place { index: at.index + 1, bit: at.bit + 1 };
                }
                std::cmp::Ordering::Greater => return false,
            }
        }
        false
    }

    /// The key with this upper part and the low bits of number `index`. Short keys, which most are, need no long arithmetic.
    #[inline(always)]
    fn join(&self, upper: usize, index: usize) -> u128 {
        let Head { first, shift, low_bits, .. } = self.head;
        if self.head.is_short {
            let value = (upper as u64) << low_bits | self.low(index) as u64;
            return (((first >> 64) as u64 + (value << (shift - u64::BITS))) as u128) << 64;
        }
        first + (((upper as u128) << low_bits | self.low(index)) << shift)
    }

    /// The upper part of a key and its low bits; none if it cannot be here.
    #[inline(always)]
    fn split(&self, key: u128) -> Option<(usize, u128)> {
        let Head { first, shift, low_bits, lows, .. } = self.head;
        let (upper, low) = if self.head.is_short {
            let distance = ((key >> 64) as u64).checked_sub((first >> 64) as u64)?;
            let value = distance >> (shift - u64::BITS);
            if value << (shift - u64::BITS) != distance || key as u64 != 0 {
                return None;
            }
            (value >> low_bits, (value & ((1 << low_bits) - 1)) as u128)
        } else {
            let distance = key.checked_sub(first).filter(|distance| distance & mask(shift) == 0)?;
            let value = distance >> shift;
            (u64::try_from(value >> low_bits).ok()?, value & mask(low_bits))
        };
        // More zeros than the block has ones and bits means that all keys are smaller.
        (upper < lows as u64 * 8).then_some((upper as usize, low))
    }

    /// Moves a place forward behind the zero with which upper parts reach `upper`.
    fn skip_to(&self, upper: usize, place: &mut Place) {
        let mut zeros = place.bit - place.index;
        let end = (self.head.lows - HEAD) * 8;
        while zeros < upper && place.bit < end {
            let word = !self.word(place.bit / 64) >> (place.bit % 64);
            let sums = ones_by_byte(word);
            let here = (sums >> 56) as usize;
            if zeros + here < upper {
                (zeros, place.bit) = (zeros + here, place.bit + 64 - place.bit % 64);
            } else {
                place.bit += nth_one(word, sums, upper - zeros) + 1;
                zeros = upper;
            }
        }
        // At the end of the words zeros may stand for nothing.
        place.index = (place.bit - zeros).min(self.head.count);
    }
}

/// For each byte of a word how many ones there are in it and below.
#[inline(always)]
fn ones_by_byte(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
    bytes.wrapping_mul(0x0101_0101_0101_0101)
}

/// The place of the `count`th one of a word, from one, which has so many ones.
#[inline(always)]
fn nth_one(word: u64, sums: u64, count: usize) -> usize {
    // A byte of `short` has its highest bit where there are fewer ones up to it: sums and counts are at most 64.
    let short = (0x8080_8080_8080_8080 | (count as u64 - 1).wrapping_mul(0x0101_0101_0101_0101)) - sums;
    let byte = (!short & 0x8080_8080_8080_8080).trailing_zeros() - 7;
    let before = (sums << 8) >> byte & 0xFF;
    byte as usize + PLACES[(word >> byte & 0xFF) as usize][(count as u64 - before) as usize - 1] as usize
}

/// Where the ones of each byte are.
static PLACES: [[u8; 8]; 256] = {
    let (mut places, mut byte) = ([[0; 8]; 256], 0);
    while byte < 256 {
        let (mut place, mut count) = (0, 0);
        while place < 8 {
            if byte >> place & 1 == 1 {
                places[byte][count] = place as u8;
                count += 1;
            }
            place += 1;
        }
        byte += 1;
    }
    places
};

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;
    use std::collections::BTreeSet;
    use std::ops::Range;

    /// Splits ascending keys into blocks.
    fn blocks(keys: &[u128], shift: u32, bytes: usize) -> Vec<Range<usize>> {
        let (mut all, mut start) = (Vec::new(), 0);
        while start < keys.len() {
            let count = fitting(&keys[start..], shift, bytes, 0);
            all.push(start..start + count);
            start += count;
        }
        all
    }

    /// Keys of so many bits, left-aligned, behind `common` zeros; so many are in a row, on the whole.
    fn keys(draw: &mut Draw, bits: u32, common: u32, count: usize, row: usize) -> Vec<u128> {
        let mut one = || {
            let random = (draw.bits() as u128) << 64 | draw.bits() as u128;
            random >> (128 - bits) << (128 - bits) << common >> common
        };
        let least = 1 << (128 - bits);
        let rows = (0..count / row).map(|_| one());
        let all: BTreeSet<u128> =
            rows.flat_map(|key| (0..row as u128).map_while(move |at| key.checked_add(at * least))).collect();
        all.into_iter().collect()
    }

    /// What differs from a key of the block in its upper part only is not there, wherever a group of keys ends: in a word, with a word, with the block.
    #[test]
    fn low_bits_alone_are_no_key() {
        let mut draw = Draw::new(1);
        let mut bytes = vec![0; 4096];
        for count in (2..400).flat_map(|count| [count; 12]) {
            let (bits, row) = (20 + draw.below(20) as u32, 1 + draw.below(3) as usize);
            let (all, shift) = (keys(&mut draw, bits, 0, count.max(row), row), 128 - bits);
            encode(&all, shift, &mut bytes);
            let (block, step) = (Block::new(&bytes), 1u128 << bytes[4] << shift);
            let mut asked: Vec<u128> = all
                .iter()
                .rev()
                .take(12)
                .flat_map(|key| (1..4).map(move |times| key - times * step.min(key / 4)))
                .collect();
            asked.sort_unstable();
            let mut place = Place::default();
            for key in asked.into_iter().filter(|key| key >= &all[0]) {
                let key = key >> shift << shift;
                assert_eq!(
                    block.contains(key, &mut place),
                    all.binary_search(&key).is_ok(),
                    "{count} of {bits}: {key:x}"
                );
            }
        }
    }

    #[test]
    fn keys_come_back_and_are_found() {
        let mut draw = Draw::new(0);
        for (bits, common, count, row) in [
            (24, 0, 30_000, 1),
            (24, 8, 9, 1),
            (34, 0, 20_000, 1),
            (60, 3, 20_000, 1),
            (64, 0, 1, 1),
            (64, 0, 2, 1),
            (100, 0, 5_000, 1),
            (128, 0, 5_000, 1),
            (128, 0, 2, 1),
            (128, 6, 3_000, 1),
            (50, 0, 20_000, 7),
            (100, 2, 9_000, 70),
        ] {
            let all = keys(&mut draw, bits, common, count, row);
            let set: BTreeSet<u128> = all.iter().copied().collect();
            let mut bytes = vec![0; 4096];
            for range in blocks(&all, 128 - bits, 4096) {
                let keys = &all[range];
                encode(keys, 128 - bits, &mut bytes);
                let block = Block::new(&bytes);
                assert!(block.keys().eq(keys.iter().copied()), "{bits} {common} {count}");
                let (mut place, mut part, mut read) = (Place::default(), Vec::new(), Vec::new());
                while read.len() < keys.len() {
                    block.read(&mut place, 1 + draw.below(100) as usize, &mut part);
                    read.extend_from_slice(&part);
                }
                block.read(&mut place, 1, &mut part);
                assert!(read == keys && part.is_empty());
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
    fn every_one_of_a_word_is_found() {
        let mut draw = Draw::new(0);
        let words = (0..500).map(|round| draw.bits() & draw.bits() | draw.bits() >> (round % 64));
        for word in words.chain([1, 1 << 63, u64::MAX, 0xFF << 56, 0x0101_0101_0101_0101]) {
            let ones = (0..64).filter(|place| word >> place & 1 == 1);
            for (count, place) in (1..).zip(ones) {
                assert_eq!(nth_one(word, ones_by_byte(word), count), place, "{word:x} {count}");
            }
            assert_eq!(ones_by_byte(word) >> 56, word.count_ones().into());
        }
    }

    #[test]
    fn keys_take_little_more_than_their_distance() {
        let all = keys(&mut Draw::new(0), 50, 0, 1 << 20, 1);
        let ranges = blocks(&all, 78, 16 << 10);
        let bits = ranges.len() as f64 * f64::from(16 << 13) / all.len() as f64;
        // 2^50 values for 2^20 keys: 30 bits, and about two.
        assert!((31.5..32.6).contains(&bits), "{bits} bits for a key");
    }
}
