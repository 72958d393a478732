//! Which state leaves a full cache: a rule remembers one byte of each state, from which comes a cost, and the lowest
//! cost leaves first.
//!
//! `LRU MRU LFU MFU` are the rules of Mateescu and Wijs (TACAS 2009), `O I OI SC` those of Pelánek et al. (2008), `kind`
//! the type-oriented rule of Godefroid et al. (1992), `RND` everybody's. `SC` needs no pass over the cache when its
//! k doubles: a depth d has d mod k = k-1 for k = 2, 4, … 2^j exactly if its lowest j bits are ones, so the
//! number of trailing ones is the cost and k is implied by the lowest cost held.

use super::Note;
use super::clock::Moment;
use std::fmt;
use std::str::FromStr;

/// A rule of replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    LeastRecent,
    MostRecent,
    LeastFrequent,
    MostFrequent,
    Random,
    OutDegree,
    Visits,
    OutDegreeAndVisits,
    Stratified,
    Kind,
}

/// Rules, their names, and who leaves first.
const NAMES: [(Rule, &str, &str); 10] = [
    (Rule::LeastRecent, "LRU", "what was not met for the longest time"),
    (Rule::MostRecent, "MRU", "what was met last"),
    (Rule::LeastFrequent, "LFU", "what was met least often"),
    (Rule::MostFrequent, "MFU", "what was met most often"),
    (Rule::Random, "RND", "chance decides"),
    (Rule::OutDegree, "O", "what has the fewest successors"),
    (Rule::Visits, "I", "what was reached least often"),
    (Rule::OutDegreeAndVisits, "OI", "the smallest sum of successors and visits"),
    (Rule::Stratified, "SC", "depths d with d mod k other than k-1; k doubles when none is left"),
    (Rule::Kind, "kind", "what the most trivial kind of step led to"),
];

/// Where successors count, what waits to be expanded has at least this cost, and leaves last.
const WAITING: u8 = 128;

impl Rule {
    pub const ALL: [Rule; 10] = [
        Rule::LeastRecent,
        Rule::MostRecent,
        Rule::LeastFrequent,
        Rule::MostFrequent,
        Rule::Random,
        Rule::OutDegree,
        Rule::Visits,
        Rule::OutDegreeAndVisits,
        Rule::Stratified,
        Rule::Kind,
    ];

    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Which states leave first, in words.
    pub fn meaning(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> &'static (Rule, &'static str, &'static str) {
        NAMES.iter().find(|row| row.0 == self).expect("every rule has a row")
    }

    /// What is remembered of a state that is met for the first time.
    #[inline]
    pub(super) fn found(self, note: Note, now: Moment) -> u8 {
        match self {
            Rule::LeastRecent | Rule::MostRecent => now.time,
            Rule::LeastFrequent | Rule::MostFrequent | Rule::Visits => 0,
            Rule::Random => now.chance,
            Rule::OutDegree | Rule::OutDegreeAndVisits => WAITING,
            Rule::Stratified => note.depth.trailing_ones() as u8,
            Rule::Kind => note.kind,
        }
    }

    /// What is remembered when the state is met again.
    #[inline]
    pub(super) fn met(self, memory: u8, note: Note, now: Moment) -> u8 {
        match self {
            Rule::LeastRecent | Rule::MostRecent => now.time,
            Rule::LeastFrequent | Rule::MostFrequent | Rule::Visits => memory.saturating_add(1),
            Rule::OutDegreeAndVisits if memory == WAITING - 1 => memory,
            Rule::OutDegreeAndVisits => memory.saturating_add(1),
            Rule::Kind => memory.min(note.kind),
            Rule::Random | Rule::OutDegree | Rule::Stratified => memory,
        }
    }

    /// What is remembered when the state has come into a cache with this rule.
    #[inline]
    pub(super) fn entered(self, memory: u8, now: Moment) -> u8 {
        if matches!(self, Rule::LeastRecent | Rule::MostRecent) { now.time } else { memory }
    }

    /// What is remembered when so many successors have been seen.
    #[inline]
    pub(super) fn expanded(self, memory: u8, successors: usize) -> u8 {
        if !self.counts_successors() || memory < WAITING {
            return memory;
        }
        // Of a state that waits, meetings are remembered.
        (successors + (memory - WAITING) as usize).min(WAITING as usize - 1) as u8
    }

    /// The cost of a state.
    #[inline]
    pub(super) fn cost(self, memory: u8, now: Moment) -> u8 {
        match self {
            // Times wrap round; the oldest is the one just ahead of now.
            Rule::LeastRecent => memory.wrapping_sub(now.time).wrapping_sub(1),
            Rule::MostRecent => now.time.wrapping_sub(memory),
            Rule::MostFrequent | Rule::Kind => u8::MAX - memory,
            _ => memory,
        }
    }

    /// Among how many the lowest cost is looked for. The criterion of `SC` is so coarse, and its rare high costs are worth so
    /// much, that a hasty choice shows in caches that are almost too small; for the others it does not.
    pub(super) fn looks(self) -> usize {
        if self == Rule::Stratified { 64 } else { 16 }
    }

    /// Must the cache be told how many successors a state has?
    pub(super) fn counts_successors(self) -> bool {
        matches!(self, Rule::OutDegree | Rule::OutDegreeAndVisits)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Rule, String> {
        let wanted = text.trim();
        let wanted = if wanted.eq_ignore_ascii_case("RAND") { "RND" } else { wanted };
        match NAMES.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(wanted)) {
            Some((rule, _, _)) => Ok(*rule),
            None => Err(format!(
                "there is no replacement rule `{wanted}`; there are {}",
                Rule::ALL.map(Rule::name).join(" ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_name() {
        for rule in Rule::ALL {
            assert_eq!(rule.name().parse(), Ok(rule));
            assert_eq!(rule.to_string().to_lowercase().parse(), Ok(rule));
        }
        assert_eq!("rand".parse(), Ok(Rule::Random));
        assert!("LRV".parse::<Rule>().unwrap_err().contains("LRU MRU"));
    }

    #[test]
    fn strata_leave_in_the_order_of_the_paper() {
        // The paper's loop: erase depths with d mod k other than k-1, double k when there are none.
        let mut held: Vec<u32> = (0..64).collect();
        let (mut k, mut last) = (2, 0);
        while !held.is_empty() && k <= 64 {
            match held.iter().position(|depth| depth % k != k - 1) {
                Some(position) => {
                    let depth = held.remove(position);
                    let now = Moment { time: 0, chance: 0 };
                    let cost = Rule::Stratified.cost(Rule::Stratified.found(Note { depth, kind: 0 }, now), now);
                    assert!(cost >= last, "depth {depth} leaves too late");
                    last = cost;
                }
                None => k *= 2,
            }
        }
        assert_eq!(held, [63]);
    }

    #[test]
    fn counts_end_where_the_byte_does() {
        let (note, mut now) = (Note { depth: u32::MAX, kind: 3 }, Moment { time: 250, chance: 9 });
        let cost = |rule: Rule, meetings: usize, successors: Option<usize>, now: Moment| {
            let first = rule.found(note, now);
            let met = (0..meetings).fold(first, |memory, _| rule.met(memory, note, now));
            rule.cost(successors.map_or(met, |count| rule.expanded(met, count)), now)
        };
        assert_eq!((cost(Rule::Visits, 1000, None, now), cost(Rule::MostFrequent, 1000, None, now)), (255, 0));
        assert_eq!(cost(Rule::Stratified, 0, None, now), 32);
        for rule in [Rule::OutDegree, Rule::OutDegreeAndVisits] {
            assert!(cost(rule, 0, None, now) > cost(rule, 1000, Some(1000), now), "{rule}");
            assert!(cost(rule, 3, Some(7), now) > cost(rule, 3, Some(6), now), "{rule}");
        }
        assert_eq!((cost(Rule::OutDegree, 3, Some(7), now), cost(Rule::OutDegreeAndVisits, 3, Some(7), now)), (7, 10));
        // Times wrap round.
        let old = Rule::LeastRecent.found(note, now);
        now.time = now.time.wrapping_add(100);
        assert!(Rule::LeastRecent.cost(old, now) < Rule::LeastRecent.cost(now.time, now));
        assert!(Rule::MostRecent.cost(old, now) > Rule::MostRecent.cost(now.time, now));
    }
}
