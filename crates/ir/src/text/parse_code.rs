//! Reading expressions and statements.

use super::lex::Token;
use super::parse::{Parser, Result};
use super::print::sign;
use crate::expr::{Access, BinOp, Call, Expr, Narrow, Place, Root, Stmt, UNLIMITED, UnOp};
use crate::system::{ProcedureId, ReferenceId};
use crate::types::Type;
use crate::verify::DEPTH_LIMIT;

type Temps = [(String, Type)];

const OPERATORS: [BinOp; 18] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Rem,
    BinOp::BitAnd,
    BinOp::BitOr,
    BinOp::BitXor,
    BinOp::Shl,
    BinOp::Shr,
    BinOp::Eq,
    BinOp::Ne,
    BinOp::Lt,
    BinOp::Le,
    BinOp::Gt,
    BinOp::Ge,
    BinOp::And,
    BinOp::Or,
];

impl Parser {
    /// Statements in braces.
    pub fn block(&mut self, temps: &Temps) -> Result<Vec<Stmt>> {
        self.nested_block(temps, 0)
    }

    pub fn expr(&mut self, temps: &Temps) -> Result<Expr> {
        self.nested_expr(temps, 0)
    }

    fn nested_block(&mut self, temps: &Temps, depth: usize) -> Result<Vec<Stmt>> {
        self.check_depth(depth)?;
        self.sign("{")?;
        let mut stmts = Vec::new();
        while !self.eat("}") {
            stmts.push(self.stmt(temps, depth)?);
        }
        Ok(stmts)
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth > DEPTH_LIMIT { Err(self.position().error("this is nested too deep")) } else { Ok(()) }
    }

    fn stmt(&mut self, temps: &Temps, depth: usize) -> Result<Stmt> {
        if self.eat_keyword("if") {
            let condition = self.nested_expr(temps, depth + 1)?;
            let then = self.nested_block(temps, depth + 1)?;
            let otherwise = if self.eat_keyword("else") { self.nested_block(temps, depth + 1)? } else { Vec::new() };
            return Ok(Stmt::If { condition, then, otherwise });
        }
        if self.eat_keyword("block") {
            return Ok(Stmt::Block(self.nested_block(temps, depth + 1)?));
        }
        if self.eat_keyword("loop") {
            let limit = if *self.peek() == Token::Sign("{") { UNLIMITED } else { self.number()? };
            return Ok(Stmt::Loop { limit, body: self.nested_block(temps, depth + 1)? });
        }
        let stmt = self.simple(temps, depth)?;
        self.sign(";")?;
        Ok(stmt)
    }

    fn simple(&mut self, temps: &Temps, depth: usize) -> Result<Stmt> {
        Ok(if self.eat_keyword("reset") {
            Stmt::Reset(self.place(temps, depth + 1)?)
        } else if self.eat_keyword("sort") {
            Stmt::Sort(self.place(temps, depth + 1)?)
        } else if self.eat_keyword("break") {
            Stmt::Break(self.number()?)
        } else if self.eat_keyword("assert") {
            let condition = self.nested_expr(temps, depth + 1)?;
            Stmt::Assert { condition, message: self.text()? }
        } else if self.eat_keyword("fault") {
            Stmt::Fault(self.text()?)
        } else if self.eat_keyword("discard") {
            Stmt::Discard
        } else if self.eat_keyword("call") {
            self.procedure_call(temps, depth + 1)?
        } else {
            let to = self.place(temps, depth + 1)?;
            if self.eat("<-") {
                Stmt::Copy { to, from: self.place(temps, depth + 1)? }
            } else {
                self.sign(":=")?;
                let value = self.nested_expr(temps, depth + 1)?;
                let narrow = if self.eat_keyword("wrapping") { Narrow::Wrap } else { Narrow::Trap };
                Stmt::Assign { to, value, narrow }
            }
        })
    }

    /// `name(references; inputs; outputs)`
    fn procedure_call(&mut self, temps: &Temps, depth: usize) -> Result<Stmt> {
        let procedures = std::mem::take(&mut self.system.procedures);
        let found = self.reference("procedure", procedures.iter().map(|procedure| procedure.name.as_str()));
        self.system.procedures = procedures;
        let procedure = ProcedureId(found?);
        self.sign("(")?;
        let references = self.places(";", temps, depth)?;
        let inputs = self.places(";", temps, depth)?;
        let outputs = self.places(")", temps, depth)?;
        Ok(Stmt::Call(Box::new(Call { procedure, references, inputs, outputs })))
    }

    /// Places separated by commas, up to a sign.
    fn places(&mut self, end: &str, temps: &Temps, depth: usize) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        if self.eat(end) {
            return Ok(places);
        }
        loop {
            places.push(self.place(temps, depth)?);
            if !self.eat(",") {
                self.sign(end)?;
                return Ok(places);
            }
        }
    }

    /// One operand, or two with an operator between them; longer chains need parentheses.
    fn nested_expr(&mut self, temps: &Temps, depth: usize) -> Result<Expr> {
        self.check_depth(depth)?;
        let left = self.operand(temps, depth)?;
        let Some(op) = self.operator() else { return Ok(left) };
        Ok(Expr::binary(op, left, self.operand(temps, depth)?))
    }

    fn operator(&mut self) -> Option<BinOp> {
        OPERATORS.into_iter().find(|&op| self.eat(sign(op)))
    }

    fn operand(&mut self, temps: &Temps, depth: usize) -> Result<Expr> {
        self.check_depth(depth)?;
        match self.peek().clone() {
            Token::Number(_) => Ok(Expr::Const(self.integer()?)),
            Token::Sign("-") => {
                if matches!(self.after(), Token::Number(_)) {
                    return Ok(Expr::Const(self.integer()?));
                }
                self.unary(UnOp::Neg, temps, depth)
            }
            Token::Sign("!") => self.unary(UnOp::Not, temps, depth),
            Token::Sign("~") => self.unary(UnOp::BitNot, temps, depth),
            // An operator nested in another always comes with parentheses, so levels are counted here.
            Token::Sign("(") => {
                self.next();
                let inner = self.nested_expr(temps, depth + 1)?;
                self.sign(")")?;
                Ok(inner)
            }
            Token::Word(word) if *self.after() == Token::Sign("(") => self.call(&word, temps, depth),
            _ => Ok(Expr::Read(self.place(temps, depth)?)),
        }
    }

    fn unary(&mut self, op: UnOp, temps: &Temps, depth: usize) -> Result<Expr> {
        self.next();
        Ok(Expr::unary(op, self.operand(temps, depth + 1)?))
    }

    /// `select(c, a, b)`, `u8(x)`, `i16(x)`
    fn call(&mut self, word: &str, temps: &Temps, depth: usize) -> Result<Expr> {
        if word == "select" {
            self.next();
            self.sign("(")?;
            let condition = self.nested_expr(temps, depth + 1)?;
            self.sign(",")?;
            let then = self.nested_expr(temps, depth + 1)?;
            self.sign(",")?;
            let otherwise = self.nested_expr(temps, depth + 1)?;
            self.sign(")")?;
            return Ok(Expr::Select(Box::new(condition), Box::new(then), Box::new(otherwise)));
        }
        let signed = word.starts_with('i');
        let bits = word.strip_prefix(['i', 'u']).and_then(|digits| digits.parse::<u8>().ok());
        let Some(bits) = bits.filter(|bits| (1..=64).contains(bits)) else {
            return self.expected("`select`, or a conversion such as `u8` or `i16`");
        };
        self.next();
        self.sign("(")?;
        let value = self.nested_expr(temps, depth + 1)?;
        self.sign(")")?;
        Ok(Expr::wrap(bits, signed, value))
    }

    fn place(&mut self, temps: &Temps, depth: usize) -> Result<Place> {
        self.check_depth(depth)?;
        let is_temp = match self.peek() {
            Token::Word(name) => self.temps.contains(name),
            token => matches!(token, Token::Temp(_)),
        };
        let (root, mut ty) = if self.eat("&") {
            let position = self.position();
            let number: u32 = self.number()?;
            match self.references.get(number as usize) {
                Some((_, ty)) => (Root::Reference(ReferenceId(number)), ty.clone()),
                None => return Err(position.error(format!("there is no reference {number}"))),
            }
        } else if is_temp {
            let temp = self.temp_reference(temps)?;
            (Root::Temp(temp), temps[temp.index()].1.clone())
        } else {
            let var = self.var_reference()?;
            (Root::Var(var), self.system.vars[var.index()].ty.clone())
        };
        let mut path = Vec::new();
        loop {
            let position = self.position();
            let access;
            (access, ty) = if self.eat("[") {
                let Type::Array { element, .. } = ty else { return Err(position.error("this is no array")) };
                let index = self.nested_expr(temps, depth + 1)?;
                self.sign("]")?;
                (Access::Index(index), *element)
            } else if self.eat(".") {
                let Type::Record(mut fields) = ty else { return Err(position.error("this is no record")) };
                let field = self.reference("field", fields.iter().map(|(name, _)| name.as_str()))?;
                (Access::Field(field), fields.swap_remove(field as usize).1)
            } else {
                return Ok(Place { root, path });
            };
            path.push(access);
        }
    }
}
