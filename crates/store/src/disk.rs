//! Temporary space on disk in slots of fixed size, within a budget of its own.
//!
//! Files have no name, so nothing is left behind however the process ends. Errors keep their cause:
//! a full disk is a verdict, and the message says which action on which folder failed. Whoever puts something into a slot
//! keeps its checksum, in memory: so what comes back is what was written last, or an error. Several folders, on several
//! devices if they are well chosen, take slots in turn. Slots are put and read through `&self`, by several workers at once.

#[cfg(any(test, feature = "faulty"))]
pub mod faulty;

use crate::budget::Grant;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes in a slot, where nobody says otherwise.
pub const SLOT: usize = 64 << 10;

/// What a file needs from the system; tests replace it by one that fails on purpose.
pub trait Disk: Send + Sync {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
    /// Gives back the space of what was written there, which is not read any more.
    fn discard(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Returns when everything written will still be there after a crash.
    fn sync(&self) -> io::Result<()>;
}

impl Disk for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(self, hole, offset, bytes)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A slot that is in use, and the checksum of what is in it; give it back to the spill it came from.
#[derive(Debug)]
pub struct Slot {
    place: u32,
    checksum: u32,
}

/// Slots on disk.
pub struct Spill {
    disks: Vec<Box<dyn Disk>>,
    slot_bytes: usize,
    grant: Grant,
    places: Mutex<Places>,
    /// Bytes written, bytes read, nanoseconds.
    traffic: [AtomicU64; 3],
}

#[derive(Debug, Default)]
struct Places {
    free: Vec<u32>,
    /// Those whose space was given back.
    hollow: Vec<u32>,
    count: u32,
    /// The system does not take space back.
    keeps: bool,
}

/// Free places are given back when little of the budget is left, which others have a part of: so many at a time, or as many as are left to all.
const MANY_FREE: usize = 1024;
const SHORT_SHARE: u64 = 3;

/// Why a slot could not be written or read.
#[derive(Debug)]
pub enum SpillError {
    /// The disk budget is used up.
    Full,
    Io(io::Error),
    /// What was read is not what was written.
    Damaged,
}

/// Why a structure that may spill cannot go on.
#[derive(Debug)]
pub enum Shortage {
    Memory,
    Disk(SpillError),
}

/// What tells whether bytes are those that were written.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

impl Spill {
    /// A nameless temporary file in each of `folders`.
    pub fn in_folders(folders: &[impl AsRef<Path>], slot_bytes: usize, grant: Grant) -> io::Result<Spill> {
        let open = |folder: &Path| {
            let file = tempfile::tempfile_in(folder).map_err(|error| {
                let message = format!("cannot create a temporary file in {}: {error}", folder.display());
                io::Error::new(error.kind(), message)
            })?;
            Ok(Box::new(file) as Box<dyn Disk>)
        };
        let disks = folders.iter().map(|folder| open(folder.as_ref())).collect::<io::Result<_>>()?;
        Ok(Spill::over(disks, slot_bytes, grant))
    }

    /// Slots of the usual size on one disk.
    pub fn on(disk: Box<dyn Disk>, grant: Grant) -> Spill {
        Spill::over(vec![disk], SLOT, grant)
    }

    /// Slots of `slot_bytes` on `disks`, in turn.
    pub fn over(disks: Vec<Box<dyn Disk>>, slot_bytes: usize, grant: Grant) -> Spill {
        assert!(!disks.is_empty() && slot_bytes > 0);
        Spill { disks, slot_bytes, grant, places: Mutex::default(), traffic: Default::default() }
    }

    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// What can still be written, of so much.
    pub fn left_bytes(&self) -> [u64; 2] {
        let free = (self.places().free.len() * self.slot_bytes) as u64;
        [self.grant.left_bytes() + free, self.grant.cap_bytes()]
    }

    /// Writes `bytes` (at most a slot) and returns where they are.
    pub fn put(&self, bytes: &[u8]) -> Result<Slot, SpillError> {
        assert!(bytes.len() <= self.slot_bytes);
        let place = self.take_place().ok_or(SpillError::Full)?;
        let (disk, offset) = self.address(place);
        let start = Instant::now();
        let written = disk.write_at(bytes, offset);
        self.count(0, bytes.len(), start);
        match written {
            Ok(()) => Ok(Slot { place, checksum: checksum(bytes) }),
            Err(error) => {
                self.places().hollow.push(place);
                self.grant.give_back(self.slot_bytes as u64);
                // A device that is full is a budget that is used up.
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                    self.grant.end_pool();
                }
                Err(SpillError::Io(error))
            }
        }
    }

    /// Reads what was put into a slot: as many bytes as that were.
    pub fn read(&self, slot: &Slot, bytes: &mut [u8]) -> Result<(), SpillError> {
        assert!(bytes.len() <= self.slot_bytes);
        self.read_start(slot, slot.checksum, bytes)
    }

    /// Reads the first bytes of what was put into a slot, which have this checksum.
    pub fn read_start(&self, slot: &Slot, checksum: u32, bytes: &mut [u8]) -> Result<(), SpillError> {
        let (disk, offset) = self.address(slot.place);
        let start = Instant::now();
        disk.read_at(bytes, offset).map_err(SpillError::Io)?;
        self.count(1, bytes.len(), start);
        if self::checksum(bytes) == checksum { Ok(()) } else { Err(SpillError::Damaged) }
    }

    pub fn release(&self, slot: Slot) {
        let mut places = self.places();
        places.free.push(slot.place);
        let left_bytes = self.grant.left_bytes();
        let many = MANY_FREE.min((left_bytes / self.slot_bytes as u64) as usize);
        if places.free.len() >= many && !places.keeps && left_bytes < self.grant.cap_bytes() / SHORT_SHARE {
            self.give_back(&mut places);
        }
    }

    /// Slots that are not needed any more, so that others can have the disk.
    pub fn leave(&self, slots: impl Iterator<Item = Slot>) {
        let mut places = self.places();
        places.free.extend(slots.map(|slot| slot.place));
        self.give_back(&mut places);
    }

    /// Gives the space of free places back to the system, and the bytes to the budget.
    #[cold]
    fn give_back(&self, places: &mut Places) {
        let disks = self.disks.len() as u32;
        // Places that lie side by side go together.
        places.free.sort_unstable_by_key(|place| (place % disks, *place));
        for run in places.free.chunk_by(|one, other| one + disks == *other) {
            let ((disk, offset), bytes) = (self.address(run[0]), (run.len() * self.slot_bytes) as u64);
            places.keeps |= disk.discard(offset, bytes).is_err();
        }
        if !places.keeps {
            self.grant.give_back((places.free.len() * self.slot_bytes) as u64);
            places.hollow.append(&mut places.free);
        }
    }

    /// Bytes that were written, and read.
    pub fn traffic(&self) -> [u64; 2] {
        [0, 1].map(|way: usize| self.traffic[way].load(Ordering::Relaxed))
    }

    /// How long that took.
    pub fn seconds(&self) -> f64 {
        Duration::from_nanos(self.traffic[2].load(Ordering::Relaxed)).as_secs_f64()
    }

    fn count(&self, way: usize, bytes: usize, start: Instant) {
        self.traffic[way].fetch_add(bytes as u64, Ordering::Relaxed);
        self.traffic[2].fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// A place that is free, the lowest that never was in use otherwise.
    fn take_place(&self) -> Option<u32> {
        let mut places = self.places();
        if let Some(place) = places.free.pop() {
            return Some(place);
        }
        if !self.grant.take(self.slot_bytes as u64) {
            return None;
        }
        if let Some(place) = places.hollow.pop() {
            return Some(place);
        }
        if places.count == u32::MAX {
            self.grant.give_back(self.slot_bytes as u64);
            return None;
        }
        places.count += 1;
        Some(places.count - 1)
    }

    fn address(&self, place: u32) -> (&dyn Disk, u64) {
        let (disk, row) = (place as usize % self.disks.len(), place as usize / self.disks.len());
        (&*self.disks[disk], row as u64 * self.slot_bytes as u64)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        let places = self.places();
        self.grant.give_back((places.count as u64 - places.hollow.len() as u64) * self.slot_bytes as u64);
    }
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Places { free, hollow, count, .. } = &*self.places();
        write!(out, "Spill({count} slots, {} free, {} given back)", free.len(), hollow.len())
    }
}

#[cfg(test)]
mod tests {
    use super::faulty::Faulty;
    use super::*;
    use crate::budget::Budget;
    use std::sync::Arc;

    fn content(number: usize) -> Vec<u8> {
        (0..100).map(|at| (number * 7 + at) as u8).collect()
    }

    #[test]
    fn several_disks_take_slots_in_turn_and_freed_ones_again() {
        let budget = Budget::new(30 * 128);
        let disks = [Faulty::sound(), Faulty::sound(), Faulty::sound()];
        let sizes = disks.each_ref().map(Faulty::size);
        let boxed = disks.into_iter().map(|disk| Box::new(disk) as Box<dyn Disk>).collect();
        let spill = Spill::over(boxed, 128, budget.grant("spill", u64::MAX));
        let mut slots: Vec<Slot> = (0..30).map(|number| spill.put(&content(number)).unwrap()).collect();
        assert!(matches!(spill.put(&content(30)), Err(SpillError::Full)));
        assert!(sizes.iter().all(|size| size.load(Ordering::Relaxed) == 9 * 128 + 100));
        spill.release(slots.swap_remove(7));
        slots.push(spill.put(&content(77)).unwrap());
        let mut bytes = [0; 100];
        for (slot, number) in slots.iter().zip((0..7).chain([29]).chain(8..29).chain([77])) {
            spill.read(slot, &mut bytes).unwrap();
            assert_eq!(bytes[..], content(number));
        }
        assert_eq!(spill.traffic(), [31 * 100, 30 * 100]);
        drop(spill);
        assert_eq!(budget.used_bytes(), 0);
    }

    /// What one spill does not need any more another one can have.
    #[test]
    fn where_disk_is_short_freed_slots_go_back_to_the_budget() {
        let budget = Budget::new(3 * MANY_FREE as u64 * 128);
        let spill = || {
            let disks = [Faulty::sound(), Faulty::sound()].map(|disk| Box::new(disk) as Box<dyn Disk>);
            Spill::over(disks.into(), 128, budget.grant("spill", u64::MAX))
        };
        let (first, second) = (spill(), spill());
        let fill = |spill: &Spill, count: usize| -> Vec<Slot> {
            (0..count).map(|number| spill.put(&content(number)).unwrap()).collect()
        };
        let mut slots = fill(&first, 5 * MANY_FREE / 2);
        // Every second one, so that few lie side by side.
        let (mut at, mut kept) = (0, Vec::new());
        slots.drain(..).for_each(|slot| {
            at += 1;
            if at % 2 == 0 { first.release(slot) } else { kept.push((at - 1, slot)) }
        });
        assert_eq!(budget.used_bytes(), 2 * MANY_FREE as u64 * 128);
        let others = fill(&second, MANY_FREE);
        // Places that were given back are taken again, and nothing else has changed.
        let again = fill(&first, 3 * MANY_FREE / 4);
        assert!(matches!(first.put(&content(1)), Err(SpillError::Full)));
        let mut bytes = [0; 100];
        let all = kept.iter().map(|(number, slot)| (&first, *number, slot));
        let all = all.chain(others.iter().enumerate().map(|(number, slot)| (&second, number, slot)));
        for (spill, number, slot) in all.chain(again.iter().enumerate().map(|(number, slot)| (&first, number, slot))) {
            spill.read(slot, &mut bytes).unwrap();
            assert_eq!(bytes[..], content(number));
        }
        drop((first, second));
        assert_eq!(budget.used_bytes(), 0);
    }

    /// However few there are: of ten slots another one gets those that are not needed any more, also where the device has fewer than the budget.
    #[test]
    fn a_full_disk_is_shared_to_the_last_slot() {
        for (slots, writes) in [(10, usize::MAX), (1000, 10)] {
            let budget = Budget::new(slots * 128);
            let spill = |writes: usize| {
                let disk = Box::new(Faulty::after(writes, usize::MAX)) as Box<dyn Disk>;
                Spill::over(vec![disk], 128, budget.grant("spill", u64::MAX))
            };
            let (first, second) = (spill(writes), spill(usize::MAX));
            let mut filled = Vec::new();
            let full = loop {
                match first.put(&content(filled.len())) {
                    Ok(slot) => filled.push(slot),
                    Err(full) => break full,
                }
            };
            assert_eq!((filled.len(), matches!(full, SpillError::Full)), (10, slots == 10));
            assert!(matches!(second.put(&content(0)), Err(SpillError::Full)));
            filled.drain(..6).for_each(|slot| first.release(slot));
            let others = (0..).map_while(|number| second.put(&content(number)).ok()).count();
            assert!(others >= 3, "{others}");
            first.leave(filled.into_iter());
            assert_eq!((0..).map_while(|number| second.put(&content(number)).ok()).count(), 10 - others);
            drop((first, second));
            assert_eq!(budget.used_bytes(), 0);
        }
    }

    /// A disk that takes no space back is used as before; files do, if their system can.
    #[test]
    fn freed_slots_of_a_disk_that_takes_nothing_back_stay() {
        let file = tempfile::tempfile().unwrap();
        for disk in [Box::new(Arc::new(Faulty::sound())) as Box<dyn Disk>, Box::new(file)] {
            let budget = Budget::new(2 * MANY_FREE as u64 * 4096);
            let spill = Spill::over(vec![disk], 4096, budget.grant("spill", u64::MAX));
            let put = |number: usize| spill.put(&content(number)).unwrap();
            let slots: Vec<Slot> = (0..2 * MANY_FREE).map(put).collect();
            slots.into_iter().for_each(|slot| spill.release(slot));
            let slots: Vec<Slot> = (0..2 * MANY_FREE).map(|number| put(number + 1)).collect();
            assert!(matches!(spill.put(&content(1)), Err(SpillError::Full)));
            let mut bytes = [0; 100];
            for (number, slot) in slots.iter().enumerate() {
                spill.read(slot, &mut bytes).unwrap();
                assert_eq!(bytes[..], content(number + 1));
            }
        }
    }

    #[test]
    fn a_bit_that_changed_and_a_write_that_was_lost_are_noticed() {
        for bit in [0, 333, 799] {
            let spill = Spill::over(vec![Box::new(Faulty::flipping(bit))], 128, Grant::unlimited());
            let slot = spill.put(&content(1)).unwrap();
            assert!(matches!(spill.read(&slot, &mut [0; 100]), Err(SpillError::Damaged)));
        }
        let spill = Spill::over(vec![Box::new(Faulty::losing_writes_after(1))], 128, Grant::unlimited());
        let slot = spill.put(&content(1)).unwrap();
        spill.read(&slot, &mut [0; 100]).unwrap();
        spill.release(slot);
        let slot = spill.put(&content(2)).unwrap();
        assert!(matches!(spill.read(&slot, &mut [0; 100]), Err(SpillError::Damaged)));
    }
}
