use super::*;
use crate::text::parse;
use crate::verify::verify;

/// Merges a system of two processes with five locations and a variable each, a shared variable and a flag for chains.
/// Q shares the variable at its last location, where it never is.
fn merged(commands: &str) -> System {
    let text = format!(
        "system \"t\" var p: 0..4 of P var x: 0..3 of P var q: 0..4 of Q var y: 0..3 of Q var shared: 0..3 var turn: 0..2
        process P at p {{ a, b, c, d, e }} process Q at q {{ a, b, c, d, e }} {commands}
        command \"Q: watch\" at Q.e {{ when turn == 0 do {{ shared := shared ^ 1; }} }}"
    );
    let system = parse(&text).unwrap();
    verify(&system).unwrap();
    let system = merge(system);
    verify(&system).unwrap();
    system
}

/// Where the commands start and what they are called.
fn names(system: &System) -> Vec<String> {
    let name = |command: &Command| format!("{}: {}", command.at[0].1, command.label);
    system.commands.iter().map(name).collect()
}

const LINE: &str = "command \"P: one\" at P.a { do { shared := 1; p := 1; } }
    command \"P: two\" at P.b { do { x := 2; p := 2; } }
    command \"P: three\" at P.c { do { shared := x; p := 3; } }";

#[test]
fn a_local_step_joins_the_one_before_it() {
    let system = merged(LINE);
    assert_eq!(names(&system), ["0: P: one; two", "2: P: three"]);
    assert_eq!(system.commands[0].body.len(), 3, "one store to the location is enough");
}

#[test]
fn what_others_see_or_change_is_not_local() {
    for other in ["shared := x;", "x := 1;", "shared := p == 1;", "shared := p == 2;", "shared := p;"] {
        let system = merged(&format!("{LINE} command \"Q: look\" at Q.a {{ do {{ {other} q := 1; }} }}"));
        assert_eq!(system.commands.len(), 4, "{other}");
    }
    let system = merged(&format!("{LINE} command \"Q: look\" at Q.a {{ do {{ shared := p == 4; q := 1; }} }}"));
    assert_eq!(system.commands.len(), 3, "another location is asked for");
    for look in ["x == 0", "p != 1"] {
        let system = merged(&format!("{LINE} invariant \"i\" {{ expect {look} }}"));
        assert_eq!(system.commands.len(), 3, "{look}");
    }
    let system = merged(&format!("{LINE} invariant \"i\" {{ expect shared < 3 }}"));
    assert_eq!(system.commands.len(), 2);
}

#[test]
fn only_a_step_that_must_follow_is_joined() {
    for (from, to) in
        [("do { x := 2;", "when x < 2 do { x := 2;"), ("x := 2;", "x := x + 1;"), ("at P.b {", "at P.b, Q.a {")]
    {
        let text = LINE.replace(from, to);
        assert_ne!(text, LINE);
        assert_eq!(merged(&text).commands.len(), 3, "{to}");
    }
    let ranked = LINE.replace("\"P: two\"", "\"P: two\" rank 1");
    assert_eq!(merged(&ranked).commands.len(), 3);
    let stuttering = format!("deadlock stuttering {LINE}");
    assert_eq!(merged(&stuttering).commands.len(), 4, "nothing is done");
}

#[test]
fn of_a_cycle_one_location_stays() {
    let system = merged(
        "command \"P: one\" at P.a { do { x := 1; p := 1; } } command \"P: two\" at P.b { do { x := 2; p := 2; } }
        command \"P: three\" at P.c { do { x := 3; p := 0; } }",
    );
    assert_eq!(names(&system), ["0: P: one; two; three"]);
}

#[test]
fn branches_are_joined_if_one_is_always_open() {
    let before = "command \"P: one\" at P.a { do { x := shared; p := 1; } }";
    let after = "command \"P: yes\" at P.b { when x < 2 do { p := 2; } } command \"P: no\" at P.b { when OTHER do { p := 3; } }";
    let system = merged(&format!("{before} {}", after.replace("OTHER", "x >= 2")));
    assert_eq!(names(&system), ["0: P: one; yes", "0: P: one; no"]);
    let system = merged(&format!("{before} {}", after.replace("OTHER", "x > 2")));
    assert_eq!(system.commands.len(), 3);
}

#[test]
fn a_process_that_another_starts_goes_on_at_once() {
    let start = "command \"Q: run\" at Q.a { do { block { if p == 0 { x := 1; p := 1; break 0; } fault \"no room\"; } q := 1; } }
        command \"P: two\" at P.b { do { x := 2; p := 2; } } command \"P: three\" at P.c { do { shared := x; p := 0; } }";
    let sorted = {
        let mut parts: Vec<&str> = start.split("command ").skip(1).collect();
        parts.rotate_left(1);
        parts.iter().map(|part| format!("command {part}")).collect::<String>()
    };
    let system = merged(&sorted);
    assert_eq!(names(&system), ["2: P: three", "0: Q: run; P: two"]);
}

#[test]
fn chains_become_one_command_and_may_get_stuck() {
    let chain = "exclusive turn command \"P: one\" at P.a { when turn == 0 do { shared := 1; p := 1; turn := 1; } }
        command \"P: two\" at P.b { when ((turn == 0) || (turn == 1)) && (shared == 1) do { shared := 2; p := 2; turn := 0; } }
        command \"Q: other\" at Q.a { when turn == 0 do { shared := 1; q := 1; } }";
    let system = merged(chain);
    assert_eq!(names(&system), ["0: P: one; two", "0: P: one", "1: P: two", "0: Q: other"]);
    let stuck = &system.commands[1].body;
    assert_eq!(stuck.last(), Some(&crate::Stmt::Reset(system.exclusive.unwrap().into())));
}

#[test]
fn a_long_line_of_local_steps_takes_no_time() {
    let steps = 2000;
    let locations: Vec<String> = (0..=steps).map(|at| format!("l{at}")).collect();
    let mut text = format!(
        "system \"t\" var p: 0..{steps} of P var x: 0..3 of P process P at p {{ {} }} deadlock stuck",
        locations.join(", ")
    );
    for at in 0..steps {
        text += &format!(" command \"P: {at}\" at P.l{at} {{ do {{ x := {}; p := {}; }} }}", at % 4, at + 1);
    }
    let start = std::time::Instant::now();
    let merged = merge(parse(&text).unwrap());
    assert!(merged.commands.len() < 20, "{}", merged.commands.len());
    assert!(
        start.elapsed().as_secs() < 30,
        "the time must not grow with the cube of the length: {:?}",
        start.elapsed()
    );
}

#[test]
fn choices_of_the_first_states_multiply_only_within_limits() {
    let processes = 8;
    let (mut text, mut go) = ("system \"t\"".to_owned(), String::new());
    for process in 0..processes {
        text += &format!(" var p{process}: 0..3 of P{process} var x{process}: 0..3 of P{process}");
        go += &format!("p{process} := 1; ");
    }
    for process in 0..processes {
        text += &format!(" process P{process} at p{process} {{ a, b, c, d }}");
    }
    text += &format!(" start \"s\" {{ do {{ {go} }} }}");
    for (process, at, x) in
        (0..processes).flat_map(|process| [1, 2].map(|at| [(process, at, 1), (process, at, 2)])).flatten()
    {
        let name = ["a", "b", "c"][at];
        text += &format!(
            " command \"P{process}: {x}\" at P{process}.{name} {{ do {{ x{process} := {x}; p{process} := {}; }} }}",
            at + 1
        );
    }
    let system = parse(&text).unwrap();
    verify(&system).unwrap();
    let before = system.starts.len() + system.commands.len();
    let merged = merge(system);
    verify(&merged).unwrap();
    assert!(merged.starts.len() > 1, "choices are joined");
    let after = merged.starts.len() + merged.commands.len();
    assert!(after <= before * GROWTH + 64, "{after}");
}
