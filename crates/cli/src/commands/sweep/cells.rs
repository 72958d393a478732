//! What is measured: models without a cache, and cells, which are runs with a cache of one size.

use super::settings::Way;
use crate::options::{Order, name_of};
use serde_json::Value;

/// The strategy that holds every state, and the store of what is given no size.
pub const FULL: &str = "full";
pub const USUAL_STORE: &str = "auto";

/// A model, searched with every state held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Base {
    pub model: String,
    /// Tells whether the text has changed.
    pub text: String,
    /// `ok`, `small`, `large`, or why it could not be measured.
    pub status: String,
    pub states: u64,
    pub transitions: u64,
    /// Breadth-first levels.
    pub height: u64,
    /// Longest path of the depth-first search.
    pub depth: u64,
    /// Bytes of a state vector.
    pub vector: u64,
    /// Memory of the visited states as plain vectors and in the compressed store, tables included.
    pub plain_bytes: u64,
    pub tree_bytes: u64,
    /// Processor time of the searches.
    pub bfs_seconds: f64,
    pub dfs_seconds: f64,
}

impl Base {
    pub const COLUMNS: [&str; 12] = [
        "model",
        "text",
        "status",
        "states",
        "transitions",
        "height",
        "depth",
        "vector_bytes",
        "plain_bytes",
        "tree_bytes",
        "bfs_cpu_seconds",
        "dfs_cpu_seconds",
    ];

    pub fn row(&self) -> Vec<String> {
        let counts = [self.states, self.transitions, self.height, self.depth, self.vector];
        let bytes = [self.plain_bytes, self.tree_bytes];
        let seconds = [self.bfs_seconds, self.dfs_seconds].map(|seconds| format!("{seconds:.4}"));
        let mut row = vec![self.model.clone(), self.text.clone(), self.status.clone()];
        row.extend(counts.iter().chain(&bytes).map(u64::to_string));
        row.extend(seconds);
        row
    }

    pub fn of_row(row: &[String]) -> Option<Base> {
        let count = |index: usize| row[index].parse::<u64>().ok();
        Some(Base {
            model: row[0].clone(),
            text: row[1].clone(),
            status: row[2].clone(),
            states: count(3)?,
            transitions: count(4)?,
            height: count(5)?,
            depth: count(6)?,
            vector: count(7)?,
            plain_bytes: count(8)?,
            tree_bytes: count(9)?,
            bfs_seconds: row[10].parse().ok()?,
            dfs_seconds: row[11].parse().ok()?,
        })
    }

    /// Is it among the models to be swept?
    pub fn is_swept(&self) -> bool {
        self.status == "ok"
    }

    pub fn degree(&self) -> f64 {
        self.transitions as f64 / self.states.max(1) as f64
    }

    pub fn seconds(&self, order: &str) -> f64 {
        if order == name_of(Order::Bfs) { self.bfs_seconds } else { self.dfs_seconds }
    }
}

/// A run of a strategy, most with a cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub model: String,
    pub order: String,
    pub strategy: String,
    /// How states are held, as `check` has it but for training with a share of the states.
    pub store: String,
    /// Room in per cent of the states of the model; 0 where that is no choice.
    pub percent: u32,
    /// `complete`; what ran out (`states`, `memory`, `time`); or `failed: ...`.
    pub result: String,
    pub visits: u64,
    pub transitions: u64,
    pub matched: u64,
    pub depth: u64,
    pub seconds: f64,
    /// Memory of the cache alone, and of all structures.
    pub store_bytes: u64,
    pub all_bytes: u64,
    /// Of the code of a state, where there is one.
    pub code_bytes: f64,
}

impl Cell {
    pub const COLUMNS: [&str; 14] = [
        "model",
        "order",
        "strategy",
        "store",
        "cache_percent",
        "result",
        "visits",
        "transitions",
        "matched",
        "depth",
        "cpu_seconds",
        "store_bytes",
        "all_bytes",
        "code_bytes",
    ];

    pub fn new(base: &Base, way: &Way, store: &str, percent: u32) -> Cell {
        let (model, order, strategy) = (base.model.clone(), way.order_name(), way.strategy.clone());
        Cell { model, order, strategy, store: store.into(), percent, ..Cell::default() }
    }

    /// Takes over what a report says.
    pub fn fill(&mut self, report: &Value) {
        let count = |name: &str| report[name].as_u64().unwrap_or(0);
        let reason = report["reason"].as_str().unwrap_or("");
        self.result = match report["complete"] == Value::Bool(true) {
            true => "complete".into(),
            false => reason.split(':').next().unwrap_or("").to_string(),
        };
        (self.visits, self.transitions) = (count("states"), count("transitions"));
        (self.matched, self.depth) = (count("matched"), count("depth"));
        self.seconds = report["cpu_seconds"].as_f64().unwrap_or(0.0);
        (self.store_bytes, self.all_bytes) = ledger_bytes(report);
        self.code_bytes = report["code_bytes"].as_f64().unwrap_or(0.0);
    }

    pub fn row(&self) -> Vec<String> {
        let mut row = vec![self.model.clone(), self.order.clone(), self.strategy.clone(), self.store.clone()];
        row.extend([self.percent.to_string(), self.result.clone()]);
        row.extend([self.visits, self.transitions, self.matched, self.depth].map(|count| count.to_string()));
        row.push(format!("{:.4}", self.seconds));
        row.extend([self.store_bytes, self.all_bytes].map(|bytes| bytes.to_string()));
        row.push(format!("{:.3}", self.code_bytes));
        row
    }

    pub fn of_row(row: &[String]) -> Option<Cell> {
        let count = |index: usize| row[index].parse::<u64>().ok();
        let [model, order, strategy, store] = [0, 1, 2, 3].map(|index: usize| row[index].clone());
        Some(Cell {
            model,
            order,
            strategy,
            store,
            percent: row[4].parse().ok()?,
            result: row[5].clone(),
            visits: count(6)?,
            transitions: count(7)?,
            matched: count(8)?,
            depth: count(9)?,
            seconds: row[10].parse().ok()?,
            store_bytes: count(11)?,
            all_bytes: count(12)?,
            code_bytes: row[13].parse().ok()?,
        })
    }

    /// Is its room a choice?
    pub fn is_sized(&self) -> bool {
        self.percent > 0
    }

    pub fn is_complete(&self) -> bool {
        self.result == "complete"
    }

    /// Did the run die? Then it is tried again.
    pub fn has_failed(&self) -> bool {
        self.result.starts_with("failed")
    }

    /// Are the two the same run?
    pub fn is_same_run(&self, other: &Cell) -> bool {
        self.percent == other.percent
            && self.model == other.model
            && self.strategy == other.strategy
            && self.order == other.order
            && self.store == other.store
    }

    pub fn is_breadth_first(&self) -> bool {
        self.order == name_of(Order::Bfs)
    }

    pub fn way(&self) -> String {
        format!("{} {}", self.order, self.strategy)
    }
}

/// Peak bytes in memory of the store, and of all structures.
pub fn ledger_bytes(report: &Value) -> (u64, u64) {
    let rows = report["ledger"].as_array().map_or(&[][..], Vec::as_slice);
    let peak = |row: &Value| row["peak"].as_u64().unwrap_or(0);
    let memory = rows.iter().filter(|row| row["medium"] == "memory");
    let store = memory.clone().filter(|row| row["name"] == "store").map(peak).sum();
    (store, memory.map(peak).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_are_read_as_written() {
        let base = Base { model: "m.dve".into(), status: "ok".into(), states: 7, bfs_seconds: 0.5, ..Base::default() };
        assert_eq!(base.row().len(), Base::COLUMNS.len());
        assert_eq!(Base::of_row(&base.row()), Some(base.clone()));
        let way = Way { order: Some(Order::Dfs), strategy: "cache:MFU:25%,LRU:75%".into(), sized: true };
        let mut cell = Cell::new(&base, &way, "plain", 20);
        cell.fill(&json!({
            "complete": false, "reason": "states: the limit is reached", "states": 42, "cpu_seconds": 1.5, "code_bytes": 3.25,
            "ledger": [{"name": "store", "medium": "memory", "peak": 5}, {"name": "stack", "medium": "memory", "peak": 6}]
        }));
        assert_eq!((cell.result.as_str(), cell.visits, cell.store_bytes, cell.all_bytes), ("states", 42, 5, 11));
        assert_eq!((cell.code_bytes, cell.is_sized(), Cell::default().is_sized()), (3.25, true, false));
        assert_eq!(cell.row().len(), Cell::COLUMNS.len());
        assert_eq!(Cell::of_row(&cell.row()), Some(cell.clone()));
        assert!(cell.is_same_run(&Cell::new(&base, &way, "plain", 20)));
        assert!(!cell.is_same_run(&Cell::new(&base, &way, "tree", 20)));
    }
}
