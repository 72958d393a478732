//! The scalars of the state in Murphi's syntax: elements of arrays by the names of their indices.

use super::types::{Shape, TypeId, Types};

/// The names of all scalars below the given variables, in the order of the state's layout.
pub fn of<'a>(types: &Types, vars: impl Iterator<Item = (&'a str, TypeId)>) -> Vec<String> {
    let mut out = Vec::new();
    for (name, ty) in vars {
        list(types, ty, name.to_string(), &mut out);
    }
    out
}

fn list(types: &Types, ty: TypeId, name: String, out: &mut Vec<String>) {
    match types.shape(ty) {
        Shape::Array { index, element } => {
            for position in 0..types.count(*index).unwrap_or(0) {
                list(types, *element, format!("{name}[{}]", types.value_name(*index, position)), out);
            }
        }
        Shape::Record { fields } if fields.is_empty() => out.push(name),
        Shape::Record { fields } => {
            for (field, ty) in fields {
                list(types, *ty, format!("{name}.{field}"), out);
            }
        }
        Shape::Multiset { size, element } => {
            for slot in 0..*size {
                list(types, *element, format!("{name}{{{slot}}}"), out);
            }
            out.extend((0..*size).map(|slot| format!("{name}{{{slot}}} is used")));
        }
        _ => out.push(name),
    }
}

#[cfg(test)]
mod tests {
    use crate::Source;
    use plimsoll_ir::Layout;

    #[test]
    fn indices_are_named_and_every_scalar_has_a_name() {
        let text = "type s: scalarset(2); e: enum {h};
            var x: 1..3; a: array [2..3] of array [s] of record f: boolean; end;
                b: array [union {e, s}] of boolean; m: multiset [2] of s;
            startstate end; rule true ==> end;";
        let source = Source { name: "m".into(), text: text.into() };
        let (system, ..) = crate::murphi::load(&source, &Default::default()).unwrap();
        let names = &system.spelling.as_ref().unwrap().scalars;
        let wanted = "x a[2][s_1].f a[2][s_2].f a[3][s_1].f a[3][s_2].f b[h] b[s_1] b[s_2] m{0} m{1}";
        assert_eq!(names[..10].join(" "), wanted);
        let layout = Layout::of_system(&system);
        let scalars = (0..system.vars.len()).map(|var| layout.scalars(var, &system.vars[var].ty).len());
        assert_eq!(names.len(), scalars.sum::<usize>());
    }
}
