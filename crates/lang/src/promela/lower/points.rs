//! Which channels may a variable, parameter or message field hold?
//!
//! Flow-insensitive and collapsed: one set per variable, or per field of a variable (all elements of arrays
//! together), and per field of a channel declaration. The sets are used to resolve most channel names at once and to keep the rest few.

use crate::promela::ast::{
    Access, Base, Expr, Init, Pattern, Place, Program, Root, Step, StmtKind, Variable, walk_statements,
};
use std::collections::{BTreeSet, HashMap};

/// A declaration of channels: a variable (of a proctype, or global) and the element or field within.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `None` for globals.
    pub proctype: Option<usize>,
    pub variable: usize,
    /// Number of the scalar within the variable.
    pub scalar: usize,
    /// Index into the channel types.
    pub ty: usize,
}

/// A variable, of a proctype or global, or a field within.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    pub proctype: Option<usize>,
    pub variable: usize,
    pub fields: Vec<usize>,
}

impl Holder {
    pub fn variable(proctype: Option<usize>, variable: usize) -> Holder {
        Holder { proctype, variable, fields: Vec::new() }
    }

    pub fn of(place: &Place, proctype: usize) -> Holder {
        let (proctype, variable) = match place.root {
            Root::Global(number) => (None, number),
            Root::Local(number) => (Some(proctype), number),
        };
        let fields = place.path.iter().filter_map(|access| match access {
            Access::Field(field) => Some(*field),
            Access::Index(_) => None,
        });
        Holder { proctype, variable, fields: fields.collect() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Indices of origins.
    pub origins: BTreeSet<usize>,
    /// May it also be no channel at all?
    pub null: bool,
}

impl Set {
    fn add(&mut self, other: &Set) -> bool {
        let before = (self.origins.len(), self.null);
        self.origins.extend(&other.origins);
        self.null |= other.null;
        before != (self.origins.len(), self.null)
    }
}

#[derive(Debug, Default)]
pub struct Points {
    pub origins: Vec<Origin>,
    holders: HashMap<Holder, Set>,
    /// By channel type and field.
    fields: HashMap<(usize, usize), Set>,
    /// Variables that are written after their declaration.
    written: BTreeSet<Holder>,
    /// Is something that is no channel stored where channels belong?
    pub mixed: bool,
}

impl Points {
    pub fn of(program: &Program) -> Points {
        let mut points = Points::default();
        for (number, variable) in program.globals.iter().enumerate() {
            points.declare(program, Holder::variable(None, number), variable, false);
        }
        for (number, proctype) in program.proctypes.iter().enumerate() {
            for (local, variable) in proctype.locals.iter().enumerate() {
                let param = local < proctype.params && !program.initial.contains(&number);
                points.declare(program, Holder::variable(Some(number), local), variable, param);
            }
        }
        while points.round(program) {}
        points
    }

    pub fn of_place(&self, place: &Place, proctype: usize) -> Set {
        self.of_holder(&Holder::of(place, proctype))
    }

    pub fn of_holder(&self, holder: &Holder) -> Set {
        self.holders.get(holder).cloned().unwrap_or_default()
    }

    /// All holders with their sets.
    pub fn all(&self) -> impl Iterator<Item = (&Holder, &Set)> {
        self.holders.iter()
    }

    pub fn is_written(&self, holder: &Holder) -> bool {
        self.written.contains(holder)
    }

    fn declare(&mut self, program: &Program, holder: Holder, variable: &Variable, param: bool) {
        let mut scalars = Vec::new();
        chan_scalars(program, variable, &mut 0, &mut Vec::new(), &mut scalars);
        for (scalar, fields, ty) in scalars {
            let set = self.holders.entry(Holder { fields, ..holder.clone() }).or_default();
            match ty {
                Some(ty) => {
                    set.origins.insert(self.origins.len());
                    let (proctype, variable) = (holder.proctype, holder.variable);
                    self.origins.push(Origin { proctype, variable, scalar, ty });
                }
                None => set.null |= !param,
            }
        }
    }

    /// Applies every assignment once; true if a set grew.
    fn round(&mut self, program: &Program) -> bool {
        let mut grew = false;
        for (number, variable) in program.globals.iter().enumerate() {
            grew |= self.initial(Holder::variable(None, number), variable, 0);
        }
        for (number, proctype) in program.proctypes.iter().enumerate() {
            for (local, variable) in proctype.locals.iter().enumerate() {
                grew |= self.initial(Holder::variable(Some(number), local), variable, number);
            }
            walk_statements(&proctype.body, &mut |stmt| {
                if let StmtKind::Step(step) = &stmt.kind {
                    grew |= self.step(program, step, number);
                    step.walk(&mut |part| {
                        if let Expr::Run(run) = part {
                            let params = parameters(program, run.proctype);
                            for (param, arg) in params.into_iter().zip(&run.args) {
                                grew |= self.flow(param, arg, number);
                            }
                        }
                    });
                }
            });
        }
        grew
    }

    fn initial(&mut self, holder: Holder, variable: &Variable, proctype: usize) -> bool {
        match (&variable.init, variable.base) {
            (Init::Value(value), Base::Chan) => self.flow(holder, value, proctype),
            _ => false,
        }
    }

    /// The value of `arg`, an expression in `proctype`, reaches `to`.
    fn flow(&mut self, to: Holder, arg: &Expr, proctype: usize) -> bool {
        if !self.holders.contains_key(&to) {
            return false;
        }
        self.mixed |= !is_channel(arg);
        let set = self.of_expr(arg, proctype);
        self.holders.entry(to).or_default().add(&set)
    }

    fn of_expr(&self, value: &Expr, proctype: usize) -> Set {
        match value {
            Expr::Read(place) if place.base == Base::Chan => self.of_place(place, proctype),
            Expr::Choice(parts) => {
                let mut set = self.of_expr(&parts.1, proctype);
                set.add(&self.of_expr(&parts.2, proctype));
                set
            }
            Expr::Number(0) => Set { null: true, ..Set::default() },
            // A number that is used as a channel may be any of them.
            _ => Set { origins: (0..self.origins.len()).collect(), null: true },
        }
    }

    fn step(&mut self, program: &Program, step: &Step, proctype: usize) -> bool {
        match step {
            Step::Assign(place, value) if place.base == Base::Chan => {
                self.written.insert(Holder::of(place, proctype));
                self.flow(Holder::of(place, proctype), value, proctype)
            }
            Step::Send { channel, args, .. } => {
                let mut grew = false;
                for ty in self.types(channel, proctype) {
                    for (field, arg) in args.iter().enumerate() {
                        // A channel may also travel as a byte.
                        if program.channels[ty].fields.get(field) != Some(&Base::Chan) && !is_channel(arg) {
                            continue;
                        }
                        let set = match is_channel(arg) {
                            true => self.of_expr(arg, proctype),
                            false => Set { null: true, ..Set::default() },
                        };
                        self.mixed |= !is_channel(arg);
                        grew |= self.fields.entry((ty, field)).or_default().add(&set);
                    }
                }
                grew
            }
            Step::Receive { channel, args, .. } => {
                let mut grew = false;
                for ty in self.types(channel, proctype) {
                    for (field, arg) in args.iter().enumerate() {
                        if let Pattern::Store(place) = arg
                            && place.base == Base::Chan
                        {
                            let set = self.fields.get(&(ty, field)).cloned().unwrap_or_default();
                            self.written.insert(Holder::of(place, proctype));
                            grew |= self.holders.entry(Holder::of(place, proctype)).or_default().add(&set);
                        }
                    }
                }
                grew
            }
            _ => false,
        }
    }

    fn types(&self, channel: &Place, proctype: usize) -> BTreeSet<usize> {
        self.of_place(channel, proctype).origins.iter().map(|&origin| self.origins[origin].ty).collect()
    }
}

fn is_channel(value: &Expr) -> bool {
    matches!(value, Expr::Read(place) if place.base == Base::Chan)
}

/// The scalars that the parameters of a proctype consist of, in order.
fn parameters(program: &Program, proctype: usize) -> Vec<Holder> {
    let proctype_def = &program.proctypes[proctype];
    let mut out = Vec::new();
    for (local, variable) in proctype_def.locals[..proctype_def.params].iter().enumerate() {
        let mut scalars = Vec::new();
        all_scalars(program, variable, &mut Vec::new(), &mut scalars);
        out.extend(scalars.into_iter().map(|fields| Holder { fields, ..Holder::variable(Some(proctype), local) }));
    }
    out
}

/// The scalars of a variable, each by the fields that lead to it.
fn all_scalars(program: &Program, variable: &Variable, fields: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
    for _ in 0..variable.len.unwrap_or(1) {
        let Base::Struct(number) = variable.base else {
            out.push(fields.clone());
            continue;
        };
        for (index, field) in program.structs[number].fields.iter().enumerate() {
            fields.push(index);
            all_scalars(program, field, fields, out);
            fields.pop();
        }
    }
}

/// Number of a scalar, the fields that lead to it, and the type of the channel that it starts with.
type ChanScalar = (usize, Vec<usize>, Option<usize>);

/// The scalars of a variable that hold channels.
fn chan_scalars(
    program: &Program,
    variable: &Variable,
    next: &mut usize,
    fields: &mut Vec<usize>,
    out: &mut Vec<ChanScalar>,
) {
    for _ in 0..variable.len.unwrap_or(1) {
        match variable.base {
            Base::Struct(number) => {
                for (index, field) in program.structs[number].fields.iter().enumerate() {
                    fields.push(index);
                    chan_scalars(program, field, next, fields, out);
                    fields.pop();
                }
            }
            Base::Chan => {
                let ty = match variable.init {
                    Init::Channel(ty) => Some(ty),
                    _ => None,
                };
                out.push((*next, fields.clone(), ty));
                *next += 1;
            }
            _ => *next += 1,
        }
    }
}
