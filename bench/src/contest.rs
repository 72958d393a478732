//! One model, several checkers, several rounds; in each round every checker runs once, in turn.

use std::path::{Path, PathBuf};

use crate::measure::{Cost, run};
use crate::models::Model;
use plimsoll::reference::peers::{Besides, Found, Given, OURS, Tool, fill, read_ours};

/// What the report calls our checker with one worker.
const ALONE: &str = "plimsoll, one worker";
/// The same with a store that is as small as it can be.
const COMPACT: &str = "plimsoll, one worker, compact";
/// Our entries in a contest.
pub const OUR_ENTRIES: usize = 3;

/// A checker that is ready to run one model.
pub struct Contestant {
    pub name: String,
    prepare: Vec<Vec<String>>,
    search: Vec<String>,
    read: fn(&str) -> Option<Found>,
    besides: Besides,
}

/// One run: translation and compilation, then the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub prepare: Cost,
    pub search: Cost,
    pub found: Found,
}

/// All runs of one checker on one model.
pub struct Entry {
    pub name: String,
    pub runs: Vec<Run>,
    /// Why there are fewer runs than rounds.
    pub problem: Option<String>,
}

/// All runs on one model; the first three entries are ours: with one worker, with as many as there are by default, and with one and
/// `--store compact`.
pub struct Contest {
    pub model: String,
    pub states: u64,
    pub transitions: u64,
    pub entries: Vec<Entry>,
}

impl Contestant {
    /// Our checker, once with one worker, once as it is, and once with one worker and few bytes.
    pub fn ours(binary: &Path, options: &str, model: &Model) -> [Contestant; OUR_ENTRIES] {
        let mut search = vec![binary.to_string_lossy().into_owned(), "check".into(), "--json".into()];
        search.extend(options.split_whitespace().map(String::from));
        search.extend(model.options.iter().cloned());
        search.push(model.path.to_string_lossy().into_owned());
        let with = |more: &[&str]| search.iter().cloned().chain(more.iter().map(ToString::to_string)).collect();
        let (alone, compact) = (with(&["--workers", "1"]), with(&["--workers", "1", "--store", "compact"]));
        [(ALONE, alone), (OURS, search), (COMPACT, compact)].map(|(name, search)| Contestant {
            name: name.into(),
            prepare: Vec::new(),
            search,
            read: read_ours,
            besides: Besides::Nothing,
        })
    }

    pub fn peer(tool: &Tool, twin: &Path, states: Option<u64>, given: &Given) -> Contestant {
        Contestant {
            name: tool.name.into(),
            prepare: tool.prepare.iter().map(|command| fill(command, twin, states, given)).collect(),
            search: fill(tool.search, twin, states, given),
            read: tool.read,
            besides: tool.besides,
        }
    }

    /// Does the checker accept the model? Only its translator is tried.
    pub fn accepts(&self) -> Result<(), String> {
        let Some(translate) = self.prepare.first() else { return Ok(()) };
        let folder = own_folder()?;
        let tried = self.step(translate, &folder).map(|_| ());
        let _ = std::fs::remove_dir_all(&folder);
        tried
    }

    fn run(&self, folder: &Path) -> Result<Run, String> {
        let mut prepare = Cost::default();
        for command in &self.prepare {
            let (cost, ..) = self.step(command, folder)?;
            prepare = prepare.then(cost);
        }
        let (search, stdout) = self.step(&self.search, folder)?;
        let found = (self.read)(&stdout).ok_or_else(|| format!("{}: no result in its output", self.name))?;
        let search = counted(search, self.besides);
        Ok(Run { prepare, search, found })
    }

    fn step(&self, command: &[String], folder: &Path) -> Result<(Cost, String), String> {
        // A program that an earlier step made lies in the folder.
        let program = match command[0].strip_prefix("./") {
            Some(made) => folder.join(made),
            None => PathBuf::from(&command[0]),
        };
        let ended = run(&program, &command[1..], folder).map_err(|error| format!("{}: {error}", command[0]))?;
        // Our own exit code tells the verdict; that all states were visited shows in the counts.
        let verdict = |code| [ALONE, OURS, COMPACT].contains(&self.name.as_str()) && [0, 10, 11, 12].contains(&code);
        if ended.code.is_some_and(|code| code == 0 || verdict(code)) {
            return Ok((ended.cost, ended.stdout));
        }
        let complaint = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
        let first = complaint.lines().chain(ended.stdout.lines()).next().unwrap_or("no message");
        let called = program.file_name().unwrap_or_default().to_string_lossy();
        Err(format!("{}: `{called}` failed: {first}", self.name))
    }
}

/// The cost of a search without what its process did besides.
fn counted(search: Cost, besides: Besides) -> Cost {
    let cpu_s = match besides {
        Besides::Nothing => search.cpu_s,
        Besides::Pages => search.cpu_s - search.system_s,
    };
    Cost { cpu_s, ..search }
}

impl Contest {
    /// Lets all contestants run `rounds` times, each in a folder of its own.
    pub fn hold(model: &Model, contestants: Vec<Contestant>, rounds: u32) -> Result<Contest, String> {
        let mut entries: Vec<Entry> =
            contestants.iter().map(|c| Entry { name: c.name.clone(), runs: Vec::new(), problem: None }).collect();
        for _ in 0..rounds {
            for (contestant, entry) in contestants.iter().zip(&mut entries) {
                if entry.problem.is_some() {
                    continue;
                }
                let folder = own_folder()?;
                match contestant.run(&folder) {
                    Ok(run) => entry.runs.push(run),
                    Err(problem) => {
                        eprintln!("{problem}");
                        entry.problem = Some(problem);
                    }
                }
                std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            }
        }
        let ours = entries.first().and_then(|entry| entry.runs.first());
        let found = ours.map_or((0, 0), |run| (run.found.states, run.found.transitions));
        let (states, transitions) = model.counts.unwrap_or(found);
        Ok(Contest { model: model.name.clone(), states, transitions, entries })
    }

    /// Our own entries.
    pub fn ours(&self) -> [&Entry; OUR_ENTRIES] {
        [&self.entries[0], &self.entries[1], &self.entries[2]]
    }

    /// Did everybody finish, with the counts that the model expects?
    pub fn agrees(&self) -> bool {
        self.entries.iter().all(|entry| entry.problem.is_none() && self.counts_match(entry))
    }

    /// Do all runs of the entry have the counts that the model expects?
    pub fn counts_match(&self, entry: &Entry) -> bool {
        let expected = (self.states, self.transitions);
        entry.runs.iter().all(|run| (run.found.states, run.found.transitions) == expected)
    }
}

/// A folder for one run, without anything in it.
fn own_folder() -> Result<PathBuf, String> {
    let folder = std::env::temp_dir().join(format!("plimsoll-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}

impl Entry {
    /// The median over the runs.
    pub fn median(&self, value: impl Fn(&Run) -> f64) -> Option<f64> {
        median(self.runs.iter().map(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(states: u64) -> Found {
        Found { states, transitions: 20, ..Found::default() }
    }

    fn entry(states: u64) -> Entry {
        let run = Run { prepare: Cost::default(), search: Cost::default(), found: found(states) };
        Entry { name: "x".into(), runs: vec![run], problem: None }
    }

    #[test]
    fn medians() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median([5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median([4.0, 1.0, 3.0, 100.0]), Some(3.5));
    }

    #[test]
    fn what_a_process_does_besides_searching_is_left_out() {
        let cost = Cost { wall_s: 9.0, cpu_s: 8.0, system_s: 3.0, peak_bytes: 1 };
        let cpu_s = |besides| counted(cost, besides).cpu_s;
        assert_eq!(cpu_s(Besides::Nothing), 8.0);
        assert_eq!(cpu_s(Besides::Pages), 5.0);
    }

    #[test]
    fn different_counts_do_not_agree() {
        let contest = |entries| Contest { model: "m".into(), states: 7, transitions: 20, entries };
        assert!(contest(vec![entry(7), entry(7)]).agrees());
        assert!(!contest(vec![entry(7), entry(8)]).agrees());
        assert!(!contest(vec![entry(8), entry(8)]).agrees());
        let failed = Entry { problem: Some("no".into()), ..entry(7) };
        assert!(!contest(vec![entry(7), failed]).agrees());
    }

    #[test]
    fn a_failing_program_is_a_problem_not_a_panic() {
        let model = Model { name: "m".into(), ..Model::default() };
        let failing = Contestant {
            name: "sh".into(),
            prepare: Vec::new(),
            search: vec!["sh".into(), "-c".into(), "echo oh >&2; exit 3".into()],
            read: |_| None,
            besides: Besides::Nothing,
        };
        let contest = Contest::hold(&model, vec![failing], 2).unwrap();
        assert!(contest.entries[0].problem.as_ref().unwrap().ends_with("failed: oh"));
        assert!(contest.entries[0].runs.is_empty() && !contest.agrees());
    }
}
