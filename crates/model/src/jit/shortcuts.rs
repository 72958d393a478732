//! Jumps that know the answer to the question they lead to go where the answer leads.
//!
//! Quantifiers and logic that needs statements put truths into temporaries, and the next statement asks for them: most of
//! the paths that meet at such a question know the answer. A block that does nothing but compute and ask, and whose values
//! nobody else uses, may be left out by everyone who does.

use std::collections::HashMap;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Function, Inst, InstBuilder, InstructionData, Opcode, Value};
use cranelift_codegen::ir::{Type, ValueDef, types};

/// A block with more instructions is no question.
const MOST_INSTRUCTIONS: usize = 8;
/// So many questions in a row are answered.
const MOST_QUESTIONS: usize = 16;

/// What is known about a value where a jump begins.
#[derive(Clone, Copy)]
enum Known {
    Constant(Type, i64),
    /// A value at hand there.
    Value(Value),
}

/// Lets all jumps of a function skip the questions that they know the answer to.
pub(super) fn take(func: &mut Function) {
    let asks = questions(func);
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        let Some(last) = func.layout.last_inst(block) else { continue };
        let count = match func.dfg.insts[last] {
            InstructionData::Jump { .. } => 1,
            InstructionData::Brif { .. } => 2,
            _ => continue,
        };
        for edge in 0..count {
            for _ in 0..MOST_QUESTIONS {
                let Some((target, known)) = answer(func, &asks, calls(func, last)[edge]) else { break };
                redirect(func, last, edge, target, &known);
            }
        }
    }
}

/// Which blocks only compute and ask, and define nothing that others use.
fn questions(func: &Function) -> HashMap<Block, Vec<Inst>> {
    let mut found = HashMap::new();
    for block in func.layout.blocks() {
        let insts: Vec<Inst> = func.layout.block_insts(block).take(MOST_INSTRUCTIONS + 1).collect();
        let Some((last, before)) = insts.split_last() else { continue };
        let computes =
            |inst: &Inst| matches!(func.dfg.insts[*inst].opcode(), Opcode::Iconst | Opcode::Icmp | Opcode::Uextend);
        let jumps = matches!(func.dfg.insts[*last].opcode(), Opcode::Jump | Opcode::Brif);
        if jumps && before.iter().all(computes) && Some(block) != func.layout.entry_block() {
            found.insert(block, insts);
        }
    }
    for block in func.layout.blocks() {
        for value in func.layout.block_insts(block).flat_map(|inst| func.dfg.inst_values(inst)) {
            let home = match func.dfg.value_def(func.dfg.resolve_aliases(value)) {
                ValueDef::Result(inst, _) => func.layout.inst_block(inst),
                ValueDef::Param(block, _) => Some(block),
                ValueDef::Union(..) => None,
            };
            if let Some(home) = home.filter(|&home| home != block) {
                found.remove(&home);
            }
        }
    }
    found
}

fn calls(func: &Function, inst: Inst) -> &[BlockCall] {
    func.dfg.insts[inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
}

/// Where a jump ends up behind the question it leads to, and with which arguments; nothing if that is not known.
fn answer(func: &Function, asks: &HashMap<Block, Vec<Inst>>, call: BlockCall) -> Option<(Block, Vec<Known>)> {
    let (pool, dfg) = (&func.dfg.value_lists, &func.dfg);
    let block = call.block(pool);
    let (last, before) = asks.get(&block)?.split_last()?;
    let mut known: HashMap<Value, Known> = HashMap::new();
    for (&param, arg) in dfg.block_params(block).iter().zip(call.args(pool)) {
        known.insert(param, constant(func, arg.as_value()?));
    }
    let find = |known: &HashMap<Value, Known>, value: Value| {
        let value = dfg.resolve_aliases(value);
        known.get(&value).copied().unwrap_or_else(|| constant(func, value))
    };
    let number = |known: &HashMap<Value, Known>, value: Value| match find(known, value) {
        Known::Constant(_, number) => Some(number),
        Known::Value(_) => None,
    };
    let mut unknown = Vec::new();
    for &inst in before {
        let result = dfg.first_result(inst);
        let computed = match dfg.insts[inst] {
            InstructionData::UnaryImm { imm, .. } => Some(imm.bits()),
            InstructionData::Unary { arg, .. } => {
                let bits = dfg.value_type(arg).bits();
                number(&known, arg).map(|number| if bits < 64 { number & ((1 << bits) - 1) } else { number })
            }
            InstructionData::IntCompare { cond, args: [left, right], .. } if dfg.value_type(left) == types::I64 => {
                let both = number(&known, left).zip(number(&known, right));
                both.map(|(left, right)| compare(cond, left, right) as i64)
            }
            _ => None,
        };
        match computed {
            Some(number) => drop(known.insert(result, Known::Constant(dfg.value_type(result), number))),
            None => unknown.push(result),
        }
    }
    let next = match dfg.insts[*last] {
        InstructionData::Jump { destination, .. } => destination,
        InstructionData::Brif { arg, blocks: [yes, no], .. } if !unknown.contains(&dfg.resolve_aliases(arg)) => {
            if number(&known, arg)? != 0 {
                yes
            } else {
                no
            }
        }
        _ => return None,
    };
    let argument = |arg: BlockArg| {
        let value = dfg.resolve_aliases(arg.as_value()?);
        (!unknown.contains(&value)).then(|| find(&known, value))
    };
    let args = next.args(pool).map(argument).collect::<Option<Vec<Known>>>()?;
    Some((next.block(pool), args))
}

/// A value outside of any question.
fn constant(func: &Function, value: Value) -> Known {
    let value = func.dfg.resolve_aliases(value);
    if let ValueDef::Result(inst, _) = func.dfg.value_def(value)
        && let InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } = func.dfg.insts[inst]
    {
        return Known::Constant(func.dfg.value_type(value), imm.bits());
    }
    Known::Value(value)
}

fn redirect(func: &mut Function, jump: Inst, edge: usize, target: Block, args: &[Known]) {
    let mut cursor = FuncCursor::new(func).at_inst(jump);
    let mut value = |known: &Known| match *known {
        Known::Constant(ty, number) => cursor.ins().iconst(ty, number),
        Known::Value(value) => value,
    };
    let args: Vec<BlockArg> = args.iter().map(|known| BlockArg::Value(value(known))).collect();
    let dfg = &mut func.dfg;
    let call = dfg.block_call(target, &args);
    dfg.insts[jump].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables)[edge] = call;
}

fn compare(cond: IntCC, left: i64, right: i64) -> bool {
    let unsigned = (left as u64).cmp(&(right as u64));
    match cond {
        IntCC::Equal => left == right,
        IntCC::NotEqual => left != right,
        IntCC::SignedLessThan => left < right,
        IntCC::SignedGreaterThanOrEqual => left >= right,
        IntCC::SignedGreaterThan => left > right,
        IntCC::SignedLessThanOrEqual => left <= right,
        IntCC::UnsignedLessThan => unsigned.is_lt(),
        IntCC::UnsignedGreaterThanOrEqual => unsigned.is_ge(),
        IntCC::UnsignedGreaterThan => unsigned.is_gt(),
        IntCC::UnsignedLessThanOrEqual => unsigned.is_le(),
    }
}
