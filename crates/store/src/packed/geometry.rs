//! Where keys lie in a table of lines, and which of their bits a line keeps.
//!
//! The home of a key is its value scaled to the number of lines. What the home does not tell, the rest, is kept to the
//! bit: a line begins with heads of sixteen bits, which are compared all at once, each with the number of the try and
//! the first bits of the rest; behind them lie the tails, as long as they have to be. A key that finds its home full
//! tries the neighbour, then other pairs of lines, chosen by its rest and the number of the try, so that full lines do
//! not pile up behind each other. Line, try and rest give the home back, hence the key.

use super::tagged::PASSED_BITS;
use crate::arena::{LINE, Line};

/// Bits for the number of the try, from one; a head of zero is an empty place.
const TRY_BITS: u32 = 3;
pub const TRIES: u32 = (1 << TRY_BITS) - 1;
/// Bits of the rest in a head, at most.
pub(super) const HEAD_BITS: u32 = u16::BITS - TRY_BITS;
pub(super) const LINE_BITS: u32 = LINE as u32 * u32::BITS;
/// Heads that fill a line.
const HEADS: u32 = LINE_BITS / u16::BITS;

/// How the keys of one table lie in its lines. It is small, for tables have one for each of their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    lines: u32,
    lines_log: u8,
    /// Leading bits that are the same in all keys.
    pub(super) skip: u8,
    /// Bits behind those that choose home and rest.
    bits: u8,
    rest_bits: u8,
    /// Bits of the rest that are in the tail.
    tail_rest_bits: u8,
    /// Bits of keys beyond the first 64, which are in the tail too.
    low_bits: u8,
    pub(super) tail_bits: u8,
    /// Bits of the tags, where keys have those: see [`super::tagged`].
    pub(super) tag_bits: u8,
    /// Bits of the marks, none or one for each place, at the end of a line: see [`super::marks`].
    pub(super) mark_bits: u8,
    pub(super) slots: u8,
    /// The first bit of the tails in a line.
    pub(super) tails: u16,
    /// 2^64 over `lines`, rounded down.
    reciprocal: u64,
}

impl Geometry {
    /// For keys of `key_bits` bits of which the first `skip` are the same in all.
    pub fn new(key_bits: u32, skip: u32, lines: usize) -> Geometry {
        Geometry::laid_out(key_bits, skip, lines, [0, 0])
    }

    /// The same with tags of so many bits between heads and tails.
    pub fn tagged(key_bits: u32, skip: u32, lines: usize, tag_bits: u32) -> Geometry {
        Geometry::laid_out(key_bits, skip, lines, [tag_bits, 0])
    }

    /// The same with tags and marks of so many bits.
    pub(super) fn laid_out(key_bits: u32, skip: u32, lines: usize, [tag_bits, mark_bits]: [u32; 2]) -> Geometry {
        assert!(lines.is_multiple_of(2), "lines have neighbours");
        let lines_log = lines.ilog2();
        // Where keys are very short some zeros behind them take part.
        let bits = key_bits.min(u64::BITS).saturating_sub(skip).max(lines_log + 1);
        assert!(skip + bits <= u64::BITS, "more lines than keys can tell apart");
        let (rest_bits, low_bits) = (bits - lines_log, key_bits.saturating_sub(u64::BITS));
        let tail_rest_bits = rest_bits.saturating_sub(HEAD_BITS);
        let tail_bits = tail_rest_bits + low_bits;
        // Lines with tags have some bits of their own at the end.
        let own_bits = if tag_bits > 0 { PASSED_BITS } else { 0 };
        let slots = ((LINE_BITS - own_bits) / (u16::BITS + tag_bits + tail_bits + mark_bits)).min(HEADS);
        let tails = if tail_bits == 0 { 0 } else { slots * (u16::BITS + tag_bits) };
        let reciprocal = u64::MAX / lines as u64;
        Geometry {
            lines: u32::try_from(lines).expect("homes have 32 bits"),
            lines_log: lines_log as u8,
            skip: skip as u8,
            bits: bits as u8,
            rest_bits: rest_bits as u8,
            tail_rest_bits: tail_rest_bits as u8,
            low_bits: low_bits as u8,
            tail_bits: tail_bits as u8,
            tag_bits: tag_bits as u8,
            mark_bits: mark_bits as u8,
            slots: slots as u8,
            tails: tails as u16,
            reciprocal,
        }
    }

    /// The same for keys of another length in another number of lines.
    pub fn with(&self, key_bits: u32, lines: usize) -> Geometry {
        Geometry::laid_out(key_bits, self.skip as u32, lines, [self.tag_bits as u32, self.mark_bits as u32])
    }

    /// Bits of keys that can be told apart.
    pub fn key_bits(&self) -> u32 {
        self.skip as u32 + self.bits as u32 + self.low_bits as u32
    }

    /// A key without the bits that all have in common.
    pub fn own(&self, key: u128) -> u128 {
        key << self.skip >> self.skip
    }

    pub fn lines(&self) -> usize {
        self.lines as usize
    }

    /// Keys in a line.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Home and rest of a key with these leading 64 bits. Values with one home differ by at least one in
    /// `value * lines`, hence by at least `lines`, so dropping that many low bits keeps them apart.
    #[inline(always)]
    pub fn split(&self, high: u64) -> (usize, u64) {
        let product = (high << self.skip) as u128 * self.lines as u128;
        ((product >> 64) as usize, product as u64 >> (u64::BITS - self.rest_bits as u32))
    }

    /// Where values with this home begin.
    pub fn base(&self, home: usize) -> Base {
        let (least, lines) = ((home as u128) << self.bits, self.lines as u128);
        let value = least.div_ceil(lines);
        Base { value: value as u64, beyond: (value * lines - least) as u64 }
    }

    /// Where values begin, for all homes from the last to the first: quicker than finding each by itself.
    pub fn bases_from_last(&self) -> impl Iterator<Item = Base> + use<> {
        let (width, lines) = (1u128 << self.bits, self.lines as u64);
        let (steps, left) = ((width / lines as u128) as u64, (width % lines as u128) as u64);
        let before = move |base: &Base| {
            let beyond = base.beyond + left;
            let wraps = (beyond >= lines) as u64;
            Some(Base { value: base.value.wrapping_sub(steps + wraps), beyond: beyond - wraps * lines })
        };
        std::iter::successors(Some(self.base(self.lines() - 1)), before).take(self.lines())
    }

    /// The leading 64 bits of the key with this rest, but for those that are skipped.
    #[inline(always)]
    pub fn join(&self, base: Base, rest: u64) -> u64 {
        // A value is so far from the first as this fraction has room for multiples of `lines`, rounded up.
        let fraction = (rest << self.lines_log).saturating_sub(base.beyond);
        let guess = ((fraction as u128 * self.reciprocal as u128) >> 64) as u64;
        let (short, lines) = (fraction - guess * self.lines as u64, self.lines as u64);
        let steps = guess + (short > 0) as u64 + (short > lines) as u64 + (short > 2 * lines) as u64;
        base.value.wrapping_add(steps) << (u64::BITS - self.bits as u32) >> self.skip
    }

    /// How far from its home a key with this rest lies on a later pair of tries.
    #[inline(always)]
    fn jump(&self, rest: u64, pair: u32) -> usize {
        let hash = (rest ^ (pair as u64) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ hash >> 31).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        ((hash as u128 * self.lines as u128) >> 64) as usize
    }

    /// The line of a try: the home, its neighbour, which processors fetch with it, then another pair far away, and so on.
    #[inline(always)]
    pub fn line(&self, home: usize, rest: u64, attempt: u32) -> usize {
        if attempt <= 2 {
            return home ^ (attempt as usize - 1);
        }
        let line = home + self.jump(rest, attempt / 2 + attempt % 2);
        (if line >= self.lines() { line - self.lines() } else { line }) ^ ((attempt as usize - 1) % 2)
    }

    /// The home of a key that was found on a try.
    #[inline(always)]
    pub fn home(&self, line: usize, rest: u64, attempt: u32) -> usize {
        let line = line ^ ((attempt as usize - 1) % 2);
        match attempt {
            1 | 2 => line,
            _ => (line + self.lines() - self.jump(rest, attempt / 2 + attempt % 2)) % self.lines(),
        }
    }

    /// What a line keeps of a rest beside the number of the try.
    #[inline(always)]
    fn head(&self, rest: u64, attempt: u32) -> u16 {
        (attempt << HEAD_BITS) as u16 | (rest >> self.tail_rest_bits) as u16
    }

    /// The tail of a key with this rest. Only if keys are `LONG` is there anything in `low`.
    #[inline(always)]
    pub fn tail<const LONG: bool>(&self, rest: u64, low: u64) -> u128 {
        let tail = rest & ((1 << self.tail_rest_bits) - 1);
        if LONG {
            (tail as u128) << self.low_bits | low as u128 >> (u64::BITS - self.low_bits as u32)
        } else {
            tail as u128
        }
    }

    /// Looks for a key in the line of a try.
    #[inline(always)]
    pub fn find<const LONG: bool>(&self, line: &Line, rest: u64, tail: u128, attempt: u32) -> Found {
        let (mut equal, empty) = scan(line, self.head(rest, attempt));
        let slots = u32::MAX >> (u32::BITS - self.slots as u32);
        equal &= slots;
        while equal != 0 {
            if self.read::<LONG>(line, equal.trailing_zeros()) == tail {
                return Found::Here(equal.trailing_zeros());
            }
            equal &= equal - 1;
        }
        let place = (empty & slots).trailing_zeros();
        if place < self.slots as u32 { Found::Room(place) } else { Found::NoRoom }
    }

    /// Puts a key into an empty place.
    #[inline(always)]
    pub fn put<const LONG: bool>(&self, line: &mut Line, place: u32, rest: u64, tail: u128, attempt: u32) {
        bytemuck::cast_slice_mut::<u32, u16>(line)[place as usize] = self.head(rest, attempt);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(line);
        let bit = self.tails as u32 + place * self.tail_bits as u32;
        // What is empty is zero; near the end of the line, a piece that begins earlier is taken.
        if LONG {
            let first = (bit / 8).min(LINE_BITS / 8 - 16);
            let piece: &mut [u8; 16] = (&mut bytes[first as usize..][..16]).try_into().expect("sixteen bytes");
            *piece = (u128::from_le_bytes(*piece) | tail << (bit - 8 * first)).to_le_bytes();
        } else {
            let first = (bit / 8).min(LINE_BITS / 8 - 8);
            let piece: &mut [u8; 8] = (&mut bytes[first as usize..][..8]).try_into().expect("eight bytes");
            *piece = (u64::from_le_bytes(*piece) | (tail as u64) << (bit - 8 * first)).to_le_bytes();
        }
    }

    /// The tail at a place.
    #[inline(always)]
    fn read<const LONG: bool>(&self, line: &Line, place: u32) -> u128 {
        let bytes: &[u8] = bytemuck::cast_slice(line);
        let bit = self.tails as u32 + place * self.tail_bits as u32;
        if LONG {
            let first = (bit / 8).min(LINE_BITS / 8 - 16);
            let piece = u128::from_le_bytes(bytes[first as usize..][..16].try_into().expect("sixteen bytes"));
            piece >> (bit - 8 * first) & ((1 << self.tail_bits) - 1)
        } else {
            let first = (bit / 8).min(LINE_BITS / 8 - 8);
            let piece = u64::from_le_bytes(bytes[first as usize..][..8].try_into().expect("eight bytes"));
            (piece >> (bit - 8 * first) & ((1 << self.tail_bits) - 1)) as u128
        }
    }

    /// How many keys a line holds.
    #[inline(always)]
    pub fn held(&self, line: &Line) -> u32 {
        scan(line, 0).1.trailing_zeros().min(self.slots as u32)
    }

    /// Try, rest and last 64 bits of the key at a place.
    #[inline(always)]
    pub fn entry<const LONG: bool>(&self, line: &Line, place: u32) -> (u32, u64, u64) {
        let head = bytemuck::cast_slice::<u32, u16>(line)[place as usize];
        let (attempt, head) = ((head >> HEAD_BITS) as u32, (head & ((1 << HEAD_BITS) - 1)) as u64);
        let tail = self.read::<LONG>(line, place);
        let (tail_rest, low) = match LONG {
            true => ((tail >> self.low_bits) as u64, (tail << (u64::BITS - self.low_bits as u32)) as u64),
            false => (tail as u64, 0),
        };
        (attempt, head << self.tail_rest_bits | tail_rest, low)
    }

    /// Gives the keys of a line that are at home there to `home` (leading bits, last bits), and says which places hold others.
    #[inline(always)]
    pub fn empty<const LONG: bool>(&self, base: Base, line: &Line, mut home: impl FnMut(u64, u64)) -> u32 {
        let mut others = 0;
        for place in 0..self.held(line) {
            let (attempt, rest, low) = self.entry::<LONG>(line, place);
            if attempt == 1 {
                home(self.join(base, rest), low);
            } else {
                others |= 1 << place;
            }
        }
        others
    }

    /// For keys of which `log` more bits are the same in all, in as much smaller a part of the lines. What is at home in a
    /// line, or in its neighbour, is written there in the same way.
    pub fn divided(&self, log: u32) -> Geometry {
        let (skip, bits) = (self.skip as u32 + log, [self.tag_bits as u32, self.mark_bits as u32]);
        let divided = Geometry::laid_out(self.key_bits(), skip, self.lines() >> log, bits);
        let same =
            (divided.rest_bits, divided.tail_bits, divided.slots) == (self.rest_bits, self.tail_bits, self.slots);
        assert!(same && divided.lines() << log == self.lines(), "pages can be divided so often");
        divided
    }

    /// Which of its parts a key is in, if there are 2^`log`.
    pub fn part(&self, key: u128, log: u32) -> usize {
        (key << self.skip >> (u128::BITS - log)) as usize
    }

    /// How many keys a line holds, how many of them came to it on their second try, and how many on a later one.
    pub fn displaced(&self, line: &Line) -> [usize; 3] {
        let heads = &bytemuck::cast_slice::<u32, u16>(line)[..self.held(line) as usize];
        let count = |is: fn(u16) -> bool| heads.iter().filter(|&&head| is(head >> HEAD_BITS)).count();
        [heads.len(), count(|attempt| attempt == 2), count(|attempt| attempt > 2)]
    }

    /// The same line with the keys only that are at home there; the others are given to `away`, without the bits that all have in common.
    pub fn at_home<const LONG: bool>(&self, number: usize, line: &Line, mut away: impl FnMut(u128)) -> Line {
        let (mut kept, mut place, base) = ([0; LINE], 0, self.base(number));
        for from in 0..self.held(line) {
            let (attempt, rest, low) = self.entry::<LONG>(line, from);
            if attempt > 1 {
                away(self.key::<LONG>(number, base, line, from).0);
            } else {
                self.put::<LONG>(&mut kept, place, rest, self.tail::<LONG>(rest, low), attempt);
                place += 1;
            }
        }
        kept
    }

    /// The line that holds these keys, all of them at home.
    #[inline(always)]
    pub fn full<const LONG: bool>(&self, keys: &Gathered) -> Line {
        let mut line = [0; LINE];
        let (rests, lows) = (&keys.rests[..keys.len], &keys.lows[..keys.len]);
        if LONG {
            for (place, (&rest, &low)) in rests.iter().zip(lows).enumerate() {
                self.put::<LONG>(&mut line, place as u32, rest, self.tail::<LONG>(rest, low), 1);
            }
            return line;
        }
        let heads: &mut [u16] = bytemuck::cast_slice_mut(&mut line);
        heads.iter_mut().zip(rests).for_each(|(head, &rest)| *head = self.head(rest, 1));
        // Tails are put together in a register, for reading what was just written takes long.
        let (mut joined, mut bits, mut at) = (0u64, 0, self.tails as usize / 16);
        let mask = (1 << self.tail_bits) - 1;
        for &rest in rests {
            joined |= (rest & mask) << bits;
            bits += self.tail_bits as u32;
            while bits >= 16 {
                heads[at] = (joined as u16).to_le();
                (joined, bits, at) = (joined >> 16, bits - 16, at + 1);
            }
        }
        if bits > 0 {
            heads[at] = (joined as u16).to_le();
        }
        line
    }

    /// The key at a place of line `number`, which is home from `base` on, but for the bits that are skipped, and whether it is
    /// at home there.
    #[inline(always)]
    pub fn key<const LONG: bool>(&self, number: usize, base: Base, line: &Line, place: u32) -> (u128, bool) {
        let (attempt, rest, low) = self.entry::<LONG>(line, place);
        // Finding where another home begins takes a long division.
        let base = if attempt == 1 { base } else { self.base(self.home(number, rest, attempt)) };
        ((self.join(base, rest) as u128) << 64 | low as u128, attempt == 1)
    }
}

/// The least value with some home, and by how much its product is beyond the beginning of that home.
#[derive(Clone, Copy)]
pub struct Base {
    value: u64,
    beyond: u64,
}

/// Keys that will make up a line: their rests and their last bits.
#[derive(Clone)]
pub struct Gathered {
    len: usize,
    rests: [u64; HEADS as usize],
    lows: [u64; HEADS as usize],
}

impl Gathered {
    pub fn new() -> Gathered {
        Gathered { len: 0, rests: [0; _], lows: [0; _] }
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a key; there must be room.
    #[inline(always)]
    pub fn push<const LONG: bool>(&mut self, rest: u64, low: u64) {
        self.rests[self.len] = rest;
        if LONG {
            self.lows[self.len] = low;
        }
        self.len += 1;
    }
}

/// What became of a search in one line.
pub enum Found {
    Here(u32),
    /// It is not here, and there is room.
    Room(u32),
    /// It is not here, and the line is full.
    NoRoom,
}

/// Which places of a line have this head, and which are empty (one bit each)? Tails may look like heads. Without branches
/// on the contents, which nothing can predict.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn scan(line: &Line, head: u16) -> (u32, u32) {
    use core::arch::x86_64::*;
    // SAFETY: a line is four times sixteen readable bytes; SSE2 is part of x86-64.
    unsafe {
        let first = line.as_ptr().cast::<__m128i>();
        let parts = [0, 1, 2, 3].map(|part| _mm_loadu_si128(first.add(part)));
        let places = |wanted: __m128i| {
            let found = parts.map(|part| _mm_cmpeq_epi16(part, wanted));
            let low = _mm_movemask_epi8(_mm_packs_epi16(found[0], found[1])) as u32;
            low | (_mm_movemask_epi8(_mm_packs_epi16(found[2], found[3])) as u32) << 16
        };
        (places(_mm_set1_epi16(head as i16)), places(_mm_setzero_si128()))
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn scan(line: &Line, head: u16) -> (u32, u32) {
    bytemuck::cast_slice::<u32, u16>(line).iter().enumerate().fold((0, 0), |(equal, empty), (place, &found)| {
        (equal | ((found == head) as u32) << place, empty | ((found == 0) as u32) << place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn lines_give_keys_back() {
        let mut draw = Draw::new(0);
        for (key_bits, skip) in [(24, 0), (24, 8), (32, 5), (44, 0), (57, 13), (64, 0), (64, 9), (65, 3), (128, 0)] {
            for lines in [64, 100, 1 << 10, 70_000, 99_998] {
                if skip + usize::ilog2(lines) >= 64.min(key_bits) {
                    continue;
                }
                let geometry = Geometry::new(key_bits, skip, lines);
                let mut line = [0; LINE];
                let mut held: Vec<(usize, u128, u32)> = Vec::new();
                for _ in 0..3_000 {
                    let key = (draw.bits() as u128) << 64 | draw.bits() as u128;
                    let key = key << skip >> skip & u128::MAX << (128 - key_bits);
                    let (home, rest) = geometry.split((key >> 64) as u64);
                    assert!(home < lines && rest >> geometry.rest_bits == 0);
                    let attempt = 1 + draw.below(TRIES as u64) as u32;
                    let number = geometry.line(home, rest, attempt);
                    assert!(number < lines);
                    if held.len() == geometry.slots() {
                        (line, held) = ([0; LINE], Vec::new());
                    }
                    macro_rules! check {
                        ($long:literal) => {{
                            let tail = geometry.tail::<$long>(rest, key as u64);
                            if let Found::Room(place) = geometry.find::<$long>(&line, rest, tail, attempt) {
                                geometry.put::<$long>(&mut line, place, rest, tail, attempt);
                                held.push((number, key, attempt));
                            }
                            assert!(matches!(geometry.find::<$long>(&line, rest, tail, attempt), Found::Here(_)));
                            for (place, &(number, key, attempt)) in held.iter().enumerate() {
                                let expected = (key, attempt == 1);
                                assert_eq!(
                                    geometry.key::<$long>(number, geometry.base(number), &line, place as u32),
                                    expected,
                                    "{geometry:?}"
                                );
                            }
                        }};
                    }
                    if key_bits > 64 {
                        check!(true)
                    } else {
                        check!(false)
                    }
                    assert_eq!(geometry.held(&line) as usize, held.len());
                }
            }
        }
    }
}
