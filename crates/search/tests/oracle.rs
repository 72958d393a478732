//! Whatever a store forgets and whatever sleeps: the states visited are those of a plain breadth-first search,
//! and so are the deadlocks, the violated properties and whether something goes wrong.
//!
//! `PLIMSOLL_SEED` and `PLIMSOLL_SEEDS` choose the random systems.

use plimsoll_ir::random::{Draw, Size, random_system};
use plimsoll_ir::text;
use plimsoll_model::{Around, Interp, Model};
use plimsoll_search::{
    Ask, Control, Crew, Limits, Outcome, PathRoom, Sleep, Verdict, Why, bfs, dfs, item_words, sleep, sleeping_dfs,
};
use plimsoll_store::packing::Packing;
use plimsoll_store::{Budget, Chain, Codec, Grant, Queue, Row, Rule, Stack, StepLog};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// For the store, and for the stack, or the queue and the log.
const MOST_BYTES: u64 = 32 << 20;
/// Small caches may take exponential time; the proofs say that they end, the test need not wait.
const PATIENCE_PERCENT: u64 = 3_000;

/// A model that remembers which states were visited: a search looks at the properties of those, while it may expand
/// others to see whether steps commute.
struct Recorder<'a, M> {
    model: &'a M,
    seen: Mutex<BTreeSet<Vec<u32>>>,
}

impl<M: Model> Around for Recorder<'_, M> {
    fn inner(&self) -> &dyn Model {
        self.model
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        self.seen.lock().unwrap().insert(state.to_vec());
        self.model.violated(state)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Bfs,
    Dfs,
    Sleeping,
    /// Sleep sets by the rule as first published.
    Published,
}

/// What a search found out.
#[derive(Debug)]
struct Found {
    states: BTreeSet<Vec<u32>>,
    outcome: Outcome,
}

fn search(model: &impl Model, order: Order, store: &mut Chain, redundancy_percent: Option<u64>) -> Found {
    let recorder = Recorder { model, seen: Mutex::new(BTreeSet::new()) };
    let stop = AtomicBool::new(false);
    let mut watch = |_: &_| {};
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let limits = Limits { redundancy_percent, ..Limits::default() };
    let room = PathRoom::new(Grant::unlimited());
    let mut control = Control { ask, limits, stop: &stop, room, watch: &mut watch };
    let grant = grant();
    let outcome = match order {
        Order::Bfs => {
            let (mut queue, mut log) =
                (Queue::new(model.width(), grant.clone(), None), StepLog::new(grant.clone(), None));
            bfs(&recorder, store, &mut queue, &mut log, Crew::of(1), &mut control)
        }
        Order::Dfs => {
            let mut stack = Stack::new(item_words(model.width(), store), grant);
            dfs(&recorder, store, &mut stack, &mut control)
        }
        Order::Sleeping | Order::Published => {
            let rule = if order == Order::Sleeping { sleep::Rule::Checked } else { sleep::Rule::Published };
            let mut stack = Stack::new(Sleep::item_words(model.width()), grant.clone());
            sleeping_dfs(&recorder, store, &mut stack, &mut Sleep::new(rule, &grant), &mut control)
        }
    };
    let states = recorder.seen.into_inner().unwrap();
    Found { states, outcome }
}

fn grant() -> Grant {
    Budget::new(MOST_BYTES).grant("test", MOST_BYTES)
}

fn exact(model: &impl Model, order: Order) -> Found {
    let mut store = Chain::new(Codec::Plain, &model.used_bits(), 0, &grant()).unwrap();
    search(model, order, &mut store, None)
}

fn cached(model: &impl Model, order: Order, codec: Codec, row: &Row, capacity: usize, percent: Option<u64>) -> Found {
    let mut store = Chain::with_row(codec, &model.used_bits(), row, order != Order::Bfs, capacity, &grant()).unwrap();
    search(model, order, &mut store, percent)
}

/// Compares a complete search with plain breadth-first search. What was counted once per visit is the same if
/// every state was visited once.
fn same(truth: &Found, found: &Found, name: &str) {
    assert!(found.outcome.complete, "{name}: {:?}", found.outcome.verdict);
    assert_eq!(truth.states, found.states, "{name}");
    let (expected, counted) = (&truth.outcome.stats, &found.outcome.stats);
    for (what, one, other) in [
        ("deadlocks", expected.deadlocks, counted.deadlocks),
        ("faults", expected.faults, counted.faults),
        ("assertions", expected.failed_assertions, counted.failed_assertions),
        ("hits", expected.property_hits, counted.property_hits),
        ("states", expected.states, counted.states),
    ] {
        let equal = if counted.forgotten == 0 { one == other } else { one <= other && (one == 0) == (other == 0) };
        assert!(equal, "{name}: {other} {what} instead of {one}");
    }
    let violated = |found: &Found| matches!(found.outcome.verdict, Verdict::Violated(_));
    assert_eq!(violated(truth), violated(found), "{name}");
}

fn number_from(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Random systems with the search that is to be believed.
fn each_system(default_count: u64, mut with: impl FnMut(u64, &Interp, &Found)) {
    let first = number_from("PLIMSOLL_SEED", 0);
    for seed in first..first + number_from("PLIMSOLL_SEEDS", default_count) {
        let size = Size { states: 400, ..if seed % 3 == 0 { Size::MEDIUM } else { Size::SMALL } };
        let interp = Interp::new(random_system(seed, size));
        let truth = exact(&interp, Order::Bfs);
        with(seed, &interp, &truth);
    }
}

/// All chains worth trying.
fn rows() -> Vec<Row> {
    let singles = Rule::ALL.into_iter().map(Row::single);
    let chains = ["KEEP", "MFU:25%,LRU:75%", "LRU,RND,SC", "KEEP:50%,SC:50%", "KEEP:20%,RND,LRU", "OI:40%,KEEP:60%"];
    singles.chain(chains.map(|text| Row::chain(text).unwrap())).collect()
}

#[test]
fn exact_searches_agree() {
    each_system(1000, |seed, interp, truth| {
        same(truth, &exact(interp, Order::Dfs), &format!("seed {seed}, dfs"));
    });
}

#[test]
fn depth_first_with_any_cache_is_complete() {
    let rows = rows();
    let mut forgotten = 0;
    each_system(60, |seed, interp, truth| {
        let deepest = exact(interp, Order::Dfs).outcome.stats.depth as usize + 1;
        for (index, row) in rows.iter().enumerate() {
            for order in [Order::Dfs, Order::Sleeping] {
                let codec = if (seed as usize + index).is_multiple_of(2) { Codec::Plain } else { Codec::Tree };
                let most = truth.states.len().max(1);
                for capacity in capacities(interp, order, deepest, most) {
                    let name = format!("seed {seed}, {order:?}, {row} of {capacity} for {most}");
                    let found = cached(interp, order, codec, row, capacity, Some(PATIENCE_PERCENT));
                    if !found.outcome.complete && capacity < most {
                        continue;
                    }
                    forgotten += found.outcome.stats.forgotten;
                    same(truth, &found, &name);
                }
            }
        }
    });
    assert!(forgotten > 1_000, "only {forgotten} states were forgotten");
}

/// From the smallest that works to one that never forgets. The smallest is found by trying.
fn capacities(model: &impl Model, order: Order, deepest: usize, most: usize) -> Vec<usize> {
    let row = Row::single(Rule::Random);
    let full =
        |capacity: usize| !cached(model, order, Codec::Plain, &row, capacity, Some(PATIENCE_PERCENT)).outcome.complete;
    let smallest = [1, 2, 3, 5, 8, 13, 21, 34].into_iter().find(|&capacity| !full(capacity)).unwrap_or(deepest);
    let mut all = vec![smallest, (smallest + most) / 2, most, most + 1];
    all.retain(|&capacity| capacity > 0);
    all.dedup();
    all
}

#[test]
fn cover_ends_and_is_complete_in_any_order() {
    let rows: Vec<Row> = Rule::ALL.into_iter().map(Row::cover).collect();
    let mut forgotten = 0;
    let mut smallest_share = 0;
    each_system(300, |seed, interp, truth| {
        let most = truth.states.len().max(1);
        for (index, row) in rows.iter().enumerate() {
            let order = if index % 3 == 2 { Order::Dfs } else { Order::Bfs };
            let codec = if (seed as usize + index).is_multiple_of(2) { Codec::Plain } else { Codec::Tree };
            let mut worked = false;
            for capacity in [most / 4 + 1, most / 2 + 1, most * 3 / 4 + 1, most] {
                let found = cached(interp, order, codec, row, capacity, Some(PATIENCE_PERCENT));
                if !found.outcome.complete && capacity < most {
                    continue;
                }
                smallest_share += (!worked && capacity < most) as u64;
                worked = true;
                forgotten += found.outcome.stats.forgotten;
                same(truth, &found, &format!("seed {seed}, {order:?}, {row} of {capacity} for {most}"));
            }
            assert!(worked);
        }
    });
    assert!(forgotten > 1_000 && smallest_share > 100, "{forgotten} forgotten, {smallest_share} smaller");
}

#[test]
fn breadth_first_with_a_plain_cache_is_complete_or_gives_up() {
    let rows = rows();
    let (mut ended, mut gave_up) = (0, 0);
    each_system(300, |seed, interp, truth| {
        let most = truth.states.len().max(1);
        for (index, row) in rows.iter().enumerate() {
            let packs = (seed as usize + index).is_multiple_of(2) && Packing::new(&interp.used_bits()).is_some();
            let codec = if packs { Codec::Packed } else { Codec::Plain };
            // Sets may be full before the cache is, so one that never forgets is larger than the space.
            for capacity in [1, most / 10 + 1, most / 2 + 1, most, most * 4 + 64] {
                let found = cached(interp, Order::Bfs, codec, row, capacity, Some(600));
                let name = format!("seed {seed}, {codec:?}, {row} of {capacity} for {most}");
                if found.outcome.verdict == Verdict::Unknown(Why::Redundancy) || !found.outcome.complete {
                    gave_up += 1;
                    assert!(capacity <= most, "{name}");
                } else {
                    ended += (found.outcome.stats.forgotten > 0) as u64;
                    same(truth, &found, &name);
                }
            }
        }
    });
    assert!(ended > 100 && gave_up > 100, "{ended} ended, {gave_up} gave up");
}

#[test]
fn sleep_sets_keep_all_states_and_save_steps() {
    let (mut plain, mut sleeping) = (0, 0);
    each_system(3_000, |seed, interp, truth| {
        let most = truth.states.len().max(1);
        let row = Row::single(Rule::LeastRecent);
        let found = cached(interp, Order::Sleeping, Codec::Plain, &row, most, None);
        same(truth, &found, &format!("seed {seed}"));
        plain += truth.outcome.stats.transitions;
        sleeping += found.outcome.stats.transitions;
    });
    assert!(sleeping < plain, "{plain} steps, {sleeping} with sleep sets");
}

/// Automata that wait for each other here and there: many steps can be swapped, many cycles are closed.
fn random_automata(seed: u64) -> Interp {
    let mut draw = Draw::new(seed);
    let mut below = move |limit: u64| draw.below(limit);
    let automata = 2 + below(3);
    let mut commands: Vec<(u64, String)> = Vec::new();
    for automaton in 0..automata {
        for _ in 0..2 + below(4) {
            let (from, to) = (below(4), below(4));
            let guard = match below(3) {
                0 => format!("&& (v{} == {})", (automaton + 1 + below(automata - 1)) % automata, below(4)),
                _ => String::new(),
            };
            let command =
                format!("command \"c\" {{ when (v{automaton} == {from}) {guard} do {{ v{automaton} := {to}; }} }}");
            commands.push((below(1 << 40), command));
        }
    }
    commands.sort();
    let vars: Vec<String> = (0..automata).map(|automaton| format!("var v{automaton}: 0..3")).collect();
    let commands: Vec<String> = commands.into_iter().map(|(_, command)| command).collect();
    Interp::new(text::parse(&format!("system \"automata\" {} {}", vars.join(" "), commands.join(" "))).unwrap())
}

#[test]
fn sleep_sets_keep_all_states_of_automata() {
    let (mut plain, mut sleeping, mut forgotten) = (0, 0, 0);
    for seed in 0..number_from("PLIMSOLL_SEEDS", 5_000) {
        let interp = random_automata(number_from("PLIMSOLL_SEED", 0) + seed);
        let truth = exact(&interp, Order::Bfs);
        let most = truth.states.len();
        for (rule, capacity) in
            [(Rule::LeastRecent, most), (Rule::LeastFrequent, most / 2 + 1), (Rule::Random, most / 3 + 1)]
        {
            let found =
                cached(&interp, Order::Sleeping, Codec::Plain, &Row::single(rule), capacity, Some(PATIENCE_PERCENT));
            if !found.outcome.complete && capacity < most {
                continue;
            }
            same(&truth, &found, &format!("seed {seed}, {rule} of {capacity} for {most}"));
            forgotten += found.outcome.stats.forgotten;
            if capacity == most {
                plain += truth.outcome.stats.transitions;
                sleeping += found.outcome.stats.transitions;
            }
        }
    }
    assert!(
        forgotten > 100 && sleeping < plain * 9 / 10,
        "{plain} steps, {sleeping} with sleep sets, {forgotten} forgotten"
    );
}

/// Three cycles that wait for each other here and there. Systems like this are rare: two in 1.4 million of their
/// kind. The gap in the published proof is that the other order of two steps may lead through a state on the path.
const LOSES_A_STATE: &str = "system \"loses a state\" var p: 0..2 var q: 0..2 var r: 0..3
    command \"q1\" { when (q == 2) && (p == 1) do { q := 1; } }
    command \"p2\" { when p == 0 do { p := 2; } }
    command \"q2\" { when q == 0 do { q := 2; } }
    command \"r2\" { when r == 3 do { r := 2; } }
    command \"p1\" { when p == 2 do { p := 1; } }
    command \"q0\" { when (q == 1) && (r == 2) do { q := 0; } }
    command \"r3\" { when r == 0 do { r := 3; } }
    command \"p0\" { when p == 1 do { p := 0; } }
    command \"r0\" { when (r == 2) && (q == 0) do { r := 0; } }";

#[test]
fn the_published_rule_loses_states() {
    let interp = Interp::new(text::parse(LOSES_A_STATE).unwrap());
    let truth = exact(&interp, Order::Bfs);
    let row = Row::single(Rule::LeastRecent);
    let found = |order| cached(&interp, order, Codec::Plain, &row, truth.states.len(), None);
    same(&truth, &found(Order::Sleeping), "looking at the path everywhere");
    let published = found(Order::Published);
    assert!(published.states.is_subset(&truth.states));
    assert_eq!((truth.states.len(), published.states.len()), (27, 26));
    assert_eq!(published.outcome.verdict, Verdict::Unknown(Why::Lossy));
}
