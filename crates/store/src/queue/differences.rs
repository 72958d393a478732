//! States as differences to the one before: neighbours in the frontier are mostly siblings, and differ in a few bytes.
//!
//! For every eight words of a state a byte tells which of them change. For each of these follow four bits that tell which
//! of its bytes change, two words to a byte, and then those bytes, as they are after the change xor before.

use std::sync::atomic::{AtomicU32, Ordering};

const GROUP: usize = 8;

/// The differences between states of `width` words.
pub fn pack(states: &[AtomicU32], width: usize) -> Vec<u8> {
    // Each is copied before it is compared: that is much quicker where nobody else can write.
    let (mut last, mut now) = (vec![0; width], vec![0; width]);
    let mut out = Vec::with_capacity(states.len() * 4);
    for state in states.chunks_exact(width) {
        now.iter_mut().zip(state).for_each(|(now, word)| *now = word.load(Ordering::Relaxed));
        let (last_groups, last_rest) = last.as_chunks::<GROUP>();
        let (groups, rest) = now.as_chunks::<GROUP>();
        for (now, last) in groups.iter().zip(last_groups) {
            if now == last { out.push(0) } else { pack_group(now, last, &mut out) }
        }
        if !rest.is_empty() {
            pack_group(rest, last_rest, &mut out);
        }
        std::mem::swap(&mut last, &mut now);
    }
    out
}

fn pack_group(now: &[u32], last: &[u32], out: &mut Vec<u8>) {
    let (mut changes, mut changed, mut count) = (0u8, [0u32; GROUP], 0);
    for (index, (now, last)) in now.iter().zip(last).enumerate() {
        let change = now ^ last;
        changed[count] = change;
        count += (change != 0) as usize;
        changes |= ((change != 0) as u8) << index;
    }
    let changed = &changed[..count];
    let mut bytes = [0; 1 + GROUP / 2 + GROUP * 4];
    bytes[0] = changes;
    let mut end = 1;
    for pair in changed.chunks(2) {
        bytes[end] = marks(pair[0]) | pair.get(1).map_or(0, |&second| marks(second) << 4);
        end += 1;
    }
    for byte in changed.iter().flat_map(|change| change.to_le_bytes()) {
        bytes[end] = byte;
        end += (byte != 0) as usize;
    }
    out.extend_from_slice(&bytes[..end]);
}

/// A bit for each byte that is not zero.
fn marks(word: u32) -> u8 {
    word.to_le_bytes().iter().enumerate().fold(0, |marks, (index, &byte)| marks | ((byte != 0) as u8) << index)
}

/// Writes the states that have these differences.
pub fn unpack(differences: &[u8], width: usize, states: &[AtomicU32]) {
    let mut state = vec![0u32; width];
    let mut differences = differences.iter().copied();
    let mut next = || differences.next().expect("as many as were packed");
    for place in states.chunks_exact(width) {
        for group in state.chunks_mut(GROUP) {
            let mut changes = next();
            let mut marks = [0u8; GROUP];
            for pair in marks[..changes.count_ones() as usize].chunks_mut(2) {
                let both = next();
                pair[0] = both & 15;
                if let [_, second] = pair {
                    *second = both >> 4;
                }
            }
            for marks in marks {
                if changes == 0 {
                    break;
                }
                let bytes = [0, 1, 2, 3].map(|byte| if marks >> byte & 1 == 1 { next() } else { 0 });
                group[changes.trailing_zeros() as usize] ^= u32::from_le_bytes(bytes);
                changes &= changes - 1;
            }
        }
        place.iter().zip(&state).for_each(|(place, &word)| place.store(word, Ordering::Relaxed));
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
