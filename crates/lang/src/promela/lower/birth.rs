//! How processes come and go, and what variables start with.
//!
//! A new process takes the lowest free slot. Because only the youngest process may die, the taken slots are
//! always the lowest ones, and the number of a process is the number of its slot.

use super::config::{Configuration, MOST_PROCESSES};
use super::value::{Draft, Value};
use super::{Frame, Lowering};
use crate::promela::ast::{Access, Base, Expr as Source, Init, Place as Named, Root, Run, Variable};
use plimsoll_ir::{Expr, Narrow, Scalar, Stmt};

impl Lowering<'_> {
    /// The code of the `run` in an expression, if there is one; its value is then in `draft.started`.
    pub fn start(&mut self, value: &Source, frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        let mut runs: Vec<&Run> = Vec::new();
        value.walk(&mut |part| {
            if let Source::Run(run) = part {
                runs.push(run);
            }
        });
        match runs.as_slice() {
            [] => Vec::new(),
            [run] => self.run(run, frame, draft),
            _ => {
                self.fail("an expression can hold only one run");
                Vec::new()
            }
        }
    }

    fn run(&mut self, run: &Run, frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        self.site = run.site;
        let proctype = &self.program.proctypes[run.proctype];
        let mut wanted = Vec::new();
        for param in &proctype.locals[..proctype.params] {
            crate::promela::parser::flatten(&self.program.structs, param.base, &mut wanted);
        }
        if wanted.len() != run.args.len() {
            let (name, given) = (&proctype.name, run.args.len());
            self.fail(format!("proctype {name} takes {} parameters, not {given}", wanted.len()));
            return Vec::new();
        }
        let started = draft.temp("started", Scalar::U8);
        let mut args = Vec::new();
        for arg in &run.args {
            let value = self.value(arg, frame, draft);
            let kept = draft.keep(value.expr.clone());
            args.push(value.with(kept));
        }
        let mut out = draft.take_code();
        let mut search = Vec::new();
        for slot in frame.slot.map_or(0, |slot| slot + 1)..self.slots.len() {
            let mut then = if self.config.slots[slot].contains(&run.proctype) {
                self.create(slot, run.proctype, &args, draft)
            } else {
                vec![Stmt::Fault(Configuration::request(slot, &self.program.proctypes[run.proctype].name))]
            };
            then.push(Stmt::assign(started, slot as i64, Narrow::Wrap));
            then.push(Stmt::Break(0));
            search.push(Stmt::If { condition: self.is_slot_free(slot), then, otherwise: Vec::new() });
        }
        search.push(Stmt::Fault(if self.slots.len() >= MOST_PROCESSES {
            format!("more than {MOST_PROCESSES} processes")
        } else {
            Configuration::request(self.slots.len(), &self.program.proctypes[run.proctype].name)
        }));
        out.push(Stmt::Block(search));
        draft.started = Some(started);
        out
    }

    /// Fills a free slot: parameters, initial values, location.
    pub fn create(&mut self, slot: usize, proctype: usize, args: &[Value], draft: &mut Draft) -> Vec<Stmt> {
        let frame = Frame { slot: Some(slot), proctype };
        let (params, locals) = {
            let proctype = &self.program.proctypes[proctype];
            (proctype.params, &proctype.locals)
        };
        let mut out = Vec::new();
        let mut rest = args.iter();
        for (number, variable) in locals[..params].iter().enumerate() {
            for place in self.scalars(variable, Root::Local(number)) {
                let Some(value) = rest.next() else { break };
                out.extend(self.store(&place, value.clone(), frame, draft));
            }
        }
        let mut order: Vec<usize> = (params..locals.len()).collect();
        order.sort_by_key(|&number| turn(locals[number].base));
        for number in order {
            out.extend(self.initialise(&locals[number], Root::Local(number), frame, draft));
        }
        let start = self.slots[slot].location(proctype, self.automata[proctype].start);
        out.push(Stmt::assign(self.slots[slot].location, start as i64, Narrow::Trap));
        out
    }

    /// Empties a slot.
    pub fn die(&mut self, slot: usize, proctype: usize) -> Vec<Stmt> {
        let locals = self.program.proctypes[proctype].locals.len();
        let cells = (0..locals).filter_map(|local| self.slots[slot].cells.get(&(proctype, local)));
        let mut out: Vec<Stmt> = cells.map(|&cell| Stmt::Reset(cell.into())).collect();
        out.extend(self.reset_channels(slot, proctype));
        out.push(Stmt::Reset(self.slots[slot].location.into()));
        out
    }

    /// The initial values of the global variables.
    pub fn initialise_globals(&mut self, draft: &mut Draft) -> Vec<Stmt> {
        let globals = &self.program.globals;
        let mut order: Vec<usize> = (0..globals.len()).collect();
        order.sort_by_key(|&number| turn(globals[number].base));
        let frame = Frame { slot: None, proctype: 0 };
        let mut out = Vec::new();
        for number in order {
            out.extend(self.initialise(&globals[number], Root::Global(number), frame, draft));
        }
        out
    }

    fn initialise(&mut self, variable: &Variable, root: Root, frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        let (proctype, number) = match root {
            Root::Global(number) => (None, number),
            Root::Local(number) => (Some(frame.proctype), number),
        };
        let unseen = proctype.is_none() && self.globals[number].is_none();
        if unseen || self.is_constant_channel(proctype, number) {
            return Vec::new();
        }
        let mut out = self.initial_scalars(variable, root, frame, draft);
        let place = Named { root, path: Vec::new(), base: variable.base, len: variable.len };
        if !self.declared_channels(proctype, number, frame.slot).is_empty() {
            let to = self.place(&place, frame, draft);
            out.extend(self.store_channels(proctype, number, frame.slot, to));
        }
        out
    }

    fn initial_scalars(&mut self, variable: &Variable, root: Root, frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        let mut out = Vec::new();
        for (place, init) in self.initial_values(variable, root) {
            let value = self.value(&init, frame, draft);
            out.extend(draft.take_code());
            out.extend(self.store(&place, value, frame, draft));
        }
        out
    }

    /// The scalars of a variable that do not start as zero, with their initial values.
    fn initial_values(&self, variable: &Variable, root: Root) -> Vec<(Named, Source)> {
        let mut out = Vec::new();
        let place = Named { root, path: Vec::new(), base: variable.base, len: variable.len };
        self.collect_initial(variable, place, &mut out);
        out
    }

    fn collect_initial(&self, variable: &Variable, place: Named, out: &mut Vec<(Named, Source)>) {
        for (index, element) in elements(&place).into_iter().enumerate() {
            if let Base::Struct(number) = variable.base {
                for (field, part) in self.program.structs[number].fields.iter().enumerate() {
                    let mut inner = element.clone();
                    inner.path.push(Access::Field(field));
                    (inner.base, inner.len) = (part.base, part.len);
                    self.collect_initial(part, inner, out);
                }
                continue;
            }
            match &variable.init {
                Init::Value(value) => out.push((element, value.clone())),
                Init::List(values) => {
                    let value = values.get(index).or(values.last()).copied().unwrap_or(0);
                    out.push((element, Source::Number(value)));
                }
                Init::Zero | Init::Channel(_) => {}
            }
        }
    }

    /// All scalars of a variable, in order.
    fn scalars(&self, variable: &Variable, root: Root) -> Vec<Named> {
        let place = Named { root, path: Vec::new(), base: variable.base, len: variable.len };
        let mut out = Vec::new();
        self.collect_scalars(place, &mut out);
        out
    }

    fn collect_scalars(&self, place: Named, out: &mut Vec<Named>) {
        for element in elements(&place) {
            let Base::Struct(number) = element.base else {
                out.push(element);
                continue;
            };
            for (field, part) in self.program.structs[number].fields.iter().enumerate() {
                let mut inner = element.clone();
                inner.path.push(Access::Field(field));
                (inner.base, inner.len) = (part.base, part.len);
                self.collect_scalars(inner, out);
            }
        }
    }

    /// The initial state as a start command: globals, then the initial processes in order.
    pub fn add_start(&mut self) {
        let mut draft = Draft::default();
        let mut body = self.initialise_globals(&mut draft);
        for (slot, &proctype) in self.program.initial.iter().enumerate() {
            body.extend(self.create(slot, proctype, &[], &mut draft));
        }
        let mut command = plimsoll_ir::Command::new("start");
        (command.temps, command.body) = (draft.temps, body);
        self.system.starts.push(command);
    }

    /// May the process of a slot die, being the youngest?
    pub fn is_youngest(&self, slot: usize) -> Expr {
        if slot + 1 < self.slots.len() { self.is_slot_free(slot + 1) } else { Expr::TRUE }
    }
}

/// SPIN initialises variables type by type.
fn turn(base: Base) -> u8 {
    match base {
        Base::Unsigned(_) => 0,
        Base::Bit => 1,
        Base::Byte => 2,
        Base::Chan => 3,
        Base::Mtype => 4,
        Base::Short => 5,
        Base::Int => 6,
        Base::Struct(_) => 7,
    }
}

/// The elements of an array, or the place itself.
fn elements(place: &Named) -> Vec<Named> {
    let Some(len) = place.len else { return vec![place.clone()] };
    let element = |index: u32| {
        let mut element = place.clone();
        element.len = None;
        element.path.push(Access::Index(Source::Number(index as i64)));
        element
    };
    (0..len).map(element).collect()
}
