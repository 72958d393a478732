//! Checks a model and translates it in one walk over the tree. The body of a small procedure is translated once for
//! each call, with its parameters bound to places and values of the caller; larger ones stay procedures.
//!
//! * Expressions become expressions where possible. What can go wrong in one (undefined values, ranges of
//!   indices) and calls become statements that run before it, in the order and under the conditions that
//!   the language demands; for a guard they form the prelude of the command.
//! * `value` has the arithmetic, `code` the statements under construction, `scope` the names, `declare` types
//!   and constants, `place` designators, `store` assignment and comparison, `expr`, `logic` and `quant`
//!   expressions, `stmt` statements, `call` and `variant` procedures, `multiset` multisets, `rule` rules and properties.

mod call;
mod code;
mod declare;
mod expr;
mod logic;
mod multiset;
mod place;
mod quant;
mod rule;
mod scope;
mod stmt;
mod store;
mod value;
mod variant;

use super::ast::{Expr, Item, Program};
use super::definite::Defined;
use super::types::{TypeId, Types};
use super::{Dialect, Options};
use crate::diagnostic::{Diagnostic, Diagnostics, Span};
use code::Code;
use plimsoll_ir::procedures::{Summary, drop_unused};
use plimsoll_ir::{Deadlock, ProcedureId, Property, PropertyKind, System};
use rule::Claim;
use scope::Scopes;
use std::collections::HashMap;

/// An error that has been reported.
#[derive(Clone, Copy, Debug)]
pub struct Failed;

pub type Lowered<T> = Result<T, Failed>;

/// Statements that all commands together may make before the model is refused.
const MOST_STATEMENTS: usize = 20_000_000;

pub struct Lowerer<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    options: &'a Options,
    diagnostics: &'a mut Diagnostics,
    /// Errors in bodies that are expanded again have been reported before.
    quiet: bool,
    system: System,
    types: Types,
    scopes: Scopes<'a>,
    /// The types of the variables of the state.
    var_types: Vec<TypeId>,
    procs: Vec<call::Procedure<'a>>,
    /// The procedures being expanded.
    expanding: Vec<usize>,
    /// Those being made into procedures, with how they are called.
    making: Vec<(usize, Vec<variant::Pass>)>,
    /// Procedures that stay such, by how they are called.
    variants: HashMap<variant::Key, variant::Variant>,
    /// What the procedures of the system do.
    summaries: Vec<Summary>,
    /// Procedures that put the multisets of a variable into order.
    orders: HashMap<u32, ProcedureId>,
    /// Calls are always expanded: what is being made is no part of the system.
    apart: bool,
    /// Only checking: calls are not expanded.
    checking: bool,
    code: Code,
    made: usize,
    assumes: Vec<Claim<'a>>,
    /// May values of scalarsets be named, as traces name them? Was one?
    as_shown: bool,
    element_named: bool,
    covers: Vec<Property>,
    /// Is a start state being translated? It runs once, so loops are unrolled more eagerly.
    starting: bool,
    constants_used: Vec<bool>,
    /// Variables that rules need not check.
    defined: Defined,
}

/// A model as translated.
pub struct Translated {
    pub system: System,
    pub types: Types,
    /// The types of the variables.
    pub vars: Vec<TypeId>,
    /// Conditions to be covered.
    pub covers: Vec<Property>,
    /// What is never undefined.
    pub defined: Defined,
}

/// Translates a model. Errors are in `diagnostics`.
pub fn program(
    text: &str,
    name: &str,
    program: &Program,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Lowered<Translated> {
    // The first translation checks every read; what it finds to be always defined the second need not check.
    let checked = {
        let mut lowerer = Lowerer::new(text, name, options, diagnostics);
        lowerer.items(program)?;
        lowerer.system
    };
    let mut silent = Diagnostics::default();
    let mut lowerer = Lowerer::new(text, name, options, &mut silent);
    lowerer.defined = Defined::of(&checked);
    lowerer.items(program)?;
    drop_unused(&mut lowerer.system);
    let Lowerer { system, types, var_types: vars, covers, defined, .. } = lowerer;
    Ok(Translated { system, types, vars, covers, defined })
}

/// Translates an expression over the names of a model into a property, or into a value if it is no property of any kind; also
/// tells whether it names a value of a scalarset.
pub fn property(
    text: &str,
    program: &Program,
    expr: &Expr,
    expr_text: &str,
    kind: Option<PropertyKind>,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Lowered<(Property, bool)> {
    let mut ignored = Diagnostics::default();
    let mut lowerer = Lowerer::new(text, "", options, &mut ignored);
    lowerer.apart = true;
    for item in &program.items {
        match item {
            Item::Decl(decl) => lowerer.declare(decl, true)?,
            Item::Proc(proc) => lowerer.procedure(proc)?,
            Item::Rule(_) => {}
        }
    }
    lowerer.diagnostics = diagnostics;
    lowerer.as_shown = true;
    lowerer.set_text(expr_text);
    let name = expr_text.trim().to_string();
    let property = match kind {
        Some(kind) => lowerer.property_of(expr, kind, name)?,
        None => lowerer.value_of(expr, name)?,
    };
    Ok((property, lowerer.element_named))
}

impl<'a> Lowerer<'a> {
    fn new(text: &'a str, name: &str, options: &'a Options, diagnostics: &'a mut Diagnostics) -> Lowerer<'a> {
        let mut system = System::new(name);
        system.deadlock = Deadlock::Stuttering;
        let types = Types::new(&mut system);
        let mut lowerer = Lowerer {
            text,
            line_starts: Vec::new(),
            options,
            diagnostics,
            quiet: false,
            system,
            types,
            scopes: Scopes::new(),
            var_types: Vec::new(),
            procs: Vec::new(),
            expanding: Vec::new(),
            making: Vec::new(),
            variants: HashMap::new(),
            summaries: Vec::new(),
            orders: HashMap::new(),
            apart: false,
            checking: false,
            code: Code::new(),
            made: 0,
            assumes: Vec::new(),
            as_shown: false,
            element_named: false,
            covers: Vec::new(),
            starting: false,
            constants_used: vec![false; options.constants.len()],
            defined: Defined::default(),
        };
        lowerer.set_text(text);
        lowerer
    }

    fn set_text(&mut self, text: &'a str) {
        self.text = text;
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        self.line_starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
    }

    fn items(&mut self, program: &'a Program) -> Lowered<()> {
        let mut failed = false;
        self.find_assumes(program);
        for item in &program.items {
            failed |= match item {
                Item::Decl(decl) => self.declare(decl, true).is_err(),
                Item::Proc(proc) => self.procedure(proc).is_err(),
                Item::Rule(rule) => self.rule(rule).is_err(),
            };
        }
        for (used, (name, _)) in self.constants_used.clone().into_iter().zip(&self.options.constants) {
            if !used {
                let message = format!("there is no constant `{name}` to set");
                self.diagnostics.push(Diagnostic::general(message));
                failed = true;
            }
        }
        if self.system.starts.is_empty() && !failed {
            self.diagnostics.push(Diagnostic::general("the model has no start state"));
            failed = true;
        }
        if failed { Err(Failed) } else { Ok(()) }
    }

    fn fail(&mut self, message: impl Into<String>, span: Span) -> Failed {
        if !self.quiet {
            self.diagnostics.push(Diagnostic::error(message, span));
        }
        Failed
    }

    fn fail_with_note(&mut self, message: impl Into<String>, span: Span, note: impl Into<String>) -> Failed {
        if !self.quiet {
            self.diagnostics.push(Diagnostic::error(message, span).note(note));
        }
        Failed
    }

    fn warn(&mut self, message: impl Into<String>, span: Span) {
        if !self.quiet {
            self.diagnostics.push(Diagnostic::warning(message, span));
        }
    }

    fn is_rumur(&self) -> bool {
        self.options.dialect == Dialect::Rumur
    }

    fn line(&self, span: Span) -> u32 {
        self.line_starts.partition_point(|&start| start <= span.start as usize) as u32
    }

    /// The source text of a span on one line, for messages about a run.
    fn snippet(&self, span: Span) -> String {
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or("");
        let words: Vec<&str> = text.split_whitespace().collect();
        let joined = words.join(" ");
        match joined.char_indices().nth(60) {
            Some((cut, _)) => format!("{}...", &joined[..cut]),
            None => joined,
        }
    }

    /// Runs `make` with an empty list of statements and returns what it made.
    fn captured<T>(&mut self, make: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<(Vec<plimsoll_ir::Stmt>, T)> {
        let outer = std::mem::take(&mut self.code.out);
        let result = make(self);
        let inner = std::mem::replace(&mut self.code.out, outer);
        Ok((inner, result?))
    }

    /// Like [`Self::captured`], for code that may not run: what it finds out is forgotten afterwards.
    fn branch<T>(&mut self, make: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<(Vec<plimsoll_ir::Stmt>, T)> {
        self.code.push_layer(false);
        let result = self.captured(make);
        self.code.pop_layer();
        result
    }
}
