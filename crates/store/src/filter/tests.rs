use super::*;
use crate::budget::Budget;
use crate::odds::Odds;
use plimsoll_ir::random::Draw;

const BYTES: usize = 1 << 18;

fn filter(held: Held) -> Filter {
    Filter::new(held, &Arena::new(Budget::new(BYTES as u64).grant("filter", BYTES as u64))).unwrap()
}

/// Inserts keys a thousand at a time, and says which were found to be new.
fn insert(filter: &mut Filter, high: &[u64], low: &[u64]) -> Vec<bool> {
    let fresh: Vec<AtomicU8> = high.iter().map(|_| AtomicU8::new(0)).collect();
    for ((high, low), fresh) in high.chunks(1000).zip(low.chunks(1000)).zip(fresh.chunks(1000)) {
        filter.insert_all(Run { high, low }, fresh);
    }
    fresh.into_iter().map(|fresh| fresh.into_inner() == 1).collect()
}

fn keys(count: usize, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let mut draw = Draw::new(seed);
    (0..count).map(|_| (draw.bits(), draw.bits())).unzip()
}

/// Different keys, each of which should be new: as many are missed as the filter says.
#[test]
fn as_many_keys_are_missed_as_are_expected() {
    let all_bits = BYTES * 8;
    let kinds = [1, 2, 3, 4, 7, 8, 16].map(Held::Bits).into_iter().chain([Held::Adaptive]);
    for held in kinds {
        for bits_per_key in [3, 6, 10, 18, 30, 80] {
            let mut filter = filter(held);
            assert_eq!(filter.lines.bytes(), BYTES);
            let (high, low) = keys(all_bits / bits_per_key, bits_per_key as u64);
            let missed = insert(&mut filter, &high, &low).iter().filter(|&&new| !new).count() as f64;
            let expected = Odds::from(filter.odds()).omissions();
            assert_eq!(filter.len() as f64 + missed, high.len() as f64);
            let spread = 6.0 * expected.sqrt() + 0.02 * expected + 3.0;
            assert!((missed - expected).abs() < spread, "{held:?}, {bits_per_key} bits: {missed} for {expected}");
            // What was seen once is known for ever.
            assert!(insert(&mut filter, &high, &low).iter().all(|new| !new), "{held:?}");
        }
    }
}

#[test]
fn what_adapts_misses_less_while_there_is_room_and_hardly_more_when_there_is_not() {
    for (bits_per_key, most) in [(5, 1.2), (8, 1.2), (12, 1.2), (20, 0.8), (40, 0.5), (100, 0.01)] {
        let (high, low) = keys(BYTES * 8 / bits_per_key, 5);
        let [adaptive, bits] = [Held::Adaptive, Held::Bits(4)].map(|held| {
            let mut filter = filter(held);
            insert(&mut filter, &high, &low);
            Odds::from(filter.odds()).omissions()
        });
        assert!(adaptive < bits * most, "{bits_per_key} bits a key: {adaptive}, {bits}");
    }
}

#[test]
fn answers_do_not_depend_on_how_it_is_divided() {
    for held in [Held::Bits(3), Held::Adaptive] {
        let (high, low) = keys(200_000, 1);
        let mut whole = filter(held);
        let expected = insert(&mut whole, &high, &low);
        for shard_bits in [1, 4, 6] {
            let mut first = filter(held);
            // Divided on the way.
            let mut answers = insert(&mut first, &high[..50_000], &low[..50_000]);
            let mut parts = first.split(shard_bits).unwrap();
            for (&high, &low) in high.iter().zip(&low).skip(50_000) {
                let part = &mut parts[(high >> (64 - shard_bits)) as usize];
                answers.extend(insert(part, &[high], &[low]));
            }
            assert!(answers == expected, "{held:?} in 2^{shard_bits} parts");
            let mut odds = Sum::default();
            parts.iter().for_each(|part| odds += part.odds());
            assert_eq!((odds, parts.iter().map(Filter::len).sum()), (whole.odds(), whole.len()));
        }
    }
}

#[test]
fn it_takes_what_the_grant_has_and_no_more() {
    for bytes in [1, 4096, 10_000, 300_000, 5 << 20, (9 << 20) + 77] {
        let budget = Budget::new(bytes);
        let filter = Filter::new(Held::Adaptive, &Arena::new(budget.grant("filter", bytes)));
        assert!(budget.used_bytes() <= bytes);
        match filter {
            Ok(filter) => assert!(filter.lines.bytes() as u64 > bytes / 3, "{bytes}"),
            Err(Full) => assert!(bytes < 4096),
        }
    }
}

/// How many bytes of a sequence of lines the system has given memory for.
fn resident(lines: &Pages) -> usize {
    let page = 4096;
    let mut present = vec![0u8; lines.bytes() / page];
    let first = std::ptr::from_ref(lines.line(0)) as *mut core::ffi::c_void;
    // SAFETY: the lines are one mapped block, and `present` has a byte for each of its pages.
    assert_eq!(unsafe { libc::mincore(first, lines.bytes(), present.as_mut_ptr()) }, 0);
    page * present.iter().filter(|&&present| present & 1 != 0).count()
}

#[test]
fn a_few_keys_in_a_large_filter_touch_a_few_small_pages() {
    let bytes = 2 * CLEARED_AT_ONCE;
    let large = || {
        let arena = Arena::new(Budget::new(bytes as u64).grant("filter", bytes as u64));
        Filter::new(Held::Bits(4), &arena).unwrap()
    };
    let (high, low) = keys(1000, 5);
    let mut sparse = large();
    insert(&mut sparse, &high, &low);
    assert!(sparse.scattered && resident(&sparse.lines) <= 1000 * 4096, "{}", resident(&sparse.lines));
    // Whether pages are joined or not, answers are the same.
    let mut joined = large();
    joined.len = joined.lines.lines() / SPARSE;
    assert_eq!(insert(&mut joined, &high, &low), [true; 1000]);
    assert!(!joined.scattered);
    assert_eq!(insert(&mut joined, &high, &low), [false; 1000]);
}
