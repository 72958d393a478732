//! `&`, `|` and `->`. The right side is evaluated only if it matters, with everything that belongs to it.

use super::value::{Operand, Value, arithmetic, chain, not};
use super::{Lowered, Lowerer};
use crate::murphi::ast::{ChainOp, Expr, ExprKind};
use crate::murphi::types::{BOOLEAN, INTEGER};
use plimsoll_ir::{BinOp, Expr as IrExpr, Narrow, Place, Scalar, Stmt, UnOp};

impl<'a> Lowerer<'a> {
    pub(super) fn chain(&mut self, op: ChainOp, logical: bool, terms: &'a [Expr]) -> Lowered<Value> {
        let (first, rest) = terms.split_first().expect("a chain has terms");
        let start = self.value(first)?;
        if !logical && self.types.is_number(start.ty) {
            return self.bitwise(op, start, rest);
        }
        if start.ty != BOOLEAN {
            return Err(self.mismatch(start.ty, BOOLEAN, first.span));
        }
        let op = if op == ChainOp::And { BinOp::And } else { BinOp::Or };
        self.short_circuit(op, start.expr, rest)
    }

    pub(super) fn implies(&mut self, left: &'a Expr, right: &'a Expr) -> Lowered<Value> {
        let start = not(self.truth(left)?);
        self.short_circuit(BinOp::Or, start, std::slice::from_ref(right))
    }

    fn bitwise(&mut self, op: ChainOp, start: Value, rest: &'a [Expr]) -> Lowered<Value> {
        let op = if op == ChainOp::And { BinOp::BitAnd } else { BinOp::BitOr };
        let mut value = Value { ty: INTEGER, ..start };
        for term in rest {
            let (at, calls) = (self.code.out.len(), self.code.calls);
            let right = self.number(term)?;
            if self.code.calls != calls {
                let inner = self.code.out.split_off(at);
                value = self.code.save(&value);
                self.code.out.extend(inner);
            }
            value = self.in_range(arithmetic(op, value, right));
        }
        Ok(value)
    }

    /// Terms that need nothing but an expression stay together; others run only if still undecided.
    fn short_circuit(&mut self, op: BinOp, start: IrExpr, rest: &'a [Expr]) -> Lowered<Value> {
        let mut terms = vec![start];
        for term in rest {
            let (stmts, expr) = self.branch(|lowerer| {
                terms.iter().for_each(|known| lowerer.learn(known, op == BinOp::And));
                lowerer.truth(term)
            })?;
            if stmts.is_empty() {
                terms.push(expr);
                continue;
            }
            let so_far = chain(op, std::mem::take(&mut terms));
            if let IrExpr::Const(known) = so_far {
                if (known != 0) == (op == BinOp::And) {
                    self.code.out.extend(stmts);
                    terms.push(expr);
                } else {
                    terms.push(so_far);
                }
                continue;
            }
            terms.push(self.decide(op, so_far, stmts, expr));
        }
        Ok(Value::truth(chain(op, terms)))
    }

    /// Notes what is defined where a condition is true (or false): what differs from the undefined value.
    pub(super) fn learn(&mut self, condition: &IrExpr, truth: bool) {
        match condition {
            IrExpr::Binary(BinOp::And, left, right) if truth => {
                self.learn(left, true);
                self.learn(right, true);
            }
            IrExpr::Binary(BinOp::Or, left, right) if !truth => {
                self.learn(left, false);
                self.learn(right, false);
            }
            IrExpr::Unary(UnOp::Not, inner) => self.learn(inner, !truth),
            IrExpr::Binary(op @ (BinOp::Eq | BinOp::Ne), left, right) => {
                if let (IrExpr::Read(place), IrExpr::Const(value)) = (&**left, &**right)
                    && ((*op == BinOp::Eq) == truth) == (*value != 0)
                {
                    self.code.now_defined(place);
                }
            }
            _ => {}
        }
    }

    /// A temporary that holds `so_far op expr`, where `stmts` run before `expr` and only if it matters.
    fn decide(&mut self, op: BinOp, so_far: IrExpr, mut stmts: Vec<Stmt>, expr: IrExpr) -> IrExpr {
        let holder: Place = match &so_far {
            IrExpr::Read(place) if self.code.is_fixed(&so_far) => place.clone(),
            _ => {
                let temp = self.code.fixed_temp("truth", Scalar::BOOL);
                self.code.assign(temp, so_far);
                temp.into()
            }
        };
        stmts.push(Stmt::assign(holder.clone(), expr, Narrow::Trap));
        let condition = if op == BinOp::And { IrExpr::read(holder.clone()) } else { not(IrExpr::read(holder.clone())) };
        self.code.emit(Stmt::If { condition, then: stmts, otherwise: Vec::new() });
        IrExpr::Read(holder)
    }

    /// A guard: where a conjunct is false the command is discarded, so that what the others found out
    /// holds in the body too. Returns what is left to be tested.
    pub(super) fn guard(&mut self, expr: &'a Expr) -> Lowered<IrExpr> {
        let mut conjuncts = Vec::new();
        flatten(expr, &mut conjuncts);
        let mut terms = Vec::new();
        for conjunct in conjuncts {
            let (stmts, term) = self.captured(|lowerer| match lowerer.operand(conjunct)? {
                Operand::Value(value) if value.ty == BOOLEAN => Ok(value.expr),
                Operand::Spot(spot) if spot.ty == BOOLEAN => Ok(lowerer.read(&spot, conjunct.span)?.expr),
                Operand::Value(value) => Err(lowerer.mismatch(value.ty, BOOLEAN, conjunct.span)),
                Operand::Spot(spot) => Err(lowerer.mismatch(spot.ty, BOOLEAN, conjunct.span)),
                Operand::Undefined => Err(lowerer.fail("a guard cannot be undefined", conjunct.span)),
            })?;
            if !stmts.is_empty() {
                let condition = not(chain(BinOp::And, std::mem::take(&mut terms)));
                if condition != IrExpr::FALSE {
                    self.code.emit(Stmt::If { condition, then: vec![Stmt::Discard], otherwise: Vec::new() });
                }
                self.code.out.extend(stmts);
            }
            self.learn(&term, true);
            terms.push(term);
        }
        Ok(chain(BinOp::And, terms))
    }
}

/// The conjuncts of a guard.
fn flatten<'a>(expr: &'a Expr, out: &mut Vec<&'a Expr>) {
    match &expr.kind {
        ExprKind::Chain { op: ChainOp::And, terms, .. } => terms.iter().for_each(|term| flatten(term, out)),
        _ => out.push(expr),
    }
}
