//! States that lie together, in memory as they are or folded.

use super::differences;
use crate::arena::{Arena, LINE, Pages};
use crate::width::by_width;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

const LINE_BYTES: usize = LINE * 4;

/// A chunk with a buffer of its own.
#[derive(Debug)]
pub struct Whole {
    words: Box<[AtomicU32]>,
    /// States that were written.
    written: AtomicUsize,
    /// The same, folded already.
    folded: OnceLock<Folded>,
    /// Done when the words are those that were folded.
    filled: Once,
}

impl Whole {
    /// A chunk that nobody has written to.
    pub fn empty(words: Box<[AtomicU32]>) -> Whole {
        let filled = Once::new();
        filled.call_once(|| {});
        Whole { words, written: AtomicUsize::new(0), folded: OnceLock::new(), filled }
    }

    /// A chunk of `states` that are unfolded when the first of them is read, by whoever reads it.
    pub fn unfolding(words: Box<[AtomicU32]>, folded: Folded, states: usize) -> Whole {
        let written = AtomicUsize::new(states);
        Whole { words, written, folded: OnceLock::from(folded), filled: Once::new() }
    }

    /// Writes states of `width` words, which lie behind `first` others.
    pub fn write<'a>(&self, first: usize, width: usize, states: impl Iterator<Item = &'a [u32]>) {
        let places = self.words[first * width..].chunks_exact(width);
        for (place, state) in places.zip(states) {
            store(place, state);
        }
    }

    /// The same where nobody else can reach them.
    pub fn write_alone<'a>(&mut self, first: usize, width: usize, states: impl Iterator<Item = &'a [u32]>) {
        let room = &mut alone(&mut self.words)[first * width..];
        by_width!(width, WIDTH => {
            for (place, state) in room.as_chunks_mut::<WIDTH>().0.iter_mut().zip(states) {
                *place = *state.first_chunk().expect("states have this width");
            }
        }, room.chunks_exact_mut(width).zip(states).for_each(|(place, state)| place.copy_from_slice(state)));
    }

    /// The states that were written, each of `width` words.
    pub fn words(&self, width: usize) -> &[AtomicU32] {
        self.filled.call_once(|| {
            if let Some(folded) = self.folded.get() {
                folded.unfold(width, &self.words);
            }
        });
        &self.words
    }

    /// The same where nobody else can reach them.
    pub fn words_alone(&mut self, width: usize) -> &[u32] {
        let words = alone(&mut self.words);
        self.filled.call_once(|| {
            if let Some(folded) = self.folded.get() {
                let count = words.len() / width;
                let put = |number: usize, state: &[u32]| words[number * width..][..width].copy_from_slice(state);
                differences::unpack(&folded.bytes(), width, count, put);
            }
        });
        words
    }

    /// Takes note that `count` more states were written, and says how many there are now.
    pub fn wrote(&self, count: usize) -> usize {
        // Who folds them sees what others wrote.
        self.written.fetch_add(count, Ordering::AcqRel) + count
    }

    pub fn is_folded(&self) -> bool {
        self.folded.get().is_some()
    }

    /// Folds its states, all of which were written; false if that gains nothing or there is no memory for it.
    pub fn fold(&self, width: usize, arena: &Arena) -> bool {
        let states: Vec<u32> = self.words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        self.keep(&differences::pack(&states, width), arena)
    }

    /// The same where nobody else can reach them.
    pub fn fold_alone(&mut self, width: usize, arena: &Arena) -> bool {
        let packed = differences::pack(alone(&mut self.words), width);
        self.keep(&packed, arena)
    }

    fn keep(&self, packed: &[u8], arena: &Arena) -> bool {
        let worthwhile = packed.len() < self.words.len() * 3;
        if worthwhile && let Some(folded) = Folded::new(packed, arena) {
            let _ = self.folded.set(folded);
        }
        self.is_folded()
    }

    /// Its buffer, and what is folded.
    pub fn take_apart(self) -> (Box<[AtomicU32]>, Option<Folded>) {
        (self.words, self.folded.into_inner())
    }
}

fn store(place: &[AtomicU32], state: &[u32]) {
    place.iter().zip(state).for_each(|(word, &value)| word.store(value, Ordering::Relaxed));
}

/// Words that nobody else can reach. They are copied in larger pieces then.
fn alone(words: &mut [AtomicU32]) -> &mut [u32] {
    // SAFETY: these words are laid out in the same way, and the reference is the only one.
    unsafe { &mut *(words as *mut [AtomicU32] as *mut [u32]) }
}

/// Differences between states, in pages of an arena: pages that are given back can be taken by any other.
#[derive(Debug)]
pub struct Folded {
    pages: Pages,
    len: usize,
}

impl Folded {
    fn new(bytes: &[u8], arena: &Arena) -> Option<Folded> {
        let mut pages = arena.pages();
        if !pages.grow(bytes.len().div_ceil(LINE_BYTES), 0) {
            return None;
        }
        for (number, piece) in bytes.chunks(LINE_BYTES).enumerate() {
            bytemuck::cast_slice_mut(pages.line_mut(number))[..piece.len()].copy_from_slice(piece);
        }
        Some(Folded { pages, len: bytes.len() })
    }

    fn bytes(&self) -> Vec<u8> {
        let lines = 0..self.len.div_ceil(LINE_BYTES);
        let mut bytes = Vec::with_capacity(lines.len() * LINE_BYTES);
        lines.for_each(|number| bytes.extend_from_slice(bytemuck::cast_slice(self.pages.line(number))));
        bytes
    }

    /// Writes all states of `width` words.
    pub fn unfold(&self, width: usize, words: &[AtomicU32]) {
        differences::unpack(&self.bytes(), width, words.len() / width, |number, state| {
            store(&words[number * width..][..width], state);
        });
    }
}
