//! States and steps in the words of the model: names and values instead of words and numbers.
//!
//! [`Describe`] is what reports ask for; [`Show`] answers it for systems, [`crate::Graph`] for itself.

use plimsoll_ir::{Command, Enumeration, Instances, Layout, PropertyKind, Scalar, Slot, System, VarId};

use crate::Step;

/// A step for people.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StepText {
    /// The process that moves.
    pub process: Option<String>,
    /// What it does, with the values of free choices.
    pub label: String,
    /// Line of the source, 0 if unknown.
    pub line: u32,
}

/// A property for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyText {
    pub name: String,
    /// Line of the source, 0 if unknown.
    pub line: u32,
    pub kind: PropertyKind,
}

/// Tells people what states and steps are.
pub trait Describe {
    /// Every scalar of the state: its name and value.
    fn fields(&self, state: &[u32]) -> Vec<(String, String)>;

    /// The fields that differ, with their values in `after`.
    fn changes(&self, before: &[u32], after: &[u32]) -> Vec<(String, String)> {
        let before = self.fields(before);
        self.fields(after).into_iter().zip(before).filter(|(new, old)| new != old).map(|(new, _)| new).collect()
    }

    fn step(&self, step: Step) -> StepText;

    /// The step that led to an initial state.
    fn start(&self, step: Step) -> StepText;

    /// The property with a number, if there is one.
    fn property(&self, number: u32) -> Option<PropertyText> {
        let _ = number;
        None
    }
}

/// Names and values of a system.
pub struct Show {
    fields: Vec<Field>,
    enums: Vec<Enumeration>,
    steps: Vec<CommandText>,
    numbers: Instances,
    starts: Vec<CommandText>,
    start_numbers: Instances,
    properties: Vec<PropertyText>,
}

struct Field {
    name: String,
    slot: Slot,
    scalar: Scalar,
    /// Names of the values, where they are locations of a process.
    locations: Option<Vec<String>>,
}

struct CommandText {
    process: Option<String>,
    command: Command,
}

impl Show {
    pub fn new(system: &System, layout: &Layout) -> Show {
        let text = |command: &Command| CommandText {
            process: command.process().map(|process| system.processes[process.index()].name.clone()),
            command: Command { prelude: Vec::new(), body: Vec::new(), guard: 1.into(), ..command.clone() },
        };
        let property = |property: &plimsoll_ir::Property| PropertyText {
            name: property.name.clone(),
            line: property.line,
            kind: property.kind,
        };
        Show {
            fields: fields(system, layout),
            enums: system.enums.clone(),
            steps: system.commands.iter().map(text).collect(),
            numbers: Instances::of(&system.commands),
            starts: system.starts.iter().map(text).collect(),
            start_numbers: Instances::of(&system.starts),
            properties: system.properties.iter().map(property).collect(),
        }
    }

    fn value(&self, field: &Field, state: &[u32]) -> String {
        let value = field.scalar.decode(field.slot.load(state));
        let location = field.locations.as_ref().and_then(|names| names.get(usize::try_from(value).ok()?));
        location.cloned().unwrap_or_else(|| self.scalar(&field.scalar, value))
    }

    fn scalar(&self, scalar: &Scalar, value: i64) -> String {
        let label = scalar.names.and_then(|names| self.enums[names.0 as usize].label(value));
        label.map_or_else(|| value.to_string(), str::to_string)
    }

    fn instance(&self, texts: &[CommandText], numbers: &Instances, instance: u32) -> StepText {
        if instance >= numbers.total() {
            return StepText::default();
        }
        let id = numbers.command(instance);
        let CommandText { process, command } = &texts[id.index()];
        let values = command.choice_values(instance - numbers.first(id));
        let shown = command.choices.iter().zip(values).map(|(choice, value)| {
            let (name, ty) = &command.temps[choice.temp.index()];
            let text = ty.as_scalar().map_or_else(|| value.to_string(), |scalar| self.scalar(&scalar, value));
            format!("{name}={text}")
        });
        let shown: Vec<String> = shown.collect();
        let label = match shown.is_empty() {
            true => command.label.clone(),
            false => format!("{} ({})", command.label, shown.join(", ")),
        };
        StepText { process: process.clone(), label, line: command.line }
    }
}

impl Describe for Show {
    fn fields(&self, state: &[u32]) -> Vec<(String, String)> {
        self.fields.iter().map(|field| (field.name.clone(), self.value(field, state))).collect()
    }

    fn changes(&self, before: &[u32], after: &[u32]) -> Vec<(String, String)> {
        let changed = self.fields.iter().filter(|field| field.slot.load(before) != field.slot.load(after));
        changed.map(|field| (field.name.clone(), self.value(field, after))).collect()
    }

    fn step(&self, step: Step) -> StepText {
        self.instance(&self.steps, &self.numbers, step.instance())
    }

    fn start(&self, step: Step) -> StepText {
        self.instance(&self.starts, &self.start_numbers, step.instance())
    }

    fn property(&self, number: u32) -> Option<PropertyText> {
        self.properties.get(number as usize).cloned()
    }
}

/// The scalars of all variables. A process stands for its location; its other variables are named after it.
fn fields(system: &System, layout: &Layout) -> Vec<Field> {
    let mut fields = Vec::new();
    for (index, var) in system.vars.iter().enumerate() {
        let process = system.processes.iter().find(|process| process.location == VarId(index as u32));
        let owner = var.owner.map(|owner| &system.processes[owner.index()].name);
        // Languages that name a variable after its process do it as `P.x` or `P->x`.
        let named_after = |owner: &str| {
            var.name.strip_prefix(owner).is_some_and(|rest| rest.starts_with('.') || rest.starts_with("->"))
        };
        let name = match (process, owner) {
            (Some(process), _) => process.name.clone(),
            (None, Some(owner)) if !named_after(owner) => format!("{owner}.{}", var.name),
            _ => var.name.clone(),
        };
        for (suffix, slot, scalar) in layout.scalars(index, &var.ty) {
            let locations = process.map(|process| process.locations.clone());
            fields.push(Field { name: format!("{name}{suffix}"), slot, scalar, locations });
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::{Choice, EnumId, Process, ProcessId, Type};

    fn example() -> System {
        let mut system = System::new("t");
        let labels = ["red", "green"].map(String::from).to_vec();
        system.enums.push(Enumeration { name: "colour".into(), first: 1, labels });
        let colour = Scalar { low: 1, high: 3, names: Some(EnumId(0)) };
        let location = system.var("at", Scalar::range(0, 1), Some(ProcessId(0)));
        let locations = ["idle", "busy"].map(String::from).to_vec();
        system.processes.push(Process { name: "P".into(), location, locations });
        system.var("x", Type::array(Scalar::range(-3, 3).into(), 2), Some(ProcessId(0)));
        system.var("P.y", Scalar::BOOL, Some(ProcessId(0)));
        system.var("P->z", Scalar::BOOL, Some(ProcessId(0)));
        system.var("c", colour, None);
        let mut command = Command::new("paint");
        command.line = 7;
        command.at = vec![(ProcessId(0), 0)];
        let i = command.temp("i", Scalar::range(0, 9));
        let to = command.temp("to", colour);
        command.choices = vec![Choice { temp: i, low: 2, high: 3 }, Choice { temp: to, low: 1, high: 2 }];
        system.commands = vec![Command::new("first"), command];
        system
    }

    fn text(pairs: &[(String, String)]) -> String {
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn states_have_names_and_values() {
        let mut system = example();
        let layout = Layout::of_system(&system);
        let before = system.base_state(&layout);
        system.vars[0].init = vec![1];
        system.vars[1].init = vec![0, -2];
        system.vars[4].init = vec![2];
        let after = system.base_state(&layout);
        let show = Show::new(&system, &layout);
        assert_eq!(text(&show.fields(&before)), "P=idle P.x[0]=0 P.x[1]=0 P.y=0 P->z=0 c=0");
        assert_eq!(text(&show.fields(&after)), "P=busy P.x[0]=0 P.x[1]=-2 P.y=0 P->z=0 c=green");
        assert_eq!(text(&show.changes(&before, &after)), "P=busy P.x[1]=-2 c=green");
    }

    #[test]
    fn steps_show_their_choices() {
        let system = example();
        let show = Show::new(&system, &Layout::of_system(&system));
        assert_eq!(show.step(Step(0)).label, "first");
        let step = show.step(Step(3 | Step::VIOLATION));
        assert_eq!((step.label.as_str(), step.line), ("paint (i=3, to=red)", 7));
        assert_eq!(step.process.as_deref(), Some("P"));
        assert_eq!(show.step(Step(5)), StepText::default());
        assert_eq!(show.start(Step(0)), StepText::default());
    }
}
