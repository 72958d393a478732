//! From a transition of a proctype in a slot to commands.

use super::effect::Variant;
use super::rendezvous::Meeting;
use super::value::{Draft, balanced};
use super::{Frame, Lowering};
use crate::promela::ast::{Expr as Source, Step, Stmt as SourceStmt, StmtKind, walk_statements};
use crate::promela::flow::{Action, Transition};
use crate::promela::lexer::Site;
use plimsoll_ir::{Act, BinOp, Command, Expr, Kind, Narrow, Stmt};

/// A location of a proctype in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub slot: usize,
    pub proctype: usize,
    pub location: usize,
}

impl Spot {
    pub fn frame(self) -> Frame {
        Frame { slot: Some(self.slot), proctype: self.proctype }
    }
}

impl<'a> Lowering<'a> {
    pub fn spots(&self) -> Vec<Spot> {
        let mut out = Vec::new();
        for (slot, proctypes) in self.config.slots.iter().enumerate() {
            for &proctype in proctypes {
                let locations = 0..self.automata[proctype].locations.len();
                out.extend(locations.map(|location| Spot { slot, proctype, location }));
            }
        }
        out
    }

    pub fn add_commands(&mut self) {
        for spot in self.spots() {
            let count = self.automata[spot.proctype].locations[spot.location].transitions.len();
            for index in 0..count {
                let transition = self.transition(spot, index);
                self.site = transition.site;
                self.add_transition(spot, index, &transition, 0);
                if uses_timeout(&transition) {
                    self.add_transition(spot, index, &transition, 1);
                }
            }
        }
        self.system.sort_commands();
    }

    pub fn transition(&self, spot: Spot, index: usize) -> Transition<'a> {
        self.automata[spot.proctype].locations[spot.location].transitions[index].clone()
    }

    /// Adds the commands of a transition; on the second rank `timeout` is true.
    fn add_transition(&mut self, spot: Spot, index: usize, transition: &Transition<'a>, rank: u8) {
        let frame = spot.frame();
        let mut draft = Draft { timeout: rank == 1, ..Draft::default() };
        let mut common = self.common_guard(spot, index, transition, rank, &mut draft);
        let mut prelude = draft.take_code();
        let variants = match transition.action {
            Action::Jump => vec![super::effect::always(Vec::new())],
            Action::Else => {
                let earlier = self.none_enabled(spot, 0..index, |_| true, &mut draft);
                common.extend(earlier);
                prelude.extend(draft.take_code());
                vec![super::effect::always(Vec::new())]
            }
            Action::Die => {
                common.push(self.is_youngest(spot.slot));
                vec![super::effect::always(self.die(spot.slot, spot.proctype))]
            }
            Action::DStep(stmts) => {
                let guard = self.can_begin(stmts, frame, &mut draft);
                let before = draft.take_code();
                let body = self.d_step(stmts, frame, &mut draft);
                vec![Variant { guard, prelude: before, body }]
            }
            Action::Step(step) => {
                if let Step::Send { channel, args, .. } = step
                    && rank == 0
                {
                    self.add_meetings(spot, index, transition, channel, args);
                }
                self.variants(step, transition.text, frame, &mut draft)
            }
        };
        for variant in variants {
            let mut guard = common.clone();
            guard.push(variant.guard);
            let mut command = self.command(spot, transition, rank);
            command.temps = draft.temps.clone();
            command.prelude = prelude.iter().cloned().chain(variant.prelude).collect();
            command.body = variant.body;
            if !matches!(transition.action, Action::Die) {
                command.body.extend(self.arrive(spot, transition));
            }
            command.body.extend(self.take_turn(spot, transition.atomic));
            self.push(command, guard);
        }
    }

    fn push(&mut self, mut command: Command, mut guard: Vec<Expr>) {
        // What is never enabled is left out, unless it may go wrong while that is found out.
        if guard.contains(&Expr::FALSE) && command.prelude.is_empty() {
            return;
        }
        guard.retain(|term| !matches!(term, Expr::Const(value) if *value != 0));
        command.guard = balanced(BinOp::And, guard);
        self.system.commands.push(command);
    }

    fn command(&self, spot: Spot, transition: &Transition, rank: u8) -> Command {
        let Spot { slot, proctype, location } = spot;
        let name = &self.program.proctypes[proctype].name;
        let mut command = Command::new(format!("{name}({slot}): {}", text_of(transition)));
        command.acts.push(self.act(spot, transition));
        command.line = transition.site.line;
        command.kind = kind_of(transition);
        command.rank = rank;
        command.at.push((self.slots[slot].process, self.slots[slot].location(proctype, location)));
        command
    }

    /// The transition as people and SPIN know it.
    fn act(&self, spot: Spot, transition: &Transition) -> Act {
        let Spot { slot, proctype, .. } = spot;
        Act {
            process: self.slots[slot].process,
            who: format!("{}({slot})", self.program.proctypes[proctype].name),
            text: text_of(transition).into(),
            kind: kind_of(transition),
            file: self.file_name(transition.site),
            line: transition.site.line,
            number: numbers(transition, self.elements_before.0[proctype]),
        }
    }

    /// The file of a site, empty for the main file.
    pub fn file_name(&self, site: Site) -> String {
        if site.file == 0 { String::new() } else { self.program.files[site.file as usize].clone() }
    }

    fn arrive(&self, spot: Spot, transition: &Transition) -> Vec<Stmt> {
        let slot = &self.slots[spot.slot];
        let to = transition.target.map_or(0, |target| slot.location(spot.proctype, target));
        if to == slot.location(spot.proctype, spot.location) {
            return Vec::new();
        }
        vec![Stmt::assign(slot.location, to as i64, Narrow::Trap)]
    }

    /// Notes who must go on, and who moved last.
    fn take_turn(&self, spot: Spot, atomic: bool) -> Vec<Stmt> {
        let mut out = Vec::new();
        if let Some(exclusive) = self.exclusive {
            let value = if atomic { spot.slot as i64 + 1 } else { 0 };
            if atomic || self.may_hold_turn(spot) {
                out.push(Stmt::assign(exclusive, value, Narrow::Wrap));
            }
        }
        if let Some(last) = self.last {
            out.push(Stmt::assign(last, spot.slot as i64, Narrow::Wrap));
        }
        out
    }

    /// May control be here within an atomic sequence?
    fn may_hold_turn(&self, spot: Spot) -> bool {
        self.inside[spot.proctype][spot.location]
    }

    /// Exclusiveness, `provided`, and escapes that come first.
    fn common_guard(
        &mut self,
        spot: Spot,
        index: usize,
        transition: &Transition,
        rank: u8,
        draft: &mut Draft,
    ) -> Vec<Expr> {
        let mut out = Vec::new();
        if let Some(exclusive) = self.exclusive {
            let turn = Expr::read(exclusive);
            let nobody = Expr::equal(turn.clone(), Expr::Const(0));
            let mine = Expr::equal(turn, Expr::Const(spot.slot as i64 + 1));
            // Whether a timeout is due is decided only after atomicity was given up.
            out.push(if self.may_hold_turn(spot) && rank == 0 { Expr::any([nobody, mine]) } else { nobody });
        }
        out.extend(self.provided(spot.frame(), draft));
        let own = transition.escape;
        let escapes = self.none_enabled(spot, 0..index, |other| other.escape.is_some() && other.escape != own, draft);
        out.extend(escapes);
        out
    }

    pub fn provided(&mut self, frame: Frame, draft: &mut Draft) -> Option<Expr> {
        let condition = self.program.proctypes[frame.proctype].provided.as_ref()?;
        Some(self.truth(condition, frame, draft))
    }

    /// Conditions saying that no chosen transition among the first ones of a location is enabled.
    fn none_enabled(
        &mut self,
        spot: Spot,
        range: std::ops::Range<usize>,
        chosen: impl Fn(&Transition) -> bool,
        draft: &mut Draft,
    ) -> Vec<Expr> {
        let mut out = Vec::new();
        for index in range {
            let other = self.transition(spot, index);
            if chosen(&other) {
                let enabled = self.is_enabled(spot, index, &other, draft);
                out.push(match enabled {
                    Expr::Const(value) => Expr::Const((value == 0) as i64),
                    enabled => Expr::negate(enabled),
                });
            }
        }
        out
    }

    pub fn is_enabled(&mut self, spot: Spot, index: usize, transition: &Transition<'a>, draft: &mut Draft) -> Expr {
        let frame = spot.frame();
        match transition.action {
            Action::Jump => Expr::TRUE,
            Action::Die => self.is_youngest(spot.slot),
            Action::DStep(stmts) => self.can_begin(stmts, frame, draft),
            Action::Else => {
                let escape = transition.escape;
                let terms = self.none_enabled(spot, 0..index, |other| other.escape == escape, draft);
                balanced(BinOp::And, terms)
            }
            Action::Step(step) => {
                let mut terms = vec![self.enabled(step, frame, draft)];
                if let Step::Send { channel, args, .. } = step {
                    terms.extend(self.can_meet(channel, args, frame, draft));
                }
                terms.retain(|term| *term != Expr::FALSE);
                balanced(BinOp::Or, terms)
            }
        }
    }

    fn add_meetings(
        &mut self,
        spot: Spot,
        index: usize,
        transition: &Transition<'a>,
        channel: &crate::promela::ast::Place,
        args: &[Source],
    ) {
        self.meetings(channel, args, spot.frame(), |lowering, meeting, draft| {
            lowering.add_meeting(spot, index, transition, meeting, draft);
        });
    }

    fn add_meeting(
        &mut self,
        spot: Spot,
        index: usize,
        transition: &Transition<'a>,
        meeting: Meeting<'a>,
        mut draft: Draft,
    ) {
        let mut guard = self.common_guard(spot, index, transition, 0, &mut draft);
        let other = meeting.receiver.spot;
        let receive = self.receiver_transition(&meeting.receiver);
        guard.extend(self.provided(other.frame(), &mut draft));
        guard.push(meeting.guard);
        let mut command = self.command(spot, transition, 0);
        let receiver = &self.program.proctypes[other.proctype].name;
        command.label = format!("{}, {receiver}({}): {}", command.label, other.slot, text_of(&receive));
        command.acts.push(self.act(other, &receive));
        command
            .at
            .push((self.slots[other.slot].process, self.slots[other.slot].location(other.proctype, other.location)));
        command.prelude = draft.take_code();
        command.prelude.extend(meeting.prelude);
        command.body = meeting.body;
        command.body.extend(self.arrive(spot, transition));
        command.body.extend(self.arrive(other, &receive));
        command.body.extend(self.hand_over(spot, other, receive.atomic));
        command.temps = draft.temps;
        self.push(command, guard);
    }

    /// After a rendezvous the receiver goes on if its receive is atomic, else everybody may.
    fn hand_over(&self, sender: Spot, receiver: Spot, atomic: bool) -> Vec<Stmt> {
        let mut out = self.take_turn(receiver, atomic);
        if let Some(exclusive) = self.exclusive
            && !atomic
            && self.may_hold_turn(sender)
            && !self.may_hold_turn(receiver)
        {
            out.push(Stmt::assign(exclusive, 0, Narrow::Wrap));
        }
        out
    }
}

/// SPIN's numbers of the statement of a transition: from 1 in its proctype, from 0 among all.
pub fn numbers(transition: &Transition, before: u32) -> (u32, u32) {
    (transition.number, (before + transition.number).saturating_sub(1))
}

fn text_of<'t>(transition: &'t Transition) -> &'t str {
    match transition.action {
        Action::Else => "else",
        Action::Die => "-end-",
        Action::DStep(_) => "d_step",
        Action::Jump if transition.text.is_empty() => "goto",
        _ => transition.text,
    }
}

fn kind_of(transition: &Transition) -> Kind {
    match transition.action {
        Action::Jump | Action::Else => Kind::Control,
        Action::Die | Action::DStep(_) => Kind::Other,
        Action::Step(step) => match step {
            Step::Condition(value) if value.runs() => Kind::Other,
            Step::Condition(_) | Step::Nothing | Step::Print => Kind::Control,
            Step::Assign(..) => Kind::Assign,
            Step::Assert(_) => Kind::Other,
            Step::Send { .. } => Kind::Send,
            Step::Receive { .. } => Kind::Receive,
        },
    }
}

/// Does `timeout` decide whether the transition is enabled?
fn uses_timeout(transition: &Transition) -> bool {
    let in_step = |step: &Step| {
        let mut found = false;
        step.walk(&mut |part| found |= matches!(part, Source::Timeout));
        found
    };
    match transition.action {
        Action::Step(step) => in_step(step),
        Action::DStep(stmts) => {
            let mut found = false;
            walk_statements(stmts, &mut |stmt: &SourceStmt| {
                if let StmtKind::Step(step) = &stmt.kind {
                    found |= in_step(step);
                }
            });
            found
        }
        _ => false,
    }
}
