//! What a store that may take a state for another says about itself: how many states it is expected to have missed.
//!
//! A key that is new is told apart from what is held with a probability that is known when it is inserted: 1 − p, where p
//! depends on how full its place is. So for every key that was found to be new, p / (1 − p) others are expected that were
//! new too and not told apart: summed up, that is the expected number of states missed, whatever their real number and whatever
//! the order (each term, weighted with how probable it is that it is counted, is p). What could be reached only through a
//! missed state is missing beside.

use std::ops::AddAssign;

/// Sums are kept in parts of 2^-72, so that they do not depend on the order of their terms.
const PARTS: f64 = (1u128 << 72) as f64;
/// The largest term: of a place that tells next to nothing apart.
const MOST: f64 = 1e6;

/// The states that a store is expected to have missed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Odds {
    omissions: f64,
}

// It is always a number.
impl Eq for Odds {}

/// A sum of what new keys add to the odds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    parts: u128,
}

impl Odds {
    /// Of so many different digests of so many bits: the sum of what each added, in closed form.
    pub fn of_digests(count: u64, bits: u32) -> Odds {
        let (count, all) = (count as f64, (bits as f64).exp2());
        // The sum of i / (all - i) for i from 0 to count - 1; the first terms of its series where they are enough.
        let few = count * (count - 1.0) / (2.0 * all);
        let share = count / all;
        let sum = if share < 1e-4 { few * (1.0 + share * 2.0 / 3.0) } else { all * -(-share).ln_1p() - count };
        Odds { omissions: sum.clamp(0.0, MOST * count) }
    }

    /// Expected number of states that were taken for others.
    pub fn omissions(self) -> f64 {
        self.omissions
    }

    /// The probability that there is any: they are rare and independent of each other.
    pub fn probability(self) -> f64 {
        -(-self.omissions).exp_m1()
    }
}

impl Sum {
    /// What a key adds that was found to be new where others are taken for known with this probability.
    pub fn of_place(p: f64) -> Sum {
        Sum { parts: ((p / (1.0 - p)).clamp(0.0, MOST) * PARTS) as u128 }
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        self.parts = self.parts.saturating_add(other.parts);
    }
}

impl From<Sum> for Odds {
    fn from(sum: Sum) -> Odds {
        Odds { omissions: sum.parts as f64 / PARTS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_the_sum() {
        for (count, bits) in [(1, 16), (2, 16), (5_000, 16), (60_000, 16), (3_000, 32), (70_000, 40)] {
            let terms = (0..count).map(|held| Sum::of_place(held as f64 / (bits as f64).exp2()));
            let mut sum = Sum::default();
            terms.for_each(|term| sum += term);
            let (closed, sum) = (Odds::of_digests(count, bits).omissions(), Odds::from(sum).omissions());
            assert!((closed - sum).abs() <= 0.01 * sum, "{count} of {bits} bits: {closed}, {sum}");
        }
        assert_eq!(Odds::of_digests(0, 64).omissions(), 0.0);
        let rare = Odds::of_digests(1_000_000, 64);
        assert!(
            (rare.probability() / 2.71e-8 - 1.0).abs() < 0.01
                && Odds::of_digests(u32::MAX.into(), 64).omissions() < 1.0
        );
    }
}
