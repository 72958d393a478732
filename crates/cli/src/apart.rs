//! From what a search found to the trace that is shown: verified, and statement by statement, also where steps were merged.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::report::TraceReport;
use crate::report::trace::Origin;
use crate::subject::Content;
use plimsoll_ir::System;
use plimsoll_ir::passes::merge::merge;
use plimsoll_ir::passes::optimise;
use plimsoll_model::{Interp, Patience, Unmerge};
use plimsoll_search::{ReplayError, Trace, Violation, Walk, verify};
use std::rc::Rc;

/// The trace of a violation that was found on `executor`, which was made from `original` by simplifying it and perhaps by
/// merging steps. It is shown on the original, for that is what the text of the model says.
///
/// A merged path that cannot be taken apart, though that should be possible, is shown as it is; it was verified all the same.
pub fn trace(
    executor: Executor,
    original: Option<System>,
    violation: Violation,
    origin: Origin,
) -> Result<TraceReport, Failure> {
    let positions = executor.concrete(violation.trace.positions);
    let positions = positions.ok_or_else(|| Failure::internal("a path of orbits has no path of states"))?;
    let mut violation = Violation { what: violation.what, trace: Trace { positions } };
    let Some(original) = original else {
        return TraceReport::new(Rc::new(executor), violation, origin).map_err(not_replayed);
    };
    if origin.merge {
        verify(executor.reference(), &violation).map_err(not_replayed)?;
        match apart(optimise(original.clone()), &violation.trace.positions) {
            Some(positions) => violation.trace = Trace { positions },
            None => return TraceReport::new(Rc::new(executor), violation, origin).map_err(not_replayed),
        }
    }
    drop(executor);
    let origin = Origin { merge: false, ..origin };
    let shown = Rc::new(Executor::interpreted(Content::System(original), Patience::default()));
    TraceReport::new(shown, violation, origin).map_err(not_replayed)
}

/// The trace of another violation, beside one that is shown already. Its steps were not merged.
pub fn beside(shown: &TraceReport, violation: Violation) -> Result<TraceReport, Failure> {
    TraceReport::new(shown.executor().clone(), violation, shown.origin.clone()).map_err(not_replayed)
}

fn not_replayed(error: ReplayError) -> Failure {
    Failure::internal(format!("the violation found cannot be replayed ({error:?})"))
}

/// The positions in `plain`, which is simplified, of a path that was found in its merged form. Resetting dead variables, which is done to that
/// form too, changes no positions; so the path is followed where it is not done, and all values are real.
fn apart(plain: System, positions: &[u32]) -> Option<Vec<u32>> {
    let merged = Interp::new(merge(plain.clone()));
    let plain = Interp::new(plain);
    let unmerge = Unmerge::new(&merged, &plain);
    let mut walk = Walk::new(&merged);
    let mut out = Vec::with_capacity(positions.len());
    for (number, &position) in positions.iter().enumerate() {
        let last = number + 1 == positions.len();
        out.extend(match number {
            0 => unmerge.start(position as usize, last)?,
            _ => unmerge.step(walk.state(), position as usize, last)?,
        });
        walk.take(position).ok()?;
    }
    Some(out)
}
