//! The memory budget is for the whole process, and is checked from outside it.
//!
//! Everything is in one test: the system reports the peak over all children, so budgets go up. Checks with the same budget run
//! side by side.

#[path = "common/report.rs"]
mod common;

use common::{report, root};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// What a search may have of files, most of the time, where memory is short.
const CODE_BYTES: u64 = if cfg!(debug_assertions) { 9 << 20 } else { 21 << 18 };

/// The most memory any child so far had.
fn peak_of_children() -> u64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024
}

/// Runs checks that have the same budget on all processors; how many said yes.
fn side_by_side<T: Sync>(checks: &[T], run: impl Fn(&T) -> bool + Sync) -> usize {
    let next = AtomicUsize::new(0);
    let some = || {
        let mine = std::iter::from_fn(|| checks.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.filter(|check| run(check)).count()
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(some)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn no_search_takes_more_memory_than_it_was_given() {
    let models = ["sliding_window_large", "philosophers_13", "peterson_filter_4", "bakery_4"];
    let options = [&["--order", "bfs"][..], &["--order", "dfs"], &["--store", "plain"], &["--store", "tree"]];
    let runs: Vec<_> = models.iter().flat_map(|model| options.map(|options| (model, options))).collect();
    let mut unfinished = 0;
    for megabytes in [16u64, 32, 48] {
        unfinished += side_by_side(&runs, |(model, options)| within(model, megabytes, options));
    }
    unfinished += within("sliding_window_large", 56, &["--executor", "interp", "--order", "dfs"]) as usize;
    // What waits goes to disk, so the memory that is left goes further.
    within("sliding_window_large", 56, &["--disk", "1G"]);
    assert!(unfinished > 15, "the models are too small for this test: {unfinished}");
    let options = [&[][..], &["--disk", "1G"], &["--disk", "1G", "--strategy", "frontier-safety-net", "--exact"]];
    side_by_side(&options, |options| generated_within(60, options));
    side_by_side(&one_step(), |(name, text, code, reason)| within_64(name, text, *code, reason));
}

/// A search that goes to disk uses one part of the program after the other. What it has of files is what it uses now, not all that was
/// used since it began; so it stays within what the plan allows for, and native code is made in little memory too.
#[test]
fn code_that_was_used_once_goes_again() {
    for executor in ["interp", "jit"] {
        let child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["check", "--json", "--no-deadlock", "--memory", "16M", "--disk", "1G", "--workers", "1"])
            .args(["--executor", executor, "--max-states", "1000000"])
            .arg(root().join("models/dve/sliding_window_large.dve"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let path = format!("/proc/{}/statm", child.id());
        let output = thread::spawn(move || child.wait_with_output().unwrap());
        let mut of_files = Vec::new();
        while !output.is_finished() {
            // Who has ended has no memory, and then no entry.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let pages = text.split(' ').nth(2).and_then(|pages| pages.parse::<u64>().ok());
            of_files.extend(pages.filter(|&pages| pages > 0).map(|pages| pages * 4096));
            thread::sleep(Duration::from_millis(2));
        }
        let report: Value = serde_json::from_slice(&output.join().unwrap().stdout).unwrap();
        assert_eq!((report["executor"].as_str(), report["exit_code"].as_u64()), (Some(executor), Some(20)), "{report}");
        assert!(report["layers"]["runs"].as_u64() > Some(0), "it went to disk: {report}");
        assert!(report["plan"]["process_bytes"].as_u64() > Some(CODE_BYTES), "{report}");
        // Who watches may be late now and then.
        of_files.sort_unstable();
        let most = of_files[of_files.len() * 9 / 10];
        assert!(of_files.len() > 50 && most <= CODE_BYTES, "{executor}: {most} bytes of {} looks", of_files.len());
    }
}

/// Writes a graph, or gives up; returns whether it was written.
fn generated_within(megabytes: u64, options: &[&str]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.aut");
    let model = root().join("models/dve/sliding_window_large.dve");
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["generate".as_ref(), model.as_os_str(), "--output".as_ref(), graph.as_os_str()])
        .args(["--json", "--memory", &format!("{megabytes}M"), "--max-states", "400000"])
        .args(options)
        .output()
        .unwrap();
    let peak = peak_of_children();
    assert!(peak <= megabytes << 20, "{options:?}: {peak} bytes of {megabytes} MiB");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let code = output.status.code().unwrap();
    assert!(code == 20 || code == 0 && graph.exists(), "{options:?}: {report}");
    assert_eq!((report["exit_code"].as_i64(), report["complete"] == true), (Some(code.into()), code == 0), "{report}");
    assert!(report["states"].as_u64().unwrap() > 100_000, "{options:?}: {report}");
    code == 0
}

/// Models whose text, start or single steps need much: name, text, exit code, beginning of the reason.
fn one_step() -> Vec<(String, String, i32, &'static str)> {
    let doubling = |level: &dyn Fn(usize) -> String| (0..30).map(level).collect::<String>();
    let inlines = doubling(&|k| format!("inline f{k}() {{ f{n}(); f{n}() }}\n", n = k + 1));
    let macros = doubling(&|k| format!("#define A{k} A{n} A{n}\n", n = k + 1));
    let edges: String = (0..500_000).map(|edge| format!("(0, \"label {edge}\", 0)\n")).collect();
    let rules: String =
        (0..50_000).map(|k| format!("rule x = {} ==> begin x := {}; end;\n", k % 100, k % 97)).collect();
    let starts = "type R: 0..5000; var i: R; j: R; ruleset a: R; b: R do startstate begin i := a; j := b; end; end;
        rule i < 1 ==> begin i := 1; end;";
    let branching = |limit| {
        format!(
            "int x; init {{ atomic {{ do :: x < {limit} -> x++ :: x < {limit} -> x = x + 2 :: else -> break od }} }}"
        )
    };
    let memory = "memory: the budget is used up";
    [
        ("inlines.pml", format!("{inlines}inline f30() {{ skip }} init {{ f0() }}"), 20, memory),
        ("macros.pml", format!("{macros}#define A30 skip;\ninit {{ A0 }}"), 20, memory),
        ("labels.aut", format!("des (0, 500000, 1)\n{edges}"), 20, memory),
        ("rules.m", format!("var x: 0..99; startstate x := 0; end;\n{rules}"), 20, memory),
        ("starts.m", starts.into(), 20, memory),
        ("branching.pml", branching(36), 0, "every"),
        ("branching-wide.pml", branching(100_000_000), 20, memory),
    ]
    .map(|(name, text, code, reason)| (name.to_string(), text, code, reason))
    .to_vec()
}

/// Checks a model with 64 MiB; returns whether that was enough.
fn within_64(name: &str, text: &str, expected: i32, reason: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let (code, report) = report(&[path.to_str().unwrap(), "--memory", "64M"]);
    let peak = peak_of_children();
    assert!(peak <= 64 << 20, "{name}: {peak} bytes of 64 MiB");
    assert_eq!(code, expected, "{name}: {report}");
    assert!(report["reason"].as_str().unwrap().starts_with(reason), "{name}: {}", report["reason"]);
    code == 0
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
