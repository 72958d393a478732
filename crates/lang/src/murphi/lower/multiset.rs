//! Multisets: slots and flags that say which are in use.
//!
//! While a rule runs, elements stay where they are. At its end every multiset it may have changed is put
//! into normal form: used slots first, in decreasing order, so that equal multisets are equal states.

use super::code::Code;
use super::scope::Entry;
use super::value::{Operand, Spot, Value, add, compare};
use super::{Lowered, Lowerer};
use crate::Span;
use crate::murphi::ast::{Expr, Name};
use crate::murphi::types::{INTEGER, Shape, TypeId};
use plimsoll_ir::{BinOp, Call, Expr as IrExpr, Narrow, Place, Procedure, ProcedureId, Scalar, Stmt, TempId, VarId};

/// Statements that end a round of a loop over `0..count` with `temp` as its variable.
pub(super) fn step(temp: TempId, count: i64) -> [Stmt; 2] {
    let last = compare(BinOp::Eq, IrExpr::read(temp), IrExpr::Const(count - 1));
    let leave = Stmt::If { condition: last, then: vec![Stmt::Break(0)], otherwise: Vec::new() };
    [leave, Stmt::assign(temp, add(IrExpr::read(temp), 1), Narrow::Trap)]
}

impl<'a> Lowerer<'a> {
    /// A multiset with its indices as they are now, its size and the type of its elements.
    pub(super) fn multiset(&mut self, expr: &'a Expr) -> Lowered<(Spot, u32, TypeId)> {
        let spot = self.spot(expr)?;
        let Shape::Multiset { size, element } = *self.types.shape(spot.ty) else {
            return Err(self.fail(format!("{} is not a multiset", self.quoted(expr.span)), expr.span));
        };
        let place = self.code.freeze(&spot.place);
        Ok((Spot { place, ..spot }, size, element))
    }

    pub(super) fn slot_type(&mut self, size: u32) -> TypeId {
        self.types.add(Shape::Slot { size }, "chosen element".into(), &mut self.system)
    }

    pub(super) fn add_element(&mut self, element: &'a Expr, set: &'a Expr) -> Lowered<()> {
        let from = self.operand(element)?;
        let (spot, size, ty) = self.multiset(set)?;
        self.writable(&spot, set.span)?;
        let free = self.code.fixed_temp("free", Scalar::range(0, size as i64));
        self.code.assign(free, 0);
        let used = spot.place.clone().field(1).index(IrExpr::read(free));
        let message =
            format!("line {}: more than {size} elements in multiset {}", self.line(set.span), self.quoted(set.span));
        let full = compare(BinOp::Eq, IrExpr::read(free), IrExpr::Const(size as i64));
        let found = compare(BinOp::Eq, IrExpr::read(used.clone()), IrExpr::Const(0));
        let body = vec![
            Stmt::If { condition: full, then: vec![Stmt::Fault(message)], otherwise: Vec::new() },
            Stmt::If { condition: found, then: vec![Stmt::Break(0)], otherwise: Vec::new() },
            Stmt::assign(free, add(IrExpr::read(free), 1), Narrow::Trap),
        ];
        self.code.emit(Stmt::Loop { limit: size + 1, body });
        let slot = spot.place.clone().field(0).index(IrExpr::read(free));
        let to = Spot { place: slot, ty, writable: true, defined: false, in_multiset: true, silent: false };
        self.assign(&to, from, element.span)?;
        self.code.assign(used, 1);
        Ok(())
    }

    fn writable(&mut self, spot: &Spot, span: Span) -> Lowered<()> {
        self.note_touched(spot);
        if spot.writable { Ok(()) } else { Err(self.fail("this multiset cannot be changed here", span)) }
    }

    pub(super) fn remove_element(&mut self, name: &'a Name, set: &'a Expr) -> Lowered<()> {
        let slot = match self.named(&name.text, name.span)? {
            Operand::Value(value) if matches!(self.types.shape(value.ty), Shape::Slot { .. }) => value.expr,
            _ => return Err(self.fail(format!("`{}` is not a chosen element", name.text), name.span)),
        };
        let (spot, ..) = self.multiset(set)?;
        self.writable(&spot, set.span)?;
        self.code.emit(Stmt::Reset(spot.place.clone().field(1).index(slot.clone())));
        self.code.emit(Stmt::Reset(spot.place.field(0).index(slot)));
        Ok(())
    }

    pub(super) fn remove_elements(&mut self, name: &'a Name, set: &'a Expr, predicate: &'a Expr) -> Lowered<()> {
        let (spot, size, _) = self.multiset(set)?;
        self.writable(&spot, set.span)?;
        self.each_element(name, &spot, size, &mut |lowerer, slot| {
            let condition = lowerer.truth(predicate)?;
            let (then, ()) = lowerer.branch(|lowerer| {
                lowerer.code.emit(Stmt::Reset(spot.place.clone().field(1).index(slot.clone())));
                lowerer.code.emit(Stmt::Reset(spot.place.clone().field(0).index(slot)));
                Ok(())
            })?;
            lowerer.code.emit(Stmt::If { condition, then, otherwise: Vec::new() });
            Ok(())
        })
    }

    pub(super) fn count_elements(&mut self, name: &'a Name, set: &'a Expr, predicate: &'a Expr) -> Lowered<Value> {
        let (spot, size, _) = self.multiset(set)?;
        let used = |slot: i64| IrExpr::read(spot.place.clone().field(1).index(slot));
        let (low, high) = (0, size as i64);
        let all = self.is_true(predicate);
        if all && size <= 64 {
            let sum = (0..high).map(used).reduce(|sum, flag| IrExpr::binary(BinOp::Add, sum, flag));
            return Ok(Value { expr: sum.unwrap_or(IrExpr::Const(0)), ty: INTEGER, low, high });
        }
        let count = self.code.fixed_temp("count", Scalar::range(0, high));
        self.code.assign(count, 0);
        self.each_element(name, &spot, size, &mut |lowerer, _| {
            let condition = lowerer.truth(predicate)?;
            let more = Stmt::assign(count, add(IrExpr::read(count), 1), Narrow::Trap);
            lowerer.code.emit(Stmt::If { condition, then: vec![more], otherwise: Vec::new() });
            Ok(())
        })?;
        Ok(Value { expr: IrExpr::read(count), ty: INTEGER, low, high })
    }

    fn is_true(&mut self, predicate: &'a Expr) -> bool {
        use crate::murphi::ast::ExprKind;
        matches!(&predicate.kind, ExprKind::Name(text) if text.eq_ignore_ascii_case("true") && self.scopes.find(text).is_none())
    }

    /// A loop over the used slots, with `name` bound to each.
    fn each_element(
        &mut self,
        name: &'a Name,
        spot: &Spot,
        size: u32,
        body: &mut dyn FnMut(&mut Self, IrExpr) -> Lowered<()>,
    ) -> Lowered<()> {
        let ty = self.slot_type(size);
        let temp = self.code.fixed_temp(&name.text, Scalar::range(0, size as i64));
        self.code.assign(temp, 0);
        self.code.depth += 1;
        self.code.loops += 1;
        self.code.push_layer(true);
        self.scopes.push();
        let slot = IrExpr::read(temp);
        let value = Value { expr: slot.clone(), ty, low: 0, high: size as i64 - 1 };
        self.scopes.declare(&name.text, Entry::Value(value));
        let made = self.captured(|lowerer| body(lowerer, slot.clone()));
        self.scopes.pop();
        self.code.pop_layer();
        self.code.loops -= 1;
        self.code.depth -= 1;
        let used = IrExpr::read(spot.place.clone().field(1).index(slot));
        let mut stmts = vec![Stmt::If { condition: used, then: made?.0, otherwise: Vec::new() }];
        stmts.extend(step(temp, size as i64));
        self.code.emit(Stmt::Loop { limit: size, body: stmts });
        Ok(())
    }

    /// Puts the multisets of all touched variables into normal form.
    pub(super) fn normalise(&mut self) {
        for var in std::mem::take(&mut self.code.touched) {
            if self.starting {
                self.normalise_place(&VarId(var).into(), self.var_types[var as usize]);
                continue;
            }
            let procedure = self.ordering(var);
            self.emit_call(Call { procedure, references: Vec::new(), inputs: Vec::new(), outputs: Vec::new() });
        }
    }

    /// The procedure that puts the multisets of a variable into normal form.
    fn ordering(&mut self, var: u32) -> ProcedureId {
        if let Some(&made) = self.orders.get(&var) {
            return made;
        }
        let outer = std::mem::replace(&mut self.code, Code::new());
        self.normalise_place(&VarId(var).into(), self.var_types[var as usize]);
        let inner = std::mem::replace(&mut self.code, outer);
        let made = self.add_procedure(Procedure {
            name: format!("order of {}", self.system.vars[var as usize].name),
            line: 0,
            references: Vec::new(),
            temps: inner.temps,
            inputs: 0,
            outputs: Vec::new(),
            recursion: 0,
            body: inner.out,
        });
        self.orders.insert(var, made);
        made
    }

    fn normalise_place(&mut self, place: &Place, ty: TypeId) {
        match self.types.shape(ty).clone() {
            Shape::Multiset { size, element } => {
                // Elements that are multisets themselves come first: the order depends on them.
                self.normalise_all(&place.clone().field(0), element, size as i64);
                // Slots that are not in use are all zero, which is the least element: flags and elements agree.
                for part in 0..2 {
                    self.code.emit(Stmt::Sort(place.clone().field(part)));
                }
            }
            Shape::Record { fields } => {
                for (number, (_, field)) in fields.into_iter().enumerate() {
                    self.normalise_place(&place.clone().field(number as u32), field);
                }
            }
            Shape::Array { index, element } => {
                self.normalise_all(place, element, self.types.count(index).unwrap_or(0));
            }
            _ => {}
        }
    }

    /// The same for every element of an array.
    fn normalise_all(&mut self, array: &Place, element: TypeId, count: i64) {
        if !self.types.has_multiset(element) {
            return;
        }
        let temp = self.code.fixed_temp("index", Scalar::range(0, count));
        self.code.assign(temp, 0);
        let outer = std::mem::take(&mut self.code.out);
        self.normalise_place(&array.clone().index(IrExpr::read(temp)), element);
        let mut body = std::mem::replace(&mut self.code.out, outer);
        body.extend(step(temp, count));
        self.code.emit(Stmt::Loop { limit: count as u32, body });
    }
}
