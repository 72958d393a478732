//! Cycles of silent steps: their states can do the same, so each becomes one state, and then no silent step leads back.

use crate::graph::{Builder, Lts};

const NONE: u32 = u32::MAX;

/// The graph without cycles of silent steps (and without those steps), and the number there of each state. Silent steps lead to
/// states with lower numbers.
pub(crate) fn collapse(lts: Lts, tau: u32) -> (Lts, Vec<u32>) {
    let (component, count) = components(&lts, tau);
    let mut edges = Builder::default();
    for state in 0..lts.state_count {
        let from = component[state as usize];
        for (label, target) in lts.edges(state) {
            let to = component[target as usize];
            if label != tau || to != from {
                edges.push(from, label, to);
            }
        }
    }
    (edges.into_lts(component[lts.initial as usize], count, lts.labels), component)
}

/// A state on the path: its next edge, and how many states were met before it.
struct Frame {
    state: u32,
    edge: u64,
    met: u32,
}

/// The strongly connected components by silent steps (Tarjan), numbered so that what can be reached comes first.
fn components(lts: &Lts, tau: u32) -> (Vec<u32>, u32) {
    let count = lts.state_count as usize;
    let mut component = vec![NONE; count];
    // Which state was met first of those that a state is known to reach and that are still open.
    let mut low = vec![NONE; count];
    let (mut open, mut path) = (Vec::new(), Vec::new());
    let (mut met, mut components) = (0, 0);
    for root in 0..lts.state_count {
        let mut next = (low[root as usize] == NONE).then_some(root);
        loop {
            if let Some(state) = next.take() {
                low[state as usize] = met;
                open.push(state);
                path.push(Frame { state, edge: lts.first[state as usize], met });
                met += 1;
            }
            let Some(frame) = path.last_mut() else { break };
            let (state, end) = (frame.state, lts.first[frame.state as usize + 1]);
            while frame.edge < end && next.is_none() {
                let (label, target) = (lts.label[frame.edge as usize], lts.target[frame.edge as usize] as usize);
                frame.edge += 1;
                if label != tau || component[target] != NONE {
                    continue;
                }
                match low[target] {
                    NONE => next = Some(target as u32),
                    reached => low[state as usize] = low[state as usize].min(reached),
                }
            }
            if next.is_some() {
                continue;
            }
            let (met, reached) = (frame.met, low[state as usize]);
            path.pop();
            if let Some(parent) = path.last() {
                let place = &mut low[parent.state as usize];
                *place = (*place).min(reached);
            }
            if reached == met {
                while let Some(member) = open.pop() {
                    component[member as usize] = components;
                    if member == state {
                        break;
                    }
                }
                components += 1;
            }
        }
    }
    (component, components)
}
