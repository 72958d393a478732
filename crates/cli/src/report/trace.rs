//! Traces. One is never held whole: it is kept as positions, and the model takes its steps again for everything that is
//! printed. What is stored in a file is [`TraceReport`] as JSON; reading it back gives a [`StoredTrace`].

use crate::executor::Executor;
use crate::options::{DeadlockName, DialectName, LanguageName, LookFor, ModelOptions, OverflowName, name_of};
use crate::stuck::{Stuck, stuck};
use crate::view::{ShownStep, View};
use clap::ValueEnum;
use plimsoll_ir::PropertyKind;
use plimsoll_search::{ReplayError, Trace, Violation, What, verify};
use serde::ser::{Error, SerializeSeq, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use std::io::Read;
use std::rc::Rc;

/// Marks files of this kind.
const FORMAT: &str = "plimsoll-trace";
const VERSION: u32 = 1;

/// A violation that was verified, with the model that shows it.
pub struct TraceReport {
    executor: Rc<Executor>,
    violation: Violation,
    pub origin: Origin,
    /// What goes wrong in the last step.
    pub problem: Option<String>,
}

/// Which model a trace is of, and under which options its positions mean what they mean.
#[derive(Clone, Debug)]
pub struct Origin {
    pub options: ModelOptions,
    /// Tells whether the text of the model has changed.
    pub fingerprint: String,
    /// Are these steps merged ones?
    pub merge: bool,
    pub look_for: LookFor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceEnd {
    Deadlock,
    Error,
    Assertion,
    Invariant,
    Goal,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertyName {
    pub number: u32,
    pub name: String,
}

impl TraceReport {
    /// Follows the path on the interpreter and verifies that its end is as wrong as claimed.
    pub fn new(executor: Rc<Executor>, violation: Violation, origin: Origin) -> Result<TraceReport, ReplayError> {
        verify(executor.reference(), &violation)?;
        let problem = match violation.what {
            What::Fault | What::Assertion => executor.problem_at_end(&violation.trace.positions),
            What::Deadlock | What::Property(_) => None,
        };
        Ok(TraceReport { executor, violation, origin, problem })
    }

    pub fn executor(&self) -> &Rc<Executor> {
        &self.executor
    }

    pub fn view(&self) -> View<'_> {
        View::new(&self.executor)
    }

    pub fn positions(&self) -> &[u32] {
        &self.violation.trace.positions
    }

    /// The file of the model.
    pub fn model(&self) -> String {
        self.origin.options.model.display().to_string()
    }

    pub fn what(&self) -> TraceEnd {
        match self.violation.what {
            What::Deadlock => TraceEnd::Deadlock,
            What::Fault => TraceEnd::Error,
            What::Assertion => TraceEnd::Assertion,
            What::Property(number) => match self.view().property(number).map(|text| text.kind) {
                Some(PropertyKind::Goal) => TraceEnd::Goal,
                _ => TraceEnd::Invariant,
            },
        }
    }

    fn property(&self) -> Option<PropertyName> {
        let What::Property(number) = self.violation.what else { return None };
        self.view().property(number).map(|text| PropertyName { number, name: text.name })
    }

    /// What the trace ends in, in a few words.
    pub fn end(&self) -> String {
        let name = self.property().map_or(String::new(), |property| property.name);
        match self.what() {
            TraceEnd::Deadlock => "a deadlock".into(),
            TraceEnd::Error => "a step that goes wrong".into(),
            TraceEnd::Assertion => "a failed assertion".into(),
            TraceEnd::Invariant => format!("`{name}` is violated"),
            TraceEnd::Goal => format!("`{name}` is true"),
        }
    }

    /// Where everybody stands in `last`, the last state, if it is a deadlock.
    pub fn stuck(&self, last: &[u32]) -> Option<Stuck> {
        (self.violation.what == What::Deadlock).then(|| stuck(&self.executor, &self.view(), last))
    }
}

impl Serialize for TraceReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (view, options) = (self.view(), &self.origin.options);
        let mut out = serializer.serialize_struct("trace", 21)?;
        out.serialize_field("format", FORMAT)?;
        out.serialize_field("version", &VERSION)?;
        out.serialize_field("model", &self.model())?;
        out.serialize_field("fingerprint", &self.origin.fingerprint)?;
        out.serialize_field("what", &self.what())?;
        out.serialize_field("property", &self.property())?;
        out.serialize_field("language", &options.language.map(name_of))?;
        out.serialize_field("overflow", &name_of(options.overflow.unwrap_or(OverflowName::Wrap)))?;
        out.serialize_field("merge", &self.origin.merge)?;
        out.serialize_field("ignore_property", &options.ignore_property)?;
        out.serialize_field("define", &options.define)?;
        out.serialize_field("const", &options.constant)?;
        out.serialize_field("dialect", &options.dialect.map(name_of))?;
        out.serialize_field("loop_limit", &options.loop_limit)?;
        out.serialize_field("deadlock", &options.deadlock.map(name_of))?;
        out.serialize_field("find", &self.origin.look_for.find)?;
        out.serialize_field("invariant", &self.origin.look_for.invariant)?;
        out.serialize_field("positions", self.positions())?;
        out.serialize_field("assign", view.assign())?;
        out.serialize_field("initial", &view.first(self.positions()))?;
        out.serialize_field("steps", &Steps(self, &view))?;
        out.serialize_field("stuck", &Last(self, &view))?;
        out.end()
    }
}

/// Serializes step by step.
struct Steps<'a>(&'a TraceReport, &'a View<'a>);

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.1.walk(self.0.positions(), 0..0, |step: ShownStep| list.serialize_element(&step))?;
        list.end()
    }
}

/// Serializes what the last state says.
struct Last<'a>(&'a TraceReport, &'a View<'a>);

impl Serialize for Last<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.violation.what != What::Deadlock {
            return serializer.serialize_none();
        }
        let positions = self.0.positions();
        let last = self.1.walk(positions, 0..positions.len(), |_| Ok(())).map_err(|()| S::Error::custom("no step"))?;
        self.0.stuck(&last).serialize(serializer)
    }
}

/// A trace as it was stored: all that is needed to follow it again. What was stored for people is passed over.
#[derive(Clone, Debug, Deserialize)]
pub struct StoredTrace {
    format: String,
    version: u32,
    #[serde(default)]
    pub fingerprint: String,
    what: TraceEnd,
    property: Option<PropertyName>,
    language: Option<String>,
    overflow: String,
    #[serde(default)]
    pub merge: bool,
    #[serde(default)]
    ignore_property: bool,
    #[serde(default)]
    define: Vec<String>,
    #[serde(default, rename = "const")]
    constant: Vec<(String, i64)>,
    dialect: Option<String>,
    loop_limit: Option<u32>,
    deadlock: Option<String>,
    pub find: Vec<String>,
    pub invariant: Vec<String>,
    positions: Vec<u32>,
}

/// A report has its trace inside.
#[derive(Deserialize)]
struct StoredReport {
    trace: Option<StoredTrace>,
}

impl StoredTrace {
    /// Reads a trace, or the trace in a report. `open` begins anew every time.
    pub fn read<R: Read>(open: impl Fn() -> Result<R, String>) -> Result<StoredTrace, String> {
        #[derive(Deserialize)]
        struct Kind {
            trace: Option<serde::de::IgnoredAny>,
            verdict: Option<serde::de::IgnoredAny>,
        }
        let kind: Kind = serde_json::from_reader(open()?).map_err(|error| format!("not JSON: {error}"))?;
        let not_a_trace = |error: serde_json::Error| format!("not a trace: {error}");
        let trace = match kind {
            Kind { trace: Some(_), .. } => {
                serde_json::from_reader::<_, StoredReport>(open()?).map_err(not_a_trace)?.trace.expect("just seen")
            }
            Kind { verdict: Some(_), .. } => return Err("the report has no trace".into()),
            Kind { .. } => serde_json::from_reader(open()?).map_err(not_a_trace)?,
        };
        if trace.format != FORMAT || trace.version != VERSION {
            return Err(format!("format {} version {} is not known here", trace.format, trace.version));
        }
        Ok(trace)
    }

    /// The options for the model: those given now, then those under which the trace was found.
    pub fn options(&self, given: &ModelOptions) -> ModelOptions {
        let stored = |name: &Option<String>| name.clone().unwrap_or_default();
        let or = |given: &Vec<String>, stored: &Vec<String>| if given.is_empty() { stored } else { given }.clone();
        ModelOptions {
            language: given.language.or_else(|| LanguageName::from_str(&stored(&self.language), true).ok()),
            overflow: given.overflow.or_else(|| OverflowName::from_str(&self.overflow, true).ok()),
            ignore_property: given.ignore_property || self.ignore_property,
            define: or(&given.define, &self.define),
            constant: if given.constant.is_empty() { &self.constant } else { &given.constant }.clone(),
            dialect: given.dialect.or_else(|| DialectName::from_str(&stored(&self.dialect), true).ok()),
            loop_limit: given.loop_limit.or(self.loop_limit),
            deadlock: given.deadlock.or_else(|| DeadlockName::from_str(&stored(&self.deadlock), true).ok()),
            ..given.clone()
        }
    }

    /// What the trace claims about the model of `view`.
    pub fn violation(&self, view: &View) -> Result<Violation, String> {
        let what = match (self.what, &self.property) {
            (TraceEnd::Deadlock, _) => What::Deadlock,
            (TraceEnd::Error, _) => What::Fault,
            (TraceEnd::Assertion, _) => What::Assertion,
            (TraceEnd::Invariant | TraceEnd::Goal, None) => return Err("the trace names no property".into()),
            (TraceEnd::Invariant | TraceEnd::Goal, Some(property)) => match view.property(property.number) {
                Some(found) if found.name == property.name => What::Property(property.number),
                _ => return Err(format!("the model has no property `{}`", property.name)),
            },
        };
        Ok(Violation { what, trace: Trace { positions: self.positions.clone() } })
    }
}
