//! What to do next when a search ran out of something: the one option that would help most.

use super::LedgerRow;
use crate::options::Order;
use crate::plan::Plan;
use plimsoll_search::Why;

/// If what can wait on disk takes more than this share of the memory that is used, disk helps most.
const WAITING_SHARE: u64 = 4;
/// Disk that is suggested, as a multiple of the memory.
const DISK_TIMES: u64 = 10;

/// What would get the search further. `available_bytes` is what this machine could give at most.
pub fn advice(why: &Why, plan: &Plan, ledger: &[LedgerRow], available_bytes: u64) -> Option<String> {
    let advice = match why {
        Why::Memory => memory(plan, ledger, available_bytes),
        Why::Disk(_) => format!("--disk {}", gigabytes(plan.disk_bytes.saturating_mul(2))),
        Why::Time if plan.search == Order::Bfs && plan.workers == 1 => "a longer --time, or more --workers".into(),
        Why::Time => "a longer --time".into(),
        Why::States if plan.most_visits.is_some() => "a larger --max-states, or --time instead; another --seed".into(),
        Why::States => "a larger --max-states".into(),
        Why::Depth => "a larger --max-depth, or --order bfs, which misses nothing nearer".into(),
        Why::Lossy if plan.strategy_parts.hunt.is_some() => "--strategy full, which misses nothing".into(),
        Why::Lossy => "--strategy sleep, which misses nothing".into(),
        // What would help a cache is said where its numbers are.
        Why::Interrupted | Why::Redundancy => return None,
    };
    Some(format!("to get further: {advice}"))
}

fn memory(plan: &Plan, ledger: &[LedgerRow], available_bytes: u64) -> String {
    let in_memory = ledger.iter().filter(|row| row.medium == "memory");
    let (mut used, mut waiting) = (0, 0);
    for row in in_memory {
        used += row.peak;
        waiting += if ["frontier", "step log", "stack"].contains(&row.name.as_str()) { row.peak } else { 0 };
    }
    if plan.disk_bytes == 0 && waiting.saturating_mul(WAITING_SHARE) > used {
        let what = if plan.search == Order::Bfs { "states that wait" } else { "the stack" };
        let disk = gigabytes(plan.memory_bytes.saturating_mul(DISK_TIMES));
        return format!("--disk {disk}, for {what} took much of the memory, and that can be on disk");
    }
    if available_bytes / 3 * 2 > plan.memory_bytes {
        return format!("--memory {}: there is as much", gigabytes(available_bytes));
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
        let says =
            |why: &Why, plan: &Plan, rows: &[LedgerRow], available: u64| advice(why, plan, rows, available).unwrap();
        let (broad, deep) = (plan(Order::Bfs, 0), plan(Order::Dfs, 0));
        let rows = [row("store", 100 << 20), row("frontier", 100 << 20)];
        assert!(says(&Why::Memory, &broad, &rows, 0).contains("--disk 2G, for states that wait"));
        let rows = [row("store", 100 << 20), row("stack", 100 << 20)];
        assert!(says(&Why::Memory, &deep, &rows, 0).contains("--disk 2G, for the stack took"));
        assert!(says(&Why::Memory, &plan(Order::Dfs, 1 << 30), &rows, 8 << 30).contains("--memory 8G"));
        let rows = [row("store", 200 << 20), row("frontier", 1 << 20)];
        assert!(says(&Why::Memory, &broad, &rows, 8 << 30).contains("--memory 8G"));
        assert!(says(&Why::Memory, &broad, &rows, 256 << 20).contains("--strategy"));
        assert!(says(&Why::Time, &broad, &rows, 0).contains("--time"));
        assert_eq!(advice(&Why::Interrupted, &broad, &rows, 0), None);
    }
}
