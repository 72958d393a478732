//! Expressions, places and statements of one command or property.

use super::{DEPTH_LIMIT, Flaw, ROUNDS_LIMIT, flaw, same_shape};
use crate::expr::{Access, Expr, Narrow, Place, Root, Stmt, UNLIMITED};
use crate::system::System;
use crate::types::{Scalar, Type};

/// Which statements may occur.
#[derive(Clone, Copy)]
pub struct Allowed {
    vars: bool,
    assert: bool,
    discard: bool,
}

impl Allowed {
    pub const BODY: Allowed = Allowed { vars: true, assert: true, discard: true };
    pub const COMMAND_PRELUDE: Allowed = Allowed { vars: false, assert: false, discard: true };
    pub const PROPERTY_PRELUDE: Allowed = Allowed { vars: false, assert: false, discard: false };
}

/// One walk over the code of a command or property. All recursion is bounded by [`DEPTH_LIMIT`].
pub struct Code<'a> {
    system: &'a System,
    temps: &'a [(String, Type)],
    flaws: &'a mut Vec<Flaw>,
}

impl<'a> Code<'a> {
    pub fn new(system: &'a System, temps: &'a [(String, Type)], flaws: &'a mut Vec<Flaw>) -> Code<'a> {
        Code { system, temps, flaws }
    }

    pub fn expression(&mut self, place: &str, expr: &Expr) {
        if let Err(message) = self.expr(expr, 0) {
            flaw(self.flaws, place, message);
        }
    }

    /// Checks a list of statements; each top statement reports its first flaw.
    pub fn statements(&mut self, place: &str, stmts: &[Stmt], allowed: Allowed) {
        for stmt in stmts {
            if let Err(message) = self.stmt(stmt, allowed, 0, 0) {
                flaw(self.flaws, place, message);
            }
        }
    }

    fn expr(&self, expr: &Expr, depth: usize) -> Result<(), String> {
        let inner = deeper(depth)?;
        match expr {
            Expr::Const(_) => Ok(()),
            Expr::Read(place) => self.scalar(place, depth).map(|_| ()),
            Expr::Unary(_, value) => self.expr(value, inner),
            Expr::Binary(_, left, right) => {
                self.expr(left, inner)?;
                self.expr(right, inner)
            }
            Expr::Select(condition, then, otherwise) => {
                self.expr(condition, inner)?;
                self.expr(then, inner)?;
                self.expr(otherwise, inner)
            }
            Expr::Wrap { bits, value, .. } => {
                if !(1..=64).contains(bits) {
                    return Err(format!("wrapping to {bits} bits"));
                }
                self.expr(value, inner)
            }
        }
    }

    /// The type of a place whose path fits.
    fn place(&self, place: &Place, depth: usize) -> Result<&'a Type, String> {
        let inner = deeper(depth)?;
        let mut ty = match place.root {
            Root::Var(var) => {
                &self.system.vars.get(var.index()).ok_or_else(|| format!("there is no variable {}", var.0))?.ty
            }
            Root::Temp(temp) => {
                &self.temps.get(temp.index()).ok_or_else(|| format!("there is no temporary {}", temp.0))?.1
            }
        };
        for access in &place.path {
            ty = match (ty, access) {
                (Type::Array { element, .. }, Access::Index(index)) => {
                    self.expr(index, inner)?;
                    element
                }
                (Type::Record(fields), Access::Field(field)) => {
                    &fields.get(*field as usize).ok_or_else(|| format!("there is no field {field}"))?.1
                }
                (_, Access::Index(_)) => return Err("an index into what is no array".into()),
                (_, Access::Field(_)) => return Err("a field of what is no record".into()),
            };
        }
        Ok(ty)
    }

    fn scalar(&self, place: &Place, depth: usize) -> Result<Scalar, String> {
        self.place(place, depth)?.as_scalar().ok_or_else(|| "a whole array or record is used as a scalar".into())
    }

    fn written(&self, place: &Place, allowed: Allowed) -> Result<(), String> {
        match place.root {
            Root::Var(_) if !allowed.vars => Err("a prelude writes to the state".into()),
            _ => Ok(()),
        }
    }

    /// `exits` counts the enclosing blocks and loops.
    fn stmt(&self, stmt: &Stmt, allowed: Allowed, exits: u32, depth: usize) -> Result<(), String> {
        let inner = deeper(depth)?;
        let all = |stmts: &[Stmt], exits: u32| stmts.iter().try_for_each(|stmt| self.stmt(stmt, allowed, exits, inner));
        match stmt {
            Stmt::Assign { to, value, narrow } => {
                self.written(to, allowed)?;
                let scalar = self.scalar(to, inner)?;
                if *narrow == Narrow::Wrap && !scalar.fills_its_bits() {
                    return Err(format!("a wrapping store into {}..{}", scalar.low, scalar.high));
                }
                self.expr(value, inner)
            }
            Stmt::Copy { to, from } => {
                self.written(to, allowed)?;
                if same_shape(self.place(to, inner)?, self.place(from, inner)?) {
                    Ok(())
                } else {
                    Err("a copy between different types".into())
                }
            }
            Stmt::Reset(place) => {
                self.written(place, allowed)?;
                self.place(place, inner).map(|_| ())
            }
            Stmt::If { condition, then, otherwise } => {
                self.expr(condition, inner)?;
                all(then, exits)?;
                all(otherwise, exits)
            }
            Stmt::Block(body) => all(body, exits + 1),
            Stmt::Loop { limit, .. } if *limit > ROUNDS_LIMIT && *limit != UNLIMITED => {
                Err(format!("a loop of more than {ROUNDS_LIMIT} rounds"))
            }
            Stmt::Loop { body, .. } => all(body, exits + 1),
            Stmt::Break(level) if *level >= exits => Err("a break leaves more than there is around it".into()),
            Stmt::Break(_) | Stmt::Fault(_) => Ok(()),
            Stmt::Assert { .. } if !allowed.assert => Err("a prelude asserts".into()),
            Stmt::Assert { condition, .. } => self.expr(condition, inner),
            Stmt::Discard if !allowed.discard => Err("the prelude of a property discards".into()),
            Stmt::Discard => Ok(()),
        }
    }
}

fn deeper(depth: usize) -> Result<usize, String> {
    if depth >= DEPTH_LIMIT { Err(format!("nested more than {DEPTH_LIMIT} deep")) } else { Ok(depth + 1) }
}
