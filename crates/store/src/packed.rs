//! A set of keys of up to 128 bits that look random: a table keeps of each what the place does not tell.
//!
//! The leading bits of a key choose the line, as in the compact format of [`crate::roots`]: an entry keeps 28 more of
//! them and the number of the try. What is left of the key, its tail of up to twelve bytes, lies behind the entries of
//! the same line, which so holds 16 keys without tails and 4 with the longest. A lookup touches one line, and looks at
//! a tail only where the entry is equal. The larger the table, the shorter the tails. Growing happens in place, for
//! homes never move down.

use crate::budget::Grant;
use crate::region::{Region, prefetch};
use crate::roots::Full;
use crate::roots::compact::{Compact, Inserted, LINE, REST_BITS, TRIES, scan_own};

const FIRST_LINES: usize = 64;
/// Homes are kept in 32 bits; growth is rounded up by a few lines.
const MOST_LINES: usize = (1 << 32) - (1 << 16);
/// How full a table may be: short lines overflow earlier.
const LOAD_PERCENT: usize = 85;
const SHORT_LOAD_PERCENT: usize = 78;
/// Lengths of tails, in bytes; `by_tail` lists them too.
const TAILS: [usize; 8] = [0, 1, 2, 3, 4, 6, 8, 12];
/// So many of the keys that wait while a table grows are put back at a time.
const WAITING_BLOCK: usize = 1024;
/// By how much tables grow, while they are at most so large: moving is dear, and so is memory.
const GROWTH_PERCENT: [(usize, usize); 4] = [(1 << 20, 400), (4 << 20, 200), (64 << 20, 145), (usize::MAX, 130)];

/// Does something with the length of a tail known to the compiler.
macro_rules! by_tail {
    ($tail:expr, $name:ident => $action:expr) => {
        by_tail!($tail, $name => $action, 0 1 2 3 4 6 8 12)
    };
    ($tail:expr, $name:ident => $action:expr, $($length:literal)+) => {
        match $tail {
            $($length => {
                const $name: usize = $length;
                $action
            })+
            tail => unreachable!("no tails of {tail} bytes"),
        }
    };
}

/// Keys in a line.
const fn slots(tail: usize) -> usize {
    LINE * 4 / (4 + tail)
}

/// A line, as entries and as bytes.
type Line = [u32; LINE];

/// A growing set of keys.
#[derive(Debug)]
pub struct Packed {
    key_bits: u32,
    region: Region,
    shape: Shape,
    len: usize,
    /// Entries that are not at home.
    displaced: usize,
    /// Keys that found no room; practically always empty.
    aside: Vec<u128>,
    /// Home and rest of each key that is being inserted.
    homes: Vec<(u32, u32)>,
}

/// Where keys lie.
#[derive(Clone, Copy, Debug)]
struct Shape {
    compact: Compact,
    top_bits: u32,
    /// Bytes of a tail.
    tail: usize,
}

impl Shape {
    fn new(key_bits: u32, lines: usize) -> Shape {
        let top_bits = key_bits.min(lines.ilog2() + REST_BITS);
        let least = (key_bits - top_bits).div_ceil(8) as usize;
        let tail = TAILS.into_iter().find(|&tail| tail >= least).expect("keys have at most 128 bits");
        Shape { compact: Compact::new(top_bits, lines), top_bits, tail }
    }

    /// Keys that may be in a hundred lines.
    fn room_of_hundred(&self) -> usize {
        slots(self.tail) * if self.tail <= 4 { LOAD_PERCENT } else { SHORT_LOAD_PERCENT }
    }

    /// Keys that may be in the table.
    fn room(&self) -> usize {
        self.compact.lines() * self.room_of_hundred() / 100
    }

    /// Home and rest of a key.
    #[inline(always)]
    fn home(&self, key: u128) -> (usize, u32) {
        self.compact.split((key >> 64) as u64 >> (64 - self.top_bits))
    }

    #[inline(always)]
    fn tail<const TAIL: usize>(&self, key: u128) -> [u8; TAIL] {
        let bytes = (key << self.top_bits).to_be_bytes();
        std::array::from_fn(|index| bytes[index])
    }

    /// The key of an entry with its tail, and whether it is at home in line `number`.
    #[inline(always)]
    fn key<const TAIL: usize>(&self, number: usize, entry: u32, tail: &[u8; TAIL]) -> (u128, bool) {
        let (top, home) = self.compact.value(number, entry);
        let mut bytes = [0; 16];
        bytes[..TAIL].copy_from_slice(tail);
        ((top as u128) << (128 - self.top_bits) | u128::from_be_bytes(bytes) >> self.top_bits, home)
    }
}

/// The tail of the key at `place`.
#[inline(always)]
fn tail_of<const TAIL: usize>(line: &Line, place: usize) -> &[u8; TAIL] {
    let bytes: &[u8] = bytemuck::cast_slice(line);
    bytes[slots(TAIL) * 4 + place * TAIL..][..TAIL].try_into().expect("a whole tail")
}

/// Writes entry and tail.
#[inline(always)]
fn put<const TAIL: usize>(line: &mut Line, place: usize, entry: u32, tail: [u8; TAIL]) {
    line[place] = entry;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(line);
    bytes[slots(TAIL) * 4 + place * TAIL..][..TAIL].copy_from_slice(&tail);
}

impl Packed {
    /// A set of keys of `key_bits` bits.
    pub fn new(key_bits: u32, grant: Grant) -> Result<Packed, Full> {
        let mut region = Region::new(grant);
        if !region.grow(FIRST_LINES * LINE * 4) {
            return Err(Full);
        }
        let shape = Shape::new(key_bits, region.bytes() / (LINE * 4));
        Ok(Packed { key_bits, region, shape, len: 0, displaced: 0, aside: Vec::new(), homes: Vec::new() })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// Makes sure that `count` more keys fit.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        let wanted = self.len + count;
        if wanted <= self.shape.room() {
            return Ok(());
        }
        let lines = self.shape.compact.lines();
        let growth =
            GROWTH_PERCENT.iter().find(|(bytes, _)| self.bytes() <= *bytes).map_or(100, |(_, percent)| *percent);
        let least = (wanted * 100).div_ceil(self.shape.room_of_hundred()) + 1;
        let comfortable = least.max(lines * growth / 100);
        let sizes = [comfortable, (least + comfortable) / 2, least];
        if sizes.into_iter().any(|lines| self.grow(lines)) { Ok(()) } else { Err(Full) }
    }

    /// Inserts keys, and appends to `fresh` the positions of those not there before.
    pub fn insert_all(&mut self, keys: &[u128], fresh: &mut Vec<u32>) {
        by_tail!(self.shape.tail, TAIL => self.insert_with::<TAIL>(keys, fresh));
    }

    /// The same with the length of a tail known to the compiler.
    fn insert_with<const TAIL: usize>(&mut self, keys: &[u128], fresh: &mut Vec<u32>) {
        let (before, shape) = (fresh.len(), self.shape);
        let lines = lines_mut(&mut self.region);
        self.homes.clear();
        self.homes.extend(keys.iter().map(|&key| {
            let (home, rest) = shape.home(key);
            prefetch(&lines[home]);
            (home as u32, rest)
        }));
        for (position, (&key, &(home, rest))) in keys.iter().zip(&self.homes).enumerate() {
            match insert::<TAIL>(&shape, lines, home as usize, rest, shape.tail(key)) {
                Inserted::Known => continue,
                Inserted::AtHome => {}
                Inserted::Displaced => self.displaced += 1,
                Inserted::NoRoom if self.aside.contains(&key) => continue,
                Inserted::NoRoom => self.aside.push(key),
            }
            fresh.push(position as u32);
        }
        self.len += fresh.len() - before;
    }

    /// Grows to at least `lines`; false (and unchanged) if there is no room.
    fn grow(&mut self, lines: usize) -> bool {
        // Those that wait outside while the table is spread are charged for that time: who is not at home, and who
        // will find the new home full, which is rare if the table grows much.
        let newly = if lines * 100 >= self.shape.compact.lines() * 130 { self.len / 32 } else { self.len / 16 };
        let outside = self.displaced + newly;
        if lines > MOST_LINES || !self.region.grow_beside(lines * LINE * 4, outside * size_of::<u128>()) {
            return false;
        }
        // Growth is by whole pages: use all of it.
        self.respread(Shape::new(self.key_bits, self.region.bytes() / (LINE * 4)), outside);
        true
    }

    /// Moves every key to its place in another shape; about so many wait `outside` meanwhile.
    fn respread(&mut self, new: Shape, outside: usize) {
        let old = std::mem::replace(&mut self.shape, new);
        let mut waiting = std::mem::take(&mut self.aside);
        waiting.reserve_exact(outside);
        self.displaced = 0;
        let lines = lines_mut(&mut self.region);
        by_tail!(old.tail, TAIL => spread::<TAIL>(&old, &new, lines, &mut waiting));
        // A block at a time, for buffers are not charged; they are counted already.
        let len = self.len;
        waiting.chunks(WAITING_BLOCK).for_each(|keys| self.insert_all(keys, &mut Vec::new()));
        self.len = len;
    }
}

fn lines_mut(region: &mut Region) -> &mut [Line] {
    region.words_mut().as_chunks_mut().0
}

/// Line by line from the top end downwards, keys at home go to their new homes, which are the same line or one above;
/// the others are left `waiting`.
fn spread<const TAIL: usize>(old: &Shape, new: &Shape, lines: &mut [Line], waiting: &mut Vec<u128>) {
    let mut at_home = Vec::with_capacity(LINE);
    for number in (0..old.compact.lines()).rev() {
        let line = std::mem::take(&mut lines[number]);
        for place in (0..slots(TAIL)).take_while(|&place| line[place] != 0) {
            let (key, home) = old.key::<TAIL>(number, line[place], tail_of(&line, place));
            if home { at_home.push(key) } else { waiting.push(key) }
        }
        for key in at_home.drain(..) {
            let placed = by_tail!(new.tail, NEW => place_at_home::<NEW>(new, lines, key));
            if !placed {
                waiting.push(key);
            }
        }
    }
}

/// Inserts a key with this home, rest and tail: where it was found to be or put.
#[inline(always)]
fn insert<const TAIL: usize>(shape: &Shape, lines: &mut [Line], home: usize, rest: u32, tail: [u8; TAIL]) -> Inserted {
    for attempt in 1..=TRIES {
        let entry = attempt << REST_BITS | rest;
        let line = &mut lines[shape.compact.line(home, rest, attempt)];
        let (equal, empty) = scan_own(line, entry);
        let mut equal = equal & ((1 << slots(TAIL)) - 1);
        while equal != 0 {
            if tail_of(line, equal.trailing_zeros() as usize) == &tail {
                return Inserted::Known;
            }
            equal &= equal - 1;
        }
        let place = empty.trailing_zeros() as usize;
        if place < slots(TAIL) {
            put(line, place, entry, tail);
            return if attempt == 1 { Inserted::AtHome } else { Inserted::Displaced };
        }
    }
    Inserted::NoRoom
}

/// Puts a key that is not there into its home line, if that has room.
#[inline(always)]
fn place_at_home<const TAIL: usize>(shape: &Shape, lines: &mut [Line], key: u128) -> bool {
    let (home, rest) = shape.home(key);
    let place = scan_own(&lines[home], 0).1.trailing_zeros() as usize;
    if place < slots(TAIL) {
        put(&mut lines[home], place, 1 << REST_BITS | rest, shape.tail::<TAIL>(key));
    }
    place < slots(TAIL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use std::collections::HashSet;

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn agrees_with_a_hash_set_while_growing() {
        for key_bits in [24, 34, 44, 45, 60, 70, 76, 77, 96, 102, 127, 128] {
            let mut table = Packed::new(key_bits, Grant::unlimited()).unwrap();
            let (mut twin, mut seed) = (HashSet::new(), 88172645463325252u64);
            let mut tails = HashSet::new();
            for _ in 0..250 {
                // Leading bits look random, some tails differ where leading bits are equal.
                let keys: Vec<u128> = (0..100)
                    .map(|_| {
                        let (draw, low) = (random(&mut seed) % 40_000, random(&mut seed) % 2);
                        let top = (draw as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
                            & u128::MAX << (128 - key_bits);
                        top ^ (low as u128) << (128 - key_bits)
                    })
                    .collect();
                table.reserve(keys.len()).unwrap();
                let mut fresh = Vec::new();
                table.insert_all(&keys, &mut fresh);
                let expected = (0..100u32).filter(|&position| twin.insert(keys[position as usize])).collect::<Vec<_>>();
                assert_eq!(fresh, expected, "{key_bits} bits");
                tails.insert(table.shape.tail);
            }
            assert_eq!(table.len(), twin.len());
            let (all, mut fresh): (Vec<u128>, _) = (twin.into_iter().collect(), Vec::new());
            table.insert_all(&all, &mut fresh);
            assert!(fresh.is_empty(), "{key_bits} bits: {} keys were lost", fresh.len());
            assert!(
                ![45, 60, 70].contains(&key_bits) || tails.len() > 1,
                "{key_bits} bits: tails got shorter {tails:?}"
            );
        }
    }

    #[test]
    fn a_small_grant_fills_up_without_losing_keys() {
        let budget = Budget::new(100 << 10);
        let mut table = Packed::new(64, budget.grant("t", 100 << 10)).unwrap();
        let key = |count: u128| count.wrapping_mul(0x9E37_79B9_7F4A_7C15) << 64;
        let (mut count, mut fresh) = (0u128, Vec::new());
        while table.reserve(1).is_ok() {
            table.insert_all(&[key(count)], &mut fresh);
            count += 1;
        }
        assert_eq!(fresh.len() as u128, count);
        assert!(count > 7_000 && budget.used_bytes() <= 100 << 10, "only {count} keys in 100 KiB");
        table.insert_all(&(0..count).map(key).collect::<Vec<_>>(), &mut fresh);
        assert_eq!(fresh.len() as u128, count);
    }
}
