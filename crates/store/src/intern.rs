//! Numbers for vectors of words: equal vectors get the same number, numbers are dense from zero.
//!
//! Vectors lie end to end in one region; an index of 32-bit entries finds them. An entry is the number
//! plus one in its low bits and a piece of the hash in the rest, in cache lines of sixteen; the index is
//! rebuilt from the vectors when it grows. This is a node table of the tree store, and with whole states
//! as vectors it is the plain store. Interning is lock-free through `&self`: a vector is written before
//! its number is published, and a worker that loses the race leaves an unused number behind.

use crate::budget::Grant;
use crate::hash;
use crate::pairs::Full;
use crate::region::{Region, prefetch};
use std::sync::atomic::{AtomicU32, Ordering};

const LINE: usize = 16;
/// Lines beyond the last home line; there is no wrapping around.
const SLACK: usize = 16;
const FIRST_LINES: usize = 48;
/// Free entries leave tags room to tell vectors apart; more load saves little as entries are small.
const LOAD_PERCENT: usize = 80;
const GROWTH_PERCENT: usize = 140;

/// A growing table of vectors of `stride` words.
#[derive(Debug)]
pub struct Intern {
    stride: usize,
    vectors: Region,
    index: Region,
    lines: usize,
    /// Low bits of an entry that hold the number plus one.
    number_bits: u32,
    /// Vectors that fit before the next growth.
    room: u32,
    count: AtomicU32,
}

impl Intern {
    pub fn new(stride: usize, grant: Grant) -> Result<Intern, Full> {
        assert!(stride > 0);
        let (vectors, index) = (Region::new(grant.clone()), Region::new(grant));
        let count = AtomicU32::new(0);
        let mut table = Intern { stride, vectors, index, lines: 0, number_bits: 0, room: 0, count };
        table.grow(FIRST_LINES * LINE * LOAD_PERCENT / 100)?;
        Ok(table)
    }

    /// How many numbers were given out.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        self.vectors.bytes() + self.index.bytes()
    }

    /// Makes sure that `count` more vectors fit.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        let least = self.len() + count;
        if least <= self.room as usize {
            return Ok(());
        }
        let comfortable = least.max(self.room as usize * GROWTH_PERCENT / 100);
        self.grow(comfortable).or_else(|Full| self.grow((least + comfortable) / 2)).or_else(|Full| self.grow(least))
    }

    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.index.words()[hash::scale(hash, self.lines) * LINE]);
    }

    /// The number of `vector` (with hash `hash`), and whether it is new.
    #[inline(always)]
    pub fn intern(&self, vector: &[u32], hash: u64) -> Result<(u32, bool), Full> {
        debug_assert_eq!(vector.len(), self.stride);
        let tag = self.tag(hash);
        let mask = (1u32 << self.number_bits) - 1;
        let mut mine = None;
        for slot in &self.index.words()[hash::scale(hash, self.lines) * LINE..] {
            let mut entry = slot.load(Ordering::Acquire);
            if entry == 0 {
                let number = match mine {
                    Some(number) => number,
                    None => *mine.insert(self.write(vector)?),
                };
                match slot.compare_exchange(0, tag | (number + 1), Ordering::Release, Ordering::Acquire) {
                    Ok(_) => return Ok((number, true)),
                    Err(other) => entry = other,
                }
            }
            if (entry ^ tag) & !mask == 0 && self.equals((entry & mask) - 1, vector) {
                return Ok(((entry & mask) - 1, false));
            }
        }
        Err(Full)
    }

    /// Copies the vector with number `number`.
    pub fn read(&self, number: u32, out: &mut [u32]) {
        let vector = &self.vectors.words()[number as usize * self.stride..][..self.stride];
        out.iter_mut().zip(vector).for_each(|(out, word)| *out = word.load(Ordering::Relaxed));
    }

    #[inline(always)]
    fn tag(&self, hash: u64) -> u32 {
        (hash as u32) << self.number_bits
    }

    #[inline(always)]
    fn equals(&self, number: u32, vector: &[u32]) -> bool {
        let held = &self.vectors.words()[number as usize * self.stride..][..vector.len()];
        held.iter().zip(vector).fold(0, |diff, (held, word)| diff | (held.load(Ordering::Relaxed) ^ word)) == 0
    }

    fn write(&self, vector: &[u32]) -> Result<u32, Full> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        if number >= self.room {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(Full);
        }
        let place = &self.vectors.words()[number as usize * self.stride..][..self.stride];
        place.iter().zip(vector).for_each(|(place, &word)| place.store(word, Ordering::Relaxed));
        Ok(number)
    }

    /// Makes room for `wanted` vectors in all and rebuilds the index if it has to grow for them.
    fn grow(&mut self, wanted: usize) -> Result<(), Full> {
        // Numbers and tags share 32 bits.
        if wanted > 1 << 30 {
            return Err(Full);
        }
        let lines = (wanted * 100).div_ceil(LOAD_PERCENT * LINE);
        let ready = self.vectors.grow(wanted * self.stride * 4)
            && (lines <= self.lines || self.index.grow((lines + SLACK) * LINE * 4));
        if !ready {
            return Err(Full);
        }
        // Growth is by whole pages: use all of it.
        let lines = self.index.bytes() / 4 / LINE - SLACK;
        let fits = (lines * LINE * LOAD_PERCENT / 100).min(self.vectors.bytes() / 4 / self.stride);
        self.room = fits as u32;
        if lines != self.lines {
            self.lines = lines;
            self.rebuild();
        }
        Ok(())
    }

    fn rebuild(&mut self) {
        // The index never holds more numbers than it has entries, whatever room the vectors have.
        self.number_bits = usize::BITS - (self.lines * LINE).leading_zeros();
        self.index.zero();
        let (count, stride, lines, bits) = (self.len(), self.stride, self.lines, self.number_bits);
        let vectors = self.vectors.words_mut();
        let index = self.index.words_mut();
        let mut hashes = [0; 64];
        for first in (0..count).step_by(hashes.len()) {
            let numbers = first..count.min(first + hashes.len());
            for number in numbers.clone() {
                let hash = hash::words(&vectors[number * stride..][..stride]);
                hashes[number - first] = hash;
                prefetch(&index[hash::scale(hash, lines) * LINE]);
            }
            for number in numbers {
                let hash = hashes[number - first];
                let home = hash::scale(hash, lines) * LINE;
                let hole = index[home..].iter().position(|&entry| entry == 0).expect("room after the last home");
                index[home + hole] = (hash as u32) << bits | (number as u32 + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use std::collections::HashMap;

    fn put(table: &Intern, vector: &[u32]) -> Result<(u32, bool), Full> {
        table.intern(vector, hash::words(vector))
    }

    #[test]
    fn agrees_with_a_hash_map_through_many_growths() {
        for stride in [1, 2, 3, 5, 9] {
            let mut table = Intern::new(stride, Grant::unlimited()).unwrap();
            let mut twin = HashMap::new();
            let mut random = 88172645463325252u64;
            for _ in 0..60_000 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let mut vector = vec![0; stride];
                vector[stride - 1] = (random % 30_000) as u32;
                table.reserve(1).unwrap();
                let next = twin.len() as u32;
                let number = *twin.entry(vector.clone()).or_insert(next);
                assert_eq!(put(&table, &vector), Ok((number, number == next)));
            }
            let mut out = vec![0; stride];
            for (vector, number) in &twin {
                table.read(*number, &mut out);
                assert_eq!(&out, vector);
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
            let workers: Vec<_> = (0..4)
                .map(|_| scope.spawn(move || (0..10_000).map(|v| put(table, &[v, v]).unwrap().0).collect()))
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        assert!(all.iter().all(|numbers| numbers == &all[0]));
    }
}
