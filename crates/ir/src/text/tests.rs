use super::*;
use crate::expr::{BinOp, Expr, Place, UnOp};
use crate::random::{Size, random_system};
use crate::system::{Deadlock, VarId};
use crate::verify::verify;

const SAMPLE: &str = r#"
// Two processes that take turns.
system "turns"
enum colour from 1 { red, "dark green" }
var pc0: 0..2 of P
var pc1: 0..1 of Q = 1
var turn: 0..3 as colour
var cells: [2] { flag: 0..1, data: [3] -32768..32767 } = 1, 2, 3, 4, 0, -5, 6, 7
process P at pc0 { idle, busy, "if" }
process Q at pc1 { a, b }
faults absorb
deadlock stuck unless (turn == 3) || !pc0
exclusive turn
start "begin" line 4 {
    temp n: 0..3
    choose n in 1..2
    do {
        turn := n wrapping;
    }
}
command "work" line 7 kind send rank 2 at P.idle, Q.b act P "P(0)" "c!1" kind send in "" line 7 number 3 12 act Q "Q" "c?\"x\"" kind receive in "a.h" line 2 number 0 0 {
    temp turn: 0..9
    temp row: { flag: 0..1, data: [3] -32768..32767 }
    before {
        turn := -(5) + (~#2 << -1);
        if turn > 3 {
            discard;
        }
        else {
            fault "no \"way\"\n";
        }
    }
    when select(cells[0].flag, i8(turn), cells[turn - 1].data[u2(#2)]) >= -9223372036854775808
    do {
        row <- cells[turn % 2];
        loop 5 {
            block {
                break 1;
            }
        }
        reset cells;
        assert row.data[0] != 0 "data";
        pc0 := 1;
    }
}
command "rest" at P.#2 {
}
goal "all done" line 9 {
    temp t: 0..1
    before {
        t := 1;
    }
    expect t && pc1
}
"#;

#[test]
fn the_sample_survives_printing() {
    let system = parse(SAMPLE).unwrap();
    verify(&system).unwrap();
    let text = print(&system);
    let body = SAMPLE.split_once("turns.\n").unwrap().1;
    assert_eq!(text, body, "what is printed is what was written");
    assert_eq!(parse(&text).unwrap(), system);
}

#[test]
fn random_systems_survive_printing() {
    for seed in 0..500 {
        let system = random_system(seed, Size::LARGE);
        let text = print(&system);
        match parse(&text) {
            Ok(parsed) => assert_eq!(parsed, system, "seed {seed}\n{text}"),
            Err(error) => panic!("seed {seed}: {error}\n{text}"),
        }
    }
}

/// Parses the sample with one change and expects an error at the given place.
#[track_caller]
fn refused(from: &str, to: &str, place: (u32, u32), message: &str) {
    let text = SAMPLE.replacen(from, to, 1);
    assert_ne!(text, SAMPLE);
    let error = parse(&text).unwrap_err();
    assert!(error.message.contains(message), "{error}");
    assert_eq!((error.line, error.column), place, "{error}");
}

#[test]
fn errors_name_their_place() {
    refused("turn := n", "turn := m", (18, 17), "expected a variable, found `m`");
    refused("cells[0].flag", "cells[0].flat", (33, 26), "there is no field `flat`");
    refused("cells[0].flag", "cells.flag", (33, 22), "no record");
    refused("of Q", "of R", (6, 18), "there is no process `R`");
    refused("at P.idle", "at P.id", (21, 45), "there is no location `id`");
    refused("rank 2", "rank 256", (21, 38), "a smaller number");
    refused("kind send", "kind sent", (21, 28), "a kind of command");
    refused("break 1;", "break 1", (39, 13), "expected `;`");
    refused("absorb", "abscond", (11, 8), "expected `vanish`");
    refused("i8(turn)", "i65(turn)", (33, 32), "conversion");
    refused("\"all done\"", "\"all done", (48, 6), "never ends");
    refused("as colour", "as color", (7, 19), "there is no enumeration");
    refused("-9223372036854775808", "-9223372036854775809", (33, 75), "does not fit");
    refused("expect t &&", "expect t @", (53, 14), "unexpected character '@'");
}

#[test]
fn no_prefix_of_a_text_panics() {
    for end in 0..SAMPLE.len() {
        let complete = parse(&SAMPLE[..end]).is_ok();
        assert!(!complete || SAMPLE[..end].contains("turns\""), "{end}");
    }
}

#[test]
fn the_deepest_verified_nesting_survives_printing() {
    let depth = crate::verify::DEPTH_LIMIT - 1;
    let deep = |wrap: &dyn Fn(Expr) -> Expr| {
        let mut system = parse("system \"deep\" var a: [1] 0..0").unwrap();
        let accepted = Some((0..depth).fold(Expr::Const(0), |inner, _| wrap(inner)));
        system.deadlock = Deadlock::Stuck { accepted };
        verify(&system).unwrap();
        assert_eq!(parse(&print(&system)), Ok(system));
    };
    let boxed = |expr: i64| Box::new(Expr::Const(expr));
    deep(&|inner| Expr::unary(UnOp::Neg, inner));
    deep(&|inner| Expr::binary(BinOp::Add, inner, Expr::TRUE));
    deep(&|inner| Expr::binary(BinOp::Add, Expr::TRUE, inner));
    deep(&|inner| Expr::Select(boxed(1), Box::new(inner), boxed(2)));
    deep(&|inner| Expr::read(Place::from(VarId(0)).index(inner)));
}

#[test]
fn depth_is_bounded() {
    let nested = |open: &str, close: &str| {
        let count = 200_000;
        let text = format!("system \"deep\" deadlock stuck unless {}1{}", open.repeat(count), close.repeat(count));
        parse(&text).unwrap_err().message
    };
    assert!(nested("-(", ")").contains("too deep"));
    assert!(nested("(", ")").contains("too deep"));
    assert!(nested("select(", ", 1, 1)").contains("too deep"));
}

#[test]
fn the_example_of_the_manual_is_printed_as_written() {
    let manual = include_str!("../../../../docs/ir.md");
    let example = manual.split("A small system:\n\n```\n").nth(1).unwrap().split("```").next().unwrap();
    let system = parse(example).unwrap();
    verify(&system).unwrap();
    assert_eq!(print(&system), example.replace("deadlock", "faults vanish\ndeadlock"));
}
