//! What the front end makes of a model: variables, commands and their labels, conditions and stores.

use plimsoll_ir::{BinOp, Command, Expr, Faults, Kind, Narrow, PropertyKind, Stmt, System};
use plimsoll_lang::{Language, Loaded, LoadedModel, Options, Overflow, Source, load_text};

fn load(text: &str, overflow: Overflow) -> Loaded {
    let source = Source { name: "folder/test.dve".into(), text: text.into() };
    let options = Options { overflow, ..Options::default() };
    load_text(source, Language::Dve, &options).unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn system(text: &str) -> System {
    match load(text, Overflow::Wrap).model {
        LoadedModel::System { system, .. } => system,
        LoadedModel::Graph(_) => panic!("not a system"),
    }
}

/// The one command of a process with one transition.
fn command(part: &str, overflow: Overflow) -> Command {
    let text = format!(
        "const byte k = 3; byte x, a[4]; int n;
        process P {{ state s, t; init s; trans s -> s {{ {part} }}; }} system async;"
    );
    match load(&text, overflow).model {
        LoadedModel::System { system, .. } => system.commands[0].clone(),
        LoadedModel::Graph(_) => panic!("not a system"),
    }
}

#[test]
fn variables_belong_to_their_processes_and_locations_come_first() {
    let system = system(
        "byte g; channel {byte} c[2]; process P { int v = 4; state s, t; init t; trans s -> t {}; }
        process Q { state u; init u; } system async;",
    );
    let vars: Vec<(&str, Option<u32>)> =
        system.vars.iter().map(|var| (var.name.as_str(), var.owner.map(|owner| owner.0))).collect();
    assert_eq!(vars, [("g", None), ("c", None), ("P", Some(0)), ("P->v", Some(0)), ("Q", Some(1))]);
    assert_eq!(system.vars[2].init, [1]);
    assert_eq!(system.processes[0].locations, ["s", "t"]);
    assert_eq!(system.enums[0].labels, ["s", "t"]);
    assert_eq!((system.name.as_str(), system.faults), ("test", Faults::Absorb));
}

#[test]
fn commands_have_labels_lines_and_kinds() {
    let system = system(
        "byte x; channel c; channel {byte} q[2];
process S { state s, t; init s; trans
  s -> t { sync c!x; },
  t -> t { effect x = 1; },
  t -> s {},
  t -> t { sync q!1; };
}
process R { state u; init u; trans u -> u { sync c?x; }, u -> u { sync q?x; }; }
system async;",
    );
    let found: Vec<(&str, u32, Kind, usize)> = system
        .commands
        .iter()
        .map(|command| (command.label.as_str(), command.line, command.kind, command.at.len()))
        .collect();
    assert_eq!(
        found,
        [
            ("S: s -> t, R: u -> u via c", 3, Kind::Send, 2),
            ("S: t -> t", 4, Kind::Assign, 1),
            ("S: t -> s", 5, Kind::Control, 1),
            ("S: t -> t sends to q", 6, Kind::Send, 1),
            ("R: u -> u receives from q", 8, Kind::Receive, 1),
        ]
    );
}

#[test]
fn a_location_is_assigned_only_when_it_changes() {
    assert_eq!(command("", Overflow::Wrap).body, []);
    let system = system("process P { state s, t; init s; trans s -> t {}; } system async;");
    assert!(matches!(&system.commands[0].body[..], [Stmt::Assign { value: Expr::Const(1), .. }]));
}

#[test]
fn stores_are_checked_only_where_asked_and_needed() {
    let cases = [
        ("effect x = x + 1;", Overflow::Wrap, Narrow::Wrap),
        ("effect x = x + 1;", Overflow::Error, Narrow::Trap),
        ("effect x = x / 2;", Overflow::Error, Narrow::Wrap),
        ("effect x = (x + 1) % 256;", Overflow::Error, Narrow::Wrap),
        ("effect x = 300;", Overflow::Error, Narrow::Trap),
        ("effect n = x * 128;", Overflow::Error, Narrow::Wrap),
        ("effect n = x * 129;", Overflow::Error, Narrow::Trap),
    ];
    for (part, overflow, expected) in cases {
        match &command(part, overflow).body[..] {
            [Stmt::Assign { narrow, .. }] => assert_eq!(*narrow, expected, "{part}"),
            other => panic!("{part}: {other:?}"),
        }
    }
}

#[test]
fn constants_are_folded() {
    for (part, expected) in
        [("guard k * 2 == 6 && true;", 1), ("guard k < 2 || not k;", 0), ("guard -k imply false;", 0)]
    {
        assert_eq!(command(part, Overflow::Wrap).guard, Expr::Const(expected), "{part}");
    }
    assert!(
        matches!(command("guard x == k;", Overflow::Wrap).guard, Expr::Binary(BinOp::Eq, _, right) if *right == Expr::Const(3))
    );
}

#[test]
fn pairs_that_can_never_meet_are_left_out() {
    let system = system(
        "channel c; process S { state s; init s; commit s; trans s -> s { sync c!; }; }
        process R { state s; init s; trans s -> s { sync c?; }; } system async;",
    );
    assert_eq!(system.commands.len(), 0);
}

#[test]
fn properties_speak_about_everything() {
    let loaded =
        load("byte g; process P { byte v[2]; const byte k = 7; state s; init s; } system async;", Overflow::Wrap);
    for good in ["g == 1", "P.s", "P->v[g] > P->k", "P->v == 0 imply not P.s"] {
        let property = loaded.property(good, PropertyKind::Goal).unwrap();
        assert_eq!((property.name.as_str(), property.kind), (good, PropertyKind::Goal));
    }
    let cases = [
        ("h == 1", "unknown variable `h`"),
        ("v[0]", "unknown variable `v`"),
        ("P", "`P` is a process, not a variable"),
        ("Q.s", "there is no process `Q`"),
        ("P.t", "process `P` has no state `t`"),
        ("P->w", "process `P` has no variable `w`"),
        ("P->k[1]", "`k` is not an array"),
        ("g ==", "expected an expression, found the end of the text"),
        ("g == 1; g", "expected the end of the text, found `;`"),
        ("", "expected an expression, found the end of the text"),
        ("g[1]", "`g` is not an array"),
    ];
    for (bad, message) in cases {
        let errors = loaded.property(bad, PropertyKind::Invariant).unwrap_err();
        assert_eq!(errors[0].message, message, "{bad}");
    }
}
