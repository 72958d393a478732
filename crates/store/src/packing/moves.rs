//! Bits of two words that move together, and back: the k-th of six steps moves by 2^k those bits whose distance has that bit.

const STEPS: usize = 6;

/// Some bits of two words, and where they go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub used: u64,
    /// Bits that move in each step.
    moves: [u64; STEPS],
    /// Where the joined bits go in the key.
    pub left: u32,
}

impl Move {
    pub fn new(used: u64, left: u32) -> Move {
        let mut moves = [0; STEPS];
        for bit in (0..64).filter(|bit| used >> bit & 1 == 1) {
            // It has to go as many places as there are unused bits below it.
            let distance = (!used & ((1 << bit) - 1)).count_ones();
            let mut place = bit;
            for (step, moving) in moves.iter_mut().enumerate().filter(|(step, _)| distance >> step & 1 == 1) {
                *moving |= 1 << place;
                place -= 1 << step;
            }
        }
        // Where there are no bits, any place will do.
        Move { used, moves, left: left.min(u128::BITS - 1) }
    }

    /// Moves the used bits together.
    #[inline(always)]
    pub fn join(&self, words: u64) -> u64 {
        let mut joined = words & self.used;
        for (step, moving) in self.moves.iter().enumerate() {
            let moved = joined & moving;
            joined = (joined ^ moved) | moved >> (1 << step);
        }
        joined
    }

    /// Moves them back to their places; what else there is does not count.
    pub fn part(&self, joined: u64) -> u64 {
        let mut words = joined & 1u64.checked_shl(self.used.count_ones()).unwrap_or(0).wrapping_sub(1);
        for (step, moving) in self.moves.iter().enumerate().rev() {
            let moved = words & (moving >> (1 << step));
            words = (words ^ moved) | moved << (1 << step);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;

    #[test]
    fn used_bits_move_together_in_order_and_back() {
        let mut draw = Draw::new(0);
        for _ in 0..2_000 {
            let (used, words) = (draw.bits() & draw.bits(), draw.bits());
            let bits = (0..64).filter(|bit| used >> bit & 1 == 1).map(|bit| words >> bit & 1);
            let expected = bits.enumerate().fold(0, |joined, (place, bit)| joined | bit << place);
            let moved = Move::new(used, 0);
            assert_eq!(moved.join(words), expected, "{used:#x}");
            assert_eq!(moved.part(expected | !0 << used.count_ones()), words & used, "{used:#x}");
        }
        assert_eq!(Move::new(u64::MAX, 0).join(77), 77);
        assert_eq!(Move::new(0, 0).join(u64::MAX), 0);
    }
}
