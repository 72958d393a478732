//! Which bits of the state hold which variable.
//!
//! A state is a vector of 32-bit words. No scalar straddles a word; what takes 32 bits or less stays in
//! one word; what takes more starts at a word. The variables of one process lie together (one word, if
//! they fit), because processes change one at a time: that is what makes tree compression share and
//! read/write sets small. Array elements lie at a power of two of bits, or at whole words, so that a
//! dynamic index needs no division.

use crate::expr::{Access, Place, Root};
use crate::system::{Locals, System};
use crate::types::{Scalar, Type};

/// Size and alignment in bits. Anything over 32 bits is a whole number of words, aligned to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    bits: u32,
    align: u32,
}

/// Up to 32 bits within one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub word: u32,
    pub shift: u32,
    pub bits: u32,
}

impl Slot {
    pub fn mask(&self) -> u32 {
        ((1u64 << self.bits) - 1) as u32
    }

    pub fn load(&self, state: &[u32]) -> u32 {
        state[self.word as usize] >> self.shift & self.mask()
    }

    pub fn store(&self, state: &mut [u32], raw: u32) {
        let word = &mut state[self.word as usize];
        *word = *word & !(self.mask() << self.shift) | (raw & self.mask()) << self.shift;
    }
}

/// One dynamic (or constant) index on the way to a place: `bits` times the index, which must be below `len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    pub len: u32,
    pub bits: u32,
}

/// A place resolved against a layout: its bit position is `bit` plus the sum of its indices times their strides.
#[derive(Clone, Debug, PartialEq)]
pub struct Address<'a> {
    pub bit: u32,
    /// One per [`Access::Index`] of the place, in order.
    pub strides: Vec<Stride>,
    pub ty: &'a Type,
    /// Size of the place: at most 32, or a multiple of 32.
    pub bits: u32,
}

impl<'a> Address<'a> {
    /// Resolves the path of a place whose root has type `ty` and starts at `bit`.
    pub fn from(bit: u32, ty: &'a Type, path: &[Access]) -> Address<'a> {
        let mut address = Address { bit, strides: Vec::new(), ty, bits: 0 };
        for access in path {
            match (address.ty, access) {
                (Type::Array { element, len }, Access::Index(_)) => {
                    address.strides.push(Stride { len: *len, bits: pitch(element) });
                    address.ty = element;
                }
                (Type::Record(fields), Access::Field(field)) => {
                    let (_, offsets) = pack(fields.iter().map(|(_, ty)| extent(ty)));
                    address.bit += offsets[*field as usize];
                    address.ty = &fields[*field as usize].1;
                }
                _ => unreachable!("verified: paths fit their types"),
            }
        }
        address.bits = extent(address.ty).bits;
        address
    }

    /// The slot of a place of at most 32 bits, given the values of its indices. They must be in range.
    pub fn slot(&self, indices: &[i64]) -> Slot {
        debug_assert!(self.bits <= 32);
        let bit = self.first_bit(indices);
        Slot { word: bit / 32, shift: bit % 32, bits: self.bits }
    }

    /// The bit where the place starts, given the values of its indices. They must be in range.
    pub fn first_bit(&self, indices: &[i64]) -> u32 {
        debug_assert_eq!(indices.len(), self.strides.len());
        self.bit + indices.iter().zip(&self.strides).map(|(&index, stride)| index as u32 * stride.bits).sum::<u32>()
    }
}

/// A list of roots laid out: the variables of a system, or the temporaries of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    words: u32,
    /// The first bit of each root.
    bits: Vec<u32>,
}

impl Layout {
    /// Lays out the variables of a system: the globals together, then each process together.
    pub fn of_system(system: &System) -> Layout {
        let owners = std::iter::once(None).chain((0..system.processes.len() as u32).map(Some));
        let groups: Vec<Vec<usize>> = owners
            .map(|owner| {
                let belongs = |&index: &usize| system.vars[index].owner.map(|process| process.0) == owner;
                (0..system.vars.len()).filter(belongs).collect()
            })
            .collect();
        let packed: Vec<(Extent, Vec<u32>)> =
            groups.iter().map(|group| pack(group.iter().map(|&index| extent(&system.vars[index].ty)))).collect();
        let (whole, starts) = pack(packed.iter().map(|(extent, _)| *extent));
        let mut bits = vec![0; system.vars.len()];
        for ((group, (_, offsets)), start) in groups.iter().zip(&packed).zip(starts) {
            for (&index, offset) in group.iter().zip(offsets) {
                bits[index] = start + offset;
            }
        }
        Layout { words: whole.bits.div_ceil(32).max(1), bits }
    }

    /// Lays out temporaries, each on words of its own.
    pub fn of_temps(temps: &[(String, Type)]) -> Layout {
        let mut words = 0;
        let bits = temps
            .iter()
            .map(|(_, ty)| {
                let start = words * 32;
                words += extent(ty).bits.div_ceil(32);
                start
            })
            .collect();
        Layout { words, bits }
    }

    /// Words per state (or of scratch memory for temporaries).
    pub fn words(&self) -> usize {
        self.words as usize
    }

    /// Resolves the path of a place whose root has type `ty` and number `root` in this layout.
    pub fn address<'a>(&self, root: usize, ty: &'a Type, path: &[Access]) -> Address<'a> {
        Address::from(self.bits[root], ty, path)
    }

    /// Every scalar below root `root` of type `ty`, in order: its name suffix, slot and type.
    pub fn scalars(&self, root: usize, ty: &Type) -> Vec<(String, Slot, Scalar)> {
        let mut out = Vec::new();
        walk(ty, self.bits[root], String::new(), &mut out);
        out
    }

    /// The first bit of a root.
    pub fn root_bit(&self, root: usize) -> u32 {
        self.bits[root]
    }
}

impl System {
    /// Resolves a place in the state (`vars`) or among temporaries (laid out as `temps`). One below a reference
    /// is resolved as if that started at bit zero.
    pub fn resolve<'a>(&'a self, vars: &Layout, temps: &Layout, locals: Locals<'a>, place: &Place) -> Address<'a> {
        let bit = match place.root {
            Root::Var(var) => vars.bits[var.index()],
            Root::Temp(temp) => temps.bits[temp.index()],
            Root::Reference(_) => 0,
        };
        Address::from(bit, self.root_type(locals, place.root), &place.path)
    }

    /// The bits of each word of a state that variables use; the others are always zero.
    pub fn used_bits(&self, layout: &Layout) -> Vec<u32> {
        let mut used = vec![0; layout.words()];
        for (index, var) in self.vars.iter().enumerate() {
            layout.scalars(index, &var.ty).iter().for_each(|(_, slot, _)| slot.store(&mut used, u32::MAX));
        }
        used
    }

    /// The initial values of the variables as a state.
    pub fn base_state(&self, layout: &Layout) -> Vec<u32> {
        let mut state = vec![0; layout.words()];
        for (index, var) in self.vars.iter().enumerate() {
            for ((_, slot, scalar), &value) in layout.scalars(index, &var.ty).into_iter().zip(&var.init) {
                slot.store(&mut state, scalar.encode(value));
            }
        }
        state
    }
}

/// Size of a type in bits.
pub fn size_bits(ty: &Type) -> u32 {
    extent(ty).bits
}

fn extent(ty: &Type) -> Extent {
    match ty {
        Type::Scalar(scalar) => {
            let bits = scalar.bits();
            let align = if matches!(bits, 8 | 16 | 32) { bits } else { 1 };
            Extent { bits, align }
        }
        Type::Array { element, len } => {
            let pitch = pitch(element);
            whole_words(Extent { bits: pitch * len, align: pitch.min(32) })
        }
        Type::Record(fields) => pack(fields.iter().map(|(_, ty)| extent(ty))).0,
    }
}

/// Every scalar of a type that starts at bit zero, in order.
pub fn scalars(ty: &Type) -> impl Iterator<Item = (Slot, Scalar)> {
    let mut out = Vec::new();
    walk(ty, 0, String::new(), &mut out);
    out.into_iter().map(|(_, slot, scalar)| (slot, scalar))
}

/// Distance in bits between array elements: a power of two up to 32, or whole words.
pub fn pitch(element: &Type) -> u32 {
    let bits = extent(element).bits;
    if bits <= 32 { bits.max(1).next_power_of_two() } else { bits }
}

fn whole_words(extent: Extent) -> Extent {
    if extent.bits <= 32 { extent } else { Extent { bits: extent.bits.next_multiple_of(32), align: 32 } }
}

/// Places items first-fit, and says where each went and how much they take together.
fn pack(items: impl Iterator<Item = Extent>) -> (Extent, Vec<u32>) {
    let mut used: Vec<u32> = Vec::new(); // bits taken of each word
    let mut align = 1;
    let offsets = items
        .map(|item| {
            align = align.max(item.align);
            if item.bits > 32 {
                let start = used.len() as u32 * 32;
                used.extend(std::iter::repeat_n(32, (item.bits / 32) as usize));
                return start;
            }
            let fits = |taken: u32| taken.next_multiple_of(item.align.max(1)) + item.bits <= 32;
            let word = used.iter().position(|&taken| fits(taken)).unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            let shift = used[word].next_multiple_of(item.align.max(1));
            used[word] = shift + item.bits;
            word as u32 * 32 + shift
        })
        .collect();
    let bits = match used.as_slice() {
        [] => 0,
        [one] => *one,
        more => more.len() as u32 * 32,
    };
    (whole_words(Extent { bits, align }), offsets)
}

fn walk(ty: &Type, bit: u32, name: String, out: &mut Vec<(String, Slot, Scalar)>) {
    match ty {
        Type::Scalar(scalar) => {
            out.push((name, Slot { word: bit / 32, shift: bit % 32, bits: scalar.bits() }, *scalar))
        }
        Type::Array { element, len } => {
            for index in 0..*len {
                walk(element, bit + index * pitch(element), format!("{name}[{index}]"), out);
            }
        }
        Type::Record(fields) => {
            let (_, offsets) = pack(fields.iter().map(|(_, ty)| extent(ty)));
            for ((field, ty), offset) in fields.iter().zip(offsets) {
                walk(ty, bit + offset, format!("{name}.{field}"), out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Process, ProcessId, VarId};

    #[test]
    fn small_processes_share_a_word_and_large_ones_start_one() {
        let mut system = System::new("t");
        system.var("g", Scalar::U8, None);
        for name in ["a", "b", "c"] {
            let process = ProcessId(system.processes.len() as u32);
            let location = system.var(format!("{name}.at"), Scalar::range(0, 4), Some(process));
            system.var(format!("{name}.x"), Scalar::U8, Some(process));
            let locations = (0..5).map(|l| l.to_string()).collect();
            system.processes.push(Process { name: name.into(), location, locations });
        }
        system.var("c.big", Type::array(Scalar::U8.into(), 5), Some(ProcessId(2)));
        let layout = Layout::of_system(&system);
        // g (8) and a (3 in 16) in word 0; b in word 1 as it does not fit; c is over a word.
        let words: Vec<u32> = (0..system.vars.len()).map(|var| layout.root_bit(var) / 32).collect();
        assert_eq!(words[1], words[2]);
        assert_eq!(words[3], words[4]);
        assert!(layout.words() <= 5);
        for (index, var) in system.vars.iter().enumerate() {
            for (_, slot, _) in layout.scalars(index, &var.ty) {
                assert!(slot.shift + slot.bits <= 32);
            }
        }
    }

    #[test]
    fn no_two_scalars_overlap() {
        let mut system = System::new("t");
        let record = Type::Record(vec![
            ("f".into(), Scalar::range(0, 5).into()),
            ("g".into(), Type::array(Scalar::I16.into(), 3)),
            ("h".into(), Scalar::BOOL.into()),
        ]);
        system.var("r", Type::array(record.clone(), 3), None);
        system.var("x", Scalar::range(0, 1000), None);
        system.var("b", Type::array(Scalar::BOOL.into(), 40), None);
        system.var("s", record, None);
        let layout = Layout::of_system(&system);
        let mut taken = vec![0u32; layout.words()];
        for (index, var) in system.vars.iter().enumerate() {
            for (name, slot, _) in layout.scalars(index, &var.ty) {
                let mask = slot.mask() << slot.shift;
                assert_eq!(taken[slot.word as usize] & mask, 0, "{}{name}", var.name);
                taken[slot.word as usize] |= mask;
            }
        }
    }

    #[test]
    fn addresses_agree_with_the_list_of_scalars() {
        let mut system = System::new("t");
        let record = Type::Record(vec![
            ("f".into(), Scalar::range(0, 5).into()),
            ("g".into(), Type::array(Scalar::I16.into(), 3)),
        ]);
        let var = system.var("r", Type::array(record, 4), None);
        let layout = Layout::of_system(&system);
        let scalars = layout.scalars(0, &system.vars[0].ty);
        let place = Place::from(VarId(var.0)).index(2).field(1).index(1);
        let address = system.resolve(&layout, &Layout::of_temps(&[]), Locals::temps(&[]), &place);
        let slot = address.slot(&[2, 1]);
        let found = scalars.iter().find(|(name, ..)| name == "[2].g[1]").unwrap();
        assert_eq!(slot, found.1);
    }
}
