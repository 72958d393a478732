//! Commands that pass values over channels.
//!
//! A rendez-vous evaluates all values, and all indices of where they go, in the state before the step. A
//! buffered channel is a record of the number of messages and the slots, of which unused ones are zero;
//! a message is put in or taken out before the effects run.

use super::ast::VarType;
use super::expr::Target;
use super::lower::{Exchange, Lowered, Step, store};
use super::symbols::Channel;
use super::value::{self, Value};
use crate::Overflow;
use plimsoll_ir::{Access, BinOp, Command, Expr, Kind, Narrow, Place, Root, Scalar, Stmt, TempId, VarId};

const LEN: u32 = 0;
const SLOTS: u32 = 1;

/// Buffers up to this size are shifted slot by slot without a loop.
const UNROLLED: u32 = 8;

/// A sender and a receiver move together; `None` if they never can.
pub fn rendezvous(lowered: &Lowered, sender: &Step, receiver: &Step) -> Option<Command> {
    let (Some(sent), Some(received)) = (&sender.exchange, &receiver.exchange) else { return None };
    let channel = &lowered.symbols.channels[sent.channel as usize];
    let name = lowered.symbols.names.text(channel.name);
    let mut command = Command::new(format!("{}, {} via {name}", lowered.label(sender), lowered.label(receiver)));
    command.line = sender.line;
    command.kind = Kind::Send;
    command.acts = vec![lowered.act(sender, Kind::Send, name), lowered.act(receiver, Kind::Receive, name)];
    command.at = vec![(sender.id, sender.from), (receiver.id, receiver.from)];
    let mut terms = lowered.commitment(&[sender, receiver])?;
    terms.extend([sender.guard.clone(), receiver.guard.clone()]);
    command.guard = value::all(terms);
    let values = sent.sent.iter().enumerate().map(|(at, value)| {
        let ty = channel.types.as_ref().map(|types| types[at]);
        cast(&mut command, value.clone(), ty, lowered.overflow)
    });
    let values = values.collect();
    transfer(&mut command, values, received.received.clone(), lowered.overflow);
    lowered.moves(receiver, &mut command.body);
    lowered.moves(sender, &mut command.body);
    Some(command)
}

/// Converts a value to the declared type of a channel.
fn cast(command: &mut Command, value: Value, ty: Option<VarType>, overflow: Overflow) -> Value {
    let Some(scalar) = ty.map(VarType::scalar) else { return value };
    if value.within(scalar.low, scalar.high) {
        return value;
    }
    let expr = match overflow {
        Overflow::Wrap => Expr::wrap(scalar.bits() as u8, scalar.is_signed(), value.expr),
        Overflow::Error => {
            let temp = command.temp(format!("value{}", command.temps.len()), scalar);
            command.body.push(Stmt::assign(temp, value.expr, Narrow::Trap));
            Expr::read(temp)
        }
    };
    Value::new(expr, scalar.low, scalar.high)
}

/// Stores all values as if at once.
fn transfer(command: &mut Command, mut values: Vec<Value>, mut targets: Vec<Target>, overflow: Overflow) {
    if disturbed(&values, &targets) {
        for value in &mut values {
            value.expr = Expr::read(keep(command, "value", value.expr.clone()));
        }
        for target in &mut targets {
            for access in &mut target.place.path {
                if let Access::Index(index) = access
                    && !matches!(index, Expr::Const(_))
                {
                    *index = Expr::read(keep(command, "index", index.clone()));
                }
            }
        }
    }
    command.body.extend(targets.into_iter().zip(values).map(|(target, value)| store(target, value, overflow)));
}

/// Evaluates into a temporary.
fn keep(command: &mut Command, name: &str, expr: Expr) -> TempId {
    let temp = command.temp(format!("{name}{}", command.temps.len()), Scalar::I32);
    command.body.push(Stmt::assign(temp, expr, Narrow::Wrap));
    temp
}

/// Would storing the values one after the other let an earlier store change a later value or index?
fn disturbed(values: &[Value], targets: &[Target]) -> bool {
    targets.iter().enumerate().any(|(at, target)| {
        let Root::Var(written) = target.place.root else { return false };
        let later_values = values.iter().skip(at + 1).any(|value| reads(&value.expr, written));
        let later_targets = targets.iter().skip(at + 1);
        later_values || later_targets.flat_map(|target| target.place.indices()).any(|index| reads(index, written))
    })
}

fn reads(expr: &Expr, var: VarId) -> bool {
    match expr {
        Expr::Const(_) => false,
        Expr::Read(place) => place.root == Root::Var(var) || place.indices().any(|index| reads(index, var)),
        Expr::Unary(_, value) | Expr::Wrap { value, .. } => reads(value, var),
        Expr::Binary(_, left, right) => reads(left, var) || reads(right, var),
        Expr::Select(condition, then, otherwise) => reads(condition, var) || reads(then, var) || reads(otherwise, var),
    }
}

/// A step that puts a message into a buffer or takes one out.
pub fn buffered(lowered: &Lowered, step: &Step, exchange: &Exchange, buffer: VarId) -> Option<Command> {
    let channel = &lowered.symbols.channels[exchange.channel as usize];
    let name = lowered.symbols.names.text(channel.name);
    let verb = if exchange.sends { "sends to" } else { "receives from" };
    let mut command = Command::new(format!("{} {verb} {name}", lowered.label(step)));
    command.line = step.line;
    command.kind = if exchange.sends { Kind::Send } else { Kind::Receive };
    command.acts = vec![lowered.act(step, command.kind, name)];
    command.at = vec![(step.id, step.from)];
    let len = Expr::read(Place::from(buffer).field(LEN));
    let ready = if exchange.sends {
        Expr::binary(BinOp::Lt, len, i64::from(channel.capacity).into())
    } else {
        Expr::binary(BinOp::Gt, len, Expr::Const(0))
    };
    let mut terms = lowered.commitment(&[step])?;
    terms.extend([ready, step.guard.clone()]);
    command.guard = value::all(terms);
    if exchange.sends {
        put(&mut command, channel, buffer, &exchange.sent, lowered.overflow);
    } else {
        take(&mut command, channel, buffer, &exchange.received, lowered.overflow);
    }
    lowered.moves(step, &mut command.body);
    Some(command)
}

/// The place of a value in a slot.
fn part(buffer: VarId, slot: Expr, arity: usize, at: usize) -> Place {
    let place = Place::from(buffer).field(SLOTS).index(slot);
    if arity == 1 { place } else { place.field(at as u32) }
}

fn put(command: &mut Command, channel: &Channel, buffer: VarId, values: &[Value], overflow: Overflow) {
    let len = Place::from(buffer).field(LEN);
    let types = channel.types.iter().flatten();
    for (at, (value, &ty)) in values.iter().zip(types).enumerate() {
        let place = part(buffer, Expr::Read(len.clone()), values.len(), at);
        command.body.push(store(Target { place, ty }, value.clone(), overflow));
    }
    command.body.push(step_by(len, BinOp::Add));
}

fn take(command: &mut Command, channel: &Channel, buffer: VarId, targets: &[Target], overflow: Overflow) {
    let types = channel.types.iter().flatten();
    let values = types.enumerate().map(|(at, ty)| {
        let scalar = ty.scalar();
        Value::new(Expr::Read(part(buffer, Expr::Const(0), targets.len(), at)), scalar.low, scalar.high)
    });
    transfer(command, values.collect(), targets.to_vec(), overflow);
    shift(command, channel.capacity, buffer);
    command.body.push(step_by(Place::from(buffer).field(LEN), BinOp::Sub));
}

/// Moves all messages one slot to the front and clears the slot that becomes free.
fn shift(command: &mut Command, capacity: u32, buffer: VarId) {
    let slot = |index: Expr| Place::from(buffer).field(SLOTS).index(index);
    if capacity <= UNROLLED {
        for index in 1..i64::from(capacity) {
            command.body.push(Stmt::Copy { to: slot((index - 1).into()), from: slot(index.into()) });
        }
        command.body.push(Stmt::Reset(slot((i64::from(capacity) - 1).into())));
        return;
    }
    let at = command.temp("slot", Scalar::range(0, capacity.into()));
    let next = Expr::binary(BinOp::Add, Expr::read(at), Expr::Const(1));
    let len = Expr::read(Place::from(buffer).field(LEN));
    let done = Expr::binary(BinOp::Ge, next.clone(), len);
    let body = vec![
        Stmt::If { condition: done, then: vec![Stmt::Break(0)], otherwise: Vec::new() },
        Stmt::Copy { to: slot(Expr::read(at)), from: slot(next) },
        step_by(at.into(), BinOp::Add),
    ];
    command.body.push(Stmt::Loop { limit: capacity, body });
    command.body.push(Stmt::Reset(slot(Expr::read(at))));
}

/// `place = place ± 1`, within its range.
fn step_by(place: Place, op: BinOp) -> Stmt {
    let value = Expr::binary(op, Expr::Read(place.clone()), Expr::Const(1));
    Stmt::assign(place, value, Narrow::Trap)
}
