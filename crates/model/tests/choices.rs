//! Commands with choices: native code skips values that cannot be, asks what it can before choices are made, and copies
//! code for small ranges. Whatever the guard says, it leaves the entries that the interpreter leaves.

use plimsoll_ir::random::Draw;
use plimsoll_model::{Interp, Jit, Model, Successors};

/// Conditions of which some pin a choice: to a constant, to what does not need it, to another choice, to no value of its own.
const CONJUNCTS: [&str; 19] = [
    "(i == 2)",
    "(1 == j)",
    "(k == 1)",
    "(k == 2)",
    "(i == 5)",
    "(j == x)",
    "(j == (a[i] + -1))",
    "(a[j] == k)",
    "(i == a[k])",
    "(k == (x + i))",
    "(i == j)",
    "(j == i)",
    "(i == x)",
    "(a[i] == 1)",
    "(b[j] != 3)",
    "(x != 3)",
    "((i < j) || (k == 2))",
    // These may go wrong.
    "(a[i + 1] != 1)",
    "(a[x] != 1)",
];
const PRELUDES: [&str; 7] = [
    "",
    "before { if a[i] == 0 { discard; } }",
    "before { if a[i] == 0 { fault \"f\"; } }",
    "before { if a[j] == 7 { fault \"f\"; } }",
    "before { if x == 7 { fault \"f\"; } if b[k] == 0 { discard; } }",
    "before { t := a[x]; }",
    "before { t := a[j]; if t == 5 { discard; } }",
];
const BODIES: [&str; 4] = [
    "do { b[j] := i; x := k; }",
    "do { a[i] := x; if a[j] == x { b[k] := 7; x := j; } else { x := 0; } }",
    "do { b[i + k] := 1; }",
    "do { t := i; i := 0; x := t; a[j] := i; }",
];

fn entries(model: &dyn Model, state: &[u32]) -> Vec<(u32, Vec<u32>)> {
    let mut out = Successors::new(model.width());
    model.successors(state, &mut out);
    out.iter().map(|(state, step)| (step.0, if step.is_fault() { Vec::new() } else { state.to_vec() })).collect()
}

#[test]
fn choices_that_are_pinned_or_copied_leave_what_the_interpreter_leaves() {
    let mut draw = Draw::new(16);
    let (mut steps, mut faults) = (0, 0);
    for round in 0..700 {
        let mut pick = |list: &[&'static str]| list[draw.below(list.len() as u64) as usize];
        // From a few instances to more than have code of their own.
        let (i, j, k) = (pick(&["0..3", "1..2", "2..2"]), pick(&["0..3", "0..1"]), pick(&["1..2", "0..3"]));
        let conjuncts: Vec<&str> = (0..4).map(|_| pick(&CONJUNCTS)).collect();
        let (prelude, body) = (pick(&PRELUDES), pick(&BODIES));
        let guard = match round % 4 {
            0 => conjuncts[0].to_string(),
            1 => format!("{} && {}", conjuncts[0], conjuncts[1]),
            _ => format!("({} && {}) && ({} && {})", conjuncts[0], conjuncts[1], conjuncts[2], conjuncts[3]),
        };
        let text = format!(
            "system \"t\" var a: [4] 0..7 var b: [4] 0..7 var x: 0..7 command \"c\" {{ temp i: 0..3 temp j: 0..3 temp k: 0..3
            temp t: 0..7 choose i in {i} choose j in {j} choose k in {k} {prelude} when {guard} {body} }}
            command \"d\" {{ temp l: 0..3 choose l in 0..3 when a[l] == x do {{ x := l; b[l] := 2; }} }}"
        );
        let system = plimsoll_ir::text::parse(&text).unwrap();
        let interp = Interp::new(system.clone());
        let jit = Jit::new(system).unwrap();
        for _ in 0..40 {
            let state: Vec<u32> = (0..jit.width()).map(|_| (draw.bits() & draw.bits()) as u32).collect();
            let expected = entries(&interp, &state);
            assert_eq!(expected, entries(&jit, &state), "{text}");
            steps += expected.len();
            faults += expected.iter().filter(|(_, state)| state.is_empty()).count();
        }
    }
    assert!(steps > 20_000 && faults > 2_000 && faults < steps, "{steps} steps, {faults} faults");
}

/// Truths in temporaries that are asked for where paths meet: loops, blocks and conditions nested in each other.
#[test]
fn truths_that_are_known_where_paths_meet_are_the_same() {
    let mut draw = Draw::new(3);
    let mut answers = [0; 2];
    for round in 0..300 {
        let text = format!(
            "system \"t\" var a: [4] 0..3 var x: 0..3 command \"c\" {{ do {{ x := x; }} }}
            invariant \"p\" {{ temp s: 0..1 temp t: 0..1 temp u: 0..1 temp i: 0..3 before {{ {} }} expect {} }}",
            truth(&mut draw, 0, 3),
            ["s", "!s", "s && !t", "t || (u == 1)"][round % 4],
        );
        let system = plimsoll_ir::text::parse(&text).unwrap();
        let interp = Interp::new(system.clone());
        let jit = Jit::new(system).unwrap();
        for _ in 0..60 {
            let state: Vec<u32> = (0..jit.width()).map(|_| draw.bits() as u32).collect();
            let violated = interp.violated(&state);
            assert_eq!(violated, jit.violated(&state), "{text}");
            answers[violated.is_some() as usize] += 1;
        }
    }
    assert!(answers.iter().all(|&count| count > 2_000), "{answers:?}");
}

/// Statements that put a truth into the temporary with this number.
fn truth(draw: &mut Draw, temp: usize, depth: u32) -> String {
    let name = ["s", "t", "u"][temp % 3];
    let other = ["s", "t", "u"][(temp + 1) % 3];
    let condition = ["a[0] == 1", "a[1] < a[2]", "x == 2", "(a[3] == 0) && (x != 1)"][draw.below(4) as usize];
    if depth == 0 {
        return format!("{name} := {condition}; ");
    }
    let inner = truth(draw, temp + 1, depth - 1);
    match draw.below(6) {
        0 => format!("{name} := {condition}; if {name} {{ {inner} {name} := {other}; }} "),
        1 => format!("{inner} if {other} {{ {name} := 1; }} else {{ {name} := 0; }} "),
        2 => format!("{inner} {name} := !{other}; "),
        3 => format!("{name} := 1; block {{ {inner} if !{other} {{ {name} := 0; break 0; }} }} "),
        4 if depth == 3 => format!(
            "{name} := 1; block {{ i := 0; loop 4 {{ {inner} if !{other} && (a[i] != 2) {{ {name} := 0; break 1; }}
            if i == 3 {{ break 0; }} i := i + 1; }} }} "
        ),
        _ => format!("{inner} if {condition} {{ {name} := {other}; }} else {{ {name} := !{other}; }} "),
    }
}
