use super::*;
use crate::budget::Budget;
use std::collections::HashSet;

fn put(table: &Roots, root: u64) -> Result<bool, Full> {
    let mut fresh = Vec::new();
    table.insert_all(&[root], &[Roots::mix(root)], &mut fresh).map(|()| fresh == [0])
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn agrees_with_a_hash_set_through_every_format() {
    let mut table = Roots::new(Grant::unlimited()).unwrap();
    let mut twin = HashSet::new();
    let mut seed = 88172645463325252u64;
    let mut formats = HashSet::new();
    // Small numbers first (compact from some sixty thousand on), then larger ones.
    for round in 0..1_500_000u64 {
        let draw = random(&mut seed);
        let (left, right) = (draw >> 10 & 0xFFF, draw >> 40 & 0x3FF);
        let bound = if round < 1_400_000 { 1 << 12 } else { 1 << 23 };
        let root = left << 32 | if bound > 1 << 22 { right << 13 } else { right };
        table.reserve(1, bound).unwrap();
        assert_eq!(put(&table, root), Ok(twin.insert(root)), "round {round}");
        formats.insert(table.format != Format::Wide);
    }
    assert_eq!(formats.len(), 2, "both formats were seen");
    assert_eq!(table.format, Format::Wide);
    assert_eq!(table.len(), twin.len());
    assert!(twin.iter().all(|&root| put(&table, root) == Ok(false)));
}

#[test]
fn compact_tables_take_about_five_bytes_a_root() {
    let mut table = Roots::new(Grant::unlimited()).unwrap();
    for root in 0..1_500_000u64 {
        table.reserve(1, 1 << 16).unwrap();
        assert_eq!(put(&table, ((root % 2000) << 32) | (root / 2000)), Ok(true));
    }
    assert!(table.format != Format::Wide && table.bytes() < table.len() * 8, "{} bytes", table.bytes());
    assert!((0..1_500_000u64).all(|root| put(&table, ((root % 2000) << 32) | (root / 2000)) == Ok(false)));
}

#[test]
fn a_small_grant_fills_up_without_losing_roots() {
    let budget = Budget::new(100 << 10);
    let mut table = Roots::new(budget.grant("t", 100 << 10)).unwrap();
    let mut count = 0u64;
    while table.reserve(1, 1 << 20).is_ok() {
        assert_eq!(put(&table, count), Ok(true));
        count += 1;
    }
    assert!(count > 9_000, "only {count} roots in 100 KiB");
    assert!((0..count).all(|root| put(&table, root) == Ok(false)));
}

#[test]
fn concurrent_inserts_agree_on_who_was_first() {
    let mut table = Roots::new(Grant::unlimited()).unwrap();
    table.reserve(40_000, 1 << 16).unwrap();
    let table = &table;
    let firsts: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4u64)
            .map(|worker| {
                let roots = (0..20_000u64).map(move |i| (i * 7919 + worker * 13) % 20_000);
                scope.spawn(move || roots.filter(|&root| put(table, root) == Ok(true)).count())
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!((firsts, table.len()), (20_000, 20_000));
}
