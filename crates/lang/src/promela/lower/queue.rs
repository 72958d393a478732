//! What sending and receiving does to a buffered channel.
//!
//! The oldest message is always message 0 and free messages are zero, so equal contents are equal states.

use super::channels::Target;
use super::value::{Draft, Value, balanced};
use super::{Frame, Lowering};
use crate::promela::ast::Pattern;
use plimsoll_ir::{BinOp, Expr, Narrow, Scalar, Stmt, TempId};

/// Channels up to this size are shifted without a loop.
const UNROLLED: u32 = 12;

fn less(left: Expr, right: Expr) -> Expr {
    Expr::binary(BinOp::Lt, left, right)
}

fn plus(value: Expr, number: i64) -> Expr {
    Expr::binary(BinOp::Add, value, Expr::Const(number))
}

fn set(temp: TempId, value: Expr) -> Stmt {
    Stmt::assign(temp, value, Narrow::Wrap)
}

fn when(condition: Expr, then: Vec<Stmt>) -> Stmt {
    Stmt::If { condition, then, otherwise: Vec::new() }
}

impl Lowering<'_> {
    /// Which message a receive would take, and whether there is one.
    pub fn receivable(
        &mut self,
        target: &Target,
        args: &[Pattern],
        random: bool,
        frame: Frame,
        draft: &mut Draft,
    ) -> (Expr, Expr) {
        let len = Expr::read(target.len());
        let selective = args.iter().any(|arg| matches!(arg, Pattern::Match(_)));
        if !random || !selective {
            let there = Expr::binary(BinOp::Gt, len, Expr::Const(0));
            let mut terms = vec![there];
            terms.extend(self.matches(target, &Expr::Const(0), args, frame, draft));
            return (Expr::Const(0), balanced(BinOp::And, terms));
        }
        let capacity = self.families[target.family].capacity;
        let at = draft.temp("at", Scalar::I32);
        let place = Expr::read(at);
        draft.code.push(set(at, Expr::Const(0)));
        let before = draft.take_code();
        let found = balanced(BinOp::And, self.matches(target, &place, args, frame, draft));
        let inner = std::mem::replace(&mut draft.code, before);
        let mut body = vec![when(Expr::binary(BinOp::Ge, place.clone(), len.clone()), vec![Stmt::Break(0)])];
        body.extend(inner);
        body.push(when(found, vec![Stmt::Break(0)]));
        body.push(set(at, plus(place.clone(), 1)));
        draft.code.push(Stmt::Loop { limit: capacity + 2, body });
        (place.clone(), less(place, len))
    }

    /// Do the constants of a receive agree with a message?
    fn matches(&mut self, target: &Target, at: &Expr, args: &[Pattern], frame: Frame, draft: &mut Draft) -> Vec<Expr> {
        let fields = self.families[target.family].fields.len();
        let mut terms = Vec::new();
        for (field, arg) in args.iter().enumerate().take(fields) {
            if let Pattern::Match(wanted) = arg {
                let wanted = self.value(wanted, frame, draft).expr;
                let found = Expr::read(target.message(at.clone()).field(field as u32));
                terms.push(Expr::equal(found, wanted));
            }
        }
        terms
    }

    /// Stores the fields of message `at` where the patterns say, in order.
    pub fn store_fields(
        &mut self,
        target: &Target,
        at: &Expr,
        args: &[Pattern],
        frame: Frame,
        draft: &mut Draft,
    ) -> Vec<Stmt> {
        let fields = self.families[target.family].fields.clone();
        let mut out = Vec::new();
        for (field, (arg, base)) in args.iter().zip(fields).enumerate() {
            let Pattern::Store(place) = arg else { continue };
            let scalar = self.types.scalar(base);
            let value = Value::of_scalar(Expr::read(target.message(at.clone()).field(field as u32)), scalar);
            out.extend(self.store(place, value, frame, draft));
        }
        out
    }

    /// Takes message `at` out and closes the gap.
    pub fn remove(&mut self, target: &Target, at: &Expr, draft: &mut Draft) -> Vec<Stmt> {
        let capacity = self.families[target.family].capacity;
        let last = capacity as i64 - 1;
        let mut out = Vec::new();
        if *at == Expr::Const(0) && capacity <= UNROLLED {
            for index in 0..last {
                out.push(Stmt::Copy { to: target.message(index), from: target.message(index + 1) });
            }
        } else {
            let gap = draft.temp("gap", Scalar::I32);
            let place = Expr::read(gap);
            out.push(set(gap, at.clone()));
            let done = Expr::binary(BinOp::Ge, place.clone(), Expr::Const(last));
            let body = vec![
                when(done, vec![Stmt::Break(0)]),
                Stmt::Copy { to: target.message(place.clone()), from: target.message(plus(place.clone(), 1)) },
                set(gap, plus(place, 1)),
            ];
            out.push(Stmt::Loop { limit: capacity + 1, body });
        }
        out.push(Stmt::Reset(target.message(last)));
        out.push(Stmt::assign(target.len(), plus(Expr::read(target.len()), -1), Narrow::Wrap));
        out
    }

    /// Appends a message.
    pub fn append(&mut self, target: &Target, values: Vec<Value>) -> Vec<Stmt> {
        let len = Expr::read(target.len());
        let mut out = self.write(target, &len, values);
        out.push(Stmt::assign(target.len(), plus(len, 1), Narrow::Wrap));
        out
    }

    fn write(&mut self, target: &Target, at: &Expr, values: Vec<Value>) -> Vec<Stmt> {
        let fields = &self.families[target.family].fields;
        let slots = (0u32..).zip(fields).zip(values);
        slots
            .map(|((field, &base), value)| {
                value.assign(target.message(at.clone()).field(field), self.types.scalar(base))
            })
            .collect()
    }

    /// Inserts a message before the first that is larger, comparing field by field.
    pub fn insert(&mut self, target: &Target, values: Vec<Value>, draft: &mut Draft) -> Vec<Stmt> {
        let family = &self.families[target.family];
        let (capacity, fields) = (family.capacity, family.fields.clone());
        let at = draft.temp("at", Scalar::I32);
        let place = Expr::read(at);
        let mut out = vec![set(at, Expr::Const(0))];
        let mut kept = Vec::new();
        for (value, &base) in values.into_iter().zip(&fields) {
            let scalar = self.types.scalar(base);
            let temp = draft.temp("field", Scalar::I32);
            out.push(set(temp, value.narrowed(scalar).expr));
            kept.push(Value::of_scalar(Expr::read(temp), scalar));
        }
        // new < old: the first field that differs decides.
        let mut smaller = Expr::FALSE;
        for (field, value) in kept.iter().enumerate().rev() {
            let old = Expr::read(target.message(place.clone()).field(field as u32));
            let same = Expr::equal(value.expr.clone(), old.clone());
            smaller = Expr::any([less(value.expr.clone(), old), Expr::all([same, smaller])]);
        }
        let len = Expr::read(target.len());
        let search = vec![
            when(Expr::binary(BinOp::Ge, place.clone(), len.clone()), vec![Stmt::Break(0)]),
            when(smaller, vec![Stmt::Break(0)]),
            set(at, plus(place.clone(), 1)),
        ];
        out.push(Stmt::Loop { limit: capacity + 2, body: search });
        let gap = draft.temp("gap", Scalar::I32);
        let hole = Expr::read(gap);
        out.push(set(gap, len.clone()));
        let shift = vec![
            when(Expr::binary(BinOp::Le, hole.clone(), place.clone()), vec![Stmt::Break(0)]),
            Stmt::Copy { to: target.message(hole.clone()), from: target.message(plus(hole.clone(), -1)) },
            set(gap, plus(hole, -1)),
        ];
        out.push(Stmt::Loop { limit: capacity + 2, body: shift });
        out.extend(self.write(target, &place, kept));
        out.push(Stmt::assign(target.len(), plus(len, 1), Narrow::Wrap));
        out
    }
}
