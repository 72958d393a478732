//! The options of commands for graph files.

use crate::graph_file::Hidden;
use crate::size::Size;
use clap::{Args, Subcommand, ValueEnum};
use regex::Regex;
use std::path::PathBuf;

/// Labels that are to be silent.
#[derive(Clone, Debug, Default, Args)]
pub struct HideOptions {
    /// Make transitions silent whose label matches the pattern (repeatable); ^...$ for whole labels
    #[arg(long, value_name = "REGEX")]
    pub hide: Vec<Regex>,
}

impl HideOptions {
    pub fn hidden(&self) -> Hidden {
        Hidden(self.hide.clone())
    }
}

/// When states count as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EquivalenceName {
    /// Strong bisimulation
    #[default]
    Strong,
    /// Branching bisimulation: silent steps that decide nothing do not count
    Branching,
}

#[derive(Debug, Args)]
pub struct ConvertOptions {
    /// A graph file, in the AUT or the compact format
    pub input: PathBuf,
    /// The file to write: FILE.lts for the compact format, FILE.dot for Graphviz, any other name for AUT
    pub output: PathBuf,
    #[command(flatten)]
    pub hide: HideOptions,
    /// Memory for the whole process
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
}

#[derive(Debug, Subcommand)]
pub enum LtsCommand {
    /// Count states, transitions and labels
    #[command(after_help = crate::examples::LTS_INFO_EXAMPLES)]
    Info(LtsInfoOptions),
    /// Are two graphs equivalent, and if not, where do they differ?
    #[command(after_help = crate::examples::LTS_COMPARE_EXAMPLES)]
    Compare(LtsCompareOptions),
    /// Write the smallest graph that is equivalent
    #[command(after_help = crate::examples::LTS_MINIMISE_EXAMPLES)]
    Minimise(LtsMinimiseOptions),
}

#[derive(Debug, Args)]
pub struct LtsInfoOptions {
    /// A graph file
    pub file: PathBuf,
    /// Memory for the whole process
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
}

#[derive(Debug, Args)]
pub struct LtsCompareOptions {
    /// A graph file
    pub one: PathBuf,
    /// Another
    pub other: PathBuf,
    /// When states count as equal
    #[arg(long, value_enum, default_value_t)]
    pub equivalence: EquivalenceName,
    #[command(flatten)]
    pub hide: HideOptions,
    /// Memory for the whole process
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
}

#[derive(Debug, Args)]
pub struct LtsMinimiseOptions {
    /// A graph file
    pub file: PathBuf,
    /// The file to write: FILE.lts for the compact format, FILE.dot for Graphviz, any other name for AUT, - for standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// When states count as equal
    #[arg(long, value_enum, default_value_t)]
    pub equivalence: EquivalenceName,
    #[command(flatten)]
    pub hide: HideOptions,
    /// Memory for the whole process
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
}
