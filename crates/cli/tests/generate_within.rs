//! Where memory is short the graph is the same: stores in trees, layers on disk, and levels, within the memory they are
//! given, measured from outside.

#[path = "common/report.rs"]
mod common;

use common::{report, root};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A model of 215,064 states and 462,388 transitions.
fn model() -> String {
    root().join("models/promela/courier_ring.pml").display().to_string()
}

/// Writes the graph; nothing if memory was too short for that.
fn generate(graph: &Path, options: &[&str]) -> Option<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["generate", &model(), "--json", "--output"])
        .arg(graph)
        .args(options)
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let code = output.status.code();
    assert_eq!(
        (code == Some(0), report["complete"] == true),
        (graph.exists(), graph.exists()),
        "{options:?}: {report}"
    );
    let reason = report["reason"].as_str().unwrap_or_default();
    assert!(code == Some(0) || code == Some(20) && reason.contains("memory"), "{options:?}: {report}");
    (code == Some(0)).then_some(report)
}

#[test]
fn graphs_are_the_same_where_memory_is_short() {
    let mut rows: Vec<&[&str]> = vec![
        &["--store", "tree"],
        &["--strategy", "layers", "--store", "tree"],
        &["--strategy", "layers:4"],
        &["--strategy", "layers:2", "--store", "tree", "--workers", "2"],
        &["--strategy", "frontier-safety-net"],
        &["--strategy", "frontier-safety-net", "--store", "tree"],
        &["--strategy", "pebble:(c2,LLNR,2)"],
        &["--strategy", "cache:RND:100000", "--redundancy-limit", "50x"],
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut graphs = Vec::new();
    // The least memory that is enough for each. The system tells the most that any child so far had, so budgets go up.
    for megabytes in (20..=40).step_by(4) {
        rows.retain(|&row| {
            let graph = folder.path().join(format!("{}.lts", graphs.len()));
            let memory = format!("{megabytes}M");
            let tight = ["--memory", &memory, "--disk", "1G", "--exact", "--workers", "1"];
            let without = if row.contains(&"--workers") { 2 } else { 0 };
            let options = [&tight[..tight.len() - without], row].concat();
            let report = generate(&graph, &options);
            let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024;
            assert!(peak <= megabytes << 20, "{options:?}: {peak} bytes");
            if report.is_some() {
                graphs.push((options.join(" "), graph));
            }
            report.is_none()
        });
    }
    assert!(rows.is_empty(), "40 MiB are enough: {rows:?}");
    let plain = folder.path().join("plain.lts");
    let report = generate(&plain, &["--store", "plain", "--memory", "1G"]).unwrap();
    let (_, checked) = self::report(&[&model(), "--keep-going", "--no-deadlock", "--merge", "off"]);
    assert_eq!([&report["states"], &report["transitions"]], [&checked["states"], &checked["transitions"]]);
    let expected = fs::read(&plain).unwrap();
    for (options, graph) in graphs {
        assert!(fs::read(&graph).unwrap() == expected, "{options}: another graph");
    }
}
