//! How keys and states are inserted into tables that forget nothing.

use super::Block;
use crate::batch::Batch;
use crate::budget::Full;
use crate::intern::Intern;
use crate::packed::Packed;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Inserts keys in order until there are `room` or there is no memory; true if all of them were entered.
pub(super) fn fill(table: &mut Packed, room: usize, batch: &Batch, mut left: Range<usize>, key_bits: u32) -> bool {
    while !left.is_empty() {
        // So many fit, however many of them are new.
        let count = left.len().min(room.saturating_sub(table.len()));
        if count == 0 || table.reserve(count, key_bits).is_err() {
            return false;
        }
        let range = left.start..left.start + count;
        batch.count_fresh(table.insert_all(batch.run(range.clone()), batch.answers(range)));
        left.start += count;
    }
    true
}

/// Inserts states as they are; their keys are hashes.
pub(super) fn insert_vectors(table: &Intern, block: Block, batch: &Batch, range: Range<usize>) -> Result<usize, Full> {
    let hashes = batch.run(range.clone()).high;
    hashes.iter().for_each(|&hash| table.prefetch(hash));
    let answers = batch.answers(range.clone());
    let mut count = 0;
    for ((&position, &hash), answer) in batch.positions(range).iter().zip(hashes).zip(answers) {
        let state = &block.states[position as usize * table.stride()..][..table.stride()];
        let (_, new) = table.intern(state, hash)?;
        answer.store(new as u8, Ordering::Relaxed);
        count += new as usize;
    }
    Ok(count)
}
