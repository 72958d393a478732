//! Huffman codes: exact with every row, smaller than vectors, and with a training that says what it found.

use crate::common::report::{report, root};
use serde_json::Value;

fn check(model: &str, options: &[&str]) -> (i32, Value) {
    let path = root().join("models").join(model).display().to_string();
    report(&[&[path.as_str(), "--memory", "256M", "--workers", "1"], options].concat())
}

#[test]
fn counts_are_those_of_other_stores_with_every_row_and_order() {
    for (model, size) in
        [("dve/lift.dve", "40000"), ("murphi/directory.m", "3000"), ("promela/courier_ring.pml", "2000")]
    {
        let (code, exact) = check(model, &["--store", "plain"]);
        assert_eq!(code, 0, "{model}");
        for store in ["huffman:static", "huffman:trained(bfs,300)", "huffman:trained(dfs,20)"] {
            for order in ["bfs", "dfs"] {
                let (code, coded) = check(model, &["--order", order, "--store", store]);
                assert_eq!((code, &coded["states"]), (0, &exact["states"]), "{model} {store} {order}");
                let (bytes, vector) = (coded["code_bytes"].as_f64().unwrap(), &coded["model"]["state_bytes"]);
                // What the training did not see takes more than a byte; four bytes that are all used gain nothing anyway.
                let most = 2.0 * vector.as_f64().unwrap();
                assert!(bytes > 0.0 && bytes < most, "{model} {store}: {bytes} of {vector}");
                assert!(coded["plan"]["training"]["states"].as_u64().unwrap() > 0);
            }
            // Caches that need not forget, and caches that do: with short keys, so that some codes are held beside them.
            for strategy in ["cache:LRU", "cover", "cache:SC", "cache:MFU:25%,LRU:75%"] {
                let (code, coded) = check(model, &["--strategy", strategy, "--store", store]);
                assert_eq!((code, &coded["states"]), (0, &exact["states"]), "{model} {store} {strategy}");
                let small =
                    ["--strategy", strategy, "--store", store, "--cache-size", size, "--redundancy-limit", "3x"];
                let (code, coded) = check(model, &small);
                let distinct = coded["distinct"].as_f64().unwrap() / exact["states"].as_f64().unwrap();
                assert!(matches!(code, 0 | 20), "{model} {store} {strategy}: {code}");
                assert!(code == 20 || (0.9..1.1).contains(&distinct), "{model} {store} {strategy}: {distinct}");
            }
        }
    }
}

#[test]
fn memory_is_not_exceeded_and_running_out_is_unknown() {
    let path = root().join("models/dve/sliding_window_large.dve").display().to_string();
    for options in
        [&["--order", "bfs"][..], &["--order", "dfs"], &["--order", "bfs", "--cache", "LRU"], &["--cache", "SC"]]
    {
        let fixed = [&path, "--memory", "32M", "--store", "huffman:trained(bfs,2000)", "--max-states", "1000000"];
        let (code, report) = report(&[&fixed[..], options].concat());
        assert_eq!(code, 20, "{options:?}: {report}");
        assert!(report["peak_rss"].as_u64().unwrap() <= 32 << 20, "{options:?}: {}", report["peak_rss"]);
    }
}

#[test]
fn violations_are_found_and_replayed() {
    for store in ["huffman:static", "huffman"] {
        let (code, report) = check("dve/philosophers_5.dve", &["--store", store]);
        assert_eq!(code, 10);
        assert!(!report["trace"]["steps"].as_array().unwrap().is_empty());
    }
}
