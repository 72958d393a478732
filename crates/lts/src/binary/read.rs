//! Reading, edge by edge. Whatever the bytes are, there is an answer or an error that says where.

use super::*;
use crate::stream::{Edge, Ends, ReadError};
use std::io::{BufRead, Read};

/// Reads a graph as a stream.
#[derive(Debug)]
pub struct LtsReader<R> {
    input: R,
    /// How many blocks were read, and where the next one begins.
    blocks: u64,
    offset: u64,
    labels: Vec<String>,
    /// The block of edges at hand, and how far it was read.
    edges: Vec<u8>,
    at: usize,
    /// Edges left in the record at hand.
    left: u64,
    from: u64,
    guess: Guess,
    transitions: u64,
    /// The highest number of a state that was met, plus one.
    bound: u64,
    /// Known once the last block was read.
    ends: Option<Ends>,
    /// May targets be told elsewhere? Then they are read as [`super::OPEN`].
    open: bool,
}

impl<R: BufRead> LtsReader<R> {
    pub fn new(mut input: R) -> Result<LtsReader<R>, ReadError> {
        let mut head = Vec::new();
        let wanted = MAGIC.len() + 1;
        input.by_ref().take(wanted as u64).read_to_end(&mut head)?;
        match head.split_at_checked(MAGIC.len()) {
            _ if head.is_empty() => return Err(ReadError::Empty),
            Some((magic, [VERSION])) if magic == MAGIC => {}
            Some((magic, [version])) if magic == MAGIC => {
                let message = format!("version {version} of the .lts format, and this program reads version {VERSION}");
                return Err(ReadError::Flawed(message));
            }
            _ => return Err(ReadError::Flawed("not an .lts file, or its first bytes are damaged".into())),
        }
        Ok(LtsReader {
            input,
            blocks: 0,
            offset: wanted as u64,
            labels: Vec::new(),
            edges: Vec::new(),
            at: 0,
            left: 0,
            from: 0,
            guess: Guess::new(),
            transitions: 0,
            bound: 0,
            ends: None,
            open: false,
        })
    }

    /// Reads what may have edges whose targets are told elsewhere.
    pub fn with_open(input: R) -> Result<LtsReader<R>, ReadError> {
        Ok(LtsReader { open: true, ..LtsReader::new(input)? })
    }

    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    pub fn take_labels(&mut self) -> Vec<String> {
        std::mem::take(&mut self.labels)
    }

    /// What the last block says; all zero before it was read.
    pub fn ends(&self) -> Ends {
        self.ends.unwrap_or_default()
    }

    /// The next edge; none at the end of a file that is whole.
    pub fn next(&mut self) -> Result<Option<Edge>, ReadError> {
        while self.left == 0 {
            if self.next_record()?.is_none() {
                return Ok(None);
            }
        }
        self.edge().map(Some)
    }

    /// The source of the next record, and how many edges it has, which must be read before the next.
    pub fn next_record(&mut self) -> Result<Option<(u64, u64)>, ReadError> {
        while self.at == self.edges.len() {
            if self.ends.is_some() {
                return Ok(None);
            }
            self.block()?;
        }
        let head = self.number()?;
        let jump = if head & 1 == 1 { unzigzag(self.number()?) } else { 0 };
        self.from = self.guess.source.wrapping_add(jump as u64);
        self.see(self.from)?;
        self.left = head >> 1;
        self.guess.source = self.from + 1;
        self.guess.before = 0;
        Ok(Some((self.from, self.left)))
    }

    fn edge(&mut self) -> Result<Edge, ReadError> {
        let token = self.number()?;
        let label = if token & 1 == 1 { self.number()? } else { self.guess.label().into() };
        let label = match u32::try_from(label) {
            Ok(label) if (label as usize) < self.labels.len() => label,
            _ => return Err(self.flaw("an edge has a label that is not in the table")),
        };
        self.guess.note_label(label);
        let to = match token >> 1 {
            TO_NEW => self.guess.new,
            TO_OPEN if self.open => OPEN,
            TO_OPEN => return Err(self.flaw("an edge leads nowhere: the graph is incomplete")),
            near => self.guess.last[label as usize].wrapping_add(unzigzag(near - TO_NEAR) as u64),
        };
        if to != OPEN {
            self.see(to)?;
            self.guess.note_target(label, to);
        }
        self.left -= 1;
        self.transitions += 1;
        Ok(Edge { from: self.from, label, to })
    }

    fn see(&mut self, state: u64) -> Result<(), ReadError> {
        if state >= STATE_LIMIT {
            return Err(self.flaw("a state has an impossible number"));
        }
        self.bound = self.bound.max(state + 1);
        Ok(())
    }

    /// Reads the next block.
    fn block(&mut self) -> Result<(), ReadError> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        self.input.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        let [kind, l0, l1, l2, l3, s0, s1, s2, s3] = head[..] else { return Err(cut_short()) };
        let [length, sum] = [[l0, l1, l2, l3], [s0, s1, s2, s3]].map(u32::from_le_bytes);
        if length as usize > MOST_BYTES {
            return Err(self.damaged());
        }
        let mut bytes = std::mem::take(&mut self.edges);
        bytes.clear();
        self.input.by_ref().take(length.into()).read_to_end(&mut bytes)?;
        if bytes.len() < length as usize {
            return Err(cut_short());
        }
        if checksum(self.blocks, kind, &bytes) != sum {
            return Err(self.damaged());
        }
        (self.edges, self.at) = (bytes, 0);
        match kind {
            LABELS => self.take_in_labels()?,
            EDGES => {}
            END => self.end()?,
            _ => return Err(self.flaw("a block is of an unknown kind")),
        }
        self.blocks += 1;
        self.offset += (HEAD_BYTES + length as usize) as u64;
        Ok(())
    }

    fn take_in_labels(&mut self) -> Result<(), ReadError> {
        while self.at < self.edges.len() {
            let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
            let text = self.edges.get(self.at..).and_then(|rest| rest.get(..length));
            let Some(text) = text.and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
                return Err(self.flaw("a label is not text"));
            };
            self.labels.push(text.into());
            self.guess.add_label();
            self.at += length;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), ReadError> {
        let [initial, states, transitions, labels] = [self.number()?, self.number()?, self.number()?, self.number()?];
        let agrees = transitions == self.transitions
            && labels == self.labels.len() as u64
            && initial < states
            && self.bound <= states
            && states <= STATE_LIMIT
            && self.at == self.edges.len();
        if !agrees {
            return Err(self.flaw("the last block does not agree with what comes before it"));
        }
        if !self.input.fill_buf()?.is_empty() {
            return Err(self.flaw("something follows the last block"));
        }
        self.ends = Some(Ends { initial, states, transitions });
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<u64, ReadError> {
        let (mut value, mut shift) = (0u64, 0);
        while let Some(&byte) = self.edges.get(self.at) {
            self.at += 1;
            value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return if shift < u64::BITS { Ok(value) } else { Err(self.flaw("a number is too long")) };
            }
            shift += 7;
        }
        Err(self.flaw("a block ends within an edge"))
    }

    fn damaged(&self) -> ReadError {
        self.flaw("the file is damaged: the checksum of a block is wrong")
    }

    fn flaw(&self, what: &str) -> ReadError {
        ReadError::Flawed(format!("{what} (block {}, at byte {})", self.blocks, self.offset))
    }
}

fn cut_short() -> ReadError {
    ReadError::Flawed("the graph is incomplete: the file ends before its last block".into())
}
