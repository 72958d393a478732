//! Replacing macros: the textbook algorithm with a set of names per token that may not be replaced again.

use crate::promela::lexer::{self, Site, Token, TokenKind};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Macro {
    /// `None` for a macro that is not called.
    pub params: Option<Vec<Arc<str>>>,
    /// Does `...` follow the parameters?
    pub variadic: bool,
    pub body: Vec<Token>,
    /// Did anybody ask for it?
    pub used: Cell<bool>,
}

impl Macro {
    /// Does it make the same text of the same arguments?
    pub fn is_like(&self, other: &Macro) -> bool {
        let texts = |definition: &Macro| definition.body.iter().map(|token| token.text.clone()).collect::<Vec<_>>();
        self.params == other.params && self.variadic == other.variadic && texts(self) == texts(other)
    }
}

#[derive(Default)]
pub struct Expander {
    macros: HashMap<Arc<str>, Macro>,
}

/// Names that are not replaced in a token; shared, as most tokens of a replacement have the same.
type Hidden = Option<Arc<Node>>;

struct Node {
    name: Arc<str>,
    rest: Hidden,
}

fn hides(mut hidden: &Hidden, name: &str) -> bool {
    while let Some(node) = hidden {
        if &*node.name == name {
            return true;
        }
        hidden = &node.rest;
    }
    false
}

type Painted = (Token, Hidden);

/// Deepest nesting of calls within arguments of calls.
const DEEPEST: usize = 200;

/// What an expansion may still cost.
struct Budget {
    left: usize,
    depth: usize,
}

impl Budget {
    fn spend(&mut self, tokens: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(tokens).ok_or("macros expand to too many tokens")?;
        Ok(())
    }

    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST { Err("macro calls are nested too deep".into()) } else { Ok(()) }
    }
}

impl Expander {
    pub fn define(&mut self, name: Arc<str>, definition: Macro) {
        self.macros.insert(name, definition);
    }

    pub fn undefine(&mut self, name: &str) {
        self.macros.remove(name);
    }

    pub fn is_defined(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn get(&self, name: &str) -> Option<&Macro> {
        self.macros.get(name).inspect(|found| found.used.set(true))
    }

    pub fn is_unused(&self, name: &str) -> bool {
        self.macros.get(name).is_some_and(|found| !found.used.get())
    }

    /// Replaces all macros; fails if the result has more than `most` tokens.
    pub fn expand(&self, tokens: Vec<Token>, most: usize) -> Result<Vec<Token>, String> {
        let mut budget = Budget { left: most, depth: 0 };
        let painted = self.replace(tokens.into_iter().map(|token| (token, None)).collect(), &mut budget)?;
        Ok(painted.into_iter().map(|(token, _)| token).collect())
    }

    fn replace(&self, mut input: VecDeque<Painted>, budget: &mut Budget) -> Result<Vec<Painted>, String> {
        let mut out = Vec::new();
        while let Some((token, hidden)) = input.pop_front() {
            let found = if token.kind == TokenKind::Word && !hides(&hidden, &token.text) {
                self.get(&token.text)
            } else {
                None
            };
            let spent = match found {
                Some(found) => self.call(found, &token, &hidden, &mut input, budget)?,
                None => None,
            };
            let Some(size) = spent else {
                budget.spend(1)?;
                out.push((token, hidden));
                continue;
            };
            // Counts replacements too, so that macros that vanish in the end are bounded as well.
            budget.spend(size.min(1))?;
        }
        Ok(out)
    }

    /// Puts the replacement of a macro in front of the input; `None` if it is not called here.
    fn call(
        &self,
        found: &Macro,
        token: &Token,
        hidden: &Hidden,
        input: &mut VecDeque<Painted>,
        budget: &mut Budget,
    ) -> Result<Option<usize>, String> {
        let mut args = Vec::new();
        if let Some(params) = &found.params {
            if !input.front().is_some_and(|(next, _)| next.is("(")) {
                return Ok(None);
            }
            let Some((taken, lines)) = take_arguments(input) else {
                return Err(format!("the call of macro {} is not closed", token.text));
            };
            args = taken;
            // The preprocessor that SPIN uses starts a new line after a call over several lines.
            if lines && let Some((next, _)) = input.front_mut() {
                next.newline = true;
            }
            fit(&mut args, params.len(), found.variadic)
                .map_err(|()| format!("macro {} takes {} arguments, not {}", token.text, params.len(), args.len()))?;
        }
        let hidden: Hidden = Some(Arc::new(Node { name: token.text.clone(), rest: hidden.clone() }));
        let body = self.substitute(found, &args, token.site, budget)?;
        let size = body.len();
        for (index, (mut part, own)) in body.into_iter().enumerate().rev() {
            part.newline = index == 0 && token.newline;
            part.space |= index == 0 && token.space;
            let hidden = match own {
                None => hidden.clone(),
                some => Some(Arc::new(Node { name: token.text.clone(), rest: some })),
            };
            input.push_front((part, hidden));
        }
        if size == 0
            && token.newline
            && let Some((next, _)) = input.front_mut()
        {
            next.newline = true;
        }
        Ok(Some(size))
    }

    fn substitute(
        &self,
        found: &Macro,
        args: &[Vec<Painted>],
        site: Site,
        budget: &mut Budget,
    ) -> Result<Vec<Painted>, String> {
        let param_of = |token: &Token| -> Option<usize> {
            let params = found.params.as_ref()?;
            if found.variadic && token.is("__VA_ARGS__") {
                return Some(params.len());
            }
            params.iter().position(|param| *param == token.text && token.kind == TokenKind::Word)
        };
        let body = &found.body;
        let mut out: Vec<Painted> = Vec::new();
        let mut at = 0;
        while at < body.len() {
            let token = &body[at];
            let pasted = at > 0 && body[at - 1].is("##");
            let pastes = body.get(at + 1).is_some_and(|next| next.is("##"));
            if token.is("##") {
                at += 1;
                continue;
            }
            let quoted = token.is("#").then(|| body.get(at + 1).and_then(param_of)).flatten();
            let mut part: Vec<Painted> = if let Some(param) = quoted {
                at += 1;
                vec![(quote(&args[param], token), None)]
            } else if let Some(param) = param_of(token) {
                if pasted || pastes {
                    args[param].clone()
                } else {
                    budget.enter()?;
                    budget.spend(args[param].len())?;
                    let replaced = self.replace(args[param].clone().into(), budget)?;
                    budget.depth -= 1;
                    replaced
                }
            } else {
                vec![(token.clone(), None)]
            };
            for (token, _) in &mut part {
                token.site = Site { line: token.site.line, ..site };
            }
            if pasted && let (Some((left, _)), false) = (out.last().cloned(), part.is_empty()) {
                out.pop();
                let right = part.remove(0).0;
                out.extend(paste(&left, &right).into_iter().map(|token| (token, None)));
            }
            budget.spend(part.len() / 64)?;
            out.append(&mut part);
            at += 1;
        }
        for (token, _) in &mut out {
            token.site = site;
        }
        Ok(out)
    }
}

/// Takes `( … )` off the input: the arguments, and whether they span lines.
fn take_arguments(input: &mut VecDeque<Painted>) -> Option<(Vec<Vec<Painted>>, bool)> {
    let mut lines = input.pop_front()?.0.newline;
    let mut depth = 0usize;
    let mut args = vec![Vec::new()];
    loop {
        let (token, hidden) = input.pop_front()?;
        lines |= token.newline;
        match &*token.text {
            "(" => depth += 1,
            ")" if depth == 0 => return Some((args, lines)),
            ")" => depth -= 1,
            "," if depth == 0 => {
                args.push(Vec::new());
                continue;
            }
            _ => {}
        }
        args.last_mut().expect("there is always one").push((token, hidden));
    }
}

/// Makes the number of arguments that of the parameters, if it may be.
fn fit(args: &mut Vec<Vec<Painted>>, params: usize, variadic: bool) -> Result<(), ()> {
    if params == 0 && !variadic && args.len() == 1 && args[0].is_empty() {
        args.clear();
    }
    if variadic {
        while args.len() < params + 1 {
            args.push(Vec::new());
        }
        let extra: Vec<Vec<Painted>> = args.drain(params + 1..).collect();
        for more in extra {
            let comma = Token::made(",", Site::default());
            args[params].push((comma, None));
            args[params].extend(more);
        }
        return Ok(());
    }
    if args.len() == params { Ok(()) } else { Err(()) }
}

fn quote(arg: &[Painted], like: &Token) -> Token {
    let mut text = String::from("\"");
    for (index, (token, _)) in arg.iter().enumerate() {
        if index > 0 && token.space {
            text.push(' ');
        }
        text.push_str(&token.text.replace('\\', "\\\\").replace('"', "\\\""));
    }
    text.push('"');
    Token { kind: TokenKind::Text, text: text.into(), ..like.clone() }
}

fn paste(left: &Token, right: &Token) -> Vec<Token> {
    let text = format!("{}{}", left.text, right.text);
    let mut tokens = lexer::tokens(&text, |_, _| left.site);
    for (index, token) in tokens.iter_mut().enumerate() {
        (token.newline, token.space) = if index == 0 { (left.newline, left.space) } else { (false, false) };
    }
    tokens
}
