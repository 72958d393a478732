//! What computes successors: chosen once, at the door of the search.

use crate::subject::Content;
use plimsoll_ir::{Command, Expr, Place, Stmt, System};
use plimsoll_model::{Graph, Interp, Jit, Model, Step};

/// The time to compile one command grows with the square of its size.
const LARGEST_COMMAND: u64 = 10_000;
/// Memory that compiling takes for each operator or statement, measured.
const COMPILE_BYTES: u64 = 1200;
/// And for its own code and tables.
const COMPILER_BYTES: u64 = 3 << 20;
/// Compiling may take this part of the budget.
const COMPILE_SHARE: u64 = 4;

/// A model that is ready to run.
pub enum Executor {
    Interp(Box<Interp>),
    Jit(Box<Jit>),
    Graph(Box<Graph>),
}

impl Executor {
    /// The interpreter, or a graph, which is its own executor.
    pub fn interpreted(content: Content) -> Executor {
        match content {
            Content::Graph(graph) => Executor::Graph(Box::new(graph)),
            Content::System(system) => Executor::Interp(Box::new(Interp::new(system))),
        }
    }

    /// Native code, as far as it can be made within the budget; else the interpreter does the work and a note says why.
    pub fn native(content: Content, memory_bytes: u64, notes: &mut Vec<String>) -> Executor {
        let system = match content {
            Content::Graph(graph) => return Executor::Graph(Box::new(graph)),
            Content::System(system) => system,
        };
        let too_large = too_large_for_native(&system, memory_bytes);
        let interp = Interp::new(system);
        let made = match too_large {
            Some(why) => Err((interp, why)),
            None => Jit::from_interp(interp),
        };
        match made {
            Ok(jit) => Executor::Jit(Box::new(jit)),
            Err((interp, why)) => {
                notes.push(format!("no native code, so the interpreter was used: {why}"));
                Executor::Interp(Box::new(interp))
            }
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Executor::Interp(_) => "interp",
            Executor::Jit(_) => "jit",
            Executor::Graph(_) => "graph",
        }
    }

    /// The executor as a model.
    pub fn model(&self) -> &dyn Model {
        match self {
            Executor::Interp(interp) => interp.as_ref(),
            Executor::Jit(jit) => jit.as_ref(),
            Executor::Graph(graph) => graph.as_ref(),
        }
    }

    /// The semantics: what violations are replayed on.
    pub fn reference(&self) -> &dyn Model {
        match self.interp() {
            Some(interp) => interp,
            None => self.model(),
        }
    }

    /// The interpreter, unless the model is a graph.
    pub fn interp(&self) -> Option<&Interp> {
        match self {
            Executor::Interp(interp) => Some(interp),
            Executor::Jit(jit) => Some(jit.interp()),
            Executor::Graph(_) => None,
        }
    }

    pub fn system(&self) -> Option<&System> {
        self.interp().map(Interp::system)
    }

    /// What goes wrong in a step from `before`, or in a start.
    pub fn explain(&self, before: Option<&[u32]>, step: Step) -> Option<String> {
        let interp = self.interp()?;
        let explanation = match before {
            Some(before) => interp.explain(before, step),
            None => interp.explain_initial(step),
        };
        explanation.map(|explanation| explanation.message)
    }
}

/// Why the system cannot be compiled with reasonable effort, if so.
fn too_large_for_native(system: &System, memory_bytes: u64) -> Option<String> {
    let sizes = || system.commands.iter().map(command_size);
    let (largest, all) = (sizes().max().unwrap_or(0), sizes().sum::<u64>());
    if largest > LARGEST_COMMAND {
        return Some(format!("one command has {largest} operators, the limit is {LARGEST_COMMAND}"));
    }
    let share = memory_bytes / COMPILE_SHARE;
    (COMPILER_BYTES + all * COMPILE_BYTES > share)
        .then(|| format!("compiling {all} operators takes too much of the memory"))
}

fn command_size(command: &Command) -> u64 {
    statements(&command.prelude) + expression(&command.guard) + statements(&command.body)
}

fn statements(list: &[Stmt]) -> u64 {
    list.iter()
        .map(|statement| {
            1 + match statement {
                Stmt::Assign { to, value, .. } => place(to) + expression(value),
                Stmt::Copy { to, from } => place(to) + place(from),
                Stmt::Reset(to) => place(to),
                Stmt::If { condition, then, otherwise } => {
                    expression(condition) + statements(then) + statements(otherwise)
                }
                Stmt::Block(body) | Stmt::Loop { body, .. } => statements(body),
                Stmt::Assert { condition, .. } => expression(condition),
                Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => 0,
            }
        })
        .sum()
}

fn expression(expr: &Expr) -> u64 {
    1 + match expr {
        Expr::Const(_) => 0,
        Expr::Read(from) => place(from),
        Expr::Unary(_, value) | Expr::Wrap { value, .. } => expression(value),
        Expr::Binary(_, left, right) => expression(left) + expression(right),
        Expr::Select(condition, then, otherwise) => expression(condition) + expression(then) + expression(otherwise),
    }
}

fn place(place: &Place) -> u64 {
    place.indices().map(expression).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::Scalar;

    #[test]
    fn huge_commands_and_small_budgets_are_interpreted() {
        let mut system = System::new("t");
        let x = system.var("x", Scalar::BOOL, None);
        let mut command = Command::new("c");
        command.guard = Expr::all((0..100).map(|_| Expr::equal(Expr::read(x), 0.into())));
        assert_eq!(command_size(&command), 399);
        system.commands.push(command.clone());
        let notes_with = |system: &System, memory| {
            let mut notes = Vec::new();
            let executor = Executor::native(Content::System(system.clone()), memory, &mut notes);
            assert_eq!(executor.name() == "jit", notes.is_empty());
            notes.len()
        };
        assert_eq!((notes_with(&system, 1 << 30), notes_with(&system, 1 << 20)), (0, 1));
        command.body = (0..5_000).map(|_| Stmt::assign(x, 1, plimsoll_ir::Narrow::Wrap)).collect();
        system.commands.push(command);
        assert_eq!(notes_with(&system, 1 << 30), 1);
    }
}
