//! Vectors that nobody needs any more are given up, and their numbers are given out again. **Those of others stay what they are.**
//!
//! Behind the slots of such a table, in the same memory, there is a mark for every number: so that it can be tidied when there is no
//! memory left. Who tidies up takes back all marks, marks what is needed, and lets go of the rest. From then on the marks tell
//! which numbers are taken: new vectors get the others, from zero upwards. As there are no more numbers in use than there were vectors at some
//! time, each is below the number of slots.

use super::slots::Numbers;
use super::{Intern, SLACK};
use crate::budget::Full;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Words of marks for so many slots.
pub(super) fn mark_words(slots: usize) -> usize {
    slots.div_ceil(u32::BITS as usize)
}

/// Slots with their marks in so many words.
pub(super) fn most_slots(words: usize, step: usize) -> usize {
    // One word is for what rounding loses.
    (words - SLACK * step - 1) * u32::BITS as usize / (step * u32::BITS as usize + 1)
}

impl Numbers for Intern {
    fn take(&self) -> u32 {
        let count = &self.count;
        if !self.marked {
            return count.next.fetch_add(1, Ordering::Relaxed);
        }
        count.held.fetch_add(1, Ordering::Relaxed);
        loop {
            let number = count.next.fetch_add(1, Ordering::Relaxed);
            if !self.is_marked(number) {
                return number;
            }
        }
    }
}

impl Intern {
    /// Makes room for marks, so that vectors can be given up.
    pub fn keep_marks(&mut self) -> Result<(), Full> {
        if self.marked {
            return Ok(());
        }
        let bytes = (self.end + mark_words(self.slots)) * 4;
        if !self.region.grow(bytes) {
            return Err(Full);
        }
        self.marked = true;
        let next = *self.count.next.get_mut();
        *self.count.held.get_mut() = next;
        Ok(())
    }

    pub(super) fn mark_words(&self) -> usize {
        if self.marked { mark_words(self.slots) } else { 0 }
    }

    fn marks(&self) -> &[AtomicU32] {
        let words = self.region.words();
        &words[words.len() - self.mark_words()..]
    }

    fn marks_mut(&mut self) -> &mut [u32] {
        let marks = self.mark_words();
        let words = self.region.words_mut();
        let first = words.len() - marks;
        &mut words[first..]
    }

    fn is_marked(&self, number: u32) -> bool {
        self.marks()[number as usize / 32].load(Ordering::Relaxed) >> (number % 32) & 1 == 1
    }

    /// Takes the marks, which were at `old`, to the end of the memory that there is now.
    pub(super) fn move_marks(&mut self, old: Range<usize>) {
        let marks = self.mark_words();
        let words = self.region.words_mut();
        let first = words.len() - marks;
        words.copy_within(old.clone(), first);
        words[old.start.min(first)..first].fill(0);
        words[first + old.len()..].fill(0);
    }

    /// Takes back all marks.
    pub fn unmark_all(&mut self) {
        self.marks_mut().fill(0);
    }

    /// The vector with this number is needed.
    #[inline]
    pub fn mark(&mut self, number: u32) {
        self.marks_mut()[number as usize / 32] |= 1 << (number % 32);
    }

    /// Visits all vectors that are needed.
    pub fn visit_marked(&self, mut visit: impl FnMut(&[AtomicU32])) {
        self.iter().filter(|(number, _)| self.is_marked(*number)).for_each(|(_, vector)| visit(vector));
    }

    /// Gives up all vectors that are not needed, and says how many.
    pub fn keep_marked(&mut self) -> usize {
        let before = self.len();
        let first = self.region.words().len() - self.mark_words() - self.end;
        let is_marked = |marks: &[u32], number: u32| marks[number as usize / 32] >> (number % 32) & 1 == 1;
        self.spread(self.end, |behind, number| is_marked(&behind[first..], number));
        let (mut held, mut survived) = (0, 0);
        for (word, &marks) in self.marks_mut().iter().enumerate() {
            held += marks.count_ones();
            if marks != 0 {
                survived = word as u32 * u32::BITS + u32::BITS - marks.leading_zeros();
            }
        }
        (*self.count.held.get_mut(), self.count.survived, *self.count.next.get_mut()) = (held, survived, 0);
        before - held as usize
    }

    /// Clears the words behind the slots.
    pub(super) fn clear_behind(&mut self) {
        let end = self.end;
        self.region.words_mut()[end..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Grant};
    use crate::hash;
    use plimsoll_ir::random::Draw;
    use std::collections::{BTreeMap, BTreeSet};

    fn put(table: &Intern, vector: &[u32]) -> (u32, bool) {
        table.intern(vector, hash::words(vector)).unwrap()
    }

    /// Vectors come, some are given up, and others come: each keeps its number as long as it lives, no two have the same, and there
    /// are no more numbers than there were vectors at a time.
    #[test]
    fn the_living_keep_their_numbers_through_collections_and_growth() {
        for (stride, late) in [(1, false), (2, false), (2, true), (3, false), (5, true), (9, false)] {
            let mut draw = Draw::new(stride as u64);
            let mut table = Intern::new(stride, Grant::unlimited()).unwrap();
            if !late {
                table.keep_marks().unwrap();
            }
            let (mut twin, mut most): (BTreeMap<Vec<u32>, u32>, usize) = (BTreeMap::new(), 0);
            for round in 0..12 {
                for _ in 0..draw.below(6_000) {
                    let mut vector = vec![7; stride];
                    vector[stride - 1] = draw.below(20_000) as u32;
                    table.reserve(1).unwrap();
                    let (number, new) = put(&table, &vector);
                    assert_eq!(new, !twin.contains_key(&vector));
                    assert_eq!(*twin.entry(vector).or_insert(number), number);
                }
                most = most.max(twin.len());
                let numbers: BTreeSet<u32> = twin.values().copied().collect();
                assert_eq!((numbers.len(), table.len(), table.iter().count()), (twin.len(), twin.len(), twin.len()));
                assert!(numbers.iter().all(|&number| (number as usize) < table.bound()) && table.bound() <= most);
                if round == 3 {
                    table.keep_marks().unwrap();
                }
                if table.marked {
                    table.unmark_all();
                    let share = draw.below(5);
                    twin.retain(|_, number| {
                        let lives = draw.below(4) < share;
                        if lives {
                            table.mark(*number);
                        }
                        lives
                    });
                    let mut seen = BTreeSet::new();
                    table.visit_marked(|vector| {
                        seen.insert(vector.iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>());
                    });
                    assert!(seen.iter().eq(twin.keys()));
                    let before = table.len();
                    assert_eq!(before - table.keep_marked(), twin.len());
                }
                for (vector, number) in &twin {
                    assert_eq!(table.find(vector, hash::words(vector)), Some(*number), "stride {stride}");
                }
            }
        }
    }

    /// A grant that is full has room again after a collection, as often as one likes.
    #[test]
    fn a_full_table_goes_on_without_more_memory() {
        let budget = Budget::new(100 << 10);
        let mut table = Intern::new(2, budget.grant("t", 100 << 10)).unwrap();
        table.keep_marks().unwrap();
        let (mut next, mut collections) = (0u32, 0);
        while collections < 20 {
            while table.reserve(1).is_ok() {
                assert!(put(&table, &[next, 1]).1);
                next += 1;
            }
            let living = next - 500..next;
            let numbers: Vec<u32> = living.clone().map(|value| put(&table, &[value, 1]).0).collect();
            table.unmark_all();
            numbers.iter().for_each(|&number| table.mark(number));
            assert!(table.keep_marked() > 3_000 && table.len() == 500);
            assert!(living.map(|value| put(&table, &[value, 1])).eq(numbers.into_iter().map(|number| (number, false))));
            collections += 1;
        }
        assert!(budget.used_bytes() <= 100 << 10 && table.bound() <= 100 << 10);
    }

    #[test]
    fn several_workers_share_the_numbers_that_are_left() {
        let mut table = Intern::new(1, Grant::unlimited()).unwrap();
        table.keep_marks().unwrap();
        table.reserve(40_000).unwrap();
        (0..10_000).for_each(|value| assert_eq!(put(&table, &[value]), (value, true)));
        table.unmark_all();
        (0..10_000).step_by(3).for_each(|number| table.mark(number));
        table.keep_marked();
        let shared = &table;
        let all: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let work = |worker: u32| move || (0..8_000).map(|v| put(shared, &[v + worker * 1000]).0).collect();
            let workers: Vec<_> = (0..4).map(|worker| scope.spawn(work(worker))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        for (worker, numbers) in all.iter().enumerate() {
            for (value, number) in (worker as u32 * 1000..).zip(numbers) {
                assert_eq!(table.find(&[value], hash::words(&[value])), Some(*number));
                assert!(value % 3 != 0 || value >= 10_000 || *number == value);
            }
        }
        assert_eq!(table.iter().map(|(number, _)| number).collect::<BTreeSet<_>>().len(), 11_000);
        assert_eq!((table.len(), table.bound()), (11_000, 11_000));
    }
}
