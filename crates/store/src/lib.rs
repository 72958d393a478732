//! Where do states live? Words in, answers out; nothing here knows a model.

pub mod budget;
pub mod chain;
pub mod hash;
pub mod intern;
pub mod pairs;
pub mod region;
pub mod tree;

pub use budget::{Budget, Grant};
pub use chain::{Chain, Codec, Scratch, Usage};
pub use pairs::Full;
