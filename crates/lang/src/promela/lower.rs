//! [`Program`] → [`System`].
//!
//! One process of the system per slot (`config.rs`), whose locations are those of the proctypes that may live
//! in it; variables of slots (`storage.rs`), channels (`channels.rs`) and globals; then one command per transition
//! and slot (`transition.rs`), or per pair of transitions that may meet (`rendezvous.rs`). An atomic
//! sequence sets the system's exclusive variable to the slot that must go on, plus one.

mod birth;
mod channels;
mod claim;
pub mod config;
mod dstep;
mod effect;
mod points;
mod queue;
mod reflect;
mod rendezvous;
mod storage;
mod transition;
mod value;

use super::ast::{Expr as Source, Program};
use super::flow::{self, Automaton};
use super::lexer::Site;
use channels::{Channel, Family, Row};
use claim::Claim;
use config::Configuration;
use plimsoll_ir::{
    BinOp, Deadlock, EnumId, Enumeration, Expr, Faults, ProcessId, Property, PropertyKind, Scalar, System, VarId,
};
use points::Points;
use rendezvous::Receiver;
use storage::{Slot, Types};
use value::balanced;

/// Whose variables an expression reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    /// `None` for the initial values of globals.
    slot: Option<usize>,
    proctype: usize,
}

struct Lowering<'a> {
    program: &'a Program,
    automata: Vec<Automaton<'a>>,
    /// May control be at a location of a proctype within an atomic sequence?
    inside: Vec<Vec<bool>>,
    config: &'a Configuration,
    /// How many elements SPIN numbers before those of each proctype, and before those of the claim.
    elements_before: (Vec<u32>, u32),
    points: Points,
    types: Types,
    system: System,
    slots: Vec<Slot>,
    /// `None` for channels that need no storage.
    globals: Vec<Option<VarId>>,
    channels: Vec<Channel>,
    families: Vec<Family>,
    rows: Vec<Row>,
    receivers: Vec<Receiver<'a>>,
    claim: Option<Claim<'a>>,
    exclusive: Option<VarId>,
    last: Option<VarId>,
    /// Where messages belong.
    site: Site,
    errors: Vec<(String, Site)>,
    /// Where the variables of the system are declared, but for those that the model does not name.
    declared: Vec<(VarId, Site)>,
}

/// What is wrong with a program, and where.
pub type Problems = Vec<(String, Site)>;

/// Translates a program under a configuration.
pub fn lower(program: &Program, config: &Configuration, name: &str) -> Result<System, Problems> {
    let mut lowering = Lowering::new(program, config, name)?;
    lowering.add_start();
    lowering.add_commands();
    lowering.system.faults = Faults::Vanish;
    lowering.system.deadlock = match program.never {
        Some(_) => Deadlock::Never,
        None => Deadlock::Stuck { accepted: Some(lowering.accepted()) },
    };
    lowering.join_claim();
    if lowering.errors.is_empty() { Ok(lowering.system) } else { Err(lowering.errors) }
}

/// SPIN's numbers of the statements of a never claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimNumbers {
    pub process: ProcessId,
    /// The number of the claim among the bodies of the model.
    pub body: u32,
    /// By location of the claim, then by choice of a command.
    pub statements: Vec<Vec<u32>>,
}

/// The numbers of the never claim of a program, if it has one.
pub fn claim_numbers(program: &Program, config: &Configuration) -> Option<ClaimNumbers> {
    let lowering = Lowering::new(program, config, "").ok()?;
    let claim = lowering.claim.as_ref()?;
    let body = program.bodies.iter().position(Option::is_none)? as u32;
    let number = |transition: &flow::Transition| transition::numbers(transition, lowering.elements_before.1).1;
    let statements = claim.automaton.locations.iter();
    let statements = statements.map(|location| location.transitions.iter().map(number).collect()).collect();
    Some(ClaimNumbers { process: claim.process, body, statements })
}

/// Translates an expression over the global names of a program: what runs before it, and its value.
pub fn lower_expression(program: &Program, config: &Configuration, value: &Source) -> Result<Property, Problems> {
    let mut lowering = Lowering::new(program, config, "")?;
    let mut draft = value::Draft::default();
    if value.any(|part| matches!(part, Source::Run(_) | Source::Timeout | Source::Pid | Source::Last)) {
        lowering.fail("run, timeout, _pid and _last have no meaning in a property of a state");
    }
    let expr = lowering.truth(value, Frame { slot: None, proctype: 0 }, &mut draft);
    let (temps, prelude) = (draft.temps, draft.code);
    let property = Property { name: String::new(), line: 0, kind: PropertyKind::Invariant, temps, prelude, expr };
    if lowering.errors.is_empty() { Ok(property) } else { Err(lowering.errors) }
}

impl<'a> Lowering<'a> {
    /// Everything but the commands.
    fn new(program: &'a Program, config: &'a Configuration, name: &str) -> Result<Lowering<'a>, Problems> {
        let mut errors = Vec::new();
        let mut automata = Vec::new();
        for proctype in &program.proctypes {
            match flow::automaton(proctype, &program.remote_labels, false) {
                Ok(automaton) => automata.push(automaton),
                Err(mut found) => errors.append(&mut found),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let inside = automata.iter().map(inside_atomic).collect();
        let mut lowering = Lowering {
            program,
            automata,
            inside,
            config,
            elements_before: (vec![0; program.proctypes.len()], 0),
            points: Points::of(program),
            types: Types::new(0, true, None),
            system: System::new(name),
            slots: Vec::new(),
            globals: Vec::new(),
            channels: Vec::new(),
            families: Vec::new(),
            rows: Vec::new(),
            receivers: Vec::new(),
            claim: None,
            exclusive: None,
            last: None,
            site: Site::default(),
            errors,
            declared: Vec::new(),
        };
        let claim = match &program.never {
            Some(never) => Some((never, flow::automaton(never, &[], true)?)),
            None => None,
        };
        lowering.count_elements(claim.as_ref().map_or(0, |(_, automaton)| automaton.elements));
        lowering.declare();
        if lowering.is_too_wide() {
            return Err(lowering.errors);
        }
        if let Some((never, automaton)) = claim {
            lowering.add_claim(never, automaton);
        }
        Ok(lowering)
    }

    fn count_elements(&mut self, of_claim: u32) {
        let mut before = 0;
        for &body in &self.program.bodies {
            let (place, count) = match body {
                Some(number) => (&mut self.elements_before.0[number], self.automata[number].elements),
                None => (&mut self.elements_before.1, of_claim),
            };
            *place = before;
            before += count;
        }
    }

    fn fail(&mut self, message: impl Into<String>) {
        let (message, site) = (message.into(), self.site);
        if !self.errors.iter().any(|(other, at)| *other == message && *at == site) {
            self.errors.push((message, site));
        }
    }

    fn declare(&mut self) {
        self.number_channels();
        let mtypes = self.add_enums();
        self.types = Types::new(self.channels.len(), self.points.mixed, mtypes);
        self.add_globals();
        if self.inside.iter().flatten().any(|&inside| inside) {
            self.exclusive = Some(self.system.var("exclusive", Scalar::U8, None));
            self.system.exclusive = self.exclusive;
        }
        if self.program.uses_last {
            self.last = Some(self.system.var("_last", Scalar::U8, None));
        }
        self.add_slots();
        self.add_channels();
        self.find_receivers();
    }

    fn add_enums(&mut self) -> Option<EnumId> {
        let (_, labels) = self.program.mtypes.iter().find(|(set, _)| set.is_empty())?;
        self.system.enums.push(Enumeration { name: "mtype".into(), first: 1, labels: labels.clone() });
        Some(EnumId(self.system.enums.len() as u32 - 1))
    }

    /// Every process is at its end, at an end label, or not there.
    fn accepted(&self) -> Expr {
        let terms = self.slots.iter().enumerate().map(|(number, slot)| {
            let mut locations = vec![0];
            for &(proctype, first) in &slot.tenants {
                let all = self.automata[proctype].locations.iter().enumerate();
                locations.extend(all.filter(|(_, location)| location.end).map(|(index, _)| first + index as u32));
            }
            self.stands_at(number, &locations)
        });
        balanced(BinOp::And, terms.collect())
    }
}

/// Locations that an atomic transition leads to.
fn inside_atomic(automaton: &Automaton) -> Vec<bool> {
    let mut inside = vec![false; automaton.locations.len()];
    for transition in automaton.locations.iter().flat_map(|location| &location.transitions) {
        if let (true, Some(target)) = (transition.atomic, transition.target) {
            inside[target] = true;
        }
    }
    inside
}
