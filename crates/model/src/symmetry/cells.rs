//! The scalars of a state with their place in the symmetry.
//!
//! Cells are numbered in the order of variables, fields and positions, so that exchanging two elements moves a
//! cell by a multiple of a fixed stride: the cells below one element of the array.

use plimsoll_ir::symmetry::{Part, Shape, Symmetry};
use plimsoll_ir::{Layout, Scalar, Slot, System, Type};

/// One index of an interchangeable element on the way to a cell.
#[derive(Clone, Copy, Debug)]
pub struct Coordinate {
    pub element: usize,
    pub stride: usize,
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub slot: Slot,
    pub coordinates: Vec<Coordinate>,
    /// Where the values of sets start: (first value, first element, count).
    pub parts: Vec<(u32, usize, u32)>,
    /// Equal for cells that differ in elements or in slots of a bag only.
    pub family: usize,
    /// The slot of an outermost bag that it belongs to.
    pub unit: Option<usize>,
}

impl Cell {
    /// The element that a value stands for.
    pub fn element(&self, value: u32) -> Option<usize> {
        let part = self.parts.iter().find(|(first, _, count)| (*first..first + count).contains(&value))?;
        Some(part.1 + (value - part.0) as usize)
    }
}

/// Slots whose order means nothing.
#[derive(Clone, Debug)]
pub struct Bag {
    /// The first cell of the first slot, cells per slot, and the cell of the first flag.
    pub first: usize,
    pub width: usize,
    pub flags: usize,
    pub slots: usize,
}

/// All cells of a system. Elements of all sets are numbered one after the other.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    pub all: Vec<Cell>,
    /// Numbers of the cells that a permutation can change or move.
    pub active: Vec<usize>,
    /// Inner bags before the bags they are in.
    pub bags: Vec<Bag>,
    pub units: usize,
    /// The first element of each set, and at the end the number of elements.
    pub set_starts: Vec<usize>,
}

impl Cells {
    /// `None` if the symmetry does not fit the variables.
    pub fn of(layout: &Layout, system: &System, symmetry: &Symmetry) -> Option<Cells> {
        if !symmetry.fits(system) {
            return None;
        }
        let mut cells = Cells { set_starts: vec![0], ..Cells::default() };
        for set in &symmetry.sets {
            cells.set_starts.push(cells.set_starts.last()? + set.size as usize);
        }
        for (index, (shape, var)) in symmetry.vars.iter().zip(&system.vars).enumerate() {
            let slots: Vec<Slot> = layout.scalars(index, &var.ty).into_iter().map(|(_, slot, _)| slot).collect();
            let mut walk = Walk { cells: &mut cells, symmetry, slots: slots.iter() };
            walk.shape(shape, &var.ty, &mut Around::default())?;
        }
        let matters = |cell: &Cell| !cell.coordinates.is_empty() || !cell.parts.is_empty() || cell.unit.is_some();
        cells.active = (0..cells.all.len()).filter(|&index| matters(&cells.all[index])).collect();
        Some(cells)
    }
}

/// What lies around the cell being made.
#[derive(Clone, Default)]
struct Around {
    coordinates: Vec<Coordinate>,
    /// What the numbers of slots of enclosing bags add to the number of a cell.
    in_slots: usize,
    unit: Option<usize>,
}

struct Walk<'a> {
    cells: &'a mut Cells,
    symmetry: &'a Symmetry,
    /// Of the scalars to come.
    slots: std::slice::Iter<'a, Slot>,
}

impl Walk<'_> {
    fn shape(&mut self, shape: &Shape, ty: &Type, around: &mut Around) -> Option<()> {
        match (shape, ty) {
            (Shape::Scalar(parts), Type::Scalar(scalar)) => self.scalar(parts, *scalar, around),
            (Shape::Record(shapes), Type::Record(fields)) => {
                shapes.iter().zip(fields).try_for_each(|(shape, (_, ty))| self.shape(shape, ty, around))
            }
            (Shape::Array { parts, element }, Type::Array { element: ty, len }) => {
                (0..*len).try_for_each(|position| self.element(parts, position, element, ty, around))
            }
            (Shape::Bag { slot }, Type::Record(fields)) => match &fields[..] {
                [(_, Type::Array { element, len }), (_, Type::Array { element: flag, .. })] => {
                    self.bag(slot, element, flag, *len as usize, around)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn scalar(&mut self, parts: &[Part], scalar: Scalar, around: &Around) -> Option<()> {
        let slot = *self.slots.next()?;
        let moved = |coordinate: &Coordinate| self.position(coordinate.element) * coordinate.stride;
        let family = self.cells.all.len() - around.coordinates.iter().map(moved).sum::<usize>() - around.in_slots;
        let mut values = Vec::new();
        for part in parts {
            if self.symmetry.holds(part, &scalar) {
                let size = self.symmetry.sets[part.set as usize].size;
                values.push((part.first, self.cells.set_starts[part.set as usize], size));
            }
        }
        let coordinates = around.coordinates.clone();
        self.cells.all.push(Cell { slot, coordinates, parts: values, family, unit: around.unit });
        Some(())
    }

    /// The position of an element in its set.
    fn position(&self, element: usize) -> usize {
        let set = self.cells.set_starts.partition_point(|&start| start <= element) - 1;
        element - self.cells.set_starts[set]
    }

    fn element(&mut self, parts: &[Part], at: u32, shape: &Shape, ty: &Type, around: &mut Around) -> Option<()> {
        let size = |part: &Part| self.symmetry.sets[part.set as usize].size;
        let part = parts.iter().find(|part| (part.first..part.first + size(part)).contains(&at));
        if let Some(part) = part {
            let element = self.cells.set_starts[part.set as usize] + (at - part.first) as usize;
            around.coordinates.push(Coordinate { element, stride: ty.scalar_count() });
        }
        let done = self.shape(shape, ty, around);
        if part.is_some() {
            around.coordinates.pop();
        }
        done
    }

    fn bag(&mut self, shape: &Shape, ty: &Type, flag: &Type, slots: usize, around: &mut Around) -> Option<()> {
        let (first, width) = (self.cells.all.len(), ty.scalar_count());
        let outside = around.clone();
        let unit = |slot: usize, cells: &Cells| outside.unit.unwrap_or(cells.units + slot);
        for slot in 0..slots {
            around.in_slots = outside.in_slots + slot * width;
            around.unit = Some(unit(slot, self.cells));
            self.shape(shape, ty, around)?;
        }
        let flags = self.cells.all.len();
        for slot in 0..slots {
            around.in_slots = outside.in_slots + slot;
            around.unit = Some(unit(slot, self.cells));
            self.scalar(&[], flag.as_scalar()?, around)?;
        }
        if outside.unit.is_none() {
            self.cells.units += slots;
        }
        *around = outside;
        self.cells.bags.push(Bag { first, width, flags, slots });
        Some(())
    }
}
