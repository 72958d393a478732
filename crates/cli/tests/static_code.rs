//! The static Huffman code comes from our own models: here their bytes are counted again.

use plimsoll_ir::passes::optimise;
use plimsoll_lang::{LoadedModel, Options, load};
use plimsoll_model::{Interp, Model, Successors};
use plimsoll_store::huffman::{STATIC_COUNTS, Training};
use std::collections::HashSet;
use std::path::Path;

/// Models of all languages and kinds; the first states of each count as much as those of any other.
const MODELS: [&str; 14] = [
    "dve/alternating_bit.dve",
    "dve/bakery_4.dve",
    "dve/eight_puzzle.dve",
    "dve/election_ring_6.dve",
    "dve/lift.dve",
    "dve/mesi_4.dve",
    "dve/philosophers_13.dve",
    "dve/sliding_window.dve",
    "promela/bounded_retransmission.pml",
    "promela/courier_ring.pml",
    "promela/peterson_filter_4.pml",
    "murphi/dash_abstract.m",
    "murphi/directory.m",
    "murphi/election.m",
];
const STATES: usize = 4_000;
/// What the bytes of a model add up to, about.
const WHOLE: u64 = 1_000_000;

/// Counts the bytes of the first states, breadth first.
fn count(model: &impl Model) -> [u64; 256] {
    let (mut training, mut out) = (Training::new(&model.used_bits()), Successors::new(model.width()));
    let (mut seen, mut queue) = (HashSet::new(), std::collections::VecDeque::new());
    model.initial(&mut out);
    loop {
        for (state, step) in out.iter() {
            if seen.len() < STATES && !step.is_fault() && seen.insert(state.to_vec()) {
                training.add(state);
                queue.push_back(state.to_vec());
            }
        }
        let Some(next) = queue.pop_front().filter(|_| seen.len() < STATES) else { return training.bytes() };
        out.clear();
        model.successors(&next, &mut out);
    }
}

#[test]
fn the_static_code_is_that_of_our_models() {
    let mut sum = [0; 256];
    for name in MODELS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
        let LoadedModel::System { system, .. } = load(&path, &Options::default()).unwrap().model else {
            panic!("{name} has a system")
        };
        let bytes = count(&Interp::new(optimise(system)));
        let all: u64 = bytes.iter().sum();
        sum.iter_mut().zip(bytes).for_each(|(sum, count)| *sum += count * WHOLE / all);
    }
    let rows: Vec<String> = sum
        .chunks(16)
        .map(|row| format!("    {},\n", row.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")))
        .collect();
    assert!(sum == STATIC_COUNTS, "crates/store/src/huffman/counts.rs should have\n[\n{}]", rows.concat());
}
