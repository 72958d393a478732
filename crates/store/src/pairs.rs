//! A set of 64-bit keys: the root table of the tree store.
//!
//! Keys lie in cache lines of eight. A key's home line is the scaled hash; a key that finds its home full
//! goes to the next line that is not. Keys are never removed, so a line with a hole ends every search.
//! Inserting is lock-free through `&self`; growing needs `&mut self` and happens in place: the home of a
//! key never moves down when the table grows, so clusters of full lines are spread from the top end
//! downwards without a second table. That allows growth by any factor, hence a high load at all times.

use crate::budget::Grant;
use crate::hash;
use crate::region::{Region, prefetch};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const LINE: usize = 8;
/// Lines beyond the last home line, for keys that overflow it; there is no wrapping around.
const SLACK: usize = 64;
const FIRST_LINES: usize = 448;
const LOAD_PERCENT: usize = 90;
/// Growth factor in per cent: the load stays between 69 and 90 per cent.
const GROWTH_PERCENT: usize = 130;

/// A growing set of 64-bit keys.
#[derive(Debug)]
pub struct Pairs {
    region: Region,
    lines: usize,
    len: AtomicUsize,
    /// Zero marks an empty place, so the key zero is remembered here.
    holds_zero: AtomicBool,
}

/// The table has no room for the key, and its grant none for a larger table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Pairs {
    pub fn new(grant: Grant) -> Result<Pairs, Full> {
        let mut region = Region::new(grant);
        if !region.grow((FIRST_LINES + SLACK) * LINE * 8) {
            return Err(Full);
        }
        Ok(Pairs { region, lines: FIRST_LINES, len: AtomicUsize::new(0), holds_zero: AtomicBool::new(false) })
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

    /// Makes sure that `count` more keys fit, growing if need be.
    pub fn reserve(&mut self, count: usize) -> Result<(), Full> {
        let wanted = self.len() + count;
        if wanted <= self.lines * LINE * LOAD_PERCENT / 100 {
            return Ok(());
        }
        let least = (wanted * 100 / LOAD_PERCENT).div_ceil(LINE) + LINE;
        let comfortable = least.max(self.lines * GROWTH_PERCENT / 100);
        for lines in [comfortable, (least + comfortable) / 2, least] {
            if self.region.grow((lines + SLACK) * LINE * 8) {
                // Growth is by whole pages: use all of it.
                let lines = self.region.bytes() / 8 / LINE - SLACK;
                self.spread(lines);
                return Ok(());
            }
        }
        Err(Full)
    }

    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.region.pairs()[hash::scale(hash, self.lines) * LINE]);
    }

    /// Inserts keys with their hashes, and appends to `fresh` the positions of those that were not there.
    pub fn insert_all(&self, keys: &[u64], hashes: &[u64], fresh: &mut Vec<u32>) -> Result<(), Full> {
        let before = fresh.len();
        let mut outcome = Ok(());
        for (position, (&key, &hash)) in keys.iter().zip(hashes).enumerate() {
            match self.insert(key, hash) {
                Ok(true) => fresh.push(position as u32),
                Ok(false) => {}
                Err(Full) => {
                    outcome = Err(Full);
                    break;
                }
            }
        }
        self.len.fetch_add(fresh.len() - before, Ordering::Relaxed);
        outcome
    }

    /// Inserts `key`; true if it was not there. The caller counts.
    #[inline(always)]
    fn insert(&self, key: u64, hash: u64) -> Result<bool, Full> {
        if key == 0 {
            return Ok(!self.holds_zero.swap(true, Ordering::Relaxed));
        }
        let slots = self.region.pairs();
        for slot in &slots[hash::scale(hash, self.lines) * LINE..] {
            let mut found = slot.load(Ordering::Relaxed);
            if found == 0 {
                match slot.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return Ok(true),
                    Err(other) => found = other,
                }
            }
            if found == key {
                return Ok(false);
            }
        }
        Err(Full)
    }

    /// Is `key` in the set?
    pub fn contains(&self, key: u64) -> bool {
        if key == 0 {
            return self.holds_zero.load(Ordering::Relaxed);
        }
        let slots = self.region.pairs();
        let held = slots[hash::scale(hash::pair(key), self.lines) * LINE..].iter();
        held.map(|slot| slot.load(Ordering::Relaxed)).take_while(|&found| found != 0).any(|found| found == key)
    }

    /// Moves every key to its place in a table of `lines` home lines, from the top end downwards.
    fn spread(&mut self, lines: usize) {
        assert!(lines >= self.lines);
        let old_end = (self.lines + SLACK) * LINE;
        self.lines = lines;
        let slots = self.region.pairs_mut();
        let mut cluster = Vec::new();
        let mut end = old_end;
        while end > 0 {
            // A cluster begins at a line whose predecessor has a hole: nothing in it came from below.
            let mut start = end - LINE;
            while start > 0 && slots[start - 1] != 0 {
                start -= LINE;
            }
            cluster.extend(slots[start..end].iter().copied().filter(|&key| key != 0));
            slots[start..end].fill(0);
            for key in cluster.drain(..) {
                let home = hash::scale(hash::pair(key), lines) * LINE;
                debug_assert!(home >= start);
                let hole = slots[home..].iter().position(|&found| found == 0).expect("room after the last home");
                slots[home + hole] = key;
            }
            end = start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use std::collections::HashSet;

    fn put(table: &Pairs, key: u64) -> Result<bool, Full> {
        let mut fresh = Vec::new();
        table.insert_all(&[key], &[hash::pair(key)], &mut fresh).map(|()| fresh == [0])
    }

    #[test]
    fn agrees_with_a_hash_set_through_many_growths() {
        let mut table = Pairs::new(Grant::unlimited()).unwrap();
        let mut twin = HashSet::new();
        let mut random = 88172645463325252u64;
        for _ in 0..300_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let key = random % 200_000;
            table.reserve(1).unwrap();
            assert_eq!(put(&table, key), Ok(twin.insert(key)));
        }
        assert_eq!(table.len(), twin.len());
        assert!((0..200_000).all(|key| table.contains(key) == twin.contains(&key)));
        assert!(table.bytes() < table.len() * 12);
    }

    #[test]
    fn a_small_grant_fills_up_without_losing_keys() {
        let budget = Budget::new(100 << 10);
        let mut table = Pairs::new(budget.grant("t", 100 << 10)).unwrap();
        let mut count = 0u64;
        while table.reserve(1).is_ok() {
            assert_eq!(put(&table, count), Ok(true));
            count += 1;
        }
        assert!(count > 9_000, "only {count} keys in 100 KiB");
        assert!((0..count).all(|key| put(&table, key) == Ok(false)));
    }

    #[test]
    fn concurrent_inserts_agree_on_who_was_first() {
        let mut table = Pairs::new(Grant::unlimited()).unwrap();
        table.reserve(40_000).unwrap();
        let table = &table;
        let firsts: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4u64)
                .map(|worker| {
                    let keys = (0..20_000u64).map(move |i| (i * 7919 + worker * 13) % 20_000);
                    scope.spawn(move || keys.filter(|&key| put(table, key) == Ok(true)).count())
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!((firsts, table.len()), (20_000, 20_000));
    }
}
