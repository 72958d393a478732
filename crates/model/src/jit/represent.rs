//! Native code that finds representatives: what `symmetry/canon.rs` does, with all places and numbers of a model known.
//!
//! One call does all successors of a state. Where nothing relates elements to one another they are sorted (`plain.rs`). Most other states need no more than
//! ranks, which this computes without loops and with hardly a branch. It follows `symmetry/plain.rs`, `relations.rs` and `ranks.rs` to the bit, so that which of the two found a representative makes no
//! difference. Where several orders would have to be tried it leaves the state as it is and says so. Elements of equal sums are taken
//! for alike: should hashes collide, an orbit might have two representatives, each a state of it.
//!
//! Tables have an entry for each element of a set, and others around these, as many as a field can hold values that are
//! no names: so no name needs to be checked. Sums that come to lie there mean nothing.

mod emit;
mod moves;
mod plain;
mod ranks;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, InstBuilder, Type, Value, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, default_libcall_names};

use super::compile::{Code, isa_for};
use crate::Step;
use crate::symmetry::pieces::{Lies, Piece, Pieces};
use crate::symmetry::plain::Plain;
use emit::{Emit, flags};

/// Code for more than this would take longer to make than it saves.
const MOST_PIECES: usize = 300;
const MOST_ENTRIES: usize = 256;
/// It compares all elements of a set with one another; sorting larger ones is faster.
const LARGEST_SET: usize = 16;
/// Names in variables and slots of bags are looked at by so many, which are often all missing.
const TOGETHER: usize = 4;
/// Ranks lead sums; elements have no more bits than this.
const RANK_BITS: u32 = 6;

/// States and how many, the marks of their steps, a state that is left as it is, and memory. Gives where it stopped, and why.
type Find = unsafe extern "C" fn(*mut u32, u64, *const u32, *const u32, *mut u64) -> u64;
type Put = unsafe extern "C" fn(*mut u32, *mut u64) -> u64;

pub(crate) struct Represent {
    find: Find,
    put: Put,
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
    sums: usize,
    ranks: usize,
    by: usize,
    /// Are slots of a bag out of order?
    disorder: usize,
    size: usize,
}

/// Why the code stopped, in the lowest bits of what it gives: there are no more states; the slots of this one are to be put in order; its
/// representative is to be found by trying orders, and it is as it was.
const END: u64 = 0;
const SORT: u64 = 1;
const OPEN: u64 = 2;
const WHY_BITS: u32 = 2;

impl Represent {
    /// How much code there would be, in operators of four instructions.
    pub fn operators(pieces: &Pieces, plain: Option<&Plain>) -> usize {
        let keys = plain.iter().flat_map(|plain| plain.leaders.iter().chain(&plain.sorted));
        let keys = keys.map(|key| key.elements.len() * (2 + key.elements.len()) + key.named.len() * 12);
        let piece = |(number, piece): (usize, &Piece)| {
            8 + pieces.moves(number).len() * 2 + pieces.coordinates(piece).len() * 5 + pieces.pointers(piece).len() * 12
        };
        pieces.all.iter().enumerate().map(piece).sum::<usize>() + pairs(pieces) * 15 + keys.sum::<usize>()
    }

    /// For states of so many words; `None` if there is too much to be said about them.
    pub fn new(pieces: &Pieces, plain: Option<&Plain>, width: usize) -> Option<Represent> {
        let plan = Plan::of(pieces)?;
        let isa = isa_for(false).ok()?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let find = define(&mut module, 5, |b| Emit::start(b, pieces, &plan).find(plain, width))?;
        let put = define(&mut module, 2, |b| Emit::start(b, pieces, &plan).put())?;
        module.finalize_definitions().ok()?;
        let (find, put) = (module.get_finalized_function(find), module.get_finalized_function(put));
        // SAFETY: these functions were defined with exactly these parameters and results.
        let (find, put) =
            unsafe { (std::mem::transmute::<*const u8, Find>(find), std::mem::transmute::<*const u8, Put>(put)) };
        Some(Represent { find, put, plan, width, _code: Code::of(module) })
    }

    /// Replaces states by their representatives, but for those whose steps went wrong and those that are `known`; where orders would have to
    /// be tried, `open` does it.
    pub fn find(
        &self,
        pieces: &Pieces,
        (states, steps): (&mut [u32], &[u32]),
        known: &[u32],
        memory: &mut Vec<u64>,
        mut open: impl FnMut(&mut [u32]),
    ) {
        if memory.is_empty() {
            memory.resize(self.plan.size, 0);
        }
        assert_eq!(memory.len(), self.plan.size, "a memory serves one code");
        assert!(
            known.len() == self.width && states.len() == steps.len() * self.width,
            "states have the width of their model"
        );
        let mut first = 0;
        loop {
            let (states, steps) = (&mut states[first * self.width..], &steps[first..]);
            let (count, known) = (steps.len() as u64, known.as_ptr());
            // SAFETY: the code touches so many states and steps, the words of the known state, and entries that the plan has
            // room for, whatever states hold: fields are masked, and tables have an entry for all that a field can hold.
            let stop = unsafe { (self.find)(states.as_mut_ptr(), count, steps.as_ptr(), known, memory.as_mut_ptr()) };
            let (at, why) = ((stop >> WHY_BITS) as usize, stop & ((1 << WHY_BITS) - 1));
            if why == END {
                return;
            }
            let state = &mut states[at * self.width..][..self.width];
            if why == OPEN {
                open(state);
            } else {
                pieces.sort_bags(&mut memory[self.plan.out..][..pieces.all.len()]);
                // SAFETY: the same.
                unsafe { (self.put)(state.as_mut_ptr(), memory.as_mut_ptr()) };
            }
            first += at + 1;
        }
    }
}

/// Declares a function of so many parameters and makes machine code of what `emit` writes.
fn define(
    module: &mut JITModule,
    parameters: usize,
    emit: impl for<'f> FnOnce(FunctionBuilder<'f>) -> FunctionBuilder<'f>,
) -> Option<FuncId> {
    let mut context = module.make_context();
    context.func.signature.params.resize(parameters, AbiParam::new(types::I64));
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

/// Is all that is said about several elements at once said by the pieces that belong to elements? When ranks tell no more apart and only two elements
/// are alike, then these can be exchanged: nobody else names either of them, or it would name both in the same field, and each
/// field of their own pieces that names one of the two in one piece names one of the two in the other as well, and not the same one.
fn has_plain_relations(pieces: &Pieces) -> bool {
    pieces.all.iter().all(|piece| piece.place == Lies::Outside && pieces.coordinates(piece).len() <= 1)
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
        let (sums, ranks, by, disorder) = (room(entries), room(entries), room(entries), room(1));
        Some(Plan { starts, values, out, said, sums, ranks, by, disorder, size })
    }
}

impl<'f> Emit<'_, 'f> {
    fn find(mut self, plain: Option<&Plain>, width: usize) -> FunctionBuilder<'f> {
        let entry = self.b.current_block().expect("the code begins");
        let [states, count, steps, known, memory] = self.b.block_params(entry)[..] else {
            unreachable!("so it was declared")
        };
        self.memory = memory;
        let [head, sound, begin, next, end] = [(); 5].map(|()| self.b.create_block());
        let (state, at) = (self.b.declare_var(types::I64), self.b.declare_var(types::I64));
        let zero = self.constant(0);
        self.b.def_var(state, states);
        self.b.def_var(at, zero);
        self.b.ins().jump(head, &[]);

        self.b.switch_to_block(head);
        let number = self.b.use_var(at);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, number, count);
        self.b.ins().brif(more, sound, &[], end, &[]);
        self.b.switch_to_block(sound);
        let place = self.b.ins().ishl_imm_u(number, 2);
        let place = self.b.ins().iadd(steps, place);
        let step = self.b.ins().load(types::I32, flags(), place, 0);
        let fault = self.b.ins().band_imm_u(step, i64::from(Step::FAULT));
        let changes = self.b.create_block();
        self.b.ins().brif(fault, next, &[], changes, &[]);
        self.b.switch_to_block(changes);
        let this = self.b.use_var(state);
        let changed = self.differs(this, known, width);
        self.b.ins().brif(changed, begin, &[], next, &[]);

        self.b.switch_to_block(begin);
        self.begin(this);
        self.load();
        if let Some(plain) = plain {
            let undecided = self.b.create_block();
            self.represent_plain(plain, next, undecided);
            self.b.switch_to_block(undecided);
        }
        if plain.is_some_and(Plain::is_always_decided) {
            self.b.ins().jump(next, &[]);
        } else {
            self.represent(number, next);
        }

        self.b.switch_to_block(next);
        let (this, number) = (self.b.use_var(state), self.b.use_var(at));
        let (this, number) = (self.b.ins().iadd_imm_s(this, width as i64 * 4), self.b.ins().iadd_imm_s(number, 1));
        self.b.def_var(state, this);
        self.b.def_var(at, number);
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(end);
        self.leave(count, END);
        self.b
    }

    /// Do two states differ? They are compared by four words and then by one.
    fn differs(&mut self, one: Value, other: Value, width: usize) -> Value {
        let mut any = None;
        let differ = |b: &mut FunctionBuilder, kind: Type, word: usize| {
            let [one, other] = [one, other].map(|state| b.ins().load(kind, flags(), state, word as i32 * 4));
            b.ins().bxor(one, other)
        };
        let fours = width / 4 * 4;
        for word in (0..fours).step_by(4) {
            let four = differ(&mut self.b, types::I8X16, word);
            any = Some(any.map_or(four, |any| self.b.ins().bor(any, four)));
        }
        let mut all = self.b.ins().iconst(types::I32, 0);
        if let Some(any) = any {
            let any = self.b.ins().vany_true(any);
            all = self.b.ins().uextend(types::I32, any);
        }
        for word in fours..width {
            let word = differ(&mut self.b, types::I32, word);
            all = self.b.ins().bor(all, word);
        }
        all
    }

    /// Replaces the state with this number, whose pieces are known, and goes on to the next.
    fn represent(&mut self, number: Value, next: Block) {
        let [disorder, ties, round, more, fixed, renamed, moved, open] = [(); 8].map(|()| self.b.create_block());
        for block in [ties, round, more, fixed, open] {
            self.b.set_cold_block(block);
        }
        self.keep();
        self.clear(self.plan.sums);
        let zero = self.constant(0);
        self.set(self.entry(self.plan.disorder), zero);
        self.take_in_all();
        let ascending = self.sums();
        self.b.ins().brif(ascending, next, &[], disorder, &[]);

        self.b.switch_to_block(disorder);
        let tied = self.order(|emit, element| emit.b.use_var(emit.elements[element].key));
        self.b.ins().brif(tied, ties, &[], renamed, &[]);

        self.b.switch_to_block(ties);
        self.rank();
        let different = self.differ_though_tied();
        self.b.ins().brif(different, round, &[], renamed, &[]);

        self.b.switch_to_block(round);
        let before: Vec<Value> = (0..self.elements.len()).map(|at| self.b.use_var(self.elements[at].rank)).collect();
        self.relate_all();
        let tied = self.order(|emit, element| {
            let sum = emit.told(emit.elements[element].sum, element);
            let rank = emit.b.ins().ishl_imm_u(before[element], i64::from(64 - RANK_BITS));
            let sum = emit.b.ins().ushr_imm_u(sum, i64::from(RANK_BITS));
            emit.b.ins().bor(rank, sum)
        });
        self.b.ins().brif(tied, more, &[], renamed, &[]);
        self.b.switch_to_block(more);
        self.rank();
        let split = self.any(|emit, element| {
            let rank = emit.b.use_var(emit.elements[element].rank);
            emit.b.ins().bxor(rank, before[element])
        });
        self.b.ins().brif(split, ties, &[], fixed, &[]);

        self.b.switch_to_block(fixed);
        if has_plain_relations(self.pieces) {
            let (several, one) = (self.b.create_block(), self.is_one_pair_tied());
            self.b.ins().brif(one, renamed, &[], several, &[]);
            self.b.switch_to_block(several);
        }
        let related = self.are_tied_related();
        self.b.ins().brif(related, open, &[], renamed, &[]);

        self.b.switch_to_block(renamed);
        let by: Vec<Value> = (0..self.elements.len()).map(|element| self.by(element)).collect();
        let disorder = self.bags_in_disorder();
        let change = by.iter().fold(disorder, |any, &by| self.b.ins().bor(any, by));
        self.b.ins().brif(change, moved, &[], next, &[]);
        self.b.switch_to_block(moved);
        self.rename(&by);
        if self.pieces.bags.is_empty() {
            self.put_renamed();
            self.b.ins().jump(next, &[]);
        } else {
            self.leave(number, SORT);
        }
        self.b.switch_to_block(open);
        self.leave(number, OPEN);
    }

    fn put(mut self) -> FunctionBuilder<'f> {
        self.put_renamed();
        let zero = self.constant(0);
        self.leave(zero, END);
        self.b
    }
}
