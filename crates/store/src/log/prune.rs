//! A log forgets how states were found that no waiting state descends from.
//!
//! Only the ways to states that wait will ever be asked for, and those soon have few ancestors: the entries of a level are fewer
//! the further back it lies. So now and then, between two levels, everything else is taken out, in two passes. From the last
//! entry to the first, who waits keeps its parent, who is kept keeps its own. From the first to the last, what is kept is written anew,
//! with numbers that count what is kept; states that wait lose the same number all of them, so from outside nothing
//! has changed. An entry that is written anew takes no more than those that were taken out before it, but for the few bytes that are left
//! free at the end of chunks.
//!
//! A log is pruned when it is twice as long as after the last time, so that costs a constant for each state. There is no need to on disk.

use super::entries::{self, Entries, LONGEST, Last};
use super::{Chunk, Content, StepLog};
use crate::disk::SLOT;
use crate::entropy;
use crate::meter;
use std::borrow::Cow;

/// One chunk more for so many may be needed while entries are written anew, and those beside them.
const CHUNKS_PER_EXTRA: usize = 1024;
const EXTRA_CHUNKS: usize = 2;
/// A log is pruned for the first time when it has so many chunks.
pub(super) const FIRST_PRUNING: usize = 6;
/// Less memory is not worth giving back.
const MUCH_SPARE: usize = 4 * SLOT;

impl StepLog {
    /// Is it worth pruning?
    pub fn is_long(&self) -> bool {
        self.spill.is_none() && self.chunks.len() >= self.prune_at
    }

    /// Forgets how states before `waiting` were found, unless a state from there on descends from them. `initial` is the number of
    /// initial states. Where there is no memory for it, nothing happens.
    pub fn prune(&mut self, waiting: u64, initial: u64) {
        let entries = (self.len - self.gone) as usize;
        let extra = EXTRA_CHUNKS + self.chunks.len() / CHUNKS_PER_EXTRA;
        let missing = extra.saturating_sub(self.spare.len());
        let steps = self.chunk_ends().map(|(chunk, end, parent)| chunk.steps(end, parent)).max().unwrap_or(0);
        let beside = ((entries + steps) / 8 + self.chunk_bytes) as u64;
        if !self.grant.take((missing * self.chunk_bytes) as u64) {
            return;
        }
        self.spare.extend((0..missing).map(|_| vec![0; self.chunk_bytes].into_boxed_slice()));
        if !self.grant.take(beside) {
            return;
        }
        let kept = self.ancestors((waiting - self.gone) as usize, entries);
        let packed = self.packed_bytes();
        if packed == 0 || self.has_room_for(&kept) {
            let starts = self.starts_left.unwrap_or(initial) as usize;
            self.starts_left = Some((0..starts).filter(|&number| is_kept(&kept, number)).count() as u64);
            self.write_anew(&kept);
            self.grant.give_back(packed);
            self.prune_at = (2 * self.chunks.len()).max(FIRST_PRUNING);
        }
        self.grant.give_back(beside);
        drop(kept);
        self.give_back_spare();
    }

    /// What is not needed any more is for others.
    fn give_back_spare(&mut self) {
        let bytes = self.spare.len() * self.chunk_bytes;
        // What the allocator keeps is in no ledger.
        if bytes >= MUCH_SPARE && meter::TRIMS {
            self.spare.clear();
            meter::trim();
            self.grant.give_back(bytes as u64);
        }
    }

    fn packed_bytes(&self) -> u64 {
        let packed = |chunk: &Chunk| if let Content::Packed(packed) = &chunk.content { packed.len() } else { 0 };
        self.chunks.iter().map(packed).sum::<usize>() as u64
    }

    /// Makes sure that what is kept finds room beside what is there: chunks that are packed leave no buffer.
    fn has_room_for(&mut self, kept: &[u64]) -> bool {
        let (mut renumbering, mut pieces, mut last) = (Renumbering::default(), 0, Last::before(0));
        for chunk in &self.chunks {
            renumbering.go_on(chunk, kept, |parent, position| {
                let mut taken = 0;
                entries::put(&mut last, parent, position, &mut [0; LONGEST], &mut taken);
                pieces += taken;
            });
        }
        // The first entry of a chunk is told as it is.
        let missing = (pieces.div_ceil(self.chunk_pieces() - 2 * LONGEST) + 1).saturating_sub(self.spare.len());
        let granted = self.grant.take((missing * self.chunk_bytes) as u64);
        if granted {
            self.spare.extend((0..missing).map(|_| vec![0; self.chunk_bytes].into_boxed_slice()));
        }
        granted
    }

    /// The chunks, each with the number and the parent of the entry that comes after those before its end.
    fn chunk_ends(&self) -> impl DoubleEndedIterator<Item = (&Chunk, u64, u64)> {
        (0..self.chunks.len()).map(|at| match self.chunks.get(at + 1) {
            Some(next) => (&self.chunks[at], next.first_number, next.parent_before),
            None => (&self.chunks[at], self.len - self.gone, self.last.parent),
        })
    }

    /// One bit for each entry from which one at `waiting` or behind it descends.
    fn ancestors(&self, waiting: usize, entries: usize) -> Vec<u64> {
        let mut kept = vec![0u64; entries.div_ceil(64)];
        (waiting..entries).for_each(|number| keep(&mut kept, number));
        let mut steps = Steps::default();
        for (chunk, end, parent) in self.chunk_ends().rev() {
            steps.take(chunk.entries(&chunk.loaded()), chunk.parent_before, chunk.steps(end, parent));
            steps.keep_parents(end as usize, parent as usize, &mut kept);
        }
        kept
    }

    /// Writes the entries that are kept, with numbers that count those.
    fn write_anew(&mut self, kept: &[u64]) {
        let (old, len) = (std::mem::take(&mut self.chunks), self.len);
        (self.len, self.last) = (self.gone, Last::before(0));
        let mut renumbering = Renumbering::default();
        for chunk in old {
            renumbering.go_on(&chunk, kept, |parent, position| self.write_one(parent, position));
            if let Content::Ram(buffer) = chunk.content {
                self.spare.push(buffer);
            }
        }
        self.gone = len - (self.len - self.gone);
        self.len = len;
    }

    /// Like `push`, into chunks that are there already.
    fn write_one(&mut self, parent: u64, position: u32) {
        if self.chunks.last().is_none_or(|chunk| chunk.pieces + LONGEST > self.chunk_pieces()) {
            let buffer = self.spare.pop().expect("there are enough chunks");
            self.begin_chunk(buffer);
        }
        let Some(Chunk { pieces, content: Content::Ram(buffer), .. }) = self.chunks.last_mut() else {
            unreachable!("the last chunk is in memory")
        };
        entries::put(&mut self.last, parent, position, buffer, pieces);
        self.len += 1;
    }
}

/// The parents of the entries of a chunk, to be read backwards: for each a one, behind as many zeros as it has steps from the parent
/// of the entry before it to its own.
#[derive(Default)]
struct Steps {
    bits: Vec<u64>,
    len: usize,
}

impl Steps {
    /// Those of entries that come after one with the parent `before`; `len` is how many steps and entries there are.
    fn take(&mut self, entries: Entries, mut before: u64, len: usize) {
        self.bits.clear();
        self.bits.resize(len.div_ceil(64), 0);
        self.len = 0;
        for (parent, _) in entries {
            self.len += (parent - before) as usize;
            before = parent;
            self.bits[self.len / 64] |= 1 << (self.len % 64);
            self.len += 1;
        }
    }

    /// Keeps the parents of those entries before `number` that are kept; the last of them has this parent.
    fn keep_parents(&self, mut number: usize, mut parent: usize, kept: &mut [u64]) {
        let mut at = self.len;
        while at > 0 {
            let left = (at - 1) % 64 + 1;
            let mut bits = self.bits[(at - 1) / 64] & u64::MAX >> (64 - left);
            let ones = bits.count_ones() as usize;
            // Of old entries few are kept.
            if count_kept(kept, number - ones, number) > 0 {
                let (mut above, mut parent) = (left, parent);
                for number in (number - ones..number).rev() {
                    let place = bits.ilog2() as usize;
                    bits ^= 1 << place;
                    parent -= above - 1 - place;
                    above = place;
                    if is_kept(kept, number) && parent < number {
                        keep(kept, parent);
                    }
                }
            }
            (at, number, parent) = (at - left, number - ones, parent - (left - ones));
        }
    }
}

/// New numbers for the parents of entries that are kept, chunk by chunk.
#[derive(Default)]
struct Renumbering {
    /// Entries that were looked at.
    number: usize,
    /// The entries up to `passed` that are kept: the new number of the one that is there.
    passed: usize,
    rank: u64,
}

impl Renumbering {
    /// The parents and positions of the entries of the next chunk that are kept.
    fn go_on(&mut self, chunk: &Chunk, kept: &[u64], mut each: impl FnMut(u64, u32)) {
        for (parent, position) in chunk.entries(&chunk.loaded()) {
            if is_kept(kept, self.number) {
                self.rank += count_kept(kept, self.passed, parent as usize);
                self.passed = parent as usize;
                each(self.rank, position);
            }
            self.number += 1;
        }
    }
}

impl Chunk {
    /// Its entries, unpacked.
    fn loaded(&self) -> Cow<'_, [u8]> {
        match &self.content {
            Content::Ram(buffer) => Cow::Borrowed(&buffer[..self.bytes()]),
            Content::Packed(packed) => Cow::Owned(entropy::unpack(packed, self.bytes())),
            Content::Disk(_) => unreachable!("nothing is pruned on disk"),
        }
    }

    /// Steps from parent to parent, and entries, up to this number and its parent.
    fn steps(&self, end: u64, parent: u64) -> usize {
        (end - self.first_number + parent - self.parent_before) as usize
    }

    fn entries<'a>(&self, loaded: &'a [u8]) -> Entries<'a> {
        Entries::of(loaded, self.pieces, Last::before(self.parent_before))
    }
}

fn keep(kept: &mut [u64], number: usize) {
    kept[number / 64] |= 1 << (number % 64);
}

fn is_kept(kept: &[u64], number: usize) -> bool {
    kept[number / 64] >> (number % 64) & 1 == 1
}

/// How many are kept of those from `first` to before `end`.
fn count_kept(kept: &[u64], first: usize, end: usize) -> u64 {
    let upto = |number: usize| match number % 64 {
        0 => 0,
        bits => (kept[number / 64] & ((1 << bits) - 1)).count_ones() as u64,
    };
    let whole: u64 = kept[first / 64..end / 64].iter().map(|word| word.count_ones() as u64).sum();
    whole + upto(end) - upto(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Grant};
    use plimsoll_ir::random::Draw;

    /// A log of a random breadth-first search, pruned after every level or as often as it asks for it, and its twin, which is not.
    fn search(seed: u64, always: bool) -> u64 {
        let mut draw = Draw::new(seed);
        // Of every other log chunks are packed.
        let budget = Budget::new(64 << 20);
        assert!(seed.is_multiple_of(2) || budget.grant("others", 64 << 20).take(40 << 20));
        let mut log = StepLog::new(budget.grant("log", 64 << 20), None);
        let mut twin = StepLog::new(Grant::unlimited(), None);
        let initial = 1 + draw.below(3);
        for position in 0..initial {
            log.push(0, position as u32).unwrap();
            twin.push(0, position as u32).unwrap();
        }
        let (mut expanded, mut pruned) = (0, 0);
        for level in 0..40 {
            let end = log.len();
            let width = (end - expanded).max(1);
            let mut piece = super::super::Piece::default();
            for parent in expanded..end {
                // About as many again as there were, up to some thousands.
                let children = if width < 3_000 { draw.below(4) } else { draw.below(3) };
                let children = if parent + 1 == end && log.len() == end { children.max(1) } else { children };
                for child in 0..children {
                    let position = if draw.below(50) == 0 { 40 } else { child as u32 * 3 };
                    twin.push(parent, position).unwrap();
                    piece.push(parent, position);
                }
                if draw.below(9) == 0 {
                    log.append(&piece).unwrap();
                    piece.clear();
                }
            }
            log.append(&piece).unwrap();
            expanded = end;
            assert_eq!((log.len(), twin.len()), (twin.len(), log.len()), "level {level}");
            if always || log.is_long() {
                log.prune(expanded, initial);
                pruned = log.gone;
            }
            for number in [expanded, (expanded + log.len()) / 2, log.len() - 1] {
                if number < log.len() {
                    assert_eq!(
                        log.path(number, initial).unwrap(),
                        twin.path(number, initial).unwrap(),
                        "level {level}"
                    );
                }
            }
        }
        pruned
    }

    #[test]
    fn ways_to_what_waits_stay() {
        for seed in 0..5 {
            assert!(search(seed, true) > 0);
            search(seed, false);
        }
    }

    #[test]
    fn without_memory_everything_stays() {
        let budget = Budget::new(SLOT as u64);
        let mut log = StepLog::new(budget.grant("log", u64::MAX), None);
        log.push(0, 0).unwrap();
        (0..9_000).for_each(|parent| (0..2).for_each(|child| log.push(parent, child).unwrap()));
        let before = log.path(18_000, 1).unwrap();
        log.prune(9_000, 1);
        assert_eq!((log.gone, log.path(18_000, 1).unwrap()), (0, before));
        drop(log);
        assert_eq!(budget.used_bytes(), 0);
    }

    /// Whether chunks are packed or not, and others may have what it does not need any more.
    #[test]
    fn a_long_search_has_a_short_log() {
        for others in [0, 30] {
            let budget = Budget::new(64 * SLOT as u64);
            let taken = budget.grant("others", u64::MAX);
            assert!(taken.take(others * SLOT as u64));
            search_long(&budget);
            assert!(budget.used_bytes() <= others * SLOT as u64, "{} bytes", budget.used_bytes());
        }
    }

    fn search_long(budget: &Budget) {
        let mut log = StepLog::new(budget.grant("log", u64::MAX), None);
        log.push(0, 0).unwrap();
        let (mut expanded, mut draw) = (0, Draw::new(7));
        while log.len() < 3_000_000 {
            let end = log.len();
            for parent in expanded..end {
                let children = if end - expanded < 1_000 { 2 } else { draw.below(3) };
                (0..children).for_each(|child| log.push(parent, child as u32).unwrap());
            }
            if log.len() == end {
                log.push(end - 1, 0).unwrap();
            }
            expanded = end;
            if log.is_long() {
                log.prune(expanded, 1);
            }
        }
        assert!(log.chunks.len() <= FIRST_PRUNING, "{} chunks", log.chunks.len());
        assert!(log.path(expanded, 1).unwrap().len() > 500);
        let held = (log.chunks.len() + MUCH_SPARE / SLOT) * SLOT;
        assert!(log.grant.used_bytes() <= held as u64, "{} for {held}", log.grant.used_bytes());
    }
}
