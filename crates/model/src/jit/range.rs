//! Intervals of 64-bit values, to leave out checks that cannot fail.
//!
//! A range always holds every value its expression can take, whatever the bits of the state are: the
//! generated code stays within its memory because of it.

use plimsoll_ir::{BinOp, Scalar, UnOp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub low: i64,
    pub high: i64,
}

impl Range {
    pub const FULL: Range = Range { low: i64::MIN, high: i64::MAX };
    pub const TRUTH: Range = Range { low: 0, high: 1 };

    pub fn new(low: i64, high: i64) -> Range {
        debug_assert!(low <= high);
        Range { low, high }
    }

    pub fn constant(value: i64) -> Range {
        Range { low: value, high: value }
    }

    /// The one value of the range, if there is only one.
    pub fn single(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Everything that `bits` bits can hold.
    pub fn of_bits(bits: u32, signed: bool) -> Range {
        match (bits, signed) {
            (64.., _) => Range::FULL,
            (_, true) => Range::new(-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1),
            (63, false) => Range::new(0, i64::MAX),
            (_, false) => Range::new(0, (1i64 << bits) - 1),
        }
    }

    /// What a field of the state may decode to.
    pub fn of_field(scalar: &Scalar) -> Range {
        Range::of_bits(scalar.bits(), scalar.is_signed())
    }

    /// What a temporary may hold: a value that was checked, or the zero it starts with.
    pub fn of_temp(scalar: &Scalar) -> Range {
        Range::new(scalar.low.min(0), scalar.high.max(0))
    }

    pub fn within(self, other: Range) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    pub fn contains(self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    pub fn union(self, other: Range) -> Range {
        Range::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// The common part, or `other` if there is none (then the value is never used).
    pub fn clamp(self, other: Range) -> Range {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        if low <= high { Range::new(low, high) } else { other }
    }

    fn of_wide(low: i128, high: i128) -> Range {
        match (i64::try_from(low), i64::try_from(high)) {
            (Ok(low), Ok(high)) => Range::new(low, high),
            _ => Range::FULL,
        }
    }

    /// The smallest power-of-two range of signed values around both.
    fn signed_around(self, other: Range) -> Range {
        let width = |value: i64| 65 - (if value < 0 { !value } else { value }).leading_zeros();
        let bits = [self.low, self.high, other.low, other.high].into_iter().map(width).max().unwrap_or(64);
        Range::of_bits(bits, true)
    }

    pub fn unary(op: UnOp, value: Range) -> Range {
        match op {
            UnOp::Neg => Range::of_wide(-(value.high as i128), -(value.low as i128)),
            UnOp::Not => match value.single() {
                Some(value) => Range::constant((value == 0) as i64),
                None if value.contains(0) => Range::TRUTH,
                None => Range::constant(0),
            },
            UnOp::BitNot => Range::new(!value.high, !value.low),
        }
    }

    pub fn binary(op: BinOp, a: Range, b: Range) -> Range {
        let wide = |range: Range| (range.low as i128, range.high as i128);
        let ((a_low, a_high), (b_low, b_high)) = (wide(a), wide(b));
        if let (Some(left), Some(right)) = (a.single(), b.single()) {
            return op.apply(left, right).map_or(Range::FULL, Range::constant);
        }
        match op {
            BinOp::Add => Range::of_wide(a_low + b_low, a_high + b_high),
            BinOp::Sub => Range::of_wide(a_low - b_high, a_high - b_low),
            BinOp::Mul => {
                let ends = [a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high];
                Range::of_wide(*ends.iter().min().unwrap(), *ends.iter().max().unwrap())
            }
            BinOp::Div if a.low >= 0 && b.low >= 0 => Range::new(0, a.high),
            BinOp::Div => {
                let most = a_low.abs().max(a_high.abs());
                Range::of_wide(-most, most)
            }
            BinOp::Rem => {
                let most = (b_low.abs().max(b_high.abs()) - 1).max(0);
                let low = if a.low < 0 { (-most).max(a_low) } else { 0 };
                let high = if a.high > 0 { most.min(a_high) } else { 0 };
                Range::of_wide(low, high)
            }
            BinOp::BitAnd if a.low >= 0 && b.low >= 0 => Range::new(0, a.high.min(b.high)),
            BinOp::BitAnd if a.low >= 0 => Range::new(0, a.high),
            BinOp::BitAnd if b.low >= 0 => Range::new(0, b.high),
            BinOp::BitOr | BinOp::BitXor if a.low >= 0 && b.low >= 0 => {
                Range::of_bits(64 - (a.high | b.high).leading_zeros(), false).union(Range::constant(0))
            }
            BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => a.signed_around(b),
            BinOp::Shl => match b.single() {
                Some(count) => Range::of_wide(a_low << (count & 63), a_high << (count & 63)),
                None => Range::FULL,
            },
            BinOp::Shr => Range::new(a.low.min(0), if a.high < 0 { -1 } else { a.high }),
            BinOp::Lt | BinOp::Ge if a.high < b.low => Range::constant((op == BinOp::Lt) as i64),
            BinOp::Lt | BinOp::Ge if a.low >= b.high => Range::constant((op == BinOp::Ge) as i64),
            BinOp::Le | BinOp::Gt if a.high <= b.low => Range::constant((op == BinOp::Le) as i64),
            BinOp::Le | BinOp::Gt if a.low > b.high => Range::constant((op == BinOp::Gt) as i64),
            BinOp::Eq | BinOp::Ne if a.high < b.low || b.high < a.low => Range::constant((op == BinOp::Ne) as i64),
            _ => Range::TRUTH,
        }
    }

    pub fn wrap(self, bits: u8, signed: bool) -> Range {
        let target = Range::of_bits(bits as u32, signed);
        if self.within(target) { self } else { target }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::expr::wrap;

    const EDGES: [i64; 14] =
        [i64::MIN, i64::MIN + 1, -(1 << 32), -257, -128, -2, -1, 0, 1, 3, 127, 1 << 31, i64::MAX - 1, i64::MAX];

    fn samples(range: Range) -> impl Iterator<Item = i64> {
        let inner = (-9..9).chain(EDGES);
        inner.filter(move |&value| range.contains(value)).chain([range.low, range.high])
    }

    fn ranges() -> Vec<Range> {
        let points = EDGES.iter().copied().chain([-7, 5, 8]);
        let pairs = points.clone().flat_map(|low| points.clone().map(move |high| (low, high)));
        pairs.filter(|(low, high)| low <= high).map(|(low, high)| Range::new(low, high)).collect()
    }

    #[test]
    fn results_stay_in_their_range() {
        use BinOp::*;
        let ops = [Add, Sub, Mul, Div, Rem, BitAnd, BitOr, BitXor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge, And, Or];
        for a in ranges() {
            for b in ranges().into_iter().step_by(3) {
                for op in ops {
                    let result = Range::binary(op, a, b);
                    for left in samples(a).step_by(2) {
                        for right in samples(b).step_by(2) {
                            let Some(value) = op.apply(left, right) else { continue };
                            assert!(result.contains(value), "{left} {op:?} {right} = {value}: {a:?} {b:?} {result:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn single_operands_stay_in_their_range() {
        for range in ranges() {
            for value in samples(range) {
                for op in [UnOp::Neg, UnOp::Not, UnOp::BitNot] {
                    assert!(Range::unary(op, range).contains(op.apply(value)), "{op:?} {value}");
                }
                for bits in [1, 7, 8, 31, 32, 33, 63, 64] {
                    for signed in [false, true] {
                        assert!(range.wrap(bits, signed).contains(wrap(bits, signed, value)), "{bits} {value}");
                    }
                }
            }
        }
    }
}
