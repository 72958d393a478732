//! The join of states and questions that were put aside, and the answers in the order of the questions.
//!
//! Part by part, states go into a table, as many at a time as memory allows, and the questions of the part are looked up in it.
//! Answers are sorted into ranges of questions, each of which fits in memory when its turn comes.

use super::pile::Pile;
use super::{Aside, Numbers, UNKNOWN};
use crate::budget::{Full, Grant};
use crate::disk::{Shortage, Spill};
use crate::hash;
use crate::intern::Intern;
use crate::region::Region;

/// Memory for the buffers of ranges, as a part of the whole; that for one range is as much.
const RANGES_SHARE: u64 = 4;
const MOST_RANGES: u64 = 1 << 12;
/// States whose lasting ones are counted together.
const RANK_WORDS: usize = 16;

/// Answers to all questions, in their order.
#[derive(Debug)]
pub struct Answers {
    ranges: Pile,
    /// Questions of a range.
    range: u64,
    next: u64,
    /// The answers of the range at hand.
    numbers: Region,
    buffer: Vec<u32>,
    repeated: Option<Repeated>,
}

/// Which states had been found before.
#[derive(Debug)]
struct Repeated {
    bits: Region,
    count: u64,
    /// Before each stretch of states, how many are no repetition.
    ranks: Region,
}

impl Numbers {
    /// Joins states and questions within `grant`; answers may wait on disk. `forgets` says whether states may have been found
    /// several times.
    pub fn answers(self, grant: &Grant, disk: Option<Spill>, forgets: bool) -> Result<Answers, Shortage> {
        let Numbers { words, aside, states, table, .. } = self;
        drop(table);
        let memory = |Full| Shortage::Memory;
        let most = grant.left_bytes() / RANGES_SHARE;
        let asked = aside.as_ref().map_or(0, |aside| aside.asked);
        let least = (asked * 4).div_ceil(most.max(1)).max(1);
        let count = (most / super::pile::CHUNK_BYTES as u64).clamp(1, MOST_RANGES).min(least.next_power_of_two());
        let range = asked.div_ceil(count).max(1);
        let mut answers = Answers {
            ranges: Pile::new(2, count as usize, grant.clone(), disk),
            range,
            next: 0,
            numbers: Region::new(grant.clone()),
            buffer: Vec::new(),
            repeated: forgets.then(|| Repeated::of(states, grant)).transpose().map_err(memory)?,
        };
        // They are taken now, so that the table leaves them alone.
        answers.ranges.take_buffers().map_err(memory)?;
        if !answers.numbers.grow(range as usize * 4) {
            return Err(Shortage::Memory);
        }
        if let Some(mut aside) = aside {
            for part in 0..aside.states.parts() {
                answers.join(part, &mut aside, words, grant)?;
                aside.states.clear(part);
                aside.questions.clear(part);
            }
        }
        if let Some(repeated) = &mut answers.repeated {
            repeated.count_up();
        }
        Ok(answers)
    }
}

impl Answers {
    /// The number that the next question asks for: the first that the state got.
    pub fn next_number(&mut self) -> Result<u32, Shortage> {
        let at = (self.next % self.range) as usize;
        if at == 0 {
            self.load((self.next / self.range) as usize)?;
        }
        self.next += 1;
        let number = self.numbers.words_mut()[at];
        assert!(number != UNKNOWN, "a question about a state that was never found");
        Ok(number)
    }

    /// How many states had been found before.
    pub fn repeated(&self) -> u64 {
        self.repeated.as_ref().map_or(0, |repeated| repeated.count)
    }

    /// Had the state with this number been found before?
    pub fn is_repeated(&mut self, number: u32) -> bool {
        self.repeated.as_mut().is_some_and(|repeated| repeated.has(number))
    }

    /// The number of a state among those that had not been found before.
    pub fn rank(&mut self, number: u32) -> u32 {
        self.repeated.as_mut().map_or(number, |repeated| repeated.rank(number))
    }

    fn load(&mut self, range: usize) -> Result<(), Shortage> {
        let numbers = self.numbers.words_mut();
        numbers.fill(UNKNOWN);
        self.ranges.visit(range, &mut self.buffer, |answer| {
            // A state may be in several tables, one after the other: the first number counts.
            let place = &mut numbers[answer[0] as usize];
            if *place == UNKNOWN {
                *place = answer[1];
            }
        })?;
        self.ranges.clear(range);
        Ok(())
    }

    /// Joins one part.
    fn join(&mut self, part: usize, aside: &mut Aside, words: usize, grant: &Grant) -> Result<(), Shortage> {
        let Answers { ranges, range, buffer, repeated, .. } = self;
        let mut done = 0;
        loop {
            let bits = aside.states.part_bits();
            let mut table = Intern::one_of(bits, words, grant.clone()).map_err(|Full| Shortage::Memory)?;
            let mut numbers = Region::one_of(1 << bits, usize::MAX, grant.clone());
            let (mut seen, mut taken, mut is_full) = (0u64, 0usize, false);
            aside.states.visit(part, buffer, |record| {
                seen += 1;
                let (key, number) = (&record[..words], record[words]);
                if seen <= done || repeated.as_mut().is_some_and(|repeated| repeated.has(number)) {
                    return;
                }
                let hash = hash::words(key);
                is_full = is_full || table.reserve(1).is_err() || !numbers.grow((taken + 1) * 4);
                let known = if is_full {
                    table.find(key, hash).is_some()
                } else {
                    !matches!(table.intern(key, hash), Ok((_, true)))
                };
                match (known, repeated.as_mut()) {
                    (true, Some(repeated)) => repeated.set(number),
                    (true, None) => unreachable!("a store that holds all states found one twice"),
                    (false, _) if is_full => {}
                    (false, _) => {
                        numbers.words_mut()[taken] = number;
                        taken += 1;
                        done = seen;
                    }
                }
            })?;
            if taken == 0 && is_full {
                return Err(Shortage::Memory);
            }
            let mut failed = None;
            aside.questions.visit(part, buffer, |record| {
                if let Some(found) = table.find(&record[..words], hash::words(&record[..words]))
                    && failed.is_none()
                {
                    let asked = u64::from(record[words + 1]) << 32 | u64::from(record[words]);
                    let answer = [(asked % *range) as u32, numbers.words_mut()[found as usize]];
                    failed = ranges.push_into((asked / *range) as usize, &answer, &[]).err();
                }
            })?;
            match failed {
                Some(shortage) => return Err(shortage),
                None if is_full => {}
                None => return Ok(()),
            }
        }
    }
}

impl Repeated {
    fn of(states: u64, grant: &Grant) -> Result<Repeated, Full> {
        let [mut bits, mut ranks] = [(); 2].map(|()| Region::new(grant.clone()));
        let stretches = (states as usize).div_ceil(32 * RANK_WORDS);
        let taken = bits.grow(stretches * RANK_WORDS * 4) && ranks.grow(stretches * 4);
        if taken { Ok(Repeated { bits, count: 0, ranks }) } else { Err(Full) }
    }

    fn has(&mut self, number: u32) -> bool {
        self.bits.words_mut()[number as usize / 32] >> (number % 32) & 1 == 1
    }

    fn set(&mut self, number: u32) {
        self.bits.words_mut()[number as usize / 32] |= 1 << (number % 32);
        self.count += 1;
    }

    /// Prepares [`Repeated::rank`].
    fn count_up(&mut self) {
        let mut before = 0;
        for (rank, words) in self.ranks.words_mut().iter_mut().zip(self.bits.words_mut().chunks(RANK_WORDS)) {
            *rank = before;
            before += words.iter().map(|word| word.count_zeros()).sum::<u32>();
        }
    }

    fn rank(&mut self, number: u32) -> u32 {
        let (word, bit) = (number as usize / 32, number % 32);
        let stretch = word / RANK_WORDS;
        let words = self.bits.words_mut();
        let full: u32 = words[stretch * RANK_WORDS..word].iter().map(|word| word.count_zeros()).sum();
        self.ranks.words_mut()[stretch] + full + (!words[word] & ((1 << bit) - 1)).count_ones()
    }
}
