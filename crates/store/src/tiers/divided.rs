//! One shard becomes many: what a table holds goes where its leading bits tell.

use super::coded::Coded;
use super::{Shard, Table, Tiers, exact_shards, lossy, own};
use crate::batch::shard_of;
use crate::budget::Full;
use crate::codec::Coder;
use crate::hash;
use crate::intern::Intern;
use crate::packed::Packed;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

impl Tiers {
    /// Divides an exact store of one shard, so that several workers can enter it at once; false (and unchanged) if there is
    /// no room for that, or if it is of another kind.
    pub fn divide(&mut self, coder: &Coder, shard_bits: u32) -> bool {
        let defers = self.defers();
        let [shard] = &mut self.shards[..] else { return false };
        let shard = own(shard);
        if shard_bits == 0 || defers || !shard.frozen.is_empty() || shard.next.is_some() {
            return false;
        }
        if let Table::Filter(filter) = &mut shard.last {
            let divided = lossy::parts(filter, shard_bits);
            return divided.map(|shards| (self.shards, self.shard_bits) = (shards, shard_bits)).is_ok();
        }
        if matches!(shard.last, Table::Levels(_)) {
            return self.divide_levels(shard_bits).is_ok();
        }
        let Ok(mut shards) = exact_shards(coder, shard_bits, self.density, &self.arena, &self.grant) else {
            return false;
        };
        let divided = match &mut shard.last {
            Table::Packed(table) => packed(table, &mut shards, coder.key_bits()),
            Table::Vectors(table) => vectors(table, &mut shards),
            Table::Coded(table) => coded(table, &mut shards),
            Table::Filter(_) | Table::Ways(_) | Table::Cache(_) | Table::Levels(_) => Err(Full),
        };
        if divided.is_ok() {
            (self.shards, self.shard_bits) = (shards, shard_bits);
        }
        divided.is_ok()
    }
}

/// Puts the keys of one table into shards that are empty.
fn packed(all: &Packed, shards: &mut [Mutex<Shard>], key_bits: u32) -> Result<(), Full> {
    let (shard_bits, mut full) = (shards.len().ilog2(), false);
    all.visit(|key| {
        let shard = own(&mut shards[shard_of((key >> 64) as u64, shard_bits)]);
        if let Table::Packed(packed) = &mut shard.last
            && !full
        {
            full = packed.reserve(1, key_bits).is_err();
            assert!(full || packed.insert_one(key), "a key was there twice");
        }
    });
    if full { Err(Full) } else { Ok(()) }
}

/// Puts the vectors of one table into shards that are empty.
fn vectors(all: &Intern, shards: &mut [Mutex<Shard>]) -> Result<(), Full> {
    let shard_bits = shards.len().ilog2();
    for (_, vector) in all.iter() {
        let vector: Vec<u32> = vector.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let hash = hash::words(&vector);
        if let Table::Vectors(table) = &mut own(&mut shards[shard_of(hash, shard_bits)]).last {
            table.reserve(1)?;
            table.intern(&vector, hash)?;
        }
    }
    Ok(())
}

/// Puts the codes of one table into shards that are empty.
fn coded(all: &mut Coded, shards: &mut [Mutex<Shard>]) -> Result<(), Full> {
    let (shard_bits, mut taken) = (shards.len().ilog2(), Ok(()));
    all.visit(|string, hash| {
        if let (Table::Coded(table), Ok(())) = (&mut own(&mut shards[shard_of(hash, shard_bits)]).last, taken) {
            taken = table.take(string, hash);
        }
    });
    taken
}
