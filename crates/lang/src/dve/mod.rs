//! DVE, the language of the BEEM models: text → [`plimsoll_ir::System`]. What is supported and which
//! meaning was chosen where tools differ is written down in `docs/dve.md`.

use crate::Options;
use crate::diagnostic::{Diagnostic, Source};
use plimsoll_ir::{Property, PropertyKind, System};

/// What the names of a model mean.
#[derive(Clone, Debug)]
pub struct Symbols {}

/// Translates a model; also returns its names and the warnings.
pub fn load(source: &Source, options: &Options) -> Result<(System, Symbols, Vec<Diagnostic>), Vec<Diagnostic>> {
    let _ = (source, options);
    Err(vec![Diagnostic::general("not there yet")])
}

/// Reads an expression over the names of a model: globals, `P.s` and `P->v` for every process.
pub fn property(symbols: &Symbols, text: &str, kind: PropertyKind) -> Result<Property, Vec<Diagnostic>> {
    let _ = (symbols, text, kind);
    Err(vec![Diagnostic::general("not there yet")])
}
