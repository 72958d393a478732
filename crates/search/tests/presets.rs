//! Every row breadth first, with 1, 2, 3 and 16 workers and, where a row has shards to choose, with 1, 4 and 256 of them: a search
//! that ends has visited every state and no other, and whoever searched, everything that was seen and counted is the same.
//! Depth-first rows have one worker; they are in `oracle.rs`.
//!
//! `PLIMSOLL_SEED` and `PLIMSOLL_SEEDS` choose the random systems.

use crate::common::crew::small_crew;
use crate::common::witness::Witness;
use plimsoll_ir::random::{Size, random_system};
use plimsoll_model::{Interp, Model};
use plimsoll_search::{Ask, Control, Crew, Limits, Outcome, PathRoom, Verdict, Why, bfs};
use plimsoll_store::disk::SLOT;
use plimsoll_store::disk::faulty::Faulty;
use plimsoll_store::packing::Packing;
use plimsoll_store::runs::{BLOCK_BYTES, Candidates, Keep, Layers};
use plimsoll_store::{Budget, Chain, Codec, Grant, Queue, Row, Rule, Spill, StepLog};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

const WORKERS: [usize; 4] = [1, 2, 3, 16];
const SHARD_BITS: [u32; 3] = [0, 2, 8];
/// Systems, if nobody says otherwise.
const SYSTEMS: u64 = 12;
/// Visits per state at which a search that need not end is given up.
const PATIENCE_PERCENT: u64 = 600;
/// For tables and runs of a search on disk, beside what its codec takes.
const LAYERS_BYTES: u64 = 48 << 10;

/// All that must not depend on who searches.
#[derive(Debug, PartialEq)]
struct Found {
    states: BTreeSet<Vec<u32>>,
    outcome: Outcome,
}

fn crew(workers: usize, shard_bits: u32) -> Crew {
    Crew { shard_bits, ..small_crew(workers, 4) }
}

fn search(model: &dyn Model, mut store: Chain, crew: Crew) -> Found {
    let witness = Witness::of(model);
    let mut queue = Queue::new(model.width(), Grant::unlimited(), None);
    let mut log = StepLog::new(Grant::unlimited(), None);
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let limits = Limits { redundancy_percent: Some(PATIENCE_PERCENT), ..Limits::default() };
    let room = PathRoom::new(Grant::unlimited());
    let mut control = Control { ask, limits, stop: &stop, room, watch: &mut watch };
    let mut outcome = bfs(&witness, &mut store, &mut queue, &mut log, crew, &mut control);
    if store.tiers.layers().is_some() {
        // Candidates wait too, and how many there are depends on the memory.
        (outcome.stats.frontier, outcome.stats.widest_frontier) = (0, 0);
    }
    Found { states: witness.into_found(), outcome }
}

/// What is held against the truth, and against itself with other workers and shards.
struct Trial<'a> {
    seed: u64,
    model: &'a Interp,
    codec: Codec,
    truth: &'a Found,
}

impl Trial<'_> {
    /// `store` makes one with so many shards, as a power of two; `shards` are those that the row leaves to choose. Returns
    /// whether every state was visited, and how many states were forgotten.
    fn compare(&self, name: &str, shards: &[u32], store: impl Fn(u32) -> Chain) -> (bool, u64) {
        let on_disk = store(0).tiers.layers().is_some();
        let first = search(self.model, store(shards[0]), crew(1, 0));
        let name = format!("seed {}, {name}", self.seed);
        self.check(&first, &name);
        for &bits in shards {
            for workers in WORKERS {
                let found = search(self.model, store(bits), crew(workers, bits));
                if found.outcome.stats.forgotten > 0 && on_disk {
                    // Which levels were given up depends on when memory was full.
                    self.check(&found, &name);
                    continue;
                }
                assert_eq!(found.outcome, first.outcome, "{name}, {workers} workers, 2^{bits} shards");
                assert!(found.states == first.states, "{name}, {workers} workers, 2^{bits} shards: other states");
            }
        }
        (first.outcome.complete, first.outcome.stats.forgotten)
    }

    fn check(&self, found: &Found, name: &str) {
        if !found.outcome.complete {
            // Nobody may leave, or too much was visited again.
            let stats = &found.outcome.stats;
            assert!(stats.forgotten > 0 || stats.held == stats.capacity, "{name}: {:?}", found.outcome);
            let gave_up = [Why::Redundancy, Why::Memory].map(Verdict::Unknown).contains(&found.outcome.verdict);
            assert!(gave_up || matches!(found.outcome.verdict, Verdict::Violated(_)), "{name}: {:?}", found.outcome);
            assert!(found.states.is_subset(&self.truth.states), "{name}: states that there are not");
            return;
        }
        assert!(found.states == self.truth.states, "{name}: other states than there are");
        let (truth, counted) = (&self.truth.outcome.stats, &found.outcome.stats);
        for (what, one, other) in [
            ("deadlocks", truth.deadlocks, counted.deadlocks),
            ("faults", truth.faults, counted.faults),
            ("assertions", truth.failed_assertions, counted.failed_assertions),
            ("hits", truth.property_hits, counted.property_hits),
            ("states", truth.states, counted.states),
        ] {
            let equal = if counted.forgotten == 0 { one == other } else { one <= other && (one == 0) == (other == 0) };
            assert!(equal, "{name}: {other} {what} instead of {one}");
        }
        let violated = |found: &Found| matches!(found.outcome.verdict, Verdict::Violated(_));
        assert_eq!(violated(self.truth), violated(found), "{name}");
    }

    fn exact(&self) {
        let used = self.model.used_bits();
        let store = |bits| Chain::new(self.codec, &used, bits, &Grant::unlimited()).unwrap();
        assert!(self.compare("full", &SHARD_BITS, store).0);
    }

    /// A cache of the row with room for a part of the states. It has as many shards as its size asks for.
    fn cached(&self, row: &Row) -> (bool, u64) {
        let (used, most) = (self.model.used_bits(), self.truth.states.len());
        let capacity = [most / 4, most / 2, most * 3 / 4][self.seed as usize % 3] + 1;
        let codec = if self.codec == Codec::Tree { Codec::Plain } else { self.codec };
        let pins = row.holds_ancestors();
        let store = |_| Chain::with_row(codec, &used, row, pins, capacity, &Grant::unlimited()).unwrap();
        self.compare(&format!("{row} of {capacity} for {most}"), &[0], store)
    }

    /// Levels as snapshots.
    fn levelled(&self, row: &Row) -> (bool, u64) {
        let (used, capacity) = (self.model.used_bits(), self.truth.states.len() + 1);
        let codec = if self.codec == Codec::Plain { Codec::Tree } else { self.codec };
        let store = |bits: u32| {
            let mut store = Chain::with_row(codec, &used, row, false, capacity, &Grant::unlimited()).unwrap();
            assert!(bits == 0 || store.tiers.divide(&store.coder, bits));
            store
        };
        self.compare(&row.to_string(), &SHARD_BITS, store)
    }

    /// Layers on disk, with little memory.
    fn layered(&self, keep: Keep) -> (bool, u64) {
        let used = self.model.used_bits();
        let needed = Chain::new(self.codec, &used, 0, &Grant::unlimited()).unwrap();
        let coder_bytes = search_bytes(self.model, needed);
        let store = |bits: u32| {
            let bytes = LAYERS_BYTES + (coder_bytes as u64) * 3;
            let grant = Budget::new(bytes).grant("store", bytes);
            let spill = |slot: usize| Spill::over(vec![Box::new(Faulty::sound())], slot, Grant::unlimited());
            let candidates = Candidates::new(self.model.width(), &Grant::unlimited(), spill(SLOT));
            let layers = Layers::new(keep, candidates, spill(BLOCK_BYTES), &grant);
            Chain::new(self.codec, &used, bits, &grant).unwrap().above(layers)
        };
        self.compare(&format!("layers {keep:?}"), &SHARD_BITS[..2], store)
    }
}

/// What the codec of a store takes once every state was encoded.
fn search_bytes(model: &dyn Model, mut store: Chain) -> usize {
    let mut queue = Queue::new(model.width(), Grant::unlimited(), None);
    let mut log = StepLog::new(Grant::unlimited(), None);
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let (ask, room) = (Ask { keep_going: true, ..Ask::EVERYTHING }, PathRoom::new(Grant::unlimited()));
    let mut control = Control { ask, limits: Limits::default(), stop: &stop, room, watch: &mut watch };
    bfs(model, &mut store, &mut queue, &mut log, Crew::of(1), &mut control);
    store.coder.bytes()
}

#[test]
fn every_row_sees_the_same_with_any_workers_and_shards() {
    let number = |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let first = number("PLIMSOLL_SEED", 0);
    let (mut complete, mut forgotten) = (0, 0);
    for seed in first..first + number("PLIMSOLL_SEEDS", SYSTEMS) {
        let size = Size { states: 400, ..if seed % 3 == 0 { Size::MEDIUM } else { Size::SMALL } };
        let model = Interp::new(random_system(seed, size));
        let truth =
            search(&model, Chain::new(Codec::Plain, &model.used_bits(), 0, &Grant::unlimited()).unwrap(), Crew::of(1));
        let packs = Packing::new(&model.used_bits()).is_some();
        let codec = [Codec::Tree, Codec::Plain, Codec::Packed][seed as usize / 3 % 3];
        let codec = if codec == Codec::Packed && !packs { Codec::Tree } else { codec };
        let trial = Trial { seed, model: &model, codec, truth: &truth };
        trial.exact();
        let rule = Rule::ALL[seed as usize % Rule::ALL.len()];
        let caches = [Row::single(rule), Row::cover(rule), Row::chain("KEEP:50%,SC:50%").unwrap()];
        let mut results: Vec<(bool, u64)> = caches.iter().map(|row| trial.cached(row)).collect();
        let levels = [
            "frontier-safety-net",
            "frontier-safety-net-BT",
            "pebble:(c2,LLNR,5)",
            "pebble:(c2,LLNR,5)-BT",
            "frontier:5",
        ];
        results.extend(levels.map(|text| trial.levelled(&text.parse().unwrap())));
        let on_disk = if codec == Codec::Plain { &[][..] } else { &[Keep::All, Keep::Last(8), Keep::Auto] };
        results.extend(on_disk.iter().map(|&keep| trial.layered(keep)));
        complete += results.iter().filter(|result| result.0).count();
        forgotten += results.iter().map(|result| result.1).sum::<u64>();
        if (seed + 1).is_multiple_of(1000) {
            println!("{} systems: {complete} searches visited everything, {forgotten} states forgotten", seed + 1);
        }
    }
    assert!(complete > 60 && forgotten > 500, "{complete} complete, {forgotten} forgotten");
}
