//! What code for representatives is put together from: entries of memory, fields of pieces, numbers, ways around code.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};

use super::{Plan, TOGETHER, WHY_BITS};
use crate::symmetry::pieces::{FACTOR_OVER, MIX, Naming, OVER, Piece, Pieces, Pointer};

/// Where a table has an entry: at a known distance, or further on by as much as a value says.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub further: Option<Value>,
    pub bytes: i32,
}

/// Some fields of a piece.
pub(super) trait Fields {
    fn bits(&self) -> u64;
}

impl Fields for &Pointer {
    fn bits(&self) -> u64 {
        self.field()
    }
}

impl Fields for Naming {
    fn bits(&self) -> u64 {
        self.fields.iter().fold(0, |all, field| all | field.field())
    }
}

/// What code knows of an element.
pub(super) struct Element {
    pub set: usize,
    /// Its number in the set.
    pub number: usize,
    /// What is said about it where it is known to be meant; tables have the rest.
    pub sum: Variable,
    pub rank: Variable,
    pub place: Variable,
    /// What its place is by.
    pub key: Variable,
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
    pub values: Vec<Value>,
}

impl<'a, 'f> Emit<'a, 'f> {
    pub fn start(mut b: FunctionBuilder<'f>, pieces: &'a Pieces, plan: &'a Plan) -> Emit<'a, 'f> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let (state, memory) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        let mut variable = || b.declare_var(types::I64);
        let (mut elements, mut several) = (Vec::new(), Vec::new());
        for (set, range) in pieces.set_starts.windows(2).enumerate() {
            let size = (range[1] - range[0]) as usize;
            for number in 0..size {
                let [sum, rank, place, key] = [(); 4].map(|()| variable());
                several.extend((size > 1).then_some(elements.len()));
                elements.push(Element { set, number, sum, rank, place, key });
            }
        }
        Emit { b, pieces, plan, state, memory, elements, several, values: Vec::new() }
    }

    /// Forgets what is known of another state.
    pub fn begin(&mut self, state: Value) {
        self.state = state;
        let zero = self.constant(0);
        for Element { sum, rank, place, key, .. } in &self.elements {
            [sum, rank, place, key].into_iter().for_each(|&variable| self.b.def_var(variable, zero));
        }
    }

    /// Returns, at a state and for a reason.
    pub fn leave(&mut self, number: Value, why: u64) {
        let number = self.b.ins().ishl_imm_u(number, i64::from(WHY_BITS));
        let stop = self.b.ins().bor_imm_u(number, why as i64);
        self.b.ins().return_(&[stop]);
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

    /// What a piece tells with such a value, which has no bits that the piece does not have.
    pub fn tells(&mut self, value: Value, number: usize) -> Value {
        let pieces = self.pieces;
        let folded = self.folded(value, pieces.bits(number));
        let factor = self.constant(pieces.all[number].salt);
        let product = self.b.ins().imul(folded, factor);
        let over = self.b.ins().rotl_imm_u(product, i64::from(OVER));
        let hash = self.b.ins().bxor(product, over);
        let Piece { leading, behind, .. } = pieces.all[number];
        if leading == 0 {
            return hash;
        }
        let hash = self.b.ins().ushr_imm_u(hash, i64::from(leading));
        let first = self.b.ins().ushr_imm_u(value, i64::from(behind));
        let first = self.b.ins().ishl_imm_u(first, i64::from(64 - leading));
        self.b.ins().bor(hash, first)
    }

    /// A piece with all names replaced by those of first elements.
    pub fn without_names(&mut self, value: Value, piece: &Piece) -> Value {
        let pointers = self.pieces.pointers(piece);
        let (plain, others): (Vec<&Pointer>, Vec<&Pointer>) = pointers.iter().partition(|pointer| pointer.names_only);
        let mut rest = value;
        if !plain.is_empty() {
            let names = plain.iter().fold(0, |all, pointer| all | pointer.field());
            let outside = self.constant(!names);
            rest = self.b.ins().band(value, outside);
            let named = self.not_zero(value, &plain);
            rest = self.b.ins().bor(rest, named);
        }
        for pointer in others {
            let field = self.field(value, pointer);
            let inside = self.is_name(pointer, field);
            let outside = self.constant(!pointer.field());
            let mut first = self.b.ins().band(rest, outside);
            if pointer.first_name() != 0 {
                let name = self.constant(pointer.first_name());
                first = self.b.ins().bor(first, name);
            }
            rest = self.b.ins().select(inside, first, rest);
        }
        rest
    }

    /// The lowest bit of each of these fields that is not zero.
    pub fn not_zero(&mut self, value: Value, fields: &[&Pointer]) -> Value {
        self.by_width(fields, |emit, bits, lowest| {
            let mut any = value;
            for bit in 1..bits {
                let further = emit.b.ins().ushr_imm_u(value, i64::from(bit));
                any = emit.b.ins().bor(any, further);
            }
            let lowest = emit.constant(lowest);
            emit.b.ins().band(any, lowest)
        })
    }

    /// The lowest bits of the fields that name an element.
    pub fn naming(&mut self, value: Value, fields: &[Pointer], place: u32) -> Value {
        let fields: Vec<&Pointer> = fields.iter().collect();
        if fields.iter().all(|field| field.names_only && field.count <= 2) {
            // Each name is a bit.
            let lowest = fields.iter().fold(0, |all, field| all | 1u64 << field.shift);
            let (moved, lowest) = (self.b.ins().ushr_imm_u(value, i64::from(place)), self.constant(lowest));
            return self.b.ins().band(moved, lowest);
        }
        let names = fields.iter().fold(0, |all, field| all | u64::from(field.first + place) << field.shift);
        let names = self.constant(names);
        let differing = self.b.ins().bxor(value, names);
        let others = self.not_zero(differing, &fields);
        let lowest = fields.iter().fold(0, |all, field| all | 1u64 << field.shift);
        let lowest = self.constant(lowest);
        self.b.ins().bxor(others, lowest)
    }

    /// Does something for all fields of a width, given their bits and the lowest bits of all of them; puts together what comes out.
    fn by_width(&mut self, fields: &[&Pointer], mut each: impl FnMut(&mut Self, u32, u64) -> Value) -> Value {
        let mut widths: Vec<u32> = fields.iter().map(|field| field.mask.count_ones()).collect();
        widths.sort_unstable();
        widths.dedup();
        let mut all = None;
        for width in widths {
            let fields = fields.iter().filter(|field| field.mask.count_ones() == width);
            let lowest = fields.fold(0, |all, field| all | 1u64 << field.shift);
            let here = each(self, width, lowest);
            all = Some(all.map_or(here, |all| self.b.ins().bor(all, here)));
        }
        all.unwrap_or_else(|| self.constant(0))
    }

    /// For each element of a set the factor for what is said about it, if these fields name it, else zero.
    pub fn factors(&mut self, value: Value, naming: &Naming) -> Vec<Value> {
        let factor = |place| {
            let naming_it = self.naming(value, &naming.fields, place);
            let role = self.constant(naming.role);
            if naming.fields.len() == 1 {
                return self.only_if(naming_it, role);
            }
            let folded = self.folded(naming_it, naming.fields.iter().fold(0, |all, field| all | field.field()));
            let product = self.b.ins().imul(folded, role);
            self.b.ins().rotl_imm_u(product, i64::from(FACTOR_OVER))
        };
        (0..naming.set().1).map(factor).collect()
    }

    /// A value that has no other bits than these, its upper half laid on the lower.
    fn folded(&mut self, value: Value, bits: u64) -> Value {
        if bits >> 32 == 0 {
            return value;
        }
        let high = self.b.ins().ushr_imm_u(value, 32);
        self.b.ins().bxor(value, high)
    }

    /// The value, or zero if the condition does not hold.
    pub fn only_if(&mut self, condition: Value, value: Value) -> Value {
        let zero = self.constant(0);
        self.b.ins().select(condition, value, zero)
    }

    /// Goes through fields, but leaves out several at a time where a piece has nothing in any of them.
    pub fn in_groups<F: Fields>(&mut self, value: Value, all: &[F], mut each: impl FnMut(&mut Self, &F)) {
        for group in all.chunks(TOGETHER) {
            let after = (all.len() > TOGETHER).then(|| {
                let fields = self.constant(group.iter().fold(0, |all, some| all | some.bits()));
                let any = self.b.ins().band(value, fields);
                self.skip_unless(any)
            });
            group.iter().for_each(|some| each(self, some));
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
