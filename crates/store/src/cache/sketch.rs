//! How many different states were there? A guess in 4 KiB.
//!
//! A store that forgets cannot count distinct states. This sketch (HyperLogLog, Flajolet et al. 2007) keeps, for
//! each of 4096 groups of hashes, the longest run of leading zeros; its estimate is off by 1.6 % on average. It
//! only decides when a search that goes round in circles is given up, never what is true of a model. The
//! same states give the same estimate, in whatever order and however often they come, and also if they are told apart
//! by leading bits of their hashes and every part has a sketch: the parts have groups of their own.

const GROUP_BITS: u32 = 12;
const GROUPS: usize = 1 << GROUP_BITS;
/// Longer runs count as so long: there are fewer states than it takes to see one.
const LONGEST_RUN: u32 = 40;

/// The sketch, or a part of it.
#[derive(Clone, Debug)]
pub struct Distinct {
    /// Longest run of zeros plus one, by group; zero if the group is empty.
    runs: Vec<u8>,
    /// Sum over all groups of 2^-run, in units of 2^-40.
    sum: u64,
    empty: usize,
}

impl Distinct {
    /// A sketch for hashes that have so many leading bits in common.
    pub fn new(told_bits: u32) -> Distinct {
        assert!(told_bits <= GROUP_BITS, "a part has at least one group");
        let groups = GROUPS >> told_bits;
        Distinct { runs: vec![0; groups], sum: (groups as u64) << LONGEST_RUN, empty: groups }
    }

    #[inline]
    pub fn add(&mut self, hash: u64) {
        let group = (hash >> (u64::BITS - GROUP_BITS)) as usize & (self.runs.len() - 1);
        let run = (mixed(hash).leading_zeros() + 1).min(LONGEST_RUN);
        let held = self.runs[group] as u32;
        if run > held {
            self.empty -= (held == 0) as usize;
            self.sum -= (1 << (LONGEST_RUN - held)) - (1 << (LONGEST_RUN - run));
            self.runs[group] = run as u8;
        }
    }

    /// The parts of a whole sketch, for hashes told apart by so many leading bits.
    pub fn split(&self, bits: u32) -> Vec<Distinct> {
        let part = |runs: &[u8]| {
            let (runs, empty) = (runs.to_vec(), runs.iter().filter(|&&run| run == 0).count());
            Distinct { sum: runs.iter().map(|&run| 1 << (LONGEST_RUN - run as u32)).sum(), runs, empty }
        };
        self.runs.chunks(self.runs.len() >> bits).map(part).collect()
    }

    /// Adds what was added to another sketch for the same hashes.
    pub fn merge(&mut self, other: &Distinct) {
        assert_eq!(self.runs.len(), other.runs.len(), "sketches for the same hashes");
        for (own, &run) in self.runs.iter_mut().zip(&other.runs) {
            *own = (*own).max(run);
        }
        self.sum = self.runs.iter().map(|&run| 1u64 << (LONGEST_RUN - run as u32)).sum();
        self.empty = self.runs.iter().filter(|&&run| run == 0).count();
    }

    /// About how many different hashes were added.
    pub fn estimate(&self) -> u64 {
        Distinct::estimate_all([self])
    }

    /// About how many different hashes were added to parts, which are told apart by leading bits; or to sketches of all
    /// hashes.
    pub fn estimate_all<'a>(parts: impl IntoIterator<Item = &'a Distinct>) -> u64 {
        let parts: Vec<&Distinct> = parts.into_iter().collect();
        if let [first, others @ ..] = &parts[..]
            && first.runs.len() == GROUPS
            && !others.is_empty()
        {
            let mut whole = (*first).clone();
            others.iter().for_each(|part| whole.merge(part));
            return Distinct::estimate_all([&whole]);
        }
        let (mut groups, mut sum, mut empty) = (0, 0, 0);
        for part in parts {
            groups += part.runs.len();
            sum += part.sum;
            empty += part.empty;
        }
        if groups == empty {
            return 0;
        }
        let (groups, empty, sum) = (groups as f64, empty as f64, sum as f64 / (1u64 << LONGEST_RUN) as f64);
        let raw = 0.7213 / (1.0 + 1.079 / groups) * groups * groups / sum;
        let few = raw <= 2.5 * groups && empty > 0.0;
        let estimate = if few { groups * (groups / empty).ln() } else { raw };
        estimate.round() as u64
    }
}

/// Hashes may be short keys that have all been seen: they must not look as if there had been endless ones to draw from.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let hash = (hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ hash >> 29
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    #[test]
    fn estimates_are_close_and_repetition_does_not_count() {
        let mut sketch = Distinct::new(0);
        assert_eq!(sketch.estimate(), 0);
        let mut count = 0u32;
        for checkpoint in [1, 10, 100, 1_000, 10_000, 30_000, 100_000, 1_000_000] {
            while count < checkpoint {
                count += 1;
                sketch.add(hash::words(&[count, 3]));
                sketch.add(hash::words(&[count / 2 + 1, 3]));
            }
            let (low, high) = (checkpoint as f64 * 0.93 - 1.0, checkpoint as f64 * 1.07 + 1.0);
            let estimate = sketch.estimate() as f64;
            assert!(low <= estimate && estimate <= high, "{estimate} for {checkpoint}");
        }
    }

    #[test]
    fn merged_sketches_know_what_both_knew() {
        let (mut one, mut other, mut both) = (Distinct::new(0), Distinct::new(0), Distinct::new(0));
        for number in 0..50_000u32 {
            let hash = hash::words(&[number % 30_000, 7]);
            both.add(hash);
            if number % 3 == 0 { one.add(hash) } else { other.add(hash) }
        }
        one.merge(&other);
        assert_eq!(one.estimate(), both.estimate());
        other.add(1);
        one.merge(&other);
        both.add(1);
        assert_eq!(one.estimate(), both.estimate());
    }

    #[test]
    fn short_keys_are_estimated_until_all_are_seen() {
        let mut sketch = Distinct::new(0);
        for key in 0..1u64 << 18 {
            // A bijection of 18 bits, at the upper end of the hash.
            let product = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) << 46 >> 46;
            sketch.add((product ^ product >> 9).wrapping_mul(0xD6E8_FEB8_6659_FD93) << 46);
            if key % 10_000 == 9_999 {
                let (low, high) = (key as f64 * 0.93, key as f64 * 1.07);
                assert!((low..high).contains(&(sketch.estimate() as f64)), "{} for {key}", sketch.estimate());
            }
        }
    }

    #[test]
    fn sketches_of_all_hashes_estimate_what_one_does() {
        let (mut whole, mut some) = (Distinct::new(0), vec![Distinct::new(0); 3]);
        for number in 0..20_000u32 {
            let hash = hash::words(&[number, 5]);
            whole.add(hash);
            some[number as usize % 3].add(hash);
        }
        assert_eq!(Distinct::estimate_all(&some), whole.estimate());
    }

    #[test]
    fn parts_estimate_what_the_whole_does() {
        for told_bits in [0, 1, 6, 8, 12] {
            let mut whole = Distinct::new(0);
            let mut parts = vec![Distinct::new(told_bits); 1 << told_bits];
            for number in 0..20_000u32 {
                let hash = hash::words(&[number, 5]);
                whole.add(hash);
                parts[hash.checked_shr(64 - told_bits).unwrap_or(0) as usize].add(hash);
                if number % 3_000 == 0 {
                    assert_eq!(Distinct::estimate_all(&parts), whole.estimate(), "{told_bits} bits, {number}");
                    assert_eq!(Distinct::estimate_all(&whole.split(told_bits)), whole.estimate());
                }
            }
        }
    }
}
