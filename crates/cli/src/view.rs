//! Traces for people: names and values instead of words and numbers.

use crate::executor::Executor;
use plimsoll_ir::Act;
use plimsoll_model::Step;
use plimsoll_model::show::{Describe, PropertyText, Show, StepText};
use plimsoll_search::Walk;
use serde::Serialize;
use std::ops::Range;

/// One value of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldValue {
    pub name: String,
    pub value: String,
}

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownStep {
    /// From 1; steps inside an atomic chain have the number of the chain.
    pub number: u64,
    pub process: Option<String>,
    /// Line of the model text, 0 if unknown.
    pub line: u32,
    pub label: String,
    /// Its parameters by name, with their values; the label has them too.
    #[serde(skip)]
    pub choices: Vec<(String, String)>,
    /// The statements it consists of, if the language tells.
    pub acts: Vec<ShownAct>,
    /// What the step changed.
    pub changes: Vec<FieldValue>,
    /// What went wrong in it.
    pub problem: Option<String>,
}

/// A statement of the model that a step carries out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

    /// The first state of a path in full; nothing if the start goes wrong.
    pub fn first(&self, positions: &[u32]) -> Vec<FieldValue> {
        let mut walk = Walk::new(self.executor.reference());
        match positions.first().and_then(|&position| walk.take(position).ok()) {
            Some(step) if !step.is_fault() => self.state(walk.state()),
            _ => Vec::new(),
        }
    }

    /// Follows a path and hands every step to `each`, but for those with a number in `skip`. Returns the last state. One
    /// state is held at a time, for paths can be very long.
    pub fn walk<E>(
        &self,
        positions: &[u32],
        skip: Range<usize>,
        mut each: impl FnMut(ShownStep) -> Result<(), E>,
    ) -> Result<Vec<u32>, E> {
        let mut walk = Walk::new(self.executor.reference());
        let mut steps = Vec::new();
        for (number, &position) in positions.iter().enumerate() {
            if number > 0 && !skip.contains(&number) {
                self.add_steps(walk.state(), position as usize, number as u64, &mut steps);
            }
            let Ok(step) = walk.take(position) else { break };
            if number == 0 && !step.is_plain() {
                steps.push(self.wrong_start(step));
            }
            if number + 1 == positions.len() {
                // What a chain does after something went wrong in it does not matter any more.
                let wrong = steps.iter().position(|step| step.problem.is_some());
                steps.truncate(wrong.map_or(steps.len(), |wrong| wrong + 1));
            }
            steps.drain(..).try_for_each(&mut each)?;
        }
        Ok(walk.state().to_vec())
    }

    /// Appends the step (or the steps of the atomic chain) at `position` among the successors of `before`.
    pub fn add_steps(&self, before: &[u32], position: usize, number: u64, steps: &mut Vec<ShownStep>) {
        let mut before = before.to_vec();
        let path = self.executor.reference().path(&before, position);
        for (step, after) in path {
            let StepText { process, label, line, choices, acts } = self.describe().step(step);
            let acts = acts.into_iter().map(|act| self.act(act)).collect();
            let changes = if step.is_fault() { Vec::new() } else { self.describe().changes(&before, &after) };
            let problem = (!step.is_plain()).then(|| self.problem(Some(&before), step));
            let changes = self.field_values(changes);
            steps.push(ShownStep { number, process, line, label, choices, acts, changes, problem });
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
        let StepText { process, label, line, choices, .. } = self.describe().start(step);
        let problem = Some(self.problem(None, step));
        ShownStep { number: 0, process, line, label, choices, acts: Vec::new(), changes: Vec::new(), problem }
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
