//! Keys that tell no more than states need so far.
//!
//! When the first states were seen keys are shortened to the bits in which those differ. A state that differs in others has no key, which
//! whoever encodes it is told; then those bits are added **behind** the others. States so far are all alike there, and keys are
//! left-aligned, so their keys end with zeros in those places already: whatever holds them, in memory or on disk, may stay as it is.
//! Bits that were added are mixed into the leading ones, but not with each other; so there are enough leading ones from the beginning.
//!
//! Where states may use more bits than a key has, one may come that differs in more than those. Then keys are
//! [outgrown](Packing::is_outgrown): they stay injective, for that state gets none, and whoever holds them must take them all apart.

use super::{MOST_BITS, Move, Packing, pair_of};
use crate::stream::{Unloaded, put_number, take_below, take_number};
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;

/// Leading bits that tell the homes of any table, if states may use as many.
const LEAST_MIXED_BITS: u32 = 32;
/// Keys should become shorter by so many bits, or it is not worth it.
const LEAST_GAIN: u32 = 4;
/// After so many times all bits are added that states may use.
const MOST_ADDED: usize = 24;

/// The bits in which states differ from the first of them.
#[derive(Debug, Default)]
pub struct Differing {
    /// For each pair of words the first state, and the bits.
    pairs: Vec<[u64; 2]>,
}

impl Differing {
    /// Takes note of states of so many words, which are end to end.
    pub fn add(&mut self, states: &[u32], width: usize) {
        let mut states = states.chunks_exact(width);
        if self.pairs.is_empty()
            && let Some(first) = states.next()
        {
            self.pairs.extend(first.chunks(2).map(|words| [pair_of(words), 0]));
        }
        for state in states {
            for (words, [base, told]) in state.chunks(2).zip(&mut self.pairs) {
                *told |= pair_of(words) ^ *base;
            }
        }
    }
}

impl Packing {
    /// Bits of a key when it tells as much as it ever may.
    pub fn most_key_bits(&self) -> u32 {
        let untold = self.pairs.iter().map(|pair| (pair.used & !pair.told).count_ones()).sum::<u32>();
        (self.bits + untold).min(MOST_BITS)
    }

    /// May states use more bits than a key has?
    pub fn is_wide(&self) -> bool {
        self.pairs.iter().map(|pair| pair.used.count_ones()).sum::<u32>() > MOST_BITS
    }

    /// Did a state come that differs in more bits than a key has?
    pub fn is_outgrown(&self) -> bool {
        self.is_outgrown
    }

    /// The same for shorter keys, which tell in what states like these (end to end) differ; none if that is hardly less.
    pub fn narrowed(&self, states: &[u32]) -> Option<Packing> {
        let mut differing = Differing::default();
        differing.add(states, self.width);
        self.telling(&differing).filter(|narrowed| narrowed.bits + LEAST_GAIN <= self.bits)
    }

    /// The same for keys that tell in what some states differ; none if that is too much for a key.
    pub fn telling(&self, states: &Differing) -> Option<Packing> {
        let known = states.pairs.iter().zip(&self.pairs);
        let mut pairs: Vec<[u64; 3]> = known.map(|(&[base, told], pair)| [pair.used, told, base]).collect();
        let bits = |pairs: &[[u64; 3]]| pairs.iter().map(|[_, told, _]| told.count_ones()).sum::<u32>();
        // Those above what is told come next, as numbers grow.
        while bits(&pairs) < LEAST_MIXED_BITS {
            let next = pairs.iter_mut().find_map(|[used, told, _]| {
                let (above, any) = (*told << 1 & *used & !*told, *used & !*told);
                let next = if above != 0 { above } else { any };
                (next != 0).then(|| (told, 1 << next.trailing_zeros()))
            });
            let Some((told, next)) = next else { break };
            *told |= next;
        }
        (bits(&pairs) <= MOST_BITS).then(|| Packing::of_pairs(self.width, pairs.iter().copied()))
    }

    /// Adds the bits in which states differed that had no key; false if there were none, or if keys are [outgrown](Packing::is_outgrown) by
    /// them. No key may be under way.
    pub fn widen(&mut self) -> bool {
        let untold = self.untold.iter().map(|untold| untold.swap(0, Ordering::Relaxed));
        let more: Vec<u64> = untold.zip(&self.pairs).map(|(untold, pair)| untold & !pair.told).collect();
        if more.iter().all(|&more| more == 0) {
            return false;
        }
        if self.bits + more.iter().map(|more| more.count_ones()).sum::<u32>() > MOST_BITS {
            self.is_outgrown = true;
            return false;
        }
        if self.added.len() >= MOST_ADDED && !self.is_wide() {
            self.widen_for_good();
        } else {
            more.into_iter().enumerate().for_each(|(number, more)| self.add(number, more));
        }
        true
    }

    /// Tells all that states may use, from now on.
    fn widen_for_good(&mut self) {
        (0..self.pairs.len()).for_each(|number| self.add(number, self.pairs[number].used & !self.pairs[number].told));
    }

    /// Adds bits of a pair behind the others.
    fn add(&mut self, number: usize, more: u64) {
        if more != 0 {
            self.pairs[number].told |= more;
            self.bits += more.count_ones();
            self.added.push((number, Move::new(more, MOST_BITS - self.bits)));
        }
    }

    /// Takes note of the bits in which states differ that keys do not tell.
    #[cold]
    pub(super) fn note_untold(&self, states: &[u32]) {
        for state in states.chunks_exact(self.width) {
            for ((words, pair), noted) in state.chunks(2).zip(&self.pairs).zip(&*self.untold) {
                let words = pair_of(words);
                // Two states that differ there would have one key.
                assert!(words & !pair.used == 0, "a state has bits that its model says are never used");
                noted.fetch_or((words ^ pair.base) & !pair.told, Ordering::Relaxed);
            }
        }
    }

    /// Writes what keys tell.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.pairs.iter().try_for_each(|pair| {
            put_number(out, pair.first.used)?;
            put_number(out, pair.base)
        })?;
        put_number(out, self.added.len() as u64)?;
        self.added.iter().try_for_each(|(number, moved)| {
            put_number(out, *number as u64)?;
            put_number(out, moved.used)
        })
    }

    /// Reads what a packing of the same states has written; from then on keys are as long as there.
    pub fn load(&mut self, from: &mut dyn Read) -> Result<(), Unloaded> {
        let damaged = || Unloaded::damaged("keys tell what no state uses");
        let mut pairs = Vec::with_capacity(self.pairs.len());
        for pair in &self.pairs {
            let (told, base) = (take_number(from)?, take_number(from)?);
            if (told | base) & !pair.used != 0 {
                return Err(damaged());
            }
            pairs.push([pair.used, told, base]);
        }
        if pairs.iter().map(|[_, told, _]| told.count_ones()).sum::<u32>() > MOST_BITS {
            return Err(damaged());
        }
        *self = Packing::of_pairs(self.width, pairs.into_iter());
        let most = MOST_BITS as usize;
        for _ in 0..take_below(from, most, "times that bits were added")? {
            let number = take_below(from, self.pairs.len() - 1, "as the number of a pair")?;
            let (more, pair) = (take_number(from)?, &self.pairs[number]);
            if more & (!pair.used | pair.told) != 0 || self.bits + more.count_ones() > MOST_BITS {
                return Err(damaged());
            }
            self.add(number, more);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::Untold;
    use plimsoll_ir::random::Draw;
    use std::collections::HashMap;

    fn keys(packing: &Packing, states: &[u32]) -> Result<Vec<u128>, Untold> {
        let (mut high, mut low) = (Vec::new(), Vec::new());
        packing.encode(states, &mut high, &mut low)?;
        assert_eq!(low.is_empty(), packing.key_bits() <= 64);
        let low = low.into_iter().chain(std::iter::repeat(0));
        Ok(high.into_iter().zip(low).map(|(high, low)| (high as u128) << 64 | low as u128).collect())
    }

    fn decoded(packing: &Packing, key: u128) -> Vec<u32> {
        let (words, mut state) = ([96, 64, 32, 0].map(|shift| (key >> shift) as u32), Vec::new());
        packing.decode(&words[..if packing.most_key_bits() > 64 { 4 } else { 2 }], &mut state);
        state
    }

    /// States whose words grow with time, in many ways; keys must tell all of them apart, never change, and be taken apart again.
    #[test]
    fn keys_stay_what_they_are_while_bits_are_added() {
        let (mut draw, mut grew, mut passed_64) = (Draw::new(5), 0, 0);
        for round in 0..300 {
            let width = 1 + round % 8;
            let mut used: Vec<u32> = (0..width).map(|_| draw.bits() as u32).collect();
            if round % 3 > 0 {
                used.iter_mut().for_each(|used| *used &= draw.bits() as u32);
            }
            let Some(whole) = Packing::new(&used) else { continue };
            let origin: Vec<u32> = used.iter().map(|used| used & draw.bits() as u32).collect();
            let mut state_after = |time: u32| -> Vec<u32> {
                let mut grown = |used: &u32| used & ((draw.bits() as u32) >> (32 - time.min(32)));
                origin.iter().zip(&used).map(|(word, used)| word ^ grown(used)).collect()
            };
            let first: Vec<u32> = (0..50).flat_map(|_| state_after(3)).collect();
            let Some(mut packing) = whole.narrowed(&first) else { continue };
            assert!(packing.key_bits() < whole.key_bits() && packing.most_key_bits() <= whole.key_bits());
            let (mut known, mut bits) = (HashMap::new(), packing.key_bits());
            for time in 1..32 {
                for state in (0..20).map(|_| state_after(time)) {
                    let key = loop {
                        match keys(&packing, &state) {
                            Ok(keys) => break keys[0],
                            Err(Untold) => assert!(packing.widen()),
                        }
                    };
                    assert!(key.checked_shl(packing.key_bits()).is_none_or(|rest| rest == 0));
                    assert_eq!(decoded(&packing, key), state);
                    assert_eq!(*known.entry(key).or_insert(state.clone()), state);
                }
                assert!(!packing.widen(), "all bits were added");
                grew += (packing.key_bits() > bits) as usize;
                passed_64 += (bits <= 64 && packing.key_bits() > 64) as usize;
                bits = packing.key_bits();
            }
            for (&key, state) in &known {
                assert_eq!(keys(&packing, state), Ok(vec![key]), "the key of a state has changed");
                assert_eq!(decoded(&packing, key), *state);
            }
            let (mut bytes, mut again) = (Vec::new(), whole.clone());
            packing.save(&mut bytes).unwrap();
            again.load(&mut &bytes[..]).unwrap();
            assert!(known.iter().all(|(&key, state)| keys(&again, state) == Ok(vec![key])));
            packing.widen_for_good();
            assert_eq!(packing.key_bits(), packing.most_key_bits());
            assert!(known.iter().all(|(&key, state)| keys(&packing, state) == Ok(vec![key])));
        }
        assert!(grew > 300 && passed_64 > 20, "{grew} {passed_64}");
    }

    /// Where states may use more bits than a key has, keys tell apart whatever has one, and what has none is known.
    #[test]
    fn keys_of_states_that_may_use_more_bits_than_they_have_are_outgrown_in_the_end() {
        let (mut draw, mut outgrown, mut late) = (Draw::new(9), 0, 0);
        for round in 0..60 {
            let used: Vec<u32> = (0..5 + round % 9).map(|_| draw.bits() as u32 | 0xFFFF_F000).collect();
            let (packing, width) = (Packing::of_any(&used), used.len());
            let mut state_after = |time: u32| -> Vec<u32> {
                used.iter().map(|used| used & draw.bits() as u32 >> (32 - time.min(32))).collect()
            };
            let mut differing = Differing::default();
            (0..20).for_each(|_| differing.add(&state_after(4).repeat(1 + round % 3), width));
            let mut packing = packing.telling(&differing).unwrap();
            assert_eq!(packing.is_wide(), Packing::new(&used).is_none());
            let (mut known, mut all) = (HashMap::new(), differing);
            for time in 4..32 {
                let state = state_after(time);
                all.add(&state, width);
                let key = loop {
                    match keys(&packing, &state) {
                        Ok(keys) => break Some(keys[0]),
                        Err(Untold) if packing.widen() => {}
                        Err(Untold) => break None,
                    }
                };
                let fits = all.pairs.iter().map(|[_, told]| told.count_ones()).sum::<u32>() <= MOST_BITS;
                assert_eq!(key.is_none(), packing.is_outgrown());
                assert!(!fits || key.is_some() || packing.key_bits() > 100, "there was room");
                let Some(key) = key else {
                    outgrown += 1;
                    late += (known.len() > 12) as u32;
                    assert!(packing.is_wide() && all.pairs.len() == width.div_ceil(2));
                    break;
                };
                assert_eq!(*known.entry(key).or_insert(state.clone()), state);
            }
            for (&key, state) in &known {
                let mut whole = Vec::new();
                packing.decode_whole(key, &mut whole);
                assert_eq!((keys(&packing, state), &whole), (Ok(vec![key]), state));
            }
            assert!(
                packing.is_outgrown() || all.pairs.iter().map(|[_, told]| told.count_ones()).sum::<u32>() <= MOST_BITS
            );
            let (mut bytes, mut again) = (Vec::new(), Packing::of_any(&used));
            packing.save(&mut bytes).unwrap();
            again.load(&mut &bytes[..]).unwrap();
            assert!(known.iter().all(|(&key, state)| keys(&again, state) == Ok(vec![key])));
            // The first pair tells all, and so do the others: that is too much.
            let told: Vec<u8> = used.chunks(2).flat_map(|pair| [pair_of(pair), 0]).flat_map(u64::to_le_bytes).collect();
            let loaded = again.load(&mut &[&told[..], &[0; 8]].concat()[..]);
            assert_eq!(matches!(loaded, Err(Unloaded::Damaged(_))), packing.is_wide());
        }
        assert!(outgrown > 20 && late > 5, "{outgrown} {late}");
    }

    #[test]
    fn keys_that_would_hardly_be_shorter_stay() {
        let packing = Packing::new(&[0xFFFF, 0xFFFF, 0xFF]).unwrap();
        assert!(packing.narrowed(&[0, 0, 0, 0xFFFF, 0xFFFF, 0x1F]).is_none());
        assert_eq!(packing.narrowed(&[0, 0, 0, 0xFFFF, 0xFFFF, 0xF]).unwrap().key_bits(), 36);
        // Homes need bits.
        assert_eq!(packing.narrowed(&[0, 0, 0, 1, 1, 1]).unwrap().key_bits(), 32);
        assert!(Packing::new(&[0xFFFF]).unwrap().narrowed(&[0, 1]).is_none());
    }

    #[test]
    fn what_is_no_packing_is_refused() {
        let packing = Packing::new(&[0xFF, 0xFF, 0xFFFF]).unwrap();
        let mut bytes = Vec::new();
        packing.save(&mut bytes).unwrap();
        for (at, value) in [(0, 0xFFFF_u64), (8, 0x100), (32, 200)] {
            let mut bytes = bytes.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert!(matches!(packing.clone().load(&mut &bytes[..]), Err(Unloaded::Damaged(_))), "at {at}");
        }
        assert!(packing.clone().load(&mut &bytes[..20]).is_err());
    }

    /// Lines must fill like balls thrown at random, also where much was added.
    #[test]
    fn keys_look_random_in_front_whatever_was_added() {
        let used = [0xFFFF_u32, 0xFFFF, 0xFFFF, 0xFFFF];
        let state = |number: u32| [number & 15, number >> 4 & 15, (number >> 8 & 31) << 6, (number >> 13) << 8];
        let mut packing =
            Packing::new(&used).unwrap().narrowed(&state(0).into_iter().chain(state(255)).collect::<Vec<_>>()).unwrap();
        let all: Vec<u32> = (0..1 << 18).flat_map(state).collect();
        while keys(&packing, &all).is_err() {
            assert!(packing.widen());
        }
        assert_eq!(packing.key_bits(), 42, "32 bits, and ten more");
        let mut lines = vec![0u32; 1 << 14];
        keys(&packing, &all).unwrap().iter().for_each(|key| lines[(key >> (128 - 14)) as usize] += 1);
        let variance = lines.iter().map(|&fill| (fill as f64 - 16.0).powi(2)).sum::<f64>() / lines.len() as f64;
        assert!(variance < 20.0, "variance {variance}, mean 16");
    }
}
