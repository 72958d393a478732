//! Every model in `models/` gives what its head says, in every configuration. The format of the heads is
//! described in `models/README.md`.

use crate::common::report::{report, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Models with more states are run in few configurations only.
const LARGE: u64 = 100_000;

/// One `// expect:` line.
type Row = BTreeMap<String, String>;

const KEYS: [&str; 9] =
    ["options", "find", "invariant", "states", "transitions", "levels", "deadlocks", "verdict", "depth"];

/// Every order with every store, every order and every store with every executor.
const CONFIGURATIONS: [(&str, &str, &str); 6] = [
    ("bfs", "auto", "jit"),
    ("bfs", "tree", "interp"),
    ("bfs", "plain", "jit"),
    ("dfs", "auto", "interp"),
    ("dfs", "tree", "jit"),
    ("dfs", "plain", "interp"),
];

#[test]
fn small_models_agree_in_every_configuration() {
    let models: Vec<_> = models().into_iter().filter(|(_, rows)| states(rows) <= LARGE).collect();
    assert!(models.len() > 15, "{} models", models.len());
    for (path, rows) in &models {
        for (order, store, executor) in CONFIGURATIONS {
            check(path, rows, &["--order", order, "--store", store, "--executor", executor]);
        }
    }
}

#[test]
fn large_models_agree_breadth_first() {
    large(&["--order", "bfs", "--store", "auto", "--executor", "jit"]);
}

#[test]
fn large_models_agree_depth_first() {
    large(&["--order", "dfs", "--store", "plain", "--executor", "jit"]);
}

#[test]
fn merged_steps_keep_verdicts_and_add_no_states() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json").display().to_string();
    let (mut fewer, mut replayed) = (0, 0);
    for (path, rows) in models().iter().filter(|(_, rows)| states(rows) <= LARGE) {
        let name = path.display().to_string();
        for row in rows {
            let arguments = [&[name.as_str(), "--merge", "on", "--trace", &trace], &run_of(row)[..]].concat();
            let (_, report) = report(&arguments);
            if let Some(expected) = row.get("states").and_then(|states| states.parse::<u64>().ok()) {
                let states = report["states"].as_u64().unwrap();
                assert!(states <= expected, "{arguments:?}");
                fewer += (states < expected) as u32;
                let deadlocks = |value: &str| value != "0";
                assert_eq!(deadlocks(&report["deadlocks"].to_string()), deadlocks(&row["deadlocks"]), "{arguments:?}");
                continue;
            }
            let (wanted, found) = (row["verdict"].as_str(), report["verdict"].as_str().unwrap());
            assert!(found == wanted || (found, wanted) == ("assertion", "invariant"), "{arguments:?}: {found}");
            if wanted != "holds" {
                let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"));
                let output = command.args(["replay", &name, &trace]).args(options_of(row)).output().unwrap();
                assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
                replayed += 1;
            }
        }
    }
    assert!(fewer > 8 && replayed > 5, "{fewer} models have fewer states, {replayed} traces");
}

fn large(options: &[&str]) {
    let models: Vec<_> = models().into_iter().filter(|(_, rows)| states(rows) > LARGE).collect();
    assert!(!models.is_empty());
    models.iter().for_each(|(path, rows)| check(path, rows, options));
}

fn states(rows: &[Row]) -> u64 {
    rows.iter().filter_map(|row| row.get("states")?.parse().ok()).max().expect("a row of counts")
}

/// All models with their expectations. Twins for other checkers have a row in a comment of another kind and are
/// passed over: they are the same as the models they are twins of.
fn models() -> Vec<(PathBuf, Vec<Row>)> {
    let mut models = Vec::new();
    for (folder, mark) in [("dve", "// expect:"), ("promela", "// expect:"), ("murphi", "-- expect:")] {
        let entries = std::fs::read_dir(root().join("models").join(folder)).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        models.extend(paths.into_iter().map(|path| (path.clone(), rows(&path, mark))));
    }
    models.retain(|(path, rows)| {
        let has = |key: &str| rows.iter().any(|row| row.contains_key(key));
        let twin = rows.is_empty() && path.extension().is_some_and(|extension| extension == "pml");
        assert!(twin || has("states") && has("verdict"), "{}: expectations are missing", path.display());
        !twin
    });
    models
}

fn rows(path: &Path, mark: &str) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter_map(|line| line.strip_prefix(mark)).map(|line| row(path, line)).collect()
}

/// Splits `key=value key="va lue"`.
fn row(path: &Path, line: &str) -> Row {
    let mut row = Row::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').unwrap_or_else(|| panic!("{}: {line}", path.display()));
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or_else(|| panic!("{}: {line}", path.display())),
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        assert!(KEYS.contains(&key), "{}: unknown key `{key}`", path.display());
        assert!(row.insert(key.into(), value.into()).is_none(), "{}: `{key}` twice", path.display());
        rest = after.trim_start();
    }
    row
}

fn check(path: &Path, rows: &[Row], configuration: &[&str]) {
    for row in rows {
        let name = path.display().to_string();
        let mut arguments = vec![name.as_str(), "--merge", "off"];
        arguments.extend(configuration);
        arguments.extend(run_of(row));
        let (code, report) = report(&arguments);
        if row.contains_key("states") {
            compare_counts(row, &report, &arguments);
        } else {
            compare_verdict(row, code, &report, &arguments);
        }
    }
}

fn options_of(row: &Row) -> impl Iterator<Item = &str> {
    row.get("options").into_iter().flat_map(|options| options.split_whitespace())
}

/// The arguments of the run that a row speaks about.
fn run_of(row: &Row) -> Vec<&str> {
    let mut arguments: Vec<&str> = options_of(row).collect();
    for (key, option) in [("find", "--find"), ("invariant", "--invariant")] {
        arguments.extend(row.get(key).into_iter().flat_map(|expression| [option, expression]));
    }
    arguments.extend(row.contains_key("states").then_some("--keep-going"));
    arguments
}

fn compare_counts(row: &Row, report: &Value, arguments: &[&str]) {
    assert_eq!(report["complete"], Value::Bool(true), "{arguments:?}");
    let breadth_first = arguments.contains(&"bfs");
    for key in
        ["states", "transitions", "levels", "deadlocks"].into_iter().filter(|key| *key != "levels" || breadth_first)
    {
        assert_eq!(report[key].to_string(), row[key], "{key} of {arguments:?}");
    }
}

fn compare_verdict(row: &Row, code: i32, report: &Value, arguments: &[&str]) {
    let wanted = row["verdict"].as_str();
    let depth_first = arguments.contains(&"dfs");
    // A failed assertion is an invariant to the heads, whatever the language makes of it.
    let found = report["verdict"].as_str().unwrap();
    let verdict = if found == "assertion" && wanted == "invariant" { wanted } else { found };
    let expected_code = match found {
        "holds" => 0,
        "deadlock" => 10,
        "error" | "assertion" => 11,
        "invariant" | "reached" => 12,
        _ => -1,
    };
    assert_eq!(code, expected_code, "{arguments:?}");
    if depth_first && wanted != "holds" {
        // Which violation comes first depends on the order, where a model has several.
        assert_ne!(verdict, "holds", "{arguments:?}");
        return;
    }
    assert_eq!(verdict, wanted, "{arguments:?}");
    match row.get("depth") {
        Some(depth) => {
            let steps = report["trace"]["positions"].as_array().unwrap().len() - 1;
            assert_eq!(steps.to_string(), *depth, "length of the trace of {arguments:?}");
        }
        None => assert!(report["trace"].is_null(), "{arguments:?}"),
    }
}
