//! A folder with what a search needs to go on.
//!
//! What the structures of a search write goes into a file of checksummed blocks, `search-N`; a [`Manifest`] says which
//! search that is and which file counts. It is written last, under another name, and takes its name when everything is safe
//! on disk: until then the checkpoint before it stands. One run at a time has the folder: it holds a lock on the file `lock`.

mod manifest;

use crate::executor::Executor;
use crate::failure::Failure;
use crate::interrupt;
use crate::options::{CheckOptions, Order, ResumeOptions};
use crate::output::{is_standard, say};
use crate::plan::Plan;
use crate::size::{show_bytes, show_count};
use crate::subject;
pub use manifest::Manifest;
use manifest::{Data, NAME};
use plimsoll_search::{Crew, Keeper, Saved, Why};
use plimsoll_store::blocks::{Reader, Writer};
use plimsoll_store::{Budget, Chain, Grant, Queue, StepLog, Unloaded};
use serde::Serialize;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LOCK: &str = "lock";
/// Files with what structures have written begin with this.
const DATA: &str = "search-";
/// A manifest before it counts.
const NEW: &str = "manifest.new";

/// The folder, and the search that it is for.
pub struct Checkpoint {
    folder: PathBuf,
    /// Held as long as this lives.
    _lock: File,
    every: Duration,
    quiet: bool,
    /// What will be in the next manifest; what is in the last, if there is one.
    manifest: Manifest,
    stands: bool,
    /// A search that goes on from here, until it does.
    resumes: bool,
    resumed_states: Option<u64>,
    /// When the last one was finished, or the search began.
    last: Instant,
    grant: Grant,
    charged: u64,
    failure: Option<String>,
    refusal: Option<String>,
}

/// What a report says about it.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    pub folder: String,
    pub bytes: u64,
    /// States that it has.
    pub states: u64,
    /// The command that goes on.
    pub resume: String,
}

impl Checkpoint {
    /// The folder that was asked for, if any, for a new search.
    pub fn begin(options: &CheckOptions) -> Result<Option<Checkpoint>, Failure> {
        let Some(folder) = &options.checkpoint.checkpoint else { return Ok(None) };
        let refuse = |why: String| Failure::usage(format!("--checkpoint {}: {why}", folder.display()));
        let contradictions = [
            (is_standard(&options.model.model), "a model on standard input cannot be found again"),
            (options.look_for.all_violations, "--all-violations searches several times, and cannot go on later"),
            (options.unreached, "--unreached must see every step, and cannot go on later"),
        ];
        if let Some((_, why)) = contradictions.into_iter().find(|(given, _)| *given) {
            return Err(refuse(why.into()));
        }
        let mut manifest = Manifest::new(options).map_err(&refuse)?;
        manifest.new_folder = !folder.exists();
        if manifest.new_folder {
            fs::create_dir(folder).map_err(|error| refuse(format!("cannot be created: {error}")))?;
        }
        let mut checkpoint = Checkpoint::lock(folder, options, manifest).map_err(&refuse)?;
        checkpoint.stands = folder.join(NAME).exists();
        if checkpoint.stands {
            let resume = resume_command(folder);
            return Err(refuse(format!("there is a checkpoint already: `{resume}` goes on, or remove the folder")));
        }
        checkpoint.clean().map_err(|error| refuse(error.to_string()))?;
        Ok(Some(checkpoint))
    }

    /// The search that stands in a folder, and the options that it goes on with.
    pub fn open(given: &ResumeOptions) -> Result<(Checkpoint, CheckOptions), Failure> {
        let folder = &given.folder;
        let refuse = |why: String| Failure::usage(format!("{}: {why}", folder.display()));
        if !folder.is_dir() {
            return Err(refuse("there is no such folder".into()));
        }
        let manifest = Manifest::read(&folder.join(NAME)).map_err(&refuse)?;
        let (manifest, options) = manifest.with(given).map_err(&refuse)?;
        let fingerprint = subject::fingerprint(&options.model.model)?;
        if fingerprint != manifest.fingerprint {
            let model = options.model.model.display();
            return Err(refuse(format!("{model} has changed since the checkpoint was written: check it anew")));
        }
        let mut checkpoint = Checkpoint::lock(folder, &options, manifest).map_err(&refuse)?;
        (checkpoint.stands, checkpoint.resumes) = (true, true);
        checkpoint.clean().map_err(|error| refuse(error.to_string()))?;
        Ok((checkpoint, options))
    }

    fn lock(folder: &Path, options: &CheckOptions, manifest: Manifest) -> Result<Checkpoint, String> {
        let path = folder.join(LOCK);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = opened.map_err(|error| format!("cannot be written: {error}"))?;
        let in_use = || "another run of plimsoll uses it".to_string();
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use()),
            Err(TryLockError::Error(error)) => return Err(format!("cannot be locked: {error}")),
        }
        // Whoever had it may have removed it in between.
        let number = |metadata: io::Result<fs::Metadata>| metadata.map(|metadata| metadata.ino()).ok();
        if number(lock.metadata()) != number(fs::metadata(&path)) {
            return Err(in_use());
        }
        Ok(Checkpoint {
            folder: folder.into(),
            _lock: lock,
            every: options.checkpoint.checkpoint_every,
            quiet: options.output.quiet,
            manifest,
            stands: false,
            resumes: false,
            resumed_states: None,
            last: Instant::now(),
            grant: Grant::unlimited(),
            charged: 0,
            failure: None,
            refusal: None,
        })
    }

    /// Removes what an earlier run began and did not finish.
    fn clean(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let counts = self.stands && self.manifest.data.as_ref().is_some_and(|data| *data.file == *name);
            if name == NEW || is_data(&name.to_string_lossy()) && !counts {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// What a Promela model was asked to have room for before this search.
    pub fn requests(&self) -> &[String] {
        &self.manifest.requests
    }

    /// The search begins anew, for the model needs room for more.
    pub fn begin_again(&mut self, request: &str) {
        self.manifest.requests.push(request.into());
        self.manifest.system = None;
        self.resumed_states = None;
    }

    /// From now on it is for this search, unless its strategy cannot go on later, or what goes on is another.
    pub fn attach(&mut self, executor: &Executor, plan: &Plan) -> Result<(), Failure> {
        let row = &plan.strategy_parts.row;
        let holds_all = row.holds_all() && !row.forgets() && plan.codec.is_injective() && plan.code.is_none();
        if plan.search != Order::Bfs || !holds_all {
            return Err(Failure::usage(format!(
                "--checkpoint: this strategy cannot be resumed ({}, {}, {}): only breadth-first searches that hold every state \
                 can, and not as Huffman codes",
                plan.strategy, plan.order, plan.store
            )));
        }
        let system = manifest::identity(executor, plan);
        if self.resumes && self.manifest.system.as_ref() != Some(&system) {
            let folder = self.folder.display();
            return Err(Failure::usage(format!(
                "{folder}: the model is not what it was when the checkpoint was written: check it anew"
            )));
        }
        self.manifest.system = Some(system);
        Ok(())
    }

    /// Its disk space counts against `disk`, if that is limited.
    pub fn charge(&mut self, disk: &Budget, most_bytes: u64) {
        // Where the search has filled its device there may be more here.
        self.grant = disk.grant("checkpoint", most_bytes).elsewhere();
        let bytes = self.manifest.data.as_ref().filter(|_| self.stands).map_or(0, |data| data.bytes);
        self.charged = if self.grant.take(bytes) { bytes } else { 0 };
    }

    /// If a search goes on from here: where it stood. Its structures are filled; if that is not possible the reason is kept.
    pub fn resume(
        &mut self,
        store: &mut Chain,
        queue: &mut Queue,
        log: &mut StepLog,
        crew: Crew,
    ) -> Result<Option<Saved>, Why> {
        if !std::mem::take(&mut self.resumes) {
            return Ok(None);
        }
        let Some(Data { file, saved, .. }) = &self.manifest.data else { return Ok(None) };
        let states = saved.states();
        let why = match self.load(store, queue, log, crew) {
            Ok(saved) => {
                (self.resumed_states, self.last) = (Some(states), Instant::now());
                return Ok(Some(saved));
            }
            Err(Unloaded::Memory) => {
                let states = show_count(states);
                format!("the {states} states found so far need more memory: resume it with more --memory")
            }
            Err(Unloaded::Disk(error)) => format!("{file} cannot be read: {}", io::Error::from(error)),
            Err(Unloaded::Damaged(what)) => format!("{file} is damaged: {what}"),
        };
        self.refusal = Some(format!("{}: {why}", self.folder.display()));
        Err(Why::Disk(why))
    }

    fn load(&self, store: &mut Chain, queue: &mut Queue, log: &mut StepLog, crew: Crew) -> Result<Saved, Unloaded> {
        let data = self.manifest.data.as_ref().ok_or_else(|| Unloaded::damaged("there is none"))?;
        let file = File::open(self.folder.join(&data.file))?;
        if file.metadata()?.len() != data.bytes {
            return Err(Unloaded::damaged("it has another length"));
        }
        let mut reader = Reader::new(file);
        let mut id = [0; 8];
        reader.read_exact(&mut id)?;
        if u64::from_le_bytes(id) != data.id {
            return Err(Unloaded::damaged("it belongs to another checkpoint"));
        }
        data.saved.load(&mut reader, store, queue, log, crew)?;
        Ok(data.saved.clone())
    }

    /// Why a search cannot go on from here.
    pub fn refusal(&self) -> Option<Failure> {
        self.refusal.as_ref().map(Failure::usage)
    }

    /// States that were there when this run began.
    pub fn resumed_states(&self) -> Option<u64> {
        self.resumed_states
    }

    /// What the report says about what stays, and what people should know.
    pub fn facts(&self, stays: bool) -> (Option<Facts>, Vec<String>) {
        let data = self.manifest.data.as_ref().filter(|_| self.stands && stays);
        let facts = data.map(|data| Facts {
            folder: self.folder.display().to_string(),
            bytes: data.bytes,
            states: data.saved.states(),
            resume: resume_command(&self.folder),
        });
        let mut notes = Vec::new();
        notes.extend(self.resumed_states.map(|states| format!("went on from {} states", show_count(states))));
        notes.extend(self.failure.as_ref().map(|why| format!("a checkpoint could not be written: {why}")));
        match &facts {
            Some(Facts { bytes, states, resume, .. }) => notes.push(format!(
                "a checkpoint of {} states was written ({}): `{resume}` goes on from there",
                show_count(*states),
                show_bytes(*bytes)
            )),
            None if stays => notes.push("there is no checkpoint: nothing was written".into()),
            None => {}
        }
        (facts, notes)
    }

    /// Removes everything: nobody will go on.
    pub fn remove(mut self) {
        // First what says that there is something.
        let _ = fs::remove_file(self.folder.join(NAME));
        self.stands = false;
        let _ = self.clean();
    }

    fn try_keep(
        &mut self,
        saved: &Saved,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<(Data, u64)> {
        let number = self.manifest.data.as_ref().map_or(1, |data| data.number + 1);
        let file = format!("{DATA}{number}");
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40;
        let disk = File::create(self.folder.join(&file))?;
        let mut writer = Writer::new(disk, self.grant.clone());
        writer.write_all(&id.to_le_bytes())?;
        write(&mut writer)?;
        let bytes = writer.finish()?;
        let data = Data { number, file, bytes, id, saved: saved.clone() };
        match self.publish(data.clone()) {
            Ok(()) => Ok((data, bytes)),
            Err(error) => {
                self.grant.give_back(bytes);
                Err(error)
            }
        }
    }

    /// Writes the manifest, which makes `data` count.
    fn publish(&self, data: Data) -> io::Result<()> {
        let new = self.folder.join(NEW);
        let mut manifest = self.manifest.clone();
        manifest.data = Some(data);
        manifest.write(&new)?;
        let folder = File::open(&self.folder)?;
        folder.sync_all()?;
        fs::rename(&new, self.folder.join(NAME))?;
        folder.sync_all()
    }
}

impl Keeper for Checkpoint {
    fn is_due(&self) -> bool {
        self.last.elapsed() >= self.every
    }

    fn keep(&mut self, saved: &Saved, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
        match self.try_keep(saved, write) {
            Ok((data, bytes)) => {
                self.grant.give_back(std::mem::replace(&mut self.charged, bytes));
                self.manifest.data = Some(data);
                (self.stands, self.failure) = (true, None);
            }
            Err(error) => {
                if self.failure.is_none() && !self.quiet {
                    say(&format!("warning: a checkpoint could not be written: {error}"));
                }
                self.failure = Some(error.to_string());
            }
        }
        // What does not count is in the way, whichever that is now.
        let _ = self.clean();
        self.last = Instant::now();
    }

    fn give_time(&mut self) {
        interrupt::give_time();
        if !self.quiet {
            say(
                "the level at hand is looked for on disk, so that a checkpoint can be written; Ctrl-C ends the program at once",
            );
        }
    }
}

impl Drop for Checkpoint {
    /// Where there is nothing to go on from, nothing is left behind.
    fn drop(&mut self) {
        if !self.stands {
            let _ = fs::remove_file(self.folder.join(LOCK));
            if self.manifest.new_folder {
                let _ = fs::remove_dir(&self.folder);
            }
        }
    }
}

fn is_data(name: &str) -> bool {
    name.strip_prefix(DATA).is_some_and(|number| number.parse::<u64>().is_ok())
}

/// The command that goes on, for a shell.
fn resume_command(folder: &Path) -> String {
    let name = folder.display().to_string();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:,@%".contains(letter);
    match name.chars().all(plain) && !name.starts_with('-') {
        true => format!("plimsoll resume {name}"),
        false => format!("plimsoll resume '{}'", name.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_as_they_are_shown() {
        for (folder, command) in [
            ("runs/a-1", "plimsoll resume runs/a-1"),
            ("my runs", "plimsoll resume 'my runs'"),
            ("it's", r"plimsoll resume 'it'\''s'"),
        ] {
            assert_eq!(resume_command(Path::new(folder)), command);
        }
    }
}
