use super::*;
use crate::murphi::ast::{BinaryOp, ExprKind, RuleKind, StmtKind, UnaryOp};

fn parse(text: &str) -> Expr {
    let mut diagnostics = Diagnostics::default();
    let expr = expression(text, &mut diagnostics);
    assert_eq!(diagnostics.error_count(), 0, "{text}");
    expr.unwrap()
}

fn errors(text: &str) -> usize {
    let mut diagnostics = Diagnostics::default();
    program(text, &mut diagnostics);
    diagnostics.error_count()
}

#[test]
fn negation_binds_looser_than_comparison() {
    let ExprKind::Unary(UnaryOp::Not, inner) = parse("!x = 1").kind else { panic!() };
    assert!(matches!(inner.kind, ExprKind::Binary(BinaryOp::Eq, ..)));
    assert!(matches!(parse("!a & b").kind, ExprKind::Chain { .. }));
}

#[test]
fn implications_and_comparisons_do_not_chain() {
    for text in ["a -> b -> c", "a = b = c"] {
        assert!(expression(text, &mut Diagnostics::default()).is_err(), "{text}");
    }
}

#[test]
fn products_bind_before_sums_and_left_to_right() {
    let ExprKind::Binary(BinaryOp::Sub, left, _) = parse("1 + 2 * 3 - 4 / 2 % 3").kind else { panic!() };
    assert!(matches!(left.kind, ExprKind::Binary(BinaryOp::Add, ..)));
}

#[test]
fn a_rule_without_guard_is_not_taken_for_one_with() {
    let text = "var x: 0..1; rule x := 1; end; rule forall i := 0 to 1 do x = i end ==> x := 0 end";
    let mut diagnostics = Diagnostics::default();
    let program = program(text, &mut diagnostics);
    assert_eq!(diagnostics.error_count(), 0);
    let guards: Vec<bool> = program
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Rule(rule) => match &rule.kind {
                RuleKind::Simple { guard, .. } => Some(guard.is_some()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(guards, [false, true]);
}

#[test]
fn words_of_one_tool_are_names_where_they_can_be() {
    let text = "var cover: 0..1; choose: boolean; startstate cover := 1; choose := true; end; cover cover = 1;";
    assert_eq!(errors(text), 0);
    let mut diagnostics = Diagnostics::default();
    let items = program(text, &mut diagnostics).items;
    let Item::Rule(rule) = &items[2] else { panic!() };
    let RuleKind::Start { body, .. } = &rule.kind else { panic!() };
    assert!(matches!(body[0].kind, StmtKind::Assign(..)));
}

#[test]
fn several_errors_are_found_at_once() {
    assert_eq!(errors("var x: ; var y: 0..1; startstate y := ; y := 0; z = ; end; rule ==> y := 1 end; rule ) end"), 4);
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    for (open, close) in [("(", ")"), ("!", ""), ("-", ""), ("a[", "]")] {
        let text = format!("{}x{}", open.repeat(100_000), close.repeat(100_000));
        assert!(expression(&text, &mut Diagnostics::default()).is_err());
    }
    let sum = "x + ".repeat(100_000) + "x";
    assert!(expression(&sum, &mut Diagnostics::default()).is_err());
    let long = "x & ".repeat(100_000) + "x";
    assert!(expression(&long, &mut Diagnostics::default()).is_ok());
    let text = format!("rule {} end", "if x then ".repeat(100_000));
    assert!(errors(&text) > 0);
}
