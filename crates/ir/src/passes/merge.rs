//! Statement merging: a step of a process and the local step that must follow become one.
//!
//! The commands at a location L of process p are *local* if each moves p alone, cannot go wrong, reads nothing that others
//! write while p stands at L and writes nothing that others or properties look at (p's location included), and if
//! one of them is always enabled. Then commands that lead to L go on with them at once. A step of an atomic chain
//! is joined with all that can follow, whatever it does; that changes nothing but the states a trace shows.
//!
//! Kept: the reachable states in which no process stands at a location that was passed over, hence all deadlocks; whether
//! there are failed assertions, faults, violated invariants, reached goals. There are never more states. *Proof:* in a
//! path s -C-> s1 -others-> t1 -D-> t with p at L between, others neither see what D does nor change what D sees, so
//! s -C;D-> s2 -others-> t is one too (D has the first rank, so others moved with it as well), and each state from s1 to
//! t1 agrees with its image in all that others and properties see. At L something is enabled: no deadlock. Numbers of
//! steps are not kept: claims that count them need the system as it was. (Lipton 1975; Yorav and Grumberg 2004.)

mod compose;
#[cfg(test)]
mod tests;
mod turn;

use super::fold::{Scope, opposite};
use super::safe::{may_discard, may_stop};
use super::sharing::Sharing;
use super::stores::writes;
use crate::expr::{BinOp, Expr, UnOp};
use crate::system::{Command, Deadlock, Locals, ProcessId, System, VarId};
use compose::sequence;
use std::collections::{BTreeMap, BTreeSet};
use turn::Turn;

/// Operators and statements that a merged command may have.
const HEAVIEST: usize = 3_000;
/// The number of commands, with those that begin, may grow by this factor, and a little.
const GROWTH: usize = 2;

/// Merges what can be merged in a verified system: nothing if a step to the same state counts as a deadlock, or if
/// the first state may lie within a chain.
pub fn merge(system: System) -> System {
    merge_and_tell(system).0
}

/// Merges, and tells which locations were passed over.
pub fn merge_and_tell(system: System) -> (System, Vec<(ProcessId, u32)>) {
    let turn = match Turn::of(&system) {
        Some(turn) if system.deadlock != Deadlock::Stuttering && system.procedures.is_empty() => turn,
        _ => return (system, Vec::new()),
    };
    let mut merger = Merger::new(system, turn);
    for process in 0..merger.system.processes.len() {
        merger.process(ProcessId(process as u32));
    }
    let mut system = merger.system;
    system.commands = merger.bundles.into_iter().flat_map(|bundle| bundle.commands).collect();
    drop_unreachable(&mut system);
    (system, merger.passed)
}

/// A command of the system that was given, or what it was split into. All have its locations and its guard.
struct Bundle {
    /// None if nobody can come to its locations.
    commands: Vec<Command>,
    /// The values of the exclusive scalar with which they may run, other than zero.
    turns: Vec<i64>,
}

struct Merger {
    /// Without its commands.
    system: System,
    bundles: Vec<Bundle>,
    turn: Turn,
    /// How many more commands there may be.
    room: usize,
    /// The locations passed over so far.
    passed: Vec<(ProcessId, u32)>,
}

/// A location of a process.
#[derive(Clone, Copy)]
struct Point {
    process: ProcessId,
    location: VarId,
    at: u32,
}

impl Point {
    /// Does the process take part?
    fn takes_part(self, command: &Command) -> bool {
        command.at.iter().any(|&(process, _)| process == self.process)
    }
}

/// What is known about one process while its locations are passed over.
struct Progress {
    process: ProcessId,
    location: VarId,
    sharing: Sharing,
    /// The bundles that start at each location, and those that may lead there.
    outs: BTreeMap<u32, Vec<usize>>,
    arrivals: BTreeMap<i64, BTreeSet<usize>>,
    /// Values of the exclusive scalar that commands without the process store, and with which such commands may run.
    given_by_others: BTreeSet<i64>,
    taken_by_others: BTreeSet<i64>,
}

impl Merger {
    fn new(mut system: System, turn: Turn) -> Merger {
        let commands = std::mem::take(&mut system.commands);
        let room = commands.len() * (GROWTH - 1) + 64;
        let bundle = |command: Command| Bundle { turns: turn.allowed(&system, &command), commands: vec![command] };
        let bundles = commands.into_iter().map(bundle).collect();
        Merger { system, bundles, turn, room, passed: Vec::new() }
    }

    fn commands(&self) -> impl Iterator<Item = &Command> {
        self.bundles.iter().flat_map(|bundle| &bundle.commands)
    }

    /// Nothing if the process may go to unknown places.
    fn progress(&self, process: ProcessId) -> Option<Progress> {
        let location = self.system.processes[process.index()].location;
        if self.system.starts.iter().any(|start| writes(&start.body, location).unknown) {
            return None;
        }
        let sharing = Sharing::of(&self.system, self.commands(), process);
        let (outs, arrivals) = (BTreeMap::new(), BTreeMap::new());
        let (given_by_others, taken_by_others) = (BTreeSet::new(), BTreeSet::new());
        let mut progress = Progress { process, location, sharing, outs, arrivals, given_by_others, taken_by_others };
        for (index, bundle) in self.bundles.iter().enumerate() {
            let Some(first) = bundle.commands.first() else { continue };
            match first.at.iter().find(|(mover, _)| *mover == process) {
                Some((_, at)) => progress.outs.entry(*at).or_default().push(index),
                None => {
                    progress.taken_by_others.extend(&bundle.turns);
                    let given = bundle.commands.iter().flat_map(|command| self.turn.writes(command).values);
                    progress.given_by_others.extend(given);
                }
            }
            if !progress.note_arrivals(index, bundle) {
                return None;
            }
        }
        Some(progress)
    }

    fn process(&mut self, process: ProcessId) {
        let Some(mut progress) = self.progress(process) else { return };
        let initial = self.system.vars[progress.location.index()].init.first().copied().unwrap_or(0);
        // A first location that no start leads to stays in any case, so it comes last.
        let mut waiting: Vec<u32> = progress.outs.keys().copied().collect();
        waiting.sort_by_key(|&at| i64::from(at) == initial);
        // Where control does not branch first: that never makes more commands.
        for straight in [true, false, true] {
            let mut again = true;
            while std::mem::take(&mut again) {
                waiting.retain(|&at| {
                    let passed = self.pass_over(&mut progress, at, straight);
                    again |= passed;
                    !passed
                });
            }
        }
    }

    /// Lets commands that lead to a location go on at once, where they can. Did any?
    fn pass_over(&mut self, progress: &mut Progress, at: u32, straight: bool) -> bool {
        let point = Point { process: progress.process, location: progress.location, at };
        let bundles = progress.outs.get(&at).into_iter().flatten().map(|&index| &self.bundles[index]);
        let outs: Vec<(&Command, &[i64])> =
            bundles.flat_map(|bundle| bundle.commands.iter().map(|command| (command, &bundle.turns[..]))).collect();
        let returns = |(out, _): &(&Command, &[i64])| writes(&out.body, point.location).may_end_at(at, true);
        if outs.iter().any(returns) {
            return false;
        }
        let mut ways = vec![(0, self.local(point, &outs, progress))];
        let own_turns = self.turn.values.iter().filter(|turn| !progress.taken_by_others.contains(turn));
        ways.extend(own_turns.map(|&turn| (turn, self.chained(&outs, turn))));
        let mut passed = false;
        for (turn, next) in ways {
            if let Some(next) = next.filter(|next| (next.len() == 1) == straight) {
                passed |= self.join(progress, point, turn, &next);
            }
        }
        if passed {
            self.passed.push((point.process, at));
            self.drop_left_behind(progress, point);
        }
        passed
    }

    /// Drops the commands at a location if nothing leads there any more. Else they would be joined with all that follows,
    /// at every location again.
    fn drop_left_behind(&mut self, progress: &mut Progress, point: Point) {
        let leads = |command: &Command| writes(&command.body, point.location).may_end_at(point.at, false);
        let arrivals = progress.arrivals.get(&point.at.into()).into_iter().flatten();
        let initial = self.system.vars[point.location.index()].init.first().copied().unwrap_or(0);
        let reached = initial == point.at.into()
            || self.system.starts.iter().any(leads)
            || arrivals.clone().any(|&index| self.bundles[index].commands.iter().any(leads));
        if !reached {
            for index in progress.outs.remove(&point.at).into_iter().flatten() {
                self.bundles[index].commands.clear();
            }
        }
    }

    /// The commands at a location, if all are local and one is always enabled.
    fn local(&self, point: Point, outs: &[(&Command, &[i64])], progress: &Progress) -> Option<Vec<Command>> {
        let mut next = Vec::new();
        for (command, turns) in outs {
            // It must not run within the chains of others.
            if !moves_alone(command) || turns.iter().any(|turn| progress.given_by_others.contains(turn)) {
                return None;
            }
            let command = self.turn.assumed(&self.system, command, 0)?;
            let scope = Scope { system: &self.system, locals: Locals::temps(&command.temps) };
            let stops = may_stop(&scope, &command.prelude) || may_stop(&scope, &command.body);
            if stops || scope.may_fault(&command.guard) || self.turn.after(&command, &[]) != Some(0) {
                return None;
            }
            next.push(command);
        }
        (is_total(&next) && progress.sharing.allows(&self.system, self.turn.scalar, point.at, &next)).then_some(next)
    }

    /// All that may follow in a chain when the process has come to a location and nobody else can have the turn.
    fn chained(&self, outs: &[(&Command, &[i64])], turn: i64) -> Option<Vec<Command>> {
        let mut next = Vec::new();
        for (command, _) in outs.iter().filter(|(_, turns)| turns.contains(&turn)) {
            if !moves_alone(command) || may_discard(&command.prelude) || may_discard(&command.body) {
                return None;
            }
            next.push(self.turn.assumed(&self.system, command, turn)?);
        }
        if !is_total(&next) {
            let safe = |command: &Command| {
                let scope = Scope { system: &self.system, locals: Locals::temps(&command.temps) };
                command.prelude.is_empty() && !scope.may_fault(&command.guard)
            };
            if next.is_empty() || !next.iter().all(safe) {
                return None;
            }
            next.push(self.turn.stuck(&next));
        }
        Some(next)
    }

    /// Joins the commands that lead to a location, and leave the turn as it is wanted, with what comes next. Was
    /// there any?
    fn join(&mut self, progress: &mut Progress, point: Point, turn: i64, next: &[Command]) -> bool {
        let (mut passed, mut foreign) = (false, false);
        for index in progress.arrivals.get(&point.at.into()).cloned().unwrap_or_default() {
            let Bundle { commands, turns } = &self.bundles[index];
            let arrives = |command: &Command| self.turn.after(command, turns) == Some(turn);
            let commands = commands.iter().map(|command| (command.clone(), arrives(command))).collect();
            if let Some(commands) = self.go_on(point, commands, next) {
                foreign |= !point.takes_part(&commands[0]);
                self.bundles[index].commands = commands;
                progress.note_arrivals(index, &self.bundles[index]);
                passed = true;
            }
        }
        if turn == 0 {
            let starts = self.system.starts.iter().map(|start| (start.clone(), true)).collect();
            if let Some(starts) = self.go_on(point, starts, next) {
                self.system.starts = starts;
                passed = true;
            }
        }
        if foreign {
            progress.sharing = Sharing::of(&self.system, self.commands(), point.process);
        }
        passed
    }

    /// The same commands, of which those that arrive go on with `next` as long as there is room; nothing if none does.
    fn go_on(&mut self, point: Point, commands: Vec<(Command, bool)>, next: &[Command]) -> Option<Vec<Command>> {
        let (mut all, mut changed) = (Vec::new(), false);
        for (command, arrives) in commands {
            match arrives.then(|| self.joined(point, &command, next)).flatten() {
                Some(joined) => {
                    self.room -= joined.len() - 1;
                    changed = true;
                    all.extend(joined);
                }
                None => all.push(command),
            }
        }
        changed.then_some(all)
    }

    /// A command that leads to a location, followed by each of `next`; nothing if it does not lead there.
    fn joined(&self, point: Point, command: &Command, next: &[Command]) -> Option<Vec<Command>> {
        let heaviest = next.iter().map(Command::weight).max().unwrap_or(0);
        let writes = writes(&command.body, point.location);
        let surely = writes.surely == Some(point.at.into());
        if !writes.may_end_at(point.at, false)
            || !(surely || next.len() == 1)
            || next.len() - 1 > self.room
            || command.weight() + heaviest > HEAVIEST
        {
            return None;
        }
        next.iter().map(|next| sequence(&self.system, command, next, point, self.turn.scalar)).collect()
    }
}

impl Progress {
    /// Notes where a bundle may bring the process; false if that is not known.
    fn note_arrivals(&mut self, index: usize, bundle: &Bundle) -> bool {
        bundle.commands.iter().all(|command| {
            let writes = writes(&command.body, self.location);
            writes.ends().for_each(|at| _ = self.arrivals.entry(at).or_default().insert(index));
            !writes.unknown
        })
    }
}

/// Is it the step of one process, without choices, that nothing takes precedence over?
fn moves_alone(command: &Command) -> bool {
    command.at.len() == 1 && command.rank == 0 && command.choices.is_empty()
}

/// Is one of the guards surely true? If there are several, they must not depend on preludes.
fn is_total(commands: &[Command]) -> bool {
    if let [command] = commands {
        return command.guard == Expr::TRUE;
    }
    let guards: Vec<&Expr> = commands.iter().map(|command| &command.guard).collect();
    // All others are false only if each term of this one is true.
    let is_otherwise = |guard: &Expr| {
        let mut terms = Vec::new();
        split(guard, &mut terms);
        terms.iter().all(|term| guards.iter().any(|guard| **guard == negated(term) || negated(guard) == **term))
    };
    commands.iter().all(|command| command.prelude.is_empty()) && guards.iter().any(|guard| is_otherwise(guard))
}

/// The terms of a conjunction.
fn split<'a>(expr: &'a Expr, terms: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Binary(BinOp::And, left, right) => {
            split(left, terms);
            split(right, terms);
        }
        Expr::Const(value) if *value != 0 => {}
        term => terms.push(term),
    }
}

fn negated(expr: &Expr) -> Expr {
    match expr {
        Expr::Unary(UnOp::Not, inner) => (**inner).clone(),
        Expr::Binary(op, left, right) if opposite(*op).is_some() => {
            Expr::Binary(opposite(*op).expect("just seen"), left.clone(), right.clone())
        }
        _ => Expr::negate(expr.clone()),
    }
}

/// Drops commands at locations to which nothing leads any more.
fn drop_unreachable(system: &mut System) {
    for index in 0..system.processes.len() {
        let process = ProcessId(index as u32);
        let Some(reached) = reached(system, process) else { continue };
        system.commands.retain(|command| stands_in(command, process, &reached));
    }
}

fn stands_in(command: &Command, process: ProcessId, locations: &BTreeSet<i64>) -> bool {
    command.at.iter().all(|&(mover, at)| mover != process || locations.contains(&at.into()))
}

/// The locations that a process may come to rest at; none if that is not known.
fn reached(system: &System, process: ProcessId) -> Option<BTreeSet<i64>> {
    let location = system.processes[process.index()].location;
    let mut reached = BTreeSet::from([system.vars[location.index()].init.first().copied().unwrap_or(0)]);
    let all = system.starts.iter().chain(&system.commands);
    let moves: Vec<_> = all.map(|command| (command, writes(&command.body, location))).collect();
    if moves.iter().any(|(_, writes)| writes.unknown) {
        return None;
    }
    loop {
        let before = reached.len();
        for (command, writes) in &moves {
            if stands_in(command, process, &reached) {
                reached.extend(writes.ends());
            }
        }
        if reached.len() == before {
            return Some(reached);
        }
    }
}
