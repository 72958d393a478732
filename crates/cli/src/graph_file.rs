//! A graph as a file, in the AUT format or, for small ones, as Graphviz's DOT. It takes edges, and then it is finished or
//! given up: it has its name only if it is complete.

use crate::failure::Failure;
use crate::output::{NewFile, Output, is_standard, unwritable, write_to};
use plimsoll_lang::AutWriter;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Nobody can look at larger pictures.
const MOST_DOT_EDGES: u64 = 20_000;

/// A graph under construction.
pub struct GraphFile {
    path: PathBuf,
    writer: Writer,
    edges: u64,
}

enum Writer {
    Aut(AutWriter<NewFile>),
    Dot(NewFile),
}

impl GraphFile {
    pub fn create(path: &Path) -> Result<GraphFile, Failure> {
        let failed = |error: io::Error| unwritable(path, &error);
        // The first line is written last, so what cannot be rewound waits in a file.
        let mut file = if rewinds(path) { NewFile::create(path)? } else { NewFile::temporary()? };
        let is_dot =
            ["dot", "gv"].iter().any(|name| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(name)));
        let writer = match is_dot {
            true => {
                writeln!(file, "digraph model {{\n  node [shape=circle];\n  0 [shape=doublecircle];")
                    .map_err(failed)?;
                Writer::Dot(file)
            }
            false => Writer::Aut(AutWriter::new(file, 0).map_err(failed)?),
        };
        Ok(GraphFile { path: path.into(), writer, edges: 0 })
    }

    pub fn edge(&mut self, from: u64, label: &str, to: u64) -> Result<(), Failure> {
        self.edges += 1;
        let written = match &mut self.writer {
            Writer::Aut(writer) => writer.edge(from, label, to),
            Writer::Dot(_) if self.edges > MOST_DOT_EDGES => {
                let name = self.path.display();
                return Err(Failure::usage(format!(
                    "{name}: a picture of more than {MOST_DOT_EDGES} transitions helps nobody; use the extension .aut"
                )));
            }
            Writer::Dot(file) => {
                let label = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
                writeln!(file, "  {from} -> {to} [label=\"{label}\"];")
            }
        };
        written.map_err(|error| unwritable(&self.path, &error))
    }

    /// Completes the file and gives it its name.
    pub fn finish(self, states: u64, out: &mut Output) -> Result<(), Failure> {
        let failed = |error: io::Error| unwritable(&self.path, &error);
        let mut file = match self.writer {
            Writer::Aut(writer) => writer.finish(states).map_err(failed)?,
            Writer::Dot(mut file) => {
                writeln!(file, "}}").map_err(failed)?;
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
            Writer::Dot(file) => file,
        };
        let mut name = self.path.as_os_str().to_owned();
        name.push(".partial");
        file.finish_as(Path::new(&name))?;
        Ok(name.into())
    }
}

/// Can what was written there be changed?
fn rewinds(path: &Path) -> bool {
    !is_standard(path) && fs::metadata(path).map_or(true, |found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_lang::aut;

    fn written(path: &Path) -> GraphFile {
        let mut file = GraphFile::create(path).unwrap();
        file.edge(0, "say \"x\"", 1).unwrap();
        file
    }

    #[test]
    fn a_graph_is_whole_or_marked_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.aut");
        drop(written(&path));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let partial = written(&path).leave_partial().unwrap();
        let text = fs::read_to_string(&partial).unwrap();
        assert!(partial.ends_with("g.aut.partial") && !path.exists());
        assert!(aut::read(text.as_bytes()).unwrap_err().to_string().contains("incomplete"), "{text}");
        written(&path).finish(2, &mut Output::new()).unwrap();
        assert_eq!(aut::read(fs::read(&path).unwrap().as_slice()).unwrap().edge_count(), 1);
    }

    #[test]
    fn a_small_graph_can_be_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.dot");
        written(&path).finish(2, &mut Output::new()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("digraph") && text.contains("0 -> 1 [label=\"say \\\"x\\\"\"];") && text.ends_with("}\n")
        );
        let mut large = GraphFile::create(&path).unwrap();
        assert!((0..=MOST_DOT_EDGES).any(|number| large.edge(number, "", 0).is_err()));
    }
}
