//! Expressions: C's `int` arithmetic on 64-bit values that are known to stay small.
//!
//! A [`Value`] carries bounds, so that only what may leave 32 bits is wrapped back. What an expression needs
//! beyond itself (a search in a channel, a checked index) is put into the draft's code, to run just before.

use super::channels::in_range;
use super::{Frame, Lowering};
use crate::promela::ast::{Access, Base, Expr as Source, Pattern, Place as Named, Probe, Remote, Root};
use plimsoll_ir::{BinOp, Expr, Narrow, Place, Scalar, Stmt, TempId, Type, UnOp};

/// Temporaries and preparing code of a command under construction.
#[derive(Default)]
pub struct Draft {
    pub temps: Vec<(String, Type)>,
    /// Must run before the value just made is used; writes temporaries only.
    pub code: Vec<Stmt>,
    /// What `timeout` means.
    pub timeout: bool,
    /// Holds the process number that `run` gave.
    pub started: Option<TempId>,
}

impl Draft {
    pub fn temp(&mut self, name: &str, ty: impl Into<Type>) -> TempId {
        self.temps.push((name.into(), ty.into()));
        TempId(self.temps.len() as u32 - 1)
    }

    /// A value that is computed once, here.
    pub fn keep(&mut self, value: Expr) -> Expr {
        if matches!(value, Expr::Const(_)) || matches!(&value, Expr::Read(place) if place.path.is_empty()) {
            return value;
        }
        let temp = self.temp("value", Scalar::I32);
        self.code.push(Stmt::assign(temp, value, Narrow::Wrap));
        Expr::read(temp)
    }

    pub fn take_code(&mut self) -> Vec<Stmt> {
        std::mem::take(&mut self.code)
    }
}

/// An expression that lies between two bounds.
#[derive(Clone)]
pub struct Value {
    pub expr: Expr,
    low: i64,
    high: i64,
}

const LOWEST: i64 = i32::MIN as i64;
const HIGHEST: i64 = i32::MAX as i64;

impl Value {
    pub fn constant(value: i64) -> Value {
        Value { expr: Expr::Const(value), low: value, high: value }
    }

    fn within(expr: Expr, low: i64, high: i64) -> Value {
        Value { expr, low, high }
    }

    pub fn truth(expr: Expr) -> Value {
        Value { expr, low: 0, high: 1 }
    }

    /// A value read from a scalar of that type.
    pub fn of_scalar(expr: Expr, scalar: Scalar) -> Value {
        Value { expr, low: scalar.low, high: scalar.high }
    }

    /// Another expression with the same bounds.
    pub fn with(self, expr: Expr) -> Value {
        Value { expr, ..self }
    }

    fn int(self) -> Value {
        if LOWEST <= self.low && self.high <= HIGHEST {
            return self;
        }
        Value { expr: Expr::wrap(32, true, self.expr), low: LOWEST, high: HIGHEST }
    }

    /// Stores it, keeping the low bits.
    pub fn assign(self, to: Place, scalar: Scalar) -> Stmt {
        let narrow = if scalar.low <= self.low && self.high <= scalar.high && !scalar.fills_its_bits() {
            Narrow::Trap
        } else {
            Narrow::Wrap
        };
        Stmt::assign(to, self.expr, narrow)
    }

    /// What is left of it in a variable of that type.
    pub fn narrowed(self, scalar: Scalar) -> Value {
        if scalar.low <= self.low && self.high <= scalar.high {
            return self;
        }
        if let Expr::Const(value) = self.expr {
            return Value::constant(scalar.decode(scalar.encode(value)));
        }
        let expr = Expr::wrap(scalar.bits() as u8, scalar.is_signed(), self.expr);
        Value { expr, low: scalar.low, high: scalar.high }
    }
}

impl Lowering<'_> {
    /// The scalar of a place; elements of bit arrays are bytes.
    pub fn scalar_of(&self, place: &Named) -> Scalar {
        let element = matches!(place.path.last(), Some(Access::Index(_)));
        if place.base == Base::Bit && element { Scalar::U8 } else { self.types.scalar(place.base) }
    }

    pub fn place(&mut self, place: &Named, frame: Frame, draft: &mut Draft) -> Place {
        let root = match place.root {
            Root::Global(number) => self.globals[number],
            Root::Local(number) => {
                frame.slot.and_then(|slot| self.slots[slot].cells.get(&(frame.proctype, number)).copied())
            }
        };
        let Some(root) = root else {
            // Constant channels have no storage; asking for it is a mistake of ours, not of the model.
            unreachable!("a place without storage");
        };
        let mut out = Place::from(root);
        for access in &place.path {
            out = match access {
                Access::Field(field) => out.field(*field as u32),
                Access::Index(index) => {
                    let index = self.value(index, frame, draft).expr;
                    out.index(index)
                }
            };
        }
        out
    }

    /// True or false, as 1 or 0 or any other number.
    pub fn truth(&mut self, source: &Source, frame: Frame, draft: &mut Draft) -> Expr {
        self.value(source, frame, draft).expr
    }

    pub fn value(&mut self, source: &Source, frame: Frame, draft: &mut Draft) -> Value {
        match source {
            Source::Number(number) => Value::constant(*number),
            Source::Read(place) => self.read(place, frame, draft),
            Source::Pid => Value::constant(frame.slot.unwrap_or(0) as i64),
            Source::ProcessCount => self.process_count(),
            Source::Last => match self.last {
                Some(last) => Value::within(Expr::read(last), 0, 255),
                None => Value::constant(0),
            },
            Source::Timeout => Value::constant(draft.timeout as i64),
            Source::NoProgress => self.no_progress(),
            Source::Enabled(pid) => self.is_process_enabled(pid, frame, draft),
            Source::PlaceOf(pid) => self.place_number(pid, frame, draft),
            Source::Unary(op, value) => {
                let value = self.value(value, frame, draft);
                unary(*op, value)
            }
            Source::Binary(op, left, right) => {
                let left = self.value(left, frame, draft);
                let right = self.value(right, frame, draft);
                binary(*op, left, right)
            }
            Source::Logic(op, parts) => self.logic(*op, parts, frame, draft),
            Source::Choice(parts) => self.choice(&parts.0, &parts.1, &parts.2, frame, draft),
            Source::Run(_) => match draft.started {
                Some(started) => Value::within(Expr::read(started), 0, 255),
                None => Value::constant(1),
            },
            Source::Probe(probe, channel) => self.probe(*probe, channel, frame, draft),
            Source::Poll { channel, args, random } => self.poll(channel, args, *random, frame, draft),
            Source::AtLabel(remote) => self.at_label(remote, frame, draft),
            Source::RemoteVariable(remote) => self.remote_variable(remote, frame, draft),
        }
    }

    /// `&&` and `||` evaluate a part only if the parts before did not decide; so must the code it needs.
    fn logic(&mut self, op: BinOp, parts: &[Source], frame: Frame, draft: &mut Draft) -> Value {
        let mut done: Vec<Expr> = Vec::new();
        for part in parts {
            let before = draft.take_code();
            let value = self.value(part, frame, draft).expr;
            let code = std::mem::replace(&mut draft.code, before);
            if code.is_empty() || done.is_empty() {
                draft.code.extend(code);
                done.push(value);
                continue;
            }
            let decided = draft.temp("so far", Scalar::BOOL);
            let truth = |value| Expr::binary(BinOp::Ne, value, Expr::Const(0));
            let earlier = balanced(op, std::mem::take(&mut done));
            draft.code.push(Stmt::assign(decided, truth(earlier), Narrow::Wrap));
            let open = if op == BinOp::And { Expr::read(decided) } else { Expr::negate(Expr::read(decided)) };
            let mut then = code;
            then.push(Stmt::assign(decided, truth(value), Narrow::Wrap));
            draft.code.push(Stmt::If { condition: open, then, otherwise: Vec::new() });
            done.push(Expr::read(decided));
        }
        Value::truth(balanced(op, done))
    }

    fn choice(
        &mut self,
        condition: &Source,
        then: &Source,
        otherwise: &Source,
        frame: Frame,
        draft: &mut Draft,
    ) -> Value {
        let condition = self.value(condition, frame, draft).expr;
        let before = draft.take_code();
        let then = self.value(then, frame, draft);
        let then_code = draft.take_code();
        let otherwise = self.value(otherwise, frame, draft);
        let otherwise_code = std::mem::replace(&mut draft.code, before);
        let (low, high) = (then.low.min(otherwise.low), then.high.max(otherwise.high));
        if then_code.is_empty() && otherwise_code.is_empty() {
            let expr = Expr::Select(Box::new(condition), Box::new(then.expr), Box::new(otherwise.expr));
            return Value { expr, low, high };
        }
        let chosen = draft.temp("chosen", Scalar::I32);
        let branch = |mut code: Vec<Stmt>, value: Value| {
            code.push(Stmt::assign(chosen, value.expr, Narrow::Wrap));
            code
        };
        let (then, otherwise) = (branch(then_code, then), branch(otherwise_code, otherwise));
        draft.code.push(Stmt::If { condition, then, otherwise });
        Value { expr: Expr::read(chosen), low, high }
    }

    fn read(&mut self, place: &Named, frame: Frame, draft: &mut Draft) -> Value {
        if place.len.is_some() || matches!(place.base, Base::Struct(_)) {
            self.fail("an array or a structure is used as a number");
            return Value::constant(0);
        }
        if place.base == Base::Chan {
            let id = self.channel_id(place, frame, draft);
            return Value::within(id, 0, self.types.chan.high);
        }
        if let Root::Global(number) = place.root
            && self.globals[number].is_none()
        {
            self.fail("a hidden variable that the model never reads has no value");
            return Value::constant(0);
        }
        let scalar = self.scalar_of(place);
        let expr = Expr::read(self.place(place, frame, draft));
        // Variables are read as int, also unsigned ones of 32 bits.
        Value::within(expr, scalar.low, scalar.high).int()
    }

    /// How many slots are taken; they are taken from below.
    fn process_count(&mut self) -> Value {
        let mut expr = Expr::Const(0);
        for (number, slot) in self.slots.iter().enumerate() {
            let alive = Expr::binary(BinOp::Ne, Expr::read(slot.location), Expr::Const(0));
            expr = if number == 0 { alive } else { Expr::binary(BinOp::Add, expr, alive) };
        }
        Value::within(expr, 0, self.slots.len() as i64)
    }

    fn probe(&mut self, probe: Probe, channel: &Named, frame: Frame, draft: &mut Draft) -> Value {
        let targets = self.targets(channel, frame, draft);
        self.fault_if(targets.bad, "use of an uninitialised channel", draft);
        let mut most = 0;
        let mut out: Option<Expr> = None;
        for target in targets.list.into_iter().rev() {
            let capacity = self.families[target.family].capacity as i64;
            most = most.max(capacity);
            let len = if capacity == 0 { Expr::Const(0) } else { Expr::read(target.len()) };
            let answer = match probe {
                Probe::Len => len,
                Probe::Empty => Expr::equal(len, Expr::Const(0)),
                Probe::NotEmpty => Expr::binary(BinOp::Gt, len, Expr::Const(0)),
                Probe::Full if capacity == 0 => Expr::FALSE,
                Probe::NotFull if capacity == 0 => Expr::TRUE,
                Probe::Full => Expr::binary(BinOp::Ge, len, Expr::Const(capacity)),
                Probe::NotFull => Expr::binary(BinOp::Lt, len, Expr::Const(capacity)),
            };
            out = Some(match (out, target.when) {
                (Some(rest), Some(when)) => Expr::Select(Box::new(when), Box::new(answer), Box::new(rest)),
                _ => answer,
            });
        }
        Value::within(out.unwrap_or(Expr::FALSE), 0, if probe == Probe::Len { most } else { 1 })
    }

    fn poll(&mut self, channel: &Named, args: &[Pattern], random: bool, frame: Frame, draft: &mut Draft) -> Value {
        let targets = self.targets(channel, frame, draft);
        self.fault_if(targets.bad, "use of an uninitialised channel", draft);
        let mut out: Option<Expr> = None;
        for target in targets.list.into_iter().rev() {
            let answer = if target.store.is_none() {
                self.fault_if(
                    Some(target.when.clone().unwrap_or(Expr::TRUE)),
                    "a rendezvous channel cannot be polled",
                    draft,
                );
                Expr::FALSE
            } else {
                self.receivable(&target, args, random, frame, draft).1
            };
            out = Some(match (out, target.when) {
                (Some(rest), Some(when)) => Expr::Select(Box::new(when), Box::new(answer), Box::new(rest)),
                _ => answer,
            });
        }
        Value::truth(out.unwrap_or(Expr::FALSE))
    }

    pub fn fault_if(&self, condition: Option<Expr>, message: &str, draft: &mut Draft) {
        if let Some(condition) = condition {
            let then = vec![Stmt::Fault(message.into())];
            draft.code.push(Stmt::If { condition, then, otherwise: Vec::new() });
        }
    }

    /// Slots where a process of a proctype may live.
    fn homes(&self, proctype: usize) -> Vec<usize> {
        let lives = |slot: &usize| self.slots[*slot].tenants.iter().any(|(tenant, _)| *tenant == proctype);
        (0..self.slots.len()).filter(lives).collect()
    }

    fn at_label(&mut self, remote: &Remote, frame: Frame, draft: &mut Draft) -> Value {
        self.site = remote.site;
        let found = self.automata[remote.proctype].labels.iter().find(|(label, _)| label.name == remote.name);
        let Some((_, location)) = found else {
            self.fail(format!(
                "proctype {} has no label {}",
                self.program.proctypes[remote.proctype].name, remote.name
            ));
            return Value::constant(0);
        };
        let Some(location) = *location else { return Value::constant(0) };
        let homes = self.homes(remote.proctype);
        let pid = remote.pid.as_ref().map(|pid| self.value(pid, frame, draft).expr);
        let first = homes.first().copied();
        let terms = homes.iter().filter(|&&home| pid.is_some() || Some(home) == first).map(|&home| {
            let slot = &self.slots[home];
            let there =
                Expr::equal(Expr::read(slot.location), Expr::Const(slot.location(remote.proctype, location) as i64));
            match &pid {
                Some(pid) => Expr::all([Expr::equal(pid.clone(), Expr::Const(home as i64)), there]),
                None => there,
            }
        });
        Value::truth(balanced(BinOp::Or, terms.collect()))
    }

    fn remote_variable(&mut self, remote: &Remote, frame: Frame, draft: &mut Draft) -> Value {
        self.site = remote.site;
        let locals = &self.program.proctypes[remote.proctype].locals;
        let Some(local) = locals.iter().position(|local| *local.name == *remote.name) else {
            self.fail(format!(
                "proctype {} has no variable {}",
                self.program.proctypes[remote.proctype].name, remote.name
            ));
            return Value::constant(0);
        };
        let variable = locals[local].clone();
        if let Some(part) = &remote.part {
            return self.remote_part(remote, part, frame, draft);
        }
        if matches!(variable.base, Base::Struct(_) | Base::Chan) || variable.len.is_some() != remote.index.is_some() {
            self.fail("only a scalar of another process can be read");
            return Value::constant(0);
        }
        let index = remote.index.as_ref().map(|index| self.value(index, frame, draft).expr);
        let pid = remote.pid.as_ref().map(|pid| self.value(pid, frame, draft).expr);
        let element = variable.base == Base::Bit && index.is_some();
        let scalar = if element { Scalar::U8 } else { self.types.scalar(variable.base) };
        let homes = self.homes(remote.proctype);
        let mut out = Expr::Const(0);
        let taken = if pid.is_some() { homes.len() } else { 1 };
        for &home in homes.iter().take(taken).rev() {
            let mut place = Place::from(self.slots[home].cells[&(remote.proctype, local)]);
            if let Some(index) = &index {
                place = place.index(index.clone());
            }
            let value = Expr::read(place);
            out = match &pid {
                Some(pid) => {
                    let here = Expr::equal(pid.clone(), Expr::Const(home as i64));
                    Expr::Select(Box::new(here), Box::new(value), Box::new(out))
                }
                None => value,
            };
        }
        Value::within(out, scalar.low.min(0), scalar.high).int()
    }

    /// Part of a structure of another process.
    fn remote_part(&mut self, remote: &Remote, part: &Named, frame: Frame, draft: &mut Draft) -> Value {
        let pid = remote.pid.as_ref().map(|pid| self.value(pid, frame, draft).expr);
        let mut out = Value::constant(0);
        let homes = self.homes(remote.proctype);
        let taken = if pid.is_some() { homes.len() } else { 1 };
        for &home in homes.iter().take(taken).rev() {
            let frame = Frame { slot: Some(home), proctype: remote.proctype };
            let value = self.read(part, frame, draft);
            out = match &pid {
                Some(pid) => {
                    let here = Expr::equal(pid.clone(), Expr::Const(home as i64));
                    let either = Expr::Select(Box::new(here), Box::new(value.expr), Box::new(out.expr));
                    Value { expr: either, low: value.low.min(out.low), high: value.high.max(out.high) }
                }
                None => value,
            };
        }
        out
    }

    /// Is the process of a slot at one of the locations?
    pub fn stands_at(&self, slot: usize, locations: &[u32]) -> Expr {
        let read = Expr::read(self.slots[slot].location);
        let terms = locations.iter().map(|&location| Expr::equal(read.clone(), Expr::Const(location as i64)));
        balanced(BinOp::Or, terms.collect())
    }

    pub fn is_slot_free(&self, slot: usize) -> Expr {
        in_range(&Expr::read(self.slots[slot].location), 0, 0)
    }
}

/// A chain of `&&` or `||`, halved again and again so that it does not get deep.
pub fn balanced(op: BinOp, mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        0 => Expr::Const((op == BinOp::And) as i64),
        1 => parts.remove(0),
        len => {
            let right = parts.split_off(len / 2);
            Expr::binary(op, balanced(op, parts), balanced(op, right))
        }
    }
}

fn unary(op: UnOp, value: Value) -> Value {
    if let Expr::Const(number) = value.expr {
        return Value::constant(op.apply(number) as i32 as i64);
    }
    let expr = Expr::unary(op, value.expr);
    match op {
        UnOp::Not => Value::truth(expr),
        UnOp::Neg => Value::within(expr, -value.high, -value.low).int(),
        UnOp::BitNot => Value::within(expr, !value.high, !value.low),
    }
}

fn binary(op: BinOp, left: Value, right: Value) -> Value {
    if let (Expr::Const(one), Expr::Const(other)) = (&left.expr, &right.expr)
        && !matches!(op, BinOp::Shl | BinOp::Shr)
        && let Some(value) = op.apply(*one, *other)
    {
        return Value::constant(value as i32 as i64);
    }
    let corners = |f: fn(i64, i64) -> i64| {
        let all = [f(left.low, right.low), f(left.low, right.high), f(left.high, right.low), f(left.high, right.high)];
        (*all.iter().min().expect("four"), *all.iter().max().expect("four"))
    };
    let magnitude = left.low.unsigned_abs().max(left.high.unsigned_abs()) as i64;
    let (low, high) = match op {
        BinOp::Add => (left.low + right.low, left.high + right.high),
        BinOp::Sub => (left.low - right.high, left.high - right.low),
        BinOp::Mul => corners(|one, other| one * other),
        BinOp::Div => (-magnitude, magnitude),
        BinOp::Rem => (if left.low < 0 { LOWEST } else { 0 }, if left.high > 0 { magnitude } else { 0 }),
        BinOp::BitAnd if left.low >= 0 && right.low >= 0 => (0, left.high.min(right.high)),
        BinOp::BitOr | BinOp::BitXor if left.low >= 0 && right.low >= 0 => {
            let bits = 64 - (left.high | right.high).leading_zeros();
            (0, (1 << bits) - 1)
        }
        BinOp::Shl | BinOp::Shr => return shift(op, left, right),
        op if op.is_truth() => (0, 1),
        _ => (LOWEST, HIGHEST),
    };
    Value::within(Expr::binary(op, left.expr, right.expr), low, high).int()
}

/// Shift counts are taken modulo 32, as the processors that run SPIN's code do.
fn shift(op: BinOp, left: Value, right: Value) -> Value {
    let count = if right.low >= 0 && right.high < 32 {
        right.expr
    } else {
        Expr::binary(BinOp::BitAnd, right.expr, Expr::Const(31))
    };
    let (low, high) = match op {
        BinOp::Shr => (left.low.min(0), left.high.max(0)),
        _ => (i64::MIN, i64::MAX),
    };
    Value::within(Expr::binary(op, left.expr, count), low, high).int()
}
