//! Representatives on random variables: what they are is checked against the definition, all permutations tried.

use super::super::Precision;
use super::super::canon::{Canon, Scratch};
use super::permutations;
use plimsoll_ir::symmetry::{Interchangeable, Part, Shape, Symmetry};
use plimsoll_ir::{Layout, Scalar, System, Type};

pub(super) struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, count: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % count as u64) as u32
    }

    pub fn chance(&mut self, of: u32) -> bool {
        self.below(of) == 0
    }
}

/// One or two sets, and variables of any shape.
fn random_system(draw: &mut Draw) -> (System, Symmetry) {
    let names = ["s", "t"].iter().take(1 + draw.below(2) as usize);
    let sets: Vec<_> = names.map(|name| Interchangeable { name: name.to_string(), size: 1 + draw.below(4) }).collect();
    let mut system = System::new("t");
    let mut shapes = Vec::new();
    for number in 0..1 + draw.below(4) {
        let (shape, ty) = random_shape(draw, &sets, 3);
        system.var(format!("v{number}"), ty, None);
        shapes.push(shape);
    }
    (system, Symmetry { sets, vars: shapes })
}

/// Some sets one after the other, from `start` on, with other values between them; and how many values that makes.
pub(super) fn parts(draw: &mut Draw, sets: &[Interchangeable], start: u32) -> (Vec<Part>, u32) {
    let (mut parts, mut count) = (Vec::new(), start);
    for (set, interchangeable) in sets.iter().enumerate() {
        if parts.is_empty() || draw.chance(2) {
            let first = count + draw.below(2);
            parts.push(Part { set: set as u32, first });
            count = first + interchangeable.size;
        }
    }
    (parts, count)
}

fn random_shape(draw: &mut Draw, sets: &[Interchangeable], depth: u32) -> (Shape, Type) {
    match if depth == 0 { draw.below(3) } else { draw.below(8) } {
        0 => (Shape::Scalar(Vec::new()), Scalar::range(0, 1 + draw.below(3) as i64).into()),
        1 | 2 => {
            let (parts, count) = parts(draw, sets, 1);
            (Shape::Scalar(parts), Scalar::range(0, count.max(2) as i64 - 1).into())
        }
        3 | 4 => {
            let (parts, len) = if draw.chance(5) { (Vec::new(), 2) } else { parts(draw, sets, 0) };
            let (element, ty) = random_shape(draw, sets, depth - 1);
            (Shape::Array { parts, element: Box::new(element) }, Type::array(ty, len))
        }
        5 | 6 => {
            let fields = (0..1 + draw.below(3)).map(|_| random_shape(draw, sets, depth - 1));
            let (shapes, types): (Vec<Shape>, Vec<Type>) = fields.unzip();
            let named = types.into_iter().enumerate().map(|(number, ty)| (format!("f{number}"), ty));
            (Shape::Record(shapes), Type::Record(named.collect()))
        }
        _ => {
            let (slot, ty) = random_shape(draw, sets, depth - 1);
            let slots = 1 + draw.below(3);
            let fields = [("slot", Type::array(ty, slots)), ("used", Type::array(Scalar::BOOL.into(), slots))];
            let fields = fields.map(|(name, ty)| (name.to_string(), ty));
            (Shape::Bag { slot: Box::new(slot) }, Type::Record(fields.into()))
        }
    }
}

/// A value of any shape, without its layout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tree {
    Leaf(u32),
    Row(Vec<Tree>),
    /// Slots with their marks, in order.
    Bag(Vec<(u32, Tree)>),
}

fn tree(shape: &Shape, ty: &Type, raw: &mut impl Iterator<Item = u32>) -> Tree {
    match (shape, ty) {
        (Shape::Scalar(_), _) => Tree::Leaf(raw.next().unwrap()),
        (Shape::Array { element, .. }, Type::Array { element: ty, len }) => {
            Tree::Row((0..*len).map(|_| tree(element, ty, raw)).collect())
        }
        (Shape::Record(shapes), Type::Record(fields)) => {
            Tree::Row(shapes.iter().zip(fields).map(|(shape, (_, ty))| tree(shape, ty, raw)).collect())
        }
        (Shape::Bag { slot }, Type::Record(fields)) => {
            let Type::Array { element, len } = &fields[0].1 else { unreachable!() };
            let slots: Vec<Tree> = (0..*len).map(|_| tree(slot, element, raw)).collect();
            let mut all: Vec<(u32, Tree)> = slots.into_iter().map(|slot| (raw.next().unwrap(), slot)).collect();
            all.sort();
            Tree::Bag(all)
        }
        _ => unreachable!("shapes fit their types"),
    }
}

/// Renames by the definition. `to` has a permutation for each set.
pub(super) fn renamed(tree: &Tree, shape: &Shape, to: &[Vec<usize>]) -> Tree {
    let image = |parts: &[Part], value: u32| {
        let inside =
            |part: &&Part| value >= part.first && ((value - part.first) as usize) < to[part.set as usize].len();
        let moved = |part: &Part| part.first + to[part.set as usize][(value - part.first) as usize] as u32;
        parts.iter().find(inside).map_or(value, moved)
    };
    match (tree, shape) {
        (Tree::Leaf(value), Shape::Scalar(parts)) => Tree::Leaf(image(parts, *value)),
        (Tree::Row(row), Shape::Record(shapes)) => {
            Tree::Row(row.iter().zip(shapes).map(|(tree, shape)| renamed(tree, shape, to)).collect())
        }
        (Tree::Row(row), Shape::Array { parts, element }) => {
            let mut out = row.clone();
            for (position, tree) in row.iter().enumerate() {
                out[image(parts, position as u32) as usize] = renamed(tree, element, to);
            }
            Tree::Row(out)
        }
        (Tree::Bag(slots), Shape::Bag { slot }) => {
            let mut out: Vec<_> = slots.iter().map(|(used, tree)| (*used, renamed(tree, slot, to))).collect();
            out.sort();
            Tree::Bag(out)
        }
        _ => unreachable!("trees fit their shapes"),
    }
}

/// The scalars of a tree in the order of the layout.
fn flatten(tree: &Tree, out: &mut Vec<u32>) {
    match tree {
        Tree::Leaf(value) => out.push(*value),
        Tree::Row(row) => row.iter().for_each(|tree| flatten(tree, out)),
        Tree::Bag(slots) => {
            slots.iter().for_each(|(_, tree)| flatten(tree, out));
            out.extend(slots.iter().map(|(used, _)| *used));
        }
    }
}

/// The variables of a system and how their values become states.
pub(super) struct Variables {
    pub system: System,
    pub symmetry: Symmetry,
    pub layout: Layout,
}

impl Variables {
    pub fn trees(&self, state: &[u32]) -> Vec<Tree> {
        let of = |(index, shape): (usize, &Shape)| {
            let ty = &self.system.vars[index].ty;
            let scalars = self.layout.scalars(index, ty);
            tree(shape, ty, &mut scalars.iter().map(|(_, slot, _)| slot.load(state)))
        };
        self.symmetry.vars.iter().enumerate().map(of).collect()
    }

    pub fn state(&self, trees: &[Tree]) -> Vec<u32> {
        let mut state = vec![0; self.layout.words()];
        for (index, tree) in trees.iter().enumerate() {
            let mut raw = Vec::new();
            flatten(tree, &mut raw);
            let scalars = self.layout.scalars(index, &self.system.vars[index].ty);
            scalars.iter().zip(raw).for_each(|((_, slot, _), raw)| slot.store(&mut state, raw));
        }
        state
    }

    /// The trees of all states of an orbit.
    fn orbit(&self, trees: &[Tree]) -> Vec<Vec<Tree>> {
        let mut all: Vec<Vec<Vec<usize>>> = vec![Vec::new()];
        for set in &self.symmetry.sets {
            let add = |so_far: Vec<Vec<usize>>| {
                permutations(set.size as usize).into_iter().map(move |one| [so_far.clone(), vec![one]].concat())
            };
            all = all.into_iter().flat_map(add).collect();
        }
        let image = |to: &Vec<Vec<usize>>| {
            trees.iter().zip(&self.symmetry.vars).map(|(tree, shape)| renamed(tree, shape, to)).collect()
        };
        all.iter().map(image).collect()
    }

    pub fn random_state(&self, draw: &mut Draw) -> Vec<u32> {
        let mut state = vec![0; self.layout.words()];
        let rare = 1 + draw.below(4);
        for (index, var) in self.system.vars.iter().enumerate() {
            for (_, slot, scalar) in self.layout.scalars(index, &var.ty) {
                let value = if draw.chance(rare) { draw.below(scalar.high as u32 + 1) } else { 0 };
                slot.store(&mut state, value);
            }
        }
        state
    }
}

#[test]
fn representatives_of_random_variables_agree_with_the_definition() {
    let mut draw = Draw(11);
    let (mut ties, mut bags, mut compiled) = (0, 0, 0);
    for _ in 0..400 {
        let (system, symmetry) = random_system(&mut draw);
        let layout = Layout::of_system(&system);
        if layout.words() > 40 {
            continue;
        }
        let canon = Canon::new(&layout, &system, &symmetry).unwrap();
        let mut native = Canon::new(&layout, &system, &symmetry).unwrap();
        compiled += native.compile(layout.words()) as usize;
        let variables = Variables { system, symmetry, layout };
        let (mut scratch, mut native_scratch) = (Scratch::default(), Scratch::default());
        for _ in 0..6 {
            let state = variables.random_state(&mut draw);
            let trees = variables.trees(&state);
            let orbit = variables.orbit(&trees);
            let mut wanted = state.clone();
            canon.represent(&mut wanted, Precision::Exact, &mut scratch);
            assert!(orbit.contains(&variables.trees(&wanted)), "outside the orbit: {:?}", variables.symmetry);
            ties += orbit.iter().filter(|other| **other == trees).count() - 1;
            bags += format!("{:?}", variables.symmetry).matches("Bag").count();
            for other in orbit {
                let mut exact = variables.state(&other);
                let mut heuristic = exact.clone();
                for precision in [Precision::Exact, Precision::Heuristic] {
                    let (mut expected, mut found) = (exact.clone(), exact.clone());
                    canon.represent(&mut expected, precision, &mut scratch);
                    native.represent(&mut found, precision, &mut native_scratch);
                    assert_eq!(found, expected, "{precision:?}: {:?}\n{other:?}", variables.symmetry);
                }
                canon.represent(&mut exact, Precision::Exact, &mut scratch);
                assert_eq!(exact, wanted, "{:?}\n{other:?}", variables.symmetry);
                canon.represent(&mut heuristic, Precision::Heuristic, &mut scratch);
                canon.represent(&mut heuristic, Precision::Exact, &mut scratch);
                assert_eq!(heuristic, wanted, "the heuristic leaves the orbit: {:?}", variables.symmetry);
            }
        }
    }
    assert!(ties > 1000 && bags > 100, "{ties} symmetries, {bags} bags");
    assert!(compiled > 150, "native code for {compiled}");
}

/// A set with a matrix over it: every graph is a state.
fn graphs(size: u32) -> Variables {
    let mut system = System::new("t");
    system.var("edge", Type::array(Type::array(Scalar::BOOL.into(), size), size), None);
    let part = || vec![Part { set: 0, first: 0 }];
    let row = Shape::Array { parts: part(), element: Box::new(Shape::Scalar(Vec::new())) };
    let matrix = Shape::Array { parts: part(), element: Box::new(row) };
    let sets = vec![Interchangeable { name: "s".into(), size }];
    let layout = Layout::of_system(&system);
    Variables { system, symmetry: Symmetry { sets, vars: vec![matrix] }, layout }
}

#[test]
fn graphs_of_equal_degree_are_told_apart() {
    // Unions of circles, each given by its length: ranks alone tell nobody from anybody else.
    let cases: [&[u32]; 5] = [&[8], &[4, 4], &[2, 2, 2, 2], &[3, 5], &[2, 3, 3]];
    let variables = graphs(8);
    let canon = Canon::new(&variables.layout, &variables.system, &variables.symmetry).unwrap();
    let (mut scratch, mut draw) = (Scratch::default(), Draw(3));
    let mut found = Vec::new();
    for lengths in cases {
        let mut forms = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let mut names: Vec<usize> = (0..8).collect();
            (1..8).for_each(|at| names.swap(at, draw.below(at as u32 + 1) as usize));
            let mut rows = vec![vec![Tree::Leaf(0); 8]; 8];
            let mut first = 0;
            for &length in lengths {
                for step in 0..length {
                    let (one, next) = (names[(first + step) as usize], names[(first + (step + 1) % length) as usize]);
                    rows[one][next] = Tree::Leaf(1);
                }
                first += length;
            }
            let mut state = variables.state(&[Tree::Row(rows.into_iter().map(Tree::Row).collect())]);
            canon.represent(&mut state, Precision::Exact, &mut scratch);
            forms.insert(state);
        }
        assert_eq!(forms.len(), 1, "circles of {lengths:?} have one form");
        found.extend(forms);
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), cases.len());
}

/// What is said about an element is a sum over its pieces. Found by search: with sums of `mix` alone, the differences in the
/// two pieces would cancel, and native code would take these two elements for alike.
#[test]
fn differences_in_two_pieces_do_not_cancel() {
    let mut system = System::new("t");
    let wide = || Type::from(Scalar::range(0, (1 << 31) - 1));
    let record = Type::Record(["x", "y", "z"].map(|name| (name.to_string(), wide())).into());
    system.var("a", Type::array(record, 2), None);
    let element = Box::new(Shape::Record(vec![Shape::Scalar(Vec::new()); 3]));
    let array = Shape::Array { parts: vec![Part { set: 0, first: 0 }], element };
    let sets = vec![Interchangeable { name: "s".into(), size: 2 }];
    let (layout, symmetry) = (Layout::of_system(&system), Symmetry { sets, vars: vec![array] });
    let mut native = Canon::new(&layout, &system, &symmetry).unwrap();
    assert!(native.compile(layout.words()));
    let variables = Variables { system, symmetry, layout };
    let element = |x: u32, z: u32| Tree::Row([x, 0, z].map(Tree::Leaf).into());
    let (one, other) = (element(29790, 30989), element(29798, 30997));
    let form = |row: Vec<Tree>| {
        let mut state = variables.state(&[Tree::Row(row)]);
        native.represent(&mut state, Precision::Exact, &mut Scratch::default());
        state
    };
    assert_eq!(form(vec![one.clone(), other.clone()]), form(vec![other, one]));
}

/// Elements with two fields for names of one another, as in a queue of locks: native code exchanges the last two that are alike without trying orders.
#[test]
fn two_elements_that_name_one_another_can_be_exchanged() {
    let mut system = System::new("t");
    let fields = [("x", 1), ("y", 4), ("z", 4)].map(|(name, last)| (name.to_string(), Scalar::range(0, last).into()));
    system.var("a", Type::array(Type::Record(fields.into()), 4), None);
    let name = || Shape::Scalar(vec![Part { set: 0, first: 1 }]);
    let element = Box::new(Shape::Record(vec![Shape::Scalar(Vec::new()), name(), name()]));
    let array = Shape::Array { parts: vec![Part { set: 0, first: 0 }], element };
    let sets = vec![Interchangeable { name: "s".into(), size: 4 }];
    let (layout, symmetry) = (Layout::of_system(&system), Symmetry { sets, vars: vec![array] });
    let canon = || Canon::new(&layout, &system, &symmetry).unwrap();
    let (reference, mut native) = (canon(), canon());
    assert!(native.compile(layout.words()));
    let (mut scratch, mut native_scratch, mut draw) = (Scratch::default(), Scratch::default(), Draw(9));
    let variables = Variables { system, symmetry, layout };
    let mut symmetric = 0;
    for _ in 0..2000 {
        let state = variables.random_state(&mut draw);
        let trees = variables.trees(&state);
        let orbit = variables.orbit(&trees);
        // Of 24 renamings two leave the state as it is: an exchange of two elements, or of two pairs.
        symmetric += (orbit.iter().filter(|other| **other == trees).count() == 2) as u32;
        let mut forms = std::collections::BTreeSet::new();
        for other in &orbit {
            let (mut expected, mut found) = (variables.state(other), variables.state(other));
            reference.represent(&mut expected, Precision::Exact, &mut scratch);
            native.represent(&mut found, Precision::Exact, &mut native_scratch);
            assert_eq!(found, expected, "{other:?}");
            forms.insert(found);
        }
        assert_eq!(forms.len(), 1, "{trees:?}");
    }
    assert!(symmetric > 100, "{symmetric} states with a symmetry");
}
