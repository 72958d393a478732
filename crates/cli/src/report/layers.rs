//! What a search did on disk when memory was full: how many duplicates were recognised where, what was written and read,
//! and where the time went.

use crate::size::{show_bytes, show_count, show_seconds};
use plimsoll_search::Stats;
use plimsoll_store::runs::LayersReport;
use serde::Serialize;
use std::fmt::Write;

#[derive(Clone, Debug, Serialize)]
pub struct LayersFacts {
    /// How often tables left memory.
    pub flushes: u64,
    /// Runs on disk at the end, their keys and their bytes.
    pub runs: u64,
    pub keys: u64,
    pub disk_bytes: u64,
    pub disk_bytes_per_state: f64,
    /// Levels that were kept, where not all were.
    pub levels: Option<u32>,
    /// Successors that were known already: those that memory knew, and those that only the disk did.
    pub known_in_memory: u64,
    pub known_on_disk: u64,
    /// States that memory did not know.
    pub candidates: u64,
    /// Questions to runs that filters answered, and those that were answered by reading.
    pub filtered: u64,
    pub looked_for: u64,
    pub written_bytes: u64,
    pub read_bytes: u64,
    /// Time of all workers for writing tables, for asking runs and for merging them.
    pub flush_seconds: f64,
    pub ask_seconds: f64,
    pub merge_seconds: f64,
    /// The part of it that was reading and writing.
    pub disk_seconds: f64,
    /// What is left of the time of one worker: for expanding states and for tables in memory.
    pub other_seconds: f64,
}

impl LayersFacts {
    pub fn new(report: LayersReport, stats: &Stats, search_seconds: f64) -> LayersFacts {
        let LayersReport { flush_seconds, ask_seconds, merge_seconds, .. } = report;
        LayersFacts {
            flushes: report.flushes,
            runs: report.runs,
            keys: report.keys,
            disk_bytes: report.disk_bytes,
            disk_bytes_per_state: report.disk_bytes as f64 / stats.distinct.max(1) as f64,
            levels: report.levels,
            known_in_memory: stats.matched.saturating_sub(report.known),
            known_on_disk: report.known,
            candidates: report.candidates,
            filtered: report.filtered,
            looked_for: report.looked_for,
            written_bytes: report.written_bytes,
            read_bytes: report.read_bytes,
            flush_seconds,
            ask_seconds,
            merge_seconds,
            disk_seconds: report.disk_seconds,
            other_seconds: (search_seconds - flush_seconds - ask_seconds - merge_seconds).max(0.0),
        }
    }

    /// Share of the successors that were known already, in per cent, that memory knew.
    pub fn caught_in_memory_percent(&self) -> f64 {
        self.known_in_memory as f64 * 100.0 / (self.known_in_memory + self.known_on_disk).max(1) as f64
    }

    /// Lines for people.
    pub fn show(&self, out: &mut String) {
        let mut line = |name: &str, value: String| {
            let _ = writeln!(out, "{name:<18} {value:>15}");
        };
        line("runs on disk", format!("{} of {}", show_count(self.runs), show_bytes(self.disk_bytes)));
        line("  bytes/state", format!("{:.1}", self.disk_bytes_per_state));
        if let Some(levels) = self.levels {
            line("  levels kept", show_count(levels.into()));
        }
        line("tables written", show_count(self.flushes));
        line("duplicates caught", format!("{:.1} % in memory", self.caught_in_memory_percent()));
        let asked = (self.filtered + self.looked_for).max(1);
        line("filters spared", format!("{:.1} %", self.filtered as f64 * 100.0 / asked as f64));
        line("written, read", format!("{}, {}", show_bytes(self.written_bytes), show_bytes(self.read_bytes)));
        let seconds = [self.flush_seconds, self.ask_seconds, self.merge_seconds, self.disk_seconds].map(show_seconds);
        let [flush, ask, merge, disk] = seconds;
        line(
            "time on disk",
            format!("writing {flush}, asking {ask}, merging {merge}; {disk} of it reading and writing"),
        );
    }
}
