//! `plimsoll check`: load, plan, search, replay, report.

use crate::dispatch::{Searched, search_with};
use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::{CheckOptions, ExecutorName, LookFor};
use crate::output::{Output, say};
use crate::plan::{Facts, Plan, Wishes};
use crate::progress::Progress;
use crate::report::trace::Origin;
use crate::report::{self, Judgement, ModelFacts, Parts, Report, Times, TraceReport};
use crate::subject::{self, Subject, stem};
use crate::view::View;
use crate::{interrupt, machine};
use plimsoll_ir::System;
use plimsoll_search::{Ask, Control, Limits, Stats, Verdict, replay};
use plimsoll_store::Budget;
use std::io;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &CheckOptions, out: &mut Output) -> Result<u8, Failure> {
    let report = check(options)?;
    if let (Some(path), Some(trace)) = (&options.trace, &report.trace) {
        std::fs::write(path, trace.to_json())
            .map_err(|error| Failure::usage(format!("{}: cannot be written: {error}", path.display())))?;
    }
    if options.output.json {
        out.print(&report.to_json());
    } else {
        let style = report::text::Style {
            color: options.output.color.wanted(&io::stdout()),
            quiet: options.output.quiet,
            full_trace: options.output.full_trace,
        };
        out.print(&report::text::report(&report, style));
    }
    Ok(report.exit_code)
}

/// Checks a model and says everything about it.
fn check(options: &CheckOptions) -> Result<Report, Failure> {
    let start = Instant::now();
    let styled = options.output.color.wanted(&io::stderr());
    let Subject { language, content, warnings } = subject::load(&options.model, &options.look_for, styled)?;
    if !options.output.quiet {
        warnings.iter().for_each(|warning| say(warning));
    }
    let mut notes = Vec::new();
    let content = content.optimised();
    let executor = match options.search.executor {
        ExecutorName::Interp => Executor::interpreted(content),
        ExecutorName::Jit => Executor::native(content, machine::memory_budget(options.budget.memory).bytes, &mut notes),
    };
    let plan = Plan::resolve(&wishes(options), &Facts::now(executor.model()))?;
    let loaded = start.elapsed();
    let ask = ask(&options.look_for);
    let deadline = options.budget.time.and_then(|time| start.checked_add(time));
    let limits = Limits {
        deadline,
        states: options.budget.max_states,
        depth: options.budget.max_depth,
        redundancy_percent: plan.redundancy_percent,
    };
    let budget = Budget::new(plan.pool_bytes);
    let mut progress = Progress::new(!options.output.quiet, budget.clone(), options.budget.time);
    let searched = {
        let mut watch = |stats: &Stats| progress.watch(stats);
        let mut control = Control { ask, limits, stop: interrupt::flag(), watch: &mut watch };
        interrupt::while_searching(|| search_with(&executor, &plan, &budget, &mut control))
    };
    progress.clear();
    let searched_at = start.elapsed();
    let view = View::new(&executor);
    let trace = replayed(&searched.outcome.verdict, &executor, &view, options)?;
    let problem = trace.as_ref().and_then(TraceReport::problem);
    let judgement = Judgement::of(&searched.outcome.verdict, &searched.outcome.stats, &ask, &view, problem);
    let times = Times {
        load: loaded.as_secs_f64(),
        search: (searched_at - loaded).as_secs_f64(),
        total: start.elapsed().as_secs_f64(),
    };
    let model = facts(options, language, &executor);
    let Searched { outcome, ledger, disk_ledger } = searched;
    let ledger = report::ledger_rows(ledger, "memory").chain(report::ledger_rows(disk_ledger, "disk")).collect();
    let executor = executor.name();
    let (stats, complete) = (outcome.stats, outcome.complete);
    notes.extend(report::health_notes(&stats));
    Ok(Report::new(Parts { judgement, stats, complete, times, ledger, executor, model, plan, trace, notes }))
}

fn wishes(options: &CheckOptions) -> Wishes {
    Wishes {
        memory: options.budget.memory,
        disk_bytes: options.budget.disk.unwrap_or(0),
        spill_dir: options.budget.spill_dir.clone(),
        order: options.search.order,
        store: options.search.store,
        strategy: options.search.strategy.clone(),
        cache: options.search.cache.clone(),
        cache_size: options.search.cache_size,
        redundancy_percent: options.search.redundancy_limit,
    }
}

/// Who searches for a state wants that state, not the first deadlock on the way.
fn ask(look_for: &LookFor) -> Ask {
    let everything = look_for.find.is_empty();
    Ask {
        deadlocks: everything && !look_for.no_deadlock,
        errors: everything && !look_for.no_errors,
        properties: true,
        keep_going: look_for.keep_going,
    }
}

/// A violation counts only after the interpreter went the same way.
fn replayed(
    verdict: &Verdict,
    executor: &Executor,
    view: &View,
    options: &CheckOptions,
) -> Result<Option<TraceReport>, Failure> {
    let Verdict::Violated(violation) = verdict else { return Ok(None) };
    let path = replay(executor.reference(), violation)
        .map_err(|error| Failure::internal(format!("the violation found cannot be replayed ({error:?})")))?;
    let origin = Origin {
        model: options.model.model.display().to_string(),
        overflow: options.model.overflow,
        look_for: &options.look_for,
    };
    Ok(Some(TraceReport::new(violation, &path, view, origin)))
}

fn facts(options: &CheckOptions, language: &'static str, executor: &Executor) -> ModelFacts {
    let system = executor.system();
    let count = |of: fn(&System) -> usize| system.map_or(0, of);
    ModelFacts {
        name: system.map_or_else(|| stem(&options.model.model), |system| system.name.clone()),
        file: options.model.model.display().to_string(),
        language,
        processes: count(|system| system.processes.len()),
        commands: count(|system| system.commands.len()),
        properties: count(|system| system.properties.len()),
        state_bytes: executor.model().width() * 4,
    }
}
