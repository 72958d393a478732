//! Transitions → commands.
//!
//! Every transition is lowered once, to a [`Step`]; a step without synchronisation is a command, a
//! sender and a receiver on one channel in two processes are one together. In such a pair the values
//! pass first, computed in the state before; then the receiver moves, then the sender. A process moves
//! by changing its location and then running its effects in order.

use super::ast::{BinaryOp, Ident, Model, Transition};
use super::channel;
use super::check::unknown_state;
use super::expr::{Lowering, Scope, Target};
use super::symbols::{Entity, Symbols};
use super::value::{self, Value};
use crate::diagnostic::{Diagnostic, Diagnostics, Span};
use crate::{Options, Overflow};
use plimsoll_ir::{Act, BinOp, Command, Expr, Faults, Kind, Narrow, ProcessId, Property, PropertyKind, Stmt, System};

/// One transition, lowered.
pub struct Step {
    /// Index into the processes of the symbols.
    pub process: u32,
    pub id: ProcessId,
    pub from: u32,
    pub to: u32,
    pub line: u32,
    pub span: Span,
    pub guard: Expr,
    pub exchange: Option<Exchange>,
    pub effects: Vec<Stmt>,
}

/// What a step sends or receives.
pub struct Exchange {
    /// Index into the channels of the symbols.
    pub channel: u32,
    pub sent: Vec<Value>,
    pub received: Vec<Target>,
    pub sends: bool,
}

/// What building commands needs to know.
pub struct Lowered<'a> {
    pub symbols: &'a Symbols,
    pub system: &'a System,
    pub overflow: Overflow,
    /// By process: true while it stands at no committed state; `None` if it has none.
    uncommitted: Vec<Option<Expr>>,
}

/// More commands than this, or this much text in all pairs together, is refused.
pub const MOST_COMMANDS: usize = 1 << 19;
const MOST_PAIRED_TEXT: u64 = 1 << 25;

/// Adds commands and properties to the system.
pub fn lower(
    model: &Model,
    symbols: &mut Symbols,
    mut system: System,
    text: &str,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> System {
    let lines = Lines::new(text);
    let mut steps = Vec::new();
    for process in 0..model.processes.len() as u32 {
        check_arities(model, symbols, process, diagnostics);
        let mut lowered = lower_process(model, symbols, process, &lines, options.overflow, diagnostics);
        let properties = lower_asserts(model, symbols, process, &lines, diagnostics);
        if symbols.left_out == Some(process) {
            continue;
        }
        system.properties.extend(properties);
        steps.append(&mut lowered);
    }
    if diagnostics.error_count() > 0 {
        return system;
    }
    if symbols.left_out.is_some() {
        leave_out_last_process(&mut system);
    }
    let uncommitted = (0..symbols.processes.len() as u32).map(|process| uncommitted(symbols, process)).collect();
    let lowered = Lowered { symbols, system: &system, overflow: options.overflow, uncommitted };
    let synchronous = model.system.as_ref().is_some_and(|line| line.synchronous);
    let commands = if synchronous { super::sync::commands(&lowered, &steps) } else { commands(&lowered, &steps) };
    match commands {
        Ok(commands) => system.commands = commands,
        Err(diagnostic) => diagnostics.push(*diagnostic),
    }
    system.sort_commands();
    system.faults = Faults::Absorb;
    system
}

/// The property process was declared last.
fn leave_out_last_process(system: &mut System) {
    if let Some(process) = system.processes.pop() {
        system.vars.truncate(process.location.index());
        system.enums.pop();
    }
}

/// Line numbers of positions.
struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    fn new(text: &str) -> Lines {
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Lines { starts: newlines.map(|(at, _)| at as u32 + 1).collect() }
    }

    fn of(&self, span: Span) -> u32 {
        self.starts.partition_point(|&start| start <= span.start) as u32 + 1
    }
}

/// Checks that every use of a channel carries the same number of values, and remembers it.
fn check_arities(model: &Model, symbols: &mut Symbols, process: u32, diagnostics: &mut Diagnostics) {
    for transition in &model.processes[process as usize].transitions {
        let Some(sync) = &transition.sync else { continue };
        let name = sync.channel.name;
        let Some(&Entity::Channel(index)) = symbols.lookup(name, Some(process)) else {
            let message = format!("there is no channel `{}`", symbols.names.text(name));
            diagnostics.push(Diagnostic::error(message, sync.channel.span));
            continue;
        };
        let channel = &mut symbols.channels[index as usize];
        let arity = *channel.arity.get_or_insert(sync.values.len());
        if arity != sync.values.len() {
            let given = sync.values.len();
            let message = format!("values on channel `{}`: {arity} expected, {given} given", symbols.names.text(name));
            diagnostics.push(Diagnostic::error(message, sync.span));
        }
        if symbols.left_out == Some(process) && sync.sends {
            diagnostics.push(Diagnostic::error("a property process cannot send", sync.span));
        }
    }
}

fn lower_process(
    model: &Model,
    symbols: &Symbols,
    process: u32,
    lines: &Lines,
    overflow: Overflow,
    diagnostics: &mut Diagnostics,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut source: Option<Ident> = None;
    let mut lowering = Lowering::new(&model.exprs, symbols, Scope::Process(process), diagnostics);
    for transition in &model.processes[process as usize].transitions {
        source = transition.from.or(source);
        let Some(from) = source else {
            let message = "the first transition of a process must name its source state";
            lowering.diagnostics.push(Diagnostic::error(message, transition.span));
            continue;
        };
        let from = state(&mut lowering, process, from);
        let to = state(&mut lowering, process, transition.to);
        let parts = lower_parts(&mut lowering, transition, process, overflow);
        let (Some(from), Some(to)) = (from, to) else { continue };
        let id = symbols.processes[process as usize].id;
        let (guard, exchange, effects) = parts;
        let line = lines.of(transition.span);
        steps.push(Step { process, id, from, to, line, span: transition.span, guard, exchange, effects });
    }
    steps
}

fn state(lowering: &mut Lowering, process: u32, state: Ident) -> Option<u32> {
    let found = lowering.symbols.processes[process as usize].states.get(&state.name).copied();
    if found.is_none() {
        let diagnostic = unknown_state(lowering.symbols, process, state);
        lowering.diagnostics.push(diagnostic);
    }
    found
}

fn lower_parts(
    lowering: &mut Lowering,
    transition: &Transition,
    process: u32,
    overflow: Overflow,
) -> (Expr, Option<Exchange>, Vec<Stmt>) {
    let guard = transition.guard.map_or(Expr::TRUE, |guard| lowering.value(guard).expr);
    let exchange = transition.sync.as_ref().and_then(|sync| {
        let mut exchange = Exchange { channel: 0, sent: Vec::new(), received: Vec::new(), sends: sync.sends };
        for &value in &sync.values {
            if sync.sends {
                exchange.sent.push(lowering.value(value));
            } else {
                exchange.received.extend(lowering.target(value));
            }
        }
        match lowering.symbols.lookup(sync.channel.name, Some(process)) {
            Some(&Entity::Channel(channel)) => Some(Exchange { channel, ..exchange }),
            _ => None,
        }
    });
    let mut effects = Vec::with_capacity(transition.effects.len());
    for &(target, value) in &transition.effects {
        let target = lowering.target(target);
        let value = lowering.value(value);
        effects.extend(target.map(|target| store(target, value, overflow)));
    }
    (guard, exchange, effects)
}

/// `target = value`. A value that is sure to fit needs no check.
pub fn store(target: Target, value: Value, overflow: Overflow) -> Stmt {
    let scalar = target.ty.scalar();
    let fits = value.within(scalar.low, scalar.high);
    let narrow = if fits || overflow == Overflow::Wrap { Narrow::Wrap } else { Narrow::Trap };
    Stmt::assign(target.place, value.expr, narrow)
}

/// An assertion at a state is an invariant: whoever stands there, it holds.
fn lower_asserts(
    model: &Model,
    symbols: &Symbols,
    process: u32,
    lines: &Lines,
    diagnostics: &mut Diagnostics,
) -> Vec<Property> {
    let scope = &symbols.processes[process as usize];
    let mut lowering = Lowering::new(&model.exprs, symbols, Scope::Process(process), diagnostics);
    let mut properties = Vec::new();
    for &(at, expr) in &model.processes[process as usize].asserts {
        let number = state(&mut lowering, process, at);
        let holds = lowering.value(expr);
        let Some(number) = number else { continue };
        let elsewhere = Expr::binary(BinOp::Ne, Expr::read(scope.location), i64::from(number).into());
        properties.push(Property {
            name: format!("assert at {}.{}", symbols.names.text(scope.name), symbols.names.text(at.name)),
            line: lines.of(at.span),
            kind: PropertyKind::Invariant,
            temps: Vec::new(),
            prelude: Vec::new(),
            expr: value::chain(BinaryOp::Or, vec![Value::new(elsewhere, 0, 1), holds]).expr,
        });
    }
    properties
}

fn uncommitted(symbols: &Symbols, process: u32) -> Option<Expr> {
    let scope = &symbols.processes[process as usize];
    let committed = (0i64..).zip(&scope.committed).filter(|&(_, &committed)| committed);
    let elsewhere: Vec<Expr> =
        committed.map(|(state, _)| Expr::binary(BinOp::Ne, Expr::read(scope.location), state.into())).collect();
    if elsewhere.is_empty() || symbols.left_out == Some(process) { None } else { Some(value::all(elsewhere)) }
}

fn commands(lowered: &Lowered, steps: &[Step]) -> Result<Vec<Command>, Box<Diagnostic>> {
    let mut receivers: Vec<Vec<&Step>> = lowered.symbols.channels.iter().map(|_| Vec::new()).collect();
    for step in steps {
        if let Some(exchange) = &step.exchange
            && !exchange.sends
            && lowered.symbols.channels[exchange.channel as usize].buffer.is_none()
        {
            receivers[exchange.channel as usize].push(step);
        }
    }
    check_pairs(lowered, steps, &receivers)?;
    let mut commands = Vec::new();
    for step in steps {
        let Some(exchange) = &step.exchange else {
            commands.extend(lowered.plain(step));
            continue;
        };
        let channel = &lowered.symbols.channels[exchange.channel as usize];
        if let Some(buffer) = channel.buffer {
            commands.extend(channel::buffered(lowered, step, exchange, buffer));
        } else if exchange.sends {
            let others = receivers[exchange.channel as usize].iter().filter(|other| other.process != step.process);
            commands.extend(others.filter_map(|other| channel::rendezvous(lowered, step, other)));
        }
    }
    Ok(commands)
}

/// Pairs of senders and receivers can be many more than the text is long.
fn check_pairs(lowered: &Lowered, steps: &[Step], receivers: &[Vec<&Step>]) -> Result<(), Box<Diagnostic>> {
    let length = |step: &Step| u64::from(step.span.end - step.span.start);
    let lengths: Vec<u64> = receivers.iter().map(|steps| steps.iter().map(|step| length(step)).sum()).collect();
    let (mut count, mut text) = (0u64, 0u64);
    for step in steps {
        count += 1;
        if count > MOST_COMMANDS as u64 {
            return Err(Box::new(Diagnostic::general(format!("more than {MOST_COMMANDS} transitions"))));
        }
        let Some(exchange) = &step.exchange else { continue };
        let channel = exchange.channel as usize;
        if exchange.sends {
            count += receivers[channel].len() as u64;
            text += length(step) * receivers[channel].len() as u64 + lengths[channel];
        }
        if count > MOST_COMMANDS as u64 || text > MOST_PAIRED_TEXT {
            let channel = &lowered.symbols.channels[channel];
            let name = lowered.symbols.names.text(channel.name);
            let message = format!("the senders and receivers on channel `{name}` make too many pairs");
            return Err(Box::new(Diagnostic::error(message, channel.span)));
        }
    }
    Ok(())
}

impl Lowered<'_> {
    /// A command for a step on its own, if it can ever be enabled.
    pub fn plain(&self, step: &Step) -> Option<Command> {
        let mut command = Command::new(self.label(step));
        command.line = step.line;
        command.kind = if step.effects.is_empty() { Kind::Control } else { Kind::Assign };
        command.acts = vec![self.act(step, command.kind, "")];
        command.at = vec![(step.id, step.from)];
        command.guard = value::all(self.commitment(&[step])?.into_iter().chain([step.guard.clone()]).collect());
        self.moves(step, &mut command.body);
        Some(command)
    }

    pub fn label(&self, step: &Step) -> String {
        format!("{}: {}", self.system.processes[step.id.index()].name, self.way(step))
    }

    fn way(&self, step: &Step) -> String {
        let place = |state: u32| &self.system.processes[step.id.index()].locations[state as usize];
        format!("{} -> {}", place(step.from), place(step.to))
    }

    /// A step as people see it in a trace; `over` is the channel it uses, if any.
    pub fn act(&self, step: &Step, kind: Kind, over: &str) -> Act {
        let text = match kind {
            Kind::Send => format!("{} {over}!", self.way(step)),
            Kind::Receive => format!("{} {over}?", self.way(step)),
            _ => self.way(step),
        };
        let who = self.system.processes[step.id.index()].name.clone();
        Act { process: step.id, who, text, kind, file: String::new(), line: step.line, number: (0, 0) }
    }

    /// The process changes its location, then runs its effects.
    pub fn moves(&self, step: &Step, body: &mut Vec<Stmt>) {
        if step.from != step.to {
            let location = self.system.processes[step.id.index()].location;
            body.push(Stmt::assign(location, i64::from(step.to), Narrow::Trap));
        }
        body.extend(step.effects.iter().cloned());
    }

    /// What committed states ask of steps taken together: while any process stands at one, only
    /// processes at committed states move. `None` if the steps exclude one another.
    pub fn commitment(&self, steps: &[&Step]) -> Option<Vec<Expr>> {
        let committed = |step: &&&Step| self.symbols.processes[step.process as usize].committed[step.from as usize];
        let count = steps.iter().filter(committed).count();
        if count == steps.len() {
            return Some(Vec::new());
        }
        if count > 0 {
            return None;
        }
        let others = (0u32..).zip(&self.uncommitted);
        let waiting = others.filter(|(process, _)| steps.iter().all(|step| step.process != *process));
        Some(waiting.filter_map(|(_, uncommitted)| uncommitted.clone()).collect())
    }
}
