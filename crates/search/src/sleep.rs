//! Sleep sets: of two steps that can be swapped only one order is followed (Godefroid, Holzmann and Pirottin 1992).
//!
//! At a state, steps in its sleep set are not taken; a step leads to its target with the sleeping steps and the
//! earlier siblings that can be swapped with it here (see [`crate::swaps`]). A step whose target is on the path does not
//! sleep: the paper says so where a step is put to sleep, [`Rule::Checked`] at every state that inherits it.
//!
//! **`Checked` visits all reachable states**, with or without eviction. Claim: when g is entered, the targets of the steps
//! asleep there have been visited, and left, before. Let g be entered from f by x, and v asleep at g. Then v(f) has been
//! left before: either v was asleep at f, or it was taken there earlier and v(f) was not on the path. When v(f) was left,
//! x had been taken there, or was asleep there; so x(v(f)), which is v(g), had been visited. It is not on the path now,
//! so it has been left. Hence every enabled step of a visited state leads to a visited state. Deadlocks, invariants,
//! faults and failed assertions are preserved: each visit looks at all successors.
//!
//! [`Rule::Published`] looks at the path only once; x(v(f)) may be on the path then, with steps that are still to come, and
//! states are lost, though rarely (`crates/search/tests/oracle.rs` has a system). It proves nothing.

use crate::swaps::{Asked, Swaps};
use plimsoll_model::{Model, Step, Successors};
use plimsoll_store::{Grant, Shortage, Stack, hash};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// Words of a waiting successor beside its state: step and position.
const BESIDE: usize = 2;
/// The step that marks initial states: they are no choice of the system's, and nothing swaps with them.
pub(crate) const START: u32 = u32::MAX;
/// Marks a step that led to a state on the path.
const AWAKE: u32 = 1 << 31;

/// When a step may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Checked,
    Published,
}

/// What a depth-first search needs to put steps to sleep.
#[derive(Debug)]
pub struct Sleep {
    pub(crate) rule: Rule,
    swaps: Swaps,
    path: Path,
    /// For each frame of the search's stack, who is asleep there.
    frames: Stack,
    /// Who sleeps at the state that is entered.
    asleep: Vec<u32>,
    awake: Vec<u32>,
}

impl Sleep {
    pub fn new(rule: Rule, grant: &Grant) -> Sleep {
        let asked = if rule == Rule::Published { Asked::Channels } else { Asked::Promising };
        let frames = Stack::new(1, grant.clone());
        let path = Path::new(grant.clone());
        Sleep { rule, swaps: Swaps::new(asked), path, frames, asleep: Vec::new(), awake: Vec::new() }
    }

    /// Words per successor on the stack of the search, for states of `width` words.
    pub fn item_words(width: usize) -> usize {
        width + BESIDE
    }

    pub(crate) fn sleeps(&self, step: Step) -> bool {
        self.asleep.contains(&step.instance())
    }

    /// The item last taken from the top frame of `stack` leads to a state that is known.
    pub(crate) fn met(&mut self, state: &[u32], stack: &mut Stack) {
        if self.path.may_hold(state) {
            stack.last_taken()[state.len()] |= AWAKE;
        }
    }

    /// Decides who sleeps at `state`, the target of the item last taken from the top frame of `stack`.
    pub(crate) fn enter<M: Model + ?Sized>(
        &mut self,
        model: &M,
        state: &[u32],
        stack: &mut Stack,
    ) -> Result<(), Shortage> {
        let width = state.len();
        self.asleep.clear();
        self.awake.clear();
        let mut earlier = stack.taken().map(|item| item[width]);
        let taken = earlier.next_back().expect("one was taken");
        if taken != START {
            for step in earlier {
                if step & AWAKE == 0 { self.asleep.push(step) } else { self.awake.push(step ^ AWAKE) }
            }
            self.asleep.retain(|step| !self.awake.contains(step) && *step != taken);
            self.asleep.extend_from_slice(self.frames.frame());
            self.asleep.sort_unstable();
            self.asleep.dedup();
            let source = &stack.source().expect("only initial states have none")[..width];
            self.swaps.keep(model, source, Step(taken), &mut self.asleep);
        }
        self.path.push(state)
    }

    /// These are the successors of the state that was entered: steps to states on the path do not sleep there.
    pub(crate) fn look_at(&mut self, successors: &Successors) {
        if self.rule == Rule::Published {
            return;
        }
        let (asleep, path) = (&mut self.asleep, &self.path);
        for (state, step) in successors.iter().filter(|(_, step)| !step.is_fault()) {
            if let Some(place) = asleep.iter().position(|&sleeping| sleeping == step.instance())
                && path.may_hold(state)
            {
                asleep.swap_remove(place);
            }
        }
    }

    /// A frame was pushed for the state that was entered.
    pub(crate) fn push(&mut self) -> Result<(), Shortage> {
        self.frames.push(&self.asleep, 0)
    }

    /// The state on top is left; the frame of initial states has none.
    pub(crate) fn pop(&mut self) -> Result<(), Shortage> {
        self.frames.pop()?;
        self.path.pop()
    }
}

/// The states on the current path, by hash: it may say yes for others, never no for one of them.
#[derive(Debug)]
struct Path {
    hashes: Stack,
    /// How many states of the path have this hash.
    counts: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    grant: Grant,
}

/// Memory of a counter, roughly.
const BYTES_PER_COUNTER: u64 = 24;

impl Path {
    fn new(grant: Grant) -> Path {
        Path { hashes: Stack::new(2, grant.clone()), counts: HashMap::default(), grant }
    }

    fn may_hold(&self, state: &[u32]) -> bool {
        self.counts.contains_key(&hash::words(state))
    }

    fn push(&mut self, state: &[u32]) -> Result<(), Shortage> {
        let hash = hash::words(state);
        let capacity = self.counts.capacity();
        if self.counts.len() == capacity && !self.grant.take((capacity as u64 + 1) * BYTES_PER_COUNTER) {
            return Err(Shortage::Memory);
        }
        self.hashes.push(&[hash as u32, (hash >> 32) as u32], 0)?;
        *self.counts.entry(hash).or_default() += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<(), Shortage> {
        let words = self.hashes.frame();
        let hash = words[0] as u64 | (words[1] as u64) << 32;
        self.hashes.pop()?;
        if let Entry::Occupied(mut count) = self.counts.entry(hash) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Ok(())
    }
}

/// The hash of a hash is the hash.
#[derive(Clone, Copy, Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_holds_what_is_on_it() {
        let mut path = Path::new(Grant::unlimited());
        for state in 0..1_000u32 {
            assert!(path.push(&[state, 7]).is_ok());
        }
        assert!(path.push(&[5, 7]).is_ok());
        assert!((0..1_000).all(|state| path.may_hold(&[state, 7]) && !path.may_hold(&[state, 8])));
        (0..990).for_each(|_| path.pop().unwrap());
        assert_eq!((0..1_000).filter(|&state| path.may_hold(&[state, 7])).count(), 11);
    }
}
