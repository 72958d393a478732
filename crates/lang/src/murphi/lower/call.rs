//! Functions and procedures, the small ones expanded at every call.
//!
//! A `var` parameter is a name for the caller's place. Other parameters are too in CMurphi (which passes
//! references), while Rumur copies simple ones. A body that returns early is a block to break out of.
//! Recursion has a limited depth, beyond which a run that gets there is a fault.

use super::code::Frame;
use super::scope::Entry;
use super::value::{Operand, Spot, Value};
use super::{Lowered, Lowerer};
use crate::Span;
use crate::murphi::ast::{Decl, Expr, Formal, Name, Proc, Stmt, StmtKind};
use crate::murphi::types::TypeId;
use plimsoll_ir::Stmt as IrStmt;

/// How often a procedure may be expanded inside itself, or be called inside itself in yet another way.
const RECURSION_LIMIT: usize = 8;
/// From so many statements on, even a start state calls procedures.
const MANY_STATEMENTS: usize = 100_000;
/// Statements one command may need.
const MOST_STATEMENTS: usize = 2_000_000;
/// Procedures of up to so many statements and expression nodes are expanded.
const EXPANDED: usize = 200;

#[derive(Clone, Debug)]
pub(super) struct Procedure<'a> {
    pub proc: &'a Proc,
    pub formals: Vec<TypeId>,
    pub result: Option<TypeId>,
    /// Does it call itself?
    recursive: bool,
}

impl<'a> Lowerer<'a> {
    /// Declares a procedure and checks its body.
    pub(super) fn procedure(&mut self, proc: &'a Proc) -> Lowered<()> {
        let mut formals = Vec::new();
        for formal in &proc.formals {
            formals.push(self.type_of(&formal.ty, None)?);
        }
        let result = proc.result.as_ref().map(|ty| self.type_of(ty, None)).transpose()?;
        let number = self.procs.len();
        self.procs.push(Procedure { proc, formals: formals.clone(), result, recursive: false });
        self.bind(&proc.name, Entry::Procedure(number))?;
        self.code = super::code::Code::new();
        self.checking = true;
        let parameters = proc.formals.iter().zip(formals).map(|(formal, ty)| {
            let temp = self.code.temp(&formal.name.text, self.types.stored(ty));
            let spot = Spot::temp(temp.into(), ty, false);
            Entry::Spot(Spot { writable: formal.by_reference, ..spot })
        });
        let parameters = parameters.collect();
        let checked = self.expand(number, parameters);
        self.checking = false;
        self.code = super::code::Code::new();
        checked.map(|_| ())
    }

    /// A call in an expression.
    pub(super) fn function(&mut self, name: &'a Name, arguments: &'a [Expr]) -> Lowered<Operand> {
        match self.call(name, arguments)? {
            Some(result) => Ok(Operand::Spot(Spot { silent: false, ..result })),
            None => Err(self.fail(format!("`{}` is a procedure: it has no value", name.text), name.span)),
        }
    }

    /// Expands a call and returns the place of its result, if it has one.
    pub(super) fn call(&mut self, name: &'a Name, arguments: &'a [Expr]) -> Lowered<Option<Spot>> {
        let number = match self.scopes.find(&name.text) {
            Some(Entry::Procedure(number)) => *number,
            Some(_) => return Err(self.fail(format!("`{}` is not a procedure", name.text), name.span)),
            None => return Err(self.unknown(&name.text, name.span)),
        };
        let Procedure { proc, formals, .. } = self.procs[number].clone();
        if formals.len() != arguments.len() {
            let message = format!("`{}` has {} parameters, not {}", name.text, formals.len(), arguments.len());
            return Err(self.fail(message, name.span));
        }
        self.code.calls += 1;
        let mut parameters = Vec::new();
        for ((formal, &ty), argument) in proc.formals.iter().zip(&formals).zip(arguments) {
            parameters.push(self.parameter(formal, ty, argument)?);
        }
        if self.checking {
            self.procs[number].recursive |= self.expanding.contains(&number);
            return Ok(self.dummy_result(number));
        }
        let recursive = self.procs[number].recursive;
        // A union that was given for one of its members keeps its type, which a translation for all calls cannot know.
        let foreign = |(entry, &ty): (&Entry, &TypeId)| match entry {
            Entry::Spot(spot) => self.types.is_member(ty, spot.ty),
            Entry::Value(value) => self.types.is_member(ty, value.ty),
            _ => false,
        };
        let apart = self.apart || parameters.iter().zip(&formals).any(foreign);
        let passes = if apart { None } else { self.passes(&proc.formals, &parameters) };
        if let (true, Some(passes)) = (recursive, &passes)
            && self.making.last().is_some_and(|(other, own)| (*other, own) == (number, passes))
        {
            return self.call_itself(number, passes, parameters, name.span);
        }
        let limit = RECURSION_LIMIT;
        if self.expanding.iter().filter(|&&other| other == number).count() >= limit {
            let message = format!(
                "line {}: `{}` calls itself more than {limit} deep, which is the limit here",
                self.line(name.span),
                name.text,
            );
            self.code.emit(IrStmt::Fault(message));
            return Ok(self.dummy_result(number));
        }
        // A start state runs once, and more is known about its variables where everything is in one place.
        let expanded = self.starting && !recursive && self.code.made < MANY_STATEMENTS;
        if let (false, Some(passes)) = (expanded, passes) {
            let (variant, passes) = self.variant(number, passes)?;
            if recursive || variant.size > self.options.expanded.unwrap_or(EXPANDED) {
                return self.call_variant(number, &variant, &passes, parameters, name.span);
            }
        }
        self.within_limits(name.span)?;
        self.expand(number, parameters)
    }

    /// Fails once a command has become too large.
    fn within_limits(&mut self, span: Span) -> Lowered<()> {
        if self.code.made <= MOST_STATEMENTS && self.code.temps.len() < 1 << 15 {
            return Ok(());
        }
        self.quiet = false;
        Err(self.fail("this makes too large a rule when its calls are expanded", span))
    }

    fn dummy_result(&mut self, number: usize) -> Option<Spot> {
        let ty = self.procs[number].result?;
        let temp = self.code.temp("result", self.types.stored(ty));
        Some(Spot::temp(temp.into(), ty, false))
    }

    fn parameter(&mut self, formal: &Formal, ty: TypeId, argument: &'a Expr) -> Lowered<Entry> {
        if formal.by_reference {
            let spot = self.target(argument)?;
            if !self.types.alike(spot.ty, ty) {
                return Err(self.mismatch(spot.ty, ty, argument.span));
            }
            let place = self.code.freeze(&spot.place);
            return Ok(Entry::Spot(Spot { place, ty, silent: true, ..spot }));
        }
        match self.operand(argument)? {
            Operand::Spot(spot) if !self.types.is_simple(ty) || !self.types.is_simple(spot.ty) => {
                if !self.types.alike(spot.ty, ty) {
                    return Err(self.mismatch(spot.ty, ty, argument.span));
                }
                let place = self.code.freeze(&spot.place);
                Ok(Entry::Spot(Spot { place, ty, writable: false, silent: true, ..spot }))
            }
            Operand::Spot(spot) if self.types.alike(spot.ty, ty) => {
                let place = if self.is_rumur() {
                    let temp = self.code.fixed_temp(&formal.name.text, self.types.stored(ty));
                    self.code.emit(IrStmt::Copy { to: temp.into(), from: spot.place });
                    temp.into()
                } else {
                    self.code.freeze(&spot.place)
                };
                Ok(Entry::Spot(Spot { place, ty, writable: false, silent: true, ..spot }))
            }
            Operand::Undefined => {
                let temp = self.code.temp(&formal.name.text, self.types.stored(ty));
                self.code.emit(IrStmt::Reset(temp.into()));
                Ok(Entry::Spot(Spot::temp(temp.into(), ty, false)))
            }
            Operand::Spot(spot) if !self.is_rumur() && self.types.is_symmetric(spot.ty) => {
                self.converted_parameter(formal, ty, spot, argument.span)
            }
            Operand::Value(value) if !self.is_rumur() && self.types.is_member(ty, value.ty) => {
                Ok(Entry::Value(self.code.save(&value)))
            }
            operand => {
                let value = self.operand_value((operand, argument.span))?;
                self.value_parameter(formal, ty, value, argument.span)
            }
        }
    }

    /// A scalarset or a union given for a parameter of another type. CMurphi hands over a copy, undefined or not, and
    /// of a union even what is no value of the parameter's type. Then the parameter has the type of the union: compared
    /// with values of its own type, what is none of them is equal to none.
    fn converted_parameter(&mut self, formal: &Formal, ty: TypeId, spot: Spot, span: Span) -> Lowered<Entry> {
        let kept = if self.types.is_member(ty, spot.ty) { spot.ty } else { ty };
        if !self.types.is_symmetric(ty) {
            // Where an enum is undefined, every use is an error.
            let value = self.read(&spot, span)?;
            return self.value_parameter(formal, kept, value, span);
        }
        let temp = self.code.fixed_temp(&formal.name.text, self.types.stored(kept));
        let copy = Spot::temp(temp.into(), kept, false);
        self.assign(&copy, Operand::Spot(spot), span)?;
        Ok(Entry::Spot(copy))
    }

    fn value_parameter(&mut self, formal: &Formal, ty: TypeId, value: Value, span: Span) -> Lowered<Entry> {
        let value = self.convert(value, ty, span)?;
        let (low, high) = self.types.bounds(ty);
        let value = self.bounded(value, low, high, span, "the argument")?;
        if self.code.is_fixed(&value.expr) && ty != crate::murphi::types::BOOLEAN {
            return Ok(Entry::Value(Value { ty, ..value }));
        }
        let temp = self.code.fixed_temp(&formal.name.text, self.types.stored(ty));
        let spot = Spot::temp(temp.into(), ty, true);
        self.store(&spot, value, span)?;
        Ok(Entry::Spot(spot))
    }

    /// The body with its parameters bound.
    pub(super) fn expand(&mut self, number: usize, parameters: Vec<Entry>) -> Lowered<Option<Spot>> {
        let Procedure { proc, result, .. } = self.procs[number].clone();
        let result = result.map(|ty| {
            let temp = self.code.fixed_temp("result", self.types.stored(ty));
            Spot::temp(temp.into(), ty, false)
        });
        let outer = self.scopes.isolate();
        self.scopes.push();
        for (formal, entry) in proc.formals.iter().zip(parameters) {
            self.scopes.declare(&formal.name.text, entry);
        }
        let quiet = std::mem::replace(&mut self.quiet, !self.checking);
        self.expanding.push(number);
        let made = self.body(&proc.decls, &proc.body, result.clone());
        self.expanding.pop();
        self.quiet = quiet;
        self.scopes.restore(outer);
        let (mut stmts, returned) = made?;
        if result.is_some() && !ends_with_return(&proc.body) {
            let message = format!("the end of function {} is reached without a result", proc.name.text);
            stmts.push(IrStmt::Fault(message));
        }
        if returned {
            self.code.emit(IrStmt::Block(stmts));
        } else {
            self.code.out.extend(stmts);
        }
        Ok(result)
    }

    /// The statements of a body with its own declarations; does any of them return early?
    pub(super) fn body(
        &mut self,
        decls: &'a [Decl],
        stmts: &'a [Stmt],
        result: Option<Spot>,
    ) -> Lowered<(Vec<IrStmt>, bool)> {
        self.scopes.push();
        self.code.depth += 1;
        let depth = self.code.depth;
        self.code.frames.push(Frame { result, depth, returned: false });
        let made = self.branch(|lowerer| {
            decls.iter().try_for_each(|decl| lowerer.declare(decl, false))?;
            lowerer.stmts(stmts)
        });
        let returned = self.code.frames.pop().is_some_and(|frame| frame.returned);
        self.code.depth -= 1;
        self.scopes.pop();
        Ok((made?.0, returned))
    }
}

fn ends_with_return(stmts: &[Stmt]) -> bool {
    matches!(stmts.last(), Some(Stmt { kind: StmtKind::Return(_), .. }))
}
