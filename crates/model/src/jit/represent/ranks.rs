//! Ranks: what pieces say about elements, summed, and the order of elements by that.

use std::ops::Range;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;

use super::TOGETHER;
use super::emit::Emit;
use crate::symmetry::pieces::{Lies, MOST_LEADING, Naming, Piece, Pieces, code_of_rank};

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

    /// All that was said about an element: what is known, and what the table of sums has.
    pub fn told(&mut self, known: Variable, element: usize) -> Value {
        let (known, named) = (self.b.use_var(known), self.get(self.entry_of(self.plan.sums, element)));
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

    /// Takes in what all pieces say, but leaves out several slots of a bag at a time where none is in use.
    pub fn take_in_all(&mut self) {
        let mut numbers = 0..self.pieces.all.len();
        while let Some(first) = numbers.next() {
            let bag = self.pieces.bags.iter().find(|bag| (bag.first..bag.first + bag.slots).contains(&first));
            let Some(bag) = bag else {
                self.take_in(first);
                continue;
            };
            let end = (first + TOGETHER).min(bag.first + bag.slots);
            let mut any = self.values[first];
            for number in first + 1..end {
                any = self.b.ins().bor(any, self.values[number]);
            }
            let after = self.skip_unless(any);
            for number in first..end {
                let next = self.skip_unless(self.values[number]);
                self.take_in(number);
                self.arrive(Some(next));
            }
            self.arrive(Some(after));
            numbers.start = end;
        }
    }

    fn take_in(&mut self, number: usize) {
        let (pieces, value) = (self.pieces, self.values[number]);
        let piece = &pieces.all[number];
        match Tells::of(pieces, piece) {
            Tells::Own(owner) => {
                let said = self.tells(value, number);
                self.add_to_variable(self.elements[owner].sum, said);
            }
            Tells::Names => self.in_groups(value, pieces.namings(piece), |emit, naming| {
                let said = emit.constant(piece.salt);
                emit.say_by(naming, value, said);
            }),
            Tells::Relation => self.take_in_relation(number, piece, value),
        }
    }

    fn take_in_relation(&mut self, number: usize, piece: &Piece, value: Value) {
        let pieces = self.pieces;
        if pieces.bags.iter().any(|bag| (bag.first + 1..bag.first + bag.slots).contains(&number)) {
            let greater = self.b.ins().icmp(IntCC::UnsignedLessThan, self.values[number - 1], value);
            let greater = self.b.ins().uextend(types::I64, greater);
            let disorder = self.entry(self.plan.disorder);
            let before = self.get(disorder);
            let now = self.b.ins().bor(before, greater);
            self.set(disorder, now);
        }
        let rest = self.without_names(value, piece);
        let said = self.tells(rest, number);
        self.set(self.entry(self.plan.said + number), said);
        self.say(piece, value, said);
    }

    /// Adds what a piece says to what is known of those it mentions.
    pub fn say(&mut self, piece: &Piece, value: Value, said: Value) {
        for at in self.pieces.coordinates(piece) {
            let role = self.constant(at.role);
            let said = self.b.ins().imul(said, role);
            if is_of_one_element(self.pieces, piece) {
                self.add_to_variable(self.elements[at.element as usize].sum, said);
            } else {
                let said = self.behind(said);
                self.add_to(self.entry_of(self.plan.sums, at.element as usize), said);
            }
        }
        for naming in self.pieces.namings(piece) {
            self.say_by(naming, value, said);
        }
    }

    /// What is said about an element, behind what leads.
    fn behind(&mut self, said: Value) -> Value {
        self.b.ins().ushr_imm_u(said, i64::from(MOST_LEADING))
    }

    /// The same of those that certain fields name.
    fn say_by(&mut self, naming: &Naming, value: Value, said: Value) {
        if !naming.few {
            let (field, role) = (self.field(value, &naming.fields[0]), self.constant(naming.role));
            let said = self.b.ins().imul(said, role);
            let said = self.behind(said);
            self.add_to(self.named(self.plan.sums, &naming.fields[0], field), said);
            return;
        }
        let factors = self.factors(value, naming);
        for (factor, element) in factors.into_iter().zip(naming.set().0 as usize..) {
            let said = self.b.ins().imul(said, factor);
            let said = self.behind(said);
            self.add_to_variable(self.elements[element].sum, said);
        }
    }

    /// Sums what pieces say about elements that are known by rank.
    pub fn relate_all(&mut self) {
        let pieces = self.pieces;
        let mut ranks = Vec::new();
        for element in 0..self.elements.len() {
            let rank = self.b.use_var(self.elements[element].rank);
            let first = pieces.set_starts[self.elements[element].set];
            let code = self.b.ins().iadd_imm_s(rank, code_of_rank(first) as i64);
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
            let after = self.skip_unless(value);
            let mut said = self.get(self.entry(self.plan.said + number));
            for at in pieces.coordinates(piece) {
                let role = self.constant(at.role);
                let product = self.b.ins().imul(ranks[at.element as usize], role);
                said = self.b.ins().iadd(said, product);
            }
            for naming in pieces.namings(piece) {
                if naming.few {
                    let factors = self.factors(value, naming);
                    for (factor, element) in factors.into_iter().zip(naming.set().0 as usize..) {
                        let product = self.b.ins().imul(ranks[element], factor);
                        said = self.b.ins().iadd(said, product);
                    }
                } else {
                    let field = self.field(value, &naming.fields[0]);
                    let code = self.get(self.named(self.plan.ranks, &naming.fields[0], field));
                    let role = self.constant(naming.role);
                    let product = self.b.ins().imul(code, role);
                    said = self.b.ins().iadd(said, product);
                }
            }
            let said = self.mix(said);
            self.say(piece, value, said);
            self.arrive(Some(after));
        }
    }

    /// What was said about each element, as its key; says whether that leaves everything as it is.
    pub fn sums(&mut self) -> Value {
        let disorder = self.bags_in_disorder();
        let mut ascending = self.b.ins().icmp_imm_u(IntCC::Equal, disorder, 0);
        for range in self.sets_of_several() {
            let sums: Vec<Value> =
                range.clone().map(|element| self.told(self.elements[element].sum, element)).collect();
            for pair in sums.windows(2) {
                let less = self.b.ins().icmp(IntCC::UnsignedLessThan, pair[0], pair[1]);
                ascending = self.b.ins().band(ascending, less);
            }
            for (element, sum) in range.zip(sums) {
                self.b.def_var(self.elements[element].key, sum);
            }
        }
        ascending
    }

    /// Is any bag not in order?
    pub fn bags_in_disorder(&mut self) -> Value {
        if self.pieces.bags.is_empty() { self.constant(0) } else { self.get(self.entry(self.plan.disorder)) }
    }

    /// Orders the elements of each set by key and then by number; says whether any are alike.
    pub fn order(&mut self, mut key: impl FnMut(&mut Self, usize) -> Value) -> Value {
        // Answers of comparisons are bytes, and places fit into them.
        let mut any = self.b.ins().iconst(types::I8, 0);
        for range in self.sets_of_several() {
            let keys: Vec<Value> = range.clone().map(|member| key(self, member)).collect();
            let mut places: Vec<Value> =
                (0..keys.len()).map(|number| self.b.ins().iconst(types::I8, number as i64)).collect();
            for one in 0..keys.len() {
                for other in one + 1..keys.len() {
                    let less = self.b.ins().icmp(IntCC::UnsignedLessThan, keys[other], keys[one]);
                    places[one] = self.b.ins().iadd(places[one], less);
                    places[other] = self.b.ins().isub(places[other], less);
                    let alike = self.b.ins().icmp(IntCC::Equal, keys[other], keys[one]);
                    any = self.b.ins().bor(any, alike);
                }
            }
            for ((member, place), key) in range.zip(places).zip(keys) {
                let at = self.b.ins().uextend(types::I64, place);
                self.b.def_var(self.elements[member].place, at);
                self.b.def_var(self.elements[member].key, key);
            }
        }
        any
    }

    /// Finds ranks, once elements are in order: that of the first of those alike.
    pub fn rank(&mut self) {
        for range in self.sets_of_several() {
            let keys: Vec<Value> = range.clone().map(|member| self.b.use_var(self.elements[member].key)).collect();
            for (at, member) in range.enumerate() {
                let mut rank = self.b.use_var(self.elements[member].place);
                for before in 0..at {
                    let alike = self.b.ins().icmp(IntCC::Equal, keys[before], keys[at]);
                    let alike = self.b.ins().uextend(types::I64, alike);
                    rank = self.b.ins().isub(rank, alike);
                }
                self.b.def_var(self.elements[member].rank, rank);
            }
        }
    }

    fn sets_of_several(&self) -> Vec<Range<usize>> {
        let sets = self.pieces.set_starts.windows(2).map(|set| set[0] as usize..set[1] as usize);
        sets.filter(|set| set.len() > 1).collect()
    }

    /// Which elements are named, as far as that is known from fields of few elements.
    fn named_by_few(&mut self) -> Vec<Value> {
        let mut named = vec![self.constant(0); self.elements.len()];
        for (number, piece) in self.pieces.all.iter().enumerate() {
            for naming in self.pieces.namings(piece).iter().filter(|naming| naming.few) {
                let value = self.get(self.entry(self.plan.values + number));
                for (place, element) in (0..naming.set().1).zip(naming.set().0 as usize..) {
                    let here = self.naming(value, &naming.fields, place);
                    named[element] = self.b.ins().bor(named[element], here);
                }
            }
        }
        named
    }

    /// Is anything known of elements of equal rank that may tell them apart? If nobody names them and they have the same
    /// pieces, then their exchange changes nothing.
    pub fn differ_though_tied(&mut self) -> Value {
        let mut any = self.constant(0);
        let by_few = self.named_by_few();
        for members in self.sets_of_several() {
            let (mut ranks, mut named, mut own) = (Vec::new(), Vec::new(), Vec::new());
            for element in members.clone() {
                ranks.push(self.b.use_var(self.elements[element].rank));
                let others = self.get(self.entry_of(self.plan.sums, element));
                named.push(self.b.ins().bor(others, by_few[element]));
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

    /// Are no more than two elements alike?
    pub fn is_one_pair_tied(&mut self) -> Value {
        let mut pairs = self.constant(0);
        for members in self.sets_of_several() {
            for one in members.clone() {
                for other in one + 1..members.end {
                    let ranks = [one, other].map(|element| self.b.use_var(self.elements[element].rank));
                    let alike = self.b.ins().icmp(IntCC::Equal, ranks[0], ranks[1]);
                    let alike = self.b.ins().uextend(types::I64, alike);
                    pairs = self.b.ins().iadd(pairs, alike);
                }
            }
        }
        self.b.ins().icmp_imm_u(IntCC::Equal, pairs, 1)
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
