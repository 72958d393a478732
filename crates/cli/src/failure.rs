//! Why a command ends without a verdict, and the exit codes.

use crate::plan::PlanError;
use plimsoll_lang::LoadError;
use std::fmt;

/// Exit codes, the same for every command.
pub mod exit {
    pub const HOLDS: u8 = 0;
    /// `compare` found differences.
    pub const DIFFERENT: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const MODEL: u8 = 3;
    pub const DEADLOCK: u8 = 10;
    pub const ERROR: u8 = 11;
    pub const PROPERTY: u8 = 12;
    pub const UNKNOWN: u8 = 20;
    pub const HOLDS_UNLESS: u8 = 21;
    pub const HOLDS_TO_DEPTH: u8 = 22;
    pub const INTERNAL: u8 = 70;
}

/// Something that keeps a command from doing its work; the text is complete, possibly of several lines.
#[derive(Debug)]
pub enum Failure {
    /// Options, files, budget.
    Usage(String),
    /// The text of the model.
    Model(String),
    /// A fault of this program.
    Internal(String),
}

impl Failure {
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure::Usage(format!("error: {message}"))
    }

    pub fn internal(message: impl fmt::Display) -> Failure {
        Failure::Internal(format!("internal error: {message}\n{REQUEST}"))
    }

    /// Sorts out whose fault it is that a model could not be loaded.
    pub fn of_load(error: &LoadError, styled: bool) -> Failure {
        let text = error.render(styled).trim_end().to_string();
        match error {
            LoadError::NotText { .. }
            | LoadError::Empty { .. }
            | LoadError::Graph { .. }
            | LoadError::Diagnostics { .. } => Failure::Model(text),
            _ => Failure::Usage(text),
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => exit::USAGE,
            Failure::Model(_) => exit::MODEL,
            Failure::Internal(_) => exit::INTERNAL,
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Failure::Usage(text) | Failure::Model(text) | Failure::Internal(text) => text,
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
        Failure::usage(error)
    }
}

/// Asked of everybody who meets an internal error.
pub const REQUEST: &str =
    "This is a bug in plimsoll, not in your model. Please report it with the model and the command line.";
