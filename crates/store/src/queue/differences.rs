//! States as differences to the one before: neighbours in the frontier are mostly siblings, and differ in a few bytes.
//!
//! For every eight words of a state a byte tells which of them change. For each of these follow four bits that tell which
//! of its bytes change, two words to a byte, and then those bytes, as they are after the change xor before.

use std::sync::atomic::{AtomicU32, Ordering};

const GROUP: usize = 8;

/// The differences between states of `width` words.
pub fn pack(states: &[AtomicU32], width: usize) -> Vec<u8> {
    let mut before = vec![0; width];
    // Most states take less; then nothing has to be copied.
    let mut out = Vec::with_capacity(states.len() * 2);
    for state in states.chunks_exact(width) {
        for (now, last) in state.chunks(GROUP).zip(before.chunks_mut(GROUP)) {
            let (mut changes, mut changed, mut count) = (0u8, [0u32; GROUP], 0);
            for (index, (now, last)) in now.iter().zip(last).enumerate() {
                let now = now.load(Ordering::Relaxed);
                let change = now ^ std::mem::replace(last, now);
                changed[count] = change;
                count += (change != 0) as usize;
                changes |= ((change != 0) as u8) << index;
            }
            out.push(changes);
            out.extend(
                changed[..count].chunks(2).map(|pair| marks(pair[0]) | pair.get(1).map_or(0, |&b| marks(b) << 4)),
            );
            for change in &changed[..count] {
                out.extend(change.to_le_bytes().into_iter().filter(|&byte| byte != 0));
            }
        }
    }
    out.shrink_to_fit();
    out
}

/// A bit for each byte that is not zero.
fn marks(word: u32) -> u8 {
    word.to_le_bytes().iter().enumerate().fold(0, |marks, (index, &byte)| marks | ((byte != 0) as u8) << index)
}

/// Writes the states that have these differences.
pub fn unpack(differences: &[u8], width: usize, states: &[AtomicU32]) {
    let mut before = vec![0u32; width];
    let mut at = 0;
    let mut next = || {
        at += 1;
        differences[at - 1]
    };
    for state in states.chunks_exact(width) {
        for (now, last) in state.chunks(GROUP).zip(before.chunks_mut(GROUP)) {
            let changes = next();
            let mut marks = [0u8; GROUP];
            for pair in marks[..changes.count_ones() as usize].chunks_mut(2) {
                let both = next();
                pair[0] = both & 15;
                if let [_, second] = pair {
                    *second = both >> 4;
                }
            }
            let mut marks = marks.into_iter();
            for (index, (now, last)) in now.iter().zip(last).enumerate() {
                if changes >> index & 1 == 1 {
                    let marks = marks.next().unwrap_or(0);
                    let bytes = [0, 1, 2, 3].map(|byte| if marks >> byte & 1 == 1 { next() } else { 0 });
                    *last ^= u32::from_le_bytes(bytes);
                }
                now.store(*last, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn states_come_back() {
        let mut draw = Draw::new(0);
        for width in [1, 2, 3, 7, 8, 9, 16, 57] {
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
