//! The entries of one tier by cost, the lowest on top.
//!
//! Nothing is ordered before the first entry has to leave: a cache that never fills pays nothing. After that
//! a cost that rises changes only the entry; the heap notices when the entry comes to the top. A cost that
//! falls moves the entry at once. So a key in the heap is never above the entry's cost.

use super::slots::{NONE, Slots};
use crate::budget::Grant;
use crate::region::Region;

/// Words of an element: key (two words) and slot.
const ELEMENT: usize = 3;

#[derive(Debug)]
pub(super) struct Heap {
    elements: Region,
    len: usize,
    awake: bool,
}

impl Heap {
    pub const BYTES_PER_ENTRY: usize = ELEMENT * 4;

    pub fn new(grant: &Grant) -> Heap {
        Heap { elements: Region::new(grant.clone()), len: 0, awake: false }
    }

    /// Makes sure that `count` entries can be ordered.
    #[must_use]
    pub fn grow(&mut self, count: usize) -> bool {
        self.elements.grow(count * ELEMENT * 4)
    }

    pub fn bytes(&self) -> usize {
        self.elements.bytes()
    }

    pub fn is_awake(&self) -> bool {
        self.awake
    }

    /// Starts to keep order among `members`.
    pub fn wake(&mut self, slots: &mut Slots, members: impl Fn(&mut Slots, u32) -> bool) {
        self.awake = true;
        for slot in 0..slots.count() as u32 {
            if members(slots, slot) {
                self.push(slots, slot);
            }
        }
    }

    pub fn push(&mut self, slots: &mut Slots, slot: u32) {
        if self.awake {
            let cost = slots.cost(slot);
            self.len += 1;
            self.raise(slots, self.len - 1, cost, slot);
        }
    }

    /// Takes out an entry, wherever it is.
    pub fn remove(&mut self, slots: &mut Slots, slot: u32) {
        if !self.awake {
            return;
        }
        let place = slots.place(slot) as usize;
        slots.set_place(slot, NONE);
        self.len -= 1;
        if place < self.len {
            let (key, last) = self.element(self.len);
            if place > 0 && self.element((place - 1) / 2).0 > key {
                self.raise(slots, place, key, last);
            } else {
                self.sink(slots, place, key, last);
            }
        }
    }

    /// The cost of an entry has changed.
    pub fn update(&mut self, slots: &mut Slots, slot: u32) {
        if self.awake {
            let (place, cost) = (slots.place(slot) as usize, slots.cost(slot));
            if cost < self.element(place).0 {
                self.raise(slots, place, cost, slot);
            }
        }
    }

    /// Takes out the entry with the lowest cost.
    pub fn pop(&mut self, slots: &mut Slots) -> Option<u32> {
        assert!(self.awake);
        while self.len > 0 {
            let (key, slot) = self.element(0);
            let cost = slots.cost(slot);
            if cost == key {
                self.remove(slots, slot);
                return Some(slot);
            }
            self.sink(slots, 0, cost, slot);
        }
        None
    }

    /// Moves an element from `place` towards the top.
    fn raise(&mut self, slots: &mut Slots, mut place: usize, key: u64, slot: u32) {
        while place > 0 {
            let above = (place - 1) / 2;
            let (other, other_slot) = self.element(above);
            if other <= key {
                break;
            }
            self.put(slots, place, other, other_slot);
            place = above;
        }
        self.put(slots, place, key, slot);
    }

    /// Moves an element from `place` away from the top.
    fn sink(&mut self, slots: &mut Slots, mut place: usize, key: u64, slot: u32) {
        loop {
            let mut below = place * 2 + 1;
            if below >= self.len {
                break;
            }
            if below + 1 < self.len && self.element(below + 1).0 < self.element(below).0 {
                below += 1;
            }
            let (other, other_slot) = self.element(below);
            if key <= other {
                break;
            }
            self.put(slots, place, other, other_slot);
            place = below;
        }
        self.put(slots, place, key, slot);
    }

    fn element(&mut self, place: usize) -> (u64, u32) {
        let words = &self.elements.words_mut()[place * ELEMENT..][..ELEMENT];
        (words[0] as u64 | (words[1] as u64) << 32, words[2])
    }

    fn put(&mut self, slots: &mut Slots, place: usize, key: u64, slot: u32) {
        let words = &mut self.elements.words_mut()[place * ELEMENT..][..ELEMENT];
        (words[0], words[1], words[2]) = (key as u32, (key >> 32) as u32, slot);
        slots.set_place(slot, place as u32);
    }
}
