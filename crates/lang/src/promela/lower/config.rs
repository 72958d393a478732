//! Which proctypes may live under which process number.
//!
//! `run` makes processes at run time, but a system has a fixed number of them, so each process number is a
//! *slot* with a list of proctypes that may occupy it. The list starts as a guess and grows on demand: a
//! `run` that finds no room faults with a message that [`Configuration::refine`] understands, and the
//! search starts again with the larger configuration. So a finished search has never met that fault, and
//! its configuration was large enough.

use crate::promela::ast::{Expr, Program, StmtKind, walk_statements};
use std::collections::BTreeSet;

/// SPIN's limit.
pub const MOST_PROCESSES: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Proctypes by process number.
    pub slots: Vec<Vec<usize>>,
}

const PREFIX: &str = "configuration: process ";
const MIDDLE: &str = " may be a ";

impl Configuration {
    /// The initial processes, and one more for each `run` in the body of one of them, in order.
    pub fn guess(program: &Program) -> Configuration {
        let mut slots: Vec<Vec<usize>> = program.initial.iter().map(|&proctype| vec![proctype]).collect();
        let mut seen: Vec<usize> = Vec::new();
        let mut at = 0;
        while at < slots.len() {
            for proctype in slots[at].clone() {
                if seen.contains(&proctype) {
                    continue;
                }
                seen.push(proctype);
                for target in runs(program, proctype) {
                    if slots.len() < MOST_PROCESSES {
                        slots.push(vec![target]);
                    }
                }
            }
            at += 1;
        }
        Configuration { slots }
    }

    /// Does any proctype run others?
    pub fn may_grow(&self, program: &Program) -> bool {
        self.slots.iter().flatten().any(|&proctype| !runs(program, proctype).is_empty())
    }

    /// The text of the fault that asks for more.
    pub fn request(slot: usize, name: &str) -> String {
        format!("{PREFIX}{slot}{MIDDLE}{name}")
    }

    /// The configuration that satisfies the request in a message, if it is one.
    pub fn refine(&self, program: &Program, message: &str) -> Option<Configuration> {
        let (slot, name) = message.strip_prefix(PREFIX)?.split_once(MIDDLE)?;
        let slot: usize = slot.parse().ok()?;
        let proctype = program.proctypes.iter().position(|proctype| proctype.name == name)?;
        let mut refined = self.clone();
        if slot > refined.slots.len() || slot >= MOST_PROCESSES {
            return None;
        }
        if slot == refined.slots.len() {
            refined.slots.push(Vec::new());
        }
        if refined.slots[slot].contains(&proctype) {
            return None;
        }
        refined.slots[slot].push(proctype);
        Some(refined)
    }
}

impl Configuration {
    /// As [`Configuration::refine`], but where a new slot is asked for there are then twice as many.
    pub fn refine_generously(&self, program: &Program, message: &str) -> Option<Configuration> {
        let mut refined = self.refine(program, message)?;
        if refined.slots.len() > self.slots.len() {
            let wanted = (2 * refined.slots.len()).min(MOST_PROCESSES);
            let last = refined.slots[refined.slots.len() - 1].clone();
            refined.slots.resize(wanted, last);
        }
        Some(refined)
    }

    /// With room for these proctypes in these slots too.
    pub fn with_room_for(&self, tenants: &BTreeSet<(usize, usize)>) -> Configuration {
        let mut slots = self.slots.clone();
        for &(slot, proctype) in tenants {
            slots.resize_with(slots.len().max(slot + 1), Vec::new);
            if !slots[slot].contains(&proctype) {
                slots[slot].push(proctype);
            }
        }
        Configuration { slots }
    }
}

/// The proctypes that the text of a proctype runs, with repetitions.
fn runs(program: &Program, proctype: usize) -> Vec<usize> {
    let mut out = Vec::new();
    walk_statements(&program.proctypes[proctype].body, &mut |stmt| {
        if let StmtKind::Step(step) = &stmt.kind {
            step.walk(&mut |part| {
                if let Expr::Run(run) = part {
                    out.push(run.proctype);
                }
            });
        }
    });
    out
}
