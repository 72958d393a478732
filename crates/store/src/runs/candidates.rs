//! States that are not held in memory and may be on disk: they wait, in the order in which they were found, until the runs
//! are asked. With each state waits the way to it, and its key where that would have to be computed again. Where the key
//! tells the state, it waits instead.

use super::sieve::Sieve;
use crate::budget::Grant;
use crate::disk::{Shortage, Spill, SpillError};
use crate::hash;
use crate::packing::Packing;
use crate::queue::Queue;
use std::ops::Range;

/// Words of the way to a state: its parent, in two halves, and which successor of that it is.
pub const ORIGIN_WORDS: usize = 3;
/// Words of a key beside a state; keys that tell states may have more.
pub const KEY_WORDS: usize = 2;
/// Candidates that are read at a time, at most, and words.
const PIECE: usize = 1024;
const PIECE_WORDS: usize = 32 << 10;
/// Far fewer keys are not worth another look.
const LEAST_PIECE: usize = 64;

/// States that wait, each with the way to it. A record is that way, its key and the state; or only one of the two.
#[derive(Debug)]
pub struct Candidates {
    width: usize,
    form: Form,
    records: Queue,
    /// How many were read since there was none.
    read: u64,
}

#[derive(Debug)]
enum Form {
    /// Keys do not tell states, so both wait.
    Both,
    /// What is packed can be taken apart again.
    Keys(Packing),
    /// Keys are hashes of states, which are computed again.
    States,
}

/// Candidates that no run knew.
#[derive(Debug, Default)]
pub struct Survivors {
    /// The states, end to end.
    pub states: Vec<u32>,
    /// Parent and position of each.
    pub origins: Vec<(u64, u32)>,
}

impl Form {
    /// Words of a key that waits.
    fn key_words(&self) -> usize {
        match self {
            Form::Both => KEY_WORDS,
            // Keys may get longer while some wait.
            Form::Keys(packing) => packing.most_key_bits().div_ceil(u64::BITS) as usize * 2,
            Form::States => 0,
        }
    }

    /// Words of a state that waits, of so many.
    fn state_words(&self, width: usize) -> usize {
        if matches!(self, Form::Keys(_)) { 0 } else { width }
    }
}

impl Candidates {
    /// Candidates of so many words.
    pub fn new(width: usize, grant: &Grant, spill: Spill) -> Candidates {
        let form = Form::Both;
        let words = ORIGIN_WORDS + form.key_words() + form.state_words(width);
        let records = Queue::new(words, grant.clone(), Some(spill));
        Candidates { width, form, records, read: 0 }
    }

    /// From now on keys are those of a packing, which tell states; only while none waits.
    pub(crate) fn pack(&mut self, packing: &Packing) {
        self.take_form(Form::Keys(packing.clone()));
    }

    /// Keys tell more from now on: those that wait are not changed by that.
    pub(crate) fn widen(&mut self, wider: &Packing) {
        if let Form::Keys(packing) = &mut self.form {
            assert_eq!(packing.most_key_bits(), wider.most_key_bits());
            packing.clone_from(wider);
        }
    }

    /// From now on keys are hashes of states; only while none waits.
    pub(crate) fn hash(&mut self) {
        self.take_form(Form::States);
    }

    fn take_form(&mut self, form: Form) {
        assert!(self.is_empty());
        self.form = form;
        self.records.reshape(self.record_words());
    }

    fn record_words(&self) -> usize {
        ORIGIN_WORDS + self.form.key_words() + self.form.state_words(self.width)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many there were since there was none.
    pub(crate) fn count(&self) -> u64 {
        self.read + self.len() as u64
    }

    /// Disk that those in memory may need as states, should all of them survive.
    pub(crate) fn settling_bytes(&self) -> u64 {
        let (words, record_words) = (self.width as u64, self.record_words() as u64);
        self.records.bytes(0).0 / record_words * words.max(record_words)
    }

    /// Makes room for `count` more, which must be written next, and returns the place of the first.
    pub fn extend(&mut self, count: usize) -> Result<usize, Shortage> {
        self.records.extend(count)
    }

    /// Writes a state with its key, for which room was made, and how it was found; `record` is a buffer.
    pub fn write(&self, place: usize, state: &[u32], key: [u64; 2], origin: (u64, u32), record: &mut Vec<u32>) {
        let (parent, position) = origin;
        let key = key.map(halves);
        record.clear();
        record.extend([(parent >> 32) as u32, parent as u32, position]);
        record.extend_from_slice(&key.as_flattened()[..self.form.key_words()]);
        record.extend_from_slice(&state[..self.form.state_words(self.width)]);
        self.records.write(place, record);
    }

    /// Empties the sieve for those that wait, which may have so many slots on disk.
    pub(crate) fn begin(&self, sieve: &mut Sieve, slots: usize) {
        sieve.begin(self.read, self.len(), slots);
    }

    /// The next ones for which there is room in the sieve whatever their keys, in pieces that lie together; none if that is not worth it.
    pub(crate) fn pieces(&self, sieve: &mut Sieve) -> impl Iterator<Item = Range<usize>> + use<> {
        let count = Some(sieve.room_left()).filter(|&room| room >= LEAST_PIECE);
        let count = count.map_or(0, |room| room.min(self.len() - sieve.len()));
        self.records.pieces(sieve.expect(count), count)
    }

    /// Puts the keys of a piece into the sieve; `records` is a buffer.
    pub(crate) fn fill(&self, piece: Range<usize>, sieve: &Sieve, records: &mut Vec<u32>) -> Result<(), SpillError> {
        self.records.look(piece.start, piece.len(), records)?;
        let (words, key_words) = (self.record_words(), self.form.key_words());
        let rest = records.chunks_exact(words).map(|record| record[ORIGIN_WORDS..].split_at(key_words));
        match self.form {
            Form::States => sieve.add(piece.start, rest.map(|(_, state)| (halves(hash::words(state)), state))),
            Form::Both | Form::Keys(_) => sieve.add(piece.start, rest.map(|(key, _)| (key, &[][..]))),
        }
    }

    /// As many are read at a time.
    pub(crate) fn piece_len(&self) -> usize {
        (PIECE_WORDS / self.record_words()).clamp(1, PIECE)
    }

    /// Brings up to `count` of the oldest into memory, and says how many.
    pub(crate) fn ready(&mut self, count: usize) -> Result<usize, Shortage> {
        self.records.ready(count)
    }

    /// Reads those of the oldest that no run knew, a piece of what is ready. The very first one is at place `first` of the sieve; `records` is a buffer.
    pub(crate) fn read(
        &self,
        piece: Range<usize>,
        first: usize,
        sieve: &Sieve,
        out: &mut Survivors,
        records: &mut Vec<u32>,
    ) {
        out.states.clear();
        out.origins.clear();
        self.records.read(piece.start, piece.len(), records);
        for (record, at) in records.chunks_exact(self.record_words()).zip(first + piece.start..) {
            if !sieve.is_known(at) {
                let (origin, rest) = record.split_at(ORIGIN_WORDS);
                match &self.form {
                    Form::Keys(packing) => packing.decode(rest, &mut out.states),
                    Form::Both | Form::States => out.states.extend_from_slice(&rest[self.form.key_words()..]),
                }
                out.origins.push(((origin[0] as u64) << 32 | origin[1] as u64, origin[2]));
            }
        }
    }

    /// Drops the `count` oldest.
    pub(crate) fn advance(&mut self, count: usize) {
        self.records.advance(count);
        self.read = if self.records.is_empty() { 0 } else { self.read + count as u64 };
    }
}

/// The leading word first.
fn halves(key: u64) -> [u32; 2] {
    [(key >> 32) as u32, key as u32]
}

#[cfg(test)]
mod tests {
    use super::super::sieve::Asked;
    use super::*;
    use crate::budget::Budget;
    use crate::disk::SLOT;
    use crate::disk::faulty::Faulty;

    const COUNT: u32 = 50_000;

    fn spill() -> Spill {
        Spill::over(vec![Box::new(Faulty::sound())], SLOT, Grant::unlimited())
    }

    /// A state with this number, of so many words.
    fn state(number: u32, width: usize) -> Vec<u32> {
        (0..width as u32).map(|word| number.wrapping_mul(word * 2 + 1)).collect()
    }

    /// Sends states through a sieve that holds few of them at a time.
    fn come_back(candidates: Candidates, width: usize, key_of: impl Fn(&[u32]) -> [u64; 2]) {
        come_back_over(spill(), candidates, width, key_of);
    }

    /// The same with that disk for the sieve; returns how often it was filled.
    fn come_back_over(
        runs: Spill,
        mut candidates: Candidates,
        width: usize,
        key_of: impl Fn(&[u32]) -> [u64; 2],
    ) -> usize {
        let (mut record, mut sieve_width) = (Vec::new(), 0);
        if matches!(candidates.form, Form::States) {
            sieve_width = width;
        }
        for numbers in (0..COUNT).collect::<Vec<_>>().chunks(70) {
            let place = candidates.extend(numbers.len()).unwrap();
            for (place, &number) in (place..).zip(numbers) {
                let state = state(number, width);
                candidates.write(place, &state, key_of(&state), ((number as u64) << 20, 7), &mut record);
            }
        }
        let (runs, mut times) = (std::sync::Arc::new(runs), 0);
        let mut sieve = Sieve::new(1, 40_000, sieve_width, &runs, &Grant::unlimited()).unwrap();
        let (mut survivors, mut next) = (Survivors::default(), 0);
        while !candidates.is_empty() {
            let slots = sieve.slots_left();
            candidates.begin(&mut sieve, slots);
            while let pieces @ [_, ..] = &candidates.pieces(&mut sieve).collect::<Vec<_>>()[..] {
                pieces.iter().for_each(|piece| candidates.fill(piece.clone(), &sieve, &mut record).unwrap());
            }
            let sifted = sieve.len();
            times += 1;
            let mut keys = Vec::new();
            let ask = |asked: &Asked| {
                keys.extend(asked.open().map(|question| (question.number(), question.key())));
                Ok(())
            };
            sieve.ask(0, ask).unwrap();
            keys.sort_unstable();
            assert_eq!(keys.len(), sifted);
            for (number, key) in keys {
                let [high, low] = key_of(&state(number as u32, width));
                assert_eq!(key, (high as u128) << 64 | low as u128);
            }
            let mut read = 0;
            while read < sifted {
                let ready = candidates.ready(500.min(sifted - read)).unwrap();
                for piece in [0..ready / 3, ready / 3..ready] {
                    candidates.read(piece, read, &sieve, &mut survivors, &mut record);
                    for (found, &origin) in survivors.states.chunks(width).zip(&survivors.origins) {
                        assert_eq!((found, origin), (&state(next, width)[..], ((next as u64) << 20, 7)));
                        next += 1;
                    }
                }
                candidates.advance(ready);
                read += ready;
            }
        }
        assert_eq!(next, COUNT);
        times
    }

    /// As many are sorted at a time as there is disk for, and if there is none as few as memory holds.
    #[test]
    fn what_waits_comes_back_however_little_disk_is_left() {
        let times = [10_000, 400, 100, 20, 1].map(|slots| {
            let few = Budget::new(slots * 1024).grant("runs", u64::MAX);
            let runs = Spill::over(vec![Box::new(Faulty::sound())], 1024, few);
            come_back_over(runs, Candidates::new(1, &Grant::unlimited(), spill()), 1, |state| [hash::words(state), 0])
        });
        assert!(times.is_sorted() && times[0] < 10 && times[4] > 20, "{times:?}");
    }

    #[test]
    fn what_waits_comes_back_whatever_waits() {
        let seven = || Budget::new(7 * SLOT as u64).grant("candidates", u64::MAX);
        let hash = |state: &[u32]| [hash::words(state), 0];
        come_back(Candidates::new(40, &seven(), spill()), 40, hash);
        let mut hashed = Candidates::new(40, &seven(), spill());
        hashed.hash();
        come_back(hashed, 40, hash);
        for width in [1, 2, 3, 4] {
            let packing = Packing::new(&vec![u32::MAX; width]).unwrap();
            let mut packed = Candidates::new(width, &seven(), spill());
            packed.pack(&packing);
            come_back(packed, width, |state| {
                let (mut high, mut low) = (Vec::new(), Vec::new());
                packing.encode(state, &mut high, &mut low).unwrap();
                [high[0], low.first().copied().unwrap_or(0)]
            });
        }
    }
}
