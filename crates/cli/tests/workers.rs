//! However many workers search, the report says the same, but for times and for memory.

use crate::common::report::{report, root};
use serde_json::Value;

/// A report without what may depend on the workers.
fn lasting(arguments: &[&str], workers: &str) -> (i32, Value) {
    let (code, mut report) = report(&[arguments, &["--workers", workers, "--memory", "1G"]].concat());
    let object = report.as_object_mut().unwrap();
    let memory = ["peak_rss", "plan", "ledger", "bytes_per_state"];
    for name in ["seconds", "cpu_seconds", "load_seconds", "total_seconds", "states_per_second"].iter().chain(&memory) {
        object.remove(*name).unwrap();
    }
    if let Some(shortage) = object["shortage"].as_object_mut() {
        shortage.remove("memory").unwrap();
    }
    (code, report)
}

#[test]
fn several_workers_report_what_one_reports() {
    for (model, options, verdict) in [
        ("dve/lift.dve", &[][..], "holds"),
        ("dve/sliding_window.dve", &["--store", "plain"], "holds"),
        ("dve/election_pairs_7.dve", &[], "deadlock"),
        ("dve/election_pairs_7.dve", &["--keep-going"], "deadlock"),
        ("dve/lift.dve", &["--store", "digest:40"], "holds unless collision"),
        ("dve/lift.dve", &["--store", "bitstate:3", "--disk", "1G"], "holds unless collision"),
        ("dve/lift.dve", &["--store", "adaptive"], "holds unless collision"),
        ("dve/lift.dve", &["--store", "huffman"], "holds"),
        ("dve/mesi_4.dve", &["--max-states", "30000"], "unknown"),
        ("dve/mesi_4.dve", &["--max-depth", "30"], "holds to depth"),
        ("dve/lift.dve", &["--order", "bfs", "--cache", "LRU", "--cache-size", "9000"], "unknown"),
        ("dve/lift.dve", &["--order", "bfs", "--cache", "SC", "--cache-size", "40000", "--store", "tree"], "holds"),
        ("dve/lift.dve", &["--order", "bfs", "--cache", "KEEP:50%,SC:50%", "--cache-size", "50000"], "holds"),
        ("dve/lift.dve", &["--order", "bfs", "--strategy", "cover", "--cache-size", "50000"], "holds"),
        ("dve/lamport_fast_3.dve", &["--executor", "interp", "--unreached"], "holds"),
        ("promela/courier_ring.pml", &["--keep-going"], "holds"),
        ("promela/lost_counts.pml", &[], "assertion"),
        ("promela/workers.pml", &["--keep-going"], "holds"),
        ("murphi/dash_abstract.m", &[], "holds"),
        ("murphi/directory.m", &["--symmetry", "exact"], "holds"),
    ] {
        let path = root().join("models").join(model).display().to_string();
        let arguments = [&[path.as_str()], options].concat();
        let alone = lasting(&arguments, "1");
        assert_eq!(alone.1["verdict"], verdict, "{arguments:?}");
        for workers in ["2", "3", "5"] {
            assert_eq!(alone, lasting(&arguments, workers), "{arguments:?} with {workers} workers");
        }
    }
}

#[test]
fn time_ends_all_workers() {
    let path = root().join("models/dve/philosophers_13.dve").display().to_string();
    let (code, report) = report(&[&path, "--time", "300ms", "--workers", "3", "--executor", "interp"]);
    assert_eq!((code, &report["plan"]["workers"]), (20, &Value::from(3)));
    assert!(report["reason"].as_str().unwrap().starts_with("time"), "{}", report["reason"]);
}

#[test]
fn one_worker_searches_depth_first_and_within_small_budgets() {
    let path = root().join("models/dve/lift.dve").display().to_string();
    for (options, workers) in [
        (&["--workers", "4", "--memory", "1G"][..], 4),
        (&["--workers", "4", "--memory", "1G", "--order", "dfs"], 1),
        (&["--workers", "4", "--memory", "16M"], 1),
    ] {
        let (code, report) = report(&[&[path.as_str()], options].concat());
        assert_eq!((code, &report["plan"]["workers"]), (0, &Value::from(workers)), "{options:?}");
    }
}
