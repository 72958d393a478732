//! A set of keys of up to 128 bits, each with the number of a set of snapshots: a state is held once, in however many it is.
//!
//! Lines are like those of [`crate::packed`], and the number is the tag of a key, of just as many bits as there are sets. A state
//! whose set is empty is held no more: the next that comes to its line takes its place, so nothing is cleaned up when a
//! level is dropped. What finds its home full of others goes to another line, and the lines that it came by count that
//! ([`crate::packed::tagged`]). When there are no numbers left because sets have lost their states, or too many lines have lost count, what is held no
//! more is cleared away and who is not at home moves closer; that takes no memory ([`order`]).

mod order;

use super::masks::{MOST_SETS, Masks};
use crate::arena::{Arena, LINE, Line, PAGE_LINES, Pages};
use crate::budget::{Full, Grant};
use crate::cache::Distinct;
use crate::packed::geometry::{Found, Geometry, TRIES};
use crate::packed::tagged::{is_left, is_next_taken, is_passed};
use crate::packed::{Run, by_length};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// How full a table may be of states that are held, where a line has so many places and where it has fewer; and one that is small,
/// for then levels are narrow and many.
const MANY_PLACES: usize = 8;
const LOAD_PERCENT: usize = 82;
const SHORT_LOAD_PERCENT: usize = 75;
const SMALL_LINES: usize = 1 << 15;
const SMALL_LOAD_PERCENT: usize = 65;
/// By how much tables grow.
const GROWTH_PERCENT: usize = 122;
/// What it takes at least, where there is a choice, and up to which size growing costs nothing.
const LEAST_GROWTH_PERCENT: usize = 110;
const CHEAP_LINES: usize = 4096;
/// What sets of snapshots take is charged in such pieces.
const MASKS_PIECE: usize = 16 << 10;
/// So many lines may have lost count, or states be outside, before the table is put in order again: a share of all lines, and so many
/// times what is usual.
const TROUBLE_SHARE: usize = 16;
const TROUBLE_TIMES: usize = 2;
/// Bits of a tag at first, and numbers for each set that is in use.
const FIRST_TAG_BITS: u32 = 6;
const NUMBERS_PER_SET: usize = 2;

/// How full so many lines may be, in percent.
fn load(geometry: &Geometry, lines: usize) -> usize {
    match lines {
        ..=SMALL_LINES => SMALL_LOAD_PERCENT,
        _ if geometry.slots() >= MANY_PLACES => LOAD_PERCENT,
        _ => SHORT_LOAD_PERCENT,
    }
}

/// States that may be held in so many lines.
fn room(geometry: &Geometry, lines: usize) -> usize {
    lines * geometry.slots() * load(geometry, lines) / 100
}

/// The lines that so many states need.
fn lines_for(geometry: &Geometry, states: usize) -> usize {
    let lines = |load: usize| (states * 100).div_ceil(geometry.slots() * load) + 1;
    let small = lines(SMALL_LOAD_PERCENT);
    if small <= SMALL_LINES { small } else { lines(load(geometry, usize::MAX)).max(SMALL_LINES + 1) }
}

/// The bits of a number below `numbers`.
fn bits_for(numbers: usize) -> u32 {
    numbers.next_power_of_two().ilog2()
}

/// Where a state that is held, or was, lies.
enum Spot {
    Line(usize, u32),
    Aside(u128),
}

/// Where there is room for a state.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    place: u32,
    attempt: u32,
}

/// The states of one shard.
#[derive(Debug)]
pub(crate) struct LevelTable {
    key_bits: u32,
    /// Have keys more than 64 bits?
    is_long: bool,
    lines: Pages,
    geometry: Geometry,
    pub masks: Masks,
    /// States that found no room, about one in a thousand, without the bits that all keys have in common.
    aside: HashMap<u128, u16>,
    /// Lines that have lost count of who came by; and how many there are, with the states outside, when everything is in order.
    stuck: usize,
    usual_trouble: usize,
    /// Places that are taken by states whose home is neither there nor in the neighbour.
    far: usize,
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
            is_long: key_bits > u64::BITS,
            geometry: Geometry::tagged(key_bits, common_bits, lines.lines(), FIRST_TAG_BITS).roomy(),
            lines,
            masks: Masks::new(),
            aside: HashMap::new(),
            stuck: 0,
            usual_trouble: 0,
            far: 0,
            grant: grant.clone(),
            charged: 0,
            forgotten: 0,
            distinct: Distinct::new(common_bits),
            by_states: false,
        })
    }

    /// Bytes that a state takes at most in a full table of about so many states.
    pub fn bytes_per_state(key_bits: u32, states: u64) -> u64 {
        let lines = (states as usize / LINE).next_multiple_of(PAGE_LINES).clamp(PAGE_LINES, 1 << 31);
        let geometry = Geometry::tagged(key_bits, 0, lines, u16::BITS);
        size_of::<Line>() as u64 * 100 / (geometry.slots() * load(&geometry, usize::MAX)) as u64 + 1
    }

    /// Makes sure that `count` more states of keys of `key_bits` bits fit, and that so many meetings can be noted.
    pub fn reserve(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        self.reserve_growing(count, key_bits, 100)
    }

    /// The same, but a large table does not grow by little again and again: whoever asks can give up levels instead.
    pub fn reserve_well(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        let is_small = self.lines.lines() <= CHEAP_LINES;
        self.reserve_growing(count, key_bits, if is_small { 100 } else { LEAST_GROWTH_PERCENT })
    }

    fn reserve_growing(&mut self, count: usize, key_bits: u32, least_percent: usize) -> Result<(), Full> {
        let bearable = (self.lines.lines() / TROUBLE_SHARE).max(self.usual_trouble * TROUBLE_TIMES);
        let in_order = self.stuck + self.aside.len() <= bearable;
        let is_untidy = !in_order || self.masks.after(count) > 1 << self.geometry.tag_bits();
        if is_untidy {
            by_length!(self, LONG => self.tidy::<LONG>());
        }
        let (tag_bits, sets) = (self.geometry.tag_bits(), self.masks.after(count));
        if sets > MOST_SETS {
            return Err(Full);
        }
        let (wanted, lines) = (self.masks.live() + count, self.lines.lines());
        let fits =
            key_bits <= self.geometry.key_bits() && sets <= 1 << tag_bits && wanted <= room(&self.geometry, lines);
        // What was put in order should not have to be again soon.
        let comfortable = if is_untidy { sets * NUMBERS_PER_SET } else { sets };
        if !fits || comfortable > 1 << tag_bits {
            let mut grow = |numbers: usize, percent: usize| {
                let tag_bits = bits_for(numbers.min(MOST_SETS)).max(tag_bits);
                let new = self.geometry.with(key_bits.max(self.key_bits), lines).with_tags(tag_bits);
                let least = lines_for(&new, wanted);
                self.grow(if least > lines { least.max(lines * percent / 100) } else { lines }, new)
            };
            let sizes = [(comfortable, GROWTH_PERCENT), (comfortable, least_percent), (sets, least_percent)];
            if !sizes.into_iter().any(|(numbers, percent)| grow(numbers, percent)) && !fits {
                return Err(Full);
            }
        }
        self.key_bits = key_bits.max(self.key_bits);
        while self.charged < self.masks.bytes() {
            if !self.grant.take(MASKS_PIECE as u64) {
                return Err(Full);
            }
            self.charged += MASKS_PIECE;
        }
        Ok(())
    }

    pub fn prefetch(&self, keys: Run) {
        keys.high.iter().for_each(|&high| self.lines.prefetch(self.geometry.split(high).0));
    }

    /// Enters states of the level under construction, says of each whether it was not held, and returns how many were not;
    /// of those that were it tells the lanes, if there is room for those.
    pub fn insert_all(&mut self, keys: Run, fresh: &[AtomicU8], lanes: &[AtomicU64]) -> usize {
        self.prefetch(keys);
        let mut count = 0;
        by_length!(self, LONG => {
            for (index, fresh) in fresh.iter().enumerate() {
                let change = |masks: &mut Masks, held: Option<u16>| held.map_or(masks.found(), |tag| masks.meet(tag));
                match self.enter::<LONG>(keys.key(index), change) {
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
        by_length!(self, LONG => _ = self.enter::<LONG>(key, change));
    }

    /// Puts a state of another table here, where it is not.
    pub fn restore(&mut self, key: u128, members: &[u32]) {
        let change = |masks: &mut Masks, _: Option<u16>| masks.number_of(members);
        by_length!(self, LONG => _ = self.enter::<LONG>(key, change));
    }

    /// These snapshots are held no more.
    pub fn forget(&mut self, levels: &[u32]) {
        self.forgotten += self.masks.forget(levels) as u64;
    }

    /// Finds a state or gives it a place; its tag becomes what `change` makes of the one it had, if it was held. That
    /// one is returned.
    #[inline(always)]
    fn enter<const LONG: bool>(&mut self, key: u128, change: impl Fn(&mut Masks, Option<u16>) -> u16) -> Option<u16> {
        let geometry = &self.geometry;
        let (home, rest) = geometry.split((key >> 64) as u64);
        let tail = geometry.tail::<LONG>(rest, key as u64);
        let line = self.lines.line_mut(home);
        let mut found = geometry.find::<LONG>(line, rest, tail, 1);
        if matches!(found, Found::NoRoom) && !is_passed(line) {
            found = self.make_room::<LONG>(home);
        }
        let (geometry, line) = (&self.geometry, self.lines.line_mut(home));
        match found {
            Found::Here(place) => {
                let tag = geometry.tag(line, place);
                self.change(Spot::Line(home, place), tag, change)
            }
            Found::Room(place) if !is_passed(line) => {
                let tag = change(&mut self.masks, None);
                self.masks.come(tag);
                geometry.put::<LONG>(line, place, rest, tail, 1);
                geometry.set_tag(line, place, tag);
                None
            }
            _ => match self.look_elsewhere::<LONG>(key) {
                Some((spot, tag)) => self.change(spot, tag, change),
                None => {
                    let tag = change(&mut self.masks, None);
                    self.masks.come(tag);
                    self.take_place::<LONG>(key, tag);
                    None
                }
            },
        }
    }

    /// Where a state lies that is not at home, and its tag.
    #[inline(never)]
    fn look_elsewhere<const LONG: bool>(&self, key: u128) -> Option<(Spot, u16)> {
        let Self { geometry, lines, .. } = self;
        let (home, rest) = geometry.split((key >> 64) as u64);
        let tail = geometry.tail::<LONG>(rest, key as u64);
        let find = |attempt: u32| {
            let number = geometry.line(home, rest, attempt);
            let line = lines.line(number);
            match geometry.find::<LONG>(line, rest, tail, attempt) {
                Found::Here(place) => Some((Spot::Line(number, place), geometry.tag(line, place))),
                _ => None,
            }
        };
        for first in (1..=TRIES).step_by(2) {
            if first > 1
                && let Some(found) = find(first)
            {
                return Some(found);
            }
            let line = lines.line(geometry.line(home, rest, first));
            if is_next_taken(line) {
                // Who is aside came by the last line as if there were another.
                let bare = geometry.own(key);
                let found = match first {
                    TRIES => self.aside.get(&bare).map(|&tag| (Spot::Aside(bare), tag)),
                    _ => find(first + 1),
                };
                if found.is_some() {
                    return found;
                }
            }
            if !is_left(line) {
                break;
            }
        }
        None
    }

    /// The first place on the way of a state that is empty, or that another state has lost.
    #[inline(always)]
    fn room_for(&self, home: usize, rest: u64) -> Option<Place> {
        (1..=TRIES).find_map(|attempt| {
            let number = self.geometry.line(home, rest, attempt);
            let line = self.lines.line(number);
            let place = self.geometry.free(line).or_else(|| {
                let lost = self.geometry.tags_that(line, |tag| !self.masks.is_live(tag));
                (lost != 0).then_some(lost.trailing_zeros())
            });
            place.map(|place| Place { line: number, place, attempt })
        })
    }

    /// Puts a state that is not there into a place that is empty or that another state has lost, or aside.
    #[inline(never)]
    fn take_place<const LONG: bool>(&mut self, key: u128, tag: u16) {
        let (home, rest) = self.geometry.split((key >> 64) as u64);
        let room = self.room_for(home, rest);
        if let Some(Place { line, place, .. }) = room
            && self.geometry.attempt(self.lines.line(line), place) > 0
        {
            self.clear_place::<LONG>(line, place);
        }
        let attempts = room.map_or(TRIES + 1, |room| room.attempt);
        self.stuck += self.geometry.pass(&mut self.lines, home, rest, attempts);
        let Some(Place { line, place, attempt }) = room else {
            self.aside.insert(self.geometry.own(key), tag);
            return;
        };
        let (geometry, line) = (&self.geometry, self.lines.line_mut(line));
        self.far += (attempt > 2) as usize;
        geometry.put::<LONG>(line, place, rest, geometry.tail::<LONG>(rest, key as u64), attempt);
        geometry.set_tag(line, place, tag);
    }

    /// Clears the places of a full line that states have lost.
    #[inline(never)]
    fn make_room<const LONG: bool>(&mut self, number: usize) -> Found {
        let masks = &self.masks;
        let lost = self.geometry.tags_that(self.lines.line(number), |tag| !masks.is_live(tag));
        ones(lost).for_each(|place| self.clear_place::<LONG>(number, place));
        self.geometry.free(self.lines.line(number)).map_or(Found::NoRoom, Found::Room)
    }

    /// Clears a place that a state has lost.
    fn clear_place<const LONG: bool>(&mut self, number: usize, place: u32) {
        let Self { geometry, lines, masks, .. } = self;
        let line = lines.line_mut(number);
        masks.leave(geometry.tag(line, place));
        let (attempts, rest, _) = geometry.entry::<LONG>(line, place);
        geometry.clear(line, place);
        if attempts > 1 {
            self.far -= (attempts > 2) as usize;
            geometry.take_back(lines, geometry.home(number, rest, attempts), rest, attempts);
        }
    }

    #[inline(always)]
    fn change(&mut self, spot: Spot, tag: u16, change: impl Fn(&mut Masks, Option<u16>) -> u16) -> Option<u16> {
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
            Spot::Line(number, place) => self.geometry.set_tag(self.lines.line_mut(number), place, new),
            Spot::Aside(key) => _ = self.aside.insert(key, new),
        }
        held
    }

    /// Visits all states that are held, without the bits that all have in common, with what they are held for.
    pub fn visit(&self, mut visit: impl FnMut(u128, &[u32])) {
        let mut meet = |key: u128, tag: u16| {
            if self.masks.is_live(tag) {
                visit(key, self.masks.members(tag));
            }
        };
        by_length!(self, LONG => {
            for number in 0..self.geometry.lines() {
                let (line, base) = (self.lines.line(number), self.geometry.base(number));
                for place in ones(self.geometry.taken(line)) {
                    meet(self.geometry.key::<LONG>(number, base, line, place).0, self.geometry.tag(line, place));
                }
            }
        });
        self.aside.iter().for_each(|(&key, &tag)| meet(key, tag));
    }

    /// What a key is held for, if it is.
    pub fn members(&self, key: u128) -> &[u32] {
        self.tag(key).map_or(&[], |tag| self.masks.members(tag))
    }

    /// The lanes of a key; none if it is not held.
    pub fn lanes(&self, key: u128) -> u64 {
        self.tag(key).map_or(0, |tag| self.masks.lanes(tag))
    }

    /// The tag of a key that is held, or was.
    fn tag(&self, key: u128) -> Option<u16> {
        let (home, rest) = self.geometry.split((key >> 64) as u64);
        by_length!(self, LONG => {
            let (tail, line) = (self.geometry.tail::<LONG>(rest, key as u64), self.lines.line(home));
            match self.geometry.find::<LONG>(line, rest, tail, 1) {
                Found::Here(place) => Some(self.geometry.tag(line, place)),
                _ => self.look_elsewhere::<LONG>(key).map(|(_, tag)| tag),
            }
        })
    }
}

/// The places of ones.
fn ones(mut bits: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (place < u32::BITS).then_some(place)
    })
}

impl Drop for LevelTable {
    fn drop(&mut self) {
        self.grant.give_back(self.charged as u64);
    }
}
