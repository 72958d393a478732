//! What a search never did: statements of the model (or rules, or transitions) that were never taken.
//!
//! A statement counts as taken if any process of its kind took it. Those at which no process ever stood are told from
//! those that were reached but never enabled.

use super::text::file_name;
use plimsoll_ir::{CommandId, ProcessId, System};
use plimsoll_model::coverage::Covered;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The statements of one kind of process that were never taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreached {
    /// The proctype, the process, or `rules`.
    pub of: String,
    /// How many statements it has.
    pub statements: usize,
    pub never_taken: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Statement {
    /// The number that other tools of the language know it by, 0 if there is none.
    pub number: u32,
    /// Empty for the file of the model.
    pub file: String,
    pub line: u32,
    pub text: String,
}

/// A kind of process, and a statement of it.
type Key = (String, Statement);

/// All statements of a model, by the kind of process that they belong to. To be made before anything is optimised away.
///
/// With every statement goes whether it was taken, or at least reached.
pub struct Listing(BTreeMap<Key, (bool, bool)>);

const RULES: &str = "rules";

impl Listing {
    pub fn of(system: &System) -> Listing {
        let mut all = BTreeMap::new();
        for number in 0..system.commands.len() {
            for (key, _) in statements(system, CommandId(number as u32)) {
                all.insert(key, (false, false));
            }
        }
        Listing(all)
    }

    /// What was never taken in a search on `system`, which may be an optimised form of the one that was listed. A
    /// statement that was at least reached says so.
    pub fn without(mut self, system: &System, covered: &Covered) -> Vec<Unreached> {
        for number in 0..system.commands.len() {
            let id = CommandId(number as u32);
            for (key, at) in statements(system, id) {
                let reached = at.is_none_or(|(process, location)| covered.is_visited(process, location));
                let status = self.0.entry(key).or_default();
                *status = (status.0 || covered.is_taken(id), status.1 || reached);
            }
        }
        let mut groups: BTreeMap<String, Unreached> = BTreeMap::new();
        for ((of, statement), (taken, reached)) in self.0 {
            let empty = || Unreached { of: of.clone(), statements: 0, never_taken: Vec::new() };
            let group = groups.entry(of.clone()).or_insert_with(empty);
            group.statements += 1;
            if !taken {
                let text =
                    if reached && of != RULES { format!("{} (reached)", statement.text) } else { statement.text };
                group.never_taken.push(Statement { text, ..statement });
            }
        }
        groups.into_values().filter(|group| !group.never_taken.is_empty()).collect()
    }
}

/// The statements that a command stands for, each with where its process must be.
fn statements(system: &System, id: CommandId) -> Vec<(Key, Option<(ProcessId, u32)>)> {
    let command = &system.commands[id.index()];
    let acts = command.acts.iter().map(|act| {
        let number = act.number.0;
        let statement = Statement { number, file: act.file.clone(), line: act.line, text: act.text.clone() };
        let at = command.at.iter().find(|(process, _)| *process == act.process).copied();
        ((kind_of_process(&act.who).to_string(), statement), at)
    });
    let acts: Vec<_> = acts.collect();
    if !acts.is_empty() {
        return acts;
    }
    let of = command.process().map_or(RULES, |process| &system.processes[process.index()].name);
    let statement = Statement { number: 0, file: String::new(), line: command.line, text: command.label.clone() };
    vec![((of.to_string(), statement), command.at.first().copied())]
}

/// Processes of one kind differ in the number behind their name.
fn kind_of_process(who: &str) -> &str {
    match who.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        Some((kind, number)) if number.bytes().all(|letter| letter.is_ascii_digit()) => kind,
        _ => who,
    }
}

/// The list for people.
pub fn show(unreached: &[Unreached], model: &str, complete: bool) -> String {
    let mut out = String::new();
    if unreached.is_empty() {
        out.push_str("every statement was taken\n");
    }
    if !complete {
        out.push_str("the search did not visit everything; never taken so far:\n");
    }
    for Unreached { of, statements, never_taken } in unreached {
        let _ = writeln!(out, "never taken in {of} ({} of {statements} statements)", never_taken.len());
        for Statement { number, file, line, text } in never_taken {
            let file = file_name(if file.is_empty() { model } else { file });
            let number = if *number == 0 { String::new() } else { format!(", state {number}") };
            let _ = writeln!(out, "    {file}:{line}{number}, {text}");
        }
    }
    out
}
