//! The ladder: a breadth-first search that is short of memory and has no disk climbs, at whatever moment that is, and finds what
//! it finds with plenty: every state, the same verdict, a trace as short. Or it says that memory ran out, and nothing else.

use crate::common::crew::small_crew;
use crate::common::witness::Witness;
use plimsoll_ir::random::Draw;
use plimsoll_ir::text;
use plimsoll_model::{Interp, Model};
use plimsoll_search::{Ask, Control, Crew, Limits, Outcome, PathRoom, Verdict, Why, bfs};
use plimsoll_store::{Budget, Chain, Climb, Codec, Queue, Row, Rung, StepLog};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

struct Seen {
    states: BTreeSet<Vec<u32>>,
    outcome: Outcome,
    climbs: Vec<Climb>,
    /// What all structures took at most.
    peak_bytes: u64,
}

const KEEP_GOING: Ask = Ask { keep_going: true, ..Ask::EVERYTHING };

/// Searches with so many bytes for store, queue and log together.
fn search(model: &dyn Model, codec: Codec, bytes: u64, crew: Crew, ask: Ask) -> Option<Seen> {
    search_or_miss(model, codec, bytes, crew, ask, false)
}

/// The same where states may be missed in the end.
fn search_or_miss(model: &dyn Model, codec: Codec, bytes: u64, crew: Crew, ask: Ask, may_miss: bool) -> Option<Seen> {
    let budget = Budget::new(bytes);
    let store = Chain::new(codec, &model.used_bits(), 0, &budget.grant("store", bytes)).ok()?;
    let mut store = store.climbing(&Row::auto(), may_miss);
    let mut queue = Queue::new(model.width(), budget.grant("queue", bytes), None);
    let mut log = StepLog::new(budget.grant("log", bytes), None);
    let witness = Witness::of(model);
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let room = PathRoom::new(budget.grant("path", bytes));
    let mut control = Control {
        ask,
        limits: Limits { redundancy_percent: Some(600), ..Limits::default() },
        stop: &stop,
        room,
        watch: &mut watch,
    };
    let outcome = bfs(&witness, &mut store, &mut queue, &mut log, crew, &mut control);
    assert!(budget.used_bytes() <= bytes);
    let (climbs, peak_bytes) = (store.tiers.climbs().to_vec(), budget.used_bytes());
    Some(Seen { states: witness.into_found(), outcome, climbs, peak_bytes })
}

fn crew(workers: usize) -> Crew {
    small_crew(workers, 15)
}

/// What came of some searches.
#[derive(Debug, Default)]
struct Tried {
    ended: usize,
    gave_up: usize,
    /// Of those that ended: how many froze, gave up what was frozen, visited states again.
    froze: usize,
    gave_up_frozen: usize,
    forgot: usize,
}

impl Tried {
    /// Compares a search in little memory with one in plenty.
    fn compare(&mut self, truth: &Seen, seen: &Seen, about: &str) {
        let ran_out = matches!(seen.outcome.verdict, Verdict::Unknown(Why::Memory | Why::Redundancy));
        if ran_out || truth.outcome.complete && !seen.outcome.complete {
            // What was found before memory ran out is as good as any.
            assert!(ran_out || same(&seen.outcome.verdict, &truth.outcome.verdict), "{about}");
            assert!(seen.states.is_subset(&truth.states), "{about}");
            self.gave_up += 1;
            return;
        }
        self.ended += 1;
        let climbed = |rung: Rung| seen.climbs.iter().any(|climb| climb.to == rung) as usize;
        self.froze += climbed(Rung::Frozen);
        self.gave_up_frozen += climbed(Rung::Levels);
        let stats = &seen.outcome.stats;
        self.forgot += (stats.forgotten > 0) as usize;
        assert!(!seen.outcome.complete || seen.states == truth.states, "{about}: {} states", seen.states.len());
        assert!(same(&seen.outcome.verdict, &truth.outcome.verdict), "{about}");
        // A sketch is off by 1.6 % on average.
        let different = stats.distinct as f64 / truth.states.len() as f64;
        assert!(!seen.outcome.complete || (different - 1.0).abs() < 0.1, "{about}: {different} times as many");
        if stats.forgotten == 0 {
            let counts = |seen: &Seen| {
                let stats = &seen.outcome.stats;
                (stats.states, stats.transitions, stats.levels, stats.deadlocks, stats.distinct)
            };
            assert_eq!(counts(seen), counts(truth), "{about}");
        }
    }
}

/// The same verdict, with a trace as long.
fn same(seen: &Verdict, truth: &Verdict) -> bool {
    match (seen, truth) {
        (Verdict::Violated(seen), Verdict::Violated(truth)) => {
            seen.what == truth.what && seen.trace.steps() == truth.trace.steps()
        }
        (seen, truth) => seen == truth,
    }
}

/// Grids with shortcuts, rings with long ways back, and states that are wide.
fn models() -> Vec<(&'static str, Interp)> {
    let grid = "system \"grid\" var a: 0..49 var b: 0..39 var c: 0..39
        command \"a\" { when (a < 49) do { a := a + 1; } } command \"b\" { when (b < 39) do { b := b + 1; } }
        command \"c\" { when (c < 39) do { c := c + 1; } } command \"back\" { when (a == 33) && (b == 7) do { c := 0; } }
        command \"home\" { when (a == 49) && (c == 5) do { a := 0; b := 3; } }";
    let rings = "system \"rings\" var a: 0..9999 var b: 0..6
        command \"a\" { when (a < 9999) do { a := a + 1; } } command \"round\" { when (a == 9999) do { a := 0; } }
        command \"b\" { when (b < 6) && (a == 350) do { b := b + 1; } } command \"d\" { when (b == 6) do { b := 0; } }";
    let both_ways = "system \"both ways\" var a: 0..199 var b: 0..299
        command \"a\" { when (a < 199) do { a := a + 1; } } command \"A\" { when (a > 0) do { a := a - 1; } }
        command \"b\" { when (b < 299) do { b := b + 1; } } command \"B\" { when (b > 0) do { b := b - 1; } }";
    [("grid", grid), ("rings", rings), ("both ways", both_ways)]
        .map(|(name, system)| (name, Interp::new(text::parse(system).unwrap())))
        .into()
}

/// So many per cent of what a search takes, but for the first chunks of frontier and log, without which there is none.
fn share(peak_bytes: u64, percent: u64) -> u64 {
    let chunks = peak_bytes.min(FIRST_CHUNKS);
    chunks + (peak_bytes - chunks) * percent / 100
}

const FIRST_CHUNKS: u64 = 160 << 10;

/// Of what a search with plenty takes, in per cent, and by how many workers.
const BUDGETS: [(u64, usize); 10] =
    [(100, 1), (100, 3), (90, 2), (80, 1), (80, 3), (72, 1), (65, 2), (65, 1), (55, 1), (40, 2)];

#[test]
fn our_own_systems_are_searched_as_with_plenty() {
    let mut tried = Tried::default();
    for (name, model) in models() {
        for codec in [Codec::Packed, Codec::Tree] {
            let truth = search(&model, codec, 1 << 30, crew(1), KEEP_GOING).unwrap();
            assert!(truth.outcome.complete && truth.climbs.is_empty());
            for (percent, workers) in BUDGETS {
                let bytes = share(truth.peak_bytes, percent);
                let about = format!("{name}, {codec:?}, {percent} % of {}, {workers} workers", truth.peak_bytes);
                let Some(seen) = search(&model, codec, bytes, crew(workers), KEEP_GOING) else { continue };
                tried.compare(&truth, &seen, &about);
            }
        }
    }
    assert!(tried.ended > 20 && tried.froze > 10 && tried.gave_up_frozen > 3 && tried.forgot > 8, "{tried:?}");
}

/// Numbers that lead to others in ways that are drawn: some near, some anywhere, some a long way back.
fn random_graph(seed: u64) -> Interp {
    let mut draw = Draw::new(seed);
    let (last, colours) = (draw.within(20_000, 40_000), draw.within(1, 3));
    let mut system = format!("system \"graph\" var x: 0..{last} var z: 0..{colours}\n");
    for number in 0..draw.within(2, 5) {
        let (modulus, rest) = (draw.within(1, 9), draw.within(0, 8));
        let effect = match draw.below(5) {
            0 => format!("x := ((x * {}) + {}) % {last};", draw.within(2, 90), draw.within(1, 900)),
            1 => format!("x := (x + {}) % {last}; z := (z + 1) % {};", draw.within(1, 3_000), colours + 1),
            2 => format!("x := x / {};", draw.within(2, 40)),
            _ => format!("x := (x + {}) % {};", draw.within(1, 60), last + 1),
        };
        system += &format!(
            "command \"{number}\" {{ when (((x + z) % {modulus}) == {}) do {{ {effect} }} }}\n",
            rest % modulus
        );
    }
    let step = draw.within(1, 40);
    system += &format!("command \"on\" {{ when ((x + {step}) <= {last}) do {{ x := x + {step}; }} }}");
    Interp::new(text::parse(&system).unwrap())
}

/// The moment when memory is short is drawn, too.
#[test]
fn random_graphs_are_searched_as_with_plenty() {
    let mut tried = Tried::default();
    for seed in 0..48u64 {
        let (model, mut draw) = (random_graph(seed), Draw::new(seed));
        let ask = if seed % 3 == 0 { Ask::EVERYTHING } else { KEEP_GOING };
        let codec = if seed % 2 == 0 { Codec::Packed } else { Codec::Tree };
        let truth = search(&model, codec, 1 << 30, crew(1), ask).unwrap();
        if truth.states.len() < 5_000 {
            continue;
        }
        for round in 0..3 {
            let (workers, percent) = (1 + (seed as usize + round) % 3, draw.within(35, 90) as u64);
            let about = format!("graph {seed}, {codec:?}, {percent} %, {workers} workers");
            let bytes = share(truth.peak_bytes, percent);
            let Some(seen) = search(&model, codec, bytes, crew(workers), ask) else { continue };
            tried.compare(&truth, &seen, &about);
        }
    }
    assert!(tried.ended > 10 && tried.froze > 5 && tried.gave_up_frozen > 3 && tried.forgot > 3, "{tried:?}");
}

/// With a filter at the end of the ladder: more searches end, what is wrong is found as with plenty, and nothing ever simply holds.
#[test]
fn who_may_miss_states_never_says_that_nothing_is_wrong() {
    let (mut filtered, mut ended, mut exact_ended) = (0, 0, 0);
    let graphs = (0..24).step_by(4).map(|seed| (format!("graph {seed}"), random_graph(seed)));
    let ours = models().into_iter().map(|(name, model)| (name.to_string(), model));
    for (number, (name, model)) in ours.chain(graphs).enumerate() {
        let codec = if number % 2 == 0 { Codec::Packed } else { Codec::Tree };
        let truth = search(&model, codec, 1 << 30, crew(1), KEEP_GOING).unwrap();
        if truth.states.len() < 5_000 {
            continue;
        }
        for (percent, workers) in [(70, 1), (60, 2), (55, 1), (50, 2), (45, 1), (40, 2)] {
            let (about, crew) = (format!("{name}, {codec:?}, {percent} %, {workers} workers"), crew(workers));
            let bytes = share(truth.peak_bytes, percent);
            let exact = search(&model, codec, bytes, crew, KEEP_GOING);
            let ran_out = |seen: &Seen| matches!(seen.outcome.verdict, Verdict::Unknown(_)) || !seen.outcome.complete;
            exact_ended += exact.is_some_and(|seen| !ran_out(&seen)) as usize;
            let Some(seen) = search_or_miss(&model, codec, bytes, crew, KEEP_GOING, true) else { continue };
            assert!(seen.states.is_subset(&truth.states), "{about}");
            let has_filter = seen.climbs.iter().any(|climb| climb.to == Rung::Filter);
            let odds = seen.outcome.stats.odds;
            assert_eq!(odds.is_some(), has_filter, "{about}");
            assert!(!(has_filter && (seen.outcome.complete || seen.outcome.verdict == Verdict::Holds)), "{about}");
            let Some(odds) = odds else {
                ended += !ran_out(&seen) as usize;
                continue;
            };
            filtered += 1;
            if matches!(seen.outcome.verdict, Verdict::Unknown(_)) {
                continue;
            }
            ended += 1;
            let missing = truth.states.len() - seen.states.len();
            assert!(missing as f64 <= 3.0 + 20.0 * odds.omissions(), "{about}: {missing} for {}", odds.omissions());
            match (&seen.outcome.verdict, &truth.outcome.verdict) {
                (Verdict::HoldsUnless(_), Verdict::Violated(_)) => assert!(missing > 0, "{about}"),
                (Verdict::HoldsUnless(_), Verdict::Holds) => {}
                (found, truth) => assert!(same(found, truth), "{about}: {found:?}"),
            }
        }
    }
    assert!(filtered > 2 && ended > exact_ended, "{filtered} had a filter, {ended} ended instead of {exact_ended}");
}
