//! The representative of an orbit.
//!
//! Elements are ordered by colour. Where colours are equal, exact precision tries every order (except that
//! elements whose exchange changes nothing keep theirs) and takes the one that gives the smallest state;
//! heuristic precision takes any.

use super::Precision;
use super::cells::{Bag, Cells};
use super::colour::Colours;
use plimsoll_ir::{Layout, Symmetry, System};

pub struct Canon {
    cells: Cells,
}

/// Reused memory.
#[derive(Default)]
pub struct Scratch {
    colours: Colours,
    values: Vec<u32>,
    trial: Vec<u32>,
    best: Vec<u32>,
    /// For each element the one that takes its place.
    renamed: Vec<usize>,
    row: Vec<u32>,
}

/// Elements of equal colour, with numbers that are equal where an exchange changes nothing.
struct Tie {
    /// The place of the first of them in the order.
    place: usize,
    members: Vec<(usize, usize)>,
}

impl Canon {
    pub fn new(layout: &Layout, system: &System, symmetry: &Symmetry) -> Option<Canon> {
        Some(Canon { cells: Cells::of(layout, system, symmetry)? })
    }

    /// Replaces a state by the representative of its orbit.
    pub fn represent(&self, state: &mut [u32], precision: Precision, scratch: &mut Scratch) {
        if self.cells.active.is_empty() {
            return;
        }
        scratch.values.clear();
        scratch.values.resize(self.cells.all.len(), 0);
        for &index in &self.cells.active {
            scratch.values[index] = self.cells.all[index].slot.load(state);
        }
        self.sort_bags(&mut scratch.values, &mut scratch.row);
        scratch.colours.compute(&self.cells, &scratch.values);
        let ties = self.order(scratch);
        if ties.is_empty() || precision == Precision::Heuristic {
            self.rename(scratch);
            scratch.best.clone_from(&scratch.trial);
        } else {
            let ties = ties.into_iter().map(|tie| self.group(tie, scratch)).collect::<Vec<_>>();
            scratch.best.clear();
            self.try_orders(&ties, &mut Vec::new(), scratch);
        }
        for &index in &self.cells.active {
            self.cells.all[index].slot.store(state, scratch.best[index]);
        }
    }

    /// Only puts the bags in order.
    #[cfg(test)]
    pub fn sorted(&self, state: &mut [u32], scratch: &mut Scratch) {
        scratch.values = self.cells.all.iter().map(|cell| cell.slot.load(state)).collect();
        self.sort_bags(&mut scratch.values, &mut scratch.row);
        for (cell, &value) in self.cells.all.iter().zip(&scratch.values) {
            cell.slot.store(state, value);
        }
    }

    /// Orders the elements of each set by colour into `renamed`; returns where colours are equal.
    fn order(&self, scratch: &mut Scratch) -> Vec<Tie> {
        let mut ties = Vec::new();
        scratch.renamed.clear();
        scratch.renamed.resize(scratch.colours.of.len(), 0);
        for range in self.cells.set_starts.windows(2) {
            let mut elements: Vec<usize> = (range[0]..range[1]).collect();
            elements.sort_by_key(|&element| scratch.colours.of[element]);
            for (place, &element) in elements.iter().enumerate() {
                scratch.renamed[element] = range[0] + place;
            }
            let mut place = range[0];
            for class in elements.chunk_by(|&one, &other| scratch.colours.of[one] == scratch.colours.of[other]) {
                if class.len() > 1 {
                    ties.push(Tie { place, members: class.iter().map(|&element| (element, element)).collect() });
                }
                place += class.len();
            }
        }
        ties
    }

    /// Finds which members of a tie can be exchanged without changing the state.
    fn group(&self, mut tie: Tie, scratch: &mut Scratch) -> Tie {
        let order = scratch.renamed.clone();
        for index in 1..tie.members.len() {
            let me = tie.members[index].0;
            for earlier in 0..index {
                let (other, group) = tie.members[earlier];
                if other != group {
                    continue;
                }
                scratch.renamed.iter_mut().enumerate().for_each(|(element, name)| *name = element);
                scratch.renamed.swap(me, other);
                self.rename(scratch);
                if self.cells.active.iter().all(|&cell| scratch.trial[cell] == scratch.values[cell]) {
                    tie.members[index].1 = group;
                    break;
                }
            }
        }
        scratch.renamed = order;
        tie
    }

    /// Tries every order of the ties that could make a difference and keeps the smallest state. `chosen` holds
    /// the members of the first tie that have their place.
    fn try_orders(&self, ties: &[Tie], chosen: &mut Vec<usize>, scratch: &mut Scratch) {
        let Some((tie, rest)) = ties.split_first() else {
            self.rename(scratch);
            if scratch.best.is_empty() || scratch.trial < scratch.best {
                scratch.best.clone_from(&scratch.trial);
            }
            return;
        };
        if chosen.len() == tie.members.len() {
            return self.try_orders(rest, &mut Vec::new(), scratch);
        }
        let mut tried: Vec<usize> = Vec::new();
        for &(element, group) in &tie.members {
            if chosen.contains(&element) || tried.contains(&group) {
                continue;
            }
            tried.push(group);
            scratch.renamed[element] = tie.place + chosen.len();
            chosen.push(element);
            self.try_orders(ties, chosen, scratch);
            chosen.pop();
        }
    }

    /// The values with all elements renamed, into `trial`.
    fn rename(&self, scratch: &mut Scratch) {
        scratch.trial.clear();
        scratch.trial.resize(scratch.values.len(), 0);
        for &index in &self.cells.active {
            let cell = &self.cells.all[index];
            let mut target = index as isize;
            for coordinate in &cell.coordinates {
                let moved = scratch.renamed[coordinate.element] as isize - coordinate.element as isize;
                target += moved * coordinate.stride as isize;
            }
            let value = scratch.values[index];
            scratch.trial[target as usize] = match cell.element(value) {
                Some(element) => (value as usize + scratch.renamed[element] - element) as u32,
                None => value,
            };
        }
        self.sort_bags(&mut scratch.trial, &mut scratch.row);
    }

    fn sort_bags(&self, values: &mut [u32], row: &mut Vec<u32>) {
        for bag in &self.cells.bags {
            for slot in 1..bag.slots {
                let mut at = slot;
                while at > 0 && precedes(bag, values, at, at - 1) {
                    swap(bag, values, at, row);
                    at -= 1;
                }
            }
        }
    }
}

/// Does the slot `one` belong before `other`? Used slots come first.
fn precedes(bag: &Bag, values: &[u32], one: usize, other: usize) -> bool {
    let key = |slot: usize| {
        (std::cmp::Reverse(values[bag.flags + slot]), &values[bag.first + slot * bag.width..][..bag.width])
    };
    key(one) < key(other)
}

/// Exchanges a slot with the one before it.
fn swap(bag: &Bag, values: &mut [u32], slot: usize, row: &mut Vec<u32>) {
    let (before, here) = (bag.first + (slot - 1) * bag.width, bag.first + slot * bag.width);
    row.clear();
    row.extend_from_slice(&values[before..here]);
    values.copy_within(here..here + bag.width, before);
    values[here..here + bag.width].copy_from_slice(row);
    values.swap(bag.flags + slot - 1, bag.flags + slot);
}
