//! What a checkpoint is of: the command that began the search, the model it was for, and where it stood.
//!
//! A line with the version of the format and a checksum, then JSON. Whatever is not as this program would have written it is
//! refused with a reason.

use crate::executor::Executor;
use crate::options::{CheckOptions, Command, Options, ResumeOptions};
use crate::plan::Plan;
use crate::subject;
use clap::{CommandFactory, FromArgMatches};
use plimsoll_ir::{self as ir, System};
use plimsoll_search::Saved;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file that counts.
pub const NAME: &str = "manifest";
const MAGIC: &str = "plimsoll-checkpoint";
const VERSION: &str = "3";
/// States, counts and code are only known to mean the same in the program that wrote them.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
/// A manifest is small.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    program: String,
    /// The command line, without the name of the program, and where it was given.
    arguments: Vec<String>,
    directory: PathBuf,
    /// Of the text of the model.
    pub fingerprint: String,
    /// Of what was made from it, how its states are held included.
    pub system: Option<String>,
    /// What a Promela model was asked to have room for.
    pub requests: Vec<String>,
    /// The folder was made for the checkpoint.
    pub new_folder: bool,
    pub data: Option<Data>,
}

/// Where the search stood, and the file with the rest of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    pub number: u64,
    pub file: String,
    pub bytes: u64,
    /// The file begins with it too.
    pub id: u64,
    pub saved: Saved,
}

impl Manifest {
    /// Of a search that has not begun.
    pub fn new(options: &CheckOptions) -> Result<Manifest, String> {
        let text = |argument: &std::ffi::OsString| {
            let name = argument.display();
            argument.to_str().map(String::from).ok_or(format!("`{name}` is not UTF-8, and cannot be written down"))
        };
        let directory = std::env::current_dir().map_err(|error| format!("the current folder is not known: {error}"))?;
        if directory.to_str().is_none() {
            return Err("the name of the current folder is not UTF-8, and cannot be written down".into());
        }
        Ok(Manifest {
            program: PROGRAM.into(),
            arguments: options.arguments.iter().skip(1).map(text).collect::<Result<_, String>>()?,
            directory,
            fingerprint: subject::fingerprint(&options.model.model).map_err(|failure| failure.text().to_string())?,
            system: None,
            requests: Vec::new(),
            new_folder: false,
            data: None,
        })
    }

    /// Writes it, so that it survives a crash.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let json = serde_json::to_string_pretty(self)?;
        let mut file = File::create(path)?;
        file.write_all(format!("{MAGIC} {VERSION} {:08x}\n{json}", crc32fast::hash(json.as_bytes())).as_bytes())?;
        file.sync_all()
    }

    /// Reads one that counts.
    pub fn read(path: &Path) -> Result<Manifest, String> {
        let bytes = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err("there is no checkpoint in it".into()),
            Ok(metadata) if metadata.len() > MOST_BYTES => return Err(format!("{NAME} is not one of plimsoll's")),
            _ => fs::read(path).map_err(|error| format!("{NAME} cannot be read: {error}"))?,
        };
        let damaged = || format!("{NAME} is damaged");
        let foreign = || format!("{NAME} is not one of plimsoll's, or is damaged");
        let text = String::from_utf8(bytes).map_err(|_| foreign())?;
        let (head, json) = text.split_once('\n').ok_or_else(foreign)?;
        let mut head = head.split(' ');
        if head.next() != Some(MAGIC) {
            return Err(foreign());
        }
        let version = head.next().unwrap_or_default();
        let sum = head.next().and_then(|sum| u32::from_str_radix(sum, 16).ok());
        if sum != Some(crc32fast::hash(json.as_bytes())) || head.next().is_some() {
            return Err(damaged());
        }
        if version != VERSION {
            return Err(format!("{NAME} is of version {version}, and this program reads version {VERSION}"));
        }
        #[derive(Deserialize)]
        struct Program {
            program: String,
        }
        let Program { program } = serde_json::from_str(json).map_err(|_| damaged())?;
        if program != PROGRAM {
            return Err(format!("it was written by plimsoll {program}, and this is {PROGRAM}: check the model anew"));
        }
        let manifest: Manifest = serde_json::from_str(json).map_err(|_| damaged())?;
        match &manifest.data {
            Some(data) if super::is_data(&data.file) => Ok(manifest),
            _ => Err(damaged()),
        }
    }

    /// The options of the search, with others in place of some of them from now on.
    pub fn with(mut self, given: &ResumeOptions) -> Result<(Manifest, CheckOptions), String> {
        if !given.budget.spill_dir.is_empty() {
            self.drop_spill_dirs();
        }
        self.arguments.extend(given.arguments());
        let arguments = std::iter::once("plimsoll").chain(self.arguments.iter().map(String::as_str));
        let program = Options::command().mut_subcommand("check", |check| check.args_override_self(true));
        let parsed = program.try_get_matches_from(arguments).and_then(|found| Options::from_arg_matches(&found));
        let mut options = match parsed.map(|options| options.command) {
            Ok(Command::Check(options)) => *options,
            _ => return Err(format!("{NAME} has a command line that is not understood")),
        };
        let CheckOptions { model, budget, trace, draw, .. } = &mut options;
        let paths = [Some(&mut model.model), trace.as_mut(), draw.msc.as_mut()];
        let paths = paths.into_iter().flatten().chain(&mut budget.spill_dir);
        for path in paths.filter(|path| !crate::output::is_standard(path)) {
            *path = self.directory.join(&*path);
        }
        // Time is for one run, and so is what the report looks like.
        options.budget.time = given.budget.time;
        options.output = given.output.clone();
        options.checkpoint.checkpoint = Some(given.folder.clone());
        options.checkpoint.keep_checkpoint |= given.keep_checkpoint;
        Ok((self, options))
    }
}

impl Manifest {
    /// Folders that are given take the place of all that were given before: other options override themselves, these add up.
    fn drop_spill_dirs(&mut self) {
        let mut is_value = false;
        self.arguments.retain(|argument| {
            let goes = std::mem::take(&mut is_value) || argument.starts_with("--spill-dir=");
            is_value = !goes && argument == "--spill-dir";
            !goes && !is_value
        });
    }
}

impl ResumeOptions {
    /// Options that take the place of those of the search, as they would be given to `check`.
    fn arguments(&self) -> Vec<String> {
        let path = |path: &Path| std::path::absolute(path).unwrap_or(path.into()).display().to_string();
        let budget = &self.budget;
        let given = [
            ("--memory", budget.memory.map(|size| size.to_string())),
            ("--disk", budget.disk.map(|bytes| bytes.to_string())),
            ("--max-states", budget.max_states.map(|states| states.to_string())),
            ("--max-depth", budget.max_depth.map(|depth| depth.to_string())),
            ("--workers", self.workers.map(|workers| workers.to_string())),
            ("--checkpoint-every", self.checkpoint_every.map(|every| format!("{}ms", every.as_millis()))),
            ("--trace", self.trace.as_deref().map(path)),
            ("--msc", self.draw.msc.as_deref().map(path)),
        ];
        let folders = budget.spill_dir.iter().map(|folder| ("--spill-dir", Some(path(folder))));
        given
            .into_iter()
            .chain(folders)
            .flat_map(|(name, value)| value.map(|value| format!("{name}={value}")))
            .collect()
    }
}

/// What states and positions depend on beside the text of the model and the options: the system that was made from it, how
/// its states are laid out, and how they are held.
pub fn identity(executor: &Executor, plan: &Plan) -> String {
    let used = executor.model().used_bits();
    let mut sum = subject::Fingerprint::new();
    let _ = write!(sum, "{} {used:?} ", plan.store);
    if let Some(system) = executor.system() {
        let System { vars, processes, starts, commands, properties, procedures, .. } = system;
        let System { deadlock, faults, exclusive, .. } = system;
        let _ =
            write!(sum, "{vars:?} {processes:?} {properties:?} {procedures:?} {deadlock:?} {faults:?} {exclusive:?}");
        // Not where they stand: the model may have been named in another way.
        for command in starts.iter().chain(commands) {
            let ir::Command { label, rank, at, temps, choices, prelude, guard, body, .. } = command;
            let _ = write!(sum, "{label:?} {rank} {at:?} {temps:?} {choices:?} {prelude:?} {guard:?} {body:?}");
        }
    }
    sum.to_string()
}
