//! Writing, edge by edge.

use super::*;
use crate::graph::TAU;
use std::collections::HashMap;
use std::io::{self, Write};

/// Longer lists of edges are divided.
const LONGEST_RECORD: usize = 4096;

/// The target of an edge that will be told elsewhere.
pub const OPEN: u64 = u64::MAX;

/// Writes a graph as a stream; what was written is whole only when [`LtsWriter::finish`] has been called.
#[derive(Debug)]
pub struct LtsWriter<W> {
    out: W,
    /// How many blocks were written.
    blocks: u64,
    numbers: HashMap<String, u32>,
    new_labels: Vec<u8>,
    edges: Vec<u8>,
    guess: Guess,
    transitions: u64,
    bytes: u64,
}

impl<W: Write> LtsWriter<W> {
    pub fn new(mut out: W) -> io::Result<LtsWriter<W>> {
        out.write_all(&MAGIC)?;
        out.write_all(&[VERSION])?;
        Ok(LtsWriter {
            out,
            blocks: 0,
            numbers: HashMap::new(),
            new_labels: Vec::new(),
            edges: Vec::with_capacity(2 * BLOCK_BYTES),
            guess: Guess::new(),
            transitions: 0,
            bytes: MAGIC.len() as u64 + 1,
        })
    }

    /// The number of a label in this file.
    pub fn label(&mut self, text: &str) -> io::Result<u32> {
        if let Some(&number) = self.numbers.get(text) {
            return Ok(number);
        }
        if text.len() >= MOST_BYTES / 2 {
            return Err(invalid("a label is too long"));
        }
        if self.new_labels.len() + text.len() > MOST_BYTES / 2 {
            self.write_labels()?;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(text.into(), number);
        put(&mut self.new_labels, text.len() as u64);
        self.new_labels.extend_from_slice(text.as_bytes());
        self.guess.add_label();
        Ok(number)
    }

    /// The number of the silent label.
    pub fn tau(&mut self) -> io::Result<u32> {
        self.label(TAU)
    }

    /// Edges of a state, as label and target, behind those that it may have already.
    pub fn edges(&mut self, from: u64, edges: &[(u32, u64)]) -> io::Result<()> {
        let Some((first, rest)) = edges.split_at_checked(LONGEST_RECORD) else { return self.record(from, edges) };
        self.record(from, first)?;
        rest.chunks(LONGEST_RECORD).try_for_each(|part| self.record(from, part))
    }

    fn record(&mut self, from: u64, edges: &[(u32, u64)]) -> io::Result<()> {
        if self.edges.len() >= BLOCK_BYTES {
            self.write_edges()?;
        }
        if from >= STATE_LIMIT || edges.iter().any(|&(_, to)| to >= STATE_LIMIT && to != OPEN) {
            return Err(invalid("a state has too large a number"));
        }
        let LtsWriter { guess, edges: out, .. } = self;
        let jumps = from != guess.source;
        put(out, (edges.len() as u64) << 1 | jumps as u64);
        if jumps {
            put(out, zigzag(from.wrapping_sub(guess.source) as i64));
        }
        guess.source = from + 1;
        guess.before = 0;
        for &(label, to) in edges {
            let unexpected = guess.label() != label;
            let target = match to {
                OPEN => TO_OPEN,
                to if to == guess.new => TO_NEW,
                to => zigzag(to.wrapping_sub(guess.last[label as usize]) as i64) + TO_NEAR,
            };
            put(out, target << 1 | unexpected as u64);
            if unexpected {
                put(out, label.into());
            }
            guess.note_label(label);
            if to != OPEN {
                guess.note_target(label, to);
            }
        }
        self.transitions += edges.len() as u64;
        Ok(())
    }

    /// Completes the file and gives the writer back. All states that edges name must be below `states`.
    pub fn finish(mut self, initial: u64, states: u64) -> io::Result<W> {
        self.write_edges()?;
        let mut end = Vec::new();
        let numbers = [initial, states, self.transitions, self.numbers.len() as u64];
        numbers.iter().for_each(|&number| put(&mut end, number));
        self.write(END, &end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Gives the writer back without completing the file: no reader takes it for a whole graph.
    pub fn give_up(mut self) -> io::Result<W> {
        self.write_edges()?;
        self.out.flush()?;
        Ok(self.out)
    }

    pub fn transitions(&self) -> u64 {
        self.transitions
    }

    /// How many bytes were written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn write_labels(&mut self) -> io::Result<()> {
        let labels = std::mem::take(&mut self.new_labels);
        if labels.is_empty() { Ok(()) } else { self.write(LABELS, &labels) }
    }

    fn write_edges(&mut self) -> io::Result<()> {
        self.write_labels()?;
        let mut edges = std::mem::take(&mut self.edges);
        if !edges.is_empty() {
            self.write(EDGES, &edges)?;
        }
        edges.clear();
        self.edges = edges;
        Ok(())
    }

    fn write(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let sum = checksum(self.blocks, kind, bytes);
        self.blocks += 1;
        self.bytes += (HEAD_BYTES + bytes.len()) as u64;
        self.out.write_all(&[kind])?;
        self.out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        self.out.write_all(&sum.to_le_bytes())?;
        self.out.write_all(bytes)
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Appends a number, seven bits a byte, the lowest first.
#[inline]
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
