//! Every strategy is a row: in which order, over which tiers, with what kept asleep, and what may be expected.
//!
//! [`Strategy::parse`] turns a name into a row's parts; nothing else in the program knows names of strategies.
//! The columns are claims, and `crates/search/tests/oracle.rs` holds them against random systems.

use crate::options::Order;
use plimsoll_search::sleep;
use plimsoll_store::{Rule, Spec};

/// How strategies with sleep sets are written.
const SLEEP: &str = "sleep";
const PUBLISHED: &str = "sleep-1992";

/// Visits per state at which a search that need not end is given up, if nobody says otherwise.
pub const DEFAULT_REDUNDANCY_PERCENT: u64 = 600;

/// A strategy and what it promises.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// How it is written; `RULES` stands for rules of replacement.
    pub name: &'static str,
    pub orders: &'static str,
    pub tiers: &'static str,
    /// Does it end on every finite model without a limit?
    pub ends: &'static str,
    /// If it ends, was every reachable state visited?
    pub complete: bool,
    /// Same model, same options: same search?
    pub deterministic: bool,
    /// Is the memory it needs bounded whatever the model?
    pub bounded: bool,
    /// Does it make use of the memory it is given, and of no more?
    pub aware: bool,
    pub paper: &'static str,
}

/// The table.
pub const PRESETS: [Preset; 6] = [
    Preset {
        name: "full",
        orders: "bfs dfs",
        tiers: "(all, nobody leaves, budget)",
        ends: "yes",
        complete: true,
        deterministic: true,
        bounded: false,
        aware: false,
        paper: "",
    },
    Preset {
        name: "cache:RULES",
        orders: "dfs bfs",
        tiers: "(all, RULE, N), and chains of them",
        ends: "dfs; bfs by limit",
        complete: true,
        deterministic: true,
        bounded: true,
        aware: true,
        paper: "Godefroid, Holzmann, Pirottin 1992; Pelanek, Rosecky, Sedenka 2008; Mateescu, Wijs 2009",
    },
    Preset {
        name: "cover:RULE",
        orders: "bfs dfs",
        tiers: "(all, RULE but no ancestor of an open state, N)",
        ends: "yes",
        complete: true,
        deterministic: true,
        bounded: true,
        aware: true,
        paper: "Evangelista, Kristensen 2010",
    },
    Preset {
        name: "sleep",
        orders: "dfs",
        tiers: "(all, nobody leaves, budget), steps to states on the path do not sleep",
        ends: "yes",
        complete: true,
        deterministic: true,
        bounded: false,
        aware: false,
        paper: "Godefroid, Holzmann, Pirottin 1992",
    },
    Preset {
        name: "sleep+cache:RULES",
        orders: "dfs",
        tiers: "(all, RULE, N), steps to states on the path do not sleep",
        ends: "yes",
        complete: true,
        deterministic: true,
        bounded: true,
        aware: true,
        paper: "Godefroid, Holzmann, Pirottin 1992",
    },
    Preset {
        name: "sleep-1992",
        orders: "dfs",
        tiers: "(all, nobody leaves, budget) or (all, RULE, N), the rule as published",
        ends: "yes",
        complete: false,
        deterministic: true,
        bounded: false,
        aware: false,
        paper: "Godefroid, Holzmann, Pirottin 1992",
    },
];

/// Strategies that forget, one or more of each row: what `sweep` tries if nobody says otherwise.
pub const FORGETTING: [&str; 17] = [
    "cache:LRU",
    "cache:MRU",
    "cache:LFU",
    "cache:MFU",
    "cache:RND",
    "cache:O",
    "cache:I",
    "cache:OI",
    "cache:SC",
    "cache:kind",
    "cache:MFU:25%,LRU:75%",
    "cover:LRU",
    "cover:RND",
    "cover:SC",
    "sleep+cache:LRU",
    "sleep+cache:LFU",
    "sleep+cache:SC",
];

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    pub order: Order,
    /// None: every state is held.
    pub cache: Option<Spec>,
    /// With sleep sets: who may sleep.
    pub sleep: Option<sleep::Rule>,
}

impl Strategy {
    /// The strategy of a name, of a chain of caches and an order that may be given beside it.
    pub fn parse(name: Option<&str>, chain: Option<&str>, order: Option<Order>) -> Result<Strategy, String> {
        let name = name.unwrap_or("full").trim();
        let (sleep, rest) = match (name.strip_prefix(PUBLISHED), name.strip_prefix(SLEEP)) {
            (Some(rest), _) => (Some(sleep::Rule::Published), rest.trim_start_matches('+')),
            (None, Some(rest)) => (Some(sleep::Rule::Checked), rest.trim_start_matches('+')),
            (None, None) => (None, name),
        };
        let mut cache = match rest.split_once(':') {
            _ if rest.is_empty() || rest == "full" => None,
            Some(("cache", rules)) => Some(rules.parse::<Spec>()?),
            Some(("cover", rule)) if sleep.is_none() => Some(Spec::cover(rule.parse()?)),
            None if rest == "cover" && sleep.is_none() => Some(Spec::cover(Rule::LeastRecent)),
            None if rest == "cache" => Some(Spec::single(Rule::LeastRecent)),
            _ => return Err(unknown(name)),
        };
        if let Some(chain) = chain {
            if cache.is_some() {
                return Err(format!("--cache and the caches of --strategy {name} exclude each other"));
            }
            cache = Some(chain.parse()?);
        }
        let depth_first = sleep.is_some() || cache.as_ref().is_some_and(|spec| !spec.cover);
        let order = match order {
            Some(Order::Bfs) if sleep.is_some() => {
                return Err("sleep sets need a depth-first search: --order dfs".into());
            }
            Some(order) => order,
            None if depth_first => Order::Dfs,
            None => Order::Bfs,
        };
        Ok(Strategy { order, cache, sleep })
    }

    /// Does the search end on every finite model without a limit?
    pub fn ends(&self) -> bool {
        self.order != Order::Bfs || self.cache.as_ref().is_none_or(|spec| spec.cover)
    }

    /// The name, complete.
    pub fn name(&self) -> String {
        match (&self.cache, self.sleep) {
            (None, None) => "full".into(),
            (None, Some(sleep::Rule::Checked)) => SLEEP.into(),
            (None, Some(sleep::Rule::Published)) => PUBLISHED.into(),
            (Some(spec), None) if spec.cover => spec.to_string(),
            (Some(spec), None) => format!("cache:{spec}"),
            (Some(spec), Some(sleep::Rule::Checked)) => format!("{SLEEP}+cache:{spec}"),
            (Some(spec), Some(sleep::Rule::Published)) => format!("{PUBLISHED}+cache:{spec}"),
        }
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    format!(
        "there is no strategy `{name}`; there are {}, for example `cache:LRU`, `cover` or `sleep+cache:RND`; \
         `plimsoll strategies` explains them",
        names.join(", ")
    )
}

/// How a cache size is written.
pub const CACHE_SIZE_FORMS: &str = "--cache-size takes states (600), bytes (64M) or a share of the budget (20%)";

/// How large a cache is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheSize {
    States(u64),
    Bytes(u64),
    /// Of the memory that is there for states.
    Percent(f64),
}

impl std::str::FromStr for CacheSize {
    type Err = String;

    fn from_str(text: &str) -> Result<CacheSize, String> {
        let explain = |_| CACHE_SIZE_FORMS.to_string();
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return match text.parse() {
                Ok(0) => Err(format!("a cache holds at least one state; {CACHE_SIZE_FORMS}")),
                Ok(states) => Ok(CacheSize::States(states)),
                Err(_) => Err(explain(String::new())),
            };
        }
        match text.parse::<crate::size::Size>().map_err(explain)? {
            crate::size::Size::Bytes(bytes) => Ok(CacheSize::Bytes(bytes)),
            crate::size::Size::Percent(percent) => Ok(CacheSize::Percent(percent)),
        }
    }
}

/// Reads `6x`, `6` or `1.5x`: visits per state, in per cent.
pub fn parse_redundancy(text: &str) -> Result<u64, String> {
    let number = text.trim().trim_end_matches(['x', 'X']).parse::<f64>().ok();
    let percent = number.filter(|times| (1.0..=1e9).contains(times)).map(|times| (times * 100.0) as u64);
    percent.ok_or_else(|| "expected a factor of at least 1, such as 6x or 1.5x".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(name: &str) -> Strategy {
        Strategy::parse(Some(name), None, None).unwrap()
    }

    #[test]
    fn names_stand_for_what_they_say() {
        assert_eq!(strategy("full"), Strategy { order: Order::Bfs, cache: None, sleep: None });
        let cached = strategy("cache:SC");
        assert_eq!((cached.order, cached.ends()), (Order::Dfs, true));
        assert_eq!(cached.cache, Some(Spec::single(Rule::Stratified)));
        assert!(!Strategy::parse(Some("cache:SC"), None, Some(Order::Bfs)).unwrap().ends());
        assert!(Strategy::parse(Some("cover"), None, None).unwrap().ends());
        assert_eq!(strategy("sleep+cache:RND").name(), "sleep+cache:RND");
        assert_eq!(strategy("sleep").name(), "sleep");
        assert_eq!(strategy("sleep-1992+cache").name(), "sleep-1992+cache:LRU");
        assert_eq!(strategy("cover:MFU").name(), "cover:MFU");
        let chain = Strategy::parse(None, Some("MFU:25%,LRU:75%"), None).unwrap();
        assert_eq!(chain.name(), "cache:MFU:25%,LRU:75%");
        assert_eq!(Strategy::parse(Some(&chain.name()), None, None), Ok(chain));
    }

    #[test]
    fn what_forgets_is_written_in_full() {
        for name in FORGETTING {
            assert_eq!(strategy(name).name(), name);
        }
        let forgetting = Rule::ALL.iter().filter(|rule| **rule != Rule::Keep);
        assert!(forgetting.map(|rule| format!("cache:{rule}")).all(|name| FORGETTING.contains(&name.as_str())));
    }

    #[test]
    fn wrong_names_are_refused_with_the_right_ones() {
        for name in ["", "ful", "cache:LRV", "sleep+cover", "cover:LRU,MFU", "snooze", "sleep+x"] {
            let error = Strategy::parse(Some(name), None, None).err();
            assert!(name.is_empty() || error.is_some_and(|error| error.contains("LRU")), "{name}");
        }
        assert!(Strategy::parse(Some("sleep"), None, Some(Order::Bfs)).is_err());
        assert!(Strategy::parse(Some("cache:LRU"), Some("MFU"), None).is_err());
    }

    #[test]
    fn sizes_and_limits_are_read_as_written() {
        assert_eq!("600".parse(), Ok(CacheSize::States(600)));
        assert_eq!("64M".parse(), Ok(CacheSize::Bytes(64 << 20)));
        assert_eq!("20%".parse(), Ok(CacheSize::Percent(20.0)));
        for text in ["", "0", "x", "120%", "99999999999999999999", "-5"] {
            assert!(text.parse::<CacheSize>().is_err(), "{text}");
        }
        assert_eq!((parse_redundancy("6x"), parse_redundancy("1.5")), (Ok(600), Ok(150)));
        for text in ["", "x", "0.5x", "-1", "nan"] {
            assert!(parse_redundancy(text).is_err(), "{text}");
        }
    }
}
