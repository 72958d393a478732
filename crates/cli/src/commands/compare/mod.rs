//! `plimsoll compare`: check many models and compare the counts with a table.
//!
//! Every check is a process of its own, so that one that dies is a row of the result and not the end.

mod runs;
mod table;

use crate::failure::{Failure, exit};
use crate::options::{CompareOptions, OrderChoice, OverflowChoice};
use crate::output::Output;
use crate::size::{show_count, show_seconds};
use crate::{child, interrupt};
use runs::{Outcome, Run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use table::Row;

/// How many runs ended how.
#[derive(Debug, Default)]
struct Tally {
    equal: usize,
    different: usize,
    failed: usize,
    unfinished: usize,
    states: u64,
}

/// Runs the command.
pub fn run(options: &CompareOptions, out: &mut Output) -> Result<u8, Failure> {
    let counts = options.counts.clone().unwrap_or_else(|| options.folder.join("counts.csv"));
    let rows = table::read(&counts).map_err(|why| Failure::usage(format!("{}: {why}", counts.display())))?;
    let (runs, missing, left_out) = plan_runs(&rows, options);
    if runs.is_empty() && missing.is_empty() {
        return Err(Failure::usage("no instance of the table is left to check"));
    }
    let start = Instant::now();
    let program = child::program()?;
    let tally = interrupt::while_searching(|| perform(&program, &runs, options, out));
    for name in &missing {
        out.print(&format!("MISSING    {name}: no such model file\n"));
    }
    let time = show_seconds(start.elapsed().as_secs_f64());
    out.print(&format!(
        "{} runs in {time}: {} equal, {} different, {} failed, {} unfinished, {} without file; {left_out} instances left out; {} states\n",
        runs.len(),
        tally.equal,
        tally.different,
        tally.failed,
        tally.unfinished,
        missing.len(),
        show_count(tally.states)
    ));
    Ok(match tally {
        Tally { different: 0, failed: 0, unfinished: 0, .. } if missing.is_empty() => 0,
        Tally { different: 0, failed: 0, .. } if missing.is_empty() => exit::UNKNOWN,
        _ => exit::DIFFERENT,
    })
}

/// Which checks to make, which models are missing, and how many instances were left out.
fn plan_runs(rows: &[Row], options: &CompareOptions) -> (Vec<Run>, Vec<String>, usize) {
    let (mut runs, mut missing, mut left_out) = (Vec::new(), Vec::new(), 0);
    let orders: &[&'static str] = match options.order {
        OrderChoice::Bfs => &["bfs"],
        OrderChoice::Dfs => &["dfs"],
        OrderChoice::Both => &["bfs", "dfs"],
    };
    for row in rows {
        let wanted = options.filter.as_ref().is_none_or(|text| row.instance.contains(text.as_str()));
        if !wanted || row.states.is_none_or(|states| states > options.max_states) {
            left_out += 1;
            continue;
        }
        let Some(model) = model_file(&options.folder, &row.instance) else {
            missing.push(row.instance.clone());
            continue;
        };
        for order in orders {
            if options.overflow != OverflowChoice::Error {
                runs.push(Run::new(row, &model, order, "wrap"));
            }
            let differs = row.states_error_semantics.is_some_and(|states| states <= options.max_states);
            if options.overflow == OverflowChoice::Error || options.overflow == OverflowChoice::Both && differs {
                runs.push(Run::new(row, &model, order, "error"));
            }
        }
    }
    (runs, missing, left_out)
}

fn model_file(folder: &Path, instance: &str) -> Option<PathBuf> {
    let name = format!("{instance}.dve");
    [folder.join("models").join(&name), folder.join(&name)].into_iter().find(|path| path.is_file())
}

/// Makes all runs, several at a time, and prints each when it and those before it are done.
fn perform(program: &Path, runs: &[Run], options: &CompareOptions, out: &mut Output) -> Tally {
    let mut tally = Tally::default();
    let mut waiting = BTreeMap::new();
    let mut printed = 0;
    let work = |index: usize, send: &mut dyn FnMut((usize, Outcome))| {
        send((index, runs[index].perform(program, options)));
    };
    child::each(runs.len(), options.jobs, work, |(index, outcome)| {
        waiting.insert(index, outcome);
        while let Some(outcome) = waiting.remove(&printed) {
            tally.add(&runs[printed], &outcome, options.quiet, out);
            printed += 1;
        }
    });
    tally.unfinished = runs.len() - tally.equal - tally.different - tally.failed;
    tally
}

impl Tally {
    fn add(&mut self, run: &Run, outcome: &Outcome, quiet: bool, out: &mut Output) {
        let title = run.title();
        match outcome {
            Outcome::Equal { states, seconds, bytes_per_state } => {
                self.equal += 1;
                self.states += states;
                if !quiet {
                    let (states, time) = (show_count(*states), show_seconds(*seconds));
                    out.print(&format!(
                        "equal      {title:<34} {states:>14} states {time:>10} {bytes_per_state:>7.1} B/state\n"
                    ));
                }
            }
            Outcome::Different(differences) => {
                self.different += 1;
                out.print(&format!("DIFFERENT  {title}: {}\n", differences.join(", ")));
            }
            Outcome::Failed(why) => {
                self.failed += 1;
                out.print(&format!("FAILED     {title}: {why}\n"));
            }
            Outcome::Unfinished(why) => out.print(&format!("UNFINISHED {title}: {why}\n")),
        }
    }
}
