//! Sets whose elements nothing relates to one another.
//!
//! All that a state says about such an element is the piece that belongs to it and which fields of variables name it. Together
//! that is the element's key. Elements with equal keys can be exchanged without changing the state, so keys in order are a
//! representative, the same for all states of an orbit, and nothing needs to be tried.
//!
//! Pieces may hold names of sets of two, the *leaders*, which must be in order first: variables alone decide that. Where they name neither of the
//! two, keys say nothing about the state.

use super::pieces::{Pieces, Pointer};
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct Plain {
    pub leaders: Vec<Key>,
    /// The other sets of several elements.
    pub sorted: Vec<Key>,
}

/// What the keys of the elements of a set are made of.
#[derive(Clone, Debug)]
pub struct Key {
    pub elements: Range<u32>,
    /// The piece of each element, if it has one, and by how much that is shifted.
    pub own: Vec<u32>,
    pub shift: u32,
    pub named: Vec<Named>,
}

/// The fields of a variable's piece that may name elements of a set. A key has the lowest bits of those that name its element, turned to
/// where they have room.
#[derive(Clone, Debug)]
pub struct Named {
    pub piece: u32,
    pub fields: Vec<Pointer>,
    pub turn: u32,
}

impl Named {
    /// The lowest bits of all fields.
    pub fn lowest(&self) -> u64 {
        self.fields.iter().fold(0, |all, field| all | 1 << field.shift)
    }

    /// The lowest bits of those that name the element at this place of its set.
    fn naming(&self, values: &[u64], place: u32) -> u64 {
        let value = values[self.piece as usize];
        let names = self.fields.iter().filter(|field| field.place(value) == Some(place));
        names.fold(0, |all, field| all | 1 << field.shift)
    }
}

/// So many places are tried for what is put into keys.
const MOST_TRIES: u32 = 100_000;

/// Turns what names elements to where bits of a key are not taken; false if that cannot be.
fn find_room(named: &mut [Named], taken: u64, tries: &mut u32) -> bool {
    let Some((first, others)) = named.split_first_mut() else { return true };
    let last = first.fields.last().map_or(0, |field| field.shift);
    (0..u64::BITS).any(|below| {
        let turn = (2 * u64::BITS - 1 - last - below) % u64::BITS;
        let lowest = first.lowest().rotate_left(turn);
        first.turn = turn;
        *tries = tries.saturating_sub(1);
        *tries > 0 && taken & lowest == 0 && find_room(others, taken | lowest, tries)
    })
}

impl Plain {
    /// `None` if something relates elements, or if keys have more than 64 bits.
    pub fn of(pieces: &Pieces) -> Option<Plain> {
        let relates = |piece| pieces.coordinates(piece).len() > 1;
        if !pieces.bags.is_empty() || pieces.all.iter().any(relates) || pieces.own.iter().any(|own| own.len() > 1) {
            return None;
        }
        let held = pieces.own.iter().flatten().flat_map(|&piece| pieces.pointers(&pieces.all[piece as usize]));
        let held: Vec<u32> = held.map(|pointer| pointer.element).collect();
        let sets = pieces.set_starts.windows(2).map(|set| set[0]..set[1]).filter(|set| set.len() > 1);
        let (leaders, sorted): (Vec<_>, Vec<_>) = sets.partition(|set| held.contains(&set.start));
        let keys =
            |sets: Vec<Range<u32>>| sets.into_iter().map(|set| Key::of(pieces, set)).collect::<Option<Vec<Key>>>();
        let plain = Plain { leaders: keys(leaders)?, sorted: keys(sorted)? };
        let leads = |key: &Key| {
            let mut names = pieces.all.iter().flat_map(|piece| pieces.pointers(piece));
            let is_swapped = |pointer: &Pointer| pointer.element != key.elements.start || pointer.names_only;
            key.elements.len() == 2 && key.own.is_empty() && !key.named.is_empty() && names.all(is_swapped)
        };
        plain.leaders.iter().all(leads).then_some(plain)
    }

    /// Are there no leaders?
    pub fn is_always_decided(&self) -> bool {
        self.leaders.is_empty()
    }

    /// The pieces of the representative; false if leaders are not told apart.
    pub fn represent(&self, pieces: &Pieces, values: &[u64], out: &mut Vec<u64>) -> bool {
        out.clear();
        out.extend_from_slice(values);
        for key in &self.leaders {
            let [first, second] = [0, 1].map(|place| key.of_element(values, place));
            if first == second {
                return false;
            }
            if first < second {
                pieces.swap_names(key.elements.start, out);
            }
        }
        for key in &self.sorted {
            key.sort(out);
        }
        true
    }
}

impl Key {
    fn of(pieces: &Pieces, elements: Range<u32>) -> Option<Key> {
        let own: Vec<u32> = elements.clone().flat_map(|element| pieces.own[element as usize].iter().copied()).collect();
        let bits = own.iter().fold(0, |all, &piece| all | pieces.bits(piece as usize));
        let shift = bits.leading_zeros().min(u64::BITS - 1);
        let taken_by_own = if own.is_empty() { 0 } else { u64::MAX << shift };
        let mut named = Vec::new();
        let variables = pieces.all.iter().enumerate().filter(|(_, piece)| pieces.coordinates(piece).is_empty());
        for (piece, all) in variables.rev() {
            let fields = pieces.pointers(all).iter().filter(|pointer| pointer.element == elements.start);
            let fields: Vec<Pointer> = fields.copied().collect();
            if !fields.is_empty() {
                named.push(Named { piece: piece as u32, fields, turn: 0 });
            }
        }
        find_room(&mut named, taken_by_own, &mut MOST_TRIES.clone()).then_some(())?;
        Some(Key { elements, own, shift, named })
    }

    fn of_element(&self, values: &[u64], place: u32) -> u64 {
        let own = self.own.get(place as usize).map_or(0, |&piece| values[piece as usize] << self.shift);
        let naming = self.named.iter().map(|named| named.naming(values, place).rotate_left(named.turn));
        naming.fold(own, |all, bits| all | bits)
    }

    /// Puts elements into the order of their keys.
    fn sort(&self, values: &mut [u64]) {
        let mut keys: Vec<u64> = (0..self.elements.len() as u32).map(|place| self.of_element(values, place)).collect();
        let before = keys.clone();
        keys.sort_unstable();
        for (&piece, key) in self.own.iter().zip(&keys) {
            values[piece as usize] = key >> self.shift;
        }
        for named in &self.named {
            // Names of a set follow one another, so the difference of places is that of names.
            let naming = |key: &u64| key.rotate_right(named.turn) & named.lowest();
            let value = &mut values[named.piece as usize];
            for (place, (before, now)) in before.iter().zip(&keys).enumerate() {
                let change = naming(now).wrapping_sub(naming(before));
                *value = value.wrapping_add(change.wrapping_mul(place as u64));
            }
        }
    }
}
