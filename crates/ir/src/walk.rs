//! Walks over expressions and statements that report which places are touched, or change them.
//!
//! Recursion is as deep as the code is nested, which `verify` bounds.

use crate::expr::{Access, Call, Expr, Place, Stmt};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    Read,
    Write,
}

/// Reports every place that evaluating `expr` may read, those inside indices included.
pub fn expr_places<'a>(expr: &'a Expr, visit: &mut impl FnMut(Touch, &'a Place)) {
    match expr {
        Expr::Const(_) => {}
        Expr::Read(place) => place_touched(Touch::Read, place, visit),
        Expr::Unary(_, value) | Expr::Wrap { value, .. } => expr_places(value, visit),
        Expr::Binary(_, left, right) => {
            expr_places(left, visit);
            expr_places(right, visit);
        }
        Expr::Select(condition, then, otherwise) => {
            expr_places(condition, visit);
            expr_places(then, visit);
            expr_places(otherwise, visit);
        }
    }
}

/// Reports every place that running `stmts` may read or write; the indices of a written place are read. Of a call
/// these are the places that it names, what it hands over as read and written; what procedures touch otherwise is in
/// [`crate::procedures`].
pub fn stmt_places<'a>(stmts: &'a [Stmt], visit: &mut impl FnMut(Touch, &'a Place)) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { to, value, .. } => {
                expr_places(value, visit);
                place_touched(Touch::Write, to, visit);
            }
            Stmt::Copy { to, from } => {
                place_touched(Touch::Read, from, visit);
                place_touched(Touch::Write, to, visit);
            }
            Stmt::Reset(place) => place_touched(Touch::Write, place, visit),
            Stmt::Sort(place) => {
                place_touched(Touch::Read, place, visit);
                visit(Touch::Write, place);
            }
            Stmt::If { condition, then, otherwise } => {
                expr_places(condition, visit);
                stmt_places(then, visit);
                stmt_places(otherwise, visit);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => stmt_places(body, visit),
            Stmt::Assert { condition, .. } => expr_places(condition, visit),
            Stmt::Call(call) => {
                for place in &call.references {
                    place_touched(Touch::Read, place, visit);
                    visit(Touch::Write, place);
                }
                call.inputs.iter().for_each(|place| place_touched(Touch::Read, place, visit));
                call.outputs.iter().for_each(|place| place_touched(Touch::Write, place, visit));
            }
            Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => {}
        }
    }
}

/// Reports every call in `stmts`.
pub fn stmt_calls<'a>(stmts: &'a [Stmt], visit: &mut impl FnMut(&'a Call)) {
    for stmt in stmts {
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                stmt_calls(then, visit);
                stmt_calls(otherwise, visit);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => stmt_calls(body, visit),
            Stmt::Call(call) => visit(call),
            _ => {}
        }
    }
}

fn place_touched<'a>(touch: Touch, place: &'a Place, visit: &mut impl FnMut(Touch, &'a Place)) {
    for index in place.indices() {
        expr_places(index, visit);
    }
    visit(touch, place);
}

/// Reports every place of `expr`, to be changed; those inside indices come first.
pub fn change_expr_places(expr: &mut Expr, change: &mut impl FnMut(&mut Place)) {
    match expr {
        Expr::Const(_) => {}
        Expr::Read(place) => change_place(place, change),
        Expr::Unary(_, value) | Expr::Wrap { value, .. } => change_expr_places(value, change),
        Expr::Binary(_, left, right) => {
            change_expr_places(left, change);
            change_expr_places(right, change);
        }
        Expr::Select(condition, then, otherwise) => {
            change_expr_places(condition, change);
            change_expr_places(then, change);
            change_expr_places(otherwise, change);
        }
    }
}

/// Reports every place of `stmts`, to be changed.
pub fn change_stmt_places(stmts: &mut [Stmt], change: &mut impl FnMut(&mut Place)) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { to, value, .. } => {
                change_expr_places(value, change);
                change_place(to, change);
            }
            Stmt::Copy { to, from } => {
                change_place(from, change);
                change_place(to, change);
            }
            Stmt::Reset(place) | Stmt::Sort(place) => change_place(place, change),
            Stmt::If { condition, then, otherwise } => {
                change_expr_places(condition, change);
                change_stmt_places(then, change);
                change_stmt_places(otherwise, change);
            }
            Stmt::Block(body) | Stmt::Loop { body, .. } => change_stmt_places(body, change),
            Stmt::Assert { condition, .. } => change_expr_places(condition, change),
            Stmt::Call(call) => {
                let Call { references, inputs, outputs, .. } = &mut **call;
                for place in references.iter_mut().chain(inputs).chain(outputs) {
                    change_place(place, change);
                }
            }
            Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => {}
        }
    }
}

fn change_place(place: &mut Place, change: &mut impl FnMut(&mut Place)) {
    for access in &mut place.path {
        if let Access::Index(index) = access {
            change_expr_places(index, change);
        }
    }
    change(place);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Narrow, Root};
    use crate::system::VarId;

    #[test]
    fn indices_are_read_even_on_the_written_side() {
        let var = |index| Place::from(VarId(index));
        let to = var(0).index(Expr::read(var(1).index(Expr::read(VarId(2)))));
        let body = [Stmt::Loop { limit: 1, body: vec![Stmt::assign(to, Expr::read(VarId(3)), Narrow::Trap)] }];
        let mut seen = Vec::new();
        stmt_places(&body, &mut |touch, place| seen.push((touch, place.root)));
        let expected = [(Touch::Read, 3), (Touch::Read, 2), (Touch::Read, 1), (Touch::Write, 0)];
        assert_eq!(seen, expected.map(|(touch, var)| (touch, Root::Var(VarId(var)))));
    }
}
