//! Plimsoll: a memory-aware explicit-state model checker.

#![forbid(unsafe_code)]

mod commands;
mod dispatch;
mod executor;
mod failure;
mod interrupt;
mod machine;
mod options;
mod output;
mod plan;
pub mod program;
mod progress;
mod report;
mod size;
mod subject;
mod view;
