//! Procedures as native functions, and calls to them.
//!
//! A procedure gets the state that it works on, then where each reference lies in it, then its inputs, and gives a
//! status and its first output. A scalar travels as its value, what else fits a word as its bits, and more than that
//! as an address. Further outputs (and large ones) go through memory of the caller. One that may call itself is told
//! how often it is inside itself.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, FuncRef, InstBuilder, Signature, StackSlotData, StackSlotKind, Value, types};
use plimsoll_ir::layout::size_bits;
use plimsoll_ir::procedures::Summary;
use plimsoll_ir::walk::stmt_calls;
use plimsoll_ir::{Access, Address, Call, Expr, Layout, Locals, Procedure, ProcedureId, Root, Stmt, System, Type};

use super::emit::{Body, Emitter, Frame, Reference, Val};
use super::known::Known;
use super::range::Range;
use crate::Step;

/// A status: the command is not enabled after all.
const DISCARDED: i64 = 1;

/// What is known about the procedures of a system.
pub(super) struct Procedures {
    pub summaries: Vec<Summary>,
    /// By reference: the bit within a word where it always starts, if it is always the same.
    pub shifts: Vec<Vec<Option<u32>>>,
    /// Those that commands or properties need.
    pub used: Vec<bool>,
}

impl Procedures {
    pub fn of(system: &System, layout: &Layout) -> Procedures {
        let summaries = plimsoll_ir::procedures::summaries(system);
        let count = system.procedures.len();
        let mut found = Shifts {
            system,
            layout,
            shifts: system.procedures.iter().map(|procedure| vec![None; procedure.references.len()]).collect(),
            used: vec![false; count],
        };
        for command in &system.commands {
            let locals = Locals::temps(&command.temps);
            found.add(&command.prelude, locals, None);
            found.add(&command.body, locals, None);
        }
        for property in &system.properties {
            found.add(&property.prelude, Locals::temps(&property.temps), None);
        }
        // Callers come after those that they call.
        for (index, procedure) in system.procedures.iter().enumerate().rev() {
            let mut before = None;
            // One that calls itself hands over what it was handed over.
            while found.used[index] && before != Some(found.shifts[index].clone()) {
                before = Some(found.shifts[index].clone());
                found.add(&procedure.body, procedure.locals(), Some(index));
            }
        }
        let flat = |shifts: Vec<Option<Shift>>| shifts.into_iter().map(|shift| shift.unwrap_or(Some(0))).collect();
        Procedures { summaries, shifts: found.shifts.into_iter().map(flat).collect(), used: found.used }
    }
}

/// Where in a word something starts; nothing if that differs.
type Shift = Option<u32>;

struct Shifts<'a> {
    system: &'a System,
    layout: &'a Layout,
    /// Nothing as long as there is no call.
    shifts: Vec<Vec<Option<Shift>>>,
    used: Vec<bool>,
}

impl Shifts<'_> {
    fn add(&mut self, stmts: &[Stmt], locals: Locals, caller: Option<usize>) {
        stmt_calls(stmts, &mut |call| {
            let callee = call.procedure.index();
            self.used[callee] = true;
            for (number, place) in call.references.iter().enumerate() {
                let no_temps = Layout::of_temps(&[]);
                let address = self.system.resolve(self.layout, &no_temps, locals, place);
                let start = match place.root {
                    Root::Reference(reference) => {
                        caller.and_then(|caller| self.shifts[caller][reference.index()].unwrap_or(Some(0)))
                    }
                    _ => Some(0),
                };
                let shift = start.and_then(|start| shift_of(start, &address, &place.path));
                let known = &mut self.shifts[callee][number];
                *known = Some(known.map_or(shift, |other| other.filter(|_| other == shift)));
            }
        });
    }
}

fn shift_of(start: u32, address: &Address, path: &[Access]) -> Shift {
    let indices = path.iter().filter_map(|access| match access {
        Access::Index(index) => Some(index),
        Access::Field(_) => None,
    });
    let mut bit = start + address.bit;
    for (index, stride) in indices.zip(&address.strides) {
        match index {
            _ if stride.bits.is_multiple_of(32) => {}
            Expr::Const(index) if (0..stride.len as i64).contains(index) => bit += *index as u32 * stride.bits,
            _ => return None,
        }
    }
    Some(bit % 32)
}

/// Does a value of the type travel in a register?
fn is_small(ty: &Type) -> bool {
    size_bits(ty) <= 32
}

/// The outputs that go through memory: all but a small first one. With the layout of that memory.
fn outputs_in_memory(procedure: &Procedure) -> (usize, Layout, Vec<(String, Type)>) {
    let types: Vec<&Type> = procedure.outputs.iter().map(|temp| &procedure.temps[temp.index()].1).collect();
    let first = types.first().is_some_and(|ty| is_small(ty)) as usize;
    let rest: Vec<_> = types[first..].iter().map(|&ty| (String::new(), ty.clone())).collect();
    (first, Layout::of_temps(&rest), rest)
}

/// The parameters and results of a procedure's function.
pub(super) fn sign(signature: &mut Signature, procedure: &Procedure) {
    let (_, _, rest) = outputs_in_memory(procedure);
    let inside = (procedure.recursion > 0) as usize;
    let count = 1 + procedure.references.len() + procedure.inputs + !rest.is_empty() as usize + inside;
    signature.params.resize(count, AbiParam::new(types::I64));
    signature.returns.resize(2, AbiParam::new(types::I64));
}

/// The procedures that statements call.
pub(super) fn called(stmts: &[Stmt], out: &mut Vec<ProcedureId>) {
    stmt_calls(stmts, &mut |call| out.push(call.procedure));
    out.sort_unstable();
    out.dedup();
}

/// How the function at hand refers to those of procedures.
pub(super) type Imports = HashMap<ProcedureId, FuncRef>;

impl<'a> Emitter<'a, '_> {
    /// The body of a procedure's function, with its parameters.
    pub fn procedure(&mut self, number: usize, params: &[Value]) {
        let procedure = &self.system.procedures[number];
        let (fault, discard) = (self.fresh(), self.fresh());
        let code: [&[Stmt]; 2] = [&[], &procedure.body];
        let frame = Frame { locals: procedure.locals(), inputs: procedure.inputs, code, expr: &Expr::TRUE };
        self.open_scope(frame, fault, discard);
        self.scope.own = Some(number);
        let mut params = params[1..].iter().copied();
        for &shift in &self.procedures.shifts[number] {
            let value = params.next().expect("a parameter for each reference");
            self.scope.references.push(Reference { value, shift });
        }
        for temp in 0..procedure.inputs {
            let value = params.next().expect("a parameter for each input");
            self.set_input(temp, value);
        }
        let (_, _, in_memory) = outputs_in_memory(procedure);
        let results = if in_memory.is_empty() { None } else { params.next() };
        self.scope.inside = params.next().map(|inside| (number, inside));
        let known = Known::all_written(self.layout.words());
        self.scope.body = Some(Body { out: self.source, known });
        if self.procedures.summaries[number].asserts {
            let failed = self.b.declare_var(types::I64);
            let zero = self.constant(0);
            self.b.def_var(failed, zero.value);
            self.scope.failed = Some(failed);
        }
        if self.run(&procedure.body) {
            self.return_outputs(procedure, results);
        }
        for (block, status) in [(fault, Step::FAULT as i64), (discard, DISCARDED)] {
            self.b.set_cold_block(block);
            self.b.switch_to_block(block);
            let (status, none) = (self.constant(status), self.constant(0));
            self.b.ins().return_(&[status.value, none.value]);
        }
    }

    fn set_input(&mut self, temp: usize, value: Value) {
        let ty = &self.scope.locals.temps[temp].1;
        let located = self.whole_temp(temp);
        if let Some(scalar) = ty.as_scalar() {
            self.store_scalar(&located, Val { value, range: Range::of_field(&scalar) });
        } else if is_small(ty) {
            self.store_raw(&located, Val { value, range: Range::of_bits(located.bits, false) });
        } else {
            let (base, flags) = self.write_base(&located);
            let words = (located.bits / 32) as usize;
            self.copy_words((base, flags), located.bit / 8, (value, self.access.foreign), 0, words);
        }
    }

    fn return_outputs(&mut self, procedure: &Procedure, results: Option<Value>) {
        let (in_register, layout, rest) = outputs_in_memory(procedure);
        let first = match procedure.outputs[..in_register] {
            [temp] => self.raw_or_value(temp.index()),
            _ => self.constant(0).value,
        };
        for (number, temp) in procedure.outputs[in_register..].iter().enumerate() {
            let address = layout.address(number, &rest[number].1, &[]);
            let (target, flags) = (results.expect("memory for results"), self.access.foreign);
            if is_small(&rest[number].1) {
                let value = self.raw_or_value(temp.index());
                self.b.ins().istore32(flags, value, target, address.bit as i32 / 8);
            } else {
                let located = self.whole_temp(temp.index());
                let from = self.read_base(&located);
                self.copy_words((target, flags), address.bit / 8, from, located.bit / 8, address.bits as usize / 32);
            }
        }
        let status = match self.scope.failed {
            Some(failed) => self.b.use_var(failed),
            None => self.constant(0).value,
        };
        self.b.ins().return_(&[status, first]);
    }

    /// The value of a scalar temporary, or the bits of another small one.
    fn raw_or_value(&mut self, temp: usize) -> Value {
        let located = self.whole_temp(temp);
        if located.scalar.is_some() { self.load_scalar(&located).value } else { self.load_raw(&located) }
    }

    pub fn call(&mut self, call: &Call) {
        let number = call.procedure.index();
        let (system, procedures) = (self.system, self.procedures);
        let procedure = &system.procedures[number];
        let state = self.scope.body.as_ref().map_or(self.source, |body| body.out);
        let mut arguments = vec![state];
        let mut written = Vec::new();
        for (index, place) in call.references.iter().enumerate() {
            let located = self.locate(place);
            arguments.push(self.position(&located, procedures.shifts[number][index]));
            if procedures.summaries[number].writes_reference[index] {
                written.push(located.reach.clone());
            }
        }
        for place in &call.inputs {
            let located = self.locate(place);
            arguments.push(if located.scalar.is_some() {
                self.load_scalar(&located).value
            } else if located.bits <= 32 {
                self.load_raw(&located)
            } else {
                self.address(&located)
            });
        }
        let (in_register, layout, rest) = outputs_in_memory(procedure);
        let results = (!rest.is_empty()).then(|| {
            let bytes = layout.words() as u32 * 4;
            let slot = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4));
            self.b.ins().stack_addr(types::I64, slot, 0)
        });
        arguments.extend(results);
        let inside = self.inside(number);
        arguments.extend(inside);
        let function = self.imports[&call.procedure];
        let made = self.b.ins().call(function, &arguments);
        let returned = self.b.inst_results(made).to_vec();
        self.check_status(returned[0], procedures.summaries[number].asserts);
        self.forget_called(number, written);
        for (index, place) in call.outputs.iter().enumerate() {
            let to = self.locate(place);
            let value = match index.checked_sub(in_register) {
                None => returned[1],
                Some(number) => {
                    let address = layout.address(number, &rest[number].1, &[]);
                    let (from, byte) = (results.expect("memory for results"), address.bit / 8);
                    if address.bits > 32 {
                        let (target, flags) = self.write_base(&to);
                        let target = self.moved(target, &to.moving);
                        let words = address.bits as usize / 32;
                        self.copy_words((target, flags), to.bit / 8, (from, self.access.foreign), byte, words);
                        self.forget(&to);
                        continue;
                    }
                    let word = self.b.ins().uload32(self.access.foreign, from, byte as i32);
                    match to.scalar {
                        Some(scalar) => self.extract(word, 0, scalar.bits(), 32, scalar.is_signed()),
                        None => word,
                    }
                }
            };
            match to.scalar {
                Some(scalar) => self.store_scalar(&to, Val { value, range: Range::of_field(&scalar) }),
                None => self.store_raw(&to, Val { value, range: Range::of_bits(to.bits, false) }),
            }
        }
    }

    /// How often a procedure that is to be called will be inside itself, if it asks; too often is a fault.
    fn inside(&mut self, number: usize) -> Option<Value> {
        let limit = self.system.procedures[number].recursion;
        match self.scope.inside {
            Some((own, inside)) if own == number => {
                let allowed = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, inside, limit as i64);
                self.fault_unless(allowed);
                Some(self.b.ins().iadd_imm_s(inside, 1))
            }
            _ if self.scope.own == Some(number) => {
                let never = self.b.ins().iconst(types::I8, 0);
                self.fault_unless(never);
                None
            }
            _ => (limit > 0).then(|| self.constant(0).value),
        }
    }

    /// Stops where the procedure stopped early, and notes a failed assertion.
    fn check_status(&mut self, status: Value, asserts: bool) {
        let (unusual, fine) = (self.fresh(), self.fresh());
        self.b.ins().brif(status, unusual, &[], fine, &[]);
        self.b.set_cold_block(unusual);
        self.b.switch_to_block(unusual);
        if asserts {
            let (failed, stopped) = (self.fresh(), self.fresh());
            let is_failure = self.b.ins().icmp_imm_s(IntCC::Equal, status, Step::VIOLATION as i64);
            self.b.ins().brif(is_failure, failed, &[], stopped, &[]);
            self.b.switch_to_block(failed);
            let variable = self.scope.failed.expect("commands with assertions have a flag");
            self.b.def_var(variable, status);
            self.b.ins().jump(fine, &[]);
            self.b.switch_to_block(stopped);
        }
        let discarded = self.b.ins().icmp_imm_s(IntCC::Equal, status, DISCARDED);
        self.scope.faults = true;
        self.b.ins().brif(discarded, self.scope.discard, &[], self.scope.fault, &[]);
        self.b.switch_to_block(fine);
    }

    /// Forgets what a procedure may have written of the state.
    fn forget_called(&mut self, number: usize, references: Vec<std::ops::Range<u32>>) {
        let Some(body) = &mut self.scope.body else { return };
        for var in &self.procedures.summaries[number].writes {
            let address = self.layout.address(var.index(), &self.system.vars[var.index()].ty, &[]);
            body.known.forget(address.bit..address.bit + address.bits);
        }
        references.into_iter().for_each(|reach| body.known.forget(reach));
    }
}
