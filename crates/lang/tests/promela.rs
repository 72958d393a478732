//! The meaning of Promela, one rule per case. The cases in `promela_rules.txt` carry the numbers that SPIN 6.5.2
//! gives for the plain interleaving semantics (`spin -a -o1 -o2 -o3`, `-DSAFETY -DNOREDUCE`, `pan -c0`); SPIN prints
//! one more "transition" than there are steps, because it counts the initial state.

use plimsoll_ir::PropertyKind;
use plimsoll_lang::promela::Promela;
use plimsoll_lang::{Language, Loaded, LoadedModel, Options, Source, Symbols, load_text};
use plimsoll_model::{Interp, Model, Successors};
use std::collections::{BTreeSet, HashSet};

fn try_load(text: &str, options: &Options) -> Result<Loaded, String> {
    let source = Source { name: "model.pml".into(), text: text.into() };
    load_text(source, Language::Promela, options).map_err(|error| error.render(false))
}

fn load(text: &str) -> Promela {
    let loaded = try_load(text, &Options::default()).unwrap_or_else(|message| panic!("{message}"));
    match loaded.model {
        LoadedModel::System { symbols: Symbols::Promela(model), .. } => *model,
        _ => panic!("not a Promela model"),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Explored {
    states: usize,
    steps: usize,
    deadlock: bool,
    violated: bool,
    faults: BTreeSet<String>,
    /// How often the configuration had to grow.
    refined: usize,
}

fn explore(text: &str) -> Explored {
    let mut model = load(text);
    for refined in 0..300 {
        let system = model.system().unwrap();
        plimsoll_ir::verify(&system).unwrap();
        let found = search(&Interp::new(system));
        match found.faults.iter().find_map(|fault| model.refine(fault)) {
            Some(larger) => model = larger,
            None => return Explored { refined, ..found },
        }
    }
    panic!("the configuration grows for ever");
}

fn search(interp: &Interp) -> Explored {
    let mut out = Successors::new(interp.width());
    interp.initial(&mut out);
    let mut open: Vec<Vec<u32>> = out.iter().map(|(state, _)| state.to_vec()).collect();
    let mut seen: HashSet<Vec<u32>> = open.iter().cloned().collect();
    let mut found = Explored::default();
    while let Some(state) = open.pop() {
        found.violated |= interp.violated(&state).is_some();
        out.clear();
        interp.successors(&state, &mut out);
        found.deadlock |= out.is_empty() && !interp.accepts_end(&state) && !interp.conventions().deadlock_is_fine;
        for (next, step) in out.iter() {
            if step.is_fault() {
                found.faults.extend(interp.explain(&state, step).map(|explanation| explanation.message));
                continue;
            }
            found.steps += 1;
            found.violated |= step.is_violation();
            if seen.insert(next.to_vec()) {
                open.push(next.to_vec());
            }
        }
    }
    found.states = seen.len();
    found
}

#[test]
fn every_rule_has_the_numbers_of_spin() {
    let rules = include_str!("promela_rules.txt");
    let mut wrong = Vec::new();
    let cases: Vec<&str> = rules.split("## ").skip(1).collect();
    assert!(cases.len() > 60);
    for case in cases {
        let (name, rest) = case.split_once('\n').unwrap();
        let (wanted, text) = rest.split_once('\n').unwrap();
        let found = explore(text);
        let verdict = match (found.deadlock, found.violated) {
            (false, false) => "fine",
            (true, false) => "dead",
            (false, true) => "assert",
            (true, true) => "dead assert",
        };
        let got = format!("# {} states, {} steps, {verdict}", found.states, found.steps);
        if got != wanted || !found.faults.is_empty() {
            wrong.push(format!("{name}: wanted {wanted}, got {got} {:?}", found.faults));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_goes_wrong_at_run_time_is_a_fault() {
    let cases = [
        ("byte a[2], i = 2; active proctype P() { a[i] = 1 }", "out of bounds"),
        ("byte i, x; active proctype P() { x = 3 / i }", "division by zero"),
        ("byte x; active proctype P() { d_step { x = 1; x == 2; x = 3 } }", "blocked"),
        ("chan c; active proctype P() { c!1 }", "uninitialised channel"),
        ("chan c; active proctype P() { if :: nempty(c) :: else fi }", "uninitialised channel"),
        ("chan c = [1] of { byte, byte }; active proctype P() { c!1 }", "2 fields, not 1"),
        ("chan c = [0] of { byte }; active proctype P() { c?[1] }", "cannot be polled"),
        ("chan q[2] = [1] of { byte }; byte i = 2; active proctype P() { q[i]!1 }", "out of bounds"),
        // The channel died with its process.
        (
            "chan g = [1] of { chan }; active proctype P() { chan q; run Q(); g?q; _nr_pr == 1; q!3 } proctype Q() { chan c = [1] of { byte }; g!c }",
            "channel",
        ),
    ];
    for (text, wanted) in cases {
        let found = explore(text);
        assert!(found.faults.iter().any(|fault| fault.contains(wanted)), "{text}: {:?}", found.faults);
    }
}

#[test]
fn a_part_that_is_not_evaluated_does_no_harm() {
    let found = explore(
        "chan q[2] = [1] of { byte }; byte i; active proctype P() { do :: i < 2 && empty(q[i]) -> i++ :: i >= 2 || full(q[i]) -> break od }",
    );
    assert_eq!(found.faults, BTreeSet::new());
}

#[test]
fn processes_without_end_are_reported_not_counted() {
    let found = explore("proctype P() { run P() } init { run P() }");
    assert_eq!(found.faults.into_iter().collect::<Vec<_>>(), ["more than 255 processes"]);
    assert!(found.refined > 200);
}

#[test]
fn a_never_claim_must_not_reach_its_end() {
    let claims = [
        // Within an atomic sequence the claim does not look.
        (
            "byte x; active proctype P() { atomic { x = 1; x = 2 } } never { do :: x != 1 :: x == 1 -> break od }",
            (3, 3, false),
        ),
        // It goes on when the system has come to rest.
        (
            "byte x; active proctype P() { x = 1 } never { do :: x == 0 :: x == 1 -> break od; skip; skip; skip; skip; skip }",
            (8, 7, true),
        ),
        // Nor does it look in the middle of a rendezvous.
        (
            "byte x; chan c = [0] of { byte }; active proctype P() { c!1; x = 5 } active proctype Q() { byte y; c?y; x = 3 } never { do :: x == 0 :: x == 5 -> break od }",
            (5, 4, true),
        ),
        // What it may ask about processes.
        (
            "byte x; active proctype P() { x = 1; x == 2; x = 3 } active proctype Q() { x = 2 } never { do :: pc_value(0) < 3 od }",
            (10, 11, false),
        ),
        (
            "byte x; active proctype P() { x = 1; x == 2; x = 3 } active proctype Q() { x = 2 } never { do :: enabled(0) od }",
            (6, 5, false),
        ),
        // With a claim, being stuck is no error.
        ("byte x; active proctype P() { x = 1; x == 2 } never { do :: x < 7 od }", (2, 2, false)),
        ("byte x; active proctype P() { x = 1; x = 2 } never { do :: assert(x < 2) od }", (4, 4, true)),
    ];
    for (text, wanted) in claims {
        let found = explore(text);
        assert_eq!((found.states, found.steps, found.violated), wanted, "{text}");
        assert!(!found.deadlock, "{text}");
    }
}

#[test]
fn properties_are_given_over_global_names() {
    let text =
        "mtype = { idle, busy }; mtype s = idle; byte n[2]; active proctype P() { byte k; s = busy; work: n[1] = 7 }";
    let model = load(text);
    let reached = |expression: &str| {
        let mut system = model.system().unwrap();
        system.properties.push(model.property(expression, PropertyKind::Goal).unwrap());
        search(&Interp::new(system)).violated
    };
    assert!(reached("s == busy && n[1] == 7"));
    assert!(!reached("s == idle && n[1] == 7"));
    assert!(reached("P@work && s == busy") && !reached("P@work && n[1] > 0"));
    for wrong in ["k == 1", "s ==", "n == 1", "P@nowhere", "run P()", "s == busy )", "h == 0"] {
        assert!(model.property(wrong, PropertyKind::Goal).is_err(), "{wrong}");
    }
}

#[test]
fn properties_that_cannot_be_checked_yet_are_refused_unless_ignored() {
    for part in ["ltl p { [] x == 0 }", "trace { do :: c!1 od }"] {
        let text = format!("byte x; chan c = [1] of {{ byte }}; active proctype P() {{ x = 1 }} {part}");
        let message = try_load(&text, &Options::default()).unwrap_err();
        assert!(message.contains("not checked yet") && message.contains("--ignore-property"), "{message}");
        try_load(&text, &Options { ignore_property: true, ..Options::default() }).unwrap();
    }
}

#[test]
fn an_ignored_property_still_makes_locations() {
    let model = "byte x; active proctype P() { x = 1; spot: goto away; away: x = 2 }";
    let count = |text: &str| {
        let loaded = try_load(text, &Options { ignore_property: true, ..Options::default() }).unwrap();
        let LoadedModel::System { system, .. } = loaded.model else { panic!() };
        search(&Interp::new(system)).states
    };
    let (plain, claim) = (count(model), format!("{model} never {{ do :: P@spot -> break :: else od }}"));
    // Not that it should, but SPIN's numbers depend on it.
    assert_eq!((plain, count(&claim), count(&format!("{model} ltl p {{ <> P@spot }}"))), (4, 5, 5));
}

#[test]
fn definitions_come_from_outside_too() {
    let mut options = Options::default();
    options.promela.defines = vec!["N=3".into(), "FAST".into()];
    let text = "#ifdef FAST\nactive [N] proctype P() { skip }\n#endif";
    let loaded = try_load(text, &options).unwrap();
    let LoadedModel::System { system, .. } = loaded.model else { panic!() };
    assert_eq!(system.processes.len(), 3);
}

/// The first line of each message.
fn errors(text: &str) -> Vec<String> {
    let message = match try_load(text, &Options::default()) {
        Ok(_) => return Vec::new(),
        Err(message) => message,
    };
    message.lines().filter_map(|line| line.strip_prefix("error: ")).map(str::to_string).collect()
}

#[test]
fn messages_name_what_is_wrong() {
    let cases = [
        ("active proctype P() { x = 1 }", "x is not declared"),
        ("byte x; active proctype P() { byte x; x = 1 }", "x is declared already"),
        ("active proctype P() { goto nowhere }", "there is no label nowhere"),
        ("active proctype P() { L: skip; L: skip }", "there is already a label L"),
        ("active proctype P() { break }", "break stands outside a loop"),
        ("active proctype P() { if :: else :: else fi }", "a selection has two else"),
        ("active proctype P() { L: goto L }", "jumps go in a circle without any statement"),
        ("init { run Q() }", "there is no proctype Q"),
        (
            "byte x; active proctype P() { x = 1 } never { byte k; do :: x < 2 -> k = 1 od }",
            "a never claim cannot have variables of its own, such as k",
        ),
        ("active proctype P() { d_step { goto L }; L: skip }", "there is no label L"),
        ("proctype Q(byte a) { skip } init { run Q() }", "proctype Q takes 1 parameters, not 0"),
        ("byte a[2]; active proctype P() { a = 1 }", "an index is missing: this is an array"),
        ("byte a; active proctype P() { a[1] = 1 }", "only an array has an index"),
        ("byte a; active proctype P() { a!1 }", "this is not a channel"),
        ("typedef T { byte f }; T t; active proctype P() { t.g = 1 }", "type T has no field g"),
        (
            "active proctype P() { byte x; c_code { x = 1; } }",
            "c_code is not supported: models are executed without a C compiler",
        ),
        (
            "active proctype P() priority 3 { skip }",
            "priorities are not supported: a process may move here whenever it can",
        ),
        ("active proctype P() { skip skip }", "expected `;` or `->` between statements, found `skip`"),
        ("inline a() { b() } inline b() { a() } active proctype P() { a() }", "inline a calls itself"),
        ("unsigned x; active proctype P() { skip }", "an unsigned variable needs a width, as in `unsigned x : 3`"),
        ("byte x; proctype P() { skip }", "no process is active: there is neither init nor active proctype"),
        ("byte x;", "the model has no proctype and no init"),
        (
            "active proctype P() { skip; chan c = [1] of { byte } }",
            "a channel can only be created at the start of a body",
        ),
        ("#if 1\nactive proctype P() { skip }", "this conditional has no #endif"),
        ("init { skip }\n/* open\nactive proctype P() { assert(false) }", "this comment does not end"),
        ("init { printf(\"open) }\nactive proctype P() { assert(false) }", "this string does not end on its line"),
        ("byte a[2]; init { a[1][0] = 1 }", "only an array has an index"),
        (
            "byte z; int x[1000000]; active proctype P() { x[3] = 1; z = x[999999] }",
            "a state has at most 65536 words of 32 bits, not 1000001: this alone takes 1000000",
        ),
        (
            "chan c[200] = [255] of { int, int }; active proctype P() { byte i; c[i]!1,2; c[i]?_,_ }",
            "a state has at most 65536 words of 32 bits, not 102051: this alone takes 102050",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(errors(text).first().map(String::as_str), Some(wanted), "{text}");
    }
}

#[test]
fn constants_that_do_not_fit_are_warned_of() {
    let warnings = |text: &str, defines: &[&str]| -> Vec<String> {
        let mut options = Options::default();
        options.promela.defines = defines.iter().map(|define| define.to_string()).collect();
        let found = try_load(text, &options).unwrap_or_else(|message| panic!("{message}")).warnings;
        found.into_iter().map(|warning| warning.message).collect()
    };
    let in_byte = ["300 does not fit the variable, which holds 0 to 255"];
    assert_eq!(warnings("byte x = 300; init { skip }", &[]), in_byte);
    assert_eq!(warnings("byte x[2] = { 1, 300 }; init { skip }", &[]), in_byte);
    assert_eq!(warnings("byte x; inline f() { x = 300 } init { f() }", &[]), in_byte);
    assert_eq!(warnings("unsigned x : 3 = 8; init { skip }", &[]).len(), 1);
    assert_eq!(warnings("int x; init { x = 4294967296 }", &[]), ["4294967296 does not fit an int, it counts as 0"]);
    let fine = "int x = -2147483648; short y = -1; bit z = 1; byte w = 'a'; init { x = 2147483647; w = 255 }";
    assert!(warnings(fine, &[]).is_empty());
    assert_eq!(warnings("init { skip }", &["MAX=3"]), ["-D MAX=3 changes nothing: MAX does not occur"]);
}

#[test]
fn the_label_of_a_for_loop_is_whole() {
    let system = load("byte i; init { for (i : 1 .. 3) { skip } }").system().unwrap();
    let names: Vec<&str> = system.commands.iter().map(|command| command.label.as_str()).collect();
    assert!(names.iter().any(|name| name.contains("for (i : 1 .. 3)")), "{names:?}");
}

#[test]
fn several_errors_are_reported_at_once() {
    let found = errors("active proctype P() { x = 1; y = (2; z++ }\nactive proctype Q() { do :: a -> od; b = 1 }");
    assert!(found.len() >= 5, "{found:?}");
}
