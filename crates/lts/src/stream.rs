//! A graph as a stream of edges, whatever the format of its file.

use crate::aut::AutReader;
use crate::binary::{self, LtsReader};
use std::fmt;
use std::io::{self, BufRead};

/// One edge; its label is a number in the table of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u64,
    pub label: u32,
    pub to: u64,
}

/// What a file says about the whole of its graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub initial: u64,
    pub states: u64,
    pub transitions: u64,
}

/// What is wrong with a graph file.
#[derive(Debug)]
pub enum ReadError {
    Io(io::Error),
    Empty,
    /// A malformed line, counted from 1.
    Line {
        line: u64,
        message: String,
    },
    /// Anything else.
    Flawed(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "cannot be read: {error}"),
            ReadError::Empty => f.write_str("the file is empty"),
            ReadError::Line { line, message } => write!(f, "line {line}: {message}"),
            ReadError::Flawed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

/// Reads a graph edge by edge.
#[derive(Debug)]
pub struct EdgeReader<R> {
    format: Format<R>,
}

#[derive(Debug)]
enum Format<R> {
    Aut(AutReader<R>),
    Lts(LtsReader<R>),
}

impl<R: BufRead> EdgeReader<R> {
    /// Looks at how the file begins, which tells its format.
    pub fn new(mut input: R) -> Result<EdgeReader<R>, ReadError> {
        let head = input.fill_buf()?;
        // The first byte tells; what is damaged there has the name of the format behind it still.
        let is_binary = head.first() == binary::MAGIC.first() || head.get(1..4) == binary::MAGIC.get(1..4);
        let format = if is_binary { Format::Lts(LtsReader::new(input)?) } else { Format::Aut(AutReader::new(input)?) };
        Ok(EdgeReader { format })
    }

    /// The name of the format.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Aut(_) => "AUT",
            Format::Lts(_) => "LTS",
        }
    }

    /// The next edge; none at the end of a file that is whole.
    pub fn next_edge(&mut self) -> Result<Option<Edge>, ReadError> {
        match &mut self.format {
            Format::Aut(reader) => reader.next_edge(),
            Format::Lts(reader) => reader.next_edge(),
        }
    }

    /// The labels so far: those of all edges that were read are among them.
    pub fn labels(&self) -> &[String] {
        match &self.format {
            Format::Aut(reader) => reader.labels(),
            Format::Lts(reader) => reader.labels(),
        }
    }

    pub fn take_labels(&mut self) -> Vec<String> {
        match &mut self.format {
            Format::Aut(reader) => reader.take_labels(),
            Format::Lts(reader) => reader.take_labels(),
        }
    }

    /// What is known once all edges were read.
    pub fn ends(&self) -> Ends {
        match &self.format {
            Format::Aut(reader) => reader.ends(),
            Format::Lts(reader) => reader.ends(),
        }
    }
}
