//! Reading model files, and what can go wrong before a front end sees any text.

use crate::diagnostic::{self, Diagnostic, Source};
use crate::{Language, Options};
use plimsoll_lts::{EdgeReader, Lts, ReadError};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Larger model texts are refused; graphs, which are read as a stream, may have any size.
pub const LARGEST_TEXT: u64 = 256 << 20;

/// Why there is no model.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Io { name: String, error: io::Error },
    /// The name is that of a folder.
    Directory { name: String },
    /// The text is larger than [`LARGEST_TEXT`].
    TooLarge { name: String },
    /// The file holds no text.
    NotText { name: String },
    /// The file holds nothing.
    Empty { name: String },
    /// The extension says nothing about the language.
    UnknownLanguage { name: String },
    /// A known format that needs another tool first.
    Macros { name: String },
    /// A language without a front end.
    Unsupported { name: String, language: Language },
    /// A graph file is malformed.
    Graph { name: String, error: ReadError },
    /// The text is not a model.
    Diagnostics { source: Source, diagnostics: Vec<Diagnostic> },
}

impl LoadError {
    /// The whole message, ending with a newline; `styled` is for terminals.
    pub fn render(&self, styled: bool) -> String {
        match self {
            LoadError::Diagnostics { source, diagnostics } => diagnostic::render(source, diagnostics, styled),
            other => format!("error: {other}\n"),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LoadError::Io { name, error } => match error.kind() {
                io::ErrorKind::NotFound => write!(f, "{name}: no such file"),
                io::ErrorKind::PermissionDenied => write!(f, "{name}: not readable (permission denied)"),
                _ => write!(f, "{name}: cannot be read: {error}"),
            },
            LoadError::Directory { name } => write!(f, "{name}: is a folder, not a model file"),
            LoadError::TooLarge { name } => {
                write!(f, "{name}: larger than {} MiB, the limit for model text", LARGEST_TEXT >> 20)
            }
            LoadError::NotText { name } => write!(f, "{name}: not a text file"),
            LoadError::Empty { name } => write!(f, "{name}: the file is empty"),
            LoadError::UnknownLanguage { name } => {
                write!(
                    f,
                    "{name}: unknown file extension; use .dve, .aut, .lts, .pml or .m, or name the language (--language promela)"
                )
            }
            LoadError::Macros { name } => {
                write!(f, "{name}: not supported: .mdve files hold m4 macros; run m4 first and load the .dve it gives")
            }
            LoadError::Unsupported { name, language } => {
                write!(f, "{name}: {} is not supported yet", language.name())
            }
            LoadError::Graph { name, error } => write!(f, "{name}: {error}"),
            LoadError::Diagnostics { source, diagnostics } => {
                let count = diagnostics.iter().filter(|d| d.severity == diagnostic::Severity::Error).count();
                let first = diagnostics.first().map_or("", |d| d.message.as_str());
                write!(f, "{}: {first} ({count} errors in all)", source.name)
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The language asked for, or else the one that the extension stands for.
pub fn language_of(path: &Path, options: &Options) -> Result<Language, LoadError> {
    if let Some(language) = options.language {
        return Ok(language);
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    match Language::of_extension(extension) {
        Some(language) => Ok(language),
        None if extension.eq_ignore_ascii_case("mdve") => Err(LoadError::Macros { name: name(path) }),
        // A wrong path matters more than an unknown extension.
        None => open(path).and(Err(LoadError::UnknownLanguage { name: name(path) })),
    }
}

/// Reads a whole file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(LARGEST_TEXT + 1).read_to_end(&mut bytes);
    read.map_err(|error| LoadError::Io { name: name(path), error })?;
    Ok(bytes)
}

/// Some editors begin a file with this; it means nothing.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Makes text of bytes. Stray bytes that are not UTF-8 (old comments in Latin-1) are replaced.
pub fn text_of(name: String, bytes: Vec<u8>) -> Result<Source, LoadError> {
    if bytes.len() as u64 > LARGEST_TEXT {
        return Err(LoadError::TooLarge { name });
    }
    if bytes.contains(&0) {
        return Err(LoadError::NotText { name });
    }
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let bytes = error.as_bytes();
            let text = String::from_utf8_lossy(bytes);
            let replaced = text.matches(char::REPLACEMENT_CHARACTER).count();
            if replaced * 10 > bytes.len() {
                return Err(LoadError::NotText { name });
            }
            text.into_owned()
        }
    };
    if text.starts_with(BYTE_ORDER_MARK) {
        text.remove(0);
    }
    if text.trim().is_empty() {
        return Err(LoadError::Empty { name });
    }
    Ok(Source { name, text })
}

/// Reads a graph as a stream.
pub fn read_graph(path: &Path) -> Result<Lts, LoadError> {
    graph_of(name(path), BufReader::with_capacity(1 << 18, open(path)?))
}

/// Reads a graph, in whichever format it is.
pub fn graph_of(name: String, input: impl BufRead) -> Result<Lts, LoadError> {
    EdgeReader::new(input).and_then(|mut reader| Lts::read(&mut reader)).map_err(|error| match error {
        ReadError::Io(error) => LoadError::Io { name, error },
        ReadError::Empty => LoadError::Empty { name },
        error => LoadError::Graph { name, error },
    })
}

fn open(path: &Path) -> Result<File, LoadError> {
    let failed = |error| LoadError::Io { name: name(path), error };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(LoadError::Directory { name: name(path) });
    }
    Ok(file)
}

fn name(path: &Path) -> String {
    path.display().to_string()
}
