//! Before a search with Huffman codes: a short search that counts bytes, from which the code comes, and its length in most states. Before one
//! with a tree in a cache: a shorter one, from which the tree has its shape, for a cache cannot encode again what it holds.
//!
//! Its states are the first ones that a search finds within the same budget, and it ends before the real one begins. A static
//! code needs no training; states are looked at all the same, for the length of its keys in a cache.

use crate::dispatch::search;
use crate::interrupt;
use crate::options::{Order, StoreName};
use crate::plan::{Facts, Plan, PlanError, Wishes};
use plimsoll_model::{Around, Model};
use plimsoll_search::{Ask, Control, Limits, PathRoom, Stats};
use plimsoll_store::huffman::{Code, Kind, Training};
use plimsoll_store::tree::Shape;
use plimsoll_store::{Budget, Codec, leanest_shape, strings};
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// States, and words of them, from which a shape is learned, and bytes to try shapes in.
const SHAPE_STATES: usize = 4096;
const SHAPE_WORDS: usize = 64 << 10;
const SHAPE_BYTES: u64 = 4 << 20;
/// States that a static code is tried on.
const TRIAL_STATES: u64 = 1000;
/// All but one in so many codes should fit into the keys of a cache; a byte more, for what was not seen yet.
const LONG_SHARE: u64 = 200;
const SPARE_BYTES: usize = 1;

/// What a search needs to know of its code.
#[derive(Clone, Debug)]
pub struct Trained {
    pub code: Arc<Code>,
    pub report: TrainingReport,
}

/// What the training says, for the report.
#[derive(Clone, Debug, Serialize)]
pub struct TrainingReport {
    pub states: u64,
    pub seconds: f64,
    /// Bits of information in each byte of a state that is used.
    pub entropies: Vec<f64>,
    /// Bytes of a code on average, and divided by those of the state.
    pub expected_bytes: f64,
    pub expected_ratio: f64,
    /// Bytes that a key has in a cache.
    pub key_bytes: usize,
}

/// A model whose states are looked at as they are found.
struct Watched<'a, F> {
    model: &'a dyn Model,
    look: Mutex<F>,
}

impl<F: FnMut(&[u32]) + Send> Around for Watched<'_, F> {
    fn inner(&self) -> &dyn Model {
        self.model
    }

    fn violated_by(&self, state: &[u32]) -> Option<u32> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner)(state);
        None
    }
}

/// Plans a search, after some training where that is asked for.
pub fn plan(mut wishes: Wishes, model: &dyn Model, deadline: Option<Instant>) -> Result<Plan, PlanError> {
    if let StoreName::Held(Codec::Huffman(kind)) = wishes.store {
        wishes.trained = Some(train(kind, model, &wishes, deadline)?);
    }
    let plan = Plan::resolve(&wishes, &Facts::now(model))?;
    let row = &plan.strategy_parts.row;
    if plan.codec != Codec::Tree || !row.is_cache() || row.has_levels() {
        return Ok(plan);
    }
    let shape = shape(model, &wishes, deadline)?;
    // What is resident now counts.
    Ok(Plan { shape, ..Plan::resolve(&wishes, &Facts::now(model))? })
}

/// The shape of a tree that suits the first states.
fn shape(model: &dyn Model, wishes: &Wishes, deadline: Option<Instant>) -> Result<Option<Shape>, PlanError> {
    let (width, mut states) = (model.width(), Vec::new());
    let count = SHAPE_STATES.min(SHAPE_WORDS / width.max(1)) as u64;
    visit(model, Order::Bfs, count, wishes, deadline, &mut |state| states.extend_from_slice(state))?;
    Ok(leanest_shape(width, &states, &Budget::new(SHAPE_BYTES).grant("shapes", SHAPE_BYTES)))
}

/// Finds the code that is asked for.
fn train(kind: Kind, model: &dyn Model, wishes: &Wishes, deadline: Option<Instant>) -> Result<Trained, PlanError> {
    let start = Instant::now();
    let used = model.used_bits();
    let (order, states) = match kind {
        Kind::Static => (Order::Bfs, TRIAL_STATES),
        Kind::Trained { breadth_first, states } => (if breadth_first { Order::Bfs } else { Order::Dfs }, states),
    };
    let visit = |look: &mut (dyn FnMut(&[u32]) + Send)| visit(model, order, states, wishes, deadline, look);
    let mut training = Training::new(&used);
    visit(&mut |state| training.add(state))?;
    let code = if kind == Kind::Static { Code::fixed(&used) } else { training.code() };
    if code.most_bytes() > strings::MOST_BYTES {
        return Err(PlanError::Strategy("states are too wide for Huffman codes: choose another --store".into()));
    }
    let mut lengths = vec![0u64; code.most_bytes() + 1];
    let mut coded = Vec::new();
    visit(&mut |state| {
        code.encode(state, &mut coded);
        lengths[coded.len()] += 1;
    })?;
    let key_bytes = key_bytes(&lengths);
    let expected_bytes = training.mean_bytes(&code);
    let report = TrainingReport {
        states: training.states(),
        seconds: start.elapsed().as_secs_f64(),
        entropies: training.entropies(),
        expected_bytes,
        expected_ratio: expected_bytes / (used.len() * 4) as f64,
        key_bytes,
    };
    Ok(Trained { code: Arc::new(code.with_key_bytes(key_bytes)), report })
}

/// The length that most codes do not exceed.
fn key_bytes(lengths: &[u64]) -> usize {
    let all: u64 = lengths.iter().sum();
    let mut longer = all;
    let fits = lengths.iter().position(|&count| {
        longer -= count;
        longer * LONG_SHARE <= all
    });
    (fits.unwrap_or(0) + SPARE_BYTES).min(lengths.len() - 1)
}

/// Shows the first states that a search in this order finds.
fn visit(
    model: &dyn Model,
    order: Order,
    states: u64,
    wishes: &Wishes,
    deadline: Option<Instant>,
    look: &mut (dyn FnMut(&[u32]) + Send),
) -> Result<(), PlanError> {
    let wishes = Wishes {
        memory: wishes.memory,
        order: Some(order),
        store: StoreName::Auto,
        workers: Some(1),
        ..Wishes::default()
    };
    let plan = Plan::resolve(&wishes, &Facts::now(model))?;
    let budget = Budget::new(plan.pool_bytes);
    let (ask, mut left) = (Ask { deadlocks: false, errors: false, properties: false, keep_going: true }, states);
    let mut some = |state: &[u32]| {
        if left > 0 {
            left -= 1;
            look(state);
        }
    };
    let watched = Watched { model, look: Mutex::new(&mut some) };
    let limits = Limits { deadline, states: Some(states), ..Limits::default() };
    let room = PathRoom::new(budget.grant("trace", plan.pool_bytes));
    let mut watch = |_: &Stats| {};
    let mut control = Control { ask, limits, stop: interrupt::flag(), room, watch: &mut watch };
    search(&watched, &plan, &budget, &mut control, None);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_as_long_as_most_codes_and_a_little_more() {
        assert_eq!(key_bytes(&[0, 0, 1000, 0, 0, 4, 0, 1]), 3);
        assert_eq!(key_bytes(&[0, 0, 1000, 0, 0, 6, 0, 1]), 6);
        assert_eq!((key_bytes(&[0, 0, 7]), key_bytes(&[0, 7])), (2, 1));
    }
}
