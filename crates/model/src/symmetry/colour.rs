//! Telling elements apart by what the state says about them, whatever they are called.
//!
//! Each element gets a colour that depends on the state up to renaming only: it starts equal for a set and is
//! refined by the cells that mention the element, as index or as value, together with the colours of the other
//! elements these mention. Equal colours mean "perhaps interchangeable"; a collision of hashes costs time,
//! never correctness.

use super::cells::{Cell, Cells};

/// Most rounds of refinement.
const ROUNDS: usize = 6;

/// Markers for the roles that an element can play in a cell.
const AS_VALUE: u64 = 1 << 40;
const AS_INDEX: u64 = 1 << 41;
const ITSELF: u64 = 1 << 42;

fn mix(a: u64, b: u64) -> u64 {
    let product = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ 0xd6e8_feb8_6659_fd93) as u128;
    (product as u64) ^ (product >> 64) as u64
}

/// Reused memory.
#[derive(Default)]
pub struct Colours {
    pub of: Vec<u64>,
    sums: Vec<u64>,
    units: Vec<u64>,
    sorted: Vec<u64>,
}

impl Colours {
    /// Computes the colours of all elements in a state given by the values of its cells.
    pub fn compute(&mut self, cells: &Cells, values: &[u32]) {
        self.of.clear();
        for (set, range) in cells.set_starts.windows(2).enumerate() {
            self.of.extend((range[0]..range[1]).map(|_| mix(set as u64, 7)));
        }
        let mut classes = 0;
        for _ in 0..ROUNDS {
            self.refine(cells, values);
            let now = self.count();
            if now == self.of.len() || now == classes {
                return;
            }
            classes = now;
        }
    }

    fn count(&mut self) -> usize {
        self.sorted.clone_from(&self.of);
        self.sorted.sort_unstable();
        self.sorted.dedup();
        self.sorted.len()
    }

    fn refine(&mut self, cells: &Cells, values: &[u32]) {
        self.units.clear();
        self.units.resize(cells.units, 0);
        for &index in &cells.active {
            let cell = &cells.all[index];
            if let Some(unit) = cell.unit {
                let seen = self.seen(cell, values[index]);
                self.units[unit] = self.units[unit].wrapping_add(mix(cell.family as u64, seen));
            }
        }
        self.sums.clear();
        self.sums.resize(self.of.len(), 0);
        for &index in &cells.active {
            self.contribute(&cells.all[index], values[index]);
        }
        for (colour, sum) in self.of.iter_mut().zip(&self.sums) {
            *colour = mix(*colour, *sum);
        }
    }

    /// What a value looks like without names.
    fn seen(&self, cell: &Cell, value: u32) -> u64 {
        match cell.element(value) {
            Some(element) => mix(AS_VALUE, self.of[element]),
            None => value as u64,
        }
    }

    fn contribute(&mut self, cell: &Cell, value: u32) {
        let named = cell.element(value);
        let unit = cell.unit.map_or(0, |unit| self.units[unit]);
        let base = mix(cell.family as u64, unit);
        for (role, coordinate) in cell.coordinates.iter().enumerate() {
            let me = coordinate.element;
            let seen = if named == Some(me) { ITSELF } else { self.seen(cell, value) };
            let others = self.others(cell, me, role);
            let part = mix(mix(base, AS_INDEX + role as u64), mix(seen, others));
            self.sums[me] = self.sums[me].wrapping_add(part);
        }
        if let Some(me) = named {
            let part = mix(mix(base, AS_VALUE), self.others(cell, me, usize::MAX));
            self.sums[me] = self.sums[me].wrapping_add(part);
        }
    }

    /// The other elements among the indices of a cell, as seen by `me`, which is the one at `role`.
    fn others(&self, cell: &Cell, me: usize, role: usize) -> u64 {
        let mut all = 0;
        for (number, coordinate) in cell.coordinates.iter().enumerate().filter(|(number, _)| *number != role) {
            let seen = if coordinate.element == me { ITSELF } else { self.of[coordinate.element] };
            all = mix(all, mix(number as u64, seen));
        }
        all
    }
}
