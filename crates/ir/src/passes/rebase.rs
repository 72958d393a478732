//! Stores what is never zero without room for zero.
//!
//! A front end may keep zero for "undefined" and know of some scalars that no reachable state has them undefined. Those are
//! stored as one less where that saves a bit: reading adds one, storing subtracts one, and names move along. Booleans
//! with an undefined value then take one bit instead of two. Elements of an array are taken together, and so is
//! whatever is copied to one another (see `leaves`); what a temporary may get a copy of stays as it is, for temporaries start
//! as zero. Start commands run before anything has a value: what they read stays as it is.

use super::leaves::{Leaves, count, units};
use crate::expr::{Access, BinOp, Expr, Narrow, Place, Root, Stmt};
use crate::system::{Command, Deadlock, Property, System};
use crate::types::{EnumId, Enumeration, Scalar, Type};
use crate::walk::{Touch, expr_places, stmt_calls, stmt_places};
use std::collections::BTreeMap;

/// Which scalars are stored as one less.
#[derive(Clone, Debug, Default)]
pub struct Rebased {
    /// By variable and leaf.
    vars: Vec<Vec<bool>>,
    /// The types of the variables, as they were.
    types: Vec<Type>,
}

/// Moves the scalars that are `never_zero` (by variable and leaf) once a start command has run, where it saves bits.
pub fn rebase(mut system: System, never_zero: &[Vec<bool>]) -> (System, Rebased) {
    let Some((vars, references)) = chosen(&system, never_zero) else { return (system, Rebased::default()) };
    let rebased = Rebased { vars, types: system.vars.iter().map(|var| var.ty.clone()).collect() };
    let code = Code { rebased: &rebased, references: (&[], &[]) };
    let mut procedures = system.procedures.clone();
    for ((procedure, before), moved) in procedures.iter_mut().zip(&system.procedures).zip(&references) {
        Code { references: (&before.references, moved), ..code }.stmts(&mut procedure.body);
    }
    let (mut starts, mut commands) = (system.starts.clone(), system.commands.clone());
    starts.iter_mut().chain(&mut commands).for_each(|command| code.command(command));
    let mut properties = system.properties.clone();
    properties.iter_mut().for_each(|property| rebased.property(property));
    let mut deadlock = system.deadlock.clone();
    if let Deadlock::Stuck { accepted: Some(accepted) } = &mut deadlock {
        code.expr(accepted);
    }
    let mut names = Names { enums: std::mem::take(&mut system.enums), moved: BTreeMap::new() };
    for (var, moved) in system.vars.iter_mut().zip(&rebased.vars) {
        names.retype(&mut var.ty, &mut moved.iter());
    }
    for (procedure, references) in procedures.iter_mut().zip(&references) {
        for ((_, ty), moved) in procedure.references.iter_mut().zip(references) {
            names.retype(ty, &mut moved.iter());
        }
    }
    (System { enums: names.enums, starts, commands, properties, procedures, deadlock, ..system }, rebased)
}

/// What is moved: of variables, and of the references of each procedure. Nothing if that is nothing.
#[allow(clippy::type_complexity, reason = "two tables, named above")]
fn chosen(system: &System, never_zero: &[Vec<bool>]) -> Option<(Vec<Vec<bool>>, Vec<Vec<Vec<bool>>>)> {
    let calls = |command: &Command| {
        let mut any = false;
        stmt_calls(&command.body, &mut |_| any = true);
        any
    };
    let is_plain = system.processes.is_empty() && system.exclusive.is_none();
    if !is_plain || system.starts.is_empty() || system.starts.iter().any(calls) {
        return None;
    }
    let units = units(system);
    let leaves = Leaves::of(system, &units);
    let mut moved: Vec<bool> = leaves.scalars.iter().map(saves_a_bit).collect();
    let stay = |moved: &mut Vec<bool>, first: usize, len: usize| {
        (first..first + len).for_each(|leaf| moved[leaves.class[leaf]] = false);
    };
    for leaf in 0..moved.len() {
        if !saves_a_bit(&leaves.scalars[leaf]) {
            stay(&mut moved, leaf, 1);
        }
    }
    for (index, var) in system.vars.iter().enumerate() {
        for leaf in 0..count(&var.ty) {
            let known = never_zero.get(index).and_then(|leaves| leaves.get(leaf)).copied().unwrap_or(false);
            if !known || !var.init.is_empty() {
                stay(&mut moved, leaves.var(index) + leaf, 1);
            }
        }
    }
    for (number, unit) in units.iter().enumerate() {
        for (temp, (_, ty)) in unit.locals.temps.iter().enumerate() {
            stay(&mut moved, leaves.temp(number, temp), count(ty));
        }
        let place = |place: &Place| leaves.locate(system, (number, unit), place);
        let starts = number < system.starts.len();
        let mut look = |touch: Touch, at: &Place| {
            if starts && touch == Touch::Read {
                let (first, ty) = place(at);
                stay(&mut moved, first, count(ty));
            }
        };
        stmt_places(unit.prelude, &mut look);
        expr_places(unit.guard, &mut look);
        stmt_places(unit.body, &mut look);
        each_wrapped(unit.body, &mut |at| stay(&mut moved, place(at).0, 1));
    }
    let of = |first: usize, ty: &Type| (first..first + count(ty)).map(|leaf| moved[leaves.class[leaf]]).collect();
    let vars: Vec<Vec<bool>> = system.vars.iter().enumerate().map(|(var, it)| of(leaves.var(var), &it.ty)).collect();
    let first = units.len() - system.procedures.len();
    let of_procedure = |(index, procedure): (usize, &crate::system::Procedure)| {
        let references = procedure.references.iter().enumerate();
        references.map(|(reference, (_, ty))| of(leaves.reference(first + index, reference), ty)).collect()
    };
    let references = system.procedures.iter().enumerate().map(of_procedure).collect();
    vars.iter().flatten().any(|&moved| moved).then_some((vars, references))
}

fn saves_a_bit(scalar: &Scalar) -> bool {
    (0..=1).contains(&scalar.low) && scalar.high > 1 && Scalar::range(0, scalar.high - 1).bits() < scalar.bits()
}

/// Reports the places of stores that keep low bits only.
fn each_wrapped(stmts: &[Stmt], visit: &mut impl FnMut(&Place)) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { to, narrow: Narrow::Wrap, .. } => visit(to),
            Stmt::If { then, otherwise, .. } => {
                each_wrapped(then, visit);
                each_wrapped(otherwise, visit);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => each_wrapped(body, visit),
            _ => {}
        }
    }
}

impl Rebased {
    /// Is anything moved?
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// Makes a property over the variables as they were one over those that were moved.
    pub fn property(&self, property: &mut Property) {
        if !self.is_empty() {
            let code = Code { rebased: self, references: (&[], &[]) };
            code.stmts(&mut property.prelude);
            code.expr(&mut property.expr);
        }
    }
}

/// Changes code; types are still those of before.
#[derive(Clone, Copy)]
struct Code<'a> {
    rebased: &'a Rebased,
    /// The references of a procedure: their types, and what is moved in them.
    references: (&'a [(String, Type)], &'a [Vec<bool>]),
}

impl Code<'_> {
    fn command(&self, command: &mut Command) {
        self.stmts(&mut command.prelude);
        self.expr(&mut command.guard);
        self.stmts(&mut command.body);
    }

    /// The type of a place in the state, and what of it is moved, by leaf.
    fn moved(&self, place: &Place) -> Option<(&Type, &[bool])> {
        let (mut ty, moved) = match place.root {
            Root::Var(var) => (&self.rebased.types[var.index()], &self.rebased.vars[var.index()]),
            Root::Reference(at) => (&self.references.0[at.index()].1, &self.references.1[at.index()]),
            Root::Temp(_) => return None,
        };
        let mut first = 0;
        for access in &place.path {
            if let (Type::Record(fields), Access::Field(field)) = (ty, access) {
                first += fields[..*field as usize].iter().map(|(_, ty)| count(ty)).sum::<usize>();
            }
            ty = ty.step(access);
        }
        Some((ty, &moved[first..first + count(ty)]))
    }

    fn is_moved(&self, place: &Place) -> bool {
        matches!(self.moved(place), Some((Type::Scalar(_), [true])))
    }

    fn stmts(&self, stmts: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(stmts.len());
        for mut stmt in std::mem::take(stmts) {
            match &mut stmt {
                Stmt::Assign { to, value, .. } => {
                    self.place(to);
                    self.expr(value);
                    if self.is_moved(to) {
                        *value = plus(std::mem::replace(value, Expr::FALSE), -1);
                    }
                }
                Stmt::Copy { to, from } => {
                    self.place(to);
                    self.place(from);
                    let moved = self.moved(from).filter(|(_, moved)| moved.contains(&true));
                    if let (Root::Temp(_), Some((ty, _))) = (to.root, moved) {
                        self.copy_singly(to, from, ty, &mut out);
                        continue;
                    }
                }
                Stmt::Reset(place) | Stmt::Sort(place) => self.place(place),
                Stmt::If { condition, then, otherwise } => {
                    self.expr(condition);
                    self.stmts(then);
                    self.stmts(otherwise);
                }
                Stmt::Block(body) | Stmt::Loop { body, .. } => self.stmts(body),
                Stmt::Assert { condition, .. } => self.expr(condition),
                Stmt::Call(call) => {
                    let places = call.references.iter_mut().chain(&mut call.inputs).chain(&mut call.outputs);
                    places.for_each(|place| self.place(place));
                }
                Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => {}
            }
            out.push(stmt);
        }
        *stmts = out;
    }

    /// A copy into a temporary, which keeps values as they are.
    fn copy_singly(&self, to: &Place, from: &Place, ty: &Type, out: &mut Vec<Stmt>) {
        match ty {
            Type::Scalar(_) if self.is_moved(from) => {
                out.push(Stmt::assign(to.clone(), plus(Expr::Read(from.clone()), 1), Narrow::Trap));
            }
            Type::Scalar(_) => out.push(Stmt::Copy { to: to.clone(), from: from.clone() }),
            Type::Array { element, len } => {
                let at = |place: &Place, index: u32| place.clone().index(i64::from(index));
                (0..*len).for_each(|index| self.copy_singly(&at(to, index), &at(from, index), element, out));
            }
            Type::Record(fields) => {
                for (field, (_, ty)) in (0..).zip(fields) {
                    self.copy_singly(&to.clone().field(field), &from.clone().field(field), ty, out);
                }
            }
        }
    }

    fn place(&self, place: &mut Place) {
        for access in &mut place.path {
            if let Access::Index(index) = access {
                self.expr(index);
            }
        }
    }

    fn expr(&self, expr: &mut Expr) {
        match expr {
            Expr::Const(_) => {}
            Expr::Read(place) => {
                self.place(place);
                if self.is_moved(place) {
                    *expr = plus(std::mem::replace(expr, Expr::FALSE), 1);
                }
            }
            Expr::Unary(_, value) | Expr::Wrap { value, .. } => self.expr(value),
            Expr::Binary(_, left, right) => {
                self.expr(left);
                self.expr(right);
            }
            Expr::Select(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|part| self.expr(part));
            }
        }
    }
}

fn plus(value: Expr, constant: i64) -> Expr {
    match value {
        Expr::Const(value) => Expr::Const(value + constant),
        value => Expr::binary(BinOp::Add, value, Expr::Const(constant)),
    }
}

/// Enumerations, and those for values that were moved.
struct Names {
    enums: Vec<Enumeration>,
    moved: BTreeMap<u32, EnumId>,
}

impl Names {
    fn retype<'m>(&mut self, ty: &mut Type, moved: &mut (impl Iterator<Item = &'m bool> + Clone)) {
        match ty {
            Type::Scalar(scalar) => {
                if moved.next() == Some(&true) {
                    let names = scalar.names.map(|names| self.below(names));
                    *scalar = Scalar { names, ..Scalar::range(0, scalar.high - 1) };
                }
            }
            Type::Array { element, .. } => self.retype(element, moved),
            Type::Record(fields) => fields.iter_mut().for_each(|(_, ty)| self.retype(ty, moved)),
        }
    }

    /// The same names, for values that are one less.
    fn below(&mut self, names: EnumId) -> EnumId {
        if let Some(&found) = self.moved.get(&names.0) {
            return found;
        }
        let mut moved = self.enums[names.0 as usize].clone();
        if moved.first == 0 && !moved.labels.is_empty() {
            moved.labels.remove(0);
        } else {
            moved.first -= 1;
        }
        let found = EnumId(self.enums.len() as u32);
        self.enums.push(moved);
        self.moved.insert(names.0, found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{parse, print};
    use crate::verify::verify;

    /// Moves whatever can be, and gives the lines that are left of some interest.
    fn rebased(text: &str) -> (System, Rebased, Vec<String>) {
        let text = format!("system \"t\" enum b from 0 {{ undefined, no, yes }} {text}");
        let system = parse(&text).unwrap();
        let all: Vec<Vec<bool>> = system.vars.iter().map(|var| vec![true; count(&var.ty)]).collect();
        let (system, rebased) = rebase(system, &all);
        verify(&system).unwrap();
        let lines = print(&system).lines().map(|line| line.trim().to_string()).collect();
        (system, rebased, lines)
    }

    fn has(lines: &[String], line: &str) -> bool {
        lines.iter().any(|other| other == line)
    }

    #[test]
    fn values_move_with_their_names() {
        let (.., lines) = rebased(
            "var a: [2] { f: 0..2 as b, g: 0..3 } var x: 0..2 as b
            start \"s\" { do { a[0].f := 1; a[1].f := 1; x := 2; } }
            command \"c\" { when a[x - 1].f == 2 do { a[0].f := x; x <- a[1].f; } }",
        );
        for line in [
            "enum b from 0 { no, yes }",
            "var a: [2] { f: 0..1 as #1, g: 0..3 }",
            "var x: 0..1 as #1",
            "a[0].f := 0;",
            "x := 1;",
            "when (a[(x + 1) - 1].f + 1) == 2",
            "a[0].f := (x + 1) + -1;",
            "x <- a[1].f;",
        ] {
            assert!(has(&lines, line), "{line}: {lines:#?}");
        }
    }

    #[test]
    fn what_start_commands_read_and_temporaries_get_stays() {
        let (_, rebased, lines) = rebased(
            "var x: 0..2 var y: 0..2 var z: 0..2 var w: 0..3
            start \"s\" { do { x := 1; y := x; z := 1; w := 1; } }
            command \"c\" { temp t: 0..2 do { t <- z; if t == 0 { fault \"f\"; } y := 2; } }",
        );
        assert_eq!(rebased.vars, [[false], [true], [false], [false]]);
        assert!(has(&lines, "y := x + -1;") && has(&lines, "y := 1;"), "{lines:#?}");
    }

    #[test]
    fn a_property_that_comes_later_sees_the_same_values() {
        let (system, rebased, _) = rebased(
            "var a: [2] { f: 0..2, g: 0..2 } start \"s\" { do { a[0].f := 1; a[0].g := a[1].g; } }
            command \"c\" { do { a[0].f := 2; } }",
        );
        let text = "system \"t\" var a: [2] { f: 0..2, g: 0..2 }
            goal \"g\" { temp t: [2] { f: 0..2, g: 0..2 } before { t <- a; } expect (t[1].f == 1) && (a[0].f == 2) }";
        let mut property = parse(text).unwrap().properties.remove(0);
        rebased.property(&mut property);
        let lines = print(&System { properties: vec![property], ..system });
        for line in ["t[0].f := a[0].f + 1;", "t[1].g <- a[1].g;", "(t[1].f == 1) && ((a[0].f + 1) == 2)"] {
            assert!(lines.contains(line), "{line}: {lines}");
        }
    }
}
