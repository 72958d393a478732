//! What code stores in a scalar variable: in a location, or in the exclusive scalar.

use crate::expr::{Expr, Root, Stmt};
use crate::system::VarId;
use std::collections::BTreeSet;

/// What a piece of code may store in a scalar variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// All constants that are stored.
    pub values: BTreeSet<i64>,
    /// Is something else stored?
    pub unknown: bool,
    /// What is in it at the end, if it is surely stored.
    pub surely: Option<i64>,
}

impl Writes {
    /// May the variable have this value at the end? It `had` it, or not.
    pub fn may_end_at(&self, value: u32, had: bool) -> bool {
        match self.surely {
            Some(last) => last == value as i64,
            None => had || self.values.contains(&value.into()),
        }
    }

    /// The constants that may be in it at the end.
    pub fn ends(&self) -> impl Iterator<Item = i64> + '_ {
        self.values.iter().copied().filter(|&value| self.surely.is_none_or(|last| last == value))
    }
}

/// The variable that a statement itself stores a scalar in.
pub fn written(stmt: &Stmt) -> Option<VarId> {
    match stmt {
        Stmt::Assign { to, .. } | Stmt::Copy { to, .. } | Stmt::Reset(to) => match to.root {
            Root::Var(var) => Some(var),
            Root::Temp(_) | Root::Reference(_) => None,
        },
        _ => None,
    }
}

/// What `body` stores in a scalar variable.
pub fn writes(body: &[Stmt], var: VarId) -> Writes {
    let mut out = Writes::default();
    for stmt in body {
        match stmt {
            Stmt::Assign { value: Expr::Const(value), .. } if written(stmt) == Some(var) => {
                out.values.insert(*value);
                out.surely = Some(*value);
            }
            Stmt::Reset(_) if written(stmt) == Some(var) => {
                out.values.insert(0);
                out.surely = Some(0);
            }
            Stmt::Assign { .. } | Stmt::Copy { .. } if written(stmt) == Some(var) => out.unknown = true,
            Stmt::If { then, otherwise, .. } => [then, otherwise].iter().for_each(|part| add_part(part, var, &mut out)),
            Stmt::Block(part) | Stmt::Loop { body: part, .. } => add_part(part, var, &mut out),
            _ => {}
        }
    }
    if out.unknown {
        out.surely = None;
    }
    out
}

/// Adds a part that may not run.
fn add_part(part: &[Stmt], var: VarId, out: &mut Writes) {
    let inner = writes(part, var);
    if !inner.values.is_empty() || inner.unknown {
        out.surely = None;
    }
    out.unknown |= inner.unknown;
    out.values.extend(inner.values);
}
