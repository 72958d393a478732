//! Tokens of the textual form, with their positions.

use std::fmt;

/// Why a text is not a system, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// From 1.
    pub line: u32,
    /// From 1, counted in characters.
    pub column: u32,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Word(String),
    Text(String),
    Number(u64),
    /// `#3`
    Numbered(u32),
    /// `$3`
    Temp(u32),
    Sign(&'static str),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Text(text) => write!(f, "{text:?}"),
            Token::Number(number) => write!(f, "`{number}`"),
            Token::Numbered(number) => write!(f, "`#{number}`"),
            Token::Temp(number) => write!(f, "`${number}`"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => write!(f, "the end of the text"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl Position {
    pub fn error(self, message: impl Into<String>) -> ParseError {
        ParseError { line: self.line, column: self.column, message: message.into() }
    }
}

/// Longest first, so that the first match is the right one.
const SIGNS: &[&str] = &[
    "..", ":=", "<-", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "{", "}", "[", "]", "(", ")", ",", ";", ":", ".",
    "=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~",
];

pub fn tokens(text: &str) -> Result<Vec<(Token, Position)>, ParseError> {
    let mut lexer = Lexer { rest: text, position: Position { line: 1, column: 1 } };
    let mut out = Vec::new();
    loop {
        lexer.skip_blanks();
        let position = lexer.position;
        let token = lexer.token()?;
        let done = token == Token::End;
        out.push((token, position));
        if done {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    position: Position,
}

impl<'a> Lexer<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.rest = &self.rest[letter.len_utf8()..];
        if letter == '\n' {
            self.position = Position { line: self.position.line + 1, column: 1 };
        } else {
            self.position.column += 1;
        }
        Some(letter)
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let all = self.rest;
        while self.peek().is_some_and(&wanted) {
            self.next();
        }
        &all[..all.len() - self.rest.len()]
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest.starts_with("//") {
                return;
            }
            self.take_while(|letter| letter != '\n');
        }
    }

    fn token(&mut self) -> Result<Token, ParseError> {
        let position = self.position;
        Ok(match self.peek() {
            None => Token::End,
            Some('"') => Token::Text(self.quoted()?),
            Some('#') => {
                self.next();
                Token::Numbered(self.number()?)
            }
            Some('$') => {
                self.next();
                Token::Temp(self.number()?)
            }
            Some(letter) if letter.is_ascii_digit() => Token::Number(self.number()?),
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => {
                Token::Word(self.take_while(|letter| letter.is_ascii_alphanumeric() || letter == '_').to_string())
            }
            Some(letter) => match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
                Some(sign) => {
                    sign.chars().for_each(|_| _ = self.next());
                    Token::Sign(sign)
                }
                None => return Err(position.error(format!("unexpected character {letter:?}"))),
            },
        })
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, ParseError> {
        let position = self.position;
        let digits = self.take_while(|letter| letter.is_ascii_digit());
        digits.parse().map_err(|_| position.error("expected a number that is not too large"))
    }

    fn quoted(&mut self) -> Result<String, ParseError> {
        let start = self.position;
        self.next();
        let mut text = String::new();
        loop {
            let position = self.position;
            match self.next() {
                None => return Err(start.error("this text never ends")),
                Some('"') => return Ok(text),
                Some('\\') => match self.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(letter @ ('"' | '\\')) => text.push(letter),
                    _ => return Err(position.error("unknown escape; there are \\n \\t \\r \\\" \\\\")),
                },
                Some(letter) => text.push(letter),
            }
        }
    }
}
