//! Graphs as files: in the AUT format, in the compact one (`.lts`), or, small ones, as Graphviz's DOT. A file that is written
//! takes edges, and then it is finished or given up: it has its name only if it is complete.

use crate::failure::Failure;
use crate::output::{NewFile, Output, is_standard, unwritable, write_to};
use crate::subject::standard_input;
use plimsoll_lang::LoadError;
use plimsoll_lts::{AutWriter, EdgeReader, Ends, LtsWriter, ReadError, TAU};
use regex::Regex;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Nobody can look at larger pictures.
const MOST_DOT_EDGES: u64 = 20_000;
const BUFFER_BYTES: usize = 256 << 10;
const NONE: u32 = u32::MAX;

/// Labels that are to be silent.
#[derive(Clone, Debug, Default)]
pub struct Hidden(pub Vec<Regex>);

impl Hidden {
    pub fn is_hidden(&self, label: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(label))
    }

    /// What a label is called in the end.
    pub fn shown<'a>(&self, label: &'a str) -> &'a str {
        if self.is_hidden(label) { TAU } else { label }
    }
}

/// A graph that is read as a stream.
pub type GraphStream = EdgeReader<Box<dyn BufRead>>;

/// Opens a graph file; what it holds tells its format.
pub fn open(path: &Path) -> Result<GraphStream, Failure> {
    let input: Box<dyn BufRead> = match is_standard(path) {
        true => Box::new(standard_input()?),
        false => {
            let failed = |error| unreadable(path, ReadError::Io(error));
            let file = File::open(path).map_err(failed)?;
            if file.metadata().map_err(failed)?.is_dir() {
                let name = path.display().to_string();
                return Err(Failure::of_load(&LoadError::Directory { name }, false));
            }
            Box::new(BufReader::with_capacity(BUFFER_BYTES, file))
        }
    };
    EdgeReader::new(input).map_err(|error| unreadable(path, error))
}

/// The failure to read a graph.
pub fn unreadable(path: &Path, error: ReadError) -> Failure {
    let name = path.display().to_string();
    let error = match error {
        ReadError::Io(error) => LoadError::Io { name, error },
        ReadError::Empty => LoadError::Empty { name },
        error => LoadError::Graph { name, error },
    };
    Failure::of_load(&error, false)
}

/// How a graph is written, by the name of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFormat {
    Aut,
    Lts,
    Dot,
}

impl GraphFormat {
    pub fn of(path: &Path) -> GraphFormat {
        let is = |name: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(name));
        match () {
            () if is("dot") || is("gv") => GraphFormat::Dot,
            () if is("lts") => GraphFormat::Lts,
            () => GraphFormat::Aut,
        }
    }
}

/// A graph under construction.
pub struct GraphFile {
    path: PathBuf,
    writer: Writer,
    edges: u64,
    /// Numbers of labels in the file, by their numbers outside.
    labels: Vec<u32>,
    buffer: Vec<(u32, u64)>,
}

enum Writer {
    Aut(AutWriter<NewFile>),
    Lts(LtsWriter<NewFile>),
    Dot(NewFile),
}

impl GraphFile {
    pub fn create(path: &Path) -> Result<GraphFile, Failure> {
        let failed = |error: io::Error| unwritable(path, &error);
        // The first line of AUT is written last, so what cannot be rewound waits in a file.
        let mut file = if rewinds(path) { NewFile::create(path)? } else { NewFile::temporary()? };
        let writer = match GraphFormat::of(path) {
            GraphFormat::Dot => {
                writeln!(file, "digraph model {{\n  node [shape=circle];").map_err(failed)?;
                Writer::Dot(file)
            }
            GraphFormat::Lts => Writer::Lts(LtsWriter::new(file).map_err(failed)?),
            GraphFormat::Aut => Writer::Aut(AutWriter::new(file).map_err(failed)?),
        };
        Ok(GraphFile { path: path.into(), writer, edges: 0, labels: Vec::new(), buffer: Vec::new() })
    }

    /// Edges of a state, as label and target; `labels` are the texts of labels by number, the same in every call.
    pub fn edges(&mut self, from: u64, edges: &[(u32, u64)], labels: &[String]) -> Result<(), Failure> {
        self.edges += edges.len() as u64;
        if matches!(self.writer, Writer::Dot(_)) && self.edges > MOST_DOT_EDGES {
            let name = self.path.display();
            return Err(Failure::usage(format!(
                "{name}: a picture of more than {MOST_DOT_EDGES} transitions helps nobody; use the extension .aut or .lts"
            )));
        }
        self.write(from, edges, labels).map_err(|error| unwritable(&self.path, &error))
    }

    fn write(&mut self, from: u64, edges: &[(u32, u64)], labels: &[String]) -> io::Result<()> {
        let text = |label: u32| labels[label as usize].as_str();
        match &mut self.writer {
            Writer::Aut(writer) => edges.iter().try_for_each(|&(label, to)| writer.edge(from, text(label), to)),
            Writer::Dot(file) => edges.iter().try_for_each(|&(label, to)| {
                let label = text(label).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
                writeln!(file, "  {from} -> {to} [label=\"{label}\"];")
            }),
            Writer::Lts(writer) => {
                self.labels.resize(self.labels.len().max(labels.len()), NONE);
                self.buffer.clear();
                for &(label, to) in edges {
                    let number = &mut self.labels[label as usize];
                    if *number == NONE {
                        *number = writer.label(text(label))?;
                    }
                    self.buffer.push((*number, to));
                }
                writer.edges(from, &self.buffer)
            }
        }
    }

    /// Completes the file and gives it its name.
    pub fn finish(self, initial: u64, states: u64, out: &mut Output) -> Result<(), Failure> {
        let failed = |error: io::Error| unwritable(&self.path, &error);
        let mut file = match self.writer {
            Writer::Aut(writer) => writer.finish(initial, states).map_err(failed)?,
            Writer::Lts(writer) => writer.finish(initial, states).map_err(failed)?,
            Writer::Dot(mut file) => {
                writeln!(file, "  {initial} [shape=doublecircle];\n}}").map_err(failed)?;
                file
            }
        };
        if rewinds(&self.path) {
            return file.finish();
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        write_to(&self.path, out, |target| io::copy(&mut file, target).map(|_| ()))
    }

    /// Gives the file up, but leaves what there is under another name, marked so that nobody takes it for a whole graph.
    pub fn leave_partial(self) -> Result<PathBuf, Failure> {
        let failed = |error: io::Error| unwritable(&self.path, &error);
        let file = match self.writer {
            Writer::Aut(writer) => writer.give_up().map_err(failed)?,
            Writer::Lts(writer) => writer.give_up().map_err(failed)?,
            Writer::Dot(file) => file,
        };
        let mut name = self.path.as_os_str().to_owned();
        name.push(".partial");
        file.finish_as(Path::new(&name))?;
        Ok(name.into())
    }
}

/// Copies a graph from a stream, state by state; `stop` is asked now and then whether to give up.
pub fn copy(
    from: (&Path, &mut GraphStream),
    to: &mut GraphFile,
    hidden: &Hidden,
    stop: impl Fn() -> bool,
) -> Result<Option<Ends>, Failure> {
    let (path, reader) = from;
    // Labels by the number they have in the end: hidden ones are one.
    let (mut shown, mut texts): (Vec<u32>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut source, mut edges) = (0, Vec::new());
    loop {
        let edge = reader.next().map_err(|error| unreadable(path, error))?;
        for label in &reader.labels()[shown.len()..] {
            shown.push(texts.len() as u32);
            texts.push(hidden.shown(label).into());
        }
        if edge.is_none_or(|edge| edge.from != source) || edges.len() >= MOST_AT_ONCE {
            if !edges.is_empty() {
                to.edges(source, &edges, &texts)?;
                edges.clear();
            }
            if stop() {
                return Ok(None);
            }
        }
        let Some(edge) = edge else { return Ok(Some(reader.ends())) };
        source = edge.from;
        edges.push((shown[edge.label as usize], edge.to));
    }
}

/// Edges of one state that are passed on at once.
const MOST_AT_ONCE: usize = 4096;

/// Can what was written there be changed?
fn rewinds(path: &Path) -> bool {
    !is_standard(path) && fs::metadata(path).map_or(true, |found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_lts::Lts;

    fn written(path: &Path) -> GraphFile {
        let mut file = GraphFile::create(path).unwrap();
        file.edges(0, &[(0, 1)], &["say \"x\"".to_string()]).unwrap();
        file
    }

    #[test]
    fn a_graph_is_whole_or_marked_or_not_there() {
        for name in ["g.aut", "g.lts"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            drop(written(&path));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
            let partial = written(&path).leave_partial().unwrap();
            assert!(partial.ends_with(format!("{name}.partial")) && !path.exists());
            let read = |path: &Path| {
                let mut reader = EdgeReader::new(BufReader::new(File::open(path).unwrap()))?;
                Lts::read(&mut reader)
            };
            assert!(read(&partial).unwrap_err().to_string().contains("incomplete"), "{name}");
            written(&path).finish(0, 2, &mut Output::new()).unwrap();
            assert_eq!(read(&path).unwrap().edge_count(), 1);
        }
    }

    #[test]
    fn a_small_graph_can_be_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.dot");
        written(&path).finish(0, 2, &mut Output::new()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("digraph") && text.contains("0 -> 1 [label=\"say \\\"x\\\"\"];") && text.ends_with("}\n")
        );
        let mut large = GraphFile::create(&path).unwrap();
        let labels = [String::new()];
        assert!((0..=MOST_DOT_EDGES).any(|number| large.edges(number, &[(0, 0)], &labels).is_err()));
    }
}
