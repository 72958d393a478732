//! Commands: which to try in a state, over which choices, and the entry each instance leaves.
//!
//! Neighbouring commands that wait for the same process become one switch on its location; within a
//! location the same holds for the second process they wait for, and so on. Only one branch of a switch
//! is taken, so the order of commands is kept.

use std::collections::BTreeMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::{Switch, Variable};
use plimsoll_ir::walk::stmt_calls;
use plimsoll_ir::{Choice, Command, Expr, Locals, ProcessId, Root, Stmt, TempId};

use super::emit::{Body, Emitter, Frame, Home, Val};
use super::filters::{Filters, Then};
use super::known::Known;
use super::range::Range;
use super::stmt::each_written;
use crate::Step;
use crate::order::Order;

/// Commands with this many instances and this much code in all of them together have code for each: indices are constants
/// then, and neighbouring instances share what they load.
const MOST_COPIES: i64 = 16;
const MOST_COPIED: usize = 400;

/// Where the next entry goes.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    state: Variable,
    step: Variable,
}

/// The number of the current instance.
#[derive(Clone, Copy)]
enum Number {
    Fixed(u32),
    Counted(Variable),
}

impl<'a> Emitter<'a, '_> {
    /// Generates a list of commands, tried in order, and returns the number of entries they left.
    pub fn commands(&mut self, order: &Order, list: &[usize], (states, steps): (Value, Value)) {
        let cursor = Cursor { state: self.b.declare_var(types::I64), step: self.b.declare_var(types::I64) };
        self.b.def_var(cursor.state, states);
        self.b.def_var(cursor.step, steps);
        self.dispatch(order, cursor, list, 0);
        let end = self.b.use_var(cursor.step);
        let bytes = self.b.ins().isub(end, steps);
        let count = self.b.ins().ushr_imm_u(bytes, 2);
        self.b.ins().return_(&[count]);
    }

    /// Tries commands whose first `depth` processes are known to stand where they should.
    fn dispatch(&mut self, order: &Order, cursor: Cursor, list: &[usize], depth: usize) {
        let commands = &self.system.commands;
        let waits_for = |&index: &usize| commands[index].at.get(depth).map(|&(process, _)| process);
        for run in list.chunk_by(|a, b| waits_for(a) == waits_for(b)) {
            let Some(process) = waits_for(&run[0]) else {
                run.iter().for_each(|&index| self.command(order, cursor, index));
                continue;
            };
            let mut by_location: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for &index in run {
                by_location.entry(commands[index].at[depth].1).or_default().push(index);
            }
            let after = self.fresh();
            let mut switch = Switch::new();
            let blocks: Vec<_> = by_location.keys().map(|&location| (self.fresh(), location)).collect();
            blocks.iter().for_each(|&(block, location)| switch.set_entry(location as u128, block));
            let location = self.location(process);
            switch.emit(&mut self.b, location, after);
            for ((block, _), list) in blocks.into_iter().zip(by_location.values()) {
                self.b.switch_to_block(block);
                self.dispatch(order, cursor, list, depth + 1);
                self.b.ins().jump(after, &[]);
            }
            self.b.switch_to_block(after);
        }
    }

    fn location(&mut self, process: ProcessId) -> Value {
        let var = self.system.processes[process.index()].location;
        let value = self.read(&var.into());
        self.b.ins().ireduce(types::I32, value.value)
    }

    fn command(&mut self, order: &Order, cursor: Cursor, index: usize) {
        let command = &self.system.commands[index];
        let first = order.first_instance(index);
        let (fault, done) = (self.fresh(), self.fresh());
        let code: [&[Stmt]; 2] = [&command.prelude, &command.body];
        let frame = Frame { locals: Locals::temps(&command.temps), inputs: 0, code, expr: &command.guard };
        match order.instances(index) {
            0 => {}
            1 => {
                self.open_scope(frame, fault, done);
                for choice in &command.choices {
                    let value = self.constant(choice.low);
                    self.set_choice(command, choice, value);
                }
                let guard: Vec<&Expr> = vec![&command.guard];
                let prelude: Vec<&Stmt> = command.prelude.iter().collect();
                self.instance(cursor, command, Number::Fixed(first), (&prelude, &guard));
            }
            _ => {
                let counter = self.b.declare_var(types::I64);
                let start = self.constant(first as i64);
                self.b.def_var(counter, start.value);
                self.open_scope(frame, fault, done);
                let filters = Filters::of(self.system, command, |temp| !is_assigned(command, temp));
                for (choice, pin) in command.choices.iter().zip(&filters.pins) {
                    // Conditions that need a constant only may be asked before the choice is made.
                    if let Some(Expr::Const(value)) = pin {
                        let value = self.constant(*value);
                        self.set_choice(command, choice, value);
                    }
                }
                self.choices((cursor, counter), command, &filters, &mut Vec::new());
            }
        }
    }

    /// Loops over the choices that are not yet made. Ends where the next value of the
    /// choice before is to be tried.
    fn choices(
        &mut self,
        to: (Cursor, Variable),
        command: &'a Command,
        filters: &Filters,
        made: &mut Vec<(Variable, Range)>,
    ) {
        let depth = made.len();
        if depth == command.choices.len() {
            self.clear_temps(&command.choices);
            // An instance before this may have changed what holds a choice.
            for (choice, &(variable, range)) in command.choices.iter().zip(&*made) {
                if is_assigned(command, choice.temp) {
                    let value = self.b.use_var(variable);
                    self.set_choice(command, choice, Val { value, range });
                }
            }
            let (fault, done) = (self.fresh(), self.fresh());
            (self.scope.fault, self.scope.discard, self.scope.faults) = (fault, done, false);
            self.instance(to.0, command, Number::Counted(to.1), (&filters.prelude, &filters.guard));
            self.count(to.1, 1);
            return;
        }
        let rest = command.choices[depth..].iter().map(|choice| choice.high - choice.low + 1).product();
        let (skip, after) = (self.fresh(), self.fresh());
        let skips = !filters.outside[depth].is_empty();
        for filter in &filters.outside[depth] {
            let next = self.fresh();
            match filter.then {
                Then::GoOn => self.branch(filter.condition, next, skip),
                Then::Skip => self.branch(filter.condition, skip, next),
                Then::Fault => {
                    let fault = self.fresh();
                    self.branch(filter.condition, fault, next);
                    self.b.set_cold_block(fault);
                    self.b.switch_to_block(fault);
                    self.fault_all(to, rest);
                    self.b.ins().jump(after, &[]);
                }
            }
            self.b.switch_to_block(next);
        }
        debug_assert!(!self.scope.faults, "what is asked outside cannot go wrong");
        let skips = match filters.pins[depth] {
            Some(pin) => self.pinned(to, command, filters, made, (pin, rest), (skip, after)) || skips,
            None if copies(command, filters) => {
                self.copied(to, command, filters, made);
                self.b.ins().jump(after, &[]);
                skips
            }
            None => {
                self.each_choice(to, command, filters, made, after);
                skips
            }
        };
        if skips {
            self.b.switch_to_block(skip);
            self.count(to.1, rest);
            self.b.ins().jump(after, &[]);
        }
        self.b.switch_to_block(after);
    }

    /// Makes the next choice all its values in turn.
    fn each_choice(
        &mut self,
        to: (Cursor, Variable),
        command: &'a Command,
        filters: &Filters,
        made: &mut Vec<(Variable, Range)>,
        after: Block,
    ) {
        let choice = &command.choices[made.len()];
        let Choice { low, high, .. } = *choice;
        let variable = self.b.declare_var(types::I64);
        let start = self.constant(low);
        self.b.def_var(variable, start.value);
        let head = self.fresh();
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let value = self.b.use_var(variable);
        self.set_choice(command, choice, Val { value, range: Range::new(low, high) });
        made.push((variable, Range::new(low, high)));
        self.choices(to, command, filters, made);
        made.pop();
        self.scope.faults = false;
        let value = self.b.use_var(variable);
        let next = self.b.ins().iadd_imm_s(value, 1);
        self.b.def_var(variable, next);
        let more = self.b.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, next, high);
        self.b.ins().brif(more, head, &[], after, &[]);
    }

    /// Makes the next choice all its values, with code for each.
    fn copied(
        &mut self,
        to: (Cursor, Variable),
        command: &'a Command,
        filters: &Filters,
        made: &mut Vec<(Variable, Range)>,
    ) {
        let choice = &command.choices[made.len()];
        for value in choice.low..=choice.high {
            let variable = self.b.declare_var(types::I64);
            let value = self.constant(value);
            self.b.def_var(variable, value.value);
            self.set_choice(command, choice, value);
            made.push((variable, value.range));
            self.choices(to, command, filters, made);
            made.pop();
            self.scope.faults = false;
        }
    }

    /// Makes the next choice the one value that it must have; says whether it may be none of its values, where `skip` is next.
    fn pinned(
        &mut self,
        to: (Cursor, Variable),
        command: &'a Command,
        filters: &Filters,
        made: &mut Vec<(Variable, Range)>,
        (pin, instances): (&Expr, i64),
        (skip, after): (Block, Block),
    ) -> bool {
        let choice = &command.choices[made.len()];
        let valid = Range::new(choice.low, choice.high);
        let value = self.eval(pin);
        let skips = !value.range.within(valid);
        let offset = self.b.ins().iadd_imm_s(value.value, -choice.low);
        if skips {
            let next = self.fresh();
            let inside = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThanOrEqual, offset, choice.high - choice.low);
            self.b.ins().brif(inside, next, &[], skip, &[]);
            self.b.switch_to_block(next);
        }
        let value = Val { value: value.value, range: value.range.clamp(valid) };
        let variable = self.b.declare_var(types::I64);
        self.b.def_var(variable, value.value);
        let first = self.b.use_var(to.1);
        let distance = self.b.ins().imul_imm_s(offset, instances / (choice.high - choice.low + 1));
        let number = self.b.ins().iadd(first, distance);
        self.b.def_var(to.1, number);
        self.set_choice(command, choice, value);
        made.push((variable, value.range));
        self.choices(to, command, filters, made);
        made.pop();
        self.scope.faults = false;
        let beyond = self.b.ins().iadd_imm_s(first, instances);
        self.b.def_var(to.1, beyond);
        self.b.ins().jump(after, &[]);
        skips
    }

    /// Moves the number of the current instance on.
    fn count(&mut self, counter: Variable, instances: i64) {
        let number = self.b.use_var(counter);
        let next = self.b.ins().iadd_imm_s(number, instances);
        self.b.def_var(counter, next);
    }

    /// Leaves entries of faults for the next instances.
    fn fault_all(&mut self, (cursor, counter): (Cursor, Variable), instances: i64) {
        let (head, after) = (self.fresh(), self.fresh());
        let left = self.b.append_block_param(head, types::I64);
        let all = self.b.ins().iconst(types::I64, instances);
        self.b.ins().jump(head, &[all.into()]);
        self.b.switch_to_block(head);
        let step = self.step_value(Number::Counted(counter), Some(Step::FAULT));
        self.entry(cursor, step);
        self.count(counter, 1);
        let fewer = self.b.ins().iadd_imm_s(left, -1);
        self.b.ins().brif(fewer, head, &[fewer.into()], after, &[]);
        self.b.switch_to_block(after);
    }

    /// One instance in an open scope: prelude, guard, copy, body, entry.
    fn instance(
        &mut self,
        cursor: Cursor,
        command: &'a Command,
        number: Number,
        (prelude, guard): (&[&Stmt], &[&Expr]),
    ) {
        let (fault, done) = (self.scope.fault, self.scope.discard);
        if prelude.iter().all(|stmt| self.step(stmt)) {
            for conjunct in guard {
                let next = self.fresh();
                self.branch(conjunct, next, done);
                self.b.switch_to_block(next);
            }
            self.body(cursor, command, number, done);
        }
        if self.scope.faults {
            self.b.set_cold_block(fault);
            self.b.switch_to_block(fault);
            let step = self.step_value(number, Some(Step::FAULT));
            self.entry(cursor, step);
            self.b.ins().jump(done, &[]);
        }
        self.scope.body = None;
        self.b.switch_to_block(done);
    }

    fn body(&mut self, cursor: Cursor, command: &Command, number: Number, done: Block) {
        let out = self.b.use_var(cursor.state);
        let words = self.layout.words();
        self.copy_words((out, self.access.out), 0, (self.source, self.access.source), 0, words);
        self.scope.body = Some(Body { out, known: Known::copy_of_source(words) });
        let mut asserts = plimsoll_ir::procedures::asserts(&command.body);
        stmt_calls(&command.body, &mut |call| asserts |= self.procedures.summaries[call.procedure.index()].asserts);
        if asserts {
            let failed = self.b.declare_var(types::I64);
            let zero = self.constant(0);
            self.b.def_var(failed, zero.value);
            self.scope.failed = Some(failed);
        }
        if self.run(&command.body) {
            let mut step = self.step_value(number, None);
            if let Some(failed) = self.scope.failed {
                let flag = self.b.use_var(failed);
                step = self.b.ins().bor(step, flag);
            }
            self.entry(cursor, step);
            self.b.ins().jump(done, &[]);
        }
    }

    /// Puts a choice into its temporary, which keeps the exact range if it is never assigned.
    fn set_choice(&mut self, command: &Command, choice: &Choice, value: Val) {
        let Home::Register(variable, range) = &mut self.scope.homes[choice.temp.index()] else {
            unreachable!("verified: choices are scalars")
        };
        if !is_assigned(command, choice.temp) {
            *range = value.range;
        }
        self.b.def_var(*variable, value.value);
    }

    fn step_value(&mut self, number: Number, flag: Option<u32>) -> Value {
        let flag = flag.unwrap_or(0);
        match number {
            Number::Fixed(number) => self.constant((number | flag) as i64).value,
            Number::Counted(variable) => {
                let number = self.b.use_var(variable);
                if flag == 0 { number } else { self.b.ins().bor_imm_u(number, flag as i64) }
            }
        }
    }

    /// Writes the step beside the state at the cursor and moves on.
    fn entry(&mut self, cursor: Cursor, step: Value) {
        let at = self.b.use_var(cursor.step);
        self.b.ins().istore32(self.access.steps, step, at, 0);
        let next = self.b.ins().iadd_imm_s(at, 4);
        self.b.def_var(cursor.step, next);
        let state = self.b.use_var(cursor.state);
        let next = self.b.ins().iadd_imm_s(state, self.layout.words() as i64 * 4);
        self.b.def_var(cursor.state, next);
    }
}

/// Is there code for each instance of a command?
fn copies(command: &Command, filters: &Filters) -> bool {
    let unpinned = command.choices.iter().zip(&filters.pins).filter(|(_, pin)| pin.is_none());
    copied(command, unpinned.map(|(choice, _)| choice)).is_some()
}

/// How much code is made of a command, about.
pub(super) fn code_of(command: &Command) -> usize {
    copied(command, command.choices.iter()).unwrap_or(command.weight())
}

/// The code of all instances together, where there is code for each value of these choices.
fn copied<'c>(command: &Command, choices: impl Iterator<Item = &'c Choice>) -> Option<usize> {
    let copies = choices.map(|choice| choice.high - choice.low + 1).fold(1, i64::saturating_mul);
    let all = (copies <= MOST_COPIES).then(|| copies as usize * command.weight());
    all.filter(|&all| all <= MOST_COPIED)
}

/// Does a command write to a temporary?
fn is_assigned(command: &Command, temp: TempId) -> bool {
    let mut assigned = false;
    for stmts in [&command.prelude, &command.body] {
        each_written(stmts, &mut |place| assigned |= place.root == Root::Temp(temp));
    }
    assigned
}
