//! What a sweep goes over: models, strategies with the orders they allow, and cache sizes.

use super::cells::FULL;
use crate::failure::Failure;
use crate::options::{Order, SweepOptions, name_of};
use crate::presets::{FORGETTING, LEVELS, PRESETS, Preset, Strategy};
use plimsoll_lang::Language;
use plimsoll_store::Room;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Cache sizes in per cent of the states of a model, the largest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<u32>);

/// The step of a range such as `10..100`.
const STEP: usize = 10;

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let percent = |text: &str| {
            let number = text.trim().trim_end_matches('%').trim().parse::<u32>().ok();
            let explain = || format!("`{text}` is not a size from 1 to 100: write 20, 5,10,20 or 10..100 (by tens)");
            number.filter(|percent| (1..=100).contains(percent)).ok_or_else(explain)
        };
        let mut sizes = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                None => sizes.push(percent(part)?),
                Some((low, high)) => sizes.extend((percent(low)?..=percent(high)?).step_by(STEP)),
            }
        }
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.dedup();
        if sizes.is_empty() { Err(format!("`{text}` holds no size")) } else { Ok(Sizes(sizes)) }
    }
}

/// The strategy with which caches of codes are tried, as in the paper.
const STRATIFIED: &str = "cache:SC";

/// A strategy in an order that it allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// None if the strategy has one of its own.
    pub order: Option<Order>,
    /// The name, complete.
    pub strategy: String,
    /// Is its room a choice? If not, there is one run.
    pub sized: bool,
}

impl Way {
    /// The order as `check` has it; empty if there is no choice.
    pub fn order_name(&self) -> String {
        self.order.map_or(String::new(), name_of)
    }

    /// Each of them once, and at least one.
    fn once(ways: Vec<Way>) -> Result<Vec<Way>, Failure> {
        let mut once: Vec<Way> = Vec::new();
        for way in ways {
            if !once.contains(&way) {
                once.push(way);
            }
        }
        match once.is_empty() {
            true => Err(Failure::usage("none of the strategies allows any of the orders")),
            false => Ok(once),
        }
    }
}

/// All strategies asked for in all orders that make sense.
pub fn ways(options: &SweepOptions) -> Result<Vec<Way>, Failure> {
    let given = options.strategy.iter().map(String::as_str);
    let usual = || match options.stores {
        true => vec![FULL, STRATIFIED],
        false => FORGETTING.into_iter().chain([FULL]).chain(LEVELS).collect(),
    };
    let names: Vec<&str> = if options.strategy.is_empty() { usual() } else { given.collect() };
    let mut ways: Vec<Way> = Vec::new();
    for name in names {
        let strategy = Strategy::parse(Some(name), None, None, None).map_err(Failure::usage)?;
        if strategy.hunt.is_some() {
            let message = format!("strategy `{name}` looks for something, not at everything: --resources tries it");
            return Err(Failure::usage(message));
        }
        let row = &strategy.row;
        let sized = row.forgets() && !row.has_levels() && row.kept_levels().is_none();
        if sized {
            let sized = strategy.row.sized(Room::States(1));
            sized.map_err(|error| Failure::usage(format!("{error}: sweep chooses sizes")))?;
        }
        ways.extend(allowed(options, &strategy).map(|order| Way {
            order: Some(order),
            strategy: strategy.name(),
            sized,
        }));
    }
    // What has no size is held against what holds every state.
    for index in 0..ways.len() {
        if !ways[index].sized {
            ways.push(Way { strategy: FULL.into(), ..ways[index].clone() });
        }
    }
    Way::once(ways)
}

/// What `--resources` tries: every strategy of the table but for those that need a disk, in every order that makes sense; or
/// those that were asked for.
pub fn scaling_ways(options: &SweepOptions) -> Result<Vec<Way>, Failure> {
    let mut names: Vec<&str> = options.strategy.iter().map(String::as_str).collect();
    if names.is_empty() {
        let in_memory = |preset: &&Preset| preset.strategy().row.kept_levels().is_none();
        names.extend(PRESETS.iter().filter(in_memory).map(|preset| preset.example));
    }
    let mut ways: Vec<Way> = Vec::new();
    for name in names {
        let strategy = Strategy::parse(Some(name), None, None, None).map_err(Failure::usage)?;
        let way = |order: Option<Order>| Way { order, strategy: strategy.name(), sized: false };
        match strategy.hunt {
            Some(_) => ways.push(way(None)),
            None => ways.extend(allowed(options, &strategy).map(|order| way(Some(order)))),
        }
    }
    Way::once(ways)
}

/// The orders asked for that make a difference.
fn allowed<'a>(options: &'a SweepOptions, strategy: &'a Strategy) -> impl Iterator<Item = Order> + 'a {
    // Depth first, `cover` is the same as `cache`.
    let differs = |order: Order| order == Order::Bfs || !strategy.row.holds_ancestors();
    orders(options).iter().copied().filter(move |&order| strategy.allows(order) && differs(order))
}

/// The orders asked for. Stores are compared breadth first, unless somebody says otherwise.
pub fn orders(options: &SweepOptions) -> &[Order] {
    match &options.orders[..] {
        [] if options.stores => &[Order::Bfs],
        [] => &[Order::Bfs, Order::Dfs],
        given => given,
    }
}

/// The model, or the models of the folder, with the names they have in the tables.
pub fn models(options: &SweepOptions) -> Result<Vec<(String, PathBuf)>, Failure> {
    let path = &options.models;
    let unreadable = |error| Failure::usage(format!("{}: cannot be read: {error}", path.display()));
    let mut files = Vec::new();
    if std::fs::metadata(path).map_err(unreadable)?.is_file() {
        files.push(path.clone());
    } else {
        let inner = path.join("models");
        let folder: &Path = if inner.is_dir() { &inner } else { path };
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or("");
            if file.is_file() && Language::of_extension(extension).is_some() {
                files.push(file);
            }
        }
    }
    files.sort();
    let name = |file: &Path| file.file_name().map_or(String::new(), |name| name.to_string_lossy().to_string());
    let wanted = |name: &String| options.filter.as_ref().is_none_or(|text| name.contains(text.as_str()));
    let models: Vec<_> = files.into_iter().map(|file| (name(&file), file)).filter(|(name, _)| wanted(name)).collect();
    match models.is_empty() {
        true => Err(Failure::usage(format!("{}: there is no model to try", path.display()))),
        false => Ok(models),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_written() {
        assert_eq!("10%..100%".parse(), Ok(Sizes((1..=10).rev().map(|tens| tens * 10).collect())));
        assert_eq!("5, 10..30,20".parse(), Ok(Sizes(vec![30, 20, 10, 5])));
        for text in ["", "0", "101", "ten", "50..10", "10..", "10;20"] {
            let error = text.parse::<Sizes>().unwrap_err();
            assert!(error.contains("size"), "{text}: {error}");
        }
    }
}
