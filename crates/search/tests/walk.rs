//! Walks find only what is there; those that try everything find what breadth-first search finds, and by the shortest way
//! where they go deeper step by step. They stay within their memory, and workers change nothing.

use plimsoll_ir::random::{Size, random_system};
use plimsoll_ir::text;
use plimsoll_model::{Interp, Model};
use plimsoll_search::{Ask, Control, Crew, Gait, Limits, Outcome, PathRoom, Verdict, WalkRoom, Why, bfs, verify, walk};
use plimsoll_store::{Budget, Chain, Codec, Grant, Queue, StepLog};
use std::sync::atomic::AtomicBool;

/// More visits than this a test need not wait for.
const MOST_VISITS: u64 = 20_000;

fn with_control<T>(limits: Limits, keep_going: bool, run: impl FnOnce(&mut Control) -> T) -> T {
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let ask = Ask { keep_going, ..Ask::EVERYTHING };
    run(&mut Control { ask, limits, stop: &stop, room: PathRoom::new(Grant::unlimited()), watch: &mut watch })
}

fn broad(model: &impl Model) -> Outcome {
    let grant = Grant::unlimited();
    let mut store = Chain::new(Codec::Plain, &model.used_bits(), 0, &grant).unwrap();
    let (mut queue, mut log) = (Queue::new(model.width(), grant.clone(), None), StepLog::new(grant, None));
    with_control(Limits::default(), false, |control| bfs(model, &mut store, &mut queue, &mut log, Crew::of(1), control))
}

fn walked(model: &impl Model, gait: &Gait, seed: u64, workers: usize, limits: Limits, bytes: u64) -> Outcome {
    let budget = Budget::new(bytes);
    let room = WalkRoom {
        stack: budget.grant("stack", bytes),
        table: budget.grant("fingerprints", bytes),
        table_bytes: bytes / 4 / workers as u64,
    };
    let outcome = with_control(limits, false, |control| walk(model, gait, seed, workers, &room, control));
    assert!(budget.ledger().iter().map(|entry| entry.peak_bytes).sum::<u64>() <= 2 * bytes && budget.used_bytes() == 0);
    outcome
}

const LIMITS: Limits = Limits { deadline: None, states: Some(MOST_VISITS), depth: None, redundancy_percent: None };

fn each_system(count: u64, mut with: impl FnMut(u64, &Interp, &Outcome)) {
    for seed in 0..count {
        let size = Size { states: 400, ..if seed % 3 == 0 { Size::MEDIUM } else { Size::SMALL } };
        let interp = Interp::new(random_system(seed, size));
        let truth = broad(&interp);
        with(seed, &interp, &truth);
    }
}

#[test]
fn what_is_found_is_there_and_what_is_complete_misses_nothing() {
    let (mut found, mut held, mut missed) = (0, 0, 0);
    let gaits = [Gait::Random, Gait::Local, Gait::Swarm, Gait::Path, Gait::Deepen { guess: None }];
    each_system(200, |seed, interp, truth| {
        for (number, gait) in gaits.iter().enumerate() {
            let name = format!("seed {seed}, gait {number}");
            let outcome = walked(interp, gait, seed, 1, LIMITS, 4 << 20);
            match (&outcome.verdict, &truth.verdict) {
                (Verdict::Violated(violation), Verdict::Violated(shortest)) => {
                    verify(interp, violation).unwrap_or_else(|error| panic!("{name}: {error:?}"));
                    assert!(violation.trace.steps() >= shortest.trace.steps(), "{name}");
                    let deepens = matches!(gait, Gait::Deepen { .. });
                    assert!(!deepens || violation.trace.steps() == shortest.trace.steps(), "{name}");
                    found += 1;
                }
                (Verdict::Holds, Verdict::Holds) => {
                    assert!(outcome.complete && matches!(gait, Gait::Path | Gait::Deepen { .. }), "{name}");
                    held += 1;
                }
                (Verdict::Unknown(Why::States), _) => {
                    assert!(outcome.stats.states >= MOST_VISITS && !outcome.complete, "{name}");
                    missed += matches!(truth.verdict, Verdict::Violated(_)) as u64;
                }
                (Verdict::Unknown(Why::Lossy), _) => assert!(outcome.stats.states == 0, "{name}"),
                (verdict, truth) => panic!("{name}: {verdict:?} for {truth:?}"),
            }
        }
    });
    assert!(found > 300 && held > 20 && missed < found / 5, "{found} found, {held} hold, {missed} missed");
}

#[test]
fn to_a_depth_means_to_that_depth() {
    let mut cut = 0;
    each_system(150, |seed, interp, truth| {
        for (depth, gait) in [(2, Gait::Path), (3, Gait::Deepen { guess: None }), (5, Gait::Path)] {
            let limits = Limits { depth: Some(depth), ..LIMITS };
            let outcome = walked(interp, &gait, seed, 1, limits, 4 << 20);
            let nearest = match &truth.verdict {
                Verdict::Violated(violation) => violation.trace.steps(),
                _ => usize::MAX,
            };
            match outcome.verdict {
                Verdict::HoldsToDepth(to) => {
                    cut += 1;
                    assert!(to == depth && nearest > depth as usize, "seed {seed}: {nearest} within {depth}");
                }
                Verdict::Holds => assert_eq!(truth.verdict, Verdict::Holds, "seed {seed}"),
                Verdict::Violated(violation) => assert!(violation.trace.steps() >= nearest, "seed {seed}"),
                Verdict::Unknown(why) => assert_eq!(why, Why::States, "seed {seed}"),
                Verdict::HoldsUnless(_) => panic!("walks have no store that loses states"),
            }
        }
    });
    assert!(cut > 20, "{cut}");
}

#[test]
fn workers_change_nothing() {
    each_system(60, |seed, interp, _| {
        for gait in [Gait::Random, Gait::Local, Gait::Swarm] {
            let limits = Limits { depth: Some(30), states: Some(3_000), ..LIMITS };
            let one = walked(interp, &gait, seed, 1, limits, 8 << 20);
            let three = walked(interp, &gait, seed, 3, limits, 24 << 20);
            assert_eq!(one, three, "seed {seed}");
        }
    });
}

/// A path that is longer than the memory for it.
#[test]
fn a_path_that_does_not_fit_is_an_answer() {
    let long = "system \"long\" var x: 0..1000000 command \"c\" { when x < 1000000 do { x := x + 1; } }";
    let interp = Interp::new(text::parse(long).unwrap());
    let outcome = walked(&interp, &Gait::Path, 0, 1, Limits::default(), 1 << 20);
    assert_eq!(outcome.verdict, Verdict::Unknown(Why::Memory));
    assert!(outcome.stats.depth > 1_000);
}

/// Another seed is another walk.
#[test]
fn seeds_make_a_difference() {
    let wide = "system \"wide\" var x: 0..100000 var y: 0..3
        command \"a\" { when x < 50000 do { x := (x * 2) + 1; } }
        command \"b\" { when x < 50000 do { x := x * 2; y := (y + 1) % 4; } }
        command \"c\" { when x >= 50000 do { x := x % 1000; } }";
    let interp = Interp::new(text::parse(wide).unwrap());
    let limits = Limits { states: Some(2_000), depth: Some(50), ..Limits::default() };
    let distinct = |seed| walked(&interp, &Gait::Random, seed, 1, limits, 1 << 20).stats;
    assert_eq!(distinct(1), distinct(1));
    assert_ne!(distinct(1), distinct(2));
}
