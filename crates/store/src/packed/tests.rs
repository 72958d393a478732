use super::*;
use crate::budget::{Budget, Grant};
use crate::tree::root;
use plimsoll_ir::random::Draw;
use std::collections::{BTreeSet, HashSet};

fn table(key_bits: u32, common_bits: u32, grant: Grant) -> Packed {
    Packed::new(key_bits, common_bits, &Arena::new(grant)).unwrap()
}

/// Inserts keys one after the other, and returns which were fresh.
fn insert(table: &mut Packed, keys: &[u128]) -> Vec<bool> {
    let fresh: Vec<AtomicU8> = keys.iter().map(|_| AtomicU8::new(7)).collect();
    let high: Vec<u64> = keys.iter().map(|key| (key >> 64) as u64).collect();
    let low: Vec<u64> = keys.iter().map(|&key| key as u64).filter(|_| table.key_bits > 64).collect();
    let count = table.insert_all(Run { high: &high, low: &low }, &fresh);
    let fresh: Vec<bool> = fresh.into_iter().map(|fresh| fresh.into_inner() == 1).collect();
    assert_eq!(fresh.iter().filter(|&&fresh| fresh).count(), count);
    fresh
}

#[test]
fn agrees_with_a_set_while_growing() {
    for (key_bits, common_bits) in
        [24, 34, 44, 45, 60, 64, 70, 76, 77, 96, 102, 127, 128].into_iter().flat_map(|bits| [(bits, 0), (bits, 6)])
    {
        let mut table = table(key_bits, common_bits, Grant::unlimited());
        let (mut twin, mut draw) = (HashSet::new(), Draw::new(0));
        let mut tails = HashSet::new();
        for _ in 0..250 {
            // Leading bits look random, some tails differ where leading bits are equal.
            let keys: Vec<u128> = (0..100)
                .map(|_| {
                    let (top, low) = (draw.below(40_000), draw.below(2));
                    let top = (top as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835) >> common_bits;
                    top & u128::MAX << (128 - key_bits) ^ (low as u128) << (128 - key_bits)
                })
                .collect();
            table.reserve(keys.len(), key_bits).unwrap();
            assert!(keys.iter().all(|key| table.contains(*key) == twin.contains(key)), "{key_bits} bits");
            let expected: Vec<bool> = keys.iter().map(|&key| twin.insert(key)).collect();
            assert_eq!(insert(&mut table, &keys), expected, "{key_bits} bits");
            tails.insert(table.parts[0].geometry.slots());
        }
        assert_eq!(table.len(), twin.len());
        let all: Vec<u128> = twin.iter().copied().collect();
        assert!(!insert(&mut table, &all).contains(&true), "{key_bits} bits: keys were lost");
        let mut visited = HashSet::new();
        table.visit(|key| assert!(visited.insert(key)));
        assert_eq!(visited, twin, "{key_bits} bits: all keys, in any order");
        let mut streamed = Vec::new();
        table.stream(|key| streamed.push(key));
        assert!(streamed.iter().eq(twin.iter().collect::<BTreeSet<_>>()), "{key_bits} bits: all keys, in order");
        assert!(
            common_bits > 0 || ![45, 60, 70].contains(&key_bits) || tails.len() > 1,
            "{key_bits} bits: tails got shorter {tails:?}"
        );
    }
}

#[test]
fn keys_that_were_there_leave_their_room_to_others() {
    let mut table = table(44, 0, Grant::unlimited());
    let (mut draw, mut looked) = (Draw::new(0), 0);
    for round in 0..20_000u64 {
        let bound = 20 * (round + 1);
        let key = |number: u64| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) as u128) << 64 & u128::MAX << 84;
        let keys: Vec<u128> = (0..40).map(|_| key(draw.below(bound))).collect();
        let certain = table.certain;
        table.reserve(keys.len(), 44).unwrap();
        looked += (certain < keys.len()) as usize;
        match round % 2 {
            0 => assert!(!insert(&mut table, &keys).is_empty()),
            _ => keys.iter().for_each(|&key| assert!(table.insert_one(key) || table.contains(key))),
        }
        let load = table.load_percent();
        let left = table.parts.iter().map(|part| part.room(load).checked_sub(part.len));
        assert!(left.min().unwrap() >= Some(table.certain + table.expected), "round {round}");
    }
    assert!(looked < 1_000, "all parts were looked at {looked} times");
}

#[test]
fn keys_may_get_longer() {
    let mut table = table(32, 0, Grant::unlimited());
    let (mut twin, mut draw, mut bound) = (HashSet::new(), Draw::new(0), 1u32 << 12);
    for round in 0..3_000u64 {
        bound = if round % 300 == 299 { bound.saturating_mul(4) } else { bound };
        let keys: Vec<u128> = (0..40)
            .map(|_| {
                let (left, right) = (draw.below(bound as u64), draw.below(100));
                (root::key(left << 32 | right) as u128) << 64
            })
            .collect();
        table.reserve(keys.len(), root::key_bits(bound)).unwrap();
        let expected: Vec<bool> = keys.iter().map(|&key| twin.insert(key)).collect();
        assert_eq!(insert(&mut table, &keys), expected, "round {round}");
    }
    let all: Vec<u128> = twin.iter().copied().collect();
    assert!(table.key_bits == 64 && !insert(&mut table, &all).contains(&true));
}

#[test]
fn a_small_grant_fills_up_without_losing_keys() {
    let budget = Budget::new(100 << 10);
    let mut table = table(64, 0, budget.grant("t", 100 << 10));
    let key = |count: u128| count.wrapping_mul(0x9E37_79B9_7F4A_7C15) << 64;
    let mut count = 0u128;
    while table.reserve(1, 64).is_ok() {
        assert_eq!(insert(&mut table, &[key(count)]), [true]);
        count += 1;
    }
    assert!(count > 7_000 && budget.used_bytes() <= 100 << 10, "only {count} keys in 100 KiB");
    assert!(!insert(&mut table, &(0..count).map(key).collect::<Vec<_>>()).contains(&true));
}

#[test]
fn roots_of_small_numbers_take_about_five_bytes() {
    let arena = Arena::new(Grant::unlimited());
    let mut table = Packed::new(32, 0, &arena).unwrap();
    let key = |number: u64| (root::key(((number % 2000) << 32) | (number / 2000)) as u128) << 64;
    for block in 0..1500u64 {
        let keys: Vec<u128> = (block * 1000..(block + 1) * 1000).map(key).collect();
        table.reserve(keys.len(), 32).unwrap();
        assert!(!insert(&mut table, &keys).contains(&false));
    }
    assert!(arena.bytes() < table.len() * 7, "{} bytes for {} roots", arena.bytes(), table.len());
}

/// A table that is told how much there will be is divided before it has anything, and is not made twice.
#[test]
fn what_is_known_beforehand_is_made_once() {
    for key_bits in [44, 100] {
        let mut draw = Draw::new(0);
        let keys: HashSet<u128> =
            (0..600_000).map(|_| (draw.bits() as u128) << 64 & u128::MAX << (128 - key_bits)).collect();
        let budget = Budget::new(1 << 30);
        let mut reserved = table(key_bits, 0, budget.grant("table", u64::MAX));
        reserved.reserve(keys.len(), key_bits).unwrap();
        let used = budget.used_bytes();
        assert!(keys.iter().all(|&key| reserved.insert_one(key)) && keys.iter().all(|&key| reserved.contains(key)));
        assert!(reserved.parts.len() > 1 && used == budget.used_bytes());
        // So does one that has a limit, which it takes at once.
        let mut limited = table(key_bits, 0, budget.grant("table", u64::MAX));
        limited.limit(3 << 20);
        assert!(limited.parts.len() > 1 && (5 << 19..=3 << 20).contains(&limited.bytes()));
        assert!(keys.iter().take(50_000).all(|&key| limited.insert_one(key)) && limited.len() == 50_000);
    }
}

/// A table of a store with many is divided by its own size, and again as it grows.
#[test]
fn large_shards_are_divided_again() {
    for key_bits in [50, 90] {
        let (mut draw, mut numbers) = (Draw::new(0), Vec::new());
        let keys: BTreeSet<u128> =
            (0..300_000).map(|_| (draw.bits() as u128) << 58 & u128::MAX << (128 - key_bits)).collect();
        let mut table = table(key_bits, 6, Grant::unlimited());
        for &key in &keys {
            table.reserve(1, key_bits).unwrap();
            assert!(table.insert_one(key));
            if numbers.last() != Some(&table.parts.len()) {
                numbers.push(table.parts.len());
            }
        }
        assert!(numbers.starts_with(&[1, 4, 16]), "{numbers:?}");
        assert!(keys.iter().all(|&key| table.contains(key)) && table.len() == keys.len());
        let mut streamed = Vec::new();
        table.stream(|key| streamed.push(key));
        assert!(streamed.iter().eq(&keys));
    }
}

/// Inserts keys some at a time, while the table grows and is divided, and compares it with a set at the end.
fn check_all(mut table: Packed, keys: &[u128], key_bits: impl Fn(usize) -> u32, about: &str) -> usize {
    let (mut twin, mut most_parts) = (BTreeSet::new(), 0);
    for (number, some) in keys.chunks(97).enumerate() {
        table.reserve(some.len(), key_bits(number)).unwrap();
        let expected: Vec<bool> = some.iter().map(|&key| twin.insert(key)).collect();
        assert_eq!(insert(&mut table, some), expected, "{about}");
        most_parts = most_parts.max(table.parts.len());
    }
    assert_eq!(table.len(), twin.len(), "{about}");
    assert!(keys.iter().all(|&key| table.contains(key)), "{about}");
    let mut streamed = Vec::new();
    table.stream(|key| streamed.push(key));
    assert!(streamed.iter().eq(&twin), "{about}");
    most_parts
}

/// Almost no empty place, and many keys that all want the same lines: in tables of one part, and of parts that are divided again.
#[test]
fn full_tables_and_keys_that_collide_are_exact() {
    let full = Density { load_percent: 99, growth_percent: 103, ..Density::COMPACT.of_large() };
    for (key_bits, common_bits) in [(40, 0), (50, 6), (64, 0), (64, 6), (90, 6), (128, 0)] {
        for density in [full, Density::USUAL] {
            let mut draw = Draw::new(key_bits as u64);
            let mut key = |bits: u32| {
                let drawn = (draw.bits() as u128) << 64 | draw.bits() as u128;
                drawn << (128 - bits) >> (128 - bits) << (128 - key_bits)
            };
            // Half of them differ in their last bits only, so they have one home, or a few.
            let (tail, own) = (14.min(key_bits), key_bits - common_bits);
            let crowd = key(own) >> (128 - key_bits + tail) << (128 - key_bits + tail);
            let mut keys: Vec<u128> =
                (0..60_000).map(|number| if number % 8 == 3 { crowd ^ key(tail) } else { key(own) }).collect();
            // Some come twice, one soon after the other.
            (30..keys.len()).step_by(3).for_each(|at| keys[at] = keys[at - 20]);
            let arena = Arena::new(Grant::unlimited());
            let table = Packed::one_of(key_bits, common_bits, 0, density, &arena).unwrap();
            let about = format!("{key_bits} bits, {} %", density.load_percent);
            let parts = check_all(table, &keys, |_| key_bits, &about);
            assert!(common_bits == 0 || key_bits < 64 || parts > 1, "{about}: never divided");
        }
    }
}

/// The same for roots of three numbers, whose keys get longer as the numbers grow, up to where two of them are paired.
#[test]
fn roots_of_three_numbers_stay_what_they_are_as_tables_are_divided() {
    for (common_bits, density) in [(0, Density::USUAL), (2, Density::COMPACT), (6, Density::USUAL)] {
        let (mut draw, mut keys, mut bounds) = (Draw::new(5), Vec::new(), Vec::new());
        for bits in [6, 9, 12, 13, 15, 18, 21, 22] {
            let (wanted, most) = (keys.len() + 30_000 / 97 * 97, 1u64 << bits);
            while keys.len() < wanted {
                let numbers = [most, most, 64.min(most)].map(|most| draw.below(most) as u32);
                let pair = || root::key_with_pair(numbers[0], numbers[1] ^ numbers[2]);
                let key = root::key_of_three(numbers).unwrap_or_else(pair);
                if key.leading_zeros() >= common_bits {
                    keys.push((key as u128) << 64);
                }
            }
            bounds.push((keys.len() / 97, root::key_bits_of_three(1 << bits)));
        }
        let table = Packed::one_of(36, common_bits, 0, density, &Arena::new(Grant::unlimited())).unwrap();
        let key_bits = |number: usize| bounds.iter().find(|(end, _)| number < *end).map_or(64, |(_, bits)| *bits);
        assert!(check_all(table, &keys, key_bits, &format!("{common_bits} common bits")) > 1);
    }
}

/// Two generations of tables share one memory, so each must stay within its half of it, however full tables may be.
#[test]
fn a_table_takes_no_more_than_its_limit() {
    for load_percent in [80, 82, 85, 87, 92, 96] {
        for limit in [4096, 8900, 9500, 33_000, 100_000] {
            let mut table = table(56, 2, Grant::unlimited());
            table.set_density(Density { load_percent, ..Density::USUAL });
            table.limit(limit);
            let mut draw = Draw::new(limit as u64);
            while table.reserve_well(10, 56).is_ok() {
                let keys: Vec<u128> = (0..10).map(|_| (draw.bits() as u128 >> 10 << 8) << 64).collect();
                insert(&mut table, &keys);
            }
            assert!(table.bytes() <= limit && table.bytes() * 2 > limit, "{} of {limit}", table.bytes());
            assert!(table.len() * 100 > table.parts[0].places() * 80, "{} in {limit}", table.len());
        }
    }
}
