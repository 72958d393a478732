//! A graph in memory: arrays of edges, by source state.

use crate::stream::{EdgeReader, Ends, ReadError};
use std::io::BufRead;

/// The label of the silent action.
pub const TAU: &str = "i";

/// Isolated states beyond this number must be a mistake in the file.
const MOST_ISOLATED: u64 = 1 << 24;

/// An explicit graph with labelled edges, by source state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lts {
    pub initial: u32,
    pub state_count: u32,
    pub labels: Vec<String>,
    /// The edges of state `s` are those numbered `first[s]..first[s + 1]`.
    pub first: Vec<u64>,
    /// Index into `labels`, by edge.
    pub label: Vec<u32>,
    /// State, by edge.
    pub target: Vec<u32>,
}

impl Lts {
    /// Reads all edges of a file.
    pub fn read<R: BufRead>(reader: &mut EdgeReader<R>) -> Result<Lts, ReadError> {
        let mut edges = Builder::default();
        while let Some(edge) = reader.next()? {
            let state = |number: u64| u32::try_from(number).map_err(|_| too_many_states(number));
            edges.push(state(edge.from)?, edge.label, state(edge.to)?);
        }
        let Ends { initial, states, .. } = reader.ends();
        if states > u64::from(u32::MAX) {
            return Err(too_many_states(states));
        }
        if states > MOST_ISOLATED.max(2 * edges.len() as u64 + 1) {
            return Err(ReadError::Flawed(format!("{states} states are promised, but the edges name far fewer")));
        }
        Ok(edges.into_lts(initial as u32, states as u32, reader.take_labels()))
    }

    /// The edges of a state, as label number and target.
    pub fn edges(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.first[state as usize] as usize..self.first[state as usize + 1] as usize;
        self.label[range.clone()].iter().copied().zip(self.target[range].iter().copied())
    }

    pub fn edge_count(&self) -> usize {
        self.target.len()
    }

    /// The number of the silent label, if there is one.
    pub fn tau(&self) -> Option<u32> {
        self.labels.iter().position(|label| label == TAU).map(|index| index as u32)
    }

    /// Makes silent what is hidden: those labels become one.
    pub fn hide(&mut self, hidden: impl Fn(&str) -> bool) {
        let tau = self.tau().or_else(|| {
            self.labels.iter().any(|label| hidden(label)).then(|| {
                self.labels.push(TAU.into());
                self.labels.len() as u32 - 1
            })
        });
        let Some(tau) = tau else { return };
        let renamed = |(number, label): (usize, &String)| if hidden(label) { tau } else { number as u32 };
        let renamed: Vec<u32> = self.labels.iter().enumerate().map(renamed).collect();
        self.label.iter_mut().for_each(|label| *label = renamed[*label as usize]);
    }
}

fn too_many_states(number: u64) -> ReadError {
    ReadError::Flawed(format!("a state has the number {number}, and at most {} states are held in memory", u32::MAX))
}

/// Edges in any order, on their way into a graph.
#[derive(Debug, Default)]
pub struct Builder {
    from: Vec<u32>,
    label: Vec<u32>,
    target: Vec<u32>,
}

impl Builder {
    pub fn push(&mut self, from: u32, label: u32, target: u32) {
        self.from.push(from);
        self.label.push(label);
        self.target.push(target);
    }

    pub fn len(&self) -> usize {
        self.target.len()
    }

    pub fn is_empty(&self) -> bool {
        self.target.is_empty()
    }

    /// The graph; edges of one state keep their order. All states must be below `state_count`.
    pub fn into_lts(self, initial: u32, state_count: u32, labels: Vec<String>) -> Lts {
        let Builder { from, mut label, mut target } = self;
        let mut first = vec![0u64; state_count as usize + 1];
        from.iter().for_each(|&from| first[from as usize + 1] += 1);
        (0..state_count as usize).for_each(|state| first[state + 1] += first[state]);
        if !from.is_sorted() {
            let mut next = first.clone();
            let (mut labels, mut targets) = (vec![0; label.len()], vec![0; target.len()]);
            for (edge, &from) in from.iter().enumerate() {
                let place = &mut next[from as usize];
                (labels[*place as usize], targets[*place as usize]) = (label[edge], target[edge]);
                *place += 1;
            }
            (label, target) = (labels, targets);
        }
        Lts { initial, state_count, labels, first, label, target }
    }
}
