//! The results of a sweep as pictures.

use super::cells::Base;
use super::chart::{Axis, COLORS, Chart, SIZE};
use super::figures::{Figures, Memory};
use super::summary::{log_height, ranked};
use super::{levels, stores};
use crate::svg::{Anchor, Svg};

const CACHE: &str = "cache, per cent of the states";
/// Across, where every curve is sorted.
pub const MODELS: &str = "models, each line in an order of its own";

/// Every plot of what was measured, with the name of its file.
pub fn all(figures: &Figures) -> Vec<(&'static str, String)> {
    let caches = if figures.sizes.is_empty() { Vec::new() } else { of_caches(figures) };
    caches.into_iter().chain(levels::plots(figures)).chain(stores::plots(figures)).collect()
}

fn of_caches(figures: &Figures) -> Vec<(&'static str, String)> {
    vec![
        ("tradeoff.svg", tradeoff(figures)),
        ("success.svg", success(figures)),
        ("best.svg", best(figures)),
        ("degree.svg", scatter(figures, "average degree", Base::degree)),
        ("height.svg", scatter(figures, "logarithm of the breadth-first height", log_height)),
        ("memory.svg", memory(figures)),
    ]
}

/// The ways worth drawing: as many as there are colours.
fn drawn(figures: &Figures) -> Vec<String> {
    let mut ways = ranked(figures);
    ways.truncate(COLORS.len());
    ways
}

fn tradeoff(figures: &Figures) -> String {
    let title = "What forgetting costs (where more than half of the models succeed)";
    let visits = Axis::new("visits per state, median", 1.0, figures.limit);
    let mut chart = Chart::new(title, Axis::new(CACHE, 0.0, 100.0), visits);
    for way in drawn(figures) {
        let point = |&size: &u32| Some((size as f64, figures.median_visits(&way, size)?));
        chart.curve(&way, &figures.sizes.iter().filter_map(point).collect::<Vec<_>>());
    }
    chart.finish()
}

fn success(figures: &Figures) -> String {
    let models = Axis::new("models, per cent", 0.0, 100.0);
    let mut chart = Chart::new("For how many models a cache suffices", Axis::new(CACHE, 0.0, 100.0), models);
    let all = figures.models.len().max(1) as f64;
    let points = |count: &dyn Fn(u32) -> usize| -> Vec<(f64, f64)> {
        figures.sizes.iter().map(|&size| (size as f64, count(size) as f64 * 100.0 / all)).collect()
    };
    for way in drawn(figures).into_iter().take(COLORS.len() - 1) {
        chart.curve(&way, &points(&|size| figures.successes(Some(&way), size)));
    }
    chart.curve("best", &points(&|size| figures.successes(None, size)));
    chart.finish()
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
    let mut chart = Chart::new(title, Axis::new(name, 0.0, most), Axis::new(CACHE, 0.0, 100.0));
    chart.dots("", &points);
    chart.finish()
}

fn memory(figures: &Figures) -> String {
    let memory = figures.memory();
    let shares = |of: fn(&Memory) -> f64| memory.iter().map(|memory| (of(memory) * 100.0).min(100.0)).collect();
    let share = Axis::new("per cent of plain vectors (100: or more)", 0.0, 100.0);
    let mut chart = Chart::new("Memory of the visited states", Axis::new(MODELS, 1.0, memory.len() as f64), share);
    chart.sorted("compressed, all states held", shares(|memory| memory.tree));
    chart.sorted("leanest cache, plain vectors", shares(|memory| memory.cache));
    chart.sorted("the same, packed keys", shares(|memory| memory.packed));
    chart.sorted("the same, compressed", shares(|memory| memory.both));
    chart.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plot_is_drawn_whatever_there_is() {
        let (bases, cells) = super::super::figures::tests::sample();
        for (bases, cells, count) in [(&bases[..], &cells[..], 11), (&bases[..1], &cells[..1], 6), (&[], &[], 0)] {
            let plots = all(&Figures::new(bases, cells, 6.0));
            assert_eq!(plots.len(), count);
            for (name, plot) in plots {
                assert!(plot.ends_with("</svg>\n") && !plot.contains("NaN") && !plot.contains("inf"), "{name}: {plot}");
            }
        }
    }
}
