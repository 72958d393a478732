//! Inlines: the body is kept as tokens, and a call puts it, with the arguments in place of the parameters, in
//! front of the input. So an inline is text, not a function, exactly as in SPIN.

use super::{Bad, Parse, Parser};
use crate::promela::ast::{Place, Stmt};
use crate::promela::lexer::{Token, TokenKind};
use std::collections::HashMap;
use std::sync::Arc;

/// All calls together may not produce more tokens than this.
const MOST_TOKENS: usize = 1 << 22;
/// Deepest nesting of calls.
const DEEPEST: usize = 64;

#[derive(Default)]
pub struct Inlines {
    known: HashMap<Arc<str>, Inline>,
    /// Calls that are being parsed: the inline, and where its value goes.
    pub active: Vec<(Arc<str>, Option<Place>)>,
    produced: usize,
}

struct Inline {
    params: Vec<Arc<str>>,
    /// From `{` to `}`.
    body: Vec<Token>,
}

impl Inlines {
    pub fn knows(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }
}

impl Parser<'_> {
    /// `inline name(params) { body }`, the keyword being next.
    pub fn inline_definition(&mut self) -> Parse<()> {
        self.expect("inline")?;
        let name = self.expect_name("the name of the inline")?;
        self.expect("(")?;
        let mut params = Vec::new();
        while !self.at(")") {
            params.push(self.expect_name("a parameter")?.text);
            if !self.accept(",") && !self.at(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        self.expect(")")?;
        let body = self.braced()?;
        if self.inlines.knows(&name.text) {
            self.warning(format!("inline {} is defined again", name.text), name.site);
        }
        self.inlines.known.insert(name.text, Inline { params, body });
        Ok(())
    }

    /// Takes `{ … }` as tokens.
    pub fn braced(&mut self) -> Parse<Vec<Token>> {
        if !self.at("{") {
            return Err(self.unexpected("`{`"));
        }
        let mut depth = 0;
        let mut body = Vec::new();
        loop {
            if self.at_end() {
                return Err(self.unexpected("`}`"));
            }
            let token = self.advance();
            depth += token.is("{") as usize;
            depth -= token.is("}") as usize;
            body.push(token);
            if depth == 0 {
                return Ok(body);
            }
        }
    }

    /// A call, the name being next; `result` is where `return` stores.
    pub fn inline_call(&mut self, result: Option<Place>) -> Parse<Stmt> {
        let name = self.advance();
        let args = self.call_arguments()?;
        if self.inlines.active.iter().any(|(active, _)| *active == name.text) {
            self.error(format!("inline {} calls itself", name.text), name.site);
            return Err(Bad);
        }
        if self.inlines.active.len() >= DEEPEST {
            self.error("inlines are nested too deep", name.site);
            return Err(Bad);
        }
        let inline = &self.inlines.known[&name.text];
        if inline.params.len() != args.len() {
            let message = format!("inline {} takes {} arguments, not {}", name.text, inline.params.len(), args.len());
            self.error(message, name.site);
            return Err(Bad);
        }
        let body = substitute(inline, &args, &name);
        self.inlines.produced += body.len();
        if self.inlines.produced > MOST_TOKENS {
            self.error("inlines expand to too many tokens", name.site);
            self.input.clear();
            return Err(Bad);
        }
        let newline = self.peek().newline;
        for token in body.into_iter().rev() {
            self.input.push_front(token);
        }
        self.inlines.active.push((name.text, result));
        self.initialises = false;
        let parsed = self.deeper(Self::block);
        self.inlines.active.pop();
        // The line end behind the call, not behind the body, counts as a separator.
        if let Some(next) = self.input.front_mut() {
            next.newline = newline;
        }
        parsed
    }

    fn call_arguments(&mut self) -> Parse<Vec<Vec<Token>>> {
        self.expect("(")?;
        let mut args: Vec<Vec<Token>> = Vec::new();
        let mut depth = 0usize;
        loop {
            if self.at_end() {
                return Err(self.unexpected("`)`"));
            }
            let token = self.advance();
            match &*token.text {
                ")" if depth == 0 => return Ok(args),
                "," if depth == 0 => args.push(Vec::new()),
                text => {
                    depth += (text == "(") as usize;
                    depth -= (text == ")") as usize;
                    if args.is_empty() {
                        args.push(Vec::new());
                    }
                    args.last_mut().expect("one was just added").push(token);
                }
            }
        }
    }
}

fn substitute(inline: &Inline, args: &[Vec<Token>], call: &Token) -> Vec<Token> {
    let mut out = Vec::with_capacity(inline.body.len());
    for token in &inline.body {
        let param = inline.params.iter().position(|param| *param == token.text && token.kind == TokenKind::Word);
        let Some(param) = param else {
            let mut token = token.clone();
            token.site.span = call.site.span;
            out.push(token);
            continue;
        };
        for (index, part) in args[param].iter().enumerate() {
            let mut part = part.clone();
            part.newline = index == 0 && token.newline;
            part.space = if index == 0 { token.space } else { part.space };
            out.push(part);
        }
    }
    out
}
