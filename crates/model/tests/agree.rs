//! Native code and the interpreter agree entry by entry on random systems.
//!
//! `PLIMSOLL_SEEDS` sets how many systems are tried (2,000 unless told), `PLIMSOLL_SEED` the first one.

use std::collections::HashSet;

use plimsoll_ir::random::{Size, random_system};
use plimsoll_model::{Interp, Jit, Model, Successors};

/// States looked at per system.
const MOST_STATES: usize = 2_000;

fn number_from(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn random_systems_run_alike() {
    let first = number_from("PLIMSOLL_SEED", 0);
    let mut entries = 0;
    for seed in first..first + number_from("PLIMSOLL_SEEDS", 2_000) {
        let size = [Size::SMALL, Size::MEDIUM, Size::LARGE][seed as usize % 3];
        let system = random_system(seed, size);
        let interp = Interp::new(system.clone());
        let jit = Jit::new(system).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        entries += compare(&interp, &jit, &format!("seed {seed}"));
    }
    assert!(entries > 0, "the systems do something");
}

/// Walks the states of both side by side; gives the number of entries compared.
fn compare(interp: &Interp, jit: &Jit, name: &str) -> usize {
    let (mut expected, mut found) = (Successors::new(interp.width()), Successors::new(interp.width()));
    interp.initial(&mut expected);
    let mut queue: Vec<Vec<u32>> = Vec::new();
    let mut seen: HashSet<Vec<u32>> = HashSet::new();
    let mut entries = 0;
    let mut next = 0;
    loop {
        for (state, _) in expected.iter().filter(|(_, step)| !step.is_fault()) {
            if seen.len() < MOST_STATES && seen.insert(state.to_vec()) {
                queue.push(state.to_vec());
            }
        }
        let Some(state) = queue.get(next) else { return entries };
        next += 1;
        expected.clear();
        found.clear();
        interp.successors(state, &mut expected);
        jit.successors(state, &mut found);
        assert_eq!(expected.steps(), found.steps(), "{name}: steps from {state:?}");
        for index in 0..expected.len() {
            if !expected.step(index).is_fault() {
                assert_eq!(expected.state(index), found.state(index), "{name}: entry {index} from {state:?}");
            }
        }
        assert_eq!(interp.violated(state), jit.violated(state), "{name}: properties of {state:?}");
        assert_eq!(interp.accepts_end(state), jit.accepts_end(state), "{name}: end at {state:?}");
        if interp.system().exclusive.is_none() {
            assert!(expected.len() <= interp.most_successors(), "{name}: more successors than promised");
        }
        entries += expected.len();
    }
}
