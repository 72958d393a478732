//! Traces as they are stored and shown.

use crate::options::{LookFor, OverflowName};
use crate::view::{EQUALS, FieldValue, ShownStep, View};
use plimsoll_ir::PropertyKind;
use plimsoll_search::{Replayed, Trace, Violation, What};
use serde::{Deserialize, Serialize};

/// Marks files of this kind.
const FORMAT: &str = "plimsoll-trace";
const VERSION: u32 = 1;

/// A trace with everything that is needed to follow it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceReport {
    pub format: String,
    pub version: u32,
    pub model: String,
    /// What is wrong at the end.
    pub what: TraceEnd,
    /// The property, if it is one that was violated or reached.
    pub property: Option<PropertyName>,
    /// The options under which positions mean what they mean.
    pub overflow: String,
    #[serde(default)]
    pub merge: bool,
    pub find: Vec<String>,
    pub invariant: Vec<String>,
    /// Which initial state, then which successor of each state.
    pub positions: Vec<u32>,
    /// What stands between the names of fields and their values.
    #[serde(default = "equals")]
    pub assign: String,
    pub initial: Vec<FieldValue>,
    pub steps: Vec<ShownStep>,
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

/// Under which options a trace was found.
pub struct Origin<'a> {
    pub model: String,
    pub overflow: Option<OverflowName>,
    /// Were local steps merged?
    pub merge: bool,
    pub look_for: &'a LookFor,
}

impl TraceReport {
    /// Describes a violation that was replayed as `path`.
    pub fn new(violation: &Violation, path: &[Replayed], view: &View, origin: Origin) -> TraceReport {
        let (initial, steps) = view.path(path, &violation.trace.positions);
        let property = match violation.what {
            What::Property(number) => view.property(number).map(|text| PropertyName { number, name: text.name }),
            _ => None,
        };
        TraceReport {
            format: FORMAT.into(),
            version: VERSION,
            model: origin.model,
            what: TraceEnd::of(violation.what, view),
            property,
            overflow: overflow_name(origin.overflow).into(),
            merge: origin.merge,
            find: origin.look_for.find.clone(),
            invariant: origin.look_for.invariant.clone(),
            positions: violation.trace.positions.clone(),
            assign: view.assign().into(),
            initial,
            steps,
        }
    }

    /// Reads a trace, or the trace in a report.
    pub fn parse(text: &str) -> Result<TraceReport, String> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let value = match value.get("trace") {
            Some(serde_json::Value::Null) => return Err("the report has no trace".into()),
            Some(trace) => trace.clone(),
            None => value,
        };
        let trace: TraceReport = serde_json::from_value(value).map_err(|error| format!("not a trace: {error}"))?;
        if trace.format != FORMAT || trace.version != VERSION {
            return Err(format!("format {} version {} is not known here", trace.format, trace.version));
        }
        Ok(trace)
    }

    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a trace is plain data");
        text.push('\n');
        text
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

    /// What went wrong in the last step, if the replay has words for it.
    pub fn problem(&self) -> Option<String> {
        self.steps.last().and_then(|step| step.problem.clone())
    }

    /// What the trace ends in, in a few words.
    pub fn end(&self) -> String {
        match (self.what, &self.property) {
            (TraceEnd::Deadlock, _) => "a deadlock".into(),
            (TraceEnd::Error, _) => "a step that goes wrong".into(),
            (TraceEnd::Assertion, _) => "a failed assertion".into(),
            (TraceEnd::Invariant, property) => format!("`{}` is violated", name(property)),
            (TraceEnd::Goal, property) => format!("`{}` is true", name(property)),
        }
    }

    pub fn overflow(&self) -> Option<OverflowName> {
        Some(if self.overflow == "error" { OverflowName::Error } else { OverflowName::Wrap })
    }
}

impl TraceEnd {
    fn of(what: What, view: &View) -> TraceEnd {
        match what {
            What::Deadlock => TraceEnd::Deadlock,
            What::Fault => TraceEnd::Error,
            What::Assertion => TraceEnd::Assertion,
            What::Property(number) => match view.property(number).map(|text| text.kind) {
                Some(PropertyKind::Goal) => TraceEnd::Goal,
                _ => TraceEnd::Invariant,
            },
        }
    }
}

fn equals() -> String {
    EQUALS.into()
}

fn name(property: &Option<PropertyName>) -> &str {
    property.as_ref().map_or("", |property| property.name.as_str())
}

fn overflow_name(overflow: Option<OverflowName>) -> &'static str {
    match overflow {
        Some(OverflowName::Error) => "error",
        Some(OverflowName::Wrap) | None => "wrap",
    }
}
