//! The meaning of expressions and statements.
//!
//! A [`Machine`] holds one state under construction and the temporaries of one command instance and of the procedures
//! at work for it.
//! Evaluating may stop early: with a fault, or because the instance turns out not to be enabled.

use plimsoll_ir::expr::wrap;
use plimsoll_ir::{BinOp, Narrow, Scalar, Slot, UNLIMITED};

use crate::Patience;

use super::link::{Call, Expr, Memory, Place, Routine, Sort, Stmt};

/// Rounds between two looks at whether to give up.
const ROUNDS_PER_LOOK: u32 = 1024;
/// Shorter loops are not suspected of going in circles.
const FIRST_LOOK: u64 = 32;

/// Why a command went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault<'a> {
    Index {
        place: &'a str,
        index: i64,
        len: u32,
    },
    DivisionByZero,
    OutOfRange {
        place: &'a str,
        value: i64,
        scalar: Scalar,
    },
    LoopLimit(u32),
    Recursion(u32),
    /// A loop came back to where it was.
    Endless,
    Stated(&'a str),
}

/// Why evaluation stopped early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop<'a> {
    Fault(Box<Fault<'a>>),
    /// There is no successor.
    Discard,
    /// It was told to stop.
    GaveUp,
}

impl<'a> From<Fault<'a>> for Stop<'a> {
    fn from(fault: Fault<'a>) -> Stop<'a> {
        Stop::Fault(Box::new(fault))
    }
}

/// Where to go after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// Leave this many enclosing blocks or loops beside the innermost one.
    Break(u32),
}

pub(super) struct Machine<'a> {
    procedures: &'a [Routine],
    /// Equal to the source state until a body writes to it.
    pub state: Vec<u32>,
    /// Of the command, then of each procedure that has not come to its end.
    temps: Vec<u32>,
    /// Where the temporaries of the innermost one start, in words.
    frame: usize,
    /// The bits of the state that it was handed over by reference.
    references: Vec<u32>,
    /// The procedure at work, and how often it is inside itself.
    current: Option<(usize, u32)>,
    /// The message of the first assertion that failed.
    pub failed: Option<&'a str>,
    patience: Patience,
    /// Of all loops.
    rounds: u32,
}

impl<'a> Machine<'a> {
    pub fn new(state: &[u32], procedures: &'a [Routine], patience: Patience) -> Machine<'a> {
        Machine {
            procedures,
            state: state.to_vec(),
            temps: Vec::new(),
            frame: 0,
            references: Vec::new(),
            current: None,
            failed: None,
            patience,
            rounds: 0,
        }
    }

    /// Is it time to give up? Looked at now and then.
    pub fn is_patient(&mut self) -> bool {
        self.rounds = self.rounds.wrapping_add(1);
        !(self.rounds.is_multiple_of(ROUNDS_PER_LOOK) && self.patience.is_over())
    }

    /// Forgets the temporaries and failures of an earlier instance.
    pub fn begin(&mut self, temp_words: usize) {
        self.temps.clear();
        self.temps.resize(temp_words, 0);
        self.frame = 0;
        self.current = None;
        self.failed = None;
    }

    /// Sets the temporary that holds a choice.
    pub fn choose(&mut self, temp: &Place, value: i64) {
        let scalar = temp.scalar.expect("verified: choices are scalars");
        slot(temp.bit, temp.bits).store(&mut self.temps, scalar.encode(value));
    }

    pub fn eval(&self, expr: &'a Expr) -> Result<i64, Stop<'a>> {
        Ok(match expr {
            Expr::Const(value) => *value,
            Expr::Read(place) => self.read(place)?,
            Expr::Unary(op, value) => op.apply(self.eval(value)?),
            Expr::Binary(BinOp::And, left, right) => (self.truth(left)? && self.truth(right)?) as i64,
            Expr::Binary(BinOp::Or, left, right) => (self.truth(left)? || self.truth(right)?) as i64,
            Expr::Binary(op, left, right) => {
                op.apply(self.eval(left)?, self.eval(right)?).ok_or(Fault::DivisionByZero)?
            }
            Expr::Select(parts) => {
                let [condition, then, otherwise] = &**parts;
                self.eval(if self.truth(condition)? { then } else { otherwise })?
            }
            Expr::Wrap { bits, signed, value } => wrap(*bits, *signed, self.eval(value)?),
        })
    }

    pub fn truth(&self, expr: &'a Expr) -> Result<bool, Stop<'a>> {
        Ok(self.eval(expr)? != 0)
    }

    /// Runs statements in order until one leaves.
    pub fn run(&mut self, stmts: &'a [Stmt]) -> Result<Flow, Stop<'a>> {
        for stmt in stmts {
            if let Flow::Break(depth) = self.step(stmt)? {
                return Ok(Flow::Break(depth));
            }
        }
        Ok(Flow::Next)
    }

    fn step(&mut self, stmt: &'a Stmt) -> Result<Flow, Stop<'a>> {
        match stmt {
            Stmt::Assign { to, value, narrow } => self.assign(to, self.eval(value)?, *narrow)?,
            Stmt::Copy { to, from } => self.copy(to, from)?,
            Stmt::Reset(place) => self.reset(place)?,
            Stmt::Sort(sort) => self.sort(sort)?,
            Stmt::If { condition, then, otherwise } => {
                let branch = if self.truth(condition)? { then } else { otherwise };
                return self.run(branch);
            }
            Stmt::Block(body) => return Ok(leave(self.run(body)?)),
            Stmt::Loop { limit, body } => return self.repeat(*limit, body),
            Stmt::Break(depth) => return Ok(Flow::Break(*depth)),
            Stmt::Assert { condition, message } => {
                if !self.truth(condition)? {
                    self.failed.get_or_insert(message);
                }
            }
            Stmt::Call(call) => self.call(call)?,
            Stmt::Fault(message) => return Err(Fault::Stated(message).into()),
            Stmt::Discard => return Err(Stop::Discard),
        }
        Ok(Flow::Next)
    }

    /// If the procedure stops early, so does the command, and nobody looks at temporaries again.
    fn call(&mut self, call: &'a Call) -> Result<(), Stop<'a>> {
        let routine = &self.procedures[call.procedure];
        let inside = match self.current {
            Some((current, inside)) if current == call.procedure => inside + 1,
            _ => 0,
        };
        let references = call.references.iter().map(|place| self.first_bit(place)).collect::<Result<Vec<u32>, _>>()?;
        let (caller, callee) = (self.frame, self.temps.len());
        self.temps.resize(callee + routine.temp_words, 0);
        for (own, input) in &call.inputs {
            let (source, target) = (self.first_bit(own)?, callee as u32 * 32 + input.bit);
            self.copy_bits((Memory::Temps, target), (own.memory, source), own.bits);
        }
        if inside > routine.recursion {
            return Err(Fault::Recursion(routine.recursion).into());
        }
        self.frame = callee;
        let current = self.current.replace((call.procedure, inside));
        let outer = std::mem::replace(&mut self.references, references);
        self.run(&routine.body)?;
        self.references = outer;
        self.current = current;
        self.frame = caller;
        for (own, output) in &call.outputs {
            let (source, target) = (callee as u32 * 32 + output.bit, self.first_bit(own)?);
            self.copy_bits((own.memory, target), (Memory::Temps, source), own.bits);
        }
        self.temps.truncate(callee);
        Ok(())
    }

    fn repeat(&mut self, limit: u32, body: &'a [Stmt]) -> Result<Flow, Stop<'a>> {
        let mut round = 0u64;
        // A state and temporaries that the loop began a round with, which lie twice as far back every time.
        let (mut kept, mut kept_at) = ((Vec::new(), Vec::new()), FIRST_LOOK);
        loop {
            if limit == UNLIMITED {
                // The rest of the command, too, depends on nothing else.
                if round > kept_at && kept.0 == self.state && kept.1 == self.temps {
                    return Err(Fault::Endless.into());
                }
                if round >= 2 * kept_at {
                    kept = (self.state.clone(), self.temps.clone());
                    kept_at = round;
                }
            } else if round == limit.into() {
                return Err(Fault::LoopLimit(limit).into());
            }
            round += 1;
            if !self.is_patient() {
                return Err(Stop::GaveUp);
            }
            if let Flow::Break(depth) = self.run(body)? {
                return Ok(leave(Flow::Break(depth)));
            }
        }
    }

    fn assign(&mut self, to: &'a Place, value: i64, narrow: Narrow) -> Result<(), Stop<'a>> {
        let scalar = to.scalar.expect("verified: only scalars are assigned");
        let bit = self.first_bit(to)?;
        if narrow == Narrow::Trap && !scalar.contains(value) {
            return Err(Fault::OutOfRange { place: &to.name, value, scalar }.into());
        }
        slot(bit, to.bits).store(self.memory_mut(to.memory), scalar.encode(value));
        Ok(())
    }

    fn copy(&mut self, to: &'a Place, from: &'a Place) -> Result<(), Stop<'a>> {
        let (target, source) = (self.first_bit(to)?, self.first_bit(from)?);
        self.copy_bits((to.memory, target), (from.memory, source), to.bits);
        Ok(())
    }

    fn copy_bits(&mut self, (to, target): (Memory, u32), (from, source): (Memory, u32), bits: u32) {
        if bits <= 32 {
            let raw = slot(source, bits).load(self.memory(from));
            slot(target, bits).store(self.memory_mut(to), raw);
        } else {
            for offset in 0..bits / 32 {
                let word = self.memory(from)[(source / 32 + offset) as usize];
                self.memory_mut(to)[(target / 32 + offset) as usize] = word;
            }
        }
    }

    fn reset(&mut self, place: &'a Place) -> Result<(), Stop<'a>> {
        let bit = self.first_bit(place)?;
        let memory = self.memory_mut(place.memory);
        if place.bits <= 32 {
            slot(bit, place.bits).store(memory, 0);
        } else {
            memory[(bit / 32) as usize..][..(place.bits / 32) as usize].fill(0);
        }
        Ok(())
    }

    /// By insertion; what is equal stays in order.
    fn sort(&mut self, sort: &'a Sort) -> Result<(), Stop<'a>> {
        let (first, memory, bits) = (self.first_bit(&sort.array)?, sort.array.memory, sort.bits);
        let start = |index: u32| first + index * sort.stride.bits;
        for next in 1..sort.stride.len {
            let mut at = next;
            while at > 0 && self.is_greater(memory, &sort.scalars, (start(at), start(at - 1))) {
                let held = self.words_at(memory, start(at), bits);
                self.copy_bits((memory, start(at)), (memory, start(at - 1)), bits);
                self.put_words(memory, start(at - 1), bits, &held);
                at -= 1;
            }
        }
        Ok(())
    }

    /// Is the element at one bit greater than that at the other?
    fn is_greater(&self, memory: Memory, scalars: &[(Slot, Scalar)], (one, other): (u32, u32)) -> bool {
        let value = |start: u32, (part, scalar): &(Slot, Scalar)| {
            let bit = start + part.word * 32 + part.shift;
            scalar.decode(slot(bit, part.bits).load(self.memory(memory)))
        };
        let values = |start: u32| scalars.iter().map(move |part| value(start, part));
        values(one).gt(values(other))
    }

    fn words_at(&self, memory: Memory, start: u32, bits: u32) -> Vec<u32> {
        match bits {
            ..=32 => vec![slot(start, bits).load(self.memory(memory))],
            _ => self.memory(memory)[(start / 32) as usize..][..(bits / 32) as usize].to_vec(),
        }
    }

    fn put_words(&mut self, memory: Memory, start: u32, bits: u32, words: &[u32]) {
        match bits {
            ..=32 => slot(start, bits).store(self.memory_mut(memory), words[0]),
            _ => self.memory_mut(memory)[(start / 32) as usize..][..words.len()].copy_from_slice(words),
        }
    }

    fn read(&self, place: &'a Place) -> Result<i64, Stop<'a>> {
        let scalar = place.scalar.expect("verified: only scalars are read");
        let bit = self.first_bit(place)?;
        Ok(scalar.decode(slot(bit, place.bits).load(self.memory(place.memory))))
    }

    /// Where a place starts, its indices evaluated and checked.
    fn first_bit(&self, place: &'a Place) -> Result<u32, Stop<'a>> {
        let start = match place.memory {
            Memory::State => 0,
            Memory::Temps => self.frame as u32 * 32,
            Memory::Reference(number) => self.references[number],
        };
        let mut bit = start + place.bit;
        for (expr, stride) in &place.indices {
            let index = self.eval(expr)?;
            if index < 0 || index >= stride.len as i64 {
                return Err(Fault::Index { place: &place.name, index, len: stride.len }.into());
            }
            bit += index as u32 * stride.bits;
        }
        Ok(bit)
    }

    fn memory(&self, memory: Memory) -> &[u32] {
        match memory {
            Memory::State | Memory::Reference(_) => &self.state,
            Memory::Temps => &self.temps,
        }
    }

    fn memory_mut(&mut self, memory: Memory) -> &mut [u32] {
        match memory {
            Memory::State | Memory::Reference(_) => &mut self.state,
            Memory::Temps => &mut self.temps,
        }
    }
}

/// The slot of a place of at most 32 bits.
fn slot(bit: u32, bits: u32) -> Slot {
    Slot { word: bit / 32, shift: bit % 32, bits }
}

/// What a break means outside the block or loop that it leaves first.
fn leave(flow: Flow) -> Flow {
    match flow {
        Flow::Next | Flow::Break(0) => Flow::Next,
        Flow::Break(depth) => Flow::Break(depth - 1),
    }
}
