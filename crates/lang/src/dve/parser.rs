//! Tokens → [`Model`], by recursive descent.
//!
//! After an error the parser goes on at the next `;`, `}` or section keyword, so that one run reports
//! several errors. `parser/expression.rs` reads expressions.

mod expression;

use super::ast::{
    Channel, Declaration, ExprId, Ident, Initialiser, Model, Process, Synchronisation, SystemLine, Transition, VarType,
    Variable,
};
use super::lexer::{Lexeme, Token, tokens};
use crate::diagnostic::{Diagnostic, Diagnostics, Span};

/// The error has been reported already.
#[derive(Debug)]
pub struct Failed;

type Parsed<T> = Result<T, Failed>;

/// Parses a model. Without errors in `diagnostics`, it is complete and well-formed.
pub fn parse(text: &str, diagnostics: &mut Diagnostics) -> Model {
    let mut parser = Parser::new(text, Model::default(), diagnostics);
    parser.model();
    parser.model
}

/// Parses an expression and nothing else, adding to the names and expressions of `model`.
pub fn parse_expression(text: &str, model: Model, diagnostics: &mut Diagnostics) -> (Model, Option<ExprId>) {
    let mut parser = Parser::new(text, model, diagnostics);
    let expr = parser.expression().and_then(|expr| parser.expect(Token::End).map(|_| expr));
    (parser.model, expr.ok())
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Lexeme>,
    at: usize,
    model: Model,
    diagnostics: &'a mut Diagnostics,
    /// Open parentheses and brackets around the current token.
    nesting: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, model: Model, diagnostics: &'a mut Diagnostics) -> Parser<'a> {
        let tokens = tokens(text, diagnostics);
        Parser { text, tokens, at: 0, model, diagnostics, nesting: 0 }
    }

    fn peek(&self) -> Token {
        self.tokens[self.at].token
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// Where the last token taken stands.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn bump(&mut self) -> Lexeme {
        let lexeme = self.tokens[self.at];
        if lexeme.token != Token::End {
            self.at += 1;
        }
        lexeme
    }

    fn take(&mut self, token: Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, token: Token) -> Parsed<Span> {
        if self.peek() == token { Ok(self.bump().span) } else { self.unexpected(token.describe()) }
    }

    fn ident(&mut self, what: &str) -> Parsed<Ident> {
        if self.peek() != Token::Name {
            return self.unexpected(what);
        }
        let span = self.bump().span;
        Ok(Ident { name: self.model.names.intern(&self.text[span.start as usize..span.end as usize]), span })
    }

    fn idents(&mut self, what: &str, out: &mut Vec<Ident>) -> Parsed<()> {
        out.push(self.ident(what)?);
        while self.take(Token::Comma) {
            out.push(self.ident(what)?);
        }
        self.expect(Token::Semicolon).map(|_| ())
    }

    /// A number, at most `i64::MAX`.
    fn number(&mut self) -> Parsed<(i64, Span)> {
        let span = self.expect(Token::Number)?;
        Ok((self.text[span.start as usize..span.end as usize].parse().unwrap_or(i64::MAX), span))
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let Lexeme { token, span } = self.tokens[self.at];
        let found = match token {
            Token::Name | Token::Number => format!("`{}`", &self.text[span.start as usize..span.end as usize]),
            other => other.describe().into(),
        };
        let message = format!("expected {expected}, found {found}");
        self.diagnostics.push(Diagnostic::error(message, span).label(format!("expected {expected}")));
        Err(Failed)
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.diagnostics.push(diagnostic);
        Err(Failed)
    }

    /// Skips to one of `stops`, to the end of a statement (which it takes), or to where the model goes on anyway.
    fn recover(&mut self, stops: &[Token]) {
        self.nesting = 0;
        loop {
            match self.peek() {
                Token::Semicolon => {
                    self.bump();
                    return;
                }
                Token::Process | Token::System | Token::End => return,
                token if stops.contains(&token) => return,
                _ => self.bump(),
            };
        }
    }

    fn model(&mut self) {
        while !self.diagnostics.is_full() {
            let before = self.at;
            let result = match self.peek() {
                Token::Const | Token::Byte | Token::Int => self.globals(),
                Token::Channel => self.channels(),
                Token::Process => self.process(),
                Token::System => return self.system_line().unwrap_or(()),
                Token::End => {
                    let message = "the model ends without a `system` line";
                    let diagnostic = Diagnostic::error(message, self.span()).note("write `system async;` at the end");
                    return self.diagnostics.push(diagnostic);
                }
                _ => self.unexpected("a declaration, a process or `system`"),
            };
            if result.is_err() {
                self.recover(&[Token::Channel, Token::Const, Token::Byte, Token::Int]);
                if self.at == before {
                    self.bump();
                }
            }
        }
    }

    fn globals(&mut self) -> Parsed<()> {
        let mut variables = Vec::new();
        let result = self.variables(&mut variables);
        self.model.declarations.extend(variables.into_iter().map(Declaration::Variable));
        result
    }

    fn variables(&mut self, out: &mut Vec<Variable>) -> Parsed<()> {
        let constant = self.take(Token::Const);
        let ty = self.var_type()?;
        loop {
            let ident = self.ident("the name of a variable")?;
            let mut len = None;
            if self.take(Token::OpenBracket) {
                len = Some(self.number()?);
                self.expect(Token::CloseBracket)?;
            }
            let mut init = Initialiser::Zero;
            if self.take(Token::Assign) {
                init = if self.peek() == Token::OpenBrace {
                    Initialiser::List(self.values()?)
                } else {
                    Initialiser::One(self.expression()?)
                };
            }
            out.push(Variable { ident, constant, ty, len, init });
            if !self.take(Token::Comma) {
                return self.expect(Token::Semicolon).map(|_| ());
            }
        }
    }

    fn var_type(&mut self) -> Parsed<VarType> {
        let ty = match self.peek() {
            Token::Byte => VarType::Byte,
            Token::Int => VarType::Int,
            _ => return self.unexpected("`byte` or `int`"),
        };
        self.bump();
        Ok(ty)
    }

    /// `{ e, … }`
    fn values(&mut self) -> Parsed<Vec<ExprId>> {
        self.expect(Token::OpenBrace)?;
        let mut values = vec![self.expression()?];
        while self.take(Token::Comma) {
            values.push(self.expression()?);
        }
        self.expect(Token::CloseBrace)?;
        Ok(values)
    }

    fn channels(&mut self) -> Parsed<()> {
        self.bump();
        let mut types = None;
        if self.take(Token::OpenBrace) {
            let mut list = vec![self.var_type()?];
            while self.take(Token::Comma) {
                list.push(self.var_type()?);
            }
            self.expect(Token::CloseBrace)?;
            types = Some(list);
        }
        loop {
            let ident = self.ident("the name of a channel")?;
            let mut capacity = 0;
            if types.is_some() {
                self.expect(Token::OpenBracket)?;
                capacity = self.number()?.0;
                self.expect(Token::CloseBracket)?;
            }
            self.model.declarations.push(Declaration::Channel(Channel { ident, types: types.clone(), capacity }));
            if !self.take(Token::Comma) {
                return self.expect(Token::Semicolon).map(|_| ());
            }
        }
    }

    fn process(&mut self) -> Parsed<()> {
        self.bump();
        let ident = self.ident("the name of a process")?;
        self.expect(Token::OpenBrace)?;
        let mut process = Process {
            ident,
            variables: Vec::new(),
            states: Vec::new(),
            init: None,
            committed: Vec::new(),
            accepting: Vec::new(),
            asserts: Vec::new(),
            transitions: Vec::new(),
        };
        while !self.take(Token::CloseBrace) {
            if matches!(self.peek(), Token::Process | Token::System | Token::End) || self.diagnostics.is_full() {
                let diagnostic = Diagnostic::error("this process has no closing `}`", ident.span);
                self.diagnostics.push(diagnostic);
                break;
            }
            let before = self.at;
            if self.section(&mut process).is_err() {
                use Token::*;
                self.recover(&[CloseBrace, State, Init, Accept, Commit, Assert, Trans, Const, Byte, Int]);
                if self.at == before {
                    self.bump();
                }
            }
        }
        self.model.processes.push(process);
        Ok(())
    }

    fn section(&mut self, process: &mut Process) -> Parsed<()> {
        match self.peek() {
            Token::Const | Token::Byte | Token::Int => self.variables(&mut process.variables),
            Token::State => {
                self.bump();
                self.idents("the name of a state", &mut process.states)
            }
            Token::Init => {
                let span = self.bump().span;
                let state = self.ident("the name of a state")?;
                if process.init.replace(state).is_some() {
                    self.diagnostics.push(Diagnostic::error("a process has one initial state", span.to(state.span)));
                }
                self.expect(Token::Semicolon).map(|_| ())
            }
            Token::Commit => {
                self.bump();
                self.idents("the name of a state", &mut process.committed)
            }
            Token::Accept => self.acceptance(process),
            Token::Assert => self.asserts(process),
            Token::Trans => self.transitions(process),
            _ => self.unexpected("`state`, `init`, `commit`, `accept`, `assert`, `trans` or `}`"),
        }
    }

    fn acceptance(&mut self, process: &mut Process) -> Parsed<()> {
        self.bump();
        if !self.take(Token::SetAcceptance) {
            self.take(Token::Buchi);
            return self.idents("the name of a state", &mut process.accepting);
        }
        // Sets of sets of states, for properties over infinite runs: nothing depends on them.
        let mut open = 0u32;
        loop {
            match self.peek() {
                Token::Open => open += 1,
                Token::Close => open = open.saturating_sub(1),
                Token::Semicolon if open == 0 => break,
                Token::Name | Token::Comma | Token::Semicolon => {}
                _ => return self.unexpected("a list of sets of states"),
            }
            self.bump();
        }
        self.expect(Token::Semicolon).map(|_| ())
    }

    fn asserts(&mut self, process: &mut Process) -> Parsed<()> {
        self.bump();
        loop {
            let state = self.ident("the name of a state")?;
            self.expect(Token::Colon)?;
            process.asserts.push((state, self.expression()?));
            if !self.take(Token::Comma) {
                return self.expect(Token::Semicolon).map(|_| ());
            }
        }
    }

    fn transitions(&mut self, process: &mut Process) -> Parsed<()> {
        self.bump();
        loop {
            if self.diagnostics.is_full() {
                return Err(Failed);
            }
            match self.transition() {
                Ok(transition) => process.transitions.push(transition),
                Err(Failed) => self.skip_transition(),
            }
            match self.peek() {
                Token::Comma => {
                    self.bump();
                }
                // A forgotten comma.
                Token::Name | Token::Arrow => self.unexpected("`,` or `;` after the transition").unwrap_or(()),
                _ => return self.expect(Token::Semicolon).map(|_| ()),
            }
        }
    }

    /// Skips to behind the `}` that ends a broken transition.
    fn skip_transition(&mut self) {
        self.nesting = 0;
        loop {
            match self.peek() {
                Token::CloseBrace => {
                    self.bump();
                    return;
                }
                Token::Process | Token::System | Token::Trans | Token::State | Token::End => return,
                _ => self.bump(),
            };
        }
    }

    fn transition(&mut self) -> Parsed<Transition> {
        let start = self.span();
        let from = if self.peek() == Token::Arrow { None } else { Some(self.ident("a transition")?) };
        self.expect(Token::Arrow)?;
        let to = self.ident("the name of a state")?;
        self.expect(Token::OpenBrace)?;
        let mut transition = Transition { from, to, span: start, guard: None, sync: None, effects: Vec::new() };
        let mut latest = Token::OpenBrace;
        while !self.take(Token::CloseBrace) {
            let Lexeme { token, span } = self.tokens[self.at];
            let order =
                |token| [Token::OpenBrace, Token::Guard, Token::Sync, Token::Effect].iter().position(|&t| t == token);
            match order(token) {
                None | Some(0) => return self.unexpected("`guard`, `sync`, `effect` or `}`"),
                Some(place) if Some(place) <= order(latest) => {
                    let message = "`guard`, `sync` and `effect` come in this order, each at most once";
                    self.diagnostics.push(Diagnostic::error(message, span));
                }
                Some(_) => latest = token,
            }
            if self.part(&mut transition).is_err() {
                self.recover(&[Token::CloseBrace]);
                if matches!(self.peek(), Token::Process | Token::System | Token::End) {
                    return Err(Failed);
                }
            }
        }
        transition.span = start.to(self.last_span());
        Ok(transition)
    }

    /// One of the three parts of a transition.
    fn part(&mut self, transition: &mut Transition) -> Parsed<()> {
        let Lexeme { token, span } = self.bump();
        match token {
            Token::Guard => transition.guard = Some(self.expression()?),
            Token::Sync => transition.sync = Some(self.synchronisation(span)?),
            _ => loop {
                let target = self.target()?;
                self.expect(Token::Assign)?;
                transition.effects.push((target, self.expression()?));
                if !self.take(Token::Comma) {
                    break;
                }
            },
        }
        self.expect(Token::Semicolon).map(|_| ())
    }

    fn synchronisation(&mut self, start: Span) -> Parsed<Synchronisation> {
        let channel = self.ident("the name of a channel")?;
        let sends = match self.peek() {
            Token::Send => true,
            Token::Receive => false,
            _ => return self.unexpected("`!` or `?`"),
        };
        self.bump();
        let values = match self.peek() {
            Token::Semicolon => Vec::new(),
            Token::OpenBrace => self.values()?,
            _ => vec![self.expression()?],
        };
        Ok(Synchronisation { channel, sends, values, span: start.to(self.last_span()) })
    }

    fn system_line(&mut self) -> Parsed<()> {
        self.bump();
        let synchronous = match self.peek() {
            Token::Async => false,
            Token::Sync => true,
            _ => return self.unexpected("`async` or `sync`"),
        };
        self.bump();
        let property = if self.take(Token::Property) { Some(self.ident("the name of a process")?) } else { None };
        self.expect(Token::Semicolon)?;
        self.model.system = Some(SystemLine { synchronous, property });
        self.expect(Token::End).map(|_| ())
    }
}

#[cfg(test)]
mod tests;
