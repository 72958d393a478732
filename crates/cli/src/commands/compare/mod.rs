//! `plimsoll compare`: check many models and compare the counts with a table.
//!
//! Every check is a process of its own, so that one that dies is a row of the result and not the end.

mod oracle;
mod runs;

use crate::failure::{Failure, exit};
use crate::options::{CompareOptions, OracleName, OrderChoice, OverflowChoice, name_of};
use crate::output::Output;
use crate::reference::peers::Tool;
use crate::reference::table::{self, ERROR_SEMANTICS, Row, Truth};
use crate::size::{show_count, show_seconds};
use crate::{child, interrupt};
use runs::{Outcome, Run};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// How many runs ended how.
#[derive(Debug, Default)]
struct Tally {
    equal: usize,
    different: usize,
    accepted: usize,
    refused: usize,
    refused_too: usize,
    failed: usize,
    unfinished: usize,
    states: u64,
}

/// Which checks to make, and which not.
#[derive(Default)]
struct Work {
    runs: Vec<Run>,
    missing: Vec<String>,
    too_big: usize,
    filtered: usize,
}

/// Runs the command.
pub fn run(options: &CompareOptions, out: &mut Output) -> Result<u8, Failure> {
    let tool =
        options.oracle.map(|name: OracleName| oracle::tool(&name_of(name)).map_err(Failure::usage)).transpose()?;
    let rows = match tool {
        Some(tool) => oracle::rows(&options.folder, tool)
            .map_err(|error| Failure::usage(format!("{}: {error}", options.folder.display())))?,
        None => {
            let counts = options.counts.clone().unwrap_or_else(|| options.folder.join("counts.csv"));
            table::read(&counts).map_err(|why| Failure::usage(format!("{}: {why}", counts.display())))?
        }
    };
    let work = plan_runs(&rows, options);
    if work.runs.is_empty() && work.missing.is_empty() {
        return Err(Failure::usage("no instance is left to check"));
    }
    let start = Instant::now();
    let program = child::program()?;
    let tally = interrupt::while_searching(|| perform(&program, &work.runs, options, tool, out));
    for name in &work.missing {
        out.print(&format!("MISSING    {name}: no such model file\n"));
    }
    out.print(&summary(&work, &tally, start.elapsed().as_secs_f64()));
    Ok(match tally {
        Tally { different: 0, failed: 0, unfinished: 0, refused: 0, .. } if work.missing.is_empty() => 0,
        Tally { different: 0, failed: 0, .. } if work.missing.is_empty() => exit::UNKNOWN,
        _ => exit::DIFFERENT,
    })
}

fn summary(work: &Work, tally: &Tally, seconds: f64) -> String {
    let parts = [
        (tally.equal, "equal"),
        (tally.different, "different"),
        (tally.refused, "refused"),
        (tally.refused_too, "refused as elsewhere"),
        (tally.accepted, "accepted without counts"),
        (tally.failed, "failed"),
        (tally.unfinished, "unfinished"),
        (work.missing.len(), "without file"),
        (work.too_big, "skipped as too big"),
        (work.filtered, "left out by the filter"),
    ];
    let always = ["equal", "different"];
    let shown = parts.iter().filter(|(count, word)| *count > 0 || always.contains(word));
    let shown: Vec<String> = shown.map(|(count, word)| format!("{count} {word}")).collect();
    let (runs, time, states) = (work.runs.len(), show_seconds(seconds), show_count(tally.states));
    format!("{runs} runs in {time}: {}; {states} states\n", shown.join(", "))
}

fn plan_runs(rows: &[Row], options: &CompareOptions) -> Work {
    let mut work = Work::default();
    let orders: &[&'static str] = match options.order {
        OrderChoice::Bfs => &["bfs"],
        OrderChoice::Dfs => &["dfs"],
        OrderChoice::Both => &["bfs", "dfs"],
    };
    for row in rows {
        let wanted = options.filter.as_ref().is_none_or(|text| row.instance.contains(text.as_str()));
        if !wanted || !overflow_wanted(row, rows, options.overflow) {
            work.filtered += !wanted as usize;
            continue;
        }
        if matches!(&row.truth, Truth::Counts(expected) if expected.states.is_some_and(|n| n > options.max_states)) {
            work.too_big += 1;
            continue;
        }
        match table::model_file(&options.folder, row) {
            Some(model) => work.runs.extend(orders.iter().map(|order| Run::new(row, &model, order))),
            None => work.missing.push(row.instance.clone()),
        }
    }
    work
}

/// Is this the row for the semantics of overflow asked for? Of both, only where they differ.
fn overflow_wanted(row: &Row, rows: &[Row], choice: OverflowChoice) -> bool {
    let alike = |other: &Row| other.instance == row.instance && other.truth == row.truth;
    match (row.extension, choice) {
        (".dve", OverflowChoice::Wrap) => row.variant != ERROR_SEMANTICS,
        (".dve", OverflowChoice::Error) => row.variant == ERROR_SEMANTICS,
        (".dve", OverflowChoice::Both) => {
            row.variant != ERROR_SEMANTICS || rows.iter().filter(|r| alike(r)).count() == 1
        }
        _ => true,
    }
}

/// Makes all runs, several at a time, and prints each when it and those before it are done.
fn perform(program: &Path, runs: &[Run], options: &CompareOptions, oracle: Option<&Tool>, out: &mut Output) -> Tally {
    let mut tally = Tally::default();
    let mut waiting = BTreeMap::new();
    let mut printed = 0;
    let work = |index: usize, send: &mut dyn FnMut((usize, Outcome))| {
        send((index, runs[index].perform(program, options, oracle)));
    };
    child::each(runs.len(), options.jobs, work, |(index, outcome)| {
        waiting.insert(index, outcome);
        while let Some(outcome) = waiting.remove(&printed) {
            tally.add(&runs[printed], &outcome, options.quiet, out);
            printed += 1;
        }
    });
    tally.unfinished += runs.len() - tally.all();
    tally
}

impl Tally {
    fn all(&self) -> usize {
        let Tally { equal, different, accepted, refused, refused_too, failed, unfinished, states: _ } = self;
        equal + different + accepted + refused + refused_too + failed + unfinished
    }

    fn add(&mut self, run: &Run, outcome: &Outcome, quiet: bool, out: &mut Output) {
        let (count, word, text) = match outcome {
            Outcome::Equal { states, seconds, bytes_per_state } => {
                self.states += states;
                let (states, time) = (show_count(*states), show_seconds(*seconds));
                let text = format!("{states:>14} states {time:>10} {bytes_per_state:>7.1} B/state");
                (&mut self.equal, "equal", text)
            }
            Outcome::Accepted(why) => (&mut self.accepted, "accepted", format!("nothing to compare ({why})")),
            Outcome::RefusedToo(why) => (&mut self.refused_too, "refused", why.clone()),
            Outcome::Different(differences) => (&mut self.different, "DIFFERENT", differences.join(", ")),
            Outcome::Refused(why) => (&mut self.refused, "REFUSED", why.clone()),
            Outcome::Failed(why) => (&mut self.failed, "FAILED", why.clone()),
            Outcome::Unfinished(why) => (&mut self.unfinished, "UNFINISHED", why.clone()),
        };
        *count += 1;
        let expected = word.starts_with(char::is_lowercase);
        if !(quiet && expected) {
            out.print(&format!("{word:<10} {:<34} {text}\n", run.title()));
        }
    }
}
