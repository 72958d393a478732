//! What a check has to say: one structure, printed as text or as JSON.

pub mod choice;
pub mod climbs;
pub mod collections;
pub mod counts;
pub mod layers;
pub mod need;
pub mod shortage;
pub mod steps;
pub mod text;
pub mod trace;
pub mod unreached;
pub mod verdict;

use crate::checkpoint;
use crate::estimate::Coverage;
use crate::plan::Plan;
use choice::ChoiceFacts;
use climbs::ClimbFacts;
use collections::CollectionFacts;
use counts::{Costs, Counts, Times};
use layers::LayersFacts;
use plimsoll_store::budget::Entry;
use serde::Serialize;
use shortage::Shortage;
use std::io::{self, BufWriter, Write};
pub use trace::TraceReport;
use unreached::Unreached;
pub use verdict::Judgement;

/// The whole report. The schema of its JSON form is `crates/cli/schema/report.schema.json`.
#[derive(Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Every reachable state was visited, so the counts are those of the model.
    pub complete: bool,
    #[serde(flatten)]
    pub counts: Counts,
    #[serde(flatten)]
    pub coverage: Coverage,
    #[serde(flatten)]
    pub times: Times,
    #[serde(flatten)]
    pub costs: Costs,
    /// What was done on disk, if memory was full.
    pub layers: Option<LayersFacts>,
    /// How the search went on when memory was full, step by step.
    pub climbs: Vec<ClimbFacts>,
    /// How states were held, where the first of them decided that.
    pub choice: Option<ChoiceFacts>,
    /// How often nodes of a tree were given up, where states were forgotten.
    pub collections: Option<CollectionFacts>,
    /// If there is no answer: what ran out, what was covered all the same, and what would help.
    pub shortage: Option<Shortage>,
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
