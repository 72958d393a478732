//! The first states of a search, kept as they are: from them the tree learns its shape.
//!
//! A tree begins with an even shape. When the sample is large enough, a tree of the shape that suits its states takes
//! the place of the first one, and all states so far, which are the sample, are encoded again: see
//! [`crate::tiers::Tiers::learn`]. Where there is no memory for that everything stays as it is: a shape decides about
//! bytes and time, not about answers.

use crate::budget::Grant;
use crate::region::Region;
use crate::stream::{Unloaded, put_number, put_words, take_below, take_words};
use crate::tree::Shape;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;

/// A shape is learned from this many states, or fewer if they are wide; and again from the second number of them, for the
/// first states of a search may have little of what comes later.
const SAMPLE_STATES: [usize; 2] = [4096, 32768];
const SAMPLE_WORDS: [usize; 2] = [256 << 10, 1 << 20];
/// If this many times as much was kept and still nobody learns, it is given up.
const MOST_SAMPLES: usize = 8;

/// All states so far, in the order in which they were found.
#[derive(Debug)]
pub(crate) struct Sample {
    region: Region,
    width: usize,
    words: usize,
    /// Words of a whole number of states.
    enough: usize,
}

impl Sample {
    /// An empty sample of states of this width, if anything can be learned from it.
    pub fn new(width: usize, grant: &Grant) -> Option<Sample> {
        let sample = || Sample { region: Region::new(grant.clone()), width, words: 0, enough: enough(width, 0) };
        Shape::can_be_learned(width).then(sample)
    }

    /// An empty sample of states of this width from which it is chosen whether they have a tree at all, if there is more than one.
    pub fn to_choose(width: usize, grant: &Grant) -> Option<Sample> {
        let sample = || Sample { region: Region::new(grant.clone()), width, words: 0, enough: enough(width, 1) };
        (width == 2 || Shape::can_be_learned(width)).then(sample)
    }

    /// An empty sample of so many states of this width, which shows which bits they use.
    pub fn to_narrow(width: usize, states: usize, grant: &Grant) -> Sample {
        let enough = states.saturating_mul(width).min(enough(width, 1));
        Sample { region: Region::new(grant.clone()), width, words: 0, enough }
    }

    /// The same sample, from which a shape was learned, if it is to grow and be learned from again.
    pub fn again(mut self) -> Option<Sample> {
        let more = enough(self.width, 1);
        (self.enough < more).then(|| {
            self.enough = more;
            self
        })
    }

    /// Is nothing learned from it again?
    pub fn is_last(&self) -> bool {
        self.enough == enough(self.width, 1)
    }

    pub fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// Was nothing learned from it yet?
    #[cfg(test)]
    pub fn is_first(&self) -> bool {
        self.enough == enough(self.width, 0)
    }

    pub fn is_enough(&self) -> bool {
        self.words >= self.enough
    }

    /// Keeps a state; false if there is no room, or nobody wants to learn.
    pub fn add(&mut self, state: &[u32]) -> bool {
        let end = self.words + self.width;
        if self.words >= MOST_SAMPLES * self.enough || !self.region.grow(end * 4) {
            return false;
        }
        self.region.words_mut()[self.words..end].copy_from_slice(state);
        self.words = end;
        true
    }

    /// The states, end to end.
    pub fn states(&mut self) -> &[u32] {
        &self.region.words_mut()[..self.words]
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.words / self.width
    }

    /// Writes the first `states`.
    pub fn save(&self, states: usize, out: &mut dyn Write) -> io::Result<()> {
        put_number(out, states as u64)?;
        put_words(out, self.region.words()[..states * self.width].iter().map(|word| word.load(Ordering::Relaxed)))
    }

    /// Adds the states of a sample that was written; false if not all were kept.
    pub fn load(&mut self, from: &mut dyn Read) -> Result<bool, Unloaded> {
        let states = take_below(from, MOST_SAMPLES * self.enough + 1, "states in a sample")?;
        let (mut state, mut all_kept) = (vec![0; self.width], true);
        for _ in 0..states {
            take_words(from, &mut state)?;
            all_kept &= self.add(&state);
        }
        Ok(all_kept)
    }

    /// The shapes that suit them: see [`Shape::learned`].
    pub fn shapes(&mut self) -> (Shape, Option<Shape>) {
        let width = self.width;
        if !Shape::can_be_learned(width) {
            return (Shape::even(width), None);
        }
        // As many as the first time, from all that was seen since.
        let step = self.enough.div_ceil(enough(width, 0));
        let states: Vec<u32> = self.states().chunks_exact(width).step_by(step).flatten().copied().collect();
        Shape::learned(width, &states)
    }
}

/// Words of a whole number of states that are enough for the first time or the second.
fn enough(width: usize, time: usize) -> usize {
    (SAMPLE_STATES[time] * width).min(SAMPLE_WORDS[time]).next_multiple_of(width)
}
