//! Lines that adapt: digests of 64 bits while there are few keys, of 32, then 16 bits when there are more, and in the end
//! four bits for each key, as in a Bloom filter.
//!
//! Each form follows from the one before it, for shorter digests are the beginnings of longer ones, and bits are chosen by the
//! shortest. So what a line knew it still knows, and no key is ever looked at again. (In the spirit of Dillinger and
//! Manolios, Fast, all-purpose state storage, 2009, where the whole table changes at once.)

use super::New;
use crate::arena::{LINE, Line};
use crate::odds::Sum;

/// The first half word of a line is its head: which form, and how many keys.
const FORM_SHIFT: u32 = 8;
const COUNT_MASK: u16 = 0xFF;
/// Digests of 64, 32 and 16 bits that fit beside the head.
const ROOMS: [usize; 3] = [7, 15, 31];
const AS_BITS: usize = ROOMS.len();
/// Bits of a line beside the head, and how many are set for a key.
const FREE_BITS: usize = LINE * 32 - 16;
const BITS_PER_KEY: u32 = 4;
const ODD: u64 = 0xA24B_AED4_963E_E407;

#[derive(Debug)]
pub(super) struct Adaptive {
    /// What a new key adds to the odds in a line with so many digests of each length.
    digests: [Vec<Sum>; AS_BITS],
    /// The probability that a key finds its bits set where so many are.
    bits: [f64; FREE_BITS + 1],
}

impl Adaptive {
    pub fn new() -> Adaptive {
        let digests = std::array::from_fn(|form| {
            let odds = |held: usize| Sum::of_place(held as f64 / (64.0 / form_divisor(form)).exp2());
            (0..=ROOMS[form]).map(odds).collect()
        });
        let bits = std::array::from_fn(|set| (set as f64 / FREE_BITS as f64).powi(BITS_PER_KEY as i32));
        Adaptive { digests, bits }
    }

    pub fn insert(&self, line: &mut Line, key: u64) -> New {
        let head = halves(line)[0];
        let (form, count) = ((head >> FORM_SHIFT) as usize, (head & COUNT_MASK) as usize);
        if form == AS_BITS {
            return self.insert_bits(line, key, count);
        }
        let known = match form {
            0 => (0..count).any(|place| digest64(line, place) == key),
            1 => line[1..][..count].contains(&((key >> 32) as u32)),
            _ => halves(line)[1..][..count].contains(&((key >> 48) as u16)),
        };
        if known {
            return None;
        }
        let odds = self.digests[form][count];
        let form = if count == ROOMS[form] { shorten(line, form) } else { form };
        match form {
            0 => put64(line, count, key),
            1 => line[1 + count] = (key >> 32) as u32,
            2 => halves_mut(line)[1 + count] = (key >> 48) as u16,
            _ => set_bits(halves_mut(line), (key >> 48) as u16),
        }
        write_head(line, form, count + 1);
        Some(odds)
    }

    fn insert_bits(&self, line: &mut Line, key: u64, count: usize) -> New {
        let digest = (key >> 48) as u16;
        let free = halves_mut(line);
        if places(digest).all(|(half, bit)| free[half] & bit != 0) {
            return None;
        }
        let set: u32 = free[1..].iter().map(|half| half.count_ones()).sum();
        set_bits(free, digest);
        write_head(line, AS_BITS, count + 1);
        // Digests are equal, or all their bits are set by chance.
        let equal = count as f64 / (u16::MAX as f64 + 1.0);
        Some(Sum::of_place(equal + (1.0 - equal) * self.bits[set as usize]))
    }
}

fn form_divisor(form: usize) -> f64 {
    (1 << form) as f64
}

fn write_head(line: &mut Line, form: usize, count: usize) {
    halves_mut(line)[0] = (form as u16) << FORM_SHIFT | (count as u16).min(COUNT_MASK);
}

fn halves(line: &Line) -> &[u16] {
    bytemuck::cast_slice(line)
}

fn halves_mut(line: &mut Line) -> &mut [u16] {
    bytemuck::cast_slice_mut(line)
}

fn digest64(line: &Line, place: usize) -> u64 {
    line[2 + 2 * place] as u64 | (line[3 + 2 * place] as u64) << 32
}

fn put64(line: &mut Line, place: usize, digest: u64) {
    (line[2 + 2 * place], line[3 + 2 * place]) = (digest as u32, (digest >> 32) as u32);
}

/// Turns a full line into the next form, which is returned; the head is left to the caller.
fn shorten(line: &mut Line, form: usize) -> usize {
    let old = std::mem::take(line);
    match form {
        0 => (0..ROOMS[0]).for_each(|place| line[1 + place] = (digest64(&old, place) >> 32) as u32),
        1 => {
            let halves = halves_mut(line);
            old[1..].iter().zip(1..).for_each(|(digest, place)| halves[place] = (digest >> 16) as u16);
        }
        _ => halves(&old)[1..].iter().for_each(|&digest| set_bits(halves_mut(line), digest)),
    }
    form + 1
}

/// The bits of a digest, by half words, none of them in the head.
#[inline(always)]
fn places(digest: u16) -> impl Iterator<Item = (usize, u16)> {
    let mixed = (digest as u64 + 1).wrapping_mul(ODD);
    let mixed = (mixed ^ mixed >> 31).wrapping_mul(ODD);
    (0..BITS_PER_KEY).map(move |number| {
        let part = (mixed >> (16 * number)) as u16;
        let place = 16 + ((part as usize * FREE_BITS) >> 16);
        (place / 16, 1 << (place % 16))
    })
}

fn set_bits(halves: &mut [u16], digest: u16) {
    places(digest).for_each(|(half, bit)| halves[half] |= bit);
}
