//! Hashing of state words: multiply, fold, repeat. Fixed for ever, so that files written by one run can
//! be read by another.

#[inline(always)]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

pub(crate) const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
pub(crate) const ODD: u64 = 0xD6E8_FEB8_6659_FD93;
pub(crate) const LAST: u64 = 0x8A91_A6D4_0BF4_2040 | 1;
pub(crate) const OTHER: u64 = 0xE703_7ED1_A0B4_28DB;

/// Hash of a short vector of words: that of its bytes, the least significant of each word first.
#[inline(always)]
pub fn words(key: &[u32]) -> u64 {
    let mut hash = SEED;
    let mut chunks = key.chunks_exact(4);
    for four in &mut chunks {
        let low = four[0] as u64 | (four[1] as u64) << 32;
        let high = four[2] as u64 | (four[3] as u64) << 32;
        hash = fold(hash ^ low, ODD ^ high);
    }
    match *chunks.remainder() {
        [] => {}
        [a] => hash = fold(hash ^ a as u64, ODD),
        [a, b] => hash = fold(hash ^ (a as u64 | (b as u64) << 32), ODD),
        [a, b, c] => hash = fold(hash ^ (a as u64 | (b as u64) << 32), ODD ^ c as u64),
        _ => unreachable!("the remainder of chunks of four"),
    }
    fold(hash ^ SEED, LAST)
}

/// Hash of a byte string, of which all that are compared have one length.
#[inline]
pub fn bytes(key: &[u8]) -> u64 {
    let (chunks, rest) = key.as_chunks();
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let step = |hash: u64, chunk: &[u8; 16]| {
        let both = u128::from_le_bytes(*chunk);
        fold(hash ^ both as u64, ODD ^ (both >> 64) as u64)
    };
    let hash = chunks.iter().fold(SEED, step);
    let hash = if rest.is_empty() { hash } else { step(hash, &last) };
    fold(hash ^ SEED, LAST)
}

/// Two hashes of a vector of words that have nothing to do with each other: together a digest of 128 bits.
#[inline(always)]
pub fn digest(key: &[u32]) -> (u64, u64) {
    let (mut first, mut second) = (SEED ^ key.len() as u64, LAST);
    let mut take = |low: u64, high: u64| {
        first = fold(first ^ low, ODD);
        second = fold(second ^ high ^ first.rotate_left(23), OTHER);
        first = first.wrapping_add(second);
    };
    let chunks = key.chunks_exact(4);
    let rest = chunks.remainder();
    for four in chunks {
        take(four[0] as u64 | (four[1] as u64) << 32, four[2] as u64 | (four[3] as u64) << 32);
    }
    let word = |place: usize| rest.get(place).map_or(0, |&word| word as u64);
    if !rest.is_empty() {
        take(word(0) | word(1) << 32, word(2));
    }
    (fold(first ^ SEED, LAST), fold(second ^ ODD, SEED) ^ first.rotate_left(41).wrapping_mul(OTHER))
}

/// Maps a hash to `0..count`, monotonically: larger hashes never come before smaller ones, and a larger
/// `count` never moves a hash down. Tables that grow in place rely on both.
#[inline(always)]
pub fn scale(hash: u64, count: usize) -> usize {
    ((hash as u128 * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_keys_spread_evenly() {
        let mut buckets = [0u32; 256];
        let mut wide = [0u32; 256];
        let mut strings = [0u32; 256];
        for a in 0..256u32 {
            for b in 0..256u32 {
                for vector in [&[a, b][..], &[a, b, 7], &[a, 0, b, 7, 1]] {
                    let string: Vec<u8> = vector.iter().flat_map(|word| word.to_le_bytes()).collect();
                    assert_eq!(words(vector), bytes(&string));
                }
                buckets[scale(words(&[a, b]), 256)] += 1;
                wide[scale(words(&[a, 0, b, 7, 1]), 256)] += 1;
                let mut string = [7; 21];
                (string[2], string[18]) = (a as u8, b as u8);
                strings[scale(bytes(&string), 256)] += 1;
            }
        }
        for count in buckets.iter().chain(&wide).chain(&strings) {
            assert!((156..=356).contains(count), "a bucket of {count} where 256 are expected");
        }
    }

    #[test]
    fn scaling_is_monotone() {
        for hash in (0..64).map(|bit| 1u64 << bit).chain([u64::MAX, SEED]) {
            assert!(scale(hash, 10) <= scale(hash, 13) && scale(hash, 13) < 13);
        }
    }
}
