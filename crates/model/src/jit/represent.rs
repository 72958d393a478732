//! Native code that finds representatives: what `symmetry/canon.rs` does, with all places and numbers of a model known.
//!
//! Most states need no more than ranks, which this computes without loops and with hardly a branch. It follows
//! `symmetry/relations.rs` and `ranks.rs` to the bit, so that which of the two found a representative makes no
//! difference. Where several orders would have to be tried it leaves the state as it is.
//!
//! Tables have an entry for each element of a set, and others around these, as many as a field can hold values that are
//! no names: so no name needs to be checked. Sums that come to lie there mean nothing.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, default_libcall_names};

use std::collections::{BTreeMap, HashMap};

use super::compile::{Code, isa_for};
use crate::symmetry::pieces::{Lies, MIX, Move, NAME_SHIFT, Piece, Pieces, Pointer, code_of_other, code_of_rank, mix};

/// Code for more than this would take longer to make than it saves.
const MOST_PIECES: usize = 300;
const MOST_PAIRS: usize = 600;
const MOST_ENTRIES: usize = 256;
/// Names in variables are looked at by so many, which are often all missing.
const TOGETHER: usize = 4;
/// Ranks lead sums; elements have no more bits than this.
const RANK_BITS: u32 = 6;

type Function = unsafe extern "C" fn(*mut u32, *mut u64) -> i64;

/// What became of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is its representative now.
    Done,
    /// Several orders would have to be tried; it is as it was.
    Open,
}

pub(crate) struct Represent {
    find: Function,
    put: Function,
    plan: Plan,
    width: usize,
    _code: Code,
}

/// What is where in the memory of the code, in entries of eight bytes.
#[derive(Clone, Debug)]
struct Plan {
    /// For each set where in a table its first element is.
    starts: Vec<usize>,
    values: usize,
    out: usize,
    said: usize,
    named: usize,
    sums: usize,
    first_ranks: usize,
    ranks: usize,
    by: usize,
    /// What is there before the code has run for the first time.
    initial: Vec<u64>,
}

const SAME: i64 = 0;
const MOVED: i64 = 1;
const OPEN: i64 = 2;

impl Represent {
    /// For states of so many words; `None` if there is too much to be said about them.
    pub fn new(pieces: &Pieces, width: usize) -> Option<Represent> {
        let plan = Plan::of(pieces)?;
        let isa = isa_for(false).ok()?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let find = define(&mut module, |b| Emit::start(b, pieces, &plan).find())?;
        let put = define(&mut module, |b| Emit::start(b, pieces, &plan).put())?;
        module.finalize_definitions().ok()?;
        let function = |id| {
            // SAFETY: `define` declared this function with exactly this signature.
            unsafe { std::mem::transmute::<*const u8, Function>(module.get_finalized_function(id)) }
        };
        let (find, put) = (function(find), function(put));
        Some(Represent { find, put, plan, width, _code: Code::of(module) })
    }

    /// Replaces a state by its representative, if that can be done.
    #[inline]
    pub fn find(&self, pieces: &Pieces, state: &mut [u32], memory: &mut Vec<u64>) -> Found {
        assert_eq!(state.len(), self.width, "a state has the width of its model");
        if memory.is_empty() {
            memory.clone_from(&self.plan.initial);
        }
        assert_eq!(memory.len(), self.plan.initial.len(), "a memory serves one code");
        let call = |function: Function, state: &mut [u32], memory: &mut [u64]| {
            // SAFETY: the code touches the words of a state, of which there are `width`, and entries that the plan has room
            // for, whatever the state holds: fields are masked, and tables have an entry for all that a field can hold.
            unsafe { function(state.as_mut_ptr(), memory.as_mut_ptr()) }
        };
        match call(self.find, state, memory) {
            SAME => Found::Done,
            OPEN => Found::Open,
            _ => {
                if !pieces.bags.is_empty() {
                    pieces.sort_bags(&mut memory[self.plan.out..][..pieces.all.len()]);
                    call(self.put, state, memory);
                }
                Found::Done
            }
        }
    }
}

/// Declares a function and makes machine code of what `emit` writes.
fn define(
    module: &mut JITModule,
    emit: impl for<'f> FnOnce(FunctionBuilder<'f>) -> FunctionBuilder<'f>,
) -> Option<FuncId> {
    let mut context = module.make_context();
    context.func.signature.params.resize(2, AbiParam::new(types::I64));
    context.func.signature.returns.push(AbiParam::new(types::I64));
    let mut frontend = FunctionBuilderContext::new();
    let mut builder = emit(FunctionBuilder::new(&mut context.func, &mut frontend));
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    let id = module.declare_anonymous_function(&context.func.signature).ok()?;
    module.define_function(id, &mut context).ok()?;
    Some(id)
}

impl Plan {
    fn of(pieces: &Pieces) -> Option<Plan> {
        let sizes: Vec<usize> = pieces.set_starts.windows(2).map(|set| (set[1] - set[0]) as usize).collect();
        let pairs: usize = sizes.iter().map(|size| size * (size - size.min(&1)) / 2).sum();
        let among = pieces.all.iter().any(|piece| matches!(piece.place, Lies::Among(_)));
        let wide = pieces.bags.iter().any(|bag| bag.width != 1);
        let few = pieces.all.len() <= MOST_PIECES && pairs <= MOST_PAIRS && pieces.elements() < 1 << RANK_BITS;
        if among || wide || !few {
            return None;
        }
        let (mut starts, mut ends, mut entries) = (Vec::new(), Vec::new(), 0);
        for (set, &size) in sizes.iter().enumerate() {
            let pointers = || pieces.all.iter().flat_map(|piece| pieces.pointers(piece));
            let here = || pointers().filter(|pointer| pointer.element == pieces.set_starts[set] && pointer.count > 0);
            let before = here().map(|pointer| pointer.first as usize).max().unwrap_or(0);
            let behind = here().map(|pointer| (pointer.mask as usize + 1).saturating_sub(pointer.first as usize)).max();
            starts.push(entries + before);
            entries += before + behind.unwrap_or(0).max(size);
            ends.push(entries);
        }
        if entries > MOST_ENTRIES {
            return None;
        }
        let mut size = 0;
        let mut room = |count: usize| {
            size += count;
            size - count
        };
        let all = pieces.all.len();
        let (values, out, said) = (room(all), room(all), room(all));
        let (named, sums, by) = (room(entries), room(entries), room(entries));
        let (first_ranks, ranks) = (room(entries), room(entries));
        let mut initial = vec![0; size];
        for (set, &start) in starts.iter().enumerate() {
            let from = if set == 0 { 0 } else { ends[set - 1] };
            for entry in from..ends[set] {
                let place = (entry as u64).wrapping_sub(start as u64);
                initial[ranks + entry] = code_of_other(place);
                let is_name = place < sizes[set] as u64;
                initial[first_ranks + entry] =
                    if is_name { code_of_rank(pieces.set_starts[set]) } else { code_of_other(place) };
            }
        }
        Some(Plan { starts, values, out, said, named, sums, first_ranks, ranks, by, initial })
    }
}

/// What a piece tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// Something about its only element.
    Own(usize),
    /// Whom a variable names.
    Names,
    /// How elements are related, or something about one of them if it mentions no other.
    Relation,
}

impl Tells {
    fn of(pieces: &Pieces, piece: &Piece) -> Tells {
        match piece.owner {
            Some(owner) => Tells::Own(owner as usize),
            None if piece.place == Lies::Outside && pieces.coordinates(piece).is_empty() => Tells::Names,
            None => Tells::Relation,
        }
    }
}

/// Where a table has an entry: at a known distance, or further on by as much as a value says.
#[derive(Clone, Copy)]
struct Entry {
    further: Option<Value>,
    bytes: i32,
}

/// What code knows of an element.
struct Element {
    set: usize,
    /// Its number in the set.
    number: usize,
    /// What is said about it where it is known to be meant; tables have the rest.
    sum: Variable,
    named: Variable,
    rank: Variable,
    place: Variable,
}

struct Emit<'a, 'f> {
    b: FunctionBuilder<'f>,
    pieces: &'a Pieces,
    plan: &'a Plan,
    state: Value,
    memory: Value,
    /// Of all sets, one after the other.
    elements: Vec<Element>,
    /// Of sets of several elements.
    several: Vec<usize>,
    /// Are slots of a bag out of order?
    disorder: Variable,
    values: Vec<Value>,
}

impl<'a, 'f> Emit<'a, 'f> {
    fn start(mut b: FunctionBuilder<'f>, pieces: &'a Pieces, plan: &'a Plan) -> Emit<'a, 'f> {
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

    fn find(mut self) -> FunctionBuilder<'f> {
        let [ties, round, more, fixed, renamed, moved, same, open] = [(); 8].map(|()| self.b.create_block());
        self.load();
        self.clear(self.plan.sums);
        self.clear(self.plan.named);
        (0..self.pieces.all.len()).for_each(|piece| self.take_in(piece));
        let tied = self.order(|emit, element| emit.told(emit.elements[element].sum, emit.plan.sums, element));
        self.b.ins().brif(tied, ties, &[], renamed, &[]);

        self.b.switch_to_block(ties);
        let different = self.differ_though_tied();
        self.b.ins().brif(different, round, &[], renamed, &[]);

        self.b.switch_to_block(round);
        let before: Vec<Value> = (0..self.elements.len()).map(|at| self.b.use_var(self.elements[at].rank)).collect();
        self.relate_all();
        let tied = self.order(|emit, element| {
            let sum = emit.told(emit.elements[element].sum, emit.plan.sums, element);
            let rank = emit.b.ins().ishl_imm_u(before[element], i64::from(64 - RANK_BITS));
            let sum = emit.b.ins().ushr_imm_u(sum, i64::from(RANK_BITS));
            emit.b.ins().bor(rank, sum)
        });
        self.b.ins().brif(tied, more, &[], renamed, &[]);
        self.b.switch_to_block(more);
        let split = self.any(|emit, element| {
            let rank = emit.b.use_var(emit.elements[element].rank);
            emit.b.ins().bxor(rank, before[element])
        });
        self.b.ins().brif(split, ties, &[], fixed, &[]);

        self.b.switch_to_block(fixed);
        let related = self.are_tied_related();
        self.b.ins().brif(related, open, &[], renamed, &[]);

        self.b.switch_to_block(renamed);
        let by: Vec<Value> = (0..self.elements.len()).map(|element| self.by(element)).collect();
        let disorder = self.b.use_var(self.disorder);
        let change = by.iter().fold(disorder, |any, &by| self.b.ins().bor(any, by));
        self.b.ins().brif(change, moved, &[], same, &[]);
        self.b.switch_to_block(moved);
        self.rename(&by);
        if self.pieces.bags.is_empty() {
            self.put_words();
        }
        self.leave(MOVED);
        self.b.switch_to_block(same);
        self.leave(SAME);
        self.b.switch_to_block(open);
        self.leave(OPEN);
        self.b
    }

    fn put(mut self) -> FunctionBuilder<'f> {
        self.put_words();
        self.leave(MOVED);
        self.b
    }

    fn leave(&mut self, result: i64) {
        let result = self.constant(result as u64);
        self.b.ins().return_(&[result]);
    }

    fn constant(&mut self, value: u64) -> Value {
        self.b.ins().iconst(types::I64, value as i64)
    }

    /// An entry of the memory.
    fn entry(&self, number: usize) -> Entry {
        Entry { further: None, bytes: number as i32 * 8 }
    }

    fn entry_of(&self, table: usize, element: usize) -> Entry {
        let Element { set, number, .. } = self.elements[element];
        self.entry(table + self.plan.starts[set] + number)
    }

    fn get(&mut self, entry: Entry) -> Value {
        let base = entry.further.map_or(self.memory, |further| self.b.ins().iadd(self.memory, further));
        self.b.ins().load(types::I64, flags(), base, entry.bytes)
    }

    fn set(&mut self, entry: Entry, value: Value) {
        let base = entry.further.map_or(self.memory, |further| self.b.ins().iadd(self.memory, further));
        self.b.ins().store(flags(), value, base, entry.bytes);
    }

    fn add_to(&mut self, entry: Entry, value: Value) {
        let sum = self.get(entry);
        let sum = self.b.ins().iadd(sum, value);
        self.set(entry, sum);
    }

    fn add_to_variable(&mut self, variable: Variable, value: Value) {
        let sum = self.b.use_var(variable);
        let sum = self.b.ins().iadd(sum, value);
        self.b.def_var(variable, sum);
    }

    /// Eight times the value of the field that a pointer is in.
    fn field(&mut self, value: Value, pointer: &Pointer) -> Value {
        let moved = match pointer.shift {
            0..3 => self.b.ins().ishl_imm_u(value, i64::from(3 - pointer.shift)),
            3 => value,
            _ => self.b.ins().ushr_imm_u(value, i64::from(pointer.shift - 3)),
        };
        self.b.ins().band_imm_u(moved, i64::from(pointer.mask) << 3)
    }

    /// The entry of the element that a field names; it has none of an element if it names none.
    fn named(&self, table: usize, pointer: &Pointer, field: Value) -> Entry {
        let start = self.plan.starts[self.elements[pointer.element as usize].set];
        Entry { further: Some(field), bytes: ((table + start) as i32 - pointer.first as i32) * 8 }
    }

    /// Does a field name an element of the set of a pointer?
    fn is_name(&mut self, pointer: &Pointer, field: Value) -> Value {
        let place = self.b.ins().iadd_imm_s(field, -i64::from(pointer.first) * 8);
        self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, place, i64::from(pointer.count) * 8)
    }

    fn mix(&mut self, value: Value) -> Value {
        let high = self.b.ins().ushr_imm_u(value, 32);
        let value = self.b.ins().bxor(value, high);
        let factor = self.constant(MIX);
        let product = self.b.ins().imul(value, factor);
        let high = self.b.ins().ushr_imm_u(product, 29);
        self.b.ins().bxor(product, high)
    }

    /// The same of a sum with a number that is known.
    fn mix_with(&mut self, value: Value, number: u64) -> Value {
        let number = self.constant(number);
        let sum = self.b.ins().iadd(value, number);
        self.mix(sum)
    }

    /// The value, or zero if the condition does not hold.
    fn only_if(&mut self, condition: Value, value: Value) -> Value {
        let zero = self.constant(0);
        self.b.ins().select(condition, value, zero)
    }

    /// Takes the pieces from the words of the state.
    fn load(&mut self) {
        let mut words: HashMap<u32, Value> = HashMap::new();
        for piece in 0..self.pieces.all.len() {
            let mut value = None;
            for step in self.pieces.moves(piece) {
                let (state, place) = (self.state, step.word as i32 * 4);
                let word = *words.entry(step.word).or_insert_with(|| self.b.ins().uload32(flags(), state, place));
                let bits = self.b.ins().band_imm_u(word, i64::from(step.mask));
                let bits = match step.turn {
                    0 => bits,
                    _ if is_left(step) => self.b.ins().ishl_imm_u(bits, i64::from(step.turn)),
                    _ => self.b.ins().ushr_imm_u(bits, i64::from(64 - step.turn)),
                };
                value = Some(value.map_or(bits, |value| self.b.ins().bor(value, bits)));
            }
            let value = value.unwrap_or_else(|| self.constant(0));
            self.values.push(value);
            self.set(self.entry(self.plan.values + piece), value);
        }
    }

    fn clear(&mut self, table: usize) {
        let zero = self.constant(0);
        for element in self.several.clone() {
            self.set(self.entry_of(table, element), zero);
        }
    }

    /// All that was said about an element.
    fn told(&mut self, known: Variable, table: usize, element: usize) -> Value {
        let (known, named) = (self.b.use_var(known), self.get(self.entry_of(table, element)));
        self.b.ins().iadd(known, named)
    }

    /// What is in any of the elements of sets of several.
    fn any(&mut self, mut of: impl FnMut(&mut Self, usize) -> Value) -> Value {
        let mut all = self.constant(0);
        for element in self.several.clone() {
            let one = of(self, element);
            all = self.b.ins().bor(all, one);
        }
        all
    }

    fn take_in(&mut self, number: usize) {
        let (pieces, value) = (self.pieces, self.values[number]);
        let piece = &pieces.all[number];
        match Tells::of(pieces, piece) {
            Tells::Own(owner) => {
                let said = self.mix_with(value, piece.salt);
                let said = self.only_if(value, said);
                self.add_to_variable(self.elements[owner].sum, said);
            }
            Tells::Names => self.in_groups(value, pieces.pointers(piece), |emit, pointer| {
                let field = emit.field(value, pointer);
                let (said, one) = (emit.constant(mix(pointer.role)), emit.constant(1));
                emit.add_to(emit.named(emit.plan.sums, pointer, field), said);
                emit.set(emit.named(emit.plan.named, pointer, field), one);
            }),
            Tells::Relation => self.take_in_relation(number, piece, value),
        }
    }

    /// Goes through pointers, but leaves out several at a time where a piece has nothing in any of them.
    fn in_groups(&mut self, value: Value, pointers: &[Pointer], mut each: impl FnMut(&mut Self, &Pointer)) {
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
    fn skip_unless(&mut self, value: Value) -> Block {
        let (inside, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(value, inside, &[], after, &[]);
        self.b.switch_to_block(inside);
        after
    }

    fn arrive(&mut self, after: Option<Block>) {
        if let Some(after) = after {
            self.b.ins().jump(after, &[]);
            self.b.switch_to_block(after);
        }
    }

    fn take_in_relation(&mut self, number: usize, piece: &Piece, value: Value) {
        let pieces = self.pieces;
        let after = (!is_of_one_element(pieces, piece)).then(|| self.skip_unless(value));
        if pieces.bags.iter().any(|bag| (bag.first + 1..bag.first + bag.slots).contains(&number)) {
            let greater = self.b.ins().icmp(IntCC::UnsignedLessThan, self.values[number - 1], value);
            let greater = self.b.ins().uextend(types::I64, greater);
            let disorder = self.b.use_var(self.disorder);
            let disorder = self.b.ins().bor(disorder, greater);
            self.b.def_var(self.disorder, disorder);
        }
        let (coordinates, pointers) = (pieces.coordinates(piece), pieces.pointers(piece));
        let names = pointers.iter().filter(|pointer| !pointer.shared).fold(0, |all, pointer| all | pointer.field());
        let others = self.constant(!names);
        let mut rest = self.b.ins().band(value, others);
        for pointer in pointers.iter().filter(|pointer| pointer.shared) {
            let field = self.field(value, pointer);
            let (inside, others) = (self.is_name(pointer, field), self.constant(!pointer.field()));
            let others = self.b.ins().band(rest, others);
            rest = self.b.ins().select(inside, others, rest);
        }
        let said = self.mix_with(rest, piece.salt);
        self.set(self.entry(self.plan.said + number), said);
        let known = coordinates.iter().fold(0u64, |all, at| {
            let first = pieces.set_starts[self.elements[at.element as usize].set];
            all.wrapping_add(at.role.wrapping_mul(code_of_rank(first)))
        });
        let known = self.constant(known);
        let said = self.b.ins().iadd(said, known);
        let codes = self.relate(piece, (value, said), self.plan.first_ranks);
        // Elements that are mentioned with others, but not the one that a piece outside of bags lies below.
        let named = self.b.ins().ushr_imm_u(codes, i64::from(NAME_SHIFT));
        let count = self.b.ins().iadd_imm_s(named, coordinates.len() as i64);
        let several = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, count, 1);
        let several = self.b.ins().uextend(types::I64, several);
        for pointer in pointers {
            let field = self.field(value, pointer);
            let entry = self.named(self.plan.named, pointer, field);
            let before = self.get(entry);
            let named = self.b.ins().bor(before, several);
            self.set(entry, named);
        }
        if after.is_some() {
            for at in coordinates {
                let named = self.elements[at.element as usize].named;
                let before = self.b.use_var(named);
                let now = self.b.ins().bor(before, several);
                self.b.def_var(named, now);
            }
        }
        self.arrive(after);
    }

    /// Adds what a piece says about the elements it mentions, given what it says about those that it lies below. Of others,
    /// a table has the ranks; gives the sum of what that has.
    fn relate(&mut self, piece: &Piece, (value, said): (Value, Value), ranks: usize) -> Value {
        let pieces = self.pieces;
        let pointers = pieces.pointers(piece);
        let fields: Vec<Value> = pointers.iter().map(|pointer| self.field(value, pointer)).collect();
        let (mut all, mut codes) = (said, self.constant(0));
        for (pointer, &field) in pointers.iter().zip(&fields) {
            let mut code = self.get(self.named(ranks, pointer, field));
            if pointer.shared {
                let inside = self.is_name(pointer, field);
                code = self.only_if(inside, code);
            }
            codes = self.b.ins().iadd(codes, code);
            let role = self.constant(pointer.role);
            let product = self.b.ins().imul(code, role);
            all = self.b.ins().iadd(all, product);
        }
        let all = self.mix(all);
        for at in pieces.coordinates(piece) {
            let role = self.constant(at.role);
            let mut said = self.b.ins().imul(all, role);
            if is_of_one_element(pieces, piece) {
                // Where nothing is said nobody is named.
                said = self.only_if(value, said);
            }
            self.add_to_variable(self.elements[at.element as usize].sum, said);
        }
        for (pointer, &field) in pointers.iter().zip(&fields) {
            let role = self.constant(pointer.role);
            let said = self.b.ins().imul(all, role);
            self.add_to(self.named(self.plan.sums, pointer, field), said);
        }
        codes
    }

    /// Sums what pieces say about elements that are known by rank.
    fn relate_all(&mut self) {
        let pieces = self.pieces;
        let mut ranks = Vec::new();
        for element in 0..self.elements.len() {
            let rank = self.b.use_var(self.elements[element].rank);
            let first = pieces.set_starts[self.elements[element].set];
            let code = self.constant(code_of_rank(first));
            let code = self.b.ins().iadd(rank, code);
            self.set(self.entry_of(self.plan.ranks, element), code);
            ranks.push(code);
            let zero = self.constant(0);
            self.b.def_var(self.elements[element].sum, zero);
        }
        self.clear(self.plan.sums);
        for (number, piece) in pieces.all.iter().enumerate() {
            if Tells::of(pieces, piece) != Tells::Relation {
                continue;
            }
            let value = self.get(self.entry(self.plan.values + number));
            let after = (!is_of_one_element(pieces, piece)).then(|| self.skip_unless(value));
            let mut said = self.get(self.entry(self.plan.said + number));
            for at in pieces.coordinates(piece) {
                let role = self.constant(at.role);
                let product = self.b.ins().imul(ranks[at.element as usize], role);
                said = self.b.ins().iadd(said, product);
            }
            self.relate(piece, (value, said), self.plan.ranks);
            self.arrive(after);
        }
    }

    /// Orders the elements of each set by key and then by number; says whether any are alike.
    fn order(&mut self, mut key: impl FnMut(&mut Self, usize) -> Value) -> Value {
        let mut any = self.constant(0);
        for range in self.pieces.set_starts.windows(2) {
            let members: Vec<usize> = (range[0] as usize..range[1] as usize).collect();
            if members.len() < 2 {
                continue;
            }
            let keys: Vec<Value> = members.iter().map(|&member| key(self, member)).collect();
            let mut places: Vec<Value> = (0..members.len()).map(|number| self.constant(number as u64)).collect();
            let zero = self.constant(0);
            let mut alike_before = vec![zero; members.len()];
            for one in 0..members.len() {
                for other in one + 1..members.len() {
                    let less = self.b.ins().icmp(IntCC::UnsignedLessThan, keys[other], keys[one]);
                    let less = self.b.ins().uextend(types::I64, less);
                    places[one] = self.b.ins().iadd(places[one], less);
                    places[other] = self.b.ins().isub(places[other], less);
                    let alike = self.b.ins().icmp(IntCC::Equal, keys[other], keys[one]);
                    let alike = self.b.ins().uextend(types::I64, alike);
                    alike_before[other] = self.b.ins().iadd(alike_before[other], alike);
                }
            }
            for (at, &member) in members.iter().enumerate() {
                any = self.b.ins().bor(any, alike_before[at]);
                let first = self.b.ins().isub(places[at], alike_before[at]);
                let Element { place, rank, .. } = self.elements[member];
                self.b.def_var(place, places[at]);
                self.b.def_var(rank, first);
            }
        }
        any
    }

    /// Is anything known of elements of equal rank that may tell them apart? If nobody names them and they have the same
    /// pieces, then their exchange changes nothing.
    fn differ_though_tied(&mut self) -> Value {
        let mut any = self.constant(0);
        for range in self.pieces.set_starts.windows(2) {
            let members = range[0] as usize..range[1] as usize;
            let (mut ranks, mut named, mut own) = (Vec::new(), Vec::new(), Vec::new());
            for element in members.clone() {
                ranks.push(self.b.use_var(self.elements[element].rank));
                named.push(self.told(self.elements[element].named, self.plan.named, element));
                let pieces = self.pieces.own[element].iter();
                let pieces = pieces.map(|&piece| self.get(self.entry(self.plan.values + piece as usize)));
                own.push(pieces.collect::<Vec<Value>>());
            }
            for one in 0..members.len() {
                for other in one + 1..members.len() {
                    let mut different = self.b.ins().bor(named[one], named[other]);
                    for (&mine, &its) in own[one].iter().zip(&own[other]) {
                        let here = self.b.ins().bxor(mine, its);
                        different = self.b.ins().bor(different, here);
                    }
                    let alike = self.b.ins().icmp(IntCC::Equal, ranks[one], ranks[other]);
                    let different = self.only_if(alike, different);
                    any = self.b.ins().bor(any, different);
                }
            }
        }
        any
    }

    /// Does any piece mention two elements that have the ranks of others? If none does, then what is said about such elements differs in their
    /// own names only, and their exchange changes nothing.
    fn are_tied_related(&mut self) -> Value {
        let pieces = self.pieces;
        let mut tied = vec![self.constant(0); self.elements.len()];
        for range in pieces.set_starts.windows(2) {
            for one in range[0] as usize..range[1] as usize {
                for other in one + 1..range[1] as usize {
                    let ranks = [one, other].map(|element| self.b.use_var(self.elements[element].rank));
                    let alike = self.b.ins().icmp(IntCC::Equal, ranks[0], ranks[1]);
                    let alike = self.b.ins().uextend(types::I64, alike);
                    for element in [one, other] {
                        tied[element] = self.b.ins().bor(tied[element], alike);
                    }
                }
            }
        }
        for (element, tied) in tied.iter_mut().enumerate() {
            *tied = self.b.ins().ishl_imm_u(*tied, element as i64);
            self.set(self.entry_of(self.plan.by, element), *tied);
        }
        let related = self.b.declare_var(types::I64);
        let none = self.constant(0);
        self.b.def_var(related, none);
        for (number, piece) in pieces.all.iter().enumerate() {
            if Tells::of(pieces, piece) != Tells::Relation {
                continue;
            }
            let value = self.get(self.entry(self.plan.values + number));
            let after = self.skip_unless(value);
            let mut all = self.constant(0);
            for at in pieces.coordinates(piece) {
                all = self.b.ins().bor(all, tied[at.element as usize]);
            }
            for pointer in pieces.pointers(piece) {
                let field = self.field(value, pointer);
                let one = self.get(self.named(self.plan.by, pointer, field));
                all = self.b.ins().bor(all, one);
            }
            let but_lowest = self.b.ins().iadd_imm_s(all, -1);
            let but_lowest = self.b.ins().band(all, but_lowest);
            let before = self.b.use_var(related);
            let now = self.b.ins().bor(before, but_lowest);
            self.b.def_var(related, now);
            self.arrive(Some(after));
        }
        self.b.use_var(related)
    }

    /// By how much the number of an element changes.
    fn by(&mut self, element: usize) -> Value {
        if !self.several.contains(&element) {
            return self.constant(0);
        }
        let Element { place, number, .. } = self.elements[element];
        let place = self.b.use_var(place);
        self.b.ins().iadd_imm_s(place, -(number as i64))
    }

    /// Writes all pieces with their elements renamed.
    fn rename(&mut self, by: &[Value]) {
        let pieces = self.pieces;
        for (element, &by) in by.iter().enumerate() {
            self.set(self.entry_of(self.plan.by, element), by);
        }
        for (number, piece) in pieces.all.iter().enumerate() {
            let value = self.get(self.entry(self.plan.values + number));
            let renamed = self.b.declare_var(types::I64);
            self.b.def_var(renamed, value);
            let after = (piece.place == Lies::Alone).then(|| self.skip_unless(value));
            self.in_groups(value, pieces.pointers(piece), |emit, pointer| {
                let field = emit.field(value, pointer);
                let change = emit.get(emit.named(emit.plan.by, pointer, field));
                let change = emit.b.ins().ishl_imm_u(change, i64::from(pointer.shift));
                emit.add_to_variable(renamed, change);
            });
            self.arrive(after);
            let mut further = None;
            for at in pieces.coordinates(piece) {
                let step = self.b.ins().imul_imm_s(by[at.element as usize], i64::from(at.stride) * 8);
                further = Some(further.map_or(step, |further| self.b.ins().iadd(further, step)));
            }
            let renamed = self.b.use_var(renamed);
            self.set(Entry { further, ..self.entry(self.plan.out + number) }, renamed);
        }
    }

    /// Puts the pieces back into the words of the state.
    fn put_words(&mut self) {
        let mut moves: BTreeMap<u32, Vec<Move>> = BTreeMap::new();
        for step in (0..self.pieces.all.len()).flat_map(|piece| self.pieces.moves(piece)) {
            moves.entry(step.word).or_default().push(*step);
        }
        for (word, moves) in moves {
            let place = word as i32 * 4;
            let covered = moves.iter().fold(0, |all, step| all | step.mask);
            let mut bits = self.constant(0);
            if covered != u32::MAX {
                let before = self.b.ins().uload32(flags(), self.state, place);
                bits = self.b.ins().band_imm_u(before, i64::from(!covered));
            }
            for step in moves {
                let value = self.get(self.entry(self.plan.out + step.piece as usize));
                let value = match step.turn {
                    0 => value,
                    _ if is_left(&step) => self.b.ins().ushr_imm_u(value, i64::from(step.turn)),
                    _ => self.b.ins().ishl_imm_u(value, i64::from(64 - step.turn)),
                };
                let value = self.b.ins().band_imm_u(value, i64::from(step.mask));
                bits = self.b.ins().bor(bits, value);
            }
            self.b.ins().istore32(flags(), bits, self.state, place);
        }
    }
}

/// A piece that tells something about an element, and whom that names: most of them are not zero.
fn is_of_one_element(pieces: &Pieces, piece: &Piece) -> bool {
    piece.place == Lies::Outside && pieces.coordinates(piece).len() == 1
}

/// Do bits of a word move towards higher ones to take their place in a piece?
fn is_left(step: &Move) -> bool {
    step.mask.leading_zeros() + 32 >= step.turn
}

fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}
