//! What the reductions of the model text keep, on random systems: the promises at the heads of `ir::passes::merge`
//! and `ir::passes::dead`, checked state by state.
//!
//! `PLIMSOLL_SEEDS` sets how many systems are tried (600 unless told), `PLIMSOLL_SEED` the first one.

use plimsoll_ir::passes::dead::reset_dead;
use plimsoll_ir::passes::merge::merge_and_tell;
use plimsoll_ir::passes::{optimise, reduce};
use plimsoll_ir::random::{Size, random_system};
use plimsoll_ir::{ProcessId, System, verify};
use plimsoll_model::{Interp, Jit, Model, Step, Successors, Unmerge};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Systems with more states are left out.
const MOST_STATES: usize = 4_000;

fn seeds() -> impl Iterator<Item = u64> {
    let number = |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let first = number("PLIMSOLL_SEED", 0);
    first..first + number("PLIMSOLL_SEEDS", 600)
}

fn system_of(seed: u64) -> System {
    optimise(random_system(seed, [Size::SMALL, Size::MEDIUM, Size::LARGE][seed as usize % 3]))
}

/// Everything about the reachable graph that the promises speak of.
#[derive(Default)]
struct Explored {
    states: HashSet<Vec<u32>>,
    stuck: HashSet<Vec<u32>>,
    flags: u32,
    violated: BTreeSet<u32>,
    edges: usize,
}

/// Nothing if there are too many states.
fn explore(model: &impl Model) -> Option<Explored> {
    let mut explored = Explored::default();
    let mut out = Successors::new(model.width());
    model.initial(&mut out);
    let mut queue = Vec::new();
    loop {
        for (state, step) in out.iter() {
            explored.flags |= step.0 & (Step::FAULT | Step::VIOLATION);
            if !step.is_fault() && explored.states.insert(state.to_vec()) {
                queue.push(state.to_vec());
            }
        }
        let Some(state) = queue.pop() else { return Some(explored) };
        if explored.states.len() > MOST_STATES {
            return None;
        }
        out.clear();
        model.successors(&state, &mut out);
        explored.edges += out.len();
        explored.violated.extend(model.violated(&state));
        if out.is_empty() && !model.accepts_end(&state) {
            explored.stuck.insert(state);
        }
    }
}

/// Follows positions from a state, or from before the initial states, and returns where they lead and the flags on the way.
fn follow(model: &Interp, from: Option<&[u32]>, positions: &[u32]) -> (Vec<u32>, u32) {
    let mut state = from.map(<[u32]>::to_vec);
    let mut flags = 0;
    for &position in positions {
        let mut out = Successors::new(model.width());
        match &state {
            Some(state) => model.successors(state, &mut out),
            None => model.initial(&mut out),
        }
        flags |= out.step(position as usize).0 & (Step::FAULT | Step::VIOLATION);
        state = Some(out.state(position as usize).to_vec());
    }
    (state.expect("there are positions"), flags)
}

#[test]
fn merged_steps_can_be_taken_apart() {
    let (mut apart, mut wrong) = (0, 0);
    for seed in seeds().step_by(3) {
        let system = system_of(seed);
        let (merged, passed) = merge_and_tell(system.clone());
        if passed.is_empty() {
            continue;
        }
        let (before, after) = (Interp::new(system), Interp::new(merged));
        let unmerge = Unmerge::new(&after, &before);
        let mut check = |from: Option<&[u32]>, out: &Successors, position: usize| {
            let (state, step) = (out.state(position), out.step(position));
            for last in [false, true] {
                let positions = match from {
                    Some(from) => unmerge.step(from, position, last),
                    None => unmerge.start(position, last),
                };
                let positions = positions.unwrap_or_else(|| panic!("seed {seed}: {from:?} to {state:?}"));
                let (end, flags) = follow(&before, from, &positions);
                apart += (positions.len() > 1) as usize;
                wrong += (flags != 0) as usize;
                match step.is_fault() {
                    true => assert!(flags & Step::FAULT != 0, "seed {seed}"),
                    false if last && step.is_violation() => assert!(flags & Step::VIOLATION != 0, "seed {seed}"),
                    false => assert_eq!(end, state, "seed {seed}"),
                }
            }
        };
        let mut out = Successors::new(after.width());
        after.initial(&mut out);
        (0..out.len()).for_each(|position| check(None, &out, position));
        let mut queue: Vec<Vec<u32>> = out.iter().map(|(state, _)| state.to_vec()).collect();
        let mut seen = HashSet::new();
        while let Some(state) = queue.pop().filter(|_| seen.len() < 40) {
            if !seen.insert(state.clone()) {
                continue;
            }
            out.clear();
            after.successors(&state, &mut out);
            (0..out.len().min(20)).for_each(|position| check(Some(&state), &out, position));
            queue.extend(out.iter().filter(|(_, step)| !step.is_fault()).map(|(state, _)| state.to_vec()));
        }
    }
    assert!(apart > 100 && wrong > 10, "{apart} steps were taken apart, {wrong} went wrong");
}

/// Is some process at one of the places?
fn at_one(interp: &Interp, state: &[u32], places: &[(ProcessId, u32)]) -> bool {
    let system = interp.system();
    places.iter().any(|&(process, location)| {
        let var = system.processes[process.index()].location;
        let slot = interp.layout().address(var.index(), &system.vars[var.index()].ty, &[]).slot(&[]);
        slot.load(state) == location
    })
}

#[test]
fn merging_keeps_states_elsewhere_deadlocks_and_errors() {
    let (mut passed_over, mut saved, mut chains) = (0, 0, 0);
    for seed in seeds() {
        let system = system_of(seed);
        let (merged, passed) = merge_and_tell(system.clone());
        verify(&merged).unwrap_or_else(|flaws| panic!("seed {seed}: {flaws:?}"));
        if passed.is_empty() {
            continue;
        }
        let chained = system.exclusive.is_some();
        let (before, after) = (Interp::new(system), Interp::new(merged));
        let Some(old) = explore(&before) else { continue };
        let new = explore(&after).expect("there are never more states");
        assert!(new.states.is_subset(&old.states), "seed {seed}: a state that was not there");
        let elsewhere = old.states.iter().filter(|state| !at_one(&before, state, &passed));
        elsewhere.for_each(|state| assert!(new.states.contains(state), "seed {seed}: {state:?} is lost"));
        assert_eq!(new.stuck, old.stuck, "seed {seed}: deadlocks");
        assert_eq!(new.flags, old.flags, "seed {seed}: faults and failed assertions");
        assert_eq!(new.violated, old.violated, "seed {seed}: properties");
        passed_over += passed.len();
        saved += old.states.len() - new.states.len();
        chains += chained as usize;
    }
    assert!(passed_over > 0 && saved > 0 && chains > 0, "{passed_over} locations, {saved} states, {chains} chains");
}

#[test]
fn dead_variables_make_no_difference() {
    let (mut changed, mut saved) = (0, 0);
    for seed in seeds() {
        let system = system_of(seed);
        let reset = reset_dead(system.clone());
        verify(&reset).unwrap_or_else(|flaws| panic!("seed {seed}: {flaws:?}"));
        if reset == system {
            continue;
        }
        changed += 1;
        saved += walk_together(&Interp::new(system), &Interp::new(reset), seed);
    }
    assert!(changed > 0 && saved > 0, "{changed} systems, {saved} states");
}

/// Follows equal steps in both systems. A state of the first must always go with the same state of the second.
fn walk_together(one: &Interp, other: &Interp, seed: u64) -> usize {
    let (mut left, mut right) = (Successors::new(one.width()), Successors::new(other.width()));
    one.initial(&mut left);
    other.initial(&mut right);
    let mut twin: HashMap<Vec<u32>, Vec<u32>> = HashMap::new();
    let mut queue = Vec::new();
    loop {
        assert_eq!(left.steps(), right.steps(), "seed {seed}");
        for ((state, step), (partner, _)) in left.iter().zip(right.iter()).filter(|((_, step), _)| !step.is_fault()) {
            match twin.get(state) {
                Some(known) => assert_eq!(known, partner, "seed {seed}: after {step:?} to {state:?}"),
                None if twin.len() >= MOST_STATES => {}
                None => {
                    twin.insert(state.to_vec(), partner.to_vec());
                    queue.push(state.to_vec());
                }
            }
        }
        let Some(state) = queue.pop() else { break };
        let partner = &twin[&state];
        assert_eq!(one.violated(&state), other.violated(partner), "seed {seed}");
        assert_eq!(one.accepts_end(&state), other.accepts_end(partner), "seed {seed}");
        left.clear();
        right.clear();
        one.successors(&state, &mut left);
        other.successors(partner, &mut right);
    }
    twin.len() - twin.values().collect::<HashSet<_>>().len()
}

#[test]
fn both_executors_agree_on_reduced_systems() {
    for seed in seeds().step_by(10) {
        let reduced = reduce(system_of(seed));
        let (interp, jit) = (Interp::new(reduced.clone()), Jit::new(reduced).unwrap());
        let (Some(one), Some(other)) = (explore(&interp), explore(&jit)) else { continue };
        assert_eq!((one.states, one.edges, one.flags), (other.states, other.edges, other.flags), "seed {seed}");
    }
}
