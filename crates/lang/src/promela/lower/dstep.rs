//! `d_step`: a whole sequence as one step.
//!
//! The sequence becomes structured code in the body of one command. Where several options could be taken, the
//! first one is; where none can, the step goes wrong, unless that is at its very beginning: then the step is
//! just not enabled.

use super::value::Draft;
use super::{Frame, Lowering};
use crate::promela::ast::{Choose, Proctype, Step, Stmt as Source, StmtKind, walk_statements};
use crate::promela::flow::{Action, Location, Transition, automaton};
use plimsoll_ir::{Expr, Narrow, Scalar, Stmt, TempId, UNLIMITED};

const BLOCKED: &str = "a statement within d_step is blocked";

/// How deep the current code lies in loops of the system, and where the innermost loop of the model began.
#[derive(Clone, Copy, Default)]
struct Nesting {
    depth: u32,
    innermost: Option<u32>,
}

impl Lowering<'_> {
    /// Can the sequence begin? Code for the answer goes to the draft.
    pub fn can_begin(&mut self, stmts: &[Source], frame: Frame, draft: &mut Draft) -> Expr {
        let Some(first) = stmts.first() else { return Expr::TRUE };
        match &first.kind {
            StmtKind::Step(step) => self.enabled(step, frame, draft),
            StmtKind::Choose(choose) => {
                let options = choose.options.iter();
                let terms: Vec<Expr> = options.map(|option| self.can_begin(option, frame, draft)).collect();
                if terms.contains(&Expr::TRUE) { Expr::TRUE } else { Expr::any(terms) }
            }
            StmtKind::Block(inner) | StmtKind::Atomic(inner) | StmtKind::DStep(inner) | StmtKind::Unless(inner, _) => {
                self.can_begin(inner, frame, draft)
            }
            StmtKind::Else | StmtKind::Goto(_) | StmtKind::Break => Expr::TRUE,
        }
    }

    /// The code of the whole sequence.
    pub fn d_step(&mut self, stmts: &[Source], frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        let mut jumps = false;
        walk_statements(stmts, &mut |stmt| jumps |= matches!(stmt.kind, StmtKind::Goto(_)));
        match jumps {
            true => self.d_machine(stmts, frame, draft),
            false => self.d_sequence(stmts, false, Nesting::default(), frame, draft),
        }
    }

    /// A sequence with jumps: a loop that takes one statement in each round, and remembers where it is.
    fn d_machine(&mut self, stmts: &[Source], frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        let site = self.site;
        let (name, locals, body) = (String::new(), Vec::new(), stmts.to_vec());
        let proctype = Proctype { name, params: 0, locals, body, provided: None, defined: true, site, end: site };
        let automaton = match automaton(&proctype, &[], true) {
            Ok(automaton) => automaton,
            Err(mut problems) => {
                self.errors.append(&mut problems);
                return Vec::new();
            }
        };
        let at = draft.temp("d_step at", Scalar::I32);
        let mut round = vec![Stmt::Fault(BLOCKED.into())];
        for (number, location) in automaton.locations.iter().enumerate().rev() {
            let then = self.d_location(location, at, frame, draft);
            let condition = Expr::equal(Expr::read(at), Expr::Const(number as i64));
            round = vec![Stmt::If { condition, then, otherwise: round }];
        }
        let start = Stmt::assign(at, automaton.start as i64, Narrow::Wrap);
        vec![start, Stmt::Loop { limit: UNLIMITED, body: round }]
    }

    /// Takes the first transition of a location that can be taken, an `else` if there is no other.
    fn d_location(&mut self, location: &Location, at: TempId, frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        let is_else = |transition: &&Transition| matches!(transition.action, Action::Else);
        let (last, first): (Vec<_>, Vec<_>) = location.transitions.iter().partition(is_else);
        let mut out = vec![Stmt::Fault(BLOCKED.into())];
        for transition in first.into_iter().chain(last).rev() {
            self.site = transition.site;
            let (condition, mut then) = match transition.action {
                Action::Jump | Action::Else => (Expr::TRUE, Vec::new()),
                Action::Die => (Expr::TRUE, vec![Stmt::Break(0)]),
                Action::DStep(stmts) => {
                    let condition = self.can_begin(stmts, frame, draft);
                    (condition, self.d_step(stmts, frame, draft))
                }
                Action::Step(step) => {
                    let condition = self.enabled(step, frame, draft);
                    (condition, Vec::new())
                }
            };
            let code = draft.take_code();
            if let Action::Step(step) = transition.action {
                then = self.d_simple(step, transition.text, true, frame, draft);
            }
            if let Some(target) = transition.target {
                then.push(Stmt::assign(at, target as i64, Narrow::Wrap));
            }
            let choice = match condition {
                Expr::Const(1) => then,
                condition => vec![Stmt::If { condition, then, otherwise: out }],
            };
            out = code.into_iter().chain(choice).collect();
        }
        out
    }

    /// `begun` says that the first statement is known to be enabled.
    fn d_sequence(
        &mut self,
        stmts: &[Source],
        begun: bool,
        nesting: Nesting,
        frame: Frame,
        draft: &mut Draft,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        for (index, stmt) in stmts.iter().enumerate() {
            self.site = stmt.site;
            match &stmt.kind {
                StmtKind::Step(step) => out.extend(self.d_simple(step, &stmt.text, begun && index == 0, frame, draft)),
                StmtKind::Choose(choose) => out.extend(self.d_choose(choose, nesting, frame, draft)),
                StmtKind::Block(inner)
                | StmtKind::Atomic(inner)
                | StmtKind::DStep(inner)
                | StmtKind::Unless(inner, _) => {
                    out.extend(self.d_sequence(inner, begun && index == 0, nesting, frame, draft));
                }
                StmtKind::Break => match nesting.innermost {
                    Some(innermost) => out.push(Stmt::Break(nesting.depth - innermost - 1)),
                    None => self.fail("break leads out of d_step"),
                },
                // Sequences with jumps go another way.
                StmtKind::Goto(_) | StmtKind::Else => {}
            }
        }
        out
    }

    fn d_simple(&mut self, step: &Step, text: &str, begun: bool, frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        let mut variants = self.variants(step, text, frame, draft);
        if variants.len() == 1 && (begun || variants[0].guard == Expr::TRUE) {
            let only = variants.remove(0);
            return only.prelude.into_iter().chain(only.body).collect();
        }
        let mut out = vec![Stmt::Fault(BLOCKED.into())];
        for variant in variants.into_iter().rev() {
            let choice = Stmt::If { condition: variant.guard, then: variant.body, otherwise: out };
            out = variant.prelude.into_iter().chain([choice]).collect();
        }
        out
    }

    fn d_choose(&mut self, choose: &Choose, nesting: Nesting, frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        let inner = match choose.repeats {
            true => Nesting { depth: nesting.depth + 1, innermost: Some(nesting.depth) },
            false => nesting,
        };
        let is_else = |option: &&Vec<Source>| matches!(option.first().map(|first| &first.kind), Some(StmtKind::Else));
        let plain = choose.options.iter().filter(|option| !is_else(option));
        let mut out = match choose.options.iter().find(is_else) {
            Some(option) => self.d_sequence(option, true, inner, frame, draft),
            None => vec![Stmt::Fault(BLOCKED.into())],
        };
        for option in plain.collect::<Vec<_>>().into_iter().rev() {
            let condition = self.can_begin(option, frame, draft);
            let code = draft.take_code();
            let then = self.d_sequence(option, true, inner, frame, draft);
            let choice = match condition {
                Expr::Const(1) => then,
                condition => vec![Stmt::If { condition, then, otherwise: out }],
            };
            out = code.into_iter().chain(choice).collect();
        }
        if choose.repeats { vec![Stmt::Loop { limit: UNLIMITED, body: out }] } else { out }
    }
}
