//! Resolved types and how their values are stored.
//!
//! A simple type with n values is stored as a scalar `0..=n`: zero is *undefined*, the k-th value (from 0)
//! is k + 1. The value of a range is a number; that of an enum, a scalarset or a union is its position.
//! So everywhere `value = stored - 1 + low`, with `low` zero but for ranges. An array is an array by
//! position of its index, a multiset a record of its slots and of flags that say which are in use.

use plimsoll_ir::{EnumId, Enumeration, Scalar, System, Type};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(pub u32);

/// Numbers without a declared range: literals and arithmetic.
pub const INTEGER: TypeId = TypeId(0);
pub const BOOLEAN: TypeId = TypeId(1);

/// Ranges with more values than this have no names for their values in traces.
const MOST_NAMES: i64 = 1 << 17;
/// And all ranges together not many more than this.
const MOST_NAMES_IN_ALL: i64 = 1 << 20;
/// Types with more scalars fit in no state.
const MOST_SCALARS: u64 = 1 << 21;

#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Any number; never stored in the state.
    Integer,
    Range {
        low: i64,
        high: i64,
    },
    Enum {
        names: Vec<String>,
    },
    Scalarset {
        size: u32,
    },
    /// Members with the position of their first value; no member is itself a union.
    Union {
        members: Vec<(TypeId, i64)>,
        size: i64,
    },
    Array {
        index: TypeId,
        element: TypeId,
    },
    Record {
        fields: Vec<(String, TypeId)>,
    },
    Multiset {
        size: u32,
        element: TypeId,
    },
    /// A slot of a multiset, bound by `choose` and the like; stored as its number, never undefined.
    Slot {
        size: u32,
    },
}

#[derive(Clone, Debug)]
struct Entry {
    shape: Shape,
    name: String,
    /// How it is stored; `None` for numbers without a range, and for what is too large.
    stored: Option<Type>,
    /// How many scalars it is made of, saturating.
    scalars: u64,
}

/// All types of a model.
#[derive(Clone, Debug)]
pub struct Types {
    entries: Vec<Entry>,
    /// Names made for the values of ranges.
    names: i64,
}

impl Types {
    pub fn new(system: &mut System) -> Types {
        let mut types = Types { entries: Vec::new(), names: 0 };
        types.add(Shape::Integer, "number".into(), system);
        let names = vec!["false".to_string(), "true".to_string()];
        types.add(Shape::Enum { names }, "boolean".into(), system);
        types
    }

    /// Adds a type; `name` is for messages and for the names of scalarset values.
    pub fn add(&mut self, shape: Shape, name: String, system: &mut System) -> TypeId {
        if let Shape::Range { low, high } = shape {
            self.names += (high - low).min(MOST_NAMES);
        }
        let scalars = self.count_scalars(&shape);
        let stored = (scalars <= MOST_SCALARS).then(|| self.stored_form(&shape, &name, system)).flatten();
        self.entries.push(Entry { shape, name, stored, scalars });
        TypeId(self.entries.len() as u32 - 1)
    }

    /// A range; equal ranges are one type.
    pub fn range(&mut self, low: i64, high: i64, system: &mut System) -> TypeId {
        let shape = Shape::Range { low, high };
        match self.entries.iter().position(|entry| entry.shape == shape) {
            Some(found) => TypeId(found as u32),
            None => self.add(shape, format!("{low}..{high}"), system),
        }
    }

    fn count_scalars(&self, shape: &Shape) -> u64 {
        let of = |ty: TypeId| self.entries[ty.0 as usize].scalars;
        match shape {
            Shape::Array { index, element } => of(*element).saturating_mul(self.count(*index).unwrap_or(1) as u64),
            Shape::Record { fields } => fields.iter().fold(0, |sum: u64, (_, field)| sum.saturating_add(of(*field))),
            Shape::Multiset { size, element } => of(*element).saturating_add(1).saturating_mul(*size as u64),
            _ => 1,
        }
    }

    /// Is the type larger than any state can be?
    pub fn is_too_large(&self, ty: TypeId) -> bool {
        self.entries[ty.0 as usize].scalars > MOST_SCALARS
    }

    pub fn shape(&self, ty: TypeId) -> &Shape {
        &self.entries[ty.0 as usize].shape
    }

    pub fn name(&self, ty: TypeId) -> &str {
        &self.entries[ty.0 as usize].name
    }

    /// How values of the type are stored. Numbers are stored as 32-bit integers (in temporaries only).
    pub fn stored(&self, ty: TypeId) -> Type {
        self.entries[ty.0 as usize].stored.clone().unwrap_or(Type::Scalar(Scalar::I32))
    }

    pub fn is_simple(&self, ty: TypeId) -> bool {
        !matches!(self.shape(ty), Shape::Array { .. } | Shape::Record { .. } | Shape::Multiset { .. })
    }

    pub fn is_number(&self, ty: TypeId) -> bool {
        matches!(self.shape(ty), Shape::Integer | Shape::Range { .. })
    }

    /// Is the type one of a union's members?
    pub fn is_member(&self, member: TypeId, union: TypeId) -> bool {
        let is_it = |&(other, _): &(TypeId, i64)| other == member;
        matches!(self.shape(union), Shape::Union { members, .. } if members.iter().any(is_it))
    }

    /// Is comparing undefined values of the type harmless to CMurphi?
    pub fn is_symmetric(&self, ty: TypeId) -> bool {
        matches!(self.shape(ty), Shape::Scalarset { .. } | Shape::Union { .. })
    }

    /// How many values a simple type has.
    pub fn count(&self, ty: TypeId) -> Option<i64> {
        Some(match self.shape(ty) {
            Shape::Range { low, high } => high - low + 1,
            Shape::Enum { names } => names.len() as i64,
            Shape::Scalarset { size } | Shape::Slot { size } => *size as i64,
            Shape::Union { size, .. } => *size,
            _ => return None,
        })
    }

    /// The smallest and the largest value of a simple type.
    pub fn bounds(&self, ty: TypeId) -> (i64, i64) {
        match self.shape(ty) {
            Shape::Integer => (i32::MIN as i64, i32::MAX as i64),
            Shape::Range { low, high } => (*low, *high),
            _ => (0, self.count(ty).unwrap_or(1) - 1),
        }
    }

    /// What to add to a stored scalar to get the value.
    pub fn shift(&self, ty: TypeId) -> i64 {
        match self.shape(ty) {
            Shape::Integer | Shape::Slot { .. } => 0,
            Shape::Range { low, .. } => low - 1,
            _ => -1,
        }
    }

    /// May a stored value of the type be undefined at all?
    pub fn has_undefined(&self, ty: TypeId) -> bool {
        !matches!(self.shape(ty), Shape::Integer | Shape::Slot { .. })
    }

    /// Are the two types the same, or built alike from the same?
    pub fn alike(&self, one: TypeId, other: TypeId) -> bool {
        if one == other {
            return true;
        }
        match (self.shape(one), self.shape(other)) {
            (Shape::Range { .. } | Shape::Slot { .. }, _) => self.shape(one) == self.shape(other),
            (Shape::Array { index: i, element: e }, Shape::Array { index: j, element: f }) => {
                self.alike(*i, *j) && self.alike(*e, *f)
            }
            (Shape::Record { fields: one }, Shape::Record { fields: other }) => {
                one.len() == other.len() && one.iter().zip(other).all(|((n, t), (m, u))| n == m && self.alike(*t, *u))
            }
            (Shape::Multiset { size: n, element: e }, Shape::Multiset { size: m, element: f }) => {
                n == m && self.alike(*e, *f)
            }
            (Shape::Union { members: one, .. }, Shape::Union { members: other, .. }) => one == other,
            _ => false,
        }
    }

    /// Does the type contain a multiset?
    pub fn has_multiset(&self, ty: TypeId) -> bool {
        match self.shape(ty) {
            Shape::Multiset { .. } => true,
            Shape::Array { element, .. } => self.has_multiset(*element),
            Shape::Record { fields } => fields.iter().any(|(_, field)| self.has_multiset(*field)),
            _ => false,
        }
    }

    /// Does the type contain a scalarset or a union?
    pub fn has_scalarset(&self, ty: TypeId) -> bool {
        match self.shape(ty) {
            Shape::Scalarset { .. } | Shape::Union { .. } => true,
            Shape::Array { element, .. } => self.has_scalarset(*element),
            Shape::Record { fields } => fields.iter().any(|(_, field)| self.has_scalarset(*field)),
            _ => false,
        }
    }

    /// The name of the value at a position of a simple type.
    pub fn value_name(&self, ty: TypeId, position: i64) -> String {
        match self.shape(ty) {
            Shape::Range { low, .. } => (low + position).to_string(),
            Shape::Enum { names } => names.get(position as usize).cloned().unwrap_or_default(),
            Shape::Scalarset { .. } => scalarset_value(self.name(ty), position),
            Shape::Union { members, .. } => {
                let member = members.iter().rev().find(|(_, first)| *first <= position);
                member.map_or(String::new(), |&(member, first)| self.value_name(member, position - first))
            }
            _ => position.to_string(),
        }
    }

    fn stored_form(&self, shape: &Shape, name: &str, system: &mut System) -> Option<Type> {
        let named = |labels: Vec<String>, system: &mut System| {
            let high = labels.len() as i64;
            let labels = std::iter::once("undefined".to_string()).chain(labels).collect();
            system.enums.push(Enumeration { name: name.to_string(), first: 0, labels });
            Type::Scalar(Scalar { low: 0, high, names: Some(EnumId(system.enums.len() as u32 - 1)) })
        };
        Some(match shape {
            Shape::Integer => return None,
            Shape::Range { low, high } if high - low >= MOST_NAMES || self.names > MOST_NAMES_IN_ALL => {
                Type::Scalar(Scalar::range(0, high - low + 1))
            }
            Shape::Range { low, high } => named((*low..=*high).map(|value| value.to_string()).collect(), system),
            Shape::Enum { names } => named(names.clone(), system),
            Shape::Scalarset { size } => {
                named((0..*size as i64).map(|value| scalarset_value(name, value)).collect(), system)
            }
            Shape::Union { members, .. } => {
                let of_member = |&(member, _): &(TypeId, i64)| {
                    (0..self.count(member).unwrap_or(0)).map(move |position| self.value_name(member, position))
                };
                named(members.iter().flat_map(of_member).collect(), system)
            }
            Shape::Array { index, element } => {
                Type::array(self.stored(*element), self.count(*index).unwrap_or(1) as u32)
            }
            Shape::Record { fields } if fields.is_empty() => {
                Type::Record(vec![("nothing".into(), Scalar::BOOL.into())])
            }
            Shape::Record { fields } => {
                Type::Record(fields.iter().map(|(name, ty)| (name.clone(), self.stored(*ty))).collect())
            }
            Shape::Multiset { size, element } => Type::Record(vec![
                ("slot".into(), Type::array(self.stored(*element), *size)),
                ("used".into(), Type::array(Scalar::BOOL.into(), *size)),
            ]),
            Shape::Slot { size } => Type::Scalar(Scalar::range(0, *size as i64 - 1)),
        })
    }
}

/// CMurphi's names: `Proc_1`, `Proc_2`, …
fn scalarset_value(name: &str, position: i64) -> String {
    format!("{name}_{}", position + 1)
}
