//! Every strategy is a row: in which order, over which tiers, with what kept asleep.
//!
//! [`Strategy::parse`] reads a name, [`Strategy::name`] prints it, and nothing else in the program knows names of strategies.
//! What a strategy promises is computed from its parts, and `crates/search/tests/oracle.rs` holds it against random
//! systems.

use crate::hunt::Hunt;
use crate::options::Order;
use plimsoll_search::sleep;
use plimsoll_store::row::{Medium, Replace};
use plimsoll_store::{Room, Row};

/// How strategies with sleep sets begin.
const REDUCTIONS: [(&str, sleep::Rule); 2] = [("sleep", sleep::Rule::Checked), ("sleep-1992", sleep::Rule::Published)];

/// Visits per state at which a search is given up, if nobody says otherwise: one that need not end, or that has climbed; and a
/// depth-first one, which ends, but can take exponential time.
const REDUNDANCY_PERCENT: u64 = 600;
const DEPTH_FIRST_REDUNDANCY_PERCENT: u64 = 10_000;

/// A family of strategies.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// How they are written; `RULES` stands for rules of replacement.
    pub name: &'static str,
    /// One of them; what it promises they all do.
    pub example: &'static str,
    pub paper: &'static str,
}

/// The table.
pub const PRESETS: [Preset; 24] = [
    Preset { name: "auto", example: "auto", paper: "Mateescu, Wijs 2009; Lamborn, Hansen 2008" },
    Preset { name: "full", example: "full", paper: "" },
    Preset {
        name: "cache:RULES",
        example: "cache:LRU",
        paper: "Godefroid, Holzmann, Pirottin 1992; Pelanek, Rosecky, Sedenka 2008; Mateescu, Wijs 2009",
    },
    Preset { name: "cache:KEEP,RULES", example: "cache:KEEP:50%,SC:50%", paper: "" },
    Preset { name: "cover:RULE", example: "cover:LRU", paper: "Evangelista, Kristensen 2010" },
    Preset { name: "layers", example: "layers", paper: "Lamborn, Hansen 2008" },
    Preset { name: "layers:L", example: "layers:8", paper: "Lamborn, Hansen 2008; Mateescu, Wijs 2009" },
    Preset {
        name: "snapshots:(PERIOD,RULE,N)",
        example: "snapshots:(c2,LLNR,5)(2,LFU,10)",
        paper: "Mateescu, Wijs 2009",
    },
    Preset { name: "frontier:N", example: "frontier:5", paper: "Korf 2005; Mateescu, Wijs 2009" },
    Preset { name: "frontier-safety-net", example: "frontier-safety-net", paper: "Mateescu, Wijs 2009" },
    Preset { name: "pebble:(PERIOD,RULE,N)", example: "pebble:(c2,LLNR,5)", paper: "Mateescu, Wijs 2009" },
    Preset { name: "sleep", example: "sleep", paper: "Godefroid, Holzmann, Pirottin 1992" },
    Preset { name: "sleep+cache:RULES", example: "sleep+cache:LFU", paper: "Godefroid, Holzmann, Pirottin 1992" },
    Preset { name: "sleep-1992", example: "sleep-1992", paper: "Godefroid, Holzmann, Pirottin 1992" },
    Preset { name: "walk", example: "walk", paper: "Pelanek, Hanzl, Cerna, Brim 2005; Tripakis 2008" },
    Preset { name: "walk+local", example: "walk+local", paper: "Sivaraj, Gopalakrishnan 2003; Pelanek et al. 2005" },
    Preset { name: "swarm", example: "swarm", paper: "Holzmann, Joshi, Groce 2008" },
    Preset { name: "path", example: "path", paper: "Tripakis 2008" },
    Preset { name: "deepen", example: "deepen", paper: "Korf 1985" },
    Preset { name: "best", example: "best", paper: "Edelkamp, Leue, Lluch-Lafuente 2004" },
    Preset { name: "astar", example: "astar", paper: "Hart, Nilsson, Raphael 1968" },
    Preset { name: "ida", example: "ida", paper: "Korf 1985" },
    Preset { name: "sma", example: "sma", paper: "Chakrabarti, Ghose, Acharya, de Sarkar 1989; Russell 1992" },
    Preset { name: "beam:K", example: "beam:1000", paper: "Tripakis 2008" },
];

/// Strategies that forget as much as their room asks for, one or more of each row: what `sweep` tries if nobody says otherwise.
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

/// Strategies that hold levels. Their room is so many levels, so `sweep` gives them no sizes.
pub const LEVELS: [&str; 5] = [
    "snapshots:(c2,LLNR,5)(2,LFU,10)",
    "snapshots:(c2,LLNR,5)(2,LFU,10)-BT",
    "pebble:(c2,LLNR,5)",
    "pebble:(c2,LLNR,5)-BT",
    "frontier:5",
];

/// What is remembered, in which order states are visited, and what need not be followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    pub order: Order,
    pub row: Row,
    /// With sleep sets: who may sleep.
    pub sleep: Option<sleep::Rule>,
    /// If something is hunted for, how; it has an order of its own.
    pub hunt: Option<Hunt>,
}

impl Strategy {
    /// The strategy of a name, and of a chain of caches, their size and an order that may be given beside it.
    pub fn parse(
        name: Option<&str>,
        chain: Option<&str>,
        size: Option<Room>,
        order: Option<Order>,
    ) -> Result<Strategy, String> {
        let usual = if order.is_none_or(|order| order == Order::Bfs) { "auto" } else { "full" };
        let given = name.unwrap_or(usual).trim();
        if let Some(hunt) = Hunt::parse(given) {
            return Strategy::hunting(hunt, chain.is_some() || size.is_some(), order);
        }
        let (first, rest) = given.split_once('+').map_or((given, None), |(first, rest)| (first, Some(rest)));
        let sleep = REDUCTIONS.iter().find(|(reduction, _)| *reduction == first).map(|(_, rule)| *rule);
        let text = if sleep.is_some() { rest } else { name.map(str::trim) };
        let mut row = match (text, chain) {
            (None, Some(chain)) => Row::chain(chain)?,
            (None | Some("full" | "auto"), None) if size.is_some() => {
                return Err("--cache-size needs a cache: --cache LRU, or --strategy cover, sleep+cache:LFU, ...".into());
            }
            (None, None) if sleep.is_some() => Row::full(),
            (None, None) => parse_row(usual, given, sleep)?,
            (Some(text), None) => parse_row(text, given, sleep)?,
            (Some(text), Some(chain)) => {
                let what =
                    if parse_row(text, given, sleep)?.holds_all() { "holds every state" } else { "names its caches" };
                return Err(format!(
                    "--strategy {given} {what}, so it leaves nothing to --cache {chain}: give one of the two"
                ));
            }
        };
        if let (Some(_), Some(_)) = (size, row.kept_levels()) {
            return Err(format!("--cache-size does not go with {row}, which makes use of all memory"));
        }
        if let Some(size) = size {
            row = row.sized(size).map_err(|error| format!("{error}: leave out --cache-size"))?;
        }
        let mut strategy = Strategy { order: Order::Bfs, row, sleep, hunt: None };
        strategy.order = order.unwrap_or_else(|| strategy.usual_order());
        match strategy.allows(strategy.order) {
            true => Ok(strategy),
            false if strategy.row.has_levels() || strategy.row.climbs() => {
                Err(format!("`{}` holds levels, which only a breadth-first search has: --order bfs", strategy.name()))
            }
            false => Err("sleep sets need a depth-first search: --order dfs".into()),
        }
    }

    fn hunting(hunt: Hunt, cached: bool, order: Option<Order>) -> Result<Strategy, String> {
        let name = hunt.name();
        match order {
            Some(_) => Err(format!("--strategy {name} has an order of its own: leave out --order")),
            None if cached => Err(format!("--strategy {name} has no cache: leave out --cache and --cache-size")),
            None => Ok(Strategy { order: Order::Dfs, row: Row::full(), sleep: None, hunt: Some(hunt) }),
        }
    }

    /// The order if nobody asks for one: what forgets ends depth first.
    fn usual_order(&self) -> Order {
        let bfs = self.allows(Order::Bfs) && (self.ends_in(Order::Bfs) || !self.allows(Order::Dfs));
        if bfs { Order::Bfs } else { Order::Dfs }
    }

    /// Can states be visited in this order?
    pub fn allows(&self, order: Order) -> bool {
        let levels = self.row.has_levels() || self.row.climbs();
        self.hunt.is_none() && if order == Order::Bfs { self.sleep.is_none() } else { !levels }
    }

    /// Does the search end on every finite model without a limit?
    pub fn ends(&self) -> bool {
        self.hunt.map_or_else(|| self.ends_in(self.order), Hunt::ends)
    }

    /// Depth first no state is twice on the stack; breadth first what was forgotten must not come round again. Levels that
    /// catch no long cycles end in theory, but nobody should wait for it.
    pub fn ends_in(&self, order: Order) -> bool {
        if self.row.has_levels() || self.row.climbs() {
            return self.row.catches_cycles();
        }
        let lasts = |replace: Replace| match replace {
            Replace::Nobody | Replace::Leaves(_) => true,
            Replace::Any(_) | Replace::Level(_) => false,
        };
        order != Order::Bfs || self.row.tiers().iter().all(|tier| lasts(tier.replace))
    }

    /// If it ends, was every reachable state visited? All codecs are injective, so only what sleeps can be missed.
    pub fn is_complete(&self) -> bool {
        match self.sleep {
            _ if self.hunt.is_some_and(|hunt| !hunt.is_complete()) => false,
            None | Some(sleep::Rule::Checked) => true,
            Some(sleep::Rule::Published) => false,
        }
    }

    /// Same model, same options: same search? `RND` draws the same numbers each time.
    pub fn is_deterministic(&self) -> bool {
        self.row.tiers().iter().all(|tier| match tier.medium {
            Medium::Ram | Medium::Disk => true,
        })
    }

    /// Is the memory for states bounded whatever the model? It is where somebody leaves, but a level may be of any size.
    pub fn is_bounded(&self) -> bool {
        self.hunt.map_or_else(
            || self.row.kept_levels().is_some() || self.row.forgets() && !self.row.has_levels(),
            Hunt::is_bounded,
        )
    }

    /// Does it make use of the memory it is given, and of no more? It does where somebody leaves only when it is full.
    pub fn is_aware(&self) -> bool {
        let waits = |replace: Replace| match replace {
            Replace::Nobody | Replace::Level(_) => false,
            Replace::Any(_) | Replace::Leaves(_) => true,
        };
        let on_disk = self.row.kept_levels().is_some() || self.row.climbs();
        self.hunt.map_or_else(|| on_disk || self.row.tiers().iter().any(|tier| waits(tier.replace)), Hunt::is_aware)
    }

    /// Visits per state, in per cent, at which a search is given up if nobody says otherwise.
    pub fn usual_redundancy_percent(&self) -> Option<u64> {
        match self.hunt {
            Some(_) => None,
            None if !self.ends() || self.row.climbs() => Some(REDUNDANCY_PERCENT),
            None if self.order != Order::Bfs && self.row.forgets() => Some(DEPTH_FIRST_REDUNDANCY_PERCENT),
            None => None,
        }
    }

    /// The name, complete.
    pub fn name(&self) -> String {
        if let Some(hunt) = self.hunt {
            return hunt.name();
        }
        let reduction = REDUCTIONS.iter().find(|(_, rule)| Some(*rule) == self.sleep).map(|(name, _)| *name);
        match reduction {
            None => self.row.to_string(),
            Some(name) if self.row.holds_all() => name.into(),
            Some(name) => format!("{name}+{}", self.row),
        }
    }
}

impl Preset {
    /// The example, in its usual order.
    pub fn strategy(&self) -> Strategy {
        Strategy::parse(Some(self.example), None, None, None).expect("the table has strategies that there are")
    }
}

/// How rows begin, of which [`Row`] knows best what is wrong with them.
const ROWS: [&str; 7] = ["cache:", "cover:", "layers", "snapshots", "frontier", "pebble", "("];

fn parse_row(text: &str, name: &str, sleep: Option<sleep::Rule>) -> Result<Row, String> {
    let row = text.parse::<Row>();
    match row {
        Ok(row) if sleep.is_none() || !row.holds_ancestors() && !row.has_levels() && !row.climbs() => Ok(row),
        Err(error) if ROWS.iter().any(|name| text.starts_with(name)) => Err(error),
        _ => Err(unknown(name)),
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
pub const CACHE_SIZE_FORMS: &str =
    "--cache-size takes states (600), bytes (64M) or a share of the memory for states (20%)";

/// Reads `6x`, `6` or `1.5x`: visits per state, in per cent.
pub fn parse_redundancy(text: &str) -> Result<u64, String> {
    let number = text.trim().trim_end_matches(['x', 'X']).parse::<f64>().ok();
    let percent = number.filter(|times| (1.0..=1e9).contains(times)).map(|times| (times * 100.0) as u64);
    percent.ok_or_else(|| "expected a factor of at least 1, such as 6x or 1.5x".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_store::Rule;

    fn parse(name: &str) -> Result<Strategy, String> {
        Strategy::parse(Some(name), None, None, None)
    }

    fn strategy(name: &str) -> Strategy {
        parse(name).unwrap()
    }

    #[test]
    fn names_stand_for_what_they_say() {
        assert_eq!(strategy("full"), Strategy { order: Order::Bfs, row: Row::full(), sleep: None, hunt: None });
        let cached = strategy("cache:SC");
        assert_eq!((cached.order, cached.ends()), (Order::Dfs, true));
        assert_eq!(cached.row, Row::single(Rule::Stratified));
        assert!(strategy("cover").ends() && strategy("cover").order == Order::Bfs);
        assert_eq!(strategy("sleep+full"), strategy("sleep"));
        assert_eq!((strategy("cache:KEEP:600").order, strategy("cache:KEEP,SC").order), (Order::Bfs, Order::Dfs));
        for name in
            ["full", "sleep", "sleep-1992", "sleep+cache:RND", "sleep-1992+cache:LRU", "cover:MFU", "cache:SC:9"]
        {
            assert_eq!(strategy(name).name(), name);
        }
        assert_eq!(strategy("sleep-1992+cache").name(), "sleep-1992+cache:LRU");
    }

    #[test]
    fn layers_are_searched_breadth_first_and_end() {
        for name in ["layers", "layers:1", "layers:auto"] {
            let layers = strategy(name);
            assert!(layers.order == Order::Bfs && layers.ends() && layers.is_bounded() && layers.name() == name);
            assert!(Strategy::parse(Some(name), None, None, Some(Order::Dfs)).unwrap_err().contains("--order bfs"));
            assert!(Strategy::parse(Some(name), None, Some(Room::States(9)), None).is_err());
        }
        for name in ["layers:0", "layers:x", "sleep+layers"] {
            assert!(parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn chains_and_sizes_may_be_given_beside_a_name() {
        let parse = |name, chain, size: Option<&str>| {
            let size = size.map(|size| size.parse().unwrap());
            Strategy::parse(name, chain, size, None).map(|strategy| strategy.name())
        };
        assert_eq!(parse(None, Some("MFU:25%,LRU:75%"), None), Ok("cache:MFU:25%,LRU:75%".into()));
        assert_eq!(parse(Some("sleep"), Some("LFU"), Some("600")), Ok("sleep+cache:LFU:600".into()));
        assert_eq!(parse(Some("cover"), None, Some("64M")), Ok("cover:LRU:64M".into()));
        for (name, reason) in
            [("full", "holds every state"), ("sleep+full", "holds every state"), ("cache:SC", "names its caches")]
        {
            let error = parse(Some(name), Some("LRU"), None).unwrap_err();
            assert!(error.contains(reason) && error.contains("--cache LRU"), "{error}");
        }
        assert!(parse(Some("cache:LRU:5"), None, Some("600")).unwrap_err().contains("--cache-size"));
    }

    #[test]
    fn hunts_have_an_order_of_their_own() {
        assert_eq!(strategy("walk+local").name(), "walk+local");
        assert!(!strategy("walk").ends() && !strategy("swarm").is_complete() && strategy("deepen").is_complete());
        for order in [Order::Bfs, Order::Dfs] {
            let error = Strategy::parse(Some("walk"), None, None, Some(order)).unwrap_err();
            assert!(error.contains("--order"), "{error}");
        }
        assert!(Strategy::parse(Some("path"), Some("LRU"), None, None).unwrap_err().contains("--cache"));
    }

    #[test]
    fn to_be_reversed_is_to_be_depth_first() {
        for name in ["full", "cache:SC", "cover:LRU", "sleep", "sleep+cache:LFU"] {
            let [dfs, reverse] = [Order::Dfs, Order::DfsReverse]
                .map(|order| Strategy::parse(Some(name), None, None, Some(order)).unwrap());
            assert_eq!((dfs.ends(), &dfs.row, dfs.name()), (reverse.ends(), &reverse.row, reverse.name()));
        }
    }

    #[test]
    fn what_forgets_is_written_in_full() {
        for name in FORGETTING {
            assert_eq!(strategy(name).name(), name);
        }
        assert!(LEVELS.iter().all(|name| strategy(name).name() == *name));
        assert!(Rule::ALL.iter().all(|rule| FORGETTING.contains(&format!("cache:{rule}").as_str())));
    }

    #[test]
    fn wrong_names_are_refused_with_the_right_ones() {
        for name in [
            "",
            " ",
            "+",
            "ful",
            "full:",
            "full+sleep",
            "cache:LRV",
            "cache:LRU+sleep",
            "sleep+cover",
            "cover:LRU,MFU",
            "snooze",
            "sleep+",
            "sleep+x",
            "sleepcache:LRU",
            "sleep++full",
            "sleep+sleep",
            "sleep-1993",
            "sleep:LRU",
            "cache:LRU,",
            "cache:LRU x",
            "sleep-1992cache",
        ] {
            let error = parse(name).unwrap_err();
            assert!(error.contains("LRU"), "{name}: {error}");
        }
        assert!(Strategy::parse(Some("sleep"), None, None, Some(Order::Bfs)).is_err());
    }

    #[test]
    fn levels_are_for_breadth_first_searches() {
        let net = strategy("frontier-safety-net");
        assert_eq!((net.order, net.ends(), net.is_bounded()), (Order::Bfs, true, false));
        assert_eq!((strategy("frontier").order, strategy("frontier").ends()), (Order::Bfs, false));
        let error = Strategy::parse(Some("pebble"), None, None, Some(Order::Dfs)).unwrap_err();
        assert!(error.contains("--order bfs"), "{error}");
        assert!(parse("sleep+pebble").is_err() && parse("snapshots:(c2,LLNR,5)").unwrap_err().contains("(2,LFU,10)"));
        let sized = Strategy::parse(Some("pebble"), None, Some("600".parse().unwrap()), None);
        assert!(sized.unwrap_err().contains("--cache-size"));
    }

    #[test]
    fn limits_are_read_as_written() {
        assert_eq!((parse_redundancy("6x"), parse_redundancy("1.5")), (Ok(600), Ok(150)));
        for text in ["", "x", "0.5x", "-1", "nan"] {
            assert!(parse_redundancy(text).is_err(), "{text}");
        }
    }
}
