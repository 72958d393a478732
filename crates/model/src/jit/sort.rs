//! Sorting an array in place, by insertion: most arrays are in order but for one or two elements.
//!
//! Where the scalars of an element lie in one word, in order and without signs or gaps, the bits of the element are compared
//! as one number; else scalar by scalar. An array of flags is sorted by counting them. Where elements are bytes, halves of words or
//! words, one look at sixteen bytes tells whether they are in order already. That is asked where the array is one of several, of which
//! rules change one or two; a look at what was just written would have to wait for it.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, ConstantData, Endianness, InstBuilder, MemFlagsData, Value, types};
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
        let sorted = self.fresh();
        self.leave_if_sorted(elements, sorted);
        self.sort_keys_one_by_one(elements);
        self.b.ins().jump(sorted, &[]);
        self.b.switch_to_block(sorted);
    }

    /// Goes to `sorted` if one look tells that the elements are in order.
    fn leave_if_sorted(&mut self, elements: &Elements, sorted: Block) {
        let Elements { array, pitch, bits, len } = elements;
        let lane = match pitch {
            8 => types::I8X16,
            16 => types::I16X8,
            32 => types::I32X4,
            _ => return,
        };
        let lanes = 128 / pitch;
        let has_address =
            array.bit.is_multiple_of(8) && array.moving.iter().all(|(_, stride)| stride.is_multiple_of(8));
        if *len < lanes || array.moving.is_empty() || !has_address {
            return;
        }
        // Each element beside the next one; the last beside itself.
        let beside = (0..16).map(|byte: u8| if byte < 16 - *pitch as u8 / 8 { byte + *pitch as u8 / 8 } else { byte });
        let beside = self.b.func.dfg.immediates.push(ConstantData::from(&beside.collect::<Vec<_>>()[..]));
        let (base, flags) = self.read_base(array);
        let base = self.moved(base, &array.moving);
        let last = len - lanes;
        let starts = (0..last).step_by(lanes as usize - 1).chain([last]);
        let (little, mut disorder) = (MemFlagsData::new().with_endianness(Endianness::Little), None);
        for start in starts {
            let byte = (array.bit + start * pitch) / 8;
            let mut here = self.b.ins().load(lane, flags, base, byte as i32);
            if bits < pitch {
                let mask = self.b.ins().iconst(lane.lane_type(), (1i64 << bits) - 1);
                let mask = self.b.ins().splat(lane, mask);
                here = self.b.ins().band(here, mask);
            }
            let bytes = self.b.ins().bitcast(types::I8X16, little, here);
            let next = self.b.ins().shuffle(bytes, bytes, beside);
            let next = self.b.ins().bitcast(lane, little, next);
            let greater = self.b.ins().icmp(IntCC::UnsignedGreaterThan, next, here);
            disorder = Some(disorder.map_or(greater, |disorder| self.b.ins().bor(disorder, greater)));
        }
        let Some(disorder) = disorder else { return };
        let (any, go_on) = (self.b.ins().vany_true(disorder), self.fresh());
        self.b.ins().brif(any, go_on, &[], sorted, &[]);
        self.b.switch_to_block(go_on);
    }

    fn sort_keys_one_by_one(&mut self, elements: &Elements) {
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

#[cfg(test)]
mod tests {
    use crate::{Jit, Model, Successors};
    use plimsoll_ir::random::Draw;

    /// Arrays of all pitches, in order, almost in order and in disorder, whatever lies in the bits that they leave.
    #[test]
    fn arrays_that_one_look_takes_in_are_sorted_as_the_interpreter_does_it() {
        let elements = [
            (8, "0..8000"),
            (9, "0..65535"),
            (4, "0..2000000000"),
            (6, "-2000000000..2000000000"),
            (17, "0..200"),
            (40, "0..100"),
            (7, "0..40000"),
        ];
        let records = [(8, "{ x: 0..15, y: 0..500 }"), (5, "{ x: 0..70000, y: 0..15 }"), (30, "{ x: 0..3, y: 0..63 }")];
        for (seed, (len, ty)) in elements.into_iter().chain(records).enumerate() {
            let text = format!(
                "system \"t\" var g: 0..255 var s: [2] {{ a: [{len}] {ty}, u: 0..1 }}
                command \"c\" {{ temp i: 0..1 choose i in 0..1 do {{ sort s[i].a; }} }}
                command \"d\" {{ do {{ sort s[1].a; }} }}"
            );
            let jit = Jit::new(plimsoll_ir::text::parse(&text).unwrap()).unwrap();
            let mut draw = Draw::new(seed as u64);
            let (mut expected, mut found) = (Successors::new(jit.width()), Successors::new(jit.width()));
            let mut state = vec![0; jit.width()];
            let mut in_order = 0;
            for round in 0..400 {
                expected.clear();
                found.clear();
                jit.interp().successors(&state, &mut expected);
                jit.successors(&state, &mut found);
                assert_eq!((expected.states(), expected.steps()), (found.states(), found.steps()), "[{len}] {ty}");
                in_order += (expected.state(2) == state) as u32;
                state.copy_from_slice(expected.state(draw.below(2) as usize));
                for word in &mut state {
                    if round % 7 == 0 || draw.below(10) == 0 {
                        *word = draw.bits() as u32 >> draw.below(32);
                    }
                }
            }
            assert!((1..400).contains(&in_order), "[{len}] {ty}: {in_order} times in order");
        }
    }
}
