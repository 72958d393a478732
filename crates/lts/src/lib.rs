//! Labelled transition systems: explicit graphs with labels on their edges.
//!
//! As files they are streams of edges, in the text format of other tools ([`aut`]) or in a compact one of ours
//! ([`binary`]); [`EdgeReader`] reads either. In memory they are arrays ([`Lts`]), which [`minimise`] makes as small as an
//! equivalence allows and [`compare`] holds against each other.

#![forbid(unsafe_code)]

pub mod aut;
pub mod binary;
pub mod compare;
mod graph;
mod minimise;
mod refine;
mod silent;
mod stream;

pub use aut::AutWriter;
pub use binary::LtsWriter;
pub use compare::{Comparison, compare};
pub use graph::{Builder, Lts, TAU};
pub use minimise::{Equivalence, minimise};
pub use stream::{Edge, EdgeReader, Ends, ReadError};
