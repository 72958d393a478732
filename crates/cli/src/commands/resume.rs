//! `plimsoll resume`: go on with a search from its checkpoint.

use crate::checkpoint::Checkpoint;
use crate::commands::check;
use crate::failure::Failure;
use crate::options::ResumeOptions;
use crate::output::Output;

/// Runs the command: a check that does not begin at the beginning.
pub fn run(given: &ResumeOptions, out: &mut Output) -> Result<u8, Failure> {
    let (checkpoint, options) = Checkpoint::open(given)?;
    check::run(&options, Some(checkpoint), out)
}
