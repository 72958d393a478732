//! From choices made at run time to one of the generic searches: one `match` per axis.

use crate::checkpoint::Checkpoint;
use crate::executor::Executor;
use crate::hunt;
use crate::options::Order;
use crate::plan::Plan;
use plimsoll_model::Model;
use plimsoll_search::{
    Control, Keeper, Keeping, Outcome, Sleep, Stats, Verdict, Why, bfs_kept, dfs, item_words, sleeping_dfs,
};
use plimsoll_store::budget::Entry;
use plimsoll_store::disk::SLOT;
use plimsoll_store::{Budget, Chain, Density, Full, Queue, Spill, Stack, StepLog};
use std::io;

/// What a search leaves behind.
#[derive(Debug)]
pub struct Searched {
    pub outcome: Outcome,
    /// Memory by structure, as it was when the search ended.
    pub ledger: Vec<Entry>,
    /// Disk by structure.
    pub disk_ledger: Vec<Entry>,
}

/// Searches with the executor that there is.
pub fn search_with(
    executor: &Executor,
    plan: &Plan,
    budget: &Budget,
    control: &mut Control,
    checkpoint: Option<&mut Checkpoint>,
) -> Searched {
    match executor {
        Executor::Interp(interp) => search(interp.as_ref(), plan, budget, control, checkpoint),
        Executor::Jit(jit) => search(jit.as_ref(), plan, budget, control, checkpoint),
        Executor::Graph(graph) => search(graph.as_ref(), plan, budget, control, checkpoint),
        Executor::OrbitsInterp(orbits) => search(orbits.as_ref(), plan, budget, control, checkpoint),
        Executor::OrbitsJit(orbits) => search(orbits.as_ref(), plan, budget, control, checkpoint),
    }
}

/// Searches `model` within `plan`; `budget` is its pool. Breadth first, it may go on from a checkpoint, and keeps others.
pub fn search<M: Model + ?Sized>(
    model: &M,
    plan: &Plan,
    budget: &Budget,
    control: &mut Control,
    checkpoint: Option<&mut Checkpoint>,
) -> Searched {
    let disk = Budget::new(plan.disk_bytes);
    if let Some(hunt) = plan.strategy_parts.hunt {
        let outcome = hunt::search(model, hunt, plan, budget, control);
        return Searched { outcome, ledger: budget.ledger(), disk_ledger: disk.ledger() };
    }
    let searched = match plan.search {
        Order::Bfs => breadth_first(model, plan, budget, &disk, control, checkpoint),
        Order::Dfs | Order::DfsReverse => depth_first(model, plan, budget, &disk, control),
    };
    searched.unwrap_or_else(|why| {
        let outcome = Outcome { verdict: Verdict::Unknown(why), stats: Stats::default(), complete: false };
        Searched { outcome, ledger: budget.ledger(), disk_ledger: disk.ledger() }
    })
}

fn breadth_first<M: Model + ?Sized>(
    model: &M,
    plan: &Plan,
    budget: &Budget,
    disk: &Budget,
    control: &mut Control,
    mut checkpoint: Option<&mut Checkpoint>,
) -> Result<Searched, Why> {
    let mut store = store(model, plan, budget)?;
    let frontier = budget.grant("frontier", plan.frontier_bytes);
    let log = budget.grant("step log", plan.log_bytes);
    let mut queue = Queue::new(model.width(), frontier, spill("frontier", plan, disk)?);
    queue = if plan.dense { queue.dense() } else { queue };
    let mut log = StepLog::new(log, spill("step log", plan, disk)?);
    let mut keeping = Keeping::default();
    if let Some(checkpoint) = checkpoint.take() {
        if plan.spill_dir.is_some() {
            checkpoint.charge(disk, plan.disk_bytes);
        }
        keeping.from = checkpoint.resume(&mut store, &mut queue, &mut log, plan.crew)?;
        keeping.keeper = Some(checkpoint as &mut dyn Keeper);
    }
    let outcome = bfs_kept(model, &mut store, &mut queue, &mut log, plan.crew, control, keeping);
    Ok(Searched { outcome, ledger: budget.ledger(), disk_ledger: disk.ledger() })
}

fn depth_first<M: Model + ?Sized>(
    model: &M,
    plan: &Plan,
    budget: &Budget,
    disk: &Budget,
    control: &mut Control,
) -> Result<Searched, Why> {
    let mut store = store(model, plan, budget)?;
    let words = match plan.strategy_parts.sleep {
        Some(_) => Sleep::item_words(model.width()),
        None => item_words(model.width(), &store),
    };
    let stack = Stack::new(words, budget.grant("stack", plan.stack_bytes));
    let mut stack = stack.spilling(spill("stack", plan, disk)?);
    if plan.search == Order::DfsReverse {
        stack = stack.reversed();
    }
    let outcome = match plan.strategy_parts.sleep {
        Some(rule) => {
            let mut sleep = Sleep::new(rule, &budget.grant("sleep sets", plan.pool_bytes));
            sleeping_dfs(model, &mut store, &mut stack, &mut sleep, control)
        }
        None => dfs(model, &mut store, &mut stack, control),
    };
    Ok(Searched { outcome, ledger: budget.ledger(), disk_ledger: disk.ledger() })
}

/// Room on disk for a structure, if any is allowed.
fn spill(name: &str, plan: &Plan, disk: &Budget) -> Result<Option<Spill>, Why> {
    let in_folder = |folder| Spill::in_folders(&[folder], SLOT, disk.grant(name, plan.disk_bytes));
    plan.spill_dir.as_deref().map(in_folder).transpose().map_err(|error: io::Error| Why::Disk(error.to_string()))
}

fn store<M: Model + ?Sized>(model: &M, plan: &Plan, budget: &Budget) -> Result<Chain, Why> {
    let grant = budget.grant("store", plan.store_bytes);
    let row = &plan.strategy_parts.row;
    let store = if row.holds_all() {
        Chain::new(plan.codec, &model.used_bits(), 0, &grant)
    } else {
        let capacity = usize::try_from(plan.cache_states).unwrap_or(usize::MAX);
        Chain::with_row(plan.codec, &model.used_bits(), row, plan.search != Order::Bfs, capacity, &grant)
    };
    let density = if plan.dense { Density::COMPACT } else { Density::USUAL };
    store.map(|store| store.with_density(density)).map_err(|Full| Why::Memory)
}
