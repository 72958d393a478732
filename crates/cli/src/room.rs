//! Room for processes: a Promela model is prepared for some processes under some numbers, and a step that needs
//! others is a fault that [`Promela::refine`] understands.
//!
//! [`walk`] finds most of what is missing before anything is compiled, by walking at random; a search then only
//! meets what the walks missed. [`Watched`] is for searches that go on after faults: it ends them at such a fault.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::LookFor;
use crate::subject::{self, Content, Subject};
use plimsoll_ir::{Process, Slot};
use plimsoll_lang::promela::Promela;
use plimsoll_model::{Around, Interp, Model, Step, Successors};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Walks, and steps of each, that must find nothing missing; more steps where there are many processes.
const WALKS: u64 = 24;
const STEPS: usize = 150;
const STEPS_PER_PROCESS: usize = 8;

/// The subject with room for all processes that random walks need.
pub fn walk(subject: Subject, look_for: &LookFor) -> Result<Subject, Failure> {
    let Some(promela) = subject.promela.as_deref().filter(|promela| promela.may_need_room()) else {
        return Ok(subject);
    };
    let Content::System(system) = &subject.content else { return Ok(subject) };
    // Walks go through a model with more room than they need, so that few models are made; what they need is noted.
    let (mut roomy, mut system) = (promela.clone(), system.clone());
    let mut lived = BTreeSet::new();
    loop {
        let interp = Interp::new(system);
        let Some(request) = missing(&interp, &roomy, &mut lived) else { break };
        // Much room may make a state too wide.
        let refined = roomy.refine_generously(&request).and_then(|larger| Some((larger.system().ok()?, larger)));
        let refined =
            refined.or_else(|| roomy.refine(&request).and_then(|larger| Some((larger.system().ok()?, larger))));
        match refined {
            Some((made, larger)) => (system, roomy) = (made, larger),
            None => break,
        }
    }
    match promela.with_room_for(&lived) {
        Some(larger) => Ok(Subject { warnings: subject.warnings, ..subject::of_promela(larger, look_for)? }),
        None => Ok(subject),
    }
}

/// The first request that random walks meet. The walks are the same every time. Notes which processes there were, by
/// number and proctype.
fn missing(interp: &Interp, promela: &Promela, lived: &mut BTreeSet<(usize, usize)>) -> Option<String> {
    let layout = interp.layout();
    let place = |process: &Process| {
        let var = process.location.index();
        layout.address(var, &interp.system().vars[var].ty, &[]).slot(&[])
    };
    let places: Vec<(Slot, Vec<(usize, usize)>)> =
        interp.system().processes.iter().map(place).zip(promela.tenants()).collect();
    let mut note = |state: &[u32]| {
        for (number, (place, tenants)) in places.iter().enumerate() {
            let mut location = (place.load(state) as usize).checked_sub(1);
            for &(proctype, count) in tenants {
                match location {
                    Some(at) if at < count => {
                        lived.insert((number, proctype));
                        break;
                    }
                    at => location = at.map(|at| at - count),
                }
            }
        }
    };
    let mut out = Successors::new(interp.width());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..WALKS {
        out.clear();
        interp.initial(&mut out);
        for _ in 0..STEPS + STEPS_PER_PROCESS * places.len() {
            // A linear congruential generator (Knuth); its high bits are good enough to choose by.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let sound = out.iter().filter(|(_, step)| !step.is_fault()).count() as u64;
            let choice = ((random >> 33) * sound) >> 31;
            let Some((state, _)) = out.iter().filter(|(_, step)| !step.is_fault()).nth(choice as usize) else { break };
            let state = state.to_vec();
            out.clear();
            interp.successors(&state, &mut out);
            out.iter().filter(|(_, step)| !step.is_fault()).for_each(|(state, _)| note(state));
            let mut faults = out.iter().map(|(_, step)| step).filter(|step| step.is_fault());
            if let Some(request) = faults.find_map(|step| request_of(&state, step, interp, promela)) {
                return Some(request);
            }
        }
    }
    None
}

/// The message of a step that goes wrong because it needs more room.
fn request_of(state: &[u32], step: Step, interp: &Interp, promela: &Promela) -> Option<String> {
    let message = interp.explain(state, step)?.message;
    promela.refine(&message).is_some().then_some(message)
}

/// A model that has no more successors once a process had no room.
pub struct Watched<'a> {
    inner: &'a dyn Model,
    interp: &'a Interp,
    promela: &'a Promela,
    request: OnceLock<String>,
}

impl<'a> Watched<'a> {
    /// `inner` is the executor, or a model around it.
    pub fn new(inner: &'a dyn Model, executor: &'a Executor, promela: &'a Promela) -> Option<Watched<'a>> {
        Some(Watched { inner, interp: executor.interp()?, promela, request: OnceLock::new() })
    }

    /// What was missing, if anything.
    pub fn request(&self) -> Option<&str> {
        self.request.get().map(String::as_str)
    }
}

impl Around for Watched<'_> {
    fn inner(&self) -> &dyn Model {
        self.inner
    }

    fn passes_on(&self) -> bool {
        self.request.get().is_none()
    }

    fn successors_of(&self, state: &[u32], out: &mut Successors) {
        if self.passes_on() {
            self.inner.successors(state, out);
        }
    }

    fn fault_noted(&self, state: &[u32], step: Step) {
        if self.request.get().is_none()
            && let Some(request) = request_of(state, step, self.interp, self.promela)
        {
            // One is enough; what else is missing the next search will find.
            let _ = self.request.set(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_lang::{Language, LoadedModel, Options, Source, Symbols, load_text};

    const MODEL: &str =
        "byte n; proctype P() { skip } init { do :: n < 9 -> run P(); n++ :: n == 9 -> break od; assert(n < 9) }";

    fn promela() -> (Content, Box<Promela>) {
        load(MODEL)
    }

    fn load(text: &str) -> (Content, Box<Promela>) {
        let source = Source { name: "m.pml".into(), text: text.into() };
        let loaded = load_text(source, Language::Promela, &Options::default()).unwrap();
        let LoadedModel::System { system, symbols: Symbols::Promela(promela) } = loaded.model else { panic!() };
        (Content::System(system), promela)
    }

    #[test]
    fn walks_find_what_is_missing() {
        let (Content::System(system), promela) = promela() else { panic!() };
        let mut lived = BTreeSet::new();
        let request = missing(&Interp::new(system), &promela, &mut lived).expect("one process is not enough");
        let larger = promela.refine(&request).unwrap();
        let system = larger.system().unwrap();
        assert_eq!(system.processes.len(), 3);
        assert!(missing(&Interp::new(system), &larger, &mut lived).is_some());
    }

    #[test]
    fn walks_leave_no_more_room_than_they_need() {
        let (content, promela) = load(&MODEL.replace("skip", "false"));
        let subject = subject::of_promela(*promela, &LookFor::default()).unwrap();
        let Content::System(before) = content else { panic!() };
        let subject = walk(subject, &LookFor::default()).unwrap();
        let Content::System(system) = subject.content else { panic!() };
        assert_eq!((before.processes.len(), system.processes.len()), (2, 10));
    }

    #[test]
    fn a_watched_model_ends_where_room_is_missing() {
        let (content, promela) = promela();
        let executor = Executor::interpreted(content, plimsoll_model::Patience::default());
        let watched = Watched::new(executor.model(), &executor, &promela).unwrap();
        let mut out = Successors::new(watched.width());
        watched.initial(&mut out);
        let start = out.state(0).to_vec();
        let mut steps = 0;
        let sound = |out: &Successors| Some(out.iter().find(|(_, step)| !step.is_fault())?.0.to_vec());
        while let Some(state) = sound(&out) {
            out.clear();
            watched.successors(&state, &mut out);
            out.iter().filter(|(_, step)| step.is_fault()).for_each(|(_, step)| watched.note_fault(&state, step));
            steps += 1;
        }
        assert!(watched.request().is_some() && steps < 20, "after {steps} steps");
        let starts = [start.clone(), start].concat();
        let mut firsts = Vec::new();
        out.clear();
        watched.successors_of_all(&starts, &mut out, &mut firsts);
        assert_eq!((out.len(), firsts), (0, vec![0, 0]));
    }
}
