//! Native code for a [`System`], by Cranelift. Every call to Cranelift is in this folder.
//!
//! It agrees with the interpreter entry by entry: states, steps, flags, order. Only the words beside a
//! fault, which mean nothing, may differ. What runs once (initial states, explanations) is left to the
//! interpreter. Where no code can be made, [`Jit::new`] says why, and the interpreter does the work.

mod call;
mod command;
mod compile;
pub(crate) mod effort;
mod emit;
mod expr;
mod filters;
mod known;
mod place;
mod range;
pub(crate) mod represent;
mod shortcuts;
mod sort;
mod stmt;
mod turns;

use plimsoll_ir::{System, verify};

use crate::chain::Chain;
use crate::coverage::Plain;
use crate::{Conventions, GaveUp, Interp, Model, Patience, Step, Successors};
use call::Procedures;
use compile::{Compiler, Expand, Native, Part, Program};
use effort::Effort;

/// Executes a system as machine code.
pub struct Jit {
    interp: Interp,
    native: Native,
    width: usize,
    most_successors: usize,
    chain: Option<Chain>,
    patience: Patience,
    /// Are there loops without limit?
    unlimited: bool,
}

impl Jit {
    /// Compiles a system, or says why that is not possible here.
    pub fn new(system: System) -> Result<Jit, String> {
        Jit::from_interp(Interp::new(system)).map_err(|(_, why)| why)
    }

    /// Compiles the system of an interpreter; gives the interpreter back with the reason if that fails.
    #[allow(clippy::result_large_err, reason = "it happens once, and the interpreter is not to be lost")]
    pub fn from_interp(interp: Interp) -> Result<Jit, (Interp, String)> {
        Jit::with_effort(interp, Effort::USUAL)
    }

    /// The same with no more memory than this while code is made, that of the compiler aside: in smaller functions if need be.
    #[allow(clippy::result_large_err, reason = "as above")]
    pub fn within(bytes: u64, interp: Interp) -> Result<Jit, (Interp, String)> {
        match Effort::within(bytes, interp.system(), interp.layout()) {
            Ok(effort) => Jit::with_effort(interp, effort),
            Err(why) => Err((interp, why)),
        }
    }

    #[allow(clippy::result_large_err, reason = "as above")]
    fn with_effort(interp: Interp, effort: Effort) -> Result<Jit, (Interp, String)> {
        let compiled = verify(interp.system()).map_err(|flaws| format!("the system cannot be run: {}", flaws[0]));
        let compiled = compiled.and_then(|verified| {
            let procedures = Procedures::of(verified.system(), interp.layout());
            Compiler::new(verified, &interp, &procedures, effort)?.compile()
        });
        match compiled {
            Err(why) => Err((interp, why)),
            Ok(native) => Ok(Jit {
                native,
                width: interp.width(),
                most_successors: interp.most_successors(),
                chain: interp.chain(),
                patience: interp.patience(),
                unlimited: interp.system().commands.iter().any(|command| stmt::has_unlimited_loop(&command.body)),
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

    /// The successors of `state`, atomic chains not yet followed. That is quick for most states, so not even a call should be made for it.
    #[inline(always)]
    fn expand(&self, state: &[u32], out: &mut Successors) {
        assert_eq!(state.len(), self.width, "a state has the width of its model");
        assert_eq!(out.width(), self.width, "the buffer has the width of the model");
        let (states, steps) = out.spare(self.most_successors);
        let (states, steps) = (states.as_mut_ptr(), steps.as_mut_ptr());
        // SAFETY: the code reads `width` words of the state and writes no more entries than commands of one rank have
        // instances in one state, after those that it is told of; at most `most_successors` in all, for which there is
        // room. Indices are checked against the lengths of arrays, whatever the state holds.
        let call = |count: usize, function: Expand| unsafe {
            count + function(state.as_ptr(), states.add(count * self.width), steps.add(count)) as usize
        };
        let count = match self.native.program(state) {
            Program::Whole(function) => call(0, *function),
            Program::Divided(sections) => {
                let run = |parts: &Vec<Part>| parts.iter().filter_map(|part| part.function(state)).fold(0, call);
                sections.iter().map(run).find(|&count| count > 0).unwrap_or(0)
            }
        };
        out.commit(count);
        let last = out.len() - count..out.len();
        if self.patience.is_over() {
            out.give_up(GaveUp::Stopped);
        } else if self.unlimited && last.clone().any(|entry| out.step(entry).is_fault()) {
            // The interpreter finds out whether a loop ends that has gone on for long.
            out.truncate(last.start);
            self.interp.plain(state, out);
        }
    }

    #[inline(always)]
    fn expand_with_chains(&self, state: &[u32], out: &mut Successors) {
        let start = out.len();
        self.expand(state, out);
        if let Some(chain) = &self.chain {
            chain.run_to_ends(|state, out| self.expand(state, out), state, start, out);
        }
    }
}

impl Plain for Jit {
    fn interp(&self) -> &Interp {
        &self.interp
    }

    fn plain(&self, state: &[u32], out: &mut Successors) {
        self.expand(state, out);
    }
}

impl Model for Jit {
    fn width(&self) -> usize {
        self.width
    }

    fn used_bits(&self) -> Vec<u32> {
        self.interp.used_bits()
    }

    fn most_successors(&self) -> usize {
        self.most_successors
    }

    fn scratch_bytes(&self) -> usize {
        self.interp.scratch_bytes()
    }

    fn initial(&self, out: &mut Successors) {
        self.interp.initial(out);
    }

    fn initial_part(&self, part: u32, out: &mut Successors) -> bool {
        self.interp.initial_part(part, out)
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        self.expand_with_chains(state, out);
    }

    fn successors_of_all(&self, states: &[u32], out: &mut Successors, firsts: &mut Vec<u32>) {
        for state in states.chunks_exact(self.width) {
            firsts.push(out.len() as u32);
            if out.gave_up().is_none() {
                self.expand_with_chains(state, out);
            }
        }
    }

    fn path(&self, state: &[u32], number: usize) -> Vec<(Step, Vec<u32>)> {
        self.interp.path(state, number)
    }

    fn violated(&self, state: &[u32]) -> Option<u32> {
        assert_eq!(state.len(), self.width, "a state has the width of its model");
        let violated = self.native.properties.iter().find_map(|judge| {
            // SAFETY: the code reads no more than the `width` words of the state.
            u32::try_from(unsafe { judge(state.as_ptr()) }).ok()
        });
        violated.filter(|_| !self.patience.is_over())
    }

    fn has_properties(&self) -> bool {
        !self.native.properties.is_empty()
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

    fn kind(&self, step: Step) -> u8 {
        self.interp.kind(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::{Size, random_system};

    /// Entries of a state: steps, and the words of those that are no faults.
    fn entries(model: &Jit, state: &[u32]) -> Vec<(u32, Vec<u32>)> {
        let mut out = Successors::new(model.width());
        model.successors(state, &mut out);
        let words = |state: &[u32], step: Step| if step.is_fault() { Vec::new() } else { state.to_vec() };
        out.iter().map(|(state, step)| (step.0, words(state, step))).collect()
    }

    #[test]
    fn code_in_many_small_functions_does_the_same() {
        let (mut switches, mut divided_locations) = (0, 0);
        for seed in 0..150 {
            let system = random_system(seed, Size::LARGE);
            let whole = Jit::new(system.clone()).unwrap();
            let (function, quick) = (1 + seed as usize % 80, seed as usize % 2 * 1000);
            let small = Effort {
                function,
                quick,
                most: usize::MAX,
                large: seed as usize % 3 * 100,
                waiting: 1 + seed as usize % 5,
            };
            let Ok(parts) = Jit::with_effort(Interp::new(system), small) else { panic!("seed {seed} compiles") };
            let divided = parts.native.programs.iter().filter_map(|program| match program {
                Program::Divided(sections) => Some(sections),
                Program::Whole(_) => None,
            });
            for section in divided.flatten() {
                switches += section.iter().filter(|part| matches!(part, Part::Switch(..))).count();
                // Neighbouring parts of one process are about the same locations.
                let pairs = section.windows(2).filter(|pair| match pair {
                    [Part::Switch(one, _), Part::Switch(other, functions)] => {
                        one == other && functions.iter().any(Option::is_some)
                    }
                    _ => false,
                });
                divided_locations += pairs.count();
            }
            let mut states = Successors::new(whole.width());
            whole.initial(&mut states);
            for next in 0..300 {
                if next >= states.len() {
                    break;
                }
                let state = states.state(next).to_vec();
                if states.step(next).is_fault() {
                    continue;
                }
                assert_eq!(entries(&whole, &state), entries(&parts, &state), "seed {seed}");
                assert_eq!(whole.violated(&state), parts.violated(&state), "seed {seed}");
                whole.successors(&state, &mut states);
            }
        }
        assert!(switches > 50, "big processes are divided by location");
        assert!(divided_locations > 50, "and big locations further: {divided_locations}");
    }

    #[test]
    fn whatever_a_state_holds_the_code_agrees_with_the_interpreter() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for seed in 0..300 {
            let jit = Jit::new(random_system(seed, Size::SMALL)).unwrap();
            let (mut expected, mut found) = (Successors::new(jit.width()), Successors::new(jit.width()));
            for _ in 0..50 {
                let word = |_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 32) as u32
                };
                let state: Vec<u32> = (0..jit.width()).map(word).collect();
                expected.clear();
                found.clear();
                jit.interp().successors(&state, &mut expected);
                jit.successors(&state, &mut found);
                assert_eq!(expected.steps(), found.steps(), "seed {seed}");
                let proper = |out: &Successors| {
                    out.iter().filter(|(_, step)| !step.is_fault()).flat_map(|(state, _)| state.to_vec()).collect()
                };
                let (expected, found): (Vec<u32>, Vec<u32>) = (proper(&expected), proper(&found));
                assert_eq!(expected, found, "seed {seed}");
                assert_eq!(jit.interp().violated(&state), jit.violated(&state), "seed {seed}");
            }
        }
    }
}
