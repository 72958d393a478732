//! Pictures with two axes: lines and dots with their names beside them.

use crate::svg::{Anchor, Svg};

pub const SIZE: (f64, f64) = (760.0, 420.0);
/// The area inside the axes: left, top, right, bottom.
const AREA: (f64, f64, f64, f64) = (60.0, 40.0, 540.0, 370.0);
pub const COLORS: [&str; 20] = [
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f",
    "#aec7e8", "#ff9896", "#98df8a", "#c5b0d5", "#ffbb78", "#c49c94", "#f7b6d2", "#9edae5", "#dbdb8d", "#c7c7c7",
];
const TICKS: usize = 5;

/// From where to where, and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    name: &'a str,
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl<'a> Axis<'a> {
    pub fn new(name: &'a str, low: f64, high: f64) -> Axis<'a> {
        Axis { name, low, high: if high > low { high } else { low + 1.0 }, logarithmic: false }
    }

    /// Equal factors are equally far apart; for values above zero.
    pub fn logarithmic(name: &'a str, low: f64, high: f64) -> Axis<'a> {
        let low = if low > 0.0 { low } else { 1.0 };
        Axis { name, low, high: if high > low { high } else { low * 2.0 }, logarithmic: true }
    }

    /// Around all these values.
    pub fn around(name: &'a str, values: impl Iterator<Item = f64> + Clone) -> Axis<'a> {
        let low = values.clone().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let high = values.fold(0.0, f64::max);
        Axis::logarithmic(name, if low.is_finite() { low } else { 1.0 }, high)
    }

    /// How far along, from 0 to 1.
    fn part(&self, value: f64) -> f64 {
        match self.logarithmic {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        }
    }

    fn at(&self, part: f64) -> f64 {
        match self.logarithmic {
            true => self.low * (self.high / self.low).powf(part),
            false => self.low + part * (self.high - self.low),
        }
    }
}

/// A picture under construction.
pub struct Chart<'a> {
    svg: Svg,
    axes: (Axis<'a>, Axis<'a>),
    series: usize,
}

impl<'a> Chart<'a> {
    pub fn new(title: &str, across: Axis<'a>, up: Axis<'a>) -> Chart<'a> {
        let mut svg = Svg::new(SIZE.0, SIZE.1);
        let (left, top, right, bottom) = AREA;
        svg.text(((left + right) / 2.0, top - 18.0), Anchor::Middle, title);
        svg.text(((left + right) / 2.0, bottom + 38.0), Anchor::Middle, across.name);
        svg.text((left, top - 4.0), Anchor::Start, up.name);
        svg.path(&[(left, top), (left, bottom), (right, bottom)], "black", 1.0);
        let mut chart = Chart { svg, axes: (across, up), series: 0 };
        for tick in 0..=TICKS {
            let part = tick as f64 / TICKS as f64;
            let value = (across.at(part), up.at(part));
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
        let x = left + self.axes.0.part(value.0) * (right - left);
        (x, bottom - self.axes.1.part(value.1) * (bottom - top))
    }

    /// A line.
    pub fn curve(&mut self, name: &str, points: &[(f64, f64)]) {
        let color = self.named(name);
        let points: Vec<(f64, f64)> = points.iter().map(|&point| self.place(point)).collect();
        self.svg.path(&points, color, 2.0);
        points.iter().for_each(|&point| self.svg.circle(point, 2.5, color));
    }

    /// Values from the least to the greatest, each curve in an order of its own.
    pub fn sorted(&mut self, name: &str, mut values: Vec<f64>) {
        values.sort_by(f64::total_cmp);
        let points = values.into_iter().enumerate().map(|(index, value)| (index as f64 + 1.0, value));
        self.curve(name, &points.collect::<Vec<_>>());
    }

    /// Dots; without a name if there is nothing to tell them from.
    pub fn dots(&mut self, name: &str, points: &[(f64, f64)]) {
        let color = if name.is_empty() { COLORS[0] } else { self.named(name) };
        for &point in points {
            let place = self.place(point);
            self.svg.circle(place, 3.5, color);
        }
    }

    /// The next colour, with its name beside the picture.
    fn named(&mut self, name: &str) -> &'static str {
        let color = COLORS[self.series % COLORS.len()];
        let y = AREA.1 + 16.0 * self.series as f64;
        self.svg.rect((AREA.2 + 16.0, y - 8.0), (12.0, 8.0), color);
        self.svg.text((AREA.2 + 34.0, y), Anchor::Start, name);
        self.series += 1;
        color
    }

    pub fn finish(self) -> String {
        self.svg.finish()
    }
}

/// A number for a tick.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        _ if value >= 1e9 => (value / 1e9, "G"),
        _ if value >= 1e6 => (value / 1e6, "M"),
        _ if value >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    if value >= 10.0 || value == value.round() { format!("{value:.0}{unit}") } else { format!("{value:.1}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_place() {
        let line = Axis::new("x", 1.0, 5.0);
        assert_eq!((line.part(1.0), line.part(3.0), line.at(1.0)), (0.0, 0.5, 5.0));
        let powers = Axis::logarithmic("x", 1.0, 16.0);
        assert_eq!((powers.part(1.0), powers.part(4.0), powers.at(0.25)), (0.0, 0.5, 2.0));
        assert_eq!(powers.part(0.0), 0.0, "there is no logarithm of it");
        let around = Axis::around("x", [0.0, 8.0, 2.0].into_iter());
        assert_eq!((around.low, around.high), (2.0, 8.0));
        for empty in [Axis::new("x", 1.0, 1.0), Axis::around("x", [].into_iter()), Axis::logarithmic("x", 0.0, 0.0)] {
            assert!(empty.part(empty.high).is_finite() && empty.high > empty.low);
        }
        assert_eq!([1.0, 2.5, 10.4, 12_345.0, 2.5e6, 3e10].map(short), ["1", "2.5", "10", "12k", "2.5M", "30G"]);
    }
}
