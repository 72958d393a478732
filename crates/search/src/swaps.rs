//! May two steps be swapped in this state?
//!
//! The model's own relation holds in every state and costs nothing. Steps that are dependent somewhere may still
//! commute here: a send and a receive on a channel that is neither empty nor full, two writes of one value. That
//! is found out by doing it: both steps have one plain successor each, each is still there after the other, and
//! both ways lead to the same state (the conditional independence of Katz and Peled 1992; Godefroid and Pirottin
//! 1993). It takes a few expansions, so pairs that hardly ever commute are soon not asked any more.

use plimsoll_model::{Model, Step, Successors, kinds};

/// Pairs are told apart by this many counters; pairs that share one share their reputation.
const COUNTERS: usize = 1 << 12;
/// A pair is asked this often before anything is concluded, and then as long as one answer in so many is yes.
const TRIALS: u16 = 24;
const WORTHWHILE: u16 = 8;
/// Counters are halved here, so that pairs whose behaviour changes are noticed.
const MOST: u16 = 1 << 12;

/// Which dependent steps are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All pairs, as long as that pays.
    Promising,
    /// Sends with receives, always: the relation of Godefroid et al. 1992.
    Channels,
}

/// The relation, with what was learnt about pairs and room for trying.
#[derive(Debug)]
pub(crate) struct Swaps {
    asked: Asked,
    pairs: Vec<Reputation>,
    /// Successors of the state, after the step taken, and after another one.
    here: Option<Successors>,
    after_taken: Option<Successors>,
    spare: Vec<Successors>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reputation {
    asked: u16,
    swapped: u16,
}

impl Swaps {
    pub fn new(asked: Asked) -> Swaps {
        let pairs = vec![Reputation::default(); COUNTERS];
        Swaps { asked, pairs, here: None, after_taken: None, spare: Vec::new() }
    }

    /// Keeps of `steps` those that may be swapped with `taken` in `state`.
    pub fn keep<M: Model + ?Sized>(&mut self, model: &M, state: &[u32], taken: Step, steps: &mut Vec<u32>) {
        steps.retain(|&step| {
            model.independent(Step(step), taken) || step != taken.0 && self.ask(model, state, taken, Step(step))
        });
        self.spare.extend(self.here.take());
        self.spare.extend(self.after_taken.take());
    }

    fn ask<M: Model + ?Sized>(&mut self, model: &M, state: &[u32], taken: Step, other: Step) -> bool {
        if self.asked == Asked::Channels {
            let pair = [model.kind(taken), model.kind(other)];
            let passes = pair == [kinds::SEND, kinds::RECEIVE] || pair == [kinds::RECEIVE, kinds::SEND];
            return passes && self.commute(model, state, taken, other) == Some(true);
        }
        let key = (taken.0.min(other.0) as u64) << 32 | taken.0.max(other.0) as u64;
        let pair = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize % COUNTERS;
        let Reputation { asked, swapped } = self.pairs[pair];
        if asked >= TRIALS && swapped * WORTHWHILE < asked {
            return false;
        }
        let swap = self.commute(model, state, taken, other) == Some(true);
        let reputation = &mut self.pairs[pair];
        if reputation.asked >= MOST {
            *reputation = Reputation { asked: asked / 2, swapped: swapped / 2 };
        }
        reputation.asked += 1;
        reputation.swapped += swap as u16;
        swap
    }

    /// Takes both steps in both orders; nothing if one of them is not there.
    fn commute<M: Model + ?Sized>(&mut self, model: &M, state: &[u32], taken: Step, other: Step) -> Option<bool> {
        let here = match self.here.take() {
            Some(here) => here,
            None => self.expand(model, state),
        };
        let here = self.here.insert(here);
        let (taken_at, other_at) = (only(here, taken)?, only(here, other)?);
        let (after_taken, after_other) = (here.state(taken_at).to_vec(), here.state(other_at).to_vec());
        let first = match self.after_taken.take() {
            Some(first) => first,
            None => self.expand(model, &after_taken),
        };
        let second = self.expand(model, &after_other);
        let ends = only(&first, other).zip(only(&second, taken));
        let swap = ends.map(|(first_at, second_at)| first.state(first_at) == second.state(second_at));
        self.after_taken = Some(first);
        self.spare.push(second);
        swap
    }

    fn expand<M: Model + ?Sized>(&mut self, model: &M, state: &[u32]) -> Successors {
        let mut out = self.spare.pop().unwrap_or_else(|| Successors::new(model.width()));
        out.clear();
        model.successors(state, &mut out);
        if out.gave_up().is_some() {
            // Nothing is known, so nothing commutes.
            out.truncate(0);
        }
        out
    }
}

/// Where the one plain successor by `step` is; nothing if there are several, or none, or it goes wrong.
fn only(successors: &Successors, step: Step) -> Option<usize> {
    let by_step = |&at: &usize| successors.step(at).instance() == step.0;
    let mut places = (0..successors.len()).filter(by_step);
    let place = places.next()?;
    (places.next().is_none() && successors.step(place).is_plain()).then_some(place)
}
