//! Entries of four bytes: what the home line does not tell of a mixed value, and which try found room.
//!
//! A value that finds its home full tries other lines, chosen by its rest and the number of the try, so that
//! full lines do not pile up behind each other as they would with the next line; at a load of 0.85 a line
//! is full about once in four, and fifteen tries fail about once in a billion. What still finds no room is
//! kept aside by the caller. Line, try and rest give the home back, hence the value.

use super::mix::MIX_BITS;
use std::sync::atomic::{AtomicU32, Ordering};

/// Entries in a line.
pub const LINE: usize = 16;
/// Bits for the number of the try, from one; zero is an empty place.
const TRY_BITS: u32 = 4;
const TRIES: u32 = (1 << TRY_BITS) - 1;
const REST_BITS: u32 = 32 - TRY_BITS;
const REST_MASK: u32 = (1 << REST_BITS) - 1;
/// With fewer lines the rest of a mixed value does not fit.
pub const LEAST_LINES_LOG: u32 = MIX_BITS - REST_BITS;

/// The geometry of a compact table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    lines: usize,
    lines_log: u32,
}

impl Compact {
    pub fn new(lines: usize) -> Compact {
        let lines_log = lines.ilog2();
        assert!(lines_log >= LEAST_LINES_LOG);
        Compact { lines, lines_log }
    }

    /// Home line of a mixed value and the rest of it. Values with one home differ by at least one in
    /// `value * lines`, hence by at least `lines`, so dropping that many low bits keeps them apart.
    #[inline(always)]
    fn split(&self, mixed: u64) -> (usize, u32) {
        let product = mixed as u128 * self.lines as u128;
        let fraction = product as u64 & ((1 << MIX_BITS) - 1);
        ((product >> MIX_BITS) as usize, (fraction >> self.lines_log) as u32)
    }

    /// The mixed value with this home and rest: the only multiple of `lines` in a range shorter than it.
    #[inline(always)]
    fn join(&self, home: usize, rest: u32) -> u64 {
        let low = (home as u128) << MIX_BITS | (rest as u128) << self.lines_log;
        // Floating point is off by one at most: the value has 44 bits, the mantissa 53.
        let guess = (low as f64 / self.lines as f64) as u64;
        let fits = |value: u64| value as u128 * self.lines as u128 >= low;
        let first = guess.saturating_sub(1);
        (first..first + 3).find(|&value| fits(value)).expect("within one of the guess")
    }

    /// How far from its home a value with this rest lies on a later try.
    #[inline(always)]
    fn jump(&self, rest: u32, attempt: u32) -> usize {
        let hash = (rest as u64 ^ (attempt as u64) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ hash >> 31).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        ((hash as u128 * self.lines as u128) >> 64) as usize
    }

    /// The line of a try, the first of which is at home.
    #[inline(always)]
    fn line(&self, home: usize, rest: u32, attempt: u32) -> usize {
        if attempt == 1 {
            return home;
        }
        let line = home + self.jump(rest, attempt);
        if line >= self.lines { line - self.lines } else { line }
    }

    /// The mixed value of an entry found in `line`, and whether it is at home there.
    #[inline(always)]
    pub fn value(&self, line: usize, entry: u32) -> (u64, bool) {
        let (attempt, rest) = (entry >> REST_BITS, entry & REST_MASK);
        let home = match attempt {
            1 => line,
            _ => (line + self.lines - self.jump(rest, attempt)) % self.lines,
        };
        (self.join(home, rest), attempt == 1)
    }

    /// Inserts a mixed value: where it was found to be or put.
    #[inline(always)]
    pub fn insert(&self, slots: &[AtomicU32], mixed: u64) -> Inserted {
        let (home, rest) = self.split(mixed);
        for attempt in 1..=TRIES {
            let entry = attempt << REST_BITS | rest;
            let line: &[AtomicU32; LINE] =
                slots[self.line(home, rest, attempt) * LINE..][..LINE].try_into().expect("a whole line");
            loop {
                let (equal, empty) = scan(line, entry);
                if equal {
                    return Inserted::Known;
                }
                if empty == 0 {
                    break;
                }
                let hole = &line[empty.trailing_zeros() as usize];
                // Losing the race to another worker means to look again: it may have put the same value.
                if hole.compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    return if attempt == 1 { Inserted::AtHome } else { Inserted::Displaced };
                }
            }
        }
        Inserted::NoRoom
    }

    /// Puts a mixed value that is not there into its home line, if that has room; nobody else uses the table.
    pub fn place_at_home(&self, slots: &mut [u32], mixed: u64) -> bool {
        let (home, rest) = self.split(mixed);
        let hole = slots[home * LINE..][..LINE].iter_mut().find(|slot| **slot == 0);
        hole.map(|slot| *slot = 1 << REST_BITS | rest).is_some()
    }
}

/// Is `entry` in the line, and which places are empty (one bit each)? Without branches on the contents,
/// which nothing can predict.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn scan(line: &[AtomicU32; LINE], entry: u32) -> (bool, u32) {
    use core::arch::x86_64::*;
    // SAFETY: SSE2 is part of x86-64. The line is 64 readable bytes; the volatile reads may see entries that
    // other workers are adding, each whole, as aligned 32-bit stores are. A stale empty place is caught by
    // the compare-and-swap that follows.
    unsafe {
        let first = line.as_ptr().cast::<__m128i>();
        let (wanted, zero) = (_mm_set1_epi32(entry as i32), _mm_setzero_si128());
        let parts = [0, 1, 2, 3].map(|part| _mm_loadu_si128(&first.add(part).read_volatile()));
        let equal = parts.map(|part| _mm_cmpeq_epi32(part, wanted));
        let empty = parts.map(|part| _mm_cmpeq_epi32(part, zero));
        let any = _mm_or_si128(_mm_or_si128(equal[0], equal[1]), _mm_or_si128(equal[2], equal[3]));
        let low = _mm_packs_epi32(empty[0], empty[1]);
        let high = _mm_packs_epi32(empty[2], empty[3]);
        (_mm_movemask_epi8(any) != 0, _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32)
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn scan(line: &[AtomicU32; LINE], entry: u32) -> (bool, u32) {
    line.iter().enumerate().fold((false, 0), |(equal, empty), (place, slot)| {
        let found = slot.load(Ordering::Relaxed);
        (equal | (found == entry), empty | ((found == 0) as u32) << place)
    })
}

/// What became of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    Known,
    AtHome,
    Displaced,
    NoRoom,
}

#[cfg(test)]
mod tests {
    use super::super::home;
    use super::*;

    #[test]
    fn joining_undoes_splitting() {
        for lines in [1 << 16, 70_000, 99_999, 1 << 20, 3_333_333] {
            let compact = Compact::new(lines);
            let mut value = 1u64;
            for _ in 0..10_000 {
                value = value.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let mixed = value >> (64 - MIX_BITS);
                let (at, rest) = compact.split(mixed);
                assert_eq!(at, home(mixed, lines));
                assert!(rest < 1 << REST_BITS);
                assert_eq!(compact.join(at, rest), mixed);
                for attempt in 1..=TRIES {
                    let line = compact.line(at, rest, attempt);
                    assert!(line < lines);
                    assert_eq!(compact.value(line, attempt << REST_BITS | rest), (mixed, attempt == 1));
                }
            }
        }
    }
}
