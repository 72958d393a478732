//! Layers on disk: keys that leave memory become runs, and what memory does not know is a candidate until the runs were
//! asked, which is done for many candidates at once ("delayed duplicate detection", Lamborn and Hansen 2008).
//!
//! **That is exact.** Every key that was ever inserted into the tables is in a table or in a run. A state that the tables do
//! not know, at a time when so many candidates had come, was met before exactly if its key is in a run that was written by
//! then: what is in a run was in a table before, and what was in a table is in a run or still there. So a run answers for
//! candidates that came after it was written ([`Form::born`]) and for no others; a run written between two equal
//! candidates answers for the second, and there is such a run, or the table would have known the second. Candidates keep
//! their order, so what survives is numbered as if it had been found at once. Runs of different age become one only when no
//! candidate waits: from then on they answer for all.
//!
//! What a run that is kept for ever or a younger table knows need not be written again: `packed/marks.rs`.
//!
//! Runs are merged like those of a log-structured tree: one that is not three times as large as all younger ones together is
//! merged with them, so there are few, and a key is written again a few times only.

mod anew;
mod block;
mod candidates;
mod filter;
mod passing;
mod run;
mod sieve;
mod vectors;

use crate::budget::Grant;
use crate::cache::Distinct;
use crate::disk::{Shortage, Slot, Spill, SpillError};
use crate::packed::Packed;
pub use candidates::{Candidates, KEY_WORDS, ORIGIN_WORDS, Survivors};
pub use run::BLOCK_BYTES;
use run::{Form, Run, Writer};
use sieve::Sieve;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
pub use vectors::MOST_WORDS;

/// Of the memory that is left to runs and tables, filters may take so many per cent, and the sieve.
const FILTER_PERCENT: u64 = 35;
const SIEVE_PERCENT: u64 = 12;
/// So many where less than this part of the candidates is on disk: tables could be smaller then and recognise as much, while every lookup that
/// a filter does not spare reads a block for nothing.
const SELDOM_FILTER_PERCENT: u64 = 60;
const SELDOM_SHARE: u64 = 16;
/// And so many are left for indexes and for whatever is short-lived.
const REST_PERCENT: u64 = 6;
/// Up to so many levels there are no filters. A level has about so many candidates for each block on disk as a block has
/// keys, divided by the number of levels: where that is many, all blocks are read whatever a filter says, and its memory is
/// worth more in tables.
const DENSE_LEVELS: u32 = 500;
/// This part of the memory is for indexes of runs.
const RESERVE: u64 = 32;
/// At most this part of the disk is kept aside.
const DISK_RESERVE: u64 = 8;
/// Generations of tables in memory.
const GENERATIONS: u64 = 2;
/// A run is merged with the younger ones unless it is so many times as large.
const FEWEST_TIMES: u64 = 3;

/// Candidates wait to the end of a level, unless memory was emptied so often meanwhile: each time leaves a run for which all that come later are
/// looked for, and looking passes over all runs once.
const MOST_UNMERGED: u32 = 4;

/// As many levels are kept at least, if nobody says how many.
const LEAST_LEVELS: u32 = 2;

/// How long levels stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// For ever.
    All,
    /// So many levels; and for ever those of levels that are powers of two: whatever comes round again meets them.
    Last(u32),
    /// Twice as many levels as the longest way back that was seen.
    Auto,
}

/// What was done on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayersReport {
    /// Runs of all shards, and their keys.
    pub runs: u64,
    pub keys: u64,
    pub disk_bytes: u64,
    /// How often memory was emptied, and how many keys were given up for good.
    pub flushes: u64,
    pub forgotten: u64,
    /// States that memory did not know.
    pub candidates: u64,
    /// Those of them that were on disk.
    pub known: u64,
    /// Lookups that filters spared, and lookups that went to disk.
    pub filtered: u64,
    pub looked_for: u64,
    pub written_bytes: u64,
    pub read_bytes: u64,
    /// Levels that are kept, where not all are.
    pub levels: Option<u32>,
    /// States are written as they are, for they have no short keys.
    pub whole_states: bool,
    /// A tree was given up: what is above, or packed keys, came instead.
    pub gave_up_tree: bool,
    /// Packed keys were given up, for a state came that differs in more bits than they have.
    pub outgrew_keys: bool,
    /// Processor time for emptying memory, for asking runs and for merging them, waiting for the disk included.
    pub flush_seconds: f64,
    pub ask_seconds: f64,
    pub merge_seconds: f64,
    /// And how much of it all was reading and writing.
    pub disk_seconds: f64,
}

#[derive(Debug, Default)]
struct Counts {
    flushes: AtomicU64,
    forgotten: AtomicU64,
    candidates: AtomicU64,
    known: AtomicU64,
    filtered: AtomicU64,
    looked_for: AtomicU64,
    /// In nanoseconds.
    flushing: AtomicU64,
    asking: AtomicU64,
    merging: AtomicU64,
    /// The longest way back from a candidate to the level of what knew it.
    longest_back: AtomicU64,
}

/// All runs of a store, and the candidates.
#[derive(Debug)]
pub struct Layers {
    keep: Keep,
    pub candidates: Candidates,
    spill: Arc<Spill>,
    grant: Grant,
    /// None before the first run.
    shards: Vec<Mutex<Shard>>,
    sieve: Option<Sieve>,
    /// How many of those in the sieve were read again.
    read: usize,
    /// What is on its way into the sieve, or back.
    pieces: Vec<Range<usize>>,
    /// Memory for all filters, and the keys they are for.
    filter_bytes: u64,
    filter_keys: u64,
    /// How often memory was emptied since no candidate waited.
    unmerged: u32,
    /// Memory kept aside for the indexes of runs that are written when there is no other.
    reserve: u64,
    /// Disk kept aside for survivors.
    disk_reserve: Vec<Slot>,
    /// Memory that others want, and should find when tables have left.
    wanted: u64,
    /// How much the process should have at most, and says that it has had.
    process: Option<(u64, fn() -> u64)>,
    /// The level on which states are being found.
    pub(crate) level: u32,
    /// Words of the vectors whose hashes keys are; 0 if keys tell states apart.
    width: usize,
    /// Were all keys taken apart once, and were packed ones?
    is_anew: bool,
    outgrew_keys: bool,
    counts: Counts,
}

#[derive(Debug)]
struct Shard {
    /// Oldest first.
    runs: Vec<Run>,
    /// Different keys, where some are given up.
    sketch: Option<Distinct>,
}

impl Drop for Layers {
    fn drop(&mut self) {
        self.grant.give_back(self.reserve);
        self.leave_disk();
    }
}

impl Layers {
    /// Layers without runs; `grant` is that of the store, `spill` has slots of [`BLOCK_BYTES`].
    pub fn new(keep: Keep, candidates: Candidates, spill: Spill, grant: &Grant) -> Layers {
        assert_eq!(spill.slot_bytes(), BLOCK_BYTES);
        let mut layers = Layers {
            keep,
            candidates,
            spill: Arc::new(spill),
            grant: grant.clone(),
            shards: Vec::new(),
            sieve: None,
            read: 0,
            pieces: Vec::new(),
            filter_bytes: 0,
            filter_keys: 0,
            unmerged: 0,
            reserve: 0,
            disk_reserve: Vec::new(),
            wanted: 0,
            process: None,
            level: 0,
            width: 0,
            is_anew: false,
            outgrew_keys: false,
            counts: Counts::default(),
        };
        layers.keep_reserve();
        layers
    }

    /// The same in a process that should have no more than so many bytes, and says how many it has had at most.
    pub fn in_process(mut self, most_bytes: u64, peak_bytes: fn() -> u64) -> Layers {
        self.process = Some((most_bytes, peak_bytes));
        self
    }

    /// Takes some of what the process does not use, although it was kept aside for it. Tables are full just now; what they were given before and have not
    /// taken yet will be used too, and half of the rest is enough for once: not all that is charged is resident yet.
    fn take_slack(&self) {
        let Some((most_bytes, peak_bytes)) = self.process else { return };
        self.grant.raise(most_bytes.saturating_sub(peak_bytes() + self.grant.unused_bytes()) / 2);
    }

    /// Keeps memory aside, if there is any: without an index nothing can be written.
    pub fn keep_reserve(&mut self) {
        let bytes = self.grant.cap_bytes() / RESERVE;
        if self.reserve == 0 && self.grant.take(bytes) {
            self.reserve = bytes;
        }
    }

    /// Whoever writes or merges runs may have it, and keeps it aside again afterwards.
    pub fn lend_reserve(&mut self) {
        self.grant.give_back(std::mem::take(&mut self.reserve));
    }

    /// Keeps disk aside, if there is any, for when it is full: what waited in memory may need some as it survives, before what waited on disk leaves
    /// any. It is written, for a device may be smaller than the budget.
    pub fn keep_disk(&mut self) {
        let bytes = self.candidates.settling_bytes().min(self.spill.left_bytes()[1] / DISK_RESERVE);
        while ((self.disk_reserve.len() * BLOCK_BYTES) as u64) < bytes
            && let Ok(slot) = self.spill.put(&[0; BLOCK_BYTES])
        {
            self.disk_reserve.push(slot);
        }
    }

    /// Leaves it to survivors, or to a checkpoint; false if there is none.
    pub fn leave_disk(&mut self) -> bool {
        let any = !self.disk_reserve.is_empty();
        self.spill.leave(self.disk_reserve.drain(..));
        any
    }

    /// What the store can have, beside what others have taken of the same memory or want.
    fn memory(&self) -> u64 {
        (self.grant.used_bytes() + self.grant.left_bytes()).saturating_sub(self.wanted)
    }

    /// Says how much others want, until they have taken it.
    pub fn leave(&mut self, bytes: u64) {
        self.wanted = bytes;
    }

    /// Filters go; when tables have left others are made, in what others do not want.
    pub fn drop_filters(&mut self) {
        let shards = self.shards.iter_mut().map(|shard| shard.get_mut().unwrap_or_else(PoisonError::into_inner));
        shards.flat_map(|shard| &mut shard.runs).for_each(Run::drop_filter);
    }

    /// Are there runs, so that what memory does not know is a candidate?
    pub fn defers(&self) -> bool {
        !self.shards.is_empty()
    }

    /// Prepares for runs of so many more keys in so many shards. `others_bytes` is the memory of the store that is neither
    /// for tables nor for runs.
    pub(crate) fn begin_flush(&mut self, shard_bits: u32, keys: u64, others_bytes: u64) {
        self.counts.flushes.fetch_add(1, Ordering::Relaxed);
        self.take_slack();
        self.unmerged += 1;
        self.lend_reserve();
        if self.shards.is_empty() {
            let sketch = || (self.keep != Keep::All).then(|| Distinct::new(shard_bits));
            let shard = |_| Mutex::new(Shard { runs: Vec::new(), sketch: sketch() });
            self.shards = (0..1 << shard_bits).map(shard).collect();
        }
        self.share_out(keys, others_bytes);
    }

    /// Decides what filters may take if so many keys come.
    fn share_out(&mut self, keys: u64, others_bytes: u64) {
        let ours = self.memory().saturating_sub(others_bytes);
        self.filter_bytes = ours * self.filter_percent() / 100;
        self.filter_keys = self.keys() + keys;
    }

    /// Memory for a generation of tables, beside what else there is.
    pub(crate) fn generation_bytes(&self, others_bytes: u64) -> u64 {
        // Merging writes a second index beside the first, and that may be a little larger.
        let index_bytes = self.sum(Run::index_bytes) * 9 / 4;
        let ours = self.memory().saturating_sub(others_bytes + index_bytes);
        ours * (100 - self.filter_percent() - SIEVE_PERCENT - REST_PERCENT) / 100 / GENERATIONS
    }

    fn filter_percent(&self) -> u64 {
        if self.level < DENSE_LEVELS {
            return 0;
        }
        let [known, candidates] =
            [&self.counts.known, &self.counts.candidates].map(|count| count.load(Ordering::Relaxed));
        // Whole states take so much that tables need all they can have.
        let is_seldom = self.width == 0 && known * SELDOM_SHARE < candidates;
        if is_seldom { SELDOM_FILTER_PERCENT } else { FILTER_PERCENT }
    }

    /// Memory for the filter of so many keys. Two thirds of it all are for those that are there, for there will be a third to a half as many more
    /// before the largest run is written again ([`FEWEST_TIMES`]).
    fn filter_bytes(&self, keys: u64) -> u64 {
        (self.filter_bytes as u128 * 2 / 3 * keys as u128 / self.filter_keys.max(1) as u128) as u64
    }

    /// Writes the keys of a table that is to be dropped, of these levels, first and last; memory for `most` keys may be used.
    pub(crate) fn write(&self, shard: usize, table: &Packed, levels: [u32; 2], most: usize) -> Result<(), Shortage> {
        let (key_bits, common_bits) = table.bits();
        let form = Form { key_bits, common_bits, born: self.candidates.count(), levels, width: 0 };
        self.write_run(shard, form, table.len(), |push| table.stream_within(most, |key| push(key, &[])))
    }

    /// Writes a run of so many keys, which `stream` hands over in ascending order, with vectors if keys are hashes.
    fn write_run(
        &self,
        shard: usize,
        form: Form,
        keys: usize,
        stream: impl FnOnce(&mut dyn FnMut(u128, &[u32])),
    ) -> Result<(), Shortage> {
        let (start, keys) = (Instant::now(), keys as u64);
        let mut writer = Writer::new(&self.spill, &self.grant, form, keys, self.filter_bytes(keys));
        let mut written = Ok(());
        let mut sketch = self.lock(shard).sketch.take();
        // Those that come later were candidates, and counted as such.
        let counted = sketch.as_mut().filter(|_| self.counts.candidates.load(Ordering::Relaxed) == 0);
        let mut counted = counted.filter(|_| self.candidates.count() == 0);
        stream(&mut |key, vector| {
            if written.is_ok() {
                written = if form.width > 0 { writer.push_vector(key, vector) } else { writer.push(key) };
            }
            if let Some(sketch) = &mut counted {
                sketch.add((key >> 64) as u64);
            }
        });
        let run = written.and_then(|()| writer.finish());
        let mut shard = self.lock(shard);
        // Also where nothing could be written: the search may go on in another way.
        shard.sketch = sketch;
        shard.runs.extend(run?);
        count_time(&self.counts.flushing, start);
        Ok(())
    }

    /// Makes filters for runs that have none, now that the tables are gone, and the sieve.
    pub(crate) fn end_flush(&mut self, others_bytes: u64) -> Result<(), Shortage> {
        let ours = self.memory().saturating_sub(others_bytes);
        if self.sieve.is_none() {
            let sieve = ours * SIEVE_PERCENT / 100;
            let sieve = Sieve::new(self.shards.len(), sieve, self.width, &self.spill, &self.grant);
            self.sieve = Some(sieve.map_err(|_| Shortage::Memory)?);
        }
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for run in shard.runs.iter_mut().filter(|run| !run.has_filter()) {
                run.add_filter(self.filter_bytes(run.keys())).map_err(Shortage::Disk)?;
            }
        }
        self.keep_reserve();
        Ok(())
    }

    /// Are there so many runs that were not merged, for candidates wait, that these should be looked for now?
    pub fn should_settle(&self) -> bool {
        self.unmerged >= MOST_UNMERGED && !self.candidates.is_empty()
    }

    /// Takes note that no candidate waits.
    pub fn settle(&mut self) {
        assert!(self.candidates.is_empty());
        self.unmerged = 0;
        for shard in &mut self.shards {
            let shard = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            shard.runs.iter_mut().for_each(Run::settle);
        }
    }

    /// The same where the states of `level` are next. What is too old goes.
    pub fn end_seal(&mut self, level: u32) {
        self.settle();
        let Some(last) = self.kept_levels() else { return };
        for shard in &mut self.shards {
            let shard = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            for run in shard.runs.extract_if(.., |run| may_go(run.levels(), last, level)) {
                self.counts.forgotten.fetch_add(run.keys(), Ordering::Relaxed);
            }
        }
    }

    /// How many levels are kept, where not all are.
    fn kept_levels(&self) -> Option<u32> {
        match self.keep {
            Keep::All => None,
            Keep::Last(levels) => Some(levels),
            Keep::Auto => {
                let longest = self.counts.longest_back.load(Ordering::Relaxed) as u32;
                Some(longest.saturating_mul(2).max(LEAST_LEVELS))
            }
        }
    }

    /// Merges runs of one shard, if that is worth it; when no candidate waits.
    pub fn merge(&self, shard: usize) -> Result<(), Shortage> {
        let start = Instant::now();
        let mut shard = self.lock(shard);
        let runs = &mut shard.runs;
        let most_levels = self.kept_levels().map_or(u32::MAX, |levels| levels / 2);
        let (mut first, mut keys, mut end) = (runs.len(), 0, 0);
        while let Some(run) = first.checked_sub(1).map(|before| &runs[before]) {
            end = end.max(run.levels()[1]);
            if first < runs.len() && (run.keys() > FEWEST_TIMES * keys || end - run.levels()[0] > most_levels) {
                break;
            }
            keys += run.keys();
            first -= 1;
        }
        if runs.len() - first > 1 {
            let young: Vec<Run> = runs.drain(first..).collect();
            runs.extend(Run::merge(young, self.filter_bytes(keys))?);
        }
        count_time(&self.counts.merging, start);
        Ok(())
    }

    /// Do all keys that come here stay?
    pub fn keeps_all(&self) -> bool {
        self.keep == Keep::All
    }

    /// Takes note that packed keys have to be taken apart.
    pub(crate) fn outgrow_keys(&mut self) {
        self.outgrew_keys = true;
    }

    /// Are all keys that ever came here still here, and does none wait to be looked for?
    pub(crate) fn is_settled(&self) -> bool {
        self.keeps_all() && self.candidates.is_empty()
    }

    /// Visits the keys of all runs, those of a shard without the bits that tell the shard, and vectors if keys are hashes.
    pub(crate) fn visit<E: From<SpillError>>(
        &self,
        mut visit: impl FnMut(usize, u128, &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let shards = self.shards.iter().enumerate();
        shards.map(|(number, shard)| (number, self::lock(shard))).try_for_each(|(number, shard)| {
            shard.runs.iter().try_for_each(|run| run.visit(|key, vector| visit(number, key, vector)))
        })
    }

    /// Keys of all runs.
    pub(crate) fn keys(&self) -> u64 {
        self.sum(Run::keys)
    }

    fn sum(&self, of: impl Fn(&Run) -> u64) -> u64 {
        self.shards.iter().map(|shard| self::lock(shard).runs.iter().map(&of).sum::<u64>()).sum()
    }

    /// Memory of runs and sieve.
    pub(crate) fn bytes(&self) -> u64 {
        self.sum(Run::bytes) + self.sieve.as_ref().map_or(0, Sieve::bytes) + self.reserve
    }

    /// Keys that were given up, and about how many different ones there were; none while none was.
    pub(crate) fn forgotten(&self) -> Option<(u64, u64)> {
        let forgotten = self.counts.forgotten.load(Ordering::Relaxed);
        let shards: Vec<_> = self.shards.iter().map(self::lock).collect();
        let sketches = shards.iter().filter_map(|shard| shard.sketch.as_ref());
        (forgotten > 0).then(|| (forgotten, Distinct::estimate_all(sketches)))
    }

    pub fn report(&self) -> LayersReport {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let seconds = |count: &AtomicU64| Duration::from_nanos(count.load(Ordering::Relaxed)).as_secs_f64();
        let counts = &self.counts;
        let [written_bytes, read_bytes] = self.spill.traffic();
        LayersReport {
            runs: self.shards.iter().map(|shard| self::lock(shard).runs.len() as u64).sum(),
            keys: self.keys(),
            disk_bytes: self.sum(Run::disk_bytes),
            flushes: count(&counts.flushes),
            forgotten: count(&counts.forgotten),
            candidates: count(&counts.candidates),
            known: count(&counts.known),
            filtered: count(&counts.filtered),
            looked_for: count(&counts.looked_for),
            written_bytes,
            read_bytes,
            levels: self.kept_levels(),
            whole_states: self.width > 0,
            gave_up_tree: self.is_anew,
            outgrew_keys: self.outgrew_keys,
            flush_seconds: seconds(&counts.flushing),
            ask_seconds: seconds(&counts.asking),
            merge_seconds: seconds(&counts.merging),
            disk_seconds: self.spill.seconds(),
        }
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        lock(&self.shards[shard])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count_time(count: &AtomicU64, start: Instant) {
    count.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
}

/// May a run of these levels go if the `last` ones are kept and `level` is next? What holds a level whose number is a power
/// of two stays: each of those has a state that none of the others had, so there are only so many of them, and so many
/// levels.
fn may_go([first, end]: [u32; 2], last: u32, level: u32) -> bool {
    let holds_power = first.max(1).checked_next_power_of_two().is_some_and(|power| power <= end);
    end.saturating_add(last) < level && !holds_power
}

#[cfg(test)]
mod tests;
