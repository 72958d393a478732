//! With little memory and a disk, breadth-first search finds what it finds with plenty: the same states in the same order,
//! the same steps that led to them, the same counts, verdict and trace, whoever searches. Where old levels are given up
//! states may be visited again, but it ends, and none is missed.

use crate::common::crew::small_crew;
use crate::common::witness::Witness;
use plimsoll_ir::random::{Size, random_system};
use plimsoll_ir::text;
use plimsoll_model::{Interp, Model};
use plimsoll_search::{Ask, Control, Crew, Limits, Outcome, PathRoom, Verdict, Why, bfs};
use plimsoll_store::disk::faulty::Faulty;
use plimsoll_store::disk::{Disk, SLOT};
use plimsoll_store::packing::Packing;
use plimsoll_store::runs::{BLOCK_BYTES, Candidates, Keep, Layers, LayersReport};
use plimsoll_store::{Budget, Chain, Codec, Coder, Grant, Queue, Spill, StepLog};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

struct Seen {
    states: BTreeSet<Vec<u32>>,
    paths: Vec<Vec<u32>>,
    outcome: Outcome,
    report: LayersReport,
    coder_bytes: usize,
    ended_packed: bool,
}

const KEEP_GOING: Ask = Ask { keep_going: true, ..Ask::EVERYTHING };

fn search(model: &dyn Model, store: Chain, crew: Crew, ask: Ask) -> Seen {
    search_with_room(model, store, crew, ask, PathRoom::new(Grant::unlimited()))
}

/// The same with so much room for paths.
fn search_with_room(model: &dyn Model, mut store: Chain, crew: Crew, ask: Ask, room: PathRoom) -> Seen {
    let witness = Witness::of(model);
    let mut queue = Queue::new(model.width(), Grant::unlimited(), None);
    let mut log = StepLog::new(Grant::unlimited(), None);
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let mut control = Control { ask, limits: Limits::default(), stop: &stop, room, watch: &mut watch };
    let mut outcome = bfs(&witness, &mut store, &mut queue, &mut log, crew, &mut control);
    let mut starts = plimsoll_model::Successors::new(model.width());
    model.initial(&mut starts);
    let starts: BTreeSet<&[u32]> = starts.iter().filter(|(_, step)| !step.is_fault()).map(|(state, _)| state).collect();
    let some = (0..log.len()).step_by(7 + log.len() as usize / 100);
    let paths = some.map(|number| log.path(number, starts.len() as u64).unwrap()).collect();
    // Candidates wait too, and how many there are depends on the memory.
    (outcome.stats.frontier, outcome.stats.widest_frontier) = (0, 0);
    let report = store.tiers.layers().map(Layers::report).unwrap_or_default();
    let ended_packed = matches!(store.coder, Coder::Packed(_));
    Seen { states: witness.into_found(), paths, outcome, report, coder_bytes: store.coder.bytes(), ended_packed }
}

fn codec_for(model: &dyn Model, wish: Codec) -> Codec {
    if Packing::new(&model.used_bits()).is_none() { Codec::Tree } else { wish }
}

fn plain(model: &dyn Model, codec: Codec, ask: Ask) -> Seen {
    search(model, Chain::new(codec, &model.used_bits(), 0, &Grant::unlimited()).unwrap(), Crew::of(1), ask)
}

/// How a search on disk is set up.
#[derive(Clone, Copy, Debug)]
struct Setup {
    codec: Codec,
    keep: Keep,
    /// Memory for tables and runs, in KiB.
    memory: u64,
    shard_bits: u32,
    workers: usize,
}

/// A store with so much memory beside that of its codec.
fn layered(model: &dyn Model, setup: Setup, coder_bytes: usize, runs: Vec<Box<dyn Disk>>) -> Chain {
    let bytes = (setup.memory << 10) + coder_bytes as u64;
    layered_within(model, setup, &Budget::new(bytes).grant("store", bytes), runs)
}

fn layered_within(model: &dyn Model, setup: Setup, grant: &Grant, runs: Vec<Box<dyn Disk>>) -> Chain {
    let Setup { codec, keep, shard_bits, .. } = setup;
    let spill = Spill::over(vec![Box::new(Faulty::sound())], SLOT, Grant::unlimited());
    let candidates = Candidates::new(model.width(), &Grant::unlimited(), spill);
    let layers = Layers::new(keep, candidates, Spill::over(runs, BLOCK_BYTES, Grant::unlimited()), grant);
    Chain::new(codec, &model.used_bits(), shard_bits, grant).unwrap().above(layers)
}

fn sound() -> Vec<Box<dyn Disk>> {
    vec![Box::new(Faulty::sound()), Box::new(Faulty::sound())]
}

/// As few states as can be are recognised before the store is asked.
fn crew(workers: usize) -> Crew {
    Crew { recent_bytes: 0, ..small_crew(workers, 15) }
}

/// Compares a search on disk with one in memory, and says what was done on disk.
fn compare(model: &dyn Model, truth: &Seen, setup: Setup, ask: Ask) -> LayersReport {
    compare_with(model, truth, setup, ask, truth.coder_bytes * 3)
}

/// The same with so many bytes beside the memory for tables and runs.
fn compare_with(model: &dyn Model, truth: &Seen, setup: Setup, ask: Ask, beside: usize) -> LayersReport {
    compare_store(model, truth, setup, ask, layered(model, setup, beside, sound())).report
}

/// The same for a store that was made before.
fn compare_store(model: &dyn Model, truth: &Seen, setup: Setup, ask: Ask, store: Chain) -> Seen {
    let seen = search(model, store, crew(setup.workers), ask);
    assert_eq!(seen.outcome.verdict, truth.outcome.verdict, "{setup:?}");
    assert_eq!(seen.outcome.complete, truth.outcome.complete, "{setup:?}: {:?}", seen.report);
    let (expected, found) = (truth.states.len(), seen.states.len());
    let other = format!("{setup:?}: {found} states instead of {expected}, {:?}, {:?}", seen.outcome.stats, seen.report);
    assert!(!truth.outcome.complete || seen.states == truth.states, "{other}");
    if seen.outcome.stats.forgotten == 0 {
        assert!(seen.states == truth.states, "{other}");
        assert_eq!(seen.outcome, truth.outcome, "{setup:?}");
        assert!(seen.paths == truth.paths, "{setup:?}: other paths");
    } else {
        assert!(setup.keep != Keep::All, "{setup:?}");
        assert!(!truth.outcome.complete || seen.outcome.stats.states >= truth.outcome.stats.states, "{setup:?}");
    }
    seen
}

/// Grids with shortcuts, rings with long ways back, and what else is worth asking.
fn models() -> Vec<(&'static str, Interp)> {
    let grid = "system \"grid\" var a: 0..19 var b: 0..19 var c: 0..19
        command \"a\" { when (a < 19) do { a := a + 1; } } command \"b\" { when (b < 19) do { b := b + 1; } }
        command \"c\" { when (c < 19) do { c := c + 1; } } command \"back\" { when (a == 13) && (b == 7) do { c := 0; } }
        command \"home\" { when (a == 19) && (c == 5) do { a := 0; b := 3; } }";
    let rings = "system \"rings\" var a: 0..2999 var b: 0..2
        command \"a\" { when (a < 2999) do { a := a + 1; } } command \"round\" { when (a == 2999) do { a := 0; } }
        command \"b\" { when (b < 2) && (a == 350) do { b := b + 1; } } command \"d\" { when (b == 2) do { b := 0; } }";
    [("grid", grid), ("rings", rings)].map(|(name, system)| (name, Interp::new(text::parse(system).unwrap()))).into()
}

const KEEPS: [Keep; 5] = [Keep::All, Keep::Last(1), Keep::Last(2), Keep::Last(5), Keep::Auto];

#[test]
fn our_own_systems_are_searched_as_in_memory() {
    for (name, model) in models() {
        for wish in [Codec::Packed, Codec::Tree, Codec::Plain] {
            let truth = plain(&model, wish, KEEP_GOING);
            assert!(truth.outcome.complete);
            for (keep, (workers, shard_bits)) in
                KEEPS.into_iter().flat_map(|keep| [(1, 0), (1, 3), (2, 0), (5, 2)].map(|crew| (keep, crew)))
            {
                for memory in [8, 10, 20] {
                    let memory = memory << shard_bits.max(2 * (workers > 1) as u32);
                    // States as they are take more, and so do their smallest tables.
                    let memory = if wish == Codec::Plain { memory * 4 } else { memory };
                    let setup = Setup { codec: wish, keep, memory, shard_bits, workers };
                    let report = compare(&model, &truth, setup, KEEP_GOING);
                    let little = if wish == Codec::Plain { 60 } else { 30 };
                    assert!(name != "grid" || memory > little || report.flushes > 0, "{name}, {setup:?}: {report:?}");
                    if keep == Keep::Last(1) && name == "rings" && memory < 20 {
                        assert!(report.flushes == 0 || report.known > 0, "{name}, {setup:?}: {report:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn random_systems_are_searched_as_in_memory() {
    let (mut flushes, mut known) = (0, 0);
    for seed in 0..400u64 {
        let model = Interp::new(random_system(seed, Size { states: 40_000, ..Size::MEDIUM }));
        let ask = if seed % 3 == 0 { Ask::EVERYTHING } else { KEEP_GOING };
        let codec = codec_for(&model, if seed % 2 == 0 { Codec::Packed } else { Codec::Tree });
        let truth = plain(&model, codec, ask);
        if truth.states.len() < 2_000 {
            continue;
        }
        for (number, keep) in KEEPS.into_iter().enumerate() {
            let (workers, shard_bits) = [(1, 0), (2, 1), (5, 0)][(seed as usize + number) % 3];
            let memory = 14 << shard_bits.max(2 * (workers > 1) as u32);
            let setup = Setup { codec, keep, memory, shard_bits, workers };
            let report = compare(&model, &truth, setup, ask);
            flushes += report.flushes;
            known += report.known;
        }
    }
    assert!(flushes > 40 && known > 1_000, "{flushes} {known}");
}

/// States of many words, of which few parts repeat.
fn wide() -> Interp {
    wide_with(6)
}

/// The same with so many large numbers; with five of them states can be packed.
fn wide_with(numbers: usize) -> Interp {
    wide_and(numbers, "")
}

/// The same where a few states differ from the others in many bits, from this sum of the first two counters on.
fn wide_from(sum: usize) -> Interp {
    let leap: Vec<String> = (0..6).map(|number| format!("d{number} := 1000000 - ((4 + c) * d{number});")).collect();
    wide_and(
        6,
        &format!(
            "command \"leap\" {{ when ((a == (b + 2)) && ((a + b) >= {sum})) && (d0 < 40000) do {{ {} }} }}",
            leap.join(" ")
        ),
    )
}

/// The same with another command.
fn wide_and(numbers: usize, command: &str) -> Interp {
    let others: Vec<String> = (0..numbers).map(|number| format!("var d{number}: 0..1000000")).collect();
    let set = |number: usize| format!("d{number} := (((a * {}) + (b * 1009)) + (c * {number})) % 999983;", 31 + number);
    let sets: Vec<String> = (0..numbers).map(set).collect();
    let step = |name: &str, most: u32| {
        format!("command \"{name}\" {{ when ({name} < {most}) do {{ {name} := {name} + 1; {} }} }}", sets.join(" "))
    };
    let back = "command \"back\" { when (a == 13) && (b == 7) do { c := 0; } }";
    let steps = [step("a", 30), step("b", 30), step("c", 12)].join(" ");
    let text =
        format!("system \"wide\" var a: 0..30 var b: 0..30 var c: 0..12 {} {back} {steps} {command}", others.join(" "));
    Interp::new(text::parse(&text).unwrap())
}

/// Memory in which a tree, which was as large as that, hardly finds room.
fn too_small_for(truth: &Seen) -> Vec<Setup> {
    let mut setups = Vec::new();
    for (workers, shard_bits) in [(1, 0), (2, 0), (3, 2)] {
        for keep in [Keep::All, Keep::Last(1), Keep::Last(3), Keep::Auto] {
            for percent in [30, 45, 60, 90, 100, 120, 150] {
                let memory = (truth.coder_bytes as u64 * percent / 100) >> 10;
                setups.push(Setup { codec: Codec::Tree, keep, memory, shard_bits, workers });
            }
        }
    }
    setups
}

#[test]
fn a_tree_that_takes_too_much_memory_is_given_up() {
    let model = wide();
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let truth = plain(&model, Codec::Tree, ask);
    assert!(truth.outcome.complete && truth.states.len() > 5_000, "{}", truth.states.len());
    let mut given_up = 0;
    for setup in too_small_for(&truth) {
        let report = compare_with(&model, &truth, setup, ask, 0);
        given_up += report.whole_states as u32;
        assert_eq!(report.gave_up_tree, report.whole_states);
    }
    assert!(given_up > 20, "{given_up}");
}

/// States that can be packed have those keys when the tree is gone, whose bits are not known before.
#[test]
fn a_tree_is_given_up_for_packed_keys_where_states_have_few_bits() {
    let model = wide_with(5);
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let truth = plain(&model, Codec::Tree, ask);
    let (mut given_up, mut known) = (0, 0);
    for setup in too_small_for(&truth) {
        let store = layered(&model, setup, 0, sound()).with_packing(&model.used_bits());
        let seen = compare_store(&model, &truth, setup, ask, store);
        assert!(!seen.report.whole_states && seen.report.gave_up_tree == seen.ended_packed);
        given_up += seen.ended_packed as u32;
        known += if seen.ended_packed { seen.report.known } else { 0 };
    }
    assert!(given_up > 20 && known > 1_000, "{given_up} {known}");
    let setup = Setup { codec: Codec::Tree, keep: Keep::All, memory: 0, shard_bits: 2, workers: 3 };
    let setup = Setup { memory: (truth.coder_bytes as u64 * 45 / 100) >> 10, ..setup };
    let failing = |disk: Faulty| layered(&model, setup, 0, vec![Box::new(disk)]).with_packing(&model.used_bits());
    let (failed, ended) = break_stores(&model, &truth, setup, failing, 25, 4);
    assert!(failed > 20 && ended > 0, "{failed} failed, {ended} ended");
}

const CREWS: [(usize, u32); 4] = [(1, 0), (2, 0), (3, 2), (5, 0)];

/// States that may use more bits than a key has are packed as well when the tree is gone, if they differ in few enough.
#[test]
fn a_tree_is_given_up_for_packed_keys_where_states_differ_in_few_bits() {
    let model = wide();
    assert!(Packing::new(&model.used_bits()).is_none());
    let truth = plain(&model, Codec::Tree, KEEP_GOING);
    let (mut given_up, mut whole, mut known) = (0, 0, 0);
    for (workers, shard_bits) in CREWS {
        for keep in [Keep::All, Keep::Last(1), Keep::Auto] {
            for percent in [30, 45, 60, 90, 100, 120, 150] {
                let memory = (truth.coder_bytes as u64 * percent / 100) >> 10;
                let setup = Setup { codec: Codec::Tree, keep, memory, shard_bits, workers };
                let store = layered(&model, setup, 0, sound()).with_packing(&model.used_bits());
                let seen = compare_store(&model, &truth, setup, KEEP_GOING, store);
                assert!(!seen.report.outgrew_keys, "{setup:?}");
                // Where levels are given up there would be no way on, should others come.
                assert_eq!(seen.report.whole_states, seen.report.gave_up_tree && keep != Keep::All, "{setup:?}");
                whole += seen.report.whole_states as u32;
                given_up += seen.ended_packed as u32;
                known += if seen.ended_packed { seen.report.known } else { 0 };
            }
        }
    }
    assert!(given_up > 12 && whole > 12 && known > 200, "{given_up} {whole} {known}");
}

/// And when one comes that differs in more, early or late, all of them become whole states, and nothing is lost.
#[test]
fn packed_keys_are_given_up_where_states_begin_to_differ_in_more_bits_than_they_have() {
    let (mut outgrown, mut known) = (0, 0);
    let truths = [10, 30, 42, 56, 58].map(|sum| (wide_from(sum), sum));
    let truths = truths.map(|(model, sum)| (plain(&model, Codec::Tree, KEEP_GOING), model, sum));
    for (truth, model, sum) in &truths {
        assert!(truth.outcome.complete);
        for (workers, shard_bits) in CREWS {
            for percent in [30, 45, 60, 75] {
                let memory = (truth.coder_bytes as u64 * percent / 100) >> 10;
                let setup = Setup { codec: Codec::Tree, keep: Keep::All, memory, shard_bits, workers };
                let store = layered(model, setup, 0, sound()).with_packing(&model.used_bits());
                let report = compare_store(model, truth, setup, KEEP_GOING, store).report;
                // Before the last levels it has been seen.
                assert!(report.whole_states || *sum > 56 || !report.gave_up_tree, "{sum}, {setup:?}: {report:?}");
                outgrown += report.outgrew_keys as u32;
                known += if report.outgrew_keys { report.known } else { 0 };
            }
        }
    }
    assert!(outgrown > 30 && known > 1_000, "{outgrown} {known}");
    let (truth, model, _) = &truths[2];
    for (workers, shard_bits) in [(1, 0), (3, 2)] {
        let memory = (truth.coder_bytes as u64 * 45 / 100) >> 10;
        let setup = Setup { codec: Codec::Tree, keep: Keep::All, memory, shard_bits, workers };
        let store = |disk: Faulty| layered(model, setup, 0, vec![Box::new(disk)]).with_packing(&model.used_bits());
        let (failed, ended) = break_stores(model, truth, setup, store, 30, 6);
        assert!(failed > 20 && ended > 0, "{failed} failed, {ended} ended");
    }
}

/// Keys that tell what the first states show get longer whenever others differ in more: in memory, while some wait, and with runs of shorter ones.
#[test]
fn keys_grow_with_what_states_differ_in() {
    let mut flushes = 0;
    let mut grows = |name: &str, model: &Interp| {
        let truth = plain(model, Codec::Packed, KEEP_GOING);
        for (number, sampled) in [1, 3, 40, 600].into_iter().enumerate() {
            for (workers, shard_bits) in [(1, 0), (2, 1), (5, 0)] {
                let memory = 14 << shard_bits.max(2 * (workers > 1) as u32);
                let keep = KEEPS[(number + workers) % KEEPS.len()];
                let setup = Setup { codec: Codec::Packed, keep, memory, shard_bits, workers };
                for memory in [memory, 1 << 20] {
                    let setup = Setup { memory, ..setup };
                    let store = layered(model, setup, 0, sound()).narrowing(sampled);
                    flushes += compare_store(model, &truth, setup, KEEP_GOING, store).report.flushes;
                }
                let in_memory = Chain::new(Codec::Packed, &model.used_bits(), shard_bits, &Grant::unlimited()).unwrap();
                let seen = compare_store(model, &truth, setup, KEEP_GOING, in_memory.narrowing(sampled));
                assert!(seen.ended_packed, "{name}");
            }
        }
    };
    models().iter().for_each(|(name, model)| grows(name, model));
    grows("wide", &wide_with(5));
    let systems = (0..150).map(|seed| Interp::new(random_system(seed, Size { states: 20_000, ..Size::MEDIUM })));
    let large = |model: &Interp| Packing::new(&model.used_bits()).is_some_and(|packing| packing.key_bits() > 40);
    let tried = systems.filter(large).take(25).map(|model| grows("random", &model)).count();
    assert!(flushes > 40 && tried > 5, "{flushes} {tried}");
}

/// Tables take all memory that there is, and give some back when paths get longer.
#[test]
fn paths_get_longer_whatever_tables_take() {
    let line = "system \"line\" var a: 0..49999 var b: 0..3
        command \"a\" { when (a < 49999) do { a := a + 1; } } command \"b\" { when (b < 3) do { b := b + 1; } }";
    let model = Interp::new(text::parse(line).unwrap());
    let truth = plain(&model, Codec::Packed, KEEP_GOING);
    for (codec, keep) in [(Codec::Packed, Keep::All), (Codec::Tree, Keep::All), (Codec::Packed, Keep::Last(3))] {
        // Paths of 50,000 steps take 192 KiB of it, in pieces.
        let budget = Budget::new((320 << 10) + if codec == Codec::Tree { 3 * truth.coder_bytes as u64 } else { 0 });
        let setup = Setup { codec, keep, memory: 0, shard_bits: 0, workers: 1 };
        let store = layered_within(&model, setup, &budget.grant("store", u64::MAX), sound());
        let room = PathRoom::new(budget.grant("trace", u64::MAX));
        let seen = search_with_room(&model, store, crew(1), KEEP_GOING, room);
        assert!(seen.report.flushes > 0, "{setup:?}");
        assert_eq!(seen.states.len(), truth.states.len(), "{setup:?}");
        assert!(seen.outcome.verdict == truth.outcome.verdict, "{setup:?}");
    }
}

/// Many levels, and memory for filters.
#[test]
fn filters_are_asked_before_runs() {
    let rings = "system \"rings\" var a: 0..2999 var b: 0..19
        command \"a\" { when (a < 2999) do { a := a + 1; } } command \"round\" { when (a == 2999) do { a := 0; } }
        command \"b\" { when (b < 19) && (a == 350) do { b := b + 1; } }";
    let model = Interp::new(text::parse(rings).unwrap());
    let truth = plain(&model, Codec::Packed, KEEP_GOING);
    let setup = |memory| Setup { codec: Codec::Packed, keep: Keep::All, memory, shard_bits: 0, workers: 1 };
    let reports = [30, 50, 70].map(|memory| compare(&model, &truth, setup(memory), KEEP_GOING));
    assert!(reports.iter().any(|report| report.filtered > 100), "{reports:?}");
}

/// Every kind of fault, early and late, ends in a verdict that says so, or does not matter. How many ended so, and how many ended.
fn break_disks(model: &dyn Model, truth: &Seen, setup: Setup, beside: usize, faults: usize, each: usize) -> (u32, u32) {
    let store = |disk: Faulty| layered(model, setup, beside, vec![Box::new(disk)]);
    break_stores(model, truth, setup, store, faults, each)
}

/// The same for whatever store is made over a disk.
fn break_stores(
    model: &dyn Model,
    truth: &Seen,
    setup: Setup,
    store_over: impl Fn(Faulty) -> Chain,
    faults: usize,
    each: usize,
) -> (u32, u32) {
    let (mut failed, mut ended) = (0, 0);
    for broken in (0..faults).map(|number| number * each) {
        for disk in [
            Faulty::after(broken, usize::MAX),
            Faulty::after(usize::MAX, broken * 5),
            Faulty::flipping(broken * 7),
            Faulty::losing_writes_after(broken),
            Faulty::cutting_writes_after(broken),
            Faulty::cutting_writes_in_silence_after(broken),
        ] {
            let seen = search(model, store_over(disk), crew(setup.workers), KEEP_GOING);
            match seen.outcome.verdict {
                Verdict::Unknown(Why::Disk(message)) => {
                    assert!(!message.is_empty() && !seen.outcome.complete);
                    failed += 1;
                }
                verdict => {
                    assert_eq!((verdict, seen.states.len()), (truth.outcome.verdict.clone(), truth.states.len()));
                    ended += 1;
                }
            }
        }
    }
    (failed, ended)
}

#[test]
fn a_disk_that_fails_is_a_verdict() {
    let (_, model) = models().swap_remove(0);
    let truth = plain(&model, Codec::Packed, KEEP_GOING);
    let setup = Setup { codec: Codec::Packed, keep: Keep::All, memory: 10, shard_bits: 0, workers: 1 };
    let (failed, ended) = break_disks(&model, &truth, setup, 0, 25, 1);
    assert!(failed > 40 && ended > 0, "{failed} failed, {ended} ended");
}

/// The same where runs hold vectors: from the beginning, and after a tree was given up, also while it is.
#[test]
fn a_disk_that_fails_is_a_verdict_also_where_it_holds_vectors() {
    let model = wide();
    let truth = plain(&model, Codec::Tree, KEEP_GOING);
    let memory = (truth.coder_bytes as u64 * 45 / 100) >> 10;
    for (codec, workers, shard_bits) in [(Codec::Tree, 1, 0), (Codec::Tree, 3, 2), (Codec::Plain, 1, 0)] {
        let setup = Setup { codec, keep: Keep::All, memory, shard_bits, workers };
        assert!(compare_with(&model, &truth, setup, KEEP_GOING, 0).whole_states);
        let (failed, ended) = break_disks(&model, &truth, setup, 0, 25, 4);
        assert!(failed > 20 && ended > 0, "{setup:?}: {failed} failed, {ended} ended");
    }
}
