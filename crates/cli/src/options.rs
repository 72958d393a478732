//! What can be asked on the command line. Nothing here decides anything; see [`crate::plan`].

use crate::commands::sweep::Sizes;
use crate::presets::parse_redundancy;
use crate::size::{Size, parse_bytes, parse_duration};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use plimsoll_store::Room;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, about = "Check models of concurrent systems within a memory budget", after_help = EXAMPLES)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Visit every reachable state and say whether something can go wrong
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Box<CheckOptions>),
    /// Write the reachable graph of a model to a file in the AUT format
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(Box<GenerateOptions>),
    /// Walk through a model, at random or by hand
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateOptions),
    /// Follow a stored trace step by step and verify that it ends as it claims
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayOptions),
    /// Describe a model: processes, fields and their bits, commands and what they touch
    #[command(after_help = INFO_EXAMPLES)]
    Info(InfoOptions),
    /// Check every model of a folder and compare the counts with a table
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareOptions),
    /// Try strategies that forget, with caches of several sizes, on a model or on a folder of models
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(SweepOptions),
    /// List the strategies of `check --strategy` and what each promises
    #[command(after_help = STRATEGIES_EXAMPLES)]
    Strategies,
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
}

const EXAMPLES: &str = "\
Examples:
  plimsoll check model.dve
  plimsoll check model.dve --memory 2G --find 'x == 3 && P.critical'
  plimsoll simulate model.dve --seed 7 --steps 30
  plimsoll COMMAND --help

Exit codes:
  0 holds   10 deadlock   11 assertion or error in the model   12 invariant violated or goal found
  20 unknown (memory, disk, time, ... ran out)   22 holds to a depth
  2 wrong usage   3 error in the model text   70 internal error";

const CHECK_EXAMPLES: &str = "\
Examples:
  plimsoll check model.dve                              deadlocks, errors, assertions
  plimsoll check model.dve --find 'P0.critical && P1.critical'
  plimsoll check model.dve --invariant 'count <= 4' --trace bad.json
  plimsoll check model.dve --memory 1G --disk 20G --time 1h
  plimsoll check model.dve --json --keep-going --no-deadlock";

const GENERATE_EXAMPLES: &str = "\
Examples:
  plimsoll generate model.dve --output model.aut
  plimsoll generate model.pml --output model.aut --memory 4G";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  plimsoll simulate model.dve                           a random walk, different each time
  plimsoll simulate model.dve --seed 7 --steps 100      the same walk each time
  plimsoll simulate model.dve --interactive             choose every step yourself";

const REPLAY_EXAMPLES: &str = "\
Examples:
  plimsoll check model.dve --trace bad.json
  plimsoll replay model.dve bad.json
  plimsoll check model.dve --json > report.json; plimsoll replay model.dve report.json
  plimsoll replay model.pml model.pml.trail --msc chart.svg";

const INFO_EXAMPLES: &str = "\
Examples:
  plimsoll info model.dve
  plimsoll info model.dve --ir > model.ir; plimsoll check model.ir";

const COMPARE_EXAMPLES: &str = "\
Examples:
  plimsoll compare corpus                               corpus/counts.csv, models in corpus/models or corpus
  plimsoll compare corpus --order both --max-states 1000000 --filter peterson
  plimsoll compare corpus --executor interp --jobs 4
  plimsoll compare models --oracle rumur --time 30s     no table: ask Rumur about every Murphi model";

const SWEEP_EXAMPLES: &str = "\
Examples:
  plimsoll sweep model.dve --out results                every strategy, 10 % to 100 % of the states, both orders
  plimsoll sweep corpus --out results --min-states 10000 --max-states 1000000 --jobs 4
  plimsoll sweep model.dve --out results --strategy cache:SC --strategy sleep+cache:LFU --sizes 5,10..50 --orders bfs,dfs
  Run it again with the same folder to go on after an interruption, or with more strategies or sizes to add them.";

const STRATEGIES_EXAMPLES: &str = "\
Examples:
  plimsoll strategies
  plimsoll check model.dve --strategy cover --cache-size 20%
  plimsoll check model.dve --strategy sleep+cache:LFU --cache-size 600
  plimsoll check model.dve --cache 'MFU:25%,LRU:75%' --cache-size 64M";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  plimsoll completions bash > plimsoll.bash
  plimsoll completions zsh > _plimsoll";

/// Which model, and how its text is meant.
#[derive(Clone, Debug, Args)]
pub struct ModelOptions {
    /// The model file
    pub model: PathBuf,
    /// The language of the model, if its extension does not tell
    #[arg(long, value_enum)]
    pub language: Option<LanguageName>,
    /// What storing a value that does not fit does [default: wrap]
    #[arg(long, value_enum)]
    pub overflow: Option<OverflowName>,
    /// Merge local steps of a process and reset what it does not need any more: fewer states, the same verdict
    /// [default: on when a Promela model is checked, else off]
    #[arg(long, value_enum)]
    pub merge: Option<SwitchName>,
    /// Leave out the property process of a model with an LTL property, instead of refusing the model
    #[arg(long)]
    pub ignore_property: bool,
    /// Promela: define a macro (repeatable)
    #[arg(short = 'D', long = "define", value_name = "NAME[=TEXT]")]
    pub define: Vec<String>,
    /// Murphi: give a constant another value (repeatable)
    #[arg(long = "const", value_name = "NAME=VALUE", value_parser = parse_constant)]
    pub constant: Vec<(String, i64)>,
    /// Murphi: whose meaning counts where the tools differ [default: cmurphi]
    #[arg(long, value_enum)]
    pub dialect: Option<DialectName>,
    /// Murphi: rounds of a `while` loop before it counts as endless
    #[arg(long, value_name = "N")]
    pub loop_limit: Option<u32>,
    /// Which states are deadlocked [default: stuttering in Murphi, else stuck]
    #[arg(long, value_enum)]
    pub deadlock: Option<DeadlockName>,
    /// Murphi: visit one state of each orbit of the model's scalarsets
    #[arg(long, value_enum, default_value_t)]
    pub symmetry: SymmetryName,
}

/// Something that can be turned on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchName {
    On,
    Off,
}

/// A Murphi dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DialectName {
    Cmurphi,
    Rumur,
}

/// When a state is deadlocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeadlockName {
    /// No step is possible
    Stuck,
    /// No step leads to another state
    Stuttering,
    /// Deadlocks are not reported
    Off,
}

/// How far symmetry is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SymmetryName {
    #[default]
    Off,
    /// Sort; quick, but several states of an orbit may be visited
    Heuristic,
    /// Exactly one state of each orbit
    Exact,
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
    /// Search for a state where the expression is true, and for nothing else (repeatable)
    #[arg(long, value_name = "EXPR")]
    pub find: Vec<String>,
    /// Report states where the expression is false (repeatable)
    #[arg(long, value_name = "EXPR")]
    pub invariant: Vec<String>,
    /// Count deadlocks, but do not report them; the same as `--deadlock off`
    #[arg(long)]
    pub no_deadlock: bool,
    /// Count failed assertions and errors in the model, but do not report them
    #[arg(long)]
    pub no_errors: bool,
    /// Visit everything and count all violations; the first is reported
    #[arg(long)]
    pub keep_going: bool,
}

/// When to give up.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Budget")]
pub struct BudgetOptions {
    /// Memory for the whole process: 512M, 1.5G, bytes, or 50% [default: 3/4 of what is available, within the cgroup limit]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Disk space for states that wait and for the step log [default: none]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub disk: Option<u64>,
    /// Where temporary files go [default: the system's folder for them]
    #[arg(long, value_name = "DIR")]
    pub spill_dir: Option<PathBuf>,
    /// Give up after this time: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub time: Option<Duration>,
    /// Give up after this many states
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_states: Option<u64>,
    /// Visit no state that is more than this many steps away
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u32>,
}

/// How to search.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchOptions {
    /// Breadth first (shortest traces) or depth first [default: bfs; dfs for caches and sleep sets]
    #[arg(long, value_enum)]
    pub order: Option<Order>,
    /// What is remembered and what is left out: full, cache:LRU, cover, sleep, sleep+cache:RND, ... (see `strategies`)
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// Forget states when the memory for them is full: a rule, or a chain of them with shares (MFU:25%,LRU:75%)
    #[arg(long, value_name = "RULES")]
    pub cache: Option<String>,
    /// How much a cache holds: states (600), bytes (64M) or a share of the memory for states (20%) [default: what fits]
    #[arg(long, value_name = "SIZE")]
    pub cache_size: Option<Room>,
    /// Give up when states are visited more often than this on average [default: 6x if the search need not end]
    #[arg(long, value_name = "FACTOR", value_parser = parse_redundancy)]
    pub redundancy_limit: Option<u64>,
    /// How visited states are held
    #[arg(long, value_enum, default_value_t = StoreName::Auto)]
    pub store: StoreName,
    /// How successors are computed: native code, or the interpreter
    #[arg(long, value_enum, default_value_t = ExecutorName::Jit)]
    pub executor: ExecutorName,
    /// Search breadth first with so many threads; the report is the same [default: one for each processor, up to 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub workers: Option<u64>,
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
    #[arg(long, value_enum, default_value_t = ColorName::Auto)]
    pub color: ColorName,
    /// Print every step of a long trace
    #[arg(long)]
    pub full_trace: bool,
}

#[derive(Debug, Args)]
pub struct CheckOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub look_for: LookFor,
    #[command(flatten)]
    pub budget: BudgetOptions,
    #[command(flatten)]
    pub search: SearchOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    /// Write the trace of a violation to this file, for `replay`, or as FILE.trail for SPIN
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// List the statements (or transitions, or rules) that were never taken
    #[arg(long, help_heading = "Output")]
    pub unreached: bool,
    #[command(flatten)]
    pub draw: DrawOptions,
}

/// Other forms of a trace.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct DrawOptions {
    /// Draw the trace as a message sequence chart: FILE.svg, any other name for text, - for standard output
    #[arg(long, value_name = "FILE")]
    pub msc: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct GenerateOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Memory for the whole process
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
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
    #[arg(long, value_enum, default_value_t = StoreName::Auto)]
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
    /// A strategy to try (repeatable) [default: every rule in a cache, a chain, cover and sleep sets]
    #[arg(long, value_name = "NAME")]
    pub strategy: Vec<String>,
    /// Cache sizes in per cent of the states of a model: 10..100 goes by tens, 5,10..50 is a list
    #[arg(long, value_name = "LIST", default_value = "10..100")]
    pub sizes: Sizes,
    /// Search orders to try, where the strategy allows them
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Order::Bfs, Order::Dfs])]
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LanguageName {
    Dve,
    Aut,
    Promela,
    Murphi,
    /// The textual intermediate representation
    Ir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverflowName {
    /// Keep the low bits
    Wrap,
    /// Is an error of the model
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub enum Order {
    #[default]
    Bfs,
    Dfs,
    /// Depth first, the last successor first (the order in which SPIN takes processes)
    DfsReverse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub enum StoreName {
    /// Packed if states use few enough bits, else the tree
    #[default]
    Auto,
    /// States as they are
    Plain,
    /// The bits that states use, at most 128, less what their place tells
    Packed,
    /// Tree compression
    Tree,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub enum ExecutorName {
    #[default]
    Jit,
    Interp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorName {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderChoice {
    Bfs,
    Dfs,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverflowChoice {
    Wrap,
    Error,
    Both,
}

/// A checker that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OracleName {
    Spin,
    Rumur,
}

/// The name by which a value is given on the command line.
pub fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

impl ColorName {
    /// Is output to this stream to be coloured?
    pub fn wanted(self, stream: &impl std::io::IsTerminal) -> bool {
        match self {
            ColorName::Auto => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            ColorName::Always => true,
            ColorName::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_table_of_options_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples_and_every_option_says_what_it_does() {
        for command in Options::command().get_subcommands() {
            let examples = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
            assert!(examples.contains(&format!("plimsoll {}", command.get_name())), "{}", command.get_name());
            assert!(command.get_arguments().all(|option| option.get_help().is_some()), "{}", command.get_name());
        }
    }

    #[test]
    fn bad_values_are_refused() {
        for line in [
            "check m --memory x",
            "check m --time 3y",
            "check m --order best",
            "check m --max-states 0",
            "check m --workers 0",
            "check",
            "check m n",
            "check m --unknown",
            "compare f --jobs 0",
            "sweep m",
            "sweep m --out o --sizes 0",
            "sweep m --out o --orders best",
            "sweep m --out o --limit 0.5x",
            "check m --cache-size 0",
            "check m --redundancy-limit 0.5x",
            "",
        ] {
            let words = std::iter::once("plimsoll").chain(line.split_whitespace());
            assert!(Options::try_parse_from(words).is_err(), "{line}");
        }
    }
}
