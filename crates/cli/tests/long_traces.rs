//! A trace is held by nobody: whatever form it is printed in, the budget for memory is kept, measured from outside.
//!
//! There is one test only, for the system reports the peak over all children.

#[path = "common/run.rs"]
mod common;

use common::{PROGRAM, code, run, said};
use nix::sys::resource::{UsageWho, getrusage};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// A path of 196,608 steps to a deadlock.
const DEEP: &str = "byte a; byte b; byte c;
process P { state s, bad; init s; trans
 s -> s { guard a < 255; effect a = a + 1; },
 s -> s { guard a == 255 && b < 255; effect a = 0, b = b + 1; },
 s -> s { guard a == 255 && b == 255 && c < 2; effect a = 0, b = 0, c = c + 1; },
 s -> bad { guard a == 255 && b == 255 && c == 2; }; }
system async;
";

#[test]
fn a_long_trace_stays_within_the_budget_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("deep.dve");
    std::fs::write(&model, DEEP).unwrap();
    let forms: [&[&str]; 6] =
        [&[], &["--full-trace"], &["--json"], &["--trace", "t.json"], &["--msc", "t.svg"], &["--order", "dfs"]];
    for form in forms {
        // Not kept here: a child begins as large as its parent.
        let printed = folder.path().join("printed");
        let status = Command::new(PROGRAM)
            .args(["check", model.to_str().unwrap(), "--memory", "24M"])
            .args(form)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(File::create(&printed).unwrap())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(10), "{form:?}");
        let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024;
        assert!(peak <= 24 << 20, "{form:?}: {peak} bytes");
        let lines = BufReader::new(File::open(&printed).unwrap()).lines().count();
        if form.is_empty() {
            let text = std::fs::read_to_string(&printed).unwrap();
            assert!(lines < 100 && text.contains("left out"), "{text}");
            assert!(text.contains("a state without a way on, after 196,608 steps"), "{text}");
        }
        assert!(!form.contains(&"--full-trace") || lines > 196_608, "{lines} lines");
    }
    assert!(std::fs::metadata(folder.path().join("t.svg")).unwrap().len() < 100_000);
    let replayed = run(&["replay", model.to_str().unwrap(), folder.path().join("t.json").to_str().unwrap()]);
    assert!(code(&replayed) == 0 && said(&replayed).contains("a deadlock"), "{}", said(&replayed));
}
