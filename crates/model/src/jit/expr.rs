//! Expressions: values in 64-bit registers, conditions as control flow.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use plimsoll_ir::{BinOp, Expr, UnOp};

use super::emit::{Emitter, Val};
use super::range::Range;

impl Emitter<'_, '_> {
    pub fn eval(&mut self, expr: &Expr) -> Val {
        match expr {
            Expr::Const(value) => self.constant(*value),
            Expr::Read(place) => self.read(place),
            Expr::Unary(UnOp::Not, _) | Expr::Binary(BinOp::And | BinOp::Or, ..) => self.truth(expr),
            Expr::Unary(op, value) => {
                let value = self.eval(value);
                self.unary(*op, value)
            }
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.eval(left), self.eval(right));
                self.binary(*op, left, right)
            }
            Expr::Select(condition, then, otherwise) => {
                self.choose(condition, |emitter| emitter.eval(then), |emitter| emitter.eval(otherwise))
            }
            Expr::Wrap { bits, signed, value } => {
                let value = self.eval(value);
                self.wrap(value, *bits, *signed)
            }
        }
    }

    /// A logical expression as 0 or 1.
    fn truth(&mut self, expr: &Expr) -> Val {
        if let Expr::Unary(UnOp::Not, value) = expr
            && is_plain(value)
        {
            let value = self.eval(value);
            let range = Range::unary(UnOp::Not, value.range);
            let zero = self.b.ins().icmp_imm_s(IntCC::Equal, value.value, 0);
            return Val { value: self.b.ins().uextend(types::I64, zero), range };
        }
        self.choose(expr, |emitter| emitter.constant(1), |emitter| emitter.constant(0))
    }

    /// One of two values, only the chosen one being evaluated.
    fn choose(
        &mut self,
        condition: &Expr,
        then: impl Fn(&mut Self) -> Val,
        otherwise: impl Fn(&mut Self) -> Val,
    ) -> Val {
        let (yes, no, join) = (self.fresh(), self.fresh(), self.fresh());
        let result = self.b.append_block_param(join, types::I64);
        self.branch(condition, yes, no);
        self.b.switch_to_block(yes);
        let one = then(self);
        self.b.ins().jump(join, &[one.value.into()]);
        self.b.switch_to_block(no);
        let other = otherwise(self);
        self.b.ins().jump(join, &[other.value.into()]);
        self.b.switch_to_block(join);
        Val { value: result, range: one.range.union(other.range) }
    }

    fn unary(&mut self, op: UnOp, value: Val) -> Val {
        let range = Range::unary(op, value.range);
        let value = match op {
            UnOp::Neg => self.b.ins().ineg(value.value),
            UnOp::BitNot => self.b.ins().bnot(value.value),
            UnOp::Not => unreachable!("logic is control flow"),
        };
        Val { value, range }
    }

    fn binary(&mut self, op: BinOp, left: Val, right: Val) -> Val {
        let range = Range::binary(op, left.range, right.range);
        let (a, b) = (left.value, right.value);
        let value = match op {
            BinOp::Div | BinOp::Rem => self.divide(op, left, right),
            _ if range.single().is_some() => return self.constant(range.low),
            BinOp::Add => self.b.ins().iadd(a, b),
            BinOp::Sub => self.b.ins().isub(a, b),
            BinOp::Mul => self.b.ins().imul(a, b),
            BinOp::BitAnd => self.b.ins().band(a, b),
            BinOp::BitOr => self.b.ins().bor(a, b),
            BinOp::BitXor => self.b.ins().bxor(a, b),
            BinOp::Shl => self.b.ins().ishl(a, b),
            BinOp::Shr => self.b.ins().sshr(a, b),
            _ => {
                let flag = self.b.ins().icmp(comparison(op), a, b);
                self.b.ins().uextend(types::I64, flag)
            }
        };
        Val { value, range }
    }

    /// Division and remainder, which fault on zero. The quotient of the least value by -1 wraps.
    fn divide(&mut self, op: BinOp, left: Val, right: Val) -> Value {
        if right.range.contains(0) {
            let sound = self.b.ins().icmp_imm_s(IntCC::NotEqual, right.value, 0);
            self.fault_unless(sound);
        }
        let natural = Range::of_bits(31, false);
        if left.range.within(natural) && right.range.within(natural) {
            // Narrow division is several times faster on many processors.
            let a = self.b.ins().ireduce(types::I32, left.value);
            let b = self.b.ins().ireduce(types::I32, right.value);
            let result = if op == BinOp::Div { self.b.ins().udiv(a, b) } else { self.b.ins().urem(a, b) };
            return self.b.ins().uextend(types::I64, result);
        }
        if !left.range.contains(i64::MIN) || !right.range.contains(-1) {
            return match op {
                BinOp::Div => self.b.ins().sdiv(left.value, right.value),
                _ => self.b.ins().srem(left.value, right.value),
            };
        }
        let minus = self.b.ins().icmp_imm_s(IntCC::Equal, right.value, -1);
        let one = self.b.ins().iconst(types::I64, 1);
        let divisor = self.b.ins().select(minus, one, right.value);
        if op == BinOp::Rem {
            return self.b.ins().srem(left.value, divisor);
        }
        let quotient = self.b.ins().sdiv(left.value, divisor);
        let negated = self.b.ins().ineg(left.value);
        self.b.ins().select(minus, negated, quotient)
    }

    /// Keeps the low bits of a value.
    pub fn wrap(&mut self, value: Val, bits: u8, signed: bool) -> Val {
        let range = value.range.wrap(bits, signed);
        if value.range.within(Range::of_bits(bits as u32, signed)) {
            return value;
        }
        let unused = 64 - bits as i64;
        let top = self.b.ins().ishl_imm_u(value.value, unused);
        let value = if signed { self.b.ins().sshr_imm_u(top, unused) } else { self.b.ins().ushr_imm_u(top, unused) };
        Val { value, range }
    }

    /// Jumps to `then` if the expression is not zero, else to `otherwise`. Ends the current block.
    pub fn branch(&mut self, expr: &Expr, then: Block, otherwise: Block) {
        match expr {
            Expr::Unary(UnOp::Not, value) => self.branch(value, otherwise, then),
            Expr::Binary(BinOp::And, left, right) => {
                let both = self.fresh();
                self.branch(left, both, otherwise);
                self.b.switch_to_block(both);
                self.branch(right, then, otherwise);
            }
            Expr::Binary(BinOp::Or, left, right) => {
                let neither = self.fresh();
                self.branch(left, then, neither);
                self.b.switch_to_block(neither);
                self.branch(right, then, otherwise);
            }
            Expr::Binary(op, left, right) if op.is_truth() => {
                let (left, right) = (self.eval(left), self.eval(right));
                let range = Range::binary(*op, left.range, right.range);
                if let Some(truth) = range.single() {
                    self.b.ins().jump(if truth != 0 { then } else { otherwise }, &[]);
                    return;
                }
                let flag = self.b.ins().icmp(comparison(*op), left.value, right.value);
                self.b.ins().brif(flag, then, &[], otherwise, &[]);
            }
            _ => {
                let value = self.eval(expr);
                match value.range.single() {
                    Some(value) => self.b.ins().jump(if value != 0 { then } else { otherwise }, &[]),
                    None if !value.range.contains(0) => self.b.ins().jump(then, &[]),
                    None => self.b.ins().brif(value.value, then, &[], otherwise, &[]),
                };
            }
        }
    }
}

/// Is the expression a value rather than logic?
fn is_plain(expr: &Expr) -> bool {
    !matches!(expr, Expr::Unary(UnOp::Not, _) | Expr::Binary(BinOp::And | BinOp::Or, ..))
}

fn comparison(op: BinOp) -> IntCC {
    match op {
        BinOp::Eq => IntCC::Equal,
        BinOp::Ne => IntCC::NotEqual,
        BinOp::Lt => IntCC::SignedLessThan,
        BinOp::Le => IntCC::SignedLessThanOrEqual,
        BinOp::Gt => IntCC::SignedGreaterThan,
        BinOp::Ge => IntCC::SignedGreaterThanOrEqual,
        _ => unreachable!("only comparisons compare"),
    }
}
