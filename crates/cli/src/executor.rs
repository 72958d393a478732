//! What computes successors: chosen once, at the door of the search.

use crate::options::ExecutorName;
use plimsoll_ir::System;
use plimsoll_model::{Interp, Jit, Model};

/// A model that is ready to run.
pub enum Executor {
    Interp(Box<Interp>),
    Jit(Box<Jit>),
}

impl Executor {
    /// Makes the executor that was asked for; where no native code can be made, the interpreter does the work and
    /// a note says why.
    pub fn new(system: System, wanted: ExecutorName, notes: &mut Vec<String>) -> Executor {
        let interp = Interp::new(system);
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
        }
    }

    /// The executor as a model.
    pub fn model(&self) -> &dyn Model {
        match self {
            Executor::Interp(interp) => interp.as_ref(),
            Executor::Jit(jit) => jit.as_ref(),
        }
    }

    /// The semantics: what violations are replayed on.
    pub fn interp(&self) -> &Interp {
        match self {
            Executor::Interp(interp) => interp,
            Executor::Jit(jit) => jit.interp(),
        }
    }
}
