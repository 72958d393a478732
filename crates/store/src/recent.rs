//! States that a worker has met lately: most of what a breadth-first search meets again, it has met a moment ago.
//!
//! Steps of different processes commute, so the successors of neighbouring states are much the same: on real models a third to
//! two thirds of all successors are among the last few thousand. Those are recognised in the processor's caches, before they are
//! encoded or looked up. A worker that meets a state again has met it in an earlier block, or earlier in the same one, so it is
//! not fresh, whoever enters the block; hence nothing that is counted depends on what is recognised here.
//!
//! It is a table of one state for each place, where the newest wins. States are compared as a whole: by their keys where those are
//! quickly computed, else as they are, and wide ones only where their hashes are equal. What was met must have been entered; a block that was not must be followed by [`Recent::forget`].
//!
//! A step that changes nothing leads to a state that was entered long ago: the one it was taken in. Protocols that leave messages
//! waiting have many (up to half of all steps), and comparing the two is all that it takes.

use crate::codec::Coder;
use crate::hash;
use crate::quick_hash;
use crate::region::prefetch;
use crate::tiers::Block;
use crate::width::{NARROW, are_same, by_width};

/// Bytes of keys or of states that are remembered, about, unless somebody says otherwise.
pub(crate) const BYTES: usize = 128 << 10;
/// States of any width: fewer would not be worth it.
const LEAST_PLACES: usize = 256;
/// So many states ahead places are asked for.
const AHEAD: usize = 16;

/// The states that were met lately, by place.
#[derive(Debug)]
pub struct Recent {
    places: usize,
    /// The leading bits of keys, where states are told by those; hashes of states that are compared as they are and wide.
    high: Vec<u64>,
    /// What comes behind, where keys are longer.
    low: Vec<u64>,
    /// States as they are, where they are compared so.
    words: Vec<u32>,
    width: usize,
    /// A buffer for states that were not met.
    unmet: Vec<u32>,
    /// How often the store had forgotten something when the first of them was met.
    forgot: u64,
}

impl Recent {
    /// For states that are told by their keys, of up to so many bits, in about so many bytes.
    pub(crate) fn of_keys(bits: u32, bytes: usize) -> Recent {
        let places = places(bytes, bits.div_ceil(64) as usize * 8);
        let low = vec![0; if bits > u64::BITS { places } else { 0 }];
        Recent { places, high: vec![0; places], low, words: Vec::new(), width: 0, unmet: Vec::new(), forgot: 0 }
            .forgotten()
    }

    /// For states of so many words that are compared as they are.
    pub(crate) fn of_states(width: usize, bytes: usize) -> Recent {
        let hash_bytes = if width > NARROW { size_of::<u64>() } else { 0 };
        let places = places(bytes, width * 4 + hash_bytes);
        let (high, words) = (vec![0; if width > NARROW { places } else { 0 }], vec![0; width * places]);
        Recent { places, high, low: Vec::new(), words, width, unmet: Vec::new(), forgot: 0 }.forgotten()
    }

    fn forgotten(mut self) -> Recent {
        self.forget();
        self
    }

    /// Are states compared as they are?
    pub(crate) fn compares_states(&self) -> bool {
        self.width > 0
    }

    /// Is it what this coder wants?
    pub(crate) fn suits(&self, coder: &Coder) -> bool {
        self.compares_states() == coder.compares_states()
            && (self.compares_states() || self.low.is_empty() == (coder.key_bits() <= u64::BITS))
    }

    /// Bytes that a worker's states take, at most, given words per state and how many there should be about.
    pub fn most_bytes(width: usize, bytes: usize) -> usize {
        bytes.max((width * 4 + size_of::<u64>()) * LEAST_PLACES)
    }

    /// Forgets everything if the store has forgotten something in the meantime.
    pub fn forget_with(&mut self, forgot: u64) {
        if self.forgot != forgot {
            self.forget();
            self.forgot = forgot;
        }
    }

    /// Forgets everything: no place holds what belongs there.
    pub fn forget(&mut self) {
        self.high.fill(0);
        if let Some(first) = self.high.first_mut() {
            *first = u64::MAX;
        }
        self.words.fill(0);
        if self.compares_states() {
            let mut state = vec![0; self.width];
            let place = |state: &[u32]| hash::scale(quick_hash::hash(state), self.places);
            let place_of_zeros = place(&state);
            while place(&state) == place_of_zeros {
                state[0] += 1;
            }
            self.words[place_of_zeros * self.width..][..self.width].copy_from_slice(&state);
        }
    }

    /// Was this key met? From now on it was.
    #[inline(always)]
    pub(crate) fn meet_key(&mut self, high: u64) -> bool {
        let place = hash::scale(high, self.places);
        std::mem::replace(&mut self.high[place], high) == high
    }

    /// The same for keys of more than 64 bits.
    #[inline(always)]
    pub(crate) fn meet_long_key(&mut self, high: u64, low: u64) -> bool {
        let place = hash::scale(high, self.places);
        let was = (std::mem::replace(&mut self.high[place], high), std::mem::replace(&mut self.low[place], low));
        was == (high, low)
    }

    /// Those of the states of `block` that were not met, end to end, and their positions; but for those to skip.
    pub(crate) fn unmet(&mut self, block: Block, positions: &mut Vec<u32>) -> &[u32] {
        self.look_for(block, positions);
        &self.unmet
    }

    fn look_for(&mut self, block: Block, positions: &mut Vec<u32>) {
        #[cfg(target_arch = "x86_64")]
        if quick_hash::is_quick() {
            // SAFETY: the processor has these instructions.
            return unsafe { self.look_quickly(block, positions) };
        }
        self.look_with(block, positions, quick_hash::hash_anywhere);
    }

    /// The same with instructions that not all processors have: see [`quick_hash`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "aes")]
    fn look_quickly(&mut self, block: Block, positions: &mut Vec<u32>) {
        self.look_with(block, positions, |state| quick_hash::hash_quickly(state));
    }

    #[inline(always)]
    fn look_with(&mut self, block: Block, positions: &mut Vec<u32>, hash: impl Fn(&[u32]) -> u64) {
        // Steps that lead nowhere are rare.
        if !block.skip.is_empty() {
            self.look_for_wide(block, positions, hash);
        } else {
            by_width!(self.width, WIDTH => self.look_for_narrow::<WIDTH>(block, positions, hash), self.look_for_wide(block, positions, hash));
        }
    }

    /// Places are asked for some states ahead, for few of them are in the fastest cache.
    #[inline(always)]
    fn look_for_wide(&mut self, block: Block, positions: &mut Vec<u32>, hash: impl Fn(&[u32]) -> u64) {
        let (mut unmet, width) = (std::mem::take(&mut self.unmet), self.width);
        unmet.clear();
        positions.clear();
        let mut skip = block.skip.iter().copied().peekable();
        let ask_for = |recent: &Recent, state: &[u32]| {
            let hash = hash(state);
            let place = hash::scale(hash, recent.places);
            recent.high.get(place).into_iter().for_each(prefetch);
            prefetch(&recent.words[place * width]);
            hash
        };
        let mut ahead = [0; AHEAD];
        for (hash, state) in ahead.iter_mut().zip(block.states.chunks_exact(width)) {
            *hash = ask_for(self, state);
        }
        let mut parents = block.parents.chunks_exact(width);
        for bounds in block.firsts.windows(2) {
            // Initial states have no parents. Hashes tell almost everything apart, and are looked at first.
            let parent = parents.next().map(|parent| (hash(parent), parent));
            let successors = block.states[bounds[0] as usize * width..bounds[1] as usize * width].chunks_exact(width);
            for (state, position) in successors.zip(bounds[0]..) {
                let later = (position as usize + AHEAD) * width;
                let later = ask_for(self, block.states.get(later..later + width).unwrap_or(state));
                let hash = std::mem::replace(&mut ahead[position as usize % AHEAD], later);
                if skip.next_if_eq(&position).is_none()
                    && parent != Some((hash, state))
                    && !self.meet_state(state, hash)
                {
                    positions.push(position);
                    unmet.extend_from_slice(state);
                }
            }
        }
        self.unmet = unmet;
    }

    /// The same for narrow states, and nothing to skip. Half of the states were met, so nobody can guess which: everything is copied, whatever
    /// the answer.
    #[inline(always)]
    fn look_for_narrow<const WIDTH: usize>(
        &mut self,
        block: Block,
        positions: &mut Vec<u32>,
        hash: impl Fn(&[u32]) -> u64,
    ) {
        let states = block.states.as_chunks::<WIDTH>().0;
        let Recent { places, words, unmet, .. } = self;
        unmet.resize(states.len() * WIDTH, 0);
        positions.resize(states.len(), 0);
        let (held, kept) = (words.as_chunks_mut::<WIDTH>().0, unmet.as_chunks_mut::<WIDTH>().0);
        let ask_for = |held: &[[u32; WIDTH]], state: &[u32; WIDTH]| {
            let place = hash::scale(hash(state), *places);
            prefetch(&held[place][0]);
            // It may reach into the next line.
            if WIDTH > 4 {
                prefetch(&held[place][WIDTH - 1]);
            }
            place
        };
        let mut ahead = [0; AHEAD];
        for (place, state) in ahead.iter_mut().zip(states) {
            *place = ask_for(held, state);
        }
        let parents = block.parents.as_chunks::<WIDTH>().0;
        let mut count = 0;
        for (position, state) in states.iter().enumerate() {
            let later = ask_for(held, states.get(position + AHEAD).unwrap_or(state));
            let place = std::mem::replace(&mut ahead[position % AHEAD], later);
            if block.parent_of(position, parents).is_some_and(|parent| are_same(parent, state)) {
                continue;
            }
            let place = &mut held[place];
            let differs = !are_same(place, state);
            // One after the other: a copy of the state on its way to both would wait for itself.
            *place = *state;
            kept[count] = *state;
            positions[count] = position as u32;
            count += differs as usize;
        }
        unmet.truncate(count * WIDTH);
        positions.truncate(count);
    }

    /// Was this state, with this hash, met? From now on it was.
    #[inline(always)]
    fn meet_state(&mut self, state: &[u32], hash: u64) -> bool {
        let place = hash::scale(hash, self.places);
        let words = &mut self.words[place * self.width..][..self.width];
        let same_hash = self.high.get_mut(place).is_none_or(|held| std::mem::replace(held, hash) == hash);
        if same_hash && words == state {
            return true;
        }
        words.copy_from_slice(state);
        false
    }
}

fn places(bytes: usize, each: usize) -> usize {
    (bytes / each).max(LEAST_PLACES)
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
        let (mut short, mut long, mut wide) =
            (Recent::of_keys(40, BYTES), Recent::of_keys(100, BYTES), Recent::of_states(3, BYTES));
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
                    wide.unmet(Block::of(&state, &[0, 1]), &mut positions).is_empty(),
                ];
                for (answer, count) in answers.into_iter().zip(&mut recognised) {
                    assert!(known || !answer, "{number} in round {round}");
                    *count += answer as u32;
                }
                assert!(
                    short.meet_key(key)
                        && long.meet_long_key(key & 0xFF << 56, number)
                        && wide.unmet(Block::of(&state, &[0, 1]), &mut positions).is_empty()
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
            assert!(!Recent::of_keys(64, BYTES).meet_key(key) && !Recent::of_keys(65, BYTES).meet_long_key(key, 0));
            for width in [1, NARROW + 1] {
                let (state, mut recent) = (vec![key as u32; width], Recent::of_states(width, BYTES));
                let hash = quick_hash::hash(&state);
                assert!(!recent.meet_state(&state, hash) && recent.meet_state(&state, hash));
            }
            let state = [key as u32];
            assert_eq!(Recent::of_states(1, BYTES).unmet(Block::of(&state, &[0, 1]), &mut Vec::new()), state);
        }
    }

    #[test]
    fn states_of_any_width_are_told_apart() {
        for width in 1..40 {
            let (mut draw, mut recent, mut met) =
                (Draw::new(width as u64), Recent::of_states(width, BYTES), HashSet::new());
            let (mut positions, mut recognised) = (Vec::new(), 0);
            for _ in 0..100 {
                let states: Vec<u32> = (0..50 * width).map(|_| draw.below(1 + 30 / width as u64) as u32).collect();
                let skip: &[u32] = if draw.below(2) == 0 { &[3, 9] } else { &[] };
                let block = Block { skip, ..Block::of(&states, &[0, 50]) };
                let unmet = recent.unmet(block, &mut positions).to_vec();
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

    #[test]
    fn steps_that_change_nothing_are_recognised() {
        for width in [1, 7, 20] {
            let state = |number: u32| vec![number; width];
            let parents = [state(5), state(6)].concat();
            let states = [state(5), state(7), state(6), state(5), state(6), state(7)].concat();
            let block = Block { parents: &parents, owners: &[0, 0, 0, 1, 1, 1], ..Block::of(&states, &[0, 3]) };
            let block = Block { firsts: &[0, 3, 6], ..block };
            for (skip, expected) in [(&[][..], &[1, 2, 3][..]), (&[1], &[2, 3, 5])] {
                let mut positions = Vec::new();
                let unmet = Recent::of_states(width, BYTES).unmet(Block { skip, ..block }, &mut positions).to_vec();
                assert_eq!(positions, expected, "width {width}");
                assert_eq!(unmet.len(), positions.len() * width);
            }
        }
    }
}
