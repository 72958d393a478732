//! Tokens of DVE.
//!
//! Block comments do not nest, and a `//` inside one hides the rest of its line, even a `*/`: that is
//! how the original reads them. A backslash before a line end is blank space.

use crate::diagnostic::{Diagnostic, Diagnostics, Span};
use logos::{Lexer, Logos, Skip};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Problem {
    #[default]
    Character,
    Comment,
}

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[logos(error = Problem)]
#[logos(skip r"[ \t\r\n\x0b\x0c]+")]
#[logos(skip r"\\\r?\n")]
pub enum Token {
    #[token("//", line_comment)]
    LineComment,
    #[token("/*", block_comment)]
    BlockComment,
    #[regex("[A-Za-z_][A-Za-z0-9_$#]*")]
    Name,
    #[regex("[0-9]+")]
    Number,
    #[token("guard")]
    Guard,
    #[token("sync")]
    Sync,
    #[token("async")]
    Async,
    #[token("effect")]
    Effect,
    #[token("process")]
    Process,
    #[token("state")]
    State,
    #[token("init")]
    Init,
    #[token("accept")]
    Accept,
    #[token("commit")]
    Commit,
    #[token("trans")]
    Trans,
    #[token("system")]
    System,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("and")]
    #[token("&&")]
    And,
    #[token("or")]
    #[token("||")]
    Or,
    #[token("not")]
    Not,
    #[token("imply")]
    Imply,
    #[token("int")]
    Int,
    #[token("byte")]
    Byte,
    #[token("const")]
    Const,
    #[token("channel")]
    Channel,
    #[token("property")]
    Property,
    #[token("buchi")]
    Buchi,
    #[token("genbuchi")]
    #[token("streett")]
    #[token("rabin")]
    #[token("muller")]
    SetAcceptance,
    #[token("assert")]
    Assert,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("(")]
    Open,
    #[token(")")]
    Close,
    #[token(";")]
    Semicolon,
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("->")]
    Arrow,
    #[token("!")]
    Send,
    #[token("?")]
    Receive,
    #[token("=")]
    Assign,
    #[token("==")]
    Equal,
    #[token("!=")]
    Unequal,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEqual,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Times,
    #[token("/")]
    Divide,
    #[token("%")]
    Remainder,
    #[token("&")]
    BitAnd,
    #[token("|")]
    BitOr,
    #[token("^")]
    BitXor,
    #[token("~")]
    Tilde,
    /// After the last token of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lexeme {
    pub token: Token,
    pub span: Span,
}

/// Splits a text into tokens, ending with [`Token::End`].
pub fn tokens(text: &str, diagnostics: &mut Diagnostics) -> Vec<Lexeme> {
    let mut lexer = Token::lexer(text);
    let mut out = Vec::with_capacity(text.len() / 3);
    let mut bad: Option<Span> = None;
    while let Some(result) = lexer.next() {
        let range = lexer.span();
        let span = Span::new(range.start, range.end);
        match (result, bad) {
            (Ok(token), _) => out.push(Lexeme { token, span }),
            (Err(Problem::Comment), _) => diagnostics.push(
                Diagnostic::error("this comment does not end", span)
                    .note("`//` inside a block comment hides the rest of its line, also a `*/`"),
            ),
            // Neighbouring strange characters make one message.
            (Err(Problem::Character), Some(previous)) if previous.end == span.start => bad = Some(previous.to(span)),
            (Err(Problem::Character), _) => {
                report_characters(text, bad.replace(span), diagnostics);
            }
        }
    }
    report_characters(text, bad, diagnostics);
    out.push(Lexeme { token: Token::End, span: Span::new(text.len(), text.len()) });
    out
}

fn report_characters(text: &str, span: Option<Span>, diagnostics: &mut Diagnostics) {
    let Some(span) = span else { return };
    let found: String = text[span.start as usize..span.end as usize].chars().take(20).collect();
    diagnostics.push(Diagnostic::error(format!("{found:?} has no meaning here"), span));
}

fn line_comment(lexer: &mut Lexer<Token>) -> Skip {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
    Skip
}

fn block_comment(lexer: &mut Lexer<Token>) -> Result<Skip, Problem> {
    let rest = lexer.remainder().as_bytes();
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'*', b'/', ..] => {
                lexer.bump(at + 2);
                return Ok(Skip);
            }
            [b'/', b'/', tail @ ..] => at += 2 + tail.iter().position(|&byte| byte == b'\n').unwrap_or(tail.len()),
            _ => at += 1,
        }
    }
    lexer.bump(rest.len());
    Err(Problem::Comment)
}

impl Token {
    /// The token as a person would call it.
    pub fn describe(self) -> &'static str {
        use Token::*;
        match self {
            LineComment | BlockComment => "a comment",
            Name => "a name",
            Number => "a number",
            Guard => "`guard`",
            Sync => "`sync`",
            Async => "`async`",
            Effect => "`effect`",
            Process => "`process`",
            State => "`state`",
            Init => "`init`",
            Accept => "`accept`",
            Commit => "`commit`",
            Trans => "`trans`",
            System => "`system`",
            True => "`true`",
            False => "`false`",
            And => "`&&`",
            Or => "`||`",
            Not => "`not`",
            Imply => "`imply`",
            Int => "`int`",
            Byte => "`byte`",
            Const => "`const`",
            Channel => "`channel`",
            Property => "`property`",
            Buchi => "`buchi`",
            SetAcceptance => "an acceptance condition",
            Assert => "`assert`",
            OpenBrace => "`{`",
            CloseBrace => "`}`",
            OpenBracket => "`[`",
            CloseBracket => "`]`",
            Open => "`(`",
            Close => "`)`",
            Semicolon => "`;`",
            Comma => "`,`",
            Colon => "`:`",
            Dot => "`.`",
            Arrow => "`->`",
            Send => "`!`",
            Receive => "`?`",
            Assign => "`=`",
            Equal => "`==`",
            Unequal => "`!=`",
            Less => "`<`",
            LessEqual => "`<=`",
            Greater => "`>`",
            GreaterEqual => "`>=`",
            ShiftLeft => "`<<`",
            ShiftRight => "`>>`",
            Plus => "`+`",
            Minus => "`-`",
            Times => "`*`",
            Divide => "`/`",
            Remainder => "`%`",
            BitAnd => "`&`",
            BitOr => "`|`",
            BitXor => "`^`",
            Tilde => "`~`",
            End => "the end of the text",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> (Vec<Token>, usize) {
        let mut diagnostics = Diagnostics::default();
        let mut tokens: Vec<Token> = tokens(text, &mut diagnostics).iter().map(|lexeme| lexeme.token).collect();
        assert_eq!(tokens.pop(), Some(Token::End));
        (tokens, diagnostics.error_count())
    }

    #[test]
    fn words_and_signs() {
        use Token::*;
        let cases: &[(&str, &[Token])] = &[
            ("guard guards a$1#b _x", &[Guard, Name, Name, Name]),
            ("c!-1 c!=1 c?x", &[Name, Send, Minus, Number, Name, Unequal, Number, Name, Receive, Name]),
            ("a->b a.b a- >b", &[Name, Arrow, Name, Name, Dot, Name, Name, Minus, Greater, Name]),
            ("and or && || not imply", &[And, Or, And, Or, Not, Imply]),
            ("<<= >>= <<", &[ShiftLeft, Assign, ShiftRight, Assign, ShiftLeft]),
            ("12a", &[Number, Name]),
        ];
        for (text, expected) in cases {
            assert_eq!(kinds(text), (expected.to_vec(), 0), "{text}");
        }
    }

    #[test]
    fn comments_and_continuations_are_blank() {
        use Token::*;
        assert_eq!(kinds("a // b\nc"), (vec![Name, Name], 0));
        assert_eq!(kinds("a /* b */ c"), (vec![Name, Name], 0));
        assert_eq!(kinds("a /* // */ b\n c */ d"), (vec![Name, Name], 0));
        assert_eq!(kinds("a /* * / ** /*/ b"), (vec![Name, Name], 0));
        assert_eq!(kinds("a \\\n b \\\r\n c // to the end"), (vec![Name, Name, Name], 0));
        assert_eq!(kinds("a / b"), (vec![Name, Divide, Name], 0));
    }

    #[test]
    fn strange_input_is_reported_once() {
        assert_eq!(kinds("a @@@é b"), (vec![Token::Name, Token::Name], 1));
        assert_eq!(kinds("a @ b @"), (vec![Token::Name, Token::Name], 2));
        assert_eq!(kinds("a /* b"), (vec![Token::Name], 1));
        assert_eq!(kinds("a /* // */"), (vec![Token::Name], 1));
        assert_eq!(kinds("\\ a"), (vec![Token::Name], 1));
    }
}
