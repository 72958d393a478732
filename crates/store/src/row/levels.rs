//! Streams of caches of levels, written as in the paper (Mateescu and Wijs, TACAS 2009): `snapshots:(c2,LLNR,5)(2,LFU,10)`.
//!
//! A cache is a period, a rule and how many levels it holds. A period `c2` takes every second level that is offered; `2`
//! grows by two each time. `pebble:(c2,LLNR,5)` puts another cache of the same kind behind the last one when that is full,
//! without end. `frontier:5` holds the last five levels. The backtracking set comes with all of them, unless `-BT` follows; `BT`, as in
//! the paper, asks for it. Caches alone, `(c2,LLNR,5)(2,LFU,10)`, are `snapshots` too.
//! How a search with them goes is written in [`crate::snapshots`].
//!
//! A bounded number of levels that are taken at constant intervals catches no cycle that is longer than that: the search would
//! end only because of its anchors, after longer than anybody waits. Such rows are refused, but for `frontier`, which is
//! this by definition and carries a limit on redundancy.

use super::{Admit, Medium, Replace, Room, Row, Tier, Unit};
use std::fmt;

/// Who leaves a full cache of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelRule {
    LowestLevel,
    LeastRecent,
    MostRecent,
    LeastFrequent,
    MostFrequent,
    Random,
    Smallest,
    Largest,
    /// Those between two that are twice as far apart, and so on.
    Stratified,
}

const NAMES: [(LevelRule, &str, &str); 9] = [
    (LevelRule::LowestLevel, "LLNR", "the lowest level"),
    (LevelRule::LeastRecent, "LRU", "the level of which no state was met for the longest time"),
    (LevelRule::MostRecent, "MRU", "the level of which a state was met last"),
    (LevelRule::LeastFrequent, "LFU", "the level of which states were met least often"),
    (LevelRule::MostFrequent, "MFU", "the level of which states were met most often"),
    (LevelRule::Random, "RND", "chance decides"),
    (LevelRule::Smallest, "SMALL", "the level with the fewest states"),
    (LevelRule::Largest, "LARGE", "the level with the most states"),
    (
        LevelRule::Stratified,
        "SC",
        "every second level; when none of those is left, every second of the others, and so on",
    ),
];

/// How streams are written, and what they are if nothing more is said.
pub const STREAM_FORMS: &str = "write `snapshots:(c2,LLNR,5)(2,LFU,10)`: caches of a period (c2: constant, 2: growing), a \
                                rule and a number of levels; or `frontier:5`, `frontier-safety-net`, \
                                `pebble:(c2,LLNR,5)`; `-BT` behind it leaves out the backtracking set";
const SAFETY_NET: &str = "(c2,LLNR,5)(2,LFU,10)";
const PEBBLE: &str = "(c2,LLNR,5)";
const FRONTIER_LEVELS: u32 = 5;
/// Levels that stay longest when `auto` holds levels.
const NEWEST_LEVELS: u32 = 3;
/// No backtracking set, and one.
const WITHOUT: &str = "-BT";
const WITH: [&str; 2] = ["+BT", "BT"];
/// Every state has a number for the levels that it is in, and those are few.
const MOST_LEVELS: u32 = 1000;
const MOST_PERIOD: u32 = 1 << 20;

impl LevelRule {
    pub const ALL: [LevelRule; 9] = [
        LevelRule::LowestLevel,
        LevelRule::LeastRecent,
        LevelRule::MostRecent,
        LevelRule::LeastFrequent,
        LevelRule::MostFrequent,
        LevelRule::Random,
        LevelRule::Smallest,
        LevelRule::Largest,
        LevelRule::Stratified,
    ];

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|row| row.0 == self).expect("every rule has a row").1
    }

    /// Which level leaves first, in words.
    pub fn meaning(self) -> &'static str {
        NAMES.iter().find(|row| row.0 == self).expect("every rule has a row").2
    }
}

impl Row {
    /// Are levels held as wholes, from the first state on?
    pub fn has_levels(&self) -> bool {
        self.tiers[0].unit == Unit::Level
    }

    /// Are states held as long as there is memory, and whole levels from then on?
    pub fn climbs(&self) -> bool {
        matches!(self.tiers[..], [Tier { replace: Replace::Nobody, .. }, Tier { unit: Unit::Level, .. }, ..])
    }

    /// The tiers of levels alone.
    pub fn levels(&self) -> Row {
        Row { tiers: self.tiers.iter().filter(|tier| tier.unit == Unit::Level).copied().collect() }
    }

    /// Every state is held. When memory is almost full, what comes then is held by level: the newest levels, and as many of
    /// the others as fit, at distances that grow.
    pub fn auto() -> Row {
        let newest = level_tier(Admit::Every(1), LevelRule::LowestLevel, Room::Levels(NEWEST_LEVELS));
        let others = level_tier(Admit::Every(1), LevelRule::Stratified, Room::Levels(MOST_LEVELS));
        Row { tiers: vec![Row::full().tiers[0], newest, others] }
    }

    /// Is there a backtracking set?
    pub fn backtracks(&self) -> bool {
        self.tiers.iter().any(|tier| tier.admit == Admit::Backtracked)
    }

    /// Where levels are held: are cycles caught however long they are?
    pub fn catches_cycles(&self) -> bool {
        let catches = |tier: &Tier| {
            matches!((tier.admit, tier.room), (Admit::Growing(_), _) | (_, Room::LevelsAgain(_)))
                || tier.replace == Replace::Level(LevelRule::Stratified)
        };
        self.kept_levels().is_some() || self.tiers.iter().any(catches)
    }

    /// Reads a stream; nothing if it does not have the name of one.
    pub(super) fn stream(text: &str) -> Option<Result<Row, String>> {
        let (written, backtracks) = match text.strip_suffix(WITHOUT) {
            Some(written) => (written, false),
            None => (WITH.iter().find_map(|with| text.strip_suffix(with)).unwrap_or(text), true),
        };
        let (name, rest) = match written.split_once(':') {
            _ if written.starts_with('(') => ("snapshots", Some(written)),
            Some((name, rest)) => (name, Some(rest)),
            None => (written, None),
        };
        let caches = match name {
            "snapshots" | "frontier-safety-net" => parse_caches(rest.unwrap_or(SAFETY_NET)),
            "pebble" => parse_caches(rest.unwrap_or(PEBBLE)).and_then(pebble),
            "frontier" => {
                parse_levels(rest.unwrap_or(&FRONTIER_LEVELS.to_string())).map(|levels| vec![frontier(levels)])
            }
            _ => return None,
        };
        let row = caches.and_then(|tiers| {
            let row = Row { tiers };
            match row.catches_cycles() || name == "frontier" {
                true => Ok(row),
                false => Err(row.why_it_need_not_end()),
            }
        });
        let mut row = match row {
            Ok(row) => row,
            Err(error) => return Some(Err(format!("{error}; {STREAM_FORMS}"))),
        };
        if backtracks {
            let (unit, replace, room) = (Unit::State, Replace::Nobody, Room::Rest);
            row.tiers.push(Tier { admit: Admit::Backtracked, unit, replace, room, medium: Medium::Ram });
        }
        Some(Ok(row))
    }

    fn why_it_need_not_end(&self) -> String {
        let (mut caches, mut reach) = (String::new(), 1u64);
        for tier in &self.tiers {
            caches += &in_notation(tier);
            if let (Admit::Every(period), Room::Levels(levels)) = (tier.admit, tier.room) {
                reach = reach.saturating_mul(period as u64).saturating_mul(levels as u64);
            }
        }
        format!(
            "with `{caches}` a search goes round in cycles of more than about {reach} steps for ever, for all periods are \
             constant: put a cache with a growing period behind it, such as `{caches}(2,LFU,10)`"
        )
    }

    pub(super) fn write_stream(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let caches: String = self.tiers.iter().filter(|tier| tier.unit == Unit::Level).map(in_notation).collect();
        match self.tiers[0] {
            Tier { room: Room::LevelsAgain(_), .. } => write!(f, "pebble:{caches}")?,
            Tier { room: Room::Levels(levels), .. } if !self.catches_cycles() => write!(f, "frontier:{levels}")?,
            _ => write!(f, "snapshots:{caches}")?,
        }
        f.write_str(if self.backtracks() { "" } else { WITHOUT })
    }
}

fn level_tier(admit: Admit, rule: LevelRule, room: Room) -> Tier {
    Tier { admit, unit: Unit::Level, replace: Replace::Level(rule), room, medium: Medium::Ram }
}

fn frontier(levels: u32) -> Tier {
    level_tier(Admit::Every(1), LevelRule::LowestLevel, Room::Levels(levels))
}

/// One cache becomes endlessly many.
fn pebble(mut tiers: Vec<Tier>) -> Result<Vec<Tier>, String> {
    let [Tier { admit, room, .. }] = &mut tiers[..] else { return Err("`pebble` repeats one cache".into()) };
    if *admit == Admit::Every(1) {
        return Err("`pebble` with period c1 would hold every level: that is `full`; take c2 or more".into());
    }
    if let Room::Levels(levels) = *room {
        *room = Room::LevelsAgain(levels);
    }
    Ok(tiers)
}

fn parse_caches(text: &str) -> Result<Vec<Tier>, String> {
    let mut tiers = Vec::new();
    let mut left = text.trim();
    while !left.is_empty() {
        let cache = left.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let (cache, rest) = cache.ok_or_else(|| format!("`{left}` is no cache of levels"))?;
        let [period, rule, levels] = cache.split(',').map(str::trim).collect::<Vec<_>>()[..] else {
            return Err(format!("`({cache})` is not a period, a rule and a number of levels"));
        };
        tiers.push(level_tier(parse_period(period)?, parse_rule(rule)?, Room::Levels(parse_levels(levels)?)));
        left = rest.trim_start();
    }
    match tiers.len() {
        0 => Err("there is no cache".into()),
        1..=super::MOST_TIERS => Ok(tiers),
        many => Err(format!("{many} caches are too many, {} are allowed", super::MOST_TIERS)),
    }
}

fn parse_period(text: &str) -> Result<Admit, String> {
    let (number, constant) = text.strip_prefix(['c', 'C']).map_or((text, false), |number| (number, true));
    let period = number.parse().ok().filter(|period| (1..=MOST_PERIOD).contains(period));
    let period = period.ok_or_else(|| format!("`{text}` is no period: there are c1, c2, … and 1, 2, …"))?;
    Ok(if constant { Admit::Every(period) } else { Admit::Growing(period) })
}

fn parse_rule(text: &str) -> Result<LevelRule, String> {
    let rule = NAMES.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(text)).map(|row| row.0);
    let names = || LevelRule::ALL.map(LevelRule::name).join(" ");
    rule.ok_or_else(|| format!("there is no rule `{text}` for levels; there are {}", names()))
}

fn parse_levels(text: &str) -> Result<u32, String> {
    let levels = text.trim().parse().ok().filter(|levels| (1..=MOST_LEVELS).contains(levels));
    levels.ok_or_else(|| format!("`{text}` is no number of levels from 1 to {MOST_LEVELS}"))
}

/// A cache as it is written.
fn in_notation(tier: &Tier) -> String {
    let (Room::Levels(levels) | Room::LevelsAgain(levels)) = tier.room else { return String::new() };
    let Replace::Level(rule) = tier.replace else { return String::new() };
    format!("({},{},{levels})", period_of(tier.admit), rule.name())
}

/// A period as it is written.
pub(super) fn period_of(admit: Admit) -> String {
    match admit {
        Admit::Every(period) => format!("c{period}"),
        Admit::Growing(period) => period.to_string(),
        Admit::All => "all".into(),
        Admit::Backtracked => "backtracked".into(),
        Admit::Powers => "powers of two".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        text.parse().unwrap()
    }

    #[test]
    fn streams_are_printed_as_in_the_paper() {
        for text in [
            "snapshots:(c2,LLNR,5)(2,LFU,10)",
            "snapshots:(c2,LLNR,5)(2,LFU,10)-BT",
            "snapshots:(1,SMALL,1)",
            "snapshots:(c1,RND,1)(c3,MRU,2)(7,LARGE,1000)-BT",
            "pebble:(c2,MFU,5)",
            "pebble:(3,LRU,5)-BT",
            "frontier:5",
            "frontier:1-BT",
        ] {
            assert_eq!(row(text).to_string(), text);
        }
        assert_eq!(row("frontier-safety-net"), row("snapshots:(c2,LLNR,5)(2,LFU,10)"));
        assert_eq!(row("frontier-safety-net-BT"), row("snapshots: (C2, llnr ,5) (2,lfu,10)-BT"));
        assert_eq!((row("pebble"), row("pebble-BT")), (row("pebble:(c2,LLNR,5)"), row("pebble:(c2,LLNR,5)-BT")));
        assert_eq!((row("frontier"), row("frontier-BT")), (row("frontier:5"), row("frontier:5-BT")));
        for text in ["(c2,LLNR,5)(2,LFU,10)", "(c2,LLNR,5)(2,LFU,10) BT", "frontier-safety-net+BT"] {
            assert_eq!(row(text), row("frontier-safety-net"), "{text}");
        }
        assert_eq!(row("(c2,LLNR,5)(2,LFU,10)-BT"), row("frontier-safety-net-BT"));
        let tiers: Vec<String> = row("frontier-safety-net").tiers().iter().map(Tier::to_string).collect();
        assert_eq!(tiers[0], "(c2, level, LLNR, 5 levels, ram)");
        assert_eq!(tiers[2], "(backtracked, state, nobody, budget, ram)");
    }

    #[test]
    fn what_would_not_end_is_refused_with_what_would() {
        let error = "snapshots:(c2,LLNR,5)(c3,LFU,10)".parse::<Row>().unwrap_err();
        assert!(error.contains("300 steps") && error.contains("(c2,LLNR,5)(c3,LFU,10)(2,LFU,10)"), "{error}");
        assert!("snapshots:(c2,LLNR,5)(c3,LFU,10)(2,LFU,10)".parse::<Row>().is_ok());
        assert!(!row("frontier:7").catches_cycles() && row("pebble").catches_cycles());
        let error = "pebble:(c1,LLNR,5)".parse::<Row>().unwrap_err();
        assert!(error.contains("`full`"), "{error}");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "snapshots:",
            "snapshots:(",
            "snapshots:()",
            "snapshots:(2,LFU)",
            "snapshots:(2,LFU,10",
            "snapshots:(2,LFU,10)x",
            "snapshots:(0,LFU,10)",
            "snapshots:(c,LFU,10)",
            "snapshots:(2,LFU,0)",
            "snapshots:(2,LFU,1001)",
            "snapshots:(2,OI,10)",
            "snapshots:(99999999999,LFU,10)",
            "pebble:(c2,LFU,10)(c2,LFU,10)",
            "frontier:0",
            "frontier:",
            "frontier:(1,LFU,1)",
            "frontier-safety-net:-BT",
            &format!("snapshots:{}", "(2,LFU,1)".repeat(9)),
        ] {
            let error = text.parse::<Row>().unwrap_err();
            assert!(error.contains("(c2,LLNR,5)"), "{text}: {error}");
        }
    }
}
