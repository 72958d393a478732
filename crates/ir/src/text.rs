//! A textual form of systems, for people and for tests.
//!
//! [`print()`] writes a verified system, [`parse`] reads one back, equal to what was printed. Names are
//! used wherever they are plain and unambiguous, numbers (`#3`, and `$3` for temporaries) elsewhere. The
//! grammar is in `docs/ir.md`. Parsing checks names and form only: call [`crate::verify()`] afterwards.

mod lex;
mod parse;
mod parse_code;
mod print;

pub use lex::ParseError;
pub use parse::parse;
pub use print::print;

/// Words that cannot be used as names without quotes.
const KEYWORDS: &[&str] = &[
    "absorb",
    "as",
    "assert",
    "at",
    "before",
    "block",
    "break",
    "call",
    "choose",
    "command",
    "deadlock",
    "discard",
    "do",
    "else",
    "enum",
    "exclusive",
    "expect",
    "fault",
    "faults",
    "from",
    "goal",
    "if",
    "in",
    "input",
    "invariant",
    "kind",
    "line",
    "loop",
    "never",
    "of",
    "output",
    "procedure",
    "process",
    "rank",
    "recursion",
    "reference",
    "reset",
    "select",
    "sort",
    "start",
    "stuck",
    "stuttering",
    "system",
    "temp",
    "unless",
    "vanish",
    "var",
    "when",
    "wrapping",
];

/// May the name stand without quotes?
fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !KEYWORDS.contains(&name)
}

#[cfg(test)]
mod tests;
