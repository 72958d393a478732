//! From a model file to a verified system with the properties that were asked for.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::{
    DeadlockName, DialectName, LanguageName, LookFor, ModelOptions, OverflowName, SwitchName, SymmetryName,
};
use crate::output::is_standard;
use plimsoll_ir::passes::{optimise_for, reduce};
use plimsoll_ir::{Deadlock, Property, PropertyKind, Symmetry, System, text, verify};
use plimsoll_lang::promela::Promela;
use plimsoll_lang::{self as lang, Language, Loaded, LoadedModel, Lts, Overflow, Source, Symbols, diagnostic, murphi};
use plimsoll_model::Graph;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::OnceLock;

/// A model as loaded.
pub struct Subject {
    pub language: &'static str,
    pub content: Content,
    /// Rendered warnings of the front end.
    pub warnings: Vec<String>,
    /// Which values of the model are interchangeable, if that is to be used.
    pub symmetry: Option<Symmetry>,
    /// Conditions that should hold in some reachable state.
    pub covers: Vec<Property>,
    /// What a guided search is to make small.
    pub cost: Option<Property>,
    /// A Promela model is prepared for some processes; a run that needs others asks for more.
    pub promela: Option<Box<Promela>>,
}

impl Subject {
    fn plain(language: &'static str, content: Content) -> Subject {
        Subject {
            language,
            content,
            warnings: Vec::new(),
            symmetry: None,
            covers: Vec::new(),
            cost: None,
            promela: None,
        }
    }
}

/// What is checked.
pub enum Content {
    System(System),
    Graph(Graph),
}

impl Content {
    /// Simplifies a system; what can be observed stays, and so do the positions of successors. With symmetry that is so in
    /// all states that come of reachable ones by renaming.
    pub fn optimised(self, symmetry: Option<&Symmetry>) -> Content {
        match self {
            Content::System(system) => Content::System(optimise_for(system, symmetry)),
            graph => graph,
        }
    }

    /// Simplifies a system. If steps are to be merged, verdicts stay, but not states and positions.
    pub fn prepared(self, merge: bool, symmetry: Option<&Symmetry>) -> Content {
        match self.optimised(symmetry) {
            Content::System(system) if merge => Content::System(reduce(system)),
            content => content,
        }
    }

    /// The system, unless it is a graph.
    pub fn system(&self) -> Option<&System> {
        match self {
            Content::System(system) => Some(system),
            Content::Graph(_) => None,
        }
    }
}

/// Are steps to be merged, where a command does so or not unless told?
pub fn merges(options: &ModelOptions, unless_told: bool) -> bool {
    options.merge.map_or(unless_told, |merge| merge == SwitchName::On)
}

/// What is read instead of a file: all of standard input, once.
static STANDARD_INPUT: OnceLock<Vec<u8>> = OnceLock::new();

/// All that standard input has.
pub fn standard_input() -> Result<&'static [u8], Failure> {
    if STANDARD_INPUT.get().is_none() {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| Failure::usage(format!("standard input: cannot be read: {error}")))?;
        let _ = STANDARD_INPUT.set(bytes);
    }
    Ok(STANDARD_INPUT.get().expect("it was just read"))
}

/// A number by which a text is known again (FNV-1a; Fowler, Noll and Vo).
pub struct Fingerprint(u64);

impl Fingerprint {
    pub fn new() -> Fingerprint {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, &byte| (sum ^ byte as u64).wrapping_mul(0x100_0000_01b3));
    }
}

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// The fingerprint of the text of a model.
pub fn fingerprint(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("{}: cannot be read: {error}", path.display()));
    let mut file: Box<dyn BufRead> = match is_standard(path) {
        true => Box::new(standard_input()?),
        false => Box::new(BufReader::new(File::open(path).map_err(failed)?)),
    };
    let mut sum = Fingerprint::new();
    loop {
        let bytes = file.fill_buf().map_err(failed)?;
        if bytes.is_empty() {
            return Ok(sum.to_string());
        }
        sum.add(bytes);
        let read = bytes.len();
        file.consume(read);
    }
}

/// The extension of the textual intermediate representation.
const IR_EXTENSION: &str = "ir";
const IR_NAME: &str = "IR";

/// Loads a model. With goals to find, nothing but them (and given invariants) is looked for.
pub fn load(options: &ModelOptions, look_for: &LookFor, styled: bool) -> Result<Subject, Failure> {
    let is_ir = options.model.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(IR_EXTENSION));
    let mut subject = match options.language {
        Some(LanguageName::Ir) => load_ir(&options.model, look_for)?,
        None if is_ir => load_ir(&options.model, look_for)?,
        _ => load_language(options, look_for, styled)?,
    };
    refuse_foreign(options, subject.language)?;
    if let Content::System(system) = &mut subject.content
        && system.name.is_empty()
    {
        system.name = stem(&options.model);
    }
    if let Content::System(system) = &mut subject.content {
        set_deadlock(system, options.deadlock)?;
    }
    if options.symmetry == SymmetryName::Off {
        subject.symmetry = None;
    }
    Ok(subject)
}

/// Options that the language of the model knows nothing of would be ignored silently: better to say so.
fn refuse_foreign(options: &ModelOptions, language: &'static str) -> Result<(), Failure> {
    let [promela, murphi] = [Language::Promela, Language::Murphi].map(Language::name);
    let given = [
        (!options.define.is_empty(), "-D", promela),
        (!options.constant.is_empty(), "--const", murphi),
        (options.dialect.is_some(), "--dialect", murphi),
        (options.loop_limit.is_some(), "--loop-limit", murphi),
        (options.symmetry != SymmetryName::Off, "--symmetry", murphi),
    ];
    match given.into_iter().find(|&(given, _, of)| given && of != language) {
        Some((_, option, of)) => {
            Err(Failure::usage(format!("{option} is for {of} models, and this one is {language}")))
        }
        None => Ok(()),
    }
}

/// Gives the system the notion of a deadlock that was asked for.
fn set_deadlock(system: &mut System, asked: Option<DeadlockName>) -> Result<(), Failure> {
    match (asked, &system.deadlock) {
        (Some(DeadlockName::Stuck), Deadlock::Stuttering) => system.deadlock = Deadlock::Stuck { accepted: None },
        (Some(DeadlockName::Stuttering), Deadlock::Stuck { accepted: Some(_) }) => {
            return Err(Failure::usage(
                "--deadlock stuttering: the language of the model has states that are valid ends",
            ));
        }
        (Some(DeadlockName::Stuttering), _) => system.deadlock = Deadlock::Stuttering,
        _ => {}
    }
    Ok(())
}

/// The file's name without folder and extension.
pub fn stem(path: &Path) -> String {
    path.file_stem().map_or(String::new(), |stem| stem.display().to_string())
}

fn load_language(options: &ModelOptions, look_for: &LookFor, styled: bool) -> Result<Subject, Failure> {
    let given = front_end_options(options);
    let loaded = match given.language {
        _ if !is_standard(&options.model) => lang::load(&options.model, &given),
        Some(language) => lang::load_bytes("standard input", standard_input()?.to_vec(), language, &given),
        None => return Err(Failure::usage("the model on standard input has no extension: name its --language")),
    };
    let loaded = loaded.map_err(|error| Failure::of_load(&error, styled))?;
    let mut asked = look_for.find.iter().chain(&look_for.invariant);
    if let Some(text) = asked.find(|text| options.symmetry != SymmetryName::Off && loaded.breaks_symmetry(text)) {
        return Err(Failure::usage(format!(
            "`{text}` names one of several values that are alike: not with --symmetry"
        )));
    }
    of_loaded(loaded, look_for, styled)
}

/// If the path at `positions` ends in a fault because a process had no place to live, the model with room for it.
pub fn refined(
    promela: &Promela,
    executor: &Executor,
    positions: &[u32],
    look_for: &LookFor,
) -> Result<Option<Subject>, Failure> {
    match executor.problem_at_end(positions) {
        Some(message) => larger(promela, &message, look_for),
        None => Ok(None),
    }
}

/// If `message` says that a process has no place to live, the model with room for it.
pub fn larger(promela: &Promela, message: &str, look_for: &LookFor) -> Result<Option<Subject>, Failure> {
    promela.refine(message).map(|larger| of_promela(larger, look_for)).transpose()
}

/// A Promela model that was loaded before, with the processes that it is prepared for now.
pub fn of_promela(promela: Promela, look_for: &LookFor) -> Result<Subject, Failure> {
    let system = promela.system().map_err(|found| Failure::Model(render_all(&found)))?;
    let model = LoadedModel::System { system, symbols: Symbols::Promela(Box::new(promela)) };
    let source = Source { name: String::new(), text: String::new() };
    of_loaded(Loaded { source, language: Language::Promela, model, warnings: Vec::new() }, look_for, false)
}

fn render_all(found: &[lang::Diagnostic]) -> String {
    found.iter().map(|diagnostic| format!("error: {}", diagnostic.message)).collect::<Vec<_>>().join("\n")
}

fn of_loaded(loaded: Loaded, look_for: &LookFor, styled: bool) -> Result<Subject, Failure> {
    let warnings: Vec<String> = loaded
        .warnings
        .iter()
        .map(|warning| diagnostic::render(&loaded.source, std::slice::from_ref(warning), styled).trim_end().to_string())
        .collect();
    let properties = properties(look_for, |text, option, kind| {
        let source = Source { name: option.into(), text: text.into() };
        let render = |found: Vec<lang::Diagnostic>| diagnostic::render(&source, &found, styled);
        loaded.property(text, kind).map_err(|found| Failure::Usage(render(found).trim_end().to_string()))
    })?;
    let cost = look_for.cost.as_ref().map(|text| {
        let source = Source { name: "--cost".into(), text: text.clone() };
        let render = |found: Vec<lang::Diagnostic>| diagnostic::render(&source, &found, styled).trim_end().to_string();
        loaded.value(text).map_err(|found| Failure::Usage(render(found)))
    });
    let cost = cost.transpose()?;
    let language = loaded.language.name();
    let symmetry = loaded.symmetry().cloned();
    let covers = if look_for.find.is_empty() { loaded.covers().to_vec() } else { Vec::new() };
    let (mut system, symbols) = match loaded.model {
        LoadedModel::System { system, symbols } => (system, symbols),
        LoadedModel::Graph(lts) => {
            let graph =
                graph(lts).map_err(|error| Failure::Model(format!("error: {}: {error}", loaded.source.name)))?;
            return Ok(Subject { warnings, ..Subject::plain(language, Content::Graph(graph)) });
        }
    };
    add_properties(&mut system, properties, look_for);
    verify(&system).map_err(|flaws| {
        let flaw = flaws.first().map(ToString::to_string).unwrap_or_default();
        Failure::internal(format!("the front end made a system that cannot be run: {flaw}"))
    })?;
    let promela = match symbols {
        Symbols::Promela(promela) => Some(promela),
        Symbols::Dve(_) | Symbols::Murphi(_) => None,
    };
    Ok(Subject { warnings, symmetry, covers, cost, promela, ..Subject::plain(language, Content::System(system)) })
}

fn graph(lts: Lts) -> Result<Graph, String> {
    let first: Result<Vec<u32>, _> = lts.first.into_iter().map(u32::try_from).collect();
    let first = first.map_err(|_| "too many edges".to_string())?;
    Graph::new(lts.initial, first, lts.label, lts.target, lts.labels)
}

fn front_end_options(options: &ModelOptions) -> lang::Options {
    lang::Options {
        language: options.language.and_then(|name| match name {
            LanguageName::Dve => Some(Language::Dve),
            LanguageName::Aut => Some(Language::Aut),
            LanguageName::Lts => Some(Language::Lts),
            LanguageName::Promela => Some(Language::Promela),
            LanguageName::Murphi => Some(Language::Murphi),
            LanguageName::Ir => None,
        }),
        overflow: match options.overflow {
            Some(OverflowName::Error) => Overflow::Error,
            Some(OverflowName::Wrap) | None => Overflow::Wrap,
        },
        ignore_property: options.ignore_property,
        murphi: murphi::Options {
            dialect: match options.dialect {
                Some(DialectName::Rumur) => murphi::Dialect::Rumur,
                Some(DialectName::Cmurphi) | None => murphi::Dialect::Cmurphi,
            },
            constants: options.constant.clone(),
            loop_limit: options.loop_limit,
            expanded: None,
        },
        promela: lang::promela::Options { defines: options.define.clone() },
    }
}

/// Reads the textual form of a system.
fn load_ir(path: &Path, look_for: &LookFor) -> Result<Subject, Failure> {
    let name = path.display();
    let bytes = match is_standard(path) {
        true => standard_input()?.to_vec(),
        false => std::fs::read(path).map_err(|error| Failure::usage(format!("{name}: cannot be read: {error}")))?,
    };
    let model_error = |message: String| Failure::Model(format!("error: {name}: {message}"));
    let text = String::from_utf8(bytes).map_err(|_| model_error("the file is not text".into()))?;
    let mut system = text::parse(&text).map_err(|error| Failure::Model(format!("error: {name}:{error}")))?;
    let properties = properties(look_for, |_, option, _| {
        Err(Failure::usage(format!(
            "{option}: expressions are not understood for the textual IR; put them into the file"
        )))
    })?;
    add_properties(&mut system, properties, look_for);
    verify(&system).map_err(|flaws| {
        let lines: Vec<String> = flaws.iter().take(20).map(|flaw| format!("error: {name}: {flaw}")).collect();
        Failure::Model(lines.join("\n"))
    })?;
    Ok(Subject::plain(IR_NAME, Content::System(system)))
}

fn properties(
    look_for: &LookFor,
    mut parse: impl FnMut(&str, &str, PropertyKind) -> Result<Property, Failure>,
) -> Result<Vec<Property>, Failure> {
    let goals = look_for.find.iter().map(|text| (text, "--find", PropertyKind::Goal));
    let invariants = look_for.invariant.iter().map(|text| (text, "--invariant", PropertyKind::Invariant));
    goals
        .chain(invariants)
        .map(|(text, option, kind)| {
            let property = parse(text, option, kind)?;
            Ok(Property { name: text.clone(), ..property })
        })
        .collect()
}

fn add_properties(system: &mut System, properties: Vec<Property>, look_for: &LookFor) {
    if !look_for.find.is_empty() {
        system.properties.clear();
    }
    system.properties.extend(properties);
}
