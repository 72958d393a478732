//! Every strategy visits every state of every small model, and says when it could not.

use crate::common::report::{report, root};
use serde_json::Value;

/// Models with more states are left out.
const MOST_STATES: u64 = 20_000;

fn number(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("{name} is a number"))
}

/// A share of the states of a model; the estimate of distinct states may be off by this factor.
const TOLERANCE: f64 = 0.08;

fn compare(model: &str, truth: &Value, options: &[&str]) -> bool {
    let (_, found) = report(&[&[model, "--keep-going", "--memory", "200M"], options].concat());
    if found["complete"] == Value::Bool(false) {
        let reason = found["reason"].as_str().unwrap();
        let named = ["memory: all", "redundancy:"].iter().any(|start| reason.starts_with(start));
        assert!(named || found["verdict"] != "unknown", "{model} {options:?}: {reason}");
        return false;
    }
    let name = format!("{model} {options:?}");
    let (states, visits) = (number(truth, "states"), number(&found, "states"));
    if number(&found, "forgotten") == 0 {
        assert_eq!(states, visits, "{name}");
        assert_eq!(truth["deadlocks"], found["deadlocks"], "{name}");
        assert_eq!(number(&found, "distinct"), states, "{name}");
    } else {
        let distinct = number(&found, "distinct") as f64;
        assert!(visits >= states, "{name}");
        assert!((distinct / states as f64 - 1.0).abs() < TOLERANCE, "{name}: {distinct} of {states}");
    }
    assert_eq!(number(truth, "deadlocks") > 0, number(&found, "deadlocks") > 0, "{name}");
    assert_eq!(truth["verdict"] == "holds", found["verdict"] == "holds", "{name}");
    true
}

#[test]
fn small_models_are_visited_completely() {
    let folder = root().join("models/dve");
    let (mut finished, mut kept) = ([0; 2], 0);
    let mut models = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().display().to_string();
        let (_, truth) = report(&[&path, "--keep-going", "--max-states", &MOST_STATES.to_string()]);
        if truth["complete"] == Value::Bool(false) {
            continue;
        }
        models += 1;
        let states = number(&truth, "states");
        for strategy in ["sleep", "cover", "cache:SC", "cache:MFU:25%,LRU:75%", "cache:KEEP,SC"] {
            assert!(compare(&path, &truth, &["--strategy", strategy]), "{path} {strategy} has room for all");
        }
        let (half, most) = ((states / 2 + 1).to_string(), (states * 9 / 10 + 1).to_string());
        for strategy in ["sleep+cache:RND", "cover:LRU", "cache:LRU", "cache:OI", "cache:kind"] {
            for (index, size) in [&half, &most].into_iter().enumerate() {
                let options = ["--strategy", strategy, "--cache-size", size, "--redundancy-limit", "20x"];
                finished[index] += compare(&path, &truth, &options) as u32;
            }
        }
        for rule in ["cache:SC", "cache:RND"] {
            let options = ["--strategy", rule, "--order", "bfs", "--cache-size", &most, "--store", "tree"];
            compare(&path, &truth, &options);
        }
        for size in [&half, &most] {
            let options = ["--strategy", "cache:KEEP:50%,SC:50%", "--order", "bfs", "--cache-size", size];
            kept += compare(&path, &truth, &options) as u32;
        }
    }
    assert!(models > 12 && finished[0] > 10 && finished[1] > 30, "{models} models, {finished:?} runs finished");
    assert!(kept > 10, "{kept} runs that keep the first states finished");
}

/// What the paper on hierarchical caches (Mateescu and Wijs, TACAS 2009) tries, by the names it has there, with what reports call it
/// and, where the size of a cache counts, a size.
const OF_THE_PAPER: [(&str, &str, &[&str]); 24] = [
    // Breadth first with snapshots, with the backtracking set and without.
    ("(c2,LLNR,5)(2,LFU,10)", "snapshots:(c2,LLNR,5)(2,LFU,10)", &[]),
    ("(c2,LLNR,5)(2,LFU,10)BT", "snapshots:(c2,LLNR,5)(2,LFU,10)", &[]),
    ("(c2,LLNR,5)(2,LFU,10)-BT", "snapshots:(c2,LLNR,5)(2,LFU,10)-BT", &[]),
    ("snapshots:(c1,LLNR,3)(1,LRU,3)", "snapshots:(c1,LLNR,3)(1,LRU,3)", &[]),
    ("(c2,LRU,2)(c2,MRU,2)(1,MFU,4)", "snapshots:(c2,LRU,2)(c2,MRU,2)(1,MFU,4)", &[]),
    ("(c3,RND,4)(2,SMALL,3)", "snapshots:(c3,RND,4)(2,SMALL,3)", &[]),
    ("(3,LARGE,4)", "snapshots:(3,LARGE,4)", &[]),
    ("frontier-safety-net", "snapshots:(c2,LLNR,5)(2,LFU,10)", &[]),
    ("frontier-safety-net-BT", "snapshots:(c2,LLNR,5)(2,LFU,10)-BT", &[]),
    ("frontier-safety-net:(c1,LLNR,3)(5,LFU,4)", "snapshots:(c1,LLNR,3)(5,LFU,4)", &[]),
    ("frontier", "frontier:5", &["--redundancy-limit", "100x"]),
    ("frontier:20-BT", "frontier:20-BT", &["--redundancy-limit", "100x"]),
    ("pebble", "pebble:(c2,LLNR,5)", &[]),
    ("pebble-BT", "pebble:(c2,LLNR,5)-BT", &[]),
    ("pebble:(c3,LFU,2)", "pebble:(c3,LFU,2)", &[]),
    // Depth first with caches, one or a cascade.
    ("cache:LRU", "cache:LRU", &["--order", "dfs", "--cache-size", "90%"]),
    ("cache:MRU", "cache:MRU", &["--order", "dfs", "--cache-size", "90%"]),
    ("cache:LFU", "cache:LFU", &["--order", "dfs", "--cache-size", "90%"]),
    ("cache:MFU", "cache:MFU", &["--order", "dfs", "--cache-size", "90%"]),
    ("cache:RND", "cache:RND", &["--order", "dfs", "--cache-size", "90%"]),
    ("cache:<MFU,LRU>", "cache:MFU:250,LRU:250", &["--order", "dfs", "--cache-size", "500"]),
    ("cache:⟨RND:75%,LRU:25%⟩", "cache:RND:375,LRU:125", &["--order", "dfs", "--cache-size", "500"]),
    ("cache:MFU:25%,LRU:75%", "cache:MFU:125,LRU:375", &["--order", "dfs", "--cache-size", "500"]),
    ("cache:<MFU:20%,RND:30%,LRU:50%>", "cache:MFU:100,RND:150,LRU:250", &["--order", "dfs", "--cache-size", "500"]),
];

#[test]
fn whatever_the_paper_tries_runs_by_its_name_and_ends() {
    let mut forgetful = 0;
    for model in ["dve/bakery_2.dve", "promela/workers.pml", "promela/bounded_retransmission.pml", "murphi/dash.m"] {
        let model = root().join("models").join(model).display().to_string();
        let (_, truth) = report(&[&model, "--keep-going"]);
        for (name, printed, options) in OF_THE_PAPER {
            let options = [&["--strategy", name], options].concat();
            // The last levels alone need not be enough; then it is given up, with that reason.
            let ends = compare(&model, &truth, &options) || printed.starts_with("frontier:");
            assert!(ends, "{model} {name}: it does not end");
            let (_, found) = report(&[&[&model, "--keep-going"], &options[..]].concat());
            assert!(found["plan"]["strategy"].as_str().unwrap().starts_with(printed), "{name}: {}", found["plan"]);
            forgetful += (number(&found, "forgotten") > 0) as u32;
        }
    }
    assert!(forgetful > 30, "too much room: only {forgetful} runs forgot anything");
}

#[test]
fn strategies_that_cannot_be_are_refused_with_what_can() {
    let model = root().join("models/dve/dekker.dve").display().to_string();
    for (options, word) in [
        (&["--cache", "LRV:10%"][..], "LRU MRU"),
        (&["--cache", "LRU:60%,MFU:60%"], "MFU:25%,LRU:75%"),
        (&["--cache", "LRU:101%"], "MFU:25%,LRU:75%"),
        (&["--cache", ""], "MFU:25%,LRU:75%"),
        (&["--cache-size", "0"], "states (600), bytes (64M)"),
        (&["--cache-size", "few"], "states (600), bytes (64M)"),
        (&["--cache", "LRU", "--redundancy-limit", "0.5"], "6x"),
        (&["--strategy", "quick"], "cache:LRU"),
        (&["--strategy", ""], "cache:LRU"),
        (&["--strategy", "sleepcache:LRU"], "sleep+cache:RND"),
        (&["--strategy", "sleep++full"], "sleep+cache:RND"),
        (&["--strategy", "full", "--cache", "LRU"], "holds every state"),
        (&["--strategy", "cache:LRU:600", "--cache-size", "600"], "leave out --cache-size"),
        (&["--strategy", "sleep", "--order", "bfs"], "--order dfs"),
        (&["--cache-size", "600"], "--cache LRU"),
        (&["--cache", "LRU", "--cache-size", "900G"], "--memory"),
    ] {
        let program = env!("CARGO_BIN_EXE_plimsoll");
        let run = std::process::Command::new(program).arg("check").arg(&model).args(options).output().unwrap();
        let message = String::from_utf8_lossy(&run.stderr).to_string();
        assert_eq!(run.status.code(), Some(2), "{options:?}: {message}");
        assert!(message.contains(word), "{options:?}: {message}");
    }
}

#[test]
fn a_cache_below_the_stack_says_so() {
    let model = root().join("models/dve/peterson_filter_3.dve").display().to_string();
    let (code, found) = report(&[&model, "--cache", "LRU", "--cache-size", "20"]);
    assert_eq!((code, found["verdict"].as_str()), (20, Some("unknown")));
    let reason = found["reason"].as_str().unwrap();
    assert!(reason.contains("all 20 states") && reason.contains("states (600), bytes (64M)"), "{reason}");
}

#[test]
fn a_search_that_goes_round_in_circles_says_so_early_and_what_would_help() {
    let model = root().join("models/dve/peterson_filter_4.dve").display().to_string();
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["check", &model, "--json", "--cache", "MRU", "--order", "bfs", "--cache-size", "5000"])
        .args(["--max-states", "400000"])
        .output()
        .unwrap();
    let (warning, report) = (String::from_utf8_lossy(&run.stderr), String::from_utf8_lossy(&run.stdout));
    assert!(warning.starts_with("warning: the last ") && warning.lines().count() == 1, "{warning}");
    assert!(warning.contains("--cache SC") && warning.contains("--strategy full"), "{warning}");
    let report: Value = serde_json::from_str(&report).unwrap();
    let notes = report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect::<Vec<_>>();
    assert!(notes.iter().any(|note| note.contains("visits each")), "{notes:?}");
    assert!(report["redundancy"].as_f64().unwrap() > 1.5, "{}", report["redundancy"]);
}

#[test]
fn a_deep_search_leaves_the_cold_end_of_its_stack_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("deep.dve");
    let text =
        "int n; process P { state a; init a; trans a -> a { guard n < 30000; effect n = n + 1; }; } system async;";
    std::fs::write(&model, text).unwrap();
    let model = model.display().to_string();
    let options = ["--order", "dfs", "--no-deadlock", "--memory", "14M", "--disk", "100M"];
    let (code, found) = report(&[&[model.as_str()], &options[..]].concat());
    assert_eq!((code, number(&found, "states"), number(&found, "depth")), (0, 30_001, 30_000), "{found}");
    let on_disk = found["ledger"].as_array().unwrap().iter().find(|row| row["medium"] == "disk").unwrap();
    assert!(on_disk["peak"].as_u64().unwrap() > 0, "{on_disk}");
    // The deadlock at the end is found, and the way to it is read back from disk and replayed.
    let options = ["--order", "dfs", "--memory", "14M", "--disk", "100M"];
    let (code, found) = report(&[&[model.as_str()], &options[..]].concat());
    assert_eq!((code, found["verdict"].as_str()), (10, Some("deadlock")), "{}", found["reason"]);
    assert!(found["reason"].as_str().unwrap().contains("30,000 steps"), "{}", found["reason"]);
}

/// The log of steps forgets what nothing waiting descends from; the way to what is found must still be there.
#[test]
fn a_long_search_that_forgets_finds_the_shortest_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters.pml");
    let text = "short a, b; active proctype A() { do :: a < 700 -> a++ :: a > 350 && b > 350 -> a = a - 300 od }
        active proctype B() { do :: b < 600 -> b++ od }
        active proctype C() { assert(a + b < 1290) }";
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let steps = |options: &[&str]| {
        let (code, report) = report(&[&[path, "--no-deadlock", "--merge", "off"], options].concat());
        assert_eq!(code, 11, "{options:?}: {}", report["reason"]);
        report["trace"]["steps"].as_array().unwrap().len()
    };
    let shortest = steps(&[]);
    assert!(shortest > 1290);
    assert_eq!(steps(&["--strategy", "frontier-safety-net"]), shortest);
}

/// Levels are held whole or not at all: if one does not fit, that one is named.
#[test]
fn a_level_that_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.pml");
    std::fs::write(&path, "active [7] proctype P() { byte k; do :: k < 20 -> k++ od }").unwrap();
    let options = ["--memory", "32M", "--no-deadlock", "--strategy", "frontier-safety-net", "--workers", "1"];
    let (code, report) = report(&[&[path.to_str().unwrap()], &options[..]].concat());
    let reason = report["reason"].as_str().unwrap();
    let level = format!("memory: level {} does not fit", number(&report, "levels"));
    assert!(code == 20 && reason.starts_with(&level), "{code}: {reason}");
}
