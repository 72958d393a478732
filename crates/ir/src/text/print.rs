//! Writing a system as text.

use super::is_plain;
use crate::expr::{Access, BinOp, Expr, Narrow, Place, Root, Stmt, UNLIMITED, UnOp};
use crate::system::{Act, Command, Deadlock, Faults, Kind, Locals, Procedure, Property, PropertyKind, System, Var};
use crate::types::{Scalar, Type};
use std::collections::HashMap;
use std::fmt::Write;

/// The textual form of a verified system.
pub fn print(system: &System) -> String {
    let vars = references(system.vars.iter().map(|var| var.name.as_str()), '#');
    let procedures = references(system.procedures.iter().map(|procedure| procedure.name.as_str()), '#');
    let mut printer = Printer { system, vars, procedures, out: String::new() };
    printer.declarations();
    printer.conventions();
    for procedure in &system.procedures {
        printer.procedure(procedure);
    }
    for command in &system.starts {
        printer.command("start", command);
    }
    for command in &system.commands {
        printer.command("command", command);
    }
    for property in &system.properties {
        printer.property(property);
    }
    printer.out
}

pub(super) fn sign(op: BinOp) -> &'static str {
    use BinOp::*;
    match op {
        Add => "+",
        Sub => "-",
        Mul => "*",
        Div => "/",
        Rem => "%",
        BitAnd => "&",
        BitOr => "|",
        BitXor => "^",
        Shl => "<<",
        Shr => ">>",
        Eq => "==",
        Ne => "!=",
        Lt => "<",
        Le => "<=",
        Gt => ">",
        Ge => ">=",
        And => "&&",
        Or => "||",
    }
}

pub(super) const KINDS: [(Kind, &str); 5] = [
    (Kind::Control, "control"),
    (Kind::Receive, "receive"),
    (Kind::Send, "send"),
    (Kind::Assign, "assign"),
    (Kind::Other, "other"),
];

/// How to refer to each of a list of names: by itself if plain and unique, else by number.
fn references<'a>(names: impl Iterator<Item = &'a str> + Clone, mark: char) -> Vec<String> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    names.clone().for_each(|name| *counts.entry(name).or_default() += 1);
    let refer = |(index, name): (usize, &str)| {
        if counts[name] == 1 && is_plain(name) { name.to_string() } else { format!("{mark}{index}") }
    };
    names.enumerate().map(refer).collect()
}

fn reference<'a>(names: impl Iterator<Item = &'a str> + Clone, index: usize) -> String {
    references(names, '#').swap_remove(index)
}

fn name(name: &str) -> String {
    if is_plain(name) { name.to_string() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            '\r' => out += "\\r",
            '"' | '\\' => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out + "\""
}

fn kind_name(kind: Kind) -> &'static str {
    KINDS.iter().find(|(listed, _)| *listed == kind).expect("all kinds are listed").1
}

struct Printer<'a> {
    system: &'a System,
    /// How to refer to each variable.
    vars: Vec<String>,
    /// How to refer to each procedure.
    procedures: Vec<String>,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        self.out += text;
        self.out.push('\n');
    }

    fn declarations(&mut self) {
        self.line(&format!("system {}", quoted(&self.system.name)));
        for enumeration in &self.system.enums {
            let labels: Vec<String> = enumeration.labels.iter().map(|label| name(label)).collect();
            let head = format!("enum {} from {}", name(&enumeration.name), enumeration.first);
            self.line(&format!("{head} {{ {} }}", labels.join(", ")));
        }
        for var in &self.system.vars {
            self.var(var);
        }
        for process in &self.system.processes {
            let locations: Vec<String> = process.locations.iter().map(|location| name(location)).collect();
            let head = format!("process {} at {}", name(&process.name), self.vars[process.location.index()]);
            self.line(&format!("{head} {{ {} }}", locations.join(", ")));
        }
    }

    fn var(&mut self, var: &Var) {
        let mut text = format!("var {}: {}", name(&var.name), self.ty(&var.ty));
        if let Some(owner) = var.owner {
            let names = self.system.processes.iter().map(|process| process.name.as_str());
            _ = write!(text, " of {}", reference(names, owner.index()));
        }
        if !var.init.is_empty() {
            let values: Vec<String> = var.init.iter().map(i64::to_string).collect();
            _ = write!(text, " = {}", values.join(", "));
        }
        self.line(&text);
    }

    fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) => self.scalar(scalar),
            Type::Array { element, len } => format!("[{len}] {}", self.ty(element)),
            Type::Record(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(field, ty)| format!("{}: {}", name(field), self.ty(ty))).collect();
                format!("{{ {} }}", fields.join(", "))
            }
        }
    }

    fn scalar(&self, scalar: &Scalar) -> String {
        let range = format!("{}..{}", scalar.low, scalar.high);
        match scalar.names {
            None => range,
            Some(id) => {
                let names = self.system.enums.iter().map(|enumeration| enumeration.name.as_str());
                format!("{range} as {}", reference(names, id.0 as usize))
            }
        }
    }

    fn conventions(&mut self) {
        match self.system.faults {
            Faults::Vanish => self.line("faults vanish"),
            Faults::Absorb => self.line("faults absorb"),
        }
        match &self.system.deadlock {
            Deadlock::Never => self.line("deadlock never"),
            Deadlock::Stuttering => self.line("deadlock stuttering"),
            Deadlock::Stuck { accepted: None } => self.line("deadlock stuck"),
            Deadlock::Stuck { accepted: Some(accepted) } => {
                let accepted = self.code(Locals::temps(&[])).expr(accepted);
                self.line(&format!("deadlock stuck unless {accepted}"));
            }
        }
        if let Some(var) = self.system.exclusive {
            self.line(&format!("exclusive {}", self.vars[var.index()]));
        }
    }

    fn code<'b>(&'b self, locals: Locals<'b>) -> CodePrinter<'b> {
        let names = references(locals.temps.iter().map(|(name, _)| name.as_str()), '$');
        CodePrinter { system: self.system, vars: &self.vars, procedures: &self.procedures, locals, names }
    }

    fn procedure(&mut self, procedure: &Procedure) {
        let line = if procedure.line == 0 { String::new() } else { format!(" line {}", procedure.line) };
        self.line(&format!("procedure {}{line} {{", quoted(&procedure.name)));
        self.typed("reference", &procedure.references);
        self.typed("input", &procedure.temps[..procedure.inputs]);
        self.typed("temp", &procedure.temps[procedure.inputs..]);
        let code = self.code(procedure.locals());
        let mut text = String::new();
        for temp in &procedure.outputs {
            _ = writeln!(text, "    output {}", code.names[temp.index()]);
        }
        if procedure.recursion != 0 {
            _ = writeln!(text, "    recursion {}", procedure.recursion);
        }
        code.section(&mut text, "do", &procedure.body);
        self.out += &text;
        self.line("}");
    }

    fn command(&mut self, keyword: &str, command: &Command) {
        let mut head = format!("{keyword} {}", quoted(&command.label));
        if command.line != 0 {
            _ = write!(head, " line {}", command.line);
        }
        if command.kind != Kind::Other {
            _ = write!(head, " kind {}", kind_name(command.kind));
        }
        if command.rank != 0 {
            _ = write!(head, " rank {}", command.rank);
        }
        for (index, &(process, location)) in command.at.iter().enumerate() {
            let names = self.system.processes.iter().map(|process| process.name.as_str());
            let locations = self.system.processes[process.index()].locations.iter().map(String::as_str);
            let before = if index == 0 { " at" } else { "," };
            let process = reference(names, process.index());
            _ = write!(head, "{before} {process}.{}", reference(locations, location as usize));
        }
        for act in &command.acts {
            let names = self.system.processes.iter().map(|process| process.name.as_str());
            let Act { process, who, text, kind, file, line, number } = act;
            let (process, kind) = (reference(names, process.index()), kind_name(*kind));
            _ = write!(head, " act {process} {} {} kind {kind}", quoted(who), quoted(text));
            _ = write!(head, " in {} line {line} number {} {}", quoted(file), number.0, number.1);
        }
        self.line(&format!("{head} {{"));
        self.typed("temp", &command.temps);
        let code = self.code(Locals::temps(&command.temps));
        let mut text = String::new();
        for choice in &command.choices {
            _ = writeln!(text, "    choose {} in {}..{}", code.names[choice.temp.index()], choice.low, choice.high);
        }
        code.section(&mut text, "before", &command.prelude);
        if command.guard != Expr::TRUE {
            _ = writeln!(text, "    when {}", code.expr(&command.guard));
        }
        code.section(&mut text, "do", &command.body);
        self.out += &text;
        self.line("}");
    }

    fn property(&mut self, property: &Property) {
        let keyword = match property.kind {
            PropertyKind::Invariant => "invariant",
            PropertyKind::Goal => "goal",
        };
        let line = if property.line == 0 { String::new() } else { format!(" line {}", property.line) };
        self.line(&format!("{keyword} {}{line} {{", quoted(&property.name)));
        self.typed("temp", &property.temps);
        let code = self.code(Locals::temps(&property.temps));
        let mut text = String::new();
        code.section(&mut text, "before", &property.prelude);
        _ = writeln!(text, "    expect {}", code.expr(&property.expr));
        self.out += &text;
        self.line("}");
    }

    fn typed(&mut self, keyword: &str, names: &[(String, Type)]) {
        for (own, ty) in names {
            self.line(&format!("    {keyword} {}: {}", name(own), self.ty(ty)));
        }
    }
}

struct CodePrinter<'a> {
    system: &'a System,
    vars: &'a [String],
    procedures: &'a [String],
    locals: Locals<'a>,
    /// How to refer to each temporary.
    names: Vec<String>,
}

impl CodePrinter<'_> {
    fn section(&self, out: &mut String, keyword: &str, stmts: &[Stmt]) {
        if !stmts.is_empty() {
            _ = writeln!(out, "    {keyword} {{");
            self.stmts(out, stmts, 8);
            _ = writeln!(out, "    }}");
        }
    }

    fn stmts(&self, out: &mut String, stmts: &[Stmt], indent: usize) {
        stmts.iter().for_each(|stmt| self.stmt(out, stmt, indent));
    }

    fn stmt(&self, out: &mut String, stmt: &Stmt, indent: usize) {
        // Deep nesting would make the text quadratic in its depth.
        let pad = " ".repeat(indent.min(80));
        let mut braced = |head: &str, body: &[Stmt]| {
            _ = writeln!(out, "{pad}{head} {{");
            self.stmts(out, body, indent + 4);
            _ = writeln!(out, "{pad}}}");
        };
        match stmt {
            Stmt::If { condition, then, otherwise } => {
                braced(&format!("if {}", self.expr(condition)), then);
                if !otherwise.is_empty() {
                    braced("else", otherwise);
                }
            }
            Stmt::Block(body) => braced("block", body),
            Stmt::Loop { limit: UNLIMITED, body } => braced("loop", body),
            Stmt::Loop { limit, body } => braced(&format!("loop {limit}"), body),
            simple => _ = writeln!(out, "{pad}{};", self.simple(simple)),
        }
    }

    fn simple(&self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Assign { to, value, narrow } => {
                let suffix = if *narrow == Narrow::Wrap { " wrapping" } else { "" };
                format!("{} := {}{suffix}", self.place(to), self.expr(value))
            }
            Stmt::Copy { to, from } => format!("{} <- {}", self.place(to), self.place(from)),
            Stmt::Reset(place) => format!("reset {}", self.place(place)),
            Stmt::Sort(place) => format!("sort {}", self.place(place)),
            Stmt::Break(level) => format!("break {level}"),
            Stmt::Assert { condition, message } => format!("assert {} {}", self.expr(condition), quoted(message)),
            Stmt::Fault(message) => format!("fault {}", quoted(message)),
            Stmt::Discard => "discard".into(),
            Stmt::Call(call) => {
                let list =
                    |places: &[Place]| places.iter().map(|place| self.place(place)).collect::<Vec<_>>().join(", ");
                let name = &self.procedures[call.procedure.index()];
                format!("call {name}({}; {}; {})", list(&call.references), list(&call.inputs), list(&call.outputs))
            }
            Stmt::If { .. } | Stmt::Block(_) | Stmt::Loop { .. } => unreachable!("printed with braces"),
        }
    }

    fn place(&self, place: &Place) -> String {
        let mut text = match place.root {
            Root::Temp(temp) => self.names[temp.index()].clone(),
            Root::Reference(reference) => format!("&{}", reference.0),
            Root::Var(var) => {
                let name = &self.vars[var.index()];
                let hidden = self.locals.temps.iter().any(|(temp, _)| temp == name);
                if hidden { format!("#{}", var.0) } else { name.clone() }
            }
        };
        let mut ty = self.system.root_type(self.locals, place.root);
        for access in &place.path {
            ty = match (ty, access) {
                (Type::Array { element, .. }, Access::Index(index)) => {
                    _ = write!(text, "[{}]", self.expr(index));
                    element
                }
                (Type::Record(fields), Access::Field(field)) => {
                    let names = fields.iter().map(|(name, _)| name.as_str());
                    _ = write!(text, ".{}", reference(names, *field as usize));
                    &fields[*field as usize].1
                }
                _ => unreachable!("verified: paths fit their types"),
            }
        }
        text
    }

    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Binary(op, left, right) => {
                format!("{} {} {}", self.operand(left), sign(*op), self.operand(right))
            }
            Expr::Const(value) => value.to_string(),
            Expr::Read(place) => self.place(place),
            Expr::Unary(op, value) => {
                let sign = match op {
                    UnOp::Neg => '-',
                    UnOp::Not => '!',
                    UnOp::BitNot => '~',
                };
                match (op, &**value) {
                    (UnOp::Neg, Expr::Const(value)) => format!("-({value})"),
                    (_, value) => format!("{sign}{}", self.operand(value)),
                }
            }
            Expr::Select(condition, then, otherwise) => {
                format!("select({}, {}, {})", self.expr(condition), self.expr(then), self.expr(otherwise))
            }
            Expr::Wrap { bits, signed, value } => {
                format!("{}{bits}({})", if *signed { 'i' } else { 'u' }, self.expr(value))
            }
        }
    }

    /// An expression in parentheses where it needs them.
    fn operand(&self, expr: &Expr) -> String {
        let text = self.expr(expr);
        if matches!(expr, Expr::Binary(..)) { format!("({text})") } else { text }
    }
}
