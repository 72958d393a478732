//! The representative of an orbit.
//!
//! Where nothing relates elements to one another, they are sorted. Else they are ordered by rank. Where ranks are equal, one element after the other is singled out, each in turn, ranks
//! are refined after each, and the smallest of the states that result is taken; heuristic precision is content after a
//! few tries, and where many are equal it tries none. Of elements whose exchange changes nothing only one is tried; and when a state comes out a second time,
//! the rest of what was tried there would repeat what was tried before, and is left out. After B. D. McKay: Practical
//! graph isomorphism (1981).

use super::Precision;
use super::pieces::{Loaded, Pieces};
use super::plain::Plain;
use super::ranks::Ranks;
use super::relations::{Relations, bit};
use crate::jit::represent::Represent;
use crate::{Step, Successors};
use plimsoll_ir::{Layout, Symmetry, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// Of how many elements of equal rank heuristic precision tries orders, and how many orders.
const FEW: u32 = 12;
const FEW_TRIES: u64 = 16;

pub struct Canon {
    pieces: Pieces,
    plain: Option<Plain>,
    /// Distinguishes it from others.
    number: u64,
    native: Option<Represent>,
}

/// Reused memory.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Whose states it has seen.
    owner: u64,
    relations: Relations,
    /// By how many elements are singled out.
    ranks: Vec<Ranks>,
    loaded: Loaded,
    /// The same with bags in order.
    sorted: Vec<u64>,
    trial: Vec<u64>,
    best: Vec<u64>,
    /// By how much the numbers of elements change.
    by: Vec<u64>,
    swapped: Vec<u32>,
    /// For each element the first of those with which it can be exchanged without changing the state.
    twin: Vec<u32>,
    /// The elements singled out, now and for the best state.
    path: Vec<u32>,
    best_path: Vec<u32>,
    /// So many orders may still be tried.
    tries: u64,
    /// Of native code.
    native: Vec<u64>,
}

impl Canon {
    pub fn new(layout: &Layout, system: &System, symmetry: &Symmetry) -> Option<Canon> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pieces = Pieces::of(layout, system, symmetry)?;
        Some(Canon { plain: Plain::of(&pieces), pieces, number, native: None })
    }

    /// How much native code there would be, in operators.
    pub fn operators(&self) -> usize {
        Represent::operators(&self.pieces, self.plain.as_ref())
    }

    /// Makes native code for states of so many words; false if that cannot be.
    pub fn compile(&mut self, width: usize) -> bool {
        self.native = Represent::new(&self.pieces, self.plain.as_ref(), width);
        self.native.is_some()
    }

    /// Replaces a state by the representative of its orbit.
    pub fn represent(&self, state: &mut [u32], precision: Precision, scratch: &mut Scratch) {
        // No state is its own complement.
        let known: Vec<u32> = state.iter().map(|word| !word).collect();
        self.represent_all((state, &[0]), &known, precision, scratch);
    }

    /// Replaces those successors from `first` on whose steps did not go wrong, but for those that are the state `known`.
    pub fn represent_from(&self, out: &mut Successors, first: usize, known: &[u32], precision: Precision) {
        let mut scratch = out.canon.take().unwrap_or_default();
        self.represent_all(out.entries_mut(first), known, precision, &mut scratch);
        out.canon = Some(scratch);
    }

    /// The same of states that lie end to end, with the marks of their steps.
    fn represent_all(
        &self,
        (states, steps): (&mut [u32], &[u32]),
        known: &[u32],
        precision: Precision,
        scratch: &mut Scratch,
    ) {
        if scratch.owner != self.number {
            *scratch = Scratch { owner: self.number, ..Scratch::default() };
        }
        if self.pieces.all.is_empty() {
            return;
        }
        if let Some(native) = &self.native {
            let mut memory = std::mem::take(&mut scratch.native);
            let open = |state: &mut [u32]| self.find(state, precision, scratch);
            native.find(&self.pieces, (states, steps), known, &mut memory, open);
            scratch.native = memory;
            return;
        }
        for (state, &step) in states.chunks_exact_mut(known.len()).zip(steps) {
            if !Step(step).is_fault() && *state != *known {
                self.find(state, precision, scratch);
            }
        }
    }

    /// The same without native code.
    fn find(&self, state: &mut [u32], precision: Precision, scratch: &mut Scratch) {
        self.pieces.load(state, &mut scratch.loaded);
        let (values, plain) = (&scratch.loaded.values, self.plain.as_ref());
        if plain.is_some_and(|plain| plain.represent(&self.pieces, values, &mut scratch.best)) {
            return self.store(state, &scratch.loaded.values, &scratch.best);
        }
        scratch.relations.read(&self.pieces, &scratch.loaded.values);
        if scratch.ranks.is_empty() {
            scratch.ranks.push(Ranks::default());
        }
        scratch.ranks[0].compute(&self.pieces, &mut scratch.relations);
        scratch.best.clear();
        let tied: u32 = scratch.ranks[0].ties.iter().map(|(first, end)| end - first).sum();
        if tied > 0 && (precision == Precision::Exact || tied <= FEW) {
            self.find_twins(scratch);
            scratch.path.clear();
            scratch.tries = if precision == Precision::Exact { u64::MAX } else { FEW_TRIES };
            self.try_orders(0, scratch);
        } else {
            self.rename(0, scratch);
            std::mem::swap(&mut scratch.best, &mut scratch.trial);
        }
        self.store(state, &scratch.loaded.values, &scratch.best);
    }

    /// The same as if elements might be related.
    #[cfg(test)]
    pub fn without_plain(self) -> Canon {
        Canon { plain: None, ..self }
    }

    #[cfg(test)]
    pub fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// Would elements be sorted but for leaders that are not told apart?
    #[cfg(test)]
    pub fn is_undecided(&self, state: &[u32]) -> bool {
        let (mut loaded, mut out) = (Loaded::default(), Vec::new());
        self.pieces.load(state, &mut loaded);
        self.plain.as_ref().is_some_and(|plain| !plain.represent(&self.pieces, &loaded.values, &mut out))
    }

    /// Only puts the bags in order.
    #[cfg(test)]
    pub fn sorted(&self, state: &mut [u32], scratch: &mut Scratch) {
        self.pieces.load(state, &mut scratch.loaded);
        self.sort(scratch);
        self.store(state, &scratch.loaded.values, &scratch.sorted);
    }

    fn sort(&self, scratch: &mut Scratch) {
        scratch.sorted.clone_from(&scratch.loaded.values);
        self.pieces.sort_bags(&mut scratch.sorted);
    }

    fn store(&self, state: &mut [u32], loaded: &[u64], values: &[u64]) {
        for (piece, (&before, &value)) in loaded.iter().zip(values).enumerate() {
            if before != value {
                self.pieces.store(state, piece, value);
            }
        }
    }

    /// Among elements of equal rank, finds those that can be exchanged without changing the state.
    fn find_twins(&self, scratch: &mut Scratch) {
        self.sort(scratch);
        scratch.twin.clear();
        scratch.twin.extend(0..self.pieces.elements() as u32);
        for tie in 0..scratch.ranks[0].ties.len() {
            let (first, end) = scratch.ranks[0].ties[tie];
            for at in first + 1..end {
                let me = scratch.ranks[0].order[at as usize];
                for earlier in first..at {
                    let other = scratch.ranks[0].order[earlier as usize];
                    if scratch.twin[other as usize] == other && self.can_be_exchanged(me, other, scratch) {
                        scratch.twin[me as usize] = other;
                        break;
                    }
                }
            }
        }
    }

    fn can_be_exchanged(&self, one: u32, other: u32, scratch: &mut Scratch) -> bool {
        let own = |element: u32| self.pieces.own[element as usize].iter().map(|&piece| scratch.sorted[piece as usize]);
        if !scratch.relations.is_related(one) && !scratch.relations.is_related(other) {
            return own(one).eq(own(other));
        }
        scratch.swapped.clear();
        scratch.swapped.extend(0..self.pieces.elements() as u32);
        scratch.swapped.swap(one as usize, other as usize);
        self.pieces.renaming(&scratch.swapped, &mut scratch.by);
        let (values, moved) = (&scratch.loaded.values, bit(one) | bit(other));
        self.pieces.rename(values, &scratch.relations, moved, &scratch.by, &mut scratch.trial);
        self.pieces.sort_bags(&mut scratch.trial);
        scratch.trial == scratch.sorted
    }

    /// Tries every order that could make a difference and keeps the smallest state. `depth` elements are singled out.
    /// Returns how many of them still have something left to be tried.
    fn try_orders(&self, depth: usize, scratch: &mut Scratch) -> usize {
        let Some(tie) = self.open_tie(depth, scratch) else {
            return self.compare(depth, scratch);
        };
        if scratch.ranks.len() == depth + 1 {
            scratch.ranks.push(Ranks::default());
        }
        for at in tie.0..tie.1 {
            if scratch.tries == 0 {
                return 0;
            }
            let order = &scratch.ranks[depth].order;
            let element = order[at as usize];
            let same = |&earlier: &u32| scratch.twin[earlier as usize] == scratch.twin[element as usize];
            if order[tie.0 as usize..at as usize].iter().any(same) {
                continue;
            }
            let (from, next) = scratch.ranks.split_at_mut(depth + 1);
            next[0].single_out(&from[depth], element, &mut scratch.relations);
            scratch.path.push(element);
            let left = self.try_orders(depth + 1, scratch);
            scratch.path.pop();
            if left < depth {
                return left;
            }
        }
        depth
    }

    /// The first elements of equal rank that are not all twins.
    fn open_tie(&self, depth: usize, scratch: &Scratch) -> Option<(u32, u32)> {
        let ranks = &scratch.ranks[depth];
        let twin = |place: u32| scratch.twin[ranks.order[place as usize] as usize];
        ranks.ties.iter().copied().find(|&(first, end)| (first + 1..end).any(|at| twin(at) != twin(first)))
    }

    /// Compares the state that results from an order with the best one so far.
    fn compare(&self, depth: usize, scratch: &mut Scratch) -> usize {
        self.rename(depth, scratch);
        scratch.tries -= 1;
        if scratch.best == scratch.trial {
            // The orders differ by a symmetry of the state. It maps what was tried behind the best one, where the two
            // ways part, to what is being tried here.
            let both = scratch.path.iter().zip(&scratch.best_path);
            return both.take_while(|(one, other)| one == other).count();
        }
        if scratch.best.is_empty() || scratch.trial < scratch.best {
            std::mem::swap(&mut scratch.best, &mut scratch.trial);
            scratch.best_path.clone_from(&scratch.path);
        }
        depth
    }

    /// The state with all elements renamed by their order, into `trial`.
    fn rename(&self, depth: usize, scratch: &mut Scratch) {
        let order = &scratch.ranks[depth].order;
        let moved = |(place, &element): (usize, &u32)| if place as u32 == element { 0 } else { bit(element) };
        let moved = order.iter().enumerate().map(moved).fold(0, |all, one| all | one);
        self.pieces.renaming(order, &mut scratch.by);
        self.pieces.rename(&scratch.loaded.values, &scratch.relations, moved, &scratch.by, &mut scratch.trial);
        self.pieces.sort_bags(&mut scratch.trial);
    }
}
