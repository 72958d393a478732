//! Whatever is forgotten and whatever sleeps, a search that ends has visited every state of the model, and no other.
//!
//! Which models are tried is said in `common/corpus.rs`.

use crate::common::corpus;

use plimsoll_model::{Around, Jit, Model};
use plimsoll_search::{
    Ask, Control, Crew, Limits, Outcome, PathRoom, Sleep, bfs, dfs, item_words, sleep, sleeping_dfs,
};
use plimsoll_store::{Block, Budget, Buffers, Chain, Codec, Grant, Queue, Row, Rule, Stack, StepLog};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

const MOST_STATES: u64 = 3_000;
/// Visits per state after which a search is not waited for.
const PATIENCE_PERCENT: u64 = 600;

/// More than any of these searches needs.
const MOST_BYTES: u64 = 4 << 30;

fn grant() -> Grant {
    Budget::new(MOST_BYTES).grant("test", MOST_BYTES)
}

/// A model that keeps every state that is visited.
struct Recorder<'a> {
    model: &'a Jit,
    visited: Mutex<Visited>,
    /// The states that there are, if they are known: every visited state is added, and none may be new.
    truth: Option<&'a Mutex<Visited>>,
}

struct Visited {
    set: Chain,
    buffers: Buffers,
    fresh: Vec<u32>,
}

impl Visited {
    fn new(width: usize) -> Visited {
        let set = Chain::new(Codec::Tree, &vec![u32::MAX; width], 0, &grant()).unwrap();
        Visited { set, buffers: Buffers::default(), fresh: Vec::new() }
    }

    fn add(&mut self, state: &[u32]) {
        self.set.insert(Block::of(state, &[0, 1]), &mut self.buffers, &mut self.fresh).unwrap();
    }

    fn len(&self) -> u64 {
        self.set.usage().states
    }
}

impl Around for Recorder<'_> {
    fn inner(&self) -> &dyn Model {
        self.model
    }

    /// Searches ask this once for every state they visit.
    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        self.visited.lock().unwrap().add(state);
        if let Some(truth) = self.truth {
            truth.lock().unwrap().add(state);
        }
        self.model.violated(state)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    BreadthFirst,
    DepthFirst,
    Reversed,
    Sleeping,
}

fn search(model: &Jit, way: Way, store: &mut Chain, truth: Option<&Mutex<Visited>>, most: u64) -> (Outcome, Visited) {
    let width = model.width();
    let recorder = Recorder { model, visited: Mutex::new(Visited::new(width)), truth };
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let limits = Limits { redundancy_percent: Some(PATIENCE_PERCENT), states: Some(most), ..Limits::default() };
    let room = PathRoom::new(Grant::unlimited());
    let mut control = Control { ask, limits, stop: &stop, room, watch: &mut watch };
    let grant = grant();
    let outcome = match way {
        Way::BreadthFirst => {
            let (mut queue, mut log) = (Queue::new(width, grant.clone(), None), StepLog::new(grant, None));
            bfs(&recorder, store, &mut queue, &mut log, Crew::of(1), &mut control)
        }
        Way::DepthFirst | Way::Reversed => {
            let stack = Stack::new(item_words(width, store), grant);
            let mut stack = if way == Way::Reversed { stack.reversed() } else { stack };
            dfs(&recorder, store, &mut stack, &mut control)
        }
        Way::Sleeping => {
            let mut stack = Stack::new(Sleep::item_words(width), grant.clone());
            let mut sleep = Sleep::new(sleep::Rule::Checked, &grant);
            sleeping_dfs(&recorder, store, &mut stack, &mut sleep, &mut control)
        }
    };
    (outcome, recorder.visited.into_inner().unwrap())
}

/// Tries every way to search `model`; returns how many forgot states and visited all of them in spite of it.
fn check(name: &str, model: &Jit, most_states: u64) -> Option<u32> {
    let exact = || Chain::new(Codec::Tree, &model.used_bits(), 4, &grant()).unwrap();
    let (outcome, truth) = search(model, Way::BreadthFirst, &mut exact(), None, most_states);
    if !outcome.complete {
        return None;
    }
    let states = truth.len();
    let truth = Mutex::new(truth);
    let mut forgetful = 0;
    let mut compare = |what: String, (outcome, found): (Outcome, Visited)| {
        if !outcome.complete {
            assert!(outcome.stats.forgotten > 0 || outcome.stats.held == outcome.stats.capacity, "{name}, {what}");
            return;
        }
        forgetful += (outcome.stats.forgotten > 0) as u32;
        assert_eq!(found.len(), states, "{name}, {what}");
        assert_eq!(truth.lock().unwrap().len(), states, "{name}, {what}: states that there are not");
    };
    for way in [Way::DepthFirst, Way::Reversed, Way::Sleeping] {
        compare(format!("{way:?}"), search(model, way, &mut exact(), Some(&truth), u64::MAX));
    }
    for rule in Rule::ALL {
        let (plain, cover) = (Row::single(rule), Row::cover(rule));
        for (way, row) in [
            (Way::BreadthFirst, &plain),
            (Way::BreadthFirst, &cover),
            (Way::DepthFirst, &plain),
            (Way::Sleeping, &plain),
        ] {
            for capacity in [states / 10 + 1, states / 2 + 1, states] {
                let codec = if capacity % 2 == 0 { Codec::Tree } else { Codec::Plain };
                let pins = way != Way::BreadthFirst || row.holds_ancestors();
                let store = Chain::with_row(codec, &model.used_bits(), row, pins, capacity as usize, &grant());
                let what = format!("{way:?} {row} of {capacity} for {states}");
                compare(what, search(model, way, &mut store.unwrap(), Some(&truth), u64::MAX));
            }
        }
    }
    Some(forgetful)
}

#[test]
fn every_way_to_search_visits_every_state() {
    let (mut tried, mut forgetful) = (0, 0);
    for (name, jit) in corpus::models() {
        if let Some(count) = check(&name, &jit, corpus::most_states(MOST_STATES)) {
            (tried, forgetful) = (tried + 1, forgetful + count);
        }
    }
    println!("{tried} models, {forgetful} searches that forgot states and visited all");
    assert!(corpus::is_given() || tried > 10 && forgetful > 200, "{tried} models, {forgetful} forgetful searches");
}
