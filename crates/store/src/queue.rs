//! The frontier of a breadth-first search: states in, the same states out, in order.
//!
//! States lie in chunks. When the grant has no room for another chunk and there is a spill, chunks that
//! will be needed last wait on disk; they are written and read in order, whole.

use crate::budget::Grant;
use crate::disk::{SLOT, Shortage, Slot, Spill};
use std::collections::VecDeque;

const CHUNK_WORDS: usize = SLOT / 4;

/// A first-in, first-out queue of states of one width.
#[derive(Debug)]
pub struct Queue {
    width: usize,
    per_chunk: usize,
    /// Oldest first. Everything before `front_ram` is in memory; then may come chunks on disk; the last is
    /// in memory and being filled.
    chunks: VecDeque<Chunk>,
    /// States of the first chunk that were taken already.
    taken: usize,
    len: u64,
    spare: Vec<Box<[u32]>>,
    grant: Grant,
    spill: Option<Spill>,
}

#[derive(Debug)]
struct Chunk {
    states: usize,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Ram(Box<[u32]>),
    Disk(Slot),
}

impl Queue {
    pub fn new(width: usize, grant: Grant, spill: Option<Spill>) -> Queue {
        let per_chunk = (CHUNK_WORDS / width).max(1);
        Queue { width, per_chunk, chunks: VecDeque::new(), taken: 0, len: 0, spare: Vec::new(), grant, spill }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push(&mut self, state: &[u32]) -> Result<(), Shortage> {
        if self.chunks.back().is_none_or(|chunk| chunk.states == self.per_chunk) {
            let room = self.buffer()?;
            self.chunks.push_back(Chunk { states: 0, place: Place::Ram(room) });
        }
        let Some(Chunk { states, place: Place::Ram(words) }) = self.chunks.back_mut() else {
            unreachable!("the last chunk is in memory")
        };
        words[*states * self.width..][..self.width].copy_from_slice(state);
        *states += 1;
        self.len += 1;
        Ok(())
    }

    /// Moves up to `count` of the oldest states into `out`, which is cleared; returns how many.
    pub fn take(&mut self, count: usize, out: &mut Vec<u32>) -> Result<usize, Shortage> {
        out.clear();
        self.load_front()?;
        let Some(Chunk { states, place: Place::Ram(words) }) = self.chunks.front() else { return Ok(0) };
        let count = count.min(*states - self.taken);
        out.extend_from_slice(&words[self.taken * self.width..][..count * self.width]);
        self.taken += count;
        self.len -= count as u64;
        // Where chunks end depends on what was pushed, not on when it is taken.
        if self.taken == self.per_chunk {
            self.taken = 0;
            if let Some(Chunk { place: Place::Ram(words), .. }) = self.chunks.pop_front() {
                self.recycle(words);
            }
        }
        Ok(count)
    }

    /// Makes sure that the first chunk is in memory.
    fn load_front(&mut self) -> Result<(), Shortage> {
        if !matches!(self.chunks.front(), Some(Chunk { place: Place::Disk(_), .. })) {
            return Ok(());
        }
        let mut words = self.buffer()?;
        let chunk = self.chunks.front_mut().expect("just seen");
        let Place::Disk(slot) = std::mem::replace(&mut chunk.place, Place::Ram(Box::default())) else {
            unreachable!("just seen")
        };
        let spill = self.spill.as_mut().expect("it wrote the chunk");
        let bytes = bytemuck::cast_slice_mut(&mut words[..chunk.states * self.width]);
        spill.read(&slot, bytes).map_err(Shortage::Disk)?;
        spill.release(slot);
        chunk.place = Place::Ram(words);
        Ok(())
    }

    /// A buffer for one chunk: a spare one, a new one, or one whose contents go to disk.
    fn buffer(&mut self) -> Result<Box<[u32]>, Shortage> {
        let words = self.per_chunk * self.width;
        if let Some(buffer) = self.spare.pop() {
            return Ok(buffer);
        }
        if self.grant.take(words as u64 * 4) {
            return Ok(vec![0; words].into_boxed_slice());
        }
        // The youngest full chunk in memory will be needed last. The first chunk is being read.
        let Some(spill) = self.spill.as_mut().filter(|_| words * 4 <= SLOT) else { return Err(Shortage::Memory) };
        let full = |chunk: &&mut Chunk| matches!(chunk.place, Place::Ram(_)) && chunk.states == self.per_chunk;
        let Some(chunk) = self.chunks.iter_mut().skip(1).rev().find(full) else { return Err(Shortage::Memory) };
        let Place::Ram(buffer) = &chunk.place else { unreachable!("just found") };
        let slot = spill.put(bytemuck::cast_slice(buffer)).map_err(Shortage::Disk)?;
        match std::mem::replace(&mut chunk.place, Place::Disk(slot)) {
            Place::Ram(buffer) => Ok(buffer),
            Place::Disk(_) => unreachable!("just found"),
        }
    }

    /// Keeps the buffer for a later chunk. It stays charged to the grant: memory freed between other allocations is
    /// not returned to the system, so giving the bytes back would let others take them twice.
    fn recycle(&mut self, words: Box<[u32]>) {
        self.spare.push(words);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let held = self.chunks.iter().filter(|chunk| matches!(chunk.place, Place::Ram(_))).count() + self.spare.len();
        self.grant.give_back((held * self.per_chunk * self.width * 4) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::disk::SpillError;
    use crate::disk::faulty::Faulty;

    fn check(width: usize, ram_chunks: u64, disk_chunks: u64) -> bool {
        let budget = Budget::new(ram_chunks * SLOT as u64);
        let disk = Budget::new(disk_chunks * SLOT as u64);
        let spill =
            Spill::on(Box::new(Faulty { writes_left: usize::MAX, ..Faulty::default() }), disk.grant("spill", u64::MAX));
        let mut queue = Queue::new(width, budget.grant("queue", u64::MAX), Some(spill));
        let (mut next_in, mut next_out, mut out) = (0u32, 0u32, Vec::new());
        // Push more than is taken, then drain.
        for round in 0..60 {
            for _ in 0..4000 {
                let state: Vec<u32> = (0..width as u32).map(|word| next_in ^ word).collect();
                if queue.push(&state).is_err() {
                    return false;
                }
                next_in += 1;
            }
            for _ in 0..if round % 2 == 0 { 3 } else { 9 } {
                let count = queue.take(333, &mut out).unwrap();
                for state in out.chunks(width) {
                    assert!(state.iter().enumerate().all(|(word, &value)| value == next_out ^ word as u32));
                    next_out += 1;
                }
                assert!(count <= 333);
            }
        }
        while queue.take(100, &mut out).unwrap() > 0 {
            for state in out.chunks(width) {
                assert_eq!(state[0], next_out);
                next_out += 1;
            }
        }
        assert!(queue.is_empty() && next_in == next_out);
        drop(queue);
        assert_eq!((budget.used_bytes(), disk.used_bytes()), (0, 0));
        true
    }

    #[test]
    fn order_is_kept_in_memory_and_through_the_disk() {
        for width in [1, 3, 6, 40] {
            assert!(check(width, 10_000, 0), "width {width}: in memory");
            assert!(check(width, 4, 10_000), "width {width}: spilling");
        }
    }

    #[test]
    fn running_out_of_memory_and_disk_is_an_answer() {
        assert!(!check(6, 3, 2));
    }

    #[test]
    fn a_failing_disk_is_an_answer() {
        let budget = Budget::new(2 * SLOT as u64);
        let spill = Spill::on(Box::new(Faulty { writes_left: 1, ..Faulty::default() }), Grant::unlimited());
        let mut queue = Queue::new(4, budget.grant("queue", u64::MAX), Some(spill));
        let mut failure = None;
        for _ in 0..100_000 {
            if let Err(error) = queue.push(&[1, 2, 3, 4]) {
                failure = Some(error);
                break;
            }
        }
        assert!(matches!(failure, Some(Shortage::Memory | Shortage::Disk(SpillError::Io(_)))));
    }
}
