//! What nobody may touch of memory that we map ourselves, for AddressSanitizer (`.ci/sanitize`, which compiles with `--cfg fenced`): it looks
//! after heap and stacks, and cannot know where a table ends or that a page was given back. Otherwise nothing happens here.

use core::ffi::c_void;

#[cfg(fenced)]
unsafe extern "C" {
    fn __asan_poison_memory_region(first: *const c_void, bytes: usize);
    fn __asan_unpoison_memory_region(first: *const c_void, bytes: usize);
    #[cfg(test)]
    fn __asan_address_is_poisoned(address: *const c_void) -> core::ffi::c_int;
}

/// From now on nobody may touch these bytes, whole pages.
#[inline(always)]
pub fn close(first: *const u8, bytes: usize) {
    tell(first.cast(), bytes, true);
}

/// From now on everybody may; also before they are unmapped, for somebody else may have these addresses next.
#[inline(always)]
pub fn open(first: *const u8, bytes: usize) {
    tell(first.cast(), bytes, false);
}

#[inline(always)]
fn tell(first: *const c_void, bytes: usize, closed: bool) {
    #[cfg(fenced)]
    // SAFETY: notes are taken beside the memory, which stays as it is.
    unsafe {
        if closed { __asan_poison_memory_region(first, bytes) } else { __asan_unpoison_memory_region(first, bytes) }
    }
    let _ = (first, bytes, closed);
}

#[cfg(all(test, fenced))]
mod tests {
    use super::*;
    use crate::arena::{Arena, PAGE_BYTES, PAGE_LINES};
    use crate::budget::Grant;
    use crate::region::Region;

    fn is_closed(address: *const u8) -> bool {
        // SAFETY: the address is only looked up.
        unsafe { __asan_address_is_poisoned(address.cast()) != 0 }
    }

    #[test]
    fn what_lies_behind_a_region_is_closed() {
        let mut region = Region::sized(1 << 20, Grant::unlimited());
        let base = region.base();
        for bytes in [1, 2, 40, 255, 256].map(|pages| pages * PAGE_BYTES) {
            assert!(is_closed(base.wrapping_add(region.bytes())) && region.grow(bytes));
            assert!((0..bytes).step_by(PAGE_BYTES / 2).all(|at| !is_closed(base.wrapping_add(at))), "{bytes}");
        }
        assert!(region.grow(1 << 20));
        drop(region);
        assert!((0..3 << 20).step_by(PAGE_BYTES).all(|at| !is_closed(base.wrapping_add(at))));
    }

    #[test]
    fn a_page_that_was_given_back_is_closed_until_somebody_has_it() {
        let arena = Arena::new(Grant::unlimited());
        let (mut one, mut two) = (arena.pages(), arena.pages());
        assert!(one.grow(2 * PAGE_LINES, 0) && two.grow(PAGE_LINES, 0));
        let pages = [one.line(0), one.line(PAGE_LINES), two.line(0)].map(|line| line.as_ptr().cast());
        let closed = || pages.map(is_closed);
        drop(one);
        assert_eq!(closed(), [true, true, false]);
        assert!(two.grow(3 * PAGE_LINES, 0));
        assert_eq!(closed(), [false; 3]);
        drop(two);
        assert_eq!(closed(), [true; 3]);
        drop(arena);
        assert_eq!(closed(), [false; 3]);
    }
}
