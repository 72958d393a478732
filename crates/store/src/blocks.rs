//! A file of checksummed blocks, written once from its beginning to its end and read the same way.
//!
//! Every block has its length, its checksum and its bytes; the checksum covers the number of the block and the length too,
//! so that blocks that changed places or were cut short are noticed. A block without bytes is the end: a file without
//! one was never finished. What is written counts against a grant of disk until the writer or, if that finished, whoever
//! asked it how much it was, gives it back.

use crate::budget::Grant;
use crate::disk::Disk;
use std::io::{self, Read, Write};

/// Bytes in a block, at most.
const BLOCK: usize = 64 << 10;
/// Length and checksum.
const HEAD: usize = 8;

/// The checksum of a block.
fn checksum(number: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(&(bytes.len() as u32).to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Writes a file. What is not finished gives its bytes back to the grant.
pub struct Writer<D: Disk> {
    disk: D,
    grant: Grant,
    number: u64,
    offset: u64,
    /// Room for a head, then the bytes of the block that is being filled.
    block: Vec<u8>,
}

impl<D: Disk> Writer<D> {
    pub fn new(disk: D, grant: Grant) -> Writer<D> {
        let mut block = Vec::with_capacity(HEAD + BLOCK);
        block.resize(HEAD, 0);
        Writer { disk, grant, number: 0, offset: 0, block }
    }

    /// Writes the end, waits until everything is safe, and returns how many bytes the file has; they stay charged.
    pub fn finish(mut self) -> io::Result<u64> {
        if self.block.len() > HEAD {
            self.write_block()?;
        }
        self.write_block()?;
        self.disk.sync()?;
        Ok(std::mem::take(&mut self.offset))
    }

    fn write_block(&mut self) -> io::Result<()> {
        let full = || io::Error::new(io::ErrorKind::StorageFull, "the disk budget is used up");
        let (head, bytes) = self.block.split_at_mut(HEAD);
        head[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&checksum(self.number, bytes).to_le_bytes());
        let len = self.block.len() as u64;
        if !self.grant.take(len) {
            return Err(full());
        }
        if let Err(error) = self.disk.write_at(&self.block, self.offset) {
            self.grant.give_back(len);
            return Err(error);
        }
        self.number += 1;
        self.offset += len;
        self.block.truncate(HEAD);
        Ok(())
    }
}

impl<D: Disk> Write for Writer<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() == HEAD + BLOCK {
            self.write_block()?;
        }
        let taken = bytes.len().min(HEAD + BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Blocks are written when they are full, and the rest at the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: Disk> Drop for Writer<D> {
    fn drop(&mut self) {
        self.grant.give_back(self.offset);
    }
}

/// Reads a file that was finished.
pub struct Reader<D: Disk> {
    disk: D,
    number: u64,
    offset: u64,
    block: Vec<u8>,
    /// How much of the block was read.
    taken: usize,
    ended: bool,
}

impl<D: Disk> Reader<D> {
    pub fn new(disk: D) -> Reader<D> {
        Reader { disk, number: 0, offset: 0, block: Vec::new(), taken: 0, ended: false }
    }

    /// Brings the next block into memory and checks it.
    fn read_block(&mut self) -> io::Result<()> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("block {} {what}", self.number));
        let mut head = [0; HEAD];
        self.disk.read_at(&mut head, self.offset)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let len = word(0) as usize;
        if len > BLOCK {
            return Err(damaged("has no sensible length"));
        }
        self.block.resize(len, 0);
        self.disk.read_at(&mut self.block, self.offset + HEAD as u64)?;
        if checksum(self.number, &self.block) != word(4) {
            return Err(damaged("is damaged"));
        }
        (self.number, self.offset, self.taken) = (self.number + 1, self.offset + (HEAD + len) as u64, 0);
        self.ended = len == 0;
        Ok(())
    }
}

impl<D: Disk> Read for Reader<D> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.block.len() && !self.ended {
            self.read_block()?;
        }
        let read = bytes.len().min(self.block.len() - self.taken);
        bytes[..read].copy_from_slice(&self.block[self.taken..][..read]);
        self.taken += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::disk::faulty::Faulty;
    use std::sync::Arc;

    fn content(len: usize) -> Vec<u8> {
        (0..len).map(|at| ((at * at) >> 7) as u8).collect()
    }

    fn write(disk: &Arc<Faulty>, grant: Grant, len: usize) -> io::Result<u64> {
        let mut writer = Writer::new(disk.clone(), grant);
        content(len).chunks(1013).try_for_each(|part| writer.write_all(part))?;
        writer.finish()
    }

    fn read(disk: &Arc<Faulty>) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        Reader::new(disk.clone()).read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn what_is_written_is_read() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 77] {
            let (disk, budget) = (Arc::new(Faulty::sound()), Budget::new(1 << 20));
            let written = write(&disk, budget.grant("file", u64::MAX), len).unwrap();
            assert_eq!(
                (written, budget.used_bytes()),
                (disk.size().load(std::sync::atomic::Ordering::Relaxed) as u64, written)
            );
            assert!(read(&disk).unwrap() == content(len), "{len}");
        }
    }

    #[test]
    fn whatever_fails_is_an_error_and_takes_no_disk() {
        let budget = Budget::new(2 * BLOCK as u64);
        for writes in 0..4 {
            let disk = Arc::new(Faulty::after(writes, usize::MAX));
            assert!(write(&disk, Grant::unlimited(), 3 * BLOCK).is_err());
            assert!(read(&disk).is_err(), "it was not finished");
        }
        assert!(write(&Arc::new(Faulty::failing_to_sync_after(0)), budget.grant("file", u64::MAX), 1).is_err());
        let refused = write(&Arc::new(Faulty::sound()), budget.grant("file", u64::MAX), 3 * BLOCK).unwrap_err();
        assert_eq!(refused.to_string(), "the disk budget is used up");
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn every_bit_that_changes_is_noticed() {
        let bits = (HEAD + 300 + HEAD) * 8;
        for bit in 0..bits {
            let disk = Arc::new(Faulty::flipping(bit));
            assert_eq!(write(&disk, Grant::unlimited(), 300).unwrap() * 8, bits as u64);
            assert!(read(&disk).is_err(), "bit {bit}");
        }
    }
}
