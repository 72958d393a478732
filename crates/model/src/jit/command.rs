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
use plimsoll_ir::{Choice, Command, Locals, ProcessId, Root, Stmt};

use super::emit::{Body, Emitter, Frame, Home, Val};
use super::known::Known;
use super::range::Range;
use super::stmt::each_written;
use crate::Step;
use crate::order::Order;

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
        match order.instances(index) {
            0 => {}
            1 => {
                let values = command.choices.iter().map(|choice| self.constant(choice.low)).collect();
                self.instance(cursor, command, Number::Fixed(first), values);
            }
            _ => {
                let counter = self.b.declare_var(types::I64);
                let start = self.constant(first as i64);
                self.b.def_var(counter, start.value);
                self.choices(cursor, command, counter, &mut Vec::new());
            }
        }
    }

    /// Loops over the choices that have no value yet, outermost first.
    fn choices(
        &mut self,
        cursor: Cursor,
        command: &'a Command,
        counter: Variable,
        values: &mut Vec<(Variable, Range)>,
    ) {
        let Some(choice) = command.choices.get(values.len()) else {
            let values = values.iter().map(|&(var, range)| Val { value: self.b.use_var(var), range }).collect();
            self.instance(cursor, command, Number::Counted(counter), values);
            let number = self.b.use_var(counter);
            let next = self.b.ins().iadd_imm_s(number, 1);
            self.b.def_var(counter, next);
            return;
        };
        let Choice { low, high, .. } = *choice;
        let variable = self.b.declare_var(types::I64);
        let start = self.constant(low);
        self.b.def_var(variable, start.value);
        let (head, after) = (self.fresh(), self.fresh());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        values.push((variable, Range::new(low, high)));
        self.choices(cursor, command, counter, values);
        values.pop();
        let value = self.b.use_var(variable);
        let next = self.b.ins().iadd_imm_s(value, 1);
        self.b.def_var(variable, next);
        let more = self.b.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, next, high);
        self.b.ins().brif(more, head, &[], after, &[]);
        self.b.switch_to_block(after);
    }

    /// One instance: prelude, guard, copy, body, entry.
    fn instance(&mut self, cursor: Cursor, command: &'a Command, number: Number, choices: Vec<Val>) {
        let (fault, done, enabled) = (self.fresh(), self.fresh(), self.fresh());
        let code: [&[Stmt]; 2] = [&command.prelude, &command.body];
        let frame = Frame { locals: Locals::temps(&command.temps), inputs: 0, code, expr: &command.guard };
        self.open_scope(frame, fault, done);
        self.set_choices(command, choices);
        if self.run(&command.prelude) {
            self.branch(&command.guard, enabled, done);
            self.b.switch_to_block(enabled);
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

    /// Puts the choices into their temporaries. Those that are never assigned keep their exact range.
    fn set_choices(&mut self, command: &Command, values: Vec<Val>) {
        for (choice, value) in command.choices.iter().zip(values) {
            let Home::Register(variable, range) = &mut self.scope.homes[choice.temp.index()] else {
                unreachable!("verified: choices are scalars")
            };
            let mut assigned = false;
            for stmts in [&command.prelude, &command.body] {
                each_written(stmts, &mut |place| assigned |= place.root == Root::Temp(choice.temp));
            }
            if !assigned {
                *range = value.range;
            }
            self.b.def_var(*variable, value.value);
        }
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
