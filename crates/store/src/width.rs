//! Narrow states are copied and compared in the time that it takes to call a function that does so with any: code for each width.

/// States of more words are wide.
pub const NARROW: usize = 12;

/// Does something with states of `$width` words: for narrow ones that is a constant, named `$WIDTH`.
macro_rules! by_width {
    ($width:expr, $WIDTH:ident => $narrow:expr, $wide:expr) => {
        by_width!($width, $WIDTH => $narrow, $wide; 1 2 3 4 5 6 7 8 9 10 11 12)
    };
    ($width:expr, $WIDTH:ident => $narrow:expr, $wide:expr; $($each:literal)*) => {
        match $width {
            $($each => {
                const $WIDTH: usize = $each;
                $narrow
            })*
            _ => $wide,
        }
    };
}

/// Are two narrow states the same? Comparing them as arrays calls a function from nine words on.
#[inline(always)]
pub fn are_same<const WIDTH: usize>(one: &[u32; WIDTH], other: &[u32; WIDTH]) -> bool {
    one.iter().zip(other).fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
}

pub(crate) use by_width;
