//! What others say about a model: tables of counts, and checkers that are installed here.
//!
//! `plimsoll compare` compares with both, the benchmark runs the checkers.

pub mod peers;
pub mod table;

/// What is known about the checks of one model. `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub states: Option<u64>,
    pub transitions: Option<u64>,
    /// Levels of breadth-first search, the initial states being the first.
    pub levels: Option<u64>,
    pub deadlocks: Option<u64>,
    /// Deadlocks, failed assertions and steps that go wrong together.
    pub errors: Option<u64>,
    /// The verdicts, as reports name them, that agree.
    pub verdicts: Option<&'static [&'static str]>,
    /// Steps of a shortest trace.
    pub steps: Option<u64>,
}

pub const HOLDS: &[&str] = &["holds"];
pub const DEADLOCK: &[&str] = &["deadlock"];
pub const INVARIANT: &[&str] = &["invariant"];
/// A failed assertion and an error statement are one thing to some checkers.
pub const ERROR: &[&str] = &["error", "assertion"];

impl Expected {
    /// Does the search of the reference end at the first thing that is wrong, so that its counts say nothing?
    pub fn stops(&self) -> bool {
        self.verdicts.is_some_and(|verdicts| verdicts != HOLDS)
    }
}
