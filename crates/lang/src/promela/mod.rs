//! Promela, the language of SPIN: text → [`plimsoll_ir::System`]. What is supported, and where counts differ from
//! SPIN's, is written down in `docs/promela.md`.
//!
//! The way through: [`cpp`] (with [`lexer`]) → [`parser`] → [`ast`] → [`flow`] (locations) → [`lower`] (commands).

mod ast;
mod cpp;
mod flow;
mod lexer;
mod lower;
mod parser;

use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use crate::file::BYTE_ORDER_MARK;
pub use lower::ClaimNumbers;
use lower::config::Configuration;
use plimsoll_ir::{Property, PropertyKind, System};
use std::collections::BTreeSet;
use std::path::Path;

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Macros for the preprocessor: `NAME` or `NAME=value`.
    pub defines: Vec<String>,
}

/// A parsed model with the processes it is prepared for.
#[derive(Clone, Debug)]
pub struct Promela {
    program: ast::Program,
    config: Configuration,
    name: String,
}

/// Translates a model; also returns what is needed to prepare it for more processes, and the warnings.
pub fn load(source: &Source, options: &crate::Options) -> Result<(System, Promela, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut diagnostics = Diagnostics::default();
    let read = |path: &Path| {
        let text = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())?;
        Ok(text.strip_prefix(BYTE_ORDER_MARK).map_or(text.clone(), str::to_string))
    };
    let input = cpp::preprocess(source, &options.promela.defines, &read, &mut diagnostics);
    let mut program = parser::parse(input, &mut diagnostics);
    if options.ignore_property {
        (program.never, program.ltl, program.traces) = (None, Vec::new(), Vec::new());
    }
    refuse_liveness(&program, &mut diagnostics);
    if diagnostics.error_count() > 0 {
        return Err(diagnostics.finish().err().unwrap_or_default());
    }
    let name = Path::new(&source.name).file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    let promela = Promela { config: Configuration::guess(&program), program, name };
    match promela.system() {
        Ok(system) => diagnostics.finish().map(|warnings| (system, promela, warnings)),
        Err(errors) => {
            errors.into_iter().for_each(|error| diagnostics.push(error));
            Err(diagnostics.finish().err().unwrap_or_default())
        }
    }
}

/// Says what cannot be checked, rather than leave it out in silence.
fn refuse_liveness(program: &ast::Program, diagnostics: &mut Diagnostics) {
    let ignore = "safety can be checked without it: --ignore-property leaves it out";
    for (name, site) in &program.ltl {
        let message = format!("ltl formula {name}: liveness is not checked yet");
        diagnostics.push(Diagnostic::error(message.replace("  ", " "), site.span).note(ignore));
    }
    for site in &program.traces {
        let message = "trace and notrace assertions are not checked yet";
        diagnostics.push(Diagnostic::error(message, site.span).note(ignore));
    }
    let Some(never) = &program.never else { return };
    if let Some(local) = never.locals.first() {
        let message = format!("a never claim cannot have variables of its own, such as {}", local.name);
        diagnostics.push(Diagnostic::error(message, local.site.span).note("declare it outside the claim"));
    }
    let mut accepts = false;
    ast::walk_statements(&never.body, &mut |stmt| {
        accepts |= stmt.labels.iter().any(|label| label.name.starts_with("accept"));
    });
    if accepts {
        let message = "acceptance cycles of the never claim are not checked yet, only whether it reaches its end";
        diagnostics.push(Diagnostic::warning(message, never.site.span));
    }
}

impl Promela {
    /// The system for the current configuration.
    pub fn system(&self) -> Result<System, Vec<Diagnostic>> {
        lower::lower(&self.program, &self.config, &self.name).map_err(messages)
    }

    /// Reads an expression over the global names of the model.
    pub fn property(&self, text: &str, kind: PropertyKind) -> Result<Property, Vec<Diagnostic>> {
        let mut diagnostics = Diagnostics::default();
        let source = Source { name: String::new(), text: text.into() };
        let none = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
        let input = cpp::preprocess(&source, &[], &none, &mut diagnostics);
        let value = parser::parse_expression(input, &self.program, &mut diagnostics);
        diagnostics.finish()?;
        let value = value.unwrap_or(ast::Expr::Number(1));
        let property = lower::lower_expression(&self.program, &self.config, &value).map_err(messages)?;
        Ok(Property { name: text.trim().into(), kind, ..property })
    }

    /// How SPIN numbers the statements of the never claim, if there is one.
    pub fn claim_numbers(&self) -> Option<ClaimNumbers> {
        lower::claim_numbers(&self.program, &self.config)
    }

    /// May a run ask for processes that the model is not prepared for?
    pub fn may_need_room(&self) -> bool {
        self.config.may_grow(&self.program)
    }

    /// If a fault says that a process has no place to live, the same model with room for it.
    pub fn refine(&self, message: &str) -> Option<Promela> {
        Some(Promela { config: self.config.refine(&self.program, message)?, ..self.clone() })
    }

    /// As [`Promela::refine`], but with room for many more.
    pub fn refine_generously(&self, message: &str) -> Option<Promela> {
        Some(Promela { config: self.config.refine_generously(&self.program, message)?, ..self.clone() })
    }

    /// The same model with room for these proctypes as these processes, given by number; nothing if there is room already.
    pub fn with_room_for(&self, tenants: &BTreeSet<(usize, usize)>) -> Option<Promela> {
        let config = self.config.with_room_for(tenants);
        (config != self.config).then(|| Promela { config, ..self.clone() })
    }

    /// For each proctype and each of its locations: may whoever is there run a process, now or later?
    pub fn runners(&self) -> Vec<Vec<bool>> {
        let found = |proctype| flow::automaton(proctype, &self.program.remote_labels, false);
        let runners = |proctype| found(proctype).map_or(Vec::new(), |found| found.leading_to(|step| step.runs()));
        self.program.proctypes.iter().map(runners).collect()
    }

    /// For each process of the system, the number of a proctype and how many locations it has, in the order of the
    /// locations; location 0 is that of no proctype.
    pub fn tenants(&self) -> Vec<Vec<(usize, usize)>> {
        let count = |proctype| flow::automaton(proctype, &self.program.remote_labels, false);
        let counts: Vec<usize> = self
            .program
            .proctypes
            .iter()
            .map(|proctype| count(proctype).map_or(0, |found| found.locations.len()))
            .collect();
        let of_slot = |slot: &Vec<usize>| slot.iter().map(|&proctype| (proctype, counts[proctype])).collect();
        self.config.slots.iter().map(of_slot).collect()
    }
}

fn messages(problems: lower::Problems) -> Vec<Diagnostic> {
    problems.into_iter().map(|(message, site)| Diagnostic::error(message, site.span)).collect()
}
