//! A set of keys of up to 128 bits that look random: a table keeps of each what the place does not tell.
//!
//! Keys are left-aligned. The leading bits of a key choose the line, as [`compact`] says: an entry keeps 28 more of
//! them and the number of the try. What is left of the key, its tail of up to twelve bytes, lies behind the entries of
//! the same line, which so holds 16 keys without tails and 4 with the longest. A lookup touches one line, and looks at
//! a tail only where the entry is equal. The larger the table, the shorter the tails. Growing happens in place, for
//! homes never move down: line by line from the top end, so that what is not at home waits outside meanwhile. In the
//! same way keys may get longer.

pub mod compact;

use crate::arena::{Arena, LINE, Line, PAGE_LINES, Pages};
use crate::budget::Full;
use compact::{Compact, Inserted, REST_BITS, TRIES, scan};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

/// Homes are kept in 32 bits; growth is rounded up by a few lines.
const MOST_LINES: usize = (1 << 32) - (1 << 16);
/// How full a table may be: short lines overflow earlier.
const LOAD_PERCENT: usize = 85;
const SHORT_LOAD_PERCENT: usize = 78;
/// Lengths of tails, in bytes; `by_tail` lists them too.
const TAILS: [usize; 8] = [0, 1, 2, 3, 4, 6, 8, 12];
/// So many of the keys that wait while a table grows are put back at a time.
const WAITING_BLOCK: usize = 1024;
/// By how much tables grow, while all of a store are at most so large: moving is dear, and so is memory.
const GROWTH_PERCENT: [(usize, usize); 4] = [(1 << 20, 400), (4 << 20, 200), (256 << 20, 145), (usize::MAX, 130)];

/// What it takes at least, where there is a choice.
const LEAST_GROWTH_PERCENT: usize = 110;

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
pub(crate) use by_tail;

/// Keys in a line.
const fn slots(tail: usize) -> usize {
    LINE * 4 / (4 + tail)
}

/// A run of keys: their leading 64 bits, and the others if keys have more.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub high: &'a [u64],
    pub low: &'a [u64],
}

impl Run<'_> {
    pub(crate) fn key(&self, index: usize) -> u128 {
        (self.high[index] as u128) << 64 | self.low.get(index).copied().unwrap_or(0) as u128
    }
}

/// A growing set of keys.
#[derive(Debug)]
pub struct Packed {
    key_bits: u32,
    /// Leading bits that are the same in all keys.
    common_bits: u32,
    lines: Pages,
    most_lines: usize,
    shape: Shape,
    /// Keys that fit before the next growth.
    room: usize,
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
pub(crate) struct Shape {
    pub compact: Compact,
    common_bits: u32,
    /// Bits behind the common ones that home and entry tell.
    top_bits: u32,
    /// Bytes of a tail.
    pub tail: usize,
}

impl Shape {
    pub fn new(key_bits: u32, common_bits: u32, lines: usize) -> Shape {
        // Also if keys are shorter: then nothing has to move when they get longer.
        let top_bits = (lines.ilog2() + REST_BITS).min(u64::BITS - common_bits);
        let least = (key_bits - common_bits).saturating_sub(top_bits).div_ceil(8) as usize;
        let tail = TAILS.into_iter().find(|&tail| tail >= least).expect("keys have at most 128 bits");
        Shape { compact: Compact::new(top_bits, lines), common_bits, top_bits, tail }
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
    pub fn home(&self, high: u64) -> (usize, u32) {
        self.compact.split(high << self.common_bits >> (64 - self.top_bits))
    }

    #[inline(always)]
    pub fn tail<const TAIL: usize>(&self, key: u128) -> [u8; TAIL] {
        let bytes = (key << (self.common_bits + self.top_bits)).to_be_bytes();
        std::array::from_fn(|index| bytes[index])
    }

    /// The key of an entry with its tail but for the common bits, and whether it is at home in line `number`.
    #[inline(always)]
    pub fn key<const TAIL: usize>(&self, number: usize, entry: u32, tail: &[u8; TAIL]) -> (u128, bool) {
        let (top, home) = self.compact.value(number, entry);
        let mut bytes = [0; 16];
        bytes[..TAIL].copy_from_slice(tail);
        let own = (top as u128) << (128 - self.top_bits) | u128::from_be_bytes(bytes) >> self.top_bits;
        (own >> self.common_bits, home)
    }
}

/// A key without the bits that all have in common.
pub(crate) fn own(key: u128, common_bits: u32) -> u128 {
    key << common_bits >> common_bits
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
    /// A set of keys of `key_bits` bits, of which the first `common_bits` are the same in all.
    pub fn new(key_bits: u32, common_bits: u32, arena: &Arena) -> Result<Packed, Full> {
        let mut lines = arena.pages();
        if !lines.grow(1, 0) {
            return Err(Full);
        }
        let shape = Shape::new(key_bits, common_bits, lines.lines());
        let (room, aside, homes) = (shape.room(), Vec::new(), Vec::new());
        let most_lines = MOST_LINES;
        Ok(Packed { key_bits, common_bits, lines, most_lines, shape, room, len: 0, displaced: 0, aside, homes })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bits of a key, and leading ones that are the same in all.
    pub(crate) fn bits(&self) -> (u32, u32) {
        (self.key_bits, self.common_bits)
    }

    /// Keys that wait outside while it is visited in order.
    pub(crate) fn outside(&self) -> usize {
        self.displaced + self.aside.len()
    }

    /// From now on it takes no more than about so many bytes, and if there is room for them these at once, so that nothing has to
    /// move.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.most_lines = (bytes / size_of::<Line>()).min(MOST_LINES);
        let whole_pages = self.most_lines / PAGE_LINES * PAGE_LINES;
        if whole_pages > self.lines.lines() {
            self.grow(whole_pages);
        }
    }

    /// Makes sure that `count` more keys of `key_bits` bits fit; keys never get shorter.
    pub fn reserve(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        self.reserve_growing(count, key_bits, 100)
    }

    /// The same, but a large table does not grow by little again and again when memory is almost used up: whoever asks can
    /// do something else.
    pub(crate) fn reserve_well(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        let is_small = self.lines.bytes() << self.common_bits <= GROWTH_PERCENT[0].0;
        self.reserve_growing(count, key_bits, if is_small { 100 } else { LEAST_GROWTH_PERCENT })
    }

    fn reserve_growing(&mut self, count: usize, key_bits: u32, least_percent: usize) -> Result<(), Full> {
        let wanted = self.len + count;
        if key_bits > self.key_bits {
            self.lengthen(key_bits)?;
        }
        if wanted <= self.room {
            return Ok(());
        }
        let growth = GROWTH_PERCENT.iter().find(|(bytes, _)| self.lines.bytes() << self.common_bits <= *bytes);
        let least = (wanted * 100).div_ceil(self.shape.room_of_hundred()) + 1;
        let comfortable = least.max(self.lines.lines() * growth.map_or(100, |(_, percent)| *percent) / 100);
        let smallest = least.max(self.lines.lines() * least_percent / 100);
        let sizes = [comfortable.min(self.most_lines), (least + comfortable) / 2, smallest];
        if sizes.into_iter().any(|lines| lines >= least && self.grow(lines)) { Ok(()) } else { Err(Full) }
    }

    /// From now on keys have `key_bits` bits; those that are there end with zeros.
    fn lengthen(&mut self, key_bits: u32) -> Result<(), Full> {
        let before = std::mem::replace(&mut self.key_bits, key_bits);
        let new = Shape::new(key_bits, self.common_bits, self.lines.lines());
        if new.tail == self.shape.tail {
            return Ok(());
        }
        let least = (self.len * 100).div_ceil(new.room_of_hundred()) + 1;
        if self.grow(least.max(self.lines.lines())) {
            return Ok(());
        }
        self.key_bits = before;
        Err(Full)
    }

    /// Asks for the lines where keys are at home.
    pub fn prefetch(&self, keys: Run) {
        keys.high.iter().for_each(|&high| self.lines.prefetch(self.shape.home(high).0));
    }

    /// Inserts keys, says of each whether it was not there before, and returns how many were not.
    pub fn insert_all(&mut self, keys: Run, fresh: &[AtomicU8]) -> usize {
        by_tail!(self.shape.tail, TAIL => {
            if keys.low.is_empty() {
                self.insert_with::<TAIL>(keys, fresh, |index| (keys.high[index] as u128) << 64)
            } else {
                self.insert_with::<TAIL>(keys, fresh, |index| keys.key(index))
            }
        })
    }

    /// Inserts one key, for which there is room; true if it was not there.
    pub fn insert_one(&mut self, key: u128) -> bool {
        let (shape, (home, rest)) = (self.shape, self.shape.home((key >> 64) as u64));
        let inserted = by_tail!(shape.tail, TAIL => {
            insert::<TAIL>(&shape, &mut self.lines, home, rest, shape.tail(key))
        });
        let new = self.settle(inserted, key);
        self.len += new as usize;
        new
    }

    /// Takes note of what became of a key; true if it was not there.
    #[inline(always)]
    fn settle(&mut self, inserted: Inserted, key: u128) -> bool {
        match inserted {
            Inserted::Known => false,
            Inserted::AtHome => true,
            Inserted::Displaced => {
                self.displaced += 1;
                true
            }
            Inserted::NoRoom => {
                let key = own(key, self.common_bits);
                let new = !self.aside.contains(&key);
                if new {
                    self.aside.push(key);
                }
                new
            }
        }
    }

    /// The same with the length of a tail known to the compiler.
    #[inline(always)]
    fn insert_with<const TAIL: usize>(&mut self, keys: Run, fresh: &[AtomicU8], key: impl Fn(usize) -> u128) -> usize {
        let shape = self.shape;
        let mut homes = std::mem::take(&mut self.homes);
        homes.clear();
        homes.extend(keys.high.iter().map(|&high| {
            let (home, rest) = shape.home(high);
            self.lines.prefetch(home);
            (home as u32, rest)
        }));
        let mut count = 0;
        for (index, (&(home, rest), fresh)) in homes.iter().zip(fresh).enumerate() {
            let key = key(index);
            let inserted = insert::<TAIL>(&shape, &mut self.lines, home as usize, rest, shape.tail(key));
            let new = self.settle(inserted, key);
            fresh.store(new as u8, Ordering::Relaxed);
            count += new as usize;
        }
        self.homes = homes;
        self.len += count;
        count
    }

    /// Is the key there? It may be longer than those that are.
    pub fn contains(&self, key: u128) -> bool {
        if key.checked_shl(self.key_bits).is_some_and(|rest| rest != 0) {
            return false;
        }
        by_tail!(self.shape.tail, TAIL => self.contains_with::<TAIL>(key))
            || self.aside.contains(&own(key, self.common_bits))
    }

    fn contains_with<const TAIL: usize>(&self, key: u128) -> bool {
        let (home, rest) = self.shape.home((key >> 64) as u64);
        let tail = self.shape.tail::<TAIL>(key);
        for attempt in 1..=TRIES {
            let line = self.lines.line(self.shape.compact.line(home, rest, attempt));
            let (equal, empty) = scan(line, attempt << REST_BITS | rest);
            if (0..slots(TAIL)).any(|place| equal >> place & 1 == 1 && *tail_of::<TAIL>(line, place) == tail) {
                return true;
            }
            if (empty.trailing_zeros() as usize) < slots(TAIL) {
                return false;
            }
        }
        false
    }

    /// Visits all keys as they lie, without the bits they have in common; that takes no memory.
    pub fn visit(&self, mut visit: impl FnMut(u128)) {
        by_tail!(self.shape.tail, TAIL => {
            (0..self.shape.compact.lines()).flat_map(|number| self.keys_of::<TAIL>(number)).for_each(|(key, _)| visit(key))
        });
        self.aside.iter().for_each(|&key| visit(key));
    }

    /// The keys in a line, and whether they are at home there.
    fn keys_of<const TAIL: usize>(&self, number: usize) -> impl Iterator<Item = (u128, bool)> + '_ {
        let line = self.lines.line(number);
        let held = (0..slots(TAIL)).take_while(|&place| line[place] != 0);
        held.map(move |place| self.shape.key::<TAIL>(number, line[place], tail_of(line, place)))
    }

    /// Visits all keys in ascending order, without the bits they have in common.
    pub fn stream(&self, visit: impl FnMut(u128)) {
        self.stream_within(usize::MAX, visit);
    }

    /// The same with memory for about `most` keys. Keys at home are in order as they lie; the few others are sorted outside,
    /// in as many parts as that takes, each of which looks for them in the whole table.
    pub fn stream_within(&self, most: usize, mut visit: impl FnMut(u128)) {
        let lines = self.shape.compact.lines();
        let parts = self.outside().div_ceil(most.max(1)).clamp(1, lines);
        for part in 0..parts {
            let lines = lines * part / parts..lines * (part + 1) / parts;
            by_tail!(self.shape.tail, TAIL => self.stream_with::<TAIL>(lines, &mut visit));
        }
    }

    /// Visits the keys that are at home in some of the lines.
    fn stream_with<const TAIL: usize>(&self, lines: Range<usize>, visit: &mut impl FnMut(u128)) {
        let keys_of = |number: usize| self.keys_of::<TAIL>(number);
        let elsewhere = (0..self.shape.compact.lines()).flat_map(keys_of).filter(|(_, home)| !home);
        let elsewhere = elsewhere.map(|(key, _)| key).chain(self.aside.iter().copied());
        let belongs_here = |key: &u128| lines.contains(&self.shape.home((key >> 64) as u64).0);
        let mut others: Vec<u128> = elsewhere.filter(belongs_here).collect();
        others.sort_unstable();
        let mut others = others.into_iter().peekable();
        let mut here = Vec::with_capacity(LINE);
        for number in lines {
            here.extend(keys_of(number).filter(|(_, home)| *home).map(|(key, _)| key));
            here.sort_unstable();
            for key in here.drain(..) {
                while let Some(other) = others.next_if(|&other| other < key) {
                    visit(other);
                }
                visit(key);
            }
        }
        others.for_each(visit);
    }

    /// Grows to at least `lines`; false (and unchanged) if there is no room.
    fn grow(&mut self, lines: usize) -> bool {
        // Those that wait outside while the table is spread are charged for that time: who is not at home, and who
        // will find the new home full, which is rare if the table grows much.
        let newly = if lines * 100 >= self.shape.compact.lines() * 130 { self.len / 32 } else { self.len / 16 };
        let outside = self.displaced + newly;
        if lines > self.most_lines || !self.lines.grow(lines, outside * size_of::<u128>()) {
            return false;
        }
        self.respread(Shape::new(self.key_bits, self.common_bits, self.lines.lines()), outside);
        true
    }

    /// Moves every key to its place in another shape; about so many wait `outside` meanwhile.
    fn respread(&mut self, new: Shape, outside: usize) {
        let old = std::mem::replace(&mut self.shape, new);
        self.room = new.room();
        let mut waiting = std::mem::take(&mut self.aside);
        waiting.reserve_exact(outside);
        self.displaced = 0;
        by_tail!(old.tail, TAIL => spread::<TAIL>(&old, &new, &mut self.lines, &mut waiting));
        // A block at a time, for buffers are not charged; they are counted already.
        let len = self.len;
        let fresh: Vec<AtomicU8> = (0..WAITING_BLOCK.min(waiting.len())).map(|_| AtomicU8::new(0)).collect();
        for keys in waiting.chunks(WAITING_BLOCK) {
            let high: Vec<u64> = keys.iter().map(|key| (key >> 64) as u64).collect();
            let low: Vec<u64> = keys.iter().map(|&key| key as u64).collect();
            self.insert_all(Run { high: &high, low: &low }, &fresh);
        }
        self.len = len;
    }
}

/// Line by line from the top end downwards, keys at home go to their new homes, which are the same line or one above;
/// the others are left `waiting`.
fn spread<const TAIL: usize>(old: &Shape, new: &Shape, lines: &mut Pages, waiting: &mut Vec<u128>) {
    for number in (0..old.compact.lines()).rev() {
        let line = std::mem::take(lines.line_mut(number));
        for place in (0..slots(TAIL)).take_while(|&place| line[place] != 0) {
            let (key, home) = old.key::<TAIL>(number, line[place], tail_of(&line, place));
            if !home || !by_tail!(new.tail, NEW => place_at_home::<NEW>(new, lines, key)) {
                waiting.push(key);
            }
        }
    }
}

/// Inserts a key with this home, rest and tail: where it was found to be or put.
#[inline(always)]
fn insert<const TAIL: usize>(shape: &Shape, lines: &mut Pages, home: usize, rest: u32, tail: [u8; TAIL]) -> Inserted {
    for attempt in 1..=TRIES {
        let entry = attempt << REST_BITS | rest;
        let line = lines.line_mut(shape.compact.line(home, rest, attempt));
        let (equal, empty) = scan(line, entry);
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
fn place_at_home<const TAIL: usize>(shape: &Shape, lines: &mut Pages, key: u128) -> bool {
    let (home, rest) = shape.home((key >> 64) as u64);
    let line = lines.line_mut(home);
    let place = scan(line, 0).1.trailing_zeros() as usize;
    if place < slots(TAIL) {
        put(line, place, 1 << REST_BITS | rest, shape.tail::<TAIL>(key));
    }
    place < slots(TAIL)
}

#[cfg(test)]
mod tests;
