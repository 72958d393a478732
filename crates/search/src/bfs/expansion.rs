//! A block of states and their successors, on its way through a wave: expanded, entered shard by shard, numbered.

use crate::trace::{is_deadlock, keep_sound_starts};
use plimsoll_model::{Conventions, GaveUp, Model, Step, Successors};
use plimsoll_store::runs::Candidates;
use plimsoll_store::{Block, Entry, Keys, Needs, Piece, Recent, SharedCoder, Tiers};

/// So many places are filled at once with whose successors are there: more than most states have.
const OWNERS_AT_ONCE: usize = 8;

pub(super) struct Expansion {
    /// How far away the states are; the successors are one step further.
    pub level: u32,
    /// The number of the first state.
    pub first: u64,
    /// The states, end to end.
    pub parents: Vec<u32>,
    pub out: Successors,
    /// For each of the states, its first successor in `out`; one more at the end.
    pub firsts: Vec<u32>,
    /// And for each successor which of the states it belongs to; none for initial states.
    owners: Vec<u32>,
    /// Positions in `out` of steps that lead nowhere.
    pub skip: Vec<u32>,
    /// And of all steps that went wrong.
    pub wrong: Vec<u32>,
    /// Which of the states are deadlocked.
    pub deadlocks: Vec<u32>,
    kinds: Vec<u8>,
    pub entry: Entry,
    pub done: Done,
    /// The place of the first fresh state in the queue.
    pub place: usize,
    /// Positions in `out` of states that the store did not hold.
    pub fresh: Vec<u32>,
    /// Which of the states seem to have been expanded before, and their keys.
    parents_again: Vec<u32>,
    pub recognised: Vec<u128>,
    /// How they were found.
    pub steps: Piece,
    /// Those of them that violate or reach something.
    pub hits: Vec<Hit>,
    /// Keys that wait beside them, and what is written of one.
    keys: Vec<[u64; 2]>,
    record: Vec<u32>,
}

/// The fresh ones of some successors.
pub(super) struct Fresh<'a> {
    out: &'a Successors,
    positions: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for Fresh<'a> {
    type Item = &'a [u32];

    #[inline]
    fn next(&mut self) -> Option<&'a [u32]> {
        self.positions.next().map(|&position| self.out.state(position as usize))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl ExactSizeIterator for Fresh<'_> {}

/// A fresh state that violates or reaches a property.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    /// Which of the fresh states.
    pub index: u32,
    pub property: u32,
    /// Whose successor it is, and which.
    pub parent: u64,
    pub position: u32,
}

/// How far a block came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// It has keys.
    Encoded,
    /// There was no room for the keys, or they would not tell all states.
    Full,
    /// It was not expanded, for the search must end.
    Cut,
    /// The model could not expand it.
    GaveUp(GaveUp),
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

impl Expansion {
    pub fn new(width: usize) -> Expansion {
        Expansion {
            level: 0,
            first: 0,
            parents: Vec::new(),
            out: Successors::new(width),
            firsts: Vec::new(),
            owners: Vec::new(),
            skip: Vec::new(),
            wrong: Vec::new(),
            deadlocks: Vec::new(),
            kinds: Vec::new(),
            entry: Entry::default(),
            done: Done::Cut,
            place: 0,
            fresh: Vec::new(),
            parents_again: Vec::new(),
            recognised: Vec::new(),
            steps: Piece::default(),
            hits: Vec::new(),
            keys: Vec::new(),
            record: Vec::new(),
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
        let steps = self.out.iter().enumerate().map(|(position, (_, step))| (first + position as u32, step));
        let wrong = steps.filter(|(_, step)| !step.is_plain()).collect();
        let next = more.then_some(first + self.out.len() as u32);
        let positions = keep_sound_starts(&mut self.out, first);
        self.firsts.clear();
        self.firsts.extend([0, self.out.len() as u32]);
        self.owners.clear();
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
        if out.gave_up().is_some() {
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
        self.note_owners();
        self.mark_wrong();
        self.note_kinds(model, needs);
    }

    /// Notes for each successor whose it is, so that nobody who looks at one after the other has to guess where those of a state end. Here,
    /// too, nobody guesses: some are written at once, and those beyond the end are written over.
    fn note_owners(&mut self) {
        let Expansion { firsts, owners, out, .. } = self;
        owners.resize(out.len() + OWNERS_AT_ONCE, 0);
        for (owner, bounds) in (0..).zip(firsts.windows(2)) {
            let mut at = bounds[0] as usize;
            loop {
                owners[at..][..OWNERS_AT_ONCE].fill(owner);
                at += OWNERS_AT_ONCE;
                if at >= bounds[1] as usize {
                    break;
                }
            }
        }
        owners.truncate(out.len());
    }

    /// Looks for steps that went wrong. Where they lead nowhere, the state they were taken in stands for a successor, so
    /// that keys can be computed for the whole block.
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

    /// Computes the keys of the successors, but for those that the worker has met `lately`.
    pub fn encode(&mut self, coder: &SharedCoder, needs: Needs, keys: &mut Keys, lately: Option<&mut Recent>) {
        if let Some(why) = self.out.gave_up() {
            self.done = Done::GaveUp(why);
            return;
        }
        let mut entry = std::mem::take(&mut self.entry);
        let mut lately = lately.filter(|_| needs.fresh_only);
        let encoded = coder.encode(self.block(), &mut entry, needs, keys, lately.as_deref_mut());
        self.entry = entry;
        if let (Err(_), Some(lately)) = (encoded, lately) {
            lately.forget();
        }
        self.done = if encoded.is_ok() { Done::Encoded } else { Done::Full };
    }

    /// Finds out what is fresh, once all shards were entered.
    pub fn find_fresh(&mut self) {
        self.entry.fresh(&mut self.fresh);
    }

    /// Finds out which of the expanded states the store should hold for good, if it wants to know; also once all shards were entered.
    pub fn recognise(&mut self, coder: &SharedCoder, tiers: &Tiers, needs: Needs, keys: &mut Keys) {
        self.recognised.clear();
        if !needs.lanes || self.parents.is_empty() {
            return;
        }
        let (mut entry, mut again) = (std::mem::take(&mut self.entry), std::mem::take(&mut self.parents_again));
        let mut key = Vec::new();
        let lanes_of = |state: &[u32]| {
            key.clear();
            coder.keys_of(state, keys, &mut key).map_or(0, |()| key.first().map_or(0, |&key| tiers.lanes(key)))
        };
        entry.recognised(self.block(), &mut again, lanes_of);
        let width = self.out.width();
        let states: Vec<u32> =
            again.iter().flat_map(|&parent| &self.parents[parent as usize * width..][..width]).copied().collect();
        // They have been encoded before, and are a matter of time only.
        if coder.keys_of(&states, keys, &mut self.recognised).is_err() {
            self.recognised.clear();
        }
        (self.entry, self.parents_again) = (entry, again);
    }

    /// Lets what is fresh be queued from a place on, notes how it was found and looks for violations. For initial states `starts` gives
    /// their positions.
    pub fn number<M: Model + ?Sized>(&mut self, model: &M, starts: Option<&[u32]>, queue: impl FnOnce(usize, Fresh)) {
        let Expansion { fresh, firsts, owners, out, steps, hits, first, place, .. } = self;
        steps.clear();
        hits.clear();
        queue(*place, Fresh { out, positions: fresh.iter() });
        let has_properties = model.has_properties();
        for (index, &position) in fresh.iter().enumerate() {
            let (parent, position) = origin(*first, firsts, owners, starts, position);
            steps.push(parent, position);
            if has_properties && let Some(property) = model.violated(out.state(fresh[index] as usize)) {
                hits.push(Hit { index: index as u32, property, parent, position });
            }
        }
    }

    /// Puts what may be fresh where it waits until the disk was asked. Says, if it `looks_ahead`, whether something of
    /// it violates or reaches a property.
    pub fn set_aside<M: Model + ?Sized>(
        &mut self,
        model: &M,
        candidates: &Candidates,
        starts: Option<&[u32]>,
        looks_ahead: bool,
    ) -> bool {
        let Expansion { fresh, firsts, owners, out, steps, hits, first, place, entry, keys, record, .. } = self;
        steps.clear();
        hits.clear();
        entry.fresh_keys(keys);
        let mut hit = false;
        for (index, &position) in fresh.iter().enumerate() {
            let state = out.state(position as usize);
            let origin = origin(*first, firsts, owners, starts, position);
            candidates.write(*place + index, state, keys[index], origin, record);
            hit |= looks_ahead && !hit && model.violated(state).is_some();
        }
        hit
    }

    /// What the store is given.
    pub fn block(&self) -> Block<'_> {
        let Expansion { parents, firsts, owners, skip, kinds, level, out, .. } = self;
        // Initial states have no parents.
        let depth = if parents.is_empty() { 0 } else { *level + 1 };
        Block { parents, firsts, owners, states: out.states(), skip, kinds, depth }
    }
}

/// The number of the state that the successor at a position of a block was reached from, the first of which is number `first`, and which
/// successor of it that is. Initial states have only a position.
#[inline(always)]
fn origin(first: u64, firsts: &[u32], owners: &[u32], starts: Option<&[u32]>, position: u32) -> (u64, u32) {
    if let Some(positions) = starts {
        return (0, positions[position as usize]);
    }
    let owner = owners[position as usize];
    (first + owner as u64, position - firsts[owner as usize])
}
