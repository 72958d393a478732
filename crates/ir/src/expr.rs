//! Expressions, places and statements.
//!
//! Expressions are evaluated in 64-bit signed arithmetic that wraps; a front end narrows explicitly.
//! What can go wrong while evaluating (index, division, overflow on a trapping store) is a *fault* of
//! the command that evaluates, never of the checker.

use crate::system::{ProcedureId, ReferenceId, TempId, VarId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    /// Arithmetic negation.
    Neg,
    /// Logical negation: 1 for zero, else 0.
    Not,
    BitNot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    /// Truncates towards zero; by zero it is a fault.
    Div,
    /// Sign of the dividend; by zero it is a fault.
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    /// Shift counts are taken modulo 64.
    Shl,
    /// Arithmetic shift right.
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Short-circuit; 0 or 1.
    And,
    /// Short-circuit; 0 or 1.
    Or,
}

/// A value. Comparisons and logic give 0 or 1; any non-zero value counts as true.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Const(i64),
    /// The scalar at a place.
    Read(Place),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `condition ? then : otherwise`; only the chosen side is evaluated.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Keeps the low `bits` bits, sign-extended or zero-extended: C's conversion to a narrower integer.
    Wrap {
        bits: u8,
        signed: bool,
        value: Box<Expr>,
    },
}

/// Where a place starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// Part of the state.
    Var(VarId),
    /// Local to one execution of a command, property or procedure; starts as zero.
    Temp(TempId),
    /// The part of the state that the caller of a procedure named.
    Reference(ReferenceId),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    Field(u32),
    /// Checked against the array's length; outside it is a fault.
    Index(Expr),
}

/// A variable, a temporary, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub root: Root,
    pub path: Vec<Access>,
}

/// What a store does with a value outside its scalar's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Narrow {
    /// Keeps the low bits. Only for scalars that fill their bits.
    Wrap,
    /// Faults.
    Trap,
}

/// A procedure at work for a caller. References and inputs are evaluated before, outputs after the body has run.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub procedure: ProcedureId,
    /// Parts of the state, for the procedure's references.
    pub references: Vec<Place>,
    /// Copied to the first temporaries of the procedure.
    pub inputs: Vec<Place>,
    /// Get copies of the procedure's outputs.
    pub outputs: Vec<Place>,
}
/// The limit of a loop that has none.
pub const UNLIMITED: u32 = u32::MAX;

/// A step of a body. Bodies run in order on the successor under construction.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    Assign {
        to: Place,
        value: Expr,
        narrow: Narrow,
    },
    /// Copies a whole array or record (or scalar) between places of equal type.
    Copy {
        to: Place,
        from: Place,
    },
    /// Sets every bit of the place to zero.
    Reset(Place),
    /// Puts the elements of an array into decreasing order: by the value of their last scalar, then by the one
    /// before it, and so on.
    Sort(Place),
    If {
        condition: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    /// Runs once; `Break` may leave it.
    Block(Vec<Stmt>),
    /// Repeats until a `Break` leaves it; starting a round beyond `limit` is a fault. A loop that is [`UNLIMITED`] is
    /// wrong only if it never ends: if a round begins with a state and temporaries that one began with before.
    Loop {
        limit: u32,
        body: Vec<Stmt>,
    },
    /// Leaves the n-th enclosing `Block` or `Loop`, 0 being the innermost.
    Break(u32),
    /// A false condition marks the successor as violating an assertion; the body goes on.
    Assert {
        condition: Expr,
        message: String,
    },
    Call(Box<Call>),
    /// The command goes wrong: there is no successor but an error.
    Fault(String),
    /// The command turns out not to be enabled: there is no successor.
    Discard,
}

impl From<i64> for Expr {
    fn from(value: i64) -> Expr {
        Expr::Const(value)
    }
}

impl From<VarId> for Place {
    fn from(var: VarId) -> Place {
        Place { root: Root::Var(var), path: Vec::new() }
    }
}

impl From<TempId> for Place {
    fn from(temp: TempId) -> Place {
        Place { root: Root::Temp(temp), path: Vec::new() }
    }
}

impl Place {
    pub fn field(mut self, index: u32) -> Place {
        self.path.push(Access::Field(index));
        self
    }

    pub fn index(mut self, index: impl Into<Expr>) -> Place {
        self.path.push(Access::Index(index.into()));
        self
    }

    /// The index expressions of the path, outermost first.
    pub fn indices(&self) -> impl Iterator<Item = &Expr> {
        self.path.iter().filter_map(|access| match access {
            Access::Index(index) => Some(index),
            Access::Field(_) => None,
        })
    }
}

impl Expr {
    pub const TRUE: Expr = Expr::Const(1);
    pub const FALSE: Expr = Expr::Const(0);

    pub fn read(place: impl Into<Place>) -> Expr {
        Expr::Read(place.into())
    }

    pub fn unary(op: UnOp, value: Expr) -> Expr {
        Expr::Unary(op, Box::new(value))
    }

    pub fn binary(op: BinOp, left: Expr, right: Expr) -> Expr {
        Expr::Binary(op, Box::new(left), Box::new(right))
    }

    pub fn negate(value: Expr) -> Expr {
        Expr::unary(UnOp::Not, value)
    }

    pub fn equal(left: Expr, right: Expr) -> Expr {
        Expr::binary(BinOp::Eq, left, right)
    }

    /// The conjunction of `terms`; true if there are none.
    pub fn all(terms: impl IntoIterator<Item = Expr>) -> Expr {
        terms.into_iter().reduce(|a, b| Expr::binary(BinOp::And, a, b)).unwrap_or(Expr::TRUE)
    }

    /// The disjunction of `terms`; false if there are none.
    pub fn any(terms: impl IntoIterator<Item = Expr>) -> Expr {
        terms.into_iter().reduce(|a, b| Expr::binary(BinOp::Or, a, b)).unwrap_or(Expr::FALSE)
    }

    pub fn wrap(bits: u8, signed: bool, value: Expr) -> Expr {
        Expr::Wrap { bits, signed, value: Box::new(value) }
    }
}

impl Stmt {
    pub fn assign(to: impl Into<Place>, value: impl Into<Expr>, narrow: Narrow) -> Stmt {
        Stmt::Assign { to: to.into(), value: value.into(), narrow }
    }
}

impl BinOp {
    /// Is the result always 0 or 1?
    pub fn is_truth(self) -> bool {
        use BinOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | And | Or)
    }

    /// The value of `left op right`; `None` is a division by zero.
    pub fn apply(self, left: i64, right: i64) -> Option<i64> {
        use BinOp::*;
        Some(match self {
            Add => left.wrapping_add(right),
            Sub => left.wrapping_sub(right),
            Mul => left.wrapping_mul(right),
            Div if right == 0 => return None,
            Rem if right == 0 => return None,
            Div => left.wrapping_div(right),
            Rem => left.wrapping_rem(right),
            BitAnd => left & right,
            BitOr => left | right,
            BitXor => left ^ right,
            Shl => left.wrapping_shl(right as u32),
            Shr => left.wrapping_shr(right as u32),
            Eq => (left == right) as i64,
            Ne => (left != right) as i64,
            Lt => (left < right) as i64,
            Le => (left <= right) as i64,
            Gt => (left > right) as i64,
            Ge => (left >= right) as i64,
            And => (left != 0 && right != 0) as i64,
            Or => (left != 0 || right != 0) as i64,
        })
    }
}

impl UnOp {
    pub fn apply(self, value: i64) -> i64 {
        match self {
            UnOp::Neg => value.wrapping_neg(),
            UnOp::Not => (value == 0) as i64,
            UnOp::BitNot => !value,
        }
    }
}

/// Keeps the low `bits` bits of `value` (the meaning of [`Expr::Wrap`]).
pub fn wrap(bits: u8, signed: bool, value: i64) -> i64 {
    debug_assert!((1..=64).contains(&bits));
    let unused = 64 - bits as u32;
    if signed { (value << unused) >> unused } else { ((value as u64) << unused >> unused) as i64 }
}
