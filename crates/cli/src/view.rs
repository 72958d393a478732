//! Traces for people: names and values instead of words and numbers.

use crate::executor::Executor;
use plimsoll_ir::Act;
use plimsoll_model::Step;
use plimsoll_model::show::{Describe, PropertyText, Show, StepText};
use plimsoll_search::Replayed;
use serde::{Deserialize, Serialize};

/// One value of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldValue {
    pub name: String,
    pub value: String,
}

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownStep {
    /// From 1; steps inside an atomic chain have the number of the chain.
    pub number: u64,
    pub process: Option<String>,
    /// Line of the model text, 0 if unknown.
    pub line: u32,
    pub label: String,
    /// The statements it consists of, if the language tells.
    #[serde(default)]
    pub acts: Vec<ShownAct>,
    /// What the step changed.
    pub changes: Vec<FieldValue>,
    /// What went wrong in it.
    pub problem: Option<String>,
}

/// A statement of the model that a step carries out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownAct {
    /// The process of the system, by the name of the field that holds its location.
    pub process: String,
    /// The process as people call it.
    pub who: String,
    pub text: String,
    pub kind: String,
    /// Empty for the file of the model.
    pub file: String,
    pub line: u32,
    /// The numbers that other tools of the language give the statement: in its kind of process, and among all.
    pub number: (u32, u32),
}

/// What stands between a name and its value, unless the language has another sign.
pub const EQUALS: &str = "=";

/// How to read the states and steps of a model.
pub struct View<'a> {
    executor: &'a Executor,
    /// None for graphs, which describe themselves.
    show: Option<Show>,
}

impl<'a> View<'a> {
    pub fn new(executor: &'a Executor) -> View<'a> {
        let show = executor.interp().map(|interp| Show::new(interp.system(), interp.layout()));
        View { executor, show }
    }

    fn describe(&self) -> &dyn Describe {
        match (&self.show, self.executor) {
            (Some(show), _) => show,
            (None, Executor::Graph(graph)) => graph.as_ref(),
            (None, _) => unreachable!("only graphs have no interpreter"),
        }
    }

    /// What stands between the name of a field and its value.
    pub fn assign(&self) -> &'static str {
        let spelling = self.executor.system().and_then(|system| system.spelling.as_ref());
        spelling.map_or(EQUALS, |spelling| spelling.assign)
    }

    pub fn property(&self, number: u32) -> Option<PropertyText> {
        self.describe().property(number)
    }

    /// What a step is called.
    pub fn label(&self, step: Step) -> String {
        self.describe().step(step).label
    }

    /// Every field of a state.
    pub fn state(&self, state: &[u32]) -> Vec<FieldValue> {
        self.field_values(self.describe().fields(state))
    }

    /// The first state in full and every step with what it changes. `positions` is the trace that was replayed.
    pub fn path(&self, path: &[Replayed], positions: &[u32]) -> (Vec<FieldValue>, Vec<ShownStep>) {
        let Some(first) = path.first() else { return (Vec::new(), Vec::new()) };
        let mut steps = Vec::new();
        if !first.step.is_plain() {
            steps.push(self.wrong_start(first.step));
        }
        for (number, pair) in path.windows(2).enumerate() {
            let position = positions[number + 1] as usize;
            self.add_steps(&pair[0].state, position, number as u64 + 1, &mut steps);
        }
        let initial = if first.step.is_fault() { Vec::new() } else { self.state(&first.state) };
        (initial, steps)
    }

    /// Appends the step (or the steps of the atomic chain) at `position` among the successors of `before`.
    pub fn add_steps(&self, before: &[u32], position: usize, number: u64, steps: &mut Vec<ShownStep>) {
        let mut before = before.to_vec();
        let path = self.executor.reference().path(&before, position);
        for (step, after) in path {
            let StepText { process, label, line, acts } = self.describe().step(step);
            let acts = acts.into_iter().map(|act| self.act(act)).collect();
            let changes = if step.is_fault() { Vec::new() } else { self.describe().changes(&before, &after) };
            let problem = (!step.is_plain()).then(|| self.problem(Some(&before), step));
            steps.push(ShownStep { number, process, line, label, acts, changes: self.field_values(changes), problem });
            if !step.is_fault() {
                before = after;
            }
        }
    }

    fn act(&self, act: Act) -> ShownAct {
        let Act { process, who, text, kind, file, line, number } = act;
        let names = self.executor.system().map(|system| &system.processes);
        let process = names.map_or(String::new(), |names| names[process.index()].name.clone());
        ShownAct { process, who, text, kind: format!("{kind:?}").to_lowercase(), file, line, number }
    }

    fn wrong_start(&self, step: Step) -> ShownStep {
        let StepText { process, label, line, .. } = self.describe().start(step);
        let problem = Some(self.problem(None, step));
        ShownStep { number: 0, process, line, label, acts: Vec::new(), changes: Vec::new(), problem }
    }

    fn problem(&self, before: Option<&[u32]>, step: Step) -> String {
        self.executor.explain(before, step).unwrap_or_else(|| "the step goes wrong".into())
    }

    /// Whose turn it is within an atomic chain is left out: it is not a variable of the model.
    fn field_values(&self, pairs: Vec<(String, String)>) -> Vec<FieldValue> {
        let turn = self.executor.system().and_then(|system| Some(&system.vars[system.exclusive?.index()].name));
        let pairs = pairs.into_iter().filter(|(name, _)| Some(name) != turn);
        pairs.map(|(name, value)| FieldValue { name, value }).collect()
    }
}
