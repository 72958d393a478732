//! Strategies whose room is not so many states: with levels as snapshots, with sleep sets alone. What they take and cost against the
//! search in the same order that holds every state, each with its usual store.

use super::cells::{Base, Cell, FULL, USUAL_STORE};
use super::chart::{Axis, Chart};
use super::figures::{Figures, LEAST_SECONDS, median, visit_ratio};
use super::plots::MODELS;
use super::summary::{head, row};
use crate::size::show_count;

/// A run beside the one that holds every state.
struct Beside<'a> {
    base: &'a Base,
    cell: &'a Cell,
    visits: f64,
    /// Of all structures.
    memory: f64,
    time: f64,
}

impl<'a> Beside<'a> {
    fn new(base: &'a Base, cell: &'a Cell, full: &Cell) -> Beside<'a> {
        let memory = cell.all_bytes as f64 / full.all_bytes.max(1) as f64;
        let time = cell.seconds.max(LEAST_SECONDS) / full.seconds.max(LEAST_SECONDS);
        Beside { base, cell, visits: visit_ratio(base, cell), memory, time }
    }
}

/// All of them, but for what holds every state.
fn besides<'a>(figures: &Figures<'a>) -> Vec<Beside<'a>> {
    let usual = |cell: &Cell| !cell.is_sized() && cell.store == USUAL_STORE;
    let full = |base: &Base, order: &str| {
        figures.of_model(&base.model).find(|cell| usual(cell) && cell.strategy == FULL && cell.order == order)
    };
    let found = figures.models.iter().flat_map(|base| figures.of_model(&base.model).map(move |cell| (*base, cell)));
    let found = found.filter(|(_, cell)| usual(cell) && cell.strategy != FULL);
    found.filter_map(|(base, cell)| Some(Beside::new(base, cell, full(base, &cell.order)?))).collect()
}

fn ways(besides: &[Beside]) -> Vec<String> {
    let mut ways: Vec<String> = besides.iter().map(|beside| beside.cell.way()).collect();
    ways.sort();
    ways.dedup();
    ways
}

/// The runs of a way that visited everything.
fn complete<'b, 'a>(besides: &'b [Beside<'a>], way: &'b str) -> impl Iterator<Item = &'b Beside<'a>> {
    besides.iter().filter(move |beside| beside.cell.way() == way && beside.cell.is_complete())
}

/// The section of the summary, if there is any such run.
pub fn text(figures: &Figures, out: &mut String) {
    let besides = besides(figures);
    if besides.is_empty() {
        return;
    }
    out.push_str(
        "**Without a cache of states**: visits per state, memory of all structures and time relative to the search in the same \
         order that holds every state, medians over the models for which the strategy suffices.\n\n",
    );
    head(out, &["strategy", "suffices for", "visits", "memory", "least", "most", "time"]);
    for way in ways(&besides) {
        let all = besides.iter().filter(|beside| beside.cell.way() == way).count();
        let of = |value: fn(&Beside) -> f64| complete(&besides, &way).map(value).collect::<Vec<f64>>();
        let memory = of(|beside| beside.memory);
        let count = memory.len();
        let show = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.2}"));
        let share = |value: Option<f64>| value.map_or("–".into(), |value| format!("{:.1} %", value * 100.0));
        let ends = [f64::min, f64::max].map(|pick| memory.iter().copied().reduce(pick));
        let (visits, time) = (show(median(of(|beside| beside.visits))), show(median(of(|beside| beside.time))));
        let memory = [median(memory.clone()), ends[0], ends[1]].map(share);
        let [middle, least, most] = memory;
        row(out, &[way.clone(), format!("{count} of {all}"), visits, middle, least, most, time]);
    }
    out.push('\n');
    head(out, &["model", "states", "levels", "strategy", "visits", "memory", "time"]);
    for beside in &besides {
        let Beside { base, cell, .. } = beside;
        let mut cells = vec![base.model.clone(), show_count(base.states), base.height.to_string(), cell.way()];
        match cell.is_complete() {
            true => cells.extend([
                format!("{:.2}", beside.visits),
                format!("{:.1} %", beside.memory * 100.0),
                format!("{:.2}", beside.time),
            ]),
            false => cells.extend([cell.result.clone(), "–".into(), "–".into()]),
        }
        row(out, &cells);
    }
    out.push('\n');
}

pub fn plots(figures: &Figures) -> Vec<(&'static str, String)> {
    let besides = besides(figures);
    if besides.is_empty() {
        return Vec::new();
    }
    let chart = |title: &str, up: &str, least: f64, value: fn(&Beside) -> f64| {
        let most = besides.iter().filter(|beside| beside.cell.is_complete()).map(value).fold(least, f64::max);
        let models = ways(&besides).iter().map(|way| complete(&besides, way).count()).max().unwrap_or(0);
        let mut chart = Chart::new(title, Axis::new(MODELS, 1.0, models as f64), Axis::new(up, 0.0, most));
        for way in ways(&besides) {
            chart.sorted(&way, complete(&besides, &way).map(value).collect());
        }
        chart.finish()
    };
    let relative = "relative to holding every state";
    vec![
        ("levels-memory.svg", chart("Memory of all structures", "per cent", 100.0, |beside| beside.memory * 100.0)),
        ("levels-time.svg", chart("Processor time", relative, 1.0, |beside| beside.time)),
        ("levels-visits.svg", chart("Visits per state", "visits per state", 1.0, |beside| beside.visits)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_compared_with_the_one_that_holds_every_state() {
        let (bases, cells) = super::super::figures::tests::sample();
        let mut out = String::new();
        text(&Figures::new(&bases, &cells, 6.0), &mut out);
        // One of three models is too much for it; its memory is a quarter and a half.
        assert!(out.contains("| bfs pebble | 2 of 3 | 1.50 | 37.5 % | 25.0 % | 50.0 % | 2.00 |"), "{out}");
        assert!(out.contains("| m1 | 100 | 10 | bfs pebble | 1.50 | 25.0 % | 2.00 |"), "{out}");
        assert!(out.contains("| m3 | 300 | 30 | bfs pebble | memory | – | – |"), "{out}");
        let mut none = String::new();
        text(&Figures::new(&bases, &cells[..1], 6.0), &mut none);
        assert_eq!(none, "");
    }
}
