//! Guided searches find only what is there, agree with breadth-first search where they are complete, and A\* finds a shortest way if the
//! guess is never too large. They stay within their memory.

use plimsoll_ir::random::{Size, random_system};
use plimsoll_ir::{Expr, Process, Property, PropertyKind, System};
use plimsoll_model::{Guide, Interp, Model};
use plimsoll_search::{
    Ask, Control, Crew, Gait, GuidedRoom, Lead, Limits, Ordering, Outcome, PathRoom, Verdict, WalkRoom, Why, bfs,
    guided, sma, verify, walk,
};
use plimsoll_store::{Budget, Chain, Codec, Grant, Queue, StepLog};
use std::sync::atomic::AtomicBool;

fn with_control<T>(ask: Ask, limits: Limits, run: impl FnOnce(&mut Control) -> T) -> T {
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    run(&mut Control { ask, limits, stop: &stop, room: PathRoom::new(Grant::unlimited()), watch: &mut watch })
}

fn broad(model: &impl Model, ask: Ask) -> Outcome {
    let grant = Grant::unlimited();
    let mut store = Chain::new(Codec::Plain, &model.used_bits(), 0, &grant).unwrap();
    let (mut queue, mut log) = (Queue::new(model.width(), grant.clone(), None), StepLog::new(grant, None));
    with_control(ask, Limits::default(), |control| bfs(model, &mut store, &mut queue, &mut log, Crew::of(1), control))
}

fn led(model: &impl Model, ordering: Ordering, lead: Lead, ask: Ask, bytes: u64) -> Outcome {
    let budget = Budget::new(bytes);
    let mut store = Chain::new(Codec::Plain, &model.used_bits(), 0, &budget.grant("store", bytes)).unwrap();
    let room = GuidedRoom { waiting: budget.grant("waiting", bytes), log: budget.grant("log", bytes) };
    let outcome =
        with_control(ask, Limits::default(), |control| guided(model, ordering, lead, &mut store, &room, control));
    assert!(budget.used_bytes() <= bytes);
    outcome
}

/// All processes are at their last locations.
fn all_at_last(system: &System) -> Property {
    let at_last =
        |process: &Process| Expr::equal(Expr::read(process.location), (process.locations.len() as i64 - 1).into());
    let expr = Expr::all(system.processes.iter().map(at_last));
    let (temps, prelude) = (Vec::new(), Vec::new());
    Property { name: "all".into(), line: 0, kind: PropertyKind::Goal, temps, prelude, expr }
}

/// Now and then with a goal that is far away.
fn random_model(seed: u64) -> Interp {
    let size = Size { states: 400, ..if seed.is_multiple_of(3) { Size::MEDIUM } else { Size::SMALL } };
    let mut system = random_system(seed, size);
    if seed.is_multiple_of(4) {
        system.properties = vec![all_at_last(&system)];
    }
    Interp::new(system)
}

const PROPERTIES: Ask = Ask { deadlocks: false, errors: false, properties: true, keep_going: false };

#[test]
fn what_is_found_is_there_and_what_is_complete_misses_nothing() {
    let (mut found, mut held, mut dropped, mut shortest) = (0, 0, 0, 0);
    for seed in 0..400 {
        let interp = random_model(seed);
        for ask in [Ask::EVERYTHING, PROPERTIES, Ask { keep_going: true, ..Ask::EVERYTHING }] {
            let truth = broad(&interp, ask);
            for ordering in [Ordering::Best, Ordering::AStar, Ordering::Beam(3), Ordering::Beam(1_000_000)] {
                let name = format!("seed {seed}, {ordering:?}, {ask:?}");
                let guide = Guide::to_goals(interp.system(), ordering == Ordering::AStar);
                let guess = |state: &[u32]| guide.as_ref().map_or(0, |guide| guide.guess(state));
                let lead = if seed % 2 == 0 { Lead::Guess(&guess) } else { Lead::FewSuccessors };
                let outcome = led(&interp, ordering, lead, ask, 64 << 20);
                match (&outcome.verdict, &truth.verdict) {
                    (Verdict::Violated(violation), Verdict::Violated(nearest)) => {
                        verify(&interp, violation).unwrap_or_else(|error| panic!("{name}: {error:?}"));
                        let (steps, least) = (violation.trace.steps(), nearest.trace.steps());
                        assert!(steps >= least, "{name}");
                        let sure = guide.as_ref().is_some_and(Guide::never_too_much) && seed % 2 == 0;
                        if ordering == Ordering::AStar && sure && ask == PROPERTIES {
                            assert_eq!(steps, least, "{name}");
                            shortest += (steps > 1) as u64;
                        }
                        found += 1;
                    }
                    (Verdict::Holds, Verdict::Holds) => {
                        assert!(outcome.complete, "{name}");
                        assert_eq!(outcome.stats.states, truth.stats.states, "{name}");
                        held += 1;
                    }
                    (Verdict::Unknown(Why::Lossy), _) => {
                        assert!(ordering == Ordering::Beam(3) && !outcome.complete, "{name}");
                        dropped += 1;
                    }
                    (verdict, truth) => panic!("{name}: {verdict:?} for {truth:?}"),
                }
                if ask.keep_going && outcome.complete {
                    let (one, other) = (&truth.stats, &outcome.stats);
                    assert_eq!(
                        (one.states, one.deadlocks, one.faults),
                        (other.states, other.deadlocks, other.faults),
                        "{name}"
                    );
                    assert_eq!(one.transitions, other.transitions, "{name}");
                }
            }
        }
    }
    let enough = found > 500 && held > 50 && dropped > 10 && shortest > 10;
    assert!(enough, "{found} found, {held} hold, {dropped} dropped, {shortest} shortest");
}

#[test]
fn deepening_by_a_guess_finds_a_shortest_way() {
    let mut compared = 0;
    for seed in 0..300 {
        let interp = Interp::new(random_system(seed, Size { states: 200, ..Size::SMALL }));
        let Some(guide) = Guide::to_goals(interp.system(), true).filter(Guide::never_too_much) else { continue };
        let guess = |state: &[u32]| guide.guess(state);
        let grant = Grant::unlimited();
        let room = WalkRoom { stack: grant.clone(), table: grant, table_bytes: 0 };
        let limits = Limits { states: Some(20_000), ..Limits::default() };
        let gait = Gait::Deepen { guess: Some(&guess) };
        let outcome = with_control(PROPERTIES, limits, |control| walk(&interp, &gait, 0, 1, &room, control));
        match (&outcome.verdict, &broad(&interp, PROPERTIES).verdict) {
            (Verdict::Violated(violation), Verdict::Violated(nearest)) => {
                verify(&interp, violation).unwrap();
                assert_eq!(violation.trace.steps(), nearest.trace.steps(), "seed {seed}");
                compared += 1;
            }
            (Verdict::Holds, Verdict::Holds) | (Verdict::Unknown(Why::States), _) => {}
            (verdict, truth) => panic!("seed {seed}: {verdict:?} for {truth:?}"),
        }
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn too_little_memory_is_an_answer() {
    let many = "system \"many\" var x: 0..3000000 command \"c\" { when x < 1500000 do { x := (x * 2) + 1; } }
        command \"d\" { when x < 1500000 do { x := (x * 2) + 2; } }";
    let interp = Interp::new(plimsoll_ir::text::parse(many).unwrap());
    for ordering in [Ordering::Best, Ordering::AStar, Ordering::Beam(1 << 40)] {
        let outcome = led(&interp, ordering, Lead::FewSuccessors, PROPERTIES, 4 << 20);
        assert_eq!(outcome.verdict, Verdict::Unknown(Why::Memory), "{ordering:?}");
        assert!(outcome.stats.states > 10_000, "{ordering:?}: {}", outcome.stats.states);
    }
}

fn in_tree(model: &impl Model, lead: Lead, ask: Ask, bytes: u64, visits: u64) -> Outcome {
    let budget = Budget::new(bytes);
    let limits = Limits { states: Some(visits), ..Limits::default() };
    let outcome = with_control(ask, limits, |control| sma(model, lead, &budget.grant("tree", bytes), control));
    assert_eq!(budget.used_bytes(), 0);
    assert!(budget.ledger().iter().all(|entry| entry.peak_bytes <= bytes), "more than was granted");
    outcome
}

#[test]
fn a_tree_with_room_is_a_star_and_a_small_one_lies_no_less() {
    let (mut found, mut held, mut shortest, mut dropped, mut too_small) = (0, 0, 0, 0, 0);
    for seed in 0..300 {
        let interp = random_model(seed);
        let guide = Guide::to_goals(interp.system(), true);
        let sure = guide.as_ref().is_some_and(Guide::never_too_much);
        let guess = |state: &[u32]| guide.as_ref().map_or(0, |guide| guide.guess(state));
        let lead = if guide.is_some() { Lead::Guess(&guess) } else { Lead::FewSuccessors };
        for ask in [Ask::EVERYTHING, PROPERTIES] {
            let truth = broad(&interp, ask);
            for (bytes, visits) in [(1 << 20, 1_000_000), (64 << 10, 20_000), (20 << 10, 20_000), (16 << 10, 20_000)] {
                let name = format!("seed {seed}, {ask:?}, {bytes} bytes");
                let outcome = in_tree(&interp, lead, ask, bytes, visits);
                dropped += (outcome.stats.forgotten > 0) as u64;
                match (&outcome.verdict, &truth.verdict) {
                    (Verdict::Violated(violation), Verdict::Violated(nearest)) => {
                        verify(&interp, violation).unwrap_or_else(|error| panic!("{name}: {error:?}"));
                        let (steps, least) = (violation.trace.steps(), nearest.trace.steps());
                        assert!(steps >= least, "{name}");
                        // There is room for everything.
                        if sure && ask == PROPERTIES && bytes == 1 << 20 {
                            assert_eq!(steps, least, "{name}");
                            shortest += (steps > 1) as u64;
                        }
                        found += 1;
                    }
                    (Verdict::Holds, Verdict::Holds) => {
                        assert!(outcome.complete, "{name}");
                        let (states, all) = (outcome.stats.states, truth.stats.states);
                        assert!(states >= all && (states == all || outcome.stats.forgotten > 0), "{name}: {states}");
                        held += 1;
                    }
                    (Verdict::Unknown(Why::States | Why::Memory), _) => {
                        assert!(bytes < 1 << 20 && !outcome.complete, "{name}: {:?}", outcome.verdict);
                        too_small += 1;
                    }
                    (verdict, truth) => panic!("{name}: {verdict:?} for {truth:?}"),
                }
            }
        }
    }
    let enough = found > 300 && held > 50 && shortest > 10 && dropped > 10;
    assert!(enough, "{found} found, {held} hold, {shortest} shortest, {dropped} dropped, {too_small} too small");
}

/// A way of thirty steps among many that lead nowhere, and a guess that knows where it goes.
#[test]
fn a_way_is_found_in_a_tree_that_holds_little_more_than_it() {
    let deep = "system \"deep\" var x: 0..31 var y: 0..1023 command \"on\" { when x < 30 do { x := x + 1; y := 0; } }
        command \"aside\" { when y < 1000 do { y := y + 1; } } goal \"end\" { expect x == 30 }";
    let interp = Interp::new(plimsoll_ir::text::parse(deep).unwrap());
    let far = |state: &[u32]| 30 - (state[0] & 31);
    for (bytes, guess) in [(20 << 10, true), (20 << 10, false), (1 << 20, false)] {
        let lead = Lead::Guess(if guess { &far } else { &|_| 0 });
        let outcome = in_tree(&interp, lead, PROPERTIES, bytes, 3_000_000);
        let Verdict::Violated(violation) = &outcome.verdict else { panic!("{:?}", outcome.verdict) };
        assert_eq!(violation.trace.steps(), 30, "{bytes} bytes, guess {guess}");
        assert!(outcome.stats.forgotten > 0 || guess || bytes == 1 << 20, "{:?}", outcome.stats);
    }
}
