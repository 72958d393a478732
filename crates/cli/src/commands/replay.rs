//! `plimsoll replay`: follow a stored trace on the interpreter and verify its end.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::{LookFor, ReplayOptions};
use crate::output::{Output, is_standard, say, try_out};
use crate::report::trace::{Origin, StoredTrace};
use crate::report::{TraceReport, steps, text, write_json};
use crate::subject::Subject;
use crate::trail::{Lost, Trail, Trails};
use crate::view::View;
use crate::{chart, subject, trail};
use plimsoll_lang::promela::Promela;
use plimsoll_model::Patience;
use plimsoll_search::{ReplayError, Trace, Violation, Walk, What};
use std::fs::File;
use std::io::{self, BufReader};
use std::rc::Rc;

/// What is to be followed.
enum Stored {
    Trace(Box<StoredTrace>),
    /// SPIN's; it does not say what is wrong at its end.
    Trail(Trail),
}

impl Stored {
    /// Are its steps merged ones? Trails count every statement.
    fn merge(&self) -> bool {
        matches!(self, Stored::Trace(trace) if trace.merge)
    }
}

/// Runs the command. The trace is verified if it returns.
pub fn run(options: &ReplayOptions, out: &mut Output) -> Result<u8, Failure> {
    if let Some(path) = &options.draw.msc {
        try_out(path)?;
        if options.output.json && is_standard(path) {
            return Err(Failure::usage("standard output can be had by one only of --json and --msc -"));
        }
    }
    if is_standard(&options.trace) && is_standard(&options.model.model) {
        return Err(Failure::usage("only one of model and trace can be on standard input"));
    }
    let stored = read(options)?;
    let (look_for, model) = match &stored {
        Stored::Trace(stored) => {
            let (find, invariant) = (stored.find.clone(), stored.invariant.clone());
            (LookFor { find, invariant, ..LookFor::default() }, stored.options(&options.model))
        }
        Stored::Trail(_) => (LookFor::default(), options.model.clone()),
    };
    let mut subject = subject::load(&model, &look_for, options.output.color.wanted(&io::stderr()))?;
    let fingerprint = subject::fingerprint(&model.model)?;
    let changed = match &stored {
        Stored::Trace(stored) => !stored.fingerprint.is_empty() && stored.fingerprint != fingerprint,
        Stored::Trail(_) => false,
    };
    if changed {
        say(&format!("note: {} has changed since the trace was found", model.model.display()));
    }
    let origin = Origin { options: model, fingerprint, merge: stored.merge(), look_for };
    let trace = loop {
        match attempt(subject, &stored, &origin, options)? {
            Attempt::Done(trace) => break *trace,
            Attempt::Refine(larger) => subject = *larger,
        }
    };
    if options.output.json {
        let _ = write_json(&trace, out);
    } else {
        let style = text::Style {
            color: options.output.color.wanted(&io::stdout()),
            quiet: false,
            full_trace: options.output.full_trace,
        };
        if !options.output.quiet {
            steps::trace(&trace, style, out);
        }
        out.print(&format!("verified: the model takes these steps, and the end is as claimed ({})\n", trace.end()));
    }
    if let Some(path) = &options.draw.msc {
        chart::write(path, &trace, out)?;
    }
    Ok(0)
}

enum Attempt {
    Done(Box<TraceReport>),
    /// The trace may be of a Promela model that was prepared for more processes.
    Refine(Box<Subject>),
}

fn attempt(
    mut subject: Subject,
    stored: &Stored,
    origin: &Origin,
    options: &ReplayOptions,
) -> Result<Attempt, Failure> {
    let refuse = |why: String| Failure::usage(format!("{}: {why}", options.trace.display()));
    let promela = subject.promela.take();
    let content =
        if stored.merge() { subject.content.prepared(true, subject.symmetry.as_ref()) } else { subject.content };
    let executor = Rc::new(Executor::interpreted(content, Patience::default()));
    let refined = |positions: &[u32]| match &promela {
        Some(promela) => subject::refined(promela, &executor, positions, &origin.look_for),
        None => Ok(None),
    };
    let violation = match stored {
        Stored::Trace(stored) => stored.violation(&View::new(&executor)).map_err(refuse)?,
        Stored::Trail(trail) => match follow_trail(trail, &executor, promela.as_deref()).map_err(refuse)? {
            Ok(positions) => {
                // A place that is missing is no error of the model.
                if let Some(larger) = refined(&positions)? {
                    return Ok(Attempt::Refine(Box::new(larger)));
                }
                let nothing = || refuse("the model takes these steps, but nothing is wrong at their end".into());
                wrong_end(&executor, &positions).ok_or_else(nothing)?
            }
            Err(Lost { lines, fault }) => {
                let larger = refined(&fault.unwrap_or_default())?;
                let larger =
                    larger.ok_or_else(|| refuse(format!("the model cannot take step {} of the trail", lines + 1)))?;
                return Ok(Attempt::Refine(Box::new(larger)));
            }
        },
    };
    match TraceReport::new(executor.clone(), violation.clone(), origin.clone()) {
        Ok(trace) => Ok(Attempt::Done(Box::new(trace))),
        Err(error) => {
            let positions = &violation.trace.positions;
            let followed = if let ReplayError::NoSuchStep { at } = error { &positions[..at] } else { positions };
            let larger = refined(followed)?.ok_or_else(|| refuse(explain(error)))?;
            Ok(Attempt::Refine(Box::new(larger)))
        }
    }
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

/// What is wrong at the end of a path.
fn wrong_end(executor: &Executor, positions: &[u32]) -> Option<Violation> {
    let model = executor.reference();
    let mut walk = Walk::new(model);
    positions.iter().try_for_each(|&position| walk.take(position).map(|_| ())).ok()?;
    let last = walk.last()?;
    let what = match model.violated(walk.state()) {
        _ if last.is_fault() => What::Fault,
        _ if last.is_violation() => What::Assertion,
        Some(property) => What::Property(property),
        None => What::Deadlock,
    };
    walk.is_wrong(what).then(|| Violation { what, trace: Trace { positions: positions.to_vec() } })
}

fn read(options: &ReplayOptions) -> Result<Stored, Failure> {
    let refuse = |why: String| Failure::usage(format!("{}: {why}", options.trace.display()));
    if trail::is_trail(&options.trace) {
        let text = std::fs::read(&options.trace).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let trail = Trail::parse(&String::from_utf8_lossy(&text)).ok_or_else(|| refuse("not a trail".into()))?;
        return Ok(Stored::Trail(trail));
    }
    if is_standard(&options.trace) {
        let bytes = subject::standard_input()?;
        return StoredTrace::read(|| Ok(bytes)).map(|trace| Stored::Trace(Box::new(trace))).map_err(refuse);
    }
    let open = || File::open(&options.trace).map(BufReader::new).map_err(|error| format!("cannot be read: {error}"));
    StoredTrace::read(open).map(|trace| Stored::Trace(Box::new(trace))).map_err(refuse)
}

fn explain(error: ReplayError) -> String {
    match error {
        ReplayError::NoSuchStep { at: 0 } => "the model has no such initial state".into(),
        ReplayError::NoSuchStep { at } => format!("the model cannot take step {at} of the trace"),
        ReplayError::NotWrong => "the model takes these steps, but the end is not wrong as the trace claims".into(),
    }
}
