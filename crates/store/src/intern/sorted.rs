//! A table of vectors in other orders: by hash, and by number.

use super::Intern;
use crate::hash;
use crate::region::Region;
use std::sync::atomic::Ordering;

impl Intern {
    /// Visits all vectors in the order of their hashes, equal ones in their own. A vector lies behind its home with no free slot
    /// in between, and homes are in the order of hashes: so only neighbours have to be sorted.
    pub fn visit_in_order(&self, mut visit: impl FnMut(u64, &[u32])) {
        let (stride, mut vectors, mut order) = (self.stride, Vec::new(), Vec::new());
        let mut visit_all = |vectors: &mut Vec<u32>, order: &mut Vec<(u64, usize)>| {
            let here = |place: usize| &vectors[place * stride..][..stride];
            order.sort_unstable_by(|one, other| (one.0, here(one.1)).cmp(&(other.0, here(other.1))));
            order.drain(..).for_each(|(hash, place)| visit(hash, here(place)));
            vectors.clear();
        };
        for slot in self.area().chunks_exact(stride + 1) {
            if slot[0].load(Ordering::Acquire) == 0 {
                visit_all(&mut vectors, &mut order);
                continue;
            }
            vectors.extend(slot[1..].iter().map(|word| word.load(Ordering::Relaxed)));
            order.push((hash::words(&vectors[vectors.len() - stride..]), order.len()));
        }
        visit_all(&mut vectors, &mut order);
    }

    /// Vectors by number, in the memory of the table.
    pub fn into_numbered(mut self) -> Numbered {
        let step = self.stride + 1;
        self.clear_behind();
        let words = self.region.words_mut();
        for slot in 0..words.len() / step {
            // Each exchange brings one to its place.
            while words[slot * step] != 0 && words[slot * step] as usize - 1 != slot {
                let place = words[slot * step] as usize - 1;
                let (low, high) = (place.min(slot) * step, place.max(slot) * step);
                let (before, from) = words.split_at_mut(high);
                before[low..low + step].swap_with_slice(&mut from[..step]);
            }
        }
        Numbered { stride: self.stride, region: self.region }
    }
}

/// Vectors that are known by their numbers.
#[derive(Debug)]
pub struct Numbered {
    stride: usize,
    region: Region,
}

impl Numbered {
    /// The words of a vector.
    pub fn vector(&self, number: u32) -> impl Iterator<Item = u32> {
        let at = number as usize * (self.stride + 1) + 1;
        self.region.words()[at..at + self.stride].iter().map(|word| word.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Grant;

    #[test]
    fn vectors_come_in_order_and_by_number() {
        for (told_bits, count) in [(0, 1), (0, 300), (0, 20_000), (3, 5_000)] {
            let mut table = Intern::one_of(told_bits, 2, Grant::unlimited()).unwrap();
            for number in 0..count {
                table.reserve(1).unwrap();
                let hash = hash::words(&[number, number / 7]);
                // As if it were one of several: all hashes begin with the same bits.
                if hash.leading_zeros() >= told_bits {
                    table.intern(&[number, number / 7], hash).unwrap();
                }
            }
            let mut all = Vec::new();
            table.visit_in_order(|hash, vector| all.push((hash, vector.to_vec())));
            assert_eq!(all.len(), table.len());
            assert!(all.is_sorted() && all.iter().all(|(hash, vector)| *hash == hash::words(vector)));
            let numbers: Vec<u32> = all.iter().map(|(hash, vector)| table.find(vector, *hash).unwrap()).collect();
            let numbered = table.into_numbered();
            for (number, (_, vector)) in numbers.into_iter().zip(all) {
                assert!(numbered.vector(number).eq(vector));
            }
        }
    }
}
