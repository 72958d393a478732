//! The C preprocessor, as far as models use it: macros with and without parameters (`#`, `##`,
//! `__VA_ARGS__`), conditionals, `#include "file"`.
//!
//! It works on tokens, never on text, so every token of the result still knows where it came from. Macros
//! follow the rule of hide sets: a name is not replaced within its own replacement, so expansion always
//! ends; limits on includes and on the number of tokens bound what is left to go wrong.

mod condition;
mod expand;

use super::lexer::{self, Site, Token, TokenKind};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, Source, Span};
use expand::{Expander, Macro};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DEEPEST_INCLUDE: usize = 64;
/// A longer result is taken for a macro that explodes.
const MOST_TOKENS: usize = 1 << 22;

/// Reads an included file.
pub type Reader<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

/// The result: tokens, and the names of the files they come from.
pub struct Preprocessed {
    pub tokens: Vec<Token>,
    pub files: Vec<String>,
}

/// Preprocesses the main file with the given definitions (`NAME` or `NAME=value`).
pub fn preprocess(source: &Source, defines: &[String], read: Reader, diagnostics: &mut Diagnostics) -> Preprocessed {
    let mut cpp = Cpp {
        expander: Expander::default(),
        files: vec![source.name.clone()],
        out: Vec::new(),
        read,
        diagnostics,
        depth: 0,
        full: false,
        given: HashMap::new(),
    };
    for define in defines {
        cpp.define_option(define);
    }
    let tokens = lexer::tokens(&source.text, |span, line| Site { span, line, file: 0 });
    cpp.file(tokens, Path::new(&source.name));
    cpp.warn_of_unused();
    Preprocessed { tokens: cpp.out, files: cpp.files }
}

struct Cpp<'a> {
    expander: Expander,
    files: Vec<String>,
    out: Vec<Token>,
    read: Reader<'a>,
    diagnostics: &'a mut Diagnostics,
    depth: usize,
    full: bool,
    /// Definitions from outside that the text has not taken back, by name and as given.
    given: HashMap<Arc<str>, String>,
}

/// One `#if` that is open.
struct Conditional {
    /// Is the text around it kept?
    outer: bool,
    /// Was one of its branches already taken?
    taken: bool,
    /// Is the current branch kept?
    active: bool,
    seen_else: bool,
    site: Site,
}

impl Cpp<'_> {
    fn error(&mut self, message: impl Into<String>, site: Site) {
        let mut diagnostic = Diagnostic::error(message, site.span);
        if site.file > 0 {
            diagnostic = diagnostic.note(format!("in {}, line {}", self.files[site.file as usize], site.line));
        }
        self.diagnostics.push(diagnostic);
    }

    fn define_option(&mut self, define: &str) {
        let (name, value) = define.split_once('=').unwrap_or((define, "1"));
        let line = format!("{name} {value}");
        let tokens = lexer::tokens(&line, |_, _| Site::default());
        // Of two definitions from outside the last counts.
        self.given.remove(name);
        self.define(&tokens, Site::default());
        self.given.insert(name.into(), define.into());
    }

    /// A name that was given but that the text never asks for is likely to be misspelt.
    fn warn_of_unused(&mut self) {
        let unused = self.given.iter().filter(|(name, _)| self.expander.is_unused(name));
        let mut messages: Vec<String> =
            unused.map(|(name, given)| format!("-D {given} changes nothing: {name} does not occur")).collect();
        messages.sort();
        for message in messages {
            self.diagnostics.push(Diagnostic { severity: Severity::Warning, ..Diagnostic::general(message) });
        }
    }

    /// The text must not silently overrule what was given from outside.
    fn refuse_overruling(&mut self, name: &Token, definition: &Macro) {
        if let Some(given) = self.given.get(&name.text)
            && self.expander.get(&name.text).is_some_and(|before| !before.is_like(definition))
        {
            let message = format!("-D {given} would have no effect: {} is defined here again", name.text);
            let hint =
                format!("with `#ifndef {}` before and `#endif` behind it, the one from outside counts", name.text);
            self.diagnostics.push(Diagnostic::error(message, name.site.span).note(hint));
        }
    }

    fn refuse_open_text(&mut self, tokens: &[Token]) {
        for token in tokens.iter().filter(|token| token.is_open_text()) {
            self.error("this string does not end on its line", token.site);
        }
    }

    fn file(&mut self, mut tokens: Vec<Token>, path: &Path) {
        if let Some(comment) = tokens.pop_if(|last| last.is_open_comment()) {
            self.error("this comment does not end", comment.site);
        }
        let mut open: Vec<Conditional> = Vec::new();
        let mut pending: Vec<Token> = Vec::new();
        let mut at = 0;
        while at < tokens.len() && !self.full {
            let token = &tokens[at];
            if token.starts_line && token.is("#") {
                let end = (at + 1..tokens.len()).find(|&next| tokens[next].starts_line).unwrap_or(tokens.len());
                // A macro call may not reach over a directive, so what came before is complete.
                self.flush(&mut pending);
                self.directive(&tokens[at + 1..end], token.site, path, &mut open);
                at = end;
            } else {
                if open.last().is_none_or(|branch| branch.active) {
                    self.refuse_open_text(std::slice::from_ref(token));
                    pending.push(token.clone());
                }
                at += 1;
            }
        }
        self.flush(&mut pending);
        if let Some(branch) = open.last() {
            self.error("this conditional has no #endif", branch.site);
        }
    }

    fn flush(&mut self, pending: &mut Vec<Token>) {
        if !pending.is_empty() {
            let room = MOST_TOKENS.saturating_sub(self.out.len());
            let site = pending[0].site;
            match self.expander.expand(std::mem::take(pending), room) {
                Ok(mut tokens) => self.out.append(&mut tokens),
                Err(problem) => {
                    self.full = true;
                    self.error(problem, site);
                }
            }
        }
    }

    fn directive(&mut self, line: &[Token], hash: Site, path: &Path, open: &mut Vec<Conditional>) {
        let Some(name) = line.first() else { return };
        let active = open.last().is_none_or(|branch| branch.active);
        let rest = &line[1..];
        let site = Site { span: hash.span.to(name.site.span), ..hash };
        match &*name.text {
            "if" | "ifdef" | "ifndef" => {
                let holds = active
                    && match &*name.text {
                        "if" => self.condition(rest, site),
                        "ifdef" => self.is_defined(rest, site),
                        _ => !self.is_defined(rest, site),
                    };
                open.push(Conditional { outer: active, taken: holds, active: holds, seen_else: false, site });
            }
            "elif" => {
                let Some(branch) = open.last() else { return self.error("#elif without #if", site) };
                let wanted = branch.outer && !branch.taken && !branch.seen_else;
                let holds = wanted && self.condition(rest, site);
                let branch = open.last_mut().expect("it was there a moment ago");
                branch.active = holds;
                branch.taken |= holds;
            }
            "else" => {
                let Some(branch) = open.last_mut() else { return self.error("#else without #if", site) };
                branch.active = branch.outer && !branch.taken && !branch.seen_else;
                branch.taken = true;
                branch.seen_else = true;
            }
            "endif" => {
                if open.pop().is_none() {
                    self.error("#endif without #if", site);
                }
            }
            _ if !active => {}
            "define" => self.define(rest, site),
            "undef" => match rest.first() {
                Some(name) => {
                    self.expander.undefine(&name.text);
                    self.given.remove(&name.text);
                }
                None => self.error("#undef needs a name", site),
            },
            "include" => self.include(rest, site, path),
            "error" => {
                let words: Vec<&str> = rest.iter().map(|token| &*token.text).collect();
                self.error(format!("#error {}", words.join(" ")), site);
            }
            "pragma" | "line" | "ident" | "warning" => {}
            _ if matches!(name.kind, TokenKind::Number(_)) => {}
            other => self.error(format!("unknown directive #{other}"), site),
        }
    }

    fn is_defined(&mut self, rest: &[Token], site: Site) -> bool {
        match rest.first() {
            Some(name) => self.expander.is_defined(&name.text),
            None => {
                self.error("a name is missing here", site);
                false
            }
        }
    }

    fn condition(&mut self, line: &[Token], site: Site) -> bool {
        match condition::evaluate(line, &self.expander) {
            Ok(value) => value != 0,
            Err(problem) => {
                self.error(problem, site);
                false
            }
        }
    }

    fn define(&mut self, line: &[Token], site: Site) {
        let Some(name) = line.first().filter(|name| name.kind == TokenKind::Word) else {
            return self.error("#define needs a name", site);
        };
        let called = line.get(1).is_some_and(|token| token.is("(") && !token.space);
        let (params, variadic, body) = if called {
            let Some(close) = line.iter().position(|token| token.is(")")) else {
                return self.error("the parameters of this macro are not closed", name.site);
            };
            let mut params: Vec<_> =
                line[2..close].iter().filter(|token| !token.is(",")).map(|token| token.text.clone()).collect();
            // Three dots come as two tokens.
            let variadic = params.last().is_some_and(|last| &**last == ".") && params.len() >= 2;
            if variadic {
                params.truncate(params.len() - 2);
            }
            (Some(params), variadic, &line[close + 1..])
        } else {
            (None, false, &line[1..])
        };
        self.refuse_open_text(body);
        let definition = Macro { params, variadic, body: body.to_vec(), used: Cell::new(false) };
        self.refuse_overruling(name, &definition);
        self.expander.define(name.text.clone(), definition);
    }

    fn include(&mut self, line: &[Token], site: Site, path: &Path) {
        let name = match line.first() {
            Some(token) if token.kind == TokenKind::Text => token.text.trim_matches('"').to_string(),
            _ => return self.error("only #include \"file\" is supported", site),
        };
        if self.depth >= DEEPEST_INCLUDE {
            return self.error("includes are nested too deep", site);
        }
        let found: PathBuf = path.parent().unwrap_or(Path::new("")).join(&name);
        let text = match (self.read)(&found) {
            Ok(text) => text,
            Err(error) => return self.error(format!("cannot read {}: {error}", found.display()), site),
        };
        let file = self.files.len() as u32;
        self.files.push(found.display().to_string());
        // Messages about the included text underline the directive in the main file.
        let span: Span = line.first().map_or(site.span, |token| site.span.to(token.site.span));
        let tokens = lexer::tokens(&text, |_, line| Site { span, line, file });
        self.depth += 1;
        self.file(tokens, &found);
        self.depth -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    fn run(text: &str, defines: &[&str]) -> Result<String, Vec<Diagnostic>> {
        let source = Source { name: "dir/m.pml".into(), text: text.into() };
        let mut diagnostics = Diagnostics::default();
        let read = |path: &Path| match path.to_str() {
            Some("dir/sub/a.h") => Ok("#include \"b.h\"\nfrom a".to_string()),
            Some("dir/sub/b.h") => Ok("from B".to_string()),
            Some("dir/loop.h") => Ok("#include \"loop.h\"".to_string()),
            _ => Err(Error::from(ErrorKind::NotFound)),
        };
        let defines: Vec<String> = defines.iter().map(|define| define.to_string()).collect();
        let result = preprocess(&source, &defines, &read, &mut diagnostics);
        diagnostics.finish()?;
        Ok(result.tokens.iter().map(|token| &*token.text).collect::<Vec<_>>().join(" "))
    }

    fn ok(text: &str) -> String {
        run(text, &[]).unwrap()
    }

    #[test]
    fn macros_are_replaced_also_within_each_other() {
        assert_eq!(ok("#define N 3\n#define M (N+1)\nM M"), "( 3 + 1 ) ( 3 + 1 )");
        assert_eq!(ok("#define F(a,b) a*b\nF((1,2),G(3,4)) F"), "( 1 , 2 ) * G ( 3 , 4 ) F");
        assert_eq!(ok("#define a a b\n#define f(x) x f(x)\na f(1)"), "a b 1 f ( 1 )");
        assert_eq!(ok("#define e\n#define F(x) [x]\nF(e) F() F(F(1))"), "[ ] [ ] [ [ 1 ] ]");
    }

    #[test]
    fn pasting_and_quoting_use_the_argument_as_written() {
        assert_eq!(
            ok("#define N 3\n#define CAT(a,b) a##b\n#define S(x) #x\nCAT(x,N) CAT(1,2) S(N + 1)"),
            "xN 12 \"N + 1\""
        );
        assert_eq!(ok("#define V(f,...) f(__VA_ARGS__)\nV(g,1,2)"), "g ( 1 , 2 )");
    }

    #[test]
    fn conditionals_choose_one_branch() {
        let text = "#if A == 2 && defined(A)\ntwo\n#elif A\nother\n#else\nnone\n#endif\n#ifndef A\nno\n#endif";
        assert_eq!(run(text, &["A=2"]).unwrap(), "two");
        assert_eq!(run(text, &["A"]).unwrap(), "other");
        assert_eq!(run(text, &[]).unwrap(), "none no");
        assert_eq!(ok("#if 0\n#if 1\nx\n#else\ny\n#endif\n#error bad\n#else\nz\n#endif"), "z");
        assert_eq!(ok("#if (1 ? 2 : 0) > 1 && !(3 % 2 == 0) && -1 < 0 || 1/0\nx\n#endif"), "x");
    }

    #[test]
    fn includes_are_relative_to_the_including_file() {
        assert_eq!(ok("#include \"sub/a.h\"\nmain"), "from B from a main");
        assert!(run("#include \"none.h\"", &[]).is_err());
        assert!(run("#include \"loop.h\"", &[]).unwrap_err()[0].message.contains("deep"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for text in
            ["#if 1\n", "#endif", "#else", "#elif 1", "#if (", "#if 1/0\n#endif", "#nonsense", "#define", "#error x"]
        {
            assert!(run(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_closed_is_an_error() {
        let message = |text: &str| run(text, &[]).unwrap_err()[0].message.clone();
        for text in ["a /* b", "a\n/* b\nc", "/*/", "#if 0\n/* a\n#endif", "#define x /* a\nb"] {
            assert_eq!(message(text), "this comment does not end", "{text}");
        }
        for text in ["\"a", "a \"b\nc", "\"a\\\"\n", "#define x \"a\nx"] {
            assert_eq!(message(text), "this string does not end on its line", "{text}");
        }
        assert_eq!(ok("#if 0\ndon\"t\n#endif\n\"\\\\\" /* */ a"), "\"\\\\\" a");
    }

    #[test]
    fn the_text_does_not_overrule_what_is_given() {
        let message = run("#define N 2\nN", &["N=3"]).unwrap_err()[0].message.clone();
        assert_eq!(message, "-D N=3 would have no effect: N is defined here again");
        assert_eq!(run("#define N 3\nN", &["N=3"]).unwrap(), "3");
        assert_eq!(run("#ifndef N\n#define N 2\n#endif\nN", &["N=3"]).unwrap(), "3");
        assert_eq!(run("#undef N\n#define N 2\nN", &["N=3"]).unwrap(), "2");
    }

    #[test]
    fn an_exploding_macro_is_stopped() {
        let mut text = String::from("#define m0 x x x x x x x x\n");
        for level in 1..12 {
            let before = format!("m{} ", level - 1).repeat(8);
            text.push_str(&format!("#define m{level} {before}\n"));
        }
        text.push_str("m11");
        assert!(run(&text, &[]).unwrap_err()[0].message.contains("too many"));
    }
}
