//! Representatives where nothing relates elements of a set to one another: what `symmetry/plain.rs` does, with hardly a branch.
//!
//! Keys are sorted by a network of comparisons, and pieces and names are read off them again. Who is named is found for all fields at once: the
//! first bits of all of them lie side by side in one number, the second ones in another, and so on.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Variable;

use super::emit::Emit;
use crate::symmetry::pieces::Pointer;
use crate::symmetry::plain::{Key, Named, Plain};

/// Keys of a set.
struct Keys {
    /// For each element the lowest bits of the fields that name it.
    naming: Vec<Value>,
    keys: Vec<Value>,
}

impl Emit<'_, '_> {
    /// Replaces the state, whose pieces are known, and goes on to the next, or to `undecided` if leaders are not told apart.
    pub fn represent_plain(&mut self, plain: &Plain, next: Block, undecided: Block) {
        let before = self.values.clone();
        let mut change = self.b.ins().iconst(types::I8, 0);
        for key in &plain.leaders {
            let swapped = self.order_leaders(key, undecided);
            change = self.b.ins().bor(change, swapped);
        }
        let moved = self.b.create_block();
        let mut all = Vec::new();
        for key in &plain.sorted {
            let keys = self.keys(key);
            for pair in keys.keys.windows(2) {
                let disorder = self.b.ins().icmp(IntCC::UnsignedLessThan, pair[1], pair[0]);
                change = self.b.ins().bor(change, disorder);
            }
            all.push(keys);
        }
        self.b.ins().brif(change, moved, &[], next, &[]);
        self.b.switch_to_block(moved);
        for (key, mut keys) in plain.sorted.iter().zip(all) {
            self.sort(&mut keys.keys);
            self.read_off(key, &keys);
        }
        self.put_words(|emit, piece| emit.values[piece]);
        self.b.ins().jump(next, &[]);
        self.values = before;
    }

    /// Puts leaders in order; says whether they were not.
    fn order_leaders(&mut self, key: &Key, undecided: Block) -> Value {
        let keys = self.keys(key).keys;
        let [decided, swapping, ordered] = [(); 3].map(|()| self.b.create_block());
        let differ = self.b.ins().bxor(keys[0], keys[1]);
        self.b.ins().brif(differ, decided, &[], undecided, &[]);
        self.b.switch_to_block(decided);
        let swap = self.b.ins().icmp(IntCC::UnsignedLessThan, keys[0], keys[1]);
        let names = |piece| self.pieces.pointers(piece).iter().filter(|pointer| pointer.element == key.elements.start);
        let named =
            self.pieces.all.iter().enumerate().map(|(number, piece)| (number, names(piece).collect::<Vec<_>>()));
        let named: Vec<(usize, Vec<&Pointer>)> = named.filter(|(_, names)| !names.is_empty()).collect();
        let after: Vec<Variable> = named.iter().map(|_| self.b.declare_var(types::I64)).collect();
        for ((number, _), &after) in named.iter().zip(&after) {
            self.b.def_var(after, self.values[*number]);
        }
        // Rarely the case, for the state that the step was taken in is a representative.
        self.b.ins().brif(swap, swapping, &[], ordered, &[]);
        self.b.switch_to_block(swapping);
        let one = self.constant(1);
        for ((number, names), &after) in named.iter().zip(&after) {
            let swapped = self.swapped(self.values[*number], names, one);
            let value = self.b.ins().bxor(self.values[*number], swapped);
            self.b.def_var(after, value);
        }
        self.b.ins().jump(ordered, &[]);
        self.b.switch_to_block(ordered);
        for ((number, _), after) in named.iter().zip(after) {
            self.values[*number] = self.b.use_var(after);
        }
        swap
    }

    /// The keys of all elements of a set.
    fn keys(&mut self, key: &Key) -> Keys {
        let planes = self.planes(key);
        let mut keys = Keys { naming: Vec::new(), keys: Vec::new() };
        for place in 0..key.elements.len() {
            let naming = self.naming_from(key, &planes, place as u32);
            let own = key
                .own
                .get(place)
                .map(|&piece| self.b.ins().ishl_imm_u(self.values[piece as usize], i64::from(key.shift)));
            keys.naming.push(naming);
            keys.keys.push(own.map_or(naming, |own| self.b.ins().bor(own, naming)));
        }
        keys
    }

    /// The first bits of all fields that may name elements, side by side as they are in keys; the second bits, and so on.
    fn planes(&mut self, key: &Key) -> Vec<Value> {
        let masks = key.named.iter().flat_map(|named| &named.fields).map(|field| field.mask.count_ones());
        let plane = |bit: u32| {
            let mut all = self.constant(0);
            for named in &key.named {
                let here = named.fields.iter().filter(|field| field.mask >> bit != 0);
                let here = here.fold(0, |all, field| all | 1u64 << field.shift).rotate_left(named.turn);
                let turned = self.turned(self.values[named.piece as usize], u64::BITS + named.turn - bit);
                let turned = self.b.ins().band_imm_u(turned, here as i64);
                all = self.b.ins().bor(all, turned);
            }
            all
        };
        (0..masks.max().unwrap_or(0)).map(plane).collect()
    }

    /// The lowest bits of fields that name the element at this place.
    fn naming_from(&mut self, key: &Key, planes: &[Value], place: u32) -> Value {
        let mut fields = key.named.iter().flat_map(|named| &named.fields);
        if fields.all(|field| field.names_only && field.count == 2) {
            // Each name is a bit.
            return planes.get(place as usize).copied().unwrap_or_else(|| self.constant(0));
        }
        let mut others = self.constant(0);
        for (bit, &plane) in planes.iter().enumerate() {
            let name = |named: &Named| {
                let fields = named.fields.iter().filter(|field| (field.first + place) >> bit & 1 != 0);
                fields.fold(0, |all, field| all | 1u64 << field.shift).rotate_left(named.turn)
            };
            let name = self.constant(key.named.iter().map(name).fold(0, |all, bits| all | bits));
            let other = self.b.ins().bxor(plane, name);
            others = self.b.ins().bor(others, other);
        }
        let lowest = key.named.iter().map(|named| named.lowest().rotate_left(named.turn));
        let lowest = self.constant(lowest.fold(0, |all, bits| all | bits));
        self.b.ins().band_not(lowest, others)
    }

    /// Sorts by comparing pairs that do not depend on what came out before (K. E. Batcher: Sorting networks and their applications, 1968).
    fn sort(&mut self, keys: &mut [Value]) {
        let count = keys.len();
        for merged in std::iter::successors(Some(1), |merged| Some(merged * 2)).take_while(|&merged| merged < count) {
            let apart = std::iter::successors(Some(merged), |apart| Some(apart / 2)).take_while(|&apart| apart > 0);
            for apart in apart {
                for start in (apart % merged..count - apart).step_by(2 * apart) {
                    for low in start..(start + apart).min(count - apart) {
                        if low / (2 * merged) == (low + apart) / (2 * merged) {
                            self.exchange(keys, low, low + apart);
                        }
                    }
                }
            }
        }
    }

    fn exchange(&mut self, keys: &mut [Value], low: usize, high: usize) {
        let (one, other) = (keys[low], keys[high]);
        keys[low] = self.b.ins().umin(one, other);
        keys[high] = self.b.ins().umax(one, other);
    }

    /// The pieces that result from sorted keys.
    fn read_off(&mut self, key: &Key, sorted: &Keys) {
        for (&piece, &sorted) in key.own.iter().zip(&sorted.keys) {
            self.values[piece as usize] = self.b.ins().ushr_imm_u(sorted, i64::from(key.shift));
        }
        let count = key.elements.len();
        for bit in 0..usize::BITS - (count - 1).leading_zeros() {
            let places = (0..count).filter(|place| place >> bit & 1 != 0);
            let [now, before] = [&sorted.keys, &sorted.naming].map(|keys| {
                places
                    .clone()
                    .fold(None, |all, place| Some(all.map_or(keys[place], |all| self.b.ins().bor(all, keys[place]))))
            });
            let (Some(now), Some(before)) = (now, before) else { continue };
            for named in &key.named {
                // Names of a set follow one another, so the difference of places is that of names.
                let [now, before] = [now, before].map(|keys| {
                    let turned = self.turned(keys, u64::BITS - named.turn);
                    self.b.ins().band_imm_u(turned, named.lowest() as i64)
                });
                let change = self.b.ins().isub(now, before);
                let change = self.b.ins().ishl_imm_u(change, i64::from(bit));
                let value = &mut self.values[named.piece as usize];
                *value = self.b.ins().iadd(*value, change);
            }
        }
    }

    fn turned(&mut self, value: Value, turn: u32) -> Value {
        let turn = turn % u64::BITS;
        if turn == 0 { value } else { self.b.ins().rotl_imm_u(value, i64::from(turn)) }
    }
}
