//! `plimsoll generate`: write the reachable graph of a model to a file.
//!
//! The model is searched as by `check`, breadth first unless told otherwise, with any strategy that visits every transition, and a [`Recorder`] looks on.
//! If the search does not end there is no file.

use crate::dispatch::{Searched, observed, spill};
use crate::executor::Executor;
use crate::failure::{Failure, exit};
use crate::lookout::Lookout;
use crate::options::{GenerateOptions, LookFor, Order, SwitchName};
use crate::output::{Output, is_standard, say, try_out};
use crate::plan::{Facts, Plan, Wishes};
use crate::progress::{Progress, end_stage, stage};
use crate::recorder::{Recorded, Recorder, Written};
use crate::room::{self, Missing};
use crate::size::show_count;
use crate::subject::{self, Subject};
use crate::view::View;
use crate::{interrupt, loading};
use plimsoll_search::{Ask, Control, Limits, PathRoom, Stats, Verdict, Why};
use plimsoll_store::{Answers, Budget, Numbers, NumbersIn};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two lines about the graph that is written, and states between two looks at the clock.
const BETWEEN_LINES: Duration = Duration::from_millis(200);
const STATES_PER_LOOK: u64 = 1024;

/// Everything is visited, whatever is wrong with it.
const ASK: Ask = Ask { deadlocks: false, errors: false, properties: false, keep_going: true };

/// Runs the command.
pub fn run(options: &GenerateOptions, out: &mut Output) -> Result<u8, Failure> {
    let start = Instant::now();
    try_out(&options.output)?;
    if is_standard(&options.output) {
        out.make_way();
    }
    loading::within(options.budget.memory);
    let deadline = options.budget.time.and_then(|time| start.checked_add(time));
    if let Some(deadline) = deadline {
        interrupt::stop_at(deadline, || say("the time is up while the model is loaded"));
    }
    let look_for = LookFor::default();
    let subject = subject::load(&options.model, &look_for, false)?;
    let mut subject = room::walk(subject, &look_for)?;
    loop {
        match attempt(options, deadline, subject, out)? {
            Attempt::Done(code) => return Ok(code),
            Attempt::Larger(larger) => subject = *larger,
        }
        interrupt::load();
        loading::within(options.budget.memory);
    }
}

enum Attempt {
    Done(u8),
    /// A Promela model needs room for more processes.
    Larger(Box<Subject>),
}

fn attempt(
    options: &GenerateOptions,
    deadline: Option<Instant>,
    mut subject: Subject,
    out: &mut Output,
) -> Result<Attempt, Failure> {
    let promela = subject.promela.take();
    let Subject { content, symmetry, .. } = subject;
    let content = content.prepared(subject::merges(&options.model, false), symmetry.as_ref());
    let mut notes = Vec::new();
    let asked = (&options.search, options.budget.memory, options.model.symmetry);
    let executor = Executor::as_asked(asked, content, symmetry.as_ref(), &mut notes);
    notes.iter().for_each(|note| say(note));
    loading::end();
    let plan = Plan::resolve(&wishes(options), &Facts::now(executor.model()))?;
    if plan.strategy_parts.hunt.is_some() || !plan.codec.is_injective() {
        return Err(Failure::usage("a graph needs a strategy and a store that miss no state"));
    }
    if plan.strategy_parts.sleep.is_some() {
        return Err(Failure::usage("a graph has all steps, and with sleep sets some are not taken"));
    }
    let huge_pages = options.search.huge_pages == SwitchName::On;
    let (budget, disk) = (Budget::with_huge_pages(plan.pool_bytes, huge_pages), Budget::new(plan.disk_bytes));
    let numbers = match numbers(options, &plan, &executor, (&budget, &disk)) {
        Ok(numbers) => numbers,
        Err(why) => return Ok(Attempt::Done(given_up(options, &why, &Stats::default(), None, out))),
    };
    let labels = budget.grant("labels", plan.pool_bytes);
    let edges = (plan.disk_bytes > 0).then(|| disk.grant("edges", plan.disk_bytes));
    let (view, hidden) = (View::new(&executor), options.hide.hidden());
    let mut recorder = Recorder::new(&options.output, view, hidden, numbers, labels, edges)?;
    let mut missing = promela.as_deref().and_then(|promela| Missing::new(&executor, promela, interrupt::flag()));
    let searched = {
        let progress = Progress::new(true, budget.clone(), options.budget.time);
        let mut lookout = Lookout { progress, health: None, warns: false, missing: missing.as_mut() };
        let limits = Limits {
            deadline,
            states: options.budget.max_states,
            depth: options.budget.max_depth,
            redundancy_percent: plan.redundancy_percent,
        };
        let room = PathRoom::new(budget.grant("trace", plan.pool_bytes));
        let mut control = Control { ask: ASK, limits, stop: interrupt::flag(), room, watch: &mut lookout };
        let budgets = (&budget, &disk);
        let model = executor.model();
        let searched = interrupt::while_searching(|| observed(model, &plan, budgets, &mut control, &mut recorder));
        drop(control);
        lookout.progress.clear();
        searched
    };
    let request = missing.and_then(Missing::request).zip(promela.as_deref());
    if let Some((request, promela)) = request
        && let Some(larger) = subject::larger(promela, &request, &LookFor::default())?
    {
        interrupt::go_on();
        return Ok(Attempt::Larger(Box::new(larger)));
    }
    finish(options, &plan, (&budget, &disk), recorder.end()?, &searched, out).map(Attempt::Done)
}

fn wishes(options: &GenerateOptions) -> Wishes {
    Wishes {
        memory: options.budget.memory,
        disk_bytes: options.budget.disk.unwrap_or(0),
        spill_dirs: options.budget.spill_dir.clone(),
        order: Some(options.search.order.unwrap_or(Order::Bfs)),
        store: options.search.store,
        strategy: options.search.strategy.clone(),
        cache: options.search.cache.clone(),
        cache_size: options.search.cache_size,
        redundancy_percent: options.search.redundancy_limit,
        workers: options.search.workers.map(|workers| workers as usize),
        numbers: true,
        ..Wishes::default()
    }
}

/// What tells the numbers of states. A store that forgets remembers no more because of it.
fn numbers(
    options: &GenerateOptions,
    plan: &Plan,
    executor: &Executor,
    (budget, disk): (&Budget, &Budget),
) -> Result<Numbers, Why> {
    let keeping = match (plan.strategy_parts.row.holds_all(), options.exact) {
        // Depth first, states are asked for long before they have a number.
        (true, _) if plan.search != Order::Bfs => NumbersIn::Aside,
        (true, _) => NumbersIn::Table,
        (false, false) => NumbersIn::Aside,
        (false, true) => NumbersIn::AsideAll,
    };
    let spills = ["numbers", "questions"].map(|name| spill(name, plan, disk));
    let [Ok(states), Ok(questions)] = spills else {
        return Err(Why::Disk("no temporary file can be had".into()));
    };
    let grant = budget.grant("numbers", plan.numbers_bytes);
    let spills = states.zip(questions).map(|(states, questions)| [states, questions]);
    let used = executor.model().used_bits();
    Numbers::new(plan.codec, &used, keeping, grant, spills).map_err(|_| Why::Memory)
}

/// Makes a graph of what was recorded, if it is complete.
fn finish(
    options: &GenerateOptions,
    plan: &Plan,
    (budget, disk): (&Budget, &Budget),
    recorded: Recorded,
    searched: &Searched,
    out: &mut Output,
) -> Result<u8, Failure> {
    let outcome = &searched.outcome;
    if recorded.starts > 1 {
        return Err(Failure::usage("the model has several initial states; a graph file has one"));
    }
    let (states, faults) = (recorded.states, recorded.faults);
    if !outcome.complete || states == 0 {
        let why = match &outcome.verdict {
            Verdict::Unknown(why) => why.clone(),
            Verdict::HoldsToDepth(_) => Why::Depth,
            Verdict::HoldsUnless(_) => Why::Lossy,
            Verdict::Holds | Verdict::Violated(_) if states == 0 => {
                return Err(Failure::usage("the model has no initial state that does not go wrong"));
            }
            Verdict::Holds | Verdict::Violated(_) => Why::Interrupted,
        };
        interrupt::go_on();
        let partial = if options.partial && states > 0 { Some(recorded.leave_partial()?) } else { None };
        return Ok(given_up(options, &why, &outcome.stats, partial.as_deref(), out));
    }
    let forgets = !plan.strategy_parts.row.holds_all();
    let written = if recorded.is_done() && !forgets {
        recorded.keep()?
    } else {
        // The store is gone, and its memory free. What small pieces took may still be resident.
        let small = searched.ledger.iter().filter(|entry| ["frontier", "step log"].contains(&entry.name.as_str()));
        let kept: u64 = small.map(|entry| entry.peak_bytes).sum();
        let grant = budget.grant("join", plan.pool_bytes.saturating_sub(kept));
        let answers = |numbers: Numbers| -> Result<Answers, Why> {
            Ok(numbers.answers(&grant, spill("answers", plan, disk)?, forgets)?)
        };
        let mut next = Instant::now();
        let stop = |done: u64| {
            if done.is_multiple_of(STATES_PER_LOOK) && Instant::now() >= next {
                next = Instant::now() + BETWEEN_LINES;
                stage(true, &format!("the graph is written: {} of {} states", show_count(done), show_count(states)));
            }
            interrupt::flag().load(Ordering::Relaxed)
        };
        let written = interrupt::while_searching(|| recorded.write(answers, options.exact, stop, out));
        end_stage(true);
        match written? {
            Ok(written) => written,
            Err(why) => return Ok(given_up(options, &why, &outcome.stats, None, out)),
        }
    };
    if options.json {
        let Written { states, transitions, repeated } = written;
        let (file, merged) = (options.output.display().to_string(), options.exact);
        let report = json!({
            "complete": true, "file": file, "states": states, "transitions": transitions, "repeated": repeated,
            "merged": merged, "faults": faults, "levels": outcome.stats.levels, "reason": null, "exit_code": 0,
        });
        out.print(&format!("{report:#}\n"));
    } else {
        out.print(&summary(&options.output, &written, faults, options.exact));
    }
    Ok(0)
}

fn summary(path: &Path, written: &Written, faults: u64, merged: bool) -> String {
    let Written { states, transitions, repeated } = *written;
    let mut text =
        format!("{}: {} states, {} transitions\n", path.display(), show_count(states), show_count(transitions));
    if repeated > 0 {
        text += &match merged {
            true => format!("{} states were found again and merged\n", show_count(repeated)),
            false => {
                let distinct = show_count(states - repeated);
                let repeated = show_count(repeated);
                format!("{repeated} of them are there more than once, {distinct} are different (--exact merges them)\n")
            }
        };
    }
    if faults > 0 {
        text += &format!("{} steps go wrong and lead to no state\n", show_count(faults));
    }
    text
}

/// Says why there is no graph.
fn given_up(options: &GenerateOptions, why: &Why, stats: &Stats, partial: Option<&Path>, out: &mut Output) -> u8 {
    let reason: String = match why {
        Why::Memory => "the memory is used up (--memory; --disk for what can wait)".into(),
        Why::Disk(message) => format!("disk: {message} (--disk)"),
        Why::Time => "the time is up (--time)".into(),
        Why::States => "the limit on states is reached (--max-states)".into(),
        Why::Depth => "states beyond the limit were not visited (--max-depth)".into(),
        Why::Redundancy => "states were visited too often (--redundancy-limit); a larger cache would help".into(),
        Why::Lossy => "the strategy may miss states".into(),
        Why::Interrupted => "interrupted".into(),
    };
    let file = partial.map(|path| path.display().to_string());
    if options.json {
        let report = json!({
            "complete": false, "file": file, "states": stats.states, "transitions": stats.transitions,
            "levels": stats.levels, "reason": reason, "exit_code": exit::UNKNOWN,
        });
        out.print(&format!("{report:#}\n"));
        return exit::UNKNOWN;
    }
    let place = file.unwrap_or("nothing was written".into());
    let (states, transitions) = (show_count(stats.states), show_count(stats.transitions));
    let hint = if partial.is_some() { "" } else { " (--partial keeps what was found)" };
    out.print(&format!("{place}: {states} states, {transitions} transitions\nincomplete: {reason}{hint}\n"));
    exit::UNKNOWN
}
