//! What a single statement needs and does, apart from rendezvous.

use super::channels::{Target, Targets};
use super::value::{Draft, Value};
use super::{Frame, Lowering};
use crate::promela::ast::{Base, Expr as Source, Pattern, Place as Named, Root, Step};
use plimsoll_ir::{BinOp, Expr, Narrow, Scalar, Stmt};

/// A statement on one of the channels it may concern, or on none.
pub struct Variant {
    pub guard: Expr,
    /// Runs before the guard.
    pub prelude: Vec<Stmt>,
    pub body: Vec<Stmt>,
}

impl Lowering<'_> {
    /// Stores a value in a place, keeping what fits.
    pub fn store(&mut self, place: &Named, value: Value, frame: Frame, draft: &mut Draft) -> Vec<Stmt> {
        if self.is_unstored(place, frame) {
            return Vec::new();
        }
        let scalar = self.scalar_of(place);
        let to = self.place(place, frame, draft);
        let mut out = draft.take_code();
        out.push(value.assign(to, scalar));
        out
    }

    /// Is there nothing to store, because only one channel fits or because nobody looks?
    fn is_unstored(&self, place: &Named, frame: Frame) -> bool {
        match place.root {
            Root::Global(number) => self.globals[number].is_none(),
            Root::Local(number) => place.base == Base::Chan && self.is_constant_channel(Some(frame.proctype), number),
        }
    }

    /// Is the step enabled? Code for the answer goes to the draft. Rendezvous are left out.
    pub fn enabled(&mut self, step: &Step, frame: Frame, draft: &mut Draft) -> Expr {
        match step {
            Step::Condition(Source::Run(_)) => Expr::TRUE,
            Step::Condition(value) if value.runs() => Expr::TRUE,
            Step::Condition(value) => self.truth(value, frame, draft),
            Step::Send { channel, .. } => {
                let targets = self.targets(channel, frame, draft);
                self.fault_if(targets.bad, "use of an uninitialised channel", draft);
                let terms = targets.list.into_iter().filter(|target| target.store.is_some());
                Expr::any(terms.map(|target| both(target.when.clone(), self.has_room(&target))).collect::<Vec<_>>())
            }
            Step::Receive { channel, args, random, .. } => {
                let targets = self.targets(channel, frame, draft);
                self.fault_if(targets.bad, "use of an uninitialised channel", draft);
                let mut terms = Vec::new();
                for target in targets.list.into_iter().filter(|target| target.store.is_some()) {
                    let before = draft.take_code();
                    let (_, there) = self.receivable(&target, args, *random, frame, draft);
                    let code = std::mem::replace(&mut draft.code, before);
                    draft.code.extend(guarded(target.when.as_ref(), code));
                    terms.push(both(target.when, there));
                }
                Expr::any(terms)
            }
            Step::Nothing | Step::Print | Step::Assign(..) | Step::Assert(_) => Expr::TRUE,
        }
    }

    fn has_room(&self, target: &Target) -> Expr {
        let capacity = self.families[target.family].capacity as i64;
        Expr::binary(BinOp::Lt, Expr::read(target.len()), Expr::Const(capacity))
    }

    /// The ways in which a step may happen in one slot, rendezvous left out.
    pub fn variants(&mut self, step: &Step, text: &str, frame: Frame, draft: &mut Draft) -> Vec<Variant> {
        match step {
            Step::Nothing | Step::Print => vec![always(Vec::new())],
            Step::Condition(value) if value.runs() => self.run_condition(value, frame, draft),
            Step::Condition(value) => {
                let guard = self.truth(value, frame, draft);
                vec![Variant { guard, prelude: draft.take_code(), body: Vec::new() }]
            }
            Step::Assert(value) => {
                let condition = self.truth(value, frame, draft);
                let mut body = draft.take_code();
                body.push(Stmt::Assert { condition, message: text.into() });
                vec![always(body)]
            }
            Step::Assign(place, value) => {
                let mut body = self.start(value, frame, draft);
                let value = self.value(value, frame, draft);
                body.extend(draft.take_code());
                body.extend(self.store(place, value, frame, draft));
                vec![always(body)]
            }
            Step::Send { channel, args, sorted } => self.sends(channel, args, *sorted, frame, draft),
            Step::Receive { channel, args, random, keeps } => {
                self.receives(channel, args, *random, *keeps, frame, draft)
            }
        }
    }

    fn run_condition(&mut self, value: &Source, frame: Frame, draft: &mut Draft) -> Vec<Variant> {
        let mut body = self.start(value, frame, draft);
        if !matches!(value, Source::Run(_)) {
            let condition = self.truth(value, frame, draft);
            body.extend(draft.take_code());
            let then = vec![Stmt::Discard];
            body.push(Stmt::If { condition: Expr::negate(condition), then, otherwise: Vec::new() });
        }
        vec![always(body)]
    }

    /// A fault for when the channel is none.
    fn bad_channel(&self, targets: &Targets, prelude: &[Stmt]) -> Option<Variant> {
        let guard = targets.bad.clone()?;
        let body = vec![Stmt::Fault("use of an uninitialised channel".into())];
        Some(Variant { guard, prelude: prelude.to_vec(), body })
    }

    fn sends(
        &mut self,
        channel: &Named,
        args: &[Source],
        sorted: bool,
        frame: Frame,
        draft: &mut Draft,
    ) -> Vec<Variant> {
        let targets = self.targets(channel, frame, draft);
        let prelude = draft.take_code();
        let mut out: Vec<Variant> = self.bad_channel(&targets, &prelude).into_iter().collect();
        for target in targets.list.into_iter().filter(|target| target.store.is_some()) {
            let guard = both(target.when.clone(), self.has_room(&target));
            if let Some(fault) = self.field_count(&target, args.len()) {
                out.push(Variant { guard, prelude: prelude.clone(), body: fault });
                continue;
            }
            let values: Vec<Value> = args.iter().map(|arg| self.value(arg, frame, draft)).collect();
            let mut body = draft.take_code();
            body.extend(if sorted { self.insert(&target, values, draft) } else { self.append(&target, values) });
            out.push(Variant { guard, prelude: prelude.clone(), body });
        }
        out
    }

    fn receives(
        &mut self,
        channel: &Named,
        args: &[Pattern],
        random: bool,
        keeps: bool,
        frame: Frame,
        draft: &mut Draft,
    ) -> Vec<Variant> {
        let targets = self.targets(channel, frame, draft);
        let prelude = draft.take_code();
        let mut out: Vec<Variant> = self.bad_channel(&targets, &prelude).into_iter().collect();
        for target in targets.list {
            if target.store.is_none() {
                if keeps {
                    let guard = target.when.unwrap_or(Expr::TRUE);
                    let body = vec![Stmt::Fault("a rendezvous channel cannot be polled".into())];
                    out.push(Variant { guard, prelude: prelude.clone(), body });
                }
                continue;
            }
            let (at, there) = self.receivable(&target, args, random, frame, draft);
            let mut all = prelude.clone();
            all.extend(guarded(target.when.as_ref(), draft.take_code()));
            let guard = both(target.when.clone(), there);
            let body = match self.field_count(&target, args.len()) {
                Some(fault) => fault,
                None => {
                    let mut body = self.store_fields(&target, &at, args, frame, draft);
                    if !keeps {
                        body.extend(self.remove(&target, &at, draft));
                    }
                    body
                }
            };
            out.push(Variant { guard, prelude: all, body });
        }
        out
    }

    /// A fault if a message has another number of fields.
    pub fn field_count(&self, target: &Target, given: usize) -> Option<Vec<Stmt>> {
        let fields = self.families[target.family].fields.len();
        let message = format!("the channel has {fields} fields, not {given}");
        (fields != given).then(|| vec![Stmt::Fault(message)])
    }

    /// Evaluates the values that are sent, once.
    pub fn kept_values(&mut self, args: &[Source], frame: Frame, draft: &mut Draft) -> Vec<Value> {
        let mut out = Vec::new();
        for arg in args {
            let value = self.value(arg, frame, draft);
            out.push(if args.len() == 1 || matches!(value.expr, Expr::Const(_)) {
                value
            } else {
                let temp = draft.temp("sent", Scalar::I32);
                let kept = value.clone().with(Expr::read(temp));
                draft.code.push(Stmt::assign(temp, value.expr, Narrow::Wrap));
                kept
            });
        }
        out
    }
}

pub fn always(body: Vec<Stmt>) -> Variant {
    Variant { guard: Expr::TRUE, prelude: Vec::new(), body }
}

/// Code that only makes sense for one of several channels.
fn guarded(when: Option<&Expr>, code: Vec<Stmt>) -> Vec<Stmt> {
    match when {
        Some(condition) if !code.is_empty() => {
            vec![Stmt::If { condition: condition.clone(), then: code, otherwise: Vec::new() }]
        }
        _ => code,
    }
}

pub fn both(first: Option<Expr>, second: Expr) -> Expr {
    match (first, second) {
        (Some(first), Expr::Const(1)) => first,
        (Some(first), second) => Expr::all([first, second]),
        (None, second) => second,
    }
}
