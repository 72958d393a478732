//! Whose turn it is: what commands do with the exclusive scalar, and how their guards depend on it.

use crate::expr::{BinOp, Expr, Place, Root, Stmt};
use crate::passes::fold::Scope;
use crate::passes::safe::may_stop;
use crate::passes::stores::{Writes, writes, written};
use crate::system::{Command, Locals, System, VarId};
use crate::walk::{Touch, stmt_places};

/// The values that the exclusive scalar may have.
pub struct Turn {
    pub scalar: Option<VarId>,
    /// All but zero.
    pub values: Vec<i64>,
}

impl Turn {
    /// Nothing if the values are not known, or if a start may leave one other than zero.
    pub fn of(system: &System) -> Option<Turn> {
        let Some(scalar) = system.exclusive else { return Some(Turn { scalar: None, values: Vec::new() }) };
        let starts = system.starts.iter().any(|start| writes(&start.body, scalar) != Writes::default());
        if starts || system.vars[scalar.index()].init.iter().any(|&value| value != 0) {
            return None;
        }
        let mut values = Vec::new();
        for command in &system.commands {
            let writes = writes(&command.body, scalar);
            if writes.unknown {
                return None;
            }
            values.extend(writes.values.into_iter().filter(|&value| value != 0));
        }
        values.sort_unstable();
        values.dedup();
        Some(Turn { scalar: Some(scalar), values })
    }

    pub fn writes(&self, command: &Command) -> Writes {
        self.scalar.map_or_else(Writes::default, |scalar| writes(&command.body, scalar))
    }

    /// The values other than zero with which the command may run.
    pub fn allowed(&self, system: &System, command: &Command) -> Vec<i64> {
        let stops = may_stop(&Scope { system, locals: Locals::temps(&command.temps) }, &command.prelude);
        let runs = |&value: &i64| stops || self.guard(system, command, value) != Expr::FALSE;
        self.values.iter().copied().filter(runs).collect()
    }

    /// What the command leaves in the scalar, if that is sure and `turns` are the values with which it may run.
    pub fn after(&self, command: &Command, turns: &[i64]) -> Option<i64> {
        let writes = self.writes(command);
        let kept = turns.is_empty() && writes.values.is_empty();
        if kept { Some(0) } else { writes.surely }
    }

    /// The guard where the scalar has a value.
    fn guard(&self, system: &System, command: &Command, value: i64) -> Expr {
        let mut guard = command.guard.clone();
        if let Some(scalar) = self.scalar {
            put(&mut guard, scalar, value);
            Scope { system, locals: Locals::temps(&command.temps) }.condition(&mut guard);
        }
        guard
    }

    /// The command as it is where the scalar has a value; nothing if its body looks at it.
    pub fn assumed(&self, system: &System, command: &Command, value: i64) -> Option<Command> {
        let Some(scalar) = self.scalar else { return Some(command.clone()) };
        let mut looks = false;
        let mut visit = |touch: Touch, place: &Place| {
            looks |= touch == Touch::Read && place.root == Root::Var(scalar);
        };
        stmt_places(&command.prelude, &mut visit);
        stmt_places(&command.body, &mut visit);
        if looks {
            return None;
        }
        let mut assumed = Command { guard: self.guard(system, command, value), ..command.clone() };
        if value == 0 && self.writes(command).values.iter().all(|&value| value == 0) {
            assumed.body.retain(|stmt| written(stmt) != Some(scalar));
        }
        Some(assumed)
    }

    /// The end of a chain in which none of `next` can follow.
    pub fn stuck(&self, next: &[Command]) -> Command {
        let mut command = Command::new("");
        let none = next.iter().map(|next| Expr::negate(next.guard.clone()));
        command.guard = none.reduce(|one, other| Expr::binary(BinOp::And, one, other)).unwrap_or(Expr::TRUE);
        command.body = self.scalar.map(|scalar| Stmt::Reset(scalar.into())).into_iter().collect();
        command
    }
}

/// Replaces the value of a scalar by a constant.
fn put(expr: &mut Expr, scalar: VarId, value: i64) {
    match expr {
        Expr::Read(place) if place.root == Root::Var(scalar) => *expr = Expr::Const(value),
        // The scalar is no index of anything that a chain depends on.
        Expr::Const(_) | Expr::Read(_) => {}
        Expr::Unary(_, inner) | Expr::Wrap { value: inner, .. } => put(inner, scalar, value),
        Expr::Binary(_, left, right) => {
            put(left, scalar, value);
            put(right, scalar, value);
        }
        Expr::Select(condition, then, otherwise) => {
            put(condition, scalar, value);
            put(then, scalar, value);
            put(otherwise, scalar, value);
        }
    }
}
