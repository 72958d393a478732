//! Entries of a log, in pieces of four bits.
//!
//! Most states have the parent of the one before or the next one, and the positions of a parent ascend. So an entry tells
//! by how many the parent is further and how many positions were passed over, and for three in four or more one piece tells
//! both. Numbers that are too large for it follow, three bits in each piece, lowest first, and a fourth that says whether there are more.

/// An entry never takes more pieces than this.
pub const LONGEST: usize = 1 + (u64::BITS.div_ceil(NUMBER_BITS) + u32::BITS.div_ceil(NUMBER_BITS)) as usize;
const NUMBER_BITS: u32 = 3;
const MORE: u8 = 1 << NUMBER_BITS;

/// Pieces that tell all, by how many the parent is further: the first of them, and how many there are.
const SHORT: [(u8, u32); 3] = [(0, 5), (5, 5), (10, 3)];
/// The parent is the same, or the next, and more positions were passed over: by how many more follows.
const FAR: u8 = 13;
/// Step and position follow as they are.
const WHOLE: u8 = 15;

/// What is known from the entry before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    pub parent: u64,
    /// The least position that a short entry of the same parent can have.
    next: u32,
}

impl Last {
    /// Before the first entry, which is told as it is.
    pub fn before(parent: u64) -> Last {
        Last { parent, next: u32::MAX }
    }

    pub fn after(parent: u64, position: u32) -> Last {
        Last { parent, next: position.saturating_add(1) }
    }

    /// The same where states have lower numbers.
    pub fn less(self, by: u64) -> Last {
        Last { parent: self.parent - by, ..self }
    }
}

/// Writes an entry behind the first `at` pieces; parents never decrease.
#[inline]
pub fn put(last: &mut Last, parent: u64, position: u32, out: &mut [u8], at: &mut usize) {
    let step = parent - last.parent;
    let first = if step == 0 { last.next } else { 0 };
    *last = Last::after(parent, position);
    match (SHORT.get(step as usize), position.checked_sub(first)) {
        (Some(&(code, count)), Some(gap)) if gap < count => put_piece(code + gap as u8, out, at),
        (Some(&(_, count)), Some(gap)) if step < 2 => {
            put_piece(FAR + step as u8, out, at);
            put_number((gap - count) as u64, out, at);
        }
        _ => {
            put_piece(WHOLE, out, at);
            put_number(step, out, at);
            put_number(position as u64, out, at);
        }
    }
}

#[inline]
fn put_piece(piece: u8, out: &mut [u8], at: &mut usize) {
    let byte = &mut out[*at / 2];
    *byte = if at.is_multiple_of(2) { piece } else { *byte & 15 | piece << 4 };
    *at += 1;
}

fn put_number(mut number: u64, out: &mut [u8], at: &mut usize) {
    while number >= MORE as u64 {
        put_piece(MORE | number as u8 & (MORE - 1), out, at);
        number >>= NUMBER_BITS;
    }
    put_piece(number as u8, out, at);
}

/// Copies `count` pieces behind the first `at`; there must be room for one more.
pub fn append(pieces: &[u8], count: usize, out: &mut [u8], at: &mut usize) {
    let (bytes, out) = (&pieces[..count.div_ceil(2)], &mut out[*at / 2..]);
    if at.is_multiple_of(2) {
        out[..bytes.len()].copy_from_slice(bytes);
    } else {
        // Sixteen at a time: one worker does this for all.
        let mut carried = (out[0] & 15) as u64;
        let (words, rest) = bytes.as_chunks::<8>();
        let (places, _) = out.as_chunks_mut::<8>();
        for (place, word) in places.iter_mut().zip(words) {
            let word = u64::from_le_bytes(*word);
            *place = (carried | word << 4).to_le_bytes();
            carried = word >> 60;
        }
        let out = &mut out[8 * words.len()..];
        for (place, &byte) in out.iter_mut().zip(rest) {
            *place = carried as u8 | byte << 4;
            carried = (byte >> 4) as u64;
        }
        out[rest.len()] = carried as u8;
    }
    *at += count;
}

/// Parents and positions, in order.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    last: Last,
}

impl<'a> Entries<'a> {
    /// Those in the first `end` pieces.
    pub fn of(bytes: &'a [u8], end: usize, before: Last) -> Entries<'a> {
        Entries { bytes, at: 0, end, last: before }
    }

    pub fn is_done(&self) -> bool {
        self.at >= self.end
    }

    #[inline(always)]
    fn piece(&mut self) -> u8 {
        let byte = self.bytes[self.at / 2];
        self.at += 1;
        if self.at % 2 == 1 { byte & 15 } else { byte >> 4 }
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let piece = self.piece();
            number |= ((piece & (MORE - 1)) as u64) << shift;
            shift += NUMBER_BITS;
            if piece & MORE == 0 {
                return number;
            }
        }
    }

    /// The position behind so many that were passed over, of a parent that is so much further.
    #[inline(always)]
    fn beyond(&self, step: u64, gap: u32) -> u32 {
        if step == 0 { self.last.next + gap } else { gap }
    }

    /// Step and position of an entry that takes more than one piece.
    #[inline(never)]
    fn longer(&mut self, code: u8) -> (u64, u32) {
        if code == WHOLE {
            return (self.number(), self.number() as u32);
        }
        let step = code - FAR;
        let gap = self.number() as u32 + SHORT[step as usize].1;
        (step as u64, self.beyond(step as u64, gap))
    }
}

impl Iterator for Entries<'_> {
    type Item = (u64, u32);

    #[inline]
    fn next(&mut self) -> Option<(u64, u32)> {
        if self.is_done() {
            return None;
        }
        let code = self.piece();
        let (step, position) = if code < FAR {
            let step = (code >= SHORT[1].0) as usize + (code >= SHORT[2].0) as usize;
            (step as u64, self.beyond(step as u64, (code - SHORT[step].0) as u32))
        } else {
            self.longer(code)
        };
        self.last = Last::after(self.last.parent + step, position);
        Some((self.last.parent, position))
    }
}

/// Entries that can be found by how many come before them.
#[derive(Debug)]
pub struct Indexed {
    bytes: Vec<u8>,
    end: usize,
    /// Where every so many begin.
    stretches: Vec<(usize, Last)>,
}

const STRETCH: usize = 64;

impl Indexed {
    pub fn new(bytes: Vec<u8>, end: usize, before: Last) -> Indexed {
        let mut stretches = Vec::new();
        let mut rest = Entries::of(&bytes, end, before);
        while !rest.is_done() {
            stretches.push((rest.at, rest.last));
            rest.by_ref().take(STRETCH).for_each(drop);
        }
        Indexed { bytes, end, stretches }
    }

    pub fn entry(&self, number: usize) -> (u64, u32) {
        let (at, last) = self.stretches[number / STRETCH];
        let mut entries = Entries { bytes: &self.bytes, at, end: self.end, last };
        entries.nth(number % STRETCH).expect("no number is beyond the last")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn entries_come_back_in_any_order_of_positions() {
        let mut draw = Draw::new(0);
        let mut twin: Vec<(u64, u32)> = vec![(5, 0), (5, 1), (5, 0), (5, u32::MAX), (5, u32::MAX), (5, 7)];
        for _ in 0..20_000 {
            let &(parent, position) = twin.last().unwrap();
            let step = [0, 0, 0, 1, 1, 1, 2, 2, 3, draw.below(100), draw.bits() >> 30][draw.below(11) as usize];
            let next = [position.saturating_add(draw.below(9) as u32), draw.below(12) as u32, draw.bits() as u32];
            twin.push((parent + step, next[draw.below(20).saturating_sub(17) as usize]));
        }
        twin.push((u64::MAX, u32::MAX));
        let (mut bytes, mut end) = (vec![0xAA; twin.len() * LONGEST], 0);
        // Some are written, others copied, from even and odd places to such.
        let before = Last::before(3);
        let mut last = before;
        for (number, entries) in twin.chunks(7).enumerate() {
            let (mut piece, mut count) = (vec![0x55; 7 * LONGEST], 0);
            if number % 2 == 0 {
                entries.iter().for_each(|&(parent, position)| put(&mut last, parent, position, &mut bytes, &mut end));
            } else {
                entries.iter().for_each(|&(parent, position)| put(&mut last, parent, position, &mut piece, &mut count));
                append(&piece, count, &mut bytes, &mut end);
            }
        }
        assert!(Entries::of(&bytes, end, before).eq(twin.iter().copied()));
        let indexed = Indexed::new(bytes, end, before);
        assert!(twin.iter().enumerate().all(|(number, &entry)| indexed.entry(number) == entry));
    }

    #[test]
    fn most_entries_take_half_a_byte_and_none_more_than_it_may() {
        let pieces = |before: Last, parent: u64, position: u32| {
            let (mut out, mut at) = ([0; LONGEST], 0);
            put(&mut { before }, parent, position, &mut out, &mut at);
            at
        };
        let last = Last::after(10, 2);
        for (parent, position, expected) in
            [(10, 3, 1), (10, 7, 1), (11, 4, 1), (12, 2, 1), (10, 8, 2), (11, 12, 2), (12, 3, 3), (10, 1, 3)]
        {
            assert_eq!(pieces(last, parent, position), expected, "{parent} {position}");
        }
        assert_eq!(pieces(Last::before(0), u64::MAX, u32::MAX), LONGEST);
    }
}
