//! What are the successors of a state?
//!
//! [`Model`] is the one interface between systems and searches. [`interp`] is the meaning of an
//! [`plimsoll_ir::System`]; [`jit`] is the same, fast, and must agree successor by successor.

pub mod around;
mod chain;
pub mod coverage;
pub mod graph;
pub mod guide;
pub mod interp;
pub mod jit;
mod order;
mod patience;
pub mod show;
pub mod successors;
pub mod symmetry;
pub mod unmerge;

pub use around::Around;
pub use coverage::Covered;
pub use graph::Graph;
pub use guide::Guide;
pub use interp::{Explanation, Interp, Problem};
pub use jit::Jit;
pub use patience::{GaveUp, Patience};
pub use show::{Describe, Show, StepText};
pub use successors::{Step, Successors};
pub use symmetry::Symmetric;
pub use unmerge::Unmerge;

/// A transition system whose states are vectors of 32-bit words.
///
/// Implement it for your own Rust types to check them; states must be normalised (equal states are
/// equal words).
pub trait Model: Sync {
    /// Words per state, at least one.
    fn width(&self) -> usize;

    /// The bits of each word that can differ from zero: what is known not to be used takes no room in a store.
    fn used_bits(&self) -> Vec<u32> {
        vec![u32::MAX; self.width()]
    }

    /// No state has more successors than this (faults counted), unless atomic chains multiply them.
    fn most_successors(&self) -> usize;

    /// Appends the initial states; their steps carry the number of the start command.
    fn initial(&self, out: &mut Successors);

    /// Appends one part of the initial states, from part 0 on, in the order of [`Model::initial`]. Is there another part? There
    /// may be more initial states than fit in memory.
    fn initial_part(&self, part: u32, out: &mut Successors) -> bool {
        debug_assert_eq!(part, 0, "there is one part");
        self.initial(out);
        false
    }

    /// Bytes that [`Model::successors`] may take beside what [`Model::most_successors`] tells.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Appends the successors of `state`, always in the same order. If that takes too long or too much, the list
    /// says so ([`Successors::gave_up`]) and means nothing.
    fn successors(&self, state: &[u32], out: &mut Successors);

    /// Appends the successors of states that lie end to end; `firsts` gets the place in `out` of the first of each.
    fn successors_of_all(&self, states: &[u32], out: &mut Successors, firsts: &mut Vec<u32>) {
        one_by_one(self, states, out, firsts);
    }

    /// The steps and states on the way to the `number`-th successor of `state`, which comes last. There is
    /// more than one only where an atomic chain hides states.
    fn path(&self, state: &[u32], number: usize) -> Vec<(Step, Vec<u32>)> {
        one_step(self, state, number)
    }

    /// May [`Model::violated`] give a property? If not, nobody needs to ask.
    fn has_properties(&self) -> bool {
        true
    }

    /// The first property that `state` violates (or, for a goal, reaches), by number. Whoever told the model to give up
    /// ([`Patience`]) must not rely on it.
    fn violated(&self, state: &[u32]) -> Option<u32> {
        let _ = state;
        None
    }

    /// Does `state` violate (or reach) this property, whatever else it violates?
    fn violates(&self, state: &[u32], property: u32) -> bool {
        self.violated(state) == Some(property)
    }

    /// Is a state without successors a proper end rather than a deadlock?
    fn accepts_end(&self, state: &[u32]) -> bool {
        let _ = state;
        false
    }

    /// What counts as a deadlock, and where faults lead.
    fn conventions(&self) -> Conventions {
        Conventions::default()
    }

    /// May the two steps be swapped wherever both are enabled, neither disabling the other?
    fn independent(&self, one: Step, other: Step) -> bool {
        let _ = (one, other);
        false
    }

    /// How much a step does: one of [`kinds`], 0 if nobody knows. Caches may use it to decide what to forget.
    fn kind(&self, step: Step) -> u8 {
        let _ = step;
        0
    }
}

/// What a step does, from a mere move of control on; see [`Model::kind`].
pub mod kinds {
    pub const CONTROL: u8 = 1;
    pub const RECEIVE: u8 = 2;
    pub const SEND: u8 = 3;
    pub const ASSIGN: u8 = 4;
    pub const OTHER: u8 = 5;
}

/// Choices in which modelling languages differ and searches must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Conventions {
    /// A state whose only successor is itself counts as deadlocked too.
    pub stuttering_is_deadlock: bool,
    /// No state counts as deadlocked.
    pub deadlock_is_fine: bool,
    /// When the search goes on after faults, all of them lead to one error state (else to none).
    pub faults_absorb: bool,
}

/// The initial state of this number, with its step.
pub fn nth_initial(model: &(impl Model + ?Sized), mut number: usize) -> Option<(Step, Vec<u32>)> {
    let mut out = Successors::new(model.width());
    for part in 0.. {
        let more = model.initial_part(part, &mut out);
        if number < out.len() {
            return Some((out.step(number), out.state(number).to_vec()));
        }
        number -= out.len();
        out.clear();
        if !more {
            break;
        }
    }
    None
}

fn one_by_one(model: &(impl Model + ?Sized), states: &[u32], out: &mut Successors, firsts: &mut Vec<u32>) {
    for state in states.chunks_exact(model.width()) {
        firsts.push(out.len() as u32);
        if out.gave_up().is_none() {
            model.successors(state, out);
        }
    }
}

/// The path to a successor where no chain hides states.
fn one_step(model: &(impl Model + ?Sized), state: &[u32], number: usize) -> Vec<(Step, Vec<u32>)> {
    let mut out = Successors::new(model.width());
    model.successors(state, &mut out);
    vec![(out.step(number), out.state(number).to_vec())]
}
