//! Strategies that look for something rather than at everything: walks. What they promise is said here, and where
//! they lead is decided in `plimsoll_search`.

use crate::plan::Plan;
use plimsoll_model::Model;
use plimsoll_search::{Control, Gait, Outcome, WalkRoom, walk};
use plimsoll_store::Budget;

/// Visits after which a search that need not end is given up, if nobody says otherwise.
pub const DEFAULT_VISITS: u64 = 10_000_000;

/// Part and whole: what fingerprints may take of the memory that paths need too.
const TABLE_SHARE: (u64, u64) = (3, 4);
/// A worker's table is this part of the whole memory, so that what it finds does not depend on how many there are.
const TABLE_PART: u64 = 16;
/// A round meets no more states than fit into this.
const LARGEST_TABLE_BYTES: u64 = 64 << 20;

/// What is hunted for, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hunt {
    Walk,
    Local,
    Swarm,
    Path,
    Deepen,
}

/// All of them, by name.
const NAMES: [(&str, Hunt); 5] = [
    ("walk", Hunt::Walk),
    ("walk+local", Hunt::Local),
    ("swarm", Hunt::Swarm),
    ("path", Hunt::Path),
    ("deepen", Hunt::Deepen),
];

impl Hunt {
    pub fn parse(name: &str) -> Option<Hunt> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, hunt)| *hunt)
    }

    pub fn name(self) -> String {
        NAMES.iter().find(|(_, hunt)| *hunt == self).map_or(String::new(), |(name, _)| (*name).into())
    }

    /// Does it end on every finite model without a limit?
    pub fn ends(self) -> bool {
        match self {
            Hunt::Path | Hunt::Deepen => true,
            Hunt::Walk | Hunt::Local | Hunt::Swarm => false,
        }
    }

    /// If it ends, was every reachable state visited?
    pub fn is_complete(self) -> bool {
        self.ends()
    }

    /// Is the memory for states bounded whatever the model? A path may be as long as there are states.
    pub fn is_bounded(self) -> bool {
        !self.ends()
    }

    /// Does it make use of the memory it is given? A mere walk needs none.
    pub fn is_aware(self) -> bool {
        match self {
            Hunt::Local | Hunt::Swarm => true,
            Hunt::Walk | Hunt::Path | Hunt::Deepen => false,
        }
    }

    /// Can several workers take part?
    pub fn is_shared(self) -> bool {
        !self.ends()
    }

    /// Is what it finds first found by a shortest way?
    pub fn finds_shortest(self) -> bool {
        self == Hunt::Deepen
    }

    /// Bytes for what it remembers, of a pool of so many.
    pub fn store_bytes(self, pool_bytes: u64) -> u64 {
        if self.is_aware() { pool_bytes / TABLE_SHARE.1 * TABLE_SHARE.0 } else { 0 }
    }

    fn gait(self) -> Gait<'static> {
        match self {
            Hunt::Walk => Gait::Random,
            Hunt::Local => Gait::Local,
            Hunt::Swarm => Gait::Swarm,
            Hunt::Path => Gait::Path,
            Hunt::Deepen => Gait::Deepen { guess: None },
        }
    }
}

/// Hunts in `model` within `plan`; `budget` is its pool.
pub fn search<M: Model + ?Sized>(
    model: &M,
    hunt: Hunt,
    plan: &Plan,
    budget: &Budget,
    control: &mut Control,
) -> Outcome {
    let own = (plan.memory_bytes / TABLE_PART).min(plan.store_bytes / plan.workers as u64).min(LARGEST_TABLE_BYTES);
    let room = WalkRoom {
        stack: budget.grant("stack", plan.stack_bytes),
        table: budget.grant("fingerprints", plan.store_bytes),
        table_bytes: 1 << own.max(1).ilog2(),
    };
    walk(model, &hunt.gait(), plan.seed, plan.workers, &room, control)
}
