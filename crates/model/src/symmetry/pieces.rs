//! A state in pieces of up to 64 bits, each a unit that renaming moves as a whole.
//!
//! Scalars below the same elements of arrays share a piece, wherever in the state they lie; so do the scalars of one
//! slot of a bag. A piece is taken from the words of a state, and put back, by a short list of moves. Exchanging two
//! elements moves a piece by a multiple of a fixed stride and replaces the names it holds.

use super::relations::Relations;
use plimsoll_ir::{Layout, Symmetry, System};
use std::collections::HashMap;

/// A run of bits of a word, and how far it is turned to take its place in a piece.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    pub piece: u32,
    pub word: u32,
    pub mask: u32,
    pub turn: u32,
}

/// One index of an interchangeable element on the way to a piece.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coordinate {
    pub element: u32,
    pub stride: u32,
    /// Where a renaming says by how much the element's number changes.
    pub(super) by: u32,
    /// A random number for being an index here.
    pub role: u64,
}

/// Where a piece may hold names of the elements of one set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pointer {
    pub shift: u32,
    pub mask: u32,
    /// The value of the first element, its number, and how many there are.
    pub first: u32,
    pub element: u32,
    pub count: u32,
    /// Where a renaming says by how much the numbers of elements change.
    pub(super) by: u32,
    /// All values but zero are names of this set.
    pub names_only: bool,
}

impl Pointer {
    /// The place in its set of the element that a piece names here; too large if it names none.
    #[inline]
    pub fn raw_place(&self, piece: u64) -> u32 {
        ((piece >> self.shift) as u32 & self.mask).wrapping_sub(self.first)
    }

    /// The place in its set of the element that a piece names here.
    #[inline]
    pub fn place(&self, piece: u64) -> Option<u32> {
        Some(self.raw_place(piece)).filter(|&place| place < self.count)
    }

    /// The bits of the field.
    #[inline]
    pub fn field(&self) -> u64 {
        (self.mask as u64) << self.shift
    }

    /// The field where it names the first element.
    #[inline]
    pub fn first_name(&self) -> u64 {
        (self.first as u64) << self.shift
    }
}

/// Fields of a piece that may name elements of one set, and by which of them one is named.
#[derive(Clone, Debug)]
pub struct Naming {
    pub fields: Vec<Pointer>,
    /// A random number for being named here.
    pub role: u64,
    /// There are so few elements that each is looked for in all fields, rather than each field for whom it names.
    pub few: bool,
}

/// So many elements are few, for pieces that lie below elements: those of variables and in bags are looked at field by field, as many fields
/// are zero there.
const FEW: u32 = 2;

impl Naming {
    /// The set that is named: its first element, and how many there are.
    #[inline]
    pub fn set(&self) -> (u32, u32) {
        (self.fields[0].element, self.fields[0].count)
    }

    /// The lowest bits of those fields that name the element at this place of its set.
    fn naming(&self, piece: u64, place: u32) -> u64 {
        let names = self.fields.iter().filter(|field| field.place(piece) == Some(place));
        names.fold(0, |all, field| all | 1 << field.shift)
    }

    /// What is said is multiplied by this for an element that these fields name: by nothing if it is none of them.
    fn factor(&self, naming: u64) -> u64 {
        match &self.fields[..] {
            [_] => self.role,
            _ => (naming ^ naming >> 32).wrapping_mul(self.role).rotate_left(FACTOR_OVER),
        }
    }
}

/// The lowest bits of a product of a high bit tell nothing, and those of a factor matter most.
pub const FACTOR_OVER: u32 = 32;

/// What pieces have in common that differ in elements or in slots of bags only.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    pub pointers: Vec<Pointer>,
}

/// What stands for an element of this rank in sums; a value that is no name has zero.
#[inline]
pub fn code_of_rank(rank: u32) -> u64 {
    1 + rank as u64
}

pub const MIX: u64 = 0xd6e8_feb8_6659_fd93;

/// Spreads every bit of a number over the others.
#[inline]
pub fn mix(value: u64) -> u64 {
    let product = (value ^ value >> 32).wrapping_mul(MIX);
    product ^ product >> 29
}

/// How far a product is turned over itself. What is said is added up, and sums of products alone are those of other values too.
pub const OVER: u32 = 23;

/// Of what belongs to an element the last so many bits lead in what it tells, and what is said about the element otherwise lies behind: so
/// elements mostly keep their places in the order when others change, and states beside one another stay alike.
pub const MOST_LEADING: u32 = 12;

impl Kind {
    /// Adds the names that a field may hold, unless a piece of this kind had it before.
    pub(super) fn add_field(&mut self, shift: u32, parts: &[Pointer]) {
        if self.pointers.iter().all(|pointer| pointer.shift != shift) {
            self.pointers.extend(parts.iter().map(|part| Pointer { shift, ..*part }));
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub place: Lies,
    /// Where its coordinates and pointers are.
    coordinates: (u32, u32),
    pointers: (u32, u32),
    namings: (u32, u32),
    /// A random number that it shares with others of its kind.
    pub salt: u64,
    /// How many of its bits lead in what it tells, and how many there are behind them.
    pub leading: u32,
    pub behind: u32,
    /// The element that it belongs to, if it has nothing to do with any other.
    pub owner: Option<u32>,
    /// Equal if kind and coordinates are.
    pub group: u32,
}

impl Piece {
    /// What it tells of those it mentions, their names apart: nothing where it is zero. Equal differences in pieces of two kinds would
    /// often cancel in a sum, so each kind has a factor of its own.
    #[inline]
    pub fn told(&self, value: u64) -> u64 {
        let product = (value ^ value >> 32).wrapping_mul(self.salt);
        let hash = product ^ product.rotate_left(OVER);
        if self.leading == 0 { hash } else { hash >> self.leading | (value >> self.behind) << (64 - self.leading) }
    }
}

/// Where a piece lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    Outside,
    /// In a slot of a bag that has no other pieces.
    Alone,
    /// In a slot with others; slots of outermost bags are numbered.
    Among(u32),
}

/// A piece as it was cut: with the elements and strides of its coordinates.
#[derive(Clone, Debug)]
pub struct Cut {
    pub kind: u32,
    pub place: Lies,
    pub coordinates: Vec<(u32, u32)>,
    pub moves: Vec<Move>,
}

/// Slots whose order means nothing: each is so many pieces.
#[derive(Clone, Copy, Debug)]
pub struct Bag {
    pub first: usize,
    pub width: usize,
    pub slots: usize,
}

/// All pieces of a system. Elements of all sets are numbered one after the other.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pub all: Vec<Piece>,
    coordinates: Vec<Coordinate>,
    pointers: Vec<Pointer>,
    namings: Vec<Naming>,
    /// By piece, and where those of each piece start; the same by word.
    moves: Vec<Move>,
    move_starts: Vec<u32>,
    from_words: Vec<Move>,
    word_starts: Vec<u32>,
    /// Inner bags before the bags they are in.
    pub bags: Vec<Bag>,
    /// Slots of outermost bags that have several pieces.
    pub slots: usize,
    /// The first element of each set, and at the end the number of elements.
    pub set_starts: Vec<u32>,
    /// For each element the pieces that depend on it alone, in an order common to its set.
    pub own: Vec<Vec<u32>>,
}

/// The pieces of one state.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    words: Vec<u32>,
    pub values: Vec<u64>,
}

impl Pieces {
    /// `None` if the symmetry does not fit the variables.
    pub fn of(layout: &Layout, system: &System, symmetry: &Symmetry) -> Option<Pieces> {
        symmetry.fits(system).then(|| super::cutting::cut(layout, system, symmetry))?
    }

    pub fn elements(&self) -> usize {
        self.own.len()
    }

    #[inline]
    pub fn coordinates(&self, piece: &Piece) -> &[Coordinate] {
        &self.coordinates[piece.coordinates.0 as usize..piece.coordinates.1 as usize]
    }

    #[inline]
    pub fn pointers(&self, piece: &Piece) -> &[Pointer] {
        &self.pointers[piece.pointers.0 as usize..piece.pointers.1 as usize]
    }

    /// The same pointers by the sets that they name.
    #[inline]
    pub fn namings(&self, piece: &Piece) -> &[Naming] {
        &self.namings[piece.namings.0 as usize..piece.namings.1 as usize]
    }

    /// Calls with each element that a piece names, and with the factor for that.
    pub fn each_named(&self, piece: &Piece, value: u64, mut each: impl FnMut(u32, u64)) {
        for naming in self.namings(piece) {
            for (number, field) in naming.fields.iter().enumerate() {
                let here = field.place(value);
                // Whom several fields name is met at the first of them.
                if let Some(place) =
                    here.filter(|_| naming.fields[..number].iter().all(|other| other.place(value) != here))
                {
                    each(field.element + place, naming.factor(naming.naming(value, place)));
                }
            }
        }
    }

    /// From which bits of a state a piece is made.
    #[inline]
    pub fn moves(&self, piece: usize) -> &[Move] {
        &self.moves[self.move_starts[piece] as usize..self.move_starts[piece + 1] as usize]
    }

    /// The bits that a piece has.
    pub fn bits(&self, piece: usize) -> u64 {
        self.moves(piece).iter().fold(0, |all, step| all | u64::from(step.mask).rotate_left(step.turn))
    }

    /// Takes the pieces from a state, as far as it differs from the one before.
    pub fn load(&self, state: &[u32], loaded: &mut Loaded) {
        if loaded.values.is_empty() {
            loaded.values.resize(self.all.len(), 0);
            loaded.words.resize(state.len(), 0);
        }
        for ((&word, before), steps) in state.iter().zip(&mut loaded.words).zip(self.word_starts.windows(2)) {
            if word != *before {
                *before = word;
                for step in &self.from_words[steps[0] as usize..steps[1] as usize] {
                    let value = &mut loaded.values[step.piece as usize];
                    let field = (step.mask as u64).rotate_left(step.turn);
                    *value = *value & !field | (word as u64).rotate_left(step.turn) & field;
                }
            }
        }
    }

    /// Puts back one piece.
    pub fn store(&self, state: &mut [u32], piece: usize, value: u64) {
        for step in self.moves(piece) {
            let word = &mut state[step.word as usize];
            *word = *word & !step.mask | value.rotate_right(step.turn) as u32 & step.mask;
        }
    }

    /// Exchanges the two elements of a set, given by the first, wherever they are named.
    pub fn swap_names(&self, set: u32, values: &mut [u64]) {
        for (value, piece) in values.iter_mut().zip(&self.all) {
            for pointer in self.pointers(piece).iter().filter(|pointer| pointer.element == set) {
                let is_named = pointer.place(*value).is_some();
                *value ^= if is_named { 3 << pointer.shift } else { 0 };
            }
        }
    }

    /// Says by how much numbers of elements change if they come in this order; a zero follows each set.
    pub fn renaming(&self, order: &[u32], by: &mut Vec<u64>) {
        by.clear();
        by.resize(order.len() + self.set_starts.len(), 0);
        for (set, range) in self.set_starts.windows(2).enumerate() {
            for place in range[0]..range[1] {
                let element = order[place as usize];
                by[element as usize + set] = (place as u64).wrapping_sub(element as u64);
            }
        }
    }

    /// The pieces with elements renamed. Only those change whose mentions, in `relations`, meet `moved`.
    pub fn rename(&self, values: &[u64], relations: &Relations, moved: u64, by: &[u64], out: &mut Vec<u64>) {
        out.clear();
        out.resize(values.len(), 0);
        for index in relations.present.iter().map(|&index| index as usize) {
            let value = values[index];
            if relations.mentions[index] & moved == 0 {
                out[index] = value;
                continue;
            }
            let piece = &self.all[index];
            let mut target = index as u64;
            for at in self.coordinates(piece) {
                target = target.wrapping_add(by[at.by as usize].wrapping_mul(at.stride as u64));
            }
            let mut renamed = value;
            for pointer in self.pointers(piece) {
                // Names of a set follow one another, so that the difference of numbers is that of names.
                let change = by[(pointer.by + pointer.raw_place(value).min(pointer.count)) as usize];
                renamed = renamed.wrapping_add(change << pointer.shift);
            }
            out[target as usize] = renamed;
        }
    }

    /// Puts the slots of all bags in order: the greatest first, so that those not in use are last. The last scalar weighs
    /// most, which is the order that rules leave them in.
    pub fn sort_bags(&self, values: &mut [u64]) {
        for bag in &self.bags {
            let slots = &mut values[bag.first..bag.first + bag.slots * bag.width];
            if bag.width == 1 {
                for end in 1..slots.len() {
                    let one = slots[end];
                    let mut at = end;
                    while at > 0 && slots[at - 1] < one {
                        slots[at] = slots[at - 1];
                        at -= 1;
                    }
                    slots[at] = one;
                }
                continue;
            }
            for end in 1..bag.slots {
                for at in (1..=end).rev() {
                    let (before, here) = slots[(at - 1) * bag.width..].split_at_mut(bag.width);
                    let here = &mut here[..bag.width];
                    if before.iter().rev().ge(here.iter().rev()) {
                        break;
                    }
                    before.swap_with_slice(here);
                }
            }
        }
    }

    /// Puts together what was cut: pieces with their kinds, coordinates and moves, kinds, bags, and where sets start.
    pub(super) fn assemble(cuts: Vec<Cut>, kinds: Vec<Kind>, bags: Vec<Bag>, set_starts: Vec<u32>) -> Pieces {
        let elements = *set_starts.last().unwrap_or(&0) as usize;
        let slot = |cut: &Cut| if let Lies::Among(slot) = cut.place { slot as usize + 1 } else { 0 };
        let slots = cuts.iter().map(slot).max().unwrap_or(0);
        let mut pieces = Pieces { bags, slots, set_starts, move_starts: vec![0], ..Pieces::default() };
        pieces.own = vec![Vec::new(); elements];
        let (mut first_pointers, mut first_namings) = (Vec::new(), Vec::new());
        let mut few = vec![0; kinds.len()];
        for cut in cuts.iter().filter(|cut| cut.place == Lies::Outside && !cut.coordinates.is_empty()) {
            few[cut.kind as usize] = FEW;
        }
        for kind in &kinds {
            let first = pieces.pointers.len() as u32;
            first_pointers.push((first, first + kind.pointers.len() as u32));
            for pointer in &kind.pointers {
                let by = pieces.by(pointer.element);
                let shared = kind.pointers.iter().filter(|other| other.shift == pointer.shift).count() > 1;
                pieces.pointers.push(Pointer { by, names_only: pointer.names_only && !shared, ..*pointer });
            }
        }
        for (number, &(first, end)) in first_pointers.iter().enumerate() {
            let first_naming = pieces.namings.len();
            for (place, &pointer) in pieces.pointers[first as usize..end as usize].iter().enumerate() {
                let few = pointer.count <= few[number];
                let mut known = pieces.namings[first_naming..].iter_mut();
                match known.find(|naming| few && naming.set().0 == pointer.element) {
                    Some(naming) => naming.fields.push(pointer),
                    None => pieces.namings.push(Naming { fields: vec![pointer], role: role(number, 1 + place), few }),
                }
            }
            first_namings.push((first_naming as u32, pieces.namings.len() as u32));
        }
        let mut groups = HashMap::new();
        for (index, cut) in cuts.into_iter().enumerate() {
            let kind = cut.kind as usize;
            let next = groups.len() as u32;
            let group = *groups.entry((cut.kind, cut.coordinates.clone())).or_insert(next);
            let mut owner = None;
            if let (Lies::Outside, [(only, _)]) = (cut.place, &cut.coordinates[..]) {
                pieces.own[*only as usize].push(index as u32);
                owner = Some(*only).filter(|_| first_pointers[kind].0 == first_pointers[kind].1);
            }
            let bits = cut.moves.iter().fold(0, |all, step| all | u64::from(step.mask).rotate_left(step.turn));
            let bits = u64::BITS - bits.leading_zeros();
            let is_of_one = cut.place == Lies::Outside && cut.coordinates.len() == 1;
            let leading = if is_of_one { bits.min(MOST_LEADING) } else { 0 };
            let first = pieces.coordinates.len() as u32;
            for (place, (element, stride)) in cut.coordinates.into_iter().enumerate() {
                // What is said about a single element needs no factor.
                let (by, role) = (pieces.by(element), if place == 0 { 1 } else { role(kind, (1 << 31) + place) });
                pieces.coordinates.push(Coordinate { element, stride, by, role });
            }
            pieces.all.push(Piece {
                place: cut.place,
                coordinates: (first, pieces.coordinates.len() as u32),
                pointers: first_pointers[kind],
                namings: first_namings[kind],
                salt: role(kind, 0),
                leading,
                behind: bits - leading,
                owner,
                group,
            });
            pieces.moves.extend(cut.moves);
            pieces.move_starts.push(pieces.moves.len() as u32);
        }
        pieces.from_words = pieces.moves.clone();
        pieces.from_words.sort_by_key(|step| step.word);
        let words = pieces.from_words.last().map_or(0, |step| step.word + 1);
        let start = |word| pieces.from_words.partition_point(|step| step.word < word) as u32;
        pieces.word_starts = (0..=words).map(start).collect();
        pieces
    }

    /// Where a renaming says what becomes of an element.
    fn by(&self, element: u32) -> u32 {
        element + self.set_starts.partition_point(|&start| start <= element) as u32 - 1
    }
}

/// A random number for a place in pieces of a kind.
fn role(kind: usize, place: usize) -> u64 {
    mix(((kind as u64) << 32) + place as u64 + 1) | 1
}
