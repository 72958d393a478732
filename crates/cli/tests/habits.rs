//! What a person at a terminal relies on: files are whole or not there, options do something or say that they do not, and
//! nothing wrong is passed over in silence.

use crate::common::files::Folder;
use crate::common::run::{PROGRAM, code, run, said};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs the program and gives it something to read.
fn feed(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who does not want to read all of it may close the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

const BAD: &str = "byte x;\nactive proctype P() {\n  x = 1;\n  x = 2;\n  assert(x != 2);\n  x = 3\n}\n";
const GRAPH: &str = "byte x; active [3] proctype P() { byte k; do :: k < 90 -> k++; x = x + k od }";
const RULES: &str =
    "var x: 0..9; startstate x := 0; end; rule \"up\" x < 9 ==> x := x + 1; end; invariant \"small\" x < 3;\n";

#[test]
fn a_graph_that_is_not_complete_has_no_name() {
    let folder = Folder::new();
    let model = folder.file("m.pml", GRAPH);
    let graph = folder.path("m.aut");
    let output = run(&["generate", &model, "--output", &graph, "--memory", "20M"]);
    assert!(code(&output) == 20 && said(&output).contains("nothing was written"), "{}", said(&output));
    assert_eq!(folder.names(), ["m.pml"]);
    let output = run(&["generate", &model, "--output", &graph, "--memory", "20M", "--partial"]);
    assert!(code(&output) == 20 && said(&output).contains("m.aut.partial"), "{}", said(&output));
    assert_eq!(folder.names(), ["m.aut.partial", "m.pml"]);
    let output = run(&["check", &folder.path("m.aut.partial"), "--language", "aut"]);
    assert!(code(&output) == 3 && said(&output).contains("incomplete"), "{}", said(&output));
}

#[test]
fn a_graph_that_is_interrupted_has_no_name() {
    let folder = Folder::new();
    let model = folder.file("m.pml", GRAPH);
    let mut child = Command::new(PROGRAM)
        .args(["generate", &model, "--output", &folder.path("m.aut"), "--memory", "1G"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while folder.names().len() < 2 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!folder.names().contains(&"m.aut".to_string()), "{:?}", folder.names());
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let ended = child.wait().unwrap();
    assert!(matches!(ended.code(), Some(20 | 130)), "{ended}");
    assert!(!folder.names().contains(&"m.aut".to_string()), "{:?}", folder.names());
}

#[test]
fn small_graphs_can_be_drawn_and_printed() {
    let folder = Folder::new();
    let model = folder.file("m.pml", BAD);
    let picture = folder.path("m.dot");
    assert_eq!(code(&run(&["generate", &model, "-o", &picture])), 0);
    let text = std::fs::read_to_string(&picture).unwrap();
    assert!(text.starts_with("digraph") && text.contains("0 -> 1") && text.contains("x = 1"), "{text}");
    let output = run(&["generate", &model, "-o", "-"]);
    let graph = String::from_utf8_lossy(&output.stdout).to_string();
    assert!(graph.starts_with("des (0, 5, 6)") && graph.lines().count() == 6, "{graph}");
    let checked = feed(&["check", "-", "--language", "aut", "-q"], &graph);
    assert_eq!(code(&checked), 10, "{}", said(&checked));
}

#[test]
fn a_walk_tells_what_is_wrong() {
    let folder = Folder::new();
    let (failing, rules) = (folder.file("bad.pml", BAD), folder.file("rules.m", RULES));
    let walked = run(&["simulate", &failing, "--seed", "1"]);
    assert!(code(&walked) == 11 && said(&walked).contains("an assertion fails"), "{}", said(&walked));
    let walked = run(&["simulate", &rules, "--seed", "1"]);
    assert!(code(&walked) == 12 && said(&walked).contains("`small`"), "{}", said(&walked));
    assert!(said(&walked).contains("depth 3; 1.0 choices in a state on average, 1 at most"), "{}", said(&walked));
    let walked = run(&["simulate", &failing, "--seed", "1", "--invariant", "x != 1"]);
    assert!(code(&walked) == 12 && said(&walked).contains("`x != 1` is violated"), "{}", said(&walked));
    let stuck = folder.file("stuck.pml", "byte x; active proctype P() { x == 1 }");
    assert_eq!(code(&run(&["simulate", &stuck])), 10);
    assert_eq!(code(&run(&["simulate", &folder.file("fine.pml", "active proctype P() { skip }")])), 0);
}

#[test]
fn a_walk_by_hand_can_be_undone() {
    let folder = Folder::new();
    let model = folder.file("m.pml", BAD);
    let output = feed(&["simulate", &model, "--interactive"], "?\n1\n1\ns\nu\nu\nu\n7\n1\n1\n1\nq\n");
    let text = said(&output);
    assert_eq!(code(&output), 0, "{text}");
    for part in
        ["undo a step", "       1)  P(0)  x = 1", "step 3 (? for help) > ", "    2  x=2", "this is the first state"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("there is no such step") && text.contains("    !  an assertion fails"), "{text}");
}

#[test]
fn what_cannot_be_written_is_said_before_the_search_and_what_was_found_is_said_anyway() {
    let folder = Folder::new();
    let model = folder.file("m.pml", BAD);
    let nowhere = folder.path("nodir/x.json");
    for option in ["--trace", "--msc"] {
        let output = run(&["check", &model, option, &nowhere]);
        assert!(code(&output) == 2 && said(&output).contains("nodir/x.json"), "{}", said(&output));
        assert!(!said(&output).contains("verdict"), "{}", said(&output));
    }
    assert_eq!(code(&run(&["generate", &model, "-o", &nowhere])), 2);
    let output = run(&["check", &model, "--trace", "/dev/full"]);
    assert!(code(&output) == 2 && said(&output).contains("verdict: assertion failed"), "{}", said(&output));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(PROGRAM).args(["check", &model]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert!(code(&output) == 2 && said(&output).contains("standard output"), "{}", said(&output));
    let output = run(&["check", &model, "--disk", "1G", "--spill-dir", &folder.path("gone")]);
    assert!(code(&output) == 2 && said(&output).contains("gone"), "{}", said(&output));
}

#[test]
fn a_dash_is_standard_input_or_output() {
    let folder = Folder::new();
    let model = folder.file("m.pml", BAD);
    let output = feed(&["check", "-", "--language", "promela", "--quiet"], BAD);
    assert_eq!((code(&output), said(&output).as_str()), (11, "verdict: assertion failed\n"));
    assert_eq!(code(&feed(&["check", "-"], BAD)), 2);
    let found = run(&["check", &model, "--trace", "-"]);
    assert!(String::from_utf8_lossy(&found.stderr).contains("verdict: assertion failed"));
    let replayed = feed(&["replay", &model, "-"], &String::from_utf8_lossy(&found.stdout));
    assert!(code(&replayed) == 0 && said(&replayed).contains("a failed assertion"), "{}", said(&replayed));
    for both in [&["--json", "--msc", "-"][..], &["--json", "--trace", "-"], &["--msc", "-", "--trace", "-"]] {
        assert_eq!(code(&run(&[&["check", model.as_str()], both].concat())), 2, "{both:?}");
    }
    assert!(said(&run(&["check", &model, "--msc", "-"])).contains("m.pml: a failed assertion"));
}

#[test]
fn options_that_do_nothing_are_refused_or_noted() {
    let folder = Folder::new();
    let (promela, rules) = (folder.file("m.pml", "byte x; active proctype P() { x = 1 }"), folder.file("m.m", RULES));
    for (model, options, wanted) in [
        (&promela, &["--const", "N=3"][..], "--const is for Murphi models"),
        (&promela, &["--dialect", "rumur"], "--dialect is for Murphi models"),
        (&promela, &["--symmetry", "exact"], "--symmetry is for Murphi models"),
        (&rules, &["-D", "N=3"], "-D is for Promela models"),
        (&promela, &["--strategy", "full", "--cache", "LRU"], "--cache LRU"),
    ] {
        let output = run(&[&["check", model.as_str()], options].concat());
        assert!(code(&output) == 2 && said(&output).contains(wanted), "{options:?}: {}", said(&output));
    }
    for (options, wanted) in [
        (&["--order", "dfs", "--workers", "2"][..], "--workers is for breadth-first searches"),
        (&["--spill-dir", "."], "--spill-dir does nothing"),
        (&["--step-log", "1M"], "--step-log is for breadth-first searches with --disk"),
        (&["--strategy", "full", "--redundancy-limit", "3x"], "--redundancy-limit does nothing"),
    ] {
        let output = run(&[&["check", promela.as_str()], options].concat());
        assert!(code(&output) == 0 && said(&output).contains(wanted), "{options:?}: {}", said(&output));
    }
}

#[test]
fn names_that_traces_show_can_be_typed() {
    let folder = Folder::new();
    let promela = "typedef R { byte f; byte g[2] } mtype = { ack, nak }; mtype m;
        proctype Client(byte id) { byte got; R r; r.g[1] = 4; got = id; m = nak } init { byte i; i = 7; run Client(i) }";
    let rules = "type Proc: scalarset(2); var st: array[Proc] of 0..2; startstate for p: Proc do st[p] := 0; end; end;
        ruleset p: Proc do rule st[p] < 2 ==> st[p] := st[p] + 1; end; end;";
    let process = "byte x; process P { byte y; state a, b; init a; trans a -> b { effect y = 2; }; } system async;";
    let promela = folder.file("m.pml", promela);
    let rules = folder.file("m.m", rules);
    let process = folder.file("m.dve", process);
    for (model, name) in [
        (&promela, "Client(1).got == 7"),
        (&promela, "Client(1).r.g[1] == 4"),
        (&promela, ":init:(0).i == 7 && m == nak"),
        (&rules, "st[Proc_1] = 2 & st[Proc_2] = 0"),
        (&process, "P->y == 2"),
        (&process, "P == b"),
    ] {
        let output = run(&["check", model, "--find", name, "-q"]);
        assert_eq!((code(&output), said(&output).as_str()), (12, "verdict: found\n"), "{name}");
    }
    let output = run(&["check", &process, "--find", "P != a && P == a", "-q"]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    // One of several values that are alike: with symmetry the answer would mean nothing.
    let output = run(&["check", &rules, "--symmetry", "exact", "--find", "st[Proc_1] = 2"]);
    assert!(code(&output) == 2 && said(&output).contains("alike"), "{}", said(&output));
}

#[test]
fn a_model_without_a_command_is_checked() {
    let folder = Folder::new();
    let model = folder.file("m.pml", BAD);
    let output = run(&[&model, "--quiet"]);
    assert_eq!((code(&output), said(&output).as_str()), (11, "verdict: assertion failed\n"));
    assert!(said(&run(&["nosuch.pml"])).contains("no such file"));
    assert!(said(&run(&["chekc"])).contains("unrecognized subcommand"));
}

#[test]
fn manual_pages_are_written() {
    let folder = Folder::new();
    let output = run(&["man"]);
    assert!(code(&output) == 0 && said(&output).contains(".TH plimsoll 1"), "{}", said(&output));
    assert_eq!(code(&run(&["man", &folder.path("")])), 0);
    assert!(folder.names().contains(&"plimsoll-check.1".to_string()), "{:?}", folder.names());
    assert_eq!(code(&run(&["man", PathBuf::from(folder.path("gone")).to_str().unwrap()])), 2);
}

#[test]
fn running_out_says_what_would_help() {
    let folder = Folder::new();
    let deep = "int x; int y; process P { state s; init s; trans s -> s { guard x < 30000; effect x = x + 1; },
        s -> s { guard x == 30000; effect x = 0, y = y + 1; }; } system async;";
    let deep = folder.file("deep.dve", deep);
    let output = run(&["check", &deep, "--memory", "20M", "--order", "dfs"]);
    let wanted = "to get further: --disk 200M, for the stack took much of the memory";
    assert!(code(&output) == 20 && said(&output).contains(wanted), "{}", said(&output));
    let model = folder.file("m.pml", GRAPH);
    let output = run(&["check", &model, "--max-states", "100"]);
    assert!(
        code(&output) == 20 && said(&output).contains("to get further: a larger --max-states"),
        "{}",
        said(&output)
    );
}
