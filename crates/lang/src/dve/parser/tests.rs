use super::*;
use crate::diagnostic::{Source, render};
use crate::dve::ast::{ExprKind, UnaryOp};

/// The expression with all its parentheses.
fn show(model: &Model, id: ExprId) -> String {
    let name = |name| model.names.text(name);
    match model.exprs.get(id).kind {
        ExprKind::Number(value) => value.to_string(),
        ExprKind::Name(variable) => name(variable).into(),
        ExprKind::Index(variable, index) => format!("{}[{}]", name(variable), show(model, index)),
        ExprKind::State(process, state) => format!("{}.{}", name(process), name(state)),
        ExprKind::Foreign(process, variable, None) => format!("{}->{}", name(process), name(variable)),
        ExprKind::Foreign(process, variable, Some(index)) => {
            format!("{}->{}[{}]", name(process), name(variable), show(model, index))
        }
        ExprKind::Unary(op, inner) => {
            let sign = match op {
                UnaryOp::Negate => "-",
                UnaryOp::Complement => "~",
                UnaryOp::Not => "not ",
            };
            format!("({sign}{})", show(model, inner))
        }
        ExprKind::Binary(op, left, right) => format!("({} {op:?} {})", show(model, left), show(model, right)),
    }
}

/// The expression with all its parentheses, and the number of warnings.
fn expression(text: &str) -> (String, usize) {
    let mut diagnostics = Diagnostics::default();
    let (model, id) = parse_expression(text, Model::default(), &mut diagnostics);
    let warnings = diagnostics.finish().unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    (show(&model, id.unwrap()), warnings.len())
}

#[test]
fn precedence_is_that_of_c() {
    let cases = [
        ("a + b * c", "(a Add (b Multiply c))"),
        ("a - b - c", "((a Subtract b) Subtract c)"),
        ("a << b + c", "(a ShiftLeft (b Add c))"),
        ("a < b == c > d", "((a Less b) Equal (c Greater d))"),
        ("a & b == c", "(a BitAnd (b Equal c))"),
        ("a && b || c", "((a And b) Or c)"),
        ("a || b imply c imply d", "(((a Or b) Imply c) Imply d)"),
        ("not a == b", "((not a) Equal b)"),
        ("- - a * ~b", "((-(-a)) Multiply (~b))"),
        ("a - -1", "(a Subtract (-1))"),
        ("not (a and b) or c", "((not (a And b)) Or c)"),
        ("x[i + 1] % P->y[2] / P->z", "((x[(i Add 1)] Remainder P->y[2]) Divide P->z)"),
        ("P.s + true - false", "((P.s Add 1) Subtract 0)"),
    ];
    for (text, expected) in cases {
        assert_eq!(expression(text), (expected.into(), 0), "{text}");
    }
}

#[test]
fn mixes_that_tools_read_differently_are_warned_of() {
    let cases = [
        ("a || b && c", "(a Or (b And c))"),
        ("a | b & c", "(a BitOr (b BitAnd c))"),
        ("a ^ b & c", "(a BitXor (b BitAnd c))"),
    ];
    for (text, expected) in cases {
        assert_eq!(expression(text), (expected.into(), 1), "{text}");
    }
    for clear in ["a || (b && c)", "(a || b) && c", "a && b || c", "a | (b & c)"] {
        assert_eq!(expression(clear).1, 0, "{clear}");
    }
}

fn errors(text: &str) -> String {
    let mut diagnostics = Diagnostics::default();
    parse(text, &mut diagnostics);
    let list = diagnostics.finish().unwrap_err();
    render(&Source { name: "m.dve".into(), text: text.into() }, &list, false)
}

#[test]
fn one_run_reports_several_errors() {
    let text = "byte x = ;
byte y
process P {
  state s, t;
  init s;
  trans
    s -> t { guard x + ; effect y = 1; },
    s > t { guard x; },
    t -> s { effect x = 1 y = 2; }
    t -> t { guard (x; };
}
system async;
";
    insta::assert_snapshot!(errors(text), @r"
    error: expected an expression, found `;`
     --> m.dve:1:10
      |
    1 | byte x = ;
      |          ^ expected an expression

    error: expected `;`, found `process`
     --> m.dve:3:1
      |
    3 | process P {
      | ^^^^^^^ expected `;`

    error: expected an expression, found `;`
     --> m.dve:7:24
      |
    7 |     s -> t { guard x + ; effect y = 1; },
      |                        ^ expected an expression

    error: expected `->`, found `>`
     --> m.dve:8:7
      |
    8 |     s > t { guard x; },
      |       ^ expected `->`

    error: expected `;`, found `y`
     --> m.dve:9:27
      |
    9 |     t -> s { effect x = 1 y = 2; }
      |                           ^ expected `;`

    error: expected `,` or `;` after the transition, found `t`
      --> m.dve:10:5
       |
    10 |     t -> t { guard (x; };
       |     ^ expected `,` or `;` after the transition

    error: expected `)`, found `;`
      --> m.dve:10:22
       |
    10 |     t -> t { guard (x; };
       |                      ^ expected `)`
    ");
}

#[test]
fn what_is_missing_is_said() {
    let cases = [
        ("byte x;", "the model ends without a `system` line"),
        ("process P { state s; init s; system async;", "this process has no closing `}`"),
        ("process P { state s; init s; init s; } system async;", "a process has one initial state"),
        ("process P { state s; init s; trans s -> s { effect x = 1; guard x; }; } system async;", "come in this order"),
        ("process P { state s; init s; trans s -> s { guard !x; }; } system async;", "negation is written `not`"),
        ("byte x = 99999999999; system async;", "this number is too large"),
        ("system maybe;", "expected `async` or `sync`, found `maybe`"),
        ("system async; byte x;", "expected the end of the text, found `byte`"),
        ("channel {byte} c; system async;", "expected `[`, found `;`"),
        ("} system async;", "expected a declaration, a process or `system`, found `}`"),
        ("bytes x; system async;", "expected a declaration, a process or `system`, found `bytes`"),
        ("process P { state s; init s; accept genbuchi (s, s; s), (s) } system async;", "found `}`"),
    ];
    for (text, message) in cases {
        assert!(errors(text).contains(message), "{text}:\n{}", errors(text));
    }
}

#[test]
fn sections_are_read() {
    let mut diagnostics = Diagnostics::default();
    let text = "channel a, b; channel {byte, int} c[0], d[5]; const byte k = 1; int v[3] = {1, k}, w;
        process P { state s, t; init t; accept buchi s; commit s, t; assert s: k, t: not k;
        trans s -> t {}, -> s { guard w; sync c?{w, v[1]}; effect w = 1, v[k] = 2; }; }
        system sync property P;";
    let model = parse(text, &mut diagnostics);
    assert_eq!(diagnostics.finish(), Ok(vec![]));
    assert_eq!((model.declarations.len(), model.processes.len()), (7, 1));
    let process = &model.processes[0];
    assert_eq!((process.states.len(), process.committed.len(), process.accepting.len()), (2, 2, 1));
    assert_eq!((process.asserts.len(), process.transitions.len()), (2, 2));
    let second = &process.transitions[1];
    assert!(second.from.is_none() && second.guard.is_some() && second.effects.len() == 2);
    assert!(second.sync.as_ref().is_some_and(|sync| !sync.sends && sync.values.len() == 2));
    assert!(model.system.is_some_and(|line| line.synchronous && line.property.is_some()));
}
