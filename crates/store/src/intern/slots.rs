//! How several workers fill the slots of one table at once.
//!
//! A slot's first word is the number plus one; zero is an empty slot, all ones a slot being written. Whoever changes zero to all
//! ones writes the slot and shows it by its number; readers of a slot being written wait for its writer. What is written stays.
//! The words are behind a trait so that tests can choose who is interrupted when.

use crate::budget::Full;
use std::sync::atomic::{AtomicU32, Ordering};

pub const BUSY: u32 = u32::MAX;

/// A word that several workers read and write.
pub trait Word {
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
    /// Changes zero to [`BUSY`], or says what is there instead.
    fn claim(&self) -> Result<u32, u32>;
    /// Adds one, and returns what was there before.
    fn count(&self) -> u32;
    /// Lets others go on.
    fn wait();
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }

    #[inline(always)]
    fn claim(&self) -> Result<u32, u32> {
        self.compare_exchange(0, BUSY, Ordering::Relaxed, Ordering::Acquire)
    }

    #[inline(always)]
    fn count(&self) -> u32 {
        self.fetch_add(1, Ordering::Relaxed)
    }

    #[inline(always)]
    fn wait() {
        std::hint::spin_loop();
    }
}

/// Where numbers come from: each is given out once.
pub trait Numbers {
    fn take(&self) -> u32;
}

impl<W: Word> Numbers for W {
    fn take(&self) -> u32 {
        self.count()
    }
}

/// The number of `vector`, and whether it is new. Slots lie end to end in `words`, the search begins at the one at `home`, and
/// what is new gets the next of the `numbers`.
#[inline(always)]
pub fn intern<W: Word>(words: &[W], home: usize, vector: &[u32], numbers: &impl Numbers) -> Result<(u32, bool), Full> {
    let step = vector.len() + 1;
    let mut at = home;
    // The usual case, without a loop: the vector is in its home slot.
    let slot = &words[at..at + step];
    let header = slot[0].load(Ordering::Acquire);
    if differs(&slot[1..], vector) == 0 && header != 0 && header != BUSY {
        return Ok((header - 1, false));
    }
    while at + step <= words.len() {
        let slot = &words[at..at + step];
        let mut header = slot[0].load(Ordering::Acquire);
        if header == 0 {
            match slot[0].claim() {
                Ok(_) => return Ok((write(slot, vector, numbers), true)),
                Err(other) => header = other,
            }
        }
        while header == BUSY {
            W::wait();
            header = slot[0].load(Ordering::Acquire);
        }
        if differs(&slot[1..], vector) == 0 {
            return Ok((header - 1, false));
        }
        at += step;
    }
    Err(Full)
}

/// Fills a slot that this worker has claimed; there is a number left, for tables leave some to spare.
#[cold]
fn write<W: Word>(slot: &[W], vector: &[u32], numbers: &impl Numbers) -> u32 {
    let number = numbers.take();
    slot[1..].iter().zip(vector).for_each(|(place, &word)| place.store(word, Ordering::Relaxed));
    slot[0].store(number + 1, Ordering::Release);
    number
}

/// Zero exactly if the held vector equals the other.
#[inline(always)]
pub fn differs<W: Word>(held: &[W], vector: &[u32]) -> u32 {
    held.iter().zip(vector).fold(0, |difference, (held, word)| difference | (held.load(Ordering::Relaxed) ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shuttle::sync::Arc;
    use shuttle::sync::atomic::AtomicU32 as Chosen;
    use shuttle::thread;
    use std::collections::BTreeMap;

    impl Word for Chosen {
        fn load(&self, order: Ordering) -> u32 {
            self.load(order)
        }

        fn store(&self, value: u32, order: Ordering) {
            self.store(value, order);
        }

        fn claim(&self) -> Result<u32, u32> {
            self.compare_exchange(0, BUSY, Ordering::Relaxed, Ordering::Acquire)
        }

        fn count(&self) -> u32 {
            self.fetch_add(1, Ordering::Relaxed)
        }

        fn wait() {
            shuttle::hint::spin_loop();
        }
    }

    /// Words whose claims two workers may both win.
    struct Careless(Chosen);

    impl Word for Careless {
        fn load(&self, order: Ordering) -> u32 {
            self.0.load(order)
        }

        fn store(&self, value: u32, order: Ordering) {
            self.0.store(value, order);
        }

        fn claim(&self) -> Result<u32, u32> {
            match self.0.load(Ordering::Acquire) {
                0 => {
                    self.0.store(BUSY, Ordering::Relaxed);
                    Ok(0)
                }
                other => Err(other),
            }
        }

        fn count(&self) -> u32 {
            self.0.count()
        }

        fn wait() {
            Chosen::wait();
        }
    }

    const STRIDE: usize = 2;

    /// Vectors that all begin their search at the first slot, or at the first two in turns.
    fn vector(number: u32) -> [u32; STRIDE] {
        [number, number * 7]
    }

    /// Each worker enters its numbers. Equal vectors have equal numbers, which are dense; one worker only finds each vector new;
    /// and the slots hold every vector once.
    fn every_vector_has_one_number<W: Word + Send + Sync + 'static>(
        empty: fn() -> W,
        workers: &'static [&'static [u32]],
        homes: usize,
    ) {
        let slots = 8;
        let words: Arc<Vec<W>> = Arc::new((0..slots * (STRIDE + 1)).map(|_| empty()).collect());
        let next = Arc::new(empty());
        let work = |numbers: &'static [u32]| {
            let (words, next) = (words.clone(), next.clone());
            thread::spawn(move || {
                let home = |number: u32| number as usize % homes * (STRIDE + 1);
                let found = |&number| (number, intern(&words, home(number), &vector(number), &*next).unwrap());
                numbers.iter().map(found).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = workers.iter().map(|numbers| work(numbers)).collect();
        let found: Vec<(u32, (u32, bool))> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let mut given: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for &(number, (got, new)) in &found {
            let entry = given.entry(number).or_insert((got, 0));
            assert_eq!(entry.0, got, "{number} has two numbers: {found:?}");
            entry.1 += new as u32;
        }
        assert!(given.values().all(|(_, new)| *new == 1), "{found:?}");
        let mut numbers: Vec<u32> = given.values().map(|(got, _)| *got).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..given.len() as u32), "{found:?}");
        let held: Vec<Vec<u32>> = words
            .chunks_exact(STRIDE + 1)
            .map(|slot| slot.iter().map(|word| word.load(Ordering::Relaxed)).collect())
            .collect();
        for (&number, &(got, _)) in &given {
            let slot = [&[got + 1], &vector(number)[..]].concat();
            assert_eq!(held.iter().filter(|held| **held == slot).count(), 1, "{number}: {held:?}");
        }
        assert_eq!(held.iter().filter(|held| held[0] != 0).count(), given.len(), "{held:?}");
    }

    #[test]
    fn under_any_schedule_every_vector_has_one_number() {
        let empty = || Chosen::new(0);
        shuttle::check_random(move || every_vector_has_one_number(empty, &[&[1, 2, 3], &[3, 2, 1]], 1), 2_000);
        shuttle::check_random(move || every_vector_has_one_number(empty, &[&[1, 2], &[2, 1], &[1, 3, 2]], 2), 2_000);
        shuttle::check_pct(move || every_vector_has_one_number(empty, &[&[1, 2, 1], &[1, 2], &[2, 4]], 1), 2_000, 3);
    }

    #[test]
    #[should_panic]
    fn a_claim_that_two_can_win_is_noticed() {
        let empty = || Careless(Chosen::new(0));
        shuttle::check_random(move || every_vector_has_one_number(empty, &[&[1, 2, 3], &[3, 2, 1]], 1), 2_000);
    }

    #[test]
    fn a_table_without_an_empty_slot_says_so() {
        let words: Vec<AtomicU32> = (0..2 * (STRIDE + 1)).map(|_| AtomicU32::new(0)).collect();
        let next = AtomicU32::new(0);
        let put = |number: u32| intern(&words, 0, &vector(number), &next);
        assert_eq!([put(5), put(6), put(5), put(7)], [Ok((0, true)), Ok((1, true)), Ok((0, false)), Err(Full)]);
    }
}
