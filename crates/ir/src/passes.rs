//! Simplifications of verified systems, one per file.
//!
//! A pass keeps what can be observed: the values of variables, the number and order of successors, their
//! faults and violations, and the verdicts of properties. It may drop commands that never run, so
//! instance numbers belong to the system that is executed. Every pass leaves a verified system. [`reduce`]
//! keeps less, and says what.

pub mod dead;
mod facts;
mod flow;
pub mod fold;
mod interval;
mod leaves;
pub mod merge;
pub mod range;
pub mod rebase;
mod safe;
mod sharing;
mod stores;

use crate::symmetry::Symmetry;
use crate::system::System;
use crate::verify::verify;
pub use interval::Interval;

/// Simplifies a verified system.
pub fn optimise(system: System) -> System {
    optimise_for(system, None)
}

/// The same, so that the system may be run from every state that comes of a reachable one by a renaming of `symmetry`.
pub fn optimise_for(system: System, symmetry: Option<&Symmetry>) -> System {
    run(&[&fold::fold, &|system| range::shrink(system, symmetry), &fold::fold], system)
}

/// Makes a system with fewer states from one that is optimised: see [`merge`] and [`dead`] for what is kept.
pub fn reduce(system: System) -> System {
    run(&[&merge::merge, &dead::reset_dead, &fold::fold], system)
}

fn run(passes: &[&dyn Fn(System) -> System], mut system: System) -> System {
    for pass in passes {
        system = pass(system);
        if let Err(flaws) = verify(&system) {
            panic!("a pass broke the system: {}", flaws[0]);
        }
    }
    system
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::random::{Size, random_system};

    #[test]
    fn random_systems_stay_verified_and_get_no_larger() {
        for seed in 0..250 {
            let system = random_system(seed, Size::LARGE);
            let words = Layout::of_system(&system).words();
            let optimised = optimise(system);
            assert!(Layout::of_system(&optimised).words() <= words, "seed {seed}");
        }
    }
}
