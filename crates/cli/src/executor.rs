//! What computes successors: chosen once, at the door of the search.

use crate::options::{ExecutorName, SearchOptions, SymmetryName};
use crate::size::Size;
use crate::subject::Content;
use crate::{interrupt, machine};
use plimsoll_ir::{Symmetry, System};
use plimsoll_model::symmetry::{Precision, Symmetric};
use plimsoll_model::{Covered, Graph, Interp, Jit, Model, Patience, Problem, Step};
use plimsoll_search::Walk;
use plimsoll_store::mapped;

/// Code of the compiler, and what else of the program's it takes to load a model: measured.
const COMPILER_CODE_BYTES: u64 = if cfg!(debug_assertions) { 10 << 20 } else { 6 << 20 };
/// Compiling may take this part, and whole, of what the budget leaves beside the process and that: estimates are not exact.
const COMPILE_SHARE: (u64, u64) = (2, 3);

/// A model that is ready to run.
pub enum Executor {
    Interp(Box<Interp>),
    Jit(Box<Jit>),
    Graph(Box<Graph>),
    /// One state for each orbit of the model.
    OrbitsInterp(Box<Symmetric<Interp>>),
    OrbitsJit(Box<Symmetric<Jit>>),
}

impl Executor {
    /// What was asked for: how, within how much memory, and how far symmetry is used.
    pub fn as_asked(
        (search, memory, symmetry_name): (&SearchOptions, Option<Size>, SymmetryName),
        content: Content,
        symmetry: Option<&Symmetry>,
        notes: &mut Vec<String>,
    ) -> Executor {
        let patience = interrupt::patience(memory);
        let bytes = machine::memory_budget(memory).bytes;
        let executor = match search.executor {
            ExecutorName::Interp => Executor::interpreted(content, patience),
            ExecutorName::Jit => Executor::native(content, bytes, patience, notes),
        };
        executor.within_symmetry((symmetry_name, symmetry), bytes, notes)
    }

    /// The same executor, behind a reduction by symmetry if that was asked for.
    pub fn within_symmetry(
        self,
        (name, symmetry): (SymmetryName, Option<&Symmetry>),
        memory_bytes: u64,
        notes: &mut Vec<String>,
    ) -> Executor {
        let precision = match name {
            SymmetryName::Off => return self,
            SymmetryName::Heuristic => Precision::Heuristic,
            SymmetryName::Exact => Precision::Exact,
        };
        match symmetry {
            Some(symmetry) => self.by_symmetry((symmetry, precision), memory_bytes, notes),
            None => {
                notes.push("the language of the model declares no symmetry".into());
                self
            }
        }
    }

    /// The interpreter, or a graph, which is its own executor.
    pub fn interpreted(content: Content, patience: Patience) -> Executor {
        match content {
            Content::Graph(graph) => Executor::Graph(Box::new(graph)),
            Content::System(system) => Executor::Interp(Box::new(Interp::new(system).with_patience(patience))),
        }
    }

    /// Native code, as far as it can be made within the budget; else the interpreter does the work and a note says why.
    pub fn native(content: Content, memory_bytes: u64, patience: Patience, notes: &mut Vec<String>) -> Executor {
        let system = match content {
            Content::Graph(graph) => return Executor::Graph(Box::new(graph)),
            Content::System(system) => system,
        };
        let interp = Interp::new(system).with_patience(patience);
        match Jit::within(left_for_compiling(memory_bytes), interp) {
            Ok(jit) => Executor::Jit(Box::new(jit)),
            Err((interp, why)) => {
                notes.push(format!("no native code, so the interpreter was used: {why}"));
                Executor::Interp(Box::new(interp))
            }
        }
    }

    /// The same executor behind a reduction by symmetry; as it is if there is nothing to reduce.
    fn by_symmetry(
        self,
        (symmetry, precision): (&Symmetry, Precision),
        memory_bytes: u64,
        notes: &mut Vec<String>,
    ) -> Executor {
        let Some(system) = self.system().cloned() else { return self };
        if !symmetry.fits(&system) {
            notes.push("the model declares no symmetry that can be used".into());
            return self;
        }
        let fits = "just checked";
        match self {
            Executor::Interp(inner) => {
                let orbits = Symmetric::new(*inner, &system, symmetry, precision).expect(fits);
                Executor::OrbitsInterp(Box::new(orbits))
            }
            Executor::Jit(inner) => {
                let orbits = Symmetric::new(*inner, &system, symmetry, precision).expect(fits);
                let fits = orbits.compiling_bytes() <= left_for_compiling(memory_bytes);
                Executor::OrbitsJit(Box::new(if fits { orbits.in_native_code() } else { orbits }))
            }
            other => other,
        }
    }

    /// Are states representatives of orbits?
    pub fn has_orbits(&self) -> bool {
        matches!(self, Executor::OrbitsInterp(_) | Executor::OrbitsJit(_))
    }

    /// The positions of a path of the model itself, given those of the path that was found.
    pub fn concrete(&self, positions: Vec<u32>) -> Option<Vec<u32>> {
        match self {
            Executor::OrbitsInterp(orbits) => orbits.concrete(&positions),
            Executor::OrbitsJit(orbits) => orbits.concrete(&positions),
            _ => Some(positions),
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Executor::Interp(_) | Executor::OrbitsInterp(_) => "interp",
            Executor::Jit(_) | Executor::OrbitsJit(_) => "jit",
            Executor::Graph(_) => "graph",
        }
    }

    /// The executor as a model.
    pub fn model(&self) -> &dyn Model {
        match self {
            Executor::Interp(interp) => interp.as_ref(),
            Executor::Jit(jit) => jit.as_ref(),
            Executor::Graph(graph) => graph.as_ref(),
            Executor::OrbitsInterp(orbits) => orbits.as_ref(),
            Executor::OrbitsJit(orbits) => orbits.as_ref(),
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
            Executor::OrbitsInterp(orbits) => Some(orbits.inner()),
            Executor::OrbitsJit(orbits) => Some(orbits.inner().interp()),
            Executor::Graph(_) => None,
        }
    }

    /// The executor as a model that notes what is taken; none for graphs and for orbits.
    pub fn covered(&self) -> Option<Covered<'_>> {
        match self {
            Executor::Interp(interp) => Some(Covered::new(interp.as_ref())),
            Executor::Jit(jit) => Some(Covered::new(jit.as_ref())),
            Executor::Graph(_) | Executor::OrbitsInterp(_) | Executor::OrbitsJit(_) => None,
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
        explanation.map(|explanation| match explanation.problem {
            // The message of an assertion may be nothing but its text.
            Problem::Assertion if !explanation.message.to_lowercase().contains("assertion") => {
                format!("assertion failed: {}", explanation.message)
            }
            _ => explanation.message,
        })
    }
}

impl Executor {
    /// What goes wrong in the last step of a path, if it can be followed and something does.
    pub fn problem_at_end(&self, positions: &[u32]) -> Option<String> {
        let (last, before) = positions.split_last()?;
        let mut walk = Walk::new(self.reference());
        before.iter().try_for_each(|&position| walk.take(position).map(|_| ())).ok()?;
        let state = (!before.is_empty()).then(|| walk.state().to_vec());
        let step = walk.take(*last).ok()?;
        if step.is_plain() { None } else { self.explain(state.as_deref(), step) }
    }
}

/// What compiling may take beside its code. What the process has of files now comes and goes, so it is not counted.
fn left_for_compiling(memory_bytes: u64) -> u64 {
    let process = machine::resident_bytes().saturating_sub(mapped::resident_bytes()) + COMPILER_CODE_BYTES;
    memory_bytes.saturating_sub(process) / COMPILE_SHARE.1 * COMPILE_SHARE.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::{Command, Expr, Scalar, Stmt};

    #[test]
    fn small_budgets_are_interpreted_and_huge_commands_are_not() {
        let mut system = System::new("t");
        let x = system.var("x", Scalar::BOOL, None);
        let mut command = Command::new("c");
        command.guard = Expr::all((0..100).map(|_| Expr::equal(Expr::read(x), 0.into())));
        system.commands.push(command.clone());
        let notes_with = |system: &System, memory| {
            let mut notes = Vec::new();
            let executor = Executor::native(Content::System(system.clone()), memory, Patience::default(), &mut notes);
            assert_eq!(executor.name() == "jit", notes.is_empty());
            notes.len()
        };
        assert_eq!((notes_with(&system, 1 << 30), notes_with(&system, 1 << 20)), (0, 1));
        command.body = (0..40_000).map(|_| Stmt::assign(x, 1, plimsoll_ir::Narrow::Wrap)).collect();
        system.commands.push(command);
        assert_eq!(notes_with(&system, 1 << 30), 0);
    }
}
