//! Runs the models of `murphi_rules.txt` on the interpreter and compares what comes out.

use plimsoll_lang::murphi::{Dialect, Options};
use plimsoll_lang::{Language, LoadError, LoadedModel, Source};
use plimsoll_model::{Interp, Model, Successors};
use std::collections::{HashSet, VecDeque};

/// What a model gives, in the words of the file.
#[derive(Debug, PartialEq)]
enum Outcome {
    Explored { verdict: &'static str, states: usize, rules: usize },
    Error(String),
    Reject(String),
}

fn load(text: &str, dialect: Dialect) -> Result<plimsoll_ir::System, LoadError> {
    let source = Source { name: "model.m".into(), text: text.into() };
    let options = plimsoll_lang::Options {
        murphi: Options { dialect, ..Options::default() },
        ..plimsoll_lang::Options::default()
    };
    match plimsoll_lang::load_text(source, Language::Murphi, &options)?.model {
        LoadedModel::System { system, .. } => Ok(system),
        LoadedModel::Graph(_) => unreachable!("Murphi gives systems"),
    }
}

fn run(text: &str, dialect: Dialect) -> Outcome {
    match load(text, dialect) {
        Ok(system) => explore(&Interp::new(system)),
        Err(LoadError::Diagnostics { diagnostics, .. }) => {
            Outcome::Reject(diagnostics.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("; "))
        }
        Err(other) => panic!("{other}"),
    }
}

/// Explores everything; the verdict is that of a nearest violation.
fn explore(model: &Interp) -> Outcome {
    let mut out = Successors::new(model.width());
    let (mut seen, mut queue) = (HashSet::new(), VecDeque::new());
    let (mut verdict, mut rules) = ("ok", 0);
    model.initial(&mut out);
    for (state, step) in out.iter() {
        if step.is_fault() {
            return Outcome::Error(model.explain_initial(step).expect("it went wrong").message);
        }
        if seen.insert(state.to_vec()) {
            queue.push_back(state.to_vec());
        }
    }
    while let Some(state) = queue.pop_front() {
        if verdict == "ok" && model.violated(&state).is_some() {
            verdict = "invariant";
        }
        out.clear();
        model.successors(&state, &mut out);
        for (next, step) in out.iter() {
            if step.is_fault() {
                return Outcome::Error(model.explain(&state, step).expect("it went wrong").message);
            }
            rules += 1;
            if seen.insert(next.to_vec()) {
                queue.push_back(next.to_vec());
            }
        }
        if verdict == "ok" && out.iter().all(|(next, _)| next == state) {
            verdict = "deadlock";
        }
    }
    Outcome::Explored { verdict, states: seen.len(), rules }
}

fn check(title: &str, expected: &str, found: &Outcome) -> Option<String> {
    let (kind, rest) = expected.split_once(' ').expect("an expectation has two parts");
    let matches = match found {
        Outcome::Explored { verdict, states, rules } => *verdict == kind && rest == format!("{states} {rules}"),
        Outcome::Error(message) => kind == "error" && message.contains(rest.trim_matches('"')),
        Outcome::Reject(message) => kind == "reject" && message.contains(rest.trim_matches('"')),
    };
    (!matches).then(|| format!("{title}: expected {expected}, found {found:?}"))
}

#[test]
fn every_rule_of_the_language_is_kept() {
    let file = include_str!("murphi_rules.txt");
    let mut wrong = Vec::new();
    let mut count = 0;
    for section in file.split("\n=== ").skip(1) {
        let (title, mut text) = section.split_once('\n').expect("a title");
        let mut expectations = Vec::new();
        while let Some((expectation, rest)) = text.split_once('\n')
            && let Some((who, expected)) = expectation.split_once(": ")
            && let "both" | "cmurphi" | "rumur" = who
        {
            expectations.push((who, expected));
            text = rest;
        }
        for (who, expected) in expectations {
            for (name, dialect) in [("cmurphi", Dialect::Cmurphi), ("rumur", Dialect::Rumur)] {
                if who == "both" || who == name {
                    count += 1;
                    wrong.extend(check(&format!("{title} ({name})"), expected, &run(text, dialect)));
                }
            }
        }
    }
    assert!(count > 130, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn constants_are_set_from_outside() {
    let text = "const N: 3; M: N + 1; var x: 0..N; startstate x := 0; end; rule true ==> x := (x + 1) % M; end;";
    let source = Source { name: "model.m".into(), text: text.into() };
    let count = |constants: &[(&str, i64)]| {
        let constants = constants.iter().map(|&(name, value)| (name.to_string(), value)).collect();
        let murphi = Options { constants, ..Options::default() };
        let options = plimsoll_lang::Options { murphi, ..plimsoll_lang::Options::default() };
        let loaded = plimsoll_lang::load_text(source.clone(), Language::Murphi, &options).ok()?;
        match loaded.model {
            LoadedModel::System { system, .. } => match explore(&Interp::new(system)) {
                Outcome::Explored { states, .. } => Some(states),
                other => panic!("{other:?}"),
            },
            LoadedModel::Graph(_) => None,
        }
    };
    assert_eq!(count(&[]), Some(4));
    assert_eq!(count(&[("N", 9)]), Some(10));
    assert_eq!(count(&[("n", 9)]), None, "there is no such constant");
}

#[test]
fn expressions_over_a_model_become_properties() {
    let text = "type e: enum {a, b}; var x: 0..3; y: e; function f(): boolean; begin return x = 2; end; \
                startstate x := 0; y := a; end; rule true ==> x := (x + 1) % 4; end;";
    let source = Source { name: "model.m".into(), text: text.into() };
    let loaded = plimsoll_lang::load_text(source, Language::Murphi, &Default::default()).unwrap();
    let kind = plimsoll_ir::PropertyKind::Invariant;
    for good in ["x < 4", "y = a", "!f() | x = 2", "forall i: 0..3 do x != i | y = a end"] {
        assert!(loaded.property(good, kind).is_ok(), "{good}");
    }
    for bad in ["x", "z = 1", "x <", "y = 1"] {
        let errors = loaded.property(bad, kind).unwrap_err();
        assert!(!errors.is_empty(), "{bad}");
    }
}

#[test]
fn commands_carry_names_lines_and_parameters() {
    let text = "type s: scalarset(2); var x: s;\nstartstate undefine x; end;\n\nruleset i: s do rule \"take\" true ==> x := i; end; end;";
    let system = load(text, Dialect::Cmurphi).unwrap();
    let command = &system.commands[0];
    assert_eq!((command.label.as_str(), command.line), ("take", 4));
    let choice = &command.choices[0];
    let (name, ty) = &command.temps[choice.temp.index()];
    let names = ty.as_scalar().unwrap().names.unwrap();
    let labels = &system.enums[names.0 as usize];
    assert_eq!((name.as_str(), labels.label(choice.low), labels.label(choice.high)), ("i", Some("s_1"), Some("s_2")));
}

#[test]
fn broken_text_never_panics() {
    let file = include_str!("murphi_rules.txt");
    for section in file.split("\n=== ").skip(1) {
        let text = section.split_once('\n').expect("a title").1;
        for cut in (0..text.len()).step_by(7).filter(|&cut| text.is_char_boundary(cut)) {
            let _ = load(&text[..cut], Dialect::Cmurphi);
            let _ = load(&text[cut..], Dialect::Rumur);
        }
    }
}
