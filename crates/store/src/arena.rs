//! Lines of memory for many tables: pages of one region, handed out one by one.
//!
//! Each table owns its pages and grows by a few at a time, whatever its neighbours do; all lie in one mapping, which
//! can use huge pages however small the tables are. What a table gives up another may take.

use crate::budget::Grant;
use crate::fence;
use crate::region::{Region, join_pages, prefetch};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Words of a cache line.
pub const LINE: usize = 16;
/// Lines of a page.
pub const PAGE_LINES: usize = 64;
pub const PAGE_BYTES: usize = PAGE_LINES * LINE * 4;
/// A table that takes all memory takes it in such steps from such a size on, and else a power of two of pages.
const FILL_STEP: usize = 2 << 20;
const FILL_LEAST: usize = 4 << 20;

/// Short-lived memory of up to so many bytes is kept for the next who asks, while less than half of the grant is used: workers
/// that map and unmap memory all the time wait for each other.
const SPARE_BYTES: usize = 64 << 10;

/// A cache line.
pub type Line = [u32; LINE];
type Page = [Line; PAGE_LINES];

/// Where pages come from.
#[derive(Clone, Debug)]
pub struct Arena {
    pool: Arc<Mutex<Pool>>,
}

#[derive(Debug)]
struct Pool {
    region: Region,
    /// Pages of the region that were handed out at some time.
    begun: usize,
    /// Those of them that came back.
    free: Vec<NonNull<Page>>,
    /// Memory that was needed for a while and will be again.
    spare: Vec<Region>,
    /// What tables leave to others.
    kept_free: u64,
}

// SAFETY: a free page belongs to the pool alone.
unsafe impl Send for Pool {}

/// A growing sequence of lines, zero at first.
#[derive(Debug)]
pub struct Pages {
    arena: Arena,
    pages: Vec<NonNull<Page>>,
}

/// Memory for a while.
#[derive(Debug)]
pub struct Beside {
    region: Option<Region>,
    arena: Arena,
}

/// Where a line is.
#[derive(Clone, Copy, Debug)]
pub struct Spot(NonNull<Line>);

// SAFETY: an address by itself gives no access.
unsafe impl Send for Spot {}
// SAFETY: as above.
unsafe impl Sync for Spot {}

// SAFETY: pages belong to one owner, like boxes.
unsafe impl Send for Pages {}
// SAFETY: as above; what is shared can only be read.
unsafe impl Sync for Pages {}

impl Arena {
    pub fn new(grant: Grant) -> Arena {
        let region = Region::new(grant);
        Arena {
            pool: Arc::new(Mutex::new(Pool { region, begun: 0, free: Vec::new(), spare: Vec::new(), kept_free: 0 })),
        }
    }

    /// A sequence without lines.
    pub fn pages(&self) -> Pages {
        Pages { arena: self.clone(), pages: Vec::new() }
    }

    /// Memory for a while, if the grant has room for it. Much goes back to the system.
    pub fn beside(&self, bytes: usize) -> Option<Beside> {
        let (grant, spare) = {
            let mut pool = self.pool();
            (pool.region.grant(), if bytes <= SPARE_BYTES { pool.spare.pop() } else { None })
        };
        let make = |bytes: usize| {
            let mut region = Region::sized(bytes, grant.clone());
            region.grow(bytes).then_some(region)
        };
        let few = || if bytes <= SPARE_BYTES && grant.has_plenty(SPARE_BYTES) { make(SPARE_BYTES) } else { None };
        let region = spare.or_else(few).or_else(|| make(bytes))?;
        Some(Beside { region: Some(region), arena: self.clone() })
    }

    /// From now on tables grow only while the grant has so many bytes left afterwards.
    pub fn keep_free(&self, bytes: u64) {
        self.pool().kept_free = bytes;
    }

    /// Memory in use, and what came back.
    pub fn bytes(&self) -> usize {
        let pool = self.pool();
        pool.region.bytes() + pool.spare.len() * SPARE_BYTES
    }

    /// Would less than half of the memory be used if so many bytes were taken?
    pub fn has_plenty(&self, bytes: usize) -> bool {
        self.pool().region.grant().has_plenty(bytes)
    }

    /// What could be added now.
    fn left_bytes(&self) -> usize {
        self.pool().region.left_bytes()
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    /// Where its pages come from.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// How many lines there are.
    pub fn lines(&self) -> usize {
        self.pages.len() * PAGE_LINES
    }

    pub fn bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// What its memory is charged to.
    pub fn grant(&self) -> Grant {
        self.arena.pool().region.grant()
    }

    /// Adds zero lines until there are at least `lines`, if the grant allows it; else nothing changes. So many bytes `beside` are
    /// taken for a while only, and may be some of those that are kept free.
    #[must_use]
    pub fn grow(&mut self, lines: usize, beside: usize) -> bool {
        let before = self.pages.len();
        let wanted = lines.div_ceil(PAGE_LINES).saturating_sub(before);
        let reused = {
            let Pool { region, begun, free, kept_free, .. } = &mut *self.arena.pool();
            let reused = wanted.min(free.len());
            let end = *begun + wanted - reused;
            let more = (end * PAGE_BYTES).saturating_sub(region.bytes());
            let kept_free = usize::try_from(*kept_free).unwrap_or(usize::MAX).saturating_sub(beside);
            if more > 0 && region.left_bytes() < more.saturating_add(kept_free) {
                return false;
            }
            if !region.grow(end * PAGE_BYTES) {
                return false;
            }
            self.pages.extend(free.drain(free.len() - reused..));
            let base = region.base().cast::<Page>();
            // SAFETY: the region has grown to hold the page, is aligned to pages, and never moves.
            self.pages.extend((*begun..end).map(|page| unsafe { NonNull::new_unchecked(base.add(page)) }));
            *begun = end;
            reused
        };
        // Not while others wait for the pool.
        for page in &mut self.pages[before..before + reused] {
            fence::open(page.as_ptr().cast(), PAGE_BYTES);
            // SAFETY: it came back, so nobody else has it.
            unsafe { page.as_mut().fill([0; LINE]) };
        }
        true
    }

    /// Takes all that the grant has left, but no more than `most` bytes, in numbers of pages that can be halved often.
    pub fn fill(&mut self, most: usize) {
        let left = self.arena.left_bytes().min(most);
        let mut wanted = left / FILL_STEP * FILL_STEP;
        if wanted < FILL_LEAST {
            wanted = PAGE_BYTES << (left / PAGE_BYTES).max(1).ilog2();
        }
        // Addresses may be scarcer than memory.
        while wanted >= PAGE_BYTES && !self.grow(wanted / (LINE * 4), 0) {
            wanted = if wanted > FILL_LEAST { wanted / 2 / FILL_STEP * FILL_STEP } else { wanted / 2 };
        }
    }

    /// Small pages for a sequence that was just taken, the only one of its arena: few of its lines may ever be touched.
    pub fn refuse_huge_pages(&self) {
        self.arena.pool().region.refuse_huge_pages();
    }

    /// Huge pages after all, since lines all over it are in use.
    pub fn join_pages(&self) {
        let Some(first) = self.pages.first() else { return };
        let around = self.arena.pool().region.huge_pages_around(first.as_ptr().cast(), self.bytes());
        // Not while others wait for the pool.
        join_pages(around);
    }

    /// The same lines in so many equal parts, if their number allows it.
    pub fn split(&mut self, parts: usize) -> Option<Vec<Pages>> {
        if !self.pages.len().is_multiple_of(parts) {
            return None;
        }
        let each = self.pages.len() / parts;
        let pages = std::mem::take(&mut self.pages);
        Some(pages.chunks(each).map(|pages| Pages { arena: self.arena.clone(), pages: pages.to_vec() }).collect())
    }

    #[inline(always)]
    pub fn line(&self, line: usize) -> &Line {
        let page = self.pages[line / PAGE_LINES];
        // SAFETY: the page is ours as long as we live, and lines are never written through `&self`.
        unsafe { &page.as_ref()[line % PAGE_LINES] }
    }

    #[inline(always)]
    pub fn line_mut(&mut self, line: usize) -> &mut Line {
        let mut page = self.pages[line / PAGE_LINES];
        // SAFETY: the page is ours, and `&mut self` excludes all others.
        unsafe { &mut page.as_mut()[line % PAGE_LINES] }
    }

    #[inline(always)]
    pub fn prefetch(&self, line: usize) {
        prefetch(self.line(line));
    }

    /// Asks for a line, and says where it is; pages never move.
    #[inline(always)]
    pub fn ask_for(&self, line: usize) -> Spot {
        let page = self.pages[line / PAGE_LINES];
        prefetch(self.line(line));
        // SAFETY: it is within the page.
        Spot(unsafe { page.cast::<Line>().add(line % PAGE_LINES) })
    }

    /// The line at a spot.
    ///
    /// # Safety
    /// The spot must be one of these lines.
    #[inline(always)]
    pub unsafe fn line_at(&mut self, spot: Spot) -> &mut Line {
        // SAFETY: the line is ours, as the caller promises, and `&mut self` excludes all others.
        unsafe { &mut *spot.0.as_ptr() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.free.iter().for_each(|page| fence::open(page.as_ptr().cast(), PAGE_BYTES));
    }
}

impl Deref for Beside {
    type Target = Region;

    fn deref(&self) -> &Region {
        self.region.as_ref().expect("until it is dropped")
    }
}

impl DerefMut for Beside {
    fn deref_mut(&mut self) -> &mut Region {
        self.region.as_mut().expect("until it is dropped")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let keeps = |region: &Region| region.bytes() == SPARE_BYTES && region.grant().has_plenty(0);
        let spare = self.region.take().filter(keeps);
        self.arena.pool().spare.extend(spare);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.pages.iter().for_each(|page| fence::close(page.as_ptr().cast(), PAGE_BYTES));
        self.arena.pool().free.append(&mut self.pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn a_little_memory_beside_is_kept_for_the_next() {
        let budget = Budget::new(1 << 20);
        let arena = Arena::new(budget.grant("arena", u64::MAX));
        let first = arena.beside(100).unwrap();
        let address = first.base();
        drop(first);
        assert_eq!((budget.used_bytes(), arena.bytes()), (SPARE_BYTES as u64, SPARE_BYTES));
        let (again, other) = (arena.beside(SPARE_BYTES).unwrap(), arena.beside(1).unwrap());
        assert!(again.base() == address && other.base() != address);
        drop(arena.beside(SPARE_BYTES + 1));
        assert_eq!(budget.used_bytes(), 2 * SPARE_BYTES as u64, "what is larger goes back");
        drop((again, other, arena));
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn sequences_grow_side_by_side_within_the_grant() {
        let budget = Budget::new(16 * PAGE_BYTES as u64);
        let arena = Arena::new(budget.grant("arena", u64::MAX));
        let (mut one, mut two) = (arena.pages(), arena.pages());
        for size in 1..=6 {
            assert!(one.grow(size * PAGE_LINES, 0) && two.grow(size * PAGE_LINES, 0));
            for line in 0..size * PAGE_LINES {
                one.line_mut(line)[3] = line as u32;
                two.line_mut(line)[3] = !(line as u32);
            }
        }
        assert!(
            (0..6 * PAGE_LINES).all(|line| one.line(line)[3] == line as u32 && two.line(line)[3] == !(line as u32))
        );
        assert!(!one.grow(11 * PAGE_LINES, 0) && one.lines() == 6 * PAGE_LINES);
        let beside = arena.beside(4 * PAGE_BYTES);
        assert!(beside.is_some() && arena.beside(1).is_none());
        assert!(!one.grow(7 * PAGE_LINES, 0), "there is no room beside it");
        arena.keep_free(3 * PAGE_BYTES as u64);
        drop(beside);
        let beside = arena.beside(3 * PAGE_BYTES);
        assert!(!one.grow(7 * PAGE_LINES, 0) && one.grow(7 * PAGE_LINES, 3 * PAGE_BYTES));
        arena.keep_free(0);
        drop((beside, two));
        assert!(one.grow(14 * PAGE_LINES, 0), "pages that came back are used again");
        assert!((6 * PAGE_LINES..14 * PAGE_LINES).all(|line| *one.line(line) == [0; LINE]));
        assert_eq!(arena.bytes() as u64, budget.used_bytes());
        drop((one, arena));
        assert_eq!(budget.used_bytes(), 0);
    }
}
