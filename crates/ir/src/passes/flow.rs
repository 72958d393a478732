//! An abstract run of one command: which intervals may be stored where.
//!
//! [`Held`] says what a class of leaves may hold anywhere, any time. Within a command we know more: *facts*
//! about single places, from locations, guards, conditions and earlier assignments. A fact lives until its
//! place may be written; what a block or loop learnt inside is forgotten when it is left.

use super::facts::{Cell, Facts};
use super::interval::Interval;
use super::leaves::{Leaves, Unit};
use crate::expr::{Access, BinOp, Call, Expr, Narrow, Place, Root, Stmt, UnOp};
use crate::procedures::{Summary, each_written_reference};
use crate::system::System;
use crate::types::{Scalar, Type};
use crate::walk::{Touch, stmt_calls, stmt_places};

/// What a class of leaves may hold: values of its range, and perhaps a zero that lies outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Held {
    pub values: Option<Interval>,
    pub zero: bool,
}

impl Held {
    pub fn add(&mut self, values: Interval) {
        self.values = Some(self.values.map_or(values, |held| held.hull(values)));
    }

    pub fn add_zero(&mut self, scalar: &Scalar) {
        if scalar.contains(0) {
            self.add(Interval::point(0));
        } else {
            self.zero = true;
        }
    }

    pub fn store(&mut self, stored: Stored, leaves: &Leaves) {
        match stored {
            Stored::Values(values) => self.add(values),
            Stored::Zero { leaf } => self.add_zero(&leaves.scalars[leaf]),
        }
    }

    /// Everything that a read may give.
    pub fn interval(self) -> Interval {
        match self.values {
            Some(values) if self.zero => values.hull(Interval::point(0)),
            Some(values) => values,
            None => Interval::point(0),
        }
    }
}

/// Something that a run may store in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    Values(Interval),
    /// All bits zero; the leaf tells whether that is a value of its range.
    Zero {
        leaf: usize,
    },
}

/// The abstract machine for one unit: reads what `held` says and lists what may be stored, by class.
pub struct Flow<'a> {
    system: &'a System,
    summaries: &'a [Summary],
    leaves: &'a Leaves,
    number: usize,
    unit: &'a Unit<'a>,
    held: &'a [Held],
    stored: Vec<(usize, Stored)>,
    facts: Facts,
    /// Expressions and statements looked at.
    work: u64,
}

impl<'a> Flow<'a> {
    /// Runs unit `number` once. Returns what may be stored, and the work it took.
    pub fn run(
        (system, summaries): (&'a System, &'a [Summary]),
        leaves: &'a Leaves,
        (number, unit): (usize, &'a Unit<'a>),
        held: &'a [Held],
    ) -> (Vec<(usize, Stored)>, u64) {
        let facts = Facts::new(system.vars.len() + unit.locals.temps.len());
        let mut flow = Flow { system, summaries, leaves, number, unit, held, stored: Vec::new(), facts, work: 1 };
        if flow.stand() {
            flow.begin_temps();
            if flow.stmts(unit.prelude) && flow.assume(unit.guard, true) {
                flow.stmts(unit.body);
            }
        }
        (flow.stored, flow.work)
    }

    /// The processes stand where the command says.
    fn stand(&mut self) -> bool {
        self.unit.at.iter().all(|&(process, location)| {
            let place = Place::from(self.system.processes[process.index()].location);
            self.learn(&place, Interval::point(location as i64))
        })
    }

    fn begin_temps(&mut self) {
        for (temp, (_, ty)) in self.unit.locals.temps.iter().enumerate().skip(self.unit.inputs) {
            if ty.as_scalar().is_some() {
                self.facts.set((self.system.vars.len() + temp, 0), Interval::point(0));
            }
        }
        for choice in self.unit.choices {
            self.store(&choice.temp.into(), Interval::new(choice.low, choice.high));
        }
    }

    fn locate(&self, place: &Place) -> (usize, &'a Type) {
        self.leaves.locate(self.system, (self.number, self.unit), place)
    }

    /// The number of a root that there can be facts about: what a reference stands for differs from call to call.
    fn root(&self, root: Root) -> Option<usize> {
        match root {
            Root::Var(var) => Some(var.index()),
            Root::Temp(temp) => Some(self.system.vars.len() + temp.index()),
            Root::Reference(_) => None,
        }
    }

    /// The one scalar that a static place names.
    fn cell(&self, place: &Place) -> Option<Cell> {
        let root = self.root(place.root)?;
        let mut ty = self.system.root_type(self.unit.locals, place.root);
        let mut position = 0u64;
        for access in &place.path {
            ty = match (ty, access) {
                (Type::Array { element, len }, Access::Index(Expr::Const(index))) => {
                    let index = u64::try_from(*index).ok().filter(|index| *index < *len as u64)?;
                    position += index * element.scalar_count() as u64;
                    element
                }
                (Type::Record(fields), Access::Field(field)) => {
                    position += fields[..*field as usize].iter().map(|(_, ty)| ty.scalar_count() as u64).sum::<u64>();
                    &fields[*field as usize].1
                }
                _ => return None,
            }
        }
        ty.as_scalar().map(|_| (root, position))
    }

    /// Something below a root was written; through a reference it may be any variable.
    fn forget(&mut self, root: Root) {
        match self.root(root) {
            Some(root) => self.facts.forget(root),
            None => (0..self.system.vars.len()).for_each(|var| self.facts.forget(var)),
        }
    }

    /// Forgets what a procedure may write besides the outputs.
    fn forget_called(&mut self, call: &Call) {
        let summaries = self.summaries;
        summaries[call.procedure.index()].writes.iter().for_each(|var| self.facts.forget(var.index()));
        each_written_reference(call, summaries, |root, written| {
            if written {
                self.forget(root);
            }
        });
    }

    /// A scalar at `to` now holds one of `values`, all of them in its range.
    fn store(&mut self, to: &Place, values: Interval) {
        let (leaf, _) = self.locate(to);
        self.stored.push((self.leaves.class[leaf], Stored::Values(values)));
        self.settle(to, Some(values));
    }

    /// Updates the facts after a write.
    fn settle(&mut self, to: &Place, values: Option<Interval>) {
        match (self.cell(to), values) {
            (Some(cell), Some(values)) => self.facts.set(cell, values),
            _ => self.forget(to.root),
        }
    }

    /// Runs statements; does control come out at the end?
    fn stmts(&mut self, stmts: &[Stmt]) -> bool {
        stmts.iter().all(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> bool {
        self.work += 1;
        match stmt {
            Stmt::Assign { to, value, narrow } => return self.assign(to, value, *narrow),
            Stmt::Copy { to, from } => {
                let scalar = self.locate(from).1.as_scalar().is_some();
                let values = scalar.then(|| self.read(from));
                self.settle(to, values);
            }
            Stmt::Reset(place) => {
                let (first, ty) = self.locate(place);
                for leaf in first..first + super::leaves::count(ty) {
                    self.stored.push((self.leaves.class[leaf], Stored::Zero { leaf }));
                }
                self.settle(place, ty.as_scalar().map(|_| Interval::point(0)));
            }
            // Its leaves hold what they held.
            Stmt::Sort(place) => self.settle(place, None),
            Stmt::If { condition, then, otherwise } => return self.branch(condition, then, otherwise),
            Stmt::Block(body) => {
                let mark = self.facts.mark();
                self.stmts(body);
                self.facts.undo_to(mark);
                self.forget_written(body);
            }
            Stmt::Loop { body, .. } => {
                self.forget_written(body);
                let mark = self.facts.mark();
                self.stmts(body);
                self.facts.undo_to(mark);
            }
            Stmt::Assert { .. } => {}
            Stmt::Call(call) => {
                self.forget_called(call);
                call.outputs.iter().for_each(|place| self.settle(place, None));
            }
            Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => return false,
        }
        true
    }

    fn forget_written(&mut self, body: &[Stmt]) {
        stmt_places(body, &mut |touch, place| {
            self.work += 1;
            if touch == Touch::Write {
                self.forget(place.root);
            }
        });
        stmt_calls(body, &mut |call| self.forget_called(call));
    }

    fn assign(&mut self, to: &Place, value: &Expr, narrow: Narrow) -> bool {
        let (leaf, _) = self.locate(to);
        let range = Interval::range(&self.leaves.scalars[leaf]);
        let values = self.eval(value);
        let stored = match narrow {
            Narrow::Wrap if !values.within(range) => range,
            _ => match values.meet(range) {
                Some(stored) => stored,
                // It always traps.
                None => return false,
            },
        };
        self.store(to, stored);
        true
    }

    fn branch(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) -> bool {
        let mark = self.facts.mark();
        let then_ends = self.assume(condition, true) && self.stmts(then);
        let after_then = self.facts.take_since(mark);
        let otherwise_ends = self.assume(condition, false) && self.stmts(otherwise);
        match (then_ends, otherwise_ends) {
            (true, true) => self.facts.join_since(mark, after_then),
            (true, false) => {
                self.facts.undo_to(mark);
                self.facts.redo(after_then);
            }
            (false, true) => {}
            (false, false) => return false,
        }
        true
    }

    /// Learns from a condition that it is true (or false). Can that be?
    fn assume(&mut self, condition: &Expr, truth: bool) -> bool {
        self.work += 1;
        match condition {
            Expr::Unary(UnOp::Not, inner) => self.assume(inner, !truth),
            Expr::Binary(BinOp::And, left, right) if truth => self.assume(left, true) && self.assume(right, true),
            Expr::Binary(BinOp::Or, left, right) if !truth => self.assume(left, false) && self.assume(right, false),
            Expr::Binary(BinOp::And | BinOp::Or, ..) => true,
            Expr::Binary(op, left, right) if op.is_truth() => {
                let op = if truth { *op } else { super::fold::opposite(*op).expect("a comparison") };
                let (a, b) = (self.eval(left), self.eval(right));
                a.binary(op, b) != Interval::point(0)
                    && self.learn_side(op, left, a, b)
                    && self.learn_side(mirrored(op), right, b, a)
            }
            value => {
                let op = if truth { BinOp::Ne } else { BinOp::Eq };
                let (known, zero) = (self.eval(value), Interval::point(0));
                known.binary(op, zero) != Interval::point(0) && self.learn_side(op, value, known, zero)
            }
        }
    }

    /// Learns about `side`, known to be in `own`, that `side op other`.
    fn learn_side(&mut self, op: BinOp, side: &Expr, own: Interval, other: Interval) -> bool {
        let Expr::Read(place) = side else { return true };
        match restricted(op, own, other) {
            Some(values) => self.learn(place, values),
            None => false,
        }
    }

    /// Adds a fact about a place; false if it contradicts what is known.
    fn learn(&mut self, place: &Place, values: Interval) -> bool {
        let Some(values) = self.read(place).meet(values) else { return false };
        if let Some(cell) = self.cell(place) {
            self.facts.set(cell, values);
        }
        true
    }

    fn read(&self, place: &Place) -> Interval {
        let (leaf, _) = self.locate(place);
        let held = self.held[self.leaves.class[leaf]].interval();
        match self.cell(place).and_then(|cell| self.facts.get(cell)) {
            Some(fact) => held.meet(fact).unwrap_or(fact),
            None => held,
        }
    }

    fn eval(&mut self, expr: &Expr) -> Interval {
        self.work += 1;
        match expr {
            Expr::Const(value) => Interval::point(*value),
            Expr::Read(place) => self.read(place),
            Expr::Unary(op, value) => self.eval(value).unary(*op),
            Expr::Binary(op, left, right) => {
                let left = self.eval(left);
                left.binary(*op, self.eval(right))
            }
            Expr::Select(condition, then, otherwise) => self.select(condition, then, otherwise),
            Expr::Wrap { bits, signed, value } => self.eval(value).wrap(*bits, *signed),
        }
    }

    fn select(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) -> Interval {
        // A condition is looked at twice; without this, selections in conditions would double at each level.
        if holds_select(condition) {
            return self.eval(then).hull(self.eval(otherwise));
        }
        let mark = self.facts.mark();
        let then = self.assume(condition, true).then(|| self.eval(then));
        self.facts.undo_to(mark);
        let otherwise = self.assume(condition, false).then(|| self.eval(otherwise));
        self.facts.undo_to(mark);
        match (then, otherwise) {
            (Some(then), Some(otherwise)) => then.hull(otherwise),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Interval::TOP,
        }
    }
}

fn holds_select(expr: &Expr) -> bool {
    match expr {
        Expr::Const(_) | Expr::Read(_) => false,
        Expr::Unary(_, value) | Expr::Wrap { value, .. } => holds_select(value),
        Expr::Binary(_, left, right) => holds_select(left) || holds_select(right),
        Expr::Select(..) => true,
    }
}

/// The part of `own` that can be in relation `op` to some value of `other`.
fn restricted(op: BinOp, own: Interval, other: Interval) -> Option<Interval> {
    let below = |limit: Option<i64>| own.meet(Interval::new(i64::MIN, limit?));
    let above = |limit: Option<i64>| own.meet(Interval::new(limit?, i64::MAX));
    match op {
        BinOp::Eq => own.meet(other),
        BinOp::Lt => below(other.high.checked_sub(1)),
        BinOp::Le => below(Some(other.high)),
        BinOp::Gt => above(other.low.checked_add(1)),
        BinOp::Ge => above(Some(other.low)),
        BinOp::Ne => match other.as_point() {
            Some(_) if own == other => None,
            Some(value) if own.low == value => Some(Interval::new(own.low + 1, own.high)),
            Some(value) if own.high == value => Some(Interval::new(own.low, own.high - 1)),
            _ => Some(own),
        },
        _ => Some(own),
    }
}

/// The comparison with its sides exchanged.
fn mirrored(op: BinOp) -> BinOp {
    match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        same => same,
    }
}
