//! Where do states live? Words in, answers out; nothing here knows a model.

pub mod arena;
pub mod batch;
pub mod budget;
pub mod cache;
pub mod chain;
pub mod codec;
pub mod disk;
mod entropy;
pub mod hash;
pub mod intern;
pub mod log;
pub mod meter;
pub mod packed;
pub mod packing;
pub mod queue;
pub mod region;
pub mod row;
mod sample;
pub mod sharing;
pub mod stack;
pub mod tiers;
pub mod tree;

pub use budget::{Budget, Full, Grant};
pub use cache::{Answer, Health, Note, Place, Rule};
pub use chain::{Buffers, Chain, Usage};
pub use codec::{Codec, Coder, Keys};
pub use disk::{Shortage, Spill, SpillError};
pub use log::{Piece, StepLog};
pub use packed::Density;
pub use queue::Queue;
pub use row::{Room, Row, Tier};
pub use sharing::SharedCoder;
pub use stack::Stack;
pub use tiers::{Block, Entry, Needs, Tiers};
