//! What a strategy remembers, as data: a row of tiers.
//!
//! A state enters the first tier. What a tier gives up is offered to the next, and what the last gives up is forgotten. A
//! row is written `full`, `cache:MFU:25%,LRU:75%`, `cover:LRU` or `layers:8`, and is printed as it is written; whatever
//! is said about it elsewhere (does a search with it end, is its memory bounded, ...) is computed from the tiers. Rows that
//! hold levels are written as [`levels`] says.

mod levels;

use crate::budget::{parse_bytes, write_bytes};
use crate::cache::Rule;
use crate::runs::Keep;
pub use levels::{LevelRule, STREAM_FORMS};
use std::fmt;
use std::str::FromStr;

/// How the caches of a chain are written.
const CHAIN_FORMS: &str =
    "write `LRU`, `MFU:25%,LRU:75%` or `RND,SC:600`: rules with their room, and shares that add up to 100 % at most";
const MOST_TIERS: usize = 8;
/// The name of a tier that nobody leaves, and what it means.
pub const KEEP: (&str, &str) = ("KEEP", "nobody; what comes when it is full goes to the next cache");

/// A place for states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tier {
    pub admit: Admit,
    pub unit: Unit,
    pub replace: Replace,
    pub room: Room,
    pub medium: Medium,
}

/// What a tier takes of what it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    All,
    /// One of so many.
    Every(u32),
    /// One of so many, then one of twice as many, of three times as many, and so on.
    Growing(u32),
    /// What seems to have been expanded before: the backtracking set.
    Backtracked,
    /// Levels whose numbers are powers of two.
    Powers,
}

/// What comes and goes as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    State,
    /// All states of a level of a breadth-first search.
    Level,
}

/// Who leaves a tier that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    Nobody,
    /// The rule decides.
    Any(Rule),
    /// The rule decides among the leaves of the search tree that were expanded, so that the ancestors of what waits stay.
    Leaves(Rule),
    /// The rule decides among levels.
    Level(LevelRule),
}

/// How much a tier holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Room {
    /// An equal part of what the other tiers leave.
    Rest,
    /// Of the memory that is there for states, in per cent.
    Share(f64),
    States(u64),
    Bytes(u64),
    Levels(u32),
    /// So many levels, and behind it another tier of the same kind when it is full.
    LevelsAgain(u32),
    /// Levels: twice as many as the longest way back that was seen.
    WayBack,
}

/// Where a tier keeps what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    Ram,
    Disk,
}

/// The tiers, first to last. There is at least one; `Leaves` is always alone, and levels on disk are behind levels in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    tiers: Vec<Tier>,
}

impl Tier {
    /// A tier of states in memory.
    fn of(replace: Replace, room: Room) -> Tier {
        Tier { admit: Admit::All, unit: Unit::State, replace, room, medium: Medium::Ram }
    }
}

impl Replace {
    pub fn rule(self) -> Option<Rule> {
        match self {
            Replace::Nobody | Replace::Level(_) => None,
            Replace::Any(rule) | Replace::Leaves(rule) => Some(rule),
        }
    }

    fn name(self) -> &'static str {
        self.rule().map_or(KEEP.0, Rule::name)
    }
}

impl Row {
    /// Every state is held.
    pub fn full() -> Row {
        Row { tiers: vec![Tier::of(Replace::Nobody, Room::Rest)] }
    }

    /// One cache.
    pub fn single(rule: Rule) -> Row {
        Row { tiers: vec![Tier::of(Replace::Any(rule), Room::Rest)] }
    }

    /// One cache that gives up only what no waiting state descends from.
    pub fn cover(rule: Rule) -> Row {
        Row { tiers: vec![Tier::of(Replace::Leaves(rule), Room::Rest)] }
    }

    /// The newest levels in memory, the others on disk: all of them, or those that have room and, so that the search ends,
    /// levels whose distance grows.
    pub fn layers(kept: Keep) -> Row {
        let level = |admit, replace, room, medium| Tier { admit, unit: Unit::Level, replace, room, medium };
        let lowest = Replace::Level(LevelRule::LowestLevel);
        let newest = level(Admit::All, lowest, Room::Rest, Medium::Ram);
        let last = |room| level(Admit::All, lowest, room, Medium::Disk);
        let net = level(Admit::Powers, Replace::Nobody, Room::Rest, Medium::Disk);
        Row {
            tiers: match kept {
                Keep::All => vec![newest, level(Admit::All, Replace::Nobody, Room::Rest, Medium::Disk)],
                Keep::Last(levels) => vec![newest, last(Room::Levels(levels)), net],
                Keep::Auto => vec![newest, last(Room::WayBack), net],
            },
        }
    }

    /// How long levels stay on disk, if they go there.
    pub fn kept_levels(&self) -> Option<Keep> {
        let on_disk = self.tiers.iter().find(|tier| tier.medium == Medium::Disk)?;
        Some(match on_disk.room {
            Room::Levels(levels) => Keep::Last(levels),
            Room::WayBack => Keep::Auto,
            _ => Keep::All,
        })
    }

    /// Reads the caches of a chain: `LRU`, or `MFU:25%,LRU:75%`.
    pub fn chain(text: &str) -> Result<Row, String> {
        // The paper on chains has them in brackets.
        let bare = |(open, close): (char, char)| text.strip_prefix(open)?.strip_suffix(close);
        let text = [('<', '>'), ('⟨', '⟩')].into_iter().find_map(bare).unwrap_or(text);
        let tiers = text.split(',').map(|part| {
            let (replace, room) = match part.split_once(':') {
                Some((rule, room)) => (rule, room.parse()?),
                None => (part, Room::Rest),
            };
            Ok(Tier::of(parse_replace(replace)?, room))
        });
        let tiers: Vec<Tier> =
            tiers.collect::<Result<_, String>>().map_err(|error| format!("{error}; {CHAIN_FORMS}"))?;
        if tiers.len() > MOST_TIERS {
            return Err(format!("{} caches are too many, {MOST_TIERS} are allowed", tiers.len()));
        }
        let row = Row { tiers };
        let (given, open) = row.shares();
        if given > 100.001 || open > 0 && given > 99.999 {
            let left = if open > 0 { ", which leaves nothing for the others" } else { "" };
            return Err(format!("the shares of `{text}` add up to {given} %{left}; {CHAIN_FORMS}"));
        }
        Ok(row)
    }

    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// Is every state held, as long as there is any memory, or disk?
    pub fn holds_all(&self) -> bool {
        matches!(self.tiers[..], [Tier { replace: Replace::Nobody, room: Room::Rest, .. }])
            || self.climbs()
            || self.kept_levels() == Some(Keep::All)
    }

    /// Are there caches of single states?
    pub fn is_cache(&self) -> bool {
        !self.holds_all() && self.kept_levels().is_none()
    }

    /// May a state be given up that is met again, also while there is memory?
    pub fn forgets(&self) -> bool {
        match self.kept_levels() {
            Some(kept) => kept != Keep::All,
            None => self.has_levels() || self.rules().next().is_some(),
        }
    }

    /// Are the ancestors of what waits held?
    pub fn holds_ancestors(&self) -> bool {
        matches!(self.tiers[0].replace, Replace::Leaves(_))
    }

    /// The rules that decide who leaves.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        self.tiers.iter().filter_map(|tier| tier.replace.rule())
    }

    /// The rule, if there is one tier and nothing but the rule decides.
    pub fn alone(&self) -> Option<Rule> {
        match self.tiers[..] {
            [Tier { replace: Replace::Any(rule), .. }] => Some(rule),
            _ => None,
        }
    }

    /// The tiers after the first, if nobody leaves that.
    pub fn after_kept(&self) -> Option<Row> {
        match &self.tiers[..] {
            [Tier { replace: Replace::Nobody, .. }, rest @ ..] if !rest.is_empty() => {
                Some(Row { tiers: rest.to_vec() })
            }
            _ => None,
        }
    }

    /// What shares add up to, and how many tiers get what is left.
    fn shares(&self) -> (f64, usize) {
        self.tiers.iter().fold((0.0, 0), |(given, open), tier| match tier.room {
            Room::Share(share) => (given + share, open),
            Room::Rest => (given, open + 1),
            Room::States(_) | Room::Bytes(_) | Room::Levels(_) | Room::LevelsAgain(_) | Room::WayBack => (given, open),
        })
    }

    /// The row with so much room for all tiers together, which must not have said how much they want themselves. Every
    /// tier can hold a state at least.
    pub fn sized(&self, size: Room) -> Result<Row, String> {
        let (given, open) = self.shares();
        let rest = (100.0 - given) / open.max(1) as f64;
        let part = |whole: u64, share: f64| ((whole as f64 * share / 100.0) as u64).max(1);
        let mut taken = 0;
        let last = self.tiers.len() - 1;
        let tiers = self.tiers.iter().enumerate().map(|(index, tier)| {
            let share = match tier.room {
                Room::Share(share) => share,
                Room::Rest => rest,
                _ => return Err(format!("`{self}` says how large it is already")),
            };
            let mut divide = |whole: u64| {
                let is_over = index == last && (open > 0 || given > 99.999);
                let part = if is_over { whole.saturating_sub(taken).max(1) } else { part(whole, share) };
                taken += part;
                part
            };
            let room = match size {
                Room::Rest => tier.room,
                Room::Share(size) => Room::Share(size * share / 100.0),
                Room::States(states) => Room::States(divide(states)),
                Room::Bytes(bytes) => Room::Bytes(divide(bytes)),
                Room::Levels(_) | Room::LevelsAgain(_) | Room::WayBack => {
                    return Err(format!("`{self}` has no room for levels"));
                }
            };
            Ok(Tier { room, ..*tier })
        });
        Ok(Row { tiers: tiers.collect::<Result<_, String>>()? })
    }

    /// How many states each tier may hold where there is memory for so many, and one takes so many bytes.
    pub fn states(&self, states: u64, bytes_per_state: u64) -> Vec<u64> {
        let fixed = |tier: &Tier| match tier.room {
            Room::Rest => None,
            Room::Share(share) => Some((states as f64 * share / 100.0) as u64),
            Room::States(states) => Some(states),
            Room::Bytes(bytes) => Some(bytes / bytes_per_state),
            // They share what there is.
            Room::Levels(_) | Room::LevelsAgain(_) | Room::WayBack => Some(0),
        };
        let taken = self.tiers.iter().filter_map(fixed).fold(0, u64::saturating_add);
        let rest = states.saturating_sub(taken) / self.shares().1.max(1) as u64;
        self.tiers.iter().map(|tier| fixed(tier).unwrap_or(rest)).collect()
    }

    /// The same row with so many states for each tier.
    pub fn with_states(&self, rooms: &[u64]) -> Row {
        let tiers = self.tiers.iter().zip(rooms).map(|(tier, &states)| Tier { room: Room::States(states), ..*tier });
        Row { tiers: tiers.collect() }
    }

    /// How many of `capacity` states each tier holds; together exactly `capacity`. Room in bytes must have been turned
    /// into states.
    pub(crate) fn rooms(&self, capacity: usize) -> Vec<usize> {
        let wanted = self.states(capacity as u64, 1);
        let sum = wanted.iter().map(|&states| states as u128).sum::<u128>().max(1);
        let part = |&states: &u64| (states as u128 * capacity as u128 / sum) as usize;
        let mut rooms: Vec<usize> = wanted.iter().map(part).collect();
        let others: usize = rooms[..rooms.len() - 1].iter().sum();
        *rooms.last_mut().expect("there is a tier") = capacity - others;
        rooms
    }
}

fn parse_replace(text: &str) -> Result<Replace, String> {
    if text.trim().eq_ignore_ascii_case(KEEP.0) { Ok(Replace::Nobody) } else { text.parse().map(Replace::Any) }
}

/// Reads how many levels stay on disk.
fn parse_kept(levels: Option<&str>) -> Result<Keep, String> {
    match levels {
        None => Ok(Keep::All),
        Some("auto") => Ok(Keep::Auto),
        Some(levels) => levels.parse().ok().filter(|levels| *levels > 0).map(Keep::Last).ok_or_else(|| {
            format!(
                "`layers:{levels}` says no number of levels: write `layers`, `layers:8` or `layers:auto`; {CHAIN_FORMS}"
            )
        }),
    }
}

/// How room is written.
pub const ROOM_FORMS: &str = "states (600), bytes (64M) or a share of the memory for states (20%)";

impl FromStr for Room {
    type Err = String;

    fn from_str(text: &str) -> Result<Room, String> {
        let text = text.trim();
        let wrong = || format!("`{text}` is no room: there are {ROOM_FORMS}");
        if let Some(number) = text.strip_suffix('%') {
            let share = number.trim().parse().ok().filter(|share| *share > 0.0 && *share <= 100.0);
            return share.map(Room::Share).ok_or_else(wrong);
        }
        let room = match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().ok().map(Room::States),
            false => parse_bytes(text).ok().map(Room::Bytes),
        };
        room.filter(|room| !matches!(room, Room::States(0) | Room::Bytes(0))).ok_or_else(wrong)
    }
}

impl FromStr for Row {
    type Err = String;

    fn from_str(text: &str) -> Result<Row, String> {
        if let Some(row) = Row::stream(text) {
            return row;
        }
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        match (name, rest) {
            ("full", None) => Ok(Row::full()),
            ("auto", None) => Ok(Row::auto()),
            ("layers", levels) => parse_kept(levels).map(Row::layers),
            ("cache", rules) => Row::chain(rules.unwrap_or("LRU")),
            ("cover", rule) => {
                let mut row = Row::chain(rule.unwrap_or("LRU"))?;
                let [tier] = &mut row.tiers[..] else { return Err(format!("`cover` takes one rule: {CHAIN_FORMS}")) };
                if let Replace::Any(rule) = tier.replace {
                    tier.replace = Replace::Leaves(rule);
                }
                Ok(row)
            }
            _ => Err(format!(
                "`{text}` is none of `auto`, `full`, `cache:RULES`, `cover:RULE`, `snapshots`, `frontier`, `pebble`, `layers`; {CHAIN_FORMS}"
            )),
        }
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Room::Rest => f.write_str("budget"),
            Room::Share(share) => write!(f, "{share}%"),
            Room::States(states) => write!(f, "{states}"),
            Room::Bytes(bytes) => f.write_str(&write_bytes(*bytes)),
            Room::Levels(levels) => write!(f, "{levels} levels"),
            Room::WayBack => f.write_str("the longest way back"),
            Room::LevelsAgain(levels) => write!(f, "{levels} levels and again"),
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Tier { admit, unit, replace, room, medium } = self;
        let unit = match unit {
            Unit::State => "state",
            Unit::Level => "level",
        };
        let medium = match medium {
            Medium::Ram => "ram",
            Medium::Disk => "disk",
        };
        let leaves = match replace {
            Replace::Nobody => "nobody".to_string(),
            Replace::Any(rule) => rule.to_string(),
            Replace::Leaves(rule) => format!("leaves by {rule}"),
            Replace::Level(rule) => rule.name().to_string(),
        };
        write!(f, "({}, {unit}, {leaves}, {room}, {medium})", levels::period_of(*admit))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.kept_levels() {
            Some(Keep::All) => return f.write_str("layers"),
            Some(Keep::Last(levels)) => return write!(f, "layers:{levels}"),
            Some(Keep::Auto) => return f.write_str("layers:auto"),
            None if self.climbs() => return f.write_str("auto"),
            None if self.holds_all() => return f.write_str("full"),
            None => {}
        }
        if self.has_levels() {
            return self.write_stream(f);
        }
        f.write_str(if self.holds_ancestors() { "cover" } else { "cache" })?;
        for (index, Tier { replace, room, .. }) in self.tiers.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { ':' } else { ',' }, replace.name())?;
            if *room != Room::Rest {
                write!(f, ":{room}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        text.parse().unwrap()
    }

    #[test]
    fn rows_are_printed_as_they_are_written() {
        for text in [
            "auto",
            "full",
            "cache:SC",
            "cache:MFU:25%,LRU:75%",
            "cache:KEEP:50%,SC:50%",
            "cache:KEEP,SC:64M,kind:12.5%",
            "cache:LRU:600",
            "cache:KEEP:600",
            "cache:LRU:1000B",
            "cache:RND:20%",
            "cover:LRU",
            "cover:MFU:3G",
            "layers",
            "layers:8",
            "layers:auto",
        ] {
            assert_eq!(row(text).to_string(), text);
        }
        assert_eq!((row("cache"), row("cover")), (Row::single(Rule::LeastRecent), Row::cover(Rule::LeastRecent)));
        assert_eq!(row("cache: sc:50% ,keep").to_string(), "cache:SC:50%,KEEP");
        // To keep whatever comes, as long as there is memory, is to keep all.
        assert_eq!((row("cache:KEEP"), row("cover:keep")), (Row::full(), Row::full()));
    }

    #[test]
    fn what_a_row_does_follows_from_its_tiers() {
        assert!(row("full").holds_all() && !row("cache:KEEP:600").holds_all() && !row("cache:KEEP:600").forgets());
        assert!(row("cache:KEEP:50%,SC:50%").forgets() && row("cache:LRU,KEEP").forgets() && row("cover").forgets());
        assert!(row("cover").holds_ancestors() && !row("cache").holds_ancestors());
        assert_eq!((row("cache:SC").alone(), row("cover:SC").alone()), (Some(Rule::Stratified), None));
        assert_eq!((row("cache:KEEP:9").alone(), row("cache:SC,O").alone()), (None, None));
        assert_eq!(row("cache:KEEP,SC,O").after_kept(), Some(row("cache:SC,O")));
        assert_eq!((row("cache:SC,KEEP").after_kept(), row("full").after_kept()), (None, None));
        assert_eq!(row("cache:KEEP,OI").tiers[1].to_string(), "(all, state, OI, budget, ram)");
        let tiers = |text: &str| row(text).tiers.iter().map(Tier::to_string).collect::<String>();
        assert_eq!(tiers("layers"), "(all, level, LLNR, budget, ram)(all, level, nobody, budget, disk)");
        let bounded = "(all, level, LLNR, 8 levels, disk)(powers of two, level, nobody, budget, disk)";
        assert_eq!(tiers("layers:8"), format!("(all, level, LLNR, budget, ram){bounded}"));
        assert!(row("layers").holds_all() && !row("layers").forgets() && row("layers:auto").forgets());
        assert!(!row("layers:3").is_cache() && row("cover").is_cache() && !row("full").is_cache());
    }

    #[test]
    fn rooms_are_divided_as_written() {
        assert_eq!(row("cache:MFU:25%,LRU:75%").rooms(10), [2, 8]);
        assert_eq!(row("cache:RND:50%,O,I").rooms(100), [50, 25, 25]);
        assert_eq!((row("cache:LRU,MRU").rooms(1), row("cache:LRU:20%").rooms(7)), (vec![0, 1], vec![7]));
        assert_eq!(row("cache:KEEP:30,SC:50%,O").states(100, 8), [30, 50, 20]);
        assert_eq!(row("cache:KEEP:160B,SC,O").states(100, 8), [20, 40, 40]);
        assert_eq!(row("cache:KEEP:600,SC").states(100, 8), [600, 0]);
        // A cache that gets less memory than was planned keeps the proportions.
        let planned = row("cache:KEEP:30,SC:50%,O:10%").with_states(&[30, 50, 10]);
        assert_eq!((planned.rooms(90), planned.rooms(9)), (vec![30, 50, 10], vec![3, 5, 1]));
    }

    #[test]
    fn a_size_is_divided_among_the_tiers() {
        let sized = |text: &str, size: &str| row(text).sized(size.parse().unwrap()).map(|row| row.to_string());
        assert_eq!(sized("cache:MFU:25%,LRU:75%", "602"), Ok("cache:MFU:150,LRU:452".into()));
        assert_eq!(sized("cache:MFU:25%,LRU", "64M"), Ok("cache:MFU:16M,LRU:48M".into()));
        assert_eq!(sized("cache:KEEP,LRU", "20%"), Ok("cache:KEEP:10%,LRU:10%".into()));
        assert_eq!(sized("cache:SC:50%", "20"), Ok("cache:SC:10".into()));
        assert_eq!(sized("cache:MRU:1%,LRU:99%", "20"), Ok("cache:MRU:1,LRU:19".into()));
        assert_eq!(sized("cover:SC", "600"), Ok("cover:SC:600".into()));
        assert!(sized("cache:LRU:600", "20").unwrap_err().contains("`cache:LRU:600` says how large it is"));
    }

    #[test]
    fn wrong_rows_are_refused_with_the_valid_forms() {
        for chain in ["", "LRV:10%", "LRU:101%", "LRU:60%,MFU:60%", "LRU:100%,MFU", "LRU:x", "LRU:-5%", "LRU,", "SC:0"]
        {
            let error = Row::chain(chain).unwrap_err();
            assert!(error.contains("MFU:25%,LRU:75%"), "{chain}: {error}");
            assert!(format!("cache:{chain}").parse::<Row>().is_err(), "{chain}");
        }
        for text in [
            "",
            "ful",
            "full:",
            "full:LRU",
            "cover:LRU,MFU",
            "caches:LRU",
            "LRU",
            " full",
            "layers:0",
            "layers:x",
            "layers:",
        ] {
            assert!(text.parse::<Row>().unwrap_err().contains("MFU:25%,LRU:75%"), "{text}");
        }
        assert!(Row::chain(&["LRU"; 9].join(",")).is_err());
        for room in ["", "0", "x", "120%", "99999999999999999999", "-5", "0M", "%"] {
            assert!(room.parse::<Room>().unwrap_err().contains("states (600), bytes (64M)"), "{room}");
        }
    }
}
