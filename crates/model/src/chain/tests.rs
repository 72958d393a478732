use super::*;
use std::sync::atomic::AtomicBool;

const CHAIN: Chain = Chain { scalar: Slot { word: 0, shift: 0, bits: 8 }, patience: Patience::USUAL };

/// Two words: the exclusive scalar, and a number. `edges` maps (exclusive, number) to its successors.
type Edges<'a> = &'a [((u32, u32), &'a [(u32, u32, u32)])];

/// Exclusive scalar, number and step of a successor.
type Entry = (u32, u32, u32);

fn run(edges: Edges, from: (u32, u32)) -> (Vec<Entry>, Vec<Vec<Entry>>) {
    let raw = |state: &[u32], out: &mut Successors| {
        let found = edges.iter().find(|(source, _)| *source == (state[0], state[1]));
        for &(exclusive, number, step) in found.map_or(&[][..], |(_, targets)| targets) {
            out.push(&[exclusive, number], Step(step));
        }
    };
    let chain = CHAIN;
    let mut out = Successors::new(2);
    chain.successors(raw, &[from.0, from.1], &mut out);
    let ends: Vec<_> = out.iter().map(|(state, step)| (state[0], state[1], step.0)).collect();
    let flat = |path: Vec<(Step, Vec<u32>)>| path.iter().map(|(step, s)| (s[0], s[1], step.0)).collect();
    let paths = (0..ends.len()).map(|k| flat(chain.path(raw, &[from.0, from.1], k).unwrap())).collect();
    assert!(chain.path(raw, &[from.0, from.1], ends.len()).is_none());
    (ends, paths)
}

#[test]
fn a_chain_is_replaced_by_its_ends_in_order() {
    let edges: Edges =
        &[((0, 0), &[(0, 9, 1), (1, 1, 2), (0, 8, 3)]), ((1, 1), &[(1, 2, 4), (0, 3, 5)]), ((1, 2), &[(0, 4, 6)])];
    let (ends, paths) = run(edges, (0, 0));
    assert_eq!(ends, [(0, 9, 1), (0, 4, 2), (0, 3, 2), (0, 8, 3)]);
    assert_eq!(paths[0], [(0, 9, 1)]);
    assert_eq!(paths[1], [(1, 1, 2), (1, 2, 4), (0, 4, 6)]);
    assert_eq!(paths[2], [(1, 1, 2), (0, 3, 5)]);
}

#[test]
fn ends_side_by_side_between_chains_keep_their_places() {
    let first: &[Entry] = &[(1, 1, 1), (0, 7, 2), (0, 8, 3), (1, 2, 4), (0, 9, 5)];
    let second: &[Entry] = &[(1, 2, 6), (0, 5, 7), (0, 6, 8)];
    let edges: Edges = &[((0, 0), first), ((1, 1), second), ((1, 2), &[(0, 4, 9), (0, 3, 10)])];
    let (ends, paths) = run(edges, (0, 0));
    let numbers: Vec<_> = ends.iter().map(|&(_, number, step)| (number, step)).collect();
    assert_eq!(numbers, [(4, 1), (3, 1), (5, 1), (6, 1), (7, 2), (8, 3), (4, 4), (3, 4), (9, 5)]);
    assert_eq!(paths[1], [(1, 1, 1), (1, 2, 6), (0, 3, 10)]);
    assert_eq!(paths[3], [(1, 1, 1), (0, 6, 8)]);
    assert_eq!(paths[5], [(0, 8, 3)]);
    assert_eq!(paths[7], [(1, 2, 4), (0, 3, 10)]);
}

#[test]
fn a_stuck_chain_gives_up_its_exclusiveness() {
    let (ends, paths) = run(&[((0, 0), &[(1, 1, 2)])], (0, 0));
    assert_eq!(ends, [(0, 1, 2)]);
    assert_eq!(paths, [[(0, 1, 2)]]);
}

#[test]
fn flags_are_kept_and_faults_end_a_path() {
    let edges: Edges =
        &[((0, 0), &[(1, 1, 2 | Step::VIOLATION)]), ((1, 1), &[(0, 7, 5), (1, 1, 6 | Step::FAULT), (0, 8, 7)])];
    let (ends, _) = run(edges, (0, 0));
    assert_eq!(ends[0], (0, 7, 2 | Step::VIOLATION));
    assert_eq!(ends[1].2, 2 | Step::VIOLATION | Step::FAULT);
    assert_eq!(ends[2], (0, 8, 2 | Step::VIOLATION));
}

#[test]
fn a_chain_that_never_ends_is_a_fault() {
    let edges: Edges = &[((0, 0), &[(1, 1, 0)]), ((1, 1), &[(1, 2, 1), (0, 5, 3)]), ((1, 2), &[(1, 1, 2)])];
    let (ends, _) = run(edges, (0, 0));
    assert_eq!(ends.len(), 2);
    assert_eq!(ends[0].2, Step::FAULT);
    assert_eq!(ends[1], (0, 5, 0));
}

/// Successors by a function of the number, which is 0 at the start; the first of a pair is the exclusive scalar.
fn ends_of(next: impl Fn(u32) -> Vec<(u32, u32)>, patience: Patience) -> Successors {
    let raw = |state: &[u32], out: &mut Successors| {
        for (position, (exclusive, number)) in next(state[1]).into_iter().enumerate() {
            out.push(&[exclusive, number], Step(position as u32));
        }
    };
    let mut out = Successors::new(2);
    Chain { patience, ..CHAIN }.successors(raw, &[0, 0], &mut out);
    out
}

#[test]
fn a_long_chain_is_followed_in_little_memory() {
    let next = |number| vec![((number < 300_000) as u32, number + 1)];
    let out = ends_of(next, Patience { chain_bytes: 1000, ..Patience::default() });
    assert_eq!((out.states(), out.gave_up()), (&[0, 300_001][..], None));
    let raw = |state: &[u32], out: &mut Successors| {
        next(state[1]).into_iter().for_each(|(exclusive, number)| out.push(&[exclusive, number], Step(7)));
    };
    let path = CHAIN.path(raw, &[0, 0], 0).unwrap();
    assert_eq!(path.len(), LONGEST_PATH);
    assert_eq!((path[3].1[1], path.last().unwrap().1[1]), (4, 300_001));
}

#[test]
fn a_circle_is_found_wherever_it_begins() {
    for (before, length) in [(0, 1), (0, 2), (5, 1), (1000, 7), (3, 5000)] {
        let next = |number| vec![(1, if number == before + length { before + 1 } else { number + 1 })];
        assert_eq!(ends_of(next, Patience::default()).steps(), [Step::FAULT], "{before} {length}");
    }
}

#[test]
fn what_follows_is_found_once() {
    // Two ways from each number to the next one but one: as many paths as there are Fibonacci numbers.
    let next = |number| match number {
        0 => vec![(1, 1)],
        90.. => vec![(0, 100)],
        _ => vec![(1, number + 1), (1, number + 2)],
    };
    let out = ends_of(next, Patience::default());
    assert!(!out.is_empty() && out.len() < 10, "{}", out.len());
    assert!(out.iter().all(|(state, step)| state == [0, 100] && step == Step(0)));
}

#[test]
fn a_failed_assertion_on_a_second_way_is_not_lost() {
    let fails = 8 | Step::VIOLATION;
    let first: &[Entry] = &[(1, 1, 1)];
    let ways: &[Entry] = &[(1, 2, 2), (1, 2, fails)];
    let edges: Edges = &[((0, 0), first), ((1, 1), ways), ((1, 2), &[(1, 3, 3), (0, 6, 4)]), ((1, 3), &[(0, 5, 5)])];
    let (ends, paths) = run(edges, (0, 0));
    let failed = 1 | Step::VIOLATION;
    assert_eq!(ends, [(0, 5, 1), (0, 6, 1), (0, 5, failed), (0, 6, failed)]);
    assert_eq!(paths[2], [(1, 1, 1), (1, 2, fails), (1, 3, 3), (0, 5, 5)]);
}

#[test]
fn too_much_memory_or_time_is_no_fault() {
    let next = |number| vec![(1, number + 1), (0, number)];
    let out = ends_of(next, Patience { chain_bytes: 1 << 20, ..Patience::default() });
    assert_eq!(out.gave_up(), Some(GaveUp::Memory));
    static STOPPED: AtomicBool = AtomicBool::new(true);
    let out = ends_of(|number| vec![(1, number + 1)], Patience { stop: &STOPPED, ..Patience::default() });
    assert_eq!(out.gave_up(), Some(GaveUp::Stopped));
}
