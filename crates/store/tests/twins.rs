//! Stores of states of one bit to 16,384 beside sets: every codec, every state held or a part of them, with plenty of memory and with so
//! little that it runs out. What is fresh is what the set did not have; a store that is full says so and forgets nothing.

use plimsoll_ir::random::Draw;
use plimsoll_store::huffman::Kind;
use plimsoll_store::packing::MOST_BITS;
use plimsoll_store::{Block, Budget, Buffers, Chain, Codec, Full, Row, Rule};
use std::collections::HashSet;

/// The bits that words use, so many in all.
fn used(bits: usize) -> Vec<u32> {
    (0..bits.div_ceil(32)).map(|word| u32::MAX >> (32 - (bits - word * 32).min(32))).collect()
}

/// States that differ from the one before in a few places, and come back now and then.
struct Walk {
    used: Vec<u32>,
    state: Vec<u32>,
    draw: Draw,
}

impl Walk {
    fn new(bits: usize) -> Walk {
        let used = used(bits);
        Walk { state: vec![0; used.len()], used, draw: Draw::new(bits as u64) }
    }

    fn block(&mut self, states: usize) -> Vec<u32> {
        let mut block = Vec::new();
        for _ in 0..states {
            let word = self.draw.below(self.used.len() as u64) as usize;
            self.state[word] = match self.draw.below(4) {
                0 => self.draw.bits() as u32,
                _ => self.draw.below(5) as u32,
            } & self.used[word];
            block.extend_from_slice(&self.state);
        }
        block
    }
}

/// Puts blocks into both until there are many states, or no memory; says how many states there were, and whether memory ran out.
fn compare(bits: usize, codec: Codec, row: Option<&Row>, bytes: u64) -> Option<(usize, bool)> {
    let (mut walk, budget) = (Walk::new(bits), Budget::new(bytes));
    let (width, grant) = (walk.used.len(), budget.grant("store", bytes));
    let store = match row {
        None => Chain::new(codec, &walk.used, bits as u32 % 3, &grant),
        Some(row) => Chain::with_row(codec, &walk.used, row, false, 4_096, &grant),
    };
    let mut store = store.ok()?;
    let (mut buffers, mut fresh, mut twin, mut full) = (Buffers::default(), Vec::new(), HashSet::new(), false);
    let about = format!("{bits} bits, {codec}, {bytes} bytes");
    let enough = if bits < 200 { 6_000 } else { 800 };
    while !full && twin.len() < enough.min(1 << bits.min(13)) {
        let states = walk.block(50);
        full = store.insert(Block::of(&states, &[0, 50]), &mut buffers, &mut fresh) == Err(Full);
        let mut last = 0;
        for (position, state) in states.chunks(width).enumerate() {
            let is_fresh = fresh.contains(&(position as u32));
            // Of the block for which there was no room some states were entered, the others were not.
            assert!(full || is_fresh != twin.contains(state) || row.is_some(), "{about}");
            assert!(!is_fresh || row.is_some() || !twin.contains(state), "{about}");
            if is_fresh || !full {
                twin.insert(state.to_vec());
            }
            last += is_fresh as usize;
        }
        assert_eq!(last, fresh.len(), "{about}");
    }
    assert!(budget.used_bytes() <= bytes, "{about}");
    if row.is_none() {
        assert_eq!(store.usage().states, twin.len() as u64, "{about}");
        // Whoever was held before memory ran out is held still.
        for state in &twin {
            if store.insert(Block::of(state, &[0, 1]), &mut buffers, &mut fresh).is_ok() {
                assert!(fresh.is_empty(), "{about}");
            }
        }
    }
    Some((twin.len(), full))
}

#[test]
fn states_of_any_width_are_held_or_memory_runs_out() {
    let row = Row::single(Rule::LeastRecent);
    let (mut held, mut ran_out, mut forgot) = (0, 0, 0);
    for bits in [1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1_000, 4_096, 16_384] {
        for codec in [Codec::Plain, Codec::Packed, Codec::Tree, Codec::Huffman(Kind::Static)] {
            if codec == Codec::Packed && bits as u32 > MOST_BITS {
                continue;
            }
            for bytes in [256 << 20, 2 << 20, 256 << 10, 64 << 10] {
                let exact = compare(bits, codec, None, bytes);
                // How long codes are in a cache is told by training.
                let cached = match codec {
                    Codec::Huffman(_) => None,
                    _ => compare(bits, codec, Some(&row), bytes),
                };
                assert!(bytes < 256 << 20 || matches!(exact, Some((_, false))), "{bits} bits, {codec}");
                assert!(bytes < 256 << 20 || cached.is_none_or(|(_, full)| !full), "{bits} bits, {codec}");
                held += exact.is_some_and(|(_, full)| !full) as usize;
                ran_out += exact.is_some_and(|(_, full)| full) as usize;
                forgot += cached.is_some_and(|(_, full)| !full) as usize;
            }
        }
    }
    assert!(held > 100 && ran_out > 12 && forgot > 100, "{held} held all, {ran_out} ran out, {forgot} cached");
}
