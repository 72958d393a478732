//! States from the keys of their roots, by a tree to which nothing is added any more: its tables become lists, in the same memory.

use super::{Shape, Source, Tree, root};
use crate::intern::{Intern, Numbered};

#[derive(Debug)]
pub struct Decoder {
    shape: Shape,
    tables: Vec<Numbered>,
    beyond: Option<Numbered>,
    /// The number of each node.
    numbers: Vec<u32>,
}

impl Tree {
    pub fn into_decoder(self) -> Decoder {
        let Tree { shape, tables, beyond, .. } = self;
        let (numbers, beyond) = (vec![0; tables.len()], beyond.map(Intern::into_numbered));
        Decoder { shape, tables: tables.into_iter().map(Intern::into_numbered).collect(), beyond, numbers }
    }
}

impl Decoder {
    /// Puts the state of a root with this key behind others.
    pub fn decode(&mut self, key: u64, states: &mut Vec<u32>) {
        let (start, numbers) = (states.len(), &mut self.numbers);
        match (&self.shape.root[..], &self.beyond) {
            ([], _) => return states.push(root::numbers(key)[1]),
            (&[left, middle, right], Some(beyond)) => {
                let root = root::three_numbers(key).unwrap_or_else(|[left, pair]| {
                    let mut others = beyond.vector(pair);
                    let mut next = || others.next().expect("a pair");
                    [left, next(), next()]
                });
                [numbers[left], numbers[middle], numbers[right]] = root;
            }
            (nodes, _) => [numbers[nodes[0]], numbers[nodes[1]]] = root::numbers(key),
        }
        states.resize(start + self.shape.width, 0);
        // Nodes come behind those that they are made of.
        for (node, source) in self.shape.sources.iter().enumerate().rev() {
            let mut vector = self.tables[node].vector(numbers[node]);
            match *source {
                Source::Words { first, count } => {
                    states[start + first..][..count].iter_mut().zip(vector).for_each(|(word, value)| *word = value);
                }
                Source::Nodes { left, right } => {
                    let mut next = || vector.next().expect("a pair");
                    (numbers[left], numbers[right]) = (next(), next());
                }
            }
        }
    }
}
