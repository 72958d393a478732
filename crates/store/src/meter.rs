//! The allocator of the program: that of the system, with an eye on how much memory the process has.
//!
//! What the search holds is granted beforehand ([`crate::budget`]). What a front end or a compiler allocates nobody can
//! foresee, so while they work the process is measured after every few hundred kilobytes, and whoever would exceed the
//! limit does not return: the program ends as [`limit`] was told to end it.

use crate::mapped;
use rustix::process::{Resource, getrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are allocated between two measurements.
const BETWEEN_LOOKS: u64 = 256 << 10;
const NO_LIMIT: u64 = u64::MAX;

static LIMIT: AtomicU64 = AtomicU64::new(NO_LIMIT);
/// Allocated since the last measurement.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static EXCEEDED: Mutex<Option<Exceeded>> = Mutex::new(None);

type Exceeded = Box<dyn FnOnce() + Send>;

/// Sets the resident memory that must not be exceeded from now on; if it would be, `exceeded` is called, which should end
/// the process. It works only where [`Meter`] is the allocator.
pub fn limit(bytes: u64, exceeded: impl FnOnce() + Send + 'static) {
    *EXCEEDED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(Box::new(exceeded));
    LIMIT.store(bytes, Ordering::SeqCst);
}

/// Nothing is measured from now on.
pub fn lift() {
    LIMIT.store(NO_LIMIT, Ordering::SeqCst);
}

/// Resident memory of this process now; nothing is allocated to find out.
pub fn resident_bytes() -> Option<u64> {
    statm(1)
}

/// The same when code that was let go has come back, as far as it may.
fn expected_bytes() -> u64 {
    let (resident, files) = (resident_bytes().unwrap_or(0), mapped::resident_bytes());
    resident.saturating_sub(files).saturating_add(files.max(mapped::kept_bytes()))
}

/// How much more memory may be mapped, resident or not, where that is limited (`ulimit -v`, `ulimit -d`).
pub fn mappable_bytes() -> Option<u64> {
    let limit = |resource| getrlimit(resource).current;
    let all = limit(Resource::As).map(|limit| limit.saturating_sub(statm(0).unwrap_or(0)));
    let data = limit(Resource::Data).map(|limit| limit.saturating_sub(statm(5).unwrap_or(0)));
    all.into_iter().chain(data).min()
}

/// Can the allocator be asked to give memory back?
pub const TRIMS: bool = cfg!(target_env = "gnu");

/// Has the allocator take blocks of this size and larger from the system and give them back as soon as nobody uses them, if it can be told.
/// Else it soon keeps much larger ones, between which there are holes: two of twelve megabytes in a search on disk.
pub fn give_back_blocks_of(bytes: u32) {
    #[cfg(target_env = "gnu")]
    {
        const MMAP_THRESHOLD: core::ffi::c_int = -3;
        unsafe extern "C" {
            fn mallopt(parameter: core::ffi::c_int, value: core::ffi::c_int) -> core::ffi::c_int;
        }
        // SAFETY: any thread may call it at any time.
        unsafe { mallopt(MMAP_THRESHOLD, bytes as core::ffi::c_int) };
    }
    let _ = bytes;
}

/// Lets the allocator give back to the system whatever it holds and nobody uses, if it can be asked.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> core::ffi::c_int;
        }
        // SAFETY: any thread may call it at any time.
        unsafe { malloc_trim(0) };
    }
}

/// An entry of the kernel's table about this process, in bytes: 0 is all that is mapped, 1 what is resident, 2 what of
/// it lies in files, 5 data and stack.
pub(crate) fn statm(entry: usize) -> Option<u64> {
    let mut text = [0; 128];
    let count = File::open("/proc/self/statm").and_then(|mut file| file.read(&mut text)).ok()?;
    let text = std::str::from_utf8(&text[..count]).ok()?;
    Some(text.split(' ').nth(entry)?.trim().parse::<u64>().ok()? * rustix::param::page_size() as u64)
}

/// The allocator.
#[derive(Debug)]
pub struct Meter;

impl Meter {
    #[inline]
    fn note(size: usize) {
        if LIMIT.load(Ordering::Relaxed) != NO_LIMIT {
            Meter::measure(size as u64);
        }
    }

    #[cold]
    fn measure(size: u64) {
        if TAKEN.fetch_add(size, Ordering::Relaxed) + size < BETWEEN_LOOKS {
            return;
        }
        TAKEN.store(0, Ordering::Relaxed);
        let limit = LIMIT.load(Ordering::SeqCst);
        let is_too_much = || expected_bytes().saturating_add(size) > limit;
        // Code that was used may go before anything else has to.
        let exceeds = is_too_much() && {
            mapped::let_go_if_watched();
            is_too_much()
        };
        // One thread ends the program; what it allocates for that is not measured.
        if exceeds
            && LIMIT.compare_exchange(limit, NO_LIMIT, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            && let Some(exceeded) = EXCEEDED.try_lock().ok().and_then(|mut exceeded| exceeded.take())
        {
            exceeded();
        }
    }
}

// SAFETY: everything is left to the allocator of the system; measuring neither allocates nor unwinds.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Meter::note(layout.size());
        // SAFETY: the caller keeps the promises that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above, and `memory` came from `System`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Meter::note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Meter::note(size.saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_process_that_grows_too_large_is_noticed_once() {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let resident = resident_bytes().unwrap();
        assert!(resident > 100_000);
        limit(resident + (64 << 20), || _ = CALLS.fetch_add(1, Ordering::SeqCst));
        Meter::note(1 << 20);
        assert_eq!(CALLS.load(Ordering::SeqCst), 0);
        Meter::note(65 << 20);
        Meter::note(65 << 20);
        assert_eq!(CALLS.load(Ordering::SeqCst), 1);
        lift();
    }
}
