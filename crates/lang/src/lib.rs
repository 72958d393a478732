//! A model file becomes an [`plimsoll_ir::System`] (or, for explicit graphs, an [`Lts`]).
//!
//! [`load`] reads a file, guesses its language and dispatches to the front end; what is wrong with the
//! text comes back as [`Diagnostic`]s with spans. Front ends never panic on any input.

#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod dve;
mod file;
pub mod murphi;
pub mod promela;

pub use diagnostic::{Diagnostic, Severity, Source, Span};
pub use file::LoadError;
use plimsoll_ir::{Property, PropertyKind, System};
pub use plimsoll_lts::Lts;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    Dve,
    Aut,
    Lts,
    Promela,
    Murphi,
}

impl Language {
    /// The language that a file extension stands for.
    pub fn of_extension(extension: &str) -> Option<Language> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "dve" => Language::Dve,
            "aut" => Language::Aut,
            "lts" => Language::Lts,
            "pml" | "pm" | "pr" | "prm" | "prom" | "promela" | "spin" => Language::Promela,
            "m" | "murphi" => Language::Murphi,
            _ => return None,
        })
    }

    pub const fn name(self) -> &'static str {
        match self {
            Language::Dve => "DVE",
            Language::Aut => "AUT",
            Language::Lts => "LTS",
            Language::Promela => "Promela",
            Language::Murphi => "Murphi",
        }
    }
}

impl Language {
    /// Explicit graphs, which are read as a stream and need not be text.
    fn is_graph(self) -> bool {
        matches!(self, Language::Aut | Language::Lts)
    }
}

/// What a store of a value that does not fit does, in languages that leave it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// Keeps the low bits.
    #[default]
    Wrap,
    /// Is an error of the model.
    Error,
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Overrides the guess from the extension.
    pub language: Option<Language>,
    pub overflow: Overflow,
    /// Leaves out the property process of a model with an LTL property, instead of refusing it.
    pub ignore_property: bool,
    pub murphi: murphi::Options,
    pub promela: promela::Options,
}

/// A model, ready to be checked.
#[derive(Debug)]
pub struct Loaded {
    /// The text, for messages; empty for graphs, which are read as a stream.
    pub source: Source,
    pub language: Language,
    pub model: LoadedModel,
    pub warnings: Vec<Diagnostic>,
}

#[derive(Debug)]
pub enum LoadedModel {
    System { system: System, symbols: Symbols },
    Graph(Lts),
}

/// Names of the source language, kept to understand expressions given later.
#[derive(Clone, Debug)]
pub enum Symbols {
    Dve(Box<dve::Symbols>),
    Murphi(Box<murphi::Symbols>),
    Promela(Box<promela::Promela>),
}

impl Loaded {
    fn graph(name: String, language: Language, graph: Lts) -> Loaded {
        let source = Source { name, text: String::new() };
        Loaded { source, language, model: LoadedModel::Graph(graph), warnings: Vec::new() }
    }

    /// Conditions of the model that should hold in some reachable state.
    pub fn covers(&self) -> &[Property] {
        match &self.model {
            LoadedModel::System { symbols: Symbols::Murphi(symbols), .. } => symbols.covers(),
            _ => &[],
        }
    }

    /// The symmetry that the model declares, if it does.
    pub fn symmetry(&self) -> Option<&plimsoll_ir::Symmetry> {
        match &self.model {
            LoadedModel::System { symbols: Symbols::Murphi(symbols), .. } => Some(symbols.symmetry()),
            _ => None,
        }
    }

    /// Does an expression treat values differently that the model declares to be symmetric?
    pub fn breaks_symmetry(&self, text: &str) -> bool {
        match &self.model {
            LoadedModel::System { symbols: Symbols::Murphi(symbols), .. } => murphi::names_elements(symbols, text),
            _ => false,
        }
    }

    /// Parses an expression in the language of the model whose value counts, for `--cost`; where numbers are truths it is like a property.
    pub fn value(&self, text: &str) -> Result<Property, Vec<Diagnostic>> {
        match &self.model {
            LoadedModel::System { symbols: Symbols::Murphi(symbols), .. } => murphi::value(symbols, text),
            _ => self.property(text, PropertyKind::Goal),
        }
    }

    /// Parses an expression in the language of the model as a property, for example for `--find`.
    pub fn property(&self, text: &str, kind: PropertyKind) -> Result<Property, Vec<Diagnostic>> {
        match &self.model {
            LoadedModel::System { symbols: Symbols::Dve(symbols), .. } => dve::property(symbols, text, kind),
            LoadedModel::System { symbols: Symbols::Murphi(symbols), .. } => murphi::property(symbols, text, kind),
            LoadedModel::System { symbols: Symbols::Promela(model), .. } => model.property(text, kind),
            LoadedModel::Graph(_) => Err(vec![Diagnostic::general("a graph has no variables to speak about")]),
        }
    }
}

/// Loads a model file.
pub fn load(path: impl AsRef<Path>, options: &Options) -> Result<Loaded, LoadError> {
    let path = path.as_ref();
    let language = file::language_of(path, options)?;
    if language.is_graph() {
        return Ok(Loaded::graph(path.display().to_string(), language, file::read_graph(path)?));
    }
    load_bytes(&path.display().to_string(), file::read_bytes(path)?, language, options)
}

/// Loads a model from what was read elsewhere, under a name for messages.
pub fn load_bytes(name: &str, bytes: Vec<u8>, language: Language, options: &Options) -> Result<Loaded, LoadError> {
    if language.is_graph() {
        return Ok(Loaded::graph(name.into(), language, file::graph_of(name.into(), &bytes[..])?));
    }
    load_text(file::text_of(name.into(), bytes)?, language, options)
}

/// Loads a model from text.
pub fn load_text(source: Source, language: Language, options: &Options) -> Result<Loaded, LoadError> {
    if !language.is_graph() && source.text.trim().is_empty() {
        return Err(LoadError::Empty { name: source.name });
    }
    let result = match language {
        Language::Dve => dve::load(&source, options).map(|(system, symbols, warnings)| {
            (LoadedModel::System { system, symbols: Symbols::Dve(Box::new(symbols)) }, warnings)
        }),
        Language::Murphi => murphi::load(&source, &options.murphi).map(|(system, symbols, warnings)| {
            (LoadedModel::System { system, symbols: Symbols::Murphi(Box::new(symbols)) }, warnings)
        }),
        Language::Promela => promela::load(&source, options).map(|(system, model, warnings)| {
            (LoadedModel::System { system, symbols: Symbols::Promela(Box::new(model)) }, warnings)
        }),
        Language::Aut | Language::Lts => {
            let graph = file::graph_of(source.name.clone(), source.text.as_bytes())?;
            return Ok(Loaded::graph(source.name, language, graph));
        }
    };
    match result {
        Ok((model, warnings)) => Ok(Loaded { source, language, model, warnings }),
        Err(diagnostics) => Err(LoadError::Diagnostics { source, diagnostics }),
    }
}
