//! States from their roots, by a tree to which nothing is added any more: its tables become lists, in the same memory.

use super::{Shape, Source, Tree};
use crate::intern::{Intern, Numbered};

#[derive(Debug)]
pub struct Decoder {
    shape: Shape,
    tables: Vec<Numbered>,
    /// The number of each node.
    numbers: Vec<u32>,
}

impl Tree {
    pub fn into_decoder(self) -> Decoder {
        let numbers = vec![0; self.tables.len()];
        Decoder { shape: self.shape, tables: self.tables.into_iter().map(Intern::into_numbered).collect(), numbers }
    }
}

impl Decoder {
    /// Puts the state of a root behind others.
    pub fn decode(&mut self, root: u64, states: &mut Vec<u32>) {
        let Some((left, right)) = self.shape.root else { return states.push(root as u32) };
        let (start, numbers) = (states.len(), &mut self.numbers);
        states.resize(start + self.shape.width, 0);
        (numbers[left], numbers[right]) = ((root >> 32) as u32, root as u32);
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
