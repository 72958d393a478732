//! Atomic chains: successors that are not states of their own but stand for their own successors.
//!
//! While the system's exclusive scalar is non-zero in a successor, that successor is replaced by its own
//! successors, in order, and so on. One that has none becomes a state after all, with the scalar zeroed.
//! The step shown is that of the chain's first command; failed assertions on the way are kept. A chain
//! that comes back to a state on its own path, or grows beyond a limit, is a fault. Both executors use
//! this file, each with its own function for plain successors.

use plimsoll_ir::Slot;

use crate::{Step, Successors};

/// A longer chain counts as one that never ends.
const DEEPEST: usize = 10_000;

/// The rule that makes chains: where the exclusive scalar lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub scalar: Slot,
}

/// The successors of one state on the current path, as a range of the common buffer.
#[derive(Clone, Debug)]
struct Level {
    first: usize,
    /// The entry that the path goes through.
    current: usize,
    end: usize,
    /// Flags of the steps that led here.
    flags: u32,
}

/// What a walk along chains works with. It lives in the list of successors, so that no walk but the first allocates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    levels: Vec<Level>,
    buffer: Successors,
    /// The state whose successors are being computed.
    from: Vec<u32>,
}

impl Scratch {
    fn new(width: usize) -> Box<Scratch> {
        Box::new(Scratch { buffer: Successors::new(width), ..Scratch::default() })
    }
}

impl Chain {
    /// Appends the successors of `state`, chains run to their ends. `raw` gives plain successors.
    pub fn successors(&self, raw: impl Fn(&[u32], &mut Successors), state: &[u32], out: &mut Successors) {
        let start = out.len();
        raw(state, out);
        if (start..out.len()).all(|index| !self.goes_on(out, index)) {
            return;
        }
        let mut scratch = out.scratch.take().unwrap_or_else(|| Scratch::new(out.width()));
        scratch.buffer.clear();
        (start..out.len()).for_each(|index| scratch.buffer.push(out.state(index), out.step(index)));
        out.truncate(start);
        self.walk(&raw, state, &mut scratch, |_, _, end, step| {
            out.push(end, step);
            true
        });
        out.scratch = Some(scratch);
    }

    /// The steps and states on the way to the `number`-th successor, which comes last.
    pub fn path(
        &self,
        raw: impl Fn(&[u32], &mut Successors),
        state: &[u32],
        number: usize,
    ) -> Option<Vec<(Step, Vec<u32>)>> {
        let mut scratch = Scratch::new(state.len());
        raw(state, &mut scratch.buffer);
        let mut found = None;
        let mut count = 0;
        self.walk(&raw, state, &mut scratch, |levels, buffer, end, step| {
            if count == number {
                let entry = |level: &Level| (buffer.step(level.current), buffer.state(level.current).to_vec());
                let mut path: Vec<_> = levels.iter().map(entry).collect();
                let (last_step, last_state) = path.last_mut().expect("a path has a step");
                last_step.0 |= step.0 & Step::FAULT;
                last_state.copy_from_slice(end);
                found = Some(path);
            }
            count += 1;
            found.is_none()
        });
        found
    }

    fn goes_on(&self, entries: &Successors, index: usize) -> bool {
        !entries.step(index).is_fault() && self.scalar.load(entries.state(index)) != 0
    }

    /// Visits the ends of all chains in order, depth first, until `visit` says to stop. The buffer holds the
    /// plain successors of `state`; `visit` gets the path, the buffer it points into, the end and its step.
    fn walk(
        &self,
        raw: &impl Fn(&[u32], &mut Successors),
        state: &[u32],
        scratch: &mut Scratch,
        mut visit: impl FnMut(&[Level], &Successors, &[u32], Step) -> bool,
    ) {
        let Scratch { levels, buffer, from } = scratch;
        levels.clear();
        levels.push(Level { first: 0, current: 0, end: buffer.len(), flags: 0 });
        while let Some(level) = levels.last() {
            if level.current == level.end {
                buffer.truncate(level.first);
                levels.pop();
                if let Some(level) = levels.last_mut() {
                    level.current += 1;
                }
                continue;
            }
            let current = level.current;
            let flags = level.flags | buffer.step(current).0 & (Step::FAULT | Step::VIOLATION);
            let first_step = Step(buffer.step(levels[0].current).instance());
            let mut end_flags = flags;
            let mut stuck = false;
            if self.goes_on(buffer, current) {
                if levels.len() >= DEEPEST || self.comes_back(levels, buffer, state) {
                    end_flags |= Step::FAULT;
                } else {
                    let first = buffer.len();
                    from.clear();
                    from.extend_from_slice(buffer.state(current));
                    raw(from, buffer);
                    if buffer.len() > first {
                        levels.push(Level { first, current: first, end: buffer.len(), flags });
                        continue;
                    }
                    self.scalar.store(from, 0);
                    stuck = true;
                }
            }
            let end: &[u32] = if stuck { from.as_slice() } else { buffer.state(current) };
            if !visit(levels, buffer, end, Step(first_step.0 | end_flags)) {
                return;
            }
            levels.last_mut().expect("the loop holds a level").current += 1;
        }
    }

    /// Does the last state of the path occur earlier on it?
    fn comes_back(&self, levels: &[Level], buffer: &Successors, start: &[u32]) -> bool {
        let (last, earlier) = levels.split_last().expect("a path has a step");
        let state = buffer.state(last.current);
        state == start || earlier.iter().any(|level| buffer.state(level.current) == state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two words: the exclusive scalar, and a number. `edges` maps (exclusive, number) to its successors.
    type Edges<'a> = &'a [((u32, u32), &'a [(u32, u32, u32)])];

    /// Exclusive scalar, number and step of a successor.
    type Entry = (u32, u32, u32);

    fn run(edges: Edges, from: (u32, u32)) -> (Vec<Entry>, Vec<Vec<Entry>>) {
        let raw = |state: &[u32], out: &mut Successors| {
            let found = edges.iter().find(|(source, _)| *source == (state[0], state[1]));
            for &(exclusive, number, step) in found.map_or(&[][..], |(_, targets)| targets) {
                out.push(&[exclusive, number], Step(step));
            }
        };
        let chain = Chain { scalar: Slot { word: 0, shift: 0, bits: 8 } };
        let mut out = Successors::new(2);
        chain.successors(raw, &[from.0, from.1], &mut out);
        let ends: Vec<_> = out.iter().map(|(state, step)| (state[0], state[1], step.0)).collect();
        let flat = |path: Vec<(Step, Vec<u32>)>| path.iter().map(|(step, s)| (s[0], s[1], step.0)).collect();
        let paths = (0..ends.len()).map(|k| flat(chain.path(raw, &[from.0, from.1], k).unwrap())).collect();
        assert!(chain.path(raw, &[from.0, from.1], ends.len()).is_none());
        (ends, paths)
    }

    #[test]
    fn a_chain_is_replaced_by_its_ends_in_order() {
        let edges: Edges =
            &[((0, 0), &[(0, 9, 1), (1, 1, 2), (0, 8, 3)]), ((1, 1), &[(1, 2, 4), (0, 3, 5)]), ((1, 2), &[(0, 4, 6)])];
        let (ends, paths) = run(edges, (0, 0));
        assert_eq!(ends, [(0, 9, 1), (0, 4, 2), (0, 3, 2), (0, 8, 3)]);
        assert_eq!(paths[0], [(0, 9, 1)]);
        assert_eq!(paths[1], [(1, 1, 2), (1, 2, 4), (0, 4, 6)]);
        assert_eq!(paths[2], [(1, 1, 2), (0, 3, 5)]);
    }

    #[test]
    fn a_stuck_chain_gives_up_its_exclusiveness() {
        let (ends, paths) = run(&[((0, 0), &[(1, 1, 2)])], (0, 0));
        assert_eq!(ends, [(0, 1, 2)]);
        assert_eq!(paths, [[(0, 1, 2)]]);
    }

    #[test]
    fn flags_are_kept_and_faults_end_a_path() {
        let edges: Edges =
            &[((0, 0), &[(1, 1, 2 | Step::VIOLATION)]), ((1, 1), &[(0, 7, 5), (1, 1, 6 | Step::FAULT), (0, 8, 7)])];
        let (ends, _) = run(edges, (0, 0));
        assert_eq!(ends[0], (0, 7, 2 | Step::VIOLATION));
        assert_eq!(ends[1].2, 2 | Step::VIOLATION | Step::FAULT);
        assert_eq!(ends[2], (0, 8, 2 | Step::VIOLATION));
    }

    #[test]
    fn a_chain_that_never_ends_is_a_fault() {
        let edges: Edges = &[((0, 0), &[(1, 1, 0)]), ((1, 1), &[(1, 2, 1), (0, 5, 3)]), ((1, 2), &[(1, 1, 2)])];
        let (ends, _) = run(edges, (0, 0));
        assert_eq!(ends.len(), 2);
        assert_eq!(ends[0].2, Step::FAULT);
        assert_eq!(ends[1], (0, 5, 0));
    }

    #[test]
    fn an_ever_growing_chain_is_a_fault() {
        let raw = |state: &[u32], out: &mut Successors| out.push(&[1, state[1] + 1], Step(0));
        let chain = Chain { scalar: Slot { word: 0, shift: 0, bits: 8 } };
        let mut out = Successors::new(2);
        chain.successors(raw, &[0, 0], &mut out);
        assert_eq!(out.steps(), [Step::FAULT]);
    }
}
