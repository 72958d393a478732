//! Reading declarations, commands and properties.

use super::lex::{ParseError, Position, Token, tokens};
use super::print::KINDS;
use crate::expr::Expr;
use crate::system::{
    Act, Choice, Command, Deadlock, Faults, Kind, Procedure, Process, ProcessId, Property, PropertyKind, System,
    TempId, Var, VarId,
};
use crate::types::{EnumId, Enumeration, Scalar, Type};
use crate::verify::TYPE_DEPTH_LIMIT;
use std::collections::HashMap;

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// Reads the textual form of a system. Never panics; the result is not verified yet.
pub fn parse(text: &str) -> Result<System> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens,
        at: 0,
        system: System::new(""),
        vars: Names::default(),
        temps: Names::default(),
        references: Vec::new(),
    };
    parser.keyword("system")?;
    parser.system.name = parser.text()?;
    let owners = parser.declarations()?;
    parser.resolve_owners(owners)?;
    parser.rest()?;
    Ok(parser.system)
}

/// Names in use, with their numbers; `None` for a name that occurs twice.
#[derive(Default)]
pub(super) struct Names(HashMap<String, Option<u32>>);

impl Names {
    fn add(&mut self, name: &str, number: usize) {
        self.0.entry(name.to_string()).and_modify(|number| *number = None).or_insert(Some(number as u32));
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        self.0.get(name).copied().flatten()
    }
}

pub(super) struct Parser {
    tokens: Vec<(Token, Position)>,
    at: usize,
    pub system: System,
    pub vars: Names,
    /// Those of the command or property at hand.
    pub temps: Names,
    /// Those of the procedure at hand.
    pub references: Vec<(String, Type)>,
}

type Owner = (usize, Token, Position);

impl Parser {
    pub fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    /// The token after the next one.
    pub fn after(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }

    pub fn position(&self) -> Position {
        self.tokens[self.at].1
    }

    pub fn next(&mut self) -> Token {
        let token = self.tokens[self.at].0.clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    pub fn expected<T>(&self, what: &str) -> Result<T> {
        Err(self.position().error(format!("expected {what}, found {}", self.peek())))
    }

    pub fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Token::Word(word) if word == keyword)
    }

    pub fn eat_keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        self.at += found as usize;
        found
    }

    pub fn keyword(&mut self, keyword: &str) -> Result<()> {
        if self.eat_keyword(keyword) { Ok(()) } else { self.expected(&format!("`{keyword}`")) }
    }

    pub fn eat(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(other) if *other == sign);
        self.at += found as usize;
        found
    }

    pub fn sign(&mut self, sign: &str) -> Result<()> {
        if self.eat(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    pub fn text(&mut self) -> Result<String> {
        match self.peek() {
            Token::Text(_) => match self.next() {
                Token::Text(text) => Ok(text),
                _ => unreachable!("just seen"),
            },
            _ => self.expected("a quoted text"),
        }
    }

    fn name(&mut self) -> Result<String> {
        match self.peek().clone() {
            Token::Word(name) | Token::Text(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => self.expected("a name"),
        }
    }

    pub fn number<T: TryFrom<u64>>(&mut self) -> Result<T> {
        match *self.peek() {
            Token::Number(number) => match T::try_from(number) {
                Ok(number) => {
                    self.at += 1;
                    Ok(number)
                }
                Err(_) => self.expected("a smaller number"),
            },
            _ => self.expected("a number"),
        }
    }

    /// A number with its sign; all of 64 bits.
    pub fn integer(&mut self) -> Result<i64> {
        let position = self.position();
        let negative = self.eat("-");
        let magnitude = i128::from(self.number::<u64>()?);
        let value = if negative { -magnitude } else { magnitude };
        i64::try_from(value).map_err(|_| position.error(format!("{value} does not fit in 64 bits")))
    }

    /// A reference by name or number to one of `names`.
    pub fn reference<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a str> + Clone) -> Result<u32> {
        let (token, position) = (self.peek().clone(), self.position());
        let number = find_reference(&token, position, what, names)?;
        self.at += 1;
        Ok(number)
    }

    fn declarations(&mut self) -> Result<Vec<Owner>> {
        let mut owners = Vec::new();
        loop {
            if self.eat_keyword("enum") {
                self.enumeration()?;
            } else if self.eat_keyword("var") {
                owners.extend(self.var()?);
            } else if self.eat_keyword("process") {
                self.process()?;
            } else {
                return Ok(owners);
            }
        }
    }

    /// Names in braces, separated by commas.
    fn names(&mut self) -> Result<Vec<String>> {
        self.sign("{")?;
        let mut names = Vec::new();
        if self.eat("}") {
            return Ok(names);
        }
        loop {
            names.push(self.name()?);
            if !self.eat(",") {
                self.sign("}")?;
                return Ok(names);
            }
        }
    }

    fn enumeration(&mut self) -> Result<()> {
        let name = self.name()?;
        self.keyword("from")?;
        let first = self.integer()?;
        let labels = self.names()?;
        self.system.enums.push(Enumeration { name, first, labels });
        Ok(())
    }

    /// Declares a variable; its owner may be declared later.
    fn var(&mut self) -> Result<Option<Owner>> {
        let name = self.name()?;
        self.sign(":")?;
        let ty = self.ty(0)?;
        let owner = self.eat_keyword("of").then(|| {
            let position = self.position();
            (self.system.vars.len(), self.next(), position)
        });
        let mut init = Vec::new();
        if self.eat("=") {
            init.push(self.integer()?);
            while self.eat(",") {
                init.push(self.integer()?);
            }
        }
        self.vars.add(&name, self.system.vars.len());
        self.system.vars.push(Var { name, ty, owner: None, init });
        Ok(owner)
    }

    fn resolve_owners(&mut self, owners: Vec<Owner>) -> Result<()> {
        for (var, token, position) in owners {
            let names = self.system.processes.iter().map(|process| process.name.as_str());
            let owner = find_reference(&token, position, "process", names)?;
            self.system.vars[var].owner = Some(ProcessId(owner));
        }
        Ok(())
    }

    fn ty(&mut self, depth: usize) -> Result<Type> {
        if depth > TYPE_DEPTH_LIMIT {
            return Err(self.position().error("this type is nested too deep"));
        }
        if self.eat("[") {
            let len = self.number()?;
            self.sign("]")?;
            return Ok(Type::array(self.ty(depth + 1)?, len));
        }
        if self.eat("{") {
            let mut fields = Vec::new();
            loop {
                let name = self.name()?;
                self.sign(":")?;
                fields.push((name, self.ty(depth + 1)?));
                if !self.eat(",") {
                    self.sign("}")?;
                    return Ok(Type::Record(fields));
                }
            }
        }
        let (low, high) = self.range()?;
        let mut names = None;
        if self.eat_keyword("as") {
            let enums = std::mem::take(&mut self.system.enums);
            let found = self.reference("enumeration", enums.iter().map(|enumeration| enumeration.name.as_str()));
            self.system.enums = enums;
            names = Some(EnumId(found?));
        }
        Ok(Type::Scalar(Scalar { low, high, names }))
    }

    fn range(&mut self) -> Result<(i64, i64)> {
        let low = self.integer()?;
        self.sign("..")?;
        Ok((low, self.integer()?))
    }

    fn process(&mut self) -> Result<()> {
        let name = self.name()?;
        self.keyword("at")?;
        let location = self.var_reference()?;
        let locations = self.names()?;
        self.system.processes.push(Process { name, location, locations });
        Ok(())
    }

    pub fn var_reference(&mut self) -> Result<VarId> {
        let found = match self.peek() {
            Token::Word(name) => self.vars.find(name),
            Token::Numbered(number) if (*number as usize) < self.system.vars.len() => Some(*number),
            _ => None,
        };
        match found {
            Some(number) => {
                self.at += 1;
                Ok(VarId(number))
            }
            None => self.expected("a variable"),
        }
    }

    /// Conventions, commands and properties, in any order.
    fn rest(&mut self) -> Result<()> {
        loop {
            match self.peek().clone() {
                Token::End => return Ok(()),
                Token::Word(word) => {
                    self.at += 1;
                    match word.as_str() {
                        "faults" => self.faults()?,
                        "deadlock" => self.deadlock()?,
                        "exclusive" => self.system.exclusive = Some(self.var_reference()?),
                        "procedure" => self.procedure()?,
                        "start" => {
                            let command = self.command()?;
                            self.system.starts.push(command);
                        }
                        "command" => {
                            let command = self.command()?;
                            self.system.commands.push(command);
                        }
                        "invariant" => self.property(PropertyKind::Invariant)?,
                        "goal" => self.property(PropertyKind::Goal)?,
                        _ => {
                            self.at -= 1;
                            return self.expected("a command or property");
                        }
                    }
                }
                _ => return self.expected("a command or property"),
            }
        }
    }

    fn faults(&mut self) -> Result<()> {
        self.system.faults = if self.eat_keyword("absorb") {
            Faults::Absorb
        } else {
            self.keyword("vanish")?;
            Faults::Vanish
        };
        Ok(())
    }

    fn deadlock(&mut self) -> Result<()> {
        self.system.deadlock = if self.eat_keyword("never") {
            Deadlock::Never
        } else if self.eat_keyword("stuttering") {
            Deadlock::Stuttering
        } else {
            self.keyword("stuck")?;
            let accepted = if self.eat_keyword("unless") { Some(self.expr(&[])?) } else { None };
            Deadlock::Stuck { accepted }
        };
        Ok(())
    }

    fn command(&mut self) -> Result<Command> {
        let mut command = Command::new(self.text()?);
        if self.eat_keyword("line") {
            command.line = self.number()?;
        }
        if self.eat_keyword("kind") {
            command.kind = self.kind()?;
        }
        if self.eat_keyword("rank") {
            command.rank = self.number()?;
        }
        if self.eat_keyword("at") {
            command.at.push(self.standing()?);
            while self.eat(",") {
                command.at.push(self.standing()?);
            }
        }
        while self.eat_keyword("act") {
            command.acts.push(self.act()?);
        }
        self.sign("{")?;
        self.typed("temp", &mut command.temps)?;
        while self.eat_keyword("choose") {
            let temp = self.temp_reference(&command.temps)?;
            self.keyword("in")?;
            let (low, high) = self.range()?;
            command.choices.push(Choice { temp, low, high });
        }
        if self.eat_keyword("before") {
            command.prelude = self.block(&command.temps)?;
        }
        if self.eat_keyword("when") {
            command.guard = self.expr(&command.temps)?;
        }
        if self.eat_keyword("do") {
            command.body = self.block(&command.temps)?;
        }
        self.end_of_temps()?;
        Ok(command)
    }

    fn kind(&mut self) -> Result<Kind> {
        let Some(&(kind, _)) = KINDS.iter().find(|(_, name)| self.is_keyword(name)) else {
            return self.expected("a kind of command");
        };
        self.at += 1;
        Ok(kind)
    }

    /// `process "who" "text" kind … in "file" line … number … …`
    fn act(&mut self) -> Result<Act> {
        let processes = std::mem::take(&mut self.system.processes);
        let process = self.reference("process", processes.iter().map(|process| process.name.as_str()));
        self.system.processes = processes;
        let (process, who, text) = (ProcessId(process?), self.text()?, self.text()?);
        self.keyword("kind")?;
        let kind = self.kind()?;
        self.keyword("in")?;
        let file = self.text()?;
        self.keyword("line")?;
        let line = self.number()?;
        self.keyword("number")?;
        let number = (self.number()?, self.number()?);
        Ok(Act { process, who, text, kind, file, line, number })
    }

    /// `process.location`
    fn standing(&mut self) -> Result<(ProcessId, u32)> {
        let processes = std::mem::take(&mut self.system.processes);
        let found = self.standing_among(&processes);
        self.system.processes = processes;
        found
    }

    fn standing_among(&mut self, processes: &[Process]) -> Result<(ProcessId, u32)> {
        let process = self.reference("process", processes.iter().map(|process| process.name.as_str()))?;
        self.sign(".")?;
        let locations = processes[process as usize].locations.iter().map(String::as_str);
        Ok((ProcessId(process), self.reference("location", locations)?))
    }

    fn procedure(&mut self) -> Result<()> {
        let name = self.text()?;
        let line = if self.eat_keyword("line") { self.number()? } else { 0 };
        self.sign("{")?;
        while self.eat_keyword("reference") {
            let name = self.name()?;
            self.sign(":")?;
            let ty = self.ty(0)?;
            self.references.push((name, ty));
        }
        let mut temps = Vec::new();
        self.typed("input", &mut temps)?;
        let inputs = temps.len();
        self.typed("temp", &mut temps)?;
        let mut outputs = Vec::new();
        while self.eat_keyword("output") {
            outputs.push(self.temp_reference(&temps)?);
        }
        let recursion = if self.eat_keyword("recursion") { self.number()? } else { 0 };
        let own = Procedure { name, line, references: Vec::new(), temps, inputs, outputs, recursion, body: Vec::new() };
        // The body may name the procedure itself.
        self.system.procedures.push(own.clone());
        let body = if self.eat_keyword("do") { self.block(&own.temps)? } else { Vec::new() };
        self.end_of_temps()?;
        self.system.procedures.pop();
        let references = std::mem::take(&mut self.references);
        self.system.procedures.push(Procedure { references, body, ..own });
        Ok(())
    }

    /// Temporaries introduced by a keyword.
    fn typed(&mut self, keyword: &str, temps: &mut Vec<(String, Type)>) -> Result<()> {
        while self.eat_keyword(keyword) {
            let name = self.name()?;
            self.sign(":")?;
            self.temps.add(&name, temps.len());
            temps.push((name, self.ty(0)?));
        }
        Ok(())
    }

    pub fn temp_reference(&mut self, temps: &[(String, Type)]) -> Result<TempId> {
        let found = match self.peek() {
            Token::Word(name) => self.temps.find(name),
            Token::Temp(number) if (*number as usize) < temps.len() => Some(*number),
            _ => None,
        };
        match found {
            Some(number) => {
                self.at += 1;
                Ok(TempId(number))
            }
            None => self.expected("a temporary"),
        }
    }

    fn end_of_temps(&mut self) -> Result<()> {
        self.sign("}")?;
        self.temps = Names::default();
        Ok(())
    }

    fn property(&mut self, kind: PropertyKind) -> Result<()> {
        let mut property =
            Property { name: self.text()?, line: 0, kind, temps: Vec::new(), prelude: Vec::new(), expr: Expr::TRUE };
        if self.eat_keyword("line") {
            property.line = self.number()?;
        }
        self.sign("{")?;
        self.typed("temp", &mut property.temps)?;
        if self.eat_keyword("before") {
            property.prelude = self.block(&property.temps)?;
        }
        self.keyword("expect")?;
        property.expr = self.expr(&property.temps)?;
        self.end_of_temps()?;
        self.system.properties.push(property);
        Ok(())
    }
}

fn find_reference<'a>(
    token: &Token,
    position: Position,
    what: &str,
    mut names: impl Iterator<Item = &'a str> + Clone,
) -> Result<u32> {
    let found = match token {
        Token::Numbered(number) => names.nth(*number as usize).map(|_| *number),
        Token::Word(word) => {
            let mut matching = names.enumerate().filter(|(_, name)| name == word);
            let first = matching.next().map(|(index, _)| index as u32);
            if matching.next().is_some() {
                return Err(position.error(format!("more than one {what} is called {token}; use a number")));
            }
            first
        }
        _ => None,
    };
    found.ok_or_else(|| position.error(format!("there is no {what} {token}")))
}
