//! A model as the parser understands it: names resolved, inlines expanded, `for` and `select` spelled out.
//!
//! Promela's grammar depends on what names stand for, so the parser resolves them as it goes; there is no
//! tree with unresolved names. Only what may be written before it is declared (proctypes in `run`, labels)
//! waits: proctypes by number, labels by name and scope.

use super::lexer::Site;
use plimsoll_ir::{BinOp, UnOp};
use std::sync::Arc;

/// What a scalar is declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    Bit,
    Byte,
    Short,
    Int,
    /// `unsigned x : n`, 1 to 32 bits.
    Unsigned(u8),
    Mtype,
    Chan,
    /// Index into [`Program::structs`].
    Struct(usize),
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub base: Base,
    /// `Some` for arrays, also for those with one element.
    pub len: Option<u32>,
    pub init: Init,
    pub hidden: bool,
    pub site: Site,
}

#[derive(Clone, Debug)]
pub enum Init {
    Zero,
    /// For an array: every element.
    Value(Expr),
    /// The first elements of an array; the last value stands for the rest.
    List(Vec<i64>),
    /// Index into [`Program::channels`]; every element of an array gets a channel of its own.
    Channel(usize),
}

/// `[capacity] of { fields }`; structures are flattened into their scalars.
#[derive(Clone, Debug)]
pub struct ChannelType {
    pub capacity: u32,
    pub fields: Vec<Base>,
}

#[derive(Clone, Debug)]
pub struct Struct {
    pub name: String,
    pub fields: Vec<Variable>,
}

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub structs: Vec<Struct>,
    pub channels: Vec<ChannelType>,
    pub globals: Vec<Variable>,
    pub proctypes: Vec<Proctype>,
    /// Proctypes in the order of their text, with `None` for the never claim.
    pub bodies: Vec<Option<usize>>,
    /// Names of the files, the main file first.
    pub files: Vec<String>,
    /// Proctypes of the initial processes, in order of their numbers.
    pub initial: Vec<usize>,
    /// Names of mtype constants by number, for the sets that have them: set name (empty for the common
    /// one), then names from 1.
    pub mtypes: Vec<(String, Vec<String>)>,
    pub never: Option<Proctype>,
    pub ltl: Vec<(String, Site)>,
    pub traces: Vec<Site>,
    pub uses_last: bool,
    /// Labels that some expression asks about, also in properties that are ignored: they make locations.
    pub remote_labels: Vec<Arc<str>>,
}

#[derive(Clone, Debug)]
pub struct Proctype {
    pub name: String,
    /// The first `params` locals are the parameters.
    pub params: usize,
    pub locals: Vec<Variable>,
    pub body: Vec<Stmt>,
    pub provided: Option<Expr>,
    pub defined: bool,
    pub site: Site,
    /// Where the closing brace is.
    pub end: Site,
}

/// The blocks around a piece of text, outermost first; identifies where a label is visible best.
pub type Scope = Arc<[u32]>;

#[derive(Clone, Debug)]
pub struct Label {
    pub name: Arc<str>,
    pub scope: Scope,
    pub site: Site,
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub labels: Vec<Label>,
    pub site: Site,
    /// How it was written, for leaves.
    pub text: String,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    Step(Step),
    Else,
    Goto(Label),
    Break,
    Choose(Choose),
    Atomic(Vec<Stmt>),
    DStep(Vec<Stmt>),
    Block(Vec<Stmt>),
    /// The normal sequence and the escape.
    Unless(Vec<Stmt>, Vec<Stmt>),
}

/// `if` or `do`.
#[derive(Clone, Debug)]
pub struct Choose {
    pub repeats: bool,
    /// Are runs of superfluous skips in options left out? They are in what the user wrote.
    pub prunes: bool,
    pub options: Vec<Vec<Stmt>>,
}

/// What one transition does.
#[derive(Clone, Debug)]
pub enum Step {
    /// The declaration of a structure in the middle of a body: a step without effect.
    Nothing,
    Print,
    Condition(Expr),
    Assign(Place, Expr),
    Assert(Expr),
    Send {
        channel: Place,
        args: Vec<Expr>,
        sorted: bool,
    },
    Receive {
        channel: Place,
        args: Vec<Pattern>,
        random: bool,
        keeps: bool,
    },
}

/// One argument of a receive.
#[derive(Clone, Debug)]
pub enum Pattern {
    Store(Place),
    /// `_`
    Any,
    Match(Expr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    Global(usize),
    Local(usize),
}

/// A variable, or a part of one.
#[derive(Clone, Debug)]
pub struct Place {
    pub root: Root,
    pub path: Vec<Access>,
    /// The type of the place itself.
    pub base: Base,
    /// Set if the place is an array that still lacks its index.
    pub len: Option<u32>,
}

#[derive(Clone, Debug)]
pub enum Access {
    Field(usize),
    Index(Expr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    Len,
    Full,
    NotFull,
    Empty,
    NotEmpty,
}

#[derive(Clone, Debug)]
pub enum Expr {
    Number(i64),
    Read(Place),
    /// `_pid`
    Pid,
    /// `_nr_pr`
    ProcessCount,
    /// `_last`
    Last,
    Timeout,
    /// `np_`
    NoProgress,
    /// `enabled(pid)`
    Enabled(Box<Expr>),
    /// `pc_value(pid)`
    PlaceOf(Box<Expr>),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// A chain of `&&` or of `||`.
    Logic(BinOp, Vec<Expr>),
    Choice(Box<(Expr, Expr, Expr)>),
    Run(Box<Run>),
    Probe(Probe, Place),
    Poll {
        channel: Place,
        args: Vec<Pattern>,
        random: bool,
    },
    /// `P[pid]@label`
    AtLabel(Box<Remote>),
    /// `P[pid]:name`
    RemoteVariable(Box<Remote>),
}

#[derive(Clone, Debug)]
pub struct Run {
    /// Index into [`Program::proctypes`].
    pub proctype: usize,
    pub args: Vec<Expr>,
    pub site: Site,
}

#[derive(Clone, Debug)]
pub struct Remote {
    pub proctype: usize,
    pub pid: Option<Expr>,
    /// The label, or the variable.
    pub name: Arc<str>,
    /// The index of a variable that is an array.
    pub index: Option<Expr>,
    /// Part of a structure, among the locals of the proctype; only what is asked about a model can name it.
    pub part: Option<Place>,
    pub site: Site,
}

impl Expr {
    /// Calls `visit` on this expression and all parts of it, also within places.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        visit(self);
        match self {
            Expr::Read(place) | Expr::Probe(_, place) => place.walk(visit),
            Expr::Unary(_, value) | Expr::Enabled(value) | Expr::PlaceOf(value) => value.walk(visit),
            Expr::Binary(_, left, right) => {
                left.walk(visit);
                right.walk(visit);
            }
            Expr::Logic(_, parts) => parts.iter().for_each(|part| part.walk(visit)),
            Expr::Choice(parts) => {
                parts.0.walk(visit);
                parts.1.walk(visit);
                parts.2.walk(visit);
            }
            Expr::Run(run) => run.args.iter().for_each(|arg| arg.walk(visit)),
            Expr::Poll { channel, args, .. } => {
                channel.walk(visit);
                args.iter().for_each(|arg| arg.walk(visit));
            }
            Expr::AtLabel(remote) | Expr::RemoteVariable(remote) => {
                remote.pid.iter().chain(&remote.index).for_each(|part| part.walk(visit));
            }
            Expr::Number(_) | Expr::Pid | Expr::ProcessCount | Expr::Last | Expr::Timeout | Expr::NoProgress => {}
        }
    }

    /// Does any part of it satisfy `wanted`?
    pub fn any(&self, wanted: impl Fn(&Expr) -> bool) -> bool {
        let mut found = false;
        self.walk(&mut |part| found |= wanted(part));
        found
    }

    pub fn runs(&self) -> bool {
        self.any(|part| matches!(part, Expr::Run(_)))
    }

    pub fn binary(op: BinOp, left: Expr, right: Expr) -> Expr {
        Expr::Binary(op, Box::new(left), Box::new(right))
    }
}

impl Place {
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        for access in &self.path {
            if let Access::Index(index) = access {
                index.walk(visit);
            }
        }
    }
}

impl Pattern {
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        match self {
            Pattern::Store(place) => place.walk(visit),
            Pattern::Match(value) => value.walk(visit),
            Pattern::Any => {}
        }
    }
}

impl Step {
    /// Calls `visit` on every expression of the step.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        match self {
            Step::Nothing | Step::Print => {}
            Step::Condition(value) | Step::Assert(value) => value.walk(visit),
            Step::Assign(place, value) => {
                place.walk(visit);
                value.walk(visit);
            }
            Step::Send { channel, args, .. } => {
                channel.walk(visit);
                args.iter().for_each(|arg| arg.walk(visit));
            }
            Step::Receive { channel, args, .. } => {
                channel.walk(visit);
                args.iter().for_each(|arg| arg.walk(visit));
            }
        }
    }
}

/// Calls `visit` on every statement, also nested ones, in order of the text.
pub fn walk_statements<'a>(stmts: &'a [Stmt], visit: &mut impl FnMut(&'a Stmt)) {
    for stmt in stmts {
        visit(stmt);
        match &stmt.kind {
            StmtKind::Choose(choose) => choose.options.iter().for_each(|option| walk_statements(option, visit)),
            StmtKind::Atomic(inner) | StmtKind::DStep(inner) | StmtKind::Block(inner) => walk_statements(inner, visit),
            StmtKind::Unless(normal, escape) => {
                walk_statements(normal, visit);
                walk_statements(escape, visit);
            }
            StmtKind::Step(_) | StmtKind::Else | StmtKind::Goto(_) | StmtKind::Break => {}
        }
    }
}
