//! States and steps for people: names and values instead of words and numbers.

use plimsoll_ir::{Command, Instances, Layout, Scalar, Slot, System, VarId};
use plimsoll_model::{Interp, Model, Step};
use plimsoll_search::Replayed;
use serde::{Deserialize, Serialize};

/// One value of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldValue {
    pub name: String,
    pub value: String,
}

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownStep {
    /// From 1; steps inside an atomic chain have the number of the chain.
    pub number: u64,
    pub process: Option<String>,
    /// Line of the model text, 0 if unknown.
    pub line: u32,
    pub label: String,
    /// What the step changed.
    pub changes: Vec<FieldValue>,
    /// What went wrong in it.
    pub problem: Option<String>,
}

/// A named scalar of the state.
pub struct Field {
    pub name: String,
    pub slot: Slot,
    pub scalar: Scalar,
    names: Names,
}

enum Names {
    None,
    Locations(usize),
    Enumeration(usize),
}

/// How to read the states of a system.
pub struct View<'a> {
    interp: &'a Interp,
    pub fields: Vec<Field>,
    instances: Instances,
    starts: Instances,
}

impl<'a> View<'a> {
    pub fn new(interp: &'a Interp) -> View<'a> {
        let system = interp.system();
        View {
            interp,
            fields: fields(system, interp.layout()),
            instances: Instances::of(&system.commands),
            starts: Instances::of(&system.starts),
        }
    }

    /// Every field of a state.
    pub fn state(&self, state: &[u32]) -> Vec<FieldValue> {
        self.fields.iter().map(|field| self.value(field, state)).collect()
    }

    /// The fields that differ, with their values in `after`.
    pub fn changes(&self, before: &[u32], after: &[u32]) -> Vec<FieldValue> {
        let changed = |field: &&Field| field.slot.load(before) != field.slot.load(after);
        self.fields.iter().filter(changed).map(|field| self.value(field, after)).collect()
    }

    fn value(&self, field: &Field, state: &[u32]) -> FieldValue {
        let system = self.interp.system();
        let value = field.scalar.decode(field.slot.load(state));
        let name = match field.names {
            Names::None => None,
            Names::Locations(process) => {
                usize::try_from(value).ok().and_then(|at| system.processes[process].locations.get(at).cloned())
            }
            Names::Enumeration(number) => system.enums[number].label(value).map(str::to_string),
        };
        FieldValue { name: field.name.clone(), value: name.unwrap_or_else(|| value.to_string()) }
    }

    /// The name of the moving process, the source line and the label of a step.
    pub fn step(&self, step: Step) -> (Option<String>, u32, String) {
        self.name_instance(&self.interp.system().commands, &self.instances, step)
    }

    fn name_instance(&self, commands: &[Command], instances: &Instances, step: Step) -> (Option<String>, u32, String) {
        if step.instance() >= instances.total() {
            return (None, 0, String::new());
        }
        let id = instances.command(step.instance());
        let command = &commands[id.index()];
        let process = command.process().map(|process| self.interp.system().processes[process.index()].name.clone());
        let values = command.choice_values(step.instance() - instances.first(id));
        let chosen: Vec<String> = command
            .choices
            .iter()
            .zip(values)
            .map(|(choice, value)| format!("{}={value}", command.temps[choice.temp.index()].0))
            .collect();
        let label = if chosen.is_empty() {
            command.label.clone()
        } else {
            format!("{} [{}]", command.label, chosen.join(", "))
        };
        (process, command.line, label)
    }

    /// The first state in full and every step with what it changes. `positions` is the trace that was replayed.
    pub fn path(&self, path: &[Replayed], positions: &[u32]) -> (Vec<FieldValue>, Vec<ShownStep>) {
        let Some(first) = path.first() else { return (Vec::new(), Vec::new()) };
        let mut steps = Vec::new();
        if !first.step.is_plain() {
            steps.push(self.wrong_start(first.step));
        }
        for (number, pair) in path.windows(2).enumerate() {
            let position = positions[number + 1] as usize;
            self.shown_steps(&pair[0].state, position, number as u64 + 1, &mut steps);
        }
        (self.state(&first.state), steps)
    }

    /// Appends the step (or the steps of the atomic chain) at `position` among the successors of `before`.
    pub fn shown_steps(&self, before: &[u32], position: usize, number: u64, steps: &mut Vec<ShownStep>) {
        let mut before = before.to_vec();
        for (step, after) in self.interp.path(&before.clone(), position) {
            let (process, line, label) = self.step(step);
            let changes = if step.is_fault() { Vec::new() } else { self.changes(&before, &after) };
            let problem = (!step.is_plain()).then(|| self.problem(&before, step));
            steps.push(ShownStep { number, process, line, label, changes, problem });
            if !step.is_fault() {
                before = after;
            }
        }
    }

    fn wrong_start(&self, step: Step) -> ShownStep {
        let (process, line, label) = self.name_instance(&self.interp.system().starts, &self.starts, step);
        let problem = self.interp.explain_initial(step).map(|explanation| explanation.message);
        ShownStep { number: 0, process, line, label, changes: Vec::new(), problem }
    }

    fn problem(&self, before: &[u32], step: Step) -> String {
        let explanation = self.interp.explain(before, step);
        explanation.map_or_else(|| "the step goes wrong".into(), |explanation| explanation.message)
    }
}

fn fields(system: &System, layout: &Layout) -> Vec<Field> {
    let mut fields = Vec::new();
    for (index, var) in system.vars.iter().enumerate() {
        let at = system.processes.iter().position(|process| process.location == VarId(index as u32));
        for (suffix, slot, scalar) in layout.scalars(index, &var.ty) {
            let names = match (at, scalar.names) {
                (Some(process), _) => Names::Locations(process),
                (None, Some(names)) => Names::Enumeration(names.0 as usize),
                (None, None) => Names::None,
            };
            let base = at.map_or(var.name.as_str(), |process| system.processes[process].name.as_str());
            fields.push(Field { name: format!("{base}{suffix}"), slot, scalar, names });
        }
    }
    fields
}
