//! `plimsoll lts`: what can be done with a graph file. The graph is held in memory, but for `info`.

use crate::failure::{Failure, exit};
use crate::graph_file::{self, GraphFile, Hidden, unreadable};
use crate::options::{EquivalenceName, LtsCommand, LtsCompareOptions, LtsInfoOptions, LtsMinimiseOptions};
use crate::output::{Output, is_standard, try_out};
use crate::size::{show_bytes, show_count};
use crate::{interrupt, loading};
use plimsoll_lts::compare::Difference;
use plimsoll_lts::{Comparison, Ends, Equivalence, Lts, TAU, compare, minimise};
use std::fmt::Write;
use std::path::Path;

/// Labels that `info` lists.
const LONGEST_LIST: usize = 10;
/// Steps of a difference that are listed.
const LONGEST_PATH: usize = 60;

/// Runs the command.
pub fn run(command: &LtsCommand, out: &mut Output) -> Result<u8, Failure> {
    match command {
        LtsCommand::Info(options) => info(options, out),
        LtsCommand::Compare(options) => compare_files(options, out),
        LtsCommand::Minimise(options) => minimise_file(options, out),
    }
}

/// Counts while it reads.
fn info(options: &LtsInfoOptions, out: &mut Output) -> Result<u8, Failure> {
    loading::within(options.memory);
    let mut reader = graph_file::open(&options.file)?;
    let (mut counts, mut has_edges) = (Vec::new(), Bits::default());
    while let Some(edge) = reader.next().map_err(|error| unreadable(&options.file, error))? {
        counts.resize(counts.len().max(reader.labels().len()), 0u64);
        counts[edge.label as usize] += 1;
        has_edges.set(edge.from);
    }
    let Ends { initial, states, transitions } = reader.ends();
    let mut used: Vec<(u64, &String)> = counts.into_iter().zip(reader.labels()).filter(|used| used.0 > 0).collect();
    used.sort_unstable_by(|one, other| (other.0, one.1).cmp(&(one.0, other.1)));
    let silent = used.iter().find(|(_, label)| *label == TAU).map_or(0, |(count, _)| *count);
    let mut text = format!("format           {}", reader.format());
    if let Ok(found) = std::fs::metadata(&options.file) {
        let _ = write!(text, ", {}", show_bytes(found.len()));
        if transitions > 0 {
            let _ = write!(text, ", {:.1} bytes per transition", found.len() as f64 / transitions as f64);
        }
    }
    let _ = writeln!(text, "\ninitial state    {initial}\nstates           {}", show_count(states));
    let _ = writeln!(text, "transitions      {}", show_count(transitions));
    let _ = writeln!(text, "silent           {}", show_count(silent));
    let _ = writeln!(text, "without edges    {}", show_count(states - has_edges.count));
    let _ = writeln!(text, "labels           {}", show_count(used.len() as u64));
    for (count, label) in used.iter().take(LONGEST_LIST) {
        let _ = writeln!(text, "{:>16} {label}", show_count(*count));
    }
    if used.len() > LONGEST_LIST {
        let _ = writeln!(text, "... and {} more", used.len() - LONGEST_LIST);
    }
    out.print(&text);
    Ok(0)
}

/// A set of numbers.
#[derive(Default)]
struct Bits {
    words: Vec<u64>,
    count: u64,
}

impl Bits {
    fn set(&mut self, number: u64) {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.count += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }
}

fn load(path: &Path, hidden: &Hidden) -> Result<Lts, Failure> {
    let mut reader = graph_file::open(path)?;
    let mut lts = Lts::read(&mut reader).map_err(|error| unreadable(path, error))?;
    if !hidden.0.is_empty() {
        lts.hide(|label| hidden.is_hidden(label));
    }
    Ok(lts)
}

fn equivalence(name: EquivalenceName) -> Equivalence {
    match name {
        EquivalenceName::Strong => Equivalence::Strong,
        EquivalenceName::Branching => Equivalence::Branching,
    }
}

fn compare_files(options: &LtsCompareOptions, out: &mut Output) -> Result<u8, Failure> {
    loading::within(options.memory);
    let hidden = options.hide.hidden();
    let (one, other) = (load(&options.one, &hidden)?, load(&options.other, &hidden)?);
    let name = crate::options::name_of(options.equivalence);
    let found = compare(one, other, equivalence(options.equivalence))
        .ok_or_else(|| Failure::usage("the two graphs have more states than can be held side by side"))?;
    let Comparison::Different(difference) = found else {
        out.print(&format!("equivalent ({name} bisimulation)\n"));
        return Ok(0);
    };
    let mut text = format!("different ({name} bisimulation)\n");
    if let Some(difference) = difference {
        describe(&difference, [&options.one, &options.other].map(|path| path.display().to_string()), &mut text);
    }
    out.print(&text);
    Ok(exit::DIFFERENT)
}

fn describe(difference: &Difference, names: [String; 2], text: &mut String) {
    let Difference { steps, who, label } = difference;
    if !steps.is_empty() {
        text.push_str("after these steps of both:\n");
    }
    for (number, step) in steps.iter().take(LONGEST_PATH).enumerate() {
        let _ = writeln!(text, "{:>6}  {step}", number + 1);
    }
    if steps.len() > LONGEST_PATH {
        let _ = writeln!(text, "        ... and {} more", steps.len() - LONGEST_PATH);
    }
    let _ = writeln!(text, "{} can do `{label}`, {} cannot", names[*who], names[1 - who]);
}

fn minimise_file(options: &LtsMinimiseOptions, out: &mut Output) -> Result<u8, Failure> {
    try_out(&options.output)?;
    if is_standard(&options.output) {
        out.make_way();
    }
    loading::within(options.memory);
    let lts = load(&options.file, &options.hide.hidden())?;
    let before = (lts.state_count, lts.edge_count());
    let small = minimise(lts, equivalence(options.equivalence));
    interrupt::listen();
    let mut file = GraphFile::create(&options.output)?;
    interrupt::while_searching(|| write(&small, &mut file))?;
    file.finish(small.initial.into(), small.state_count.into(), out)?;
    let [states, transitions] = [small.state_count as u64, small.edge_count() as u64].map(show_count);
    let before = [before.0 as u64, before.1 as u64].map(show_count);
    out.print(&format!(
        "{}: {states} states, {transitions} transitions (before: {} and {})\n",
        options.output.display(),
        before[0],
        before[1]
    ));
    Ok(0)
}

fn write(lts: &Lts, file: &mut GraphFile) -> Result<(), Failure> {
    let mut edges = Vec::new();
    for state in 0..lts.state_count {
        edges.clear();
        edges.extend(lts.edges(state).map(|(label, target)| (label, u64::from(target))));
        file.edges(state.into(), &edges, &lts.labels)?;
    }
    Ok(())
}
