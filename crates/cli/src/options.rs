//! What can be asked on the command line. Nothing here decides anything; see [`crate::plan`].

mod choices;
mod commands;
mod graphs;
mod parts;
mod stores;

pub use choices::*;
pub use commands::*;
pub use graphs::*;
pub use parts::*;
pub use stores::*;

use crate::examples::*;
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

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
    /// Go on with a search from its checkpoint, perhaps with another budget
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(Box<ResumeOptions>),
    /// Write the reachable graph of a model to a file
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(Box<GenerateOptions>),
    /// Write a graph file in another format
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertOptions),
    /// Look at graph files: count, compare, minimise
    #[command(after_help = LTS_EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Lts {
        #[command(subcommand)]
        command: LtsCommand,
    },
    /// Walk through a model, at random or by hand
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateOptions),
    /// Follow a stored trace step by step and verify that it ends as it claims
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayOptions),
    /// Describe a model: processes, fields and their bits, commands and what they touch
    #[command(after_help = INFO_EXAMPLES)]
    Info(InfoOptions),
    /// Say what a check would take, from a few seconds of it: how many states, how much memory, how long
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanOptions),
    /// Check every model of a folder and compare the counts with a table
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareOptions),
    /// Try strategies that forget, with caches of several sizes, on a model or on a folder of models
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(SweepOptions),
    /// Check a model under everything that must not change the answer, and tell what disagrees
    #[command(after_help = CROSSCHECK_EXAMPLES)]
    Crosscheck(CrosscheckOptions),
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
        let program = Options::command();
        let below = |command: &clap::Command| {
            let path = command.get_name().to_string();
            let own: Vec<_> =
                command.get_subcommands().map(|own| (format!("{path} {}", own.get_name()), own.clone())).collect();
            std::iter::once((path, command.clone())).chain(own)
        };
        for (path, command) in program.get_subcommands().flat_map(below) {
            let examples = command.get_after_long_help().or(command.get_after_help());
            let examples = examples.map(|text| text.to_string()).unwrap_or_default();
            assert!(examples.contains(&format!("plimsoll {path}")), "{path}");
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
            "check m --checkpoint-every 1m",
            "check m --keep-checkpoint",
            "check m --checkpoint d --checkpoint-every soon",
            "resume",
            "resume d m",
            "resume d --store plain",
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
