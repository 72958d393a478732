//! What names stand for, block by block.

use crate::promela::ast::Root;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Variable(Root),
    /// An mtype constant.
    Constant(i64),
    /// Index into the structures.
    Typedef(usize),
    /// Index into the proctypes.
    Proctype(usize),
}

/// Scopes from the globals to the innermost block.
#[derive(Debug)]
pub struct Names {
    scopes: Vec<HashMap<Arc<str>, Meaning>>,
    /// Numbers of the blocks that are open, and of the next one.
    path: Vec<u32>,
    next: u32,
}

impl Default for Names {
    fn default() -> Names {
        Names { scopes: vec![HashMap::new()], path: Vec::new(), next: 0 }
    }
}

impl Names {
    pub fn open(&mut self) {
        self.scopes.push(HashMap::new());
        self.path.push(self.next);
        self.next += 1;
    }

    pub fn close(&mut self) {
        self.scopes.pop();
        self.path.pop();
    }

    pub fn path(&self) -> &[u32] {
        &self.path
    }

    pub fn find(&self, name: &str) -> Option<Meaning> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    /// Declares a name in the innermost scope; an error if it is visible already, as Promela has no shadowing.
    pub fn declare(&mut self, name: Arc<str>, meaning: Meaning) -> Result<(), Meaning> {
        match self.find(&name) {
            Some(other) => Err(other),
            None => {
                self.scopes.last_mut().expect("the global scope stays").insert(name, meaning);
                Ok(())
            }
        }
    }

    /// Declares a name for the whole model.
    pub fn declare_global(&mut self, name: Arc<str>, meaning: Meaning) -> Result<(), Meaning> {
        match self.find(&name) {
            Some(other) => Err(other),
            None => {
                self.scopes[0].insert(name, meaning);
                Ok(())
            }
        }
    }
}

const KEYWORDS: [&str; 68] = [
    "active",
    "assert",
    "atomic",
    "bit",
    "bool",
    "break",
    "byte",
    "c_code",
    "c_decl",
    "c_expr",
    "c_state",
    "c_track",
    "D_proctype",
    "do",
    "chan",
    "else",
    "empty",
    "enabled",
    "eval",
    "false",
    "fi",
    "for",
    "full",
    "get_priority",
    "goto",
    "hidden",
    "if",
    "init",
    "inline",
    "int",
    "len",
    "local",
    "ltl",
    "mtype",
    "nempty",
    "never",
    "nfull",
    "notrace",
    "np_",
    "od",
    "of",
    "pc_value",
    "pid",
    "printf",
    "printm",
    "priority",
    "proctype",
    "provided",
    "return",
    "run",
    "d_step",
    "select",
    "set_priority",
    "short",
    "skip",
    "timeout",
    "trace",
    "true",
    "show",
    "typedef",
    "unless",
    "unsigned",
    "xr",
    "xs",
    "_pid",
    "_nr_pr",
    "_last",
    "_priority",
];

pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}
