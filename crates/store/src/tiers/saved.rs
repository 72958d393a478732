//! What exact tiers write to a checkpoint, and how they are made again from it: with as many shards as they have then, for
//! a key tells its shard.
//!
//! Where keys are on disk too, some may be written several times: in tables, and in runs. Who reads takes each once, and has
//! keys leave for the disk again as memory fills up. Candidates cannot be written: that waits until the runs were asked.
//!
//! A search that ran out in the middle of a block has states in its store that were not numbered. They are written twice,
//! and first as such: who reads leaves them out, and they are found again. So writing needs no memory for them.

use super::{Block, Entry, Table, Tiers, lock, own};
use crate::batch::shard_of;
use crate::budget::{Full, Grant};
use crate::codec::Coder;
use crate::hash;
use crate::intern::Intern;
use crate::packed::Packed;
use crate::packing::Packing;
use crate::runs::Layers;
use crate::sample::Sample;
use crate::stream::{Unloaded, put_number, put_words, take_below, take_number};
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};

/// What a record in a set of records takes beside its bytes, about.
const RECORD_BYTES: usize = 48;
/// How far the states of a shard may exceed the mean before its table must grow, in standard deviations.
const DEVIATIONS: f64 = 4.0;

impl Tiers {
    /// Can they be written? Not if anything is forgotten, and not while candidates wait.
    pub fn can_be_saved(&self) -> bool {
        let exact = |table: &Table| matches!(table, Table::Packed(_) | Table::Vectors(_));
        let tables = self.shards.iter().map(lock).all(|shard| exact(&shard.last) && shard.next.is_none());
        tables && self.is_whole() && self.layers().is_none_or(Layers::is_settled)
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// How many states are kept to learn from them.
    pub fn sampled(&self) -> usize {
        self.sample.as_ref().map_or(0, Sample::len)
    }

    /// Writes all states, but for those that were entered with blocks whose states were not all numbered; there were so many
    /// `sampled` before that.
    pub fn save(&self, unnumbered: &[(Block, &Entry)], sampled: usize, out: &mut dyn Write) -> io::Result<()> {
        match &self.sample {
            Some(sample) => {
                put_number(out, 1)?;
                sample.save(sampled, out)?;
            }
            None => put_number(out, 0)?,
        }
        let key_bytes = self.key_bits.load(Ordering::Relaxed).div_ceil(8) as usize;
        put_number(out, key_bytes as u64)?;
        let orphans = || unnumbered.iter().map(|(block, entry)| (*block, &entry.states));
        let count = orphans().map(|(_, states)| states.fresh_of(0..states.len()) as u64).sum();
        put_number(out, count)?;
        for (block, states) in orphans() {
            for at in (0..states.len()).filter(|&at| states.fresh_of(at..at + 1) == 1) {
                match key_bytes {
                    0 => put_words(out, block.state(states.positions(at..at + 1)[0] as usize).iter().copied())?,
                    _ => out.write_all(&states.run(at..at + 1).key(0).to_be_bytes()[..key_bytes])?,
                }
            }
        }
        let tables = self.shards.iter().map(|shard| lock(shard).held().0 as u64).sum::<u64>();
        put_number(out, self.defers() as u64)?;
        put_number(out, tables + self.layers().map_or(0, Layers::keys))?;
        let common = |shard: usize| (shard as u128).checked_shl(u128::BITS - self.shard_bits).unwrap_or(0);
        let word = |word: &AtomicU32| word.load(Ordering::Relaxed);
        for (number, shard) in self.shards.iter().enumerate() {
            let shard = lock(shard);
            let vectors = shard.older.iter().flat_map(Intern::iter);
            vectors.map(|(_, vector)| vector).try_for_each(|vector| put_words(out, vector.iter().map(word)))?;
            let mut write = |key: u128| out.write_all(&(key | common(number)).to_be_bytes()[..key_bytes]);
            shard.frozen.iter().try_for_each(|table| visit_all(table, &mut write))?;
            match &shard.last {
                Table::Packed(table) => visit_all(table, write)?,
                Table::Vectors(table) => {
                    table.iter().try_for_each(|(_, vector)| put_words(out, vector.iter().map(word)))?;
                }
                _ => return Err(io::Error::other("what forgets states is not written")),
            }
        }
        let write = |shard: usize, key: u128, vector: &[u32]| match key_bytes {
            0 => put_words(out, vector.iter().copied()),
            _ => out.write_all(&(key | common(shard)).to_be_bytes()[..key_bytes]),
        };
        self.layers().map_or(Ok(()), |layers| layers.visit(write))
    }

    /// Makes tiers again, in 2^`shard_bits` shards, from what others have written whose keys `coder` computed, or which were `packed` while
    /// `coder` takes states as they are; these must be empty. Says how many states there are, unless some were written several times.
    pub fn load(
        &mut self,
        coder: &Coder,
        packed: Option<&Packing>,
        shard_bits: u32,
        from: &mut dyn Read,
    ) -> Result<Option<u64>, Unloaded> {
        let sampled = take_below(from, 1, "samples")? == 1;
        match (sampled, self.sample.as_mut()) {
            (true, None) => return Err(Unloaded::damaged("there is a sample, and nothing to learn")),
            (true, Some(sample)) => {
                let all_kept = sample.load(from)?;
                self.sample = self.sample.take().filter(|_| all_kept);
            }
            (false, _) => self.sample = None,
        }
        // It may have chosen others than those with which this one begins.
        self.suit_ladder(coder);
        let key_bits = coder.key_bits();
        *self.key_bits.get_mut() = key_bits;
        let bytes = take_below(from, size_of::<u128>(), "bytes in a key")?;
        let key_bits = packed.map_or(key_bits, Packing::key_bits);
        if bytes > key_bits.div_ceil(8) as usize || (bytes == 0) != (key_bits == 0) {
            return Err(Unloaded::damaged("keys are of another kind"));
        }
        let record_bytes = if bytes == 0 { coder.width() * 4 } else { bytes };
        self.shards = super::exact_shards(coder, shard_bits, self.density, &self.arena, &self.grant)?;
        self.shard_bits = shard_bits;
        if let (Coder::Plain { width }, Some(layers)) = (coder, self.layers_mut()) {
            layers.hash(*width);
        }
        let mut record = vec![0; record_bytes];
        let (mut orphans, count) = (HashSet::new(), take_number(from)?);
        let charged = count.saturating_mul((record_bytes + RECORD_BYTES) as u64);
        if !self.grant.take(charged) {
            return Err(Unloaded::Memory);
        }
        let loaded = (0..count).try_for_each(|_| {
            from.read_exact(&mut record)?;
            orphans.insert(record.clone());
            Ok(())
        });
        let loaded = loaded.and_then(|()| self.load_records(&mut record, (coder, packed), &mut orphans, from));
        self.grant.give_back(charged);
        match loaded {
            Ok(_) if !orphans.is_empty() => Err(Unloaded::damaged("states are missing")),
            loaded => loaded,
        }
    }

    fn load_records(
        &mut self,
        record: &mut [u8],
        (coder, packed): (&Coder, Option<&Packing>),
        orphans: &mut HashSet<Vec<u8>>,
        from: &mut dyn Read,
    ) -> Result<Option<u64>, Unloaded> {
        let (repeats, count) = (take_below(from, 1, "kinds of keys")? == 1, take_number(from)?);
        let states = count.saturating_sub(orphans.len() as u64);
        let mut left = count;
        // Reads the next record, and puts the words of its state behind others where states are taken as they are.
        let mut next = |record: &mut [u8], words: &mut Vec<u32>| -> Result<bool, Unloaded> {
            while left > 0 {
                left -= 1;
                from.read_exact(record)?;
                if !orphans.is_empty() && orphans.remove(record) {
                    continue;
                }
                match packed {
                    Some(packing) => packing.decode_whole(key_of(record), words),
                    None if coder.key_bits() > 0 => {}
                    None => words.extend(record.chunks_exact(4).map(word_of)),
                }
                return Ok(true);
            }
            Ok(false)
        };
        if let Err(full) = self.make_room(states) {
            if self.below.is_none() {
                return Err(full.into());
            }
            if self.holds_vectors() {
                self.begin_disk(coder)?;
                let layers = self.layers_mut().expect("there is a disk");
                layers.write_states(coder.width(), |words| next(record, words))?;
                return Ok((!repeats).then_some(states));
            }
        }
        let mut words = Vec::new();
        while next(record, &mut words)? {
            let is_new = match self.put_back(record, &words) {
                Err(Full) => {
                    self.leave_for_disk(coder)?;
                    self.put_back(record, &words)?
                }
                Ok(is_new) => is_new,
            };
            if !is_new && !repeats {
                return Err(Unloaded::damaged("a state was there twice"));
            }
            words.clear();
        }
        Ok((!repeats).then_some(states))
    }

    /// Makes room for so many states, spread evenly: so tables need not grow, which would take more.
    fn make_room(&mut self, states: u64) -> Result<(), Full> {
        let (mean, key_bits) = (states as f64 / self.shards.len() as f64, *self.key_bits.get_mut());
        let part = if self.shard_bits == 0 { mean } else { mean + DEVIATIONS * mean.sqrt() } as usize;
        self.shards.iter_mut().try_for_each(|shard| match &mut own(shard).last {
            Table::Packed(packed) => packed.reserve(part, key_bits),
            Table::Vectors(table) => table.make_room(part),
            Table::Coded(_) | Table::Filter(_) | Table::Ways(_) | Table::Cache(_) | Table::Levels(_) => Ok(()),
        })
    }

    /// Writes all tables to disk, if there is one and they have anything.
    fn leave_for_disk(&mut self, coder: &Coder) -> Result<(), Unloaded> {
        if self.below.is_none() || self.held().0 == 0 {
            return Err(Unloaded::Memory);
        }
        self.begin_disk(coder)
    }

    fn begin_disk(&mut self, coder: &Coder) -> Result<(), Unloaded> {
        self.begin_flush(coder, 0, true);
        (0..self.shards.len()).try_for_each(|shard| self.flush(shard))?;
        Ok(self.end_flush(coder)?)
    }

    /// Puts one record where it belongs, or the words of a state as it is; false if it was there.
    fn put_back(&mut self, record: &[u8], words: &[u32]) -> Result<bool, Full> {
        let key_bits = *self.key_bits.get_mut();
        let hash = match key_bits {
            0 => hash::words(words),
            _ => (key_of(record) >> 64) as u64,
        };
        Ok(match &mut own(&mut self.shards[shard_of(hash, self.shard_bits)]).last {
            Table::Packed(packed) => {
                packed.reserve(1, key_bits)?;
                packed.insert_one(key_of(record))
            }
            Table::Vectors(table) => {
                table.reserve(1)?;
                table.intern(words, hash)?.1
            }
            Table::Coded(_) | Table::Filter(_) | Table::Ways(_) | Table::Cache(_) | Table::Levels(_) => {
                unreachable!("the shards were made for this")
            }
        })
    }
}

/// Visits all keys of a table until something fails.
fn visit_all(table: &Packed, mut visit: impl FnMut(u128) -> io::Result<()>) -> io::Result<()> {
    let mut done = Ok(());
    table.visit(|key| {
        if done.is_ok() {
            done = visit(key);
        }
    });
    done
}

fn word_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

/// The key that begins with these bytes and ends with zeros.
fn key_of(record: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    bytes[..record.len()].copy_from_slice(record);
    u128::from_be_bytes(bytes)
}
