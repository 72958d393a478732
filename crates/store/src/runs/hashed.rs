//! Runs of states that have no short key: hashes, and behind them the states themselves.
//!
//! Wide states have roots of a tree for keys ([`crate::tree`]), and its nodes stay in memory when tables leave. Where they take
//! too much of it every key is taken apart, once, and states are written as they are from then on.

use super::run::{Form, Reader, Run, Writer, index_bytes};
use super::{Layers, Shard, count_time, lock};
use crate::batch::shard_of;
use crate::cache::Distinct;
use crate::disk::Shortage;
use crate::hash;
use crate::intern::Intern;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// As many states are sorted at a time at least, whatever memory there is; and this part of the memory should be there for it.
const FEWEST: usize = 64;
const SORT_SHARE: u64 = 16;

impl Layers {
    /// From now on keys are hashes of states of so many words; before the first run.
    pub(crate) fn hash(&mut self, width: usize) {
        assert!(!self.defers());
        self.width = width;
        self.candidates.hash();
    }

    /// Can keys be taken apart? Not when states were given up that nobody knows any more.
    pub(crate) fn can_be_hashed(&self) -> bool {
        self.width == 0 && self.counts.forgotten.load(Ordering::Relaxed) == 0
    }

    /// Memory that it takes to take so many keys apart: indexes of runs, also while two become one, and room for sorting.
    pub(crate) fn hashing_bytes(&self, keys: u64, width: usize) -> u64 {
        2 * index_bytes(keys, width) + self.grant.cap_bytes() / SORT_SHARE
    }

    fn form(&self, levels: [u32; 2]) -> Form {
        let (key_bits, common_bits) = (u64::BITS, self.shards.len().ilog2());
        Form { key_bits, common_bits, born: self.candidates.count(), levels, width: self.width }
    }

    /// Writes the states of a table that is to be dropped, of these levels, first and last.
    pub(crate) fn write_vectors(&self, shard: usize, table: &Intern, levels: [u32; 2]) -> Result<(), Shortage> {
        let form = self.form(levels);
        self.write_run(shard, form, table.len(), |push| {
            table.visit_in_order(|hash, vector| push(untold(hash, form.common_bits), vector));
        })
    }

    /// Takes apart every key in the runs, where all are: `state_of` puts the state of a key, which has `width` words, behind
    /// others.
    pub(crate) fn hash_runs(
        &mut self,
        width: usize,
        mut state_of: impl FnMut(u64, &mut Vec<u32>),
    ) -> Result<(), Shortage> {
        assert!(self.can_be_hashed() && self.candidates.is_empty());
        let start = Instant::now();
        self.sieve = None;
        self.grant.give_back(std::mem::take(&mut self.reserve));
        // Filters come when the tree is gone.
        self.filter_bytes = 0;
        self.width = width;
        self.candidates.hash();
        let shard_bits = self.shards.len().ilog2();
        let mut old = Vec::new();
        for shard in &mut self.shards {
            let Shard { runs, sketch } = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            *sketch = sketch.take().map(|_| Distinct::new(shard_bits));
            runs.iter_mut().for_each(Run::drop_filter);
            old.push(std::mem::take(runs));
        }
        let order_bytes = size_of::<(u64, u32)>();
        let room = (self.grant.left_bytes() as usize / 2 / (width * 4 + order_bytes)).clamp(FEWEST, 1 << 24);
        let charged = (room * (width * 4 + order_bytes)) as u64;
        if !self.grant.take(charged) {
            return Err(Shortage::Memory);
        }
        let mut states = Sorted { width, words: Vec::with_capacity(room * width), order: Vec::with_capacity(room) };
        let mut levels = [u32::MAX, 0];
        let mut done = Ok(());
        for (number, run) in
            old.into_iter().enumerate().flat_map(|(number, runs)| runs.into_iter().map(move |run| (number, run)))
        {
            levels = [levels[0].min(run.levels()[0]), levels[1].max(run.levels()[1])];
            done = done.and_then(|()| {
                let told = (number as u64).checked_shl(u64::BITS - shard_bits).unwrap_or(0);
                let mut reader = Reader::new(run).map_err(Shortage::Disk)?;
                while let Some(open) = &mut reader {
                    state_of((open.head() >> 64) as u64 | told, &mut states.words);
                    if states.note() == room {
                        self.write_sorted(&mut states, levels)?;
                    }
                    if !open.advance().map_err(Shortage::Disk)? {
                        reader = None;
                    }
                }
                Ok(())
            });
        }
        done = done.and_then(|()| self.write_sorted(&mut states, levels));
        self.grant.give_back(charged);
        self.share_out(0, 0);
        count_time(&self.counts.merging, start);
        done
    }

    /// Writes states as one run for each shard, and merges what there is.
    fn write_sorted(&mut self, states: &mut Sorted, levels: [u32; 2]) -> Result<(), Shortage> {
        states.sort();
        let form = self.form(levels);
        let mut order = states.order.iter().peekable();
        for number in 0..self.shards.len() {
            let is_here = |hash: u64| shard_of(hash, form.common_bits) == number;
            let keys = states.order.len() as u64 / self.shards.len() as u64;
            let mut writer = Writer::new(&self.spill, &self.grant, form, keys, self.filter_bytes(keys));
            let mut shard = lock(&self.shards[number]);
            while let Some(&(hash, place)) = order.next_if(|&&(hash, _)| is_here(hash)) {
                let key = untold(hash, form.common_bits);
                writer.push_vector(key, states.at(place))?;
                shard.sketch.iter_mut().for_each(|sketch| sketch.add((key >> 64) as u64));
            }
            shard.runs.extend(writer.finish()?);
            drop(shard);
            self.merge(number)?;
        }
        states.words.clear();
        states.order.clear();
        Ok(())
    }
}

/// The key of a hash, without the bits that tell the shard.
fn untold(hash: u64, told_bits: u32) -> u128 {
    ((hash as u128) << 64) << told_bits >> told_bits
}

/// States and their order.
struct Sorted {
    width: usize,
    words: Vec<u32>,
    order: Vec<(u64, u32)>,
}

impl Sorted {
    /// Takes note of the last state, and says how many there are.
    fn note(&mut self) -> usize {
        let place = self.order.len() as u32;
        self.order.push((hash::words(self.at(place)), place));
        self.order.len()
    }

    fn at(&self, place: u32) -> &[u32] {
        &self.words[place as usize * self.width..][..self.width]
    }

    fn sort(&mut self) {
        let (words, width) = (&self.words, self.width);
        let at = |place: u32| &words[place as usize * width..][..width];
        self.order.sort_unstable_by(|one, other| (one.0, at(one.1)).cmp(&(other.0, at(other.1))));
    }
}
