//! A set of keys of up to 128 bits that look random: a table keeps of each what the place does not tell.
//!
//! Keys are left-aligned. Their leading bits choose a part of the table, the next ones a line of it, and the line keeps
//! what is left, to the bit: see [`geometry`]. A lookup touches one line, and looks at a tail only where the head is
//! equal. The larger the table, the shorter the tails. Parts grow one after the other and by little, so that all are
//! full at all times and none needs much memory beside it: [`part`] says how one grows in place. In the same way keys
//! may get longer.

pub(crate) mod geometry;
mod marks;
mod part;
mod recognise;
pub(crate) mod tagged;
pub(crate) mod waiting;

use crate::arena::{Arena, Line, PAGE_LINES, Spot};
use crate::budget::Full;
use crate::intern::Fill;
use geometry::{Geometry, TRIES};
use part::Part;
use std::sync::atomic::{AtomicU8, Ordering};

/// From so many bytes on the tables of a store, all together, have at least this many parts.
const DIVIDED_BYTES: usize = 1 << 20;
const PARTS_LOG: u32 = 5;
/// Workers wait for whoever lets a part grow, so a table that is one of several has parts of not many times so many bytes, but
/// not more than this many of them. It is divided again when it should have so many times as many.
const LEAST_PART_BYTES: usize = 32 << 10;
const MOST_PARTS_LOG: u32 = 8;
const AGAIN_LOG: u32 = 2;
/// By how much a part grows at least, where there is a choice.
const LEAST_GROWTH_PERCENT: usize = 110;
/// How many keys more than the mean a part is ready for, in standard deviations.
const DEVIATIONS: usize = 4;
/// How full parts may be when there is no memory left.
const TIGHT_LOAD_PERCENT: usize = 95;

/// How full the parts of a table may be, and by how much they grow then, and the tables of a tree's nodes: what is denser is slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Density {
    pub load_percent: usize,
    pub growth_percent: usize,
    /// While all of them are small, it is otherwise: moving is dear, and so is memory.
    pub small: [Small; 2],
    pub nodes: Fill,
    /// States that could be packed have a tree if that takes less than this part of the bytes, for it takes longer.
    pub tree_percent: usize,
}

/// How full tables are, and by how much they grow then, while all of them have less than so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Small {
    bytes: usize,
    load_percent: usize,
    growth_percent: usize,
}

impl Density {
    pub const USUAL: Density = Density {
        load_percent: 87,
        growth_percent: 145,
        small: [
            Small { bytes: 4 << 20, load_percent: 87, growth_percent: 400 },
            Small { bytes: 16 << 20, load_percent: 94, growth_percent: 200 },
        ],
        nodes: Fill::USUAL,
        tree_percent: 65,
    };
    pub const COMPACT: Density = Density {
        load_percent: 96,
        growth_percent: 130,
        small: [
            Small { bytes: 256 << 10, load_percent: 96, growth_percent: 400 },
            Small { bytes: 1 << 20, load_percent: 96, growth_percent: 200 },
        ],
        nodes: Fill::COMPACT,
        tree_percent: 100,
    };
}

#[cfg(test)]
impl Density {
    /// The same for tables that are never small.
    pub fn of_large(self) -> Density {
        Density { small: [Small { bytes: 0, ..self.small[0] }; 2], ..self }
    }
}

/// Bytes that each of so many keys takes in a large table, in the mean over all times between two growths.
pub fn bytes_per_key(key_bits: u32, keys: f64, density: Density) -> f64 {
    let each = keys / f64::from(1 << PARTS_LOG);
    let (load, growth) = (density.load_percent as f64 / 100.0, density.growth_percent as f64 / 100.0);
    let bytes = |slots: f64| size_of::<Line>() as f64 / slots / load * (growth - 1.0) / growth.ln();
    let mut slots = 1.0;
    // The more keys there are in a line, the fewer lines, and the more bits are kept.
    for _ in 0..4 {
        let lines = (each * bytes(slots) / size_of::<Line>() as f64) as usize;
        slots = Geometry::new(key_bits, PARTS_LOG, lines.next_multiple_of(PAGE_LINES)).slots() as f64;
    }
    bytes(slots)
}

/// A run of keys: their leading 64 bits, and the others if keys have more.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub high: &'a [u64],
    pub low: &'a [u64],
}

impl Run<'_> {
    pub(crate) fn key(&self, index: usize) -> u128 {
        (self.high[index] as u128) << 64 | self.low(index) as u128
    }

    #[inline(always)]
    fn low(&self, index: usize) -> u64 {
        self.low.get(index).copied().unwrap_or(0)
    }
}

/// A growing set of keys.
#[derive(Debug)]
pub struct Packed {
    key_bits: u32,
    /// Have keys more than 64 bits, or may they get as long?
    is_long: bool,
    /// Leading bits that are the same in all keys.
    common_bits: u32,
    /// Bits behind those that choose the part.
    part_bits: u32,
    parts: Vec<Part>,
    density: Density,
    /// Which of the tables of a store it is.
    number: usize,
    most_lines: usize,
    arena: Arena,
    /// So many keys fit, wherever they belong, beside so many that are expected.
    certain: usize,
    expected: usize,
    /// Where each key that is being inserted belongs.
    homes: Homes,
}

/// Room for where keys belong.
#[derive(Debug, Default)]
pub(crate) struct Homes(Vec<Home>);

#[derive(Clone, Copy, Debug)]
struct Home {
    line: Spot,
    rest: u64,
}

/// Does something with what is known about the length of keys.
macro_rules! by_length {
    ($table:expr, $long:ident => $action:expr) => {
        if $table.is_long {
            const $long: bool = true;
            $action
        } else {
            const $long: bool = false;
            $action
        }
    };
}

pub(crate) use by_length;

impl Packed {
    /// A set of keys of `key_bits` bits, of which the first `common_bits` are the same in all.
    pub fn new(key_bits: u32, common_bits: u32, arena: &Arena) -> Result<Packed, Full> {
        Packed::one_of(key_bits, common_bits, 0, Density::USUAL, arena)
    }

    /// One of 2^`common_bits` sets of keys, of which it has those that begin with its number.
    pub fn one_of(
        key_bits: u32,
        common_bits: u32,
        number: usize,
        density: Density,
        arena: &Arena,
    ) -> Result<Packed, Full> {
        let parts = vec![Part::new(key_bits, common_bits, 1, arena).ok_or(Full)?];
        let (arena, homes, most_lines) = (arena.clone(), Homes::default(), usize::MAX);
        Ok(Packed {
            key_bits,
            is_long: key_bits > u64::BITS,
            common_bits,
            part_bits: 0,
            parts,
            density,
            number,
            most_lines,
            arena,
            certain: 0,
            expected: 0,
            homes,
        })
    }

    /// The same for keys that may get as long as this.
    pub fn for_keys_of(mut self, most_key_bits: u32) -> Packed {
        self.is_long |= most_key_bits > u64::BITS;
        self
    }

    /// How full it is from here on.
    pub fn set_density(&mut self, density: Density) {
        self.density = density;
        (self.certain, self.expected) = (0, 0);
    }

    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bits of a key, and leading ones that are the same in all.
    pub(crate) fn bits(&self) -> (u32, u32) {
        (self.key_bits, self.common_bits)
    }

    /// Keys that wait outside while it is visited in order: those of one part at a time.
    pub(crate) fn outside(&self) -> usize {
        self.parts.iter().map(Part::outside).max().unwrap_or(0)
    }

    /// From now on it takes no more than so many bytes, in whole pages and at least one, and if there is room for them these at once, so
    /// that nothing has to move.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.most_lines = (bytes / size_of::<Line>() / PAGE_LINES).max(1) * PAGE_LINES;
        self.divide_for(bytes);
        let each = (self.most_lines >> self.part_bits) / PAGE_LINES * PAGE_LINES;
        let key_bits = self.key_bits;
        for part in self.parts.iter_mut().filter(|part| part.geometry.lines() < each) {
            // Where there is no room it grows by and by.
            by_length!(self, LONG => part.grow::<LONG>(each, key_bits));
        }
        (self.certain, self.expected) = (0, 0);
    }

    /// Makes sure that `count` more keys of `key_bits` bits fit; keys never get shorter.
    pub fn reserve(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        self.reserve_with(count, key_bits, true)
    }

    /// The same, but a large table does not grow by little again and again, and is not filled to the last place, when memory
    /// is almost used up: whoever asks can do something else.
    pub(crate) fn reserve_well(&mut self, count: usize, key_bits: u32) -> Result<(), Full> {
        let is_small = self.bytes() << self.common_bits <= DIVIDED_BYTES;
        self.reserve_with(count, key_bits, is_small)
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(Part::bytes).sum()
    }

    fn reserve_with(&mut self, count: usize, key_bits: u32, tightly: bool) -> Result<(), Full> {
        if key_bits > self.key_bits {
            self.lengthen(key_bits)?;
        }
        if let Some(certain) = self.certain.checked_sub(count) {
            (self.certain, self.expected) = (certain, self.expected + count);
            return Ok(());
        }
        self.divide(count);
        // Parts get about as many keys each; if one gets more it is fuller for a while.
        let mean = count >> self.part_bits;
        let share = if self.part_bits == 0 { count } else { mean + DEVIATIONS * mean.isqrt() + 32 };
        let (mut certain, mut load) = (usize::MAX, self.load_percent());
        for part in 0..self.parts.len() {
            let wanted = self.parts[part].len + share;
            if wanted > self.parts[part].room(load) {
                if !self.grow(part, wanted, self.key_bits, tightly)
                    && (!tightly || wanted > self.parts[part].room(TIGHT_LOAD_PERCENT))
                {
                    return Err(Full);
                }
                load = self.load_percent();
            }
            certain = certain.min(self.parts[part].room(load).saturating_sub(self.parts[part].len));
        }
        (self.certain, self.expected) = certain.checked_sub(count).map_or((0, 0), |certain| (certain, count));
        Ok(())
    }

    /// So many keys that were expected have come, and fewer of them were new: there is room for others.
    #[inline(always)]
    fn give_back(&mut self, count: usize, new: usize) {
        let count = count.min(self.expected);
        self.expected -= count;
        self.certain += count.saturating_sub(new);
    }

    /// How full parts may be as things are, before they grow.
    fn load_percent(&self) -> usize {
        self.small().map_or(self.density.load_percent, |small| small.load_percent)
    }

    /// What holds while all tables of the store together are small, if they are, and not because they have to be or soon will.
    fn small(&self) -> Option<&Small> {
        let all = self.bytes() << self.common_bits;
        let small = self.density.small.iter().find(|small| all < small.bytes)?;
        let has_room = self.most_lines == usize::MAX && self.arena.has_plenty(all * small.growth_percent / 100);
        has_room.then_some(small)
    }

    /// Grows a part so that `wanted` keys of `key_bits` bits fit; false (and unchanged) if there is no room.
    fn grow(&mut self, part: usize, wanted: usize, key_bits: u32, tightly: bool) -> bool {
        let before = self.parts[part].geometry;
        let least = self.lines_for(wanted, &before.with(key_bits, before.lines())).max(before.lines());
        let others = self.bytes() / size_of::<Line>() - before.lines();
        let most = self.most_lines.saturating_sub(others);
        let comfortable = if least > before.lines() { self.comfortable(part, least).min(most) } else { least };
        let smallest = if tightly { least } else { least.max(before.lines() * LEAST_GROWTH_PERCENT / 100) };
        if least > most {
            return false;
        }
        let part = &mut self.parts[part];
        by_length!(self, LONG => {
            let sizes = [comfortable, (least + comfortable) / 2, smallest];
            sizes.into_iter().any(|lines| lines >= least && part.grow::<LONG>(lines, key_bits))
        })
    }

    /// Lines for so many keys, which need not be fewer than those of `geometry`.
    fn lines_for(&self, keys: usize, geometry: &Geometry) -> usize {
        let lines = |of: usize| {
            let lines = of.next_multiple_of(PAGE_LINES).clamp(PAGE_LINES, 1 << 31);
            let slots = geometry.with(geometry.key_bits(), lines).slots();
            (keys * 100).div_ceil(slots * self.load_percent())
        };
        // The more lines there are, the more keys each of them holds.
        let enough = lines(geometry.lines());
        let fewer = lines(enough);
        if lines(fewer) <= fewer { fewer } else { enough }
    }

    /// So many lines that a part of at least `least` need not grow again soon. Each has sizes of its own, so that they
    /// grow one after the other and not all at once.
    fn comfortable(&self, part: usize, least: usize) -> usize {
        if let Some(small) = self.small() {
            return least.max(self.parts[part].geometry.lines() * small.growth_percent / 100);
        }
        // Neighbours belong to different tables, which different workers let grow.
        let phase = ((part << self.common_bits) + self.number) as f64;
        let phase = phase / (1u64 << (self.common_bits + self.part_bits)) as f64;
        let growth = (self.density.growth_percent as f64 / 100.0).ln();
        let step = ((least as f64).ln() / growth - phase).ceil() + phase;
        ((step * growth).exp().ceil() as usize).max(least)
    }

    /// Divides a table that is large, or becomes so with `count` more keys. Tables of a store are so at the same time, whatever
    /// sizes their parts happen to have, so that workers need not wait for each other.
    fn divide(&mut self, count: usize) {
        self.divide_for(self.lines_for(self.len() + count, &self.parts[0].geometry) * size_of::<Line>());
    }

    /// Divides parts if those of a table of so many bytes should be smaller, and there is memory for whole pages.
    fn divide_for(&mut self, bytes: usize) {
        if bytes << self.common_bits < DIVIDED_BYTES {
            return;
        }
        let least = PARTS_LOG.saturating_sub(self.common_bits);
        let several = self.common_bits > 0 && self.arena.has_plenty(bytes);
        let most = if several { (bytes / LEAST_PART_BYTES).max(1).ilog2().min(MOST_PARTS_LOG) } else { 0 };
        let part_bits = least.max(most);
        if self.part_bits >= least && part_bits < (self.part_bits + AGAIN_LOG).min(MOST_PARTS_LOG) {
            return;
        }
        let Some(log) = part_bits.checked_sub(self.part_bits).filter(|log| *log > 0) else { return };
        let key_bits = self.key_bits;
        by_length!(self, LONG => {
            let is_whole = |part: &mut Part| {
                let lines = part.geometry.lines();
                let whole = lines.next_multiple_of(PAGE_LINES << log);
                whole == lines || part.grow::<LONG>(whole, key_bits)
            };
            if self.parts.iter_mut().all(is_whole) {
                let parts = std::mem::take(&mut self.parts);
                self.parts = parts.into_iter().flat_map(|part| part.split::<LONG>(log)).collect();
                self.part_bits = part_bits;
            }
        });
    }

    /// From now on keys have `key_bits` bits; those that are there end with zeros.
    fn lengthen(&mut self, key_bits: u32) -> Result<(), Full> {
        // Parts that have grown already may stay as they are: they only keep some bits more than necessary.
        assert!(self.is_long || key_bits <= u64::BITS, "it is not prepared for long keys");
        (self.certain, self.expected) = (0, 0);
        for part in 0..self.parts.len() {
            if self.parts[part].geometry.key_bits() >= key_bits {
                continue;
            }
            if !self.grow(part, self.parts[part].len, key_bits, true) {
                return Err(Full);
            }
        }
        self.key_bits = key_bits;
        Ok(())
    }

    /// The part to which a key belongs.
    #[inline(always)]
    fn part_of(&self, high: u64) -> usize {
        (high << self.common_bits >> 1 >> (u64::BITS - 1 - self.part_bits)) as usize
    }

    /// Asks for the lines where keys are at home.
    pub fn prefetch(&self, keys: Run) {
        for &high in keys.high {
            self.parts[self.part_of(high)].find_home(high);
        }
    }

    /// Inserts keys, for which there is room, says of each whether it was not there before, and returns how many were not.
    pub fn insert_all(&mut self, keys: Run, fresh: &[AtomicU8]) -> usize {
        let mut homes = std::mem::take(&mut self.homes);
        let count = self.insert_with_room(keys, &mut homes, fresh);
        self.homes = homes;
        count
    }

    /// The same with room for their homes, which several tables may use.
    pub(crate) fn insert_with_room(&mut self, keys: Run, homes: &mut Homes, fresh: &[AtomicU8]) -> usize {
        let Homes(homes) = homes;
        homes.clear();
        homes.reserve(keys.high.len());
        for &high in keys.high {
            let (line, rest) = self.parts[self.part_of(high)].find_home(high);
            homes.push(Home { line, rest });
        }
        let count = by_length!(self, LONG => self.insert_homes::<LONG>(keys, homes, fresh));
        self.give_back(keys.high.len(), count);
        count
    }

    /// Inserts keys whose homes were found.
    fn insert_homes<const LONG: bool>(&mut self, keys: Run, homes: &mut [Home], fresh: &[AtomicU8]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has these instructions.
            return unsafe { self.insert_quickly::<LONG>(keys, homes, fresh) };
        }
        self.insert_with::<LONG>(keys, homes, fresh)
    }

    /// The same with instructions that not all processors have: see [`part`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi2")]
    fn insert_quickly<const LONG: bool>(&mut self, keys: Run, homes: &mut [Home], fresh: &[AtomicU8]) -> usize {
        self.insert_with::<LONG>(keys, homes, fresh)
    }

    /// Those whose homes are full come later, try by try, when the lines they need are near. Equal keys keep their order, for a line stays full.
    #[inline(always)]
    fn insert_with<const LONG: bool>(&mut self, keys: Run, homes: &mut [Home], fresh: &[AtomicU8]) -> usize {
        let (mut count, mut homeless) = (0, 0);
        for index in 0..homes.len() {
            let (high, low) = (keys.high[index], if LONG { keys.low(index) } else { 0 });
            let (part, home) = (self.part_of(high), homes[index]);
            let part = &mut self.parts[part];
            // SAFETY: `homes` was just filled, and inserting lets nothing grow.
            let Some(new) = (unsafe { part.insert_at_home::<LONG>(home.line, home.rest, low) }) else {
                part.ask_elsewhere(high, 2);
                // Homes that were tried are not needed any more.
                homes[homeless].rest = index as u64;
                homeless += 1;
                continue;
            };
            fresh[index].store(new as u8, Ordering::Relaxed);
            count += new as usize;
        }
        for attempt in 2..=TRIES {
            let mut left = 0;
            for at in 0..homeless {
                let index = homes[at].rest as usize;
                let (high, low) = (keys.high[index], if LONG { keys.low(index) } else { 0 });
                let part = self.part_of(high);
                let part = &mut self.parts[part];
                let Some(new) = part.insert_elsewhere::<LONG>(high, low, attempt) else {
                    part.ask_elsewhere(high, attempt + 1);
                    homes[left].rest = index as u64;
                    left += 1;
                    continue;
                };
                fresh[index].store(new as u8, Ordering::Relaxed);
                count += new as usize;
            }
            homeless = left;
        }
        for index in homes[..homeless].iter().map(|home| home.rest as usize) {
            let part = self.part_of(keys.high[index]);
            let new = self.parts[part].insert_instead::<LONG>(keys.key(index));
            fresh[index].store(new as u8, Ordering::Relaxed);
            count += new as usize;
        }
        count
    }

    /// Inserts one key, for which there is room; true if it was not there.
    pub fn insert_one(&mut self, key: u128) -> bool {
        let part = self.part_of((key >> 64) as u64);
        let new = by_length!(self, LONG => self.parts[part].insert_key::<LONG>(key));
        self.give_back(1, new as usize);
        new
    }

    /// Is the key there? It may be longer than those that are.
    pub fn contains(&self, key: u128) -> bool {
        if self.is_too_long(key) {
            return false;
        }
        let part = self.part_of((key >> 64) as u64);
        by_length!(self, LONG => self.parts[part].contains::<LONG>(key))
    }

    /// Is it longer than those that are here?
    #[inline(always)]
    fn is_too_long(&self, key: u128) -> bool {
        key.checked_shl(self.key_bits).is_some_and(|rest| rest != 0)
    }

    /// Visits all keys as they lie, without the bits they have in common; that takes no memory.
    pub fn visit(&self, mut visit: impl FnMut(u128)) {
        for (number, part) in self.parts.iter().enumerate() {
            let first = self.first_of(number);
            by_length!(self, LONG => part.visit::<LONG>(&mut |key| visit(first | key)));
        }
    }

    /// Visits all keys but those with a mark in ascending order, without the bits they have in common.
    pub fn stream(&self, visit: impl FnMut(u128)) {
        self.stream_within(usize::MAX, visit);
    }

    /// The same with memory for about `most` keys.
    pub fn stream_within(&self, most: usize, mut visit: impl FnMut(u128)) {
        for (number, part) in self.parts.iter().enumerate() {
            let first = self.first_of(number);
            by_length!(self, LONG => part.stream::<LONG>(most, &mut |key| visit(first | key)));
        }
    }

    /// The first key that could be in a part, without the bits that all have in common.
    fn first_of(&self, part: usize) -> u128 {
        (part as u128) << (u64::BITS - self.common_bits - self.part_bits) << u64::BITS
    }
}

#[cfg(test)]
mod tests;
