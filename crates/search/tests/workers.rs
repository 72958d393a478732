//! However many workers search, and in however small pieces: the same states in the same order, the same steps that led
//! to them, the same counts, verdict and trace. A worker that is slow here and quick there only changes who does what.

use crate::common::crew::small_crew;
use plimsoll_ir::random::{Size, random_system};
use plimsoll_model::{Around, Interp, Model, Step, Successors};
use plimsoll_search::{Ask, Control, Crew, Limits, Outcome, PathRoom, Verdict, Why, bfs};
use plimsoll_store::packing::Packing;
use plimsoll_store::{Budget, Chain, Codec, Grant, Queue, Row, Rule, StepLog};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// A model that remembers the states that were found, and who expanded them. Some states take longer.
struct Witness<'a> {
    model: &'a dyn Model,
    slow: bool,
    found: Mutex<Vec<Vec<u32>>>,
    workers: Mutex<HashSet<ThreadId>>,
}

impl Around for Witness<'_> {
    fn inner(&self) -> &dyn Model {
        self.model
    }

    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        self.workers.lock().unwrap().insert(thread::current().id());
        let number = state.iter().fold(7u32, |sum, &word| (sum ^ word).wrapping_mul(0x9e37_79b1)) >> 28;
        if self.slow && number == 0 {
            thread::sleep(Duration::from_micros(20));
        }
        self.model.successors(state, out);
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        self.found.lock().unwrap().push(state.to_vec());
        self.model.violated(state)
    }
}

/// Everything that must not depend on the workers.
#[derive(Debug, PartialEq)]
struct Seen {
    states: Vec<Vec<u32>>,
    paths: Vec<Vec<u32>>,
    outcome: Outcome,
}

/// What is asked of a search besides.
#[derive(Clone, Copy, Debug)]
struct Question {
    ask: Ask,
    limits: Limits,
    slow: bool,
}

const ALL: Question = Question {
    ask: Ask { keep_going: true, ..Ask::EVERYTHING },
    limits: Limits { deadline: None, states: None, depth: None, redundancy_percent: Some(300) },
    slow: false,
};

/// Searches, and returns how many workers took part.
fn search(model: &dyn Model, mut store: Chain, crew: Crew, question: Question) -> (Seen, usize) {
    let witness =
        Witness { model, slow: question.slow, found: Mutex::new(Vec::new()), workers: Mutex::new(HashSet::new()) };
    let mut queue = Queue::new(model.width(), Grant::unlimited(), None);
    let mut log = StepLog::new(Grant::unlimited(), None);
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let room = PathRoom::new(Grant::unlimited());
    let mut control = Control { ask: question.ask, limits: question.limits, stop: &stop, room, watch: &mut watch };
    let outcome = bfs(&witness, &mut store, &mut queue, &mut log, crew, &mut control);
    let mut starts = Successors::new(model.width());
    model.initial(&mut starts);
    let starts: HashSet<&[u32]> = starts.iter().filter(|(_, step)| !step.is_fault()).map(|(state, _)| state).collect();
    let some = (0..log.len()).step_by(7 + log.len() as usize / 100);
    let paths = some.map(|number| log.path(number, starts.len() as u64).unwrap()).collect();
    let mut states = witness.found.into_inner().unwrap();
    states.sort();
    (Seen { states, paths, outcome }, witness.workers.into_inner().unwrap().len())
}

fn crew(workers: usize, successors: usize) -> Crew {
    Crew { shard_bits: successors as u32 % 4, ..small_crew(workers, successors) }
}

/// Compares several workers with one, and many shards with few; returns how many workers took part at most. `store` is
/// given a number of shards, as a power of two.
fn compare(model: &dyn Model, store: impl Fn(u32) -> Chain, successors: usize, question: Question) -> usize {
    let (alone, _) = search(model, store(0), crew(1, successors), question);
    let compared = [(1, 8), (2, 0), (2, 8), (3, 2), (16, 2), (5, 8)].map(|(workers, shard_bits)| {
        let (together, took_part) = search(model, store(shard_bits), crew(workers, successors), question);
        assert_eq!(alone.outcome, together.outcome, "{workers} workers, 2^{shard_bits} shards, {question:?}");
        assert!(alone == together, "{workers} workers, 2^{shard_bits} shards, {question:?}: another order");
        took_part
    });
    compared.into_iter().max().unwrap()
}

fn exact(codec: Codec, shard_bits: u32, model: &dyn Model) -> Chain {
    let used = model.used_bits();
    let codec = if codec == Codec::Packed && Packing::new(&used).is_none() { Codec::Tree } else { codec };
    Chain::new(codec, &used, shard_bits, &Budget::new(1 << 36).grant("store", 1 << 36)).unwrap()
}

/// Random systems with more than a few states.
fn systems(count: usize) -> impl Iterator<Item = (u64, Interp)> {
    let size = Size { states: 2_000, ..Size::MEDIUM };
    let large = |model: &Interp| {
        let (seen, _) = search(model, exact(Codec::Plain, 0, model), Crew::of(1), ALL);
        seen.states.len() > 60
    };
    let all = (0..).map(move |seed| (seed, Interp::new(random_system(seed, size))));
    all.filter(move |(_, model)| large(model)).take(count)
}

/// Stores that miss states miss the same ones, and say the same about it.
#[test]
fn lossy_stores_see_the_same_whatever_the_workers() {
    let mut missed = 0;
    for (seed, model) in systems(40) {
        let codec = [Codec::Digest(14), Codec::Digest(64), Codec::Bitstate(2), Codec::Adaptive][seed as usize % 4];
        let store = |shard_bits| {
            let bytes = if codec.fills_grant() { 1 << 20 } else { 1 << 30 };
            Chain::new(codec, &model.used_bits(), shard_bits, &Budget::new(bytes).grant("store", bytes)).unwrap()
        };
        compare(&model, store, [1, 4, 30][seed as usize / 2 % 3], ALL);
        let (all, _) = search(&model, exact(Codec::Tree, 0, &model), Crew::of(1), ALL);
        let (some, _) = search(&model, store(0), Crew::of(1), ALL);
        assert!(!some.outcome.complete && some.outcome.verdict != Verdict::Holds, "{codec}");
        assert!(some.states.iter().all(|state| all.states.binary_search(state).is_ok()));
        missed += all.states.len() - some.states.len();
    }
    assert!(missed > 0);
}

#[test]
fn exact_stores_see_the_same_whatever_the_workers() {
    let mut together = 0;
    for (seed, model) in systems(60) {
        let codec = [Codec::Tree, Codec::Plain, Codec::Packed][seed as usize % 3];
        let question = Question { slow: seed % 5 > 1, ..ALL };
        let block = [1, 4, 30][seed as usize / 2 % 3];
        together += (compare(&model, |bits| exact(codec, bits, &model), block, question) > 1) as u32;
    }
    assert!(together > 15, "hardly ever did several workers take part: {together}");
}

#[test]
fn a_violation_ends_the_search_at_the_same_state() {
    let mut violated = 0;
    for (seed, model) in systems(50) {
        let ask = Ask { keep_going: false, deadlocks: seed % 3 == 0, ..Ask::EVERYTHING };
        let question = Question { ask, slow: seed % 2 == 0, ..ALL };
        let store = |bits| exact(Codec::Tree, bits, &model);
        compare(&model, store, 3, question);
        let (seen, _) = search(&model, store(6), crew(4, 3), question);
        violated += matches!(seen.outcome.verdict, Verdict::Violated(_)) as u32;
    }
    assert!(violated > 10, "{violated}");
}

#[test]
fn limits_end_the_search_at_the_same_state() {
    for (seed, model) in systems(20) {
        for limits in [Limits { states: Some(50 + seed), ..ALL.limits }, Limits { depth: Some(4), ..ALL.limits }] {
            compare(&model, |bits| exact(Codec::Plain, bits, &model), 5, Question { limits, ..ALL });
        }
    }
}

#[test]
fn caches_forget_the_same_whatever_the_workers() {
    let rows = Rule::ALL.into_iter().map(Row::single).chain(Rule::ALL.into_iter().map(Row::cover));
    let kept = ["KEEP:50%,SC:50%", "KEEP:30%,kind:70%", "KEEP:10%,OI,LRU", "KEEP:60%,RND:40%"];
    let rows: Vec<Row> = rows.chain(kept.map(|chain| Row::chain(chain).unwrap())).collect();
    let mut forgotten = 0;
    for (seed, model) in systems(12) {
        for (index, row) in rows.iter().enumerate().skip(seed as usize % 4).step_by(4) {
            let codec = if (seed as usize + index / 4).is_multiple_of(2) { Codec::Packed } else { Codec::Plain };
            let used = model.used_bits();
            let codec = if Packing::new(&used).is_none() { Codec::Plain } else { codec };
            // A cache has as many shards as its size asks for.
            let store = |_| Chain::with_row(codec, &used, row, false, 80, &Grant::unlimited()).unwrap();
            compare(&model, store, 4, Question { slow: seed % 8 == 0, ..ALL });
            forgotten += search(&model, store(0), crew(2, 4), ALL).0.outcome.stats.forgotten;
        }
    }
    assert!(forgotten > 300, "{forgotten}");
}

/// Counters that are raised one at a time: as many states as nobody can visit.
struct Counters;

impl Model for Counters {
    fn width(&self) -> usize {
        12
    }

    fn most_successors(&self) -> usize {
        12
    }

    fn initial(&self, out: &mut Successors) {
        out.push(&[0; 12], Step(0));
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        for word in 0..state.len() {
            let mut next: [u32; 12] = state.try_into().unwrap();
            next[word] += 1;
            out.push(&next, Step(word as u32));
        }
    }
}

#[test]
fn the_tree_learns_its_shape_while_workers_are_under_way() {
    // So deep are 50,388 states, of which it learns twice.
    let question = Question { limits: Limits { depth: Some(7), ..ALL.limits }, slow: true, ..ALL };
    assert!(compare(&Counters, |bits| exact(Codec::Tree, bits, &Counters), 64, question) > 1);
    let [tree, plain] =
        [Codec::Tree, Codec::Plain].map(|codec| search(&Counters, exact(codec, 4, &Counters), crew(3, 64), question).0);
    assert!(tree.states == plain.states && tree.paths == plain.paths);
}

/// Until threads run a small search is done, however wide its levels are.
#[test]
fn a_small_search_calls_nobody() {
    for (depth, transitions, is_shared) in [(5, 21_840, false), (7, 222_768, true)] {
        let question = Question { limits: Limits { depth: Some(depth), ..ALL.limits }, slow: true, ..ALL };
        let (seen, took_part) = search(&Counters, exact(Codec::Plain, 4, &Counters), Crew::of(4), question);
        assert_eq!((seen.outcome.stats.transitions, took_part > 1), (transitions, is_shared));
    }
}

#[test]
fn running_out_of_memory_or_time_ends_all_workers() {
    for codec in [Codec::Plain, Codec::Tree] {
        let budget = Budget::new(6 << 20);
        let store = Chain::new(codec, &Counters.used_bits(), 4, &budget.grant("store", 6 << 20)).unwrap();
        let (seen, took_part) = search(&Counters, store, Crew::of(4), ALL);
        assert_eq!(seen.outcome.verdict, Verdict::Unknown(Why::Memory), "{codec:?}");
        assert!(seen.outcome.stats.states > 10_000 && took_part > 1, "{codec:?}: {:?}", seen.outcome.stats);
    }
    let deadline = Some(Instant::now() + Duration::from_millis(100));
    let question = Question { limits: Limits { deadline, ..ALL.limits }, ..ALL };
    let (seen, _) = search(&Counters, exact(Codec::Tree, 6, &Counters), Crew::of(4), question);
    assert_eq!(seen.outcome.verdict, Verdict::Unknown(Why::Time));
}

/// A model that fails to compute some successors.
struct Broken<'a>(&'a Counters);

impl Around for Broken<'_> {
    fn inner(&self) -> &dyn Model {
        self.0
    }

    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        assert!(state.iter().sum::<u32>() < 6, "on purpose");
        self.0.successors(state, out);
    }
}

#[test]
fn a_worker_that_panics_ends_the_search() {
    let run = || search(&Broken(&Counters), exact(Codec::Tree, 6, &Counters), crew(4, 64), ALL);
    assert!(std::panic::catch_unwind(run).is_err());
}
