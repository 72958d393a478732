//! Are two graphs equivalent, and if not, how can they be told apart?

use crate::graph::Lts;
use crate::minimise::Equivalence;
use crate::refine::{Partition, refine};
use crate::silent::collapse;
use std::collections::HashMap;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equivalent,
    /// For strong bisimulation with a way to see it.
    Different(Option<Difference>),
}

/// After these steps, which both can take, one of the graphs can do what the other cannot. Where several steps have one label,
/// others would lead elsewhere: the steps are one way to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub steps: Vec<String>,
    /// 0 for the first graph, 1 for the second.
    pub who: usize,
    pub label: String,
}

/// Compares two graphs; none if there are too many states to be held side by side.
pub fn compare(one: Lts, other: Lts, equivalence: Equivalence) -> Option<Comparison> {
    let starts = [one.initial, one.state_count.checked_add(other.initial)?];
    let both = side_by_side(one, other)?;
    let tau = both.tau().filter(|_| equivalence == Equivalence::Branching);
    let (both, starts) = match tau {
        Some(tau) => {
            let (both, number) = collapse(both, tau);
            (both, starts.map(|state| number[state as usize]))
        }
        None => (both, starts),
    };
    let partition = refine(&both, tau);
    if partition.told_apart(starts[0], starts[1]).is_none() {
        return Some(Comparison::Equivalent);
    }
    let difference = (equivalence == Equivalence::Strong).then(|| difference(&both, &partition, starts));
    Some(Comparison::Different(difference))
}

/// One graph of both: the states of the second come behind those of the first.
fn side_by_side(mut one: Lts, other: Lts) -> Option<Lts> {
    let offset = one.state_count;
    let state_count = offset.checked_add(other.state_count)?;
    let known: HashMap<String, u32> = one.labels.iter().cloned().zip(0..).collect();
    let mut labels = one.labels.clone();
    let mut number = |label: &String| match known.get(label) {
        Some(&number) => number,
        None => {
            labels.push(label.clone());
            labels.len() as u32 - 1
        }
    };
    let numbers: Vec<u32> = other.labels.iter().map(&mut number).collect();
    let edges = one.edge_count() as u64;
    one.label.extend(other.label.iter().map(|&label| numbers[label as usize]));
    one.target.extend(other.target.iter().map(|&target| offset + target));
    one.first.extend(other.first[1..].iter().map(|&first| edges + first));
    Some(Lts { state_count, labels, ..one })
}

/// Plays the game: one makes a move that the other cannot follow without being told apart earlier.
fn difference(both: &Lts, partition: &Partition, mut pair: [u32; 2]) -> Difference {
    let mut steps = Vec::new();
    let name = |label: u32| both.labels[label as usize].clone();
    loop {
        let moves = [(0, pair[0], pair[1]), (1, pair[1], pair[0])];
        let answers = |other: u32, wanted: u32| both.edges(other).filter(move |&(label, _)| label == wanted);
        let alone = moves.iter().find_map(|&(who, own, other)| {
            let (label, _) = both.edges(own).find(|&(label, _)| answers(other, label).next().is_none())?;
            Some(Difference { steps: Vec::new(), who, label: name(label) })
        });
        if let Some(found) = alone {
            return Difference { steps, ..found };
        }
        let before = partition.told_apart(pair[0], pair[1]).unwrap_or(0);
        let next = moves.iter().find_map(|&(who, own, other)| {
            both.edges(own).find_map(|(label, target)| {
                // All answers were told apart from the move before the two states were.
                let time = |answer: u32| partition.told_apart(target, answer).unwrap_or(u32::MAX);
                let times = || answers(other, label).map(|(_, answer)| (time(answer), answer));
                let (latest, _) = times().max()?;
                let (_, answer) = times().min()?;
                (latest < before).then_some((who, label, target, answer))
            })
        });
        let Some((who, label, target, answer)) = next else { unreachable!("states with equal moves are in one block") };
        steps.push(name(label));
        pair = if who == 0 { [target, answer] } else { [answer, target] };
    }
}
