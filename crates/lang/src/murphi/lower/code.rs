//! The code of one command or property while it is made: temporaries, statements, and what is known to be
//! defined at the current point.
//!
//! Facts form layers, one for each branch, block or loop around the current point. A write removes facts
//! from all layers, so what remains when a layer is dropped holds on every way out of it. Inside a loop,
//! facts from before it are not used: a later statement of the body may undo them.

use super::value;
use plimsoll_ir::{Access, Expr, Narrow, Place, Root, Scalar, Stmt, TempId, Type};
use std::collections::{BTreeSet, HashSet};

/// What `return` means at the current point.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The result, if there is one, and the number of blocks and loops around the body's own block.
    pub result: Option<super::value::Spot>,
    pub depth: u32,
    pub returned: bool,
}

#[derive(Clone, Debug, Default)]
struct Layer {
    places: Vec<Place>,
    /// Facts of earlier layers are not used.
    is_loop: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Code {
    pub temps: Vec<(String, Type)>,
    pub out: Vec<Stmt>,
    /// Blocks and loops around the current point.
    pub depth: u32,
    /// Loops around it.
    pub loops: u32,
    layers: Vec<Layer>,
    /// Temporaries that do not change while they are in scope.
    fixed: HashSet<TempId>,
    pub writes_state: bool,
    /// How many calls have been expanded.
    pub calls: u32,
    /// Numbers of the variables whose multisets may have changed.
    pub touched: BTreeSet<u32>,
    /// The same of what a caller handed over.
    pub touched_references: BTreeSet<u32>,
    pub frames: Vec<Frame>,
    /// Loop variables that were assigned to.
    pub assigned: HashSet<TempId>,
    /// Statements made so far, discarded attempts included.
    pub made: usize,
}

impl Code {
    pub fn new() -> Code {
        Code { layers: vec![Layer::default()], ..Code::default() }
    }

    pub fn temp(&mut self, name: impl Into<String>, ty: impl Into<Type>) -> TempId {
        self.temps.push((name.into(), ty.into()));
        TempId(self.temps.len() as u32 - 1)
    }

    /// A temporary that keeps its value while it is in scope.
    pub fn fixed_temp(&mut self, name: impl Into<String>, ty: impl Into<Type>) -> TempId {
        let temp = self.temp(name, ty);
        self.fixed.insert(temp);
        temp
    }

    /// Forgets the temporaries made since there were `count`.
    pub fn forget_temps(&mut self, count: usize) {
        self.temps.truncate(count);
        self.fixed.retain(|temp| temp.index() < count);
    }

    pub fn is_fixed(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Const(_) => true,
            Expr::Read(Place { root: Root::Temp(temp), path }) => path.is_empty() && self.fixed.contains(temp),
            Expr::Binary(_, left, right) => self.is_fixed(left) && self.is_fixed(right),
            _ => false,
        }
    }

    pub fn emit(&mut self, stmt: Stmt) {
        match &stmt {
            Stmt::Assign { to, .. } | Stmt::Copy { to, .. } | Stmt::Reset(to) | Stmt::Sort(to) => {
                self.written(&to.clone())
            }
            Stmt::Call(call) => call.outputs.clone().iter().for_each(|to| self.written(to)),
            _ => {}
        }
        self.made += 1;
        self.out.push(stmt);
    }

    pub fn assign(&mut self, to: impl Into<Place>, value: impl Into<Expr>) {
        self.emit(Stmt::assign(to, value, Narrow::Trap));
    }

    pub fn fault_if(&mut self, condition: Expr, message: String) {
        if condition != Expr::FALSE {
            self.emit(Stmt::If { condition, then: vec![Stmt::Fault(message)], otherwise: Vec::new() });
        }
    }

    /// Something below the place changes.
    pub fn written(&mut self, place: &Place) {
        self.writes_state |= !matches!(place.root, Root::Temp(_));
        for layer in &mut self.layers {
            layer.places.retain(|known| !overlaps(known, place) && !known.indices().any(|index| reads(index, place)));
        }
    }

    /// From here on the scalar at `place` is defined.
    pub fn now_defined(&mut self, place: &Place) {
        if let Some(layer) = self.layers.last_mut() {
            layer.places.push(place.clone());
        }
    }

    pub fn is_defined(&self, place: &Place) -> bool {
        for layer in self.layers.iter().rev() {
            if layer.places.contains(place) {
                return true;
            }
            if layer.is_loop {
                return false;
            }
        }
        false
    }

    pub fn push_layer(&mut self, is_loop: bool) {
        self.layers.push(Layer { places: Vec::new(), is_loop });
    }

    pub fn pop_layer(&mut self) {
        self.layers.pop();
    }

    /// A temporary for values within the bounds, if 32 bits can hold them.
    pub fn holder(&mut self, low: i64, high: i64) -> TempId {
        let tight = Scalar::range(low, high);
        let scalar = if low <= high && tight.bits() <= 32 { tight } else { Scalar::I32 };
        self.fixed_temp("value", scalar)
    }

    /// Holds a value in a temporary, so that later writes do not change it.
    pub fn save(&mut self, value: &value::Value) -> value::Value {
        if self.is_fixed(&value.expr) {
            return value.clone();
        }
        let temp = self.holder(value.low, value.high);
        self.assign(temp, value.expr.clone());
        value::Value { expr: Expr::read(temp), ..value.clone() }
    }

    /// The same place with its indices as they are now.
    pub fn freeze(&mut self, place: &Place) -> Place {
        let path = place.path.iter().map(|access| match access {
            Access::Index(index) if !self.is_fixed(index) => {
                let temp = self.fixed_temp("index", Scalar::range(0, i32::MAX as i64));
                self.assign(temp, index.clone());
                Access::Index(Expr::read(temp))
            }
            access => access.clone(),
        });
        Place { root: place.root, path: path.collect() }
    }
}

/// May the two places share bits?
fn overlaps(one: &Place, other: &Place) -> bool {
    let differ = |(one, other): (&Access, &Access)| match (one, other) {
        (Access::Field(one), Access::Field(other)) => one != other,
        (Access::Index(Expr::Const(one)), Access::Index(Expr::Const(other))) => one != other,
        _ => false,
    };
    // What a reference stands for may be any part of the state.
    let is_reference = |place: &Place| matches!(place.root, Root::Reference(_));
    let is_temp = |place: &Place| matches!(place.root, Root::Temp(_));
    if one.root != other.root && (is_reference(one) || is_reference(other)) {
        return !is_temp(one) && !is_temp(other);
    }
    one.root == other.root && !one.path.iter().zip(&other.path).any(differ)
}

/// May evaluating `expr` read what `place` covers?
fn reads(expr: &Expr, place: &Place) -> bool {
    match expr {
        Expr::Const(_) => false,
        Expr::Read(read) => overlaps(read, place) || read.indices().any(|index| reads(index, place)),
        Expr::Unary(_, inner) | Expr::Wrap { value: inner, .. } => reads(inner, place),
        Expr::Binary(_, left, right) => reads(left, place) || reads(right, place),
        Expr::Select(condition, then, otherwise) => [condition, then, otherwise].iter().any(|part| reads(part, place)),
    }
}

/// How many statements and expression nodes there are.
pub fn size(stmts: &[Stmt]) -> usize {
    let of = |stmt: &Stmt| match stmt {
        Stmt::Assign { to, value, .. } => 1 + value::place_size(to) + value::size(value),
        Stmt::Copy { to, from } => 1 + value::place_size(to) + value::place_size(from),
        Stmt::Reset(place) | Stmt::Sort(place) => 1 + value::place_size(place),
        Stmt::If { condition, then, otherwise } => 1 + value::size(condition) + size(then) + size(otherwise),
        Stmt::Block(body) | Stmt::Loop { body, .. } => 1 + size(body),
        Stmt::Assert { condition, .. } => 1 + value::size(condition),
        Stmt::Call(call) => {
            let places = call.references.iter().chain(&call.inputs).chain(&call.outputs);
            1 + places.map(|place| 1 + value::place_size(place)).sum::<usize>()
        }
        Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => 1,
    };
    stmts.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::VarId;

    #[test]
    fn writes_remove_facts_they_may_touch() {
        let mut code = Code::new();
        let var = VarId(0);
        let indexed = Place::from(var).field(0).index(Expr::read(Place::from(VarId(1))));
        let beside = Place::from(var).field(1);
        code.now_defined(&indexed);
        code.now_defined(&beside);
        code.emit(Stmt::Reset(Place::from(var).field(0).index(3)));
        assert!(!code.is_defined(&indexed) && code.is_defined(&beside));
        code.now_defined(&indexed);
        code.emit(Stmt::Reset(VarId(1).into()));
        assert!(!code.is_defined(&indexed), "its index changed");
    }

    #[test]
    fn a_loop_hides_facts_and_a_branch_drops_its_own() {
        let mut code = Code::new();
        let (x, y) = (Place::from(VarId(0)), Place::from(VarId(1)));
        code.now_defined(&x);
        code.push_layer(true);
        assert!(!code.is_defined(&x));
        code.now_defined(&y);
        code.pop_layer();
        assert!(code.is_defined(&x) && !code.is_defined(&y));
        code.push_layer(false);
        code.emit(Stmt::Reset(x.clone()));
        code.now_defined(&x);
        code.pop_layer();
        assert!(!code.is_defined(&x), "another way out of the branch may skip the second write");
    }
}
