//! Declarations: variables, channels, typedefs and mtypes.

use super::names::Meaning;
use super::{Bad, Parse, Parser};
use crate::promela::ast::{Access, Base, ChannelType, Expr, Init, Place, Root, Step, Stmt, StmtKind, Struct, Variable};
use crate::promela::lexer::{Token, TokenKind};
use std::sync::Arc;

const LONGEST_ARRAY: i64 = 1 << 20;
const LARGEST_CAPACITY: i64 = 1 << 16;
/// Scalars that one message or structure may consist of.
const MOST_FIELDS: usize = 1 << 12;
const MOST_MTYPES: usize = 255;

impl Parser<'_> {
    pub fn at_declaration(&self) -> bool {
        let visible = self.at("hidden") || self.at("show") || self.at("local");
        let token = self.peek_at(visible as usize);
        visible || token.kind == TokenKind::Word && self.is_type(token)
    }

    fn is_type(&self, token: &Token) -> bool {
        match &*token.text {
            "bit" | "bool" | "byte" | "pid" | "short" | "int" | "mtype" | "chan" | "unsigned" => true,
            name => matches!(self.names.find(name), Some(Meaning::Typedef(_))),
        }
    }

    /// One declaration; in a body it may add steps to the open sequence.
    pub fn declaration(&mut self) -> Parse<()> {
        let hidden = self.at("hidden");
        if hidden || self.at("show") || self.at("local") {
            self.advance();
        }
        if self.at("mtype") && self.at_mtype_set() {
            return self.mtype_set();
        }
        let base = self.base_type()?;
        loop {
            let start = self.log.len();
            let mut variable = self.variable(base)?;
            variable.hidden = hidden;
            if let Some(step) = self.initialisation(&mut variable) {
                let root = self.declare(variable.clone());
                let site = variable.site;
                let text =
                    format!("{} = {}", variable.name, self.text_since(start).split('=').nth(1).unwrap_or("0").trim());
                let kind = StmtKind::Step(step(root));
                self.open.last_mut().expect("a body is open").push(Stmt { kind, labels: Vec::new(), site, text });
            } else {
                self.declare(variable);
            }
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    /// A declaration after the first statement is a step that assigns: to the variable, or to the first
    /// element of an array. Structures are not touched, but their declaration is a step too.
    fn initialisation(&mut self, variable: &mut Variable) -> Option<impl FnOnce(Root) -> Step + use<>> {
        if !self.in_body || self.initialises {
            return None;
        }
        let init = std::mem::replace(&mut variable.init, Init::Zero);
        let value = match init {
            Init::Zero => Expr::Number(0),
            Init::Value(value) => value,
            Init::List(_) => {
                self.error("a list of initial values can only stand at the start of a body", variable.site);
                Expr::Number(0)
            }
            Init::Channel(_) => {
                self.error("a channel can only be created at the start of a body", variable.site);
                Expr::Number(0)
            }
        };
        let (base, array) = (variable.base, variable.len.is_some());
        Some(move |root| {
            if matches!(base, Base::Struct(_)) {
                return Step::Nothing;
            }
            let path = if array { vec![Access::Index(Expr::Number(0))] } else { Vec::new() };
            Step::Assign(Place { root, path, base, len: None }, value)
        })
    }

    fn declare(&mut self, variable: Variable) -> Root {
        let name: Arc<str> = variable.name.as_str().into();
        let site = variable.site;
        let root = if self.names.path().is_empty() {
            self.program.globals.push(variable);
            Root::Global(self.program.globals.len() - 1)
        } else {
            self.locals.push(variable);
            Root::Local(self.locals.len() - 1)
        };
        if self.names.declare(name.clone(), Meaning::Variable(root)).is_err() {
            self.error(format!("{name} is declared already"), site);
        }
        root
    }

    /// Parameters of a proctype, which become its first locals.
    pub fn parameters(&mut self) -> Parse<()> {
        while !self.at(")") {
            if self.accept(";") || self.accept("->") {
                continue;
            }
            if !self.at_declaration() {
                return Err(self.unexpected("a parameter with its type"));
            }
            if self.at("hidden") || self.at("show") || self.at("local") {
                self.advance();
            }
            let base = self.base_type()?;
            loop {
                let variable = self.variable(base)?;
                if variable.len.is_some() {
                    self.error("an array cannot be a parameter", variable.site);
                }
                if !matches!(variable.init, Init::Zero) {
                    self.error("a parameter has no initial value", variable.site);
                }
                self.declare(variable);
                // A comma may be followed by the next name of the same type, or by another type.
                if !self.at(",") || self.is_type(self.peek_at(1)) {
                    break;
                }
                self.advance();
            }
            if self.at(",") {
                self.advance();
            }
        }
        Ok(())
    }

    pub fn base_type(&mut self) -> Parse<Base> {
        let token = self.advance();
        Ok(match &*token.text {
            "bit" | "bool" => Base::Bit,
            "byte" | "pid" => Base::Byte,
            "short" => Base::Short,
            "int" => Base::Int,
            "chan" => Base::Chan,
            "unsigned" => Base::Unsigned(0),
            "mtype" => {
                if self.accept(":") {
                    self.expect_name("the name of an mtype set")?;
                }
                Base::Mtype
            }
            name => match self.names.find(name) {
                Some(Meaning::Typedef(number)) => Base::Struct(number),
                _ => {
                    self.error(format!("{name} is not a type"), token.site);
                    return Err(Bad);
                }
            },
        })
    }

    /// `name`, its width or length, and its initial value.
    fn variable(&mut self, mut base: Base) -> Parse<Variable> {
        let name = self.expect_name("a name")?;
        let mut len = None;
        if self.accept(":") {
            let width = self.constant()?;
            if matches!(base, Base::Unsigned(_)) && (1..=32).contains(&width) {
                base = Base::Unsigned(width as u8);
            } else {
                self.error("only unsigned variables have a width, of 1 to 32 bits", name.site);
                base = Base::Int;
            }
        } else if self.accept("[") {
            let elements = self.constant()?;
            self.expect("]")?;
            if !(1..=LONGEST_ARRAY).contains(&elements) {
                self.error(format!("an array has 1 to {LONGEST_ARRAY} elements, not {elements}"), name.site);
            }
            len = Some(elements.clamp(1, LONGEST_ARRAY) as u32);
        }
        if base == Base::Unsigned(0) {
            self.error("an unsigned variable needs a width, as in `unsigned x : 3`", name.site);
            base = Base::Byte;
        }
        let init = if self.accept("=") { self.initial_value(base, len)? } else { Init::Zero };
        Ok(Variable { name: name.text.to_string(), base, len, init, hidden: false, site: name.site })
    }

    fn initial_value(&mut self, base: Base, len: Option<u32>) -> Parse<Init> {
        let site = self.peek().site;
        if self.at("[") {
            let channel = self.channel_type()?;
            if base != Base::Chan {
                self.error("only a chan can hold a channel", site);
            }
            self.program.channels.push(channel);
            return Ok(Init::Channel(self.program.channels.len() - 1));
        }
        if self.accept("{") {
            let mut values = Vec::new();
            while !self.at("}") {
                let from = self.peek().site;
                let value = self.constant()?;
                self.check_fits(base, &Expr::Number(value), from);
                values.push(value);
                if !self.accept(",") && !self.at("}") {
                    return Err(self.unexpected("`,` or `}`"));
                }
            }
            self.expect("}")?;
            if len.is_none() || values.is_empty() {
                self.error("only an array has a list of initial values", site);
            }
            return Ok(Init::List(values));
        }
        let value = self.expression()?;
        self.check_fits(base, &value, site);
        if value.runs() {
            self.error("run cannot stand in an initial value", site);
        }
        Ok(Init::Value(value))
    }

    fn channel_type(&mut self) -> Parse<ChannelType> {
        let site = self.expect("[")?.site;
        let capacity = self.constant()?;
        self.expect("]")?;
        self.expect("of")?;
        self.expect("{")?;
        let mut fields = Vec::new();
        loop {
            if !self.is_type(self.peek()) {
                return Err(self.unexpected("the type of a message field"));
            }
            let base = self.base_type()?;
            if matches!(base, Base::Unsigned(_)) {
                self.error("unsigned cannot be the type of a message field", site);
            }
            flatten(&self.program.structs, base, &mut fields);
            if !self.accept(",") {
                break;
            }
        }
        self.expect("}")?;
        if !(0..=LARGEST_CAPACITY).contains(&capacity) {
            self.error(format!("a channel holds 0 to {LARGEST_CAPACITY} messages, not {capacity}"), site);
        }
        if fields.len() > MOST_FIELDS {
            self.error(format!("a message has at most {MOST_FIELDS} fields"), site);
            fields.truncate(MOST_FIELDS);
        }
        Ok(ChannelType { capacity: capacity.clamp(0, LARGEST_CAPACITY) as u32, fields })
    }

    /// An expression that has a value now: numbers, mtypes, and scalars with a constant initial value.
    pub fn constant(&mut self) -> Parse<i64> {
        let site = self.peek().site;
        let value = self.expression()?;
        match self.fold(&value) {
            Some(value) => Ok(value),
            None => {
                self.error("a constant is needed here", site);
                Err(Bad)
            }
        }
    }

    fn fold(&self, value: &Expr) -> Option<i64> {
        Some(match value {
            Expr::Number(number) => *number,
            Expr::Unary(op, inner) => op.apply(self.fold(inner)?) as i32 as i64,
            Expr::Binary(op, left, right) => op.apply(self.fold(left)?, self.fold(right)?)? as i32 as i64,
            Expr::Read(Place { root: Root::Global(number), path, len: None, .. }) if path.is_empty() => {
                match &self.program.globals[*number].init {
                    Init::Value(Expr::Number(number)) => *number,
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    pub fn typedef(&mut self) -> Parse<()> {
        self.expect("typedef")?;
        let name = self.expect_name("the name of the type")?;
        self.expect("{")?;
        let mut fields: Vec<Variable> = Vec::new();
        while !self.at("}") {
            if self.accept(";") || self.accept("->") {
                continue;
            }
            if !self.at_declaration() {
                return Err(self.unexpected("the type of a field, or `}`"));
            }
            if self.at("hidden") || self.at("show") || self.at("local") {
                self.advance();
            }
            let base = self.base_type()?;
            loop {
                let field = self.variable(base)?;
                if fields.iter().any(|other| other.name == field.name) {
                    self.error(format!("there is already a field {}", field.name), field.site);
                }
                fields.push(field);
                if !self.accept(",") {
                    break;
                }
            }
        }
        self.expect("}")?;
        if fields.is_empty() {
            self.error("a type needs a field", name.site);
        }
        let number = self.program.structs.len();
        self.program.structs.push(Struct { name: name.text.to_string(), fields });
        let mut flat = Vec::new();
        flatten(&self.program.structs, Base::Struct(number), &mut flat);
        if flat.len() > LONGEST_ARRAY as usize {
            self.error("the type is too large", name.site);
            self.program.structs[number].fields.clear();
        }
        if self.names.declare_global(name.text.clone(), Meaning::Typedef(number)).is_err() {
            self.error(format!("{} is declared already", name.text), name.site);
        }
        Ok(())
    }

    /// Does `mtype` begin a set of constants rather than a variable?
    fn at_mtype_set(&self) -> bool {
        let after = if self.peek_at(1).is(":") { 3 } else { 1 };
        let next = self.peek_at(after);
        next.is("{") || next.is("=") && self.peek_at(after + 1).is("{")
    }

    fn mtype_set(&mut self) -> Parse<()> {
        let site = self.advance().site;
        let set =
            if self.accept(":") { self.expect_name("the name of the set")?.text.to_string() } else { String::new() };
        self.accept("=");
        self.expect("{")?;
        let mut names = Vec::new();
        while !self.at("}") {
            if !self.accept(",") {
                names.push(self.expect_name("a name")?);
            }
        }
        self.expect("}")?;
        if !self.names.path().is_empty() {
            self.error("an mtype set must be global", site);
        }
        let index = match self.program.mtypes.iter().position(|(other, _)| *other == set) {
            Some(index) => index,
            None => {
                self.program.mtypes.push((set, Vec::new()));
                self.program.mtypes.len() - 1
            }
        };
        // The last name of a set gets the smallest number.
        for name in names.into_iter().rev() {
            let all = &mut self.program.mtypes[index].1;
            all.push(name.text.to_string());
            let value = all.len() as i64;
            if all.len() > MOST_MTYPES {
                self.error(format!("an mtype set has at most {MOST_MTYPES} names"), name.site);
                return Err(Bad);
            }
            if self.names.declare_global(name.text.clone(), Meaning::Constant(value)).is_err() {
                self.error(format!("{} is declared already", name.text), name.site);
            }
        }
        Ok(())
    }
}

/// The scalars that a value of a type consists of.
pub fn flatten(structs: &[Struct], base: Base, out: &mut Vec<Base>) {
    let Base::Struct(number) = base else { return out.push(base) };
    for field in &structs[number].fields {
        for _ in 0..field.len.unwrap_or(1) {
            if out.len() > LONGEST_ARRAY as usize {
                return;
            }
            flatten(structs, field.base, out);
        }
    }
}
