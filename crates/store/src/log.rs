//! How every state of a breadth-first search was found: an append-only list of (parent, which successor).
//!
//! States are numbered in the order they are found, which is the order they are expanded in. So parents
//! never decrease along the list, and an entry is the step to the next parent and the position among
//! that parent's successors: half a byte for most ([`entries`]), and less for chunks that are complete when memory gets short. Stores may
//! then forget, and no state carries a pointer. Where they do, the log can forget too ([`prune`]), and where even that is too much it keeps
//! some levels instead ([`milestones`]).

mod entries;
mod milestones;
mod prune;

use crate::budget::Grant;
use crate::disk::{SLOT, Shortage, Slot, Spill, SpillError};
use crate::entropy;
use crate::stream::{Unloaded, put_number, take_below, take_number};
use entries::{Entries, Indexed, LONGEST, Last};
pub use milestones::{Milestone, Milestones};
use std::io::{self, Read, Write};

/// Bytes of a chunk, in which there are two pieces each; and of one of a log that will be pruned and is short.
const CHUNK_BYTES: usize = SLOT;
const SHORT_BYTES: usize = SLOT / 4;
/// Not many entries take more pieces than this.
const USUAL: usize = 2;

/// Entries that one worker has made, to be appended in their turn.
#[derive(Debug)]
pub struct Piece {
    /// The first entry; the others are relative to it.
    first: Option<(u64, u32)>,
    last: Last,
    len: u64,
    bytes: Vec<u8>,
    /// Of four bits each.
    pieces: usize,
}

impl Default for Piece {
    fn default() -> Piece {
        Piece { first: None, last: Last::before(0), len: 0, bytes: Vec::new(), pieces: 0 }
    }
}

impl Piece {
    pub fn clear(&mut self) {
        (self.first, self.len, self.pieces) = (None, 0, 0);
    }

    /// Records that the next state is successor number `position` of state `parent`.
    #[inline]
    pub fn push(&mut self, parent: u64, position: u32) {
        self.len += 1;
        if self.first.is_none() {
            (self.first, self.last) = (Some((parent, position)), Last::after(parent, position));
            return;
        }
        if self.pieces + LONGEST > 2 * self.bytes.len() {
            self.bytes.resize(2 * self.bytes.len() + LONGEST, 0);
        }
        entries::put(&mut self.last, parent, position, &mut self.bytes, &mut self.pieces);
    }
}

/// How long a log was at some time.
#[derive(Clone, Copy, Debug)]
pub struct LogMark {
    len: u64,
    last_parent: u64,
    chunks: usize,
    /// Of the last chunk.
    pieces: usize,
}

/// The list. State numbers count from zero; the first ones are the initial states.
#[derive(Debug)]
pub struct StepLog {
    chunks: Vec<Chunk>,
    last: Last,
    /// Entries that were made, and how many of them are gone. Numbers within the log are less by those.
    len: u64,
    gone: u64,
    /// How many initial states are left, once some are gone.
    starts_left: Option<u64>,
    /// It is worth pruning when there are so many chunks.
    prune_at: usize,
    /// Entries should not take more than this, and levels that were kept instead.
    most_bytes: u64,
    milestones: Vec<Milestone>,
    spare: Vec<Box<[u8]>>,
    /// What chunks take before they are packed.
    chunk_bytes: usize,
    /// As small as can be whatever time that takes.
    dense: bool,
    grant: Grant,
    spill: Option<Spill>,
}

#[derive(Debug)]
struct Chunk {
    first_number: u64,
    /// The parent of the entry before the first.
    parent_before: u64,
    /// Of entries, in four bits each.
    pieces: usize,
    content: Content,
}

impl Chunk {
    fn bytes(&self) -> usize {
        self.pieces.div_ceil(2)
    }
}

#[derive(Debug)]
enum Content {
    Ram(Box<[u8]>),
    /// A chunk that is complete and stays in memory, at its [`entropy`].
    Packed(Vec<u8>),
    Disk(Slot),
}

impl StepLog {
    pub fn new(grant: Grant, spill: Option<Spill>) -> StepLog {
        let (chunks, spare) = (Vec::new(), Vec::new());
        StepLog {
            chunks,
            last: Last::before(0),
            len: 0,
            gone: 0,
            starts_left: None,
            prune_at: prune::FIRST_PRUNING,
            most_bytes: u64::MAX,
            milestones: Vec::new(),
            spare,
            chunk_bytes: CHUNK_BYTES,
            dense: false,
            grant,
            spill,
        }
    }

    /// The same, as small as can be whatever time that takes.
    pub fn dense(mut self) -> StepLog {
        self.dense = true;
        self
    }

    /// Small chunks will do: it is empty and will be pruned.
    pub fn expect_pruning(&mut self) {
        if self.spill.is_none() && self.chunks.is_empty() {
            self.chunk_bytes = SHORT_BYTES;
        }
    }

    /// Pieces of entries in a chunk, at most.
    fn chunk_pieces(&self) -> usize {
        2 * self.chunk_bytes
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory that it would take in addition for about so many more states.
    pub fn more_bytes(&self, count: usize) -> u64 {
        let most = self.chunk_pieces();
        let left = self.chunks.last().map_or(0, |chunk| most.saturating_sub(chunk.pieces + LONGEST));
        ((count * USUAL).saturating_sub(left).div_ceil(most) * self.chunk_bytes) as u64
    }

    /// Will it need more disk for about so many more states than there is?
    pub fn lacks_disk(&self, count: usize) -> bool {
        let is_full = |spill: &Spill| spill.left_bytes()[0] < self.chunk_bytes as u64;
        self.more_bytes(count) > 0 && self.spill.as_ref().is_some_and(is_full)
    }

    /// Records that the next state is successor number `position` of state `parent` (for an initial state:
    /// that it is initial state number `position`; its parent is 0 and means nothing).
    #[inline]
    pub fn push(&mut self, parent: u64, position: u32) -> Result<(), Shortage> {
        let parent = parent - self.gone;
        debug_assert!(parent >= self.last.parent);
        if self.chunks.last().is_none_or(|chunk| chunk.pieces + LONGEST > self.chunk_pieces()) {
            self.open_chunk()?;
        }
        let Some(Chunk { pieces, content: Content::Ram(buffer), .. }) = self.chunks.last_mut() else {
            unreachable!("the last chunk is in memory")
        };
        entries::put(&mut self.last, parent, position, buffer, pieces);
        self.len += 1;
        Ok(())
    }

    /// Appends the entries of a piece.
    pub fn append(&mut self, piece: &Piece) -> Result<(), Shortage> {
        let Some((parent, position)) = piece.first else { return Ok(()) };
        self.push(parent, position)?;
        let most = self.chunk_pieces();
        let Some(Chunk { pieces, content: Content::Ram(buffer), .. }) = self.chunks.last_mut() else {
            unreachable!("the last chunk is in memory")
        };
        if *pieces + piece.pieces < most {
            entries::append(&piece.bytes, piece.pieces, buffer, pieces);
            self.len += piece.len - 1;
            self.last = piece.last.less(self.gone);
            return Ok(());
        }
        let mut others = Entries::of(&piece.bytes, piece.pieces, Last::after(parent, position));
        others.try_for_each(|(parent, position)| self.push(parent, position))
    }

    /// The way to state `number`: positions of successors, beginning with that of the initial state.
    /// `initial` is the number of initial states.
    pub fn path(&mut self, number: u64, initial: u64) -> Result<Vec<u32>, SpillError> {
        let (mut number, initial) = (number - self.gone, self.starts_left.unwrap_or(initial));
        let mut path = Vec::new();
        let mut opened: Option<(usize, Indexed)> = None;
        loop {
            let chunk = self.chunks.partition_point(|chunk| chunk.first_number <= number) - 1;
            let (_, entries) = match opened.take_if(|(opened, _)| *opened == chunk) {
                Some(same) => opened.insert(same),
                None => opened.insert((chunk, self.index(chunk)?)),
            };
            let (parent, position) = entries.entry((number - self.chunks[chunk].first_number) as usize);
            path.push(position);
            if number < initial {
                path.reverse();
                return Ok(path);
            }
            number = parent;
        }
    }

    /// How long it is now.
    pub fn mark(&self) -> LogMark {
        let pieces = self.chunks.last().map_or(0, |chunk| chunk.pieces);
        LogMark { len: self.len, last_parent: self.last.parent, chunks: self.chunks.len(), pieces }
    }

    /// Writes what was there at `mark`. Logs that were pruned are not written.
    pub fn save(&mut self, mark: LogMark, out: &mut dyn Write) -> io::Result<()> {
        assert_eq!(self.gone, 0, "what forgets states is not written");
        put_number(out, mark.len)?;
        put_number(out, mark.last_parent)?;
        put_number(out, mark.chunks as u64)?;
        let mut loaded = Vec::new();
        for (number, chunk) in self.chunks[..mark.chunks].iter().enumerate() {
            let pieces = if number + 1 == mark.chunks { mark.pieces } else { chunk.pieces };
            let bytes = pieces.div_ceil(2);
            put_number(out, chunk.first_number)?;
            put_number(out, chunk.parent_before)?;
            put_number(out, pieces as u64)?;
            match &chunk.content {
                Content::Ram(buffer) => out.write_all(&buffer[..bytes])?,
                Content::Packed(packed) => out.write_all(&entropy::unpack(packed, bytes))?,
                Content::Disk(slot) => {
                    loaded.resize(chunk.bytes(), 0);
                    self.spill.as_mut().expect("it wrote the chunk").read(slot, &mut loaded)?;
                    out.write_all(&loaded[..bytes])?;
                }
            }
        }
        Ok(())
    }

    /// Reads what was written into a log that is empty.
    pub fn load(&mut self, from: &mut dyn Read) -> Result<(), Unloaded> {
        let (len, last_parent) = (take_number(from)?, take_number(from)?);
        let most = self.chunk_pieces();
        for _ in 0..take_number(from)? {
            self.open_chunk()?;
            let chunk = self.chunks.last_mut().expect("just opened");
            (chunk.first_number, chunk.parent_before) = (take_number(from)?, take_number(from)?);
            chunk.pieces = take_below(from, most, "entries in a chunk of the log")?;
            let bytes = chunk.bytes();
            let Content::Ram(buffer) = &mut chunk.content else { unreachable!("the last chunk is in memory") };
            from.read_exact(&mut buffer[..bytes])?;
        }
        let starts = self.chunks.iter().map(|chunk| chunk.first_number);
        if !starts.clone().is_sorted() || starts.clone().next().is_some_and(|first| first > 0) {
            return Err(Unloaded::damaged("the log is not in order"));
        }
        (self.len, self.last) = (len, Last::before(last_parent));
        Ok(())
    }

    fn open_chunk(&mut self) -> Result<(), Shortage> {
        let mut buffer = None;
        if let Some(chunk) = self.chunks.last_mut()
            && let Content::Ram(filled) = &chunk.content
        {
            let bytes = &filled[..chunk.bytes()];
            let elsewhere = match &mut self.spill {
                Some(spill) => match spill.put(bytes) {
                    Ok(slot) => Some(Content::Disk(slot)),
                    // It may stay.
                    Err(_) if self.grant.left_bytes() >= self.chunk_bytes as u64 => None,
                    Err(error) => return Err(Shortage::Disk(error)),
                },
                // That takes time, which nobody else can use meanwhile: mostly only once memory is half used up.
                None => (self.dense || self.grant.left_bytes() < self.grant.cap_bytes() / 2)
                    .then(|| entropy::pack(bytes))
                    .filter(|packed| packed.len() < self.chunk_bytes && self.grant.take(packed.len() as u64))
                    .map(Content::Packed),
            };
            if let Some(elsewhere) = elsewhere
                && let Content::Ram(filled) = std::mem::replace(&mut chunk.content, elsewhere)
            {
                buffer = Some(filled);
            }
        }
        let buffer = match buffer.or_else(|| self.spare.pop()) {
            Some(buffer) => buffer,
            None if self.grant.take(self.chunk_bytes as u64) => vec![0; self.chunk_bytes].into_boxed_slice(),
            None => return Err(Shortage::Memory),
        };
        self.begin_chunk(buffer);
        Ok(())
    }

    /// Goes on in this buffer. A chunk can be read without those before it.
    fn begin_chunk(&mut self, buffer: Box<[u8]>) {
        self.last = Last::before(self.last.parent);
        let (first_number, parent_before) = (self.len - self.gone, self.last.parent);
        self.chunks.push(Chunk { first_number, parent_before, pieces: 0, content: Content::Ram(buffer) });
    }

    /// The entries of a chunk.
    fn index(&mut self, chunk: usize) -> Result<Indexed, SpillError> {
        let chunk = &self.chunks[chunk];
        let bytes = match &chunk.content {
            Content::Ram(buffer) => buffer[..chunk.bytes()].to_vec(),
            Content::Packed(packed) => entropy::unpack(packed, chunk.bytes()),
            Content::Disk(slot) => {
                let mut bytes = vec![0; chunk.bytes()];
                self.spill.as_mut().expect("it wrote the chunk").read(slot, &mut bytes)?;
                bytes
            }
        };
        Ok(Indexed::new(bytes, chunk.pieces, Last::before(chunk.parent_before)))
    }
}

impl Drop for StepLog {
    fn drop(&mut self) {
        let held = self.chunks.iter().map(|chunk| match &chunk.content {
            Content::Ram(buffer) => buffer.len(),
            Content::Packed(packed) => packed.len(),
            Content::Disk(_) => 0,
        });
        let levels: u64 = self.milestones.iter().map(Milestone::reserved_bytes).sum();
        self.grant.give_back((held.sum::<usize>() + self.spare.len() * self.chunk_bytes) as u64 + levels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::disk::faulty::Faulty;
    use plimsoll_ir::random::Draw;

    #[test]
    fn paths_come_back_from_memory_and_from_disk() {
        for (spilling, bytes) in [(false, u64::MAX), (true, u64::MAX), (false, 10 * SLOT as u64)] {
            let disk = || Spill::on(Box::new(Faulty::sound()), Grant::unlimited());
            let mut log = StepLog::new(Budget::new(bytes).grant("log", bytes), spilling.then(disk));
            let mut twin: Vec<(u64, u32)> = vec![(0, 0), (0, 1), (0, 2)];
            let mut draw = Draw::new(0);
            while twin.len() < 400_000 {
                let random = draw.bits();
                let step = if random.is_multiple_of(1000) { random >> 40 & 500 } else { random >> 20 & 1 };
                let parent = (twin[twin.len() - 1].0 + step).min(twin.len() as u64 - 1);
                let position = if random.is_multiple_of(777) { 1 << 20 } else { (random >> 50) as u32 & 31 };
                twin.push((parent, position));
            }
            let (some, others) = twin.split_at(100_000);
            some.iter().for_each(|&(parent, position)| log.push(parent, position).unwrap());
            let mut piece = Piece::default();
            for entries in others.chunks(777) {
                piece.clear();
                entries.iter().for_each(|&(parent, position)| piece.push(parent, position));
                log.append(&piece).unwrap();
            }
            assert_eq!(log.len(), twin.len() as u64);
            let packed = log.chunks.iter().filter(|chunk| matches!(chunk.content, Content::Packed(_))).count();
            assert_eq!(packed > 0, bytes < u64::MAX, "only where memory gets short");
            for number in [0, 2, 3, 1000, 399_999] {
                let mut expected = vec![];
                let mut at = number;
                while at >= 3 {
                    expected.push(twin[at].1);
                    at = twin[at].0 as usize;
                }
                expected.push(twin[at].1);
                expected.reverse();
                assert_eq!(log.path(number as u64, 3).unwrap(), expected);
            }
        }
    }
}
