//! Proctypes, `init`, claims and what else stands at the top of a model.

use super::names::Meaning;
use super::{Bad, Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::promela::ast::{Proctype, Stmt};
use crate::promela::lexer::{Site, Token};

const MOST_PROCESSES: i64 = 255;

impl Parser<'_> {
    pub fn units(&mut self) {
        while !self.at_end() && !self.diagnostics.is_full() {
            self.log.clear();
            if self.unit().is_err() {
                self.recover_unit();
            }
            (self.depth, self.parens, self.in_body, self.loops) = (0, 0, false, 0);
            self.open.clear();
            self.inlines.active.clear();
        }
    }

    /// Skips to something that begins a unit.
    fn recover_unit(&mut self) {
        while !self.names.path().is_empty() {
            self.names.close();
        }
        let begins = ["proctype", "D_proctype", "active", "init", "never", "ltl", "inline", "typedef"];
        let begins_here = |parser: &Self| parser.peek().newline && begins.iter().any(|word| parser.at(word));
        while !self.at_end() && !begins_here(self) {
            self.advance();
        }
    }

    fn unit(&mut self) -> Parse<()> {
        let token = self.peek().clone();
        match &*token.text {
            ";" | "->" => {
                self.advance();
                Ok(())
            }
            "active" | "proctype" | "D_proctype" => self.proctype(),
            "init" => self.init(),
            "never" => self.never(),
            "ltl" => self.ltl(),
            "trace" | "notrace" => self.trace(),
            "typedef" => self.typedef(),
            "inline" => self.inline_definition(),
            "c_code" | "c_decl" | "c_state" | "c_track" | "c_expr" => self.c_fragment(),
            _ if self.at_declaration() => self.declaration().map(|_| ()),
            _ => {
                let bad = self.unexpected("a declaration or a proctype");
                self.advance();
                Err(bad)
            }
        }
    }

    /// Everything that may be used before it is declared must be there now.
    pub fn finish(&mut self) {
        if self.diagnostics.error_count() > 0 {
            return;
        }
        let missing: Vec<(String, Site)> = self
            .program
            .proctypes
            .iter()
            .filter(|proctype| !proctype.defined)
            .map(|proctype| (proctype.name.clone(), proctype.site))
            .collect();
        for (name, site) in missing {
            self.error(format!("there is no proctype {name}"), site);
        }
        if self.program.proctypes.is_empty() {
            self.diagnostics.push(Diagnostic::general("the model has no proctype and no init"));
        } else if self.program.initial.is_empty() {
            self.diagnostics
                .push(Diagnostic::general("no process is active: there is neither init nor active proctype"));
        }
    }

    /// The number of a proctype, which may be defined later.
    pub fn proctype_number(&mut self, name: &Token) -> Parse<usize> {
        match self.names.find(&name.text) {
            Some(Meaning::Proctype(number)) => Ok(number),
            Some(_) => {
                self.error(format!("{} is not a proctype", name.text), name.site);
                Err(Bad)
            }
            None => {
                let number = self.program.proctypes.len();
                self.program.proctypes.push(empty(&name.text, name.site));
                let _ = self.names.declare_global(name.text.clone(), Meaning::Proctype(number));
                Ok(number)
            }
        }
    }

    fn proctype(&mut self) -> Parse<()> {
        let mut instances = 0;
        if self.accept("active") {
            instances = 1;
            if self.accept("[") {
                instances = self.constant()?;
                self.expect("]")?;
            }
        }
        if !self.accept("D_proctype") {
            self.expect("proctype")?;
        }
        let name = self.expect_name("the name of the proctype")?;
        let number = self.proctype_number(&name)?;
        if self.program.proctypes[number].defined {
            self.error(format!("proctype {} is defined twice", name.text), name.site);
        }
        if !(0..=MOST_PROCESSES).contains(&instances) {
            self.error(format!("there can be at most {MOST_PROCESSES} processes"), name.site);
            instances = 1;
        }
        self.locals = Vec::new();
        self.names.open();
        self.expect("(")?;
        self.parameters()?;
        self.expect(")")?;
        let params = self.locals.len();
        self.priority()?;
        let provided = if self.accept("provided") {
            self.expect("(")?;
            let value = self.expression()?;
            self.expect(")")?;
            Some(value)
        } else {
            None
        };
        let (body, end) = self.body()?;
        self.names.close();
        let locals = std::mem::take(&mut self.locals);
        let text = name.text.to_string();
        self.program.proctypes[number] =
            Proctype { name: text, params, locals, body, provided, defined: true, site: name.site, end };
        self.program.bodies.push(Some(number));
        self.activate(number, instances as usize, name.site);
        Ok(())
    }

    fn activate(&mut self, number: usize, instances: usize, site: Site) {
        self.program.initial.extend(std::iter::repeat_n(number, instances));
        if self.program.initial.len() > MOST_PROCESSES as usize {
            self.error(format!("there can be at most {MOST_PROCESSES} processes"), site);
            self.program.initial.truncate(MOST_PROCESSES as usize);
        }
    }

    fn init(&mut self) -> Parse<()> {
        let token = self.advance();
        self.locals = Vec::new();
        self.names.open();
        self.priority()?;
        let (body, end) = self.body()?;
        self.names.close();
        let number = self.program.proctypes.len();
        let locals = std::mem::take(&mut self.locals);
        let mut init = empty(":init:", token.site);
        (init.locals, init.body, init.defined, init.end) = (locals, body, true, end);
        self.program.proctypes.push(init);
        self.program.bodies.push(Some(number));
        self.activate(number, 1, token.site);
        Ok(())
    }

    fn never(&mut self) -> Parse<()> {
        let token = self.advance();
        if self.at_word() && !self.at("{") {
            self.advance();
        }
        self.locals = Vec::new();
        self.names.open();
        let (body, end) = self.body()?;
        self.names.close();
        let mut claim = empty("never", token.site);
        (claim.locals, claim.body, claim.defined, claim.end) = (std::mem::take(&mut self.locals), body, true, end);
        self.program.bodies.push(None);
        if self.program.never.replace(claim).is_some() {
            self.error("only one never claim is supported", token.site);
        }
        Ok(())
    }

    fn ltl(&mut self) -> Parse<()> {
        let token = self.advance();
        let name =
            if self.at("{") { String::new() } else { self.expect_name("the name of the formula")?.text.to_string() };
        let formula = self.braced()?;
        let labels = formula.windows(2).filter(|pair| pair[0].is("@")).map(|pair| pair[1].text.clone());
        self.program.remote_labels.extend(labels);
        self.program.ltl.push((name, token.site));
        Ok(())
    }

    fn trace(&mut self) -> Parse<()> {
        let token = self.advance();
        self.braced()?;
        self.program.traces.push(token.site);
        Ok(())
    }

    /// Reports embedded C and steps over it.
    pub fn c_fragment(&mut self) -> Parse<()> {
        let token = self.advance();
        let message = format!("{} is not supported: models are executed without a C compiler", token.text);
        self.error(message, token.site);
        while self.peek().kind == crate::promela::lexer::TokenKind::Text {
            self.advance();
        }
        if self.at("[") || self.at("{") {
            while !self.at("{") && !self.at_end() {
                self.advance();
            }
            self.braced()?;
        }
        Ok(())
    }

    /// Priorities change which processes may run, so they cannot just be skipped.
    pub fn priority(&mut self) -> Parse<()> {
        if self.at("priority") {
            let token = self.advance();
            self.constant()?;
            self.error("priorities are not supported: a process may move here whenever it can", token.site);
        }
        Ok(())
    }

    /// `{ sequence }` of a process, and where it ends.
    fn body(&mut self) -> Parse<(Vec<Stmt>, Site)> {
        self.expect("{")?;
        self.names.open();
        self.in_body = true;
        self.initialises = true;
        let body = self.sequence()?;
        let end = self.expect("}")?.site;
        self.in_body = false;
        self.names.close();
        Ok((body, end))
    }
}

fn empty(name: &str, site: Site) -> Proctype {
    Proctype {
        name: name.into(),
        params: 0,
        locals: Vec::new(),
        body: Vec::new(),
        provided: None,
        defined: false,
        site,
        end: site,
    }
}
