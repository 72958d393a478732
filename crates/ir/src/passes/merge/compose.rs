//! One command after the other, as one command.

use super::Point;
use crate::expr::{Expr, Place, Root, Stmt};
use crate::passes::stores::{writes, written};
use crate::system::{Command, Kind, System, TempId, VarId};
use crate::walk::{Touch, change_stmt_places, stmt_places};

/// `first`, and if it leads to the point then `next`, which is enabled there. Nothing if that is not possible.
pub fn sequence(
    system: &System,
    first: &Command,
    next: &Command,
    point: Point,
    exclusive: Option<VarId>,
) -> Option<Command> {
    let mut out = first.clone();
    let code = appended(&mut out, next);
    if writes(&first.body, point.location).surely == Some(point.at.into()) {
        for var in [Some(point.location), exclusive].into_iter().flatten() {
            drop_last_store(&mut out.body, &code, var);
        }
        out.body.extend(code);
    } else if point.takes_part(first) {
        let arrived = Expr::equal(Expr::read(point.location), Expr::Const(point.at.into()));
        out.body.push(Stmt::If { condition: arrived, then: code, otherwise: Vec::new() });
    } else if !insert(system, &mut out.body, point, &code) {
        return None;
    }
    out.acts.extend(next.acts.iter().cloned());
    out.label = label(&first.label, &next.label);
    out.kind = kind(first.kind, next.kind);
    Some(out)
}

/// The code of a command that comes second, with its temporaries made those of `to`.
fn appended(to: &mut Command, next: &Command) -> Vec<Stmt> {
    let first = to.temps.len() as u32;
    to.temps.extend(next.temps.iter().cloned());
    let mut rename = |place: &mut Place| {
        if let Root::Temp(temp) = &mut place.root {
            *temp = TempId(temp.0 + first);
        }
    };
    let mut code = next.prelude.clone();
    if next.guard != Expr::TRUE {
        let (condition, then) = (Expr::negate(next.guard.clone()), vec![Stmt::Discard]);
        code.push(Stmt::If { condition, then, otherwise: Vec::new() });
    }
    code.extend(next.body.iter().cloned());
    change_stmt_places(&mut code, &mut rename);
    code
}

/// Drops the last store to a variable that `code` stores in anyway, if nobody looks at it between.
fn drop_last_store(body: &mut Vec<Stmt>, code: &[Stmt], var: VarId) {
    let Some(last) = body.iter().rposition(|stmt| written(stmt) == Some(var)) else { return };
    if !looks_at(&body[last + 1..], var) && replaces(code, var) {
        body.remove(last);
    }
}

fn looks_at(code: &[Stmt], var: VarId) -> bool {
    let mut looks = false;
    stmt_places(code, &mut |touch, place| looks |= touch == Touch::Read && place.root == Root::Var(var));
    looks
}

/// Does the code surely store in a variable, without looking at it?
fn replaces(code: &[Stmt], var: VarId) -> bool {
    writes(code, var).surely.is_some() && !looks_at(code, var)
}

/// Inserts `code` behind every store of the location in a nested part of `body`. Nothing that follows in the same
/// part may touch what the code touches.
fn insert(system: &System, body: &mut Vec<Stmt>, point: Point, code: &[Stmt]) -> bool {
    let stores = |stmt: &Stmt| {
        let here = matches!(stmt, Stmt::Assign { value: Expr::Const(value), .. } if *value == point.at.into());
        here && written(stmt) == Some(point.location)
    };
    if let Some(at) = body.iter().position(stores) {
        if touch_alike(system, &body[at + 1..], code) {
            return false;
        }
        let first = if replaces(code, point.location) { at } else { at + 1 };
        body.splice(first..at + 1, code.iter().cloned());
        return true;
    }
    body.iter_mut().all(|stmt| match stmt {
        Stmt::If { then, otherwise, .. } => insert(system, then, point, code) && insert(system, otherwise, point, code),
        Stmt::Block(part) => insert(system, part, point, code),
        Stmt::Loop { body, .. } => !writes(body, point.location).values.contains(&point.at.into()),
        _ => true,
    })
}

/// Do two pieces of code touch a common variable?
fn touch_alike(system: &System, one: &[Stmt], other: &[Stmt]) -> bool {
    let mut touched = vec![false; system.vars.len()];
    stmt_places(one, &mut |_, place| {
        if let Root::Var(var) = place.root {
            touched[var.index()] = true;
        }
    });
    let mut alike = false;
    stmt_places(other, &mut |_, place| alike |= matches!(place.root, Root::Var(var) if touched[var.index()]));
    alike
}

/// Labels one after the other; who moves is not said twice.
fn label(first: &str, next: &str) -> String {
    let who = next.find(": ").map_or("", |end| &next[..end + 2]);
    let what = if first.starts_with(who) { &next[who.len()..] } else { next };
    if what.is_empty() { first.to_string() } else { format!("{first}; {what}") }
}

fn kind(first: Kind, next: Kind) -> Kind {
    match (first, next) {
        (Kind::Control, kind) | (kind, Kind::Control) => kind,
        (one, other) if one == other => one,
        _ => Kind::Other,
    }
}
