//! Pictures as SVG text: lines, boxes, circles and words, nothing more.

use std::fmt::Write;

/// A picture under construction. Coordinates are pixels from the upper left corner.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
    /// Words come last and have a white edge, so that no line goes through them.
    words: String,
}

/// Where a text stands at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new(), words: String::new() }
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str) {
        self.path(&[from, to], color, 1.0);
    }

    /// Straight lines from point to point.
    pub fn path(&mut self, points: &[(f64, f64)], color: &str, width: f64) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let _ = writeln!(
            self.body,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"/>"
        );
    }

    pub fn rect(&mut self, corner: (f64, f64), size: (f64, f64), fill: &str) {
        let ((x, y), (width, height)) = (corner, size);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        );
    }

    pub fn circle(&mut self, center: (f64, f64), radius: f64, fill: &str) {
        let (x, y) = center;
        let _ = writeln!(self.body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\"/>");
    }

    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let ((x, y), text) = (at, escape(text));
        let _ = writeln!(self.words, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    }

    /// The whole file.
    pub fn finish(self) -> String {
        let Svg { width, height, body, words } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}\
             <g paint-order=\"stroke\" stroke=\"white\" stroke-width=\"4\" fill=\"black\">\n{words}</g>\n</svg>\n"
        )
    }
}

/// Text that may stand between tags.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_well_formed() {
        let mut svg = Svg::new(100.0, 50.0);
        svg.line((0.0, 0.0), (10.0, 10.0), "black");
        svg.rect((1.0, 2.0), (3.0, 4.0), "red");
        svg.circle((5.0, 5.0), 2.0, "blue");
        svg.text((1.0, 1.0), Anchor::Middle, "a < b & \"c\"");
        let text = svg.finish();
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert!(text.contains("a &lt; b &amp; &quot;c&quot;"));
        assert_eq!(text.matches('<').count(), text.matches('>').count());
    }
}
