//! The `plimsoll` program. See [`plimsoll::program`].

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(plimsoll::program::run())
}
