//! How many commands of a process lead from one of its locations to another, whatever holds them up.

use plimsoll_ir::walk::{Touch, stmt_places};
use plimsoll_ir::{Expr, Place, ProcessId, Stmt, System};
use std::collections::VecDeque;

/// The distance where there is no way.
pub(super) const FAR: u32 = 1_000;

/// From each location of a process, the least number of its commands that lead to a location; or away from it.
pub(super) fn steps_to(system: &System, process: ProcessId, location: usize, there: bool) -> Vec<u32> {
    let var = system.processes[process.index()].location;
    let count = system.processes[process.index()].locations.len().max(location + 1);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
    for command in &system.commands {
        let sources = command.at.iter().filter(|(who, _)| *who == process).map(|&(_, from)| from as usize);
        let sources: Vec<usize> = sources.filter(|&from| from < count).collect();
        let is_elsewhere = sources.is_empty() && command.at.iter().any(|(who, _)| *who == process);
        for to in targets(&command.body, &Place::from(var), count) {
            match sources.is_empty() && !is_elsewhere {
                true => before[to].extend(0..count),
                false => before[to].extend(&sources),
            }
        }
    }
    let mut steps = vec![FAR; count];
    let mut waiting: VecDeque<usize> = (0..count).filter(|&place| (place == location) == there).collect();
    waiting.iter().for_each(|&end| steps[end] = 0);
    while let Some(to) = waiting.pop_front() {
        for &from in &before[to] {
            if steps[from] == FAR && steps[to] + 1 < FAR {
                steps[from] = steps[to] + 1;
                waiting.push_back(from);
            }
        }
    }
    steps
}

/// Where a body may put a process: what is assigned to its place, or anything where that is not said.
pub(super) fn targets(body: &[Stmt], location: &Place, count: usize) -> Vec<usize> {
    let mut written = 0;
    stmt_places(body, &mut |touch, place| {
        written += (touch == Touch::Write && place.root == location.root) as usize;
    });
    let mut targets = Vec::new();
    constants(body, location, &mut targets);
    let said = targets.len() == written;
    targets.retain(|&target| target < count);
    if said { targets } else { (0..count).collect() }
}

/// Constants that are assigned to a place.
fn constants(body: &[Stmt], location: &Place, found: &mut Vec<usize>) {
    for stmt in body {
        match stmt {
            Stmt::Assign { to, value: Expr::Const(number), .. } if to == location => {
                found.extend(usize::try_from(*number));
            }
            Stmt::If { then, otherwise, .. } => {
                constants(then, location, found);
                constants(otherwise, location, found);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => constants(body, location, found),
            _ => {}
        }
    }
}
