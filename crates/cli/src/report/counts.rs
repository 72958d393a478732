//! What was counted and measured, as reports have it.

use super::LedgerRow;
use crate::machine;
use plimsoll_search::{LevelSizes, Stats};
use plimsoll_store::Odds;
use serde::Serialize;

/// What the search counted.
#[derive(Clone, Debug, Serialize)]
pub struct Counts {
    pub states: u64,
    pub transitions: u64,
    pub levels: u32,
    pub depth: u32,
    pub deadlocks: u64,
    pub faults: u64,
    pub failed_assertions: u64,
    pub property_hits: u64,
    pub widest_frontier: u64,
    /// Breadth first: states found on each level.
    pub level_sizes: LevelSizes,
    /// Successors that the store knew.
    pub matched: u64,
    /// States that a cache gave up. If there are any, some states were visited and counted more than once.
    pub forgotten: u64,
    /// Different states visited; about, if some were forgotten.
    pub distinct: u64,
    /// Visits per different state.
    pub redundancy: f64,
    /// If the store may take states for others: how many it is expected to have missed, and the probability that it missed any.
    pub expected_omissions: Option<f64>,
    pub miss_probability: Option<f64>,
    /// Bytes of the Huffman code of a state on average, where each is held as it is.
    pub code_bytes: Option<f64>,
    /// States that a cache holds, and may hold.
    pub cache_states: u64,
    pub cache_capacity: u64,
}

impl Counts {
    pub fn of(stats: &Stats) -> Counts {
        Counts {
            states: stats.states,
            transitions: stats.transitions,
            levels: stats.levels,
            depth: stats.depth,
            deadlocks: stats.deadlocks,
            faults: stats.faults,
            failed_assertions: stats.failed_assertions,
            property_hits: stats.property_hits,
            widest_frontier: stats.widest_frontier,
            level_sizes: stats.level_sizes.clone(),
            matched: stats.matched,
            forgotten: stats.forgotten,
            distinct: stats.distinct,
            redundancy: stats.redundancy(),
            expected_omissions: stats.odds.map(Odds::omissions),
            miss_probability: stats.odds.map(Odds::probability),
            code_bytes: stats.code_bytes.map(|bytes| ratio(bytes as f64, stats.states as f64)),
            cache_states: stats.held,
            cache_capacity: stats.capacity,
        }
    }
}

/// Times in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// Time of the search alone.
    #[serde(rename = "seconds")]
    pub search: f64,
    /// Processor time of the search alone.
    #[serde(rename = "cpu_seconds")]
    pub search_cpu: f64,
    #[serde(rename = "load_seconds")]
    pub load: f64,
    #[serde(rename = "total_seconds")]
    pub total: f64,
}

/// What a state costs, and the memory of the whole process.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Costs {
    pub states_per_second: f64,
    /// Peaks of all structures in the ledger, divided by states.
    pub bytes_per_state: f64,
    pub memory_budget: u64,
    pub peak_rss: u64,
}

impl Costs {
    pub fn of(stats: &Stats, times: Times, ledger: &[LedgerRow], memory_budget: u64) -> Costs {
        let peaks: u64 = ledger.iter().filter(|row| row.medium == "memory").map(|row| row.peak).sum();
        Costs {
            states_per_second: ratio(stats.states as f64, times.search),
            bytes_per_state: ratio(peaks as f64, stats.states as f64),
            memory_budget,
            peak_rss: machine::peak_resident_bytes(),
        }
    }
}

fn ratio(amount: f64, unit: f64) -> f64 {
    if unit > 0.0 { amount / unit } else { 0.0 }
}
