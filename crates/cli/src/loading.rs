//! Loading a model within the budget. Front ends, passes and the compiler do not look at the clock and are granted no memory:
//! they are watched, and if they take too much the program ends with a report that says so.

use crate::failure::exit;
use crate::options::CheckOptions;
use crate::output::Output;
use crate::plan::KEPT_CODE_BYTES;
use crate::size::Size;
use crate::{interrupt, machine};
use plimsoll_store::{mapped, meter};
use serde::Serialize;
use std::time::Instant;

/// Left of the budget for the report, and for what is allocated between two measurements.
const SPARE_BYTES: u64 = 1 << 20;
/// A budget that is smaller than the program and this is refused later, with advice.
const LEAST_BYTES: u64 = 4 << 20;

/// Up to so many bytes memory counts as short: whoever has more need not mind a few megabytes of code, and of holes in what was
/// allocated.
const SHORT_BYTES: u64 = 1 << 30;
/// The allocator gives back blocks of this size where memory is short.
const BLOCK_BYTES: u32 = 64 << 10;

/// What a check says that ended before its search began: some of the entries of a report.
#[derive(Serialize)]
struct Unsearched {
    verdict: &'static str,
    reason: String,
    exit_code: u8,
    complete: bool,
    states: u64,
    transitions: u64,
    total_seconds: f64,
    memory_budget: u64,
    peak_rss: u64,
}

/// How to say that loading took too much.
#[derive(Clone, Copy)]
pub struct Loading {
    start: Instant,
    memory_bytes: u64,
    json: bool,
    quiet: bool,
}

impl Loading {
    /// Loading begins now; the time limit counts from here.
    pub fn begin(options: &CheckOptions, start: Instant) -> Loading {
        let memory_bytes = machine::memory_budget(options.budget.memory).bytes;
        let loading = Loading { start, memory_bytes, json: options.output.json, quiet: options.output.quiet };
        if let Some(deadline) = options.budget.time.and_then(|time| start.checked_add(time)) {
            interrupt::stop_at(deadline, move || loading.give_up("time: the limit is reached"));
        }
        loading.go_on();
        loading
    }

    /// From now on, loading is watched.
    pub fn go_on(self) {
        interrupt::load();
        watch_memory(self.memory_bytes, move || self.give_up("memory: the budget is used up"));
    }

    fn give_up(&self, why: &str) {
        let report = Unsearched {
            verdict: "unknown",
            reason: format!("{why} while the model is loaded; no state was visited"),
            exit_code: exit::UNKNOWN,
            complete: false,
            states: 0,
            transitions: 0,
            total_seconds: self.start.elapsed().as_secs_f64(),
            memory_budget: self.memory_bytes,
            peak_rss: machine::peak_resident_bytes(),
        };
        let text = match (self.json, self.quiet) {
            (true, _) => serde_json::to_string_pretty(&report).unwrap_or_default() + "\n",
            (false, true) => format!("verdict: {}\n", report.verdict),
            (false, false) => format!("verdict: {}\nreason:  {}\n", report.verdict, report.reason),
        };
        Output::new().print(&text);
    }
}

/// Ends the program as soon as it has more memory than the budget allows.
fn watch_memory(memory_bytes: u64, tell: impl Fn() + Send + 'static) {
    if memory_bytes <= SHORT_BYTES {
        meter::give_back_blocks_of(BLOCK_BYTES);
        mapped::keep_below(KEPT_CODE_BYTES);
    }
    let least = machine::resident_bytes().saturating_add(LEAST_BYTES);
    meter::limit(memory_bytes.saturating_sub(SPARE_BYTES).max(least), move || {
        tell();
        std::process::exit(exit::UNKNOWN.into());
    });
}

/// The same for commands without a report.
pub fn within(memory: Option<Size>) {
    let say = || crate::output::say("error: the memory is used up while the model is loaded (--memory gives more)");
    watch_memory(machine::memory_budget(memory).bytes, say);
}

/// Loading is over: what comes now is granted its memory. What only loading needed goes.
pub fn end() {
    meter::lift();
    meter::trim();
    mapped::let_go();
}
