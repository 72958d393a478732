//! A search tree of bounded size: nodes with states and costs, of which the cheapest that is open and the dearest that can be dropped are at hand.
//!
//! Everything is in one grant, which decides how many nodes there may be. A node is known by the number of its slot, and states
//! can be looked up, so that a search need not follow two ways to one state.

use crate::budget::{Full, Grant};
use crate::hash;
use crate::region::Region;

/// Nobody: no node, no next.
pub const NONE: u32 = u32::MAX;
/// The cost of what is not open.
pub const CLOSED: u32 = u32::MAX;

/// Words of a node before its state.
const PARENT: usize = 0;
const POSITION: usize = 1;
const DEPTH: usize = 2;
const CHILD: usize = 3;
const NEXT: usize = 4;
const PREVIOUS: usize = 5;
const COST: usize = 6;
/// Places in the two heaps.
const PLACE: [usize; 2] = [7, 8];
/// The next node in the same bucket.
const CHAIN: usize = 9;
/// How far it has come: [`NEW`], [`EXPANDED`] or [`DONE`].
const PHASE: usize = 10;
/// Children that are not done.
const LIVE: usize = 11;
const HEAD: usize = 12;

const NEW: u32 = 0;
const EXPANDED: u32 = 1;
const DONE: u32 = 2;

/// The heap of open nodes, the cheapest first, and that of open nodes without live children, the dearest first.
const OPEN: usize = 0;
const DROPPABLE: usize = 1;

/// Regions grow by this part of what they have.
const GROWTH: usize = 2;

/// The tree.
#[derive(Debug)]
pub struct Tips {
    width: usize,
    capacity: usize,
    nodes: Region,
    heaps: [Region; 2],
    lens: [usize; 2],
    buckets: Region,
    len: usize,
    used: usize,
    free: u32,
}

impl Tips {
    /// As many nodes with states of so many words as the grant has room for.
    pub fn new(width: usize, grant: &Grant) -> Result<Tips, Full> {
        let bytes = usize::try_from(grant.left_bytes()).unwrap_or(usize::MAX);
        // Nodes, two heaps and buckets.
        let needs = |capacity: usize| [HEAD + width, 1, 1, 1].map(|words| Region::rounded(capacity * words * 4));
        let fits = |capacity: usize| needs(capacity).iter().sum::<usize>() <= bytes;
        let (mut capacity, mut beyond) = (0, (bytes / ((HEAD + width + 3) * 4) + 1).min(NONE as usize));
        while beyond - capacity > 1 {
            let middle = capacity.midpoint(beyond);
            if fits(middle) { capacity = middle } else { beyond = middle }
        }
        let regions = || Region::new(grant.clone());
        let mut tips = Tips {
            width,
            capacity,
            nodes: regions(),
            heaps: [regions(), regions()],
            lens: [0; 2],
            buckets: regions(),
            len: 0,
            used: 0,
            free: NONE,
        };
        if capacity > 0 && tips.buckets.grow(capacity * 4) { Ok(tips) } else { Err(Full) }
    }

    /// Nodes there may be.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    fn word(&mut self, node: u32, word: usize) -> &mut u32 {
        let stride = HEAD + self.width;
        &mut self.nodes.words_mut()[node as usize * stride + word]
    }

    pub fn parent(&mut self, node: u32) -> u32 {
        *self.word(node, PARENT)
    }

    pub fn position(&mut self, node: u32) -> u32 {
        *self.word(node, POSITION)
    }

    pub fn depth(&mut self, node: u32) -> u32 {
        *self.word(node, DEPTH)
    }

    /// The cost of a node that is open.
    pub fn cost(&mut self, node: u32) -> u32 {
        *self.word(node, COST)
    }

    /// Has it children that are not done?
    pub fn has_live_children(&mut self, node: u32) -> bool {
        *self.word(node, LIVE) > 0
    }

    /// Was it expanded before? From now on it was.
    pub fn expand(&mut self, node: u32) -> bool {
        std::mem::replace(self.word(node, PHASE), EXPANDED) != NEW
    }

    pub fn state(&mut self, node: u32) -> &[u32] {
        let (stride, width) = (HEAD + self.width, self.width);
        &self.nodes.words_mut()[node as usize * stride + HEAD..][..width]
    }

    /// Positions of the children that are here.
    pub fn child_positions(&mut self, node: u32, positions: &mut Vec<u32>) {
        positions.clear();
        let mut child = *self.word(node, CHILD);
        while child != NONE {
            positions.push(self.position(child));
            child = *self.word(child, NEXT);
        }
    }

    /// Is the state here, no deeper than this?
    pub fn holds(&mut self, state: &[u32], depth: u32) -> bool {
        let bucket = self.bucket(state);
        let mut node = self.buckets.words_mut()[bucket].wrapping_sub(1);
        while node != NONE {
            if *self.word(node, DEPTH) <= depth && self.state(node) == state {
                return true;
            }
            node = *self.word(node, CHAIN);
        }
        false
    }

    /// The least depth of another node with the same state that was expanded, if there is one.
    pub fn expanded_elsewhere(&mut self, node: u32) -> Option<u32> {
        let state = self.state(node).to_vec();
        let bucket = self.bucket(&state);
        let (mut other, mut least) = (self.buckets.words_mut()[bucket].wrapping_sub(1), None);
        while other != NONE {
            if other != node && *self.word(other, PHASE) != NEW && self.state(other) == state {
                let depth = self.depth(other);
                least = Some(least.map_or(depth, |least: u32| least.min(depth)));
            }
            other = *self.word(other, CHAIN);
        }
        least
    }

    fn bucket(&self, state: &[u32]) -> usize {
        hash::scale(hash::words(state), self.capacity)
    }

    /// The cheapest open node; the deepest of several.
    pub fn cheapest(&mut self) -> Option<u32> {
        (self.lens[OPEN] > 0).then(|| self.heaps[OPEN].words_mut()[0])
    }

    /// The dearest open node without live children; the shallowest of several. The root is none.
    pub fn dearest(&mut self) -> Option<u32> {
        (self.lens[DROPPABLE] > 0).then(|| self.heaps[DROPPABLE].words_mut()[0])
    }

    /// Adds an open node; without a parent it is the root.
    pub fn add(&mut self, parent: u32, position: u32, cost: u32, state: &[u32]) -> Result<u32, Full> {
        if self.is_full() {
            return Err(Full);
        }
        let node = self.take_slot()?;
        let (depth, next) = match parent {
            NONE => (0, NONE),
            parent => (self.depth(parent) + 1, *self.word(parent, CHILD)),
        };
        let bucket = self.bucket(state);
        let chain = std::mem::replace(&mut self.buckets.words_mut()[bucket], node + 1).wrapping_sub(1);
        let stride = HEAD + self.width;
        let slot = &mut self.nodes.words_mut()[node as usize * stride..][..stride];
        slot[..HEAD].copy_from_slice(&[parent, position, depth, NONE, next, NONE, CLOSED, NONE, NONE, chain, NEW, 0]);
        slot[HEAD..].copy_from_slice(state);
        if next != NONE {
            *self.word(next, PREVIOUS) = node;
        }
        self.len += 1;
        if parent != NONE {
            *self.word(parent, CHILD) = node;
            *self.word(parent, LIVE) += 1;
            self.remove_from(DROPPABLE, parent);
        }
        self.set_cost(node, cost)?;
        Ok(node)
    }

    /// Opens a node at this cost, or closes it.
    pub fn set_cost(&mut self, node: u32, cost: u32) -> Result<(), Full> {
        self.remove_from(OPEN, node);
        self.remove_from(DROPPABLE, node);
        *self.word(node, COST) = cost;
        if cost != CLOSED {
            self.add_to(OPEN, node)?;
            if *self.word(node, PARENT) != NONE && !self.has_live_children(node) {
                self.add_to(DROPPABLE, node)?;
            }
        }
        Ok(())
    }

    /// Nothing is left to do for a node without live children: it stays as one that is known. Its parent.
    pub fn finish(&mut self, node: u32) -> u32 {
        self.remove_from(OPEN, node);
        self.remove_from(DROPPABLE, node);
        self.remove_children(node);
        (*self.word(node, COST), *self.word(node, PHASE)) = (CLOSED, DONE);
        let parent = self.parent(node);
        if parent != NONE {
            *self.word(parent, LIVE) -= 1;
        }
        parent
    }

    fn remove_children(&mut self, node: u32) {
        debug_assert!(!self.has_live_children(node));
        while *self.word(node, CHILD) != NONE {
            let child = *self.word(node, CHILD);
            self.remove(child);
        }
    }

    /// Removes a node without live children, and those that are done; its parent.
    pub fn remove(&mut self, node: u32) -> u32 {
        self.remove_children(node);
        self.remove_from(OPEN, node);
        self.remove_from(DROPPABLE, node);
        let [parent, next, previous] = [PARENT, NEXT, PREVIOUS].map(|word| *self.word(node, word));
        match previous {
            NONE if parent != NONE => *self.word(parent, CHILD) = next,
            NONE => {}
            previous => *self.word(previous, NEXT) = next,
        }
        if next != NONE {
            *self.word(next, PREVIOUS) = previous;
        }
        if parent != NONE && *self.word(node, PHASE) != DONE {
            *self.word(parent, LIVE) -= 1;
        }
        self.unchain(node);
        *self.word(node, PARENT) = self.free;
        (self.free, self.len) = (node, self.len - 1);
        parent
    }

    fn unchain(&mut self, node: u32) {
        let state = self.state(node).to_vec();
        let (bucket, after) = (self.bucket(&state), *self.word(node, CHAIN));
        let mut before = self.buckets.words_mut()[bucket].wrapping_sub(1);
        if before == node {
            self.buckets.words_mut()[bucket] = after.wrapping_add(1);
            return;
        }
        while *self.word(before, CHAIN) != node {
            before = *self.word(before, CHAIN);
        }
        *self.word(before, CHAIN) = after;
    }

    fn take_slot(&mut self) -> Result<u32, Full> {
        if self.free != NONE {
            let slot = self.free;
            self.free = *self.word(slot, PARENT);
            return Ok(slot);
        }
        make_room(&mut self.nodes, HEAD + self.width, self.used + 1, self.capacity)?;
        self.used += 1;
        Ok(self.used as u32 - 1)
    }

    /// What decides in a heap: the smallest comes first.
    fn key(&mut self, heap: usize, node: u32) -> (u32, u32) {
        let (cost, depth) = (self.cost(node), self.depth(node));
        if heap == OPEN { (cost, NONE - depth) } else { (NONE - cost, depth) }
    }

    fn put(&mut self, heap: usize, place: usize, node: u32) {
        self.heaps[heap].words_mut()[place] = node;
        *self.word(node, PLACE[heap]) = place as u32;
    }

    fn add_to(&mut self, heap: usize, node: u32) -> Result<(), Full> {
        let place = self.lens[heap];
        make_room(&mut self.heaps[heap], 1, place + 1, self.capacity)?;
        self.lens[heap] += 1;
        self.put(heap, place, node);
        self.rise(heap, place);
        Ok(())
    }

    fn remove_from(&mut self, heap: usize, node: u32) {
        let place = *self.word(node, PLACE[heap]);
        if place == NONE {
            return;
        }
        *self.word(node, PLACE[heap]) = NONE;
        self.lens[heap] -= 1;
        let (place, last) = (place as usize, self.lens[heap]);
        if place < last {
            let moved = self.heaps[heap].words_mut()[last];
            self.put(heap, place, moved);
            let place = self.rise(heap, place);
            self.sink(heap, place);
        }
    }

    fn rise(&mut self, heap: usize, mut place: usize) -> usize {
        let node = self.heaps[heap].words_mut()[place];
        let key = self.key(heap, node);
        while place > 0 {
            let above = self.heaps[heap].words_mut()[(place - 1) / 2];
            if self.key(heap, above) <= key {
                break;
            }
            self.put(heap, place, above);
            place = (place - 1) / 2;
        }
        self.put(heap, place, node);
        place
    }

    fn sink(&mut self, heap: usize, mut place: usize) {
        let node = self.heaps[heap].words_mut()[place];
        let key = self.key(heap, node);
        loop {
            let below = (place * 2 + 1..(place * 2 + 3).min(self.lens[heap])).map(|place| {
                let node = self.heaps[heap].words_mut()[place];
                (self.key(heap, node), place, node)
            });
            let Some((smallest, below, child)) = below.min() else { break };
            if smallest >= key {
                break;
            }
            self.put(heap, place, child);
            place = below;
        }
        self.put(heap, place, node);
    }
}

/// Lets a region grow for so many items, and for some more, but not beyond what it may have.
fn make_room(region: &mut Region, words: usize, count: usize, most: usize) -> Result<(), Full> {
    if count * words * 4 <= region.bytes() {
        return Ok(());
    }
    let comfortable = (count + count / GROWTH).min(most);
    if region.grow(comfortable * words * 4) { Ok(()) } else { Err(Full) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use plimsoll_ir::random::Draw;
    use std::collections::BTreeMap;

    #[test]
    fn costs_and_states_are_those_of_a_plain_tree() {
        let bytes = 64 << 10;
        let budget = Budget::new(bytes);
        let mut tips = Tips::new(2, &budget.grant("tips", bytes)).unwrap();
        let mut draw = Draw::new(1);
        let root = tips.add(NONE, 0, 0, &[0, 0]).unwrap();
        // Node: parent, depth, cost, state, children.
        let mut twin: BTreeMap<u32, (u32, u32, u32, [u32; 2], u32)> = BTreeMap::new();
        twin.insert(root, (NONE, 0, 0, [0, 0], 0));
        let mut dropped = 0;
        for step in 0..20_000u32 {
            let open = twin.iter().filter(|(_, node)| node.2 != CLOSED);
            assert_eq!(tips.cheapest().map(|node| twin[&node].2), open.clone().map(|(_, node)| node.2).min());
            let leaves = open.filter(|(_, node)| node.0 != NONE && node.4 == 0);
            assert_eq!(tips.dearest().map(|node| twin[&node].2), leaves.map(|(_, node)| node.2).max());
            let nodes: Vec<u32> = twin.keys().copied().collect();
            let node = nodes[draw.below(nodes.len() as u64) as usize];
            match draw.below(4) {
                0 | 1 if !tips.is_full() && nodes.len() < 200 => {
                    let (cost, state) = (draw.below(50) as u32, [step, draw.below(9) as u32]);
                    let child = tips.add(node, step, cost, &state).unwrap();
                    let depth = twin[&node].1 + 1;
                    twin.get_mut(&node).unwrap().4 += 1;
                    twin.insert(child, (node, depth, cost, state, 0));
                    assert!(tips.holds(&state, depth) && !tips.holds(&state, depth - 1));
                }
                2 => {
                    let cost = if draw.below(3) == 0 { CLOSED } else { draw.below(50) as u32 };
                    tips.set_cost(node, cost).unwrap();
                    twin.get_mut(&node).unwrap().2 = cost;
                }
                _ => {
                    if let Some(node) = tips.dearest() {
                        let (parent, depth, _, state, _) = twin.remove(&node).unwrap();
                        assert_eq!(tips.remove(node), parent);
                        assert!(!tips.holds(&state, depth));
                        let above = twin.get_mut(&parent).unwrap();
                        above.4 -= 1;
                        // Who has no children any more is asked anew.
                        let cost = above.2;
                        tips.set_cost(parent, cost).unwrap();
                        dropped += 1;
                    }
                }
            }
            assert_eq!(tips.len(), twin.len());
        }
        assert!(dropped > 1000, "{dropped}");
        assert!(budget.used_bytes() <= bytes);
    }

    #[test]
    fn there_is_room_for_as_many_as_it_says() {
        for bytes in [64 << 10, 1 << 20] {
            let budget = Budget::new(bytes);
            let mut tips = Tips::new(5, &budget.grant("tips", bytes)).unwrap();
            let root = tips.add(NONE, 0, 0, &[0; 5]).unwrap();
            for number in 1..tips.capacity() as u32 {
                tips.add(root, number, number, &[number; 5]).unwrap();
            }
            assert!(tips.is_full() && tips.add(root, 0, 0, &[0; 5]).is_err());
            assert!(budget.used_bytes() <= bytes && tips.capacity() as u64 > bytes / 100);
        }
    }
}
