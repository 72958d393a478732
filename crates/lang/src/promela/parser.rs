//! Tokens → [`Program`]: recursive descent that resolves names on the way.
//!
//! What this file holds: the token stream with the rule that a newline may stand for a semicolon, errors and
//! recovery, and the units of a model. A syntax error is reported, the parser goes on at the next statement
//! or unit; a wrong name is reported and parsing goes on at once with a stand-in. Nesting is bounded, so no
//! input overflows the stack.

pub use declare::flatten;

mod declare;
mod expression;
mod inline;
mod message;
mod names;
mod statement;
mod unit;

use super::ast::{Expr, Label, Program, Root, Scope, Stmt, Variable};
use super::cpp::Preprocessed;
use super::lexer::{Site, Token, TokenKind};
use crate::diagnostic::{Diagnostic, Diagnostics};
use inline::Inlines;
use names::{Meaning, Names};
use std::collections::VecDeque;
use std::sync::Arc;

/// Deepest nesting of expressions and of statements.
const DEEPEST: usize = 150;

/// A syntax error that was already reported; unwinds to where parsing can go on.
#[derive(Debug)]
struct Bad;

type Parse<T> = Result<T, Bad>;

/// Parses a whole model. If errors were reported, the program is incomplete.
pub fn parse(input: Preprocessed, diagnostics: &mut Diagnostics) -> Program {
    let mut parser = Parser::new(input, Program::default(), diagnostics);
    parser.units();
    parser.finish();
    parser.program.files = std::mem::take(&mut parser.files);
    parser.program
}

/// Parses an expression over the global names of a program; what is wrong with it is reported.
pub fn parse_expression(input: Preprocessed, program: &Program, diagnostics: &mut Diagnostics) -> Option<Expr> {
    let mut parser = Parser::new(input, program.clone(), diagnostics);
    parser.declare_globals();
    parser.as_shown = true;
    let value = parser.expression().ok()?;
    if !parser.at_end() {
        parser.unexpected("the end of the expression");
        return None;
    }
    Some(value)
}

impl<'a> Parser<'a> {
    fn new(input: Preprocessed, program: Program, diagnostics: &'a mut Diagnostics) -> Parser<'a> {
        let end = input.tokens.last().map_or(Site::default(), |token| token.site);
        Parser {
            input: input.tokens.into(),
            files: input.files,
            previous: Token::made("", Site::default()),
            end: Token { newline: true, ..Token::made("", end) },
            diagnostics,
            program,
            names: Names::default(),
            inlines: Inlines::default(),
            locals: Vec::new(),
            open: Vec::new(),
            log: Vec::new(),
            parens: 0,
            depth: 0,
            in_body: false,
            initialises: false,
            loops: 0,
            as_shown: false,
        }
    }

    /// Makes the names of a program known again.
    fn declare_globals(&mut self) {
        let globals = self.program.globals.iter().enumerate();
        let mut all: Vec<(Arc<str>, Meaning)> = globals
            .map(|(number, global)| (global.name.as_str().into(), Meaning::Variable(Root::Global(number))))
            .collect();
        let proctypes = self.program.proctypes.iter().enumerate();
        all.extend(proctypes.map(|(number, proctype)| (proctype.name.as_str().into(), Meaning::Proctype(number))));
        for (_, names) in &self.program.mtypes {
            all.extend((1..).zip(names).map(|(value, name)| (name.as_str().into(), Meaning::Constant(value))));
        }
        for (name, meaning) in all {
            let _ = self.names.declare_global(name, meaning);
        }
    }
}

struct Parser<'a> {
    input: VecDeque<Token>,
    files: Vec<String>,
    previous: Token,
    /// Stands for what lies behind the last token.
    end: Token,
    diagnostics: &'a mut Diagnostics,
    program: Program,
    names: Names,
    inlines: Inlines,
    /// Locals of the proctype that is being parsed.
    locals: Vec<Variable>,
    /// Sequences that are being parsed, innermost last.
    open: Vec<Vec<Stmt>>,
    /// Tokens taken since the current statement began, for its text.
    log: Vec<(Arc<str>, bool)>,
    /// Open parentheses; within them a newline is never a semicolon.
    parens: usize,
    depth: usize,
    in_body: bool,
    /// Do declarations still belong to the creation of the process?
    initialises: bool,
    /// Loops around the current statement.
    loops: usize,
    /// May names be written as traces show them: `P(1).x`, `:init:(0).x`?
    as_shown: bool,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        self.input.get(ahead).unwrap_or(&self.end)
    }

    fn at_end(&self) -> bool {
        self.input.is_empty()
    }

    fn at(&self, text: &str) -> bool {
        self.peek().is(text)
    }

    fn at_word(&self) -> bool {
        self.peek().kind == TokenKind::Word
    }

    fn advance(&mut self) -> Token {
        let token = self.input.pop_front().unwrap_or_else(|| self.end.clone());
        match &*token.text {
            "(" => self.parens += 1,
            ")" => self.parens = self.parens.saturating_sub(1),
            _ => {}
        }
        self.log.push((token.text.clone(), token.space));
        self.previous = token.clone();
        token
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.at(text) && !self.at_end();
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Parse<Token> {
        if self.at(text) && !self.at_end() { Ok(self.advance()) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    /// Takes a name that is no keyword.
    fn expect_name(&mut self, what: &str) -> Parse<Token> {
        if self.at_word() && !names::is_keyword(&self.peek().text) {
            Ok(self.advance())
        } else {
            Err(self.unexpected(what))
        }
    }

    /// Does the expression go on with the next token, although that might begin a statement of its own?
    fn continues(&self) -> bool {
        !(self.peek().newline && self.in_body && self.parens == 0)
    }

    fn unexpected(&mut self, wanted: &str) -> Bad {
        let token = self.peek().clone();
        let found = if self.at_end() { "the end of the text".to_string() } else { format!("`{}`", token.text) };
        self.error(format!("expected {wanted}, found {found}"), token.site);
        Bad
    }

    fn error(&mut self, message: impl Into<String>, site: Site) {
        self.push(Diagnostic::error(message, site.span), site);
    }

    fn warning(&mut self, message: impl Into<String>, site: Site) {
        self.push(Diagnostic::warning(message, site.span), site);
    }

    fn push(&mut self, mut diagnostic: Diagnostic, site: Site) {
        if site.file > 0 {
            diagnostic = diagnostic.note(format!("in {}, line {}", self.files[site.file as usize], site.line));
        }
        self.diagnostics.push(diagnostic);
    }

    /// Runs `parse` one level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= DEEPEST {
            let site = self.peek().site;
            self.error(format!("nested more than {DEEPEST} deep"), site);
            return Err(Bad);
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn scope(&self) -> Scope {
        self.names.path().into()
    }

    fn label(&self, name: &Token) -> Label {
        Label { name: name.text.clone(), scope: self.scope(), site: name.site }
    }

    /// The text taken since `start`, as it was written.
    fn text_since(&self, start: usize) -> String {
        let mut text = String::new();
        for (index, (part, space)) in self.log[start.min(self.log.len())..].iter().enumerate() {
            if index > 0 && *space {
                text.push(' ');
            }
            text.push_str(part);
        }
        text
    }

    /// Skips to what may end a statement, over nested blocks.
    fn recover(&mut self) {
        let mut nested = 0usize;
        while !self.at_end() {
            match &*self.peek().text {
                ";" | "->" | "::" | "od" | "fi" if nested == 0 => break,
                "}" if nested == 0 => break,
                "{" | "do" | "if" => nested += 1,
                "}" | "od" | "fi" => nested -= 1,
                "proctype" | "init" | "never" | "active" if nested == 0 => break,
                _ => {}
            }
            self.advance();
        }
        self.parens = 0;
    }
}
