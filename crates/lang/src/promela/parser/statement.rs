//! Statements, and the spelling out of `for` and `select`.

use super::names::{self, Meaning};
use super::{Bad, Parse, Parser};
use crate::promela::ast::{Base, Choose, Expr, Init, Pattern, Place, Probe, Root, Step, Stmt, StmtKind, Variable};
use crate::promela::lexer::{Site, TokenKind};
use plimsoll_ir::BinOp;

/// `select` over more values than this is a loop.
const WIDEST_SELECT: i64 = 32;

impl Parser<'_> {
    /// Statements up to what ends a sequence; that stays.
    pub fn sequence(&mut self) -> Parse<Vec<Stmt>> {
        self.open.push(Vec::new());
        let result = self.statements();
        let sequence = self.open.pop().expect("it was pushed above");
        result?;
        // The body of a process may hold nothing but declarations.
        if sequence.is_empty() && !self.open.is_empty() {
            let site = self.peek().site;
            self.error("a sequence needs at least one statement", site);
        }
        Ok(sequence)
    }

    fn statements(&mut self) -> Parse<()> {
        loop {
            while self.accept(";") || self.accept("->") {}
            if self.at_sequence_end() {
                return Ok(());
            }
            if self.step().is_err() {
                if self.diagnostics.is_full() {
                    return Err(Bad);
                }
                self.recover();
                if !self.at(";") && !self.at("->") && !self.at_sequence_end() {
                    return Err(Bad);
                }
                continue;
            }
            let separated = self.at(";") || self.at("->") || self.peek().newline;
            let closed = self.previous.is("}") || self.previous.is("else");
            if !separated && !closed && !self.at_sequence_end() {
                return Err(self.unexpected("`;` or `->` between statements"));
            }
        }
    }

    fn at_sequence_end(&self) -> bool {
        self.at_end() || self.at("}") || self.at("::") || self.at("od") || self.at("fi")
    }

    /// One declaration or statement, added to the open sequence.
    fn step(&mut self) -> Parse<()> {
        self.log.clear();
        if self.at_declaration() {
            return self.declaration();
        }
        if self.at("xr") || self.at("xs") {
            return self.exclusive_use();
        }
        let stmt = self.statement()?;
        let stmt = if self.at("unless") { self.unless(stmt)? } else { stmt };
        self.add(stmt);
        Ok(())
    }

    fn add(&mut self, stmt: Stmt) {
        self.open.last_mut().expect("a sequence is open").push(stmt);
    }

    /// `xr q` and `xs q` are promises for partial order reduction; they change nothing here.
    fn exclusive_use(&mut self) -> Parse<()> {
        self.advance();
        loop {
            self.channel_place()?;
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    fn unless(&mut self, normal: Stmt) -> Parse<Stmt> {
        let site = self.advance().site;
        let escape = self.statement()?;
        if !escape.labels.is_empty() {
            self.error("a label cannot stand at the guard of an escape", site);
        }
        let (labels, normal) = match normal {
            Stmt { kind: StmtKind::Block(inner), labels, .. } => (labels, inner),
            mut other => (std::mem::take(&mut other.labels), vec![other]),
        };
        let escape = match escape {
            Stmt { kind: StmtKind::Block(inner), .. } => inner,
            other => vec![other],
        };
        Ok(Stmt { kind: StmtKind::Unless(normal, escape), labels, site, text: String::new() })
    }

    fn statement(&mut self) -> Parse<Stmt> {
        self.deeper(Self::labelled)
    }

    fn labelled(&mut self) -> Parse<Stmt> {
        let token = self.peek().clone();
        let named = token.kind == TokenKind::Word && !names::is_keyword(&token.text);
        let proctype = matches!(self.names.find(&token.text), Some(Meaning::Proctype(_)));
        if !named || !self.peek_at(1).is(":") || proctype {
            self.log.clear();
            return self.unlabelled();
        }
        let name = self.advance();
        self.expect(":")?;
        if matches!(self.names.find(&name.text), Some(Meaning::Variable(_))) {
            self.error(format!("{} is a variable and cannot be a label", name.text), name.site);
        }
        let label = self.label(&name);
        if self.at_declaration() {
            self.error("a label cannot stand before a declaration", name.site);
            return Err(Bad);
        }
        while self.at(";") && self.at_end() {
            self.advance();
        }
        let mut stmt = if self.at(";") || self.at("->") || self.at_sequence_end() {
            self.initialises = false;
            self.leaf(Step::Condition(Expr::Number(1)), name.site, "skip".into())
        } else {
            self.statement()?
        };
        stmt.labels.push(label);
        Ok(stmt)
    }

    fn leaf(&self, step: Step, site: Site, text: String) -> Stmt {
        Stmt { kind: StmtKind::Step(step), labels: Vec::new(), site, text }
    }

    fn unlabelled(&mut self) -> Parse<Stmt> {
        let token = self.peek().clone();
        let site = token.site;
        let wrap = |kind| Stmt { kind, labels: Vec::new(), site, text: token.text.to_string() };
        let stmt = match &*token.text {
            "if" | "do" => self.choose()?,
            "for" => self.for_loop()?,
            "select" => self.select()?,
            "atomic" | "d_step" => {
                self.advance();
                let Stmt { kind: StmtKind::Block(inner), .. } = self.block()? else { return Err(Bad) };
                wrap(if token.is("atomic") { StmtKind::Atomic(inner) } else { StmtKind::DStep(inner) })
            }
            "{" => self.block()?,
            "else" => {
                self.advance();
                wrap(StmtKind::Else)
            }
            "break" => {
                self.advance();
                if self.loops == 0 {
                    self.error("break stands outside a loop", site);
                }
                wrap(StmtKind::Break)
            }
            "goto" => {
                self.advance();
                let name = self.expect_name("a label")?;
                let label = self.label(&name);
                Stmt { text: format!("goto {}", name.text), ..wrap(StmtKind::Goto(label)) }
            }
            "return" => self.return_value()?,
            "c_code" => {
                self.c_fragment()?;
                wrap(StmtKind::Step(Step::Nothing))
            }
            "set_priority" => {
                self.error("priorities are not supported: a process may move whenever it can", site);
                return Err(Bad);
            }
            _ if self.inlines.knows(&token.text) && self.peek_at(1).is("(") => self.inline_call(None)?,
            _ => self.simple()?,
        };
        self.initialises = false;
        Ok(stmt)
    }

    /// `{ sequence }`
    pub fn block(&mut self) -> Parse<Stmt> {
        let site = self.expect("{")?.site;
        self.names.open();
        self.initialises = false;
        let inner = self.deeper(Self::sequence);
        self.names.close();
        let inner = inner?;
        self.expect("}")?;
        Ok(Stmt { kind: StmtKind::Block(inner), labels: Vec::new(), site, text: String::new() })
    }

    fn choose(&mut self) -> Parse<Stmt> {
        let token = self.advance();
        let repeats = token.is("do");
        self.loops += repeats as usize;
        let mut options = Vec::new();
        while self.accept("::") {
            self.initialises = false;
            options.push(self.deeper(Self::sequence)?);
        }
        self.loops -= repeats as usize;
        if options.is_empty() {
            return Err(self.unexpected("`::`"));
        }
        self.expect(if repeats { "od" } else { "fi" })?;
        let kind = StmtKind::Choose(Choose { repeats, prunes: true, options });
        Ok(Stmt { kind, labels: Vec::new(), site: token.site, text: String::new() })
    }

    fn return_value(&mut self) -> Parse<Stmt> {
        let site = self.advance().site;
        let value = self.expression()?;
        match self.inlines.active.last().and_then(|(_, result)| result.clone()) {
            Some(place) => {
                let text = self.text_since(0);
                Ok(self.leaf(Step::Assign(place, value), site, text))
            }
            None => {
                self.error("return can only stand in an inline whose value is assigned", site);
                Err(Bad)
            }
        }
    }

    /// Statements that are one step.
    fn simple(&mut self) -> Parse<Stmt> {
        let token = self.peek().clone();
        let step = match &*token.text {
            "printf" | "printm" => {
                self.advance();
                self.print_arguments()?;
                Step::Print
            }
            "assert" => {
                self.advance();
                Step::Assert(self.expression()?)
            }
            "_" if self.peek_at(1).is("=") => {
                self.advance();
                self.advance();
                self.expression()?;
                Step::Print
            }
            _ => {
                let value = self.expression()?;
                if let (Expr::Read(place), true) = (&value, self.at("=") && self.inlines.knows(&self.peek_at(1).text)) {
                    let place = place.clone();
                    self.advance();
                    return self.inline_call(Some(place));
                }
                self.after_expression(value, token.site)?
            }
        };
        let text = self.text_since(0);
        let site = Site { span: token.site.span.to(self.previous.site.span), ..token.site };
        Ok(self.leaf(step, site, text))
    }

    fn print_arguments(&mut self) -> Parse<()> {
        self.expect("(")?;
        if self.peek().kind == TokenKind::Text {
            self.advance();
            if !self.accept(",") {
                return self.expect(")").map(|_| ());
            }
        }
        loop {
            self.expression()?;
            if !self.accept(",") {
                return self.expect(")").map(|_| ());
            }
        }
    }

    /// An expression stood at the beginning; is it a condition, or the left side of something?
    fn after_expression(&mut self, value: Expr, site: Site) -> Parse<Step> {
        if let Expr::Read(place) = &value
            && self.continues()
        {
            let text = self.peek().text.clone();
            let place = place.clone();
            match &*text {
                "=" => {
                    self.check_scalar(&place, site);
                    self.advance();
                    let from = self.peek().site;
                    let value = self.expression()?;
                    self.check_fits(place.base, &value, from);
                    return Ok(Step::Assign(place, value));
                }
                "++" | "--" => {
                    self.check_scalar(&place, site);
                    self.advance();
                    let op = if &*text == "++" { BinOp::Add } else { BinOp::Sub };
                    let value = Expr::binary(op, Expr::Read(place.clone()), Expr::Number(1));
                    return Ok(Step::Assign(place, value));
                }
                "!" | "!!" | "?" | "??" => {
                    self.check_scalar(&place, site);
                    if place.base != Base::Chan {
                        self.error("this is not a channel", site);
                    }
                    return if text.starts_with('!') { self.send(place) } else { self.receive(place) };
                }
                _ => {}
            }
        }
        Ok(Step::Condition(value))
    }

    fn check_scalar(&mut self, place: &Place, site: Site) {
        if place.len.is_some() {
            self.error("an index is missing: this is an array", site);
        } else if matches!(place.base, Base::Struct(_)) {
            self.error("a field is missing: this is a structure", site);
        }
    }

    /// Warns of a constant that loses bits when it is stored.
    pub fn check_fits(&mut self, base: Base, value: &Expr, from: Site) {
        let (low, high) = match base {
            Base::Bit => (0, 1),
            Base::Byte | Base::Mtype | Base::Chan => (0, 255),
            Base::Short => (i16::MIN.into(), i16::MAX.into()),
            Base::Unsigned(width) if width < 32 => (0, (1i64 << width) - 1),
            Base::Unsigned(_) | Base::Int | Base::Struct(_) => return,
        };
        if let Expr::Number(number) = value
            && !(low..=high).contains(number)
        {
            let site = Site { span: from.span.to(self.previous.site.span), ..from };
            self.warning(format!("{number} does not fit the variable, which holds {low} to {high}"), site);
        }
    }

    /// `for (i : a .. b) { … }`, `for (i in array) { … }`, `for (message in channel) { … }`
    fn for_loop(&mut self) -> Parse<Stmt> {
        let site = self.advance().site;
        self.expect("(")?;
        let name = self.expect_name("a variable")?;
        let index = self.place(&name)?;
        let (counter, condition, mut first) = if self.accept(":") {
            self.check_scalar(&index, name.site);
            let from = self.expression()?;
            self.expect("..")?;
            let to = self.expression()?;
            self.add_assignment(&index, from, site);
            let condition = Expr::binary(BinOp::Le, Expr::Read(index.clone()), to);
            (index, condition, Vec::new())
        } else {
            self.expect("in")?;
            let over = self.expect_name("an array or a channel")?;
            let place = self.place(&over)?;
            match (place.len, place.base) {
                (Some(len), _) => {
                    self.check_scalar(&index, name.site);
                    self.add_assignment(&index, Expr::Number(0), site);
                    let last = Expr::Number(len as i64 - 1);
                    (index.clone(), Expr::binary(BinOp::Le, Expr::Read(index), last), Vec::new())
                }
                (None, Base::Chan) => self.for_messages(index, place, site),
                _ => {
                    self.error("for … in goes over an array or a channel", over.site);
                    return Err(Bad);
                }
            }
        };
        self.expect(")")?;
        while self.accept(";") {}
        let text = format!("for condition on {}", name.text);
        first.insert(0, self.leaf(Step::Condition(condition), site, text));
        self.loops += 1;
        let body = self.block();
        self.loops -= 1;
        let Stmt { kind: StmtKind::Block(inner), .. } = body? else { return Err(Bad) };
        first.extend(inner);
        Ok(self.counting_loop(counter, first, true, site))
    }

    /// Every message is taken and put back once; a hidden local counts.
    fn for_messages(&mut self, message: Place, channel: Place, site: Site) -> (Place, Expr, Vec<Stmt>) {
        let name = format!("_for_{}", self.locals.len());
        self.locals.push(Variable { name, base: Base::Byte, len: None, init: Init::Zero, hidden: false, site });
        let root = Root::Local(self.locals.len() - 1);
        let counter = Place { root, path: Vec::new(), base: Base::Byte, len: None };
        self.add_assignment(&counter, Expr::Number(0), site);
        let length = Expr::Probe(Probe::Len, channel.clone());
        let condition = Expr::binary(BinOp::Lt, Expr::Read(counter.clone()), length);
        let mut parts = Vec::new();
        self.flatten_place(message, &mut parts);
        let values = parts.iter().cloned().map(Expr::Read).collect();
        let patterns = parts.into_iter().map(Pattern::Store).collect();
        let receive = Step::Receive { channel: channel.clone(), args: patterns, random: false, keeps: false };
        let send = Step::Send { channel, args: values, sorted: false };
        let steps = vec![self.leaf(receive, site, "for receive".into()), self.leaf(send, site, "for send".into())];
        (counter, condition, steps)
    }

    /// The first step of a loop, which shows the head of the loop up to what is closed next.
    fn add_assignment(&mut self, place: &Place, value: Expr, site: Site) {
        let mut text = self.text_since(0);
        if self.at(")") {
            text.push(')');
        }
        let stmt = self.leaf(Step::Assign(place.clone(), value), site, text);
        self.add(stmt);
    }

    /// `do :: body; counter++ :: [else ->] break od`
    fn counting_loop(&self, counter: Place, mut body: Vec<Stmt>, with_else: bool, site: Site) -> Stmt {
        let next = Expr::binary(BinOp::Add, Expr::Read(counter.clone()), Expr::Number(1));
        body.push(self.leaf(Step::Assign(counter, next), site, "next round".into()));
        let plain = |kind, text: &str| Stmt { kind, labels: Vec::new(), site, text: text.into() };
        let mut leave = vec![plain(StmtKind::Break, "break")];
        if with_else {
            leave.insert(0, plain(StmtKind::Else, "else"));
        }
        let options = if with_else { vec![body, leave] } else { vec![leave, body] };
        plain(StmtKind::Choose(Choose { repeats: true, prunes: false, options }), "")
    }

    /// `select (i : a .. b)`: a choice between assignments if the text is as simple as SPIN wants it, else a loop.
    fn select(&mut self) -> Parse<Stmt> {
        let site = self.advance().site;
        self.expect("(")?;
        let name = self.expect_name("a variable")?;
        let index = self.place(&name)?;
        self.check_scalar(&index, name.site);
        self.expect(":")?;
        let literal = matches!(self.peek().kind, TokenKind::Number(_)) && self.peek_at(1).is("..");
        let from = self.expression()?;
        self.expect("..")?;
        let literal = literal && matches!(self.peek().kind, TokenKind::Number(_)) && self.peek_at(1).is(")");
        let to = self.expression()?;
        self.expect(")")?;
        let simple = index.path.is_empty() && !name.text.contains('_') && self.inlines.active.is_empty();
        if let (true, Expr::Number(first), Expr::Number(last)) = (literal && simple, &from, &to) {
            if first > last {
                self.error("the range is empty", site);
                return Err(Bad);
            }
            if last - first <= WIDEST_SELECT {
                let text = |value| format!("{} = {value}", name.text);
                let option = |value| {
                    let step = Step::Assign(index.clone(), Expr::Number(value));
                    vec![self.leaf(step, site, text(value))]
                };
                let options = (*first..=*last).map(option).collect();
                let kind = StmtKind::Choose(Choose { repeats: false, prunes: true, options });
                return Ok(Stmt { kind, labels: Vec::new(), site, text: String::new() });
            }
        }
        self.add_assignment(&index, from, site);
        let condition = Expr::binary(BinOp::Lt, Expr::Read(index.clone()), to);
        let body = vec![self.leaf(Step::Condition(condition), site, format!("select on {}", name.text))];
        Ok(self.counting_loop(index, body, false, site))
    }
}
