//! Numbers for vectors of words: equal vectors get the same number, numbers are dense from zero, unless vectors are given up (see [`living`]).
//!
//! One open-addressing table whose slots hold the number and the vector itself, so a lookup touches one
//! place in memory. This is a node table of the tree store, and with whole states as vectors it is the
//! plain store. Several workers may intern at once through `&self` (see `slots`). Growing happens in place, as in
//! [`crate::packed`]: homes never move down.

mod growth;
mod living;
mod slots;
mod sorted;

use crate::budget::{Full, Grant};
use crate::hash;
use crate::region::{Region, prefetch};
use crate::stream::{Unloaded, put_number, put_words, take_below, take_words};
pub use growth::Growth;
use slots::{BUSY, differs};
pub use sorted::Numbered;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};

/// Slots beyond the last home; there is no wrapping around.
const SLACK: usize = 256;
const FIRST_SLOTS: usize = 256;
const TIGHT_LOAD_PERCENT: usize = 85;

/// How full a table may be while it has few bytes and when it has more, and by how much it grows. Most lookups are for vectors already
/// there, and find them in their home slot at a low load. That is worth its memory only while the table is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    few_bytes: usize,
    few_load_percent: usize,
    few_growth_percent: usize,
    load_percent: usize,
    growth_percent: usize,
}

impl Fill {
    pub const USUAL: Fill = Fill {
        few_bytes: 512 << 10,
        few_load_percent: 50,
        few_growth_percent: 200,
        load_percent: 75,
        growth_percent: 140,
    };
    pub const COMPACT: Fill = Fill {
        few_bytes: 16 << 10,
        few_load_percent: 50,
        few_growth_percent: 115,
        load_percent: 85,
        growth_percent: 115,
    };
}

/// A growing table of vectors of `stride` words.
#[derive(Debug)]
pub struct Intern {
    stride: usize,
    /// So many leading bits are the same in the hashes of all vectors.
    told_bits: u32,
    region: Region,
    slots: usize,
    /// Words of the slots.
    end: usize,
    /// Vectors that fit before the next growth.
    room: usize,
    fill: Fill,
    /// Are there marks behind the slots? See [`living`].
    marked: bool,
    count: Count,
}

/// Numbers given out. It has a cache line of its own: every lookup reads what lies beside it, which others may write only
/// while nobody looks.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count {
    /// The number to be tried next.
    next: AtomicU32,
    /// With marks: vectors that there are, and a number above those of all that survived the last collection.
    held: AtomicU32,
    survived: u32,
}

impl Intern {
    pub fn new(stride: usize, grant: Grant) -> Result<Intern, Full> {
        Intern::one_of(0, stride, grant)
    }

    /// One of 2^`told_bits` tables that share a grant: the leading bits of its hash tell where a vector belongs.
    pub fn one_of(told_bits: u32, stride: usize, grant: Grant) -> Result<Intern, Full> {
        assert!(stride > 0);
        // Numbers have 32 bits. A wide state has hundreds of tables, for which there are not enough addresses if each could have all memory
        // of a large machine.
        let most_bytes = ((stride + 1) * size_of::<u32>()) << u32::BITS;
        let region = Region::one_of(1 << told_bits, most_bytes, grant);
        let (fill, count) = (Fill::USUAL, Count::default());
        let mut table = Intern { stride, told_bits, region, slots: 0, end: 0, room: 0, fill, marked: false, count };
        table.grow(FIRST_SLOTS)?;
        Ok(table)
    }

    /// How full it is from here on.
    pub fn set_fill(&mut self, fill: Fill) {
        self.fill = fill;
        self.room = self.room.max(self.slots * self.load_percent(self.slots) / 100);
    }

    /// Words of a vector.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        let count = if self.marked { &self.count.held } else { &self.count.next };
        count.load(Ordering::Relaxed) as usize
    }

    /// All numbers are below this.
    pub fn bound(&self) -> usize {
        self.count.next.load(Ordering::Relaxed).max(self.count.survived) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// Do `count` more vectors fit as it is?
    pub fn has_room(&self, count: usize) -> bool {
        self.len() + count <= self.room
    }

    /// Makes sure that `count` more vectors fit.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        if self.has_room(count) {
            return Ok(());
        }
        let wanted = self.len() + count;
        let (least, comfortable) = (self.least_slots(wanted), self.comfortable(count));
        let sizes = [comfortable, (least + comfortable) / 2, least];
        if sizes.into_iter().any(|slots| self.grow(slots).is_ok()) {
            return Ok(());
        }
        // No memory is left: a slow table is better than none.
        let tight = self.slots * TIGHT_LOAD_PERCENT / 100;
        self.room = self.room.max(tight);
        if wanted <= tight { Ok(()) } else { Err(Full) }
    }

    fn least_slots(&self, vectors: usize) -> usize {
        (vectors * 100).div_ceil(self.load_percent(vectors))
    }

    /// Slots for `count` more vectors, and for some time to come.
    fn comfortable(&self, count: usize) -> usize {
        let Fill { few_bytes, few_growth_percent, growth_percent, .. } = self.fill;
        let generous = self.bytes() < few_bytes && self.region.grant().has_plenty(self.bytes());
        let percent = if generous { few_growth_percent } else { growth_percent };
        self.least_slots(self.len() + count).max(self.slots * percent / 100)
    }

    /// The same for a table that may take so many bytes, all of which it takes in the end.
    pub fn reserve_within(&mut self, count: usize, most_bytes: usize) -> Result<(), Full> {
        if self.has_room(count) {
            return Ok(());
        }
        let most = (most_bytes / 4 / (self.stride + 1)).saturating_sub(SLACK);
        let slots = self.comfortable(count).min(most);
        if slots > self.slots {
            self.grow(slots)?;
        }
        if !self.has_room(count) {
            self.room = self.room.max(self.slots * TIGHT_LOAD_PERCENT / 100);
        }
        if self.has_room(count) { Ok(()) } else { Err(Full) }
    }

    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.region.words()[self.home(hash) * (self.stride + 1)]);
    }

    /// The number of `vector` (with hash `hash`), and whether it is new.
    #[inline(always)]
    pub fn intern(&self, vector: &[u32], hash: u64) -> Result<(u32, bool), Full> {
        assert_eq!(vector.len(), self.stride);
        slots::intern(self.area(), self.home(hash) * (vector.len() + 1), vector, self)
    }

    /// The number of `vector`, if it has one. Nobody may be writing.
    pub fn find(&self, vector: &[u32], hash: u64) -> Option<u32> {
        assert_eq!(vector.len(), self.stride);
        let step = vector.len() + 1;
        for slot in self.area()[self.home(hash) * step..].chunks_exact(step) {
            match slot[0].load(Ordering::Acquire) {
                0 => return None,
                header if differs(&slot[1..], vector) == 0 => return Some(header - 1),
                _ => {}
            }
        }
        None
    }

    /// All slots, end to end.
    #[inline(always)]
    fn area(&self) -> &[AtomicU32] {
        &self.region.words()[..self.end]
    }

    /// The slot where the search for a vector begins.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash::scale(hash << self.told_bits, self.slots)
    }

    /// Every vector with its number, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[AtomicU32])> {
        let slots = self.area().chunks_exact(self.stride + 1);
        slots
            .map(|slot| (slot[0].load(Ordering::Acquire), &slot[1..]))
            .filter(|&(header, _)| header != 0)
            .map(|(header, vector)| (header - 1, vector))
    }

    /// Writes every vector with its number.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        put_number(out, self.len() as u64)?;
        self.iter().try_for_each(|(number, vector)| {
            let words = vector.iter().map(|word| word.load(Ordering::Relaxed));
            put_words(out, std::iter::once(number).chain(words))
        })
    }

    /// A table of vectors of `stride` words that was written, with the same numbers.
    pub fn load(stride: usize, from: &mut dyn Read, grant: Grant) -> Result<Intern, Unloaded> {
        let mut table = Intern::new(stride, grant)?;
        let len = take_below(from, BUSY as usize - 2, "vectors in a table")?;
        table.make_room(len)?;
        let mut slot = vec![0; stride + 1];
        for _ in 0..len {
            take_words(from, &mut slot)?;
            if slot[0] as usize >= len || !table.put_back(&slot) {
                return Err(Unloaded::damaged("a table of vectors has one twice"));
            }
        }
        *table.count.next.get_mut() = len as u32;
        Ok(table)
    }

    /// Makes sure that `count` more vectors fit, if need be as tightly as they can.
    pub fn make_room(&mut self, count: usize) -> Result<(), Full> {
        self.reserve(count).or_else(|Full| {
            self.grow(((self.len() + count) * 100).div_ceil(TIGHT_LOAD_PERCENT) + 1)?;
            self.room = self.slots * TIGHT_LOAD_PERCENT / 100;
            Ok(())
        })
    }

    /// Puts a number and its vector into a free slot; false if the vector is there already.
    fn put_back(&mut self, slot: &[u32]) -> bool {
        let step = self.stride + 1;
        let mut at = self.home(hash::words(&slot[1..])) * step;
        let words = self.region.words_mut();
        while at + step <= words.len() && words[at] != 0 && words[at + 1..at + step] != slot[1..] {
            at += step;
        }
        let free = at + step <= words.len() && words[at] == 0;
        if free {
            words[at] = slot[0] + 1;
            words[at + 1..at + step].copy_from_slice(&slot[1..]);
        }
        free
    }

    /// How full a table for this many vectors may be.
    fn load_percent(&self, vectors: usize) -> usize {
        let is_small = vectors * (self.stride + 1) * 4 < self.fill.few_bytes;
        if is_small { self.fill.few_load_percent } else { self.fill.load_percent }
    }

    /// Bytes for so many vectors, in the mean over all times between two growths.
    pub fn bytes_for(&self, vectors: f64) -> f64 {
        let growth = self.fill.growth_percent as f64 / 100.0;
        let load = self.load_percent(vectors as usize) as f64 / 100.0;
        vectors * ((self.stride + 1) * 4) as f64 / load * (growth - 1.0) / growth.ln()
    }

    /// Makes the table at least `slots` large.
    fn grow(&mut self, slots: usize) -> Result<(), Full> {
        let old_end = self.enlarge(slots)?;
        self.spread(old_end, |_, _| true);
        Ok(())
    }

    /// The same, but everything is where it was, before the returned word: it must be spread.
    fn enlarge(&mut self, slots: usize) -> Result<usize, Full> {
        let step = self.stride + 1;
        let (old_words, old_marks) = (self.region.bytes() / 4, self.mark_words());
        let marks = if self.marked { living::mark_words(slots) } else { 0 };
        if slots >= BUSY as usize - 1 || !self.region.grow(((slots + SLACK) * step + marks) * 4) {
            return Err(Full);
        }
        let old_end = self.end;
        // Growth is by whole pages: use all of it.
        self.slots = self.most_slots().max(self.slots);
        self.end = (self.slots + SLACK) * step;
        self.room = self.slots * self.load_percent(self.slots) / 100;
        self.move_marks(old_words - old_marks..old_words);
        Ok(old_end)
    }

    /// Slots for which there is memory.
    fn most_slots(&self) -> usize {
        let (words, step) = (self.region.bytes() / 4, self.stride + 1);
        if self.marked { living::most_slots(words, step) } else { words / step - SLACK }
    }

    /// Moves every vector that is kept to its new place, cluster by cluster from the top end downwards. Which are kept is asked with
    /// the words behind the slots and the number.
    fn spread(&mut self, old_end: usize, keep: impl Fn(&[u32], u32) -> bool) {
        let (step, slots, told_bits) = (self.stride + 1, self.slots, self.told_bits);
        let (words, behind) = self.region.words_mut().split_at_mut(self.end);
        let mut cluster = Vec::new();
        let mut end = old_end;
        while end > 0 {
            let mut start = end;
            while start > 0 && words[start - step] != 0 {
                start -= step;
            }
            cluster.extend_from_slice(&words[start..end]);
            words[start..end].fill(0);
            for slot in cluster.chunks_exact(step).filter(|slot| keep(behind, slot[0] - 1)) {
                let mut place = hash::scale(hash::words(&slot[1..]) << told_bits, slots) * step;
                while words[place] != 0 {
                    place += step;
                }
                words[place..][..step].copy_from_slice(slot);
            }
            cluster.clear();
            end = start.saturating_sub(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use plimsoll_ir::random::Draw;
    use std::collections::HashMap;

    fn put(table: &Intern, vector: &[u32]) -> Result<(u32, bool), Full> {
        table.intern(vector, hash::words(vector))
    }

    #[test]
    fn agrees_with_a_hash_map_through_many_growths() {
        for stride in [1, 2, 3, 5, 9] {
            let mut table = Intern::new(stride, Grant::unlimited()).unwrap();
            let mut twin = HashMap::new();
            let mut draw = Draw::new(0);
            for _ in 0..60_000 {
                let mut vector = vec![0; stride];
                vector[stride - 1] = draw.below(30_000) as u32;
                table.reserve(1).unwrap();
                let next = twin.len() as u32;
                let number = *twin.entry(vector.clone()).or_insert(next);
                assert_eq!(table.find(&vector, hash::words(&vector)), (number != next).then_some(number));
                assert_eq!(put(&table, &vector), Ok((number, number == next)));
            }
            assert_eq!(table.iter().count(), twin.len());
            for (number, vector) in table.iter() {
                let vector: Vec<u32> = vector.iter().map(|word| word.load(Ordering::Relaxed)).collect();
                assert_eq!(twin[&vector], number);
            }
        }
    }

    #[test]
    fn a_small_grant_fills_up_without_losing_vectors() {
        let budget = Budget::new(200 << 10);
        let mut table = Intern::new(3, budget.grant("t", 200 << 10)).unwrap();
        let mut count = 0;
        while table.reserve(1).is_ok() {
            assert_eq!(put(&table, &[count, 1, 2]), Ok((count, true)));
            count += 1;
        }
        assert!(count > 8_000, "only {count} vectors in 200 KiB");
        assert!((0..count).all(|value| put(&table, &[value, 1, 2]) == Ok((value, false))));
    }

    #[test]
    fn concurrent_interning_gives_one_number_per_vector() {
        let mut table = Intern::new(2, Grant::unlimited()).unwrap();
        table.reserve(50_000).unwrap();
        let table = &table;
        let all: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let number = move |v| put(table, &[v, v]).unwrap().0;
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(move || (0..10_000).map(number).collect())).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        assert!(all.iter().all(|numbers| numbers == &all[0]));
        assert_eq!(table.len(), 10_000);
    }
}
