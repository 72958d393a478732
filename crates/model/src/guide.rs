//! How far may a state be from a goal? A guess, from the text of the goal or from an expression that somebody gave.
//!
//! A goal is taken apart ([`term`]): of `a && b` both are missing, of `a || b` the nearer one, of `P.critical + Q.critical > 1` the nearest two.
//!
//! Best-first search asks what it would take to make each of them true, if nothing once true were lost ([`relax`]). For A\* the
//! guess must never be too large, and not fall by more than one in a step: then only **the largest location distance** counts ([`distance`]), or one
//! if anything is missing. A command moves a process along one edge of the graph that distances are measured in, and a step is a command,
//! unless atomic chains make one step of several; then nothing is promised, nor where a value of the goal may fail, for that counts as reached.

mod distance;
mod relax;
mod term;

use crate::Interp;
use distance::steps_to;
use plimsoll_ir::{BinOp, Deadlock, Expr, Property, Stmt, System};
use relax::Relaxed;
use std::fmt;
use term::{Atom, Atoms, Term};

/// A cost that somebody gives is cut to this.
const MOST: i64 = 1 << 24;

/// Guesses how many steps are missing.
pub struct Guide {
    /// Knows no commands; its properties are the values that atoms look at.
    interp: Interp,
    atoms: Vec<Atom>,
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

#[derive(Debug)]
enum Kind {
    /// The value of an expression.
    Given,
    /// What it takes to make atoms true, added up.
    Added(Relaxed),
    /// The largest distance; by atom, how far each location of a process is from the one it names.
    Largest(Vec<Vec<u32>>),
}

impl Guide {
    /// A guide to the goals of a system and to states that violate its invariants; where it has neither, to assertions that fail; none if there
    /// is nothing of that kind. It never guesses too much, if that is wanted and possible.
    pub fn to_goals(system: &System, never_too_much: bool) -> Option<Guide> {
        let mut atoms = Atoms::default();
        let mut goals: Vec<Term> =
            system.properties.iter().map(|property| atoms.of_property(system, property)).collect();
        if goals.is_empty() && !never_too_much {
            goals = failed_assertions(system, &mut atoms);
        }
        if goals.is_empty() {
            return None;
        }
        let plain = system.exclusive.is_none() && atoms.values.iter().all(never_fails);
        let kind = match never_too_much {
            true => Kind::Largest(atoms.atoms.iter().map(|atom| distances(system, atom)).collect()),
            false => Kind::Added(Relaxed::new(system, &mut atoms)),
        };
        Some(Guide { interp: evaluator(system, atoms.values), atoms: atoms.atoms, goals, kind, plain })
    }

    /// A guide that believes in the value of an expression.
    pub fn by_cost(system: &System, cost: &Property) -> Guide {
        let interp = evaluator(system, vec![cost.clone()]);
        Guide { interp, atoms: Vec::new(), goals: Vec::new(), kind: Kind::Given, plain: false }
    }

    /// Does a guess never exceed the number of steps that are missing, nor fall by more than one in a step?
    pub fn never_too_much(&self) -> bool {
        matches!(self.kind, Kind::Largest(_)) && self.plain
    }

    /// How many steps are missing, at a guess.
    pub fn guess(&self, state: &[u32]) -> u32 {
        let values = self.interp.values(state);
        let nearest = |missing: &dyn Fn(&Term) -> u32| self.goals.iter().map(missing).min().unwrap_or(0);
        match &self.kind {
            Kind::Given => values[0].unwrap_or(MOST).clamp(0, MOST) as u32,
            Kind::Added(relaxed) => relaxed.missing(&self.goals, &self.atoms, &values),
            Kind::Largest(distances) => {
                let cost = |(atom, steps): (&Atom, &Vec<u32>)| match atom {
                    Atom::At { value, .. } => {
                        let location = values[*value].and_then(|value| usize::try_from(value).ok());
                        location.and_then(|location| steps.get(location)).copied().unwrap_or(distance::FAR)
                    }
                    atom => !atom.is_true(&values) as u32,
                };
                let costs: Vec<u32> = self.atoms.iter().zip(distances).map(cost).collect();
                nearest(&|goal| goal.largest(&costs))
            }
        }
    }
}

fn distances(system: &System, atom: &Atom) -> Vec<u32> {
    match *atom {
        Atom::At { process, location, there, .. } => steps_to(system, process, location, there),
        _ => Vec::new(),
    }
}

/// What is missing for an assertion to fail in the next step.
fn failed_assertions(system: &System, atoms: &mut Atoms) -> Vec<Term> {
    fn conditions<'a>(body: &'a [Stmt], found: &mut Vec<&'a Expr>) {
        for stmt in body {
            match stmt {
                Stmt::Assert { condition, .. } => found.push(condition),
                Stmt::If { then, otherwise, .. } => {
                    conditions(then, found);
                    conditions(otherwise, found);
                }
                Stmt::Block(body) | Stmt::Loop { body, .. } => conditions(body, found),
                _ => {}
            }
        }
    }
    let mut goals = Vec::new();
    for command in &system.commands {
        let mut found = Vec::new();
        conditions(&command.body, &mut found);
        for condition in found {
            let mut need: Vec<Term> = Vec::new();
            for &(process, location) in &command.at {
                need.push(atoms.at(system, process, location as usize, true));
            }
            need.push(atoms.term(system, &command.guard, true));
            need.push(atoms.term(system, condition, false));
            goals.push(Term::All(need));
        }
    }
    goals
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, Successors};
    use plimsoll_ir::random::{Size, random_system};
    use plimsoll_ir::{PropertyKind, text};
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
            let (temps, prelude) = (Vec::new(), Vec::new());
            system.properties.push(Property {
                name: String::new(),
                line: 0,
                kind: PropertyKind::Goal,
                temps,
                prelude,
                expr,
            });
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

    fn guesses(model: &str) -> (u32, u32) {
        let interp = Interp::new(text::parse(model).unwrap());
        let mut out = Successors::new(interp.width());
        interp.initial(&mut out);
        let guess = |never: bool| Guide::to_goals(interp.system(), never).unwrap().guess(out.state(0));
        (guess(true), guess(false))
    }

    const MODEL: &str = "system \"s\" var x: 0..100 var y: 0..1 var pc: 0..3 of P process P at pc { a, b, c, d }
        command \"ab\" at P.a { do { pc := 1; } } command \"bc\" at P.b { when y == 1 do { pc := 2; } }
        command \"ba\" at P.b { do { pc := 0; x := x + 4; } } command \"y\" { when x > 0 do { y := 1; } }
        goal \"g\" { expect pc == 2 }";

    #[test]
    fn what_a_command_needs_is_missing_too() {
        // From a to b, which x needs too; y is one when x is more; to c.
        assert_eq!(guesses(MODEL), (2, 1 + 1 + 1 + 1));
        let far = MODEL.replace("pc == 2", "x == 20");
        assert_eq!(guesses(&far), (1, 1 + 1 + 4 * 2), "four more rounds of two steps");
        let no_way = MODEL.replace("pc == 2", "x == 101");
        assert!(guesses(&no_way).1 > 20, "not a multiple, but who knows");
        let never = MODEL.replace("pc == 2", "pc == 3");
        assert_eq!(guesses(&never), (distance::FAR, relax::FAR));
    }

    #[test]
    fn goals_are_taken_apart() {
        let counted = MODEL.replace("pc == 2", "(((pc == 1) + (y == 1)) + (pc == 2)) > 1");
        assert_eq!(guesses(&counted), (1, 1 + 2), "the two nearest of three, of which one is on the way to the other");
        let any = MODEL.replace("pc == 2", "(pc == 2) || !(pc != 1)");
        assert_eq!(guesses(&any), (1, 1));
    }

    #[test]
    fn assertions_that_may_fail_are_goals_where_there_are_no_others() {
        let model = MODEL.replace("do { pc := 0; x", "do { assert x != 8 \"eight\"; pc := 0; x");
        let model = &model[..model.find("goal").unwrap()];
        let interp = Interp::new(text::parse(model).unwrap());
        let mut out = Successors::new(interp.width());
        interp.initial(&mut out);
        assert_eq!(Guide::to_goals(interp.system(), false).unwrap().guess(out.state(0)), 1 + 1 + 2);
        assert!(Guide::to_goals(interp.system(), true).is_none());
    }
}
