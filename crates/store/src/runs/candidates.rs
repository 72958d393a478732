//! States that are not held in memory and may be on disk: they wait, in the order in which they were found, until the runs
//! are asked. Beside each state wait the way to it and its key, which then need not be computed again.

use super::sieve::Sieve;
use crate::budget::Grant;
use crate::disk::{Shortage, Spill};
use crate::hash;
use crate::queue::Queue;

/// Words beside a state: its parent, in two halves, and which successor of that it is.
pub const ORIGIN_WORDS: usize = 3;
/// Candidates that are read at a time, at most, and words.
const PIECE: usize = 1024;
const PIECE_WORDS: usize = 32 << 10;

#[derive(Debug)]
pub struct Candidates {
    width: usize,
    wide: bool,
    /// Keys are hashes, and states are written behind them.
    hashed: bool,
    /// States with their origins.
    states: Queue,
    keys: Queue,
    /// How many were read since there was none.
    read: u64,
    record: Vec<u32>,
}

/// Candidates that no run knew.
#[derive(Debug, Default)]
pub struct Survivors {
    /// How many candidates were read to find them.
    pub of: usize,
    /// The states, end to end.
    pub states: Vec<u32>,
    /// Parent and position of each.
    pub origins: Vec<(u64, u32)>,
}

impl Candidates {
    /// Candidates of so many words, with keys of more than 64 bits if `wide`; `spills` are for states and for keys.
    pub fn new(width: usize, wide: bool, grant: &Grant, spills: [Spill; 2]) -> Candidates {
        let [states, keys] = spills;
        Candidates {
            width,
            wide,
            hashed: false,
            states: Queue::new(width + ORIGIN_WORDS, grant.clone(), Some(states)),
            keys: Queue::new(if wide { 4 } else { 2 }, grant.clone(), Some(keys)),
            read: 0,
            record: Vec::new(),
        }
    }

    /// From now on keys are hashes of states; only while none waits.
    pub(crate) fn hash(&mut self) {
        assert!(self.is_empty());
        (self.wide, self.hashed) = (false, true);
        self.keys.reshape(2 + self.width);
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// How many there were since there was none.
    pub(crate) fn count(&self) -> u64 {
        self.read + self.len() as u64
    }

    /// Makes room for `count` more, which must be written next, and returns the place of the first.
    pub fn extend(&mut self, count: usize) -> Result<usize, Shortage> {
        sharing(&mut self.keys, (&mut self.states, 0), |keys| keys.extend(count))?;
        sharing(&mut self.states, (&mut self.keys, count), |states| states.extend(count))
    }

    /// Writes a state for which room was made, and how it was found; `record` is a buffer.
    pub fn write(&self, place: usize, state: &[u32], (parent, position): (u64, u32), record: &mut Vec<u32>) {
        record.clear();
        record.extend_from_slice(state);
        record.extend([(parent >> 32) as u32, parent as u32, position]);
        self.states.write(place, record);
        if self.hashed {
            let hash = hash::words(state);
            record.clear();
            record.extend([(hash >> 32) as u32, hash as u32]);
            record.extend_from_slice(state);
            self.keys.write(place, record);
        }
    }

    /// Writes the key of that state, unless that is a hash.
    pub(crate) fn write_key(&self, place: usize, high: u64, low: u64) {
        if self.hashed {
            return;
        }
        let key = [(high >> 32) as u32, high as u32, (low >> 32) as u32, low as u32];
        self.keys.write(place, &key[..if self.wide { 4 } else { 2 }]);
    }

    /// Puts the keys of the next candidates into the sieve, and says how many.
    pub(crate) fn fill(&mut self, sieve: &mut Sieve) -> Result<usize, Shortage> {
        sharing(&mut self.keys, (&mut self.states, 0), |keys| keys.ready(1))?;
        sieve.fill(&mut self.keys, self.wide, self.read)
    }

    /// Reads some of those in the sieve, from the one at place `at` on, of which there are `left`.
    pub(crate) fn read(&mut self, sieve: &Sieve, at: usize, left: usize, out: &mut Survivors) -> Result<(), Shortage> {
        out.states.clear();
        out.origins.clear();
        let piece = (PIECE_WORDS / (self.width + ORIGIN_WORDS)).clamp(1, PIECE);
        out.of = sharing(&mut self.states, (&mut self.keys, 0), |states| states.ready(piece.min(left)))?;
        self.states.read(0, out.of, &mut self.record);
        for (record, at) in self.record.chunks_exact(self.width + ORIGIN_WORDS).zip(at..) {
            if !sieve.is_known(at) {
                let (state, origin) = record.split_at(self.width);
                out.states.extend_from_slice(state);
                out.origins.push(((origin[0] as u64) << 32 | origin[1] as u64, origin[2]));
            }
        }
        self.states.advance(out.of);
        self.read = if self.states.is_empty() { 0 } else { self.read + out.of as u64 };
        Ok(())
    }
}

/// Does something with one queue. Both have one grant, so if that is used up the other one, in which so many states are still to be
/// written, gives some of it away.
fn sharing<T>(
    one: &mut Queue,
    (other, unwritten): (&mut Queue, usize),
    mut act: impl FnMut(&mut Queue) -> Result<T, Shortage>,
) -> Result<T, Shortage> {
    loop {
        match act(one) {
            Err(Shortage::Memory) if other.spare_one(unwritten)? => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::disk::SLOT;
    use crate::disk::faulty::Faulty;

    /// States are much wider than their keys, so they have taken all memory before keys need any more.
    #[test]
    fn states_and_keys_share_their_memory() {
        let width = 40;
        let grant = Budget::new(7 * SLOT as u64).grant("candidates", u64::MAX);
        let spill = || Spill::over(vec![Box::new(Faulty::sound())], SLOT, Grant::unlimited());
        let mut candidates = Candidates::new(width, false, &grant, [spill(), spill()]);
        let (mut record, count) = (Vec::new(), 50_000u32);
        for numbers in (0..count).collect::<Vec<_>>().chunks(70) {
            let place = candidates.extend(numbers.len()).unwrap();
            for (place, &number) in (place..).zip(numbers) {
                candidates.write(place, &vec![number; width], (number.into(), 7), &mut record);
                candidates.write_key(place, (number as u64) << 40, 0);
            }
        }
        let runs = std::sync::Arc::new(Spill::over(vec![Box::new(Faulty::sound())], SLOT, Grant::unlimited()));
        let mut sieve = Sieve::new(1, 40_000, 0, &runs, &Grant::unlimited()).unwrap();
        let (mut survivors, mut next) = (Survivors::default(), 0);
        while !candidates.is_empty() {
            let sifted = candidates.fill(&mut sieve).unwrap();
            let mut read = 0;
            while read < sifted {
                candidates.read(&sieve, read, sifted - read, &mut survivors).unwrap();
                read += survivors.of;
                for (state, &origin) in survivors.states.chunks(width).zip(&survivors.origins) {
                    assert!(state.iter().all(|&word| word == next) && origin == (next.into(), 7));
                    next += 1;
                }
            }
        }
        assert_eq!(next, count);
    }
}
