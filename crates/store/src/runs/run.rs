//! A run: ascending keys of one shard on disk, never changed. In memory it has the first key of each block, so a lookup
//! reads one block, and a filter, so most lookups of what is not there read none.
//!
//! Runs are written from a table, or from several runs that become one. The latter gives back blocks as it reads them, so
//! it takes no disk beside what was there.

use super::block::{self, Block, Head, Place};
use super::filter::RunFilter;
use super::sieve::{Asked, Question};
use super::vectors::{self, Differences, Places};
use crate::budget::Grant;
use crate::disk::{self, Shortage, Slot, Spill, SpillError};
use std::hint::select_unpredictable;
use std::sync::Arc;

/// Bytes of a block: enough to be read at a time, and little to be read for one key.
pub const BLOCK_BYTES: usize = 16 << 10;
/// What a block takes in memory: its first key and its slot. While a run of a table is written its vectors may have twice the room they need.
const FIRST_BYTES: u64 = size_of::<u128>() as u64;
const INDEX_BYTES: u64 = FIRST_BYTES + size_of::<Slot>() as u64;
const GROWING: u64 = 2;
/// Where keys are hashes, vectors take most of a block, and those who ask are seldom there. So the beginning is read by itself, where the keys
/// are, and has a checksum of its own.
const START_BYTES: usize = 4 << 10;
const START_INDEX_BYTES: u64 = size_of::<u32>() as u64;

/// Keys between two looks at whether a block is full.
const KEYS_PER_LOOK: usize = 64;
/// Keys that are taken from a block at a time.
const READ_KEYS: usize = 64;
/// Even the longest keys are so many.
const LEAST_KEYS_PER_BLOCK: u64 = 1000;

#[derive(Debug)]
pub(crate) struct Run {
    spill: Arc<Spill>,
    grant: Grant,
    firsts: Vec<u128>,
    slots: Vec<Slot>,
    /// Checksums of where blocks begin, if keys are hashes.
    starts: Vec<u32>,
    /// Memory for all of them.
    index_bytes: u64,
    keys: u64,
    filter: Option<RunFilter>,
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
    /// Words of the vectors whose hashes the keys are; 0 if keys tell states apart.
    pub width: usize,
}

impl Form {
    /// What is known of a run of all keys of these.
    fn joined(forms: impl Iterator<Item = Form>) -> Option<Form> {
        forms.reduce(|one, other| Form {
            key_bits: one.key_bits.max(other.key_bits),
            common_bits: one.common_bits,
            born: one.born.max(other.born),
            levels: [one.levels[0].min(other.levels[0]), one.levels[1].max(other.levels[1])],
            width: one.width,
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

    pub fn drop_filter(&mut self) {
        self.filter = None;
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
        self.filter.as_ref().map_or(0, |filter| filter.bytes() as u64) + self.index_bytes
    }

    /// Memory for the first keys of blocks and for where those are.
    pub fn index_bytes(&self) -> u64 {
        self.index_bytes
    }

    /// Marks those of the candidates that are here.
    pub fn answer(&self, asked: &Asked) -> Result<Answers, SpillError> {
        if self.form.width > 0 {
            return self.answer_vectors(asked);
        }
        let (mut answers, mut bytes) = (Answers::default(), Vec::new());
        // How many blocks begin with no larger key; one block is in memory.
        let (mut begun, mut loaded, mut head, mut place) = (0, None, Head::default(), Place::default());
        for question in asked.open() {
            let Some(key) = self.sought(&question, &mut answers) else { continue };
            begun = self.blocks_begun(key, begun);
            let Some(number) = begun.checked_sub(1) else { continue };
            if loaded != Some(number) {
                bytes.resize(BLOCK_BYTES, 0);
                self.spill.read(&self.slots[number], &mut bytes)?;
                (loaded, head, place) = (Some(number), Head::of(&bytes), Place::default());
            }
            if head.block(&bytes).contains(key, &mut place) {
                question.mark();
                answers.known += 1;
            }
        }
        Ok(answers)
    }

    /// The key for which blocks must be looked at: not one from before this run, nor one that the filter does not know.
    fn sought(&self, question: &Question, answers: &mut Answers) -> Option<u128> {
        if question.number() < self.form.born {
            return None;
        }
        let key = question.key() << self.form.common_bits >> self.form.common_bits;
        let is_unknown = self.filter.as_ref().is_some_and(|filter| !filter.may_know(key));
        *(if is_unknown { &mut answers.filtered } else { &mut answers.looked_for }) += 1;
        (!is_unknown).then_some(key)
    }

    /// The same where keys are hashes, and one may be in several blocks.
    fn answer_vectors(&self, asked: &Asked) -> Result<Answers, SpillError> {
        let (mut answers, mut bytes, mut places, mut vector) =
            (Answers::default(), vec![0; BLOCK_BYTES], Places::default(), Vec::new());
        let (mut begun, mut loaded, mut head, mut place) = (0, None, Head::default(), Place::default());
        let mut is_whole = false;
        for question in asked.open() {
            let Some(key) = self.sought(&question, &mut answers) else { continue };
            begun = self.blocks_begun(key, begun);
            // The first key of a block may be the last of the one before.
            let first = (0..begun).rev().find(|&number| number == 0 || self.firsts[number] < key);
            for number in first.unwrap_or(begun)..begun {
                if loaded != Some(number) {
                    let (slot, start) = (&self.slots[number], self.starts[number]);
                    self.spill.read_start(slot, start, &mut bytes[..START_BYTES])?;
                    (loaded, head, place, is_whole) = (Some(number), Head::of(&bytes), Place::default(), false);
                }
                let has_keys = head.end() <= START_BYTES;
                if has_keys && !head.block(&bytes).contains(key, &mut place) {
                    continue;
                }
                if !std::mem::replace(&mut is_whole, true) {
                    self.spill.read(&self.slots[number], &mut bytes)?;
                    places.look(&bytes, head.block(&bytes).count(), self.form.width);
                }
                let is_it = |number: usize| {
                    vector.clear();
                    places.read(&bytes, number, &mut vector);
                    vector[..] == *question.vector()
                };
                if head.block(&bytes).matches(key, &mut place, is_it) {
                    question.mark();
                    answers.known += 1;
                    break;
                }
            }
        }
        Ok(answers)
    }

    /// How many blocks begin with no larger key, if at least so many do: in most cases no more, or one or two.
    fn blocks_begun(&self, key: u128, least: usize) -> usize {
        let (mut from, mut step) = (least, 1);
        while self.firsts.get(from + step - 1).is_some_and(|&first| first <= key) {
            from += step;
            step *= 2;
        }
        let end = self.firsts.len().min(from + step - 1);
        from + self.firsts[from..end].partition_point(|&first| first <= key)
    }

    /// Visits all keys in order, without the bits they have in common, and their vectors if they have any.
    pub fn visit<E: From<SpillError>>(&self, mut visit: impl FnMut(u128, &[u32]) -> Result<(), E>) -> Result<(), E> {
        let (mut bytes, mut places, mut vector) = (vec![0; BLOCK_BYTES], Places::default(), Vec::new());
        for slot in &self.slots {
            self.spill.read(slot, &mut bytes)?;
            let block = Block::new(&bytes);
            if self.form.width > 0 {
                places.look(&bytes, block.count(), self.form.width);
            }
            block.keys().enumerate().try_for_each(|(number, key)| {
                vector.clear();
                if self.form.width > 0 {
                    places.read(&bytes, number, &mut vector);
                }
                visit(key, &vector)
            })?;
        }
        Ok(())
    }

    /// Makes a filter for what was written without one, if there is memory for it.
    pub fn add_filter(&mut self, filter_bytes: u64) -> Result<(), SpillError> {
        let Some(mut filter) = RunFilter::new(self.keys, filter_bytes, self.form.common_bits, &self.grant) else {
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

    /// One run of all keys of several, each once; but they stay as they are if there is no memory for its index, or no disk for blocks that are
    /// less full than theirs.
    pub fn merge(mut runs: Vec<Run>, filter_bytes: u64) -> Result<Vec<Run>, Shortage> {
        let Some(form) = Form::joined(runs.iter().map(|run| run.form)) else { return Ok(runs) };
        let (keys, blocks) = (runs.iter().map(Run::keys).sum(), runs.iter().map(|run| run.slots.len()).sum::<usize>());
        let (spill, grant) = (runs[0].spill.clone(), runs[0].grant.clone());
        // Vectors of one block may differ in more bytes than those of either did.
        let places = blocks + 1 + if form.width > 0 { blocks / 8 } else { 0 };
        let reserved = places as u64 * block_index_bytes(form.width);
        if spill.left_bytes()[0] < ((places - blocks) * BLOCK_BYTES) as u64 || !grant.take(reserved) {
            return Ok(runs);
        }
        runs.iter_mut().for_each(Run::drop_filter);
        let mut writer = Writer::new(&spill, &grant, form, keys, filter_bytes).with_places(places);
        let mut readers = Vec::with_capacity(runs.len());
        for run in runs {
            readers.extend(Reader::new(run).map_err(Shortage::Disk)?);
        }
        if form.width > 0 {
            return Ok(merge_vectors(readers, writer)?.into_iter().collect());
        }
        let mut heads = Vec::with_capacity(readers.len());
        while let Some(safe) = readers.iter().map(Reader::ready).min() {
            heads.clear();
            heads.extend(readers.iter().map(Reader::head));
            // Nobody comes to the end of what it has ready. Which key is the least cannot be foreseen, so no branch depends on it.
            for _ in 0..safe {
                let least =
                    heads[1..].iter().fold(heads[0], |least, &head| select_unpredictable(head < least, head, least));
                writer.push(least)?;
                for (head, reader) in heads.iter_mut().zip(&mut readers) {
                    reader.next += (*head == least) as usize;
                    *head = reader.keys.get(reader.next).copied().unwrap_or(least);
                }
            }
            let mut number = 0;
            while let Some(reader) = readers.get_mut(number) {
                if reader.ready() == 0 && !reader.read_more().map_err(Shortage::Disk)? {
                    readers.swap_remove(number);
                } else {
                    number += 1;
                }
            }
        }
        Ok(writer.finish()?.into_iter().collect())
    }
}

/// Memory for the index of a run of so many keys while it is written, at most; keys are hashes of so many words, or tell states apart.
pub(crate) fn index_bytes(keys: u64, width: usize) -> u64 {
    let least_keys = match width {
        0 => LEAST_KEYS_PER_BLOCK,
        width => (BLOCK_BYTES / (width * 4 + size_of::<u64>())) as u64,
    };
    (keys / least_keys + 1) * GROWING * block_index_bytes(width)
}

/// What a block takes in memory.
fn block_index_bytes(width: usize) -> u64 {
    INDEX_BYTES + if width > 0 { START_INDEX_BYTES } else { 0 }
}

/// One run of several whose keys are hashes: equal ones are in the order of their vectors.
fn merge_vectors(mut readers: Vec<Reader>, mut writer: Writer) -> Result<Option<Run>, Shortage> {
    let mut vector = Vec::new();
    while let Some(least) = (0..readers.len()).min_by_key(|&number| readers[number].head()) {
        // Hardly a key is in two runs, and most of them are in the largest: so vectors are not compared, and as many are taken as come in a row.
        let others = readers.iter().enumerate().filter(|&(number, _)| number != least);
        let next = others.map(|(_, reader)| reader.head()).min();
        let is_before = |key: u128| next.is_none_or(|next| key < next);
        let first = &mut readers[least];
        let (mut is_open, mut is_first) = (true, is_before(first.head()));
        let in_a_row = is_first;
        while is_first {
            writer.push_vector(first.head(), first.vector())?;
            is_open = first.advance().map_err(Shortage::Disk)?;
            is_first = is_open && is_before(first.head());
        }
        if !is_open {
            readers.swap_remove(least);
        }
        if in_a_row {
            continue;
        }
        let key = readers[least].head();
        let same = readers.iter().filter(|reader| reader.head() == key);
        vector.clear();
        vector.extend_from_slice(same.map(Reader::vector).min().expect("there is a least one"));
        writer.push_vector(key, &vector)?;
        let mut number = 0;
        while let Some(reader) = readers.get_mut(number) {
            let is_least = reader.head() == key && reader.vector() == vector;
            if is_least && !reader.advance().map_err(Shortage::Disk)? {
                readers.swap_remove(number);
            } else {
                number += 1;
            }
        }
    }
    writer.finish()
}

impl Drop for Run {
    fn drop(&mut self) {
        self.grant.give_back(self.index_bytes);
        self.slots.drain(..).for_each(|slot| self.spill.release(slot));
    }
}

/// Reads a run from its beginning to its end, once.
pub(crate) struct Reader {
    run: Run,
    slots: std::vec::IntoIter<Slot>,
    bytes: Vec<u8>,
    place: Place,
    /// Keys that were read from the block, and which of them is next.
    keys: Vec<u128>,
    next: usize,
    /// Vectors of those keys, if they have any, and how many of the block came before.
    vectors: Vec<u32>,
    places: Places,
    before: usize,
}

impl Reader {
    /// A reader at the first key; none if there is no key.
    pub fn new(mut run: Run) -> Result<Option<Reader>, SpillError> {
        // Nobody looks for anything in it any more, and what it becomes has first keys too.
        let firsts = std::mem::take(&mut run.firsts).len() as u64 * FIRST_BYTES;
        run.index_bytes -= firsts;
        run.grant.give_back(firsts);
        let slots = std::mem::take(&mut run.slots).into_iter();
        let (bytes, keys) = (vec![0; BLOCK_BYTES], Vec::with_capacity(READ_KEYS));
        let (vectors, places) = (Vec::new(), Places::default());
        let place = Place::default();
        let mut reader = Reader { run, slots, bytes, place, keys, next: 0, vectors, places, before: 0 };
        Ok(if reader.read_block()? { Some(reader) } else { None })
    }

    /// The next key.
    #[inline(always)]
    pub fn head(&self) -> u128 {
        self.keys[self.next]
    }

    /// How many keys were read from the block and are to come.
    fn ready(&self) -> usize {
        self.keys.len() - self.next
    }

    /// The vector of that key.
    fn vector(&self) -> &[u32] {
        let width = self.run.form.width;
        &self.vectors[self.next * width..][..width]
    }

    /// Goes on to the next key; false at the end.
    #[inline(always)]
    pub fn advance(&mut self) -> Result<bool, SpillError> {
        self.next += 1;
        if self.ready() > 0 { Ok(true) } else { self.read_more() }
    }

    /// Reads more keys; false at the end.
    fn read_more(&mut self) -> Result<bool, SpillError> {
        self.read_keys();
        if self.ready() > 0 { Ok(true) } else { self.read_block() }
    }

    fn read_block(&mut self) -> Result<bool, SpillError> {
        let Some(slot) = self.slots.next() else { return Ok(false) };
        let read = self.run.spill.read(&slot, &mut self.bytes);
        self.run.spill.release(slot);
        read?;
        (self.place, self.before) = (Place::default(), 0);
        if self.run.form.width > 0 {
            self.places.look(&self.bytes, Block::new(&self.bytes).count(), self.run.form.width);
        }
        self.read_keys();
        Ok(true)
    }

    /// Takes the next keys from the block, and their vectors.
    fn read_keys(&mut self) {
        self.next = 0;
        Block::new(&self.bytes).read(&mut self.place, READ_KEYS, &mut self.keys);
        if self.run.form.width > 0 {
            self.vectors.clear();
            for number in self.before..self.before + self.keys.len() {
                self.places.read(&self.bytes, number, &mut self.vectors);
            }
            self.before += self.keys.len();
        }
    }
}

/// Writes a run, key by key.
pub(crate) struct Writer {
    run: Run,
    /// Keys that were not written yet, and their vectors if they have any.
    pending: Vec<u128>,
    vectors: Vec<u32>,
    differences: Differences,
    bytes: Vec<u8>,
    /// Blocks for which the index has memory.
    places: usize,
}

impl Writer {
    /// A run of at most so many `keys`, whose filter may have so many bytes if there is memory for it.
    pub fn new(spill: &Arc<Spill>, grant: &Grant, form: Form, keys: u64, filter_bytes: u64) -> Writer {
        // What is left must do for the index.
        let affordable = grant.left_bytes().saturating_sub(index_bytes(keys, form.width)) / 2 > filter_bytes;
        let filter = || RunFilter::new(keys, filter_bytes, form.common_bits, grant);
        let filter = if affordable { filter() } else { None };
        let (spill, grant) = (spill.clone(), grant.clone());
        let (firsts, slots, starts) = (Vec::new(), Vec::new(), Vec::new());
        let run = Run { spill, grant, firsts, slots, starts, index_bytes: 0, keys: 0, filter, form };
        let (pending, vectors, differences) = (Vec::new(), Vec::new(), Differences::default());
        Writer { run, pending, vectors, differences, bytes: vec![0; BLOCK_BYTES], places: 0 }
    }

    /// The same with an index for so many blocks, for which memory was taken.
    fn with_places(mut self, blocks: usize) -> Writer {
        self.run.firsts.reserve_exact(blocks);
        self.run.slots.reserve_exact(blocks);
        self.run.starts.reserve_exact(if self.run.form.width > 0 { blocks } else { 0 });
        (self.places, self.run.index_bytes) = (blocks, blocks as u64 * block_index_bytes(self.run.form.width));
        self
    }

    /// Adds a key that is the hash of a vector; equal keys come in the order of their vectors.
    pub fn push_vector(&mut self, key: u128, vector: &[u32]) -> Result<(), Shortage> {
        self.vectors.extend_from_slice(vector);
        self.differences.add(vector);
        self.push(key)
    }

    /// Adds a key, which is larger than those before it.
    #[inline(always)]
    pub fn push(&mut self, key: u128) -> Result<(), Shortage> {
        self.pending.push(key);
        if let Some(filter) = &mut self.run.filter {
            filter.add(key);
        }
        if self.pending.len().is_multiple_of(KEYS_PER_LOOK) { self.write_full() } else { Ok(()) }
    }

    /// The run; none if no key came.
    pub fn finish(mut self) -> Result<Option<Run>, Shortage> {
        self.write_full()?;
        if !self.pending.is_empty() {
            self.write_block(self.pending.len())?;
        }
        let run = &mut self.run;
        run.firsts.shrink_to_fit();
        run.slots.shrink_to_fit();
        run.starts.shrink_to_fit();
        let spare = run.index_bytes - run.slots.len() as u64 * block_index_bytes(run.form.width);
        run.index_bytes -= spare;
        run.grant.give_back(spare);
        Ok(Some(self.run).filter(|run| run.keys > 0))
    }

    /// Writes what does not fit into one block any more, as far as it fills blocks.
    fn write_full(&mut self) -> Result<(), Shortage> {
        loop {
            let [beside, common] = match self.run.form.width {
                0 => [0, 0],
                width => self.differences.sizes(width),
            };
            let (shift, room) = (u128::BITS - self.run.form.key_bits, BLOCK_BYTES - common);
            let count = block::fitting(&self.pending, shift, room, beside);
            if count == self.pending.len() {
                return Ok(());
            }
            self.write_block(count)?;
        }
    }

    /// Writes the first `count` keys.
    fn write_block(&mut self, count: usize) -> Result<(), Shortage> {
        let Writer { run, pending, vectors, differences, bytes, places } = self;
        block::encode(&pending[..count], u128::BITS - run.form.key_bits, bytes);
        let width = run.form.width;
        if width > 0 {
            vectors::encode(&vectors[..count * width], width, bytes);
            vectors.drain(..count * width);
            differences.clear();
            vectors.chunks_exact(width).for_each(|vector| differences.add(vector));
        }
        if run.slots.len() >= *places {
            // Where there were places all of them move.
            let moved = if run.slots.len() == *places { *places as u64 } else { 0 };
            let growing = (GROWING + moved) * block_index_bytes(width);
            if !run.grant.take(growing) {
                return Err(Shortage::Memory);
            }
            run.index_bytes += growing;
        }
        run.firsts.push(pending[0]);
        if width > 0 {
            run.starts.push(disk::checksum(&bytes[..START_BYTES]));
        }
        run.slots.push(run.spill.put(bytes).map_err(Shortage::Disk)?);
        run.keys += count as u64;
        pending.drain(..count);
        Ok(())
    }
}
