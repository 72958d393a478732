//! What code for representatives is put together from: entries of memory, fields of pieces, numbers, ways around code.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};

use super::{Plan, TOGETHER};
use crate::symmetry::pieces::{MIX, Pieces, Pointer};

/// Where a table has an entry: at a known distance, or further on by as much as a value says.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub further: Option<Value>,
    pub bytes: i32,
}

/// What code knows of an element.
pub(super) struct Element {
    pub set: usize,
    /// Its number in the set.
    pub number: usize,
    /// What is said about it where it is known to be meant; tables have the rest.
    pub sum: Variable,
    pub named: Variable,
    pub rank: Variable,
    pub place: Variable,
}

pub(super) struct Emit<'a, 'f> {
    pub b: FunctionBuilder<'f>,
    pub pieces: &'a Pieces,
    pub plan: &'a Plan,
    pub state: Value,
    pub memory: Value,
    /// Of all sets, one after the other.
    pub elements: Vec<Element>,
    /// Of sets of several elements.
    pub several: Vec<usize>,
    /// Are slots of a bag out of order?
    pub disorder: Variable,
    pub values: Vec<Value>,
}

impl<'a, 'f> Emit<'a, 'f> {
    pub fn start(mut b: FunctionBuilder<'f>, pieces: &'a Pieces, plan: &'a Plan) -> Emit<'a, 'f> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let (state, memory) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        let zero = b.ins().iconst(types::I64, 0);
        let mut variable = || {
            let variable = b.declare_var(types::I64);
            b.def_var(variable, zero);
            variable
        };
        let (mut elements, mut several) = (Vec::new(), Vec::new());
        for (set, range) in pieces.set_starts.windows(2).enumerate() {
            let size = (range[1] - range[0]) as usize;
            for number in 0..size {
                let (sum, named, rank, place) = (variable(), variable(), variable(), variable());
                several.extend((size > 1).then_some(elements.len()));
                elements.push(Element { set, number, sum, named, rank, place });
            }
        }
        let disorder = variable();
        Emit { b, pieces, plan, state, memory, elements, several, disorder, values: Vec::new() }
    }

    pub fn leave(&mut self, result: i64) {
        let result = self.constant(result as u64);
        self.b.ins().return_(&[result]);
    }

    pub fn constant(&mut self, value: u64) -> Value {
        self.b.ins().iconst(types::I64, value as i64)
    }

    /// An entry of the memory.
    pub fn entry(&self, number: usize) -> Entry {
        Entry { further: None, bytes: number as i32 * 8 }
    }

    pub fn entry_of(&self, table: usize, element: usize) -> Entry {
        let Element { set, number, .. } = self.elements[element];
        self.entry(table + self.plan.starts[set] + number)
    }

    pub fn get(&mut self, entry: Entry) -> Value {
        let base = entry.further.map_or(self.memory, |further| self.b.ins().iadd(self.memory, further));
        self.b.ins().load(types::I64, flags(), base, entry.bytes)
    }

    pub fn set(&mut self, entry: Entry, value: Value) {
        let base = entry.further.map_or(self.memory, |further| self.b.ins().iadd(self.memory, further));
        self.b.ins().store(flags(), value, base, entry.bytes);
    }

    pub fn add_to(&mut self, entry: Entry, value: Value) {
        let sum = self.get(entry);
        let sum = self.b.ins().iadd(sum, value);
        self.set(entry, sum);
    }

    pub fn add_to_variable(&mut self, variable: Variable, value: Value) {
        let sum = self.b.use_var(variable);
        let sum = self.b.ins().iadd(sum, value);
        self.b.def_var(variable, sum);
    }

    /// Eight times the value of the field that a pointer is in.
    pub fn field(&mut self, value: Value, pointer: &Pointer) -> Value {
        let moved = match pointer.shift {
            0..3 => self.b.ins().ishl_imm_u(value, i64::from(3 - pointer.shift)),
            3 => value,
            _ => self.b.ins().ushr_imm_u(value, i64::from(pointer.shift - 3)),
        };
        self.b.ins().band_imm_u(moved, i64::from(pointer.mask) << 3)
    }

    /// The entry of the element that a field names; it has none of an element if it names none.
    pub fn named(&self, table: usize, pointer: &Pointer, field: Value) -> Entry {
        let start = self.plan.starts[self.elements[pointer.element as usize].set];
        Entry { further: Some(field), bytes: ((table + start) as i32 - pointer.first as i32) * 8 }
    }

    /// Does a field name an element of the set of a pointer?
    pub fn is_name(&mut self, pointer: &Pointer, field: Value) -> Value {
        let place = self.b.ins().iadd_imm_s(field, -i64::from(pointer.first) * 8);
        self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, place, i64::from(pointer.count) * 8)
    }

    pub fn mix(&mut self, value: Value) -> Value {
        let high = self.b.ins().ushr_imm_u(value, 32);
        let value = self.b.ins().bxor(value, high);
        let factor = self.constant(MIX);
        let product = self.b.ins().imul(value, factor);
        let high = self.b.ins().ushr_imm_u(product, 29);
        self.b.ins().bxor(product, high)
    }

    /// The same of a sum with a number that is known.
    pub fn mix_with(&mut self, value: Value, number: u64) -> Value {
        let number = self.constant(number);
        let sum = self.b.ins().iadd(value, number);
        self.mix(sum)
    }

    /// The value, or zero if the condition does not hold.
    pub fn only_if(&mut self, condition: Value, value: Value) -> Value {
        let zero = self.constant(0);
        self.b.ins().select(condition, value, zero)
    }

    /// Goes through pointers, but leaves out several at a time where a piece has nothing in any of them.
    pub fn in_groups(&mut self, value: Value, pointers: &[Pointer], mut each: impl FnMut(&mut Self, &Pointer)) {
        for group in pointers.chunks(TOGETHER) {
            let after = (pointers.len() > TOGETHER).then(|| {
                let fields = group.iter().fold(0, |all, pointer| all | pointer.field());
                let fields = self.constant(fields);
                let any = self.b.ins().band(value, fields);
                self.skip_unless(any)
            });
            group.iter().for_each(|pointer| each(self, pointer));
            self.arrive(after);
        }
    }

    /// What follows is done only if the value is not zero; gives where control goes on.
    pub fn skip_unless(&mut self, value: Value) -> Block {
        let (inside, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(value, inside, &[], after, &[]);
        self.b.switch_to_block(inside);
        after
    }

    pub fn arrive(&mut self, after: Option<Block>) {
        if let Some(after) = after {
            self.b.ins().jump(after, &[]);
            self.b.switch_to_block(after);
        }
    }
}

pub(super) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}
