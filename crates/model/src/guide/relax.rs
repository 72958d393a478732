//! How far is everything from a state, if nothing that was once true were ever lost? The heuristic of the planner FF (Hoffmann and Nebel 2001) on
//! the additive one (Bonet and Geffner 2001), made from guarded commands.
//!
//! An atom that is true costs nothing. Any other costs one more than what the cheapest command needs that can make it true: its locations and
//! the conjuncts of its guard, each of which costs the same way. What is
//! missing is then counted along the cheapest commands, each once. Commands that can are found from what they assign: a constant, a fixed step up or down,
//! or something that may be anything. Numbers that are reached in steps cost as many rounds of the process that takes them as there are steps. What
//! cannot be seen from outside a command (temporaries that it computes first) is not asked for. So this may be too little or too much; it leads, no more.

use super::distance::{FAR as NO_WAY, steps_to, targets};
use super::term::{Atom, Atoms, Term};
use plimsoll_ir::walk::{expr_places, stmt_calls};
use plimsoll_ir::{Access, BinOp, Command, Expr, Place, ProcessId, Root, Stmt, System, TempId};
use std::collections::{HashMap, VecDeque};

/// The cost of what nothing leads to.
pub(super) const FAR: u32 = 1 << 20;
/// Atoms and commands beyond these are not looked at.
const MOST_ATOMS: usize = 1_000;
const MOST_ACTIONS: usize = 4_000;
/// A command is taken apart into so many instances of its choices at most.
const MOST_INSTANCES: u64 = 64;
/// Rounds that count, of what is reached in steps.
const MOST_ROUNDS: u64 = 64;

/// Commands that bring atoms about.
#[derive(Debug)]
pub(super) struct Relaxed {
    actions: Vec<Action>,
    /// By atom, the actions that need it.
    needed_by: Vec<Vec<u32>>,
}

/// An instance of a command.
#[derive(Debug)]
struct Action {
    need: Term,
    effects: Vec<Effect>,
    /// Steps until it can be taken again, at least.
    round: u32,
}

#[derive(Clone, Copy, Debug)]
struct Effect {
    atom: usize,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The atom is true afterwards.
    Sets,
    /// It may be.
    May,
    /// The first of the two values that are compared grows by so much, against the second.
    Grows(i64),
}

/// What an instance assigns.
#[derive(Debug)]
struct Write {
    to: Place,
    value: Option<Expr>,
}

/// An instance as it is found, before anything asks for it.
struct Sketch<'a> {
    command: &'a Command,
    guard: Expr,
    writes: Vec<Write>,
    /// Where it puts processes.
    moves: Vec<(ProcessId, Vec<usize>)>,
    action: Option<usize>,
}

impl Relaxed {
    /// Finds what may lead to the atoms, and to what that needs, and so on; the atoms grow.
    pub fn new(system: &System, atoms: &mut Atoms) -> Relaxed {
        let mut sketches: Vec<Sketch> = Vec::new();
        for command in &system.commands {
            for known in instances(command) {
                if sketches.len() < MOST_ACTIONS {
                    sketches.push(Sketch::new(system, command, &known));
                }
            }
        }
        let mut distances = HashMap::new();
        let mut actions: Vec<Action> = Vec::new();
        let mut atom = 0;
        while atom < atoms.atoms.len().min(MOST_ATOMS) {
            for sketch in &mut sketches {
                let Some(how) = sketch.effect(&atoms.atoms[atom], atoms) else { continue };
                let action = *sketch.action.get_or_insert_with(|| {
                    let round = sketch.command.process().map_or(1, |process| {
                        let from = sketch.command.at[0].1 as usize;
                        let steps =
                            distances.entry((process, from)).or_insert_with(|| steps_to(system, process, from, true));
                        let moved = sketch.moves.iter().filter(|(who, _)| *who == process).flat_map(|(_, to)| to);
                        let back = moved.filter_map(|&to| steps.get(to).copied()).min().unwrap_or(0);
                        if back < NO_WAY { back + 1 } else { 1 }
                    });
                    let mut need: Vec<Term> = Vec::new();
                    for &(process, location) in &sketch.command.at {
                        need.push(atoms.at(system, process, location as usize, true));
                    }
                    need.push(atoms.term(system, &sketch.guard, true));
                    actions.push(Action { need: Term::All(need), effects: Vec::new(), round });
                    actions.len() - 1
                });
                actions[action].effects.push(Effect { atom, how });
            }
            atom += 1;
        }
        let mut needed_by = vec![Vec::new(); atoms.atoms.len()];
        for (number, action) in actions.iter().enumerate() {
            action.need.atoms(&mut |atom| {
                if needed_by[atom].last() != Some(&(number as u32)) {
                    needed_by[atom].push(number as u32);
                }
            });
        }
        Relaxed { actions, needed_by }
    }

    /// What each atom costs where these are the values.
    fn costs(&self, atoms: &[Atom], values: &[Option<i64>]) -> (Vec<u32>, Vec<Option<(u32, u32)>>) {
        let cost = atoms.iter().enumerate().map(|(number, atom)| match atom.is_true(values) {
            true => 0,
            // Nobody looked at what leads to the last ones.
            false if number >= MOST_ATOMS => 1,
            false => FAR,
        });
        let (cost, taken) = (cost.collect(), vec![FAR; self.actions.len()]);
        let by = vec![None; atoms.len()];
        let mut spread = Spread { atoms, values, cost, by, taken, changed: VecDeque::new() };
        for (number, action) in self.actions.iter().enumerate() {
            spread.take(number, action);
        }
        while let Some(atom) = spread.changed.pop_front() {
            for &number in &self.needed_by[atom] {
                spread.take(number as usize, &self.actions[number as usize]);
            }
        }
        (spread.cost, spread.by)
    }

    /// What is missing for the nearest of some goals: the steps of a plan that takes every command once, though several need it
    /// (Hoffmann and Nebel 2001).
    pub fn missing(&self, goals: &[Term], atoms: &[Atom], values: &[Option<i64>]) -> u32 {
        let (cost, by) = self.costs(atoms, values);
        let Some(goal) = goals.iter().min_by_key(|goal| goal.sum(&cost)) else { return 0 };
        if goal.sum(&cost) >= FAR {
            return FAR;
        }
        let (mut seen, mut taken) = (vec![false; atoms.len()], vec![false; self.actions.len()]);
        let (mut waiting, mut steps) = (Vec::new(), 0u32);
        goal.chosen(&cost, &mut |atom| waiting.push(atom));
        while let Some(atom) = waiting.pop() {
            if cost[atom] == 0 || std::mem::replace(&mut seen[atom], true) {
                continue;
            }
            let Some((action, more)) = by[atom] else {
                steps = steps.saturating_add(cost[atom]);
                continue;
            };
            steps = steps.saturating_add(more);
            if !std::mem::replace(&mut taken[action as usize], true) {
                steps += 1;
                self.actions[action as usize].need.chosen(&cost, &mut |atom| waiting.push(atom));
            }
        }
        steps.min(FAR)
    }
}

/// Costs while they get smaller.
struct Spread<'a> {
    atoms: &'a [Atom],
    values: &'a [Option<i64>],
    cost: Vec<u32>,
    /// By atom, the action that it costs least with, and what that costs beside being taken once.
    by: Vec<Option<(u32, u32)>>,
    /// What each action needed when it was looked at last.
    taken: Vec<u32>,
    changed: VecDeque<usize>,
}

impl Spread<'_> {
    fn take(&mut self, number: usize, action: &Action) {
        let need = action.need.sum(&self.cost);
        if need >= self.taken[number] {
            return;
        }
        self.taken[number] = need;
        for &Effect { atom, how } in &action.effects {
            if self.cost[atom] <= need + 1 {
                continue;
            }
            let Some(more) = how.extra(&self.atoms[atom], self.values, action.round) else { continue };
            let cost = (need + 1).saturating_add(more);
            if cost < self.cost[atom] {
                self.cost[atom] = cost;
                self.by[atom] = Some((number as u32, more));
                self.changed.push_back(atom);
            }
        }
    }
}

impl How {
    /// What it costs beside being taken once; nothing if it leads elsewhere.
    fn extra(self, atom: &Atom, values: &[Option<i64>], round: u32) -> Option<u32> {
        let change = missing(atom, values);
        match self {
            How::Sets => Some(0),
            How::May => Some(change.map_or(1, |change| 1 + change.unsigned_abs().max(1).ilog2())),
            How::Grows(step) => {
                let change = change.unwrap_or(step);
                if step == 0 || (change > 0) != (step > 0) {
                    return None;
                }
                let rounds = change.unsigned_abs().div_ceil(step.unsigned_abs());
                let rounds = if rounds > MOST_ROUNDS { MOST_ROUNDS + u64::from(rounds.ilog2()) } else { rounds };
                Some((rounds as u32 - 1).saturating_mul(round))
            }
        }
    }
}

/// By how much the first of two values that are compared has to change; nothing if that says nothing.
fn missing(atom: &Atom, values: &[Option<i64>]) -> Option<i64> {
    let Atom::Compared { how, left, right } = *atom else { return None };
    let between = values[right]?.checked_sub(values[left]?)?;
    match how {
        BinOp::Eq | BinOp::Le | BinOp::Ge => Some(between),
        BinOp::Lt => between.checked_sub(1),
        BinOp::Gt => between.checked_add(1),
        _ => None,
    }
}

impl<'a> Sketch<'a> {
    fn new(system: &System, command: &'a Command, known: &[(TempId, i64)]) -> Sketch<'a> {
        let mut writes = Vec::new();
        collect(&command.body, known, &mut writes);
        stmt_calls(&command.body, &mut |call| {
            let named = call.references.iter().chain(&call.outputs);
            writes.extend(named.map(|place| Write { to: filled_place(place, known), value: None }));
        });
        writes.retain(|write| matches!(write.to.root, Root::Var(_)));
        let processes = (0..).map(ProcessId).zip(&system.processes);
        let moves = processes.filter_map(|(id, process)| {
            let to = targets(&command.body, &Place::from(process.location), process.locations.len());
            (!to.is_empty()).then_some((id, to))
        });
        Sketch { command, guard: filled(&command.guard, known), moves: moves.collect(), writes, action: None }
    }

    /// What it does to an atom, if anything good.
    fn effect(&self, atom: &Atom, atoms: &Atoms) -> Option<How> {
        let (exprs, how) = match *atom {
            Atom::At { process, location, there, .. } => {
                let moved = self.moves.iter().find(|(who, _)| *who == process)?;
                return moved.1.iter().any(|&to| (to == location) == there).then_some(How::Sets);
            }
            Atom::Compared { how, left, right } => ([Some(left), Some(right)], Some(how)),
            Atom::Truth { value, .. } => ([Some(value), None], None),
        };
        let [left, right] = exprs.map(|value| value.map(|value| &atoms.values[value].expr));
        let mut best = None;
        for write in &self.writes {
            let effect = self.effect_of(write, left, right, how);
            best = match (best, effect) {
                (Some(How::Sets), _) | (_, None) => best,
                (Some(How::May), Some(How::Grows(_))) => best,
                (_, effect) => effect,
            };
        }
        best
    }

    fn effect_of(&self, write: &Write, left: Option<&Expr>, right: Option<&Expr>, how: Option<BinOp>) -> Option<How> {
        let reads = |expr: Option<&Expr>| {
            let mut touched = false;
            if let Some(expr) = expr {
                expr_places(expr, &mut |_, place| touched |= may_be_one(place, &write.to));
            }
            touched
        };
        if !reads(left) && !reads(right) {
            return None;
        }
        let (Some(how), Some(left), Some(right)) = (how, left, right) else { return Some(How::May) };
        let is_left = matches!(left, Expr::Read(place) if *place == write.to);
        match (&write.value, right) {
            (Some(Expr::Const(value)), Expr::Const(wanted)) if is_left => {
                (how.apply(*value, *wanted) == Some(1)).then_some(How::Sets)
            }
            (Some(value), _) => match step_of(value, &write.to) {
                Some(step) if is_left => Some(How::Grows(step)),
                Some(step) if matches!(right, Expr::Read(place) if *place == write.to) => Some(How::Grows(-step)),
                _ => Some(How::May),
            },
            (None, _) => Some(How::May),
        }
    }
}

/// If the value is that of the place and a constant more, that constant.
fn step_of(value: &Expr, to: &Place) -> Option<i64> {
    let same = |expr: &Expr| matches!(expr, Expr::Read(place) if place == to);
    match value {
        Expr::Binary(BinOp::Add, left, right) => match (&**left, &**right) {
            (read, Expr::Const(step)) | (Expr::Const(step), read) if same(read) => Some(*step),
            _ => None,
        },
        Expr::Binary(BinOp::Sub, left, right) => match (&**left, &**right) {
            (read, Expr::Const(step)) if same(read) => step.checked_neg(),
            _ => None,
        },
        Expr::Wrap { value, .. } => step_of(value, to),
        _ => None,
    }
}

/// May both be places of one scalar?
fn may_be_one(one: &Place, other: &Place) -> bool {
    one.root == other.root
        && one.path.iter().zip(&other.path).all(|pair| match pair {
            (Access::Field(one), Access::Field(other)) => one == other,
            (Access::Index(Expr::Const(one)), Access::Index(Expr::Const(other))) => one == other,
            _ => true,
        })
}

/// The values that the choices of a command can have together; nothing is known if there are too many.
fn instances(command: &Command) -> Vec<Vec<(TempId, i64)>> {
    let few = command.instances().is_some_and(|count| count <= MOST_INSTANCES);
    let mut all = vec![Vec::new()];
    for choice in command.choices.iter().filter(|_| few) {
        let longer = all.into_iter().flat_map(|known: Vec<(TempId, i64)>| {
            (choice.low..=choice.high).map(move |value| {
                let mut longer = known.clone();
                longer.push((choice.temp, value));
                longer
            })
        });
        all = longer.collect();
    }
    all
}

/// What statements assign, whatever decides whether they do.
fn collect(body: &[Stmt], known: &[(TempId, i64)], writes: &mut Vec<Write>) {
    for stmt in body {
        match stmt {
            Stmt::Assign { to, value, .. } => {
                writes.push(Write { to: filled_place(to, known), value: Some(filled(value, known)) });
            }
            Stmt::Copy { to, .. } | Stmt::Reset(to) | Stmt::Sort(to) => {
                writes.push(Write { to: filled_place(to, known), value: None });
            }
            Stmt::If { then, otherwise, .. } => {
                collect(then, known, writes);
                collect(otherwise, known, writes);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => collect(body, known, writes),
            Stmt::Break(_) | Stmt::Assert { .. } | Stmt::Call(_) | Stmt::Fault(_) | Stmt::Discard => {}
        }
    }
}

/// An expression with temporaries that are known.
fn filled(expr: &Expr, known: &[(TempId, i64)]) -> Expr {
    let fill = |expr: &Expr| filled(expr, known);
    match expr {
        Expr::Const(_) => expr.clone(),
        Expr::Read(place) => match (place.root, known) {
            (Root::Temp(temp), known) if place.path.is_empty() => {
                let value = known.iter().find(|(known, _)| *known == temp);
                value.map_or_else(|| expr.clone(), |&(_, value)| Expr::Const(value))
            }
            _ => Expr::Read(filled_place(place, known)),
        },
        Expr::Unary(op, value) => match fill(value) {
            Expr::Const(value) => Expr::Const(op.apply(value)),
            value => Expr::unary(*op, value),
        },
        Expr::Binary(op, left, right) => match (fill(left), fill(right)) {
            (Expr::Const(left), Expr::Const(right)) if op.apply(left, right).is_some() => {
                Expr::Const(op.apply(left, right).unwrap_or_default())
            }
            (left, right) => Expr::binary(*op, left, right),
        },
        Expr::Select(condition, then, otherwise) => {
            Expr::Select(fill(condition).into(), fill(then).into(), fill(otherwise).into())
        }
        Expr::Wrap { bits, signed, value } => Expr::wrap(*bits, *signed, fill(value)),
    }
}

fn filled_place(place: &Place, known: &[(TempId, i64)]) -> Place {
    let path = place.path.iter().map(|access| match access {
        Access::Field(field) => Access::Field(*field),
        Access::Index(index) => Access::Index(filled(index, known)),
    });
    Place { root: place.root, path: path.collect() }
}
