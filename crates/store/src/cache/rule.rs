//! Which state leaves a full cache: every rule is a cost, and the lowest cost leaves first.
//!
//! A cost is 64 bits. Unless time itself is the criterion, the criterion is in the upper half and the time
//! of the last change in the lower, so no two costs are equal and a run can be repeated. `LRU MRU LFU MFU` are
//! the rules of Mateescu and Wijs (TACAS 2009), `O I OI SC` those of Pelánek et al. (2008), `kind` the
//! type-oriented rule of Godefroid et al. (1992), `RND` everybody's. `SC` needs no pass over the cache when its
//! k doubles: a depth d has d mod k = k-1 for k = 2, 4, … 2^j exactly if its lowest j bits are ones, so the
//! number of trailing ones is the cost and k is implied by the lowest cost held.

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

/// A successor count that is not known yet: such states wait to be expanded, and leave last.
pub(super) const UNKNOWN_DEGREE: u32 = 0xFFFF;

/// The lowest cost, where it is a byte, of a state that waits to be expanded.
pub(super) const WAITING: u8 = 128;

/// What a cost is computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub clock: u64,
    pub random: u32,
    /// Times the state was met, the first included.
    pub visits: u32,
    pub degree: u32,
    pub depth: u32,
    pub kind: u32,
}

/// What happened to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Met,
    Expanded,
}

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

    pub(super) fn cost(self, facts: &Facts) -> u64 {
        let by = |criterion: u32| (criterion as u64) << 32 | facts.clock & u32::MAX as u64;
        match self {
            Rule::LeastRecent => facts.clock,
            Rule::MostRecent => u64::MAX - facts.clock,
            Rule::LeastFrequent | Rule::Visits => by(facts.visits),
            Rule::MostFrequent => by(u32::MAX - facts.visits),
            Rule::Random => by(facts.random),
            Rule::OutDegree => by(facts.degree),
            Rule::OutDegreeAndVisits => by(facts.degree + facts.visits),
            Rule::Stratified => by(facts.depth.trailing_ones()),
            Rule::Kind => by(u32::MAX - facts.kind),
        }
    }

    /// The cost in a byte; `clock` is a time of eight bits.
    pub(super) fn short_cost(self, facts: &Facts) -> u8 {
        let byte = |criterion: u32| criterion.min(u8::MAX as u32) as u8;
        match self {
            Rule::LeastRecent | Rule::MostRecent => facts.clock as u8,
            Rule::LeastFrequent | Rule::Visits => byte(facts.visits),
            Rule::MostFrequent => u8::MAX - byte(facts.visits),
            Rule::Random => facts.random as u8,
            // Visits to a state that waits are counted above every state that was expanded.
            Rule::OutDegree | Rule::OutDegreeAndVisits if facts.degree == UNKNOWN_DEGREE => {
                WAITING + byte(facts.visits)
            }
            Rule::OutDegree => byte(facts.degree).min(WAITING - 1),
            Rule::OutDegreeAndVisits => byte(facts.degree + facts.visits).min(WAITING - 1),
            Rule::Stratified => byte(facts.depth.trailing_ones()),
            Rule::Kind => u8::MAX - byte(facts.kind),
        }
    }

    /// Does the event change the cost?
    pub(super) fn heeds(self, event: Event) -> bool {
        match self {
            Rule::Random | Rule::Stratified => false,
            Rule::OutDegree => event == Event::Expanded,
            Rule::OutDegreeAndVisits => true,
            _ => event == Event::Met,
        }
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
                    let facts = Facts { clock: 0, random: 0, visits: 1, degree: 0, depth, kind: 0 };
                    let cost = Rule::Stratified.cost(&facts);
                    assert!(cost >= last, "depth {depth} leaves too late");
                    last = cost;
                }
                None => k *= 2,
            }
        }
        assert_eq!(held, [63]);
    }
}
