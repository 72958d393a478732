//! `plimsoll check`: load, plan, search, replay, report.

use crate::cover::{Coverage, cover};
use crate::dispatch::{Searched, search, search_with};
use crate::executor::Executor;
use crate::failure::Failure;
use crate::health::Health;
use crate::loading::Loading;
use crate::options::{CheckOptions, DeadlockName, ExecutorName, SymmetryName};
use crate::output::{Output, say};
use crate::plan::{Facts, Plan, Wishes};
use crate::progress::Progress;
use crate::report::trace::Origin;
use crate::report::unreached::Listing;
use crate::report::{self, Judgement, ModelFacts, Parts, Report, Times, TraceReport};
use crate::room::{self, Watched};
use crate::subject::{self, Content, Subject, stem};
use crate::view::View;
use crate::{chart, interrupt, loading, machine, trail};
use plimsoll_ir::{Property, Symmetry, System};
use plimsoll_lang::Language;
use plimsoll_lang::promela::Promela;
use plimsoll_model::symmetry::Precision;
use plimsoll_model::{Covered, Model};
use plimsoll_search::{Ask, Control, Limits, ReplayError, Stats, Trace, Verdict, Violation, What, replay};
use plimsoll_store::Budget;
use std::io;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &CheckOptions, out: &mut Output) -> Result<u8, Failure> {
    let report = check(options)?;
    if let (Some(path), Some(trace)) = (&options.trace, &report.trace)
        && !trail::is_trail(path)
    {
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
    if let (Some(path), Some(trace)) = (&options.draw.msc, &report.trace) {
        chart::write(path, trace, out)?;
    }
    Ok(report.exit_code)
}

/// Checks a model and says everything about it.
fn check(options: &CheckOptions) -> Result<Report, Failure> {
    let start = Instant::now();
    let loading = Loading::begin(options, start);
    let styled = options.output.color.wanted(&io::stderr());
    let subject = subject::load(&options.model, &options.look_for, styled)?;
    let mut subject = room::walk(subject, &options.look_for)?;
    if !options.output.quiet {
        subject.warnings.iter().for_each(|warning| say(warning));
    }
    let ask = ask(options);
    let mut notes = Vec::new();
    loop {
        let promela = subject.promela.take();
        let run = Run { options, start, promela: promela.as_deref() };
        match run.attempt(subject, ask, &mut notes)? {
            Attempt::Done(report) => return Ok(*report),
            Attempt::Refine(larger) => subject = *larger,
        }
        loading.go_on();
    }
}

/// One search, or several where a Promela model turns out to need more processes than it was prepared for.
struct Run<'a> {
    options: &'a CheckOptions,
    start: Instant,
    promela: Option<&'a Promela>,
}

enum Attempt {
    Done(Box<Report>),
    Refine(Box<Subject>),
}

impl Run<'_> {
    fn attempt(&self, subject: Subject, ask: Ask, notes: &mut Vec<String>) -> Result<Attempt, Failure> {
        let Run { options, start, .. } = self;
        let Subject { language, content, symmetry, covers, .. } = subject;
        notes.clear();
        let to_cover = match &content {
            Content::System(system) if !covers.is_empty() => Some(system.clone()),
            _ => None,
        };
        let listing = listing(options, &content)?;
        // A trail for SPIN, and a list of what was never taken, tell every statement by itself.
        let one_by_one = options.unreached || options.trace.as_deref().is_some_and(trail::is_trail);
        let merge = subject::merges(&options.model, language == Language::Promela.name()) && !one_by_one;
        let executor = executor(options, content.prepared(merge), symmetry.as_ref(), notes);
        loading::end();
        let plan = Plan::resolve(&wishes(options), &Facts::now(executor.model()))?;
        let (loaded, loaded_cpu) = (start.elapsed(), machine::processor_seconds());
        let mut health = Health::new(&plan.strategy_parts);
        let covered = listing.as_ref().and_then(|_| executor.covered());
        let searched = match self.search(&executor, covered.as_ref(), &plan, ask, &mut health)? {
            Ok(searched) => searched,
            Err(larger) => return Ok(Attempt::Refine(Box::new(larger))),
        };
        let unreached = listing.zip(covered).zip(executor.system());
        let unreached = unreached.map(|((listing, covered), system)| listing.without(system, &covered));
        let (searched_at, searched_cpu) = (start.elapsed(), machine::processor_seconds());
        let view = View::new(&executor);
        let trace = replayed(&searched.outcome.verdict, &executor, &view, options, merge)?;
        if let (Some(path), Some(trace)) = (&options.trace, &trace)
            && trail::is_trail(path)
        {
            trail::write(path, &executor, self.promela, &trace.positions)?;
        }
        let problem = trace.as_ref().and_then(TraceReport::problem);
        let mut judgement = Judgement::of(&searched.outcome.verdict, &searched.outcome.stats, &ask, &view, problem);
        match to_cover {
            Some(system) if searched.outcome.verdict == Verdict::Holds => {
                let coverage = self.cover(&system, &covers, symmetry.as_ref())?;
                notes.extend(coverage.note());
                let undecided = coverage.undecided.as_ref();
                let undecided = undecided.map(|why| Judgement::of(why, &searched.outcome.stats, &ask, &view, None));
                judgement = undecided.or_else(|| coverage.judgement()).unwrap_or(judgement);
            }
            Some(_) => notes.push("`cover` is checked only where every state was visited and nothing is wrong".into()),
            None => {}
        }
        let times = Times {
            load: loaded.as_secs_f64(),
            search: (searched_at - loaded).as_secs_f64(),
            search_cpu: searched_cpu - loaded_cpu,
            total: start.elapsed().as_secs_f64(),
        };
        let model = facts(options, language, &executor);
        let Searched { outcome, ledger, disk_ledger } = searched;
        let ledger = report::ledger_rows(ledger, "memory").chain(report::ledger_rows(disk_ledger, "disk")).collect();
        let executor = executor.name();
        let (stats, complete, mut notes) = (outcome.stats, outcome.complete, std::mem::take(notes));
        notes.extend(health.notes(&stats));
        if merge {
            notes.push("local steps were merged; --merge off counts them one by one".into());
        }
        let parts = Parts { judgement, stats, complete, times, ledger, executor, model, plan, trace, unreached, notes };
        Ok(Attempt::Done(Box::new(Report::new(parts))))
    }

    fn cover(&self, system: &System, covers: &[Property], symmetry: Option<&Symmetry>) -> Result<Coverage, Failure> {
        let properties_only = Ask { deadlocks: false, errors: false, properties: true, keep_going: false };
        cover(system, covers, |system| {
            let content = Content::System(system).optimised();
            let executor = executor(self.options, content, symmetry, &mut Vec::new());
            let plan = Plan::resolve(&wishes(self.options), &Facts::now(executor.model()))?;
            let mut health = Health::new(&plan.strategy_parts);
            let searched = self.search_by(&plan, properties_only, &mut health, |budget, control| {
                search_with(&executor, &plan, budget, control)
            });
            Ok(searched.outcome.verdict)
        })
    }

    /// Searches, or finds that the model needs room for more processes.
    fn search(
        &self,
        executor: &Executor,
        covered: Option<&Covered>,
        plan: &Plan,
        ask: Ask,
        health: &mut Health,
    ) -> Result<Result<Searched, Subject>, Failure> {
        let model: Option<&dyn Model> = covered.map(|covered| covered as &dyn Model);
        // Where the search goes on after errors, a need for room must still end it, or counts are wrong.
        let goes_on = !ask.errors || ask.keep_going;
        let watched = self.promela.filter(|_| goes_on).and_then(|promela| {
            let model = model.unwrap_or_else(|| executor.model());
            Some((Watched::new(model, executor, promela)?, promela))
        });
        let searched = match (&watched, model) {
            (Some((watched, _)), _) => {
                self.search_by(plan, ask, health, |budget, control| search(watched, plan, budget, control))
            }
            (None, Some(model)) => {
                self.search_by(plan, ask, health, |budget, control| search(model, plan, budget, control))
            }
            (None, None) => {
                self.search_by(plan, ask, health, |budget, control| search_with(executor, plan, budget, control))
            }
        };
        let request = watched.as_ref().and_then(|(watched, promela)| Some((watched.request()?, *promela)));
        let larger = match request {
            Some((request, promela)) => subject::larger(promela, request, &self.options.look_for)?,
            None => self.refined(&searched.outcome.verdict, executor)?,
        };
        Ok(larger.map_or(Ok(searched), Err))
    }

    fn search_by(
        &self,
        plan: &Plan,
        ask: Ask,
        health: &mut Health,
        run: impl FnOnce(&Budget, &mut Control) -> Searched,
    ) -> Searched {
        let options = self.options;
        let deadline = options.budget.time.and_then(|time| self.start.checked_add(time));
        let limits = Limits {
            deadline,
            states: options.budget.max_states,
            depth: options.budget.max_depth,
            redundancy_percent: plan.redundancy_percent,
        };
        let budget = Budget::new(plan.pool_bytes);
        let mut progress = Progress::new(!options.output.quiet, budget.clone(), options.budget.time);
        let searched = {
            let mut watch = |stats: &Stats| {
                progress.watch(stats);
                if let Some(warning) = health.watch(stats).filter(|_| !options.output.quiet) {
                    progress.clear();
                    say(&warning);
                }
            };
            let mut control = Control { ask, limits, stop: interrupt::flag(), watch: &mut watch };
            interrupt::while_searching(|| run(&budget, &mut control))
        };
        interrupt::go_on();
        progress.clear();
        searched
    }

    /// If the search ended because a process had no place to live, the model with room for it.
    fn refined(&self, verdict: &Verdict, executor: &Executor) -> Result<Option<Subject>, Failure> {
        match (self.promela, verdict) {
            (Some(promela), Verdict::Violated(violation)) if violation.what == What::Fault => {
                subject::refined(promela, executor, &violation.trace.positions, &self.options.look_for)
            }
            _ => Ok(None),
        }
    }
}

/// The statements of the model, if it was asked which are never taken.
fn listing(options: &CheckOptions, content: &Content) -> Result<Option<Listing>, Failure> {
    match content {
        _ if !options.unreached => Ok(None),
        Content::System(system) if options.model.symmetry == SymmetryName::Off => Ok(Some(Listing::of(system))),
        Content::System(_) => Err(Failure::usage("--unreached needs every state: it cannot go with --symmetry")),
        Content::Graph(_) => Err(Failure::usage("--unreached: a graph has no statements")),
    }
}

/// What computes successors, as asked for.
fn executor(
    options: &CheckOptions,
    content: Content,
    symmetry: Option<&Symmetry>,
    notes: &mut Vec<String>,
) -> Executor {
    let patience = interrupt::patience(options.budget.memory);
    let executor = match options.search.executor {
        ExecutorName::Interp => Executor::interpreted(content, patience),
        ExecutorName::Jit => {
            Executor::native(content, machine::memory_budget(options.budget.memory).bytes, patience, notes)
        }
    };
    let precision = match options.model.symmetry {
        SymmetryName::Off => return executor,
        SymmetryName::Heuristic => Precision::Heuristic,
        SymmetryName::Exact => Precision::Exact,
    };
    match symmetry {
        Some(symmetry) => executor.by_symmetry(symmetry, precision, notes),
        None => {
            notes.push("the language of the model declares no symmetry".into());
            executor
        }
    }
}

fn not_replayed(error: ReplayError) -> Failure {
    Failure::internal(format!("the violation found cannot be replayed ({error:?})"))
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
        // What is expanded and then not entered, because the search ends, must not count as taken.
        workers: if options.unreached { Some(1) } else { options.search.workers.map(|workers| workers as usize) },
    }
}

/// Who searches for a state wants that state, not the first deadlock on the way.
fn ask(options: &CheckOptions) -> Ask {
    let look_for = &options.look_for;
    let everything = look_for.find.is_empty();
    let deadlocks = !look_for.no_deadlock && options.model.deadlock != Some(DeadlockName::Off);
    Ask {
        deadlocks: everything && deadlocks,
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
    merge: bool,
) -> Result<Option<TraceReport>, Failure> {
    let Verdict::Violated(violation) = verdict else { return Ok(None) };
    let positions = executor.concrete(&violation.trace.positions);
    let positions = positions.ok_or_else(|| Failure::internal("a path of orbits has no path of states"))?;
    let violation = &Violation { what: violation.what, trace: Trace { positions } };
    let path = replay(executor.reference(), violation).map_err(not_replayed)?;
    let origin = Origin {
        model: options.model.model.display().to_string(),
        overflow: options.model.overflow,
        merge,
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
