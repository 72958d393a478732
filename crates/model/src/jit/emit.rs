//! The state of code generation for one function, and moving whole words.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AliasRegionData, Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value, types,
};
use cranelift_frontend::{FunctionBuilder, Variable};
use plimsoll_ir::layout::size_bits;
use plimsoll_ir::walk::{expr_places, stmt_places};
use plimsoll_ir::{Access as PathAccess, Choice, Expr, Layout, Locals, Place, Root, Stmt, System, TempId, Type};
use std::sync::atomic::AtomicBool;

use super::call::{Imports, Procedures};
use super::known::Known;
use super::range::Range;
use super::stmt::Exit;

/// Copies of more words than this are loops.
const UNROLLED_WORDS: usize = 32;
const ROUND_BYTES: u32 = 64;

/// A 64-bit value and what it can be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Val {
    pub value: Value,
    pub range: Range,
}

/// How memory is accessed. The regions never overlap, which lets loads from the source survive stores.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub source: MemFlagsData,
    pub out: MemFlagsData,
    pub steps: MemFlagsData,
    pub temps: MemFlagsData,
    /// Memory of a caller.
    pub foreign: MemFlagsData,
}

/// Where a temporary lives.
#[derive(Clone, Copy)]
pub(super) enum Home {
    Register(Variable, Range),
    /// A small record or array whose parts are always known: its bits, in a register.
    Packed(Variable),
    /// In the scope's stack slot.
    Memory,
}

/// Where a reference lies in the state.
#[derive(Clone, Copy)]
pub(super) struct Reference {
    /// In bytes up to the word that it starts in, or in bits if it may start anywhere.
    pub value: Value,
    /// Where in that word it starts, if that is known.
    pub shift: Option<u32>,
}

/// One command instance, property or procedure: its temporaries, and where control goes when it stops early.
pub(super) struct Scope<'a> {
    pub locals: Locals<'a>,
    pub references: Vec<Reference>,
    /// The procedure, if it is one, and how often it is inside itself, if it counts.
    pub own: Option<usize>,
    pub inside: Option<(usize, Value)>,
    pub layout: Layout,
    pub homes: Vec<Home>,
    pub slot: Option<StackSlot>,
    pub fault: Block,
    /// Does anything jump to the fault block?
    pub faults: bool,
    pub discard: Block,
    pub exits: Vec<Exit>,
    /// A temporary that the statement before has set to a constant.
    pub just_set: Option<(TempId, i64)>,
    /// Holds the violation flag, where there are assertions.
    pub failed: Option<Variable>,
    /// The successor under construction, once the guard holds.
    pub body: Option<Body>,
}

pub(super) struct Body {
    pub out: Value,
    pub known: Known,
}

pub(super) struct Emitter<'a, 'f> {
    pub b: FunctionBuilder<'f>,
    pub system: &'a System,
    pub layout: &'a Layout,
    pub procedures: &'a Procedures,
    pub imports: Imports,
    pub access: Access,
    pub source: Value,
    /// Where the exclusive scalar lies in the source, and what it holds, where that is known.
    pub turn: Option<(u32, i64)>,
    /// Set when long loops are to be given up.
    pub stop: &'static AtomicBool,
    pub scope: Scope<'a>,
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// Starts a function whose first parameter is the source state; gives all parameters.
    pub fn start(
        mut b: FunctionBuilder<'f>,
        (system, layout): (&'a System, &'a Layout),
        procedures: &'a Procedures,
        imports: Imports,
        stop: &'static AtomicBool,
    ) -> (Emitter<'a, 'f>, Vec<Value>) {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let params = b.block_params(entry).to_vec();
        let mut region = |user_id: u32, description: &'static str| {
            let data = AliasRegionData { user_id, description: description.into() };
            let region = b.func.dfg.alias_regions.insert(data);
            MemFlagsData::new().with_notrap().with_alias_region(Some(region))
        };
        let access = Access {
            source: region(0, "source").with_readonly(),
            out: region(1, "successors"),
            steps: region(2, "steps"),
            temps: region(3, "temporaries"),
            foreign: region(4, "caller"),
        };
        let scope = Scope::empty(entry);
        let source = params[0];
        let emitter = Emitter { b, system, layout, procedures, imports, access, source, turn: None, stop, scope };
        (emitter, params)
    }

    pub fn constant(&mut self, value: i64) -> Val {
        Val { value: self.b.ins().iconst(types::I64, value), range: Range::constant(value) }
    }

    /// A new, empty block.
    pub fn fresh(&mut self) -> Block {
        self.b.create_block()
    }

    /// Goes on only if `condition` (a truth value) holds; otherwise the instance faults.
    pub fn fault_unless(&mut self, condition: Value) {
        let sound = self.fresh();
        self.scope.faults = true;
        self.b.ins().brif(condition, sound, &[], self.scope.fault, &[]);
        self.b.switch_to_block(sound);
    }

    /// Opens a scope with all temporaries zero, for this code. Choices are set by the caller.
    pub fn open_scope(&mut self, frame: Frame<'a>, fault: Block, discard: Block) {
        let locals = frame.locals;
        let layout = Layout::of_temps(locals.temps);
        let moving = frame.moving();
        let homes: Vec<Home> =
            locals.temps.iter().zip(moving).map(|((_, ty), moving)| self.home_for(ty, moving)).collect();
        let in_memory = homes.iter().any(|home| matches!(home, Home::Memory));
        let slot = in_memory.then(|| {
            let bytes = layout.words() as u32 * 4;
            self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4))
        });
        self.scope = Scope { locals, layout, homes, slot, ..Scope::empty(fault) };
        self.scope.discard = discard;
        self.zero_memory_temps();
    }

    /// Makes all temporaries zero again but those that hold choices, for another instance.
    pub fn clear_temps(&mut self, choices: &[Choice]) {
        for temp in 0..self.scope.homes.len() {
            if let Home::Register(variable, _) | Home::Packed(variable) = self.scope.homes[temp]
                && choices.iter().all(|choice| choice.temp.index() != temp)
            {
                let zero = self.constant(0);
                self.b.def_var(variable, zero.value);
            }
        }
        self.zero_memory_temps();
    }

    fn home_for(&mut self, ty: &Type, moving: Moving) -> Home {
        if ty.as_scalar().is_none() && (moving.indexed || size_bits(ty) > 32) {
            return Home::Memory;
        }
        let variable = self.b.declare_var(types::I64);
        let zero = self.constant(0);
        self.b.def_var(variable, zero.value);
        match ty.as_scalar() {
            // What is copied was not checked.
            Some(scalar) if moving.copied => Home::Register(variable, Range::of_field(&scalar)),
            Some(scalar) => Home::Register(variable, Range::of_temp(&scalar)),
            None => Home::Packed(variable),
        }
    }

    fn zero_memory_temps(&mut self) {
        let Some(slot) = self.scope.slot else { return };
        let base = self.b.ins().stack_addr(types::I64, slot, 0);
        for temp in 0..self.scope.locals.temps.len() {
            if let Home::Memory = self.scope.homes[temp] {
                let address = self.scope.layout.address(temp, &self.scope.locals.temps[temp].1, &[]);
                let words = address.bits.div_ceil(32) as usize;
                self.zero_words((base, self.access.temps), address.bit / 8, words);
            }
        }
    }

    /// Copies whole words between memories that are equal or do not overlap.
    pub fn copy_words(
        &mut self,
        (to, to_flags): (Value, MemFlagsData),
        to_byte: u32,
        (from, from_flags): (Value, MemFlagsData),
        from_byte: u32,
        words: usize,
    ) {
        self.each_chunk(words, |emitter, ty, to_offset| {
            let (target, source) = match to_offset {
                Offset::Fixed(offset) => ((to, to_byte + offset), (from, from_byte + offset)),
                Offset::Moving(offset, further) => {
                    let target = emitter.b.ins().iadd(to, offset);
                    let source = emitter.b.ins().iadd(from, offset);
                    ((target, to_byte + further), (source, from_byte + further))
                }
            };
            let value = emitter.b.ins().load(ty, from_flags, source.0, source.1 as i32);
            emitter.b.ins().store(to_flags, value, target.0, target.1 as i32);
        });
    }

    pub fn zero_words(&mut self, (to, flags): (Value, MemFlagsData), byte: u32, words: usize) {
        self.each_chunk(words, |emitter, ty, offset| {
            let zero = if ty == types::I8X16 {
                let zero = emitter.b.ins().iconst(types::I8, 0);
                emitter.b.ins().splat(types::I8X16, zero)
            } else {
                emitter.b.ins().iconst(ty, 0)
            };
            let (target, offset) = match offset {
                Offset::Fixed(offset) => (to, byte + offset),
                Offset::Moving(offset, further) => (emitter.b.ins().iadd(to, offset), byte + further),
            };
            emitter.b.ins().store(flags, zero, target, offset as i32);
        });
    }

    /// Runs `emit` for chunks of 16, 8 and 4 bytes that cover `words` words; many words make a loop of four chunks a round.
    fn each_chunk(&mut self, words: usize, mut emit: impl FnMut(&mut Self, types::Type, Offset)) {
        let bytes = words as u32 * 4;
        let mut done = 0;
        if words > UNROLLED_WORDS {
            done = bytes / ROUND_BYTES * ROUND_BYTES;
            self.counted_loop(done, ROUND_BYTES, |emitter, offset| {
                for further in (0..ROUND_BYTES).step_by(16) {
                    emit(emitter, types::I8X16, Offset::Moving(offset, further));
                }
            });
        }
        while done < bytes {
            let (ty, size) = match bytes - done {
                16.. => (types::I8X16, 16),
                8.. => (types::I64, 8),
                _ => (types::I32, 4),
            };
            emit(self, ty, Offset::Fixed(done));
            done += size;
        }
    }

    fn counted_loop(&mut self, end: u32, step: u32, mut body: impl FnMut(&mut Self, Value)) {
        let (head, after) = (self.fresh(), self.fresh());
        let counter = self.b.append_block_param(head, types::I64);
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.ins().jump(head, &[zero.into()]);
        self.b.switch_to_block(head);
        body(self, counter);
        let next = self.b.ins().iadd_imm_s(counter, step as i64);
        let more = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, next, end as i64);
        self.b.ins().brif(more, head, &[next.into()], after, &[]);
        self.b.switch_to_block(after);
    }
}

/// What code does with a temporary.
#[derive(Clone, Copy, Default)]
struct Moving {
    /// A part of it is named by an index that is computed.
    indexed: bool,
    /// It may get a value that is not checked against its range.
    copied: bool,
}

/// A piece of code with the temporaries that it uses.
pub(super) struct Frame<'a> {
    pub locals: Locals<'a>,
    /// So many temporaries are given by a caller.
    pub inputs: usize,
    pub code: [&'a [Stmt]; 2],
    pub expr: &'a Expr,
}

impl Frame<'_> {
    fn moving(&self) -> Vec<Moving> {
        let mut found = vec![Moving::default(); self.locals.temps.len()];
        found[..self.inputs].iter_mut().for_each(|moving| moving.copied = true);
        let mut look = |place: &Place| {
            if let Root::Temp(temp) = place.root {
                found[temp.index()].indexed |= is_indexed(&self.locals.temps[temp.index()].1, &place.path);
            }
        };
        self.code.iter().for_each(|stmts| stmt_places(stmts, &mut |_, place| look(place)));
        expr_places(self.expr, &mut |_, place| look(place));
        let mut copied = |place: &Place, sorted: bool| {
            if let Root::Temp(temp) = place.root {
                found[temp.index()].copied = true;
                found[temp.index()].indexed |= sorted;
            }
        };
        self.code.iter().for_each(|stmts| each_copied(stmts, &mut copied));
        found
    }
}

/// Is some index of the path not known to be a certain element?
fn is_indexed(mut ty: &Type, path: &[PathAccess]) -> bool {
    path.iter().any(|access| {
        let known = match (ty, access) {
            (Type::Array { len, .. }, PathAccess::Index(Expr::Const(index))) => (0..*len as i64).contains(index),
            (_, PathAccess::Index(_)) => false,
            (_, PathAccess::Field(_)) => true,
        };
        ty = ty.step(access);
        !known
    })
}

/// Calls `visit` for every place that gets a copy or is sorted, and says which.
fn each_copied(stmts: &[Stmt], visit: &mut impl FnMut(&Place, bool)) {
    for stmt in stmts {
        match stmt {
            Stmt::Copy { to, .. } => visit(to, false),
            Stmt::Sort(place) => visit(place, true),
            Stmt::Call(call) => call.outputs.iter().for_each(|place| visit(place, false)),
            Stmt::If { then, otherwise, .. } => {
                each_copied(then, visit);
                each_copied(otherwise, visit);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => each_copied(body, visit),
            _ => {}
        }
    }
}

/// Distance from the start of a run of words.
enum Offset {
    Fixed(u32),
    /// A distance that is computed, and what comes on top of it.
    Moving(Value, u32),
}

impl Scope<'_> {
    fn empty(fault: Block) -> Self {
        Scope {
            locals: Locals::temps(&[]),
            references: Vec::new(),
            own: None,
            inside: None,
            layout: Layout::of_temps(&[]),
            homes: Vec::new(),
            slot: None,
            fault,
            faults: false,
            discard: fault,
            exits: Vec::new(),
            just_set: None,
            failed: None,
            body: None,
        }
    }
}
