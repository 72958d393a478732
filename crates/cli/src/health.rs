//! Does forgetting pay? Signs that a search with a cache is about to go round in circles, and what would help
//! (after Godefroid, Holzmann and Pirottin 1992, who watch the stack and the share of matched states).
//!
//! Visits are compared with the estimate of different states, over the whole search and over stretches as long
//! as the cache is large. A stretch that brings hardly anything new is the earliest sign there is.

use crate::estimate::{self, Estimate};
use crate::presets::Strategy;
use crate::size::{show_bytes, show_count};
use plimsoll_search::Stats;

/// Visits per new state in a stretch at which the search is said to blow up.
const BLOW_UP: f64 = 4.0;
/// Visits per state above which the report says what would help.
const COSTLY: f64 = 2.0;
/// Shorter stretches tell nothing.
const LEAST_VISITS: u64 = 20_000;
/// If more successors than this were known, sleep sets have something to save.
const MANY_MATCHED: f64 = 0.6;
/// A state in the compressed store takes about as much.
const BYTES_PER_STATE: u64 = 10;

/// Visits between two looks at the search.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    visits: u64,
    new_states: u64,
    /// Breadth first, from which level to which; zero depth first.
    levels: (u32, u32),
}

impl Stretch {
    fn redundancy(&self) -> f64 {
        self.visits as f64 / self.new_states.max(1) as f64
    }

    fn place(&self) -> String {
        match self.levels {
            (_, 0) => String::new(),
            (from, to) if from == to => format!(" on level {from}"),
            (from, to) => format!(" on levels {from} to {to}"),
        }
    }
}

/// Watches a search.
#[derive(Debug)]
pub struct Health {
    strategy: Strategy,
    /// States, different states and level at the last look.
    last: (u64, u64, u32),
    worst: Option<Stretch>,
    warned: bool,
    /// How many states there are, as it looked on this level, before any was forgotten.
    expected: Option<Estimate>,
    looked_on: u32,
}

impl Health {
    pub fn new(strategy: &Strategy) -> Health {
        Health { strategy: strategy.clone(), last: (0, 0, 0), worst: None, warned: false, expected: None, looked_on: 0 }
    }

    /// How many states there are, as it looked before any was forgotten.
    pub fn expected(&self) -> Option<Estimate> {
        self.expected
    }

    /// Looks at the counts so far; the first time that the search seems to blow up, says so.
    pub fn watch(&mut self, stats: &Stats) -> Option<String> {
        if stats.levels != self.looked_on && stats.forgotten == 0 {
            self.looked_on = stats.levels;
            self.expected = estimate::states(stats).or(self.expected);
        }
        let (states, distinct, level) = self.last;
        let levels = self.strategy.row.kept_levels();
        if stats.forgotten == 0 || self.strategy.hunt.is_some() || levels.is_some() {
            self.last = (stats.states, stats.distinct, stats.levels);
            return None;
        }
        let visits = stats.states.saturating_sub(states);
        if visits < stats.capacity.max(LEAST_VISITS) {
            return None;
        }
        self.last = (stats.states, stats.distinct, stats.levels);
        let new_states = stats.distinct.saturating_sub(distinct);
        let stretch = Stretch { visits, new_states, levels: (level.min(stats.levels), stats.levels) };
        if self.worst.is_none_or(|worst| worst.redundancy() < stretch.redundancy()) {
            self.worst = Some(stretch);
        }
        if self.warned || stretch.redundancy() < BLOW_UP {
            return None;
        }
        self.warned = true;
        Some(format!(
            "warning: the last {} visits{} brought only about {} new states; {}",
            show_count(visits),
            stretch.place(),
            show_count(new_states),
            self.advice(stats)
        ))
    }

    /// What the numbers tell when the search is over.
    pub fn notes(&self, stats: &Stats) -> Vec<String> {
        let mut notes = Vec::new();
        if stats.forgotten == 0 {
            return notes;
        }
        if self.strategy.row.kept_levels().is_some() {
            notes.push(format!(
                "old levels were given up, so counts are of visits: about {} different states, {:.2} visits each",
                show_count(stats.distinct),
                stats.redundancy()
            ));
            return notes;
        }
        let why = if self.strategy.hunt.is_some() { "no state is held for long" } else { "states were given up" };
        notes.push(format!(
            "{why}, so counts are of visits: about {} different states, {:.2} visits each",
            show_count(stats.distinct),
            stats.redundancy()
        ));
        if self.strategy.hunt.is_some() {
            return notes;
        }
        if let Some(worst) = self.worst.filter(|worst| worst.redundancy() > COSTLY.max(stats.redundancy() * 1.5)) {
            notes.push(format!("worst stretch: {:.1} visits per new state{}", worst.redundancy(), worst.place()));
        }
        if stats.redundancy() > COSTLY || self.warned {
            notes.push(self.advice(stats));
        }
        notes
    }

    /// What would help.
    fn advice(&self, stats: &Stats) -> String {
        let path = stats.depth as u64 + 1;
        let depth_first = stats.levels == 0;
        let rule = self.strategy.row.alone();
        if self.strategy.row.climbs() {
            return "more --memory would save visits, and --disk all of them".into();
        }
        let mut advice = if self.strategy.row.has_levels() {
            "more levels, or shorter periods, would save visits".into()
        } else if depth_first && path * 2 > stats.capacity {
            let capacity = show_count(stats.capacity);
            format!(
                "the cache of {capacity} states is hardly larger than the longest path ({path}): try a larger --cache-size"
            )
        } else if depth_first && self.strategy.sleep.is_none() && stats.matched_share() > MANY_MATCHED {
            "most successors were known already: sleep sets (--strategy sleep+cache:LFU) may save many visits".into()
        } else if !depth_first && rule.is_some_and(|rule| rule.name() != "SC") {
            "breadth first --cache SC is better on most models; a larger --cache-size would help too".into()
        } else {
            "a larger --cache-size would save visits".into()
        };
        let full = stats.distinct.saturating_mul(BYTES_PER_STATE);
        advice += &format!(", or --strategy full: it takes about {} for as many states", show_bytes(full));
        advice
    }
}

/// The signs in a few words, for a line that is rewritten all the time; nothing where every state is held.
pub fn signs(stats: &Stats) -> String {
    if stats.capacity == 0 {
        return String::new();
    }
    let mut signs = format!(", {:.0} % matched", stats.matched_share() * 100.0);
    if stats.levels == 0 {
        signs += &format!(", path {:.0} % of the cache", path_share(stats.depth, stats.capacity) * 100.0);
    }
    if stats.forgotten > 0 {
        signs += &format!(", {:.2} visits each", stats.redundancy());
    }
    signs
}

/// The longest path of a depth-first search as a share of the cache, which must hold it.
pub fn path_share(depth: u32, capacity: u64) -> f64 {
    (depth as u64 + 1) as f64 / capacity.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(strategy: &str) -> Health {
        Health::new(&Strategy::parse(Some(strategy), None, None, None).unwrap())
    }

    fn stats(states: u64, distinct: u64, levels: u32) -> Stats {
        Stats { states, distinct, levels, forgotten: 1, capacity: 30_000, held: 30_000, ..Stats::default() }
    }

    #[test]
    fn a_blow_up_is_said_once_and_early() {
        let mut health = health("cache:LRU");
        assert_eq!(health.watch(&Stats { forgotten: 0, ..stats(50_000, 50_000, 9) }), None);
        assert_eq!(health.watch(&stats(60_000, 60_000, 10)), None, "too short a stretch");
        assert_eq!(health.watch(&stats(90_000, 85_000, 12)), None, "nearly all new");
        let warning = health.watch(&stats(130_000, 87_000, 15)).unwrap();
        assert!(warning.contains("on levels 12 to 15") && warning.contains("2,000 new states"), "{warning}");
        assert!(warning.contains("--cache SC") && warning.contains("--strategy full"), "{warning}");
        assert_eq!(health.watch(&stats(190_000, 87_000, 20)), None, "said already");
        let notes = health.notes(&stats(190_000, 87_000, 20)).join("\n");
        assert!(notes.contains("2.18 visits each") && notes.contains("worst stretch: 60000.0 visits"), "{notes}");
    }

    #[test]
    fn advice_fits_the_search() {
        let depth_first = |depth: u32, matched: u64| Stats { depth, matched, ..stats(100_000, 20_000, 0) };
        let advice = |strategy: &str, stats: &Stats| health(strategy).notes(stats).join("\n");
        assert!(advice("cache:LRU", &depth_first(20_000, 0)).contains("longest path (20001)"));
        assert!(advice("cache:LRU", &depth_first(10, 500_000)).contains("--strategy sleep"));
        assert!(advice("sleep", &depth_first(10, 500_000)).contains("larger --cache-size"));
        assert!(advice("frontier-safety-net", &stats(100_000, 20_000, 7)).contains("more levels"));
        assert!(advice("cache:SC", &stats(100_000, 20_000, 7)).contains("larger --cache-size"));
        assert!(health("cache:SC").notes(&Stats { forgotten: 0, ..stats(1000, 1000, 7) }).is_empty());
    }

    #[test]
    fn signs_are_for_caches_only() {
        assert_eq!(signs(&Stats::default()), "");
        let shown = signs(&Stats { depth: 2_999, matched: 100_000, ..stats(100_000, 50_000, 0) });
        assert_eq!(shown, ", 50 % matched, path 10 % of the cache, 2.00 visits each");
    }
}
