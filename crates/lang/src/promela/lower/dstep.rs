//! `d_step`: a whole sequence as one step.
//!
//! The sequence becomes structured code in the body of one command. Where several options could be taken, the
//! first one is; where none can, the step goes wrong, unless that is at its very beginning: then the step is
//! just not enabled.

use super::value::Draft;
use super::{Frame, Lowering};
use crate::promela::ast::{Choose, Step, Stmt as Source, StmtKind};
use plimsoll_ir::{Expr, Stmt};

/// More rounds of a loop are taken for a loop that never ends.
const MOST_ROUNDS: u32 = 1 << 20;

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
        self.d_sequence(stmts, false, Nesting::default(), frame, draft)
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
                StmtKind::Goto(_) => self.fail("goto within d_step is not supported"),
                StmtKind::Else => {}
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
        if choose.repeats { vec![Stmt::Loop { limit: MOST_ROUNDS, body: out }] } else { out }
    }
}
