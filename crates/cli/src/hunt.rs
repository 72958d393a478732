//! Strategies that look for something rather than at everything: walks, and searches that are guided. What they promise is said
//! here, and where they lead is decided in `plimsoll_search`.

use crate::plan::Plan;
use plimsoll_ir::{Property, System};
use plimsoll_model::{Guide, Model};
use plimsoll_search::{
    Control, Gait, GuidedRoom, Lead, Ordering, Outcome, Stats, Verdict, WalkRoom, Why, guided, sma, walk,
};
use plimsoll_store::{Budget, Chain, Full};

/// Visits after which a search that need not end is given up, if nobody says otherwise.
pub const DEFAULT_VISITS: u64 = 10_000_000;

/// Part and whole: what fingerprints may take of the memory that paths need too.
const TABLE_SHARE: (u64, u64) = (3, 4);
/// Where a tree may take all the rest, a path has this part of the memory.
const PATH_PART: u64 = 16;
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
    Best,
    AStar,
    Ida,
    Sma,
    /// So many states of each level.
    Beam(u64),
}

/// All of them, by name.
const NAMES: [(&str, Hunt); 9] = [
    ("walk", Hunt::Walk),
    ("walk+local", Hunt::Local),
    ("swarm", Hunt::Swarm),
    ("path", Hunt::Path),
    ("deepen", Hunt::Deepen),
    ("best", Hunt::Best),
    ("astar", Hunt::AStar),
    ("ida", Hunt::Ida),
    ("sma", Hunt::Sma),
];
/// States of a level of a beam, if nobody says how many.
const BEAM_STATES: u64 = 1_000;

impl Hunt {
    pub fn parse(name: &str) -> Option<Hunt> {
        let beam = || match name.split_once(':') {
            None => (name == "beam").then_some(Hunt::Beam(BEAM_STATES)),
            Some(("beam", states)) => states.parse().ok().filter(|&states| states > 0).map(Hunt::Beam),
            Some(_) => None,
        };
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, hunt)| *hunt).or_else(beam)
    }

    pub fn name(self) -> String {
        match self {
            Hunt::Beam(states) => format!("beam:{states}"),
            _ => NAMES.iter().find(|(_, hunt)| *hunt == self).map_or(String::new(), |(name, _)| (*name).into()),
        }
    }

    /// Does it end on every finite model without a limit?
    pub fn ends(self) -> bool {
        match self {
            Hunt::Path | Hunt::Deepen | Hunt::Best | Hunt::AStar | Hunt::Ida | Hunt::Beam(_) => true,
            Hunt::Walk | Hunt::Local | Hunt::Swarm | Hunt::Sma => false,
        }
    }

    /// If it ends, was every reachable state visited?
    pub fn is_complete(self) -> bool {
        matches!(self, Hunt::Path | Hunt::Deepen | Hunt::Best | Hunt::AStar | Hunt::Ida | Hunt::Sma)
    }

    /// Is the memory for states bounded whatever the model? A path may be as long as there are states.
    pub fn is_bounded(self) -> bool {
        !self.ends()
    }

    /// Does it make use of the memory it is given? A mere walk needs none.
    pub fn is_aware(self) -> bool {
        matches!(self, Hunt::Local | Hunt::Swarm | Hunt::Sma)
    }

    /// Can several workers take part?
    pub fn is_shared(self) -> bool {
        matches!(self, Hunt::Walk | Hunt::Local | Hunt::Swarm)
    }

    /// Is what it finds first found by a shortest way, whatever guides it?
    pub fn finds_shortest(self) -> bool {
        self == Hunt::Deepen
    }

    /// Does it ask how far a goal is away? Then, whether the answer must not be too large for a shortest way.
    pub fn asks_the_way(self) -> Option<bool> {
        match self {
            Hunt::Best | Hunt::Beam(_) => Some(false),
            Hunt::AStar | Hunt::Ida | Hunt::Sma => Some(true),
            _ => None,
        }
    }

    /// Does it hold every state it finds?
    fn holds_states(self) -> bool {
        matches!(self, Hunt::Best | Hunt::AStar | Hunt::Beam(_))
    }

    /// Bytes for what it remembers, of a pool of so many.
    pub fn store_bytes(self, pool_bytes: u64) -> u64 {
        if self.holds_states() {
            pool_bytes
        } else if self == Hunt::Sma {
            pool_bytes - pool_bytes / PATH_PART
        } else if self.is_aware() {
            pool_bytes / TABLE_SHARE.1 * TABLE_SHARE.0
        } else {
            0
        }
    }

    fn ordering(self) -> Ordering {
        match self {
            Hunt::AStar => Ordering::AStar,
            Hunt::Beam(states) => Ordering::Beam(states),
            _ => Ordering::Best,
        }
    }
}

/// Who leads a hunt through a system: the cost that was given, or what the goals tell. Says what that means for traces.
pub fn guide(hunt: Hunt, system: Option<&System>, cost: Option<&Property>) -> (Option<Guide>, Option<&'static str>) {
    let Some(never_too_much) = hunt.asks_the_way() else { return (None, None) };
    let guide = system.and_then(|system| match cost {
        Some(cost) => Some(Guide::by_cost(system, cost)),
        None => Guide::to_goals(system, never_too_much),
    });
    let note = match &guide {
        None if hunt == Hunt::Ida => {
            "there is no goal to be guided to, so it goes a step deeper each time; the trace is shortest"
        }
        None => "there is no goal to be guided to (--find, --invariant, --cost): states with few successors come first",
        Some(_) if !never_too_much => return (guide, None),
        Some(guide) if guide.never_too_much() && hunt == Hunt::Sma => {
            "the guess is never too large, so a trace to a goal is a shortest one if there was room for the way"
        }
        Some(guide) if guide.never_too_much() => "the guess is never too large, so a trace to a goal is a shortest one",
        Some(_) if cost.is_some() => {
            "a trace is a shortest one if --cost is never too large and falls by at most one in a step"
        }
        Some(_) => "one step may stand for several, so a trace need not be a shortest one",
    };
    (guide, Some(note))
}

/// Hunts in `model` within `plan`; `budget` is its pool.
pub fn search<M: Model + ?Sized>(
    model: &M,
    hunt: Hunt,
    plan: &Plan,
    budget: &Budget,
    control: &mut Control,
) -> Outcome {
    let guess = plan.guide.as_deref().map(|guide| move |state: &[u32]| guide.guess(state));
    let guess = guess.as_ref().map(|guess| guess as &(dyn Fn(&[u32]) -> u32 + Sync));
    if hunt.holds_states() {
        let store = Chain::new(plan.codec, &model.used_bits(), 0, &budget.grant("store", plan.store_bytes));
        let Ok(mut store) = store.map_err(|Full| Why::Memory) else {
            return Outcome { verdict: Verdict::Unknown(Why::Memory), stats: Stats::default(), complete: false };
        };
        let room = GuidedRoom {
            waiting: budget.grant("waiting states", plan.pool_bytes),
            log: budget.grant("step log", plan.pool_bytes),
        };
        let lead = guess.map_or(Lead::FewSuccessors, Lead::Guess);
        return guided(model, hunt.ordering(), lead, &mut store, &room, control);
    }
    if hunt == Hunt::Sma {
        let lead = guess.map_or(Lead::FewSuccessors, Lead::Guess);
        return sma(model, lead, &budget.grant("tree", plan.store_bytes), control);
    }
    let gait = match hunt {
        Hunt::Local => Gait::Local,
        Hunt::Swarm => Gait::Swarm,
        Hunt::Path => Gait::Path,
        Hunt::Deepen => Gait::Deepen { guess: None },
        Hunt::Ida => Gait::Deepen { guess },
        _ => Gait::Random,
    };
    let own = (plan.memory_bytes / TABLE_PART).min(plan.store_bytes / plan.workers as u64).min(LARGEST_TABLE_BYTES);
    let room = WalkRoom {
        stack: budget.grant("stack", plan.stack_bytes),
        table: budget.grant("fingerprints", plan.store_bytes),
        table_bytes: 1 << own.max(1).ilog2(),
    };
    walk(model, &gait, plan.seed, plan.workers, &room, control)
}
