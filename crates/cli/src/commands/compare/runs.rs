//! One check in a process of its own, and how its counts compare.

use super::oracle;
use crate::child::{self, NoReport};
use crate::failure::exit;
use crate::options::{CompareOptions, name_of};
use crate::reference::Expected;
use crate::reference::peers::Tool;
use crate::reference::table::{Row, Truth};
use crate::size::parse_duration;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A check to be made.
#[derive(Debug)]
pub struct Run {
    row: Row,
    model: PathBuf,
    order: &'static str,
}

/// How it ended.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Equal {
        states: u64,
        seconds: f64,
        bytes_per_state: f64,
    },
    Different(Vec<String>),
    /// There is nothing to compare with, but the model is understood.
    Accepted(String),
    /// The model is not understood, for this reason; nor is it elsewhere.
    RefusedToo(String),
    Refused(String),
    /// The check died.
    Failed(String),
    /// A limit was reached.
    Unfinished(String),
}

/// States to visit of a model of which no counts are known.
const TRIAL_STATES: &str = "100000";
/// Time for a checker that is asked, if no limit is given.
const ORACLE_TIME: Duration = Duration::from_secs(60);

impl Run {
    pub fn new(row: &Row, model: &Path, order: &'static str) -> Run {
        Run { row: row.clone(), model: model.into(), order }
    }

    pub fn title(&self) -> String {
        format!("{} {} {}", self.row.instance, self.order, self.row.variant)
    }

    /// Starts the check, asks the oracle if there is one, and waits for both.
    pub fn perform(&self, program: &Path, options: &CompareOptions, oracle: Option<&Tool>) -> Outcome {
        let limit = options.time.as_ref().and_then(|time| parse_duration(time).ok()).unwrap_or(ORACLE_TIME);
        let truth = match oracle.map(|tool| oracle::ask(tool, &self.model, limit)) {
            None => self.row.truth.clone(),
            Some(Ok(expected)) => Truth::Counts(expected),
            Some(Err(why)) => {
                let refused = why.contains("refuses");
                Truth::Unknown { why, refused }
            }
        };
        match child::check(program, &self.model, &self.arguments(options, &truth)) {
            Ok(report) => self.judge(&truth, &report),
            Err(NoReport { code: Some(code), message }) if code == i32::from(exit::MODEL) => match truth {
                Truth::Unknown { refused: true, .. } => Outcome::RefusedToo(message),
                _ => Outcome::Refused(message),
            },
            Err(other) => Outcome::Failed(other.to_string()),
        }
    }

    /// More arguments for `check`.
    fn arguments(&self, options: &CompareOptions, truth: &Truth) -> Vec<String> {
        let (store, executor) = (options.store.to_string(), name_of(options.executor));
        let mut arguments =
            ["--order", self.order, "--store", &store, "--executor", &executor].map(String::from).to_vec();
        arguments.extend(self.row.options.iter().cloned());
        match truth {
            Truth::Counts(expected) if expected.stops() => {}
            Truth::Counts(_) => arguments.push("--keep-going".into()),
            Truth::Unknown { .. } => arguments.extend(["--max-states", TRIAL_STATES].map(String::from)),
        }
        let limits = [("--memory", &options.memory), ("--time", &options.time)];
        for (name, value) in limits.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            arguments.extend([name.to_string(), value.clone()]);
        }
        arguments
    }

    /// Compares a report with what is known.
    fn judge(&self, truth: &Truth, report: &Value) -> Outcome {
        let expected = match truth {
            Truth::Unknown { why, .. } => return Outcome::Accepted(why.clone()),
            Truth::Counts(expected) => expected,
        };
        let verdict = report["verdict"].as_str().unwrap_or("");
        let finished = report["complete"] == Value::Bool(true) || expected.stops() && verdict != "unknown";
        if report["forgotten"].as_u64().is_some_and(|forgotten| forgotten > 0) {
            return Outcome::Unfinished("memory: states were forgotten, so counts are of visits".into());
        }
        if !finished {
            return Outcome::Unfinished(report["reason"].as_str().unwrap_or("").into());
        }
        let mut differences = self.differing_counts(expected, report);
        if let Some(verdicts) = expected.verdicts.filter(|verdicts| !verdicts.contains(&verdict)) {
            differences.push(format!("verdict {verdict} instead of {}", verdicts.join(" or ")));
        }
        if !differences.is_empty() {
            return Outcome::Different(differences);
        }
        let number = |name: &str| report[name].as_f64().unwrap_or(0.0);
        let states = report["states"].as_u64().unwrap_or(0);
        Outcome::Equal { states, seconds: number("total_seconds"), bytes_per_state: number("bytes_per_state") }
    }

    fn differing_counts(&self, expected: &Expected, report: &Value) -> Vec<String> {
        let count = |name: &str| report[name].as_u64().unwrap_or(u64::MAX);
        let errors = count("deadlocks").saturating_add(count("failed_assertions")).saturating_add(count("faults"));
        let positions = report["trace"]["positions"].as_array().map_or(0, Vec::len) as u64;
        let breadth_first = |value: Option<u64>| value.filter(|_| self.order == "bfs");
        let compared = [
            ("states", expected.states, count("states")),
            ("transitions", expected.transitions, count("transitions")),
            ("levels", breadth_first(expected.levels), count("levels")),
            ("deadlocks", expected.deadlocks, count("deadlocks")),
            // SPIN goes on after a step that went wrong, and may meet more errors behind it.
            ("errors", expected.errors.filter(|&wanted| count("faults") == 0 || errors > wanted), errors),
            ("steps of the trace", breadth_first(expected.steps), positions.saturating_sub(1)),
        ];
        compared
            .into_iter()
            .filter_map(|(name, wanted, got)| Some((name, wanted?, got)))
            .filter(|(_, wanted, got)| wanted != got)
            .map(|(name, wanted, got)| format!("{name} {got} instead of {wanted}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{DEADLOCK, HOLDS};
    use serde_json::json;

    fn judge(order: &'static str, expected: Expected, report: Value) -> Outcome {
        let truth = Truth::Counts(expected);
        let row = Row { instance: "a".into(), extension: ".dve", variant: "", options: Vec::new(), truth };
        let run = Run::new(&row, Path::new("a.dve"), order);
        run.judge(&row.truth, &report)
    }

    fn differences(outcome: Outcome) -> Vec<String> {
        match outcome {
            Outcome::Different(found) => found,
            _ => Vec::new(),
        }
    }

    #[test]
    fn known_counts_are_compared() {
        let expected = Expected { states: Some(10), transitions: Some(20), levels: Some(3), ..Expected::default() };
        let report = json!({"complete": true, "states": 10, "transitions": 20, "levels": 3, "deadlocks": 5});
        assert!(matches!(judge("bfs", expected.clone(), report), Outcome::Equal { states: 10, .. }));
        let report = json!({"complete": true, "states": 10, "transitions": 21, "levels": 0, "deadlocks": 5});
        assert_eq!(differences(judge("dfs", expected.clone(), report.clone())), ["transitions 21 instead of 20"]);
        assert_eq!(differences(judge("bfs", expected.clone(), report)).len(), 2);
        let report = json!({"complete": true, "states": 11, "transitions": 22, "levels": 4, "forgotten": 1});
        assert!(matches!(judge("bfs", expected.clone(), report), Outcome::Unfinished(_)));
        let report = json!({"complete": false, "reason": "memory"});
        assert_eq!(judge("bfs", expected, report), Outcome::Unfinished("memory".into()));
    }

    #[test]
    fn verdicts_and_traces_are_compared() {
        let expected = Expected { verdicts: Some(DEADLOCK), steps: Some(2), ..Expected::default() };
        let report = json!({"complete": false, "verdict": "deadlock", "states": 7, "trace": {"positions": [0, 1, 1]}});
        assert!(matches!(judge("bfs", expected.clone(), report.clone()), Outcome::Equal { .. }));
        let holds = Expected { verdicts: Some(HOLDS), ..Expected::default() };
        assert!(matches!(judge("bfs", holds.clone(), report), Outcome::Unfinished(_)));
        let report = json!({"complete": true, "verdict": "deadlock", "trace": {"positions": [0]}});
        assert_eq!(differences(judge("bfs", expected, report.clone())), ["steps of the trace 0 instead of 2"]);
        assert_eq!(differences(judge("bfs", holds, report)), ["verdict deadlock instead of holds"]);
    }

    #[test]
    fn errors_are_counted_together() {
        let expected = Expected { errors: Some(4), ..Expected::default() };
        let report =
            json!({"complete": true, "verdict": "deadlock", "deadlocks": 2, "failed_assertions": 1, "faults": 1});
        assert!(matches!(judge("bfs", expected.clone(), report), Outcome::Equal { .. }));
        let fewer =
            json!({"complete": true, "verdict": "deadlock", "deadlocks": 2, "failed_assertions": 1, "faults": 0});
        assert_eq!(differences(judge("bfs", expected, fewer)), ["errors 3 instead of 4"]);
    }
}
