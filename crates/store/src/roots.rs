//! The set of roots of the tree store: pairs of 32-bit numbers, in four bytes each if they allow it.
//!
//! Roots lie in cache lines. The home of a root is its *mixed* value (44 bits) scaled to the number of
//! lines. Roots are never removed, so a line with a hole ends every search. Two formats share the homes:
//! - wide: eight roots to a line, as they are; one that finds its home full goes to the next line;
//! - compact: sixteen to a line. The mixing is a bijection of roots whose numbers are below 2^22, and the
//!   home already tells the leading bits of the mixed value, so an entry keeps the rest (28 bits) and how
//!   it was displaced (4 bits). Needs 2^16 lines or more for the rest to fit.
//!
//! Inserting is lock-free through `&self`. Growing and changing the format need `&mut self` and happen in
//! place: a home never moves down when lines are added, so roots move from the top end downwards. Only the
//! few that are not at home wait outside the table meanwhile.

use crate::budget::Grant;
use crate::region::{Region, prefetch};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) mod compact;
mod mix;

use compact::{Compact, Inserted, LINE as COMPACT_LINE};
use mix::{MIX_BITS, mixed, unmixed};

/// Roots in a wide line.
const LINE: usize = 8;
/// Lines beyond the last home, for roots that overflow it; there is no wrapping around.
const SLACK: usize = 64;
const FIRST_LINES: usize = 448;
const LOAD_PERCENT: usize = 85;
const GROWTH_PERCENT: usize = 145;
/// With fewer lines the rest of a mixed value does not fit.
const LEAST_COMPACT_LINES_LOG: u32 = MIX_BITS - compact::REST_BITS;
/// A wide table this large is worth turning into a compact one, even if that has to be larger at first.
const NARROW_FROM_LINES: usize = 1 << 13;

/// The table has no room, and its grant none for a larger table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A growing set of roots.
#[derive(Debug)]
pub struct Roots {
    region: Region,
    lines: usize,
    format: Format,
    len: AtomicUsize,
    /// Zero marks an empty place in the wide format, so the root zero is remembered here.
    holds_zero: AtomicBool,
    /// Entries of the compact format that are not at home.
    displaced: AtomicUsize,
    /// Mixed values that found no room in the compact format; practically always empty.
    aside: Mutex<Vec<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Wide,
    Compact(Compact),
}

impl Roots {
    pub fn new(grant: Grant) -> Result<Roots, Full> {
        let mut region = Region::new(grant);
        if !region.grow((FIRST_LINES + SLACK) * 64) {
            return Err(Full);
        }
        Ok(Roots {
            region,
            lines: FIRST_LINES,
            format: Format::Wide,
            len: AtomicUsize::new(0),
            holds_zero: AtomicBool::new(false),
            displaced: AtomicUsize::new(0),
            aside: Mutex::new(Vec::new()),
        })
    }

    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// Makes sure that `count` more roots fit, all of whose numbers are below `bound`.
    pub fn reserve(&mut self, count: usize, bound: u32) -> Result<(), Full> {
        if bound > 1 << (MIX_BITS / 2) && self.format != Format::Wide {
            self.widen()?;
        }
        let wanted = self.len() + count;
        let line = self.line();
        if wanted <= self.lines * line * LOAD_PERCENT / 100 {
            return Ok(());
        }
        // Well below the limit, lest a few more numbers force the table back.
        let may_narrow = bound <= 1 << (MIX_BITS / 2 - 1) && self.lines >= NARROW_FROM_LINES;
        if self.format == Format::Wide && may_narrow && self.grow(1 << LEAST_COMPACT_LINES_LOG).is_some() {
            self.narrow();
            return self.reserve(count, bound);
        }
        let least = (wanted * 100 / LOAD_PERCENT).div_ceil(line) + 8;
        let comfortable = least.max(self.lines * GROWTH_PERCENT / 100);
        [comfortable, (least + comfortable) / 2, least].into_iter().find_map(|lines| self.grow(lines)).ok_or(Full)
    }

    #[inline(always)]
    pub fn prefetch(&self, mixed: u64) {
        prefetch(&self.region.pairs()[home(mixed, self.lines) * 8]);
    }

    /// The mixed value of a root, from which its place follows.
    #[inline(always)]
    pub fn mix(root: u64) -> u64 {
        mixed(root)
    }

    /// Inserts roots with their mixed values, and appends to `fresh` the positions of those not there before.
    pub fn insert_all(&self, roots: &[u64], mixed: &[u64], fresh: &mut Vec<u32>) -> Result<(), Full> {
        let before = fresh.len();
        let outcome = match self.format {
            Format::Wide => self.insert_wide(roots, mixed, fresh),
            Format::Compact(compact) => {
                self.insert_compact(compact, mixed, fresh);
                Ok(())
            }
        };
        self.len.fetch_add(fresh.len() - before, Ordering::Relaxed);
        outcome
    }

    fn insert_wide(&self, roots: &[u64], mixed: &[u64], fresh: &mut Vec<u32>) -> Result<(), Full> {
        for (position, (&root, &mixed)) in roots.iter().zip(mixed).enumerate() {
            if self.insert(root, mixed)? {
                fresh.push(position as u32);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn insert(&self, root: u64, mixed: u64) -> Result<bool, Full> {
        if root == 0 {
            return Ok(!self.holds_zero.swap(true, Ordering::Relaxed));
        }
        for slot in &self.region.pairs()[home(mixed, self.lines) * LINE..] {
            let mut found = slot.load(Ordering::Relaxed);
            if found == 0 {
                match slot.compare_exchange(0, root, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return Ok(true),
                    Err(other) => found = other,
                }
            }
            if found == root {
                return Ok(false);
            }
        }
        Err(Full)
    }

    fn insert_compact(&self, compact: Compact, mixed: &[u64], fresh: &mut Vec<u32>) {
        let slots = self.region.words();
        let mut displaced = 0;
        for (position, &mixed) in mixed.iter().enumerate() {
            match compact.insert(slots, mixed) {
                Inserted::Known => continue,
                Inserted::AtHome => {}
                Inserted::Displaced => displaced += 1,
                Inserted::NoRoom => {
                    let mut aside = self.aside.lock().expect("no panic while held");
                    if aside.contains(&mixed) {
                        continue;
                    }
                    aside.push(mixed);
                }
            }
            fresh.push(position as u32);
        }
        self.displaced.fetch_add(displaced, Ordering::Relaxed);
    }

    fn line(&self) -> usize {
        if self.format == Format::Wide { LINE } else { COMPACT_LINE }
    }

    /// Grows to at least `lines`, in the format it has.
    fn grow(&mut self, lines: usize) -> Option<()> {
        if lines <= self.lines {
            return Some(());
        }
        // Those that wait outside while the table is spread are charged for that time.
        let outside = (*self.displaced.get_mut() + self.len() / 16) * 8;
        if !self.region.grow_beside((lines + SLACK) * 64, outside) {
            return None;
        }
        // Growth is by whole pages: use all of it.
        let lines = self.region.bytes() / 64 - SLACK;
        match self.format {
            Format::Wide => self.spread_wide(lines),
            Format::Compact(compact) => self.respread(compact, Format::Compact(Compact::new(MIX_BITS, lines)), lines),
        }
        Some(())
    }

    /// From compact to wide, in place.
    fn widen(&mut self) -> Result<(), Full> {
        let Format::Compact(compact) = self.format else { return Ok(()) };
        let lines = (self.len() * 100 / LOAD_PERCENT).div_ceil(LINE).max(self.lines * 2) + 8;
        let outside = (*self.displaced.get_mut() + self.len() / 16) * 8;
        if !self.region.grow_beside((lines + SLACK) * 64, outside) {
            return Err(Full);
        }
        self.respread(compact, Format::Wide, self.region.bytes() / 64 - SLACK);
        Ok(())
    }

    /// From wide to compact, in place: as many lines have twice the room, and homes stay.
    fn narrow(&mut self) {
        let compact = Compact::new(MIX_BITS, self.lines);
        let mut waiting = Vec::new();
        let pairs = self.region.pairs_mut();
        let mut roots = [0; LINE];
        for line in 0..self.lines + SLACK {
            roots.copy_from_slice(&pairs[line * LINE..][..LINE]);
            pairs[line * LINE..][..LINE].fill(0);
            let words: &mut [u32] = bytemuck::cast_slice_mut(pairs);
            // Homes are at or below this line, and every line up to it is compact now.
            let values = roots.iter().filter(|&&root| root != 0).map(|&root| mixed(root));
            waiting.extend(values.filter(|&value| !compact.place_at_home(words, value)));
        }
        if std::mem::take(self.holds_zero.get_mut()) {
            waiting.push(mixed(0));
        }
        self.format = Format::Compact(compact);
        self.settle(waiting);
    }

    /// Moves every entry of a compact table to its place in another format or size: first those not at home
    /// leave, then lines are emptied from the top end downwards, then those that left come back.
    fn respread(&mut self, old: Compact, format: Format, lines: usize) {
        let old_lines = std::mem::replace(&mut self.lines, lines);
        let mut waiting = std::mem::take(self.aside.get_mut().expect("no panic while held"));
        waiting.reserve(std::mem::take(self.displaced.get_mut()) + self.len.get_mut().to_owned() / 16);
        let mut at_home = Vec::with_capacity(COMPACT_LINE);
        for line in (0..old_lines).rev() {
            let words = self.region.words_mut();
            for slot in words[line * COMPACT_LINE..][..COMPACT_LINE].iter_mut().filter(|slot| **slot != 0) {
                let (value, home) = old.value(line, std::mem::take(slot));
                if home { at_home.push(value) } else { waiting.push(value) }
            }
            match format {
                Format::Compact(new) => {
                    waiting.extend(at_home.drain(..).filter(|&value| !new.place_at_home(words, value)));
                }
                Format::Wide => at_home.drain(..).for_each(|value| self.place_wide(unmixed(value))),
            }
        }
        self.format = format;
        self.settle(waiting);
    }

    /// Inserts mixed values that were taken out.
    fn settle(&mut self, waiting: Vec<u64>) {
        match self.format {
            Format::Wide => waiting.into_iter().for_each(|value| self.place_wide(unmixed(value))),
            Format::Compact(compact) => self.insert_compact(compact, &waiting, &mut Vec::new()),
        }
    }

    /// Puts a root that is not there into a wide table.
    fn place_wide(&mut self, root: u64) {
        if root == 0 {
            *self.holds_zero.get_mut() = true;
            return;
        }
        let home = home(mixed(root), self.lines) * LINE;
        let hole = self.region.pairs_mut()[home..].iter_mut().find(|slot| **slot == 0);
        *hole.expect("room after the last home") = root;
    }

    /// Moves every root to its place in a wide table of `lines` lines, cluster by cluster from the top end.
    fn spread_wide(&mut self, lines: usize) {
        let mut end = (std::mem::replace(&mut self.lines, lines) + SLACK) * LINE;
        let mut cluster = Vec::new();
        while end > 0 {
            let slots = self.region.pairs_mut();
            // A cluster begins at a line whose predecessor has a hole: nothing in it came from below. Lines
            // fill from their beginning.
            let mut start = end - LINE;
            while start > 0 && slots[start - 1] != 0 {
                start -= LINE;
            }
            cluster.extend(slots[start..end].iter().copied().filter(|&root| root != 0));
            slots[start..end].fill(0);
            cluster.drain(..).for_each(|root| self.place_wide(root));
            end = start;
        }
    }
}

/// The home line of a mixed value: monotone in the value and in the number of lines.
#[inline(always)]
fn home(mixed: u64, lines: usize) -> usize {
    ((mixed as u128 * lines as u128) >> MIX_BITS) as usize
}

#[cfg(test)]
mod tests;
