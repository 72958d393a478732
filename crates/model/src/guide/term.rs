//! A goal taken apart: what has to be so, down to atoms that are true or not.

use plimsoll_ir::walk::expr_places;
use plimsoll_ir::{BinOp, Expr, Place, ProcessId, Property, PropertyKind, Root, System, UnOp};

/// What is wanted, of atoms by number.
#[derive(Clone, Debug)]
pub(super) enum Term {
    All(Vec<Term>),
    Any(Vec<Term>),
    /// At least so many of these.
    Some {
        count: usize,
        of: Vec<Term>,
    },
    Atom(usize),
}

/// What is true in a state or not; values are given by number.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Atom {
    /// A process is at a location, or it is not there.
    At {
        process: ProcessId,
        location: usize,
        there: bool,
        value: usize,
    },
    /// The first is so to the second.
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

/// All atoms that were met, and the values that they look at.
#[derive(Debug, Default)]
pub(super) struct Atoms {
    pub atoms: Vec<Atom>,
    pub values: Vec<Property>,
}

impl Term {
    /// What is true anyway.
    pub const NOTHING: Term = Term::All(Vec::new());

    /// What is missing if these are the costs of atoms: the sum of what must be, the least of what may be.
    pub fn sum(&self, cost: &[u32]) -> u32 {
        match self {
            Term::Atom(atom) => cost[*atom],
            Term::All(terms) => terms.iter().map(|term| term.sum(cost)).fold(0, u32::saturating_add),
            Term::Any(terms) => terms.iter().map(|term| term.sum(cost)).min().unwrap_or(u32::MAX),
            Term::Some { count, of } => nearest(of.iter().map(|term| term.sum(cost)), *count)
                .iter()
                .fold(0, |sum, &one| sum.saturating_add(one)),
        }
    }

    /// The atoms that the sum is of.
    pub fn chosen(&self, cost: &[u32], visit: &mut dyn FnMut(usize)) {
        match self {
            Term::Atom(atom) => visit(*atom),
            Term::All(terms) => terms.iter().for_each(|term| term.chosen(cost, visit)),
            Term::Any(terms) => {
                if let Some(term) = terms.iter().min_by_key(|term| term.sum(cost)) {
                    term.chosen(cost, visit);
                }
            }
            Term::Some { count, of } => {
                let mut nearest: Vec<&Term> = of.iter().collect();
                nearest.sort_by_key(|term| term.sum(cost));
                nearest.into_iter().take(*count).for_each(|term| term.chosen(cost, visit));
            }
        }
    }

    /// The same, but of what must be only the largest counts.
    pub fn largest(&self, cost: &[u32]) -> u32 {
        match self {
            Term::Atom(atom) => cost[*atom],
            Term::All(terms) => terms.iter().map(|term| term.largest(cost)).max().unwrap_or(0),
            Term::Any(terms) => terms.iter().map(|term| term.largest(cost)).min().unwrap_or(0),
            Term::Some { count, of } => {
                nearest(of.iter().map(|term| term.largest(cost)), *count).last().copied().unwrap_or(0)
            }
        }
    }

    /// Reports all its atoms.
    pub fn atoms(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Term::Atom(atom) => visit(*atom),
            Term::All(terms) | Term::Any(terms) | Term::Some { of: terms, .. } => {
                terms.iter().for_each(|term| term.atoms(visit));
            }
        }
    }
}

impl Atom {
    /// Is it so? What has no value is not.
    pub fn is_true(&self, values: &[Option<i64>]) -> bool {
        match *self {
            Atom::At { location, there, value, .. } => {
                values[value].is_some_and(|value| (value == location as i64) == there)
            }
            Atom::Compared { how, left, right } => {
                values[left].zip(values[right]).and_then(|(left, right)| how.apply(left, right)) == Some(1)
            }
            Atom::Truth { value, wanted } => values[value].is_some_and(|value| (value != 0) == wanted),
        }
    }
}

impl Atoms {
    /// What is missing for a property to be violated, or reached.
    pub fn of_property(&mut self, system: &System, property: &Property) -> Term {
        let wanted = property.kind == PropertyKind::Goal;
        if property.temps.is_empty() && property.prelude.is_empty() {
            return self.term(system, &property.expr, wanted);
        }
        self.values.push(property.clone());
        let value = self.values.len() - 1;
        self.atom(Atom::Truth { value, wanted })
    }

    /// A process at a location.
    pub fn at(&mut self, system: &System, process: ProcessId, location: usize, there: bool) -> Term {
        let value = self.value(&Expr::read(system.processes[process.index()].location));
        self.atom(Atom::At { process, location, there, value })
    }

    /// What is missing for an expression to be as wanted. What depends on temporaries is left out.
    pub fn term(&mut self, system: &System, expr: &Expr, wanted: bool) -> Term {
        use BinOp::*;
        match expr {
            Expr::Const(value) if (*value != 0) == wanted => Term::NOTHING,
            Expr::Unary(UnOp::Not, inner) => self.term(system, inner, !wanted),
            Expr::Binary(op @ (And | Or), left, right) => {
                let both = vec![self.term(system, left, wanted), self.term(system, right, wanted)];
                if (*op == And) == wanted { Term::All(both) } else { Term::Any(both) }
            }
            _ if !is_of_the_state(expr) => Term::NOTHING,
            Expr::Binary(op @ (Eq | Ne | Lt | Le | Gt | Ge), left, right) => {
                let how = if wanted { *op } else { opposite(*op) };
                let (how, left, right) = match **left {
                    Expr::Const(_) => (mirrored(how), right, left),
                    _ => (how, left, right),
                };
                self.compared(system, how, left, right)
            }
            Expr::Read(_) => self.compared(system, if wanted { Ne } else { Eq }, expr, &Expr::Const(0)),
            other => {
                let value = self.value(other);
                self.atom(Atom::Truth { value, wanted })
            }
        }
    }

    fn compared(&mut self, system: &System, how: BinOp, left: &Expr, right: &Expr) -> Term {
        if let Some((process, location)) = at_location(system, left, right)
            && matches!(how, BinOp::Eq | BinOp::Ne)
        {
            return self.at(system, process, location, how == BinOp::Eq);
        }
        if let Some((count, truths)) = at_least(how, left, right) {
            let of = truths.into_iter().map(|truth| self.term(system, truth, true)).collect();
            return Term::Some { count, of };
        }
        let (left, right) = (self.value(left), self.value(right));
        self.atom(Atom::Compared { how, left, right })
    }

    fn atom(&mut self, atom: Atom) -> Term {
        let known = self.atoms.iter().position(|known| *known == atom);
        Term::Atom(known.unwrap_or_else(|| {
            self.atoms.push(atom);
            self.atoms.len() - 1
        }))
    }

    fn value(&mut self, expr: &Expr) -> usize {
        let same = |known: &Property| known.prelude.is_empty() && known.temps.is_empty() && known.expr == *expr;
        self.values.iter().position(same).unwrap_or_else(|| {
            let (temps, prelude) = (Vec::new(), Vec::new());
            let expr = expr.clone();
            self.values.push(Property { name: String::new(), line: 0, kind: PropertyKind::Goal, temps, prelude, expr });
            self.values.len() - 1
        })
    }
}

/// Does the value depend on nothing but the state?
pub(super) fn is_of_the_state(expr: &Expr) -> bool {
    let mut all = true;
    expr_places(expr, &mut |_, place| all &= matches!(place.root, Root::Var(_)));
    all
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

/// The same comparison with its sides swapped.
fn mirrored(op: BinOp) -> BinOp {
    use BinOp::*;
    match op {
        Lt => Gt,
        Le => Ge,
        Gt => Lt,
        Ge => Le,
        same => same,
    }
}

/// Is the comparison one of a process's place with a location?
fn at_location(system: &System, left: &Expr, right: &Expr) -> Option<(ProcessId, usize)> {
    let (Expr::Read(place), Expr::Const(number)) = (left, right) else { return None };
    let Place { root: Root::Var(var), path } = place else { return None };
    let process = system.processes.iter().position(|process| process.location == *var && path.is_empty())?;
    Some((ProcessId(process as u32), usize::try_from(*number).ok()?))
}
