//! States as Huffman codes: strings of different lengths.
//!
//! Where nobody leaves, each is held as long as it is. The slots of a cache are of one length, into which most codes fit; the few
//! that are longer are held beside it, as strings, and never leave. That is more than a rule asks for, so whatever is promised
//! about it stays true.

use super::{Batch, Block, Full};
use crate::budget::Grant;
use crate::cache::Answer;
use crate::hash;
use crate::huffman::Code;
use crate::strings::Strings;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Codes as strings, and what makes them.
#[derive(Debug)]
pub(super) struct Coded {
    code: Arc<Code>,
    strings: Strings,
    /// The code of one state.
    buffer: Vec<u8>,
}

impl Coded {
    pub fn new(code: &Arc<Code>, shard_bits: u32, grant: &Grant) -> Result<Coded, Full> {
        let strings = Strings::new(code.most_bytes().max(code.key_bytes()), shard_bits, grant)?;
        Ok(Coded { code: code.clone(), strings, buffer: Vec::new() })
    }

    pub fn len(&self) -> usize {
        self.strings.len()
    }

    pub fn bytes(&self) -> usize {
        self.strings.bytes()
    }

    pub fn prefetch(&self, hash: u64) {
        self.strings.prefetch(hash);
    }

    /// The key of a state in a cache; none if it is too long.
    pub fn key(&mut self, state: &[u32]) -> Option<&[u8]> {
        self.code.encode(state, &mut self.buffer);
        Some(&self.buffer[..]).filter(|key| key.len() <= self.code.key_bytes())
    }

    /// Holds the state whose key was asked for last.
    pub fn hold(&mut self, hash: u64) -> Answer {
        match self.strings.insert(&self.buffer, hash) {
            Ok(true) => Answer::New(crate::cache::Place::NOWHERE),
            Ok(false) => Answer::Known,
            Err(Full) => Answer::Full,
        }
    }

    /// Inserts states of a block.
    pub fn insert_all(&mut self, block: Block, batch: &Batch, range: Range<usize>) -> Result<usize, Full> {
        let (hashes, answers) = (batch.run(range.clone()).high, batch.answers(range.clone()));
        hashes.iter().for_each(|&hash| self.prefetch(hash));
        let mut count = 0;
        for ((&position, &hash), answer) in batch.positions(range).iter().zip(hashes).zip(answers) {
            self.code.encode(block.state(position as usize), &mut self.buffer);
            let new = self.strings.insert(&self.buffer, hash)?;
            answer.store(new as u8, Ordering::Relaxed);
            count += new as usize;
        }
        Ok(count)
    }

    /// Visits all codes with their hashes.
    pub fn visit(&mut self, mut visit: impl FnMut(&[u8], u64)) {
        self.strings.visit(|string| visit(string, hash::bytes(string)));
    }

    /// Takes a code over from another shard.
    pub fn take(&mut self, string: &[u8], hash: u64) -> Result<(), Full> {
        self.strings.insert(string, hash).map(|_| ())
    }
}
