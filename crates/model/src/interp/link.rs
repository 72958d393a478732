//! Places resolved against a layout, once, so that running a command needs no look-up of types.
//!
//! The linked trees mirror those of the intermediate representation node by node; only places differ.

use plimsoll_ir::layout;
use plimsoll_ir::{self as ir, BinOp, Layout, Locals, Narrow, Root, Scalar, Slot, Stride, System, Type, UnOp};

/// What a place lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    State,
    Temps,
    /// The part of the state that a caller named.
    Reference(usize),
}

#[derive(Debug)]
pub(super) struct Place {
    pub memory: Memory,
    /// The bit it starts at when all indices are zero.
    pub bit: u32,
    pub indices: Vec<(Expr, Stride)>,
    /// At most 32, or a multiple of 32.
    pub bits: u32,
    /// Its range, if it is a scalar.
    pub scalar: Option<Scalar>,
    /// How a person would write it.
    pub name: Box<str>,
}

#[derive(Debug)]
pub(super) enum Expr {
    Const(i64),
    Read(Place),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    Select(Box<[Expr; 3]>),
    Wrap { bits: u8, signed: bool, value: Box<Expr> },
}

#[derive(Debug)]
pub(super) enum Stmt {
    Assign { to: Place, value: Expr, narrow: Narrow },
    Copy { to: Place, from: Place },
    Reset(Place),
    Sort(Sort),
    If { condition: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt> },
    Block(Vec<Stmt>),
    Loop { limit: u32, body: Vec<Stmt> },
    Break(u32),
    Assert { condition: Expr, message: String },
    Call(Call),
    Fault(String),
    Discard,
}

/// An array to be sorted.
#[derive(Debug)]
pub(super) struct Sort {
    pub array: Place,
    /// Where the elements lie, and how many bits each has.
    pub stride: Stride,
    pub bits: u32,
    /// The bits of each scalar of an element, the last one first.
    pub scalars: Vec<(Slot, Scalar)>,
}

/// A call, with the places of the caller and those of the procedure side by side.
#[derive(Debug)]
pub(super) struct Call {
    pub procedure: usize,
    pub references: Vec<Place>,
    pub inputs: Vec<(Place, Place)>,
    pub outputs: Vec<(Place, Place)>,
}

/// One procedure with its places resolved.
#[derive(Debug)]
pub(super) struct Routine {
    pub temp_words: usize,
    /// So often it may be at work inside itself.
    pub recursion: u32,
    pub body: Vec<Stmt>,
}

impl Routine {
    pub fn link(system: &System, layout: &Layout, procedure: &ir::Procedure) -> Routine {
        let linker = Linker::new(system, layout, procedure.locals());
        let body = linker.stmts(&procedure.body);
        Routine { temp_words: linker.temp_words(), recursion: procedure.recursion, body }
    }
}

/// Resolves the places of one command or property, which has its own temporaries.
pub(super) struct Linker<'a> {
    system: &'a System,
    layout: &'a Layout,
    locals: Locals<'a>,
    temp_layout: Layout,
}

impl<'a> Linker<'a> {
    pub fn new(system: &'a System, layout: &'a Layout, locals: Locals<'a>) -> Linker<'a> {
        Linker { system, layout, locals, temp_layout: Layout::of_temps(locals.temps) }
    }

    pub fn temp_words(&self) -> usize {
        self.temp_layout.words()
    }

    pub fn place(&self, place: &ir::Place) -> Place {
        let address = self.system.resolve(self.layout, &self.temp_layout, self.locals, place);
        Place {
            memory: match place.root {
                Root::Var(_) => Memory::State,
                Root::Temp(_) => Memory::Temps,
                Root::Reference(reference) => Memory::Reference(reference.index()),
            },
            bit: address.bit,
            indices: place.indices().map(|index| self.expr(index)).zip(address.strides).collect(),
            bits: address.bits,
            scalar: address.ty.as_scalar(),
            name: self.name(place).into(),
        }
    }

    pub fn expr(&self, expr: &ir::Expr) -> Expr {
        let boxed = |expr: &ir::Expr| Box::new(self.expr(expr));
        match expr {
            ir::Expr::Const(value) => Expr::Const(*value),
            ir::Expr::Read(place) => Expr::Read(self.place(place)),
            ir::Expr::Unary(op, value) => Expr::Unary(*op, boxed(value)),
            ir::Expr::Binary(op, left, right) => Expr::Binary(*op, boxed(left), boxed(right)),
            ir::Expr::Select(condition, then, otherwise) => {
                Expr::Select(Box::new([self.expr(condition), self.expr(then), self.expr(otherwise)]))
            }
            ir::Expr::Wrap { bits, signed, value } => Expr::Wrap { bits: *bits, signed: *signed, value: boxed(value) },
        }
    }

    pub fn stmts(&self, stmts: &[ir::Stmt]) -> Vec<Stmt> {
        stmts.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&self, stmt: &ir::Stmt) -> Stmt {
        match stmt {
            ir::Stmt::Assign { to, value, narrow } => {
                Stmt::Assign { to: self.place(to), value: self.expr(value), narrow: *narrow }
            }
            ir::Stmt::Copy { to, from } => Stmt::Copy { to: self.place(to), from: self.place(from) },
            ir::Stmt::Reset(place) => Stmt::Reset(self.place(place)),
            ir::Stmt::Sort(place) => Stmt::Sort(self.sort(place)),
            ir::Stmt::If { condition, then, otherwise } => {
                Stmt::If { condition: self.expr(condition), then: self.stmts(then), otherwise: self.stmts(otherwise) }
            }
            ir::Stmt::Block(body) => Stmt::Block(self.stmts(body)),
            ir::Stmt::Loop { limit, body } => Stmt::Loop { limit: *limit, body: self.stmts(body) },
            ir::Stmt::Break(depth) => Stmt::Break(*depth),
            ir::Stmt::Assert { condition, message } => {
                Stmt::Assert { condition: self.expr(condition), message: message.clone() }
            }
            ir::Stmt::Call(call) => Stmt::Call(self.call(call)),
            ir::Stmt::Fault(message) => Stmt::Fault(message.clone()),
            ir::Stmt::Discard => Stmt::Discard,
        }
    }

    fn sort(&self, place: &ir::Place) -> Sort {
        let Type::Array { element, len } = self.system.type_of(self.locals, place) else {
            unreachable!("verified: only arrays are sorted")
        };
        let mut scalars: Vec<_> = layout::scalars(element).collect();
        scalars.reverse();
        let stride = Stride { len: *len, bits: layout::pitch(element) };
        Sort { array: self.place(place), stride, bits: layout::size_bits(element), scalars }
    }

    fn call(&self, call: &ir::Call) -> Call {
        let procedure = &self.system.procedures[call.procedure.index()];
        let theirs = Linker::new(self.system, self.layout, procedure.locals());
        let pair = |(own, temp): (&ir::Place, usize)| (self.place(own), theirs.place(&ir::TempId(temp as u32).into()));
        let outputs = procedure.outputs.iter().map(|temp| temp.index());
        Call {
            procedure: call.procedure.index(),
            references: call.references.iter().map(|place| self.place(place)).collect(),
            inputs: call.inputs.iter().zip(0..).map(pair).collect(),
            outputs: call.outputs.iter().zip(outputs).map(pair).collect(),
        }
    }

    /// The place in words: fields by name, constant indices as numbers, others as dots.
    fn name(&self, place: &ir::Place) -> String {
        let (mut name, mut ty) = match place.root {
            Root::Var(var) => (self.system.vars[var.index()].name.clone(), &self.system.vars[var.index()].ty),
            Root::Temp(temp) => (self.locals.temps[temp.index()].0.clone(), &self.locals.temps[temp.index()].1),
            Root::Reference(reference) => {
                let (name, ty) = &self.locals.references[reference.index()];
                (name.clone(), ty)
            }
        };
        for access in &place.path {
            match (access, ty) {
                (ir::Access::Field(field), Type::Record(fields)) => {
                    name += &format!(".{}", fields[*field as usize].0);
                    ty = &fields[*field as usize].1;
                }
                (ir::Access::Index(index), Type::Array { element, .. }) => {
                    match index {
                        ir::Expr::Const(value) => name += &format!("[{value}]"),
                        _ => name += "[..]",
                    }
                    ty = element;
                }
                _ => unreachable!("verified: paths fit their types"),
            }
        }
        name
    }
}
