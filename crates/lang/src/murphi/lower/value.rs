//! Values under construction and the arithmetic on them.
//!
//! Every value carries bounds, computed from types and operators. They decide which range and index checks
//! are needed at all, and where 32-bit arithmetic can overflow.

use super::super::types::{BOOLEAN, INTEGER, TypeId};
use plimsoll_ir::{BinOp, Expr, Place, UnOp};

/// A value that is certainly defined: a number, a position, or a truth value.
#[derive(Clone, Debug)]
pub struct Value {
    pub expr: Expr,
    pub ty: TypeId,
    pub low: i64,
    pub high: i64,
}

/// A variable, a part of one, a parameter or the result of a function.
#[derive(Clone, Debug)]
pub struct Spot {
    pub place: Place,
    pub ty: TypeId,
    pub writable: bool,
    /// It can be seen from its declaration that it is never undefined.
    pub defined: bool,
    /// It lies inside a multiset.
    pub in_multiset: bool,
    /// CMurphi copies it even where it is undefined: a plain name rather than a field, an element or a result.
    pub silent: bool,
}

#[derive(Clone, Debug)]
pub enum Operand {
    Spot(Spot),
    Value(Value),
    /// The word `undefined`.
    Undefined,
}

impl Value {
    pub fn number(value: i64) -> Value {
        Value { expr: Expr::Const(value), ty: INTEGER, low: value, high: value }
    }

    pub fn constant(value: i64, ty: TypeId) -> Value {
        Value { expr: Expr::Const(value), ty, low: value, high: value }
    }

    pub fn truth(expr: Expr) -> Value {
        Value { expr, ty: BOOLEAN, low: 0, high: 1 }
    }

    pub fn as_const(&self) -> Option<i64> {
        match self.expr {
            Expr::Const(value) => Some(value),
            _ => None,
        }
    }
}

impl Spot {
    /// A temporary of the front end's own.
    pub fn temp(place: Place, ty: TypeId, defined: bool) -> Spot {
        Spot { place, ty, writable: false, defined, in_multiset: false, silent: true }
    }
}

/// `expr + amount`, constants folded.
pub fn add(expr: Expr, amount: i64) -> Expr {
    match expr {
        Expr::Const(value) => Expr::Const(value.wrapping_add(amount)),
        expr if amount == 0 => expr,
        Expr::Binary(BinOp::Add, inner, right) if matches!(*right, Expr::Const(_)) => {
            let Expr::Const(already) = *right else { unreachable!("just matched") };
            add(*inner, already.wrapping_add(amount))
        }
        expr => Expr::binary(BinOp::Add, expr, Expr::Const(amount)),
    }
}

/// `expr` without an added constant, and that constant.
fn strip(expr: Expr) -> (Expr, i64) {
    match expr {
        Expr::Binary(BinOp::Add, inner, right) if matches!(*right, Expr::Const(_)) => {
            let Expr::Const(amount) = *right else { unreachable!("just matched") };
            (*inner, amount)
        }
        expr => (expr, 0),
    }
}

/// A comparison; constants on one side take up what is added on the other.
pub fn compare(op: BinOp, left: Expr, right: Expr) -> Expr {
    if let (&Expr::Const(left), &Expr::Const(right)) = (&left, &right) {
        return Expr::Const(op.apply(left, right).unwrap_or(0));
    }
    let (left, added_left) = strip(left);
    let (right, added_right) = strip(right);
    match (&left, &right) {
        (Expr::Const(value), _) => {
            Expr::binary(op, Expr::Const(value.wrapping_add(added_left).wrapping_sub(added_right)), right)
        }
        _ => Expr::binary(op, left, add(right, added_right.wrapping_sub(added_left))),
    }
}

pub fn not(expr: Expr) -> Expr {
    match expr {
        Expr::Const(value) => Expr::Const((value == 0) as i64),
        Expr::Unary(UnOp::Not, inner) if is_truth(&inner) => *inner,
        Expr::Binary(BinOp::Eq, left, right) => Expr::Binary(BinOp::Ne, left, right),
        Expr::Binary(BinOp::Ne, left, right) => Expr::Binary(BinOp::Eq, left, right),
        expr => Expr::negate(expr),
    }
}

/// Is the expression always 0 or 1?
fn is_truth(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(op, ..) => op.is_truth(),
        Expr::Unary(UnOp::Not, _) => true,
        _ => false,
    }
}

/// Conjunction or disjunction, balanced so that it does not nest deep; constants fold.
pub fn chain(op: BinOp, terms: Vec<Expr>) -> Expr {
    let (neutral, absorbing) = if op == BinOp::And { (1, 0) } else { (0, 1) };
    let mut kept = Vec::new();
    for term in terms {
        match term {
            Expr::Const(value) if (value != 0) as i64 == neutral => {}
            Expr::Const(_) => {
                kept.push(Expr::Const(absorbing));
                break;
            }
            term => kept.push(term),
        }
    }
    if kept.first() == Some(&Expr::Const(absorbing)) {
        return Expr::Const(absorbing);
    }
    balanced(op, &mut kept.into_iter().collect()).unwrap_or(Expr::Const(neutral))
}

fn balanced(op: BinOp, terms: &mut Vec<Expr>) -> Option<Expr> {
    if terms.len() <= 1 {
        return terms.pop();
    }
    let mut right = terms.split_off(terms.len() / 2);
    Some(Expr::binary(op, balanced(op, terms)?, balanced(op, &mut right)?))
}

/// An arithmetic operation with the bounds of its result.
pub fn arithmetic(op: BinOp, left: Value, right: Value) -> Value {
    let (low, high) = bounds(op, (left.low, left.high), (right.low, right.high));
    let folded = match (left.as_const(), right.as_const()) {
        (Some(left), Some(right)) => op.apply(left, right),
        _ => None,
    };
    let expr = match (folded, op, left.expr, right.expr) {
        (Some(value), ..) => return Value::number(value),
        (None, BinOp::Add, left, Expr::Const(amount)) => add(left, amount),
        (None, BinOp::Add, Expr::Const(amount), right) => add(right, amount),
        (None, BinOp::Sub, left, Expr::Const(amount)) if amount != i64::MIN => add(left, -amount),
        (None, op, left, right) => Expr::binary(op, left, right),
    };
    Value { expr, ty: INTEGER, low, high }
}

fn clamp(value: i128) -> i64 {
    value.clamp(i64::MIN as i128, i64::MAX as i128) as i64
}

fn bounds(op: BinOp, left: (i64, i64), right: (i64, i64)) -> (i64, i64) {
    let corners = |apply: fn(i128, i128) -> i128| {
        let all = [left.0, left.1].map(|a| [right.0, right.1].map(|b| apply(a as i128, b as i128)));
        let all = [all[0][0], all[0][1], all[1][0], all[1][1]];
        (clamp(*all.iter().min().unwrap_or(&0)), clamp(*all.iter().max().unwrap_or(&0)))
    };
    let magnitude = |(low, high): (i64, i64)| low.unsigned_abs().max(high.unsigned_abs()).min(i64::MAX as u64) as i64;
    match op {
        BinOp::Add => corners(|a, b| a + b),
        BinOp::Sub => corners(|a, b| a - b),
        BinOp::Mul => corners(|a, b| a * b),
        BinOp::Div if right.0 > 0 || right.1 < 0 => corners(|a, b| a / b),
        BinOp::Div => (-magnitude(left), magnitude(left)),
        BinOp::Rem => {
            let most = magnitude(left).min(magnitude(right).saturating_sub(1).max(0));
            (if left.0 < 0 { -most } else { 0 }, if left.1 > 0 { most } else { 0 })
        }
        BinOp::BitAnd if left.0 >= 0 && right.0 >= 0 => (0, left.1.min(right.1)),
        BinOp::BitOr | BinOp::BitXor if left.0 >= 0 && right.0 >= 0 => {
            (0, (left.1.max(right.1) as u64 + 1).next_power_of_two().saturating_sub(1).min(i64::MAX as u64) as i64)
        }
        BinOp::Shr if right.0 >= 0 && right.1 < 64 => (left.0.min(0), left.1.max(0)),
        _ => (i64::MIN, i64::MAX),
    }
}

/// How many nodes an expression has.
pub fn size(expr: &Expr) -> usize {
    let mut count = 1;
    match expr {
        Expr::Const(_) => {}
        Expr::Read(place) => count += place_size(place),
        Expr::Unary(_, inner) | Expr::Wrap { value: inner, .. } => count += size(inner),
        Expr::Binary(_, left, right) => count += size(left) + size(right),
        Expr::Select(condition, then, otherwise) => count += size(condition) + size(then) + size(otherwise),
    }
    count
}

pub fn place_size(place: &Place) -> usize {
    place.indices().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::TempId;

    fn read() -> Expr {
        Expr::read(TempId(0))
    }

    #[test]
    fn added_constants_move_to_the_constant_side() {
        assert_eq!(compare(BinOp::Lt, add(read(), -1), Expr::Const(4)), Expr::binary(BinOp::Lt, read(), 5.into()));
        assert_eq!(add(add(read(), 3), -3), read());
    }

    #[test]
    fn bounds_enclose_every_result() {
        let ops = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Rem, BinOp::BitAnd, BinOp::BitOr, BinOp::Shr];
        for op in ops {
            for (a, b, c, d) in [(-5, 3, -2, 4), (0, 7, 1, 3), (2, 9, -3, -1), (-6, -2, 2, 2)] {
                let (low, high) = bounds(op, (a, b), (c, d));
                for left in a..=b {
                    for right in c..=d {
                        let Some(value) = op.apply(left, right) else { continue };
                        assert!((low..=high).contains(&value), "{left} {op:?} {right} = {value} not in {low}..{high}");
                    }
                }
            }
        }
    }

    #[test]
    fn long_chains_stay_shallow_and_fold() {
        fn depth(expr: &Expr) -> usize {
            match expr {
                Expr::Binary(_, left, right) => 1 + depth(left).max(depth(right)),
                _ => 0,
            }
        }
        assert!(depth(&chain(BinOp::And, vec![read(); 1000])) <= 10);
        assert_eq!(chain(BinOp::And, vec![read(), Expr::TRUE]), read());
        assert_eq!(chain(BinOp::Or, vec![Expr::TRUE, read()]), Expr::TRUE);
        assert_eq!(chain(BinOp::Or, vec![]), Expr::FALSE);
    }
}
