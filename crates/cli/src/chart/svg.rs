//! A chart as a picture.

use super::{Chart, Event, Row, clipped};
use crate::svg::{Anchor, Svg};
use std::collections::HashMap;

/// Distances in pixels.
const COLUMN: f64 = 190.0;
const LINE: f64 = 24.0;
const TOP: f64 = 76.0;
const LEFT: f64 = 110.0;
const BOX: (f64, f64) = (124.0, 24.0);
/// Letters that fit beside a lifeline, and on an arrow to the next.
const LETTERS: usize = 26;

const INK: &str = "#334455";
const FAINT: &str = "#b8c4d0";
const FILL: &str = "#e8eef4";
const ALARM: &str = "#b00020";

/// A place in the picture.
type Point = (f64, f64);

/// Draws the chart.
pub fn draw(chart: &Chart) -> String {
    let width = LEFT + COLUMN * chart.lifelines.len().max(1) as f64 + 40.0;
    let mut svg = Svg::new(width, y_of(chart.rows.len() + 1));
    svg.text((12.0, 22.0), Anchor::Start, &chart.title);
    lifelines(chart, &mut svg);
    let mut sent = HashMap::new();
    let mut step = 0;
    for (index, row) in chart.rows.iter().enumerate() {
        if row.step != step {
            svg.text((44.0, y_of(index) + 4.0), Anchor::End, &row.step.to_string());
        }
        step = row.step;
        draw_row(row, (x_of(row.at), y_of(index)), &mut sent, &mut svg);
    }
    svg.finish()
}

fn x_of(lifeline: usize) -> f64 {
    LEFT + lifeline as f64 * COLUMN
}

fn y_of(row: usize) -> f64 {
    TOP + LINE * (row as f64 + 1.0)
}

fn lifelines(chart: &Chart, svg: &mut Svg) {
    for (at, lifeline) in chart.lifelines.iter().enumerate() {
        let x = x_of(at);
        let mut alive = lifeline.initial.then_some(TOP);
        for (index, row) in chart.rows.iter().enumerate().filter(|(_, row)| row.at == at) {
            match (row.event, alive) {
                (Event::Birth, None) => alive = Some(y_of(index)),
                (Event::Death, Some(since)) => {
                    svg.line((x, since), (x, y_of(index)), FAINT);
                    alive = None;
                }
                _ => {}
            }
        }
        if let Some(since) = alive {
            svg.line((x, since), (x, y_of(chart.rows.len())), FAINT);
        }
        if lifeline.initial {
            head(svg, (x, TOP - BOX.1 / 2.0), &lifeline.name);
        }
    }
}

fn head(svg: &mut Svg, (x, y): Point, name: &str) {
    svg.rect((x - BOX.0 / 2.0, y - BOX.1 / 2.0), BOX, FILL);
    svg.text((x, y + 4.0), Anchor::Middle, &clipped(name, LETTERS / 2 + 3));
}

fn draw_row(row: &Row, (x, y): Point, sent: &mut HashMap<usize, Point>, svg: &mut Svg) {
    let beside = (x + 9.0, y + 4.0);
    let text = clipped(&row.text, LETTERS);
    match row.event {
        Event::Local | Event::Send(_) => {
            if let Event::Send(message) = row.event {
                sent.insert(message, (x, y));
            }
            svg.circle((x, y), 2.5, INK);
            svg.text(beside, Anchor::Start, &text);
        }
        Event::Meet(to) => {
            arrow(svg, (x, y), (x_of(to), y));
            svg.text((x.midpoint(x_of(to)), y - 5.0), Anchor::Middle, &text);
        }
        Event::Receive(message) => {
            if let Some(&from) = sent.get(&message) {
                arrow(svg, from, (x, y));
            }
            svg.text(beside, Anchor::Start, &text);
        }
        Event::Birth => head(svg, (x, y), &row.text),
        Event::Death => {
            svg.line((x - 5.0, y - 5.0), (x + 5.0, y + 5.0), INK);
            svg.line((x - 5.0, y + 5.0), (x + 5.0, y - 5.0), INK);
        }
        Event::Gap => svg.text((x, y + 4.0), Anchor::Middle, &text),
        Event::Wrong => {
            svg.circle((x, y), 4.0, ALARM);
            svg.text(beside, Anchor::Start, &row.text);
        }
    }
}

/// A line with a head at its end.
fn arrow(svg: &mut Svg, from: Point, to: Point) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let wing = |side: f64| (to.0 - 9.0 * ux - side * uy, to.1 - 9.0 * uy + side * ux);
    svg.line(from, to, INK);
    svg.path(&[wing(4.0), to, wing(-4.0)], INK, 1.2);
}
