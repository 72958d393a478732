//! Which parts of preludes and guards are looked at before all choices are made.
//!
//! A condition that depends on the first few choices only need not be asked again for every value of the others. It
//! moves outwards if nothing that it passes on the way can go wrong: a step that faults must do so before the guard
//! says no. What is asked outside cannot go wrong itself, but it may be a check that something else does.
//!
//! A choice that must be equal to something needs no loop: it has that value, or no instance is enabled.

use plimsoll_ir::{Access, BinOp, Choice, Command, Expr, Narrow, Place, Root, Stmt, System, TempId, UnOp};

use super::range::Range;

/// What happens where a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// All is well so far.
    GoOn,
    /// No instance is enabled.
    Skip,
    /// All instances fault.
    Fault,
}

/// A condition, and what happens where it holds; where it does not, all is well, or for [`Then::GoOn`] all is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter<'a> {
    pub condition: &'a Expr,
    pub then: Then,
}

/// Prelude and guard of a command, divided.
pub(super) struct Filters<'a> {
    /// By the number of choices that have been made.
    pub outside: Vec<Vec<Filter<'a>>>,
    /// By choice: what it must be equal to, which needs only choices before it and those that must be constants.
    pub pins: Vec<Option<&'a Expr>>,
    /// What is left of the prelude and of the conjuncts of the guard.
    pub prelude: Vec<&'a Stmt>,
    pub guard: Vec<&'a Expr>,
}

impl<'a> Filters<'a> {
    /// Divides the code of a command; `is_fixed` tells whether nothing but the choice writes to its temporary.
    pub fn of(system: &'a System, command: &'a Command, is_fixed: impl Fn(TempId) -> bool) -> Filters<'a> {
        let innermost = command.choices.len();
        let fixed = command.choices.iter().map(|choice| is_fixed(choice.temp)).collect();
        let mut looker = Looker { system, command, fixed, constants: vec![None; innermost] };
        let mut conjuncts = Vec::new();
        flatten(&command.guard, &mut conjuncts);
        looker.constants = looker.constants(&conjuncts);
        let mut filters = Filters {
            outside: vec![Vec::new(); innermost],
            pins: vec![None; innermost],
            prelude: Vec::new(),
            guard: Vec::new(),
        };
        // No filter may move further out than a fault that comes before it, and no fault further than anything.
        let (mut fault_floor, mut floor) = (0, 0);
        for stmt in &command.prelude {
            let filter = looker.filter(stmt);
            let depth = match filter {
                Some((Filter { then: Then::Fault, .. }, depth)) => depth.max(floor),
                Some((_, depth)) => depth.max(fault_floor),
                None => innermost,
            };
            let faults = filter.map_or(looker.may_fault(stmt), |(filter, _)| filter.then == Then::Fault);
            floor = floor.max(depth);
            fault_floor = if faults { depth } else { fault_floor };
            match filter {
                Some((filter, _)) if depth < innermost => filters.outside[depth].push(filter),
                _ => filters.prelude.push(stmt),
            }
        }
        for condition in conjuncts {
            // Whatever goes wrong before it does so for other values of the choice too.
            if let Some((choice, pin)) = looker.pin(condition)
                && filters.pins[choice].is_none()
                && looker.constants[choice].is_none_or(|value| *pin == Expr::Const(value))
                && fault_floor <= choice
            {
                filters.pins[choice] = Some(pin);
                continue;
            }
            let depth = looker.expr(condition).map_or(innermost, |(_, depth)| depth.max(fault_floor));
            if looker.expr(condition).is_none() {
                fault_floor = innermost;
            }
            match filters.outside.get_mut(depth) {
                Some(list) => list.push(Filter { condition, then: Then::GoOn }),
                None => filters.guard.push(condition),
            }
        }
        filters
    }
}

fn flatten<'a>(expr: &'a Expr, out: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Binary(BinOp::And, left, right) => {
            flatten(left, out);
            flatten(right, out);
        }
        Expr::Const(1) => {}
        _ => out.push(expr),
    }
}

/// Looks at code before it is generated.
struct Looker<'a> {
    system: &'a System,
    command: &'a Command,
    /// By choice: is its temporary not written otherwise?
    fixed: Vec<bool>,
    /// By choice: the only value for which an instance does anything.
    constants: Vec<Option<i64>>,
}

impl<'a> Looker<'a> {
    /// The choices that must be equal to constants, which are asked for before anything can go wrong.
    fn constants(&self, conjuncts: &[&'a Expr]) -> Vec<Option<i64>> {
        let mut constants = vec![None; self.command.choices.len()];
        if self.command.prelude.iter().any(|stmt| self.may_fault(stmt)) {
            return constants;
        }
        for condition in conjuncts.iter().take_while(|condition| self.expr(condition).is_some()) {
            if let Some((choice, &Expr::Const(value))) = self.pin(condition) {
                let Choice { low, high, .. } = self.command.choices[choice];
                constants[choice] = constants[choice].or((low..=high).contains(&value).then_some(value));
            }
        }
        constants
    }

    /// The choice that a condition says to be equal to something, and that, if only choices before it are needed for it.
    fn pin(&self, condition: &'a Expr) -> Option<(usize, &'a Expr)> {
        let Expr::Binary(BinOp::Eq, left, right) = condition else { return None };
        [(left, right), (right, left)].into_iter().find_map(|(chosen, pin)| {
            let Expr::Read(Place { root: Root::Temp(temp), path }) = &**chosen else { return None };
            let choice = self.command.choices.iter().position(|choice| choice.temp == *temp && path.is_empty())?;
            let (_, depth) = self.expr(pin)?;
            (self.fixed[choice] && depth <= choice).then_some((choice, &**pin))
        })
    }

    /// A statement that does nothing but stop where a condition holds, with the number of choices that it needs.
    fn filter(&self, stmt: &'a Stmt) -> Option<(Filter<'a>, usize)> {
        let Stmt::If { condition, then, otherwise } = stmt else { return None };
        let then = match (&then[..], otherwise.is_empty()) {
            ([Stmt::Discard], true) => Then::Skip,
            ([Stmt::Fault(_)], true) => Then::Fault,
            _ => return None,
        };
        let (_, depth) = self.expr(condition)?;
        Some((Filter { condition, then }, depth))
    }

    /// May a statement fault? Only simple ones are known not to.
    fn may_fault(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Assign { to: Place { root: Root::Temp(temp), path }, value, narrow } if path.is_empty() => {
                let scalar = self.command.temps[temp.index()].1.as_scalar();
                let fits =
                    |range: Range| scalar.is_some_and(|scalar| range.within(Range::new(scalar.low, scalar.high)));
                !self.expr(value).is_some_and(|(range, _)| *narrow == Narrow::Wrap || fits(range))
            }
            Stmt::If { condition, then, otherwise } => {
                self.expr(condition).is_none() || then.iter().chain(otherwise).any(|stmt| self.may_fault(stmt))
            }
            Stmt::Discard => false,
            _ => true,
        }
    }

    /// The values of an expression and the number of choices that it needs; nothing if evaluating it may fault.
    fn expr(&self, expr: &Expr) -> Option<(Range, usize)> {
        Some(match expr {
            Expr::Const(value) => (Range::constant(*value), 0),
            Expr::Read(place) => self.read(place)?,
            Expr::Unary(op, value) => {
                let (range, depth) = self.expr(value)?;
                (if *op == UnOp::Not { Range::TRUTH } else { Range::unary(*op, range) }, depth)
            }
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                if matches!(op, BinOp::Div | BinOp::Rem) && right.0.contains(0) {
                    return None;
                }
                let range = if matches!(op, BinOp::And | BinOp::Or) {
                    Range::TRUTH
                } else {
                    Range::binary(*op, left.0, right.0)
                };
                (range, left.1.max(right.1))
            }
            Expr::Select(condition, then, otherwise) => {
                let (condition, then, otherwise) = (self.expr(condition)?, self.expr(then)?, self.expr(otherwise)?);
                (then.0.union(otherwise.0), condition.1.max(then.1).max(otherwise.1))
            }
            Expr::Wrap { bits, signed, value } => {
                let (range, depth) = self.expr(value)?;
                (range.wrap(*bits, *signed), depth)
            }
        })
    }

    fn read(&self, place: &Place) -> Option<(Range, usize)> {
        let innermost = self.command.choices.len();
        let mut ty = match place.root {
            Root::Var(var) => &self.system.vars[var.index()].ty,
            Root::Temp(temp) => {
                let choice = self.command.choices.iter().position(|choice| choice.temp == temp);
                return Some(match choice.filter(|&choice| self.fixed[choice]) {
                    Some(choice) => match self.constants[choice] {
                        Some(value) => (Range::constant(value), 0),
                        None => {
                            let found = &self.command.choices[choice];
                            (Range::new(found.low, found.high), choice + 1)
                        }
                    },
                    None if place.path.is_empty() => {
                        (Range::of_field(&self.command.temps[temp.index()].1.as_scalar()?), innermost)
                    }
                    None => return None,
                });
            }
            Root::Reference(_) => return None,
        };
        let mut depth = 0;
        for access in &place.path {
            if let (plimsoll_ir::Type::Array { len, .. }, Access::Index(index)) = (ty, access) {
                let (range, needed) = self.expr(index)?;
                if !range.within(Range::new(0, *len as i64 - 1)) {
                    return None;
                }
                depth = depth.max(needed);
            }
            ty = ty.step(access);
        }
        Some((Range::of_field(&ty.as_scalar()?), depth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is asked after how many choices, and what is left.
    fn divided(code: &str) -> (Vec<usize>, usize, usize) {
        let text = format!(
            "system \"t\" var a: [4] 0..7 var b: [4] 0..7 var x: 0..7 command \"c\" {{ temp i: 0..3 temp j: 0..3
            temp t: 0..7 choose i in 0..3 choose j in 0..3 {code} }}"
        );
        let system = plimsoll_ir::text::parse(&text).unwrap();
        let filters = Filters::of(&system, &system.commands[0], |_| true);
        (filters.outside.iter().map(Vec::len).collect(), filters.prelude.len(), filters.guard.len())
    }

    #[test]
    fn conjuncts_move_to_the_choice_that_they_need() {
        assert_eq!(divided("when (a[j] == 1) && ((a[i] == 2) && (x == 3))"), (vec![1, 1], 0, 1));
        assert_eq!(divided("before { if a[i] == 0 { discard; } } when a[i] == 2"), (vec![0, 2], 0, 0));
    }

    /// Which choices are pinned, and what is asked after how many choices.
    fn pinned(code: &str) -> ([bool; 2], Vec<usize>) {
        let text = format!(
            "system \"t\" var a: [4] 0..7 var x: 0..7 command \"c\" {{ temp i: 0..3 temp j: 0..3 temp t: 0..7
            choose i in 0..3 choose j in 0..3 {code} }}"
        );
        let system = plimsoll_ir::text::parse(&text).unwrap();
        let filters = Filters::of(&system, &system.commands[0], |_| true);
        ([filters.pins[0].is_some(), filters.pins[1].is_some()], filters.outside.iter().map(Vec::len).collect())
    }

    #[test]
    fn a_choice_is_pinned_by_what_comes_before_it() {
        assert_eq!(pinned("when (j == a[i]) && (a[j] == 1)"), ([false, true], vec![0, 0]));
        assert_eq!(pinned("when (x == i) && (a[i] == j)"), ([true, true], vec![0, 0]));
        assert_eq!(pinned("when i == a[j]"), ([false, false], vec![0, 0]));
        // Constants are known from the beginning.
        assert_eq!(pinned("when (i == a[j]) && (j == 2)"), ([true, true], vec![0, 0]));
        assert_eq!(pinned("when (j == 1) && ((j == 2) && (a[j] == 3))"), ([false, true], vec![2, 0]));
        assert_eq!(pinned("when (i == x) && (i == 2)"), ([true, false], vec![1, 0]));
    }

    #[test]
    fn nothing_is_pinned_over_what_may_go_wrong() {
        assert_eq!(pinned("when (a[i + 1] == 1) && (j == 2)"), ([false, false], vec![0, 0]));
        assert_eq!(pinned("before { t := a[x]; } when j == 2"), ([false, false], vec![0, 0]));
        assert_eq!(pinned("before { if a[j] == 0 { fault \"f\"; } } when j == 2"), ([false, false], vec![0, 0]));
        // That goes wrong for all values or for none.
        assert_eq!(pinned("before { if a[i] == 0 { fault \"f\"; } } when j == x"), ([false, true], vec![0, 1]));
        assert_eq!(pinned("before { if x == 0 { fault \"f\"; } } when j == i"), ([false, true], vec![1, 0]));
    }

    #[test]
    fn nothing_moves_over_what_may_go_wrong() {
        assert_eq!(divided("when (a[j + 1] == 1) && (x == 3)"), (vec![0, 0], 0, 2));
        assert_eq!(divided("before { t := a[x]; } when x == 3"), (vec![0, 0], 1, 1));
        assert_eq!(divided("before { t := a[i]; } when (x == 3) && (t == 1)"), (vec![1, 0], 1, 1));
        assert_eq!(divided("before { if a[j] == 0 { fault \"f\"; } } when x == 3"), (vec![0, 0], 1, 1));
        assert_eq!(divided("before { if a[i] == 0 { fault \"f\"; } } when x == 3"), (vec![0, 2], 0, 0));
        let late = "before { if a[j] == 0 { discard; } if a[i] == 0 { fault \"f\"; } } when x == 3";
        assert_eq!(divided(late), (vec![0, 0], 2, 1));
    }
}
