//! A stream of caches of snapshots: which levels are taken, who leaves, and who takes what left.
//!
//! A cache takes the first level that it is offered, then one after each period; a period may grow each time. What a full
//! cache gives up is offered to the next, which counts what it is offered; what is not taken is forgotten. The newest
//! snapshot of a cache never makes room for itself. Everything is decided from numbers of levels, sizes and meetings, which
//! do not depend on workers or shards.

use crate::row::{Admit, LevelRule, Replace, Room, Tier};

/// A level that is held as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub level: u32,
    pub states: u64,
    /// How many states it had in common with levels that were taken later, and the last that had one.
    pub hits: u64,
    pub last_hit: u32,
}

/// One cache.
#[derive(Clone, Debug)]
struct Cache {
    tier: Tier,
    rule: LevelRule,
    room: usize,
    /// Levels until the one after the next is taken, and by how many that grows.
    period: u32,
    growth: u32,
    /// Levels that will be refused before one is taken.
    waits: u32,
    held: Vec<Snapshot>,
}

impl Cache {
    fn new(tier: Tier) -> Cache {
        let (period, growth) = match tier.admit {
            Admit::Every(period) => (period, 0),
            Admit::Growing(period) => (period, period),
            Admit::All | Admit::Backtracked | Admit::Powers => (1, 0),
        };
        let (Room::Levels(room) | Room::LevelsAgain(room)) = tier.room else {
            unreachable!("caches of levels have room for levels")
        };
        let Replace::Level(rule) = tier.replace else { unreachable!("levels leave by rules of their own") };
        Cache { tier, rule, room: room as usize, period, growth, waits: 0, held: Vec::new() }
    }

    /// How many levels it keeps whatever memory there is.
    fn least(&self) -> usize {
        if self.tier.admit == Admit::Every(1) && self.rule == LevelRule::LowestLevel { 2 } else { 1 }
    }

    /// Is the level that is offered now taken?
    fn admits(&mut self) -> bool {
        if self.waits > 0 {
            self.waits -= 1;
            return false;
        }
        self.waits = self.period - 1;
        self.period = self.period.saturating_add(self.growth);
        true
    }

    /// The snapshot of the lowest cost; of several the oldest.
    fn give_up(&mut self) -> Snapshot {
        let cost = |snapshot: &Snapshot| match self.rule {
            LevelRule::LowestLevel => snapshot.level as u64,
            LevelRule::LeastRecent => snapshot.last_hit as u64,
            LevelRule::MostRecent => u64::MAX - snapshot.last_hit as u64,
            LevelRule::LeastFrequent => snapshot.hits,
            LevelRule::MostFrequent => u64::MAX - snapshot.hits,
            // The same chance each time that the same search is made.
            LevelRule::Stratified => snapshot.level.trailing_zeros() as u64,
            LevelRule::Random => crate::hash::words(&[snapshot.level, self.waits, self.period]),
            LevelRule::Smallest => snapshot.states,
            LevelRule::Largest => u64::MAX - snapshot.states,
        };
        let lowest = self.held.iter().enumerate().min_by_key(|(_, snapshot)| (cost(snapshot), snapshot.level));
        let (index, _) = lowest.expect("only what holds something gives it up");
        self.held.remove(index)
    }
}

/// The caches, first to last.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    caches: Vec<Cache>,
}

impl Stream {
    /// The stream of those tiers that hold levels.
    pub fn new(tiers: &[Tier]) -> Stream {
        let levels = tiers.iter().filter(|tier| matches!(tier.replace, Replace::Level(_)));
        Stream { caches: levels.map(|&tier| Cache::new(tier)).collect() }
    }

    /// Will the next level be taken?
    pub fn takes_next(&self) -> bool {
        self.caches[0].waits == 0
    }

    /// Offers the next level; the levels that are held no more, maybe that one.
    pub fn offer(&mut self, level: Snapshot) -> Vec<u32> {
        let mut offered = level;
        for at in 0.. {
            if at == self.caches.len() {
                match self.caches[at - 1].tier {
                    tier @ Tier { room: Room::LevelsAgain(_), .. } => self.caches.push(Cache::new(tier)),
                    _ => break,
                }
            }
            let cache = &mut self.caches[at];
            if !cache.admits() {
                break;
            }
            let left = (cache.held.len() == cache.room).then(|| cache.give_up());
            cache.held.push(offered);
            match left {
                Some(left) => offered = left,
                None => return Vec::new(),
            }
        }
        vec![offered.level]
    }

    /// Gives up a level, for there is no memory for it: of the cache that has most, of several the last; its period
    /// grows, if it does, as if it had taken one. Every cache keeps a level at least, for without any a search would not end
    /// in reasonable time; and one that takes all levels keeps two, or a search whose steps can be taken back would turn round.
    pub fn give_up(&mut self) -> Option<u32> {
        let caches = self.caches.iter_mut().filter(|cache| cache.held.len() > cache.least());
        let cache = caches.max_by_key(|cache| cache.held.len())?;
        cache.period = cache.period.saturating_add(cache.growth);
        Some(cache.give_up().level)
    }

    /// Level `now`, which will be taken, has so many states in common with the snapshot of `level`.
    pub fn hit(&mut self, level: u32, hits: u64, now: u32) {
        let mut held = self.caches.iter_mut().flat_map(|cache| &mut cache.held);
        if let Some(snapshot) = held.find(|snapshot| snapshot.level == level) {
            snapshot.hits += hits;
            snapshot.last_hit = now;
        }
    }

    /// The old levels: those that have left the first cache.
    pub fn old(&self) -> impl Iterator<Item = u32> {
        self.caches[1..].iter().flat_map(|cache| cache.held.iter().map(|snapshot| snapshot.level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;

    impl Stream {
        pub fn len(&self) -> usize {
            self.caches.iter().map(|cache| cache.held.len()).sum()
        }
    }

    fn stream(text: &str) -> Stream {
        Stream::new(text.parse::<Row>().unwrap().tiers())
    }

    /// The levels held after each of the first `levels`, where `hits` tells how often a level is met.
    fn held(text: &str, levels: u32, hits: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut stream = stream(text);
        let mut held: Vec<u32> = Vec::new();
        for level in 0..levels {
            let (taken, snapshot) = (stream.takes_next(), Snapshot { level, states: 1, hits: 0, last_hit: level });
            let dropped = stream.offer(snapshot);
            held.push(level);
            held.retain(|level| !dropped.contains(level));
            assert_eq!(taken, held.contains(&level), "{text}");
            for &level in &held {
                if hits(level) > 0 {
                    stream.hit(level, hits(level), level);
                }
            }
            assert_eq!(stream.len(), held.len());
        }
        held
    }

    #[test]
    fn levels_are_taken_in_the_rhythm_of_the_paper() {
        assert_eq!(held("snapshots:(2,LLNR,9)", 50, |_| 0), [0, 2, 6, 12, 20, 30, 42]);
        assert_eq!(held("frontier:3", 10, |_| 0), [7, 8, 9]);
        // Every second level goes through the first cache; the second counts those that leave it.
        assert_eq!(held("snapshots:(c2,LLNR,2)(1,LLNR,9)", 30, |_| 0), [0, 2, 6, 12, 20, 26, 28]);
        assert_eq!(held("snapshots:(c2,LLNR,2)(c2,LLNR,1)(1,LLNR,9)", 21, |_| 0), [0, 4, 12, 16, 18, 20]);
    }

    #[test]
    fn pebbles_lie_the_further_apart_the_older_they_are() {
        let held = held("pebble:(c2,LLNR,3)", 200, |_| 0);
        let gaps: Vec<u32> = held.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(held.contains(&0) && gaps.windows(2).all(|pair| pair[0] >= pair[1]), "{held:?}");
        assert!(held.len() < 3 * 8 && held.len() > 10, "{held:?}");
    }

    #[test]
    fn rules_choose_who_leaves() {
        let after = |rule: &str| {
            held(&format!("snapshots:(1,{rule},3)"), 11, |level| [0, 5, 0, 2, 0, 0, 1, 0][level as usize % 8])
        };
        // Of levels 0, 1, 3 and 6 one had to leave when 6 came, and another one when 10 came.
        assert_eq!((after("LLNR"), after("LFU")), (vec![3, 6, 10], vec![1, 3, 10]));
        assert_eq!(after("MFU"), [0, 6, 10]);
        for rule in LevelRule::ALL {
            let held = after(rule.name());
            assert!(held.len() == 3 && held.contains(&10), "{}: {held:?}", rule.name());
        }
    }

    #[test]
    fn without_memory_old_levels_leave_and_periods_grow() {
        let mut stream = stream("snapshots:(c1,LLNR,2)(1,LLNR,9)");
        for level in 0..20 {
            stream.offer(Snapshot { level, states: 1, hits: 0, last_hit: 0 });
        }
        assert_eq!(stream.old().collect::<Vec<_>>(), [0, 1, 3, 6, 10, 15]);
        assert_eq!((stream.give_up(), stream.give_up()), (Some(0), Some(1)));
        let period = stream.caches[1].period;
        assert_eq!(period, 7 + 2, "two more than without");
        while stream.give_up().is_some() {}
        assert_eq!((stream.old().collect::<Vec<_>>(), stream.len()), (vec![15], 3));
    }
}
