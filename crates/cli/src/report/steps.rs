//! Traces for people: the initial state, then a line for every statement with what it changes.

use super::TraceReport;
use super::text::{Paint, Style, file_name};
use crate::output::Output;
use crate::size::show_count;
use crate::stuck::{Statement, Stuck, Waiting};
use crate::view::{FieldValue, ShownAct, ShownStep};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};

/// Longer traces are cut in the middle.
const LONGEST_TRACE: usize = 60;
const SHOWN_AT_ENDS: usize = 25;
/// Lines of a state are broken here.
const WIDTH: usize = 100;
/// Names in a trace take at most this much of a line.
const WIDEST_NAME: usize = 28;
/// Where the changes of a step begin, unless its statement is longer.
const TEXT: usize = 26;

/// Prints a trace. Of a long one the middle is left out, unless all of it is wanted.
pub fn trace(trace: &TraceReport, style: Style, out: &mut Output) {
    let (paint, view) = (Paint(style.color), trace.view());
    let (positions, model) = (trace.positions(), trace.model());
    let steps = positions.len().saturating_sub(1);
    let mut text = String::new();
    let title = format!("trace ({} step{})", show_count(steps as u64), if steps == 1 { "" } else { "s" });
    let _ = writeln!(text, "{}", paint.bold(&title));
    state(0, &view.first(positions), view.assign(), &mut text);
    out.print(&text);
    let mut table = Table { file: file_name(&model), assign: view.assign(), who: 0, place: 0 };
    let mut ends = Ends::default();
    let skip = match steps > LONGEST_TRACE && !style.full_trace {
        true => SHOWN_AT_ENDS + 1..steps + 1 - SHOWN_AT_ENDS,
        false => 0..0,
    };
    let Ok(last) = view.walk(positions, skip, |step| {
        match style.full_trace {
            true => table.measure(&step),
            false => ends.add(step),
        }
        Ok::<(), std::convert::Infallible>(())
    });
    if style.full_trace {
        let mut out = BufWriter::new(&mut *out);
        let _ = view.walk(positions, 0..0, |step| out.write_all(show_step(&step, &table, &paint).as_bytes()));
    } else {
        out.print(&ends.show(&mut table, &paint));
    }
    if let Some(stuck) = trace.stuck(&last) {
        out.print(&show_stuck(&stuck, steps, &table, &paint));
    }
}

/// The first and the last steps of a trace.
#[derive(Default)]
struct Ends {
    head: Vec<ShownStep>,
    tail: VecDeque<ShownStep>,
    dropped: bool,
}

impl Ends {
    fn add(&mut self, step: ShownStep) {
        if self.head.len() < SHOWN_AT_ENDS {
            return self.head.push(step);
        }
        if self.tail.len() >= LONGEST_TRACE - SHOWN_AT_ENDS {
            self.tail.pop_front();
            self.dropped = true;
        }
        self.tail.push_back(step);
    }

    fn show(mut self, table: &mut Table, paint: &Paint) -> String {
        let (before, after) =
            (self.head.last().map_or(0, |step| step.number), self.tail.front().map(|step| step.number));
        let gap = self.dropped || after.is_some_and(|after| after > before + 1);
        if gap {
            let surplus = self.tail.len().saturating_sub(SHOWN_AT_ENDS);
            self.tail.drain(..surplus);
        }
        self.head.iter().chain(&self.tail).for_each(|step| table.measure(step));
        let mut out = String::new();
        self.head.iter().for_each(|step| out.push_str(&show_step(step, table, paint)));
        if let (true, Some(next)) = (gap, self.tail.front()) {
            let text = format!("       ... from here to step {} left out (--full-trace shows all) ...", next.number);
            let _ = writeln!(out, "{}", paint.faint(&text));
        }
        self.tail.iter().for_each(|step| out.push_str(&show_step(step, table, paint)));
        out
    }
}

/// Where everybody stands at the end.
fn show_stuck(stuck: &Stuck, steps: usize, table: &Table, paint: &Paint) -> String {
    let mut out = format!("{}\n", paint.bold("final state"));
    state(steps as u64, &stuck.state, table.assign, &mut out);
    let who = stuck.waiting.iter().map(|waiting| waiting.who.chars().count()).max().unwrap_or(0).min(WIDEST_NAME);
    if !stuck.waiting.is_empty() {
        let _ = writeln!(out, "{}", paint.bold("nobody can move"));
    }
    for Waiting { who: name, at, statements } in &stuck.waiting {
        if statements.is_empty() {
            let _ = writeln!(out, "       {name:<who$}  is at its end ({at})");
        }
        for (index, Statement { file, line, text }) in statements.iter().enumerate() {
            let (name, verb) = if index == 0 { (name.as_str(), "waits for") } else { ("", "or for   ") };
            let file = if file.is_empty() { table.file } else { file_name(file) };
            let _ = writeln!(out, "       {name:<who$}  {verb}  {}  {text}", paint.faint(&format!("{file}:{line}")));
        }
    }
    out
}

/// One step on a line of its own.
pub fn step(step: &ShownStep, file: &str, assign: &str, style: Style) -> String {
    let mut table = Table { file, assign, who: 0, place: 0 };
    table.measure(step);
    show_step(step, &table, &Paint(style.color))
}

/// A step that can be chosen: its statements without what they would change.
pub fn choice(number: usize, steps: &[ShownStep], style: Style) -> String {
    let Some(first) = steps.first() else { return String::new() };
    let who = first.acts.first().map(|act| &act.who).or(first.process.as_ref());
    let who = who.map_or(String::new(), |who| format!("{}  ", Paint(style.color).bold(who)));
    let statements = steps.iter().flat_map(|step| match step.acts.as_slice() {
        [] => vec![own_label(step)],
        acts => acts.iter().map(|act| act.text.as_str()).collect(),
    });
    format!("{number:>8})  {who}{}\n", statements.collect::<Vec<_>>().join("; "))
}

/// How wide the columns of a trace are.
struct Table<'a> {
    file: &'a str,
    /// What stands between a name and its value.
    assign: &'a str,
    who: usize,
    place: usize,
}

impl Table<'_> {
    /// Makes the columns wide enough for a step.
    fn measure(&mut self, step: &ShownStep) {
        for act in &step.acts {
            self.who = self.who.max(act.who.chars().count()).min(WIDEST_NAME);
            self.place = self.place.max(self.place(act).chars().count()).min(WIDEST_NAME);
        }
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

fn show_step(step: &ShownStep, table: &Table, paint: &Paint) -> String {
    let mut out = String::new();
    match step.acts.is_empty() {
        true => write_label(step, table, paint, &mut out),
        false => write_acts(step, table, paint, &mut out),
    }
    if let Some(problem) = &step.problem {
        let _ = writeln!(out, "    !  {}", paint.with("1;31", problem));
    }
    out
}

fn write_label(step: &ShownStep, table: &Table, paint: &Paint, out: &mut String) {
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
}

/// The label without the name of the process, which stands before it anyway.
fn own_label(step: &ShownStep) -> &str {
    let process = step.process.as_deref().unwrap_or("");
    let rest = step.label.strip_prefix(process).and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(&step.label)
}

/// All fields of the state after so many steps, as many on a line as fit.
pub fn state(number: u64, fields: &[FieldValue], assign: &str, out: &mut String) {
    let mut line = format!("{number:>5}  ");
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
