//! Can a piece of code go wrong? Judged by the types of what it reads alone.

use super::fold::Scope;
use super::interval::Interval;
use crate::expr::{Narrow, Stmt};

/// May running the statements fault, discard the command, or take a loop's limit?
pub(super) fn may_stop(scope: &Scope, stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Assign { to, value, narrow } => {
            let fits = || scope.interval(value).within(Interval::range(&scope.ty(to).as_scalar().expect("verified")));
            scope.place_may_fault(to) || scope.may_fault(value) || (*narrow == Narrow::Trap && !fits())
        }
        Stmt::Copy { to, from } => scope.place_may_fault(to) || scope.place_may_fault(from),
        Stmt::Reset(place) | Stmt::Sort(place) => scope.place_may_fault(place),
        Stmt::If { condition, then, otherwise } => {
            scope.may_fault(condition) || may_stop(scope, then) || may_stop(scope, otherwise)
        }
        Stmt::Block(body) => may_stop(scope, body),
        Stmt::Assert { condition, .. } => scope.may_fault(condition),
        Stmt::Break(_) => false,
        Stmt::Loop { .. } | Stmt::Call(_) | Stmt::Fault(_) | Stmt::Discard => true,
    })
}

/// May running the statements show that the command is not enabled?
pub(super) fn may_discard(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::If { then, otherwise, .. } => may_discard(then) || may_discard(otherwise),
        Stmt::Block(body) | Stmt::Loop { body, .. } => may_discard(body),
        stmt => matches!(stmt, Stmt::Discard),
    })
}
