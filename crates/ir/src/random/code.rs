//! Random expressions and statements over the variables of a system and the temporaries of a command.

use super::draw::Draw;
pub use crate::expr::Place;
use crate::expr::{BinOp, Call, Expr, Narrow, Root, Stmt, UnOp};
use crate::system::{Procedure, ProcedureId, ReferenceId, System, TempId, VarId};
use crate::types::{Scalar, Type};
use crate::verify::same_shape;

/// Ranges too large to roam over: variables of such types only take a few values.
pub fn is_wide(scalar: &Scalar) -> bool {
    scalar.high - scalar.low > 64
}

/// Variables of wide types hold `low` plus at most three of these, or zero.
pub fn quarter(scalar: &Scalar) -> i64 {
    (scalar.high - scalar.low) / 3
}

#[derive(Clone, Copy)]
enum Hop {
    Field(u32),
    Index(u32),
}

/// A root or a part of one, its indices still open.
#[derive(Clone)]
struct Spot {
    root: Root,
    path: Vec<Hop>,
    ty: Type,
    writable: bool,
}

impl Spot {
    /// Part of the state, and free to be written?
    fn is_state(&self) -> bool {
        self.writable && !matches!(self.root, Root::Temp(_))
    }
}

/// Draws code over a fixed set of spots; loops add counters to the temporaries.
pub struct Code<'a> {
    draw: &'a mut Draw,
    spots: Vec<Spot>,
    temps: Vec<(String, Type)>,
    procedures: &'a [Procedure],
    /// Those of them that may be called everywhere.
    pure: &'a [bool],
    only_pure: bool,
    discard: bool,
    assert: bool,
}

impl<'a> Code<'a> {
    /// Code that never writes the variables in `fixed` and touches none in `hidden`.
    pub fn new(
        draw: &'a mut Draw,
        system: &'a System,
        (fixed, hidden): (&[VarId], &[VarId]),
        pure: &'a [bool],
        temps: Vec<(String, Type)>,
    ) -> Code<'a> {
        let mut spots = Vec::new();
        for (index, var) in system.vars.iter().enumerate() {
            let id = VarId(index as u32);
            if hidden.contains(&id) {
                continue;
            }
            add_spots(Root::Var(id), &var.ty, Vec::new(), !fixed.contains(&id), &mut spots);
        }
        for (index, (_, ty)) in temps.iter().enumerate() {
            add_spots(Root::Temp(TempId(index as u32)), ty, Vec::new(), true, &mut spots);
        }
        let procedures = &system.procedures;
        Code { draw, spots, temps, procedures, pure, only_pure: false, discard: false, assert: false }
    }

    /// Lets the code know the references of a procedure.
    pub fn refer_to(mut self, references: &[(String, Type)]) -> Code<'a> {
        for (index, (_, ty)) in references.iter().enumerate() {
            add_spots(Root::Reference(ReferenceId(index as u32)), ty, Vec::new(), true, &mut self.spots);
        }
        self
    }

    /// Leaves the state alone, as preludes must.
    pub fn only_temps(mut self) -> Code<'a> {
        for spot in &mut self.spots {
            spot.writable &= matches!(spot.root, Root::Temp(_));
        }
        self.only_pure = true;
        self
    }

    pub fn may_discard(mut self) -> Code<'a> {
        self.discard = true;
        self
    }

    pub fn may_assert(mut self) -> Code<'a> {
        self.assert = true;
        self
    }

    pub fn into_temps(self) -> Vec<(String, Type)> {
        self.temps
    }

    /// A condition that is often true.
    pub fn guard(&mut self, depth: u32) -> Expr {
        match self.draw.below(10) {
            0..5 => Expr::TRUE,
            5..8 => {
                let op = self.draw.pick(&[BinOp::Ne, BinOp::Lt, BinOp::Le, BinOp::Ge, BinOp::Eq, BinOp::Gt]);
                Expr::binary(op, self.read(1), Expr::Const(self.draw.within(-1, 3)))
            }
            _ => self.expr(depth),
        }
    }

    pub fn expr(&mut self, depth: u32) -> Expr {
        if depth == 0 {
            return self.leaf();
        }
        let inner = depth - 1;
        match self.draw.below(20) {
            0..2 => self.leaf(),
            2..5 => self.read(inner),
            5..7 => {
                let op = self.draw.pick(&[UnOp::Neg, UnOp::Not, UnOp::BitNot]);
                Expr::unary(op, self.expr(inner))
            }
            7 => Expr::Select(Box::new(self.expr(inner)), Box::new(self.expr(inner)), Box::new(self.expr(inner))),
            8 => {
                let bits = self.draw.pick(&[1, 2, 3, 8, 16, 31, 32, 33, 63, 64]);
                let signed = self.draw.chance(50);
                Expr::wrap(bits, signed, self.expr(inner))
            }
            9 => {
                let op = self.draw.pick(&[BinOp::Div, BinOp::Rem]);
                let divisor = if self.draw.chance(70) {
                    Expr::Const(self.draw.pick(&[1, 2, 3, -1, -2]))
                } else {
                    self.expr(inner)
                };
                Expr::binary(op, self.expr(inner), divisor)
            }
            10..14 => {
                let op = self.draw.pick(&[BinOp::Eq, BinOp::Ne, BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge]);
                Expr::binary(op, self.expr(inner), self.expr(inner))
            }
            14..16 => {
                let op = self.draw.pick(&[BinOp::And, BinOp::Or]);
                Expr::binary(op, self.expr(inner), self.expr(inner))
            }
            _ => {
                use BinOp::*;
                let op = self.draw.pick(&[Add, Add, Sub, Sub, Mul, BitAnd, BitOr, BitXor, Shl, Shr]);
                Expr::binary(op, self.expr(inner), self.expr(inner))
            }
        }
    }

    fn leaf(&mut self) -> Expr {
        match self.draw.below(10) {
            0..2 => Expr::Const(self.draw.within(-2, 6)),
            2 => Expr::Const(self.draw.pick(&[0, 1, 63, 64, 255, -129, 1 << 31, i64::MAX, i64::MIN])),
            _ => self.read(0),
        }
    }

    /// The value of some scalar, or a constant where there is none.
    fn read(&mut self, depth: u32) -> Expr {
        let only_vars = self.draw.chance(50);
        let wanted = |spot: &Spot| !matches!(spot.root, Root::Temp(_)) || !only_vars;
        match self.spot(|spot| wanted(spot) && matches!(spot.ty, Type::Scalar(_))) {
            Some(spot) => Expr::Read(self.place(&spot, depth)),
            None => Expr::Const(self.draw.within(0, 2)),
        }
    }

    fn spot(&mut self, wanted: impl Fn(&Spot) -> bool) -> Option<Spot> {
        let count = self.spots.iter().filter(|spot| wanted(spot)).count();
        let nth = self.draw.below(count.max(1) as u64) as usize;
        self.spots.iter().filter(|spot| wanted(spot)).nth(nth).cloned()
    }

    /// Fills in the indices of a spot.
    fn place(&mut self, spot: &Spot, depth: u32) -> Place {
        let mut place = Place { root: spot.root, path: Vec::new() };
        for hop in &spot.path {
            place = match *hop {
                Hop::Field(field) => place.field(field),
                Hop::Index(len) => place.index(self.index(len, depth)),
            };
        }
        place
    }

    /// An index that is in range most of the time.
    fn index(&mut self, len: u32, depth: u32) -> Expr {
        match self.draw.below(20) {
            0..10 => Expr::Const(self.draw.below(len as u64) as i64),
            10..17 if depth > 0 => self.below(len as i64, depth - 1),
            17 if depth > 0 => self.expr(depth - 1),
            18 => Expr::Const(self.draw.within(-1, len as i64)),
            _ => self.simple_index(len),
        }
    }

    /// A scalar whose range fits, if there is one.
    fn simple_index(&mut self, len: u32) -> Expr {
        let fits = |ty: &Type| matches!(ty, Type::Scalar(scalar) if scalar.low >= 0 && scalar.high < len as i64);
        match self.spot(|spot| spot.path.is_empty() && fits(&spot.ty)) {
            Some(spot) => Expr::Read(self.place(&spot, 0)),
            None => Expr::Const(self.draw.below(len as u64) as i64),
        }
    }

    /// A value in `0..limit`.
    fn below(&mut self, limit: i64, depth: u32) -> Expr {
        let positive = Expr::binary(BinOp::BitAnd, self.expr(depth), Expr::Const(1023));
        Expr::binary(BinOp::Rem, positive, Expr::Const(limit))
    }

    /// A value to store, mostly one that fits.
    fn value_for(&mut self, scalar: &Scalar, own: &Place, depth: u32) -> Expr {
        let span = scalar.high - scalar.low + 1;
        let from_low = |offset: Expr| Expr::binary(BinOp::Add, offset, Expr::Const(scalar.low));
        if is_wide(scalar) {
            let count = Expr::binary(BinOp::BitAnd, self.expr(depth), Expr::Const(3));
            return from_low(Expr::binary(BinOp::Mul, count, Expr::Const(quarter(scalar))));
        }
        match self.draw.below(10) {
            0..2 => Expr::Const(self.draw.within(scalar.low, scalar.high)),
            2..5 => {
                let more = Expr::binary(BinOp::Add, Expr::Read(own.clone()), Expr::Const(1));
                let below = Expr::binary(BinOp::Lt, Expr::Read(own.clone()), Expr::Const(scalar.high));
                Expr::Select(Box::new(below), Box::new(more), Box::new(Expr::Const(scalar.low)))
            }
            // The first temporary holds a choice, if there is any.
            5..7 if !self.temps.is_empty() && self.temps[0].1.as_scalar().is_some() => {
                let positive = Expr::binary(BinOp::BitAnd, Expr::read(TempId(0)), Expr::Const(7));
                from_low(Expr::binary(BinOp::Rem, positive, Expr::Const(span)))
            }
            5..9 => from_low(self.below(span, depth)),
            _ => self.expr(depth),
        }
    }

    /// An assignment of a value that surely fits to a whole variable, if there is one.
    pub fn simple_assignment(&mut self) -> Option<Stmt> {
        let spot = self.spot(|spot| spot.is_state() && spot.path.is_empty() && spot.ty.as_scalar().is_some())?;
        let (to, scalar) = (self.place(&spot, 0), spot.ty.as_scalar()?);
        let other = match self.simple_index(2) {
            Expr::Const(_) => Expr::TRUE,
            read => read,
        };
        let value = Expr::Select(Box::new(other), Box::new(scalar.high.into()), Box::new(scalar.low.into()));
        let value = if self.draw.chance(50) { self.draw.pick(&[scalar.low, scalar.high]).into() } else { value };
        Some(Stmt::Assign { to, value, narrow: Narrow::Trap })
    }

    /// One to three statements.
    pub fn statements(&mut self, depth: u32) -> Vec<Stmt> {
        self.list(depth, 0)
    }

    fn list(&mut self, depth: u32, exits: u32) -> Vec<Stmt> {
        (0..self.draw.within(1, 4)).flat_map(|_| self.statement(depth, exits)).collect()
    }

    fn statement(&mut self, depth: u32, exits: u32) -> Vec<Stmt> {
        let inner = depth.saturating_sub(1);
        match self.draw.below(20) {
            0..9 => self.assign(inner).into_iter().collect(),
            9..11 => self.copy(inner).into_iter().collect(),
            11 => match self.draw.chance(40) {
                true => self.sort(inner).into_iter().collect(),
                false => self.reset(inner).into_iter().collect(),
            },
            19 => self.call(inner).into_iter().collect(),
            12..15 if depth > 0 => {
                let condition = self.expr(inner);
                let then = self.list(inner, exits);
                let otherwise = if self.draw.chance(50) { self.list(inner, exits) } else { Vec::new() };
                vec![Stmt::If { condition, then, otherwise }]
            }
            15 if depth > 0 => vec![self.block(inner, exits)],
            16 if depth > 0 => self.counted_loop(inner, exits),
            17 if self.assert => {
                vec![Stmt::Assert { condition: self.guard(inner), message: "random \"assertion\"".into() }]
            }
            18 if self.draw.chance(60) => {
                let fault = Stmt::Fault("random fault".into());
                let exit = if self.discard && self.draw.chance(60) { Stmt::Discard } else { fault };
                if self.draw.chance(5) { vec![exit] } else { vec![self.when(exit, inner)] }
            }
            _ => Vec::new(),
        }
    }

    /// A call, if there are places for everything that the procedure wants.
    fn call(&mut self, depth: u32) -> Option<Stmt> {
        if self.procedures.is_empty() {
            return None;
        }
        let number = self.draw.below(self.procedures.len() as u64) as usize;
        let procedure = &self.procedures[number];
        let pure = self.pure[number];
        if !pure && (self.only_pure || !self.assert || !self.discard) {
            return None;
        }
        let state = |spot: &Spot| spot.is_state() || pure && !matches!(spot.root, Root::Temp(_));
        let references = self.all_of(procedure.references.iter().map(|(_, ty)| ty), state, depth)?;
        let inputs = self.all_of(procedure.temps[..procedure.inputs].iter().map(|(_, ty)| ty), |_| true, depth)?;
        let outputs = procedure.outputs.iter().map(|temp| &procedure.temps[temp.index()].1);
        let outputs = self.all_of(outputs, |spot| spot.writable, depth)?;
        Some(Stmt::Call(Box::new(Call { procedure: ProcedureId(number as u32), references, inputs, outputs })))
    }

    /// A place of each type.
    fn all_of<'t>(
        &mut self,
        types: impl Iterator<Item = &'t Type>,
        wanted: impl Fn(&Spot) -> bool,
        depth: u32,
    ) -> Option<Vec<Place>> {
        let mut places = Vec::new();
        for ty in types {
            let spot = self.spot(|spot| wanted(spot) && same_shape(&spot.ty, ty))?;
            places.push(self.place(&spot, depth));
        }
        Some(places)
    }

    fn when(&mut self, stmt: Stmt, depth: u32) -> Stmt {
        Stmt::If { condition: self.expr(depth), then: vec![stmt], otherwise: Vec::new() }
    }

    fn assign(&mut self, depth: u32) -> Option<Stmt> {
        // Without some preference for variables most systems would hardly move.
        let only_vars = self.draw.chance(70) && self.spots.iter().any(Spot::is_state);
        let wanted = |spot: &Spot| spot.writable && (spot.is_state() || !only_vars);
        let spot = self.spot(|spot| wanted(spot) && matches!(spot.ty, Type::Scalar(_)))?;
        let scalar = spot.ty.as_scalar()?;
        let to = self.place(&spot, depth);
        let value = self.value_for(&scalar, &to, depth);
        let narrow = if scalar.fills_its_bits() && self.draw.chance(60) { Narrow::Wrap } else { Narrow::Trap };
        Some(Stmt::Assign { to, value, narrow })
    }

    fn copy(&mut self, depth: u32) -> Option<Stmt> {
        let aggregates = self.draw.chance(70);
        let to = self.spot(|spot| spot.writable && matches!(spot.ty, Type::Scalar(_)) != aggregates)?;
        let from = self.spot(|spot| same_shape(&spot.ty, &to.ty))?;
        Some(Stmt::Copy { to: self.place(&to, depth), from: self.place(&from, depth) })
    }

    fn reset(&mut self, depth: u32) -> Option<Stmt> {
        let spot = self.spot(|spot| spot.writable)?;
        Some(Stmt::Reset(self.place(&spot, depth)))
    }

    fn sort(&mut self, depth: u32) -> Option<Stmt> {
        let spot = self.spot(|spot| spot.writable && matches!(spot.ty, Type::Array { .. }))?;
        Some(Stmt::Sort(self.place(&spot, depth)))
    }

    fn block(&mut self, depth: u32, exits: u32) -> Stmt {
        let mut body = self.list(depth, exits + 1);
        let level = self.draw.below(exits as u64 + 1) as u32;
        let exit = self.when(Stmt::Break(level), depth);
        let at = self.draw.below(body.len() as u64 + 1) as usize;
        body.insert(at, exit);
        Stmt::Block(body)
    }

    /// A loop over a fresh counter, with a limit that is sometimes too small.
    fn counted_loop(&mut self, depth: u32, exits: u32) -> Vec<Stmt> {
        let counter = TempId(self.temps.len() as u32);
        let scalar = Scalar::range(0, 7);
        self.temps.push((format!("i{}", counter.0), scalar.into()));
        self.spots.push(Spot { root: Root::Temp(counter), path: Vec::new(), ty: scalar.into(), writable: false });
        let rounds = self.draw.within(0, 3);
        let limit = if self.draw.chance(12) { rounds } else { rounds + 1 + self.draw.within(0, 5) } as u32;
        let over = Expr::binary(BinOp::Ge, Expr::read(counter), Expr::Const(rounds));
        let next = Expr::binary(BinOp::Add, Expr::read(counter), Expr::Const(1));
        let leave = |condition: Expr| Stmt::If { condition, then: vec![Stmt::Break(0)], otherwise: Vec::new() };
        let mut body = self.list(depth, exits + 1);
        let count = Stmt::assign(counter, next, Narrow::Trap);
        // Every other one is asked at its end, as front ends do it.
        if counter.0.is_multiple_of(2) {
            body.insert(0, leave(over));
            body.push(count);
            return vec![Stmt::Reset(counter.into()), Stmt::Loop { limit, body }];
        }
        body.extend([leave(Expr::equal(Expr::read(counter), Expr::Const(rounds))), count]);
        vec![Stmt::assign(counter, Expr::Const(0), Narrow::Trap), Stmt::Loop { limit, body }]
    }
}

fn add_spots(root: Root, ty: &Type, path: Vec<Hop>, writable: bool, spots: &mut Vec<Spot>) {
    let extended = |hop| path.iter().copied().chain([hop]).collect();
    match ty {
        Type::Scalar(_) => {}
        Type::Array { element, len } => add_spots(root, element, extended(Hop::Index(*len)), writable, spots),
        Type::Record(fields) => {
            for (field, (_, ty)) in fields.iter().enumerate() {
                add_spots(root, ty, extended(Hop::Field(field as u32)), writable, spots);
            }
        }
    }
    spots.push(Spot { root, path, ty: ty.clone(), writable });
}
