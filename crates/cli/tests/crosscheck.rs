//! Whatever a model is checked under, the answer is the same.

use crate::common::files::model;
use crate::common::run::{code, run};
use serde_json::Value;

#[test]
fn small_models_have_one_answer() {
    for (name, options, verdict) in [
        ("dve/mutex_broken.dve", &[][..], "invariant"),
        ("dve/missionaries.dve", &["--find", "m == 0 && c == 0"], "reached"),
        ("promela/stuck_clerks.pml", &[], "deadlock"),
        ("murphi/election.m", &[], "holds"),
    ] {
        let model = model(name);
        let arguments = [&["crosscheck", &model, "--json", "--"], options].concat();
        let output = run(&arguments);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((code(&output), &found["disagreements"]), (0, &Value::Array(Vec::new())), "{name}");
        assert_eq!(found["reference"]["verdict"], verdict, "{name}");
        let count = |name: &str| found[name].as_u64().unwrap();
        assert!(count("runs") > 150 && count("agree") > count("runs") / 3, "{name}: {found}");
    }
}

#[test]
fn what_is_too_large_or_wrong_is_said() {
    let output = run(&["crosscheck", &model("dve/bakery_4.dve"), "--max-states", "100"]);
    assert_eq!(code(&output), 20);
    assert!(String::from_utf8_lossy(&output.stdout).contains("--max-states"));
    let output = run(&["crosscheck", &model("dve/dekker.dve"), "--", "--invariant", "1 +"]);
    assert_eq!(code(&output), 2);
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error"));
}
