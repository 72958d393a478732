//! Entries of four bytes: what the home line does not tell of a mixed value, and which try found room.
//!
//! A value that finds its home full tries other lines, chosen by its rest and the number of the try, so that
//! full lines do not pile up behind each other as they would with the next line; at a load of 0.85 a line
//! is full about once in four, and fifteen tries fail about once in a billion. What still finds no room is
//! kept aside by the caller. Line, try and rest give the home back, hence the value.

/// Entries in a line.
pub const LINE: usize = 16;
/// Bits for the number of the try, from one; zero is an empty place.
const TRY_BITS: u32 = 4;
pub const TRIES: u32 = (1 << TRY_BITS) - 1;
pub const REST_BITS: u32 = 32 - TRY_BITS;
const REST_MASK: u32 = (1 << REST_BITS) - 1;

/// The geometry of a compact table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    /// Bits of a mixed value.
    bits: u32,
    lines: usize,
    lines_log: u32,
}

impl Compact {
    pub fn new(bits: u32, lines: usize) -> Compact {
        let lines_log = lines.ilog2();
        assert!(bits <= lines_log + REST_BITS, "the rest of a value of {bits} bits does not fit");
        Compact { bits, lines, lines_log }
    }

    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Home line of a mixed value and the rest of it. Values with one home differ by at least one in
    /// `value * lines`, hence by at least `lines`, so dropping that many low bits keeps them apart.
    #[inline(always)]
    pub fn split(&self, mixed: u64) -> (usize, u32) {
        let product = mixed as u128 * self.lines as u128;
        let fraction = product as u64 & ((1 << self.bits) - 1);
        ((product >> self.bits) as usize, (fraction >> self.lines_log) as u32)
    }

    /// The mixed value with this home and rest: the only multiple of `lines` in a range shorter than it.
    #[inline(always)]
    fn join(&self, home: usize, rest: u32) -> u64 {
        let low = (home as u128) << self.bits | (rest as u128) << self.lines_log;
        // The value is that over the number of lines, rounded up. Floating point is faster and off by less than two
        // while values have fewer bits than a mantissa.
        if self.bits > 50 {
            return low.div_ceil(self.lines as u128) as u64;
        }
        let scaled = home as f64 * (1u64 << self.bits) as f64 + ((rest as u64) << self.lines_log) as f64;
        let guess = (scaled / self.lines as f64) as u64;
        let (lines, short) =
            (self.lines as i64, (low as u64).wrapping_sub(guess.wrapping_mul(self.lines as u64)) as i64);
        guess.wrapping_add_signed((short > 0) as i64 + (short > lines) as i64 - (short <= -lines) as i64)
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
    pub fn line(&self, home: usize, rest: u32, attempt: u32) -> usize {
        if attempt == 1 {
            return home;
        }
        let line = home + self.jump(rest, attempt);
        if line >= self.lines { line - self.lines } else { line }
    }

    /// The home of an entry found in `line`.
    #[inline(always)]
    pub fn home(&self, line: usize, entry: u32) -> usize {
        let (attempt, rest) = (entry >> REST_BITS, entry & REST_MASK);
        if attempt == 1 {
            return line;
        }
        let jump = self.jump(rest, attempt);
        if line >= jump { line - jump } else { line + self.lines - jump }
    }

    /// The mixed value of an entry found in `line`, and whether it is at home there.
    #[inline(always)]
    pub fn value(&self, line: usize, entry: u32) -> (u64, bool) {
        (self.join(self.home(line, entry), entry & REST_MASK), entry >> REST_BITS == 1)
    }
}

/// Which places of a line hold `entry`, and which are empty (one bit each)? Without branches on the contents, which
/// nothing can predict.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn scan(line: &[u32; LINE], entry: u32) -> (u32, u32) {
    use core::arch::x86_64::*;
    // SAFETY: a line is four times sixteen readable bytes; SSE2 is part of x86-64.
    unsafe {
        let first = line.as_ptr().cast::<__m128i>();
        let parts = [0, 1, 2, 3].map(|part| _mm_loadu_si128(first.add(part)));
        let places = |wanted: __m128i| {
            let found = parts.map(|part| _mm_cmpeq_epi32(part, wanted));
            let halves = [_mm_packs_epi32(found[0], found[1]), _mm_packs_epi32(found[2], found[3])];
            _mm_movemask_epi8(_mm_packs_epi16(halves[0], halves[1])) as u32
        };
        (places(_mm_set1_epi32(entry as i32)), places(_mm_setzero_si128()))
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn scan(line: &[u32; LINE], entry: u32) -> (u32, u32) {
    line.iter().enumerate().fold((0, 0), |(equal, empty), (place, &found)| {
        (equal | ((found == entry) as u32) << place, empty | ((found == 0) as u32) << place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn joining_undoes_splitting() {
        for (bits, lines) in
            [(44, 1 << 16), (44, 70_000), (44, 99_999), (44, 1 << 20), (44, 3_333_333), (34, 100), (56, 300_000_000)]
        {
            let compact = Compact::new(bits, lines);
            let mut draw = Draw::new(bits as u64);
            for _ in 0..10_000 {
                let mixed = draw.bits() >> (64 - bits);
                let (at, rest) = compact.split(mixed);
                assert_eq!(at, ((mixed as u128 * lines as u128) >> bits) as usize);
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
