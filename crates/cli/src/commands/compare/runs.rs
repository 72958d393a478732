//! One check in a process of its own, and how its counts compare.

use super::table::Row;
use crate::child;
use crate::options::{CompareOptions, name_of};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A check to be made.
#[derive(Debug)]
pub struct Run {
    row: Row,
    model: PathBuf,
    order: &'static str,
    overflow: &'static str,
}

/// How it ended.
#[derive(Debug)]
pub enum Outcome {
    Equal {
        states: u64,
        seconds: f64,
        bytes_per_state: f64,
    },
    Different(Vec<String>),
    /// The check died, or could not load the model.
    Failed(String),
    /// A limit was reached.
    Unfinished(String),
}

impl Run {
    pub fn new(row: &Row, model: &Path, order: &'static str, overflow: &'static str) -> Run {
        Run { row: row.clone(), model: model.into(), order, overflow }
    }

    pub fn title(&self) -> String {
        format!("{} {} {}", self.row.instance, self.order, self.overflow)
    }

    /// Starts the check and waits for it.
    pub fn perform(&self, program: &Path, options: &CompareOptions) -> Outcome {
        let (store, executor) = (name_of(options.store), name_of(options.executor));
        let fixed = ["--order", self.order, "--overflow", self.overflow, "--store", &store, "--executor", &executor];
        let limits = [("--memory", &options.memory), ("--time", &options.time)];
        let limits = limits.iter().filter_map(|(name, value)| Some([*name, value.as_deref()?]));
        let arguments: Vec<&str> = fixed.into_iter().chain(limits.flatten()).collect();
        match child::check(program, &self.model, &arguments) {
            Ok(report) => self.judge(&report),
            Err(why) => Outcome::Failed(why),
        }
    }

    /// Compares a report with the row.
    fn judge(&self, report: &Value) -> Outcome {
        let count = |name: &str| report[name].as_u64().unwrap_or(u64::MAX);
        if report["complete"] != Value::Bool(true) {
            return Outcome::Unfinished(report["reason"].as_str().unwrap_or("").into());
        }
        let error_semantics = self.overflow == "error" && self.row.states_error_semantics.is_some();
        let mut expected = vec![("states", self.row.states)];
        if error_semantics {
            expected = vec![("states", self.row.states_error_semantics)];
        } else {
            expected.extend([("transitions", self.row.transitions), ("deadlocks", self.row.deadlocks)]);
            if self.order == "bfs" {
                expected.push(("levels", self.row.bfs_levels));
            }
        }
        let differences: Vec<String> = expected
            .into_iter()
            .filter_map(|(name, wanted)| Some((name, wanted?, count(name))))
            .filter(|(_, wanted, got)| wanted != got)
            .map(|(name, wanted, got)| format!("{name} {got} instead of {wanted}"))
            .collect();
        if differences.is_empty() {
            let number = |name: &str| report[name].as_f64().unwrap_or(0.0);
            let bytes_per_state = number("bytes_per_state");
            Outcome::Equal { states: count("states"), seconds: number("total_seconds"), bytes_per_state }
        } else {
            Outcome::Different(differences)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judge(order: &'static str, overflow: &'static str, report: Value) -> Outcome {
        let row = Row {
            instance: "a.1".into(),
            states: Some(10),
            transitions: Some(20),
            bfs_levels: Some(3),
            deadlocks: None,
            states_error_semantics: Some(7),
        };
        Run::new(&row, Path::new("a.1.dve"), order, overflow).judge(&report)
    }

    #[test]
    fn known_counts_are_compared() {
        let report = json!({"complete": true, "states": 10, "transitions": 20, "levels": 3, "deadlocks": 5});
        assert!(matches!(judge("bfs", "wrap", report.clone()), Outcome::Equal { states: 10, .. }));
        assert!(
            matches!(judge("bfs", "error", report), Outcome::Different(found) if found == ["states 10 instead of 7"])
        );
        let report = json!({"complete": true, "states": 10, "transitions": 21, "levels": 0, "deadlocks": 5});
        assert!(matches!(judge("dfs", "wrap", report.clone()), Outcome::Different(found) if found.len() == 1));
        assert!(matches!(judge("bfs", "wrap", report), Outcome::Different(found) if found.len() == 2));
        let report = json!({"complete": false, "reason": "memory"});
        assert!(matches!(judge("bfs", "wrap", report), Outcome::Unfinished(why) if why == "memory"));
    }
}
