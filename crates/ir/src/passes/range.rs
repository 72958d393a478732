//! Narrows the ranges of variables to what can be stored in them.
//!
//! A forward interval analysis: one interval per class of leaves (see `leaves`), flow-sensitive within a
//! command (see `flow`), iterated with widening to powers of two and then narrowed. If every value that is
//! ever stored lies in `held`, any range with `held ⊆ range ⊆ declared` behaves like the declared one: a
//! trapping store traps on the same values, for those in between never occur. We take the smallest such
//! range that fills its bits, because wrapping stores need that (and where they occur it always exists),
//! else `held` itself. Temporaries change only along with variables that they are copied from or to.
//!
//! A search by symmetry meets states that no run of the system goes through: those of runs, renamed. A start may choose the
//! first element of a set each time, and yet any other is met in its place. So there a variable that may hold one element of
//! a set may hold them all.
//! (Cousot and Cousot 1977.)

use super::flow::{Flow, Held};
use super::interval::Interval;
use super::leaves::{Leaves, Unit, count, units};
use crate::layout::Layout;
use crate::procedures::{Summary, summaries};
use crate::symmetry::{Shape, Symmetry};
use crate::system::System;
use crate::types::{Scalar, Type};

/// How often an interval grows before it is widened.
const PATIENCE: u32 = 8;
/// Expressions and statements looked at before the analysis gives up.
const WORK_LIMIT: u64 = 20_000_000;
/// Rounds of narrowing at the end.
const NARROWINGS: usize = 2;

/// Narrows the ranges of a verified system, to what states have when they are renamed by `symmetry`.
pub fn shrink(system: System, symmetry: Option<&Symmetry>) -> System {
    let units = units(&system);
    let summaries = summaries(&system);
    let leaves = Leaves::of(&system, &units);
    let mut initial = vec![Held::default(); leaves.scalars.len()];
    let mut frozen = vec![false; leaves.scalars.len()];
    add_initial_values(&system, &units, &leaves, &mut initial, &mut frozen);
    let elements = Elements::of(&system, symmetry, &leaves);
    let starts = (&initial[..], &frozen[..]);
    let Some(held) = solve((&system, &summaries), &units, &leaves, &elements, starts) else { return system };
    let mut in_state = vec![false; leaves.scalars.len()];
    for var in 0..system.vars.len() {
        let first = leaves.var(var);
        for leaf in first..first + count(&system.vars[var].ty) {
            in_state[leaves.class[leaf]] = true;
        }
    }
    let ranges: Vec<Option<Interval>> = (0..leaves.scalars.len())
        .map(|leaf| {
            let class = leaves.class[leaf];
            let wanted = in_state[class] && !frozen[class];
            wanted.then(|| narrowed(&leaves.scalars[class], held[class])).flatten()
        })
        .collect();
    let mut shrunk = system.clone();
    rewrite(&mut shrunk, &leaves, &ranges);
    // Packing is greedy, so smaller parts may by bad luck make a longer state.
    let words = |system: &System| Layout::of_system(system).words();
    if words(&shrunk) > words(&system) { system } else { shrunk }
}

/// Which values of each class of leaves are exchanged for one another.
struct Elements(Vec<Vec<Interval>>);

impl Elements {
    fn of(system: &System, symmetry: Option<&Symmetry>, leaves: &Leaves) -> Elements {
        let mut elements = Elements(vec![Vec::new(); leaves.scalars.len()]);
        if let Some(symmetry) = symmetry.filter(|symmetry| symmetry.fits(system)) {
            for (index, (shape, var)) in symmetry.vars.iter().zip(&system.vars).enumerate() {
                elements.add(symmetry, shape, &var.ty, &mut leaves.var(index), leaves);
            }
        }
        elements
    }

    fn add(&mut self, symmetry: &Symmetry, shape: &Shape, ty: &Type, leaf: &mut usize, leaves: &Leaves) {
        match (shape, ty) {
            (Shape::Scalar(parts), Type::Scalar(_)) => {
                let of_class = &mut self.0[leaves.class[*leaf]];
                for part in parts {
                    let (first, size) = (part.first as i64, symmetry.sets[part.set as usize].size as i64);
                    let elements = Interval::new(first, first + size.max(1) - 1);
                    if !of_class.contains(&elements) {
                        of_class.push(elements);
                    }
                }
                *leaf += 1;
            }
            (Shape::Array { element: shape, .. }, Type::Array { element, .. }) => {
                self.add(symmetry, shape, element, leaf, leaves);
            }
            (Shape::Record(shapes), Type::Record(fields)) => {
                let fields = shapes.iter().zip(fields);
                fields.for_each(|(shape, (_, ty))| self.add(symmetry, shape, ty, leaf, leaves));
            }
            (Shape::Bag { slot }, Type::Record(fields)) => {
                let slots = Shape::Array { parts: Vec::new(), element: slot.clone() };
                self.add(symmetry, &slots, &fields[0].1, leaf, leaves);
                *leaf += count(&fields[1].1);
            }
            _ => unreachable!("the symmetry fits"),
        }
    }

    /// Who may hold one element of a set may hold all of it.
    fn complete(&self, class: usize, scalar: &Scalar, held: &mut Held) {
        let may_hold = |elements: Interval| elements.meet(Interval::range(scalar));
        // Each may add some of the others.
        for _ in 0..self.0[class].len() {
            for elements in self.0[class].iter().copied().filter_map(may_hold) {
                if held.values.is_some_and(|values| values.meet(elements).is_some()) {
                    held.add(elements);
                }
            }
        }
    }

    fn complete_all(&self, leaves: &Leaves, held: &mut [Held]) {
        for (class, held) in held.iter_mut().enumerate() {
            self.complete(class, &leaves.scalars[class], held);
        }
    }
}

/// Zero or the declared initial values for variables, zero for temporaries.
fn add_initial_values(system: &System, units: &[Unit], leaves: &Leaves, held: &mut [Held], frozen: &mut [bool]) {
    for (index, var) in system.vars.iter().enumerate() {
        let mut values = var.init.iter();
        add_type(&var.ty, &mut leaves.var(index), &mut values, leaves, held, frozen);
    }
    for (number, unit) in units.iter().enumerate() {
        for (temp, (_, ty)) in unit.locals.temps.iter().enumerate().skip(unit.inputs) {
            add_type(ty, &mut leaves.temp(number, temp), &mut [].iter(), leaves, held, frozen);
        }
    }
    for process in &system.processes {
        let class = leaves.class[leaves.var(process.location.index())];
        held[class].add(Interval::new(0, process.locations.len() as i64 - 1));
    }
    if let Some(exclusive) = system.exclusive {
        let leaf = leaves.var(exclusive.index());
        held[leaves.class[leaf]].add_zero(&leaves.scalars[leaf]);
    }
}

fn add_type<'a>(
    ty: &Type,
    leaf: &mut usize,
    values: &mut impl Iterator<Item = &'a i64>,
    leaves: &Leaves,
    held: &mut [Held],
    frozen: &mut [bool],
) {
    match ty {
        Type::Scalar(scalar) => {
            let class = leaves.class[*leaf];
            match values.next() {
                None | Some(0) => held[class].add_zero(scalar),
                Some(&value) if scalar.contains(value) => held[class].add(Interval::point(value)),
                // An initial value outside the range: leave such a variable alone.
                Some(_) => {
                    held[class].add(Interval::stored(scalar));
                    frozen[class] = true;
                }
            }
            *leaf += 1;
        }
        Type::Array { element, len } => {
            let first = *leaf;
            for _ in 0..*len {
                *leaf = first;
                add_type(element, leaf, values, leaves, held, frozen);
            }
        }
        Type::Record(fields) => {
            fields.iter().for_each(|(_, ty)| add_type(ty, leaf, values, leaves, held, frozen));
        }
    }
}

/// A fixed point, or `None` if that takes too long. First upwards, running units again while anything they may
/// look at has grown; then some rounds down: what a fixed point leads to lies below it and is sound as well.
fn solve(
    (system, summaries): (&System, &[Summary]),
    units: &[Unit],
    leaves: &Leaves,
    elements: &Elements,
    (initial, frozen): (&[Held], &[bool]),
) -> Option<Vec<Held>> {
    let touched: Vec<Vec<usize>> =
        units.iter().enumerate().map(|(number, unit)| leaves.touched(system, number, unit)).collect();
    let mut held = initial.to_vec();
    elements.complete_all(leaves, &mut held);
    let mut growths = vec![0; held.len()];
    let mut grown = vec![true; held.len()];
    let mut work = 0;
    while grown.contains(&true) {
        let looked_at = std::mem::replace(&mut grown, vec![false; held.len()]);
        for unit in units.iter().enumerate() {
            if !touched[unit.0].is_empty() && !touched[unit.0].iter().any(|&class| looked_at[class] || grown[class]) {
                continue;
            }
            let (stored, steps) = Flow::run((system, summaries), leaves, unit, &held);
            work += steps;
            for (class, stored) in stored {
                let mut joined = held[class];
                joined.store(stored, leaves);
                if joined != held[class] {
                    growths[class] += 1;
                    grown[class] = true;
                    let widen = growths[class] > PATIENCE && !frozen[class];
                    held[class] = if widen { widened(&leaves.scalars[class], held[class], joined) } else { joined };
                    elements.complete(class, &leaves.scalars[class], &mut held[class]);
                }
            }
            if work > WORK_LIMIT {
                return None;
            }
        }
    }
    for _ in 0..NARROWINGS {
        let mut next = initial.to_vec();
        for unit in units.iter().enumerate() {
            for (class, stored) in Flow::run((system, summaries), leaves, unit, &held).0 {
                next[class].store(stored, leaves);
            }
        }
        elements.complete_all(leaves, &mut next);
        held = next;
    }
    Some(held)
}

/// Moves a bound that has grown to the next power of two within the declared range.
fn widened(scalar: &Scalar, old: Held, joined: Held) -> Held {
    let (Some(before), Some(now)) = (old.values, joined.values) else { return joined };
    let high = if now.high > before.high { power_above(now.high).min(scalar.high) } else { now.high };
    let low = if now.low < before.low { (!power_above(!now.low)).max(scalar.low) } else { now.low };
    Held { values: Some(Interval::new(low.min(now.low), high.max(now.high))), ..joined }
}

/// The smallest `2^k - 1` that is not below `value`; -1 (no bits) for negative ones.
fn power_above(value: i64) -> i64 {
    if value < 0 { -1 } else { ((1i128 << (64 - value.leading_zeros())) - 1).min(i64::MAX as i128) as i64 }
}

/// A smaller range for a scalar that only ever holds `held`; `None` if it saves no bits.
fn narrowed(scalar: &Scalar, held: Held) -> Option<Interval> {
    let declared = Interval::range(scalar);
    let values = held.values.unwrap_or(Interval::point(if scalar.contains(0) { 0 } else { scalar.low }));
    let exact = Scalar::range(values.low, values.high);
    let full = Interval::stored(&exact);
    let range = if full.within(declared) { full } else { values };
    (range.within(declared) && exact.bits() < scalar.bits()).then_some(range)
}

/// Gives every leaf its new range.
fn rewrite(system: &mut System, leaves: &Leaves, ranges: &[Option<Interval>]) {
    for (index, var) in system.vars.iter_mut().enumerate() {
        rewrite_type(&mut var.ty, &mut leaves.var(index), ranges);
    }
    let commands = system.starts.iter_mut().chain(&mut system.commands).map(|command| &mut command.temps);
    let properties = system.properties.iter_mut().map(|property| &mut property.temps);
    let mut number = 0;
    for temps in commands.chain(properties) {
        for (temp, (_, ty)) in temps.iter_mut().enumerate() {
            rewrite_type(ty, &mut leaves.temp(number, temp), ranges);
        }
        number += 1;
    }
    for procedure in &mut system.procedures {
        for (temp, (_, ty)) in procedure.temps.iter_mut().enumerate() {
            rewrite_type(ty, &mut leaves.temp(number, temp), ranges);
        }
        for (reference, (_, ty)) in procedure.references.iter_mut().enumerate() {
            rewrite_type(ty, &mut leaves.reference(number, reference), ranges);
        }
        number += 1;
    }
}

fn rewrite_type(ty: &mut Type, leaf: &mut usize, ranges: &[Option<Interval>]) {
    match ty {
        Type::Scalar(scalar) => {
            if let Some(range) = ranges[*leaf] {
                (scalar.low, scalar.high) = (range.low, range.high);
            }
            *leaf += 1;
        }
        Type::Array { element, .. } => rewrite_type(element, leaf, ranges),
        Type::Record(fields) => fields.iter_mut().for_each(|(_, ty)| rewrite_type(ty, leaf, ranges)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symmetry::{Interchangeable, Part};
    use crate::text::{parse, print};
    use crate::verify::verify;

    /// Shrinks a system and returns the declarations of its variables as printed.
    fn shrunk(text: &str) -> Vec<String> {
        let system = parse(&format!("system \"t\" {text}")).unwrap();
        verify(&system).unwrap();
        let system = shrink(system, None);
        verify(&system).unwrap();
        let lines = print(&system);
        lines.lines().filter_map(|line| line.strip_prefix("var ")).map(str::to_string).collect()
    }

    fn command(code: &str) -> String {
        format!("command \"c\" {{ {code} }}")
    }

    #[test]
    fn flags_in_bytes_take_one_bit() {
        let body = "when x == 0 do { x := 1 wrapping; y := !x wrapping; z := x > 3; }";
        let vars = shrunk(&format!("var x: 0..255 var y: 0..255 var z: -128..127 {}", command(body)));
        assert_eq!(vars, ["x: 0..1", "y: 0..1", "z: 0..1"]);
    }

    #[test]
    fn guards_bound_counters() {
        let vars = shrunk(&format!("var j: 0..255 {}", command("when j < 4 do { j := j + 1 wrapping; }")));
        assert_eq!(vars, ["j: 0..7"]);
        let vars =
            shrunk(&format!("var j: -32768..32767 {}", command("when (j != -5) && (j <= 0) do { j := j - 1; }")));
        assert_eq!(vars, ["j: -8..7"], "it passes -5 only by way of -5");
        let vars = shrunk(&format!("var j: -32768..32767 {}", command("when j <= 0 do { j := j - 1; }")));
        assert_eq!(vars, ["j: -32768..32767"]);
        let vars = shrunk(&format!("var j: 0..255 {}", command("do { j := j + 1 wrapping; }")));
        assert_eq!(vars, ["j: 0..255"]);
        let body = "do { j := select(j < 100, j + 1, 0) wrapping; k := j % 4; }";
        let vars = shrunk(&format!("var j: 0..255 var k: 0..255 {}", command(body)));
        assert_eq!(vars, ["j: 0..127", "k: 0..3"]);
    }

    #[test]
    fn traps_stay_where_they_were() {
        let vars = shrunk(&format!("var j: 0..10 {}", command("do { if j < 4 { j := j + 1; } else { j := 12; } }")));
        assert_eq!(vars, ["j: 0..7"], "12 traps in either");
        let vars = shrunk(&format!("var j: 1..20 = 1 {}", command("when j < 4 do { j := j + 1; }")));
        assert_eq!(vars, ["j: 1..4 = 1"], "zero was not allowed before");
        let vars = shrunk(&format!("var j: 0..6 = 1 {}", command("when j < 2 do { j := j + 1; }")));
        assert_eq!(vars, ["j: 0..3 = 1"]);
    }

    #[test]
    fn zero_outside_the_range_is_no_value_of_it() {
        let vars = shrunk(&format!("var x: 1..200 {}", command("do { if x == 0 { x := 3; } else { reset x; } }")));
        assert_eq!(vars, ["x: 3..3"]);
        let vars = shrunk(&format!("var x: 5..6 = 7 {}", command("do { x := 5; }")));
        assert_eq!(vars, ["x: 5..6 = 7"], "an initial value outside the range");
    }

    #[test]
    fn copies_share_a_range() {
        let body = "temp t: { f: 0..255 } temp u: 0..255 do { t <- a[1]; t.f := 9; b <- t; u := 77; }";
        let vars = shrunk(&format!("var a: [2] {{ f: 0..255 }} = 3, 1 var b: {{ f: 0..255 }} {}", command(body)));
        assert_eq!(vars, ["a: [2] { f: 0..15 } = 3, 1", "b: { f: 0..15 }"]);
    }

    #[test]
    fn facts_do_not_outlive_breaks_and_loops() {
        let body = "temp t: 0..255 do { block { if x < 3 { break 0; } x := 50; } y := x;
            loop 9 { if t > 5 { break 0; } t := t + 1; } z := t; }";
        let vars = shrunk(&format!("var x: 0..255 var y: 0..255 var z: 0..255 {}", command(body)));
        assert_eq!(vars, ["x: 0..1", "y: 0..1", "z: 0..7"]);
        let body = "do { block { if x < 3 { x := 9; break 0; } x := 50; } y := x; if z == 2 { discard; } w := z; }";
        let vars = shrunk(&format!("var x: 0..255 var y: 0..255 var w: 0..255 var z: 0..255 = 2 {}", command(body)));
        assert_eq!(vars, ["x: 0..63", "y: 0..63", "w: 0..1", "z: 0..3 = 2"]);
    }

    #[test]
    fn who_may_hold_one_element_may_hold_all_of_its_set() {
        // Elements of `a` are 1 to 3, those of `b` 4 to 9.
        let text = "var one: 0..9 var both: 0..9 var none: 0..9 var copy: 0..9 var read: 0..9
            var bag: { s: [2] 0..9, f: [2] 0..1 }
            command \"c\" { do { one := 1; both := 3; both := 5; copy <- one; bag.s[0] := 7; } }
            command \"d\" { do { read := one; } }";
        let mut system = parse(&format!("system \"t\" {text}")).unwrap();
        let part = |set, first| Part { set, first };
        let set = |size| Interchangeable { name: "s".into(), size };
        let either = || Shape::Scalar(vec![part(0, 1), part(1, 4)]);
        let plain = || Shape::Scalar(Vec::new());
        let bag = Shape::Bag { slot: Box::new(either()) };
        let vars = vec![either(), either(), either(), plain(), plain(), bag];
        let symmetry = Symmetry { sets: vec![set(3), set(6)], vars };
        assert!(symmetry.fits(&system));
        let ranges = |system: System, symmetry: Option<&Symmetry>| {
            let vars = shrink(system, symmetry).vars;
            let scalar = |ty: &Type| ty.as_scalar().map(|scalar| (scalar.low, scalar.high));
            let highest = |ty: &Type| match ty {
                Type::Record(fields) => match &fields[0].1 {
                    Type::Array { element, .. } => scalar(element),
                    _ => None,
                },
                ty => scalar(ty),
            };
            vars.iter().map(|var| highest(&var.ty).unwrap()).collect::<Vec<_>>()
        };
        let usual = ranges(system.clone(), None);
        assert_eq!(usual, [(0, 1), (0, 7), (0, 1), (0, 1), (0, 1), (0, 7)]);
        let renamed = ranges(system.clone(), Some(&symmetry));
        assert_eq!(renamed, [(0, 3), (0, 9), (0, 1), (0, 3), (0, 3), (0, 9)]);
        // A symmetry of other variables says nothing.
        system.vars.pop();
        system.commands.clear();
        assert_eq!(ranges(system, Some(&symmetry)), [(0, 1); 5]);
    }

    #[test]
    fn locations_stay_covered_and_dead_commands_do_not_count() {
        let text = "var pc: 0..255 of P var x: 0..255 process P at pc { a, b, c }
            command \"c\" at P.a { do { pc := 1; } } command \"d\" at P.b { when x > 0 do { x := 200; } }";
        assert_eq!(shrunk(text), ["pc: 0..3 of P", "x: 0..1"]);
    }
}
