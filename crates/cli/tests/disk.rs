//! When memory is full and there is a disk, a breadth-first search goes on there: same answer, within both budgets.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Three counters that go round, which are a million states, with a number that makes them wider, and an error far away.
const COUNTERS: &str = "byte a; byte b; byte c; int h;
    process P { state s; init s; trans
        s -> s { guard a < 99; effect a = a + 1, h = h + 1; }, s -> s { guard b < 99; effect b = b + 1, h = h + 100; },
        s -> s { guard c < 99; effect c = c + 1, h = h + 200; },
        s -> s { guard a == 99 && b == 99 && c == 99; effect a = 0, b = 0, h = 19800; };
    }
    system async;";

/// Checks the counters; the exit code and the report.
fn check(arguments: &[&str]) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters.dve");
    std::fs::write(&path, COUNTERS).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(["check", "--json"]).arg(&path).args(arguments).output();
    let output = output.unwrap();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

/// Everything that must be the same wherever states are.
fn answer((code, report): &(Option<i32>, Value)) -> Value {
    let counts =
        ["verdict", "complete", "states", "transitions", "levels", "depth", "deadlocks", "matched", "property_hits"];
    let counts: Vec<&Value> = counts.iter().map(|name| &report[name]).collect();
    serde_json::json!([code, counts, report["trace"]["positions"]])
}

/// Megabytes with which the table of the counters is full early.
fn little() -> String {
    // What the process takes differs from machine to machine, and on a busy one from time to time.
    let taken =
        || check(&["--memory", "1G", "--workers", "1", "--max-states", "9"]).1["plan"]["process_bytes"].as_u64();
    let needed = (0..4).filter_map(|_| taken()).min().unwrap() + (25 << 18);
    format!("{}M", needed >> 20)
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_search_goes_on_on_disk_and_says_the_same() {
    let (one, two, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), little());
    let folders = ["--spill-dir", one.path().to_str().unwrap(), "--spill-dir", two.path().to_str().unwrap()];
    for question in [&[][..], &["--invariant", "a + b + c < 290"]] {
        let truth = check(&[question, &["--memory", "1G", "--disk", "1G"]].concat());
        assert!(truth.1["layers"].is_null(), "a search that fits touches no disk");
        for (strategy, workers) in [("full", "1"), ("full", "2"), ("layers", "2")] {
            let budget = ["--memory", &memory, "--disk", "1G", "--strategy", strategy, "--workers", workers];
            let found = check(&[question, &budget, &folders].concat());
            assert_eq!(answer(&found), answer(&truth), "{strategy}, {workers} workers");
            let (layers, plan) = (&found.1["layers"], &found.1["plan"]);
            assert!(layers["flushes"].as_u64() > Some(0) && layers["runs"].as_u64() > Some(0), "{layers}, {plan}");
            assert!(layers["disk_bytes_per_state"].as_f64() < Some(12.0), "{layers}");
            let rows = found.1["ledger"].as_array().unwrap();
            let on_disk: u64 =
                rows.iter().filter(|row| row["medium"] == "disk").map(|row| row["peak"].as_u64().unwrap()).sum();
            assert!(on_disk > 0 && on_disk <= 1 << 30);
            assert!(found.1["peak_rss"].as_u64() <= found.1["memory_budget"].as_u64(), "{}", found.1["peak_rss"]);
            assert!(is_empty(one.path()) && is_empty(two.path()), "files have no names");
        }
    }
}

#[test]
fn levels_may_be_given_up_and_the_search_ends() {
    let memory = little();
    for strategy in ["layers:3", "layers:auto"] {
        let (code, report) = check(&["--memory", &memory, "--disk", "1G", "--strategy", strategy]);
        assert_eq!((code, report["verdict"].as_str()), (Some(0), Some("holds")), "{strategy}: {}", report["reason"]);
        assert!(report["states"].as_u64() >= Some(1_000_000) && report["layers"]["levels"].as_u64() > Some(1));
        assert_eq!(report["plan"]["strategy"], strategy);
        assert!(report["redundancy"].as_f64() <= report["layers"]["most_visits"].as_f64(), "{strategy}");
        let sizes = report["level_sizes"]["states"].as_array().unwrap();
        assert_eq!(sizes.iter().map(|size| size.as_u64().unwrap()).sum::<u64>(), report["states"].as_u64().unwrap());
    }
}

/// Steps that were forgotten are found again, with states on disk or given up.
#[test]
fn a_trace_from_a_short_log_is_as_short() {
    let (memory, question) = (little(), ["--invariant", "a + b + c < 290", "--disk", "1G"]);
    let log_bytes = |report: &Value| {
        let rows = report["ledger"].as_array().unwrap();
        let log = rows.iter().find(|row| row["medium"] == "disk" && row["name"] == "step log").unwrap();
        log["peak"].as_u64().unwrap()
    };
    let whole = check(&[&question[..], &["--memory", &memory]].concat());
    assert!(whole.1["trace"]["positions"].is_array(), "{}", whole.1["reason"]);
    for strategy in ["layers", "layers:3"] {
        let short = ["--memory", &memory, "--step-log", "100K", "--strategy", strategy];
        let found = check(&[&question[..], &short].concat());
        assert_eq!((found.0, &found.1["verdict"]), (whole.0, &whole.1["verdict"]), "{strategy}: {}", found.1["reason"]);
        let steps = |report: &Value| report["trace"]["positions"].as_array().map(Vec::len);
        assert_eq!(steps(&found.1), steps(&whole.1), "{strategy}");
        assert!(found.1["peak_rss"].as_u64() <= found.1["memory_budget"].as_u64(), "{}", found.1["peak_rss"]);
        assert!(log_bytes(&found.1) > 0 && log_bytes(&whole.1) > 0);
    }
}

#[test]
fn a_disk_that_is_too_small_or_missing_is_said() {
    let (code, report) = check(&["--memory", &little(), "--disk", "1M"]);
    assert_eq!(code, Some(20));
    let reason = report["reason"].as_str().unwrap();
    assert!(reason.starts_with("disk: "), "{reason}");
    // The step log alone takes more.
    let (code, report) = check(&["--memory", "200M", "--disk", "300K", "--workers", "1"]);
    let reason = report["reason"].as_str().unwrap();
    assert!(code == Some(20) && reason.starts_with("disk: "), "{reason}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters.dve");
    std::fs::write(&path, COUNTERS).unwrap();
    for (arguments, expected) in [
        (&["--strategy", "layers"][..], "needs --disk"),
        (&["--strategy", "layers:8", "--disk", "1G", "--store", "plain"], "--store plain"),
        (&["--strategy", "layers", "--disk", "1G", "--order", "dfs"], "--order bfs"),
        (&["--strategy", "layers:0", "--disk", "1G"], "layers:8"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_plimsoll")).arg("check").arg(&path).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(output.status.code() == Some(2) && message.contains(expected), "{arguments:?}: {message}");
    }
}
