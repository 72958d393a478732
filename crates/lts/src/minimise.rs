//! The smallest graph that is equivalent to a given one.

use crate::graph::{Builder, Lts};
use crate::refine::{Partition, refine};
use crate::silent::collapse;

/// When two states count as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equivalence {
    /// Strong bisimulation: each can follow the other step by step.
    Strong,
    /// Branching bisimulation: silent steps that decide nothing do not count. Endless silent steps are no matter either.
    Branching,
}

const NONE: u32 = u32::MAX;

/// The quotient of the states that can be reached, numbered breadth first.
pub fn minimise(lts: Lts, equivalence: Equivalence) -> Lts {
    let (lts, tau) = match (equivalence, lts.tau()) {
        (Equivalence::Branching, Some(tau)) => (collapse(lts, tau).0, Some(tau)),
        _ => (lts, None),
    };
    let partition = refine(&lts, tau);
    quotient(&lts, &partition, tau)
}

/// One state for each block. What a block can do is what its first state can: no silent step within the block leads on from there.
fn quotient(lts: &Lts, partition: &Partition, tau: Option<u32>) -> Lts {
    let block = &partition.block;
    let mut first_state = vec![NONE; partition.len()];
    for state in (0..lts.state_count).rev() {
        first_state[block[state as usize] as usize] = state;
    }
    let mut number = vec![NONE; partition.len()];
    let mut found = vec![block[lts.initial as usize]];
    number[found[0] as usize] = 0;
    let (mut edges, mut next) = (Builder::default(), Vec::new());
    let (mut label_number, mut labels) = (vec![NONE; lts.labels.len()], Vec::new());
    let mut at = 0;
    while let Some(&from) = found.get(at) {
        next.clear();
        let pairs = lts.edges(first_state[from as usize]).map(|(label, target)| (label, block[target as usize]));
        next.extend(pairs.zip(0u32..));
        // Each pair once, in the order of the file.
        next.sort_unstable();
        next.dedup_by_key(|(pair, _)| *pair);
        next.sort_unstable_by_key(|&(_, place)| place);
        for &((label, to), _) in next.iter().filter(|((label, to), _)| Some(*label) != tau || *to != from) {
            if number[to as usize] == NONE {
                number[to as usize] = found.len() as u32;
                found.push(to);
            }
            let new = &mut label_number[label as usize];
            if *new == NONE {
                *new = labels.len() as u32;
                labels.push(lts.labels[label as usize].clone());
            }
            edges.push(at as u32, *new, number[to as usize]);
        }
        at += 1;
    }
    edges.into_lts(0, found.len() as u32, labels)
}
