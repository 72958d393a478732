//! A model around another one: it watches or changes some answers and passes on the rest.

use crate::{Conventions, Model, Step, Successors};

/// What a wrapper does itself. Whoever implements this is a [`Model`].
pub trait Around: Sync {
    fn inner(&self) -> &dyn Model;

    /// Are successors and violations, as things stand, those of the inner model? Then it may be asked for many at once.
    fn passes_on(&self) -> bool {
        false
    }

    /// Takes the place of [`Model::successors`].
    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        self.inner().successors(state, out);
    }

    /// Takes the place of [`Model::violated`].
    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        self.inner().violated(state)
    }
}

impl<A: Around> Model for A {
    fn width(&self) -> usize {
        self.inner().width()
    }

    fn used_bits(&self) -> Vec<u32> {
        self.inner().used_bits()
    }

    fn most_successors(&self) -> usize {
        self.inner().most_successors()
    }

    fn scratch_bytes(&self) -> usize {
        self.inner().scratch_bytes()
    }

    fn initial(&self, out: &mut Successors) {
        self.inner().initial(out);
    }

    fn initial_part(&self, part: u32, out: &mut Successors) -> bool {
        self.inner().initial_part(part, out)
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        self.successors_of(state, out);
    }

    fn successors_of_all(&self, states: &[u32], out: &mut Successors, firsts: &mut Vec<u32>) {
        if self.passes_on() {
            self.inner().successors_of_all(states, out, firsts);
        } else {
            crate::one_by_one(self, states, out, firsts);
        }
    }

    fn path(&self, state: &[u32], number: usize) -> Vec<(Step, Vec<u32>)> {
        self.inner().path(state, number)
    }

    fn has_properties(&self) -> bool {
        !self.passes_on() || self.inner().has_properties()
    }

    fn violated(&self, state: &[u32]) -> Option<u32> {
        self.violated_by(state)
    }

    fn accepts_end(&self, state: &[u32]) -> bool {
        self.inner().accepts_end(state)
    }

    fn conventions(&self) -> Conventions {
        self.inner().conventions()
    }

    fn independent(&self, one: Step, other: Step) -> bool {
        self.inner().independent(one, other)
    }

    fn kind(&self, step: Step) -> u8 {
        self.inner().kind(step)
    }
}
