//! Expressions, places and statements of one command or property.

use super::{DEPTH_LIMIT, Flaw, ROUNDS_LIMIT, flaw, same_shape};
use crate::expr::{Access, Call, Expr, Narrow, Place, Root, Stmt, UNLIMITED};
use crate::system::{Locals, System};
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

/// What a procedure does that not every caller may.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deeds {
    writes: bool,
    asserts: bool,
    discards: bool,
    /// How deep it is nested, what it calls included.
    depth: usize,
    /// Words of temporaries, those of the deepest calls included.
    words: usize,
}

impl Deeds {
    /// Is the code nested too deep, or do the temporaries take more words?
    pub fn exceeds(&self, words: usize) -> bool {
        self.words > words || self.depth >= DEPTH_LIMIT
    }

    fn note(&mut self, callee: Deeds, depth: usize) {
        self.writes |= callee.writes;
        self.asserts |= callee.asserts;
        self.discards |= callee.discards;
        self.depth = self.depth.max(depth + callee.depth);
        self.words = self.words.max(callee.words);
    }
}

/// One walk over the code of a command, property or procedure. All recursion is bounded by [`DEPTH_LIMIT`].
pub struct Code<'a> {
    system: &'a System,
    locals: Locals<'a>,
    /// Of the procedures that may be called.
    procedures: &'a [Deeds],
    /// The procedure itself, which may be called as well.
    own: Option<usize>,
    /// How deep inside its body it calls itself.
    own_depth: usize,
    flaws: &'a mut Vec<Flaw>,
    deeds: Deeds,
}

impl<'a> Code<'a> {
    pub fn new(system: &'a System, locals: Locals<'a>, procedures: &'a [Deeds], flaws: &'a mut Vec<Flaw>) -> Code<'a> {
        Code { system, locals, procedures, own: None, own_depth: 0, flaws, deeds: Deeds::default() }
    }

    /// The code of a procedure, which comes right after those that it may call.
    pub fn of_procedure(system: &'a System, procedures: &'a [Deeds], flaws: &'a mut Vec<Flaw>) -> Code<'a> {
        let locals = system.procedures[procedures.len()].locals();
        Code { own: Some(procedures.len()), ..Code::new(system, locals, procedures, flaws) }
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

    /// What the statements do that were checked so far, as those of a procedure with so many words of temporaries
    /// that is inside itself so often.
    pub fn deeds(self, words: usize, recursion: u32) -> Deeds {
        let times = recursion as usize;
        let words = self.deeds.words + words.saturating_mul(times + 1);
        Deeds { words, depth: self.deeds.depth.saturating_add(self.own_depth.saturating_mul(times)), ..self.deeds }
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
                &self.locals.temps.get(temp.index()).ok_or_else(|| format!("there is no temporary {}", temp.0))?.1
            }
            Root::Reference(reference) => {
                let found = self.locals.references.get(reference.index());
                &found.ok_or_else(|| format!("there is no reference {}", reference.0))?.1
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

    fn written(&mut self, place: &Place, allowed: Allowed) -> Result<(), String> {
        match place.root {
            Root::Temp(_) => Ok(()),
            _ if !allowed.vars => Err("a prelude writes to the state".into()),
            _ => {
                self.deeds.writes = true;
                Ok(())
            }
        }
    }

    /// Checks that places are those that a procedure declares.
    fn handed_over<'t>(
        &self,
        places: &[Place],
        wanted: impl ExactSizeIterator<Item = &'t Type>,
        depth: usize,
    ) -> Result<(), String> {
        if places.len() != wanted.len() {
            return Err(format!("a call with {} places instead of {}", places.len(), wanted.len()));
        }
        places.iter().zip(wanted).try_for_each(|(place, wanted)| match same_shape(self.place(place, depth)?, wanted) {
            true => Ok(()),
            false => Err("a call with a place of another type".into()),
        })
    }

    fn call(&mut self, call: &Call, allowed: Allowed, depth: usize) -> Result<(), String> {
        let is_own = self.own == Some(call.procedure.index());
        let callee = match self.procedures.get(call.procedure.index()) {
            Some(&callee) => callee,
            None if is_own => Deeds::default(),
            None => return Err(format!("there is no procedure {} before this", call.procedure.0)),
        };
        if is_own {
            self.own_depth = self.own_depth.max(depth);
        }
        let procedure = &self.system.procedures[call.procedure.index()];
        self.handed_over(&call.references, procedure.references.iter().map(|(_, ty)| ty), depth)?;
        if call.references.iter().any(|place| matches!(place.root, Root::Temp(_))) {
            return Err("a call refers to a temporary".into());
        }
        self.handed_over(&call.inputs, procedure.temps[..procedure.inputs].iter().map(|(_, ty)| ty), depth)?;
        let outputs = procedure.outputs.iter().map(|temp| &procedure.temps[temp.index()].1);
        self.handed_over(&call.outputs, outputs, depth)?;
        call.outputs.iter().try_for_each(|place| self.written(place, allowed))?;
        if depth + callee.depth >= DEPTH_LIMIT {
            return Err(format!("calls nested more than {DEPTH_LIMIT} deep"));
        }
        self.deeds.note(callee, depth);
        match callee {
            Deeds { writes: true, .. } if !allowed.vars => Err("a prelude calls what writes to the state".into()),
            Deeds { asserts: true, .. } if !allowed.assert => Err("a prelude calls what asserts".into()),
            Deeds { discards: true, .. } if !allowed.discard => {
                Err("the prelude of a property calls what discards".into())
            }
            _ => Ok(()),
        }
    }

    /// `exits` counts the enclosing blocks and loops.
    fn stmt(&mut self, stmt: &Stmt, allowed: Allowed, exits: u32, depth: usize) -> Result<(), String> {
        let inner = deeper(depth)?;
        self.deeds.depth = self.deeds.depth.max(inner);
        let mut all =
            |stmts: &[Stmt], exits: u32| stmts.iter().try_for_each(|stmt| self.stmt(stmt, allowed, exits, inner));
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
            Stmt::Sort(place) => {
                self.written(place, allowed)?;
                match self.place(place, inner)? {
                    Type::Array { .. } => Ok(()),
                    _ => Err("sorting what is no array".into()),
                }
            }
            Stmt::If { condition, then, otherwise } => {
                all(then, exits)?;
                all(otherwise, exits)?;
                self.expr(condition, inner)
            }
            Stmt::Block(body) => all(body, exits + 1),
            Stmt::Loop { limit, .. } if *limit > ROUNDS_LIMIT && *limit != UNLIMITED => {
                Err(format!("a loop of more than {ROUNDS_LIMIT} rounds"))
            }
            Stmt::Loop { body, .. } => all(body, exits + 1),
            Stmt::Break(level) if *level >= exits => Err("a break leaves more than there is around it".into()),
            Stmt::Break(_) | Stmt::Fault(_) => Ok(()),
            Stmt::Assert { .. } if !allowed.assert => Err("a prelude asserts".into()),
            Stmt::Assert { condition, .. } => {
                self.deeds.asserts = true;
                self.expr(condition, inner)
            }
            Stmt::Call(call) => self.call(call, allowed, inner),
            Stmt::Discard if !allowed.discard => Err("the prelude of a property discards".into()),
            Stmt::Discard => {
                self.deeds.discards = true;
                Ok(())
            }
        }
    }
}

fn deeper(depth: usize) -> Result<usize, String> {
    if depth >= DEPTH_LIMIT { Err(format!("nested more than {DEPTH_LIMIT} deep")) } else { Ok(depth + 1) }
}
