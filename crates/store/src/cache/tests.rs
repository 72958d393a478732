use super::*;
use crate::budget::Budget;
use crate::hash;

/// The cache as one would write it without thinking of time.
struct Twin {
    spec: Spec,
    capacity: usize,
    entries: Vec<Entry>,
    stamp: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    key: u32,
    parent: Option<u32>,
    pins: u32,
    tier: usize,
    visits: i64,
    degree: i64,
    depth: u32,
    kind: u8,
    stamp: i64,
}

impl Twin {
    fn order(&self, entry: &Entry) -> (i64, i64) {
        let criterion = match self.spec.tiers()[entry.tier].0 {
            Rule::LeastRecent => 0,
            Rule::MostRecent => -entry.stamp,
            Rule::LeastFrequent | Rule::Visits => entry.visits,
            Rule::MostFrequent => -entry.visits,
            Rule::OutDegree => entry.degree,
            Rule::OutDegreeAndVisits => entry.degree + entry.visits,
            Rule::Stratified => (0..32).take_while(|bit| entry.depth >> bit & 1 == 1).count() as i64,
            Rule::Kind => -(entry.kind as i64),
            Rule::Random => unreachable!("chance has no twin"),
        };
        (criterion, entry.stamp)
    }

    fn position(&self, key: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.key == key)
    }

    fn now(&mut self) -> i64 {
        self.stamp += 1;
        self.stamp as i64
    }

    fn lowest(&self, tier: usize) -> Option<usize> {
        let in_tier = |&index: &usize| self.entries[index].pins == 0 && self.entries[index].tier == tier;
        (0..self.entries.len()).filter(in_tier).min_by_key(|&index| self.order(&self.entries[index]))
    }

    fn insert(&mut self, key: u32, note: Note, pinned: bool, parent: Option<u32>) -> &'static str {
        if let Some(index) = self.position(key) {
            let now = self.now();
            let heeds = self.entries[index].pins == 0
                && !matches!(
                    self.spec.tiers()[self.entries[index].tier].0,
                    Rule::Stratified | Rule::OutDegree | Rule::Random
                );
            let entry = &mut self.entries[index];
            entry.visits += 1;
            entry.kind = entry.kind.min(note.kind);
            if heeds {
                entry.stamp = now;
            }
            return "known";
        }
        if self.entries.len() == self.capacity && !self.forget() {
            return "full";
        }
        let (depth, kind) = (note.depth, note.kind);
        let parent = parent.filter(|_| self.spec.cover);
        self.entries.push(Entry { key, parent, pins: 1, tier: 0, visits: 1, degree: 0xFFFF, depth, kind, stamp: 0 });
        if let Some(parent) = parent {
            let index = self.position(parent).unwrap();
            self.entries[index].pins += 1;
        }
        if !pinned && !self.spec.cover {
            self.unpin(key);
        }
        "new"
    }

    fn forget(&mut self) -> bool {
        let Some(index) = (0..self.spec.tiers().len()).rev().find_map(|tier| self.lowest(tier)) else { return false };
        let entry = self.entries.remove(index);
        if let Some(parent) = entry.parent {
            self.unpin(parent);
        }
        true
    }

    fn unpin(&mut self, key: u32) {
        let mut index = self.position(key).unwrap();
        self.entries[index].pins -= 1;
        if self.entries[index].pins > 0 {
            return;
        }
        let rooms = self.spec.rooms(self.capacity);
        self.entries[index].tier = usize::MAX;
        for (tier, room) in rooms.iter().enumerate() {
            let last = tier + 1 == rooms.len();
            if !last && *room == 0 {
                continue;
            }
            let members = self.entries.iter().filter(|entry| entry.pins == 0 && entry.tier == tier).count();
            let leaving = (!last && members >= *room).then(|| self.lowest(tier).unwrap());
            let now = self.now();
            self.entries[index].tier = tier;
            self.entries[index].stamp = now;
            match leaving {
                Some(other) => index = other,
                None => return,
            }
        }
    }
}

fn next(random: &mut u64) -> u32 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 24) as u32
}

fn insert(cache: &mut Cache, key: u32, note: Note, pinned: bool, parent: Place) -> Answer {
    cache.insert(&[key, 7], hash::words(&[key, 7]), note, pinned, parent)
}

fn place(cache: &mut Cache, key: u32) -> Option<Place> {
    cache.find(&[key, 7], hash::words(&[key, 7]))
}

/// Random operations on a cache and its twin.
fn compare(spec: &Spec, capacity: usize, keys: u32, seed: u64) {
    let mut cache = Cache::new(spec, 2, capacity, &Grant::unlimited()).unwrap();
    let mut twin = Twin { spec: spec.clone(), capacity, entries: Vec::new(), stamp: 0 };
    let mut random = seed * 2 + 1;
    let mut by_hand: Vec<u32> = Vec::new();
    for step in 0..3_000 {
        let (key, choice) = (next(&mut random) % keys, next(&mut random) % 10);
        let open = |twin: &Twin| twin.entries.iter().filter(|entry| entry.pins > 0).map(|e| e.key).collect::<Vec<_>>();
        match choice {
            0..7 => {
                let note = Note { depth: next(&mut random) % 40, kind: (next(&mut random) % 5) as u8 };
                let pinned = choice == 6 && !spec.cover && by_hand.len() < capacity / 2;
                let parent = open(&twin).first().copied().filter(|_| spec.cover);
                let parent_place = parent.map_or(Place::NOWHERE, |key| place(&mut cache, key).unwrap());
                let answer = insert(&mut cache, key, note, pinned, parent_place);
                let expected = twin.insert(key, note, pinned, parent);
                let name = match answer {
                    Answer::New(_) => "new",
                    Answer::Known => "known",
                    Answer::Full => "full",
                };
                assert_eq!(name, expected, "{spec} of {capacity}, step {step}");
                if name == "new" && pinned {
                    by_hand.push(key);
                }
                if name == "new" && spec.cover && twin.entries.len() > capacity / 2 {
                    close(&mut cache, &mut twin, &mut random);
                }
            }
            7 if !by_hand.is_empty() => {
                let key = by_hand.swap_remove(next(&mut random) as usize % by_hand.len());
                let at = place(&mut cache, key).unwrap();
                cache.unpin(at);
                twin.unpin(key);
            }
            8 if !spec.cover && by_hand.len() < capacity / 2 => {
                if let Some(index) = twin.position(key) {
                    twin.entries[index].pins += 1;
                    let at = place(&mut cache, key).unwrap();
                    cache.pin(at);
                    by_hand.push(key);
                }
            }
            9 if spec.cover => close(&mut cache, &mut twin, &mut random),
            9 => {
                if let Some(index) = twin.position(key) {
                    let at = place(&mut cache, key).unwrap();
                    cache.expanded(at, key as usize % 6);
                    expanded(&mut twin, index, key % 6);
                }
            }
            _ => {}
        }
        assert_eq!(cache.len(), twin.entries.len());
    }
    for key in 0..keys {
        assert_eq!(place(&mut cache, key).is_some(), twin.position(key).is_some(), "{spec}: key {key}");
    }
    assert!(cache.health().forgotten > 0, "{spec} of {capacity} never forgot");
}

fn expanded(twin: &mut Twin, index: usize, degree: u32) {
    let now = twin.now();
    let entry = &mut twin.entries[index];
    entry.degree = degree as i64;
    let tier = entry.tier;
    if entry.pins == 0 && matches!(twin.spec.tiers()[tier].0, Rule::OutDegree | Rule::OutDegreeAndVisits) {
        twin.entries[index].stamp = now;
    }
}

/// Expands some open state of a `cover` cache.
fn close(cache: &mut Cache, twin: &mut Twin, random: &mut u64) {
    let has_children = |key: u32, twin: &Twin| twin.entries.iter().filter(|entry| entry.parent == Some(key)).count();
    let open: Vec<u32> = twin
        .entries
        .iter()
        .filter(|entry| entry.pins as usize == has_children(entry.key, twin) + 1)
        .map(|entry| entry.key)
        .collect();
    if let Some(&key) = open.get(next(random) as usize % open.len().max(1)) {
        let index = twin.position(key).unwrap();
        let at = place(cache, key).unwrap();
        cache.expanded(at, key as usize % 6);
        expanded(twin, index, key % 6);
        twin.unpin(key);
    }
}

#[test]
fn every_rule_agrees_with_its_twin() {
    for rule in Rule::ALL.into_iter().filter(|rule| *rule != Rule::Random) {
        for (capacity, keys) in [(2, 9), (7, 20), (60, 100), (100, 1000)] {
            for seed in 1..4 {
                compare(&Spec::single(rule), capacity, keys, seed);
                compare(&Spec::cover(rule), capacity, keys, seed);
            }
        }
    }
}

#[test]
fn chains_agree_with_their_twin() {
    for text in ["MFU:25%,LRU:75%", "LRU,LFU,SC", "O:10%,I:10%,kind:80%", "MRU:1%,LRU:99%"] {
        for (capacity, keys) in [(3, 9), (20, 60), (90, 150)] {
            compare(&text.parse().unwrap(), capacity, keys, 5);
        }
    }
}

#[test]
fn chance_forgets_evenly_and_the_same_each_time() {
    let run = || {
        let mut cache = Cache::new(&Spec::single(Rule::Random), 2, 100, &Grant::unlimited()).unwrap();
        for key in 0..1000 {
            assert!(matches!(insert(&mut cache, key, Note::default(), false, Place::NOWHERE), Answer::New(_)));
        }
        (0..1000).filter(|&key| place(&mut cache, key).is_some()).collect::<Vec<u32>>()
    };
    let held = run();
    assert_eq!((held.len(), &held), (100, &run()));
    let young = held.iter().filter(|&&key| key >= 800).count();
    assert!((5..95).contains(&young), "{young} of the last two hundred");
}

#[test]
fn a_cache_of_pinned_entries_is_full_and_recovers() {
    let mut cache = Cache::new(&Spec::single(Rule::LeastRecent), 2, 3, &Grant::unlimited()).unwrap();
    let mut places = Vec::new();
    for key in 0..3 {
        let Answer::New(place) = insert(&mut cache, key, Note::default(), true, Place::NOWHERE) else { panic!() };
        places.push(place);
    }
    assert_eq!(insert(&mut cache, 9, Note::default(), true, Place::NOWHERE), Answer::Full);
    cache.unpin(places[1]);
    assert!(matches!(insert(&mut cache, 9, Note::default(), true, Place::NOWHERE), Answer::New(_)));
    assert_eq!((place(&mut cache, 1), cache.len()), (None, 3));
}

#[test]
fn a_refusing_grant_only_makes_the_cache_smaller() {
    let bytes = 200 << 10;
    let budget = Budget::new(bytes);
    let grant = budget.grant("cache", bytes);
    let mut cache = Cache::new(&"MFU:25%,LRU:75%".parse().unwrap(), 2, 1 << 20, &grant).unwrap();
    for key in 0..50_000 {
        assert!(matches!(insert(&mut cache, key, Note::default(), false, Place::NOWHERE), Answer::New(_)));
        assert!(place(&mut cache, key).is_some(), "new promises that it is held");
    }
    let health = cache.health();
    assert!(budget.used_bytes() <= bytes && health.held == health.capacity);
    let per_entry = Cache::bytes_per_entry(2) as u64;
    assert!(health.capacity * per_entry > bytes / 2, "{} entries of {per_entry} bytes", health.capacity);
    assert_eq!(health.forgotten, 50_000 - health.held);
    assert!(health.distinct.abs_diff(50_000) < 5_000, "{}", health.distinct);
}
