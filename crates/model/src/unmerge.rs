//! From the steps of a merged system back to the steps it was made of.
//!
//! [`plimsoll_ir::passes::merge`] joins steps without changing what they do: the state that a merged step leads to is a state of
//! the system as it was, and the joined steps lead there one after the other. [`Unmerge`] finds them: it tries the steps
//! of that system whose statements the merged command lists, in their order. Some of those listed may not happen (a process that
//! is started by one step goes on in it, but which process that is depends on the state), so they may be passed over.

use std::collections::HashSet;

use plimsoll_ir::{Act, Instances};

use crate::{Interp, Model, Step, Successors};

/// States tried before a step is given up as one that cannot be taken apart.
const MOST_TRIED: usize = 50_000;

/// A merged system and the one it was made from.
pub struct Unmerge<'a> {
    merged: &'a Interp,
    plain: &'a Interp,
    merged_numbers: Instances,
    plain_numbers: Instances,
}

/// What the steps must lead to.
enum Goal<'a> {
    State(&'a [u32]),
    /// A failed assertion, wherever it leads.
    Violation,
    Fault,
}

impl Goal<'_> {
    fn is_met(&self, state: &[u32], step: Step) -> bool {
        match self {
            Goal::State(wanted) => !step.is_fault() && *wanted == state,
            Goal::Violation => step.is_violation(),
            Goal::Fault => step.is_fault(),
        }
    }
}

/// A state on the way, and how many of the listed statements were used up.
struct Point {
    before: Option<usize>,
    position: u32,
    state: Vec<u32>,
    used: usize,
}

impl<'a> Unmerge<'a> {
    /// `merged` must be what [`plimsoll_ir::passes::merge::merge`] makes of the system of `plain`.
    pub fn new(merged: &'a Interp, plain: &'a Interp) -> Unmerge<'a> {
        let numbers = |interp: &Interp| Instances::of(&interp.system().commands);
        Unmerge { merged, plain, merged_numbers: numbers(merged), plain_numbers: numbers(plain) }
    }

    /// The positions that lead to the initial state at `position` of the merged system, that of an initial state first.
    /// `last` tells whether the path ends with what is wrong there. Nothing if no such steps were found.
    pub fn start(&self, position: usize, last: bool) -> Option<Vec<u32>> {
        let mut out = Successors::new(self.merged.width());
        self.merged.initial(&mut out);
        let goal = goal(&out, position, last);
        let starts = &self.merged.system().starts;
        let instance = out.step(position).instance();
        let acts = match starts.is_empty() {
            true => Vec::new(),
            false => starts[Instances::of(starts).command(instance).index()].acts.iter().collect(),
        };
        let mut initial = Successors::new(self.plain.width());
        self.plain.initial(&mut initial);
        let mut points = Vec::new();
        for (position, (state, step)) in initial.iter().enumerate() {
            if goal.is_met(state, step) {
                return Some(vec![position as u32]);
            }
            if !step.is_fault() {
                points.push(Point { before: None, position: position as u32, state: state.to_vec(), used: 0 });
            }
        }
        self.find(points, &acts, &goal)
    }

    /// The positions that lead from `state`, of both systems, to its successor at `position` in the merged system.
    pub fn step(&self, state: &[u32], position: usize, last: bool) -> Option<Vec<u32>> {
        let mut out = Successors::new(self.merged.width());
        self.merged.successors(state, &mut out);
        let path = self.merged.path(state, position);
        let commands = path.iter().map(|(step, _)| self.merged_numbers.command(step.instance()));
        let acts: Vec<&Act> = commands.flat_map(|id| &self.merged.system().commands[id.index()].acts).collect();
        let from = Point { before: None, position: 0, state: state.to_vec(), used: 0 };
        let mut positions = self.find(vec![from], &acts, &goal(&out, position, last))?;
        positions.remove(0);
        Some(positions)
    }

    /// Depth first, what skips the fewest statements first.
    fn find(&self, mut points: Vec<Point>, acts: &[&Act], goal: &Goal) -> Option<Vec<u32>> {
        let mut open: Vec<usize> = (0..points.len()).rev().collect();
        let mut seen = HashSet::new();
        let mut out = Successors::new(self.plain.width());
        while let Some(number) = open.pop() {
            let (state, used) = (points[number].state.clone(), points[number].used);
            if points.len() > MOST_TRIED || !seen.insert((state.clone(), used)) {
                continue;
            }
            out.clear();
            self.plain.successors(&state, &mut out);
            let mut found = Vec::new();
            for (position, (next, step)) in out.iter().enumerate() {
                let Some(used) = self.uses(&state, position, step, acts, used) else { continue };
                if goal.is_met(next, step) {
                    let mut positions = positions(&points, number);
                    positions.push(position as u32);
                    return Some(positions);
                }
                if !step.is_fault() {
                    found.push((used, position));
                }
            }
            found.sort_by_key(|&(used, _)| std::cmp::Reverse(used));
            for (used, position) in found {
                open.push(points.len());
                let state = out.state(position).to_vec();
                points.push(Point { before: Some(number), position: position as u32, state, used });
            }
        }
        None
    }

    /// How many of `acts` are used up after the successor at `position`, if its statements come next among them.
    fn uses(&self, state: &[u32], position: usize, step: Step, acts: &[&Act], used: usize) -> Option<usize> {
        // The step shown is the first of its chain, and cheaper to have than the others.
        let first = self.follow(step, acts, used)?;
        if self.plain.system().exclusive.is_none() {
            return Some(first);
        }
        let path = self.plain.path(state, position);
        path.iter().try_fold(used, |used, (step, _)| self.follow(*step, acts, used))
    }

    fn follow(&self, step: Step, acts: &[&Act], used: usize) -> Option<usize> {
        let id = self.plain_numbers.command(step.instance());
        self.plain.system().commands[id.index()].acts.iter().try_fold(used, |used, act| {
            let ahead = acts[used..].iter().position(|listed| *listed == act)?;
            Some(used + ahead + 1)
        })
    }
}

fn goal(out: &Successors, position: usize, last: bool) -> Goal<'_> {
    let step = out.step(position);
    match step.is_fault() {
        true => Goal::Fault,
        false if last && step.is_violation() => Goal::Violation,
        false => Goal::State(out.state(position)),
    }
}

fn positions(points: &[Point], number: usize) -> Vec<u32> {
    let mut out: Vec<u32> =
        std::iter::successors(Some(number), |&at| points[at].before).map(|at| points[at].position).collect();
    out.reverse();
    out
}
