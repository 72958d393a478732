//! The `plimsoll` program. See [`plimsoll::program`].

#![forbid(unsafe_code)]

use plimsoll::program::Meter;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Meter = Meter;

fn main() -> ExitCode {
    ExitCode::from(plimsoll::program::run())
}
