//! Telling elements apart by what a state says about them, whatever they are called.
//!
//! Partition refinement: elements are sorted by what is said about each, and then, as long as that tells more of
//! them apart, by what relates them to others, which are known by their ranks only. Sums of hashes stand for what is
//! said; they do not depend on names, so neither do ranks. A collision costs time, never correctness.

use super::pieces::Pieces;
use super::relations::{Relations, bit};

/// An order of the elements, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    /// All elements; those of a set stay together.
    pub order: Vec<u32>,
    /// For each element the first place in the order that elements like it have.
    rank: Vec<u32>,
    /// Where in the order several elements are alike: first place and end.
    pub ties: Vec<(u32, u32)>,
    sums: Vec<u64>,
    split: Vec<(u32, u32)>,
}

impl Ranks {
    /// Tells apart what the relations tell apart.
    pub fn compute(&mut self, pieces: &Pieces, relations: &mut Relations) {
        self.order.clear();
        self.order.extend(0..pieces.elements() as u32);
        self.rank.clear();
        self.ties.clear();
        for set in pieces.set_starts.windows(2) {
            self.rank.extend((set[0]..set[1]).map(|_| set[0]));
            if set[1] - set[0] > 1 {
                self.ties.push((set[0], set[1]));
            }
        }
        relations.sum_all(&mut self.sums);
        self.split_ties();
        self.refine(relations);
    }

    /// Puts an element before those that it is alike, and tells apart what can be told apart then.
    pub fn single_out(&mut self, from: &Ranks, element: u32, relations: &mut Relations) {
        self.order.clone_from(&from.order);
        self.rank.clone_from(&from.rank);
        self.ties.clone_from(&from.ties);
        let first = self.rank[element as usize];
        let tie = self.ties.iter().position(|tie| tie.0 == first).expect("the element is alike others");
        let end = self.ties[tie].1;
        let members = &mut self.order[first as usize..end as usize];
        let at = members.iter().position(|&member| member == element).expect("it is among them");
        members.swap(0, at);
        members[1..].iter().for_each(|&member| self.rank[member as usize] = first + 1);
        if end - first > 2 {
            self.ties[tie].0 += 1;
        } else {
            self.ties.remove(tie);
        }
        self.refine(relations);
    }

    fn refine(&mut self, relations: &mut Relations) {
        while !self.ties.is_empty() {
            let members = |&(first, end): &(u32, u32)| &self.order[first as usize..end as usize];
            let tied = self.ties.iter().flat_map(members).fold(0, |all, &element| all | bit(element));
            if !relations.sum(&self.rank, tied, &mut self.sums) || !self.split_ties() {
                break;
            }
        }
    }

    /// Orders those that are alike by their sums; true if that tells any apart.
    fn split_ties(&mut self) -> bool {
        self.split.clear();
        let mut any = false;
        for &(first, end) in &self.ties {
            let members = &mut self.order[first as usize..end as usize];
            let sums = &self.sums;
            sort_by_sum(members, sums);
            let mut start = 0;
            for at in 1..=members.len() {
                if at < members.len() && sums[members[at] as usize] == sums[members[start] as usize] {
                    continue;
                }
                let place = first + start as u32;
                if start > 0 {
                    any = true;
                    members[start..at].iter().for_each(|&member| self.rank[member as usize] = place);
                }
                if at - start > 1 {
                    self.split.push((place, first + at as u32));
                }
                start = at;
            }
        }
        std::mem::swap(&mut self.ties, &mut self.split);
        any
    }
}

/// Few elements, mostly in order.
#[inline]
fn sort_by_sum(members: &mut [u32], sums: &[u64]) {
    for end in 1..members.len() {
        let member = members[end];
        let sum = sums[member as usize];
        let mut at = end;
        while at > 0 && sums[members[at - 1] as usize] > sum {
            members[at] = members[at - 1];
            at -= 1;
        }
        members[at] = member;
    }
}
