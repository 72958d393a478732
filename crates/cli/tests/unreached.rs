//! `--unreached`: what was never taken, with SPIN's numbers of statements where there are any.

use crate::common::run::{code, run};

fn listed(name: &str, model: &str, options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, model).unwrap();
    let output = run(&[&["check", path.to_str().unwrap(), "--unreached"], options].concat());
    assert!(code(&output) < 20, "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().skip_while(|line| !line.contains("taken")).take_while(|line| !line.is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn statements_that_are_never_taken_are_listed() {
    let model = "byte x;
proctype Q() { x = 7; assert(x < 9) }
active proctype P() {
  if
  :: x == 0 -> x = 1
  :: x == 5 -> x = 2; run Q()
  fi;
  atomic { x == 1; x = 3 };
  if :: x > 3 -> x = 9 :: else fi;
  false
}
";
    let wanted = "never taken in P (6 of 11 statements)
u.pml:6, state 3, x == 5 (reached)
u.pml:6, state 4, x = 2
u.pml:6, state 5, run Q()
u.pml:9, state 11, x > 3 (reached)
u.pml:9, state 12, x = 9
u.pml:11, state 17, -end-
never taken in Q (3 of 3 statements)
u.pml:2, state 1, x = 7
u.pml:2, state 2, assert(x < 9)
u.pml:2, state 3, -end-";
    for executor in ["jit", "interp"] {
        assert_eq!(listed("u.pml", model, &["--keep-going", "--executor", executor]), wanted);
    }
}

#[test]
fn other_languages_have_transitions_and_rules() {
    let model = "byte x; process P { state a, b; init a; trans a -> b { guard x == 0; }, a -> a { guard x == 1; }; } system async;";
    assert_eq!(
        listed("u.dve", model, &["--no-deadlock"]),
        "never taken in P (1 of 2 statements)\nu.dve:1, a -> a (reached)"
    );
    let rules = "var x: 0..3; startstate x := 0; end; rule \"up\" x < 2 ==> x := x + 1; end; rule \"never\" x = 3 ==> x := 0; end; rule \"back\" x = 2 ==> x := 0; end;";
    assert_eq!(listed("u.m", rules, &[]), "never taken in rules (1 of 3 statements)\nu.m:1, never");
    let all = "byte x; process P { state a; init a; trans a -> a { }; } system async;";
    assert_eq!(listed("u.dve", all, &[]), "every statement was taken");
}
