//! The graph of a model, written while a search goes through it.
//!
//! Edges go to a file in the compact format, in the order in which states are expanded. If the numbers of all targets are known at
//! once and that format was asked for, the file is the graph. Otherwise it is read again: targets that were not known are filled in
//! as [`Numbers`] tells them, states that were found several times are merged if that is wanted, and the graph is
//! written as it was asked for.

use crate::failure::Failure;
use crate::graph_file::{GraphFile, GraphFormat, Hidden, unreadable};
use crate::output::{NewFile, Output, is_standard, unwritable};
use crate::view::View;
use plimsoll_lts::LtsWriter;
use plimsoll_lts::binary::{LtsReader, OPEN};
use plimsoll_model::Step;
use plimsoll_search::{Observer, Seen, Why};
use plimsoll_store::numbers::UNKNOWN;
use plimsoll_store::{Answers, Block, Entry, Full, Grant, Keys, Numbers};
use std::fs;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 256 << 10;
const NONE: u32 = u32::MAX;

/// Writes down what a search finds.
pub struct Recorder<'a> {
    path: PathBuf,
    view: View<'a>,
    hidden: Hidden,
    writer: LtsWriter<NewFile>,
    numbers: Numbers,
    labels: Labels,
    starts: u64,
    faults: u64,
    /// Room on disk for edges that are written again, if it is limited, and what was taken of it.
    disk: Option<Grant>,
    charged: u64,
    /// Numbers were lost, for there was no room for other keys.
    lost: bool,
    /// Why nothing more can be written.
    failure: Option<Failure>,
    /// The numbers of the successors of a block, and the edges of a state.
    targets: Vec<u32>,
    edges: Vec<(u32, u64)>,
}

/// Numbers of labels, by step.
struct Labels {
    numbers: Vec<u32>,
    /// Different ones.
    texts: u32,
    grant: Grant,
    taken: u64,
}

/// Edges as they were found.
pub struct Recorded {
    path: PathBuf,
    file: NewFile,
    numbers: Numbers,
    pub states: u64,
    pub transitions: u64,
    pub starts: u64,
    /// Steps that lead nowhere.
    pub faults: u64,
}

/// What became of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    pub states: u64,
    pub transitions: u64,
    /// States that were found before.
    pub repeated: u64,
}

impl<'a> Recorder<'a> {
    /// Begins a file beside `path`; `labels` is for the names of steps, `disk` for a file that is not the graph in the end.
    pub fn new(
        path: &Path,
        view: View<'a>,
        hidden: Hidden,
        numbers: Numbers,
        labels: Grant,
        disk: Option<Grant>,
    ) -> Result<Recorder<'a>, Failure> {
        // It has the name of the graph with an addition, for the graph itself may be written beside it.
        let place = if is_plain_file(path) { path.to_owned() } else { std::env::temp_dir().join("plimsoll") };
        let mut name = place.into_os_string();
        name.push(".edges");
        let file = NewFile::create(Path::new(&name))?;
        Ok(Recorder {
            path: path.into(),
            view,
            hidden,
            writer: LtsWriter::new(file).map_err(|error| unwritable(path, &error))?,
            numbers,
            labels: Labels { numbers: Vec::new(), texts: 0, grant: labels, taken: 0 },
            starts: 0,
            faults: 0,
            disk,
            charged: 0,
            lost: false,
            failure: None,
            targets: Vec::new(),
            edges: Vec::new(),
        })
    }

    /// What was found, once the search has ended.
    pub fn end(self) -> Result<Recorded, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let (states, transitions) = (self.numbers.states(), self.writer.transitions());
        // Where the search found nothing there is still its initial state, which a file must have.
        let file = self.writer.finish(0, states.max(1)).map_err(|error| unwritable(&self.path, &error))?;
        let Recorder { path, numbers, starts, faults, .. } = self;
        Ok(Recorded { path, file, numbers, states, transitions, starts, faults })
    }

    /// Edges that will be written again count as what is put aside does.
    fn charge(&mut self) -> Result<(), Why> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let written = self.writer.bytes();
        if !is_graph(&self.path, &self.numbers) && written > self.charged {
            if !disk.take(written - self.charged) {
                return Err(Why::Disk("there is no room for edges that have to wait for numbers".into()));
            }
            self.charged = written;
        }
        Ok(())
    }

    fn write(&mut self, seen: &Seen) -> io::Result<Result<(), Full>> {
        for (from, bounds) in (seen.first..).zip(seen.block.firsts.windows(2)) {
            self.edges.clear();
            for position in bounds[0] as usize..bounds[1] as usize {
                let step = seen.successors.step(position);
                if step.is_fault() {
                    self.faults += 1;
                    continue;
                }
                let label = match self.labels.numbers.get(step.instance() as usize) {
                    Some(&label) if label != NONE => label,
                    _ => match self.name(step)? {
                        Ok(label) => label,
                        Err(Full) => return Ok(Err(Full)),
                    },
                };
                let target = self.targets[position];
                self.edges.push((label, if target == UNKNOWN { OPEN } else { target.into() }));
            }
            self.writer.edges(from, &self.edges)?;
        }
        Ok(Ok(()))
    }

    /// The number of the label of a step that is met for the first time.
    fn name(&mut self, step: Step) -> io::Result<Result<u32, Full>> {
        let text = self.view.label(step);
        let shown = self.hidden.shown(&text);
        let label = self.writer.label(shown)?;
        Ok(self.labels.set(step, label, shown).map(|()| label))
    }
}

impl Observer for Recorder<'_> {
    fn starts(&mut self, seen: &Seen) -> Result<(), Why> {
        self.starts += seen.fresh.map_or(seen.block.len(), <[u32]>::len) as u64;
        // Nobody will write this graph.
        if self.starts > 1 {
            return Err(Why::Interrupted);
        }
        seen.fresh.map_or(Ok(()), |fresh| Ok(self.numbers.number(seen.block, seen.entry, fresh, seen.settled)?))
    }

    fn entered(&mut self, block: Block, entry: &Entry) -> Result<(), Why> {
        Ok(self.numbers.number(block, entry, &[0], true)?)
    }

    fn fresh(&mut self, keys: &[u128]) -> Result<(), Why> {
        Ok(self.numbers.number_keys(keys)?)
    }

    fn block(&mut self, seen: &Seen) -> Result<(), Why> {
        if self.lost {
            return Err(Why::Memory);
        }
        match seen.fresh {
            Some(fresh) => {
                self.numbers.look_up(seen.block, seen.entry, fresh, seen.settled, &mut self.targets)?;
            }
            None => self.numbers.ask_only(seen.block, seen.entry, &mut self.targets)?,
        }
        match self.write(seen) {
            Ok(written) => written.map_err(|Full| Why::Memory).and_then(|()| self.charge()),
            Err(error) => {
                self.failure = Some(unwritable(&self.path, &error));
                Err(Why::Interrupted)
            }
        }
    }

    fn rekey(&mut self, keys: &Keys, are_first: bool) {
        self.lost |= self.numbers.rekey(keys, are_first).is_err();
    }
}

impl Labels {
    /// Room for so many more at a time.
    const PIECE: usize = 4096;

    /// What a text takes in tables, beside its bytes.
    const TEXT_BYTES: u64 = 96;

    fn set(&mut self, step: Step, label: u32, text: &str) -> Result<(), Full> {
        if label >= self.texts {
            self.take(Labels::TEXT_BYTES + text.len() as u64)?;
            self.texts = label + 1;
        }
        let at = step.instance() as usize;
        if at >= self.numbers.len() {
            let len = (at + 1).max(self.numbers.len() * 3 / 2).next_multiple_of(Labels::PIECE);
            let more = len - self.numbers.len();
            self.take(more as u64 * 4)?;
            self.numbers.reserve_exact(more);
            self.numbers.resize(len, NONE);
        }
        self.numbers[at] = label;
        Ok(())
    }

    fn take(&mut self, bytes: u64) -> Result<(), Full> {
        if !self.grant.take(bytes) {
            return Err(Full);
        }
        self.taken += bytes;
        Ok(())
    }
}

impl Drop for Labels {
    fn drop(&mut self) {
        self.grant.give_back(self.taken);
    }
}

impl Recorded {
    /// Is the file the graph that was asked for?
    pub fn is_done(&self) -> bool {
        is_graph(&self.path, &self.numbers)
    }

    /// Gives the file its name.
    pub fn keep(self) -> Result<Written, Failure> {
        self.file.finish_as(&self.path)?;
        Ok(Written { states: self.states, transitions: self.transitions, repeated: 0 })
    }

    /// Leaves what was found of a graph that is not complete under another name. Edges with targets that are not known are left out.
    pub fn leave_partial(self) -> Result<PathBuf, Failure> {
        let Recorded { path, file, .. } = self;
        let mut graph = GraphFile::create(&path)?;
        let mut pass = Pass::new(&path, file)?;
        while let Some(from) = pass.next()? {
            pass.edges.retain(|&(_, to)| to != OPEN);
            graph.edges(from, &pass.edges, pass.reader.labels())?;
        }
        graph.leave_partial()
    }

    /// Fills in the targets that were not known, and writes the graph. `answers` is given what is joined; `merges` says whether
    /// states that were found again are left out. `stop` is told how many states are written, and says whether that is enough.
    pub fn write(
        self,
        answers: impl FnOnce(Numbers) -> Result<Answers, Why>,
        merges: bool,
        mut stop: impl FnMut(u64) -> bool,
        out: &mut Output,
    ) -> Result<Result<Written, Why>, Failure> {
        let Recorded { path, file, numbers, states, .. } = self;
        let mut answers = match answers(numbers) {
            Ok(answers) => answers,
            Err(why) => return Ok(Err(why)),
        };
        let repeated = answers.repeated();
        let mut graph = GraphFile::create(&path)?;
        let mut pass = Pass::new(&path, file)?;
        let mut transitions = 0;
        while let Some(mut from) = pass.next()? {
            for (_, to) in pass.edges.iter_mut().filter(|(_, to)| *to == OPEN) {
                match answers.next_number() {
                    Ok(number) => *to = number.into(),
                    Err(shortage) => return Ok(Err(shortage.into())),
                }
            }
            if stop(from) {
                return Ok(Err(Why::Interrupted));
            }
            if merges && repeated > 0 {
                if answers.is_repeated(from as u32) {
                    continue;
                }
                from = answers.rank(from as u32).into();
                pass.edges.iter_mut().for_each(|(_, to)| *to = answers.rank(*to as u32).into());
            }
            transitions += pass.edges.len() as u64;
            graph.edges(from, &pass.edges, pass.reader.labels())?;
        }
        let states = if merges { states - repeated } else { states };
        graph.finish(0, states, out)?;
        Ok(Ok(Written { states, transitions, repeated }))
    }
}

/// The edges of a file, record by record.
struct Pass<'a> {
    path: &'a Path,
    reader: LtsReader<BufReader<NewFile>>,
    edges: Vec<(u32, u64)>,
}

impl<'a> Pass<'a> {
    fn new(path: &'a Path, mut file: NewFile) -> Result<Pass<'a>, Failure> {
        file.seek(SeekFrom::Start(0)).map_err(|error| unwritable(path, &error))?;
        let reader = LtsReader::with_open(BufReader::with_capacity(BUFFER_BYTES, file));
        let reader = reader.map_err(|error| unreadable(path, error))?;
        Ok(Pass { path, reader, edges: Vec::new() })
    }

    /// The source of the next record, whose edges are taken.
    fn next(&mut self) -> Result<Option<u64>, Failure> {
        let failed = |error| unreadable(self.path, error);
        let Some((from, count)) = self.reader.next_record().map_err(failed)? else { return Ok(None) };
        self.edges.clear();
        for _ in 0..count {
            let edge = self.reader.next_edge().map_err(failed)?;
            self.edges.extend(edge.map(|edge| (edge.label, edge.to)));
        }
        Ok(Some(from))
    }
}

/// Is a file in the compact format, with what the numbers were at once, the graph that was asked for?
fn is_graph(path: &Path, numbers: &Numbers) -> bool {
    numbers.asked() == 0 && GraphFormat::of(path) == GraphFormat::Lts && is_plain_file(path)
}

/// Will there be a file of this name, and not a device or standard output?
fn is_plain_file(path: &Path) -> bool {
    !is_standard(path) && fs::metadata(path).map_or(true, |found| found.is_file())
}
