mod plain;
mod shapes;

use super::*;
use plimsoll_ir::symmetry::{Interchangeable, Part, Shape};
use plimsoll_ir::{BinOp, Choice, Command, Deadlock, Expr, Narrow, Place, Scalar, Slot, Stmt, Type, VarId};

use crate::Interp;

const SIZE: u32 = 4;

fn part(first: u32) -> Vec<Part> {
    vec![Part { set: 0, first }]
}

/// A system whose only purpose is its variables: a holder, an array of records, a matrix, a bag of pairs.
fn variables() -> (System, Symmetry) {
    let mut system = System::new("t");
    let element: Type = Scalar::range(0, SIZE as i64).into();
    let plain = || Shape::Scalar(vec![]);
    let pair = Type::Record(vec![("p".into(), element.clone()), ("q".into(), Scalar::range(0, 2).into())]);
    let row = Type::array(Scalar::BOOL.into(), SIZE);
    let bag = Type::Record(vec![
        ("slot".into(), Type::array(pair.clone(), 3)),
        ("used".into(), Type::array(Scalar::BOOL.into(), 3)),
    ]);
    system.var("holder", element, None);
    system.var("records", Type::array(pair, SIZE), None);
    system.var("matrix", Type::array(row, SIZE), None);
    system.var("bag", bag, None);
    let pair = || Shape::Record(vec![Shape::Scalar(part(1)), plain()]);
    let array = |element: Shape| Shape::Array { parts: part(0), element: Box::new(element) };
    let vars =
        vec![Shape::Scalar(part(1)), array(pair()), array(array(plain())), Shape::Bag { slot: Box::new(pair()) }];
    (system, Symmetry { sets: vec![Interchangeable { name: "s".into(), size: SIZE }], vars })
}

fn scalars(system: &System) -> Vec<Vec<(String, Slot)>> {
    let layout = Layout::of_system(system);
    let of = |(index, var): (usize, &plimsoll_ir::Var)| {
        layout.scalars(index, &var.ty).into_iter().map(|(name, slot, _)| (name, slot)).collect()
    };
    system.vars.iter().enumerate().map(of).collect()
}

/// Renames by the definition: cell by cell, by name.
fn renamed(system: &System, state: &[u32], to: &[usize]) -> Vec<u32> {
    let all = scalars(system);
    let mut out = vec![0; state.len()];
    let value = |raw: u32| if raw == 0 { 0 } else { to[raw as usize - 1] as u32 + 1 };
    let find = |var: usize, name: String| all[var].iter().find(|(other, _)| *other == name).unwrap().1;
    find(0, String::new()).store(&mut out, value(find(0, String::new()).load(state)));
    for i in 0..SIZE as usize {
        let p = find(1, format!("[{i}].p")).load(state);
        find(1, format!("[{}].p", to[i])).store(&mut out, value(p));
        let q = find(1, format!("[{i}].q")).load(state);
        find(1, format!("[{}].q", to[i])).store(&mut out, q);
        for j in 0..SIZE as usize {
            let flag = find(2, format!("[{i}][{j}]")).load(state);
            find(2, format!("[{}][{}]", to[i], to[j])).store(&mut out, flag);
        }
    }
    for slot in 0..3 {
        let p = find(3, format!(".slot[{slot}].p"));
        p.store(&mut out, value(p.load(state)));
        for name in [format!(".slot[{slot}].q"), format!(".used[{slot}]")] {
            find(3, name.clone()).store(&mut out, find(3, name).load(state));
        }
    }
    out
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let insert = |at: usize, mut shorter: Vec<usize>| {
        shorter.insert(at, count - 1);
        shorter
    };
    permutations(count - 1).into_iter().flat_map(|p| (0..count).map(move |at| insert(at, p.clone()))).collect()
}

fn random_state(system: &System, seed: &mut u64, few: bool) -> Vec<u32> {
    let layout = Layout::of_system(system);
    let mut state = vec![0; layout.words()];
    for (index, var) in system.vars.iter().enumerate() {
        for (_, slot, scalar) in layout.scalars(index, &var.ty) {
            *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = *seed >> 33;
            let value = if few && !draw.is_multiple_of(4) { 0 } else { (draw / 4) as i64 % (scalar.high + 1) };
            slot.store(&mut state, value as u32);
        }
    }
    // A slot that is not used is empty.
    for slot in 0..3 {
        let all = &scalars(system)[3];
        let find = |name: String| all.iter().find(|(other, _)| *other == name).unwrap().1;
        if find(format!(".used[{slot}]")).load(&state) == 0 {
            find(format!(".slot[{slot}].p")).store(&mut state, 0);
            find(format!(".slot[{slot}].q")).store(&mut state, 0);
        }
    }
    state
}

#[test]
fn exact_representatives_are_the_same_throughout_an_orbit_and_belong_to_it() {
    let (system, symmetry) = variables();
    let canon = Canon::new(&Layout::of_system(&system), &system, &symmetry).unwrap();
    let (mut scratch, mut seed) = (Scratch::default(), 1);
    let all = permutations(SIZE as usize);
    assert_eq!(all.len(), 24);
    for round in 0..300 {
        let state = random_state(&system, &mut seed, round % 2 == 0);
        let mut wanted = state.clone();
        canon.represent(&mut wanted, Precision::Exact, &mut scratch);
        let mut met = false;
        for to in &all {
            let mut other = renamed(&system, &state, to);
            let mut heuristic = other.clone();
            canon.represent(&mut heuristic, Precision::Heuristic, &mut scratch);
            canon.represent(&mut heuristic, Precision::Exact, &mut scratch);
            assert_eq!(heuristic, wanted, "the heuristic leaves the orbit");
            canon.sorted(&mut other, &mut scratch);
            met |= other == wanted;
            canon.represent(&mut other, Precision::Exact, &mut scratch);
            assert_eq!(other, wanted, "renamed by {to:?}");
        }
        assert!(met, "the representative is not in the orbit");
    }
}

#[test]
fn different_orbits_have_different_representatives() {
    let (system, symmetry) = variables();
    let canon = Canon::new(&Layout::of_system(&system), &system, &symmetry).unwrap();
    let (mut scratch, mut seed) = (Scratch::default(), 5);
    let all = permutations(SIZE as usize);
    let state = random_state(&system, &mut seed, false);
    let mut wanted = state.clone();
    canon.represent(&mut wanted, Precision::Exact, &mut scratch);
    let orbit: Vec<Vec<u32>> = all.iter().map(|to| renamed(&system, &state, to)).collect();
    for slot in scalars(&system)[2].iter().map(|(_, slot)| slot) {
        let mut changed = state.clone();
        slot.store(&mut changed, 1 - slot.load(&state));
        let same_orbit = orbit.contains(&changed);
        canon.represent(&mut changed, Precision::Exact, &mut scratch);
        assert_eq!(changed == wanted, same_orbit);
    }
}

/// Each of three processes passes through three phases; one may hold a token while in the second.
fn processes() -> (System, Symmetry) {
    let mut system = System::new("t");
    system.deadlock = Deadlock::Stuttering;
    let token: VarId = system.var("token", Scalar::range(0, 3), None);
    let phase = system.var("phase", Type::array(Scalar::range(0, 2).into(), 3), None);
    let mut command = |label: &str, from: i64, to: i64, free: bool, after: i64| {
        let mut command = Command::new(label);
        let me = command.temp("me", Scalar::range(0, 2));
        command.choices.push(Choice { temp: me, low: 0, high: 2 });
        let at = Place::from(phase).index(Expr::read(me));
        let name = Expr::binary(BinOp::Add, Expr::read(me), 1.into());
        let holder = Expr::equal(Expr::read(token), if free { 0.into() } else { name.clone() });
        command.guard = Expr::all([Expr::equal(Expr::read(at.clone()), from.into()), holder]);
        let left = if after == 0 { Expr::Const(0) } else { name };
        command.body = vec![Stmt::assign(at, to, Narrow::Trap), Stmt::assign(token, left, Narrow::Trap)];
        system.commands.push(command);
    };
    command("take", 0, 1, true, 1);
    command("work", 1, 2, false, 1);
    command("drop", 2, 0, false, 0);
    let array = Shape::Array { parts: part(0), element: Box::new(Shape::Scalar(vec![])) };
    let sets = vec![Interchangeable { name: "p".into(), size: 3 }];
    (system, Symmetry { sets, vars: vec![Shape::Scalar(part(1)), array] })
}

fn reachable(model: &impl Model) -> usize {
    let mut out = Successors::new(model.width());
    model.initial(&mut out);
    let mut seen: std::collections::HashSet<Vec<u32>> = out.iter().map(|(state, _)| state.to_vec()).collect();
    let mut queue: Vec<Vec<u32>> = seen.iter().cloned().collect();
    while let Some(state) = queue.pop() {
        out.clear();
        model.successors(&state, &mut out);
        for (next, _) in out.iter() {
            if seen.insert(next.to_vec()) {
                queue.push(next.to_vec());
            }
        }
    }
    seen.len()
}

#[test]
fn a_search_sees_one_state_of_each_orbit_and_its_traces_become_concrete() {
    let (system, symmetry) = processes();
    assert_eq!(reachable(&Interp::new(system.clone())), 7);
    let wrapped = Symmetric::new(Interp::new(system.clone()), &system, &symmetry, Precision::Exact).unwrap();
    assert_eq!(reachable(&wrapped), 3);
    // The first process takes, works and drops, and once more: the same representatives twice.
    let mut positions = vec![0];
    let mut state = wrapped.inner().system().base_state(wrapped.inner().layout());
    for _ in 0..6 {
        let mut out = Successors::new(wrapped.width());
        wrapped.successors(&state, &mut out);
        positions.push(out.len() as u32 - 1);
        state = out.state(out.len() - 1).to_vec();
    }
    let concrete = wrapped.concrete(&positions).unwrap();
    assert_eq!(concrete.len(), positions.len());
    let mut at = wrapped.inner().system().base_state(wrapped.inner().layout());
    for &position in &concrete[1..] {
        let mut out = Successors::new(wrapped.width());
        wrapped.inner().successors(&at, &mut out);
        at = out.state(position as usize).to_vec();
    }
    assert_eq!(at, wrapped.inner().system().base_state(wrapped.inner().layout()));
}

/// Else a step that changes nothing but puts a bag into the order of rules would be progress.
#[test]
fn bags_are_in_the_order_that_rules_leave_them_in() {
    let narrow = ("x: 0..5, y: 0..3, z: 0..9", 3);
    let wide = ("x: 0..5, y: 0..70000, z: 0..2000000000, w: 0..2000000000, v: 0..1", 5);
    for (fields, count) in [narrow, wide] {
        let text = format!(
            "system \"t\" var b: {{ slot: [4] {{ {fields} }}, used: [4] 0..1 }}
            command \"order\" {{ do {{ sort b.slot; sort b.used; }} }}"
        );
        let system = plimsoll_ir::text::parse(&text).unwrap();
        let slot = Box::new(Shape::Record(vec![Shape::Scalar(Vec::new()); count]));
        let sets = vec![Interchangeable { name: "s".into(), size: 2 }];
        let symmetry = Symmetry { sets, vars: vec![Shape::Bag { slot }] };
        let canon = Canon::new(&Layout::of_system(&system), &system, &symmetry).unwrap();
        let (interp, mut scratch, mut seed, mut moved) = (Interp::new(system.clone()), Scratch::default(), 3u64, 0);
        for _ in 0..300 {
            let mut state = vec![0; interp.width()];
            for (name, slot) in &scalars(&system)[0] {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                // The second slot is not in use.
                let value = if name.contains("slot[1]") || name == ".used[1]" { 0 } else { (seed >> 40) as u32 % 2 };
                slot.store(&mut state, if name.contains(".used[") { (name != ".used[1]") as u32 } else { value });
            }
            let mut out = Successors::new(interp.width());
            interp.successors(&state, &mut out);
            let mut sorted = out.state(0).to_vec();
            moved += (sorted != state) as u32;
            canon.sorted(&mut sorted, &mut scratch);
            assert_eq!(sorted, out.state(0), "{fields}");
            canon.sorted(&mut state, &mut scratch);
            assert_eq!(state, sorted, "{fields}");
        }
        assert!(moved > 200, "{moved}");
    }
}

#[test]
fn a_step_that_only_renames_is_progress() {
    let (mut system, symmetry) = processes();
    // Nothing but handing the token on.
    system.commands.clear();
    let mut command = Command::new("hand on");
    let me = command.temp("me", Scalar::range(1, 3));
    command.choices.push(Choice { temp: me, low: 1, high: 3 });
    command.guard = Expr::binary(BinOp::Ne, Expr::read(VarId(0)), Expr::read(me));
    command.body = vec![Stmt::assign(VarId(0), Expr::read(me), Narrow::Trap)];
    system.commands.push(command);
    let wrapped = Symmetric::new(Interp::new(system.clone()), &system, &symmetry, Precision::Exact).unwrap();
    let mut out = Successors::new(wrapped.width());
    wrapped.initial(&mut out);
    let mut state = out.state(0).to_vec();
    for _ in 0..3 {
        out.clear();
        wrapped.successors(&state, &mut out);
        assert!(!out.is_empty() && !wrapped.conventions().stuttering_is_deadlock);
        state = out.state(0).to_vec();
    }
    assert!(out.iter().any(|(next, _)| next == state), "the representative stays the same");
}

#[test]
fn a_symmetry_that_does_not_fit_is_refused() {
    let (system, mut symmetry) = processes();
    symmetry.vars[0] = Shape::Record(Vec::new());
    assert!(Symmetric::new(Interp::new(system.clone()), &system, &symmetry, Precision::Exact).is_none());
    symmetry.vars.pop();
    assert!(Symmetric::new(Interp::new(system.clone()), &system, &symmetry, Precision::Exact).is_none());
}

#[test]
fn what_renaming_does_not_change_is_passed_on() {
    let (mut system, symmetry) = variables();
    let mut command = Command::new("send");
    command.kind = plimsoll_ir::Kind::Send;
    system.commands.push(command);
    let orbits = Symmetric::new(Interp::new(system.clone()), &system, &symmetry, Precision::Exact).unwrap();
    assert_eq!((orbits.kind(Step(0)), orbits.has_properties()), (3, true));
    let native = crate::Jit::new(system.clone()).unwrap();
    assert!(!native.has_properties());
    let orbits = Symmetric::new(native, &system, &symmetry, Precision::Exact).unwrap();
    assert!(!orbits.has_properties(), "nobody needs to ask");
}
