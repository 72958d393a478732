//! What is printed and what is written to files.

use crate::failure::Failure;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Standard output. Once nobody reads any more (a pipe that was closed), the rest is dropped: the exit code still tells.
/// Any other failure, such as a full disk, is remembered, for what was to be said was not said.
pub struct Output {
    broken: bool,
    failure: Option<io::Error>,
    to_stderr: bool,
}

impl Output {
    pub fn new() -> Output {
        Output { broken: false, failure: None, to_stderr: false }
    }

    pub fn print(&mut self, text: &str) {
        let _ = self.write_all(text.as_bytes()).and_then(|()| self.flush());
    }

    /// Is nobody reading any more?
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// What is for people goes to standard error, where standard output is for something else.
    pub fn make_way(&mut self) {
        self.to_stderr = true;
    }

    /// Why not everything could be printed, if so.
    pub fn failure(&self) -> Option<Failure> {
        self.failure.as_ref().map(|error| Failure::usage(format!("standard output: cannot be written: {error}")))
    }

    fn note(&mut self, error: io::Error) {
        self.broken = true;
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.failure.get_or_insert(error);
        }
    }
}

/// Fails once nobody reads any more, so that nothing long is made for nobody.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.to_stderr {
            let _ = io::stderr().write_all(bytes);
        } else if !self.broken
            && let Err(error) = io::stdout().lock().write_all(bytes)
        {
            self.note(error);
        }
        if self.broken { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.broken
            && !self.to_stderr
            && let Err(error) = io::stdout().lock().flush()
        {
            self.note(error);
        }
        if self.broken { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl Default for Output {
    fn default() -> Output {
        Output::new()
    }
}

/// A message to the person at the terminal.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Does the name of a file mean standard input or output?
pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// The failure to write a file.
pub fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{}: cannot be written: {error}", path.display()))
}

/// Fails if a file could not be written, before any work is done for it. What is there stays.
pub fn try_out(path: &Path) -> Result<(), Failure> {
    if is_standard(path) {
        return Ok(());
    }
    let tried = match fs::metadata(path) {
        // To open a device or a pipe may do something.
        Ok(found) if !found.is_file() && !found.is_dir() => Ok(()),
        Ok(_) => OpenOptions::new().append(true).open(path).map(|_| ()),
        Err(_) => {
            let part = NewFile::beside(path);
            OpenOptions::new().write(true).create_new(true).open(&part).and_then(|_| fs::remove_file(&part))
        }
    };
    tried.map_err(|error| unwritable(path, &error))
}

/// A file that appears under its name only when it is complete; before, it has another name, and when it is given up, none.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// None for what is no plain file, such as a device: it is written as it is.
    part: Option<PathBuf>,
    file: Option<BufWriter<File>>,
}

impl NewFile {
    pub fn create(path: &Path) -> Result<NewFile, Failure> {
        let special = fs::metadata(path).is_ok_and(|found| !found.is_file());
        let part = (!special).then(|| NewFile::beside(path));
        let opened = match &part {
            Some(part) => OpenOptions::new().read(true).write(true).create(true).truncate(true).open(part),
            None => OpenOptions::new().write(true).open(path),
        };
        let file = opened.map_err(|error| unwritable(path, &error))?;
        Ok(NewFile { path: path.into(), part, file: Some(BufWriter::new(file)) })
    }

    /// The name before it is complete. Two processes have two names.
    fn beside(path: &Path) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        path.with_file_name(name)
    }

    /// A file in the folder for such, which is never given a name.
    pub fn temporary() -> Result<NewFile, Failure> {
        NewFile::create(&std::env::temp_dir().join("plimsoll"))
    }

    fn file(&mut self) -> &mut BufWriter<File> {
        self.file.as_mut().expect("it is open until it is finished")
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<(), Failure> {
        let path = self.path.clone();
        self.finish_as(&path)
    }

    /// Gives the file another name.
    pub fn finish_as(mut self, path: &Path) -> Result<(), Failure> {
        let failed = |error: io::Error| unwritable(path, &error);
        self.file().flush().map_err(failed)?;
        self.file = None;
        match self.part.take() {
            Some(part) => fs::rename(part, path).map_err(failed),
            None => Ok(()),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl Read for NewFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file().get_mut().read(bytes)
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file().seek(to)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

/// Lets `write` write a file, or to standard output.
pub fn write_to(
    path: &Path,
    out: &mut Output,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if is_standard(path) {
        let mut stdout = Output::new();
        let mut writer = BufWriter::new(&mut stdout);
        let written = write(&mut writer).and_then(|()| writer.flush());
        drop(writer);
        return match (written, stdout.failure) {
            (_, Some(error)) => {
                out.failure.get_or_insert(error);
                Ok(())
            }
            (Err(error), None) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritable(path, &error)),
            _ => Ok(()),
        };
    }
    let mut file = NewFile::create(path)?;
    write(&mut file).map_err(|error| unwritable(path, &error))?;
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.aut");
        let files = || fs::read_dir(folder.path()).unwrap().count();
        try_out(&path).unwrap();
        assert_eq!(files(), 0);
        fs::write(&path, "old").unwrap();
        try_out(&path).unwrap();
        let mut file = NewFile::create(&path).unwrap();
        write!(file, "new").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), files()), ("old", 2));
        drop(file);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), files()), ("old", 1));
        let mut file = NewFile::create(&path).unwrap();
        write!(file, "new").unwrap();
        file.finish().unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), files()), ("new", 1));
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().unwrap();
        assert!(try_out(&folder.path().join("nodir/x.json")).is_err());
        assert!(try_out(folder.path()).is_err());
        assert!(try_out(Path::new("-")).is_ok() && try_out(Path::new("/dev/null")).is_ok());
        let full = write_to(Path::new("/dev/full"), &mut Output::new(), |out| out.write_all(b"text"));
        assert!(full.is_err());
    }
}
