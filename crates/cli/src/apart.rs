//! From what a search found to the trace that is shown: verified, and statement by statement, also where steps were merged.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::SymmetryName;
use crate::report::TraceReport;
use crate::report::trace::Origin;
use crate::subject::Content;
use plimsoll_ir::passes::merge::merge;
use plimsoll_ir::passes::optimise_for;
use plimsoll_ir::{Slot, Symmetry, System, Var};
use plimsoll_model::{Interp, Model, Patience, Step, Successors, Unmerge};
use plimsoll_search::{ReplayError, Trace, Violation, Walk, verify};
use std::rc::Rc;

/// The trace of a violation that was found on `executor`, which was made from `original` by simplifying it and perhaps by
/// merging steps. It is shown on the original, for that is what the text of the model says.
///
/// A merged path that cannot be taken apart, though that should be possible, is shown as it is; it was verified all the same.
pub fn trace(
    executor: Executor,
    symmetry: (SymmetryName, Option<&Symmetry>),
    original: Option<System>,
    violation: Violation,
    origin: Origin,
) -> Result<TraceReport, Failure> {
    let violation = if executor.has_orbits() { of_states(&executor, symmetry, violation)? } else { violation };
    let Some(original) = original else {
        return TraceReport::new(Rc::new(executor), violation, origin).map_err(not_replayed);
    };
    if origin.merge {
        verify(executor.reference(), &violation).map_err(not_replayed)?;
        let found = executor.interp().expect("what was merged is a system");
        if let Some(positions) = apart(found, optimise_for(original.clone(), symmetry.1), &violation.trace.positions) {
            let shown = Rc::new(interpreted(original));
            let apart = Violation { what: violation.what, trace: Trace { positions } };
            if let Ok(trace) = TraceReport::new(shown, apart, Origin { merge: false, ..origin.clone() }) {
                return Ok(trace);
            }
        }
        return TraceReport::new(Rc::new(executor), violation, origin).map_err(not_replayed);
    }
    drop(executor);
    TraceReport::new(Rc::new(interpreted(original)), violation, origin).map_err(not_replayed)
}

/// The violation on states of the model, given that on representatives.
///
/// Where the model tells elements of a set apart there may be none. That is a flaw of the model if the interpreter goes the path of
/// representatives too; else it is one of ours.
pub fn of_states(
    executor: &Executor,
    symmetry: (SymmetryName, Option<&Symmetry>),
    violation: Violation,
) -> Result<Violation, Failure> {
    let positions = executor.concrete(violation.trace.positions.clone());
    let found = positions.map(|positions| Violation { what: violation.what, trace: Trace { positions } });
    if let Some(found) = found.filter(|found| verify(executor.reference(), found).is_ok()) {
        return Ok(found);
    }
    let system = executor.system().expect("only systems have orbits").clone();
    let orbits = Executor::interpreted(Content::System(system), Patience::default());
    let orbits = orbits.within_symmetry(symmetry, u64::MAX, &mut Vec::new());
    verify(orbits.model(), &violation).map_err(not_replayed)?;
    Err(Failure::Model(NOT_ALIKE.into()))
}

const NOT_ALIKE: &str = "error: what was found with --symmetry is nothing that the model itself does: it treats some elements of a scalarset
unlike others, as a `for` over a scalarset may. Check it with --symmetry off.";

/// The trace of another violation, beside one that is shown already. Its steps were not merged.
pub fn beside(shown: &TraceReport, violation: Violation) -> Result<TraceReport, Failure> {
    TraceReport::new(shown.executor().clone(), violation, shown.origin.clone()).map_err(not_replayed)
}

fn interpreted(system: System) -> Executor {
    Executor::interpreted(Content::System(system), Patience::default())
}

fn not_replayed(error: ReplayError) -> Failure {
    Failure::internal(format!("the violation found cannot be replayed ({error:?})"))
}

/// The positions in `plain`, which is simplified, of a path that was found in its merged form. Where it was found dead
/// variables are reset; the path is followed beside that where they are not, so that all values are real.
fn apart(found: &Interp, plain: System, positions: &[u32]) -> Option<Vec<u32>> {
    let merged = Interp::new(merge(plain.clone()));
    let plain = Interp::new(plain);
    let unmerge = Unmerge::new(&merged, &plain);
    let (mut walk, mut twin) = (Walk::new(found), Walk::new(&merged));
    let slots = slots(&merged);
    let mut next = Successors::new(merged.width());
    let mut out = Vec::with_capacity(positions.len());
    for (number, &position) in positions.iter().enumerate() {
        let last = number + 1 == positions.len();
        let step = walk.take(position).ok()?;
        next.clear();
        match number {
            0 => merged.initial(&mut next),
            _ => merged.successors(twin.state(), &mut next),
        }
        // Positions are the same, unless states within a chain are equal but for dead variables.
        let fits = |&at: &usize| is_twin((walk.state(), step), (next.state(at), next.step(at)), &slots);
        let same = Some(position as usize).filter(|&at| at < next.len()).filter(&fits);
        let at = same.or_else(|| (0..next.len()).find(fits))?;
        out.extend(match number {
            0 => unmerge.start(at, last)?,
            _ => unmerge.step(twin.state(), at, last)?,
        });
        twin.take(at as u32).ok()?;
    }
    Some(out)
}

/// Does a step go as wrong as another, and lead to a state like that of the other but for variables that were reset?
fn is_twin((state, step): (&[u32], Step), (other, other_step): (&[u32], Step), slots: &[Slot]) -> bool {
    let alike = || slots.iter().all(|slot| [0, slot.load(other)].contains(&slot.load(state)));
    let flags = |step: Step| (step.is_fault(), step.is_violation());
    flags(step) == flags(other_step) && (step.is_fault() || alike())
}

/// Where the scalars of a system are.
fn slots(interp: &Interp) -> Vec<Slot> {
    let (vars, layout) = (&interp.system().vars, interp.layout());
    let of = |(index, var): (usize, &Var)| layout.scalars(index, &var.ty).into_iter().map(|(_, slot, _)| slot);
    vars.iter().enumerate().flat_map(of).collect()
}
