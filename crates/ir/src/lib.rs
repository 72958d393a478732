//! What is a system? Guarded commands over typed variables, as plain data.
//!
//! Every front end produces a [`System`]; every executor consumes one. Nothing here knows a source
//! language or a search. The way through the crate: [`types`] → [`expr`] → [`system`] → [`layout`].

#![forbid(unsafe_code)]

pub mod effects;
pub mod expr;
pub mod instances;
pub mod layout;
pub mod passes;
pub mod procedures;
#[cfg(any(test, feature = "random"))]
pub mod random;
pub mod symmetry;
pub mod system;
pub mod text;
pub mod types;
pub mod verify;
pub mod walk;
mod weight;

pub use effects::Effects;
pub use expr::{Access, BinOp, Call, Expr, Narrow, Place, Root, Stmt, UNLIMITED, UnOp};
pub use instances::Instances;
pub use layout::{Address, Layout, Slot, Stride};
pub use symmetry::Symmetry;
pub use system::{
    Act, Choice, Command, CommandId, Deadlock, Faults, Kind, Locals, Procedure, ProcedureId, Process, ProcessId,
    Property, PropertyId, PropertyKind, ReferenceId, Spelling, System, TempId, Var, VarId,
};
pub use types::{EnumId, Enumeration, Scalar, Type};
pub use verify::{Flaw, Verified, verify};
