//! Sorting an array in place, by insertion: most arrays are in order but for one or two elements.
//!
//! Where the scalars of an element lie in one word, in order and without signs or gaps, the bits of the element are compared
//! as one number; else scalar by scalar. An array of flags is sorted by counting them.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use plimsoll_ir::layout::{pitch, scalars, size_bits};
use plimsoll_ir::{Place, Scalar, Slot, Type};

use super::emit::{Emitter, Val};
use super::place::Located;
use super::range::Range;

impl Emitter<'_, '_> {
    pub fn sort(&mut self, place: &Place) {
        let array = self.locate(place);
        let Type::Array { element, len } = self.system.type_of(self.scope.locals, place) else {
            unreachable!("verified: only arrays are sorted")
        };
        let parts: Vec<(Slot, Scalar)> = scalars(element).collect();
        let is_flag = matches!(&parts[..], [(_, scalar)] if scalar.bits() == 1 && !scalar.is_signed());
        if is_flag && pitch(element) == 1 && array.bits <= 32 {
            return self.sort_flags(&array, *len);
        }
        if *len < 2 {
            return;
        }
        // From here on everything is read from where it is written.
        self.forget(&array);
        let start = |part: &(Slot, Scalar)| part.0.word * 32 + part.0.shift;
        let in_order = parts.is_sorted_by_key(start) && parts.iter().all(|(_, scalar)| !scalar.is_signed());
        let no_gaps = parts.iter().map(|(slot, _)| slot.bits).sum::<u32>() == size_bits(element);
        let elements = Elements { array, pitch: pitch(element), bits: size_bits(element), len: *len };
        if in_order && no_gaps && elements.bits <= 32 {
            self.sort_keys(&elements)
        } else {
            self.sort_parts(&elements, &parts)
        }
    }

    fn sort_flags(&mut self, array: &Located, len: u32) {
        let flags = self.load_raw(array);
        let count = self.b.ins().popcnt(flags);
        let one = self.b.ins().iconst(types::I64, 1);
        let above = self.b.ins().ishl(one, count);
        let value = self.b.ins().iadd_imm_s(above, -1);
        self.store_raw(array, Val { value, range: Range::of_bits(len, false) });
    }

    /// A loop over all elements but the first; `body` ends where control goes on with the next one.
    fn each_next(&mut self, len: u32, body: impl FnOnce(&mut Self, Value, Block)) {
        let (head, after, next) = (self.fresh(), self.fresh(), self.fresh());
        let at = self.b.append_block_param(head, types::I64);
        let first = self.b.ins().iconst(types::I64, 1);
        self.b.ins().jump(head, &[first.into()]);
        self.b.switch_to_block(head);
        body(self, at, next);
        self.b.switch_to_block(next);
        let following = self.b.ins().iadd_imm_s(at, 1);
        let more = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, following, len as i64);
        self.b.ins().brif(more, head, &[following.into()], after, &[]);
        self.b.switch_to_block(after);
    }

    fn sort_keys(&mut self, elements: &Elements) {
        self.each_next(elements.len, |emitter, next, done| {
            let key = emitter.load_raw(&elements.at(next));
            let (shift, more, put) = (emitter.fresh(), emitter.fresh(), emitter.fresh());
            let at = emitter.b.append_block_param(shift, types::I64);
            let before = emitter.b.append_block_param(shift, types::I64);
            let place = emitter.b.append_block_param(put, types::I64);
            let (previous, greater) = emitter.previous_key(elements, next, key);
            emitter.b.ins().brif(greater, shift, &[next.into(), previous.into()], done, &[]);
            emitter.b.switch_to_block(shift);
            let range = Range::of_bits(elements.bits, false);
            emitter.store_raw(&elements.at(at), Val { value: before, range });
            let lower = emitter.b.ins().iadd_imm_s(at, -1);
            emitter.b.ins().brif(lower, more, &[], put, &[lower.into()]);
            emitter.b.switch_to_block(more);
            let (previous, greater) = emitter.previous_key(elements, lower, key);
            emitter.b.ins().brif(greater, shift, &[lower.into(), previous.into()], put, &[lower.into()]);
            emitter.b.switch_to_block(put);
            emitter.store_raw(&elements.at(place), Val { value: key, range });
            emitter.b.ins().jump(done, &[]);
        });
    }

    /// The bits of the element before `at`, and whether `key` is greater.
    fn previous_key(&mut self, elements: &Elements, at: Value, key: Value) -> (Value, Value) {
        let index = self.b.ins().iadd_imm_s(at, -1);
        let previous = self.load_raw(&elements.at(index));
        (previous, self.b.ins().icmp(IntCC::UnsignedGreaterThan, key, previous))
    }

    fn sort_parts(&mut self, elements: &Elements, parts: &[(Slot, Scalar)]) {
        self.each_next(elements.len, |emitter, next, done| {
            let (head, swap, lower) = (emitter.fresh(), emitter.fresh(), emitter.fresh());
            let at = emitter.b.append_block_param(head, types::I64);
            emitter.b.ins().jump(head, &[next.into()]);
            emitter.b.switch_to_block(head);
            let before = emitter.b.ins().iadd_imm_s(at, -1);
            for (slot, scalar) in parts.iter().rev() {
                let (equal, differ) = (emitter.fresh(), emitter.fresh());
                let one = emitter.load_scalar(&elements.part(at, slot, scalar)).value;
                let other = emitter.load_scalar(&elements.part(before, slot, scalar)).value;
                let same = emitter.b.ins().icmp(IntCC::Equal, one, other);
                emitter.b.ins().brif(same, equal, &[], differ, &[]);
                emitter.b.switch_to_block(differ);
                let greater = emitter.b.ins().icmp(IntCC::SignedGreaterThan, one, other);
                emitter.b.ins().brif(greater, swap, &[], done, &[]);
                emitter.b.switch_to_block(equal);
            }
            emitter.b.ins().jump(done, &[]);
            emitter.b.switch_to_block(swap);
            emitter.swap(elements, at, before);
            emitter.b.ins().brif(before, lower, &[], done, &[]);
            emitter.b.switch_to_block(lower);
            emitter.b.ins().jump(head, &[before.into()]);
        });
    }

    fn swap(&mut self, elements: &Elements, one: Value, other: Value) {
        for word in 0..elements.bits.div_ceil(32) {
            let bits = elements.bits.min(32);
            let (first, second) = (elements.word(one, word, bits), elements.word(other, word, bits));
            let (left, right) = (self.load_raw(&first), self.load_raw(&second));
            let range = Range::of_bits(bits, false);
            self.store_raw(&first, Val { value: right, range });
            self.store_raw(&second, Val { value: left, range });
        }
    }
}

/// The elements of an array.
struct Elements {
    array: Located,
    pitch: u32,
    bits: u32,
    len: u32,
}

impl Elements {
    fn at(&self, index: Value) -> Located {
        self.inside(index, 0, self.bits, None)
    }

    fn part(&self, index: Value, slot: &Slot, scalar: &Scalar) -> Located {
        self.inside(index, slot.word * 32 + slot.shift, slot.bits, Some(*scalar))
    }

    fn word(&self, index: Value, word: u32, bits: u32) -> Located {
        self.inside(index, word * 32, bits, None)
    }

    fn inside(&self, index: Value, bit: u32, bits: u32, scalar: Option<Scalar>) -> Located {
        let mut located = self.array.clone();
        located.bit += bit;
        located.bits = bits;
        located.scalar = scalar;
        located.moving.push((Val { value: index, range: Range::new(0, self.len as i64 - 1) }, self.pitch));
        located
    }
}
