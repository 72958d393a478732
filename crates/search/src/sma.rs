//! SMA\*: A\* in as much memory as there is (Russell 1992, after MA\* by Chakrabarti and others 1989).
//!
//! The search tree has room for so many nodes. The cheapest that is open is taken, the deepest of several. When the tree is full the dearest leaf
//! is dropped, the shallowest of several, and its parent remembers what it cost: at that cost the parent is open again, and if it is taken
//! its children are found anew, none of them cheaper than what was remembered. So nothing is lost, and the way to a goal is a shortest one **if the guess is
//! never too large and the tree has room for that way**, with what branches off it. A node behind which nothing is left is done, and stays as a state that is
//! known until its parent is done or dropped; when the root is done, everything was visited. While nothing is dropped this is A\*.
//!
//! A state that is in the tree already, no deeper, is not followed again: it is open, or something below it is, or it is done. So whatever is not followed is
//! followed elsewhere, and what is dropped comes back; a search that ends by itself has visited every state. It need not end in reasonable time: a parent
//! remembers the least cost of what was dropped, not each, so in a tree that is much too small subtrees may push each other out again and again. Hence a limit.
//!
//! This is not an ordering of [`crate::guided()`]: that loop enters a state into a store once and for all, here states leave and come back.

use crate::control::Control;
use crate::guided::Lead;
use crate::tally::Tally;
use crate::trace::is_deadlock;
use crate::verdict::{Outcome, Trace, Verdict, Violation, What, Why};
use plimsoll_model::{Model, Successors};
use plimsoll_store::cache::Distinct;
use plimsoll_store::tips::{CLOSED, NONE, Tips};
use plimsoll_store::{Full, Grant, hash};

/// Nodes taken between two looks at the clock.
const NODES_PER_LOOK: u64 = 1024;

/// Searches `model` with a tree that has room in this grant.
pub fn sma<M: Model + ?Sized>(model: &M, lead: Lead, grant: &Grant, control: &mut Control) -> Outcome {
    let width = model.width();
    let tally = Tally::new(control.ask, model.conventions());
    let Ok(tips) = Tips::new(width, grant) else {
        let verdict = Verdict::Unknown(Why::Memory);
        return Outcome { verdict, stats: tally.stats, complete: false };
    };
    let mut search = Sma {
        model,
        lead,
        control,
        tally,
        tips,
        out: Successors::new(width),
        ahead: Successors::new(width),
        here: Vec::new(),
        under_way: (NONE, CLOSED),
        seen: Distinct::new(0),
        violation: None,
        cut: None,
    };
    let end = search.run().and_then(|()| search.control.stopped().map_or(Ok(()), Err));
    let stopped = search.violation.is_some() && !search.control.ask.keep_going;
    let complete = end.is_ok() && search.cut.is_none() && !stopped;
    search.outcome(end, complete)
}

struct Sma<'a, 'c, M: ?Sized> {
    model: &'a M,
    lead: Lead<'a>,
    control: &'a mut Control<'c>,
    tally: Tally,
    tips: Tips,
    out: Successors,
    ahead: Successors,
    /// Positions of children that are in the tree.
    here: Vec<u32>,
    /// The node that is being expanded, and the least cost of its successors that are not in the tree.
    under_way: (u32, u32),
    /// How many different states there were, about.
    seen: Distinct,
    violation: Option<Violation>,
    /// States may have been missed.
    cut: Option<Why>,
}

impl<M: Model + ?Sized> Sma<'_, '_, M> {
    fn run(&mut self) -> Result<(), Why> {
        // The root stands before the initial states: its state means nothing.
        let nowhere = vec![u32::MAX; self.model.width()];
        let root = self.tips.add(NONE, 0, 0, &nowhere).map_err(|Full| Why::Memory)?;
        while let Some(node) = self.tips.cheapest() {
            let taken_before = self.tips.expand(node);
            if node != root && !taken_before {
                let depth = self.tips.depth(node);
                match self.tips.expanded_elsewhere(node) {
                    Some(other) if other <= depth => {
                        self.tally.stats.matched += 1;
                        self.finish(node)?;
                        continue;
                    }
                    // A shorter way was found: the state is visited once more.
                    Some(_) => self.tally.stats.forgotten += 1,
                    None => {}
                }
                self.visit(node)?;
                if self.violation.is_some() && !self.control.ask.keep_going {
                    return Ok(());
                }
            }
            let depth = self.tips.depth(node);
            if node != root && self.control.limits.depth.is_some_and(|limit| depth > limit) {
                self.cut.get_or_insert(Why::Depth);
                self.finish(node)?;
                continue;
            }
            self.expand(node, root, taken_before)?;
            if self.violation.is_some() && !self.control.ask.keep_going {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Counts a node that is taken for the first time, and checks its state.
    fn visit(&mut self, node: u32) -> Result<(), Why> {
        let depth = self.tips.depth(node) - 1;
        let stats = &mut self.tally.stats;
        stats.states += 1;
        stats.depth = stats.depth.max(depth);
        self.seen.add(hash::words(self.tips.state(node)));
        self.control.room.keep(depth + 1)?;
        let stats = &mut self.tally.stats;
        if self.control.limits.states.is_some_and(|limit| stats.states >= limit) {
            return Err(Why::States);
        }
        if stats.states.is_multiple_of(NODES_PER_LOOK) {
            (stats.frontier, stats.held) = (self.tips.len() as u64, self.tips.len() as u64);
            stats.capacity = self.tips.capacity() as u64;
            stats.widest_frontier = stats.widest_frontier.max(stats.frontier);
            stats.distinct = self.seen.estimate().min(stats.states);
            if let Some(why) = self.control.must_stop(stats) {
                return Err(why);
            }
        }
        if let Some(property) = self.model.violated(self.tips.state(node)) {
            let what = self.tally.hit(property);
            self.find(what, node, None);
        }
        Ok(())
    }

    /// Puts the successors of a node into the tree, those that are not there.
    fn expand(&mut self, node: u32, root: u32, taken_before: bool) -> Result<(), Why> {
        let (cost, depth) = (self.tips.cost(node), self.tips.depth(node));
        self.tips.child_positions(node, &mut self.here);
        self.tips.set_cost(node, CLOSED).map_err(|Full| Why::Memory)?;
        self.under_way = (node, CLOSED);
        let (mut part, mut first, mut more) = (0, 0, true);
        while more {
            self.out.clear();
            more = node == root && self.model.initial_part(part, &mut self.out);
            if node != root {
                let state = self.tips.state(node).to_vec();
                self.model.successors(&state, &mut self.out);
                if !taken_before {
                    self.count(node, &state);
                }
            }
            if let Some(why) = self.control.stopped().or(self.out.gave_up().map(Why::from)) {
                return Err(why);
            }
            for index in 0..self.out.len() {
                let (step, position) = (self.out.step(index), first + index as u32);
                if !step.is_plain() && !taken_before {
                    let what = self.tally.wrong(step, depth, node == root);
                    self.find(what, node, Some(position));
                }
                if !step.is_fault() && !self.here.contains(&position) {
                    let state = self.out.state(index).to_vec();
                    self.offer(node, position, cost, depth + 1, &state)?;
                }
            }
            (part, first) = (part + 1, first + self.out.len() as u32);
        }
        let (_, missing) = std::mem::replace(&mut self.under_way, (NONE, CLOSED));
        match missing {
            CLOSED if !self.tips.has_live_children(node) => self.finish(node),
            cost => self.tips.set_cost(node, cost).map_err(|Full| Why::Memory),
        }
    }

    /// Counts what a state leads to.
    fn count(&mut self, node: u32, state: &[u32]) {
        self.tally.stats.transitions += self.out.len() as u64;
        if is_deadlock(self.model, state, &self.out, 0..self.out.len()) {
            let what = self.tally.deadlocks(1);
            self.find(what, node, None);
        }
        for index in (0..self.out.len()).filter(|&index| self.out.step(index).is_fault()) {
            self.control.watch.fault(state, self.out.step(index));
        }
    }

    /// A successor: it gets a node, or its parent remembers what it would cost.
    fn offer(&mut self, parent: u32, position: u32, least: u32, depth: u32, state: &[u32]) -> Result<(), Why> {
        if self.tips.holds(state, depth) {
            self.tally.stats.matched += 1;
            return Ok(());
        }
        let guess = self.lead.guess(self.model, state, &mut self.ahead);
        let cost = guess.saturating_add(depth).max(least).min(CLOSED - 1);
        while self.tips.is_full() {
            match self.tips.dearest() {
                Some(leaf) if self.is_worse(leaf, parent, cost) => self.drop_leaf(leaf)?,
                Some(_) => return self.remember(parent, cost),
                // The tree is one path.
                None => {
                    self.cut.get_or_insert(Why::Memory);
                    return Ok(());
                }
            }
        }
        self.tips.add(parent, position, cost, state).map(drop).map_err(|Full| Why::Memory)
    }

    /// Should a leaf go for a new successor of this cost? One of its brothers only if it costs more.
    fn is_worse(&mut self, leaf: u32, parent: u32, cost: u32) -> bool {
        let least = if self.tips.parent(leaf) == parent { cost + 1 } else { cost };
        self.tips.cost(leaf) >= least
    }

    fn drop_leaf(&mut self, leaf: u32) -> Result<(), Why> {
        self.tally.stats.forgotten += 1;
        let cost = self.tips.cost(leaf);
        let parent = self.tips.remove(leaf);
        self.remember(parent, cost)
    }

    /// A successor of a node is not in the tree and would cost so much.
    fn remember(&mut self, node: u32, cost: u32) -> Result<(), Why> {
        if node == self.under_way.0 {
            self.under_way.1 = self.under_way.1.min(cost);
            return Ok(());
        }
        let cost = self.tips.cost(node).min(cost);
        self.tips.set_cost(node, cost).map_err(|Full| Why::Memory)
    }

    /// Nothing is left behind a node: it is done, and so are those above it behind which nothing else is.
    fn finish(&mut self, mut node: u32) -> Result<(), Why> {
        loop {
            let before = self.tips.len();
            node = self.tips.finish(node);
            // What was below it may be found and visited again.
            self.tally.stats.forgotten += (before - self.tips.len()) as u64;
            if node == NONE || self.tips.has_live_children(node) {
                return Ok(());
            }
            let cost = self.tips.cost(node);
            if cost != CLOSED {
                // From now on it can be dropped.
                return self.tips.set_cost(node, cost).map_err(|Full| Why::Memory);
            }
        }
    }

    fn find(&mut self, what: Option<What>, node: u32, step: Option<u32>) {
        if let (Some(what), None) = (what, &self.violation) {
            let mut positions: Vec<u32> = step.into_iter().collect();
            let mut at = node;
            while self.tips.parent(at) != NONE {
                positions.push(self.tips.position(at));
                at = self.tips.parent(at);
            }
            positions.reverse();
            self.violation = Some(Violation { what, trace: Trace { positions } });
        }
    }

    fn outcome(mut self, end: Result<(), Why>, complete: bool) -> Outcome {
        self.tally.count_error_state();
        let verdict = Verdict::of(self.violation.take(), end, self.cut);
        let mut stats = self.tally.stats;
        stats.frontier = self.tips.len() as u64;
        (stats.held, stats.capacity) = (stats.frontier, self.tips.capacity() as u64);
        stats.distinct = if stats.forgotten == 0 { stats.states } else { self.seen.estimate().min(stats.states) };
        self.control.watch.counts(&stats);
        Outcome { verdict, stats, complete }
    }
}
