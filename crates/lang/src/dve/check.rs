//! Declarations: names, types, initial values, states.
//!
//! Produces the variables and processes of the system and the [`Symbols`]. The property process, if it
//! is to be left out, comes last, so that what was declared for it can be cut off at the end.

use super::ast::{self, Declaration, ExprId, Ident, Initialiser, Model, Name};
use super::expr::{Lowering, Scope};
use super::symbols::{Channel, Entity, ProcessScope, Symbols, Variable};
use crate::diagnostic::{Diagnostic, Diagnostics, Span};
use plimsoll_ir::{
    Access, BinOp, EnumId, Enumeration, Expr, Process, ProcessId, Root, Scalar, System, Type, VarId, expr,
};
use std::collections::{HashMap, HashSet};

/// Scalars in all variables together.
const MOST_SCALARS: usize = 1 << 16;
/// Messages in one channel.
const MOST_SLOTS: i64 = 1 << 14;
const MOST_PROCESSES: usize = 4096;
const MOST_VARIABLES: usize = 1 << 15;

/// Declares everything that `model` declares. The order of `Symbols::processes` is that of the text.
pub fn declare(model: &mut Model, name: &str, diagnostics: &mut Diagnostics) -> (System, Symbols) {
    let mut symbols = Symbols { names: std::mem::take(&mut model.names), ..Symbols::default() };
    let property = model.system.as_ref().and_then(|line| line.property);
    symbols.left_out = property.and_then(|property| find_process(model, &symbols, property, diagnostics));
    let mut check = Check { model, system: System::new(name), symbols, scalars: 0, diagnostics };
    check.run();
    (check.system, check.symbols)
}

fn find_process(model: &Model, symbols: &Symbols, ident: Ident, diagnostics: &mut Diagnostics) -> Option<u32> {
    let found = model.processes.iter().position(|process| process.ident.name == ident.name);
    if found.is_none() {
        let message = format!("there is no process `{}`", symbols.names.text(ident.name));
        diagnostics.push(Diagnostic::error(message, ident.span));
    }
    found.map(|index| index as u32)
}

struct Check<'a> {
    model: &'a Model,
    system: System,
    symbols: Symbols,
    scalars: usize,
    diagnostics: &'a mut Diagnostics,
}

impl Check<'_> {
    fn run(&mut self) {
        let model = self.model;
        for declaration in &model.declarations {
            match declaration {
                Declaration::Variable(variable) => self.variable(variable, None),
                Declaration::Channel(channel) => self.channel(channel),
            }
        }
        self.name_processes();
        if model.processes.len() > MOST_PROCESSES {
            let message = format!("more than {MOST_PROCESSES} processes");
            return self.diagnostics.push(Diagnostic::error(message, model.processes[MOST_PROCESSES].ident.span));
        }
        for index in 0..model.processes.len() as u32 {
            if self.symbols.left_out != Some(index) {
                self.process(index);
            }
        }
        if let Some(index) = self.symbols.left_out {
            self.process(index);
        }
        if self.system.processes.len() == self.symbols.left_out.is_some() as usize {
            self.diagnostics.push(Diagnostic::general("the model has no processes"));
        }
        if self.system.vars.len() > MOST_VARIABLES {
            self.diagnostics.push(Diagnostic::general(format!("more than {MOST_VARIABLES} variables")));
        } else if self.scalars > MOST_SCALARS {
            self.diagnostics.push(Diagnostic::general(format!("the variables have more than {MOST_SCALARS} elements")));
        }
    }

    fn text(&self, name: Name) -> &str {
        self.symbols.names.text(name)
    }

    fn error(&mut self, message: impl Into<String>, span: Span) {
        self.diagnostics.push(Diagnostic::error(message, span));
    }

    /// Gives a name its meaning; the first declaration wins.
    fn define(&mut self, ident: Ident, entity: Entity, process: Option<u32>) {
        let scope = match process {
            Some(process) => &mut self.symbols.processes[process as usize].locals,
            None => &mut self.symbols.globals,
        };
        if let std::collections::hash_map::Entry::Vacant(entry) = scope.entry(ident.name) {
            entry.insert(entity);
        } else {
            let message = format!("`{}` is declared twice", self.text(ident.name));
            self.error(message, ident.span);
        }
    }

    fn variable(&mut self, variable: &ast::Variable, process: Option<u32>) {
        let len = match variable.len {
            None => None,
            Some((len, _)) if (1..=MOST_SCALARS as i64).contains(&len) => Some(len as u32),
            Some((_, span)) => {
                self.error(format!("an array has 1 to {MOST_SCALARS} elements"), span);
                Some(MOST_SCALARS as u32)
            }
        };
        let values = self.initial_values(variable, len, process);
        if variable.constant && len.is_none() {
            return self.define(variable.ident, Entity::Constant(values[0]), process);
        }
        self.scalars = self.scalars.saturating_add(values.len());
        let var = self.add_var(variable, len, &values, process);
        let table = variable.constant.then_some(values);
        self.define(variable.ident, Entity::Variable(Variable { var, ty: variable.ty, len, table }), process);
    }

    fn add_var(&mut self, variable: &ast::Variable, len: Option<u32>, values: &[i64], process: Option<u32>) -> VarId {
        let own = self.text(variable.ident.name);
        let name = match process {
            Some(process) => format!("{}->{own}", self.text(self.model.processes[process as usize].ident.name)),
            None => own.into(),
        };
        let element = Type::Scalar(variable.ty.scalar());
        let ty = match len {
            Some(len) => Type::array(element, len),
            None => element,
        };
        let owner = process.map(|process| self.symbols.processes[process as usize].id);
        let var = self.system.var(name, ty, owner);
        if values.iter().any(|&value| value != 0) {
            self.system.vars[var.index()].init = values.to_vec();
        }
        var
    }

    /// One value per element: missing ones are zero, those too many are dropped.
    fn initial_values(&mut self, variable: &ast::Variable, len: Option<u32>, process: Option<u32>) -> Vec<i64> {
        let mut values = vec![0; len.unwrap_or(1) as usize];
        let given: &[ExprId] = match (&variable.init, len) {
            (Initialiser::Zero, _) => &[],
            (Initialiser::One(value), None) => std::slice::from_ref(value),
            (Initialiser::List(list), Some(_)) => list,
            (Initialiser::One(value), Some(_)) => {
                let span = self.model.exprs.get(*value).span;
                self.error("an array takes its initial values in braces", span);
                &[]
            }
            (Initialiser::List(list), None) => {
                let span = list.first().map_or(variable.ident.span, |&value| self.model.exprs.get(value).span);
                self.error("only an array takes a list of initial values", span);
                &[]
            }
        };
        for (value, &id) in values.iter_mut().zip(given) {
            *value = self.initial_value(id, variable.ty.scalar(), variable.ty.text(), process);
        }
        values
    }

    fn initial_value(&mut self, id: ExprId, scalar: Scalar, ty: &str, process: Option<u32>) -> i64 {
        let errors = self.diagnostics.error_count();
        let scope = Scope::Initialiser(process);
        let lowered = Lowering::new(&self.model.exprs, &self.symbols, scope, self.diagnostics).value(id);
        if self.diagnostics.error_count() > errors {
            return 0;
        }
        let span = self.model.exprs.get(id).span;
        match evaluate(&lowered.expr, &self.system) {
            Some(value) if scalar.contains(value) => value,
            Some(value) => {
                let label = format!("{} holds {} to {}", ty, scalar.low, scalar.high);
                let message = format!("the initial value {value} does not fit");
                self.diagnostics.push(Diagnostic::error(message, span).label(label));
                0
            }
            None => {
                self.error("this initial value cannot be computed: an index or a division goes wrong", span);
                0
            }
        }
    }

    fn channel(&mut self, channel: &ast::Channel) {
        let ident = channel.ident;
        let capacity = channel.capacity.clamp(0, MOST_SLOTS) as u32;
        if channel.capacity > MOST_SLOTS {
            self.error(format!("a channel has room for at most {MOST_SLOTS} messages"), ident.span);
        }
        let mut buffer = None;
        if let Some(types) = channel.types.as_ref().filter(|_| capacity > 0) {
            let slot = match types[..] {
                [single] => Type::Scalar(single.scalar()),
                _ => Type::Record(
                    types.iter().enumerate().map(|(at, ty)| (at.to_string(), ty.scalar().into())).collect(),
                ),
            };
            self.scalars = self.scalars.saturating_add(types.len().saturating_mul(capacity as usize));
            let len = Scalar::range(0, capacity.into());
            let ty = Type::channel(capacity, len, slot);
            let name = self.text(ident.name).to_string();
            buffer = Some(self.system.var(name, ty, None));
        }
        let index = self.symbols.channels.len() as u32;
        self.symbols.channels.push(Channel {
            name: ident.name,
            span: ident.span,
            types: channel.types.clone(),
            capacity,
            buffer,
            arity: channel.types.as_ref().map(Vec::len),
        });
        self.define(ident, Entity::Channel(index), None);
    }

    /// Names all processes first: `P.s` may come before the process.
    fn name_processes(&mut self) {
        let model = self.model;
        for (index, process) in model.processes.iter().enumerate() {
            self.define(process.ident, Entity::Process(index as u32), None);
            self.symbols.processes.push(ProcessScope {
                name: process.ident.name,
                id: ProcessId(u32::MAX),
                location: VarId(u32::MAX),
                states: HashMap::new(),
                committed: Vec::new(),
                locals: HashMap::new(),
            });
        }
    }

    fn process(&mut self, index: u32) {
        let process = &self.model.processes[index as usize];
        let id = ProcessId(self.system.processes.len() as u32);
        self.symbols.processes[index as usize].id = id;
        self.states(index);
        self.location(index, id);
        for variable in &process.variables {
            self.variable(variable, Some(index));
        }
        for state in &process.accepting {
            self.state(index, *state);
        }
        for state in &process.committed {
            if let Some(number) = self.state(index, *state) {
                self.symbols.processes[index as usize].committed[number as usize] = true;
            }
        }
    }

    fn states(&mut self, index: u32) {
        let process = &self.model.processes[index as usize];
        let mut seen = HashSet::new();
        for (number, state) in process.states.iter().enumerate() {
            if !seen.insert(state.name) {
                let message = format!("state `{}` is declared twice", self.text(state.name));
                self.error(message, state.span);
            }
            self.symbols.processes[index as usize].states.insert(state.name, number as u32);
        }
        self.symbols.processes[index as usize].committed = vec![false; process.states.len()];
        if process.states.is_empty() {
            let message = format!("process `{}` has no states", self.text(process.ident.name));
            self.error(message, process.ident.span);
        } else if process.init.is_none() {
            let message = format!("process `{}` has no initial state", self.text(process.ident.name));
            self.diagnostics
                .push(Diagnostic::error(message, process.ident.span).note("write `init s;` after the states"));
        }
    }

    /// Adds the process and the variable that says where it stands.
    fn location(&mut self, index: u32, id: ProcessId) {
        let process = &self.model.processes[index as usize];
        let name = self.text(process.ident.name).to_string();
        let locations: Vec<String> = process.states.iter().map(|state| self.text(state.name).into()).collect();
        let names = EnumId(self.system.enums.len() as u32);
        let high = locations.len().max(1) as i64 - 1;
        self.system.enums.push(Enumeration { name: name.clone(), first: 0, labels: locations.clone() });
        let scalar = Scalar { low: 0, high, names: Some(names) };
        let location = self.system.var(name.clone(), scalar, Some(id));
        self.scalars += 1;
        self.symbols.processes[index as usize].location = location;
        self.system.processes.push(Process { name, location, locations });
        if let Some(number) = process.init.and_then(|init| self.state(index, init))
            && number != 0
        {
            self.system.vars[location.index()].init = vec![number.into()];
        }
    }

    /// The number of a state of a process.
    fn state(&mut self, process: u32, state: Ident) -> Option<u32> {
        let found = self.symbols.processes[process as usize].states.get(&state.name).copied();
        if found.is_none() {
            self.diagnostics.push(unknown_state(&self.symbols, process, state));
        }
        found
    }
}

/// What to say about a state that a process does not have.
pub fn unknown_state(symbols: &Symbols, process: u32, state: Ident) -> Diagnostic {
    let scope = &symbols.processes[process as usize];
    let names = &symbols.names;
    let message = format!("process `{}` has no state `{}`", names.text(scope.name), names.text(state.name));
    let hint = symbols.similar(state.name, scope.states.keys().copied());
    Diagnostic::error(message, state.span).label(hint.map_or(String::new(), |text| format!("did you mean `{text}`?")))
}

/// The value of an expression in the initial state; `None` is a fault.
fn evaluate(expr: &Expr, system: &System) -> Option<i64> {
    match expr {
        Expr::Const(value) => Some(*value),
        Expr::Read(place) => {
            let Root::Var(var) = place.root else { return None };
            let index = match &place.path[..] {
                [] => 0,
                [Access::Index(index)] => evaluate(index, system)?,
                _ => return None,
            };
            let var = &system.vars[var.index()];
            let index = usize::try_from(index).ok().filter(|&index| index < var.ty.scalar_count())?;
            Some(var.init.get(index).copied().unwrap_or(0))
        }
        Expr::Unary(op, value) => Some(op.apply(evaluate(value, system)?)),
        Expr::Binary(BinOp::And, left, right) => {
            Some((evaluate(left, system)? != 0 && evaluate(right, system)? != 0) as i64)
        }
        Expr::Binary(BinOp::Or, left, right) => {
            Some((evaluate(left, system)? != 0 || evaluate(right, system)? != 0) as i64)
        }
        Expr::Binary(op, left, right) => op.apply(evaluate(left, system)?, evaluate(right, system)?),
        Expr::Select(condition, then, otherwise) => {
            evaluate(if evaluate(condition, system)? != 0 { then } else { otherwise }, system)
        }
        Expr::Wrap { bits, signed, value } => Some(expr::wrap(*bits, *signed, evaluate(value, system)?)),
    }
}
