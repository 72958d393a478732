//! A chart as a picture.

use super::{Chart, Event, Row, clipped};
use std::collections::HashMap;
use std::fmt::Write;

/// Distances in pixels.
const COLUMN: usize = 190;
const LINE: usize = 24;
const TOP: usize = 76;
const LEFT: usize = 110;
const BOX: (usize, usize) = (120, 24);
/// Letters that fit beside a lifeline, and on an arrow to the next.
const LETTERS: usize = 26;

const STYLE: &str = "text{font:12px ui-monospace,monospace;fill:#222}.n{fill:#888;text-anchor:end}\
.t{font-weight:bold}.m{text-anchor:middle}.w{fill:#b00020}\
line,path,rect,circle{stroke:#345;stroke-width:1.2;fill:none}.l{stroke-dasharray:4 4;stroke:#9ab}rect{fill:#eef3f8}\
.d{fill:#345}.b{stroke:#2a7a3a}";

/// Draws the chart.
pub fn draw(chart: &Chart) -> String {
    let width = LEFT + COLUMN * chart.lifelines.len().max(1) + 40;
    let height = TOP + LINE * (chart.rows.len() + 2);
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">"#
    );
    let _ = writeln!(out, "<style>{STYLE}</style>");
    let _ = writeln!(
        out,
        r##"<defs><marker id="a" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto"><path d="M0,0 L8,4 L0,8 z" style="fill:#345"/></marker></defs>"##
    );
    let _ = writeln!(out, r#"<rect x="0" y="0" width="{width}" height="{height}" style="fill:#fff;stroke:none"/>"#);
    words(&mut out, 12, 22, "t", &chart.title);
    lifelines(chart, &mut out);
    let mut sent = HashMap::new();
    let mut step = 0;
    for (index, row) in chart.rows.iter().enumerate() {
        if row.step != step {
            words(&mut out, 48, y_of(index) + 4, "n", &row.step.to_string());
        }
        step = row.step;
        draw_row(row, y_of(index), &mut sent, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn x_of(lifeline: usize) -> usize {
    LEFT + lifeline * COLUMN
}

fn y_of(row: usize) -> usize {
    TOP + LINE * (row + 1)
}

fn lifelines(chart: &Chart, out: &mut String) {
    for (at, lifeline) in chart.lifelines.iter().enumerate() {
        let row_of = |event: Event| chart.rows.iter().position(|row| row.at == at && row.event == event);
        let first = row_of(Event::Birth).filter(|_| !lifeline.initial).map_or(TOP, y_of);
        let last_death = chart.rows.iter().rposition(|row| row.at == at && row.event == Event::Death);
        let reborn = chart.rows.iter().rposition(|row| row.at == at && row.event == Event::Birth);
        let end = match (last_death, reborn) {
            (Some(death), birth) if birth.is_none_or(|birth| birth < death) => y_of(death),
            _ => y_of(chart.rows.len()),
        };
        let x = x_of(at);
        let _ = writeln!(out, r#"<line class="l" x1="{x}" y1="{first}" x2="{x}" y2="{end}"/>"#);
        if lifeline.initial {
            head(out, x, TOP - BOX.1, &lifeline.name);
        }
    }
}

fn head(out: &mut String, x: usize, y: usize, name: &str) {
    let (width, height) = BOX;
    let _ = writeln!(out, r#"<rect x="{}" y="{y}" width="{width}" height="{height}" rx="3"/>"#, x - width / 2);
    words(out, x, y + height - 8, "m", &clipped(name, LETTERS / 2 + 3));
}

fn draw_row(row: &Row, y: usize, sent: &mut HashMap<usize, (usize, usize)>, out: &mut String) {
    let x = x_of(row.at);
    match row.event {
        Event::Local => {
            dot(out, x, y);
            words(out, x + 9, y + 4, "", &clipped(&row.text, LETTERS));
        }
        Event::Meet(to) => {
            arrow(out, (x, y), (x_of(to), y));
            words(out, x.midpoint(x_of(to)), y - 5, "m", &clipped(&row.text, LETTERS));
        }
        Event::Send(message) => {
            sent.insert(message, (x, y));
            dot(out, x, y);
            words(out, x + 9, y + 4, "", &clipped(&row.text, LETTERS));
        }
        Event::Receive(message) => {
            if let Some(&from) = sent.get(&message) {
                arrow(out, from, (x, y));
            }
            words(out, x + 9, y + 4, "", &clipped(&row.text, LETTERS));
        }
        Event::Birth => head(out, x, y - BOX.1 / 2, &row.text),
        Event::Death => {
            let _ = writeln!(out, r#"<path d="M{0},{2} L{1},{3} M{0},{3} L{1},{2}"/>"#, x - 5, x + 5, y - 5, y + 5);
        }
        Event::Wrong => words(out, x + 9, y + 4, "w", &row.text),
    }
}

fn dot(out: &mut String, x: usize, y: usize) {
    let _ = writeln!(out, r#"<circle class="d" cx="{x}" cy="{y}" r="2.5"/>"#);
}

fn arrow(out: &mut String, from: (usize, usize), to: (usize, usize)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(out, r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" marker-end="url(#a)"/>"#);
}

fn words(out: &mut String, x: usize, y: usize, class: &str, text: &str) {
    let _ = writeln!(out, r#"<text class="{class}" x="{x}" y="{y}">{}</text>"#, escaped(text));
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
