//! Memory that grows in place: one mapping reserved up front, of which a growing prefix is used.
//!
//! Growing never moves or copies, so a table can spread its entries within itself. Bytes count against
//! the grant when the prefix grows, before they are touched. Large regions ask for huge pages, which
//! saves address-translation misses on random access; small ones refuse them, so that a small model
//! does not pay two mebibytes per table.

use crate::budget::Grant;
use crate::{fence, meter};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
/// From this size on a region grows by huge pages, which are little beside it. What it touched before stays in small ones until it has so many
/// times this size: joining two mebibytes of small pages took five milliseconds.
const LARGE: usize = 16 << 20;
const JOINED: usize = 4;

/// So much behind what is used is closed to everybody.
const FENCE_BYTES: usize = 64 << 10;

/// Where addresses are limited (`ulimit -v`), half of them are left to others, and of the other half a region reserves
/// at most this part of what is left.
const SHARE_OF_ADDRESSES: u64 = 4;
static LEFT_TO_OTHERS: OnceLock<u64> = OnceLock::new();

/// How much a region may reserve.
fn reservable() -> usize {
    let Some(bytes) = meter::mappable_bytes() else { return usize::MAX };
    let others = *LEFT_TO_OTHERS.get_or_init(|| bytes / 2);
    (bytes.saturating_sub(others) / SHARE_OF_ADDRESSES) as usize
}

/// A zero-filled block of memory with room to grow.
#[derive(Debug)]
pub struct Region {
    /// Start of the usable part, aligned to a huge page.
    base: *mut u8,
    used: usize,
    /// How much of it is in huge pages, if the system has any, but for those small ones.
    huge: usize,
    /// Bytes at its beginning that are in small pages still and may be joined.
    small: usize,
    reserved: usize,
    map: *mut core::ffi::c_void,
    map_len: usize,
    grant: Grant,
}

// SAFETY: the region owns its mapping; access goes through atomics or `&mut self`.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// An empty region that can grow as far as its grant's cap.
    pub fn new(grant: Grant) -> Region {
        Region::one_of(1, usize::MAX, grant)
    }

    /// One of so many regions that grow alike within one grant, each to `most_bytes`: address space for four times its part is enough.
    pub fn one_of(regions: usize, most_bytes: usize, grant: Grant) -> Region {
        let cap = usize::try_from(grant.cap_bytes()).unwrap_or(usize::MAX).min(1 << 44).min(most_bytes);
        Region::sized(if regions == 1 { cap } else { (cap / regions).saturating_mul(4).min(cap) }, grant)
    }

    /// A region that can grow to so many bytes.
    pub fn sized(bytes: usize, grant: Grant) -> Region {
        let mut wanted = bytes.min(reservable()).max(PAGE);
        // A limit on address space (`ulimit -v`) may forbid the whole reservation: halve until it fits.
        loop {
            let map_len = wanted.next_multiple_of(HUGE) + HUGE;
            let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
            // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
            match unsafe { mmap_anonymous(std::ptr::null_mut(), map_len, protection, flags) } {
                Ok(map) => {
                    let base = (map as usize).next_multiple_of(HUGE) as *mut u8;
                    // SAFETY: advice on our own mapping; it changes no contents. Failure is harmless.
                    let _ = unsafe { madvise(map, map_len, Advice::LinuxNoHugepage) };
                    let reserved = map_len - HUGE;
                    let region = Region { base, used: 0, huge: 0, small: 0, reserved, map, map_len, grant };
                    region.fence(fence::close);
                    return region;
                }
                Err(_) if wanted > PAGE => wanted = (wanted / 2).max(PAGE),
                Err(_) => {
                    let base = std::ptr::without_provenance_mut(HUGE);
                    return Region {
                        base,
                        used: 0,
                        huge: 0,
                        small: 0,
                        reserved: 0,
                        map: std::ptr::null_mut(),
                        map_len: 0,
                        grant,
                    };
                }
            }
        }
    }

    /// Bytes in use, which is what the grant was charged.
    pub fn bytes(&self) -> usize {
        self.used
    }

    /// What it is charged to.
    pub fn grant(&self) -> Grant {
        self.grant.clone()
    }

    /// What the grant has left.
    pub fn left_bytes(&self) -> usize {
        usize::try_from(self.grant.left_bytes()).unwrap_or(usize::MAX)
    }

    /// What so many bytes take, in whole pages.
    pub fn rounded(bytes: usize) -> usize {
        bytes.next_multiple_of(if bytes >= LARGE { HUGE } else { PAGE })
    }

    /// Grows to at least `bytes`; false (and unchanged) if the grant or the reservation has no room.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let wanted = Region::rounded(bytes);
        if wanted <= self.used {
            return true;
        }
        if wanted > self.reserved || !self.grant.take((wanted - self.used) as u64) {
            return false;
        }
        self.fence(fence::open);
        let touched = std::mem::replace(&mut self.used, wanted);
        self.fence(fence::close);
        if wanted >= LARGE && self.grant.allows_huge_pages() {
            self.use_huge_pages(touched);
        }
        true
    }

    /// Tells what lies behind the bytes in use.
    #[inline(always)]
    fn fence(&self, tell: impl Fn(*const u8, usize)) {
        tell(self.base.wrapping_add(self.used), FENCE_BYTES.min(self.reserved - self.used));
    }

    /// Uses huge pages for what was not touched yet; so many bytes were used before it grew.
    fn use_huge_pages(&mut self, touched: usize) {
        if self.huge == 0 {
            self.small = touched.next_multiple_of(HUGE);
            self.huge = self.small;
        }
        let end = self.used / HUGE * HUGE;
        if self.huge < end {
            // SAFETY: advice on a part of our own mapping. Failure only costs speed.
            let _ = unsafe { madvise(self.base.add(self.huge).cast(), end - self.huge, Advice::LinuxHugepage) };
            self.huge = end;
        }
        if self.used >= JOINED * self.small {
            join_pages((self.base as usize, std::mem::take(&mut self.small)));
        }
    }

    /// Small pages for what was not touched yet, and will be here and there: a huge page would be cleared for each byte.
    pub fn refuse_huge_pages(&mut self) {
        // SAFETY: advice on a part of our own mapping. Failure only costs speed.
        let _ = unsafe { madvise(self.base.cast(), self.huge, Advice::LinuxNoHugepage) };
    }

    /// The huge pages around so many bytes of it, by address and length; none if it may not use them.
    pub fn huge_pages_around(&self, first: *const u8, bytes: usize) -> (usize, usize) {
        let base = self.base as usize;
        let begin = (first as usize - base) / HUGE * HUGE;
        let end = (first as usize - base + bytes).next_multiple_of(HUGE).min(self.huge);
        (base + begin, end.saturating_sub(begin))
    }

    /// Where it begins, aligned to a huge page; it never moves.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: `used` bytes are mapped, zero-initialised and aligned; atomics allow shared writes.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.used / 4) }
    }

    pub fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: as in `words`, and `&mut self` excludes all others.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), self.used / 4) }
    }

    pub fn pairs(&self) -> &[u64] {
        // SAFETY: as in `words`, and nobody writes pairs through `&self`.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.used / 8) }
    }

    pub fn pairs_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `words_mut`.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), self.used / 8) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.grant.give_back(self.used as u64);
        self.fence(fence::open);
        if self.map_len > 0 {
            // SAFETY: our own mapping, unmapped once.
            let _ = unsafe { munmap(self.map, self.map_len) };
        }
    }
}

/// Turns small pages into huge ones. Contents stay what they are, whoever else uses them meanwhile.
pub fn join_pages((begin, len): (usize, usize)) {
    if len > 0 {
        // SAFETY: advice that changes no contents, at worst on nothing of ours. Failure only costs speed.
        unsafe {
            libc::madvise(begin as *mut libc::c_void, len, libc::MADV_HUGEPAGE);
            libc::madvise(begin as *mut libc::c_void, len, libc::MADV_COLLAPSE);
        }
    }
}

/// Asks the processor to fetch the cache line that holds `slot`.
#[inline(always)]
pub fn prefetch<T>(slot: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching any address is allowed; this one is a valid reference.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(slot).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn growth_keeps_contents_and_stays_within_the_grant() {
        let budget = Budget::new(64 << 10);
        let mut region = Region::new(budget.grant("r", 64 << 10));
        assert!(region.grow(5000));
        assert_eq!((region.bytes(), budget.used_bytes()), (8192, 8192));
        region.words_mut()[2047] = 7;
        assert!(region.grow(60_000) && !region.grow(70_000));
        assert_eq!((region.words_mut()[2047], region.words_mut()[2048]), (7, 0));
        drop(region);
        assert_eq!(budget.used_bytes(), 0);
    }
}
