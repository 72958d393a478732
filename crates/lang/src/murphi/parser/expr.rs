//! Expressions, by precedence: `?:` binds loosest, then `->` (which does not chain), `||`, `&&`, `|`, `^`, `&`,
//! `!` (looser than comparison: `!x = 1` is `!(x = 1)`), comparisons, shifts, sums, products.

use super::{Failed, Parsed, Parser};
use crate::diagnostic::Span;
use crate::murphi::ast::{BinaryOp, ChainOp, Domain, Expr, ExprKind, Quant, UnaryOp};
use crate::murphi::lexer::{Keyword, Kind, Mark};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            let start = parser.span();
            let condition = parser.implication()?;
            if !parser.eat_mark(Mark::Question) {
                return Ok(condition);
            }
            let then = parser.expr()?;
            parser.mark(Mark::Colon, "`:`")?;
            let otherwise = parser.expr()?;
            let kind = ExprKind::Select(Box::new(condition), Box::new(then), Box::new(otherwise));
            Ok(parser.made(kind, start))
        })
    }

    fn made(&self, kind: ExprKind, start: Span) -> Expr {
        Expr { kind, span: self.since(start) }
    }

    fn implication(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let left = self.chain(0)?;
        if !self.eat_mark(Mark::Implies) {
            return Ok(left);
        }
        let right = self.chain(0)?;
        if self.is_mark(Mark::Implies) {
            let span = self.span();
            return Err(self.fail("`->` does not chain: use parentheses", span));
        }
        Ok(self.made(ExprKind::Implies(Box::new(left), Box::new(right)), start))
    }

    /// Chains of the logical and bitwise operators, loosest first.
    fn chain(&mut self, level: usize) -> Parsed<Expr> {
        let (mark, op, logical) = match level {
            0 => (Mark::OrOr, ChainOp::Or, true),
            1 => (Mark::AndAnd, ChainOp::And, true),
            2 => (Mark::Or, ChainOp::Or, false),
            3 => return self.exclusive(),
            4 => (Mark::And, ChainOp::And, false),
            _ => return self.negation(),
        };
        let start = self.span();
        let first = self.chain(level + 1)?;
        if !self.is_mark(mark) {
            return Ok(first);
        }
        let mut terms = vec![first];
        while self.eat_mark(mark) {
            terms.push(self.chain(level + 1)?);
        }
        Ok(self.made(ExprKind::Chain { op, logical, terms }, start))
    }

    fn exclusive(&mut self) -> Parsed<Expr> {
        self.left_associative(|parser| parser.chain(4), |mark| (mark == Mark::Xor).then_some(BinaryOp::Xor))
    }

    fn negation(&mut self) -> Parsed<Expr> {
        let start = self.span();
        if !self.eat_mark(Mark::Not) {
            return self.comparison();
        }
        let inner = self.nested(Self::negation)?;
        Ok(self.made(ExprKind::Unary(UnaryOp::Not, Box::new(inner)), start))
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let left = self.shift()?;
        let Some(op) = self.compared() else { return Ok(left) };
        self.advance();
        let right = self.shift()?;
        if self.compared().is_some() {
            let span = self.span();
            return Err(self.fail("comparisons do not chain: use parentheses", span));
        }
        Ok(self.made(ExprKind::Binary(op, Box::new(left), Box::new(right)), start))
    }

    fn compared(&self) -> Option<BinaryOp> {
        let Kind::Mark(mark) = self.kind() else { return None };
        Some(match mark {
            Mark::Eq => BinaryOp::Eq,
            Mark::Ne => BinaryOp::Ne,
            Mark::Lt => BinaryOp::Lt,
            Mark::Le => BinaryOp::Le,
            Mark::Gt => BinaryOp::Gt,
            Mark::Ge => BinaryOp::Ge,
            _ => return None,
        })
    }

    fn shift(&mut self) -> Parsed<Expr> {
        self.left_associative(Self::sum, |mark| match mark {
            Mark::Shl => Some(BinaryOp::Shl),
            Mark::Shr => Some(BinaryOp::Shr),
            _ => None,
        })
    }

    pub(super) fn sum(&mut self) -> Parsed<Expr> {
        self.left_associative(Self::product, |mark| match mark {
            Mark::Plus => Some(BinaryOp::Add),
            Mark::Minus => Some(BinaryOp::Sub),
            _ => None,
        })
    }

    fn product(&mut self) -> Parsed<Expr> {
        self.left_associative(Self::unary, |mark| match mark {
            Mark::Star => Some(BinaryOp::Mul),
            Mark::Slash => Some(BinaryOp::Div),
            Mark::Percent => Some(BinaryOp::Rem),
            _ => None,
        })
    }

    /// A long chain nests to the left, so every operator counts as one level of nesting.
    fn left_associative(
        &mut self,
        operand: impl Fn(&mut Self) -> Parsed<Expr>,
        operator: impl Fn(Mark) -> Option<BinaryOp>,
    ) -> Parsed<Expr> {
        let start = self.span();
        let depth = self.depth;
        let mut left = operand(self)?;
        while let &Kind::Mark(mark) = self.kind()
            && let Some(op) = operator(mark)
        {
            self.advance();
            let right = self.nested(&operand)?;
            left = self.made(ExprKind::Binary(op, Box::new(left), Box::new(right)), start);
            self.depth += 1;
        }
        self.depth = depth;
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let op = match self.kind() {
            Kind::Mark(Mark::Minus) => UnaryOp::Minus,
            Kind::Mark(Mark::Plus) => UnaryOp::Plus,
            Kind::Mark(Mark::Tilde) => UnaryOp::Complement,
            Kind::Mark(Mark::Not) => return self.nested(Self::negation),
            _ => return self.postfix(),
        };
        self.advance();
        let inner = self.nested(Self::unary)?;
        Ok(self.made(ExprKind::Unary(op, Box::new(inner)), start))
    }

    /// A primary expression with its fields and indices.
    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let depth = self.depth;
        let mut expr = self.primary()?;
        loop {
            let kind = if self.eat_mark(Mark::Dot) {
                ExprKind::Field(Box::new(expr), self.name("the name of a field")?)
            } else if self.is_mark(Mark::BracketOpen) {
                let index = self.bracketed(Self::expr)?;
                ExprKind::Index(Box::new(expr), Box::new(index))
            } else {
                self.depth = depth;
                return Ok(expr);
            };
            expr = self.made(kind, start);
            self.depth += 1;
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let kind = match self.kind().clone() {
            Kind::Number(value) => {
                self.advance();
                ExprKind::Number(value)
            }
            Kind::Real => {
                self.advance();
                ExprKind::Real
            }
            Kind::Mark(Mark::ParenOpen) => {
                self.advance();
                let inner = self.expr()?;
                self.mark(Mark::ParenClose, "`)`")?;
                return Ok(inner);
            }
            Kind::Keyword(Keyword::Forall | Keyword::Exists) => self.quantified()?,
            Kind::Keyword(Keyword::IsUndefined) => {
                self.advance();
                self.mark(Mark::ParenOpen, "`(`")?;
                let inner = self.expr()?;
                self.mark(Mark::ParenClose, "`)`")?;
                ExprKind::IsUndefined(Box::new(inner))
            }
            Kind::Name => self.named()?,
            _ => return Err(self.unexpected("an expression")),
        };
        Ok(self.made(kind, start))
    }

    fn named(&mut self) -> Parsed<ExprKind> {
        let call = *self.peek(1) == Kind::Mark(Mark::ParenOpen);
        if self.is_word("undefined") {
            self.advance();
            return Ok(ExprKind::Undefined);
        }
        if call && self.is_word("ismember") {
            self.advance();
            self.advance();
            let value = self.expr()?;
            self.mark(Mark::Comma, "`,`")?;
            let ty = self.type_expr()?;
            self.mark(Mark::ParenClose, "`)`")?;
            return Ok(ExprKind::IsMember(Box::new(value), Box::new(ty)));
        }
        if call && self.is_word("multisetcount") {
            self.advance();
            let (name, set, predicate) = self.filter()?;
            return Ok(ExprKind::Count { name, set: Box::new(set), predicate: Box::new(predicate) });
        }
        let name = self.name("a name")?;
        if call { Ok(ExprKind::Call(name, self.arguments()?)) } else { Ok(ExprKind::Name(name.text)) }
    }

    /// `(name : set, predicate)`
    pub(super) fn filter(&mut self) -> Parsed<(crate::murphi::ast::Name, Expr, Expr)> {
        self.mark(Mark::ParenOpen, "`(`")?;
        let name = self.name("a name")?;
        self.mark(Mark::Colon, "`:`")?;
        let set = self.postfix()?;
        self.mark(Mark::Comma, "`,`")?;
        let predicate = self.expr()?;
        self.mark(Mark::ParenClose, "`)`")?;
        Ok((name, set, predicate))
    }

    pub(super) fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.mark(Mark::ParenOpen, "`(`")?;
        let mut arguments = Vec::new();
        while !self.is_mark(Mark::ParenClose) {
            arguments.push(self.expr()?);
            if !self.eat_mark(Mark::Comma) && !self.is_mark(Mark::ParenClose) {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        self.advance();
        Ok(arguments)
    }

    fn quantified(&mut self) -> Parsed<ExprKind> {
        let start = self.span();
        let forall = self.is_keyword(Keyword::Forall);
        self.advance();
        let quants = self.quants()?;
        if !self.eat_keyword(Keyword::Do) && !self.eat_mark(Mark::Colon) {
            return Err(self.unexpected("`do`"));
        }
        let body = self.expr()?;
        self.end(&[if forall { Keyword::EndForall } else { Keyword::EndExists }], start)?;
        Ok(ExprKind::Quantified { forall, quants, body: Box::new(body) })
    }

    /// One or several quantifiers up to `do`.
    pub(super) fn quants(&mut self) -> Parsed<Vec<Quant>> {
        let mut quants = Vec::new();
        loop {
            while self.eat_mark(Mark::Semicolon) {}
            if !quants.is_empty() && *self.kind() != Kind::Name {
                return Ok(quants);
            }
            let name = self.name("the name of a parameter")?;
            let domain = if self.eat_mark(Mark::Assign) {
                self.stepped()?
            } else {
                self.mark(Mark::Colon, "`:` and a type, or `:=` and a range")?;
                Domain::Type(self.type_expr()?)
            };
            quants.push(Quant { name, domain });
            if !self.is_mark(Mark::Semicolon) {
                return Ok(quants);
            }
        }
    }

    fn stepped(&mut self) -> Result<Domain, Failed> {
        let from = self.expr()?;
        self.keyword(Keyword::To)?;
        let to = self.expr()?;
        let step = if self.eat_keyword(Keyword::By) { Some(self.expr()?) } else { None };
        Ok(Domain::Range { from, to, step })
    }
}
