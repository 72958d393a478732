//! What is known about the successor under construction while its code is generated.
//!
//! Memory is always up to date; this only remembers which words may differ from the source state, and
//! values that are in registers anyway, so that straight-line code loads nothing twice.

use std::collections::HashMap;
use std::ops::Range as Span;

use cranelift_codegen::ir::Value;

use super::emit::Val;

#[derive(Clone)]
pub(super) struct Known {
    /// Words of the successor that may differ from the source.
    written: Vec<bool>,
    /// Decoded scalars by the bit they start at.
    fields: HashMap<u32, Val>,
    /// Whole words, zero-extended.
    words: HashMap<u32, Value>,
}

impl Known {
    /// The successor is a fresh copy of a source state of `words` words.
    pub fn copy_of_source(words: usize) -> Known {
        Known { written: vec![false; words], fields: HashMap::new(), words: HashMap::new() }
    }

    /// The state is at hand only as it is being changed.
    pub fn all_written(words: usize) -> Known {
        Known { written: vec![true; words], fields: HashMap::new(), words: HashMap::new() }
    }

    /// May any of these bits differ from the source?
    pub fn is_written(&self, bits: Span<u32>) -> bool {
        self.written[words_of(&bits)].contains(&true)
    }

    pub fn field(&self, bit: u32) -> Option<Val> {
        self.fields.get(&bit).copied()
    }

    pub fn word(&self, word: u32) -> Option<Value> {
        self.words.get(&word).copied()
    }

    /// These bits changed; nothing is known about them.
    pub fn forget(&mut self, bits: Span<u32>) {
        let words = words_of(&bits);
        self.written[words.clone()].fill(true);
        self.fields.retain(|bit, _| !bits.contains(bit));
        self.words.retain(|word, _| !words.contains(&(*word as usize)));
    }

    pub fn learn_field(&mut self, bit: u32, value: Val) {
        self.fields.insert(bit, value);
    }

    pub fn learn_word(&mut self, word: u32, value: Value) {
        self.words.insert(word, value);
    }

    /// What still holds where two paths meet.
    pub fn meet(mut self, other: &Known) -> Known {
        self.written.iter_mut().zip(&other.written).for_each(|(mine, other)| *mine |= other);
        self.fields.retain(|bit, mine| other.fields.get(bit).is_some_and(|other| other.value == mine.value));
        self.words.retain(|word, mine| other.words.get(word) == Some(mine));
        self
    }
}

fn words_of(bits: &Span<u32>) -> Span<usize> {
    (bits.start / 32) as usize..bits.end.div_ceil(32) as usize
}
