//! What commands read and write, and which of them are independent.
//!
//! A *cell* is one scalar of one variable; a dynamic index touches that cell of every element. Sets are
//! over-approximations for all instances of a command: what an instance does (enabled or not, faults,
//! failed assertions, values written) depends on its read cells only and changes its written cells only.
//! **Guarantee:** if `independent(a, b)`, then in every state where instances of both are taken, each is
//! still taken after the other, both orders reach the same state, and each step has the same outcome
//! (fault, failed assertion) in both. Ranks count: commands of different rank are dependent, and one that
//! writes what a command of smaller rank reads is dependent on everything. With an exclusive scalar a step
//! is a whole chain, and the sets are those of all chains that start with the command. Faults get no other special treatment: the
//! order of two faulting steps is lost like that of any others. (Godefroid 1996; Katz and Peled 1992.)

mod cells;
mod chains;

use crate::expr::{Expr, Stmt};
use crate::system::{Command, CommandId, Deadlock, System};
use crate::walk::{Touch, expr_places, stmt_calls, stmt_places};
pub use cells::{CellSet, Cells};

/// Above this many commands the matrix is not kept: it would take more than 8 MiB.
const MATRIX_LIMIT: usize = 8192;

/// Read and write sets of all commands and the relation that follows from them.
#[derive(Clone, Debug)]
pub struct Effects {
    cells: Cells,
    commands: Vec<Touched>,
    /// What properties and accepted ends look at.
    observed: CellSet,
    /// Row-major, one bit per ordered pair; none if there are too many commands.
    matrix: Option<Vec<u64>>,
}

#[derive(Clone, Debug)]
struct Touched {
    reads: CellSet,
    writes: CellSet,
    rank: u8,
    /// Dependent on everything.
    global: bool,
}

/// Numbers for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub commands: usize,
    pub cells: usize,
    /// Cells read per command, on average.
    pub reads: f64,
    /// Cells written per command, on average.
    pub writes: f64,
    /// Unordered pairs of different commands that are independent.
    pub independent_pairs: u64,
    /// Share of all unordered pairs of different commands, 0 if there are none.
    pub density: f64,
}

impl Effects {
    /// Analyses a verified system.
    pub fn of(system: &System) -> Effects {
        let cells = Cells::of(system);
        let procedures = procedures(system, &cells);
        let mut commands: Vec<Touched> =
            system.commands.iter().map(|command| touched(system, &cells, &procedures, command)).collect();
        if let Some(exclusive) = system.exclusive {
            chains::extend(system, exclusive, &cells, &mut commands);
        }
        mark_global(system, &cells, &mut commands);
        let mut observed = cells.none();
        for property in &system.properties {
            add_statements(system, &cells, &procedures, &property.prelude, (&mut observed, &mut cells.none()));
            add_expression(system, &cells, &property.expr, &mut observed);
        }
        if let Deadlock::Stuck { accepted: Some(accepted) } = &system.deadlock {
            add_expression(system, &cells, accepted, &mut observed);
        }
        let mut effects = Effects { cells, commands, observed, matrix: None };
        if effects.commands.len() <= MATRIX_LIMIT {
            effects.matrix = Some(effects.all_pairs());
        }
        effects
    }

    /// The cells that the command may read, locations it waits at included.
    pub fn reads(&self, command: CommandId) -> &CellSet {
        &self.commands[command.index()].reads
    }

    /// The cells that the command may write.
    pub fn writes(&self, command: CommandId) -> &CellSet {
        &self.commands[command.index()].writes
    }

    /// How variables are divided into cells.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// May the command change the value of a property or of an accepted end?
    pub fn visible(&self, command: CommandId) -> bool {
        self.writes(command).intersects(&self.observed)
    }

    /// May steps of the two commands be swapped wherever both are taken? See the head of this file.
    pub fn independent(&self, one: CommandId, other: CommandId) -> bool {
        match &self.matrix {
            Some(matrix) => {
                let bit = other.index();
                matrix[one.index() * self.row_words() + bit / 64] >> (bit % 64) & 1 != 0
            }
            None => self.compare(one.index(), other.index()),
        }
    }

    /// Counts for `info`; compares all pairs of commands.
    pub fn summary(&self) -> Summary {
        let commands = self.commands.len();
        let mean = |count: usize| if commands == 0 { 0.0 } else { count as f64 / commands as f64 };
        let pairs = (0..commands).flat_map(|one| (0..one).map(move |other| (one, other)));
        let id = |index: usize| CommandId(index as u32);
        let independent_pairs = pairs.filter(|&(one, other)| self.independent(id(one), id(other))).count() as u64;
        let all_pairs = commands as u64 * commands.saturating_sub(1) as u64 / 2;
        Summary {
            commands,
            cells: self.cells.count(),
            reads: mean(self.commands.iter().map(|touched| touched.reads.count()).sum()),
            writes: mean(self.commands.iter().map(|touched| touched.writes.count()).sum()),
            independent_pairs,
            density: if all_pairs == 0 { 0.0 } else { independent_pairs as f64 / all_pairs as f64 },
        }
    }

    fn row_words(&self) -> usize {
        self.commands.len().div_ceil(64)
    }

    fn all_pairs(&self) -> Vec<u64> {
        let words = self.row_words();
        let mut matrix = vec![0; self.commands.len() * words];
        for one in 0..self.commands.len() {
            for other in 0..=one {
                if self.compare(one, other) {
                    matrix[one * words + other / 64] |= 1 << (other % 64);
                    matrix[other * words + one / 64] |= 1 << (one % 64);
                }
            }
        }
        matrix
    }

    fn compare(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.commands[one], &self.commands[other]);
        !one.global
            && !other.global
            && one.rank == other.rank
            && !one.writes.intersects(&other.reads)
            && !one.writes.intersects(&other.writes)
            && !one.reads.intersects(&other.writes)
    }
}

/// What each procedure reads and writes, those that it calls included. What is handed over by reference counts as
/// read and written where it is.
fn procedures(system: &System, cells: &Cells) -> Vec<(CellSet, CellSet)> {
    let mut all = Vec::new();
    for procedure in &system.procedures {
        let (mut reads, mut writes) = (cells.none(), cells.none());
        add_statements(system, cells, &all, &procedure.body, (&mut reads, &mut writes));
        all.push((reads, writes));
    }
    all
}

fn touched(system: &System, cells: &Cells, procedures: &[(CellSet, CellSet)], command: &Command) -> Touched {
    let mut reads = cells.none();
    let mut writes = cells.none();
    for &(process, _) in &command.at {
        cells.add(system, &system.processes[process.index()].location.into(), &mut reads);
    }
    add_statements(system, cells, procedures, &command.prelude, (&mut reads, &mut cells.none()));
    add_expression(system, cells, &command.guard, &mut reads);
    add_statements(system, cells, procedures, &command.body, (&mut reads, &mut writes));
    Touched { reads, writes, rank: command.rank, global: false }
}

fn add_expression(system: &System, cells: &Cells, expr: &Expr, reads: &mut CellSet) {
    expr_places(expr, &mut |_, place| cells.add(system, place, reads));
}

fn add_statements(
    system: &System,
    cells: &Cells,
    procedures: &[(CellSet, CellSet)],
    stmts: &[Stmt],
    (reads, writes): (&mut CellSet, &mut CellSet),
) {
    stmt_calls(stmts, &mut |call| {
        // What a procedure that calls itself does is being found out.
        if let Some((callee_reads, callee_writes)) = procedures.get(call.procedure.index()) {
            reads.add_all(callee_reads);
            writes.add_all(callee_writes);
        }
    });
    stmt_places(stmts, &mut |touch, place| match touch {
        Touch::Read => cells.add(system, place, reads),
        Touch::Write => cells.add(system, place, writes),
    });
}

/// A command that may enable one of smaller rank may take any other command's turn away.
fn mark_global(system: &System, cells: &Cells, commands: &mut [Touched]) {
    let mut ranks: Vec<u8> = system.commands.iter().map(|command| command.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut smaller_reads = cells.none();
    for rank in ranks {
        for touched in commands.iter_mut().filter(|touched| touched.rank == rank) {
            touched.global |= touched.writes.intersects(&smaller_reads);
        }
        for touched in commands.iter().filter(|touched| touched.rank == rank) {
            smaller_reads.add_all(&touched.reads);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Narrow, Place};
    use crate::random::{Size, random_system};
    use crate::system::{Process, ProcessId, Property, PropertyKind, VarId};
    use crate::types::{Scalar, Type};

    /// Two processes with a location and a local each, one shared array of four.
    fn sample(bodies: [Vec<Stmt>; 3]) -> System {
        let mut system = System::new("t");
        for process in 0..2 {
            let location = system.var("pc", Scalar::BOOL, Some(ProcessId(process)));
            system.var("local", Scalar::BOOL, Some(ProcessId(process)));
            system.processes.push(Process { name: "P".into(), location, locations: vec!["a".into(), "b".into()] });
        }
        system.var("shared", Type::array(Scalar::BOOL.into(), 4), None);
        for (index, body) in bodies.into_iter().enumerate() {
            let mut command = Command::new("c");
            command.at.push((ProcessId(if index == 0 { 0 } else { 1 }), 0));
            command.body = body;
            system.commands.push(command);
        }
        crate::verify(&system).unwrap();
        system
    }

    fn shared(index: impl Into<Expr>) -> Place {
        Place::from(VarId(4)).index(index)
    }

    fn set(place: impl Into<Place>, value: impl Into<Expr>) -> Stmt {
        Stmt::assign(place, value, Narrow::Wrap)
    }

    fn pairs(system: &System) -> [bool; 3] {
        let effects = Effects::of(system);
        let independent = |one, other| {
            let answer = effects.independent(CommandId(one), CommandId(other));
            assert_eq!(answer, effects.independent(CommandId(other), CommandId(one)));
            answer
        };
        [independent(0, 1), independent(0, 2), independent(1, 2)]
    }

    #[test]
    fn constant_elements_are_told_apart_and_dynamic_ones_are_not() {
        let system = sample([vec![set(shared(0), 1)], vec![set(shared(1), 1)], vec![set(VarId(3), 1)]]);
        assert_eq!(pairs(&system), [true, true, true]);
        let dynamic = shared(Expr::read(VarId(3)));
        let system = sample([vec![set(shared(0), 1)], vec![set(dynamic.clone(), 1)], vec![set(VarId(3), 1)]]);
        assert_eq!(pairs(&system), [false, true, false]);
        let system = sample([vec![set(shared(0), 1)], vec![set(VarId(3), Expr::read(dynamic))], vec![]]);
        assert_eq!(pairs(&system), [false, true, true]);
    }

    #[test]
    fn locations_count_as_read() {
        let system = sample([vec![], vec![set(VarId(2), 1)], vec![set(VarId(3), 1)]]);
        assert_eq!(pairs(&system), [true, true, false]);
        let effects = Effects::of(&system);
        assert!(effects.independent(CommandId(0), CommandId(0)), "it changes nothing");
        assert!(!effects.independent(CommandId(1), CommandId(1)));
    }

    #[test]
    fn ranks_and_exclusive_chains_make_dependent() {
        let bodies = || [vec![set(VarId(1), 1)], vec![set(VarId(3), 1)], vec![set(shared(0), 1)]];
        let mut system = sample(bodies());
        assert_eq!(pairs(&system), [true, true, true]);
        system.commands[2].rank = 1;
        assert_eq!(pairs(&system), [true, false, false], "different ranks");
        system.commands[1].rank = 1;
        system.commands[0].guard = Expr::read(shared(0));
        assert_eq!(pairs(&system), [false, false, false], "the last may enable the first");
        let mut system = sample(bodies());
        system.exclusive = Some(VarId(1));
        assert_eq!(pairs(&system), [false, false, true], "the first may go on with any other");
        system.commands[1].guard = Expr::equal(Expr::read(VarId(1)), Expr::Const(0));
        assert_eq!(pairs(&system), [true, false, true], "but not with one that waits for the scalar");
        system.commands[1].body.push(set(VarId(1), Expr::read(VarId(3))));
        assert_eq!(pairs(&system), [false, false, false], "a value that is not known may let anybody go on");
        system.commands[1].body.pop();
        system.vars[1].init = vec![1];
        assert_eq!(pairs(&system), [false, false, false], "a start inside a chain");
    }

    #[test]
    fn visible_commands_write_what_properties_read() {
        let mut system = sample([vec![set(VarId(1), 1)], vec![set(shared(2), 1)], vec![Stmt::Reset(VarId(4).into())]]);
        let expr = Expr::read(shared(3));
        let (kind, temps, prelude) = (PropertyKind::Goal, Vec::new(), Vec::new());
        system.properties.push(Property { name: "p".into(), line: 0, kind, temps, prelude, expr });
        let effects = Effects::of(&system);
        assert_eq!([0, 1, 2].map(|command| effects.visible(CommandId(command))), [false, false, true]);
    }

    #[test]
    fn the_matrix_says_what_the_sets_say() {
        for seed in 0..100 {
            let effects = Effects::of(&random_system(seed, Size::MEDIUM));
            let count = effects.commands.len();
            let mut independent_pairs = 0;
            for (one, other) in (0..count).flat_map(|one| (0..count).map(move |other| (one, other))) {
                let answer = effects.independent(CommandId(one as u32), CommandId(other as u32));
                assert_eq!(answer, effects.compare(one, other));
                independent_pairs += (answer && one < other) as u64;
            }
            assert_eq!(effects.summary().independent_pairs, independent_pairs);
        }
    }
}
