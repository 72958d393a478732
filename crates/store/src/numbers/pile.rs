//! Records put aside in parts, by the leading bits of a hash; each part is read again in the order in which it was written.
//!
//! Parts are lists of chunks, which wait on disk if they may, else in memory.

use crate::budget::{Full, Grant};
use crate::disk::{SLOT, Shortage, Slot, Spill};

pub(super) const CHUNK_BYTES: usize = SLOT;
const CHUNK_WORDS: usize = SLOT / 4;

/// Records of `stride` words in parts.
#[derive(Debug)]
pub(super) struct Pile {
    stride: usize,
    parts: Vec<Part>,
    grant: Grant,
    spill: Option<Spill>,
}

#[derive(Debug, Default)]
struct Part {
    full: Vec<Chunk>,
    /// The chunk that is being filled; empty before the first record.
    last: Vec<u32>,
}

#[derive(Debug)]
enum Chunk {
    Ram(Vec<u32>),
    /// With so many words.
    Disk(Slot, usize),
}

impl Pile {
    /// An empty pile of so many parts, a power of two if records have hashes.
    pub fn new(stride: usize, parts: usize, grant: Grant, spill: Option<Spill>) -> Pile {
        Pile { stride, parts: (0..parts).map(|_| Part::default()).collect(), grant, spill }
    }

    /// Takes the buffers of all parts now, so that nobody else does.
    pub fn take_buffers(&mut self) -> Result<(), Full> {
        let room = CHUNK_WORDS.max(self.stride);
        for part in self.parts.iter_mut().filter(|part| part.last.capacity() == 0) {
            if !self.grant.take(room as u64 * 4) {
                return Err(Full);
            }
            part.last.reserve_exact(room);
        }
        Ok(())
    }

    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Leading bits of a hash that the part tells.
    pub fn part_bits(&self) -> u32 {
        self.parts.len().ilog2()
    }

    /// Puts a record, in two pieces, into the part of its hash.
    pub fn push(&mut self, hash: u64, key: &[u32], rest: &[u32]) -> Result<(), Shortage> {
        let part = (u128::from(hash) >> (u64::BITS - self.part_bits())) as usize;
        self.push_into(part, key, rest)
    }

    /// Puts a record into a part.
    pub fn push_into(&mut self, part: usize, key: &[u32], rest: &[u32]) -> Result<(), Shortage> {
        let Pile { stride, parts, grant, spill } = self;
        let Part { full, last } = &mut parts[part];
        // A record may be longer than a chunk: then it is one.
        let room = CHUNK_WORDS.max(*stride);
        if last.len() + *stride > room {
            let words = match spill {
                Some(spill) if room == CHUNK_WORDS => {
                    let slot = spill.put(bytemuck::cast_slice(last)).map_err(Shortage::Disk)?;
                    full.push(Chunk::Disk(slot, last.len()));
                    last.clear();
                    std::mem::take(last)
                }
                _ => {
                    full.push(Chunk::Ram(std::mem::take(last)));
                    Vec::new()
                }
            };
            *last = words;
        }
        if last.capacity() == 0 {
            if !grant.take(room as u64 * 4) {
                return Err(Shortage::Memory);
            }
            last.reserve_exact(room);
        }
        last.extend_from_slice(key);
        last.extend_from_slice(rest);
        Ok(())
    }

    /// Hands all records of a part to `each`, in order.
    pub fn visit(&mut self, part: usize, buffer: &mut Vec<u32>, mut each: impl FnMut(&[u32])) -> Result<(), Shortage> {
        let Pile { stride, parts, spill, .. } = self;
        for chunk in &parts[part].full {
            let words = match (chunk, &mut *spill) {
                (Chunk::Ram(words), _) => words.as_slice(),
                (Chunk::Disk(slot, words), Some(spill)) => {
                    buffer.resize(*words, 0);
                    spill.read(slot, bytemuck::cast_slice_mut(buffer)).map_err(Shortage::Disk)?;
                    buffer.as_slice()
                }
                (Chunk::Disk(..), None) => unreachable!("there is a disk if something is on it"),
            };
            words.chunks_exact(*stride).for_each(&mut each);
        }
        parts[part].last.chunks_exact(*stride).for_each(each);
        Ok(())
    }

    /// Gives back all that a part takes.
    pub fn clear(&mut self, part: usize) {
        let Pile { stride, parts, grant, spill } = self;
        let chunk_bytes = CHUNK_WORDS.max(*stride) as u64 * 4;
        let Part { full, last } = std::mem::take(&mut parts[part]);
        for chunk in full {
            match (chunk, &mut *spill) {
                (Chunk::Disk(slot, _), Some(spill)) => spill.release(slot),
                _ => grant.give_back(chunk_bytes),
            }
        }
        if last.capacity() > 0 {
            grant.give_back(chunk_bytes);
        }
    }
}

impl Drop for Pile {
    fn drop(&mut self) {
        (0..self.parts.len()).for_each(|part| self.clear(part));
    }
}
