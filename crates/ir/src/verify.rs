//! What every later stage may assume about a system.
//!
//! [`verify`] is the gate between front ends and everything else: executors, layouts, passes and
//! effects index, unwrap and recurse freely on a system that passed it. It computes nothing about sizes
//! before it has bounded them, so it is safe on hostile input (as far as that could be built at all).
//! `verify/code.rs` looks at expressions and statements, this file at declarations.

mod code;

use crate::layout::Layout;
use crate::system::{Command, Deadlock, Locals, Procedure, Process, Property, System, Var};
use crate::types::{Scalar, Type};
use code::{Allowed, Code, Deeds};
use std::fmt;

/// Most words a state, or the temporaries of one command, may take.
pub const WORDS_LIMIT: usize = 1 << 16;
/// Deepest nesting of expressions and statements. Front ends balance long chains of `&&` and `||`.
pub const DEPTH_LIMIT: usize = 1000;
/// Deepest nesting of arrays and records.
pub const TYPE_DEPTH_LIMIT: usize = 64;
/// Command instances (and start instances) are numbered below this.
pub const INSTANCE_LIMIT: u64 = 1 << 30;
/// Most rounds a bounded loop may ask for.
pub const ROUNDS_LIMIT: u32 = 1 << 24;

/// Scalars of all variables (or temporaries) together: with this few, layouts cannot overflow.
const SCALARS_LIMIT: u64 = 1 << 22;
/// Declarations of one kind: keeps every index far from 32 bits.
const ITEMS_LIMIT: usize = 1 << 20;
/// Variables, temporaries of a command, and fields of a record.
const NAMES_LIMIT: usize = 1 << 16;
/// Flaws reported before giving up.
const FLAWS_LIMIT: usize = 100;

/// One reason why a system cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The part of the system, in words.
    pub place: String,
    pub message: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for Flaw {}

/// A system that passed [`verify`], which alone can say so: native code is made from nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'s>(&'s System);

impl<'s> Verified<'s> {
    pub fn system(self) -> &'s System {
        self.0
    }
}

/// Checks everything that later stages rely on.
pub fn verify(system: &System) -> Result<Verified<'_>, Vec<Flaw>> {
    let mut flaws = Vec::new();
    check_declarations(system, &mut flaws);
    // Types and counts are the ground that the other checks stand on.
    if flaws.is_empty() {
        check_vars(system, &mut flaws);
        for (index, process) in system.processes.iter().enumerate() {
            check_process(system, index, process, &mut flaws);
        }
        let procedures = check_procedures(system, &mut flaws);
        check_commands(system, &procedures, &mut flaws);
        for (index, property) in system.properties.iter().enumerate() {
            check_property(system, index, property, &procedures, &mut flaws);
        }
        check_conventions(system, &mut flaws);
    }
    flaws.truncate(FLAWS_LIMIT);
    if flaws.is_empty() { Ok(Verified(system)) } else { Err(flaws) }
}

/// Do two types store the same values the same way? Names of enumerations and fields do not matter:
/// they are for people, and the layout depends on ranges and order alone.
pub fn same_shape(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Scalar(one), Type::Scalar(other)) => one.low == other.low && one.high == other.high,
        (Type::Array { element: one, len }, Type::Array { element: other, len: other_len }) => {
            len == other_len && same_shape(one, other)
        }
        (Type::Record(one), Type::Record(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|((_, one), (_, other))| same_shape(one, other))
        }
        _ => false,
    }
}

fn flaw(flaws: &mut Vec<Flaw>, place: impl Into<String>, message: impl Into<String>) {
    if flaws.len() < FLAWS_LIMIT {
        flaws.push(Flaw { place: place.into(), message: message.into() });
    }
}

fn check_declarations(system: &System, flaws: &mut Vec<Flaw>) {
    let counts = [
        ("enumerations", system.enums.len(), ITEMS_LIMIT),
        ("variables", system.vars.len(), NAMES_LIMIT),
        ("processes", system.processes.len(), NAMES_LIMIT),
        ("start commands", system.starts.len(), ITEMS_LIMIT),
        ("commands", system.commands.len(), ITEMS_LIMIT),
        ("properties", system.properties.len(), ITEMS_LIMIT),
        ("procedures", system.procedures.len(), ITEMS_LIMIT),
    ];
    for (what, count, limit) in counts {
        if count > limit {
            return flaw(flaws, "system", format!("{count} {what} are more than {limit}"));
        }
    }
    for enumeration in &system.enums {
        if i64::try_from(enumeration.labels.len()).ok().and_then(|len| enumeration.first.checked_add(len)).is_none() {
            flaw(flaws, format!("enumeration {}", enumeration.name), "its values do not fit in 64 bits");
        }
    }
    let vars = system.vars.iter().map(|var| (var.name.as_str(), &var.ty));
    check_roots(system, "the state", vars, flaws);
    if flaws.is_empty() && Layout::of_system(system).words() > WORDS_LIMIT {
        flaw(flaws, "the state", format!("it takes more than {WORDS_LIMIT} words"));
    }
    for (index, command) in system.starts.iter().enumerate() {
        check_temps(system, &command_name("start command", index, command), &command.temps, flaws);
    }
    for (index, command) in system.commands.iter().enumerate() {
        check_temps(system, &command_name("command", index, command), &command.temps, flaws);
    }
    for (index, property) in system.properties.iter().enumerate() {
        check_temps(system, &property_name(index, property), &property.temps, flaws);
    }
    for (index, procedure) in system.procedures.iter().enumerate() {
        let place = procedure_name(index, procedure);
        check_temps(system, &place, &procedure.temps, flaws);
        check_temps(system, &place, &procedure.references, flaws);
        let exists = |index: usize| index < procedure.temps.len();
        let outputs = procedure.outputs.iter().all(|temp| exists(temp.index()));
        if procedure.inputs > procedure.temps.len() || !outputs || procedure.outputs.len() > NAMES_LIMIT {
            flaw(flaws, &place, "its inputs and outputs are not among its temporaries");
        }
    }
}

fn check_temps(system: &System, place: &str, temps: &[(String, Type)], flaws: &mut Vec<Flaw>) {
    let before = flaws.len();
    if temps.len() > NAMES_LIMIT {
        return flaw(flaws, place, format!("more than {NAMES_LIMIT} temporaries"));
    }
    check_roots(system, place, temps.iter().map(|(name, ty)| (name.as_str(), ty)), flaws);
    if flaws.len() == before && Layout::of_temps(temps).words() > WORDS_LIMIT {
        flaw(flaws, place, format!("its temporaries take more than {WORDS_LIMIT} words"));
    }
}

/// Checks types one by one and bounds their sum.
fn check_roots<'a>(
    system: &System,
    place: &str,
    roots: impl Iterator<Item = (&'a str, &'a Type)>,
    flaws: &mut Vec<Flaw>,
) {
    let mut total = 0u64;
    for (name, ty) in roots {
        match check_type(system, ty, 0) {
            Ok(scalars) => total = total.saturating_add(scalars),
            Err(message) => flaw(flaws, format!("{place}, {name}"), message),
        }
    }
    if total > SCALARS_LIMIT {
        flaw(flaws, place, format!("{total} scalars are more than {SCALARS_LIMIT}"));
    }
}

/// The number of scalars of a type, saturating, or what is wrong with it.
fn check_type(system: &System, ty: &Type, depth: usize) -> Result<u64, String> {
    if depth > TYPE_DEPTH_LIMIT {
        return Err(format!("the type is nested more than {TYPE_DEPTH_LIMIT} deep"));
    }
    match ty {
        Type::Scalar(scalar) => check_scalar(system, scalar).map(|()| 1),
        Type::Array { len: 0, .. } => Err("an array has no elements".into()),
        Type::Array { element, len } => Ok(check_type(system, element, depth + 1)?.saturating_mul(*len as u64)),
        Type::Record(fields) if fields.is_empty() => Err("a record has no fields".into()),
        Type::Record(fields) if fields.len() > NAMES_LIMIT => {
            Err(format!("a record has more than {NAMES_LIMIT} fields"))
        }
        Type::Record(fields) => {
            fields.iter().try_fold(0u64, |total, (_, ty)| Ok(total.saturating_add(check_type(system, ty, depth + 1)?)))
        }
    }
}

fn check_scalar(system: &System, scalar: &Scalar) -> Result<(), String> {
    if scalar.low > scalar.high {
        return Err(format!("the range {}..{} is empty", scalar.low, scalar.high));
    }
    if scalar.bits() > 32 {
        return Err(format!("the range {}..{} takes more than 32 bits", scalar.low, scalar.high));
    }
    match scalar.names {
        Some(id) if id.0 as usize >= system.enums.len() => Err(format!("there is no enumeration {}", id.0)),
        _ => Ok(()),
    }
}

fn check_vars(system: &System, flaws: &mut Vec<Flaw>) {
    for var in &system.vars {
        let place = format!("variable {}", var.name);
        if var.owner.is_some_and(|owner| owner.index() >= system.processes.len()) {
            flaw(flaws, &place, "its owner does not exist");
        }
        check_init(var, &place, flaws);
    }
    if let Some(var) = system.exclusive
        && system.vars.get(var.index()).and_then(|var| var.ty.as_scalar()).is_none()
    {
        flaw(flaws, "system", "the exclusive variable is not a scalar variable");
    }
}

fn check_init(var: &Var, place: &str, flaws: &mut Vec<Flaw>) {
    if var.init.is_empty() {
        return;
    }
    let mut scalars = Vec::new();
    list_scalars(&var.ty, &mut scalars);
    if scalars.len() != var.init.len() {
        let message = format!("{} initial values for {} scalars", var.init.len(), scalars.len());
        return flaw(flaws, place, message);
    }
    for (scalar, &value) in scalars.iter().zip(&var.init) {
        if scalar.decode(scalar.encode(value)) != value {
            flaw(
                flaws,
                place,
                format!("initial value {value} does not fit in the bits of {}..{}", scalar.low, scalar.high),
            );
        }
    }
}

fn list_scalars(ty: &Type, out: &mut Vec<Scalar>) {
    match ty {
        Type::Scalar(scalar) => out.push(*scalar),
        Type::Array { element, len } => (0..*len).for_each(|_| list_scalars(element, out)),
        Type::Record(fields) => fields.iter().for_each(|(_, ty)| list_scalars(ty, out)),
    }
}

fn check_process(system: &System, index: usize, process: &Process, flaws: &mut Vec<Flaw>) {
    let place = format!("process {index} ({})", process.name);
    let Some(scalar) = system.vars.get(process.location.index()).and_then(|var| var.ty.as_scalar()) else {
        return flaw(flaws, place, "its location is not a scalar variable");
    };
    if process.locations.is_empty() {
        flaw(flaws, &place, "it has no locations");
    } else if scalar.low != 0 || scalar.high < process.locations.len() as i64 - 1 {
        let message =
            format!("its location variable does not range from 0 over all {} locations", process.locations.len());
        flaw(flaws, &place, message);
    }
    if system.processes[..index].iter().any(|other| other.location == process.location) {
        flaw(flaws, &place, "it shares its location variable with another process");
    }
}

fn check_procedures(system: &System, flaws: &mut Vec<Flaw>) -> Vec<Deeds> {
    let mut all: Vec<Deeds> = Vec::new();
    for (index, procedure) in system.procedures.iter().enumerate() {
        let place = procedure_name(index, procedure);
        let mut code = Code::of_procedure(system, &all, flaws);
        code.statements(&place, &procedure.body, Allowed::BODY);
        let deeds = code.deeds(Layout::of_temps(&procedure.temps).words(), procedure.recursion);
        if deeds.exceeds(WORDS_LIMIT) {
            let limits = format!("nested deeper than {DEPTH_LIMIT} or take more than {WORDS_LIMIT} words");
            flaw(flaws, place, format!("its calls are {limits}"));
        }
        all.push(deeds);
    }
    all
}

fn check_commands(system: &System, procedures: &[Deeds], flaws: &mut Vec<Flaw>) {
    for (what, commands) in [("start command", &system.starts), ("command", &system.commands)] {
        let mut total = 0u64;
        for (index, command) in commands.iter().enumerate() {
            let place = command_name(what, index, command);
            check_command(system, &place, command, procedures, flaws);
            total = total.saturating_add(command.instances().unwrap_or(u64::MAX));
        }
        if total >= INSTANCE_LIMIT {
            flaw(flaws, "system", format!("the {what}s have {total} instances, the limit is {INSTANCE_LIMIT}"));
        }
    }
    let order = |command: &Command| command.process().map_or(u32::MAX, |process| process.0);
    if !system.commands.is_sorted_by_key(order) {
        flaw(flaws, "system", "the commands are not sorted by moving process");
    }
}

fn check_command(system: &System, place: &str, command: &Command, procedures: &[Deeds], flaws: &mut Vec<Flaw>) {
    for (index, &(process, location)) in command.at.iter().enumerate() {
        match system.processes.get(process.index()) {
            None => flaw(flaws, place, format!("there is no process {}", process.0)),
            Some(found) if location as usize >= found.locations.len() => {
                flaw(flaws, place, format!("process {} has no location {location}", found.name))
            }
            Some(_) => {}
        }
        if command.at[..index].iter().any(|&(other, _)| other == process) {
            flaw(flaws, place, format!("process {} occurs twice", process.0));
        }
    }
    for act in command.acts.iter().filter(|act| act.process.index() >= system.processes.len()) {
        flaw(flaws, place, format!("there is no process {} to act", act.process.0));
    }
    check_choices(place, command, flaws);
    let mut code = Code::new(system, Locals::temps(&command.temps), procedures, flaws);
    code.statements(&format!("{place}, prelude"), &command.prelude, Allowed::COMMAND_PRELUDE);
    code.expression(&format!("{place}, guard"), &command.guard);
    code.statements(&format!("{place}, body"), &command.body, Allowed::BODY);
}

fn check_choices(place: &str, command: &Command, flaws: &mut Vec<Flaw>) {
    for (index, choice) in command.choices.iter().enumerate() {
        let Some(scalar) = command.temps.get(choice.temp.index()).and_then(|(_, ty)| ty.as_scalar()) else {
            flaw(flaws, place, format!("choice {index} is not held by a scalar temporary"));
            continue;
        };
        if choice.low > choice.high {
            flaw(flaws, place, format!("choice {index} ranges over nothing"));
        } else if !scalar.contains(choice.low) || !scalar.contains(choice.high) {
            flaw(flaws, place, format!("choice {index} does not fit its temporary"));
        }
        if command.choices[..index].iter().any(|other| other.temp == choice.temp) {
            flaw(flaws, place, format!("choice {index} shares its temporary with another"));
        }
    }
}

fn check_property(system: &System, index: usize, property: &Property, procedures: &[Deeds], flaws: &mut Vec<Flaw>) {
    let place = property_name(index, property);
    let mut code = Code::new(system, Locals::temps(&property.temps), procedures, flaws);
    code.statements(&format!("{place}, prelude"), &property.prelude, Allowed::PROPERTY_PRELUDE);
    code.expression(&place, &property.expr);
}

fn check_conventions(system: &System, flaws: &mut Vec<Flaw>) {
    if let Deadlock::Stuck { accepted: Some(accepted) } = &system.deadlock {
        Code::new(system, Locals::temps(&[]), &[], flaws).expression("accepted ends", accepted);
    }
}

fn command_name(what: &str, index: usize, command: &Command) -> String {
    format!("{what} {index} ({})", command.label)
}

fn procedure_name(index: usize, procedure: &Procedure) -> String {
    format!("procedure {index} ({})", procedure.name)
}

fn property_name(index: usize, property: &Property) -> String {
    format!("property {index} ({})", property.name)
}

#[cfg(test)]
mod tests;
