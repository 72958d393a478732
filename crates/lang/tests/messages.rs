//! What a person is told when a model cannot be loaded.

use plimsoll_lang::{Language, LoadError, LoadedModel, Options, Source, diagnostic, load, load_bytes, load_text};
use std::fs;
use std::path::PathBuf;

fn message(text: &str) -> String {
    let source = Source { name: "m.dve".into(), text: text.into() };
    match load_text(source, Language::Dve, &Options::default()) {
        Ok(_) => panic!("loads: {text}"),
        Err(error) => error.render(false),
    }
}

#[test]
fn errors_in_declarations_and_transitions_come_together() {
    let text = "byte counter, a[3] = 1, wide = 256;
channel c;
process P {
  byte counter;
  state s, s, go;
  init start;
  trans
    s -> gone { guard conter == 1; },
    s -> go { sync c!1; effect c = 2, P = 3; },
    go -> s { sync c?; effect counter = Q.t; };
}
process Q { state s; init s; trans s -> s { guard P->counter == P.gone; sync d?1; }; }
system async;
";
    insta::assert_snapshot!(message(text), @r"
    error: an array takes its initial values in braces
     --> m.dve:1:22
      |
    1 | byte counter, a[3] = 1, wide = 256;
      |                      ^

    error: the initial value 256 does not fit
     --> m.dve:1:32
      |
    1 | byte counter, a[3] = 1, wide = 256;
      |                                ^^^ byte holds 0 to 255

    error: state `s` is declared twice
     --> m.dve:5:12
      |
    5 |   state s, s, go;
      |            ^

    error: process `P` has no state `start`
     --> m.dve:6:8
      |
    6 |   init start;
      |        ^^^^^

    error: process `P` has no state `gone`
     --> m.dve:8:10
      |
    8 |     s -> gone { guard conter == 1; },
      |          ^^^^

    error: unknown variable `conter`
     --> m.dve:8:23
      |
    8 |     s -> gone { guard conter == 1; },
      |                       ^^^^^^ did you mean `counter`?

    error: `c` is a channel, not a variable
     --> m.dve:9:32
      |
    9 |     s -> go { sync c!1; effect c = 2, P = 3; },
      |                                ^

    error: `P` is a process, not a variable
     --> m.dve:9:39
      |
    9 |     s -> go { sync c!1; effect c = 2, P = 3; },
      |                                       ^

    error: values on channel `c`: 1 expected, 0 given
      --> m.dve:10:15
       |
    10 |     go -> s { sync c?; effect counter = Q.t; };
       |               ^^^^^^^

    error: process `Q` has no state `t`
      --> m.dve:10:41
       |
    10 |     go -> s { sync c?; effect counter = Q.t; };
       |                                         ^^^

    error: only a property may read variables of another process
      --> m.dve:12:51
       |
    12 | process Q { state s; init s; trans s -> s { guard P->counter == P.gone; sync d?1; }; }
       |                                                   ^^^^^^^^^^

    error: process `P` has no state `gone`
      --> m.dve:12:65
       |
    12 | process Q { state s; init s; trans s -> s { guard P->counter == P.gone; sync d?1; }; }
       |                                                                 ^^^^^^

    error: there is no channel `d`
      --> m.dve:12:78
       |
    12 | process Q { state s; init s; trans s -> s { guard P->counter == P.gone; sync d?1; }; }
       |                                                                              ^

    error: only a variable or an element of an array can take a value
      --> m.dve:12:80
       |
    12 | process Q { state s; init s; trans s -> s { guard P->counter == P.gone; sync d?1; }; }
       |                                                                                ^
    ");
}

#[test]
fn each_mistake_has_its_message() {
    let with = |declarations: &str, part: &str| {
        format!("{declarations} process P {{ state s; init s; trans s -> s {{ {part} }}; }} system async;")
    };
    let cases = [
        (with("const byte k = 1;", "effect k = 2;"), "`k` is a constant"),
        (with("const byte k[2] = {1};", "effect k[1] = 2;"), "`k` is a constant"),
        (with("byte x;", "effect x[0] = 2;"), "`x` is not an array"),
        (with("byte x; byte x;", ""), "`x` is declared twice"),
        (with("byte P;", ""), "`P` is declared twice"),
        (with("byte a[0];", ""), "an array has 1 to 65536 elements"),
        (with("byte a[99999999999];", ""), "an array has 1 to 65536 elements"),
        (with("byte a[60000], b[60000];", ""), "the variables have more than 65536 elements"),
        (with("channel {byte} c[99999];", ""), "a channel has room for at most 16384 messages"),
        (with("byte x = 1 / 0;", ""), "this initial value cannot be computed"),
        (with("byte x = y, y;", ""), "unknown variable `y`"),
        (with("byte x = P.s;", ""), "an initial value cannot depend on where a process stands"),
        (with("byte x = {1};", ""), "only an array takes a list of initial values"),
        (with("int x = -32769;", ""), "int holds -32768 to 32767"),
        (with("channel c;", "sync c?1;"), "only a variable or an element of an array can take a value"),
        (with("channel {byte, byte} c[0]; byte x;", "sync c?x;"), "values on channel `c`: 2 expected, 1 given"),
        (with("byte c;", "sync c!;"), "there is no channel `c`"),
        ("process P { state s; } system async;".into(), "process `P` has no initial state"),
        ("process P { init s; } system async;".into(), "process `P` has no states"),
        ("byte x; system async;".into(), "the model has no processes"),
        ("process P { state s; init s; trans -> s {}; } system async;".into(), "must name its source state"),
        ("process P { state s; init s; } system async property Q;".into(), "there is no process `Q`"),
        ("process P { state s; init s; } system async property P;".into(), "LTL property process: not supported yet"),
        (
            "channel c; process P { state s; init s; trans s -> s { sync c!; }; } system sync;".into(),
            "channels have no meaning in a synchronous system",
        ),
    ];
    for (text, expected) in cases {
        assert!(message(&text).contains(expected), "{text}:\n{}", message(&text));
    }
}

#[test]
fn too_many_pairs_are_refused() {
    let mut text = String::from("channel c;");
    for (process, sign) in [("S", "!"), ("R", "?")] {
        text.push_str(&format!("process {process} {{ state s; init s; trans "));
        text.push_str(&vec![format!("s -> s {{ sync c{sign}; }}"); 1500].join(","));
        text.push_str("; }");
    }
    text.push_str("system async;");
    assert!(message(&text).contains("the senders and receivers on channel `c` make too many pairs"));
}

#[test]
fn warnings_come_with_the_model() {
    let text = "byte x, a[2]; process P { state s; init s; trans s -> s { guard x || x && a[5]; }; } system async;";
    let source = Source { name: "m.dve".into(), text: text.into() };
    let loaded = load_text(source, Language::Dve, &Options::default()).unwrap();
    insta::assert_snapshot!(diagnostic::render(&loaded.source, &loaded.warnings, false), @r"
    warning: operators are mixed without parentheses
     --> m.dve:1:67
      |
    1 | byte x, a[2]; process P { state s; init s; trans s -> s { guard x || x && a[5]; }; } system async;
      |                                                                   ^^ read as in C: the operators to the right bind tighter
      |
      = note: DiVinE reads these operators from left to right; parentheses make the meaning clear

    warning: index 5 is outside of `a[2]`
     --> m.dve:1:75
      |
    1 | byte x, a[2]; process P { state s; init s; trans s -> s { guard x || x && a[5]; }; } system async;
      |                                                                           ^^^^ goes wrong whenever it is evaluated
    ");
}

/// A folder for files of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("plimsoll-lang-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const MODEL: &[u8] = b"process P { state s; init s; } // caf\xe9\nsystem async;";

#[test]
fn files_that_are_no_models() {
    let folder = Folder::new("files");
    let cases = [
        (folder.0.join("missing.dve"), "missing.dve: no such file"),
        (folder.0.join("missing.xyz"), "missing.xyz: no such file"),
        (folder.0.clone(), "is a folder, not a model file"),
        (folder.file("empty.dve", b""), "the file is empty"),
        (folder.file("blank.dve", b" \n\t\n"), "the file is empty"),
        (folder.file("empty.aut", b""), "the file is empty"),
        (folder.file("binary.dve", b"\x7fELF\0\0\x01"), "not a text file"),
        (folder.file("noise.dve", &[0xff; 100]), "not a text file"),
        (folder.file("macros.mdve", b"x"), "run m4 first"),
        (folder.file("model.xyz", MODEL), "unknown file extension"),
        (folder.file("graph.aut", b"des (0, 1, 1)\n(0, a, 7)\n"), "line 2: state 7 is not below"),
    ];
    for (path, expected) in cases {
        let error = load(&path, &Options::default()).map(|_| ()).unwrap_err();
        assert!(error.render(false).contains(expected), "{}: {}", path.display(), error.render(false));
        assert!(!error.to_string().is_empty());
    }
    let unreadable = load(folder.0.join("missing.dve"), &Options::default());
    assert!(matches!(unreadable, Err(LoadError::Io { .. })));
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let folder = Folder::new("mark");
    let marked = |text: &[u8]| [b"\xef\xbb\xbf", text].concat();
    let included = folder.file("part.pml", &marked(b"byte x;"));
    let cases = [
        folder.file("model.dve", &marked(MODEL)),
        folder.file("graph.aut", &marked(b"des (0, 1, 2)\n(0, a, 1)\n")),
        folder.file("model.m", &marked(b"var x: 0..1; startstate x := 0; end; rule x := 1 - x; end;")),
        folder.file("model.pml", &marked(b"#include \"part.pml\"\ninit { x = 1 }")),
    ];
    assert!(included.exists());
    for path in cases {
        load(&path, &Options::default()).unwrap_or_else(|error| panic!("{}", error.render(false)));
    }
    let error = load(folder.file("blank.pml", &marked(b"")), &Options::default()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("the file is empty"), "{error}");
}

#[test]
fn the_extension_or_the_option_tells_the_language() {
    let folder = Folder::new("language");
    let loaded = load(folder.file("model.DVE", MODEL), &Options::default()).unwrap();
    assert_eq!(loaded.language, Language::Dve);
    let options = Options { language: Some(Language::Dve), ..Options::default() };
    assert!(load(folder.file("model.txt", MODEL), &options).is_ok());
    let graph = load(folder.file("g.aut", b"des (0, 1, 1)\n(0, a, 0)\n"), &Options::default()).unwrap();
    assert!(matches!(graph.model, LoadedModel::Graph(lts) if lts.edge_count() == 1));
    let from_memory = load_bytes("stdin", b"des (0, 0, 1)".to_vec(), Language::Aut, &Options::default());
    assert!(from_memory.is_ok());
}
