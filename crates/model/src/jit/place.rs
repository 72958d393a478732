//! Loading and storing places.
//!
//! A place with constant indices is a fixed slot; one with dynamic indices is an address computed from
//! checked values. Strides are powers of two or whole words, so an element lies within an aligned unit of
//! 8, 16 or 32 bits, or (packed tighter than a byte) within a word at a computed shift.

use std::ops::Range as Span;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::Variable;
use plimsoll_ir::{Access as PathAccess, Narrow, Place, Root, Scalar, Stride, TempId};

use super::emit::{Emitter, Home, Reference, Val};
use super::range::Range;

/// A place whose indices have been evaluated and checked.
#[derive(Clone)]
pub(super) struct Located {
    root: Root,
    /// First bit, constant indices included.
    pub bit: u32,
    /// Dynamic indices with their strides in bits.
    pub moving: Vec<(Val, u32)>,
    /// Bytes to where a reference starts.
    offset: Option<Value>,
    pub bits: u32,
    /// All bits it may touch, whatever the dynamic indices are.
    pub reach: Span<u32>,
    pub scalar: Option<Scalar>,
}

/// The unit of memory that holds a place of at most 32 bits.
#[derive(Clone, Copy)]
struct Spot {
    base: Value,
    flags: MemFlagsData,
    byte: u32,
    /// 8, 16 or 32.
    unit: u32,
    shift: Shift,
}

#[derive(Clone, Copy)]
enum Shift {
    Fixed(u32),
    Moving(Value),
}

impl Located {
    /// Is it always the same bits?
    fn is_fixed(&self) -> bool {
        self.moving.is_empty() && self.offset.is_none()
    }
}

impl Emitter<'_, '_> {
    pub fn locate(&mut self, place: &Place) -> Located {
        let (system, layout) = (self.system, self.layout);
        let address = system.resolve(layout, &self.scope.layout, self.scope.locals, place);
        let (bit, bits, scalar) = (address.bit, address.bits, address.ty.as_scalar());
        let strides = address.strides;
        let reach = bit..bit + bits + strides.iter().map(|stride| (stride.len - 1) * stride.bits).sum::<u32>();
        let mut located = Located { root: place.root, bit, moving: Vec::new(), offset: None, bits, reach, scalar };
        if let Root::Reference(reference) = place.root {
            self.start_at_reference(&mut located, self.scope.references[reference.index()]);
        }
        let indices = place.path.iter().filter_map(|access| match access {
            PathAccess::Index(index) => Some(index),
            PathAccess::Field(_) => None,
        });
        for (index, stride) in indices.zip(strides) {
            let index = self.eval(index);
            let index = self.check_index(index, stride);
            match index.range.single() {
                Some(value) => located.bit += value as u32 * stride.bits,
                None => located.moving.push((index, stride.bits)),
            }
        }
        if located.is_fixed() {
            located.reach = located.bit..located.bit + bits;
        }
        located
    }

    fn start_at_reference(&mut self, located: &mut Located, reference: Reference) {
        located.reach = 0..self.layout.words() as u32 * 32;
        match reference.shift {
            Some(shift) => {
                located.bit += shift;
                located.offset = Some(reference.value);
            }
            None => located.moving.push((Val { value: reference.value, range: Range::of_bits(31, false) }, 1)),
        }
    }

    /// A whole temporary.
    pub fn whole_temp(&mut self, temp: usize) -> Located {
        self.locate(&TempId(temp as u32).into())
    }

    /// Where a part of the state lies: in bytes up to its word if it starts there at `shift`, else in bits.
    pub fn position(&mut self, located: &Located, shift: Option<u32>) -> Value {
        let (start, unit) = match shift {
            Some(_) => (located.bit / 32 * 4, 8),
            None => (located.bit, 1),
        };
        let mut position = self.b.ins().iconst(types::I64, start as i64);
        for &(index, stride) in &located.moving {
            let distance = self.scaled(index.value, stride / unit);
            position = self.b.ins().iadd(position, distance);
        }
        match located.offset {
            Some(offset) => {
                let offset = self.scaled(offset, 8 / unit);
                self.b.ins().iadd(position, offset)
            }
            None => position,
        }
    }

    /// The address of a place of whole words.
    pub fn address(&mut self, located: &Located) -> Value {
        let (base, _) = self.read_base(located);
        let base = self.moved(base, &located.moving);
        self.b.ins().iadd_imm_s(base, located.bit as i64 / 8)
    }

    fn check_index(&mut self, index: Val, stride: Stride) -> Val {
        let valid = Range::new(0, stride.len as i64 - 1);
        if index.range.within(valid) {
            return index;
        }
        let inside = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, index.value, stride.len as i64);
        self.fault_unless(inside);
        Val { value: index.value, range: index.range.clamp(valid) }
    }

    /// The scalar at a place.
    pub fn read(&mut self, place: &Place) -> Val {
        let located = self.locate(place);
        self.load_scalar(&located)
    }

    pub fn load_scalar(&mut self, located: &Located) -> Val {
        let scalar = located.scalar.expect("verified: only scalars are read");
        if let Some(Home::Register(variable, range)) = self.home(located) {
            return Val { value: self.b.use_var(variable), range };
        }
        if let Some((variable, shift)) = self.packed(located) {
            let bits = self.b.use_var(variable);
            let value = self.extract(bits, shift, located.bits, 32, scalar.is_signed());
            return Val { value, range: Range::of_field(&scalar) };
        }
        if located.is_fixed()
            && let Some(value) = self.known_field(located, &scalar)
        {
            return value;
        }
        let base = self.read_base(located);
        let spot = self.spot(located, base);
        let value = self.load_bits(&spot, located.bits, scalar.is_signed());
        Val { value, range: Range::of_field(&scalar) }
    }

    /// The bits of a place of at most 32 bits that is no scalar.
    pub fn load_raw(&mut self, located: &Located) -> Value {
        if let Some((variable, shift)) = self.packed(located) {
            let bits = self.b.use_var(variable);
            return self.extract(bits, shift, located.bits, 32, false);
        }
        let base = self.read_base(located);
        let spot = self.spot(located, base);
        self.load_bits(&spot, located.bits, false)
    }

    /// The register that holds the bits of a temporary, and where in it the place starts.
    fn packed(&self, located: &Located) -> Option<(Variable, u32)> {
        match (located.root, self.home(located)?) {
            (Root::Temp(temp), Home::Packed(variable)) => {
                Some((variable, located.bit - self.scope.layout.root_bit(temp.index())))
            }
            _ => None,
        }
    }

    fn home(&self, located: &Located) -> Option<Home> {
        match located.root {
            Root::Temp(temp) => Some(self.scope.homes[temp.index()]),
            Root::Var(_) | Root::Reference(_) => None,
        }
    }

    /// A fixed scalar of the state whose value is in a register.
    fn known_field(&mut self, located: &Located, scalar: &Scalar) -> Option<Val> {
        let Root::Var(_) = located.root else { return None };
        let written = self.scope.body.as_ref().is_some_and(|body| body.known.is_written(located.reach.clone()));
        if let Some((_, value)) = self.turn.filter(|&(bit, _)| bit == located.bit && !written) {
            return Some(self.constant(value));
        }
        let known = &self.scope.body.as_ref()?.known;
        if let Some(value) = known.field(located.bit) {
            return Some(value);
        }
        let word = known.word(located.bit / 32)?;
        let value = self.extract(word, located.bit % 32, located.bits, 32, scalar.is_signed());
        Some(Val { value, range: Range::of_field(scalar) })
    }

    /// The memory to read a place from: the source as long as the successor cannot differ.
    pub fn read_base(&mut self, located: &Located) -> (Value, MemFlagsData) {
        match (located.root, &self.scope.body) {
            (Root::Reference(_), _) => self.write_base(located),
            (Root::Var(_), _) => self.state_base(located.reach.clone()),
            (Root::Temp(_), _) => self.temp_base(),
        }
    }

    fn state_base(&self, reach: Span<u32>) -> (Value, MemFlagsData) {
        match &self.scope.body {
            Some(body) if body.known.is_written(reach) => (body.out, self.access.out),
            _ => (self.source, self.access.source),
        }
    }

    pub fn write_base(&mut self, located: &Located) -> (Value, MemFlagsData) {
        if let Root::Temp(_) = located.root {
            return self.temp_base();
        }
        let body = self.scope.body.as_ref().expect("verified: only bodies write to the state");
        let out = body.out;
        let base = located.offset.map_or(out, |offset| self.b.ins().iadd(out, offset));
        (base, self.access.out)
    }

    fn temp_base(&mut self) -> (Value, MemFlagsData) {
        let slot = self.scope.slot.expect("temporaries in memory have a slot");
        (self.b.ins().stack_addr(types::I64, slot, 0), self.access.temps)
    }

    /// Assigns to a scalar; a trapping store out of range faults.
    pub fn assign(&mut self, to: &Place, value: Val, narrow: Narrow) {
        let located = self.locate(to);
        let scalar = located.scalar.expect("verified: only scalars are assigned");
        let value = match narrow {
            Narrow::Trap => self.check_range(value, &scalar),
            Narrow::Wrap => self.wrap(value, scalar.bits() as u8, scalar.is_signed()),
        };
        self.store_scalar(&located, value);
    }

    fn check_range(&mut self, value: Val, scalar: &Scalar) -> Val {
        let valid = Range::new(scalar.low, scalar.high);
        if value.range.within(valid) {
            return value;
        }
        let inside = if value.range.low >= scalar.low {
            self.b.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, value.value, scalar.high)
        } else if value.range.high <= scalar.high {
            self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, value.value, scalar.low)
        } else {
            let offset = self.b.ins().iadd_imm_s(value.value, -scalar.low);
            self.b.ins().icmp_imm_s(IntCC::UnsignedLessThanOrEqual, offset, scalar.high - scalar.low)
        };
        self.fault_unless(inside);
        Val { value: value.value, range: value.range.clamp(valid) }
    }

    /// Stores a value that is known to fit.
    pub fn store_scalar(&mut self, located: &Located, value: Val) {
        if let Some(Home::Register(variable, _)) = self.home(located) {
            self.b.def_var(variable, value.value);
            return;
        }
        self.store_raw(located, value);
        if located.is_fixed()
            && let (Root::Var(_), Some(body)) = (located.root, &mut self.scope.body)
        {
            body.known.learn_field(located.bit, value);
        }
    }

    /// Stores the low bits of a value into a place of at most 32 bits.
    pub fn store_raw(&mut self, located: &Located, value: Val) {
        if let Some((variable, shift)) = self.packed(located) {
            let old = self.b.use_var(variable);
            let new = self.insert_bits(old, shift, located.bits, value);
            return self.b.def_var(variable, new);
        }
        if let (Root::Var(_), true) = (located.root, located.is_fixed()) {
            return self.store_fixed(located, value);
        }
        let base = self.write_base(located);
        let spot = self.spot(located, base);
        self.store_bits(&spot, located.bits, value);
        self.forget(located);
    }

    pub fn forget(&mut self, located: &Located) {
        if let (Root::Var(_) | Root::Reference(_), Some(body)) = (located.root, &mut self.scope.body) {
            body.known.forget(located.reach.clone());
        }
    }

    /// Stores into a fixed slot of the successor, keeping the word it lies in at hand.
    fn store_fixed(&mut self, located: &Located, value: Val) {
        let base = self.write_base(located);
        let spot = self.spot(located, base);
        if is_bytes(located.bit, located.bits) {
            self.store_bits(&spot, located.bits, value);
            return self.forget(located);
        }
        let (word, shift) = (located.bit / 32, located.bit % 32);
        let body = self.scope.body.as_ref().expect("verified: only bodies write to the state");
        let old = match body.known.word(word) {
            Some(old) => old,
            None => {
                let (base, flags) = self.state_base(word * 32..word * 32 + 32);
                self.b.ins().uload32(flags, base, word as i32 * 4)
            }
        };
        let new = self.insert_bits(old, shift, located.bits, value);
        self.b.ins().istore32(spot.flags, new, spot.base, word as i32 * 4);
        self.forget(located);
        if let Some(body) = &mut self.scope.body {
            body.known.learn_word(word, new);
        }
    }

    /// Copies between places of equal shape.
    pub fn copy(&mut self, to: &Place, from: &Place) {
        let (to, from) = (self.locate(to), self.locate(from));
        if from.scalar.is_some() {
            let value = self.load_scalar(&from);
            self.store_scalar(&to, value);
        } else if from.bits <= 32 {
            let value = self.load_raw(&from);
            self.store_raw(&to, Val { value, range: Range::of_bits(from.bits, false) });
        } else {
            let (source, source_flags) = self.read_base(&from);
            let (target, target_flags) = self.write_base(&to);
            let source = self.moved(source, &from.moving);
            let target = self.moved(target, &to.moving);
            let words = (from.bits / 32) as usize;
            self.copy_words((target, target_flags), to.bit / 8, (source, source_flags), from.bit / 8, words);
            self.forget(&to);
        }
    }

    /// Zeroes a place.
    pub fn reset(&mut self, place: &Place) {
        let located = self.locate(place);
        let zero = self.constant(0);
        if located.scalar.is_some() {
            self.store_scalar(&located, zero);
        } else if located.bits <= 32 {
            self.store_raw(&located, zero);
        } else {
            let (base, flags) = self.write_base(&located);
            let base = self.moved(base, &located.moving);
            self.zero_words((base, flags), located.bit / 8, (located.bits / 32) as usize);
            self.forget(&located);
        }
    }

    /// `base` moved by dynamic indices whose strides are whole bytes.
    pub fn moved(&mut self, mut base: Value, moving: &[(Val, u32)]) -> Value {
        for &(index, stride) in moving {
            let offset = self.scaled(index.value, stride / 8);
            base = self.b.ins().iadd(base, offset);
        }
        base
    }

    fn scaled(&mut self, value: Value, factor: u32) -> Value {
        match factor {
            1 => value,
            _ if factor.is_power_of_two() => self.b.ins().ishl_imm_u(value, factor.trailing_zeros() as i64),
            _ => self.b.ins().imul_imm_s(value, factor as i64),
        }
    }

    /// The unit that holds a located place of at most 32 bits.
    fn spot(&mut self, located: &Located, (base, flags): (Value, MemFlagsData)) -> Spot {
        let unit = located.moving.iter().map(|&(_, stride)| stride).min().unwrap_or(32).min(32);
        if unit >= 8 {
            let base = self.moved(base, &located.moving);
            let shift = located.bit % unit;
            debug_assert!(shift + located.bits <= unit, "no place straddles its unit");
            return Spot { base, flags, byte: located.bit / unit * (unit / 8), unit, shift: Shift::Fixed(shift) };
        }
        let mut bit = self.b.ins().iconst(types::I64, located.bit as i64);
        for &(index, stride) in &located.moving {
            let offset = self.scaled(index.value, stride);
            bit = self.b.ins().iadd(bit, offset);
        }
        let word = self.b.ins().ushr_imm_u(bit, 5);
        let byte = self.b.ins().ishl_imm_u(word, 2);
        let base = self.b.ins().iadd(base, byte);
        let shift = self.b.ins().band_imm_u(bit, 31);
        Spot { base, flags, byte: 0, unit: 32, shift: Shift::Moving(shift) }
    }

    fn load_bits(&mut self, spot: &Spot, bits: u32, signed: bool) -> Value {
        let shift = match spot.shift {
            Shift::Fixed(shift) => shift,
            Shift::Moving(shift) => {
                let word = self.b.ins().uload32(spot.flags, spot.base, spot.byte as i32);
                let value = self.b.ins().ushr(word, shift);
                return self.extract(value, 0, bits, 64, signed);
            }
        };
        let byte = (spot.byte + shift / 8) as i32;
        if is_bytes(shift, bits) {
            let (flags, base) = (spot.flags, spot.base);
            return match (bits, signed) {
                (8, false) => self.b.ins().uload8(types::I64, flags, base, byte),
                (8, true) => self.b.ins().sload8(types::I64, flags, base, byte),
                (16, false) => self.b.ins().uload16(types::I64, flags, base, byte),
                (16, true) => self.b.ins().sload16(types::I64, flags, base, byte),
                (_, false) => self.b.ins().uload32(flags, base, byte),
                (_, true) => self.b.ins().sload32(flags, base, byte),
            };
        }
        if shift % 8 + bits <= 8 {
            let value = self.b.ins().uload8(types::I64, spot.flags, spot.base, byte);
            return self.extract(value, shift % 8, bits, 8, signed);
        }
        let value = self.load_unit(spot);
        self.extract(value, shift, bits, spot.unit, signed)
    }

    fn load_unit(&mut self, spot: &Spot) -> Value {
        match spot.unit {
            8 => self.b.ins().uload8(types::I64, spot.flags, spot.base, spot.byte as i32),
            16 => self.b.ins().uload16(types::I64, spot.flags, spot.base, spot.byte as i32),
            _ => self.b.ins().uload32(spot.flags, spot.base, spot.byte as i32),
        }
    }

    fn store_unit(&mut self, spot: &Spot, value: Value) {
        match spot.unit {
            8 => self.b.ins().istore8(spot.flags, value, spot.base, spot.byte as i32),
            16 => self.b.ins().istore16(spot.flags, value, spot.base, spot.byte as i32),
            _ => self.b.ins().istore32(spot.flags, value, spot.base, spot.byte as i32),
        };
    }

    fn store_bits(&mut self, spot: &Spot, bits: u32, value: Val) {
        match spot.shift {
            Shift::Fixed(shift) if is_bytes(shift, bits) => {
                self.store_unit(&Spot { byte: spot.byte + shift / 8, unit: bits, ..*spot }, value.value);
            }
            Shift::Fixed(shift) => {
                let old = self.load_unit(spot);
                let new = self.insert_bits(old, shift, bits, value);
                self.store_unit(spot, new);
            }
            Shift::Moving(shift) => {
                let old = self.load_unit(spot);
                let mask = self.b.ins().iconst(types::I64, mask(bits));
                let mask = self.b.ins().ishl(mask, shift);
                let others = self.b.ins().bnot(mask);
                let kept = self.b.ins().band(old, others);
                let low = self.low_bits(value, bits);
                let placed = self.b.ins().ishl(low, shift);
                let new = self.b.ins().bor(kept, placed);
                self.store_unit(spot, new);
            }
        }
    }

    /// `old` with `bits` bits at `shift` replaced.
    fn insert_bits(&mut self, old: Value, shift: u32, bits: u32, value: Val) -> Value {
        let kept = self.b.ins().band_imm_u(old, 0xffff_ffff & !(mask(bits) << shift));
        let low = self.low_bits(value, bits);
        let placed = if shift == 0 { low } else { self.b.ins().ishl_imm_u(low, shift as i64) };
        self.b.ins().bor(kept, placed)
    }

    fn low_bits(&mut self, value: Val, bits: u32) -> Value {
        if value.range.within(Range::of_bits(bits, false)) {
            return value.value;
        }
        self.b.ins().band_imm_u(value.value, mask(bits))
    }

    /// `bits` bits at `shift` of a zero-extended value of `width` bits.
    pub fn extract(&mut self, value: Value, shift: u32, bits: u32, width: u32, signed: bool) -> Value {
        if signed {
            let top = self.b.ins().ishl_imm_u(value, (64 - shift - bits) as i64);
            return self.b.ins().sshr_imm_u(top, (64 - bits) as i64);
        }
        let low = if shift == 0 { value } else { self.b.ins().ushr_imm_u(value, shift as i64) };
        if shift + bits < width { self.b.ins().band_imm_u(low, mask(bits)) } else { low }
    }
}

fn mask(bits: u32) -> i64 {
    (1i64 << bits) - 1
}

/// Can a slot be accessed by a plain load or store of its own size?
fn is_bytes(shift: u32, bits: u32) -> bool {
    matches!(bits, 8 | 16 | 32) && shift.is_multiple_of(bits)
}
