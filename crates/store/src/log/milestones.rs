//! A log that gets too long keeps a level instead: the states that wait, as they are, and forgets how any of them was found.
//!
//! From then on ways begin at those states, as if they were initial. What comes before can be found again: the state is known in which
//! a way begins, and a shortest way to it from the level that was kept before, or from the initial states, has as many steps as there are levels between
//! ("divide and conquer" over stored layers, Lamborn and Hansen 2008). So nothing of the way is lost, whatever states a store has given up
//! meanwhile, and searching again between two levels is told how deep to go.

use super::{Content, Last, StepLog};
use crate::budget::Grant;
use crate::disk::{SLOT, Shortage, Slot, Spill, SpillError};
use crate::queue::Queue;
use std::io::{self, Write};

/// Where the disk is short, a level is not kept for fewer chunks of entries than this.
const LEAST_CHUNKS: usize = 4;
/// Entries make way when less than this part of the disk is left.
const SHORT_SHARE: u64 = 8;
/// What a slot takes in memory.
const SLOT_BYTES: u64 = size_of::<Slot>() as u64;
/// Bytes before the states, as queues write themselves.
const HEAD: u64 = 8;

/// The states of one level in the order of their numbers, on disk.
#[derive(Debug)]
pub struct Milestone {
    /// How many levels come before it.
    pub level: u32,
    states: u64,
    width: usize,
    slots: Vec<Slot>,
}

/// The levels that a log kept, oldest first.
#[derive(Debug)]
pub struct Milestones {
    levels: Vec<Milestone>,
    spill: Spill,
    grant: Grant,
}

impl StepLog {
    /// The same with at most about so many bytes for entries; only with a disk.
    pub fn at_most(mut self, bytes: u64) -> StepLog {
        self.most_bytes = bytes;
        self
    }

    /// Should it keep a level of so many states of so many words, rather than what it has?
    pub fn should_keep_level(&self, states: usize, width: usize) -> bool {
        let Some(spill) = &self.spill else { return false };
        let ours: u64 = self.chunks.iter().map(|chunk| chunk.bytes() as u64).sum();
        let is_short = || {
            let [left, all] = spill.left_bytes();
            left < all / SHORT_SHARE && self.chunks.len() >= LEAST_CHUNKS && ((states * width * 4) as u64) < ours / 2
        };
        states > 0 && (ours > self.most_bytes || is_short())
    }

    /// Keeps all states that wait, which are those of `level` and have numbers from `first` on, and forgets how they were found.
    pub fn keep_level(&mut self, level: u32, first: u64, queue: &mut Queue) -> Result<(), Shortage> {
        let (states, width) = (queue.len() as u64, queue.width());
        let Some(spill) = &self.spill else { return Ok(()) };
        let slots = states * width as u64 * 4 / SLOT as u64 + 2;
        if !self.grant.take(slots * SLOT_BYTES) {
            return Err(Shortage::Memory);
        }
        let mut milestone = Milestone { level, states, width, slots: Vec::with_capacity(slots as usize) };
        let mut out = Slots { milestone: &mut milestone, spill, bytes: Vec::with_capacity(SLOT) };
        let written = queue.save(states as usize, &mut out).and_then(|()| out.flush());
        self.milestones.push(milestone);
        written.map_err(|error| match error.kind() {
            io::ErrorKind::QuotaExceeded => Shortage::Disk(SpillError::Full),
            _ => Shortage::Disk(SpillError::Io(error)),
        })?;
        self.begin_anew(first);
        self.starts_left = Some(states);
        (0..states).try_for_each(|number| self.push(first, number as u32))
    }

    /// Forgets all entries; the next state has this number.
    fn begin_anew(&mut self, next: u64) {
        for chunk in std::mem::take(&mut self.chunks) {
            match (chunk.content, &self.spill) {
                (Content::Ram(buffer), _) => self.spare.push(buffer),
                (Content::Packed(packed), _) => self.grant.give_back(packed.len() as u64),
                (Content::Disk(slot), Some(spill)) => spill.release(slot),
                (Content::Disk(_), None) => unreachable!("it was written"),
            }
        }
        (self.len, self.gone, self.last) = (next, next, Last::before(0));
    }

    /// The levels that were kept; entries are gone.
    pub fn into_milestones(mut self) -> Option<Milestones> {
        let spill = self.spill.take()?;
        let levels = std::mem::take(&mut self.milestones);
        Some(Milestones { levels, spill, grant: self.grant.clone() })
    }
}

/// Writes to slots of a milestone.
struct Slots<'a> {
    milestone: &'a mut Milestone,
    spill: &'a Spill,
    bytes: Vec<u8>,
}

impl Write for Slots<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(SLOT - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        if self.bytes.len() == SLOT {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.bytes.is_empty() {
            self.milestone.slots.push(self.spill.put(&self.bytes)?);
            self.bytes.clear();
        }
        Ok(())
    }
}

impl Milestones {
    /// The last level that was kept.
    pub fn last(&self) -> Option<&Milestone> {
        self.levels.last()
    }

    /// Gives up the last level.
    pub fn pop(&mut self) {
        if let Some(level) = self.levels.pop() {
            self.grant.give_back(level.reserved_bytes());
            level.slots.into_iter().for_each(|slot| self.spill.release(slot));
        }
    }

    /// Puts `count` states of a level into `states`, from this number on, or as many as there are.
    pub fn read(&self, level: &Milestone, first: u64, count: u64, states: &mut Vec<u32>) -> Result<(), SpillError> {
        states.clear();
        let (slot_bytes, state_bytes) = (SLOT as u64, level.width as u64 * 4);
        let count = count.min(level.states.saturating_sub(first));
        if count == 0 {
            return Ok(());
        }
        let (start, end) = (HEAD + first * state_bytes, HEAD + (first + count) * state_bytes);
        let (all, mut bytes) = (HEAD + level.states * state_bytes, Vec::new());
        for slot in start / slot_bytes..=(end - 1) / slot_bytes {
            let here = bytes.len();
            bytes.resize(here + slot_bytes.min(all - slot * slot_bytes) as usize, 0);
            self.spill.read(&level.slots[slot as usize], &mut bytes[here..])?;
        }
        let skipped = (start % slot_bytes) as usize;
        let words = bytes[skipped..][..(end - start) as usize].chunks_exact(4);
        states.extend(words.map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))));
        Ok(())
    }

    /// Puts one part of a level into `states`, from part 0 on. Is there another?
    pub fn read_part(&self, level: &Milestone, part: u32, states: &mut Vec<u32>) -> Result<bool, SpillError> {
        let count = (SLOT / (level.width * 4)).max(1) as u64;
        let first = u64::from(part) * count;
        self.read(level, first, count, states)?;
        Ok(first + count < level.states)
    }
}

impl Milestone {
    /// Memory for where it is.
    pub(super) fn reserved_bytes(&self) -> u64 {
        (self.states * self.width as u64 * 4 / SLOT as u64 + 2) * SLOT_BYTES
    }
}

impl Drop for Milestones {
    fn drop(&mut self) {
        while !self.levels.is_empty() {
            self.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::disk::faulty::Faulty;

    #[test]
    fn levels_come_back_and_ways_begin_at_them() {
        for width in [1, 3, 300, 20_000] {
            let budget = Budget::new(1 << 30);
            let spill = Spill::on(Box::new(Faulty::sound()), Grant::unlimited());
            let mut log = StepLog::new(budget.grant("log", 1 << 30), Some(spill)).at_most(200_000);
            let count = 60_000 / width as u64 + 7;
            let mut queue = Queue::new(width, Grant::unlimited(), None);
            (0..900_000).for_each(|number| log.push(number / 3, number as u32 % 3).unwrap());
            let first = 900_000 - count;
            let place = queue.extend(count as usize).unwrap();
            let state = |number: u64| (0..width as u32).map(move |word| number as u32 * 7 + word);
            let states: Vec<u32> = (0..count).flat_map(state).collect();
            queue.write_all(place, states.chunks_exact(width));
            assert!(log.should_keep_level(count as usize, width));
            log.keep_level(5, first, &mut queue).unwrap();
            assert_eq!((log.len(), log.path(first + 6, 1).unwrap()), (900_000, vec![6]));
            log.push(first + 6, 9).unwrap();
            assert_eq!(log.path(900_000, 1).unwrap(), [6, 9]);
            assert!(!log.should_keep_level(count as usize, width), "it has become short");
            let mut milestones = log.into_milestones().unwrap();
            let (mut states, mut number) = (Vec::new(), 0);
            let level = milestones.last().unwrap();
            assert_eq!(level.level, 5);
            for part in 0.. {
                let more = milestones.read_part(level, part, &mut states).unwrap();
                for found in states.chunks(width) {
                    assert!(found.iter().copied().eq(state(number)), "state {number} of {width} words");
                    number += 1;
                }
                if !more {
                    break;
                }
            }
            assert_eq!(number, count);
            milestones.read(level, 6, 1, &mut states).unwrap();
            assert!(states.iter().copied().eq(state(6)));
            milestones.pop();
            assert_eq!(budget.used_bytes(), 0);
        }
    }
}
