//! A set of keys of up to 128 bits, each with the number of a set of snapshots: a state is held once, in however many it is.
//!
//! Lines are like those of [`crate::packed`], but in whole bytes; a place takes two bytes more. A state whose set is empty is held no
//! more: the next that comes to its line takes its place, so nothing is cleaned up when a level is dropped. What finds its
//! home full of others goes to another line, and the line is marked: only where it is marked a lookup goes on. When too many
//! lines are marked, what is held no more is cleared away and who is not at home moves closer; that takes no memory. When
//! the table grows, those that are not at home wait outside ([`super::outside`]).

mod order;

use super::compact::{REST_BITS, TRIES, scan};
use super::masks::Masks;
use super::places::{Shape, by_tail, own};
use crate::arena::{Arena, LINE, Line, Pages};
use crate::budget::{Full, Grant};
use crate::cache::Distinct;
use crate::packed::Run;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

const TAG_BYTES: usize = 2;
/// In the tag of a line's first place: states that are at home here may be elsewhere.
const MARKED: u16 = 1 << 15;
/// How full a table may be of states that are held.
const LOAD_PERCENT: usize = 85;
const SHORT_LOAD_PERCENT: usize = 78;
/// By how much tables grow.
const GROWTH_PERCENT: usize = 118;
/// What it takes at least, where there is a choice, and up to which size growing costs nothing.
const LEAST_GROWTH_PERCENT: usize = 110;
const SMALL_LINES: usize = 4096;
/// What sets of snapshots take is charged in such pieces.
const MASKS_PIECE: usize = 16 << 10;
/// Lines may be marked before the table is put in order again: a share of all, and so many times what is usual.
const MARKED_SHARE: usize = 3;
const MARKED_TIMES: usize = 2;

/// States in a line.
const fn slots(tail: usize) -> usize {
    LINE * 4 / (4 + TAG_BYTES + tail)
}

/// States that may be held in a hundred lines.
const fn room_of_hundred(tail: usize) -> usize {
    slots(tail) * if tail <= 4 { LOAD_PERCENT } else { SHORT_LOAD_PERCENT }
}

#[inline(always)]
fn tag_of<const TAIL: usize>(line: &Line, place: usize) -> u16 {
    let tags: &[u16] = bytemuck::cast_slice(line);
    tags[slots(TAIL) * 2 + place] & !MARKED
}

#[inline(always)]
fn is_marked<const TAIL: usize>(line: &Line) -> bool {
    let tags: &[u16] = bytemuck::cast_slice(line);
    tags[slots(TAIL) * 2] & MARKED != 0
}

#[inline(always)]
fn tail_of<const TAIL: usize>(line: &Line, place: usize) -> &[u8; TAIL] {
    let bytes: &[u8] = bytemuck::cast_slice(line);
    bytes[slots(TAIL) * (4 + TAG_BYTES) + place * TAIL..][..TAIL].try_into().expect("a whole tail")
}

#[inline(always)]
fn set_tag<const TAIL: usize>(line: &mut Line, place: usize, tag: u16) {
    let tags: &mut [u16] = bytemuck::cast_slice_mut(line);
    let old = &mut tags[slots(TAIL) * 2 + place];
    *old = *old & MARKED | tag;
}

#[inline(always)]
fn put<const TAIL: usize>(line: &mut Line, place: usize, entry: u32, tag: u16, tail: [u8; TAIL]) {
    line[place] = entry;
    set_tag::<TAIL>(line, place, tag);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(line);
    bytes[slots(TAIL) * (4 + TAG_BYTES) + place * TAIL..][..TAIL].copy_from_slice(&tail);
}

/// Is the state of an entry in another line than its home?
#[inline(always)]
fn is_displaced(entry: u32) -> bool {
    entry >> REST_BITS > 1
}

/// Where a state that is held, or was, lies.
enum Spot {
    Line(usize, usize),
    Aside(usize),
}

/// The states of one shard.
#[derive(Debug)]
pub(crate) struct LevelTable {
    key_bits: u32,
    /// Leading bits that are the same in all keys.
    common_bits: u32,
    lines: Pages,
    shape: Shape,
    pub masks: Masks,
    /// States that found no room; practically always empty.
    aside: Vec<(u128, u16)>,
    marked: usize,
    usually_marked: usize,
    /// Places that are taken by states that are not at home there.
    displaced: usize,
    /// For the sets, and what was taken of it.
    grant: Grant,
    charged: usize,
    pub forgotten: u64,
    /// By keys; if those depend on who came first, by states, and then those of all tables.
    pub distinct: Distinct,
    pub by_states: bool,
}

impl LevelTable {
    /// A table for keys of `key_bits` bits, of which the first `common_bits` are the same in all.
    pub fn new(key_bits: u32, common_bits: u32, arena: &Arena, grant: &Grant) -> Result<LevelTable, Full> {
        let mut lines = arena.pages();
        if !lines.grow(1, 0) {
            return Err(Full);
        }
        Ok(LevelTable {
            key_bits,
            common_bits,
            shape: Shape::new(key_bits, common_bits, lines.lines()),
            lines,
            masks: Masks::new(),
            aside: Vec::new(),
            marked: 0,
            usually_marked: 0,
            displaced: 0,
            grant: grant.clone(),
            charged: 0,
            forgotten: 0,
            distinct: Distinct::new(common_bits),
            by_states: false,
        })
    }

    /// Bytes that a state takes in a full table of about so many states.
    pub fn bytes_per_state(key_bits: u32, states: u64) -> u64 {
        let lines = (states / LINE as u64).clamp(64, 1 << 31) as usize;
        (LINE as u64 * 4 * 100).div_ceil(room_of_hundred(Shape::new(key_bits, 0, lines).tail) as u64)
    }

    /// Makes sure that `count` more states of keys of `key_bits` bits fit, and that so many meetings can be noted.
    pub fn reserve(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        self.reserve_growing(count, key_bits, 100)
    }

    /// The same, but a large table does not grow by little again and again: whoever asks can give up levels instead.
    pub fn reserve_well(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        let is_small = self.lines.lines() <= SMALL_LINES;
        self.reserve_growing(count, key_bits, if is_small { 100 } else { LEAST_GROWTH_PERCENT })
    }

    fn reserve_growing(&mut self, count: usize, key_bits: u32, least_percent: usize) -> Result<(), Full> {
        if key_bits > self.key_bits {
            // Those that are there end with zeros.
            let before = std::mem::replace(&mut self.key_bits, key_bits);
            let new = Shape::new(key_bits, self.common_bits, self.lines.lines());
            let least = (self.masks.live() * 100).div_ceil(room_of_hundred(new.tail)) + 1;
            if new.tail != self.shape.tail && !self.grow(least.max(self.lines.lines())) {
                self.key_bits = before;
                return Err(Full);
            }
        }
        let wanted = self.masks.live() + count;
        if wanted > self.lines.lines() * room_of_hundred(self.shape.tail) / 100 {
            let least = (wanted * 100).div_ceil(room_of_hundred(self.shape.tail)) + 1;
            let comfortable = least.max(self.lines.lines() * GROWTH_PERCENT / 100);
            let smallest = least.max(self.lines.lines() * least_percent / 100);
            if ![comfortable, smallest].into_iter().any(|lines| self.grow(lines)) {
                return Err(Full);
            }
        }
        let in_order = self.marked <= (self.lines.lines() / MARKED_SHARE).max(self.usually_marked * MARKED_TIMES);
        if !in_order || !self.masks.has_room(count) {
            by_tail!(self.shape.tail, TAIL => self.tidy::<TAIL>());
        }
        while self.charged < self.masks.bytes() {
            if !self.grant.take(MASKS_PIECE as u64) {
                return Err(Full);
            }
            self.charged += MASKS_PIECE;
        }
        if self.masks.has_room(count) { Ok(()) } else { Err(Full) }
    }

    pub fn prefetch(&self, keys: Run) {
        keys.high.iter().for_each(|&high| self.lines.prefetch(self.shape.home(high).0));
    }

    /// Enters states of the level under construction, says of each whether it was not held, and returns how many were not;
    /// of those that were it tells the lanes, if there is room for those.
    pub fn insert_all(&mut self, keys: Run, fresh: &[AtomicU8], lanes: &[AtomicU64]) -> usize {
        self.prefetch(keys);
        let mut count = 0;
        by_tail!(self.shape.tail, TAIL => {
            for (index, fresh) in fresh.iter().enumerate() {
                let change = |masks: &mut Masks, held: Option<u16>| held.map_or(masks.found(), |tag| masks.meet(tag));
                match self.enter::<TAIL>(keys.key(index), change) {
                    Some(tag) => {
                        if let Some(lanes) = lanes.get(index) {
                            lanes.store(self.masks.lanes(tag), Ordering::Relaxed);
                        }
                    }
                    None => {
                        if !self.by_states {
                            self.distinct.add(keys.high[index]);
                        }
                        fresh.store(1, Ordering::Relaxed);
                        count += 1;
                    }
                }
            }
        });
        count
    }

    /// Gives a state one more reason to be held, for which there must be room.
    pub fn keep(&mut self, key: u128, member: u32) {
        let change = |masks: &mut Masks, held: Option<u16>| masks.with(held, member);
        by_tail!(self.shape.tail, TAIL => _ = self.enter::<TAIL>(key, change));
    }

    /// Puts a state of another table here, where it is not.
    pub fn restore(&mut self, key: u128, members: &[u32]) {
        let change = |masks: &mut Masks, _: Option<u16>| masks.number_of(members.to_vec());
        by_tail!(self.shape.tail, TAIL => _ = self.enter::<TAIL>(key, change));
    }

    /// These snapshots are held no more.
    pub fn forget(&mut self, levels: &[u32]) {
        self.forgotten += self.masks.forget(levels) as u64;
    }

    /// Finds a state or gives it a place; its tag becomes what `change` makes of the one it had, if it was held. That
    /// one is returned.
    #[inline(always)]
    fn enter<const TAIL: usize>(&mut self, key: u128, change: impl Fn(&mut Masks, Option<u16>) -> u16) -> Option<u16> {
        let shape = self.shape;
        let (home, rest) = shape.home((key >> 64) as u64);
        let tail = shape.tail::<TAIL>(key);
        let mut room: Option<(usize, usize, u32)> = None;
        for attempt in 1..=TRIES {
            let number = shape.compact.line(home, rest, attempt);
            let line = self.lines.line_mut(number);
            let (equal, empty) = scan(line, attempt << REST_BITS | rest);
            let mut equal = equal & ((1 << slots(TAIL)) - 1);
            while equal != 0 {
                let place = equal.trailing_zeros() as usize;
                if tail_of::<TAIL>(line, place) == &tail {
                    let tag = tag_of::<TAIL>(line, place);
                    return self.change::<TAIL>(Spot::Line(number, place), tag, change);
                }
                equal &= equal - 1;
            }
            if room.is_none() {
                let place = empty.trailing_zeros() as usize;
                let masks = &self.masks;
                let place = if place < slots(TAIL) {
                    Some(place)
                } else {
                    (0..slots(TAIL)).find(|&place| !masks.is_live(tag_of::<TAIL>(line, place)))
                };
                room = place.map(|place| (number, place, attempt));
            }
            if !is_marked::<TAIL>(line) {
                if room.is_some() {
                    break;
                }
                let tags: &mut [u16] = bytemuck::cast_slice_mut(line);
                tags[slots(TAIL) * 2] |= MARKED;
                self.marked += 1;
            }
        }
        let bare = own(key, self.common_bits);
        if let Some(index) = self.aside.iter().position(|&(aside, _)| aside == bare) {
            return self.change::<TAIL>(Spot::Aside(index), self.aside[index].1, change);
        }
        let tag = change(&mut self.masks, None);
        self.masks.come(tag);
        match room {
            Some((number, place, attempt)) => {
                let line = self.lines.line_mut(number);
                if line[place] != 0 {
                    self.masks.leave(tag_of::<TAIL>(line, place));
                    self.displaced -= is_displaced(line[place]) as usize;
                }
                self.displaced += (attempt > 1) as usize;
                put(line, place, attempt << REST_BITS | rest, tag, tail);
            }
            None => self.aside.push((bare, tag)),
        }
        None
    }

    #[inline(always)]
    fn change<const TAIL: usize>(
        &mut self,
        spot: Spot,
        tag: u16,
        change: impl Fn(&mut Masks, Option<u16>) -> u16,
    ) -> Option<u16> {
        let held = self.masks.is_live(tag).then_some(tag);
        let new = change(&mut self.masks, held);
        if new == tag {
            return held;
        }
        match held {
            Some(tag) => self.masks.moved(tag, new),
            None => {
                self.masks.leave(tag);
                self.masks.come(new);
            }
        }
        match spot {
            Spot::Line(number, place) => {
                set_tag::<TAIL>(self.lines.line_mut(number), place, new);
            }
            Spot::Aside(index) => self.aside[index].1 = new,
        }
        held
    }

    /// Visits all states that are held, without the bits that all have in common, with what they are held for.
    pub fn visit(&self, mut visit: impl FnMut(u128, &[u32])) {
        by_tail!(self.shape.tail, TAIL => {
            for number in 0..self.shape.compact.lines() {
                let line = self.lines.line(number);
                for place in (0..slots(TAIL)).filter(|&place| line[place] != 0) {
                    let members = self.masks.members(tag_of::<TAIL>(line, place));
                    if !members.is_empty() {
                        visit(self.shape.key::<TAIL>(number, line[place], tail_of(line, place)).0, members);
                    }
                }
            }
        });
        let aside = self.aside.iter().map(|&(key, tag)| (key, self.masks.members(tag)));
        aside.filter(|(_, members)| !members.is_empty()).for_each(|(key, members)| visit(key, members));
    }

    /// What a key is held for, if it is.
    pub fn members(&self, key: u128) -> &[u32] {
        let (home, rest) = self.shape.home((key >> 64) as u64);
        by_tail!(self.shape.tail, TAIL => {
            let tail = self.shape.tail::<TAIL>(key);
            for attempt in 1..=TRIES {
                let line = self.lines.line(self.shape.compact.line(home, rest, attempt));
                let is_it = |&place: &usize| {
                    line[place] == attempt << REST_BITS | rest && tail_of::<TAIL>(line, place) == &tail
                };
                if let Some(place) = (0..slots(TAIL)).find(is_it) {
                    return self.masks.members(tag_of::<TAIL>(line, place));
                }
                if !is_marked::<TAIL>(line) {
                    break;
                }
            }
        });
        let aside = self.aside.iter().find(|&&(aside, _)| aside == own(key, self.common_bits));
        aside.map_or(&[], |&(_, tag)| self.masks.members(tag))
    }
}

impl Drop for LevelTable {
    fn drop(&mut self) {
        self.grant.give_back(self.charged as u64);
    }
}
