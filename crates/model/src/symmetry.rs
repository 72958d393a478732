//! Symmetry reduction as a model around a model: every state is replaced by a representative of its orbit
//! before a search sees it.
//!
//! *Exact*: the representative is the same for all states of an orbit, so a search visits one state per orbit.
//! *Heuristic*: where sorting leaves much to be tried, it only is some state of the orbit; counts may exceed the number of
//! orbits.
//! Steps keep their numbers, but belong to the representative; [`Symmetric::concrete`] turns a trace into one of
//! the model itself. After C. N. Ip, D. L. Dill: Better verification through symmetry (1996).

pub(crate) mod canon;
mod cutting;
pub(crate) mod pieces;
pub(crate) mod plain;
mod ranks;
mod relations;

use crate::jit::effort::bytes_at_once;
use crate::{Conventions, Model, Step, Successors};
use canon::{Canon, Scratch};
use plimsoll_ir::{Layout, Symmetry, System};

/// How good representatives are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    Heuristic,
    Exact,
}

/// A model whose states are representatives of orbits.
pub struct Symmetric<M> {
    inner: M,
    canon: Canon,
    precision: Precision,
}

impl<M: Model> Symmetric<M> {
    /// Wraps a model of `system`. `None` if the symmetry does not fit it.
    pub fn new(inner: M, system: &System, symmetry: &Symmetry, precision: Precision) -> Option<Symmetric<M>> {
        let canon = Canon::new(&Layout::of_system(system), system, symmetry)?;
        Some(Symmetric { inner, canon, precision })
    }

    /// Memory that making native code for representatives takes, code of the compiler aside.
    pub fn compiling_bytes(&self) -> u64 {
        bytes_at_once(self.canon.operators()) as u64
    }

    /// The same with native code for representatives, where that can be made.
    pub fn in_native_code(mut self) -> Symmetric<M> {
        self.canon.compile(self.inner.width());
        self
    }

    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The positions of a path of the inner model that corresponds to a path of this one. Each step leads from a
    /// state to one in the orbit that the given path goes through; one that goes wrong stays one that goes wrong.
    pub fn concrete(&self, positions: &[u32]) -> Option<Vec<u32>> {
        let mut scratch = Scratch::default();
        let (mut given, mut made) = (Successors::new(self.width()), Successors::new(self.width()));
        let mut at: Option<(Vec<u32>, Vec<u32>)> = None;
        let mut concrete = Vec::with_capacity(positions.len());
        for &position in positions {
            given.clear();
            made.clear();
            match &at {
                None => {
                    self.initial(&mut given);
                    self.inner.initial(&mut made);
                }
                Some((representative, state)) => {
                    self.successors(representative, &mut given);
                    self.inner.successors(state, &mut made);
                }
            }
            let position = position as usize;
            if position >= given.len() {
                return None;
            }
            let found = self.matching(given.state(position), given.step(position), &made, &mut scratch)?;
            concrete.push(found as u32);
            at = Some((given.state(position).to_vec(), made.state(found).to_vec()));
        }
        Some(concrete)
    }

    /// The entry of `made` that goes wrong as `step` does, and otherwise leads into the orbit of `state`.
    fn matching(&self, state: &[u32], step: Step, made: &Successors, scratch: &mut Scratch) -> Option<usize> {
        let mut wanted = state.to_vec();
        self.canon.represent(&mut wanted, Precision::Exact, scratch);
        (0..made.len()).find(|&index| {
            let other = made.step(index);
            if step.is_fault() || other.is_fault() {
                return step.is_fault() && other.is_fault();
            }
            let mut candidate = made.state(index).to_vec();
            self.canon.represent(&mut candidate, Precision::Exact, scratch);
            step.is_violation() == other.is_violation() && candidate == wanted
        })
    }

    fn represent_initial(&self, first: usize, out: &mut Successors) {
        let mut scratch = out.canon.take().unwrap_or_default();
        for index in first..out.len() {
            if !out.step(index).is_fault() {
                self.canon.represent(out.state_mut(index), self.precision, &mut scratch);
            }
        }
        out.canon = Some(scratch);
    }
}

impl<M: Model> Model for Symmetric<M> {
    fn width(&self) -> usize {
        self.inner.width()
    }

    fn used_bits(&self) -> Vec<u32> {
        self.inner.used_bits()
    }

    fn most_successors(&self) -> usize {
        self.inner.most_successors()
    }

    fn scratch_bytes(&self) -> usize {
        self.inner.scratch_bytes()
    }

    fn initial(&self, out: &mut Successors) {
        let first = out.len();
        self.inner.initial(out);
        self.represent_initial(first, out);
    }

    fn initial_part(&self, part: u32, out: &mut Successors) -> bool {
        let first = out.len();
        let more = self.inner.initial_part(part, out);
        self.represent_initial(first, out);
        more
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        let first = out.len();
        self.inner.successors(state, out);
        // A step that only renames elements is progress; whether there is any shows before renaming.
        // Compared word by word: the first ones mostly differ, and then a call would take longer.
        let stays = |index: usize| !out.step(index).is_fault() && out.state(index).iter().eq(state);
        if self.inner.conventions().stuttering_is_deadlock && (first..out.len()).all(stays) {
            return out.truncate(first);
        }
        self.canon.represent_from(out, first, state, self.precision);
    }

    fn has_properties(&self) -> bool {
        self.inner.has_properties()
    }

    fn violated(&self, state: &[u32]) -> Option<u32> {
        self.inner.violated(state)
    }

    fn accepts_end(&self, state: &[u32]) -> bool {
        self.inner.accepts_end(state)
    }

    fn conventions(&self) -> Conventions {
        Conventions { stuttering_is_deadlock: false, ..self.inner.conventions() }
    }

    /// Renaming elements changes which instance of a command a step is, not what kind of command.
    fn kind(&self, step: Step) -> u8 {
        self.inner.kind(step)
    }
}

#[cfg(test)]
mod tests;
