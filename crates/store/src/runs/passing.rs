//! How candidates pass: into the sieve, a piece at a time, through the runs, a shard at a time, and back, again a piece at a time. Several
//! workers may do each of these; in between somebody says how far everything is.

use super::candidates::Survivors;
use super::{Layers, Shard, count_time};
use crate::disk::{Shortage, SpillError};
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Layers {
    /// Begins to put candidates, which are states of `level`, into the sieve, those that memory cannot hold `on_disk` or not at all; false if none
    /// waits.
    pub fn begin_fill(&mut self, level: u32, on_disk: bool) -> bool {
        self.level = level;
        let Some(sieve) = self.sieve.as_mut().filter(|_| !self.candidates.is_empty()) else { return false };
        let slots = if on_disk { sieve.slots_left() } else { 0 };
        self.candidates.begin(sieve, slots);
        self.read = 0;
        true
    }

    /// How many pieces of them are to be put there next, in any order; none if no more have room.
    pub fn next_pieces(&mut self) -> usize {
        let Some(sieve) = &mut self.sieve else { return 0 };
        self.pieces.clear();
        self.pieces.extend(self.candidates.pieces(sieve));
        self.pieces.len()
    }

    /// Puts a piece there; `records` is a buffer.
    pub fn fill(&self, piece: usize, records: &mut Vec<u32>) -> Result<(), Shortage> {
        let start = Instant::now();
        let sieve = self.sieve.as_ref().expect("it was emptied for them");
        let filled = self.candidates.fill(self.pieces[piece].clone(), sieve, records);
        count_time(&self.counts.asking, start);
        filled.map_err(Shortage::Disk)
    }

    /// Asks the runs of one shard for the candidates in the sieve, and tells which keys they know.
    pub(crate) fn sift(&self, shard: usize, mut on_disk: impl FnMut(u128)) -> Result<(), SpillError> {
        let start = Instant::now();
        let sieve = self.sieve.as_ref().expect("it was filled");
        let told_bits = self.shards.len().ilog2();
        let Shard { runs, sketch } = &mut *self.lock(shard);
        let counts = &self.counts;
        let sifted = sieve.ask(shard, |asked| {
            // Most of what is known is in the oldest run, which is the largest. But how far back that was the youngest one tells.
            let last = runs.len().saturating_sub(1);
            for run in (0..runs.len()).map(|at| &runs[if self.keeps_all() { at } else { last - at }]) {
                let answers = run.answer(asked)?;
                counts.filtered.fetch_add(answers.filtered, Ordering::Relaxed);
                counts.looked_for.fetch_add(answers.looked_for, Ordering::Relaxed);
                counts.known.fetch_add(answers.known, Ordering::Relaxed);
                if answers.known > 0 {
                    let back = self.level.saturating_sub(run.levels()[0]);
                    counts.longest_back.fetch_max(back.into(), Ordering::Relaxed);
                }
            }
            asked.known().for_each(&mut on_disk);
            if let Some(sketch) = sketch {
                asked.open().for_each(|new| sketch.add((new.key() << told_bits >> told_bits >> 64) as u64));
            }
            Ok(())
        });
        count_time(&counts.asking, start);
        sifted
    }

    /// Brings the next of those in the sieve into memory, as so many pieces at most, and says how many survivors each has; none if all were read.
    pub fn next_survivors(&mut self, pieces: usize) -> Result<Vec<usize>, Shortage> {
        let Some(sieve) = &self.sieve else { return Ok(Vec::new()) };
        let (len, left) = (self.candidates.piece_len(), sieve.len() - self.read);
        let ready = if left > 0 { self.candidates.ready(left.min(len * pieces))? } else { 0 };
        self.pieces.clear();
        self.pieces.extend((0..ready).step_by(len).map(|first| first..ready.min(first + len)));
        Ok(self.pieces.iter().map(|piece| sieve.unknown(self.read + piece.start..self.read + piece.end)).collect())
    }

    /// Reads the survivors of a piece; `records` is a buffer.
    pub fn survivors(&self, piece: usize, out: &mut Survivors, records: &mut Vec<u32>) {
        let sieve = self.sieve.as_ref().expect("it was asked");
        self.candidates.read(self.pieces[piece].clone(), self.read, sieve, out, records);
    }

    /// Drops those pieces, of so many candidates.
    pub fn advance(&mut self) -> usize {
        let count = self.pieces.drain(..).map(|piece| piece.len()).sum();
        self.candidates.advance(count);
        self.counts.candidates.fetch_add(count as u64, Ordering::Relaxed);
        self.read += count;
        count
    }
}

#[cfg(test)]
impl Layers {
    /// Asks the runs for all candidates, which are states of `level`, and shows the survivors of several pieces at a time.
    pub(crate) fn ask_all(
        &mut self,
        level: u32,
        mut sift: impl FnMut(&Layers) -> Result<(), SpillError>,
        mut show: impl FnMut(&Survivors),
    ) -> Result<(), Shortage> {
        let (mut survivors, mut records) = (Survivors::default(), Vec::new());
        while self.begin_fill(level, true) {
            while let pieces @ 1.. = self.next_pieces() {
                (0..pieces).rev().try_for_each(|piece| self.fill(piece, &mut records))?;
            }
            sift(self).map_err(Shortage::Disk)?;
            while let counts @ [_, ..] = &self.next_survivors(3)?[..] {
                for (piece, &count) in counts.iter().enumerate() {
                    self.survivors(piece, &mut survivors, &mut records);
                    assert_eq!(survivors.origins.len(), count);
                    show(&survivors);
                }
                assert!(self.advance() >= counts.iter().sum());
            }
        }
        Ok(())
    }
}
