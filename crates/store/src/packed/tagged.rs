//! Lines whose keys come and go, and have tags: small numbers that may change, between heads and tails.
//!
//! Where keys leave, an empty place tells nothing about who may be elsewhere. So a line counts the keys that came by and lie in
//! other lines; each takes that back when it leaves. Only where some did does a lookup go on. Tries come in pairs of lines that are
//! neighbours, and the first line of a pair counts who went to the second apart from who went on to other pairs: the neighbour
//! is close, and other pairs are not in the processor's caches.

use super::geometry::{Geometry, HEAD_BITS, LINE_BITS, scan};
use crate::arena::{LINE, Line, Pages};

/// Who came by is counted in the last bits of a line. If more did than fit, it stays so until all are counted again.
pub const PASSED_BITS: u32 = NEXT.bits + FAR.bits;
const NEXT: Counter = Counter { bits: 3, shift: u32::BITS - 3 };
const FAR: Counter = Counter { bits: 2, shift: NEXT.shift - 2 };

impl Geometry {
    /// The same with the longest keys that take no more room, but of at most 64 bits: what would be left over in lines is
    /// for keys that get longer.
    pub fn roomy(self) -> Geometry {
        let longer = (self.key_bits() + 1..=u64::BITS).map(|key_bits| self.with(key_bits, self.lines()));
        longer.take_while(|longer| longer.slots == self.slots).last().unwrap_or(self)
    }

    /// The same with tags of so many bits.
    pub fn with_tags(&self, tag_bits: u32) -> Geometry {
        Geometry::tagged(self.key_bits(), self.skip as u32, self.lines(), tag_bits)
    }

    pub fn tag_bits(&self) -> u32 {
        self.tag_bits as u32
    }

    /// The try on which the key at a place found room; zero if the place is empty.
    #[inline(always)]
    pub fn attempt(&self, line: &Line, place: u32) -> u32 {
        (bytemuck::cast_slice::<u32, u16>(line)[place as usize] >> HEAD_BITS) as u32
    }

    /// Which places of a line hold keys (one bit each)?
    #[inline(always)]
    pub fn taken(&self, line: &Line) -> u32 {
        !scan(line, 0).1 & u32::MAX >> (u32::BITS - self.slots as u32)
    }

    /// The first empty place.
    #[inline(always)]
    pub fn free(&self, line: &Line) -> Option<u32> {
        let place = scan(line, 0).1.trailing_zeros();
        (place < self.slots as u32).then_some(place)
    }

    /// Where the tag of a place is: in the four bytes from this one on, behind so many bits.
    #[inline(always)]
    fn tag_place(&self, place: u32) -> (usize, u32) {
        let bit = self.slots as u32 * u16::BITS + place * self.tag_bits as u32;
        let byte = (bit / 8).min(LINE_BITS / 8 - 4);
        (byte as usize, bit - 8 * byte)
    }

    #[inline(always)]
    pub fn tag(&self, line: &Line, place: u32) -> u16 {
        let (byte, bit) = self.tag_place(place);
        let bytes: &[u8] = bytemuck::cast_slice(line);
        let piece = u32::from_le_bytes(bytes[byte..][..4].try_into().expect("four bytes"));
        (piece >> bit & ((1 << self.tag_bits) - 1)) as u16
    }

    /// Which places have a tag of which this is true, also of those that are empty (one bit each)?
    #[inline(always)]
    pub fn tags_that(&self, line: &Line, is: impl Fn(u16) -> bool) -> u32 {
        let (slots, tag_bits) = (self.slots as u32, self.tag_bits as u32);
        if slots * tag_bits > u128::BITS || slots * 2 > LINE_BITS / 8 - 16 {
            return (0..slots).fold(0, |found, place| found | (is(self.tag(line, place)) as u32) << place);
        }
        let bytes: &[u8] = bytemuck::cast_slice(line);
        let tags = u128::from_le_bytes(bytes[slots as usize * 2..][..16].try_into().expect("sixteen bytes"));
        let is = |bits: u16| is(bits & u16::MAX >> (u16::BITS - tag_bits)) as u32;
        match tags as u64 {
            // Shifting one word takes half as long.
            tags if slots * tag_bits <= u64::BITS => {
                (0..slots).fold(0, |found, place| found | is((tags >> (place * tag_bits)) as u16) << place)
            }
            _ => (0..slots).fold(0, |found, place| found | is((tags >> (place * tag_bits)) as u16) << place),
        }
    }

    #[inline(always)]
    pub fn set_tag(&self, line: &mut Line, place: u32, tag: u16) {
        let (byte, bit) = self.tag_place(place);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(line);
        let piece: &mut [u8; 4] = (&mut bytes[byte..][..4]).try_into().expect("four bytes");
        let others = u32::from_le_bytes(*piece) & !(((1 << self.tag_bits) - 1) << bit);
        *piece = (others | (tag as u32) << bit).to_le_bytes();
    }

    /// Empties a place, which loses its mark; whatever its tag was.
    #[inline(always)]
    pub fn clear(&self, line: &mut Line, place: u32) {
        if self.mark_bits > 0 {
            self.unmark(line, place);
        }
        bytemuck::cast_slice_mut::<u32, u16>(line)[place as usize] = 0;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(line);
        let bit = self.tails as u32 + place * self.tail_bits as u32;
        let first = (bit / 8).min(LINE_BITS / 8 - 16);
        let piece: &mut [u8; 16] = (&mut bytes[first as usize..][..16]).try_into().expect("sixteen bytes");
        let mask = ((1u128 << self.tail_bits) - 1) << (bit - 8 * first);
        *piece = (u128::from_le_bytes(*piece) & !mask).to_le_bytes();
    }
}

/// Did keys come by that lie in other lines?
#[inline(always)]
pub fn is_passed(line: &Line) -> bool {
    line[LINE - 1] >> FAR.shift > 0
}

/// Did keys go on to the second line of the pair that begins here?
#[inline(always)]
pub fn is_next_taken(line: &Line) -> bool {
    NEXT.count(line) > 0
}

/// Did keys go on to other pairs of lines?
#[inline(always)]
pub fn is_left(line: &Line) -> bool {
    FAR.count(line) > 0
}

/// The lines that count a key that lies where it came to on this try, by their tries, and how; where it is on the try after the
/// last, the last does.
#[inline(always)]
fn counters(attempt: u32) -> impl Iterator<Item = (u32, Counter)> {
    let pairs = (1..attempt.saturating_sub(1)).step_by(2).map(|first| (first, FAR));
    pairs.chain((attempt.is_multiple_of(2)).then_some((attempt - 1, NEXT)))
}

impl Geometry {
    /// A key comes by lines, up to the one it finds room in on this try; returns of how many lines nobody knows from now on who came by.
    #[inline(always)]
    pub fn pass(&self, lines: &mut Pages, home: usize, rest: u64, attempt: u32) -> usize {
        counters(attempt).map(|(at, counter)| counter.add(lines.line_mut(self.line(home, rest, at))) as usize).sum()
    }

    /// A key that came by lies elsewhere no more.
    #[inline(always)]
    pub fn take_back(&self, lines: &mut Pages, home: usize, rest: u64, attempt: u32) {
        counters(attempt).for_each(|(at, counter)| counter.take_back(lines.line_mut(self.line(home, rest, at))));
    }
}

/// As if nobody had come by.
pub fn unpass(line: &mut Line) {
    line[LINE - 1] &= u32::MAX >> PASSED_BITS;
}

/// Some bits of the last word of a line.
#[derive(Clone, Copy)]
struct Counter {
    bits: u32,
    shift: u32,
}

impl Counter {
    const fn many(self) -> u32 {
        (1 << self.bits) - 1
    }

    #[inline(always)]
    fn count(self, line: &Line) -> u32 {
        line[LINE - 1] >> self.shift & self.many()
    }

    /// One more; true if from now on nobody knows how many.
    #[inline(always)]
    fn add(self, line: &mut Line) -> bool {
        let count = self.count(line);
        line[LINE - 1] += ((count < self.many()) as u32) << self.shift;
        count + 1 == self.many()
    }

    #[inline(always)]
    fn take_back(self, line: &mut Line) {
        let count = self.count(line);
        line[LINE - 1] -= ((count > 0 && count < self.many()) as u32) << self.shift;
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Found;
    use super::*;
    use plimsoll_ir::random::Draw;

    /// What a line should hold at each place.
    type Twin = Vec<Option<(u64, u128, u16)>>;

    fn try_out<const LONG: bool>(geometry: Geometry, draw: &mut Draw) {
        let (mut line, mut twin): (Line, Twin) = ([0; LINE], vec![None; geometry.slots()]);
        let (mut passed, low_bits) = ([0, 0], geometry.key_bits().saturating_sub(64));
        for _ in 0..500 {
            let place = draw.below(geometry.slots() as u64) as u32;
            let tag = draw.bits() as u16 >> (16 - geometry.tag_bits());
            match draw.below(4) {
                0 => {
                    geometry.clear(&mut line, place);
                    twin[place as usize] = None;
                }
                1 => {
                    geometry.set_tag(&mut line, place, tag);
                    twin[place as usize].iter_mut().for_each(|held| held.2 = tag);
                }
                2 if draw.below(9) == 0 => {
                    passed = [0, 0];
                    unpass(&mut line);
                }
                2 => {
                    let which = draw.below(2) as usize;
                    let (counter, passed) = ([NEXT, FAR][which], &mut passed[which]);
                    if draw.below(2) == 0 {
                        *passed = (*passed + 1).min(counter.many() + 1);
                        assert_eq!(counter.add(&mut line), *passed == counter.many());
                    } else {
                        counter.take_back(&mut line);
                        *passed -= (*passed > 0 && *passed < counter.many()) as u32;
                    }
                }
                _ => {
                    let low = draw.bits() & u64::MAX.checked_shl(64 - low_bits).unwrap_or(0);
                    let rest = geometry.split(draw.bits()).1;
                    let tail = geometry.tail::<LONG>(rest, low);
                    if let Found::Room(place) = geometry.find::<LONG>(&line, rest, tail, 3) {
                        geometry.put::<LONG>(&mut line, place, rest, tail, 3);
                        geometry.set_tag(&mut line, place, tag);
                        assert!(twin[place as usize].replace((rest, low as u128, tag)).is_none());
                    }
                }
            }
            assert_eq!((is_next_taken(&line), is_left(&line)), (passed[0] > 0, passed[1] > 0));
            assert_eq!(is_passed(&line), passed != [0, 0]);
            let odd = (0..geometry.slots() as u32).filter(|&place| geometry.tag(&line, place) % 2 == 1);
            assert_eq!(geometry.tags_that(&line, |tag| tag % 2 == 1), odd.map(|place| 1 << place).sum());
            for (place, held) in (0u32..).zip(&twin) {
                assert_eq!(geometry.taken(&line) >> place & 1 == 1, held.is_some());
                if let Some((rest, low, tag)) = *held {
                    let tail = geometry.tail::<LONG>(rest, low as u64);
                    assert!(matches!(geometry.find::<LONG>(&line, rest, tail, 3), Found::Here(_)));
                    let entry = geometry.entry::<LONG>(&line, place);
                    assert_eq!((entry, geometry.tag(&line, place)), ((3, rest, low as u64), tag), "{geometry:?}");
                }
            }
        }
    }

    #[test]
    fn who_comes_by_is_counted_where_it_is_looked_for() {
        let names = |attempt: u32| -> Vec<(u32, bool)> {
            counters(attempt).map(|(at, counter)| (at, counter.shift == FAR.shift)).collect()
        };
        assert_eq!((names(1), names(2), names(3)), (vec![], vec![(1, false)], vec![(1, true)]));
        assert_eq!(names(4), [(1, true), (3, false)]);
        assert_eq!(names(7), [(1, true), (3, true), (5, true)]);
        assert_eq!(names(8), [(1, true), (3, true), (5, true), (7, false)]);
    }

    #[test]
    fn places_are_emptied_and_tags_change_alone() {
        let mut draw = Draw::new(7);
        for key_bits in [20, 33, 47, 64, 65, 90, 127, 128] {
            for (lines, tag_bits) in [(64, 1), (64, 16), (1 << 12, 7), (99_998, 9)] {
                if key_bits > 64 {
                    try_out::<true>(Geometry::tagged(key_bits, 2, lines, tag_bits), &mut draw);
                } else {
                    try_out::<false>(Geometry::tagged(key_bits, 2, lines, tag_bits), &mut draw);
                    let geometry = Geometry::tagged(key_bits, 2, lines, tag_bits).roomy();
                    assert!(geometry.key_bits() >= key_bits);
                    try_out::<false>(geometry, &mut draw);
                }
            }
        }
    }
}
