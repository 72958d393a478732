//! `plimsoll convert`: a graph file in another format.

use crate::failure::{Failure, exit};
use crate::graph_file::{self, GraphFile, copy};
use crate::options::ConvertOptions;
use crate::output::{Output, is_standard, try_out};
use crate::size::show_count;
use crate::{interrupt, loading};
use plimsoll_lts::Ends;
use std::sync::atomic::Ordering;

/// Runs the command.
pub fn run(options: &ConvertOptions, out: &mut Output) -> Result<u8, Failure> {
    try_out(&options.output)?;
    if is_standard(&options.output) {
        out.make_way();
    }
    loading::within(options.memory);
    let mut reader = graph_file::open(&options.input)?;
    let mut file = GraphFile::create(&options.output)?;
    let stop = || interrupt::flag().load(Ordering::Relaxed);
    let from = (options.input.as_path(), &mut reader);
    let copied = interrupt::while_searching(|| copy(from, &mut file, &options.hide.hidden(), stop))?;
    let Some(Ends { initial, states, transitions }) = copied else {
        out.print("interrupted: nothing was written\n");
        return Ok(exit::UNKNOWN);
    };
    file.finish(initial, states, out)?;
    let (states, transitions) = (show_count(states), show_count(transitions));
    out.print(&format!("{}: {states} states, {transitions} transitions\n", options.output.display()));
    Ok(0)
}
