use super::*;
use crate::budget::Budget;
use crate::chain::{Buffers, Chain};
use crate::disk::SLOT;
use crate::row::Row;
use plimsoll_ir::random::Draw;
use std::collections::HashMap;

const WIDTH: usize = 3;
const USED: [u32; WIDTH] = [0xFF, 0xFFFF, 0x3F];

/// How a trial went: questions that waited, and states that had been found before.
struct Trial {
    asked: u64,
    repeated: u64,
}

/// Enters random blocks and compares all numbers with a map of first numbers.
fn trial(codec: Codec, keeping: Keeping, row: Option<&str>, numbers_bytes: u64, join_bytes: u64, disk: bool) -> Trial {
    let what = format!("{codec:?} {keeping:?} {row:?} {numbers_bytes} {join_bytes} {disk}");
    let unlimited = Grant::unlimited();
    let mut chain = match row {
        Some(row) => Chain::with_row(codec, &USED, &Row::chain(row).unwrap(), false, 500, &unlimited).unwrap(),
        None => Chain::new(codec, &USED, 2, &unlimited).unwrap(),
    };
    let budget = Budget::new(numbers_bytes + join_bytes);
    let spill = || Spill::in_folders(&[std::env::temp_dir()], SLOT, Grant::unlimited()).unwrap();
    let grant = budget.grant("numbers", numbers_bytes);
    let mut numbers = Numbers::new(codec, &USED, keeping, grant, disk.then(|| [spill(), spill()])).expect(&what);
    let (mut buffers, mut fresh, mut targets, mut all) = (Buffers::default(), Vec::new(), Vec::new(), Vec::new());
    let (mut draw, mut firsts, mut next) = (Draw::new(7), HashMap::new(), 0u32);
    for round in 0..150u64 {
        let state = |draw: &mut Draw| [draw.below(40) as u32, draw.below(10 + round * 20) as u32, 5];
        let states: Vec<u32> = (0..200).flat_map(|_| state(&mut draw)).collect();
        let block = Block::of(&states, &[0, 200]);
        chain.insert(block, &mut buffers, &mut fresh).unwrap();
        numbers.look_up(block, buffers.entry(), &fresh, true, &mut targets).expect(&what);
        for &position in &fresh {
            firsts.entry(states[position as usize * WIDTH..][..WIDTH].to_vec()).or_insert(next);
            next += 1;
        }
        for (position, &target) in targets.iter().enumerate() {
            let is_fresh = fresh.contains(&(position as u32));
            all.push((states[position * WIDTH..][..WIDTH].to_vec(), target, is_fresh));
        }
    }
    let asked = numbers.asked();
    assert_eq!(numbers.states(), u64::from(next));
    let forgets = keeping != Keeping::Table;
    let join = budget.grant("join", join_bytes);
    let mut answers = numbers.answers(&join, disk.then(spill), forgets).expect(&what);
    assert_eq!(answers.repeated(), u64::from(next) - firsts.len() as u64, "{what}");
    let mut numbers_in_order: Vec<u32> = firsts.values().copied().collect();
    numbers_in_order.sort_unstable();
    for (rank, number) in numbers_in_order.into_iter().enumerate() {
        assert!(!answers.is_repeated(number));
        assert_eq!(answers.rank(number), rank as u32, "{what}");
    }
    for (state, target, is_fresh) in all {
        let first = firsts[&state];
        match target {
            UNKNOWN => assert_eq!(answers.next().unwrap(), first, "{what}"),
            // A state that is found again has another number.
            target if is_fresh && forgets => assert!(target == first || answers.is_repeated(target)),
            target => assert_eq!(target, first, "{what}"),
        }
    }
    let repeated = answers.repeated();
    drop(answers);
    assert_eq!(budget.used_bytes(), 0, "{what}");
    Trial { asked, repeated }
}

#[test]
fn a_table_knows_all_numbers_where_it_fits() {
    for codec in [Codec::Plain, Codec::Packed] {
        for disk in [false, true] {
            assert_eq!(trial(codec, Keeping::Table, None, 64 << 20, 1 << 20, disk).asked, 0);
        }
    }
}

#[test]
fn what_does_not_fit_is_joined_later() {
    for codec in [Codec::Plain, Codec::Packed] {
        for (numbers_bytes, join_bytes) in [(300 << 10, 64 << 20), (300 << 10, 700 << 10), (350 << 10, 900 << 10)] {
            let trial = trial(codec, Keeping::Table, None, numbers_bytes, join_bytes, true);
            assert!(trial.asked > 100 && trial.repeated == 0, "{} questions", trial.asked);
        }
    }
}

#[test]
fn states_that_were_forgotten_have_one_number_in_the_end() {
    for codec in [Codec::Plain, Codec::Packed] {
        for keeping in [Keeping::Aside, Keeping::AsideAll] {
            for (memory, disk) in [(64 << 20, false), (64 << 20, true), (1 << 20, true)] {
                let trial = trial(codec, keeping, Some("LRU"), memory, memory, disk);
                assert!(trial.repeated > 1000 && trial.asked > 100, "{} {}", trial.repeated, trial.asked);
            }
        }
    }
}

#[test]
fn without_room_it_is_said() {
    let grant = Budget::new(100 << 10).grant("numbers", 100 << 10);
    let mut numbers = Numbers::new(Codec::Packed, &USED, Keeping::Table, grant, None).unwrap();
    let mut chain = Chain::new(Codec::Packed, &USED, 0, &Grant::unlimited()).unwrap();
    let (mut buffers, mut fresh, mut targets) = (Buffers::default(), Vec::new(), Vec::new());
    let full = (0..20_000u32).any(|number| {
        let state = [number % 256, number / 256, 0];
        let block = Block::of(&state, &[0, 1]);
        chain.insert(block, &mut buffers, &mut fresh).unwrap();
        numbers.look_up(block, buffers.entry(), &fresh, true, &mut targets).is_err()
    });
    assert!(full);
}
