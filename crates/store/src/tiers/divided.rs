//! One shard becomes many: what a table holds goes where its leading bits tell.

use super::{Shard, Table, own};
use crate::batch::shard_of;
use crate::budget::Full;
use crate::hash;
use crate::intern::Intern;
use crate::packed::Packed;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Puts the keys of one table into shards that are empty.
pub(super) fn packed(all: &Packed, shards: &mut [Mutex<Shard>], key_bits: u32) -> Result<(), Full> {
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
pub(super) fn vectors(all: &Intern, shards: &mut [Mutex<Shard>]) -> Result<(), Full> {
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
