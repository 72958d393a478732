//! Plimsoll: a memory-aware explicit-state model checker.
//!
//! The program of this name is behind [`program::run`]. From Rust, implement [`Model`] for your own
//! system and ask [`check`]:
//!
//! ```
//! use plimsoll::{Model, Settings, Step, Successors, Verdict, What};
//!
//! /// Two jugs, of three and of five litres, and a tap. Can four litres be measured?
//! struct Jugs;
//!
//! impl Model for Jugs {
//!     fn width(&self) -> usize {
//!         2
//!     }
//!
//!     fn most_successors(&self) -> usize {
//!         6
//!     }
//!
//!     fn initial(&self, out: &mut Successors) {
//!         out.push(&[0, 0], Step(0));
//!     }
//!
//!     fn successors(&self, state: &[u32], out: &mut Successors) {
//!         let (small, large) = (state[0], state[1]);
//!         let right = small.min(5 - large);
//!         let left = large.min(3 - small);
//!         let moves = [[3, large], [small, 5], [0, large], [small, 0], [small - right, large + right], [small + left, large - left]];
//!         for (number, next) in moves.iter().enumerate() {
//!             out.push(next, Step(number as u32));
//!         }
//!     }
//!
//!     fn violated(&self, state: &[u32]) -> Option<u32> {
//!         (state[1] == 4).then_some(0)
//!     }
//! }
//!
//! let checked = plimsoll::check(&Jugs, &Settings { memory_bytes: Some(64 << 20), ..Settings::default() })?;
//! let Verdict::Violated(violation) = checked.verdict else { panic!("it can be done") };
//! assert_eq!(violation.what, What::Property(0));
//! assert_eq!(violation.trace.steps(), 6);
//! let path = plimsoll::replay(&Jugs, &violation).unwrap();
//! assert_eq!(path.last().unwrap().state[1], 4);
//! # Ok::<(), plimsoll::PlanError>(())
//! ```

#![forbid(unsafe_code)]

mod apart;
mod chart;
mod checkpoint;
mod child;
mod commands;
mod cover;
mod csv;
mod dispatch;
mod estimate;
mod examples;
mod executor;
mod failure;
mod graph_file;
mod health;
mod hunt;
mod interrupt;
mod loading;
mod lookout;
mod machine;
mod masked;
mod options;
mod output;
mod plan;
mod presets;
pub mod program;
mod progress;
mod recorder;
pub mod reference;
mod report;
mod room;
mod size;
mod stuck;
mod subject;
mod svg;
mod trail;
mod training;
mod view;

pub use options::{Order, StoreName as Store};
pub use plan::PlanError;
pub use plimsoll_model::{Conventions, Model, Step, Successors};
pub use plimsoll_search::{
    Ask, Limits, Outcome, ReplayError, Replayed, Stats, Trace, Verdict, Violation, What, Why, replay,
};

use plan::{Facts, Plan, Wishes};
use plimsoll_search::{Control, PathRoom};
use size::Size;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// How to check a model from Rust.
#[derive(Clone, Debug)]
pub struct Settings {
    /// For the whole process; by default three quarters of the available memory.
    pub memory_bytes: Option<u64>,
    /// For states that wait, for the step log, and for visited states when memory is full; none by default.
    pub disk_bytes: u64,
    /// Where temporary files go; by default the system's folder for them.
    pub spill_dirs: Vec<PathBuf>,
    pub order: Order,
    /// Huffman codes are not trained here: they are always the static ones.
    pub store: Store,
    pub ask: Ask,
    pub limits: Limits,
    /// Threads of a breadth-first search; by default one for each processor, up to four.
    pub workers: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            memory_bytes: None,
            disk_bytes: 0,
            spill_dirs: Vec::new(),
            order: Order::default(),
            store: Store::default(),
            ask: Ask::EVERYTHING,
            limits: Limits::default(),
            workers: None,
        }
    }
}

/// Visits the reachable states of `model` within a budget of memory.
///
/// Running out of something is a verdict; a budget that is too small to begin with is an error.
pub fn check<M: Model + ?Sized>(model: &M, settings: &Settings) -> Result<Outcome, PlanError> {
    let wishes = Wishes {
        memory: settings.memory_bytes.map(Size::Bytes),
        disk_bytes: settings.disk_bytes,
        spill_dirs: settings.spill_dirs.clone(),
        order: Some(settings.order),
        store: settings.store,
        workers: settings.workers,
        ..Wishes::default()
    };
    let plan = Plan::resolve(&wishes, &Facts::now(model))?;
    let stop = AtomicBool::new(false);
    let mut watch = |_: &Stats| {};
    let budget = plimsoll_store::Budget::new(plan.pool_bytes);
    let room = PathRoom::new(budget.grant("trace", plan.pool_bytes));
    let mut control = Control { ask: settings.ask, limits: settings.limits, stop: &stop, room, watch: &mut watch };
    Ok(dispatch::search(model, &plan, &budget, &mut control, None).outcome)
}
