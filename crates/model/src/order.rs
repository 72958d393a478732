//! In which order commands are tried, and how their instances are numbered.
//!
//! Both executors follow this one table, so "the k-th successor" means the same in each: by rank, then
//! by command, then by choices with the last one fastest. Commands are grouped by the process that
//! moves and the location it moves from; in a state only one list of each group can be enabled.

use plimsoll_ir::{Command, CommandId, Instances, ProcessId};

/// Neighbouring commands of one process (or of none), listed by the location they start from.
pub(crate) struct Group {
    pub process: Option<ProcessId>,
    /// Indices of commands by location; a single list if there is no process.
    pub lists: Vec<Vec<usize>>,
}

/// All commands of one rank. A later section counts only where no earlier one has a successor.
pub(crate) struct Section {
    rank: u8,
    pub groups: Vec<Group>,
}

impl Section {
    /// The groups, as far as they are among these commands.
    pub fn only(&self, commands: &[usize]) -> Vec<Group> {
        let among =
            |list: &Vec<usize>| list.iter().copied().filter(|index| commands.binary_search(index).is_ok()).collect();
        let groups = self
            .groups
            .iter()
            .map(|group| Group { process: group.process, lists: group.lists.iter().map(among).collect() });
        groups.filter(|group| group.lists.iter().any(|list: &Vec<usize>| !list.is_empty())).collect()
    }
}

pub(crate) struct Order {
    /// By increasing rank.
    pub sections: Vec<Section>,
    numbers: Instances,
}

impl Order {
    pub fn of(commands: &[Command]) -> Order {
        let mut sections: Vec<Section> = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            let section = match sections.iter().position(|section| section.rank == command.rank) {
                Some(found) => &mut sections[found],
                None => {
                    sections.push(Section { rank: command.rank, groups: Vec::new() });
                    sections.last_mut().unwrap()
                }
            };
            if section.groups.last().is_none_or(|group| group.process != command.process()) {
                section.groups.push(Group { process: command.process(), lists: Vec::new() });
            }
            let lists = &mut section.groups.last_mut().unwrap().lists;
            let location = command.at.first().map_or(0, |&(_, location)| location as usize);
            lists.resize_with(lists.len().max(location + 1), Vec::new);
            lists[location].push(index);
        }
        sections.sort_by_key(|section| section.rank);
        Order { sections, numbers: Instances::of(commands) }
    }

    /// The number of the first instance of a command.
    pub fn first_instance(&self, command: usize) -> u32 {
        self.numbers.first(CommandId(command as u32))
    }

    pub fn instances(&self, command: usize) -> u32 {
        // The entry behind the last command is the number of all instances.
        self.first_instance(command + 1) - self.first_instance(command)
    }

    /// How many instances there are.
    pub fn total(&self) -> u32 {
        self.numbers.total()
    }

    /// The command that an instance belongs to, and its place among that command's instances.
    pub fn locate(&self, instance: u32) -> Option<(CommandId, u32)> {
        if instance >= self.numbers.total() {
            return None;
        }
        let command = self.numbers.command(instance);
        Some((command, instance - self.numbers.first(command)))
    }

    /// No state has more successors than this.
    pub fn most_successors(&self) -> usize {
        let of_list = |list: &Vec<usize>| list.iter().map(|&command| self.instances(command) as usize).sum::<usize>();
        let of_group = |group: &Group| group.lists.iter().map(of_list).max().unwrap_or(0);
        let of_section = |section: &Section| section.groups.iter().map(of_group).sum();
        self.sections.iter().map(of_section).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::Choice;

    fn command(process: Option<u32>, location: u32, rank: u8, spans: &[i64]) -> Command {
        let mut command = Command::new("c");
        command.rank = rank;
        command.at = process.map(|process| (ProcessId(process), location)).into_iter().collect();
        for &span in spans {
            let temp = command.temp("t", plimsoll_ir::Scalar::range(0, 9));
            command.choices.push(Choice { temp, low: 1, high: span });
        }
        command
    }

    #[test]
    fn instances_are_numbered_by_command_then_choice() {
        let commands = [command(None, 0, 0, &[]), command(None, 0, 0, &[2, 3]), command(None, 0, 0, &[0])];
        let order = Order::of(&commands);
        assert_eq!((0..3).map(|c| order.first_instance(c)).collect::<Vec<_>>(), [0, 1, 7]);
        assert_eq!(order.locate(0), Some((CommandId(0), 0)));
        assert_eq!(order.locate(6), Some((CommandId(1), 5)));
        assert_eq!(order.locate(7), None);
        let values: Vec<_> = (0..6).map(|number| commands[1].choice_values(number)).collect();
        assert_eq!(values, [[1, 1], [1, 2], [1, 3], [2, 1], [2, 2], [2, 3]]);
    }

    #[test]
    fn the_bound_takes_one_location_of_each_process_and_one_rank() {
        let commands = [
            command(Some(0), 0, 0, &[4]),
            command(Some(0), 1, 0, &[3]),
            command(Some(0), 1, 0, &[3]),
            command(Some(1), 0, 0, &[]),
            command(None, 0, 0, &[]),
            command(None, 0, 5, &[7]),
        ];
        let order = Order::of(&commands);
        assert_eq!(order.most_successors(), 8);
        assert_eq!(order.sections.len(), 2);
        assert_eq!(order.sections[0].groups.len(), 3);
    }
}
