//! Searches that hold levels: they end, visit every state and take every step, and do exactly what a few lines say that hold
//! every snapshot as a set; whatever the stream of caches, the number of workers and of shards.

use crate::common::crew::small_crew;
use plimsoll_ir::random::{Draw, Size, random_system};
use plimsoll_model::{Around, Interp, Model, Step, Successors};
use plimsoll_search::{Ask, Control, Crew, Limits, Outcome, PathRoom, Verdict, bfs};
use plimsoll_store::packing::Packing;
use plimsoll_store::row::{Admit, Replace, Tier};
use plimsoll_store::{Chain, Codec, Grant, LevelRule, Queue, Room, Row, StepLog};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// An explicit graph from state 0 on.
struct Graph(Vec<Vec<u32>>);

impl Model for Graph {
    fn width(&self) -> usize {
        2
    }

    fn used_bits(&self) -> Vec<u32> {
        vec![0xFFFF, 0xF]
    }

    fn most_successors(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn initial(&self, out: &mut Successors) {
        out.push(&[0, 0], Step(0));
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        for (number, &next) in (0..).zip(&self.0[state[0] as usize]) {
            out.push(&[next, next % 16], Step(number));
        }
    }
}

/// A model that remembers which states were found and which were expanded.
struct Recorder<'a> {
    model: &'a dyn Model,
    found: Mutex<BTreeSet<Vec<u32>>>,
    expanded: Mutex<BTreeMap<Vec<u32>, u64>>,
}

impl Around for Recorder<'_> {
    fn inner(&self) -> &dyn Model {
        self.model
    }

    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        *self.expanded.lock().unwrap().entry(state.to_vec()).or_default() += 1;
        self.model.successors(state, out);
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        self.found.lock().unwrap().insert(state.to_vec());
        self.model.violated(state)
    }
}

/// What a search has seen.
#[derive(Debug, PartialEq)]
struct Seen {
    found: BTreeSet<Vec<u32>>,
    /// How often each state was expanded.
    expanded: BTreeMap<Vec<u32>, u64>,
    outcome: Outcome,
}

impl Seen {
    fn states(&self) -> BTreeSet<Vec<u32>> {
        self.expanded.keys().cloned().collect()
    }
}

fn search(model: &dyn Model, mut store: Chain, crew: Crew) -> Seen {
    let recorder = Recorder { model, found: Mutex::default(), expanded: Mutex::default() };
    let mut queue = Queue::new(model.width(), Grant::unlimited(), None);
    let mut log = StepLog::new(Grant::unlimited(), None);
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let room = PathRoom::new(Grant::unlimited());
    // It ends, and nobody should have to wait for it.
    let limits = Limits { states: Some(50_000), ..Limits::default() };
    let mut control = Control { ask, limits, stop: &stop, room, watch: &mut watch };
    let outcome = bfs(&recorder, &mut store, &mut queue, &mut log, crew, &mut control);
    let (found, expanded) = (recorder.found.into_inner().unwrap(), recorder.expanded.into_inner().unwrap());
    Seen { found, expanded, outcome }
}

fn levels(model: &dyn Model, codec: Codec, row: &Row, shard_bits: u32, capacity: usize) -> Chain {
    let used = model.used_bits();
    let codec = if codec == Codec::Packed && Packing::new(&used).is_none() { Codec::Tree } else { codec };
    let mut store = Chain::with_row(codec, &used, row, false, capacity, &Grant::unlimited()).unwrap();
    assert!(shard_bits == 0 || store.tiers.divide(&store.coder, shard_bits));
    store
}

fn plain(model: &dyn Model) -> Seen {
    let store = Chain::new(Codec::Plain, &model.used_bits(), 0, &Grant::unlimited()).unwrap();
    search(model, store, Crew::of(1))
}

/// Nothing was missed, and every step was taken, for every state was expanded.
fn same(truth: &Seen, seen: &Seen, name: &str) {
    assert!(seen.outcome.complete, "{name}: {:?}", seen.outcome.verdict);
    assert_eq!((truth.states(), &truth.found), (seen.states(), &seen.found), "{name}");
    let violated = |seen: &Seen| matches!(seen.outcome.verdict, Verdict::Violated(_));
    assert_eq!(violated(truth), violated(seen), "{name}");
}

fn random_row(draw: &mut Draw) -> Row {
    let mut cache = |growing: bool| {
        let rule = LevelRule::ALL[draw.below(9) as usize].name();
        let constant = if growing { "" } else { "c" };
        format!("({constant}{},{rule},{})", 1 + draw.below(4), 1 + draw.below(4))
    };
    let text = match cache(true).len() % 3 {
        0 => format!("snapshots:{}{}", cache(false), cache(true)),
        1 => format!("snapshots:{}", cache(true)),
        _ => format!("snapshots:{}{}{}", cache(true), cache(false), cache(false)),
    };
    let pebble = format!(
        "pebble:(c{},{},{})",
        2 + draw.below(3),
        LevelRule::ALL[draw.below(9) as usize].name(),
        1 + draw.below(3)
    );
    let text = if draw.below(4) == 0 { pebble } else { text };
    let backtracks = if draw.below(2) == 0 { "" } else { "-BT" };
    format!("{text}{backtracks}").parse().unwrap()
}

/// Edges on and edges back, of every length.
fn random_graph(draw: &mut Draw, most: u64) -> Graph {
    let states = 1 + draw.below(most);
    let forward = 1 + draw.below(8);
    let next = |draw: &mut Draw, from: u64| match draw.below(5) {
        0 => draw.below(states),
        1 => from.saturating_sub(draw.below(20)),
        _ => (from + 1 + draw.below(forward)).min(states - 1),
    };
    let degree = 1 + draw.below(3);
    let successors = |from| (0..draw.below(degree + 1) + 1).map(|_| next(draw, from) as u32).collect();
    Graph((0..states).map(successors).collect())
}

// ---- The same search in a few lines, with sets.

struct Snapshot {
    level: u32,
    states: BTreeSet<u32>,
    hits: u64,
    last_hit: u32,
}

struct Cache {
    rule: LevelRule,
    room: usize,
    again: bool,
    period: u32,
    growth: u32,
    waits: u32,
    held: Vec<Snapshot>,
}

fn caches_of(row: &Row) -> Vec<Cache> {
    let cache = |tier: &Tier| {
        let Replace::Level(rule) = tier.replace else { return None };
        let (period, growth) = match tier.admit {
            Admit::Every(period) => (period, 0),
            Admit::Growing(period) => (period, period),
            _ => unreachable!(),
        };
        let (room, again) = match tier.room {
            Room::Levels(room) => (room as usize, false),
            Room::LevelsAgain(room) => (room as usize, true),
            _ => unreachable!(),
        };
        Some(Cache { rule, room, again, period, growth, waits: 0, held: Vec::new() })
    };
    row.tiers().iter().filter_map(cache).collect()
}

fn offer(caches: &mut Vec<Cache>, mut offered: Snapshot) {
    for at in 0.. {
        if at == caches.len() {
            let Cache { rule, room, again: true, .. } = caches[at - 1] else { return };
            // The first of the kind tells how periods begin.
            let (period, growth) = (caches[0].period.min(4), caches[0].growth);
            assert_eq!(growth, 0, "pebbles here have constant periods");
            caches.push(Cache { rule, room, again: true, period, growth, waits: 0, held: Vec::new() });
        }
        let cache = &mut caches[at];
        if cache.waits > 0 {
            cache.waits -= 1;
            return;
        }
        cache.waits = cache.period - 1;
        cache.period += cache.growth;
        cache.held.push(offered);
        if cache.held.len() <= cache.room {
            return;
        }
        let old = &cache.held[..cache.room];
        let cost = |snapshot: &Snapshot| match cache.rule {
            LevelRule::LowestLevel => snapshot.level as i64,
            LevelRule::LeastRecent => snapshot.last_hit as i64,
            LevelRule::MostRecent => -(snapshot.last_hit as i64),
            LevelRule::LeastFrequent => snapshot.hits as i64,
            LevelRule::MostFrequent => -(snapshot.hits as i64),
            LevelRule::Smallest => snapshot.states.len() as i64,
            LevelRule::Largest => -(snapshot.states.len() as i64),
            LevelRule::Stratified => snapshot.level.trailing_zeros() as i64,
            LevelRule::Random => unreachable!("not compared"),
        };
        let lowest = (0..old.len()).min_by_key(|&index| (cost(&old[index]), old[index].level)).unwrap();
        offered = cache.held.remove(lowest);
    }
}

/// How often each state is expanded.
fn twin(graph: &Graph, row: &Row) -> BTreeMap<u32, u64> {
    let mut caches = caches_of(row);
    let mut expanded = BTreeMap::new();
    let (mut backtrack, mut anchors) = (BTreeSet::new(), BTreeSet::new());
    let (mut open, mut next) = (vec![0], BTreeSet::from([0]));
    let (mut anchor, mut gap) = (1, 1);
    for level in 0.. {
        // Level `level` is complete. If it is taken, it meets those that it has states in common with.
        let taken = caches[0].waits == 0;
        for snapshot in caches.iter_mut().flat_map(|cache| &mut cache.held).filter(|_| taken) {
            let common = snapshot.states.intersection(&next).count() as u64;
            if common > 0 {
                (snapshot.hits, snapshot.last_hit) = (snapshot.hits + common, level);
            }
        }
        offer(&mut caches, Snapshot { level, states: next, hits: 0, last_hit: level });
        if level == anchor {
            anchors.extend(open.first().copied());
            (anchor, gap) = (anchor + gap, gap + 1);
        }
        if open.is_empty() {
            break;
        }
        let mut fresh = Vec::new();
        let mut recognised = Vec::new();
        next = BTreeSet::new();
        for &state in &open {
            *expanded.entry(state).or_default() += 1;
            let successors = &graph.0[state as usize];
            let distinct: BTreeSet<u32> = successors.iter().copied().collect();
            let old = caches[1..].iter().flat_map(|cache| &cache.held);
            let in_one = old.into_iter().any(|snapshot| distinct.is_subset(&snapshot.states));
            if distinct.len() > 1 && (in_one || distinct.is_subset(&backtrack)) {
                recognised.push(state);
            }
            for &successor in successors {
                let mut known = anchors.contains(&successor) || backtrack.contains(&successor);
                known |= caches.iter().flat_map(|cache| &cache.held).any(|held| held.states.contains(&successor));
                if next.insert(successor) && !known {
                    fresh.push(successor);
                }
            }
        }
        if row.backtracks() {
            backtrack.extend(recognised);
        }
        open = fresh;
    }
    expanded
}

fn in_chance(row: &Row) -> bool {
    row.tiers().iter().any(|tier| tier.replace == Replace::Level(LevelRule::Random))
}

#[test]
fn it_does_what_the_paper_says() {
    let (mut compared, mut again, mut saved) = (0, 0u64, 0i64);
    for seed in 0..1_500 {
        let mut draw = Draw::new(seed);
        let (row, graph) = (random_row(&mut draw), random_graph(&mut draw, 150));
        let codec = if seed % 3 == 0 { Codec::Tree } else { Codec::Packed };
        // Whether what was met lately is looked up again or not.
        let crew = if seed % 2 == 0 { Crew::of(1) } else { Crew { shared_successors: 2, ..Crew::of(1) } };
        let seen = search(&graph, levels(&graph, codec, &row, 0, 1 << 20), crew);
        same(&plain(&graph), &seen, &format!("seed {seed}, {row}"));
        if in_chance(&row) {
            continue;
        }
        compared += 1;
        let expected: BTreeMap<Vec<u32>, u64> =
            twin(&graph, &row).into_iter().map(|(state, count)| (vec![state, state % 16], count)).collect();
        assert_eq!(seen.expanded, expected, "seed {seed}, {row}");
        let visits: u64 = expected.values().sum();
        assert_eq!(seen.outcome.stats.states, visits);
        again += visits - expected.len() as u64;
        if row.backtracks() {
            let without: Row = format!("{row}-BT").parse().unwrap();
            saved += twin(&graph, &without).values().sum::<u64>() as i64 - visits as i64;
        }
    }
    assert!(compared > 600 && again > 5_000 && saved > 0, "{compared} compared, {again} visited again, {saved} saved");
}

#[test]
fn cycles_of_any_length_are_caught() {
    for text in ["snapshots:(1,LLNR,1)", "snapshots:(c2,LLNR,2)(2,LFU,3)-BT", "pebble:(c2,LLNR,1)", "frontier:3"] {
        let row: Row = text.parse().unwrap();
        for length in (1..60).chain([97, 500, 1_000, 5_000]) {
            let graph = Graph((0..length).map(|state| vec![(state + 1) % length]).collect());
            let seen = search(&graph, levels(&graph, Codec::Packed, &row, 0, 1 << 20), Crew::of(1));
            assert!(seen.outcome.complete && seen.expanded.len() == length as usize, "{text}, {length}");
            assert!(
                seen.outcome.stats.states <= 2 * length as u64 + 2,
                "{text}, {length}: {}",
                seen.outcome.stats.states
            );
        }
    }
}

/// Two cycles that take turns: a growing period alone never catches both (see `plimsoll_store`'s `snapshots.rs`).
#[test]
fn a_growing_period_is_not_enough_and_anchors_are() {
    let edges: [&[u32]; 13] = [&[1], &[2, 8], &[3], &[4], &[0], &[6], &[7], &[8], &[9], &[10], &[11], &[12], &[5, 3]];
    let graph = Graph(edges.iter().map(|edges| edges.to_vec()).collect());
    // As the lemma has it: one snapshot, whose period grows by ten. After 30,000 levels both are still gone round.
    let (mut open, mut snapshot) = (BTreeSet::from([0]), BTreeSet::from([0]));
    let (mut period, mut sample) = (10, 10);
    for level in 1..30_000 {
        let next: BTreeSet<u32> = open.iter().flat_map(|&state| &graph.0[state as usize]).copied().collect();
        open = next.difference(&snapshot).copied().collect();
        assert!(!open.is_empty(), "ended on level {level}");
        if level == sample {
            (period, snapshot) = (period + 10, next);
            sample += period;
        }
    }
    let row: Row = "snapshots:(10,LLNR,1)-BT".parse().unwrap();
    let seen = search(&graph, levels(&graph, Codec::Packed, &row, 0, 1 << 20), Crew::of(1));
    same(&plain(&graph), &seen, "with anchors");
    assert!(seen.outcome.stats.states < 200, "{}", seen.outcome.stats.states);
}

#[test]
fn workers_shards_and_room_for_few_states_change_nothing_that_counts() {
    let (mut forgotten, mut ended, mut gave_up) = (0, 0, 0);
    for seed in 0..60 {
        let mut draw = Draw::new(seed);
        let (row, graph) = (random_row(&mut draw), random_graph(&mut draw, 600));
        let interp = Interp::new(random_system(seed, Size { states: 400, ..Size::MEDIUM }));
        let model: &dyn Model = if seed % 2 == 0 { &graph } else { &interp };
        let truth = plain(model);
        let codec = if seed % 3 == 0 { Codec::Tree } else { Codec::Packed };
        for capacity in [1 << 20, truth.expanded.len() / 2 + 4] {
            let crew = |workers: usize, successors: usize| Crew {
                wave_successors: 24,
                shard_bits: successors as u32 % 4,
                ..small_crew(workers, successors)
            };
            let alone = search(model, levels(model, codec, &row, 0, capacity), crew(1, 3));
            // With too little room it may take long.
            if capacity == 1 << 20 || alone.outcome.complete {
                same(&truth, &alone, &format!("seed {seed}, {row}, {capacity}"));
                ended += (capacity < 1 << 20) as u32;
            } else {
                gave_up += 1;
            }
            forgotten += alone.outcome.stats.forgotten;
            for (workers, successors, shard_bits) in [(1, 2, 8), (2, 3, 0), (2, 2, 2), (3, 1, 8), (3, 2, 0)] {
                let store = levels(model, codec, &row, shard_bits, capacity);
                let together = search(model, store, crew(workers, successors));
                assert_eq!(alone.outcome, together.outcome, "seed {seed}, {row}, {workers}, {shard_bits}");
                assert!(alone == together, "seed {seed}, {row}, {workers} workers, 2^{shard_bits} shards");
            }
        }
    }
    assert!(forgotten > 10_000 && ended > 6 * gave_up, "{forgotten} forgotten, {ended} ended, {gave_up} not");
}
