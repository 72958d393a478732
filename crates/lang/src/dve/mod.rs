//! DVE, the language of the BEEM models: text → [`plimsoll_ir::System`]. What is supported, and which
//! meaning was chosen where tools differ, is written down in `docs/dve.md`.
//!
//! The way through: [`lexer`] → [`parser`] → [`ast`] → [`check`] (declarations) → [`lower`] (transitions).

mod ast;
mod channel;
mod check;
mod expr;
mod lexer;
mod lower;
mod parser;
mod symbols;
mod sync;
mod value;

pub use symbols::Symbols;

use crate::Options;
use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use plimsoll_ir::{Property, PropertyKind, System};
use std::path::Path;

/// Translates a model; also returns its names and the warnings.
pub fn load(source: &Source, options: &Options) -> Result<(System, Symbols, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut diagnostics = Diagnostics::default();
    let mut model = parser::parse(&source.text, &mut diagnostics);
    if diagnostics.error_count() > 0 {
        return Err(diagnostics.finish().err().unwrap_or_default());
    }
    if let Some(property) = model.system.as_ref().and_then(|line| line.property)
        && !options.ignore_property
    {
        let diagnostic = Diagnostic::error("LTL property process: not supported yet", property.span)
            .note("the system can be checked without it if the property is ignored");
        diagnostics.push(diagnostic);
    }
    let name = Path::new(&source.name).file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    let (system, mut symbols) = check::declare(&mut model, &name, &mut diagnostics);
    // Transitions are looked at even after errors in declarations, to report all errors at once.
    let system = lower::lower(&model, &mut symbols, system, &source.text, options, &mut diagnostics);
    diagnostics.finish().map(|warnings| (system, symbols, warnings))
}

/// Reads an expression over the names of a model: globals, `P.s` and `P->v` for every process.
pub fn property(symbols: &Symbols, text: &str, kind: PropertyKind) -> Result<Property, Vec<Diagnostic>> {
    let mut diagnostics = Diagnostics::default();
    let mut symbols = symbols.clone();
    let model = ast::Model { names: std::mem::take(&mut symbols.names), ..ast::Model::default() };
    let (model, parsed) = parser::parse_expression(text, model, &mut diagnostics);
    symbols.names = model.names;
    let value = parsed
        .map(|id| expr::Lowering::new(&model.exprs, &symbols, expr::Scope::Everywhere, &mut diagnostics).value(id));
    diagnostics.finish()?;
    let expr = value.map_or(plimsoll_ir::Expr::TRUE, |value| value.expr);
    let (temps, prelude) = (Vec::new(), Vec::new());
    Ok(Property { name: text.trim().into(), line: 0, kind, temps, prelude, expr })
}
