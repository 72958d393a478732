//! How structures write themselves to a checkpoint and are made again from it: numbers, words and records, one after the
//! other, little-endian. Writing takes no memory but buffers of fixed size. Who reads can rely on it that the bytes are those
//! that were written, for they come in blocks with checksums; what cannot be right all the same is refused, not believed.

use crate::budget::Full;
use crate::disk::{Shortage, SpillError};
use std::io::{self, Read, Write};

/// Words that are written or read at a time.
const WORDS: usize = 1024;

/// Why a structure could not be made again.
#[derive(Debug)]
pub enum Unloaded {
    /// It has no room in memory.
    Memory,
    /// It has no room on disk, or the disk failed.
    Disk(SpillError),
    /// What was read cannot be what was written.
    Damaged(String),
}

impl Unloaded {
    pub fn damaged(what: impl Into<String>) -> Unloaded {
        Unloaded::Damaged(what.into())
    }
}

impl From<io::Error> for Unloaded {
    fn from(error: io::Error) -> Unloaded {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Unloaded::damaged("it ends too early"),
            io::ErrorKind::InvalidData => Unloaded::damaged(error.to_string()),
            _ => Unloaded::Disk(SpillError::Io(error)),
        }
    }
}

impl From<Full> for Unloaded {
    fn from(Full: Full) -> Unloaded {
        Unloaded::Memory
    }
}

impl From<Shortage> for Unloaded {
    fn from(shortage: Shortage) -> Unloaded {
        match shortage {
            Shortage::Memory => Unloaded::Memory,
            Shortage::Disk(error) => Unloaded::Disk(error),
        }
    }
}

impl From<SpillError> for io::Error {
    fn from(error: SpillError) -> io::Error {
        match error {
            SpillError::Full => io::Error::new(io::ErrorKind::QuotaExceeded, "the disk budget is used up"),
            SpillError::Io(error) => error,
            SpillError::Damaged => io::Error::new(io::ErrorKind::InvalidData, "what was spilled has changed"),
        }
    }
}

pub fn put_number(out: &mut dyn Write, number: u64) -> io::Result<()> {
    out.write_all(&number.to_le_bytes())
}

pub fn take_number(from: &mut dyn Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A number that is at most `most`.
pub fn take_below(from: &mut dyn Read, most: usize, what: &str) -> Result<usize, Unloaded> {
    let number = take_number(from)?;
    let fitting = usize::try_from(number).ok().filter(|&number| number <= most);
    fitting.ok_or_else(|| Unloaded::damaged(format!("{number} {what}")))
}

/// Writes words that somebody hands out one by one.
pub fn put_words(out: &mut dyn Write, words: impl Iterator<Item = u32>) -> io::Result<()> {
    let mut bytes = [0; WORDS * 4];
    let mut filled = 0;
    for word in words {
        bytes[filled..filled + 4].copy_from_slice(&word.to_le_bytes());
        filled += 4;
        if filled == bytes.len() {
            out.write_all(&bytes)?;
            filled = 0;
        }
    }
    out.write_all(&bytes[..filled])
}

/// Fills `words`.
pub fn take_words(from: &mut dyn Read, words: &mut [u32]) -> io::Result<()> {
    let mut bytes = [0; WORDS * 4];
    for words in words.chunks_mut(WORDS) {
        let bytes = &mut bytes[..words.len() * 4];
        from.read_exact(bytes)?;
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        }
    }
    Ok(())
}
