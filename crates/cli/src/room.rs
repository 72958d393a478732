//! Room for processes: a Promela model is prepared for some processes under some numbers, and a step that needs
//! others is a fault that [`Promela::refine`] understands.
//!
//! [`walk`] finds most of what is missing before anything is compiled, by walking at random; a search then only
//! meets what the walks missed. [`Missing`] is for searches that go on after faults: it ends them at such a fault.

use crate::executor::Executor;
use crate::failure::Failure;
use crate::options::LookFor;
use crate::subject::{self, Content, Subject};
use plimsoll_ir::{Process, Slot};
use plimsoll_lang::promela::Promela;
use plimsoll_model::{Interp, Model, Step, Successors};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

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
    let places: Vec<Home> = interp.system().processes.iter().map(place).zip(promela.tenants()).collect();
    let runners = promela.runners();
    let may_run = |state: &[u32]| living(&places, state).any(|(_, proctype, location)| runners[proctype][location]);
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
            // From here on nobody asks for anything.
            if !may_run(state) {
                break;
            }
            let state = state.to_vec();
            out.clear();
            interp.successors(&state, &mut out);
            let found = out.iter().filter(|(_, step)| !step.is_fault()).flat_map(|(state, _)| living(&places, state));
            lived.extend(found.map(|(number, proctype, _)| (number, proctype)));
            let mut faults = out.iter().map(|(_, step)| step).filter(|step| step.is_fault());
            if let Some(request) = faults.find_map(|step| request_of(&state, step, interp, promela)) {
                return Some(request);
            }
        }
    }
    None
}

/// Where the location of a process is, and which proctypes it may be of, each with the number of its locations.
type Home = (Slot, Vec<(usize, usize)>);

/// For each process that lives its number, its proctype and where in that it is.
fn living(homes: &[Home], state: &[u32]) -> impl Iterator<Item = (usize, usize, usize)> {
    homes.iter().enumerate().filter_map(|(number, (place, tenants))| {
        let mut location = (place.load(state) as usize).checked_sub(1)?;
        for &(proctype, count) in tenants {
            match location.checked_sub(count) {
                None => return Some((number, proctype, location)),
                Some(left) => location = left,
            }
        }
        None
    })
}

/// The message of a step that goes wrong because it needs more room.
fn request_of(state: &[u32], step: Step, interp: &Interp, promela: &Promela) -> Option<String> {
    let message = interp.explain(state, step)?.message;
    promela.refine(&message).is_some().then_some(message)
}

/// Ends a search at the first step that has no room for a process.
pub struct Missing<'a> {
    interp: &'a Interp,
    promela: &'a Promela,
    stop: &'a AtomicBool,
    request: Option<String>,
}

impl<'a> Missing<'a> {
    /// `stop` ends the search.
    pub fn new(executor: &'a Executor, promela: &'a Promela, stop: &'a AtomicBool) -> Option<Missing<'a>> {
        Some(Missing { interp: executor.interp()?, promela, stop, request: None })
    }

    /// Told of a step that went wrong.
    pub fn fault(&mut self, state: &[u32], step: Step) {
        // One is enough; what else is missing the next search will find.
        if self.request.is_none() {
            self.request = request_of(state, step, self.interp, self.promela);
            self.stop.fetch_or(self.request.is_some(), Ordering::SeqCst);
        }
    }

    /// What was missing, if anything.
    pub fn request(self) -> Option<String> {
        self.request
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
    fn a_search_ends_where_room_is_missing() {
        let (content, promela) = promela();
        let executor = Executor::interpreted(content, plimsoll_model::Patience::default());
        let stop = AtomicBool::new(false);
        let mut missing = Missing::new(&executor, &promela, &stop).unwrap();
        let mut out = Successors::new(executor.model().width());
        executor.model().initial(&mut out);
        let mut steps = 0;
        let sound = |out: &Successors| Some(out.iter().find(|(_, step)| !step.is_fault())?.0.to_vec());
        while let (Some(state), false) = (sound(&out), stop.load(Ordering::SeqCst)) {
            steps += 1;
            out.clear();
            executor.model().successors(&state, &mut out);
            out.iter().filter(|(_, step)| step.is_fault()).for_each(|(_, step)| missing.fault(&state, step));
        }
        assert!(stop.load(Ordering::SeqCst) && (2..20).contains(&steps), "after {steps} steps");
        assert!(promela.refine(&missing.request().unwrap()).is_some());
    }
}
