//! States that wait, the cheapest first: a binary heap of numbers over slots, all within one grant.

use crate::budget::{Full, Grant};
use crate::region::Region;

const GROWTH_PERCENT: usize = 150;
const FIRST_BYTES: usize = 64 << 10;
/// The end of the list of free slots.
const NONE: u32 = u32::MAX;

/// Items of fixed width, each with a cost.
#[derive(Debug)]
pub struct Pile {
    width: usize,
    /// Pairs of a cost and the slot of an item.
    heap: Region,
    len: usize,
    slots: Region,
    used_slots: usize,
    /// The first free slot; its first word names the next.
    free: u32,
}

impl Pile {
    pub fn new(width: usize, grant: Grant) -> Pile {
        assert!(width > 0, "a free slot names the next");
        let (heap, slots) = (Region::new(grant.clone()), Region::new(grant));
        Pile { width, heap, len: 0, slots, used_slots: 0, free: NONE }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all items, but keeps their memory for others.
    pub fn clear(&mut self) {
        (self.len, self.used_slots, self.free) = (0, 0, NONE);
    }

    pub fn push(&mut self, cost: u64, item: &[u32]) -> Result<(), Full> {
        make_room(&mut self.heap, (self.len + 1) * 16)?;
        let slot = self.take_slot()?;
        self.slots.words_mut()[slot as usize * self.width..][..self.width].copy_from_slice(item);
        let heap = self.heap.pairs_mut();
        let mut place = self.len;
        while place > 0 && heap[(place - 1) / 2 * 2] > cost {
            let above = (place - 1) / 2;
            (heap[place * 2], heap[place * 2 + 1]) = (heap[above * 2], heap[above * 2 + 1]);
            place = above;
        }
        (heap[place * 2], heap[place * 2 + 1]) = (cost, slot as u64);
        self.len += 1;
        Ok(())
    }

    /// Takes a cheapest item and returns its cost.
    pub fn pop(&mut self, out: &mut [u32]) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let heap = self.heap.pairs_mut();
        let (cost, slot) = (heap[0], heap[1] as u32);
        self.len -= 1;
        let last = (heap[self.len * 2], heap[self.len * 2 + 1]);
        let mut place = 0;
        loop {
            let mut below = place * 2 + 1;
            if below + 1 < self.len && heap[below * 2 + 2] < heap[below * 2] {
                below += 1;
            }
            if below >= self.len || heap[below * 2] >= last.0 {
                break;
            }
            (heap[place * 2], heap[place * 2 + 1]) = (heap[below * 2], heap[below * 2 + 1]);
            place = below;
        }
        (heap[place * 2], heap[place * 2 + 1]) = last;
        let item = &mut self.slots.words_mut()[slot as usize * self.width..][..self.width];
        out.copy_from_slice(item);
        item[0] = self.free;
        self.free = slot;
        Some(cost)
    }

    fn take_slot(&mut self) -> Result<u32, Full> {
        if self.free != NONE {
            let slot = self.free;
            self.free = self.slots.words_mut()[slot as usize * self.width];
            return Ok(slot);
        }
        make_room(&mut self.slots, (self.used_slots + 1) * self.width * 4)?;
        self.used_slots += 1;
        u32::try_from(self.used_slots - 1).ok().filter(|&slot| slot != NONE).ok_or(Full)
    }
}

/// Lets a region grow to so many bytes, and if it can a little more.
pub fn make_room(region: &mut Region, bytes: usize) -> Result<(), Full> {
    if bytes <= region.bytes() {
        return Ok(());
    }
    let comfortable = bytes.max(region.bytes() * GROWTH_PERCENT / 100).max(FIRST_BYTES);
    if region.grow(comfortable) || region.grow(bytes) { Ok(()) } else { Err(Full) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use plimsoll_ir::random::Draw;
    use std::collections::BinaryHeap;

    #[test]
    fn a_pile_is_a_heap() {
        let (mut pile, mut twin, mut draw) = (Pile::new(2, Grant::unlimited()), BinaryHeap::new(), Draw::new(0));
        let mut item = [0; 2];
        for step in 0..40_000u64 {
            if draw.below(5) < if step < 20_000 { 3 } else { 2 } {
                // Costs differ, so that the order is certain.
                let cost = draw.below(1 << 20) << 20 | step;
                pile.push(cost, &[step as u32, 7]).unwrap();
                twin.push(std::cmp::Reverse((cost, step as u32)));
            } else {
                let expected = twin.pop().map(|std::cmp::Reverse((cost, step))| (cost, [step, 7]));
                assert_eq!(pile.pop(&mut item).map(|cost| (cost, item)), expected);
            }
            assert_eq!(pile.len(), twin.len());
        }
        pile.clear();
        assert!(pile.is_empty() && pile.pop(&mut item).is_none());
    }

    #[test]
    fn a_full_pile_says_so() {
        let budget = Budget::new(1 << 20);
        let mut pile = Pile::new(4, budget.grant("pile", 1 << 20));
        let pushed = (0..).take_while(|&cost| pile.push(cost, &[0; 4]).is_ok()).count();
        assert!(pushed > 10_000 && budget.used_bytes() <= 1 << 20, "{pushed}");
        assert_eq!(pile.len(), pushed);
    }
}
