//! Constants, types and variables.

use super::scope::Entry;
use super::value::{Operand, Spot, Value};
use super::{Failed, Lowered, Lowerer};
use crate::murphi::ast::{Decl, Expr, Name, TypeExpr, TypeKind};
use crate::murphi::types::{BOOLEAN, Shape, TypeId};
use plimsoll_ir::{Stmt, VarId};

/// Largest number of values of an index, a scalarset or a multiset.
const MOST_ELEMENTS: i64 = 1 << 20;
/// Largest number of values of a range: one more must fit into 32 bits.
const MOST_VALUES: i64 = (1 << 32) - 1;

impl<'a> Lowerer<'a> {
    /// Declares a name in the current scope; globals become variables of the state, others temporaries.
    pub(super) fn declare(&mut self, decl: &'a Decl, global: bool) -> Lowered<()> {
        match decl {
            Decl::Const(name, expr) => {
                let value = self.constant_for(name, expr, global)?;
                self.bind(name, Entry::Value(value))
            }
            Decl::Type(name, ty) => {
                let ty = self.type_of(ty, Some(&name.text))?;
                self.bind(name, Entry::Type(ty))
            }
            Decl::Var(names, ty) => {
                let ty = self.type_of(ty, None)?;
                names.iter().try_for_each(|name| {
                    let spot = if global { self.global(name, ty) } else { self.local(name, ty) };
                    self.bind(name, Entry::Spot(spot))
                })
            }
        }
    }

    fn constant_for(&mut self, name: &Name, expr: &'a Expr, global: bool) -> Lowered<Value> {
        let given = self.options.constants.iter().position(|(constant, _)| *constant == name.text);
        match given {
            Some(found) if global => {
                self.constants_used[found] = true;
                Ok(Value::number(self.options.constants[found].1))
            }
            _ => self.constant(expr),
        }
    }

    fn global(&mut self, name: &Name, ty: TypeId) -> Spot {
        let var: VarId = self.system.var(&name.text, self.types.stored(ty), None);
        self.var_types.push(ty);
        Spot { place: var.into(), ty, writable: true, defined: false, in_multiset: false, silent: true }
    }

    fn local(&mut self, name: &Name, ty: TypeId) -> Spot {
        let temp = self.code.temp(&name.text, self.types.stored(ty));
        if self.code.loops > 0 {
            self.code.emit(Stmt::Reset(temp.into()));
        }
        Spot { place: temp.into(), ty, writable: true, defined: false, in_multiset: false, silent: true }
    }

    pub(super) fn bind(&mut self, name: &'a Name, entry: Entry) -> Lowered<()> {
        if self.scopes.is_taken(&name.text) {
            return Err(self.fail(format!("`{}` is declared twice", name.text), name.span));
        }
        self.scopes.declare(&name.text, entry);
        Ok(())
    }

    /// A value that must be known before the model runs.
    pub(super) fn constant(&mut self, expr: &'a Expr) -> Lowered<Value> {
        let (stmts, operand) = self.captured(|lowerer| lowerer.operand(expr))?;
        match operand {
            Operand::Value(value) if value.as_const().is_some() && stmts.is_empty() => Ok(value),
            _ => Err(self.fail("this is not a constant", expr.span)),
        }
    }

    pub(super) fn constant_number(&mut self, expr: &'a Expr) -> Lowered<i64> {
        let value = self.constant(expr)?;
        match value.as_const() {
            Some(number) if self.types.is_number(value.ty) => Ok(number),
            _ => Err(self.fail("this is not a number", expr.span)),
        }
    }

    /// Resolves a type; `name` is the one it is declared under.
    pub(super) fn type_of(&mut self, ty: &'a TypeExpr, name: Option<&str>) -> Lowered<TypeId> {
        let shape = match &ty.kind {
            TypeKind::Name(text) => return self.named_type(text, ty),
            TypeKind::Range(low, high) => return self.range_type(low, high, ty),
            TypeKind::Enum(names) => return self.enum_type(names, name),
            TypeKind::Record(fields) => self.record_shape(fields)?,
            TypeKind::Array(index, element) => {
                let index_type = self.type_of(index, None)?;
                let count = self.types.count(index_type).filter(|_| self.types.is_simple(index_type));
                match count {
                    Some(count) if count <= MOST_ELEMENTS => {}
                    Some(_) => return Err(self.fail("this array is too large", index.span)),
                    None => {
                        return Err(self.fail("arrays are indexed by ranges, enums, scalarsets or unions", index.span));
                    }
                }
                Shape::Array { index: index_type, element: self.type_of(element, None)? }
            }
            TypeKind::Scalarset(size) => Shape::Scalarset { size: self.size(size, "a scalarset")? },
            TypeKind::Union(members) => self.union_shape(members, ty)?,
            TypeKind::Multiset(size, element) => {
                let size = self.size(size, "a multiset")?;
                Shape::Multiset { size, element: self.type_of(element, None)? }
            }
            TypeKind::Real => {
                let note = "scale the quantity to a range of integers";
                return Err(self.fail_with_note("real numbers are not supported", ty.span, note));
            }
        };
        let name = name.map_or_else(|| self.snippet(ty.span), str::to_string);
        let made = self.types.add(shape, name, &mut self.system);
        if self.types.is_too_large(made) {
            return Err(self.fail("this type is too large for a state", ty.span));
        }
        Ok(made)
    }

    fn size(&mut self, expr: &'a Expr, what: &str) -> Lowered<u32> {
        match self.constant_number(expr)? {
            size @ 1..=MOST_ELEMENTS => Ok(size as u32),
            size => Err(self.fail(format!("{what} cannot have {size} elements"), expr.span)),
        }
    }

    fn named_type(&mut self, text: &str, ty: &TypeExpr) -> Lowered<TypeId> {
        match self.scopes.find(text) {
            Some(Entry::Type(found)) => Ok(*found),
            Some(_) => Err(self.fail(format!("`{text}` is not a type"), ty.span)),
            None if text.eq_ignore_ascii_case("boolean") => Ok(BOOLEAN),
            None => Err(self.unknown(text, ty.span)),
        }
    }

    pub(super) fn unknown(&mut self, text: &str, span: crate::Span) -> Failed {
        let message = format!("`{text}` is not declared");
        match self.scopes.similar(text) {
            Some(similar) => {
                self.fail_with_note(message, span, format!("there is `{similar}`: upper and lower case differ"))
            }
            None => self.fail(message, span),
        }
    }

    fn range_type(&mut self, low: &'a Expr, high: &'a Expr, ty: &TypeExpr) -> Lowered<TypeId> {
        let low = self.constant_number(low)?;
        let high = self.constant_number(high)?;
        if low > high {
            return Err(self.fail(format!("the range {low}..{high} is empty"), ty.span));
        }
        if high as i128 - low as i128 >= MOST_VALUES as i128 {
            return Err(self.fail("this range takes more than 32 bits", ty.span));
        }
        Ok(self.types.range(low, high, &mut self.system))
    }

    fn enum_type(&mut self, names: &'a [Name], name: Option<&str>) -> Lowered<TypeId> {
        let labels: Vec<String> = names.iter().map(|name| name.text.clone()).collect();
        let type_name = name.map_or_else(|| format!("enum {{{}}}", labels.join(", ")), str::to_string);
        let ty = self.types.add(Shape::Enum { names: labels }, type_name, &mut self.system);
        for (position, name) in names.iter().enumerate() {
            self.bind(name, Entry::Value(Value::constant(position as i64, ty)))?;
        }
        Ok(ty)
    }

    fn record_shape(&mut self, fields: &'a [(Vec<Name>, TypeExpr)]) -> Lowered<Shape> {
        let mut all: Vec<(String, TypeId)> = Vec::new();
        for (names, ty) in fields {
            let ty = self.type_of(ty, None)?;
            for name in names {
                if all.iter().any(|(other, _)| *other == name.text) {
                    return Err(self.fail(format!("there is already a field `{}`", name.text), name.span));
                }
                all.push((name.text.clone(), ty));
            }
        }
        Ok(Shape::Record { fields: all })
    }

    fn union_shape(&mut self, types: &'a [TypeExpr], ty: &TypeExpr) -> Lowered<Shape> {
        let mut members: Vec<(TypeId, i64)> = Vec::new();
        let mut size = 0;
        for member in types {
            let id = self.type_of(member, None)?;
            let flat = match self.types.shape(id) {
                Shape::Union { members, .. } => members.iter().map(|&(member, _)| member).collect(),
                Shape::Scalarset { .. } | Shape::Enum { .. } => vec![id],
                _ => return Err(self.fail("unions are made of scalarsets and enums", member.span)),
            };
            for id in flat {
                if members.iter().any(|&(other, _)| other == id) {
                    return Err(self.fail(format!("`{}` is in this union twice", self.types.name(id)), member.span));
                }
                members.push((id, size));
                size += self.types.count(id).unwrap_or(0);
            }
        }
        if self.is_rumur() {
            self.warn("Rumur itself does not check models with unions", ty.span);
        }
        Ok(Shape::Union { members, size })
    }
}
