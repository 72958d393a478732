//! `plimsoll replay`: follow a stored trace on the interpreter and verify its end.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::{LookFor, ModelOptions, ReplayOptions};
use crate::output::Output;
use crate::report::trace::Origin;
use crate::report::{TraceReport, text};
use crate::subject;
use crate::view::View;
use plimsoll_search::{ReplayError, replay};
use std::io;

/// Traces larger than this are not ours.
const LARGEST: u64 = 1 << 30;

/// Runs the command. The trace is verified if it returns.
pub fn run(options: &ReplayOptions, out: &mut Output) -> Result<u8, Failure> {
    let stored = read(options)?;
    let look_for = LookFor { find: stored.find.clone(), invariant: stored.invariant.clone(), ..LookFor::default() };
    let overflow = options.model.overflow.or(stored.overflow());
    let model = ModelOptions { overflow, ..options.model.clone() };
    let mut subject = subject::load(&model, &look_for, options.output.color.wanted(&io::stderr()))?;
    let refuse = |why: String| Failure::usage(format!("{}: {why}", options.trace.display()));
    let (executor, violation, path) = loop {
        let promela = subject.promela.take();
        let executor = Executor::interpreted(subject.content);
        let violation = stored.violation(&View::new(&executor)).map_err(refuse)?;
        let error = match replay(executor.reference(), &violation) {
            Ok(path) => break (executor, violation, path),
            Err(error) => error,
        };
        // The trace may be of a Promela model that was prepared for more processes.
        let positions = &violation.trace.positions;
        let followed = if let ReplayError::NoSuchStep { at } = error { &positions[..at] } else { positions };
        let larger = promela.map(|promela| subject::refined(&promela, &executor, followed, &look_for)).transpose()?;
        subject = larger.flatten().ok_or_else(|| refuse(explain(error)))?;
    };
    let view = View::new(&executor);
    let origin = Origin { model: model.model.display().to_string(), overflow, look_for: &look_for };
    let trace = TraceReport::new(&violation, &path, &view, origin);
    if options.output.json {
        out.print(&trace.to_json());
        return Ok(0);
    }
    let style = text::Style {
        color: options.output.color.wanted(&io::stdout()),
        quiet: false,
        full_trace: options.output.full_trace,
    };
    if !options.output.quiet {
        out.print(&text::trace(&trace, style));
    }
    out.print(&format!("verified: the model takes these steps, and the end is as claimed ({})\n", trace.end()));
    Ok(0)
}

fn read(options: &ReplayOptions) -> Result<TraceReport, Failure> {
    let refuse = |why: String| Failure::usage(format!("{}: {why}", options.trace.display()));
    let size = std::fs::metadata(&options.trace).map_err(|error| refuse(format!("cannot be read: {error}")))?.len();
    if size > LARGEST {
        return Err(refuse("too large to be a trace".into()));
    }
    let text = std::fs::read(&options.trace).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    TraceReport::parse(&String::from_utf8_lossy(&text)).map_err(refuse)
}

fn explain(error: ReplayError) -> String {
    match error {
        ReplayError::NoSuchStep { at: 0 } => "the model has no such initial state".into(),
        ReplayError::NoSuchStep { at } => format!("the model cannot take step {at} of the trace"),
        ReplayError::NotWrong => "the model takes these steps, but the end is not wrong as the trace claims".into(),
    }
}
