//! A never claim, as far as it is about safety: it must not reach its end.
//!
//! The claim moves in step with the system: before every step of the system, except within an atomic
//! sequence, it takes a transition whose condition holds in the state that the system is about to leave. So
//! every command of the system gets a choice (which transition of the claim) and code that finds the claim's
//! next location, or gives up. Where the system has come to rest, the claim goes on alone. As in SPIN, a
//! system with a claim is not checked for invalid end states.

use super::transition::numbers;
use super::value::Draft;
use super::{Frame, Lowering};
use crate::promela::ast::{Proctype, Step};
use crate::promela::flow::{Action, Automaton, Transition};
use plimsoll_ir::{
    Act, Choice, Command, Expr, Kind, Narrow, Process, ProcessId, Property, PropertyKind, Scalar, Stmt, TempId, VarId,
};

/// After the steps of the system, and after those that wait for a timeout.
const ALONE: u8 = 2;

pub struct Claim<'a> {
    pub automaton: Automaton<'a>,
    pub process: ProcessId,
    location: VarId,
}

/// What the claim's code leaves behind.
#[derive(Clone, Copy)]
struct Move {
    next: TempId,
    /// False if an assertion of the claim failed.
    holds: TempId,
}

const FRAME: Frame = Frame { slot: None, proctype: 0 };

impl<'a> Lowering<'a> {
    pub fn add_claim(&mut self, proctype: &'a Proctype, automaton: Automaton<'a>) {
        self.site = proctype.site;
        let process = ProcessId(self.system.processes.len() as u32);
        let locations: Vec<String> = automaton.locations.iter().map(|location| location.name.clone()).collect();
        let location = self.system.var("never.at", Scalar::range(0, locations.len() as i64 - 1), Some(process));
        self.system.vars[location.index()].init = vec![automaton.start as i64];
        self.system.processes.push(Process { name: "never".into(), location, locations });
        self.claim = Some(Claim { automaton, process, location });
    }

    /// Makes every command move the claim too.
    pub fn join_claim(&mut self) {
        let Some(claim) = self.claim.take() else { return };
        let mut commands = std::mem::take(&mut self.system.commands);
        for command in &mut commands {
            self.join(&claim, command);
        }
        for (number, location) in claim.automaton.locations.iter().enumerate() {
            for (index, transition) in location.transitions.iter().enumerate() {
                commands.extend(self.stutter(&claim, number, index, transition));
            }
        }
        self.system.commands = commands;
        self.system.sort_commands();
        let ends = claim.automaton.locations.iter().enumerate().filter(|(_, location)| is_end(&location.transitions));
        for (end, _) in ends {
            let expr = Expr::binary(plimsoll_ir::BinOp::Ne, Expr::read(claim.location), Expr::Const(end as i64));
            let (temps, prelude) = (Vec::new(), Vec::new());
            let (name, kind) = ("never claim".into(), PropertyKind::Invariant);
            self.system.properties.push(Property { name, line: self.site.line, kind, temps, prelude, expr });
        }
    }

    fn join(&mut self, claim: &Claim<'a>, command: &mut Command) {
        let mut draft = Draft { temps: std::mem::take(&mut command.temps), ..Draft::default() };
        let choice = draft.temp("claim", Scalar::I32);
        let step = new_move(&mut draft);
        let mut follow = Vec::new();
        for (number, location) in claim.automaton.locations.iter().enumerate() {
            let mut options = Vec::new();
            for (index, transition) in location.transitions.iter().enumerate() {
                let chosen = Expr::equal(Expr::read(choice), Expr::Const(index as i64));
                let then = self.claim_step(claim, number, index, transition, step, &mut draft);
                options.push(Stmt::If { condition: chosen, then, otherwise: Vec::new() });
            }
            let here = Expr::equal(Expr::read(claim.location), Expr::Const(number as i64));
            follow.push(Stmt::If { condition: here, then: options, otherwise: Vec::new() });
        }
        let mut prelude = start_move(step);
        prelude.push(match self.exclusive {
            Some(exclusive) => {
                let wait = vec![
                    when(Expr::read(choice), vec![Stmt::Discard]),
                    Stmt::assign(step.next, Expr::read(claim.location), Narrow::Wrap),
                ];
                Stmt::If { condition: Expr::read(exclusive), then: wait, otherwise: follow }
            }
            None => Stmt::Block(follow),
        });
        prelude.push(when(is_negative(step.next), vec![Stmt::Discard]));
        prelude.append(&mut command.prelude);
        let degree = claim.automaton.locations.iter().map(|location| location.transitions.len()).max().unwrap_or(1);
        command.choices.push(Choice { temp: choice, low: 0, high: degree.max(1) as i64 - 1 });
        command.prelude = prelude;
        command.body.extend(end_move(claim, step));
        command.temps = draft.temps;
    }

    /// Where one transition of the claim leads, if its condition holds.
    fn claim_step(
        &mut self,
        claim: &Claim<'a>,
        location: usize,
        index: usize,
        transition: &Transition<'a>,
        step: Move,
        draft: &mut Draft,
    ) -> Vec<Stmt> {
        let condition = self.claim_condition(claim, location, index, transition, draft);
        let mut out = draft.take_code();
        let Some(target) = transition.target else { return Vec::new() };
        let mut then = vec![Stmt::assign(step.next, target as i64, Narrow::Wrap)];
        if let Action::Step(Step::Assert(value)) = transition.action {
            let truth = Expr::negate(Expr::negate(self.truth(value, FRAME, draft)));
            then.extend(draft.take_code());
            then.push(Stmt::assign(step.holds, truth, Narrow::Wrap));
        }
        out.push(when(condition, then));
        out
    }

    fn claim_condition(
        &mut self,
        claim: &Claim<'a>,
        location: usize,
        index: usize,
        transition: &Transition<'a>,
        draft: &mut Draft,
    ) -> Expr {
        self.site = transition.site;
        match transition.action {
            Action::Jump | Action::Step(Step::Assert(_) | Step::Print | Step::Nothing) => Expr::TRUE,
            Action::Step(Step::Condition(value)) if !value.runs() => self.truth(value, FRAME, draft),
            Action::Else => {
                let earlier = claim.automaton.locations[location].transitions[..index].iter().enumerate();
                let terms: Vec<Expr> = earlier
                    .map(|(index, other)| Expr::negate(self.claim_condition(claim, location, index, other, draft)))
                    .collect();
                Expr::all(terms)
            }
            Action::Die => Expr::FALSE,
            Action::Step(_) | Action::DStep(_) => {
                self.fail("a never claim can only look at the system, not change it");
                Expr::FALSE
            }
        }
    }

    fn claim_act(&self, claim: &Claim, transition: &Transition) -> Act {
        Act {
            process: claim.process,
            who: "never".into(),
            text: transition.text.into(),
            kind: Kind::Control,
            file: self.file_name(transition.site),
            line: transition.site.line,
            number: numbers(transition, self.elements_before.1),
        }
    }

    /// The claim moves alone, because nothing else can.
    fn stutter(
        &mut self,
        claim: &Claim<'a>,
        location: usize,
        index: usize,
        transition: &Transition<'a>,
    ) -> Option<Command> {
        transition.target?;
        let mut draft = Draft { timeout: true, ..Draft::default() };
        let step = new_move(&mut draft);
        let mut prelude = start_move(step);
        prelude.extend(self.claim_step(claim, location, index, transition, step, &mut draft));
        let mut command = Command::new(format!("never: {}", transition.text));
        command.acts.push(self.claim_act(claim, transition));
        command.line = transition.site.line;
        command.kind = Kind::Control;
        command.rank = ALONE;
        command.at.push((claim.process, location as u32));
        command.prelude = prelude;
        command.guard = Expr::negate(is_negative(step.next));
        command.body = end_move(claim, step);
        if let Some(exclusive) = self.exclusive {
            command.guard = Expr::all([command.guard, Expr::equal(Expr::read(exclusive), Expr::Const(0))]);
        }
        command.temps = draft.temps;
        Some(command)
    }
}

fn is_end(transitions: &[Transition]) -> bool {
    transitions.iter().any(|transition| matches!(transition.action, Action::Die))
}

fn when(condition: Expr, then: Vec<Stmt>) -> Stmt {
    Stmt::If { condition, then, otherwise: Vec::new() }
}

fn is_negative(temp: TempId) -> Expr {
    Expr::binary(plimsoll_ir::BinOp::Lt, Expr::read(temp), Expr::Const(0))
}

fn new_move(draft: &mut Draft) -> Move {
    Move { next: draft.temp("claim next", Scalar::I32), holds: draft.temp("claim holds", Scalar::BOOL) }
}

fn start_move(step: Move) -> Vec<Stmt> {
    vec![Stmt::assign(step.next, -1, Narrow::Wrap), Stmt::assign(step.holds, 1, Narrow::Wrap)]
}

fn end_move(claim: &Claim, step: Move) -> Vec<Stmt> {
    let message = "assertion of the never claim".into();
    vec![
        Stmt::assign(claim.location, Expr::read(step.next), Narrow::Trap),
        Stmt::Assert { condition: Expr::read(step.holds), message },
    ]
}
