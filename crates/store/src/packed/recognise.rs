//! What a table says of keys that a younger one did not know.

use super::geometry::TRIES;
use super::{Packed, Run, by_length};
use std::sync::atomic::{AtomicU8, Ordering};

impl Packed {
    /// Says of fresh keys that are here that they are not, and returns how many; they are in a younger table and need not be written by this one. Keys
    /// whose homes are full are tried again together, as when keys are inserted: otherwise whoever looks for what is not here waits for one line after
    /// the other.
    pub fn recognise(&mut self, keys: Run, fresh: &[AtomicU8], places: &mut Vec<u32>) -> usize {
        by_length!(self, LONG => self.recognise_with::<LONG>(keys, fresh, places))
    }

    #[inline(always)]
    fn recognise_with<const LONG: bool>(&mut self, keys: Run, fresh: &[AtomicU8], places: &mut Vec<u32>) -> usize {
        places.clear();
        for (index, (&high, fresh)) in keys.high.iter().zip(fresh).enumerate() {
            if fresh.load(Ordering::Relaxed) == 1 && !self.is_too_long(keys.key(index)) {
                self.parts[self.part_of(high)].find_home(high);
                places.push(index as u32);
            }
        }
        let mut count = 0;
        let mut answer = |index: u32, known: bool| {
            if known {
                fresh[index as usize].store(0, Ordering::Relaxed);
                count += 1;
            }
        };
        places.retain(|&index| {
            let key = keys.key(index as usize);
            let part = self.part_of((key >> 64) as u64);
            let part = &mut self.parts[part];
            let Some(known) = part.mark_at::<LONG>(key, 1) else {
                part.ask_elsewhere((key >> 64) as u64, 2);
                return true;
            };
            answer(index, known);
            false
        });
        for attempt in 2..=TRIES {
            places.retain(|&index| {
                let key = keys.key(index as usize);
                let part = self.part_of((key >> 64) as u64);
                let part = &mut self.parts[part];
                let Some(known) = part.mark_at::<LONG>(key, attempt) else {
                    part.ask_elsewhere((key >> 64) as u64, attempt + 1);
                    return true;
                };
                answer(index, known);
                false
            });
        }
        for &index in &*places {
            let key = keys.key(index as usize);
            answer(index, self.parts[self.part_of((key >> 64) as u64)].is_aside(key));
        }
        count
    }
}
