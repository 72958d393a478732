//! Labelled transition systems in the Aldebaran format: `des (initial, transitions, states)`, then one
//! `(from, label, to)` per line.
//!
//! Reading and writing are streams: the text is never in memory. The edges are kept by source state, in
//! the order of the file. The silent action (`i` or `tau`, quoted or not) always has the label `i`.
//! Inside quotes, `\"`, `\\`, `\n` and `\r` are escapes, and any other backslash stands for itself.

use crate::graph::TAU;
use crate::stream::{Edge, Ends, ReadError};
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

/// Some editors begin a file with this; it means nothing.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// No line may be longer.
const LONGEST_LINE: u64 = 1 << 24;

/// Reads edge by edge.
#[derive(Debug)]
pub struct AutReader<R> {
    input: R,
    lines: Lines,
    header: Ends,
    read: u64,
    labels: Labels,
}

impl<R: BufRead> AutReader<R> {
    pub fn new(mut input: R) -> Result<AutReader<R>, ReadError> {
        let mut lines = Lines { buffer: Vec::new(), number: 0 };
        let header = loop {
            match lines.next(&mut input)? {
                None => return Err(ReadError::Empty),
                Some("") => continue,
                Some(line) => break parse_header(line).map_err(|message| lines.error(message))?,
            }
        };
        Ok(AutReader { input, lines, header, read: 0, labels: Labels::default() })
    }

    /// The next edge; none at the end of a file that has as many as it promises.
    pub fn next(&mut self) -> Result<Option<Edge>, ReadError> {
        let Ends { transitions, states, .. } = self.header;
        loop {
            match self.lines.next(&mut self.input)? {
                Some("") => continue,
                Some(line) => match parse_edge(line, states) {
                    Ok((from, label, to)) if self.read < transitions => {
                        self.read += 1;
                        return Ok(Some(Edge { from, label: self.labels.number(label), to }));
                    }
                    Ok(_) => return Err(self.lines.error(format!("more edges than the {transitions} in the header"))),
                    Err(message) => return Err(self.lines.error(message)),
                },
                None if self.read == transitions => return Ok(None),
                None => {
                    let message = format!("the header promises {transitions} edges, but there are {}", self.read);
                    return Err(self.lines.error(message));
                }
            }
        }
    }

    pub fn labels(&self) -> &[String] {
        &self.labels.labels
    }

    pub fn take_labels(&mut self) -> Vec<String> {
        std::mem::take(&mut self.labels.labels)
    }

    /// As the header says.
    pub fn ends(&self) -> Ends {
        self.header
    }
}

#[derive(Debug)]
struct Lines {
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    /// The next line without surrounding space.
    fn next(&mut self, input: &mut impl BufRead) -> Result<Option<&str>, ReadError> {
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
            Err(_) => Err(ReadError::Line { line: self.number, message: "not UTF-8 text".into() }),
        }
    }

    fn error(&self, message: String) -> ReadError {
        ReadError::Line { line: self.number, message }
    }
}

fn parse_header(line: &str) -> Result<Ends, String> {
    if line == INCOMPLETE {
        return Err("the graph is incomplete: the search that wrote it did not visit every state".into());
    }
    let expected = || format!("expected `des (initial, transitions, states)`, found `{}`", excerpt(line));
    let rest = line.strip_prefix("des").ok_or_else(expected)?.trim();
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(expected)?;
    let numbers: Vec<&str> = inner.split(',').map(str::trim).collect();
    let [initial, transitions, states] = numbers[..] else { return Err(expected()) };
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{}` is not a number", excerpt(text)));
    let header = Ends { initial: number(initial)?, transitions: number(transitions)?, states: number(states)? };
    if header.initial >= header.states {
        return Err(format!(
            "the initial state {} is not below the number of states {}",
            header.initial, header.states
        ));
    }
    Ok(header)
}

/// Source, raw label and target of a line. The label may hold commas: it lies between the first and the last.
fn parse_edge(line: &str, states: u64) -> Result<(u64, &str, u64), String> {
    let expected = || format!("expected `(from, label, to)`, found `{}`", excerpt(line));
    let inner = line.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(expected)?;
    let (from, rest) = inner.split_once(',').ok_or_else(expected)?;
    let (label, to) = rest.rsplit_once(',').ok_or_else(expected)?;
    let state = |text: &str| match text.trim().parse::<u64>() {
        Ok(number) if number < states => Ok(number),
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

#[derive(Debug, Default)]
struct Labels {
    /// Labels as written in the file, so that each spelling is unquoted once.
    spellings: HashMap<String, u32>,
    numbers: HashMap<String, u32>,
    labels: Vec<String>,
}

impl Labels {
    fn number(&mut self, raw: &str) -> u32 {
        if let Some(&label) = self.spellings.get(raw) {
            return label;
        }
        let text = unquote(raw);
        let label = *self.numbers.entry(text.clone()).or_insert_with(|| {
            self.labels.push(text);
            self.labels.len() as u32 - 1
        });
        self.spellings.insert(raw.into(), label);
        label
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
    Open { offset: u64 },
    /// Already written, promising this number of edges.
    Written { transitions: u64 },
}

/// Stands in place of the header where not all states were visited.
const INCOMPLETE: &str = "incomplete";

/// The header is padded with blanks to this length, so that it can be filled in last.
const HEADER_BYTES: usize = 72;

impl<W: Write + Seek> AutWriter<W> {
    /// Leaves room for the header, which [`AutWriter::finish`] fills in.
    pub fn new(mut out: W) -> io::Result<AutWriter<W>> {
        let offset = out.stream_position()?;
        writeln!(out, "{:HEADER_BYTES$}", "")?;
        Ok(AutWriter { out, header: HeaderPlace::Open { offset }, transitions: 0 })
    }

    /// Completes the file and gives the writer back, at its end.
    pub fn finish(mut self, initial: u64, states: u64) -> io::Result<W> {
        match self.header {
            HeaderPlace::Open { offset } => {
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
        if let HeaderPlace::Open { offset } = self.header {
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
    use crate::{EdgeReader, Lts};
    use std::io::Cursor;

    fn read(text: &[u8]) -> Result<Lts, ReadError> {
        Lts::read(&mut EdgeReader::new(text)?)
    }

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
            ("des (0, 0, 4000000000)", "4000000000 states are promised, but the edges name far fewer"),
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
        let mut writer = AutWriter::new(Cursor::new(Vec::new())).unwrap();
        let mut counted = AutWriter::with_counts(Vec::new(), 7, 500, 40).unwrap();
        for (from, label, to) in &edges {
            writer.edge(*from, label, *to).unwrap();
            counted.edge(*from, label, *to).unwrap();
        }
        let lts = read(&writer.finish(7, 40).unwrap().into_inner()[..]).unwrap();
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
