//! What the names of a model mean.

use super::ast::{Name, Names, VarType};
use crate::diagnostic::Span;
use plimsoll_ir::{ProcessId, Scalar, VarId};
use std::collections::HashMap;

/// Kept after loading, so that properties can be written in the names of the model.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    pub(super) names: Names,
    pub(super) globals: HashMap<Name, Entity>,
    pub(super) channels: Vec<Channel>,
    pub(super) processes: Vec<ProcessScope>,
    /// The process that observes the others, if it is left out of the system.
    pub(super) left_out: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) enum Entity {
    Constant(i64),
    Variable(Variable),
    /// Index into [`Symbols::channels`].
    Channel(u32),
    /// Index into [`Symbols::processes`].
    Process(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub var: VarId,
    pub ty: VarType,
    /// Length of an array.
    pub len: Option<u32>,
    /// The values of a constant array.
    pub table: Option<Vec<i64>>,
}

#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub name: Name,
    pub span: Span,
    pub types: Option<Vec<VarType>>,
    pub capacity: u32,
    /// Holds the messages of a buffered channel: a record of their number and the slots.
    pub buffer: Option<VarId>,
    /// Number of values, known from the types or from the first use.
    pub arity: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct ProcessScope {
    pub name: Name,
    pub id: ProcessId,
    pub location: VarId,
    pub states: HashMap<Name, u32>,
    /// By number of the state.
    pub committed: Vec<bool>,
    pub locals: HashMap<Name, Entity>,
}

impl VarType {
    pub(super) const fn scalar(self) -> Scalar {
        match self {
            VarType::Byte => Scalar::U8,
            VarType::Int => Scalar::I16,
        }
    }

    pub(super) const fn text(self) -> &'static str {
        match self {
            VarType::Byte => "byte",
            VarType::Int => "int",
        }
    }
}

impl Symbols {
    /// What a plain name means inside a process, or outside of all.
    pub(super) fn lookup(&self, name: Name, process: Option<u32>) -> Option<&Entity> {
        let local = process.and_then(|process| self.processes[process as usize].locals.get(&name));
        local.or_else(|| self.globals.get(&name))
    }

    pub(super) fn process(&self, name: Name) -> Option<u32> {
        match self.globals.get(&name) {
            Some(Entity::Process(index)) => Some(*index),
            _ => None,
        }
    }

    /// The most similar of `candidates`, for "did you mean".
    pub(super) fn similar(&self, name: Name, candidates: impl Iterator<Item = Name>) -> Option<&str> {
        let wanted = self.names.text(name);
        let most = (wanted.len() / 3).min(2);
        candidates
            .map(|candidate| self.names.text(candidate))
            .filter(|text| text.len().abs_diff(wanted.len()) <= most && text.len() <= 40)
            .map(|text| (edit_distance(wanted, text), text))
            .filter(|&(distance, _)| distance <= most)
            .min()
            .map(|(_, text)| text)
    }
}

fn edit_distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let changed = diagonal + (a != b) as usize;
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let mut symbols = Symbols::default();
        let known: Vec<Name> = ["counter", "turn", "x"].map(|name| symbols.names.intern(name)).to_vec();
        for (wrong, right) in [("conter", Some("counter")), ("trun", None), ("turm", Some("turn")), ("zebra", None)] {
            let name = symbols.names.intern(wrong);
            assert_eq!(symbols.similar(name, known.iter().copied()), right, "{wrong}");
        }
    }
}
