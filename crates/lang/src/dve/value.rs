//! Expressions of the intermediate representation with the interval their values lie in.
//!
//! DVE computes in 32 bits, the intermediate representation in 64. Where the interval shows that a
//! result fits in 32 bits nothing is added; elsewhere it is wrapped. Constants are folded.

use super::ast::BinaryOp;
use plimsoll_ir::{BinOp, Expr, UnOp, expr};

const LOWEST: i64 = i32::MIN as i64;
const HIGHEST: i64 = i32::MAX as i64;

/// An expression whose value always lies between `low` and `high`, both within 32 bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    pub expr: Expr,
    pub low: i64,
    pub high: i64,
}

impl Value {
    pub fn new(expr: Expr, low: i64, high: i64) -> Value {
        Value { expr, low, high }
    }

    pub fn constant(value: i64) -> Value {
        Value::new(Expr::Const(value), value, value)
    }

    pub fn as_constant(&self) -> Option<i64> {
        match self.expr {
            Expr::Const(value) => Some(value),
            _ => None,
        }
    }

    fn truth(expr: Expr) -> Value {
        Value::new(expr, 0, 1)
    }

    pub fn within(&self, low: i64, high: i64) -> bool {
        low <= self.low && self.high <= high
    }

    /// 1 if the value is not zero, else 0.
    fn into_truth(self) -> Value {
        match self.as_constant() {
            Some(value) => Value::constant((value != 0) as i64),
            None if self.within(0, 1) => self,
            None => Value::truth(Expr::binary(BinOp::Ne, self.expr, Expr::Const(0))),
        }
    }

    /// Wraps to 32 bits if need be.
    fn in_32_bits(self) -> Value {
        if let Some(value) = self.as_constant() {
            return Value::constant(expr::wrap(32, true, value));
        }
        if self.within(LOWEST, HIGHEST) { self } else { Value::new(Expr::wrap(32, true, self.expr), LOWEST, HIGHEST) }
    }

    pub fn negate(self) -> Value {
        let (low, high) = (-self.high, -self.low);
        self.unary(UnOp::Neg, low, high)
    }

    pub fn complement(self) -> Value {
        let (low, high) = (!self.high, !self.low);
        self.unary(UnOp::BitNot, low, high)
    }

    pub fn not(self) -> Value {
        self.unary(UnOp::Not, 0, 1)
    }

    fn unary(self, op: UnOp, low: i64, high: i64) -> Value {
        match self.as_constant() {
            Some(value) => Value::constant(op.apply(value)).in_32_bits(),
            None => Value::new(Expr::unary(op, self.expr), low, high).in_32_bits(),
        }
    }
}

/// `left op right`.
pub fn binary(op: BinaryOp, left: Value, right: Value) -> Value {
    let op = match op {
        BinaryOp::Imply => return binary(BinaryOp::Or, left.not(), right),
        BinaryOp::And | BinaryOp::Or => return chain(op, vec![left, right]),
        BinaryOp::BitOr => BinOp::BitOr,
        BinaryOp::BitXor => BinOp::BitXor,
        BinaryOp::BitAnd => BinOp::BitAnd,
        BinaryOp::Equal => BinOp::Eq,
        BinaryOp::Unequal => BinOp::Ne,
        BinaryOp::Less => BinOp::Lt,
        BinaryOp::LessEqual => BinOp::Le,
        BinaryOp::Greater => BinOp::Gt,
        BinaryOp::GreaterEqual => BinOp::Ge,
        BinaryOp::ShiftLeft => BinOp::Shl,
        BinaryOp::ShiftRight => BinOp::Shr,
        BinaryOp::Add => BinOp::Add,
        BinaryOp::Subtract => BinOp::Sub,
        BinaryOp::Multiply => BinOp::Mul,
        BinaryOp::Divide => BinOp::Div,
        BinaryOp::Remainder => BinOp::Rem,
    };
    let right = if matches!(op, BinOp::Shl | BinOp::Shr) { shift_count(right) } else { right };
    let (low, high) = interval(op, &left, &right);
    if let (Some(left), Some(right)) = (left.as_constant(), right.as_constant())
        && let Some(value) = op.apply(left, right)
    {
        return Value::constant(value).in_32_bits();
    }
    Value::new(Expr::binary(op, left.expr, right.expr), low, high).in_32_bits()
}

/// Machines shift 32-bit numbers by the low five bits of the count.
fn shift_count(count: Value) -> Value {
    match count.as_constant() {
        Some(value) => Value::constant(value & 31),
        None if count.within(0, 31) => count,
        None => Value::new(Expr::binary(BinOp::BitAnd, count.expr, Expr::Const(31)), 0, 31),
    }
}

/// Where the value of `left op right` lies before wrapping. Nothing overflows: operands have 32 bits.
fn interval(op: BinOp, left: &Value, right: &Value) -> (i64, i64) {
    let corners = |apply: fn(i64, i64) -> i64| {
        let all = [
            apply(left.low, right.low),
            apply(left.low, right.high),
            apply(left.high, right.low),
            apply(left.high, right.high),
        ];
        (all.into_iter().min().unwrap_or(LOWEST), all.into_iter().max().unwrap_or(HIGHEST))
    };
    let magnitude = |value: &Value| value.low.abs().max(value.high.abs());
    match op {
        BinOp::Add => (left.low + right.low, left.high + right.high),
        BinOp::Sub => (left.low - right.high, left.high - right.low),
        BinOp::Mul => corners(|a, b| a * b),
        BinOp::Shl => corners(|a, b| a << b),
        BinOp::Shr => corners(|a, b| a >> b),
        BinOp::Div if left.low >= 0 && right.low >= 0 => (0, left.high),
        BinOp::Div => (-magnitude(left), magnitude(left)),
        BinOp::Rem => {
            let most = (magnitude(right) - 1).max(0);
            (if left.low < 0 { left.low.max(-most) } else { 0 }, left.high.min(most).max(0))
        }
        BinOp::BitAnd if left.low >= 0 && right.low >= 0 => (0, left.high.min(right.high)),
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => {
            let bits = 64 - (magnitude(left) | magnitude(right)).leading_zeros();
            let most = (1i64 << bits) - 1;
            let signed = left.low < 0 || right.low < 0;
            ((if signed { -most - 1 } else { 0 }).max(LOWEST), most.min(HIGHEST))
        }
        _ => (0, 1),
    }
}

/// `first op second op …` of an associative operator, balanced so that a long chain does not get deep.
pub fn chain(op: BinaryOp, values: Vec<Value>) -> Value {
    let decisive = match op {
        BinaryOp::And => false,
        BinaryOp::Or => true,
        _ => return balance(values, &|left, right| binary(op, left, right)),
    };
    let mut kept = Vec::with_capacity(values.len());
    for value in values {
        match value.as_constant() {
            // What follows is never evaluated.
            Some(constant) if (constant != 0) == decisive => {
                kept.push(Value::constant(decisive as i64));
                break;
            }
            Some(_) => {}
            None => kept.push(value),
        }
    }
    if kept.len() < 2 {
        return kept.pop().map_or(Value::constant(!decisive as i64), Value::into_truth);
    }
    let op = if decisive { BinOp::Or } else { BinOp::And };
    balance(kept, &|left, right| Value::truth(Expr::binary(op, left.expr, right.expr)))
}

fn balance(mut values: Vec<Value>, join: &impl Fn(Value, Value) -> Value) -> Value {
    // Joins neighbours, round after round.
    while values.len() > 1 {
        let mut joined = Vec::with_capacity(values.len().div_ceil(2));
        let mut rest = values.into_iter();
        while let Some(left) = rest.next() {
            joined.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        values = joined;
    }
    values.pop().unwrap_or(Value::constant(0))
}

/// All of `terms` are true; they are tried in order.
pub fn all(terms: Vec<Expr>) -> Expr {
    let values = terms.into_iter().map(|expr| match expr {
        Expr::Const(value) => Value::constant(value),
        // The bounds play no part in a conjunction, except that the value is not known to be 0 or 1.
        expr => Value::new(expr, LOWEST, HIGHEST),
    });
    let mut values: Vec<Value> =
        values.filter(|value| value.as_constant().is_none_or(|constant| constant == 0)).collect();
    // One term alone need not become 0 or 1: a guard is true if it is not zero.
    if values.len() == 1 { values.remove(0).expr } else { chain(BinaryOp::And, values).expr }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::VarId;

    fn var(low: i64, high: i64) -> Value {
        Value::new(Expr::read(VarId(0)), low, high)
    }

    fn evaluate(expr: &Expr, x: i64) -> Option<i64> {
        Some(match expr {
            Expr::Const(value) => *value,
            Expr::Read(_) => x,
            Expr::Unary(op, value) => op.apply(evaluate(value, x)?),
            Expr::Binary(BinOp::And, left, right) if evaluate(left, x)? == 0 || evaluate(right, x)? == 0 => 0,
            Expr::Binary(BinOp::Or, left, right) if evaluate(left, x)? != 0 || evaluate(right, x)? != 0 => 1,
            Expr::Binary(op, left, right) => op.apply(evaluate(left, x)?, evaluate(right, x)?)?,
            Expr::Wrap { bits, signed, value } => expr::wrap(*bits, *signed, evaluate(value, x)?),
            Expr::Select(..) => unreachable!("never made here"),
        })
    }

    const OPERATORS: [BinaryOp; 19] = [
        BinaryOp::Imply,
        BinaryOp::Or,
        BinaryOp::And,
        BinaryOp::BitOr,
        BinaryOp::BitXor,
        BinaryOp::BitAnd,
        BinaryOp::Equal,
        BinaryOp::Unequal,
        BinaryOp::Less,
        BinaryOp::LessEqual,
        BinaryOp::Greater,
        BinaryOp::GreaterEqual,
        BinaryOp::ShiftLeft,
        BinaryOp::ShiftRight,
        BinaryOp::Add,
        BinaryOp::Subtract,
        BinaryOp::Multiply,
        BinaryOp::Divide,
        BinaryOp::Remainder,
    ];

    /// The meaning in 32 bits, written independently.
    fn reference(op: BinaryOp, a: i32, b: i32) -> Option<i32> {
        Some(match op {
            BinaryOp::Imply => (a == 0 || b != 0) as i32,
            BinaryOp::Or => (a != 0 || b != 0) as i32,
            BinaryOp::And => (a != 0 && b != 0) as i32,
            BinaryOp::BitOr => a | b,
            BinaryOp::BitXor => a ^ b,
            BinaryOp::BitAnd => a & b,
            BinaryOp::Equal => (a == b) as i32,
            BinaryOp::Unequal => (a != b) as i32,
            BinaryOp::Less => (a < b) as i32,
            BinaryOp::LessEqual => (a <= b) as i32,
            BinaryOp::Greater => (a > b) as i32,
            BinaryOp::GreaterEqual => (a >= b) as i32,
            BinaryOp::ShiftLeft => a.wrapping_shl(b as u32),
            BinaryOp::ShiftRight => a.wrapping_shr(b as u32),
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Subtract => a.wrapping_sub(b),
            BinaryOp::Multiply => a.wrapping_mul(b),
            BinaryOp::Divide if b == 0 => return None,
            BinaryOp::Remainder if b == 0 => return None,
            BinaryOp::Divide => a.wrapping_div(b),
            BinaryOp::Remainder => a.wrapping_rem(b),
        })
    }

    #[test]
    fn every_operator_is_32_bit_arithmetic_and_stays_in_its_interval() {
        let interesting = [i32::MIN, i32::MIN + 1, -32768, -7, -1, 0, 1, 2, 3, 5, 31, 32, 33, 255, 32767, i32::MAX];
        let ranges = [(0, 255), (-32768, 32767), (LOWEST, HIGHEST), (0, 1), (-7, -1), (3, 33)];
        for op in OPERATORS {
            for (low, high) in ranges {
                for &x in interesting.iter().filter(|&&x| (low..=high).contains(&x.into())) {
                    for b in interesting {
                        let expected = reference(op, x, b).map(i64::from);
                        let right = binary(op, var(low, high), Value::constant(b.into()));
                        assert_eq!(evaluate(&right.expr, x.into()), expected, "{x} {op:?} {b} in {low}..{high}");
                        assert!(
                            expected.is_none_or(|value| right.low <= value && value <= right.high),
                            "{op:?} {x} {b}"
                        );
                        let left = binary(op, Value::constant(b.into()), var(low, high));
                        let expected = reference(op, b, x).map(i64::from);
                        assert_eq!(evaluate(&left.expr, x.into()), expected, "{b} {op:?} {x} in {low}..{high}");
                        assert!(expected.is_none_or(|value| left.low <= value && value <= left.high), "{b} {op:?} {x}");
                    }
                }
            }
        }
    }

    #[test]
    fn ordinary_arithmetic_needs_no_wrapping() {
        let int = || var(-32768, 32767);
        for op in [BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Multiply, BinaryOp::Divide, BinaryOp::Remainder] {
            assert!(matches!(binary(op, int(), int()).expr, Expr::Binary(..)), "{op:?}");
        }
        let cube = binary(BinaryOp::Multiply, binary(BinaryOp::Multiply, int(), int()), int());
        assert!(matches!(cube.expr, Expr::Wrap { bits: 32, signed: true, .. }));
        let shifted = binary(BinaryOp::ShiftLeft, var(0, 255), Value::constant(7));
        assert_eq!((shifted.low, shifted.high), (0, 255 << 7));
        assert!(matches!(binary(BinaryOp::ShiftLeft, var(0, 255), int()).expr, Expr::Wrap { .. }));
    }

    #[test]
    fn constants_fold_but_a_fault_stays() {
        let sum = binary(BinaryOp::Add, Value::constant(i32::MAX.into()), Value::constant(1));
        assert_eq!(sum.as_constant(), Some(i32::MIN.into()));
        assert_eq!(binary(BinaryOp::Divide, Value::constant(1), Value::constant(0)).as_constant(), None);
        assert_eq!(Value::constant(LOWEST).negate().as_constant(), Some(LOWEST));
        assert_eq!(Value::constant(5).not().as_constant(), Some(0));
    }

    #[test]
    fn conjunctions_drop_what_does_not_matter() {
        let and = |values| chain(BinaryOp::And, values);
        assert_eq!(and(vec![Value::constant(3), Value::constant(2)]).as_constant(), Some(1));
        assert_eq!(and(vec![Value::constant(0), var(0, 9)]).as_constant(), Some(0));
        // A value that could fault is still evaluated before the false one.
        assert!(matches!(and(vec![var(0, 9), Value::constant(0), var(0, 1)]).expr, Expr::Binary(BinOp::And, ..)));
        assert_eq!(and(vec![Value::constant(1), var(0, 1)]).expr, var(0, 1).expr);
        assert!(matches!(and(vec![var(0, 9), Value::constant(1)]).expr, Expr::Binary(BinOp::Ne, ..)));
        assert_eq!(all(vec![Expr::TRUE, Expr::read(VarId(0))]), Expr::read(VarId(0)));
        assert_eq!(all(vec![]), Expr::TRUE);
    }

    #[test]
    fn long_chains_stay_shallow() {
        fn depth(expr: &Expr) -> usize {
            match expr {
                Expr::Binary(_, left, right) => 1 + depth(left).max(depth(right)),
                Expr::Wrap { value, .. } => 1 + depth(value),
                _ => 1,
            }
        }
        for op in [BinaryOp::And, BinaryOp::Or, BinaryOp::Add, BinaryOp::Multiply] {
            let value = chain(op, vec![var(0, 9); 100_000]);
            assert!(depth(&value.expr) <= 2 * 18, "{op:?}");
        }
        let sum = chain(BinaryOp::Add, (0..1000).map(Value::constant).collect());
        assert_eq!(sum.as_constant(), Some(499_500));
    }
}
