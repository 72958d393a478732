//! Where the values of scalarsets live, so that a search may take states that differ in names for one.

use super::types::{Shape, TypeId, Types};
use plimsoll_ir::symmetry::{self, Interchangeable, Part, Symmetry};

/// The symmetry of a model whose variables have the given types.
pub fn of(types: &Types, vars: &[TypeId]) -> Symmetry {
    let mut symmetry = Symmetry::default();
    let mut known = Vec::new();
    let mut made = Made { types, known: &mut known, symmetry: &mut symmetry };
    let shapes = vars.iter().map(|&ty| made.shape(ty)).collect();
    symmetry.vars = shapes;
    symmetry
}

struct Made<'a> {
    types: &'a Types,
    /// The scalarsets met so far, by number of their set.
    known: &'a mut Vec<TypeId>,
    symmetry: &'a mut Symmetry,
}

impl Made<'_> {
    fn shape(&mut self, ty: TypeId) -> symmetry::Shape {
        match self.types.shape(ty).clone() {
            Shape::Array { index, element } => {
                let parts = self.parts(index, 0);
                symmetry::Shape::Array { parts, element: Box::new(self.shape(element)) }
            }
            Shape::Record { fields } if fields.is_empty() => {
                symmetry::Shape::Record(vec![symmetry::Shape::Scalar(Vec::new())])
            }
            Shape::Record { fields } => {
                symmetry::Shape::Record(fields.into_iter().map(|(_, field)| self.shape(field)).collect())
            }
            Shape::Multiset { element, .. } => symmetry::Shape::Bag { slot: Box::new(self.shape(element)) },
            _ => symmetry::Shape::Scalar(self.parts(ty, 1)),
        }
    }

    /// The scalarsets in a simple type, whose first value is at `first`.
    fn parts(&mut self, ty: TypeId, first: u32) -> Vec<Part> {
        match self.types.shape(ty).clone() {
            Shape::Scalarset { size } => vec![Part { set: self.set(ty, size), first }],
            Shape::Union { members, .. } => {
                let of_member = |(member, offset): (TypeId, i64)| self.parts(member, first + offset as u32);
                members.into_iter().flat_map(of_member).collect()
            }
            _ => Vec::new(),
        }
    }

    fn set(&mut self, ty: TypeId, size: u32) -> u32 {
        let found = self.known.iter().position(|&known| known == ty).unwrap_or_else(|| {
            self.known.push(ty);
            let name = self.types.name(ty).to_string();
            self.symmetry.sets.push(Interchangeable { name, size });
            self.known.len() - 1
        });
        found as u32
    }
}

#[cfg(test)]
mod tests {
    use crate::Source;
    use plimsoll_ir::symmetry::{Part, Shape};

    #[test]
    fn scalarsets_are_found_in_values_indices_unions_and_multisets() {
        let text = "type s: scalarset(3); e: enum {h, k}; u: union {e, s};
            var x: u; a: array [u] of record f: s; g: boolean; end; m: multiset [2] of u;
            startstate end; rule true ==> end;";
        let source = Source { name: "m".into(), text: text.into() };
        let (system, symbols, _) = crate::murphi::load(&source, &Default::default()).unwrap();
        let symmetry = symbols.symmetry();
        assert!(symmetry.fits(&system));
        assert_eq!((symmetry.sets.len(), symmetry.sets[0].size), (1, 3));
        let part = |first| vec![Part { set: 0, first }];
        assert_eq!(symmetry.vars[0], Shape::Scalar(part(3)));
        let record = Shape::Record(vec![Shape::Scalar(part(1)), Shape::Scalar(vec![])]);
        assert_eq!(symmetry.vars[1], Shape::Array { parts: part(2), element: Box::new(record) });
        assert_eq!(symmetry.vars[2], Shape::Bag { slot: Box::new(Shape::Scalar(part(3))) });
    }
}
