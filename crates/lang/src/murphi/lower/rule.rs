//! Rules, start states and properties.
//!
//! Parameters of rulesets and chosen slots are choices of the command, held in temporaries under their own
//! names. Indices of aliases are evaluated in the prelude. A guard that changes the state (through a
//! function) moves into the body, as Rumur has it: the change stays if the rule fires.

use super::code::Code;
use super::scope::Entry;
use super::value::{Spot, Value, add, arithmetic, compare, not};
use super::{Lowered, Lowerer, quant};
use crate::Span;
use crate::diagnostic::Diagnostic;
use crate::murphi::ast::{Decl, Expr, Item, Name, Program, PropertyKind, Quant, Rule, RuleKind, Stmt};
use crate::murphi::types::{BOOLEAN, INTEGER};
use plimsoll_ir::{
    BinOp, Choice, Command, Expr as IrExpr, Property, PropertyKind as IrPropertyKind, Scalar, Stmt as IrStmt, TempId,
    VarId,
};

/// What stands around a rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Enclosure<'a> {
    Quant(&'a Quant),
    Aliases(&'a [(Name, Expr)]),
    Choose(&'a Name, &'a Expr),
}

/// A condition on states with what stands around it.
#[derive(Clone, Debug)]
pub(super) struct Claim<'a> {
    enclosures: Vec<Enclosure<'a>>,
    expr: &'a Expr,
}

/// A rule or a start state.
#[derive(Clone, Copy)]
struct Source<'a> {
    guard: Option<&'a Expr>,
    decls: &'a [Decl],
    body: &'a [Stmt],
    starting: bool,
}

impl<'a> Lowerer<'a> {
    /// Finds the assumptions at top level: they apply to all rules, wherever they stand.
    pub(super) fn find_assumes(&mut self, program: &'a Program) {
        fn visit<'a>(rule: &'a Rule, around: &mut Vec<Enclosure<'a>>, out: &mut Vec<Claim<'a>>) {
            let depth = around.len();
            let inner = match &rule.kind {
                RuleKind::Property { kind: PropertyKind::Assume, expr, .. } => {
                    return out.push(Claim { enclosures: around.clone(), expr });
                }
                RuleKind::Set(quants, rules) => {
                    around.extend(quants.iter().map(Enclosure::Quant));
                    rules
                }
                RuleKind::Alias(aliases, rules) => {
                    around.push(Enclosure::Aliases(aliases));
                    rules
                }
                _ => return,
            };
            inner.iter().for_each(|rule| visit(rule, around, out));
            around.truncate(depth);
        }
        for item in &program.items {
            if let Item::Rule(rule) = item {
                visit(rule, &mut Vec::new(), &mut self.assumes);
            }
        }
    }

    pub(super) fn rule(&mut self, rule: &'a Rule) -> Lowered<()> {
        self.rule_within(rule, &mut Vec::new())
    }

    fn rule_within(&mut self, rule: &'a Rule, around: &mut Vec<Enclosure<'a>>) -> Lowered<()> {
        let depth = around.len();
        let result = match &rule.kind {
            RuleKind::Simple { priority, name, guard, decls, body } => {
                let source = Source { guard: guard.as_ref(), decls, body, starting: false };
                let name = name.clone().unwrap_or_else(|| format!("rule in line {}", self.line(rule.span)));
                self.command(name, rule.span, source, around).and_then(|mut command| {
                    command.rank = self.rank(*priority, rule.span)?;
                    self.system.commands.push(command);
                    Ok(())
                })
            }
            RuleKind::Start { name, decls, body } => {
                let source = Source { guard: None, decls, body, starting: true };
                let name = name.clone().unwrap_or_else(|| "start state".into());
                self.command(name, rule.span, source, around).map(|command| self.system.starts.push(command))
            }
            RuleKind::Property { kind, name, expr } => self.property_within(*kind, name.as_deref(), expr, rule, around),
            RuleKind::Set(quants, rules) => {
                around.extend(quants.iter().map(Enclosure::Quant));
                self.rules_within(rules, around)
            }
            RuleKind::Alias(aliases, rules) => {
                around.push(Enclosure::Aliases(aliases));
                self.rules_within(rules, around)
            }
            RuleKind::Choose(name, set, rules) => {
                around.push(Enclosure::Choose(name, set));
                self.rules_within(rules, around)
            }
        };
        around.truncate(depth);
        result
    }

    fn rules_within(&mut self, rules: &'a [Rule], around: &mut Vec<Enclosure<'a>>) -> Lowered<()> {
        let mut result = Ok(());
        for rule in rules {
            result = result.and(self.rule_within(rule, around));
        }
        result
    }

    fn rank(&mut self, priority: Option<i64>, span: Span) -> Lowered<u8> {
        u8::try_from(priority.unwrap_or(0)).map_err(|_| self.fail("priorities go from 0 to 255", span))
    }

    /// Translates a rule.
    fn command(&mut self, label: String, span: Span, source: Source<'a>, around: &[Enclosure<'a>]) -> Lowered<Command> {
        self.code = Code::new();
        self.starting = source.starting;
        let mut command = Command::new(label);
        command.line = self.line(span);
        let scopes = self.scopes.depth();
        let result = self.command_parts(&mut command, source, around);
        self.scopes.pop_to(scopes);
        self.starting = false;
        self.made += self.code.made;
        if self.made > super::MOST_STATEMENTS {
            return Err(self.fail("the model is too large when its calls are expanded", span));
        }
        result?;
        command.temps = std::mem::take(&mut self.code.temps);
        Ok(command)
    }

    fn command_parts(&mut self, command: &mut Command, source: Source<'a>, around: &[Enclosure<'a>]) -> Lowered<()> {
        for enclosure in around {
            self.enclose(enclosure, &mut command.choices)?;
        }
        self.code.writes_state = false;
        command.guard = match source.guard {
            Some(guard) => self.guard(guard)?,
            None => IrExpr::TRUE,
        };
        let mut before = std::mem::take(&mut self.code.out);
        if self.code.writes_state {
            let span = source.guard.map_or(Span::default(), |guard| guard.span);
            self.warn("this guard changes the state", span);
            let guard = std::mem::replace(&mut command.guard, IrExpr::TRUE);
            before.push(IrStmt::If { condition: not(guard), then: vec![IrStmt::Discard], otherwise: Vec::new() });
            self.code.out = before;
        } else {
            command.prelude = before;
        }
        let saved = if source.starting { Vec::new() } else { self.save_state() };
        let (stmts, returned) = self.body(source.decls, source.body, None)?;
        if returned {
            self.code.emit(IrStmt::Block(stmts));
        } else {
            self.code.out.extend(stmts);
        }
        self.normalise();
        self.assume(&saved)?;
        command.body = std::mem::take(&mut self.code.out);
        Ok(())
    }

    /// Binds the names of an enclosure, adding to the choices of the command.
    fn enclose(&mut self, enclosure: &Enclosure<'a>, choices: &mut Vec<Choice>) -> Lowered<()> {
        self.scopes.push();
        match *enclosure {
            Enclosure::Quant(quant) => {
                let entry = self.choice(quant, choices)?;
                self.scopes.declare(&quant.name.text, entry);
            }
            Enclosure::Aliases(aliases) => self.aliases(aliases)?,
            Enclosure::Choose(name, set) => {
                let (spot, size, _) = self.multiset(set)?;
                let ty = self.slot_type(size);
                let temp = self.code.fixed_temp(&name.text, Scalar::range(0, size as i64 - 1));
                choices.push(Choice { temp, low: 0, high: size as i64 - 1 });
                let used = IrExpr::read(spot.place.field(1).index(IrExpr::read(temp)));
                let condition = compare(BinOp::Eq, used, IrExpr::Const(0));
                self.code.emit(IrStmt::If { condition, then: vec![IrStmt::Discard], otherwise: Vec::new() });
                let value = Value { expr: IrExpr::read(temp), ty, low: 0, high: size as i64 - 1 };
                self.scopes.declare(&name.text, Entry::Value(value));
            }
        }
        Ok(())
    }

    fn choice(&mut self, quant: &'a Quant, choices: &mut Vec<Choice>) -> Lowered<Entry> {
        let name = &quant.name;
        let range = self.range(quant)?;
        let quant::Range::Known { ty, first, step, count } = range else {
            return Err(self.fail("the bounds of a ruleset must be constants", name.span));
        };
        if count == 0 {
            return Err(self.fail("this ruleset is empty", name.span));
        }
        let stored = self.types.stored(ty);
        if self.types.has_undefined(ty) {
            let temp = self.code.fixed_temp(&name.text, stored);
            choices.push(Choice { temp, low: 1, high: count });
            return Ok(Entry::Spot(Spot::temp(temp.into(), ty, true)));
        }
        if count > u32::MAX as i64 {
            return Err(self.fail("this ruleset is too large", name.span));
        }
        let temp: TempId = self.code.fixed_temp(&name.text, Scalar::range(0, count - 1));
        choices.push(Choice { temp, low: 0, high: count - 1 });
        let position = Value { expr: IrExpr::read(temp), ty, low: 0, high: count - 1 };
        let value = arithmetic(BinOp::Mul, position, Value::number(step));
        let value = Value { expr: add(value.expr, first), ..value };
        let last = first + (count - 1) * step;
        Ok(Entry::Value(Value { low: first.min(last), high: first.max(last), ..value }))
    }

    /// Copies of all variables, if some successor may have to be taken back.
    fn save_state(&mut self) -> Vec<TempId> {
        if self.assumes.is_empty() {
            return Vec::new();
        }
        let types: Vec<_> = self.system.vars.iter().map(|var| var.ty.clone()).collect();
        let mut saved = Vec::new();
        for (index, ty) in types.into_iter().enumerate() {
            let temp = self.code.temp("before", ty);
            self.code.emit(IrStmt::Copy { to: temp.into(), from: VarId(index as u32).into() });
            saved.push(temp);
        }
        saved
    }

    /// Takes a step back that leads to a state outside the assumptions: it counts, but leads nowhere new.
    fn assume(&mut self, saved: &[TempId]) -> Lowered<()> {
        for claim in self.assumes.clone() {
            let holds = self.claim(true, &claim.enclosures, claim.expr)?;
            let back = if saved.is_empty() {
                vec![IrStmt::Discard]
            } else {
                let restore = |(index, &temp): (usize, &TempId)| IrStmt::Copy {
                    to: VarId(index as u32).into(),
                    from: temp.into(),
                };
                saved.iter().enumerate().map(restore).collect()
            };
            self.code.emit(IrStmt::If { condition: not(holds), then: back, otherwise: Vec::new() });
        }
        Ok(())
    }

    /// A condition that must hold for all values of the parameters around it, or for some.
    fn claim(&mut self, all: bool, around: &[Enclosure<'a>], expr: &'a Expr) -> Lowered<IrExpr> {
        let Some((first, rest)) = around.split_first() else { return self.truth(expr) };
        match *first {
            Enclosure::Quant(quant) => {
                let quants = std::slice::from_ref(quant);
                Ok(self.quantified(all, quants, &mut |lowerer| lowerer.claim(all, rest, expr))?.expr)
            }
            Enclosure::Aliases(aliases) => {
                self.scopes.push();
                let result = self.aliases(aliases).and_then(|()| self.claim(all, rest, expr));
                self.scopes.pop();
                result
            }
            Enclosure::Choose(name, _) => Err(self.fail("properties of chosen elements are not supported", name.span)),
        }
    }

    fn property_within(
        &mut self,
        kind: PropertyKind,
        name: Option<&str>,
        expr: &'a Expr,
        rule: &Rule,
        around: &[Enclosure<'a>],
    ) -> Lowered<()> {
        let (what, number, meant) = match kind {
            PropertyKind::Cover => ("Cover", self.covers.len(), IrPropertyKind::Goal),
            _ => ("Invariant", self.system.properties.len(), IrPropertyKind::Invariant),
        };
        let name = name.map_or_else(|| format!("{what} {number}"), str::to_string);
        self.apart = kind != PropertyKind::Invariant;
        let made = self.claim_property(around, expr, meant, name);
        self.apart = false;
        let mut property = made?;
        property.line = self.line(rule.span);
        match kind {
            PropertyKind::Invariant => self.system.properties.push(property),
            PropertyKind::Assume => {}
            PropertyKind::Cover => self.covers.push(property),
            PropertyKind::Liveness => {
                let note = "only properties of single states are; `--find` shows whether some state satisfies it";
                self.diagnostics.push(Diagnostic::warning("`liveness` is not checked", rule.span).note(note));
            }
        }
        Ok(())
    }

    /// A property of an expression given apart from the model.
    pub(super) fn property_of(&mut self, expr: &'a Expr, kind: IrPropertyKind, name: String) -> Lowered<Property> {
        self.claim_property(&[], expr, kind, name)
    }

    fn claim_property(
        &mut self,
        around: &[Enclosure<'a>],
        expr: &'a Expr,
        kind: IrPropertyKind,
        name: String,
    ) -> Lowered<Property> {
        self.code = Code::new();
        let holds = self.claim(kind == IrPropertyKind::Invariant, around, expr)?;
        self.looks_only(expr, holds, kind, name)
    }

    /// The value of an expression given apart from the model: a number or a truth.
    pub(super) fn value_of(&mut self, expr: &'a Expr, name: String) -> Lowered<Property> {
        self.code = Code::new();
        let value = match self.value(expr)? {
            value if value.ty == BOOLEAN || self.types.is_number(value.ty) => value.expr,
            value => return Err(self.mismatch(value.ty, INTEGER, expr.span)),
        };
        self.looks_only(expr, value, IrPropertyKind::Goal, name)
    }

    fn looks_only(&mut self, expr: &Expr, value: IrExpr, kind: IrPropertyKind, name: String) -> Lowered<Property> {
        if self.code.writes_state {
            return Err(self.fail("a property must not change the state", expr.span));
        }
        let code = std::mem::take(&mut self.code);
        Ok(Property { name, line: 0, kind, temps: code.temps, prelude: code.out, expr: value })
    }
}
