//! Murphi models from the command line: options and messages of that language.

use crate::common::run::{code, run};
use serde_json::Value;

/// Checks a model given as text: the exit code, and the report or the message.
fn check(text: &str, options: &[&str]) -> (i32, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.m");
    std::fs::write(&path, text).unwrap();
    let output = run(&[&["check", path.to_str().unwrap(), "--json"], options].concat());
    let message = String::from_utf8_lossy(&output.stderr);
    (code(&output), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Value::from(message)))
}

#[test]
fn scalars_that_never_hold_an_element_do_not_break_symmetry() {
    // `last` stays undefined, so its range is narrowed; the three nodes are interchangeable all the same.
    let text = "type node: scalarset(3);
        var on: array [node] of boolean; last: node;
        startstate for n: node do on[n] := false; end; end;
        ruleset n: node do rule begin on[n] := !on[n]; end; end;";
    let (code, report) = check(text, &["--symmetry", "exact"]);
    assert_eq!((code, report["states"].as_u64()), (0, Some(4)));
}

#[test]
fn a_start_that_prefers_an_element_does_not_break_symmetry() {
    // In runs the leader is always the first node; in what represents them it may be any.
    let text = |on: &str, then: &str| {
        format!(
            "type node: scalarset(3);
            var leader: node; on: array [node] of boolean;
            startstate
                undefine leader;
                for n: node do
                    on[n] := {on};
                    if isundefined(leader) then leader := n; end;
                end;
            end;
            ruleset n: node do rule n != leader & on[n] = {on} ==> on[n] := !on[n]; end; end;
            {then}"
        )
    };
    for on in ["true", "false"] {
        let safe = format!("invariant on[leader] = {on};");
        let late = format!("invariant exists n: node do on[n] = {on} & n != leader end;");
        for (then, options, code, states) in [
            (&safe, &["--no-deadlock"][..], 0, [4, 3]),
            (&safe, &[], 10, [4, 3]),
            (&late, &["--no-deadlock"], 12, [4, 3]),
        ] {
            let text = text(on, then);
            for (symmetry, states) in [("off", states[0]), ("exact", states[1]), ("heuristic", states[1])] {
                for executor in ["jit", "interp"] {
                    let given = [&["--symmetry", symmetry, "--executor", executor], options].concat();
                    let (found, report) = check(&text, &given);
                    assert_eq!((found, report["states"].as_u64()), (code, Some(states)), "{given:?}: {text}: {report}");
                }
            }
        }
    }
}

#[test]
fn a_model_that_is_not_symmetric_is_no_fault_of_ours() {
    let text = |then: &str| {
        format!(
            "type node: scalarset(3);
            var on: array [node] of boolean; bad: boolean;
            startstate for n: node do on[n] := true; end; bad := false; end;
            function first(): node; begin for n: node do return n; end; end;
            ruleset n: node do rule n != first() ==> on[n] := !on[n]; end; end;
            {then}"
        )
    };
    for then in ["invariant on[first()];", "rule !on[first()] ==> bad := true; end; rule bad ==> error \"bad\"; end;"] {
        assert_eq!(check(&text(then), &[]).0, 0);
        for options in [
            &["--symmetry", "exact"][..],
            &["--symmetry", "heuristic"],
            &["--symmetry", "exact", "--executor", "interp"],
        ] {
            let (code, message) = check(&text(then), options);
            let message = message.as_str().unwrap_or_default();
            assert_eq!((code, message.contains("Check it with --symmetry off")), (3, true), "{options:?}: {message}");
        }
    }
}

fn verdict(text: &str, options: &[&str]) -> (i32, String) {
    let (code, report) = check(text, options);
    (code, format!("{}: {}", report["verdict"].as_str().unwrap_or(""), report["reason"].as_str().unwrap_or("")))
}

#[test]
fn the_notion_of_a_deadlock_can_be_chosen() {
    let still = "var x: 0..1; startstate x := 0; end; rule x = 0 ==> x := 1; end; rule x = 1 ==> x := 1; end;";
    for (options, code) in [
        (&[][..], 10),
        (&["--deadlock", "stuttering"], 10),
        (&["--deadlock", "stuck"], 0),
        (&["--deadlock", "off"], 0),
        (&["--no-deadlock"], 0),
    ] {
        assert_eq!(check(still, options).0, code, "{options:?}");
    }
    let stuck = "var x: 0..1; startstate x := 0; end; rule x = 0 ==> x := 1; end;";
    assert_eq!(check(stuck, &["--deadlock", "stuck"]).0, 10);
    assert_eq!(check(stuck, &["--deadlock", "stuck", "--symmetry", "exact"]).0, 10);
}

#[test]
fn conditions_to_be_covered() {
    let text = "var x: 0..3; startstate x := 0; end; rule x := (x + 1) % 3; end;
        cover \"two\" x = 2; ruleset i: 0..3 do cover \"some\" x = i; end;";
    let (code, report) = check(text, &[]);
    assert_eq!((code, report["verdict"].as_str()), (0, Some("holds")));
    assert_eq!(report["notes"][0].as_str(), Some("covered: `some` (0 steps), `two` (2 steps)"));
    let (code, said) = verdict(&format!("{text} cover x = 3;"), &[]);
    assert_eq!((code, said.as_str()), (12, "uncovered: `Cover 2` (line 2) is true in no reachable state"));
    let (code, said) = verdict(&format!("{text} cover \"three\" x = 3;"), &["--max-states", "2"]);
    assert_eq!((code, said.starts_with("unknown")), (20, true), "{said}");
    assert_eq!(check(&format!("{text} cover x = 3; invariant x < 2;"), &[]).1["verdict"], "invariant");
}

#[test]
fn traces_speak_murphi() {
    let text = "type node: scalarset(2); colour: enum {red, green};
        var lamp: array [node] of record on: boolean; now: colour; end; last: node;
        startstate for n: node do lamp[n].on := false; end; end;
        ruleset n: node; c: colour do rule \"switch\" !lamp[n].on ==> lamp[n].on := true; lamp[n].now := c; last := n; end; end;
        invariant exists n: node do !lamp[n].on end;";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lamps.m");
    std::fs::write(&path, text).unwrap();
    let output = run(&["check", path.to_str().unwrap(), "--color", "never"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(code(&output), 12, "{said}");
    let first = "switch (n=node_1, c=red)   lamp[node_1].on := true  lamp[node_1].now := red  last := node_1\n";
    assert!(said.contains(first) && said.contains("lamp[node_2].now := undefined"), "{said}");
}

#[test]
fn bad_models_have_a_clear_end() {
    let model = |body: &str| {
        format!(
            "const one: 1; var x: 0..3; y: 0..3; z: 0..99; function deep(n: 0..99): 0..99; begin if n = 0 then return 0; end; return deep(n - 1); end; startstate x := 0; undefine y; z := 0; end; rule {body} end;"
        )
    };
    for (body, words) in [
        ("x := 3 / x;", "zero"),
        ("x := 3 % x;", "zero"),
        ("x := x + one;", "outside 0..3"),
        ("x := y + 1;", "undefined"),
        ("while true do z := 0; end;", "did not end within"),
        ("z := deep(99);", "deep"),
        ("assert \"small\" x > 0;", "small"),
        ("error \"gone\";", "gone"),
    ] {
        let (code, said) = verdict(&model(body), &["--no-deadlock"]);
        assert_eq!(code, 11, "{body}: {said}");
        assert!(said.contains(words), "{body}: {said}");
    }
    for (body, words) in [("x := true;", "boolean"), ("w := 1;", "`w` is not declared"), ("x[1] := 1;", "not an array")]
    {
        let (code, said) = check(&model(body), &[]);
        assert_eq!(code, 3, "{body}");
        let said = said.as_str().unwrap();
        assert!(said.contains(words) && said.contains('^'), "{said}");
    }
}

#[test]
fn recursion_that_doubles_is_expanded_as_deep_as_it_fits() {
    let text = "var x: 0..55; function fib(n: 0..10): 0..100; begin if n < 2 then return n; end; return fib(n - 1) + fib(n - 2); end;
        startstate x := 10; end; rule x = 10 ==> x := fib(x); end; rule x := 10; end;";
    let (code, report) = check(text, &[]);
    assert_eq!((code, report["states"].as_u64()), (0, Some(2)));
}

#[test]
fn a_cost_may_be_a_number() {
    // Two counters up and down; the way to the goal is where they get nearer to a hundred.
    let text = "type small: 0..200; var x: small; y: small; on: boolean; startstate x := 0; y := 0; on := false; end;
        rule x < 200 ==> x := x + 1; end; rule y < 200 ==> y := y + 1; end; rule x > 0 ==> x := x - 1; end;
        rule y > 0 ==> y := y - 1; end; rule on := !on; end;";
    let goal = ["--find", "x = 100 & y = 100 & on", "--no-deadlock"];
    let states = |more: &[&str]| {
        let (code, report) = check(text, &[&goal[..], more].concat());
        assert_eq!(code, 12, "{more:?}: {report}");
        report["states"].as_u64().unwrap()
    };
    let broad = states(&[]);
    for strategy in ["best", "beam:10"] {
        let cost = "(x - 100) * (x - 100) + (y - 100) * (y - 100)";
        let led = states(&["--strategy", strategy, "--cost", cost]);
        assert!(led * 10 < broad, "{strategy}: {led} of {broad}");
    }
    let by_truth = states(&["--strategy", "best", "--cost", "!(x + y > 150)"]);
    assert!(by_truth <= broad, "a truth counts as one: {by_truth} of {broad}");
    let (code, said) = check(text, &["--strategy", "best", "--cost", "x + on"]);
    assert!(code == 2 && said.as_str().unwrap().contains("--cost"), "{said}");
}
