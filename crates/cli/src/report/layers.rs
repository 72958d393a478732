//! What a search did on disk when memory was full: how many duplicates were recognised where, what was written and read,
//! and where the time went.

use crate::size::{show_bytes, show_count, show_seconds};
use plimsoll_search::{LevelSizes, Stats};
use plimsoll_store::runs::LayersReport;
use serde::Serialize;
use std::fmt::Write;

#[derive(Clone, Debug, Serialize)]
pub struct LayersFacts {
    /// How often tables left memory.
    pub flushes: u64,
    /// What came instead of a tree, if one was given up.
    pub instead_of_tree: Option<&'static str>,
    /// Runs on disk at the end, their keys and their bytes.
    pub runs: u64,
    pub keys: u64,
    pub disk_bytes: u64,
    pub disk_bytes_per_state: f64,
    /// Levels that were kept, where not all were.
    pub levels: Option<u32>,
    /// How often a state can be visited then, at most: once, and once more for each time that so many levels have passed.
    pub most_visits: Option<f64>,
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

const WHOLE: &str = "whole states";
const PACKED: &str = "packed";
const OUTGROWN: &str = "packed, then whole states";

impl LayersFacts {
    pub fn new(report: LayersReport, stats: &Stats, search_seconds: f64) -> LayersFacts {
        let LayersReport { flush_seconds, ask_seconds, merge_seconds, .. } = report;
        let instead = match (report.outgrew_keys, report.whole_states) {
            (true, _) => OUTGROWN,
            (false, true) => WHOLE,
            (false, false) => PACKED,
        };
        LayersFacts {
            flushes: report.flushes,
            instead_of_tree: report.gave_up_tree.then_some(instead),
            runs: report.runs,
            keys: report.keys,
            disk_bytes: report.disk_bytes,
            disk_bytes_per_state: report.disk_bytes as f64 / stats.distinct.max(1) as f64,
            levels: report.levels,
            most_visits: report.levels.map(|levels| 1.0 + f64::from(stats.depth) / f64::from(levels.max(1))),
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

    /// What was written and read in a second of writing and reading.
    pub fn bytes_per_second(&self) -> Option<u64> {
        let bytes = (self.written_bytes + self.read_bytes) as f64;
        (self.disk_seconds > 0.0).then(|| (bytes / self.disk_seconds) as u64)
    }

    /// Share of the successors that were known already, in per cent, that memory knew.
    pub fn caught_in_memory_percent(&self) -> f64 {
        self.known_in_memory as f64 * 100.0 / (self.known_in_memory + self.known_on_disk).max(1) as f64
    }

    /// Lines for people; `sizes` are those of the levels.
    pub fn show(&self, sizes: &LevelSizes, out: &mut String) {
        let mut line = |name: &str, value: String| {
            let _ = writeln!(out, "{name:<18} {value:>15}");
        };
        line("level sizes", curve(&sizes.states));
        if let Some(instead) = self.instead_of_tree {
            line("instead of a tree", instead.into());
        }
        line("runs on disk", format!("{} of {}", show_count(self.runs), show_bytes(self.disk_bytes)));
        line("  bytes/state", format!("{:.1}", self.disk_bytes_per_state));
        if let (Some(levels), Some(visits)) = (self.levels, self.most_visits) {
            line("  levels kept", show_count(levels.into()));
            line("  visits at most", format!("{visits:.1} of a state"));
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

/// Numbers as a row of columns.
fn curve(numbers: &[u64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const WIDTH: usize = 64;
    let sums =
        numbers.chunks(numbers.len().div_ceil(WIDTH).max(1)).map(|part| part.iter().sum::<u64>() / part.len() as u64);
    let highest = sums.clone().max().unwrap_or(0).max(1);
    sums.map(|sum| HEIGHTS[(sum as u128 * 7).div_ceil(highest.into()) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_as_high_as_their_numbers() {
        assert_eq!(curve(&[0, 1, 40, 70, 35]), "▁▂▅█▅");
        let bell: Vec<u64> = (0..200).map(|level| level * (199 - level)).collect();
        let drawn: Vec<char> = curve(&bell).chars().collect();
        assert!((50..=64).contains(&drawn.len()) && drawn[drawn.len() / 2] == '█' && drawn[0] < drawn[9]);
        assert_eq!(curve(&[]), "");
    }
}
