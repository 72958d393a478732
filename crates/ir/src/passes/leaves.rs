//! Leaves: the scalars of all variables and temporaries, with all elements of an array taken as one.
//!
//! A `Copy` needs equal types on both sides, so leaves that are copied to each other form a class and
//! share one range; so do what a call names and what the procedure calls it. A *unit* is a command, a start
//! command, a property or a procedure: a scope of temporaries.

use crate::expr::{Access, Expr, Place, Root, Stmt};
use crate::system::{Choice, Locals, ProcessId, System};
use crate::types::{Scalar, Type};
use crate::walk::{Touch, expr_places, stmt_places};

/// One scope of code, in the common form of commands and properties.
pub struct Unit<'a> {
    pub at: &'a [(ProcessId, u32)],
    pub locals: Locals<'a>,
    /// So many temporaries are given by callers.
    pub inputs: usize,
    pub choices: &'a [Choice],
    pub prelude: &'a [Stmt],
    pub guard: &'a Expr,
    pub body: &'a [Stmt],
}

/// All units of a system: start commands, then commands, then properties, then procedures.
pub fn units(system: &System) -> Vec<Unit<'_>> {
    let commands = system.starts.iter().chain(&system.commands).map(|command| Unit {
        at: &command.at,
        locals: Locals::temps(&command.temps),
        inputs: 0,
        choices: &command.choices,
        prelude: &command.prelude,
        guard: &command.guard,
        body: &command.body,
    });
    let properties = system.properties.iter().map(|property| Unit {
        at: &[],
        locals: Locals::temps(&property.temps),
        inputs: 0,
        choices: &[],
        prelude: &property.prelude,
        guard: &property.expr,
        body: &[],
    });
    let procedures = system.procedures.iter().map(|procedure| Unit {
        at: &[],
        locals: procedure.locals(),
        inputs: procedure.inputs,
        choices: &[],
        prelude: &[],
        guard: &Expr::TRUE,
        body: &procedure.body,
    });
    commands.chain(properties).chain(procedures).collect()
}

/// The numbering of leaves and their division into classes.
pub struct Leaves {
    /// First leaf of each variable.
    vars: Vec<usize>,
    /// First leaf of each temporary of each unit.
    temps: Vec<Vec<usize>>,
    /// First leaf of each reference of each unit.
    references: Vec<Vec<usize>>,
    /// The declared scalar of each leaf.
    pub scalars: Vec<Scalar>,
    /// The class of each leaf; classes are numbered by one of their leaves.
    pub class: Vec<usize>,
}

impl Leaves {
    pub fn of(system: &System, units: &[Unit]) -> Leaves {
        let mut scalars = Vec::new();
        let mut add = |ty: &Type| {
            let first = scalars.len();
            list(ty, &mut scalars);
            first
        };
        let vars = system.vars.iter().map(|var| add(&var.ty)).collect();
        let mut add_all = |types: &[(String, Type)]| types.iter().map(|(_, ty)| add(ty)).collect();
        let temps = units.iter().map(|unit| add_all(unit.locals.temps)).collect();
        let references = units.iter().map(|unit| add_all(unit.locals.references)).collect();
        let class = (0..scalars.len()).collect();
        let mut leaves = Leaves { vars, temps, references, scalars, class };
        for (number, unit) in units.iter().enumerate() {
            leaves.link(system, number, unit, unit.prelude);
            leaves.link(system, number, unit, unit.body);
        }
        for leaf in 0..leaves.class.len() {
            leaves.class[leaf] = leaves.find(leaf);
        }
        leaves
    }

    /// The first leaf of a place, and the type there.
    pub fn locate<'a>(&self, system: &'a System, unit: (usize, &Unit<'a>), place: &Place) -> (usize, &'a Type) {
        let mut leaf = match place.root {
            Root::Var(var) => self.vars[var.index()],
            Root::Temp(temp) => self.temps[unit.0][temp.index()],
            Root::Reference(reference) => self.references[unit.0][reference.index()],
        };
        let mut ty = system.root_type(unit.1.locals, place.root);
        for access in &place.path {
            ty = match (ty, access) {
                (Type::Array { element, .. }, Access::Index(_)) => element,
                (Type::Record(fields), Access::Field(field)) => {
                    leaf += fields[..*field as usize].iter().map(|(_, ty)| count(ty)).sum::<usize>();
                    &fields[*field as usize].1
                }
                _ => unreachable!("verified: paths fit their types"),
            }
        }
        (leaf, ty)
    }

    /// The classes of all leaves that a unit may look at.
    pub fn touched(&self, system: &System, number: usize, unit: &Unit) -> Vec<usize> {
        let mut classes = Vec::new();
        let mut visit = |_: Touch, place: &Place| {
            let (first, ty) = self.locate(system, (number, unit), place);
            classes.extend(&self.class[first..first + count(ty)]);
        };
        for &(process, _) in unit.at {
            visit(Touch::Read, &system.processes[process.index()].location.into());
        }
        stmt_places(unit.prelude, &mut visit);
        expr_places(unit.guard, &mut visit);
        stmt_places(unit.body, &mut visit);
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// First leaf of a variable.
    pub fn var(&self, var: usize) -> usize {
        self.vars[var]
    }

    /// First leaf of a temporary of a unit.
    pub fn temp(&self, unit: usize, temp: usize) -> usize {
        self.temps[unit][temp]
    }

    /// First leaf of a reference of a unit.
    pub fn reference(&self, unit: usize, reference: usize) -> usize {
        self.references[unit][reference]
    }

    fn find(&mut self, mut leaf: usize) -> usize {
        while self.class[leaf] != leaf {
            self.class[leaf] = self.class[self.class[leaf]];
            leaf = self.class[leaf];
        }
        leaf
    }

    fn join(&mut self, one: usize, other: usize, count: usize) {
        for offset in 0..count {
            let (one, other) = (self.find(one + offset), self.find(other + offset));
            self.class[one.max(other)] = one.min(other);
        }
    }

    fn link(&mut self, system: &System, number: usize, unit: &Unit, stmts: &[Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::Copy { to, from } => {
                    let (to, ty) = self.locate(system, (number, unit), to);
                    let (from, _) = self.locate(system, (number, unit), from);
                    self.join(to, from, count(ty));
                }
                Stmt::Call(call) => {
                    let callee = self.temps.len() - system.procedures.len() + call.procedure.index();
                    let outputs = &system.procedures[call.procedure.index()].outputs;
                    let references = self.references[callee].clone();
                    let inputs = self.temps[callee][..call.inputs.len()].to_vec();
                    let outputs: Vec<usize> = outputs.iter().map(|temp| self.temps[callee][temp.index()]).collect();
                    let theirs = references.into_iter().chain(inputs).chain(outputs);
                    let ours = call.references.iter().chain(&call.inputs).chain(&call.outputs);
                    for (place, leaf) in ours.zip(theirs) {
                        let (own, ty) = self.locate(system, (number, unit), place);
                        self.join(own, leaf, count(ty));
                    }
                }
                Stmt::If { then, otherwise, .. } => {
                    self.link(system, number, unit, then);
                    self.link(system, number, unit, otherwise);
                }
                Stmt::Block(body) | Stmt::Loop { body, .. } => self.link(system, number, unit, body),
                _ => {}
            }
        }
    }
}

/// How many leaves a type has.
pub fn count(ty: &Type) -> usize {
    match ty {
        Type::Scalar(_) => 1,
        Type::Array { element, .. } => count(element),
        Type::Record(fields) => fields.iter().map(|(_, ty)| count(ty)).sum(),
    }
}

fn list(ty: &Type, out: &mut Vec<Scalar>) {
    match ty {
        Type::Scalar(scalar) => out.push(*scalar),
        Type::Array { element, .. } => list(element, out),
        Type::Record(fields) => fields.iter().for_each(|(_, ty)| list(ty, out)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::VarId;
    use crate::text::parse;

    #[test]
    fn copies_join_classes_leaf_by_leaf() {
        let text = "system \"t\" var a: [2] { f: 0..1, g: 0..7 } var b: { f: 0..1, g: 0..7 } var c: 0..7
            command \"c\" { temp t: 0..7 do { if c { b <- a[1]; } loop 2 { t <- b.g; break 0; } } }";
        let system = parse(text).unwrap();
        let units = units(&system);
        let leaves = Leaves::of(&system, &units);
        assert_eq!(leaves.class, [0, 1, 0, 1, 4, 1]);
        let place = Place::from(VarId(0)).index(1).field(1);
        assert_eq!(leaves.locate(&system, (0, &units[0]), &place).0, 1);
    }
}
