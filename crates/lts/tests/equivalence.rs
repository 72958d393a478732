//! Minimising and comparing against the definitions, on small random graphs.

use plimsoll_lts::{Builder, Comparison, Equivalence, Lts, TAU, compare, minimise};

/// A little generator of numbers (xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(limit)) as u32
    }
}

/// With few labels and many silent steps, so that much is equal and there are silent cycles.
fn random(draw: &mut Draw, most_states: u32) -> Lts {
    let states = 1 + draw.below(most_states);
    let mut edges = Builder::default();
    for _ in 0..draw.below(3 * states) {
        edges.push(draw.below(states), draw.below(3), draw.below(states));
    }
    edges.into_lts(draw.below(states), states, [TAU, "a", "b"].map(String::from).to_vec())
}

/// The largest relation that the definition allows: pairs are taken out until all that are left can follow each other.
fn related(lts: &Lts, equivalence: Equivalence) -> Vec<Vec<bool>> {
    let n = lts.state_count as usize;
    let mut related = vec![vec![true; n]; n];
    let after = silent_reach(lts);
    loop {
        let follows = |s: usize, t: usize| {
            lts.edges(s as u32).all(|(label, to)| {
                let to = to as usize;
                let direct = |t: usize| lts.edges(t as u32).any(|(l, next)| l == label && related[to][next as usize]);
                match equivalence {
                    Equivalence::Strong => direct(t),
                    Equivalence::Branching => {
                        label == 0 && related[to][t]
                            || (0..n).any(|between| after[t][between] && related[s][between] && direct(between))
                    }
                }
            })
        };
        let pairs = || (0..n).flat_map(|s| (0..n).map(move |t| (s, t)));
        let out: Vec<(usize, usize)> =
            pairs().filter(|&(s, t)| related[s][t] && !(follows(s, t) && follows(t, s))).collect();
        if out.is_empty() {
            return related;
        }
        out.into_iter().for_each(|(s, t)| related[s][t] = false);
    }
}

fn silent_reach(lts: &Lts) -> Vec<Vec<bool>> {
    let n = lts.state_count as usize;
    let mut reach = vec![vec![false; n]; n];
    (0..n).for_each(|state| reach[state][state] = true);
    for state in 0..n {
        lts.edges(state as u32).filter(|edge| edge.0 == 0).for_each(|(_, to)| reach[state][to as usize] = true);
    }
    for between in 0..n {
        for from in 0..n {
            for to in 0..n {
                reach[from][to] |= reach[from][between] && reach[between][to];
            }
        }
    }
    reach
}

/// How many classes can be reached from the initial state.
fn classes(lts: &Lts, related: &[Vec<bool>]) -> usize {
    let mut found = vec![lts.initial as usize];
    let mut at = 0;
    while at < found.len() {
        for (_, to) in lts.edges(found[at] as u32) {
            if !found.contains(&(to as usize)) {
                found.push(to as usize);
            }
        }
        at += 1;
    }
    let first = |state: &usize| found.iter().position(|other| related[*state][*other]);
    found.iter().enumerate().filter(|(index, state)| first(state) == Some(*index)).count()
}

#[test]
fn minimal_graphs_are_equivalent_and_as_small_as_the_definition_says() {
    let mut draw = Draw(0x1234_5678_9abc_def1);
    for round in 0..4_000 {
        let lts = random(&mut draw, 12);
        for equivalence in [Equivalence::Strong, Equivalence::Branching] {
            let small = minimise(lts.clone(), equivalence);
            let expected = classes(&lts, &related(&lts, equivalence));
            assert_eq!(small.state_count as usize, expected, "round {round}, {equivalence:?}: {lts:?}");
            let same = compare(lts.clone(), small.clone(), equivalence);
            assert_eq!(same, Some(Comparison::Equivalent), "round {round}, {equivalence:?}");
            assert_eq!(minimise(small.clone(), equivalence), small, "once is enough");
        }
    }
}

#[test]
fn graphs_are_compared_as_the_definition_says() {
    let mut draw = Draw(0xfeed_beef_cafe_0001);
    let (mut equal, mut different) = (0, 0);
    for _ in 0..4_000 {
        let (one, other) = (random(&mut draw, 5), random(&mut draw, 5));
        let offset = one.state_count;
        let mut edges = Builder::default();
        for (lts, offset) in [(&one, 0), (&other, offset)] {
            for state in 0..lts.state_count {
                lts.edges(state).for_each(|(label, to)| edges.push(offset + state, label, offset + to));
            }
        }
        let both = edges.into_lts(one.initial, offset + other.state_count, one.labels.clone());
        for equivalence in [Equivalence::Strong, Equivalence::Branching] {
            let expected = related(&both, equivalence)[one.initial as usize][(offset + other.initial) as usize];
            let found = compare(one.clone(), other.clone(), equivalence).unwrap();
            assert_eq!(found == Comparison::Equivalent, expected, "{equivalence:?} {one:?} {other:?}");
            *(if expected { &mut equal } else { &mut different }) += 1;
            if let Comparison::Different(Some(difference)) = found {
                check_difference(&one, &other, &difference.steps, difference.who, &difference.label);
            }
        }
    }
    assert!(equal > 500 && different > 500, "{equal} {different}");
}

/// Both can take the steps, and afterwards, in one way at least, one can do what the other cannot.
fn check_difference(one: &Lts, other: &Lts, steps: &[String], who: usize, label: &str) {
    let after = |lts: &Lts| {
        let mut states = vec![lts.initial];
        for step in steps {
            let next = states.iter().flat_map(|&state| lts.edges(state));
            states = next.filter(|(label, _)| lts.labels[*label as usize] == *step).map(|(_, to)| to).collect();
            states.sort_unstable();
            states.dedup();
        }
        states
    };
    let can = |lts: &Lts, state: u32| lts.edges(state).any(|(found, _)| lts.labels[found as usize] == label);
    let [own, others] = if who == 0 { [one, other] } else { [other, one] };
    assert!(after(own).into_iter().any(|state| can(own, state)), "{steps:?} {label}");
    assert!(after(others).into_iter().any(|state| !can(others, state)), "{steps:?} {label}");
}

#[test]
fn labels_of_two_graphs_are_matched_by_name() {
    let graph = |labels: [&str; 2]| {
        let mut edges = Builder::default();
        edges.push(0, 0, 1);
        edges.push(1, 1, 0);
        edges.into_lts(0, 2, labels.map(String::from).to_vec())
    };
    let compare = |one, other| compare(graph(one), graph(other), Equivalence::Strong).unwrap();
    assert_eq!(compare(["a", "b"], ["a", "b"]), Comparison::Equivalent);
    let Comparison::Different(Some(found)) = compare(["a", "b"], ["a", "c"]) else { panic!() };
    assert_eq!((found.steps, found.who, found.label.as_str()), (vec!["a".to_string()], 0, "b"));
    assert_ne!(compare(["a", "b"], ["b", "a"]), Comparison::Equivalent);
}

#[test]
fn hidden_labels_are_silent() {
    let mut edges = Builder::default();
    edges.push(0, 0, 1);
    edges.push(1, 1, 0);
    let mut lts = edges.into_lts(0, 2, ["a", "b"].map(String::from).to_vec());
    lts.hide(|label| label == "a");
    let small = minimise(lts, Equivalence::Branching);
    assert_eq!((small.state_count, small.edge_count(), small.labels), (1, 1, vec!["b".to_string()]));
}

/// A chain of silent and loud steps falls apart state by state, from its end: quadratic work would show.
#[test]
fn long_chains_take_no_long_time() {
    let length = 300_000;
    let mut edges = Builder::default();
    (0..length).for_each(|state| edges.push(state, u32::from(state % 2 == 0), state + 1));
    let lts = edges.into_lts(0, length + 1, [TAU, "a"].map(String::from).to_vec());
    assert_eq!(minimise(lts.clone(), Equivalence::Strong).state_count, length + 1);
    assert_eq!(minimise(lts, Equivalence::Branching).state_count, length / 2 + 1);
}
