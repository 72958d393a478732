//! Compares this checker with others on the same models and the same machine.
//!
//! A model takes part if it has a twin in a peer's language: the same states and the same steps. All
//! contestants run in turn, several rounds, and ratios of medians are reported; what was measured in each
//! round goes to a file. A difference in the number of states is an error, for then nothing was compared.

mod contest;
mod machine;
mod measure;
mod models;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use contest::{Contest, Contestant};
use models::Model;
use plimsoll::reference::peers::{Given, OURS, PEERS, Tool};

/// Compare this checker with others on the same models.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Checkers to compare with, by name; those that are not installed are passed over
    #[arg(long, value_delimiter = ',', default_value = "spin")]
    peers: Vec<String>,
    /// CMurphi's compiler (default: `mu` on the path)
    #[arg(long, value_name = "PROGRAM")]
    mu: Option<PathBuf>,
    /// The folder of headers that goes with it (default: what CMURPHI_INCLUDE says)
    #[arg(long, value_name = "FOLDER")]
    mu_include: Option<PathBuf>,
    /// Rounds; medians are reported
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Only models whose names contain one of these
    #[arg(long, value_delimiter = ',')]
    models: Vec<String>,
    /// Compare on the models of a folder with a table of counts (see `plimsoll compare`), not on those of the repository
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// Only corpus models with at least so many states
    #[arg(long, default_value_t = 500_000)]
    min_states: u64,
    /// Only corpus models with at most so many states
    #[arg(long, default_value_t = 10_000_000)]
    max_states: u64,
    /// The binary to measure (default: beside this one)
    #[arg(long)]
    ours: Option<PathBuf>,
    /// More arguments for our `check`, separated by blanks
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    options: String,
    /// Where records are kept
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results"))]
    results: PathBuf,
    /// Do not keep a record of this run
    #[arg(long)]
    no_record: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs everything; false if some contestants disagree about a model.
fn run(options: &Options) -> Result<bool, String> {
    let ours = our_binary(options.ours.as_deref())?;
    let given = given(options)?;
    let installed = installed_peers(&options.peers, &given)?;
    let mut contests = Vec::new();
    for (model, peers) in entrants(options, &installed, &given)? {
        if peers.is_empty() {
            continue;
        }
        let contestants: Vec<Contestant> =
            Contestant::ours(&ours, &options.options, &model).into_iter().chain(peers).collect();
        eprintln!("{}: {}", model.name, contestants.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", "));
        contests.push(Contest::hold(&model, contestants, options.repeats)?);
    }
    if contests.is_empty() {
        return Err("no model fits an installed peer".into());
    }
    let machine = machine::describe(&installed, &given);
    print!("{}", report::markdown(&machine, &contests));
    if !options.no_record {
        let path = report::record(&options.results, &machine, options.repeats, &options.options, &contests)
            .map_err(|error| format!("cannot keep the record in {}: {error}", options.results.display()))?;
        eprintln!("record: {}", path.display());
    }
    Ok(contests.iter().all(Contest::agrees))
}

/// The models with the peers that can run them.
fn entrants(
    options: &Options,
    installed: &[&'static Tool],
    given: &Given,
) -> Result<Vec<(Model, Vec<Contestant>)>, String> {
    let Some(folder) = &options.corpus else {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
        let with_twins = |model: Model| {
            let twins = installed.iter().filter_map(|tool| Some((tool, models::twin(&root, &model.name, tool)?)));
            let states = model.counts.map(|(states, _)| states);
            let peers = twins.map(|(tool, twin)| Contestant::peer(tool, &twin, states, given)).collect();
            (model, peers)
        };
        return Ok(models::list(&root, &options.models)?.into_iter().map(with_twins).collect());
    };
    let (least_states, most_states) = (options.min_states, options.max_states);
    let wanted = models::Wanted { names: &options.models, least_states, most_states };
    let able = |model: Model| {
        let extension = model.path.extension().unwrap_or_default().to_string_lossy();
        let language = match extension.as_ref() {
            "m" => "murphi",
            "dve" => "dve",
            _ => "promela",
        };
        let states = model.counts.map(|(states, _)| states);
        let tools = installed.iter().filter(|tool| tool.on_any_model && tool.folder == language);
        let peers =
            tools.map(|tool| Contestant::peer(tool, &model.path, states, given)).filter(|peer| match peer.accepts() {
                Ok(()) => true,
                Err(why) => {
                    eprintln!("{} is passed over: {why}", model.name);
                    false
                }
            });
        let peers = peers.collect();
        (model, peers)
    };
    Ok(models::corpus(folder, &wanted)?.into_iter().map(able).collect())
}

/// The peers asked for that are installed; the others are named on stderr.
fn installed_peers(names: &[String], given: &Given) -> Result<Vec<&'static Tool>, String> {
    let mut found = Vec::new();
    for name in names {
        let rows: Vec<&Tool> = PEERS.iter().filter(|tool| tool.family == name.as_str()).collect();
        if rows.is_empty() {
            let known: Vec<&str> = PEERS.iter().map(|tool| tool.family).collect();
            return Err(format!("unknown peer `{name}`; known: {}", known.join(", ")));
        }
        for tool in rows {
            match tool.missing(given) {
                None => found.push(tool),
                Some(what) => eprintln!("{} is passed over: {what}", tool.name),
            }
        }
    }
    Ok(found)
}

/// Where CMurphi is; runs are in folders of their own, so paths are made whole.
fn given(options: &Options) -> Result<Given, String> {
    let whole = |path: &PathBuf| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let around = Given::around();
    let mu = options.mu.as_ref().or(around.mu.as_ref()).map(whole).transpose()?;
    let include = options.mu_include.as_ref().or(around.include.as_ref()).map(whole).transpose()?;
    Ok(Given { mu, include })
}

fn our_binary(asked: Option<&Path>) -> Result<PathBuf, String> {
    let path = match asked {
        Some(path) => path.to_path_buf(),
        None => std::env::current_exe().map_err(|error| error.to_string())?.with_file_name(OURS),
    };
    if path.is_file() {
        path.canonicalize().map_err(|error| error.to_string())
    } else {
        Err(format!("{} does not exist; build it first: cargo build --release", path.display()))
    }
}
