//! What an abstract run knows about single scalars, with a trail to undo it at the joints of control flow.
//!
//! A scalar is named by the number of its root (variables, then temporaries) and its position within it.
//! Only *static* places have facts: those that name the same scalar in every state. Undoing and joining cost
//! as much as was changed in between, not as much as is known.

use super::interval::Interval;
use std::collections::BTreeMap;

/// A scalar: its root and its position among the scalars of the root.
pub type Cell = (usize, u64);

/// The facts about one root, by position.
type Known = Vec<(u64, Interval)>;

pub struct Facts {
    roots: Vec<Known>,
    /// What roots knew before each change.
    trail: Vec<(usize, Known)>,
}

/// A point in time to return to.
#[derive(Clone, Copy)]
pub struct Mark(usize);

/// What a stretch of code changed.
pub struct Changes(BTreeMap<usize, Known>);

impl Facts {
    pub fn new(roots: usize) -> Facts {
        Facts { roots: vec![Vec::new(); roots], trail: Vec::new() }
    }

    pub fn get(&self, cell: Cell) -> Option<Interval> {
        self.roots[cell.0].iter().find(|(position, _)| *position == cell.1).map(|(_, values)| *values)
    }

    pub fn set(&mut self, cell: Cell, values: Interval) {
        let mut known = self.roots[cell.0].clone();
        match known.iter_mut().find(|(position, _)| *position == cell.1) {
            Some((_, old)) => *old = values,
            None => known.push((cell.1, values)),
        }
        self.replace(cell.0, known);
    }

    pub fn forget(&mut self, root: usize) {
        if !self.roots[root].is_empty() {
            self.replace(root, Vec::new());
        }
    }

    fn replace(&mut self, root: usize, known: Known) {
        let old = std::mem::replace(&mut self.roots[root], known);
        self.trail.push((root, old));
    }

    pub fn mark(&self) -> Mark {
        Mark(self.trail.len())
    }

    pub fn undo_to(&mut self, mark: Mark) {
        while self.trail.len() > mark.0 {
            let (root, known) = self.trail.pop().expect("the trail is longer than the mark");
            self.roots[root] = known;
        }
    }

    /// Undoes everything since the mark and returns what it came to.
    pub fn take_since(&mut self, mark: Mark) -> Changes {
        let changed = self.trail[mark.0..].iter().map(|(root, _)| (*root, self.roots[*root].clone())).collect();
        self.undo_to(mark);
        Changes(changed)
    }

    /// Does what was taken back again.
    pub fn redo(&mut self, changes: Changes) {
        for (root, known) in changes.0 {
            self.replace(root, known);
        }
    }

    /// Keeps what holds both now and after `changes`, which started from the same mark.
    pub fn join_since(&mut self, mark: Mark, mut changes: Changes) {
        // The oldest entry of a root after the mark is what it knew at the mark.
        for (root, before) in self.trail[mark.0..].iter() {
            changes.0.entry(*root).or_insert_with(|| before.clone());
        }
        for (root, other) in changes.0 {
            let find = |position: u64| other.iter().find(|(place, _)| *place == position).map(|(_, values)| *values);
            let known = self.roots[root].iter();
            let joined = known.filter_map(|(position, values)| Some((*position, values.hull(find(*position)?))));
            let joined = joined.collect();
            self.replace(root, joined);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Cell = (0, 0);
    const Y: Cell = (1, 3);

    #[test]
    fn both_sides_of_a_branch_are_joined() {
        let mut facts = Facts::new(3);
        facts.set(X, Interval::new(0, 5));
        facts.set(Y, Interval::new(1, 1));
        let mark = facts.mark();
        facts.set(X, Interval::new(0, 1));
        facts.set((2, 0), Interval::point(7));
        let then = facts.take_since(mark);
        assert_eq!(facts.get(X), Some(Interval::new(0, 5)));
        facts.set(Y, Interval::new(9, 9));
        facts.join_since(mark, then);
        assert_eq!(facts.get(X), Some(Interval::new(0, 5)));
        assert_eq!(facts.get(Y), Some(Interval::new(1, 9)));
        assert_eq!(facts.get((2, 0)), None, "known on one side only");
    }

    #[test]
    fn undoing_restores_what_was_forgotten() {
        let mut facts = Facts::new(2);
        facts.set(Y, Interval::point(2));
        let mark = facts.mark();
        facts.forget(1);
        facts.set(Y, Interval::point(3));
        let inner = facts.mark();
        facts.set(X, Interval::point(1));
        let changes = facts.take_since(inner);
        facts.redo(changes);
        assert_eq!((facts.get(X), facts.get(Y)), (Some(Interval::point(1)), Some(Interval::point(3))));
        facts.undo_to(mark);
        assert_eq!((facts.get(X), facts.get(Y)), (None, Some(Interval::point(2))));
    }
}
