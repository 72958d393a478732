//! Lines whose keys come and go, and have tags: small numbers that may change, between heads and tails.
//!
//! Where keys leave, an empty place tells nothing about who may be elsewhere. So a line counts the keys that came by and lie in
//! other lines; each takes that back when it leaves. Only where some did does a lookup go on.

use super::geometry::{Geometry, HEAD_BITS, LINE_BITS, scan};
use crate::arena::{LINE, Line};

/// Who came by is counted in the last bits of a line. If more did than fit, it stays so until all are counted again.
pub const PASSED_BITS: u32 = 3;
const PASSED_SHIFT: u32 = u32::BITS - PASSED_BITS;
const MANY: u32 = (1 << PASSED_BITS) - 1;

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
        let mut tags = u128::from_le_bytes(bytes[slots as usize * 2..][..16].try_into().expect("sixteen bytes"));
        (0..slots).fold(0, |found, place| {
            let tag = tags as u16 & (u16::MAX >> (u16::BITS - tag_bits));
            tags >>= tag_bits;
            found | (is(tag) as u32) << place
        })
    }

    #[inline(always)]
    pub fn set_tag(&self, line: &mut Line, place: u32, tag: u16) {
        let (byte, bit) = self.tag_place(place);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(line);
        let piece: &mut [u8; 4] = (&mut bytes[byte..][..4]).try_into().expect("four bytes");
        let others = u32::from_le_bytes(*piece) & !(((1 << self.tag_bits) - 1) << bit);
        *piece = (others | (tag as u32) << bit).to_le_bytes();
    }

    /// Empties a place; whatever its tag was.
    #[inline(always)]
    pub fn clear(&self, line: &mut Line, place: u32) {
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
    line[LINE - 1] >> PASSED_SHIFT > 0
}

/// A key comes by; true if from now on nobody knows how many did.
#[inline(always)]
pub fn pass(line: &mut Line) -> bool {
    let passed = line[LINE - 1] >> PASSED_SHIFT;
    line[LINE - 1] += ((passed < MANY) as u32) << PASSED_SHIFT;
    passed + 1 == MANY
}

/// A key that came by lies elsewhere no more.
#[inline(always)]
pub fn take_back(line: &mut Line) {
    let passed = line[LINE - 1] >> PASSED_SHIFT;
    line[LINE - 1] -= ((passed > 0 && passed < MANY) as u32) << PASSED_SHIFT;
}

/// As if nobody had come by.
pub fn unpass(line: &mut Line) {
    line[LINE - 1] &= !(MANY << PASSED_SHIFT);
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
        let (mut passed, low_bits) = (0, geometry.key_bits().saturating_sub(64));
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
                2 if draw.below(2) == 0 => {
                    passed = (passed + 1).min(MANY + 1);
                    assert_eq!(pass(&mut line), passed == MANY);
                }
                2 if draw.below(9) == 0 => {
                    passed = 0;
                    unpass(&mut line);
                }
                2 => {
                    take_back(&mut line);
                    passed -= (passed > 0 && passed < MANY) as u32;
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
            assert_eq!(is_passed(&line), passed > 0);
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
