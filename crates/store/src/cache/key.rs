//! The keys of a cache: byte strings of one length whose hashes look random, above all in their leading bits.

use crate::hash;
use crate::region::Region;

/// What keys look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyForm {
    /// Length of every key.
    pub bytes: usize,
    pub hashed: Hashed,
    /// The caller tells caches apart by so many leading bits of the hash: they are the same for all keys of one.
    pub told_bits: u32,
}

/// Where the hash of a key comes from, when a table grows and has to know it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashed {
    /// It is the first eight bytes, the most significant first; zeros follow a shorter key.
    Leading,
    /// It is computed from the whole key: see [`hash::bytes`].
    Whole,
}

impl KeyForm {
    /// The hash that comes with a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        match (self.hashed, key.first_chunk()) {
            (Hashed::Whole, _) => hash::bytes(key),
            (Hashed::Leading, Some(first)) => u64::from_be_bytes(*first),
            (Hashed::Leading, None) => {
                let mut first = [0; 8];
                first[..key.len()].copy_from_slice(key);
                u64::from_be_bytes(first)
            }
        }
    }

    /// The part of a hash that differs from key to key, at the upper end.
    #[inline]
    pub(super) fn own(&self, hash: u64) -> u64 {
        hash << self.told_bits
    }

    /// Bytes at the beginning that are the same in all keys, and need not be kept.
    #[inline]
    fn told_bytes(&self) -> usize {
        if self.hashed == Hashed::Leading { (self.told_bits as usize / 8).min(self.bytes - 1) } else { 0 }
    }

    /// What is kept of a key.
    #[inline]
    pub(super) fn kept<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        debug_assert_eq!(key.len(), self.bytes);
        &key[self.told_bytes()..]
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes - self.told_bytes()
    }

    /// The leading bits of a key of which this was kept, but for those that are the same in all.
    pub(super) fn leading_of_kept(&self, kept: &[u8]) -> u64 {
        let mut first = [0; 8];
        let missing = self.told_bytes().min(first.len());
        let count = kept.len().min(first.len() - missing);
        first[missing..][..count].copy_from_slice(&kept[..count]);
        u64::from_be_bytes(first)
    }

    /// The own part of the hash of a key of which this was kept.
    pub(super) fn own_of_kept(&self, kept: &[u8]) -> u64 {
        let missing = self.told_bytes() as u32 * 8;
        // Bits that come in from below the first eight bytes of the key are not part of its hash.
        let above = u64::MAX.checked_shl(missing).unwrap_or(0);
        (self.hash(kept) & above) << (self.told_bits - missing)
    }
}

/// The memory of a region as bytes.
#[inline]
pub(super) fn bytes_mut(region: &mut Region) -> &mut [u8] {
    bytemuck::cast_slice_mut(region.words_mut())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_bytes_are_the_hash_from_the_top() {
        let form = KeyForm { bytes: 3, hashed: Hashed::Leading, told_bits: 8 };
        assert_eq!(form.hash(&[1, 2, 3]), 0x0102_0300_0000_0000);
        assert_eq!(form.hash(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), 0x0102_0304_0506_0708);
        assert_eq!(form.own(0x0102_0300_0000_0000), 0x0203_0000_0000_0000);
    }

    #[test]
    fn what_is_kept_tells_the_own_part_of_the_hash() {
        for hashed in [Hashed::Leading, Hashed::Whole] {
            for (bytes, told_bits) in (1..30).flat_map(|bytes| [0, 3, 8, 11, 12].map(|told_bits| (bytes, told_bits))) {
                let form = KeyForm { bytes, hashed, told_bits };
                let key: Vec<u8> = (0..bytes).map(|at| (at * 89 + bytes) as u8).collect();
                let kept = form.kept(&key);
                assert_eq!(kept.len(), form.kept_bytes());
                assert!(kept.len() < bytes || told_bits < 8 || bytes == 1 || hashed == Hashed::Whole);
                assert_eq!(form.own_of_kept(kept), form.own(form.hash(&key)), "{form:?}");
                if hashed == Hashed::Leading {
                    let told = form.hash(&key) & !(u64::MAX >> (form.told_bytes() * 8));
                    assert_eq!(form.leading_of_kept(kept) | told, form.hash(&key), "{form:?}");
                }
            }
        }
    }
}
