//! States and steps in the words of the model: names and values instead of words and numbers.
//!
//! [`Describe`] is what reports ask for; [`Show`] answers it for systems, [`crate::Graph`] for itself. A channel is one
//! field, its value the messages it holds: `[1,ack 2,nak]`.

use plimsoll_ir::{Act, Command, Enumeration, Instances, Layout, PropertyKind, Scalar, Slot, System, Type, VarId};

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
    /// The free choices by name, with their values.
    pub choices: Vec<(String, String)>,
    /// The statements it consists of, if the language tells.
    pub acts: Vec<Act>,
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
    /// One, or all that a channel consists of.
    scalars: Vec<(Slot, Scalar)>,
    /// How many scalars a message has, if it is a channel.
    message: Option<usize>,
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
        let decode = |&(slot, scalar): &(Slot, Scalar)| scalar.decode(slot.load(state));
        let first = decode(&field.scalars[0]);
        if let Some(size) = field.message {
            let messages = field.scalars[1..].chunks(size).take(usize::try_from(first).unwrap_or(0)).map(|message| {
                let parts: Vec<String> = message.iter().map(|part| self.scalar(&part.1, decode(part))).collect();
                parts.join(",")
            });
            return format!("[{}]", messages.collect::<Vec<_>>().join(" "));
        }
        let location = field.locations.as_ref().and_then(|names| names.get(usize::try_from(first).ok()?));
        location.cloned().unwrap_or_else(|| self.scalar(&field.scalars[0].1, first))
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
            (name.clone(), text)
        });
        let choices: Vec<(String, String)> = shown.collect();
        let shown: Vec<String> = choices.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let label = match shown.is_empty() {
            true => command.label.clone(),
            false => format!("{} ({})", command.label, shown.join(", ")),
        };
        StepText { process: process.clone(), label, line: command.line, choices, acts: command.acts.clone() }
    }
}

impl Describe for Show {
    fn fields(&self, state: &[u32]) -> Vec<(String, String)> {
        self.fields.iter().map(|field| (field.name.clone(), self.value(field, state))).collect()
    }

    fn changes(&self, before: &[u32], after: &[u32]) -> Vec<(String, String)> {
        let differs = |&(slot, _): &(Slot, Scalar)| slot.load(before) != slot.load(after);
        let changed = self.fields.iter().filter(|field| field.scalars.iter().any(differs));
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
        let mut scalars = layout.scalars(index, &var.ty).into_iter();
        let mut sizes = Vec::new();
        field_sizes(&var.ty, &mut sizes);
        for (size, message) in sizes {
            let part: Vec<(String, Slot, Scalar)> = scalars.by_ref().take(size).collect();
            let suffix = &part[0].0;
            // A channel is called what its first scalar is called, but for the name of that field.
            let suffix = message.map_or(suffix.as_str(), |_| suffix.rsplit_once('.').map_or("", |(head, _)| head));
            let locations = process.map(|process| process.locations.clone());
            let scalars = part.iter().map(|&(_, slot, scalar)| (slot, scalar)).collect();
            fields.push(Field { name: format!("{name}{suffix}"), scalars, message, locations });
        }
    }
    if let Some(spelling) = system.spelling.as_ref().filter(|spelling| spelling.scalars.len() == fields.len()) {
        fields.iter_mut().zip(&spelling.scalars).for_each(|(field, name)| field.name.clone_from(name));
    }
    fields
}

/// How many scalars belong to each field of a type, and to a message if it is a channel.
fn field_sizes(ty: &Type, out: &mut Vec<(usize, Option<usize>)>) {
    match ty {
        Type::Scalar(_) => out.push((1, None)),
        Type::Array { element, len } => (0..*len).for_each(|_| field_sizes(element, out)),
        Type::Record(fields) => match ty.message() {
            Some(message) => out.push((ty.scalar_count(), Some(message.scalar_count()))),
            None => fields.iter().for_each(|(_, ty)| field_sizes(ty, out)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::{Choice, EnumId, Process, ProcessId, Spelling};

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
        let scalars = ["p", "x[red]", "x[green]", "y", "z", "c"].map(String::from).to_vec();
        system.spelling = Some(Spelling { scalars, assign: " := " });
        let show = Show::new(&system, &layout);
        assert_eq!(text(&show.changes(&before, &after)), "p=busy x[green]=-2 c=green");
    }

    #[test]
    fn a_channel_is_a_list_of_messages() {
        let mut system = System::new("t");
        let message = Type::Record(vec![("a".into(), Scalar::U8.into()), ("b".into(), Scalar::U8.into())]);
        let channel = Type::channel(3, Scalar::range(0, 3), message);
        system.var("q", Type::array(channel.clone(), 2), None);
        system.var("r", channel, None);
        let layout = Layout::of_system(&system);
        let before = system.base_state(&layout);
        system.vars[0].init = vec![0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 6, 0, 0];
        let after = system.base_state(&layout);
        let show = Show::new(&system, &layout);
        assert_eq!(text(&show.fields(&after)), "q[0]=[] q[1]=[3,4 5,6] r=[]");
        assert_eq!(text(&show.changes(&before, &after)), "q[1]=[3,4 5,6]");
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
