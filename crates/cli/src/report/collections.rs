//! How often nodes of a tree were given up, where states are forgotten.

use crate::size::show_count;
use plimsoll_store::Collections;
use serde::Serialize;
use std::fmt::Write;

#[derive(Clone, Copy, Debug, Serialize)]
pub struct CollectionFacts {
    pub times: u64,
    /// Nodes that only forgotten states had, of all times together.
    pub nodes: u64,
}

impl CollectionFacts {
    /// Nothing if it was never done.
    pub fn of(collections: Collections) -> Option<CollectionFacts> {
        let Collections { times, nodes } = collections;
        (times > 0).then_some(CollectionFacts { times, nodes })
    }

    /// A line for people.
    pub fn show(self, out: &mut String) {
        let (times, nodes) = (show_count(self.times), show_count(self.nodes));
        let _ = writeln!(out, "{:<18} {nodes:>15}  (in {times} collections)", "nodes given up");
    }
}
