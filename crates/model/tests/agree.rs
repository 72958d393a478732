//! Native code, the interpreter and the passes agree entry by entry on random systems.
//!
//! `PLIMSOLL_SEEDS` sets how many systems are tried (2,000 unless told), `PLIMSOLL_SEED` the first one.

use std::collections::HashSet;

use plimsoll_ir::passes::optimise;
use plimsoll_ir::random::{Size, random_system};
use plimsoll_model::{Describe, Interp, Jit, Model, Show, Step, Successors};

/// States looked at per system.
const MOST_STATES: usize = 2_000;

fn number_from(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

fn size_of(seed: u64) -> Size {
    [Size::SMALL, Size::MEDIUM, Size::LARGE][seed as usize % 3]
}

#[test]
fn random_systems_run_alike() {
    some_systems_run_alike(0);
}

/// Compiling takes its time, so that two tests share the systems.
#[test]
fn other_random_systems_run_alike() {
    some_systems_run_alike(1);
}

/// Every other system, from the given one on.
fn some_systems_run_alike(from: usize) {
    let first = number_from("PLIMSOLL_SEED", 0);
    let mut entries = 0;
    let seeds = first..first + number_from("PLIMSOLL_SEEDS", 2_000);
    for seed in seeds.skip(from).step_by(2) {
        let system = random_system(seed, size_of(seed));
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

#[test]
fn optimised_systems_run_alike() {
    let first = number_from("PLIMSOLL_SEED", 0);
    let mut entries = 0;
    for seed in first..first + number_from("PLIMSOLL_SEEDS", 2_000) {
        let system = random_system(seed, size_of(seed));
        let plain = Shown::new(Interp::new(system.clone()));
        let optimised = Shown::new(Interp::new(optimise(system)));
        entries += compare_shown(&plain, &optimised, &format!("seed {seed}"));
    }
    assert!(entries > 0, "the systems do something");
}

/// An interpreter whose states are compared by the values they show.
struct Shown {
    interp: Interp,
    show: Show,
}

impl Shown {
    fn new(interp: Interp) -> Shown {
        let show = Show::new(interp.system(), interp.layout());
        Shown { interp, show }
    }

    /// What a list of entries looks like: flags, and values unless it is a fault.
    fn looks(&self, entries: &Successors) -> Vec<(u32, Vec<(String, String)>)> {
        let look = |(state, step): (&[u32], Step)| {
            let values = if step.is_fault() { Vec::new() } else { self.show.fields(state) };
            (step.0 & !(Step::LIMIT - 1), values)
        };
        entries.iter().map(look).collect()
    }
}

/// Walks the states of both side by side; gives the number of entries compared.
fn compare_shown(one: &Shown, other: &Shown, name: &str) -> usize {
    let (mut expected, mut found) = (Successors::new(one.interp.width()), Successors::new(other.interp.width()));
    one.interp.initial(&mut expected);
    other.interp.initial(&mut found);
    let mut queue: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
    let mut seen: HashSet<Vec<u32>> = HashSet::new();
    let mut entries = 0;
    let mut next = 0;
    loop {
        assert_eq!(one.looks(&expected), other.looks(&found), "{name}: after {next} states");
        for ((state, step), (twin, _)) in expected.iter().zip(found.iter()) {
            if !step.is_fault() && seen.len() < MOST_STATES / 10 && seen.insert(state.to_vec()) {
                queue.push((state.to_vec(), twin.to_vec()));
            }
        }
        entries += expected.len();
        let Some((state, twin)) = queue.get(next) else { return entries };
        next += 1;
        expected.clear();
        found.clear();
        one.interp.successors(state, &mut expected);
        other.interp.successors(twin, &mut found);
        assert_eq!(one.interp.violated(state), other.interp.violated(twin), "{name}: properties of {state:?}");
        assert_eq!(one.interp.accepts_end(state), other.interp.accepts_end(twin), "{name}: end at {state:?}");
    }
}
