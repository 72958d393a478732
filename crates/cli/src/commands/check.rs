//! `plimsoll check`: load, plan, search, replay, report.

use crate::checkpoint::Checkpoint;
use crate::cover::{Coverage, cover};
use crate::dispatch::{Searched, search, search_with};
use crate::estimate;
use crate::executor::Executor;
use crate::failure::{Failure, exit};
use crate::health::Health;
use crate::hunt::{Hunt, guide};
use crate::loading::Loading;
use crate::lookout::Lookout;
use crate::masked::Masked;
use crate::options::{CheckOptions, DeadlockName, Order, SwitchName, SymmetryName};
use crate::output::{Output, is_standard, say, try_out, write_to};
use crate::plan::{Plan, Wishes};
use crate::progress::Progress;
use crate::report::choice::ChoiceFacts;
use crate::report::climbs::ClimbFacts;
use crate::report::collections::CollectionFacts;
use crate::report::counts::{Costs, Counts, Times};
use crate::report::layers::LayersFacts;
use crate::report::need::Need;
use crate::report::shortage::Shortage;
use crate::report::trace::Origin;
use crate::report::unreached::Listing;
use crate::report::{self, Judgement, LedgerRow, ModelFacts, Other, Report, TraceReport};
use crate::room::{self, Missing};
use crate::size::Size;
use crate::subject::{self, Content, Subject, stem};
use crate::view::View;
use crate::{apart, chart, interrupt, loading, machine, progress, trail, training};
use plimsoll_ir::{Property, Symmetry, System};
use plimsoll_lang::Language;
use plimsoll_lang::promela::Promela;
use plimsoll_model::Model;
use plimsoll_search::{Ask, Control, Limits, PathRoom, Trace, Verdict, Violation, What};
use plimsoll_store::{Budget, Codec};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// What a search may be given that needs more, whatever else runs just now.
const MOST_OF_THE_MEMORY: Size = Size::Percent(75.0);

/// Runs the command, from the beginning or from a checkpoint.
pub fn run(options: &CheckOptions, resumed: Option<Checkpoint>, out: &mut Output) -> Result<u8, Failure> {
    let files = [&options.trace, &options.draw.msc];
    files.into_iter().flatten().try_for_each(|path| try_out(path))?;
    let [trace, chart] = files.map(|path| path.as_deref().is_some_and(is_standard));
    if (trace || chart) && options.output.json || trace && chart {
        return Err(Failure::usage("standard output can be had by one only of --json, --trace - and --msc -"));
    }
    if trace {
        out.make_way();
    }
    refuse_contradictions(options)?;
    let checkpoint = match resumed {
        Some(checkpoint) => Some(checkpoint),
        None => Checkpoint::begin(options)?,
    };
    let checkpoint = checkpoint.map(RefCell::new);
    let Checked { report, promela } = check(options, checkpoint.as_ref())?;
    if options.output.json {
        let _ = report::write_json(&report, out);
    } else {
        let style = report::text::Style {
            color: options.output.color.wanted(&io::stdout()),
            quiet: options.output.quiet,
            full_trace: options.output.full_trace,
        };
        report::text::report(&report, style, out);
    }
    // The verdict is out, whatever becomes of the files.
    if let (Some(path), Some(trace)) = (&options.trace, &report.trace) {
        match trail::is_trail(path) {
            true => trail::write(path, trace, promela.as_deref(), out)?,
            false => write_to(path, out, |file| report::write_json(trace, file))?,
        }
    }
    if let (Some(path), Some(trace)) = (&options.draw.msc, &report.trace) {
        chart::write(path, trace, out)?;
    }
    if let Some(checkpoint) = checkpoint.filter(|_| report.checkpoint.is_none()) {
        checkpoint.into_inner().remove();
    }
    Ok(report.judgement.exit_code)
}

/// Options that exclude each other, or name what is not there.
fn refuse_contradictions(options: &CheckOptions) -> Result<(), Failure> {
    if let (Some("full"), Some(cache)) = (options.search.strategy.as_deref().map(str::trim), &options.search.cache) {
        return Err(Failure::usage(format!("--strategy full holds every state: it cannot go with --cache {cache}")));
    }
    match options.budget.spill_dir.iter().find(|folder| !folder.is_dir()) {
        Some(folder) => Err(Failure::usage(format!("--spill-dir: {} is not a folder", folder.display()))),
        None => Ok(()),
    }
}

/// What was asked for and makes no difference.
fn unused(options: &CheckOptions, plan: &Plan) -> impl Iterator<Item = String> {
    let forgets = plan.climbs || !plan.strategy_parts.row.holds_all();
    let unused = [
        (
            options.search.workers.is_some_and(|workers| workers > 1) && plan.workers == 1 && plan.search != Order::Bfs,
            "--workers is for breadth-first searches and random walks: one worker searched",
        ),
        (
            options.search.seed.is_some() && !plan.strategy_parts.hunt.is_some_and(Hunt::is_shared),
            "--seed does nothing where nothing is drawn",
        ),
        (
            options.look_for.cost.is_some() && plan.guide.is_none(),
            "--cost is for guided searches: --strategy best, astar, ida, sma or beam",
        ),
        (!options.budget.spill_dir.is_empty() && plan.disk_bytes == 0, "--spill-dir does nothing without --disk"),
        (
            options.budget.step_log.is_some() && (plan.disk_bytes == 0 || plan.search != Order::Bfs),
            "--step-log is for breadth-first searches with --disk",
        ),
        (
            options.search.redundancy_limit.is_some() && !forgets,
            "--redundancy-limit does nothing where no state is forgotten",
        ),
        (
            options.output.full_trace && options.output.json,
            "--full-trace does nothing with --json: the trace is complete anyway",
        ),
    ];
    unused.into_iter().filter(|(given, _)| *given).map(|(_, note)| note.into())
}

/// A digest that is no shorter than what it is made of loses for nothing.
fn exact_instead(plan: &Plan, model: &dyn Model) -> Option<String> {
    let Codec::Digest(bits) = plan.codec else { return None };
    let used: u32 = model.used_bits().iter().map(|word| word.count_ones()).sum();
    (used <= bits).then(|| format!("states use {used} bits: --store packed takes no more memory and is exact"))
}

/// A report, and the front end of a Promela model, which knows the numbers that SPIN gives statements.
struct Checked {
    report: Report,
    promela: Option<Box<Promela>>,
}

/// Checks a model and says everything about it.
fn check(options: &CheckOptions, checkpoint: Option<&RefCell<Checkpoint>>) -> Result<Checked, Failure> {
    let start = Instant::now();
    let loading = Loading::begin(options, start);
    let styled = options.output.color.wanted(&io::stderr());
    let talks = !options.output.quiet;
    progress::stage(talks, "reading the model");
    let subject = subject::load(&options.model, &options.look_for, styled);
    let subject = subject.and_then(|subject| room::walk(subject, &options.look_for));
    progress::end_stage(talks);
    let mut subject = subject?;
    let requests = checkpoint.map(|checkpoint| checkpoint.borrow().requests().to_vec());
    for request in requests.into_iter().flatten() {
        let larger = subject.promela.take().map(|promela| subject::larger(&promela, &request, &options.look_for));
        let lost = || Failure::usage("the model has no room for what its checkpoint says it needs: check it anew");
        subject = Subject { warnings: subject.warnings, ..larger.transpose()?.flatten().ok_or_else(lost)? };
    }
    if !options.output.quiet {
        subject.warnings.iter().for_each(|warning| say(warning));
    }
    let ask = ask(options);
    let mut notes = Vec::new();
    loop {
        let promela = subject.promela.take();
        let run = Run { options, start, promela: promela.as_deref(), checkpoint };
        match run.attempt(subject, ask, &mut notes) {
            Ok(report) => return Ok(Checked { report, promela }),
            Err(Stop::Larger(larger)) => subject = *larger,
            Err(Stop::Failed(failure)) => return Err(failure),
        }
        loading.go_on();
    }
}

/// One search, or several where a Promela model turns out to need more processes than it was prepared for.
struct Run<'a> {
    options: &'a CheckOptions,
    start: Instant,
    promela: Option<&'a Promela>,
    checkpoint: Option<&'a RefCell<Checkpoint>>,
}

/// Why there is no report.
enum Stop {
    Failed(Failure),
    /// The model needs room for more processes: this is the same with more.
    Larger(Box<Subject>),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl Run<'_> {
    fn attempt(&self, subject: Subject, ask: Ask, notes: &mut Vec<String>) -> Result<Report, Stop> {
        let Run { options, start, .. } = self;
        let Subject { language, content, symmetry, covers, cost, .. } = subject;
        notes.clear();
        let listing = listing(options, &content)?;
        // A trail for SPIN, and lists of statements that fail or were never taken, tell every statement by itself.
        let is_trail = options.trace.as_deref().is_some_and(trail::is_trail);
        let one_by_one = options.unreached || options.look_for.all_violations || is_trail;
        let merge = subject::merges(&options.model, language == Language::Promela.name()) && !one_by_one;
        progress::stage(!options.output.quiet, "simplifying and compiling the model");
        let original = content.system().cloned();
        let executor = executor(options, content.prepared(merge, symmetry.as_ref()), symmetry.as_ref(), notes);
        progress::end_stage(!options.output.quiet);
        loading::end();
        let guide = hunted(options).map(|hunt| guide(hunt, executor.system(), cost.as_ref()));
        let (guide, about_guide) = guide.unwrap_or_default();
        let plan = training::plan(wishes(options), executor.model(), self.deadline());
        let mut plan = plan.map_err(Failure::from)?;
        plan.guide = guide.map(Arc::new);
        notes.extend(about_guide.map(String::from));
        notes.extend(exact_instead(&plan, executor.model()));
        self.checkpoint.map_or(Ok(()), |checkpoint| checkpoint.borrow_mut().attach(&executor, &plan))?;
        let (loaded, loaded_cpu) = (start.elapsed(), machine::processor_seconds());
        let mut health = Health::new(&plan.strategy_parts);
        let covered = listing.as_ref().and_then(|_| executor.covered());
        let model: Option<&dyn Model> = covered.as_ref().map(|covered| covered as &dyn Model);
        let mut searched = self.search(&executor, model, &plan, ask, &mut health)?;
        let others = self.others((&executor, symmetry.as_ref()), &plan, ask, &mut searched, notes)?;
        let unreached = listing.zip(covered).zip(executor.system());
        let unreached = unreached.map(|((listing, covered), system)| listing.without(system, &covered));
        let (searched_at, searched_cpu) = (start.elapsed(), machine::processor_seconds());
        let (model, executor_name) = (facts(options, language, &executor), executor.name());
        let (trace, executor, original) = match &mut searched.outcome.verdict {
            Verdict::Violated(violation) => {
                // A path can be long: nobody needs it twice.
                let positions = std::mem::take(&mut violation.trace.positions);
                let violation = Violation { what: violation.what, trace: Trace { positions } };
                let symmetry = (options.model.symmetry, symmetry.as_ref());
                (Some(apart::trace(executor, symmetry, original, violation, origin(options, merge)?)?), None, None)
            }
            _ => (None, Some(executor), original),
        };
        let executor =
            trace.as_ref().map_or(executor.as_ref(), |trace| Some(trace.executor())).expect("one of the two");
        let view = View::new(executor);
        let by_levels = plan.strategy_parts.row.has_levels() && plan.keep.is_none();
        let judge = |verdict: &Verdict, shown: Option<&TraceReport>| {
            Judgement::of(verdict, &searched.outcome.stats, by_levels, &ask, &view, shown)
        };
        let mut judgement = judge(&searched.outcome.verdict, trace.as_ref());
        let others = trace.as_ref().map_or(Ok(Vec::new()), |first| {
            let described = others.into_iter().map(|violation| {
                let shown = apart::beside(first, violation.clone())?;
                let Judgement { verdict, headline, reason, .. } = judge(&Verdict::Violated(violation), Some(&shown));
                Ok(Other { verdict, headline, reason, trace: shown })
            });
            described.collect::<Result<Vec<Other>, Failure>>()
        })?;
        match original {
            _ if covers.is_empty() => {}
            Some(system) if searched.outcome.verdict == Verdict::Holds => {
                let coverage = self.cover(&system, &covers, symmetry.as_ref())?;
                notes.extend(coverage.note());
                let undecided = coverage.undecided.as_ref();
                let undecided = undecided.map(|why| judge(why, None));
                judgement = undecided.or_else(|| coverage.judgement()).unwrap_or(judgement);
            }
            _ => notes.push("`cover` is checked only where every state was visited and nothing is wrong".into()),
        }
        let times = Times {
            load: loaded.as_secs_f64(),
            search: (searched_at - loaded).as_secs_f64(),
            search_cpu: searched_cpu - loaded_cpu,
            total: start.elapsed().as_secs_f64(),
        };
        let Searched { outcome, layers, climbs, choice, collections, ledger, disk_ledger } = searched;
        let ledger = report::ledger_rows(ledger, "memory").chain(report::ledger_rows(disk_ledger, "disk"));
        let ledger: Vec<LedgerRow> = ledger.collect();
        let executor = executor_name;
        let (stats, complete, mut notes) = (outcome.stats, outcome.complete, std::mem::take(notes));
        notes.extend(health.notes(&stats));
        notes.extend(unused(options, &plan));
        let layers = layers.map(|layers| LayersFacts::new(layers, &stats, times.search));
        let instead = layers.as_ref().and_then(|layers| layers.instead_of_tree);
        let choice = choice.map(|choice| ChoiceFacts::new(choice, instead));
        let climbs: Vec<ClimbFacts> = climbs.iter().map(|climb| ClimbFacts::new(climb, layers.as_ref())).collect();
        let shortage = match &outcome.verdict {
            Verdict::Unknown(why) => {
                let available_bytes = machine::memory_budget(Some(MOST_OF_THE_MEMORY)).bytes;
                let need = Need::of(health.expected(), &stats, &plan, &climbs, &ledger);
                Some(Shortage::new(why, &stats, &plan, &ledger, need, available_bytes))
            }
            _ => None,
        };
        notes.extend(shortage.iter().flat_map(Shortage::notes));
        if merge {
            notes.push("local steps were merged; --merge off counts them one by one".into());
        }
        let is_open = !complete && [exit::UNKNOWN, exit::HOLDS_TO_DEPTH].contains(&judgement.exit_code);
        let mut report = Report {
            judgement,
            complete,
            counts: Counts::of(&stats),
            coverage: estimate::Coverage::of(&stats, is_open),
            times,
            costs: Costs::of(&stats, times, &ledger, plan.memory_bytes),
            layers,
            climbs,
            choice,
            collections: CollectionFacts::of(collections),
            shortage,
            ledger,
            executor,
            model,
            plan,
            trace,
            others,
            unreached,
            notes,
            checkpoint: None,
        };
        self.report_checkpoint(&mut report);
        Ok(report)
    }

    /// Says what stays of the checkpoint: nothing if there is a verdict, and all of it that was asked for.
    fn report_checkpoint(&self, report: &mut Report) {
        let Some(checkpoint) = self.checkpoint else { return };
        let decided = ![exit::UNKNOWN, exit::HOLDS_TO_DEPTH].contains(&report.judgement.exit_code);
        let over = decided && (report.complete || !self.options.look_for.keep_going);
        let (facts, notes) = checkpoint.borrow().facts(!over || self.options.checkpoint.keep_checkpoint);
        report.notes.extend(notes);
        report.checkpoint = facts;
        let before = checkpoint.borrow().resumed_states().unwrap_or(0);
        report.costs.states_per_second *= 1.0 - before as f64 / report.counts.states.max(1) as f64;
    }

    fn cover(&self, system: &System, covers: &[Property], symmetry: Option<&Symmetry>) -> Result<Coverage, Failure> {
        let properties_only = Ask { deadlocks: false, errors: false, properties: true, keep_going: false };
        cover(system, covers, |system| {
            let content = Content::System(system).optimised(symmetry);
            let executor = executor(self.options, content, symmetry, &mut Vec::new());
            let plan = training::plan(wishes(self.options), executor.model(), self.deadline())?;
            let mut health = Health::new(&plan.strategy_parts);
            let searched = self.search_by(&plan, properties_only, &mut health, None, |budget, control| {
                search_with(&executor, &plan, budget, control, None)
            });
            Ok(searched.outcome.verdict)
        })
    }

    /// What else is wrong beside what `searched` found, if that was asked: it is masked, and the search goes on. Counts are
    /// then those of the last search, which found nothing more.
    fn others(
        &self,
        (executor, symmetry): (&Executor, Option<&Symmetry>),
        plan: &Plan,
        mut ask: Ask,
        searched: &mut Searched,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Violation>, Stop> {
        let mut found = Vec::new();
        let (Verdict::Violated(first), true, Some(mut masked)) =
            (&searched.outcome.verdict, self.options.look_for.all_violations, Masked::new(executor))
        else {
            return Ok(found);
        };
        let mut last = first.clone();
        while masked.mask(&last, &mut ask) {
            let mut health = Health::new(&plan.strategy_parts);
            let next = self.search(executor, Some(&masked), plan, ask, &mut health)?;
            (searched.outcome.stats, searched.outcome.complete) = (next.outcome.stats, next.outcome.complete);
            match next.outcome.verdict {
                Verdict::Violated(violation) => {
                    let symmetry = (self.options.model.symmetry, symmetry);
                    let of_states = || apart::of_states(executor, symmetry, violation.clone());
                    found.push(if executor.has_orbits() { of_states()? } else { violation.clone() });
                    last = violation;
                }
                Verdict::Holds => break,
                Verdict::HoldsUnless(_) => {
                    notes.push("the last search may have missed states, so more may be wrong than is shown".into());
                    break;
                }
                Verdict::HoldsToDepth(_) | Verdict::Unknown(_) => {
                    notes.push("the last search did not end, so more may be wrong than is shown".into());
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Searches, or finds that the model needs room for more processes. The model is that of the executor, or one around it.
    fn search(
        &self,
        executor: &Executor,
        model: Option<&dyn Model>,
        plan: &Plan,
        ask: Ask,
        health: &mut Health,
    ) -> Result<Searched, Stop> {
        // Where the search goes on after errors, a need for room must still end it, or counts are wrong.
        let goes_on = !ask.errors || ask.keep_going;
        let watched = self.promela.filter(|_| goes_on);
        let mut missing = watched.and_then(|promela| Missing::new(executor, promela, interrupt::flag()));
        let mut checkpoint = self.checkpoint.map(RefCell::borrow_mut);
        let kept = checkpoint.as_deref_mut();
        let searched = self.search_by(plan, ask, health, missing.as_mut(), |budget, control| match model {
            Some(model) => search(model, plan, budget, control, kept),
            None => search_with(executor, plan, budget, control, kept),
        });
        if let Some(refusal) = checkpoint.as_ref().and_then(|checkpoint| checkpoint.refusal()) {
            return Err(refusal.into());
        }
        let request = missing.and_then(Missing::request).or_else(|| self.request(&searched.outcome.verdict, executor));
        if let (Some(promela), Some(request)) = (self.promela, request)
            && let Some(larger) = subject::larger(promela, &request, &self.options.look_for)?
        {
            if let Some(checkpoint) = &mut checkpoint {
                checkpoint.begin_again(&request);
            }
            return Err(Stop::Larger(Box::new(larger)));
        }
        Ok(searched)
    }

    fn deadline(&self) -> Option<Instant> {
        self.options.budget.time.and_then(|time| self.start.checked_add(time))
    }

    fn search_by(
        &self,
        plan: &Plan,
        ask: Ask,
        health: &mut Health,
        missing: Option<&mut Missing>,
        run: impl FnOnce(&Budget, &mut Control) -> Searched,
    ) -> Searched {
        let options = self.options;
        let deadline = self.deadline();
        let limits = Limits {
            deadline,
            // A limit that somebody chose is enough for a search that need not end.
            states: options.budget.max_states.or(plan.most_visits.filter(|_| deadline.is_none())),
            depth: options.budget.max_depth,
            redundancy_percent: plan.redundancy_percent,
        };
        let budget = Budget::with_huge_pages(plan.pool_bytes, options.search.huge_pages == SwitchName::On);
        let talks = !options.output.quiet;
        let progress = Progress::new(talks, budget.clone(), options.budget.time);
        let mut lookout = Lookout { progress, health: Some(health), warns: talks, missing };
        let room = PathRoom::new(budget.grant("trace", plan.pool_bytes));
        let mut control = Control { ask, limits, stop: interrupt::flag(), room, watch: &mut lookout };
        let searched = interrupt::while_searching(|| run(&budget, &mut control));
        drop(control);
        interrupt::go_on();
        lookout.progress.clear();
        searched
    }

    /// What went wrong, if a step of a Promela model did: perhaps a process had no place to live.
    fn request(&self, verdict: &Verdict, executor: &Executor) -> Option<String> {
        match verdict {
            Verdict::Violated(violation) if violation.what == What::Fault && self.promela.is_some() => {
                executor.problem_at_end(&violation.trace.positions)
            }
            _ => None,
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
    let asked = (&options.search, options.budget.memory, options.model.symmetry);
    Executor::as_asked(asked, content, symmetry, notes)
}

/// What is hunted for, if that is the strategy.
fn hunted(options: &CheckOptions) -> Option<Hunt> {
    Hunt::parse(options.search.strategy.as_deref()?.trim())
}

fn wishes(options: &CheckOptions) -> Wishes {
    Wishes {
        memory: options.budget.memory,
        disk_bytes: options.budget.disk.unwrap_or(0),
        step_log_bytes: options.budget.step_log,
        spill_dirs: options.budget.spill_dir.clone(),
        order: options.search.order,
        store: options.search.store,
        trained: None,
        strategy: options.search.strategy.clone(),
        cache: options.search.cache.clone(),
        cache_size: options.search.cache_size,
        redundancy_percent: options.search.redundancy_limit,
        checkpoint: options.checkpoint.checkpoint.is_some(),
        seed: options.search.seed.unwrap_or(0),
        // What is expanded and then not entered, because the search ends, must not count as taken.
        workers: if options.unreached { Some(1) } else { options.search.workers.map(|workers| workers as usize) },
        numbers: false,
        lossy: options.search.lossy,
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
        keep_going: look_for.keep_going && !look_for.all_violations,
    }
}

/// What a trace must know to be followed again.
fn origin(options: &CheckOptions, merge: bool) -> Result<Origin, Failure> {
    let fingerprint = subject::fingerprint(&options.model.model)?;
    Ok(Origin { options: options.model.clone(), fingerprint, merge, look_for: options.look_for.clone() })
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
