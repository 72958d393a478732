//! Statements.

use super::{Parsed, Parser};
use crate::murphi::ast::{Expr, ExprKind, Name, Stmt, StmtKind};
use crate::murphi::lexer::{Keyword, Kind, Mark};

impl Parser<'_> {
    /// Statements up to a word that ends them. A broken one is reported and skipped.
    pub(super) fn stmts(&mut self) -> Parsed<Vec<Stmt>> {
        self.nested(|parser| {
            let mut stmts = Vec::new();
            let mut broken = false;
            loop {
                while parser.eat_mark(Mark::Semicolon) {}
                if parser.ends_stmts() {
                    return if broken { Err(super::Failed) } else { Ok(stmts) };
                }
                let before = parser.at;
                match parser.stmt() {
                    Ok(stmt) => stmts.push(stmt),
                    Err(failed) => {
                        broken = true;
                        if !parser.recover_stmt(before) {
                            return Err(failed);
                        }
                    }
                }
            }
        })
    }

    fn ends_stmts(&self) -> bool {
        use Keyword::*;
        match self.kind() {
            Kind::End => true,
            Kind::Keyword(keyword) => {
                keyword.text().starts_with("end")
                    || matches!(
                        keyword,
                        Else | Elsif | Case | Rule | Ruleset | Startstate | Invariant | Procedure | Function
                    )
            }
            _ => false,
        }
    }

    /// Skips to the end of a broken statement, if there is one before the next item.
    fn recover_stmt(&mut self, before: usize) -> bool {
        if self.diagnostics.is_full() {
            return false;
        }
        if self.at == before {
            self.advance();
        }
        while !self.ends_stmts() {
            if self.eat_mark(Mark::Semicolon) {
                return true;
            }
            self.advance();
        }
        false
    }

    fn stmt(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        let kind = self.stmt_kind()?;
        let span = self.since(start);
        let ends_itself = matches!(
            kind,
            StmtKind::If(..) | StmtKind::Switch { .. } | StmtKind::For(..) | StmtKind::While(..) | StmtKind::Alias(..)
        );
        if !ends_itself && !self.is_mark(Mark::Semicolon) && !self.ends_stmts() {
            return Err(self.unexpected("`;`"));
        }
        Ok(Stmt { kind, span })
    }

    fn stmt_kind(&mut self) -> Parsed<StmtKind> {
        let Kind::Keyword(keyword) = *self.kind() else {
            return self.plain_stmt();
        };
        let start = self.span();
        self.advance();
        Ok(match keyword {
            Keyword::If => self.conditional(start)?,
            Keyword::Switch => self.switch(start)?,
            Keyword::For => {
                let quants = self.quants()?;
                self.keyword(Keyword::Do)?;
                let body = self.stmts()?;
                self.end(&[Keyword::EndFor], start)?;
                StmtKind::For(quants, body)
            }
            Keyword::While => {
                let condition = self.expr()?;
                self.keyword(Keyword::Do)?;
                let body = self.stmts()?;
                self.end(&[Keyword::EndWhile], start)?;
                StmtKind::While(condition, body)
            }
            Keyword::Alias => {
                let aliases = self.aliases()?;
                let body = self.stmts()?;
                self.end(&[Keyword::EndAlias], start)?;
                StmtKind::Alias(aliases, body)
            }
            Keyword::Clear => StmtKind::Clear(self.postfix()?),
            Keyword::Undefine => StmtKind::Undefine(self.postfix()?),
            Keyword::Error => match self.text() {
                Some(text) => StmtKind::Error(text),
                None => return Err(self.unexpected("a text")),
            },
            Keyword::Put => match self.text() {
                Some(_) => StmtKind::Put(None),
                None => StmtKind::Put(Some(self.expr()?)),
            },
            Keyword::Return if self.is_mark(Mark::Semicolon) || self.ends_stmts() => StmtKind::Return(None),
            Keyword::Return => StmtKind::Return(Some(self.expr()?)),
            Keyword::Assert | Keyword::Invariant => {
                let (expr, text) = self.claim()?;
                StmtKind::Assert(expr, text)
            }
            _ => {
                self.at -= 1;
                return Err(self.unexpected("a statement"));
            }
        })
    }

    /// An expression with a text before or behind it.
    pub(super) fn claim(&mut self) -> Parsed<(Expr, Option<String>)> {
        let before = self.text();
        let expr = self.expr()?;
        let text = before.or_else(|| self.text());
        Ok((expr, text))
    }

    fn conditional(&mut self, start: crate::Span) -> Parsed<StmtKind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.expr()?;
            self.keyword(Keyword::Then)?;
            branches.push((condition, self.stmts()?));
            if !self.eat_keyword(Keyword::Elsif) {
                break;
            }
        }
        let otherwise = if self.eat_keyword(Keyword::Else) { self.stmts()? } else { Vec::new() };
        self.end(&[Keyword::EndIf], start)?;
        Ok(StmtKind::If(branches, otherwise))
    }

    fn switch(&mut self, start: crate::Span) -> Parsed<StmtKind> {
        let value = self.expr()?;
        let mut cases = Vec::new();
        while self.eat_keyword(Keyword::Case) {
            let mut values = vec![self.expr()?];
            while self.eat_mark(Mark::Comma) {
                values.push(self.expr()?);
            }
            self.mark(Mark::Colon, "`:`")?;
            cases.push((values, self.stmts()?));
        }
        let otherwise = if self.eat_keyword(Keyword::Else) {
            self.eat_mark(Mark::Colon);
            self.stmts()?
        } else {
            Vec::new()
        };
        self.end(&[Keyword::EndSwitch], start)?;
        Ok(StmtKind::Switch { value, cases, otherwise })
    }

    /// `name : expr; … do`
    pub(super) fn aliases(&mut self) -> Parsed<Vec<(Name, Expr)>> {
        let mut aliases = Vec::new();
        loop {
            while self.eat_mark(Mark::Semicolon) {}
            if !aliases.is_empty() && self.eat_keyword(Keyword::Do) {
                return Ok(aliases);
            }
            let name = self.name("the name of an alias")?;
            self.mark(Mark::Colon, "`:`")?;
            aliases.push((name, self.expr()?));
            let another = *self.kind() == Kind::Name && *self.peek(1) == Kind::Mark(Mark::Colon);
            if !another && !self.is_mark(Mark::Semicolon) {
                self.keyword(Keyword::Do)?;
                return Ok(aliases);
            }
        }
    }

    /// Is the current name a word of one tool that starts a statement or rule, rather than a plain name?
    pub(super) fn is_soft_word(&self, word: &str) -> bool {
        self.is_word(word)
            && match self.peek(1) {
                Kind::Mark(Mark::Assign | Mark::Dot | Mark::BracketOpen | Mark::Colon | Mark::Comma) => false,
                Kind::Mark(Mark::ParenOpen) => {
                    let text = self.slice(self.span());
                    !self.procs.iter().any(|proc| proc == text)
                }
                _ => true,
            }
    }

    fn plain_stmt(&mut self) -> Parsed<StmtKind> {
        if self.is_soft_word("assume") {
            self.advance();
            return Ok(StmtKind::Assume(self.claim()?.0));
        }
        for word in ["cover", "liveness"] {
            if self.is_soft_word(word) {
                self.advance();
                return Ok(StmtKind::Unchecked(self.claim()?.0, word));
            }
        }
        if let Some(stmt) = self.multiset_stmt()? {
            return Ok(stmt);
        }
        if *self.kind() != Kind::Name {
            return Err(self.unexpected("a statement"));
        }
        let target = self.postfix()?;
        if let ExprKind::Call(name, arguments) = target.kind {
            return Ok(StmtKind::Call(name, arguments));
        }
        self.mark(Mark::Assign, "`:=`")?;
        Ok(StmtKind::Assign(target, self.expr()?))
    }

    fn multiset_stmt(&mut self) -> Parsed<Option<StmtKind>> {
        if *self.peek(1) != Kind::Mark(Mark::ParenOpen) {
            return Ok(None);
        }
        if self.is_word("multisetremovepred") {
            self.advance();
            let (name, set, predicate) = self.filter()?;
            return Ok(Some(StmtKind::MultisetRemoveIf { name, set, predicate }));
        }
        let (add, remove) = (self.is_word("multisetadd"), self.is_word("multisetremove"));
        if !add && !remove {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let stmt = if add {
            let element = self.expr()?;
            self.mark(Mark::Comma, "`,`")?;
            StmtKind::MultisetAdd(element, self.postfix()?)
        } else {
            let name = self.name("the name of a chosen element")?;
            self.mark(Mark::Comma, "`,`")?;
            StmtKind::MultisetRemove(name, self.postfix()?)
        };
        self.mark(Mark::ParenClose, "`)`")?;
        Ok(Some(stmt))
    }
}
