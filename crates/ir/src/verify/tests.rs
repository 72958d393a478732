use super::*;
use crate::expr::{BinOp, Expr, Narrow, Place, Root, Stmt, UnOp};
use crate::system::{Choice, ProcessId, PropertyKind, TempId, VarId};
use crate::types::EnumId;

/// One process with two locations, an array of records and a flag.
fn sample() -> System {
    let mut system = System::new("sample");
    let location = system.var("pc", Scalar::range(0, 1), Some(ProcessId(0)));
    system.processes.push(Process { name: "P".into(), location, locations: vec!["a".into(), "b".into()] });
    let record = Type::Record(vec![("f".into(), Scalar::U8.into()), ("g".into(), Scalar::range(1, 5).into())]);
    system.var("r", Type::array(record, 3), None);
    system.var("flag", Scalar::BOOL, None);
    let mut command = Command::new("go");
    command.at.push((ProcessId(0), 0));
    let temp = command.temp("i", Scalar::range(0, 2));
    command.choices.push(Choice { temp, low: 0, high: 2 });
    command.body.push(Stmt::assign(VarId(0), 1, Narrow::Trap));
    system.commands.push(command);
    system
}

fn record(field: u32) -> Place {
    Place::from(VarId(1)).index(Expr::read(TempId(0))).field(field)
}

/// Verifies the sample after a change and expects one flaw that mentions `message`.
#[track_caller]
fn refused(message: &str, change: impl FnOnce(&mut System)) {
    let mut system = sample();
    change(&mut system);
    let flaws = verify(&system).expect_err("a flaw");
    assert!(flaws.iter().any(|flaw| flaw.to_string().contains(message)), "{flaws:?}");
}

#[track_caller]
fn accepted(change: impl FnOnce(&mut System)) {
    let mut system = sample();
    change(&mut system);
    verify(&system).unwrap();
}

fn body(stmt: Stmt) -> impl FnOnce(&mut System) {
    move |system| system.commands[0].body.push(stmt)
}

fn guard(expr: Expr) -> impl FnOnce(&mut System) {
    move |system| system.commands[0].guard = expr
}

#[test]
fn the_sample_is_fine() {
    accepted(|_| {});
    accepted(body(Stmt::assign(record(0), 300, Narrow::Wrap)));
    accepted(body(Stmt::assign(record(1), 300, Narrow::Trap)));
    accepted(body(Stmt::Copy { to: Place::from(VarId(1)).index(0), from: Place::from(VarId(1)).index(1) }));
}

#[test]
fn types_are_checked() {
    let with = |ty: Type| move |system: &mut System| _ = system.var("x", ty, None);
    refused("is empty", with(Scalar::range(3, 2).into()));
    refused("more than 32 bits", with(Scalar::range(0, 1 << 32).into()));
    refused("more than 32 bits", with(Scalar::range(i64::MIN, i64::MAX).into()));
    refused("no elements", with(Type::array(Scalar::BOOL.into(), 0)));
    refused("no fields", with(Type::Record(Vec::new())));
    refused("no enumeration", with(Scalar { names: Some(EnumId(0)), ..Scalar::BOOL }.into()));
    let huge = (0..20).fold(Type::from(Scalar::U8), |ty, _| Type::array(ty, u32::MAX));
    refused("scalars are more", with(huge));
    refused("words", with(Type::array(Scalar::I32.into(), 1 << 17)));
    accepted(with(Type::array(Scalar::BOOL.into(), 1 << 20)));
    refused("nested", with((0..100).fold(Type::from(Scalar::U8), |ty, _| Type::array(ty, 1))));
    refused("scalars are more", |system| {
        _ = system.commands[0].temp("t", Type::array(Type::array(Scalar::U8.into(), u32::MAX), 9))
    });
}

#[test]
fn initial_values_are_checked() {
    refused("initial values", |system| system.vars[1].init = vec![1, 2]);
    refused("does not fit", |system| system.vars[2].init = vec![2]);
    refused("does not fit", |system| system.vars[1].init = vec![0, -1, 0, 0, 0, 0]);
    accepted(|system| system.vars[1].init = vec![255, 7, 0, 0, 0, 0]);
    refused("owner", |system| system.vars[2].owner = Some(ProcessId(1)));
}

#[test]
fn processes_are_checked() {
    refused("not a scalar", |system| system.processes[0].location = VarId(1));
    refused("not a scalar", |system| system.processes[0].location = VarId(9));
    refused("does not range", |system| system.processes[0].locations.push("c".into()));
    refused("no locations", |system| system.processes[0].locations.clear());
    refused("shares", |system| system.processes.push(system.processes[0].clone()));
}

#[test]
fn commands_are_checked() {
    refused("no process", |system| system.commands[0].at.push((ProcessId(1), 0)));
    refused("no location", |system| system.commands[0].at[0].1 = 2);
    refused("twice", |system| system.commands[0].at.push((ProcessId(0), 1)));
    refused("sorted", |system| system.commands.insert(0, Command::new("late")));
    accepted(|system| system.commands.push(Command::new("late")));
    refused("not held", |system| system.commands[0].choices[0].temp = TempId(1));
    refused("over nothing", |system| system.commands[0].choices[0].low = 3);
    refused("does not fit", |system| system.commands[0].choices[0].high = 3);
    refused("shares", |system| {
        let again = system.commands[0].choices[0].clone();
        system.commands[0].choices.push(again)
    });
    refused("instances", |system| {
        for _ in 0..5 {
            let temp = system.commands[0].temp("t", Scalar::U8);
            system.commands[0].choices.push(Choice { temp, low: 0, high: 255 });
        }
    });
}

#[test]
fn expressions_are_checked() {
    refused("no variable", guard(Expr::read(VarId(3))));
    refused("no temporary", guard(Expr::read(TempId(1))));
    refused("used as a scalar", guard(Expr::read(VarId(1))));
    refused("no array", guard(Expr::read(Place::from(VarId(2)).index(0))));
    refused("no record", guard(Expr::read(Place::from(VarId(2)).field(0))));
    refused("no field", guard(Expr::read(record(2))));
    refused("no variable", guard(Expr::read(Place::from(VarId(1)).index(Expr::read(VarId(7))).field(0))));
    refused("wrapping to 0", guard(Expr::wrap(0, true, Expr::TRUE)));
    refused("wrapping to 65", guard(Expr::wrap(65, true, Expr::TRUE)));
    accepted(guard(Expr::wrap(64, true, Expr::TRUE)));
}

#[test]
fn statements_are_checked() {
    refused("wrapping store", body(Stmt::assign(record(1), 0, Narrow::Wrap)));
    refused("different types", body(Stmt::Copy { to: record(0), from: record(1) }));
    refused("used as a scalar", body(Stmt::assign(VarId(1), 0, Narrow::Trap)));
    refused("break", body(Stmt::Break(0)));
    refused(
        "break",
        body(Stmt::Block(vec![Stmt::If { condition: Expr::TRUE, then: vec![Stmt::Break(1)], otherwise: vec![] }])),
    );
    accepted(body(Stmt::Loop { limit: 0, body: vec![Stmt::Block(vec![Stmt::Break(1)])] }));
    refused("rounds", body(Stmt::Loop { limit: u32::MAX - 1, body: vec![] }));
    let prelude = |stmt: Stmt| move |system: &mut System| system.commands[0].prelude.push(stmt);
    refused("writes to the state", prelude(Stmt::Reset(VarId(1).into())));
    refused("asserts", prelude(Stmt::Assert { condition: Expr::TRUE, message: String::new() }));
    accepted(prelude(Stmt::Discard));
    accepted(prelude(Stmt::assign(TempId(0), 1, Narrow::Trap)));
}

#[test]
fn properties_and_conventions_are_checked() {
    let property = |prelude: Vec<Stmt>, expr: Expr| {
        move |system: &mut System| {
            let kind = PropertyKind::Invariant;
            let temps = vec![("t".into(), Scalar::BOOL.into())];
            system.properties.push(Property { name: "p".into(), line: 0, kind, temps, prelude, expr });
        }
    };
    accepted(property(vec![Stmt::Reset(TempId(0).into())], Expr::read(TempId(0))));
    refused("discards", property(vec![Stmt::Discard], Expr::TRUE));
    refused("no temporary", property(vec![], Expr::read(TempId(1))));
    let accept = |expr| move |system: &mut System| system.deadlock = Deadlock::Stuck { accepted: Some(expr) };
    accepted(accept(Expr::read(VarId(2))));
    refused("no temporary", accept(Expr::read(TempId(0))));
    refused("exclusive", |system| system.exclusive = Some(VarId(1)));
    accepted(|system| system.exclusive = Some(VarId(2)));
}

#[test]
fn deep_nesting_is_refused_and_the_limit_itself_is_walked() {
    let nested = |depth| (0..depth).fold(Expr::read(VarId(2)), |value, _| Expr::unary(UnOp::Neg, value));
    accepted(guard(nested(DEPTH_LIMIT - 1)));
    refused("nested", guard(nested(DEPTH_LIMIT)));
    refused("nested", guard(nested(20 * DEPTH_LIMIT)));
    let chain = (0..5000).fold(Expr::TRUE, |left, _| Expr::binary(BinOp::And, left, Expr::TRUE));
    refused("nested", guard(chain));
    let index = (0..DEPTH_LIMIT).fold(Expr::Const(0), |value, _| {
        Expr::read(Place { root: Root::Var(VarId(1)), path: Vec::new() }.index(value).field(0))
    });
    refused("nested", guard(index));
    let block = (0..DEPTH_LIMIT).fold(Stmt::Discard, |inner, _| Stmt::Block(vec![inner]));
    refused("nested", body(block));
}

/// The flaws of a system in text.
fn flaws_of(text: &str) -> String {
    let system = crate::text::parse(&format!("system \"t\" var x: 0..3 var a: [2] 0..3 {text}")).unwrap();
    verify(&system).err().unwrap_or_default().iter().map(|flaw| flaw.to_string()).collect::<Vec<_>>().join("; ")
}

#[test]
fn calls_are_checked() {
    let called = |procedure: &str, call: &str| {
        flaws_of(&format!("{procedure} command \"c\" {{ temp t: 0..3 temp b: 0..1 do {{ call p({call}); }} }}"))
    };
    let plain = "procedure \"p\" { reference r: 0..3 input i: 0..3 output i do { &0 := i; } }";
    assert_eq!(called(plain, "a[t]; t; t"), "");
    assert!(called(plain, "t; t; t").contains("refers to a temporary"));
    assert!(called(plain, "x; b; t").contains("another type"));
    assert!(called(plain, "x; t; b").contains("another type"));
    assert!(called(plain, "; t; t").contains("0 places instead of 1"));
    let in_prelude =
        |body: &str, what: &str| flaws_of(&format!("procedure \"p\" {{ reference r: 0..3 do {{ {body} }} }} {what}"));
    let command = "command \"c\" { before { call p(x;;); } }";
    let property = "invariant \"i\" { before { call p(x;;); } expect x }";
    assert_eq!(in_prelude("if &0 == 1 { discard; }", command), "");
    assert!(in_prelude("if &0 == 1 { discard; }", property).contains("discards"));
    assert!(in_prelude("&0 := 1;", command).contains("writes to the state"));
    assert!(in_prelude("assert &0 \"m\";", command).contains("asserts"));
    assert!(flaws_of("command \"c\" { do { sort x; } }").contains("no array"));
}

#[test]
fn calls_that_are_nested_too_deep_are_refused() {
    let recursive = |times: u32| {
        flaws_of(&format!("procedure \"p\" {{ recursion {times} do {{ if x {{ block {{ call p(;;); }} }} }} }}"))
    };
    assert_eq!(recursive(200), "");
    assert!(recursive(400).contains("nested deeper"));
    let large = "procedure \"p\" { temp t: [40000] 0..4294967295 recursion 1 do { if x { call p(;;); } } }";
    assert!(flaws_of(large).contains("words"));
    let text = "system \"t\" procedure \"p\" { } procedure \"q\" { } procedure \"r\" { do { call q(;;); } }";
    let mut system = crate::text::parse(text).unwrap();
    verify(&system).unwrap();
    system.procedures.swap(0, 2);
    assert!(verify(&system).is_err(), "only those before it");
}
