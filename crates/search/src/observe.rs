//! Somebody who looks on while a breadth-first search goes through a model.
//!
//! Everything is told in order, whatever the number of workers: the initial states, then block by block what was expanded and
//! what it led to. Fresh states get the next numbers in the order of their positions, so an observer can write down the graph
//! while it is found. Where a search ends early, blocks that were not entered whole are not told.
//!
//! A search that goes on on disk knows only at the end of a level what is fresh. Then blocks say nothing about it, and what was
//! found to be fresh is told as the level is sealed.

use crate::verdict::Why;
use plimsoll_model::Successors;
use plimsoll_store::{Block, Entry, Keys};

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

    /// States of blocks of which it was not known what is fresh, in the order in which they are numbered.
    fn fresh(&mut self, keys: &[u128]) -> Result<(), Why>;

    /// All states so far have other keys from now on: those of the first ones, or of the next, in the order of their numbers.
    fn rekey(&mut self, keys: &Keys, are_first: bool);
}
