//! `plimsoll crosscheck`: one model under everything that must not change the answer. Whatever disagrees is shown with the
//! smallest command that still does.

mod judge;
mod settings;

use crate::child::{self, NoReport};
use crate::failure::{Failure, exit};
use crate::options::CrosscheckOptions;
use crate::output::Output;
use crate::size::{show_count, show_seconds};
use crate::{interrupt, machine, report};
use judge::{Found, judge, repeats};
use plimsoll_store::budget::write_bytes;
use serde::Serialize;
use serde_json::Value;
use settings::{Setting, Trial, trials};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What native code and a small search need beside what the process takes in any case.
const LITTLE_BYTES: u64 = 10 << 20;

/// Everything that was found out.
#[derive(Serialize)]
struct Summary {
    reference: Reference,
    runs: usize,
    agree: usize,
    /// How often a run ended without an answer, by reason.
    undecided: BTreeMap<String, usize>,
    /// What was not possible with these options, by message.
    refused: BTreeMap<String, usize>,
    disagreements: Vec<Disagreement>,
    seconds: f64,
}

#[derive(Serialize)]
struct Reference {
    command: String,
    verdict: String,
    states: u64,
    transitions: u64,
}

#[derive(Serialize)]
struct Disagreement {
    command: String,
    differences: Vec<String>,
    /// The command that it is compared with, if that is not the reference.
    instead_of: Option<String>,
}

/// How a run ended.
enum Ended {
    Report(Box<Value>),
    /// The options are not possible together.
    Refused(String),
    Died(String),
}

/// Runs the command.
pub fn run(options: &CrosscheckOptions, out: &mut Output) -> Result<u8, Failure> {
    let start = Instant::now();
    let cross = Cross { options, program: child::program()? };
    let setting = Setting::reference();
    let limit = ["--max-states".to_string(), (options.max_states.saturating_add(1)).to_string()];
    let reference = match cross.check(&setting, &limit) {
        Ended::Report(report) => *report,
        Ended::Refused(message) | Ended::Died(message) => return Err(Failure::Usage(message)),
    };
    if reference["complete"] != Value::Bool(true) {
        let reason = reference["reason"].as_str().unwrap_or("");
        out.print(&format!(
            "unknown: the reference did not end: {reason} (--max-states, --time and --memory set limits)\n"
        ));
        return Ok(exit::UNKNOWN);
    }
    let mut summary = interrupt::while_searching(|| cross.compare(&reference));
    summary.seconds = start.elapsed().as_secs_f64();
    match options.json {
        true => drop(report::write_json(&summary, out)),
        false => out.print(&text(&summary)),
    }
    Ok(match summary.disagreements.is_empty() {
        _ if interrupt::flag().load(Ordering::Relaxed) => exit::UNKNOWN,
        true => 0,
        false => exit::DIFFERENT,
    })
}

struct Cross<'a> {
    options: &'a CrosscheckOptions,
    program: PathBuf,
}

impl Cross<'_> {
    fn compare(&self, reference: &Value) -> Summary {
        let states = reference["states"].as_u64().unwrap_or(0);
        let trials = trials(states, &little_memory(reference));
        let jobs = self.options.jobs.unwrap_or_else(|| machine::processors() as u64);
        let mut ended: Vec<Option<Ended>> = trials.iter().map(|_| None).collect();
        let work = |index: usize, send: &mut dyn FnMut((usize, Ended))| {
            send((index, self.check(&trials[index].setting, &[])));
        };
        child::each(trials.len(), jobs, work, |(index, end)| ended[index] = Some(end));
        let mut summary = Summary {
            reference: Reference {
                command: self.command(&Setting::reference()),
                verdict: reference["verdict"].as_str().unwrap_or("").into(),
                states,
                transitions: reference["transitions"].as_u64().unwrap_or(0),
            },
            runs: ended.iter().flatten().count(),
            agree: 0,
            undecided: BTreeMap::new(),
            refused: BTreeMap::new(),
            disagreements: Vec::new(),
            seconds: 0.0,
        };
        for (trial, end) in trials.iter().zip(&ended) {
            let found = match end {
                None => continue,
                Some(Ended::Refused(message)) => {
                    *summary.refused.entry(kind(message)).or_default() += 1;
                    continue;
                }
                Some(Ended::Died(message)) => Ok(Found::Differs(vec![message.clone()])),
                Some(Ended::Report(report)) => differences(reference, trial, report, &ended),
            };
            match found {
                Ok(Found::Agrees) => summary.agree += 1,
                Ok(Found::Undecided(reason)) => *summary.undecided.entry(kind(&reason)).or_default() += 1,
                Ok(Found::Differs(_)) => {
                    let disagreement = self.shrunk(reference, &trial.setting);
                    let known = |other: &Disagreement| other.command == disagreement.command;
                    if !summary.disagreements.iter().any(known) {
                        summary.disagreements.push(disagreement);
                    }
                }
                Err(Repetition { differences, of }) => summary.disagreements.push(Disagreement {
                    command: self.command(&trial.setting),
                    differences,
                    instead_of: Some(self.command(&trials[of].setting)),
                }),
            }
        }
        summary
    }

    /// Leaves out options one by one as long as the run still disagrees.
    fn shrunk(&self, reference: &Value, setting: &Setting) -> Disagreement {
        let mut smallest = setting.clone();
        let mut differences = self.differing(reference, &smallest).unwrap_or_else(|| vec!["not every time".into()]);
        while let Some((simpler, found)) = smallest
            .simpler()
            .into_iter()
            .take_while(|_| !interrupt::flag().load(Ordering::Relaxed))
            .find_map(|simpler| self.differing(reference, &simpler).map(|found| (simpler, found)))
        {
            (smallest, differences) = (simpler, found);
        }
        Disagreement { command: self.command(&smallest), differences, instead_of: None }
    }

    fn differing(&self, reference: &Value, setting: &Setting) -> Option<Vec<String>> {
        match self.check(setting, &[]) {
            Ended::Died(message) => Some(vec![message]),
            Ended::Refused(_) => None,
            Ended::Report(report) => match judge(reference, &report, setting) {
                Found::Differs(differences) => Some(differences),
                Found::Agrees | Found::Undecided(_) => None,
            },
        }
    }

    fn check(&self, setting: &Setting, more: &[String]) -> Ended {
        let mut arguments = self.arguments(setting);
        if setting.memory.is_none() {
            arguments.extend(["--memory".to_string(), self.options.memory.clone()]);
        }
        arguments.extend(["--time".to_string(), self.options.time.clone()]);
        arguments.extend_from_slice(more);
        match child::report(&self.program, &self.options.model, &arguments) {
            Ok(report) => Ended::Report(Box::new(report)),
            Err(NoReport { code: Some(code), message })
                if [exit::USAGE, exit::MODEL].map(i32::from).contains(&code) =>
            {
                Ended::Refused(message)
            }
            Err(other) => Ended::Died(other.to_string()),
        }
    }

    fn arguments(&self, setting: &Setting) -> Vec<String> {
        let given = &self.options.check_options;
        let mut arguments = given.clone();
        arguments.extend(setting.arguments(given.iter().any(|option| option.starts_with("--merge"))));
        arguments
    }

    /// The command as somebody would type it.
    fn command(&self, setting: &Setting) -> String {
        let mut words = vec!["plimsoll".into(), "check".into(), self.options.model.display().to_string()];
        words.extend(self.arguments(setting).iter().map(|word| quoted(word)));
        words.join(" ")
    }
}

/// Workers found something else than one did.
struct Repetition {
    differences: Vec<String>,
    of: usize,
}

/// Compares with the reference, and with the run whose report this one must repeat.
fn differences(reference: &Value, trial: &Trial, report: &Value, all: &[Option<Ended>]) -> Result<Found, Repetition> {
    let found = judge(reference, report, &trial.setting);
    if let (Found::Agrees, Some(of)) = (&found, trial.repeats)
        && let Some(Ended::Report(one)) = &all[of]
        && one["verdict"] != "unknown"
    {
        let differences = repeats(one, report);
        if !differences.is_empty() {
            return Err(Repetition { differences, of });
        }
    }
    Ok(found)
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:,.%/+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Hardly more memory than the process takes in any case.
fn little_memory(reference: &Value) -> String {
    let plan = &reference["plan"];
    let needed = ["process_bytes", "overhead_bytes"].iter().filter_map(|name| plan[name].as_u64()).sum::<u64>();
    write_bytes((needed + LITTLE_BYTES).next_multiple_of(1 << 20))
}

/// What a reason begins with, without numbers that differ from run to run.
fn kind(reason: &str) -> String {
    let reason = reason.trim_start_matches("error: ");
    // A colon within a word, as in `layers:2`, is no end.
    let ends = [": ", "; ", " (", ", for example"].iter().filter_map(|mark| reason.find(mark));
    let mut kind = String::new();
    for c in reason[..ends.min().unwrap_or(reason.len())].trim().chars() {
        match c.is_ascii_digit() {
            true if kind.ends_with('N') => {}
            true => kind.push('N'),
            false => kind.push(c),
        }
    }
    kind
}

fn text(summary: &Summary) -> String {
    let Reference { verdict, states, transitions, command } = &summary.reference;
    let mut lines = vec![
        format!("reference: {verdict}, {} states, {} transitions", show_count(*states), show_count(*transitions)),
        format!("  {command}"),
        format!("{} runs in {}: {} agree", summary.runs, show_seconds(summary.seconds), summary.agree),
    ];
    lines.extend(summary.undecided.iter().map(|(reason, count)| format!("  {count} without an answer: {reason}")));
    lines.extend(summary.refused.iter().map(|(reason, count)| format!("  {count} not possible: {reason}")));
    for Disagreement { command, differences, instead_of } in &summary.disagreements {
        lines.push(format!("DIFFERENT: {}\n  {command}", differences.join(", ")));
        lines.extend(instead_of.iter().map(|other| format!("  but {other}")));
    }
    lines.push(match summary.disagreements.len() {
        0 => "no disagreement".into(),
        count => format!("{count} disagreements"),
    });
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!((quoted("--const"), quoted("N=3")), ("--const".into(), "N=3".into()));
        assert_eq!((quoted("x == 3"), quoted("it's")), ("'x == 3'".into(), "'it'\\''s'".into()));
    }

    #[test]
    fn reasons_of_one_kind_are_counted_together() {
        assert_eq!(kind("memory: all 5 states that the cache holds"), kind("memory: the budget is used up"));
        assert_eq!(kind("error: a cache of 12 states needs"), kind("error: a cache of 345 states needs"));
        let needs = "--strategy layers:20 keeps levels on disk, so it needs --disk, for example --disk 20G";
        assert_eq!(kind(needs), "--strategy layers:N keeps levels on disk, so it needs --disk");
    }
}
