//! A log that keeps levels instead of steps: what is wrong is found all the same, and the way to it, which is found by searching again between
//! those levels, is a way of the model and as short as the one that a whole log knows.

use plimsoll_ir::random::{Size, random_system};
use plimsoll_ir::text;
use plimsoll_model::{Interp, Model};
use plimsoll_search::{Ask, Control, Crew, Limits, Outcome, PathRoom, Verdict, bfs, verify, whole_way};
use plimsoll_store::disk::SLOT;
use plimsoll_store::disk::faulty::Faulty;
use plimsoll_store::packing::Packing;
use plimsoll_store::runs::{BLOCK_BYTES, Candidates, Keep, Layers};
use plimsoll_store::{Budget, Chain, Codec, Grant, Queue, Spill, StepLog};
use std::sync::atomic::AtomicBool;

/// How states are held: in so much memory, with these levels on disk; or all in memory.
type Held = Option<(u64, Keep)>;

/// Searches with a log of at most so many bytes; how many searches it took.
fn search(model: &dyn Model, ask: Ask, limits: Limits, most_bytes: u64, held: Held, searches: &mut u32) -> Outcome {
    *searches += 1;
    let spill = |bytes| Spill::over(vec![Box::new(Faulty::sound())], bytes, Grant::unlimited());
    let grant = Budget::new(held.map_or(u64::MAX, |(bytes, _)| bytes)).grant("store", u64::MAX);
    let codec = if Packing::new(&model.used_bits()).is_some() { Codec::Packed } else { Codec::Tree };
    let mut store = Chain::new(codec, &model.used_bits(), 0, &grant).unwrap();
    if let Some((_, keep)) = held {
        let candidates = Candidates::new(model.width(), &Grant::unlimited(), spill(SLOT));
        store = store.above(Layers::new(keep, candidates, spill(BLOCK_BYTES), &grant));
    }
    let mut queue = Queue::new(model.width(), Grant::unlimited(), None);
    let mut log = StepLog::new(Grant::unlimited(), Some(spill(SLOT))).at_most(most_bytes);
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let room = PathRoom::new(Grant::unlimited());
    let mut control = Control { ask, limits, stop: &stop, room, watch: &mut watch };
    let mut outcome = bfs(model, &mut store, &mut queue, &mut log, Crew::of(1), &mut control);
    if let Verdict::Violated(violation) = outcome.verdict {
        let milestones = log.into_milestones().unwrap();
        outcome.verdict = whole_way(model, milestones, violation, |model, ask, limits| {
            search(model, ask, limits, most_bytes, held, searches)
        });
    }
    outcome
}

fn steps(model: &Interp, outcome: &Outcome) -> Option<usize> {
    let Verdict::Violated(violation) = &outcome.verdict else { return None };
    verify(model, violation).unwrap();
    Some(violation.trace.steps())
}

#[test]
fn ways_are_found_again_between_levels() {
    let grid = "system \"grid\" var a: 0..19 var b: 0..19 var c: 0..19
        command \"a\" { when (a < 19) do { a := a + 1; } } command \"b\" { when (b < 19) do { b := b + 1; } }
        command \"c\" { when (c < 19) do { c := c + 1; } } command \"back\" { when (a == 13) && (b == 7) do { c := 0; } }
        command \"home\" { when (a == 19) && (c == 5) do { a := 0; b := 3; } }";
    let model = Interp::new(text::parse(grid).unwrap());
    let plain = search(&model, Ask::EVERYTHING, Limits::default(), u64::MAX, None, &mut 0);
    assert_eq!(steps(&model, &plain), Some(57));
    for held in [None, Some((20 << 10, Keep::All)), Some((20 << 10, Keep::Last(2))), Some((20 << 10, Keep::Auto))] {
        for most_bytes in [0, 100, 700] {
            let mut searches = 0;
            let found = search(&model, Ask::EVERYTHING, Limits::default(), most_bytes, held, &mut searches);
            assert_eq!(steps(&model, &found), Some(57), "{held:?}, {most_bytes} bytes");
            assert!(searches > 2, "{searches} searches with {most_bytes} bytes");
        }
    }
}

#[test]
fn random_systems_have_ways_of_the_same_length() {
    let (mut violated, mut again) = (0, 0);
    for seed in 0..300 {
        let model = Interp::new(random_system(seed, Size { states: 4_000, ..Size::MEDIUM }));
        let plain = search(&model, Ask::EVERYTHING, Limits::default(), u64::MAX, None, &mut 0);
        let Some(expected) = steps(&model, &plain) else { continue };
        let mut searches = 0;
        let found = search(&model, Ask::EVERYTHING, Limits::default(), seed % 3 * 40, None, &mut searches);
        assert_eq!(steps(&model, &found), Some(expected), "seed {seed}");
        assert_eq!(found.stats, plain.stats, "seed {seed}");
        (violated, again) = (violated + 1, again + searches - 1);
    }
    assert!(violated > 50 && again > 10, "{violated} {again}");
}
