//! A cache for searches that pin nothing: sets of up to sixteen entries, with one byte of cost each.
//!
//! A state belongs to the set that its hash names; when the set is full and the cache may not grow, the lowest cost
//! of the set leaves, and of several the one the set's hand comes to first, which is about the oldest. So a
//! rule decides among sixteen and not among all, and a bad spread makes states leave a little early; in return an
//! entry takes 2¼ bytes beside its key, and meeting, inserting and evicting touch one set. Every set has a
//! line of tags (a byte of the hash each, 0 for nobody, then a byte of cost each, then the hand) and its keys.

use super::rule::{Event, Facts, Rule, UNKNOWN_DEGREE, WAITING};
use super::{Answer, Distinct, Health, Held, Note, Place};
use crate::budget::Grant;
use crate::hash;
use crate::region::{Region, prefetch};
use crate::roots::Full;

const WAYS: usize = 16;
/// Words of tags per set: marks, costs, the hand.
const MARKS: usize = 0;
const COSTS: usize = WAYS / 4;
const HAND: usize = WAYS / 2;
const TAG_WORDS: usize = HAND + 1;
/// A set that is full while the cache is emptier than this, in per cent, is bad luck and no reason to grow.
const GROW_ABOVE_PERCENT: usize = 25;
/// Times are counted in so many steps per turnover of the cache.
const TIMES_PER_TURNOVER: u64 = 128;

/// The sets.
#[derive(Debug)]
pub struct Ways {
    rule: Rule,
    key_words: usize,
    /// Entries per set, fewer than sixteen in small caches.
    ways: usize,
    sets: usize,
    limit: usize,
    tags: Region,
    keys: Region,
    live: usize,
    clock: u64,
    random: u64,
    forgotten: u64,
    distinct: Distinct,
}

impl Ways {
    /// A cache of at most `capacity` keys of `key_words` words; fewer if the grant has no room for them.
    pub fn new(rule: Rule, key_words: usize, capacity: usize, grant: &Grant) -> Result<Ways, Full> {
        assert!(capacity > 0);
        let limit = capacity.div_ceil(WAYS).min(u32::MAX as usize / WAYS);
        let mut cache = Ways {
            rule,
            key_words,
            ways: (capacity / limit).min(WAYS),
            sets: 0,
            limit,
            tags: Region::new(grant.clone()),
            keys: Region::new(grant.clone()),
            live: 0,
            clock: 0,
            random: 0x853C_49E6_748F_EA9B,
            forgotten: 0,
            distinct: Distinct::default(),
        };
        if cache.grow() { Ok(cache) } else { Err(Full) }
    }

    /// Bytes that an entry takes at the most.
    pub fn bytes_per_entry(key_words: usize) -> usize {
        key_words * 4 + (TAG_WORDS * 4).div_ceil(WAYS)
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

    fn mark(hash: u64) -> u8 {
        (hash as u8).max(1)
    }

    fn byte(&mut self, set: usize, part: usize, way: usize) -> u8 {
        (self.tags.words_mut()[set * TAG_WORDS + part + way / 4] >> (way % 4 * 8)) as u8
    }

    fn set_byte(&mut self, set: usize, part: usize, way: usize, value: u8) {
        let word = &mut self.tags.words_mut()[set * TAG_WORDS + part + way / 4];
        let shift = way % 4 * 8;
        *word = *word & !(0xFF << shift) | (value as u32) << shift;
    }

    fn key(&mut self, set: usize, way: usize) -> &mut [u32] {
        let words = self.key_words;
        &mut self.keys.words_mut()[(set * self.ways + way) * words..][..words]
    }

    /// The first way of the set, below the number of ways, whose mark is `mark` and for which `accepts`.
    #[inline]
    fn search(&mut self, set: usize, mark: u8, accepts: impl Fn(&[u32]) -> bool) -> Option<usize> {
        let (words, ways) = (self.key_words, self.ways);
        let marks = &self.tags.words_mut()[set * TAG_WORDS..][..COSTS];
        let pattern = u32::from_ne_bytes([mark; 4]);
        let keys = &self.keys.words_mut()[set * ways * words..][..ways * words];
        for (group, &four) in marks.iter().enumerate() {
            // The high bit of every byte that is equal; above such a byte others may seem to be.
            let difference = four ^ pattern;
            let mut equal = difference.wrapping_sub(0x0101_0101) & !difference & 0x8080_8080;
            while equal != 0 {
                let way = group * 4 + equal.trailing_zeros() as usize / 8;
                let byte = (four >> (way % 4 * 8)) as u8;
                if way < ways && byte == mark && accepts(&keys[way * words..][..words]) {
                    return Some(way);
                }
                equal &= equal - 1;
            }
        }
        None
    }

    fn put(&mut self, set: usize, way: usize, key: &[u32], mark: u8, cost: u8) {
        // Keys are short: a loop is quicker than a call.
        self.key(set, way).iter_mut().zip(key).for_each(|(word, &value)| *word = value);
        self.set_byte(set, MARKS, way, mark);
        self.set_byte(set, COSTS, way, cost);
    }

    /// The way of a full set that must leave; the hand moves past it.
    fn victim(&mut self, set: usize) -> usize {
        let ways = self.ways;
        let hand_word = set * TAG_WORDS + HAND;
        let hand = self.tags.words_mut()[hand_word] as usize;
        let now = self.time();
        let rule = self.rule;
        let worth = |cost: u8| match rule {
            // Times wrap round; the oldest is the one just ahead of now.
            Rule::LeastRecent => cost.wrapping_sub(now).wrapping_sub(1),
            Rule::MostRecent => now.wrapping_sub(cost),
            _ => cost,
        };
        let order = (0..ways).map(|step| (hand + step) % ways);
        let victim = order.min_by_key(|&way| worth(self.byte(set, COSTS, way))).expect("a set has ways");
        self.tags.words_mut()[hand_word] = ((victim + 1) % ways) as u32;
        victim
    }

    fn draw(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 24) as u32
    }

    /// The time in a byte, for rules that ask for it.
    fn time(&self) -> u8 {
        if !matches!(self.rule, Rule::LeastRecent | Rule::MostRecent) {
            return 0;
        }
        (self.clock / ((self.sets * self.ways) as u64).div_ceil(TIMES_PER_TURNOVER)) as u8
    }

    /// The cost of an entry that was found with this note.
    fn cost(&mut self, note: Note, visits: u32, degree: u32) -> u8 {
        let random = if self.rule == Rule::Random { self.draw() } else { 0 };
        let (clock, depth, kind) = (self.time() as u64, note.depth, note.kind as u32);
        self.rule.short_cost(&Facts { clock, random, visits, degree, depth, kind })
    }

    /// The state is met again.
    fn meet(&mut self, set: usize, way: usize, note: Note) {
        self.clock += 1;
        if !self.rule.heeds(Event::Met) {
            return;
        }
        let cost = self.byte(set, COSTS, way);
        let cost = match self.rule {
            Rule::OutDegreeAndVisits if cost == WAITING - 1 => cost,
            Rule::LeastFrequent | Rule::Visits | Rule::OutDegreeAndVisits => cost.saturating_add(1),
            Rule::MostFrequent => cost.saturating_sub(1),
            Rule::Kind => cost.max(self.cost(note, 1, 0)),
            _ => self.time(),
        };
        self.set_byte(set, COSTS, way, cost);
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
        let words = self.ways * self.key_words;
        if !self.tags.grow(wanted * TAG_WORDS * 4) || !self.keys.grow(wanted * words * 4) {
            return false;
        }
        let old = std::mem::replace(&mut self.sets, wanted);
        let mut tags = [0; TAG_WORDS];
        let mut keys = vec![0; words];
        // Scaling is monotone: from the last set on, entries move to sets that were emptied before.
        for set in (0..old).rev() {
            let held = &mut self.tags.words_mut()[set * TAG_WORDS..][..TAG_WORDS];
            tags.copy_from_slice(held);
            held.fill(0);
            keys.copy_from_slice(&self.keys.words_mut()[set * words..][..words]);
            for (way, key) in keys.chunks_exact(self.key_words).enumerate() {
                let part = |first: usize| (tags[first + way / 4] >> (way % 4 * 8)) as u8;
                if part(MARKS) != 0 {
                    self.replace(key, hash::words(key), part(COSTS));
                }
            }
        }
        true
    }

    /// Puts an entry that moves into its set.
    fn replace(&mut self, key: &[u32], hash: u64, cost: u8) {
        let set = hash::scale(hash, self.sets);
        let free = self.search(set, 0, |_| true);
        let way = free.unwrap_or_else(|| {
            self.forgotten += 1;
            self.live -= 1;
            self.victim(set)
        });
        self.put(set, way, key, Self::mark(hash), cost);
    }
}

/// Are two short keys of one length equal?
#[inline]
fn same(one: &[u32], other: &[u32]) -> bool {
    one.iter().zip(other).all(|(a, b)| a == b)
}

impl Held for Ways {
    fn key_words(&self) -> usize {
        self.key_words
    }

    fn wants_parents(&self) -> bool {
        self.rule.counts_successors()
    }

    fn covers(&self) -> bool {
        false
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        let set = hash::scale(hash, self.sets);
        prefetch(&self.tags.words()[set * TAG_WORDS]);
        prefetch(&self.keys.words()[set * self.ways * self.key_words]);
    }

    fn find(&mut self, key: &[u32], hash: u64) -> Option<Place> {
        let set = hash::scale(hash, self.sets);
        let way = self.search(set, Self::mark(hash), |held| same(held, key))?;
        Some(Place((set * WAYS + way) as u32))
    }

    fn insert(&mut self, key: &[u32], hash: u64, note: Note, pinned: bool, _parent: Place) -> Answer {
        assert!(!pinned, "nothing can be pinned here");
        let mut set = hash::scale(hash, self.sets);
        if let Some(way) = self.search(set, Self::mark(hash), |held| same(held, key)) {
            self.meet(set, way, note);
            return Answer::Known;
        }
        let mut free = self.search(set, 0, |_| true);
        while free.is_none() && self.live * 100 >= self.sets * self.ways * GROW_ABOVE_PERCENT && self.grow() {
            set = hash::scale(hash, self.sets);
            free = self.search(set, 0, |_| true);
        }
        let way = free.unwrap_or_else(|| {
            self.forgotten += 1;
            self.live -= 1;
            self.victim(set)
        });
        self.clock += 1;
        self.live += 1;
        self.distinct.add(hash);
        let cost = self.cost(note, 1, UNKNOWN_DEGREE);
        self.put(set, way, key, Self::mark(hash), cost);
        Answer::New(Place::NOWHERE)
    }

    fn count_successors(&mut self, place: Place, successors: usize) {
        let (set, way) = (place.0 as usize / WAYS, place.0 as usize % WAYS);
        let visits = self.byte(set, COSTS, way).saturating_sub(WAITING);
        let degree = successors.min(UNKNOWN_DEGREE as usize - 1) as u32;
        let cost = self.cost(Note::default(), visits.into(), degree);
        self.set_byte(set, COSTS, way, cost);
    }

    fn expanded(&mut self, place: Place, successors: usize) {
        self.count_successors(place, successors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use std::collections::HashSet;

    fn cache(rule: Rule, capacity: usize) -> Ways {
        Ways::new(rule, 2, capacity, &Grant::unlimited()).unwrap()
    }

    fn insert(cache: &mut Ways, key: [u32; 2], depth: u32) -> bool {
        let note = Note { depth, kind: (depth % 5) as u8 };
        matches!(cache.insert(&key, hash::words(&key), note, false, Place::NOWHERE), Answer::New(_))
    }

    fn holds(cache: &mut Ways, key: [u32; 2]) -> bool {
        cache.find(&key, hash::words(&key)).is_some()
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
                let place = cache.find(&[number, 0], hash::words(&[number, 0])).unwrap();
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
        let mut cache = Ways::new(Rule::Stratified, 2, 1_000_000, &budget.grant("cache", bytes)).unwrap();
        (0..100_000).for_each(|number| assert!(insert(&mut cache, [number, 3], number)));
        assert!(budget.used_bytes() <= bytes && cache.len() > 5_000, "{}", cache.len());
        assert_eq!(cache.health().forgotten, 100_000 - cache.len() as u64);
    }
}
