//! Expressions. What has to happen before one is evaluated has been emitted when it is returned.

use super::value::{Operand, Spot, Value, add, arithmetic, compare, not};
use super::{Lowered, Lowerer};
use crate::Span;
use crate::murphi::ast::{BinaryOp, Expr, ExprKind, TypeExpr, UnaryOp};
use crate::murphi::types::{BOOLEAN, INTEGER, Shape, TypeId};
use plimsoll_ir::{BinOp, Expr as IrExpr, Narrow, Place, Root, Stmt, UnOp};

impl<'a> Lowerer<'a> {
    pub(super) fn operand(&mut self, expr: &'a Expr) -> Lowered<Operand> {
        let value = match &expr.kind {
            ExprKind::Number(value) => Value::number(*value),
            ExprKind::Real => return Err(self.fail("real numbers are not supported", expr.span)),
            ExprKind::Undefined => return Ok(Operand::Undefined),
            ExprKind::Name(text) => return self.named(text, expr.span),
            ExprKind::Index(base, index) => return self.index(base, index),
            ExprKind::Field(base, name) => return self.field(base, name),
            ExprKind::Call(name, arguments) => return self.function(name, arguments),
            ExprKind::Unary(op, inner) => self.unary(*op, inner)?,
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, expr.span)?,
            ExprKind::Chain { op, logical, terms } => self.chain(*op, *logical, terms)?,
            ExprKind::Implies(left, right) => self.implies(left, right)?,
            ExprKind::Select(condition, then, otherwise) => self.select(condition, then, otherwise)?,
            ExprKind::Quantified { forall, quants, body } => {
                self.quantified(*forall, quants, &mut |lowerer| lowerer.truth(body))?
            }
            ExprKind::IsUndefined(inner) => self.is_undefined(inner)?,
            ExprKind::IsMember(inner, ty) => self.is_member(inner, ty)?,
            ExprKind::Count { name, set, predicate } => self.count_elements(name, set, predicate)?,
        };
        Ok(Operand::Value(value))
    }

    /// The value of a condition: 0 or 1.
    pub(super) fn truth(&mut self, expr: &'a Expr) -> Lowered<IrExpr> {
        let value = self.value(expr)?;
        if value.ty != BOOLEAN {
            return Err(self.mismatch(value.ty, BOOLEAN, expr.span));
        }
        Ok(value.expr)
    }

    pub(super) fn number(&mut self, expr: &'a Expr) -> Lowered<Value> {
        let value = self.value(expr)?;
        if !self.types.is_number(value.ty) {
            return Err(self.mismatch(value.ty, INTEGER, expr.span));
        }
        Ok(value)
    }

    fn unary(&mut self, op: UnaryOp, inner: &'a Expr) -> Lowered<Value> {
        Ok(match op {
            UnaryOp::Not => Value::truth(not(self.truth(inner)?)),
            UnaryOp::Plus => Value { ty: INTEGER, ..self.number(inner)? },
            UnaryOp::Minus => {
                let value = self.number(inner)?;
                self.in_range(arithmetic(BinOp::Sub, Value::number(0), value))
            }
            UnaryOp::Complement => {
                let value = self.number(inner)?;
                let expr = match value.as_const() {
                    Some(constant) => IrExpr::Const(!constant),
                    None => IrExpr::unary(UnOp::BitNot, value.expr),
                };
                Value { expr, ty: INTEGER, low: !value.high, high: !value.low }
            }
        })
    }

    fn binary(&mut self, op: BinaryOp, left: &'a Expr, right: &'a Expr, span: Span) -> Lowered<Value> {
        let op = match op {
            BinaryOp::Eq | BinaryOp::Ne => {
                let (one, other) = self.operands(left, right)?;
                let equal = self.equal((one, left.span), (other, right.span), span)?;
                return Ok(if op == BinaryOp::Eq { equal } else { Value::truth(not(equal.expr)) });
            }
            BinaryOp::Lt => BinOp::Lt,
            BinaryOp::Le => BinOp::Le,
            BinaryOp::Gt => BinOp::Gt,
            BinaryOp::Ge => BinOp::Ge,
            BinaryOp::Add => BinOp::Add,
            BinaryOp::Sub => BinOp::Sub,
            BinaryOp::Mul => BinOp::Mul,
            BinaryOp::Div => BinOp::Div,
            BinaryOp::Rem => BinOp::Rem,
            BinaryOp::Shl => BinOp::Shl,
            BinaryOp::Shr => BinOp::Shr,
            BinaryOp::Xor => BinOp::BitXor,
        };
        let (one, other) = self.operands(left, right)?;
        let one = self.operand_value((one, left.span))?;
        let other = self.operand_value((other, right.span))?;
        if op == BinOp::BitXor && one.ty == BOOLEAN && other.ty == BOOLEAN {
            return Ok(Value::truth(compare(BinOp::Ne, one.expr, other.expr)));
        }
        for (value, expr) in [(&one, left), (&other, right)] {
            if !self.types.is_number(value.ty) {
                return Err(self.mismatch(value.ty, INTEGER, expr.span));
            }
        }
        if op.is_truth() {
            return Ok(Value::truth(compare(op, one.expr, other.expr)));
        }
        if matches!(op, BinOp::Div | BinOp::Rem) && other.as_const() == Some(0) {
            return Err(self.fail("division by zero", right.span));
        }
        Ok(match op {
            BinOp::Shl | BinOp::Shr => self.shifted(op, one, other),
            _ => self.in_range(arithmetic(op, one, other)),
        })
    }

    /// Shifting by a negative amount is shifting the other way; by too much, everything is shifted out.
    fn shifted(&mut self, op: BinOp, value: Value, amount: Value) -> Value {
        let other = if op == BinOp::Shl { BinOp::Shr } else { BinOp::Shl };
        let (value, amount) = (self.code.save(&value), self.code.save(&amount));
        let one_way = |op: BinOp, amount: Value| {
            let all_out = if op == BinOp::Shl {
                IrExpr::Const(0)
            } else {
                IrExpr::binary(BinOp::Shr, value.expr.clone(), IrExpr::Const(63))
            };
            if (0..64).contains(&amount.low) && amount.high < 64 {
                return arithmetic(op, value.clone(), amount).expr;
            }
            let small = compare(BinOp::Lt, amount.expr.clone(), IrExpr::Const(64));
            let shifted = IrExpr::binary(op, value.expr.clone(), amount.expr);
            IrExpr::Select(Box::new(small), Box::new(shifted), Box::new(all_out))
        };
        let forward = one_way(op, amount.clone());
        let expr = if amount.low >= 0 {
            forward
        } else {
            let backward = one_way(other, arithmetic(BinOp::Sub, Value::number(0), amount.clone()));
            let positive = compare(BinOp::Ge, amount.expr, IrExpr::Const(0));
            IrExpr::Select(Box::new(positive), Box::new(forward), Box::new(backward))
        };
        let (low, high) = match expr {
            IrExpr::Const(value) => (value, value),
            _ => (i64::MIN, i64::MAX),
        };
        self.in_range(Value { expr, ty: INTEGER, low, high })
    }

    /// CMurphi computes with 32 bits; Rumur faults on overflow, and here nothing overflows 64 bits.
    pub(super) fn in_range(&self, value: Value) -> Value {
        let fits = value.low >= i32::MIN as i64 && value.high <= i32::MAX as i64;
        if fits || self.is_rumur() {
            return value;
        }
        let (low, high) = (i32::MIN as i64, i32::MAX as i64);
        match value.as_const() {
            Some(constant) => Value::number(constant as i32 as i64),
            None => Value { expr: IrExpr::wrap(32, true, value.expr), ty: INTEGER, low, high },
        }
    }

    /// Both operands, left first. If a call on the right may change the left one, that is held.
    pub(super) fn operands(&mut self, left: &'a Expr, right: &'a Expr) -> Lowered<(Operand, Operand)> {
        let mut one = self.operand(left)?;
        let (at, calls) = (self.code.out.len(), self.code.calls);
        let other = self.operand(right)?;
        if self.code.calls != calls {
            let inner = self.code.out.split_off(at);
            one = match one {
                Operand::Value(value) => Operand::Value(self.code.save(&value)),
                Operand::Spot(spot) => Operand::Spot(self.held(spot)),
                Operand::Undefined => Operand::Undefined,
            };
            self.code.out.extend(inner);
        }
        Ok((one, other))
    }

    /// A copy of what a place holds now.
    fn held(&mut self, spot: Spot) -> Spot {
        if let Root::Temp(_) = spot.place.root
            && self.code.is_fixed(&IrExpr::read(spot.place.clone()))
        {
            return spot;
        }
        let temp = self.code.fixed_temp("held", self.types.stored(spot.ty));
        self.code.emit(Stmt::Copy { to: temp.into(), from: spot.place });
        Spot::temp(temp.into(), spot.ty, spot.defined)
    }

    fn select(&mut self, condition: &'a Expr, then: &'a Expr, otherwise: &'a Expr) -> Lowered<Value> {
        let test = self.truth(condition)?;
        let (then_stmts, one) = self.branch(|lowerer| lowerer.value(then))?;
        let (other_stmts, other) = self.branch(|lowerer| lowerer.value(otherwise))?;
        let ty = if one.ty == other.ty {
            one.ty
        } else if self.types.is_number(one.ty) && self.types.is_number(other.ty) {
            INTEGER
        } else {
            return Err(self.mismatch(other.ty, one.ty, otherwise.span));
        };
        let (low, high) = (one.low.min(other.low), one.high.max(other.high));
        if let IrExpr::Const(known) = test {
            let (stmts, chosen) = if known != 0 { (then_stmts, one) } else { (other_stmts, other) };
            self.code.out.extend(stmts);
            return Ok(Value { ty, ..chosen });
        }
        if then_stmts.is_empty() && other_stmts.is_empty() {
            let expr = IrExpr::Select(Box::new(test), Box::new(one.expr), Box::new(other.expr));
            return Ok(Value { expr, ty, low, high });
        }
        let holder: Place = self.code.holder(low, high).into();
        let set = |mut stmts: Vec<Stmt>, value: IrExpr| {
            stmts.push(Stmt::assign(holder.clone(), value, Narrow::Trap));
            stmts
        };
        let (then, otherwise) = (set(then_stmts, one.expr), set(other_stmts, other.expr));
        self.code.emit(Stmt::If { condition: test, then, otherwise });
        Ok(Value { expr: IrExpr::Read(holder), ty, low, high })
    }

    fn is_undefined(&mut self, inner: &'a Expr) -> Lowered<Value> {
        Ok(Value::truth(match self.operand(inner)? {
            Operand::Spot(spot) if !self.types.is_simple(spot.ty) => {
                return Err(self.fail("only single values can be undefined", inner.span));
            }
            Operand::Spot(spot) if self.is_defined(&spot) => IrExpr::FALSE,
            Operand::Spot(spot) => compare(BinOp::Eq, IrExpr::read(spot.place), IrExpr::Const(0)),
            Operand::Value(_) => IrExpr::FALSE,
            Operand::Undefined => IrExpr::TRUE,
        }))
    }

    fn is_member(&mut self, inner: &'a Expr, ty: &'a TypeExpr) -> Lowered<Value> {
        let wanted = self.type_of(ty, None)?;
        let (stored, found) = match self.operand(inner)? {
            Operand::Spot(spot) if self.types.is_simple(spot.ty) => (IrExpr::read(spot.place), spot.ty),
            Operand::Value(value) => (add(value.expr, -self.types.shift(value.ty)), value.ty),
            _ => return Err(self.fail("this is not a single value", inner.span)),
        };
        let (first, count) = self.member_range(found, wanted, inner.span)?;
        let low = compare(BinOp::Ge, stored.clone(), IrExpr::Const(first + 1));
        let high = compare(BinOp::Le, stored, IrExpr::Const(first + count));
        Ok(Value::truth(super::value::chain(BinOp::And, vec![low, high])))
    }

    /// Where the values of `wanted` lie among those of `found`.
    fn member_range(&mut self, found: TypeId, wanted: TypeId, span: Span) -> Lowered<(i64, i64)> {
        let count = self.types.count(wanted).unwrap_or(0);
        if found == wanted {
            return Ok((0, count));
        }
        if let Shape::Union { members, .. } = self.types.shape(found)
            && let Some(&(_, first)) = members.iter().find(|(member, _)| *member == wanted)
        {
            return Ok((first, count));
        }
        Err(self.mismatch(found, wanted, span))
    }
}
