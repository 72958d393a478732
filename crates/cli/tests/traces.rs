//! What traces say: every statement that is listed is one that the model, as it is written, really takes there, and every value
//! that is shown is the one the model really has.

use crate::common::report::{report, root};
use crate::common::run::{code, run, said};
use plimsoll_lang::promela::Promela;
use plimsoll_lang::{Language, LoadedModel, Options, Source, Symbols, load_text};
use plimsoll_model::show::Describe;
use plimsoll_model::{Interp, Model, Show, Successors};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Local steps before and after what goes wrong, births, atomic sequences, rendezvous, loops that rest in the middle.
const MERGED: [(&str, &str); 7] = [
    ("index", "byte x[3]; byte i; active proctype P() { do :: i++; x[i] = 1 od }"),
    ("births", "proctype W(byte n) { printf(\"w\") ; n == 9 } init { byte i; for (i : 1 .. 3) { run W(i) } }"),
    (
        "chain",
        "byte a, b; active [2] proctype P() { byte k; k = 3; do :: k > 0 -> k--; atomic { a++; b = b + k; assert(a < 4) } \
         :: else -> break od; k = 7 }",
    ),
    (
        "meet",
        "chan c = [0] of { byte }; chan d = [1] of { byte }; active proctype S() { byte v = 5; v++; c!v; v = v * 2; d!v; v = 0 } \
         active proctype R() { byte w; w = 1; c?w; w++; d?w; assert(w == 11) }",
    ),
    (
        "dead",
        "byte t; active proctype P() { byte i = 4; byte j; j = i; i = 0; t = j; j = 9; i = 2; t = i; false } \
         active proctype Q() { byte q = 1; q++; q++; t == 4; q = 8; assert(t != 4) }",
    ),
    (
        "alike",
        "byte x; chan c = [9] of { byte }; active [2] proctype P() { byte t, u; \
         atomic { if :: t = 1 :: t = 2 :: t = 3 fi; c!t; c?u; t = 0; if :: x = x + 1 :: x = x + 2 fi; c!x; c?u }; assert(x < 4) }",
    ),
    ("stuck", "byte x; active proctype P() { x = 1; atomic { x == 1; x = 2; x == 7; x = 3 } }"),
];

/// Follows the positions of a trace on the interpreter, without anything merged or simplified, and compares.
fn hold_against_the_model(text: &str, trace: &Value) -> usize {
    let source = Source { name: "m.pml".into(), text: text.into() };
    let loaded = load_text(source, Language::Promela, &Options::default()).unwrap();
    let LoadedModel::System { mut system, symbols: Symbols::Promela(mut promela) } = loaded.model else { panic!() };
    // A model may need room for more processes than it was prepared for: then the path is followed to where it does.
    let path = loop {
        let interp = Interp::new(system);
        match follow(&interp, &promela, trace) {
            Ok(path) => break path,
            Err(request) => *promela = promela.refine(&request).expect("a request for room"),
        }
        system = promela.system().unwrap();
    };
    let mut shown: BTreeMap<String, String> = fields(&trace["initial"]).collect();
    let steps = trace["steps"].as_array().unwrap();
    assert_eq!(steps.len(), path.len() - 1);
    for (index, (statements, values)) in path.iter().enumerate() {
        if let Some(step) = index.checked_sub(1).map(|before| &steps[before]) {
            let listed: Vec<String> =
                step["acts"].as_array().unwrap().iter().map(|act| format!("{} {}", act["who"], act["text"])).collect();
            assert_eq!(listed, *statements, "step {index}");
            shown.extend(fields(&step["changes"]));
        }
        assert_eq!(shown, *values, "after step {index}");
    }
    steps.len()
}

/// The statements that lead to each state, and its values.
type Path_ = Vec<(Vec<String>, BTreeMap<String, String>)>;

/// The path of a trace, or the message of a step that needs room.
fn follow(interp: &Interp, promela: &Promela, trace: &Value) -> Result<Path_, String> {
    let show = Show::new(interp.system(), interp.layout());
    let turn = interp.system().exclusive.map(|var| interp.system().vars[var.index()].name.clone());
    let values =
        |state: &[u32]| show.fields(state).into_iter().filter(|(name, _)| Some(name) != turn.as_ref()).collect();
    let mut out = Successors::new(interp.width());
    interp.initial(&mut out);
    let positions = trace["positions"].as_array().unwrap().iter().map(|position| position.as_u64().unwrap() as usize);
    let mut path = Path_::new();
    let mut state: Option<Vec<u32>> = None;
    for position in positions {
        let Some(before) = state.take() else {
            path.push((Vec::new(), values(out.state(position))));
            state = Some(out.state(position).to_vec());
            continue;
        };
        out.clear();
        interp.successors(&before, &mut out);
        if position >= out.len() {
            return Err("the model cannot take this step".into());
        }
        let mut last = before.clone();
        for (step, after) in interp.path(&before, position) {
            let acts = show.step(step).acts;
            let statements =
                acts.iter().map(|act| format!("{:?} {}", act.who, Value::from(act.text.clone()))).collect();
            if step.is_fault() {
                let message = interp.explain(&last, step).unwrap().message;
                if promela.refine(&message).is_some() {
                    return Err(message);
                }
            } else {
                last = after;
            }
            path.push((statements, values(&last)));
            if !step.is_plain() {
                return Ok(path);
            }
        }
        state = Some(last);
    }
    Ok(path)
}

fn fields(list: &Value) -> impl Iterator<Item = (String, String)> {
    let text = |field: &Value, key: &str| field[key].as_str().unwrap().to_string();
    list.as_array().unwrap().iter().map(move |field| (text(field, "name"), text(field, "value")))
}

#[test]
fn every_statement_listed_is_taken_and_every_value_is_real() {
    let folder = tempfile::tempdir().unwrap();
    let mut statements = 0;
    for (name, text) in MERGED {
        let path = folder.path().join(format!("{name}.pml"));
        std::fs::write(&path, text).unwrap();
        for executor in ["jit", "interp"] {
            for order in ["bfs", "dfs"] {
                let arguments = [path.to_str().unwrap(), "--executor", executor, "--order", order];
                let (_, report) = report(&arguments);
                assert!(report["notes"].to_string().contains("merged"), "{name}");
                assert_eq!(report["trace"]["merge"], false, "{name}: it could not be taken apart");
                statements += hold_against_the_model(text, &report["trace"]);
            }
        }
    }
    assert!(statements > 200, "{statements} statements");
}

#[test]
fn merged_traces_of_our_models_can_be_taken_apart() {
    let mut found = 0;
    for entry in std::fs::read_dir(root().join("models/promela")).unwrap() {
        let path = entry.unwrap().path().display().to_string();
        let (ended, report) = report(&[&path, "--max-states", "20000"]);
        if (10..=12).contains(&ended) {
            assert_eq!(report["trace"]["merge"], false, "{path}");
            let folder = tempfile::tempdir().unwrap();
            let stored = folder.path().join("trace.json");
            std::fs::write(&stored, report.to_string()).unwrap();
            assert_eq!(code(&run(&["replay", &path, stored.to_str().unwrap(), "--quiet"])), 0, "{path}");
            found += 1;
        }
    }
    assert!(found > 1, "{found} models");
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_deadlock_shows_who_waits_for_what() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "chan c = [0] of { byte };\nbyte x;\nactive proctype A() {\n  x = 1;\n  if\n  :: c!3\n  :: x == 2\n  fi\n}\n";
    let text = &format!("{text}active proctype B() {{\n  byte y;\n  x == 3;\n  c?y\n}}\n");
    let model = file(folder.path(), "wait.pml", text);
    let output = said(&run(&["check", model.to_str().unwrap()]));
    assert!(
        output.contains("waits for  wait.pml:6  c!3")
            && output.contains("waits for  wait.pml:12  x == 3")
            && output.contains("or for     wait.pml:7  x == 2"),
        "{output}"
    );
    let (_, report) = report(&[model.to_str().unwrap()]);
    let stuck = &report["trace"]["stuck"];
    assert_eq!(stuck["waiting"][0]["statements"].as_array().unwrap().len(), 2, "{stuck}");
    assert!(fields(&stuck["state"]).any(|(name, value)| (name.as_str(), value.as_str()) == ("x", "1")), "{stuck}");
}

#[test]
fn no_verdict_can_be_taken_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let text = "byte x; active proctype P() { do :: x < 5 -> x++ :: else -> break od }";
    let (good, failing) = (
        file(folder.path(), "good.pml", text),
        file(folder.path(), "bad.pml", "active proctype P() { assert(false) }"),
    );
    let cases: [(&Path, &[&str], i32, &str); 7] = [
        (&good, &[], 0, "verdict: holds\n"),
        (&good, &["--find", "x == 9"], 0, "verdict: not found\n"),
        (&good, &["--find", "x == 3"], 12, "verdict: found\n"),
        (&good, &["--invariant", "x < 3"], 12, "verdict: invariant violated\n"),
        (&good, &["--max-depth", "2"], 22, "verdict: holds to this depth only\n"),
        (&good, &["--find", "x == 9", "--max-depth", "2"], 22, "verdict: not found to this depth\n"),
        (&failing, &[], 11, "verdict: assertion failed\n"),
    ];
    for (model, options, exit_code, verdict) in cases {
        let output = run(&[&["check", model.to_str().unwrap(), "--quiet"], options].concat());
        assert_eq!((code(&output), said(&output).as_str()), (exit_code, verdict), "{options:?}");
    }
    let output = said(&run(&["check", failing.to_str().unwrap()]));
    assert!(output.lines().any(|line| line.starts_with("    !  ") && line.contains("assert")), "{output}");
}

#[test]
fn a_trace_knows_under_which_options_it_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "m.pml", "byte x; active proctype P() { x = N; assert(x != 3) }\n");
    let stored = folder.path().join("t.json");
    let (model_name, stored_name) = (model.to_str().unwrap(), stored.to_str().unwrap());
    assert_eq!(code(&run(&["check", model_name, "-D", "N=3", "--trace", stored_name])), 11);
    let output = run(&["replay", model_name, stored_name]);
    assert!(code(&output) == 0 && !said(&output).contains("changed"), "{}", said(&output));
    file(folder.path(), "m.pml", "byte x; active proctype P() { x = N; assert(x != 3) }\n\n");
    let output = run(&["replay", model_name, stored_name]);
    assert!(code(&output) == 0 && said(&output).contains("m.pml has changed"), "{}", said(&output));
    let rule = "const N: 3; var x: 0..9; startstate x := 0; end; rule x < N ==> x := x + 1; end; invariant x < 5;\n";
    let model = file(folder.path(), "m.m", rule);
    let model_name = model.to_str().unwrap();
    assert_eq!(code(&run(&["check", model_name, "--const", "N=6", "--trace", stored_name])), 12);
    assert_eq!(code(&run(&["replay", model_name, stored_name])), 0);
}

#[test]
fn everything_that_is_wrong_is_shown_once_with_a_shortest_trace() {
    let folder = tempfile::tempdir().unwrap();
    let text = "byte x;\nactive [2] proctype P() {\n  do\n  :: x < 4 -> x++;\n    assert(x != 1);\n    assert(x != 3);\n    \
                atomic { x != 9; assert(x != 3) }\n  :: x == 4 -> x = 10 / (x - 4)\n  od\n}\n";
    let model = file(folder.path(), "m.pml", text);
    let name = model.to_str().unwrap();
    let arguments = [name, "--all-violations", "--invariant", "x < 2", "--invariant", "x < 3"];
    let (ended, found) = report(&arguments);
    let all: Vec<&Value> = std::iter::once(&found).chain(found["others"].as_array().unwrap()).collect();
    let said: Vec<String> = all.iter().map(|one| format!("{} {}", one["verdict"], one["reason"])).collect();
    let steps = |one: &Value| one["trace"]["positions"].as_array().unwrap().len() - 1;
    let lengths: Vec<usize> = all.iter().map(|one| steps(one)).collect();
    // Three assertions, a division by zero, two invariants, a deadlock; two processes fail alike, and that counts once.
    assert_eq!((all.len(), ended), (7, 11), "{said:#?}");
    assert!(lengths.is_sorted() && found["complete"] == true, "{lengths:?}");
    // The shortest way to each is that of a search for it alone.
    let (_, alone) = report(&[name, "--find", "x >= 3", "--merge", "off"]);
    let third = all.iter().find(|one| one["reason"].to_string().contains("x < 3")).expect("it is violated too");
    assert_eq!(steps(third), steps(&alone));
    for one in &all {
        let stored = folder.path().join("t.json");
        std::fs::write(&stored, one["trace"].to_string()).unwrap();
        assert_eq!(code(&run(&["replay", name, stored.to_str().unwrap(), "-q"])), 0, "{}", one["reason"]);
    }
    let text = run(&["check", name, "--all-violations"]);
    let text = String::from_utf8_lossy(&text.stdout).to_string();
    assert_eq!(text.matches("also: ").count(), 4, "{text}");
}
