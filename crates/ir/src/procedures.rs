//! What procedures do beside their own temporaries, those that they call included.

use crate::expr::{Call, Root, Stmt};
use crate::system::{Procedure, ProcedureId, System, VarId};
use crate::walk::{Touch, stmt_calls, stmt_places};
use std::collections::BTreeSet;

/// What running a procedure may touch of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub reads: BTreeSet<VarId>,
    pub writes: BTreeSet<VarId>,
    /// By reference: may what the caller handed over be written?
    pub writes_reference: Vec<bool>,
    /// May an assertion fail?
    pub asserts: bool,
}

/// One summary for each procedure of a verified system.
pub fn summaries(system: &System) -> Vec<Summary> {
    let mut all: Vec<Summary> = Vec::with_capacity(system.procedures.len());
    for procedure in &system.procedures {
        let next = summary(procedure, &all);
        all.push(next);
    }
    all
}

/// The summary of a procedure, given those of all that come before it.
pub fn summary(procedure: &Procedure, before: &[Summary]) -> Summary {
    let mut own = Summary { writes_reference: vec![false; procedure.references.len()], ..Summary::default() };
    // What it hands over to itself may be written by way of another reference.
    loop {
        let next = once(procedure, before, &own);
        if next == own {
            return own;
        }
        own = next;
    }
}

fn once(procedure: &Procedure, before: &[Summary], own: &Summary) -> Summary {
    let callee_of = |call: &Call| before.get(call.procedure.index()).unwrap_or(own);
    let mut summary = own.clone();
    let mut handed_over = |root: Root, written: bool| match root {
        Root::Var(var) => {
            summary.reads.insert(var);
            summary.writes.extend(written.then_some(var));
        }
        Root::Reference(reference) => summary.writes_reference[reference.index()] |= written,
        Root::Temp(_) => {}
    };
    plain_places(&procedure.body, &mut |touch, root| handed_over(root, touch == Touch::Write));
    let mut calls = Vec::new();
    stmt_calls(&procedure.body, &mut |call| calls.push(call));
    for call in &calls {
        let written = callee_of(call).writes_reference.iter();
        call.references.iter().zip(written).for_each(|(place, &written)| handed_over(place.root, written));
        call.outputs.iter().for_each(|place| handed_over(place.root, true));
    }
    for call in calls {
        let callee = callee_of(call);
        summary.reads.extend(&callee.reads);
        summary.writes.extend(&callee.writes);
        summary.asserts |= callee.asserts;
    }
    summary.asserts |= asserts(&procedure.body);
    summary
}

/// Which procedures commands and properties call, start commands as well or not.
pub fn used(system: &System, with_starts: bool) -> Vec<bool> {
    let mut used = vec![false; system.procedures.len()];
    let mut note = |stmts: &[Stmt]| stmt_calls(stmts, &mut |call| used[call.procedure.index()] = true);
    let starts = system.starts.iter().filter(|_| with_starts);
    starts.chain(&system.commands).for_each(|command| {
        note(&command.prelude);
        note(&command.body);
    });
    system.properties.iter().for_each(|property| note(&property.prelude));
    for (index, procedure) in system.procedures.iter().enumerate().rev() {
        if used[index] {
            stmt_calls(&procedure.body, &mut |call| used[call.procedure.index()] = true);
        }
    }
    used
}

/// Drops the procedures that nobody calls.
pub fn drop_unused(system: &mut System) {
    let used = used(system, true);
    let mut next = 0;
    let numbers: Vec<u32> = used
        .iter()
        .map(|&used| {
            next += used as u32;
            next.wrapping_sub(1)
        })
        .collect();
    let mut keep = used.into_iter();
    system.procedures.retain(|_| keep.next().unwrap_or(false));
    let renumber = &mut |call: &mut Call| call.procedure = ProcedureId(numbers[call.procedure.index()]);
    for command in system.starts.iter_mut().chain(&mut system.commands) {
        change_calls(&mut command.prelude, renumber);
        change_calls(&mut command.body, renumber);
    }
    system.properties.iter_mut().for_each(|property| change_calls(&mut property.prelude, renumber));
    system.procedures.iter_mut().for_each(|procedure| change_calls(&mut procedure.body, renumber));
}

fn change_calls(stmts: &mut [Stmt], change: &mut impl FnMut(&mut Call)) {
    for stmt in stmts {
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                change_calls(then, change);
                change_calls(otherwise, change);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => change_calls(body, change),
            Stmt::Call(call) => change(call),
            _ => {}
        }
    }
}

/// What a call hands over, and whether it may be written.
pub fn each_written_reference(call: &Call, all: &[Summary], mut visit: impl FnMut(Root, bool)) {
    let written = &all[call.procedure.index()].writes_reference;
    call.references.iter().zip(written).for_each(|(place, &written)| visit(place.root, written));
}

/// The roots of everything that statements touch, except what calls write.
fn plain_places(stmts: &[Stmt], visit: &mut impl FnMut(Touch, Root)) {
    for stmt in stmts {
        match stmt {
            Stmt::If { condition, then, otherwise } => {
                crate::walk::expr_places(condition, &mut |touch, place| visit(touch, place.root));
                plain_places(then, visit);
                plain_places(otherwise, visit);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => plain_places(body, visit),
            Stmt::Call(_) => {
                stmt_places(std::slice::from_ref(stmt), &mut |_, place| visit(Touch::Read, place.root));
            }
            plain => stmt_places(std::slice::from_ref(plain), &mut |touch, place| visit(touch, place.root)),
        }
    }
}

/// Is there an assertion among the statements themselves?
pub fn asserts(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Assert { .. } => true,
        Stmt::If { then, otherwise, .. } => asserts(then) || asserts(otherwise),
        Stmt::Block(body) | Stmt::Loop { body, .. } => asserts(body),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_and_what_is_handed_over_count() {
        let text = r#"system "t" var x: 0..3 var a: [2] 0..3 var b: 0..3 var c: 0..3
            procedure "inner" { reference r: 0..3 reference s: 0..3 do { &0 := x; assert &1 == 0 "m"; } }
            procedure "outer" { reference r: 0..3 temp t: 0..3 output t do { call inner(a[c], &0;;); t := 1; } }
            procedure "last" { reference r: 0..3 do { call outer(b;;c); call inner(&0, b;;); } }
            procedure "self" { reference r: 0..3 reference s: 0..3 reference t: 0..3 recursion 2
                do { call self(&2, &0, &1;;); &0 := 1; } }"#;
        let system = crate::text::parse(text).unwrap();
        crate::verify(&system).unwrap();
        let all = summaries(&system);
        let vars = |set: &BTreeSet<VarId>| set.iter().map(|var| var.0).collect::<Vec<_>>();
        assert_eq!(all.iter().map(|one| vars(&one.writes)).collect::<Vec<_>>(), [vec![], vec![1], vec![1, 3], vec![]]);
        assert_eq!(vars(&all[2].reads), [0, 1, 2, 3]);
        assert_eq!(all[1].writes_reference, [false], "it is passed on, but only to be read");
        assert_eq!(all[2].writes_reference, [true]);
        assert!(all[2].asserts);
        assert_eq!(all[3].writes_reference, [true; 3], "each is the first some levels deeper");
    }

    #[test]
    fn what_nobody_calls_is_dropped() {
        let text = r#"system "t" var x: 0..3 procedure "a" { do { x := 1; } } procedure "b" { do { x := 2; } }
            procedure "c" { do { loop 2 { call b(;;); break 0; } } } procedure "d" { do { call a(;;); } }
            command "go" { do { if x { call c(;;); } } }"#;
        let mut system = crate::text::parse(text).unwrap();
        drop_unused(&mut system);
        crate::verify(&system).unwrap();
        let names: Vec<_> = system.procedures.iter().map(|procedure| procedure.name.as_str()).collect();
        assert_eq!(names, ["b", "c"]);
        assert!(crate::text::print(&system).contains("call c("));
    }
}
