//! `plimsoll plan`: what a check would take, from a few seconds of it.
//!
//! The sample is a breadth-first search like any other, with a limit. If it visits everything, everything is known; else
//! [`estimate`] says how many states there may be, or nothing.

use crate::dispatch::{Searched, search};
use crate::estimate::{self, Estimate};
use crate::executor::Executor;
use crate::failure::Failure;
use crate::lookout::Lookout;
use crate::options::{ColorName, LookFor, PlanOptions, StoreName};
use crate::output::{Output, say};
use crate::plan::{Facts, Plan, Wishes};
use crate::progress::Progress;
use crate::room::{self, Missing};
use crate::size::{show_bytes, show_count, show_seconds};
use crate::subject::{self, Subject};
use crate::{interrupt, loading, machine, report};
use plimsoll_lang::Language;
use plimsoll_model::Model;
use plimsoll_search::{Ask, Control, Limits, PathRoom, Stats};
use plimsoll_store::Budget;
use serde::Serialize;
use std::io;
use std::time::{Duration, Instant};

/// Everything is visited, whatever is wrong with it.
const ASK: Ask = Ask { deadlocks: false, errors: false, properties: false, keep_going: true };
/// Stores whose bytes are measured, on a part of the sample.
const STORES: [&str; 5] = ["packed", "tree", "plain", "huffman:static", "digest:64"];
const STORE_STATES: u64 = 200_000;
const STORE_TIME: Duration = Duration::from_secs(1);
/// Of fewer states nobody can tell what one takes: tables and buffers have a least size.
const LEAST_STATES: u64 = 20_000;
/// How much longer a search may take for each state that is looked for on disk: so much was measured with a tenth of the memory.
const DISK_SLOWDOWN: f64 = 9.0;
/// Bytes of memory for each state on disk, and of its entry in the step log.
const ON_DISK_BYTES: f64 = 0.06;
const LOG_BYTES: f64 = 1.2;

/// What the sample showed.
struct Sample {
    stats: Stats,
    complete: bool,
    seconds: f64,
    /// Memory for a state: that of its store, and that of everything; nothing if there were too few to tell.
    store_bytes: Option<f64>,
    whole_bytes: Option<f64>,
}

/// Who would hold all states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Rung {
    /// Memory is enough.
    Memory,
    /// Perhaps it is.
    PerhapsMemory,
    /// Memory and disk are.
    Disk,
    PerhapsDisk,
    /// Neither is: only a strategy that forgets, or one that may miss states.
    Neither,
    Unknown,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Outlook {
    state_bytes: usize,
    used_bits: u32,
    degree: f64,
    sampled_states: u64,
    sampled_levels: u32,
    sampled_seconds: f64,
    states_per_second: f64,
    workers: usize,
    /// The sample visited everything.
    exact: bool,
    /// How many states there are; nothing if nobody knows.
    states: Option<Estimate>,
    store: String,
    /// Memory for each state, with states that wait and the step log; nothing if there were too few to tell.
    bytes_per_state: Option<f64>,
    stores: Vec<StoreBytes>,
    memory_bytes: u64,
    disk_bytes: u64,
    /// How many states fit into memory, and onto the disk, if that can be told.
    states_in_memory: Option<u64>,
    states_on_disk: Option<u64>,
    carried_by: Rung,
    /// From and to.
    seconds: Option<[f64; 2]>,
    advice: String,
}

#[derive(Debug, Serialize)]
struct StoreBytes {
    store: String,
    bytes_per_state: f64,
    exact: bool,
}

/// Runs the command.
pub fn run(options: &PlanOptions, out: &mut Output) -> Result<u8, Failure> {
    loading::within(options.memory);
    let look_for = LookFor::default();
    let subject = subject::load(&options.model, &look_for, ColorName::Auto.wanted(&io::stderr()))?;
    let mut subject = room::walk(subject, &look_for)?;
    subject.warnings.iter().for_each(|warning| say(warning));
    loop {
        match attempt(options, subject)? {
            Ok(outlook) if options.json => {
                let _ = report::write_json(&outlook, out);
                return Ok(0);
            }
            Ok(outlook) => {
                out.print(&text(&outlook));
                return Ok(0);
            }
            Err(larger) => subject = *larger,
        }
        interrupt::load();
        loading::within(options.memory);
    }
}

/// What the sample tells, unless a Promela model needs room for more processes.
fn attempt(options: &PlanOptions, mut subject: Subject) -> Result<Result<Outlook, Box<Subject>>, Failure> {
    let promela = subject.promela.take();
    let Subject { language, content, symmetry, .. } = subject;
    let merge = subject::merges(&options.model, language == Language::Promela.name());
    let mut notes = Vec::new();
    let memory = machine::memory_budget(options.memory).bytes;
    let content = content.prepared(merge, symmetry.as_ref());
    let executor = Executor::native(content, memory, interrupt::patience(options.memory), &mut notes);
    let executor = executor.within_symmetry((options.model.symmetry, symmetry.as_ref()), memory, &mut notes);
    notes.iter().for_each(|note| say(note));
    loading::end();
    let mut missing = promela.as_deref().and_then(|promela| Missing::new(&executor, promela, interrupt::flag()));
    let model = executor.model();
    let wishes = |store: StoreName| Wishes {
        memory: options.memory,
        workers: options.workers.map(|workers| workers as usize),
        store,
        ..Wishes::default()
    };
    let plan = Plan::resolve(&wishes(StoreName::Auto), &Facts::now(model))?;
    let limits = Limits {
        deadline: Instant::now().checked_add(options.sample_time),
        states: options.sample_states,
        ..Limits::default()
    };
    let sampled = sample(model, &plan, limits, missing.as_mut());
    let request = missing.and_then(Missing::request).zip(promela.as_deref());
    if let Some((request, promela)) = request
        && let Some(larger) = subject::larger(promela, &request, &LookFor::default())?
    {
        interrupt::go_on();
        return Ok(Err(Box::new(larger)));
    }
    let stores = STORES.iter().filter_map(|name| {
        let store: StoreName = name.parse().ok()?;
        let plan = Plan::resolve(&wishes(store), &Facts::now(model)).ok()?;
        let states = Some(STORE_STATES.min(sampled.stats.states).max(1));
        let limits = Limits { deadline: Instant::now().checked_add(STORE_TIME), states, ..Limits::default() };
        let bytes_per_state = sample(model, &plan, limits, None).store_bytes?;
        Some(StoreBytes { store: plan.store.clone(), bytes_per_state, exact: plan.codec.is_injective() })
    });
    let stores: Vec<StoreBytes> = stores.collect();
    interrupt::go_on();
    Ok(Ok(Outlook::new(options, model, &plan, &sampled, stores)))
}

/// Searches as far as the limits allow.
fn sample(model: &dyn Model, plan: &Plan, limits: Limits, missing: Option<&mut Missing>) -> Sample {
    let start = Instant::now();
    let budget = Budget::with_huge_pages(plan.pool_bytes, true);
    let progress = Progress::new(false, budget.clone(), None);
    let mut lookout = Lookout { progress, health: None, warns: false, missing };
    let room = PathRoom::new(budget.grant("trace", plan.pool_bytes));
    let mut control = Control { ask: ASK, limits, stop: interrupt::flag(), room, watch: &mut lookout };
    let Searched { outcome, ledger, .. } =
        interrupt::while_searching(|| search(model, plan, &budget, &mut control, None));
    let states = outcome.stats.states;
    let each = |bytes: u64| (states >= LEAST_STATES).then(|| bytes as f64 / states as f64);
    let store: u64 = ledger.iter().filter(|entry| entry.name == "store").map(|entry| entry.used_bytes).sum();
    let whole: u64 = ledger.iter().map(|entry| entry.peak_bytes).sum();
    Sample {
        complete: outcome.complete,
        seconds: start.elapsed().as_secs_f64(),
        store_bytes: each(store),
        whole_bytes: each(whole),
        stats: outcome.stats,
    }
}

impl Outlook {
    fn new(options: &PlanOptions, model: &dyn Model, plan: &Plan, sample: &Sample, stores: Vec<StoreBytes>) -> Outlook {
        let stats = &sample.stats;
        let states = match sample.complete {
            true => Some(Estimate::exactly(stats.states)),
            false => estimate::states(stats),
        };
        let used_bits: u32 = model.used_bits().iter().map(|word| word.count_ones()).sum();
        let expanded = stats.states.saturating_sub(stats.frontier).max(1);
        let rate = stats.states as f64 / sample.seconds.max(1e-3);
        let disk_bytes = options.disk.unwrap_or(0);
        let in_memory = sample.whole_bytes.map(|bytes| plan.pool_bytes as f64 / bytes.max(0.1));
        let likely = states.map(|states| states.likely as f64).or(in_memory).unwrap_or(0.0);
        // A key takes the logarithm of its distance to the next, and two bits.
        let key_bytes = ((f64::from(used_bits.min(64)) - likely.max(2.0).log2() + 2.0) / 8.0).max(0.5);
        let on_disk = disk_bytes as f64 / (key_bytes + LOG_BYTES);
        let on_disk = on_disk.min(plan.pool_bytes as f64 / ON_DISK_BYTES);
        let on_disk = in_memory.map(|in_memory| if disk_bytes > 0 { on_disk + in_memory } else { 0.0 });
        let [in_memory, on_disk] = [in_memory, on_disk].map(|states| states.map(|states| states as u64));
        let carried_by = match (in_memory, on_disk) {
            (Some(in_memory), Some(on_disk)) => Rung::of(states, in_memory, on_disk),
            // So few are all that there are, or it was cut so early that nothing is known.
            _ if sample.complete => Rung::Memory,
            _ => Rung::Unknown,
        };
        let slowdown = match carried_by {
            Rung::Memory | Rung::Unknown | Rung::Neither => 1.0,
            Rung::PerhapsMemory if disk_bytes == 0 => 1.0,
            Rung::PerhapsMemory | Rung::Disk | Rung::PerhapsDisk => DISK_SLOWDOWN,
        };
        let seconds = states.map(|states| match sample.complete {
            true => [sample.seconds; 2],
            false => [states.low as f64 / rate, states.high as f64 * slowdown / rate],
        });
        Outlook {
            state_bytes: model.width() * 4,
            used_bits,
            degree: stats.transitions as f64 / expanded as f64,
            sampled_states: stats.states,
            sampled_levels: stats.levels,
            sampled_seconds: sample.seconds,
            states_per_second: rate,
            workers: plan.workers,
            exact: sample.complete,
            states,
            store: plan.store.clone(),
            bytes_per_state: sample.whole_bytes,
            stores,
            memory_bytes: plan.memory_bytes,
            disk_bytes,
            states_in_memory: in_memory,
            states_on_disk: on_disk,
            carried_by,
            seconds,
            advice: carried_by.advice(disk_bytes > 0, sample.complete).into(),
        }
    }
}

impl Rung {
    fn of(states: Option<Estimate>, in_memory: u64, on_disk: u64) -> Rung {
        match states {
            None => Rung::Unknown,
            Some(states) if states.high <= in_memory => Rung::Memory,
            Some(states) if states.high <= on_disk && states.low > in_memory => Rung::Disk,
            Some(states) if states.low <= in_memory => Rung::PerhapsMemory,
            Some(states) if states.low <= on_disk => Rung::PerhapsDisk,
            Some(_) => Rung::Neither,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Rung::Memory => "memory",
            Rung::PerhapsMemory => "perhaps memory",
            Rung::Disk => "memory and disk",
            Rung::PerhapsDisk => "perhaps memory and disk",
            Rung::Neither => "neither memory nor disk",
            Rung::Unknown => "don't know",
        }
    }

    fn advice(self, disk: bool, complete: bool) -> &'static str {
        match self {
            _ if complete => "`plimsoll check` ends as soon as this did",
            Rung::Memory => "`plimsoll check` holds every state in memory",
            Rung::Disk => "`plimsoll check` with this --memory and --disk holds every state",
            Rung::PerhapsMemory if disk => "`plimsoll check` with this --memory and --disk goes on on disk if it must",
            Rung::PerhapsMemory => "`plimsoll check` may just fit; more --memory, or --disk, makes sure",
            Rung::PerhapsDisk => "`plimsoll check` with this --memory and --disk may just fit; more --disk makes sure",
            Rung::Neither if disk => {
                "more --memory or --disk; or a strategy that forgets, or a store that may miss states (`plimsoll strategies`)"
            }
            Rung::Neither => {
                "more --memory, or --disk; or a strategy that forgets, or a store that may miss states (`plimsoll strategies`)"
            }
            Rung::Unknown => {
                "a longer --sample-time may tell; `plimsoll check --time TIME` says how far it gets, with --checkpoint it can go on"
            }
        }
    }
}

fn text(outlook: &Outlook) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<18} {value}"));
    line(
        "states",
        match outlook.states {
            Some(states) if outlook.exact => format!("{}: all were visited", show_count(states.likely)),
            Some(states) => format!("about {}, {states}", show_count(states.likely)),
            None => format!("don't know, at least {}: levels do not show an end", show_count(outlook.sampled_states)),
        },
    );
    line("degree", format!("{:.2} successors", outlook.degree));
    line("state vector", format!("{} B, of it {} bits in use", outlook.state_bytes, outlook.used_bits));
    line(
        "bytes/state",
        match outlook.bytes_per_state {
            Some(bytes) => format!("{bytes:.1} in all ({} store)", outlook.store),
            None => format!("too few states to tell ({} store)", outlook.store),
        },
    );
    for store in &outlook.stores {
        let lossy = if store.exact { "" } else { ", may miss states" };
        line(&format!("  {}", store.store), format!("{:.1}{lossy}", store.bytes_per_state));
    }
    let memory = show_bytes(outlook.memory_bytes);
    let about =
        |states: Option<u64>| states.map_or(String::new(), |states| format!(": about {} states", show_count(states)));
    line("memory", memory + &about(outlook.states_in_memory));
    if outlook.disk_bytes > 0 {
        line("with disk", show_bytes(outlook.disk_bytes) + &about(outlook.states_on_disk));
    }
    line("carried by", outlook.carried_by.name().into());
    line(
        "time",
        match outlook.seconds {
            Some([from, _]) if outlook.exact => show_seconds(from),
            Some([from, to]) => format!("{} to {}", show_seconds(from), show_seconds(to)),
            None => "don't know".into(),
        },
    );
    line("sample", {
        let (states, seconds) = (show_count(outlook.sampled_states), show_seconds(outlook.sampled_seconds));
        let rate = show_count(outlook.states_per_second as u64);
        format!("{states} states on {} levels in {seconds}, {rate} a second", outlook.sampled_levels)
    });
    line("advice", outlook.advice.clone());
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rung_that_carries_all_is_named() {
        let states = |low, high| Some(Estimate { low, likely: low.midpoint(high), high });
        assert_eq!(Rung::of(states(10, 20), 20, 0), Rung::Memory);
        assert_eq!(Rung::of(states(10, 20), 19, 0), Rung::PerhapsMemory);
        assert_eq!(Rung::of(states(10, 20), 19, 1000), Rung::PerhapsMemory);
        assert_eq!(Rung::of(states(10, 20), 9, 1000), Rung::Disk);
        assert_eq!(Rung::of(states(10, 20), 9, 11), Rung::PerhapsDisk);
        assert_eq!(Rung::of(states(10, 20), 9, 0), Rung::Neither);
        assert_eq!(Rung::of(None, 9, 9), Rung::Unknown);
    }
}
