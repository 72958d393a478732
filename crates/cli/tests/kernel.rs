//! Limits that the kernel sets, at the budget that was asked for: no check is killed, none aborts, each has a verdict.
//!
//! Memory is limited by a cgroup (version 2) where one can be made, else by the address space, with room for what is mapped
//! and not used. Files are limited by their size.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Addresses beside the memory: code, stacks of threads, regions that grow.
const HEADROOM_KIB: u64 = 512 << 10;

/// A cgroup with a limit on memory; it vanishes at the end.
struct Group(PathBuf);

impl Group {
    /// None if the system does not let us, which is said.
    fn new(name: &str, bytes: u64) -> Option<Group> {
        let group = Group::made(name, bytes);
        if group.is_none() {
            eprintln!(
                "no cgroup (version 2) with a limit on memory can be made here: the address space is limited instead"
            );
        }
        group
    }

    fn made(name: &str, bytes: u64) -> Option<Group> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_string();
        let group = Path::new("/sys/fs/cgroup").join(own).join(format!("plimsoll-{name}-{}", std::process::id()));
        if !Path::new("/sys/fs/cgroup/cgroup.controllers").exists() || std::fs::create_dir(&group).is_err() {
            return None;
        }
        let group = Group(group);
        std::fs::write(group.0.join("memory.max"), bytes.to_string()).ok()?;
        // Where swapping is not counted there is no such file.
        let _ = std::fs::write(group.0.join("memory.swap.max"), "0");
        // Who may make a group may yet not be allowed to move into it.
        let moved = Command::new("sh").args(["-c", &group.enter()]).stderr(Stdio::null()).status();
        moved.is_ok_and(|status| status.success()).then_some(group)
    }

    /// What a shell says to move into it.
    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs || exit 1;", self.0.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Runs a check behind `before`; the exit code and the report.
fn check(before: &str, model: &str, arguments: &[&str]) -> (i32, Value) {
    let script = format!("{before} exec \"$0\" check --json \"$@\"");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(model);
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_plimsoll")]).arg(path).args(arguments);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().unwrap_or_else(|| panic!("{model} {arguments:?}: {:?}: {error}", output.status));
    let report = serde_json::from_slice(&output.stdout);
    (code, report.unwrap_or_else(|_| panic!("{model} {arguments:?}: exit {code}: {error}")))
}

/// The same with the memory limited by the kernel; the budget is what the kernel allows.
fn within(megabytes: u64, model: &str, arguments: &[&str]) -> (i32, Value) {
    let memory = format!("{megabytes}M");
    // What the kernel has of its own for a process is charged to the group as well.
    let group = Group::new("memory", (megabytes + 4) << 20);
    let before = match &group {
        Some(group) => group.enter(),
        None => format!("ulimit -v {};", (megabytes << 10) + HEADROOM_KIB),
    };
    let checked = check(&before, model, &[&["--memory", &memory], arguments].concat());
    let peak = checked.1["peak_rss"].as_u64().unwrap();
    assert!(peak <= megabytes << 20, "{model} {arguments:?}: {peak} bytes of {megabytes} MiB");
    checked
}

/// Every preset, as `plimsoll strategies` names them.
fn presets() -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll")).arg("strategies").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let examples = text.split("for example").nth(1).unwrap().lines().skip(1).take_while(|line| line.starts_with("  "));
    examples.map(|line| line.split_whitespace().next().unwrap().to_string()).collect()
}

/// A model, whether it holds, and options that every run has.
const MODELS: [(&str, &str, &[&str]); 3] = [
    ("dve/sliding_window_large.dve", "holds", &["--no-deadlock"]),
    ("promela/election_ring_8.pml", "holds", &[]),
    ("murphi/dash.m", "holds", &[]),
];

#[test]
fn every_preset_has_a_verdict_within_the_memory_that_the_kernel_allows() {
    let presets = presets();
    assert!(presets.len() > 20 && presets.contains(&"auto".to_string()), "{presets:?}");
    let (mut unknown, mut decided) = (0, 0);
    for (model, expected, fixed) in MODELS {
        for preset in &presets {
            let disk: &[&str] = if preset.starts_with("layers") { &["--disk", "1G"] } else { &[] };
            // A time limit keeps the test short.
            let limits = ["--strategy", preset, "--max-states", "150000", "--time", "20s"];
            let (code, report) = within(24, model, &[&limits[..], disk, fixed].concat());
            match code {
                20 => unknown += 1,
                _ => {
                    assert_eq!(report["verdict"], expected, "{model} {preset}: {}", report["reason"]);
                    decided += 1;
                }
            }
            assert_eq!(code == 20, report["shortage"].is_object(), "{model} {preset}");
        }
    }
    assert!(unknown > 20 && decided > 10, "{unknown} {decided}");
}

#[test]
fn a_search_that_climbs_stays_within_the_memory_that_the_kernel_allows() {
    let (code, report) = within(24, "dve/sliding_window_large.dve", &["--no-deadlock", "--time", "60s"]);
    let climbs = report["climbs"].as_array().unwrap();
    assert_eq!(climbs[0]["to"], "denser tables", "{report}");
    assert_eq!(climbs[1]["to"], "frozen tables and levels", "{report}");
    assert!(climbs[0]["reason"].as_str().unwrap().contains("MiB were left after"), "{}", climbs[0]["reason"]);
    assert!(matches!(code, 0 | 20), "{report}");
    assert!(report["distinct"].as_u64() <= report["states"].as_u64());
}

#[test]
fn files_that_may_not_grow_are_a_verdict() {
    for (limit, disk) in [("ulimit -f 1000;", "1G"), ("", "1M"), ("ulimit -f 40000;", "2M")] {
        let arguments = ["--memory", "20M", "--disk", disk, "--no-deadlock", "--max-states", "3000000"];
        let (code, report) = check(limit, "dve/sliding_window_large.dve", &arguments);
        assert_eq!((code, report["shortage"]["limit"].as_str()), (20, Some("disk")), "{limit} {disk}: {report}");
        assert!(report["shortage"]["advice"].as_str().unwrap().starts_with("--disk"), "{report}");
    }
}

#[test]
fn the_time_limit_is_kept_within_a_second() {
    for arguments in [&["--order", "bfs"][..], &["--order", "dfs"], &["--strategy", "swarm"], &["--disk", "1G"]] {
        // A loaded machine may be late once.
        let late = (0..4).all(|_| {
            let start = Instant::now();
            let fixed = ["--time", "1s", "--memory", "200M", "--executor", "interp"];
            let (code, report) = check("", "dve/sliding_window_large.dve", &[&fixed, arguments].concat());
            assert_eq!((code, report["shortage"]["limit"].as_str()), (20, Some("time")), "{arguments:?}: {report}");
            start.elapsed() > Duration::from_secs(2)
        });
        assert!(!late, "{arguments:?}");
    }
}
