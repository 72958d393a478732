//! Messages about model text: what is wrong, where, and what to do about it.
//!
//! Only a window of the source line around the span is handed to the renderer, so that one line of many
//! megabytes costs no more than a short one. A span over several lines shows its first line.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet, renderer::DecorStyle};
use std::fmt;

/// A byte range of the source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.start) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// One message about model text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub message: String,
    /// Where in the text; `None` if it concerns the whole model.
    pub span: Option<Span>,
    /// Stands under the marked text; may be empty.
    pub label: String,
    /// Further lines below.
    pub notes: Vec<String>,
}

impl Diagnostic {
    pub fn error(message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            span: Some(span),
            label: String::new(),
            notes: Vec::new(),
        }
    }

    pub fn warning(message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message, span) }
    }

    /// An error about the model as a whole.
    pub fn general(message: impl Into<String>) -> Diagnostic {
        Diagnostic { span: None, ..Diagnostic::error(message, Span::default()) }
    }

    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}

/// Text under a name: a model file, or an expression from the command line.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Source {
    pub name: String,
    pub text: String,
}

/// Collects messages; keeps the first [`Diagnostics::MOST`] of each severity, because broken input can cause millions.
#[derive(Debug, Default)]
pub struct Diagnostics {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl Diagnostics {
    pub const MOST: usize = 500;

    pub fn push(&mut self, diagnostic: Diagnostic) {
        let list = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if list.len() < Self::MOST {
            list.push(diagnostic);
        }
    }

    pub fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// Has it seen so many errors that going on is pointless?
    pub fn is_full(&self) -> bool {
        self.errors.len() >= Self::MOST
    }

    /// The warnings, or everything if there was an error.
    pub fn finish(self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        if self.errors.is_empty() {
            Ok(self.warnings)
        } else {
            Err(self.errors.into_iter().chain(self.warnings).collect())
        }
    }
}

/// At most this many messages are shown at once.
pub const SHOWN: usize = 20;

/// Renders messages about one source: errors first, each kind in order of position, the rest only counted.
pub fn render(source: &Source, diagnostics: &[Diagnostic], styled: bool) -> String {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by_key(|diagnostic| (diagnostic.severity, diagnostic.span));
    let shown: Vec<String> =
        sorted.iter().take(SHOWN).map(|diagnostic| render_one(source, diagnostic, styled)).collect();
    let mut out = shown.join("\n\n");
    if sorted.len() > SHOWN {
        out.push_str(&format!("\n\nand {} more", sorted.len() - SHOWN));
    }
    out.push('\n');
    out
}

fn render_one(source: &Source, diagnostic: &Diagnostic, styled: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = level.primary_title(clip(&diagnostic.message, 2000)).elements(Vec::<Origin>::new());
    match diagnostic.span {
        Some(span) => {
            let excerpt = Excerpt::of(&source.text, span);
            let label = (!diagnostic.label.is_empty()).then(|| clip(&diagnostic.label, 500));
            let mark = AnnotationKind::Primary.span(excerpt.mark).label(label);
            let mut snippet = Snippet::source(excerpt.text).line_start(excerpt.line).annotation(mark);
            if excerpt.cut_left {
                // The snippet would count its column from the cut.
                let origin = Origin::path(source.name.as_str()).line(excerpt.line).char_column(excerpt.column);
                group = group.element(origin);
            } else {
                snippet = snippet.path(source.name.as_str());
            }
            group = group.element(snippet);
        }
        None => group = group.element(Origin::path(source.name.as_str())),
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(clip(note, 2000)));
    }
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// Names in messages come from the model and may be as long as it likes.
fn clip(text: &str, most: usize) -> String {
    if text.len() <= most { text.into() } else { format!("{}...", &text[..floor(text, most)]) }
}

/// Where a position lies: line and column, both from 1, the column in characters.
pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let offset = floor(text, offset);
    let before = &text.as_bytes()[..offset];
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    (line, text[line_start..offset].chars().count() + 1)
}

/// The part of a line that is shown.
struct Excerpt {
    text: String,
    mark: std::ops::Range<usize>,
    line: usize,
    column: usize,
    cut_left: bool,
}

impl Excerpt {
    const BEFORE: usize = 80;
    const AFTER: usize = 100;
    const CUT: &'static str = "...";

    fn of(text: &str, span: Span) -> Excerpt {
        let start = floor(text, span.start as usize);
        let (line, column) = position(text, start);
        let bytes = text.as_bytes();
        let line_start = bytes[..start].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let line_end =
            bytes[start..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |newline| start + newline);
        let line_end = if line_end > start && bytes[line_end - 1] == b'\r' { line_end - 1 } else { line_end };
        let left = floor(text, line_start.max(start.saturating_sub(Self::BEFORE)));
        let right = floor(text, line_end.min(start + Self::AFTER));
        let end = floor(text, span.end as usize).clamp(start, right);
        let prefix = if left > line_start { Self::CUT } else { "" };
        let suffix = if right < line_end { Self::CUT } else { "" };
        let shift = prefix.len();
        Excerpt {
            text: format!("{prefix}{}{suffix}", &text[left..right]),
            mark: start - left + shift..end - left + shift,
            line,
            column,
            cut_left: left > line_start,
        }
    }
}

/// The nearest character boundary at or below `offset`.
fn floor(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset.min(text.len()))
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { name: "m.dve".into(), text: text.into() }
    }

    #[test]
    fn the_marked_text_is_underlined_with_its_place() {
        let text = "byte x;\nbyte yy = 300;\n";
        let diagnostic = Diagnostic::error("300 does not fit", Span::new(18, 21))
            .label("a byte holds 0 to 255")
            .note("declare it as int");
        insta::assert_snapshot!(render(&source(text), &[diagnostic], false), @r"
        error: 300 does not fit
         --> m.dve:2:11
          |
        2 | byte yy = 300;
          |           ^^^ a byte holds 0 to 255
          |
          = note: declare it as int
        ");
    }

    #[test]
    fn messages_are_sorted_and_the_rest_is_counted() {
        let text = "abcdefghijklmnopqrstuvwxyz0123456789";
        let mut all: Vec<Diagnostic> =
            (0..25).rev().map(|at| Diagnostic::error(format!("e{at}"), Span::new(at, at + 1))).collect();
        all.insert(3, Diagnostic::warning("w", Span::new(0, 1)));
        let out = render(&source(text), &all, false);
        assert!(out.find("e0\n").unwrap() < out.find("e1\n").unwrap());
        assert!(out.contains("error: e19") && !out.contains("error: e20") && !out.contains("warning: w"));
        assert!(out.ends_with("and 6 more\n"));
    }

    #[test]
    fn a_huge_line_is_cut_around_the_mark_and_keeps_its_column() {
        let mut text = "x".repeat(5_000_000);
        text.push_str("BAD");
        text.push_str(&"y".repeat(5_000_000));
        let out = render(&source(&text), &[Diagnostic::error("here", Span::new(5_000_000, 5_000_003))], false);
        assert!(out.len() < 1000, "{}", out.len());
        assert!(out.contains("m.dve:1:5000001"), "{out}");
        assert!(out.contains("...x") && out.contains("xBADy") && out.contains("y...") && out.contains("^^^"));
    }

    #[test]
    fn any_span_can_be_rendered() {
        let text = "é\r\n\tß\n\n";
        for start in 0..12 {
            for end in 0..12 {
                let span = Span { start, end };
                render(&source(text), &[Diagnostic::error("m", span).label("l")], true);
            }
        }
        render(&source(""), &[Diagnostic::error("m", Span::new(0, 0)), Diagnostic::general("whole")], false);
    }

    #[test]
    fn plain_output_has_no_escapes_and_styled_has() {
        let diagnostic = [Diagnostic::error("m", Span::new(0, 1))];
        assert!(!render(&source("a"), &diagnostic, false).contains('\x1b'));
        assert!(render(&source("a"), &diagnostic, true).contains('\x1b'));
    }

    #[test]
    fn the_collector_keeps_a_bounded_number() {
        let mut all = Diagnostics::default();
        for _ in 0..3 * Diagnostics::MOST {
            all.push(Diagnostic::error("e", Span::default()));
            all.push(Diagnostic::warning("w", Span::default()));
        }
        assert!(all.is_full());
        assert_eq!(all.finish().unwrap_err().len(), 2 * Diagnostics::MOST);
    }
}
