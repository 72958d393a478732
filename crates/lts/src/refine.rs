//! The coarsest partition of the states of a graph in which equal blocks mean equal signatures.
//!
//! The signature of a state is the set of what it can do: pairs of a label and the block that the edge leads to. For branching
//! bisimulation silent steps within the block do not count, and what can be done after them counts as well. A block is looked
//! at again when signatures of some of its states may have changed; these are marked. When it falls apart the largest part
//! keeps its number, so that a state gets another number only if its block has become half as large: at most log n times.
//!
//! States that are not marked have one signature. A marked state has another than they: it can reach a block whose number is
//! newer than the last look at its own. So nothing is compared but the signatures of marked states. Memory is linear in the
//! graph.

use crate::graph::Lts;
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

/// A partition of the states.
#[derive(Debug)]
pub(crate) struct Partition {
    /// The block of each state.
    pub block: Vec<u32>,
    /// How each block came to be, by number.
    origins: Vec<Origin>,
}

/// A block was taken out of another.
#[derive(Clone, Copy, Debug)]
struct Origin {
    from: u32,
    /// Counted from one; all that fell out of a block at once have the same.
    time: u32,
}

impl Partition {
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    /// When two states were told apart; none if they were not.
    pub fn told_apart(&self, one: u32, other: u32) -> Option<u32> {
        let (mut one, mut other) = (self.block[one as usize], self.block[other as usize]);
        let mut time = None;
        while one != other {
            let later = if one > other { &mut one } else { &mut other };
            let origin = self.origins[*later as usize];
            (*later, time) = (origin.from, Some(origin.time));
        }
        time
    }
}

/// Refines until nothing changes. With a silent label, every silent edge must lead to a state with a lower number.
pub(crate) fn refine(lts: &Lts, tau: Option<u32>) -> Partition {
    let mut refiner = Refiner::new(lts, tau);
    while let Some(block) = refiner.waiting.pop_front() {
        refiner.look_at(block);
    }
    Partition { block: refiner.block, origins: refiner.origins }
}

/// States of a block are neighbours; marked ones come first.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: u32,
    marked: u32,
    end: u32,
}

struct Refiner<'a> {
    lts: &'a Lts,
    tau: Option<u32>,
    sources: Sources,
    block: Vec<u32>,
    /// All states, block by block, and where each of them is.
    states: Vec<u32>,
    place: Vec<u32>,
    blocks: Vec<Block>,
    origins: Vec<Origin>,
    time: u32,
    /// Blocks with marked states.
    waiting: VecDeque<u32>,
    /// States whose silent predecessors are to be marked.
    spread: Vec<u32>,
    signatures: Signatures,
    /// The group of each marked state, by place.
    groups: Vec<u32>,
}

impl<'a> Refiner<'a> {
    fn new(lts: &'a Lts, tau: Option<u32>) -> Refiner<'a> {
        let count = lts.state_count;
        Refiner {
            lts,
            tau,
            sources: Sources::of(lts, tau),
            block: vec![0; count as usize],
            states: (0..count).collect(),
            place: (0..count).collect(),
            blocks: vec![Block { start: 0, marked: count, end: count }],
            origins: vec![Origin { from: 0, time: 0 }],
            time: 0,
            waiting: VecDeque::from([0]),
            spread: Vec::new(),
            signatures: Signatures::default(),
            groups: Vec::new(),
        }
    }

    /// Divides a block by the signatures of its marked states.
    fn look_at(&mut self, number: u32) {
        let block = self.blocks[number as usize];
        let Block { start, marked, end } = block;
        // Those that silent steps lead to come first.
        let mut looked_at = self.states[start as usize..marked as usize].to_vec();
        if self.tau.is_some() {
            looked_at.sort_unstable();
        }
        let has_others = marked < end;
        self.signatures.begin(looked_at.len() + 1);
        if has_others {
            self.sign_others(number, self.states[marked as usize]);
        }
        self.groups.clear();
        self.groups.resize(looked_at.len(), NONE);
        for &state in &looked_at {
            let group = self.sign(state, number);
            self.groups[(self.place[state as usize] - start) as usize] = group;
        }
        self.blocks[number as usize].marked = start;
        if self.signatures.len() > 1 {
            self.divide(number, block);
        }
    }

    /// The group of a state by its signature.
    fn sign(&mut self, state: u32, own: u32) -> u32 {
        let Refiner { lts, tau, block, place, blocks, signatures, groups, .. } = self;
        let Block { start, marked, .. } = blocks[own as usize];
        signatures.new.clear();
        for (label, target) in lts.edges(state) {
            let to = block[target as usize];
            if to != own || Some(label) != *tau {
                signatures.new.push(u64::from(label) << 32 | u64::from(to));
                continue;
            }
            // What can be done after a silent step within the block; those that are not marked are in group 0.
            let at = place[target as usize];
            signatures.add_all_of(if at < marked { groups[(at - start) as usize] } else { 0 });
        }
        signatures.group()
    }

    /// Makes the signature of the states that are not marked the first one. All have the same, so one without silent steps
    /// within the block will do.
    fn sign_others(&mut self, own: u32, mut state: u32) {
        let inert = |state: u32| {
            let mut silent = self.lts.edges(state).filter(|&(label, _)| Some(label) == self.tau);
            silent.find(|&(_, target)| self.block[target as usize] == own)
        };
        while let Some((_, target)) = inert(state) {
            state = target;
        }
        self.sign(state, own);
    }

    /// Makes blocks of the groups of a block.
    fn divide(&mut self, number: u32, block: Block) {
        let Block { start, marked, end } = block;
        let count = self.signatures.len();
        // The first group comes last, beside those that were not marked, which belong to it if there are any.
        let mut ends = vec![0u32; count];
        self.groups.iter().for_each(|&group| ends[group as usize] += 1);
        let mut sizes = ends.clone();
        sizes[0] += end - marked;
        let mut at = start;
        for group in (1..count).chain([0]) {
            (ends[group], at) = (at, at + ends[group]);
        }
        let starts = ends.clone();
        let states = self.states[start as usize..marked as usize].to_vec();
        for (index, &state) in states.iter().enumerate() {
            let place = &mut ends[self.groups[index] as usize];
            self.states[*place as usize] = state;
            self.place[state as usize] = *place;
            *place += 1;
        }
        let largest = (0..count).max_by_key(|&group| sizes[group]).expect("there are several");
        let first_new = self.blocks.len() as u32;
        self.time += 1;
        for group in 0..count {
            let (start, end) = (starts[group], starts[group] + sizes[group]);
            let divided = Block { start, marked: start, end };
            if group == largest {
                self.blocks[number as usize] = divided;
                continue;
            }
            let new = self.blocks.len() as u32;
            self.blocks.push(divided);
            self.origins.push(Origin { from: number, time: self.time });
            for place in start..end {
                self.block[self.states[place as usize] as usize] = new;
            }
        }
        for new in first_new..self.blocks.len() as u32 {
            let Block { start, end, .. } = self.blocks[new as usize];
            // Marking moves states within their block, so they are taken out first.
            let moved = self.states[start as usize..end as usize].to_vec();
            moved.into_iter().for_each(|state| self.tell_of(state, number, first_new));
        }
    }

    /// Marks whose signature may change because a state has left block `from`, out of which those from `first_new` on came.
    fn tell_of(&mut self, state: u32, from: u32, first_new: u32) {
        let own = self.block[state as usize];
        let (first, silent, end) = self.sources.bounds(state);
        for at in first..end {
            let source = self.sources.all[at];
            // Both have left: the step is silent as it was.
            if at >= silent || self.block[source as usize] != own {
                self.mark(source);
            }
        }
        if let Some(tau) = self.tau {
            // A silent step that stayed within the block does so no more.
            let left = |&(label, target): &(u32, u32)| {
                let to = self.block[target as usize];
                label == tau && to != own && (to == from || to >= first_new)
            };
            if self.lts.edges(state).any(|edge| left(&edge)) {
                self.mark(state);
            }
        }
    }

    /// Marks a state and all that reach it by silent steps within its block.
    fn mark(&mut self, state: u32) {
        self.spread.push(state);
        while let Some(state) = self.spread.pop() {
            let number = self.block[state as usize];
            let block = &mut self.blocks[number as usize];
            let (at, first) = (self.place[state as usize], block.marked);
            if at < first {
                continue;
            }
            if first == block.start {
                self.waiting.push_back(number);
            }
            block.marked += 1;
            let other = self.states[first as usize];
            self.states.swap(at as usize, first as usize);
            (self.place[state as usize], self.place[other as usize]) = (first, at);
            let (first, silent, _) = self.sources.bounds(state);
            for &source in &self.sources.all[first..silent] {
                if self.block[source as usize] == number {
                    self.spread.push(source);
                }
            }
        }
    }
}

/// Edges backwards.
struct Sources {
    first: Vec<u64>,
    /// Where those of silent edges end, which come first; empty if there is no silent label.
    silent: Vec<u64>,
    all: Vec<u32>,
}

impl Sources {
    fn of(lts: &Lts, tau: Option<u32>) -> Sources {
        let count = lts.state_count as usize;
        let mut first = vec![0u64; count + 1];
        lts.target.iter().for_each(|&target| first[target as usize + 1] += 1);
        (0..count).for_each(|state| first[state + 1] += first[state]);
        let mut all = vec![0; lts.edge_count()];
        let mut next = first[..count].to_vec();
        let mut fill = |wanted: &dyn Fn(u32) -> bool, next: &mut [u64]| {
            for source in 0..lts.state_count {
                for (_, target) in lts.edges(source).filter(|&(label, _)| wanted(label)) {
                    let place = &mut next[target as usize];
                    all[*place as usize] = source;
                    *place += 1;
                }
            }
        };
        let mut silent = Vec::new();
        if tau.is_some() {
            fill(&|label| Some(label) == tau, &mut next);
            silent = next.clone();
        }
        fill(&|label| Some(label) != tau, &mut next);
        Sources { first, silent, all }
    }

    /// Where the sources of a state begin, where those of silent edges end, and where all do.
    fn bounds(&self, state: u32) -> (usize, usize, usize) {
        let (first, end) = (self.first[state as usize] as usize, self.first[state as usize + 1] as usize);
        (first, self.silent.get(state as usize).map_or(first, |&silent| silent as usize), end)
    }
}

/// Signatures of a block, each once, in the order in which they were met.
#[derive(Default)]
struct Signatures {
    /// The one that is being made.
    new: Vec<u64>,
    /// All of them, end to end, and where each ends.
    all: Vec<u64>,
    ends: Vec<usize>,
    /// Numbers of groups, by hash.
    table: Vec<u32>,
    mask: usize,
}

impl Signatures {
    /// Forgets all; there will be at most so many.
    fn begin(&mut self, most: usize) {
        self.all.clear();
        self.ends.clear();
        let slots = (2 * most).next_power_of_two();
        if self.table.len() < slots {
            self.table.resize(slots, NONE);
        }
        self.table[..slots].fill(NONE);
        self.mask = slots - 1;
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, group: u32) -> &[u64] {
        let start = if group == 0 { 0 } else { self.ends[group as usize - 1] };
        &self.all[start..self.ends[group as usize]]
    }

    /// Adds what another signature has to the new one.
    fn add_all_of(&mut self, group: u32) {
        let start = if group == 0 { 0 } else { self.ends[group as usize - 1] };
        self.new.extend_from_slice(&self.all[start..self.ends[group as usize]]);
    }

    /// The group of the new signature.
    fn group(&mut self) -> u32 {
        self.new.sort_unstable();
        self.new.dedup();
        let hash =
            self.new.iter().fold(0u64, |hash, &pair| (hash.rotate_left(23) ^ pair).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut at = (hash >> 32) as usize & self.mask;
        loop {
            match self.table[at] {
                NONE => break,
                group if self.get(group) == self.new => return group,
                _ => at = (at + 1) & self.mask,
            }
        }
        let group = self.ends.len() as u32;
        self.table[at] = group;
        self.all.extend_from_slice(&self.new);
        self.ends.push(self.all.len());
        group
    }
}
