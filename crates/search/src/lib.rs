//! In which order? Searches over a [`plimsoll_model::Model`] and a [`plimsoll_store::Chain`].
//!
//! A search knows no language and no strategy: what the store remembers is the store's business. It
//! decides nothing but the order, and ends with a [`Verdict`].

#![forbid(unsafe_code)]

mod between;
pub mod bfs;
pub mod control;
mod curve;
pub mod dfs;
pub mod draw;
pub mod guided;
pub mod observe;
pub mod sleep;
pub mod sma;
mod swaps;
mod tally;
pub mod trace;
pub mod verdict;
pub mod walk;

pub use between::whole_way;
pub use bfs::{Company, Crew, Keeper, Saved, bfs, bfs_with};
pub use control::{Ask, Control, Limits, PathRoom, Stats, Watch};
pub use curve::LevelSizes;
pub use dfs::{dfs, item_words, observed_dfs, sleeping_dfs};
pub use draw::Draw;
pub use guided::{GuidedRoom, Lead, Ordering, guided};
pub use observe::{Observer, Seen};
pub use sleep::Sleep;
pub use sma::sma;
pub use trace::{ReplayError, Replayed, Walk, replay, verify};
pub use verdict::{Outcome, Trace, Verdict, Violation, What, Why};
pub use walk::{Gait, Guess, WalkRoom, walk};
