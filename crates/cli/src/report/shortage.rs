//! A search without an answer: what ran out, where the bytes went, what was covered all the same, and the one option that would
//! help most.

use super::LedgerRow;
use super::need::{Need, rounded};
use crate::options::Order;
use crate::plan::Plan;
use crate::size::{show_bytes, show_count};
use plimsoll_search::{Stats, Why};
use plimsoll_store::Codec;
use serde::Serialize;

/// Parts of the memory that are smaller than this share are not worth naming.
const SMALL_SHARE: u64 = 50;

/// If what can wait on disk takes more than this share of the memory that is used, disk helps most.
const WAITING_SHARE: u64 = 4;
/// Disk that is suggested, as a multiple of the memory.
const DISK_TIMES: u64 = 10;

/// What is known where there is no answer.
#[derive(Clone, Debug, Serialize)]
pub struct Shortage {
    /// What ran out, in a word.
    pub limit: &'static str,
    pub coverage: Coverage,
    /// Where the memory went: the most that each part had.
    pub memory: Vec<Part>,
    /// What would hold all states, about, where that can be guessed.
    pub need: Option<Need>,
    /// What would get the search further.
    pub advice: Option<String>,
}

/// What was covered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// Different states that were visited; about, if some were forgotten.
    pub states: u64,
    /// Breadth first: every state within so many steps was visited.
    pub depth: Option<u32>,
    /// States that were found and not expanded.
    pub waiting: u64,
    /// Breadth first: no more than this share of all states was expanded, for some wait, and nobody knows what they lead to.
    pub share_at_most: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    pub name: String,
    pub bytes: u64,
}

impl Shortage {
    /// `available_bytes` is what this machine could give at most.
    pub fn new(
        why: &Why,
        stats: &Stats,
        plan: &Plan,
        ledger: &[LedgerRow],
        need: Option<Need>,
        available_bytes: u64,
    ) -> Shortage {
        let fixed =
            [("process", plan.process_bytes), ("buffers", plan.buffer_bytes), ("overhead", plan.overhead_bytes)];
        let fixed = fixed.into_iter().map(|(name, bytes)| Part { name: name.into(), bytes });
        let shared = ledger.iter().filter(|row| row.medium == "memory");
        let shared = shared.map(|row| Part { name: row.name.clone(), bytes: row.peak });
        Shortage {
            limit: limit(why),
            coverage: Coverage::new(stats),
            memory: shared.chain(fixed).filter(|part| part.bytes > 0).collect(),
            advice: advice(why, plan, ledger, need.as_ref(), available_bytes),
            need,
        }
    }

    /// Notes for people.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.limit == "memory" {
            let whole: u64 = self.memory.iter().map(|part| part.bytes).sum();
            let mut large: Vec<&Part> = self.memory.iter().filter(|part| part.bytes * SMALL_SHARE > whole).collect();
            large.sort_by_key(|part| std::cmp::Reverse(part.bytes));
            let list = large.iter().map(|part| format!("{} {}", part.name, show_bytes(part.bytes)));
            notes.push(format!("memory went to: {}", list.collect::<Vec<_>>().join(", ")));
        }
        notes.extend(self.coverage.note());
        notes.extend(self.advice.as_ref().map(|advice| format!("to get further: {advice}")));
        notes
    }
}

impl Coverage {
    fn new(stats: &Stats) -> Coverage {
        let is_broad = stats.levels > 0;
        let expanded = stats.states.saturating_sub(stats.frontier);
        Coverage {
            states: stats.distinct.max(stats.held.min(stats.states)),
            depth: is_broad.then_some(stats.depth),
            waiting: stats.frontier,
            share_at_most: is_broad.then(|| expanded as f64 / stats.states.max(1) as f64),
        }
    }

    fn note(&self) -> Option<String> {
        let (depth, share) = (self.depth?, self.share_at_most?);
        Some(format!(
            "covered: every state within {depth} steps; {} states wait to be expanded, so at most {:.0} % of all were",
            show_count(self.waiting),
            (share * 100.0).floor()
        ))
    }
}

fn limit(why: &Why) -> &'static str {
    match why {
        Why::Memory => "memory",
        Why::Disk(_) => "disk",
        Why::Time => "time",
        Why::States => "states",
        Why::Depth => "depth",
        Why::Lossy => "lossy",
        Why::Redundancy => "redundancy",
        Why::Interrupted => "interrupted",
    }
}

/// What would get the search further. `available_bytes` is what this machine could give at most.
fn advice(why: &Why, plan: &Plan, ledger: &[LedgerRow], need: Option<&Need>, available_bytes: u64) -> Option<String> {
    let advice = match why {
        Why::Memory => memory(plan, ledger, need, available_bytes),
        Why::Disk(_) if need.is_some_and(|need| need.disk_bytes > plan.disk_bytes) => {
            need.map_or(String::new(), |need| format!("--disk {}: {}", rounded(need.disk_bytes), need.why()))
        }
        Why::Disk(_) => format!("--disk {}", gigabytes(plan.disk_bytes.saturating_mul(2))),
        Why::Time if plan.search == Order::Bfs && plan.workers == 1 => "a longer --time, or more --workers".into(),
        Why::Time => "a longer --time".into(),
        Why::States if plan.most_visits.is_some() => "a larger --max-states, or --time instead; another --seed".into(),
        Why::States => "a larger --max-states".into(),
        Why::Depth => "a larger --max-depth, or --order bfs, which misses nothing nearer".into(),
        Why::Lossy if plan.strategy_parts.hunt.is_some() => "--strategy full, which misses nothing".into(),
        Why::Lossy => "--strategy sleep, which misses nothing".into(),
        Why::Redundancy if plan.climbs => memory(plan, ledger, need, available_bytes),
        // What would help a cache is said where its numbers are.
        Why::Interrupted | Why::Redundancy => return None,
    };
    Some(advice)
}

fn memory(plan: &Plan, ledger: &[LedgerRow], need: Option<&Need>, available_bytes: u64) -> String {
    let in_memory = ledger.iter().filter(|row| row.medium == "memory");
    let (mut used, mut waiting) = (0, 0);
    for row in in_memory {
        used += row.peak;
        waiting += if ["frontier", "step log", "stack"].contains(&row.name.as_str()) { row.peak } else { 0 };
    }
    // What is guessed can be wrong by a factor, so it must be more than there was.
    let need = need.filter(|need| need.memory_bytes > plan.memory_bytes);
    if let Some(need) = need.filter(|need| need.memory_bytes <= available_bytes) {
        return format!("--memory {}, which would hold all: {}", rounded(need.memory_bytes), need.why());
    }
    if plan.disk_bytes == 0 && waiting.saturating_mul(WAITING_SHARE) > used {
        let what = if plan.search == Order::Bfs { "states that wait" } else { "the stack" };
        let disk = gigabytes(plan.memory_bytes.saturating_mul(DISK_TIMES));
        return format!("--disk {disk}, for {what} took much of the memory, and that can be on disk");
    }
    if available_bytes / 3 * 2 > plan.memory_bytes {
        return format!("--memory {}: there is as much", gigabytes(available_bytes));
    }
    if plan.disk_bytes == 0 && plan.search == Order::Bfs && matches!(plan.codec, Codec::Packed | Codec::Tree) {
        if let Some(need) = need {
            return format!(
                "--disk {}, for the search can go on there and stay exact: {}",
                rounded(need.disk_bytes),
                need.why()
            );
        }
        let disk = gigabytes(plan.memory_bytes.saturating_mul(DISK_TIMES));
        return format!("--disk {disk}, for the search can go on there and stay exact");
    }
    match plan.strategy_parts.row.holds_all() {
        true => "--strategy sleep+cache:LFU, which forgets states and visits them again".into(),
        false => "a smaller model: nothing more can be forgotten".into(),
    }
}

/// A size as options take it.
fn gigabytes(bytes: u64) -> String {
    match bytes >> 30 {
        0 => format!("{}M", (bytes >> 20).max(1)),
        gigabytes => format!("{gigabytes}G"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimate;
    use crate::plan::{Facts, Wishes};
    use crate::size::Size;

    fn plan(order: Order, disk_bytes: u64) -> Plan {
        let facts =
            Facts { used_bits: vec![u32::MAX; 4], most_successors: 10, resident_bytes: 8 << 20, scratch_bytes: 0 };
        let memory = Some(Size::Bytes(256 << 20));
        let wishes = Wishes { memory, disk_bytes, order: Some(order), workers: Some(1), ..Wishes::default() };
        Plan::resolve(&wishes, &facts).unwrap()
    }

    fn row(name: &str, peak: u64) -> LedgerRow {
        LedgerRow { name: name.into(), medium: "memory", granted: peak, used: peak, peak }
    }

    #[test]
    fn the_option_that_helps_most_is_named() {
        let says = |why: &Why, plan: &Plan, rows: &[LedgerRow], available: u64| {
            advice(why, plan, rows, None, available).unwrap()
        };
        let (broad, deep) = (plan(Order::Bfs, 0), plan(Order::Dfs, 0));
        let rows = [row("store", 100 << 20), row("frontier", 100 << 20)];
        assert!(says(&Why::Memory, &broad, &rows, 0).contains("--disk 2G, for states that wait"));
        let rows = [row("store", 100 << 20), row("stack", 100 << 20)];
        assert!(says(&Why::Memory, &deep, &rows, 0).contains("--disk 2G, for the stack took"));
        assert!(says(&Why::Memory, &plan(Order::Dfs, 1 << 30), &rows, 8 << 30).contains("--memory 8G"));
        let rows = [row("store", 200 << 20), row("frontier", 1 << 20)];
        assert!(says(&Why::Memory, &broad, &rows, 8 << 30).contains("--memory 8G"));
        assert!(says(&Why::Memory, &broad, &rows, 256 << 20).contains("--disk 2G, for the search can go on"));
        assert!(says(&Why::Memory, &plan(Order::Bfs, 1 << 30), &rows, 256 << 20).contains("--strategy"));
        assert!(says(&Why::Time, &broad, &rows, 0).contains("--time"));
        assert_eq!(advice(&Why::Interrupted, &broad, &rows, None, 0), None);
        let states = Estimate { low: 5, likely: 9_000_000, high: 20_000_000 };
        let need = |megabytes: u64| Need { states, memory_bytes: megabytes << 20, disk_bytes: 300 << 20 };
        let says = |need: Need| advice(&Why::Memory, &broad, &rows, Some(&need), 1 << 30).unwrap();
        assert!(says(need(512)).starts_with("--memory 520M, which would hold all: about 9,000,000 states"));
        assert!(says(need(4096)).starts_with("--memory 1G"), "that is known to be there");
        assert!(!says(need(128)).contains("expected"), "less than there was is no advice")
    }
}
