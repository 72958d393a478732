//! Which number has a state? Stores say whether they hold a state, and nothing else; who writes a graph must know more.
//!
//! States are numbered in the order in which they are found. The first ones are in a table, as many as fit; whoever asks for one
//! of them is told at once. If there are more, their keys are put aside with their numbers, and so are questions that the
//! table cannot answer; afterwards both are joined ([`Answers`]), part by part and in order. A store that forgets finds states
//! again, which get new numbers then: a question is answered with the first one.

mod answers;
mod pile;

pub use answers::Answers;

use crate::budget::{Full, Grant};
use crate::codec::{Codec, Keys};
use crate::disk::{Shortage, Spill};
use crate::hash;
use crate::intern::Intern;
use crate::tiers::{Block, Entry};
use pile::Pile;

/// The answer that is not known yet. So many states cannot be numbered.
pub const UNKNOWN: u32 = u32::MAX;

/// Bytes of the buffers for what is put aside, as a part of the memory for numbers.
const BUFFERS_SHARE: u64 = 4;
const MOST_PART_BITS: u32 = 6;

/// Numbers of the states found so far.
#[derive(Debug)]
pub struct Numbers {
    /// Words of a key.
    words: usize,
    /// States are their own keys.
    plain: bool,
    grant: Grant,
    table: Table,
    aside: Option<Aside>,
    /// Nobody is told at once.
    all_later: bool,
    states: u64,
    keys: Vec<u32>,
    hashes: Vec<u64>,
}

#[derive(Debug)]
enum Table {
    None,
    /// It holds all states so far.
    Open(Intern),
    /// It holds the first ones.
    Full(Intern),
}

/// What is joined later.
#[derive(Debug)]
struct Aside {
    states: Pile,
    questions: Pile,
    asked: u64,
}

/// How numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumbersIn {
    /// In a table, as many as fit.
    Table,
    /// None: all questions wait. For stores that forget, since a table would remember everything.
    Aside,
    /// As before, and those about fresh states wait too: they may have been found before.
    AsideAll,
}

impl Numbers {
    /// For states whose words use these bits, with the codec of the store. What does not fit is put aside, if there is room on
    /// disk or nothing else can be done.
    pub fn new(
        codec: Codec,
        used: &[u32],
        keeping: NumbersIn,
        grant: Grant,
        disk: Option<[Spill; 2]>,
    ) -> Result<Numbers, Full> {
        let words = codec.key_words(used);
        let is_table = keeping == NumbersIn::Table;
        let aside = (disk.is_some() || !is_table).then(|| {
            let buffers = grant.left_bytes() / BUFFERS_SHARE / (2 * pile::CHUNK_BYTES as u64);
            let part_bits = buffers.max(1).ilog2().min(MOST_PART_BITS);
            let [states, questions] = disk.map_or([None, None], |disk| disk.map(Some));
            let mut states = Pile::new(words + 1, 1 << part_bits, grant.clone(), states);
            let mut questions = Pile::new(words + 2, 1 << part_bits, grant.clone(), questions);
            if is_table {
                // Else it would leave nothing.
                states.take_buffers().and_then(|()| questions.take_buffers())?;
            }
            Ok(Aside { states, questions, asked: 0 })
        });
        let aside = aside.transpose()?;
        let table = if is_table { Table::Open(Intern::new(words, grant.clone())?) } else { Table::None };
        let (plain, all_later) = (codec == Codec::Plain, keeping == NumbersIn::AsideAll);
        let (keys, hashes) = (Vec::new(), Vec::new());
        Ok(Numbers { words, plain, grant, table, aside, all_later, states: 0, keys, hashes })
    }

    /// How many states were numbered.
    pub fn states(&self) -> u64 {
        self.states
    }

    /// How many questions wait.
    pub fn asked(&self) -> u64 {
        self.aside.as_ref().map_or(0, |aside| aside.asked)
    }

    /// Numbers the fresh states of a block that was entered. Until keys are `settled` nothing can be put aside.
    pub fn number(&mut self, block: Block, entry: &Entry, fresh: &[u32], settled: bool) -> Result<(), Shortage> {
        let first = self.states;
        self.states += fresh.len() as u64;
        if self.states >= UNKNOWN as u64 {
            return Err(Shortage::Memory);
        }
        self.take_keys(block, entry);
        self.add(block, fresh, first as u32, settled)
    }

    /// The same, and puts the numbers of all successors into `targets`, or [`UNKNOWN`] where they are told later.
    pub fn look_up(
        &mut self,
        block: Block,
        entry: &Entry,
        fresh: &[u32],
        settled: bool,
        targets: &mut Vec<u32>,
    ) -> Result<(), Shortage> {
        let first = self.states;
        self.number(block, entry, fresh, settled)?;
        targets.clear();
        targets.resize(block.len(), UNKNOWN);
        if !self.all_later {
            fresh.iter().zip(first as u32..).for_each(|(&position, number)| targets[position as usize] = number);
        }
        self.ask(block, targets)
    }

    /// Puts the numbers of all successors of a block into `targets`, or [`UNKNOWN`] where they are told later. Which of them are
    /// fresh will be known later, too: then they are numbered by [`Numbers::number_keys`], and not before.
    pub fn ask_only(&mut self, block: Block, entry: &Entry, targets: &mut Vec<u32>) -> Result<(), Shortage> {
        self.close();
        self.take_keys(block, entry);
        targets.clear();
        targets.resize(block.len(), UNKNOWN);
        self.ask(block, targets)
    }

    /// Numbers states by their keys.
    pub fn number_keys(&mut self, states: &[u128]) -> Result<(), Shortage> {
        self.close();
        let Numbers { words, aside: Some(aside), states: next, .. } = self else { return Err(Shortage::Memory) };
        for &key in states {
            let (key, number) = (key_words((key >> 64) as u64, key as u64), *next);
            let key = &key[..*words];
            *next += 1;
            if *next >= UNKNOWN as u64 {
                return Err(Shortage::Memory);
            }
            aside.states.push(hash::words(key), key, &[number as u32])?;
        }
        Ok(())
    }

    /// The table admits nothing any more: whoever asks for a state before it is numbered is told later, and nothing is looked up there
    /// then.
    fn close(&mut self) {
        self.table = match std::mem::replace(&mut self.table, Table::None) {
            Table::Open(table) => Table::Full(table),
            table => table,
        };
    }

    /// All keys are others now: those of the first states, or of the next ones, in order.
    pub fn rekey(&mut self, keys: &Keys, are_first: bool) -> Result<(), Full> {
        let Table::Open(table) = &mut self.table else { return Err(Full) };
        if are_first {
            *table = Intern::new(self.words, self.grant.clone())?;
        }
        table.reserve(keys.high.len())?;
        for (index, &high) in keys.high.iter().enumerate() {
            let key = key_words(high, keys.low.get(index).copied().unwrap_or(0));
            let key = &key[..self.words];
            table.intern(key, hash::words(key))?;
        }
        Ok(())
    }

    /// Puts the keys of a block in the order of its successors, and hashes them.
    fn take_keys(&mut self, block: Block, entry: &Entry) {
        let Numbers { words, keys, hashes, .. } = self;
        keys.clear();
        if !self.plain {
            keys.resize(block.len() * *words, 0);
            let (run, positions) = entry.keys();
            for (index, &position) in positions.iter().enumerate() {
                let key = key_words(run.high[index], run.low.get(index).copied().unwrap_or(0));
                keys[position as usize * *words..][..*words].copy_from_slice(&key[..*words]);
            }
        }
        let keys = if self.plain { block.states } else { keys };
        hashes.clear();
        hashes.extend(keys.chunks_exact(*words).take(block.len()).map(hash::words));
        if let Table::Open(table) | Table::Full(table) = &self.table {
            hashes.iter().for_each(|&hash| table.prefetch(hash));
        }
    }

    fn add(&mut self, block: Block, fresh: &[u32], first: u32, settled: bool) -> Result<(), Shortage> {
        let Numbers { words, keys, hashes, table, aside, .. } = self;
        let keys = if self.plain { block.states } else { keys };
        let key = |position: u32| &keys[position as usize * *words..][..*words];
        if let Table::Open(open) = table {
            if open.reserve(fresh.len()).is_ok() {
                for (&position, number) in fresh.iter().zip(first..) {
                    let found = open.intern(key(position), hashes[position as usize]);
                    let (given, new) = found.map_err(|Full| Shortage::Memory)?;
                    assert!(new && given == number, "a store that holds all states found one twice");
                }
                return Ok(());
            }
            let Table::Open(full) = std::mem::replace(table, Table::None) else { unreachable!("it is open") };
            *table = Table::Full(full);
        }
        let Some(aside) = aside.as_mut().filter(|_| settled) else { return Err(Shortage::Memory) };
        for (&position, number) in fresh.iter().zip(first..) {
            aside.states.push(hashes[position as usize], key(position), &[number])?;
        }
        Ok(())
    }

    fn ask(&mut self, block: Block, targets: &mut [u32]) -> Result<(), Shortage> {
        let Numbers { words, keys, hashes, table, aside, .. } = self;
        let keys = if self.plain { block.states } else { keys };
        let mut skip = block.skip.iter().copied().peekable();
        for (position, target) in targets.iter_mut().enumerate() {
            if skip.next_if_eq(&(position as u32)).is_some() || *target != UNKNOWN {
                continue;
            }
            let (key, hash) = (&keys[position * *words..][..*words], hashes[position]);
            if let Table::Open(table) | Table::Full(table) = table
                && let Some(number) = table.find(key, hash)
            {
                *target = number;
                continue;
            }
            let aside = aside.as_mut().expect("a table that holds all states knows every one");
            aside.questions.push(hash, key, &[aside.asked as u32, (aside.asked >> 32) as u32])?;
            aside.asked += 1;
        }
        Ok(())
    }
}

/// A key as words.
fn key_words(high: u64, low: u64) -> [u32; 4] {
    [(high >> 32) as u32, high as u32, (low >> 32) as u32, low as u32]
}

#[cfg(test)]
mod tests;
