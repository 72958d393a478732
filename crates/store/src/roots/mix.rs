//! A bijection of roots with small numbers onto 44-bit values that look random: a Feistel network, which
//! is undone by running its rounds backwards. Two rounds make both halves depend on both numbers.

/// Bits of a mixed value; half of them for each number of a root.
pub const MIX_BITS: u32 = 44;
const HALF: u32 = MIX_BITS / 2;
const HALF_MASK: u64 = (1 << HALF) - 1;
const ROUNDS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F];

/// A hash of half a value, different for each round.
#[inline(always)]
fn scramble(half: u64, round: u64) -> u64 {
    let product = (half ^ round >> 40).wrapping_mul(round);
    (product ^ product >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> (64 - HALF)
}

/// Mixes a root. Numbers at or above 2^22 only perturb the value, which is then no longer unique.
#[inline(always)]
pub fn mixed(root: u64) -> u64 {
    let (left, right) = (root >> 32, root & 0xFFFF_FFFF);
    let high = (left >> HALF) << 10 | right >> HALF;
    let (mut top, mut low) = (left & HALF_MASK, (right ^ high.wrapping_mul(ROUNDS[0]) >> 20) & HALF_MASK);
    low ^= scramble(top, ROUNDS[0]);
    top ^= scramble(low, ROUNDS[1]);
    top << HALF | low
}

/// The root with numbers below 2^22 whose mixed value is `value`.
pub fn unmixed(value: u64) -> u64 {
    let (mut top, mut low) = (value >> HALF, value & HALF_MASK);
    top ^= scramble(low, ROUNDS[1]);
    low ^= scramble(top, ROUNDS[0]);
    top << 32 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmixing_undoes_mixing() {
        for left in [0u64, 1, 2, 77, 4096, 123_456, (1 << 22) - 1] {
            for right in [0u64, 1, 5, 999, 1 << 21, (1 << 22) - 1] {
                let root = left << 32 | right;
                assert!(mixed(root) < 1 << MIX_BITS);
                assert_eq!(unmixed(mixed(root)), root);
            }
        }
    }

    /// Lines must fill like balls thrown at random: the variance of their fill is its mean.
    #[test]
    fn structured_roots_spread_like_random_ones() {
        type Set = (&'static str, fn(u64) -> u64);
        let sets: [Set; 6] = [
            ("square", |i| ((i % 1024) << 32) | (i / 1024)),
            ("row", |i| i),
            ("column", |i| i << 32),
            ("even", |i| ((i % 512 * 2) << 32) | (i / 512 * 4)),
            ("diagonal", |i| (i << 32) | i),
            ("large", |i| ((i % 1024) << 54) | ((i / 1024) << 20)),
        ];
        for (name, root) in sets {
            let mut lines = vec![0u32; 1 << 16];
            for i in 0..1 << 20 {
                lines[(mixed(root(i)) >> (MIX_BITS - 16)) as usize] += 1;
            }
            let variance = lines.iter().map(|&fill| (fill as f64 - 16.0).powi(2)).sum::<f64>() / lines.len() as f64;
            assert!(variance < 20.0, "{name}: variance {variance}, mean 16");
        }
    }
}
