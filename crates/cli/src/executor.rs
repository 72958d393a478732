//! What computes successors: chosen once, at the door of the search.

use crate::options::ExecutorName;
use crate::subject::Content;
use plimsoll_ir::System;
use plimsoll_model::{Graph, Interp, Jit, Model, Step};

/// A model that is ready to run.
pub enum Executor {
    Interp(Box<Interp>),
    Jit(Box<Jit>),
    Graph(Box<Graph>),
}

impl Executor {
    /// Makes the executor that was asked for; where no native code can be made, the interpreter does the work and
    /// a note says why. A graph is its own executor.
    pub fn new(content: Content, wanted: ExecutorName, notes: &mut Vec<String>) -> Executor {
        let interp = match content {
            Content::Graph(graph) => return Executor::Graph(Box::new(graph)),
            Content::System(system) => Interp::new(system),
        };
        match wanted {
            ExecutorName::Interp => Executor::Interp(Box::new(interp)),
            ExecutorName::Jit => match Jit::from_interp(interp) {
                Ok(jit) => Executor::Jit(Box::new(jit)),
                Err((interp, why)) => {
                    notes.push(format!("no native code, so the interpreter was used: {why}"));
                    Executor::Interp(Box::new(interp))
                }
            },
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
