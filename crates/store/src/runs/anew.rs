//! Runs whose keys become others, because a tree is given up: its nodes stay in memory when tables leave, and where they take too much of it
//! every key is taken apart, once. States that can be packed have those keys from then on; others have no short key, so runs hold hashes, and
//! behind them the states themselves. The same is done when states came that differ in more bits than packed keys have.

use super::run::{Form, Reader, Run, Writer, index_bytes};
use super::{Layers, Shard, count_time, lock};
use crate::batch::shard_of;
use crate::budget::Full;
use crate::cache::Distinct;
use crate::codec::{Coder, Keys};
use crate::disk::Shortage;
use crate::intern::Intern;
use crate::packing::Differing;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// As many states are sorted at a time at least, whatever memory there is; and this part of the memory should be there for it.
const FEWEST: usize = 64;
const SORT_SHARE: u64 = 16;
/// States that get their keys at a time.
const BLOCK: usize = 512;

impl Layers {
    /// From now on keys are hashes of states of so many words; before the first run.
    pub(crate) fn hash(&mut self, width: usize) {
        assert!(!self.defers());
        self.width = width;
        self.candidates.hash();
    }

    /// Can keys be taken apart? Not when states were given up that nobody knows any more.
    pub(crate) fn can_be_written_anew(&self) -> bool {
        self.width == 0 && self.counts.forgotten.load(Ordering::Relaxed) == 0
    }

    /// Memory that it takes to take so many keys apart: indexes of runs, also while two become one, and room for sorting. States of `width`
    /// words are written, or 0 if they are packed.
    pub(crate) fn anew_bytes(&self, keys: u64, width: usize) -> u64 {
        2 * index_bytes(keys, width) + self.grant.cap_bytes() / SORT_SHARE
    }

    fn form(&self, key_bits: u32, levels: [u32; 2]) -> Form {
        let common_bits = self.shards.len().ilog2();
        Form { key_bits, common_bits, born: self.candidates.count(), levels, width: self.width }
    }

    /// Writes the states of a table that is to be dropped, of these levels, first and last.
    pub(crate) fn write_vectors(&self, shard: usize, table: &Intern, levels: [u32; 2]) -> Result<(), Shortage> {
        let form = self.form(u64::BITS, levels);
        self.write_run(shard, form, table.len(), |push| {
            table.visit_in_order(|hash, vector| push(untold((hash as u128) << 64, form.common_bits), vector));
        })
    }

    /// Takes apart every key in the runs, where all are, and writes those of `coder` instead, which knows none of the states yet: `state_of` puts the
    /// state of a key behind others.
    pub(crate) fn write_anew(
        &mut self,
        coder: &mut Coder,
        mut state_of: impl FnMut(u128, &mut Vec<u32>),
    ) -> Result<(), Shortage> {
        assert!(self.can_be_written_anew() && self.candidates.is_empty());
        let start = Instant::now();
        self.is_anew = true;
        self.sieve = None;
        self.lend_reserve();
        // Filters come when the tree is gone.
        self.filter_bytes = 0;
        let shard_bits = self.shards.len().ilog2();
        let mut old = Vec::new();
        for shard in &mut self.shards {
            let Shard { runs, sketch } = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            *sketch = sketch.take().map(|_| Distinct::new(shard_bits));
            runs.iter_mut().for_each(Run::drop_filter);
            old.push(std::mem::take(runs));
        }
        let mut states = Sorted::of(coder);
        self.width = states.kept_words;
        let (room, charged) = self.room_to_sort(&states)?;
        let mut levels = [u32::MAX, 0];
        let mut done = Ok(());
        for (number, run) in
            old.into_iter().enumerate().flat_map(|(number, runs)| runs.into_iter().map(move |run| (number, run)))
        {
            levels = [levels[0].min(run.levels()[0]), levels[1].max(run.levels()[1])];
            done = done.and_then(|()| {
                let told = (number as u128).checked_shl(u128::BITS - shard_bits).unwrap_or(0);
                let mut reader = Reader::new(run).map_err(Shortage::Disk)?;
                while let Some(open) = &mut reader {
                    state_of(open.head() | told, &mut states.words);
                    if states.waiting() == BLOCK.min(room - states.order.len()) {
                        states.give_keys(coder).map_err(|Full| Shortage::Memory)?;
                    }
                    if states.order.len() == room {
                        self.write_sorted(&mut states, coder, levels)?;
                    }
                    if !open.advance().map_err(Shortage::Disk)? {
                        reader = None;
                    }
                }
                Ok(())
            });
        }
        done = done.and_then(|()| states.give_keys(coder).map_err(|Full| Shortage::Memory));
        done = done.and_then(|()| self.write_sorted(&mut states, coder, levels));
        self.grant.give_back(charged);
        match coder {
            Coder::Packed(packing) => self.candidates.pack(packing),
            _ => self.candidates.hash(),
        }
        self.share_out(0, 0);
        count_time(&self.counts.merging, start);
        done
    }

    /// Writes states of so many words as they are, each of which `next` puts behind others as long as there are any: where they come in the order of
    /// their hashes, as runs hold them, and not all find room, tables that grow would be full in one place and empty in all others.
    pub(crate) fn write_states<E: From<Shortage>>(
        &mut self,
        width: usize,
        mut next: impl FnMut(&mut Vec<u32>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut coder = Coder::Plain { width };
        let mut states = Sorted::of(&coder);
        let (room, charged) = self.room_to_sort(&states)?;
        let mut write = || -> Result<(), E> {
            loop {
                let more = next(&mut states.words)?;
                if !more || states.waiting() == BLOCK.min(room - states.order.len()) {
                    states.give_keys(&mut coder).map_err(|Full| Shortage::Memory)?;
                }
                if !more || states.order.len() == room {
                    self.write_sorted(&mut states, &coder, [0; 2])?;
                }
                if !more {
                    return Ok(());
                }
            }
        };
        let written = write();
        self.grant.give_back(charged);
        written
    }

    /// So many states are sorted at a time, for which so many bytes were taken.
    fn room_to_sort(&self, states: &Sorted) -> Result<(usize, u64), Shortage> {
        let room = (self.grant.left_bytes() as usize / 2 / states.bytes_per_state()).clamp(FEWEST, 1 << 24);
        let charged = (room * states.bytes_per_state()) as u64;
        if self.grant.take(charged) { Ok((room, charged)) } else { Err(Shortage::Memory) }
    }

    /// In which bits the states differ whose keys are in the runs, where all are: `state_of` puts the state of a key behind others.
    pub(crate) fn differing(
        &self,
        width: usize,
        mut state_of: impl FnMut(u128, &mut Vec<u32>),
    ) -> Result<Differing, Shortage> {
        let (start, shard_bits) = (Instant::now(), self.shards.len().ilog2());
        let (mut differing, mut state) = (Differing::default(), Vec::new());
        let visited = self.visit(|number, key, _| {
            state.clear();
            state_of(key | (number as u128).checked_shl(u128::BITS - shard_bits).unwrap_or(0), &mut state);
            differing.add(&state, width);
            Ok(())
        });
        count_time(&self.counts.merging, start);
        visited.map_err(Shortage::Disk).map(|()| differing)
    }

    /// Writes states as one run for each shard, and merges what there is.
    fn write_sorted(&mut self, states: &mut Sorted, coder: &Coder, levels: [u32; 2]) -> Result<(), Shortage> {
        states.sort();
        let form = self.form(if states.kept_words > 0 { u64::BITS } else { coder.key_bits() }, levels);
        let mut order = states.order.iter().peekable();
        for number in 0..self.shards.len() {
            let is_here = |key: u128| shard_of((key >> 64) as u64, form.common_bits) == number;
            let keys = states.order.len() as u64 / self.shards.len() as u64;
            let mut writer = Writer::new(&self.spill, &self.grant, form, keys, self.filter_bytes(keys));
            let mut shard = lock(&self.shards[number]);
            while let Some(&entry) = order.next_if(|&&entry| is_here(entry)) {
                let (key, vector) = states.entry(entry);
                let key = untold(key, form.common_bits);
                if vector.is_empty() {
                    writer.push(key)?
                } else {
                    writer.push_vector(key, vector)?
                }
                shard.sketch.iter_mut().for_each(|sketch| sketch.add((key >> 64) as u64));
            }
            shard.runs.extend(writer.finish()?);
            drop(shard);
            self.merge(number)?;
        }
        states.clear();
        Ok(())
    }
}

/// A key without the bits that tell the shard.
fn untold(key: u128, told_bits: u32) -> u128 {
    key << told_bits >> told_bits
}

/// Some states, by their keys.
struct Sorted {
    width: usize,
    /// Words of a state that are kept beside its key.
    kept_words: usize,
    /// The states, end to end, as far as they are kept, and behind those others that have no keys yet.
    words: Vec<u32>,
    /// Were some encoded already?
    has_begun: bool,
    keys: Keys,
    /// Keys; those that are hashes with the place of their state in the lower half.
    order: Vec<u128>,
}

impl Sorted {
    fn of(coder: &Coder) -> Sorted {
        let (width, is_packed) = (coder.width(), matches!(coder, Coder::Packed(_)));
        let kept_words = if is_packed { 0 } else { width };
        // Keys that could be too short tell what all of them need.
        let has_begun = matches!(coder, Coder::Packed(packing) if packing.is_wide());
        Sorted { width, kept_words, words: Vec::new(), has_begun, keys: Keys::default(), order: Vec::new() }
    }

    fn bytes_per_state(&self) -> usize {
        self.kept_words * 4 + size_of::<u128>()
    }

    /// How many states have no keys yet.
    fn waiting(&self) -> usize {
        self.words.len() / self.width - if self.kept_words > 0 { self.order.len() } else { 0 }
    }

    /// Computes the keys of those. Packed ones tell no more than the first states show: those of some run, that is of many levels.
    fn give_keys(&mut self, coder: &mut Coder) -> Result<(), Full> {
        let start = self.words.len() - self.waiting() * self.width;
        let states = &self.words[start..];
        if states.is_empty() {
            return Ok(());
        }
        if let Coder::Packed(packing) = coder
            && !std::mem::replace(&mut self.has_begun, true)
            && let Some(narrowed) = packing.narrowed(states)
        {
            *packing = narrowed;
        }
        self.keys.clear();
        while let Err(full) = coder.encode(states, &mut self.keys) {
            if !coder.widen() {
                return Err(full);
            }
            self.keys.clear();
        }
        let first = self.order.len();
        let key = |number: usize| match self.kept_words {
            0 => (self.keys.high[number] as u128) << 64 | self.keys.low.get(number).copied().unwrap_or(0) as u128,
            _ => (self.keys.high[number] as u128) << 64 | (first + number) as u128,
        };
        self.order.extend((0..self.keys.high.len()).map(key));
        if self.kept_words == 0 {
            self.words.clear();
        }
        Ok(())
    }

    /// The key of an entry, and what is kept of its state.
    fn entry(&self, entry: u128) -> (u128, &[u32]) {
        match self.kept_words {
            0 => (entry, &[]),
            words => (entry >> 64 << 64, &self.words[entry as u64 as usize * words..][..words]),
        }
    }

    /// Puts them in order, each once.
    fn sort(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        if self.kept_words == 0 {
            order.sort_unstable();
        } else {
            order.sort_unstable_by(|&one, &other| self.entry(one).cmp(&self.entry(other)));
        }
        order.dedup_by(|one, other| self.entry(*one) == self.entry(*other));
        self.order = order;
    }

    fn clear(&mut self) {
        self.words.clear();
        self.order.clear();
    }
}
