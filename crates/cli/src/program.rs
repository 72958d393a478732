//! The program behind `main`: options in, exit code out.

use crate::commands;
use crate::failure::{Failure, REQUEST, exit};
use crate::interrupt;
use crate::options::{Command, Options};
use crate::output::{Output, say};
use clap::{CommandFactory, Parser};
use plimsoll_lang::Language;
pub use plimsoll_store::meter::Meter;
use std::ffi::OsString;
use std::path::Path;

/// Runs the program with the arguments of the process and returns its exit code.
pub fn run() -> u8 {
    set_panic_hook();
    let arguments = arguments();
    let mut options = match Options::try_parse_from(&arguments) {
        Ok(options) => options,
        Err(error) => {
            // Help and version come here too; they go to standard output.
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE } else { 0 };
        }
    };
    if let Command::Check(check) = &mut options.command {
        check.arguments = arguments;
    }
    let mut out = Output::new();
    let done = dispatch(options.command, &mut out);
    match done.and_then(|code| out.failure().map_or(Ok(code), Err)) {
        Ok(code) => code,
        Err(failure) => {
            say(failure.text());
            failure.exit_code()
        }
    }
}

/// The arguments of the process. A model where a command should be is to be checked.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let is_command =
        |name: &str| name == "help" || Options::command().get_subcommands().any(|known| known.get_name() == name);
    let is_model = |first: &OsString| {
        let (name, path) = (first.to_string_lossy(), Path::new(first));
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        !name.starts_with('-') && !is_command(&name) && (path.is_file() || Language::of_extension(extension).is_some())
    };
    if arguments.get(1).is_some_and(is_model) {
        arguments.insert(1, "check".into());
    }
    arguments
}

fn dispatch(command: Command, out: &mut Output) -> Result<u8, Failure> {
    match command {
        Command::Check(options) => {
            interrupt::outlive_limits();
            interrupt::listen();
            commands::check::run(&options, None, out)
        }
        Command::Resume(options) => {
            interrupt::outlive_limits();
            interrupt::listen();
            commands::resume::run(&options, out)
        }
        Command::Generate(options) => {
            interrupt::outlive_limits();
            interrupt::listen();
            commands::generate::run(&options, out)
        }
        Command::Convert(options) => {
            interrupt::outlive_limits();
            interrupt::listen();
            commands::convert::run(&options, out)
        }
        Command::Lts { command } => {
            interrupt::outlive_limits();
            commands::lts::run(&command, out)
        }
        Command::Simulate(options) => commands::simulate::run(&options, out),
        Command::Replay(options) => commands::replay::run(&options, out),
        Command::Plan(options) => {
            interrupt::outlive_limits();
            interrupt::listen();
            commands::plan::run(&options, out)
        }
        Command::Info(options) => commands::info::run(&options, out),
        Command::Compare(options) => {
            interrupt::listen();
            commands::compare::run(&options, out)
        }
        Command::Sweep(options) => {
            interrupt::listen();
            commands::sweep::run(&options, out)
        }
        Command::Crosscheck(options) => {
            interrupt::listen();
            commands::crosscheck::run(&options, out)
        }
        Command::Strategies => Ok(commands::strategies::run(out)),
        Command::Man { folder } => commands::man::run(folder.as_deref(), out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Options::command(), "plimsoll", &mut script);
            out.print(&String::from_utf8_lossy(&script));
            Ok(0)
        }
    }
}

/// A bug ends the program with a message and its own exit code, never with a bare panic.
fn set_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("no message");
        let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
        say(&format!("internal error: {message}{place}\n{REQUEST}"));
        std::process::exit(exit::INTERNAL.into());
    }));
}
