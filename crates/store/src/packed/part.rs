//! One part of a table: lines that grow by themselves.

use super::geometry::{Found, Gathered, Geometry, TRIES};
use super::waiting::Waiting;
use crate::arena::{Arena, LINE, Pages, Spot};
use std::collections::HashSet;
use std::ops::Range;

/// Homes are kept in 32 bits; growth is rounded up by a few lines.
const MOST_LINES: usize = (1 << 32) - (1 << 16);
/// Lines are spread if they become at most so many times as many: that takes memory for so many.
const MOST_RATIO: usize = 6;

/// The keys that begin with the same bits. What a lookup needs is in one line of the processor's caches.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Part {
    pub geometry: Geometry,
    lines: Pages,
    pub len: usize,
    /// Entries that are not at home.
    displaced: usize,
    /// Keys that found no room, as hardly any do while no more than 96 of a hundred places are taken, without the bits in common.
    aside: HashSet<u128>,
}

impl Part {
    /// A part of at least so many lines, if there is room for it.
    pub fn new(key_bits: u32, skip: u32, lines: usize, arena: &Arena) -> Option<Part> {
        let mut pages = arena.pages();
        if lines > MOST_LINES || !pages.grow(lines.max(1), 0) {
            return None;
        }
        let geometry = Geometry::new(key_bits, skip, pages.lines());
        Some(Part { geometry, lines: pages, len: 0, displaced: 0, aside: HashSet::new() })
    }

    pub fn bytes(&self) -> usize {
        self.lines.bytes()
    }

    /// Places for keys.
    pub fn places(&self) -> usize {
        self.geometry.lines() * self.geometry.slots()
    }

    /// Keys that may be here if it may be so full.
    pub fn room(&self, load_percent: usize) -> usize {
        self.places() * load_percent / 100
    }

    /// Where a key with these leading 64 bits is at home, and its rest; asks for the line.
    #[inline(always)]
    pub fn find_home(&self, high: u64) -> (Spot, u64) {
        let (home, rest) = self.geometry.split(high);
        (self.lines.ask_for(home), rest)
    }

    /// Inserts a key with these last 64 bits where it is at home, and says whether it was not there; nothing if there is no room.
    ///
    /// # Safety
    /// Home and rest must be those that were found for it, and since then the part has not grown.
    #[inline(always)]
    pub unsafe fn insert_at_home<const LONG: bool>(&mut self, home: Spot, rest: u64, low: u64) -> Option<bool> {
        let tail = self.geometry.tail::<LONG>(rest, low);
        // SAFETY: it was found among these lines.
        let line = unsafe { self.lines.line_at(home) };
        match self.geometry.find::<LONG>(line, rest, tail, 1) {
            Found::Here(_) => Some(false),
            Found::Room(place) => {
                self.geometry.put::<LONG>(line, place, rest, tail, 1);
                self.len += 1;
                Some(true)
            }
            Found::NoRoom => None,
        }
    }

    /// Asks for the line of a later try of a key with these leading 64 bits.
    #[inline(always)]
    pub fn ask_elsewhere(&self, high: u64, attempt: u32) {
        let (home, rest) = self.geometry.split(high);
        self.lines.prefetch(self.geometry.line(home, rest, attempt));
    }

    /// Inserts a key into the line of a later try, and says whether it was not there; nothing if there is no room. The lines of the
    /// tries before must be full.
    #[inline(always)]
    pub fn insert_elsewhere<const LONG: bool>(&mut self, high: u64, low: u64, attempt: u32) -> Option<bool> {
        let geometry = &self.geometry;
        let (home, rest) = geometry.split(high);
        let tail = geometry.tail::<LONG>(rest, low);
        let line = self.lines.line_mut(geometry.line(home, rest, attempt));
        match geometry.find::<LONG>(line, rest, tail, attempt) {
            Found::Here(_) => Some(false),
            Found::NoRoom => None,
            Found::Room(place) => {
                geometry.put::<LONG>(line, place, rest, tail, attempt);
                self.displaced += 1;
                self.len += 1;
                Some(true)
            }
        }
    }

    /// Inserts a key for which no try found room; true if it was not there. Another key of its home makes way, if one can.
    #[cold]
    pub fn insert_instead<const LONG: bool>(&mut self, key: u128) -> bool {
        // Since then an equal one may have been inserted in this way, and may have made way for yet another.
        if self.contains::<LONG>(key) {
            return false;
        }
        let geometry = self.geometry;
        self.len += 1;
        let (home, rest) = geometry.split((key >> 64) as u64);
        let places = 0..geometry.slots() as u32;
        let Some((place, was_home)) = places.into_iter().find_map(|place| self.move_on::<LONG>(home, place)) else {
            self.aside.insert(geometry.own(key));
            return true;
        };
        self.displaced += was_home as usize;
        let line = self.lines.line_mut(home);
        geometry.clear(line, place);
        geometry.put::<LONG>(line, place, rest, geometry.tail::<LONG>(rest, key as u64), 1);
        true
    }

    /// Writes the key at a place of a full line where a later try of it finds room; says whether it was at home. Lines stay full, so
    /// that a line with room still says that nobody is elsewhere.
    fn move_on<const LONG: bool>(&mut self, number: usize, place: u32) -> Option<(u32, bool)> {
        let geometry = self.geometry;
        let (attempt, rest, low) = geometry.entry::<LONG>(self.lines.line(number), place);
        let (home, tail) = (geometry.home(number, rest, attempt), geometry.tail::<LONG>(rest, low));
        (attempt + 1..=TRIES).find_map(|later| {
            let line = self.lines.line_mut(geometry.line(home, rest, later));
            let free = geometry.held(line);
            (free < geometry.slots() as u32).then(|| {
                geometry.put::<LONG>(line, free, rest, tail, later);
                (place, attempt == 1)
            })
        })
    }

    /// Inserts a key; true if it was not there.
    pub fn insert_key<const LONG: bool>(&mut self, key: u128) -> bool {
        let high = (key >> 64) as u64;
        let (home, rest) = self.find_home(high);
        // SAFETY: just found.
        let new = unsafe { self.insert_at_home::<LONG>(home, rest, key as u64) };
        let elsewhere = || (2..=TRIES).find_map(|attempt| self.insert_elsewhere::<LONG>(high, key as u64, attempt));
        new.or_else(elsewhere).unwrap_or_else(|| self.insert_instead::<LONG>(key))
    }

    pub fn contains<const LONG: bool>(&self, key: u128) -> bool {
        let found = (1..=TRIES).find_map(|attempt| self.is_at::<LONG>(key, attempt));
        found.unwrap_or_else(|| self.is_aside(key))
    }

    /// Is the key where it is tried for the `attempt`th time? Unknown if that line is full of others.
    #[inline(always)]
    pub fn is_at<const LONG: bool>(&self, key: u128, attempt: u32) -> Option<bool> {
        let (home, rest) = self.geometry.split((key >> 64) as u64);
        let tail = self.geometry.tail::<LONG>(rest, key as u64);
        let line = self.lines.line(self.geometry.line(home, rest, attempt));
        match self.geometry.find::<LONG>(line, rest, tail, attempt) {
            Found::Here(_) => Some(true),
            Found::Room(_) => Some(false),
            Found::NoRoom => None,
        }
    }

    /// The same; and if it is, it gets a mark, where there are any.
    #[inline(always)]
    pub fn mark_at<const LONG: bool>(&mut self, key: u128, attempt: u32) -> Option<bool> {
        let geometry = &self.geometry;
        let (home, rest) = geometry.split((key >> 64) as u64);
        let tail = geometry.tail::<LONG>(rest, key as u64);
        let line = self.lines.line_mut(geometry.line(home, rest, attempt));
        match geometry.find::<LONG>(line, rest, tail, attempt) {
            Found::Here(place) => {
                if geometry.has_marks() {
                    geometry.mark(line, place);
                }
                Some(true)
            }
            Found::Room(_) => Some(false),
            Found::NoRoom => None,
        }
    }

    /// Marks a key if it is in a line.
    pub fn mark<const LONG: bool>(&mut self, key: u128) {
        (1..=TRIES).find_map(|attempt| self.mark_at::<LONG>(key, attempt));
    }

    /// Is the key, for which every try found a full line, outside?
    pub fn is_aside(&self, key: u128) -> bool {
        self.aside.contains(&self.geometry.own(key))
    }

    /// The keys in a line but for the bits that all have in common, and whether they are at home there.
    fn keys_of<const LONG: bool>(&self, number: usize) -> impl Iterator<Item = (u128, bool)> + '_ {
        self.some_of::<LONG>(number, |_| true)
    }

    /// The same without those that have a mark.
    fn unmarked_of<const LONG: bool>(&self, number: usize) -> impl Iterator<Item = (u128, bool)> + '_ {
        self.some_of::<LONG>(number, move |place| !self.geometry.is_marked(self.lines.line(number), place))
    }

    fn some_of<const LONG: bool>(&self, number: usize, is: impl Fn(u32) -> bool) -> impl Iterator<Item = (u128, bool)> {
        let (geometry, line) = (&self.geometry, self.lines.line(number));
        let base = geometry.base(number);
        (0..geometry.held(line))
            .filter(move |&place| is(place))
            .map(move |place| geometry.key::<LONG>(number, base, line, place))
    }

    /// Visits all keys as they lie, without the bits they have in common.
    pub fn visit<const LONG: bool>(&self, visit: &mut impl FnMut(u128)) {
        (0..self.geometry.lines()).flat_map(|number| self.keys_of::<LONG>(number)).for_each(|(key, _)| visit(key));
        self.aside.iter().for_each(|&key| visit(key));
    }

    /// Keys that are not at home.
    pub fn outside(&self) -> usize {
        self.displaced + self.aside.len()
    }

    /// Visits all keys but those with a mark in ascending order, without the bits they have in common, with memory for about `most` keys. Keys at
    /// home are in order as they lie; the others are sorted outside, in as many pieces as that takes, for each of which
    /// they are looked for in all lines.
    pub fn stream<const LONG: bool>(&self, most: usize, visit: &mut impl FnMut(u128)) {
        let lines = self.geometry.lines();
        let pieces = self.outside().div_ceil(most.max(1)).clamp(1, lines);
        for piece in 0..pieces {
            self.stream_lines::<LONG>(lines * piece / pieces..lines * (piece + 1) / pieces, visit);
        }
    }

    /// Visits the keys that are at home in some of the lines.
    fn stream_lines<const LONG: bool>(&self, lines: Range<usize>, visit: &mut impl FnMut(u128)) {
        let all = (0..self.geometry.lines()).flat_map(|number| self.unmarked_of::<LONG>(number));
        let elsewhere = all.filter(|(_, home)| !home).map(|(key, _)| key).chain(self.aside.iter().copied());
        // Keys that are visited have lost their leading bits, as those that are split do.
        let belongs_here = |key: &u128| lines.contains(&self.geometry.split((key >> 64) as u64).0);
        let mut others: Vec<u128> = elsewhere.filter(belongs_here).collect();
        others.sort_unstable();
        let mut others = others.into_iter().peekable();
        let mut here = Vec::with_capacity(self.geometry.slots());
        for number in lines {
            here.extend(self.unmarked_of::<LONG>(number).filter(|(_, home)| *home).map(|(key, _)| key));
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

    /// The same keys in 2^`log` parts, each with its part of the lines: what is at home or in the neighbour stays where it is. From
    /// where others are, whoever is not at home leaves and is put in again: a line with room says that nobody is elsewhere.
    /// The number of pages must allow it.
    pub fn split<const LONG: bool>(mut self, log: u32) -> Vec<Part> {
        let (old, new) = (self.geometry, self.geometry.divided(log));
        let mut away: Vec<u128> = self.aside.drain().collect();
        let mut counts = vec![[0; 2]; 1 << log];
        for first in (0..old.lines()).step_by(2) {
            let pair = [first, first + 1];
            let count = &mut counts[first / new.lines()];
            if pair.iter().any(|&number| old.displaced(self.lines.line(number))[2] > 0) {
                for number in pair {
                    let line = self.lines.line_mut(number);
                    *line = old.at_home::<LONG>(number, line, |key| away.push(key));
                }
            }
            for number in pair {
                let [held, beside, _] = old.displaced(self.lines.line(number));
                *count = [count[0] + held, count[1] + beside];
            }
        }
        let pages = self.lines.split(1 << log).expect("as many pages for each");
        let part = |(lines, [len, displaced]): (Pages, [usize; 2])| Part {
            geometry: new,
            lines,
            len,
            displaced,
            aside: HashSet::new(),
        };
        let mut parts: Vec<Part> = pages.into_iter().zip(counts).map(part).collect();
        for key in away {
            assert!(parts[old.part(key, log)].insert_key::<LONG>(key), "a key was there twice");
        }
        parts
    }

    /// Grows to at least `lines`, for keys of `key_bits` bits; false (and unchanged) if there is no room.
    pub fn grow<const LONG: bool>(&mut self, lines: usize, key_bits: u32) -> bool {
        if lines > MOST_LINES {
            return false;
        }
        // Those that wait outside while lines are spread: who is not at home, and who will find the new home full; where
        // lines become many, all.
        let all = lines > self.geometry.lines() * MOST_RATIO;
        let outside = if all { self.len } else { self.outside() + self.len / 16 };
        let Some(mut waiting) = Waiting::<LONG, false>::new(outside, self.lines.arena()) else {
            return false;
        };
        if !self.lines.grow(lines, 0) {
            return false;
        }
        let new = self.geometry.with(key_bits, self.lines.lines());
        if all {
            self.visit::<LONG>(&mut |key| waiting.push(key, 0));
            (0..self.geometry.lines()).for_each(|line| *self.lines.line_mut(line) = [0; LINE]);
            self.aside.clear();
        } else {
            self.aside.drain().for_each(|key| waiting.push(key, 0));
            spread::<LONG>(&self.geometry, &new, &mut self.lines, &mut waiting);
        }
        (self.geometry, self.displaced) = (new, 0);
        let len = self.len;
        waiting.keys().for_each(|(key, _)| assert!(self.insert_key::<LONG>(key), "a key was there twice"));
        self.len = len;
        true
    }
}

/// Moves keys at home to their new homes; the others are left `waiting`.
fn spread<const LONG: bool>(old: &Geometry, new: &Geometry, lines: &mut Pages, waiting: &mut Waiting<LONG, false>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has these instructions.
        return unsafe { spread_quickly::<LONG>(old, new, lines, waiting) };
    }
    spread_lines::<LONG>(old, new, lines, waiting);
}

/// The same with instructions that not all processors have: shifts by as many bits as a register says take a third of the time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2")]
fn spread_quickly<const LONG: bool>(
    old: &Geometry,
    new: &Geometry,
    lines: &mut Pages,
    waiting: &mut Waiting<LONG, false>,
) {
    spread_lines::<LONG>(old, new, lines, waiting);
}

/// Line by line from the top end downwards, keys at home go to their new homes, which are the same line or one above;
/// the others are left `waiting`. A new line is put together outside and written when nothing more can come to it.
#[inline(always)]
fn spread_lines<const LONG: bool>(
    old: &Geometry,
    new: &Geometry,
    lines: &mut Pages,
    waiting: &mut Waiting<LONG, false>,
) {
    // Copies stay in registers: nobody else can tell that they do not change.
    let (old, new) = (*old, *new);
    let (ratio, slots) = (new.lines().div_ceil(old.lines()), new.slots());
    // So many new lines are open at a time: those of one old line, and one that it shares with the next.
    let mut open = vec![Gathered::new(); (ratio + 2).next_power_of_two()];
    let mask = open.len() - 1;
    let mut end = new.lines();
    for (number, base) in (0..old.lines()).rev().zip(old.bases_from_last()) {
        let line = std::mem::take(lines.line_mut(number));
        let others = old.empty::<LONG>(base, &line, |high, low| {
            let (home, rest) = new.split(high);
            let keys = &mut open[home & mask];
            if keys.len() < slots {
                keys.push::<LONG>(rest, low);
            } else {
                waiting.push((high as u128) << 64 | low as u128, 0);
            }
        });
        let elsewhere = (0..u32::BITS).filter(|place| others >> place & 1 == 1);
        if others != 0 {
            elsewhere.for_each(|place| waiting.push(old.key::<LONG>(number, base, &line, place).0, 0));
        }
        // What comes next is at home in this line or below it.
        let shared = (number as u64 * new.lines() as u64 / old.lines() as u64) as usize;
        let complete = if number == 0 { 0 } else { shared + 1 };
        for home in (complete..end).rev() {
            *lines.line_mut(home) = new.full::<LONG>(&open[home & mask]);
            open[home & mask].clear();
        }
        end = complete;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Grant;
    use plimsoll_ir::random::Draw;

    /// Where keys make way for others nobody waits outside, memory for whom would be in no ledger.
    fn fill<const LONG: bool>(key_bits: u32) {
        let mut part = Part::new(key_bits, 0, 512, &Arena::new(Grant::unlimited())).unwrap();
        let (mut draw, mut keys) = (Draw::new(key_bits as u64), Vec::new());
        let mut made_way = 0;
        for load_percent in [80, 92, 96, 99] {
            while part.len * 100 < part.places() * load_percent {
                let key = ((draw.bits() as u128) << 64 | draw.bits() as u128) >> (128 - key_bits) << (128 - key_bits);
                let full = (1..=TRIES).all(|attempt| {
                    let (home, rest) = part.geometry.split((key >> 64) as u64);
                    let line = part.geometry.line(home, rest, attempt);
                    part.geometry.held(part.lines.line(line)) == part.geometry.slots() as u32
                });
                made_way += full as usize;
                keys.push(key);
                assert!(part.insert_key::<LONG>(key) && !part.insert_key::<LONG>(key), "{key_bits} bits");
            }
            // Of the longest keys a line has few, and then some find nobody who can make way.
            let most = if part.geometry.slots() > 6 { 0 } else { part.len / 100 };
            assert!(load_percent == 99 || part.aside.len() <= most, "{key_bits} bits, {load_percent} %");
            let displaced = |line: usize| part.geometry.displaced(part.lines.line(line))[1..].iter().sum::<usize>();
            assert_eq!((0..part.geometry.lines()).map(displaced).sum::<usize>(), part.displaced);
            assert!(keys.iter().all(|&key| part.contains::<LONG>(key)), "{key_bits} bits");
        }
        assert!(made_way > part.len / 200, "{key_bits} bits: {made_way}");
        assert!(part.grow::<LONG>(part.geometry.lines() * 2, key_bits) && part.aside.is_empty());
        let (mut held, mut all) = (keys.len(), keys);
        part.visit::<LONG>(&mut |_| held -= 1);
        all.sort_unstable();
        let mut streamed = Vec::new();
        part.stream::<LONG>(usize::MAX, &mut |key| streamed.push(key));
        assert!(held == 0 && streamed == all, "{key_bits} bits");
    }

    #[test]
    fn keys_make_way_where_lines_are_full() {
        [30, 44, 64].into_iter().for_each(fill::<false>);
        [65, 100, 128].into_iter().for_each(fill::<true>);
    }
}
