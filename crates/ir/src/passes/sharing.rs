//! What others see and do of one process: which cells they touch, and which of its locations they ask for.
//!
//! A command of another process may touch something only where this one stands at a certain location, as one that
//! starts the process does: code under a condition `location == k`. That counts only there, if every store to the
//! location within the command lies under that same condition.

use super::stores::writes;
use crate::effects::{CellSet, Cells};
use crate::expr::{BinOp, Expr, Place, Root, Stmt, UnOp};
use crate::system::{Command, ProcessId, System, VarId};
use crate::walk::{Touch, expr_places, stmt_places};
use std::collections::{BTreeMap, BTreeSet};

pub struct Sharing {
    pub cells: Cells,
    location: VarId,
    /// Wherever the process stands.
    pub anywhere: Seen,
    /// Only while it stands at a location.
    pub there: BTreeMap<i64, Seen>,
    /// By properties.
    pub observed: Seen,
}

#[derive(Clone)]
pub struct Seen {
    pub reads: CellSet,
    pub writes: CellSet,
    /// Locations of the process that something is compared with.
    asked: BTreeSet<i64>,
    /// Is the location looked at otherwise, or stored to?
    pub all: bool,
}

impl Seen {
    fn none(cells: &Cells) -> Seen {
        Seen { reads: cells.none(), writes: cells.none(), asked: BTreeSet::new(), all: false }
    }

    fn add(&mut self, other: &Seen) {
        self.reads.add_all(&other.reads);
        self.writes.add_all(&other.writes);
        self.asked.extend(&other.asked);
        self.all |= other.all;
    }

    /// Can steps between `locations` that read and write certain cells be noticed or disturbed?
    fn meets(&self, reads: &CellSet, writes: &CellSet, locations: &BTreeSet<i64>) -> bool {
        let disturbs = self.writes.intersects(reads) || self.writes.intersects(writes);
        self.all || disturbs || self.reads.intersects(writes) || !self.asked.is_disjoint(locations)
    }
}

impl Sharing {
    pub fn of<'a>(system: &System, commands: impl Iterator<Item = &'a Command>, process: ProcessId) -> Sharing {
        let cells = Cells::of(system);
        let location = system.processes[process.index()].location;
        let none = Seen::none(&cells);
        let mut walk = Walk { system, cells: &cells, location, anywhere: none.clone(), there: BTreeMap::new() };
        for property in &system.properties {
            walk.stmts(&property.prelude, None);
            walk.expr(&property.expr, true, None);
        }
        let observed = std::mem::replace(&mut walk.anywhere, none.clone());
        let (mut anywhere, mut there) = (none, BTreeMap::new());
        for command in commands.filter(|command| command.at.iter().all(|&(mover, _)| mover != process)) {
            walk.command(command);
            anywhere.add(&std::mem::replace(&mut walk.anywhere, Seen::none(&cells)));
            for (at, seen) in std::mem::take(&mut walk.there) {
                there.entry(at).or_insert_with(|| Seen::none(&cells)).add(&seen);
            }
        }
        Sharing { cells, location, anywhere, there, observed }
    }

    /// May the commands at a location run at once when it is reached? The exclusive scalar does not count.
    pub fn allows(&self, system: &System, exclusive: Option<VarId>, at: u32, commands: &[Command]) -> bool {
        let (mut reads, mut written) = (self.cells.none(), self.cells.none());
        let mut locations = BTreeSet::from([i64::from(at)]);
        for command in commands {
            let mut visit = |touch: Touch, place: &Place| {
                if place.root == Root::Var(self.location) || Some(place.root) == exclusive.map(Root::Var) {
                    return;
                }
                self.cells.add(system, place, if touch == Touch::Read { &mut reads } else { &mut written });
            };
            stmt_places(&command.prelude, &mut visit);
            expr_places(&command.guard, &mut visit);
            stmt_places(&command.body, &mut visit);
            locations.extend(writes(&command.body, self.location).ends());
        }
        let there = self.there.get(&at.into());
        let mut others = [&self.anywhere, &self.observed].into_iter().chain(there);
        !others.any(|seen| seen.meets(&reads, &written, &locations))
    }
}

struct Walk<'a> {
    system: &'a System,
    cells: &'a Cells,
    location: VarId,
    anywhere: Seen,
    there: BTreeMap<i64, Seen>,
}

impl Walk<'_> {
    fn command(&mut self, command: &Command) {
        self.stmts(&command.prelude, None);
        self.expr(&command.guard, true, None);
        self.stmts(&command.body, None);
        let moves = !writes(&command.body, self.location).values.is_empty();
        if moves && (self.there.len() > 1 || self.anywhere.all) {
            for (_, seen) in std::mem::take(&mut self.there) {
                self.anywhere.add(&seen);
            }
        }
    }

    fn seen(&mut self, context: Option<i64>) -> &mut Seen {
        match context {
            Some(at) => self.there.entry(at).or_insert_with(|| Seen::none(self.cells)),
            None => &mut self.anywhere,
        }
    }

    fn touch(&mut self, touch: Touch, place: &Place, context: Option<i64>) {
        let (system, cells) = (self.system, self.cells);
        let seen = self.seen(context);
        cells.add(system, place, if touch == Touch::Read { &mut seen.reads } else { &mut seen.writes });
    }

    fn stmts(&mut self, stmts: &[Stmt], context: Option<i64>) {
        for stmt in stmts {
            match stmt {
                Stmt::Assign { to, value, .. } => {
                    self.expr(value, false, context);
                    self.written(to, context);
                }
                Stmt::Copy { to, from } => {
                    self.read(from, false, context);
                    self.written(to, context);
                }
                Stmt::Reset(to) => self.written(to, context),
                Stmt::Sort(place) => {
                    self.read(place, false, context);
                    self.written(place, context);
                }
                Stmt::If { condition, then, otherwise } => {
                    self.expr(condition, true, context);
                    self.stmts(then, self.stands(condition).or(context));
                    self.stmts(otherwise, context);
                }
                Stmt::Block(body) | Stmt::Loop { body, .. } => self.stmts(body, context),
                Stmt::Assert { condition, .. } => self.expr(condition, true, context),
                Stmt::Call(_) => unreachable!("systems with procedures are not merged"),
                Stmt::Break(_) | Stmt::Fault(_) | Stmt::Discard => {}
            }
        }
    }

    /// The location that a condition asks for.
    fn stands(&self, condition: &Expr) -> Option<i64> {
        match condition {
            Expr::Binary(BinOp::Eq, left, right) => match (&**left, &**right) {
                (Expr::Read(place), Expr::Const(at)) if place.root == Root::Var(self.location) => Some(*at),
                _ => None,
            },
            Expr::Binary(BinOp::And, left, right) => self.stands(left).or_else(|| self.stands(right)),
            _ => None,
        }
    }

    fn written(&mut self, to: &Place, context: Option<i64>) {
        to.indices().for_each(|index| self.expr(index, false, context));
        match to.root {
            // Where the process stands elsewhere, this is not reached.
            Root::Var(var) if var == self.location => self.seen(context).all = true,
            _ => self.touch(Touch::Write, to, context),
        }
    }

    fn read(&mut self, place: &Place, truth: bool, context: Option<i64>) {
        place.indices().for_each(|index| self.expr(index, false, context));
        match place.root {
            Root::Var(var) if var == self.location && truth => _ = self.seen(context).asked.insert(0),
            Root::Var(var) if var == self.location => self.seen(context).all = true,
            _ => self.touch(Touch::Read, place, context),
        }
    }

    /// Notes what an expression looks at; `truth` says that only its truth matters.
    fn expr(&mut self, expr: &Expr, truth: bool, context: Option<i64>) {
        match expr {
            Expr::Const(_) => {}
            Expr::Read(place) => self.read(place, truth, context),
            Expr::Unary(op, value) => self.expr(value, *op == UnOp::Not, context),
            Expr::Wrap { value, .. } => self.expr(value, false, context),
            Expr::Binary(BinOp::Eq | BinOp::Ne, left, right) => match (&**left, &**right) {
                (Expr::Read(place), Expr::Const(at)) if place.root == Root::Var(self.location) => {
                    self.seen(context).asked.insert(*at);
                }
                (left, right) => {
                    self.expr(left, false, context);
                    self.expr(right, false, context);
                }
            },
            Expr::Binary(op, left, right) => {
                let truth = matches!(op, BinOp::And | BinOp::Or);
                self.expr(left, truth, context);
                self.expr(right, truth, context);
            }
            Expr::Select(condition, then, otherwise) => {
                self.expr(condition, true, context);
                self.expr(then, truth, context);
                self.expr(otherwise, truth, context);
            }
        }
    }
}
