//! `plimsoll sweep` on a folder of small models: tables, going on, and what can go wrong.

use crate::common::run::{PROGRAM, code, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A counter that goes up to a limit in two processes.
fn model(limit: u32) -> String {
    let process = |name: &str| {
        format!(
            "process {name} {{ int n = 0; state a; init a; trans a -> a {{ guard n < {limit}; effect n = n + 1; }}; }}\n"
        )
    };
    format!("{}{}system async;\n", process("P"), process("Q"))
}

struct Folder(tempfile::TempDir);

impl Folder {
    /// Two models.
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("models/grid.dve", &model(20));
        folder.write("models/square.dve", &model(9));
        folder.write("models/notes.txt", "no model");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn sweep(&self, more: &[&str]) -> Output {
        let (models, out) = (self.0.path().display().to_string(), self.path("out").display().to_string());
        run(&[&["sweep", &models, "--out", &out, "--jobs", "2", "--memory", "100M"], more].concat())
    }

    /// Rows of a table, without its two lines of head.
    fn rows(&self, table: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path("out").join(table)).unwrap();
        text.lines().skip(2).map(String::from).collect()
    }
}

const SHORT: [&str; 6] = ["--strategy", "cache:SC", "--strategy", "cover:LRU", "--sizes", "20,100"];

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).to_string()
}

#[test]
fn a_folder_is_swept_and_goes_on_where_it_was_cut() {
    let folder = Folder::new();
    let output = folder.sweep(&SHORT);
    assert_eq!(code(&output), 0, "{}", message(&output));
    let (models, cells) = (folder.rows("models.csv"), folder.rows("cells.csv"));
    assert!(models.iter().any(|row| row.starts_with("grid.dve,") && row.contains(",ok,441,840,41,")), "{models:?}");
    // Two models, SC in two orders and cover in one, two sizes; and for each model one more that is compressed, and one of each
    // order with packed keys.
    let plain = cells.iter().filter(|row| row.contains(",plain,")).count();
    assert_eq!((models.len(), plain, cells.len()), (2, 12, 18), "{cells:?}");
    assert!(
        cells.iter().any(|row| row.starts_with("square.dve,dfs,cache:SC,plain,100,complete,100,180,")),
        "{cells:?}"
    );
    let summary = fs::read_to_string(folder.path("out/summary.md")).unwrap();
    assert!(summary.starts_with("2 models, 541 states") && summary.contains("| **best** |"), "{summary}");
    for plot in ["tradeoff", "success", "best", "degree", "height", "memory"] {
        assert!(fs::read_to_string(folder.path(&format!("out/{plot}.svg"))).unwrap().ends_with("</svg>\n"));
    }
    // Half a line is what a killed sweep leaves.
    let table = folder.path("out/cells.csv");
    let text = fs::read_to_string(&table).unwrap();
    let cut = text.len() - cells[17].len() / 2 - cells[16].len();
    fs::write(&table, &text[..cut]).unwrap();
    let output = folder.sweep(&SHORT);
    assert_eq!(code(&output), 0, "{}", message(&output));
    let sorted = |mut rows: Vec<String>| {
        rows.iter_mut().for_each(|row| *row = row.split(',').take(10).collect::<Vec<_>>().join(","));
        rows.sort();
        rows
    };
    assert_eq!(sorted(folder.rows("cells.csv")), sorted(cells));
    let again = folder.sweep(&[&SHORT[..], &["--orders", "dfs", "--sizes", "20,60,100"]].concat()[2..]);
    assert_eq!(code(&again), 2, "--sizes twice");
    let printed = |output: &Output| String::from_utf8_lossy(&output.stdout).matches("visits per state ").count();
    assert_eq!(printed(&folder.sweep(&SHORT)), 0, "nothing is left to do");
    let wider = ["--strategy", "cache:SC", "--orders", "dfs", "--sizes", "20,60"];
    assert_eq!(printed(&folder.sweep(&wider)), 2, "only what is new is run");
}

#[test]
fn settings_and_texts_must_stay_the_same() {
    let folder = Folder::new();
    let short = ["--strategy", "sleep+cache:LRU", "--sizes", "50", "--quiet"];
    assert_eq!(code(&folder.sweep(&short)), 0);
    let other = folder.sweep(&[&short[..], &["--limit", "3x"]].concat());
    assert_eq!(code(&other), 2);
    assert!(message(&other).contains("limit 600 %") && message(&other).contains("limit 300 %"), "{}", message(&other));
    let other = folder.sweep(&[&short[..], &["--max-states", "5"]].concat());
    assert!(code(&other) == 2 && message(&other).contains("1 to 5 states"), "{}", message(&other));
    folder.write("models/grid.dve", &model(21));
    let other = folder.sweep(&short);
    assert!(code(&other) == 2 && message(&other).contains("has changed"), "{}", message(&other));
}

#[test]
fn models_of_the_wrong_size_are_left_out_and_broken_ones_reported() {
    let folder = Folder::new();
    folder.write("models/broken.dve", "process {");
    let output = folder.sweep(&["--strategy", "cover", "--sizes", "100", "--min-states", "50", "--max-states", "200"]);
    assert_eq!(code(&output), 20, "{}", message(&output));
    let models = folder.rows("models.csv").join("\n");
    assert!(
        models.contains(",ok,100,") && models.contains(",large,") && models.contains("failed: exit status: 3"),
        "{models}"
    );
    assert!(folder.rows("cells.csv").iter().all(|row| row.starts_with("square.dve,")));
}

#[test]
fn wrong_wishes_are_refused() {
    let folder = Folder::new();
    for (more, word) in [
        (&["--strategy", "cache:LRV"][..], "LRU MRU"),
        (&["--strategy", "walk"], "--resources tries it"),
        (&["--times", "1s"], "--resources"),
        (&["--resources", "--stores"], "--stores"),
        (&["--resources", "--memories", "much"], "much"),
        (&["--strategy", "sleep+cache:LRU", "--orders", "bfs"], "allows"),
        (&["--sizes", "0"], "10..100"),
        (&["--sizes", "10..x"], "1 to 100"),
        (&["--limit", "0.1x"], "6x"),
        (&["--orders", "best"], "bfs, dfs"),
        (&["--jobs", "0"], "--jobs"),
        (&["--filter", "nothing"], "no model"),
    ] {
        let output = folder.sweep(more);
        assert_eq!(code(&output), 2, "{more:?}");
        assert!(message(&output).contains(word), "{more:?}: {}", message(&output));
    }
    folder.write("file", "");
    let models = folder.0.path().display().to_string();
    let inside = folder.path("file/out").display().to_string();
    let output = run(&["sweep", &models, "--out", &inside]);
    assert!(code(&output) == 2 && message(&output).contains("cannot be written"), "{}", message(&output));
    let output = run(&["sweep", "no/such/folder", "--out", &inside]);
    assert!(code(&output) == 2 && message(&output).contains("no/such/folder"), "{}", message(&output));
}

/// The cells of a row with this beginning.
fn cells(rows: &[String], begin: &str) -> Vec<String> {
    let row = rows.iter().find(|row| row.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {rows:?}"));
    row.strip_prefix(begin).unwrap_or_default().split(',').map(String::from).collect()
}

#[test]
fn strategies_without_a_cache_have_one_run_beside_the_one_that_holds_every_state() {
    let folder = Folder::new();
    let strategies = ["--strategy", "frontier-safety-net", "--strategy", "pebble-BT", "--strategy", "sleep"];
    let output = folder.sweep(&[&strategies[..], &["--sizes", "20,100"]].concat());
    assert_eq!(code(&output), 0, "{}", message(&output));
    let rows = folder.rows("cells.csv");
    // Both models; what holds every state is there in both orders, for sleep sets are depth first.
    assert_eq!(rows.len(), 10, "{rows:?}");
    assert_eq!(cells(&rows, "grid.dve,bfs,full,auto,0,")[..3], ["complete", "441", "840"]);
    assert_eq!(cells(&rows, "grid.dve,dfs,sleep,auto,0,")[..2], ["complete", "441"]);
    assert_eq!(cells(&rows, "square.dve,bfs,\"pebble:(c2,LLNR,5)-BT\",auto,0,")[0], "complete");
    let summary = fs::read_to_string(folder.path("out/summary.md")).unwrap();
    assert!(summary.contains("| bfs pebble:(c2,LLNR,5)-BT | 2 of 2 |"), "{summary}");
    assert!(!summary.contains("**Success**"), "{summary}");
    for plot in ["levels-memory", "levels-time", "levels-visits"] {
        assert!(fs::read_to_string(folder.path(&format!("out/{plot}.svg"))).unwrap().contains("pebble"));
    }
    assert!(!folder.path("out/success.svg").exists());
}

#[test]
fn stores_are_compared_with_every_state_held_and_in_caches() {
    let folder = Folder::new();
    let output = folder.sweep(&["--stores", "--sizes", "20,50,100", "--filter", "grid"]);
    assert_eq!(code(&output), 0, "{}", message(&output));
    let rows = folder.rows("cells.csv");
    // Eight stores with every state, and caches of four in three sizes.
    assert_eq!(rows.len(), 8 + 4 * 3, "{rows:?}");
    let codes = ["huffman:static", "\"huffman:trained(bfs,2%)\"", "\"huffman:trained(dfs,15%)\""];
    for code in codes {
        let cells = cells(&rows, &format!("grid.dve,bfs,full,{code},0,"));
        let bytes: f64 = cells[cells.len() - 1].parse().unwrap();
        assert!(cells[..2] == ["complete", "441"] && bytes > 0.0 && bytes < 12.0, "{code}: {cells:?}");
    }
    assert_eq!(cells(&rows, "grid.dve,bfs,cache:SC,\"huffman:trained(bfs,15%)\",100,")[..2], ["complete", "441"]);
    let summary = fs::read_to_string(folder.path("out/summary.md")).unwrap();
    for part in ["| huffman:trained(bfs,15%) | 1 |", "| model | states | vector | static | bfs 2 % |", "| **best** |"] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    for plot in ["codes", "stores"] {
        assert!(fs::read_to_string(folder.path(&format!("out/{plot}.svg"))).unwrap().contains("static"));
    }
}

#[test]
fn with_more_resources_more_states_are_explored() {
    let folder = Folder::new();
    folder.write("models/vast.dve", &model(1_000_000));
    let asked = ["--resources", "--memories", "20M,24M", "--times", "300ms,1200ms", "--filter", "vast", "--jobs", "1"];
    let asked = [&asked[..], &["--strategy", "full", "--strategy", "walk", "--orders", "bfs"]].concat();
    let sweep = |asked: &[&str]| {
        let (models, out) = (folder.0.path().display().to_string(), folder.path("out").display().to_string());
        run(&[&["sweep", &models, "--out", &out], asked].concat())
    };
    let output = sweep(&asked);
    assert_eq!(code(&output), 0, "{}", message(&output));
    let rows = folder.rows("resources.csv");
    // Two strategies, each with both memories and both times; one of them is both.
    assert_eq!(rows.len(), 6, "{rows:?}");
    let of = |strategy: &str, budget: &str| {
        let row = rows.iter().find(|row| row.contains(&format!(",{strategy},{budget},")));
        let cells: Vec<&str> = row.unwrap_or_else(|| panic!("{strategy} {budget}: {rows:?}")).split(',').collect();
        (cells[6].to_string(), cells[8].parse::<u64>().unwrap(), cells[10].parse::<u64>().unwrap())
    };
    let (small, large) = (of("full", "20971520,1200"), of("full", "25165824,1200"));
    // On a busy machine time may end before memory does.
    let more = large.0 != "memory" || small.1 < large.1;
    assert!(small.1 > 1000 && more && small.2 <= 20 << 20, "{small:?} {large:?}");
    let (short, long) = (of("walk", "25165824,300"), of("walk", "25165824,1200"));
    assert!(short.0 == "time" && short.1 < long.1, "{short:?} {long:?}");
    let summary = fs::read_to_string(folder.path("out/resources.md")).unwrap();
    assert!(summary.contains("| strategy | 20.0 MiB | 24.0 MiB | ×2 |") && summary.contains("| walk |"), "{summary}");
    assert!(fs::read_to_string(folder.path("out/vast.dve-time.svg")).unwrap().contains("bfs full"));
    let again = sweep(&asked);
    assert!(code(&again) == 0 && folder.rows("resources.csv") == rows, "nothing is left to do");
    let other = sweep(&[&asked[..], &["--", "--max-depth", "9"]].concat());
    assert!(code(&other) == 2 && message(&other).contains("check --max-depth 9"), "{}", message(&other));
}

/// The processes that a process has started.
fn children(process: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(String::from).collect::<Vec<_>>()).collect()
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().unwrap().success());
}

/// Starts a sweep over a model that takes long and returns it with the child that searches.
fn long_sweep(folder: &Path) -> (std::process::Child, String) {
    fs::write(folder.join("long.dve"), model(1_000_000)).unwrap();
    let sweep = Command::new(PROGRAM)
        .args(["sweep", "--max-states", "1000000000000", "--jobs", "1", "--memory", "2G", "--out"])
        .args([folder.join("out"), folder.join("long.dve")])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut found = None;
    while found.is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        found = children(sweep.id()).pop();
    }
    (sweep, found.expect("the loop ended"))
}

#[test]
fn a_child_that_is_killed_is_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let (sweep, child) = long_sweep(folder.path());
    signal("-KILL", &child);
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(code(&output), 20, "{}", message(&output));
    let models = fs::read_to_string(folder.path().join("out/models.csv")).unwrap();
    assert!(models.contains("failed: ") && models.contains("signal"), "{models}");
}

#[test]
fn an_interrupted_sweep_leaves_usable_tables() {
    let folder = tempfile::tempdir().unwrap();
    let (sweep, child) = long_sweep(folder.path());
    // As Ctrl-C does: everybody hears of it. The child may not listen yet, which ends it too.
    signal("-INT", &sweep.id().to_string());
    signal("-INT", &child);
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(code(&output), 20, "{}", message(&output));
    let models = fs::read_to_string(folder.path().join("out/models.csv")).unwrap();
    assert_eq!(models.lines().count(), 2, "the head only: {models}");
}
