//! Roots as keys: two numbers become 64 bits whose leading ones look random and whose trailing ones are zero while
//! the numbers are small.
//!
//! The lower halves of the numbers are mixed by a Feistel network, two rounds of which make both depend on both; a hash
//! of the upper halves perturbs the result, and the upper halves follow, their bits in turn, lowest first. So a root
//! whose numbers have k bits has a key of 2k bits, **and its key does not change when other numbers grow**: the place
//! that leading bits tell stays, and only more of the trailing bits begin to matter.

const HALF: u32 = 16;
const HALF_MASK: u64 = (1 << HALF) - 1;
const ROUNDS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F, 0xD6E8_FEB8_6659_FD93];

/// A hash of half a number, different for each round.
#[inline(always)]
fn scramble(half: u64, round: u64) -> u64 {
    let product = (half ^ round >> 40).wrapping_mul(round);
    (product ^ product >> 32).wrapping_mul(ROUNDS[2]) >> (64 - HALF)
}

/// What the upper halves of the numbers do to the lower ones: nothing if they are zero.
#[inline(always)]
fn perturbation(upper: u64) -> u64 {
    let product = upper.wrapping_mul(ROUNDS[0]);
    (product ^ product >> 29).wrapping_mul(ROUNDS[1]) >> 32
}

/// The bits of the lower 16 bits of `number`, each followed by a zero, lowest first from the top of 32 bits.
#[inline(always)]
fn spread(number: u64) -> u64 {
    let mut bits = (number as u16).reverse_bits() as u64;
    bits = (bits | bits << 8) & 0x00FF_00FF;
    bits = (bits | bits << 4) & 0x0F0F_0F0F;
    bits = (bits | bits << 2) & 0x3333_3333;
    ((bits | bits << 1) & 0x5555_5555) << 1
}

/// The key of a root, whose left number is in its upper half.
#[inline(always)]
pub fn key(root: u64) -> u64 {
    let (left, right) = (root >> 32, root & 0xFFFF_FFFF);
    let (mut top, mut low) = (left & HALF_MASK, right & HALF_MASK);
    low ^= scramble(top, ROUNDS[0]);
    top ^= scramble(low, ROUNDS[1]);
    let mixed = top << HALF | low;
    if (left | right) >> HALF == 0 {
        return mixed << 32;
    }
    let upper = spread(left >> HALF) | spread(right >> HALF) >> 1;
    (mixed ^ perturbation(upper)) << 32 | upper
}

/// The root of a key.
pub fn root(key: u64) -> u64 {
    let upper = key & 0xFFFF_FFFF;
    let mixed = key >> 32 ^ perturbation(upper);
    let (mut top, mut low) = (mixed >> HALF, mixed & HALF_MASK);
    top ^= scramble(low, ROUNDS[1]);
    low ^= scramble(top, ROUNDS[0]);
    let every_other = |from: u32| (0..HALF).fold(0, |half, bit| half | (upper >> (from - 2 * bit) & 1) << bit);
    (every_other(31) << HALF | top) << 32 | every_other(30) << HALF | low
}

/// Leading bits of a key that can differ from zero if both numbers are below `bound`.
pub fn key_bits(bound: u32) -> u32 {
    let number_bits = u32::BITS - bound.saturating_sub(1).leading_zeros();
    2 * number_bits.max(HALF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn different_roots_have_different_keys_of_the_promised_length() {
        let mut seen = HashMap::new();
        let numbers: Vec<u64> = (0..32).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 77]).collect();
        for (&left, &right) in numbers.iter().flat_map(|left| numbers.iter().map(move |right| (left, right))) {
            let root = left << 32 | right & 0xFFFF_FFFF;
            let key = key(root);
            assert_eq!(*seen.entry(key).or_insert(root), root);
            let bound = (left.max(right) + 1).min(u32::MAX as u64) as u32;
            assert!(key.trailing_zeros() >= 64 - key_bits(bound), "{left} {right}");
        }
        for small in 0..1 << 20 {
            let root = ((small % 1024) << 32) | (small / 1024);
            assert_eq!(*seen.entry(key(root)).or_insert(root), root);
        }
        assert_eq!((key_bits(0), key_bits(1 << 16), key_bits((1 << 16) + 1), key_bits(u32::MAX)), (32, 32, 34, 64));
    }

    /// Lines must fill like balls thrown at random: the variance of their fill is its mean.
    #[test]
    fn structured_roots_spread_like_random_ones() {
        type Set = (&'static str, fn(u64) -> u64);
        let sets: [Set; 8] = [
            ("square", |i| ((i % 1024) << 32) | (i / 1024)),
            ("row", |i| i),
            ("column", |i| i << 32),
            ("even", |i| ((i % 512 * 2) << 32) | (i / 512 * 4)),
            ("diagonal", |i| (i << 32) | i),
            ("large", |i| ((i % 1024) << 54) | ((i / 1024) << 20)),
            ("long column", |i| ((i / 64) << 36) | (i % 64)),
            ("multiples", |i| ((i % 4096) << 48) | (i / 4096)),
        ];
        for (name, root) in sets {
            let mut lines = vec![0u32; 1 << 16];
            for i in 0..1 << 20 {
                lines[(key(root(i)) >> 48) as usize] += 1;
            }
            let variance = lines.iter().map(|&fill| (fill as f64 - 16.0).powi(2)).sum::<f64>() / lines.len() as f64;
            assert!(variance < 20.0, "{name}: variance {variance}, mean 16");
        }
    }
}
