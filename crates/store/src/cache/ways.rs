//! A cache for searches that pin nothing: sets of up to sixteen entries, with one byte for the rule each.
//!
//! A state belongs to the set that its hash names; when the set is full and the cache may not grow, the lowest cost
//! of the set leaves, and of several the one the set's hand comes to first, which is about the oldest. So a
//! rule decides among sixteen and not among all, and a bad spread makes states leave a little early; in return an
//! entry takes 2¼ bytes beside its key, and meeting, inserting and evicting touch one set. Every set has a
//! line of tags (a byte of the hash each, 0 for nobody, then a byte for the rule each, then the hand) and its keys.

use super::clock::Clock;
use super::key::{KeyForm, bytes_mut};
use super::rule::Rule;
use super::{Answer, AnyCache, Distinct, GIVEN_UP_SHARE, Health, Note, Place};
use crate::budget::Full;
use crate::budget::Grant;
use crate::hash;
use crate::region::{Region, prefetch};

const WAYS: usize = 16;
/// Words of tags per set: marks, what the rule remembers, the hand.
const MARKS: usize = 0;
const MEMORIES: usize = WAYS / 4;
const HAND: usize = WAYS / 2;
const TAG_WORDS: usize = HAND + 1;
/// A set that is full while the cache is emptier than this, in per cent, is bad luck and no reason to grow.
const GROW_ABOVE_PERCENT: usize = 25;

/// The sets.
#[derive(Debug)]
pub struct Ways {
    rule: Rule,
    form: KeyForm,
    /// Bytes kept of a key.
    key_bytes: usize,
    /// Entries per set, fewer than sixteen in small caches.
    ways: usize,
    sets: usize,
    limit: usize,
    tags: Region,
    keys: Region,
    live: usize,
    clock: Clock,
    forgotten: u64,
    distinct: Distinct,
    counts_states: bool,
}

impl Ways {
    /// A cache of at most `capacity` keys of this form; fewer if the grant has no room for them.
    pub fn new(rule: Rule, form: KeyForm, capacity: usize, grant: &Grant) -> Result<Ways, Full> {
        assert!(capacity > 0);
        let limit = capacity.div_ceil(WAYS).min(u32::MAX as usize / WAYS);
        let mut cache = Ways {
            rule,
            form,
            key_bytes: form.kept_bytes(),
            ways: (capacity / limit).min(WAYS),
            sets: 0,
            limit,
            tags: Region::new(grant.clone()),
            keys: Region::new(grant.clone()),
            live: 0,
            clock: Clock::new(),
            forgotten: 0,
            distinct: Distinct::new(form.told_bits),
            counts_states: false,
        };
        if cache.grow() { Ok(cache) } else { Err(Full) }
    }

    /// The same, where keys do not tell which states are different, if `by_states`.
    pub fn counting_states(mut self, by_states: bool) -> Ways {
        if by_states {
            (self.counts_states, self.distinct) = (true, Distinct::new(0));
        }
        self
    }

    /// Bytes that an entry takes at the most.
    pub fn bytes_per_entry(form: KeyForm) -> usize {
        form.kept_bytes() + (TAG_WORDS * 4).div_ceil(WAYS)
    }

    pub fn rule(&self) -> Rule {
        self.rule
    }

    pub fn len(&self) -> usize {
        self.live
    }

    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub fn bytes(&self) -> usize {
        self.tags.bytes() + self.keys.bytes()
    }

    pub fn health(&self) -> Health {
        Health {
            held: self.live as u64,
            pinned: 0,
            capacity: (self.limit * self.ways) as u64,
            forgotten: self.forgotten,
            distinct: self.distinct.estimate(),
        }
    }

    /// The sketch that `health` takes the number of distinct states from: see [`Health::of_parts`].
    pub fn distinct(&self) -> &Distinct {
        &self.distinct
    }

    /// States given up so far.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Gives up a part of the states: of every set those with the lowest cost.
    pub fn give_up_some(&mut self) {
        for set in 0..self.sets {
            let taken = |cache: &mut Ways, way: &usize| cache.byte(set, MARKS, *way) != 0;
            let mut held: Vec<usize> = (0..self.ways).filter(|way| taken(self, way)).collect();
            let now = self.clock.now();
            held.sort_by_cached_key(|&way| self.rule.cost(self.byte(set, MEMORIES, way), now));
            held.truncate(held.len().div_ceil(GIVEN_UP_SHARE));
            held.iter().for_each(|&way| self.set_byte(set, MARKS, way, 0));
            self.live -= held.len();
            self.forgotten += held.len() as u64;
        }
    }

    /// Visits the leading bits of all keys.
    pub fn visit(&mut self, mut visit: impl FnMut(u64)) {
        for set in 0..self.sets {
            for way in 0..self.ways {
                if self.byte(set, MARKS, way) != 0 {
                    let (form, bytes) = (self.form, self.key_bytes);
                    visit(form.leading_of_kept(&self.keys(set)[way * bytes..][..bytes]));
                }
            }
        }
    }

    /// The set of the own part of a hash, and its mark: the bits that follow those that the set tells.
    #[inline]
    fn home(&self, own: u64) -> (usize, u8) {
        let place = own as u128 * self.sets as u128;
        ((place >> 64) as usize, ((place >> 56) as u8).max(1))
    }

    fn byte(&mut self, set: usize, part: usize, way: usize) -> u8 {
        (self.tags.words_mut()[set * TAG_WORDS + part + way / 4] >> (way % 4 * 8)) as u8
    }

    fn set_byte(&mut self, set: usize, part: usize, way: usize, value: u8) {
        let word = &mut self.tags.words_mut()[set * TAG_WORDS + part + way / 4];
        let shift = way % 4 * 8;
        *word = *word & !(0xFF << shift) | (value as u32) << shift;
    }

    /// The keys of a set, end to end.
    fn keys(&mut self, set: usize) -> &mut [u8] {
        let bytes = self.ways * self.key_bytes;
        &mut bytes_mut(&mut self.keys)[set * bytes..][..bytes]
    }

    /// The first way of the set, below the number of ways, whose mark is `mark` and for which `accepts`.
    #[inline]
    fn search(&mut self, set: usize, mark: u8, accepts: impl Fn(&[u8]) -> bool) -> Option<usize> {
        let (bytes, ways) = (self.key_bytes, self.ways);
        let marks = &self.tags.words_mut()[set * TAG_WORDS..][..MEMORIES];
        let pattern = u32::from_ne_bytes([mark; 4]);
        let keys = &bytes_mut(&mut self.keys)[set * ways * bytes..][..ways * bytes];
        for (group, &four) in marks.iter().enumerate() {
            // The high bit of every byte that is equal; above such a byte others may seem to be.
            let difference = four ^ pattern;
            let mut equal = difference.wrapping_sub(0x0101_0101) & !difference & 0x8080_8080;
            while equal != 0 {
                let way = group * 4 + equal.trailing_zeros() as usize / 8;
                let byte = (four >> (way % 4 * 8)) as u8;
                if way < ways && byte == mark && accepts(&keys[way * bytes..][..bytes]) {
                    return Some(way);
                }
                equal &= equal - 1;
            }
        }
        None
    }

    fn put(&mut self, set: usize, way: usize, key: &[u8], mark: u8, memory: u8) {
        let bytes = self.key_bytes;
        self.keys(set)[way * bytes..][..bytes].copy_from_slice(key);
        self.set_byte(set, MARKS, way, mark);
        self.set_byte(set, MEMORIES, way, memory);
    }

    /// A way of the set that is free, or else was given up.
    fn vacate(&mut self, set: usize) -> usize {
        if let Some(free) = self.search(set, 0, |_| true) {
            return free;
        }
        self.forgotten += 1;
        self.live -= 1;
        self.victim(set)
    }

    /// The way of a full set that must leave; the hand moves past it.
    fn victim(&mut self, set: usize) -> usize {
        let (ways, rule, now) = (self.ways, self.rule, self.clock.now());
        let hand_word = set * TAG_WORDS + HAND;
        let hand = self.tags.words_mut()[hand_word] as usize;
        let order = (0..ways).map(|step| (hand + step) % ways);
        let cost = |&way: &usize| rule.cost(self.byte(set, MEMORIES, way), now);
        let victim = order.min_by_key(cost).expect("a set has ways");
        self.tags.words_mut()[hand_word] = ((victim + 1) % ways) as u32;
        victim
    }

    /// Makes more sets; if that is not allowed, what there is must do from now on.
    fn grow(&mut self) -> bool {
        // The numbers of sets are the limit, half of it, a quarter, so that the last step is as long as the others.
        let mut wanted = self.limit;
        while wanted / 2 > self.sets {
            wanted = wanted.div_ceil(2);
        }
        let steps = [1, 2, 4, 8, 16].map(|part| (wanted - self.sets) / part);
        if steps.into_iter().any(|step| step > 0 && self.grow_to(self.sets + step)) {
            return true;
        }
        self.limit = self.sets;
        false
    }

    fn grow_to(&mut self, wanted: usize) -> bool {
        let bytes = self.ways * self.key_bytes;
        if !self.tags.grow(wanted * TAG_WORDS * 4) || !self.keys.grow(wanted * bytes) {
            return false;
        }
        let old = std::mem::replace(&mut self.sets, wanted);
        let mut tags = [0; TAG_WORDS];
        let mut keys = vec![0; bytes];
        // Scaling is monotone: from the last set on, entries move to sets that were emptied before.
        for set in (0..old).rev() {
            let held = &mut self.tags.words_mut()[set * TAG_WORDS..][..TAG_WORDS];
            tags.copy_from_slice(held);
            held.fill(0);
            keys.copy_from_slice(self.keys(set));
            for (way, key) in keys.chunks_exact(self.key_bytes).enumerate() {
                let part = |first: usize| (tags[first + way / 4] >> (way % 4 * 8)) as u8;
                if part(MARKS) != 0 {
                    let (set, mark) = self.home(self.form.own_of_kept(key));
                    let way = self.vacate(set);
                    self.put(set, way, key, mark, part(MEMORIES));
                }
            }
        }
        true
    }
}

impl AnyCache for Ways {
    fn form(&self) -> KeyForm {
        self.form
    }

    fn wants_parents(&self) -> bool {
        self.rule.counts_successors()
    }

    fn keeps_ancestors(&self) -> bool {
        false
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        let set = self.home(self.form.own(hash)).0;
        prefetch(&self.tags.words()[set * TAG_WORDS]);
        prefetch(&self.keys.words()[set * self.ways * self.key_bytes / 4]);
    }

    fn find(&mut self, key: &[u8], hash: u64) -> Option<Place> {
        let (set, mark) = self.home(self.form.own(hash));
        let key = self.form.kept(key);
        let way = self.search(set, mark, |held| held == key)?;
        Some(Place((set * WAYS + way) as u32))
    }

    fn insert(&mut self, key: &[u8], hash: u64, note: Note, pinned: bool, _parent: Place) -> Answer {
        assert!(!pinned, "nothing can be pinned here");
        debug_assert_eq!(hash, self.form.hash(key), "the hash that the table will compute when it grows");
        let key = self.form.kept(key);
        let (mut set, mut mark) = self.home(self.form.own(hash));
        if let Some(way) = self.search(set, mark, |held| held == key) {
            let memory = self.rule.met(self.byte(set, MEMORIES, way), note, self.clock.now());
            self.set_byte(set, MEMORIES, way, memory);
            return Answer::Known;
        }
        while self.search(set, 0, |_| true).is_none()
            && self.live * 100 >= self.sets * self.ways * GROW_ABOVE_PERCENT
            && self.grow()
        {
            (set, mark) = self.home(self.form.own(hash));
        }
        let way = self.vacate(set);
        self.clock.tick(self.sets * self.ways);
        self.live += 1;
        if !self.counts_states {
            self.distinct.add(hash);
        }
        let memory = self.rule.found(note, self.clock.now());
        self.put(set, way, key, mark, memory);
        Answer::New(Place::NOWHERE)
    }

    fn count_successors(&mut self, place: Place, successors: usize) {
        let (set, way) = (place.0 as usize / WAYS, place.0 as usize % WAYS);
        let memory = self.rule.expanded(self.byte(set, MEMORIES, way), successors);
        self.set_byte(set, MEMORIES, way, memory);
    }

    fn expanded(&mut self, place: Place, successors: usize) {
        self.count_successors(place, successors);
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
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::cache::Hashed;
    use std::collections::HashSet;

    const FORM: KeyForm = KeyForm { bytes: 8, hashed: Hashed::Whole, told_bits: 0 };

    fn key_of(numbers: [u32; 2]) -> (Vec<u8>, u64) {
        let key: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
        (key.clone(), FORM.hash(&key))
    }

    fn cache(rule: Rule, capacity: usize) -> Ways {
        Ways::new(rule, FORM, capacity, &Grant::unlimited()).unwrap()
    }

    fn insert(cache: &mut Ways, key: [u32; 2], depth: u32) -> bool {
        let note = Note { depth, kind: (depth % 5) as u8 };
        let (key, hash) = key_of(key);
        matches!(cache.insert(&key, hash, note, false, Place::NOWHERE), Answer::New(_))
    }

    fn holds(cache: &mut Ways, key: [u32; 2]) -> bool {
        let (key, hash) = key_of(key);
        cache.find(&key, hash).is_some()
    }

    #[test]
    fn with_room_for_all_it_is_a_set() {
        for rule in Rule::ALL {
            let (mut cache, mut twin) = (cache(rule, 100_000), HashSet::new());
            for number in 0..30_000u32 {
                let key = [number.wrapping_mul(2_654_435_761) >> 18, number % 2];
                assert_eq!(insert(&mut cache, key, number), twin.insert(key), "{rule}");
            }
            assert_eq!((cache.len(), cache.health().forgotten), (twin.len(), 0), "{rule}");
        }
    }

    #[test]
    fn new_promises_that_it_is_held_and_the_capacity_is_kept() {
        for (rule, capacity) in Rule::ALL.into_iter().flat_map(|rule| [1, 5, 16, 31, 1000].map(|size| (rule, size))) {
            let mut cache = cache(rule, capacity);
            for number in 0..5_000u32 {
                let key = [number % 3000, 1];
                let known = holds(&mut cache, key);
                assert_eq!(insert(&mut cache, key, number / 10), !known, "{rule} {capacity}");
                assert!(holds(&mut cache, key) && cache.len() <= capacity, "{rule} {capacity}");
            }
            let health = cache.health();
            assert!(health.held <= health.capacity && health.capacity <= capacity as u64 && health.forgotten > 0);
        }
    }

    #[test]
    fn keys_of_any_length_are_found_again() {
        for (bytes, told_bits) in (1..=40).flat_map(|bytes| [0, 8].map(|told_bits| (bytes, told_bits))) {
            let form = KeyForm { bytes, hashed: Hashed::Leading, told_bits };
            let (mut cache, mut twin) = (Ways::new(Rule::Stratified, form, 4_000, &Grant::unlimited()).unwrap(), 0);
            for number in 0..3_000u32 {
                // The first byte is that of the part; then as many bits as there are, scattered.
                let scattered = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
                let told = if told_bits == 8 { 1 } else { 0 };
                let key: Vec<u8> =
                    (0..bytes).map(|at| if at < told { 9 } else { scattered[(at - told) % 4] }).collect();
                let hash = form.hash(&key);
                let known = cache.find(&key, hash).is_some();
                let answer = cache.insert(&key, hash, Note::default(), false, Place::NOWHERE);
                assert_eq!(answer == Answer::Known, known, "{form:?}");
                twin += !known as usize;
                assert!(cache.find(&key, hash).is_some(), "{form:?}");
            }
            assert_eq!(cache.len() + cache.health().forgotten as usize, twin, "{form:?}");
            let most = 256usize.saturating_pow((bytes - (told_bits == 8) as usize).min(3) as u32).min(3_000);
            assert!(twin >= most && cache.len() * 10 >= most * 9, "{} of {most} {form:?}", cache.len());
        }
    }

    #[test]
    fn the_lowest_cost_of_a_set_leaves() {
        let leaves = |rule: Rule, depths: [u32; 4], meet: Option<u32>| {
            let mut cache = cache(rule, 4);
            (0..4).for_each(|number| assert!(insert(&mut cache, [number, 0], depths[number as usize])));
            meet.into_iter().for_each(|number| assert!(!insert(&mut cache, [number, 0], depths[number as usize])));
            insert(&mut cache, [9, 9], 0);
            (0..4).find(|&number| !holds(&mut cache, [number, 0])).unwrap()
        };
        assert_eq!(leaves(Rule::Stratified, [1, 3, 2, 7], None), 2);
        assert_eq!(leaves(Rule::Stratified, [2, 4, 6, 8], None), 0, "the oldest of equals");
        assert_eq!(leaves(Rule::LeastRecent, [0; 4], Some(0)), 1);
        assert_eq!(leaves(Rule::MostRecent, [0; 4], Some(1)), 1);
        assert_eq!(leaves(Rule::Visits, [0; 4], Some(0)), 1);
        assert_eq!(leaves(Rule::MostFrequent, [0; 4], Some(2)), 2);
        assert_eq!(leaves(Rule::Kind, [1, 2, 4, 3], None), 2, "the highest tag");
    }

    #[test]
    fn states_that_wait_leave_after_those_that_were_expanded() {
        for (rule, second) in [(Rule::OutDegree, 3), (Rule::OutDegreeAndVisits, 3)] {
            let mut cache = cache(rule, 4);
            (0..4).for_each(|number| assert!(insert(&mut cache, [number, 0], 0)));
            for (number, successors) in [(1, 2), (3, 5)] {
                let (key, hash) = key_of([number, 0]);
                let place = cache.find(&key, hash).unwrap();
                cache.count_successors(place, successors);
            }
            insert(&mut cache, [8, 8], 0);
            assert!(!holds(&mut cache, [1, 0]), "{rule}");
            insert(&mut cache, [9, 9], 0);
            assert!(!holds(&mut cache, [second, 0]), "{rule}");
        }
    }

    #[test]
    fn it_grows_within_its_grant() {
        let bytes = 200_000;
        let budget = Budget::new(bytes);
        let mut cache = Ways::new(Rule::Stratified, FORM, 1_000_000, &budget.grant("cache", bytes)).unwrap();
        (0..100_000).for_each(|number| assert!(insert(&mut cache, [number, 3], number)));
        assert!(budget.used_bytes() <= bytes && cache.len() > 5_000, "{}", cache.len());
        assert_eq!(cache.health().forgotten, 100_000 - cache.len() as u64);
    }
}
