//! States as differences to the one before: neighbours in the frontier are mostly siblings, and differ in a few bytes.
//!
//! Words lie in groups of eight. For every eight groups of a state a byte tells in which of them something changes. For each of
//! these, word by word that changes, follow a byte (is it the last of its group, which is it, which of its bytes change) and
//! those bytes, as they are after the change xor before.

use std::sync::atomic::{AtomicU32, Ordering};

const GROUP: usize = 8;
/// Bytes for the changes of a group, at most.
const MOST_BYTES: usize = GROUP * 5;
const LAST: u8 = 0x80;

/// The differences between states of `width` words.
pub fn pack(states: &[AtomicU32], width: usize) -> Vec<u8> {
    // Each is copied before it is compared: that is much quicker where nobody else can write.
    let groups = width.div_ceil(GROUP);
    let (mut last, mut now) = (vec![[0u32; GROUP]; groups], vec![[0u32; GROUP]; groups]);
    let mut piece = vec![0; groups * (1 + MOST_BYTES)];
    let mut out = Vec::with_capacity(states.len() * 4);
    for state in states.chunks_exact(width) {
        now.as_flattened_mut().iter_mut().zip(state).for_each(|(now, word)| *now = word.load(Ordering::Relaxed));
        let mut end = 0;
        for (now, last) in now.chunks(8).zip(last.chunks(8)) {
            let head = end;
            (piece[head], end) = (0, head + 1);
            for (number, (now, last)) in now.iter().zip(last).enumerate() {
                if now != last {
                    piece[head] |= 1 << number;
                    end += pack_group(now, last, &mut piece[end..]);
                }
            }
        }
        out.extend_from_slice(&piece[..end]);
        std::mem::swap(&mut last, &mut now);
    }
    out
}

/// Writes what changes in a group, which is something, and says in how many bytes.
#[inline]
fn pack_group(now: &[u32; GROUP], last: &[u32; GROUP], out: &mut [u8]) -> usize {
    let out: &mut [u8; MOST_BYTES] = (&mut out[..MOST_BYTES]).try_into().expect("so many");
    let (mut end, mut head) = (0, 0);
    for (index, (now, last)) in now.iter().zip(last).enumerate() {
        let change = now ^ last;
        if change == 0 {
            continue;
        }
        head = end;
        let mut marks = 0;
        for (place, byte) in change.to_le_bytes().into_iter().enumerate() {
            out[(end + 1).min(MOST_BYTES - 1)] = byte;
            end += (byte != 0) as usize;
            marks |= ((byte != 0) as u8) << place;
        }
        out[head] = (index as u8) << 4 | marks;
        end += 1;
    }
    out[head] |= LAST;
    end
}

/// Writes the states that have these differences.
pub fn unpack(differences: &[u8], width: usize, states: &[AtomicU32]) {
    let mut state = vec![[0u32; GROUP]; width.div_ceil(GROUP)];
    let mut at = 0;
    let mut next = |wanted: bool| {
        let byte = if wanted { differences[at] } else { 0 };
        at += wanted as usize;
        byte
    };
    for place in states.chunks_exact(width) {
        for groups in state.chunks_mut(8) {
            let mut changed = next(true);
            while changed != 0 {
                let group = &mut groups[changed.trailing_zeros() as usize];
                loop {
                    let head = next(true);
                    let bytes = [0, 1, 2, 3].map(|byte| next(head >> byte & 1 == 1));
                    group[(head >> 4) as usize % GROUP] ^= u32::from_le_bytes(bytes);
                    if head & LAST != 0 {
                        break;
                    }
                }
                changed &= changed - 1;
            }
        }
        place.iter().zip(state.as_flattened()).for_each(|(place, &word)| place.store(word, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn states_come_back() {
        let mut draw = Draw::new(0);
        for width in [1, 2, 3, 7, 8, 9, 16, 57, 64, 65, 150] {
            let mut state = vec![0u32; width];
            let states: Vec<AtomicU32> = (0..300)
                .flat_map(|_| {
                    for _ in 0..draw.below(4) {
                        state[draw.below(width as u64) as usize] ^= (draw.bits() & draw.bits()) as u32;
                    }
                    if draw.below(50) == 0 {
                        state.fill_with(|| draw.bits() as u32);
                    }
                    state.clone()
                })
                .map(AtomicU32::new)
                .collect();
            let packed = pack(&states, width);
            let back: Vec<AtomicU32> = states.iter().map(|_| AtomicU32::new(7)).collect();
            unpack(&packed, width, &back);
            let words = |states: &[AtomicU32]| states.iter().map(|w| w.load(Ordering::Relaxed)).collect::<Vec<_>>();
            assert_eq!(words(&back), words(&states), "width {width}");
            assert!(width < 16 || packed.len() < states.len(), "{} bytes, width {width}", packed.len());
        }
    }
}
