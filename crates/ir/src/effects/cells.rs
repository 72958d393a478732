//! Cells: the scalars of all variables, numbered, and sets of them.
//!
//! Huge arrays would make the sets huge, so a variable of many scalars is one cell, and where even that
//! is too much, several variables share a number. Coarser cells only make more commands dependent.

use crate::expr::{Access, Expr, Place, Root};
use crate::system::{System, VarId};
use crate::types::Type;

/// A variable of more scalars than this is one cell.
const EXACT_LIMIT: usize = 4096;
/// Bits that all read sets (or all write sets) together may take.
const BITS_LIMIT: usize = 1 << 29;

/// The numbering of cells.
#[derive(Clone, Debug)]
pub struct Cells {
    /// First cell of each variable, and whether its scalars have cells of their own.
    vars: Vec<(usize, bool)>,
    count: usize,
    /// No two variables share a number.
    whole: bool,
}

impl Cells {
    pub fn of(system: &System) -> Cells {
        let most = BITS_LIMIT / system.commands.len().max(1);
        let exact = Cells::numbered(system, EXACT_LIMIT);
        let mut cells = if exact.count <= most { exact } else { Cells::numbered(system, 1) };
        cells.whole = cells.count <= most.max(64);
        cells.count = cells.count.min(most.max(64));
        cells
    }

    fn numbered(system: &System, exact_limit: usize) -> Cells {
        let mut count = 0;
        let number = |ty: &Type| {
            let first = count;
            let scalars = ty.scalar_count();
            let exact = scalars <= exact_limit;
            count += if exact { scalars } else { 1 };
            (first, exact)
        };
        let vars = system.vars.iter().map(|var| &var.ty).map(number).collect();
        Cells { vars, count, whole: true }
    }

    /// The number of different cells.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The cells of a variable, one for each of its scalars; nothing if it has no cells of its own.
    pub fn of_var(&self, system: &System, var: VarId) -> Option<std::ops::Range<usize>> {
        let (first, exact) = self.vars[var.index()];
        let end = first + system.vars[var.index()].ty.scalar_count();
        (exact && end <= self.count && self.whole).then_some(first..end)
    }

    /// The empty set.
    pub fn none(&self) -> CellSet {
        CellSet { words: vec![0; self.count.div_ceil(64)] }
    }

    /// Adds the cells of a place in the state; temporaries have none.
    pub fn add(&self, system: &System, place: &Place, set: &mut CellSet) {
        let Root::Var(var) = place.root else { return };
        match self.vars[var.index()] {
            (first, true) => self.add_part(first, &system.vars[var.index()].ty, &place.path, set),
            (first, false) => set.insert(first % self.count),
        }
    }

    /// Adds what `path` leads to in a part of type `ty` that starts at cell `first`.
    fn add_part(&self, first: usize, ty: &Type, path: &[Access], set: &mut CellSet) {
        let Some((access, rest)) = path.split_first() else {
            return (first..first + ty.scalar_count()).for_each(|cell| set.insert(cell % self.count));
        };
        match (ty, access) {
            (Type::Record(fields), Access::Field(field)) => {
                let before: usize = fields[..*field as usize].iter().map(|(_, ty)| ty.scalar_count()).sum();
                self.add_part(first + before, &fields[*field as usize].1, rest, set);
            }
            (Type::Array { element, len }, Access::Index(index)) => {
                let pitch = element.scalar_count();
                let all = 0..*len as i64;
                let touched = match index {
                    // A constant index out of range is a fault, which touches nothing.
                    Expr::Const(index) if all.contains(index) => *index..*index + 1,
                    Expr::Const(_) => 0..0,
                    _ => all,
                };
                touched.for_each(|index| self.add_part(first + index as usize * pitch, element, rest, set));
            }
            _ => unreachable!("verified: paths fit their types"),
        }
    }
}

/// A set of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSet {
    words: Vec<u64>,
}

impl CellSet {
    pub fn insert(&mut self, cell: usize) {
        self.words[cell / 64] |= 1 << (cell % 64);
    }

    pub fn contains(&self, cell: usize) -> bool {
        self.words[cell / 64] >> (cell % 64) & 1 != 0
    }

    pub fn intersects(&self, other: &CellSet) -> bool {
        self.words.iter().zip(&other.words).any(|(one, other)| one & other != 0)
    }

    pub fn add_all(&mut self, other: &CellSet) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    pub fn remove_all(&mut self, other: &CellSet) {
        for (word, fewer) in self.words.iter_mut().zip(&other.words) {
            *word &= !fewer;
        }
    }

    pub fn keep_all(&mut self, other: &CellSet) {
        for (word, kept) in self.words.iter_mut().zip(&other.words) {
            *word &= kept;
        }
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Scalar;

    fn cells_of(system: &System, place: Place) -> Vec<usize> {
        let cells = Cells::of(system);
        let mut set = cells.none();
        cells.add(system, &place, &mut set);
        (0..cells.count()).filter(|&cell| set.contains(cell)).collect()
    }

    #[test]
    fn parts_of_records_in_arrays() {
        let mut system = System::new("t");
        system.var("x", Scalar::BOOL, None);
        let pair =
            Type::Record(vec![("f".into(), Scalar::BOOL.into()), ("g".into(), Type::array(Scalar::BOOL.into(), 2))]);
        let var = system.var("r", Type::array(pair, 3), None);
        let place = || Place::from(var);
        let dynamic = || Expr::read(VarId(0));
        assert_eq!(cells_of(&system, place()), (1..10).collect::<Vec<_>>());
        assert_eq!(cells_of(&system, place().index(1)), [4, 5, 6]);
        assert_eq!(cells_of(&system, place().index(1).field(1).index(1)), [6]);
        assert_eq!(cells_of(&system, place().index(dynamic()).field(1).index(0)), [2, 5, 8]);
        assert_eq!(cells_of(&system, place().index(0).field(1).index(dynamic())), [2, 3]);
        assert!(cells_of(&system, place().index(3)).is_empty());
    }

    #[test]
    fn a_huge_array_is_one_cell() {
        let mut system = System::new("t");
        let huge = system.var("h", Type::array(Scalar::BOOL.into(), 100_000), None);
        let next = system.var("x", Scalar::BOOL, None);
        assert_eq!(cells_of(&system, Place::from(huge).index(77)), [0]);
        assert_eq!(cells_of(&system, next.into()), [1]);
    }
}
