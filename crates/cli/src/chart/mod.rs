//! Message sequence charts of traces: one lifeline per process, an arrow per message, as text or as SVG.
//!
//! A rendezvous is an arrow within one row. Messages of buffered channels are followed through the channel: where the
//! contents of the channel say that a message went in or came out, the two rows are joined.

mod svg;
mod text;

use crate::failure::Failure;
use crate::output::Output;
use crate::report::TraceReport;
use crate::view::{FieldValue, ShownAct, ShownStep};
use std::collections::HashMap;
use std::path::Path;

/// What a process at no location is said to be at.
const NOWHERE: &str = "-";

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
}

/// Writes the chart of a trace: as SVG if the file is called so, else as text; `-` is standard output.
pub fn write(path: &Path, trace: &TraceReport, out: &mut Output) -> Result<(), Failure> {
    let chart = Chart::of(trace);
    if path == Path::new("-") {
        out.print(&text::draw(&chart));
        return Ok(());
    }
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let drawn = if is_svg { svg::draw(&chart) } else { text::draw(&chart) };
    std::fs::write(path, drawn)
        .map_err(|error| Failure::usage(format!("{}: cannot be written: {error}", path.display())))
}

impl Chart {
    pub fn of(trace: &TraceReport) -> Chart {
        let mut drawing = Drawing::default();
        for FieldValue { name, value } in &trace.initial {
            drawing.values.insert(name, value);
        }
        trace.steps.iter().for_each(|step| drawing.add(step));
        let lifelines = drawing.names.iter().enumerate().map(|(at, name)| Lifeline {
            name: name.clone(),
            initial: drawing.rows.iter().find(|row| row.at == at).is_none_or(|row| row.event != Event::Birth),
        });
        let title = format!("{}: {}", crate::report::text::file_name(&trace.model), trace.end());
        Chart { title, lifelines: lifelines.collect(), rows: drawing.rows }.in_order()
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
struct Drawing<'a> {
    /// Names of the lifelines.
    names: Vec<String>,
    rows: Vec<Row>,
    /// The current values of all fields.
    values: HashMap<&'a str, &'a str>,
    /// The messages that wait in each channel, by number.
    waiting: HashMap<&'a str, Vec<usize>>,
    messages: usize,
}

/// Are two statements of one step the two sides of a rendezvous?
fn meet(sender: &ShownAct, receiver: &ShownAct) -> bool {
    sender.kind == "send" && receiver.kind == "receive" && sender.who != receiver.who
}

impl<'a> Drawing<'a> {
    fn lifeline(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        })
    }

    fn add(&mut self, step: &'a ShownStep) {
        if step.acts.is_empty() {
            let at = self.lifeline(step.process.as_deref().unwrap_or("model"));
            self.push(step, at, &step.label, Event::Local);
        }
        let mut acts = step.acts.as_slice();
        while let Some((act, rest)) = acts.split_first() {
            acts = rest;
            match rest.split_first() {
                Some((receiver, rest)) if meet(act, receiver) => {
                    let (from, to) = (self.lifeline(&act.who), self.lifeline(&receiver.who));
                    self.push(step, from, &act.text, Event::Meet(to));
                    acts = rest;
                }
                _ => self.act(step, act),
            }
        }
        if step.problem.is_some()
            && let Some(row) = self.rows.last()
        {
            self.rows.push(Row { event: Event::Wrong, text: step.problem.clone().unwrap_or_default(), ..*row });
        }
        self.births(step);
        for FieldValue { name, value } in &step.changes {
            self.values.insert(name, value);
        }
    }

    fn act(&mut self, step: &'a ShownStep, act: &ShownAct) {
        let at = self.lifeline(&act.who);
        let dies = step.changes.iter().any(|change| change.name == act.process && change.value == NOWHERE);
        let event = match act.kind.as_str() {
            "send" => self.message(step, true),
            "receive" => self.message(step, false),
            _ if dies => Some(Event::Death),
            _ => None,
        };
        self.push(step, at, &act.text, event.unwrap_or(Event::Local));
    }

    fn push(&mut self, step: &ShownStep, at: usize, text: &str, event: Event) {
        if let (Event::Local, Some(last)) = (event, self.rows.last_mut())
            && (last.at, last.event) == (at, Event::Local)
        {
            last.text = format!("{}; {text}", last.text);
            return;
        }
        self.rows.push(Row { step: step.number, at, text: text.into(), event });
    }

    /// The message that a step put into a channel or took out, seen by what the channel holds before and after.
    fn message(&mut self, step: &'a ShownStep, sent: bool) -> Option<Event> {
        let change = step.changes.iter().find(|change| change.value.starts_with('['))?;
        let before = contents(self.values.get(change.name.as_str()).copied().unwrap_or("[]"));
        let after = contents(&change.value);
        let (long, short) = if sent { (&after, &before) } else { (&before, &after) };
        if long.len() != short.len() + 1 {
            return None;
        }
        let at = long.iter().zip(short).position(|(one, other)| one != other).unwrap_or(short.len());
        let waiting = self.waiting.entry(&change.name).or_default();
        if sent {
            self.messages += 1;
            waiting.insert(at.min(waiting.len()), self.messages);
            return Some(Event::Send(self.messages));
        }
        (at < waiting.len()).then(|| Event::Receive(waiting.remove(at)))
    }

    /// Processes that were nowhere before the step.
    fn births(&mut self, step: &ShownStep) {
        for FieldValue { name, value } in &step.changes {
            if self.values.get(name.as_str()) == Some(&NOWHERE) && value != NOWHERE {
                // A process of the system that may be of several kinds says which before its location.
                let number = name.rfind('(').map_or("", |at| &name[at..]);
                let name = value.split_once(':').map_or(name.clone(), |(kind, _)| format!("{kind}{number}"));
                let at = self.lifeline(&name);
                self.rows.push(Row { step: step.number, at, text: name, event: Event::Birth });
            }
        }
    }
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
    use crate::report::trace::TraceEnd;

    fn act(who: &str, text: &str, kind: &str) -> ShownAct {
        let (process, file) = (who.to_string(), String::new());
        ShownAct { process, who: who.into(), text: text.into(), kind: kind.into(), file, line: 1, number: (0, 0) }
    }

    fn field(text: &str) -> FieldValue {
        let (name, value) = text.split_once('=').unwrap();
        FieldValue { name: name.into(), value: value.into() }
    }

    fn step(number: u64, acts: Vec<ShownAct>, changes: &[&str]) -> ShownStep {
        let (process, label, problem) = (None, String::new(), None);
        let changes = changes.iter().map(|change| field(change)).collect();
        ShownStep { number, process, line: 0, label, acts, changes, problem }
    }

    fn example() -> Chart {
        let mut steps = vec![
            step(1, vec![act("A(0)", "r!1", "send"), act("B(1)", "r?x", "receive")], &["B(1).x=1"]),
            step(2, vec![act("A(0)", "q!2", "send")], &["q=[2]"]),
            step(3, vec![act("A(0)", "q!!1", "send")], &["q=[1 2]"]),
            step(4, vec![act("A(0)", "run C<&>()", "other")], &["C(2)=7"]),
            step(5, vec![act("B(1)", "q??2", "receive")], &["q=[1]"]),
            step(6, vec![act("B(1)", "x = 2", "assign")], &["B(1).x=2"]),
            step(7, vec![act("B(1)", "x = 3", "assign")], &["B(1).x=3"]),
            step(8, vec![act("C(2)", "-end-", "other")], &["C(2)=-"]),
        ];
        steps[7].problem = Some("wrong".into());
        let initial = ["A(0)=1", "B(1)=1", "C(2)=-", "q=[]"].map(field).to_vec();
        Chart::of(&TraceReport {
            format: String::new(),
            version: 1,
            model: "folder/m.pml".into(),
            what: TraceEnd::Deadlock,
            property: None,
            overflow: String::new(),
            merge: false,
            find: Vec::new(),
            invariant: Vec::new(),
            positions: Vec::new(),
            assign: String::new(),
            initial,
            steps,
        })
    }

    #[test]
    fn messages_are_followed_through_channels_and_processes_come_and_go() {
        let drawn = text::draw(&example());
        let wanted = "\
m.pml: a deadlock
       A(0)              B(1)
    1  |----- r!1 ------>|
    2  | q!2 >(1)        |
    3  | q!!1 >(2)       |
    4  | run C<&>()      |
       |                 |                 o C(2)
    5  |                 | (1)> q??2       |
    6  |                 | x = 2; x = 3    |
    8  |                 |                 x
       |                 |                 ! wrong
";
        assert_eq!(drawn, wanted, "\n{drawn}");
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
