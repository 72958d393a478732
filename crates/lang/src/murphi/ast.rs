//! The syntax tree of a Murphi model.
//!
//! Chains of `&` and `|` are kept flat, so that long ones do not nest deep.

use crate::diagnostic::Span;

#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Plus,
    Minus,
    Not,
    /// `~`, bit by bit.
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    Xor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainOp {
    And,
    Or,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Number(i64),
    Real,
    /// As an argument or the right side of an assignment only.
    Undefined,
    Name(String),
    Index(Box<Expr>, Box<Expr>),
    Field(Box<Expr>, Name),
    Call(Name, Vec<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a & b & c`; on numbers it works bit by bit, unless it was written `&&` or `||`.
    Chain {
        op: ChainOp,
        logical: bool,
        terms: Vec<Expr>,
    },
    Implies(Box<Expr>, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    Quantified {
        forall: bool,
        quants: Vec<Quant>,
        body: Box<Expr>,
    },
    IsUndefined(Box<Expr>),
    IsMember(Box<Expr>, Box<TypeExpr>),
    Count {
        name: Name,
        set: Box<Expr>,
        predicate: Box<Expr>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Quant {
    pub name: Name,
    pub domain: Domain,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    Type(TypeExpr),
    Range { from: Expr, to: Expr, step: Option<Expr> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    Name(String),
    Range(Box<Expr>, Box<Expr>),
    Enum(Vec<Name>),
    Record(Vec<(Vec<Name>, TypeExpr)>),
    Array(Box<TypeExpr>, Box<TypeExpr>),
    Scalarset(Box<Expr>),
    Union(Vec<TypeExpr>),
    Multiset(Box<Expr>, Box<TypeExpr>),
    Real,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Decl {
    Const(Name, Expr),
    Type(Name, TypeExpr),
    Var(Vec<Name>, TypeExpr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    Assign(Expr, Expr),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    Switch {
        value: Expr,
        cases: Vec<(Vec<Expr>, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
    },
    For(Vec<Quant>, Vec<Stmt>),
    While(Expr, Vec<Stmt>),
    Alias(Vec<(Name, Expr)>, Vec<Stmt>),
    Call(Name, Vec<Expr>),
    Clear(Expr),
    Undefine(Expr),
    Error(String),
    Assert(Expr, Option<String>),
    Assume(Expr),
    /// Rumur's `cover` and `liveness` as statements.
    Unchecked(Expr, &'static str),
    /// Prints; only checked.
    Put(Option<Expr>),
    Return(Option<Expr>),
    MultisetAdd(Expr, Expr),
    MultisetRemove(Name, Expr),
    MultisetRemoveIf {
        name: Name,
        set: Expr,
        predicate: Expr,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Formal {
    pub by_reference: bool,
    pub name: Name,
    pub ty: TypeExpr,
}

/// A function or, without a result, a procedure.
#[derive(Clone, Debug, PartialEq)]
pub struct Proc {
    pub name: Name,
    pub formals: Vec<Formal>,
    pub result: Option<TypeExpr>,
    pub decls: Vec<Decl>,
    pub body: Vec<Stmt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    Invariant,
    Assume,
    Cover,
    Liveness,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub kind: RuleKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RuleKind {
    Simple { priority: Option<i64>, name: Option<String>, guard: Option<Expr>, decls: Vec<Decl>, body: Vec<Stmt> },
    Start { name: Option<String>, decls: Vec<Decl>, body: Vec<Stmt> },
    Property { kind: PropertyKind, name: Option<String>, expr: Expr },
    Set(Vec<Quant>, Vec<Rule>),
    Alias(Vec<(Name, Expr)>, Vec<Rule>),
    Choose(Name, Expr, Vec<Rule>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Decl(Decl),
    Proc(Proc),
    Rule(Rule),
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Program {
    pub items: Vec<Item>,
}
