//! Which snapshots a state is in: one small number names a set of them.
//!
//! States of few snapshots have few different sets, so a set is kept once, with what is true of all its states: how many there
//! are, which set they move to when they are met while a level is sampled. Dropping a snapshot
//! takes it out of the sets, not out of the states; a state whose set is empty is held no more.
//!
//! Members lie end to end in one list, and sets are found by their hash in another: there may be thousands of sets, and heaps
//! and maps would take four times as much.

use crate::hash;

/// Members of a set that are no levels: states that are held for good. See [`super`].
pub(crate) const BACKTRACKED: u32 = u32::MAX;
pub(crate) const ANCHORED: u32 = u32::MAX - 1;

/// Not a set.
const NONE: u16 = u16::MAX;
/// So many sets there can be.
pub(super) const MOST_SETS: usize = NONE as usize;
/// Lists grow by this part of them, and by so many.
const GROWTH_SHARE: usize = 4;
const LEAST_GROWTH: usize = 32;
/// Sets are found among places, of which so many are empty for each that is taken, at least.
const PLACES_PER_SET: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Set {
    /// Where its members are, in order; none if the set is not in use, or if states with its number are held no more.
    first: u32,
    len: u32,
    /// States with this number.
    states: u64,
    lanes: u64,
    /// The set that has the level under construction too, once it was needed; of one that has it, itself.
    with_level: u16,
}

impl Set {
    fn members<'a>(&self, members: &'a [u32]) -> &'a [u32] {
        &members[self.first as usize..][..self.len as usize]
    }
}

/// The sets of one table.
#[derive(Debug)]
pub(crate) struct Masks {
    sets: Vec<Set>,
    /// Which of them have members; asked for every place of a full line, so it is kept close together.
    live_sets: Vec<bool>,
    members: Vec<u32>,
    /// The numbers of sets that have members, by their hashes: at that place or the next that is free.
    places: Vec<u16>,
    free: Vec<u16>,
    /// The level under construction, whether all its states are to be marked, and the set of it alone.
    level: u32,
    sampled: bool,
    alone: u16,
    live: usize,
    /// Sets with members for which there is none yet that has the level too.
    single: usize,
    /// Members that have a lane: bits that tell what states are in; see [`super::Snapshots`].
    lanes: Vec<(u32, u64)>,
}

/// Makes room for one more, without doubling.
fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.len() + more > list.capacity() {
        list.reserve_exact(more.max(list.len() / GROWTH_SHARE).max(LEAST_GROWTH));
    }
}

impl Masks {
    pub fn new() -> Masks {
        let mut masks = Masks {
            sets: Vec::new(),
            live_sets: Vec::new(),
            members: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            level: 0,
            sampled: true,
            alone: NONE,
            live: 0,
            single: 0,
            lanes: Vec::new(),
        };
        masks.begin(0, true, Vec::new());
        masks
    }

    /// From here on states belong to this level, and sets with these members have these lanes.
    pub fn begin(&mut self, level: u32, sampled: bool, lanes: Vec<(u32, u64)>) {
        (self.level, self.sampled, self.alone, self.lanes) = (level, sampled, NONE, lanes);
        self.collect();
        for number in 0..self.sets.len() {
            self.sets[number].lanes = self.lanes_of(self.sets[number].members(&self.members));
        }
        self.alone = self.number_of(&[level]);
    }

    fn lanes_of(&self, members: &[u32]) -> u64 {
        let has = |member: &u32| members.binary_search(member).is_ok();
        self.lanes.iter().filter(|(member, _)| has(member)).fold(0, |lanes, (_, lane)| lanes | lane)
    }

    /// Frees the numbers of sets that no state has.
    pub fn collect(&mut self) {
        self.free.clear();
        for (number, set) in (0u16..).zip(&mut self.sets) {
            if set.states == 0 && number != self.alone {
                (set.len, self.live_sets[number as usize]) = (0, false);
                self.free.push(number);
            }
        }
        let used: usize = self.sets.iter().map(|set| set.len as usize).sum();
        if self.members.len() > 2 * used + LEAST_GROWTH {
            let mut members = Vec::with_capacity(used + LEAST_GROWTH);
            for set in &mut self.sets {
                let first = members.len() as u32;
                members.extend_from_slice(set.members(&self.members));
                set.first = first;
            }
            self.members = members;
        }
        self.find_places();
        self.relate();
    }

    /// Sets have changed, or there are more: where they are found.
    fn find_places(&mut self) {
        let wanted = (self.sets.len() * PLACES_PER_SET).next_power_of_two().max(LEAST_GROWTH);
        self.places.clear();
        if self.places.capacity() < wanted {
            self.places.reserve_exact(wanted);
        }
        self.places.resize(wanted, NONE);
        for number in 0..self.sets.len() as u16 {
            let members = self.members(number);
            // Of several sets that have become the same, either number will do.
            if !members.is_empty()
                && let Err(place) = self.find(members)
            {
                self.places[place] = number;
            }
        }
    }

    /// Which sets have the level under construction.
    fn relate(&mut self) {
        self.single = 0;
        for (number, set) in (0u16..).zip(&mut self.sets) {
            let members = set.members(&self.members);
            let has_level = members.binary_search(&self.level).is_ok();
            set.with_level = if has_level { number } else { NONE };
            self.single += (!has_level && !members.is_empty()) as usize;
        }
    }

    /// The number of a set, or the place for it.
    fn find(&self, members: &[u32]) -> Result<u16, usize> {
        let mut place = hash::scale(hash::words(members), self.places.len());
        loop {
            match self.places[place] {
                NONE => return Err(place),
                number if self.members(number) == members => return Ok(number),
                _ => place = (place + 1) % self.places.len(),
            }
        }
    }

    /// Bytes that the sets take.
    pub fn bytes(&self) -> usize {
        self.sets.capacity() * size_of::<Set>()
            + self.live_sets.capacity()
            + self.members.capacity() * size_of::<u32>()
            + (self.places.capacity() + self.free.capacity()) * size_of::<u16>()
    }

    /// How many states are held.
    pub fn live(&self) -> usize {
        self.live
    }

    /// How many sets there may be after so many meetings: each may make one of one that is there and has not got the level.
    pub fn after(&self, meetings: usize) -> usize {
        let used = self.sets.len() - self.free.len();
        used + if self.sampled { meetings.min(self.single) } else { 0 } + 2
    }

    #[inline]
    pub fn is_live(&self, number: u16) -> bool {
        self.live_sets[number as usize]
    }

    pub fn members(&self, number: u16) -> &[u32] {
        self.sets[number as usize].members(&self.members)
    }

    /// For each number the one that all sets with the same members may have; none for what is held no more.
    pub fn same_of_all(&self) -> Vec<Option<u16>> {
        (0..self.sets.len() as u16).map(|number| self.find(self.members(number)).ok()).collect()
    }

    #[inline]
    pub fn lanes(&self, number: u16) -> u64 {
        self.sets[number as usize].lanes
    }

    /// The number of a set.
    pub fn number_of(&mut self, members: &[u32]) -> u16 {
        let place = match self.find(members) {
            Ok(number) => return number,
            Err(place) => place,
        };
        make_room(&mut self.members, members.len());
        let (first, len) = (self.members.len() as u32, members.len() as u32);
        self.members.extend_from_slice(members);
        let has_level = members.binary_search(&self.level).is_ok();
        self.single += !has_level as usize;
        let set = Set { first, len, states: 0, lanes: self.lanes_of(members), with_level: NONE };
        let number = self.free.pop().unwrap_or_else(|| {
            assert!(self.sets.len() < MOST_SETS, "room was asked for");
            make_room(&mut self.sets, 1);
            make_room(&mut self.live_sets, 1);
            self.sets.push(set);
            self.live_sets.push(false);
            (self.sets.len() - 1) as u16
        });
        self.sets[number as usize] = Set { with_level: if has_level { number } else { NONE }, ..set };
        self.live_sets[number as usize] = true;
        self.places[place] = number;
        if self.sets.len() * PLACES_PER_SET > self.places.len() {
            self.find_places();
        }
        number
    }

    /// The set with one more member; of nothing, that member alone.
    pub fn with(&mut self, number: Option<u16>, member: u32) -> u16 {
        let mut members = number.map_or(Vec::new(), |number| self.members(number).to_vec());
        if let Err(place) = members.binary_search(&member) {
            members.insert(place, member);
        }
        self.number_of(&members)
    }

    /// The set of a state that was not held and is found now.
    #[inline]
    pub fn found(&self) -> u16 {
        self.alone
    }

    /// The set that a state has after it was met now.
    #[inline]
    pub fn meet(&mut self, number: u16) -> u16 {
        if !self.sampled {
            return number;
        }
        match self.sets[number as usize].with_level {
            NONE => self.mark(number),
            with_level => with_level,
        }
    }

    #[cold]
    fn mark(&mut self, number: u16) -> u16 {
        let with_level = self.with(Some(number), self.level);
        self.sets[number as usize].with_level = with_level;
        self.single -= 1;
        with_level
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
    pub fn states_of_level(&self) -> u64 {
        self.sets_of_level().map(|(_, states)| states).sum()
    }

    /// How many states of the level under construction are in other snapshots, set by set.
    pub fn tell_common(&self, mut tell: impl FnMut(u32, u64)) {
        for (members, states) in self.sets_of_level().filter(|(_, states)| *states > 0) {
            members.iter().filter(|&&member| member != self.level).for_each(|&member| tell(member, states));
        }
    }

    fn sets_of_level(&self) -> impl Iterator<Item = (&[u32], u64)> {
        let sets = self.sets.iter().map(|set| (set.members(&self.members), set.states));
        sets.filter(|(members, _)| members.binary_search(&self.level).is_ok())
    }

    /// These snapshots are held no more; how many states are not, either.
    pub fn forget(&mut self, levels: &[u32]) -> usize {
        let before = self.live;
        let mut changed = false;
        for (number, set) in self.sets.iter_mut().enumerate() {
            let members = &mut self.members[set.first as usize..][..set.len as usize];
            let mut kept = 0;
            for at in 0..members.len() {
                members[kept] = members[at];
                kept += !levels.contains(&members[at]) as usize;
            }
            if kept == members.len() {
                continue;
            }
            (set.len, changed) = (kept as u32, true);
            if kept == 0 {
                self.live -= set.states as usize;
                self.live_sets[number] = false;
            }
        }
        if changed {
            self.find_places();
            self.relate();
        }
        before - self.live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_ir::random::Draw;
    use std::collections::HashMap;

    #[test]
    fn states_move_with_what_they_are_in() {
        let mut masks = Masks::new();
        let zero = masks.found();
        masks.come(zero);
        masks.come(zero);
        masks.begin(1, true, Vec::new());
        let both = masks.meet(zero);
        masks.moved(zero, both);
        assert_eq!((masks.meet(both), masks.states_of_level()), (both, 1));
        assert_eq!(masks.members(both), [0, 1]);
        let mut common = Vec::new();
        masks.tell_common(|level, states| common.push((level, states)));
        assert_eq!(common, [(0, 1)], "however often it was met");
        let lanes = || vec![(0, 1), (1, 2), (BACKTRACKED, 8)];
        masks.begin(2, true, lanes());
        let all = masks.meet(both);
        assert_eq!((masks.lanes(all), masks.lanes(both)), (3, 3), "what is old stays");
        let again = masks.with(Some(both), BACKTRACKED);
        assert_eq!(masks.lanes(again), 11, "from now on");
        masks.begin(2, false, lanes());
        assert_eq!((masks.meet(both), masks.lanes(both), masks.lanes(zero)), (both, 3, 1));
        assert_eq!(
            (masks.forget(&[0, 2]), masks.live(), masks.is_live(zero), masks.is_live(both)),
            (1, 1, false, true)
        );
        masks.leave(zero);
        masks.begin(3, false, Vec::new());
        assert_eq!((masks.forget(&[1]), masks.live()), (1, 0));
    }

    #[test]
    fn sets_that_become_equal_do_no_harm() {
        let mut masks = Masks::new();
        let sets: Vec<u16> = [vec![1, 2], vec![1, 3], vec![1]].into_iter().map(|set| masks.number_of(&set)).collect();
        sets.iter().for_each(|&set| masks.come(set));
        assert_eq!(masks.forget(&[2, 3]), 0);
        masks.begin(9, true, Vec::new());
        let met: Vec<u16> = sets.iter().map(|&set| masks.meet(set)).collect();
        assert!(met.iter().all(|&set| masks.members(set) == [1, 9]));
        let same: Vec<Option<u16>> = sets.iter().map(|&set| masks.same_of_all()[set as usize]).collect();
        assert!(same.iter().all(|&set| set.is_some() && set == same[0]));
        for (&from, &to) in sets.iter().zip(&met) {
            masks.moved(from, to);
        }
        assert_eq!(masks.forget(&[1]), 0);
        assert_eq!((masks.forget(&[9]), masks.live()), (3, 0));
    }
    /// Many sets that come and go are found as lists would be.
    #[test]
    fn sets_are_found_again() {
        let (mut masks, mut draw) = (Masks::new(), Draw::new(3));
        let mut twin: HashMap<u16, Vec<u32>> = HashMap::new();
        for level in 1..300 {
            let lanes = vec![(level / 2, 1), (ANCHORED, 2)];
            masks.begin(level, level % 3 > 0, lanes);
            for _ in 0..draw.below(40) {
                let mut members: Vec<u32> =
                    (0..=draw.below(4)).map(|_| level - draw.below(9).min(level as u64) as u32).collect();
                members.extend((draw.below(9) == 0).then_some(ANCHORED));
                members.sort();
                members.dedup();
                let number = masks.number_of(&members);
                assert_eq!(
                    masks.lanes(number),
                    members.contains(&(level / 2)) as u64 + 2 * members.contains(&ANCHORED) as u64
                );
                if twin.insert(number, members).is_none() {
                    masks.come(number);
                }
                let met = masks.meet(number);
                assert!(level % 3 == 0 || masks.members(met).contains(&level));
            }
            let left = level - draw.below(9).min(level as u64) as u32;
            masks.forget(&[left]);
            for (&number, members) in &mut twin {
                members.retain(|&member| member != left);
                assert_eq!((masks.members(number), masks.is_live(number)), (&members[..], !members.is_empty()));
            }
            twin.retain(|&number, members| {
                let leaves = members.is_empty() || draw.below(3) == 0;
                if leaves {
                    masks.leave(number);
                }
                !leaves
            });
            assert_eq!(masks.live(), twin.len());
        }
        assert!(masks.bytes() < 40_000, "{}", masks.bytes());
    }
}
