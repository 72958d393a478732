use super::*;
use crate::budget::Budget;
use plimsoll_ir::random::Draw;

/// The cache as one would write it without thinking of time or space.
struct Twin {
    row: Row,
    capacity: usize,
    slots: Vec<Option<Entry>>,
    hands: Vec<usize>,
    insertions: i64,
}

#[derive(Clone, Debug)]
struct Entry {
    key: u32,
    parent: Option<u32>,
    pins: u32,
    tier: usize,
    /// How often it was met after the first time.
    meetings: i64,
    successors: Option<i64>,
    depth: u32,
    kind: u8,
    /// When it was met last, or came into its tier.
    time: i64,
}

impl Twin {
    fn new(row: &Row, capacity: usize) -> Twin {
        let hands = vec![0; row.tiers().len()];
        Twin { row: row.clone(), capacity, slots: vec![None; capacity], hands, insertions: 0 }
    }

    /// Who leaves a tier, if anybody does.
    fn rule(&self, tier: usize) -> Option<Rule> {
        self.row.tiers()[tier].replace.rule()
    }

    /// The lowest leaves. Counts end where a byte does.
    fn criterion(&self, entry: &Entry) -> i64 {
        let Some(rule) = self.rule(entry.tier) else { return 0 };
        let age = (self.insertions - entry.time).rem_euclid(256);
        match rule {
            Rule::LeastRecent => -age,
            Rule::MostRecent => age,
            Rule::LeastFrequent | Rule::Visits => entry.meetings.min(255),
            Rule::MostFrequent => -entry.meetings.min(255),
            Rule::OutDegree => entry.successors.map_or(1000, |count| count.min(127)),
            Rule::OutDegreeAndVisits => match entry.successors {
                Some(count) => (count + entry.meetings).min(127),
                None => 1000 + entry.meetings.min(127),
            },
            Rule::Stratified => (0..32).take_while(|bit| entry.depth >> bit & 1 == 1).count() as i64,
            Rule::Kind => -(entry.kind as i64),
            Rule::Random => unreachable!("chance has no twin"),
        }
    }

    fn held(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flatten()
    }

    fn entry(&mut self, key: u32) -> Option<&mut Entry> {
        self.slots.iter_mut().flatten().find(|entry| entry.key == key)
    }

    fn members(&self, tier: usize) -> usize {
        self.held().filter(|entry| entry.pins == 0 && entry.tier == tier).count()
    }

    /// The slot of the one that leaves a tier, if there is any.
    fn pop(&mut self, tier: usize) -> Option<usize> {
        let slots = (0..self.capacity).map(|step| (self.hands[tier] + step) % self.capacity);
        let members = slots.filter_map(|slot| Some((slot, self.slots[slot].as_ref()?)));
        let looked_at =
            members.filter(|(_, entry)| entry.pins == 0 && entry.tier == tier).take(self.rule(tier)?.looks());
        let slot = looked_at.min_by_key(|(_, entry)| self.criterion(entry))?.0;
        self.hands[tier] = slot + 1;
        Some(slot)
    }

    fn insert(&mut self, key: u32, note: Note, pinned: bool, parent: Option<u32>) -> &'static str {
        let now = self.insertions;
        if let Some(entry) = self.entry(key) {
            entry.meetings += 1;
            entry.kind = entry.kind.min(note.kind);
            entry.time = now;
            return "known";
        }
        if self.held().count() == self.capacity && !self.forget() {
            return "full";
        }
        self.insertions += 1;
        let free = self.slots.iter().position(|slot| slot.is_none()).unwrap();
        let (depth, kind, time) = (note.depth, note.kind, self.insertions);
        let parent = parent.filter(|_| self.row.holds_ancestors());
        let entry = Entry { key, parent, pins: 1, tier: 0, meetings: 0, successors: None, depth, kind, time };
        self.slots[free] = Some(entry);
        if let Some(parent) = parent {
            self.entry(parent).unwrap().pins += 1;
        }
        if !pinned && !self.row.holds_ancestors() {
            self.unpin(key);
        }
        "new"
    }

    fn forget(&mut self) -> bool {
        let gives = |&tier: &usize| self.rule(tier).is_some() && self.members(tier) > 0;
        let Some(tier) = (0..self.hands.len()).rev().find(gives) else { return false };
        let slot = self.pop(tier).unwrap();
        let entry = self.slots[slot].take().unwrap();
        if let Some(parent) = entry.parent {
            self.unpin(parent);
        }
        true
    }

    fn unpin(&mut self, key: u32) {
        let entry = self.entry(key).unwrap();
        entry.pins -= 1;
        if entry.pins > 0 {
            return;
        }
        entry.tier = usize::MAX;
        let mut slot = self.slots.iter().position(|slot| slot.as_ref().is_some_and(|entry| entry.key == key)).unwrap();
        let rooms = self.row.rooms(self.capacity);
        for (tier, room) in rooms.iter().enumerate() {
            let full = tier + 1 < rooms.len() && self.members(tier) >= *room;
            if full && (*room == 0 || self.rule(tier).is_none()) {
                continue;
            }
            let leaving = if full { self.pop(tier) } else { None };
            let now = self.insertions;
            let entry = self.slots[slot].as_mut().unwrap();
            (entry.tier, entry.time) = (tier, now);
            match leaving {
                Some(other) => slot = other,
                None => return,
            }
        }
    }

    fn expanded(&mut self, key: u32, successors: u32) {
        self.entry(key).unwrap().successors.get_or_insert(successors as i64);
    }
}

/// Keys of any length, made of numbers.
#[derive(Clone, Copy)]
struct Maker(KeyForm);

impl Maker {
    fn new(bytes: usize, hashed: Hashed) -> Maker {
        Maker(KeyForm { bytes, hashed, told_bits: 0 })
    }

    /// Different numbers, as far as they differ in the key's length, have different keys.
    fn key(self, number: u32) -> Vec<u8> {
        // An odd factor: all numbers below 256 differ in the first byte, and look random there.
        let scattered = number.wrapping_mul(0x9E37_79B1).to_le_bytes();
        (0..self.0.bytes).map(|at| scattered[at % 4] ^ (at / 4) as u8).collect()
    }

    fn insert(self, cache: &mut impl AnyCache, number: u32, note: Note, pinned: bool, parent: Place) -> Answer {
        let key = self.key(number);
        cache.insert(&key, self.0.hash(&key), note, pinned, parent)
    }

    fn place(self, cache: &mut impl AnyCache, number: u32) -> Option<Place> {
        let key = self.key(number);
        cache.find(&key, self.0.hash(&key))
    }
}

const MAKER: Maker = Maker(KeyForm { bytes: 8, hashed: Hashed::Whole, told_bits: 0 });

fn insert(cache: &mut Cache, key: u32, note: Note, pinned: bool, parent: Place) -> Answer {
    MAKER.insert(cache, key, note, pinned, parent)
}

fn place(cache: &mut Cache, key: u32) -> Option<Place> {
    MAKER.place(cache, key)
}

/// Random operations on a cache and its twin.
fn compare(row: &Row, maker: Maker, capacity: usize, keys: u32, seed: u64) {
    let mut cache = Cache::new(row, maker.0, capacity, &Grant::unlimited()).unwrap();
    let mut twin = Twin::new(row, capacity);
    let mut draw = Draw::new(seed);
    let mut by_hand: Vec<u32> = Vec::new();
    for step in 0..3_000 {
        let (key, choice) = (draw.below(keys as u64) as u32, draw.below(10));
        match choice {
            0..7 => {
                let note = Note { depth: draw.below(40) as u32, kind: draw.below(5) as u8 };
                let pinned = choice == 6 && !row.holds_ancestors() && by_hand.len() < capacity / 2;
                let open = twin.held().find(|entry| entry.pins > 0).map(|entry| entry.key);
                let parent = open.filter(|_| row.holds_ancestors());
                let parent_place = parent.map_or(Place::NOWHERE, |key| maker.place(&mut cache, key).unwrap());
                let answer = maker.insert(&mut cache, key, note, pinned, parent_place);
                let expected = twin.insert(key, note, pinned, parent);
                let name = match answer {
                    Answer::New(_) => "new",
                    Answer::Known => "known",
                    Answer::Full => "full",
                };
                assert_eq!(name, expected, "{row} of {capacity}, step {step}");
                if name == "new" && pinned {
                    by_hand.push(key);
                }
                if name == "new" && row.holds_ancestors() && twin.held().count() > capacity / 2 {
                    close(&mut cache, maker, &mut twin, &mut draw);
                }
            }
            7 | 8 if !by_hand.is_empty() => {
                let key = by_hand.swap_remove(draw.below(by_hand.len() as u64) as usize);
                let at = maker.place(&mut cache, key).unwrap();
                cache.unpin(at);
                twin.unpin(key);
            }
            9 if row.holds_ancestors() => close(&mut cache, maker, &mut twin, &mut draw),
            9 if twin.entry(key).is_some() => {
                let at = maker.place(&mut cache, key).unwrap();
                cache.expanded(at, key as usize % 6);
                twin.expanded(key, key % 6);
            }
            _ => {}
        }
        let health = cache.health();
        assert_eq!(health.held, twin.held().count() as u64);
        assert_eq!(health.pinned, twin.held().filter(|entry| entry.pins > 0).count() as u64, "{row} of {capacity}");
    }
    for key in 0..keys {
        assert_eq!(maker.place(&mut cache, key).is_some(), twin.entry(key).is_some(), "{row}: key {key}");
    }
    assert_eq!(cache.health().forgotten > 0, row.forgets(), "{row} of {capacity}");
}

/// Expands some open state of a `cover` cache.
fn close(cache: &mut Cache, maker: Maker, twin: &mut Twin, draw: &mut Draw) {
    let children = |key: u32| twin.held().filter(|entry| entry.parent == Some(key)).count();
    let is_open = |entry: &&Entry| entry.pins as usize == children(entry.key) + 1;
    let open: Vec<u32> = twin.held().filter(is_open).map(|entry| entry.key).collect();
    if let Some(&key) = open.get(draw.below(open.len().max(1) as u64) as usize) {
        let at = maker.place(cache, key).unwrap();
        cache.expanded(at, key as usize % 6);
        twin.expanded(key, key % 6);
        twin.unpin(key);
    }
}

#[test]
fn every_rule_agrees_with_its_twin() {
    for rule in Rule::ALL.into_iter().filter(|rule| *rule != Rule::Random) {
        for (capacity, keys) in [(2, 9), (7, 20), (60, 100), (100, 1000)] {
            for seed in 1..4 {
                compare(&Row::single(rule), MAKER, capacity, keys, seed);
                compare(&Row::cover(rule), MAKER, capacity, keys, seed);
            }
        }
    }
}

#[test]
fn chains_agree_with_their_twin() {
    let chains = [
        "KEEP",
        "MFU:25%,LRU:75%",
        "LRU,LFU,SC",
        "O:10%,I:10%,kind:80%",
        "MRU:1%,LRU:99%",
        "KEEP:50%,SC:50%",
        "SC,KEEP,LRU",
    ];
    for text in chains.into_iter().chain(["LRU:40%,KEEP:60%"]) {
        for (capacity, keys) in [(3, 9), (20, 60), (90, 150)] {
            compare(&Row::chain(text).unwrap(), MAKER, capacity, keys, 5);
        }
    }
}

#[test]
fn keys_of_every_length_agree_with_their_twin() {
    let cover = Row::cover(Rule::LeastRecent);
    for bytes in 1..=40 {
        for hashed in [Hashed::Leading, Hashed::Whole] {
            compare(&Row::chain("LRU:50%,SC:50%").unwrap(), Maker::new(bytes, hashed), 70, 250, bytes as u64);
            compare(&cover, Maker::new(bytes, hashed), 70, 250, bytes as u64);
        }
    }
}

/// A single set of sixteen ways is what a hand that looks at sixteen sees.
#[test]
fn a_set_agrees_with_the_same_twin() {
    for rule in Rule::ALL.into_iter().filter(|rule| *rule != Rule::Random) {
        for (bytes, hashed) in (1..=40).flat_map(|bytes| [Hashed::Leading, Hashed::Whole].map(|hashed| (bytes, hashed)))
        {
            let (maker, capacity) = (Maker::new(bytes, hashed), 1 + bytes % 16);
            let mut ways = Ways::new(rule, maker.0, capacity, &Grant::unlimited()).unwrap();
            let mut twin = Twin::new(&Row::single(rule), capacity);
            let mut draw = Draw::new(bytes as u64);
            for step in 0..1_000 {
                let key = draw.below(30) as u32;
                let note = Note { depth: draw.below(40) as u32, kind: draw.below(5) as u8 };
                let answer = maker.insert(&mut ways, key, note, false, Place::NOWHERE);
                let expected = twin.insert(key, note, false, None) == "new";
                assert_eq!(matches!(answer, Answer::New(_)), expected, "{rule} of {capacity}, step {step}");
                if let (Some(place), 0) = (maker.place(&mut ways, key), step % 3) {
                    ways.count_successors(place, key as usize % 7);
                    twin.expanded(key, key % 7);
                }
            }
            let held = (0..30).filter(|&key| maker.place(&mut ways, key).is_some()).count();
            assert_eq!((ways.len(), held), (capacity, twin.held().count()), "{rule}");
        }
    }
}

/// A part of a cache sees only hashes that begin alike, and still spreads them.
#[test]
fn a_part_holds_what_it_has_room_for() {
    let form = KeyForm { bytes: 5, hashed: Hashed::Leading, told_bits: 8 };
    let row = Row::single(Rule::LeastRecent);
    let key = |number: u32| {
        let mut key = [77; 5];
        key[1..].copy_from_slice(&number.wrapping_mul(0x9E37_79B1).to_be_bytes());
        key
    };
    let mut cache = Cache::new(&row, form, 3_000, &Grant::unlimited()).unwrap();
    let mut ways = Ways::new(Rule::LeastRecent, form, 6_000, &Grant::unlimited()).unwrap();
    for number in 0..3_000u32 {
        let key = key(number);
        for answer in [&mut cache as &mut dyn AnyCache, &mut ways]
            .map(|part| part.insert(&key, form.hash(&key), Note::default(), false, Place::NOWHERE))
        {
            assert!(matches!(answer, Answer::New(_)));
        }
    }
    assert_eq!((cache.health().forgotten, ways.health().forgotten), (0, 0));
    for number in 0..3_000u32 {
        let key = key(number);
        assert!(cache.find(&key, form.hash(&key)).is_some() && ways.find(&key, form.hash(&key)).is_some());
    }
    assert_eq!((Cache::bytes_per_entry(&row, form), Ways::bytes_per_entry(form)), (14, 7), "a byte is told");
}

#[test]
fn parts_know_together_what_the_whole_knows() {
    let part_form = KeyForm { told_bits: 3, ..MAKER.0 };
    let row = Row::single(Rule::Visits);
    let mut whole = Cache::new(&row, MAKER.0, 8_000, &Grant::unlimited()).unwrap();
    let part = |_| Cache::new(&row, part_form, 1_000, &Grant::unlimited()).unwrap();
    let mut parts: Vec<Cache> = (0..8).map(part).collect();
    for number in 0..30_000 {
        let key = MAKER.key(number);
        let hash = part_form.hash(&key);
        for cache in [&mut whole, &mut parts[hash as usize >> 61]] {
            assert!(matches!(cache.insert(&key, hash, Note::default(), false, Place::NOWHERE), Answer::New(_)));
        }
    }
    let together = Health::of_parts(parts.iter().map(|part| (part.health(), part.distinct())));
    assert_eq!(together, whole.health());
}

#[test]
fn what_is_kept_is_kept() {
    let mut cache = Cache::new(&Row::chain("KEEP:50%,LRU:50%").unwrap(), MAKER.0, 100, &Grant::unlimited()).unwrap();
    for key in 0..1_000 {
        assert!(matches!(insert(&mut cache, key, Note::default(), false, Place::NOWHERE), Answer::New(_)));
    }
    let held: Vec<u32> = (0..1_000).filter(|&key| place(&mut cache, key).is_some()).collect();
    assert_eq!(held, (0..50).chain(950..1_000).collect::<Vec<_>>());
}

#[test]
fn keeping_alone_is_an_exact_store_that_fills_up() {
    for text in ["cache:KEEP", "cache:KEEP:5,KEEP"] {
        let mut cache = Cache::new(&text.parse().unwrap(), MAKER.0, 100, &Grant::unlimited()).unwrap();
        let mut places = Vec::new();
        for key in 0..100 {
            let answer = insert(&mut cache, key, Note::default(), key % 2 == 0, Place::NOWHERE);
            let Answer::New(place) = answer else { panic!("{answer:?}") };
            places.push(place);
        }
        assert_eq!(insert(&mut cache, 100, Note::default(), true, Place::NOWHERE), Answer::Full);
        for place in places.into_iter().step_by(2) {
            cache.unpin(place);
        }
        assert_eq!(insert(&mut cache, 100, Note::default(), true, Place::NOWHERE), Answer::Full);
        assert_eq!(insert(&mut cache, 99, Note::default(), true, Place::NOWHERE), Answer::Known);
        assert_eq!(cache.health().forgotten, 0);
    }
}

#[test]
fn chance_forgets_evenly_and_the_same_each_time() {
    let run = || {
        let mut cache = Cache::new(&Row::single(Rule::Random), MAKER.0, 100, &Grant::unlimited()).unwrap();
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
    let mut cache = Cache::new(&Row::single(Rule::LeastRecent), MAKER.0, 3, &Grant::unlimited()).unwrap();
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
fn an_entry_is_little_more_than_its_key() {
    let beside = |text: &str| Cache::bytes_per_entry(&Row::chain(text).unwrap(), MAKER.0) - 8;
    assert_eq!((beside("LRU"), beside("MFU:25%,LRU:75%")), (10, 11));
    assert_eq!(Cache::bytes_per_entry(&Row::cover(Rule::LeastRecent), MAKER.0) - 8, 18);
    let mut cache = Cache::new(&Row::single(Rule::LeastRecent), MAKER.0, 1 << 20, &Grant::unlimited()).unwrap();
    for key in 0..1 << 20 {
        assert!(matches!(insert(&mut cache, key, Note::default(), true, Place::NOWHERE), Answer::New(_)));
    }
    // Large regions grow by two mebibytes.
    assert!(cache.bytes() < 19 << 20, "{}", cache.bytes());
}

#[test]
fn a_refusing_grant_only_makes_the_cache_smaller() {
    for (text, kept) in [("MFU:25%,LRU:75%", 0.0), ("KEEP:25%,LRU:75%", 0.25)] {
        let bytes = 200 << 10;
        let budget = Budget::new(bytes);
        let grant = budget.grant("cache", bytes);
        let row = Row::chain(text).unwrap();
        let mut cache = Cache::new(&row, MAKER.0, 1 << 20, &grant).unwrap();
        for key in 0..50_000 {
            assert!(matches!(insert(&mut cache, key, Note::default(), false, Place::NOWHERE), Answer::New(_)));
            assert!(place(&mut cache, key).is_some(), "new promises that it is held");
        }
        let health = cache.health();
        assert!(budget.used_bytes() <= bytes && health.held == health.capacity);
        let per_entry = Cache::bytes_per_entry(&row, MAKER.0) as u64;
        assert!(health.capacity * per_entry > bytes / 2, "{} entries of {per_entry} bytes", health.capacity);
        assert_eq!(health.forgotten, 50_000 - health.held);
        assert!(health.distinct.abs_diff(50_000) < 5_000, "{}", health.distinct);
        let old = (0..health.capacity as u32).filter(|&key| place(&mut cache, key).is_some()).count();
        assert!(old as f64 >= health.capacity as f64 * kept - 1.0, "{old} of the first {}", health.capacity);
    }
}
