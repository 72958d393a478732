//! The options of each command.

use super::choices::*;
use super::graphs::HideOptions;
use super::parts::*;
use super::stores::StoreName;
use crate::commands::sweep::Sizes;
use crate::presets::parse_redundancy;
use crate::size::{Size, parse_bytes, parse_duration};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct CheckOptions {
    #[command(flatten)]
    pub look_for: LookFor,
    #[command(flatten)]
    pub budget: BudgetOptions,
    #[command(flatten)]
    pub checkpoint: CheckpointOptions,
    #[command(flatten)]
    pub search: SearchOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    /// Write the trace to a file, for `replay`
    ///
    /// Write the trace of a violation to this file, for `replay`, or as FILE.trail for SPIN; - for standard output, and the
    /// report goes to standard error
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// List the statements (or transitions, or rules) that were never taken
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub unreached: bool,
    #[command(flatten)]
    pub draw: DrawOptions,
    #[command(flatten)]
    pub model: ModelOptions,
    /// The command line as it was given.
    #[arg(skip)]
    pub arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct ResumeOptions {
    /// The folder that was given to `check --checkpoint`
    pub folder: PathBuf,
    #[command(flatten)]
    pub budget: BudgetOptions,
    /// Threads [default: as before]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub workers: Option<u64>,
    /// How often to keep a checkpoint, at most [default: as before]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub checkpoint_every: Option<Duration>,
    /// Leave the last checkpoint where it is when the search ends with a verdict
    #[arg(long)]
    pub keep_checkpoint: bool,
    #[command(flatten)]
    pub output: OutputOptions,
    /// Write the trace of a violation to this file [default: as before]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub draw: DrawOptions,
}

#[derive(Debug, Args)]
pub struct GenerateOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    /// The file to write: FILE.lts for the compact format, FILE.dot for Graphviz, any other name for AUT, - for standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// If the search does not end, leave what was found as FILE.partial, which `check` refuses
    #[arg(long)]
    pub partial: bool,
    /// With a strategy that forgets: merge states that were found several times, so that the graph is that of the full search
    #[arg(long)]
    pub exact: bool,
    /// Print what was written as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub hide: HideOptions,
    #[command(flatten)]
    pub budget: BudgetOptions,
    #[command(flatten)]
    pub search: SearchOptions,
}

#[derive(Debug, Args)]
pub struct SimulateOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    /// The same number gives the same walk [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop after this many steps
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub steps: u64,
    /// Choose every step yourself
    #[arg(long, short)]
    pub interactive: bool,
    /// Tell where the expression is false (repeatable); what the model itself claims is watched anyway
    #[arg(long, value_name = "EXPR")]
    pub invariant: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ReplayOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    /// A trace (`check --trace FILE`), a report (`check --json`), or a trail of SPIN (FILE.trail)
    pub trace: PathBuf,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub draw: DrawOptions,
}

#[derive(Debug, Args)]
pub struct InfoOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    /// Print the textual form of the intermediate representation instead
    #[arg(long)]
    pub ir: bool,
    /// Describe the system as the front end made it, before it is simplified
    #[arg(long)]
    pub unoptimised: bool,
}

#[derive(Debug, Args)]
pub struct PlanOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    /// Memory that the check would have, and the sample has: 512M, 1.5G, 50%
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Disk space that the check would have [default: none]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub disk: Option<u64>,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub workers: Option<u64>,
    /// Search so long before anything is said
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "3s")]
    pub sample_time: Duration,
    /// Search so many states at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sample_states: Option<u64>,
    /// Print the answer as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The folder with the models (in it, or in its folder `models`)
    pub folder: PathBuf,
    /// The table: of DVE, Promela or Murphi models, by its head line [default: counts.csv in the folder]
    #[arg(long, value_name = "FILE")]
    pub counts: Option<PathBuf>,
    /// Instead of a table, ask a checker that is installed here about every model of its language
    #[arg(long, value_enum, conflicts_with = "counts")]
    pub oracle: Option<OracleName>,
    /// Leave out models with more states
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    pub max_states: u64,
    /// Which search orders to run
    #[arg(long, value_enum, default_value_t = OrderChoice::Bfs)]
    pub order: OrderChoice,
    /// How visited states are held
    #[arg(long, value_name = "NAME", default_value_t = StoreName::Auto)]
    pub store: StoreName,
    /// How successors are computed
    #[arg(long, value_enum, default_value_t = ExecutorName::Jit)]
    pub executor: ExecutorName,
    /// Which overflow semantics to run; error where the table has a count for it
    #[arg(long, value_enum, default_value_t = OverflowChoice::Both)]
    pub overflow: OverflowChoice,
    /// Only instances whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// How many models to check at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub jobs: u64,
    /// Memory for each check
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Time for each check, and for each question to the oracle [default: none, and 60s]
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Print differences and the summary only
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct SweepOptions {
    /// A model, or a folder with models (in it, or in its folder `models`)
    pub models: PathBuf,
    /// The folder for tables, summary and plots; what is there already is not measured again
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// A strategy to try (repeatable) [default: every rule in a cache, a chain, cover, sleep sets and levels]
    #[arg(long, value_name = "NAME")]
    pub strategy: Vec<String>,
    /// Compare stores: all of them with every state held, and Huffman codes in stratified caches
    #[arg(long, conflicts_with = "resources")]
    pub stores: bool,
    /// Ask how many states each strategy explores with more and more memory, and with more and more time
    #[arg(long)]
    pub resources: bool,
    /// With --resources: memory to try; the largest goes with each time
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "32M,64M,128M,256M,512M")]
    #[arg(value_parser = parse_bytes, requires = "resources", conflicts_with = "memory")]
    pub memories: Vec<u64>,
    /// With --resources: times to try; the longest goes with each memory
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1s,2s,4s,8s,16s")]
    #[arg(value_parser = parse_duration, requires = "resources")]
    pub times: Vec<Duration>,
    /// Cache sizes in per cent of the states of a model: 10..100 goes by tens, 5,10..50 is a list
    #[arg(long, value_name = "LIST", default_value = "10..100")]
    pub sizes: Sizes,
    /// Search orders to try, where the strategy allows them [default: bfs,dfs, and with --stores bfs]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub orders: Vec<Order>,
    /// A run fails when it has visited this many times the states of the model
    #[arg(long, value_name = "FACTOR", default_value = "6x", value_parser = parse_redundancy)]
    pub limit: u64,
    /// Try large caches first, and none below a size that fails
    #[arg(long)]
    pub stop_at_failure: bool,
    /// Leave out models with fewer states
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub min_states: u64,
    /// Leave out models with more states
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub max_states: u64,
    /// Only models whose file name contains this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// How many runs at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub jobs: Option<u64>,
    /// Memory for each run [default: what is available, divided by the number of jobs]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Print the summary only
    #[arg(long, short)]
    pub quiet: bool,
    /// Options of `check` that hold for every run, after --
    #[arg(last = true, value_name = "OPTIONS OF CHECK")]
    pub check_options: Vec<String>,
}

#[derive(Debug, Args)]
pub struct CrosscheckOptions {
    /// The model file
    pub model: PathBuf,
    /// Options of `check` that hold for every run, after --
    #[arg(last = true, value_name = "OPTIONS OF CHECK")]
    pub check_options: Vec<String>,
    /// Leave models with more states alone
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_states: u64,
    /// Memory for each run that is not given less
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    pub memory: String,
    /// Time for each run
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub time: String,
    /// How many runs at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub jobs: Option<u64>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}
