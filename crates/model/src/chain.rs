//! Atomic chains: successors that are not states of their own but stand for their own successors.
//!
//! While the system's exclusive scalar is non-zero in a successor, that successor is replaced by its own
//! successors, in order, and so on. One that has none becomes a state after all, with the scalar zeroed.
//! The step shown is that of the chain's first command; failed assertions on the way are kept. A chain
//! that comes back to a state on its own path, or grows beyond a limit, is a fault. Both executors use
//! this file, each with its own function for plain successors.

use std::ops::Range;

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
    /// Of the words of the current entry, once it is known to go on: equal states have equal sums.
    sum: u32,
}

/// What a walk along chains works with. It lives in the list of successors, so that no walk but the first allocates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    levels: Vec<Level>,
    /// Entries that go on, or that come after such entries and wait for their turn.
    buffer: Successors,
}

impl Scratch {
    fn new(width: usize) -> Box<Scratch> {
        Box::new(Scratch { levels: Vec::new(), buffer: Successors::new(width) })
    }
}

impl Chain {
    /// Appends the successors of `state`, chains run to their ends. `raw` gives plain successors.
    pub fn successors(&self, raw: impl Fn(&[u32], &mut Successors), state: &[u32], out: &mut Successors) {
        let start = out.len();
        raw(state, out);
        let first = self.first_going_on(out, start..out.len());
        if first == out.len() {
            return;
        }
        let mut scratch = out.scratch.take().unwrap_or_else(|| Scratch::new(out.width()));
        self.walk(&raw, state, first, &mut scratch, out, |_, _, _| true);
        out.scratch = Some(scratch);
    }

    /// The steps and states on the way to the `number`-th successor, which comes last.
    pub fn path(
        &self,
        raw: impl Fn(&[u32], &mut Successors),
        state: &[u32],
        number: usize,
    ) -> Option<Vec<(Step, Vec<u32>)>> {
        let mut out = Successors::new(state.len());
        raw(state, &mut out);
        let first = self.first_going_on(&out, 0..out.len());
        let entry = |list: &Successors, index: usize| (list.step(index), list.state(index).to_vec());
        if number < first {
            return Some(vec![entry(&out, number)]);
        }
        let mut found = None;
        self.walk(&raw, state, first, &mut Scratch::new(state.len()), &mut out, |levels, buffer, out| {
            if out.len() > number {
                let mut path: Vec<_> = levels.iter().map(|level| entry(buffer, level.current)).collect();
                path.push(entry(out, number));
                found = Some(path);
            }
            found.is_none()
        });
        found
    }

    fn goes_on(&self, state: &[u32], step: Step) -> bool {
        !step.is_fault() && self.scalar.load(state) != 0
    }

    /// The first entry of a range that goes on, or the end of the range.
    fn first_going_on(&self, entries: &Successors, range: Range<usize>) -> usize {
        let Slot { word, shift, .. } = self.scalar;
        let (states, mask) = (entries.states(), self.scalar.mask() << shift);
        let mut at = range.start * entries.width() + word as usize;
        // Not by chunks: their construction divides.
        for (offset, &step) in entries.steps()[range.clone()].iter().enumerate() {
            if states[at] & mask != 0 && !Step(step).is_fault() {
                return range.start + offset;
            }
            at += entries.width();
        }
        range.end
    }

    /// Replaces the entries of `out` from `first` on, which goes on, by the ends of their chains, in order, depth
    /// first, until `ended` says to stop. It is told of new ends at the end of `out` as long as they have their own
    /// steps, with the path to where they come from and the buffer that the path points into.
    fn walk(
        &self,
        raw: &impl Fn(&[u32], &mut Successors),
        start: &[u32],
        first: usize,
        Scratch { levels, buffer }: &mut Scratch,
        out: &mut Successors,
        mut ended: impl FnMut(&[Level], &Successors, &Successors) -> bool,
    ) {
        levels.clear();
        buffer.clear();
        buffer.take_from(out, first);
        levels.push(Level { first: 0, current: 0, end: buffer.len(), flags: 0, sum: 0 });
        while let Some((level, path)) = levels.split_last_mut() {
            if level.current == level.end {
                buffer.truncate(level.first);
                levels.pop();
                if let Some(level) = levels.last_mut() {
                    level.current += 1;
                }
                continue;
            }
            let (state, step) = (buffer.state(level.current), buffer.step(level.current));
            let first = out.len();
            if !self.goes_on(state, step) {
                let next = self.first_going_on(buffer, level.current + 1..level.end);
                out.append(buffer, level.current..next);
                level.current = next - 1;
            } else if path.len() + 1 >= DEEPEST || self.comes_back(level, path, buffer, start) {
                out.push(state, Step(step.0 | Step::FAULT));
            } else {
                raw(state, out);
                if out.len() > first {
                    let next = self.first_going_on(out, first..out.len());
                    let flags = level.flags | step.flags();
                    let (at, end) = (buffer.len(), buffer.len() + out.len() - next);
                    buffer.take_from(out, next);
                    if !ended(levels, buffer, out) {
                        return;
                    }
                    rename(levels, buffer, out, first);
                    if at < end {
                        levels.push(Level { first: at, current: at, end, flags, sum: 0 });
                    } else {
                        levels.last_mut().expect("the loop holds a level").current += 1;
                    }
                    continue;
                }
                // Nobody can go on.
                out.push(state, step);
                self.scalar.store(out.state_mut(first), 0);
            }
            level.current += 1;
            if !ended(path, buffer, out) {
                return;
            }
            rename(path, buffer, out, first);
        }
    }

    /// Does the current entry of `level` occur earlier on its path? Its sum is noted.
    fn comes_back(&self, level: &mut Level, path: &[Level], buffer: &Successors, start: &[u32]) -> bool {
        let state = buffer.state(level.current);
        level.sum = state.iter().fold(0, |sum, word| sum.wrapping_add(*word));
        let is_earlier = |earlier: &Level| earlier.sum == level.sum && buffer.state(earlier.current) == state;
        (self.scalar.load(start) != 0 && start == state) || path.iter().any(is_earlier)
    }
}

/// Gives the entries of `out` from `first` on, which end chains, the first step of their path and all its flags.
fn rename(path: &[Level], buffer: &Successors, out: &mut Successors, first: usize) {
    let Some(last) = path.last() else { return };
    let mark = buffer.step(path[0].current).instance() | last.flags | buffer.step(last.current).flags();
    for step in out.steps_mut(first) {
        *step = mark | Step(*step).flags();
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
    fn ends_side_by_side_between_chains_keep_their_places() {
        let first: &[Entry] = &[(1, 1, 1), (0, 7, 2), (0, 8, 3), (1, 2, 4), (0, 9, 5)];
        let second: &[Entry] = &[(1, 2, 6), (0, 5, 7), (0, 6, 8)];
        let edges: Edges = &[((0, 0), first), ((1, 1), second), ((1, 2), &[(0, 4, 9), (0, 3, 10)])];
        let (ends, paths) = run(edges, (0, 0));
        let numbers: Vec<_> = ends.iter().map(|&(_, number, step)| (number, step)).collect();
        assert_eq!(numbers, [(4, 1), (3, 1), (5, 1), (6, 1), (7, 2), (8, 3), (4, 4), (3, 4), (9, 5)]);
        assert_eq!(paths[1], [(1, 1, 1), (1, 2, 6), (0, 3, 10)]);
        assert_eq!(paths[3], [(1, 1, 1), (0, 6, 8)]);
        assert_eq!(paths[5], [(0, 8, 3)]);
        assert_eq!(paths[7], [(1, 2, 4), (0, 3, 10)]);
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
