//! Designators: names with fields and indices; and reading what they name.

use super::scope::Entry;
use super::value::{Operand, Spot, Value, add, compare};
use super::{Lowered, Lowerer};
use crate::Span;
use crate::murphi::ast::{Expr, ExprKind, Name};
use crate::murphi::types::{BOOLEAN, Shape, TypeId};
use plimsoll_ir::{BinOp, Expr as IrExpr};

impl<'a> Lowerer<'a> {
    pub(super) fn named(&mut self, text: &str, span: Span) -> Lowered<Operand> {
        match self.scopes.find(text) {
            Some(Entry::Spot(spot)) => Ok(Operand::Spot(spot.clone())),
            Some(Entry::Value(value)) => Ok(Operand::Value(value.clone())),
            Some(Entry::Type(_)) => Err(self.fail(format!("`{text}` is a type, not a value"), span)),
            Some(Entry::Procedure(_)) => {
                Err(self.fail(format!("`{text}` is a procedure: its arguments are missing"), span))
            }
            None if text.eq_ignore_ascii_case("true") => Ok(Operand::Value(Value::truth(IrExpr::TRUE))),
            None if text.eq_ignore_ascii_case("false") => Ok(Operand::Value(Value::truth(IrExpr::FALSE))),
            None => match self.element(text) {
                Some(value) => Ok(Operand::Value(value)),
                None => Err(self.unknown(text, span)),
            },
        }
    }

    /// A value of a scalarset as traces call it, `Proc_1`. A model cannot name it, so only what is asked about a model may.
    fn element(&mut self, text: &str) -> Option<Value> {
        let (name, number) = text.rsplit_once('_').filter(|_| self.as_shown)?;
        let position = number.parse::<i64>().ok()?.checked_sub(1)?;
        let Some(&Entry::Type(ty)) = self.scopes.find(name) else { return None };
        match self.types.shape(ty) {
            Shape::Scalarset { size } if (0..i64::from(*size)).contains(&position) => {
                self.element_named = true;
                Some(Value::constant(position, ty))
            }
            _ => None,
        }
    }

    /// What a designator names; anything that is only a value is an error.
    pub(super) fn spot(&mut self, expr: &'a Expr) -> Lowered<Spot> {
        match self.operand(expr)? {
            Operand::Spot(spot) => Ok(spot),
            _ => Err(self.fail("this is a value, not a variable", expr.span)),
        }
    }

    /// A variable that may be changed.
    pub(super) fn target(&mut self, expr: &'a Expr) -> Lowered<Spot> {
        let designator = matches!(expr.kind, ExprKind::Name(_) | ExprKind::Index(..) | ExprKind::Field(..));
        match self.operand(expr)? {
            Operand::Spot(spot) if spot.writable => Ok(spot),
            Operand::Spot(_) if designator => {
                let note = "parameters without `var`, loop variables and results of functions cannot be changed";
                Err(self.fail_with_note("this cannot be assigned to", expr.span, note))
            }
            _ => Err(self.fail("this is not a variable", expr.span)),
        }
    }

    pub(super) fn field(&mut self, base: &'a Expr, name: &Name) -> Lowered<Operand> {
        let spot = self.spot(base)?;
        let Shape::Record { fields } = self.types.shape(spot.ty) else {
            let message = format!("`{}` is not a record", self.snippet(base.span));
            return Err(self.fail(message, base.span));
        };
        let Some(found) = fields.iter().position(|(field, _)| *field == name.text) else {
            let all: Vec<&str> = fields.iter().map(|(field, _)| field.as_str()).collect();
            let note = format!("its fields are {}", all.join(", "));
            return Err(self.fail_with_note(format!("there is no field `{}`", name.text), name.span, note));
        };
        let ty = fields[found].1;
        Ok(Operand::Spot(Spot { place: spot.place.field(found as u32), ty, silent: false, ..spot }))
    }

    pub(super) fn index(&mut self, base: &'a Expr, index: &'a Expr) -> Lowered<Operand> {
        let mut spot = self.spot(base)?;
        match *self.types.shape(spot.ty) {
            Shape::Array { index: index_type, element } => {
                let value = self.value(index)?;
                let position = self.position(value, index_type, index.span)?;
                spot = Spot { place: spot.place.index(position), ty: element, silent: false, ..spot };
            }
            Shape::Multiset { element, .. } => {
                let value = self.value(index)?;
                if !matches!(self.types.shape(value.ty), Shape::Slot { .. }) {
                    return Err(self.fail("a multiset is indexed by a chosen element", index.span));
                }
                let place = spot.place.field(0).index(value.expr);
                spot = Spot { place, ty: element, in_multiset: true, silent: false, ..spot };
            }
            _ => {
                let message = format!("`{}` is not an array", self.snippet(base.span));
                return Err(self.fail(message, base.span));
            }
        }
        Ok(Operand::Spot(spot))
    }

    /// The position of an index value in the type of an array's index, checked.
    fn position(&mut self, value: Value, index_type: TypeId, span: Span) -> Lowered<IrExpr> {
        let value = self.convert(value, index_type, span)?;
        let (low, high) = self.types.bounds(index_type);
        let value = self.bounded(value, low, high, span, "the index")?;
        Ok(add(value.expr, -low))
    }

    /// Makes sure that a number is within bounds: a fault, and if it never is, an error.
    pub(super) fn bounded(&mut self, value: Value, low: i64, high: i64, span: Span, what: &str) -> Lowered<Value> {
        if low <= value.low && value.high <= high {
            return Ok(value);
        }
        let value = self.code.save(&value);
        let below = if value.low < low { compare(BinOp::Lt, value.expr.clone(), low.into()) } else { IrExpr::FALSE };
        let above = if value.high > high { compare(BinOp::Gt, value.expr.clone(), high.into()) } else { IrExpr::FALSE };
        let condition = super::value::chain(BinOp::Or, vec![below, above]);
        let message = format!("line {}: {what} {} is outside {low}..{high}", self.line(span), self.quoted(span));
        self.code.fault_if(condition, message);
        Ok(Value { low: value.low.max(low), high: value.high.min(high), ..value })
    }

    pub(super) fn quoted(&self, span: Span) -> String {
        format!("`{}`", self.snippet(span))
    }

    /// The defined value of an expression.
    pub(super) fn value(&mut self, expr: &'a Expr) -> Lowered<Value> {
        match self.operand(expr)? {
            Operand::Value(value) => Ok(value),
            Operand::Spot(spot) => self.read(&spot, expr.span),
            Operand::Undefined => Err(self.fail("`undefined` can only be assigned or passed", expr.span)),
        }
    }

    /// Reads a scalar; an undefined one is a fault.
    pub(super) fn read(&mut self, spot: &Spot, span: Span) -> Lowered<Value> {
        if !self.types.is_simple(spot.ty) {
            let message = format!("{} is a whole {}, not a single value", self.quoted(span), self.types.name(spot.ty));
            return Err(self.fail(message, span));
        }
        self.require_defined(spot, span);
        Ok(self.defined_value(spot))
    }

    pub(super) fn require_defined(&mut self, spot: &Spot, span: Span) {
        if self.is_defined(spot) {
            return;
        }
        let message = format!("line {}: the undefined value of {} is read", self.line(span), self.quoted(span));
        self.code.fault_if(compare(BinOp::Eq, IrExpr::read(spot.place.clone()), IrExpr::Const(0)), message);
        self.code.now_defined(&spot.place);
    }

    pub(super) fn is_defined(&self, spot: &Spot) -> bool {
        spot.defined
            || !self.types.has_undefined(spot.ty)
            || self.code.is_defined(&spot.place)
            || !self.starting && self.defined.contains(&self.system, &spot.place)
    }

    /// The value of a scalar that is defined.
    pub(super) fn defined_value(&self, spot: &Spot) -> Value {
        let stored = IrExpr::read(spot.place.clone());
        if spot.ty == BOOLEAN {
            return Value::truth(compare(BinOp::Eq, stored, IrExpr::Const(2)));
        }
        let (low, high) = self.types.bounds(spot.ty);
        Value { expr: add(stored, self.types.shift(spot.ty)), ty: spot.ty, low, high }
    }
}
