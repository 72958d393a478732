//! Where keys lie in lines whose entries have four bytes and whose tails have whole ones.

use super::compact::{Compact, REST_BITS};

/// Lengths of tails, in bytes; `by_tail` lists them too.
const TAILS: [usize; 8] = [0, 1, 2, 3, 4, 6, 8, 12];

/// Does something with the length of a tail known to the compiler.
macro_rules! by_tail {
    ($tail:expr, $name:ident => $action:expr) => {
        by_tail!($tail, $name => $action, 0 1 2 3 4 6 8 12)
    };
    ($tail:expr, $name:ident => $action:expr, $($length:literal)+) => {
        match $tail {
            $($length => {
                const $name: usize = $length;
                $action
            })+
            tail => unreachable!("no tails of {tail} bytes"),
        }
    };
}
pub(super) use by_tail;

/// Where keys lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub compact: Compact,
    common_bits: u32,
    /// Bits behind the common ones that home and entry tell.
    top_bits: u32,
    /// Bytes of a tail.
    pub tail: usize,
}

impl Shape {
    pub fn new(key_bits: u32, common_bits: u32, lines: usize) -> Shape {
        // Also if keys are shorter: then nothing has to move when they get longer.
        let top_bits = (lines.ilog2() + REST_BITS).min(u64::BITS - common_bits);
        let least = (key_bits - common_bits).saturating_sub(top_bits).div_ceil(8) as usize;
        let tail = TAILS.into_iter().find(|&tail| tail >= least).expect("keys have at most 128 bits");
        Shape { compact: Compact::new(top_bits, lines), common_bits, top_bits, tail }
    }

    /// Home and rest of a key.
    #[inline(always)]
    pub fn home(&self, high: u64) -> (usize, u32) {
        self.compact.split(high << self.common_bits >> (64 - self.top_bits))
    }

    #[inline(always)]
    pub fn tail<const TAIL: usize>(&self, key: u128) -> [u8; TAIL] {
        let bytes = (key << (self.common_bits + self.top_bits)).to_be_bytes();
        std::array::from_fn(|index| bytes[index])
    }

    /// The key of an entry with its tail but for the common bits, and whether it is at home in line `number`.
    #[inline(always)]
    pub fn key<const TAIL: usize>(&self, number: usize, entry: u32, tail: &[u8; TAIL]) -> (u128, bool) {
        let (top, home) = self.compact.value(number, entry);
        let mut bytes = [0; 16];
        bytes[..TAIL].copy_from_slice(tail);
        let own = (top as u128) << (128 - self.top_bits) | u128::from_be_bytes(bytes) >> self.top_bits;
        (own >> self.common_bits, home)
    }
}

/// A key without the bits that all have in common.
pub(super) fn own(key: u128, common_bits: u32) -> u128 {
    key << common_bits >> common_bits
}
