//! What a state says about elements, piece by piece.
//!
//! A piece that holds no names belongs to its element. Others mention elements by index or by name, and relate those
//! that they mention together. Pieces with names say the same things again and again, so what was made of them is kept
//! for a while. Sums of hashes stand for what is said.

use super::pieces::{Lies, MOST_LEADING, Piece, Pieces, code_of_rank, mix};

/// So many pieces are remembered with what they say.
const REMEMBERED: usize = 512;

/// The bit of an element in a mask; they share bits where there are many.
#[inline]
pub fn bit(element: u32) -> u64 {
    1 << (element & 63)
}

#[derive(Clone, Debug, Default)]
pub struct Relations {
    /// The pieces that are not zero, and for each piece the elements it mentions, as far as bits can tell.
    pub present: Vec<u32>,
    pub mentions: Vec<u64>,
    /// For each element the sum of what is said about it alone.
    own: Vec<u64>,
    /// The elements that are mentioned other than by their own pieces.
    related: u64,
    /// The notes that relate several elements, and the slots of several pieces they are from.
    relating: Vec<(u32, u32)>,
    /// What slots of several pieces say without mentioning anybody, and all they say.
    slots: Vec<u64>,
    in_slots: Vec<u64>,
    /// Notes of pieces met before, by hash; behind them those of this state that found their place taken.
    notes: Vec<Note>,
    further: usize,
    /// The elements that notes mention, and how; each note has the same room.
    mentioned: Vec<Mentioned>,
    room: usize,
    /// The number of this state.
    now: u64,
}

/// What a piece says.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    value: u64,
    /// Which pieces would say the same, and the last state that had one.
    group: u32,
    count: u32,
    when: u64,
    /// The elements that it mentions, as bits, and what it says were they all the first of their sets.
    mentions: u64,
    said: u64,
}

/// An element that a piece mentions, how many leading bits of what is said are not for it, and what it is multiplied by.
type Mentioned = (u32, u32, u64);

/// Not in a slot of several pieces.
const NO_SLOT: u32 = u32::MAX;

impl Relations {
    pub fn read(&mut self, pieces: &Pieces, values: &[u64]) {
        if self.notes.is_empty() {
            self.make_room(pieces);
        }
        self.now += 1;
        self.further = REMEMBERED;
        self.present.clear();
        self.relating.clear();
        self.related = 0;
        self.own.fill(0);
        // Filling nothing takes longer than filling something: some processors write no bytes to a place that is no memory slowly.
        if !self.slots.is_empty() {
            self.slots.fill(0);
        }
        for (number, (piece, &value)) in pieces.all.iter().zip(values).enumerate() {
            if value == 0 {
                continue;
            }
            self.present.push(number as u32);
            if let Some(owner) = piece.owner {
                let own = &mut self.own[owner as usize];
                *own = own.wrapping_add(piece.told(value));
                self.mentions[number] = bit(owner);
            } else {
                self.mentions[number] = self.take_in(pieces, piece, value);
            }
        }
    }

    fn make_room(&mut self, pieces: &Pieces) {
        let room = |piece| pieces.coordinates(piece).len() + pieces.pointers(piece).len();
        self.room = pieces.all.iter().map(room).max().unwrap_or(0);
        let most = REMEMBERED + pieces.all.len();
        self.notes.resize(most, Note::default());
        self.mentioned.resize(most * self.room, (0, 0, 0));
        self.mentions.resize(pieces.all.len(), 0);
        self.own.resize(pieces.elements(), 0);
        self.slots.resize(pieces.slots, 0);
    }

    /// Takes in what a piece says; returns which elements it mentions.
    #[inline]
    fn take_in(&mut self, pieces: &Pieces, piece: &Piece, value: u64) -> u64 {
        let number = self.note(pieces, piece, value);
        let Note { count, mentions, said, .. } = self.notes[number];
        let mentioned = &self.mentioned[number * self.room..][..count as usize];
        match piece.place {
            Lies::Outside if pieces.coordinates(piece).is_empty() => {
                // A variable tells the elements it names from all others, whatever else there is.
                for &(element, behind, factor) in mentioned {
                    let said = piece.salt.wrapping_mul(factor) >> behind;
                    self.own[element as usize] = self.own[element as usize].wrapping_add(said);
                }
                self.related |= mentions;
            }
            Lies::Outside if count == 1 => self.relating.push((number as u32, NO_SLOT)),
            Lies::Alone if count == 0 => {}
            Lies::Among(slot) if count == 0 => {
                self.slots[slot as usize] = self.slots[slot as usize].wrapping_add(said);
            }
            place => {
                let slot = if let Lies::Among(slot) = place { slot } else { NO_SLOT };
                self.relating.push((number as u32, slot));
                self.related |= mentions;
            }
        }
        mentions
    }

    /// The number of a note of what a piece says.
    #[inline]
    fn note(&mut self, pieces: &Pieces, piece: &Piece, value: u64) -> usize {
        let mut number = (mix(value.wrapping_add(piece.group as u64)) >> 32) as usize % REMEMBERED;
        let note = &mut self.notes[number];
        if (note.value, note.group) != (value, piece.group) {
            if note.when == self.now {
                number = self.further;
                self.further += 1;
            }
            self.write(pieces, piece, value, number);
        }
        self.notes[number].when = self.now;
        number
    }

    fn write(&mut self, pieces: &Pieces, piece: &Piece, value: u64, number: usize) {
        let mentioned = &mut self.mentioned[number * self.room..][..self.room];
        let (mut count, mut mentions, mut rest) = (0, 0, value);
        for at in pieces.coordinates(piece) {
            let behind = if piece.leading > 0 { 0 } else { MOST_LEADING };
            mentioned[count] = (at.element, behind, at.role);
            mentions |= bit(at.element);
            count += 1;
        }
        pieces.each_named(piece, value, |element, factor| {
            mentioned[count] = (element, MOST_LEADING, factor);
            mentions |= bit(element);
            count += 1;
        });
        for pointer in pieces.pointers(piece).iter().filter(|pointer| pointer.place(value).is_some()) {
            rest = rest & !pointer.field() | pointer.first_name();
        }
        let said = piece.told(rest);
        self.notes[number] = Note { value, group: piece.group, count: count as u32, when: 0, mentions, said };
    }

    /// May anything be said about the element apart from its own pieces?
    pub fn is_related(&self, element: u32) -> bool {
        self.related & bit(element) != 0
    }

    /// For each element all that is said about it, as long as nothing is known of others.
    pub fn sum_all(&mut self, sums: &mut Vec<u64>) {
        sums.clone_from(&self.own);
        self.add(u64::MAX, |note, _| note.said, sums);
    }

    /// For each tied element what is said about it and others, which are known by rank; false if there is nothing.
    pub fn sum(&mut self, rank: &[u32], tied: u64, sums: &mut Vec<u64>) -> bool {
        if self.related & tied == 0 {
            return false;
        }
        sums.clear();
        sums.resize(rank.len(), 0);
        let relate = |note: &Note, mentioned: &[Mentioned]| {
            let add = |all: u64, &(element, _, factor): &Mentioned| {
                all.wrapping_add(factor.wrapping_mul(code_of_rank(rank[element as usize])))
            };
            mix(mentioned.iter().fold(note.said, add))
        };
        self.add(tied, relate, sums);
        true
    }

    /// Adds what notes say about those they mention, where any of those is tied.
    fn add(&mut self, tied: u64, says: impl Fn(&Note, &[Mentioned]) -> u64, sums: &mut [u64]) {
        if !self.slots.is_empty() {
            self.in_slots.clone_from(&self.slots);
            for &(note, slot) in self.relating.iter().filter(|(_, slot)| *slot != NO_SLOT) {
                let (note, mentioned) = self.read_note(note);
                self.in_slots[slot as usize] = self.in_slots[slot as usize].wrapping_add(says(note, mentioned));
            }
        }
        for &(note, slot) in &self.relating {
            let (note, mentioned) = self.read_note(note);
            if note.mentions & tied == 0 {
                continue;
            }
            let mut all = says(note, mentioned);
            if slot != NO_SLOT {
                all = all.wrapping_add(self.in_slots[slot as usize]);
            }
            for &(element, behind, factor) in mentioned {
                sums[element as usize] = sums[element as usize].wrapping_add(all.wrapping_mul(factor) >> behind);
            }
        }
    }

    /// A note and the elements that it mentions.
    #[inline]
    fn read_note(&self, number: u32) -> (&Note, &[Mentioned]) {
        let note = &self.notes[number as usize];
        (note, &self.mentioned[number as usize * self.room..][..note.count as usize])
    }
}
