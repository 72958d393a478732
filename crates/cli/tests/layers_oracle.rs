//! Layers on disk say what a search in memory says, on real models: the same states in the same order, the same counts, verdict
//! and trace, with grants of 1, 10 and 50 per cent of what the store would like, with 1, 2 and 5 workers, and however often the
//! search is cut and goes on. Where levels are given up (L = 1, 2, 5, auto), the verdict and the length of the trace.
//!
//! Which models are tried is said in `common/corpus.rs`.

use crate::common::corpus;

use plimsoll_model::{Around, Jit, Model, Successors};
use plimsoll_search::{Ask, Company, Control, Crew, Keeper, Limits, Outcome, PathRoom, Saved, Verdict, bfs_with};
use plimsoll_store::disk::SLOT;
use plimsoll_store::packing::Packing;
use plimsoll_store::runs::{BLOCK_BYTES, Candidates, Keep, Layers, LayersReport};
use plimsoll_store::{Budget, Chain, Codec, Coder, Grant, Queue, Spill, StepLog};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const MOST_STATES: u64 = 12_000;
const KEEPS: [Keep; 5] = [Keep::All, Keep::Last(1), Keep::Last(2), Keep::Last(5), Keep::Auto];
const WORKERS: [usize; 3] = [1, 2, 5];
const PERCENTS: [u64; 3] = [1, 10, 50];
/// Of larger models every keeping of levels is tried with one number of workers and one grant only.
const FEW_STATES: u64 = 20_000;
/// Of the memory that is not for indexes two tables have 82 per cent, so one has this part of it, in per cent; and beside its share a shard
/// takes so much for what has a least size.
const TABLE_PERCENT: u64 = 41;
/// Less where levels are many and filters have their share: of keys, and of states as they are.
const MANY_LEVELS: u32 = 500;
const FILTERED_TABLE_PERCENT: [u64; 2] = [11, 23];
const BESIDE_BYTES: u64 = 4 << 10;
const PAGE_BYTES: u64 = 4 << 10;
/// A table of states as they are has so many places more than it can fill.
const SPARE_STATES: u64 = 256;
/// What a block of a run takes in memory, and what a run is written beside: 9 quarters of it.
const INDEX_BYTES: u64 = 28;
/// A block has at least so many states.
const LEAST_BLOCK: u64 = 16;

struct Seen {
    outcome: Outcome,
    paths: Vec<Vec<u32>>,
    report: LayersReport,
    gave_up_tree: bool,
    /// What the store took.
    store_bytes: u64,
}

/// How a search is set up: with layers in so much memory, or without.
#[derive(Clone, Copy, Debug)]
struct Setup {
    layers: Option<(Keep, u64)>,
    workers: usize,
    /// Do states have a tree at first though they can be packed?
    tree: bool,
    most_states: Option<u64>,
    /// After how many waves it is cut.
    cut_after: usize,
}

/// A checkpoint in memory, kept after some waves or as soon as it can be; then the search ends.
struct Notebook<'a> {
    waves: AtomicUsize,
    cut_after: usize,
    stop: &'a AtomicBool,
    kept: Option<(String, Vec<u8>)>,
}

impl Keeper for Notebook<'_> {
    fn is_due(&self) -> bool {
        self.waves.fetch_add(1, Ordering::Relaxed) >= self.cut_after && self.kept.is_none()
    }

    fn keep(&mut self, saved: &Saved, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
        let mut bytes = Vec::new();
        if write(&mut bytes).is_ok() {
            self.kept.get_or_insert((serde_json::to_string(saved).unwrap(), bytes));
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Small enough that small models have many waves.
fn crew(workers: usize) -> Crew {
    let shard_bits = if workers == 1 { 0 } else { 2 };
    Crew {
        wave_successors: 2_000,
        block_successors: 200,
        shared_block_successors: [50; 2],
        shared_successors: 100,
        shard_bits,
        ..Crew::of(workers)
    }
}

/// A model that takes note of the most successors of a state.
struct Widest<'a> {
    model: &'a Jit,
    most: AtomicUsize,
}

impl Around for Widest<'_> {
    fn inner(&self) -> &dyn Model {
        self.model
    }

    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        let before = out.len();
        self.model.successors(state, out);
        self.most.fetch_max(out.len() - before, Ordering::Relaxed);
    }
}

fn search(model: &dyn Model, setup: Setup, from: Option<(String, Vec<u8>)>) -> (Seen, Option<(String, Vec<u8>)>) {
    let (used, folder) = (model.used_bits(), tempfile::tempdir().unwrap());
    let codec = if Packing::new(&used).is_some() && !setup.tree { Codec::Packed } else { Codec::Tree };
    let budget = Budget::new(setup.layers.map_or(1 << 36, |(_, bytes)| bytes));
    let grant = budget.grant("store", u64::MAX);
    let mut store = Chain::new(codec, &used, 0, &grant).unwrap().with_packing(&used);
    store = if codec == Codec::Packed { store.narrowing(500) } else { store };
    if let Some((keep, _)) = setup.layers {
        let spill = |bytes| Spill::in_folders(&[folder.path()], bytes, Grant::unlimited()).unwrap();
        let candidates = Candidates::new(model.width(), &Grant::unlimited(), spill(SLOT));
        store = store.above(Layers::new(keep, candidates, spill(BLOCK_BYTES), &grant));
    }
    let mut queue = Queue::new(model.width(), Grant::unlimited(), None);
    // On disk as in the program: only then it is never pruned.
    let log_spill = setup.layers.map(|_| Spill::in_folders(&[folder.path()], SLOT, Grant::unlimited()).unwrap());
    let mut log = StepLog::new(Grant::unlimited(), log_spill);
    let from = from.map(|(saved, bytes)| {
        let saved: Saved = serde_json::from_str(&saved).unwrap();
        saved.load(&mut &bytes[..], &mut store, &mut queue, &mut log, crew(setup.workers)).unwrap();
        saved
    });
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let mut notebook = Notebook { waves: AtomicUsize::new(0), cut_after: setup.cut_after, stop: &stop, kept: None };
    let limits = Limits { states: setup.most_states, ..Limits::default() };
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let room = PathRoom::new(Grant::unlimited());
    let mut control = Control { ask, limits, stop: &stop, room, watch: &mut watch };
    let keeper = (setup.cut_after < usize::MAX).then_some(&mut notebook as &mut dyn Keeper);
    let company = Company { from, keeper, observer: None };
    let mut outcome = bfs_with(model, &mut store, &mut queue, &mut log, crew(setup.workers), &mut control, company);
    // Candidates wait too, and how many there are depends on the memory.
    (outcome.stats.frontier, outcome.stats.widest_frontier) = (0, 0);
    let mut starts = plimsoll_model::Successors::new(model.width());
    model.initial(&mut starts);
    let starts = (starts.len() as u64).min(log.len());
    let some = (0..log.len()).step_by(7 + log.len() as usize / 50);
    let paths = some.map(|number| log.path(number, starts).unwrap()).collect();
    let report = store.tiers.layers().map(Layers::report).unwrap_or_default();
    let gave_up_tree = codec == Codec::Tree && !matches!(store.coder, Coder::Tree(_));
    (Seen { outcome, paths, report, gave_up_tree, store_bytes: budget.used_bytes() }, notebook.kept)
}

/// What a search that was set up so must have in common with the one in memory.
fn compare(what: &str, truth: &Seen, seen: &Seen) {
    if seen.outcome.stats.forgotten == 0 {
        assert_eq!(seen.outcome, truth.outcome, "{what} {:?}", seen.report);
        assert!(seen.paths == truth.paths, "{what}: other paths");
        return;
    }
    assert!(seen.outcome.complete && seen.outcome.stats.states >= truth.outcome.stats.states, "{what}");
    match (&seen.outcome.verdict, &truth.outcome.verdict) {
        (Verdict::Violated(seen), Verdict::Violated(truth)) => {
            assert_eq!((seen.what, seen.trace.steps()), (truth.what, truth.trace.steps()), "{what}");
        }
        (seen, truth) => assert_eq!(seen, truth, "{what}"),
    }
}

/// What was tried with one model.
#[derive(Default)]
struct Tried {
    searches: u32,
    on_disk: u32,
    /// Those that gave up a tree, to write states as they are or packed.
    whole: u32,
    packed: u32,
    outgrown: u32,
    out_of_memory: u32,
    cut: u32,
}

/// The least memory with which a model can be searched on disk. What bounds it, whatever the number of states:
/// - the successors that are entered at once must fit into one table of each shard, which is less than half of the memory;
/// - while candidates of a level wait no runs are merged, so every table that leaves makes a run of its own, with an index;
/// - a tree takes memory even without nodes, and has to be given up first.
///
/// And 28 bytes for each block of 16 KiB on disk, also while it is written again.
fn least_bytes(model: &Jit, truth: &Outcome, widest: u64, workers: usize, tree: bool) -> u64 {
    let (used, crew, stats) = (model.used_bits(), crew(workers), &truth.stats);
    let shards = 1 << crew.shard_bits;
    // Pieces are cut by the mean, and may have states of which all are wider.
    let degree = 1 + stats.transitions / stats.states;
    let states_for = |successors: usize| (successors as u64 / degree).max(LEAST_BLOCK);
    let block = if workers == 1 { crew.block_successors } else { crew.shared_block_successors[1] };
    let at_once = (crew.blocks() as u64 * states_for(block)).min(states_for(crew.wave_successors)) * widest;
    // Shards are not filled evenly.
    let in_shard = (at_once / shards + 4 * (at_once / shards).isqrt()).max(1);
    let packed_bytes = used.iter().map(|word| word.count_ones() as u64).sum::<u64>().div_ceil(8) + 1;
    let is_packed = Packing::new(&used).is_some();
    let (table_bytes, state_bytes) = if is_packed {
        ((in_shard * packed_bytes * 100 / 82).next_multiple_of(PAGE_BYTES), packed_bytes)
    } else {
        let state_bytes = model.width() as u64 * 4 + 4;
        ((in_shard * 100 / 85 + SPARE_STATES) * state_bytes, state_bytes)
    };
    let widest_level = stats.level_sizes.states.iter().copied().max().unwrap_or(0);
    let candidates = widest_level * degree;
    let runs = candidates / in_shard.max(table_bytes / state_bytes / 2);
    let blocks = runs * table_bytes.div_ceil(BLOCK_BYTES as u64) + stats.states * state_bytes / BLOCK_BYTES as u64;
    let index_bytes = blocks * INDEX_BYTES * 9 / 4;
    let table_percent =
        if stats.levels < MANY_LEVELS { TABLE_PERCENT } else { FILTERED_TABLE_PERCENT[!is_packed as usize] };
    let hashed = shards * (table_bytes * 100 / table_percent + BESIDE_BYTES) + index_bytes;
    if is_packed && !tree {
        return hashed;
    }
    let plenty = Budget::new(1 << 36).grant("store", u64::MAX);
    let empty = Chain::new(Codec::Tree, &used, 0, &plenty).unwrap().coder.bytes() as u64;
    hashed.max(empty + shards * (2 * PAGE_BYTES + BESIDE_BYTES))
}

fn check(name: &str, model: &Jit, most_states: u64, number: usize) -> Option<Tried> {
    let plain = Setup { layers: None, workers: 1, tree: false, most_states: Some(most_states), cut_after: usize::MAX };
    let witness = Widest { model, most: AtomicUsize::new(0) };
    let (truth, _) = search(&witness, plain, None);
    if !truth.outcome.complete {
        return None;
    }
    let widest = witness.most.into_inner() as u64;
    // An estimate: blocks and shards are not all alike.
    let least_bytes = |workers: usize, tree: bool| least_bytes(model, &truth.outcome, widest, workers, tree) * 3 / 2;
    let states = truth.outcome.stats.states;
    let all = WORKERS.iter().flat_map(|&workers| PERCENTS.map(|percent| (workers, percent)));
    let all: Vec<(usize, u64)> = all.collect();
    let mut tried = Tried::default();
    for (turn, keep) in KEEPS.into_iter().enumerate() {
        let some = if states < FEW_STATES { &all[..] } else { &all[(number + turn * 4) % all.len()..][..1] };
        for (round, &(workers, percent)) in some.iter().enumerate() {
            // Where some are forgotten the program packs them from the beginning, for a tree could not be given up.
            let tree = keep == Keep::All && (number + round).is_multiple_of(2);
            let bytes = (truth.store_bytes * percent / 100).max(least_bytes(workers, tree));
            let setup = Setup { layers: Some((keep, bytes)), workers, tree, most_states: None, cut_after: usize::MAX };
            let what = format!("{name}, {setup:?}");
            let (seen, _) = search(model, setup, None);
            if !seen.outcome.complete {
                tried.out_of_memory += 1;
                println!("{what}: {:?} after {} states", seen.outcome.verdict, seen.outcome.stats.states);
                continue;
            }
            compare(&what, &truth, &seen);
            tried.searches += 1;
            tried.on_disk += (seen.report.flushes > 0) as u32;
            tried.whole += seen.report.whole_states as u32;
            tried.outgrown += seen.report.outgrew_keys as u32;
            tried.packed += (seen.gave_up_tree && !seen.report.whole_states) as u32;
            if keep != Keep::All {
                continue;
            }
            // Somewhere, then somewhere else, with other workers, and so many shards.
            let bytes = bytes.max(least_bytes(5, tree));
            let setup = Setup { layers: Some((keep, bytes)), ..setup };
            let (mut kept, mut cut_after) = (None, (number + round) * 7 % 23);
            for workers in [workers, WORKERS[(round + 1) % 3]] {
                let (_, next) = search(model, Setup { cut_after, workers, ..setup }, kept.clone());
                tried.cut += next.is_some() as u32;
                (kept, cut_after) = (next.or(kept), 3 + round);
            }
            if kept.is_some() {
                let (seen, _) = search(model, setup, kept);
                compare(&format!("{what}, cut"), &truth, &seen);
            }
        }
    }
    Some(tried)
}

#[test]
fn layers_say_what_a_search_in_memory_says() {
    let (mut models, mut sum) = (0, Tried::default());
    for (number, (name, model)) in corpus::models().enumerate() {
        if let Some(tried) = check(&name, &model, corpus::most_states(MOST_STATES), number) {
            models += 1;
            sum.searches += tried.searches;
            sum.on_disk += tried.on_disk;
            sum.whole += tried.whole;
            sum.packed += tried.packed;
            sum.outgrown += tried.outgrown;
            sum.out_of_memory += tried.out_of_memory;
            sum.cut += tried.cut;
        }
    }
    let Tried { searches, on_disk, whole, packed, outgrown, out_of_memory, cut } = sum;
    println!(
        "{models} models, {searches} searches: {on_disk} went on on disk, {whole} gave up a tree for whole states, {packed} for packed ones, and {outgrown} those in turn; {cut} cuts"
    );
    assert_eq!(out_of_memory, 0, "searches ran out of memory");
    assert!(
        corpus::is_given() || models > 10 && on_disk > 50 && packed > 5 && cut > 50,
        "{models} {on_disk} {packed} {cut}"
    );
}
