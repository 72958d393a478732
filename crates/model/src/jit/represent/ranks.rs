//! Ranks: what pieces say about elements, summed, and the order of elements by that.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;

use super::emit::{Element, Emit};
use crate::symmetry::pieces::{Lies, NAME_SHIFT, Piece, Pieces, code_of_rank, mix};

/// What a piece tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// Something about its only element.
    Own(usize),
    /// Whom a variable names.
    Names,
    /// How elements are related, or something about one of them if it mentions no other.
    Relation,
}

impl Tells {
    pub fn of(pieces: &Pieces, piece: &Piece) -> Tells {
        match piece.owner {
            Some(owner) => Tells::Own(owner as usize),
            None if piece.place == Lies::Outside && pieces.coordinates(piece).is_empty() => Tells::Names,
            None => Tells::Relation,
        }
    }
}

impl Emit<'_, '_> {
    pub fn clear(&mut self, table: usize) {
        let zero = self.constant(0);
        for element in self.several.clone() {
            self.set(self.entry_of(table, element), zero);
        }
    }

    /// All that was said about an element.
    pub fn told(&mut self, known: Variable, table: usize, element: usize) -> Value {
        let (known, named) = (self.b.use_var(known), self.get(self.entry_of(table, element)));
        self.b.ins().iadd(known, named)
    }

    /// What is in any of the elements of sets of several.
    pub fn any(&mut self, mut of: impl FnMut(&mut Self, usize) -> Value) -> Value {
        let mut all = self.constant(0);
        for element in self.several.clone() {
            let one = of(self, element);
            all = self.b.ins().bor(all, one);
        }
        all
    }

    pub fn take_in(&mut self, number: usize) {
        let (pieces, value) = (self.pieces, self.values[number]);
        let piece = &pieces.all[number];
        match Tells::of(pieces, piece) {
            Tells::Own(owner) => {
                let (said, factor) = (self.mix_with(value, piece.salt), self.constant(piece.salt));
                let said = self.b.ins().imul(said, factor);
                let said = self.only_if(value, said);
                self.add_to_variable(self.elements[owner].sum, said);
            }
            Tells::Names => self.in_groups(value, pieces.pointers(piece), |emit, pointer| {
                let field = emit.field(value, pointer);
                let (said, one) = (emit.constant(mix(pointer.role)), emit.constant(1));
                emit.add_to(emit.named(emit.plan.sums, pointer, field), said);
                emit.set(emit.named(emit.plan.named, pointer, field), one);
            }),
            Tells::Relation => self.take_in_relation(number, piece, value),
        }
    }

    pub fn take_in_relation(&mut self, number: usize, piece: &Piece, value: Value) {
        let pieces = self.pieces;
        let after = (!is_of_one_element(pieces, piece)).then(|| self.skip_unless(value));
        if pieces.bags.iter().any(|bag| (bag.first + 1..bag.first + bag.slots).contains(&number)) {
            let greater = self.b.ins().icmp(IntCC::UnsignedLessThan, self.values[number - 1], value);
            let greater = self.b.ins().uextend(types::I64, greater);
            let disorder = self.b.use_var(self.disorder);
            let disorder = self.b.ins().bor(disorder, greater);
            self.b.def_var(self.disorder, disorder);
        }
        let (coordinates, pointers) = (pieces.coordinates(piece), pieces.pointers(piece));
        let names = pointers.iter().filter(|pointer| !pointer.shared).fold(0, |all, pointer| all | pointer.field());
        let others = self.constant(!names);
        let mut rest = self.b.ins().band(value, others);
        for pointer in pointers.iter().filter(|pointer| pointer.shared) {
            let field = self.field(value, pointer);
            let (inside, others) = (self.is_name(pointer, field), self.constant(!pointer.field()));
            let others = self.b.ins().band(rest, others);
            rest = self.b.ins().select(inside, others, rest);
        }
        let said = self.mix_with(rest, piece.salt);
        self.set(self.entry(self.plan.said + number), said);
        let known = coordinates.iter().fold(0u64, |all, at| {
            let first = pieces.set_starts[self.elements[at.element as usize].set];
            all.wrapping_add(at.role.wrapping_mul(code_of_rank(first)))
        });
        let known = self.constant(known);
        let said = self.b.ins().iadd(said, known);
        let codes = self.relate(piece, (value, said), self.plan.first_ranks);
        // Elements that are mentioned with others, but not the one that a piece outside of bags lies below.
        let named = self.b.ins().ushr_imm_u(codes, i64::from(NAME_SHIFT));
        let count = self.b.ins().iadd_imm_s(named, coordinates.len() as i64);
        let several = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, count, 1);
        let several = self.b.ins().uextend(types::I64, several);
        for pointer in pointers {
            let field = self.field(value, pointer);
            let entry = self.named(self.plan.named, pointer, field);
            let before = self.get(entry);
            let named = self.b.ins().bor(before, several);
            self.set(entry, named);
        }
        if after.is_some() {
            for at in coordinates {
                let named = self.elements[at.element as usize].named;
                let before = self.b.use_var(named);
                let now = self.b.ins().bor(before, several);
                self.b.def_var(named, now);
            }
        }
        self.arrive(after);
    }

    /// Adds what a piece says about the elements it mentions, given what it says about those that it lies below. Of others,
    /// a table has the ranks; gives the sum of what that has.
    pub fn relate(&mut self, piece: &Piece, (value, said): (Value, Value), ranks: usize) -> Value {
        let pieces = self.pieces;
        let pointers = pieces.pointers(piece);
        let fields: Vec<Value> = pointers.iter().map(|pointer| self.field(value, pointer)).collect();
        let (mut all, mut codes) = (said, self.constant(0));
        for (pointer, &field) in pointers.iter().zip(&fields) {
            let mut code = self.get(self.named(ranks, pointer, field));
            if pointer.shared {
                let inside = self.is_name(pointer, field);
                code = self.only_if(inside, code);
            }
            codes = self.b.ins().iadd(codes, code);
            let role = self.constant(pointer.role);
            let product = self.b.ins().imul(code, role);
            all = self.b.ins().iadd(all, product);
        }
        let all = self.mix(all);
        for at in pieces.coordinates(piece) {
            let role = self.constant(at.role);
            let mut said = self.b.ins().imul(all, role);
            if is_of_one_element(pieces, piece) {
                // Where nothing is said nobody is named.
                said = self.only_if(value, said);
            }
            self.add_to_variable(self.elements[at.element as usize].sum, said);
        }
        for (pointer, &field) in pointers.iter().zip(&fields) {
            let role = self.constant(pointer.role);
            let said = self.b.ins().imul(all, role);
            self.add_to(self.named(self.plan.sums, pointer, field), said);
        }
        codes
    }

    /// Sums what pieces say about elements that are known by rank.
    pub fn relate_all(&mut self) {
        let pieces = self.pieces;
        let mut ranks = Vec::new();
        for element in 0..self.elements.len() {
            let rank = self.b.use_var(self.elements[element].rank);
            let first = pieces.set_starts[self.elements[element].set];
            let code = self.constant(code_of_rank(first));
            let code = self.b.ins().iadd(rank, code);
            self.set(self.entry_of(self.plan.ranks, element), code);
            ranks.push(code);
            let zero = self.constant(0);
            self.b.def_var(self.elements[element].sum, zero);
        }
        self.clear(self.plan.sums);
        for (number, piece) in pieces.all.iter().enumerate() {
            if Tells::of(pieces, piece) != Tells::Relation {
                continue;
            }
            let value = self.get(self.entry(self.plan.values + number));
            let after = (!is_of_one_element(pieces, piece)).then(|| self.skip_unless(value));
            let mut said = self.get(self.entry(self.plan.said + number));
            for at in pieces.coordinates(piece) {
                let role = self.constant(at.role);
                let product = self.b.ins().imul(ranks[at.element as usize], role);
                said = self.b.ins().iadd(said, product);
            }
            self.relate(piece, (value, said), self.plan.ranks);
            self.arrive(after);
        }
    }

    /// Orders the elements of each set by key and then by number; says whether any are alike.
    pub fn order(&mut self, mut key: impl FnMut(&mut Self, usize) -> Value) -> Value {
        let mut any = self.constant(0);
        for range in self.pieces.set_starts.windows(2) {
            let members: Vec<usize> = (range[0] as usize..range[1] as usize).collect();
            if members.len() < 2 {
                continue;
            }
            let keys: Vec<Value> = members.iter().map(|&member| key(self, member)).collect();
            let mut places: Vec<Value> = (0..members.len()).map(|number| self.constant(number as u64)).collect();
            let zero = self.constant(0);
            let mut alike_before = vec![zero; members.len()];
            for one in 0..members.len() {
                for other in one + 1..members.len() {
                    let less = self.b.ins().icmp(IntCC::UnsignedLessThan, keys[other], keys[one]);
                    let less = self.b.ins().uextend(types::I64, less);
                    places[one] = self.b.ins().iadd(places[one], less);
                    places[other] = self.b.ins().isub(places[other], less);
                    let alike = self.b.ins().icmp(IntCC::Equal, keys[other], keys[one]);
                    let alike = self.b.ins().uextend(types::I64, alike);
                    alike_before[other] = self.b.ins().iadd(alike_before[other], alike);
                }
            }
            for (at, &member) in members.iter().enumerate() {
                any = self.b.ins().bor(any, alike_before[at]);
                let first = self.b.ins().isub(places[at], alike_before[at]);
                let Element { place, rank, .. } = self.elements[member];
                self.b.def_var(place, places[at]);
                self.b.def_var(rank, first);
            }
        }
        any
    }

    /// Is anything known of elements of equal rank that may tell them apart? If nobody names them and they have the same
    /// pieces, then their exchange changes nothing.
    pub fn differ_though_tied(&mut self) -> Value {
        let mut any = self.constant(0);
        for range in self.pieces.set_starts.windows(2) {
            let members = range[0] as usize..range[1] as usize;
            let (mut ranks, mut named, mut own) = (Vec::new(), Vec::new(), Vec::new());
            for element in members.clone() {
                ranks.push(self.b.use_var(self.elements[element].rank));
                named.push(self.told(self.elements[element].named, self.plan.named, element));
                let pieces = self.pieces.own[element].iter();
                let pieces = pieces.map(|&piece| self.get(self.entry(self.plan.values + piece as usize)));
                own.push(pieces.collect::<Vec<Value>>());
            }
            for one in 0..members.len() {
                for other in one + 1..members.len() {
                    let mut different = self.b.ins().bor(named[one], named[other]);
                    for (&mine, &its) in own[one].iter().zip(&own[other]) {
                        let here = self.b.ins().bxor(mine, its);
                        different = self.b.ins().bor(different, here);
                    }
                    let alike = self.b.ins().icmp(IntCC::Equal, ranks[one], ranks[other]);
                    let different = self.only_if(alike, different);
                    any = self.b.ins().bor(any, different);
                }
            }
        }
        any
    }

    /// Does any piece mention two elements that have the ranks of others? If none does, then what is said about such elements differs in their
    /// own names only, and their exchange changes nothing.
    pub fn are_tied_related(&mut self) -> Value {
        let pieces = self.pieces;
        let mut tied = vec![self.constant(0); self.elements.len()];
        for range in pieces.set_starts.windows(2) {
            for one in range[0] as usize..range[1] as usize {
                for other in one + 1..range[1] as usize {
                    let ranks = [one, other].map(|element| self.b.use_var(self.elements[element].rank));
                    let alike = self.b.ins().icmp(IntCC::Equal, ranks[0], ranks[1]);
                    let alike = self.b.ins().uextend(types::I64, alike);
                    for element in [one, other] {
                        tied[element] = self.b.ins().bor(tied[element], alike);
                    }
                }
            }
        }
        for (element, tied) in tied.iter_mut().enumerate() {
            *tied = self.b.ins().ishl_imm_u(*tied, element as i64);
            self.set(self.entry_of(self.plan.by, element), *tied);
        }
        let related = self.b.declare_var(types::I64);
        let none = self.constant(0);
        self.b.def_var(related, none);
        for (number, piece) in pieces.all.iter().enumerate() {
            if Tells::of(pieces, piece) != Tells::Relation {
                continue;
            }
            let value = self.get(self.entry(self.plan.values + number));
            let after = self.skip_unless(value);
            let mut all = self.constant(0);
            for at in pieces.coordinates(piece) {
                all = self.b.ins().bor(all, tied[at.element as usize]);
            }
            for pointer in pieces.pointers(piece) {
                let field = self.field(value, pointer);
                let one = self.get(self.named(self.plan.by, pointer, field));
                all = self.b.ins().bor(all, one);
            }
            let but_lowest = self.b.ins().iadd_imm_s(all, -1);
            let but_lowest = self.b.ins().band(all, but_lowest);
            let before = self.b.use_var(related);
            let now = self.b.ins().bor(before, but_lowest);
            self.b.def_var(related, now);
            self.arrive(Some(after));
        }
        self.b.use_var(related)
    }
}

/// A piece that tells something about an element, and whom that names: most of them are not zero.
fn is_of_one_element(pieces: &Pieces, piece: &Piece) -> bool {
    piece.place == Lies::Outside && pieces.coordinates(piece).len() == 1
}
