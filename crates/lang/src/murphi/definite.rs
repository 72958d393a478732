//! Which variables are never undefined, so that reading them needs no check.
//!
//! Elements of an array are taken together. The analysis starts from the guess that everything is always
//! defined, and gives up what a start state leaves undefined, what some rule resets, and what may be copied from
//! something undefined; that is repeated until the guess proves itself. Assignments always store defined
//! values: that is how they are made here. Undefined is stored as zero, and so are fresh temporaries. Procedures are
//! walked by themselves; what they get from callers counts as undefined, and a reference as all that it may stand for.

use plimsoll_ir::procedures::{Summary, summaries, used};
use plimsoll_ir::walk::stmt_calls;
use plimsoll_ir::{Access, Call, Command, Expr, Locals, Place, Root, Stmt, System, Type};
use std::collections::BTreeSet;

/// Systems with more scalars than this are not analysed.
const MOST_SCALARS: usize = 1 << 17;

/// What is known about each variable: its scalars, those that differ in indices only taken together.
#[derive(Clone, Debug, Default)]
pub struct Defined {
    vars: Vec<Vec<bool>>,
}

impl Defined {
    /// Is the scalar at a place in the state always defined?
    pub fn contains(&self, system: &System, place: &Place) -> bool {
        let Root::Var(var) = place.root else { return false };
        let Some(known) = self.vars.get(var.index()) else { return false };
        let (family, _) = family(&system.vars[var.index()].ty, &place.path);
        known.get(family).copied().unwrap_or(false)
    }

    /// Is a family of a variable always defined?
    pub fn has(&self, var: usize, family: usize) -> bool {
        self.vars.get(var).and_then(|known| known.get(family)).copied().unwrap_or(false)
    }

    /// Analyses a system made without this knowledge.
    pub fn of(system: &System) -> Defined {
        let commands = || system.starts.iter().chain(&system.commands).map(|command| &command.temps);
        let temps = commands().chain(system.procedures.iter().map(|procedure| &procedure.temps));
        let temps = temps.map(|temps| temps.iter().map(|(_, ty)| ty.scalar_count()).sum::<usize>()).max();
        let vars: usize = system.vars.iter().map(|var| var.ty.scalar_count()).sum();
        if vars + temps.unwrap_or(0) > MOST_SCALARS {
            return Defined::default();
        }
        let mut defined = Defined { vars: system.vars.iter().map(|var| vec![true; families(&var.ty)]).collect() };
        let calls = Calls::of(system);
        for command in &system.starts {
            let locals = Locals::temps(&command.temps);
            Walk::new(system, &calls, (locals, &[]), &mut defined, true).command(command);
        }
        loop {
            let before = defined.vars.clone();
            for command in &system.commands {
                let locals = Locals::temps(&command.temps);
                Walk::new(system, &calls, (locals, &[]), &mut defined, false).command(command);
            }
            for (index, procedure) in system.procedures.iter().enumerate().filter(|(index, _)| calls.used[*index]) {
                let scope = (procedure.locals(), calls.targets[index].as_slice());
                Walk::new(system, &calls, scope, &mut defined, false).procedure(&procedure.body);
            }
            if defined.vars == before {
                return defined;
            }
        }
    }
}

/// A variable and a family of it.
type Target = (usize, usize);

/// What procedures do, and what their references may stand for.
struct Calls {
    summaries: Vec<Summary>,
    /// Those that rules call.
    used: Vec<bool>,
    /// By procedure and reference: the variables, and the first family of the part of each.
    targets: Vec<Vec<BTreeSet<Target>>>,
}

impl Calls {
    fn of(system: &System) -> Calls {
        let summaries = summaries(system);
        let used = used(system, false);
        let references = system.procedures.iter().map(|procedure| procedure.references.len());
        let mut targets: Vec<Vec<BTreeSet<Target>>> = references.map(|count| vec![BTreeSet::new(); count]).collect();
        for command in &system.commands {
            for stmts in [&command.prelude, &command.body] {
                note_targets(system, stmts, None, &mut targets);
            }
        }
        // Callers come after those that they call.
        for (index, procedure) in system.procedures.iter().enumerate().rev().filter(|(index, _)| used[*index]) {
            let mut before = None;
            // One that calls itself hands over what it was handed over.
            while before.as_ref() != Some(&targets[index]) {
                before = Some(targets[index].clone());
                note_targets(system, &procedure.body, Some(index), &mut targets);
            }
        }
        Calls { summaries, used, targets }
    }
}

fn note_targets(system: &System, stmts: &[Stmt], caller: Option<usize>, targets: &mut [Vec<BTreeSet<Target>>]) {
    stmt_calls(stmts, &mut |call| {
        for (number, place) in call.references.iter().enumerate() {
            let found: Vec<Target> = match (place.root, caller) {
                (Root::Var(var), _) => vec![(var.index(), family(&system.vars[var.index()].ty, &place.path).0)],
                (Root::Reference(reference), Some(caller)) => {
                    let ty = &system.procedures[caller].references[reference.index()].1;
                    let (offset, _) = family(ty, &place.path);
                    let starts = targets[caller][reference.index()].iter();
                    starts.map(|&(var, first)| (var, first + offset)).collect()
                }
                _ => Vec::new(),
            };
            targets[call.procedure.index()][number].extend(found);
        }
    });
}

/// How many families of scalars a type has.
pub(super) fn families(ty: &Type) -> usize {
    match ty {
        Type::Scalar(_) => 1,
        Type::Array { element, .. } => families(element),
        Type::Record(fields) => fields.iter().map(|(_, ty)| families(ty)).sum(),
    }
}

/// The first family below a path, and the type at its end.
fn family<'a>(mut ty: &'a Type, path: &[Access]) -> (usize, &'a Type) {
    let mut first = 0;
    for access in path {
        match (ty, access) {
            (Type::Array { element, .. }, Access::Index(_)) => ty = element,
            (Type::Record(fields), Access::Field(field)) => {
                first += fields[..*field as usize].iter().map(|(_, ty)| families(ty)).sum::<usize>();
                ty = &fields[*field as usize].1;
            }
            _ => unreachable!("verified: paths fit their types"),
        }
    }
    (first, ty)
}

/// The families of the scalars of a type, in order.
fn list_families(ty: &Type, first: usize, out: &mut Vec<usize>) {
    match ty {
        Type::Scalar(_) => out.push(first),
        Type::Array { element, len } => (0..*len).for_each(|_| list_families(element, first, out)),
        Type::Record(fields) => {
            let mut first = first;
            for (_, ty) in fields {
                list_families(ty, first, out);
                first += families(ty);
            }
        }
    }
}

/// Which scalars (of variables, then of temporaries) are certainly defined at some point.
type Facts = Vec<bool>;

/// One walk through the code of a command.
struct Walk<'a> {
    system: &'a System,
    calls: &'a Calls,
    locals: Locals<'a>,
    /// What each reference may stand for.
    targets: &'a [BTreeSet<Target>],
    defined: &'a mut Defined,
    starting: bool,
    /// The first scalar of each variable, then of each temporary.
    firsts: Vec<usize>,
    /// What holds wherever control leaves each block or loop around.
    exits: Vec<Option<Facts>>,
}

impl<'a> Walk<'a> {
    fn new(
        system: &'a System,
        calls: &'a Calls,
        (locals, targets): (Locals<'a>, &'a [BTreeSet<Target>]),
        defined: &'a mut Defined,
        starting: bool,
    ) -> Walk<'a> {
        let mut firsts = vec![0];
        let types = system.vars.iter().map(|var| &var.ty).chain(locals.temps.iter().map(|(_, ty)| ty));
        for ty in types {
            firsts.push(firsts[firsts.len() - 1] + ty.scalar_count());
        }
        Walk { system, calls, locals, targets, defined, starting, firsts, exits: Vec::new() }
    }

    fn procedure(&mut self, body: &[Stmt]) {
        let mut facts = vec![false; self.firsts[self.firsts.len() - 1]];
        self.assume(&mut facts);
        self.run(body, facts);
    }

    fn command(&mut self, command: &Command) {
        let mut facts = vec![false; self.firsts[self.firsts.len() - 1]];
        if !self.starting {
            self.assume(&mut facts);
        }
        for choice in &command.choices {
            facts[self.firsts[self.system.vars.len() + choice.temp.index()]] = true;
        }
        let Some(facts) = self.run(&command.prelude, facts) else { return };
        let Some(facts) = self.run(&command.body, facts) else { return };
        if self.starting {
            self.conclude(&facts);
        }
    }

    /// The current guess, at the start of a rule.
    fn assume(&self, facts: &mut Facts) {
        (0..self.system.vars.len()).for_each(|var| self.assume_var(var, facts));
    }

    /// What is known about a variable when nothing is known about the way that led here.
    fn assume_var(&self, var: usize, facts: &mut Facts) {
        let mut all = Vec::new();
        list_families(&self.system.vars[var].ty, 0, &mut all);
        for (offset, &family) in all.iter().enumerate() {
            facts[self.firsts[var] + offset] = !self.starting && self.defined.vars[var][family];
        }
    }

    /// What a procedure may have changed.
    fn called(&self, call: &Call, facts: &mut Facts) {
        let summary = &self.calls.summaries[call.procedure.index()];
        summary.writes.iter().for_each(|var| self.assume_var(var.index(), facts));
        for (place, _) in call.references.iter().zip(&summary.writes_reference).filter(|(_, written)| **written) {
            self.vars_at(place).for_each(|var| self.assume_var(var, facts));
        }
    }

    /// The variables that a part of the state may belong to.
    fn vars_at(&self, place: &Place) -> impl Iterator<Item = usize> + use<'a> {
        let (own, targets) = match place.root {
            Root::Var(var) => (Some(var.index()), None),
            Root::Reference(reference) => (None, Some(&self.targets[reference.index()])),
            Root::Temp(_) => (None, None),
        };
        own.into_iter().chain(targets.into_iter().flatten().map(|&(var, _)| var))
    }

    /// What a start state leaves undefined is not always defined.
    fn conclude(&mut self, facts: &Facts) {
        let mut all = Vec::new();
        for (index, var) in self.system.vars.iter().enumerate() {
            all.clear();
            list_families(&var.ty, 0, &mut all);
            for (offset, &family) in all.iter().enumerate() {
                self.defined.vars[index][family] &= facts[self.firsts[index] + offset];
            }
        }
    }

    /// What holds after the statements; `None` if control does not get there.
    fn run(&mut self, stmts: &[Stmt], mut facts: Facts) -> Option<Facts> {
        for stmt in stmts {
            facts = self.step(stmt, facts)?;
        }
        Some(facts)
    }

    fn step(&mut self, stmt: &Stmt, mut facts: Facts) -> Option<Facts> {
        match stmt {
            Stmt::Assign { to, .. } => {
                if let Some((first, count)) = self.exact(to) {
                    facts[first..first + count].fill(true);
                }
            }
            Stmt::Copy { to, from } => self.copy(to, from, &mut facts),
            Stmt::Reset(place) => self.store(place, &vec![false; self.type_of(place).scalar_count()], &mut facts),
            Stmt::Sort(place) => self.sort(place, &mut facts),
            Stmt::If { then, otherwise, .. } => {
                let one = self.run(then, facts.clone());
                let other = self.run(otherwise, facts);
                return merge(one, other);
            }
            Stmt::Block(body) => {
                self.exits.push(None);
                let end = self.run(body, facts);
                let left = self.exits.pop().flatten();
                return merge(end, left);
            }
            Stmt::Loop { body, .. } => {
                self.forget(body, &mut facts);
                self.exits.push(None);
                self.run(body, facts);
                return self.exits.pop().flatten();
            }
            Stmt::Break(depth) => {
                let exit = self.exits.len() - 1 - *depth as usize;
                let earlier = self.exits[exit].take();
                self.exits[exit] = merge(earlier, Some(facts));
                return None;
            }
            Stmt::Call(call) => {
                self.called(call, &mut facts);
                for place in &call.outputs {
                    self.store(place, &vec![false; self.type_of(place).scalar_count()], &mut facts);
                }
            }
            Stmt::Assert { .. } => {}
            Stmt::Fault(_) | Stmt::Discard => return None,
        }
        Some(facts)
    }

    /// Removes what the body of a loop may undo.
    fn forget(&mut self, body: &[Stmt], facts: &mut Facts) {
        for stmt in body {
            match stmt {
                Stmt::Copy { to, .. } | Stmt::Reset(to) | Stmt::Sort(to) => self.forget_place(to, facts),
                Stmt::Call(call) => {
                    self.called(call, facts);
                    call.outputs.iter().for_each(|to| self.forget_place(to, facts));
                }
                Stmt::If { then, otherwise, .. } => {
                    self.forget(then, facts);
                    self.forget(otherwise, facts);
                }
                Stmt::Block(body) | Stmt::Loop { body, .. } => self.forget(body, facts),
                _ => {}
            }
        }
    }

    /// Elements change places: each family is as defined as the least of its scalars.
    fn sort(&self, place: &Place, facts: &mut Facts) {
        let (Some((first, count)), Some((root, ty))) = (self.reach(place), self.root(place)) else {
            return self.forget_place(place, facts);
        };
        let mut families = Vec::new();
        list_families(ty, 0, &mut families);
        let families = &families[first - self.firsts[root]..][..count];
        let scalars = &mut facts[first..first + count];
        let undefined: BTreeSet<usize> =
            families.iter().zip(&*scalars).filter(|(_, fact)| !**fact).map(|(family, _)| *family).collect();
        for (family, fact) in families.iter().zip(scalars) {
            *fact &= !undefined.contains(family);
        }
    }

    fn forget_place(&self, to: &Place, facts: &mut Facts) {
        match self.reach(to) {
            Some((first, count)) => facts[first..first + count].fill(false),
            None => self.vars_at(to).for_each(|var| self.assume_var(var, facts)),
        }
    }

    fn copy(&mut self, to: &Place, from: &Place, facts: &mut Facts) {
        let count = self.type_of(from).scalar_count();
        let sources: Vec<bool> = match self.exact(from) {
            Some((first, _)) => facts[first..first + count].to_vec(),
            None => match from.root {
                Root::Var(var) if !self.starting => {
                    let (first, ty) = family(&self.system.vars[var.index()].ty, &from.path);
                    let mut all = Vec::new();
                    list_families(ty, first, &mut all);
                    all.into_iter().map(|family| self.defined.vars[var.index()][family]).collect()
                }
                Root::Reference(reference) => self.all_targets(reference.index(), from),
                _ => {
                    let (first, reach) = self.reach(from).expect("variables and temporaries have scalars");
                    vec![facts[first..first + reach].iter().all(|&fact| fact); count]
                }
            },
        };
        self.store(to, &sources, facts);
    }

    /// Which scalars of a part of the state are defined, whatever the reference stands for.
    fn all_targets(&self, reference: usize, place: &Place) -> Vec<bool> {
        let (offset, ty) = family(&self.locals.references[reference].1, &place.path);
        let mut all = Vec::new();
        list_families(ty, offset, &mut all);
        let defined =
            |family: usize| self.targets[reference].iter().all(|&(var, first)| self.defined.vars[var][first + family]);
        all.into_iter().map(|family| !self.starting && defined(family)).collect()
    }

    /// Notes that a place gets scalars that are defined or not.
    fn store(&mut self, to: &Place, sources: &[bool], facts: &mut Facts) {
        match self.exact(to) {
            Some((first, count)) => facts[first..first + count].copy_from_slice(sources),
            None if sources.contains(&false) => self.forget_place(to, facts),
            None => {}
        }
        if let Root::Reference(reference) = to.root {
            let (offset, ty) = family(&self.locals.references[reference.index()].1, &to.path);
            let mut all = Vec::new();
            list_families(ty, offset, &mut all);
            for &(var, first) in &self.targets[reference.index()] {
                for (&family, &source) in all.iter().zip(sources) {
                    self.defined.vars[var][first + family] &= source || self.starting;
                }
                self.assume_var(var, facts);
            }
        }
        if let (Root::Var(var), false) = (to.root, self.starting) {
            let (first, ty) = family(&self.system.vars[var.index()].ty, &to.path);
            let mut all = Vec::new();
            list_families(ty, first, &mut all);
            for (&family, &source) in all.iter().zip(sources) {
                self.defined.vars[var.index()][family] &= source;
            }
        }
    }

    /// Which of the variables and temporaries; no reference is one.
    fn root(&self, place: &Place) -> Option<(usize, &'a Type)> {
        let number = match place.root {
            Root::Var(var) => var.index(),
            Root::Temp(temp) => self.system.vars.len() + temp.index(),
            Root::Reference(_) => return None,
        };
        Some((number, self.system.root_type(self.locals, place.root)))
    }

    fn type_of(&self, place: &Place) -> &'a Type {
        self.system.type_of(self.locals, place)
    }

    /// The scalars of a place whose indices are constants.
    fn exact(&self, place: &Place) -> Option<(usize, usize)> {
        let constant = |access: &Access| !matches!(access, Access::Index(index) if !matches!(index, Expr::Const(_)));
        place.path.iter().all(constant).then(|| self.reach(place)).flatten()
    }

    /// All scalars that a place can be, whatever its indices are.
    fn reach(&self, place: &Place) -> Option<(usize, usize)> {
        let (root, mut ty) = self.root(place)?;
        let mut first = self.firsts[root];
        for access in &place.path {
            match (ty, access) {
                (Type::Array { element, len }, Access::Index(Expr::Const(index)))
                    if (0..*len as i64).contains(index) =>
                {
                    first += *index as usize * element.scalar_count();
                    ty = element;
                }
                (Type::Record(fields), Access::Field(field)) => {
                    first += fields[..*field as usize].iter().map(|(_, ty)| ty.scalar_count()).sum::<usize>();
                    ty = &fields[*field as usize].1;
                }
                _ => break,
            }
        }
        Some((first, ty.scalar_count()))
    }
}

/// What holds on both ways.
fn merge(one: Option<Facts>, other: Option<Facts>) -> Option<Facts> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.iter_mut().zip(other).for_each(|(one, other)| *one &= other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    /// The variables (or fields) whose reads are still checked.
    fn checked(text: &str) -> Vec<String> {
        fn visit(stmts: &[Stmt], out: &mut Vec<String>) {
            for stmt in stmts {
                match stmt {
                    Stmt::Fault(message) => out.extend(message.split('`').nth(1).map(str::to_string)),
                    Stmt::If { then, otherwise, .. } => {
                        visit(then, out);
                        visit(otherwise, out);
                    }
                    Stmt::Block(body) | Stmt::Loop { body, .. } => visit(body, out),
                    _ => {}
                }
            }
        }
        let source = Source { name: "m".into(), text: text.into() };
        let (system, ..) = crate::murphi::load(&source, &Default::default()).unwrap();
        let mut out = Vec::new();
        for command in &system.commands {
            visit(&command.prelude, &mut out);
            visit(&command.body, &mut out);
        }
        out.sort();
        out.dedup();
        out
    }

    #[test]
    fn what_every_start_state_sets_and_no_rule_undefines_is_not_checked() {
        let text = "var x, y, z: boolean; a: array [0..40] of boolean;
            startstate x := true; y := true; for i: 0..40 do a[i] := x; end; end;
            startstate x := true; z := false; y := x; for i: 0..40 do a[i] := y; end; end;
            rule x & y & z & a[3] ==> x := !x; end;
            rule true ==> undefine y; end;";
        assert_eq!(checked(text), ["y", "z"]);
    }

    #[test]
    fn undefined_values_spread_by_copying() {
        let text = "type r: record f: boolean; g: boolean; end;
            var a, b, c: r; d: boolean;
            startstate clear a; clear b; clear c; d := true; end;
            rule a.f & a.g & b.f & b.g & c.f & c.g & d ==> b := a; end;
            rule true ==> var t: r; begin t.f := true; a := t; end;
            rule true ==> var t: r; begin t.f := true; if d then t.g := d; else t.g := false; end; c := t; end;";
        assert_eq!(checked(text), ["a.g", "b.g"]);
    }

    #[test]
    fn a_branch_or_a_loop_may_leave_something_unset() {
        let text = "var x, y, z: boolean; t: 0..3;
            startstate t := 0; x := true; if t = 0 then y := true; end; while t < 2 do z := x; t := t + 1; end; end;
            rule x & y & z ==> t := 0; end;";
        assert_eq!(checked(text), ["y", "z"]);
    }
}
