//! Our own format for graphs, `.lts`: blocks with checksums; labels in a table; edges as differences from what could be
//! expected. The format is described in docs/lts.md.
//!
//! Both sides keep the same expectations ([`Guess`]): which label follows which, where the last edge with a label led, and
//! which state is met next for the first time. What comes as expected takes a bit; the rest is written as a difference.

mod read;
mod write;

pub use read::LtsReader;
pub use write::{LtsWriter, OPEN};

/// How a file begins. The bytes tell when somebody took it for text.
pub const MAGIC: [u8; 8] = *b"\x89LTS\r\n\x1a\n";
/// The version of the format, which follows.
pub const VERSION: u8 = 1;

const LABELS: u8 = b'L';
const EDGES: u8 = b'E';
const END: u8 = b'Z';

/// Kind, length and checksum of a block.
const HEAD_BYTES: usize = 9;
/// Blocks of edges have about this many bytes.
const BLOCK_BYTES: usize = 64 << 10;
/// No block has more: a label may be that long.
const MOST_BYTES: usize = 32 << 20;
/// States have numbers below this.
const STATE_LIMIT: u64 = 1 << 60;

/// An edge to the state that is met next for the first time.
const TO_NEW: u64 = 0;
/// An edge whose target is told elsewhere; in no finished file.
const TO_OPEN: u64 = 1;
/// What else a target is: the difference to where the last edge with the same label led.
const TO_NEAR: u64 = 2;

/// The checksum of a block: its place in the file counts, so that blocks cannot be missing or change places.
fn checksum(place: u64, kind: u8, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&place.to_le_bytes());
    sum.update(&[kind]);
    sum.update(&(bytes.len() as u32).to_le_bytes());
    sum.update(bytes);
    sum.finalize()
}

/// What is expected of the next edge.
#[derive(Debug)]
struct Guess {
    /// By label, where the last edge led.
    last: Vec<u64>,
    /// By label plus one, which label came next in the same state; first, with which label states began.
    follow: Vec<u32>,
    /// The label before, plus one; 0 where a state begins.
    before: usize,
    /// The state that is met next for the first time, if states are met in order.
    new: u64,
    /// The source of the next record.
    source: u64,
}

impl Guess {
    fn new() -> Guess {
        Guess { last: Vec::new(), follow: vec![0], before: 0, new: 1, source: 0 }
    }

    fn add_label(&mut self) {
        self.last.push(0);
        self.follow.push(0);
    }

    fn label(&self) -> u32 {
        self.follow[self.before]
    }

    fn note_label(&mut self, label: u32) {
        self.follow[self.before] = label;
        self.before = label as usize + 1;
    }

    fn note_target(&mut self, label: u32, to: u64) {
        self.last[label as usize] = to;
        self.new = self.new.max(to + 1);
    }
}

/// Small differences of either sign become small numbers.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests;
