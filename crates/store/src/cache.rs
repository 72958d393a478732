//! A bounded set of states that forgets: a chain of caches over one pool of entries.
//!
//! One index finds an entry wherever it is; every tier of the row is a ring of entries with a rule. An entry
//! enters the first tier; a full tier gives one to the next; when the pool is full the last tier that has any forgets one
//! (Mateescu and Wijs, TACAS 2009): the lowest cost of a few that a hand comes to (Godefroid et al. 1992). **Pinned**
//! entries belong to no tier and cannot leave: states on the stack of a depth-first search, and with
//! `cover` the open states (found, not yet expanded) and every state with a child in the search tree. If nobody may
//! leave, all being pinned or in a `KEEP`, the cache is [`Full`](Answer::Full). `New` promises that the state is held.
//!
//! **`cover` terminates in any order** (after Evangelista and Kristensen 2010): only closed leaves of the tree
//! leave, so all ancestors of an open state are held. An infinite run would, by König, have an infinite
//! path of insertions, each a child of the one before; a state occurs on it twice; but when it came for the
//! second time the first was an ancestor of the open state just expanded, so it was held, and known.

mod clock;
mod key;
mod members;
mod rule;
mod sketch;
mod slots;
mod ways;

use crate::budget::{Full, Grant};
use crate::hash;
use crate::row::{Replace, Row};
use clock::Clock;
pub use key::{Hashed, KeyForm};
use members::Members;
pub use rule::Rule;
pub use sketch::Distinct;
use slots::{NONE, Parts, Slots};
pub use ways::Ways;

/// Where others need memory, this part of the states is given up at a time.
const GIVEN_UP_SHARE: usize = 4;

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

impl Health {
    /// The health of all parts of a cache, whose states are told apart by leading bits of their hashes.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = (Health, &'a Distinct)>) -> Health {
        let mut whole = Health::default();
        let sketches = parts.into_iter().map(|(part, sketch)| {
            whole.held += part.held;
            whole.pinned += part.pinned;
            whole.capacity += part.capacity;
            whole.forgotten += part.forgotten;
            sketch
        });
        let distinct = Distinct::estimate_all(sketches);
        Health { distinct, ..whole }
    }
}

/// What a block of states is inserted into.
pub(crate) trait AnyCache {
    /// What keys look like.
    fn form(&self) -> KeyForm;
    /// Does it want to hear of expansions?
    fn wants_parents(&self) -> bool;
    /// Do the ancestors of what waits stay, which takes the place of each entry's parent?
    fn keeps_ancestors(&self) -> bool;
    fn prefetch(&self, hash: u64);
    /// The place of a key that is held.
    fn find(&mut self, key: &[u8], hash: u64) -> Option<Place>;
    /// Inserts `key`, or meets it again. A new entry is pinned if `pinned`, and always with `cover`; then it is
    /// a child of `parent`.
    fn insert(&mut self, key: &[u8], hash: u64, note: Note, pinned: bool, parent: Place) -> Answer;
    /// The state has this many successors.
    fn count_successors(&mut self, place: Place, successors: usize);
    /// The state was expanded and its successors inserted: with `cover` it is open no more.
    fn expanded(&mut self, place: Place, successors: usize);
    /// Are new states told by [`AnyCache::count_state`]? Where nodes of a tree are given up a state may come back with another key.
    fn counts_states(&self) -> bool;
    /// This state is new here.
    fn count_state(&mut self, state: &[u32]);
    /// A key with this hash is new, and held elsewhere.
    fn count_key(&mut self, hash: u64);
}

/// The caches of a chain.
#[derive(Debug)]
pub struct Cache {
    row: Row,
    slots: Slots,
    tiers: Vec<Ring>,
    clock: Clock,
    forgotten: u64,
    distinct: Distinct,
    counts_states: bool,
    counts_successors: bool,
}

/// The entries of a tier.
#[derive(Debug)]
struct Ring {
    /// None: nobody leaves.
    rule: Option<Rule>,
    room: usize,
    len: usize,
    members: Members,
    /// The slot to look at next when one has to leave.
    hand: u32,
}

impl Cache {
    /// A cache of at most `capacity` keys of this form; fewer if the grant has no room for them.
    pub fn new(row: &Row, form: KeyForm, capacity: usize, grant: &Grant) -> Result<Cache, Full> {
        assert!(capacity > 0);
        let ring = |replace: Replace| {
            let rule = replace.rule();
            Ring { rule, room: 0, len: 0, members: Members::new(grant), hand: 0 }
        };
        let mut cache = Cache {
            tiers: row.tiers().iter().map(|tier| ring(tier.replace)).collect(),
            row: row.clone(),
            slots: Slots::new(form, Self::parts(row), capacity, grant),
            clock: Clock::new(),
            forgotten: 0,
            distinct: Distinct::new(form.told_bits),
            counts_states: false,
            counts_successors: row.rules().any(Rule::counts_successors),
        };
        cache.divide();
        if cache.grow() { Ok(cache) } else { Err(Full) }
    }

    /// The same, where keys do not tell which states are different, if `by_states`.
    pub fn counting_states(mut self, by_states: bool) -> Cache {
        if by_states {
            (self.counts_states, self.distinct) = (true, Distinct::new(0));
        }
        self
    }

    fn parts(row: &Row) -> Parts {
        Parts { ancestry: row.holds_ancestors(), memories: row.tiers().len() }
    }

    /// Bytes that an entry takes at the most, the index and the tiers included.
    pub fn bytes_per_entry(row: &Row, form: KeyForm) -> usize {
        Self::parts(row).bytes_per_entry(form) + Members::bytes_per_entry(row.tiers().len())
    }

    pub fn row(&self) -> &Row {
        &self.row
    }

    pub fn len(&self) -> usize {
        self.slots.live()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        self.slots.bytes() + self.tiers.iter().map(|tier| tier.members.bytes()).sum::<usize>()
    }

    pub fn health(&self) -> Health {
        Health {
            held: self.len() as u64,
            pinned: self.pinned() as u64,
            capacity: self.slots.limit() as u64,
            forgotten: self.forgotten,
            distinct: self.distinct.estimate(),
        }
    }

    /// The sketch that `health` takes the number of distinct states from: see [`Health::of_parts`].
    pub fn distinct(&self) -> &Distinct {
        &self.distinct
    }

    fn pinned(&self) -> usize {
        self.len() - self.tiers.iter().map(|tier| tier.len).sum::<usize>()
    }

    /// States given up so far.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Gives up a part of the states, as far as they may leave.
    pub fn give_up_some(&mut self) {
        let count = self.len().div_ceil(GIVEN_UP_SHARE);
        (0..count).all(|_| self.forget_one());
    }

    /// Visits the leading bits of all keys, which are what their hashes are made of.
    pub fn visit(&mut self, visit: impl FnMut(u64)) {
        self.slots.visit(visit);
    }

    /// Takes back a pin: without `cover` there is only the one that the entry was inserted with.
    pub fn unpin(&mut self, place: Place) {
        assert!(self.tier_of(place.0).is_none(), "the entry is not pinned");
        if self.row.holds_ancestors() {
            let pins = self.slots.pins(place.0) - 1;
            self.slots.set_pins(place.0, pins);
            if pins > 0 {
                return;
            }
        }
        self.enrol(place.0, 0);
    }

    /// Forbids an entry of a `cover` cache to leave until it is unpinned as often.
    fn pin(&mut self, place: Place) {
        let pins = self.slots.pins(place.0);
        self.slots.set_pins(place.0, pins + 1);
        if let Some(tier) = self.tier_of(place.0) {
            self.tiers[tier].remove(place.0);
        }
    }

    /// The tier an entry is in, if it is not pinned.
    fn tier_of(&mut self, slot: u32) -> Option<usize> {
        self.tiers.iter_mut().position(|tier| tier.members.contains(slot))
    }

    /// Puts an entry without pins into a tier, which may have to give one to the next.
    fn enrol(&mut self, mut slot: u32, mut tier: usize) {
        let now = self.clock.now();
        loop {
            let Ring { rule, room, len, .. } = self.tiers[tier];
            let full = tier + 1 < self.tiers.len() && len >= room;
            if full && (room == 0 || rule.is_none()) {
                tier += 1;
                continue;
            }
            let leaving = if full { self.pop(tier) } else { None };
            let memory = &mut self.slots.memories(slot)[tier];
            *memory = rule.map_or(0, |rule| rule.entered(*memory, now));
            self.tiers[tier].insert(slot);
            match leaving {
                Some(other) => (slot, tier) = (other, tier + 1),
                None => return,
            }
        }
    }

    /// Takes the lowest cost out of a tier, of those that the hand comes to next.
    fn pop(&mut self, tier: usize) -> Option<u32> {
        let (now, slots) = (self.clock.now(), &mut self.slots);
        let Ring { rule, len, members, hand, .. } = &mut self.tiers[tier];
        let mut place = *hand;
        let mut next = || {
            let slot = members.next(place)?;
            place = slot + 1;
            Some((rule.map_or(0, |rule| rule.cost(slots.memories(slot)[tier], now)), slot))
        };
        let mut lowest = next()?;
        for _ in 1..(*len).min(rule.map_or(1, Rule::looks)) {
            if lowest.0 == 0 {
                break;
            }
            let other = next()?;
            if other.0 < lowest.0 {
                lowest = other;
            }
        }
        *hand = lowest.1 + 1;
        self.tiers[tier].remove(lowest.1);
        Some(lowest.1)
    }

    fn forget_one(&mut self) -> bool {
        let gives = |tier: &Ring| tier.len > 0 && tier.rule.is_some();
        let Some(slot) = self.tiers.iter().rposition(gives).and_then(|tier| self.pop(tier)) else { return false };
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
        self.tiers.iter_mut().all(|tier| tier.members.grow(count)) && self.slots.grow(count)
    }

    /// Gives every tier its share of the room; what is over goes to the next.
    fn divide(&mut self) {
        let rooms = self.row.rooms(self.slots.limit());
        for (tier, room) in self.tiers.iter_mut().zip(rooms) {
            tier.room = room;
        }
        for tier in 0..self.tiers.len() - 1 {
            while self.tiers[tier].len > self.tiers[tier].room {
                let slot = self.pop(tier).expect("the tier has entries");
                self.enrol(slot, tier + 1);
            }
        }
    }
}

impl Ring {
    fn insert(&mut self, slot: u32) {
        self.members.insert(slot);
        self.len += 1;
    }

    fn remove(&mut self, slot: u32) {
        self.members.remove(slot);
        self.len -= 1;
    }
}

impl AnyCache for Cache {
    fn form(&self) -> KeyForm {
        self.slots.form()
    }

    fn wants_parents(&self) -> bool {
        self.row.holds_ancestors() || self.counts_successors
    }

    fn keeps_ancestors(&self) -> bool {
        self.row.holds_ancestors()
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.slots.prefetch(hash);
    }

    fn find(&mut self, key: &[u8], hash: u64) -> Option<Place> {
        self.slots.find(key, hash).map(Place)
    }

    fn insert(&mut self, key: &[u8], hash: u64, note: Note, pinned: bool, parent: Place) -> Answer {
        debug_assert_eq!(hash, self.form().hash(key), "the hash that the table will compute when it grows");
        if let Some(slot) = self.slots.find(key, hash) {
            let now = self.clock.now();
            for (memory, tier) in self.slots.memories(slot).iter_mut().zip(&self.tiers) {
                *memory = tier.rule.map_or(0, |rule| rule.met(*memory, note, now));
            }
            return Answer::Known;
        }
        if self.slots.is_full() && !self.grow() && !self.forget_one() {
            return Answer::Full;
        }
        self.clock.tick(self.slots.count());
        if !self.counts_states {
            self.distinct.add(hash);
        }
        let slot = self.slots.add(key, hash);
        let now = self.clock.now();
        for (memory, tier) in self.slots.memories(slot).iter_mut().zip(&self.tiers) {
            *memory = tier.rule.map_or(0, |rule| rule.found(note, now));
        }
        if self.row.holds_ancestors() {
            self.slots.set_pins(slot, 1);
            if parent != Place::NOWHERE {
                self.slots.set_parent(slot, parent.0);
                self.pin(parent);
            }
        } else if !pinned {
            self.enrol(slot, 0);
        }
        Answer::New(Place(slot))
    }

    fn count_successors(&mut self, place: Place, successors: usize) {
        if self.counts_successors {
            for (memory, tier) in self.slots.memories(place.0).iter_mut().zip(&self.tiers) {
                *memory = tier.rule.map_or(0, |rule| rule.expanded(*memory, successors));
            }
        }
    }

    fn expanded(&mut self, place: Place, successors: usize) {
        self.count_successors(place, successors);
        if self.row.holds_ancestors() {
            self.unpin(place);
        }
    }

    fn counts_states(&self) -> bool {
        self.counts_states
    }

    fn count_state(&mut self, state: &[u32]) {
        self.distinct.add(hash::words(state));
    }

    fn count_key(&mut self, hash: u64) {
        self.distinct.add(hash);
    }
}

#[cfg(test)]
mod tests;
