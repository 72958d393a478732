//! States as differences to the one before: neighbours in the frontier are mostly siblings, and differ in a few bytes.
//!
//! Words lie in groups of eight. For every eight groups of a state a byte tells in which of them something changes. For each of
//! these, word by word that changes, follow a byte (is it the last of its group, which is it, which of its bytes change, from the first
//! to the last) and those bytes, as they are after the change xor before.

const GROUP: usize = 8;
/// Bytes for the changes of a group, at most, and a power of two beyond that.
const MOST_BYTES: usize = GROUP * 5;
const ROOM: usize = 64;
const LAST: u8 = 0x80;
/// So many bytes can be read wherever something is.
const BEHIND: usize = 4;

/// The differences between states of `width` words, which are end to end.
pub fn pack(states: &[u32], width: usize) -> Vec<u8> {
    let groups = width.div_ceil(GROUP);
    // The last group may end before its eight words do.
    let last_mask = u32::MAX >> ((groups * GROUP - width) * 4);
    let mut piece = vec![0; groups * (1 + MOST_BYTES) + ROOM];
    let mut out = Vec::with_capacity(states.len() * 4);
    // The first state comes after one of zeros, and behind the last ones there must be something to read: these are copied.
    let mut copies = vec![0; 2 * width + GROUP];
    for start in (0..states.len()).step_by(width) {
        let (last, now) = if start > 0 && start + groups * GROUP <= states.len() {
            (&states[start - width..], &states[start..])
        } else {
            if let Some(before) = start.checked_sub(width) {
                copies[..width].copy_from_slice(&states[before..start]);
            }
            copies[width..2 * width].copy_from_slice(&states[start..start + width]);
            (&copies[..], &copies[width..])
        };
        let (mut end, mut head) = (0, 0);
        for group in 0..groups {
            if group % 8 == 0 {
                (head, piece[end], end) = (end, 0, end + 1);
            }
            let at = |words: &[u32]| -> [u32; GROUP] { words[group * GROUP..][..GROUP].try_into().expect("so many") };
            let (now, last) = (at(now), at(last));
            let changed = changed_bytes(&now, &last) & if group + 1 < groups { u32::MAX } else { last_mask };
            if changed != 0 {
                piece[head] |= 1 << (group % 8);
                end += pack_group(&now, &last, changed, &mut piece[end..]);
            }
        }
        out.extend_from_slice(&piece[..end]);
    }
    out.extend_from_slice(&[0; BEHIND]);
    out
}

/// Which bytes of a group are not what they were?
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn changed_bytes(now: &[u32; GROUP], last: &[u32; GROUP]) -> u32 {
    use core::arch::x86_64::*;
    // SAFETY: groups are twice sixteen readable bytes; SSE2 is part of x86-64.
    let equal = |half: usize| unsafe {
        let half = |words: &[u32; GROUP]| _mm_loadu_si128(words.as_ptr().cast::<__m128i>().add(half));
        _mm_movemask_epi8(_mm_cmpeq_epi8(half(now), half(last))) as u32
    };
    !(equal(0) | equal(1) << 16)
}

#[cfg(not(target_arch = "x86_64"))]
fn changed_bytes(now: &[u32; GROUP], last: &[u32; GROUP]) -> u32 {
    let bytes = now.iter().zip(last).flat_map(|(now, last)| (now ^ last).to_le_bytes());
    bytes.enumerate().fold(0, |changed, (place, byte)| changed | ((byte != 0) as u32) << place)
}

/// Writes what changes in a group, which is something, and says in how many bytes.
#[inline(always)]
fn pack_group(now: &[u32; GROUP], last: &[u32; GROUP], mut changed: u32, out: &mut [u8]) -> usize {
    let (mut end, mut head) = (0, 0);
    while changed != 0 {
        let index = changed.trailing_zeros() / 4;
        changed &= !(15 << (4 * index));
        let change = now[index as usize] ^ last[index as usize];
        let (first, behind) = (change.trailing_zeros() / 8, 4 - change.leading_zeros() / 8);
        head = end;
        out[head] = (index << 4 | ((1 << behind) - (1 << first))) as u8;
        out[head + 1..][..4].copy_from_slice(&(change >> (8 * first)).to_le_bytes());
        end += 1 + (behind - first) as usize;
    }
    out[head] |= LAST;
    end
}

/// Hands out the states that have these differences, so many of `width` words.
pub fn unpack(differences: &[u8], width: usize, count: usize, mut visit: impl FnMut(usize, &[u32])) {
    let mut state = vec![[0u32; GROUP]; width.div_ceil(GROUP)];
    let mut at = 0;
    for number in 0..count {
        for groups in state.chunks_mut(8) {
            let mut changed = differences[at];
            at += 1;
            while changed != 0 {
                let group = &mut groups[changed.trailing_zeros() as usize];
                loop {
                    let head = differences[at];
                    let bytes: [u8; BEHIND] = differences[at + 1..][..BEHIND].try_into().expect("so many");
                    let marks = (head & 15) as u32;
                    let (first, count) = (marks.trailing_zeros() % 4, marks.count_ones());
                    let bytes = u32::from_le_bytes(bytes) & (u32::MAX >> ((32 - 8 * count) % 32));
                    at += 1 + count as usize;
                    group[(head >> 4) as usize % GROUP] ^= bytes << (8 * first);
                    if head & LAST != 0 {
                        break;
                    }
                }
                changed &= changed - 1;
            }
        }
        visit(number, &state.as_flattened()[..width]);
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
            let states: Vec<u32> = (0..300)
                .flat_map(|_| {
                    for _ in 0..draw.below(4) {
                        state[draw.below(width as u64) as usize] ^= (draw.bits() & draw.bits()) as u32;
                    }
                    if draw.below(50) == 0 {
                        state.fill_with(|| draw.bits() as u32);
                    }
                    state.clone()
                })
                .collect();
            let packed = pack(&states, width);
            let mut back = Vec::new();
            unpack(&packed, width, 300, |number, state| {
                assert_eq!(number, back.len() / width);
                back.extend_from_slice(state);
            });
            assert_eq!(back, states, "width {width}");
            assert!(width < 16 || packed.len() < states.len(), "{} bytes, width {width}", packed.len());
        }
    }
}
