//! Checks in processes of their own, several at a time: one that dies is a result and not the end.

use crate::failure::Failure;
use crate::interrupt;
use serde_json::Value;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// The signal of Ctrl-C.
const SIGINT: i32 = 2;

/// This program, to be started again.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::internal(format!("own program: {error}")))
}

/// A check that ended without a report.
#[derive(Debug)]
pub struct NoReport {
    /// The exit code, if it started and was not killed.
    pub code: Option<i32>,
    /// The first line it had to say, or why it did not start.
    pub message: String,
}

impl fmt::Display for NoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "exit status: {code} ({})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Checks `model`, without its property process and step by step, and returns the report.
pub fn check<S: AsRef<str>>(program: &Path, model: &Path, arguments: &[S]) -> Result<Value, NoReport> {
    // Who runs many checks runs several at a time.
    let usual = ["--ignore-property", "--merge", "off", "--workers", "1"];
    let arguments: Vec<&str> = usual.into_iter().chain(arguments.iter().map(AsRef::as_ref)).collect();
    report(program, model, &arguments)
}

/// Checks `model` with these options and returns the report.
pub fn report<S: AsRef<str>>(program: &Path, model: &Path, arguments: &[S]) -> Result<Value, NoReport> {
    let mut command = Command::new(program);
    command.arg("check").arg(model).args(["--json", "--quiet"]);
    command.args(arguments.iter().map(AsRef::as_ref));
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| NoReport { code: None, message: format!("cannot be started: {error}") })?;
    let report = serde_json::from_slice::<Value>(&output.stdout);
    let interrupted =
        |report: &Value| report["reason"].as_str().is_some_and(|reason| reason.starts_with("interrupted"));
    if output.status.signal() == Some(SIGINT) || report.as_ref().is_ok_and(interrupted) {
        interrupt::stop();
    }
    report.map_err(|_| {
        let message = String::from_utf8_lossy(&output.stderr);
        let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        match output.status.code() {
            Some(code) => NoReport { code: Some(code), message: first.into() },
            None => NoReport { code: None, message: format!("{} ({first})", output.status) },
        }
    })
}

/// Does the work of every number below `count`, `jobs` at a time. Work sends what it has to say to `heard`, in
/// the order in which things happen. An interruption lets what was begun end, and begins nothing.
pub fn each<T: Send>(
    count: usize,
    jobs: u64,
    work: impl Fn(usize, &mut dyn FnMut(T)) + Sync,
    mut heard: impl FnMut(T),
) {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(count as u64) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while !interrupt::flag().load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    work(index, &mut |result| {
                        let _ = sender.send(result);
                    });
                }
            });
        }
        drop(sender);
        receiver.into_iter().for_each(&mut heard);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once() {
        for jobs in [1, 3, 50] {
            let mut heard = Vec::new();
            each(20, jobs, |index, send| (0..2).for_each(|part| send(index * 2 + part)), |result| heard.push(result));
            heard.sort();
            assert_eq!(heard, (0..40).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_gives_no_report_says_why() {
        let arguments: [&str; 0] = [];
        let error = check(Path::new("no/such/program"), Path::new("m"), &arguments).unwrap_err().to_string();
        assert!(error.starts_with("cannot be started"), "{error}");
        let error = check(Path::new("false"), Path::new("m"), &arguments).unwrap_err().to_string();
        assert!(error.contains("exit status: 1"), "{error}");
    }
}
