//! Dead-variable reset: where a process arrives, what it will not look at before storing to it again becomes zero.
//!
//! Liveness is computed backwards over the locations of each process, scalar by scalar. A scalar counts for a process if
//! only the process itself, or others while it stands at a known location (they start it), read or write it; it
//! is then live where they do. Properties and accepted ends keep alive what they read. **Invariant:** at every
//! location all scalars that are dead there are zero; a scalar stays live where some step to the location could
//! not reset it. So the new state is a function of the old one, and equal old states give equal new states: never more
//! states, and since nobody looks at the difference, the same steps, deadlocks, assertions, faults and
//! properties. (Aho, Sethi and Ullman 1986 for liveness; SPIN and many others reset.)

use super::sharing::Sharing;
use super::stores::{Writes, writes};
use crate::effects::CellSet;
use crate::expr::{Access, Expr, Place, Root, Stmt};
use crate::system::{Command, Deadlock, ProcessId, System, VarId};
use crate::types::Type;
use crate::walk::{Touch, expr_places, stmt_places};

/// The scalars of a larger variable are dead all together or not at all.
const APART: usize = 8;

/// Resets dead variables in a verified system.
pub fn reset_dead(mut system: System) -> System {
    // Languages with procedures have no processes.
    if !system.procedures.is_empty() {
        return system;
    }
    for process in 0..system.processes.len() {
        let Some(liveness) = Liveness::of(&system, ProcessId(process as u32)) else { continue };
        let resets = liveness.resets(&system);
        for (index, resets) in resets {
            system.commands[index].body.extend(resets);
        }
    }
    system
}

/// A command in which the process takes part.
struct Own {
    index: usize,
    at: usize,
    /// Read before anything is surely stored.
    used: CellSet,
    /// Surely stored.
    defined: CellSet,
    /// Perhaps not zero after it was stored.
    dirty: CellSet,
    /// Surely zero at the end.
    zeroed: CellSet,
    /// Where the process may be afterwards, and is that sure?
    ends: Vec<usize>,
    sure: bool,
}

struct Liveness {
    sharing: Sharing,
    /// The scalars that count.
    cells: CellSet,
    own: Vec<Own>,
    /// By location.
    live: Vec<CellSet>,
    /// Variables whose scalars are not told apart.
    large: Vec<std::ops::Range<usize>>,
}

impl Liveness {
    /// Nothing if the process has no scalars that count, or moves in unknown ways.
    fn of(system: &System, process: ProcessId) -> Option<Liveness> {
        let found = &system.processes[process.index()];
        let location = found.location;
        let takes_part = |command: &Command| command.at.iter().find(|(mover, _)| *mover == process).map(|own| own.1);
        let all = || system.starts.iter().chain(&system.commands);
        let named = |value: &i64| (0..found.locations.len() as i64).contains(value);
        let is_known = |writes: &Writes| !writes.unknown && writes.values.iter().all(named);
        if !all().all(|command| is_known(&writes(&command.body, location)))
            || !system.vars[location.index()].init.iter().all(named)
        {
            return None;
        }
        let sharing = Sharing::of(system, system.commands.iter(), process);
        let mut own = Vec::new();
        for (index, command) in system.commands.iter().enumerate() {
            if let Some(at) = takes_part(command) {
                own.push(Own::of(system, &sharing, (index, command), location, at as usize));
            }
        }
        let cells = counting(system, &sharing, &own)?;
        let live = vec![sharing.cells.none(); found.locations.len()];
        let large = large(system, &sharing);
        let mut liveness = Liveness { sharing, cells, own, live, large };
        liveness.begin(system, location);
        let outside = system.commands.iter().filter(|command| takes_part(command).is_none());
        let brought: Vec<usize> =
            outside.flat_map(|command| writes(&command.body, location).ends().collect::<Vec<_>>()).map(known).collect();
        while liveness.round(&brought) {}
        Some(liveness)
    }

    /// What is live from the outset: what others touch, and what is not zero where the process starts.
    fn begin(&mut self, system: &System, location: VarId) {
        for (&at, seen) in &self.sharing.there {
            if let Some(live) = usize::try_from(at).ok().and_then(|at| self.live.get_mut(at)) {
                live.add_all(&seen.reads);
                live.add_all(&seen.writes);
            }
        }
        let mut first = self.sharing.cells.none();
        for (index, var) in system.vars.iter().enumerate() {
            if var.init.iter().any(|&value| value != 0) {
                self.sharing.cells.add(system, &VarId(index as u32).into(), &mut first);
            }
        }
        let initial = system.vars[location.index()].init.first().copied().unwrap_or(0);
        let mut starts = vec![known(initial)];
        for start in &system.starts {
            starts.extend(writes(&start.body, location).ends().map(known));
            stmt_places(&start.body, &mut |touch, place| {
                if touch == Touch::Write {
                    self.sharing.cells.add(system, place, &mut first);
                }
            });
        }
        starts.iter().for_each(|&at| self.live[at].add_all(&first));
        self.tidy();
    }

    /// Forgets what does not count, and lets large variables live as a whole.
    fn tidy(&mut self) {
        for live in &mut self.live {
            live.keep_all(&self.cells);
            for range in &self.large {
                if range.clone().any(|cell| live.contains(cell)) {
                    range.clone().for_each(|cell| live.insert(cell));
                }
            }
            live.keep_all(&self.cells);
        }
    }

    /// One round of the fixed point; did anything change?
    fn round(&mut self, brought: &[usize]) -> bool {
        let before: usize = self.live.iter().map(CellSet::count).sum();
        for own in self.own.iter().rev() {
            let mut needed = self.sharing.cells.none();
            own.ends.iter().for_each(|&end| needed.add_all(&self.live[end]));
            needed.remove_all(&own.defined);
            needed.add_all(&own.used);
            self.live[own.at].add_all(&needed);
            if !own.sure {
                let mut dirty = self.live[own.at].clone();
                dirty.add_all(&own.dirty);
                own.ends.iter().for_each(|&end| self.live[end].add_all(&dirty));
            }
        }
        // Others bring the process from where they find it to where they want it.
        for from in 0..self.live.len() {
            let seen = self.sharing.there.get(&(from as i64));
            if self.sharing.anywhere.all || seen.is_some_and(|seen| seen.all) {
                for &to in brought {
                    let (one, mut other) = (self.live[from].clone(), self.live[to].clone());
                    seen.iter().for_each(|seen| other.add_all(&seen.writes));
                    other.add_all(&one);
                    self.live[from].add_all(&other);
                    self.live[to].add_all(&other);
                }
            }
        }
        self.tidy();
        self.live.iter().map(CellSet::count).sum::<usize>() > before
    }

    /// What to add to which commands.
    fn resets(&self, system: &System) -> Vec<(usize, Vec<Stmt>)> {
        let mut out = Vec::new();
        for own in self.own.iter().filter(|own| own.sure) {
            let after = &self.live[own.ends[0]];
            let mut wanted = self.live[own.at].clone();
            wanted.remove_all(&own.zeroed);
            wanted.add_all(&own.dirty);
            wanted.keep_all(&self.cells);
            wanted.remove_all(after);
            let mut dead = self.cells.clone();
            dead.remove_all(after);
            let resets: Vec<Stmt> = places(system, &self.sharing, &wanted, &dead).map(Stmt::Reset).collect();
            if !resets.is_empty() {
                out.push((own.index, resets));
            }
        }
        out
    }
}

fn known(location: i64) -> usize {
    usize::try_from(location).expect("verified: locations are small numbers")
}

/// The scalars that can be reset, if there are any.
fn counting(system: &System, sharing: &Sharing, own: &[Own]) -> Option<CellSet> {
    let mut cells = sharing.cells.none();
    for own in own {
        cells.add_all(&own.used);
        cells.add_all(&own.dirty);
        cells.add_all(&own.defined);
    }
    for seen in [&sharing.anywhere, &sharing.observed] {
        cells.remove_all(&seen.reads);
        cells.remove_all(&seen.writes);
    }
    let mut kept = sharing.cells.none();
    if let Deadlock::Stuck { accepted: Some(accepted) } = &system.deadlock {
        expr_places(accepted, &mut |_, place| sharing.cells.add(system, place, &mut kept));
    }
    for var in system.processes.iter().map(|process| process.location).chain(system.exclusive) {
        sharing.cells.add(system, &var.into(), &mut kept);
    }
    for index in 0..system.vars.len() {
        let var = VarId(index as u32);
        if sharing.cells.of_var(system, var).is_none() {
            sharing.cells.add(system, &var.into(), &mut kept);
        }
    }
    cells.remove_all(&kept);
    (!cells.is_empty()).then_some(cells)
}

fn large(system: &System, sharing: &Sharing) -> Vec<std::ops::Range<usize>> {
    let ranges = (0..system.vars.len()).filter_map(|var| sharing.cells.of_var(system, VarId(var as u32)));
    ranges.filter(|range| range.len() > APART).collect()
}

/// Places for all of `wanted`; a whole variable if all of it is `dead`.
fn places<'a>(
    system: &'a System,
    sharing: &'a Sharing,
    wanted: &'a CellSet,
    dead: &'a CellSet,
) -> impl Iterator<Item = Place> + 'a {
    (0..system.vars.len()).flat_map(move |index| {
        let var = VarId(index as u32);
        let range = sharing.cells.of_var(system, var).unwrap_or(0..0);
        let cells: Vec<usize> = range.clone().filter(|&cell| wanted.contains(cell)).collect();
        if !cells.is_empty() && range.clone().all(|cell| dead.contains(cell)) {
            return vec![Place::from(var)];
        }
        cells.into_iter().map(|cell| scalar(var.into(), &system.vars[index].ty, cell - range.start)).collect()
    })
}

/// The `number`-th scalar of a place.
fn scalar(place: Place, ty: &Type, number: usize) -> Place {
    match ty {
        Type::Scalar(_) => place,
        Type::Array { element, .. } => {
            let pitch = element.scalar_count();
            scalar(place.index((number / pitch) as i64), element, number % pitch)
        }
        Type::Record(fields) => {
            let mut rest = number;
            for (field, (_, ty)) in fields.iter().enumerate() {
                if rest < ty.scalar_count() {
                    return scalar(place.field(field as u32), ty, rest);
                }
                rest -= ty.scalar_count();
            }
            unreachable!("the number lies within the place")
        }
    }
}

impl Own {
    fn of(system: &System, sharing: &Sharing, (index, command): (usize, &Command), location: VarId, at: usize) -> Own {
        let writes = writes(&command.body, location);
        let mut ends: Vec<usize> = writes.ends().map(known).collect();
        if writes.surely.is_none() {
            ends.push(at);
        }
        let none = sharing.cells.none();
        let (used, defined, dirty, zeroed) = (none.clone(), none.clone(), none.clone(), none);
        let sure = writes.surely.is_some() || ends.len() == 1;
        let mut own = Own { index, at, used, defined, dirty, zeroed, ends, sure };
        command.prelude.iter().for_each(|stmt| own.stmt(system, sharing, stmt));
        own.read(system, sharing, &command.guard);
        command.body.iter().for_each(|stmt| own.stmt(system, sharing, stmt));
        own
    }

    fn read(&mut self, system: &System, sharing: &Sharing, expr: &Expr) {
        expr_places(expr, &mut |_, place| self.looked_at(system, sharing, place));
    }

    fn looked_at(&mut self, system: &System, sharing: &Sharing, place: &Place) {
        let mut cells = sharing.cells.none();
        sharing.cells.add(system, place, &mut cells);
        cells.remove_all(&self.defined);
        self.used.add_all(&cells);
    }

    /// Adds a statement that runs surely and in order.
    fn stmt(&mut self, system: &System, sharing: &Sharing, stmt: &Stmt) {
        stmt_places(std::slice::from_ref(stmt), &mut |touch, place| match touch {
            Touch::Read => self.looked_at(system, sharing, place),
            Touch::Write => {
                let mut cells = sharing.cells.none();
                sharing.cells.add(system, place, &mut cells);
                self.dirty.add_all(&cells);
                self.zeroed.remove_all(&cells);
            }
        });
        let (Stmt::Assign { to, .. } | Stmt::Copy { to, .. } | Stmt::Reset(to)) = stmt else { return };
        let fixed = to.path.iter().all(|access| matches!(access, Access::Field(_) | Access::Index(Expr::Const(_))));
        if fixed && matches!(to.root, Root::Var(_)) {
            let mut cells = sharing.cells.none();
            sharing.cells.add(system, to, &mut cells);
            self.defined.add_all(&cells);
            if matches!(stmt, Stmt::Reset(_) | Stmt::Assign { value: Expr::Const(0), .. }) {
                self.dirty.remove_all(&cells);
                self.zeroed.add_all(&cells);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;
    use crate::verify::verify;

    /// The labels of commands that reset something, with what they reset.
    fn resets(commands: &str) -> Vec<String> {
        let text = format!(
            "system \"t\" var p: 0..2 of P var x: 0..9 of P var a: [2] 0..9 of P var q: 0..1 of Q var shared: 0..9
            process P at p {{ a, b, c }} process Q at q {{ a, b }} {commands}
            command \"watch\" at Q.b {{ when shared == 3 do {{ q := 0; }} }}"
        );
        let system = parse(&text).unwrap();
        verify(&system).unwrap();
        let reset = reset_dead(system.clone());
        verify(&reset).unwrap();
        let added = |(new, old): (&Command, &Command)| {
            let names: Vec<&str> = new.body[old.body.len()..]
                .iter()
                .map(|stmt| match stmt {
                    Stmt::Reset(Place { root: Root::Var(var), .. }) => system.vars[var.index()].name.as_str(),
                    _ => unreachable!("only variables are reset"),
                })
                .collect();
            (!names.is_empty()).then(|| format!("{} {}", new.label, names.join(" ")))
        };
        reset.commands.iter().zip(&system.commands).filter_map(added).collect()
    }

    const LINE: &str =
        "command one at P.a { do { x := 1; p := 1; } } command two at P.b { do { shared := x; p := 2; } }
        command three at P.c { do { p := 0; } }";

    fn quoted(text: &str) -> String {
        ["one", "two", "three"].iter().fold(text.into(), |text: String, name| {
            text.replace(&format!("command {name} "), &format!("command \"{name}\" "))
        })
    }

    #[test]
    fn a_variable_is_reset_where_it_dies() {
        assert_eq!(resets(&quoted(LINE)), ["two x"]);
        let loops = quoted(LINE).replace("p := 0;", "shared := x; p := 0;");
        assert_eq!(resets(&loops), ["three x"], "it is read later");
        let elements =
            quoted(LINE).replace("x := 1;", "a[0] := 1; a[1] := 1;").replace("shared := x;", "shared := a[1];");
        assert_eq!(resets(&elements), ["one a", "two a"]);
    }

    #[test]
    fn what_others_or_properties_look_at_stays() {
        let others = "command \"other\" at Q.a { do { shared := x; q := 1; } }";
        assert!(resets(&format!("{} {others}", quoted(LINE))).is_empty());
        assert!(resets(&format!("{} invariant \"i\" {{ expect x < 5 }}", quoted(LINE))).is_empty());
        assert!(resets(&format!("deadlock stuck unless x == 1 {}", quoted(LINE))).is_empty());
    }
}
