//! The numbers of command instances.
//!
//! Instances are numbered from zero in the order of commands, then of choices, the last choice fastest.
//! Start commands have a numbering of their own. Verified systems have fewer than
//! [`crate::verify::INSTANCE_LIMIT`] of each.

use crate::system::{Choice, Command, CommandId, System};

/// First instance numbers of a list of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instances {
    /// The first instance of each command, then the total.
    first: Vec<u32>,
}

impl Instances {
    /// Numbers the instances of `commands` (a system's commands, or its start commands).
    pub fn of(commands: &[Command]) -> Instances {
        let mut next = 0u32;
        let mut first = Vec::with_capacity(commands.len() + 1);
        for command in commands {
            first.push(next);
            next += command.instances().expect("verified: instances are few") as u32;
        }
        first.push(next);
        Instances { first }
    }

    /// The number of all instances.
    pub fn total(&self) -> u32 {
        *self.first.last().expect("the total is always there")
    }

    /// The number of a command's first instance.
    pub fn first(&self, command: CommandId) -> u32 {
        self.first[command.index()]
    }

    /// The command that an instance belongs to.
    pub fn command(&self, instance: u32) -> CommandId {
        assert!(instance < self.total(), "there is no instance {instance}");
        CommandId(self.first.partition_point(|&first| first <= instance) as u32 - 1)
    }
}

impl Command {
    /// The values of the choices in the command's `offset`-th instance.
    pub fn choice_values(&self, offset: u32) -> Vec<i64> {
        choice_values(&self.choices, offset)
    }
}

/// The values of choices in the `offset`-th instance they make; the last choice varies fastest.
pub fn choice_values(choices: &[Choice], offset: u32) -> Vec<i64> {
    let mut rest = offset as i64;
    let mut values = vec![0; choices.len()];
    for (value, choice) in values.iter_mut().zip(choices).rev() {
        let span = choice.high - choice.low + 1;
        *value = choice.low + rest % span;
        rest /= span;
    }
    assert_eq!(rest, 0, "there is no instance {offset}");
    values
}

impl System {
    /// The number of the first instance of a command.
    pub fn first_instance(&self, command: CommandId) -> u32 {
        Instances::of(&self.commands[..command.index()]).total()
    }

    /// The command of an instance and the values of its choices. For many questions keep an [`Instances`].
    pub fn instance_of(&self, instance: u32) -> (CommandId, Vec<i64>) {
        locate(&self.commands, instance)
    }

    /// Like [`System::instance_of`], for start commands.
    pub fn start_instance_of(&self, instance: u32) -> (CommandId, Vec<i64>) {
        locate(&self.starts, instance)
    }
}

fn locate(commands: &[Command], instance: u32) -> (CommandId, Vec<i64>) {
    let instances = Instances::of(commands);
    let command = instances.command(instance);
    (command, commands[command.index()].choice_values(instance - instances.first(command)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Choice;
    use crate::types::Scalar;

    fn with_choices(ranges: &[(i64, i64)]) -> Command {
        let mut command = Command::new("c");
        for &(low, high) in ranges {
            let temp = command.temp("t", Scalar::range(-9, 9));
            command.choices.push(Choice { temp, low, high });
        }
        command
    }

    #[test]
    fn the_last_choice_varies_fastest() {
        let mut system = System::new("t");
        system.commands = vec![with_choices(&[]), with_choices(&[(-1, 1), (4, 5)]), with_choices(&[(2, 2)])];
        let all: Vec<_> = (0..8).map(|instance| system.instance_of(instance)).collect();
        let expected = [(0, vec![]), (1, vec![-1, 4]), (1, vec![-1, 5]), (1, vec![0, 4]), (1, vec![0, 5])];
        for ((command, values), (expected_command, expected_values)) in all.iter().zip(expected) {
            assert_eq!((command.0, values), (expected_command, &expected_values));
        }
        assert_eq!(all[6].1, [1, 5]);
        assert_eq!(all[7], (CommandId(2), vec![2]));
        assert_eq!(Instances::of(&system.commands).total(), 8);
    }

    #[test]
    fn first_instances_lead_back_to_their_commands() {
        let mut system = System::new("t");
        system.commands = vec![with_choices(&[(0, 6)]), with_choices(&[(0, 1), (0, 2)]), with_choices(&[])];
        let instances = Instances::of(&system.commands);
        for (index, first) in [0, 7, 13].into_iter().enumerate() {
            let command = CommandId(index as u32);
            assert_eq!(system.first_instance(command), first);
            assert_eq!(instances.first(command), first);
            assert_eq!(instances.command(first), command);
        }
    }
}
