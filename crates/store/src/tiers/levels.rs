//! Tiers that hold levels as wholes: what all shards do together when a level or a wave is over.

use super::{BLOCK, Block, Shard, Table, Tiers, lock, own};
use crate::arena::Arena;
use crate::batch::{Batch, shard_of};
use crate::budget::{Full, Grant};
use crate::cache::Health;
use crate::codec::{Coder, Keys};
use crate::hash;
use crate::row::Row;
use crate::sample::Sample;
use crate::snapshots::Snapshots;
use crate::snapshots::table::LevelTable;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// For how many states bytes are planned: the more, the shorter are tails.
const USUAL_STATES: u64 = 1 << 16;
/// Keys of trees get longer, up to this.
const ROOT_BITS: u32 = u64::BITS;

pub(super) fn tables(shards: &mut [Mutex<Shard>]) -> Vec<&mut LevelTable> {
    shards
        .iter_mut()
        .filter_map(|shard| match &mut own(shard).last {
            Table::Levels(table) => Some(&mut **table),
            _ => None,
        })
        .collect()
}

/// Inserts states of the level that is built.
pub(super) fn insert_levels(table: &mut LevelTable, block: Block, batch: &Batch, range: Range<usize>) -> usize {
    let (run, answers) = (batch.run(range.clone()), batch.answers(range.clone()));
    let count = table.insert_all(run, answers, batch.lanes(range.clone()));
    if table.by_states && count > 0 {
        let fresh = answers.iter().map(|answer| answer.load(Ordering::Relaxed) == 1);
        for (&position, _) in batch.positions(range).iter().zip(fresh).filter(|(_, fresh)| *fresh) {
            table.distinct.add(hash::words(block.state(position as usize)));
        }
    }
    count
}

impl Tiers {
    /// Tiers that hold levels, of at most `capacity` states together.
    pub(super) fn of_levels(coder: &Coder, row: &Row, capacity: usize, grant: &Grant) -> Result<Tiers, Full> {
        assert!(!matches!(coder, Coder::Plain { .. }), "the plan has keys for states of levels");
        let (arena, key_bits) = (Arena::new(grant.clone()), coder.key_bits());
        let snapshots = Snapshots::new(row, capacity, grant);
        let mut table = LevelTable::new(key_bits, 0, &arena, grant)?;
        table.by_states = coder.numbers_states();
        snapshots.introduce(&mut table);
        let sample = match coder {
            Coder::Tree(tree) => Sample::new(tree.width(), grant),
            _ => None,
        };
        let (shards, key_bits) = (vec![Shard::new(Table::Levels(Box::new(table)))], AtomicU32::new(key_bits));
        Ok(Tiers { snapshots: Some(snapshots), sample, ..Tiers::of_shards(shards, 0, key_bits, arena, grant) })
    }

    /// Bytes that a state of a level takes.
    pub(crate) fn bytes_per_state_of_levels(coder: &Coder) -> usize {
        let key_bits = if coder.numbers_states() { ROOT_BITS } else { coder.key_bits() };
        LevelTable::bytes_per_state(key_bits, USUAL_STATES) as usize
    }

    /// A level of a breadth-first search is complete: it is held as a whole, or forgotten, and others with it. Returns whether
    /// [`Tiers::anchor`] should be told one of the states that are fresh in it.
    pub fn seal(&mut self) -> bool {
        let Tiers { shards, snapshots, .. } = self;
        snapshots.as_mut().is_some_and(|snapshots| snapshots.seal(&mut tables(shards)))
    }

    /// Holds a state for good.
    pub fn anchor(&mut self, key: u128) -> Result<(), Full> {
        let (key_bits, shard) = (*self.key_bits.get_mut(), shard_of((key >> 64) as u64, self.shard_bits));
        let Some(snapshots) = &self.snapshots else { return Ok(()) };
        snapshots.anchor(key, tables(&mut self.shards)[shard], key_bits)
    }

    /// States that were expanded have successors that tell that they had been expanded before; see [`super::Entry::recognised`].
    pub fn recognise(&mut self, keys: &[u128]) -> Result<(), Full> {
        self.snapshots.as_mut().map_or(Ok(()), |snapshots| snapshots.recognise(keys))
    }

    /// The old snapshots that a key is in, and whether it was recognised: bits that mean something as long as nothing is forgotten.
    pub fn lanes(&self, key: u128) -> u64 {
        match &lock(&self.shards[shard_of((key >> 64) as u64, self.shard_bits)]).last {
            Table::Levels(table) => table.lanes(key),
            _ => 0,
        }
    }

    /// A wave is over, and the next may find so many states.
    pub fn settle(&mut self, successors: usize) -> Result<(), Full> {
        let (key_bits, shard_bits) = (*self.key_bits.get_mut(), self.shard_bits);
        let Tiers { shards, snapshots, .. } = self;
        let Some(snapshots) = snapshots else { return Ok(()) };
        let whose = |key: u128| shard_of((key >> 64) as u64, shard_bits);
        snapshots.settle(successors, &mut tables(shards), key_bits, whose)
    }

    /// Divides a store of levels of one shard; see [`Tiers::divide`].
    pub(super) fn divide_levels(&mut self, shard_bits: u32) -> Result<(), Full> {
        let key_bits = *self.key_bits.get_mut();
        let Tiers { shards, snapshots: Some(snapshots), arena, grant, .. } = self else { return Err(Full) };
        let all = &*tables(shards)[0];
        let mut divided: Vec<LevelTable> = Vec::new();
        for distinct in all.distinct.split(shard_bits) {
            let mut table = LevelTable::new(key_bits, shard_bits, arena, grant)?;
            snapshots.introduce(&mut table);
            table.by_states = all.by_states;
            table.distinct = if all.by_states { all.distinct.clone() } else { distinct };
            divided.push(table);
        }
        let mut full = false;
        all.visit(|key, members| {
            let table = &mut divided[shard_of((key >> 64) as u64, shard_bits)];
            full |= table.reserve(1, key_bits).is_err();
            if !full {
                table.restore(key, members);
            }
        });
        if full {
            return Err(Full);
        }
        divided[0].forgotten = all.forgotten;
        self.shards = divided.into_iter().map(|table| Shard::new(Table::Levels(Box::new(table)))).collect();
        self.shard_bits = shard_bits;
        Ok(())
    }

    /// Tables that hold what those of levels hold, as `new` encodes it. All states so far are among `states`.
    pub(super) fn levels_again(
        &mut self,
        old: &Coder,
        mut new: Coder,
        states: &[u32],
    ) -> Result<(Coder, Vec<Mutex<Shard>>), Full> {
        let Tiers { shards, snapshots: Some(snapshots), arena, grant, shard_bits, .. } = self else {
            return Err(Full);
        };
        let before = tables(shards);
        let mut after: Vec<LevelTable> = Vec::new();
        for table in &before {
            let mut again = LevelTable::new(new.key_bits(), *shard_bits, arena, grant)?;
            snapshots.introduce(&mut again);
            (again.by_states, again.forgotten) = (table.by_states, table.forgotten);
            again.distinct = table.distinct.clone();
            after.push(again);
        }
        let (mut keys, mut others) = (Keys::default(), Keys::default());
        for states in states.chunks(BLOCK * new.width()) {
            keys.clear();
            others.clear();
            new.reserve(states.len() / new.width())?;
            old.encode(states, &mut keys)?;
            new.encode(states, &mut others)?;
            for (key, other) in keys.whole().zip(others.whole()) {
                let members = before[shard_of((key >> 64) as u64, *shard_bits)].members(key);
                if !members.is_empty() {
                    let table = &mut after[shard_of((other >> 64) as u64, *shard_bits)];
                    table.reserve(1, new.key_bits())?;
                    table.restore(other, members);
                }
            }
        }
        Ok((new, after.into_iter().map(|table| Shard::new(Table::Levels(Box::new(table)))).collect()))
    }
}

impl LevelTable {
    /// How it is doing; how much fits is not known to one of several.
    pub(super) fn health(&self) -> Health {
        Health { held: self.masks.live() as u64, forgotten: self.forgotten, ..Health::default() }
    }
}
