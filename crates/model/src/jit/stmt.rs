//! Statements. What is known about the successor follows the control flow.

use std::collections::BTreeSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, types};
use cranelift_frontend::{Switch, Variable};
use plimsoll_ir::walk::stmt_calls;
use plimsoll_ir::{BinOp, Expr, Place, Root, Stmt, TempId, UNLIMITED, UnOp, VarId};
use std::sync::atomic::AtomicBool;

use super::emit::{Emitter, Home};
use super::known::Known;
use super::range::Range;
use crate::Step;

/// So many comparisons with the same value become a table.
const FEWEST_CASES: usize = 4;
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
    pub fn run(&mut self, mut stmts: &[Stmt]) -> bool {
        while let [stmt, rest @ ..] = stmts {
            if let Some((temp, cases)) = cases(stmts) {
                self.switch(temp, &cases);
                self.scope.just_set = None;
                stmts = &stmts[cases.len()..];
            } else if let Some((asked, variable, rest)) = self.asked_at_once(stmts) {
                let Asked { value, holds, then, otherwise } = asked;
                let (then, otherwise) = if holds { (then, otherwise) } else { (otherwise, then) };
                self.scope.just_set = None;
                let goes_on = self.branches(value, then, otherwise, Some(variable));
                self.scope.just_set = None;
                if !goes_on {
                    return false;
                }
                stmts = rest;
            } else if self.step(stmt) {
                stmts = rest;
            } else {
                return false;
            }
        }
        true
    }

    /// A truth that is put into a register and asked for by the next statement: one branch does both.
    fn asked_at_once<'s>(&self, stmts: &'s [Stmt]) -> Option<(Asked<'s>, Variable, &'s [Stmt])> {
        let (asked, temp, rest) = asked(stmts)?;
        let scalar = self.scope.locals.temps[temp.index()].1.as_scalar()?;
        match self.scope.homes[temp.index()] {
            Home::Register(variable, range)
                if Range::TRUTH.within(range) && scalar.contains(0) && scalar.contains(1) =>
            {
                Some((asked, variable, rest))
            }
            _ => None,
        }
    }

    /// Jumps to the case that a temporary asks for; goes on here if there is none. No case ends at its end.
    fn switch(&mut self, temp: TempId, cases: &[Case]) {
        let value = self.read(&temp.into());
        let (mut table, mut blocks, mut seen) = (Switch::new(), Vec::new(), BTreeSet::new());
        for (values, body) in cases {
            let block = self.fresh();
            for &value in values.iter().filter(|&&value| seen.insert(value)) {
                table.set_entry(value as u64 as u128, block);
            }
            blocks.push((block, body));
        }
        let otherwise = self.fresh();
        table.emit(&mut self.b, value.value, otherwise);
        let before = self.known();
        for (block, body) in blocks {
            self.b.switch_to_block(block);
            self.set_known(before.clone());
            let goes_on = self.run(body);
            debug_assert!(!goes_on, "a case leaves");
        }
        self.set_known(before);
        self.b.switch_to_block(otherwise);
    }

    pub fn step(&mut self, stmt: &Stmt) -> bool {
        let begins_at = self.scope.just_set.take();
        let goes_on = self.step_after(stmt, begins_at);
        self.scope.just_set = match stmt {
            Stmt::Assign { to, value: Expr::Const(value), .. } => whole_temp(to).map(|temp| (temp, *value)),
            _ => None,
        };
        goes_on
    }

    /// One statement, where the one before has set a temporary to a constant.
    fn step_after(&mut self, stmt: &Stmt, begins_at: Option<(TempId, i64)>) -> bool {
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
            Stmt::Sort(place) => {
                self.sort(place);
                true
            }
            Stmt::If { condition, then, otherwise } => self.branches(condition, then, otherwise, None),
            Stmt::Block(body) => self.block(body),
            Stmt::Loop { limit, body } => match counting(*limit, body, begins_at) {
                Some(counting) if self.can_count(&counting) => self.count_up(*limit, &counting),
                _ => self.repeat(*limit, body),
            },
            Stmt::Break(depth) => {
                self.leave(*depth);
                false
            }
            Stmt::Assert { condition, .. } => {
                self.assert(condition);
                true
            }
            Stmt::Call(call) => {
                self.call(call);
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

    /// Runs one of two lists; the register `to` gets the truth of the condition.
    fn branches(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt], to: Option<Variable>) -> bool {
        let (yes, no, after) = (self.fresh(), self.fresh(), self.fresh());
        self.branch(condition, yes, no);
        let before = self.known();
        let mut ends = Vec::new();
        for (start, stmts, truth) in [(yes, then, 1), (no, otherwise, 0)] {
            self.b.switch_to_block(start);
            self.set_known(before.clone());
            if let Some(variable) = to {
                let truth = self.constant(truth);
                self.b.def_var(variable, truth.value);
            }
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

    /// Does nothing but a register hold the counter?
    fn can_count(&self, counting: &Counting) -> bool {
        let Home::Register(_, range) = self.scope.homes[counting.temp.index()] else { return false };
        let scalar = self.scope.locals.temps[counting.temp.index()].1.as_scalar();
        let values = Range::new(counting.low, counting.high);
        values.within(range) && scalar.is_some_and(|scalar| values.within(Range::new(scalar.low, scalar.high)))
    }

    /// A loop that counts: in its rounds the counter is known to lie between its bounds, and it ends by itself.
    fn count_up(&mut self, limit: u32, counting: &Counting) -> bool {
        let Counting { temp, low, high, body } = *counting;
        let home = self.scope.homes[temp.index()];
        let Home::Register(variable, _) = home else { unreachable!("just seen") };
        self.forget_written(body);
        let at_head = self.known();
        let (head, after) = (self.fresh(), self.fresh());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        if limit > UNWATCHED_ROUNDS {
            self.scope.faults = true;
            self.fault_if_stopped();
        }
        self.set_known(at_head);
        self.scope.homes[temp.index()] = Home::Register(variable, Range::new(low, high));
        self.scope.exits.push(Exit { after, left: false, known: None });
        if self.run(body) {
            let (last, next) = (self.fresh(), self.fresh());
            let value = self.b.use_var(variable);
            let is_last = self.b.ins().icmp_imm_s(IntCC::Equal, value, high);
            self.b.ins().brif(is_last, last, &[], next, &[]);
            self.b.switch_to_block(next);
            let following = self.b.ins().iadd_imm_s(value, 1);
            self.b.def_var(variable, following);
            self.b.ins().jump(head, &[]);
            self.b.switch_to_block(last);
            self.leave(0);
        }
        self.scope.homes[temp.index()] = home;
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
        let (system, layout, procedures) = (self.system, self.layout, self.procedures);
        let of_var = |var: VarId| {
            let address = layout.address(var.index(), &system.vars[var.index()].ty, &[]);
            address.bit..address.bit + address.bits
        };
        each_written(stmts, &mut |place| match place.root {
            Root::Var(var) => body.known.forget(of_var(var)),
            Root::Reference(_) => body.known.forget(0..layout.words() as u32 * 32),
            Root::Temp(_) => {}
        });
        stmt_calls(stmts, &mut |call| {
            let written = procedures.summaries[call.procedure.index()].writes.iter();
            written.for_each(|&var| body.known.forget(of_var(var)));
        });
    }
}

/// A truth, and what is done where it holds or does not hold.
struct Asked<'s> {
    value: &'s Expr,
    holds: bool,
    then: &'s [Stmt],
    otherwise: &'s [Stmt],
}

/// The first two statements, if one computes a truth and the other asks for it; with where it is put, and the statements behind.
fn asked(stmts: &[Stmt]) -> Option<(Asked<'_>, TempId, &[Stmt])> {
    let [Stmt::Assign { to, value, .. }, Stmt::If { condition, then, otherwise }, rest @ ..] = stmts else {
        return None;
    };
    let temp = whole_temp(to)?;
    let is_truth = match value {
        Expr::Unary(UnOp::Not, _) => true,
        Expr::Binary(op, ..) => op.is_truth() || matches!(op, BinOp::And | BinOp::Or),
        _ => false,
    };
    let (holds, read) = match condition {
        Expr::Unary(UnOp::Not, inner) => (false, &**inner),
        condition => (true, condition),
    };
    let reads_it = matches!(read, Expr::Read(place) if whole_temp(place) == Some(temp));
    (is_truth && reads_it).then_some((Asked { value, holds, then, otherwise }, temp, rest))
}

/// A loop over all values of a temporary from a first to a last one.
struct Counting<'s> {
    temp: TempId,
    low: i64,
    high: i64,
    /// Without the statements that count.
    body: &'s [Stmt],
}

/// A loop whose rounds end by leaving it at the last value of a temporary, or else counting that up, if nothing else writes
/// to it and it `begins_at` a value not beyond.
fn counting(limit: u32, body: &[Stmt], begins_at: Option<(TempId, i64)>) -> Option<Counting<'_>> {
    let (temp, low) = begins_at?;
    let [body @ .., Stmt::If { condition, then, otherwise }, Stmt::Assign { to, value, .. }] = body else {
        return None;
    };
    let reads = |expr: &Expr| matches!(expr, Expr::Read(place) if whole_temp(place) == Some(temp));
    let Expr::Binary(BinOp::Eq, left, last) = condition else { return None };
    let Expr::Binary(BinOp::Add, counted, one) = value else { return None };
    let &Expr::Const(high) = &**last else { return None };
    let leaves = matches!(&then[..], [Stmt::Break(0)]) && otherwise.is_empty();
    let counts = whole_temp(to) == Some(temp) && reads(left) && reads(counted) && **one == Expr::TRUE;
    let rounds = high.checked_sub(low)?.checked_add(1)?;
    let mut written = false;
    each_written(body, &mut |place| written |= place.root == Root::Temp(temp));
    let ends = rounds >= 1 && rounds <= i64::from(limit);
    (leaves && counts && ends && !written).then_some(Counting { temp, low, high, body })
}

/// The temporary, if a place is a whole one.
fn whole_temp(place: &Place) -> Option<TempId> {
    match place.root {
        Root::Temp(temp) if place.path.is_empty() => Some(temp),
        _ => None,
    }
}

/// The values of a case, and what is done there.
type Case<'s> = (Vec<i64>, &'s [Stmt]);

/// The statements at the front that each ask for values of the same temporary, and leave where they find one.
fn cases(stmts: &[Stmt]) -> Option<(TempId, Vec<Case<'_>>)> {
    let mut asked = None;
    let mut found = Vec::new();
    for stmt in stmts {
        let Stmt::If { condition, then, otherwise } = stmt else { break };
        let leaves = matches!(then.last(), Some(Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard));
        let mut values = Vec::new();
        let temp = values_asked(condition, &mut values);
        if !leaves || !otherwise.is_empty() || temp.is_none() || asked.is_some() && asked != temp {
            break;
        }
        asked = temp;
        found.push((values, then.as_slice()));
    }
    asked.filter(|_| found.len() >= FEWEST_CASES).map(|temp| (temp, found))
}

/// The temporary that a condition compares with constants, and those.
fn values_asked(condition: &Expr, values: &mut Vec<i64>) -> Option<TempId> {
    match condition {
        Expr::Binary(BinOp::Eq, left, right) => match (&**left, &**right) {
            (Expr::Read(Place { root: Root::Temp(temp), path }), Expr::Const(value)) if path.is_empty() => {
                values.push(*value);
                Some(*temp)
            }
            _ => None,
        },
        Expr::Binary(BinOp::Or, left, right) => {
            let temp = values_asked(left, values)?;
            values_asked(right, values).filter(|&other| other == temp)
        }
        _ => None,
    }
}

fn meet(one: Option<Known>, other: Option<Known>) -> Option<Known> {
    Some(one?.meet(&other?))
}

/// Calls `visit` for every place that the statements name and may write to.
pub(super) fn each_written<'s>(stmts: &'s [Stmt], visit: &mut impl FnMut(&'s Place)) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { to, .. } | Stmt::Copy { to, .. } | Stmt::Reset(to) | Stmt::Sort(to) => visit(to),
            Stmt::If { then, otherwise, .. } => {
                each_written(then, visit);
                each_written(otherwise, visit);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => each_written(body, visit),
            Stmt::Call(call) => call.references.iter().chain(&call.outputs).for_each(&mut *visit),
            Stmt::Break(_) | Stmt::Assert { .. } | Stmt::Fault(_) | Stmt::Discard => {}
        }
    }
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
