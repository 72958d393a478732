//! Options that several commands share.

use super::choices::*;
use super::stores::StoreName;
use crate::presets::parse_redundancy;
use crate::size::{Size, parse_bytes, parse_duration};
use clap::Args;
use clap::builder::Resettable;
use plimsoll_store::Room;
use std::path::PathBuf;
use std::time::Duration;

/// Which model, and how its text is meant.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelOptions {
    /// The model file; - for standard input, with --language
    #[arg(help_heading = Resettable::Reset)]
    pub model: PathBuf,
    /// The language, if the extension does not tell
    #[arg(long, value_enum, value_name = "NAME")]
    pub language: Option<LanguageName>,
    /// Merge local steps
    ///
    /// Merge local steps of a process and reset what it does not need any more: fewer states, the same verdict
    /// [default: on when a Promela model is checked, else off]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub merge: Option<SwitchName>,
    /// What storing a value that does not fit does [default: wrap]
    #[arg(long, value_enum, hide_short_help = true)]
    pub overflow: Option<OverflowName>,
    /// Which states are deadlocked [default: stuttering in Murphi, else stuck]
    #[arg(long, value_enum, hide_short_help = true)]
    pub deadlock: Option<DeadlockName>,
    /// Leave out the LTL property of a model (DVE, Promela), instead of refusing the model
    #[arg(long, hide_short_help = true)]
    pub ignore_property: bool,
    /// Promela: define a macro (repeatable)
    #[arg(short = 'D', long = "define", value_name = "NAME[=TEXT]")]
    pub define: Vec<String>,
    /// Murphi: give a constant another value (repeatable)
    #[arg(long = "const", value_name = "NAME=VALUE", value_parser = parse_constant)]
    pub constant: Vec<(String, i64)>,
    /// Murphi: visit one state of each orbit of the model's scalarsets [default: off]
    #[arg(long, value_enum, default_value_t, hide_short_help = true, hide_default_value = true)]
    pub symmetry: SymmetryName,
    /// Murphi: whose meaning counts where the tools differ [default: cmurphi]
    #[arg(long, value_enum, hide_short_help = true)]
    pub dialect: Option<DialectName>,
    /// Murphi: rounds of a `while` loop before it counts as endless
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub loop_limit: Option<u32>,
}

fn parse_constant(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let number = value.trim().parse().map_err(|_| format!("`{value}` is not a whole number"))?;
    Ok((name.trim().to_string(), number))
}

/// What counts as wrong.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What to look for")]
pub struct LookFor {
    /// Search for a state where EXPR is true
    ///
    /// Search for a state where the expression is true, and for nothing else (repeatable)
    #[arg(long, value_name = "EXPR")]
    pub find: Vec<String>,
    /// Report states where EXPR is false
    ///
    /// Report states where the expression is false (repeatable)
    #[arg(long, value_name = "EXPR")]
    pub invariant: Vec<String>,
    /// Guided searches: what to make small, instead of a guess from the goals (--strategy best, astar, ida, sma, beam)
    #[arg(long, value_name = "EXPR", hide_short_help = true, help_heading = "Search")]
    pub cost: Option<String>,
    /// Do not report deadlocks
    ///
    /// Count deadlocks, but do not report them; the same as `--deadlock off`
    #[arg(long)]
    pub no_deadlock: bool,
    /// Count failed assertions and errors in the model, but do not report them
    #[arg(long, hide_short_help = true)]
    pub no_errors: bool,
    /// Visit everything and count all violations; the first is reported
    #[arg(long, hide_short_help = true)]
    pub keep_going: bool,
    /// One shortest trace for each property and each statement that fails
    ///
    /// Report not only the first violation, but one for each property, each assertion and each statement that goes wrong, and
    /// one deadlock, with a shortest trace each. The model is searched once for each, and steps are not merged
    #[arg(long, conflicts_with = "unreached", hide_short_help = true)]
    pub all_violations: bool,
}

/// When to give up.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Budget")]
pub struct BudgetOptions {
    /// Memory for the whole process: 512M, 1.5G, 50%
    ///
    /// Memory for the whole process: 512M, 1.5G, bytes, or 50% [default: 3/4 of what is available, within the cgroup limit]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Disk space for what can wait [default: none]
    ///
    /// Disk space for visited states when memory is full, for states that wait, for the step log and for the stack [default:
    /// none]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub disk: Option<u64>,
    /// Disk space for the step log, of all of it [default: what there is]
    ///
    /// Disk space for the step log, of all of it [default: what there is]. When it is used up, or little is left of the disk, a level is kept in place of the steps before it;
    /// a trace is then found by searching again between the levels that were kept, and is as short as with a whole log
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, hide_short_help = true)]
    pub step_log: Option<u64>,
    /// Where temporary files go; several folders are used in turn [default: the system's folder for them]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub spill_dir: Vec<PathBuf>,
    /// Give up after this time: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub time: Option<Duration>,
    /// Give up after this many states
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    pub max_states: Option<u64>,
    /// Visit no state that is more than this many steps away
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub max_depth: Option<u32>,
}

/// How to go on another day.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Budget")]
pub struct CheckpointOptions {
    /// Keep here what `resume` needs
    ///
    /// Keep what `plimsoll resume DIR` needs to go on in this folder: now and then, and when the search runs out of something
    /// or is interrupted. Breadth first, with every state held. It is removed when the search ends with a verdict
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// How often, at most
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10m", requires = "checkpoint")]
    #[arg(hide_short_help = true)]
    pub checkpoint_every: Duration,
    /// Leave the last checkpoint where it is when the search ends with a verdict
    #[arg(long, requires = "checkpoint", hide_short_help = true)]
    pub keep_checkpoint: bool,
}

/// How to search.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchOptions {
    /// Breadth or depth first
    ///
    /// Breadth first (shortest traces) or depth first [default: bfs; dfs for caches and sleep sets]
    #[arg(long, value_enum)]
    pub order: Option<Order>,
    /// What to do where memory is short: see `plimsoll strategies`
    ///
    /// What is remembered and what is left out: full, cache:LRU, cover, sleep, sleep+cache:RND, ... (see `strategies`)
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// Forget states when the memory for them is full: a rule, or a chain of them with shares (MFU:25%,LRU:75%)
    #[arg(long, value_name = "RULES", hide_short_help = true)]
    pub cache: Option<String>,
    /// How much a cache holds: states (600), bytes (64M) or a share of the memory for states (20%) [default: what fits]
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub cache_size: Option<Room>,
    /// Give up when states are visited more often than this on average [default: 6x if the search need not end]
    #[arg(long, value_name = "FACTOR", value_parser = parse_redundancy, hide_short_help = true)]
    pub redundancy_limit: Option<u64>,
    /// Rather than give up for lack of memory, go on with a filter that may miss states: `holds unless collision` at best
    #[arg(long, hide_short_help = true)]
    pub lossy: bool,
    /// What random walks and swarms draw: the same number, the same search [default: 0]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// How visited states are held: see `plimsoll strategies`
    ///
    /// How visited states are held: auto, plain, packed, tree, huffman:static or huffman:trained(bfs,N), which are exact; digest:40, digest:64, digest:128, bitstate:K or
    /// adaptive, which may take a state for another, so that at best the model `holds unless collision`
    #[arg(long, value_name = "NAME", default_value_t = StoreName::Auto, hide_short_help = true)]
    pub store: StoreName,
    /// How successors are computed: native code, or the interpreter
    #[arg(long, value_enum, default_value_t = ExecutorName::Jit, hide_short_help = true)]
    pub executor: ExecutorName,
    /// Threads of a breadth-first search
    ///
    /// Search breadth first with so many threads; the report is the same [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub workers: Option<u64>,
    /// Let large tables use huge pages, which saves address translation
    #[arg(long, value_enum, default_value_t = SwitchName::On, hide_short_help = true)]
    pub huge_pages: SwitchName,
}

/// What is printed.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print the verdict only
    #[arg(long, short)]
    pub quiet: bool,
    /// Colours: on terminals, always or never
    #[arg(long, value_enum, default_value_t = ColorName::Auto, hide_short_help = true)]
    pub color: ColorName,
    /// Print every step of a long trace
    #[arg(long)]
    pub full_trace: bool,
}

/// Other forms of a trace.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct DrawOptions {
    /// Draw the trace as a message sequence chart
    ///
    /// Draw the trace as a message sequence chart: FILE.svg, any other name for text, - for standard output. Of a long one
    /// the middle is left out
    #[arg(long, value_name = "FILE")]
    pub msc: Option<PathBuf>,
}
