//! Elements: one per statement, selection, block, join and jump, linked in sequences.
//!
//! The shape follows SPIN's so that the same points of the text become the same locations: a `do` is preceded
//! by its join (to which its options return) and followed by the target of its `break`; an `if` is followed by
//! its join. `atom` says that control must go on after the element; it is set in atomic sequences on all
//! elements but the last, where `last_atom` is set instead. `number` is the one that SPIN gives the element: it counts
//! from 1 and numbers what is inside before what is around it.

use crate::promela::ast::{Choose, Expr, Label, Proctype, Step, Stmt, StmtKind};
use crate::promela::lexer::Site;
use std::sync::Arc;

pub type Id = usize;
pub type SeqId = usize;

#[derive(Debug)]
pub enum Kind<'a> {
    Step(&'a Step),
    Else,
    Goto(Jump<'a>),
    /// Where the options of a selection meet.
    Join,
    /// Where `break` leads.
    AfterLoop,
    Choose(Vec<SeqId>),
    Unless(SeqId, SeqId),
    /// Also a plain block, and an atomic sequence within another.
    Block(SeqId),
    DStep(SeqId, &'a [Stmt]),
    Stop,
}

impl Kind<'_> {
    pub fn is_stop(&self) -> bool {
        matches!(self, Kind::Stop)
    }
}

#[derive(Debug)]
pub enum Jump<'a> {
    Label(&'a Label),
    To(Id),
}

#[derive(Debug)]
pub struct Element<'a> {
    pub kind: Kind<'a>,
    pub next: Option<Id>,
    pub atom: bool,
    pub last_atom: bool,
    /// First elements of the escapes, the outermost last.
    pub escapes: Vec<Id>,
    pub site: Site,
    pub text: &'a str,
    pub number: u32,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Seq {
    pub first: Option<Id>,
    pub last: Option<Id>,
    /// The last element that was written by the user.
    pub extent: Option<Id>,
}

pub struct Elements<'a> {
    all: Vec<Element<'a>>,
    pub seqs: Vec<Seq>,
    pub labels: Vec<(Label, Id)>,
    /// Where the loops around the current statement end.
    breaks: Vec<Id>,
    is_claim: bool,
    errors: Vec<(String, Site)>,
    body: SeqId,
    /// How many elements have a number.
    pub count: u32,
}

const SKIP: &Step = &Step::Condition(Expr::Number(1));

impl<'a> Elements<'a> {
    pub fn build(
        proctype: &'a Proctype,
        remote: &[Arc<str>],
        is_claim: bool,
    ) -> Result<Elements<'a>, Vec<(String, Site)>> {
        let mut elements = Elements {
            all: Vec::new(),
            seqs: Vec::new(),
            labels: Vec::new(),
            breaks: Vec::new(),
            is_claim,
            errors: Vec::new(),
            body: 0,
            count: 0,
        };
        elements.body = elements.sequence(&proctype.body);
        let stop = elements.element(Kind::Stop, proctype.end, "-end-");
        elements.append(elements.body, stop);
        elements.split_referenced_jumps(remote);
        elements.tie();
        elements.patch_jumps();
        if elements.errors.is_empty() { Ok(elements) } else { Err(elements.errors) }
    }

    pub fn get(&self, id: Id) -> &Element<'a> {
        &self.all[id]
    }

    pub fn first(&self) -> Id {
        self.seqs[self.body].first.expect("a body ends with an element")
    }

    pub fn has_end_label(&self, id: Id) -> bool {
        self.labels.iter().any(|(label, other)| *other == id && label.name.starts_with("end"))
    }

    pub fn goto_target(&self, id: Id) -> Option<Id> {
        match &self.all[id].kind {
            Kind::Goto(Jump::To(target)) => Some(*target),
            Kind::Goto(Jump::Label(label)) => self.find(label),
            _ => None,
        }
    }

    /// The label meant by a jump: in the same block, else in the nearest block around, else anywhere.
    fn find(&self, wanted: &Label) -> Option<Id> {
        let named = self.labels.iter().filter(|(label, _)| label.name == wanted.name);
        let rank = |label: &Label| match wanted.scope.starts_with(&label.scope) {
            true => label.scope.len() + 1,
            false => 0,
        };
        named.max_by_key(|(label, _)| rank(label)).map(|&(_, id)| id)
    }

    fn element(&mut self, kind: Kind<'a>, site: Site, text: &'a str) -> Id {
        let id = self.unnumbered(kind, site, text);
        self.give_number(id);
        id
    }

    /// An element that gets its number later, after others.
    fn unnumbered(&mut self, kind: Kind<'a>, site: Site, text: &'a str) -> Id {
        let (next, escapes) = (None, Vec::new());
        self.all.push(Element { kind, next, atom: false, last_atom: false, escapes, site, text, number: 0 });
        self.all.len() - 1
    }

    fn give_number(&mut self, id: Id) {
        self.count += 1;
        self.all[id].number = self.count;
    }

    fn append(&mut self, seq: SeqId, id: Id) {
        match self.seqs[seq].last {
            Some(last) => self.all[last].next = Some(id),
            None => self.seqs[seq].first = Some(id),
        }
        self.seqs[seq].last = Some(id);
    }

    fn sequence(&mut self, stmts: &'a [Stmt]) -> SeqId {
        self.seqs.push(Seq::default());
        let seq = self.seqs.len() - 1;
        for stmt in stmts {
            self.add(stmt, seq);
        }
        self.seqs[seq].extent = self.seqs[seq].last;
        seq
    }

    fn add(&mut self, stmt: &'a Stmt, seq: SeqId) {
        let (site, text) = (stmt.site, stmt.text.as_str());
        let id = match &stmt.kind {
            StmtKind::Choose(choose) => self.choose(choose, site, seq),
            StmtKind::Unless(normal, escape) => self.unless(normal, escape, site, seq),
            StmtKind::Goto(label) => self.goto(stmt, Jump::Label(label), seq),
            StmtKind::Break => match self.breaks.last() {
                Some(&target) => self.goto(stmt, Jump::To(target), seq),
                None => return self.errors.push(("break stands outside a loop".into(), site)),
            },
            kind => {
                let kind = match kind {
                    StmtKind::Step(step) => Kind::Step(step),
                    StmtKind::Else => Kind::Else,
                    StmtKind::DStep(body) => Kind::DStep(self.sequence(body), body),
                    StmtKind::Atomic(body) | StmtKind::Block(body) => Kind::Block(self.sequence(body)),
                    _ => unreachable!("the others were handled above"),
                };
                let inner = match kind {
                    Kind::Block(inner) if matches!(stmt.kind, StmtKind::Atomic(_)) => Some(inner),
                    Kind::DStep(inner, _) => Some(inner),
                    _ => None,
                };
                if let Some(inner) = inner {
                    self.make_atomic(inner);
                }
                let id = self.element(kind, site, text);
                self.append(seq, id);
                id
            }
        };
        for label in &stmt.labels {
            if self.labels.iter().any(|(other, _)| other.name == label.name && other.scope == label.scope) {
                self.errors.push((format!("there is already a label {}", label.name), label.site));
            }
            self.labels.push((label.clone(), id));
        }
    }

    /// A jump; one that carries a label with a meaning becomes a skip and a jump, so that there is a location.
    fn goto(&mut self, stmt: &'a Stmt, jump: Jump<'a>, seq: SeqId) -> Id {
        let meant = |label: &Label| ["accept", "end", "progress"].iter().any(|prefix| label.name.starts_with(prefix));
        let id = self.element(Kind::Goto(jump), stmt.site, &stmt.text);
        let skip = stmt.labels.iter().any(meant).then(|| {
            let skip = self.element(Kind::Step(SKIP), stmt.site, "skip");
            self.append(seq, skip);
            skip
        });
        self.append(seq, id);
        skip.unwrap_or(id)
    }

    fn choose(&mut self, choose: &'a Choose, site: Site, seq: SeqId) -> Id {
        let join = self.unnumbered(Kind::Join, site, "");
        let after = choose.repeats.then(|| self.unnumbered(Kind::AfterLoop, site, ""));
        self.breaks.extend(after);
        let mut options: Vec<SeqId> = choose.options.iter().map(|option| self.sequence(option)).collect();
        if after.is_some() {
            self.breaks.pop();
        }
        let is_else = |elements: &Self, option: SeqId| {
            elements.seqs[option].first.is_some_and(|first| matches!(elements.all[first].kind, Kind::Else))
        };
        let (last, first): (Vec<_>, Vec<_>) = options.iter().partition(|&&option| is_else(self, option));
        if last.len() > 1 {
            self.errors.push(("a selection has two else".into(), site));
        }
        options = first.into_iter().chain(last).collect();
        for &option in &options {
            if choose.prunes && !self.is_claim {
                self.prune(option);
            }
            self.append(option, join);
        }
        let id = self.element(Kind::Choose(options), site, "");
        [join].into_iter().chain(after).for_each(|id| self.give_number(id));
        if let Some(after) = after {
            self.append(seq, join);
            self.append(seq, id);
            self.append(seq, after);
        } else {
            self.append(seq, id);
            self.append(seq, join);
        }
        id
    }

    fn unless(&mut self, normal: &'a [Stmt], escape: &'a [Stmt], site: Site, seq: SeqId) -> Id {
        let normal = self.sequence(normal);
        let escape = self.sequence(escape);
        let join = self.unnumbered(Kind::Join, site, "");
        self.append(normal, join);
        self.append(escape, join);
        self.attach(normal, escape);
        let id = self.element(Kind::Unless(normal, escape), site, "");
        self.give_number(join);
        self.append(seq, id);
        self.append(seq, join);
        id
    }

    /// The elements of a sequence that the user wrote.
    fn members(&self, seq: SeqId) -> Vec<Id> {
        self.between(self.seqs[seq].first, self.seqs[seq].extent)
    }

    fn between(&self, mut from: Option<Id>, to: Option<Id>) -> Vec<Id> {
        let mut out = Vec::new();
        while let Some(id) = from {
            out.push(id);
            if Some(id) == to {
                break;
            }
            from = self.all[id].next;
        }
        out
    }

    fn attach(&mut self, seq: SeqId, escape: SeqId) {
        for id in self.members(seq) {
            self.attach_to(id, escape);
        }
    }

    fn attach_to(&mut self, id: Id, escape: SeqId) {
        let Some(first) = self.seqs[escape].first else { return };
        if self.all[id].escapes.contains(&first) {
            return;
        }
        self.all[id].escapes.push(first);
        match &self.all[id].kind {
            Kind::Unless(normal, inner) => {
                // An outer escape interrupts the inner one as well.
                let (normal, inner) = (*normal, *inner);
                self.attach(normal, escape);
                self.attach(inner, escape);
            }
            Kind::Choose(options) => options.clone().into_iter().for_each(|option| self.attach(option, escape)),
            Kind::Block(inner) => {
                let inner = *inner;
                self.attach(inner, escape);
            }
            _ => {}
        }
    }

    /// Leaves out all but the first of several skips in a row within an option; the last statement stays.
    fn prune(&mut self, seq: SeqId) {
        let Seq { first, last, .. } = self.seqs[seq];
        let mut run = 0;
        let mut before: Option<Id> = None;
        for id in self.between(first, last) {
            let (skip, print) = match self.all[id].kind {
                Kind::Step(Step::Condition(Expr::Number(1))) => (true, false),
                Kind::Step(Step::Print) => (true, true),
                _ => (false, false),
            };
            let labelled = self.labels.iter().any(|(_, other)| *other == id);
            run = if skip && !labelled { run + 1 } else { 0 };
            if run > 1 && !print && Some(id) != first && Some(id) != last {
                let before = before.expect("it is not the first");
                self.all[before].next = self.all[id].next;
            } else {
                before = Some(id);
            }
        }
    }

    fn make_atomic(&mut self, seq: SeqId) {
        let Seq { first, last, .. } = self.seqs[seq];
        self.walk_atomic(first, last);
        let Some(last) = last else { return };
        match self.all[last].kind {
            Kind::Block(inner) => self.make_atomic(inner),
            _ => {
                self.all[last].atom = false;
                self.all[last].last_atom = true;
            }
        }
    }

    fn walk_atomic(&mut self, first: Option<Id>, last: Option<Id>) {
        for id in self.between(first, last) {
            self.all[id].atom = true;
            let inner: Vec<SeqId> = match &self.all[id].kind {
                Kind::Block(inner) => vec![*inner],
                Kind::Choose(options) => options.clone(),
                Kind::Unless(normal, escape) => vec![*normal, *escape],
                _ => Vec::new(),
            };
            for seq in inner {
                let Seq { first, last, .. } = self.seqs[seq];
                self.walk_atomic(first, last);
            }
        }
    }

    /// A jump that others refer to by its label gets a skip in front, or it could never be seen there.
    fn split_referenced_jumps(&mut self, remote: &[Arc<str>]) {
        for index in 0..self.labels.len() {
            let (label, id) = &self.labels[index];
            let id = *id;
            if !remote.contains(&label.name) || !matches!(self.all[id].kind, Kind::Goto(_)) {
                continue;
            }
            let (site, text) = (self.all[id].site, self.all[id].text);
            // SPIN numbers the jump anew, where it is referred to; the skip keeps the number.
            let jump = self.unnumbered(Kind::Step(SKIP), site, text);
            // The element keeps its place and becomes the skip; the jump moves behind it.
            let element = &mut self.all[id];
            let kind = std::mem::replace(&mut element.kind, Kind::Step(SKIP));
            let (next, atom, last_atom, escapes) =
                (element.next, element.atom, element.last_atom, element.escapes.clone());
            element.next = Some(jump);
            let moved = &mut self.all[jump];
            (moved.kind, moved.next, moved.atom, moved.last_atom, moved.escapes) =
                (kind, next, atom, last_atom, escapes);
        }
    }

    /// The last element of a block goes on behind the block. Outer blocks first, as inner ones depend on them.
    fn tie(&mut self) {
        for id in (0..self.all.len()).rev() {
            if let Kind::Block(seq) | Kind::DStep(seq, _) = self.all[id].kind
                && let Some(last) = self.seqs[seq].last
            {
                self.all[last].next = self.all[id].next;
            }
        }
    }

    /// Jumps out of an atomic sequence end it; jumps from its end into another go on.
    fn patch_jumps(&mut self) {
        for id in 0..self.all.len() {
            if !matches!(self.all[id].kind, Kind::Goto(_)) {
                continue;
            }
            let Some(target) = self.goto_target(id) else {
                let name = self.all[id].text.trim_start_matches("goto ");
                self.errors.push((format!("there is no label {name}"), self.all[id].site));
                continue;
            };
            let inside = self.all[target].atom || self.all[target].last_atom;
            let element = &mut self.all[id];
            if (element.atom || element.last_atom) && !inside {
                (element.atom, element.last_atom) = (false, true);
            } else if element.last_atom && inside {
                (element.atom, element.last_atom) = (true, false);
            }
        }
    }
}
