//! Choices that have names on the command line.

use clap::ValueEnum;

/// Something that can be turned on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchName {
    On,
    Off,
}

/// A Murphi dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DialectName {
    Cmurphi,
    Rumur,
}

/// When a state is deadlocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeadlockName {
    /// No step is possible
    Stuck,
    /// No step leads to another state
    Stuttering,
    /// Deadlocks are not reported
    Off,
}

/// How far symmetry is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SymmetryName {
    #[default]
    Off,
    /// Sort; quick, but several states of an orbit may be visited
    Heuristic,
    /// Exactly one state of each orbit
    Exact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LanguageName {
    Dve,
    Aut,
    Lts,
    Promela,
    Murphi,
    /// The textual intermediate representation
    Ir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverflowName {
    /// Keep the low bits
    Wrap,
    /// Is an error of the model
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub enum Order {
    #[default]
    Bfs,
    Dfs,
    /// Depth first, the last successor first (the order in which SPIN takes processes)
    DfsReverse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub enum ExecutorName {
    #[default]
    Jit,
    Interp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorName {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderChoice {
    Bfs,
    Dfs,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverflowChoice {
    Wrap,
    Error,
    Both,
}

/// A checker that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OracleName {
    Spin,
    Rumur,
}

/// The name by which a value is given on the command line.
pub fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

impl ColorName {
    /// Is output to this stream to be coloured?
    pub fn wanted(self, stream: &impl std::io::IsTerminal) -> bool {
        match self {
            ColorName::Auto => stream.is_terminal() && !is_plain(),
            ColorName::Always => true,
            ColorName::Never => false,
        }
    }
}

/// Does the terminal, or the person before it, want nothing but text?
pub fn is_plain() -> bool {
    let is = |name: &str, wanted: &dyn Fn(&std::ffi::OsStr) -> bool| {
        std::env::var_os(name).is_some_and(|text| wanted(&text))
    };
    is("NO_COLOR", &|text| !text.is_empty()) || is("TERM", &|text| text == "dumb")
}
