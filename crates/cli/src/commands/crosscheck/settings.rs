//! What a model is checked under: every strategy of the table in every order it allows, with every store and executor,
//! several workers, little memory, and the ways of looking that change no answer.

use crate::hunt::Hunt;
use crate::options::{ExecutorName, Order, STORES, StoreName, name_of};
use crate::presets::{PRESETS, Strategy};
use clap::ValueEnum;
use plimsoll_store::{Codec, Room};

/// Workers that must find what one finds.
const WORKERS: [u64; 2] = [2, 3];
/// Caches for so many per cent of the states forget some of them; the smaller one is tried once.
const CACHE_PERCENT: u64 = 80;
const SMALL_CACHE_PERCENT: u64 = 30;
/// Visits of a hunt: so many for each state, and at least so many.
const HUNT_TIMES: u64 = 20;
const HUNT_VISITS: u64 = 10_000;
/// Disk, where there is some.
const DISK: &str = "256M";

/// One way to check. What is as usual is not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    pub strategy: Option<&'static str>,
    pub order: Option<Order>,
    pub store: StoreName,
    pub executor: ExecutorName,
    /// One, if nobody says otherwise, so that reports do not depend on the machine.
    pub workers: Option<u64>,
    pub cache_states: Option<u64>,
    pub memory: Option<String>,
    pub disk: Option<&'static str>,
    /// Where a search need not end, or takes forever.
    pub most_visits: Option<u64>,
    pub merged: bool,
    /// End with the first violation.
    pub stops: bool,
}

impl Setting {
    /// The one that all others are compared with: the semantics, and nothing clever.
    pub fn reference() -> Setting {
        let (store, executor) = (StoreName::Plain, ExecutorName::Interp);
        Setting { order: Some(Order::Bfs), store, executor, ..Setting::default() }
    }

    /// The strategy, with all that follows from it.
    pub fn parts(&self) -> Strategy {
        Strategy::parse(self.strategy, None, None, self.order).expect("only what can be parsed is tried")
    }

    /// The options of `check`; `as_usual` is merging as the user wants it.
    pub fn arguments(&self, as_usual: bool) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            arguments.extend(value.into_iter().flat_map(|value| [name.to_string(), value]));
        };
        add("--strategy", self.strategy.map(String::from));
        add("--order", self.order.map(name_of));
        add("--store", (self.store != StoreName::Auto).then(|| self.store.to_string()));
        add("--executor", (self.executor != ExecutorName::Jit).then(|| name_of(self.executor)));
        add("--workers", Some(self.workers.unwrap_or(1).to_string()));
        add("--cache-size", self.cache_states.map(|states| states.to_string()));
        add("--memory", self.memory.clone());
        add("--disk", self.disk.map(String::from));
        add("--max-states", self.most_visits.map(|visits| visits.to_string()));
        add("--merge", (!as_usual).then(|| if self.merged { "on" } else { "off" }.into()));
        arguments.extend((!self.stops).then(|| "--keep-going".to_string()));
        arguments
    }

    /// Settings that differ in one thing less from what is usual.
    pub fn simpler(&self) -> Vec<Setting> {
        let usual = Setting { order: self.order, ..Setting::default() };
        let simpler = [
            Setting { disk: None, ..self.clone() },
            Setting { memory: None, ..self.clone() },
            Setting { workers: None, ..self.clone() },
            Setting { store: usual.store, ..self.clone() },
            Setting { executor: usual.executor, ..self.clone() },
            Setting { cache_states: None, ..self.clone() },
            Setting { merged: false, ..self.clone() },
            Setting { strategy: None, cache_states: None, most_visits: None, ..self.clone() },
            Setting { order: None, ..self.clone() },
        ];
        let parses = |setting: &Setting| Strategy::parse(setting.strategy, None, None, setting.order).is_ok();
        simpler.into_iter().filter(|setting| setting != self && parses(setting)).collect()
    }
}

/// A setting, and the number of an earlier one whose report it must repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub setting: Setting,
    pub repeats: Option<usize>,
}

/// All that is tried on a model of so many states, with little memory of this size.
pub fn trials(states: u64, little_memory: &str) -> Vec<Trial> {
    let mut trials: Vec<Trial> = Vec::new();
    let ways: Vec<Setting> = ways(states).collect();
    assert_eq!(exact_stores().next(), Some(StoreName::default()), "it comes first, and workers repeat it");
    for way in &ways {
        let first = trials.len();
        let mut add = |setting: Setting, repeats: Option<usize>| trials.push(Trial { setting, repeats });
        for &executor in ExecutorName::value_variants() {
            // What hunts has no such store.
            let hunts = way.parts().hunt.is_some();
            for store in exact_stores().filter(|&store| !hunts || store == StoreName::Auto) {
                add(Setting { store, executor, ..way.clone() }, None);
            }
            add(Setting { executor, stops: true, ..way.clone() }, None);
        }
        let shared = way.parts().hunt.map_or(way.parts().order == Order::Bfs, Hunt::is_shared);
        for workers in WORKERS.into_iter().filter(|_| shared) {
            add(Setting { workers: Some(workers), ..way.clone() }, Some(first));
            add(Setting { workers: Some(workers), stops: true, ..way.clone() }, None);
        }
        if way.cache_states.is_some() {
            add(Setting { cache_states: Some(states * SMALL_CACHE_PERCENT / 100 + 1), ..way.clone() }, None);
        }
        for disk in [None, Some(DISK)] {
            let memory = Some(little_memory.to_string());
            add(Setting { memory, disk, ..way.clone() }, None);
        }
        add(Setting { merged: true, ..way.clone() }, None);
    }
    trials
}

/// Stores that lose no state, so that their counts must agree.
fn exact_stores() -> impl Iterator<Item = StoreName> {
    let stores =
        STORES.iter().map(|store| store.example.parse::<StoreName>().expect("the table has stores that there are"));
    stores.filter(|store| store.codec().is_none_or(Codec::is_injective))
}

/// Every strategy in every order. What forgets is made to.
fn ways(states: u64) -> impl Iterator<Item = Setting> {
    PRESETS.iter().flat_map(move |preset| {
        let allowed = |order: &Order| Strategy::parse(Some(preset.example), None, None, Some(*order)).is_ok();
        let orders: Vec<Order> = Order::value_variants().iter().copied().filter(allowed).collect();
        // Some have an order of their own.
        let orders = if orders.is_empty() { vec![None] } else { orders.into_iter().map(Some).collect() };
        orders.into_iter().map(move |order| {
            let row = preset.strategy().row;
            let sizes = row.forgets() && row.sized(Room::States(1)).is_ok();
            let cache_states = sizes.then_some(states * CACHE_PERCENT / 100 + 1);
            let most_visits = preset.strategy().hunt.map(|_| states.saturating_mul(HUNT_TIMES).max(HUNT_VISITS));
            Setting { strategy: Some(preset.example), order, cache_states, most_visits, ..Setting::default() }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_tried_with_everything() {
        let trials = trials(1000, "40M");
        let any = |with: &dyn Fn(&Setting) -> bool| trials.iter().any(|trial| with(&trial.setting));
        for preset in &PRESETS {
            let of = |setting: &Setting| setting.strategy == Some(preset.example);
            for store in exact_stores().filter(|_| preset.strategy().hunt.is_none()) {
                assert!(any(&|setting| of(setting) && setting.store == store), "{} {store:?}", preset.name);
            }
            for &executor in ExecutorName::value_variants() {
                assert!(any(&|setting| of(setting) && setting.executor == executor), "{} {executor:?}", preset.name);
            }
            assert!(any(&|setting| of(setting) && setting.disk.is_some() && setting.memory.is_some()));
        }
        assert!(any(&|setting| setting.workers == Some(3) && setting.order == Some(Order::Bfs)));
        for trial in &trials {
            if let Some(repeated) = trial.repeats {
                let one = Setting { workers: None, ..trial.setting.clone() };
                assert_eq!(trials[repeated].setting, one, "a report is repeated with other workers only");
            }
        }
    }

    #[test]
    fn what_is_usual_is_not_said() {
        assert_eq!(Setting::default().arguments(true), ["--workers", "1", "--keep-going"]);
        let said = Setting::reference().arguments(false).join(" ");
        assert_eq!(said, "--order bfs --store plain --executor interp --workers 1 --merge off --keep-going");
        assert!(Setting::default().simpler().is_empty());
        let simpler = Setting { stops: true, strategy: Some("cache:LRU"), ..Setting::reference() }.simpler();
        assert_eq!(simpler.len(), 4, "without strategy, store, executor, order");
    }
}
