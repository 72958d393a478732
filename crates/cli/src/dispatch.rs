//! From choices made at run time to one of the generic searches: one `match` per axis.

use crate::checkpoint::Checkpoint;
use crate::executor::Executor;
use crate::hunt;
use crate::machine;
use crate::options::Order;
use crate::plan::{Plan, coder};
use plimsoll_model::Model;
use plimsoll_search::{
    Ask, Company, Control, Keeper, Limits, Observer, Outcome, PathRoom, Sleep, Stats, Verdict, Why, bfs_with, dfs,
    item_words, observed_dfs, sleeping_dfs, whole_way,
};
use plimsoll_store::budget::Entry;
use plimsoll_store::disk::SLOT;
use plimsoll_store::runs::{BLOCK_BYTES, Candidates, Layers, LayersReport};
use plimsoll_store::{Budget, Chain, Choice, Climb, Collections, Density, Full, Grant, Queue, Spill, Stack, StepLog};
use std::io;

/// What a search leaves behind.
#[derive(Debug)]
pub struct Searched {
    pub outcome: Outcome,
    /// What was done on disk, if memory was full.
    pub layers: Option<LayersReport>,
    /// How it went on when memory was full.
    pub climbs: Vec<Climb>,
    /// How states were held, where the first of them decided that.
    pub choice: Option<Choice>,
    /// How often nodes of a tree were given up.
    pub collections: Collections,
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
        return Searched::without_store(outcome, budget, &disk);
    }
    let searched = match plan.search {
        Order::Bfs => breadth_first(model, plan, budget, &disk, control, checkpoint, None),
        Order::Dfs | Order::DfsReverse => depth_first(model, plan, budget, &disk, control, None),
    };
    searched.unwrap_or_else(|why| unsearched(why, budget, &disk))
}

/// Searches while somebody looks on; `disk` is for both.
pub fn observed<M: Model + ?Sized>(
    model: &M,
    plan: &Plan,
    (budget, disk): (&Budget, &Budget),
    control: &mut Control,
    observer: &mut dyn Observer,
) -> Searched {
    let searched = match plan.search {
        Order::Bfs => breadth_first(model, plan, budget, disk, control, None, Some(observer)),
        Order::Dfs | Order::DfsReverse => depth_first(model, plan, budget, disk, control, Some(observer)),
    };
    searched.unwrap_or_else(|why| unsearched(why, budget, disk))
}

fn unsearched(why: Why, budget: &Budget, disk: &Budget) -> Searched {
    let outcome = Outcome { verdict: Verdict::Unknown(why), stats: Stats::default(), complete: false };
    Searched::without_store(outcome, budget, disk)
}

impl Searched {
    /// A search of which nothing is known but its end and its memory.
    fn without_store(outcome: Outcome, budget: &Budget, disk: &Budget) -> Searched {
        let (ledger, disk_ledger) = (budget.ledger(), disk.ledger());
        let (climbs, collections) = (Vec::new(), Collections::default());
        Searched { outcome, layers: None, climbs, choice: None, collections, ledger, disk_ledger }
    }
}

fn breadth_first<M: Model + ?Sized>(
    model: &M,
    plan: &Plan,
    budget: &Budget,
    disk: &Budget,
    control: &mut Control,
    mut checkpoint: Option<&mut Checkpoint>,
    observer: Option<&mut dyn Observer>,
) -> Result<Searched, Why> {
    let grant = budget.grant("store", plan.store_bytes);
    let mut store = store(model, plan, &grant)?;
    let frontier = budget.grant("frontier", plan.frontier_bytes);
    let log = budget.grant("step log", plan.log_bytes);
    let mut queue = Queue::new(model.width(), frontier, spill("frontier", plan, disk)?);
    let mut log = StepLog::new(log, spill("step log", plan, disk)?).at_most(plan.step_log_bytes.unwrap_or(u64::MAX));
    if plan.dense {
        (queue, log) = (queue.dense(), log.dense());
    }
    if let Some(layers) = layers(model, plan, budget, disk, &grant)? {
        store = store.above(layers);
    }
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let mut keeping = Company { observer, ..Company::default() };
    if let Some(checkpoint) = checkpoint.take() {
        if !plan.spill_dirs.is_empty() {
            checkpoint.charge(disk, plan.disk_bytes);
        }
        keeping.from = checkpoint.resume(&mut store, &mut queue, &mut log, plan.crew)?;
        keeping.keeper = Some(checkpoint as &mut dyn Keeper);
    }
    let mut outcome = bfs_with(model, &mut store, &mut queue, &mut log, plan.crew, control, keeping);
    let layers = store.tiers.layers().filter(|layers| layers.defers()).map(Layers::report);
    let (climbs, choice) = (store.tiers.climbs().to_vec(), store.tiers.choice());
    let (collections, ledger, disk_ledger) = (store.tiers.collections(), budget.ledger(), disk.ledger());
    drop((store, queue));
    if let (Some(milestones), Verdict::Violated(violation)) = (log.into_milestones(), &outcome.verdict) {
        let violation = violation.clone();
        outcome.verdict = whole_way(model, milestones, violation, |model, ask, limits| {
            search_between(model, plan, budget, disk, control, ask, limits)
        });
    }
    Ok(Searched { outcome, layers, climbs, choice, collections, ledger, disk_ledger })
}

/// Searches again for a part of the way to a violation, with what the search that found it has left.
fn search_between(
    model: &dyn Model,
    plan: &Plan,
    budget: &Budget,
    disk: &Budget,
    control: &Control,
    ask: Ask,
    limits: Limits,
) -> Outcome {
    let limits = Limits { deadline: control.limits.deadline, ..limits };
    let room = PathRoom::new(budget.grant("trace", plan.pool_bytes));
    let mut control = Control { ask, limits, stop: control.stop, room, watch: &mut |_: &Stats| {} };
    let searched = breadth_first(model, plan, budget, disk, &mut control, None, None);
    searched.unwrap_or_else(|why| unsearched(why, budget, disk)).outcome
}

fn depth_first<M: Model + ?Sized>(
    model: &M,
    plan: &Plan,
    budget: &Budget,
    disk: &Budget,
    control: &mut Control,
    observer: Option<&mut dyn Observer>,
) -> Result<Searched, Why> {
    let mut store = store(model, plan, &budget.grant("store", plan.store_bytes))?;
    let words = match plan.strategy_parts.sleep {
        Some(_) => Sleep::item_words(model.width()),
        None => item_words(model.width(), &store),
    };
    let stack = Stack::new(words, budget.grant("stack", plan.stack_bytes));
    let mut stack = stack.spilling(spill("stack", plan, disk)?);
    if plan.search == Order::DfsReverse {
        stack = stack.reversed();
    }
    let outcome = match (plan.strategy_parts.sleep, observer) {
        (Some(rule), _) => {
            let mut sleep = Sleep::new(rule, &budget.grant("sleep sets", plan.pool_bytes));
            sleeping_dfs(model, &mut store, &mut stack, &mut sleep, control)
        }
        (None, Some(observer)) => observed_dfs(model, &mut store, &mut stack, observer, control),
        (None, None) => dfs(model, &mut store, &mut stack, control),
    };
    Ok(Searched {
        outcome,
        layers: None,
        climbs: Vec::new(),
        choice: None,
        collections: store.tiers.collections(),
        ledger: budget.ledger(),
        disk_ledger: disk.ledger(),
    })
}

/// Room on disk for a structure, if any is allowed.
pub fn spill(name: &str, plan: &Plan, disk: &Budget) -> Result<Option<Spill>, Why> {
    if plan.spill_dirs.is_empty() {
        return Ok(None);
    }
    slots(name, SLOT, plan, disk).map(Some)
}

/// Slots of so many bytes in all folders.
fn slots(name: &str, bytes: usize, plan: &Plan, disk: &Budget) -> Result<Spill, Why> {
    let grant = disk.grant(name, plan.disk_bytes);
    Spill::in_folders(&plan.spill_dirs, bytes, grant).map_err(|error: io::Error| Why::Disk(error.to_string()))
}

/// What the store needs to go on on disk, if it may; `grant` is that of the store.
fn layers<M: Model + ?Sized>(
    model: &M,
    plan: &Plan,
    budget: &Budget,
    disk: &Budget,
    grant: &Grant,
) -> Result<Option<Layers>, Why> {
    let Some(keep) = plan.keep else { return Ok(None) };
    let spill = slots("candidates", SLOT, plan, disk)?;
    let candidates = Candidates::new(model.width(), &budget.grant("candidates", plan.candidates_bytes), spill);
    let layers = Layers::new(keep, candidates, slots("runs", BLOCK_BYTES, plan, disk)?, grant);
    Ok(Some(layers.in_process(plan.most_resident_bytes(), machine::peak_resident_bytes)))
}

fn store<M: Model + ?Sized>(model: &M, plan: &Plan, grant: &Grant) -> Result<Chain, Why> {
    let row = &plan.strategy_parts.row;
    let coder = coder(plan.codec, plan.code.as_ref(), plan.shape.as_ref(), &model.used_bits(), grant);
    let store = coder.and_then(|coder| {
        if !row.is_cache() {
            let mut store = Chain::of(coder, 0, grant)?.with_packing(&model.used_bits());
            store = if plan.climbs { store.climbing(row, plan.may_miss) } else { store };
            return Ok(match plan.chooses {
                true => store.choosing(),
                false if plan.narrows => store.narrowing(usize::MAX),
                false => store,
            });
        }
        let capacity = usize::try_from(plan.cache_states).unwrap_or(usize::MAX);
        Chain::of_row(coder, row, plan.search != Order::Bfs, capacity, grant)
    });
    // Who forgets states has little memory for nodes.
    let density = if plan.dense || row.is_cache() { Density::COMPACT } else { Density::USUAL };
    store.map(|store| store.with_density(density)).map_err(|Full| Why::Memory)
}
