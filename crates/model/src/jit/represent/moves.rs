//! Pieces: taking them from the words of a state, renaming their elements, and putting them back.

use std::collections::{BTreeMap, HashMap};

use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::emit::{Element, Emit, Entry, flags};
use crate::symmetry::pieces::{Lies, Move, Pointer};

impl Emit<'_, '_> {
    /// Takes the pieces from the words of the state.
    pub fn load(&mut self) {
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
        }
    }

    /// Keeps the pieces where code that goes round can read them.
    pub fn keep(&mut self) {
        for piece in 0..self.values.len() {
            self.set(self.entry(self.plan.values + piece), self.values[piece]);
        }
    }

    /// By how much the number of an element changes.
    pub fn by(&mut self, element: usize) -> Value {
        if !self.several.contains(&element) {
            return self.constant(0);
        }
        let Element { place, number, .. } = self.elements[element];
        let place = self.b.use_var(place);
        self.b.ins().iadd_imm_s(place, -(number as i64))
    }

    /// Writes all pieces with their elements renamed.
    pub fn rename(&mut self, by: &[Value]) {
        let pieces = self.pieces;
        for (element, &by) in by.iter().enumerate() {
            self.set(self.entry_of(self.plan.by, element), by);
        }
        for (number, piece) in pieces.all.iter().enumerate() {
            let value = self.get(self.entry(self.plan.values + number));
            let renamed = self.b.declare_var(types::I64);
            self.b.def_var(renamed, value);
            let after = (piece.place == Lies::Alone).then(|| self.skip_unless(value));
            let (of_two, others): (Vec<&Pointer>, Vec<&Pointer>) =
                pieces.pointers(piece).iter().partition(|pointer| pointer.names_only && pointer.count == 2);
            for fields in of_two.chunk_by(|one, other| one.element == other.element) {
                let swapped = self.swapped(value, fields, by[fields[0].element as usize]);
                let before = self.b.use_var(renamed);
                let now = self.b.ins().bxor(before, swapped);
                self.b.def_var(renamed, now);
            }
            self.in_groups(value, &others, |emit, pointer| {
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

    /// The bits that change where fields hold names of two elements, given by how much the number of the first changes: one and two.
    pub fn swapped(&mut self, value: Value, fields: &[&Pointer], by: Value) -> Value {
        let named = self.not_zero(value, fields);
        let both = self.b.ins().imul_imm_s(named, 3);
        let mask = self.b.ins().ineg(by);
        self.b.ins().band(both, mask)
    }

    /// Puts the pieces that were renamed back into the words of the state.
    pub fn put_renamed(&mut self) {
        self.put_words(|emit, piece| emit.get(emit.entry(emit.plan.out + piece)));
    }

    /// Puts pieces into the words of the state.
    pub fn put_words(&mut self, mut value: impl FnMut(&mut Self, usize) -> Value) {
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
                let value = value(self, step.piece as usize);
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

/// Do bits of a word move towards higher ones to take their place in a piece?
fn is_left(step: &Move) -> bool {
    step.mask.leading_zeros() + 32 >= step.turn
}
