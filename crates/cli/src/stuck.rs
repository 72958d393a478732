//! Why nobody can move: where each process stands in a deadlock, and what it waits for.

use crate::executor::Executor;
use crate::view::{FieldValue, View};
use plimsoll_ir::{Command, ProcessId, System};
use serde::Serialize;

/// The last state of a path to a deadlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stuck {
    pub state: Vec<FieldValue>,
    pub waiting: Vec<Waiting>,
}

/// A process that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    pub who: String,
    /// The location, as traces call it.
    pub at: String,
    /// What it could do next if it were enabled; nothing where it has come to its end.
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Empty for the file of the model.
    pub file: String,
    pub line: u32,
    pub text: String,
}

/// What a location of a process is called that does not exist.
pub const NOWHERE: &str = "-";

/// Describes a state in which nobody can move.
pub fn stuck(executor: &Executor, view: &View, state: &[u32]) -> Stuck {
    let waiting = executor.interp().map_or(Vec::new(), |interp| {
        let (system, layout) = (interp.system(), interp.layout());
        let processes = system.processes.iter().enumerate().filter_map(|(index, process)| {
            let var = process.location.index();
            let location = layout.address(var, &system.vars[var].ty, &[]).slot(&[]).load(state);
            let at = process.locations.get(location as usize).cloned().unwrap_or_else(|| location.to_string());
            (at != NOWHERE).then(|| waiting(system, ProcessId(index as u32), location, at))
        });
        processes.collect()
    });
    Stuck { state: view.state(state), waiting }
}

fn waiting(system: &System, process: ProcessId, location: u32, at: String) -> Waiting {
    let mut waiting = Waiting { who: system.processes[process.index()].name.clone(), at, statements: Vec::new() };
    for command in system.commands.iter().filter(|command| command.at.contains(&(process, location))) {
        let (who, statement) = own(command, process);
        if let Some(who) = who {
            waiting.who = who;
        }
        if !waiting.statements.contains(&statement) {
            waiting.statements.push(statement);
        }
    }
    waiting
}

/// The part of a command that a process takes, and what the process is called in it.
fn own(command: &Command, process: ProcessId) -> (Option<String>, Statement) {
    match command.acts.iter().find(|act| act.process == process) {
        Some(act) => {
            let statement = Statement { file: act.file.clone(), line: act.line, text: act.text.clone() };
            (Some(act.who.clone()), statement)
        }
        None => (None, Statement { file: String::new(), line: command.line, text: command.label.clone() }),
    }
}
