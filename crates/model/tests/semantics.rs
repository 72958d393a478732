//! The meaning of every statement and rule, by hand: exact successors of small systems.
//!
//! Each expectation is checked on the interpreter and on native code.

use plimsoll_ir::{
    BinOp, Choice, Command, Deadlock, Expr, Faults, Narrow, Place, Process, ProcessId, Property, PropertyKind, Scalar,
    Stmt, System, Type, UnOp, VarId, verify,
};
use plimsoll_model::{Interp, Jit, Model, Problem, Show, Step, Successors, show::Describe};

const FAULT: u32 = Step::FAULT;
const VIOLATION: u32 = Step::VIOLATION;

/// Both executors of a system, and names for its states.
struct Bench {
    interp: Interp,
    jit: Jit,
    show: Show,
}

impl Bench {
    fn new(system: System) -> Bench {
        verify(&system).unwrap();
        let interp = Interp::new(system.clone());
        let show = Show::new(interp.system(), interp.layout());
        Bench { interp, jit: Jit::new(system).expect("this platform is supported"), show }
    }

    fn initial(&self) -> Successors {
        let mut out = Successors::new(self.interp.width());
        self.interp.initial(&mut out);
        out
    }

    /// The successors of a state, which both executors agree on: values in words (none for a fault), and the step.
    fn from(&self, state: &[u32]) -> Vec<(String, u32)> {
        let shown = |model: &dyn Model| {
            let mut out = Successors::new(model.width());
            model.successors(state, &mut out);
            out.iter().map(|(state, step)| (self.text(state, step), step.0)).collect::<Vec<_>>()
        };
        let expected = shown(&self.interp);
        assert_eq!(expected, shown(&self.jit), "native code agrees");
        expected
    }

    fn text(&self, state: &[u32], step: Step) -> String {
        if step.is_fault() {
            return String::new();
        }
        let values: Vec<String> = self.show.fields(state).into_iter().map(|(_, value)| value).collect();
        values.join(" ")
    }

    /// The successors of the only initial state.
    fn first(&self) -> Vec<(String, u32)> {
        let initial = self.initial();
        assert_eq!(initial.len(), 1);
        self.from(initial.state(0))
    }
}

fn entries(list: &[(&str, u32)]) -> Vec<(String, u32)> {
    list.iter().map(|(text, step)| (text.to_string(), *step)).collect()
}

/// One command with a body, on the variables of `system`.
fn body(mut system: System, stmts: Vec<Stmt>) -> Vec<(String, u32)> {
    let mut command = Command::new("c");
    command.body = stmts;
    system.commands.push(command);
    Bench::new(system).first()
}

fn set(place: impl Into<Place>, value: impl Into<Expr>) -> Stmt {
    Stmt::assign(place, value, Narrow::Trap)
}

fn read(place: impl Into<Place>) -> Expr {
    Expr::read(place)
}

fn op(op: BinOp, left: impl Into<Expr>, right: impl Into<Expr>) -> Expr {
    Expr::binary(op, left.into(), right.into())
}

/// Scalars x and y from -5 to 5, starting as 1 and 2.
fn two() -> (System, VarId, VarId) {
    let mut system = System::new("two");
    let x = system.var("x", Scalar::range(-5, 5), None);
    let y = system.var("y", Scalar::range(-5, 5), None);
    system.vars[0].init = vec![1];
    system.vars[1].init = vec![2];
    (system, x, y)
}

#[test]
fn assignments_run_in_order_on_the_successor() {
    let (system, x, y) = two();
    let stmts = vec![set(x, op(BinOp::Add, read(x), read(y))), set(y, op(BinOp::Sub, read(x), 7))];
    assert_eq!(body(system, stmts), entries(&[("3 -4", 0)]));
}

#[test]
fn a_trapping_store_out_of_range_is_a_fault_and_a_wrapping_one_keeps_low_bits() {
    for (value, fits) in [(5, true), (6, false), (-5, true), (-6, false)] {
        let (system, x, y) = two();
        // A value that no interval argument can bound.
        let hidden = op(BinOp::Add, value - 2, read(y));
        let expected = if fits { (format!("{value} 2"), 0) } else { (String::new(), FAULT) };
        assert_eq!(body(system, vec![set(x, hidden)]), [expected]);
    }
    let mut system = System::new("bytes");
    let a = system.var("a", Scalar::U8, None);
    let b = system.var("b", Scalar::I16, None);
    let wrap = |to: VarId, value: i64| Stmt::assign(to, value, Narrow::Wrap);
    assert_eq!(body(system, vec![wrap(a, -1), wrap(b, 40_000)]), entries(&[("255 -25536", 0)]));
}

#[test]
fn operators_compute_in_64_bits() {
    use BinOp::*;
    let cases: Vec<(Expr, i64)> = vec![
        (op(Div, -7, 2), -3),
        (op(Rem, -7, 2), -1),
        (op(Shr, -8, 1), -4),
        (op(Shr, -1, 64 + 3), -1),
        (op(Shl, 3, 65), 6),
        (op(BitAnd, -2, 7), 6),
        (op(BitXor, -1, 5), -6),
        (op(Div, i64::MIN, -1), i64::MIN),
        (op(Rem, i64::MIN, -1), 0),
        (op(Add, i64::MAX, 1), i64::MIN),
        (op(Le, 3, 3), 1),
        (op(And, 2, 4), 1),
        (op(Or, 0, 0), 0),
        (Expr::unary(UnOp::Not, 7.into()), 0),
        (Expr::unary(UnOp::BitNot, 7.into()), -8),
        (Expr::unary(UnOp::Neg, i64::MIN.into()), i64::MIN),
        (Expr::wrap(8, true, 200.into()), -56),
        (Expr::wrap(8, false, (-1).into()), 255),
        (Expr::Select(Box::new(0.into()), Box::new(op(Div, 1, 0)), Box::new(4.into())), 4),
    ];
    for (expr, expected) in cases {
        // Once as it stands, and once with each constant hidden in a variable.
        let (system, x, y) = two();
        let ok = op(Eq, expr.clone(), expected);
        assert_eq!(body(system, vec![set(x, ok)]), entries(&[("1 2", 0)]), "{expr:?}");
        let (system, x, _) = two();
        let ok = op(Eq, hide(&expr, y), expected);
        assert_eq!(body(system, vec![set(x, ok)]), entries(&[("1 2", 0)]), "{expr:?}");
    }
}

/// The same expression with every constant written so that its value is not obvious; `two` holds 2.
fn hide(expr: &Expr, two: VarId) -> Expr {
    match expr {
        Expr::Const(value) => op(BinOp::Add, value.wrapping_sub(2), read(two)),
        Expr::Read(place) => Expr::Read(place.clone()),
        Expr::Unary(unary, value) => Expr::unary(*unary, hide(value, two)),
        Expr::Binary(binary, left, right) => Expr::binary(*binary, hide(left, two), hide(right, two)),
        Expr::Select(c, a, b) => Expr::Select(Box::new(hide(c, two)), Box::new(hide(a, two)), Box::new(hide(b, two))),
        Expr::Wrap { bits, signed, value } => Expr::wrap(*bits, *signed, hide(value, two)),
    }
}

#[test]
fn logic_is_short() {
    let bad = || op(BinOp::Div, 1, op(BinOp::Sub, 2, 2));
    for (expr, ok) in [
        (op(BinOp::And, 0, bad()), true),
        (op(BinOp::Or, 1, bad()), true),
        (op(BinOp::And, 1, bad()), false),
        (op(BinOp::Or, 0, bad()), false),
    ] {
        let (mut system, _, _) = two();
        let mut command = Command::new("c");
        command.guard = Expr::any([expr, Expr::TRUE]);
        system.commands.push(command);
        let expected = if ok { entries(&[("1 2", 0)]) } else { entries(&[("", FAULT)]) };
        assert_eq!(Bench::new(system).first(), expected);
    }
}

#[test]
fn division_by_zero_and_bad_indices_are_faults_in_prelude_guard_and_body() {
    let bad_division = |y: VarId| op(BinOp::Rem, 1, op(BinOp::Sub, read(y), 2));
    let bad_index = |a: VarId, y: VarId| read(Place::from(a).index(op(BinOp::Add, read(y), 1)));
    for at in 0..3 {
        for division in [true, false] {
            let (mut system, _, y) = two();
            let a = system.var("a", Type::array(Scalar::BOOL.into(), 3), None);
            let bad = if division { bad_division(y) } else { bad_index(a, y) };
            let mut command = Command::new("c");
            let t = command.temp("t", Scalar::range(-100, 100));
            match at {
                0 => command.prelude = vec![set(t, bad)],
                1 => command.guard = bad,
                _ => command.body = vec![set(t, bad)],
            }
            system.commands.push(command);
            let bench = Bench::new(system);
            assert_eq!(bench.first(), entries(&[("", FAULT)]));
            let explanation = bench.interp.explain(bench.initial().state(0), Step(FAULT)).unwrap();
            assert_eq!(explanation.problem, if division { Problem::Division } else { Problem::Index });
            if !division {
                assert_eq!(explanation.message, "index 3 is out of bounds in a[..] (length 3)");
            }
        }
    }
}

/// An array of two records {flag: bool, word: array of 3 bytes, wide: array of 3 words}.
fn records() -> (System, VarId) {
    let mut system = System::new("records");
    let record = Type::Record(vec![
        ("flag".into(), Scalar::BOOL.into()),
        ("bytes".into(), Type::array(Scalar::U8.into(), 3)),
        ("wide".into(), Type::array(Scalar::I32.into(), 3)),
    ]);
    let a = system.var("a", Type::array(record, 2), None);
    system.vars[0].init = vec![1, 10, 20, 30, 100, -200, 300, 0, 1, 2, 3, 4, 5, 6];
    (system, a)
}

#[test]
fn copies_and_resets_take_whole_parts() {
    let (system, a) = records();
    let whole = |index: i64| Place::from(a).index(index);
    let stmts = vec![Stmt::Copy { to: whole(1), from: whole(0) }, Stmt::Reset(whole(0).field(2))];
    assert_eq!(body(system, stmts), entries(&[("1 10 20 30 0 0 0 1 10 20 30 100 -200 300", 0)]));

    let (system, a) = records();
    let bytes = |index: i64| Place::from(a).index(index).field(1);
    let stmts =
        vec![Stmt::Copy { to: bytes(0), from: bytes(1) }, Stmt::Reset(bytes(1)), Stmt::Reset(whole(0).field(0))];
    assert_eq!(body(system, stmts), entries(&[("0 1 2 3 100 -200 300 0 0 0 0 4 5 6", 0)]));
}

#[test]
fn dynamic_indices_reach_every_element() {
    for element in [Scalar::BOOL, Scalar::range(0, 2), Scalar::range(-9, 9), Scalar::U8, Scalar::I16, Scalar::I32] {
        for index in 0..5 {
            let mut system = System::new("elements");
            let i = system.var("i", Scalar::range(0, 6), None);
            let a = system.var("a", Type::array(element.into(), 5), None);
            system.vars[0].init = vec![index];
            system.vars[1].init = vec![element.high; 5];
            let element_i = || Place::from(a).index(read(i));
            let stmts = vec![set(element_i(), op(BinOp::Sub, read(element_i()), 1)), set(i, 6)];
            let mut expected = [element.high; 6];
            expected[0] = 6;
            expected[index as usize + 1] -= 1;
            let text: Vec<String> = expected.iter().map(i64::to_string).collect();
            assert_eq!(body(system, stmts), entries(&[(&text.join(" "), 0)]));
        }
    }
}

#[test]
fn loops_blocks_and_breaks() {
    let (system, x, y) = two();
    // Counts x up to 4 and leaves both the loop and the block, skipping y := 5.
    let leave = Stmt::If { condition: op(BinOp::Ge, read(x), 4), then: vec![Stmt::Break(1)], otherwise: vec![] };
    let repeat = Stmt::Loop { limit: 4, body: vec![leave, set(x, op(BinOp::Add, read(x), 1))] };
    let stmts = vec![Stmt::Block(vec![repeat, set(y, 5)]), set(y, op(BinOp::Add, read(y), 1))];
    assert_eq!(body(system, stmts), entries(&[("4 3", 0)]));

    let (system, x, y) = two();
    let stop = Stmt::If { condition: op(BinOp::Ge, read(x), 3), then: vec![Stmt::Break(0)], otherwise: vec![] };
    let repeat = Stmt::Loop { limit: 3, body: vec![stop, set(x, op(BinOp::Add, read(x), 1))] };
    assert_eq!(body(system, vec![repeat, set(y, 5)]), entries(&[("3 5", 0)]));
}

#[test]
fn a_round_beyond_the_limit_is_a_fault() {
    for (limit, fine) in [(3, true), (2, false), (0, false)] {
        let (mut system, x, _) = two();
        let stop = Stmt::If { condition: op(BinOp::Ge, read(x), 3), then: vec![Stmt::Break(0)], otherwise: vec![] };
        let mut command = Command::new("c");
        command.body = vec![Stmt::Loop { limit, body: vec![stop, set(x, op(BinOp::Add, read(x), 1))] }];
        system.commands.push(command);
        let bench = Bench::new(system);
        let expected = if fine { entries(&[("3 2", 0)]) } else { entries(&[("", FAULT)]) };
        assert_eq!(bench.first(), expected);
        let explanation = bench.interp.explain(bench.initial().state(0), Step(0));
        assert_eq!(explanation.map(|explanation| explanation.problem), (!fine).then_some(Problem::Loop));
    }
}

#[test]
fn branches_forget_what_only_one_of_them_wrote() {
    for truth in [0, 1] {
        let (mut system, x, y) = two();
        let c = system.var("c", Scalar::BOOL, None);
        system.vars[2].init = vec![truth];
        let stmts = vec![
            set(x, 3),
            Stmt::If { condition: read(c), then: vec![set(x, 4)], otherwise: vec![set(y, 0)] },
            set(y, op(BinOp::Sub, read(x), read(y))),
        ];
        let expected = if truth == 1 { "4 2 1" } else { "3 3 0" };
        assert_eq!(body(system, stmts), entries(&[(expected, 0)]));
    }
}

#[test]
fn assertions_mark_faults_replace_and_discards_remove() {
    let (mut system, x, _) = two();
    let assertion = |truth: i64, message: &str| Stmt::Assert { condition: truth.into(), message: message.into() };
    let command = |label: &str, body: Vec<Stmt>| Command { body, ..Command::new(label) };
    system.commands = vec![
        command("fine", vec![assertion(1, "a"), set(x, 0)]),
        command("failing", vec![assertion(0, "b"), assertion(0, "c"), set(x, 3)]),
        command("faulty", vec![assertion(0, "d"), Stmt::Fault("e".into())]),
        command("gone", vec![set(x, 4), Stmt::Discard]),
        command("last", vec![]),
    ];
    let bench = Bench::new(system);
    let expected = [("0 2", 0), ("3 2", 1 | VIOLATION), ("", 2 | FAULT), ("1 2", 4)];
    assert_eq!(bench.first(), entries(&expected));
    let initial = bench.initial();
    let explain = |step: u32| bench.interp.explain(initial.state(0), Step(step));
    let message = |step: u32| explain(step).map(|explanation| (explanation.problem, explanation.message));
    assert_eq!(message(1 | VIOLATION), Some((Problem::Assertion, "b".into())));
    assert_eq!(message(2 | FAULT), Some((Problem::Stated, "e".into())));
    assert_eq!((message(0), message(3)), (None, None));
}

#[test]
fn choices_vary_last_first_and_preludes_see_them() {
    let (mut system, x, y) = two();
    let mut command = Command::new("c");
    let i = command.temp("i", Scalar::range(-9, 9));
    let sum = command.temp("sum", Scalar::range(-9, 9));
    let j = command.temp("j", Scalar::range(-9, 9));
    command.choices = vec![Choice { temp: j, low: -1, high: 1 }, Choice { temp: i, low: 2, high: 3 }];
    command.prelude = vec![set(sum, op(BinOp::Add, read(sum), op(BinOp::Add, read(i), read(j))))];
    command.guard = op(BinOp::Ne, read(sum), 2);
    command.body = vec![set(x, read(j)), set(y, read(sum))];
    system.commands = vec![Command::new("before"), command, Command::new("after")];
    let expected = [("1 2", 0), ("-1 1", 1), ("0 3", 4), ("1 3", 5), ("1 4", 6), ("1 2", 7)];
    assert_eq!(Bench::new(system).first(), entries(&expected));
}

#[test]
fn temporaries_start_as_zero_in_every_instance() {
    let (mut system, x, y) = two();
    let mut command = Command::new("c");
    let i = command.temp("i", Scalar::range(0, 1));
    let a = command.temp("a", Type::array(Scalar::I32.into(), 40));
    command.choices = vec![Choice { temp: i, low: 0, high: 1 }];
    let cell = Place::from(a).index(op(BinOp::Add, 38, read(i)));
    command.body = vec![set(x, read(Place::from(a).index(38))), set(y, read(cell)), set(Place::from(a).index(38), 5)];
    system.commands = vec![command];
    assert_eq!(Bench::new(system).first(), entries(&[("0 0", 0), ("0 0", 1)]));
}

#[test]
fn a_rank_counts_only_where_smaller_ones_have_nothing() {
    let (mut system, x, _) = two();
    let command = |rank: u8, guard: Expr, body: Vec<Stmt>| Command { rank, guard, body, ..Command::new("c") };
    system.commands = vec![
        command(2, Expr::TRUE, vec![set(x, 5)]),
        command(0, op(BinOp::Eq, read(x), 1), vec![set(x, 2)]),
        command(1, op(BinOp::Le, read(x), 2), vec![set(x, 3)]),
        command(1, op(BinOp::Eq, read(x), 1), vec![Stmt::Fault("never tried first".into())]),
    ];
    let bench = Bench::new(system);
    assert_eq!(bench.first(), entries(&[("2 2", 1)]));
    let next = |state: Vec<u32>| {
        let mut out = Successors::new(bench.interp.width());
        bench.interp.successors(&state, &mut out);
        out.state(0).to_vec()
    };
    let second = next(bench.initial().state(0).to_vec());
    assert_eq!(bench.from(&second), entries(&[("3 2", 2)]));
    assert_eq!(bench.from(&next(second)), entries(&[("5 2", 0)]));
}

/// Two processes with three locations each, starting at 0 and 1.
fn two_processes() -> System {
    let mut system = System::new("processes");
    for (name, start) in [("P", 0), ("Q", 1)] {
        let process = ProcessId(system.processes.len() as u32);
        let location = system.var("at", Scalar::range(0, 2), Some(process));
        system.vars[location.index()].init = vec![start];
        let locations = (0..3).map(|number| format!("{name}{number}")).collect();
        system.processes.push(Process { name: name.into(), location, locations });
    }
    system
}

#[test]
fn commands_wait_for_all_their_processes() {
    let mut system = two_processes();
    let (p, q) = (ProcessId(0), ProcessId(1));
    let command = |at: &[(ProcessId, u32)], to: i64| Command {
        at: at.to_vec(),
        body: vec![set(VarId(at[0].0.0), to)],
        ..Command::new("c")
    };
    system.commands = vec![
        command(&[(p, 0), (q, 0)], 1),
        command(&[(p, 0), (q, 1)], 1),
        command(&[(p, 0)], 2),
        command(&[(p, 0), (q, 1)], 2),
        command(&[(p, 0), (q, 2)], 1),
        command(&[(p, 1)], 0),
        command(&[(q, 1), (p, 0)], 0),
        command(&[(q, 1), (p, 1)], 0),
        command(&[(q, 0)], 1),
    ];
    let bench = Bench::new(system);
    let expected = [("P1 Q1", 1), ("P2 Q1", 2), ("P2 Q1", 3), ("P0 Q0", 6)];
    assert_eq!(bench.first(), entries(&expected));
    assert_eq!(bench.interp.most_successors(), 5 + 2);
}

#[test]
fn start_commands_make_the_initial_states() {
    let (mut system, x, _) = two();
    let mut start = Command::new("start");
    let i = start.temp("i", Scalar::range(0, 3));
    start.choices = vec![Choice { temp: i, low: 0, high: 3 }];
    start.guard = op(BinOp::Ne, read(i), 1);
    start.body = vec![set(x, op(BinOp::Add, read(i), read(i)))];
    system.starts = vec![start];
    let bench = Bench::new(system);
    let initial = bench.initial();
    let shown: Vec<_> = initial.iter().map(|(state, step)| (bench.text(state, step), step.0)).collect();
    assert_eq!(shown, entries(&[("0 2", 0), ("4 2", 2), ("", 3 | FAULT)]));
    let problem = bench.interp.explain_initial(Step(3 | FAULT)).unwrap();
    assert_eq!(problem.message, "6 does not fit x, which holds -5 to 5");
    assert_eq!(problem.place.as_deref(), Some("x"));
}

#[test]
fn properties_are_judged_in_order_and_faults_violate() {
    let property = |name: &str, kind: PropertyKind, expr: Expr| Property {
        name: name.into(),
        line: 0,
        kind,
        temps: vec![("t".into(), Scalar::range(0, 3).into())],
        prelude: vec![set(plimsoll_ir::TempId(0), 1)],
        expr,
    };
    let cases = [
        (vec![property("a", PropertyKind::Invariant, read(VarId(0)))], None),
        (vec![property("a", PropertyKind::Goal, read(VarId(0)))], Some(0)),
        (
            vec![
                property("a", PropertyKind::Goal, op(BinOp::Eq, read(plimsoll_ir::TempId(0)), 0)),
                property("b", PropertyKind::Invariant, op(BinOp::Lt, read(VarId(1)), 2)),
            ],
            Some(1),
        ),
        (vec![property("a", PropertyKind::Goal, op(BinOp::Div, 1, op(BinOp::Sub, read(VarId(0)), 1)))], Some(0)),
    ];
    for (properties, expected) in cases {
        let (mut system, _, _) = two();
        system.properties = properties;
        let bench = Bench::new(system);
        let initial = bench.initial();
        assert_eq!(bench.interp.violated(initial.state(0)), expected);
        assert_eq!(bench.jit.violated(initial.state(0)), expected);
    }
}

#[test]
fn ends_are_accepted_by_an_expression() {
    for (accepted, expected) in [
        (None, false),
        (Some(op(BinOp::Eq, read(VarId(0)), 1)), true),
        (Some(op(BinOp::Eq, read(VarId(0)), 2)), false),
        (Some(op(BinOp::Div, 1, op(BinOp::Sub, read(VarId(0)), 1))), false),
    ] {
        let (mut system, _, _) = two();
        system.deadlock = Deadlock::Stuck { accepted };
        system.faults = Faults::Absorb;
        let bench = Bench::new(system);
        let initial = bench.initial();
        assert_eq!(bench.interp.accepts_end(initial.state(0)), expected);
        assert_eq!(bench.jit.accepts_end(initial.state(0)), expected);
        assert!(bench.jit.conventions().faults_absorb && !bench.jit.conventions().deadlock_is_fine);
    }
}

#[test]
fn exclusive_steps_run_on_to_the_end_of_their_chain() {
    let mut system = System::new("chain");
    let x = system.var("x", Scalar::range(0, 9), None);
    let alone = system.var("alone", Scalar::BOOL, None);
    system.exclusive = Some(alone);
    let command = |from: i64, to: i64, alone_after: i64| Command {
        guard: op(BinOp::Eq, read(x), from),
        body: vec![set(x, to), set(alone, alone_after)],
        ..Command::new(format!("{from} to {to}"))
    };
    let failing = Stmt::Assert { condition: 0.into(), message: "three".into() };
    let mut to_three = command(1, 3, 0);
    to_three.body.push(failing);
    let mut wrong = command(1, 4, 0);
    wrong.body.push(Stmt::Fault("four".into()));
    system.commands = vec![command(0, 1, 1), command(1, 2, 1), to_three, wrong, command(0, 5, 1), command(2, 2, 1)];
    let bench = Bench::new(system);
    let expected = [("", FAULT), ("3 0", VIOLATION), ("", FAULT), ("5 0", 4)];
    assert_eq!(bench.first(), entries(&expected));
    let initial = bench.initial();
    let path: Vec<_> = bench.interp.path(initial.state(0), 1);
    let shown: Vec<_> = path.iter().map(|(step, state)| (bench.text(state, *step), step.0)).collect();
    assert_eq!(shown, entries(&[("1 1", 0), ("3 0", 2 | VIOLATION)]));
    assert_eq!(bench.interp.explain(initial.state(0), Step(VIOLATION)).unwrap().message, "three");
    assert_eq!(bench.interp.explain(initial.state(0), Step(FAULT)).unwrap().problem, Problem::Chain);
    let inside = bench.interp.explain(&path[0].1, Step(3 | FAULT)).unwrap();
    assert_eq!(inside.message, "four");
}

#[test]
fn steps_of_separate_processes_are_independent() {
    let mut system = two_processes();
    let shared = system.var("shared", Scalar::BOOL, None);
    let command = |process: u32, place: VarId| Command {
        at: vec![(ProcessId(process), process)],
        body: vec![set(place, 0)],
        ..Command::new("c")
    };
    system.commands = vec![command(0, VarId(0)), command(0, shared), command(1, VarId(1)), command(1, shared)];
    let bench = Bench::new(system);
    for model in [&bench.interp as &dyn Model, &bench.jit] {
        assert!(model.independent(Step(0), Step(2 | VIOLATION)));
        assert!(model.independent(Step(1), Step(2)));
        assert!(!model.independent(Step(0), Step(1)));
        assert!(!model.independent(Step(0), Step(99)));
    }
}

/// The successors of the only initial state of a system in text.
fn of_text(text: &str) -> Vec<(String, u32)> {
    Bench::new(plimsoll_ir::text::parse(text).unwrap()).first()
}

#[test]
fn a_procedure_works_on_what_its_caller_names() {
    // By reference it sees its own writes at once; copies come back at the end.
    let text = r#"system "t" var x: 0..9 var a: [3] { f: 0..9, g: 0..3 } var i: 0..2 = 1
        procedure "p" { reference r: 0..9 input n: 0..9 temp m: 0..9 output n output m
            do { &0 := &0 + n; n := x + 4; m := &0; i := 2; } }
        command "c" { temp t: 0..9 temp u: 0..9 do { t := 3; call p(a[i].f; t; t, u); x := (t * 2) - u; } }
        command "alias" { temp t: 0..9 temp u: 0..9 do { t := 3; call p(x; t; t, u); a[0].f := t; } }"#;
    let found = of_text(text);
    assert_eq!(found, entries(&[("5 0 0 3 0 0 0 2", 0), ("3 7 0 0 0 0 0 2", 1)]));
}

#[test]
fn what_stops_a_procedure_stops_the_command() {
    let text = r#"system "t" var x: 0..9 var a: [2] 0..1
        procedure "inner" { input n: 0..9 do { if n == 1 { discard; } if n == 2 { fault "f"; } if n == 3 { a[n] := 1; }
            assert n != 4 "a"; x := n; } }
        procedure "outer" { input n: 0..9 do { call inner(; n;); } }
        command "c" { temp n: 0..9 choose n in 0..4 do { call outer(; n;); a[0] := 1; } }"#;
    let wanted = entries(&[("0 1 0", 0), ("", 2 | FAULT), ("", 3 | FAULT), ("4 1 0", 4 | VIOLATION)]);
    assert_eq!(of_text(text), wanted);
}

#[test]
fn a_procedure_may_be_inside_itself_so_often() {
    let text = r#"system "t" var x: 0..99
        procedure "sum" { input n: 0..9 temp m: 0..9 temp r: 0..99 output r recursion 3
            do { if n > 0 { m := n - 1; call sum(; m; r); r := r + n; } } }
        command "c" { temp n: 0..9 temp r: 0..99 choose n in 2..4 before { call sum(; n; r); } when r > 0 do { x := r; } }"#;
    assert_eq!(of_text(text), entries(&[("3", 0), ("6", 1), ("", 2 | FAULT)]));
}

#[test]
fn large_and_small_values_travel_alike() {
    let record = "{ a: 0..9, b: -9..9, c: [4] -32768..32767 }";
    let text = format!(
        r#"system "t" var x: {record} = 1, -2, 3, -4, 5, -6 var y: {record} var z: {{ p: -2..1, q: [3] 0..1 }} = -2, 1, 0, 1
        procedure "swap" {{ input r: {record} input s: {{ p: -2..1, q: [3] 0..1 }} temp o: -9..9 output o output r output s
            do {{ o := r.b; r.b := r.c[r.a]; r.c[0] := s.p; s.q[1] := s.q[0]; }} }}
        command "c" {{ temp o: -9..9 do {{ call swap(; x, z; o, y, z); x.b := o + 1; }} }}"#
    );
    assert_eq!(of_text(&text), entries(&[("1 -1 3 -4 5 -6 1 -4 -2 -4 5 -6 -2 1 1 1", 0)]));
}

#[test]
fn sorting_puts_the_greatest_last_scalar_first() {
    let sorted = |ty: &str, values: &str| {
        let text = format!(r#"system "t" var a: {ty} = {values} command "c" {{ do {{ sort a; }} }}"#);
        of_text(&text)[0].0.clone()
    };
    assert_eq!(sorted("[5] 0..6", "3, 6, 0, 6, 1"), "6 6 3 1 0");
    assert_eq!(sorted("[5] -3..3", "3, -3, 0, 1, -1"), "3 1 0 -1 -3");
    assert_eq!(sorted("[6] 0..1", "0, 1, 0, 0, 1, 1"), "1 1 1 0 0 0");
    assert_eq!(sorted("[3] { f: 0..9, g: 0..3 }", "9, 1, 3, 2, 8, 1"), "3 2 9 1 8 1");
    assert_eq!(sorted("[3] { f: 0..3, g: 0..255 }", "1, 7, 2, 7, 0, 9"), "0 9 2 7 1 7", "with a gap");
    assert_eq!(
        sorted("[3] { f: 0..3, g: [3] -32768..32767 }", "1, 5, -6, 7, 2, 5, 4, 7, 3, 9, 9, -9"),
        "2 5 4 7 1 5 -6 7 3 9 9 -9"
    );
    assert_eq!(
        sorted("[40] 0..1", &["0"; 39].join(", ").replacen("0", "1", 1).replace("1", "0, 1")).matches('1').count(),
        1
    );
}

#[test]
fn a_switch_takes_the_first_case_that_asks_for_the_value() {
    let text = r#"system "t" var x: -9..9 var y: 0..9
        command "c" { temp n: -3..9 choose n in -2..5 do { block {
            if n == -2 { x := 1; break 0; } if (n == 1) || (n == 3) { x := 2; break 0; } if n == 3 { x := 3; break 0; }
            if n == 4 { fault "f"; } if n == 5 { discard; } x := -5; } y := x + 6; } }"#;
    let wanted = entries(&[("1 7", 0), ("-5 1", 1), ("-5 1", 2), ("2 8", 3), ("-5 1", 4), ("2 8", 5), ("", 6 | FAULT)]);
    assert_eq!(of_text(text), wanted);
}

#[test]
fn a_fault_that_depends_on_the_first_choice_is_one_of_all_instances() {
    let text = r#"system "t" var a: [3] 0..2 = 1, 0, 2 var x: 0..9
        command "c" { temp i: 0..2 temp j: 0..3 choose i in 0..2 choose j in 1..2
            before { if a[i] == 0 { fault "f"; } } when (a[i] == 1) && (x == 0) do { x := j; } }"#;
    let wanted = entries(&[("1 0 2 1", 0), ("1 0 2 2", 1), ("", 2 | FAULT), ("", 3 | FAULT)]);
    assert_eq!(of_text(text), wanted);
}

/// What one command with temporaries `t` and `u` of 0..5 does to an array `a` of six, all zero.
fn counted(code: &str) -> Vec<(String, u32)> {
    let text = format!(
        "system \"s\" var a: [6] 0..7 var x: 0..7
        command \"c\" {{ temp t: 0..5 temp u: 0..5 temp b: 0..1 do {{ {code} }} }}"
    );
    Bench::new(plimsoll_ir::text::parse(&text).unwrap()).first()
}

#[test]
fn loops_that_count_do_what_other_loops_do() {
    let visit = "a[t] := a[t] + t;";
    let up = |last: i64| format!("if t == {last} {{ break 0; }} t := t + 1;");
    let counted = |code: String| counted(&code);
    assert_eq!(counted(format!("t := 1; loop 9 {{ {visit} {} }} x := t;", up(5))), entries(&[("0 1 2 3 4 5 5", 0)]));
    assert_eq!(counted(format!("t := 2; loop 2 {{ {visit} {} }}", up(3))), entries(&[("0 0 2 3 0 0 0", 0)]));
    assert_eq!(counted(format!("t := 2; loop 1 {{ {visit} {} }}", up(3))), entries(&[("", FAULT)]), "too many rounds");
    assert_eq!(counted(format!("t := 4; loop 9 {{ {visit} {} }}", up(3))), entries(&[("", FAULT)]), "t gets too large");
    // Others write to the counter.
    let skip = "if t == 2 { t := 3; }";
    assert_eq!(counted(format!("t := 1; loop 9 {{ {skip} {visit} {} }}", up(5))), entries(&[("0 1 0 3 4 5 0", 0)]));
    // The counter is set only if a condition holds, or something comes between.
    let maybe = "if x == 1 { t := 1; }";
    assert_eq!(counted(format!("{maybe} loop 9 {{ {visit} {} }}", up(2))), entries(&[("0 1 2 0 0 0 0", 0)]));
    let reset = "t := 1; b := x == 0; if b { t := 4; }";
    assert_eq!(counted(format!("{reset} loop 9 {{ {visit} {} }}", up(5))), entries(&[("0 0 0 0 4 5 0", 0)]));
    // One inside the other, left by both ways.
    let inner = "u := 0; loop 6 { if u == t { break 1; } a[u] := t; if u == 2 { break 0; } u := u + 1; }";
    assert_eq!(counted(format!("t := 3; loop 9 {{ {inner} {} }}", up(4))), entries(&[("4 4 4 0 0 0 0", 0)]));
    assert_eq!(counted(format!("t := 1; loop 9 {{ {inner} {} }}", up(4))), entries(&[("1 0 0 0 0 0 0", 0)]));
}

#[test]
fn a_truth_that_is_asked_for_at_once_is_kept() {
    let both = |code: &str| counted(code);
    assert_eq!(both("b := (x == 0) && (a[1] == 0); if b { a[0] := 1; } x := b;"), entries(&[("1 0 0 0 0 0 1", 0)]));
    assert_eq!(both("b := x > 0; if !b { a[0] := 1; } else { a[0] := 2; } x := b;"), entries(&[("1 0 0 0 0 0 0", 0)]));
    assert_eq!(both("b := 1; b := !b; if b { a[0] := 1; } x := b;"), entries(&[("0 0 0 0 0 0 0", 0)]));
    assert_eq!(
        both("b := a[x + t] != x; if b { fault \"f\"; } b := a[x + 7] == 0; if b { x := 2; }"),
        entries(&[("", FAULT)])
    );
}
