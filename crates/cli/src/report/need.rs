//! What would hold all states, where it can be guessed how many there are.

use super::LedgerRow;
use super::climbs::ClimbFacts;
use crate::estimate::Estimate;
use crate::plan::Plan;
use crate::size::show_count;
use plimsoll_search::Stats;
use serde::Serialize;

/// Tables are not always as full as on average, in per cent.
const SPARE_PERCENT: f64 = 115.0;
/// Bytes on disk beside the key of a state: how it was found, and itself while it waits.
const BESIDE_KEY: f64 = 2.0;

/// About how much that is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Need {
    pub states: Estimate,
    /// All of it, for the whole process.
    pub memory_bytes: u64,
    /// Beside the memory that there is.
    pub disk_bytes: u64,
}

impl Need {
    /// Of a search breadth first that held every state at first. What a state takes is known from before it climbed.
    pub fn of(
        states: Option<Estimate>,
        stats: &Stats,
        plan: &Plan,
        climbs: &[ClimbFacts],
        ledger: &[LedgerRow],
    ) -> Option<Need> {
        let states = states.filter(|_| plan.strategy_parts.row.holds_all() || plan.climbs)?;
        let in_memory = ledger.iter().filter(|row| row.medium == "memory");
        let (used, found, store) = match climbs.first() {
            Some(climb) => (climb.memory_bytes - climb.left_bytes, climb.states, climb.bytes_per_state),
            None => {
                let used = in_memory.clone().map(|row| row.peak).sum();
                let store: u64 = in_memory.filter(|row| row.name == "store").map(|row| row.peak).sum();
                (used, stats.states, store as f64 / stats.states.max(1) as f64)
            }
        };
        let all = states.likely as f64 * SPARE_PERCENT / 100.0;
        let fixed = plan.memory_bytes - plan.pool_bytes;
        Some(Need {
            states,
            memory_bytes: fixed + (all * used as f64 / found.max(1) as f64) as u64,
            disk_bytes: (all * (store + BESIDE_KEY)) as u64,
        })
    }

    /// How many states that is for.
    pub fn why(&self) -> String {
        format!("about {} states are expected ({})", show_count(self.states.likely), self.states)
    }
}

/// A size as options take it, rounded up to two digits.
pub fn rounded(bytes: u64) -> String {
    let megabytes = bytes.div_ceil(1 << 20).max(1);
    let step = 10u64.pow(megabytes.ilog10().saturating_sub(1));
    format!("{}M", megabytes.next_multiple_of(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up() {
        let megabytes = |count: u64| rounded(count << 20);
        assert_eq!([megabytes(7), megabytes(99), megabytes(101), megabytes(1_234)], ["7M", "99M", "110M", "1300M"]);
        assert_eq!(rounded(1), "1M");
    }
}
