//! One file per command of the program.

pub mod check;
pub mod compare;
pub mod convert;
pub mod crosscheck;
pub mod generate;
pub mod info;
pub mod lts;
pub mod man;
pub mod plan;
pub mod replay;
pub mod resume;
pub mod simulate;
pub mod strategies;
pub mod sweep;
