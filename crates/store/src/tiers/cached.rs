//! How the keys of a block are inserted into caches, and how caches hear of the states that were expanded.

use super::Block;
use super::coded::Long;
use crate::batch::Batch;
use crate::budget::Full;
use crate::cache::{Answer, AnyCache, Hashed, KeyForm, Note, Place};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// A key as the bytes that a cache compares.
pub(super) fn key_bytes(high: u64, low: Option<u64>) -> [u8; 16] {
    ((high as u128) << 64 | low.unwrap_or(0) as u128).to_be_bytes()
}

/// The key of a state: what was computed for it, its code, or the state itself. None if its code is too long for a cache.
pub(super) fn key_of<'a>(
    computed: &'a [u8; 16],
    state: &'a [u32],
    form: KeyForm,
    coded: Option<&'a mut Long>,
) -> Option<&'a [u8]> {
    match (form.hashed, coded) {
        (Hashed::Leading, _) => Some(&computed[..form.bytes]),
        (Hashed::Whole, Some(coded)) => coded.key(state),
        (Hashed::Whole, None) => Some(bytemuck::cast_slice(state)),
    }
}

/// Holds the state whose code was just found to be too long for its cache.
pub(super) fn hold_long<C: AnyCache>(long: Option<&mut Long>, cache: &mut C, hash: u64) -> Answer {
    let answer = long.map_or(Answer::Full, |long| long.hold(hash));
    if matches!(answer, Answer::New(_)) {
        cache.count_key(hash);
    }
    answer
}

/// Inserts states into a cache, in order, and tells it of the states that were expanded: of each before its successors.
pub(super) fn insert_cached<C: AnyCache>(
    cache: &mut C,
    block: Block,
    batch: &Batch,
    range: Range<usize>,
    mut parents: Parents,
    mut long: Option<&mut Long>,
) -> Result<usize, Full> {
    let run = batch.run(range.clone());
    run.high.iter().for_each(|&hash| cache.prefetch(hash));
    let (form, mut count) = (cache.form(), 0);
    for (index, (&position, answer)) in batch.positions(range.clone()).iter().zip(batch.answers(range)).enumerate() {
        let parent = parents.expand_until(position, cache, long.as_deref_mut());
        let bytes = key_bytes(run.high[index], run.low.get(index).copied());
        let kind = block.kinds.get(position as usize).copied().unwrap_or(0);
        let note = Note { depth: block.depth, kind };
        let held = match key_of(&bytes, block.state(position as usize), form, long.as_deref_mut()) {
            Some(key) => cache.insert(key, run.high[index], note, false, parent),
            None => hold_long(long.as_deref_mut(), cache, run.high[index]),
        };
        match held {
            Answer::New(_) => {
                if cache.counts_states() {
                    cache.count_state(block.state(position as usize));
                }
                answer.store(1, Ordering::Relaxed);
                count += 1;
            }
            Answer::Known => {}
            Answer::Full => return Err(Full),
        }
    }
    parents.expand_until(u32::MAX, cache, long);
    parents.close(cache);
    Ok(count)
}

/// The expanded states that belong to a shard, in order.
pub(super) struct Parents<'a> {
    batch: &'a Batch,
    block: Block<'a>,
    left: Range<usize>,
    /// With `cover`, the state whose successors are being inserted, and how many it has.
    open: Option<(Place, usize)>,
}

impl<'a> Parents<'a> {
    pub fn new(batch: &'a Batch, shard: usize, block: Block<'a>) -> Parents<'a> {
        let left = if batch.is_empty() { 0..0 } else { batch.range(shard) };
        Parents { batch, block, left, open: None }
    }

    /// Tells the cache of all states up to the one whose successor is at `position`, and returns the place of that one
    /// if successors must know it.
    fn expand_until<C: AnyCache>(&mut self, position: u32, cache: &mut C, mut long: Option<&mut Long>) -> Place {
        let batch = self.batch;
        while let Some(at) = self.left.clone().next() {
            let index = batch.positions(at..at + 1)[0] as usize;
            let (first, end) = (self.block.firsts[index], self.block.firsts[index + 1]);
            if first > position {
                break;
            }
            self.left.next();
            let run = batch.run(at..at + 1);
            let bytes = key_bytes(run.high[0], run.low.first().copied());
            let key = key_of(&bytes, self.block.parent(index), cache.form(), long.as_deref_mut());
            let (place, successors) = (key.and_then(|key| cache.find(key, run.high[0])), (end - first) as usize);
            self.close(cache);
            match place {
                // Only with `cover` does it stay where it is while its successors are inserted.
                Some(place) if cache.keeps_ancestors() => self.open = Some((place, successors)),
                Some(place) => cache.count_successors(place, successors),
                None => {}
            }
        }
        self.open.map_or(Place::NOWHERE, |(place, _)| place)
    }

    /// All successors of the open state were inserted.
    fn close<C: AnyCache>(&mut self, cache: &mut C) {
        if let Some((place, successors)) = self.open.take() {
            cache.expanded(place, successors);
        }
    }
}
