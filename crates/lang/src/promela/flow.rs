//! The control flow of a proctype: its locations and the transitions between them, with SPIN's idea of which
//! points of the text are one and the same location.
//!
//! Text becomes *elements* (`elements.rs`), linked as SPIN links them. A location is an element where
//! control can rest: jumps, `break` and the joins behind `if`, `do` and `unless` are passed through, except
//! where that would leave an atomic sequence (then the jump is a step of its own, without a stored state).
//! The transitions of a selection or a block are those of its first statements, as deep as it takes; a jump
//! that is the first statement of an option is a transition itself. An escape of `unless` is put in front
//! of all transitions it may interrupt.

mod elements;
mod hunt;

use super::ast::{Expr, Label, Proctype, Step, Stmt, StmtKind, walk_statements};
use super::lexer::Site;
use elements::{Elements, Id, Kind};
use std::collections::HashMap;
use std::sync::Arc;

/// Locations are numbered from 0 in the order in which they are found.
#[derive(Debug)]
pub struct Automaton<'a> {
    pub start: usize,
    pub locations: Vec<Location<'a>>,
    /// Where labels stand, by name; `None` if control never rests there.
    pub labels: Vec<(Label, Option<usize>)>,
    /// How many elements SPIN numbers in it.
    pub elements: u32,
}

#[derive(Debug)]
pub struct Location<'a> {
    /// In the order in which they are tried.
    pub transitions: Vec<Transition<'a>>,
    /// May the process stay here for ever?
    pub end: bool,
    pub name: String,
    /// SPIN's number of the place.
    pub number: u32,
}

#[derive(Clone, Debug)]
pub struct Transition<'a> {
    pub action: Action<'a>,
    /// `None` when the process ends.
    pub target: Option<usize>,
    /// Must the process go on at once?
    pub atomic: bool,
    /// Transitions of the same escape share a number.
    pub escape: Option<usize>,
    pub site: Site,
    pub text: &'a str,
    /// SPIN's number of the statement within the proctype.
    pub number: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    /// A jump, or a join, that is a step.
    Jump,
    Else,
    Step(&'a Step),
    DStep(&'a [Stmt]),
    /// The end of the process; possible only for the youngest.
    Die,
}

/// The control flow of a proctype; `remote` are the labels that others refer to.
pub fn automaton<'a>(
    proctype: &'a Proctype,
    remote: &[Arc<str>],
    is_claim: bool,
) -> Result<Automaton<'a>, Vec<(String, Site)>> {
    let elements = Elements::build(proctype, remote, is_claim)?;
    let mut builder = Builder { elements, numbers: HashMap::new(), order: Vec::new(), errors: Vec::new() };
    let start = builder.start();
    let mut locations = Vec::new();
    let mut ends = Vec::new();
    while locations.len() < builder.order.len() {
        let id = builder.order[locations.len()];
        locations.push(builder.location(id, &mut ends));
    }
    for number in ends {
        locations[number].end = true;
    }
    let labels = builder.elements.labels.iter();
    let labels = labels.map(|(label, id)| (label.clone(), builder.numbers.get(id).copied())).collect();
    let elements = builder.elements.count;
    if builder.errors.is_empty() { Ok(Automaton { start, locations, labels, elements }) } else { Err(builder.errors) }
}

impl Automaton<'_> {
    /// Which locations such a transition may follow.
    pub fn leading_to(&self, wanted: impl Fn(&Transition) -> bool) -> Vec<bool> {
        let mut leading = vec![false; self.locations.len()];
        loop {
            let before = leading.clone();
            for (number, location) in self.locations.iter().enumerate() {
                let leads = |next: &Transition| wanted(next) || next.target.is_some_and(|target| leading[target]);
                leading[number] = location.transitions.iter().any(leads);
            }
            if leading == before {
                return leading;
            }
        }
    }
}

impl Transition<'_> {
    /// May it run a process?
    pub fn runs(&self) -> bool {
        let mut runs = false;
        let mut look = |step: &Step| step.walk(&mut |part| runs |= matches!(part, Expr::Run(_)));
        match self.action {
            Action::Step(step) => look(step),
            Action::DStep(body) => walk_statements(body, &mut |stmt| {
                if let StmtKind::Step(step) = &stmt.kind {
                    look(step);
                }
            }),
            Action::Jump | Action::Else | Action::Die => {}
        }
        runs
    }
}

struct Builder<'a> {
    elements: Elements<'a>,
    /// Locations by element.
    numbers: HashMap<Id, usize>,
    /// Elements that are locations, by number.
    order: Vec<Id>,
    errors: Vec<(String, Site)>,
}

impl<'a> Builder<'a> {
    fn start(&mut self) -> usize {
        let first = self.elements.first();
        let atom = self.elements.get(first).atom;
        let id = self.hunt(first, atom);
        self.number(id)
    }

    fn number(&mut self, id: Id) -> usize {
        let next = self.order.len();
        *self.numbers.entry(id).or_insert_with(|| {
            self.order.push(id);
            next
        })
    }

    fn hunt(&mut self, from: Id, atom: bool) -> Id {
        self.elements.hunt(from, atom).unwrap_or_else(|(message, site)| {
            if !self.errors.iter().any(|(_, other)| *other == site) {
                self.errors.push((message, site));
            }
            from
        })
    }

    fn location(&mut self, id: Id, ends: &mut Vec<usize>) -> Location<'a> {
        let mut leaves = Vec::new();
        self.elements.leaves(id, &mut leaves);
        let contained = leaves != [id];
        let normal: Vec<Transition> = leaves.iter().map(|&leaf| self.transition(leaf, None)).collect();
        for (leaf, transition) in leaves.iter().zip(&normal) {
            // A peculiar rule: an end label on the first statement of an option counts behind it.
            if contained && self.elements.has_end_label(*leaf) {
                ends.extend(transition.target);
            }
        }
        let mut transitions = self.escapes(&leaves);
        let elses = normal.iter().filter(|transition| matches!(transition.action, Action::Else)).count();
        let element = self.elements.get(id);
        let (site, end) = (element.site, element.kind.is_stop() || self.elements.has_end_label(id));
        if elses > 1 {
            self.errors.push(("two else at one point of control".into(), site));
        }
        transitions.extend(normal);
        let name = match &self.elements.get(id).kind {
            Kind::Stop => "end".to_string(),
            _ => match self.elements.labels.iter().find(|(_, other)| *other == id) {
                Some((label, _)) => format!("{} ({})", site.line, label.name),
                None => site.line.to_string(),
            },
        };
        Location { transitions, end, name, number: self.elements.get(id).number }
    }

    /// The transitions of all escapes that may interrupt one of `leaves`, outer escapes first.
    fn escapes(&mut self, leaves: &[Id]) -> Vec<Transition<'a>> {
        let mut found: Vec<(Id, usize)> = Vec::new();
        for &leaf in leaves {
            let element = self.elements.get(leaf);
            if matches!(element.kind, Kind::Join) {
                continue;
            }
            let atom = element.atom;
            for (rank, &first) in element.escapes.clone().iter().rev().enumerate() {
                let place = self.hunt(first, atom);
                if !found.iter().any(|&(other, _)| other == place) {
                    found.push((place, rank));
                }
            }
        }
        // An element lists its outer escapes last; they go first.
        found.sort_by_key(|&(_, rank)| rank);
        let mut out = Vec::new();
        for (group, (place, _)) in found.into_iter().enumerate() {
            let mut leaves = Vec::new();
            self.elements.leaves(place, &mut leaves);
            for leaf in leaves {
                out.push(self.transition(leaf, Some(group)));
            }
        }
        out
    }

    fn transition(&mut self, leaf: Id, escape: Option<usize>) -> Transition<'a> {
        let element = self.elements.get(leaf);
        let (atom, site, text, number) = (element.atom, element.site, element.text, element.number);
        let (action, next) = match &element.kind {
            Kind::Step(step) => (Action::Step(step), element.next),
            Kind::DStep(_, body) => (Action::DStep(body), element.next),
            Kind::Else => (Action::Else, element.next),
            Kind::Goto(_) => (Action::Jump, self.elements.goto_target(leaf)),
            Kind::Stop => (Action::Die, None),
            _ => (Action::Jump, element.next),
        };
        let target = next.map(|next| {
            let id = self.hunt(next, atom);
            self.number(id)
        });
        Transition { action, target, atomic: atom, escape, site, text, number }
    }
}
