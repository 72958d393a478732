//! Stores that may take a state for another: never `holds`, always with the odds, and violations as good as any.

use crate::common::report::{report, root};
use serde_json::Value;

const LOSSY: [&str; 6] = ["digest:40", "digest:64", "digest:128", "bitstate", "bitstate:2", "adaptive"];

fn check(model: &str, options: &[&str]) -> (i32, Value) {
    let path = root().join("models").join(model).display().to_string();
    report(&[&[path.as_str(), "--memory", "64M"], options].concat())
}

#[test]
fn what_an_exact_store_holds_a_lossy_one_holds_unless_collision() {
    for model in ["dve/lift.dve", "dve/dekker.dve", "promela/courier_ring.pml", "murphi/directory.m"] {
        for order in ["bfs", "dfs"] {
            let (code, exact) = check(model, &["--order", order]);
            assert_eq!((code, &exact["verdict"]), (0, &"holds".into()), "{model}");
            assert!(exact["expected_omissions"].is_null() && exact["miss_probability"].is_null());
            for store in LOSSY {
                let (code, lossy) = check(model, &["--order", order, "--store", store]);
                assert_eq!((code, &lossy["verdict"]), (21, &"holds unless collision".into()), "{model} {store}");
                assert_eq!((&lossy["complete"], &lossy["trace"]), (&Value::Bool(false), &Value::Null));
                let missed = exact["states"].as_f64().unwrap() - lossy["states"].as_f64().unwrap();
                let (omissions, probability) =
                    (lossy["expected_omissions"].as_f64().unwrap(), lossy["miss_probability"].as_f64().unwrap());
                assert!(missed <= 3.0 + 3.0 * omissions, "{model} {store}: {missed} missed, {omissions} expected");
                assert!(omissions >= 0.0 && omissions < 0.001 * exact["states"].as_f64().unwrap(), "{model} {store}");
                assert!((probability - -(-omissions).exp_m1()).abs() < 1e-12, "{model} {store}");
            }
        }
    }
}

#[test]
fn a_violation_is_as_good_as_any() {
    for (model, code) in [("dve/philosophers_5.dve", 10), ("dve/mutex_broken.dve", 12), ("promela/lost_counts.pml", 11)]
    {
        for store in LOSSY {
            for order in ["bfs", "dfs"] {
                let (found, report) = check(model, &["--order", order, "--store", store]);
                assert_eq!(found, code, "{model} {store} {order}");
                assert!(report["trace"]["steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{model} {store}");
            }
        }
    }
}

#[test]
fn whatever_ends_a_search_early_makes_it_unknown() {
    for store in LOSSY {
        for (options, reason) in [
            (&["--max-depth", "20"][..], "depth"),
            (&["--max-depth", "20", "--order", "dfs"], "depth"),
            (&["--max-states", "5000"], "states"),
        ] {
            let (code, report) = check("dve/lift.dve", &[options, &["--store", store]].concat());
            assert_eq!((code, &report["verdict"]), (20, &"unknown".into()), "{store} {options:?}");
            assert!(report["reason"].as_str().unwrap().starts_with(reason), "{store} {options:?}");
            assert!(report["expected_omissions"].as_f64().is_some());
        }
    }
}

/// The filter has its share from the beginning; the search goes on with a stack that is full, and nothing exceeds the budget.
#[test]
fn memory_is_not_exceeded_and_the_stack_is_bounded() {
    let mut bounded = 0;
    for store in LOSSY {
        for order in ["bfs", "dfs"] {
            let path = root().join("models/dve/sliding_window_large.dve").display().to_string();
            let options = ["--memory", "24M", "--store", store, "--order", order, "--max-states", "500000"];
            let (code, report) = report(&[&[path.as_str()], &options[..]].concat());
            assert_eq!(code, 20, "{store} {order}: {report}");
            assert!(report["peak_rss"].as_u64().unwrap() <= 24 << 20, "{store} {order}: {}", report["peak_rss"]);
            let ledger = report["ledger"].as_array().unwrap();
            assert!(ledger.iter().all(|row| row["peak"].as_u64() <= row["granted"].as_u64()));
            // A stack that is full keeps nobody from visiting all the states that were asked for.
            bounded += (order == "dfs" && report["states"] == 500_000) as u32;
        }
    }
    assert!(bounded >= 3, "{bounded}");
}

#[test]
fn a_filter_that_is_too_small_says_how_much_it_missed() {
    let path = root().join("models/dve/philosophers_13.dve").display().to_string();
    let check = |options: &[&str]| report(&[&[path.as_str(), "--no-deadlock"], options].concat()).1;
    let all = check(&[])["states"].as_f64().unwrap();
    for store in ["bitstate:3", "adaptive"] {
        // With disk the frontier needs hardly any memory.
        let lossy = check(&["--memory", "15M", "--store", store, "--disk", "1G"]);
        let (missed, expected) =
            (all - lossy["states"].as_f64().unwrap(), lossy["expected_omissions"].as_f64().unwrap());
        assert_eq!(lossy["exit_code"], 21, "{store}: {}", lossy["reason"]);
        assert!(missed > 10.0 && (0.5..2.0).contains(&(missed / expected)), "{store}: {missed} for {expected}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_or_noted() {
    let path = root().join("models/dve/dekker.dve").display().to_string();
    for (options, message) in [
        (&["--store", "digest:64", "--cache", "LRU"][..], "leave out the cache"),
        (&["--store", "adaptive", "--strategy", "cover"], "leave out the cache"),
        (&["--store", "digest:12"], "40, 64 or 128"),
        (&["--store", "treee"], "there is no store `treee`"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        let output = command.args(["check", &path]).args(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{options:?}: {output:?}");
    }
    let (_, report) = report(&[&path, "--store", "digest:64"]);
    assert!(report["notes"].to_string().contains("--store packed takes no more memory and is exact"), "{report}");
}

#[test]
fn the_ladder_ends_with_a_filter_only_where_that_is_allowed() {
    let path = root().join("models/dve/sliding_window_large.dve").display().to_string();
    let fixed =
        [&path, "--no-deadlock", "--memory", "24M", "--workers", "1", "--time", "60s", "--redundancy-limit", "1.05x"];
    let (code, exact) = report(&fixed);
    assert!(matches!(code, 0 | 20), "{exact}");
    let (code, lossy) = report(&[&fixed[..], &["--lossy"]].concat());
    let climbs: Vec<&Value> = lossy["climbs"].as_array().unwrap().iter().map(|climb| &climb["to"]).collect();
    assert_eq!(climbs.last(), Some(&&Value::from("a filter that may miss states")), "{lossy}");
    assert!(matches!(code, 20 | 21) && lossy["complete"] == false, "{}", lossy["verdict"]);
    assert!(lossy["expected_omissions"].as_f64().is_some() && lossy["peak_rss"].as_u64().unwrap() <= 24 << 20);
    // What fits stays exact.
    assert_eq!(check("dve/dekker.dve", &["--lossy"]).1["verdict"], "holds");
    for (options, message) in [
        (&["--lossy", "--strategy", "full"][..], "--lossy is for --strategy auto"),
        (&["--lossy", "--disk", "1G"], "with --disk they stay exact"),
        (&["--lossy", "--store", "plain"], "leave out --store plain"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        let output = command.args(["check", &path]).args(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{options:?}: {output:?}");
    }
}
