//! The expressions of `#if` and `#elif`.

use super::expand::Expander;
use crate::promela::lexer::{OPERATORS, Token, TokenKind};
use plimsoll_ir::BinOp;

const DEEPEST: usize = 200;

/// The value of a condition; names that are no macros count as 0.
pub fn evaluate(line: &[Token], expander: &Expander) -> Result<i64, String> {
    let tokens = expander.expand(answer_defined(line, expander), 1 << 16)?;
    let mut parser = Condition { tokens: &tokens, at: 0, depth: 0 };
    let value = parser.choice()?;
    match parser.tokens.get(parser.at) {
        None => value.ok_or_else(|| "division by zero".into()),
        Some(token) => Err(format!("unexpected {} in a condition", token.text)),
    }
}

/// Replaces `defined X` and `defined(X)` by 0 or 1 before macros are expanded.
fn answer_defined(line: &[Token], expander: &Expander) -> Vec<Token> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let mut token = line[at].clone();
        at += 1;
        if token.is("defined") {
            let wrapped = line.get(at).is_some_and(|next| next.is("("));
            if let Some(name) = line.get(at + wrapped as usize) {
                let answer = expander.is_defined(&name.text);
                token.kind = TokenKind::Number(answer as i64);
                token.text = if answer { "1" } else { "0" }.into();
                at += 1 + 2 * wrapped as usize;
            }
        }
        out.push(token);
    }
    out
}

struct Condition<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

/// `None` is the value of a division by zero, which is an error only where it matters.
type Value = Option<i64>;

impl Condition<'_> {
    fn accept(&mut self, text: &str) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| token.is(text));
        self.at += found as usize;
        found
    }

    fn choice(&mut self) -> Result<Value, String> {
        let condition = self.binary(1)?;
        if !self.accept("?") {
            return Ok(condition);
        }
        let then = self.choice()?;
        if !self.accept(":") {
            return Err("a condition with ? needs :".into());
        }
        let otherwise = self.choice()?;
        Ok(condition.and_then(|condition| if condition != 0 { then } else { otherwise }))
    }

    fn binary(&mut self, lowest: u8) -> Result<Value, String> {
        let mut left = self.unary()?;
        while let Some(&(_, op, level)) = self
            .tokens
            .get(self.at)
            .and_then(|token| OPERATORS.iter().find(|(text, _, level)| token.is(text) && *level >= lowest))
        {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = match (op, left, right) {
                (BinOp::Or, Some(value), _) if value != 0 => Some(1),
                (BinOp::And, Some(0), _) => Some(0),
                (op, Some(left), Some(right)) => op.apply(left, right),
                _ => None,
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("a condition is nested too deep".into());
        }
        let result = self.operand();
        self.depth -= 1;
        result
    }

    fn operand(&mut self) -> Result<Value, String> {
        let Some(token) = self.tokens.get(self.at) else { return Err("a condition ends too early".into()) };
        self.at += 1;
        match (&*token.text, token.kind) {
            ("!", _) => Ok(self.unary()?.map(|value| (value == 0) as i64)),
            ("-", _) => Ok(self.unary()?.map(i64::wrapping_neg)),
            ("+", _) => self.unary(),
            ("~", _) => Ok(self.unary()?.map(|value| !value)),
            ("(", _) => {
                let value = self.choice()?;
                if self.accept(")") { Ok(value) } else { Err("a parenthesis is not closed".into()) }
            }
            (_, TokenKind::Number(value)) => Ok(Some(value)),
            (_, TokenKind::Word) => Ok(Some(0)),
            (text, _) => Err(format!("unexpected {text} in a condition")),
        }
    }
}
