//! One shard becomes many: what a table holds goes where its leading bits tell.

use super::{Shard, Table, exact_shards, own};
use crate::arena::Arena;
use crate::batch::shard_of;
use crate::budget::{Full, Grant};
use crate::codec::Coder;
use crate::hash;
use crate::intern::Intern;
use crate::packed::Packed;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Shards with the keys of one table.
pub(super) fn packed(
    all: &Packed,
    coder: &Coder,
    shard_bits: u32,
    arena: &Arena,
    grant: &Grant,
) -> Result<Vec<Mutex<Shard>>, Full> {
    let mut shards = exact_shards(coder, shard_bits, arena, grant)?;
    let (mut full, key_bits) = (false, coder.key_bits());
    all.stream(|key| {
        let shard = own(&mut shards[shard_of((key >> 64) as u64, shard_bits)]);
        if let Table::Packed(packed) = &mut shard.last {
            full |= packed.reserve(1, key_bits).is_err() || !packed.insert_one(key);
        }
    });
    if full { Err(Full) } else { Ok(shards) }
}

/// Shards with the vectors of one table.
pub(super) fn vectors(
    all: &Intern,
    coder: &Coder,
    shard_bits: u32,
    arena: &Arena,
    grant: &Grant,
) -> Result<Vec<Mutex<Shard>>, Full> {
    let mut shards = exact_shards(coder, shard_bits, arena, grant)?;
    for (_, vector) in all.iter() {
        let vector: Vec<u32> = vector.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let hash = hash::words(&vector);
        if let Table::Vectors(table) = &mut own(&mut shards[shard_of(hash, shard_bits)]).last {
            table.reserve(1)?;
            table.intern(&vector, hash)?;
        }
    }
    Ok(shards)
}
