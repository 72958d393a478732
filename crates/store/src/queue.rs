//! The frontier of a breadth-first search: states in, the same states out, in order.
//!
//! States lie in chunks. Chunks that will be needed late are folded into [`differences`] where states are wide or memory is
//! short; where there is a spill they wait on disk instead, when the grant has no room for another. Room is made first
//! ([`Queue::extend`]) and filled then, by several workers if there are any; likewise states are first brought into
//! memory ([`Queue::ready`]), then read, then dropped ([`Queue::advance`]). Who writes the last state of a chunk folds it, and
//! who reads the first one unfolds it, so workers share that too. States are named by how many come before them.

mod chunk;
mod differences;

use crate::arena::Arena;
use crate::budget::Grant;
use crate::disk::{SLOT, Shortage, Slot, Spill, SpillError};
use crate::stream::{Unloaded, put_number, put_words, take_number, take_words};
use chunk::{Folded, Whole};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

const CHUNK_WORDS: usize = SLOT / 4;
/// Wider states are folded from the beginning: that takes little time beside their successors. With narrower ones it took a quarter of all
/// time (anderson.6), and with two workers a third.
const WIDE_WORDS: usize = 16;
/// So many chunks at the front stay as they are, which is all where levels are narrow; fewer where memory matters most.
const USUAL_WHOLE: usize = 16;
const DENSE_WHOLE: usize = 2;
/// So many of them are brought there at a time then, at most, and this part of a chunk is one: a few whole ones there always are, which matters
/// where there are no more than a million states. Folded chunks are rounded up to pages, so they should not be much smaller.
const DENSE_READY: usize = 16;
const DENSE_PART: usize = 2;
/// Memory is short when less than this part of it is left.
const SHORT_SHARE: u64 = 4;

/// A first-in, first-out queue of states of one width.
#[derive(Debug)]
pub struct Queue {
    width: usize,
    per_chunk: usize,
    /// Oldest first. The first and the last are whole; chunks in between may be elsewhere. All but the last are full.
    chunks: VecDeque<Chunk>,
    /// States of the first chunk that were dropped already.
    taken: usize,
    len: usize,
    /// Chunks at the front that must stay in memory.
    ready: usize,
    spare: Vec<Box<[AtomicU32]>>,
    /// Buffers of chunks, spare ones included.
    buffers: usize,
    /// As small as can be whatever time that takes.
    dense: bool,
    /// Where folded chunks lie.
    arena: Arena,
    grant: Grant,
    spill: Option<Spill>,
}

#[derive(Debug)]
enum Chunk {
    Whole(Whole),
    Folded(Folded),
    Disk(Slot),
}

impl Queue {
    pub fn new(width: usize, grant: Grant, spill: Option<Spill>) -> Queue {
        let per_chunk = (CHUNK_WORDS / width).max(1);
        let (chunks, spare, arena) = (VecDeque::new(), Vec::new(), Arena::new(grant.clone()));
        let (taken, len, ready, buffers, dense) = (0, 0, 0, 0, false);
        Queue { width, per_chunk, chunks, taken, len, ready, spare, buffers, dense, arena, grant, spill }
    }

    /// The same, as small as can be whatever time that takes.
    pub fn dense(mut self) -> Queue {
        assert!(self.is_empty());
        self.dense = true;
        if self.spill.is_none() {
            self.per_chunk = (CHUNK_WORDS / DENSE_PART / self.width).max(1);
        }
        self
    }

    /// From now on states have another width; only while it is empty.
    pub(crate) fn reshape(&mut self, width: usize) {
        assert!(self.is_empty());
        let reshaped = Queue::new(width, self.grant.clone(), self.spill.take());
        *self = if self.dense { reshaped.dense() } else { reshaped };
    }

    /// Words of a state.
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory in use, and what it would take in addition for so many more states.
    pub fn bytes(&self, count: usize) -> (u64, u64) {
        let chunks = (self.taken + self.len + count).div_ceil(self.per_chunk);
        let missing = chunks.saturating_sub(self.chunks.len() + self.spare.len());
        (self.grant.used_bytes(), (missing * self.per_chunk * self.width * 4) as u64)
    }

    /// Makes room for `count` states at the end, which must be written next, and returns the place of the first.
    pub fn extend(&mut self, count: usize) -> Result<usize, Shortage> {
        let (first, complete) = (self.len, (self.taken + self.len) / self.per_chunk);
        while (self.taken + self.len + count) > self.chunks.len() * self.per_chunk {
            let room = self.buffer(complete)?;
            self.chunks.push_back(Chunk::Whole(Whole::empty(room)));
        }
        self.len += count;
        Ok(first)
    }

    /// Writes states from `place` on, for which room was made.
    pub fn write_all<'a>(&self, place: usize, mut states: impl ExactSizeIterator<Item = &'a [u32]>) {
        let count = states.len();
        for (number, run) in self.runs(place, count) {
            let Chunk::Whole(whole) = &self.chunks[number] else { unreachable!("room was made") };
            whole.write(run.start, self.width, states.by_ref().take(run.len()));
        }
        self.wrote(place, count);
    }

    /// The same where nobody else has the queue, which takes less time.
    pub fn write_alone<'a>(&mut self, place: usize, mut states: impl ExactSizeIterator<Item = &'a [u32]>) {
        for (number, run) in self.runs(place, states.len()) {
            let folds = number >= self.whole_chunks();
            let Chunk::Whole(whole) = &mut self.chunks[number] else { unreachable!("room was made") };
            whole.write_alone(run.start, self.width, states.by_ref().take(run.len()));
            if whole.wrote(run.len()) == self.per_chunk && folds {
                whole.fold_alone(self.width, &self.arena);
            }
        }
    }

    /// `count` states from `place` on, taken apart where chunks end.
    pub fn pieces(&self, place: usize, count: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        self.runs(place, count).scan(place, |next, (_, run)| {
            let first = *next;
            *next += run.len();
            Some(first..*next)
        })
    }

    /// The chunks in which `count` states from `place` on lie, and where in those.
    fn runs(&self, place: usize, count: usize) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let (per_chunk, mut at, end) = (self.per_chunk, self.taken + place, self.taken + place + count);
        std::iter::from_fn(move || {
            let (number, first) = (at / per_chunk, at % per_chunk);
            let count = (per_chunk - first).min(end - at);
            at += count;
            (count > 0).then_some((number, first..first + count))
        })
    }

    /// The same for one state, of which nobody takes note.
    pub fn write(&self, place: usize, state: &[u32]) {
        let at = self.taken + place;
        let Chunk::Whole(whole) = &self.chunks[at / self.per_chunk] else { unreachable!("room was made") };
        whole.write(at % self.per_chunk, self.width, std::iter::once(state));
    }

    /// Takes note that `count` states from `place` on were written. Chunks of which it is not told everything are not folded.
    fn wrote(&self, place: usize, count: usize) {
        for (number, run) in self.runs(place, count) {
            if let Chunk::Whole(whole) = &self.chunks[number]
                && whole.wrote(run.len()) == self.per_chunk
                && number >= self.whole_chunks()
            {
                whole.fold(self.width, &self.arena);
            }
        }
    }

    /// How many chunks at the front are not folded.
    fn whole_chunks(&self) -> usize {
        let is_short = || self.grant.left_bytes() < self.grant.cap_bytes() / SHORT_SHARE;
        match self.width >= WIDE_WORDS {
            _ if self.spill.is_some() => usize::MAX,
            _ if self.dense || is_short() => DENSE_WHOLE,
            true => USUAL_WHOLE,
            false => usize::MAX,
        }
    }

    /// Brings up to `count` of the oldest states into memory, where they stay until they are dropped or this is called
    /// again, and says how many of them are there now.
    pub fn ready(&mut self, count: usize) -> Result<usize, Shortage> {
        let most = if self.dense { DENSE_READY * self.per_chunk - self.taken } else { usize::MAX };
        let count = count.min(self.len).min(most);
        let wanted = (self.taken + count).div_ceil(self.per_chunk);
        self.ready = 0;
        while self.ready < wanted {
            if let Err(shortage) = self.bring(self.ready) {
                // A part is enough; it is the rest that waits.
                return if self.ready == 0 { Err(shortage) } else { Ok(self.ready * self.per_chunk - self.taken) };
            }
            self.ready += 1;
        }
        Ok(count)
    }

    /// Copies `count` states from `place` on into `out`, which is cleared. They must be in memory.
    pub fn read(&self, place: usize, count: usize, out: &mut Vec<u32>) {
        out.clear();
        out.reserve(count * self.width);
        for (number, run) in self.runs(place, count) {
            let words = &self.words(number)[run.start * self.width..run.end * self.width];
            out.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        }
    }

    /// The same where nobody else has the queue, which takes less time.
    pub fn read_alone(&mut self, place: usize, count: usize, out: &mut Vec<u32>) {
        out.clear();
        for (number, run) in self.runs(place, count) {
            let Chunk::Whole(whole) = &mut self.chunks[number] else { unreachable!("the chunk waits elsewhere") };
            let words = whole.words_alone(self.width);
            out.extend_from_slice(&words[run.start * self.width..run.end * self.width]);
        }
    }

    /// Drops the `count` oldest states; what else was brought into memory stays there.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len);
        self.len -= count;
        self.taken += count;
        while self.taken >= self.per_chunk {
            self.taken -= self.per_chunk;
            self.ready = self.ready.saturating_sub(1);
            match self.chunks.pop_front() {
                // It stays charged to the grant: memory freed between other allocations is not returned to the
                // system, so giving the bytes back would let others take them twice.
                Some(Chunk::Whole(whole)) => self.spare.push(whole.take_apart().0),
                other => unreachable!("states were dropped that were not in memory: {other:?}"),
            }
        }
    }

    /// Copies states from `place` on into `out`, which is cleared: at most `count`, and as far as they lie in one chunk. That may be
    /// anywhere, and stays there.
    pub fn look(&self, place: usize, count: usize, out: &mut Vec<u32>) -> Result<(), SpillError> {
        let Some((number, run)) = self.runs(place, count.min(self.len - place)).next() else {
            out.clear();
            return Ok(());
        };
        self.copy_chunk(number, out)?;
        out.truncate(run.end * self.width);
        out.drain(..run.start * self.width);
        Ok(())
    }

    /// Copies a chunk, wherever it is, into `out`, which is cleared.
    fn copy_chunk(&self, number: usize, out: &mut Vec<u32>) -> Result<(), SpillError> {
        out.clear();
        let words = self.per_chunk * self.width;
        let loaded = |word: &AtomicU32| word.load(Ordering::Relaxed);
        match &self.chunks[number] {
            Chunk::Whole(whole) => out.extend(whole.words(self.width).iter().map(loaded)),
            Chunk::Folded(folded) => {
                let whole: Vec<AtomicU32> = (0..words).map(|_| AtomicU32::new(0)).collect();
                folded.unfold(self.width, &whole);
                out.extend(whole.iter().map(loaded));
            }
            Chunk::Disk(slot) => self.read_chunk(slot, out)?,
        }
        Ok(())
    }

    /// Reads a chunk that waits on disk.
    fn read_chunk(&self, slot: &Slot, out: &mut Vec<u32>) -> Result<(), SpillError> {
        out.resize(self.per_chunk * self.width, 0);
        self.spill.as_ref().expect("it wrote the chunk").read(slot, bytemuck::cast_slice_mut(out))
    }

    /// Writes the `count` oldest states.
    pub fn save(&self, count: usize, out: &mut dyn Write) -> io::Result<()> {
        assert!(count <= self.len);
        put_number(out, count as u64)?;
        let (mut at, end, mut words) = (self.taken, self.taken + count, Vec::new());
        while at < end {
            let chunk = at / self.per_chunk;
            let states = end.min((chunk + 1) * self.per_chunk) - at;
            let range = at % self.per_chunk * self.width..(at % self.per_chunk + states) * self.width;
            self.copy_chunk(chunk, &mut words)?;
            put_words(out, words[range].iter().copied())?;
            at += states;
        }
        Ok(())
    }

    /// Adds states that were written.
    pub fn load(&mut self, from: &mut dyn Read) -> Result<(), Unloaded> {
        let (mut left, mut state) = (take_number(from)?, vec![0; self.width]);
        while left > 0 {
            let count = left.min(self.per_chunk as u64) as usize;
            let first = self.extend(count)?;
            for place in first..first + count {
                take_words(from, &mut state)?;
                self.write_all(place, std::iter::once(&state[..]));
            }
            left -= count as u64;
        }
        Ok(())
    }

    fn words(&self, chunk: usize) -> &[AtomicU32] {
        match &self.chunks[chunk] {
            Chunk::Whole(whole) => whole.words(self.width),
            Chunk::Folded(_) | Chunk::Disk(_) => unreachable!("the chunk waits elsewhere"),
        }
    }

    /// Makes sure that a chunk is in memory, or will be when it is read.
    fn bring(&mut self, chunk: usize) -> Result<(), Shortage> {
        if matches!(self.chunks[chunk], Chunk::Whole(_)) {
            return Ok(());
        }
        let words = self.buffer(self.chunks.len() - 1)?;
        if let Chunk::Disk(slot) = &self.chunks[chunk] {
            let mut read = Vec::new();
            if let Err(error) = self.read_chunk(slot, &mut read) {
                self.spare.push(words);
                return Err(Shortage::Disk(error));
            }
            words.iter().zip(read).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        }
        // A chunk of the same kind for a moment, so that what is there can be moved.
        let place = &mut self.chunks[chunk];
        *place = match std::mem::replace(place, Chunk::Whole(Whole::empty(Box::default()))) {
            Chunk::Folded(folded) => Chunk::Whole(Whole::unfolding(words, folded, self.per_chunk)),
            Chunk::Disk(slot) => {
                if let Some(spill) = &mut self.spill {
                    spill.release(slot);
                }
                Chunk::Whole(Whole::empty(words))
            }
            Chunk::Whole(_) => unreachable!("just seen"),
        };
        Ok(())
    }

    /// A buffer for one chunk: a spare one, that of a chunk that is folded, a new one, or one that is emptied. The first `complete` chunks were filled.
    fn buffer(&mut self, complete: usize) -> Result<Box<[AtomicU32]>, Shortage> {
        if let Some(buffer) = self.spare.pop() {
            return Ok(buffer);
        }
        // The youngest full chunk in memory will be needed last. The first ones are being read.
        let movable = self.ready.max(1)..complete;
        let is_folded = |chunk: &usize| matches!(&self.chunks[*chunk], Chunk::Whole(whole) if whole.is_folded());
        if let Some(chunk) = movable.clone().rev().find(is_folded) {
            return Ok(self.leave_folded(chunk));
        }
        let words = self.per_chunk * self.width;
        if self.grant.take(words as u64 * 4) {
            self.buffers += 1;
            return Ok((0..words).map(|_| AtomicU32::new(0)).collect());
        }
        self.emptied(movable)
    }

    /// The buffer of one of these chunks, whose contents are folded now or go to disk.
    fn emptied(&mut self, movable: Range<usize>) -> Result<Box<[AtomicU32]>, Shortage> {
        let is_whole = |chunk: &usize| matches!(self.chunks[*chunk], Chunk::Whole(_));
        let chunk = movable.rev().find(is_whole).ok_or(Shortage::Memory)?;
        let Chunk::Whole(whole) = &self.chunks[chunk] else { unreachable!("just found") };
        let Some(spill) = &mut self.spill else {
            let folded = whole.fold(self.width, &self.arena);
            return if folded { Ok(self.leave_folded(chunk)) } else { Err(Shortage::Memory) };
        };
        let words = whole.words(self.width).iter();
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        if bytes.len() > SLOT {
            return Err(Shortage::Memory);
        }
        let slot = spill.put(&bytes).map_err(Shortage::Disk)?;
        match std::mem::replace(&mut self.chunks[chunk], Chunk::Disk(slot)) {
            Chunk::Whole(whole) => Ok(whole.take_apart().0),
            Chunk::Folded(_) | Chunk::Disk(_) => unreachable!("just found"),
        }
    }

    /// The buffer of a chunk that is folded.
    fn leave_folded(&mut self, chunk: usize) -> Box<[AtomicU32]> {
        let place = &mut self.chunks[chunk];
        let Chunk::Whole(whole) = std::mem::replace(place, Chunk::Whole(Whole::empty(Box::default()))) else {
            unreachable!("only those that are whole can leave a buffer")
        };
        let (words, folded) = whole.take_apart();
        *place = Chunk::Folded(folded.expect("it is folded"));
        words
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.grant.give_back((self.buffers * self.per_chunk * self.width * 4) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::disk::faulty::Faulty;

    /// Adds states numbered from `next`.
    fn add(queue: &mut Queue, next: &mut u32, count: usize) -> Result<(), Shortage> {
        let width = queue.width as u32;
        let first = queue.extend(count)?;
        let states: Vec<u32> =
            (*next..*next + count as u32).flat_map(|number| (0..width).map(move |word| number ^ word)).collect();
        queue.write_all(first, states.chunks_exact(queue.width));
        *next += count as u32;
        Ok(())
    }

    /// Takes up to `count` states, which must be those numbered from `next`.
    fn take(queue: &mut Queue, next: &mut u32, count: usize) -> Result<usize, Shortage> {
        let (ready, mut out) = (queue.ready(count)?, Vec::new());
        for place in (0..ready).step_by(100) {
            queue.read(0, (ready - place).min(100), &mut out);
            for state in out.chunks(queue.width) {
                assert!(state.iter().enumerate().all(|(word, &value)| value == *next ^ word as u32));
                *next += 1;
            }
            queue.advance((ready - place).min(100));
        }
        Ok(ready)
    }

    /// A wave is worked off in parts, and each part finds new states.
    #[test]
    fn what_was_made_ready_stays_while_others_are_folded_or_spilled() {
        for (width, chunks, spilling) in [(20, 1_000, false), (3, 40, false), (10, 40, true)] {
            let budget = Budget::new(chunks * SLOT as u64);
            let spill = spilling.then(|| Spill::on(Box::new(Faulty::sound()), Grant::unlimited()));
            let mut queue = Queue::new(width, budget.grant("queue", u64::MAX), spill);
            let (mut next_in, mut next_out, mut out) = (0, 0, Vec::new());
            (0..100).for_each(|_| add(&mut queue, &mut next_in, 1_000).unwrap());
            while next_out < 300_000 {
                let ready = queue.ready(20_000).unwrap();
                for part in (0..ready).step_by(1_000) {
                    let count = (ready - part).min(1_000);
                    queue.read(0, count, &mut out);
                    assert!(out.chunks(width).zip(next_out..).all(|(state, next)| state[1] == next ^ 1));
                    next_out += count as u32;
                    add(&mut queue, &mut next_in, count).unwrap();
                    queue.advance(count);
                }
            }
        }
    }

    /// With differences where there is no disk.
    fn check(width: usize, ram_chunks: u64, disk_chunks: u64) -> bool {
        let budget = Budget::new(ram_chunks * SLOT as u64);
        let disk = Budget::new(disk_chunks * SLOT as u64);
        let spill = || Spill::on(Box::new(Faulty::sound()), disk.grant("spill", u64::MAX));
        let mut queue = Queue::new(width, budget.grant("queue", u64::MAX), (disk_chunks > 0).then(spill));
        let (mut next_in, mut next_out) = (0u32, 0u32);
        // Add more than is taken, then drain.
        for round in 0..60 {
            for _ in 0..40 {
                if add(&mut queue, &mut next_in, 100).is_err() {
                    return false;
                }
            }
            for _ in 0..if round % 2 == 0 { 3 } else { 9 } {
                assert!(take(&mut queue, &mut next_out, 333).unwrap() > 0);
            }
        }
        while !queue.is_empty() {
            assert!(take(&mut queue, &mut next_out, 100).unwrap() > 0);
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
            let most = (240_000 * width * 4 / SLOT) as u64;
            assert!(check(width, most * 6 / 10 + 8, 0), "width {width}: as differences");
            assert!(check(width, 4, 10_000), "width {width}: spilling");
        }
    }

    #[test]
    fn what_was_brought_into_memory_stays_while_others_come() {
        let budget = Budget::new(8 * SLOT as u64);
        let spill = Spill::on(Box::new(Faulty::sound()), Grant::unlimited());
        let mut queue = Queue::new(4, budget.grant("queue", u64::MAX), Some(spill));
        let (mut next_in, mut next_out, mut out) = (0, 0, Vec::new());
        (0..600).for_each(|_| add(&mut queue, &mut next_in, 100).unwrap());
        for _ in 0..10 {
            let mut ready = queue.ready(15_000).unwrap();
            while ready > 0 {
                let part = ready.min(1000);
                queue.read(0, part, &mut out);
                for state in out.chunks(4) {
                    assert_eq!(state[0], next_out);
                    next_out += 1;
                }
                queue.advance(part);
                ready -= part;
                add(&mut queue, &mut next_in, 1500).unwrap();
            }
        }
    }

    #[test]
    fn running_out_of_memory_and_disk_is_an_answer() {
        assert!(!check(6, 3, 2));
    }

    #[test]
    fn a_disk_that_fails_to_write_or_to_read_is_an_answer() {
        for (writes_left, reads_left) in [(1, usize::MAX), (usize::MAX, 1)] {
            let budget = Budget::new(4 * SLOT as u64);
            let faulty = Faulty::after(writes_left, reads_left);
            let mut queue =
                Queue::new(4, budget.grant("queue", u64::MAX), Some(Spill::on(Box::new(faulty), Grant::unlimited())));
            let (mut next_in, mut next_out) = (0, 0);
            let added = (0..1_000).try_for_each(|_| add(&mut queue, &mut next_in, 100));
            let taken = (0..1_000).try_for_each(|_| take(&mut queue, &mut next_out, 100).map(|_| ()));
            let failure = added.and(taken).unwrap_err();
            assert!(matches!(failure, Shortage::Disk(SpillError::Io(_))), "{failure:?}");
        }
    }
}
