//! States that a worker has met lately: most of what a breadth-first search meets again, it has met a moment ago.
//!
//! Steps of different processes commute, so the successors of neighbouring states are much the same: on real models a third to
//! two thirds of all successors are among the last few thousand. Those are recognised in the processor's caches, before they are
//! encoded or looked up. A worker that meets a state again has met it in an earlier block, or earlier in the same one, so it is
//! not fresh, whoever enters the block; hence nothing that is counted depends on what is recognised here.
//!
//! It is a table of one state for each place, where the newest wins. States are compared as a whole: by their keys where those are
//! quickly computed, else as they are. What was met must have been entered; a block that was not must be followed by [`Recent::forget`].

use crate::hash;

/// Bytes of keys or of states that are remembered, about.
const BYTES: usize = 128 << 10;
/// States of any width: fewer would not be worth it.
const LEAST_PLACE_BITS: u32 = 8;

/// The states that were met lately, by place.
#[derive(Debug)]
pub struct Recent {
    place_bits: u32,
    /// The leading bits of keys, or hashes of states.
    tags: Vec<u64>,
    /// What comes behind, where keys are longer.
    low: Vec<u64>,
    /// States as they are, where they are compared so.
    words: Vec<u32>,
    width: usize,
    /// A buffer for states that were not met.
    unmet: Vec<u32>,
}

impl Recent {
    /// For states that are told by their keys, of up to so many bits.
    pub(crate) fn of_keys(bits: u32) -> Recent {
        let (place_bits, is_long) = (place_bits(bits.div_ceil(64) as usize * 8), bits > u64::BITS);
        Recent { low: if is_long { vec![0; 1 << place_bits] } else { Vec::new() }, ..Recent::empty(place_bits) }
    }

    /// For states of so many words that are compared as they are.
    pub(crate) fn of_states(width: usize) -> Recent {
        let place_bits = place_bits(8 + width * 4);
        Recent { words: vec![0; width << place_bits], width, ..Recent::empty(place_bits) }
    }

    fn empty(place_bits: u32) -> Recent {
        let mut recent =
            Recent { place_bits, tags: Vec::new(), low: Vec::new(), words: Vec::new(), width: 0, unmet: Vec::new() };
        recent.forget();
        recent
    }

    /// Are states compared as they are?
    pub(crate) fn compares_states(&self) -> bool {
        self.width > 0
    }

    /// Bytes that a worker's states take, at most, given words per state.
    pub fn most_bytes(width: usize) -> usize {
        BYTES.max((8 + width * 4) << LEAST_PLACE_BITS)
    }

    /// Forgets everything.
    pub fn forget(&mut self) {
        self.tags.clear();
        self.tags.resize(1 << self.place_bits, 0);
        // No tag is at a place where it does not belong, so these are those of no state.
        self.tags[0] = u64::MAX;
    }

    /// Was this key met? From now on it was.
    #[inline(always)]
    pub(crate) fn meet_key(&mut self, high: u64) -> bool {
        let place = &mut self.tags[(high >> (u64::BITS - self.place_bits)) as usize];
        std::mem::replace(place, high) == high
    }

    /// The same for keys of more than 64 bits.
    #[inline(always)]
    pub(crate) fn meet_long_key(&mut self, high: u64, low: u64) -> bool {
        let place = (high >> (u64::BITS - self.place_bits)) as usize;
        let was = (std::mem::replace(&mut self.tags[place], high), std::mem::replace(&mut self.low[place], low));
        was == (high, low)
    }

    /// Those of `states`, end to end, that were not met, and their positions; but for those at the positions `skip`.
    pub(crate) fn unmet(&mut self, states: &[u32], skip: &[u32], positions: &mut Vec<u32>) -> &[u32] {
        match self.width {
            // Steps that lead nowhere are rare.
            _ if !skip.is_empty() => self.unmet_wide(states, skip, positions),
            1 => self.unmet_narrow::<1>(states, positions),
            2 => self.unmet_narrow::<2>(states, positions),
            3 => self.unmet_narrow::<3>(states, positions),
            4 => self.unmet_narrow::<4>(states, positions),
            5 => self.unmet_narrow::<5>(states, positions),
            6 => self.unmet_narrow::<6>(states, positions),
            7 => self.unmet_narrow::<7>(states, positions),
            8 => self.unmet_narrow::<8>(states, positions),
            9 => self.unmet_narrow::<9>(states, positions),
            10 => self.unmet_narrow::<10>(states, positions),
            11 => self.unmet_narrow::<11>(states, positions),
            12 => self.unmet_narrow::<12>(states, positions),
            _ => self.unmet_wide(states, skip, positions),
        }
        &self.unmet
    }

    fn unmet_wide(&mut self, states: &[u32], skip: &[u32], positions: &mut Vec<u32>) {
        let mut unmet = std::mem::take(&mut self.unmet);
        unmet.clear();
        positions.clear();
        let mut skip = skip.iter().copied().peekable();
        for (state, position) in states.chunks_exact(self.width).zip(0..) {
            if skip.next_if_eq(&position).is_none() && !self.meet_state(state) {
                positions.push(position);
                unmet.extend_from_slice(state);
            }
        }
        self.unmet = unmet;
    }

    /// Half of the states were met, so nobody can guess which: everything is copied, whatever the answer.
    fn unmet_narrow<const WIDTH: usize>(&mut self, states: &[u32], positions: &mut Vec<u32>) {
        let (states, shift) = (states.as_chunks::<WIDTH>().0, u64::BITS - self.place_bits);
        let Recent { tags, words, unmet, .. } = self;
        unmet.resize(states.len() * WIDTH, 0);
        positions.resize(states.len(), 0);
        let (held, kept) = (words.as_chunks_mut::<WIDTH>().0, unmet.as_chunks_mut::<WIDTH>().0);
        let mut count = 0;
        for (state, position) in states.iter().zip(0..) {
            let hash = hash::words(state);
            let place = (hash >> shift) as usize;
            let differs =
                state.iter().zip(&held[place]).fold(tags[place] ^ hash, |all, (&new, &old)| all | (new ^ old) as u64);
            (tags[place], held[place]) = (hash, *state);
            (positions[count], kept[count]) = (position, *state);
            count += (differs != 0) as usize;
        }
        unmet.truncate(count * WIDTH);
        positions.truncate(count);
    }

    /// Was this state met? From now on it was.
    #[inline(always)]
    fn meet_state(&mut self, state: &[u32]) -> bool {
        let hash = hash::words(state);
        let place = (hash >> (u64::BITS - self.place_bits)) as usize;
        let words = &mut self.words[place * self.width..][..self.width];
        if self.tags[place] == hash && words == state {
            return true;
        }
        self.tags[place] = hash;
        words.copy_from_slice(state);
        false
    }
}

fn place_bits(bytes: usize) -> u32 {
    (BYTES / bytes).max(1).ilog2().max(LEAST_PLACE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;
    use std::collections::HashSet;

    /// Nothing is recognised that was not met, and what was met a moment ago is.
    #[test]
    fn only_what_was_met_is_recognised() {
        let (mut draw, mut positions) = (Draw::new(7), Vec::new());
        let (mut short, mut long, mut wide) = (Recent::of_keys(40), Recent::of_keys(100), Recent::of_states(3));
        for round in 0..3 {
            let mut met = HashSet::new();
            let mut recognised = [0; 3];
            for _ in 0..200_000 {
                let number = draw.below(50_000);
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let state = [number as u32, (number % 3) as u32, 0];
                let known = met.contains(&number);
                let answers = [
                    short.meet_key(key),
                    // All keys have few leading bits, so low ones must tell.
                    long.meet_long_key(key & 0xFF << 56, number),
                    wide.unmet(&state, &[], &mut positions).is_empty(),
                ];
                for (answer, count) in answers.into_iter().zip(&mut recognised) {
                    assert!(known || !answer, "{number} in round {round}");
                    *count += answer as u32;
                }
                assert!(
                    short.meet_key(key)
                        && long.meet_long_key(key & 0xFF << 56, number)
                        && wide.unmet(&state, &[], &mut positions).is_empty()
                );
                met.insert(number);
            }
            assert!(recognised[0] > 20_000 && recognised[2] > 5_000, "{recognised:?}");
            [&mut short, &mut long, &mut wide].into_iter().for_each(Recent::forget);
        }
    }

    #[test]
    fn keys_and_states_of_zeros_and_ones_are_not_met_before_they_are() {
        for key in [0, u64::MAX, 1, u64::MAX - 1] {
            assert!(!Recent::of_keys(64).meet_key(key) && !Recent::of_keys(65).meet_long_key(key, 0));
            assert!(!Recent::of_states(1).meet_state(&[key as u32]));
            assert_eq!(Recent::of_states(1).unmet(&[key as u32], &[], &mut Vec::new()), [key as u32]);
        }
    }

    #[test]
    fn states_of_any_width_are_told_apart() {
        for width in 1..40 {
            let (mut draw, mut recent, mut met) = (Draw::new(width as u64), Recent::of_states(width), HashSet::new());
            let (mut positions, mut recognised) = (Vec::new(), 0);
            for _ in 0..100 {
                let states: Vec<u32> = (0..50 * width).map(|_| draw.below(1 + 30 / width as u64) as u32).collect();
                let skip: &[u32] = if draw.below(2) == 0 { &[3, 9] } else { &[] };
                let unmet = recent.unmet(&states, skip, &mut positions).to_vec();
                let mut kept = positions.iter().zip(unmet.chunks(width)).peekable();
                for (state, position) in states.chunks(width).zip(0..) {
                    if let Some((_, copy)) = kept.next_if(|(kept, _)| **kept == position) {
                        assert!(copy == state && !skip.contains(&position), "width {width}");
                        met.insert(state.to_vec());
                    } else if !skip.contains(&position) {
                        assert!(met.contains(state), "width {width}");
                        recognised += 1;
                    }
                }
                assert!(kept.next().is_none());
            }
            assert!(recognised > 0 || width > 9, "width {width}");
        }
    }
}
