//! Ctrl-C ends a search, and the report says what was seen.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn resident_kilobytes(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn an_interrupted_search_reports_what_it_saw() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/dve/sliding_window_large.dve");
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["check", "--json", "--executor", "interp", "--order", "dfs"])
        .arg(model)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Only a search takes so much memory.
    while resident_kilobytes(&child) < 25_000 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(20), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["reason"].as_str().unwrap().starts_with("interrupted"), "{}", report["reason"]);
    assert!(report["states"].as_u64().unwrap() > 1000 && !report["ledger"].as_array().unwrap().is_empty());
    assert!(output.stderr.is_empty(), "no progress where there is no terminal");
}
