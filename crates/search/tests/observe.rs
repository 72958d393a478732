//! Who looks on sees every edge, in order, whatever the store and the workers, and can tell the numbers of all states.

use plimsoll_model::{Model, Step, Successors};
use plimsoll_search as search;
use plimsoll_search::{Ask, Control, Crew, Limits, Observer, PathRoom, Seen, Why, bfs_with};
use plimsoll_store::disk::SLOT;
use plimsoll_store::numbers::UNKNOWN;
use plimsoll_store::runs::{BLOCK_BYTES, Candidates, Keep, Layers};
use plimsoll_store::{Block, Budget, Chain, Codec, Entry, Grant, Keys, Numbers, NumbersIn, Queue, Row, Spill, StepLog};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

/// Wheels that turn by one, each for itself, and a step that goes wrong now and then. Wide enough for a tree to learn from.
struct Wheels {
    /// They turn round once.
    stop: bool,
}

const ENDLESS: Wheels = Wheels { stop: false };
const ENDING: Wheels = Wheels { stop: true };

const WIDTH: usize = 9;
const SIZES: [u32; 4] = [9, 11, 8, 13];

impl Model for Wheels {
    fn width(&self) -> usize {
        WIDTH
    }

    fn used_bits(&self) -> Vec<u32> {
        vec![0xF; WIDTH]
    }

    fn most_successors(&self) -> usize {
        SIZES.len() + 1
    }

    fn initial(&self, out: &mut Successors) {
        out.push(&[1, 0, 0, 0, 0, 0, 0, 0, 0], Step(0));
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        let mut next = state.to_vec();
        for (wheel, &size) in SIZES.iter().enumerate() {
            let place = 2 * wheel + 1;
            if self.stop && state[place] + 1 == size {
                continue;
            }
            next[place] = (state[place] + 1) % size;
            out.push(&next, Step(wheel as u32));
            next[place] = state[place];
        }
        if state[1] == 3 {
            out.push(state, Step(9 | Step::FAULT));
        }
    }
}

type Edges = Vec<(u64, u32, u32)>;

/// Writes all edges down; targets that are not known yet are filled in at the end.
struct Scribe {
    numbers: Numbers,
    edges: Edges,
    targets: Vec<u32>,
    faults: u64,
    rekeyed: u64,
}

impl Observer for Scribe {
    fn starts(&mut self, seen: &Seen) -> Result<(), Why> {
        let fresh = seen.fresh.expect("one state fits into memory");
        Ok(self.numbers.number(seen.block, seen.entry, fresh, seen.settled)?)
    }

    fn entered(&mut self, block: Block, entry: &Entry) -> Result<(), Why> {
        Ok(self.numbers.number(block, entry, &[0], true)?)
    }

    fn fresh(&mut self, keys: &[u128]) -> Result<(), Why> {
        Ok(self.numbers.number_keys(keys)?)
    }

    fn block(&mut self, seen: &Seen) -> Result<(), Why> {
        assert_eq!(self.numbers.states(), seen.first_fresh);
        match seen.fresh {
            Some(fresh) => self.numbers.look_up(seen.block, seen.entry, fresh, seen.settled, &mut self.targets)?,
            None => self.numbers.ask_only(seen.block, seen.entry, &mut self.targets)?,
        }
        for (from, bounds) in (seen.first..).zip(seen.block.firsts.windows(2)) {
            for position in bounds[0] as usize..bounds[1] as usize {
                match seen.successors.step(position) {
                    step if step.is_fault() => self.faults += 1,
                    step => self.edges.push((from, step.instance(), self.targets[position])),
                }
            }
        }
        Ok(())
    }

    fn rekey(&mut self, keys: &Keys, are_first: bool) {
        self.rekeyed += u64::from(are_first);
        self.numbers.rekey(keys, are_first).unwrap();
    }
}

/// The edges as a simple search finds them.
fn expected(wheels: &Wheels) -> Edges {
    let mut out = Successors::new(WIDTH);
    wheels.initial(&mut out);
    let mut found = vec![out.state(0).to_vec()];
    let mut numbers = HashMap::from([(found[0].clone(), 0)]);
    let (mut edges, mut at) = (Vec::new(), 0);
    while at < found.len() {
        out.clear();
        wheels.successors(&found[at].clone(), &mut out);
        for (state, step) in out.iter().filter(|(_, step)| !step.is_fault()) {
            let next = numbers.len() as u32;
            let number = *numbers.entry(state.to_vec()).or_insert(next);
            if number == next {
                found.push(state.to_vec());
            }
            edges.push((at as u64, step.instance(), number));
        }
        at += 1;
    }
    edges
}

/// Searches while a scribe looks on; how many targets are told later.
fn scribed(wheels: &Wheels, mut store: Chain, codec: Codec, bytes: u64, disk: bool, workers: usize) -> (Scribe, u64) {
    let keeping = if wheels.stop { NumbersIn::AsideAll } else { NumbersIn::Table };
    let spill = || Spill::in_folders(&[std::env::temp_dir()], SLOT, Grant::unlimited()).unwrap();
    let grant = Budget::new(bytes).grant("numbers", bytes);
    let numbers = Numbers::new(codec, &ENDING.used_bits(), keeping, grant, disk.then(|| [spill(), spill()])).unwrap();
    let mut scribe = Scribe { numbers, edges: Vec::new(), targets: Vec::new(), faults: 0, rekeyed: 0 };
    let mut queue = Queue::new(WIDTH, Grant::unlimited(), None);
    let mut log = StepLog::new(Grant::unlimited(), None);
    let (stop, mut watch) = (AtomicBool::new(false), |_: &_| {});
    let room = PathRoom::new(Grant::unlimited());
    let ask = Ask { keep_going: true, ..Ask::EVERYTHING };
    let mut control = Control { ask, limits: Limits::default(), stop: &stop, room, watch: &mut watch };
    let crew = Crew { shared_successors: 64, shared_block_successors: [64, 64], ..Crew::of(workers) };
    let watched = search::Company { observer: Some(&mut scribe), ..Default::default() };
    let outcome = bfs_with(wheels, &mut store, &mut queue, &mut log, crew, &mut control, watched);
    assert!(outcome.complete, "{codec:?}, {workers} workers: {:?}", outcome.verdict);
    assert_eq!((scribe.numbers.states(), scribe.faults), (outcome.stats.states, outcome.stats.faults));
    let asked = scribe.numbers.asked();
    (scribe, asked)
}

/// Fills in what was told later.
fn edges(scribe: Scribe, forgets: bool) -> Edges {
    let Scribe { numbers, mut edges, .. } = scribe;
    let mut answers = numbers.answers(&Grant::unlimited(), None, forgets).unwrap();
    edges.iter_mut().filter(|edge| edge.2 == UNKNOWN).for_each(|edge| edge.2 = answers.next_number().unwrap());
    edges.retain(|&(from, _, _)| !answers.is_repeated(from as u32));
    edges.iter().map(|&(from, step, to)| (answers.rank(from as u32).into(), step, answers.rank(to))).collect()
}

#[test]
fn all_edges_are_seen_in_order_by_every_store() {
    let expected = expected(&ENDLESS);
    for codec in [Codec::Plain, Codec::Packed, Codec::Tree] {
        for (workers, bytes, disk) in [(1, 1 << 30, false), (3, 1 << 30, true), (2, 250 << 10, true)] {
            let store = Chain::new(codec, &ENDING.used_bits(), 0, &Grant::unlimited()).unwrap();
            let (scribe, asked) = scribed(&ENDLESS, store, codec, bytes, disk, workers);
            assert_eq!(asked > 0, bytes < 1 << 20, "{codec:?}: {asked} questions");
            assert_eq!(scribe.rekeyed, u64::from(codec == Codec::Tree), "{codec:?}");
            assert!(edges(scribe, false) == expected, "{codec:?}, {workers} workers");
        }
    }
}

/// A store with little memory, which goes on on disk.
fn on_disk(codec: Codec, keep: Keep, kibibytes: u64) -> Chain {
    let grant = Budget::new(kibibytes << 10).grant("store", kibibytes << 10);
    let spill = |slot| Spill::in_folders(&[std::env::temp_dir()], slot, Grant::unlimited()).unwrap();
    let candidates = Candidates::new(WIDTH, &Grant::unlimited(), spill(SLOT));
    let layers = Layers::new(keep, candidates, spill(BLOCK_BYTES), &grant);
    Chain::new(codec, &ENDING.used_bits(), 0, &grant).unwrap().above(layers)
}

#[test]
fn states_on_disk_have_the_same_numbers() {
    let expected = expected(&ENDLESS);
    for (codec, kibibytes, workers) in [(Codec::Packed, 30, 1), (Codec::Packed, 30, 3)] {
        for bytes in [1 << 30, 250 << 10] {
            let store = on_disk(codec, Keep::All, kibibytes);
            let (scribe, asked) = scribed(&ENDLESS, store, codec, bytes, true, workers);
            assert!(asked > 1000, "{codec:?}: {asked} questions, so hardly anything was on disk");
            assert!(edges(scribe, false) == expected, "{codec:?}, {workers} workers");
        }
    }
}

#[test]
fn what_is_forgotten_and_found_again_can_be_merged() {
    let expected = expected(&ENDING);
    for (codec, workers) in [(Codec::Plain, 1), (Codec::Packed, 2), (Codec::Packed, 3)] {
        let row = Row::chain("LRU").unwrap();
        let store = Chain::with_row(codec, &ENDING.used_bits(), &row, false, 256, &Grant::unlimited()).unwrap();
        let (scribe, asked) = scribed(&ENDING, store, codec, 64 << 20, workers > 1, workers);
        assert!(asked > expected.len() as u64, "{asked} questions");
        assert!(edges(scribe, true) == expected, "{codec:?}");
    }
    // Levels that leave the disk, too; a tree whose keys are put aside learns nothing that would change them.
    for (kibibytes, workers) in [(1 << 20, 1), (400, 2)] {
        let store = on_disk(Codec::Tree, Keep::Last(2), kibibytes);
        let (scribe, _) = scribed(&ENDING, store, Codec::Tree, 64 << 20, true, workers);
        assert_eq!(scribe.rekeyed, 0);
        assert!(edges(scribe, true) == expected, "{kibibytes} KiB");
    }
}
