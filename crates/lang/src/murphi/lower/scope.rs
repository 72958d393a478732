//! Names. Inner scopes hide outer ones; the body of a procedure sees the globals and its own names only.

use super::value::{Spot, Value};
use crate::murphi::types::TypeId;
use std::collections::HashMap;

#[derive(Clone, Debug)]
pub enum Entry {
    Type(TypeId),
    Spot(Spot),
    Value(Value),
    Procedure(usize),
}

#[derive(Debug)]
pub struct Scopes<'a> {
    globals: HashMap<&'a str, Entry>,
    locals: Vec<HashMap<&'a str, Entry>>,
}

impl<'a> Scopes<'a> {
    pub fn new() -> Scopes<'a> {
        Scopes { globals: HashMap::new(), locals: Vec::new() }
    }

    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.locals.iter().rev().find_map(|scope| scope.get(name)).or_else(|| self.globals.get(name))
    }

    /// Is the name taken in the innermost scope?
    pub fn is_taken(&self, name: &str) -> bool {
        self.locals.last().unwrap_or(&self.globals).contains_key(name)
    }

    pub fn declare(&mut self, name: &'a str, entry: Entry) {
        self.locals.last_mut().unwrap_or(&mut self.globals).insert(name, entry);
    }

    pub fn push(&mut self) {
        self.locals.push(HashMap::new());
    }

    pub fn pop(&mut self) {
        self.locals.pop();
    }

    pub fn depth(&self) -> usize {
        self.locals.len()
    }

    /// Drops inner scopes until `depth` are left.
    pub fn pop_to(&mut self, depth: usize) {
        self.locals.truncate(depth);
    }

    /// Hides all local scopes; what is returned puts them back with [`Scopes::restore`].
    pub fn isolate(&mut self) -> Vec<HashMap<&'a str, Entry>> {
        std::mem::take(&mut self.locals)
    }

    pub fn restore(&mut self, locals: Vec<HashMap<&'a str, Entry>>) {
        self.locals = locals;
    }

    /// The declared name nearest to `name`, for a hint.
    pub fn similar(&self, name: &str) -> Option<String> {
        let all = self.locals.iter().flat_map(|scope| scope.keys()).chain(self.globals.keys());
        all.filter(|other| other.eq_ignore_ascii_case(name)).map(|other| other.to_string()).min()
    }
}
