//! Whatever is given to the program: a clear message and the right exit code, never a panic.

use crate::common::run::{PROGRAM, code, run};
use std::path::{Path, PathBuf};
use std::process::Output;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }
}

const SOUND: &str = "byte x;\nprocess P { state a, b; init a; trans a -> b { effect x = 1; }; }\nsystem async;\n";

fn check(path: &Path, more: &[&str]) -> Output {
    run(&[&["check", path.to_str().unwrap()], more].concat())
}

fn expect(output: &Output, wanted: i32, words: &[&str]) {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let shown: String = text.chars().take(2000).collect();
    assert_eq!(code(output), wanted, "{shown}");
    assert!(!text.contains("panicked") && !text.contains("internal error:"), "{shown}");
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} not in: {shown}");
    assert!(text.len() < 100_000, "a message of {} bytes", text.len());
}

fn model(body: &str) -> String {
    format!(
        "byte a[4];\nint n;\nbyte i;\nprocess P {{ state s, t; init s; trans s -> t {{ {body} }}; }}\nsystem async;\n"
    )
}

#[test]
fn files_that_are_no_models() {
    let folder = Folder::new();
    expect(&check(Path::new("no/such/file.dve"), &[]), 2, &["no/such/file.dve", "no such file"]);
    expect(&check(folder.0.path(), &[]), 2, &["folder"]);
    expect(&check(&folder.file("empty.dve", ""), &[]), 3, &["empty"]);
    expect(&check(&folder.file("blank.dve", " \n\t\n"), &[]), 3, &["empty"]);
    let bytes: Vec<u8> = (0..20_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    expect(&check(&folder.file("binary.dve", bytes), &[]), 3, &["text"]);
    expect(&check(&folder.file("model.xyz", SOUND), &[]), 2, &["extension"]);
    expect(&check(&folder.file("model.mdve", SOUND), &[]), 2, &["m4"]);
    expect(&check(&folder.file("graph.aut", "des (0,1,1)\n(0,a,7)\n"), &[]), 3, &["line 2"]);
    expect(&check(&folder.file("model.ir", "system \"x\" var"), &[]), 3, &["model.ir:1:"]);
    expect(&check(&folder.file("deep.ir", "(".repeat(1_000_000)), &[]), 3, &["deep.ir:"]);
}

#[test]
fn texts_with_errors() {
    let folder = Folder::new();
    let text = "byte x\nprocess P { state a; init b; trans a -> { guard x == ; }; }\nsystem async;\n";
    let output = check(&folder.file("syntax.dve", text), &[]);
    expect(&output, 3, &["error", "syntax.dve:"]);
    expect(&check(&folder.file("name.dve", model("guard zz == 1;")), &[]), 3, &["zz", "^"]);
    expect(&check(&folder.file("type.dve", model("effect a = 3 + i[2];")), &[]), 3, &["error", "^"]);
    expect(&check(&folder.file("half.dve", &SOUND[..SOUND.len() / 2]), &[]), 3, &["error"]);
    expect(&check(&folder.file("braces.dve", "{".repeat(100_000)), &[]), 3, &["error"]);
}

#[test]
fn enormous_and_deep_expressions() {
    let folder = Folder::new();
    let deep = [
        format!("guard {}1{};", "(".repeat(1_000_000), ")".repeat(1_000_000)),
        format!("guard {}1;", "not ".repeat(1_000_000)),
        format!("guard {}1;", "-".repeat(1_000_000)),
        format!("guard {}0{};", "a[".repeat(500_000), "]".repeat(500_000)),
    ];
    for body in deep {
        expect(&check(&folder.file("deep.dve", model(&body)), &[]), 3, &["error"]);
    }
    // Ten megabytes: either it is refused with a message, or it is checked.
    let long = [
        format!("guard 1{};", " + 1".repeat(2_500_000)),
        format!("guard i == 0{};", " && i == 0".repeat(1_000_000)),
        format!("effect i = 1{};", " * 1".repeat(2_500_000)),
    ];
    for body in long {
        let output = check(&folder.file("long.dve", model(&body)), &["--quiet"]);
        let wanted = if code(&output) == 3 { 3 } else { 10 };
        expect(&output, wanted, &[]);
    }
}

#[test]
fn what_goes_wrong_at_run_time_is_a_verdict() {
    let folder = Folder::new();
    let index = folder.file("index.dve", model("effect a[i + 4] = 1;"));
    let division = folder.file("division.dve", model("effect n = 5 / i;"));
    let guard = folder.file("guard.dve", model("guard 5 % i == 1;"));
    let overflow = folder.file("overflow.dve", model("effect i = 255 + 1;"));
    for executor in ["jit", "interp"] {
        expect(&check(&index, &["--executor", executor]), 11, &["verdict: error", "out of bounds", "index.dve:4"]);
        expect(&check(&division, &["--executor", executor]), 11, &["division by zero"]);
        expect(&check(&guard, &["--executor", executor]), 11, &["division by zero"]);
        expect(&check(&overflow, &["--executor", executor]), 10, &["verdict: deadlock"]);
        expect(&check(&overflow, &["--executor", executor, "--overflow", "error"]), 11, &["does not fit"]);
    }
}

#[test]
fn options_that_make_no_sense() {
    let folder = Folder::new();
    let sound = folder.file("sound.dve", SOUND);
    for (more, words) in [
        (["--memory", "1"], vec!["too small", "at least"]),
        (["--memory", "0"], vec!["too small"]),
        (["--memory", "lots"], vec!["--memory", "512M"]),
        (["--memory", "-5"], vec!["error"]),
        (["--time", "soon"], vec!["--time", "90s"]),
        (["--order", "best"], vec!["bfs, dfs"]),
        (["--max-states", "0"], vec!["--max-states"]),
        (["--find", "x =="], vec!["--find"]),
        (["--find", "yy == 1"], vec!["yy"]),
        (["--invariant", ")("], vec!["--invariant"]),
        (["--unknown", "1"], vec!["--unknown"]),
    ] {
        expect(&check(&sound, &more), 2, &words);
    }
    let deep = "(".repeat(100_000);
    expect(&check(&sound, &["--find", &deep]), 2, &["--find"]);
    expect(&run(&["chekc"]), 2, &["check"]);
    expect(&run(&[]), 2, &["Usage"]);
    expect(&run(&["--help"]), 0, &["Exit codes"]);
    let gone = folder.0.path().join("gone");
    let spill = ["--disk", "1G", "--spill-dir", gone.to_str().unwrap()];
    expect(&check(&sound, &spill), 2, &["gone"]);
    expect(&run(&["compare", gone.to_str().unwrap()]), 2, &["counts.csv"]);
}

#[test]
fn the_least_memory_that_is_named_is_enough() {
    let folder = Folder::new();
    let sound = folder.file("sound.dve", SOUND);
    for order in ["bfs", "dfs"] {
        let output = check(&sound, &["--memory", "1", "--order", order]);
        let text = String::from_utf8_lossy(&output.stderr).to_string();
        let advice = text.split("--memory ").nth(1).unwrap().trim_end().trim_end_matches(')').to_string();
        expect(&check(&sound, &["--memory", &advice, "--order", order]), 10, &["verdict: deadlock"]);
    }
}

#[test]
fn traces_that_do_not_fit() {
    let folder = Folder::new();
    let sound = folder.file("sound.dve", SOUND);
    let stored = folder.0.path().join("trace.json");
    expect(&check(&sound, &["--trace", stored.to_str().unwrap()]), 10, &[]);
    let replay = |model: &Path, trace: &Path| run(&["replay", model.to_str().unwrap(), trace.to_str().unwrap()]);
    expect(&replay(&sound, &stored), 0, &["verified", "deadlock"]);
    let text = std::fs::read_to_string(&stored).unwrap();
    expect(&replay(&sound, &folder.file("cut.json", &text[..text.len() / 2])), 2, &["cut.json"]);
    expect(&replay(&sound, &folder.file("other.json", "{\"a\": 1}")), 2, &["not a trace"]);
    let longer = text.replace("\"positions\": [\n    0,", "\"positions\": [\n    0, 0,");
    assert_ne!(longer, text);
    expect(&replay(&sound, &folder.file("longer.json", longer)), 2, &["cannot take step"]);
    let short = folder.file("short.dve", SOUND.replace("a -> b", "a -> a"));
    expect(&replay(&short, &stored), 2, &["not wrong"]);
    expect(&replay(&sound, Path::new("no.json")), 2, &["no.json"]);
    let unwritable = folder.0.path().join("no/such/trace.json");
    expect(&check(&sound, &["--trace", unwritable.to_str().unwrap()]), 2, &["cannot be written"]);
}

#[test]
fn a_closed_pipe_is_no_catastrophe() {
    let folder = Folder::new();
    let sound = folder.file("sound.dve", SOUND);
    for arguments in [["check"], ["info"], ["simulate"]] {
        let mut child = std::process::Command::new(PROGRAM)
            .args(arguments)
            .arg(&sound)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(matches!(code(&output), 0 | 10), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}
