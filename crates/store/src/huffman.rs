//! Huffman codes of states: frequent bytes get short codes. Injective, and states become strings of different length.
//!
//! A slot is a byte of a state that has used bits. Codes are prefix codes, and all states have the same slots: so the code of a
//! state is never the beginning of the code of another, and codes may be filled up with zeros, to whole bytes or to any length,
//! and are still all different. A *static* code is one for all slots and all models; a *trained* one has a code for each slot, from
//! what was counted in some states of the model, with an escape for bytes that did not occur.
//! (Pelánek, Rosecký and Šeděnka 2008, who have one code for all bytes.)

mod lengths;
mod table;

use std::fmt;
use table::Table;

pub use lengths::STATIC_COUNTS;

/// Which code, as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Static,
    /// From so many states, the first that a search in this order finds.
    Trained {
        breadth_first: bool,
        states: u64,
    },
}

/// A code for the states of one model.
#[derive(Clone, Debug)]
pub struct Code {
    width: usize,
    slots: Vec<Slot>,
    /// For each slot, or one for all.
    tables: Vec<Table>,
    /// Keys of caches are filled up to so many bytes; longer ones are kept elsewhere.
    key_bytes: usize,
}

/// A byte of a state.
#[derive(Clone, Copy, Debug)]
struct Slot {
    word: usize,
    shift: u32,
}

/// What was counted in some states.
#[derive(Clone, Debug)]
pub struct Training {
    slots: Vec<Slot>,
    width: usize,
    counts: Vec<[u64; 256]>,
    states: u64,
}

fn slots(used: &[u32]) -> Vec<Slot> {
    let bytes = |word: usize| (0..4).map(move |byte| Slot { word, shift: byte * 8 });
    (0..used.len()).flat_map(bytes).filter(|slot| used[slot.word] >> slot.shift & 0xFF != 0).collect()
}

impl Slot {
    #[inline(always)]
    fn of(self, state: &[u32]) -> u8 {
        (state[self.word] >> self.shift) as u8
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Kind::Static => f.write_str("static"),
            Kind::Trained { breadth_first, states } => {
                write!(f, "trained({},{states})", if *breadth_first { "bfs" } else { "dfs" })
            }
        }
    }
}

impl Training {
    /// Nothing was counted yet, of states whose words use these bits.
    pub fn new(used: &[u32]) -> Training {
        let slots = slots(used);
        let counts = vec![[0; 256]; slots.len()];
        Training { slots, width: used.len(), counts, states: 0 }
    }

    pub fn add(&mut self, state: &[u32]) {
        self.states += 1;
        for (slot, counts) in self.slots.iter().zip(&mut self.counts) {
            counts[slot.of(state) as usize] += 1;
        }
    }

    pub fn states(&self) -> u64 {
        self.states
    }

    /// Bits of information in each slot.
    pub fn entropies(&self) -> Vec<f64> {
        let all = self.states.max(1) as f64;
        let entropy = |counts: &[u64; 256]| {
            let shares = counts.iter().filter(|&&count| count > 0).map(|&count| count as f64 / all);
            shares.map(|share| -share * share.log2()).sum::<f64>().max(0.0)
        };
        self.counts.iter().map(entropy).collect()
    }

    /// How often each byte occurs in any slot.
    pub fn bytes(&self) -> [u64; 256] {
        let mut sum = [0; 256];
        self.counts.iter().for_each(|counts| sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count));
        sum
    }

    /// The code that suits what was counted.
    pub fn code(&self) -> Code {
        let tables = self.counts.iter().map(Table::with_escape).collect();
        Code { width: self.width, slots: self.slots.clone(), tables, key_bytes: 0 }
    }

    /// Bytes that the states take with a code, on average.
    pub fn mean_bytes(&self, code: &Code) -> f64 {
        let slots = self.counts.iter().enumerate();
        let bits = |(slot, counts): (usize, &[u64; 256])| {
            let table = code.table(slot);
            counts.iter().zip(0..=255).map(|(&count, byte)| count * u64::from(table.bits(byte))).sum::<u64>()
        };
        slots.map(bits).sum::<u64>() as f64 / 8.0 / self.states.max(1) as f64
    }
}

impl Code {
    /// The code that is the same for all models.
    pub fn fixed(used: &[u32]) -> Code {
        Code { width: used.len(), slots: slots(used), tables: vec![Table::of_all(&STATIC_COUNTS)], key_bytes: 0 }
    }

    /// The same code, for keys that are filled up to so many bytes.
    pub fn with_key_bytes(self, key_bytes: usize) -> Code {
        Code { key_bytes, ..self }
    }

    /// Words per state.
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Bytes of the longest code.
    pub fn most_bytes(&self) -> usize {
        let bits: u32 = (0..self.slots.len()).map(|slot| self.table(slot).most_bits()).sum();
        (bits.div_ceil(8) as usize).max(1)
    }

    fn table(&self, slot: usize) -> &Table {
        self.tables.get(slot).unwrap_or(&self.tables[0])
    }

    /// Writes the code of a state, which is at least as long as keys are, in whole bytes.
    #[inline]
    pub fn encode(&self, state: &[u32], out: &mut Vec<u8>) {
        out.clear();
        let (mut bits, mut count) = (0u64, 0);
        for (number, slot) in self.slots.iter().enumerate() {
            let (code, length) = self.table(number).code(slot.of(state));
            bits = bits << length | u64::from(code);
            count += length;
            while count >= 8 {
                count -= 8;
                out.push((bits >> count) as u8);
            }
        }
        if count > 0 || out.is_empty() {
            out.push((bits << (8 - count)) as u8);
        }
        if out.len() < self.key_bytes {
            out.resize(self.key_bytes, 0);
        }
    }

    /// The state of a code.
    pub fn decode(&self, bytes: &[u8]) -> Vec<u32> {
        let mut state = vec![0; self.width];
        let mut bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        for (number, slot) in self.slots.iter().enumerate() {
            state[slot.word] |= u32::from(self.table(number).read(&mut bits)) << slot.shift;
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;
    use std::collections::HashMap;

    /// States some of whose bytes are frequent.
    fn states(used: &[u32], count: usize, seed: u64) -> Vec<Vec<u32>> {
        let mut draw = Draw::new(seed);
        let mut word = |mask: u32| {
            let value = if draw.below(4) == 0 { draw.bits() as u32 } else { draw.below(3) as u32 * 0x0101 };
            value & mask
        };
        (0..count).map(|_| used.iter().map(|&mask| word(mask)).collect()).collect()
    }

    #[test]
    fn states_come_back_and_have_codes_of_their_own_however_they_are_filled_up() {
        for used in [&[0xFF][..], &[0x0001_0300, 0, 7], &[u32::MAX; 5], &[0], &[0xF0F0_F0F0; 70]] {
            let training_states = states(used, 200, 1);
            let mut training = Training::new(used);
            training_states.iter().for_each(|state| training.add(state));
            for code in [Code::fixed(used), training.code()] {
                for key_bytes in [0, 3, 400] {
                    let code = code.clone().with_key_bytes(key_bytes);
                    let (mut out, mut seen) = (Vec::new(), HashMap::new());
                    for state in states(used, 3_000, 2).iter().chain(&training_states) {
                        code.encode(state, &mut out);
                        assert_eq!(&code.decode(&out), state);
                        assert!(out.len() >= key_bytes && out.len() <= code.most_bytes().max(key_bytes));
                        let before = seen.insert(out.clone(), state.clone());
                        assert!(before.is_none_or(|before| before == *state), "two states have one code");
                    }
                }
            }
        }
    }

    #[test]
    fn frequent_bytes_take_fewer_bits_and_the_mean_is_what_it_says() {
        let used = [u32::MAX; 4];
        let states = states(&used, 5_000, 3);
        let mut training = Training::new(&used);
        states.iter().for_each(|state| training.add(state));
        let code = training.code();
        let (mut out, mut sum) = (Vec::new(), 0);
        for state in &states {
            code.encode(state, &mut out);
            sum += out.len();
        }
        let (mean, expected) = (sum as f64 / states.len() as f64, training.mean_bytes(&code));
        // Whole bytes take half of one more.
        assert!((mean - expected - 0.5).abs() < 0.1, "{mean}, {expected}");
        let entropy = training.entropies().iter().sum::<f64>() / 8.0;
        assert!(expected >= entropy && expected < entropy + 2.0 && expected < 16.0, "{expected}, {entropy}");
        assert!(training.mean_bytes(&code) < training.mean_bytes(&Code::fixed(&used)));
    }
}
