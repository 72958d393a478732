//! Processes for which a model has no room until a search meets them, in every order, also where searches go on after errors.

use crate::common::run::{code, run};
use serde_json::Value;
use std::fs;

/// Counts for so long that no walk before the search comes to the processes, and then begins some that live side by side.
const MODEL: &str = "short n; byte k, done;
proctype P() { done++; done == 4 }
init { do :: n < 600 -> n++ :: n == 600 -> break od; do :: k < 4 -> run P(); k++ :: else -> break od }
";

#[test]
fn searches_that_go_on_after_errors_begin_again_with_more_room() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.pml");
    fs::write(&file, MODEL).unwrap();
    let check = |options: &[&str]| {
        let output = run(&[&["check", file.to_str().unwrap(), "--json", "--merge", "off"], options].concat());
        assert!([0, 20].contains(&code(&output)), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let states = |found: &Value| [&found["states"], &found["faults"], &found["complete"]].map(Value::clone);
    let wanted = check(&[]);
    assert!(wanted["verdict"] == "holds" && wanted["states"].as_u64() > Some(1000), "{wanted}");
    for options in [
        &["--keep-going"][..],
        &["--no-errors"],
        &["--keep-going", "--workers", "2"],
        &["--keep-going", "--order", "dfs"],
        &["--keep-going", "--strategy", "best"],
        &["--keep-going", "--executor", "interp"],
        &["--all-violations"],
    ] {
        assert_eq!(states(&check(options)), states(&wanted), "{options:?}");
    }
    let walked = check(&["--keep-going", "--strategy", "walk", "--max-states", "20000"]);
    assert_eq!((walked["faults"].as_u64(), walked["reason"].as_str().map(|why| &why[..6])), (Some(0), Some("states")));
}
