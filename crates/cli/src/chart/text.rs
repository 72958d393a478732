//! A chart in characters.

use super::{Chart, Event, Row, clipped};

/// A column is at least and at most this wide.
const NARROWEST: usize = 12;
const WIDEST: usize = 34;

/// Draws the chart, one line per row.
pub fn draw(chart: &Chart) -> String {
    let longest = chart.rows.iter().filter(|row| row.event != Event::Wrong).map(|row| label(row).chars().count() + 6);
    let names = chart.lifelines.iter().map(|lifeline| lifeline.name.chars().count() + 2);
    let width = longest.chain(names).max().unwrap_or(0).clamp(NARROWEST, WIDEST);
    let mut page = Page { width, alive: chart.lifelines.iter().map(|lifeline| lifeline.initial).collect() };
    let mut out = format!("{}\n", chart.title);
    let mut head = page.blank();
    for (at, lifeline) in chart.lifelines.iter().enumerate().filter(|(_, lifeline)| lifeline.initial) {
        page.put(&mut head, at, 0, &clipped(&lifeline.name, width - 1));
    }
    out.push_str(&page.line(None, head));
    let mut before = 0;
    for row in &chart.rows {
        let line = page.row(row);
        out.push_str(&page.line((row.step != before).then_some(row.step), line));
        before = row.step;
    }
    out
}

fn label(row: &Row) -> String {
    match row.event {
        Event::Send(message) => format!("{} >({message})", row.text),
        Event::Receive(message) => format!("({message})> {}", row.text),
        _ => row.text.clone(),
    }
}

struct Page {
    width: usize,
    alive: Vec<bool>,
}

impl Page {
    fn blank(&self) -> Vec<char> {
        vec![' '; self.width * self.alive.len().max(1)]
    }

    /// Writes text beside a lifeline.
    fn put(&self, line: &mut [char], at: usize, offset: usize, text: &str) {
        for (index, letter) in text.chars().enumerate() {
            if let Some(place) = line.get_mut(at * self.width + offset + index) {
                *place = letter;
            }
        }
    }

    fn row(&mut self, row: &Row) -> Vec<char> {
        let mut line = self.blank();
        if row.event == Event::Birth {
            self.alive[row.at] = true;
        }
        for at in (0..self.alive.len()).filter(|&at| self.alive[at]) {
            self.put(&mut line, at, 0, "|");
        }
        // Text may run on over lifelines to the right, where there is none it would hide.
        let room = if row.at + 1 == self.alive.len() { self.width * 4 } else { self.width - 3 };
        match row.event {
            Event::Meet(to) => self.arrow(&mut line, row.at, to, &row.text),
            Event::Birth => self.put(&mut line, row.at, 0, &format!("o {}", row.text)),
            Event::Death => {
                self.put(&mut line, row.at, 0, "x");
                self.alive[row.at] = false;
            }
            Event::Wrong => {
                line.resize(line.len() + row.text.chars().count(), ' ');
                self.put(&mut line, row.at, 0, &format!("! {}", row.text));
            }
            Event::Gap => line.fill('.'),
            Event::Local | Event::Send(_) | Event::Receive(_) => {
                line.resize(line.len() + room, ' ');
                self.put(&mut line, row.at, 2, &clipped(&label(row), room));
            }
        }
        line
    }

    fn arrow(&self, line: &mut [char], from: usize, to: usize, text: &str) {
        let (left, right) = (from.min(to), from.max(to));
        let length = (right - left) * self.width - 1;
        let text = format!(" {} ", clipped(text, length.saturating_sub(6)));
        let before = (length - 1).saturating_sub(text.chars().count()) / 2;
        self.put(line, left, 1, &"-".repeat(length));
        self.put(line, left, 1 + before.max(1), &text);
        match from < to {
            true => self.put(line, right, 0, "|"),
            false => self.put(line, left, 1, "<"),
        }
        if from < to {
            line[right * self.width - 1] = '>';
        }
    }

    fn line(&self, step: Option<u64>, line: Vec<char>) -> String {
        let step = step.map_or(String::new(), |step| step.to_string());
        let text: String = line.into_iter().collect();
        format!("{}\n", format!("{step:>5}  {text}").trim_end())
    }
}
