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
        let heuristic = explore(&model(Precision::Heuristic));
        assert!(heuristic.states >= states, "{name} {settings}");
        for (precision, found) in [(Precision::Exact, exact), (Precision::Heuristic, heuristic)] {
            let native = explore(&model(precision).in_native_code());
            let counts = |found: &Explored| (found.states, found.transitions, found.levels, found.deadlocks);
            assert_eq!(counts(&native), counts(&found), "{name} {settings} {precision:?}");
        }
    }
}

/// A rule that takes a message and puts it back changes nothing, wherever that comes to lie.
#[test]
fn what_only_moves_in_a_multiset_is_no_progress() {
    let text = "
type node: scalarset(2); message: record kind: 0..1; tag: 0..1; end;
var net: multiset [3] of message; busy: array [node] of boolean;
startstate var last: message; begin
    for n: node do busy[n] := false; end;
    for i: 0..1 do last.kind := i; last.tag := i; multisetadd(last, net); end;
end;
choose m: net do rule \"again\" var taken: message; begin
    taken := net[m]; multisetremove(m, net); multisetadd(taken, net);
end; end;
";
    let (system, symmetry) = load(&Source { name: "m".into(), text: text.into() }, "");
    for precision in [Precision::Exact, Precision::Heuristic] {
        let model = || Symmetric::new(Interp::new(system.clone()), &system, &symmetry, precision).unwrap();
        assert_eq!((explore(&model()).deadlocks, explore(&model().in_native_code()).deadlocks), (1, 1));
    }
}

/// States, transitions and deadlocks of a model whose procedures of up to so many nodes are expanded.
fn counts(text: &str, constants: &[(String, i64)], expanded: usize) -> (usize, usize, usize) {
    let source = Source { name: "m".into(), text: text.into() };
    let options = Options { expanded: Some(expanded), constants: constants.to_vec(), ..Options::default() };
    let (system, ..) = plimsoll_lang::murphi::load(&source, &options).unwrap_or_else(|_| panic!("{text}"));
    let found = explore(&Interp::new(plimsoll_ir::passes::optimise(system)));
    (found.states, found.transitions, found.deadlocks)
}

#[test]
fn what_is_called_does_what_is_expanded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/murphi");
    let two = [("N".to_string(), 2)];
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let models = ["dash_abstract.m", "dash.m", "directory.m"].map(|name| (read(name), &two[..]));
    for (text, constants) in models.into_iter().chain([ALIASES, UNIONS].map(|text| (text.to_string(), &[][..]))) {
        assert_eq!(counts(&text, constants, 0), counts(&text, constants, usize::MAX), "{text}");
    }
}

/// A union that is none of its members' values, given to parameters of one of their types.
const UNIONS: &str = "
type client: scalarset(2); server: scalarset(1); any: union {client, server};
var from: any; kept: client; same: boolean;
function is_kept(c: client): boolean; begin return c = kept; end;
procedure note(c: client); begin same := is_kept(c); end;
startstate begin undefine from; same := false; for c: client do kept := c; end; end;
ruleset a: any do rule \"send\" begin from := a; same := false; end; end;
rule \"look\" !isundefined(from) ==> begin note(from); end;
";

/// One variable under several names, undefined parameters, results that are records, recursion.
const ALIASES: &str = "
type node: scalarset(2); value: 0..2; message: record src: node; val: value; left: boolean; end;
    queue: record count: 0..2; slots: array [0..1] of message; end;
var net: array [node] of queue; bag: array [node] of multiset [2] of message; sum: 0..9; owner: node;
procedure push(var q: queue; m: message);
begin if q.count < 2 then q.slots[q.count] := m; q.count := q.count + 1; end; end;
function pop(var q: queue): message;
var m: message;
begin
    m := q.slots[0]; q.slots[0] := q.slots[1]; undefine q.slots[1]; q.count := q.count - 1; return m;
end;
function make(src: node; val: value): message;
var m: message;
begin m.src := src; if !isundefined(val) then m.val := val; end; m.left := val = 1; return m; end;
procedure twice(var a: queue; var b: queue; m: message); begin push(a, m); push(b, m); end;
procedure follow(m: message; var q: queue);
begin q.slots[0].val := 2; if !isundefined(m.val) & m.val = 2 then sum := 2; else sum := 1; end; end;
procedure swap(var a: message; var b: message); var h: message; begin h := a; a := b; b := h; end;
function total(n: value): value; begin if n = 0 then return 0; end; return (n + total(n - 1)) % 3; end;
procedure keep(m: message; n: node);
begin if multisetcount(i: bag[n], true) < 2 then multisetadd(m, bag[n]); end; end;
startstate begin
    for n: node do undefine net[n]; net[n].count := 0; undefine bag[n]; end; sum := 0; undefine owner;
end;
ruleset n: node do
    ruleset v: value do rule net[n].count < 2 ==> push(net[n], make(n, v)); owner := n; end; end;
    rule net[n].count = 2 ==> var m: message; begin m := pop(net[n]); keep(m, m.src); end;
    rule net[n].count = 0 ==> twice(net[n], net[n], make(n, total(2))); end;
    rule net[n].count > 0 ==> follow(net[n].slots[0], net[n]); end;
    rule net[n].count = 2 ==> swap(net[n].slots[0], net[n].slots[1]); end;
    rule net[n].count = 2 ==> var a, b: message; begin a := net[n].slots[0]; swap(a, a); b := a; swap(a, b); keep(b, n); end;
    choose i: bag[n] do rule true ==> multisetremove(i, bag[n]); end; end;
end;";
