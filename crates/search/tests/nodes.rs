//! Searches that forget and hold their states in a tree give up the nodes that only forgotten states had, whenever that is, and find
//! what a search finds that forgets nothing: every state. Or they say that memory ran out, and nothing else.

use crate::common::crew::small_crew;
use crate::common::witness::Witness;
use plimsoll_ir::random::{Draw, Size, random_system};
use plimsoll_ir::text;
use plimsoll_model::{Interp, Model};
use plimsoll_search::{
    Ask, Control, Limits, Outcome, PathRoom, Sleep, Verdict, Why, bfs, dfs, item_words, sleep, sleeping_dfs,
};
use plimsoll_store::{Budget, Chain, Codec, Collections, Grant, Queue, Row, Rule, Stack, StepLog};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// By so many workers.
    Bfs(usize),
    Dfs,
    Sleeping,
}

struct Seen {
    states: BTreeSet<Vec<u32>>,
    outcome: Outcome,
    collections: Collections,
}

fn search(model: &dyn Model, order: Order, mut store: Chain) -> Seen {
    let (witness, most) = (Witness::of(model), Grant::unlimited());
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let limits = Limits { redundancy_percent: Some(600), ..Limits::default() };
    let mut control = Control { ask, limits, stop: &stop, room: PathRoom::new(most.clone()), watch: &mut watch };
    let outcome = match order {
        Order::Bfs(workers) => {
            let mut queue = Queue::new(model.width(), most.clone(), None);
            let mut log = StepLog::new(most, None);
            bfs(&witness, &mut store, &mut queue, &mut log, small_crew(workers, 15), &mut control)
        }
        Order::Dfs => {
            let mut stack = Stack::new(item_words(model.width(), &store), most);
            dfs(&witness, &mut store, &mut stack, &mut control)
        }
        Order::Sleeping => {
            let mut stack = Stack::new(Sleep::item_words(model.width()), most.clone());
            sleeping_dfs(&witness, &mut store, &mut stack, &mut Sleep::new(sleep::Rule::Checked, &most), &mut control)
        }
    };
    Seen { states: witness.into_found(), outcome, collections: store.tiers.collections() }
}

fn exact(model: &dyn Model) -> Seen {
    search(model, Order::Bfs(1), Chain::new(Codec::Tree, &model.used_bits(), 0, &Grant::unlimited()).unwrap())
}

/// Rows that forget, with the order in which they are tried.
fn rows() -> Vec<(Order, Row)> {
    let chains = ["MFU:25%,LRU:75%", "LRU,RND,SC", "OI:40%,KEEP:20%,SC:40%"].map(|text| Row::chain(text).unwrap());
    let mut rows: Vec<(Order, Row)> = Rule::ALL.into_iter().map(|rule| (Order::Bfs(1), Row::single(rule))).collect();
    rows.extend([Rule::LeastRecent, Rule::OutDegree].map(|rule| (Order::Bfs(3), Row::single(rule))));
    rows.extend([Rule::Stratified, Rule::LeastRecent, Rule::Random].map(|rule| (Order::Dfs, Row::single(rule))));
    rows.push((Order::Sleeping, Row::single(Rule::LeastFrequent)));
    rows.extend([Order::Bfs(1), Order::Dfs].map(|order| (order, Row::cover(Rule::LeastRecent))));
    rows.extend(chains.into_iter().zip([Order::Bfs(1), Order::Dfs, Order::Bfs(2)]).map(|(row, order)| (order, row)));
    let levels = ["frontier:2", "snapshots:(c2,LLNR,3)(2,LFU,4)", "pebble:(c2,LLNR,3)", "snapshots:(3,LFU,2)-BT"];
    let levels = levels.map(|text| text.parse::<Row>().unwrap());
    rows.extend(levels.into_iter().zip([1, 1, 3, 2]).map(|(row, workers)| (Order::Bfs(workers), row)));
    rows
}

/// What came of some searches.
#[derive(Debug, Default)]
struct Tried {
    ended: usize,
    /// For lack of memory, and because too much was visited again.
    gave_up: [usize; 2],
    /// Of those that ended: how many gave up nodes, and how many those are.
    collected: usize,
    nodes: u64,
}

impl Tried {
    fn compare(&mut self, truth: &Seen, seen: &Seen, about: &str) {
        assert!(seen.states.is_subset(&truth.states), "{about}");
        if !seen.outcome.complete {
            match seen.outcome.verdict {
                Verdict::Unknown(Why::Memory) => self.gave_up[0] += 1,
                Verdict::Unknown(Why::Redundancy) | Verdict::Violated(_) => self.gave_up[1] += 1,
                _ => panic!("{about}: {:?}", seen.outcome.verdict),
            }
            return;
        }
        self.ended += 1;
        assert_eq!(seen.states.len(), truth.states.len(), "{about}");
        let (stats, expected) = (&seen.outcome.stats, &truth.outcome.stats);
        for (one, other) in [(stats.deadlocks, expected.deadlocks), (stats.faults, expected.faults)] {
            assert!(one >= other && (one == 0) == (other == 0), "{about}: {one} instead of {other}");
        }
        // A state that comes back with another key is no other state; a sketch is off by 1.6 % on average.
        let (different, expected) = (stats.distinct as f64, expected.distinct as f64);
        assert!((different - expected).abs() < expected * 0.1 + 2.0, "{about}: {different} instead of {expected}");
        self.collected += (seen.collections.nodes > 0) as usize;
        self.nodes += seen.collections.nodes;
    }
}

/// Searches with a cache of so many states, and with less and less memory.
fn try_out(model: &dyn Model, truth: &Seen, rows: &[(Order, Row)], about: &str, tried: &mut Tried) {
    let most = truth.states.len().max(1);
    for (index, (order, row)) in rows.iter().enumerate() {
        let capacity = [most / 4, most / 2, most * 3 / 4][index % 3] + 8;
        for bytes in [1 << 30, 700 << 10, 300 << 10, 160 << 10] {
            let budget = Budget::new(bytes);
            let pins = !matches!(order, Order::Bfs(_));
            let grant = budget.grant("store", bytes);
            let Ok(store) = Chain::with_row(Codec::Tree, &model.used_bits(), row, pins, capacity, &grant) else {
                continue;
            };
            let seen = search(model, *order, store);
            let about = format!("{about}, {order:?}, {row} of {capacity} for {most}, {bytes} bytes");
            tried.compare(truth, &seen, &about);
        }
    }
}

/// Numbers that walk about and lean on each other, each in a word of its own, and one that tells where all of them are, so that there are
/// many nodes.
fn walkers(seed: u64) -> Interp {
    let mut draw = Draw::new(seed);
    let count = draw.within(4, 6);
    let mut system = String::from("system \"walkers\"");
    (0..count).for_each(|walker| system += &format!(" var v{walker}: 0..100000"));
    system += " var all: 0..100000000";
    for walker in 0..count {
        let (step, most, other) = (draw.within(1_500, 2_500), draw.within(4_000, 8_000), draw.within(0, count - 1));
        let factor = 3 + walker * 7;
        system += &format!(
            " command \"on\" {{ when (v{walker} < {most}) do {{ v{walker} := v{walker} + {step}; all := all + {}; }} }}",
            step * factor
        );
        if draw.below(8) == 0 {
            system += &format!(
                " command \"back\" {{ when (v{walker} >= {most}) && (v{other} == 0) do {{
                    all := all - (v{walker} * {factor}); v{walker} := 0; }} }}"
            );
        }
    }
    Interp::new(text::parse(&system).unwrap())
}

#[test]
fn nodes_of_forgotten_states_go_and_no_state_is_missed() {
    let (rows, mut tried) = (rows(), Tried::default());
    for seed in 0..24u64 {
        let model = walkers(seed);
        let truth = exact(&model);
        if (500..5_000).contains(&truth.states.len()) {
            // A few of the rows each time.
            let some: Vec<_> = rows.iter().skip(seed as usize % 5).step_by(5).cloned().collect();
            try_out(&model, &truth, &some, &format!("walkers {seed}"), &mut tried);
        }
    }
    assert!(tried.ended > 150 && tried.collected > 100 && tried.nodes > 100_000, "{tried:?}");
}

#[test]
fn random_systems_are_searched_as_without_forgetting() {
    let (rows, mut tried) = (rows(), Tried::default());
    for seed in 0..120 {
        let size = if seed % 3 == 0 { Size::MEDIUM } else { Size::SMALL };
        let model = Interp::new(random_system(seed, Size { states: 1_000, ..size }));
        let truth = exact(&model);
        let some: Vec<_> = rows.iter().skip(seed as usize % 6).step_by(6).cloned().collect();
        try_out(&model, &truth, &some, &format!("seed {seed}"), &mut tried);
    }
    assert!(tried.ended > 500 && tried.collected > 10, "{tried:?}");
}
