//! What can be asked on the command line. Nothing here decides anything; see [`crate::plan`].

use crate::commands::sweep::Sizes;
use crate::examples::*;
use crate::presets::parse_redundancy;
use crate::size::{Size, parse_bytes, parse_duration};
use clap::builder::Resettable;
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
    #[command(after_help = "`plimsoll check --help` shows all options and examples.", after_long_help = CHECK_EXAMPLES)]
    Check(Box<CheckOptions>),
    /// Write the reachable graph of a model to a file, in the AUT format or for Graphviz
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
    /// Print the manual page, or write those of all commands into a folder
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The folder for the pages; without it, the page of the program goes to standard output
        folder: Option<PathBuf>,
    },
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
}

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
    /// Disk space for states that wait, for the step log and for the stack [default: none]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub disk: Option<u64>,
    /// Where temporary files go [default: the system's folder for them]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub spill_dir: Option<PathBuf>,
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
    /// How visited states are held
    #[arg(long, value_enum, default_value_t = StoreName::Auto, hide_short_help = true)]
    pub store: StoreName,
    /// How successors are computed: native code, or the interpreter
    #[arg(long, value_enum, default_value_t = ExecutorName::Jit, hide_short_help = true)]
    pub executor: ExecutorName,
    /// Threads of a breadth-first search
    ///
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
    #[arg(long, value_enum, default_value_t = ColorName::Auto, hide_short_help = true)]
    pub color: ColorName,
    /// Print every step of a long trace
    #[arg(long)]
    pub full_trace: bool,
}

#[derive(Debug, Args)]
pub struct CheckOptions {
    #[command(flatten)]
    pub look_for: LookFor,
    #[command(flatten)]
    pub budget: BudgetOptions,
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

#[derive(Debug, Args)]
pub struct GenerateOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    /// The file to write: FILE.dot for Graphviz, any other name for the AUT format, - for standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// If the search does not end, leave what was found as FILE.partial, which `check` refuses
    #[arg(long)]
    pub partial: bool,
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
            ColorName::Auto => stream.is_terminal() && !is_plain(),
            ColorName::Always => true,
            ColorName::Never => false,
        }
    }
}

/// Does the terminal, or the person before it, want nothing but text?
pub fn is_plain() -> bool {
    let is = |name: &str, wanted: &dyn Fn(&std::ffi::OsStr) -> bool| {
        std::env::var_os(name).is_some_and(|text| wanted(&text))
    };
    is("NO_COLOR", &|text| !text.is_empty()) || is("TERM", &|text| text == "dumb")
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
            let examples = command.get_after_long_help().or(command.get_after_help());
            let examples = examples.map(|text| text.to_string()).unwrap_or_default();
            assert!(examples.contains(&format!("plimsoll {}", command.get_name())), "{}", command.get_name());
            assert!(command.get_arguments().all(|option| option.get_help().is_some()), "{}", command.get_name());
        }
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        let mut program = Options::command().term_width(80);
        program.build();
        let help = program.find_subcommand_mut("check").unwrap().render_help().to_string();
        assert!(help.lines().count() <= 45 && help.lines().all(|line| line.len() <= 80), "{help}");
        let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}"));
        let order = ["<MODEL>  The model", "--find", "--memory", "--language <NAME>"].map(at);
        assert!(order.is_sorted(), "what is used most comes first: {help}");
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
