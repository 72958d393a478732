//! Checks with reports as JSON.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// Runs `check --json` with more arguments and returns the exit code and the report.
pub fn report(arguments: &[&str]) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    let output = command.args(["check", "--json"]).args(arguments).stdin(Stdio::null()).output().expect("it starts");
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap_or_else(|| panic!("killed: {:?}", output.status)), report)
}
