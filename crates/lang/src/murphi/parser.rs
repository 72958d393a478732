//! Recursive descent over the tokens. Several errors are found in one go: after a broken statement or
//! declaration the parser looks for the next place where one can start. Nesting is bounded.
//!
//! Separators are taken as the more lenient of the two tools takes them. Words that only one tool reserves
//! (`choose`, `assume`, `cover`, `liveness`, `multiset…`, `ismember`, `undefined`, `real`) count as keywords
//! only where their place says so.

mod expr;
mod rule;
mod stmt;

use super::ast::{Decl, Expr, Formal, Item, Name, Proc, Program, TypeExpr, TypeKind};
use super::lexer::{self, Keyword, Kind, Mark, Token};
use crate::diagnostic::{Diagnostic, Diagnostics, Span};

/// An error that has been reported.
#[derive(Clone, Copy, Debug)]
pub struct Failed;

pub type Parsed<T> = Result<T, Failed>;

/// Deepest nesting of expressions, statements, types and rulesets.
const DEPTH_LIMIT: usize = 150;

pub struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    diagnostics: &'a mut Diagnostics,
    /// Procedures declared so far: a word like `assume` may be one.
    procs: Vec<String>,
}

/// Parses a whole model; errors are in `diagnostics`.
pub fn program(text: &str, diagnostics: &mut Diagnostics) -> Program {
    let mut parser = Parser::new(text, diagnostics);
    let mut program = Program::default();
    while !parser.at_end() && !parser.diagnostics.is_full() {
        parser.items(&mut program.items);
    }
    program
}

/// Parses a text that is one expression.
pub fn expression(text: &str, diagnostics: &mut Diagnostics) -> Parsed<Expr> {
    let mut parser = Parser::new(text, diagnostics);
    let expr = parser.expr()?;
    if parser.at_end() { Ok(expr) } else { Err(parser.unexpected("the end of the expression")) }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, diagnostics: &'a mut Diagnostics) -> Parser<'a> {
        let tokens = lexer::tokens(text, diagnostics);
        Parser { text, tokens, at: 0, depth: 0, diagnostics, procs: Vec::new() }
    }

    fn kind(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    /// The kind of the token `ahead` places further on.
    fn peek(&self, ahead: usize) -> &Kind {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// The span from `start` to the last token that was taken.
    fn since(&self, start: Span) -> Span {
        start.to(self.tokens[self.at.saturating_sub(1)].span)
    }

    fn at_end(&self) -> bool {
        *self.kind() == Kind::End
    }

    fn advance(&mut self) {
        if !self.at_end() {
            self.at += 1;
        }
    }

    fn is_mark(&self, mark: Mark) -> bool {
        *self.kind() == Kind::Mark(mark)
    }

    fn is_keyword(&self, keyword: Keyword) -> bool {
        *self.kind() == Kind::Keyword(keyword)
    }

    /// Is the current token a name that reads `word`, in any case?
    fn is_word(&self, word: &str) -> bool {
        *self.kind() == Kind::Name && self.slice(self.span()).eq_ignore_ascii_case(word)
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn eat_mark(&mut self, mark: Mark) -> bool {
        let found = self.is_mark(mark);
        if found {
            self.advance();
        }
        found
    }

    fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    fn mark(&mut self, mark: Mark, what: &str) -> Parsed<()> {
        if self.eat_mark(mark) { Ok(()) } else { Err(self.unexpected(what)) }
    }

    fn keyword(&mut self, keyword: Keyword) -> Parsed<()> {
        if self.eat_keyword(keyword) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", keyword.text()))) }
    }

    fn name(&mut self, what: &str) -> Parsed<Name> {
        if *self.kind() != Kind::Name {
            return Err(self.unexpected(what));
        }
        let span = self.span();
        self.advance();
        let text = self.slice(span);
        if text.starts_with('_') {
            self.diagnostics.push(Diagnostic::error(format!("the name `{text}` starts with an underscore"), span));
        }
        Ok(Name { text: text.to_string(), span })
    }

    fn names(&mut self) -> Parsed<Vec<Name>> {
        let mut names = vec![self.name("a name")?];
        while self.eat_mark(Mark::Comma) {
            names.push(self.name("a name")?);
        }
        Ok(names)
    }

    fn text(&mut self) -> Option<String> {
        let Kind::Text(text) = self.kind() else { return None };
        let text = text.clone();
        self.advance();
        Some(text)
    }

    /// Ends a construct: `end`, or the word that says what ends.
    fn end(&mut self, words: &[Keyword], opened: Span) -> Parsed<()> {
        if self.eat_keyword(Keyword::End) || words.iter().any(|&word| self.eat_keyword(word)) {
            return Ok(());
        }
        let wanted = words.first().map_or("end", |word| word.text());
        let found = self.found();
        let (line, _) = crate::diagnostic::position(self.text, opened.start as usize);
        let diagnostic = Diagnostic::error(format!("expected `end` or `{wanted}`, found {found}"), self.span());
        self.diagnostics.push(diagnostic.note(format!("it would end what starts in line {line}")));
        Err(Failed)
    }

    fn unexpected(&mut self, wanted: &str) -> Failed {
        let message = format!("expected {wanted}, found {}", self.found());
        let span = self.span();
        self.fail(message, span)
    }

    fn found(&self) -> String {
        match self.kind() {
            Kind::End => "the end of the file".into(),
            Kind::Text(_) => "a text".into(),
            _ => format!("`{}`", self.slice(self.span())),
        }
    }

    fn fail(&mut self, message: impl Into<String>, span: Span) -> Failed {
        self.diagnostics.push(Diagnostic::error(message, span));
        Failed
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_LIMIT {
            let span = self.span();
            self.at = self.tokens.len() - 1;
            return Err(self.fail(format!("nested more than {DEPTH_LIMIT} deep"), span));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn items(&mut self, items: &mut Vec<Item>) {
        while self.eat_mark(Mark::Semicolon) {}
        if self.at_end() {
            return;
        }
        let before = self.at;
        let result = match self.kind() {
            Kind::Keyword(Keyword::Const | Keyword::Type | Keyword::Var) => {
                self.section(&mut |decl| items.push(Item::Decl(decl)))
            }
            Kind::Keyword(Keyword::Procedure | Keyword::Function) => self.proc().map(|proc| {
                items.push(Item::Proc(proc));
            }),
            _ => self.rule().map(|rule| items.push(Item::Rule(rule))),
        };
        if result.is_err() {
            self.recover_item(before);
        }
    }

    /// Skips to the next token that can start an item.
    fn recover_item(&mut self, before: usize) {
        use Keyword::*;
        self.depth = 0;
        if self.at == before {
            self.advance();
        }
        while !self.at_end() {
            let starts = matches!(
                self.kind(),
                Kind::Keyword(Const | Type | Var | Procedure | Function | Rule | Ruleset | Startstate | Invariant)
            );
            if starts {
                return;
            }
            self.advance();
        }
    }

    /// `const …`, `type …` or `var …` with all its declarations.
    fn section(&mut self, push: &mut dyn FnMut(Decl)) -> Parsed<()> {
        let Kind::Keyword(section) = *self.kind() else { return Err(self.unexpected("a declaration")) };
        self.advance();
        while *self.kind() == Kind::Name && !self.starts_soft_item() {
            let names = self.names()?;
            self.mark(Mark::Colon, "`:`")?;
            match section {
                Keyword::Var => push(Decl::Var(names, self.type_expr()?)),
                Keyword::Const => {
                    let value = self.expr()?;
                    names.into_iter().for_each(|name| push(Decl::Const(name, value.clone())));
                }
                _ => {
                    let ty = self.type_expr()?;
                    names.into_iter().for_each(|name| push(Decl::Type(name, ty.clone())));
                }
            }
            while self.eat_mark(Mark::Semicolon) {}
        }
        Ok(())
    }

    fn decls(&mut self) -> Parsed<Vec<Decl>> {
        let mut decls = Vec::new();
        while let Kind::Keyword(Keyword::Const | Keyword::Type | Keyword::Var) = self.kind() {
            self.section(&mut |decl| decls.push(decl))?;
        }
        Ok(decls)
    }

    fn type_expr(&mut self) -> Parsed<TypeExpr> {
        self.nested(|parser| {
            let start = parser.span();
            let kind = parser.type_kind()?;
            Ok(TypeExpr { kind, span: parser.since(start) })
        })
    }

    fn type_kind(&mut self) -> Parsed<TypeKind> {
        let start = self.span();
        if self.eat_keyword(Keyword::Enum) {
            self.mark(Mark::BraceOpen, "`{`")?;
            let mut names = vec![self.name("a name")?];
            while self.eat_mark(Mark::Comma) && !self.is_mark(Mark::BraceClose) {
                names.push(self.name("a name")?);
            }
            self.mark(Mark::BraceClose, "`,` or `}`")?;
            return Ok(TypeKind::Enum(names));
        }
        if self.eat_keyword(Keyword::Record) {
            return self.record(start);
        }
        if self.eat_keyword(Keyword::Array) {
            let index = self.bracketed(Self::type_expr)?;
            self.keyword(Keyword::Of)?;
            return Ok(TypeKind::Array(Box::new(index), Box::new(self.type_expr()?)));
        }
        if self.eat_keyword(Keyword::Scalarset) {
            self.mark(Mark::ParenOpen, "`(`")?;
            let size = self.expr()?;
            self.mark(Mark::ParenClose, "`)`")?;
            return Ok(TypeKind::Scalarset(Box::new(size)));
        }
        if self.eat_keyword(Keyword::Union) {
            self.mark(Mark::BraceOpen, "`{`")?;
            let mut members = vec![self.type_expr()?];
            while self.eat_mark(Mark::Comma) {
                members.push(self.type_expr()?);
            }
            self.mark(Mark::BraceClose, "`}`")?;
            return Ok(TypeKind::Union(members));
        }
        if self.is_word("multiset") && *self.peek(1) == Kind::Mark(Mark::BracketOpen) {
            self.advance();
            let size = self.bracketed(Self::expr)?;
            self.keyword(Keyword::Of)?;
            return Ok(TypeKind::Multiset(Box::new(size), Box::new(self.type_expr()?)));
        }
        if self.is_word("real") && *self.peek(1) == Kind::Mark(Mark::ParenOpen) {
            self.advance();
            self.arguments()?;
            return Ok(TypeKind::Real);
        }
        self.range_or_name()
    }

    fn bracketed<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.mark(Mark::BracketOpen, "`[`")?;
        let inner = parse(self)?;
        self.mark(Mark::BracketClose, "`]`")?;
        Ok(inner)
    }

    fn range_or_name(&mut self) -> Parsed<TypeKind> {
        if *self.kind() == Kind::Name && *self.peek(1) != Kind::Mark(Mark::DotDot) {
            let more = matches!(
                self.peek(1),
                Kind::Mark(
                    Mark::Plus
                        | Mark::Minus
                        | Mark::Star
                        | Mark::Slash
                        | Mark::Percent
                        | Mark::ParenOpen
                        | Mark::Question
                        | Mark::Shl
                        | Mark::Shr
                )
            );
            if !more {
                return Ok(TypeKind::Name(self.name("a type")?.text));
            }
        }
        if let Kind::Keyword(_) | Kind::End | Kind::Text(_) = self.kind() {
            return Err(self.unexpected("a type"));
        }
        let low = self.expr()?;
        self.mark(Mark::DotDot, "`..`")?;
        Ok(TypeKind::Range(Box::new(low), Box::new(self.expr()?)))
    }

    fn record(&mut self, start: Span) -> Parsed<TypeKind> {
        let mut fields = Vec::new();
        while self.eat_mark(Mark::Semicolon) {}
        while *self.kind() == Kind::Name {
            let names = self.names()?;
            self.mark(Mark::Colon, "`:` and a type")?;
            fields.push((names, self.type_expr()?));
            while self.eat_mark(Mark::Semicolon) {}
        }
        self.end(&[Keyword::EndRecord], start)?;
        Ok(TypeKind::Record(fields))
    }

    fn proc(&mut self) -> Parsed<Proc> {
        let start = self.span();
        let function = self.is_keyword(Keyword::Function);
        self.advance();
        let name = self.name("a name")?;
        self.procs.push(name.text.clone());
        self.mark(Mark::ParenOpen, "`(`")?;
        let mut formals = Vec::new();
        while !self.is_mark(Mark::ParenClose) {
            self.formals(&mut formals)?;
            while self.eat_mark(Mark::Semicolon) || self.eat_mark(Mark::Comma) {}
        }
        self.advance();
        let result = if function {
            self.mark(Mark::Colon, "`:` and the type of the result")?;
            Some(self.type_expr()?)
        } else {
            None
        };
        while self.eat_mark(Mark::Semicolon) {}
        let decls = self.decls()?;
        self.eat_keyword(Keyword::Begin);
        let body = self.stmts()?;
        self.end(&[if function { Keyword::EndFunction } else { Keyword::EndProcedure }], start)?;
        Ok(Proc { name, formals, result, decls, body })
    }

    fn formals(&mut self, formals: &mut Vec<Formal>) -> Parsed<()> {
        let by_reference = self.eat_keyword(Keyword::Var);
        let names = self.names()?;
        self.mark(Mark::Colon, "`:` and a type")?;
        let ty = self.type_expr()?;
        formals.extend(names.into_iter().map(|name| Formal { by_reference, name, ty: ty.clone() }));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
