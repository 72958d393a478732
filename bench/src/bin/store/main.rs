//! What the parts of the store cost: nanoseconds, instructions and bytes per state, over recorded streams of states.
//!
//! A stream is what a breadth-first search of a model offers to its store. Instructions are counted by callgrind, if
//! valgrind is installed: this program then runs itself once for each part.

mod parts;
mod stream;

use clap::Parser;
use parts::{PARTS, Part};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use stream::Stream;

/// What the parts of the store cost, over recorded streams of states.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Models to record, or streams that were recorded [default: two of ours, of few bits and of many]
    files: Vec<PathBuf>,
    /// Successors to record of a model
    #[arg(long, default_value_t = 1_000_000)]
    successors: usize,
    /// Only these parts
    #[arg(long, value_delimiter = ',')]
    parts: Vec<String>,
    /// Rounds; the quickest counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Count instructions too (takes valgrind, and a while)
    #[arg(long)]
    instructions: bool,
    /// Write the stream of the model to a file, and measure nothing
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    let default = ["dve/lift.dve", "dve/mesi_4.dve"].map(|name| ours.join(name));
    let files = if options.files.is_empty() { &default[..] } else { &options.files };
    if let Some(path) = &options.record {
        let [model] = files else { return Err("--record takes one model".into()) };
        return Stream::record(model, options.successors)?.write(path);
    }
    if let Some(name) = options.parts.iter().find(|name| PARTS.iter().all(|part| part.name != **name)) {
        return Err(format!("there is no part `{name}`; there are {}", PARTS.map(|part| part.name).join(", ")));
    }
    let wanted = |part: &&Part| options.parts.is_empty() || options.parts.iter().any(|name| part.name == name);
    for file in files {
        let is_model = file.extension().is_some_and(|extension| extension != "keys");
        let stream = if is_model { Stream::record(file, options.successors)? } else { Stream::read(file)? };
        let (states, fresh) = stream.counts();
        let bits: u32 = stream.used.iter().map(|word| word.count_ones()).sum();
        let name = file.file_name().map_or(String::new(), |name| name.to_string_lossy().to_string());
        println!("{name}: {states} states offered, {fresh} of them new, {bits} bits in {} words", stream.used.len());
        println!("{:<14} {:>9} {:>9} {:>9}", "part", "ns/state", "instr.", "B/held");
        for part in PARTS.iter().filter(wanted) {
            let Some(measure) = (part.run)(&stream) else {
                println!("{:<14} {:>9} states are too wide", part.name, "-");
                continue;
            };
            let again = (1..options.repeats).filter_map(|_| (part.run)(&stream));
            let time = again.fold(measure.time, |best, measure| best.min(measure.time));
            let handled = measure.states.max(1) as f64;
            let instructions = match options.instructions {
                true => format!("{:.0}", count(&stream, part)? as f64 / handled),
                false => "-".into(),
            };
            let bytes =
                measure.held.map_or("-".into(), |(bytes, held)| format!("{:.2}", bytes as f64 / held.max(1) as f64));
            let nanoseconds = time.as_nanos() as f64 / handled;
            println!("{:<14} {nanoseconds:>9.1} {instructions:>9} {bytes:>9}   {}", part.name, part.what);
        }
    }
    Ok(())
}

/// Runs this program on a part under callgrind and returns how many instructions it took.
fn count(stream: &Stream, part: &Part) -> Result<u64, String> {
    let folder = std::env::temp_dir().join(format!("plimsoll-store-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let file = folder.join("stream.keys");
    stream.write(&file)?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*parts::measured*"])
        .arg(program)
        .args(["--repeats", "1", "--parts", part.name])
        .arg(&file)
        .output();
    let _ = std::fs::remove_dir_all(&folder);
    let output = output.map_err(|error| format!("valgrind cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected.ok_or_else(|| format!("valgrind did not count: {text}"))
}
