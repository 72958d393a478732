//! The code of one slot: bytes to bits and back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of the longest code, escapes not counted.
const MOST_BITS: u32 = 15;
/// The symbol that comes before a byte that has no code of its own.
const ESCAPE: usize = 256;
const SYMBOLS: usize = ESCAPE + 1;

/// A prefix code for bytes.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Bits and their number; those of a byte without a code of its own are an escape and the byte.
    codes: Box<[(u32, u32); 256]>,
    /// Symbols in the order of their codes, and for each length how many there are.
    symbols: Vec<u16>,
    counts: [u16; MOST_BITS as usize + 1],
}

impl Table {
    /// A code for all bytes.
    pub fn of_all(counts: &[u64; 256]) -> Table {
        let weights: Vec<(u16, u64)> = counts.iter().zip(0..).map(|(&count, byte)| (byte, count.max(1))).collect();
        Table::new(&weights)
    }

    /// A code for the bytes that occur, and an escape for the others.
    pub fn with_escape(counts: &[u64; 256]) -> Table {
        let occurring = counts.iter().zip(0..).filter(|(count, _)| **count > 0).map(|(&count, byte)| (byte, count));
        let weights: Vec<(u16, u64)> = occurring.chain([(ESCAPE as u16, 1)]).collect();
        Table::new(&weights)
    }

    /// A canonical code: symbols of one length have consecutive codes, and shorter codes come first.
    fn new(weights: &[(u16, u64)]) -> Table {
        let lengths = lengths(weights);
        let mut symbols: Vec<u16> = weights.iter().map(|(symbol, _)| *symbol).collect();
        symbols.sort_by_key(|&symbol| (lengths[symbol as usize], symbol));
        let mut counts = [0; MOST_BITS as usize + 1];
        symbols.iter().for_each(|&symbol| counts[lengths[symbol as usize] as usize] += 1);
        let (mut all, mut next, mut before) = ([(0, 0); SYMBOLS], 0u32, 0);
        for &symbol in &symbols {
            let length = lengths[symbol as usize];
            next <<= length - before;
            all[symbol as usize] = (next, length);
            (next, before) = (next + 1, length);
        }
        let (escape, escape_bits) = all[ESCAPE];
        let code = |byte: usize| match all[byte] {
            (_, 0) => (escape << 8 | byte as u32, escape_bits + 8),
            own => own,
        };
        Table { codes: Box::new(std::array::from_fn(code)), symbols, counts }
    }

    #[inline(always)]
    pub fn code(&self, byte: u8) -> (u32, u32) {
        self.codes[byte as usize]
    }

    pub fn bits(&self, byte: u8) -> u32 {
        self.code(byte).1
    }

    pub fn most_bits(&self) -> u32 {
        self.codes.iter().map(|(_, bits)| *bits).max().unwrap_or(0)
    }

    /// Reads one byte.
    pub fn read(&self, bits: &mut impl Iterator<Item = u8>) -> u8 {
        let mut next = || u32::from(bits.next().unwrap_or(0));
        let (mut code, mut first, mut index) = (0, 0u32, 0);
        for &count in &self.counts[1..] {
            code = code << 1 | next();
            first <<= 1;
            if code < first + u32::from(count) {
                let symbol = self.symbols[index + (code - first) as usize] as usize;
                return if symbol == ESCAPE { (0..8).fold(0, |byte, _| byte << 1 | next()) as u8 } else { symbol as u8 };
            }
            first += u32::from(count);
            index += count as usize;
        }
        unreachable!("every sequence of bits begins with a code")
    }
}

/// The lengths of the codes of symbols; weights are flattened until none is too long.
fn lengths(weights: &[(u16, u64)]) -> [u32; SYMBOLS] {
    let mut weights = weights.to_vec();
    loop {
        let lengths = unlimited_lengths(&weights);
        if lengths.iter().all(|&length| length <= MOST_BITS) {
            return lengths;
        }
        weights.iter_mut().for_each(|(_, weight)| *weight = *weight / 2 + 1);
    }
}

/// Huffman's algorithm. Of equal weights the oldest comes first, so that the code is the same everywhere.
fn unlimited_lengths(weights: &[(u16, u64)]) -> [u32; SYMBOLS] {
    let mut lengths = [0; SYMBOLS];
    if let [(symbol, _)] = weights {
        lengths[*symbol as usize] = 1;
        return lengths;
    }
    let mut heap: BinaryHeap<_> = weights.iter().enumerate().map(|(age, &(_, weight))| Reverse((weight, age))).collect();
    // Who is inside whom; symbols come first.
    let mut above: Vec<usize> = vec![0; weights.len()];
    while let (Some(Reverse((least, one))), Some(Reverse((next, two)))) = (heap.pop(), heap.pop()) {
        let node = above.len();
        above.push(0);
        (above[one], above[two]) = (node, node);
        heap.push(Reverse((least + next, node)));
        if heap.len() == 1 {
            break;
        }
    }
    let mut depths = vec![0; above.len()];
    for node in (0..above.len() - 1).rev() {
        depths[node] = depths[above[node]] + 1;
    }
    weights.iter().zip(&depths).for_each(|((symbol, _), &depth)| lengths[*symbol as usize] = depth);
    lengths
}
