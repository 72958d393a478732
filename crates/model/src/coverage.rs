//! Which commands were taken and which locations were visited, noted while a search runs.
//!
//! [`Covered`] is a model around a model: it computes the same successors and notes, for every state that is expanded
//! (within atomic chains too), where the processes stand and which commands lead on. Searches that do not ask for this
//! use the model itself and pay nothing.

use crate::chain::Chain;
use crate::{Around, Interp, Model, Step, Successors};
use plimsoll_ir::{CommandId, Instances, ProcessId, Slot};
use std::sync::atomic::{AtomicU64, Ordering};

/// An executor of systems, seen below its atomic chains.
pub trait Plain: Model {
    /// The interpreter that it is, or that it must agree with.
    fn interp(&self) -> &Interp;

    /// Appends the successors of `state`, atomic chains not followed.
    fn plain(&self, state: &[u32], out: &mut Successors);
}

/// A set of small numbers that only grows.
struct Bits(Vec<AtomicU64>);

impl Bits {
    fn new(len: usize) -> Bits {
        Bits((0..len.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    fn insert(&self, number: usize) {
        let Some(word) = self.0.get(number / 64) else { return };
        let bit = 1 << (number % 64);
        // Nearly always it is there already, and reading is cheaper.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn contains(&self, number: usize) -> bool {
        self.0[number / 64].load(Ordering::Relaxed) & 1 << (number % 64) != 0
    }
}

/// A model that notes what is covered.
pub struct Covered<'a> {
    inner: &'a dyn Plain,
    chain: Option<Chain>,
    numbers: Instances,
    taken: Bits,
    /// Where each process keeps its location, and the locations it was at.
    visited: Vec<(Slot, Bits)>,
}

impl<'a> Covered<'a> {
    pub fn new(inner: &'a dyn Plain) -> Covered<'a> {
        let interp = inner.interp();
        let (system, layout) = (interp.system(), interp.layout());
        let place = |process: &plimsoll_ir::Process| {
            let var = process.location.index();
            let slot = layout.address(var, &system.vars[var].ty, &[]).slot(&[]);
            (slot, Bits::new(process.locations.len()))
        };
        Covered {
            inner,
            chain: interp.chain(),
            numbers: Instances::of(&system.commands),
            taken: Bits::new(system.commands.len()),
            visited: system.processes.iter().map(place).collect(),
        }
    }

    /// Was the command ever taken?
    pub fn is_taken(&self, command: CommandId) -> bool {
        self.taken.contains(command.index())
    }

    /// Did the process ever stand at the location?
    pub fn is_visited(&self, process: ProcessId, location: u32) -> bool {
        self.visited[process.index()].1.contains(location as usize)
    }

    fn expand(&self, state: &[u32], out: &mut Successors) {
        let first = out.len();
        self.inner.plain(state, out);
        for (slot, locations) in &self.visited {
            locations.insert(slot.load(state) as usize);
        }
        for &step in &out.steps()[first..] {
            self.taken.insert(self.numbers.command(Step(step).instance()).index());
        }
    }
}

impl Around for Covered<'_> {
    fn inner(&self) -> &dyn Model {
        self.inner
    }

    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        match &self.chain {
            Some(chain) => chain.successors(|state, out| self.expand(state, out), state, out),
            None => self.expand(state, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::{Size, random_system};
    use std::collections::HashSet;

    /// Expands some states of a model, breadth first.
    fn walk(model: &dyn Model) -> Vec<(Vec<u32>, u32)> {
        let mut out = Successors::new(model.width());
        model.initial(&mut out);
        let mut open: Vec<Vec<u32>> = out.iter().map(|(state, _)| state.to_vec()).collect();
        let mut seen: HashSet<Vec<u32>> = open.iter().cloned().collect();
        let mut steps = Vec::new();
        let mut at = 0;
        while at < open.len().min(100) {
            let state = open[at].clone();
            at += 1;
            out.clear();
            model.successors(&state, &mut out);
            for (next, step) in out.iter().filter(|(_, step)| !step.is_fault()) {
                steps.push((state.clone(), step.0));
                if seen.insert(next.to_vec()) {
                    open.push(next.to_vec());
                }
            }
        }
        steps
    }

    #[test]
    fn successors_stay_the_same_and_what_is_taken_is_noted() {
        let mut untaken = 0;
        for seed in 0..60 {
            let interp = Interp::new(random_system(seed, Size::SMALL));
            let covered = Covered::new(&interp);
            let steps = walk(&interp);
            assert_eq!(walk(&covered), steps, "seed {seed}");
            let numbers = Instances::of(&interp.system().commands);
            let taken: HashSet<CommandId> =
                steps.iter().map(|&(_, step)| numbers.command(Step(step).instance())).collect();
            for command in (0..interp.system().commands.len()).map(|number| CommandId(number as u32)) {
                // Within chains, and by steps that go wrong, more may be taken than is seen from outside.
                assert!(covered.is_taken(command) || !taken.contains(&command), "seed {seed}");
                untaken += !covered.is_taken(command) as usize;
                let at = &interp.system().commands[command.index()].at;
                let visited = at.iter().all(|&(process, location)| covered.is_visited(process, location));
                assert!(visited || !covered.is_taken(command), "seed {seed}");
            }
        }
        assert!(untaken > 20, "random systems have commands that are never taken: {untaken}");
    }
}
