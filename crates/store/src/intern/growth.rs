//! Growth of a table by several workers at once.
//!
//! A table grows in place, and new homes are never below old ones. What lies behind a certain slot has its new home behind
//! the end of all that was not moved yet, so whoever moves it meets nobody who is still to be moved: it is cut into pieces for
//! all workers, who claim slots as they do when they intern. Then comes what lies before, and so on, in rounds, each of which
//! takes the same part of what is left. Pieces begin where clusters do: then no vector lies before its home.

use super::slots::Word;
use super::{FIRST_SLOTS, Intern};
use crate::hash;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Slots of a piece at least, and pieces of a round at most.
const LEAST_SLOTS: usize = if cfg!(test) { 16 } else { 2048 };
const MOST_PIECES: usize = 64;
/// Tables of fewer slots are not worth calling others.
const FEW_SLOTS: usize = if cfg!(test) { 2 * FIRST_SLOTS } else { 64 << 10 };

/// A growth that is under way.
#[derive(Debug)]
pub struct Growth {
    /// Slots before it grew.
    before: usize,
    /// Slots from here on are as they should be.
    end: usize,
    /// What is moved in this round.
    pieces: Vec<Range<usize>>,
}

impl Intern {
    /// Begins to let a large table grow, if it has no room for `count` more vectors. Until it has grown nobody may look at it.
    pub fn begin_growth(&mut self, count: usize) -> Option<Growth> {
        if self.slots < FEW_SLOTS || self.has_room(count) {
            return None;
        }
        let before = self.slots;
        let slots = self.comfortable(count);
        let end = self.enlarge(slots).ok()?;
        Some(Growth { before, end: end / (self.stride + 1), pieces: Vec::new() })
    }

    /// Cuts what can be moved next into pieces, and says how many; none when the table has grown.
    pub fn next_round(&mut self, growth: &mut Growth) -> usize {
        let step = self.stride + 1;
        let least = (growth.end as u128 * growth.before as u128).div_ceil(self.slots as u128) as usize;
        growth.pieces.clear();
        let words = self.region.words_mut();
        let cluster = |slot: usize| (slot..growth.end).find(|slot| words[(slot - 1) * step] == 0).unwrap_or(growth.end);
        let first = cluster(least.max(1));
        let each = (growth.end - first).div_ceil(MOST_PIECES).max(LEAST_SLOTS);
        let mut begin = first;
        while begin < growth.end {
            let end = cluster((begin + each).min(growth.end));
            growth.pieces.push(begin..end);
            begin = end;
        }
        if growth.pieces.len() < 2 {
            self.spread(growth.end * step, |_, _| true);
            growth.pieces.clear();
        } else {
            growth.end = first;
        }
        growth.pieces.len()
    }

    /// Moves one of the pieces.
    pub fn move_piece(&self, growth: &Growth, piece: usize) {
        let (step, words) = (self.stride + 1, &self.region.words()[..self.end]);
        let mut vector = vec![0; self.stride];
        for slot in words[growth.pieces[piece].start * step..growth.pieces[piece].end * step].chunks_exact(step) {
            let header = slot[0].load(Ordering::Relaxed);
            if header == 0 {
                continue;
            }
            slot[0].store(0, Ordering::Relaxed);
            for (word, held) in vector.iter_mut().zip(&slot[1..]) {
                *word = held.load(Ordering::Relaxed);
                held.store(0, Ordering::Relaxed);
            }
            let home = self.home(hash::words(&vector)) * step;
            let free = words[home..].chunks_exact(step).find(|place| place[0].claim().is_ok());
            let place = free.expect("a table is never full");
            place[1..].iter().zip(&vector).for_each(|(place, &word)| place.store(word, Ordering::Relaxed));
            place[0].store(header, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Grant;
    use plimsoll_ir::random::Draw;

    /// Vectors keep their numbers, whoever moves them; and a table that grew so is one that grew alone.
    #[test]
    fn nothing_is_lost_when_several_let_it_grow() {
        for (stride, workers) in [(1, 1), (2, 3), (3, 4), (7, 2)] {
            let mut draw = Draw::new(stride as u64);
            let mut table = Intern::new(stride, Grant::unlimited()).unwrap();
            let (mut known, mut rounds) = (Vec::new(), 0);
            while known.len() < 20_000 {
                table.reserve(1).unwrap();
                let vector: Vec<u32> = (0..stride).map(|_| draw.below(1 << 20) as u32).collect();
                let (number, new) = table.intern(&vector, hash::words(&vector)).unwrap();
                if new {
                    known.push((number, vector));
                }
                let Some(mut growth) = table.begin_growth(100) else { continue };
                while table.next_round(&mut growth) > 0 {
                    rounds += 1;
                    let (table, growth) = (&table, &growth);
                    std::thread::scope(|scope| {
                        for worker in 0..workers {
                            let pieces = (worker..growth.pieces.len()).step_by(workers);
                            scope.spawn(move || pieces.for_each(|piece| table.move_piece(growth, piece)));
                        }
                    });
                }
                assert!(table.has_room(100) && table.iter().count() == known.len());
                for (number, vector) in &known {
                    assert_eq!(table.find(vector, hash::words(vector)), Some(*number), "{stride} words");
                }
            }
            assert!(rounds > 20, "{rounds} rounds");
        }
    }
}
