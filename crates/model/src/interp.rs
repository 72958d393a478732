//! The semantics of a [`System`], written to be read.
//!
//! The successors of a state are found rank by rank, and within a rank command by command and choice by
//! choice (the last choice fastest). An instance whose processes stand where it says, whose prelude runs
//! through and whose guard is true has one successor: what its body makes of a copy of the state. A fault
//! anywhere in it gives an entry marked as such. The native executor must agree entry by entry.

mod link;
mod run;

use std::ops::Range;
use std::sync::OnceLock;

use plimsoll_ir::instances::choice_values;
use plimsoll_ir::{
    Choice, Command, Deadlock, Effects, Faults, Kind, Layout, Locals, ProcessId, Property, PropertyKind, Slot, System,
};

use crate::chain::Chain;
use crate::coverage::Plain;
use crate::order::Order;
use crate::{Conventions, GaveUp, Model, Patience, Step, Successors, kinds};
use link::{Expr, Linker, Place, Routine, Stmt};
use run::{Fault, Machine, Stop};

/// Instances of start commands in one part of the initial states.
const PART: u32 = 1024;
/// All instances of a command.
const ALL: Range<u32> = 0..u32::MAX;

/// Executes a system by walking its expressions and statements.
pub struct Interp {
    system: System,
    layout: Layout,
    /// Where each process keeps its control location.
    locations: Vec<Slot>,
    commands: Program,
    starts: Program,
    procedures: Vec<Routine>,
    properties: Vec<Check>,
    /// Accepts states without successors as proper ends.
    accepted: Option<Expr>,
    chain: Option<Chain>,
    patience: Patience,
    /// Computed when a reduction first asks.
    effects: OnceLock<Effects>,
}

/// A list of commands, linked and ordered.
struct Program {
    order: Order,
    codes: Vec<Code>,
}

/// One command with its places resolved.
struct Code {
    at: Vec<(ProcessId, u32)>,
    temp_words: usize,
    choices: Vec<Choice>,
    /// The temporaries that hold the choices.
    chosen: Vec<Place>,
    prelude: Vec<Stmt>,
    guard: Expr,
    body: Vec<Stmt>,
}

/// One property with its places resolved.
struct Check {
    temp_words: usize,
    prelude: Vec<Stmt>,
    expr: Expr,
    wanted: bool,
}

/// What a person should know about a step that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub problem: Problem,
    pub message: String,
    /// The variable or part of one that was involved, as a person would write it.
    pub place: Option<String>,
}

/// What went wrong in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An assertion was false.
    Assertion,
    /// An array index was out of bounds.
    Index,
    /// Division or remainder by zero.
    Division,
    /// A value did not fit the variable it was assigned to.
    Range,
    /// A loop did not end in time, or a procedure called itself too often.
    Loop,
    /// The model itself says that something is wrong.
    Stated,
    /// An atomic chain did not end.
    Chain,
}

impl Interp {
    /// Prepares a verified system for execution.
    pub fn new(system: System) -> Interp {
        let layout = Layout::of_system(&system);
        let slot_of =
            |var: plimsoll_ir::VarId| layout.address(var.index(), &system.vars[var.index()].ty, &[]).slot(&[]);
        Interp {
            locations: system.processes.iter().map(|process| slot_of(process.location)).collect(),
            commands: Program::link(&system, &layout, &system.commands),
            starts: Program::link(&system, &layout, &system.starts),
            procedures: system.procedures.iter().map(|procedure| Routine::link(&system, &layout, procedure)).collect(),
            properties: system.properties.iter().map(|property| Check::link(&system, &layout, property)).collect(),
            accepted: match &system.deadlock {
                Deadlock::Stuck { accepted: Some(expr) } => {
                    Some(Linker::new(&system, &layout, Locals::temps(&[])).expr(expr))
                }
                _ => None,
            },
            chain: system.exclusive.map(|var| Chain { scalar: slot_of(var), patience: Patience::default() }),
            patience: Patience::default(),
            effects: OnceLock::new(),
            layout,
            system,
        }
    }

    /// The same, with bounds on what one step may take.
    pub fn with_patience(mut self, patience: Patience) -> Interp {
        self.chain = self.chain.map(|chain| Chain { patience, ..chain });
        self.patience = patience;
        self
    }

    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// The values that the expressions of all properties have in a state, where they have one.
    pub fn values(&self, state: &[u32]) -> Vec<Option<i64>> {
        let mut machine = Machine::new(state, &self.procedures, self.patience);
        self.properties.iter().map(|property| property.value(&mut machine)).collect()
    }

    pub fn system(&self) -> &System {
        &self.system
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn order(&self) -> &Order {
        &self.commands.order
    }

    pub(crate) fn chain(&self) -> Option<Chain> {
        self.chain
    }

    /// What goes wrong in a step from `state`; `None` if nothing does. A step that stands for an atomic
    /// chain is followed to where the chain goes wrong.
    pub fn explain(&self, state: &[u32], step: Step) -> Option<Explanation> {
        let found = self.explain_instance(&self.commands, state, step.instance());
        if found.is_some() || step.is_plain() || self.chain.is_none() {
            return found;
        }
        let mut out = Successors::new(self.width());
        self.successors(state, &mut out);
        let number = out.steps().iter().position(|&other| other == step.0);
        let (mut before, mut found) = (state.to_vec(), None);
        if let (Some(chain), Some(number)) = (&self.chain, number) {
            chain.follow(|state, out| self.plain(state, out), state, number, &mut |step, after| {
                found = found.take().or_else(|| self.explain_instance(&self.commands, &before, step.instance()));
                before.copy_from_slice(after);
            });
        }
        Some(found.unwrap_or_else(|| Explanation::new(Problem::Chain, "the atomic chain does not end".into(), None)))
    }

    /// What went wrong in a start command; `None` if nothing does.
    pub fn explain_initial(&self, step: Step) -> Option<Explanation> {
        self.explain_instance(&self.starts, &self.system.base_state(&self.layout), step.instance())
    }

    fn explain_instance(&self, program: &Program, state: &[u32], instance: u32) -> Option<Explanation> {
        let (command, number) = program.order.locate(instance)?;
        let mut machine = Machine::new(state, &self.procedures, self.patience);
        match program.codes[command.index()].fire(&mut machine, number) {
            Err(Stop::Fault(fault)) => Some(Explanation::of(&fault)),
            Err(Stop::Discard | Stop::GaveUp) | Ok(false) => None,
            Ok(true) => machine.failed.map(|message| Explanation::new(Problem::Assertion, message.to_string(), None)),
        }
    }

    /// The successors of `state` under a list of commands, atomic chains not yet followed.
    fn expand(&self, program: &Program, state: &[u32], out: &mut Successors) {
        assert_eq!(state.len(), self.width(), "a state has the width of its model");
        let before = out.len();
        let mut machine = Machine::new(state, &self.procedures, self.patience);
        for section in &program.order.sections {
            for group in &section.groups {
                let location = group.process.map_or(0, |process| self.location(process, state));
                for &command in group.lists.get(location as usize).into_iter().flatten() {
                    self.run_command(program, command, ALL, state, &mut machine, out);
                }
            }
            if out.len() > before {
                return;
            }
        }
    }

    /// Tries every instance of a command that is among `wanted`. `machine` holds a copy of `state` and does so again afterwards.
    fn run_command<'a>(
        &'a self,
        program: &'a Program,
        command: usize,
        wanted: Range<u32>,
        state: &[u32],
        machine: &mut Machine<'a>,
        out: &mut Successors,
    ) {
        let code = &program.codes[command];
        if code.at.iter().any(|&(process, location)| self.location(process, state) != location) {
            return;
        }
        let first = program.order.first_instance(command);
        let end = program.order.instances(command).min(wanted.end.saturating_sub(first));
        for number in wanted.start.saturating_sub(first)..end {
            let instance = first + number;
            let fired = if machine.is_patient() { code.fire(machine, number) } else { Err(Stop::GaveUp) };
            match fired {
                Ok(true) if machine.failed.is_some() => out.push(&machine.state, Step(instance | Step::VIOLATION)),
                Ok(true) => out.push(&machine.state, Step(instance)),
                Err(Stop::Fault(_)) => out.push(state, Step(instance | Step::FAULT)),
                Err(Stop::GaveUp) => return out.give_up(GaveUp::Stopped),
                Ok(false) | Err(Stop::Discard) => {}
            }
            machine.state.copy_from_slice(state);
        }
    }

    fn location(&self, process: ProcessId, state: &[u32]) -> u32 {
        self.locations[process.index()].load(state)
    }
}

impl Code {
    fn link(system: &System, layout: &Layout, command: &Command) -> Code {
        let linker = Linker::new(system, layout, Locals::temps(&command.temps));
        Code {
            at: command.at.clone(),
            temp_words: linker.temp_words(),
            choices: command.choices.clone(),
            chosen: command.choices.iter().map(|choice| linker.place(&choice.temp.into())).collect(),
            prelude: linker.stmts(&command.prelude),
            guard: linker.expr(&command.guard),
            body: linker.stmts(&command.body),
        }
    }

    /// Runs the `number`-th instance on the machine's state. Is it enabled? If so, the machine holds the successor.
    fn fire<'a>(&'a self, machine: &mut Machine<'a>, number: u32) -> Result<bool, Stop<'a>> {
        machine.begin(self.temp_words);
        for (place, value) in self.chosen.iter().zip(choice_values(&self.choices, number)) {
            machine.choose(place, value);
        }
        machine.run(&self.prelude)?;
        if !machine.truth(&self.guard)? {
            return Ok(false);
        }
        machine.run(&self.body)?;
        Ok(true)
    }
}

impl Program {
    fn link(system: &System, layout: &Layout, commands: &[Command]) -> Program {
        let codes = commands.iter().map(|command| Code::link(system, layout, command)).collect();
        Program { order: Order::of(commands), codes }
    }
}

impl Check {
    fn link(system: &System, layout: &Layout, property: &Property) -> Check {
        let linker = Linker::new(system, layout, Locals::temps(&property.temps));
        Check {
            temp_words: linker.temp_words(),
            prelude: linker.stmts(&property.prelude),
            expr: linker.expr(&property.expr),
            wanted: property.kind == PropertyKind::Invariant,
        }
    }

    fn value<'a>(&'a self, machine: &mut Machine<'a>) -> Option<i64> {
        machine.begin(self.temp_words);
        machine.run(&self.prelude).ok()?;
        machine.eval(&self.expr).ok()
    }

    /// Anything but a clean evaluation to the wanted truth counts as a violation.
    fn is_violated<'a>(&'a self, machine: &mut Machine<'a>) -> bool {
        machine.begin(self.temp_words);
        let truth = match machine.run(&self.prelude) {
            Ok(_) => machine.truth(&self.expr),
            Err(stop) => Err(stop),
        };
        // Whoever gives up has to look at the reason: this is no judgement.
        truth != Err(Stop::GaveUp) && (machine.failed.is_some() || truth != Ok(self.wanted))
    }
}

impl Plain for Interp {
    fn interp(&self) -> &Interp {
        self
    }

    fn plain(&self, state: &[u32], out: &mut Successors) {
        self.expand(&self.commands, state, out);
    }
}

impl Model for Interp {
    fn width(&self) -> usize {
        self.layout.words()
    }

    fn used_bits(&self) -> Vec<u32> {
        self.system.used_bits(&self.layout)
    }

    fn most_successors(&self) -> usize {
        self.commands.order.most_successors()
    }

    fn scratch_bytes(&self) -> usize {
        self.chain.map_or(0, |chain| chain.patience.chain_bytes)
    }

    fn initial(&self, out: &mut Successors) {
        let base = self.system.base_state(&self.layout);
        if self.system.starts.is_empty() {
            out.push(&base, Step(0));
        } else {
            self.expand(&self.starts, &base, out);
        }
    }

    fn initial_part(&self, part: u32, out: &mut Successors) -> bool {
        // Where starts have ranks, which of them count depends on all.
        let [section] = &self.starts.order.sections[..] else {
            self.initial(out);
            return false;
        };
        let wanted = part * PART..(part + 1).saturating_mul(PART);
        let base = self.system.base_state(&self.layout);
        let mut machine = Machine::new(&base, &self.procedures, self.patience);
        for &command in section.groups.iter().flat_map(|group| &group.lists).flatten() {
            self.run_command(&self.starts, command, wanted.clone(), &base, &mut machine, out);
        }
        out.gave_up().is_none() && wanted.end < self.starts.order.total()
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        match &self.chain {
            Some(chain) => chain.successors(|state, out| self.plain(state, out), state, out),
            None => self.plain(state, out),
        }
    }

    fn path(&self, state: &[u32], number: usize) -> Vec<(Step, Vec<u32>)> {
        let raw = |state: &[u32], out: &mut Successors| self.expand(&self.commands, state, out);
        match &self.chain {
            Some(chain) => chain.path(raw, state, number).expect("the successor exists"),
            None => crate::one_step(self, state, number),
        }
    }

    fn violated(&self, state: &[u32]) -> Option<u32> {
        let mut machine = Machine::new(state, &self.procedures, self.patience);
        self.properties.iter().position(|check| check.is_violated(&mut machine)).map(|number| number as u32)
    }

    fn violates(&self, state: &[u32], property: u32) -> bool {
        let check = self.properties.get(property as usize);
        check.is_some_and(|check| check.is_violated(&mut Machine::new(state, &self.procedures, self.patience)))
    }

    /// A fault while evaluating means that the state is not accepted.
    fn accepts_end(&self, state: &[u32]) -> bool {
        self.accepted
            .as_ref()
            .is_some_and(|expr| Machine::new(state, &self.procedures, self.patience).truth(expr) == Ok(true))
    }

    fn conventions(&self) -> Conventions {
        Conventions {
            stuttering_is_deadlock: self.system.deadlock == Deadlock::Stuttering,
            deadlock_is_fine: self.system.deadlock == Deadlock::Never,
            faults_absorb: self.system.faults == Faults::Absorb,
        }
    }

    fn independent(&self, one: Step, other: Step) -> bool {
        let command = |step: Step| self.commands.order.locate(step.instance()).map(|(command, _)| command);
        let effects = self.effects.get_or_init(|| Effects::of(&self.system));
        match (command(one), command(other)) {
            (Some(one), Some(other)) => effects.independent(one, other),
            _ => false,
        }
    }

    fn kind(&self, step: Step) -> u8 {
        let Some((command, _)) = self.commands.order.locate(step.instance()) else { return 0 };
        match self.system.commands[command.index()].kind {
            Kind::Control => kinds::CONTROL,
            Kind::Receive => kinds::RECEIVE,
            Kind::Send => kinds::SEND,
            Kind::Assign => kinds::ASSIGN,
            Kind::Other => kinds::OTHER,
        }
    }
}

impl Explanation {
    fn new(problem: Problem, message: String, place: Option<&str>) -> Explanation {
        Explanation { problem, message, place: place.map(str::to_string) }
    }

    fn of(fault: &Fault) -> Explanation {
        match fault {
            Fault::Index { place, index, len } => {
                let message = format!("index {index} is out of bounds in {place} (length {len})");
                Explanation::new(Problem::Index, message, Some(place))
            }
            Fault::DivisionByZero => Explanation::new(Problem::Division, "division by zero".into(), None),
            Fault::OutOfRange { place, value, scalar } => {
                let message = format!("{value} does not fit {place}, which holds {} to {}", scalar.low, scalar.high);
                Explanation::new(Problem::Range, message, Some(place))
            }
            Fault::Endless => {
                Explanation::new(Problem::Loop, "the loop never ends: it comes back to where it was".into(), None)
            }
            Fault::LoopLimit(limit) => {
                Explanation::new(Problem::Loop, format!("the loop did not end within {limit} rounds"), None)
            }
            Fault::Recursion(limit) => {
                Explanation::new(Problem::Loop, format!("a procedure calls itself more than {limit} deep"), None)
            }
            Fault::Stated(message) => Explanation::new(Problem::Stated, message.to_string(), None),
        }
    }
}
