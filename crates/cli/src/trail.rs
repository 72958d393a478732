//! SPIN's trail files: the path to an error as `step:process:statement`, one line per statement.
//!
//! Statements have the numbers that SPIN gives them (`Act::number`). With a never claim, process 0 is the claim, which
//! moves before every step of the system, and the others count from 1. A trail from a checker that merges statements
//! says so in its first line (`-4:-4:-4`); it lacks the lines of statements that were merged with the one before, so
//! these may be taken silently.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::output::{Output, write_to};
use crate::report::TraceReport;
use plimsoll_ir::{Act, Instances, Kind, Slot, System, VarId};
use plimsoll_lang::promela::{ClaimNumbers, Promela};
use plimsoll_model::{Step, Successors};
use plimsoll_search::Walk;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

/// A trail as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Trail {
    lines: Vec<Line>,
    merged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    process: u32,
    statement: u32,
}

/// Why a trail cannot be followed.
#[derive(Debug, PartialEq, Eq)]
pub struct Lost {
    /// How many lines could be.
    pub lines: usize,
    /// The path to a step of the trail that goes wrong before its end, if there is one.
    pub fault: Option<Vec<u32>>,
}

/// Is the file called as SPIN calls its trails?
pub fn is_trail(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("trail"))
}

/// Writes the trail of a trace.
pub fn write(path: &Path, trace: &TraceReport, promela: Option<&Promela>, out: &mut Output) -> Result<(), Failure> {
    let refuse = |why: &str| Failure::usage(format!("{}: {why}", path.display()));
    let promela = promela.ok_or_else(|| refuse("only Promela models have trails; use another extension"))?;
    let trails = Trails::new(trace.executor(), promela.claim_numbers());
    let trails = trails.ok_or_else(|| refuse("a graph has no trails"))?;
    write_to(path, out, |file| trails.write(trace.positions(), file))
}

impl Trail {
    /// Reads a trail; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Trail> {
        let mut trail = Trail { lines: Vec::new(), merged: false };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let mut numbers = line.split(':').map(|number| number.trim().parse::<i64>());
            let (step, process, statement) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
            match step {
                -4 => trail.merged = true,
                ..0 => {}
                _ => {
                    let (process, statement) = (u32::try_from(process).ok()?, u32::try_from(statement).ok()?);
                    trail.lines.push(Line { process, statement });
                }
            }
        }
        Some(trail)
    }
}

/// Reads and writes trails of a model.
pub struct Trails<'a> {
    executor: &'a Executor,
    system: &'a System,
    numbers: Instances,
    claim: Option<(ClaimNumbers, Slot)>,
    /// Whose turn it is within an atomic chain.
    exclusive: Option<Slot>,
}

/// A statement on the way, and whether it is one that SPIN may merge with the one before.
#[derive(Clone, Copy)]
struct Taken {
    line: Line,
    silent: bool,
}

impl<'a> Trails<'a> {
    /// `None` for graphs, which have no statements.
    pub fn new(executor: &'a Executor, claim: Option<ClaimNumbers>) -> Option<Trails<'a>> {
        let interp = executor.interp()?;
        let (system, layout) = (interp.system(), interp.layout());
        let slot = |var: VarId| layout.address(var.index(), &system.vars[var.index()].ty, &[]).slot(&[]);
        let claim = claim.map(|claim| {
            let place = slot(system.processes[claim.process.index()].location);
            (claim, place)
        });
        let numbers = Instances::of(&system.commands);
        Some(Trails { executor, system, numbers, claim, exclusive: system.exclusive.map(slot) })
    }

    /// Writes the trail of the path at `positions`.
    fn write(&self, positions: &[u32], out: &mut dyn Write) -> io::Result<()> {
        if let Some((claim, _)) = &self.claim {
            writeln!(out, "-2:{}:-2", claim.body)?;
        }
        let mut walk = Walk::new(self.executor.reference());
        let mut count = 0;
        for (number, &position) in positions.iter().enumerate() {
            if number > 0 {
                for Taken { line, .. } in self.taken(walk.state(), position as usize) {
                    count += 1;
                    writeln!(out, "{count}:{}:{}", line.process, line.statement)?;
                }
            }
            if walk.take(position).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// The statements on the way to a successor, up to the first that goes wrong.
    fn taken(&self, before: &[u32], position: usize) -> Vec<Taken> {
        let mut before = before.to_vec();
        let mut out = Vec::new();
        for (step, after) in self.executor.reference().path(&before, position) {
            self.add(&before, step, &mut out);
            if !step.is_plain() {
                break;
            }
            before = after;
        }
        out
    }

    fn add(&self, before: &[u32], step: Step, out: &mut Vec<Taken>) {
        let id = self.numbers.command(step.instance());
        let command = &self.system.commands[id.index()];
        let alone = |claim: &ClaimNumbers| command.acts.first().is_some_and(|act| act.process == claim.process);
        let within = self.exclusive.is_some_and(|slot| slot.load(before) != 0);
        if let Some((claim, place)) = &self.claim
            && !alone(claim)
            && !within
        {
            let choice = command.choice_values(step.instance() - self.numbers.first(id)).last().copied().unwrap_or(0);
            let options = &claim.statements[place.load(before) as usize];
            let statement = options.get(choice as usize).copied().unwrap_or(0);
            out.push(Taken { line: Line { process: 0, statement }, silent: false });
        }
        for act in &command.acts {
            let line = Line { process: self.process_of(act), statement: act.number.1 };
            out.push(Taken { line, silent: matches!(act.kind, Kind::Control | Kind::Assign | Kind::Other) });
        }
    }

    fn process_of(&self, act: &Act) -> u32 {
        match &self.claim {
            Some((claim, _)) if act.process == claim.process => 0,
            Some(_) => act.process.0 + 1,
            None => act.process.0,
        }
    }

    /// The path that a trail describes. Where several steps fit, all are tried. After the last line of a trail with
    /// merged statements its process may go on silently until something is `wrong`.
    pub fn follow(&self, trail: &Trail, wrong: impl Fn(&[u32]) -> bool) -> Result<Vec<u32>, Lost> {
        let mut initial = Successors::new(self.executor.reference().width());
        self.executor.reference().initial(&mut initial);
        let mut lost = Lost { lines: 0, fault: None };
        let mut points = Points::default();
        let starts = (0..initial.len()).filter(|&start| !initial.step(start).is_fault());
        starts.for_each(|start| points.add(None, start, initial.state(start), 0));
        let mut seen = HashSet::new();
        let mut whole = None;
        while let Some(number) = points.open.pop() {
            let Point { state, line, .. } = points.all[number].clone();
            if line == trail.lines.len() {
                let positions = points.positions(number);
                if !trail.merged || wrong(&positions) {
                    return Ok(positions);
                }
                whole.get_or_insert(positions);
            }
            lost.lines = lost.lines.max(line);
            if seen.insert((state.clone(), line)) {
                self.go_on(trail, number, &state, line, &mut points, &mut lost);
            }
        }
        whole.ok_or(lost)
    }

    /// Adds where one step leads that fits the next lines; the best goes last, to be tried first.
    fn go_on(&self, trail: &Trail, from: usize, state: &[u32], line: usize, points: &mut Points, lost: &mut Lost) {
        let mut out = Successors::new(state.len());
        self.executor.reference().successors(state, &mut out);
        let mut found = Vec::new();
        for position in 0..out.len() {
            // The step shown is the first of its chain.
            let mut first = Vec::new();
            self.add(state, out.step(position), &mut first);
            let fits = trail.fits(line, &first).and_then(|_| trail.fits(line, &self.taken(state, position)));
            let Some(next) = fits else { continue };
            if out.step(position).is_fault() && next < trail.lines.len() {
                let mut positions = points.positions(from);
                positions.push(position as u32);
                lost.fault.get_or_insert(positions);
                continue;
            }
            found.push((next, position));
        }
        found.sort_by_key(|&(next, _)| next);
        found.into_iter().for_each(|(next, position)| points.add(Some(from), position, out.state(position), next));
    }
}

/// The end of a path that fits the first lines of a trail.
#[derive(Clone)]
struct Point {
    before: Option<usize>,
    position: u32,
    state: Vec<u32>,
    line: usize,
}

/// All points, and those from which nothing was tried yet.
#[derive(Default)]
struct Points {
    all: Vec<Point>,
    open: Vec<usize>,
}

impl Points {
    fn add(&mut self, before: Option<usize>, position: usize, state: &[u32], line: usize) {
        self.open.push(self.all.len());
        self.all.push(Point { before, position: position as u32, state: state.to_vec(), line });
    }

    fn positions(&self, number: usize) -> Vec<u32> {
        let mut out: Vec<u32> =
            std::iter::successors(Some(number), |&at| self.all[at].before).map(|at| self.all[at].position).collect();
        out.reverse();
        out
    }
}

impl Trail {
    /// The line after the ones that `taken` accounts for, if it fits from line `from` on. The trail may end early.
    fn fits(&self, from: usize, taken: &[Taken]) -> Option<usize> {
        let mut at = from;
        for Taken { line, silent } in taken {
            match self.lines.get(at) {
                None if from < self.lines.len() => break,
                Some(wanted) if wanted == line => at += 1,
                _ => {
                    let before = at.checked_sub(1).map(|before| self.lines[before].process);
                    if !self.merged || !silent || before != Some(line.process) {
                        return None;
                    }
                }
            }
        }
        Some(at)
    }
}
