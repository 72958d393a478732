//! `for`, `forall`, `exists`: loops over the values of a type or over a stepped range.
//!
//! A loop is made once with a loop variable; if that turns out small, it is made again as one copy for
//! each value, which needs no loop variable and folds constants.

use super::scope::Entry;
use super::value::{Spot, Value, add, arithmetic, chain, compare};
use super::{Lowered, Lowerer, code};
use crate::Span;
use crate::murphi::ast::{Domain, Expr, Quant};
use crate::murphi::types::{INTEGER, Shape, TypeId};
use plimsoll_ir::verify::ROUNDS_LIMIT;
use plimsoll_ir::{BinOp, Expr as IrExpr, Narrow, Place, Scalar, Stmt, TempId};

/// Loops are unrolled up to this many statements and expression nodes; those of start states up to more.
const UNROLLED: usize = 400;
const UNROLLED_AT_START: usize = 20_000;
/// Most copies of a loop's body.
const MOST_COPIES: i64 = 64;
const MOST_COPIES_AT_START: i64 = 2048;

/// What a quantifier ranges over.
#[derive(Clone, Debug)]
pub(super) enum Range {
    /// All values of a type, or every step-th number: first, step and count are known.
    Known { ty: TypeId, first: i64, step: i64, count: i64 },
    /// From a number on while it is at most `to` (or at least, for a negative step).
    Computed { from: Value, to: Value, step: Value },
}

/// Has a loop variable passed the end?
fn beyond(at: &IrExpr, end: &IrExpr, step: &Value) -> IrExpr {
    let [up, down] = [BinOp::Gt, BinOp::Lt].map(|op| compare(op, at.clone(), end.clone()));
    if step.low >= 0 {
        up
    } else if step.high <= 0 {
        down
    } else {
        let forward = compare(BinOp::Gt, step.expr.clone(), IrExpr::Const(0));
        IrExpr::Select(Box::new(forward), Box::new(up), Box::new(down))
    }
}

/// Makes the body of a loop.
pub(super) type Body<'b, 'a> = &'b mut dyn FnMut(&mut Lowerer<'a>) -> Lowered<()>;

impl<'a> Lowerer<'a> {
    pub(super) fn range(&mut self, quant: &'a Quant) -> Lowered<Range> {
        match &quant.domain {
            Domain::Type(ty) => {
                let id = self.type_of(ty, None)?;
                let simple = !matches!(self.types.shape(id), Shape::Integer | Shape::Slot { .. });
                match self.types.count(id).filter(|_| simple) {
                    Some(count) => {
                        let (first, _) = self.types.bounds(id);
                        Ok(Range::Known { ty: id, first, step: 1, count })
                    }
                    None => Err(self.fail("a parameter ranges over a simple type", ty.span)),
                }
            }
            Domain::Range { from, to, step } => self.stepped(from, to, step.as_ref()),
        }
    }

    fn stepped(&mut self, from: &'a Expr, to: &'a Expr, step: Option<&'a Expr>) -> Lowered<Range> {
        let by = match step {
            Some(step) => self.number(step)?,
            None => Value::number(1),
        };
        let step_span = step.map_or(from.span, |step| step.span);
        if by.as_const() == Some(0) {
            return Err(self.fail("a step of zero never ends", step_span));
        }
        let (first, last) = (self.number(from)?, self.number(to)?);
        let (Some(low), Some(high), Some(by)) = (first.as_const(), last.as_const(), by.as_const()) else {
            return self.computed(first, last, by, step_span);
        };
        let span = high as i128 - low as i128;
        let count = if (span < 0) != (by < 0) && span != 0 { 0 } else { span / by as i128 + 1 };
        if count == 0 && self.is_rumur() {
            return Err(self.fail("this loop runs in the wrong direction", from.span.to(to.span)));
        }
        match i64::try_from(count) {
            Ok(count) => Ok(Range::Known { ty: INTEGER, first: low, step: by, count }),
            Err(_) => Err(self.fail("this loop has too many rounds", from.span.to(to.span))),
        }
    }

    fn computed(&mut self, first: Value, last: Value, by: Value, span: Span) -> Lowered<Range> {
        if by.as_const().is_none() && !self.is_rumur() {
            return Err(self.fail("the step of a loop is a constant", span));
        }
        let [first, last, by] = [first, last, by].map(|value| self.code.save(&value));
        if by.low <= 0 && by.high >= 0 {
            let zero = compare(BinOp::Eq, by.expr.clone(), IrExpr::Const(0));
            self.code.fault_if(zero, format!("line {}: the step of the loop is zero", self.line(span)));
        }
        if self.is_rumur() {
            let message = format!("line {}: the loop runs in the wrong direction", self.line(span));
            self.code.fault_if(beyond(&first.expr, &last.expr, &by), message);
        }
        Ok(Range::Computed { from: first, to: last, step: by })
    }

    /// Runs `body` for every combination of the quantifiers, the last one fastest.
    pub(super) fn each(&mut self, quants: &'a [Quant], body: Body<'_, 'a>) -> Lowered<()> {
        let Some((first, rest)) = quants.split_first() else { return body(self) };
        let range = self.range(first)?;
        let name = &first.name.text;
        self.iterate(name, range, &mut |lowerer| lowerer.each(rest, body))
    }

    /// Runs `body` for every value of a range.
    pub(super) fn iterate(&mut self, name: &'a str, range: Range, body: Body<'_, 'a>) -> Lowered<()> {
        let Range::Known { ty, first, step, count } = range else {
            return self.looped(name, &range, body).map(|_| ());
        };
        let (most_copies, most_size) =
            if self.starting { (MOST_COPIES_AT_START, UNROLLED_AT_START) } else { (MOST_COPIES, UNROLLED) };
        let temps = self.code.temps.len();
        if count == 0 && self.checking {
            return self.bound(name, Entry::Value(Value::constant(first, ty)), body);
        }
        if count > 1 {
            let (looped, variable) = self.captured(|lowerer| lowerer.looped(name, &range, body))?;
            let small = count <= most_copies && code::size(&looped) * count as usize <= most_size;
            if !small || self.checking || self.code.assigned.contains(&variable) {
                self.code.out.extend(looped);
                return Ok(());
            }
            self.code.forget_temps(temps);
        }
        for number in 0..count {
            let value = Value::constant(first + number * step, ty);
            self.bound(name, Entry::Value(value), body)?;
        }
        Ok(())
    }

    fn bound(&mut self, name: &'a str, entry: Entry, body: Body<'_, 'a>) -> Lowered<()> {
        self.scopes.push();
        self.scopes.declare(name, entry);
        let result = body(self);
        self.scopes.pop();
        result
    }

    /// Emits a loop; returns the temporary that is its variable.
    fn looped(&mut self, name: &'a str, range: &Range, body: Body<'_, 'a>) -> Lowered<TempId> {
        let (ty, scalar, first, step) = match range {
            Range::Known { ty, first, step, .. } => (*ty, self.loop_scalar(*ty), *first, Value::number(*step)),
            Range::Computed { step, .. } => (INTEGER, Scalar::I32, 0, step.clone()),
        };
        let temp = self.code.fixed_temp(name, scalar);
        let start = match range {
            Range::Known { .. } => IrExpr::Const(first - self.types.shift(ty)),
            Range::Computed { from, .. } => from.expr.clone(),
        };
        self.code.assign(temp, start);
        self.code.depth += 1;
        self.code.loops += 1;
        self.code.push_layer(true);
        let entry = self.loop_entry(temp, range);
        let result = self.captured(|lowerer| lowerer.bound(name, entry, body));
        self.code.pop_layer();
        self.code.loops -= 1;
        self.code.depth -= 1;
        let (inner, ()) = result?;
        let here = Value { expr: IrExpr::read(temp), ty: INTEGER, low: 0, high: 0 };
        let next = Stmt::assign(temp, arithmetic(BinOp::Add, here, step.clone()).expr, Narrow::Trap);
        let leave = |condition| Stmt::If { condition, then: vec![Stmt::Break(0)], otherwise: Vec::new() };
        let (limit, stmts) = match range {
            Range::Known { count, step, .. } => {
                let last = first + (count - 1) * step - self.types.shift(ty);
                let done = leave(compare(BinOp::Eq, IrExpr::read(temp), IrExpr::Const(last)));
                ((*count).min(ROUNDS_LIMIT as i64) as u32, [inner, vec![done, next]].concat())
            }
            Range::Computed { to, .. } => {
                let done = leave(beyond(&IrExpr::read(temp), &to.expr, &step));
                (ROUNDS_LIMIT, [vec![done], inner, vec![next]].concat())
            }
        };
        self.code.emit(Stmt::Loop { limit, body: stmts });
        Ok(temp)
    }

    fn loop_scalar(&self, ty: TypeId) -> Scalar {
        self.types.stored(ty).as_scalar().unwrap_or(Scalar::I32)
    }

    fn loop_entry(&self, temp: TempId, range: &Range) -> Entry {
        let (ty, low, high) = match range {
            Range::Known { ty, first, step, count } => {
                let last = first + (count - 1) * step;
                (*ty, *first.min(&last), *first.max(&last))
            }
            Range::Computed { from, to, .. } => (INTEGER, from.low.min(to.low), from.high.max(to.high)),
        };
        if self.types.is_number(ty) && !self.is_rumur() {
            let expr = add(IrExpr::read(temp), self.types.shift(ty));
            return Entry::Value(Value { expr, ty, low, high });
        }
        // Rumur lets a loop variable be assigned to.
        let spot = Spot::temp(Place::from(temp), ty, true);
        Entry::Spot(Spot { writable: self.is_rumur(), ..spot })
    }

    /// `forall` or `exists`; `body` makes the condition for the values bound at that time.
    pub(super) fn quantified(
        &mut self,
        forall: bool,
        quants: &'a [Quant],
        body: &mut dyn FnMut(&mut Self) -> Lowered<IrExpr>,
    ) -> Lowered<Value> {
        let temps = self.code.temps.len();
        let mut terms = Vec::new();
        if let Some(()) = self.pure_terms(quants, body, &mut terms)? {
            let op = if forall { BinOp::And } else { BinOp::Or };
            return Ok(Value::truth(chain(op, terms)));
        }
        self.code.forget_temps(temps);
        let holder = self.code.fixed_temp("truth", Scalar::BOOL);
        self.code.assign(holder, forall as i64);
        self.code.push_layer(false);
        self.code.depth += 1;
        let depth = self.code.depth;
        let result = self.captured(|lowerer| {
            lowerer.each(quants, &mut |lowerer| {
                let term = body(lowerer)?;
                let condition = if forall { super::value::not(term) } else { term };
                let leave = Stmt::Break(lowerer.code.depth - depth);
                let set = Stmt::assign(holder, !forall as i64, Narrow::Trap);
                lowerer.code.emit(Stmt::If { condition, then: vec![set, leave], otherwise: Vec::new() });
                Ok(())
            })
        });
        self.code.depth -= 1;
        self.code.pop_layer();
        let (stmts, ()) = result?;
        self.code.emit(Stmt::Block(stmts));
        Ok(Value::truth(IrExpr::read(holder)))
    }

    /// The conditions for all values, if they are few and need no statements.
    fn pure_terms(
        &mut self,
        quants: &'a [Quant],
        body: &mut dyn FnMut(&mut Self) -> Lowered<IrExpr>,
        terms: &mut Vec<IrExpr>,
    ) -> Lowered<Option<()>> {
        let Some((first, rest)) = quants.split_first() else {
            let (stmts, term) = self.branch(body)?;
            let size = super::value::size(&term) * (terms.len() + 1);
            if !stmts.is_empty() || size > 4 * UNROLLED {
                return Ok(None);
            }
            terms.push(term);
            return Ok(Some(()));
        };
        let (stmts, range) = self.branch(|lowerer| lowerer.range(first))?;
        let Range::Known { ty, first: low, step, count } = range else { return Ok(None) };
        if !stmts.is_empty() || count > MOST_COPIES || count == 0 && self.checking {
            return Ok(None);
        }
        for number in 0..count {
            self.scopes.push();
            let value = Value::constant(low + number * step, ty);
            self.scopes.declare(&first.name.text, Entry::Value(value));
            let found = self.pure_terms(rest, body, terms);
            self.scopes.pop();
            if found?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }
}
