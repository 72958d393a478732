//! Rules, start states, properties and what may enclose them.

use super::{Parsed, Parser};
use crate::murphi::ast::{Expr, PropertyKind, Rule, RuleKind};
use crate::murphi::lexer::{Keyword, Kind, Mark};

impl Parser<'_> {
    pub(super) fn rule(&mut self) -> Parsed<Rule> {
        self.nested(|parser| {
            let start = parser.span();
            let kind = parser.rule_kind()?;
            Ok(Rule { kind, span: parser.since(start) })
        })
    }

    /// Does a word that only one tool knows start a rule or property here?
    pub(super) fn starts_soft_item(&self) -> bool {
        let choose = self.is_word("choose") && *self.peek(1) == Kind::Name && *self.peek(2) == Kind::Mark(Mark::Colon);
        choose || ["assume", "cover", "liveness"].iter().any(|word| self.is_soft_word(word))
    }

    fn rule_kind(&mut self) -> Parsed<RuleKind> {
        let start = self.span();
        let Kind::Keyword(keyword) = *self.kind() else {
            return self.soft_rule();
        };
        self.advance();
        Ok(match keyword {
            Keyword::Rule => self.simple_rule(start)?,
            Keyword::Startstate => {
                let name = self.text();
                let decls = self.decls()?;
                self.eat_keyword(Keyword::Begin);
                let body = self.stmts()?;
                self.end(&[Keyword::EndStartstate], start)?;
                RuleKind::Start { name, decls, body }
            }
            Keyword::Invariant | Keyword::Assert => self.property(PropertyKind::Invariant)?,
            Keyword::Ruleset => {
                let quants = self.quants()?;
                self.keyword(Keyword::Do)?;
                let rules = self.rules()?;
                self.end(&[Keyword::EndRuleset], start)?;
                RuleKind::Set(quants, rules)
            }
            Keyword::Alias => {
                let aliases = self.aliases()?;
                let rules = self.rules()?;
                self.end(&[Keyword::EndAlias], start)?;
                RuleKind::Alias(aliases, rules)
            }
            _ => {
                self.at -= 1;
                return Err(self.unexpected("a rule or a declaration"));
            }
        })
    }

    fn soft_rule(&mut self) -> Parsed<RuleKind> {
        let start = self.span();
        let kinds =
            [("assume", PropertyKind::Assume), ("cover", PropertyKind::Cover), ("liveness", PropertyKind::Liveness)];
        for (word, kind) in kinds {
            if self.is_soft_word(word) {
                self.advance();
                return self.property(kind);
            }
        }
        for word in ["externfun", "externproc"] {
            if self.is_word(word) {
                return Err(self.fail("functions written in C++ are not supported", start));
            }
        }
        if !self.starts_soft_item() {
            return Err(self.unexpected("a rule or a declaration"));
        }
        self.advance();
        let name = self.name("a name")?;
        self.mark(Mark::Colon, "`:`")?;
        let set = self.postfix()?;
        self.keyword(Keyword::Do)?;
        let rules = self.rules()?;
        self.end(&[Keyword::EndChoose], start)?;
        Ok(RuleKind::Choose(name, set, rules))
    }

    fn property(&mut self, kind: PropertyKind) -> Parsed<RuleKind> {
        let (expr, name) = self.claim()?;
        Ok(RuleKind::Property { kind, name, expr })
    }

    /// The rules inside an enclosure, up to the word that ends it.
    fn rules(&mut self) -> Parsed<Vec<Rule>> {
        let mut rules = Vec::new();
        loop {
            while self.eat_mark(Mark::Semicolon) {}
            match self.kind() {
                Kind::Keyword(keyword) if keyword.text().starts_with("end") => return Ok(rules),
                Kind::End => return Ok(rules),
                _ => rules.push(self.rule()?),
            }
        }
    }

    fn simple_rule(&mut self, start: crate::Span) -> Parsed<RuleKind> {
        let priority = match (self.kind(), self.peek(1)) {
            (&Kind::Number(value), Kind::Text(_) | Kind::Name | Kind::Keyword(_)) => {
                self.advance();
                Some(value)
            }
            _ => None,
        };
        let name = self.text();
        let guard = self.guard()?;
        let decls = self.decls()?;
        self.eat_keyword(Keyword::Begin);
        let body = self.stmts()?;
        self.end(&[Keyword::EndRule], start)?;
        Ok(RuleKind::Simple { priority, name, guard, decls, body })
    }

    /// `expr ==>`, which a rule may lack: what starts like an expression may be a statement.
    fn guard(&mut self) -> Parsed<Option<Expr>> {
        use Keyword::*;
        match self.kind() {
            Kind::Keyword(IsUndefined | Forall | Exists) => {}
            Kind::Keyword(_) | Kind::End => return Ok(None),
            Kind::Mark(Mark::Semicolon) => return Ok(None),
            Kind::Mark(Mark::Arrow) => {
                self.advance();
                return Ok(None);
            }
            Kind::Name if self.is_statement() => return Ok(None),
            _ => {}
        }
        let expr = self.expr()?;
        self.mark(Mark::Arrow, "`==>`")?;
        Ok(Some(expr))
    }

    /// Does a statement start here? The first of `:=`, `==>` and `;` outside quantifiers tells.
    fn is_statement(&self) -> bool {
        let (mut open, mut header) = (0, false);
        for ahead in 0.. {
            match self.peek(ahead) {
                Kind::Mark(Mark::Arrow) => return false,
                Kind::Mark(Mark::Assign | Mark::Semicolon) if !header => return true,
                Kind::Keyword(Keyword::Forall | Keyword::Exists) => {
                    open += 1;
                    header = true;
                }
                Kind::Keyword(Keyword::Do) => header = false,
                Kind::Keyword(Keyword::Rule | Keyword::Begin) | Kind::End => return false,
                Kind::Keyword(keyword) if keyword.text().starts_with("end") => {
                    if open == 0 {
                        return true;
                    }
                    open -= 1;
                }
                _ => {}
            }
        }
        false
    }
}
