//! Whatever a store forgets and whatever sleeps: the states visited are those of a plain breadth-first search,
//! and so are the deadlocks, the violated properties and whether something goes wrong.
//!
//! `PLIMSOLL_SEED` and `PLIMSOLL_SEEDS` choose the random systems.

use plimsoll_ir::random::{Size, random_system};
use plimsoll_model::{Conventions, Interp, Model, Step, Successors};
use plimsoll_search::{Ask, Control, Limits, Outcome, Sleep, Verdict, Why, bfs, dfs, item_words, sleeping_dfs};
use plimsoll_store::{Budget, Chain, Codec, Grant, Queue, Rule, Spec, Stack, StepLog};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// For the store, and for the stack, or the queue and the log.
const MOST_BYTES: u64 = 32 << 20;
/// Small caches may take exponential time; the proofs say that they end, the test need not wait.
const PATIENCE_PERCENT: u64 = 3_000;

/// A model that remembers which states were expanded, and how often it was asked.
struct Recorder<'a, M> {
    model: &'a M,
    seen: Mutex<HashMap<Vec<u32>, u32>>,
}

impl<M: Model> Model for Recorder<'_, M> {
    fn width(&self) -> usize {
        self.model.width()
    }
    fn most_successors(&self) -> usize {
        self.model.most_successors()
    }
    fn initial(&self, out: &mut Successors) {
        self.model.initial(out);
    }
    fn successors(&self, state: &[u32], out: &mut Successors) {
        *self.seen.lock().unwrap().entry(state.to_vec()).or_default() += 1;
        self.model.successors(state, out);
    }
    fn violated(&self, state: &[u32]) -> Option<u32> {
        self.model.violated(state)
    }
    fn accepts_end(&self, state: &[u32]) -> bool {
        self.model.accepts_end(state)
    }
    fn conventions(&self) -> Conventions {
        self.model.conventions()
    }
    fn independent(&self, one: Step, other: Step) -> bool {
        self.model.independent(one, other)
    }
    fn kind(&self, step: Step) -> u8 {
        self.model.kind(step)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Bfs,
    Dfs,
    Sleeping,
}

/// What a search found out.
#[derive(Debug)]
struct Found {
    states: BTreeSet<Vec<u32>>,
    outcome: Outcome,
}

fn search(model: &impl Model, order: Order, store: &mut Chain, redundancy_percent: Option<u64>) -> Found {
    let recorder = Recorder { model, seen: Mutex::new(HashMap::new()) };
    let stop = AtomicBool::new(false);
    let mut watch = |_: &_| {};
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let limits = Limits { redundancy_percent, ..Limits::default() };
    let mut control = Control { ask, limits, stop: &stop, watch: &mut watch };
    let grant = grant();
    let outcome = match order {
        Order::Bfs => {
            let (mut queue, mut log) =
                (Queue::new(model.width(), grant.clone(), None), StepLog::new(grant.clone(), None));
            bfs(&recorder, store, &mut queue, &mut log, &mut control)
        }
        Order::Dfs => {
            let mut stack = Stack::new(item_words(model.width(), store), grant);
            dfs(&recorder, store, &mut stack, &mut control)
        }
        Order::Sleeping => {
            let mut stack = Stack::new(item_words(model.width(), store), grant.clone());
            sleeping_dfs(&recorder, store, &mut stack, &mut Sleep::new(&grant), &mut control)
        }
    };
    let states = recorder.seen.into_inner().unwrap().into_keys().collect();
    Found { states, outcome }
}

fn grant() -> Grant {
    Budget::new(MOST_BYTES).grant("test", MOST_BYTES)
}

fn exact(model: &impl Model, order: Order) -> Found {
    let mut store = Chain::new(Codec::Plain, model.width(), &grant()).unwrap();
    search(model, order, &mut store, None)
}

fn cached(model: &impl Model, order: Order, codec: Codec, spec: &Spec, capacity: usize, percent: Option<u64>) -> Found {
    let mut store = Chain::with_cache(codec, model.width(), spec, order != Order::Bfs, capacity, &grant()).unwrap();
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
fn specs() -> Vec<Spec> {
    let singles = Rule::ALL.into_iter().map(Spec::single);
    singles.chain(["MFU:25%,LRU:75%", "LRU,RND,SC"].map(|text| text.parse().unwrap())).collect()
}

#[test]
fn exact_searches_agree() {
    each_system(1000, |seed, interp, truth| {
        same(truth, &exact(interp, Order::Dfs), &format!("seed {seed}, dfs"));
    });
}

#[test]
fn depth_first_with_any_cache_is_complete() {
    let specs = specs();
    let mut forgotten = 0;
    each_system(60, |seed, interp, truth| {
        let deepest = exact(interp, Order::Dfs).outcome.stats.depth as usize + 1;
        for (index, spec) in specs.iter().enumerate() {
            for order in [Order::Dfs, Order::Sleeping] {
                let codec = if (seed as usize + index).is_multiple_of(2) { Codec::Plain } else { Codec::Tree };
                let most = truth.states.len().max(1);
                for capacity in capacities(interp, order, deepest, most) {
                    let name = format!("seed {seed}, {order:?}, {spec} of {capacity} for {most}");
                    let found = cached(interp, order, codec, spec, capacity, Some(PATIENCE_PERCENT));
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
    let spec = Spec::single(Rule::Random);
    let full =
        |capacity: usize| !cached(model, order, Codec::Plain, &spec, capacity, Some(PATIENCE_PERCENT)).outcome.complete;
    let smallest = [1, 2, 3, 5, 8, 13, 21, 34].into_iter().find(|&capacity| !full(capacity)).unwrap_or(deepest);
    let mut all = vec![smallest, (smallest + most) / 2, most, most + 1];
    all.retain(|&capacity| capacity > 0);
    all.dedup();
    all
}

#[test]
fn cover_ends_and_is_complete_in_any_order() {
    let specs: Vec<Spec> = Rule::ALL.into_iter().map(Spec::cover).collect();
    let mut forgotten = 0;
    let mut smallest_share = 0;
    each_system(300, |seed, interp, truth| {
        let most = truth.states.len().max(1);
        for (index, spec) in specs.iter().enumerate() {
            let order = if index % 3 == 2 { Order::Dfs } else { Order::Bfs };
            let codec = if (seed as usize + index).is_multiple_of(2) { Codec::Plain } else { Codec::Tree };
            let mut worked = false;
            for capacity in [most / 4 + 1, most / 2 + 1, most * 3 / 4 + 1, most] {
                let found = cached(interp, order, codec, spec, capacity, Some(PATIENCE_PERCENT));
                if !found.outcome.complete && capacity < most {
                    continue;
                }
                smallest_share += (!worked && capacity < most) as u64;
                worked = true;
                forgotten += found.outcome.stats.forgotten;
                same(truth, &found, &format!("seed {seed}, {order:?}, {spec} of {capacity} for {most}"));
            }
            assert!(worked);
        }
    });
    assert!(forgotten > 1_000 && smallest_share > 100, "{forgotten} forgotten, {smallest_share} smaller");
}

#[test]
fn breadth_first_with_a_plain_cache_is_complete_or_gives_up() {
    let specs = specs();
    let (mut ended, mut gave_up) = (0, 0);
    each_system(300, |seed, interp, truth| {
        let most = truth.states.len().max(1);
        for spec in &specs {
            // Sets may be full before the cache is, so one that never forgets is larger than the space.
            for capacity in [1, most / 10 + 1, most / 2 + 1, most, most * 4 + 64] {
                let found = cached(interp, Order::Bfs, Codec::Plain, spec, capacity, Some(600));
                let name = format!("seed {seed}, {spec} of {capacity} for {most}");
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
    let (mut plain, mut sleeping, mut woken) = (0, 0, 0);
    each_system(3_000, |seed, interp, truth| {
        let most = truth.states.len().max(1);
        let spec = Spec::single(Rule::LeastRecent);
        let found = cached(interp, Order::Sleeping, Codec::Plain, &spec, most, None);
        same(truth, &found, &format!("seed {seed}"));
        plain += truth.outcome.stats.transitions;
        sleeping += found.outcome.stats.transitions;
        woken += found.outcome.stats.woken;
    });
    assert!(sleeping < plain && woken > 0, "{plain} steps, {sleeping} with sleep sets, {woken} states woken");
}

/// The rule as first published: nothing is kept with a state, every known state is skipped, and a step is not
/// put to sleep if its target is on the stack.
fn published_rule(model: &impl Model) -> HashSet<Vec<u32>> {
    struct Frame {
        state: Vec<u32>,
        successors: Successors,
        next: usize,
        asleep: Vec<Step>,
    }
    let expand = |state: &[u32], asleep: Vec<Step>| {
        let mut successors = Successors::new(model.width());
        model.successors(state, &mut successors);
        Frame { state: state.to_vec(), successors, next: 0, asleep }
    };
    let mut visited = HashSet::new();
    let mut starts = Successors::new(model.width());
    model.initial(&mut starts);
    for (start, _) in starts.iter().filter(|(_, step)| !step.is_fault()) {
        if !visited.insert(start.to_vec()) {
            continue;
        }
        let mut path = vec![expand(start, Vec::new())];
        while let Some(frame) = path.last_mut() {
            if frame.next == frame.successors.len() {
                path.pop();
                continue;
            }
            let (state, step) = (frame.successors.state(frame.next).to_vec(), frame.successors.step(frame.next));
            frame.next += 1;
            if step.is_fault() || frame.asleep.contains(&Step(step.instance())) {
                continue;
            }
            let below = frame.asleep.iter().copied().filter(|&other| model.independent(other, step)).collect();
            let on_stack = path.iter().any(|frame| frame.state == state);
            if !on_stack {
                path.last_mut().unwrap().asleep.push(Step(step.instance()));
            }
            if visited.insert(state.clone()) {
                path.push(expand(&state, below));
            }
        }
    }
    visited
}

#[test]
fn the_published_rule_loses_states() {
    let (mut losing, mut lost) = (0, 0);
    each_system(3_000, |_, interp, truth| {
        let visited = published_rule(interp);
        assert!(visited.len() <= truth.states.len());
        if visited.len() < truth.states.len() {
            losing += 1;
            lost += truth.states.len() - visited.len();
        }
    });
    assert!(losing > 0, "the published rule would do on these systems");
    println!("the published rule loses {lost} states in {losing} systems");
}
