//! All violations, one after the other: a search ends with the nearest, what it found is masked, and another search looks for
//! the nearest of the rest. So each has a shortest trace, and searches need not know.

use crate::executor::Executor;
use plimsoll_ir::Instances;
use plimsoll_model::{Around, Interp, Model, Successors};
use plimsoll_search::{Ask, Violation, Walk, What};
use std::collections::HashSet;

/// A model in which some of what is wrong does not count.
pub struct Masked<'a> {
    inner: &'a dyn Model,
    interp: &'a Interp,
    numbers: Instances,
    properties: HashSet<u32>,
    statements: HashSet<Statement>,
}

/// A statement that goes wrong in a certain way, wherever it is taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Statement {
    message: String,
    file: String,
    line: u32,
}

impl<'a> Masked<'a> {
    /// Nothing for graphs, in which nothing but one deadlock can be wrong.
    pub fn new(executor: &'a Executor) -> Option<Masked<'a>> {
        let interp = executor.interp()?;
        let numbers = Instances::of(&interp.system().commands);
        let (properties, statements) = (HashSet::new(), HashSet::new());
        Some(Masked { inner: executor.model(), interp, numbers, properties, statements })
    }

    /// Masks what was found; false if that makes no difference.
    pub fn mask(&mut self, violation: &Violation, ask: &mut Ask) -> bool {
        match violation.what {
            What::Deadlock => std::mem::take(&mut ask.deadlocks),
            What::Property(number) => self.properties.insert(number),
            What::Fault | What::Assertion => {
                let statement = self.last(&violation.trace.positions);
                statement.is_some_and(|statement| self.statements.insert(statement))
            }
        }
    }

    /// What goes wrong in the last step of a path; nothing if that is the start.
    fn last(&self, positions: &[u32]) -> Option<Statement> {
        let (last, before) = positions.split_last().filter(|(_, before)| !before.is_empty())?;
        let mut walk = Walk::new(self.inner);
        before.iter().try_for_each(|&position| walk.take(position).map(|_| ())).ok()?;
        self.wrong(walk.state(), *last as usize)
    }

    /// The statement that goes wrong on the way to a successor.
    fn wrong(&self, state: &[u32], position: usize) -> Option<Statement> {
        let mut before = state.to_vec();
        for (step, after) in self.interp.path(state, position) {
            if !step.is_plain() {
                let command = &self.interp.system().commands[self.numbers.command(step.instance()).index()];
                let (file, line) =
                    command.acts.last().map_or((String::new(), command.line), |act| (act.file.clone(), act.line));
                return Some(Statement { message: self.interp.explain(&before, step)?.message, file, line });
            }
            before = after;
        }
        None
    }
}

impl Around for Masked<'_> {
    fn inner(&self) -> &dyn Model {
        self.inner
    }

    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        let first = out.len();
        self.inner.successors(state, out);
        for position in first..out.len() {
            let step = out.step(position);
            if step.is_plain()
                || !self.wrong(state, position - first).is_some_and(|wrong| self.statements.contains(&wrong))
            {
                continue;
            }
            if step.is_fault() {
                // It leads nowhere new; positions stay.
                out.state_mut(position).copy_from_slice(state);
            }
            out.excuse(position);
        }
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        let first = self.inner.violated(state)?;
        let all = first..self.interp.system().properties.len() as u32;
        all.into_iter().find(|number| !self.properties.contains(number) && self.interp.violates(state, *number))
    }
}
