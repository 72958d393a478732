//! A measure of the code that a command will take: its operators and statements.

use crate::expr::{Expr, Place, Stmt};
use crate::system::{Command, Procedure, Property};

impl Command {
    /// Operators and statements of the command, roughly.
    pub fn weight(&self) -> usize {
        3 + of_stmts(&self.prelude) + of_expr(&self.guard) + of_stmts(&self.body)
    }
}

impl Property {
    /// Operators and statements of the property, roughly.
    pub fn weight(&self) -> usize {
        of_stmts(&self.prelude) + of_expr(&self.expr)
    }
}

impl Procedure {
    /// Operators and statements of the body, roughly.
    pub fn weight(&self) -> usize {
        of_stmts(&self.body)
    }
}

fn of_expr(expr: &Expr) -> usize {
    1 + match expr {
        Expr::Const(_) => 0,
        Expr::Read(place) => of_place(place),
        Expr::Unary(_, value) | Expr::Wrap { value, .. } => of_expr(value),
        Expr::Binary(_, left, right) => of_expr(left) + of_expr(right),
        Expr::Select(condition, then, otherwise) => of_expr(condition) + of_expr(then) + of_expr(otherwise),
    }
}

fn of_place(place: &Place) -> usize {
    place.indices().map(|index| 1 + of_expr(index)).sum()
}

fn of_stmts(stmts: &[Stmt]) -> usize {
    let weight = |stmt: &Stmt| match stmt {
        Stmt::Assign { to, value, .. } => of_place(to) + of_expr(value),
        Stmt::Copy { to, from } => of_place(to) + of_place(from),
        Stmt::Reset(place) => of_place(place),
        Stmt::Sort(place) => 20 + of_place(place),
        Stmt::If { condition, then, otherwise } => of_expr(condition) + of_stmts(then) + of_stmts(otherwise),
        Stmt::Block(body) | Stmt::Loop { body, .. } => of_stmts(body),
        Stmt::Assert { condition, .. } => of_expr(condition),
        Stmt::Call(call) => {
            let places = call.references.iter().chain(&call.inputs).chain(&call.outputs);
            3 + places.map(|place| 1 + of_place(place)).sum::<usize>()
        }
        Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => 0,
    };
    stmts.iter().map(|stmt| 2 + weight(stmt)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_counts_operators_and_statements() {
        let mut command = Command::new("c");
        let light = command.weight();
        command.guard = Expr::all((0..100).map(|value| Expr::equal(value.into(), 0.into())));
        assert_eq!(command.weight() - light, 398);
        command.body = vec![Stmt::Discard; 10];
        assert_eq!(command.weight() - light, 418);
    }
}
