//! The memory budget is for the whole process, and is checked from outside it.
//!
//! Everything is in one test: the system reports the peak over all children, so budgets go up.

#[path = "common/report.rs"]
mod common;

use common::{report, root};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

/// The most memory any child so far had.
fn peak_of_children() -> u64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024
}

#[test]
fn no_search_takes_more_memory_than_it_was_given() {
    let models = ["sliding_window_large", "philosophers_13", "peterson_filter_4", "bakery_4"];
    let mut unfinished = 0;
    for megabytes in [16u64, 32, 48] {
        for model in models {
            for options in [&["--order", "bfs"][..], &["--order", "dfs"], &["--store", "plain"], &["--store", "tree"]] {
                unfinished += within(model, megabytes, options) as u32;
            }
        }
    }
    unfinished += within("sliding_window_large", 56, &["--executor", "interp", "--order", "dfs"]) as u32;
    // What waits goes to disk, so the memory that is left goes further.
    within("sliding_window_large", 56, &["--disk", "1G"]);
    assert!(unfinished > 15, "the models are too small for this test: {unfinished}");
}

/// Runs a check and returns whether memory ran out.
fn within(model: &str, megabytes: u64, options: &[&str]) -> bool {
    let path = root().join(format!("models/dve/{model}.dve")).display().to_string();
    let memory = format!("{megabytes}M");
    // A time limit keeps the test short; it must not be what ends a search that memory should end.
    let fixed = [path.as_str(), "--memory", &memory, "--no-deadlock", "--max-states", "1000000"];
    let (code, report) = report(&[&fixed, options].concat());
    let peak = peak_of_children();
    assert!(peak <= megabytes << 20, "{model} {options:?}: {peak} bytes of {megabytes} MiB");
    assert!(report["peak_rss"].as_u64().unwrap() <= megabytes << 20, "{model} {options:?}");
    assert!(matches!(code, 0 | 20), "{model} {options:?}: {code}");
    let out_of_memory = code == 20 && report["reason"].as_str().unwrap().starts_with("memory");
    if out_of_memory {
        complete(&report);
    }
    out_of_memory
}

/// A report without an answer still says everything else.
fn complete(report: &Value) {
    assert_eq!(report["verdict"], "unknown");
    assert_eq!(report["complete"], false);
    assert!(report["states"].as_u64().unwrap() > 1000, "{report}");
    assert!(report["transitions"].as_u64().unwrap() >= report["states"].as_u64().unwrap() / 2);
    let ledger = report["ledger"].as_array().unwrap();
    assert!(ledger.len() >= 2 && ledger.iter().all(|row| row["peak"].as_u64() <= row["granted"].as_u64()));
}
