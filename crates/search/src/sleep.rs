//! Sleep sets: of two independent steps only one order is followed (Godefroid, Holzmann and Pirottin 1992).
//!
//! At a state, steps in its sleep set are not taken; a step leads to its target with the sleeping steps and the
//! earlier siblings that are independent of it. **The set is kept with the state.** When a state is met again
//! with a set Z, its kept set K becomes K ∩ Z, and the steps of K \ Z, which nobody took so far, are taken now,
//! with only K ∩ Z asleep. (To skip every state that is known, as the paper does, loses states where the
//! graph has cycles: `crates/search/tests/oracle.rs` has such systems.)
//!
//! **All reachable states are visited**, with or without eviction. Suppose x is not; take a visit (state s, asleep
//! R) and a shortest way w from s to x such that no step w can begin with (in any order its independent steps
//! allow) is in R; the first visit is one. All such steps were taken at s since it was inserted; let t be the
//! first of them taken in the last visit that took any: nothing asleep then can begin w, so what is asleep at
//! t's target cannot begin the rest of w, which is shorter. Hence deadlocks, invariants, faults and failed
//! assertions are preserved too: they belong to a state, and each visit looks at all successors.

use plimsoll_model::{Model, Step};
use plimsoll_store::{Full, Grant, Stack};
use std::collections::HashMap;

/// Words of a waiting successor beside its state: step and position.
const BESIDE: usize = 2;
/// The number of the empty set.
pub(crate) const NOBODY: u32 = 0;
/// Memory of a set in the table beside its steps, roughly.
const BYTES_PER_SET: u64 = 96;

/// What a depth-first search needs to put steps to sleep.
#[derive(Debug)]
pub struct Sleep {
    /// For each frame of the search's stack, who is asleep there.
    frames: Stack,
    sets: Sets,
    /// Sets under construction.
    pub(crate) asleep: Vec<u32>,
    pub(crate) woken: Vec<u32>,
}

/// Different sets of steps, numbered. Sets of forgotten states stay.
#[derive(Debug)]
struct Sets {
    numbers: HashMap<Box<[u32]>, u32>,
    sets: Vec<Box<[u32]>>,
    grant: Grant,
}

impl Sleep {
    /// Sleep sets within a grant. When it is used up, states are visited with nobody asleep: more work, no loss.
    pub fn new(grant: &Grant) -> Sleep {
        let numbers = HashMap::from([(Box::default(), NOBODY)]);
        let sets = Sets { numbers, sets: vec![Box::default()], grant: grant.clone() };
        Sleep { frames: Stack::new(1, grant.clone()), sets, asleep: Vec::new(), woken: Vec::new() }
    }

    /// Words per successor on the stack of the search, for states of `width` words.
    pub fn item_words(width: usize) -> usize {
        width + BESIDE
    }

    /// Puts into `asleep` who sleeps at the target of the item last taken from the top frame of `stack`.
    pub(crate) fn descend<M: Model + ?Sized>(&mut self, model: &M, stack: &mut Stack, width: usize) {
        self.asleep.clear();
        let (items, taken) = stack.frame();
        let step = |item: &[u32]| Step(item[width]);
        let mut earlier = items.chunks_exact(width + BESIDE).take(taken);
        let taken_step = step(earlier.next_back().expect("one was taken"));
        if stack_is_at_starts(taken_step) {
            return;
        }
        let (sleeping, _) = self.frames.frame();
        let candidates = sleeping.iter().map(|&step| Step(step)).chain(earlier.map(step));
        self.asleep.extend(candidates.filter(|&other| model.independent(other, taken_step)).map(|step| step.0));
        self.asleep.sort_unstable();
        self.asleep.dedup();
    }

    /// The number of the set `asleep`; if it cannot be kept, nobody is.
    pub(crate) fn keep(&mut self) -> u32 {
        match self.sets.number(&self.asleep) {
            Some(number) => number,
            None => {
                self.asleep.clear();
                NOBODY
            }
        }
    }

    /// A state whose kept set is `number` is met with `asleep`. Who sleeps in the kept set only goes to `woken`; who
    /// sleeps in both stays in `asleep`. Returns the number of the latter set, or nothing if nobody wakes.
    pub(crate) fn meet(&mut self, number: u32) -> Option<u32> {
        let kept = &self.sets.sets[number as usize];
        let asleep = &self.asleep;
        self.woken.clear();
        self.woken.extend(kept.iter().filter(|step| asleep.binary_search(step).is_err()));
        if self.woken.is_empty() {
            return None;
        }
        self.asleep.retain(|step| kept.binary_search(step).is_ok());
        if let Some(both) = self.sets.number(&self.asleep) {
            return Some(both);
        }
        self.woken.clear();
        self.woken.extend_from_slice(&self.sets.sets[number as usize]);
        self.asleep.clear();
        Some(NOBODY)
    }

    /// A frame was pushed: those in `asleep` sleep there.
    pub(crate) fn push(&mut self) -> Result<(), Full> {
        self.frames.push(&self.asleep, 0)
    }

    pub(crate) fn pop(&mut self) {
        self.frames.pop();
    }
}

/// The step that marks initial states: they are no choice of the system's, and nothing is independent of them.
pub(crate) const START: u32 = u32::MAX;

fn stack_is_at_starts(step: Step) -> bool {
    step.0 == START
}

impl Sets {
    fn number(&mut self, set: &[u32]) -> Option<u32> {
        if let Some(&number) = self.numbers.get(set) {
            return Some(number);
        }
        if !self.grant.take(BYTES_PER_SET + 8 * set.len() as u64) {
            return None;
        }
        let number = self.sets.len() as u32;
        self.sets.push(set.into());
        self.numbers.insert(set.into(), number);
        Some(number)
    }
}
