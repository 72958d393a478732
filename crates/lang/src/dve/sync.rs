//! `system sync`: all processes move at once.
//!
//! A step takes one transition of every process. Guards are tried in the state before; then the
//! processes move one after the other in order of declaration. There is one command per combination,
//! so only small systems are accepted. Two processes must not write the same variable in one step.

use super::lower::{Lowered, Step};
use super::value;
use crate::diagnostic::Diagnostic;
use plimsoll_ir::{Access, Command, Expr, Kind, Place, Stmt};

const MOST_COMBINATIONS: u64 = 1 << 14;

type Refused = Box<Diagnostic>;

pub fn commands(lowered: &Lowered, steps: &[Step]) -> Result<Vec<Command>, Refused> {
    for step in steps {
        if lowered.symbols.processes[step.process as usize].committed.contains(&true) {
            let message = "committed states have no meaning in a synchronous system";
            return Err(Box::new(Diagnostic::error(message, step.span)));
        }
        if step.exchange.is_some() {
            let message = "channels have no meaning in a synchronous system";
            return Err(Box::new(Diagnostic::error(message, step.span)));
        }
    }
    let count = lowered.system.processes.len();
    let mut choices: Vec<Vec<&Step>> = vec![Vec::new(); count];
    for step in steps {
        choices[step.id.index()].push(step);
    }
    let combinations = choices.iter().fold(1u64, |product, steps| product.saturating_mul(steps.len() as u64));
    if combinations.saturating_mul(count as u64) > MOST_COMBINATIONS * 8 || combinations > MOST_COMBINATIONS {
        let message = format!("the processes have more than {MOST_COMBINATIONS} combinations of transitions");
        return Err(Box::new(Diagnostic::general(message).note("a synchronous system needs a command for each")));
    }
    (0..combinations).map(|number| combine(lowered, &pick(&choices, number))).collect()
}

/// The combination of a number, the last process varying fastest.
fn pick<'a>(choices: &[Vec<&'a Step>], mut number: u64) -> Vec<&'a Step> {
    let mut picked: Vec<&Step> = Vec::with_capacity(choices.len());
    for steps in choices.iter().rev() {
        picked.push(steps[(number % steps.len() as u64) as usize]);
        number /= steps.len() as u64;
    }
    picked.reverse();
    picked
}

fn combine(lowered: &Lowered, steps: &[&Step]) -> Result<Command, Refused> {
    let labels: Vec<String> = steps.iter().map(|step| lowered.label(step)).collect();
    let mut command = Command::new(labels.join(", "));
    command.line = steps.first().map_or(0, |step| step.line);
    command.kind = Kind::Other;
    command.acts = steps.iter().map(|step| lowered.act(step, Kind::Other, "")).collect();
    command.at = steps.iter().map(|step| (step.id, step.from)).collect();
    command.guard = value::all(steps.iter().map(|step| step.guard.clone()).collect());
    if conflict(steps)? {
        command.body = vec![Stmt::Fault("two processes write the same variable in one synchronous step".into())];
    } else {
        steps.iter().for_each(|step| lowered.moves(step, &mut command.body));
    }
    Ok(command)
}

/// Do two processes write the same variable? With computed indices nobody can tell beforehand.
fn conflict(steps: &[&Step]) -> Result<bool, Refused> {
    for (at, step) in steps.iter().enumerate() {
        for other in &steps[at + 1..] {
            for (one, two) in written(step).flat_map(|one| written(other).map(move |two| (one, two))) {
                if one.root != two.root {
                    continue;
                }
                match (&one.path[..], &two.path[..]) {
                    ([Access::Index(Expr::Const(a))], [Access::Index(Expr::Const(b))]) if a != b => {}
                    ([], []) | ([Access::Index(Expr::Const(_))], [Access::Index(Expr::Const(_))]) => return Ok(true),
                    _ => {
                        let message = "this writes an element of an array that another process writes in the same step";
                        let note = "in a synchronous system such indices must be constants";
                        return Err(Box::new(Diagnostic::error(message, step.span).note(note)));
                    }
                }
            }
        }
    }
    Ok(false)
}

fn written(step: &Step) -> impl Iterator<Item = &Place> + Clone {
    step.effects.iter().filter_map(|effect| match effect {
        Stmt::Assign { to, .. } => Some(to),
        _ => None,
    })
}
