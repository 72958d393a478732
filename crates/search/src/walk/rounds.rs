//! How walks go: what is drawn, what is tried, and how rounds differ.

use crate::draw::Draw;

/// Steps of a random walk, if nobody says otherwise.
const WALK_STEPS: u32 = 2_000;
/// Steps around the end of a walk within which everything is tried, and visits that may take.
const LOCAL_STEPS: u32 = 20;
const LOCAL_VISITS: u64 = 5_000;
/// Steps and visits of a member of a swarm; some have less of both.
const SWARM_STEPS: u32 = 10_000;
const SWARM_VISITS: u64 = 100_000;
const SWARM_KINDS: u64 = 4;

/// How many steps are still missing to what is looked for, at a guess.
pub type Guess<'a> = &'a (dyn Fn(&[u32]) -> u32 + Sync);

/// A way to walk.
#[derive(Clone, Copy)]
pub enum Gait<'a> {
    /// Every step is drawn; at the depth limit, or where there is no way on, the next walk begins.
    Random,
    /// Some steps are drawn, then everything nearby is tried.
    Local,
    /// Depth first without visited states.
    Path,
    /// The same, deeper each time: a step at a time, or as far as the guess says.
    Deepen { guess: Option<Guess<'a>> },
    /// Depth first in a random order, over and over.
    Swarm,
}

/// What one round does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// So many states from the start on have one successor, which is drawn.
    pub drawn: u32,
    /// No state further away is expanded.
    pub bound: u32,
    pub shuffled: bool,
    /// Is there a table of what was met?
    pub remembers: bool,
    pub visits: u64,
}

impl Gait<'_> {
    /// Are rounds independent of each other?
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Gait::Random | Gait::Local | Gait::Swarm)
    }

    /// Is everything tried that is not cut?
    pub(super) fn is_complete(&self) -> bool {
        !self.is_shared()
    }

    pub(super) fn is_guided(&self) -> bool {
        matches!(self, Gait::Deepen { guess: Some(_) })
    }

    /// Does it remember states that are not on the path?
    pub fn remembers(&self) -> bool {
        matches!(self, Gait::Local | Gait::Swarm)
    }

    pub(super) fn missing(&self, state: &[u32]) -> u32 {
        match self {
            Gait::Deepen { guess: Some(guess) } => guess(state),
            _ => 0,
        }
    }

    /// The bound of the first round.
    pub(super) fn first_bound(&self, limit: Option<u32>) -> u32 {
        match self {
            Gait::Random | Gait::Local => limit.unwrap_or(WALK_STEPS),
            Gait::Swarm => limit.unwrap_or(SWARM_STEPS),
            Gait::Path => limit.unwrap_or(u32::MAX),
            Gait::Deepen { .. } => 0,
        }
    }

    /// Is a round that was cut at this bound the last one?
    pub(super) fn ends_at(&self, bound: u32, limit: Option<u32>) -> bool {
        match self {
            Gait::Random | Gait::Local | Gait::Swarm => false,
            Gait::Path => true,
            Gait::Deepen { .. } => limit.is_some_and(|limit| bound >= limit),
        }
    }

    pub(super) fn round(&self, number: u64, bound: u32, draw: &mut Draw) -> Round {
        let all = Round { bound, visits: u64::MAX, ..Round::default() };
        match self {
            Gait::Random => Round { drawn: bound.saturating_add(1), ..all },
            Gait::Local => {
                let drawn = draw.below(bound as usize + 1) as u32;
                let visits = drawn as u64 + LOCAL_VISITS;
                let bound = drawn.saturating_add(LOCAL_STEPS);
                Round { drawn, bound, visits, remembers: true, shuffled: true }
            }
            Gait::Path | Gait::Deepen { .. } => all,
            Gait::Swarm => {
                let part = 1 + number % SWARM_KINDS;
                let (bound, visits) = ((bound as u64 / part).max(1) as u32, SWARM_VISITS * part);
                Round { drawn: 0, bound, visits, remembers: true, shuffled: true }
            }
        }
    }
}
