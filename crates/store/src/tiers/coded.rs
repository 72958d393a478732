//! States as Huffman codes: strings of different lengths.
//!
//! Where nobody leaves, each is held as long as it is. The slots of a cache are of one length, into which most codes fit; those
//! that are longer are held beside it, as strings. Where the first states are unlike the later ones that is most of them, so
//! they leave too, if nothing is pinned: those that were not met for a while.

use super::{Batch, Block, Full, Shard, Table, Tiers, lock};
use crate::budget::Grant;
use crate::cache::{Answer, Health, Place};
use crate::hash;
use crate::huffman::Code;
use crate::row::Row;
use crate::strings::Strings;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

impl Tiers {
    /// Bytes of all codes, if states are held as codes of their own length.
    pub fn code_bytes(&self) -> Option<u64> {
        let bytes = |shard: &Mutex<Shard>| match &lock(shard).last {
            Table::Coded(coded) => Some(coded.code_bytes() as u64),
            _ => None,
        };
        self.shards.iter().map(bytes).sum()
    }
}

/// Of codes that are too long for a cache there may be this part of what it holds, and as many that were not met lately.
const LONG_SHARE: usize = 4;

/// Codes as strings, and what makes them.
#[derive(Debug)]
pub(super) struct Coded {
    code: Arc<Code>,
    strings: Strings,
    /// The code of one state.
    buffer: Vec<u8>,
}

impl Coded {
    pub fn new(code: &Arc<Code>, shard_bits: u32, grant: &Grant) -> Result<Coded, Full> {
        let strings = strings(code, shard_bits, grant)?;
        Ok(Coded { code: code.clone(), strings, buffer: Vec::new() })
    }

    pub fn len(&self) -> usize {
        self.strings.len()
    }

    pub fn bytes(&self) -> usize {
        self.strings.bytes()
    }

    /// Bytes of the codes alone.
    pub fn code_bytes(&self) -> usize {
        self.strings.own_bytes()
    }

    pub fn prefetch(&self, hash: u64) {
        self.strings.prefetch(hash);
    }

    /// Inserts states of a block.
    pub fn insert_all(&mut self, block: Block, batch: &Batch, range: Range<usize>) -> Result<usize, Full> {
        let (hashes, answers) = (batch.run(range.clone()).high, batch.answers(range.clone()));
        hashes.iter().for_each(|&hash| self.prefetch(hash));
        let mut count = 0;
        for ((&position, &hash), answer) in batch.positions(range).iter().zip(hashes).zip(answers) {
            self.code.encode(block.state(position as usize), &mut self.buffer);
            let new = self.strings.insert(&self.buffer, hash)?;
            answer.store(new as u8, Ordering::Relaxed);
            count += new as usize;
        }
        Ok(count)
    }

    /// Visits all codes with their hashes.
    pub fn visit(&mut self, mut visit: impl FnMut(&[u8], u64)) {
        self.strings.visit(|string| visit(string, hash::bytes(string)));
    }

    /// Takes a code over from another shard.
    pub fn take(&mut self, string: &[u8], hash: u64) -> Result<(), Full> {
        self.strings.insert(string, hash).map(|_| ())
    }
}

/// Codes that are too long for a cache.
#[derive(Debug)]
pub(super) struct Long {
    code: Arc<Code>,
    /// Those that came or were met lately, and those before them, once there were too many.
    young: Strings,
    old: Option<Strings>,
    /// So many are among both.
    both: usize,
    /// So many young ones are too many.
    most: usize,
    forgotten: u64,
    shard_bits: u32,
    grant: Grant,
    /// The code of one state.
    buffer: Vec<u8>,
}

impl Long {
    /// For a cache of so many states that is one of 2^`shard_bits`. Those beside a chain stay, and those that may be pinned.
    pub fn beside(
        code: &Arc<Code>,
        row: &Row,
        pins: bool,
        capacity: usize,
        shard_bits: u32,
        grant: &Grant,
    ) -> Result<Long, Full> {
        let leaves = row.alone().is_some() && !pins;
        Long::new(code, shard_bits, if leaves { (capacity / LONG_SHARE).max(1) } else { usize::MAX }, grant)
    }

    /// One of 2^`shard_bits`. From `most` on those leave that were not met lately.
    fn new(code: &Arc<Code>, shard_bits: u32, most: usize, grant: &Grant) -> Result<Long, Full> {
        let young = strings(code, shard_bits, grant)?;
        let (code, grant) = (code.clone(), grant.clone());
        Ok(Long { code, young, old: None, both: 0, most, forgotten: 0, shard_bits, grant, buffer: Vec::new() })
    }

    pub fn len(&self) -> usize {
        self.young.len() + self.only_old()
    }

    pub fn bytes(&self) -> usize {
        self.young.bytes() + self.old.as_ref().map_or(0, Strings::bytes)
    }

    /// Adds what it holds to what a cache says of itself.
    pub fn tell(&self, health: &mut Health) {
        health.held += self.len() as u64;
        health.capacity += self.len() as u64;
        health.forgotten += self.forgotten;
    }

    fn only_old(&self) -> usize {
        self.old.as_ref().map_or(0, Strings::len) - self.both
    }

    /// The key of a state in a cache; none if it is too long.
    pub fn key(&mut self, state: &[u32]) -> Option<&[u8]> {
        self.code.encode(state, &mut self.buffer);
        Some(&self.buffer[..]).filter(|key| key.len() <= self.code.key_bytes())
    }

    /// Holds the state whose key was asked for last.
    pub fn hold(&mut self, hash: u64) -> Answer {
        if self.young.len() >= self.most {
            self.grow_old();
        }
        let mut was_old = self.old.as_mut().is_some_and(|old| old.contains(&self.buffer, hash));
        let mut held = self.young.insert(&self.buffer, hash);
        if held.is_err() && self.most < usize::MAX {
            self.grow_old();
            was_old = false;
            held = self.young.insert(&self.buffer, hash);
        }
        match held {
            Ok(true) if was_old => {
                self.both += 1;
                Answer::Known
            }
            Ok(true) => Answer::New(Place::NOWHERE),
            Ok(false) => Answer::Known,
            Err(Full) => Answer::Full,
        }
    }

    /// The old ones leave, and the young ones become old.
    fn grow_old(&mut self) {
        self.forgotten += self.only_old() as u64;
        self.both = 0;
        let mut empty = self.old.take().or_else(|| strings(&self.code, self.shard_bits, &self.grant).ok());
        match &mut empty {
            Some(empty) => {
                empty.clear();
                std::mem::swap(empty, &mut self.young);
            }
            // There is no memory for two of them.
            None => {
                self.forgotten += self.young.len() as u64;
                self.young.clear();
            }
        }
        self.old = empty;
    }
}

fn strings(code: &Code, shard_bits: u32, grant: &Grant) -> Result<Strings, Full> {
    Strings::new(code.most_bytes().max(code.key_bytes()), shard_bits, grant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::huffman::Training;
    use plimsoll_ir::random::Draw;

    /// What was met lately is held; what was not goes, and counts as forgotten; memory stays within bounds.
    #[test]
    fn long_codes_that_are_not_met_leave() {
        let code = Arc::new(Training::new(&[0xFFFF_FFFF]).code());
        for (most, grant) in [(100, Grant::unlimited()), (100, Budget::new(20 << 10).grant("long", 20 << 10))] {
            let mut long = Long::new(&code, 0, most, &grant).unwrap();
            let mut hold = |number: u32| {
                assert!(long.key(&[number]).is_none());
                let hash = hash::bytes(&long.buffer);
                (long.hold(hash), long.len(), long.forgotten)
            };
            let (mut draw, mut fresh, mut told) = (Draw::new(1), 0, (0, 0));
            let mut last_met = std::collections::HashMap::new();
            for time in 0..20_000u64 {
                // One in five is met again and again.
                let number = if time % 5 == 0 { 7 } else { draw.below(3_000) as u32 };
                let (answer, len, forgotten) = hold(number);
                let before = last_met.insert(number, time);
                match answer {
                    Answer::New(_) => fresh += 1,
                    Answer::Known => assert!(before.is_some(), "{number} was never there"),
                    Answer::Full => panic!("it can always forget"),
                }
                // Fewer than `most` others came since.
                assert!(answer == Answer::Known || before.is_none_or(|before| time - before > most as u64), "{number}");
                told = (len as u64, forgotten);
            }
            assert!(told.0 <= 2 * most as u64 && told.1 > 5_000 && fresh == told.0 + told.1, "{fresh} {told:?}");
            assert!(grant.used_bytes() <= 20 << 10 || grant.cap_bytes() > 1 << 40);
        }
    }
}
