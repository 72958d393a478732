//! Sends, receives and polls.

use super::{Parse, Parser};
use crate::promela::ast::{Expr, Pattern, Place, Step};
use crate::promela::lexer::{Token, TokenKind};

impl Parser<'_> {
    /// `! args` or `!! args`, after the channel.
    pub fn send(&mut self, channel: Place) -> Parse<Step> {
        let sorted = self.advance().is("!!");
        let mut args = Vec::new();
        let first = self.expression()?;
        self.flatten_value(first, &mut args);
        // q!m(a,b) is q!m,a,b.
        let called = self.at("(") && self.continues() && self.accept("(");
        if called || self.accept(",") {
            loop {
                let value = self.expression()?;
                self.flatten_value(value, &mut args);
                if !self.accept(",") {
                    break;
                }
            }
        }
        if called {
            self.expect(")")?;
        }
        Ok(Step::Send { channel, args, sorted })
    }

    /// `? args`, `?? args`, and both with `< … >`, after the channel.
    pub fn receive(&mut self, channel: Place) -> Parse<Step> {
        let random = self.advance().is("??");
        let keeps = self.accept("<");
        let args = self.patterns()?;
        if keeps {
            self.expect(">")?;
        }
        Ok(Step::Receive { channel, args, random, keeps })
    }

    /// `?[ args ]` or `??[ args ]`, after the channel.
    pub fn poll(&mut self, channel: Place, name: &Token) -> Parse<Expr> {
        self.check_channel(&channel, name);
        let random = self.advance().is("??");
        self.expect("[")?;
        let args = self.patterns()?;
        self.expect("]")?;
        Ok(Expr::Poll { channel, args, random })
    }

    fn patterns(&mut self) -> Parse<Vec<Pattern>> {
        let mut out = Vec::new();
        self.pattern_list(&mut out)?;
        Ok(out)
    }

    fn pattern_list(&mut self, out: &mut Vec<Pattern>) -> Parse<()> {
        loop {
            if self.accept("(") {
                self.deeper(|parser| parser.pattern_list(out))?;
                self.expect(")")?;
            } else {
                self.pattern(out)?;
            }
            if self.at("(") && self.continues() {
                self.advance();
                self.deeper(|parser| parser.pattern_list(out))?;
                self.expect(")")?;
            }
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    fn pattern(&mut self, out: &mut Vec<Pattern>) -> Parse<()> {
        let token = self.peek().clone();
        match (&*token.text, token.kind) {
            ("eval", _) => {
                self.advance();
                self.expect("(")?;
                let value = self.expression()?;
                self.expect(")")?;
                out.push(Pattern::Match(value));
            }
            ("_", _) => {
                self.advance();
                out.push(Pattern::Any);
            }
            ("-", _) | (_, TokenKind::Number(_)) | ("true" | "false" | "skip", _) => {
                out.push(Pattern::Match(Expr::Number(self.constant_pattern()?)));
            }
            _ => {
                let name = self.expect_name("a variable, a constant, eval(…) or _")?;
                if let Some(super::names::Meaning::Constant(value)) = self.names.find(&name.text) {
                    out.push(Pattern::Match(Expr::Number(value)));
                    return Ok(());
                }
                let place = self.place(&name)?;
                let mut places = Vec::new();
                self.flatten_place(place, &mut places);
                out.extend(places.into_iter().map(Pattern::Store));
            }
        }
        Ok(())
    }

    fn constant_pattern(&mut self) -> Parse<i64> {
        let negative = self.accept("-");
        let token = self.advance();
        let value = match (&*token.text, token.kind) {
            (_, TokenKind::Number(value)) => value,
            ("true" | "skip", _) => 1,
            ("false", _) => 0,
            _ => return Err(self.unexpected("a number")),
        };
        Ok(if negative { -value } else { value })
    }
}
