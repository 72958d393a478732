//! Roots as keys: two numbers become 64 bits whose leading ones look random and whose trailing ones are zero while
//! the numbers are small.
//!
//! The lower halves of the numbers are mixed by a Feistel network, two rounds of which make both depend on both; a hash
//! of the upper halves perturbs the result, and the upper halves follow, their bits in turn, lowest first. So a root
//! whose numbers have k bits has a key of 2k bits, **and its key does not change when other numbers grow**: the place
//! that leading bits tell stays, and only more of the trailing bits begin to matter.
//!
//! A root of three numbers is the same with thirds of twelve bits, and its last bit is zero. If one of its numbers is too large for that, two of
//! them are paired and numbered, and the key is that of a root of two, whose last bit is one then.

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

/// The numbers of a root with this key.
pub fn numbers(key: u64) -> [u32; 2] {
    let upper = key & 0xFFFF_FFFF;
    let mixed = key >> 32 ^ perturbation(upper);
    let (mut top, mut low) = (mixed >> HALF, mixed & HALF_MASK);
    top ^= scramble(low, ROUNDS[1]);
    low ^= scramble(top, ROUNDS[0]);
    [every(2, upper, 31, HALF) << HALF | top as u32, every(2, upper, 30, HALF) << HALF | low as u32]
}

/// So many bits, of which every so-manieth from `first` downwards is one, lowest first.
fn every(nth: u32, bits: u64, first: u32, count: u32) -> u32 {
    (0..count).fold(0, |number, bit| number | ((bits >> (first - nth * bit) & 1) as u32) << bit)
}

/// Leading bits of a key that can differ from zero if both numbers are below `bound`.
pub fn key_bits(bound: u32) -> u32 {
    let number_bits = u32::BITS - bound.saturating_sub(1).leading_zeros();
    2 * number_bits.max(HALF)
}

const THIRD: u32 = 12;
const THIRD_MASK: u32 = (1 << THIRD) - 1;
/// Bits of the numbers of a root of three, at most.
const MOST_THIRD_BITS: u32 = 21;
const MIXED_BITS: u32 = 3 * THIRD;
const MIXED_MASK: u64 = (1 << MIXED_BITS) - 1;
/// Numbers of pairs are below this, so that the last bit of a key tells what it is.
pub const MOST_PAIRS: u32 = 1 << 31;

/// The key of a root of three numbers, unless one is too large.
#[inline(always)]
pub fn key_of_three(numbers: [u32; 3]) -> Option<u64> {
    let all = numbers[0] | numbers[1] | numbers[2];
    let low = numbers.map(|number| (number & THIRD_MASK) as u64);
    let mixed = mix(low[0] << (2 * THIRD) | low[1] << THIRD | low[2]);
    if all >> THIRD == 0 {
        return Some(mixed << (u64::BITS - MIXED_BITS));
    }
    let [left, middle, right] = numbers.map(|number| spread_third(number >> THIRD));
    let upper = left << 2 | middle << 1 | right;
    let mixed = mixed ^ perturbation_of_three(upper);
    (all >> MOST_THIRD_BITS == 0).then_some(mixed << (u64::BITS - MIXED_BITS) | upper << 1)
}

/// The three numbers of a root with this key, or the first and the number of the pair of the others.
pub fn three_numbers(key: u64) -> Result<[u32; 3], [u32; 2]> {
    if key & 1 == 1 {
        return Err(numbers(key & !1));
    }
    let upper = key << MIXED_BITS >> MIXED_BITS >> 1;
    let low = unmix(key >> (u64::BITS - MIXED_BITS) ^ perturbation_of_three(upper));
    let number = |place: u32| {
        let low = low >> (place * THIRD) & THIRD_MASK as u64;
        every(3, upper, 3 * (MOST_THIRD_BITS - THIRD - 1) + place, MOST_THIRD_BITS - THIRD) << THIRD | low as u32
    };
    Ok([number(2), number(1), number(0)])
}

/// What the upper parts of three numbers do to the lower ones: nothing if they are zero.
#[inline(always)]
fn perturbation_of_three(upper: u64) -> u64 {
    let product = upper.wrapping_mul(ROUNDS[0]);
    (product ^ product >> 29).wrapping_mul(ROUNDS[1]) >> (u64::BITS - MIXED_BITS)
}

/// The key of a root of three numbers of which the last two are a pair with a number.
pub fn key_with_pair(left: u32, pair: u32) -> u64 {
    assert!(pair < MOST_PAIRS, "its last bit would not tell what it is");
    key((left as u64) << 32 | pair as u64) | 1
}

/// Leading bits of the key of a root of three that can differ from zero if all numbers are below `bound`.
pub fn key_bits_of_three(bound: u32) -> u32 {
    let number_bits = u32::BITS - bound.saturating_sub(1).leading_zeros();
    if number_bits > MOST_THIRD_BITS { u64::BITS } else { 3 * number_bits.max(THIRD) }
}

/// A bijection of the numbers of so many bits.
#[inline(always)]
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(ROUNDS[0]) & MIXED_MASK;
    mixed = (mixed ^ mixed >> (MIXED_BITS / 2)).wrapping_mul(ROUNDS[1]) & MIXED_MASK;
    (mixed ^ mixed >> (MIXED_BITS / 2)).wrapping_mul(ROUNDS[2]) & MIXED_MASK
}

/// What `mix` made this of.
fn unmix(mixed: u64) -> u64 {
    let before = |mixed: u64, factor: u64| mixed.wrapping_mul(inverse(factor)) & MIXED_MASK;
    let first = before(mixed, ROUNDS[2]);
    let second = before(first ^ first >> (MIXED_BITS / 2), ROUNDS[1]);
    before(second ^ second >> (MIXED_BITS / 2), ROUNDS[0])
}

/// What an odd factor has to be multiplied with for one; each step doubles how many bits are right.
fn inverse(factor: u64) -> u64 {
    (0..5).fold(factor, |guess, _| guess.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(guess))))
}

/// The lower nine bits of `number`, each followed by two zeros, lowest first from the top of 25 bits.
#[inline(always)]
fn spread_third(number: u32) -> u64 {
    let mut bits = (number as u16).reverse_bits() as u64 >> 7;
    bits = (bits | bits << 16) & 0x0300_00FF;
    bits = (bits | bits << 8) & 0x0300_F00F;
    bits = (bits | bits << 4) & 0x030C_30C3;
    (bits | bits << 2) & 0x0924_9249
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
            assert_eq!(super::numbers(key), [left as u32, right as u32]);
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

    #[test]
    fn roots_of_three_have_keys_of_the_promised_length_too() {
        let mut seen = HashMap::new();
        let numbers: Vec<u32> =
            (0..32).step_by(2).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 77]).collect();
        for (&a, &b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (a, b))) {
            for &c in &numbers {
                let most = a.max(b).max(c);
                let Some(key) = key_of_three([a, b, c]) else {
                    assert!(most >> MOST_THIRD_BITS > 0 && key_bits_of_three(most + 1) == 64);
                    continue;
                };
                assert_eq!(*seen.entry(key).or_insert((a, b, c)), (a, b, c));
                assert_eq!(three_numbers(key), Ok([a, b, c]));
                assert!(key.trailing_zeros() >= 64 - key_bits_of_three(most + 1) && key & 1 == 0, "{a} {b} {c}");
            }
            if b < MOST_PAIRS {
                assert_eq!(three_numbers(key_with_pair(a, b)), Err([a, b]));
                assert_eq!(*seen.entry(key_with_pair(a, b)).or_insert((a, b, u32::MAX)), (a, b, u32::MAX));
            }
        }
        for small in 0..1 << 20 {
            let root = (small % 64, small / 64 % 128, small / 8192);
            assert_eq!(*seen.entry(key_of_three([root.0, root.1, root.2]).unwrap()).or_insert(root), root);
        }
        assert_eq!([1, 1 << 12, 1 << 15, 1 << 21, 1 << 22].map(key_bits_of_three), [36, 36, 45, 63, 64]);
    }

    #[test]
    fn structured_roots_of_three_spread_like_random_ones() {
        type Set = (&'static str, fn(u32) -> [u32; 3]);
        let sets: [Set; 6] = [
            ("cube", |i| [i % 128, i / 128 % 128, i / 16_384]),
            ("row", |i| [7, 7, i]),
            ("column", |i| [i, 0, 0]),
            ("diagonal", |i| [i, i, i]),
            ("even", |i| [i % 64 * 2, i / 64 % 128 * 4, i / 8192 * 8]),
            ("large", |i| [i % 1024 << 10, i / 1024, 99_999]),
        ];
        for (name, root) in sets {
            let mut lines = vec![0u32; 1 << 16];
            for i in 0..1 << 20 {
                lines[(key_of_three(root(i)).unwrap() >> 48) as usize] += 1;
            }
            let variance = lines.iter().map(|&fill| (fill as f64 - 16.0).powi(2)).sum::<f64>() / lines.len() as f64;
            assert!(variance < 20.0, "{name}: variance {variance}, mean 16");
        }
    }
}
