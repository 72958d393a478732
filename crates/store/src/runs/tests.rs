use super::*;
use crate::arena::Arena;
use crate::budget::Budget;
use crate::disk::faulty::Faulty;
use crate::packed;
use crate::packing::Packing;
use plimsoll_ir::random::Draw;
use std::collections::HashSet;
use std::sync::atomic::AtomicU8;

fn spill(disk: Faulty, slot_bytes: usize) -> Spill {
    Spill::over(vec![Box::new(disk)], slot_bytes, Grant::unlimited())
}

/// A store of one word a state in memory and on disk, beside a set.
struct Twin {
    layers: Layers,
    table: Packed,
    arena: Arena,
    seen: HashSet<u128>,
    shard: u128,
    /// What is expected of the candidates that wait.
    expected: Vec<bool>,
    packing: Packing,
    bits: u32,
}

const SHARD_BITS: u32 = 3;

impl Twin {
    fn new(keep: Keep, bits: u32, disk: Faulty) -> Twin {
        let grant = Budget::new(4 << 20).grant("store", 4 << 20);
        let used: Vec<u32> = (0..bits.div_ceil(32)).map(|word| u32::MAX >> (32 - (bits - word * 32).min(32))).collect();
        let packing = Packing::new(&used).unwrap();
        let mut candidates =
            Candidates::new(used.len(), &Grant::unlimited(), spill(Faulty::sound(), crate::disk::SLOT));
        candidates.pack(&packing);
        let layers = Layers::new(keep, candidates, spill(disk, BLOCK_BYTES), &grant);
        let arena = Arena::new(Grant::unlimited());
        let table = Packed::new(bits, SHARD_BITS, &arena).unwrap();
        Twin { layers, table, arena, seen: HashSet::new(), shard: 5, expected: Vec::new(), packing, bits }
    }

    fn meet(&mut self, key: u128) {
        let key = (key << SHARD_BITS >> SHARD_BITS | self.shard << (128 - SHARD_BITS)) >> (128 - self.bits)
            << (128 - self.bits);
        self.table.reserve(1, self.bits).unwrap();
        let fresh = self.seen.insert(key);
        if !self.table.insert_one(key) {
            assert!(!fresh);
        } else if self.layers.defers() {
            let place = self.layers.candidates.extend(1).unwrap();
            let (halves, origin) = ([(key >> 64) as u64, key as u64], (self.expected.len() as u64, 8));
            self.layers.candidates.write(place, &[], halves, origin, &mut Vec::new());
            self.expected.push(fresh);
        } else {
            assert!(fresh);
        }
    }

    fn flush(&mut self) -> Result<(), Shortage> {
        self.layers.begin_flush(SHARD_BITS, self.table.len() as u64, 0);
        self.layers.write(5, &self.table, [self.layers.level; 2], 100)?;
        let table = Packed::new(self.bits, SHARD_BITS, &self.arena).unwrap();
        self.table = if self.layers.keeps_all() { table.with_marks() } else { table };
        self.layers.end_flush(0)
    }

    fn seal(&mut self) -> Result<(), Shortage> {
        let Twin { layers, table, packing, seen, .. } = self;
        let mut found = Vec::new();
        let sift = |layers: &Layers| {
            (0..1 << SHARD_BITS).try_for_each(|shard| {
                layers.sift(shard, |key| {
                    if layers.keeps_all() {
                        table.mark(key)
                    }
                })
            })
        };
        let show = |survivors: &Survivors| {
            assert!(survivors.origins.iter().all(|&(_, position)| position == 8));
            found.extend(survivors.origins.iter().map(|&(number, _)| number));
            let (mut high, mut low) = (Vec::new(), Vec::new());
            packing.encode(&survivors.states, &mut high, &mut low).unwrap();
            let lows = low.into_iter().chain(std::iter::repeat(0));
            assert!(high.iter().zip(lows).all(|(&high, low)| seen.contains(&((high as u128) << 64 | low as u128))));
        };
        layers.ask_all(layers.level, sift, show)?;
        let expected = std::mem::take(&mut self.expected);
        let expected: Vec<u64> = (0..).zip(expected).filter(|(_, fresh)| *fresh).map(|(number, _)| number).collect();
        assert_eq!(found, expected);
        self.layers.level += 1;
        self.layers.end_seal(self.layers.level);
        if self.layers.defers() { self.layers.merge(5) } else { Ok(()) }
    }
}

/// What a process has had at most never exceeds what it should have, although what tables have taken of the rest is seen only when both generations of them
/// have been replaced.
#[test]
fn what_a_process_does_not_use_tables_take_in_steps() {
    const OTHERS: u64 = 3 << 20;
    const MOST: u64 = 9 << 20;
    static FULL: AtomicU64 = AtomicU64::new(0);
    let twin = Twin::new(Keep::All, 50, Faulty::sound());
    let layers = twin.layers.in_process(MOST, || OTHERS + FULL.load(Ordering::Relaxed));
    let grant = layers.grant.clone();
    // What is kept aside for indexes is charged, and here never resident.
    let reserve = grant.used_bytes();
    let [mut older, mut younger] = [grant.left_bytes() / 2; 2];
    for _ in 0..60 {
        assert!(OTHERS + older + younger <= MOST);
        FULL.store(older + younger, Ordering::Relaxed);
        assert!(grant.take(older + younger));
        layers.take_slack();
        let next = (grant.cap_bytes() - reserve) / 2;
        grant.give_back(older + younger);
        (older, younger) = (younger, next);
    }
    let all = grant.cap_bytes();
    assert!(all - reserve > MOST - OTHERS - 100, "{all}");
    // Whoever has had too much gets nothing, and nothing is taken away.
    FULL.store(MOST, Ordering::Relaxed);
    layers.take_slack();
    assert_eq!(grant.cap_bytes(), all);
}

/// Each time that tables leave while candidates wait there is one more run to look into.
#[test]
fn many_runs_that_cannot_be_merged_are_a_reason_to_look() {
    let mut twin = Twin::new(Keep::All, 50, Faulty::sound());
    let mut number = 0;
    for _ in 0..3 {
        for flush in 0..=MOST_UNMERGED {
            assert_eq!(twin.layers.should_settle(), flush == MOST_UNMERGED);
            (0..100).for_each(|_| {
                number += 1u128;
                twin.meet(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
            });
            if flush < MOST_UNMERGED {
                twin.flush().unwrap();
            }
        }
        twin.seal().unwrap();
        assert!(!twin.layers.should_settle());
    }
}

/// What is kept aside is enough to merge runs when all other memory is taken.
#[test]
fn runs_are_merged_in_the_memory_kept_aside() {
    let mut twin = Twin::new(Keep::All, 50, Faulty::sound());
    for number in 0..40_000u128 {
        twin.meet(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
        if number % 20_000 == 19_999 {
            twin.flush().unwrap();
        }
    }
    let grant = twin.layers.grant.clone();
    assert!(grant.take(grant.left_bytes()));
    let runs = |twin: &Twin| twin.layers.report().runs;
    // Looking for candidates takes no memory, and merging would.
    twin.seal().unwrap();
    assert_eq!(runs(&twin), 2);
    twin.layers.lend_reserve();
    twin.layers.merge(5).unwrap();
    assert_eq!(runs(&twin), 1);
}

#[test]
fn a_candidate_is_old_exactly_if_it_was_met_before() {
    for (bits, range, level) in [(24, 1 << 14, DENSE_LEVELS), (50, 40_000, 0), (100, 30_000, DENSE_LEVELS)] {
        let (mut twin, mut draw) = (Twin::new(Keep::All, bits, Faulty::sound()), Draw::new(bits.into()));
        twin.layers.level = level;
        for level in 0..60u64 {
            for _ in 0..1 + draw.below(3) {
                for _ in 0..draw.below(1500) {
                    let number = draw.below(range).min(draw.below(range)) as u128;
                    twin.meet(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
                }
                if level > 2 && draw.below(2) == 0 {
                    twin.flush().unwrap();
                }
            }
            twin.seal().unwrap();
        }
        let report = twin.layers.report();
        assert!(report.known > 5_000 && report.flushes > 30, "{report:?}");
        assert_eq!(report.filtered > 1_000, level > 0, "{report:?}");
        assert!(report.runs < 8 && report.levels.is_none(), "{report:?}");
        let (on_disk, in_memory) = (twin.layers.keys(), twin.table.len() as u64);
        assert!(on_disk + in_memory >= twin.seen.len() as u64);
    }
}

#[test]
fn many_candidates_pass_in_order_and_each_once() {
    let mut draw = Draw::new(0);
    for (shards, wide, bytes, most_rounds) in
        [(1, false, 128 << 10, 1), (4, true, 256 << 10, 1), (2, true, 4 << 10, 400)]
    {
        let disk = Arc::new(spill(Faulty::sound(), BLOCK_BYTES));
        let (budget, words) = (Budget::new(1 << 20), if wide { 4 } else { 2 });
        let mut sieve = Sieve::new(shards, bytes, 0, &disk, &budget.grant("sieve", u64::MAX)).unwrap();
        assert!(sieve.bytes() <= bytes + (shards as u64) * 64 * 2 * 20, "{}", sieve.bytes());
        let all: Vec<Vec<u32>> = (0..20_000).map(|_| (0..words).map(|_| draw.bits() as u32).collect()).collect();
        let (mut done, mut rounds) = (0, 0);
        while done < all.len() {
            let slots = sieve.slots_left();
            sieve.begin(done as u64, all.len() - done, slots);
            while let room @ 1.. = sieve.room_left().min(all.len() - done - sieve.len()) {
                let next = done + sieve.len();
                let keys = |from: usize, count: usize| all[done + from..][..count].iter().map(|key| (key, &[][..]));
                let (first, some) = (sieve.expect(room), room / 3);
                assert_eq!(done + first, next);
                // In any order.
                sieve.add(first + some, keys(first + some, room - some)).unwrap();
                sieve.add(first, keys(first, some)).unwrap();
            }
            let count = sieve.len();
            let mut met = vec![false; count];
            for shard in 0..shards {
                let mut last = 0;
                let ask = |asked: &sieve::Asked| {
                    for question in asked.open() {
                        let number = question.number() as usize;
                        let word = |at: usize| all[number].get(at).copied().unwrap_or(0) as u128;
                        assert_eq!(question.key(), word(0) << 96 | word(1) << 64 | word(2) << 32 | word(3));
                        assert!(last < question.key() && !std::mem::replace(&mut met[number - done], true));
                        last = question.key();
                        if number.is_multiple_of(3) {
                            question.mark();
                        }
                    }
                    Ok(())
                };
                sieve.ask(shard, ask).unwrap();
            }
            assert!(met.iter().all(|met| *met));
            assert!((0..count).all(|at| sieve.is_known(at) == (done + at).is_multiple_of(3)));
            (done, rounds) = (done + count, rounds + 1);
        }
        assert!(done == all.len() && rounds <= most_rounds, "{rounds} rounds");
        drop(sieve);
        assert_eq!(budget.used_bytes(), 0);
    }
}

#[test]
fn merging_keeps_every_key_once_and_takes_no_more_disk() {
    let (grant, mut draw) = (Budget::new(1 << 20).grant("store", 1 << 20), Draw::new(0));
    let disk = Faulty::sound();
    let size = disk.size();
    let spill = Arc::new(spill(disk, BLOCK_BYTES));
    let form = |level: u32| Form { key_bits: 60, common_bits: 0, born: 3, levels: [level, level], width: 0 };
    let (mut all, mut runs) = (HashSet::new(), Vec::new());
    for level in [9, 4, 6] {
        let mut keys: Vec<u128> = (0..30_000).map(|_| (draw.below(60_000) as u128 * 77_777_777) << 68).collect();
        keys.sort();
        keys.dedup();
        let mut writer = Writer::new(&spill, &grant, form(level), keys.len() as u64, 10_000);
        keys.iter().for_each(|&key| writer.push(key).unwrap());
        all.extend(keys);
        runs.extend(writer.finish().unwrap());
    }
    let before = size.load(Ordering::Relaxed);
    let merged = Run::merge(runs, 10_000).unwrap().pop().unwrap();
    assert_eq!((merged.keys(), merged.levels()), (all.len() as u64, [4, 9]));
    assert!(size.load(Ordering::Relaxed) <= before + 3 * BLOCK_BYTES);
    drop(merged);
    assert_eq!(grant.used_bytes(), 0);
}

/// Hashes of so few bits that most are those of many vectors, and some fill several blocks.
#[test]
fn vectors_are_told_apart_where_their_hashes_are_equal() {
    const WIDTH: usize = 5;
    let vector = |number: u64| [number as u32 % 50, 7, number as u32 / 50, 0, (number % 3) as u32];
    let hash = |number: u64| if number.is_multiple_of(2) { 1 << 63 } else { (number % 97) << 50 };
    let (grant, mut draw) = (Budget::new(1 << 20).grant("store", 1 << 20), Draw::new(0));
    let disk = Arc::new(spill(Faulty::sound(), BLOCK_BYTES));
    let form = Form { key_bits: 64, common_bits: 0, born: 0, levels: [0, 0], width: WIDTH };
    let (mut all, mut runs) = (HashSet::new(), Vec::new());
    for _ in 0..3 {
        let mut numbers: Vec<u64> = (0..6_000).map(|_| draw.below(20_000)).collect();
        numbers.sort_by_key(|&number| (hash(number), vector(number)));
        numbers.dedup();
        let mut writer = Writer::new(&disk, &grant, form, numbers.len() as u64, 2_000);
        for &number in &numbers {
            writer.push_vector((hash(number) as u128) << 64, &vector(number)).unwrap();
        }
        all.extend(numbers);
        runs.extend(writer.finish().unwrap());
    }
    let merged = Run::merge(runs, 10_000).unwrap().pop().unwrap();
    assert_eq!(merged.keys(), all.len() as u64);
    let mut read = HashSet::new();
    merged
        .visit(|key, vector| {
            assert!(read.insert((key, vector.to_vec())));
            Ok::<(), SpillError>(())
        })
        .unwrap();
    assert_eq!(read, all.iter().map(|&number| ((hash(number) as u128) << 64, vector(number).to_vec())).collect());
    // A sieve that holds all of them, and one that has most on disk.
    for bytes in [1 << 20, 40 << 10] {
        let mut sieve = Sieve::new(1, bytes, WIDTH, &disk, &Grant::unlimited()).unwrap();
        let mut done = 0;
        while done < 20_000 {
            let slots = sieve.slots_left();
            sieve.begin(done, 20_000 - done as usize, slots);
            while let room @ 1.. = sieve.room_left().min(20_000 - done as usize - sieve.len()) {
                let first = sieve.expect(room);
                for (place, number) in (first..).zip(done + first as u64..).take(room) {
                    let hash = hash(number);
                    let candidate = ([(hash >> 32) as u32, hash as u32], &vector(number)[..]);
                    sieve.add(place, std::iter::once(candidate)).unwrap();
                }
            }
            let count = sieve.len();
            sieve.ask(0, |asked| merged.answer(asked).map(|_| ())).unwrap();
            assert!((0..count).all(|at| sieve.is_known(at) == all.contains(&(done + at as u64))));
            for places in [0..count, 3..count, 0..count / 2, 70.min(count)..100.min(count), 5..5] {
                let unknown = places.clone().filter(|&at| !sieve.is_known(at)).count();
                assert_eq!(sieve.unknown(places), unknown);
            }
            done += count as u64;
        }
    }
    drop(merged);
    assert_eq!(grant.used_bytes(), 0);
}

#[test]
fn merging_needs_little_memory_beside_the_index_that_is_there() {
    let budget = Budget::new(1 << 20);
    let (grant, disk) = (budget.grant("store", 1 << 20), Arc::new(spill(Faulty::sound(), BLOCK_BYTES)));
    let form = Form { key_bits: 64, common_bits: 0, born: 0, levels: [0, 0], width: 100 };
    let mut runs = Vec::new();
    for run in 0..3u32 {
        let mut writer = Writer::new(&disk, &grant, form, 4_000, 0);
        for number in 0..4_000u32 {
            let vector = [number.wrapping_mul(0x9E37_79B9) ^ run; 100];
            writer.push_vector(((number * 3 + run) as u128) << 90, &vector).unwrap();
        }
        runs.extend(writer.finish().unwrap());
    }
    let blocks = runs.iter().map(Run::disk_bytes).sum::<u64>() / BLOCK_BYTES as u64;
    assert_eq!(grant.used_bytes(), blocks * 28);
    let most = grant.left_bytes() - blocks * 10;
    assert!(grant.take(most));
    let runs = Run::merge(runs, 0).unwrap();
    assert_eq!(runs.len(), 3, "without memory they stay as they are");
    grant.give_back(most);
    assert!(grant.take(grant.left_bytes() - blocks * 40));
    let merged = Run::merge(runs, 0).unwrap().pop().unwrap();
    assert!(merged.keys() == 12_000 && merged.index_bytes() <= blocks * 28);
}

#[test]
fn what_fails_on_disk_is_an_answer() {
    let mut failures = HashSet::new();
    for broken in (0..40).step_by(3) {
        for disk in
            [Faulty::after(broken, usize::MAX), Faulty::after(usize::MAX, broken), Faulty::flipping(broken * 999)]
        {
            let (mut twin, mut draw) = (Twin::new(Keep::All, 50, disk), Draw::new(1));
            let done = (0..12).try_for_each(|_| {
                (0..4000)
                    .for_each(|_| twin.meet((draw.below(30_000) as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15 << 60)));
                twin.flush()?;
                twin.seal()
            });
            match done {
                Err(Shortage::Disk(SpillError::Damaged)) => failures.insert("damaged"),
                Err(Shortage::Disk(SpillError::Io(_))) => failures.insert("io"),
                Err(other) => panic!("{other:?}"),
                Ok(()) => failures.insert("none"),
            };
        }
    }
    assert!(failures.contains("damaged") && failures.contains("io"), "{failures:?}");
}

#[test]
fn old_levels_go_and_powers_of_two_stay() {
    let gone: Vec<u32> = (0..40).filter(|&level| may_go([level, level], 5, 40)).collect();
    let expected: Vec<u32> = (0..35).filter(|level: &u32| !level.is_power_of_two()).collect();
    assert_eq!(gone, expected);
    assert!(!may_go([30, 33], 5, 40) && may_go([33, 34], 5, 40) && !may_go([33, 35], 5, 40));
}

#[test]
fn tables_stream_in_order_with_little_memory() {
    let mut table = Packed::new(60, 2, &Arena::new(Grant::unlimited())).unwrap();
    let mut draw = Draw::new(0);
    let keys: Vec<u64> = (0..50_000).map(|_| draw.bits() >> 6 << 4).collect();
    table.reserve(keys.len(), 60).unwrap();
    let fresh: Vec<AtomicU8> = keys.iter().map(|_| AtomicU8::new(0)).collect();
    table.insert_all(packed::Run { high: &keys, low: &[] }, &fresh);
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    table.stream(|key| whole.push(key));
    table.stream_within(50, |key| parts.push(key));
    assert!(whole.len() == table.len() && whole.is_sorted() && whole == parts);
}

/// Keys can be taken apart between the answers for the candidates and the end of the level, whatever leaves then.
#[test]
fn nothing_is_too_old_before_a_level_is_done() {
    let mut twin = Twin::new(Keep::Last(1), 50, Faulty::sound());
    // No power of two is among its levels.
    twin.layers.level = 5;
    (0..100u128).for_each(|number| twin.meet(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)));
    twin.flush().unwrap();
    twin.layers.level = 7;
    twin.layers.settle();
    assert!(twin.layers.can_be_written_anew() && twin.layers.keys() == 100);
    twin.layers.end_seal(7);
    assert!(!twin.layers.can_be_written_anew() && twin.layers.forgotten().is_some());
}
