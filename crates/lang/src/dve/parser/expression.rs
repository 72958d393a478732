//! Expressions, by operator precedence.
//!
//! Chains of operators and runs of prefix operators are loops; only parentheses, brackets and rising
//! precedence recurse, and their nesting is bounded.

use super::{Failed, Parsed, Parser};
use crate::diagnostic::{Diagnostic, Span};
use crate::dve::ast::{BinaryOp, DEEPEST, ExprId, ExprKind, UnaryOp};
use crate::dve::lexer::Token;

/// An operand, and its topmost operator if no parentheses close it off.
struct Operand {
    id: ExprId,
    open: Option<BinaryOp>,
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<ExprId> {
        self.binary(0).map(|operand| operand.id)
    }

    /// A variable or an element of an array, as the target of an assignment.
    pub(super) fn target(&mut self) -> Parsed<ExprId> {
        if self.peek() == Token::Name { self.primary() } else { self.unexpected("a variable") }
    }

    /// Operators of precedence `least` and above.
    fn binary(&mut self, least: u8) -> Parsed<Operand> {
        let mut left = self.unary()?;
        while let Some(op) = binary_operator(self.peek())
            && op.precedence() >= least
        {
            let op_span = self.bump().span;
            let right = self.binary(op.precedence() + 1)?;
            if let Some(inner) = right.open
                && inner.original_precedence() == op.original_precedence()
            {
                self.warn_of_mix(op_span);
            }
            let span = self.model.exprs.get(left.id).span.to(self.last_span());
            let id = self.node(ExprKind::Binary(op, left.id, right.id), span, op_span)?;
            left = Operand { id, open: Some(op) };
        }
        Ok(left)
    }

    fn warn_of_mix(&mut self, span: Span) {
        let diagnostic = Diagnostic::warning("operators are mixed without parentheses", span)
            .label("read as in C: the operators to the right bind tighter")
            .note("DiVinE reads these operators from left to right; parentheses make the meaning clear");
        self.diagnostics.push(diagnostic);
    }

    fn unary(&mut self) -> Parsed<Operand> {
        let mut prefixes = Vec::new();
        loop {
            let op = match self.peek() {
                Token::Minus => UnaryOp::Negate,
                Token::Tilde => UnaryOp::Complement,
                Token::Not => UnaryOp::Not,
                _ => break,
            };
            prefixes.push((op, self.bump().span));
        }
        let mut id = self.primary()?;
        while let Some((op, span)) = prefixes.pop() {
            id = self.node(ExprKind::Unary(op, id), span.to(self.last_span()), span)?;
        }
        Ok(Operand { id, open: None })
    }

    fn primary(&mut self) -> Parsed<ExprId> {
        let span = self.span();
        match self.peek() {
            Token::Number => {
                let (value, span) = self.number()?;
                match i32::try_from(value) {
                    Ok(value) => Ok(self.model.exprs.add(ExprKind::Number(value), span)),
                    Err(_) => self
                        .fail(Diagnostic::error("this number is too large", span).label("the largest is 2147483647")),
                }
            }
            token @ (Token::True | Token::False) => {
                self.bump();
                Ok(self.model.exprs.add(ExprKind::Number((token == Token::True) as i32), span))
            }
            Token::Open => {
                self.bump();
                let inner = self.nested(span)?;
                self.expect(Token::Close)?;
                Ok(inner)
            }
            Token::Name => self.named(),
            Token::Send => {
                let diagnostic = Diagnostic::error("expected an expression, found `!`", span);
                self.fail(diagnostic.label("negation is written `not`; `!` only sends"))
            }
            _ => self.unexpected("an expression"),
        }
    }

    /// `x`, `x[e]`, `P.s`, `P->x` or `P->x[e]`.
    fn named(&mut self) -> Parsed<ExprId> {
        let first = self.ident("a name")?;
        let kind = match self.peek() {
            Token::OpenBracket => ExprKind::Index(first.name, self.index()?),
            Token::Dot => {
                self.bump();
                ExprKind::State(first.name, self.ident("the name of a state")?.name)
            }
            Token::Arrow => {
                self.bump();
                let variable = self.ident("the name of a variable")?.name;
                let index = if self.peek() == Token::OpenBracket { Some(self.index()?) } else { None };
                ExprKind::Foreign(first.name, variable, index)
            }
            _ => ExprKind::Name(first.name),
        };
        self.node(kind, first.span.to(self.last_span()), first.span)
    }

    fn index(&mut self) -> Parsed<ExprId> {
        let open = self.expect(Token::OpenBracket)?;
        let index = self.nested(open)?;
        self.expect(Token::CloseBracket)?;
        Ok(index)
    }

    /// The expression inside a bracket that has just been opened.
    fn nested(&mut self, open: Span) -> Parsed<ExprId> {
        if self.nesting >= DEEPEST {
            return self.too_deep(open);
        }
        self.nesting += 1;
        let inner = self.expression()?;
        self.nesting -= 1;
        Ok(inner)
    }

    /// Adds a node, unless it is too deep.
    fn node(&mut self, kind: ExprKind, span: Span, mark: Span) -> Parsed<ExprId> {
        let id = self.model.exprs.add(kind, span);
        if self.model.exprs.depth(id) > DEEPEST { self.too_deep(mark) } else { Ok(id) }
    }

    fn too_deep<T>(&mut self, span: Span) -> Result<T, Failed> {
        self.fail(Diagnostic::error(format!("expression too deep: nested more than {DEEPEST} levels"), span))
    }
}

fn binary_operator(token: Token) -> Option<BinaryOp> {
    Some(match token {
        Token::Imply => BinaryOp::Imply,
        Token::Or => BinaryOp::Or,
        Token::And => BinaryOp::And,
        Token::BitOr => BinaryOp::BitOr,
        Token::BitXor => BinaryOp::BitXor,
        Token::BitAnd => BinaryOp::BitAnd,
        Token::Equal => BinaryOp::Equal,
        Token::Unequal => BinaryOp::Unequal,
        Token::Less => BinaryOp::Less,
        Token::LessEqual => BinaryOp::LessEqual,
        Token::Greater => BinaryOp::Greater,
        Token::GreaterEqual => BinaryOp::GreaterEqual,
        Token::ShiftLeft => BinaryOp::ShiftLeft,
        Token::ShiftRight => BinaryOp::ShiftRight,
        Token::Plus => BinaryOp::Add,
        Token::Minus => BinaryOp::Subtract,
        Token::Times => BinaryOp::Multiply,
        Token::Divide => BinaryOp::Divide,
        Token::Remainder => BinaryOp::Remainder,
        _ => return None,
    })
}
