//! Temporary space on disk in slots of fixed size, within a budget of its own.
//!
//! The file has no name, so nothing is left behind however the process ends. Errors keep their cause:
//! a full disk is a verdict, and the message says which action on which folder failed.

use crate::budget::Grant;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes in a slot.
pub const SLOT: usize = 64 << 10;

/// What a spill file needs from the system; tests replace it by one that fails on purpose.
pub trait Disk: Send + Sync {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
}

impl Disk for File {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }
}

/// A slot that is in use; give it back to the spill it came from.
#[derive(Debug)]
pub struct Slot(u32);

/// Slots of [`SLOT`] bytes on disk.
pub struct Spill {
    disk: Box<dyn Disk>,
    grant: Grant,
    free: Vec<u32>,
    count: u32,
}

/// Why a slot could not be written or read.
#[derive(Debug)]
pub enum SpillError {
    /// The disk budget is used up.
    Full,
    Io(io::Error),
}

/// Why a structure that may spill cannot go on.
#[derive(Debug)]
pub enum Shortage {
    Memory,
    Disk(SpillError),
}

impl Spill {
    /// A nameless temporary file in `folder`.
    pub fn in_folder(folder: &Path, grant: Grant) -> io::Result<Spill> {
        let explain = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot create a temporary file in {}: {error}", folder.display()))
        };
        Ok(Spill::on(Box::new(tempfile::tempfile_in(folder).map_err(explain)?), grant))
    }

    pub fn on(disk: Box<dyn Disk>, grant: Grant) -> Spill {
        Spill { disk, grant, free: Vec::new(), count: 0 }
    }

    /// Writes `bytes` (at most a slot) and returns where they are.
    pub fn put(&mut self, bytes: &[u8]) -> Result<Slot, SpillError> {
        assert!(bytes.len() <= SLOT);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.count < u32::MAX && self.grant.take(SLOT as u64) => {
                self.count += 1;
                self.count - 1
            }
            None => return Err(SpillError::Full),
        };
        match self.disk.write_at(bytes, slot as u64 * SLOT as u64) {
            Ok(()) => Ok(Slot(slot)),
            Err(error) => {
                self.free.push(slot);
                Err(SpillError::Io(error))
            }
        }
    }

    /// Reads the first `bytes.len()` bytes of a slot.
    pub fn read(&mut self, slot: &Slot, bytes: &mut [u8]) -> Result<(), SpillError> {
        assert!(bytes.len() <= SLOT);
        self.disk.read_at(bytes, slot.0 as u64 * SLOT as u64).map_err(SpillError::Io)
    }

    pub fn release(&mut self, slot: Slot) {
        self.free.push(slot.0);
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.grant.give_back(self.count as u64 * SLOT as u64);
    }
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Spill({} slots, {} free)", self.count, self.free.len())
    }
}

#[cfg(test)]
pub mod faulty {
    //! A disk in memory that fails after a number of writes or of reads.
    use super::*;

    #[derive(Default)]
    pub struct Faulty {
        pub bytes: Vec<u8>,
        pub writes_left: usize,
        pub reads_left: usize,
    }

    impl Disk for Faulty {
        fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
            if self.writes_left == 0 {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
            }
            self.writes_left -= 1;
            let end = offset as usize + bytes.len();
            if self.bytes.len() < end {
                self.bytes.resize(end, 0);
            }
            self.bytes[offset as usize..end].copy_from_slice(bytes);
            Ok(())
        }

        fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
            if self.reads_left == 0 {
                return Err(io::Error::other("input/output error"));
            }
            self.reads_left -= 1;
            bytes.copy_from_slice(&self.bytes[offset as usize..][..bytes.len()]);
            Ok(())
        }
    }
}
