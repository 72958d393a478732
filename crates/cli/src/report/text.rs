//! The report for people: verdict, reason, trace, numbers, ledger.

use super::{Report, TraceReport};
use crate::failure::exit;
use crate::health::path_share;
use crate::size::{show_bytes, show_count, show_seconds};
use crate::view::{FieldValue, ShownAct, ShownStep};
use std::fmt::Write;

/// Longer traces are cut in the middle.
const LONGEST_TRACE: usize = 60;
const SHOWN_AT_ENDS: usize = 25;
/// Lines of the initial state are broken here.
const WIDTH: usize = 100;
/// Names in a trace take at most this much of a line.
const WIDEST_NAME: usize = 28;
/// Where the changes of a step begin, unless its statement is longer.
const TEXT: usize = 26;

/// How the report is to look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub color: bool,
    pub quiet: bool,
    pub full_trace: bool,
}

/// Paints text for a terminal.
struct Paint(bool);

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }

    fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    fn faint(&self, text: &str) -> String {
        self.with("2", text)
    }

    /// Green for good, red for bad, yellow for neither.
    fn verdict(&self, exit_code: u8, text: &str) -> String {
        let code = match exit_code {
            exit::HOLDS => "1;32",
            exit::UNKNOWN | exit::HOLDS_TO_DEPTH => "1;33",
            _ => "1;31",
        };
        self.with(code, text)
    }
}

/// The whole report as text.
pub fn report(report: &Report, style: Style) -> String {
    let paint = Paint(style.color);
    let mut out = String::new();
    let _ = writeln!(out, "{}", paint.verdict(report.exit_code, &format!("verdict: {}", report.verdict)));
    if style.quiet {
        return out;
    }
    let _ = writeln!(out, "reason:  {}", report.reason);
    for note in &report.notes {
        let _ = writeln!(out, "note:    {note}");
    }
    if let Some(found) = &report.trace {
        out.push('\n');
        out.push_str(&trace(found, style));
    }
    if let Some(unreached) = &report.unreached {
        let _ = write!(out, "\n{}", super::unreached::show(unreached, &report.model.file, report.complete));
    }
    out.push('\n');
    numbers(report, &mut out);
    out.push('\n');
    ledger(report, &paint, &mut out);
    out
}

/// A trace: the initial state in full, then what every step changes.
pub fn trace(trace: &TraceReport, style: Style) -> String {
    let paint = Paint(style.color);
    let mut out = String::new();
    let count = trace.positions.len().saturating_sub(1);
    let _ = writeln!(out, "{}", paint.bold(&format!("trace ({} step{})", count, if count == 1 { "" } else { "s" })));
    initial_state(&trace.initial, &trace.assign, &mut out);
    let skipped = if style.full_trace || trace.steps.len() <= LONGEST_TRACE {
        trace.steps.len()..trace.steps.len()
    } else {
        SHOWN_AT_ENDS..trace.steps.len() - SHOWN_AT_ENDS
    };
    let table = Table::of(&trace.steps, file_name(&trace.model), &trace.assign);
    for (index, step) in trace.steps.iter().enumerate() {
        if index == skipped.start && !skipped.is_empty() {
            let text = format!("      ... {} steps left out (--full-trace shows them) ...", skipped.len());
            let _ = writeln!(out, "{}", paint.faint(&text));
        }
        if !skipped.contains(&index) {
            write_step(step, &table, &paint, &mut out);
        }
    }
    out
}

/// One step on a line of its own.
pub fn step(step: &ShownStep, file: &str, assign: &str, style: Style) -> String {
    let mut out = String::new();
    write_step(step, &Table::of(std::slice::from_ref(step), file, assign), &Paint(style.color), &mut out);
    out
}

/// The name of a file without its folder.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// How wide the columns of a trace are.
struct Table<'a> {
    file: &'a str,
    /// What stands between a name and its value.
    assign: &'a str,
    who: usize,
    place: usize,
}

impl<'a> Table<'a> {
    fn of(steps: &[ShownStep], file: &'a str, assign: &'a str) -> Table<'a> {
        let mut table = Table { file, assign, who: 0, place: 0 };
        for act in steps.iter().flat_map(|step| &step.acts) {
            table.who = table.who.max(act.who.chars().count()).min(WIDEST_NAME);
            table.place = table.place.max(table.place(act).chars().count()).min(WIDEST_NAME);
        }
        table
    }

    fn place(&self, act: &ShownAct) -> String {
        let file = if act.file.is_empty() { self.file } else { file_name(&act.file) };
        format!("{file}:{}", act.line)
    }
}

/// Statements, one below the other, and what they change together. Where the acting processes are is not said: the place
/// of their next statement tells.
fn write_acts(step: &ShownStep, table: &Table, paint: &Paint, out: &mut String) {
    for (index, act) in step.acts.iter().enumerate() {
        let number = if index == 0 { step.number.to_string() } else { "+".into() };
        let who = format!("{:<1$}", act.who, table.who);
        let place = format!("{:<1$}", table.place(act), table.place);
        let _ = write!(out, "{number:>5}  {}  {}  ", paint.bold(&who), paint.faint(&place));
        if index + 1 < step.acts.len() {
            let _ = writeln!(out, "{}", act.text);
            continue;
        }
        let moved = |field: &&FieldValue| step.acts.iter().any(|act| act.process == field.name);
        let changes = step.changes.iter().filter(|field| !moved(field));
        let changes: Vec<String> = changes.map(|field| show_field(field, table.assign)).collect();
        let line = format!("{:<TEXT$}  {}", act.text, paint.with("36", &changes.join("  ")));
        let _ = writeln!(out, "{}", if changes.is_empty() { &act.text } else { &line });
    }
}

fn write_step(step: &ShownStep, table: &Table, paint: &Paint, out: &mut String) {
    if !step.acts.is_empty() {
        write_acts(step, table, paint, out);
        return write_problem(step, paint, out);
    }
    let _ = write!(out, "{:>5}  ", step.number);
    if let Some(process) = &step.process {
        let _ = write!(out, "{} ", paint.bold(process));
    }
    if step.line > 0 {
        let _ = write!(out, "{} ", paint.faint(&format!("line {}:", step.line)));
    }
    out.push_str(own_label(step));
    if !step.changes.is_empty() {
        let changes: Vec<String> = step.changes.iter().map(|field| show_field(field, table.assign)).collect();
        let _ = write!(out, "   {}", paint.with("36", &changes.join("  ")));
    }
    out.push('\n');
    write_problem(step, paint, out);
}

fn write_problem(step: &ShownStep, paint: &Paint, out: &mut String) {
    if let Some(problem) = &step.problem {
        let _ = writeln!(out, "       {}", paint.with("1;31", problem));
    }
}

/// The label without the name of the process, which stands before it anyway.
fn own_label(step: &ShownStep) -> &str {
    let process = step.process.as_deref().unwrap_or("");
    let rest = step.label.strip_prefix(process).and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(&step.label)
}

/// All fields, as many on a line as fit.
pub fn initial_state(fields: &[FieldValue], assign: &str, out: &mut String) {
    let mut line = format!("{:>5}  ", 0);
    let indent = line.len();
    for field in fields {
        let text = show_field(field, assign);
        if line.len() > indent && line.len() + text.len() > WIDTH {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
        }
        line.push_str(&text);
        line.push_str("  ");
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

fn show_field(field: &FieldValue, assign: &str) -> String {
    format!("{}{assign}{}", field.name, field.value)
}

fn numbers(report: &Report, out: &mut String) {
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<18} {value:>15}");
    };
    line("states", show_count(report.states));
    line("transitions", show_count(report.transitions));
    if report.levels > 0 {
        line("levels", show_count(report.levels.into()));
    } else {
        line("depth", show_count(report.depth.into()));
    }
    line("deadlocks", show_count(report.deadlocks));
    let successors = (report.matched + report.states).max(1);
    line("matched", format!("{:.1} %", report.matched as f64 * 100.0 / successors as f64));
    if report.cache_capacity > 0 {
        line("cache", format!("{} of {}", show_count(report.cache_states), show_count(report.cache_capacity)));
        if report.levels == 0 {
            line("longest path", format!("{:.1} % of it", path_share(report.depth, report.cache_capacity) * 100.0));
        }
    }
    if report.forgotten > 0 {
        line("visits per state", format!("{:.2}", report.redundancy));
    }
    let rare = [
        ("errors", report.faults),
        ("failed assertions", report.failed_assertions),
        ("property hits", report.property_hits),
        ("states forgotten", report.forgotten),
    ];
    for (name, count) in rare.into_iter().filter(|(_, count)| *count > 0) {
        line(name, show_count(count));
    }
    line("time", show_seconds(report.total_seconds));
    line("  of it search", show_seconds(report.seconds));
    if report.plan.workers > 1 {
        line("workers", report.plan.workers.to_string());
    }
    line("states/s", show_count(report.states_per_second as u64));
    line("bytes/state", format!("{:.1}", report.bytes_per_state));
    line("state vector", format!("{} B", report.model.state_bytes));
}

fn ledger(report: &Report, paint: &Paint, out: &mut String) {
    let head = format!("{:<18} {:>15} {:>15} {:>15}", "memory", "granted", "used", "peak");
    let _ = writeln!(out, "{}", paint.bold(&head));
    let mut row = |name: &str, granted: String, used: String, peak: String| {
        let _ = writeln!(out, "{name:<18} {granted:>15} {used:>15} {peak:>15}");
    };
    for entry in &report.ledger {
        let name = if entry.medium == "disk" { format!("{} (disk)", entry.name) } else { entry.name.clone() };
        row(&name, show_bytes(entry.granted), show_bytes(entry.used), show_bytes(entry.peak));
    }
    row("whole process", show_bytes(report.memory_budget), String::new(), show_bytes(report.peak_rss));
}
