//! Native code for a [`System`], by Cranelift. Every call to Cranelift is in this folder.
//!
//! It agrees with the interpreter entry by entry: states, steps, flags, order. Only the words beside a
//! fault, which mean nothing, may differ. What runs once (initial states, explanations) is left to the
//! interpreter. Where no code can be made, [`Jit::new`] says why, and the interpreter does the work.

mod command;
mod compile;
mod emit;
mod expr;
mod known;
mod place;
mod range;
mod stmt;

use plimsoll_ir::System;

use crate::chain::Chain;
use crate::{Conventions, Interp, Model, Step, Successors};
use compile::{Compiler, Native, Part};

/// Executes a system as machine code.
pub struct Jit {
    interp: Interp,
    native: Native,
    width: usize,
    most_successors: usize,
    chain: Option<Chain>,
}

impl Jit {
    /// Compiles a verified system, or says why that is not possible here.
    pub fn new(system: System) -> Result<Jit, String> {
        Jit::from_interp(Interp::new(system)).map_err(|(_, why)| why)
    }

    /// Compiles the system of an interpreter; gives the interpreter back with the reason if that fails.
    #[allow(clippy::result_large_err, reason = "it happens once, and the interpreter is not to be lost")]
    pub fn from_interp(interp: Interp) -> Result<Jit, (Interp, String)> {
        let compiled = Compiler::new(interp.system(), interp.layout(), interp.order()).and_then(Compiler::compile);
        match compiled {
            Err(why) => Err((interp, why)),
            Ok(native) => Ok(Jit {
                native,
                width: interp.width(),
                most_successors: interp.most_successors(),
                chain: interp.chain(),
                interp,
            }),
        }
    }

    /// The semantics that the code was made from.
    pub fn interp(&self) -> &Interp {
        &self.interp
    }

    /// Bytes of machine code.
    pub fn code_bytes(&self) -> usize {
        self.native.code_bytes
    }

    /// The successors of `state`, atomic chains not yet followed.
    fn expand(&self, state: &[u32], out: &mut Successors) {
        assert_eq!(state.len(), self.width, "a state has the width of its model");
        assert_eq!(out.width(), self.width, "the buffer has the width of the model");
        out.reserve(self.most_successors);
        let (states, steps) = out.spare();
        assert!(steps.len() >= self.most_successors && states.len() >= self.most_successors * self.width);
        let mut count = 0;
        for section in &self.native.sections {
            for part in section {
                let function = match part {
                    Part::Always(function) => *function,
                    Part::Switch(slot, functions) => match functions.get(slot.load(state) as usize) {
                        Some(Some(function)) => *function,
                        _ => continue,
                    },
                };
                // SAFETY: the code reads `width` words of the state and writes no more entries than commands of this
                // section have instances in one state; with those before, at most `most_successors`, for which there
                // is room. Indices are checked against the lengths of arrays, whatever the state holds.
                count += unsafe {
                    function(state.as_ptr(), states.as_mut_ptr().add(count * self.width), steps.as_mut_ptr().add(count))
                } as usize;
            }
            if count > 0 {
                break;
            }
        }
        out.commit(count);
    }
}

impl Model for Jit {
    fn width(&self) -> usize {
        self.width
    }

    fn most_successors(&self) -> usize {
        self.most_successors
    }

    fn initial(&self, out: &mut Successors) {
        self.interp.initial(out);
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        match &self.chain {
            Some(chain) => chain.successors(|state, out| self.expand(state, out), state, out),
            None => self.expand(state, out),
        }
    }

    fn path(&self, state: &[u32], number: usize) -> Vec<(Step, Vec<u32>)> {
        self.interp.path(state, number)
    }

    fn violated(&self, state: &[u32]) -> Option<u32> {
        assert_eq!(state.len(), self.width, "a state has the width of its model");
        self.native.properties.iter().find_map(|judge| {
            // SAFETY: the code reads no more than the `width` words of the state.
            u32::try_from(unsafe { judge(state.as_ptr()) }).ok()
        })
    }

    fn accepts_end(&self, state: &[u32]) -> bool {
        assert_eq!(state.len(), self.width, "a state has the width of its model");
        // SAFETY: the code reads no more than the `width` words of the state.
        self.native.accepted.is_some_and(|judge| unsafe { judge(state.as_ptr()) } != 0)
    }

    fn conventions(&self) -> Conventions {
        self.interp.conventions()
    }

    fn independent(&self, one: Step, other: Step) -> bool {
        self.interp.independent(one, other)
    }
}
