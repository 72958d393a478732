//! One file per command of the program.

pub mod check;
