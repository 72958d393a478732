//! Assignment, conversion between simple types, and comparison.
//!
//! CMurphi copies an undefined variable silently (but an undefined field or element only if it is a
//! scalarset or a union) and compares undefined scalarsets and unions; Rumur faults on all of these.
//! That difference lives here.

use super::value::{Operand, Spot, Value, add, chain, compare};
use super::{Failed, Lowered, Lowerer};
use crate::Span;
use crate::murphi::types::{Shape, TypeId};
use plimsoll_ir::{BinOp, Expr, Place, Root, Stmt};

/// Largest array or record that can be compared as a whole.
const MOST_COMPARED: usize = 4096;

impl<'a> Lowerer<'a> {
    pub(super) fn assign(&mut self, to: &Spot, from: Operand, span: Span) -> Lowered<()> {
        self.note_touched(to);
        match from {
            Operand::Undefined => self.code.emit(Stmt::Reset(to.place.clone())),
            Operand::Value(value) => {
                let value = self.convert(value, to.ty, span)?;
                self.store(to, value, span)?;
            }
            Operand::Spot(from) if !self.types.is_simple(to.ty) || !self.types.is_simple(from.ty) => {
                if !self.types.alike(to.ty, from.ty) {
                    return Err(self.mismatch(from.ty, to.ty, span));
                }
                self.code.emit(Stmt::Copy { to: to.place.clone(), from: from.place });
            }
            Operand::Spot(from) if self.is_rumur() || !from.silent && !self.types.is_symmetric(from.ty) => {
                let value = self.read(&from, span)?;
                let value = self.convert(value, to.ty, span)?;
                self.store(to, value, span)?;
            }
            Operand::Spot(from) if self.is_defined(&from) => {
                let value = self.read(&from, span)?;
                let value = self.convert(value, to.ty, span)?;
                self.store(to, value, span)?;
            }
            Operand::Spot(from) => self.copy_scalar(to, &from, span)?,
        }
        Ok(())
    }

    /// Copies a scalar that may be undefined, and then stays so.
    fn copy_scalar(&mut self, to: &Spot, from: &Spot, span: Span) -> Lowered<()> {
        if self.types.alike(to.ty, from.ty) {
            self.code.emit(Stmt::Copy { to: to.place.clone(), from: from.place.clone() });
            return Ok(());
        }
        let (stored, ()) = self.branch(|lowerer| {
            let value = lowerer.defined_value(from);
            let value = lowerer.convert(value, to.ty, span)?;
            lowerer.store(to, value, span)
        })?;
        let condition = compare(BinOp::Eq, Expr::read(from.place.clone()), Expr::Const(0));
        self.code.emit(Stmt::If { condition, then: vec![Stmt::Reset(to.place.clone())], otherwise: stored });
        Ok(())
    }

    /// Notes that a variable whose multisets must be put in order is written.
    pub(super) fn note_touched(&mut self, to: &Spot) {
        if !to.in_multiset && !self.types.has_multiset(to.ty) {
            return;
        }
        match to.place.root {
            Root::Var(var) => self.code.touched.insert(var.0),
            Root::Reference(reference) => self.code.touched_references.insert(reference.0),
            Root::Temp(_) => false,
        };
    }

    /// Stores a value of the right type; one outside the range is a fault.
    pub(super) fn store(&mut self, to: &Spot, value: Value, span: Span) -> Lowered<()> {
        let (low, high) = self.types.bounds(to.ty);
        let value = self.bounded(value, low, high, span, "the value")?;
        let stored = add(value.expr, -self.types.shift(to.ty));
        self.code.assign(to.place.clone(), stored);
        self.code.now_defined(&to.place);
        Ok(())
    }

    pub(super) fn mismatch(&mut self, from: TypeId, to: TypeId, span: Span) -> Failed {
        let message = format!("expected {}, found {}", self.described(to), self.described(from));
        self.fail(message, span)
    }

    fn described(&self, ty: TypeId) -> String {
        match self.types.shape(ty) {
            Shape::Integer => "a number".into(),
            Shape::Slot { .. } => "a chosen element".into(),
            _ => format!("`{}`", self.types.name(ty)),
        }
    }

    /// The same value as one of another simple type. Numbers are not checked against a range here.
    pub(super) fn convert(&mut self, value: Value, to: TypeId, span: Span) -> Lowered<Value> {
        if self.types.is_number(value.ty) && self.types.is_number(to) {
            return Ok(Value { ty: to, ..value });
        }
        if self.types.alike(value.ty, to) {
            return Ok(value);
        }
        let Some(parts) = self.shared_members(value.ty, to) else {
            return Err(self.mismatch(value.ty, to, span));
        };
        if let [(from_first, to_first, count)] = parts[..] {
            let message = format!("the value, which must be one of {},", self.described(to));
            let value = self.bounded(value, from_first, from_first + count - 1, span, &message)?;
            let (low, high) = (value.low - from_first + to_first, value.high - from_first + to_first);
            return Ok(Value { expr: add(value.expr, to_first - from_first), ty: to, low, high });
        }
        let value = self.code.save(&value);
        let inside = parts.iter().map(|&(first, _, count)| within(&value.expr, first, count)).collect();
        let message = format!("line {}: {} is not one of {}", self.line(span), self.quoted(span), self.described(to));
        self.code.fault_if(super::value::not(chain(BinOp::Or, inside)), message);
        let (low, high) = self.types.bounds(to);
        Ok(Value { expr: mapped(&value.expr, &parts, Expr::Const(0)), ty: to, low, high })
    }

    /// The members that two unions (or a union and a member) share: first position in each, and count.
    fn shared_members(&self, from: TypeId, to: TypeId) -> Option<Vec<(i64, i64, i64)>> {
        let members = |ty: TypeId| match self.types.shape(ty) {
            Shape::Union { members, .. } => Some(members.clone()),
            Shape::Scalarset { .. } | Shape::Enum { .. } => Some(vec![(ty, 0)]),
            _ => None,
        };
        let targets = members(to)?;
        let shared: Vec<(i64, i64, i64)> = members(from)?
            .into_iter()
            .filter_map(|(member, first)| {
                let &(_, target) = targets.iter().find(|(other, _)| *other == member)?;
                Some((first, target, self.types.count(member)?))
            })
            .collect();
        (!shared.is_empty()).then_some(shared)
    }

    /// `left = right`.
    pub(super) fn equal(&mut self, left: (Operand, Span), right: (Operand, Span), span: Span) -> Lowered<Value> {
        if let (Operand::Spot(one), Operand::Spot(other)) = (&left.0, &right.0)
            && (!self.types.is_simple(one.ty) || !self.types.is_simple(other.ty))
        {
            return self.equal_wholes(one, other, span);
        }
        let types = [self.operand_type(&left), self.operand_type(&right)];
        let [Some(one), Some(other)] = types else {
            return Err(self.fail("`undefined` cannot be compared: use `isundefined`", span));
        };
        let lenient = !self.is_rumur() && (self.types.is_symmetric(one) || self.types.is_symmetric(other));
        if lenient {
            return self.equal_stored(left, right, span);
        }
        let left = self.operand_value(left)?;
        let right = self.operand_value(right)?;
        if self.types.is_number(left.ty) && self.types.is_number(right.ty) || self.types.alike(left.ty, right.ty) {
            return Ok(Value::truth(equal_values(left, right)));
        }
        let Some(parts) = self.shared_members(left.ty, right.ty) else {
            return Err(self.mismatch(right.ty, left.ty, span));
        };
        let left = mapped(&left.expr, &parts, Expr::Const(-1));
        Ok(Value::truth(compare(BinOp::Eq, left, right.expr)))
    }

    fn operand_type(&self, operand: &(Operand, Span)) -> Option<TypeId> {
        match &operand.0 {
            Operand::Spot(spot) => Some(spot.ty),
            Operand::Value(value) => Some(value.ty),
            Operand::Undefined => None,
        }
    }

    pub(super) fn operand_value(&mut self, (operand, span): (Operand, Span)) -> Lowered<Value> {
        match operand {
            Operand::Value(value) => Ok(value),
            Operand::Spot(spot) => self.read(&spot, span),
            Operand::Undefined => Err(self.fail("`undefined` has no value", span)),
        }
    }

    /// Compares scalarsets and unions where an undefined value equals only another undefined one.
    fn equal_stored(&mut self, left: (Operand, Span), right: (Operand, Span), span: Span) -> Lowered<Value> {
        let (left, left_type) = self.stored_operand(left)?;
        let (right, right_type) = self.stored_operand(right)?;
        if self.types.alike(left_type, right_type) {
            return Ok(Value::truth(compare(BinOp::Eq, left, right)));
        }
        let Some(parts) = self.shared_members(left_type, right_type) else {
            return Err(self.mismatch(right_type, left_type, span));
        };
        // Stored values are one above positions; zero stays zero.
        let parts: Vec<_> = parts.iter().map(|&(from, to, count)| (from + 1, to + 1, count)).collect();
        let expr = if let Expr::Const(value) = right {
            match parts.iter().find(|&&(_, to, count)| (to..to + count).contains(&value)) {
                Some(&(from, to, _)) => compare(BinOp::Eq, left, Expr::Const(value - to + from)),
                None => Expr::FALSE,
            }
        } else if let [(from, to, count)] = parts[..]
            && from == 1
            && self.types.count(left_type) == Some(count)
        {
            // All of the left type is in the right one: only undefined needs care.
            let shifted = compare(BinOp::Eq, add(left.clone(), to - from), right.clone());
            let nothing = |expr: Expr| compare(BinOp::Eq, expr, Expr::Const(0));
            if to == from {
                shifted
            } else {
                Expr::Select(Box::new(nothing(left)), Box::new(nothing(right)), Box::new(shifted))
            }
        } else {
            let zero = [(0, 0, 1)];
            let all: Vec<_> = zero.iter().chain(&parts).copied().collect();
            compare(BinOp::Eq, mapped(&left, &all, Expr::Const(-1)), right)
        };
        Ok(Value::truth(expr))
    }

    /// The stored form of an operand, zero where it is undefined; enums must be defined.
    fn stored_operand(&mut self, (operand, span): (Operand, Span)) -> Lowered<(Expr, TypeId)> {
        match operand {
            Operand::Spot(spot) if self.types.is_symmetric(spot.ty) => Ok((Expr::read(spot.place), spot.ty)),
            operand => {
                let value = self.operand_value((operand, span))?;
                Ok((add(value.expr, -self.types.shift(value.ty)), value.ty))
            }
        }
    }

    fn equal_wholes(&mut self, one: &Spot, other: &Spot, span: Span) -> Lowered<Value> {
        if !self.types.alike(one.ty, other.ty) {
            return Err(self.mismatch(other.ty, one.ty, span));
        }
        let mut pairs = Vec::new();
        self.scalars(one.ty, &one.place, &mut pairs);
        let mut others = Vec::new();
        self.scalars(other.ty, &other.place, &mut others);
        if pairs.len() > MOST_COMPARED {
            return Err(self.fail("this is too large to be compared as a whole", span));
        }
        let equal = |(one, other)| compare(BinOp::Eq, Expr::Read(one), Expr::Read(other));
        Ok(Value::truth(chain(BinOp::And, pairs.into_iter().zip(others).map(equal).collect())))
    }

    /// The places of all scalars of a type, at most a few more than can be compared.
    pub(super) fn scalars(&self, ty: TypeId, place: &Place, out: &mut Vec<Place>) {
        if out.len() > MOST_COMPARED {
            return;
        }
        match self.types.shape(ty) {
            Shape::Array { index, element } => {
                for position in 0..self.types.count(*index).unwrap_or(0) {
                    self.scalars(*element, &place.clone().index(position), out);
                }
            }
            Shape::Record { fields } => {
                for (number, (_, field)) in fields.iter().enumerate() {
                    self.scalars(*field, &place.clone().field(number as u32), out);
                }
            }
            Shape::Multiset { size, element } => {
                for slot in 0..*size as i64 {
                    out.push(place.clone().field(1).index(slot));
                    self.scalars(*element, &place.clone().field(0).index(slot), out);
                }
            }
            _ => out.push(place.clone()),
        }
    }
}

/// Numbers, positions and truth values; a comparison with a constant truth value is the other side.
fn equal_values(left: Value, right: Value) -> Expr {
    use crate::murphi::types::BOOLEAN;
    if left.ty == BOOLEAN && right.ty == BOOLEAN {
        match (left.as_const(), right.as_const()) {
            (None, Some(1)) => return left.expr,
            (None, Some(0)) => return super::value::not(left.expr),
            (Some(1), None) => return right.expr,
            (Some(0), None) => return super::value::not(right.expr),
            _ => {}
        }
    }
    compare(BinOp::Eq, left.expr, right.expr)
}

fn within(expr: &Expr, first: i64, count: i64) -> Expr {
    let low = compare(BinOp::Ge, expr.clone(), first.into());
    let high = compare(BinOp::Lt, expr.clone(), (first + count).into());
    chain(BinOp::And, vec![low, high])
}

/// Moves each part (first, first there, count) to where it belongs; the rest becomes `other`.
fn mapped(expr: &Expr, parts: &[(i64, i64, i64)], other: Expr) -> Expr {
    parts.iter().rev().fold(other, |otherwise, &(from, to, count)| {
        let condition = within(expr, from, count);
        Expr::Select(Box::new(condition), Box::new(add(expr.clone(), to - from)), Box::new(otherwise))
    })
}
