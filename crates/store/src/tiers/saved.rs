//! What exact tiers write to a checkpoint, and how they are made again from it: with as many shards as they have then, for
//! a key tells its shard.
//!
//! A search that ran out in the middle of a block has states in its store that were not numbered. They are written twice,
//! and first as such: who reads leaves them out, and they are found again. So writing needs no memory for them.

use super::{Block, Entry, Shard, Table, Tiers, lock, own};
use crate::batch::shard_of;
use crate::budget::Grant;
use crate::codec::Coder;
use crate::hash;
use crate::sample::Sample;
use crate::stream::{Unloaded, put_number, put_words, take_below, take_number};
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a record in a set of records takes beside its bytes, about.
const RECORD_BYTES: usize = 48;
/// How far the states of a shard may exceed the mean before its table must grow, in standard deviations.
const DEVIATIONS: f64 = 4.0;

impl Tiers {
    /// Can they be written? Not if anything is forgotten, or frozen.
    pub fn can_be_saved(&self) -> bool {
        self.shards.iter().map(lock).all(|shard| {
            let exact = matches!(shard.last, Table::Packed(_) | Table::Vectors(_));
            exact && shard.frozen.is_empty() && shard.next.is_none()
        })
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
        put_number(out, self.shards.iter().map(|shard| lock(shard).last.len() as u64).sum())?;
        for (number, shard) in self.shards.iter().enumerate() {
            let common = (number as u128).checked_shl(u128::BITS - self.shard_bits).unwrap_or(0);
            lock(shard).last.save(common, key_bytes, out)?;
        }
        Ok(())
    }

    /// Makes tiers again, in 2^`shard_bits` shards, from what others have written whose keys `coder` computed, and which had
    /// none of these states. These tiers must be empty.
    pub fn load(&mut self, coder: &Coder, shard_bits: u32, from: &mut dyn Read) -> Result<(), Unloaded> {
        let sampled = take_below(from, 1, "samples")? == 1;
        match (sampled, self.sample.as_mut()) {
            (true, None) => return Err(Unloaded::damaged("there is a sample, and nothing to learn")),
            (true, Some(sample)) => {
                let all_kept = sample.load(from)?;
                self.sample = self.sample.take().filter(|_| all_kept);
            }
            (false, _) => self.sample = None,
        }
        self.look_at(coder);
        let key_bits = *self.key_bits.get_mut();
        let bytes = take_below(from, size_of::<u128>(), "bytes in a key")?;
        if bytes > key_bits.div_ceil(8) as usize || (bytes == 0) != (key_bits == 0) {
            return Err(Unloaded::damaged("keys are of another kind"));
        }
        let record_bytes = if bytes == 0 { coder.width() * 4 } else { bytes };
        self.shards = super::exact_shards(coder, shard_bits, &self.arena, &self.grant)?;
        self.shard_bits = shard_bits;
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
        let loaded = loaded.and_then(|()| self.load_records(&mut record, key_bits, &mut orphans, from));
        self.grant.give_back(charged);
        match loaded {
            Ok(()) if !orphans.is_empty() => Err(Unloaded::damaged("states are missing")),
            loaded => loaded,
        }
    }

    fn load_records(
        &mut self,
        record: &mut [u8],
        key_bits: u32,
        orphans: &mut HashSet<Vec<u8>>,
        from: &mut dyn Read,
    ) -> Result<(), Unloaded> {
        let (count, shard_bits) = (take_number(from)?, self.shard_bits);
        let mean = count.saturating_sub(orphans.len() as u64) as f64 / self.shards.len() as f64;
        let part = if shard_bits == 0 { mean } else { mean + DEVIATIONS * mean.sqrt() } as usize;
        for shard in &mut self.shards {
            match &mut own(shard).last {
                Table::Packed(packed) => packed.reserve(part, key_bits)?,
                Table::Vectors(table) => table.make_room(part)?,
                Table::Ways(_) | Table::Cache(_) | Table::Filter(_) | Table::Coded(_) => {}
            }
        }
        let mut words = vec![0; record.len() / 4];
        for _ in 0..count {
            from.read_exact(record)?;
            if !orphans.is_empty() && orphans.remove(record) {
                continue;
            }
            if !put_back(&mut self.shards, shard_bits, key_bits, record, &mut words)? {
                return Err(Unloaded::damaged("a state was there twice"));
            }
        }
        Ok(())
    }
}

impl Table {
    /// Writes all keys, with the bits that they have in common, or all vectors.
    fn save(&self, common: u128, key_bytes: usize, out: &mut dyn Write) -> io::Result<()> {
        let mut written = Ok(());
        match self {
            Table::Packed(packed) => packed.visit(|key| {
                if written.is_ok() {
                    written = out.write_all(&(key | common).to_be_bytes()[..key_bytes]);
                }
            }),
            Table::Vectors(table) => {
                let word = |word: &AtomicU32| word.load(Ordering::Relaxed);
                written = table.iter().try_for_each(|(_, vector)| put_words(out, vector.iter().map(word)));
            }
            Table::Ways(_) | Table::Cache(_) | Table::Filter(_) | Table::Coded(_) => {
                written = Err(io::Error::other("only states and keys of one length are written"))
            }
        }
        written
    }
}

/// Puts one record where it belongs; false if it was there.
fn put_back(
    shards: &mut [Mutex<Shard>],
    shard_bits: u32,
    key_bits: u32,
    record: &[u8],
    words: &mut [u32],
) -> Result<bool, Unloaded> {
    let hash = match key_bits {
        0 => {
            for (word, bytes) in words.iter_mut().zip(record.chunks_exact(4)) {
                *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            }
            hash::words(words)
        }
        _ => (key_of(record) >> 64) as u64,
    };
    Ok(match &mut own(&mut shards[shard_of(hash, shard_bits)]).last {
        Table::Packed(packed) => {
            packed.reserve(1, key_bits)?;
            packed.insert_one(key_of(record))
        }
        Table::Vectors(table) => {
            table.reserve(1)?;
            table.intern(words, hash)?.1
        }
        Table::Ways(_) | Table::Cache(_) | Table::Filter(_) | Table::Coded(_) => {
            unreachable!("the shards were just made, and they are exact")
        }
    })
}

/// The key that begins with these bytes and ends with zeros.
fn key_of(record: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    bytes[..record.len()].copy_from_slice(record);
    u128::from_be_bytes(bytes)
}
