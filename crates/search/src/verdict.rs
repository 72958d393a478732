//! What a search can say.

use crate::control::Stats;
use plimsoll_model::GaveUp;
use plimsoll_store::{Odds, Shortage, SpillError, Unloaded};
use serde::{Deserialize, Serialize};

/// The answer, and what was seen on the way to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub verdict: Verdict,
    pub stats: Stats,
    /// Every reachable state was visited and expanded. If the store forgot none of them, the counts are those of the
    /// model; otherwise some were counted more than once.
    pub complete: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every reachable state was visited and none is wrong.
    Holds,
    /// The same, but for states that the store may have taken for others.
    HoldsUnless(Odds),
    /// No state within this many steps is wrong; deeper ones were not visited.
    HoldsToDepth(u32),
    Violated(Violation),
    Unknown(Why),
}

impl Verdict {
    /// Of a search that found this, ended so, and may have missed states for that reason.
    pub(crate) fn of(violation: Option<Violation>, end: Result<(), Why>, cut: Option<Why>) -> Verdict {
        match (violation, end, cut) {
            (Some(violation), _, _) => Verdict::Violated(violation),
            (None, Err(why), _) | (None, Ok(()), Some(why)) => Verdict::Unknown(why),
            (None, Ok(()), None) => Verdict::Holds,
        }
    }
}

/// Something wrong, and the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub what: What,
    pub trace: Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum What {
    /// The last state has no way on.
    Deadlock,
    /// The last step goes wrong: it leads to no state.
    Fault,
    /// An assertion fails during the last step.
    Assertion,
    /// The last state violates (or, for a goal, reaches) the property of this number.
    Property(u32),
}

/// A path as positions: which initial state, then which successor of each state.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    pub positions: Vec<u32>,
}

impl Trace {
    /// Steps after the initial state.
    pub fn steps(&self) -> usize {
        self.positions.len().saturating_sub(1)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    Memory,
    /// The disk budget is used up, or the disk failed with this message.
    Disk(String),
    Time,
    States,
    /// A depth-first search met its depth limit, so states may have been missed.
    Depth,
    /// The strategy does not visit every state, by its nature.
    Lossy,
    /// The store forgets so much that the search goes round in circles.
    Redundancy,
    Interrupted,
}

impl From<GaveUp> for Why {
    fn from(why: GaveUp) -> Why {
        match why {
            GaveUp::Stopped => Why::Interrupted,
            GaveUp::Memory => Why::Memory,
        }
    }
}

impl From<Shortage> for Why {
    fn from(error: Shortage) -> Why {
        match error {
            Shortage::Memory => Why::Memory,
            Shortage::Disk(error) => error.into(),
        }
    }
}

impl From<Unloaded> for Why {
    fn from(error: Unloaded) -> Why {
        match error {
            Unloaded::Memory => Why::Memory,
            Unloaded::Disk(error) => error.into(),
            Unloaded::Damaged(what) => Why::Disk(what),
        }
    }
}

impl From<SpillError> for Why {
    fn from(error: SpillError) -> Why {
        match error {
            SpillError::Full => Why::Disk("the disk budget is used up".into()),
            SpillError::Io(error) => Why::Disk(error.to_string()),
            SpillError::Damaged => Why::Disk("what was read back is not what was written: a checksum is wrong".into()),
        }
    }
}
