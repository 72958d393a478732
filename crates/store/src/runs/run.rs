//! A run: ascending keys of one shard on disk, never changed. In memory it has the first key of each block, so a lookup
//! reads one block, and a filter, so most lookups of what is not there read none.
//!
//! Runs are written from a table, or from several runs that become one. The latter gives back blocks as it reads them, so
//! it takes no disk beside what was there.

use super::block::{self, Block, Fit, Place};
use super::filter::Filter;
use super::sieve::Asked;
use crate::budget::Grant;
use crate::disk::{Shortage, Slot, Spill, SpillError};
use std::io;
use std::sync::Arc;

/// Bytes of a block: enough to be read at a time, and little to be read for one key.
pub const BLOCK_BYTES: usize = 16 << 10;
/// What a block takes in memory: its first key and its slot, in vectors that may have twice the room they need.
const INDEX_BYTES: u64 = 2 * (16 + 8);

/// Even the longest keys are so many.
const LEAST_KEYS_PER_BLOCK: u64 = 1000;

#[derive(Debug)]
pub(crate) struct Run {
    spill: Arc<Spill>,
    grant: Grant,
    firsts: Vec<u128>,
    slots: Vec<Slot>,
    keys: u64,
    filter: Option<Filter>,
    form: Form,
}

/// What is known of a run before it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub key_bits: u32,
    /// Leading bits that are the same in all keys, and left out.
    pub common_bits: u32,
    /// How many candidates there were: the run answers for those that come later.
    pub born: u64,
    /// The levels of its keys, first and last.
    pub levels: [u32; 2],
}

impl Form {
    /// What is known of a run of all keys of these.
    fn joined(forms: impl Iterator<Item = Form>) -> Option<Form> {
        forms.reduce(|one, other| Form {
            key_bits: one.key_bits.max(other.key_bits),
            common_bits: one.common_bits,
            born: one.born.max(other.born),
            levels: [one.levels[0].min(other.levels[0]), one.levels[1].max(other.levels[1])],
        })
    }
}

/// What became of the keys that a run was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Those that the filter did not know, those that were looked for on disk, and those that were there.
    pub filtered: u64,
    pub looked_for: u64,
    pub known: u64,
}

impl Run {
    pub fn keys(&self) -> u64 {
        self.keys
    }

    pub fn levels(&self) -> [u32; 2] {
        self.form.levels
    }

    pub fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// From now on it answers for every candidate.
    pub fn settle(&mut self) {
        self.form.born = 0;
    }

    pub fn disk_bytes(&self) -> u64 {
        (self.slots.len() * BLOCK_BYTES) as u64
    }

    /// Memory for filter and index.
    pub fn bytes(&self) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.bytes() as u64) + self.slots.len() as u64 * INDEX_BYTES
    }

    /// Marks those of the candidates that are here.
    pub fn answer(&self, asked: &Asked) -> Result<Answers, SpillError> {
        let (mut answers, mut bytes, mut place) = (Answers::default(), Vec::new(), Place::default());
        // How many blocks begin with no larger key; one block is in memory.
        let (mut begun, mut loaded) = (0, None);
        for item in asked.items() {
            if asked.number(item) < self.form.born || asked.is_known(item) {
                continue;
            }
            let key = asked.key(item) << self.form.common_bits >> self.form.common_bits;
            if self.filter.as_ref().is_some_and(|filter| !filter.may_know(key)) {
                answers.filtered += 1;
                continue;
            }
            begun += self.firsts[begun..].partition_point(|&first| first <= key);
            answers.looked_for += 1;
            let Some(number) = begun.checked_sub(1) else { continue };
            if loaded != Some(number) {
                bytes.resize(BLOCK_BYTES, 0);
                self.spill.read(&self.slots[number], &mut bytes)?;
                (loaded, place) = (Some(number), Place::default());
            }
            if Block::new(&bytes).contains(key, &mut place) {
                asked.mark(item);
                answers.known += 1;
            }
        }
        Ok(answers)
    }

    /// Visits all keys in order, without the bits they have in common.
    pub fn visit(&self, mut visit: impl FnMut(u128) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = vec![0; BLOCK_BYTES];
        for slot in &self.slots {
            self.spill.read(slot, &mut bytes)?;
            Block::new(&bytes).keys().try_for_each(&mut visit)?;
        }
        Ok(())
    }

    /// Makes a filter for what was written without one, if there is memory for it.
    pub fn add_filter(&mut self, filter_bytes: u64) -> Result<(), SpillError> {
        let Some(mut filter) = Filter::new(self.keys, filter_bytes, self.form.common_bits, &self.grant) else {
            return Ok(());
        };
        let mut bytes = vec![0; BLOCK_BYTES];
        for slot in &self.slots {
            self.spill.read(slot, &mut bytes)?;
            Block::new(&bytes).keys().for_each(|key| filter.add(key));
        }
        self.filter = Some(filter);
        Ok(())
    }

    /// One run of all keys of several, each once.
    pub fn merge(mut runs: Vec<Run>, filter_bytes: u64) -> Result<Option<Run>, Shortage> {
        let Some(form) = Form::joined(runs.iter().map(|run| run.form)) else { return Ok(None) };
        let keys = runs.iter().map(Run::keys).sum();
        runs.iter_mut().for_each(|run| run.filter = None);
        let (spill, grant) = (runs[0].spill.clone(), runs[0].grant.clone());
        let mut readers: Vec<Reader> = runs.into_iter().map(Reader::new).collect();
        let mut writer = Writer::new(&spill, &grant, form, keys, filter_bytes);
        let mut heads = Vec::with_capacity(readers.len());
        for reader in &mut readers {
            heads.push(reader.next().map_err(Shortage::Disk)?);
        }
        while let Some(least) = heads.iter().flatten().min().copied() {
            writer.push(least)?;
            for (head, reader) in heads.iter_mut().zip(&mut readers) {
                if *head == Some(least) {
                    *head = reader.next().map_err(Shortage::Disk)?;
                }
            }
        }
        writer.finish()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.grant.give_back(self.firsts.len() as u64 * INDEX_BYTES);
        self.slots.drain(..).for_each(|slot| self.spill.release(slot));
    }
}

/// Reads a run from its beginning to its end, once.
struct Reader {
    run: Run,
    slots: std::vec::IntoIter<Slot>,
    bytes: Vec<u8>,
    place: Option<Place>,
}

impl Reader {
    fn new(mut run: Run) -> Reader {
        let slots = std::mem::take(&mut run.slots).into_iter();
        Reader { run, slots, bytes: vec![0; BLOCK_BYTES], place: None }
    }

    fn next(&mut self) -> Result<Option<u128>, SpillError> {
        loop {
            if let Some(place) = &mut self.place
                && let Some(key) = Block::new(&self.bytes).next(place)
            {
                return Ok(Some(key));
            }
            let Some(slot) = self.slots.next() else { return Ok(None) };
            self.run.spill.read(&slot, &mut self.bytes)?;
            self.run.spill.release(slot);
            self.place = Some(Place::default());
        }
    }
}

/// Writes a run, key by key.
pub(crate) struct Writer {
    run: Run,
    fit: Fit,
    pending: Vec<u128>,
    bytes: Vec<u8>,
}

impl Writer {
    /// A run of at most so many `keys`, whose filter may have so many bytes if there is memory for it.
    pub fn new(spill: &Arc<Spill>, grant: &Grant, form: Form, keys: u64, filter_bytes: u64) -> Writer {
        // What is left must do for the index.
        let index = keys / LEAST_KEYS_PER_BLOCK * INDEX_BYTES + INDEX_BYTES;
        let affordable = grant.left_bytes().saturating_sub(index) / 2 > filter_bytes;
        let filter = || Filter::new(keys, filter_bytes, form.common_bits, grant);
        let filter = if affordable { filter() } else { None };
        let (spill, grant) = (spill.clone(), grant.clone());
        let fit = Fit::new(u128::BITS - form.key_bits, BLOCK_BYTES);
        let run = Run { spill, grant, firsts: Vec::new(), slots: Vec::new(), keys: 0, filter, form };
        Writer { run, fit, pending: Vec::new(), bytes: vec![0; BLOCK_BYTES] }
    }

    /// Adds a key, which is larger than those before it.
    pub fn push(&mut self, key: u128) -> Result<(), Shortage> {
        if !self.fit.takes(key) {
            self.write_block()?;
            self.fit.takes(key);
        }
        self.pending.push(key);
        if let Some(filter) = &mut self.run.filter {
            filter.add(key);
        }
        Ok(())
    }

    /// The run; none if no key came.
    pub fn finish(mut self) -> Result<Option<Run>, Shortage> {
        if !self.pending.is_empty() {
            self.write_block()?;
        }
        Ok(Some(self.run).filter(|run| run.keys > 0))
    }

    fn write_block(&mut self) -> Result<(), Shortage> {
        let Writer { run, fit, pending, bytes } = self;
        block::encode(pending, u128::BITS - run.form.key_bits, bytes);
        if !run.grant.take(INDEX_BYTES) {
            return Err(Shortage::Memory);
        }
        run.firsts.push(pending[0]);
        run.slots.push(run.spill.put(bytes).map_err(Shortage::Disk)?);
        run.keys += pending.len() as u64;
        pending.clear();
        fit.clear();
        Ok(())
    }
}
