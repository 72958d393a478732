//! Statements. What is known about the successor follows the control flow.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, types};
use plimsoll_ir::{Expr, Place, Root, Stmt, UNLIMITED};
use std::sync::atomic::AtomicBool;

use super::emit::Emitter;
use super::known::Known;
use crate::Step;

/// Where a loop has no limit, the interpreter takes over after this many rounds, to find out whether it ever ends.
const MOST_ROUNDS: u32 = 1 << 31;
/// Loops of so few rounds are not asked in each of them whether to give up; some loop around them is.
const UNWATCHED_ROUNDS: u32 = 16;

/// A block or loop that can be left.
pub(super) struct Exit {
    after: Block,
    /// Does anything leave it?
    left: bool,
    /// What is known wherever control leaves it.
    known: Option<Known>,
}

impl Emitter<'_, '_> {
    /// Generates statements in order. Does control reach their end? If not, the block has ended.
    pub fn run(&mut self, stmts: &[Stmt]) -> bool {
        stmts.iter().all(|stmt| self.step(stmt))
    }

    fn step(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Assign { to, value, narrow } => {
                let value = self.eval(value);
                self.assign(to, value, *narrow);
                true
            }
            Stmt::Copy { to, from } => {
                self.copy(to, from);
                true
            }
            Stmt::Reset(place) => {
                self.reset(place);
                true
            }
            Stmt::If { condition, then, otherwise } => self.branches(condition, then, otherwise),
            Stmt::Block(body) => self.block(body),
            Stmt::Loop { limit, body } => self.repeat(*limit, body),
            Stmt::Break(depth) => {
                self.leave(*depth);
                false
            }
            Stmt::Assert { condition, .. } => {
                self.assert(condition);
                true
            }
            Stmt::Fault(_) => {
                self.scope.faults = true;
                self.b.ins().jump(self.scope.fault, &[]);
                false
            }
            Stmt::Discard => {
                self.b.ins().jump(self.scope.discard, &[]);
                false
            }
        }
    }

    fn branches(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) -> bool {
        let (yes, no, after) = (self.fresh(), self.fresh(), self.fresh());
        self.branch(condition, yes, no);
        let before = self.known();
        let mut ends = Vec::new();
        for (start, stmts) in [(yes, then), (no, otherwise)] {
            self.b.switch_to_block(start);
            self.set_known(before.clone());
            if self.run(stmts) {
                self.b.ins().jump(after, &[]);
                ends.push(self.known());
            }
        }
        if ends.is_empty() {
            return false;
        }
        let met = ends.into_iter().reduce(meet).flatten();
        self.set_known(met);
        self.b.switch_to_block(after);
        true
    }

    fn block(&mut self, body: &[Stmt]) -> bool {
        let after = self.fresh();
        self.scope.exits.push(Exit { after, left: false, known: None });
        if self.run(body) {
            self.leave(0);
        }
        self.end_exit()
    }

    fn repeat(&mut self, limit: u32, body: &[Stmt]) -> bool {
        self.forget_written(body);
        let at_head = self.known();
        let (head, round, after) = (self.fresh(), self.fresh(), self.fresh());
        let count = self.b.append_block_param(head, types::I64);
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.ins().jump(head, &[zero.into()]);
        self.b.switch_to_block(head);
        let limit = if limit == UNLIMITED { MOST_ROUNDS } else { limit };
        let allowed = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, count, limit as i64);
        self.scope.faults = true;
        self.b.ins().brif(allowed, round, &[], self.scope.fault, &[]);
        self.b.switch_to_block(round);
        if limit > UNWATCHED_ROUNDS {
            self.fault_if_stopped();
        }
        self.set_known(at_head);
        self.scope.exits.push(Exit { after, left: false, known: None });
        if self.run(body) {
            let next = self.b.ins().iadd_imm_s(count, 1);
            self.b.ins().jump(head, &[next.into()]);
        }
        self.end_exit()
    }

    /// Looks at whether to give up; who called the code will look too, and take no fault for one of the model.
    fn fault_if_stopped(&mut self) {
        let address = self.b.ins().iconst(types::I64, self.stop as *const AtomicBool as i64);
        // Atomic, so that it is looked at again in every round.
        let stopped = self.b.ins().atomic_load(types::I8, MemFlagsData::new().with_notrap(), address);
        let go_on = self.fresh();
        self.b.ins().brif(stopped, self.scope.fault, &[], go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    fn leave(&mut self, depth: u32) {
        let known = self.known();
        let innermost = self.scope.exits.len() - 1;
        let exit = &mut self.scope.exits[innermost - depth as usize];
        exit.known = if exit.left { meet(exit.known.take(), known) } else { known };
        exit.left = true;
        self.b.ins().jump(exit.after, &[]);
    }

    /// Continues behind the innermost block or loop, if anything gets there.
    fn end_exit(&mut self) -> bool {
        let exit = self.scope.exits.pop().expect("an exit was pushed");
        if exit.left {
            self.set_known(exit.known);
            self.b.switch_to_block(exit.after);
        }
        exit.left
    }

    fn assert(&mut self, condition: &Expr) {
        let (failed, after) = (self.fresh(), self.fresh());
        self.branch(condition, after, failed);
        self.b.switch_to_block(failed);
        let flag = self.b.ins().iconst(types::I64, Step::VIOLATION as i64);
        let variable = self.scope.failed.expect("commands with assertions have a flag");
        self.b.def_var(variable, flag);
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
    }

    fn known(&self) -> Option<Known> {
        self.scope.body.as_ref().map(|body| body.known.clone())
    }

    fn set_known(&mut self, known: Option<Known>) {
        if let (Some(body), Some(known)) = (&mut self.scope.body, known) {
            body.known = known;
        }
    }

    /// Forgets what the statements may write, wherever it lies in its variable.
    fn forget_written(&mut self, stmts: &[Stmt]) {
        let Some(body) = &mut self.scope.body else { return };
        each_written(stmts, &mut |place| {
            if let Root::Var(var) = place.root {
                let address = self.layout.address(var.index(), &self.system.vars[var.index()].ty, &[]);
                body.known.forget(address.bit..address.bit + address.bits);
            }
        });
    }
}

fn meet(one: Option<Known>, other: Option<Known>) -> Option<Known> {
    Some(one?.meet(&other?))
}

/// Calls `visit` for every place that the statements may write to.
pub(super) fn each_written<'s>(stmts: &'s [Stmt], visit: &mut impl FnMut(&'s Place)) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { to, .. } | Stmt::Copy { to, .. } | Stmt::Reset(to) => visit(to),
            Stmt::If { then, otherwise, .. } => {
                each_written(then, visit);
                each_written(otherwise, visit);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => each_written(body, visit),
            Stmt::Break(_) | Stmt::Assert { .. } | Stmt::Fault(_) | Stmt::Discard => {}
        }
    }
}

/// Is there an assertion anywhere?
pub(super) fn has_assertion(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Assert { .. } => true,
        Stmt::If { then, otherwise, .. } => has_assertion(then) || has_assertion(otherwise),
        Stmt::Block(body) | Stmt::Loop { body, .. } => has_assertion(body),
        _ => false,
    })
}

/// Is there a loop without limit anywhere?
pub(super) fn has_unlimited_loop(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Loop { limit, body } => *limit == UNLIMITED || has_unlimited_loop(body),
        Stmt::If { then, otherwise, .. } => has_unlimited_loop(then) || has_unlimited_loop(otherwise),
        Stmt::Block(body) => has_unlimited_loop(body),
        _ => false,
    })
}
