//! Constant folding and algebraic simplification.
//!
//! Faults survive: a part that may fault is dropped only where it would not have been evaluated either.
//! A command that can never run (constantly false guard, no prelude) is dropped; of start commands one
//! always stays, as a system without any would start from its initial values.

use super::interval::Interval;
use crate::expr::{Access, BinOp, Call, Expr, Place, Stmt, UnOp, wrap};
use crate::system::{Command, Deadlock, Locals, System};
use crate::types::Type;

/// Sums of values up to this do not overflow.
const SMALL: i64 = 1 << 40;

/// Folds all expressions and statements of a verified system.
pub fn fold(mut system: System) -> System {
    let mut starts = std::mem::take(&mut system.starts);
    let mut commands = std::mem::take(&mut system.commands);
    let mut properties = std::mem::take(&mut system.properties);
    let mut procedures = std::mem::take(&mut system.procedures);
    for command in starts.iter_mut().chain(&mut commands) {
        fold_command(&system, command);
    }
    for property in &mut properties {
        let scope = Scope { system: &system, locals: Locals::temps(&property.temps) };
        scope.stmts(&mut property.prelude);
        scope.expr(&mut property.expr);
    }
    for procedure in &mut procedures {
        let mut body = std::mem::take(&mut procedure.body);
        Scope { system: &system, locals: procedure.locals() }.stmts(&mut body);
        procedure.body = body;
    }
    let mut deadlock = system.deadlock.clone();
    if let Deadlock::Stuck { accepted: Some(accepted) } = &mut deadlock {
        Scope { system: &system, locals: Locals::temps(&[]) }.expr(accepted);
    }
    if starts.iter().any(|command| !never_runs(command)) {
        starts.retain(|command| !never_runs(command));
    } else {
        starts.truncate(1);
    }
    commands.retain(|command| !never_runs(command));
    System { starts, commands, properties, procedures, deadlock, ..system }
}

fn fold_command(system: &System, command: &mut Command) {
    let scope = Scope { system, locals: Locals::temps(&command.temps) };
    scope.stmts(&mut command.prelude);
    scope.condition(&mut command.guard);
    scope.stmts(&mut command.body);
}

fn never_runs(command: &Command) -> bool {
    command.prelude.is_empty() && command.guard == Expr::FALSE
}

/// A condition may lose what only changes a true value into another.
fn truth_only(condition: &mut Expr) {
    match condition {
        Expr::Const(value) => *value = (*value != 0) as i64,
        Expr::Binary(BinOp::Ne, value, zero) if **zero == Expr::FALSE => *condition = take(value),
        _ => {}
    }
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::FALSE)
}

/// What names in a piece of code mean.
pub(super) struct Scope<'a> {
    pub system: &'a System,
    pub locals: Locals<'a>,
}

impl Scope<'_> {
    fn stmts(&self, stmts: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(stmts.len());
        for stmt in std::mem::take(stmts) {
            self.stmt(stmt, &mut out);
            if matches!(out.last(), Some(Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard)) {
                break;
            }
        }
        *stmts = out;
    }

    /// Appends the simplified statement.
    fn stmt(&self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        match &mut stmt {
            Stmt::Assign { to, value, .. } => {
                self.place(to);
                self.expr(value);
            }
            Stmt::Copy { to, from } => {
                self.place(to);
                self.place(from);
            }
            Stmt::Reset(place) | Stmt::Sort(place) => self.place(place),
            Stmt::If { condition, then, otherwise } => {
                self.condition(condition);
                self.stmts(then);
                self.stmts(otherwise);
                if let Expr::Const(value) = condition {
                    return out.append(if *value != 0 { then } else { otherwise });
                }
                if then.is_empty() && otherwise.is_empty() && !self.may_fault(condition) {
                    return;
                }
            }
            Stmt::Block(body) => {
                self.stmts(body);
                if body.is_empty() {
                    return;
                }
            }
            Stmt::Loop { body, .. } => self.stmts(body),
            Stmt::Assert { condition, .. } => {
                self.condition(condition);
                if *condition == Expr::TRUE {
                    return;
                }
            }
            Stmt::Call(call) => {
                let Call { references, inputs, outputs, .. } = &mut **call;
                references.iter_mut().chain(inputs).chain(outputs).for_each(|place| self.place(place));
            }
            Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => {}
        }
        out.push(stmt);
    }

    fn place(&self, place: &mut Place) {
        for access in &mut place.path {
            if let Access::Index(index) = access {
                self.expr(index);
            }
        }
    }

    /// Simplifies an expression of which only the truth matters.
    pub fn condition(&self, condition: &mut Expr) {
        self.expr(condition);
        truth_only(condition);
    }

    fn expr(&self, expr: &mut Expr) {
        match expr {
            Expr::Const(_) => {}
            Expr::Read(place) => self.place(place),
            Expr::Unary(op, value) => {
                self.expr(value);
                *expr = self.unary(*op, take(value));
            }
            Expr::Binary(op, left, right) => {
                self.expr(left);
                self.expr(right);
                *expr = match op {
                    BinOp::And | BinOp::Or => self.logic(*op, take(left), take(right)),
                    _ => self.binary(*op, take(left), take(right)),
                };
            }
            Expr::Select(condition, then, otherwise) => {
                self.condition(condition);
                self.expr(then);
                self.expr(otherwise);
                if let Expr::Const(value) = **condition {
                    *expr = if value != 0 { take(then) } else { take(otherwise) };
                }
            }
            Expr::Wrap { bits, signed, value } => {
                self.expr(value);
                if let Expr::Const(constant) = **value {
                    *expr = Expr::Const(wrap(*bits, *signed, constant));
                } else if let known = self.interval(value)
                    && known.wrap(*bits, *signed) == known
                {
                    *expr = take(value);
                }
            }
        }
    }

    fn unary(&self, op: UnOp, value: Expr) -> Expr {
        match (op, value) {
            (_, Expr::Const(value)) => Expr::Const(op.apply(value)),
            (UnOp::Neg, Expr::Unary(UnOp::Neg, inner)) | (UnOp::BitNot, Expr::Unary(UnOp::BitNot, inner)) => *inner,
            (UnOp::Not, Expr::Unary(UnOp::Not, inner)) => truth(*inner),
            (UnOp::Not, Expr::Binary(compare, left, right)) if opposite(compare).is_some() => {
                Expr::Binary(opposite(compare).expect("just seen"), left, right)
            }
            (_, value) => Expr::unary(op, value),
        }
    }

    fn logic(&self, op: BinOp, left: Expr, right: Expr) -> Expr {
        let absorbing = op == BinOp::Or;
        match (&left, &right) {
            (Expr::Const(value), _) if (*value != 0) == absorbing => Expr::Const(absorbing as i64),
            (Expr::Const(_), _) => truth(right),
            (_, Expr::Const(value)) if (*value != 0) != absorbing => truth(left),
            (_, Expr::Const(_)) if !self.may_fault(&left) => Expr::Const(absorbing as i64),
            _ => Expr::binary(op, left, right),
        }
    }

    fn binary(&self, op: BinOp, left: Expr, right: Expr) -> Expr {
        use BinOp::*;
        match (op, &left, &right) {
            (_, Expr::Const(a), Expr::Const(b)) => match op.apply(*a, *b) {
                Some(value) => Expr::Const(value),
                None => Expr::binary(op, left, right),
            },
            (Add | Sub | BitOr | BitXor | Shl | Shr, _, Expr::Const(0)) => left,
            (Mul | Div, _, Expr::Const(1)) | (BitAnd, _, Expr::Const(-1)) => left,
            (Add | BitOr | BitXor, Expr::Const(0), _) => right,
            (Mul, Expr::Const(1), _) | (BitAnd, Expr::Const(-1), _) => right,
            (Mul | BitAnd, _, Expr::Const(0)) | (Rem, _, Expr::Const(1 | -1)) if !self.may_fault(&left) => Expr::FALSE,
            (Mul | BitAnd, Expr::Const(0), _) if !self.may_fault(&right) => Expr::FALSE,
            (Ne, Expr::Binary(inner, ..), Expr::Const(0)) if inner.is_truth() => left,
            (Eq, Expr::Binary(inner, ..), Expr::Const(0)) if inner.is_truth() => self.unary(UnOp::Not, left),
            (Add, Expr::Binary(Add, _, inner), Expr::Const(b)) if matches!(**inner, Expr::Const(_)) => {
                let Expr::Const(a) = **inner else { unreachable!("just seen") };
                let sum = Expr::Const(a.wrapping_add(*b));
                let Expr::Binary(_, base, _) = left else { unreachable!("just seen") };
                self.binary(Add, *base, sum)
            }
            _ if op.is_truth() => self.comparison(op, left, right),
            _ => Expr::binary(op, left, right),
        }
    }

    /// A comparison that the ranges of its sides decide.
    fn comparison(&self, op: BinOp, left: Expr, right: Expr) -> Expr {
        let (left, right) = self.without_addends(left, right);
        match self.interval(&left).binary(op, self.interval(&right)).as_point() {
            Some(value) if !self.may_fault(&left) && !self.may_fault(&right) => Expr::Const(value),
            _ => Expr::binary(op, left, right),
        }
    }

    /// Two sides of a comparison, less the constants that are added to them, where nothing can overflow.
    fn without_addends(&self, left: Expr, right: Expr) -> (Expr, Expr) {
        let small = Interval::new(-SMALL, SMALL);
        let is_small = |expr: &Expr| self.interval(expr).within(small);
        let addend = |expr: &Expr| match expr {
            Expr::Binary(BinOp::Add, value, constant) => match **constant {
                Expr::Const(constant) if (-SMALL..=SMALL).contains(&constant) && is_small(value) => Some(constant),
                _ => None,
            },
            _ => None,
        };
        let value = |expr: Expr| match expr {
            Expr::Binary(_, value, _) => *value,
            expr => expr,
        };
        match (addend(&left), addend(&right), &left, &right) {
            (Some(one), Some(other), ..) if one == other => (value(left), value(right)),
            (Some(one), None, _, &Expr::Const(limit)) if is_small(&right) => (value(left), Expr::Const(limit - one)),
            (None, Some(other), &Expr::Const(limit), _) if is_small(&left) => {
                (Expr::Const(limit - other), value(right))
            }
            _ => (left, right),
        }
    }

    pub fn ty(&self, place: &Place) -> &Type {
        self.system.type_of(self.locals, place)
    }

    /// What is known about a simple value from the types alone.
    pub fn interval(&self, expr: &Expr) -> Interval {
        match expr {
            Expr::Const(value) => Interval::point(*value),
            Expr::Read(place) => self.ty(place).as_scalar().map_or(Interval::TOP, |scalar| Interval::stored(&scalar)),
            Expr::Binary(op, ..) if op.is_truth() => Interval::new(0, 1),
            Expr::Unary(UnOp::Not, _) => Interval::new(0, 1),
            Expr::Wrap { bits, signed, .. } => Interval::TOP.wrap(*bits, *signed),
            Expr::Binary(BinOp::BitAnd, _, mask) => match **mask {
                Expr::Const(mask) if mask >= 0 => Interval::new(0, mask),
                _ => Interval::TOP,
            },
            _ => Interval::TOP,
        }
    }

    pub fn may_fault(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Const(_) => false,
            Expr::Read(place) => self.place_may_fault(place),
            Expr::Unary(_, value) | Expr::Wrap { value, .. } => self.may_fault(value),
            Expr::Binary(op, left, right) => {
                let divides = matches!(op, BinOp::Div | BinOp::Rem);
                let by_zero = divides && self.interval(right).contains(0);
                by_zero || self.may_fault(left) || self.may_fault(right)
            }
            Expr::Select(condition, then, otherwise) => {
                self.may_fault(condition) || self.may_fault(then) || self.may_fault(otherwise)
            }
        }
    }

    pub fn place_may_fault(&self, place: &Place) -> bool {
        let mut ty = self.system.root_type(self.locals, place.root);
        for access in &place.path {
            if let (Type::Array { len, .. }, Access::Index(index)) = (ty, access) {
                let valid = Interval::new(0, *len as i64 - 1);
                if !self.interval(index).within(valid) || self.may_fault(index) {
                    return true;
                }
            }
            ty = ty.step(access);
        }
        false
    }
}

/// The value as 0 or 1.
fn truth(expr: Expr) -> Expr {
    match expr {
        Expr::Const(value) => Expr::Const((value != 0) as i64),
        Expr::Binary(op, ..) if op.is_truth() => expr,
        Expr::Unary(UnOp::Not, _) => expr,
        _ => Expr::binary(BinOp::Ne, expr, Expr::FALSE),
    }
}

/// The comparison that is true where `op` is false.
pub(super) fn opposite(op: BinOp) -> Option<BinOp> {
    use BinOp::*;
    Some(match op {
        Eq => Ne,
        Ne => Eq,
        Lt => Ge,
        Ge => Lt,
        Gt => Le,
        Le => Gt,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{parse, print};
    use crate::verify::verify;

    /// Folds a guard over `x: 0..9`, `b: 0..1` and `a: [4] 0..9`.
    #[track_caller]
    fn check(guard: &str, expected: &str) {
        let with = |guard: &str| {
            let declarations = "system \"t\" var x: 0..9 var b: 0..1 var a: [4] 0..9";
            let system = parse(&format!("{declarations} invariant \"i\" {{ expect {guard} }}")).unwrap();
            verify(&system).unwrap();
            system
        };
        assert_eq!(print(&fold(with(guard))), print(&with(expected)));
    }

    #[test]
    fn constants_fold() {
        check("(2 + 3) * -(4)", "-20");
        check("select(1, x, a[9])", "x");
        check("i8(200) + (x * 1)", "-56 + x");
        check("(x + 1) + 2", "x + 3");
        check("!(x < 3)", "x >= 3");
        check("!!x", "x != 0");
        check("u8(x)", "x");
        check("u2(x)", "u2(x)");
        check("x < 16", "1");
        check("x < 15", "x < 15");
    }

    #[test]
    fn faults_stay() {
        check("1 / 0", "1 / 0");
        check("(x / b) * 0", "(x / b) * 0");
        check("a[x] * 0", "a[x] * 0");
        check("a[b] * 0", "0");
        check("a[4] < 100", "a[4] < 100");
        check("(x / 3) & 0", "0");
    }

    #[test]
    fn short_circuits_stay() {
        check("0 && a[x]", "0");
        check("1 && a[x]", "a[x] != 0");
        check("a[x] && 0", "a[x] && 0");
        check("a[b] && 0", "0");
        check("x || 1", "1");
        check("(1 / x) || 1", "(1 / x) || 1");
        check("b && (x || 0)", "b && (x != 0)");
    }

    #[test]
    fn statements_and_commands_fold() {
        let text =
            |starts: &str, body: &str| format!("system \"t\" var x: 0..9 {starts} command \"c\" {{ do {{ {body} }} }}");
        let folded = |text: String| print(&fold(parse(&text).unwrap()));
        let body = "if 2 > 1 { x := 1; } else { x := 2; } assert 3 \"m\"; if 0 { discard; } discard; x := 5;";
        assert_eq!(folded(text("", body)), print(&parse(&text("", "x := 1; discard;")).unwrap()));
        let never = "start \"a\" { when 1 - 1 } start \"b\" { when 0 }";
        let kept = fold(parse(&text(never, "")).unwrap());
        assert_eq!(kept.starts.len(), 1, "there must still be no initial state");
        let system = fold(parse("system \"t\" command \"a\" { when 3 < 2 } command \"b\" { when 2 }").unwrap());
        assert_eq!(system.commands.len(), 1);
        assert_eq!(system.commands[0].guard, Expr::TRUE);
    }
}
