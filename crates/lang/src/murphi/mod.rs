//! Murphi as CMurphi and Rumur read it: text → [`plimsoll_ir::System`].
//!
//! Both dialects are accepted; where they give one model different meanings, [`Options::dialect`] decides.
//! What is supported, and what differs from either tool, is in `docs/murphi.md`.

mod ast;
mod definite;
mod lexer;
mod lower;
mod names;
mod parser;
mod symmetric;
mod tight;
mod types;

use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use plimsoll_ir::passes::rebase::Rebased;
use plimsoll_ir::{Property, PropertyKind, Spelling, Symmetry, System};

/// Whose meaning counts where the tools differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    #[default]
    Cmurphi,
    Rumur,
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub dialect: Dialect,
    /// Values for constants of the model, instead of those it declares.
    pub constants: Vec<(String, i64)>,
    /// Rounds of a `while` loop before it counts as endless; without it, what the dialect says.
    pub loop_limit: Option<u32>,
    /// Procedures of up to so many statements and expression nodes are expanded at each call; without it, a good number.
    pub expanded: Option<usize>,
}

/// What is needed to understand expressions over the names of a model.
#[derive(Clone, Debug)]
pub struct Symbols {
    text: String,
    options: Options,
    symmetry: Symmetry,
    covers: Vec<Property>,
    rebased: Rebased,
}

impl Symbols {
    /// Conditions that should hold in some reachable state.
    pub fn covers(&self) -> &[Property] {
        &self.covers
    }

    /// Which values of the model are interchangeable, by its scalarsets.
    pub fn symmetry(&self) -> &Symmetry {
        &self.symmetry
    }
}

/// Translates a model; also returns its names and the warnings.
pub fn load(source: &Source, options: &Options) -> Result<(System, Symbols, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut diagnostics = Diagnostics::default();
    let program = parser::program(&source.text, &mut diagnostics);
    if diagnostics.error_count() > 0 {
        return Err(finished(diagnostics));
    }
    let Ok(lowered) = lower::program(&source.text, &source.name, &program, options, &mut diagnostics) else {
        return Err(finished(diagnostics));
    };
    let lower::Translated { mut system, types, vars, mut covers, defined } = lowered;
    let warnings = diagnostics.finish()?;
    if let Err(flaws) = plimsoll_ir::verify(&system) {
        return Err(flaws.iter().map(|flaw| Diagnostic::general(flaw.to_string())).collect());
    }
    let scalars = names::of(&types, system.vars.iter().map(|var| var.name.as_str()).zip(vars.iter().copied()));
    system.spelling = Some(Spelling { scalars, assign: " := " });
    let symmetry = symmetric::of(&types, &vars);
    let (system, rebased) = tight::tighten(system, &defined, &symmetry);
    covers.iter_mut().for_each(|cover| rebased.property(cover));
    let symbols = Symbols { text: source.text.clone(), options: options.clone(), symmetry, covers, rebased };
    Ok((system, symbols, warnings))
}

/// Reads an expression over the global names of a model. Values of scalarsets can be named as traces name them (`Proc_1`).
pub fn property(symbols: &Symbols, text: &str, kind: PropertyKind) -> Result<Property, Vec<Diagnostic>> {
    let (mut property, _) = read_property(symbols, text, Some(kind))?;
    symbols.rebased.property(&mut property);
    Ok(property)
}

/// The same for a number, which is no property of any kind.
pub fn value(symbols: &Symbols, text: &str) -> Result<Property, Vec<Diagnostic>> {
    let (mut property, _) = read_property(symbols, text, None)?;
    symbols.rebased.property(&mut property);
    Ok(property)
}

/// Does an expression name a value of a scalarset? Then it is not the same for all of them, and symmetry says nothing about it.
pub fn names_elements(symbols: &Symbols, text: &str) -> bool {
    read_property(symbols, text, Some(PropertyKind::Goal)).is_ok_and(|(_, named)| named)
}

fn read_property(
    symbols: &Symbols,
    text: &str,
    kind: Option<PropertyKind>,
) -> Result<(Property, bool), Vec<Diagnostic>> {
    let mut diagnostics = Diagnostics::default();
    let program = parser::program(&symbols.text, &mut Diagnostics::default());
    let made = parser::expression(text, &mut diagnostics).ok().and_then(|expr| {
        lower::property(&symbols.text, &program, &expr, text, kind, &symbols.options, &mut diagnostics).ok()
    });
    made.ok_or_else(|| finished(diagnostics))
}

/// The messages of something that failed; there is always one.
fn finished(diagnostics: Diagnostics) -> Vec<Diagnostic> {
    match diagnostics.finish() {
        Err(all) => all,
        Ok(warnings) => {
            std::iter::once(Diagnostic::general("the model cannot be translated")).chain(warnings).collect()
        }
    }
}
