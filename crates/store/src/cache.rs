//! A bounded set of states that forgets: a chain of caches over one pool of entries.
//!
//! One index finds an entry wherever it is; a tier is a rule, a share of the room and the order of its
//! entries by cost. An entry enters the first tier; a full tier gives its lowest cost to the next; when the
//! pool is full the last tier that has any entries forgets its lowest cost (Mateescu and Wijs, TACAS 2009).
//! **Pinned** entries belong to no tier and cannot leave: states on the stack of a depth-first search, and with
//! `cover` the open states (found, not yet expanded) and every state with a child in the search tree. If all
//! entries are pinned the cache is [`Full`](Answer::Full). `New` promises that the state is held.
//!
//! **`cover` terminates in any order** (after Evangelista and Kristensen 2010): only closed leaves of the tree
//! leave, so all ancestors of an open state are held. An infinite run would, by König, have an infinite
//! path of insertions, each a child of the one before; a state occurs on it twice; but when it came for the
//! second time the first was an ancestor of the open state just expanded, so it was held, and known.

mod heap;
mod rule;
mod sketch;
mod slots;
mod spec;
mod ways;

use crate::budget::Grant;
use crate::roots::Full;
use heap::Heap;
pub use rule::Rule;
use rule::{Event, Facts, UNKNOWN_DEGREE};
pub use sketch::Distinct;
use slots::{NONE, Slots};
pub use spec::Spec;
pub use ways::Ways;

/// The tier of an entry that is pinned or on its way.
const IN_NO_TIER: usize = 0xFFFF;

/// What a search wants remembered with a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Note {
    /// Steps from an initial state when it was found.
    pub depth: u32,
    /// What kind of step led to it; of several the smallest is kept. See [`Rule::Kind`].
    pub kind: u8,
}

/// An entry, as long as it is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub(crate) u32);

impl Place {
    /// The place of a state in a store that keeps no entries.
    pub const NOWHERE: Place = Place(NONE);

    /// The place as a number, to be kept on a stack.
    pub fn number(self) -> u32 {
        self.0
    }

    pub fn from_number(number: u32) -> Place {
        Place(number)
    }
}

/// The answer to an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    New(Place),
    Known,
    Full,
}

/// What a cache knows about its own work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Health {
    pub held: u64,
    pub pinned: u64,
    /// How many states fit.
    pub capacity: u64,
    /// States given up so far.
    pub forgotten: u64,
    /// About how many different states were ever inserted.
    pub distinct: u64,
}

/// What a block of states is inserted into.
pub(crate) trait Held {
    /// Words of a key.
    fn key_words(&self) -> usize;
    /// Does it want to hear of expansions?
    fn wants_parents(&self) -> bool;
    /// Do entries keep the place of their parent?
    fn covers(&self) -> bool;
    fn prefetch(&self, hash: u64);
    /// The place of a key that is held.
    fn find(&mut self, key: &[u32], hash: u64) -> Option<Place>;
    /// Inserts `key`, or meets it again. A new entry is pinned if `pinned`, and always with `cover`; then it is
    /// a child of `parent`.
    fn insert(&mut self, key: &[u32], hash: u64, note: Note, pinned: bool, parent: Place) -> Answer;
    /// The state has this many successors.
    fn count_successors(&mut self, place: Place, successors: usize);
    /// The state was expanded and its successors inserted: with `cover` it is open no more.
    fn expanded(&mut self, place: Place, successors: usize);
}

/// The caches of a chain.
#[derive(Debug)]
pub struct Cache {
    spec: Spec,
    slots: Slots,
    tiers: Vec<Tier>,
    pinned: usize,
    clock: u64,
    random: u64,
    forgotten: u64,
    distinct: Distinct,
    counts_successors: bool,
}

#[derive(Debug)]
struct Tier {
    rule: Rule,
    room: usize,
    len: usize,
    heap: Heap,
}

impl Cache {
    /// A cache of at most `capacity` keys of `key_words` words; fewer if the grant has no room for them.
    pub fn new(spec: &Spec, key_words: usize, capacity: usize, grant: &Grant) -> Result<Cache, Full> {
        assert!(capacity > 0);
        let slots = Slots::new(key_words, capacity, grant);
        let tier = |&(rule, _): &(Rule, f64)| Tier { rule, room: 0, len: 0, heap: Heap::new(grant) };
        let mut cache = Cache {
            tiers: spec.tiers().iter().map(tier).collect(),
            spec: spec.clone(),
            slots,
            pinned: 0,
            clock: 0,
            random: 0x853C_49E6_748F_EA9B,
            forgotten: 0,
            distinct: Distinct::default(),
            counts_successors: spec.tiers().iter().any(|(rule, _)| rule.counts_successors()),
        };
        cache.divide();
        if cache.grow() { Ok(cache) } else { Err(Full) }
    }

    /// Bytes that an entry takes, the index and the order included.
    pub fn bytes_per_entry(key_words: usize) -> usize {
        (slots::HEADER + key_words) * 4 + 4 + Heap::BYTES_PER_ENTRY
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    pub fn len(&self) -> usize {
        self.slots.live()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        self.slots.bytes() + self.tiers.iter().map(|tier| tier.heap.bytes()).sum::<usize>()
    }

    pub fn health(&self) -> Health {
        Health {
            held: self.len() as u64,
            pinned: self.pinned as u64,
            capacity: self.slots.limit() as u64,
            forgotten: self.forgotten,
            distinct: self.distinct.estimate(),
        }
    }

    /// Forbids the entry to leave until it is unpinned as often.
    pub fn pin(&mut self, place: Place) {
        let pins = self.slots.pins(place.0);
        assert!(pins != NONE, "the entry was forgotten");
        if pins == 0 {
            let tier = self.slots.traits(place.0).1;
            self.tiers[tier].len -= 1;
            self.tiers[tier].heap.remove(&mut self.slots, place.0);
            self.pinned += 1;
        }
        self.slots.set_pins(place.0, pins + 1);
    }

    pub fn unpin(&mut self, place: Place) {
        let pins = self.slots.pins(place.0);
        assert!(pins != 0 && pins != NONE, "the entry is not pinned");
        self.slots.set_pins(place.0, pins - 1);
        if pins == 1 {
            self.pinned -= 1;
            let kind = self.slots.traits(place.0).0;
            self.slots.set_traits(place.0, kind, IN_NO_TIER);
            self.enrol(place.0, 0);
        }
    }

    fn meet(&mut self, slot: u32, kind: u8) {
        let (visits, degree) = self.slots.counts(slot);
        let (held_kind, tier) = self.slots.traits(slot);
        self.slots.set_counts(slot, visits + 1, degree);
        self.slots.set_traits(slot, held_kind.min(kind as u32), tier);
        self.recost(slot, Event::Met);
    }

    /// Computes the cost anew, if the rule cares for the event.
    fn recost(&mut self, slot: u32, event: Event) {
        if self.slots.pins(slot) != 0 {
            return;
        }
        let tier = self.slots.traits(slot).1;
        let rule = self.tiers[tier].rule;
        if rule.heeds(event) {
            let cost = self.cost(slot, rule);
            self.slots.set_cost(slot, cost);
            self.tiers[tier].heap.update(&mut self.slots, slot);
        }
    }

    fn cost(&mut self, slot: u32, rule: Rule) -> u64 {
        self.clock += 1;
        let (visits, degree) = self.slots.counts(slot);
        let (kind, _) = self.slots.traits(slot);
        let depth = self.slots.depth(slot);
        let random = if rule == Rule::Random { self.draw() } else { 0 };
        rule.cost(&Facts { clock: self.clock, random, visits, degree, depth, kind })
    }

    fn draw(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 24) as u32
    }

    /// Puts an entry without pins into a tier, which may have to give one to the next.
    fn enrol(&mut self, mut slot: u32, mut tier: usize) {
        loop {
            let last = tier + 1 == self.tiers.len();
            if !last && self.tiers[tier].room == 0 {
                tier += 1;
                continue;
            }
            let full = !last && self.tiers[tier].len >= self.tiers[tier].room;
            let leaving = if full { self.pop(tier) } else { None };
            let (kind, _) = self.slots.traits(slot);
            self.slots.set_traits(slot, kind, tier);
            let cost = self.cost(slot, self.tiers[tier].rule);
            self.slots.set_cost(slot, cost);
            self.tiers[tier].len += 1;
            self.tiers[tier].heap.push(&mut self.slots, slot);
            match leaving {
                Some(other) => (slot, tier) = (other, tier + 1),
                None => return,
            }
        }
    }

    /// Takes the lowest cost out of a tier.
    fn pop(&mut self, tier: usize) -> Option<u32> {
        let Tier { heap, len, .. } = &mut self.tiers[tier];
        if *len == 0 {
            return None;
        }
        if !heap.is_awake() {
            heap.wake(&mut self.slots, |slots, slot| slots.pins(slot) == 0 && slots.traits(slot).1 == tier);
        }
        *len -= 1;
        heap.pop(&mut self.slots)
    }

    fn forget_one(&mut self) -> bool {
        let Some(tier) = (0..self.tiers.len()).rev().find(|&tier| self.tiers[tier].len > 0) else { return false };
        let slot = self.pop(tier).expect("the tier has entries");
        let parent = self.slots.parent(slot);
        self.slots.remove(slot);
        self.forgotten += 1;
        if parent != NONE {
            self.unpin(Place(parent));
        }
        true
    }

    /// Makes more slots; if that is not allowed, what there is must do from now on.
    fn grow(&mut self) -> bool {
        let Some(wanted) = self.slots.next_count() else { return false };
        let count = self.slots.count();
        let steps = [1, 2, 4, 8, 16].map(|part| (wanted - count) / part);
        if steps.into_iter().any(|step| step > 0 && self.grow_to(count + step)) {
            return true;
        }
        self.slots.settle();
        self.divide();
        false
    }

    fn grow_to(&mut self, count: usize) -> bool {
        let last = self.tiers.len() - 1;
        let fits = |(index, tier): (usize, &mut Tier)| {
            let entries = if index == last { count } else { tier.room.min(count) };
            tier.heap.grow(entries)
        };
        self.tiers.iter_mut().enumerate().all(fits) && self.slots.grow(count)
    }

    /// Gives every tier its share of the room.
    fn divide(&mut self) {
        let rooms = self.spec.rooms(self.slots.limit());
        for (tier, room) in self.tiers.iter_mut().zip(rooms) {
            tier.room = room;
        }
    }
}

impl Held for Cache {
    fn key_words(&self) -> usize {
        self.slots.key_words()
    }

    fn wants_parents(&self) -> bool {
        self.spec.cover || self.counts_successors
    }

    fn covers(&self) -> bool {
        self.spec.cover
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.slots.prefetch(hash);
    }

    fn find(&mut self, key: &[u32], hash: u64) -> Option<Place> {
        self.slots.find(key, hash).map(Place)
    }

    fn insert(&mut self, key: &[u32], hash: u64, note: Note, pinned: bool, parent: Place) -> Answer {
        if let Some(slot) = self.slots.find(key, hash) {
            self.meet(slot, note.kind);
            return Answer::Known;
        }
        if self.slots.is_full() && !self.grow() && !self.forget_one() {
            return Answer::Full;
        }
        let slot = self.slots.add(key, hash);
        self.distinct.add(hash);
        self.slots.set_depth(slot, note.depth);
        self.slots.set_counts(slot, 1, UNKNOWN_DEGREE);
        self.slots.set_traits(slot, note.kind as u32, IN_NO_TIER);
        if self.spec.cover && parent != Place::NOWHERE {
            self.slots.set_parent(slot, parent.0);
            self.pin(parent);
        }
        if pinned || self.spec.cover {
            self.slots.set_pins(slot, 1);
            self.pinned += 1;
        } else {
            self.enrol(slot, 0);
        }
        Answer::New(Place(slot))
    }

    fn count_successors(&mut self, place: Place, successors: usize) {
        if !self.counts_successors {
            return;
        }
        let (visits, _) = self.slots.counts(place.0);
        self.slots.set_counts(place.0, visits, (successors as u32).min(UNKNOWN_DEGREE - 1));
        self.recost(place.0, Event::Expanded);
    }

    fn expanded(&mut self, place: Place, successors: usize) {
        self.count_successors(place, successors);
        if self.spec.cover {
            self.unpin(place);
        }
    }
}

#[cfg(test)]
mod tests;
