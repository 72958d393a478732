//! `plimsoll generate`: write the reachable graph of a model to a file.
//!
//! States are numbered in the order they are found. They are kept as they are, for the table of plain vectors
//! gives each its number. When memory runs out, or somebody presses Ctrl-C, there is no file.

use crate::executor::Executor;
use crate::failure::{Failure, exit};
use crate::graph_file::GraphFile;
use crate::options::{GenerateOptions, LookFor, Order, StoreName};
use crate::output::{Output, is_standard, try_out};
use crate::plan::{Facts, Plan, Wishes};
use crate::size::show_count;
use crate::subject::{self, Subject};
use crate::view::View;
use crate::{interrupt, loading, machine};
use plimsoll_model::{Model, Step, Successors};
use plimsoll_store::intern::Intern;
use plimsoll_store::{Budget, Full, Queue, hash};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Runs the command.
pub fn run(options: &GenerateOptions, out: &mut Output) -> Result<u8, Failure> {
    try_out(&options.output)?;
    if is_standard(&options.output) {
        out.make_way();
    }
    loading::within(options.memory);
    let mut subject = subject::load(&options.model, &LookFor::default(), false)?;
    loop {
        let promela = subject.promela.take();
        let Subject { content, .. } = subject;
        let mut notes = Vec::new();
        let content = content.prepared(subject::merges(&options.model, false));
        let (memory, patience) = (machine::memory_budget(options.memory).bytes, interrupt::patience(options.memory));
        let executor = Executor::native(content, memory, patience, &mut notes);
        loading::end();
        let (graph, file) = write(options, &executor)?;
        let message = graph.wrong.as_ref().and_then(|(state, step)| executor.explain(state.as_deref(), *step));
        let larger = promela.zip(message).map(|(promela, why)| subject::larger(&promela, &why, &LookFor::default()));
        if let Some(larger) = larger.transpose()?.flatten() {
            subject = larger;
            continue;
        }
        let place = match graph.complete {
            true => {
                file.finish(0, graph.states, out)?;
                Some(options.output.clone())
            }
            false if options.partial => Some(file.leave_partial()?),
            false => None,
        };
        out.print(&graph.summary(place.as_deref()));
        return Ok(if graph.complete { 0 } else { exit::UNKNOWN });
    }
}

/// What was written.
#[derive(Default)]
struct Written {
    states: u64,
    edges: u64,
    faults: u64,
    /// The first step that went wrong: the state it was taken in, none for a start.
    wrong: Option<(Option<Vec<u32>>, Step)>,
    complete: bool,
}

impl Written {
    fn summary(&self, place: Option<&Path>) -> String {
        let (states, edges) = (show_count(self.states), show_count(self.edges));
        let place = place.map_or("nothing was written".into(), |place| place.display().to_string());
        let mut text = format!("{place}: {states} states, {edges} transitions\n");
        if self.faults > 0 {
            text += &format!("{} steps go wrong and lead to no state\n", show_count(self.faults));
        }
        if !self.complete {
            text +=
                "incomplete: the memory is used up, or the search was interrupted (--partial keeps what was found)\n";
        }
        text
    }
}

fn write(options: &GenerateOptions, executor: &Executor) -> Result<(Written, GraphFile), Failure> {
    let model = executor.model();
    let (store, order) = (StoreName::Plain, Some(Order::Bfs));
    let wishes = Wishes { memory: options.memory, store, order, workers: Some(1), ..Wishes::default() };
    let plan = Plan::resolve(&wishes, &Facts::now(model))?;
    let budget = Budget::new(plan.pool_bytes);
    let mut file = GraphFile::create(&options.output)?;
    let mut written = Written::default();
    let explored = interrupt::while_searching(|| explore(model, executor, &budget, &mut file, &mut written));
    match explored {
        Ok(()) => written.complete = true,
        Err(Stop::Budget) => {}
        Err(Stop::SeveralStarts(count)) => {
            return Err(Failure::usage(format!("the model has {count} initial states; a graph file has one")));
        }
        Err(Stop::File(failure)) => return Err(failure),
    }
    Ok((written, file))
}

enum Stop {
    Budget,
    SeveralStarts(usize),
    File(Failure),
}

fn explore(
    model: &dyn Model,
    executor: &Executor,
    budget: &Budget,
    file: &mut GraphFile,
    written: &mut Written,
) -> Result<(), Stop> {
    let view = View::new(executor);
    let full = |Full| Stop::Budget;
    let mut table = Intern::new(model.width(), budget.grant("states", u64::MAX)).map_err(full)?;
    let mut queue = Queue::new(model.width(), budget.grant("frontier", u64::MAX), None);
    let (mut out, mut parents) = (Successors::new(model.width()), Vec::new());
    model.initial(&mut out);
    let starts: Vec<(&[u32], Step)> = out.iter().filter(|(_, step)| !step.is_fault()).collect();
    let [(start, _)] = starts[..] else { return Err(Stop::SeveralStarts(starts.len())) };
    table.intern(start, hash::words(start)).map_err(full)?;
    push(&mut queue, start)?;
    written.states = 1;
    let (mut expanded, mut edges, mut labels, mut numbers) = (0, Vec::new(), Vec::new(), HashMap::new());
    while !queue.is_empty() {
        let ready = queue.ready(64).map_err(|_| Stop::Budget)?;
        queue.read(0, ready, &mut parents);
        queue.advance(ready);
        if interrupt::flag().load(Ordering::Relaxed) {
            return Err(Stop::Budget);
        }
        for state in parents.chunks_exact(model.width()) {
            out.clear();
            model.successors(state, &mut out);
            if out.gave_up().is_some() {
                return Err(Stop::Budget);
            }
            table.reserve(out.len()).map_err(full)?;
            for (target, step) in out.iter() {
                if step.is_fault() {
                    written.faults += 1;
                    written.wrong.get_or_insert_with(|| (Some(state.to_vec()), step));
                    continue;
                }
                let (number, new) = table.intern(target, hash::words(target)).map_err(full)?;
                if new {
                    push(&mut queue, target)?;
                    written.states += 1;
                }
                let label = *numbers.entry(step.instance()).or_insert_with(|| {
                    labels.push(view.label(step));
                    labels.len() as u32 - 1
                });
                edges.push((label, number.into()));
            }
            file.edges(expanded, &edges, &labels).map_err(Stop::File)?;
            written.edges += edges.len() as u64;
            edges.clear();
            expanded += 1;
        }
    }
    Ok(())
}

fn push(queue: &mut Queue, state: &[u32]) -> Result<(), Stop> {
    let place = queue.extend(1).map_err(|_| Stop::Budget)?;
    queue.write(place, state);
    Ok(())
}
