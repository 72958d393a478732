//! Which snapshots a state is in: one small number names a set of them.
//!
//! States of few snapshots have few different sets, so a set is kept once, with what is true of all its states: how many there
//! are, how often they were met, which set they move to when they are met while a level is sampled. Dropping a snapshot
//! takes it out of the sets, not out of the states; a state whose set is empty is held no more.

use std::collections::HashMap;

/// Members of a set that are no levels: states that are held for good. See [`super`].
pub(crate) const BACKTRACKED: u32 = u32::MAX;
pub(crate) const ANCHORED: u32 = u32::MAX - 1;

/// Not a set.
const NONE: u16 = u16::MAX;
/// So many sets there can be.
pub(super) const MOST_SETS: usize = NONE as usize;

#[derive(Debug, Default)]
struct Set {
    /// In order; empty if the set is not in use, or if states with its number are held no more.
    members: Vec<u32>,
    /// States with this number, and how often such were met since somebody asked.
    states: usize,
    hits: u64,
    lanes: u64,
    /// The set that has the level under construction too, once it was needed.
    with_level: Option<u16>,
}

/// A set, its place among the others and in the index, and its members in both.
fn bytes_of(members: usize) -> usize {
    2 * (size_of::<Set>() + 2 * size_of::<Vec<u32>>()) + 2 * members * size_of::<u32>()
}

/// The sets of one table.
#[derive(Debug)]
pub(crate) struct Masks {
    sets: Vec<Set>,
    /// Which of them have members; asked for every place of a full line, so it is kept close together.
    live_sets: Vec<bool>,
    numbers: HashMap<Vec<u32>, u16>,
    free: Vec<u16>,
    /// The level under construction, whether all its states are to be marked, and the set of it alone.
    level: u32,
    sampled: bool,
    alone: u16,
    live: usize,
    /// What the sets take.
    bytes: usize,
}

impl Masks {
    pub fn new() -> Masks {
        let numbers = HashMap::new();
        let mut masks = Masks {
            sets: Vec::new(),
            live_sets: Vec::new(),
            numbers,
            free: Vec::new(),
            level: 0,
            sampled: true,
            alone: NONE,
            live: 0,
            bytes: 0,
        };
        masks.begin(0, true, |_| 0);
        masks
    }

    /// From here on states belong to this level. `lanes_of` tells which bits stand for the members of a set.
    pub fn begin(&mut self, level: u32, sampled: bool, lanes_of: impl Fn(u32) -> u64) {
        self.alone = NONE;
        self.collect();
        for set in &mut self.sets {
            set.lanes = set.members.iter().fold(0, |lanes, &member| lanes | lanes_of(member));
        }
        (self.level, self.sampled) = (level, sampled);
        self.alone = self.number_of(vec![level]);
        self.sets[self.alone as usize].lanes = lanes_of(level);
    }

    /// Frees the numbers of sets that no state has.
    pub fn collect(&mut self) {
        self.free.clear();
        for (number, set) in (0u16..).zip(&mut self.sets) {
            if set.states == 0 && number != self.alone {
                if self.numbers.get(&set.members) == Some(&number) {
                    self.numbers.remove(&set.members);
                }
                set.members.clear();
                self.live_sets[number as usize] = false;
                self.free.push(number);
            }
            set.with_level = None;
        }
        self.bytes = self.sets.iter().map(|set| bytes_of(set.members.len())).sum();
    }

    /// Bytes that the sets take, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many states are held.
    pub fn live(&self) -> usize {
        self.live
    }

    /// How many sets there may be after so many meetings, each of which may make one of one that is there.
    pub fn after(&self, meetings: usize) -> usize {
        let used = self.sets.len() - self.free.len();
        used + meetings.min(used) + 2
    }

    #[inline]
    pub fn is_live(&self, number: u16) -> bool {
        self.live_sets[number as usize]
    }

    pub fn members(&self, number: u16) -> &[u32] {
        &self.sets[number as usize].members
    }

    #[inline]
    pub fn lanes(&self, number: u16) -> u64 {
        self.sets[number as usize].lanes
    }

    /// The number of a set.
    pub fn number_of(&mut self, members: Vec<u32>) -> u16 {
        if let Some(&number) = self.numbers.get(&members) {
            return number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            assert!(self.sets.len() < MOST_SETS, "room was asked for");
            self.sets.push(Set::default());
            self.live_sets.push(false);
            (self.sets.len() - 1) as u16
        });
        self.bytes += bytes_of(members.len());
        self.numbers.insert(members.clone(), number);
        self.live_sets[number as usize] = true;
        self.sets[number as usize] = Set { members, ..Set::default() };
        number
    }

    /// The set with one more member; of nothing, that member alone.
    pub fn with(&mut self, number: Option<u16>, member: u32) -> u16 {
        let mut members = number.map_or(Vec::new(), |number| self.members(number).to_vec());
        if let Err(place) = members.binary_search(&member) {
            members.insert(place, member);
        }
        self.number_of(members)
    }

    /// The set of a state that was not held and is found now.
    #[inline]
    pub fn found(&self) -> u16 {
        self.alone
    }

    /// The set that a state has after it was met now.
    #[inline]
    pub fn meet(&mut self, number: u16) -> u16 {
        let set = &mut self.sets[number as usize];
        set.hits += 1;
        match set.with_level {
            _ if !self.sampled => number,
            Some(with_level) => with_level,
            None => {
                let (with_level, lanes) = (self.with(Some(number), self.level), self.lanes(number));
                self.sets[with_level as usize].lanes = lanes;
                self.sets[number as usize].with_level = Some(with_level);
                with_level
            }
        }
    }

    /// A state has got a place.
    #[inline]
    pub fn come(&mut self, number: u16) {
        self.sets[number as usize].states += 1;
        self.live += 1;
    }

    #[inline]
    pub fn moved(&mut self, from: u16, to: u16) {
        self.sets[from as usize].states -= 1;
        self.sets[to as usize].states += 1;
    }

    /// A state has lost its place.
    #[inline]
    pub fn leave(&mut self, number: u16) {
        self.live -= self.is_live(number) as usize;
        self.sets[number as usize].states -= 1;
    }

    /// How many states belong to the level under construction.
    pub fn states_of_level(&self) -> usize {
        let has_level = |set: &&Set| set.members.binary_search(&self.level).is_ok();
        self.sets.iter().filter(has_level).map(|set| set.states).sum()
    }

    /// Tells how often the states of each snapshot were met since the last time; the level under construction does not count.
    pub fn take_hits(&mut self, mut tell: impl FnMut(u32, u64)) {
        for set in &mut self.sets {
            let hits = std::mem::take(&mut set.hits);
            if hits > 0 {
                set.members.iter().filter(|&&member| member != self.level).for_each(|&member| tell(member, hits));
            }
        }
    }

    /// These snapshots are held no more; how many states are not, either.
    pub fn forget(&mut self, levels: &[u32]) -> usize {
        let before = self.live;
        for (number, set) in (0u16..).zip(&mut self.sets) {
            if !set.members.iter().any(|member| levels.contains(member)) {
                continue;
            }
            if self.numbers.get(&set.members) == Some(&number) {
                self.numbers.remove(&set.members);
            }
            set.members.retain(|member| !levels.contains(member));
            match set.members.is_empty() {
                true => {
                    self.live -= set.states;
                    self.live_sets[number as usize] = false;
                }
                // Another set may have become the same; either number will do.
                false => _ = self.numbers.entry(set.members.clone()).or_insert(number),
            }
            // Sets that were equal before must not be told apart by what they are with the level.
            set.with_level = None;
        }
        before - self.live
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_move_with_what_they_are_in() {
        let mut masks = Masks::new();
        let zero = masks.found();
        masks.come(zero);
        masks.come(zero);
        masks.begin(1, true, |_| 0);
        let both = masks.meet(zero);
        masks.moved(zero, both);
        assert_eq!((masks.meet(both), masks.states_of_level()), (both, 1));
        assert_eq!(masks.members(both), [0, 1]);
        let mut hits = Vec::new();
        masks.take_hits(|level, count| hits.push((level, count)));
        assert_eq!(hits, [(0, 1), (0, 1)]);
        masks.begin(2, true, |level| 1 << level);
        let all = masks.meet(both);
        assert_eq!((masks.lanes(all), masks.lanes(both)), (3, 3), "what is old stays");
        masks.begin(2, false, |level| 1 << level);
        assert_eq!((masks.meet(both), masks.lanes(both), masks.lanes(zero)), (both, 3, 1));
        assert_eq!(
            (masks.forget(&[0, 2]), masks.live(), masks.is_live(zero), masks.is_live(both)),
            (1, 1, false, true)
        );
        masks.leave(zero);
        masks.begin(3, false, |_| 0);
        assert_eq!((masks.forget(&[1]), masks.live()), (1, 0));
    }

    #[test]
    fn sets_that_become_equal_do_no_harm() {
        let mut masks = Masks::new();
        let sets: Vec<u16> = [vec![1, 2], vec![1, 3], vec![1]].into_iter().map(|set| masks.number_of(set)).collect();
        sets.iter().for_each(|&set| masks.come(set));
        assert_eq!(masks.forget(&[2, 3]), 0);
        masks.begin(9, true, |_| 0);
        let met: Vec<u16> = sets.iter().map(|&set| masks.meet(set)).collect();
        assert!(met.iter().all(|&set| masks.members(set) == [1, 9]));
        for (&from, &to) in sets.iter().zip(&met) {
            masks.moved(from, to);
        }
        assert_eq!(masks.forget(&[1]), 0);
        assert_eq!((masks.forget(&[9]), masks.live()), (3, 0));
    }
}
