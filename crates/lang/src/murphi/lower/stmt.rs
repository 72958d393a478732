//! Statements.

use super::scope::Entry;
use super::value::{Operand, Spot, not};
use super::{Lowered, Lowerer};
use crate::Span;
use crate::murphi::ast::{Expr, Name, Stmt, StmtKind};
use crate::murphi::types::{Shape, TypeId};
use plimsoll_ir::verify::ROUNDS_LIMIT;
use plimsoll_ir::{BinOp, Expr as IrExpr, Place, Root, Scalar, Stmt as IrStmt};

/// CMurphi's limit for the rounds of a `while`.
const CMURPHI_ROUNDS: u32 = 1000;
/// Arrays up to this many scalars are cleared one by one.
const CLEARED_SINGLY: usize = 16;

impl<'a> Lowerer<'a> {
    pub(super) fn stmts(&mut self, stmts: &'a [Stmt]) -> Lowered<()> {
        let mut failed = None;
        for stmt in stmts {
            if let Err(error) = self.stmt(stmt) {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Lowered<()> {
        match &stmt.kind {
            StmtKind::Assign(to, from) => self.assignment(to, from),
            StmtKind::If(branches, otherwise) => self.conditional(branches, otherwise),
            StmtKind::Switch { value, cases, otherwise } => self.switch(value, cases, otherwise),
            StmtKind::For(quants, body) => self.each(quants, &mut |lowerer| lowerer.stmts(body)),
            StmtKind::While(condition, body) => self.repeat(condition, body),
            StmtKind::Alias(aliases, body) => {
                self.scopes.push();
                let result = self.aliases(aliases).and_then(|()| self.stmts(body));
                self.scopes.pop();
                result
            }
            StmtKind::Call(name, arguments) => self.call(name, arguments).map(|_| ()),
            StmtKind::Clear(target) => self.clear_target(target),
            StmtKind::Undefine(target) => {
                let spot = self.target(target)?;
                self.assign(&spot, Operand::Undefined, target.span)
            }
            StmtKind::Error(message) => {
                self.code.emit(IrStmt::Fault(format!("Error: {}", message.trim_end())));
                Ok(())
            }
            StmtKind::Assert(condition, message) => self.assertion(condition, message.as_deref()),
            StmtKind::Assume(condition) => {
                let condition = not(self.truth(condition)?);
                self.code.emit(IrStmt::If { condition, then: vec![IrStmt::Discard], otherwise: Vec::new() });
                Ok(())
            }
            StmtKind::Unchecked(condition, word) => {
                self.branch(|lowerer| lowerer.truth(condition))?;
                self.warn(format!("`{word}` is not checked"), stmt.span);
                Ok(())
            }
            StmtKind::Put(None) => Ok(()),
            StmtKind::Put(Some(value)) => self.branch(|lowerer| lowerer.operand(value)).map(|_| ()),
            StmtKind::Return(value) => self.leave(value.as_ref(), stmt.span),
            StmtKind::MultisetAdd(element, set) => self.add_element(element, set),
            StmtKind::MultisetRemove(name, set) => self.remove_element(name, set),
            StmtKind::MultisetRemoveIf { name, set, predicate } => self.remove_elements(name, set, predicate),
        }
    }

    fn assignment(&mut self, to: &'a Expr, from: &'a Expr) -> Lowered<()> {
        let target = self.target(to);
        let (at, calls) = (self.code.out.len(), self.code.calls);
        let operand = self.operand(from)?;
        let mut target = target?;
        if self.code.calls != calls && !target.place.path.is_empty() {
            let inner = self.code.out.split_off(at);
            target.place = self.code.freeze(&target.place);
            self.code.out.extend(inner);
        }
        if let Root::Temp(temp) = target.place.root {
            self.code.assigned.insert(temp);
        }
        self.assign(&target, operand, from.span)
    }

    pub(super) fn aliases(&mut self, aliases: &'a [(Name, Expr)]) -> Lowered<()> {
        for (name, expr) in aliases {
            let entry = match self.operand(expr)? {
                Operand::Spot(spot) => Entry::Spot(Spot { place: self.code.freeze(&spot.place), silent: true, ..spot }),
                Operand::Value(value) => Entry::Value(self.code.save(&value)),
                Operand::Undefined => return Err(self.fail("an alias needs a value or a variable", expr.span)),
            };
            self.scopes.declare(&name.text, entry);
        }
        Ok(())
    }

    fn conditional(&mut self, branches: &'a [(Expr, Vec<Stmt>)], otherwise: &'a [Stmt]) -> Lowered<()> {
        if let [(condition, body)] = branches {
            let condition = self.truth(condition);
            let known = condition.as_ref().ok().cloned();
            let mut side = |truth: bool, stmts: &'a [Stmt]| {
                self.branch(|lowerer| {
                    known.iter().for_each(|known| lowerer.learn(known, truth));
                    lowerer.stmts(stmts)
                })
            };
            let (then, other) = (side(true, body), side(false, otherwise));
            let (condition, then, otherwise) = (condition?, then?.0, other?.0);
            match condition {
                IrExpr::Const(0) => self.code.out.extend(otherwise),
                IrExpr::Const(_) => self.code.out.extend(then),
                condition => {
                    let leaves = matches!(then.last(), Some(IrStmt::Break(_) | IrStmt::Fault(_) | IrStmt::Discard));
                    let learnt = (leaves && otherwise.is_empty()).then(|| condition.clone());
                    self.code.emit(IrStmt::If { condition, then, otherwise });
                    learnt.iter().for_each(|condition| self.learn(condition, false));
                }
            }
            return Ok(());
        }
        self.first_match(|lowerer| {
            let mut failed = Ok(());
            for (condition, body) in branches {
                let result = lowerer.truth(condition).and_then(|condition| lowerer.matched(condition, body));
                failed = failed.and(result);
            }
            failed.and(lowerer.stmts(otherwise))
        })
    }

    /// Makes a block whose branches, each made by [`Self::matched`], leave it.
    fn first_match(&mut self, make: impl FnOnce(&mut Self) -> Lowered<()>) -> Lowered<()> {
        self.code.depth += 1;
        let made = self.branch(make);
        self.code.depth -= 1;
        self.code.emit(IrStmt::Block(made?.0));
        Ok(())
    }

    fn matched(&mut self, condition: IrExpr, body: &'a [Stmt]) -> Lowered<()> {
        let (mut then, ()) = self.branch(|lowerer| {
            lowerer.learn(&condition, true);
            lowerer.stmts(body)
        })?;
        then.push(IrStmt::Break(0));
        if condition != IrExpr::FALSE {
            self.code.emit(IrStmt::If { condition: condition.clone(), then, otherwise: Vec::new() });
            self.learn(&condition, false);
        }
        Ok(())
    }

    fn switch(&mut self, value: &'a Expr, cases: &'a [(Vec<Expr>, Vec<Stmt>)], otherwise: &'a [Stmt]) -> Lowered<()> {
        let operand = self.switched(value)?;
        self.first_match(|lowerer| {
            let mut failed = Ok(());
            for (values, body) in cases {
                let mut tests = Vec::new();
                for case in values {
                    let result = lowerer
                        .operand(case)
                        .and_then(|found| lowerer.equal((operand.clone(), value.span), (found, case.span), case.span));
                    match result {
                        Ok(test) => tests.push(test.expr),
                        Err(error) => failed = Err(error),
                    }
                }
                let condition = super::value::chain(BinOp::Or, tests);
                failed = failed.and(lowerer.matched(condition, body));
            }
            failed.and(lowerer.stmts(otherwise))
        })
    }

    /// The value of a switch, read once.
    fn switched(&mut self, value: &'a Expr) -> Lowered<Operand> {
        match self.operand(value)? {
            Operand::Spot(spot) if self.types.is_symmetric(spot.ty) && !self.is_rumur() => {
                let temp = self.code.fixed_temp("switch", self.types.stored(spot.ty));
                self.code.emit(IrStmt::Copy { to: temp.into(), from: spot.place });
                Ok(Operand::Spot(Spot::temp(temp.into(), spot.ty, false)))
            }
            operand => {
                let found = self.operand_value((operand, value.span))?;
                Ok(Operand::Value(self.code.save(&found)))
            }
        }
    }

    fn repeat(&mut self, condition: &'a Expr, body: &'a [Stmt]) -> Lowered<()> {
        self.code.depth += 1;
        self.code.loops += 1;
        self.code.push_layer(true);
        let made = self.captured(|lowerer| {
            let done = not(lowerer.truth(condition)?);
            lowerer.code.emit(IrStmt::If { condition: done, then: vec![IrStmt::Break(0)], otherwise: Vec::new() });
            lowerer.stmts(body)
        });
        self.code.pop_layer();
        self.code.loops -= 1;
        self.code.depth -= 1;
        let rounds = match self.options.loop_limit {
            Some(limit) => limit,
            None if self.is_rumur() => ROUNDS_LIMIT,
            None => CMURPHI_ROUNDS,
        };
        // The round in which the condition is found false counts as one.
        let limit = rounds.saturating_add(1).min(ROUNDS_LIMIT);
        self.code.emit(IrStmt::Loop { limit, body: made?.0 });
        Ok(())
    }

    fn clear_target(&mut self, target: &'a Expr) -> Lowered<()> {
        let spot = self.target(target)?;
        if !self.is_rumur() && self.types.has_scalarset(spot.ty) {
            let note = "CMurphi has no first value of a scalarset; use `undefine` (Rumur's dialect allows it)";
            return Err(self.fail_with_note("`clear` of something with a scalarset in it", target.span, note));
        }
        self.note_touched(&spot);
        let place = self.code.freeze(&spot.place);
        self.clear(&place, spot.ty);
        Ok(())
    }

    /// Gives every scalar its first value, which is stored as one.
    fn clear(&mut self, place: &Place, ty: TypeId) {
        match self.types.shape(ty).clone() {
            Shape::Record { fields } => {
                for (number, (_, field)) in fields.into_iter().enumerate() {
                    self.clear(&place.clone().field(number as u32), field);
                }
            }
            Shape::Multiset { .. } => self.code.emit(IrStmt::Reset(place.clone())),
            Shape::Array { index, element } => {
                let count = self.types.count(index).unwrap_or(0);
                if self.types.stored(ty).scalar_count() <= CLEARED_SINGLY || self.starting && count <= 64 {
                    (0..count).for_each(|position| self.clear(&place.clone().index(position), element));
                } else {
                    self.clear_loop(place, element, count);
                }
            }
            Shape::Integer | Shape::Slot { .. } => self.code.assign(place.clone(), 0),
            _ => {
                self.code.assign(place.clone(), 1);
                self.code.now_defined(place);
            }
        }
    }

    fn clear_loop(&mut self, place: &Place, element: TypeId, count: i64) {
        let temp = self.code.fixed_temp("index", Scalar::range(0, count));
        self.code.assign(temp, 0);
        let outer = std::mem::take(&mut self.code.out);
        self.code.push_layer(true);
        self.clear(&place.clone().index(IrExpr::read(temp)), element);
        self.code.pop_layer();
        let mut body = std::mem::replace(&mut self.code.out, outer);
        body.extend(super::multiset::step(temp, count));
        self.code.emit(IrStmt::Loop { limit: count as u32, body });
    }

    fn assertion(&mut self, condition: &'a Expr, message: Option<&str>) -> Lowered<()> {
        let text = match message {
            Some(message) => message.trim_end().to_string(),
            None => format!("line {}: {}", self.line(condition.span), self.snippet(condition.span)),
        };
        let condition = not(self.truth(condition)?);
        self.code.fault_if(condition, format!("Assertion failed: {text}"));
        Ok(())
    }

    fn leave(&mut self, value: Option<&'a Expr>, span: Span) -> Lowered<()> {
        let Some(frame) = self.code.frames.last().cloned() else { return Ok(()) };
        match (&frame.result, value) {
            (Some(result), Some(value)) => {
                let mut operand = self.operand(value)?;
                // A result may be undefined; CMurphi notices when it is used.
                if let Operand::Spot(spot) = &mut operand {
                    spot.silent = true;
                }
                self.assign(result, operand, value.span)?;
            }
            (None, None) => {}
            (Some(_), None) => return Err(self.fail("a function returns a value", span)),
            (None, Some(value)) => return Err(self.fail("there is no value to be returned here", value.span)),
        }
        self.code.emit(IrStmt::Break(self.code.depth - frame.depth));
        if let Some(frame) = self.code.frames.last_mut() {
            frame.returned = true;
        }
        Ok(())
    }
}
