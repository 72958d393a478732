//! Intervals of 64-bit integers, and what the operators of expressions do to them.
//!
//! Every function is an over-approximation: if the operands lie in their intervals and the operation
//! does not fault, its result lies in the resulting interval.

use crate::expr::{BinOp, UnOp};
use crate::types::Scalar;

/// The integers `low..=high`; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub low: i64,
    pub high: i64,
}

impl Interval {
    pub const TOP: Interval = Interval { low: i64::MIN, high: i64::MAX };
    const TRUTH: Interval = Interval { low: 0, high: 1 };

    pub const fn new(low: i64, high: i64) -> Interval {
        assert!(low <= high);
        Interval { low, high }
    }

    pub const fn point(value: i64) -> Interval {
        Interval::new(value, value)
    }

    /// The range of a scalar.
    pub const fn range(scalar: &Scalar) -> Interval {
        Interval::new(scalar.low, scalar.high)
    }

    /// All values that the bits of a scalar can stand for, in its range or not.
    pub fn stored(scalar: &Scalar) -> Interval {
        bits_interval(scalar.bits(), scalar.is_signed())
    }

    pub fn as_point(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    pub fn contains(self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    pub fn within(self, other: Interval) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    pub fn hull(self, other: Interval) -> Interval {
        Interval::new(self.low.min(other.low), self.high.max(other.high))
    }

    pub fn meet(self, other: Interval) -> Option<Interval> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then_some(Interval { low, high })
    }

    /// The largest absolute value.
    fn magnitude(self) -> u64 {
        self.low.unsigned_abs().max(self.high.unsigned_abs())
    }

    /// The hull of wide values, or everything if one of them does not fit: arithmetic wraps.
    fn of_wide(values: impl IntoIterator<Item = i128>) -> Interval {
        let (mut low, mut high) = (i128::MAX, i128::MIN);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        match (i64::try_from(low), i64::try_from(high)) {
            (Ok(low), Ok(high)) => Interval::new(low, high),
            _ => Interval::TOP,
        }
    }

    fn corners(self, other: Interval, op: impl Fn(i128, i128) -> i128) -> Interval {
        let (a, b) = ([self.low as i128, self.high as i128], [other.low as i128, other.high as i128]);
        Interval::of_wide(a.into_iter().flat_map(|a| b.map(|b| op(a, b))))
    }

    pub fn unary(self, op: UnOp) -> Interval {
        match op {
            UnOp::Neg => Interval::of_wide([-(self.low as i128), -(self.high as i128)]),
            UnOp::BitNot => Interval::new(!self.high, !self.low),
            UnOp::Not if !self.contains(0) => Interval::point(0),
            UnOp::Not if self == Interval::point(0) => Interval::point(1),
            UnOp::Not => Interval::TRUTH,
        }
    }

    pub fn binary(self, op: BinOp, other: Interval) -> Interval {
        use BinOp::*;
        match op {
            Add => self.corners(other, |a, b| a + b),
            Sub => self.corners(other, |a, b| a - b),
            Mul => self.corners(other, |a, b| a * b),
            Div => self.divide(other),
            Rem => self.remainder(other),
            BitAnd | BitOr | BitXor => self.bitwise(op, other),
            Shl => match other.as_point() {
                Some(count) => self.corners(Interval::point(0), |a, _| a << (count & 63)),
                None => Interval::TOP,
            },
            Shr => match other.as_point() {
                Some(count) => Interval::new(self.low >> (count & 63), self.high >> (count & 63)),
                None => Interval::new(self.low.min(0), self.high.max(-1)),
            },
            Eq | Ne | Lt | Le | Gt | Ge => self.compare(op, other),
            And | Or => Interval::TRUTH,
        }
    }

    fn divide(self, other: Interval) -> Interval {
        match other.as_point() {
            Some(divisor) if divisor != 0 => self.corners(other, |a, b| a / b),
            _ => {
                let most = self.magnitude() as i128;
                Interval::of_wide([-most, most])
            }
        }
    }

    fn remainder(self, other: Interval) -> Interval {
        let most = other.magnitude().saturating_sub(1);
        let bound = |side: i64| side.unsigned_abs().min(most).min(i64::MAX as u64) as i64;
        let low = if self.low < 0 { -bound(self.low) } else { 0 };
        let high = if self.high > 0 { bound(self.high) } else { 0 };
        Interval::new(low, high)
    }

    fn bitwise(self, op: BinOp, other: Interval) -> Interval {
        match (self.low >= 0, other.low >= 0) {
            (true, true) if op == BinOp::BitAnd => Interval::new(0, self.high.min(other.high)),
            (true, false) if op == BinOp::BitAnd => Interval::new(0, self.high),
            (false, true) if op == BinOp::BitAnd => Interval::new(0, other.high),
            (true, true) => bits_interval(64 - (self.high | other.high).leading_zeros(), false),
            _ => bits_interval(self.signed_bits().max(other.signed_bits()), true),
        }
    }

    /// Bits of a two's complement number that holds the whole interval.
    fn signed_bits(self) -> u32 {
        let bits = |value: i64| 65 - (value ^ (value >> 63)).leading_zeros();
        bits(self.low).max(bits(self.high))
    }

    fn compare(self, op: BinOp, other: Interval) -> Interval {
        use BinOp::*;
        let (always, never) = match op {
            Lt => (self.high < other.low, self.low >= other.high),
            Le => (self.high <= other.low, self.low > other.high),
            Gt => (self.low > other.high, self.high <= other.low),
            Ge => (self.low >= other.high, self.high < other.low),
            _ => {
                let equal = self.as_point().is_some() && self == other;
                let apart = self.meet(other).is_none();
                if op == Eq { (equal, apart) } else { (apart, equal) }
            }
        };
        match (always, never) {
            (true, _) => Interval::point(1),
            (_, true) => Interval::point(0),
            _ => Interval::TRUTH,
        }
    }

    /// The meaning of a conversion to `bits` bits.
    pub fn wrap(self, bits: u8, signed: bool) -> Interval {
        if bits == 64 {
            return self;
        }
        let all = bits_interval(bits as u32, signed);
        if self.within(all) { self } else { all }
    }
}

/// What `bits` bits (0 to 64) can hold.
fn bits_interval(bits: u32, signed: bool) -> Interval {
    match (bits, signed) {
        (0, _) => Interval::point(0),
        (64, _) => Interval::TOP,
        (_, true) => Interval::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        (_, false) => Interval::new(0, ((1u64 << bits) - 1) as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::wrap;

    const OPERATORS: [BinOp; 18] = {
        use BinOp::*;
        [Add, Sub, Mul, Div, Rem, BitAnd, BitOr, BitXor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge, And, Or]
    };
    const ENDS: [i64; 13] = [i64::MIN, i64::MIN + 1, -300, -8, -3, -1, 0, 1, 2, 7, 65, 1 << 40, i64::MAX];

    fn samples() -> impl Iterator<Item = Interval> + Clone {
        let lows = ENDS.into_iter();
        lows.flat_map(|low| ENDS.into_iter().filter(move |&high| low <= high).map(move |high| Interval { low, high }))
    }

    fn members(interval: Interval) -> Vec<i64> {
        let near = |value: i64| [value.saturating_sub(1), value, value.saturating_add(1)];
        ENDS.into_iter().flat_map(near).filter(|&value| interval.contains(value)).collect()
    }

    #[test]
    fn results_lie_in_the_resulting_interval() {
        for (a, b) in samples().flat_map(|a| samples().map(move |b| (a, b))) {
            for op in OPERATORS {
                let result = a.binary(op, b);
                for (x, y) in members(a).into_iter().flat_map(|x| members(b).into_iter().map(move |y| (x, y))) {
                    let value = op.apply(x, y);
                    assert!(value.is_none_or(|value| result.contains(value)), "{x} {op:?} {y} not in {result:?}");
                }
            }
        }
    }

    #[test]
    fn conversions_and_unary_operators_too() {
        for interval in samples() {
            for value in members(interval) {
                for op in [UnOp::Neg, UnOp::Not, UnOp::BitNot] {
                    assert!(interval.unary(op).contains(op.apply(value)));
                }
                for (bits, signed) in (1..=64).flat_map(|bits| [(bits, true), (bits, false)]) {
                    assert!(interval.wrap(bits, signed).contains(wrap(bits, signed, value)), "{interval:?} {bits}");
                }
            }
        }
    }

    #[test]
    fn common_cases_are_exact() {
        let byte = Interval::new(0, 255);
        assert_eq!(byte.binary(BinOp::Add, Interval::point(1)), Interval::new(1, 256));
        assert_eq!(byte.binary(BinOp::Rem, Interval::point(3)), Interval::new(0, 2));
        assert_eq!(byte.binary(BinOp::BitAnd, Interval::point(7)), Interval::new(0, 7));
        assert_eq!(byte.binary(BinOp::BitXor, Interval::point(1)), byte);
        assert_eq!(byte.binary(BinOp::Ge, Interval::point(0)), Interval::point(1));
        assert_eq!(byte.wrap(8, false), byte);
        assert_eq!(byte.wrap(8, true), Interval::new(-128, 127));
    }
}
