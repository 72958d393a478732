//! Types of the language as types of the system, and the variables of each slot.
//!
//! The locals of all proctypes that may live in a slot share its variables: the first local of a type takes
//! the slot's first variable of that type, and so on. A slot is all zero while nothing lives in it.

use super::Lowering;
use crate::promela::ast::{Base, Expr, Init, Program, Root, StmtKind, Variable, walk_statements};
use plimsoll_ir::verify::WORDS_LIMIT;
use plimsoll_ir::{EnumId, Layout, ProcessId, Scalar, System, Type, VarId};
use std::collections::HashMap;

/// What a slot consists of.
pub struct Slot {
    pub process: ProcessId,
    pub location: VarId,
    /// Proctypes that may live here, with the number of their first location.
    pub tenants: Vec<(usize, u32)>,
    /// Where the locals of each proctype are; missing are those that need no storage.
    pub cells: HashMap<(usize, usize), VarId>,
}

impl Slot {
    /// The location of the system for a location of a proctype's automaton.
    pub fn location(&self, proctype: usize, location: usize) -> u32 {
        let tenant = self.tenants.iter().find(|(tenant, _)| *tenant == proctype);
        tenant.expect("only tenants have locations").1 + location as u32
    }
}

/// Types of scalars as they depend on the model.
#[derive(Clone, Copy)]
pub struct Types {
    pub chan: Scalar,
    pub mtype: Scalar,
}

impl Types {
    /// `mixed` says that other numbers than those of channels may be stored in their place.
    pub fn new(channels: usize, mixed: bool, mtypes: Option<EnumId>) -> Types {
        let bits = (usize::BITS - channels.leading_zeros()).max(if mixed { 8 } else { 1 });
        Types { chan: Scalar::range(0, (1 << bits) - 1), mtype: Scalar { names: mtypes, ..Scalar::U8 } }
    }

    pub fn scalar(&self, base: Base) -> Scalar {
        match base {
            Base::Bit => Scalar::BOOL,
            Base::Byte => Scalar::U8,
            Base::Short => Scalar::I16,
            Base::Int => Scalar::I32,
            Base::Unsigned(bits) => Scalar::range(0, (1 << bits) - 1),
            Base::Mtype => self.mtype,
            Base::Chan => self.chan,
            Base::Struct(_) => unreachable!("a structure is no scalar"),
        }
    }

    /// An element of a bit array takes a byte, as it does in SPIN, where it can then hold more than a bit.
    pub fn variable(&self, program: &Program, variable: &Variable) -> Type {
        let element = match (variable.base, variable.len) {
            (Base::Struct(number), _) => {
                let fields = program.structs[number].fields.iter();
                Type::Record(fields.map(|field| (field.name.clone(), self.variable(program, field))).collect())
            }
            (Base::Bit, Some(_)) => Scalar::U8.into(),
            (base, _) => self.scalar(base).into(),
        };
        match variable.len {
            Some(len) => Type::array(element, len),
            None => element,
        }
    }
}

impl Lowering<'_> {
    /// Adds the process and the variables of every slot.
    pub fn add_slots(&mut self) {
        for number in 0..self.config.slots.len() {
            let process = ProcessId(number as u32);
            let proctypes = self.config.slots[number].clone();
            let mut locations = vec!["-".to_string()];
            let mut tenants = Vec::new();
            for &proctype in &proctypes {
                tenants.push((proctype, locations.len() as u32));
                let name = &self.program.proctypes[proctype].name;
                locations.extend(self.automata[proctype].locations.iter().map(|location| {
                    if proctypes.len() == 1 { location.name.clone() } else { format!("{name}:{}", location.name) }
                }));
            }
            let name = match proctypes.as_slice() {
                [one] => format!("{}({number})", self.program.proctypes[*one].name),
                _ => format!("process({number})"),
            };
            let range = Scalar::range(0, locations.len() as i64 - 1);
            let location = self.system.var(format!("{name}.at"), range, Some(process));
            self.system.processes.push(plimsoll_ir::Process { name: name.clone(), location, locations });
            let cells = self.add_cells(&proctypes, &name, process);
            self.slots.push(Slot { process, location, tenants, cells });
        }
    }

    fn add_cells(&mut self, proctypes: &[usize], name: &str, process: ProcessId) -> HashMap<(usize, usize), VarId> {
        let mut pool: Vec<(Type, VarId)> = Vec::new();
        let mut cells = HashMap::new();
        for &proctype in proctypes {
            let mut taken = vec![false; pool.len()];
            for (local, variable) in self.program.proctypes[proctype].locals.iter().enumerate() {
                if self.is_constant_channel(Some(proctype), local) {
                    continue;
                }
                let ty = self.types.variable(self.program, variable);
                let free = (0..pool.len()).find(|&index| !taken[index] && pool[index].0 == ty);
                let index = free.unwrap_or_else(|| {
                    let var = self.system.var(format!("{name}.{}", variable.name), ty.clone(), Some(process));
                    self.declared.push((var, variable.site));
                    pool.push((ty, var));
                    taken.push(false);
                    pool.len() - 1
                });
                taken[index] = true;
                if free.is_some() {
                    rename(&mut self.system, pool[index].1, &variable.name);
                }
                cells.insert((proctype, local), pool[index].1);
            }
        }
        cells
    }

    /// Adds the global variables, but for constant channels and hidden variables that nobody reads.
    pub fn add_globals(&mut self) {
        let read = read_globals(self.program);
        for (number, variable) in self.program.globals.iter().enumerate() {
            let unseen = variable.hidden && !read[number];
            let var = (!unseen && !self.is_constant_channel(None, number)).then(|| {
                let ty = self.types.variable(self.program, variable);
                let var = self.system.var(variable.name.clone(), ty, None);
                self.declared.push((var, variable.site));
                var
            });
            self.globals.push(var);
        }
    }

    /// Refuses a model with more variables than a state can have, at the largest of them.
    pub fn is_too_wide(&mut self) -> bool {
        let words = |var: VarId| bits(&self.system.vars[var.index()].ty).div_ceil(32);
        let all: u64 = self.system.vars.iter().map(|var| bits(&var.ty)).sum();
        if all <= 32 * WORDS_LIMIT as u64 && Layout::of_system(&self.system).words() <= WORDS_LIMIT {
            return false;
        }
        let largest = self.declared.iter().max_by_key(|(var, _)| words(*var));
        let (own, site) = largest.map_or((0, self.site), |(var, site)| (words(*var), *site));
        self.site = site;
        let all = all.div_ceil(32);
        self.fail(format!("a state has at most {WORDS_LIMIT} words of 32 bits, not {all}: this alone takes {own}"));
        true
    }
}

/// At least so many bits does a variable take.
fn bits(ty: &Type) -> u64 {
    match ty {
        Type::Scalar(scalar) => scalar.bits().into(),
        Type::Array { element, len } => bits(element).saturating_mul((*len).into()),
        Type::Record(fields) => fields.iter().fold(0, |sum: u64, (_, ty)| sum.saturating_add(bits(ty))),
    }
}

/// Which global variables does an expression read?
fn read_globals(program: &Program) -> Vec<bool> {
    let mut read = vec![false; program.globals.len()];
    let mut note = |part: &Expr| {
        if let Expr::Read(place) | Expr::Probe(_, place) | Expr::Poll { channel: place, .. } = part
            && let Root::Global(number) = place.root
        {
            read[number] = true;
        }
    };
    let locals = program.proctypes.iter().flat_map(|proctype| &proctype.locals);
    for variable in program.globals.iter().chain(locals) {
        if let Init::Value(value) = &variable.init {
            value.walk(&mut note);
        }
    }
    for proctype in program.proctypes.iter().chain(&program.never) {
        proctype.provided.iter().for_each(|condition| condition.walk(&mut note));
        walk_statements(&proctype.body, &mut |stmt| {
            if let StmtKind::Step(step) = &stmt.kind {
                step.walk(&mut note);
            }
        });
    }
    read
}

/// A variable that several locals share carries all their names.
fn rename(system: &mut System, var: VarId, name: &str) {
    let all = &mut system.vars[var.index()].name;
    let known = all.rsplit('.').next().unwrap_or("");
    if !known.split('|').any(|part| part == name) {
        all.push('|');
        all.push_str(name);
    }
}
