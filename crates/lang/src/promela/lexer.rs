//! Promela text → tokens, before preprocessing.
//!
//! Comments and line continuations disappear here; a token remembers whether a line ended before it,
//! because a newline may stand for a semicolon and because directives end with their line. Nothing
//! fails: an odd character, or a comment or string that is not closed, becomes a token of its own, which the
//! preprocessor or the parser will not like.

use crate::diagnostic::Span;
use plimsoll_ir::BinOp;
use std::sync::Arc;

/// Binary operators with how tightly they bind, in statements and in the preprocessor's conditions.
pub const OPERATORS: [(&str, BinOp, u8); 18] = [
    ("||", BinOp::Or, 1),
    ("&&", BinOp::And, 2),
    ("|", BinOp::BitOr, 3),
    ("^", BinOp::BitXor, 4),
    ("&", BinOp::BitAnd, 5),
    ("==", BinOp::Eq, 6),
    ("!=", BinOp::Ne, 6),
    ("<", BinOp::Lt, 7),
    (">", BinOp::Gt, 7),
    ("<=", BinOp::Le, 7),
    (">=", BinOp::Ge, 7),
    ("<<", BinOp::Shl, 8),
    (">>", BinOp::Shr, 8),
    ("+", BinOp::Add, 9),
    ("-", BinOp::Sub, 9),
    ("*", BinOp::Mul, 10),
    ("/", BinOp::Div, 10),
    ("%", BinOp::Rem, 10),
];

/// Where a token comes from. In text from an included file or a macro, `span` marks the place in the main
/// file that caused it, so that messages always have something to underline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Site {
    pub span: Span,
    /// Line within its own file, from 1.
    pub line: u32,
    /// Index into the list of files, the main file being 0.
    pub file: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Word,
    /// Digits or a character in quotes; the value is that of C's `int`.
    Number(i64),
    /// A string with its quotes.
    Text,
    Punct,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: TokenKind,
    pub text: Arc<str>,
    pub site: Site,
    /// Does a line end somewhere between the token before and this one?
    pub newline: bool,
    /// Is it the first of a line, as directives see it? A line end within a comment does not count.
    pub starts_line: bool,
    /// Is there white space (or a comment, or a line end) before it?
    pub space: bool,
}

impl Token {
    /// A token that is not in any text.
    pub fn made(text: &str, site: Site) -> Token {
        let kind = TokenKind::Punct;
        Token { kind, text: text.into(), site, newline: false, starts_line: false, space: false }
    }

    pub fn is(&self, text: &str) -> bool {
        &*self.text == text && self.kind != TokenKind::Text
    }

    /// A comment that goes on to the end of the text.
    pub fn is_open_comment(&self) -> bool {
        self.kind == TokenKind::Punct && self.text.starts_with("/*")
    }

    /// A string whose end is missing.
    pub fn is_open_text(&self) -> bool {
        let inner = self.text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        // A quote behind an odd number of backslashes is part of the string.
        let closed = inner.is_some_and(|inner| (inner.len() - inner.trim_end_matches('\\').len()).is_multiple_of(2));
        self.kind == TokenKind::Text && !closed
    }
}

/// Longest first within the same first character.
const PUNCTUATION: [&str; 23] = [
    "<->", "::", "..", "->", "--", "++", "!!", "!=", "??", "<<", "<=", ">>", ">=", "==", "&&", "||", "##", "/\\",
    "\\/", "[]", "<>", "(", ")",
];

/// The tokens of `text`; all of them get their site from `place`, which maps a byte range and a line.
pub fn tokens(text: &str, place: impl Fn(Span, u32) -> Site) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0, line: 1, newline: true, starts_line: true, space: true };
    let mut out = Vec::new();
    while lexer.skip_blank() {
        let (start, line) = (lexer.at, lexer.line);
        let kind = lexer.take();
        let site = place(Span::new(start, lexer.at), line);
        let text: Arc<str> = strip_continuations(&lexer.text[start..lexer.at]).into();
        let (newline, starts_line, space) = (lexer.newline, lexer.starts_line, lexer.space);
        out.push(Token { kind, text, site, newline, starts_line, space });
        (lexer.newline, lexer.starts_line, lexer.space) = (false, false, false);
    }
    out
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    newline: bool,
    starts_line: bool,
    space: bool,
}

impl Lexer<'_> {
    fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    /// Zero at the end; the text itself has no zero bytes that matter.
    fn peek_at(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips white space and comments; false at the end of the text.
    fn skip_blank(&mut self) -> bool {
        loop {
            match self.peek() {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                    (self.newline, self.starts_line, self.space) = (true, true, true);
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                    self.at += 1;
                    self.space = true;
                }
                b'\\' if self.continuation() > 0 => {
                    self.at += self.continuation();
                    self.line += 1;
                    self.space = true;
                }
                b'/' if self.peek_at(1) == b'/' => self.skip_line_comment(),
                b'/' if self.peek_at(1) == b'*' => match self.text[self.at + 2..].find("*/") {
                    Some(length) => self.skip_block_comment(self.at + 2 + length + 2),
                    None => return true,
                },
                // The second end of a comment within a comment; SPIN steps over it.
                b'*' if self.peek_at(1) == b'/' => self.at += 2,
                _ => return self.at < self.text.len(),
            }
        }
    }

    /// Length of a backslash with the line end behind it, 0 if there is none.
    fn continuation(&self) -> usize {
        match (self.peek(), self.peek_at(1), self.peek_at(2)) {
            (b'\\', b'\n', _) => 2,
            (b'\\', b'\r', b'\n') => 3,
            _ => 0,
        }
    }

    fn skip_line_comment(&mut self) {
        self.space = true;
        while self.at < self.text.len() && self.peek() != b'\n' {
            let continued = self.continuation();
            self.line += (continued > 0) as u32;
            self.at += continued.max(1);
        }
    }

    fn skip_block_comment(&mut self, end: usize) {
        let lines = self.text[self.at..end].bytes().filter(|&byte| byte == b'\n').count() as u32;
        self.line += lines;
        self.newline |= lines > 0;
        self.space = true;
        self.at = end;
    }

    /// Takes one token; there is at least one byte.
    fn take(&mut self) -> TokenKind {
        match self.peek() {
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                TokenKind::Word
            }
            byte if byte.is_ascii_digit() => self.take_number(),
            b'"' => self.take_quoted(b'"', TokenKind::Text),
            b'\'' => self.take_character(),
            // One that is closed was skipped.
            b'/' if self.peek_at(1) == b'*' => {
                self.at = self.text.len();
                TokenKind::Punct
            }
            _ => self.take_punctuation(),
        }
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.at < self.text.len() && wanted(self.peek()) {
            self.at += 1;
        }
    }

    /// Numbers beyond 64 bits saturate, then wrap to 32 bits, as `(int) strtol` does.
    fn take_number(&mut self) -> TokenKind {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_digit());
        let value = self.text[start..self.at].parse::<i64>().unwrap_or(i64::MAX);
        TokenKind::Number(value as i32 as i64)
    }

    fn take_quoted(&mut self, quote: u8, kind: TokenKind) -> TokenKind {
        self.at += 1;
        while self.at < self.text.len() && !matches!(self.peek(), b'\n') && self.peek() != quote {
            let escaped = self.peek() == b'\\';
            let length = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
            self.at += length;
            if escaped {
                self.line += (self.peek() == b'\n') as u32;
                self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
            }
        }
        if self.peek() == quote {
            self.at += 1;
        }
        kind
    }

    fn take_character(&mut self) -> TokenKind {
        let start = self.at;
        self.take_quoted(b'\'', TokenKind::Punct);
        let inner = self.text[start..self.at].trim_matches('\'');
        let mut characters = inner.chars();
        let value = match (characters.next(), characters.next(), characters.next()) {
            (Some('\\'), Some(escaped), None) => match escaped {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'f' => '\x0c',
                other => other,
            },
            (Some(plain), None, None) if plain != '\\' => plain,
            _ => return TokenKind::Punct,
        };
        TokenKind::Number(value as i64)
    }

    fn take_punctuation(&mut self) -> TokenKind {
        let rest = &self.text[self.at..];
        let found = PUNCTUATION.iter().find(|punct| rest.starts_with(**punct)).map(|punct| punct.len());
        self.at += found.unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8));
        TokenKind::Punct
    }
}

fn strip_continuations(text: &str) -> String {
    if text.contains('\\') { text.replace("\\\r\n", "").replace("\\\n", "") } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> Vec<Token> {
        tokens(text, |span, line| Site { span, line, file: 0 })
    }

    fn texts(text: &str) -> Vec<String> {
        lex(text).iter().map(|token| token.text.to_string()).collect()
    }

    #[test]
    fn ranges_and_double_characters_are_told_apart() {
        assert_eq!(
            texts("i:1..4::a!!b??[c]->x++"),
            ["i", ":", "1", "..", "4", "::", "a", "!!", "b", "??", "[", "c", "]", "->", "x", "++"]
        );
        assert_eq!(texts("a<=b<<c!=d"), ["a", "<=", "b", "<<", "c", "!=", "d"]);
    }

    #[test]
    fn comments_and_continuations_vanish_but_lines_count() {
        let tokens = lex("a // x \\\n y\nb /* \n */ c \\\n d 'x' '\\n'");
        let seen: Vec<_> = tokens.iter().map(|token| (&*token.text, token.site.line, token.newline)).collect();
        assert_eq!(seen[..4], [("a", 1, true), ("b", 3, true), ("c", 4, true), ("d", 5, false)]);
        assert_eq!(tokens[4].kind, TokenKind::Number(120));
        assert_eq!(tokens[5].kind, TokenKind::Number(10));
    }

    #[test]
    fn numbers_are_those_of_a_32_bit_int() {
        let value = |text: &str| lex(text)[0].kind;
        assert_eq!(value("4294967295"), TokenKind::Number(-1));
        assert_eq!(value("99999999999999999999999"), TokenKind::Number(-1));
        assert_eq!(value("007"), TokenKind::Number(7));
    }

    #[test]
    fn any_text_gives_tokens_within_it() {
        for text in ["\"abc", "'", "'\\", "/*", "é§ß", "\\", "\"a\\", "//", "#é", "'é'", "\u{0}x"] {
            for token in lex(text) {
                assert!(token.site.span.end as usize <= text.len(), "{text:?}");
            }
        }
    }
}
