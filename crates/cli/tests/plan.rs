//! `plan` knows what it has seen, says so where it does not know, and handles bad input like `check`.

use crate::common::files::model;
use crate::common::run::{code, run};
use serde_json::Value;

fn plan(name: &str, options: &[&str]) -> Value {
    let output = run(&[&["plan", &model(name), "--json"], options].concat());
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_small_model_is_known_exactly() {
    for (name, options) in [("dve/dekker.dve", &[][..]), ("murphi/election.m", &[]), ("promela/stuck_clerks.pml", &[])]
    {
        let found = plan(name, options);
        let check = run(&["check", &model(name), "--json", "--keep-going"]);
        let check: Value = serde_json::from_slice(&check.stdout).unwrap();
        assert_eq!(found["exact"], true, "{name}");
        for bound in ["low", "likely", "high"] {
            assert_eq!(found["states"][bound], check["states"], "{name}");
        }
        assert_eq!(found["carried_by"], "memory", "{name}");
        assert_eq!(found["state_bytes"], check["model"]["state_bytes"], "{name}");
        // Of a few thousand states nobody can tell what one takes.
        let few = check["states"].as_u64().unwrap() < 20_000;
        assert_eq!(few, found["bytes_per_state"].is_null() && found["states_in_memory"].is_null(), "{name}");
    }
}

#[test]
fn levels_that_only_grow_tell_nothing() {
    let found = plan("dve/sliding_window_large.dve", &["--sample-states", "20000"]);
    assert_eq!((&found["exact"], &found["states"]), (&Value::Bool(false), &Value::Null));
    assert_eq!((&found["carried_by"], &found["seconds"]), (&Value::String("unknown".into()), &Value::Null));
    assert!(found["sampled_states"].as_u64().unwrap() >= 20_000);
    let stores: Vec<&str> = found["stores"].as_array().unwrap().iter().filter_map(|s| s["store"].as_str()).collect();
    assert!(["tree", "digest:64"].iter().all(|store| stores.contains(store)), "{stores:?}");
    assert!((1.0..60.0).contains(&found["bytes_per_state"].as_f64().unwrap()), "{found}");
    let output = run(&["plan", &model("dve/sliding_window_large.dve"), "--sample-states", "20000", "--disk", "1G"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["don't know, at least", "bytes/state", "with disk", "carried by", "advice"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn what_check_refuses_plan_refuses() {
    let broken = tempfile::tempdir().unwrap();
    let broken = broken.path().join("broken.dve");
    std::fs::write(&broken, "process P { state a; init b; }").unwrap();
    let broken = broken.to_str().unwrap();
    let sound = model("dve/dekker.dve");
    for arguments in [&[broken][..], &["no/such.dve"], &[&sound, "--memory", "1M"], &[&sound, "--const", "N=1"]] {
        let [check, plan] = ["check", "plan"].map(|command| run(&[&[command], arguments].concat()));
        assert_eq!(code(&plan), code(&check), "{arguments:?}");
        assert!([2, 3].contains(&code(&plan)) && !plan.stderr.is_empty(), "{arguments:?}");
    }
}
