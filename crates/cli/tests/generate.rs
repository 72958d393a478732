//! Generated graphs: the same whatever the store, the workers and the memory, and whole or not there.

use crate::common::report::{report, root};
use crate::common::run::said;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn generate(model: &Path, graph: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["generate".as_ref(), model.as_os_str(), "--output".as_ref(), graph.as_os_str()])
        .args(options)
        .output()
        .unwrap()
}

fn generated(model: &Path, graph: &Path, options: &[&str]) -> String {
    let output = generate(model, graph, options);
    assert!(output.status.success(), "{options:?}: {}", said(&output));
    said(&output)
}

fn equivalent(one: &Path, other: &Path) -> bool {
    let compared = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["lts".as_ref(), "compare".as_ref(), one.as_os_str(), other.as_os_str()])
        .output()
        .unwrap();
    compared.status.success()
}

fn model(name: &str) -> PathBuf {
    root().join("models").join(name)
}

#[test]
fn graphs_have_the_counts_of_their_models() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["dve/lift.dve", "promela/workers.pml", "murphi/election.m"] {
        for graph in ["graph.aut", "graph.lts"].map(|graph| folder.path().join(graph)) {
            let source = model(name);
            generated(&source, &graph, &[]);
            let of = |path: &Path| {
                let (_, report) = report(&[path.to_str().unwrap(), "--keep-going", "--no-deadlock", "--merge", "off"]);
                [report["states"].clone(), report["transitions"].clone(), report["levels"].clone()]
            };
            assert_eq!(of(&graph), of(&source), "{name}");
        }
    }
}

#[test]
fn a_graph_is_the_same_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    let source = model("dve/lift.dve");
    let plain = folder.path().join("plain.lts");
    generated(&source, &plain, &["--store", "plain", "--workers", "1"]);
    let expected = fs::read(&plain).unwrap();
    let same = |options: &[&str]| {
        let graph = folder.path().join("graph.lts");
        let said = generated(&source, &graph, options);
        assert!(fs::read(&graph).unwrap() == expected, "{options:?}: another file\n{said}");
        said
    };
    for workers in ["1", "2", "3"] {
        same(&["--workers", workers]);
        same(&["--workers", workers, "--store", "tree"]);
        same(&["--workers", workers, "--store", "plain"]);
        same(&["--workers", workers, "--store", "tree", "--disk", "1G"]);
    }
    // With a cache many states are found again, and numbers are joined, in memory and on disk.
    for disk in [&["--disk", "1G"][..], &[]] {
        for cache in ["cache:LRU:50000", "cover:LRU:40000", "cache:KEEP:40000,RND:10000"] {
            let options = [&["--strategy", cache, "--redundancy-limit", "20x", "--exact"][..], disk].concat();
            same(&options);
        }
    }
    let repeated = folder.path().join("repeated.lts");
    let options = ["--strategy", "cache:LRU:50000", "--redundancy-limit", "20x", "--disk", "1G"];
    let said = generated(&source, &repeated, &options);
    assert!(said.contains("more than once") && fs::read(&repeated).unwrap() != expected, "{said}");
    assert!(equivalent(&repeated, &plain));
    // The other format holds the same.
    let text = folder.path().join("graph.aut");
    generated(&source, &text, &["--disk", "1G"]);
    assert!(equivalent(&text, &plain));
    assert!(fs::metadata(&text).unwrap().len() > 5 * expected.len() as u64);
}

/// Depth first states have other numbers; a cache visits some again.
#[test]
fn a_depth_first_graph_is_equivalent() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, graph] = ["plain.lts", "graph.lts"].map(|name| folder.path().join(name));
    let source = model("dve/lift.dve");
    let all = generated(&source, &plain, &[]).replace("plain", "graph");
    let same = |options: &[&str], counts: bool| {
        let order: &[&str] = if options.contains(&"--order") { &[] } else { &["--order", "dfs"] };
        let said = generated(&source, &graph, &[order, options].concat());
        assert_eq!(said.starts_with(&all), counts, "{options:?}: {said}");
        assert!(equivalent(&graph, &plain), "{options:?}");
        said
    };
    same(&[], true);
    same(&["--store", "tree"], true);
    same(&["--store", "plain", "--disk", "1G"], true);
    same(&["--order", "dfs-reverse"], true);
    let forgets = ["--cache", "<MFU,LRU>", "--cache-size", "30000"];
    assert!(same(&forgets, false).contains("more than once"));
    assert!(same(&[&forgets[..], &["--exact"]].concat(), true).contains("merged"));
    same(&["--strategy", "cache:LRU:40000", "--exact", "--disk", "1G"], true);
    let sleeps = generate(&source, &graph, &["--strategy", "sleep", "--order", "dfs"]);
    assert!(sleeps.status.code() == Some(2) && said(&sleeps).contains("sleep sets"), "{}", said(&sleeps));
}

#[test]
fn where_memory_is_small_numbers_wait_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("many.pml");
    fs::write(&source, "byte x; active [3] proctype P() { byte k; do :: k < 24 -> k++; x = (x + k) % 4 od }").unwrap();
    let [plenty, scarce] = ["plenty.lts", "scarce.lts"].map(|name| folder.path().join(name));
    generated(&source, &plenty, &["--memory", "1G"]);
    // How much the program takes for itself differs.
    let sizes = (16..64).step_by(4).map(|size| format!("{size}M"));
    let fits = |size: &String| generate(&source, &scarce, &["--memory", size, "--disk", "1G"]).status.success();
    let least = sizes.into_iter().find(fits).expect("64 MiB are enough");
    assert!(fs::read(&plenty).unwrap() == fs::read(&scarce).unwrap());
    fs::remove_file(&scarce).unwrap();
    let failed = generate(&source, &scarce, &["--memory", &least]);
    assert!(failed.status.code() == Some(20) && said(&failed).contains("memory"), "{least}: {}", said(&failed));
    assert!(!scarce.exists());
}

#[test]
fn a_report_says_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.lts");
    let said = |options: &[&str]| -> Value {
        let output = generate(&model("dve/lift.dve"), &graph, &[&["--json"], options].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["exit_code"].as_i64(), output.status.code().map(i64::from));
        report
    };
    let full = said(&[]);
    assert!(full["complete"] == true && full["repeated"] == 0 && full["file"].as_str().unwrap().ends_with("graph.lts"));
    let forgets = ["--strategy", "cache:LRU:50000", "--redundancy-limit", "20x"];
    let repeated = said(&forgets);
    let [states, more] = [&full, &repeated].map(|report| report["states"].as_u64().unwrap());
    assert_eq!(states + repeated["repeated"].as_u64().unwrap(), more);
    assert_eq!(said(&[&forgets[..], &["--exact"]].concat())["states"], full["states"]);
    let cut = said(&["--max-states", "10"]);
    assert!(
        cut["complete"] == false && cut["file"].is_null() && cut["reason"].as_str().unwrap().contains("--max-states")
    );
}

/// Edges that have to wait for numbers, or for their format, are on disk meanwhile, and count.
#[test]
fn edges_that_are_written_again_count_as_disk() {
    let folder = tempfile::tempdir().unwrap();
    let [text, compact] = ["graph.aut", "graph.lts"].map(|name| folder.path().join(name));
    let small = ["--disk", "128K", "--memory", "200M"];
    let failed = generate(&model("dve/lift.dve"), &text, &small);
    assert!(failed.status.code() == Some(20) && said(&failed).contains("edges"), "{}", said(&failed));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    generated(&model("dve/lift.dve"), &compact, &small);
}

/// Another program agrees that what a strategy that forgets has written is equivalent, and that what it merges is the same.
#[test]
fn ltsmin_agrees() {
    if Command::new("ltsmin-compare").arg("--version").output().is_err() {
        println!("ltsmin-compare is not installed: nothing was compared");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [plain, repeated, smallest] =
        ["plain.aut", "repeated.aut", "smallest.aut"].map(|name| folder.path().join(name));
    let source = model("promela/disk_bus.pml");
    generated(&source, &plain, &[]);
    generated(&source, &repeated, &["--strategy", "snapshots:(c2,LLNR,1)(2,LFU,2)"]);
    let minimised = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["lts".as_ref(), "minimise".as_ref(), plain.as_os_str(), "--output".as_ref(), smallest.as_os_str()])
        .status();
    assert!(minimised.unwrap().success());
    for other in [&repeated, &smallest] {
        let output = Command::new("ltsmin-compare").arg("--strong").args([&plain, other]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
}

#[test]
fn labels_can_be_hidden_and_errors_end_without_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.aut");
    generated(&model("dve/lift.dve"), &graph, &["--hide", "."]);
    let text = fs::read_to_string(&graph).unwrap();
    assert!(text.lines().skip(1).all(|line| line.contains(", \"i\", ")), "{text}");
    fs::remove_file(&graph).unwrap();
    let cases: [(&[&str], i32); 4] = [
        (&["--order", "dfs", "--max-depth", "2"], 20),
        (&["--strategy", "sleep"], 2),
        (&["--max-states", "10"], 20),
        (&["--max-depth", "2"], 20),
    ];
    for (options, code) in cases {
        let output = generate(&model("dve/lift.dve"), &graph, options);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {}", said(&output));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{options:?}");
    }
    let full = generate(&model("dve/lift.dve"), Path::new("/dev/full"), &[]);
    assert!(full.status.code() == Some(2) && said(&full).contains("cannot be written"), "{}", said(&full));
}
