//! Native code that finds representatives: what `symmetry/canon.rs` does, with all places and numbers of a model known.
//!
//! Most states need no more than ranks, which this computes without loops and with hardly a branch. It follows
//! `symmetry/relations.rs` and `ranks.rs` to the bit, so that which of the two found a representative makes no
//! difference. Where several orders would have to be tried it leaves the state as it is. Elements of equal sums are taken
//! for alike: should hashes collide, an orbit might have two representatives, each a state of it.
//!
//! Tables have an entry for each element of a set, and others around these, as many as a field can hold values that are
//! no names: so no name needs to be checked. Sums that come to lie there mean nothing.

mod emit;
mod moves;
mod ranks;

use cranelift_codegen::ir::{AbiParam, InstBuilder, Value, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, default_libcall_names};

use super::compile::{Code, isa_for};
use crate::symmetry::pieces::{Lies, Piece, Pieces, code_of_other, code_of_rank};
use emit::Emit;

/// Code for more than this would take longer to make than it saves.
const MOST_PIECES: usize = 300;
const MOST_ENTRIES: usize = 256;
/// It compares all elements of a set with one another; sorting larger ones is faster.
const LARGEST_SET: usize = 16;
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
    /// How much code there would be, in operators of four instructions.
    pub fn operators(pieces: &Pieces) -> usize {
        let piece = |(number, piece): (usize, &Piece)| {
            8 + pieces.moves(number).len() * 2 + pieces.coordinates(piece).len() * 5 + pieces.pointers(piece).len() * 12
        };
        pieces.all.iter().enumerate().map(piece).sum::<usize>() + pairs(pieces) * 15
    }

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

/// Pairs of elements of one set.
fn pairs(pieces: &Pieces) -> usize {
    let sizes = pieces.set_starts.windows(2).map(|set| (set[1] - set[0]) as usize);
    sizes.map(|size| size * size.saturating_sub(1) / 2).sum()
}

impl Plan {
    fn of(pieces: &Pieces) -> Option<Plan> {
        let sizes: Vec<usize> = pieces.set_starts.windows(2).map(|set| (set[1] - set[0]) as usize).collect();
        let among = pieces.all.iter().any(|piece| matches!(piece.place, Lies::Among(_)));
        let wide = pieces.bags.iter().any(|bag| bag.width != 1);
        let few = pieces.all.len() <= MOST_PIECES && pieces.elements() < 1 << RANK_BITS;
        if among || wide || !few || sizes.iter().any(|&size| size > LARGEST_SET) {
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

impl<'f> Emit<'_, 'f> {
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
}
