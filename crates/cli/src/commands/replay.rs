//! `plimsoll replay`: follow a stored trace on the interpreter and verify its end.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::{LookFor, ModelOptions, ReplayOptions};
use crate::output::Output;
use crate::report::trace::Origin;
use crate::report::{TraceReport, text};
use crate::subject::Subject;
use crate::trail::{Lost, Trail, Trails};
use crate::view::View;
use crate::{chart, subject, trail};
use plimsoll_lang::promela::Promela;
use plimsoll_model::Patience;
use plimsoll_search::{ReplayError, Replayed, Trace, Violation, What, replay, trace::follow};
use std::io;

/// Traces larger than this are not ours.
const LARGEST: u64 = 1 << 30;

/// What is to be followed.
enum Stored {
    Trace(Box<TraceReport>),
    /// SPIN's; it does not say what is wrong at its end.
    Trail(Trail),
}

impl Stored {
    /// Was it found with merged steps? Trails count every statement.
    fn merge(&self) -> bool {
        matches!(self, Stored::Trace(trace) if trace.merge)
    }
}

/// Runs the command. The trace is verified if it returns.
pub fn run(options: &ReplayOptions, out: &mut Output) -> Result<u8, Failure> {
    let stored = read(options)?;
    let (look_for, overflow) = match &stored {
        Stored::Trace(stored) => {
            let (find, invariant) = (stored.find.clone(), stored.invariant.clone());
            (LookFor { find, invariant, ..LookFor::default() }, stored.overflow())
        }
        Stored::Trail(_) => (LookFor::default(), None),
    };
    let overflow = options.model.overflow.or(overflow);
    let model = ModelOptions { overflow, ..options.model.clone() };
    let mut subject = subject::load(&model, &look_for, options.output.color.wanted(&io::stderr()))?;
    let (executor, violation, path) = loop {
        match attempt(subject, &stored, &look_for, options)? {
            Attempt::Done(executor, violation, path) => break (executor, violation, path),
            Attempt::Refine(larger) => subject = *larger,
        }
    };
    let view = View::new(&executor);
    let merge = stored.merge();
    let origin = Origin { model: model.model.display().to_string(), overflow, merge, look_for: &look_for };
    let trace = TraceReport::new(&violation, &path, &view, origin);
    if let Some(path) = &options.draw.msc {
        chart::write(path, &trace, out)?;
    }
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

enum Attempt {
    Done(Box<Executor>, Violation, Vec<Replayed>),
    /// The trace may be of a Promela model that was prepared for more processes.
    Refine(Box<Subject>),
}

fn attempt(
    mut subject: Subject,
    stored: &Stored,
    look_for: &LookFor,
    options: &ReplayOptions,
) -> Result<Attempt, Failure> {
    let refuse = |why: String| Failure::usage(format!("{}: {why}", options.trace.display()));
    let promela = subject.promela.take();
    let content = if stored.merge() { subject.content.prepared(true) } else { subject.content };
    let executor = Executor::interpreted(content, Patience::default());
    let refined = |positions: &[u32]| match &promela {
        Some(promela) => subject::refined(promela, &executor, positions, look_for),
        None => Ok(None),
    };
    let (positions, why) = match stored {
        Stored::Trace(stored) => {
            let violation = stored.violation(&View::new(&executor)).map_err(refuse)?;
            let error = match replay(executor.reference(), &violation) {
                Ok(path) => return Ok(Attempt::Done(Box::new(executor), violation, path)),
                Err(error) => error,
            };
            let positions = &violation.trace.positions;
            let followed = if let ReplayError::NoSuchStep { at } = error { &positions[..at] } else { positions };
            (followed.to_vec(), explain(error))
        }
        Stored::Trail(trail) => match follow_trail(trail, &executor, promela.as_deref()).map_err(refuse)? {
            Ok(positions) => match wrong_end(&executor, &positions) {
                // A place that is missing is no error of the model.
                Some((violation, _)) if violation.what == What::Fault && refined(&positions)?.is_some() => {
                    (positions, String::new())
                }
                Some((violation, path)) => return Ok(Attempt::Done(Box::new(executor), violation, path)),
                None => (positions, "the model takes these steps, but nothing is wrong at their end".into()),
            },
            Err(Lost { lines, fault }) => {
                (fault.unwrap_or_default(), format!("the model cannot take step {} of the trail", lines + 1))
            }
        },
    };
    let larger = refined(&positions)?.ok_or_else(|| refuse(why))?;
    Ok(Attempt::Refine(Box::new(larger)))
}

fn follow_trail(
    trail: &Trail,
    executor: &Executor,
    promela: Option<&Promela>,
) -> Result<Result<Vec<u32>, Lost>, String> {
    let promela = promela.ok_or("only Promela models have trails")?;
    let trails = Trails::new(executor, promela.claim_numbers()).ok_or("a graph has no trails")?;
    Ok(trails.follow(trail, |positions| wrong_end(executor, positions).is_some()))
}

/// What is wrong at the end of a path, and the path.
fn wrong_end(executor: &Executor, positions: &[u32]) -> Option<(Violation, Vec<Replayed>)> {
    let model = executor.reference();
    let last = follow(model, positions).ok()?.pop()?;
    let what = match model.violated(&last.state) {
        _ if last.step.is_fault() => What::Fault,
        _ if last.step.is_violation() => What::Assertion,
        Some(property) => What::Property(property),
        None => What::Deadlock,
    };
    let violation = Violation { what, trace: Trace { positions: positions.to_vec() } };
    let path = replay(model, &violation).ok()?;
    Some((violation, path))
}

fn read(options: &ReplayOptions) -> Result<Stored, Failure> {
    let refuse = |why: String| Failure::usage(format!("{}: {why}", options.trace.display()));
    let size = std::fs::metadata(&options.trace).map_err(|error| refuse(format!("cannot be read: {error}")))?.len();
    if size > LARGEST {
        return Err(refuse("too large to be a trace".into()));
    }
    let text = std::fs::read(&options.trace).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    let text = String::from_utf8_lossy(&text);
    if trail::is_trail(&options.trace) {
        let trail = Trail::parse(&text).ok_or_else(|| refuse("not a trail".into()))?;
        return Ok(Stored::Trail(trail));
    }
    TraceReport::parse(&text).map(|trace| Stored::Trace(Box::new(trace))).map_err(refuse)
}

fn explain(error: ReplayError) -> String {
    match error {
        ReplayError::NoSuchStep { at: 0 } => "the model has no such initial state".into(),
        ReplayError::NoSuchStep { at } => format!("the model cannot take step {at} of the trace"),
        ReplayError::NotWrong => "the model takes these steps, but the end is not wrong as the trace claims".into(),
    }
}
