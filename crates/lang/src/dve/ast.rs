//! The shape of a DVE model as written.
//!
//! Expressions live in one arena, so that neither building nor dropping them recurses: a chain of a
//! million `&&` is a list of a million nodes. Every node knows how deep it will be once chains of
//! associative operators are balanced; the parser refuses what is deeper than [`DEEPEST`].

use crate::diagnostic::Span;
use std::collections::HashMap;

/// No expression is nested deeper. Lowering makes at most three levels out of one, and the intermediate
/// representation allows 1000.
pub const DEEPEST: u32 = 300;

/// An interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub u32);

/// All names of a text, each once.
#[derive(Clone, Debug, Default)]
pub struct Names {
    numbers: HashMap<String, Name>,
    texts: Vec<String>,
}

impl Names {
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(&name) = self.numbers.get(text) {
            return name;
        }
        let name = Name(self.texts.len() as u32);
        self.numbers.insert(text.into(), name);
        self.texts.push(text.into());
        name
    }

    pub fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }
}

/// A name at a place.
#[derive(Clone, Copy, Debug)]
pub struct Ident {
    pub name: Name,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Negate,
    Complement,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Imply,
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOp {
    /// As in C, with `imply` below everything; all operators are left-associative.
    pub fn precedence(self) -> u8 {
        use BinaryOp::*;
        match self {
            Imply => 1,
            Or => 2,
            And => 3,
            BitOr => 4,
            BitXor => 5,
            BitAnd => 6,
            Equal | Unequal => 7,
            Less | LessEqual | Greater | GreaterEqual => 8,
            ShiftLeft | ShiftRight => 9,
            Add | Subtract => 10,
            Multiply | Divide | Remainder => 11,
        }
    }

    /// The coarser levels of the original tool, which does not tell `&&` from `||`, nor `&`, `^` and `|` apart.
    pub fn original_precedence(self) -> u8 {
        match self.precedence() {
            3 => 2,
            5 | 6 => 4,
            other => other,
        }
    }

    /// May `(a op b) op c` be computed as `a op (b op c)`? In 32-bit arithmetic that wraps, yes for all of these.
    pub fn is_associative(self) -> bool {
        use BinaryOp::*;
        matches!(self, Or | And | BitOr | BitXor | BitAnd | Add | Multiply)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExprId(pub u32);

#[derive(Clone, Copy, Debug)]
pub enum ExprKind {
    Number(i32),
    Name(Name),
    Index(Name, ExprId),
    /// `process.state`
    State(Name, Name),
    /// `process->variable`, perhaps with an index.
    Foreign(Name, Name, Option<ExprId>),
    Unary(UnaryOp, ExprId),
    Binary(BinaryOp, ExprId, ExprId),
}

#[derive(Clone, Copy, Debug)]
pub struct ExprNode {
    pub kind: ExprKind,
    pub span: Span,
    /// Operands of the chain that this node ends; 1 if it is none.
    leaves: u32,
    /// Depth of the deepest operand of the chain; of the node itself if it is none.
    base: u32,
}

/// The arena of expressions.
#[derive(Debug, Default)]
pub struct Exprs {
    nodes: Vec<ExprNode>,
}

impl Exprs {
    pub fn add(&mut self, kind: ExprKind, span: Span) -> ExprId {
        let (leaves, base) = self.measure(kind);
        self.nodes.push(ExprNode { kind, span, leaves, base });
        ExprId(self.nodes.len() as u32 - 1)
    }

    pub fn get(&self, id: ExprId) -> &ExprNode {
        &self.nodes[id.0 as usize]
    }

    /// How deep the expression is once chains of associative operators are balanced.
    pub fn depth(&self, id: ExprId) -> u32 {
        let node = self.get(id);
        node.base + node.leaves.next_power_of_two().trailing_zeros()
    }

    fn measure(&self, kind: ExprKind) -> (u32, u32) {
        match kind {
            ExprKind::Number(_) | ExprKind::Name(_) | ExprKind::State(..) | ExprKind::Foreign(_, _, None) => (1, 1),
            ExprKind::Index(_, inner) | ExprKind::Foreign(_, _, Some(inner)) | ExprKind::Unary(_, inner) => {
                (1, 1 + self.depth(inner))
            }
            ExprKind::Binary(op, left, right) if op.is_associative() => {
                let node = self.get(left);
                match node.kind {
                    ExprKind::Binary(inner, ..) if inner == op => (node.leaves + 1, node.base.max(self.depth(right))),
                    _ => (2, self.depth(left).max(self.depth(right))),
                }
            }
            ExprKind::Binary(_, left, right) => (1, 1 + self.depth(left).max(self.depth(right))),
        }
    }

    /// The operands of the chain of `op` that ends in `id`, in order.
    pub fn chain(&self, op: BinaryOp, id: ExprId) -> Vec<ExprId> {
        let mut operands = Vec::new();
        let mut at = id;
        while let ExprKind::Binary(inner, left, right) = self.get(at).kind
            && inner == op
        {
            operands.push(right);
            at = left;
        }
        operands.push(at);
        operands.reverse();
        operands
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarType {
    Byte,
    Int,
}

#[derive(Debug)]
pub struct Variable {
    pub ident: Ident,
    pub constant: bool,
    pub ty: VarType,
    /// Length of an array, with the place of the number.
    pub len: Option<(i64, Span)>,
    pub init: Initialiser,
}

#[derive(Debug)]
pub enum Initialiser {
    Zero,
    One(ExprId),
    List(Vec<ExprId>),
}

#[derive(Debug)]
pub struct Channel {
    pub ident: Ident,
    /// The types of the values; `None` for an untyped channel.
    pub types: Option<Vec<VarType>>,
    /// Room for so many messages; 0 is a rendez-vous.
    pub capacity: i64,
}

#[derive(Debug)]
pub enum Declaration {
    Variable(Variable),
    Channel(Channel),
}

#[derive(Debug)]
pub struct Synchronisation {
    pub channel: Ident,
    pub sends: bool,
    pub values: Vec<ExprId>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Transition {
    /// Omitted: as in the transition before.
    pub from: Option<Ident>,
    pub to: Ident,
    pub span: Span,
    pub guard: Option<ExprId>,
    pub sync: Option<Synchronisation>,
    /// Targets and values, in order.
    pub effects: Vec<(ExprId, ExprId)>,
}

#[derive(Debug)]
pub struct Process {
    pub ident: Ident,
    pub variables: Vec<Variable>,
    pub states: Vec<Ident>,
    pub init: Option<Ident>,
    pub committed: Vec<Ident>,
    pub accepting: Vec<Ident>,
    pub asserts: Vec<(Ident, ExprId)>,
    pub transitions: Vec<Transition>,
}

#[derive(Debug)]
pub struct SystemLine {
    pub synchronous: bool,
    pub property: Option<Ident>,
}

#[derive(Debug, Default)]
pub struct Model {
    pub names: Names,
    pub exprs: Exprs,
    pub declarations: Vec<Declaration>,
    pub processes: Vec<Process>,
    pub system: Option<SystemLine>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_of_associative_operators_count_as_balanced() {
        let mut exprs = Exprs::default();
        let leaf = exprs.add(ExprKind::Number(1), Span::default());
        let mut sum = leaf;
        let mut difference = leaf;
        for _ in 0..1023 {
            sum = exprs.add(ExprKind::Binary(BinaryOp::Add, sum, leaf), Span::default());
            difference = exprs.add(ExprKind::Binary(BinaryOp::Subtract, difference, leaf), Span::default());
        }
        assert_eq!((exprs.depth(leaf), exprs.depth(sum), exprs.depth(difference)), (1, 11, 1024));
        assert_eq!(exprs.chain(BinaryOp::Add, sum).len(), 1024);
        let negated = exprs.add(ExprKind::Unary(UnaryOp::Negate, sum), Span::default());
        assert_eq!(exprs.depth(negated), 12);
        assert_eq!(exprs.chain(BinaryOp::Add, negated), [negated]);
    }

    #[test]
    fn names_are_interned() {
        let mut names = Names::default();
        let a = names.intern("a");
        let b = names.intern("b");
        assert!(a != b && names.intern("a") == a && names.text(b) == "b");
    }
}
