//! How many states are there? A guess from how the levels of a breadth-first search grow.
//!
//! At first levels grow like a power of their number, and that tells nothing about where it ends: a search that has seen a hundredth of its states
//! looks like one that has seen a fifth. Then they grow more slowly, and shrink, and the logarithm of the ratio of neighbouring stretches of
//! levels falls about along a line. Where the last four eighths of the levels show such a line, and it has come down far enough, it is
//! followed to its end. What is left of that by experience makes the interval; everywhere else nobody knows, and nothing is said.
//!
//! The constants come from the growth of models above a million states; `docs/results.md` says of how many, and how often they are right there.

use crate::size::show_count;
use plimsoll_search::Stats;
use serde::Serialize;
use std::fmt;

/// Fewer levels, or states, tell nothing.
const LEAST_POINTS: usize = 8;
const LEAST_STATES: u64 = 300_000;
/// Levels are looked at in stretches of this part of those there are.
const PARTS: usize = 8;
/// The logarithm of the growth from stretch to stretch must have come down to this.
const MOST_GROWTH: f64 = 0.4;
/// By how much it may change from one stretch to the next if it is to count as a line; and what is believed of the slope.
const LEAST_BEND: f64 = -0.5;
const MOST_BEND: f64 = 0.05;
const SLOPES: (f64, f64) = (-0.4, -0.15);
/// What there is of the states that the line promises: at least, and at most where levels shrink, and where they still grow.
const AT_LEAST: f64 = 0.3;
const AT_MOST: (f64, f64) = (5.0, 15.0);
/// The growth from which on the last counts.
const STILL_GROWING: f64 = 0.2;
/// While levels grow, there are more than the line promises: so many times as many for each unit of growth.
const MORE_PER_GROWTH: f64 = 6.7;
/// Stretches that are followed.
const MOST_STRETCHES: usize = 200;

/// An interval, and what is likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    pub low: u64,
    pub likely: u64,
    pub high: u64,
}

impl Estimate {
    pub fn exactly(states: u64) -> Estimate {
        Estimate { low: states, likely: states, high: states }
    }

    /// What share of them so many are, from and to.
    fn share(&self, states: u64) -> [f64; 2] {
        [self.high, self.low].map(|all| (states as f64 / all.max(1) as f64).min(1.0))
    }

    /// Seconds until all are found, from and to, if so many were found and so many are found in a second.
    pub fn seconds_left(&self, states: u64, rate: f64) -> [f64; 2] {
        [self.low, self.high].map(|all| all.saturating_sub(states) as f64 / rate.max(1.0))
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} to {}", show_count(self.low), show_count(self.high))
    }
}

/// Where a search ended before it had visited everything: how many states there may be, and what share of them it has seen, from and to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Coverage {
    pub estimated_states: Option<Estimate>,
    pub estimated_share: Option<[f64; 2]>,
}

impl Coverage {
    /// Says nothing unless it `is_open`, what is left.
    pub fn of(stats: &Stats, is_open: bool) -> Coverage {
        let estimated_states = states(stats).filter(|_| is_open);
        let estimated_share = estimated_states.map(|estimate| estimate.share(stats.distinct));
        Coverage { estimated_states, estimated_share }
    }
}

/// How many states there are, at a guess. Whoever visits states twice, or not level by level, learns nothing.
pub fn states(stats: &Stats) -> Option<Estimate> {
    let sizes = &stats.level_sizes;
    // Of the level that is being built nobody knows how wide it will be.
    let complete = (stats.levels / sizes.levels_each) as usize;
    let mut found = 0;
    let points: Vec<f64> = sizes
        .states
        .iter()
        .take(complete)
        .map(|states| {
            found += states;
            found as f64
        })
        .collect();
    if points.len() < LEAST_POINTS || found < LEAST_STATES || stats.forgotten > 0 {
        return None;
    }
    let ends = [0, 1, 2, 3, 4].map(|part| states_up_to(&points, 1.0 - part as f64 / PARTS as f64));
    let widths = [0, 1, 2, 3].map(|part| (ends[part] - ends[part + 1]).max(1.0));
    let [now, before, earlier] = [0, 1, 2].map(|part| (widths[part] / widths[part + 1]).ln());
    let is_line = |bend: f64| LEAST_BEND < bend && bend <= MOST_BEND;
    if now >= MOST_GROWTH || !is_line(now - before) || !is_line(before - earlier) {
        return None;
    }
    let promised = follow(widths[0], now, (now - before).clamp(SLOPES.0, SLOPES.1));
    let growing = (now / STILL_GROWING).clamp(0.0, 1.0);
    let all = |times: f64| (found as f64 + times * promised).max(stats.states as f64) as u64;
    Some(Estimate {
        low: all(AT_LEAST),
        likely: all(1.0 + MORE_PER_GROWTH * now.max(0.0)),
        high: all(AT_MOST.0 + (AT_MOST.1 - AT_MOST.0) * growing),
    })
}

/// States on the stretches to come, if the logarithm of their growth goes on falling by `slope`.
fn follow(mut width: f64, mut growth: f64, slope: f64) -> f64 {
    let mut found = 0.0;
    for _ in 0..MOST_STRETCHES {
        growth += slope;
        width *= growth.exp();
        found += width;
        if width < 1.0 {
            break;
        }
    }
    found
}

/// States on the first so many levels, as a share of those there are; between two points it is a line.
fn states_up_to(points: &[f64], share: f64) -> f64 {
    let count = points.len() as f64 * share;
    let (whole, rest) = (count as usize, count.fract());
    let at = |number: usize| if number == 0 { 0.0 } else { points[number.min(points.len()) - 1] };
    at(whole) * (1.0 - rest) + at(whole + 1) * rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_search::LevelSizes;

    /// A search whose levels have these widths, cut after some of them.
    fn search(widths: impl IntoIterator<Item = f64>) -> Stats {
        let states: Vec<u64> = widths.into_iter().map(|width| width.round().max(1.0) as u64).collect();
        let (found, levels) = (states.iter().sum::<u64>(), states.len() as u32);
        // One state of the next level.
        let states = states.into_iter().chain([1]).collect();
        let level_sizes = LevelSizes { levels_each: 1, states };
        Stats { states: found + 1, distinct: found + 1, levels, level_sizes, ..Stats::default() }
    }

    fn bell(level: usize) -> f64 {
        3e5 * (-((level as f64 - 50.0) / 16.0).powi(2)).exp()
    }

    #[test]
    fn the_end_of_a_bell_is_known_once_it_bends() {
        let whole = (0..120).map(|level| bell(level).round().max(1.0) as u64).sum::<u64>();
        let mut known = 0;
        for levels in 30..110 {
            let stats = search((0..levels).map(bell));
            let Some(estimate) = states(&stats) else { continue };
            known += 1;
            assert!(estimate.low <= whole && whole <= estimate.high, "{levels} levels: {estimate:?} of {whole}");
            let [from, to] = Coverage::of(&stats, true).estimated_share.unwrap();
            let share = stats.states as f64 / whole as f64;
            assert!(from <= share && share <= to && to <= 1.0, "{levels} levels: {share} in {from} to {to}");
        }
        assert!(known > 15, "known for {known} of 80");
        assert_eq!(states(&search((0..30).map(bell))), None, "it grows and grows");
        assert!(Coverage::of(&search((0..90).map(bell)), false).estimated_states.is_none(), "nothing is left");
    }

    #[test]
    fn nothing_is_said_where_nothing_is_known() {
        assert_eq!(states(&Stats::default()), None);
        assert_eq!(states(&search((0..60).map(|level| 1.3f64.powi(level)))), None, "growth that does not slow down");
        let jumps = (0..60).map(|level| if level / 7 % 2 == 0 { 100.0 } else { 1e5 });
        assert_eq!(states(&search(jumps)), None, "no line");
        let small = (0..80).map(|level| bell(level) / 1000.0);
        assert_eq!(states(&search(small)), None, "too few states");
        let twice = Stats { forgotten: 1, ..search((0..80).map(bell)) };
        assert_eq!(states(&twice), None, "states were visited twice");
    }

    #[test]
    fn what_is_left_takes_its_time() {
        let estimate = Estimate { low: 100, likely: 200, high: 300 };
        assert_eq!(estimate.seconds_left(90, 10.0), [1.0, 21.0]);
        assert_eq!(estimate.seconds_left(150, 0.0), [0.0, 150.0]);
        assert_eq!(Estimate::exactly(7).share(7), [1.0, 1.0]);
    }
}
