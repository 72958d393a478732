//! The entries of a cache: keys with what is known about them, and an index by hash.
//!
//! Slots never move, so a slot's number names its entry as long as it lives. The index chains slots through
//! their first word, so that deleting takes constant time. The arrays grow in steps up to a limit; when the
//! grant refuses to grow, what there is becomes the limit.

use crate::budget::Grant;
use crate::hash;
use crate::region::{Region, prefetch};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
const FIRST_SLOTS: usize = 64;

/// Words of a slot before its key.
const NEXT: usize = 0;
const PLACE: usize = 1;
const COST: usize = 2;
const PINS: usize = 4;
const PARENT: usize = 5;
const DEPTH: usize = 6;
const COUNTS: usize = 7;
const TRAITS: usize = 8;
pub(super) const HEADER: usize = 9;

/// Keys of one length with headers.
#[derive(Debug)]
pub(super) struct Slots {
    stride: usize,
    table: Region,
    index: Region,
    /// Slots that exist, and as many chains.
    count: usize,
    live: usize,
    /// First free slot plus one; free slots are chained like others.
    free: u32,
    limit: usize,
}

impl Slots {
    pub fn new(key_words: usize, limit: usize, grant: &Grant) -> Slots {
        let (table, index) = (Region::new(grant.clone()), Region::new(grant.clone()));
        let limit = limit.min(NONE as usize - 1);
        Slots { stride: HEADER + key_words, table, index, count: 0, live: 0, free: 0, limit }
    }

    pub fn key_words(&self) -> usize {
        self.stride - HEADER
    }

    pub fn live(&self) -> usize {
        self.live
    }

    /// Slots that exist or may come to exist.
    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.index.bytes()
    }

    /// Is there no free slot?
    pub fn is_full(&self) -> bool {
        self.live == self.count
    }

    /// How many slots there should be next, if more are allowed.
    pub fn next_count(&self) -> Option<usize> {
        (self.count < self.limit).then(|| (self.count * 2).max(FIRST_SLOTS).min(self.limit))
    }

    /// No growth beyond what exists.
    pub fn settle(&mut self) {
        self.limit = self.count;
    }

    /// Makes `count` slots, all of the old ones being live.
    #[must_use]
    pub fn grow(&mut self, count: usize) -> bool {
        assert!(self.is_full() && self.free == 0);
        if !self.table.grow(count * self.stride * 4) || !self.index.grow(count * 4) {
            return false;
        }
        self.index.words_mut().fill(0);
        let old = std::mem::replace(&mut self.count, count);
        for slot in 0..old as u32 {
            let hash = hash::words(self.key(slot));
            self.link(slot, hash);
        }
        for slot in (old..count).rev() {
            self.set(slot as u32, NEXT, self.free);
            self.set(slot as u32, PINS, NONE);
            self.free = slot as u32 + 1;
        }
        true
    }

    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if self.count > 0 {
            prefetch(&self.index.words()[hash::scale(hash, self.count)]);
        }
    }

    /// The slot that holds `key`.
    #[inline]
    pub fn find(&mut self, key: &[u32], hash: u64) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let (table, stride) = (self.table.words_mut(), self.stride);
        let mut next = self.index.words_mut()[hash::scale(hash, self.count)];
        while next != 0 {
            let slot = &table[(next - 1) as usize * stride..][..stride];
            if slot[HEADER..] == *key {
                return Some(next - 1);
            }
            next = slot[NEXT];
        }
        None
    }

    /// Takes a free slot for `key`; its header is zero but for the place in a heap and the parent, which are none.
    #[inline]
    pub fn add(&mut self, key: &[u32], hash: u64) -> u32 {
        assert!(self.free != 0);
        let slot = self.free - 1;
        let words = self.slot(slot);
        let next_free = words[NEXT];
        words[..HEADER].fill(0);
        (words[PLACE], words[PARENT]) = (NONE, NONE);
        words[HEADER..].copy_from_slice(key);
        self.free = next_free;
        self.live += 1;
        self.link(slot, hash);
        slot
    }

    pub fn remove(&mut self, slot: u32) {
        let hash = hash::words(self.key(slot));
        let chain = hash::scale(hash, self.count);
        let after = self.get(slot, NEXT);
        let mut before = self.index.words_mut()[chain];
        if before == slot + 1 {
            self.index.words_mut()[chain] = after;
        } else {
            while self.get(before - 1, NEXT) != slot + 1 {
                before = self.get(before - 1, NEXT);
            }
            self.set(before - 1, NEXT, after);
        }
        self.set(slot, NEXT, self.free);
        self.set(slot, PINS, NONE);
        self.free = slot + 1;
        self.live -= 1;
    }

    fn link(&mut self, slot: u32, hash: u64) {
        let chain = hash::scale(hash, self.count);
        let head = std::mem::replace(&mut self.index.words_mut()[chain], slot + 1);
        self.set(slot, NEXT, head);
    }

    #[inline]
    fn slot(&mut self, slot: u32) -> &mut [u32] {
        let stride = self.stride;
        &mut self.table.words_mut()[slot as usize * stride..][..stride]
    }

    #[inline]
    fn get(&mut self, slot: u32, word: usize) -> u32 {
        self.slot(slot)[word]
    }

    #[inline]
    fn set(&mut self, slot: u32, word: usize, value: u32) {
        self.slot(slot)[word] = value;
    }

    pub fn key(&mut self, slot: u32) -> &[u32] {
        &self.slot(slot)[HEADER..]
    }

    #[inline]
    pub fn cost(&mut self, slot: u32) -> u64 {
        let words = self.slot(slot);
        words[COST] as u64 | (words[COST + 1] as u64) << 32
    }

    #[inline]
    pub fn set_cost(&mut self, slot: u32, cost: u64) {
        let words = self.slot(slot);
        (words[COST], words[COST + 1]) = (cost as u32, (cost >> 32) as u32);
    }

    /// Where the slot is in the heap of its tier.
    #[inline]
    pub fn place(&mut self, slot: u32) -> u32 {
        self.get(slot, PLACE)
    }

    #[inline]
    pub fn set_place(&mut self, slot: u32, place: u32) {
        self.set(slot, PLACE, place);
    }

    /// For how many reasons the entry must stay; `NONE` if the slot is free.
    #[inline]
    pub fn pins(&mut self, slot: u32) -> u32 {
        self.get(slot, PINS)
    }

    pub fn set_pins(&mut self, slot: u32, pins: u32) {
        self.set(slot, PINS, pins);
    }

    pub fn parent(&mut self, slot: u32) -> u32 {
        self.get(slot, PARENT)
    }

    pub fn set_parent(&mut self, slot: u32, parent: u32) {
        self.set(slot, PARENT, parent);
    }

    pub fn depth(&mut self, slot: u32) -> u32 {
        self.get(slot, DEPTH)
    }

    pub fn set_depth(&mut self, slot: u32, depth: u32) {
        self.set(slot, DEPTH, depth);
    }

    /// Visits and successors, each at most 2^16 - 1.
    #[inline]
    pub fn counts(&mut self, slot: u32) -> (u32, u32) {
        let word = self.get(slot, COUNTS);
        (word & 0xFFFF, word >> 16)
    }

    #[inline]
    pub fn set_counts(&mut self, slot: u32, visits: u32, degree: u32) {
        self.set(slot, COUNTS, visits.min(0xFFFF) | degree.min(0xFFFF) << 16);
    }

    /// The kind of the entry and the tier it is in.
    #[inline]
    pub fn traits(&mut self, slot: u32) -> (u32, usize) {
        let word = self.get(slot, TRAITS);
        (word & 0xFF, (word >> 8) as usize)
    }

    #[inline]
    pub fn set_traits(&mut self, slot: u32, kind: u32, tier: usize) {
        self.set(slot, TRAITS, kind & 0xFF | (tier as u32) << 8);
    }
}
