//! Variables that are never undefined need no room for that: a boolean is one bit.
//!
//! Values of scalarsets stay where symmetry looks for them.

use super::definite::{Defined, families};
use plimsoll_ir::passes::rebase::{Rebased, rebase};
use plimsoll_ir::symmetry::{Shape, Symmetry};
use plimsoll_ir::{System, Type};

/// Takes the room for "undefined" from where it is not needed.
pub fn tighten(system: System, defined: &Defined, symmetry: &Symmetry) -> (System, Rebased) {
    let of_var = |(index, shape): (usize, &Shape)| {
        let mut plain = Vec::new();
        note_plain(shape, &system.vars[index].ty, &mut plain);
        plain.iter().enumerate().map(|(family, &plain)| plain && defined.has(index, family)).collect()
    };
    let never_zero: Vec<Vec<bool>> = symmetry.vars.iter().enumerate().map(of_var).collect();
    rebase(system, &never_zero)
}

/// Notes for each family of scalars whether zero can only mean undefined, and whether nobody else looks at them.
fn note_plain(shape: &Shape, ty: &Type, out: &mut Vec<bool>) {
    match (shape, ty) {
        (Shape::Scalar(parts), Type::Scalar(scalar)) => out.push(parts.is_empty() && scalar.names.is_some()),
        (Shape::Array { element, .. }, Type::Array { element: ty, .. }) => note_plain(element, ty, out),
        (Shape::Record(shapes), Type::Record(fields)) => {
            shapes.iter().zip(fields).for_each(|(shape, (_, ty))| note_plain(shape, ty, out));
        }
        _ => out.extend(std::iter::repeat_n(false, families(ty))),
    }
}

#[cfg(test)]
mod tests {
    use crate::Source;
    use plimsoll_ir::text::print;
    use plimsoll_ir::{PropertyKind, System};

    #[test]
    fn only_what_may_be_undefined_has_room_for_it() {
        let text = "type s: scalarset(4);
            var b: array [s] of boolean; p: s; q: boolean; r: boolean; c: array [s] of record x: boolean; y: 0..3 end;
            startstate for i: s do b[i] := false; c[i].x := true; end; p := undefined; q := true; r := !q;
                for i: s do p := i; end; end;
            ruleset i: s do rule b[i] & !r ==> b[i] := !b[i]; undefine c[i].y; c[i].x := r; p := i; end; end;
            invariant forall i: s do c[i].x | !b[i] end;";
        let source = Source { name: "m".into(), text: text.into() };
        let (system, symbols, _) = crate::murphi::load(&source, &Default::default()).unwrap();
        plimsoll_ir::verify(&system).unwrap();
        let lines = print(&system);
        for line in [
            "var b: [4] 0..1 as #",
            // Symmetry looks for values of scalarsets where they were.
            "var p: 0..4 as s",
            // The start state reads it.
            "var q: 0..2 as ",
            "var r: 0..1 as #",
            ", y: 0..4 as ",
        ] {
            assert!(lines.contains(line), "{line}: {lines}");
        }
        // What is asked later means the same.
        let property = crate::murphi::property(&symbols, "r = true & c[s_1].x", PropertyKind::Goal).unwrap();
        let asked = print(&System { properties: vec![property], ..system });
        assert!(asked.contains("(r + 1) == 2") && asked.contains("(c[0].x + 1) == 2"), "{asked}");
    }
}
