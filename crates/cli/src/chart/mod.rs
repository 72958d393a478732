//! Message sequence charts of traces: one lifeline per process, an arrow per message, as text or as SVG.
//!
//! A rendezvous is an arrow within one row. Messages of buffered channels are followed through the channel: where the
//! contents of the channel say that a message went in or came out, the two rows are joined.

mod svg;
mod text;

use crate::failure::Failure;
use crate::output::{Output, write_to};
use crate::report::TraceReport;
use crate::stuck::NOWHERE;
use crate::view::{FieldValue, ShownAct, ShownStep};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::path::Path;

/// Rows at each end of a chart; what lies between is left out, for nobody can look at it.
const ROWS_AT_ENDS: usize = 1_000;
/// Letters in a row of local steps.
const LONGEST_TEXT: usize = 120;

/// A chart, ready to be drawn.
#[derive(Debug, PartialEq, Eq)]
pub struct Chart {
    title: String,
    lifelines: Vec<Lifeline>,
    rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Eq)]
struct Lifeline {
    name: String,
    /// Does it live from the start?
    initial: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// The step it belongs to.
    step: u64,
    /// Whose row it is, as a number of a lifeline.
    at: usize,
    text: String,
    event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Local,
    /// A rendezvous with another lifeline.
    Meet(usize),
    /// The message gets a number, for whoever receives it.
    Send(usize),
    /// Of the message with that number.
    Receive(usize),
    Birth,
    Death,
    Wrong,
    /// Rows are left out here.
    Gap,
}

/// Writes the chart of a trace: as SVG if the file is called so, else as text; `-` is standard output.
pub fn write(path: &Path, trace: &TraceReport, out: &mut Output) -> Result<(), Failure> {
    let chart = Chart::of(trace);
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let drawn = if is_svg { svg::draw(&chart) } else { text::draw(&chart) };
    write_to(path, out, |file| file.write_all(drawn.as_bytes()))
}

impl Chart {
    pub fn of(trace: &TraceReport) -> Chart {
        let view = trace.view();
        let mut drawing = Drawing::of(view.first(trace.positions()));
        let Ok(_) = view.walk(trace.positions(), 0..0, |step| {
            drawing.add(&step);
            Ok::<(), Infallible>(())
        });
        drawing.finish(format!("{}: {}", crate::report::text::file_name(&trace.model()), trace.end()))
    }

    /// Sorts the lifelines by the numbers in their names, which is the order in which processes were made.
    fn in_order(mut self) -> Chart {
        let number = |name: &str| name.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')')?.parse().ok());
        let mut order: Vec<usize> = (0..self.lifelines.len()).collect();
        order.sort_by_key(|&at| number(&self.lifelines[at].name).unwrap_or(0u32));
        let place = |at: usize| order.iter().position(|&other| other == at).expect("all are there");
        for row in &mut self.rows {
            row.at = place(row.at);
            if let Event::Meet(other) = &mut row.event {
                *other = place(*other);
            }
        }
        let mut lifelines: Vec<Option<Lifeline>> = self.lifelines.into_iter().map(Some).collect();
        self.lifelines = order.iter().filter_map(|&at| lifelines[at].take()).collect();
        self
    }
}

/// A chart under construction.
#[derive(Default)]
struct Drawing {
    /// Names of the lifelines, and which of them began with a birth.
    names: Vec<(String, bool)>,
    rows: Vec<Row>,
    /// The last rows of a long chart, which wait to be the last.
    tail: VecDeque<Row>,
    left_out: bool,
    /// The current values of all fields.
    values: HashMap<String, String>,
    /// The messages that wait in each channel, by number.
    waiting: HashMap<String, Vec<usize>>,
    messages: usize,
}

/// Are two statements of one step the two sides of a rendezvous?
fn meet(sender: &ShownAct, receiver: &ShownAct) -> bool {
    sender.kind == "send" && receiver.kind == "receive" && sender.who != receiver.who
}

impl Drawing {
    fn of(initial: Vec<FieldValue>) -> Drawing {
        let values = initial.into_iter().map(|FieldValue { name, value }| (name, value)).collect();
        Drawing { values, ..Drawing::default() }
    }

    fn finish(mut self, title: String) -> Chart {
        let lifelines = self.names.into_iter().map(|(name, born)| Lifeline { name, initial: !born }).collect();
        if self.left_out
            && let Some(row) = self.tail.front()
        {
            self.rows.push(Row { text: "...".into(), event: Event::Gap, ..*row });
        }
        self.rows.extend(self.tail);
        Chart { title, lifelines, rows: self.rows }.in_order()
    }

    fn lifeline(&mut self, name: &str) -> usize {
        self.known(name, false)
    }

    fn known(&mut self, name: &str, born: bool) -> usize {
        self.names.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.names.push((name.into(), born));
            self.names.len() - 1
        })
    }

    fn row(&mut self, row: Row) {
        if self.rows.len() < ROWS_AT_ENDS {
            return self.rows.push(row);
        }
        if self.tail.len() == ROWS_AT_ENDS {
            self.tail.pop_front();
            self.left_out = true;
        }
        self.tail.push_back(row);
    }

    fn last(&mut self) -> Option<&mut Row> {
        self.tail.back_mut().or(self.rows.last_mut())
    }

    fn add(&mut self, step: &ShownStep) {
        let changes = step.changes.iter().cloned().map(|FieldValue { name, value }| (name, value));
        let before: Vec<(String, Option<String>)> =
            changes.map(|(name, value)| (name.clone(), self.values.insert(name, value))).collect();
        if step.acts.is_empty() {
            // A rule belongs to whom it is about: its first parameter.
            let about = step.choices.first().map(|(_, value)| value.as_str());
            let at = self.lifeline(about.or(step.process.as_deref()).unwrap_or("model"));
            self.push(step, at, &step.label, Event::Local);
        }
        let mut acts = step.acts.as_slice();
        while let Some((act, rest)) = acts.split_first() {
            acts = rest;
            match rest.split_first() {
                Some((receiver, rest)) if meet(act, receiver) => {
                    let (from, to) = (self.lifeline(&act.who), self.lifeline(&receiver.who));
                    let text = self.received(receiver).map(|values| with_values(&act.text, &values));
                    self.push(step, from, &text.unwrap_or_else(|| act.text.clone()), Event::Meet(to));
                    acts = rest;
                }
                _ => self.act(step, act, &before),
            }
        }
        if let (Some(problem), Some(row)) = (&step.problem, self.last()) {
            let row = Row { event: Event::Wrong, text: problem.clone(), ..*row };
            self.row(row);
        }
        self.births(step, &before);
    }

    fn act(&mut self, step: &ShownStep, act: &ShownAct, before: &[(String, Option<String>)]) {
        let at = self.lifeline(&act.who);
        let dies = step.changes.iter().any(|change| change.name == act.process && change.value == NOWHERE);
        let message = match act.kind.as_str() {
            "send" => self.message(before, true),
            "receive" => self.message(before, false),
            _ => None,
        };
        let (text, event) = match message {
            Some((message, event)) => (with_values(&act.text, &message), event),
            None if dies => (act.text.clone(), Event::Death),
            None => (assigned(step, act).unwrap_or_else(|| act.text.clone()), Event::Local),
        };
        self.push(step, at, &text, event);
    }

    fn push(&mut self, step: &ShownStep, at: usize, text: &str, event: Event) {
        if let (Event::Local, Some(last)) = (event, self.last())
            && (last.at, last.event) == (at, Event::Local)
        {
            if last.text.len() < LONGEST_TEXT {
                last.text = format!("{}; {text}", last.text);
            } else if !last.text.ends_with('…') {
                last.text.push_str("; …");
            }
            return;
        }
        self.row(Row { step: step.number, at, text: text.into(), event });
    }

    /// The message that a step put into a channel or took out, seen by what the channel holds before and after.
    fn message(&mut self, before: &[(String, Option<String>)], sent: bool) -> Option<(String, Event)> {
        let (name, old) = before.iter().find(|(name, _)| self.values[name].starts_with('['))?;
        let (old, new) = (contents(old.as_deref().unwrap_or("[]")), contents(&self.values[name]));
        let (long, short) = if sent { (&new, &old) } else { (&old, &new) };
        if long.len() != short.len() + 1 {
            return None;
        }
        let at = long.iter().zip(short).position(|(one, other)| one != other).unwrap_or(short.len());
        let message = long[at].to_string();
        let waiting = self.waiting.entry(name.clone()).or_default();
        if sent {
            self.messages += 1;
            waiting.insert(at.min(waiting.len()), self.messages);
            return Some((message, Event::Send(self.messages)));
        }
        (at < waiting.len()).then(|| (message, Event::Receive(waiting.remove(at))))
    }

    /// The values of a message that was just received: those of the variables that it was received in.
    fn received(&self, act: &ShownAct) -> Option<String> {
        let (_, into) = act.text.split_once('?')?;
        let part = |name: &str| {
            let own = self.values.get(&format!("{}.{name}", act.process)).or_else(|| self.values.get(name));
            let fixed = name.parse::<i64>().is_ok().then(|| name.to_string());
            own.cloned().or(fixed)
        };
        let parts: Option<Vec<String>> = into.split(',').map(|name| part(name.trim())).collect();
        parts.map(|parts| parts.join(","))
    }

    /// Processes that were nowhere before the step.
    fn births(&mut self, step: &ShownStep, before: &[(String, Option<String>)]) {
        for (name, old) in before {
            let value = self.values[name].clone();
            if old.as_deref() == Some(NOWHERE) && value != NOWHERE {
                // A process of the system that may be of several kinds says which before its location.
                let number = name.rfind('(').map_or("", |at| &name[at..]);
                let name = value.split_once(':').map_or(name.clone(), |(kind, _)| format!("{kind}{number}"));
                let at = self.known(&name, true);
                self.row(Row { step: step.number, at, text: name, event: Event::Birth });
            }
        }
    }
}

/// A statement that sends or receives, with the values of the message instead of expressions and variables.
fn with_values(text: &str, values: &str) -> String {
    match text.find(['!', '?']) {
        Some(sign) => {
            let signs = text[sign..].chars().take_while(|c| matches!(c, '!' | '?')).count();
            format!("{}{values}", &text[..sign + signs])
        }
        None => text.into(),
    }
}

/// What an assignment changed, without the name of the process that it stands beside.
fn assigned(step: &ShownStep, act: &ShownAct) -> Option<String> {
    let own = format!("{}.", act.process);
    let changes = step.changes.iter().filter(|change| act.kind == "assign" && change.name != act.process);
    let shown =
        changes.map(|FieldValue { name, value }| format!("{}={value}", name.strip_prefix(&own).unwrap_or(name)));
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| shown.join(" "))
}

/// The messages in the shown value of a channel.
fn contents(value: &str) -> Vec<&str> {
    value.trim_matches(['[', ']']).split(' ').filter(|message| !message.is_empty()).collect()
}

/// The text, or as much of it as fits.
fn clipped(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(who: &str, text: &str, kind: &str) -> ShownAct {
        let (process, file) = (who.to_string(), String::new());
        ShownAct { process, who: who.into(), text: text.into(), kind: kind.into(), file, line: 1, number: (0, 0) }
    }

    fn field(text: &str) -> FieldValue {
        let (name, value) = text.split_once('=').unwrap();
        FieldValue { name: name.into(), value: value.into() }
    }

    fn step(number: u64, acts: Vec<ShownAct>, changes: &[&str]) -> ShownStep {
        let (process, label, problem, choices) = (None, String::new(), None, Vec::new());
        let changes = changes.iter().map(|change| field(change)).collect();
        ShownStep { number, process, line: 0, label, choices, acts, changes, problem }
    }

    fn example() -> Chart {
        let mut steps = [
            step(1, vec![act("A(0)", "r!y + 1", "send"), act("B(1)", "r?x", "receive")], &["B(1).x=1"]),
            step(2, vec![act("A(0)", "q!y", "send")], &["q=[2]"]),
            step(3, vec![act("A(0)", "q!!1", "send")], &["q=[1 2]"]),
            step(4, vec![act("A(0)", "run C<&>()", "other")], &["C(2)=7"]),
            step(5, vec![act("B(1)", "q??2", "receive")], &["q=[1]"]),
            step(6, vec![act("B(1)", "x = 2", "assign")], &["B(1).x=2"]),
            step(7, vec![act("B(1)", "x = 3", "assign")], &["B(1).x=3"]),
            step(8, vec![act("C(2)", "-end-", "other")], &["C(2)=-"]),
        ];
        steps[7].problem = Some("wrong".into());
        let initial = ["A(0)=1", "B(1)=1", "C(2)=-", "q=[]"].map(field).to_vec();
        let mut drawing = Drawing::of(initial);
        steps.iter().for_each(|step| drawing.add(step));
        drawing.finish("m.pml: a deadlock".into())
    }

    #[test]
    fn messages_are_followed_through_channels_and_processes_come_and_go() {
        let drawn = text::draw(&example());
        let wanted = "\
m.pml: a deadlock
       A(0)            B(1)
    1  |---- r!1 ----->|
    2  | q!2 >(1)      |
    3  | q!!1 >(2)     |
    4  | run C<&>()    |
       |               |               o C(2)
    5  |               | (1)> q??2     |
    6  |               | x=2; x=3      |
    8  |               |               x
       |               |               ! wrong
";
        assert_eq!(drawn, wanted, "\n{drawn}");
    }

    #[test]
    fn a_long_chart_keeps_its_ends() {
        let mut drawing = Drawing::of(Vec::new());
        for number in 1..=5_000 {
            let kind = ["A", "B"][number % 2];
            drawing.add(&step(number as u64, vec![act(kind, "x++", "other")], &[]));
        }
        let drawn = text::draw(&drawing.finish(String::new()));
        assert_eq!(drawn.lines().count(), 2 + 2 * ROWS_AT_ENDS + 1);
        assert!(drawn.contains("..."));
        let mut drawing = Drawing::of(Vec::new());
        (1..=50_000).for_each(|number| drawing.add(&step(number, vec![act("A", "x++", "other")], &[])));
        assert!(drawing.rows.len() == 1 && drawing.rows[0].text.len() < 2 * LONGEST_TEXT);
    }

    #[test]
    fn rules_are_drawn_by_whom_they_are_about() {
        let mut drawing = Drawing::of(Vec::new());
        for (number, name) in ["Proc_1", "Proc_2", "Proc_1"].into_iter().enumerate() {
            let choices = vec![("p".into(), name.into())];
            drawing.add(&ShownStep { choices, label: "go".into(), ..step(number as u64, Vec::new(), &[]) });
        }
        let chart = drawing.finish(String::new());
        assert_eq!(chart.rows.iter().map(|row| row.at).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn a_picture_has_an_arrow_per_message_and_escaped_text() {
        let drawn = svg::draw(&example());
        let heads = drawn.lines().filter(|line| line.contains("stroke-width=\"1.2\"")).count();
        assert_eq!(heads, 2, "one rendezvous, one message received");
        assert!(drawn.contains("run C&lt;&amp;&gt;()") && !drawn.contains("C<&>"));
        assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    }
}
