//! A disk in memory that fails on purpose, for tests: writes or reads are refused after some, written bits change, writes end
//! too soon, or they are lost without a word.

use super::Disk;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub struct Faulty {
    bytes: Mutex<Vec<u8>>,
    size: Arc<AtomicUsize>,
    writes_left: AtomicUsize,
    reads_left: AtomicUsize,
    syncs_left: AtomicUsize,
    /// This bit of what is written changes.
    flipped: Option<usize>,
    /// Whoever may not write is not told.
    silent: bool,
    /// Of what may not be written the first half is.
    short: bool,
}

impl Faulty {
    /// A disk on which nothing fails.
    pub fn sound() -> Faulty {
        Faulty::after(usize::MAX, usize::MAX)
    }

    /// A disk that fails after so many writes, and after so many reads.
    pub fn after(writes: usize, reads: usize) -> Faulty {
        Faulty {
            bytes: Mutex::default(),
            size: Arc::default(),
            writes_left: AtomicUsize::new(writes),
            reads_left: AtomicUsize::new(reads),
            syncs_left: AtomicUsize::new(usize::MAX),
            flipped: None,
            silent: false,
            short: false,
        }
    }

    /// A disk on which a bit changes, counted from the beginning.
    pub fn flipping(bit: usize) -> Faulty {
        Faulty { flipped: Some(bit), ..Faulty::sound() }
    }

    /// A disk that keeps so many writes and forgets the others.
    pub fn losing_writes_after(writes: usize) -> Faulty {
        Faulty { silent: true, ..Faulty::after(writes, usize::MAX) }
    }

    /// A disk that, after so many writes, keeps the first half of each and says that there is no space for the other.
    pub fn cutting_writes_after(writes: usize) -> Faulty {
        Faulty { short: true, ..Faulty::after(writes, usize::MAX) }
    }

    /// The same without a word.
    pub fn cutting_writes_in_silence_after(writes: usize) -> Faulty {
        Faulty { short: true, ..Faulty::losing_writes_after(writes) }
    }

    /// A disk that fails to sync after so many times.
    pub fn failing_to_sync_after(syncs: usize) -> Faulty {
        Faulty { syncs_left: AtomicUsize::new(syncs), ..Faulty::sound() }
    }

    /// How many bytes the file has, at any time.
    pub fn size(&self) -> Arc<AtomicUsize> {
        self.size.clone()
    }
}

/// Counts down; false at zero.
fn may(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

impl Disk for Faulty {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut all = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let may_write = may(&self.writes_left);
        let bytes = if may_write || !self.short { bytes } else { &bytes[..bytes.len() / 2] };
        let full = || io::Error::new(io::ErrorKind::StorageFull, "no space left on device");
        let told = if may_write || self.silent { Ok(()) } else { Err(full()) };
        if !may_write && !self.short {
            return told;
        }
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if all.len() < end {
            all.resize(end, 0);
            self.size.store(end, Ordering::Relaxed);
        }
        all[start..end].copy_from_slice(bytes);
        if let Some(bit) = self.flipped.filter(|bit| (start..end).contains(&(bit / 8))) {
            all[bit / 8] ^= 1 << (bit % 8);
        }
        told
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        if !may(&self.reads_left) {
            return Err(io::Error::other("input/output error"));
        }
        let all = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.get(offset as usize..offset as usize + bytes.len());
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut all = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let end = all.len().min((offset + bytes) as usize);
        // Where writes were lost there may be nothing.
        all[end.min(offset as usize)..end].fill(0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if may(&self.syncs_left) { Ok(()) } else { Err(io::Error::other("input/output error")) }
    }
}

/// One disk for several who use it. It takes no space back, as some files do not.
impl Disk for Arc<Faulty> {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        (**self).write_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        (**self).sync()
    }
}
