//! The report for people: verdict, reason, trace, numbers, ledger.

use super::steps::trace;
use super::{Judgement, Other, Report};
use crate::failure::exit;
use crate::health::path_share;
use crate::output::Output;
use crate::size::{show_bytes, show_count, show_seconds, show_small};
use std::fmt::Write;

/// How the report is to look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub color: bool,
    pub quiet: bool,
    pub full_trace: bool,
}

/// Paints text for a terminal.
pub struct Paint(pub bool);

impl Paint {
    pub fn with(&self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }

    pub fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn faint(&self, text: &str) -> String {
        self.with("2", text)
    }

    /// Green for good, red for bad, yellow for neither.
    fn verdict(&self, exit_code: u8, text: &str) -> String {
        let code = match exit_code {
            exit::HOLDS => "1;32",
            exit::UNKNOWN | exit::HOLDS_UNLESS | exit::HOLDS_TO_DEPTH => "1;33",
            _ => "1;31",
        };
        self.with(code, text)
    }
}

/// Prints the whole report.
pub fn report(report: &Report, style: Style, out: &mut Output) {
    let paint = Paint(style.color);
    let Judgement { headline, reason, exit_code, .. } = &report.judgement;
    let mut text = String::new();
    let _ = writeln!(text, "{}", paint.verdict(*exit_code, &format!("verdict: {headline}")));
    if style.quiet {
        return out.print(&text);
    }
    let _ = writeln!(text, "reason:  {reason}");
    for note in &report.notes {
        let _ = writeln!(text, "note:    {note}");
    }
    out.print(&text);
    if let Some(found) = &report.trace {
        out.print("\n");
        trace(found, style, out);
    }
    for Other { headline, reason, trace: found, .. } in &report.others {
        out.print(&format!("\n{}\n", paint.verdict(*exit_code, &format!("also: {headline}: {reason}"))));
        trace(found, style, out);
    }
    text.clear();
    if let Some(unreached) = &report.unreached {
        let _ = write!(text, "\n{}", super::unreached::show(unreached, &report.model.file, report.complete));
    }
    text.push('\n');
    numbers(report, &mut text);
    text.push('\n');
    ledger(report, &paint, &mut text);
    out.print(&text);
}

/// The name of a file without its folder.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn numbers(report: &Report, out: &mut String) {
    let Report { counts, times, costs, .. } = report;
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<18} {value:>15}");
    };
    line("states", show_count(counts.states));
    if let Some([from, to]) = report.coverage.estimated_share {
        line("share of all", format!("{:.0} to {:.0} %", from * 100.0, to * 100.0));
    }
    line("transitions", show_count(counts.transitions));
    if counts.levels > 0 {
        line("levels", show_count(counts.levels.into()));
    } else {
        line("depth", show_count(counts.depth.into()));
    }
    line("deadlocks", show_count(counts.deadlocks));
    let successors = (counts.matched + counts.states).max(1);
    line("matched", format!("{:.1} %", counts.matched as f64 * 100.0 / successors as f64));
    if counts.cache_capacity > 0 {
        line("cache", format!("{} of {}", show_count(counts.cache_states), show_count(counts.cache_capacity)));
        if counts.levels == 0 {
            line("longest path", format!("{:.1} % of it", path_share(counts.depth, counts.cache_capacity) * 100.0));
        }
    }
    if counts.forgotten > 0 {
        line("visits per state", format!("{:.2}", counts.redundancy));
    }
    if let Some(omissions) = counts.expected_omissions {
        line("expected to miss", show_small(omissions));
    }
    let rare = [
        ("errors", counts.faults),
        ("failed assertions", counts.failed_assertions),
        ("property hits", counts.property_hits),
        ("states forgotten", counts.forgotten),
    ];
    for (name, count) in rare.into_iter().filter(|(_, count)| *count > 0) {
        line(name, show_count(count));
    }
    line("time", show_seconds(times.total));
    line("  of it search", show_seconds(times.search));
    if report.plan.workers > 1 {
        line("workers", report.plan.workers.to_string());
    }
    line("states/s", show_count(costs.states_per_second as u64));
    line("bytes/state", format!("{:.1}", costs.bytes_per_state));
    if let Some(training) = &report.plan.training {
        let ratio = training.expected_ratio * 100.0;
        line("training", format!("{} states", show_count(training.states)));
        line("  took", show_seconds(training.seconds));
        line("  expected code", format!("{:.1} B, {ratio:.0} %", training.expected_bytes));
    }
    if let Some(bytes) = counts.code_bytes {
        line("code", format!("{bytes:.1} B, {:.0} %", bytes * 100.0 / report.model.state_bytes as f64));
    }
    line("state vector", format!("{} B", report.model.state_bytes));
    if let Some(choice) = &report.choice {
        choice.show(out);
    }
    if let Some(collections) = report.collections {
        collections.show(out);
    }
    report.climbs.iter().for_each(|climb| climb.show(out));
    if let Some(layers) = &report.layers {
        layers.show(&report.counts.level_sizes, out);
    }
}

fn ledger(report: &Report, paint: &Paint, out: &mut String) {
    let head = format!("{:<18} {:>15} {:>15} {:>15}", "memory", "granted", "used", "peak");
    let _ = writeln!(out, "{}", paint.bold(&head));
    let mut row = |name: &str, granted: String, used: String, peak: String| {
        let _ = writeln!(out, "{name:<18} {granted:>15} {used:>15} {peak:>15}");
    };
    for entry in report.ledger.iter().filter(|entry| entry.peak > 0) {
        let name = if entry.medium == "disk" { format!("{} (disk)", entry.name) } else { entry.name.clone() };
        row(&name, show_bytes(entry.granted), show_bytes(entry.used), show_bytes(entry.peak));
    }
    row("whole process", show_bytes(report.costs.memory_budget), String::new(), show_bytes(report.costs.peak_rss));
}
