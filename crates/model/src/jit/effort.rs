//! How code is divided into functions, how hard each is worked on, and what that takes while it is made.
//!
//! Where memory is short, code is made function by function: what a function needs goes before the next one begins, so less than
//! a small function takes is needed at any time, however large the model. Searches with such code take up to a ninth longer.

use super::command::code_of;
use super::turns::divide;
use plimsoll_ir::{Layout, Procedure, Property, System};

/// How code is divided and how hard it is worked on. Sizes are in nodes of expressions and statements.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// A function takes about this much.
    pub function: usize,
    /// Beyond this much in all, code is made in less than half the time and runs at less than half the speed.
    pub quick: usize,
    /// A single command, property or procedure beyond this is refused.
    pub most: usize,
    /// A function of more instructions is made like code beyond `quick`: register allocation would take too long.
    pub large: usize,
    /// So many functions wait until they are translated, side by side where there are processors; more would only take memory.
    pub waiting: usize,
}

/// Memory that making a function takes for each node, measured, and making any.
const NODE_BYTES: usize = 1200;
const COMPILER_BYTES: usize = 3 << 19;
/// What stays of each node until all is made: machine code, and where it must be linked.
const KEPT_NODE_BYTES: usize = 64;

impl Effort {
    pub const USUAL: Effort = Effort { function: 4_000, quick: 500_000, most: 4_000_000, large: 200_000, waiting: 64 };
    pub const LEAN: Effort = Effort { function: 500, waiting: 1, ..Effort::USUAL };

    /// The best that takes no more memory than this, code of the compiler aside; if there is none, why.
    pub fn within(bytes: u64, system: &System, layout: &Layout) -> Result<Effort, String> {
        let nodes = Nodes::of(system, layout);
        let mut efforts = [Effort::USUAL, Effort::LEAN].into_iter();
        let why = || format!("compiling {} operators takes too much of the memory", nodes.all);
        efforts.find(|effort| effort.bytes(&nodes) as u64 <= bytes).ok_or_else(why)
    }

    /// Memory that making code takes, about.
    fn bytes(&self, nodes: &Nodes) -> usize {
        let function = self.function + nodes.largest;
        bytes_at_once(nodes.all.min(function * self.waiting)) + nodes.all * KEPT_NODE_BYTES
    }
}

/// Memory that making functions of so many nodes together takes at once.
pub(crate) fn bytes_at_once(nodes: usize) -> usize {
    COMPILER_BYTES + nodes * NODE_BYTES
}

/// What there is to be made.
struct Nodes {
    all: usize,
    /// Of what is not divided.
    largest: usize,
}

impl Nodes {
    fn of(system: &System, layout: &Layout) -> Nodes {
        let (_, variants) = divide(system, layout);
        let commands = variants.iter().flat_map(|variant| &variant.commands);
        let commands = commands.map(|&index| code_of(&system.commands[index]));
        let procedures = system.procedures.iter().map(Procedure::weight);
        let parts = commands.chain(procedures).chain(system.properties.iter().map(Property::weight));
        parts.fold(Nodes { all: 0, largest: 0 }, |Nodes { all, largest }, part| Nodes {
            all: all.saturating_add(part),
            largest: largest.max(part),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::{Command, Narrow, Scalar, Stmt};

    /// So many commands of so many assignments.
    fn system(commands: usize, stmts: usize) -> System {
        let mut system = System::new("t");
        let x = system.var("x", Scalar::BOOL, None);
        for number in 0..commands {
            let mut command = Command::new(format!("c{number}"));
            command.body = (0..stmts).map(|_| Stmt::assign(x, 1, Narrow::Wrap)).collect();
            system.commands.push(command);
        }
        system
    }

    #[test]
    fn little_memory_means_small_functions_and_less_means_none() {
        let waiting = |bytes, system: &System| {
            Effort::within(bytes, system, &Layout::of_system(system)).map(|effort| effort.waiting)
        };
        let many_small = system(300, 20);
        let found = [64 << 20, 8 << 20, 4 << 20, 1 << 20].map(|bytes| waiting(bytes, &many_small).ok());
        assert_eq!(found, [Some(64), Some(1), Some(1), None]);
        // One command cannot be divided.
        let one_large = system(1, 6000);
        let found = [64 << 20, 8 << 20, 4 << 20].map(|bytes| waiting(bytes, &one_large).ok());
        assert_eq!(found, [Some(64), None, None]);
        assert!(waiting(1 << 20, &one_large).unwrap_err().contains("operators takes too much of the memory"));
    }
}
