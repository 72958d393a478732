//! Keys that need not be written when their table leaves memory: each has a mark, one bit for each place at the end of a line. A run that is
//! kept for ever has answered for such a key and will, or it has come into a younger table, which leaves later. Where levels are given up
//! a run may go before a table that came after it, so there are no marks.
//!
//! A mark may be lost at any time, and then a key is written twice. But a key that is marked and nowhere else would be forgotten: so an
//! empty place has no mark, and keys that move leave theirs behind.

use super::geometry::Geometry;
use super::{Packed, by_length};
use crate::arena::Line;

impl Geometry {
    /// The same with marks; of lines without keys.
    pub fn with_marks(&self) -> Geometry {
        Geometry::laid_out(self.key_bits(), self.skip as u32, self.lines(), [0, 1])
    }

    pub fn has_marks(&self) -> bool {
        self.mark_bits > 0
    }

    /// The byte from the end that has the mark of a place, and where in it.
    #[inline(always)]
    fn mark_of(line: &mut Line, place: u32) -> (&mut u8, u8) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(line);
        let byte = bytes.len() - 1 - place as usize / 8;
        (&mut bytes[byte], 0x80 >> (place % 8))
    }

    #[inline(always)]
    pub fn mark(&self, line: &mut Line, place: u32) {
        let (byte, bit) = Geometry::mark_of(line, place);
        *byte |= bit;
    }

    #[inline(always)]
    pub fn unmark(&self, line: &mut Line, place: u32) {
        let (byte, bit) = Geometry::mark_of(line, place);
        *byte &= !bit;
    }

    #[inline(always)]
    pub fn is_marked(&self, line: &Line, place: u32) -> bool {
        let bytes: &[u8] = bytemuck::cast_slice(line);
        self.mark_bits > 0 && bytes[bytes.len() - 1 - place as usize / 8] & 0x80 >> (place % 8) != 0
    }
}

impl Packed {
    /// The same with marks, while it has no keys.
    pub(crate) fn with_marks(mut self) -> Packed {
        assert!(self.is_empty());
        self.parts.iter_mut().for_each(|part| part.geometry = part.geometry.with_marks());
        self
    }

    /// Takes note that a key, if it is here, is on disk too.
    pub(crate) fn mark(&mut self, key: u128) {
        if !self.is_too_long(key) {
            let part = self.part_of((key >> 64) as u64);
            by_length!(self, LONG => self.parts[part].mark::<LONG>(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::budget::Grant;
    use crate::packed::Run;
    use crate::packed::part::Part;
    use plimsoll_ir::random::Draw;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicU8;

    /// Where lines are full keys make way for others, which have no marks.
    #[test]
    fn what_takes_the_place_of_a_key_has_not_its_mark() {
        let (mut draw, arena) = (Draw::new(0), Arena::new(Grant::unlimited()));
        let mut part = Part::new(44, 0, 512, &arena).unwrap();
        part.geometry = part.geometry.with_marks();
        let (mut unmarked, mut marked) = (BTreeSet::new(), 0);
        while part.len * 100 < part.places() * 99 {
            let key = (draw.bits() as u128) << 84 >> 84 << 84;
            if part.insert_key::<false>(key) && draw.below(2) == 0 {
                part.mark::<false>(key);
                marked += 1;
            } else {
                unmarked.insert(key);
            }
        }
        let mut streamed = BTreeSet::new();
        part.stream::<false>(usize::MAX, &mut |key| assert!(streamed.insert(key)));
        assert!(streamed.is_superset(&unmarked));
        assert!(streamed.len() < unmarked.len() + marked / 2, "hardly any mark is left");
    }

    /// Whatever happens to a table, what was not marked is streamed.
    #[test]
    fn what_has_no_mark_is_never_left_out() {
        let mut draw = Draw::new(0);
        for (key_bits, common_bits) in [(24, 0), (40, 2), (64, 0), (90, 3), (128, 1)] {
            let arena = Arena::new(Grant::unlimited());
            let mut table = Packed::new(key_bits, common_bits, &arena).unwrap().with_marks();
            let (mut unmarked, mut marked) = (BTreeSet::new(), BTreeSet::new());
            for round in 0..60 {
                let mut key = || {
                    let key = (draw.bits() as u128) << 64 | draw.bits() as u128;
                    key >> (128 - key_bits) << (128 - key_bits) << common_bits >> common_bits
                };
                let mut keys: Vec<u128> = (0..700).map(|_| key()).collect();
                keys.sort_unstable();
                keys.dedup();
                let high: Vec<u64> = keys.iter().map(|key| (key >> 64) as u64).collect();
                let low: Vec<u64> = keys.iter().map(|&key| key as u64).collect();
                let run = Run { high: &high, low: if key_bits > 64 { &low } else { &[] } };
                let fresh: Vec<AtomicU8> = keys.iter().map(|_| AtomicU8::new(0)).collect();
                // A table without room to grow becomes as full as it can be, and keys make way for others.
                table.reserve(keys.len(), key_bits).unwrap();
                table.insert_all(run, &fresh);
                unmarked.extend(keys.iter().copied().filter(|key| !marked.contains(key)));
                for key in keys.into_iter().step_by(1 + round % 3) {
                    table.mark(key);
                    unmarked.remove(&key);
                    marked.insert(key);
                }
                // Those that are not there are looked for in vain.
                (0..20).map(|_| key()).filter(|key| !unmarked.contains(key)).for_each(|key| table.mark(key));
            }
            let mut streamed = BTreeSet::new();
            table.stream(|key| assert!(streamed.insert(key)));
            assert!(streamed.is_superset(&unmarked), "{key_bits} bits");
            assert!(streamed.iter().all(|key| unmarked.contains(key) || marked.contains(key)));
            // Nor are all marks lost.
            let last = streamed.len() - unmarked.len();
            assert!(last < marked.len(), "{key_bits} bits: {last} of {}", marked.len());
            let mut visited = 0;
            table.visit(|_| visited += 1);
            assert_eq!(visited, table.len());
        }
    }
}
