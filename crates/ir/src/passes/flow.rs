//! An abstract run of one command: which intervals may be stored where.
//!
//! [`Held`] says what a class of leaves may hold anywhere, any time. Within a command we know more: *facts*
//! about single places, from locations, guards, conditions and earlier assignments. A fact lives until its
//! place may be written; what a block or loop learnt inside is forgotten when it is left.

use super::interval::Interval;
use super::leaves::{Leaves, Unit};
use crate::expr::{Access, BinOp, Expr, Narrow, Place, Root, Stmt, UnOp};
use crate::system::System;
use crate::types::{Scalar, Type};
use crate::walk::{Touch, stmt_places};

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

    /// Everything that a read may give.
    pub fn interval(self) -> Interval {
        match self.values {
            Some(values) if self.zero => values.hull(Interval::point(0)),
            Some(values) => values,
            None => Interval::point(0),
        }
    }
}

/// The abstract machine for one unit: reads what `held` says and adds what is stored to `next`.
pub struct Flow<'a> {
    pub system: &'a System,
    pub leaves: &'a Leaves,
    pub number: usize,
    pub unit: &'a Unit<'a>,
    pub held: &'a [Held],
    pub next: &'a mut [Held],
    facts: Vec<(Place, Interval)>,
}

impl<'a> Flow<'a> {
    /// Runs unit `number` once.
    pub fn run(
        system: &'a System,
        leaves: &'a Leaves,
        (number, unit): (usize, &'a Unit<'a>),
        held: &'a [Held],
        next: &'a mut [Held],
    ) {
        let mut flow = Flow { system, leaves, number, unit, held, next, facts: Vec::new() };
        for &(process, location) in unit.at {
            let place = Place::from(system.processes[process.index()].location);
            if !flow.learn(&place, Interval::point(location as i64)) {
                return;
            }
        }
        flow.begin_temps();
        if flow.stmts(unit.prelude) && flow.assume(unit.guard, true) {
            flow.stmts(unit.body);
        }
    }

    fn begin_temps(&mut self) {
        for temp in 0..self.unit.temps.len() as u32 {
            let place = Place::from(crate::system::TempId(temp));
            if self.unit.temps[temp as usize].1.as_scalar().is_some() {
                self.facts.push((place, Interval::point(0)));
            }
        }
        for choice in self.unit.choices {
            let values = Interval::new(choice.low, choice.high);
            self.store(&choice.temp.into(), values);
        }
    }

    fn locate(&self, place: &Place) -> (usize, &'a Type) {
        self.leaves.locate(self.system, (self.number, self.unit), place)
    }

    fn forget(&mut self, root: Root) {
        self.facts.retain(|(place, _)| place.root != root);
    }

    /// A scalar at `to` now holds one of `values`, all of them in its range.
    fn store(&mut self, to: &Place, values: Interval) {
        let (leaf, _) = self.locate(to);
        self.next[self.leaves.class[leaf]].add(values);
        self.settle(to, Some(values));
    }

    /// Updates the facts after a write.
    fn settle(&mut self, to: &Place, values: Option<Interval>) {
        match values {
            Some(values) if is_static(to) => {
                self.facts.retain(|(place, _)| place != to && is_static(place));
                self.facts.push((to.clone(), values));
            }
            _ => self.forget(to.root),
        }
    }

    /// Runs statements; does control come out at the end?
    fn stmts(&mut self, stmts: &[Stmt]) -> bool {
        stmts.iter().all(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> bool {
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
                    self.next[self.leaves.class[leaf]].add_zero(&self.leaves.scalars[leaf]);
                }
                self.settle(place, ty.as_scalar().map(|_| Interval::point(0)));
            }
            Stmt::If { condition, then, otherwise } => return self.branch(condition, then, otherwise),
            Stmt::Block(body) => {
                let before = self.facts.clone();
                self.stmts(body);
                self.facts = before;
                self.forget_written(body);
            }
            Stmt::Loop { body, .. } => {
                self.forget_written(body);
                let before = self.facts.clone();
                self.stmts(body);
                self.facts = before;
            }
            Stmt::Assert { .. } => {}
            Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => return false,
        }
        true
    }

    fn forget_written(&mut self, body: &[Stmt]) {
        stmt_places(body, &mut |touch, place| {
            if touch == Touch::Write {
                self.forget(place.root);
            }
        });
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
        let before = self.facts.clone();
        let then_ends = self.assume(condition, true) && self.stmts(then);
        let after_then = std::mem::replace(&mut self.facts, before);
        let otherwise_ends = self.assume(condition, false) && self.stmts(otherwise);
        match (then_ends, otherwise_ends) {
            (true, true) => {
                let joined = |(place, values): (Place, Interval)| {
                    let other = after_then.iter().find(|(other, _)| *other == place)?.1;
                    Some((place, values.hull(other)))
                };
                self.facts = std::mem::take(&mut self.facts).into_iter().filter_map(joined).collect();
            }
            (true, false) => self.facts = after_then,
            (false, true) => {}
            (false, false) => return false,
        }
        true
    }

    /// Learns from a condition that it is true (or false). Can that be?
    fn assume(&mut self, condition: &Expr, truth: bool) -> bool {
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
                let known = self.eval(value);
                let zero = Interval::point(0);
                if truth {
                    known != zero && self.learn_side(BinOp::Ne, value, known, zero)
                } else {
                    known.contains(0) && self.learn_side(BinOp::Eq, value, known, zero)
                }
            }
        }
    }

    /// Learns about `side`, known to be in `own`, that `side op other`.
    fn learn_side(&mut self, op: BinOp, side: &Expr, own: Interval, other: Interval) -> bool {
        let Expr::Read(place) = side else { return true };
        match restricted(op, own, other) {
            Some(values) if is_static(place) => self.learn(place, values),
            Some(_) => true,
            None => false,
        }
    }

    /// Adds a fact about a static place; false if it contradicts what is known.
    fn learn(&mut self, place: &Place, values: Interval) -> bool {
        let Some(values) = self.read(place).meet(values) else { return false };
        self.facts.retain(|(other, _)| other != place);
        self.facts.push((place.clone(), values));
        true
    }

    fn read(&self, place: &Place) -> Interval {
        let (leaf, _) = self.locate(place);
        let held = self.held[self.leaves.class[leaf]].interval();
        match self.facts.iter().find(|(other, _)| other == place) {
            Some((_, fact)) => held.meet(*fact).unwrap_or(*fact),
            None => held,
        }
    }

    fn eval(&mut self, expr: &Expr) -> Interval {
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
        let before = self.facts.clone();
        let then = self.assume(condition, true).then(|| self.eval(then));
        self.facts.clone_from(&before);
        let otherwise = self.assume(condition, false).then(|| self.eval(otherwise));
        self.facts = before;
        match (then, otherwise) {
            (Some(then), Some(otherwise)) => then.hull(otherwise),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Interval::TOP,
        }
    }
}

/// Is it the same scalar in every state? Two such places of one root are equal or apart.
fn is_static(place: &Place) -> bool {
    place.path.iter().all(|access| matches!(access, Access::Field(_) | Access::Index(Expr::Const(_))))
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
