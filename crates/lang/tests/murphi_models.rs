//! Our own Murphi models give what their heads say (format: `models/README.md`), as far as they are small enough
//! for the interpreter in a test.

use plimsoll_ir::{Symmetry, System};
use plimsoll_lang::murphi::Options;
use plimsoll_lang::{Language, LoadedModel, Source};
use plimsoll_model::symmetry::Precision;
use plimsoll_model::{Interp, Model, Successors, Symmetric};
use std::collections::HashMap;
use std::path::Path;

/// Rows with more states are left to the tests of the whole program.
const MOST_STATES: usize = 6_000;

struct Explored {
    states: usize,
    transitions: usize,
    levels: usize,
    deadlocks: usize,
    /// The nearest violation and its distance.
    verdict: Option<(&'static str, usize)>,
}

fn explore(model: &impl Model) -> Explored {
    let mut out = Successors::new(model.width());
    model.initial(&mut out);
    let mut distance: HashMap<Vec<u32>, usize> = out.iter().map(|(state, _)| (state.to_vec(), 0)).collect();
    let mut level: Vec<Vec<u32>> = distance.keys().cloned().collect();
    let mut found = Explored { states: 0, transitions: 0, levels: 0, deadlocks: 0, verdict: None };
    while !level.is_empty() {
        let mut next = Vec::new();
        for state in &level {
            if model.violated(state).is_some() {
                found.verdict.get_or_insert(("invariant", found.levels));
            }
            out.clear();
            model.successors(state, &mut out);
            if out.is_empty() {
                found.deadlocks += 1;
                found.verdict.get_or_insert(("deadlock", found.levels));
            }
            for (successor, step) in out.iter() {
                assert!(step.is_plain(), "a step goes wrong");
                found.transitions += 1;
                if !distance.contains_key(successor) {
                    distance.insert(successor.to_vec(), found.levels + 1);
                    next.push(successor.to_vec());
                }
            }
        }
        found.levels += 1;
        level = next;
    }
    found.states = distance.len();
    found
}

/// The pairs of a row of expectations.
fn pairs(row: &str) -> HashMap<String, String> {
    let mut rest = row.trim();
    let mut all = HashMap::new();
    while let Some((key, value)) = rest.split_once('=') {
        let (value, tail) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').expect("a closing quote"),
            None => value.split_once(' ').unwrap_or((value, "")),
        };
        assert!(all.insert(key.to_string(), value.to_string()).is_none(), "{key} twice in {row}");
        rest = tail.trim_start();
    }
    all
}

fn constants(options: &str) -> Vec<(String, i64)> {
    let words: Vec<&str> = options.split_whitespace().collect();
    words
        .chunks(2)
        .map(|pair| match pair {
            ["--const", setting] => {
                let (name, value) = setting.split_once('=').expect("NAME=VALUE");
                (name.to_string(), value.parse().expect("a number"))
            }
            other => panic!("unknown options {other:?}"),
        })
        .collect()
}

fn load(source: &Source, settings: &str) -> (System, Symmetry) {
    let murphi = Options { constants: constants(settings), ..Options::default() };
    let options = plimsoll_lang::Options { murphi, ..Default::default() };
    let loaded = plimsoll_lang::load_text(source.clone(), Language::Murphi, &options);
    let loaded = loaded.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let symmetry = loaded.symmetry().expect("Murphi models have one").clone();
    let LoadedModel::System { system, .. } = loaded.model else { unreachable!("Murphi gives systems") };
    (system, symmetry)
}

fn check(source: &Source, row: &str) {
    let expected = pairs(row);
    let (system, _) = load(source, expected.get("options").map_or("", String::as_str));
    let found = explore(&Interp::new(system));
    let number = |key: &str| expected.get(key).map(|value| value.parse::<usize>().expect("a number"));
    let name = format!("{}, {row}", source.name);
    if let Some(states) = number("states") {
        let counts = (found.states, found.transitions, found.levels, found.deadlocks);
        let wanted = (states, number("transitions").unwrap(), number("levels").unwrap(), number("deadlocks").unwrap());
        assert_eq!(counts, wanted, "{name}");
    } else {
        let (verdict, depth) = found.verdict.unzip();
        assert_eq!(verdict.unwrap_or("holds"), expected["verdict"], "{name}");
        assert_eq!(depth, number("depth"), "{name}");
    }
}

#[test]
fn models_give_what_their_heads_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/murphi");
    let mut rows = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let heads: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("-- expect: ")).collect();
        assert!(heads.len() >= 2, "{name} needs a row of counts and a verdict");
        let states = |row: &str| pairs(row).get("states").map(|states| states.parse::<usize>().unwrap());
        let large = |row: &str| states(row).is_some_and(|states| states > MOST_STATES);
        let options = |row: &str| pairs(row).get("options").cloned();
        let too_large: Vec<_> = heads.iter().filter(|row| large(row)).map(|row| options(row)).collect();
        let source = Source { name, text: text.clone() };
        for row in heads.iter().filter(|row| !too_large.contains(&options(row))) {
            check(&source, row);
            rows += 1;
        }
    }
    assert!(rows >= 20, "{rows}");
}

/// Rumur's exhaustive reduction gives the same for the models it accepts; the lists and `dash.m` have unions.
#[test]
fn exact_symmetry_leaves_one_state_of_each_class() {
    let cases = [
        ("directory.m", "--const N=2", 735, 2026),
        ("directory.m", "--const N=3", 4947, 19945),
        ("dash_abstract.m", "--const N=3", 3097, 11023),
        ("list.m", "--const N=3", 314, 788),
    ];
    for (name, settings, states, transitions) in cases {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/murphi").join(name);
        let source = Source { name: name.into(), text: std::fs::read_to_string(path).unwrap() };
        let (system, symmetry) = load(&source, settings);
        let model = |precision| Symmetric::new(Interp::new(system.clone()), &system, &symmetry, precision).unwrap();
        let exact = explore(&model(Precision::Exact));
        assert_eq!((exact.states, exact.transitions), (states, transitions), "{name} {settings}");
        assert!(explore(&model(Precision::Heuristic)).states >= states, "{name} {settings}");
    }
}
