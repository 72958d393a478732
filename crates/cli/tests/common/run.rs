//! Running the program from tests.

use std::process::{Command, Output, Stdio};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_plimsoll");

/// Runs the program and returns what it left behind.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

/// All that it printed.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The exit code; a program killed by a signal has none.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("killed: {:?}", output.status))
}
