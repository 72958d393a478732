//! How far may a state be from a goal? A guess, from the text of the goal or from an expression that somebody gave.
//!
//! A goal is taken apart: of `a && b` both are missing, of `a || b` the nearer one. Where a process should be at a location, it is
//! as many steps away as its own commands need at least, whatever holds them up. Where two numbers should be equal or one the larger, the
//! guess is about the logarithm of what lies between. Everything else is missing or not, which counts one.
//!
//! Best-first search adds up what is missing. For A\* the guess must never be too large, and not fall by more than one in a step: then only
//! **the largest location distance** counts, or one if anything is missing. A command moves a process along one edge of the graph that
//! distances are measured in, and a step is a command, unless atomic chains make one step of several; then nothing is promised, nor
//! where a value of the goal may fail, for that counts as reached.

use crate::Interp;
use plimsoll_ir::walk::{Touch, stmt_places};
use plimsoll_ir::{BinOp, Deadlock, Expr, Place, ProcessId, Property, PropertyKind, Root, Stmt, System, UnOp};
use std::collections::VecDeque;
use std::fmt;

/// The guess where there seems to be no way.
const FAR: u32 = 1_000;
/// A cost that somebody gives is cut to this.
const MOST: i64 = 1 << 24;

/// Guesses how many steps are missing.
pub struct Guide {
    /// Knows no commands; its properties are the values that terms look at.
    interp: Interp,
    goals: Vec<Term>,
    kind: Kind,
    /// One step is one command, and no value can fail: what fails counts as reached.
    plain: bool,
}

impl fmt::Debug for Guide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guide").field("goals", &self.goals).field("kind", &self.kind).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The value of an expression.
    Given,
    /// From the text of the goals.
    Sum,
    Largest,
}

/// What is missing; values are given by number.
#[derive(Debug)]
enum Term {
    All(Vec<Term>),
    Any(Vec<Term>),
    /// At least so many of these.
    Some {
        count: usize,
        of: Vec<Term>,
    },
    /// A process should be at a location that is so many steps away from each.
    Location {
        value: usize,
        steps: Vec<u32>,
    },
    /// The first should be so to the second.
    Compared {
        how: BinOp,
        left: usize,
        right: usize,
    },
    Truth {
        value: usize,
        wanted: bool,
    },
}

impl Guide {
    /// A guide to the goals of a system and to states that violate its invariants; none if it has neither. It never guesses too
    /// much, if that is wanted and possible.
    pub fn to_goals(system: &System, never_too_much: bool) -> Option<Guide> {
        if system.properties.is_empty() {
            return None;
        }
        let mut values = Vec::new();
        let mut terms = Vec::new();
        for property in &system.properties {
            let wanted = property.kind == PropertyKind::Goal;
            let opaque = !property.temps.is_empty() || !property.prelude.is_empty();
            terms.push(match opaque {
                true => truth(property.clone(), wanted, &mut values),
                false => term(system, &property.expr, wanted, &mut values),
            });
        }
        let kind = if never_too_much { Kind::Largest } else { Kind::Sum };
        let plain = system.exclusive.is_none() && values.iter().all(never_fails);
        Some(Guide { interp: evaluator(system, values), goals: terms, kind, plain })
    }

    /// A guide that believes in the value of an expression.
    pub fn by_cost(system: &System, cost: &Property) -> Guide {
        let interp = evaluator(system, vec![cost.clone()]);
        Guide { interp, goals: Vec::new(), kind: Kind::Given, plain: false }
    }

    /// Does a guess never exceed the number of steps that are missing, nor fall by more than one in a step?
    pub fn never_too_much(&self) -> bool {
        self.kind == Kind::Largest && self.plain
    }

    /// How many steps are missing, at a guess.
    pub fn guess(&self, state: &[u32]) -> u32 {
        let missing = |term: &Term| match self.kind {
            Kind::Largest => self.largest(term, state),
            Kind::Given | Kind::Sum => self.sum(term, state),
        };
        match self.kind {
            Kind::Given => self.interp.value(state, 0).unwrap_or(MOST).clamp(0, MOST) as u32,
            Kind::Sum | Kind::Largest => self.goals.iter().map(missing).min().unwrap_or(0),
        }
    }

    fn sum(&self, term: &Term, state: &[u32]) -> u32 {
        match term {
            Term::All(terms) => terms.iter().map(|term| self.sum(term, state)).fold(0, u32::saturating_add),
            Term::Any(terms) => terms.iter().map(|term| self.sum(term, state)).min().unwrap_or(0),
            Term::Some { count, of } => {
                let nearest = nearest(of.iter().map(|term| self.sum(term, state)), *count);
                nearest.iter().fold(0, |sum, &steps| sum.saturating_add(steps))
            }
            Term::Location { value, steps } => self.steps(*value, steps, state),
            Term::Compared { how, left, right } => {
                let (Some(left), Some(right)) = (self.interp.value(state, *left), self.interp.value(state, *right))
                else {
                    return 1;
                };
                if how.apply(left, right) == Some(1) { 0 } else { 1 + left.abs_diff(right).max(1).ilog2() }
            }
            Term::Truth { .. } => self.is_missing(term, state) as u32,
        }
    }

    /// At least so many steps are missing.
    fn largest(&self, term: &Term, state: &[u32]) -> u32 {
        match term {
            Term::All(terms) => terms.iter().map(|term| self.largest(term, state)).max().unwrap_or(0),
            Term::Any(terms) => terms.iter().map(|term| self.largest(term, state)).min().unwrap_or(0),
            Term::Some { count, of } => {
                nearest(of.iter().map(|term| self.largest(term, state)), *count).last().copied().unwrap_or(0)
            }
            Term::Location { value, steps } => self.steps(*value, steps, state),
            Term::Compared { .. } | Term::Truth { .. } => self.is_missing(term, state) as u32,
        }
    }

    fn steps(&self, value: usize, steps: &[u32], state: &[u32]) -> u32 {
        let location = self.interp.value(state, value).and_then(|value| usize::try_from(value).ok());
        location.and_then(|location| steps.get(location)).copied().unwrap_or(FAR)
    }

    fn is_missing(&self, term: &Term, state: &[u32]) -> bool {
        match term {
            Term::Compared { how, left, right } => {
                let values = self.interp.value(state, *left).zip(self.interp.value(state, *right));
                values.and_then(|(left, right)| how.apply(left, right)) != Some(1)
            }
            Term::Truth { value, wanted } => {
                self.interp.value(state, *value).is_none_or(|value| (value != 0) != *wanted)
            }
            _ => false,
        }
    }
}

/// Can nothing go wrong while the value is computed?
fn never_fails(value: &Property) -> bool {
    fn expr_is_safe(expr: &Expr) -> bool {
        match expr {
            Expr::Const(_) => true,
            Expr::Read(place) => place.indices().next().is_none(),
            Expr::Unary(_, value) | Expr::Wrap { value, .. } => expr_is_safe(value),
            Expr::Binary(op, left, right) => {
                !matches!(op, BinOp::Div | BinOp::Rem) && expr_is_safe(left) && expr_is_safe(right)
            }
            Expr::Select(condition, then, otherwise) => {
                [condition, then, otherwise].iter().all(|part| expr_is_safe(part))
            }
        }
    }
    value.prelude.is_empty() && expr_is_safe(&value.expr)
}

/// The same states, nothing but values to look at.
fn evaluator(system: &System, values: Vec<Property>) -> Interp {
    let bare = System {
        commands: Vec::new(),
        starts: Vec::new(),
        properties: values,
        deadlock: Deadlock::Never,
        exclusive: None,
        ..system.clone()
    };
    Interp::new(bare)
}

/// What is missing for an expression to be as wanted.
fn term(system: &System, expr: &Expr, wanted: bool, values: &mut Vec<Property>) -> Term {
    use BinOp::*;
    match expr {
        Expr::Unary(UnOp::Not, inner) => term(system, inner, !wanted, values),
        Expr::Binary(op @ (And | Or), left, right) => {
            let both = vec![term(system, left, wanted, values), term(system, right, wanted, values)];
            if (*op == And) == wanted { Term::All(both) } else { Term::Any(both) }
        }
        Expr::Binary(op @ (Eq | Ne | Lt | Le | Gt | Ge), left, right) => {
            let how = if wanted { *op } else { opposite(*op) };
            if let Some((process, location)) = at_location(system, left, right)
                && matches!(how, Eq | Ne)
            {
                let steps = steps_to(system, process, location, how == Eq);
                let place = Expr::read(system.processes[process.index()].location);
                return Term::Location { value: value(place, values), steps };
            }
            if let Some((count, truths)) = at_least(how, left, right) {
                let of = truths.into_iter().map(|truth| term(system, truth, true, values)).collect();
                return Term::Some { count, of };
            }
            let left = value((**left).clone(), values);
            Term::Compared { how, left, right: value((**right).clone(), values) }
        }
        other => Term::Truth { value: value(other.clone(), values), wanted },
    }
}

/// The smallest of these, in order.
fn nearest(steps: impl Iterator<Item = u32>, count: usize) -> Vec<u32> {
    let mut steps: Vec<u32> = steps.collect();
    steps.sort_unstable();
    steps.truncate(count);
    steps
}

/// Does the comparison say that so many of several truths hold, as in `P.critical + Q.critical > 1`?
fn at_least<'e>(how: BinOp, left: &'e Expr, right: &Expr) -> Option<(usize, Vec<&'e Expr>)> {
    fn truths<'e>(expr: &'e Expr, found: &mut Vec<&'e Expr>) -> bool {
        match expr {
            Expr::Binary(BinOp::Add, left, right) => truths(left, found) && truths(right, found),
            Expr::Binary(op, ..) if op.is_truth() => {
                found.push(expr);
                true
            }
            _ => false,
        }
    }
    let (more, Expr::Const(number)) = (how == BinOp::Gt, right) else { return None };
    let count = usize::try_from(number.checked_add(more as i64)?).ok()?;
    let mut found = Vec::new();
    let sums_up = (more || how == BinOp::Ge) && truths(left, &mut found) && count <= found.len();
    sums_up.then_some((count, found))
}

fn opposite(op: BinOp) -> BinOp {
    use BinOp::*;
    match op {
        Eq => Ne,
        Ne => Eq,
        Lt => Ge,
        Le => Gt,
        Gt => Le,
        _ => Lt,
    }
}

fn value(expr: Expr, values: &mut Vec<Property>) -> usize {
    let (temps, prelude) = (Vec::new(), Vec::new());
    values.push(Property { name: String::new(), line: 0, kind: PropertyKind::Goal, temps, prelude, expr });
    values.len() - 1
}

fn truth(property: Property, wanted: bool, values: &mut Vec<Property>) -> Term {
    values.push(property);
    Term::Truth { value: values.len() - 1, wanted }
}

/// Is the comparison one of a process's place with a location?
fn at_location(system: &System, left: &Expr, right: &Expr) -> Option<(ProcessId, usize)> {
    let (place, number) = match (left, right) {
        (Expr::Read(place), Expr::Const(number)) | (Expr::Const(number), Expr::Read(place)) => (place, *number),
        _ => return None,
    };
    let Place { root: Root::Var(var), path } = place else { return None };
    let process = system.processes.iter().position(|process| process.location == *var && path.is_empty())?;
    Some((ProcessId(process as u32), usize::try_from(number).ok()?))
}

/// From each location of a process, the least number of its commands that lead to a location; or away from it.
fn steps_to(system: &System, process: ProcessId, location: usize, there: bool) -> Vec<u32> {
    let var = system.processes[process.index()].location;
    let count = system.processes[process.index()].locations.len().max(location + 1);
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for command in &system.commands {
        let sources = command.at.iter().filter(|(who, _)| *who == process).map(|&(_, from)| from as usize);
        let sources: Vec<usize> = sources.collect();
        let anywhere = (0..count).filter(|_| sources.is_empty());
        let targets = targets(&command.body, &Place::from(var), count);
        let sources = sources.iter().copied().chain(anywhere);
        edges.extend(sources.flat_map(|from| targets.iter().map(move |&to| (from, to))));
    }
    let mut steps = vec![FAR; count];
    let ends = (0..count).filter(|&place| (place == location) == there);
    let mut waiting: VecDeque<usize> = ends.collect();
    waiting.iter().for_each(|&end| steps[end] = 0);
    while let Some(to) = waiting.pop_front() {
        for &(from, _) in edges.iter().filter(|edge| edge.1 == to) {
            if from < count && steps[from] == FAR && steps[to] + 1 < FAR {
                steps[from] = steps[to] + 1;
                waiting.push_back(from);
            }
        }
    }
    steps
}

/// Where a body may put a process: what is assigned to its place, or anything where that is not said.
fn targets(body: &[Stmt], location: &Place, count: usize) -> Vec<usize> {
    let mut written = 0;
    stmt_places(body, &mut |touch, place| {
        written += (touch == Touch::Write && place.root == location.root) as usize;
    });
    let mut targets = Vec::new();
    constants(body, location, &mut targets);
    if targets.len() == written { targets } else { (0..count).collect() }
}

/// Constants that are assigned to a place.
fn constants(body: &[Stmt], location: &Place, found: &mut Vec<usize>) {
    for stmt in body {
        match stmt {
            Stmt::Assign { to, value: Expr::Const(number), .. } if to == location => {
                found.extend(usize::try_from(*number));
            }
            Stmt::If { then, otherwise, .. } => {
                constants(then, location, found);
                constants(otherwise, location, found);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => constants(body, location, found),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, Successors};
    use plimsoll_ir::random::{Size, random_system};
    use plimsoll_ir::text;
    use std::collections::{HashMap, VecDeque};

    /// How far every reachable state is from the nearest goal; states from which there is no way are left out.
    fn distances(interp: &Interp) -> HashMap<Vec<u32>, u32> {
        let mut out = Successors::new(interp.width());
        let mut before: HashMap<Vec<u32>, Vec<Vec<u32>>> = HashMap::new();
        interp.initial(&mut out);
        let starts = out.iter().filter(|(_, step)| !step.is_fault()).map(|(state, _)| state.to_vec());
        let mut waiting: Vec<Vec<u32>> = starts.collect();
        for state in &waiting {
            before.entry(state.clone()).or_default();
        }
        while let Some(state) = waiting.pop() {
            out.clear();
            interp.successors(&state, &mut out);
            for (successor, _) in out.iter().filter(|(_, step)| !step.is_fault()) {
                if !before.contains_key(successor) {
                    waiting.push(successor.to_vec());
                }
                before.entry(successor.to_vec()).or_default().push(state.clone());
            }
        }
        let mut distances: HashMap<Vec<u32>, u32> = HashMap::new();
        let goals = before.keys().filter(|state| interp.violated(state).is_some());
        let mut waiting: VecDeque<Vec<u32>> = goals.cloned().collect();
        distances.extend(waiting.iter().map(|state| (state.clone(), 0)));
        while let Some(state) = waiting.pop_front() {
            let next = distances[&state] + 1;
            for source in &before[&state] {
                if !distances.contains_key(source) {
                    distances.insert(source.clone(), next);
                    waiting.push_back(source.clone());
                }
            }
        }
        distances
    }

    #[test]
    fn a_guess_that_is_never_too_much_is_not() {
        let mut positive = 0;
        for seed in 0..150 {
            let mut system = random_system(seed, Size { states: 300, ..Size::MEDIUM });
            let at_last = |process: &plimsoll_ir::Process| {
                Expr::equal(Expr::read(process.location), (process.locations.len() as i64 - 1).into())
            };
            let expr = Expr::all(system.processes.iter().map(at_last));
            value(expr, &mut system.properties);
            let interp = Interp::new(system);
            let Some(guide) = Guide::to_goals(interp.system(), true).filter(Guide::never_too_much) else { continue };
            let mut out = Successors::new(interp.width());
            for (state, &distance) in &distances(&interp) {
                let guess = guide.guess(state);
                assert!(guess <= distance, "seed {seed}: {guess} of {distance}");
                positive += (guess > 1) as u64;
                out.clear();
                interp.successors(state, &mut out);
                for (successor, _) in out.iter().filter(|(_, step)| !step.is_fault()) {
                    assert!(guide.guess(successor) + 1 >= guess, "seed {seed}: falls by more than one");
                }
            }
        }
        assert!(positive > 0, "no guess says more than that something is missing");
    }

    #[test]
    fn goals_are_taken_apart() {
        let model = "system \"s\" var x: 0..100 var pc: 0..3 of P process P at pc { a, b, c, d }
            command \"ab\" at P.a { do { pc := 1; } } command \"bc\" at P.b { do { pc := 2; } }
            goal \"g\" { expect (pc == 2) && (x == 40) }";
        let interp = Interp::new(text::parse(model).unwrap());
        let mut out = Successors::new(interp.width());
        interp.initial(&mut out);
        let start = out.state(0).to_vec();
        let near = Guide::to_goals(interp.system(), true).unwrap().guess(&start);
        let sum = Guide::to_goals(interp.system(), false).unwrap().guess(&start);
        assert_eq!((near, sum), (2, 2 + 1 + 5));
        let counted = model.replace("(pc == 2) && (x == 40)", "(((pc == 2) + (x == 40)) + (pc == 1)) > 1");
        let interp = Interp::new(text::parse(&counted).unwrap());
        let [near, sum] = [true, false].map(|never| Guide::to_goals(interp.system(), never).unwrap().guess(&start));
        assert_eq!((near, sum), (1, 1 + 2), "the two nearest of three");
    }
}
