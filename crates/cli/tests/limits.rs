//! Limits of time and of the system: they end a check with a report, wherever it is.

use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Writes a model and checks it, through a shell that first runs `before`; the exit code, the report, and how long it took.
fn check(name: &str, text: &str, before: &str, arguments: &[&str]) -> (Option<i32>, Value, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let start = Instant::now();
    let script = format!("{before} exec \"$0\" check --json \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_plimsoll")]).arg(&path).args(arguments);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report, start.elapsed())
}

/// Does the check end soon after a third of a second, for want of time?
fn ends_in_time(name: &str, text: &str, arguments: &[&str]) {
    let (code, report, took) = check(name, text, "", &[&["--time", "300ms"], arguments].concat());
    assert_eq!(code, Some(20), "{name} {arguments:?}: {report}");
    assert!(
        report["reason"].as_str().unwrap().starts_with("time: the limit is reached"),
        "{name}: {}",
        report["reason"]
    );
    // Loaded machines are slow, but without the limit it would be minutes.
    assert!(took < Duration::from_secs(10), "{name} {arguments:?}: {took:?}");
}

const LONG_INVARIANT: &str = "type R: 0..400000; var i: 0..10; startstate begin i := 0; end;
    rule i < 10 ==> begin i := i + 1; end;
    invariant forall a: R; b: R do a + b >= 0 end;";

#[test]
fn the_time_limit_is_seen_within_a_step() {
    let endless =
        "int x; int y; init { d_step { do :: y < 2000000000 -> x++; if :: x == 5 -> x = 0; y = y + 1 :: else fi
        :: else -> break od } }";
    let atomic =
        "int x; int y; init { atomic { do :: y < 2000000000 -> x++; if :: x == 5 -> x = 0; y = y + 1 :: else fi
        :: else -> break od } }";
    let rule = "type R: 0..400000; var i: 0..10; startstate begin i := 0; end;
        rule forall a: R; b: R do a + b >= 0 end ==> begin i := 1 - i; end;";
    for executor in ["jit", "interp"] {
        for order in ["bfs", "dfs"] {
            let arguments = ["--executor", executor, "--order", order];
            ends_in_time("invariant.m", LONG_INVARIANT, &arguments);
            ends_in_time("rule.m", rule, &arguments);
            ends_in_time("d_step.pml", endless, &arguments);
            ends_in_time("atomic.pml", atomic, &arguments);
        }
    }
}

#[test]
fn the_time_limit_is_seen_while_loading() {
    // Every process runs many others, whose places in the state are found out one after the other.
    let bodies: String = (0..40)
        .map(|k| format!("proctype P{k}() {{ int a[20]; a[{k} % 20] = 1; run P{}() }}\n", (k + 1) % 40))
        .collect();
    let (_, report, took) = check("room.pml", &format!("{bodies} init {{ run P0() }}"), "", &["--time", "1s"]);
    assert!(took < Duration::from_secs(10), "{took:?}: {}", report["reason"]);
    assert!(report["reason"].as_str().unwrap().starts_with("time: the limit is reached"), "{}", report["reason"]);
}

#[test]
fn long_sequences_are_followed_to_their_ends() {
    let cases = [
        ("int x; init { atomic { do :: x < 300000 -> x++ :: else -> break od } }", 0),
        ("int x; init { d_step { do :: x < 3000000 -> x++ :: else -> break od } }", 0),
        ("int x; init { atomic { do :: x < 30000 -> x++ :: else -> break od }; assert(x == 0) }", 11),
        ("int x; init { d_step { do :: x < 3000000 -> x++ :: else -> break od }; assert(x == 0) }", 11),
        ("int x; init { atomic { do :: x == 30000 -> x = 0 :: else -> x++ od } }", 11),
        ("bit x; init { d_step { do :: x == 1 -> x = 0 :: else -> x = 1 od } }", 11),
    ];
    for (text, expected) in cases {
        for merge in ["on", "off"] {
            for executor in ["jit", "interp"] {
                let (code, report, _) = check("m.pml", text, "", &["--merge", merge, "--executor", executor]);
                assert_eq!(code, Some(expected), "{text} {merge} {executor}: {}", report["reason"]);
            }
        }
    }
}

#[test]
fn processes_without_end_are_an_error_that_is_found_soon() {
    let (code, report, _) = check("q.pml", "proctype Q() { run Q() } init { run Q() }", "", &[]);
    assert_eq!(code, Some(11), "{report}");
    assert!(report["reason"].as_str().unwrap().contains("more than 255 processes"), "{}", report["reason"]);
}

/// Has more states than anybody can visit, too wide to be packed.
const COUNTERS: &str = "int a = 0; int b = 0; int c = 0; int d = 0; int e = 0;
    process P { state s; init s; trans s -> s { effect a = a + 1; }, s -> s { effect b = b + 1; },
    s -> s { effect c = c + 1; }, s -> s { effect d = d + 1; }, s -> s { effect e = e + 1; }; } system async;";

#[test]
fn limits_on_addresses_leave_a_report() {
    for before in ["ulimit -v 400000;", "ulimit -d 200000;", "ulimit -v 2000000;"] {
        for arguments in [&[][..], &["--memory", "8G"], &["--store", "tree"], &["--order", "dfs"]] {
            let limit = ["--time", "5s", "--max-states", "20000000"];
            let (code, report, _) = check("c.dve", COUNTERS, before, &[&limit, arguments].concat());
            assert_eq!(code, Some(20), "{before} {arguments:?}: {report}");
            assert!(report["states"].as_u64().unwrap() > 10_000, "{before} {arguments:?}: {report}");
        }
    }
}

#[test]
fn limits_on_files_and_processor_time_leave_a_report() {
    let arguments = ["--memory", "24M", "--disk", "4G", "--order", "dfs", "--store", "plain"];
    let (code, report, _) = check("c.dve", COUNTERS, "ulimit -f 2000;", &arguments);
    assert_eq!(code, Some(20), "{report}");
    let (code, report, _) = check("c.dve", COUNTERS, "ulimit -S -t 1;", &["--executor", "interp"]);
    assert_eq!(code, Some(20), "{report}");
    assert!(report["states"].as_u64().unwrap() > 0, "{report}");
}
