//! What a whole atomic chain touches.
//!
//! In a visible state the exclusive scalar is zero. A step is its first command, then, while the scalar is not
//! zero, further ones; all that may follow are found by a walk over commands: what values the scalar may have
//! after a command, where its process may stand then, and whose guard allows that. The scalar itself does not
//! count as touched: steps start and end with zero in it. If a start may leave it non-zero, or where procedures may
//! set it, nothing is known.

use super::{Cells, Touched};
use crate::expr::{BinOp, Expr, Narrow, Place, Root, Stmt, UnOp};
use crate::system::{Command, System, VarId};
use crate::walk::{Touch, stmt_places};

/// Replaces what commands touch by what the chains that start with them touch.
pub(super) fn extend(system: &System, exclusive: VarId, cells: &Cells, commands: &mut [Touched]) {
    if starts_inside(system, exclusive) || !system.procedures.is_empty() {
        commands.iter_mut().for_each(|touched| touched.global = true);
        return;
    }
    let mut scalar = cells.none();
    cells.add(system, &exclusive.into(), &mut scalar);
    let exits: Vec<Exit> = system.commands.iter().map(|command| Exit::of(system, exclusive, command)).collect();
    let own = commands.to_vec();
    for (first, touched) in commands.iter_mut().enumerate() {
        for member in chain(system, exclusive, &exits, first) {
            touched.reads.add_all(&own[member].reads);
            touched.writes.add_all(&own[member].writes);
            touched.global |= own[member].rank != touched.rank;
        }
        touched.reads.remove_all(&scalar);
        touched.writes.remove_all(&scalar);
    }
}

fn starts_inside(system: &System, exclusive: VarId) -> bool {
    let writes = |start: &Command| {
        let mut found = false;
        stmt_places(&start.body, &mut |touch, place| found |= touch == Touch::Write && is(place, exclusive));
        found
    };
    system.vars[exclusive.index()].init.iter().any(|&value| value != 0) || system.starts.iter().any(writes)
}

fn is(place: &Place, var: VarId) -> bool {
    place.root == Root::Var(var)
}

/// Values that a variable may have after a command; none: any.
type Values = Option<Vec<i64>>;

struct Exit {
    /// The exclusive scalar, and whether the command surely writes it.
    scalar: Values,
    surely: bool,
    /// The location of the process that moves.
    location: Values,
}

impl Exit {
    fn of(system: &System, exclusive: VarId, command: &Command) -> Exit {
        let (scalar, surely) = assigned(system, exclusive, &command.body);
        let location = command.at.first().and_then(|&(process, before)| {
            let (values, surely) = assigned(system, system.processes[process.index()].location, &command.body);
            values.map(|mut values| {
                values.extend((!surely).then_some(before as i64));
                values
            })
        });
        Exit { scalar, surely, location }
    }
}

/// The constants assigned to a scalar variable, and whether one surely is.
fn assigned(system: &System, var: VarId, body: &[Stmt]) -> (Values, bool) {
    let mut values = Some(Vec::new());
    let mut note = |value: Option<i64>| match (value, &mut values) {
        (Some(value), Some(list)) => list.push(value),
        _ => values = None,
    };
    let fits = |value: i64| match &system.vars[var.index()].ty {
        crate::types::Type::Scalar(scalar) => (scalar.low..=scalar.high).contains(&value),
        _ => false,
    };
    each(body, &mut |stmt| match stmt {
        Stmt::Assign { to, value: Expr::Const(value), .. } if is(to, var) && fits(*value) => note(Some(*value)),
        Stmt::Assign { to, .. } | Stmt::Copy { to, .. } | Stmt::Reset(to) if is(to, var) => {
            note(matches!(stmt, Stmt::Reset(_)).then_some(0).filter(|&zero| fits(zero)));
        }
        _ => {}
    });
    let surely = body.iter().any(|stmt| match stmt {
        Stmt::Assign { to, .. } | Stmt::Copy { to, .. } | Stmt::Reset(to) => is(to, var),
        _ => false,
    });
    (values, surely)
}

fn each<'a>(stmts: &'a [Stmt], visit: &mut impl FnMut(&'a Stmt)) {
    for stmt in stmts {
        visit(stmt);
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                each(then, visit);
                each(otherwise, visit);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => each(body, visit),
            _ => {}
        }
    }
}

/// All commands that may run in a chain that starts with `first`, which is one of them.
fn chain(system: &System, exclusive: VarId, exits: &[Exit], first: usize) -> Vec<usize> {
    // A command is walked again when it may be entered with further values of the scalar.
    let mut entered: Vec<Option<Values>> = vec![None; system.commands.len()];
    entered[first] = Some(Some(vec![0]));
    let mut waiting = vec![first];
    while let Some(current) = waiting.pop() {
        let before = entered[current].clone().expect("it was entered");
        let after = after(&exits[current], &before);
        for (next, command) in system.commands.iter().enumerate() {
            let Some(values) = allowed(exclusive, command, &after) else { continue };
            if !may_stand(&system.commands[current], &exits[current], command) {
                continue;
            }
            if join(&mut entered[next], values) {
                waiting.push(next);
            }
        }
    }
    (0..entered.len()).filter(|&command| entered[command].is_some()).collect()
}

fn after(exit: &Exit, before: &Values) -> Values {
    let mut values = exit.scalar.clone()?;
    if !exit.surely {
        values.extend_from_slice(before.as_ref()?);
    }
    values.retain(|&value| value != 0);
    Some(values)
}

/// With which of the values of the scalar the command may run; nothing if with none.
fn allowed(exclusive: VarId, command: &Command, values: &Values) -> Option<Values> {
    let Some(values) = values else { return Some(None) };
    let possible = |&value: &i64| !command.is_blocked(exclusive, value);
    let possible: Vec<i64> = values.iter().copied().filter(possible).collect();
    (!possible.is_empty()).then_some(Some(possible))
}

impl Command {
    /// Can the command surely neither run nor go wrong while the scalar variable has this value?
    pub fn is_blocked(&self, scalar: VarId, value: i64) -> bool {
        harmless(&self.prelude) && known(&self.guard, scalar, value) == Some(0)
    }
}

/// May `next` run right after `command`, as far as the process that moved in `command` is concerned?
fn may_stand(command: &Command, exit: &Exit, next: &Command) -> bool {
    let Some(&(mover, _)) = command.at.first() else { return true };
    let Some(locations) = &exit.location else { return true };
    next.at.iter().filter(|(process, _)| *process == mover).all(|(_, at)| locations.contains(&(*at as i64)))
}

/// Adds values; true if some were not there.
fn join(held: &mut Option<Values>, more: Values) -> bool {
    match (held, more) {
        (Some(None), _) => false,
        (Some(Some(held)), Some(more)) => {
            let before = held.len();
            for value in more {
                if !held.contains(&value) {
                    held.push(value);
                }
            }
            held.len() > before
        }
        (held, more) => {
            *held = Some(more);
            true
        }
    }
}

/// The value of an expression when the scalar has `value`, if it is sure to have one.
fn known(expr: &Expr, exclusive: VarId, value: i64) -> Option<i64> {
    let of = |expr: &Expr| known(expr, exclusive, value);
    match expr {
        Expr::Const(number) => Some(*number),
        Expr::Read(place) if is(place, exclusive) => Some(value),
        Expr::Unary(UnOp::Not, inner) => of(inner).map(|inner| (inner == 0) as i64),
        Expr::Binary(BinOp::And, left, right) => match (of(left), of(right)) {
            (Some(0), _) => Some(0),
            (None, Some(0)) if is_safe(left) => Some(0),
            (Some(_), right) => right.map(|right| (right != 0) as i64),
            _ => None,
        },
        Expr::Binary(BinOp::Or, left, right) => match (of(left), of(right)) {
            (Some(0), right) => right.map(|right| (right != 0) as i64),
            (Some(_), _) => Some(1),
            _ => None,
        },
        Expr::Binary(op @ (BinOp::Eq | BinOp::Ne), left, right) => {
            let (left, right) = (of(left)?, of(right)?);
            Some(((left == right) == (*op == BinOp::Eq)) as i64)
        }
        _ => None,
    }
}

/// Can nothing go wrong while evaluating?
fn is_safe(expr: &Expr) -> bool {
    match expr {
        Expr::Const(_) => true,
        Expr::Read(place) => place.indices().next().is_none(),
        Expr::Unary(_, inner) | Expr::Wrap { value: inner, .. } => is_safe(inner),
        Expr::Binary(BinOp::Div | BinOp::Rem, ..) => false,
        Expr::Binary(_, left, right) => is_safe(left) && is_safe(right),
        Expr::Select(condition, then, otherwise) => is_safe(condition) && is_safe(then) && is_safe(otherwise),
    }
}

/// Does code before a guard do nothing but compute?
fn harmless(prelude: &[Stmt]) -> bool {
    prelude.iter().all(|stmt| match stmt {
        Stmt::Assign { to, value, narrow: Narrow::Wrap } => to.indices().next().is_none() && is_safe(value),
        _ => false,
    })
}
