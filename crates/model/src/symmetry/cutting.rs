//! Cuts the variables of a system into pieces.
//!
//! What lies outside bags is collected first and then shared out by the elements it belongs to. What lies in a bag is
//! cut in order, so that a slot is a row of pieces; its first piece says whether it is in use.

use super::pieces::{Bag, Cut, Kind, Lies, Move, Pieces, Pointer};
use plimsoll_ir::symmetry::{Part, Shape, Symmetry};
use plimsoll_ir::{Layout, Scalar, Slot, System, Type};
use std::collections::{BTreeMap, HashMap};

/// Bits of a piece in a bag: one is left for the mark of slots in use.
const SLOT_BITS: u32 = 63;

pub fn cut(layout: &Layout, system: &System, symmetry: &Symmetry) -> Option<Pieces> {
    let mut walk = Walk::new(symmetry);
    for (index, (shape, var)) in symmetry.vars.iter().zip(&system.vars).enumerate() {
        walk.slots =
            layout.scalars(index, &var.ty).into_iter().map(|(_, slot, _)| slot).collect::<Vec<_>>().into_iter();
        walk.shape(shape, &var.ty, &mut Around::default())?;
    }
    walk.resolve_strides();
    walk.share_out();
    Some(Pieces::assemble(walk.cuts, walk.kinds, walk.bags, walk.set_starts))
}

/// An index of an interchangeable element, while its array is being cut.
#[derive(Clone, Copy)]
struct Index {
    element: u32,
    /// How many scalars lie before it in the array.
    before: usize,
    /// Which array; its pieces are counted in [`Walk::strides`].
    array: u32,
}

/// What lies around the scalar being met.
#[derive(Clone, Default)]
struct Around {
    indices: Vec<Index>,
    /// How many scalars lie before it in the enclosing bags.
    in_slots: usize,
    bags: usize,
}

/// A scalar outside bags.
struct Loose {
    slot: Slot,
    parts: Vec<Pointer>,
    elements: Vec<u32>,
}

struct Walk<'a> {
    cuts: Vec<Cut>,
    kinds: Vec<Kind>,
    bags: Vec<Bag>,
    set_starts: Vec<u32>,
    symmetry: &'a Symmetry,
    /// Of the scalars to come.
    slots: std::vec::IntoIter<Slot>,
    scalars: usize,
    /// By the sets of their elements and by where the first of their kind is.
    loose: BTreeMap<Vec<usize>, BTreeMap<usize, Vec<Loose>>>,
    /// The piece that the next scalar of a bag may be added to.
    open: Option<usize>,
    /// The bits taken of each piece.
    taken: Vec<u64>,
    /// Kinds of pieces in bags, by the first of its kind and the bags around it; heads of slots are apart.
    kinds_in_bags: HashMap<(usize, usize, bool), u32>,
    /// The slots of bags met so far.
    numbered: usize,
    /// For each array the pieces of one element.
    strides: Vec<u32>,
}

impl<'a> Walk<'a> {
    fn new(symmetry: &'a Symmetry) -> Walk<'a> {
        let mut set_starts = vec![0];
        for set in &symmetry.sets {
            set_starts.push(set_starts[set_starts.len() - 1] + set.size);
        }
        Walk {
            cuts: Vec::new(),
            kinds: Vec::new(),
            bags: Vec::new(),
            set_starts,
            symmetry,
            slots: Vec::new().into_iter(),
            scalars: 0,
            loose: BTreeMap::new(),
            open: None,
            taken: Vec::new(),
            kinds_in_bags: HashMap::new(),
            numbered: 0,
            strides: Vec::new(),
        }
    }

    fn shape(&mut self, shape: &Shape, ty: &Type, around: &mut Around) -> Option<()> {
        match (shape, ty) {
            (Shape::Scalar(parts), Type::Scalar(scalar)) => self.scalar(parts, *scalar, around),
            (Shape::Record(shapes), Type::Record(fields)) => {
                shapes.iter().zip(fields).try_for_each(|(shape, (_, ty))| self.shape(shape, ty, around))
            }
            (Shape::Array { parts, element }, Type::Array { element: ty, len }) => {
                let parts: Vec<Part> = parts.iter().copied().filter(|part| self.size(part) > 1).collect();
                self.strides.push(0);
                let array = self.strides.len() as u32 - 1;
                (0..*len).try_for_each(|position| self.element(&parts, position, element, ty, array, around))
            }
            (Shape::Bag { slot }, Type::Record(fields)) => match &fields[..] {
                [(_, Type::Array { element, len }), _] => self.bag(slot, element, *len as usize, around),
                _ => None,
            },
            _ => None,
        }
    }

    fn size(&self, part: &Part) -> u32 {
        self.symmetry.sets[part.set as usize].size
    }

    fn element(
        &mut self,
        parts: &[Part],
        at: u32,
        shape: &Shape,
        ty: &Type,
        array: u32,
        around: &mut Around,
    ) -> Option<()> {
        let Some(part) = parts.iter().find(|part| (part.first..part.first + self.size(part)).contains(&at)) else {
            // Its pieces end where those of its neighbours do, whose elements they must not share.
            self.open = self.open.filter(|_| parts.is_empty());
            return self.shape(shape, ty, around);
        };
        let place = at - part.first;
        let element = self.set_starts[part.set as usize] + place;
        around.indices.push(Index { element, before: place as usize * ty.scalar_count(), array });
        let first = self.cuts.len();
        self.open = None;
        let done = self.shape(shape, ty, around);
        self.open = None;
        self.strides[array as usize] = (self.cuts.len() - first) as u32;
        around.indices.pop();
        done
    }

    fn scalar(&mut self, parts: &[Part], scalar: Scalar, around: &Around) -> Option<()> {
        let slot = self.slots.next()?;
        let family = self.family(around);
        self.scalars += 1;
        let holds = |part: &&Part| self.size(part) > 1 && self.symmetry.holds(part, &scalar);
        let pointer = |part: &Part| Pointer {
            mask: slot.mask(),
            first: part.first,
            element: self.set_starts[part.set as usize],
            count: self.size(part),
            names_only: part.first == 1 && scalar.high <= i64::from(self.size(part)),
            ..Pointer::default()
        };
        let parts: Vec<Pointer> = parts.iter().filter(holds).map(pointer).collect();
        if around.bags > 0 {
            let fits = |&piece: &usize| self.end(piece) + slot.bits <= SLOT_BITS;
            let piece = self.open.filter(fits).unwrap_or_else(|| self.piece_in_bag(around, false));
            self.put(piece, self.end(piece), slot, &parts);
        } else if !around.indices.is_empty() || !parts.is_empty() {
            let elements: Vec<u32> = around.indices.iter().map(|index| index.element).collect();
            let sets = elements.iter().map(|&element| self.set(element)).collect();
            let kinds = self.loose.entry(sets).or_default();
            kinds.entry(family).or_default().push(Loose { slot, parts, elements });
        }
        Some(())
    }

    /// Where the first scalar is that differs from the next one in elements and slots only.
    fn family(&self, around: &Around) -> usize {
        self.scalars - around.in_slots - around.indices.iter().map(|index| index.before).sum::<usize>()
    }

    fn set(&self, element: u32) -> usize {
        self.set_starts.partition_point(|&start| start <= element) - 1
    }

    fn bag(&mut self, shape: &Shape, ty: &Type, slots: usize, around: &mut Around) -> Option<()> {
        let (first, outside) = (self.cuts.len(), around.clone());
        around.bags += 1;
        let mut heads = Vec::with_capacity(slots);
        for slot in 0..slots {
            around.in_slots = outside.in_slots + slot * ty.scalar_count();
            heads.push(self.piece_in_bag(around, true));
            self.shape(shape, ty, around)?;
            let alone = self.cuts.len() - heads[slot] == 1;
            let place = if alone { Lies::Alone } else { Lies::Among((self.numbered + slot) as u32) };
            self.cuts[heads[slot]..].iter_mut().for_each(|piece| piece.place = place);
        }
        for &head in &heads {
            let flag = self.slots.next()?;
            self.scalars += 1;
            self.add_move(head, flag, SLOT_BITS);
        }
        self.open = None;
        self.numbered += slots;
        *around = outside;
        let width = (self.cuts.len() - first) / slots.max(1);
        self.bags.push(Bag { first, width, slots });
        Some(())
    }

    fn piece_in_bag(&mut self, around: &Around, head: bool) -> usize {
        let known = (self.family(around), around.bags, head);
        let kind = *self.kinds_in_bags.entry(known).or_insert_with(|| {
            self.kinds.push(Kind::default());
            self.kinds.len() as u32 - 1
        });
        // Strides are known when all is cut.
        let coordinates = around.indices.iter().map(|index| (index.element, index.array)).collect();
        let piece = self.piece(kind, coordinates, Lies::Alone);
        self.open = Some(piece);
        piece
    }

    fn piece(&mut self, kind: u32, coordinates: Vec<(u32, u32)>, place: Lies) -> usize {
        self.cuts.push(Cut { kind, place, coordinates, moves: Vec::new() });
        self.taken.push(0);
        self.cuts.len() - 1
    }

    /// Where the bits taken of a piece end.
    fn end(&self, piece: usize) -> u32 {
        u64::BITS - self.taken[piece].leading_zeros()
    }

    /// Adds a scalar to a piece.
    fn put(&mut self, piece: usize, shift: u32, slot: Slot, parts: &[Pointer]) {
        self.add_move(piece, slot, shift);
        self.taken[piece] |= u64::from(slot.mask()) << shift;
        self.kinds[self.cuts[piece].kind as usize].add_field(shift, parts);
    }

    fn add_move(&mut self, piece: usize, slot: Slot, shift: u32) {
        let turn = shift.wrapping_sub(slot.shift) % 64;
        let mask = slot.mask() << slot.shift;
        match self.cuts[piece].moves.last_mut() {
            Some(last) if (last.word, last.turn) == (slot.word, turn) => last.mask |= mask,
            _ => self.cuts[piece].moves.push(Move { piece: piece as u32, word: slot.word, mask, turn }),
        }
    }

    fn resolve_strides(&mut self) {
        for (_, stride) in self.cuts.iter_mut().flat_map(|cut| &mut cut.coordinates) {
            *stride = self.strides[*stride as usize];
        }
    }

    /// Makes pieces of the scalars outside bags: those that belong to the same elements together.
    fn share_out(&mut self) {
        for (sets, kinds) in std::mem::take(&mut self.loose) {
            let sizes = sets.iter().map(|&set| self.symmetry.sets[set].size);
            let mut strides: Vec<u32> = vec![1; sets.len()];
            for (number, size) in sizes.enumerate().skip(1) {
                strides[..number].iter_mut().for_each(|stride| *stride *= size);
            }
            let mut first = None;
            for families in side_by_side(kinds.into_values()) {
                let lowest = families.iter().map(|family| family[0].slot.shift).min().unwrap_or(0);
                let bits = |family: &Vec<Loose>| u64::from(family[0].slot.mask()) << (family[0].slot.shift - lowest);
                let bits = families.iter().map(bits).fold(0, |all, bits| all | bits);
                let room = first.and_then(|first: usize| Some((first, room(self.taken[first], bits)?)));
                let (base, shift) = room.unwrap_or_else(|| (self.loose_pieces(&families[0], &strides), 0));
                first = Some(base);
                for family in &families {
                    let shift = shift + family[0].slot.shift - lowest;
                    for (number, scalar) in family.iter().enumerate() {
                        self.put(base + number, shift, scalar.slot, &scalar.parts);
                    }
                }
            }
        }
    }

    /// A new piece for each of these scalars, which are in the order of their elements.
    fn loose_pieces(&mut self, scalars: &[Loose], strides: &[u32]) -> usize {
        let kind = self.kinds.len() as u32;
        self.kinds.push(Kind::default());
        let base = self.cuts.len();
        for scalar in scalars {
            let coordinates = scalar.elements.iter().copied().zip(strides.iter().copied()).collect();
            self.piece(kind, coordinates, Lies::Outside);
        }
        base
    }
}

/// Puts families together whose scalars lie in the same words at the same distance, each from that of the other with the same elements: they
/// are moved together.
fn side_by_side(families: impl Iterator<Item = Vec<Loose>>) -> Vec<Vec<Vec<Loose>>> {
    let mut groups: Vec<Vec<Vec<Loose>>> = Vec::new();
    for family in families {
        let distance = |(one, other): (&Loose, &Loose)| other.slot.shift.wrapping_sub(one.slot.shift);
        let lies_beside = |other: &Vec<Loose>| {
            let mut pairs = family.iter().zip(other);
            other.len() == family.len()
                && pairs.clone().all(|(one, other)| one.slot.word == other.slot.word)
                && pairs.next().map(distance).is_none_or(|first| pairs.all(|pair| distance(pair) == first))
        };
        match groups.iter_mut().find(|group| lies_beside(&group[0])) {
            Some(group) => group.push(family),
            None => groups.push(vec![family]),
        }
    }
    groups
}

/// How far bits must be shifted to where none of these are taken.
fn room(taken: u64, bits: u64) -> Option<u32> {
    (0..=bits.leading_zeros()).find(|shift| taken & bits << shift == 0)
}
