//! The results of a sweep as pictures.

use super::cells::Base;
use super::figures::{Figures, Memory};
use super::summary::{log_height, ranked};
use crate::svg::{Anchor, Svg};

const SIZE: (f64, f64) = (760.0, 420.0);
/// The area inside the axes: left, top, right, bottom.
const AREA: (f64, f64, f64, f64) = (60.0, 40.0, 540.0, 370.0);
const COLORS: [&str; 10] =
    ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f"];
const TICKS: usize = 5;

/// Every plot with the name of its file.
pub fn all(figures: &Figures) -> Vec<(&'static str, String)> {
    vec![
        ("tradeoff.svg", tradeoff(figures)),
        ("success.svg", success(figures)),
        ("best.svg", best(figures)),
        ("degree.svg", scatter(figures, "average degree", Base::degree)),
        ("height.svg", scatter(figures, "logarithm of the breadth-first height", log_height)),
        ("memory.svg", memory(figures)),
    ]
}

/// A picture with axes from zero or one to a greatest value.
struct Chart {
    svg: Svg,
    low: (f64, f64),
    high: (f64, f64),
    series: usize,
}

impl Chart {
    fn new(title: &str, names: (&str, &str), low: (f64, f64), high: (f64, f64)) -> Chart {
        let mut svg = Svg::new(SIZE.0, SIZE.1);
        let (left, top, right, bottom) = AREA;
        svg.text(((left + right) / 2.0, top - 18.0), Anchor::Middle, title);
        svg.text(((left + right) / 2.0, bottom + 38.0), Anchor::Middle, names.0);
        svg.text((left, top - 4.0), Anchor::Start, names.1);
        svg.path(&[(left, top), (left, bottom), (right, bottom)], "black", 1.0);
        let high =
            (if high.0 > low.0 { high.0 } else { low.0 + 1.0 }, if high.1 > low.1 { high.1 } else { low.1 + 1.0 });
        let mut chart = Chart { svg, low, high, series: 0 };
        for tick in 0..=TICKS {
            let part = tick as f64 / TICKS as f64;
            let value = (low.0 + part * (high.0 - low.0), low.1 + part * (high.1 - low.1));
            let (x, y) = chart.place(value);
            chart.svg.line((x, bottom), (x, bottom + 4.0), "black");
            chart.svg.text((x, bottom + 18.0), Anchor::Middle, &short(value.0));
            chart.svg.line((left, y), (right, y), "#dddddd");
            chart.svg.text((left - 6.0, y + 4.0), Anchor::End, &short(value.1));
        }
        chart
    }

    fn place(&self, value: (f64, f64)) -> (f64, f64) {
        let (left, top, right, bottom) = AREA;
        let part = |value: f64, low: f64, high: f64| (value - low) / (high - low);
        let x = left + part(value.0, self.low.0, self.high.0) * (right - left);
        (x, bottom - part(value.1, self.low.1, self.high.1) * (bottom - top))
    }

    /// A line with a name beside the picture.
    fn curve(&mut self, name: &str, points: &[(f64, f64)]) {
        let color = COLORS[self.series % COLORS.len()];
        let points: Vec<(f64, f64)> = points.iter().map(|&point| self.place(point)).collect();
        self.svg.path(&points, color, 2.0);
        points.iter().for_each(|&point| self.svg.circle(point, 2.5, color));
        let y = AREA.1 + 16.0 * self.series as f64;
        self.svg.rect((AREA.2 + 16.0, y - 8.0), (12.0, 8.0), color);
        self.svg.text((AREA.2 + 34.0, y), Anchor::Start, name);
        self.series += 1;
    }

    fn dots(&mut self, points: &[(f64, f64)]) {
        for &point in points {
            let place = self.place(point);
            self.svg.circle(place, 3.5, COLORS[0]);
        }
    }
}

fn short(value: f64) -> String {
    if value >= 10.0 || value == value.round() { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// The ways worth drawing: as many as there are colours.
fn drawn(figures: &Figures) -> Vec<String> {
    let mut ways = ranked(figures);
    ways.truncate(COLORS.len());
    ways
}

fn tradeoff(figures: &Figures) -> String {
    let names = ("cache, per cent of the states", "visits per state, median");
    let title = "What forgetting costs (where more than half of the models succeed)";
    let mut chart = Chart::new(title, names, (0.0, 1.0), (100.0, figures.limit));
    for way in drawn(figures) {
        let point = |&size: &u32| Some((size as f64, figures.median_visits(&way, size)?));
        chart.curve(&way, &figures.sizes.iter().filter_map(point).collect::<Vec<_>>());
    }
    chart.svg.finish()
}

fn success(figures: &Figures) -> String {
    let names = ("cache, per cent of the states", "models, per cent");
    let mut chart = Chart::new("For how many models a cache suffices", names, (0.0, 0.0), (100.0, 100.0));
    let all = figures.models.len().max(1) as f64;
    let points = |count: &dyn Fn(u32) -> usize| -> Vec<(f64, f64)> {
        figures.sizes.iter().map(|&size| (size as f64, count(size) as f64 * 100.0 / all)).collect()
    };
    for way in drawn(figures).into_iter().take(COLORS.len() - 1) {
        chart.curve(&way, &points(&|size| figures.successes(Some(&way), size)));
    }
    chart.curve("best", &points(&|size| figures.successes(None, size)));
    chart.svg.finish()
}

fn best(figures: &Figures) -> String {
    let wins = figures.wins();
    let most = wins.iter().map(|(_, count)| *count).max().unwrap_or(1) as f64;
    let mut svg = Svg::new(SIZE.0, 60.0 + 22.0 * wins.len() as f64);
    svg.text((SIZE.0 / 2.0, 24.0), Anchor::Middle, "For how many models a strategy is the best");
    for (index, (way, count)) in wins.iter().enumerate() {
        let y = 44.0 + 22.0 * index as f64;
        let length = *count as f64 / most * 400.0;
        svg.text((220.0, y + 12.0), Anchor::End, way);
        svg.rect((230.0, y), (length, 16.0), COLORS[0]);
        svg.text((236.0 + length, y + 12.0), Anchor::Start, &count.to_string());
    }
    svg.finish()
}

fn scatter(figures: &Figures, name: &str, property: impl Fn(&Base) -> f64) -> String {
    let points = figures.against(property);
    let most = points.iter().map(|point| point.0).fold(1.0, f64::max).ceil();
    let title = "The smallest cache that suffices, each dot a model";
    let mut chart = Chart::new(title, (name, "cache, per cent of the states"), (0.0, 0.0), (most, 100.0));
    chart.dots(&points);
    chart.svg.finish()
}

fn memory(figures: &Figures) -> String {
    let memory = figures.memory();
    let sorted = |of: fn(&Memory) -> f64| -> Vec<(f64, f64)> {
        let mut shares: Vec<f64> = memory.iter().map(|memory| (of(memory) * 100.0).min(100.0)).collect();
        shares.sort_by(f64::total_cmp);
        shares.iter().enumerate().map(|(index, &share)| (index as f64 + 1.0, share)).collect()
    };
    let names = ("models, each line in an order of its own", "per cent of plain vectors (100: or more)");
    let title = "Memory of the visited states";
    let mut chart = Chart::new(title, names, (1.0, 0.0), (memory.len() as f64, 100.0));
    chart.curve("compressed, all states held", &sorted(|memory| memory.tree));
    chart.curve("leanest cache, plain vectors", &sorted(|memory| memory.cache));
    chart.curve("leanest cache, compressed", &sorted(|memory| memory.both));
    chart.svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plot_is_drawn_whatever_there_is() {
        let (bases, cells) = super::super::figures::tests::sample();
        for (bases, cells) in [(&bases[..], &cells[..]), (&bases[..1], &cells[..1]), (&[], &[])] {
            let plots = all(&Figures::new(bases, cells, 6.0));
            assert_eq!(plots.len(), 6);
            for (name, plot) in plots {
                assert!(plot.ends_with("</svg>\n") && !plot.contains("NaN") && !plot.contains("inf"), "{name}: {plot}");
            }
        }
    }
}
