//! Expressions and places.

use super::names::{self, Meaning};
use super::{Bad, Parse, Parser};
use crate::promela::ast::{Access, Base, Expr, Place, Probe, Remote, Root, Run};
use crate::promela::lexer::{OPERATORS, Token, TokenKind};
use plimsoll_ir::{BinOp, UnOp};

/// Longest chain of arithmetic without parentheses; logic may be longer.
const LONGEST_CHAIN: usize = 300;

impl Parser<'_> {
    pub fn expression(&mut self) -> Parse<Expr> {
        self.deeper(|parser| parser.binary(1))
    }

    fn binary(&mut self, lowest: u8) -> Parse<Expr> {
        let mut left = self.unary()?;
        let mut chain = 0;
        while let Some((op, level)) = self.operator(lowest) {
            let site = self.advance().site;
            let right = self.deeper(|parser| parser.binary(level + 1))?;
            left = match (op, left) {
                (BinOp::And | BinOp::Or, Expr::Logic(same, mut parts)) if same == op && chain > 0 => {
                    parts.push(right);
                    Expr::Logic(op, parts)
                }
                (BinOp::And | BinOp::Or, first) => Expr::Logic(op, vec![first, right]),
                (op, first) => Expr::binary(op, first, right),
            };
            chain += 1;
            if chain > LONGEST_CHAIN && !matches!(left, Expr::Logic(..)) {
                self.error("an expression is too long", site);
                return Err(Bad);
            }
        }
        Ok(left)
    }

    fn operator(&self, lowest: u8) -> Option<(BinOp, u8)> {
        let token = self.peek();
        if token.kind != TokenKind::Punct || token.is("-") && !self.continues() {
            return None;
        }
        OPERATORS.iter().find(|(text, _, level)| token.is(text) && *level >= lowest).map(|&(_, op, level)| (op, level))
    }

    fn unary(&mut self) -> Parse<Expr> {
        let op = match &*self.peek().text {
            "!" => UnOp::Not,
            "-" => UnOp::Neg,
            "~" => UnOp::BitNot,
            _ => return self.deeper(Self::primary),
        };
        self.advance();
        let value = self.deeper(Self::unary)?;
        Ok(match (op, value) {
            (UnOp::Neg, Expr::Number(number)) => Expr::Number(number.wrapping_neg() as i32 as i64),
            (op, value) => Expr::Unary(op, Box::new(value)),
        })
    }

    fn primary(&mut self) -> Parse<Expr> {
        let token = self.peek().clone();
        if let TokenKind::Number(number) = token.kind {
            // The smallest int is written as a number that does not fit, with a minus before it.
            let smallest = number == i32::MIN.into() && self.previous.is("-");
            let digits = token.text.starts_with(|first: char| first.is_ascii_digit());
            self.advance();
            if digits && !smallest && token.text.parse() != Ok(number) {
                self.warning(format!("{} does not fit an int, it counts as {number}", token.text), token.site);
            }
            return Ok(Expr::Number(number));
        }
        match &*token.text {
            "(" => self.parenthesis(),
            "true" | "skip" => self.constant_word(Expr::Number(1)),
            "false" => self.constant_word(Expr::Number(0)),
            "timeout" => self.constant_word(Expr::Timeout),
            "_pid" => self.constant_word(Expr::Pid),
            "_nr_pr" => self.constant_word(Expr::ProcessCount),
            "_last" => {
                self.program.uses_last = true;
                self.constant_word(Expr::Last)
            }
            "len" => self.probe(Probe::Len),
            "full" => self.probe(Probe::Full),
            "nfull" => self.probe(Probe::NotFull),
            "empty" => self.probe(Probe::Empty),
            "nempty" => self.probe(Probe::NotEmpty),
            "run" => self.run(),
            "np_" => {
                self.advance();
                Ok(Expr::NoProgress)
            }
            "enabled" | "pc_value" => {
                self.advance();
                self.expect("(")?;
                let pid = Box::new(self.expression()?);
                self.expect(")")?;
                Ok(if token.is("enabled") { Expr::Enabled(pid) } else { Expr::PlaceOf(pid) })
            }
            "get_priority" | "_priority" => {
                self.error(format!("{} is not supported", token.text), token.site);
                Err(Bad)
            }
            "c_expr" => {
                self.c_fragment()?;
                Ok(Expr::Number(1))
            }
            word if token.kind == TokenKind::Word && !names::is_keyword(word) => self.name(),
            ":" if self.as_shown && self.peek_at(1).is("init") && self.peek_at(2).is(":") => self.shown_init(),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn constant_word(&mut self, value: Expr) -> Parse<Expr> {
        self.advance();
        Ok(value)
    }

    /// `( e )`, or `( condition -> then : otherwise )`.
    fn parenthesis(&mut self) -> Parse<Expr> {
        self.expect("(")?;
        let value = self.expression()?;
        if self.accept("->") {
            let then = self.expression()?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            self.expect(")")?;
            return Ok(Expr::Choice(Box::new((value, then, otherwise))));
        }
        self.expect(")")?;
        // A chain in parentheses is one operand of the chain around it.
        Ok(value)
    }

    fn probe(&mut self, probe: Probe) -> Parse<Expr> {
        self.advance();
        self.expect("(")?;
        let place = self.channel_place()?;
        self.expect(")")?;
        Ok(Expr::Probe(probe, place))
    }

    /// A place that holds a channel.
    pub fn channel_place(&mut self) -> Parse<Place> {
        let name = self.expect_name("the name of a channel")?;
        let place = self.place(&name)?;
        self.check_channel(&place, &name);
        Ok(place)
    }

    pub fn check_channel(&mut self, place: &Place, name: &Token) {
        if place.base != Base::Chan {
            self.error(format!("{} is not a channel", name.text), name.site);
        } else if place.len.is_some() {
            self.error(format!("an index is missing: {} is an array", name.text), name.site);
        }
    }

    fn run(&mut self) -> Parse<Expr> {
        let site = self.advance().site;
        let name = self.expect_name("the name of a proctype")?;
        let proctype = self.proctype_number(&name)?;
        self.expect("(")?;
        let mut args = Vec::new();
        while !self.at(")") {
            let value = self.expression()?;
            self.flatten_value(value, &mut args);
            if !self.accept(",") && !self.at(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        self.expect(")")?;
        self.priority()?;
        Ok(Expr::Run(Box::new(Run {
            proctype,
            args,
            site: crate::promela::lexer::Site { span: site.span.to(name.site.span), ..site },
        })))
    }

    fn name(&mut self) -> Parse<Expr> {
        let name = self.advance();
        match self.names.find(&name.text) {
            Some(Meaning::Constant(value)) => Ok(Expr::Number(value)),
            Some(Meaning::Proctype(proctype)) => self.remote(proctype, &name),
            Some(Meaning::Variable(_)) => {
                let place = self.place(&name)?;
                let polled = (self.at("?") || self.at("??")) && self.peek_at(1).is("[") && self.continues();
                if polled { self.poll(place, &name) } else { Ok(Expr::Read(place)) }
            }
            Some(Meaning::Typedef(_)) => {
                self.error(format!("{} is a type", name.text), name.site);
                Err(Bad)
            }
            None => {
                let what = if &*name.text == "_" {
                    "_ can only be written".into()
                } else {
                    format!("{} is not declared", name.text)
                };
                self.error(what, name.site);
                self.skip_accesses()?;
                Ok(Expr::Number(0))
            }
        }
    }

    /// `:init:`, which is no name elsewhere.
    fn shown_init(&mut self) -> Parse<Expr> {
        let name = self.advance();
        (0..2).for_each(|_| _ = self.advance());
        match self.program.proctypes.iter().position(|proctype| proctype.name == ":init:") {
            Some(init) => self.remote(init, &Token { text: ":init:".into(), ..name }),
            None => Err(self.unexpected("a process: the model has no init")),
        }
    }

    /// `P[pid]@label`, `P@label`, `P[pid]:variable`, `P:variable`; and, as traces show it, `P(pid).variable`.
    fn remote(&mut self, proctype: usize, name: &Token) -> Parse<Expr> {
        let pid = if self.accept("[") {
            let pid = self.expression()?;
            self.expect("]")?;
            Some(pid)
        } else if self.as_shown && self.accept("(") {
            let pid = self.expression()?;
            self.expect(")")?;
            Some(pid)
        } else {
            None
        };
        let to_label = self.accept("@");
        let to_variable = !to_label && (self.accept(":") || self.as_shown && self.accept("."));
        if !to_label && !to_variable {
            return Err(self.unexpected(&format!("`@` or `:` after the proctype {}", name.text)));
        }
        let part = self.expect_name("a label or a variable")?;
        if to_label {
            self.program.remote_labels.push(part.text.clone());
        }
        let part_of = if to_label { None } else { self.shown_part(proctype, &part)? };
        let index = if !to_label && part_of.is_none() && self.accept("[") {
            let index = self.expression()?;
            self.expect("]")?;
            Some(index)
        } else {
            None
        };
        let remote = Box::new(Remote { proctype, pid, name: part.text, index, part: part_of, site: name.site });
        Ok(if to_label { Expr::AtLabel(remote) } else { Expr::RemoteVariable(remote) })
    }

    /// The part of a structure of a process that begins with `name`, as traces show it.
    fn shown_part(&mut self, proctype: usize, name: &Token) -> Parse<Option<Place>> {
        let mut locals = self.program.proctypes[proctype].locals.iter().enumerate();
        let found = locals.find(|(_, local)| *local.name == *name.text && matches!(local.base, Base::Struct(_)));
        let Some((number, local)) = found.filter(|_| self.as_shown) else { return Ok(None) };
        let place = Place { root: Root::Local(number), path: Vec::new(), base: local.base, len: local.len };
        self.accesses(place).map(Some)
    }

    /// The place that begins with `name`, which was taken already.
    pub fn place(&mut self, name: &Token) -> Parse<Place> {
        let Some(Meaning::Variable(root)) = self.names.find(&name.text) else {
            self.error(format!("{} is not a variable", name.text), name.site);
            return Err(Bad);
        };
        let variable = match root {
            Root::Global(number) => &self.program.globals[number],
            Root::Local(number) => &self.locals[number],
        };
        let place = Place { root, path: Vec::new(), base: variable.base, len: variable.len };
        self.accesses(place)
    }

    fn accesses(&mut self, mut place: Place) -> Parse<Place> {
        loop {
            if self.at("[") && self.continues() {
                let site = self.advance().site;
                let index = self.expression()?;
                self.expect("]")?;
                let indexed = matches!(place.path.last(), Some(Access::Index(_)));
                if place.len.take().is_some() {
                    place.path.push(Access::Index(index));
                } else if indexed || !matches!(index, Expr::Number(0)) {
                    // SPIN takes a scalar for an array of one.
                    self.error("only an array has an index", site);
                }
            } else if self.at(".") {
                self.advance();
                let field = self.expect_name("a field")?;
                self.field(&mut place, &field)?;
            } else {
                return Ok(place);
            }
        }
    }

    fn field(&mut self, place: &mut Place, name: &Token) -> Parse<()> {
        if place.len.is_some() {
            self.error("an index is missing before the field", name.site);
            return Err(Bad);
        }
        let Base::Struct(number) = place.base else {
            self.error("only a structure has fields", name.site);
            return Err(Bad);
        };
        let fields = &self.program.structs[number].fields;
        let Some(index) = fields.iter().position(|field| *field.name == *name.text) else {
            self.error(format!("type {} has no field {}", self.program.structs[number].name, name.text), name.site);
            return Err(Bad);
        };
        (place.base, place.len) = (fields[index].base, fields[index].len);
        place.path.push(Access::Field(index));
        Ok(())
    }

    fn skip_accesses(&mut self) -> Parse<()> {
        loop {
            if self.accept("[") {
                self.expression()?;
                self.expect("]")?;
            } else if self.accept(".") {
                self.advance();
            } else {
                return Ok(());
            }
        }
    }

    /// Adds a value to a list of arguments; a structure is given field by field.
    pub fn flatten_value(&mut self, value: Expr, out: &mut Vec<Expr>) {
        match value {
            Expr::Read(place) => {
                let mut places = Vec::new();
                self.flatten_place(place, &mut places);
                out.extend(places.into_iter().map(Expr::Read));
            }
            value => out.push(value),
        }
    }

    pub fn flatten_place(&self, place: Place, out: &mut Vec<Place>) {
        if out.len() > 1 << 12 {
            return;
        }
        if let Some(len) = place.len {
            for index in 0..len {
                let mut element = place.clone();
                element.len = None;
                element.path.push(Access::Index(Expr::Number(index as i64)));
                self.flatten_place(element, out);
            }
            return;
        }
        let Base::Struct(number) = place.base else { return out.push(place) };
        for (index, field) in self.program.structs[number].fields.iter().enumerate() {
            let mut part = place.clone();
            part.path.push(Access::Field(index));
            (part.base, part.len) = (field.base, field.len);
            self.flatten_place(part, out);
        }
    }
}
