//! What a check has to say: one structure, printed as text or as JSON.

pub mod advice;
pub mod steps;
pub mod text;
pub mod trace;
pub mod unreached;
pub mod verdict;

use crate::plan::Plan;
use crate::{checkpoint, machine};
use plimsoll_search::Stats;
use plimsoll_store::Odds;
use plimsoll_store::budget::Entry;
use serde::Serialize;
use std::io::{self, BufWriter, Write};
pub use trace::TraceReport;
use unreached::Unreached;
pub use verdict::Judgement;

/// The whole report. The schema of its JSON form is `crates/cli/schema/report.schema.json`.
#[derive(Serialize)]
pub struct Report {
    pub verdict: &'static str,
    /// The verdict for people.
    #[serde(skip)]
    pub headline: &'static str,
    pub reason: String,
    pub exit_code: u8,
    /// Every reachable state was visited, so the counts are those of the model.
    pub complete: bool,
    pub states: u64,
    pub transitions: u64,
    pub levels: u32,
    pub depth: u32,
    pub deadlocks: u64,
    pub faults: u64,
    pub failed_assertions: u64,
    pub property_hits: u64,
    pub widest_frontier: u64,
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
    /// States that a cache holds, and may hold.
    pub cache_states: u64,
    pub cache_capacity: u64,
    /// Time of the search alone.
    pub seconds: f64,
    /// Processor time of the search alone.
    pub cpu_seconds: f64,
    pub load_seconds: f64,
    pub total_seconds: f64,
    pub states_per_second: f64,
    /// Peaks of all structures in the ledger, divided by states.
    pub bytes_per_state: f64,
    pub memory_budget: u64,
    pub peak_rss: u64,
    pub ledger: Vec<LedgerRow>,
    pub executor: &'static str,
    pub model: ModelFacts,
    pub plan: Plan,
    pub trace: Option<TraceReport>,
    /// What else is wrong, if that was asked.
    pub others: Vec<Other>,
    /// What was never taken, if that was asked.
    pub unreached: Option<Vec<Unreached>>,
    pub notes: Vec<String>,
    /// What was left to go on from.
    pub checkpoint: Option<checkpoint::Facts>,
}

/// Another violation than the first.
#[derive(Serialize)]
pub struct Other {
    pub verdict: &'static str,
    #[serde(skip)]
    pub headline: &'static str,
    pub reason: String,
    pub trace: TraceReport,
}

/// Who was granted how much, and used it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LedgerRow {
    pub name: String,
    /// `memory` or `disk`.
    pub medium: &'static str,
    pub granted: u64,
    pub used: u64,
    pub peak: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct ModelFacts {
    pub name: String,
    pub file: String,
    pub language: &'static str,
    pub processes: usize,
    pub commands: usize,
    pub properties: usize,
    pub state_bytes: usize,
}

/// Times in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub load: f64,
    pub search: f64,
    pub search_cpu: f64,
    pub total: f64,
}

/// What a report is made from.
pub struct Parts {
    pub judgement: Judgement,
    pub stats: Stats,
    pub complete: bool,
    pub times: Times,
    pub ledger: Vec<LedgerRow>,
    pub executor: &'static str,
    pub model: ModelFacts,
    pub plan: Plan,
    pub trace: Option<TraceReport>,
    pub others: Vec<Other>,
    pub unreached: Option<Vec<Unreached>>,
    pub notes: Vec<String>,
}

impl Report {
    pub fn new(parts: Parts) -> Report {
        let Parts { judgement, stats, complete, times, ledger, .. } = parts;
        let Parts { executor, model, plan, trace, others, unreached, notes, .. } = parts;
        let peaks: u64 = ledger.iter().filter(|row| row.medium == "memory").map(|row| row.peak).sum();
        let per = |amount: f64, unit: f64| if unit > 0.0 { amount / unit } else { 0.0 };
        Report {
            verdict: judgement.verdict,
            headline: judgement.headline,
            reason: judgement.reason,
            exit_code: judgement.exit_code,
            complete,
            states: stats.states,
            transitions: stats.transitions,
            levels: stats.levels,
            depth: stats.depth,
            deadlocks: stats.deadlocks,
            faults: stats.faults,
            failed_assertions: stats.failed_assertions,
            property_hits: stats.property_hits,
            widest_frontier: stats.widest_frontier,
            matched: stats.matched,
            forgotten: stats.forgotten,
            distinct: stats.distinct,
            redundancy: stats.redundancy(),
            expected_omissions: stats.odds.map(Odds::omissions),
            miss_probability: stats.odds.map(Odds::probability),
            cache_states: stats.held,
            cache_capacity: stats.capacity,
            seconds: times.search,
            cpu_seconds: times.search_cpu,
            load_seconds: times.load,
            total_seconds: times.total,
            states_per_second: per(stats.states as f64, times.search),
            bytes_per_state: per(peaks as f64, stats.states as f64),
            memory_budget: plan.memory_bytes,
            peak_rss: machine::peak_resident_bytes(),
            ledger,
            executor,
            model,
            plan,
            trace,
            others,
            unreached,
            notes,
            checkpoint: None,
        }
    }
}

/// Prints something as one JSON object, piece by piece, ending with a newline.
pub fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The rows of a ledger of memory or of disk.
pub fn ledger_rows(entries: Vec<Entry>, medium: &'static str) -> impl Iterator<Item = LedgerRow> {
    entries.into_iter().map(move |entry| LedgerRow {
        name: entry.name,
        medium,
        granted: entry.cap_bytes,
        used: entry.used_bytes,
        peak: entry.peak_bytes,
    })
}
