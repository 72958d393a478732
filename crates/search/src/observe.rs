//! Somebody who looks on while a search goes through a model.
//!
//! Everything is told in order, whatever the number of workers: the initial states, then block by block what was expanded and
//! what it led to. Fresh states get the next numbers in the order of their positions, so an observer can write down the graph
//! while it is found. Where a search ends early, blocks that were not entered whole are not told.
//!
//! A search that goes on on disk knows only at the end of a level what is fresh. Then blocks say nothing about it, and what was
//! found to be fresh is told as the level is sealed.
//!
//! A depth-first search tells of each state when it is entered, which gives it its number, and then what it leads to; which of
//! that will be entered nobody knows yet.

use crate::verdict::Why;
use plimsoll_model::Successors;
use plimsoll_store::{Block, Chain, Entry, Full, Keys, Needs};

/// A block of states that were expanded, or initial states.
pub struct Seen<'a> {
    /// The number of the first state that was expanded; the others follow.
    pub first: u64,
    /// What was found: whose successors they are, and which of them there are not, for the step goes wrong.
    pub block: Block<'a>,
    /// With which steps.
    pub successors: &'a Successors,
    /// Positions of states that the store did not hold; none if that is told later ([`Observer::fresh`]).
    pub fresh: Option<&'a [u32]>,
    /// The number of the first of those.
    pub first_fresh: u64,
    /// All successors as the store knows them.
    pub entry: &'a Entry,
    /// Will the keys of states stay as they are?
    pub settled: bool,
}

pub trait Observer {
    /// Some of the initial states.
    fn starts(&mut self, seen: &Seen) -> Result<(), Why>;

    /// States that were expanded. An error ends the search.
    fn block(&mut self, seen: &Seen) -> Result<(), Why>;

    /// The next state of a depth-first search, as the only one of a block.
    fn entered(&mut self, block: Block, entry: &Entry) -> Result<(), Why>;

    /// States of blocks of which it was not known what is fresh, in the order in which they are numbered.
    fn fresh(&mut self, keys: &[u128]) -> Result<(), Why>;

    /// All states so far have other keys from now on: those of the first ones, or of the next, in the order of their numbers.
    fn rekey(&mut self, keys: &Keys, are_first: bool);
}

/// Tells an observer of a depth-first search. Keys stay as they are only if the store learns nothing.
pub(crate) struct Teller<'a> {
    observer: &'a mut dyn Observer,
    entered: u64,
    entry: Entry,
    keys: Keys,
    skip: Vec<u32>,
}

impl<'a> Teller<'a> {
    pub fn new(observer: &'a mut dyn Observer, store: &mut Chain) -> Teller<'a> {
        store.tiers.forget_sample();
        Teller { observer, entered: 0, entry: Entry::default(), keys: Keys::default(), skip: Vec::new() }
    }

    fn encode(&mut self, store: &mut Chain, block: Block) -> Result<(), Why> {
        let needs = Needs { parents: false, lanes: false, ..store.tiers.needs() };
        let encoded = store.coder.reserve(block.len());
        encoded.and_then(|()| self.entry.encode(&store.coder, block, needs, &mut self.keys)).map_err(|Full| Why::Memory)
    }

    /// Some of the initial states.
    pub fn starts(&mut self, successors: &Successors) -> Result<(), Why> {
        let firsts = [0, successors.len() as u32];
        let block = Block::of(successors.states(), &firsts);
        self.observer.starts(&seen(0, block, successors, &Entry::default()))
    }

    /// The next state.
    pub fn entered(&mut self, store: &mut Chain, state: &[u32]) -> Result<(), Why> {
        let block = Block::of(state, &[0, 1]);
        self.encode(store, block)?;
        self.entered += 1;
        self.observer.entered(block, &self.entry)
    }

    /// What the state that was entered last leads to. Steps that go wrong lead to it.
    pub fn leads_to(&mut self, store: &mut Chain, successors: &Successors) -> Result<(), Why> {
        let firsts = [0, successors.len() as u32];
        let mut skip = std::mem::take(&mut self.skip);
        skip.clear();
        skip.extend((0..firsts[1]).filter(|&position| successors.step(position as usize).is_fault()));
        let block = Block { skip: &skip, ..Block::of(successors.states(), &firsts) };
        let told = self.encode(store, block).and_then(|()| {
            let seen = seen(self.entered - 1, block, successors, &self.entry);
            self.observer.block(&seen)
        });
        self.skip = skip;
        told
    }
}

/// A block of which it is not known what is fresh.
fn seen<'a>(first: u64, block: Block<'a>, successors: &'a Successors, entry: &'a Entry) -> Seen<'a> {
    Seen { first, block, successors, fresh: None, first_fresh: 0, entry, settled: true }
}
