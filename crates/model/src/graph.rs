//! An explicit graph as a model: a state is the number of a node.
//!
//! Edges are kept sorted by source; the step of an edge is its number in that order, so a trace names
//! edges exactly even where several lead from one node to another.

use crate::show::{Describe, StepText};
use crate::{Model, Step, Successors};

/// A labelled graph with numbered nodes.
#[derive(Clone, Debug)]
pub struct Graph {
    initial: u32,
    /// Where the edges of each node start; one more at the end.
    first: Vec<u32>,
    /// Label number and target of each edge.
    labels: Vec<u32>,
    targets: Vec<u32>,
    names: Vec<String>,
    most_successors: usize,
}

impl Graph {
    /// Edges of node `n` are `first[n]..first[n + 1]`, each with a label (an index into `names`) and a target.
    /// Says what is wrong if the parts do not fit together.
    pub fn new(
        initial: u32,
        first: Vec<u32>,
        labels: Vec<u32>,
        targets: Vec<u32>,
        names: Vec<String>,
    ) -> Result<Graph, String> {
        let nodes = first.len().saturating_sub(1);
        let edges = targets.len();
        if edges >= Step::LIMIT as usize || nodes > u32::MAX as usize {
            return Err(format!("{edges} edges are too many: the limit is {}", Step::LIMIT));
        }
        if initial as usize >= nodes {
            return Err(format!("the initial state {initial} is not among the {nodes} states"));
        }
        if first[0] != 0 || first[nodes] as usize != edges || !first.is_sorted() || labels.len() != edges {
            return Err("the edges are not divided among the states".into());
        }
        if let Some(target) = targets.iter().find(|&&target| target as usize >= nodes) {
            return Err(format!("an edge leads to state {target}, there are only {nodes}"));
        }
        if let Some(label) = labels.iter().find(|&&label| label as usize >= names.len()) {
            return Err(format!("an edge has label {label}, there are only {}", names.len()));
        }
        let most_successors = first.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as usize;
        Ok(Graph { initial, first, labels, targets, names, most_successors })
    }

    pub fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    pub fn edges(&self) -> usize {
        self.targets.len()
    }
}

impl Model for Graph {
    fn width(&self) -> usize {
        1
    }

    fn used_bits(&self) -> Vec<u32> {
        let last = self.nodes() as u32 - 1;
        vec![u32::MAX.checked_shr(last.leading_zeros()).unwrap_or(0)]
    }

    fn most_successors(&self) -> usize {
        self.most_successors
    }

    fn initial(&self, out: &mut Successors) {
        out.push(&[self.initial], Step(0));
    }

    fn successors(&self, state: &[u32], out: &mut Successors) {
        let node = state[0] as usize;
        for edge in self.first[node]..self.first[node + 1] {
            out.push(&[self.targets[edge as usize]], Step(edge));
        }
    }
}

impl Describe for Graph {
    fn fields(&self, state: &[u32]) -> Vec<(String, String)> {
        vec![("state".into(), state[0].to_string())]
    }

    fn step(&self, step: Step) -> StepText {
        let name = self.labels.get(step.instance() as usize).map(|&label| self.names[label as usize].clone());
        StepText { label: name.unwrap_or_default(), ..StepText::default() }
    }

    fn start(&self, _: Step) -> StepText {
        StepText::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diamond() -> Graph {
        let names = ["go", "stop"].map(String::from).to_vec();
        Graph::new(0, vec![0, 2, 3, 4, 4], vec![0, 1, 0, 0], vec![1, 2, 3, 3], names).unwrap()
    }

    #[test]
    fn edges_are_successors_in_order() {
        let graph = diamond();
        let mut out = Successors::new(1);
        graph.successors(&[0], &mut out);
        assert_eq!((out.states(), out.steps()), (&[1, 2][..], &[0, 1][..]));
        assert_eq!(graph.step(out.step(1)).label, "stop");
        out.clear();
        graph.successors(&[3], &mut out);
        assert!(out.is_empty());
        assert_eq!(graph.most_successors(), 2);
        assert_eq!(graph.fields(&[3]), [("state".to_string(), "3".to_string())]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let names = || vec!["a".to_string()];
        assert!(Graph::new(1, vec![0, 0], vec![], vec![], names()).is_err());
        assert!(Graph::new(0, vec![], vec![], vec![], names()).is_err());
        assert!(Graph::new(0, vec![0, 1], vec![0], vec![1], names()).is_err());
        assert!(Graph::new(0, vec![0, 1], vec![1], vec![0], names()).is_err());
        assert!(Graph::new(0, vec![0, 2], vec![0], vec![0], names()).is_err());
        assert!(Graph::new(0, vec![0, 2, 1], vec![0], vec![0], names()).is_err());
    }
}
