//! Rendezvous: a send and a receive as one step of two processes.
//!
//! There is one command for every pair of a send and a receive, in different slots, that may meet. The receiver
//! decides what comes next: if its receive lies in an atomic sequence, it goes on; else nobody has to.

use super::channels::Target;
use super::effect::both;
use super::transition::Spot;
use super::value::{Draft, Value, balanced};
use super::{Frame, Lowering};
use crate::promela::ast::{Expr as Source, Pattern, Place as Named, Step, Stmt, StmtKind};
use crate::promela::flow::{Action, Transition};
use plimsoll_ir::{BinOp, Expr, Stmt as Code};

/// A receive that may take part in a rendezvous.
#[derive(Clone, Copy)]
pub struct Receiver<'a> {
    pub spot: Spot,
    pub transition: usize,
    pub channel: &'a Named,
    pub args: &'a [Pattern],
    /// What else happens in the same step, if the receive begins a `d_step`.
    pub then: &'a [Stmt],
}

/// A send and a receive that may meet.
pub struct Meeting<'a> {
    pub receiver: Receiver<'a>,
    pub guard: Expr,
    pub prelude: Vec<Code>,
    /// Moves the values; the locations are left to the caller.
    pub body: Vec<Code>,
}

impl<'a> Lowering<'a> {
    /// All receives on rendezvous channels.
    pub fn find_receivers(&mut self) {
        let mut out = Vec::new();
        for spot in self.spots() {
            let count = self.automata[spot.proctype].locations[spot.location].transitions.len();
            for transition in 0..count {
                let step = &self.automata[spot.proctype].locations[spot.location].transitions[transition];
                let (step, then) = match step.action {
                    Action::Step(step) => (step, &[][..]),
                    Action::DStep([Stmt { kind: StmtKind::Step(step), .. }, then @ ..]) => (step, then),
                    _ => continue,
                };
                if let Step::Receive { channel, args, keeps: false, .. } = step
                    && self.may_meet(channel, spot.proctype)
                {
                    out.push(Receiver { spot, transition, channel, args, then });
                }
            }
        }
        self.receivers = out;
    }

    /// May the place hold a rendezvous channel?
    fn may_meet(&self, channel: &Named, proctype: usize) -> bool {
        let set = self.points.of_place(channel, proctype);
        set.origins.iter().any(|&origin| self.program.channels[self.points.origins[origin].ty].capacity == 0)
    }

    /// The receives that a send may meet; `draft` is that of a command of its own for each.
    pub fn meetings(
        &mut self,
        channel: &Named,
        args: &[Source],
        frame: Frame,
        mut each: impl FnMut(&mut Self, Meeting<'a>, Draft),
    ) {
        if !self.may_meet(channel, frame.proctype) {
            return;
        }
        for receiver in self.receivers.clone() {
            if Some(receiver.spot.slot) == frame.slot {
                continue;
            }
            for family in 0..self.families.len() {
                let mut draft = Draft::default();
                if let Some(meeting) = self.meeting(channel, args, frame, receiver, family, &mut draft) {
                    each(self, meeting, draft);
                }
            }
        }
    }

    fn meeting(
        &mut self,
        channel: &Named,
        args: &[Source],
        frame: Frame,
        receiver: Receiver<'a>,
        family: usize,
        draft: &mut Draft,
    ) -> Option<Meeting<'a>> {
        if self.families[family].capacity > 0 {
            return None;
        }
        let other = Frame { slot: Some(receiver.spot.slot), proctype: receiver.spot.proctype };
        let mine = self.targets(channel, frame, draft).list;
        let theirs = self.targets(receiver.channel, other, draft).list;
        let mut prelude = draft.take_code();
        let mut terms = Vec::new();
        for (one, two) in mine.iter().flat_map(|one| theirs.iter().map(move |two| (one, two))) {
            if one.family == family && two.family == family && overlap(one, two) {
                let same = match (&one.id, &two.id) {
                    (Expr::Const(_), Expr::Const(_)) => Expr::TRUE,
                    (one, two) => Expr::equal(one.clone(), two.clone()),
                };
                terms.push(both(one.when.clone(), same));
            }
        }
        if terms.is_empty() {
            return None;
        }
        let same = balanced(BinOp::Or, terms);
        let fields = self.families[family].fields.clone();
        if args.len() != fields.len() || receiver.args.len() != fields.len() {
            let given = if args.len() != fields.len() { args.len() } else { receiver.args.len() };
            let message = format!("the channel has {} fields, not {given}", fields.len());
            return Some(Meeting { receiver, guard: same, prelude, body: vec![Code::Fault(message)] });
        }
        let values = self.kept_values(args, frame, draft);
        prelude.extend(draft.take_code());
        let mut guard = vec![same];
        let mut body = Vec::new();
        for ((value, pattern), base) in values.into_iter().zip(receiver.args).zip(fields) {
            let value: Value = value.narrowed(self.types.scalar(base));
            match pattern {
                Pattern::Any => {}
                Pattern::Match(wanted) => {
                    let wanted = self.value(wanted, other, draft).expr;
                    prelude.extend(draft.take_code());
                    match (&wanted, &value.expr) {
                        (Expr::Const(one), Expr::Const(two)) if one == two => {}
                        (Expr::Const(_), Expr::Const(_)) => return None,
                        _ => guard.push(Expr::equal(value.expr, wanted)),
                    }
                }
                Pattern::Store(place) => body.extend(self.store(place, value, other, draft)),
            }
        }
        body.extend(self.d_step(receiver.then, other, draft));
        for earlier in self.escapes_before(&receiver) {
            if let Some(meeting) = self.meeting(channel, args, frame, earlier, family, draft) {
                prelude.extend(meeting.prelude);
                guard.push(Expr::negate(meeting.guard));
            }
        }
        guard.retain(|term| *term != Expr::TRUE);
        Some(Meeting { receiver, guard: balanced(BinOp::And, guard), prelude, body })
    }

    /// Receives of the same process that come first, because they belong to an escape.
    fn escapes_before(&self, receiver: &Receiver<'a>) -> Vec<Receiver<'a>> {
        let own = self.receiver_transition(receiver).escape;
        let comes_first = |other: &&Receiver<'a>| {
            let escape = self.receiver_transition(other).escape;
            other.spot == receiver.spot && other.transition < receiver.transition && escape.is_some() && escape != own
        };
        self.receivers.iter().filter(comes_first).copied().collect()
    }

    /// Can the send meet a receiver now?
    pub fn can_meet(&mut self, channel: &Named, args: &[Source], frame: Frame, draft: &mut Draft) -> Vec<Expr> {
        if !self.may_meet(channel, frame.proctype) {
            return Vec::new();
        }
        let mut terms = Vec::new();
        for receiver in self.receivers.clone() {
            if Some(receiver.spot.slot) == frame.slot {
                continue;
            }
            terms.extend(
                (0..self.families.len())
                    .filter_map(|family| self.can_meet_now(channel, args, frame, receiver, family, draft)),
            );
        }
        terms
    }

    fn can_meet_now(
        &mut self,
        channel: &Named,
        args: &[Source],
        frame: Frame,
        receiver: Receiver<'a>,
        family: usize,
        draft: &mut Draft,
    ) -> Option<Expr> {
        let code = draft.take_code();
        let meeting = self.meeting(channel, args, frame, receiver, family, draft);
        draft.code = code;
        let meeting = meeting?;
        draft.code.extend(meeting.prelude);
        let spot = receiver.spot;
        let location = self.slots[spot.slot].location(spot.proctype, spot.location);
        let mut guard = vec![self.stands_at(spot.slot, &[location]), meeting.guard];
        guard.extend(self.provided(Frame { slot: Some(spot.slot), proctype: spot.proctype }, draft));
        guard.retain(|term| *term != Expr::TRUE);
        Some(balanced(BinOp::And, guard))
    }

    pub fn receiver_transition(&self, receiver: &Receiver) -> Transition<'a> {
        let spot = receiver.spot;
        self.automata[spot.proctype].locations[spot.location].transitions[receiver.transition].clone()
    }
}

fn overlap(one: &Target, two: &Target) -> bool {
    one.members.0 <= two.members.1 && two.members.0 <= one.members.1
}
