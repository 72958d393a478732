//! A block of states and their successors: what a worker makes by itself, before anything is known about the store.

use crate::trace::{is_deadlock, keep_sound_starts};
use crate::verdict::Why;
use plimsoll_model::{Conventions, Model, Step, Successors};
use plimsoll_store::{Block, Full, Scratch, SharedCoder, Tiers};

/// What the store asks of those who prepare blocks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// What kind of step led to each successor.
    pub kinds: bool,
    /// The keys of the states that are expanded.
    pub parents: bool,
}

impl Needs {
    pub fn of(tiers: &Tiers) -> Needs {
        Needs { kinds: tiers.wants_kinds(), parents: tiers.wants_parents() }
    }
}

/// One part of the initial states.
pub(super) struct Starts {
    /// Their numbers.
    pub positions: Vec<u32>,
    /// Starts that went wrong.
    pub wrong: Vec<(u32, Step)>,
    /// The number of the next one, if there is another part.
    pub next: Option<u32>,
}

pub(super) struct Expansion {
    /// How far away the states are; the successors are one step further.
    pub level: u32,
    /// The states, end to end.
    pub parents: Vec<u32>,
    pub out: Successors,
    /// For each of the states, its first successor in `out`; one more at the end.
    pub firsts: Vec<u32>,
    /// Positions in `out` of steps that lead nowhere.
    pub skip: Vec<u32>,
    /// And of all steps that went wrong.
    pub wrong: Vec<u32>,
    /// Which of the states are deadlocked.
    pub deadlocks: Vec<u32>,
    kinds: Vec<u8>,
    scratch: Scratch,
    /// There was no room for the keys.
    pub full: bool,
    /// The states could not be had.
    pub failure: Option<Why>,
    /// Positions in `out` of states that the store did not hold.
    pub fresh: Vec<u32>,
}

impl Expansion {
    pub fn new(width: usize) -> Expansion {
        Expansion {
            level: 0,
            parents: Vec::new(),
            out: Successors::new(width),
            firsts: Vec::new(),
            skip: Vec::new(),
            wrong: Vec::new(),
            deadlocks: Vec::new(),
            kinds: Vec::new(),
            scratch: Scratch::default(),
            full: false,
            failure: None,
            fresh: Vec::new(),
        }
    }

    /// How many states are expanded.
    pub fn len(&self) -> usize {
        self.parents.len() / self.out.width()
    }

    /// Lets the model write one part of the initial states, which go on from number `first`.
    pub fn start<M: Model + ?Sized>(&mut self, model: &M, needs: Needs, part: u32, first: u32) -> Starts {
        self.out.clear();
        let more = model.initial_part(part, &mut self.out);
        self.failure = self.out.gave_up().map(Why::from);
        let steps = self.out.iter().enumerate().map(|(position, (_, step))| (first + position as u32, step));
        let wrong = steps.filter(|(_, step)| !step.is_plain()).collect();
        let next = more.then_some(first + self.out.len() as u32);
        let positions = keep_sound_starts(&mut self.out, first);
        self.firsts.clear();
        self.firsts.extend([0, self.out.len() as u32]);
        self.note_kinds(model, needs);
        Starts { positions, wrong, next }
    }

    /// Lets the model write all successors of the states.
    pub fn expand<M: Model + ?Sized>(&mut self, model: &M, conventions: &Conventions, needs: Needs) {
        let Expansion { parents, out, firsts, deadlocks, .. } = self;
        out.clear();
        firsts.clear();
        deadlocks.clear();
        model.successors_of_all(parents, out, firsts);
        firsts.push(out.len() as u32);
        if let Some(why) = out.gave_up() {
            self.failure = Some(why.into());
            return;
        }
        for (index, bounds) in firsts.windows(2).enumerate() {
            if bounds[0] == bounds[1] || conventions.stuttering_is_deadlock {
                let state = &parents[index * out.width()..][..out.width()];
                if is_deadlock(model, state, out, bounds[0] as usize..bounds[1] as usize) {
                    deadlocks.push(index as u32);
                }
            }
        }
        self.mark_wrong();
        self.note_kinds(model, needs);
    }

    /// Looks for steps that went wrong. Where they lead nowhere, their places in the block are given the state they
    /// were taken in, which is known, so that the block can be inserted as it is.
    fn mark_wrong(&mut self) {
        let Expansion { parents, out, firsts, skip, wrong, .. } = self;
        skip.clear();
        wrong.clear();
        if out.steps().iter().fold(0, |all, &step| all | step) < Step::LIMIT {
            return;
        }
        for (parent, bounds) in parents.chunks_exact(out.width()).zip(firsts.windows(2)) {
            for position in bounds[0]..bounds[1] {
                let step = out.step(position as usize);
                if step.is_plain() {
                    continue;
                }
                wrong.push(position);
                if step.is_fault() {
                    out.state_mut(position as usize).copy_from_slice(parent);
                    skip.push(position);
                }
            }
        }
    }

    fn note_kinds<M: Model + ?Sized>(&mut self, model: &M, needs: Needs) {
        if needs.kinds {
            self.kinds.clear();
            self.kinds.extend(self.out.iter().map(|(_, step)| model.kind(step)));
        }
    }

    /// Computes the keys of the successors.
    pub fn encode(&mut self, coder: &SharedCoder, needs: Needs) {
        let (block, scratch) = self.as_block();
        self.full = coder.encode(block, scratch, needs.parents) == Err(Full);
    }

    /// Lets the store learn how to encode better, if it is time for that, and makes sure that the keys are as it wants
    /// them, now that the turn of this block has come.
    pub fn settle(&mut self, coder: &SharedCoder, tiers: &mut Tiers, needs: Needs) {
        coder.learn_from(tiers);
        let room = self.full && tiers.forget_sample();
        if room || !self.full && !tiers.accept(&self.scratch) {
            self.encode(coder, needs);
        }
    }

    /// Inserts the successors, whose keys were computed; see [`Tiers::insert`].
    pub fn insert(&mut self, tiers: &mut Tiers) -> Result<(), Full> {
        if self.full {
            self.fresh.clear();
            return Err(Full);
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        let (block, scratch) = self.as_block();
        let inserted = tiers.insert(block, scratch, &mut fresh);
        self.fresh = fresh;
        inserted
    }

    fn as_block(&mut self) -> (Block<'_>, &mut Scratch) {
        let Expansion { parents, firsts, skip, kinds, scratch, level, .. } = self;
        // Initial states have no parents.
        let depth = if parents.is_empty() { 0 } else { *level + 1 };
        (Block { parents, firsts, states: self.out.states(), skip, kinds, depth }, scratch)
    }
}
