//! Tokens of Murphi, CMurphi's and Rumur's together.
//!
//! Keywords are case-insensitive, other names are not. Only words that both tools reserve are tokens of
//! their own; words that one of them reserves stay names, and the parser knows them by their place.
//! Comments are `--` to the end of the line and `/* */`, which does not nest.

use crate::diagnostic::{Diagnostic, Diagnostics, Span};

macro_rules! keywords {
    ($($variant:ident $text:literal),* $(,)?) => {
        /// A word that both tools reserve.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Keyword { $($variant),* }

        impl Keyword {
            fn of(word: &str) -> Option<Keyword> {
                $(if word.eq_ignore_ascii_case($text) { return Some(Keyword::$variant); })*
                None
            }

            pub const fn text(self) -> &'static str {
                match self { $(Keyword::$variant => $text),* }
            }
        }
    };
}

keywords! {
    Alias "alias", Array "array", Assert "assert", Begin "begin", By "by", Case "case", Clear "clear",
    Const "const", Do "do", Else "else", Elsif "elsif", End "end", EndAlias "endalias", EndExists "endexists",
    EndFor "endfor", EndForall "endforall", EndFunction "endfunction", EndIf "endif",
    EndProcedure "endprocedure", EndRecord "endrecord", EndRule "endrule", EndRuleset "endruleset",
    EndStartstate "endstartstate", EndSwitch "endswitch", EndWhile "endwhile", EndChoose "endchoose",
    Enum "enum", Error "error", Exists "exists", For "for", Forall "forall", Function "function", If "if",
    Invariant "invariant", IsUndefined "isundefined", Of "of", Procedure "procedure", Put "put",
    Record "record", Return "return", Rule "rule", Ruleset "ruleset", Scalarset "scalarset",
    Startstate "startstate", Switch "switch", Then "then", To "to", Type "type", Undefine "undefine",
    Union "union", Var "var", While "while",
}

/// An operator or a separator; the several spellings of one are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    DotDot,
    Dot,
    Arrow,
    Assign,
    Implies,
    Le,
    Ge,
    Ne,
    Eq,
    Lt,
    Gt,
    Not,
    And,
    AndAnd,
    Or,
    OrOr,
    Xor,
    Tilde,
    Shl,
    Shr,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Question,
    Colon,
    Semicolon,
    Comma,
    ParenOpen,
    ParenClose,
    BracketOpen,
    BracketClose,
    BraceOpen,
    BraceClose,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Keyword(Keyword),
    Name,
    Number(i64),
    /// A number with a fraction or an exponent.
    Real,
    Text(String),
    Mark(Mark),
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// Longest spellings first.
const MARKS: &[(&str, Mark)] = &[
    ("==>", Mark::Arrow),
    ("..", Mark::DotDot),
    (":=", Mark::Assign),
    ("->", Mark::Implies),
    ("<<", Mark::Shl),
    (">>", Mark::Shr),
    ("<=", Mark::Le),
    (">=", Mark::Ge),
    ("!=", Mark::Ne),
    ("==", Mark::Eq),
    ("&&", Mark::AndAnd),
    ("||", Mark::OrOr),
    ("\u{2254}", Mark::Assign),
    ("\u{2192}", Mark::Implies),
    ("\u{21d2}", Mark::Arrow),
    ("\u{2264}", Mark::Le),
    ("\u{2265}", Mark::Ge),
    ("\u{2260}", Mark::Ne),
    ("\u{00ac}", Mark::Not),
    ("\u{2227}", Mark::AndAnd),
    ("\u{2228}", Mark::OrOr),
    ("\u{00d7}", Mark::Star),
    ("\u{00f7}", Mark::Slash),
    ("\u{2215}", Mark::Slash),
    ("\u{2212}", Mark::Minus),
    (".", Mark::Dot),
    ("=", Mark::Eq),
    ("<", Mark::Lt),
    (">", Mark::Gt),
    ("!", Mark::Not),
    ("&", Mark::And),
    ("|", Mark::Or),
    ("^", Mark::Xor),
    ("~", Mark::Tilde),
    ("+", Mark::Plus),
    ("-", Mark::Minus),
    ("*", Mark::Star),
    ("/", Mark::Slash),
    ("%", Mark::Percent),
    ("?", Mark::Question),
    (":", Mark::Colon),
    (";", Mark::Semicolon),
    (",", Mark::Comma),
    ("(", Mark::ParenOpen),
    (")", Mark::ParenClose),
    ("[", Mark::BracketOpen),
    ("]", Mark::BracketClose),
    ("{", Mark::BraceOpen),
    ("}", Mark::BraceClose),
];

/// Splits a text into tokens, the last of which is [`Kind::End`].
pub fn tokens(text: &str, diagnostics: &mut Diagnostics) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0, diagnostics };
    let mut out = Vec::new();
    while let Some(token) = lexer.next() {
        out.push(token);
    }
    out.push(Token { kind: Kind::End, span: Span::new(text.len(), text.len()) });
    out
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    diagnostics: &'a mut Diagnostics,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<Token> {
        loop {
            self.skip_blank();
            let start = self.at;
            let first = self.rest().chars().next()?;
            let kind = match first {
                '0'..='9' => self.number(),
                'a'..='z' | 'A'..='Z' | '_' => self.word(),
                '"' | '\u{201c}' => self.string(first),
                '\u{2200}' | '\u{2203}' => {
                    self.at += first.len_utf8();
                    Some(Kind::Keyword(if first == '\u{2200}' { Keyword::Forall } else { Keyword::Exists }))
                }
                _ => self.mark(first),
            };
            if let Some(kind) = kind {
                return Some(Token { kind, span: Span::new(start, self.at) });
            }
        }
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
            self.at += blank;
            let rest = self.rest();
            if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                match comment.find("*/") {
                    Some(end) => self.at += end + 4,
                    None => {
                        let span = Span::new(self.at, self.at + 2);
                        self.diagnostics.push(Diagnostic::error("this comment does not end", span));
                        self.at = self.text.len();
                    }
                }
            } else if blank == 0 {
                return;
            }
        }
    }

    /// The length of the longest prefix of the rest whose characters satisfy `wanted`.
    fn run(&self, from: usize, wanted: impl Fn(char) -> bool) -> usize {
        let rest = &self.text[from..];
        rest.find(|c| !wanted(c)).unwrap_or(rest.len())
    }

    fn word(&mut self) -> Option<Kind> {
        let len = self.run(self.at, |c| c.is_ascii_alphanumeric() || c == '_');
        let word = &self.text[self.at..self.at + len];
        self.at += len;
        Some(Keyword::of(word).map_or(Kind::Name, Kind::Keyword))
    }

    fn number(&mut self) -> Option<Kind> {
        let start = self.at;
        let hex = self.rest().starts_with("0x") || self.rest().starts_with("0X");
        let (digits, radix) = if hex { (start + 2, 16) } else { (start, 10) };
        let len = self.run(digits, |c| c.is_digit(radix));
        self.at = digits + len;
        if !hex && self.is_fraction() {
            self.at += 1;
            self.at += self.run(self.at, |c| c.is_ascii_digit());
            return Some(Kind::Real);
        }
        let value = i64::from_str_radix(&self.text[digits..self.at], radix);
        Some(Kind::Number(value.unwrap_or_else(|_| {
            self.diagnostics.push(Diagnostic::error("this number is too large", Span::new(start, self.at)));
            0
        })))
    }

    /// Does a point with a digit behind it follow? (Two points are a range.)
    fn is_fraction(&self) -> bool {
        let mut rest = self.rest().chars();
        rest.next() == Some('.') && rest.next().is_some_and(|c| c.is_ascii_digit())
    }

    fn string(&mut self, open: char) -> Option<Kind> {
        let start = self.at;
        self.at += open.len_utf8();
        let mut content = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' if open == '"' => return self.end_string(offset + 1, content),
                '\u{201d}' if open != '"' => return self.end_string(offset + c.len_utf8(), content),
                '\\' => match chars.next() {
                    Some((_, 'n')) => content.push('\n'),
                    Some((_, 't')) => content.push('\t'),
                    Some((_, other)) => content.push(other),
                    None => {}
                },
                '\n' => break,
                _ => content.push(c),
            }
        }
        let span = Span::new(start, start + open.len_utf8());
        self.diagnostics.push(Diagnostic::error("this text does not end on its line", span));
        self.at = start + self.run(start, |c| c != '\n');
        Some(Kind::Text(content))
    }

    fn end_string(&mut self, len: usize, content: String) -> Option<Kind> {
        self.at += len;
        Some(Kind::Text(content))
    }

    fn mark(&mut self, first: char) -> Option<Kind> {
        let rest = self.rest();
        if let Some(&(spelling, mark)) = MARKS.iter().find(|(spelling, _)| rest.starts_with(spelling)) {
            self.at += spelling.len();
            return Some(Kind::Mark(mark));
        }
        let span = Span::new(self.at, self.at + first.len_utf8());
        self.diagnostics.push(Diagnostic::error(format!("the character `{first}` has no meaning in Murphi"), span));
        self.at += first.len_utf8();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut diagnostics = Diagnostics::default();
        let all = tokens(text, &mut diagnostics);
        assert_eq!(diagnostics.error_count(), 0, "{text}");
        all.into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn keywords_ignore_case_and_names_do_not() {
        use Kind::*;
        assert_eq!(kinds("RuLe x"), [Keyword(super::Keyword::Rule), Name, End]);
    }

    #[test]
    fn ranges_numbers_and_comments() {
        use Kind::{End, Mark as M, Name, Number, Real};
        assert_eq!(kinds("0..0x1F"), [Number(0), M(Mark::DotDot), Number(31), End]);
        assert_eq!(kinds("1.5"), [Real, End]);
        assert_eq!(kinds("a--b\n/* c */d /**/ e"), [Name, Name, Name, End]);
    }

    #[test]
    fn unicode_spellings_are_the_plain_operators() {
        use Kind::Mark as M;
        let found = kinds("\u{2264}\u{2260}\u{00ac}\u{2254}");
        assert_eq!(found, [M(Mark::Le), M(Mark::Ne), M(Mark::Not), M(Mark::Assign), Kind::End]);
    }

    #[test]
    fn broken_input_gives_messages() {
        for text in ["\"abc", "/* x", "#", "99999999999999999999"] {
            let mut diagnostics = Diagnostics::default();
            tokens(text, &mut diagnostics);
            assert_eq!(diagnostics.error_count(), 1, "{text}");
        }
    }
}
