use super::*;
use crate::arena::Arena;
use crate::budget::Budget;
use crate::packed::Run;
use plimsoll_ir::random::Draw;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Keys of so many bits that look random; few enough that they come again.
fn key(number: u64, bits: u32) -> u128 {
    let high = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let low = high.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let key = (high as u128) << 64 | low as u128;
    key >> (128 - bits) << (128 - bits)
}

fn enter(table: &mut LevelTable, keys: &[u128], bits: u32) -> Result<Vec<bool>, Full> {
    table.reserve(keys.len(), bits)?;
    let high: Vec<u64> = keys.iter().map(|key| (key >> 64) as u64).collect();
    let low: Vec<u64> = keys.iter().map(|&key| key as u64).collect();
    let low = if bits > 64 { &low[..] } else { &[] };
    let fresh: Vec<AtomicU8> = keys.iter().map(|_| AtomicU8::new(0)).collect();
    let lanes: Vec<AtomicU64> = keys.iter().map(|_| AtomicU64::new(0)).collect();
    let count = table.insert_all(Run { high: &high, low }, &fresh, &lanes);
    let fresh: Vec<bool> = fresh.iter().map(|fresh| fresh.load(Ordering::Relaxed) == 1).collect();
    assert_eq!(count, fresh.iter().filter(|&&fresh| fresh).count());
    Ok(fresh)
}

#[test]
fn a_table_holds_what_sets_of_levels_say() {
    for (bits, range) in [(40, 3_000), (47, 60_000), (64, 20_000), (90, 20_000), (128, 9_000)] {
        let mut draw = Draw::new(bits as u64);
        let arena = Arena::new(Grant::unlimited());
        let mut table = LevelTable::new(bits, 0, &arena, &Grant::unlimited()).unwrap();
        let mut twin: HashMap<u128, BTreeSet<u32>> = HashMap::new();
        let mut snapshots: Vec<u32> = Vec::new();
        for level in 0..150 {
            let sampled = draw.below(2) == 0;
            table.masks.begin(level, sampled, Vec::new());
            for _ in 0..draw.below(12) {
                let keys: Vec<u128> = (0..draw.below(700)).map(|_| key(draw.below(range), bits)).collect();
                let expected = keys.iter().map(|&key| match twin.get_mut(&key).filter(|levels| !levels.is_empty()) {
                    Some(levels) => {
                        if sampled {
                            levels.insert(level);
                        }
                        false
                    }
                    None => {
                        twin.insert(key, BTreeSet::from([level]));
                        true
                    }
                });
                let expected: Vec<bool> = expected.collect();
                assert_eq!(enter(&mut table, &keys, bits).unwrap(), expected, "{bits} bits, level {level}");
            }
            let of_level = twin.values().filter(|levels| levels.contains(&level)).count();
            assert_eq!(table.masks.states_of_level(), of_level as u64);
            if draw.below(4) == 0 {
                let held = key(draw.below(range), bits);
                table.reserve(1, bits).unwrap();
                table.keep(held, ANCHORED);
                twin.entry(held).or_default().insert(ANCHORED);
            }
            snapshots.push(level);
            let mut left: Vec<u32> = if sampled { vec![] } else { vec![level] };
            if draw.below(3) > 0 {
                left.push(snapshots[draw.below(snapshots.len() as u64) as usize]);
            }
            snapshots.retain(|level| !left.contains(level));
            table.forget(&left);
            twin.values_mut().for_each(|levels| levels.retain(|level| !left.contains(level)));
            twin.retain(|_, levels| !levels.is_empty());
            assert_eq!(table.masks.live(), twin.len());
        }
        let mut visited = 0;
        table.visit(|key, members| {
            visited += 1;
            assert!(twin[&key].iter().eq(members), "{bits} bits");
        });
        assert_eq!(visited, twin.len());
    }
}

#[test]
fn places_of_forgotten_states_are_used_again() {
    let budget = Budget::new(256 << 10);
    let arena = Arena::new(budget.grant("levels", 256 << 10));
    let mut table = LevelTable::new(50, 0, &arena, &Grant::unlimited()).unwrap();
    for level in 0..500u32 {
        table.masks.begin(level, false, Vec::new());
        let keys: Vec<u128> = (0..4_000).map(|number| key(level as u64 * 4_000 + number, 50)).collect();
        assert!(enter(&mut table, &keys, 50).unwrap().iter().all(|&fresh| fresh), "level {level}");
        table.forget(&[level]);
    }
    assert_eq!((table.masks.live(), table.forgotten), (0, 2_000_000));
    table.masks.begin(500, false, Vec::new());
    let keys: Vec<u128> = (0..80_000).map(|number| key(number, 50)).collect();
    assert!(
        keys.chunks(1_000).any(|keys| enter(&mut table, keys, 50).is_err()),
        "there is no room for a level so wide"
    );
}

/// Who lies next to its home does not wait outside.
#[test]
fn growing_takes_little_beside_the_table() {
    for bits in [50, 78] {
        let budget = Budget::new(1 << 30);
        let arena = Arena::new(budget.grant("levels", u64::MAX));
        let mut table = LevelTable::new(bits, 0, &arena, &Grant::unlimited()).unwrap();
        let keys: Vec<u128> = (0..300_000).map(|number| key(number, bits)).collect();
        for keys in keys.chunks(2_000) {
            assert!(enter(&mut table, keys, bits).unwrap().iter().all(|&fresh| fresh));
        }
        assert!(enter(&mut table, &keys, bits).unwrap().iter().all(|&fresh| !fresh));
        let (peak, used) = (budget.ledger()[0].peak_bytes, budget.used_bytes());
        assert!(peak > used && peak * 100 < used * 115, "{bits} bits: {peak} for {used}");
    }
}

/// All states of numbered levels, entered into a table of their own; which are held after each.
#[test]
fn levels_are_given_up_when_there_is_no_room() {
    let row: Row = "snapshots:(c1,LLNR,3)(1,LFU,9)".parse().unwrap();
    let (arena, grant) = (Arena::new(Grant::unlimited()), Grant::unlimited());
    let mut snapshots = Snapshots::new(&row, 4_000, &grant);
    let mut table = LevelTable::new(50, 0, &arena, &Grant::unlimited()).unwrap();
    snapshots.introduce(&mut table);
    for level in 0..60u64 {
        let keys: Vec<u128> = (0..900).map(|number| key(level * 900 + number, 50)).collect();
        enter(&mut table, &keys, 50).unwrap();
        snapshots.settle(1 << 18, &mut [&mut table], 50, |_| 0).unwrap();
        assert!(table.masks.live() <= 3_000, "level {level}: {}", table.masks.live());
        snapshots.seal(&mut [&mut table]);
    }
    assert!(snapshots.stream.len() >= 2, "as much as fits is held");
}

#[test]
fn sets_that_become_too_many_are_an_answer() {
    let arena = Arena::new(Grant::unlimited());
    let mut table = LevelTable::new(50, 0, &arena, &Grant::unlimited()).unwrap();
    // Each key is in levels of its own, of which there are more sets than numbers.
    let mut full = false;
    for level in 0..60 {
        table.masks.begin(level, true, Vec::new());
        let keys: Vec<u128> = (0..80_000u64)
            .filter(|number| key(*number, 128) >> (level % 100) & 1 == 1)
            .map(|number| key(number, 50))
            .collect();
        full |= enter(&mut table, &keys, 50).is_err();
    }
    assert!(full);
}
