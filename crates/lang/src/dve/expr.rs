//! Expressions: names resolved, then lowered.
//!
//! A bare name of an array stands for its first element, for reading and for writing. `P.s` asks
//! where a process stands; `P->x` reads a variable of another process and is for properties only.

use super::ast::{BinaryOp, ExprId, ExprKind, Exprs, Name, UnaryOp, VarType};
use super::symbols::{Entity, Symbols, Variable};
use super::value::{self, Value};
use crate::diagnostic::{Diagnostic, Diagnostics, Span};
use plimsoll_ir::{Expr, Place};
use std::collections::HashSet;

/// Where an expression stands, which decides what it may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The initial value of a global variable, or of a variable of a process.
    Initialiser(Option<u32>),
    /// The code of a process.
    Process(u32),
    /// A property of the whole system.
    Everywhere,
}

impl Scope {
    fn process(self) -> Option<u32> {
        match self {
            Scope::Initialiser(process) => process,
            Scope::Process(process) => Some(process),
            Scope::Everywhere => None,
        }
    }
}

/// Where a value can be stored.
#[derive(Clone, Debug)]
pub struct Target {
    pub place: Place,
    pub ty: VarType,
}

pub struct Lowering<'a> {
    pub exprs: &'a Exprs,
    pub symbols: &'a Symbols,
    pub scope: Scope,
    pub diagnostics: &'a mut Diagnostics,
    /// Each unknown name is reported once.
    unknown: HashSet<Name>,
}

impl<'a> Lowering<'a> {
    pub fn new(exprs: &'a Exprs, symbols: &'a Symbols, scope: Scope, diagnostics: &'a mut Diagnostics) -> Lowering<'a> {
        Lowering { exprs, symbols, scope, diagnostics, unknown: HashSet::new() }
    }

    /// The value of an expression; after an error (which is reported) any value.
    pub fn value(&mut self, id: ExprId) -> Value {
        let node = *self.exprs.get(id);
        match node.kind {
            ExprKind::Number(value) => Value::constant(value.into()),
            ExprKind::Name(name) => self.named(name, node.span),
            ExprKind::Index(name, index) => self.element(name, index, node.span),
            ExprKind::State(process, state) => self.stands_at(process, state, node.span),
            ExprKind::Foreign(process, name, index) => self.foreign(process, name, index, node.span),
            ExprKind::Unary(op, inner) => {
                let inner = self.value(inner);
                match op {
                    UnaryOp::Negate => inner.negate(),
                    UnaryOp::Complement => inner.complement(),
                    UnaryOp::Not => inner.not(),
                }
            }
            ExprKind::Binary(op, ..) if op.is_associative() => {
                let operands = self.exprs.chain(op, id);
                let values = operands.into_iter().map(|operand| self.value(operand)).collect();
                value::chain(op, values)
            }
            ExprKind::Binary(op, left, right) if self.is_location(op, left, right) => {
                let (left, right) = (self.exprs.get(left).kind, self.exprs.get(right).kind);
                let (ExprKind::Name(process), ExprKind::Name(state)) = (left, right) else { unreachable!("just seen") };
                let stands = self.stands_at(process, state, node.span);
                if op == BinaryOp::Equal { stands } else { stands.not() }
            }
            ExprKind::Binary(op, left, right) => {
                let left = self.value(left);
                let right = self.value(right);
                value::binary(op, left, right)
            }
        }
    }

    /// The place that an assignment or a receive names.
    pub fn target(&mut self, id: ExprId) -> Option<Target> {
        let node = *self.exprs.get(id);
        let (name, index) = match node.kind {
            ExprKind::Name(name) => (name, None),
            ExprKind::Index(name, index) => (name, Some(index)),
            _ => {
                let message = "only a variable or an element of an array can take a value";
                self.diagnostics.push(Diagnostic::error(message, node.span));
                return None;
            }
        };
        let index = index.map(|index| self.value(index));
        match self.symbols.lookup(name, self.scope.process()) {
            Some(Entity::Variable(variable)) if variable.table.is_none() => {
                let place = self.place(variable, index, name, node.span)?;
                Some(Target { place, ty: variable.ty })
            }
            Some(Entity::Constant(_) | Entity::Variable(_)) => {
                let message = format!("`{}` is a constant", self.text(name));
                self.diagnostics.push(Diagnostic::error(message, node.span).label("cannot be assigned"));
                None
            }
            _ => {
                self.not_a_variable(name, node.span);
                None
            }
        }
    }

    fn text(&self, name: Name) -> &'a str {
        self.symbols.names.text(name)
    }

    fn named(&mut self, name: Name, span: Span) -> Value {
        match self.symbols.lookup(name, self.scope.process()) {
            Some(Entity::Constant(value)) => Value::constant(*value),
            Some(Entity::Variable(variable)) => self.read(variable, None, name, span),
            _ => self.not_a_variable(name, span),
        }
    }

    fn element(&mut self, name: Name, index: ExprId, span: Span) -> Value {
        let index = self.value(index);
        match self.symbols.lookup(name, self.scope.process()) {
            Some(Entity::Variable(variable)) => self.read(variable, Some(index), name, span),
            Some(Entity::Constant(_)) => self.error(format!("`{}` is not an array", self.text(name)), span),
            _ => self.not_a_variable(name, span),
        }
    }

    fn read(&mut self, variable: &Variable, index: Option<Value>, name: Name, span: Span) -> Value {
        if let Some(table) = &variable.table {
            let constant = index.as_ref().map_or(Some(0), Value::as_constant);
            if let Some(&value) = constant.and_then(|index| table.get(usize::try_from(index).ok()?)) {
                return Value::constant(value);
            }
        }
        let scalar = variable.ty.scalar();
        match self.place(variable, index, name, span) {
            Some(place) => Value::new(Expr::Read(place), scalar.low, scalar.high),
            None => Value::constant(0),
        }
    }

    fn place(&mut self, variable: &Variable, index: Option<Value>, name: Name, span: Span) -> Option<Place> {
        let place = Place::from(variable.var);
        match (variable.len, index) {
            (None, None) => Some(place),
            (None, Some(_)) => {
                self.error(format!("`{}` is not an array", self.text(name)), span);
                None
            }
            (Some(_), None) => Some(place.index(0)),
            (Some(len), Some(index)) => {
                if let Some(constant) = index.as_constant()
                    && !(0..i64::from(len)).contains(&constant)
                {
                    let message = format!("index {constant} is outside of `{}[{len}]`", self.text(name));
                    let warning = Diagnostic::warning(message, span).label("goes wrong whenever it is evaluated");
                    self.diagnostics.push(warning);
                }
                Some(place.index(index.expr))
            }
        }
    }

    /// Is it `P == s`, as traces show that a process stands at a state? In models it is written `P.s`.
    fn is_location(&self, op: BinaryOp, left: ExprId, right: ExprId) -> bool {
        let (ExprKind::Name(process), ExprKind::Name(_)) = (self.exprs.get(left).kind, self.exprs.get(right).kind)
        else {
            return false;
        };
        let compares = matches!(op, BinaryOp::Equal | BinaryOp::Unequal);
        compares && self.scope == Scope::Everywhere && self.symbols.process(process).is_some()
    }

    fn stands_at(&mut self, process: Name, state: Name, span: Span) -> Value {
        if matches!(self.scope, Scope::Initialiser(_)) {
            return self.error("an initial value cannot depend on where a process stands", span);
        }
        let Some(index) = self.observed(process, span) else { return Value::constant(0) };
        let scope = &self.symbols.processes[index as usize];
        match scope.states.get(&state) {
            Some(&number) => Value::new(Expr::equal(Expr::read(scope.location), i64::from(number).into()), 0, 1),
            None => {
                let message = format!("process `{}` has no state `{}`", self.text(process), self.text(state));
                let hint = self.suggestion(state, scope.states.keys().copied());
                self.diagnostics.push(Diagnostic::error(message, span).label(hint));
                Value::constant(0)
            }
        }
    }

    fn foreign(&mut self, process: Name, name: Name, index: Option<ExprId>, span: Span) -> Value {
        let allowed = match self.scope {
            Scope::Everywhere => true,
            Scope::Process(process) => self.symbols.left_out == Some(process),
            Scope::Initialiser(_) => false,
        };
        if !allowed {
            return self.error("only a property may read variables of another process", span);
        }
        let Some(owner) = self.observed(process, span) else { return Value::constant(0) };
        let index = index.map(|index| self.value(index));
        let scope = &self.symbols.processes[owner as usize];
        match (scope.locals.get(&name), &index) {
            (Some(Entity::Constant(value)), None) => Value::constant(*value),
            (Some(Entity::Variable(variable)), _) => self.read(variable, index, name, span),
            (Some(_), _) => self.error(format!("`{}` is not an array", self.text(name)), span),
            (None, _) => {
                let message = format!("process `{}` has no variable `{}`", self.text(process), self.text(name));
                let hint = self.suggestion(name, scope.locals.keys().copied());
                self.diagnostics.push(Diagnostic::error(message, span).label(hint));
                Value::constant(0)
            }
        }
    }

    /// The process of that name, if this expression may look at it.
    fn observed(&mut self, process: Name, span: Span) -> Option<u32> {
        match self.symbols.process(process) {
            Some(index) if self.symbols.left_out == Some(index) && self.scope != Scope::Process(index) => {
                self.error(format!("`{}` is the property process and no part of the system", self.text(process)), span);
                None
            }
            Some(index) => Some(index),
            None => {
                let processes = self.symbols.processes.iter().map(|scope| scope.name);
                let hint = self.suggestion(process, processes);
                let message = format!("there is no process `{}`", self.text(process));
                self.diagnostics.push(Diagnostic::error(message, span).label(hint));
                None
            }
        }
    }

    fn not_a_variable(&mut self, name: Name, span: Span) -> Value {
        let text = self.text(name);
        match self.symbols.lookup(name, self.scope.process()) {
            Some(Entity::Channel(_)) => self.error(format!("`{text}` is a channel, not a variable"), span),
            Some(Entity::Process(_)) => self.error(format!("`{text}` is a process, not a variable"), span),
            _ => {
                if self.unknown.insert(name) {
                    let locals = self.scope.process().map(|process| &self.symbols.processes[process as usize].locals);
                    let known =
                        locals.into_iter().chain([&self.symbols.globals]).flat_map(|scope| scope.keys().copied());
                    let hint = self.suggestion(name, known);
                    self.diagnostics.push(Diagnostic::error(format!("unknown variable `{text}`"), span).label(hint));
                }
                Value::constant(0)
            }
        }
    }

    /// Searching for similar names is slow, so only the first errors get it.
    fn suggestion(&self, name: Name, candidates: impl Iterator<Item = Name>) -> String {
        if self.diagnostics.error_count() >= crate::diagnostic::SHOWN {
            return String::new();
        }
        self.symbols.similar(name, candidates).map_or(String::new(), |text| format!("did you mean `{text}`?"))
    }

    fn error(&mut self, message: impl Into<String>, span: Span) -> Value {
        self.diagnostics.push(Diagnostic::error(message, span));
        Value::constant(0)
    }
}
