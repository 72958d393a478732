//! A transition system as guarded commands.
//!
//! A state is the value of all variables. In a state, an instance of a command (one value for each of
//! its choices) is enabled when its processes stand at the locations it names and its guard is true;
//! it leads to the state its body computes. Successors come in the order of commands, then of choices
//! (the last choice varies fastest); both executors keep that order, so "the k-th successor" has one
//! meaning everywhere.

use crate::expr::{Expr, Place, Root, Stmt};
use crate::types::{Enumeration, Type};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// Index into [`System::vars`].
    VarId
);
id!(
    /// Index into a command's (or property's) temporaries.
    TempId
);
id!(
    /// Index into [`System::processes`].
    ProcessId
);
id!(
    /// Index into [`System::commands`].
    CommandId
);
id!(
    /// Index into [`System::properties`].
    PropertyId
);
id!(
    /// Index into [`System::procedures`].
    ProcedureId
);
id!(
    /// Index into [`Procedure::references`].
    ReferenceId
);

/// A variable of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub name: String,
    pub ty: Type,
    /// The process whose own variable it is; such variables are laid out together.
    pub owner: Option<ProcessId>,
    /// One value per scalar of the type, in order; empty means all zero.
    pub init: Vec<i64>,
}

/// A sequential process: a name for a location variable and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub name: String,
    /// The variable (a scalar from 0) that holds the control location.
    pub location: VarId,
    /// Names of the locations, by number.
    pub locations: Vec<String>,
}

/// One free parameter of a command, ranging over `low..=high`; its value is held in a temporary.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub temp: TempId,
    pub low: i64,
    pub high: i64,
}

/// What a command does, for reductions and for replacement by kind of transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Moves control only.
    Control,
    Receive,
    Send,
    Assign,
    Other,
}

/// A statement of the model's text that a command carries out, for people and for other tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    pub process: ProcessId,
    /// The process as people call it; a process of the system may stand for several of the model.
    pub who: String,
    pub text: String,
    pub kind: Kind,
    /// The file that `line` is in, empty for that of the model.
    pub file: String,
    pub line: u32,
    /// The numbers that other tools of the language give the statement: among those of its kind of process, and
    /// among all.
    pub number: (u32, u32),
}

/// A guarded command.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// What a person sees in a trace.
    pub label: String,
    /// The statements it stands for, in order, if the language tells; a rendezvous has two, the sender's first.
    pub acts: Vec<Act>,
    /// Line in the source, 0 if there is none.
    pub line: u32,
    pub kind: Kind,
    /// In a state, only enabled commands of the smallest rank that has any are taken.
    pub rank: u8,
    /// Processes that must stand at a location; the first is the one that moves.
    pub at: Vec<(ProcessId, u32)>,
    /// Temporaries, each starting as zero.
    pub temps: Vec<(String, Type)>,
    pub choices: Vec<Choice>,
    /// Runs before the guard and may write temporaries only.
    pub prelude: Vec<Stmt>,
    pub guard: Expr,
    pub body: Vec<Stmt>,
}

impl Command {
    /// A command without location, guard or effect, to be filled in.
    pub fn new(label: impl Into<String>) -> Command {
        Command {
            label: label.into(),
            acts: Vec::new(),
            line: 0,
            kind: Kind::Other,
            rank: 0,
            at: Vec::new(),
            temps: Vec::new(),
            choices: Vec::new(),
            prelude: Vec::new(),
            guard: Expr::TRUE,
            body: Vec::new(),
        }
    }

    /// Adds a temporary.
    pub fn temp(&mut self, name: impl Into<String>, ty: impl Into<Type>) -> TempId {
        self.temps.push((name.into(), ty.into()));
        TempId(self.temps.len() as u32 - 1)
    }

    /// The process that moves.
    pub fn process(&self) -> Option<ProcessId> {
        self.at.first().map(|&(process, _)| process)
    }

    /// How many instances the choices make; `None` if more than fit in 64 bits.
    pub fn instances(&self) -> Option<u64> {
        self.choices.iter().try_fold(1u64, |product, choice| {
            let span = u64::try_from(choice.high as i128 - choice.low as i128 + 1).unwrap_or(0);
            product.checked_mul(span)
        })
    }
}

/// Code that several commands, properties and procedures share. It may call itself and procedures that come before it.
///
/// A caller hands over parts of the state, which the body names as [`Root::Reference`], and copies what it has in
/// temporaries: into the first temporaries of the procedure before, out of some of them after.
#[derive(Clone, Debug, PartialEq)]
pub struct Procedure {
    pub name: String,
    /// Line in the source, 0 if there is none.
    pub line: u32,
    /// The types of parts of the state that the caller hands over.
    pub references: Vec<(String, Type)>,
    /// Temporaries; the first are given by the caller, the others start as zero.
    pub temps: Vec<(String, Type)>,
    /// So many of the temporaries are given by the caller.
    pub inputs: usize,
    /// The temporaries that the caller gets.
    pub outputs: Vec<TempId>,
    /// So often it may be at work inside itself; a call beyond that is a fault.
    pub recursion: u32,
    pub body: Vec<Stmt>,
}

/// What a piece of code may name besides the variables.
#[derive(Clone, Copy, Debug)]
pub struct Locals<'a> {
    pub temps: &'a [(String, Type)],
    pub references: &'a [(String, Type)],
}

impl<'a> Locals<'a> {
    /// Those of a command or property, which has no references.
    pub fn temps(temps: &'a [(String, Type)]) -> Locals<'a> {
        Locals { temps, references: &[] }
    }
}

impl Procedure {
    pub fn locals(&self) -> Locals<'_> {
        Locals { temps: &self.temps, references: &self.references }
    }
}

/// How a property is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PropertyKind {
    /// The expression must be true in every reachable state.
    Invariant,
    /// A state where the expression is true is searched for.
    Goal,
}

/// A property of single states.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    pub name: String,
    pub line: u32,
    pub kind: PropertyKind,
    pub temps: Vec<(String, Type)>,
    /// Runs before the expression and may write temporaries only.
    pub prelude: Vec<Stmt>,
    pub expr: Expr,
}

/// When a state counts as deadlocked.
#[derive(Clone, Debug, PartialEq)]
pub enum Deadlock {
    Never,
    /// No successor, unless the expression accepts the state as an end (it is false if there is none).
    Stuck {
        accepted: Option<Expr>,
    },
    /// No successor other than the state itself.
    Stuttering,
}

/// Where a faulting command leads when the search goes on after faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Faults {
    /// To no state.
    Vanish,
    /// To one common error state without successors, which counts as a state and as a deadlock.
    Absorb,
}

/// A whole model.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    pub name: String,
    pub enums: Vec<Enumeration>,
    pub vars: Vec<Var>,
    pub processes: Vec<Process>,
    /// Commands that run on the initial values and whose successors are the initial states; without
    /// any, the initial values themselves are the one initial state.
    pub starts: Vec<Command>,
    /// Sorted by moving process; commands without a process come last.
    pub commands: Vec<Command>,
    pub properties: Vec<Property>,
    /// Each calls only itself and such as come before it.
    pub procedures: Vec<Procedure>,
    pub deadlock: Deadlock,
    pub faults: Faults,
    /// While this scalar is non-zero in a successor, the successor is not a state of its own but stands
    /// for its own successors (an atomic chain). If it has none, it is a state after all, with the
    /// scalar set to zero.
    pub exclusive: Option<VarId>,
    /// Where the words of the language are not those of the layout.
    pub spelling: Option<Spelling>,
}

/// How the language of the model writes values of a state, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spelling {
    /// The names of all scalars, in the order of variables, fields and positions.
    pub scalars: Vec<String>,
    /// What stands between a name and its value.
    pub assign: &'static str,
}

impl System {
    /// A system without variables or commands, to be filled in.
    pub fn new(name: impl Into<String>) -> System {
        System {
            name: name.into(),
            enums: Vec::new(),
            vars: Vec::new(),
            processes: Vec::new(),
            starts: Vec::new(),
            commands: Vec::new(),
            properties: Vec::new(),
            procedures: Vec::new(),
            deadlock: Deadlock::Stuck { accepted: None },
            faults: Faults::Vanish,
            exclusive: None,
            spelling: None,
        }
    }

    /// Adds a variable.
    pub fn var(&mut self, name: impl Into<String>, ty: impl Into<Type>, owner: Option<ProcessId>) -> VarId {
        self.vars.push(Var { name: name.into(), ty: ty.into(), owner, init: Vec::new() });
        VarId(self.vars.len() as u32 - 1)
    }

    /// The type of a variable, a temporary or a reference.
    pub fn root_type<'a>(&'a self, locals: Locals<'a>, root: Root) -> &'a Type {
        match root {
            Root::Var(var) => &self.vars[var.index()].ty,
            Root::Temp(temp) => &locals.temps[temp.index()].1,
            Root::Reference(reference) => &locals.references[reference.index()].1,
        }
    }

    /// The type of a place.
    pub fn type_of<'a>(&'a self, locals: Locals<'a>, place: &Place) -> &'a Type {
        place.path.iter().fold(self.root_type(locals, place.root), |ty, access| ty.step(access))
    }

    /// Puts the commands into the order that executors rely on; stable.
    pub fn sort_commands(&mut self) {
        self.commands.sort_by_key(|command| command.process().map_or(u32::MAX, |process| process.0));
    }
}
