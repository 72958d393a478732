//! Tools for graph files: `convert` and `lts`.

use crate::common::files::Folder;
use crate::common::run::{PROGRAM, code, run, said};
use std::fs;
use std::process::{Command, Stdio};

const CLOCK: &str = "des (0, 4, 4)\n(0, \"tick\", 1)\n(1, i, 2)\n(2, \"tock, twice\", 3)\n(3, tau, 0)\n";

#[test]
fn graphs_survive_conversion_and_back() {
    let folder = Folder::new();
    let (text, binary, back) = (folder.file("a.aut", CLOCK), folder.path("a.lts"), folder.path("b.aut"));
    let output = run(&["convert", &text, &binary]);
    assert!(code(&output) == 0 && said(&output).contains("4 states, 4 transitions"), "{}", said(&output));
    assert_eq!(code(&run(&["convert", &binary, &back])), 0);
    let lines = |path: &str| {
        let text = fs::read_to_string(path).unwrap().replace("tau", "i").replace(['"', ' '], "");
        text.lines().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(lines(&text), lines(&back));
    let hidden = run(&["convert", &binary, "-", "--hide", "^tick$"]);
    let hidden = String::from_utf8(hidden.stdout).unwrap();
    assert!(hidden.contains("(0, \"i\", 1)") && hidden.contains("tock"), "{hidden}");
    let picture = run(&["convert", &binary, &folder.path("a.dot")]);
    assert_eq!(code(&picture), 0, "{}", said(&picture));
    assert!(fs::read_to_string(folder.path("a.dot")).unwrap().contains("2 -> 3"));
}

#[test]
fn wherever_aut_is_read_lts_is_read_too() {
    let folder = Folder::new();
    let (text, binary) = (folder.file("a.aut", CLOCK), folder.path("a.lts"));
    assert_eq!(code(&run(&["convert", &text, &binary])), 0);
    for command in ["check", "info"] {
        let [text, binary] = [&text, &binary].map(|path| run(&[command, path]));
        assert_eq!((code(&text), code(&binary)), (0, 0), "{}{}", said(&text), said(&binary));
        assert!(said(&binary).contains('4'));
    }
    let mut child = Command::new(PROGRAM)
        .args(["check", "-", "--language", "lts"])
        .stdin(Stdio::from(fs::File::open(&binary).unwrap()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    let info = run(&["lts", "info", &binary]);
    assert!(code(&info) == 0 && said(&info).contains("silent           2"), "{}", said(&info));
}

#[test]
fn graphs_are_compared_and_minimised() {
    let folder = Folder::new();
    let clock = folder.file("a.aut", CLOCK);
    let short = folder.file("b.aut", "des (0, 2, 2)\n(0, tick, 1)\n(1, \"tock, twice\", 0)\n");
    let strong = run(&["lts", "compare", &clock, &short]);
    assert_eq!(code(&strong), 1);
    assert!(said(&strong).contains("1  tick") && said(&strong).contains("a.aut can do `i`"), "{}", said(&strong));
    let branching = run(&["lts", "compare", &clock, &short, "--equivalence", "branching"]);
    assert_eq!(code(&branching), 0, "{}", said(&branching));
    let small = folder.path("small.lts");
    let output = run(&["lts", "minimise", &clock, "-o", &small, "--equivalence", "branching"]);
    assert!(said(&output).contains("2 states, 2 transitions (before: 4 and 4)"), "{}", said(&output));
    assert_eq!(code(&run(&["lts", "compare", &small, &short])), 0);
    let hidden = run(&["lts", "minimise", &clock, "-o", "-", "--equivalence", "branching", "--hide", "."]);
    assert!(String::from_utf8_lossy(&hidden.stdout).starts_with("des (0, 0, 1)"), "{}", said(&hidden));
    assert_eq!(code(&run(&["lts", "minimise", &clock, "-o", &small, "--hide", "("])), 2);
}

#[test]
fn damaged_graphs_are_refused_and_nothing_is_written() {
    let folder = Folder::new();
    let (text, binary) = (folder.file("a.aut", CLOCK), folder.path("a.lts"));
    assert_eq!(code(&run(&["convert", &text, &binary])), 0);
    let whole = fs::read(&binary).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    let cases = [
        ("flipped.lts", flipped, "damaged"),
        ("cut.lts", whole[..whole.len() - 3].to_vec(), "incomplete"),
        ("other.lts", b"\x89PNG\r\n\x1a\n and more".to_vec(), "not an .lts file"),
        ("empty.lts", Vec::new(), "empty"),
        ("short.aut", b"des (0, 5, 2)\n(0, a, 1)\n".to_vec(), "promises 5 edges"),
        ("bad.aut", b"des (0, 1, 2)\n(0, a, 7)\n".to_vec(), "line 2"),
    ];
    for (name, bytes, message) in cases {
        let (damaged, out) = (folder.file(name, bytes), folder.path("out.lts"));
        let before = folder.names();
        for output in [
            run(&["convert", &damaged, &out]),
            run(&["lts", "info", &damaged]),
            run(&["lts", "compare", &damaged, &text]),
            run(&["lts", "minimise", &damaged, "-o", &out]),
            run(&["check", &damaged]),
        ] {
            assert_eq!(code(&output), 3, "{name}: {}", said(&output));
            assert!(said(&output).contains(message), "{name}: {}", said(&output));
        }
        assert_eq!(folder.names(), before, "{name}");
    }
    let nowhere = folder.path("nodir/x.lts");
    assert_eq!(code(&run(&["convert", &text, &nowhere])), 2);
    assert_eq!(code(&run(&["lts", "minimise", &text, "-o", &nowhere])), 2);
    assert_eq!(code(&run(&["convert", &nowhere, &text])), 2);
    let full = run(&["convert", &text, "/dev/full"]);
    assert!(code(&full) == 2 && said(&full).contains("cannot be written"), "{}", said(&full));
}
