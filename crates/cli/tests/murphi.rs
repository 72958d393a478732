//! Murphi models from the command line: options and messages of that language.

#[path = "common/run.rs"]
mod run;

use run::{code, run};
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
