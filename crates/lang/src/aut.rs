//! Labelled transition systems in the Aldebaran format: `des (initial, transitions, states)`, then one
//! `(from, label, to)` per line.
//!
//! Reading and writing are streams: the text is never in memory. The edges are kept by source state, in
//! the order of the file. The silent action (`i` or `tau`, quoted or not) always has the label `i`.
//! Inside quotes, `\"`, `\\`, `\n` and `\r` are escapes, and any other backslash stands for itself.

use crate::file::BYTE_ORDER_MARK;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

/// The label of the silent action.
pub const TAU: &str = "i";

/// An explicit graph with labelled edges, by source state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lts {
    pub initial: u32,
    pub state_count: u32,
    pub labels: Vec<String>,
    /// The edges of state `s` are those numbered `first[s]..first[s + 1]`.
    pub first: Vec<u64>,
    /// Index into `labels`, by edge.
    pub label: Vec<u32>,
    /// State, by edge.
    pub target: Vec<u32>,
}

impl Lts {
    /// The edges of a state, as label number and target.
    pub fn edges(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.first[state as usize] as usize..self.first[state as usize + 1] as usize;
        range.map(|edge| (self.label[edge], self.target[edge]))
    }

    pub fn edge_count(&self) -> usize {
        self.target.len()
    }

    /// The number of the silent label, if any edge has it.
    pub fn tau(&self) -> Option<u32> {
        self.labels.iter().position(|label| label == TAU).map(|index| index as u32)
    }
}

/// What is wrong with a graph file.
#[derive(Debug)]
pub enum AutError {
    Io(io::Error),
    Empty,
    /// A malformed line, counted from 1.
    Line {
        line: u64,
        message: String,
    },
}

impl fmt::Display for AutError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            AutError::Io(error) => write!(f, "cannot be read: {error}"),
            AutError::Empty => f.write_str("the file is empty"),
            AutError::Line { line, message } => write!(f, "line {line}: {message}"),
        }
    }
}

impl std::error::Error for AutError {}

impl From<io::Error> for AutError {
    fn from(error: io::Error) -> AutError {
        AutError::Io(error)
    }
}

/// No line may be longer.
const LONGEST_LINE: u64 = 1 << 24;

/// Isolated states beyond this number must be a mistake in the header.
const MOST_ISOLATED: u64 = 1 << 24;

/// Reads a graph.
pub fn read(mut input: impl BufRead) -> Result<Lts, AutError> {
    let mut lines = Lines { buffer: Vec::new(), number: 0 };
    let header = loop {
        match lines.next(&mut input)? {
            None => return Err(AutError::Empty),
            Some("") => continue,
            Some(line) => break parse_header(line).map_err(|message| lines.error(message))?,
        }
    };
    let mut edges = Edges::default();
    while let Some(line) = lines.next(&mut input)? {
        if line.is_empty() {
            continue;
        }
        match parse_edge(line, header.states) {
            Ok((from, label, to)) if (edges.target.len() as u64) < header.transitions => edges.push(from, label, to),
            Ok(_) => return Err(lines.error(format!("more edges than the {} in the header", header.transitions))),
            Err(message) => return Err(lines.error(message)),
        }
    }
    if edges.target.len() as u64 != header.transitions {
        let message = format!("the header promises {} edges, but there are {}", header.transitions, edges.target.len());
        return Err(lines.error(message));
    }
    if header.states > MOST_ISOLATED.max(2 * header.transitions + 1) {
        let message = format!("the header promises {} states, but the edges name far fewer", header.states);
        return Err(AutError::Line { line: 1, message });
    }
    Ok(edges.into_lts(&header))
}

struct Header {
    initial: u64,
    transitions: u64,
    states: u64,
}

struct Lines {
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    /// The next line without surrounding space.
    fn next(&mut self, input: &mut impl BufRead) -> Result<Option<&str>, AutError> {
        self.buffer.clear();
        self.number += 1;
        let count = input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.buffer)?;
        if count == 0 {
            return Ok(None);
        }
        if count as u64 == LONGEST_LINE && self.buffer.last() != Some(&b'\n') {
            return Err(self.error("the line is too long".into()));
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(line) if self.number == 1 => Ok(Some(line.trim_start_matches(BYTE_ORDER_MARK).trim())),
            Ok(line) => Ok(Some(line.trim())),
            Err(_) => Err(AutError::Line { line: self.number, message: "not UTF-8 text".into() }),
        }
    }

    fn error(&self, message: String) -> AutError {
        AutError::Line { line: self.number, message }
    }
}

fn parse_header(line: &str) -> Result<Header, String> {
    if line == INCOMPLETE {
        return Err("the graph is incomplete: the search that wrote it did not visit every state".into());
    }
    let expected = || format!("expected `des (initial, transitions, states)`, found `{}`", excerpt(line));
    let rest = line.strip_prefix("des").ok_or_else(expected)?.trim();
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(expected)?;
    let numbers: Vec<&str> = inner.split(',').map(str::trim).collect();
    let [initial, transitions, states] = numbers[..] else { return Err(expected()) };
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{}` is not a number", excerpt(text)));
    let header = Header { initial: number(initial)?, transitions: number(transitions)?, states: number(states)? };
    if header.states > u64::from(u32::MAX) {
        return Err(format!("{} states are more than can be read", header.states));
    }
    if header.initial >= header.states {
        return Err(format!(
            "the initial state {} is not below the number of states {}",
            header.initial, header.states
        ));
    }
    Ok(header)
}

/// Source, raw label and target of a line. The label may hold commas: it lies between the first and the last.
fn parse_edge(line: &str, states: u64) -> Result<(u32, &str, u32), String> {
    let expected = || format!("expected `(from, label, to)`, found `{}`", excerpt(line));
    let inner = line.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(expected)?;
    let (from, rest) = inner.split_once(',').ok_or_else(expected)?;
    let (label, to) = rest.rsplit_once(',').ok_or_else(expected)?;
    let state = |text: &str| match text.trim().parse::<u64>() {
        Ok(number) if number < states => Ok(number as u32),
        Ok(number) => Err(format!("state {number} is not below the number of states {states}")),
        Err(_) => Err(format!("`{}` is not a state number", excerpt(text.trim()))),
    };
    Ok((state(from)?, label.trim(), state(to)?))
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

#[derive(Default)]
struct Edges {
    from: Vec<u32>,
    label: Vec<u32>,
    target: Vec<u32>,
    /// Labels as written in the file, so that each spelling is unquoted once.
    spellings: HashMap<String, u32>,
    numbers: HashMap<String, u32>,
    labels: Vec<String>,
}

impl Edges {
    fn push(&mut self, from: u32, raw_label: &str, target: u32) {
        let label = match self.spellings.get(raw_label) {
            Some(&label) => label,
            None => {
                let text = unquote(raw_label);
                let label = *self.numbers.entry(text.clone()).or_insert_with(|| {
                    self.labels.push(text);
                    self.labels.len() as u32 - 1
                });
                self.spellings.insert(raw_label.into(), label);
                label
            }
        };
        self.from.push(from);
        self.label.push(label);
        self.target.push(target);
    }

    fn into_lts(mut self, header: &Header) -> Lts {
        let mut first = vec![0u64; header.states as usize + 1];
        for &from in &self.from {
            first[from as usize + 1] += 1;
        }
        for state in 0..header.states as usize {
            first[state + 1] += first[state];
        }
        if !self.from.is_sorted() {
            let mut next = first.clone();
            let (mut label, mut target) = (vec![0; self.label.len()], vec![0; self.target.len()]);
            for (edge, &from) in self.from.iter().enumerate() {
                let place = &mut next[from as usize];
                (label[*place as usize], target[*place as usize]) = (self.label[edge], self.target[edge]);
                *place += 1;
            }
            (self.label, self.target) = (label, target);
        }
        Lts {
            initial: header.initial as u32,
            state_count: header.states as u32,
            labels: self.labels,
            first,
            label: self.label,
            target: self.target,
        }
    }
}

fn unquote(raw: &str) -> String {
    let text = match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => unescape(inner),
        None => raw.into(),
    };
    if matches!(text.as_str(), "i" | "tau" | "τ") { TAU.into() } else { text }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let escaped = match (c, rest.peek()) {
            ('\\', Some('\\')) => '\\',
            ('\\', Some('"')) => '"',
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            _ => {
                out.push(c);
                continue;
            }
        };
        rest.next();
        out.push(escaped);
    }
    out
}

/// Writes a graph edge by edge.
#[derive(Debug)]
pub struct AutWriter<W> {
    out: W,
    header: HeaderPlace,
    transitions: u64,
}

#[derive(Debug)]
enum HeaderPlace {
    /// Blank so far, at this offset.
    Open { offset: u64, initial: u64 },
    /// Already written, promising this number of edges.
    Written { transitions: u64 },
}

/// Stands in place of the header where not all states were visited.
const INCOMPLETE: &str = "incomplete";

/// The header is padded with blanks to this length, so that it can be filled in last.
const HEADER_BYTES: usize = 72;

impl<W: Write + Seek> AutWriter<W> {
    /// Leaves room for the header, which [`AutWriter::finish`] fills in.
    pub fn new(mut out: W, initial: u64) -> io::Result<AutWriter<W>> {
        let offset = out.stream_position()?;
        writeln!(out, "{:HEADER_BYTES$}", "")?;
        Ok(AutWriter { out, header: HeaderPlace::Open { offset, initial }, transitions: 0 })
    }

    /// Completes the file and gives the writer back, at its end.
    pub fn finish(mut self, states: u64) -> io::Result<W> {
        match self.header {
            HeaderPlace::Open { offset, initial } => {
                self.out.seek(SeekFrom::Start(offset))?;
                let header = format!("des ({initial}, {}, {states})", self.transitions);
                write!(self.out, "{header:HEADER_BYTES$}")?;
                self.out.seek(SeekFrom::End(0))?;
            }
            HeaderPlace::Written { transitions } => check_promise(transitions, self.transitions)?,
        }
        self.out.flush()?;
        Ok(self.out)
    }

    /// Ends the file as one that is incomplete, which no reader takes for a graph, and gives the writer back.
    pub fn give_up(mut self) -> io::Result<W> {
        if let HeaderPlace::Open { offset, .. } = self.header {
            self.out.seek(SeekFrom::Start(offset))?;
            write!(self.out, "{:HEADER_BYTES$}", INCOMPLETE)?;
            self.out.seek(SeekFrom::End(0))?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> AutWriter<W> {
    /// For writers that cannot go back: the counts are known beforehand.
    pub fn with_counts(mut out: W, initial: u64, transitions: u64, states: u64) -> io::Result<AutWriter<W>> {
        writeln!(out, "des ({initial}, {transitions}, {states})")?;
        Ok(AutWriter { out, header: HeaderPlace::Written { transitions }, transitions: 0 })
    }

    pub fn edge(&mut self, from: u64, label: &str, to: u64) -> io::Result<()> {
        self.transitions += 1;
        write!(self.out, "({from}, \"")?;
        if label.contains(['"', '\\', '\n', '\r']) {
            for c in label.chars() {
                match c {
                    '"' => self.out.write_all(b"\\\"")?,
                    '\\' => self.out.write_all(b"\\\\")?,
                    '\n' => self.out.write_all(b"\\n")?,
                    '\r' => self.out.write_all(b"\\r")?,
                    c => write!(self.out, "{c}")?,
                }
            }
        } else {
            self.out.write_all(label.as_bytes())?;
        }
        writeln!(self.out, "\", {to})")
    }

    /// Completes a file begun with [`AutWriter::with_counts`].
    pub fn finish_counted(mut self) -> io::Result<W> {
        if let HeaderPlace::Written { transitions } = self.header {
            check_promise(transitions, self.transitions)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

fn check_promise(promised: u64, written: u64) -> io::Result<()> {
    if promised == written {
        return Ok(());
    }
    let message = format!("the header promises {promised} edges, but {written} were written");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn parse(text: &str) -> Result<Lts, String> {
        read(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn edges_lie_by_source_in_the_order_of_the_file() {
        let lts = parse("des (1, 4, 3)\n(2, \"b\", 0)\n(0, a, 1)\n(2,a,2)\n(0, \"b\", 2)\n").unwrap();
        assert_eq!((lts.initial, lts.state_count, lts.edge_count()), (1, 3, 4));
        assert_eq!(lts.labels, ["b", "a"]);
        assert_eq!(lts.first, [0, 2, 2, 4]);
        assert_eq!(lts.edges(0).collect::<Vec<_>>(), [(1, 1), (0, 2)]);
        assert_eq!(lts.edges(2).collect::<Vec<_>>(), [(0, 0), (1, 2)]);
    }

    #[test]
    fn labels_come_quoted_or_not_and_may_hold_commas() {
        let cases = [
            ("a", "a"),
            ("\"a\"", "a"),
            ("send(1,2)", "send(1,2)"),
            ("\"x, (y)\"", "x, (y)"),
            ("\"say \\\"hi\\\"\"", "say \"hi\""),
            ("\"c:\\dir\"", "c:\\dir"),
            ("", ""),
            ("\"\"", ""),
            ("\"", "\""),
            ("i", "i"),
            ("\"i\"", "i"),
            ("tau", "i"),
            ("\"tau\"", "i"),
        ];
        for (raw, label) in cases {
            let lts = parse(&format!("des(0,1,1)\n(0,{raw},0)")).unwrap();
            assert_eq!(lts.labels, [label], "{raw}");
        }
        let lts = parse("des (0,3,1)\n(0,tau,0)\n(0,\"i\",0)\n(0,a,0)\n").unwrap();
        assert_eq!((lts.labels.len(), lts.tau()), (2, Some(0)));
    }

    #[test]
    fn errors_name_the_line() {
        let cases = [
            ("", "the file is empty"),
            ("\n \n", "the file is empty"),
            ("foo", "line 1: expected `des (initial, transitions, states)`, found `foo`"),
            ("des (0, 1)", "line 1: expected `des (initial, transitions, states)`, found `des (0, 1)`"),
            ("des (0, x, 1)", "line 1: `x` is not a number"),
            ("des (3, 0, 3)", "line 1: the initial state 3 is not below the number of states 3"),
            ("des (0, 1, 2)\n(0, a, 2)", "line 2: state 2 is not below the number of states 2"),
            ("des (0, 1, 2)\n\n(0, a)", "line 3: expected `(from, label, to)`, found `(0, a)`"),
            ("des (0, 1, 2)\n(-1, a, 0)", "line 2: `-1` is not a state number"),
            ("des (0, 0, 2)\n(0, a, 0)", "line 2: more edges than the 0 in the header"),
            ("des (0, 2, 2)\n(0, a, 0)", "line 3: the header promises 2 edges, but there are 1"),
            ("des (0, 0, 5000000000)", "line 1: 5000000000 states are more than can be read"),
            ("des (0, 0, 4000000000)", "line 1: the header promises 4000000000 states, but the edges name far fewer"),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err(), message, "{text:?}");
        }
        let error = read(&b"des (0,1,1)\n(0,\xff,0)"[..]).unwrap_err();
        assert_eq!(error.to_string(), "line 2: not UTF-8 text");
    }

    #[test]
    fn what_is_written_can_be_read_back() {
        let labels =
            ["a", "say \"hi\", then", "back\\slash", "\\n", "two\nlines\r", "", "i", "tab\t,\"", "ünïcode", "\\"];
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        let edges: Vec<(u64, &str, u64)> =
            (0..500).map(|_| (random(40), labels[random(labels.len() as u64) as usize], random(40))).collect();
        let mut writer = AutWriter::new(Cursor::new(Vec::new()), 7).unwrap();
        let mut counted = AutWriter::with_counts(Vec::new(), 7, 500, 40).unwrap();
        for (from, label, to) in &edges {
            writer.edge(*from, label, *to).unwrap();
            counted.edge(*from, label, *to).unwrap();
        }
        let lts = read(&writer.finish(40).unwrap().into_inner()[..]).unwrap();
        assert_eq!(lts, read(&counted.finish_counted().unwrap()[..]).unwrap());
        assert_eq!((lts.initial, lts.state_count), (7, 40));
        for state in 0..40 {
            let read: Vec<(&str, u64)> =
                lts.edges(state).map(|(label, to)| (lts.labels[label as usize].as_str(), to.into())).collect();
            let written: Vec<(&str, u64)> =
                edges.iter().filter(|edge| edge.0 == state.into()).map(|&(_, label, to)| (label, to)).collect();
            assert_eq!(read, written);
        }
    }

    #[test]
    fn a_wrong_promise_is_an_error() {
        let mut writer = AutWriter::with_counts(Vec::new(), 0, 2, 1).unwrap();
        writer.edge(0, "a", 0).unwrap();
        assert!(writer.finish_counted().is_err());
    }
}
