//! Types of variables: ranges of integers, and arrays and records of them.

use crate::expr::Access;

/// Index into [`crate::System::enums`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnumId(pub u32);

/// Names for consecutive values, used only to show them to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration {
    pub name: String,
    /// The value that the first label names.
    pub first: i64,
    pub labels: Vec<String>,
}

impl Enumeration {
    /// The label of `value`, if it has one.
    pub fn label(&self, value: i64) -> Option<&str> {
        let index = usize::try_from(value.checked_sub(self.first)?).ok()?;
        self.labels.get(index).map(String::as_str)
    }
}

/// An integer range. It is stored in as few bits as it needs: two's complement if `low` is negative,
/// unsigned otherwise. All-zero bits are therefore always the value zero, even where zero is outside
/// the range (a front end may use that as "undefined").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub low: i64,
    pub high: i64,
    pub names: Option<EnumId>,
}

impl Scalar {
    pub const BOOL: Scalar = Scalar::range(0, 1);
    pub const U8: Scalar = Scalar::range(0, 255);
    pub const I16: Scalar = Scalar::range(-32768, 32767);
    pub const I32: Scalar = Scalar::range(i32::MIN as i64, i32::MAX as i64);

    pub const fn range(low: i64, high: i64) -> Scalar {
        Scalar { low, high, names: None }
    }

    pub const fn is_signed(&self) -> bool {
        self.low < 0
    }

    /// Bits of storage, 1 to 32 in a verified system.
    pub const fn bits(&self) -> u32 {
        let bits = if self.low < 0 {
            let magnitude = if !self.low > self.high { !self.low } else { self.high };
            1 + (64 - magnitude.leading_zeros())
        } else {
            64 - self.high.leading_zeros()
        };
        if bits == 0 { 1 } else { bits }
    }

    pub const fn contains(&self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Does every bit pattern name a value of the range? Only then is wrapping defined.
    pub const fn fills_its_bits(&self) -> bool {
        let span = 1i128 << self.bits();
        self.high as i128 - self.low as i128 + 1 == span
    }

    /// The value that `bits` low bits of `raw` stand for.
    pub const fn decode(&self, raw: u32) -> i64 {
        let bits = self.bits();
        if self.is_signed() { ((raw as i64) << (64 - bits)) >> (64 - bits) } else { raw as i64 & ((1i64 << bits) - 1) }
    }

    /// The stored form of `value`: its low bits.
    pub const fn encode(&self, value: i64) -> u32 {
        (value as u64 & ((1u64 << self.bits()) - 1)) as u32
    }
}

/// The type of a variable, a temporary, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Scalar(Scalar),
    Array { element: Box<Type>, len: u32 },
    Record(Vec<(String, Type)>),
}

/// The fields of a record that is a channel: how many messages it holds, and the messages. No language has such names.
const CHANNEL_FIELDS: [&str; 2] = ["#", "#message"];

impl Type {
    /// A channel that holds up to `capacity` messages.
    pub fn channel(capacity: u32, len: Scalar, message: Type) -> Type {
        let types = [len.into(), Type::array(message, capacity)];
        Type::Record(CHANNEL_FIELDS.map(String::from).into_iter().zip(types).collect())
    }

    /// The type of the messages, if it is a channel.
    pub fn message(&self) -> Option<&Type> {
        match self {
            Type::Record(fields) if fields.iter().map(|(name, _)| name.as_str()).eq(CHANNEL_FIELDS) => {
                match &fields[1].1 {
                    Type::Array { element, .. } => Some(element),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub fn array(element: Type, len: u32) -> Type {
        Type::Array { element: Box::new(element), len }
    }

    /// How many scalars the type is made of, in order of declaration and index.
    pub fn scalar_count(&self) -> usize {
        match self {
            Type::Scalar(_) => 1,
            Type::Array { element, len } => element.scalar_count() * *len as usize,
            Type::Record(fields) => fields.iter().map(|(_, ty)| ty.scalar_count()).sum(),
        }
    }

    /// The type of what `access` leads to; the access must fit.
    pub fn step(&self, access: &Access) -> &Type {
        match (self, access) {
            (Type::Array { element, .. }, Access::Index(_)) => element,
            (Type::Record(fields), Access::Field(field)) => &fields[*field as usize].1,
            _ => unreachable!("verified: paths fit their types"),
        }
    }

    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }
}

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Type {
        Type::Scalar(scalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_take_the_fewest_bits() {
        let cases = [(0, 0, 1), (0, 1, 1), (0, 2, 2), (0, 255, 8), (0, 256, 9), (-1, 0, 1), (-1, 1, 2), (-128, 127, 8)];
        for (low, high, bits) in cases {
            assert_eq!(Scalar::range(low, high).bits(), bits, "{low}..{high}");
        }
        assert_eq!(Scalar::I16.bits(), 16);
        assert_eq!(Scalar::I32.bits(), 32);
        assert_eq!(Scalar::range(5, 7).bits(), 3);
    }

    #[test]
    fn every_value_survives_storage() {
        for scalar in [Scalar::range(-3, 4), Scalar::range(0, 6), Scalar::I16, Scalar::U8, Scalar::I32] {
            for value in [scalar.low, scalar.low + 1, 0, 1, scalar.high - 1, scalar.high] {
                assert_eq!(scalar.decode(scalar.encode(value)), value);
            }
        }
        assert_eq!(Scalar::U8.decode(Scalar::U8.encode(-1)), 255);
        assert_eq!(Scalar::I16.decode(Scalar::I16.encode(40000)), 40000 - 65536);
    }

    #[test]
    fn only_full_ranges_wrap() {
        assert!(Scalar::U8.fills_its_bits() && Scalar::I16.fills_its_bits() && Scalar::I32.fills_its_bits());
        assert!(!Scalar::range(0, 2).fills_its_bits() && !Scalar::range(1, 255).fills_its_bits());
    }
}
