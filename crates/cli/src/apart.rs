//! From what a search found to the trace that is shown: verified, and statement by statement, also where steps were merged.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::report::TraceReport;
use crate::report::trace::Origin;
use crate::subject::Content;
use plimsoll_ir::System;
use plimsoll_ir::passes::merge::merge;
use plimsoll_model::{Interp, Unmerge};
use plimsoll_search::{ReplayError, Trace, Violation, Walk};

/// The trace of a violation that was found on `executor`, which may be the merged form of `plain`.
///
/// A path that cannot be taken apart, though it should be possible, is shown as it is; it was verified all the same.
pub fn trace(
    executor: Executor,
    plain: Option<System>,
    violation: Violation,
    origin: Origin,
) -> Result<TraceReport, Failure> {
    let positions = executor.concrete(violation.trace.positions);
    let positions = positions.ok_or_else(|| Failure::internal("a path of orbits has no path of states"))?;
    let violation = Violation { what: violation.what, trace: Trace { positions } };
    let apart = plain.and_then(|plain| Some((apart(&plain, &violation.trace.positions)?, plain)));
    let found = match apart {
        None => TraceReport::new(executor, violation, origin),
        Some((positions, plain)) => {
            plimsoll_search::verify(executor.reference(), &violation).map_err(not_replayed)?;
            drop(executor);
            let violation = Violation { what: violation.what, trace: Trace { positions } };
            let origin = Origin { merge: false, ..origin };
            TraceReport::new(Executor::interpreted(Content::System(plain)), violation, origin)
        }
    };
    found.map_err(not_replayed)
}

fn not_replayed(error: ReplayError) -> Failure {
    Failure::internal(format!("the violation found cannot be replayed ({error:?})"))
}

/// The positions in `plain` of a path that was found in its merged form. Resetting dead variables, which is done to that
/// form too, changes no positions; so the path is followed where it is not done, and all values are real.
fn apart(plain: &System, positions: &[u32]) -> Option<Vec<u32>> {
    let merged = Interp::new(merge(plain.clone()));
    let plain = Interp::new(plain.clone());
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
