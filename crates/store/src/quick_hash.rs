//! Hashes of states for tables that are never written anywhere: another processor may have others.
//!
//! Four chains side by side, for in one each step would wait for the one before. A step takes four words in; where processors have
//! instructions for a round of AES that is one of them, elsewhere a multiplication.

use crate::hash::{LAST, ODD, OTHER, SEED, fold};

const LANES: usize = 4;
type Four = [u32; 4];

/// Hash of a state.
#[inline]
pub fn hash(state: &[u32]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_quick() {
        // SAFETY: the processor has these instructions.
        return unsafe { hash_quickly(state) };
    }
    hash_anywhere(state)
}

/// Does this processor have what [`hash_quickly`] asks for?
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn is_quick() -> bool {
    std::arch::is_x86_feature_detected!("aes")
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "aes")]
pub fn hash_quickly(state: &[u32]) -> u64 {
    use core::arch::x86_64::{_mm_aesenc_si128, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_set_epi64x};
    // SAFETY: four words are sixteen readable bytes.
    let load = |four: &Four| unsafe { _mm_loadu_si128(four.as_ptr().cast()) };
    let seeds = [(SEED, ODD), (ODD, LAST), (LAST, OTHER), (OTHER, SEED)];
    let lanes = seeds.map(|(low, high)| _mm_set_epi64x(low as i64, high as i64));
    let [a, b, c, d] = take_in(state, lanes, |lane, four| *lane = _mm_aesenc_si128(*lane, load(four)));
    // What came last was mixed with nothing yet.
    let both = _mm_aesenc_si128(_mm_aesenc_si128(a, b), _mm_aesenc_si128(c, d));
    _mm_cvtsi128_si64(_mm_aesenc_si128(_mm_aesenc_si128(both, lanes[0]), lanes[1])) as u64
}

#[inline(always)]
pub fn hash_anywhere(state: &[u32]) -> u64 {
    let [a, b, c, d] = take_in(state, [SEED, ODD, LAST, OTHER], |lane, four| {
        let [low, high] = [[four[0], four[1]], [four[2], four[3]]].map(|[a, b]| a as u64 | (b as u64) << 32);
        *lane = fold(*lane ^ low, ODD ^ high);
    });
    fold(a ^ b.rotate_left(29), c.rotate_left(13) ^ d)
}

/// Takes all words in, four at a time.
#[inline(always)]
fn take_in<L: Copy>(state: &[u32], mut lanes: [L; LANES], step: impl Fn(&mut L, &Four)) -> [L; LANES] {
    let (fours, rest) = state.as_chunks();
    let (blocks, fours) = fours.as_chunks::<LANES>();
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, four)| step(lane, four));
    }
    lanes.iter_mut().zip(fours).for_each(|(lane, four)| step(lane, four));
    if !rest.is_empty() {
        // Some words a second time, if there are so many: copying a few takes longer.
        let few = || [0, 1, 2, 3].map(|at| rest.get(at).copied().unwrap_or(0));
        step(&mut lanes[LANES - 1], &state.last_chunk().copied().unwrap_or_else(few));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::scale;

    #[test]
    fn close_states_spread_evenly() {
        for hash in [hash, hash_anywhere] {
            for width in [1, 2, 3, 4, 7, 13, 16, 40, 94] {
                for (first, second) in [(0, width - 1), (width / 2, 0), (width.max(2) - 2, width - 1)] {
                    let mut buckets = [0u32; 256];
                    for number in 0..1u32 << 16 {
                        let mut state = vec![3; width];
                        state[first] = number >> 8;
                        state[second] = if first == second { number } else { number & 255 };
                        buckets[scale(hash(&state), 256)] += 1;
                    }
                    assert!(buckets.iter().all(|count| (156..=356).contains(count)), "{width} words: {buckets:?}");
                }
            }
        }
    }
}
