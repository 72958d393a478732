//! Sets whose elements nothing relates to one another: sorting them gives what trying all orders gives, and native code sorts as this code does.

use super::super::Precision;
use super::super::canon::{Canon, Scratch};
use super::shapes::{Draw, Variables, renamed};
use plimsoll_ir::symmetry::{Interchangeable, Part, Shape, Symmetry};
use plimsoll_ir::{Layout, Scalar, System, Type};

/// A set of any size with records, another one that only variables name, and two elements that both name.
const SETS: [&str; 3] = ["many", "named", "leader"];

fn names(set: u32, first: u32, sets: &[Interchangeable]) -> (Shape, Type) {
    let last = first + sets[set as usize].size - 1;
    (Shape::Scalar(vec![Part { set, first }]), Scalar::range(0, last.into()).into())
}

/// Values from zero to this one.
fn plain(last: u32) -> (Shape, Type) {
    (Shape::Scalar(Vec::new()), Scalar::range(0, last.into()).into())
}

fn record(fields: Vec<(Shape, Type)>) -> (Shape, Type) {
    let (shapes, types): (Vec<Shape>, Vec<Type>) = fields.into_iter().unzip();
    let named = types.into_iter().enumerate().map(|(number, ty)| (format!("f{number}"), ty));
    (Shape::Record(shapes), Type::Record(named.collect()))
}

fn random_variables(draw: &mut Draw) -> Variables {
    let sizes = [1 + draw.below(9), 1 + draw.below(4), 2];
    let sets: Vec<_> =
        SETS.iter().zip(sizes).map(|(name, size)| Interchangeable { name: name.to_string(), size }).collect();
    let mut vars = Vec::new();
    for _ in 0..draw.below(3) {
        let mut fields: Vec<_> = (0..1 + draw.below(2)).map(|_| plain(1 + draw.below(5))).collect();
        fields.extend((!draw.chance(3)).then(|| names(2, 1, &sets)));
        let (element, ty) = record(fields);
        // Positions around those of the set belong to nobody.
        let first = draw.below(2);
        let len = first + sets[0].size + draw.below(2);
        let array = Shape::Array { parts: vec![Part { set: 0, first }], element: Box::new(element) };
        vars.push((array, Type::array(ty, len)));
    }
    for _ in 0..1 + draw.below(4) {
        let set = draw.below(3);
        let first = if set == 2 { 1 } else { 1 + draw.below(2) };
        vars.push(names(set, first, &sets));
    }
    if draw.chance(2) {
        // A name of either set.
        let parts = vec![Part { set: 0, first: 1 }, Part { set: 1, first: 1 + sizes[0] }];
        vars.push((Shape::Scalar(parts), Scalar::range(0, (sizes[0] + sizes[1]).into()).into()));
    }
    if draw.chance(2) {
        let (element, ty) = record(vec![names(0, 1, &sets), names(2, 1, &sets), plain(2)]);
        let len = 1 + draw.below(4);
        vars.push((Shape::Array { parts: Vec::new(), element: Box::new(element) }, Type::array(ty, len)));
    }
    let mut system = System::new("t");
    let mut shapes = Vec::new();
    for (number, (shape, ty)) in vars.into_iter().enumerate() {
        system.var(format!("v{number}"), ty, None);
        shapes.push(shape);
    }
    Variables { layout: Layout::of_system(&system), system, symmetry: Symmetry { sets, vars: shapes } }
}

fn shuffled(size: u32, draw: &mut Draw) -> Vec<usize> {
    let mut all: Vec<usize> = (0..size as usize).collect();
    (1..all.len()).for_each(|at| all.swap(at, draw.below(at as u32 + 1) as usize));
    all
}

#[test]
fn sorting_gives_what_trying_all_orders_gives() {
    let mut draw = Draw(5);
    let (mut sorted, mut undecided, mut compiled) = (0, 0, 0);
    for _ in 0..500 {
        let variables = random_variables(&mut draw);
        let Variables { system, symmetry, layout } = &variables;
        let canon = || Canon::new(layout, system, symmetry).unwrap();
        let (plain, tried, mut native) = (canon(), canon().without_plain(), canon());
        sorted += plain.is_plain() as u32;
        compiled += (plain.is_plain() && native.compile(layout.words())) as u32;
        let mut scratches = [(); 3].map(|()| Scratch::default());
        for _ in 0..6 {
            let state = variables.random_state(&mut draw);
            undecided += plain.is_undecided(&state) as u32;
            let trees = variables.trees(&state);
            let mut wanted = state.clone();
            plain.represent(&mut wanted, Precision::Exact, &mut scratches[0]);
            let (mut one, mut other) = (state.clone(), wanted.clone());
            tried.represent(&mut one, Precision::Exact, &mut scratches[1]);
            tried.represent(&mut other, Precision::Exact, &mut scratches[1]);
            assert_eq!(one, other, "the representative is not in the orbit: {symmetry:?}");
            for round in 0..12 {
                let to: Vec<Vec<usize>> = symmetry.sets.iter().map(|set| shuffled(set.size, &mut draw)).collect();
                let image: Vec<_> =
                    trees.iter().zip(&symmetry.vars).map(|(tree, shape)| renamed(tree, shape, &to)).collect();
                let precision = [Precision::Exact, Precision::Heuristic][round % 2];
                let (mut expected, mut found) = (variables.state(&image), variables.state(&image));
                plain.represent(&mut expected, precision, &mut scratches[0]);
                native.represent(&mut found, precision, &mut scratches[2]);
                assert_eq!(found, expected, "native code, {precision:?}: {symmetry:?}\n{image:?}");
                assert!(precision == Precision::Heuristic || expected == wanted, "{symmetry:?}\n{image:?}");
            }
        }
    }
    assert!(sorted > 300 && compiled == sorted, "{sorted} sorted, native code for {compiled}");
    assert!(undecided > 100, "leaders told apart but for {undecided} states");
}

/// In keys of more than 64 bits there is no room.
#[test]
fn wide_elements_are_not_sorted() {
    for (count, fits) in [(2, true), (3, false)] {
        let (element, ty) = record((0..count).map(|_| plain((1 << 24) - 1)).collect());
        let mut system = System::new("t");
        system.var("all", Type::array(ty, 3), None);
        let array = Shape::Array { parts: vec![Part { set: 0, first: 0 }], element: Box::new(element) };
        let symmetry = Symmetry { sets: vec![Interchangeable { name: "s".into(), size: 3 }], vars: vec![array] };
        let canon = Canon::new(&Layout::of_system(&system), &system, &symmetry).unwrap();
        assert_eq!(canon.is_plain(), fits, "{count} fields");
    }
}
