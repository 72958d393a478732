//! Where blocks of states are given out to workers and come back, to be entered in the order they were given out in.
//!
//! Which states make up a block depends on the level and on the states of it alone, never on the workers: blocks of the
//! next level are given out before the current one is entered completely only while they are full.

use super::expansion::Expansion;
use super::ledger::{End, Ledger};
use crate::verdict::Why;
use plimsoll_model::Model;
use plimsoll_store::Queue;
use std::collections::VecDeque;

/// A block never has fewer states than this but at the end of a level (and where tests want tiny ones).
const LEAST_STATES: usize = 16;

pub(super) struct Desk<'a> {
    pub queue: &'a mut Queue,
    width: usize,
    /// Successors aimed at per block.
    block_successors: usize,
    /// The level whose blocks are entered now, and how many of its states were not given out.
    level: u32,
    left: u64,
    /// Blocks of that level that were given out and are not entered yet.
    under_way: usize,
    /// States of a block on this level and on the next.
    sizes: [usize; 2],
    /// Blocks that were given out, in order; none for those still worked on.
    blocks: VecDeque<Option<Expansion>>,
    /// The number of the first of them.
    first: u64,
    /// There are never more of them.
    most_blocks: usize,
    /// States in them.
    ahead: u64,
    spare: Vec<Expansion>,
    /// Workers that were started, those of them that wait, and those that were called and have not come yet.
    pub workers: usize,
    pub waiting: usize,
    pub called: usize,
    /// Those of them that were not told yet.
    pub calls: usize,
    pub end: Option<End>,
}

impl<'a> Desk<'a> {
    pub fn new(queue: &'a mut Queue, width: usize, block_successors: usize, most_blocks: usize) -> Desk<'a> {
        Desk {
            queue,
            width,
            block_successors,
            level: 0,
            left: 0,
            under_way: 0,
            sizes: [LEAST_STATES; 2],
            blocks: VecDeque::with_capacity(most_blocks),
            first: 0,
            most_blocks,
            ahead: 0,
            spare: Vec::new(),
            workers: 1,
            waiting: 0,
            called: 0,
            calls: 0,
            end: None,
        }
    }

    pub fn spare(&mut self) -> Expansion {
        self.spare.pop().unwrap_or_else(|| Expansion::new(self.width))
    }

    /// Is it worth waking somebody? That takes as long as a small block, so there must be work and room for a few.
    pub fn has_more(&self) -> bool {
        let (states, size) = if self.left > 0 { (self.left, self.sizes[0]) } else { (self.queue.len(), self.sizes[1]) };
        self.end.is_none() && self.blocks.len() <= self.most_blocks / 2 && states >= 2 * size as u64
    }

    /// Gives out the next block, with its number.
    pub fn give(&mut self) -> Option<(u64, Expansion)> {
        let (level, states) = self.next()?;
        let mut block = self.spare();
        block.level = level;
        match self.queue.take(states, &mut block.parents) {
            Ok(_) => {}
            Err(error) => block.failure = Some(error.into()),
        }
        self.ahead += block.len() as u64;
        if level == self.level {
            self.left -= block.len() as u64;
            self.under_way += 1;
        }
        self.blocks.push_back(None);
        Some((self.first + self.blocks.len() as u64 - 1, block))
    }

    /// Level and size of the next block.
    fn next(&self) -> Option<(u32, usize)> {
        let states = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.sizes[0]);
        if self.end.is_some() || self.blocks.len() >= self.most_blocks {
            None
        } else if states > 0 {
            Some((self.level, states))
        } else if self.queue.len() >= self.sizes[1] as u64 {
            Some((self.level + 1, self.sizes[1]))
        } else {
            None
        }
    }

    /// Takes back a block that was expanded and encoded.
    pub fn take_back(&mut self, number: u64, block: Expansion) {
        self.blocks[(number - self.first) as usize] = Some(block);
    }

    /// The block that must be entered next, if it came back.
    pub fn next_to_enter(&mut self) -> Option<Expansion> {
        if self.end.is_some() || !matches!(self.blocks.front(), Some(Some(_))) {
            return None;
        }
        self.first += 1;
        let block = self.blocks.pop_front().flatten()?;
        self.ahead -= block.len() as u64;
        Some(block)
    }

    /// Queues what is fresh in a block that was entered.
    pub fn queue_fresh<M: ?Sized>(&mut self, block: &Expansion, ledger: &mut Ledger<M>) -> Result<(), Why> {
        for &position in &block.fresh {
            self.queue.push(block.out.state(position as usize))?;
        }
        ledger.stats.frontier = self.frontier();
        ledger.stats.widest_frontier = ledger.stats.widest_frontier.max(ledger.stats.frontier);
        Ok(())
    }

    /// States that were found and whose successors are not entered.
    pub fn frontier(&self) -> u64 {
        self.queue.len() + self.ahead
    }

    /// Puts away a block that was entered; at the end of a level the next one begins.
    pub fn put_away<M: Model + ?Sized>(&mut self, block: Expansion, ledger: &mut Ledger<M>) {
        if ledger.ends_within(block.level) {
            self.end = Some(End::Found);
        }
        self.spare.push(block);
        self.under_way -= 1;
        if self.under_way == 0 && self.left == 0 && self.end.is_none() {
            self.begin(self.level + 1, ledger);
        }
    }

    /// Begins a level, all of whose states were found.
    pub fn begin<M: Model + ?Sized>(&mut self, level: u32, ledger: &mut Ledger<M>) {
        let least = LEAST_STATES.min(self.block_successors);
        let size = (self.block_successors / ledger.degree().saturating_add(1)).max(least);
        // The first level has none before it.
        self.sizes = [if level == 0 { size } else { self.sizes[1] }, size];
        (self.level, self.left, self.under_way) = (level, self.queue.len(), self.blocks.len());
        let begun = if self.frontier() == 0 { Err(End::Done) } else { ledger.begin(level) };
        self.end = begun.err();
    }
}
