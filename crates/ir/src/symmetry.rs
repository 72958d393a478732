//! Which values of a system can be exchanged for one another, and where they live.
//!
//! A *set* has interchangeable values: renaming them by a permutation, everywhere at once, maps behaviour to
//! behaviour. Everywhere means in scalars that hold such values, and in the order of arrays indexed by them.
//! The front end promises that the system is symmetric; nothing here can check it.

use crate::system::System;
use crate::types::{Scalar, Type};

/// A set of interchangeable values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interchangeable {
    pub name: String,
    pub size: u32,
}

/// Consecutive values (of a scalar) or positions (of an array) that stand for the elements of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index into [`Symmetry::sets`].
    pub set: u32,
    /// The value or position of the set's first element.
    pub first: u32,
}

/// A type with what is symmetric in it; it has the form of the [`Type`] it describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A scalar; values outside all parts stay as they are. Zero is such a value.
    Scalar(Vec<Part>),
    /// An array; positions outside all parts stay where they are.
    Array {
        parts: Vec<Part>,
        element: Box<Shape>,
    },
    Record(Vec<Shape>),
    /// A record of an array of slots and an array of flags, whose common order means nothing.
    Bag {
        slot: Box<Shape>,
    },
}

/// The symmetry of a system.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Symmetry {
    pub sets: Vec<Interchangeable>,
    /// One for each variable.
    pub vars: Vec<Shape>,
}

impl Symmetry {
    /// Is there anything to exchange?
    pub fn is_trivial(&self) -> bool {
        self.sets.iter().all(|set| set.size < 2)
    }

    /// Does it describe the variables of `system`?
    pub fn fits(&self, system: &System) -> bool {
        let sound = |(shape, ty): (&Shape, &Type)| self.shape_fits(shape, ty);
        self.vars.len() == system.vars.len() && self.vars.iter().zip(system.vars.iter().map(|var| &var.ty)).all(sound)
    }

    /// Does the scalar ever hold elements of a part? Its range may have been narrowed to the values that occur, in states as
    /// they are renamed (`passes::range`): all elements or none, so that one out of range says that none does.
    pub fn holds(&self, part: &Part, scalar: &Scalar) -> bool {
        part.first as u64 + self.sets[part.set as usize].size as u64 <= 1u64 << scalar.bits()
    }

    fn shape_fits(&self, shape: &Shape, ty: &Type) -> bool {
        let end = |part: &Part| self.sets.get(part.set as usize).map(|set| part.first as u64 + set.size as u64);
        match (shape, ty) {
            (Shape::Scalar(parts), Type::Scalar(scalar)) => {
                parts.iter().all(|part| end(part).is_some() && part.first > 0 && !scalar.is_signed())
            }
            (Shape::Array { parts, element }, Type::Array { element: inner, len }) => {
                parts.iter().all(|part| end(part).is_some_and(|end| end <= *len as u64))
                    && self.shape_fits(element, inner)
            }
            (Shape::Record(shapes), Type::Record(fields)) => {
                shapes.len() == fields.len()
                    && shapes.iter().zip(fields).all(|(shape, (_, ty))| self.shape_fits(shape, ty))
            }
            (Shape::Bag { slot }, Type::Record(fields)) => match &fields[..] {
                [(_, Type::Array { element, len }), (_, Type::Array { element: flag, len: flags })] => {
                    let is_flag = flag.as_scalar().is_some_and(|flag| flag.bits() == 1);
                    len == flags && is_flag && self.shape_fits(slot, element)
                }
                _ => false,
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symmetry_fits_only_variables_of_its_form() {
        let mut system = System::new("t");
        system.var("x", Scalar::range(0, 3), None);
        system.var("a", Type::array(Scalar::BOOL.into(), 3), None);
        let part = Part { set: 0, first: 0 };
        let array = |parts| Shape::Array { parts, element: Box::new(Shape::Scalar(vec![])) };
        let mut symmetry = Symmetry {
            sets: vec![Interchangeable { name: "s".into(), size: 3 }],
            vars: vec![Shape::Scalar(vec![Part { set: 0, first: 1 }]), array(vec![part])],
        };
        assert!(symmetry.fits(&system) && !symmetry.is_trivial());
        symmetry.vars[1] = array(vec![Part { set: 0, first: 1 }]);
        assert!(!symmetry.fits(&system), "the last element would lie outside");
        symmetry.vars[1] = array(vec![part]);
        symmetry.vars[0] = Shape::Scalar(vec![part]);
        assert!(!symmetry.fits(&system), "zero would name an element");
        symmetry.vars[1] = Shape::Scalar(vec![]);
        assert!(!symmetry.fits(&system));
        symmetry.vars.pop();
        assert!(!symmetry.fits(&system));
    }

    #[test]
    fn a_narrowed_scalar_holds_all_elements_or_none() {
        let sets = vec![Interchangeable { name: "s".into(), size: 4 }];
        let symmetry = Symmetry { sets, vars: Vec::new() };
        let holds = |high| symmetry.holds(&Part { set: 0, first: 1 }, &Scalar::range(0, high));
        assert_eq!((holds(4), holds(3), holds(0)), (true, false, false));
    }
}
